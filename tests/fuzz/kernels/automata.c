/* Dictionaries: whatever the keys and their offsets are, memory is not left; ordered keys make a file of its parts. */
#include "fuzz.h"
#include "automaton.h"

static void fz_target(fz_input *in) {
    lc_fst made;
    int64_t n = fz_upto(in, 24), at = fz_upto(in, 3) ? 0 : fz_upto(in, 9) - 1;
    uint8_t *offsets = fz_out(in, 8 * (n + 1)), *numbers = fz_out(in, 8 * n);
    for (int64_t i = 0; i <= n; i++) {
        lc_store_u64(offsets + 8 * i, (uint64_t)at);
        at += fz_upto(in, 40) ? fz_upto(in, 4) : fz_upto(in, 300) - 100;
        if (i < n) lc_store_u64(numbers + 8 * i, fz_upto(in, 1) ? (uint64_t)i : fz_word(in, 8) >> fz_upto(in, 63));
    }
    lc_bytes keys = fz_rest(in);
    if (n > 1 && fz_upto(in, 1) && keys.size) memset((uint8_t *)keys.data, 'a', (size_t)keys.size / 2);
    int problem = lc_fst_begin(&made);
    FZ_CHECK(!problem);
    problem = lc_fst_build(&made, keys, offsets, numbers, n);
    if (!problem) {
        lc_crc32c_tables tables;
        lc_crc32c_fill(&tables);
        uint32_t sum = lc_crc32c(&tables, (lc_bytes){made.data, made.size - 4});
        FZ_CHECK(made.size >= 36 && lc_load_u64(made.data + made.size - 20) == (uint64_t)n);
        FZ_CHECK(lc_load_u32(made.data + made.size - 4) == ((sum >> 15) | (sum << 17)) + 0xA282EAD8u);
        uint64_t root = lc_load_u64(made.data + made.size - 12);
        FZ_CHECK(!root || root + 21 == (uint64_t)made.size);
    }
    lc_fst_close(&made);
}
