/* Run-length encoding, encoder: the number of runs, and their entries in chunks or in one block. */
#ifndef LANCECODEC_RUNS_H
#define LANCECODEC_RUNS_H

#include "bits.h"
#include "rle.h"

/* Values of the largest chunk of the format, and its number of words of 64 values. */
#define LC_RUNS_VALUES 32768
#define LC_RUNS_WORDS (LC_RUNS_VALUES / 64)

/* Parameters and outputs of a page of run-length chunks. `unit` is the size of an entry, `longest` the largest
 * length. */
typedef struct {
    const uint8_t *values;
    int64_t n;
    int64_t length_bytes;
    int64_t unit;
    int64_t longest;
    int64_t max_values;
    int64_t max_bytes;
    uint8_t *out_values;
    uint8_t *out_lengths;
    int64_t capacity; /* entries */
} lc_runs_page;

/* Number of entries written, and begin of the open run. */
typedef struct {
    int64_t entries;
    int64_t open;
} lc_runs_state;

LC_INLINE int lc_lowest_bit(uint64_t v) {
#if defined(__GNUC__) || defined(__clang__)
    return __builtin_ctzll(v);
#else
    return lc_popcount64((v & (~v + 1)) - 1);
#endif
}

LC_INLINE int lc_highest_bit(uint64_t v) {
#if defined(__GNUC__) || defined(__clang__)
    return 63 - __builtin_clzll(v);
#else
    int bit = 0;
    while (v >>= 1) bit++;
    return bit;
#endif
}

LC_INLINE uint64_t lc_run_value(const uint8_t *values, int width, int64_t i) {
    if (width == 1) return values[i];
    if (width == 2) return lc_load_u16(values + 2 * i);
    return width == 4 ? lc_load_u32(values + 4 * i) : lc_load_u64(values + 8 * i);
}

/* Bit k: value i + k differs from the previous one, or is the first; for `count` <= 64 values. */
LC_INLINE uint64_t lc_run_starts(const uint8_t *LC_RESTRICT values, int width, int64_t i, int64_t count) {
    uint8_t differs[64];
    const uint8_t *here = values + i * width, *before = here - (i ? width : 0);
    if (count == 64 && i) {
        for (int64_t k = 0; k < 64; k++) differs[k] = lc_run_value(here, width, k) != lc_run_value(before, width, k);
    } else {
        memset(differs, 0, sizeof differs);
        differs[0] = (uint8_t)(i == 0 || lc_run_value(here, width, 0) != lc_run_value(before, width, 0));
        for (int64_t k = 1; k < count; k++) differs[k] = lc_run_value(here, width, k) != lc_run_value(here, width, k - 1);
    }
    return lc_mask64(differs);
}

/* Count runs, and entries if runs are also cut every `cut` values (a multiple of 64, or 0) and at the longest
 * length. */
LC_INLINE void lc_count_runs_of(const uint8_t *values, int width, int64_t n, int64_t cut, int64_t longest,
                                int64_t *runs, int64_t *entries) {
    int64_t open = 0, whole = 0, pieces = 0, extra = 0;
    for (int64_t i = 0; i < n; i += 64) {
        uint64_t starts = lc_run_starts(values, width, i, n - i < 64 ? n - i : 64);
        whole += lc_popcount64(starts);
        if (cut && i % cut == 0) starts |= 1;
        if (!starts) continue;
        pieces += lc_popcount64(starts);
        int64_t length = i + lc_lowest_bit(starts) - open;
        if (length > longest) extra += (length - 1) / longest;
        open = i + lc_highest_bit(starts);
    }
    if (n - open > longest) extra += (n - open - 1) / longest;
    *runs = whole, *entries = pieces + extra;
}

