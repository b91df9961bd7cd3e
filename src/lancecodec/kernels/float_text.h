/* Floating-point numbers from decimal digits, and the shortest digits of a number.
 *
 * Both directions multiply by a power of ten of 128 bits. Reading: Eisel and Lemire, "Number parsing at a gigabyte per
 * second", with the proof of Mushtak and Lemire that it needs no second way. Writing: Giulietti, "The Schubfach way to
 * render doubles". */
#ifndef LANCECODEC_FLOAT_TEXT_H
#define LANCECODEC_FLOAT_TEXT_H

#include "hash.h"

/* Entry k - LC_POWER_MIN of a table of powers: the 128 highest bits of 10**k, rounded up, high word first. */
#define LC_POWER_MIN (-342)
#define LC_POWER_MAX 324
#define LC_POWERS (LC_POWER_MAX - LC_POWER_MIN + 1)

#define LC_FLOAT_INFINITY 0x7FF0000000000000ULL
#define LC_FLOAT_FRACTION 0x000FFFFFFFFFFFFFULL
#define LC_FLOAT_IMPLIED 0x0010000000000000ULL

LC_INLINE int lc_float_leading_zeros(uint64_t v) {
#if defined(__GNUC__) || defined(__clang__)
    return __builtin_clzll(v);
#else
    int n = 0;
    for (; !(v >> 63); v <<= 1) n++;
    return n;
#endif
}

/* Remove the bits of a fraction below 2**-1074. Returns the bits of the number. */
static inline uint64_t lc_float_subnormal(uint64_t fraction, int64_t power) {
    if (1 - power >= 64) return 0;
    fraction >>= 1 - power;
    fraction += fraction & 1;
    return fraction >> 1; /* the carry into the implied bit makes the exponent 1 */
}

/* Bits of the positive number nearest to w * 10**q; w has up to 19 digits. */
static inline uint64_t lc_float_read(const uint64_t *powers, uint64_t w, int64_t q) {
    if (w == 0 || q < LC_POWER_MIN) return 0;
    if (q > 308) return LC_FLOAT_INFINITY;
    uint64_t top = powers[2 * (q - LC_POWER_MIN)], bottom = powers[2 * (q - LC_POWER_MIN) + 1];
    if (q < -27 || q > 55) top -= bottom == 0, bottom -= 1; /* inexact powers are rounded down here, except small ones */
    int zeros = lc_float_leading_zeros(w);
    w <<= zeros;
    uint64_t high, low = lc_multiply(w, top, &high);
    if ((high & 0x1FF) == 0x1FF) {
        uint64_t more;
        lc_multiply(w, bottom, &more);
        low += more;
        high += low < more;
    }
    int64_t upper = (int64_t)(high >> 63), shift = upper + 9;
    int64_t power = ((217706 * q) >> 16) + 63 + upper - zeros + 1023;
    uint64_t fraction = high >> shift;
    if (power <= 0) return lc_float_subnormal(fraction, power);
    if (low <= 1 && q >= -4 && q <= 23 && (fraction & 3) == 1 && fraction << shift == high) fraction &= ~(uint64_t)1;
    fraction += fraction & 1;
    fraction >>= 1;
    if (fraction >> 53) fraction = LC_FLOAT_IMPLIED, power++;
    if (power >= 0x7FF) return LC_FLOAT_INFINITY;
    return (fraction & LC_FLOAT_FRACTION) | (uint64_t)power << 52;
}

/* A number as digits * 10**exponent. */
typedef struct {
    uint64_t digits;
    int64_t exponent;
} lc_decimal_float;

/* High half of a product with a power, whose lowest bit says that more bits follow. */
LC_INLINE uint64_t lc_float_round_to_odd(uint64_t top, uint64_t bottom, uint64_t v) {
    uint64_t high, more, low = lc_multiply(v, top, &high);
    lc_multiply(v, bottom, &more);
    low += more;
    high += low < more;
    return high | (low > 1);
}

