/* Levels against plain loops: cut at chunks, found, replaced, repeated, fixed-size lists undone. */
#include "fuzz.h"
#include "levels_build.h"
#include "levels_pages.h"
#include "levels_unravel.h"

static uint8_t *levels_of(fz_input *in, int64_t n, int64_t top) {
    uint8_t *levels = fz_out(in, 2 * n);
    for (int64_t i = 0; i < n; i++) lc_store_u16(levels + 2 * i, (uint16_t)fz_upto(in, top));
    return levels;
}

static void positions(fz_input *in) {
    int64_t n = fz_upto(in, 300), found = 0;
    uint16_t level = (uint16_t)fz_upto(in, 3);
    uint8_t *levels = levels_of(in, n, 3);
    int64_t *at = (int64_t *)fz_memory(8 * n, 0), count = lc_levels_positions(levels, n, level, at);
    for (int64_t i = 0; i < n; i++)
        if (lc_level(levels, i) == level) FZ_CHECK(found < count && at[found++] == i);
    FZ_CHECK(found == count);
}

static void cut(fz_input *in) {
    int64_t n = fz_upto(in, 300), chunks = fz_upto(in, 6), counts[6], ends[6], visible = 0, rest;
    uint16_t top = (uint16_t)fz_upto(in, 2);
    uint8_t *def = fz_upto(in, 3) ? levels_of(in, n, 3) : NULL;
    for (int64_t i = 0; i < n; i++) visible += !def || lc_level(def, i) <= top;
    rest = visible;
    for (int64_t c = 0; c < chunks; c++) {
        counts[c] = c == chunks - 1 && fz_upto(in, 7) ? rest : fz_upto(in, rest > 0 ? rest : 9);
        rest -= counts[c];
    }
    if (lc_levels_cut(def, n, top, counts, chunks, ends)) return;
    FZ_CHECK(rest == 0);
    for (int64_t c = 0, at = 0; c < chunks; at = ends[c++]) {
        int64_t values = 0;
        for (int64_t i = at; i < ends[c]; i++) values += !def || lc_level(def, i) <= top;
        FZ_CHECK(ends[c] <= n && values == counts[c]);
    }
}

static void marks(fz_input *in) {
    int64_t n = 1 + fz_upto(in, 200), bit = fz_upto(in, 9), times = fz_upto(in, 5);
    lc_slot_range range = {fz_upto(in, 9), n};
    uint8_t *bits = fz_take(in, (bit + range.start + n + 7) / 8), *old = levels_of(in, n, 2), *now = fz_out(in, 2 * n);
    uint8_t *more = fz_out(in, 2 * n * times);
    memcpy(now, old, (size_t)(2 * n));
    lc_marks_more_nulls(&range, 1, bits, bit, 7, now);
    for (int64_t i = 0; i < n; i++) {
        int valid = lc_get_bit(bits, bit + range.start + i);
        FZ_CHECK(lc_level(now, i) == (lc_level(old, i) ? lc_level(old, i) : valid ? 0 : 7));
    }
    lc_marks_replace(now, n, 7, 9);
    lc_marks_repeat(now, n, times, more);
    for (int64_t i = 0; i < n; i++) FZ_CHECK(lc_level(now, i) != 7);
    for (int64_t i = 0; i < n * times; i++) FZ_CHECK(lc_level(more, i) == lc_level(now, i / times));
}

static void fixed_lists(fz_input *in) {
    int64_t n = fz_upto(in, 200), dimension = 1 + fz_upto(in, 4), slots = 0;
    uint16_t top = (uint16_t)fz_upto(in, 2);
    lc_levels stage = {fz_upto(in, 1) ? levels_of(in, n, 1) : NULL, fz_upto(in, 3) ? levels_of(in, n, 3) : NULL, n};
    for (int64_t i = 0; i < n; i++) slots += !stage.def || lc_level(stage.def, i) <= top;
    if (slots % dimension) return;
    int64_t kept = n - slots + slots / dimension;
    lc_fixed_lists_unravel(stage, top, dimension, stage.rep ? fz_out(in, 2 * kept) : NULL, stage.def ? fz_out(in, 2 * kept) : NULL);
}

static void fz_target(fz_input *in) {
    switch (fz_upto(in, 3)) {
        case 0: positions(in); break;
        case 1: cut(in); break;
        case 2: marks(in); break;
        default: fixed_lists(in);
    }
}
