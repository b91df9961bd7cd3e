/* Flat values of any number of bits, in chunks and by position, against a loop over bits; packed rows of fixed width. */
#include "flat.h"
#include "fuzz.h"
#include "packed.h"

static void same_bits(const uint8_t *a, int64_t at, const uint8_t *b, int64_t from, int64_t bits) {
    for (int64_t i = 0; i < bits; i++) FZ_CHECK(lc_get_bit(a, at + i) == lc_get_bit(b, from + i));
}

static void bits(fz_input *in) {
    int64_t width = 1 + fz_upto(in, 40), n = fz_upto(in, 200), offset = fz_upto(in, 20), chunk = 4 + fz_upto(in, 100);
    int64_t chunks = (n + chunk - 1) / chunk, at = fz_upto(in, 20), begin = 0;
    int64_t *ends = (int64_t *)fz_memory(8 * chunks, 0), room = chunks * lc_flat_size(chunk, width);
    uint8_t *src = fz_take(in, (offset + n * width + 7) / 8), *page = fz_out(in, room);
    uint8_t *out = fz_out(in, (at + n * width + 7) / 8);
    memset(out, 0, (size_t)((at + n * width + 7) / 8));
    lc_flat_page(src, offset, n, width, chunk, page, ends);
    for (int64_t c = 0; c < chunks; c++) {
        int64_t values = n - c * chunk < chunk ? n - c * chunk : chunk, first = at + c * chunk * width;
        lc_bytes buffer = {page + begin, ends[c] - begin};
        same_bits(buffer.data, 0, src, offset + c * chunk * width, values * width);
        FZ_CHECK(!lc_flat_chunk_bits(&buffer, values, width, out, first));
        int64_t count = fz_upto(in, 10), *some = fz_positions(in, count, values);
        uint8_t *taken = fz_out(in, (at + count * width + 7) / 8);
        FZ_CHECK(!lc_flat_at_bits(&buffer, values, width, some, count, taken, at));
        for (int64_t i = 0; i < count; i++) same_bits(taken, at + i * width, buffer.data, some[i] * width, width);
        buffer.size--;
        FZ_CHECK(lc_flat_chunk_bits(&buffer, values, width, out, first) == LC_BAD_SIZE);
        begin = ends[c];
    }
    same_bits(out, at, src, offset, n * width);
}

static void booleans(fz_input *in) {
    int64_t n = fz_upto(in, fz_upto(in, 7) ? 200 : 9000), at = fz_upto(in, 20);
    uint8_t *values = fz_take(in, n), *out = fz_out(in, (at + n + 7) / 8);
    lc_flat_bytes_to_bits(values, n, out, at);
    for (int64_t i = 0; i < n; i++) FZ_CHECK(lc_get_bit(out, at + i) == (values[i] != 0));
}

static void rows(fz_input *in) {
    lc_packed_field fields[4], back[4], taken[4];
    int64_t count = 1 + fz_upto(in, 3), n = fz_upto(in, 300), stride = 0, some = fz_upto(in, 40);
    for (int64_t f = 0; f < count; f++) {
        fields[f].width = 1 + fz_upto(in, fz_upto(in, 3) ? 20 : 70), fields[f].place = stride;
        stride += fields[f].width;
        fields[f].column = fz_take(in, n * fields[f].width);
        back[f] = taken[f] = fields[f];
        back[f].column = fz_upto(in, 7) ? fz_out(in, n * fields[f].width) : NULL;
        taken[f].column = fz_upto(in, 7) ? fz_out(in, some * fields[f].width) : NULL;
    }
    uint8_t *packed = fz_out(in, n * stride);
    lc_packed_pack(fields, count, n, packed, stride);
    lc_packed_unpack(back, count, n, packed, stride);
    int64_t *at = fz_positions(in, some, n ? n : 1), bad = lc_packed_take(taken, count, n, packed, stride, at, some);
    FZ_CHECK(bad == (n || !some ? -1 : 0));
    for (int64_t f = 0; f < count; f++) {
        int64_t width = fields[f].width;
        if (back[f].column && n) FZ_CHECK(!memcmp(back[f].column, fields[f].column, (size_t)(n * width)));
        for (int64_t i = 0; i < some && taken[f].column && bad < 0; i++)
            FZ_CHECK(!memcmp(taken[f].column + i * width, fields[f].column + at[i] * width, (size_t)width));
    }
}

static void fz_target(fz_input *in) {
    switch (fz_upto(in, 2)) {
        case 0: bits(in); break;
        case 1: booleans(in); break;
        default: rows(in);
    }
}
