/* Tests of fixed-width values: whether each lies in one of a few intervals, as a bitmap.
 *
 * Values are compared by their keys, unsigned integers of the same width in the order of the values: unsigned integers
 * themselves, signed ones with their sign flipped, floats in their total order (negative NaN, numbers with -0.0 before 0.0,
 * positive NaN). The loops compare without branches, and the compiler vectorises them for each width and order. */
#ifndef LANCECODEC_INTERVALS_H
#define LANCECODEC_INTERVALS_H

#include "bits.h"
#include "lanes.h"

#define LC_MOST_INTERVALS 16

enum lc_key_order { LC_KEY_UNSIGNED, LC_KEY_SIGNED, LC_KEY_FLOAT };

/* A key of up to 128 bits; `top` is 0 for those of up to 64. */
typedef struct {
    uint64_t word, top;
} lc_wide_key;

LC_INLINE lc_wide_key lc_narrow_key(uint64_t key) { return (lc_wide_key){key, 0}; }

LC_INLINE int lc_wide_less(lc_wide_key a, lc_wide_key b) {
    return (a.top < b.top) | ((a.top == b.top) & (a.word < b.word));
}

/* Closed intervals of keys, ascending, which neither overlap nor touch. */
typedef struct {
    int64_t bits, order, count;
    lc_wide_key low[LC_MOST_INTERVALS], high[LC_MOST_INTERVALS];
} lc_intervals;

enum lc_verdict { LC_NONE_INSIDE, LC_ALL_INSIDE, LC_SOME_INSIDE };

/* What is certain of values whose keys lie between low and high. */
static inline int lc_intervals_verdict(const lc_intervals *test, lc_wide_key low, lc_wide_key high) {
    for (int64_t i = 0; i < test->count; i++) {
        if (lc_wide_less(test->high[i], low)) continue;
        if (lc_wide_less(high, test->low[i])) return LC_NONE_INSIDE;
        int all = !lc_wide_less(low, test->low[i]) && !lc_wide_less(test->high[i], high);
        return all ? LC_ALL_INSIDE : LC_SOME_INSIDE;
    }
    return LC_NONE_INSIDE;
}

/* Key of a value of `bits` bits, at most 64. */
LC_INLINE uint64_t lc_key(uint64_t value, int bits, int order) {
    uint64_t sign = (uint64_t)1 << (bits - 1);
    if (order == LC_KEY_UNSIGNED) return value;
    return order == LC_KEY_FLOAT && (value & sign) ? ~value & lc_low_mask(bits) : value ^ sign;
}

#define LC_DEFINE_KEY(BITS, TYPE)                                                                       \
    LC_INLINE TYPE lc_key_##BITS(const uint8_t *p, int order) {                                               \
        const TYPE sign = (TYPE)((TYPE)1 << (BITS - 1));                                                      \
        TYPE v = lc_load_u##BITS(p);                                                                          \
        if (order == LC_KEY_UNSIGNED) return v;                                                               \
        if (order == LC_KEY_SIGNED) return (TYPE)(v ^ sign);                                                  \
        return (TYPE)(v ^ (TYPE)((TYPE)(0 - (TYPE)(v >> (BITS - 1))) | sign));                                \
    }

/* Bits of 64 values, as bytes first: good for values of one or two bytes. */
#define LC_DEFINE_INSIDE_BYTES(BITS, TYPE)                                                                    \
    LC_INLINE uint64_t lc_inside64_##BITS(const uint8_t *values, uint64_t low, uint64_t high, int order) {    \
        uint8_t flags[64];                                                                                    \
        const TYPE first = (TYPE)low, span = (TYPE)(high - low);                                              \
        for (int k = 0; k < 64; k++)                                                                          \
            flags[k] = (TYPE)(lc_key_##BITS(values + k * (BITS / 8), order) - first) <= span;                 \
        return lc_mask64(flags);                                                                              \
    }

/* The same for larger values: each has its bit in a lane of a vector, and the lanes are put together at the end. */
#ifdef LC_VECTORS
#define LC_DEFINE_INSIDE_LANES(BITS, TYPE, VECTOR)                                                            \
    LC_INLINE uint64_t lc_inside_word_##BITS(const uint8_t *values, TYPE first, TYPE span, int order) {       \
        enum { LANES = 256 / BITS };                                                                          \
        const TYPE sign = (TYPE)1 << (BITS - 1), flip = order == LC_KEY_SIGNED ? sign : 0;                    \
        VECTOR found = {0}, bit = {0};                                                                        \
        TYPE word = 0;                                                                                        \
        for (int j = 0; j < LANES; j++) bit[j] = (TYPE)1 << j;                                                \
        for (int k = 0; k < BITS; k += LANES, bit <<= LANES) {                                                \
            VECTOR key = *(const VECTOR *)(values + k * (BITS / 8));                                          \
            if (order == LC_KEY_FLOAT) key ^= (0 - (key >> (BITS - 1))) | sign;                               \
            found |= (VECTOR)(key - (first ^ flip) <= span) & bit;                                            \
        }                                                                                                     \
        for (int j = 0; j < LANES; j++) word |= found[j];                                                     \
        return word;                                                                                          \
    }
