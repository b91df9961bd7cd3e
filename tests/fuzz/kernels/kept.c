/* Values that a bitmap keeps: of a fixed width, bits and strings. */
#include "fuzz.h"
#include "kept.h"

static void fz_kept_strings(fz_input *in, const uint8_t *bits, int64_t offset, int64_t n, int64_t count) {
    int wide = (int)fz_upto(in, 1);
    int64_t size = fz_upto(in, 400), total = 0, step = wide ? 8 : 4;
    uint8_t *data = fz_take(in, size), *offsets = fz_take(in, (n + 1) * step);
    if (fz_upto(in, 3)) { /* plausible offsets */
        int64_t at = 0;
        for (int64_t i = 0; i <= n; i++) {
            lc_kept_store(offsets, wide, i, at);
            if (at < size) at += (int64_t)(offsets[i * step] % 3);
            if (at > size) at = size;
        }
    }
    uint8_t *ends = fz_out(in, (count + 1) * step);
    if (lc_kept_ends(bits, offset, n, offsets, wide, count, ends, &total) || total > 4096) return;
    uint8_t *out = fz_out(in, total);
    int problem = lc_kept_bytes(bits, offset, n, (lc_bytes){data, size}, offsets, wide, out, total);
    FZ_CHECK(problem != LC_NO_SPACE && problem != LC_BAD_SIZE);
    for (int64_t i = 0, at = 0; !problem && i < n; i++) {
        if (!lc_get_bit(bits, offset + i)) continue;
        int64_t low = lc_kept_offset(offsets, wide, i), length = lc_kept_offset(offsets, wide, i + 1) - low;
        int64_t place = lc_kept_offset(ends, wide, at++);
        FZ_CHECK(lc_kept_offset(ends, wide, at) - place == length);
        FZ_CHECK(!memcmp(out + place, data + low, (size_t)length));
    }
}

static void fz_target(fz_input *in) {
    int64_t n = fz_upto(in, 400), offset = fz_upto(in, 20), width = 1 + fz_upto(in, 20), start = fz_upto(in, 20);
    uint8_t *bits = fz_take(in, (offset + n + 7) / 8);
    int64_t count = 0, wrong = fz_upto(in, 15) == 0;
    for (int64_t i = 0; i < n; i++) count += lc_get_bit(bits, offset + i);
    if (wrong) count = fz_upto(in, n);
    uint8_t *values = fz_take(in, n * width), *out = fz_out(in, count * width);
    int problem = lc_kept_fixed(bits, offset, n, values, width, count, out);
    FZ_CHECK(wrong || problem == LC_OK);
    for (int64_t i = 0, at = 0; !problem && i < n; i++)
        if (lc_get_bit(bits, offset + i)) FZ_CHECK(!memcmp(out + width * at++, values + width * i, (size_t)width));
    uint8_t *flags = fz_take(in, (start + n + 7) / 8), *moved = fz_out(in, (count + 7) / 8);
    problem = lc_kept_bits(bits, offset, n, flags, start, count, moved);
    FZ_CHECK(wrong || problem == LC_OK);
    for (int64_t i = 0, at = 0; !problem && i < n; i++)
        if (lc_get_bit(bits, offset + i)) FZ_CHECK(lc_get_bit(moved, at++) == lc_get_bit(flags, start + i));
    fz_kept_strings(in, bits, offset, n, count);
}