LC_CLONES static inline void lc_count_runs(const uint8_t *values, int64_t bits, int64_t n, int64_t cut, int64_t longest,
                                           int64_t *runs, int64_t *entries) {
    if (bits == 8) lc_count_runs_of(values, 1, n, cut, longest, runs, entries);
    else if (bits == 16) lc_count_runs_of(values, 2, n, cut, longest, runs, entries);
    else if (bits == 32) lc_count_runs_of(values, 4, n, cut, longest, runs, entries);
    else lc_count_runs_of(values, 8, n, cut, longest, runs, entries);
}

LC_INLINE void lc_put_length(uint8_t *lengths, int64_t length_bytes, int64_t at, int64_t length) {
    if (length_bytes == 1) lengths[at] = (uint8_t)length;
    else if (length_bytes == 2) lc_store_u16(lengths + 2 * at, (uint16_t)length);
    else lc_store_u32(lengths + 4 * at, (uint32_t)length);
}

/* Write the open run up to position `end`, where the next one begins. */
LC_INLINE void lc_put_run(const lc_runs_page *page, int width, lc_runs_state *state, int64_t end) {
    int64_t length = end - state->open;
    const uint8_t *value = page->values + state->open * width;
    for (;;) {
        int64_t some = length < page->longest ? length : page->longest;
        memcpy(page->out_values + state->entries * width, value, (size_t)width);
        lc_put_length(page->out_lengths, page->length_bytes, state->entries, some);
        state->entries++;
        if ((length -= some) <= 0) break;
    }
    state->open = end;
}

/* Write the runs that end at the starts in 64 values from i on. The state of the loop is in local variables, because a
 * store of bytes may alias any structure. */
LC_INLINE void lc_put_runs(const lc_runs_page *page, int width, lc_runs_state *state, int64_t i, uint64_t starts) {
    const uint8_t *LC_RESTRICT values = page->values;
    uint8_t *LC_RESTRICT out_values = page->out_values, *LC_RESTRICT out_lengths = page->out_lengths;
    const int64_t length_bytes = page->length_bytes, longest = page->longest;
    lc_runs_state now = *state;
    for (; starts; starts &= starts - 1) {
        int64_t end = i + lc_lowest_bit(starts), length = end - now.open;
        if (length > longest) {
            lc_runs_state long_run = now;
            lc_put_run(page, width, &long_run, end);
            now = long_run;
            continue;
        }
        memcpy(out_values + now.entries * width, values + now.open * width, (size_t)width);
        lc_put_length(out_lengths, length_bytes, now.entries, length);
        now.entries++;
        now.open = end;
    }
    *state = now;
}

/* Entries from `first` on if the open run ended at `end`. */
LC_INLINE int64_t lc_entries_until(const lc_runs_page *page, const lc_runs_state *state, int64_t first, int64_t end) {
    return state->entries - first + (end - state->open + page->longest - 1) / page->longest;
}

/* Extend a chunk that began at entry `first` from value `at` to value `end`. Returns 1 if it still fits its bytes,
 * 0 if not, and -1 if the output may not suffice. The open run is not written. */
LC_INLINE int lc_extend_chunk(const lc_runs_page *page, int width, lc_runs_state *state, int64_t first, int64_t at,
                              int64_t end) {
    uint64_t starts[LC_RUNS_WORDS];
    int64_t words = 0, found = 0;
    for (int64_t i = at; i < end; i += 64, words++) {
        starts[words] = lc_run_starts(page->values, width, i, end - i < 64 ? end - i : 64);
        if (i == state->open) starts[words] &= ~(uint64_t)1;
        found += lc_popcount64(starts[words]);
    }
    if ((state->entries - first + found + 1) * page->unit > page->max_bytes) return 0;
    if (state->entries + found + 1 + (end - state->open) / page->longest > page->capacity) return -1;
    for (int64_t k = 0; k < words; k++) lc_put_runs(page, width, state, at + 64 * k, starts[k]);
    return lc_entries_until(page, state, first, end) * page->unit <= page->max_bytes;
}