#else
#define LC_DEFINE_INSIDE_LANES(BITS, TYPE, VECTOR)                                                            \
    LC_INLINE uint64_t lc_inside_word_##BITS(const uint8_t *values, TYPE first, TYPE span, int order) {       \
        TYPE word = 0;                                                                                        \
        for (int k = 0; k < BITS; k++)                                                                        \
            word |= (TYPE)((TYPE)(lc_key_##BITS(values + k * (BITS / 8), order) - first) <= span) << k;       \
        return word;                                                                                          \
    }
#endif
#define LC_DEFINE_INSIDE_WORDS(BITS, TYPE)                                                                    \
    LC_INLINE uint64_t lc_inside64_##BITS(const uint8_t *values, uint64_t low, uint64_t high, int order) {    \
        const TYPE first = (TYPE)low, span = (TYPE)(high - low);                                              \
        uint64_t word = 0;                                                                                    \
        for (int k = 0; k < 64; k += BITS)                                                                    \
            word |= lc_inside_word_##BITS(values + k * (BITS / 8), first, span, order) << k;                  \
        return word;                                                                                          \
    }

#define LC_DEFINE_INTERVALS(BITS, TYPE)                                                                       \
    LC_INLINE void lc_inside_##BITS(const uint8_t *LC_RESTRICT values, int64_t blocks, const lc_intervals *test, \
                                    int order, uint64_t *LC_RESTRICT out) {                                   \
        const int64_t size = 8 * BITS;                                                                        \
        for (int64_t b = 0; b < blocks; b++)                                                                  \
            out[b] = lc_inside64_##BITS(values + b * size, test->low[0].word, test->high[0].word, order);               \
        for (int64_t i = 1; i < test->count; i++)                                                             \
            for (int64_t b = 0; b < blocks; b++)                                                              \
                out[b] |= lc_inside64_##BITS(values + b * size, test->low[i].word, test->high[i].word, order);          \
    }                                                                                                         \
    LC_INLINE void lc_key_range_##BITS(const uint8_t *values, int64_t n, int order, uint64_t *low, uint64_t *high) { \
        TYPE least = (TYPE)~(TYPE)0, most = 0;                                                                \
        for (int64_t i = 0; i < n; i++) {                                                                     \
            TYPE key = lc_key_##BITS(values + i * (BITS / 8), order);                                         \
            least = key < least ? key : least;                                                                \
            most = key > most ? key : most;                                                                   \
        }                                                                                                     \
        *low = least, *high = most;                                                                           \
    }

LC_DEFINE_KEY(8, uint8_t)
LC_DEFINE_KEY(16, uint16_t)
LC_DEFINE_KEY(32, uint32_t)
LC_DEFINE_KEY(64, uint64_t)
LC_DEFINE_INSIDE_BYTES(8, uint8_t)
LC_DEFINE_INSIDE_BYTES(16, uint16_t)
LC_DEFINE_INSIDE_LANES(32, uint32_t, lc_halves8)
LC_DEFINE_INSIDE_LANES(64, uint64_t, lc_words4)
LC_DEFINE_INSIDE_WORDS(32, uint32_t)
LC_DEFINE_INSIDE_WORDS(64, uint64_t)
LC_DEFINE_INTERVALS(8, uint8_t)
LC_DEFINE_INTERVALS(16, uint16_t)
LC_DEFINE_INTERVALS(32, uint32_t)
LC_DEFINE_INTERVALS(64, uint64_t)

/* Values of two words, of which the second one is more significant. A value is inside if its distance from the low end, which
 * the difference of two words tells, is not above the span. To flip the sign of both sides is to flip that of the end. */
LC_INLINE uint64_t lc_inside64_128(const uint8_t *values, lc_wide_key low, lc_wide_key high, int order) {
    const uint64_t first = low.word, top = low.top ^ (order == LC_KEY_SIGNED ? (uint64_t)1 << 63 : 0);
    const uint64_t span = high.word - low.word, span_top = high.top - low.top - (high.word < low.word);
    uint8_t flags[64];
    for (int k = 0; k < 64; k++) {
        uint64_t word = lc_load_u64(values + 16 * k), far = word - first;
        uint64_t far_top = lc_load_u64(values + 16 * k + 8) - top - (word < first);
        flags[k] = (uint8_t)((far_top < span_top) | ((far_top == span_top) & (far <= span)));
    }
    return lc_mask64(flags);
}

