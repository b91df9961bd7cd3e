/* Comparisons of 128-bit and 256-bit two's complement integers with one value, as a bitmap. */
#ifndef LANCECODEC_DECIMAL_COMPARE_H
#define LANCECODEC_DECIMAL_COMPARE_H

#include "bits.h"

enum lc_order { LC_EQUAL, LC_LESS, LC_LESS_EQUAL };

LC_INLINE uint8_t lc_decimal_order(const uint8_t *p, const uint64_t *bound, int words, int order) {
    uint64_t low = lc_load_u64(p);
    uint8_t equal = low == bound[0], less = low < bound[0];
    for (int w = 1; w < words; w++) {
        uint64_t v = lc_load_u64(p + 8 * w);
        uint64_t sign = w == words - 1 ? 0x8000000000000000ULL : 0;
        less = (uint8_t)(((v ^ sign) < (bound[w] ^ sign)) | ((v == bound[w]) & less));
        equal &= v == bound[w];
    }
    return order == LC_EQUAL ? equal : order == LC_LESS ? less : (uint8_t)(less | equal);
}

LC_INLINE void lc_decimals_each(const uint8_t *p, int64_t n, const uint64_t *bound, int words, int order, int flip,
                                uint8_t *out) {
    uint64_t all = flip ? ~0ULL : 0;
    for (int64_t i = 0; i < n; i += 64) {
        uint8_t flags[64] = {0};
        int64_t live = n - i < 64 ? n - i : 64;
        const uint8_t *at = p + 8 * words * i;
        if (live == 64)
            for (int k = 0; k < 64; k++) flags[k] = lc_decimal_order(at + 8 * words * k, bound, words, order);
        else
            for (int64_t k = 0; k < live; k++) flags[k] = lc_decimal_order(at + 8 * words * k, bound, words, order);
        uint64_t mask = lc_mask64(flags) ^ all;
        memcpy(out + i / 8, &mask, (size_t)((live + 7) / 8));
    }
}

LC_CLONES static inline void lc_decimals_compare128(const uint8_t *p, int64_t n, const uint64_t *bound, int order,
                                                    int flip, uint8_t *out) {
    if (order == LC_EQUAL) lc_decimals_each(p, n, bound, 2, LC_EQUAL, flip, out);
    else if (order == LC_LESS) lc_decimals_each(p, n, bound, 2, LC_LESS, flip, out);
    else lc_decimals_each(p, n, bound, 2, LC_LESS_EQUAL, flip, out);
}

/* Set the bits of the values for which "value order bound" is true, or with `flip` is false. Bits behind the last value
 * are undefined. */
static inline void lc_decimals_compare(const uint8_t *p, int64_t n, const uint64_t *bound, int words, int order,
                                       int flip, uint8_t *out) {
    if (words == 2) lc_decimals_compare128(p, n, bound, order, flip, out);
    else if (order == LC_EQUAL) lc_decimals_each(p, n, bound, 4, LC_EQUAL, flip, out);
    else if (order == LC_LESS) lc_decimals_each(p, n, bound, 4, LC_LESS, flip, out);
    else lc_decimals_each(p, n, bound, 4, LC_LESS_EQUAL, flip, out);
}

#endif