/* Write one chunk from value `begin` on: all remaining values if they fit, else the largest power of two of values that
 * does. Returns the number of values, 0 if the output is too small. */
LC_INLINE int64_t lc_put_chunk(const lc_runs_page *page, int width, lc_runs_state *state, int64_t begin) {
    int64_t left = page->n - begin, window = left < page->max_values ? left : page->max_values;
    lc_runs_state now = {state->entries, begin}, good = now;
    int64_t taken = 0, first = state->entries;
    for (int64_t size = 64; taken < window; size *= 2) {
        int64_t next = size < window ? size : window;
        int fits = lc_extend_chunk(page, width, &now, first, begin + taken, begin + next);
        if (fits < 0) return 0;
        if (!fits) break;
        taken = next, good = now;
    }
    *state = good;
    lc_put_run(page, width, state, begin + taken);
    return taken;
}

/* Write a whole page. Chunk i ends at entry entry_ends[i] and has counts[i] values. Returns the number of chunks, or -1
 * if the output or the room for `chunks` chunks is too small. max_bytes holds at least 64 entries. */
LC_INLINE int64_t lc_put_page(const lc_runs_page *page, int width, int64_t *entry_ends, int64_t *counts,
                              int64_t chunks) {
    lc_runs_state state = {0, 0};
    int64_t made = 0;
    for (int64_t begin = 0; begin < page->n; made++) {
        int64_t taken = made < chunks ? lc_put_chunk(page, width, &state, begin) : 0;
        if (taken == 0) return -1;
        begin += taken;
        counts[made] = taken;
        entry_ends[made] = state.entries;
    }
    return made;
}

LC_CLONES static inline int64_t lc_rle_page(const lc_runs_page *page, int64_t bits, int64_t *entry_ends,
                                            int64_t *counts, int64_t chunks) {
    if (bits == 8) return lc_put_page(page, 1, entry_ends, counts, chunks);
    if (bits == 16) return lc_put_page(page, 2, entry_ends, counts, chunks);
    if (bits == 32) return lc_put_page(page, 4, entry_ends, counts, chunks);
    return lc_put_page(page, 8, entry_ends, counts, chunks);
}

/* Whether there is room for the open run, which ends at `end`, and `more` entries. */
LC_INLINE int lc_runs_fit(const lc_runs_page *page, const lc_runs_state *state, int64_t end, int64_t more) {
    return lc_entries_until(page, state, 0, end) + more <= page->capacity;
}

LC_INLINE int lc_put_all(const lc_runs_page *page, int width) {
    lc_runs_state state = {0, 0};
    for (int64_t i = 0; i < page->n; i += 64) {
        uint64_t starts = lc_run_starts(page->values, width, i, page->n - i < 64 ? page->n - i : 64);
        if (i == 0) starts &= ~(uint64_t)1;
        if (!starts) continue;
        if (!lc_runs_fit(page, &state, i + lc_lowest_bit(starts), lc_popcount64(starts) - 1)) return LC_NO_SPACE;
        lc_put_runs(page, width, &state, i, starts);
    }
    if (page->n == 0) return page->capacity == 0 ? LC_OK : LC_BAD_COUNT;
    if (!lc_runs_fit(page, &state, page->n, 0)) return LC_NO_SPACE;
    lc_put_run(page, width, &state, page->n);
    return state.entries == page->capacity ? LC_OK : LC_BAD_COUNT;
}

/* Write all values as entries without chunks, which lc_count_runs counted with cut = 0: page->capacity of them, unless
 * the values have changed since then. `longest` is at least 64. */
LC_CLONES static inline int lc_rle_entries_of(const lc_runs_page *page, int64_t bits) {
    if (bits == 8) return lc_put_all(page, 1);
    if (bits == 16) return lc_put_all(page, 2);
    return bits == 32 ? lc_put_all(page, 4) : lc_put_all(page, 8);
}

#endif
