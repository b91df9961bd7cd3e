/* Sequences of 2.3: ranges, deltas, dictionaries, of 32 or 64 bits. Arithmetic that exceeds the width is an error. */
#ifndef LANCECODEC_SEQUENCES_H
#define LANCECODEC_SEQUENCES_H

#include "gather.h"

LC_INLINE int lc_is_sequence_width(int64_t bits) { return bits == 32 || bits == 64; }

LC_INLINE uint64_t lc_sequence_top(int64_t bits) { return bits == 32 ? UINT32_MAX : UINT64_MAX; }

/* start, start + step, ... */
LC_CLONES static inline int lc_range_fill(int64_t bits, uint64_t start, uint64_t step, int64_t n, uint8_t *out) {
    if (!lc_is_sequence_width(bits)) return LC_BAD_WIDTH;
    if (n < 2) return LC_BAD_COUNT;
    uint64_t top = lc_sequence_top(bits);
    if (step == 0 || start > top || step > (top - start) / (uint64_t)(n - 1)) return LC_BAD_COUNT;
    if (bits == 64) {
        for (int64_t i = 0; i < n; i++) lc_store_u64(out + 8 * i, start + (uint64_t)i * step);
    } else {
        uint32_t first = (uint32_t)start, by = (uint32_t)step;
        for (int64_t i = 0; i < n; i++) lc_store_u32(out + 4 * i, first + (uint32_t)i * by);
    }
    return LC_OK;
}

/* base, base + deltas[0], ...: n values from n - 1 deltas. Sums of 32-bit deltas are computed in 64 bits, so that the
 * last and largest one shows an overflow; n is limited for that. */
static inline int lc_delta_expand(int64_t bits, uint64_t base, const uint8_t *LC_RESTRICT deltas, int64_t n,
                                  uint8_t *LC_RESTRICT out) {
    uint64_t value = base, carries = 0;
    if (!lc_is_sequence_width(bits)) return LC_BAD_WIDTH;
    if (n < 2 || (bits == 32 && n > UINT32_MAX)) return LC_BAD_COUNT;
    if (base > lc_sequence_top(bits)) return LC_BAD_COUNT;
    if (bits == 32) {
        lc_store_u32(out, (uint32_t)value);
        for (int64_t i = 0; i < n - 1; i++) {
            value += lc_load_u32(deltas + 4 * i);
            lc_store_u32(out + 4 * (i + 1), (uint32_t)value);
        }
        return value > UINT32_MAX ? LC_BAD_COUNT : LC_OK;
    }
    lc_store_u64(out, value);
    for (int64_t i = 0; i < n - 1; i++) {
        uint64_t delta = lc_load_u64(deltas + 8 * i);
        value += delta;
        carries |= (uint64_t)(value < delta);
        lc_store_u64(out + 8 * (i + 1), value);
    }
    return carries ? LC_BAD_COUNT : LC_OK;
}

/* Differences of n ascending values; returns LC_BAD_COUNT if they descend anywhere. */
LC_CLONES static inline int lc_delta_take(int64_t bits, const uint8_t *LC_RESTRICT values, int64_t n,
                                          uint8_t *LC_RESTRICT out) {
    uint64_t falls = 0;
    if (!lc_is_sequence_width(bits)) return LC_BAD_WIDTH;
    if (bits == 32) {
        uint32_t any = 0;
        for (int64_t i = 0; i < n - 1; i++) {
            uint32_t a = lc_load_u32(values + 4 * i), b = lc_load_u32(values + 4 * i + 4);
            any |= (uint32_t)(b < a);
            lc_store_u32(out + 4 * i, b - a);
        }
        falls = any;
    } else {
        for (int64_t i = 0; i < n - 1; i++) {
            uint64_t a = lc_load_u64(values + 8 * i), b = lc_load_u64(values + 8 * i + 8);
            falls |= (uint64_t)(b < a);
            lc_store_u64(out + 8 * i, b - a);
        }
    }
    return falls ? LC_BAD_COUNT : LC_OK;
}

/* Step between the first two of n values if it is the same for all neighbours; 0 if not, or if it is not positive. */
LC_CLONES static inline uint64_t lc_range_step(int64_t bits, const uint8_t *values, int64_t n) {
    uint64_t differs = 0, step;
    if (n < 2) return 0;
    if (bits == 32) {
        uint32_t first = lc_load_u32(values), second = lc_load_u32(values + 4), any = 0;
        if (second <= first) return 0;
        for (int64_t i = 1; i < n; i++) {
            uint32_t a = lc_load_u32(values + 4 * i - 4), b = lc_load_u32(values + 4 * i);
            any |= (uint32_t)(b < a) | ((b - a) ^ (second - first));
        }
        return any ? 0 : second - first;
    }
    if (lc_load_u64(values + 8) <= lc_load_u64(values)) return 0;
    step = lc_load_u64(values + 8) - lc_load_u64(values);
    for (int64_t i = 1; i < n; i++) {
        uint64_t a = lc_load_u64(values + 8 * i - 8), b = lc_load_u64(values + 8 * i);
        differs |= (uint64_t)(b < a) | ((b - a) ^ step);
    }
    return differs ? 0 : step;
}

/* items[indices[i]] of n 32-bit indices. */
static inline int lc_sequence_dictionary(int64_t bits, const uint8_t *indices, int64_t n, const uint8_t *items,
                                         int64_t entries, uint8_t *out) {
    if (!lc_is_sequence_width(bits)) return LC_BAD_WIDTH;
    return lc_gather_fixed(items, entries, bits >> 3, indices, 4, n, out);
}

#endif
