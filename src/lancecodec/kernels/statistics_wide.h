/* Statistics of values that are not one machine word: other widths and variable width; byte entropy. */
#ifndef LANCECODEC_STATISTICS_WIDE_H
#define LANCECODEC_STATISTICS_WIDE_H

#include "chunk.h"

#define LC_ENTROPY_VALUES 64

LC_INLINE int64_t lc_wide_changes_loop(const uint8_t *data, int64_t width, int64_t n) {
    int64_t changes = 0;
    for (int64_t i = 1; i < n; i++)
        changes += memcmp(data + i * width, data + (i - 1) * width, (size_t)width) != 0;
    return changes;
}

/* Number of n values that differ from the previous one. */
static int64_t lc_wide_changes(const uint8_t *data, int64_t width, int64_t n) {
    switch (width) {
        case 16: return lc_wide_changes_loop(data, 16, n);
        case 32: return lc_wide_changes_loop(data, 32, n);
        default: return lc_wide_changes_loop(data, width, n);
    }
}

/* Return whether all valid values equal the given first valid one; stops at the first difference. */
static int lc_wide_all_equal(const uint8_t *data, int64_t width, int64_t n, const uint8_t *validity, int64_t bit,
                             int64_t first) {
    if (!validity) return n < 2 || memcmp(data, data + width, (size_t)((n - 1) * width)) == 0;
    for (int64_t i = first + 1; i < n; i++)
        if (lc_get_bit(validity, bit + i) && memcmp(data + i * width, data + first * width, (size_t)width)) return 0;
    return 1;
}

/* Shannon entropy in bits of each byte position of n <= 64 values, averaged; `weights[c]` is c * log2(c). */
static double lc_byte_entropy(const uint8_t *data, int64_t width, int64_t n, const double *weights) {
    uint8_t counts[256];
    double sum = 0;
    for (int64_t j = 0; j < width; j++) {
        memset(counts, 0, sizeof counts);
        for (int64_t i = 0; i < n; i++) counts[data[i * width + j]]++;
        for (int64_t b = 0; b < 256; b++) sum += weights[counts[b]];
    }
    /* -sum c/n log2(c/n) = log2(n) - sum c log2(c) / n */
    return (weights[n] - sum / (double)width) / (double)n;
}

typedef struct {
    int64_t shortest, longest, total, empty, valid;
    int64_t first_valid; /* -1: all are null */
    int all_equal;
} lc_lengths;

LC_INLINE int lc_lengths_dense_loop(const uint8_t *offsets, int wide, int64_t n, lc_lengths *l) {
    int64_t shortest = INT64_MAX, longest = 0, empty = 0;
    uint64_t bad = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t length = lc_load_offset(offsets, wide, i + 1) - lc_load_offset(offsets, wide, i);
        bad |= (uint64_t)length;
        shortest = length < shortest ? length : shortest;
        longest = length > longest ? length : longest;
        empty += length == 0;
    }
    l->shortest = shortest, l->longest = longest, l->empty = empty, l->valid = n;
    return (int64_t)bad < 0 ? LC_BAD_OFFSETS : LC_OK;
}

/* Without nulls; offsets must ascend. */
LC_CLONES static int lc_lengths_dense(const uint8_t *offsets, int wide, int64_t n, lc_lengths *l) {
    return wide ? lc_lengths_dense_loop(offsets, 1, n, l) : lc_lengths_dense_loop(offsets, 0, n, l);
}

LC_INLINE int lc_lengths_nulls_loop(const uint8_t *LC_RESTRICT offsets, int wide, int64_t n,
                                    const uint8_t *LC_RESTRICT validity, int64_t bit, lc_lengths *l) {
    int64_t shortest = INT64_MAX, longest = 0, empty = 0, total = 0, valid = 0;
    uint64_t bad = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t length = lc_load_offset(offsets, wide, i + 1) - lc_load_offset(offsets, wide, i);
        int64_t known = lc_get_bit(validity, bit + i), hide = known - 1;
        bad |= (uint64_t)length;
        int64_t from_above = length | (hide & INT64_MAX), from_below = length & ~hide;
        shortest = from_above < shortest ? from_above : shortest;
        longest = from_below > longest ? from_below : longest;
        empty += known & (length == 0);
        total += from_below;
        valid += known;
    }
    l->shortest = shortest, l->longest = longest, l->empty = empty, l->total = total, l->valid = valid;
    return (int64_t)bad < 0 ? LC_BAD_OFFSETS : LC_OK;
}

/* Only valid values count, but all offsets must ascend. */
LC_CLONES static int lc_lengths_nulls(const uint8_t *offsets, int wide, int64_t n, const uint8_t *validity,
                                      int64_t bit, lc_lengths *l) {
    return wide ? lc_lengths_nulls_loop(offsets, 1, n, validity, bit, l)
                : lc_lengths_nulls_loop(offsets, 0, n, validity, bit, l);
}

static int lc_strings_all_equal(const uint8_t *data, const uint8_t *offsets, int wide, int64_t n,
                                const uint8_t *validity, int64_t bit, const lc_lengths *l) {
    if (l->valid < 2) return 1;
    if (l->shortest != l->longest) return 0;
    const uint8_t *first = data + lc_load_offset(offsets, wide, l->first_valid);
    for (int64_t i = l->first_valid + 1; i < n && l->longest; i++)
        if ((!validity || lc_get_bit(validity, bit + i)) &&
            memcmp(first, data + lc_load_offset(offsets, wide, i), (size_t)l->longest))
            return 0;
    return 1;
}

/* Statistics of n strings between n + 1 offsets into `size` bytes. Wide offsets are checked first, so that lengths do
 * not overflow. */
static int lc_statistics_variable(const uint8_t *data, int64_t size, const uint8_t *offsets, int wide, int64_t n,
                                  const uint8_t *validity, int64_t bit, lc_lengths *l) {
    memset(l, 0, sizeof *l);
    l->first_valid = -1, l->all_equal = 1;
    if (n == 0) return LC_OK;
    for (int64_t i = 0; wide && i <= n; i++)
        if (lc_load_u64(offsets + 8 * i) > (uint64_t)size) return LC_BAD_OFFSETS;
    int64_t begin = lc_load_offset(offsets, wide, 0), end = lc_load_offset(offsets, wide, n);
    if (begin < 0 || end > size) return LC_BAD_OFFSETS;
    int problem = validity ? lc_lengths_nulls(offsets, wide, n, validity, bit, l)
                           : lc_lengths_dense(offsets, wide, n, l);
    if (problem) return problem;
    if (!validity) l->first_valid = 0, l->total = end - begin;
    else if (l->valid) while (!lc_get_bit(validity, bit + ++l->first_valid)) {}
    if (!l->valid) l->shortest = 0;
    l->all_equal = lc_strings_all_equal(data, offsets, wide, n, validity, bit, l);
    return LC_OK;
}

#endif
