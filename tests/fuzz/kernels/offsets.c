/* 2.0 end offsets: any bytes as pages, and round trips of Arrow offsets. */
#include "fuzz.h"
#include "offsets.h"

static void decoded(fz_input *in) {
    int wide = (int)fz_upto(in, 1);
    uint64_t limit = fz_word(in, (int)fz_upto(in, 7)) >> 1;
    lc_ends_state state = {.adjustment = limit + (uint64_t)fz_upto(in, 3), .limit = limit};
    lc_bytes raw = fz_rest(in);
    int64_t count = raw.size / 8, start = count ? (int64_t)(limit % (uint64_t)(count + 1)) : 0, n = count - start;
    uint8_t *out = fz_out(in, (n + 1) * (wide ? 8 : 4)), *validity = fz_out(in, (n + 7) / 8);
    if (lc_offsets_decode(raw.data, start, count, wide, out, validity, &state)) return;
    for (int64_t i = 0; i < n; i++) FZ_CHECK(lc_load_offset(out, wide, i) <= lc_load_offset(out, wide, i + 1));
    FZ_CHECK((uint64_t)lc_load_offset(out, wide, n) <= limit && lc_bits_count(validity, 0, n) == n - state.nulls);
}

static void there_and_back(fz_input *in) {
    int wide = (int)fz_upto(in, 1), nulls = (int)fz_upto(in, 1);
    int64_t n = 1 + fz_upto(in, 3000), at = fz_upto(in, 1000), first = at;
    uint8_t *offsets = fz_out(in, (n + 1) * (wide ? 8 : 4)), *raw = fz_out(in, 8 * n);
    uint8_t *back = fz_out(in, (n + 1) * (wide ? 8 : 4)), *validity = fz_take(in, (n + 7) / 8), *found = fz_out(in, (n + 7) / 8);
    for (int64_t i = 0; i <= n; i++, at += fz_upto(in, 20)) lc_store_offset(offsets, wide, i, at);
    int64_t total = lc_load_offset(offsets, wide, n) - first;
    lc_ends_state state = {.adjustment = (uint64_t)total + 1, .limit = (uint64_t)total};
    FZ_CHECK(!lc_offsets_encode(offsets, wide, n, nulls ? validity : NULL, 0, 0, state.adjustment, raw));
    FZ_CHECK(!lc_offsets_decode(raw, 0, n, wide, back, found, &state));
    for (int64_t i = 0; i < n; i++) FZ_CHECK(lc_get_bit(found, i) == (nulls ? lc_get_bit(validity, i) : 1));
    for (int64_t i = 0; i <= n; i++)
        FZ_CHECK(lc_load_offset(back, wide, i) == lc_load_offset(offsets, wide, i) - first);
}

static void fz_target(fz_input *in) {
    if (fz_upto(in, 1)) decoded(in);
    else there_and_back(in);
}