LC_INLINE void lc_inside_128(const uint8_t *LC_RESTRICT values, int64_t blocks, const lc_intervals *test, int order,
                             uint64_t *LC_RESTRICT out) {
    for (int64_t b = 0; b < blocks; b++) {
        uint64_t word = 0;
        for (int64_t i = 0; i < test->count; i++)
            word |= lc_inside64_128(values + 1024 * b, test->low[i], test->high[i], order);
        out[b] = word;
    }
}

LC_INLINE void lc_key_range_128(const uint8_t *values, int64_t n, int order, lc_wide_key *low, lc_wide_key *high) {
    const uint64_t flip = order == LC_KEY_SIGNED ? (uint64_t)1 << 63 : 0;
    lc_wide_key least = {~(uint64_t)0, ~(uint64_t)0}, most = {0, 0};
    for (int64_t i = 0; i < n; i++) {
        lc_wide_key key = {lc_load_u64(values + 16 * i), lc_load_u64(values + 16 * i + 8) ^ flip};
        if (lc_wide_less(key, least)) least = key;
        if (lc_wide_less(most, key)) most = key;
    }
    *low = least, *high = most;
}

LC_INLINE void lc_inside_order(const uint8_t *LC_RESTRICT values, int64_t blocks, const lc_intervals *test, int order,
                               uint64_t *LC_RESTRICT out) {
    if (test->bits == 8) lc_inside_8(values, blocks, test, order, out);
    else if (test->bits == 16) lc_inside_16(values, blocks, test, order, out);
    else if (test->bits == 32) lc_inside_32(values, blocks, test, order, out);
    else if (test->bits == 64) lc_inside_64(values, blocks, test, order, out);
    else lc_inside_128(values, blocks, test, order, out);
}

/* Blocks of 64 values -> 64 bits each. */
LC_CLONES static inline void lc_inside_blocks(const uint8_t *LC_RESTRICT values, int64_t blocks,
                                              const lc_intervals *test, uint64_t *LC_RESTRICT out) {
    if (test->count == 0) memset(out, 0, (size_t)(8 * blocks));
    else if (test->order == LC_KEY_UNSIGNED) lc_inside_order(values, blocks, test, LC_KEY_UNSIGNED, out);
    else if (test->order == LC_KEY_SIGNED) lc_inside_order(values, blocks, test, LC_KEY_SIGNED, out);
    else lc_inside_order(values, blocks, test, LC_KEY_FLOAT, out);
}

/* n values -> bits in words of 64; bits behind the last value are 0. */
static inline void lc_inside(const uint8_t *values, int64_t n, const lc_intervals *test, uint64_t *out) {
    uint8_t last[1024] = {0};
    int64_t blocks = n / 64, rest = n % 64, width = test->bits / 8;
    lc_inside_blocks(values, blocks, test, out);
    if (rest == 0) return;
    memcpy(last, values + 64 * blocks * width, (size_t)(rest * width));
    lc_inside_blocks(last, 1, test, out + blocks);
    out[blocks] &= lc_low_mask(rest);
}

LC_INLINE void lc_key_range_order(const uint8_t *values, int64_t n, int64_t bits, int order, lc_wide_key *low,
                                  lc_wide_key *high) {
    if (bits == 128) {
        lc_key_range_128(values, n, order, low, high);
        return;
    }
    low->top = high->top = 0;
    if (bits == 8) lc_key_range_8(values, n, order, &low->word, &high->word);
    else if (bits == 16) lc_key_range_16(values, n, order, &low->word, &high->word);
    else if (bits == 32) lc_key_range_32(values, n, order, &low->word, &high->word);
    else lc_key_range_64(values, n, order, &low->word, &high->word);
}

/* Least and greatest key of n > 0 values. */
LC_CLONES static inline void lc_key_range(const uint8_t *values, int64_t n, const lc_intervals *test, lc_wide_key *low,
                                          lc_wide_key *high) {
    if (test->order == LC_KEY_UNSIGNED) lc_key_range_order(values, n, test->bits, LC_KEY_UNSIGNED, low, high);
    else if (test->order == LC_KEY_SIGNED) lc_key_range_order(values, n, test->bits, LC_KEY_SIGNED, low, high);
    else lc_key_range_order(values, n, test->bits, LC_KEY_FLOAT, low, high);
}

#endif
