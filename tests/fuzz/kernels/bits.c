/* Bitmaps against loops over single bits. */
#include "bits.h"
#include "fuzz.h"

static void copied(fz_input *in, const uint8_t *bits, int64_t size) {
    int64_t offset = fz_upto(in, 70) % (size * 8 + 1), n = fz_upto(in, size * 8 - offset), at = fz_upto(in, 20);
    int64_t out_size = (at + n + 7) / 8;
    uint8_t *out = fz_out(in, out_size), *bytes = fz_out(in, n);
    lc_bits_copy(bits, offset, n, out, at);
    lc_bits_unpack(bits, offset, n, bytes);
    int64_t set = 0;
    for (int64_t i = 0; i < n; i++) {
        FZ_CHECK(lc_get_bit(out, at + i) == lc_get_bit(bits, offset + i));
        FZ_CHECK(bytes[i] == lc_get_bit(bits, offset + i));
        set += bytes[i];
    }
    for (int64_t i = 0; i < at && i < out_size * 8; i++) FZ_CHECK(lc_get_bit(out, i) == ((0xA5 >> (i & 7)) & 1));
    for (int64_t i = at + n; i < out_size * 8; i++) FZ_CHECK(lc_get_bit(out, i) == ((0xA5 >> (i & 7)) & 1));
    FZ_CHECK(lc_bits_count(bits, offset, n) == set);
    for (int64_t i = 0, number = 0; i < n; i++)
        if (lc_get_bit(bits, offset + i)) FZ_CHECK(lc_bits_select(bits, offset, n, number++) == i);
    FZ_CHECK(lc_bits_select(bits, offset, n, set) == -1);
    uint8_t *packed = fz_out(in, (n + 7) / 8);
    lc_bits_pack(bytes, n, packed);
    for (int64_t i = 0; i < n; i++) FZ_CHECK(lc_get_bit(packed, i) == bytes[i]);
    lc_bits_fill(out, at, n, (int)(set & 1));
    FZ_CHECK(lc_bits_count(out, at, n) == (set & 1 ? n : 0));
}

static void fz_target(fz_input *in) {
    int64_t count = fz_upto(in, 80);
    int64_t size = fz_upto(in, 300);
    uint8_t *bits = fz_take(in, size);
    copied(in, bits, size);
    int64_t length = fz_upto(in, size * 8), *index = fz_positions(in, count, size * 8 + 1);
    uint8_t *out = fz_out(in, (count + 7) / 8);
    int64_t bad = lc_bits_gather(bits, length, index, count, out);
    for (int64_t i = 0; i < (bad < 0 ? count : bad); i++) {
        FZ_CHECK(index[i] < length);
        if (bad < 0) FZ_CHECK(lc_get_bit(out, i) == lc_get_bit(bits, index[i]));
    }
    if (bad >= 0) FZ_CHECK(index[bad] >= length);
}
