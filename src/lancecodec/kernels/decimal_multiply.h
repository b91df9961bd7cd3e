/* Products of 128-bit two's complement integers, by sign and magnitude. */
#ifndef LANCECODEC_DECIMAL_MULTIPLY_H
#define LANCECODEC_DECIMAL_MULTIPLY_H

#include "hash.h"

typedef struct {
    uint64_t low, high;
} lc_magnitude;

/* Convert between a number and its magnitude. The sign is 0, or all ones for a negative number. */
LC_INLINE lc_magnitude lc_negated(lc_magnitude v, uint64_t sign) {
    lc_magnitude out;
    out.low = (v.low ^ sign) - sign;
    out.high = (v.high ^ sign) + (sign & (uint64_t)(v.low == 0));
    return out;
}

/* Return the part of a product that fits 128 bits; set `*lost` if that is not all. */
LC_INLINE lc_magnitude lc_magnitude_product(lc_magnitude a, lc_magnitude b, uint64_t *lost) {
    lc_magnitude out;
    out.low = lc_multiply(a.low, b.low, &out.high);
    if (a.high | b.high) {
        uint64_t beyond, cross = a.high ? lc_multiply(a.high, b.low, &beyond) : lc_multiply(a.low, b.high, &beyond);
        *lost |= (uint64_t)(a.high && b.high) | beyond;
        out.high += cross;
        *lost |= (uint64_t)(out.high < cross);
    }
    return out;
}

/* Multiply n numbers with as many others (`step` 16) or with one (`step` 0). Returns 1 if no magnitude exceeds
 * `most`. */
static inline int lc_decimals_multiply(const uint8_t *left, const uint8_t *right, int64_t step, int64_t n,
                                       lc_magnitude most, uint8_t *out) {
    uint64_t bad = 0;
    for (int64_t i = 0; i < n; i++) {
        const uint8_t *p = left + 16 * i, *q = right + step * i;
        lc_magnitude a = {lc_load_u64(p), lc_load_u64(p + 8)}, b = {lc_load_u64(q), lc_load_u64(q + 8)};
        uint64_t a_sign = 0 - (a.high >> 63), b_sign = 0 - (b.high >> 63);
        lc_magnitude product = lc_magnitude_product(lc_negated(a, a_sign), lc_negated(b, b_sign), &bad);
        bad |= (uint64_t)((product.high > most.high) | ((product.high == most.high) & (product.low > most.low)));
        product = lc_negated(product, a_sign ^ b_sign);
        lc_store_u64(out + 16 * i, product.low);
        lc_store_u64(out + 16 * i + 8, product.high);
    }
    return bad == 0;
}

#endif
