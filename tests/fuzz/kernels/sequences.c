/* Ranges, deltas and dictionaries of integers. */
#include "fuzz.h"
#include "sequences.h"

static uint64_t value(const uint8_t *p, int64_t bits, int64_t i) {
    return bits == 32 ? lc_load_u32(p + 4 * i) : lc_load_u64(p + 8 * i);
}

static void ranges(fz_input *in, int64_t bits) {
    int64_t n = fz_upto(in, 300);
    uint64_t start = fz_word(in, 8) >> fz_upto(in, 63), step = fz_word(in, 8) >> fz_upto(in, 63);
    uint8_t *out = fz_out(in, n * bits / 8);
    if (lc_range_fill(bits, start, step, n, out)) return;
    FZ_CHECK(lc_range_step(bits, out, n) == step);
    for (int64_t i = 0; i < n; i++) FZ_CHECK(value(out, bits, i) == start + (uint64_t)i * step);
}

static void deltas(fz_input *in, int64_t bits) {
    int64_t n = 2 + fz_upto(in, 300);
    uint64_t base = fz_word(in, 8) >> fz_upto(in, 63);
    uint8_t *given = fz_take(in, (n - 1) * bits / 8), *out = fz_out(in, n * bits / 8);
    uint8_t *back = fz_out(in, (n - 1) * bits / 8);
    int problem = lc_delta_expand(bits, base, given, n, out);
    if (problem) return;
    FZ_CHECK(value(out, bits, 0) == base && !lc_delta_take(bits, out, n, back));
    FZ_CHECK(!memcmp(back, given, (size_t)((n - 1) * bits / 8)));
}

static void dictionaries(fz_input *in, int64_t bits) {
    int64_t entries = fz_upto(in, 40), n = fz_upto(in, 5000), largest = -1;
    uint8_t *items = fz_take(in, entries * bits / 8), *indices = fz_out(in, 4 * n), *out = fz_out(in, n * bits / 8);
    int wild = fz_upto(in, 7) == 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t index = wild ? (uint32_t)fz_word(in, 4) : (uint32_t)fz_upto(in, entries ? entries - 1 : 0);
        lc_store_u32(indices + 4 * i, index);
        largest = index > largest ? index : largest;
    }
    int problem = lc_sequence_dictionary(bits, indices, n, items, entries, out);
    FZ_CHECK((problem == LC_OK) == (largest < entries));
    for (int64_t i = 0; i < n && !problem; i++)
        FZ_CHECK(value(out, bits, i) == value(items, bits, lc_load_u32(indices + 4 * i)));
}

static void fz_target(fz_input *in) {
    int64_t bits = fz_upto(in, 1) ? 64 : 32, what = fz_upto(in, 2);
    if (fz_upto(in, 63) == 5) FZ_CHECK(lc_range_fill(16, 0, 1, 2, NULL) && lc_delta_expand(8, 0, NULL, 2, NULL));
    if (what == 0) ranges(in, bits);
    else if (what == 1) deltas(in, bits);
    else dictionaries(in, bits);
}