/* The shortest digits that give a positive finite number back, the nearest ones if there are several. */
static inline lc_decimal_float lc_float_shortest(const uint64_t *powers, uint64_t bits) {
    uint64_t fraction = bits & LC_FLOAT_FRACTION, raised = bits >> 52;
    uint64_t c = raised ? fraction | LC_FLOAT_IMPLIED : fraction;
    int64_t q = (int64_t)(raised ? raised : 1) - 1075;
    if (q <= 0 && q > -53 && !(c & lc_low_mask(-q))) return (lc_decimal_float){c >> -q, 0};
    uint64_t is_closer = fraction == 0 && raised > 1, is_odd = c & 1;
    int64_t k = (q * 1262611 - (is_closer ? 524031 : 0)) >> 22;
    int64_t h = q + ((-k * 1741647) >> 19) + 1;
    uint64_t top = powers[2 * (-k - LC_POWER_MIN)], bottom = powers[2 * (-k - LC_POWER_MIN) + 1];
    uint64_t lower = lc_float_round_to_odd(top, bottom, (4 * c - 2 + is_closer) << h) + is_odd;
    uint64_t value = lc_float_round_to_odd(top, bottom, (4 * c) << h);
    uint64_t upper = lc_float_round_to_odd(top, bottom, (4 * c + 2) << h) - is_odd;
    uint64_t s = value / 4;
    if (s >= 10) {
        uint64_t tens = s / 10;
        int is_low = lower <= 40 * tens, is_high = 40 * tens + 40 <= upper;
        if (is_low != is_high) return (lc_decimal_float){tens + (uint64_t)is_high, k + 1};
    }
    int is_low = lower <= 4 * s, is_high = 4 * s + 4 <= upper;
    if (is_low != is_high) return (lc_decimal_float){s + (uint64_t)is_high, k};
    uint64_t middle = 4 * s + 2;
    return (lc_decimal_float){s + (value > middle || (value == middle && (s & 1))), k};
}

/* Write the digits of a number. Returns their count, at most 20. */
static inline int64_t lc_write_digits(uint64_t v, uint8_t *out) {
    uint8_t digits[20];
    int64_t n = 0;
    do digits[n++] = (uint8_t)('0' + v % 10);
    while (v /= 10);
    for (int64_t i = 0; i < n; i++) out[i] = digits[n - 1 - i];
    return n;
}

/* Write n digits, of which the first `point` are in front of the point; `point` is from -4 to 16. */
static inline int64_t lc_float_plain(const uint8_t *digits, int64_t n, int64_t point, uint8_t *out) {
    int64_t size = 0;
    if (point <= 0) {
        out[size++] = '0', out[size++] = '.';
        for (int64_t i = point; i < 0; i++) out[size++] = '0';
    }
    for (int64_t i = 0; i < n; i++) {
        if (i == point && point > 0) out[size++] = '.';
        out[size++] = digits[i];
    }
    if (n > point) return size;
    for (int64_t i = n; i < point; i++) out[size++] = '0';
    out[size++] = '.', out[size++] = '0';
    return size;
}

/* Write the shortest text of a finite number, at most 25 bytes; with an exponent below 1e-5, and from 1e16 on. */
static inline int64_t lc_float_write(const uint64_t *powers, uint64_t bits, uint8_t *out) {
    uint8_t digits[20];
    int64_t at = 0;
    if (bits >> 63) out[at++] = '-';
    bits &= ~((uint64_t)1 << 63);
    if (bits == 0) return at + lc_float_plain((const uint8_t *)"0", 1, 1, out + at);
    lc_decimal_float number = lc_float_shortest(powers, bits);
    for (; number.digits % 10 == 0; number.digits /= 10) number.exponent++;
    int64_t n = lc_write_digits(number.digits, digits), point = n + number.exponent;
    if (point > -5 && point <= 16) return at + lc_float_plain(digits, n, point, out + at);
    out[at++] = digits[0];
    if (n > 1) out[at++] = '.';
    for (int64_t i = 1; i < n; i++) out[at++] = digits[i];
    out[at++] = 'e', out[at++] = point > 0 ? '+' : '-';
    return at + lc_write_digits((uint64_t)(point > 0 ? point - 1 : 1 - point), out + at);
}

#endif
