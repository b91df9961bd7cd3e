/* Bounds of the values of zones, which are equal numbers of consecutive rows of a column, as a writer sees them.
 *
 * Values are compared by their keys (see intervals.h). NaN has no bounds, but is noted. Texts are compared by their first 16
 * bytes, as big-endian words with zeros behind a shorter text: so the order of keys is the order of texts, except that texts
 * with the same first bytes have the same key. */
#ifndef LANCECODEC_ZONES_H
#define LANCECODEC_ZONES_H

#include "intervals.h"

enum lc_zone_flag { LC_ZONE_NULL = 1, LC_ZONE_VALID = 2, LC_ZONE_NAN = 4, LC_ZONE_BOUNDED = 8 };

typedef struct {
    lc_wide_key low, high; /* if the zone is bounded */
    uint64_t flags;
} lc_zone;

LC_INLINE void lc_zone_widen(lc_zone *zone, lc_wide_key low, lc_wide_key high) {
    int known = (zone->flags & LC_ZONE_BOUNDED) != 0;
    if (!known || lc_wide_less(low, zone->low)) zone->low = low;
    if (!known || lc_wide_less(zone->high, high)) zone->high = high;
    zone->flags |= LC_ZONE_BOUNDED;
}

/* Add what is known of another zone. */
static inline void lc_zone_merge(lc_zone *zone, const lc_zone *other) {
    if (other->flags & LC_ZONE_BOUNDED) lc_zone_widen(zone, other->low, other->high);
    zone->flags |= other->flags;
}

/* What is certain of the values of a zone, some of which may be null; `null`: whether nulls pass. A NaN may pass or not. */
static inline int lc_zone_verdict(const lc_intervals *test, int null, const lc_zone *zone) {
    int has_null = (zone->flags & LC_ZONE_NULL) != 0, has_valid = (zone->flags & LC_ZONE_VALID) != 0;
    if (!has_valid && !has_null) return LC_SOME_INSIDE;
    if (!has_valid) return null ? LC_ALL_INSIDE : LC_NONE_INSIDE;
    if ((zone->flags & LC_ZONE_NAN) || !(zone->flags & LC_ZONE_BOUNDED)) return LC_SOME_INSIDE;
    if (lc_wide_less(zone->high, zone->low)) return LC_SOME_INSIDE;
    int verdict = lc_intervals_verdict(test, zone->low, zone->high);
    return has_null && verdict != (null ? LC_ALL_INSIDE : LC_NONE_INSIDE) ? LC_SOME_INSIDE : verdict;
}

/* Verdicts of n zones, given as in files. */
static inline void lc_zone_verdicts(const lc_intervals *test, int null, const uint8_t *low, const uint8_t *high,
                                    const uint8_t *flags, int64_t n, uint8_t *out) {
    for (int64_t i = 0; i < n; i++) {
        lc_zone zone = {{lc_load_u64(low + 16 * i), lc_load_u64(low + 16 * i + 8)},
                        {lc_load_u64(high + 16 * i), lc_load_u64(high + 16 * i + 8)},
                        flags[i]};
        out[i] = (uint8_t)lc_zone_verdict(test, null, &zone);
    }
}

/* Bits [at, at + n) of a bitmap, n up to 64. */
LC_INLINE uint64_t lc_zone_bits(const uint8_t *bits, int64_t at, int64_t n) {
    const uint8_t *p = bits + (at >> 3);
    int64_t shift = at & 7, size = (shift + n + 7) >> 3;
    uint64_t word = lc_load_word(p, size) >> shift;
    if (size > 8) word |= (uint64_t)p[8] << (64 - shift);
    return word & lc_low_mask(n);
}

/* n > 0 valid values, which are not floats. */
#define LC_DEFINE_ZONE(BITS)                                                                              \
    LC_INLINE void lc_zone_run_##BITS(const uint8_t *values, int64_t n, int order, lc_zone *zone) {       \
        uint64_t low, high;                                                                               \
        lc_key_range_##BITS(values, n, order, &low, &high);                                               \
        lc_zone_widen(zone, lc_narrow_key(low), lc_narrow_key(high));                                     \
    }

/* n valid floats. A NaN becomes the greatest key for the minimum, and the least one for the maximum. */
#define LC_DEFINE_ZONE_FLOATS(BITS, TYPE, INFINITE)                                                       \
    LC_INLINE void lc_zone_floats_##BITS(const uint8_t *values, int64_t n, lc_zone *zone) {               \
        const TYPE sign = (TYPE)1 << (BITS - 1);                                                          \
        TYPE least = (TYPE)~(TYPE)0, most = 0, odd = 0;                                                   \
        for (int64_t i = 0; i < n; i++) {                                                                 \
            TYPE v = lc_load_u##BITS(values + i * (BITS / 8));                                            \
            TYPE key = v ^ ((TYPE)(0 - (v >> (BITS - 1))) | sign);                                        \
            TYPE nan = (TYPE)0 - (TYPE)((v & ~sign) > INFINITE);                                          \
            TYPE a = key | nan, b = key & ~nan;                                                           \
            least = a < least ? a : least;                                                                \
            most = b > most ? b : most;                                                                   \
            odd |= nan;                                                                                   \
        }                                                                                                 \
        if (odd) zone->flags |= LC_ZONE_NAN;                                                              \
        if (least <= most) lc_zone_widen(zone, lc_narrow_key(least), lc_narrow_key(most));                \
    }

LC_DEFINE_ZONE(8)
LC_DEFINE_ZONE(16)
LC_DEFINE_ZONE(32)
LC_DEFINE_ZONE(64)
LC_DEFINE_ZONE_FLOATS(32, uint32_t, 0x7F800000u)
LC_DEFINE_ZONE_FLOATS(64, uint64_t, 0x7FF0000000000000ULL)

LC_INLINE void lc_zone_run_128(const uint8_t *values, int64_t n, int order, lc_zone *zone) {
    lc_wide_key low, high;
    lc_key_range_128(values, n, order, &low, &high);
    lc_zone_widen(zone, low, high);
}

LC_INLINE void lc_zone_run_order(const uint8_t *values, int64_t n, int64_t bits, int order, lc_zone *zone) {
    if (bits == 8) lc_zone_run_8(values, n, order, zone);
    else if (bits == 16) lc_zone_run_16(values, n, order, zone);
    else if (bits == 32) lc_zone_run_32(values, n, order, zone);
    else if (bits == 64) lc_zone_run_64(values, n, order, zone);
    else lc_zone_run_128(values, n, order, zone);
}

LC_CLONES static inline void lc_zone_run(const uint8_t *values, int64_t n, int64_t bits, int64_t order, lc_zone *zone) {
    if (order == LC_KEY_UNSIGNED) lc_zone_run_order(values, n, bits, LC_KEY_UNSIGNED, zone);
    else if (order == LC_KEY_SIGNED) lc_zone_run_order(values, n, bits, LC_KEY_SIGNED, zone);
    else if (bits == 32) lc_zone_floats_32(values, n, zone);
    else lc_zone_floats_64(values, n, zone);
}

/* Move the values with a set bit together; the last ones of the output are written twice. */
#define LC_ZONE_MOVE(WIDTH)                                                       \
    for (int64_t i = 0; i < live; i++, word >>= 1) {                              \
        memcpy(out + WIDTH * kept, values + WIDTH * i, WIDTH);                    \
        kept += word & 1;                                                         \
    }

static inline int64_t lc_zone_move(const uint8_t *values, uint64_t word, int64_t live, int64_t width, uint8_t *out) {
    int64_t kept = 0;
    if (width == 1) LC_ZONE_MOVE(1)
    else if (width == 2) LC_ZONE_MOVE(2)
    else if (width == 4) LC_ZONE_MOVE(4)
    else if (width == 8) LC_ZONE_MOVE(8)
    else LC_ZONE_MOVE(16)
    return kept;
}

/* Add n > 0 values of one zone; bit `bit` of validity belongs to the first, NULL: all are valid. */
static inline void lc_zone_fixed(const uint8_t *values, const uint8_t *validity, int64_t bit, int64_t n, int64_t bits,
                                 int64_t order, lc_zone *zone) {
    int64_t width = bits >> 3;
    uint8_t some[64 * 16];
    zone->flags |= validity ? 0 : LC_ZONE_VALID;
    if (!validity) lc_zone_run(values, n, bits, order, zone);
    for (int64_t k = 0; validity && k < n;) {
        int64_t live = n - k < 64 ? n - k : 64, run = 0;
        uint64_t word = lc_zone_bits(validity, bit + k, live);
        zone->flags |= (word ? LC_ZONE_VALID : 0) | (word == lc_low_mask(live) ? 0 : LC_ZONE_NULL);
        if (word != lc_low_mask(live)) {
            int64_t kept = word ? lc_zone_move(values + k * width, word, live, width, some) : 0;
            if (kept) lc_zone_run(some, kept, bits, order, zone);
            k += live;
            continue;
        }
        while (k + run < n && word == lc_low_mask(live)) { /* many valid values are faster together */
            run += live;
            live = n - k - run < 64 ? n - k - run : 64;
            if (live > 0) word = lc_zone_bits(validity, bit + k + run, live);
        }
        lc_zone_run(values + k * width, run, bits, order, zone);
        k += run;
    }
}

LC_INLINE uint64_t lc_zone_reversed(uint64_t word) {
#if defined(__GNUC__) || defined(__clang__)
    return __builtin_bswap64(word);
#else
    word = (word & 0x00FF00FF00FF00FFULL) << 8 | (word >> 8 & 0x00FF00FF00FF00FFULL);
    word = (word & 0x0000FFFF0000FFFFULL) << 16 | (word >> 16 & 0x0000FFFF0000FFFFULL);
    return word << 32 | word >> 32;
#endif
}

/* Key of a text of `size` bytes; `room` bytes exist. There is no branch that depends on the size of common texts. */
LC_INLINE lc_wide_key lc_zone_text_key(const uint8_t *p, int64_t size, int64_t room) {
    static const uint64_t masks[17] = {0,
                                       0xFF,
                                       0xFFFF,
                                       0xFFFFFF,
                                       0xFFFFFFFF,
                                       0xFFFFFFFFFF,
                                       0xFFFFFFFFFFFF,
                                       0xFFFFFFFFFFFFFF,
                                       ~0ULL, ~0ULL, ~0ULL, ~0ULL, ~0ULL, ~0ULL, ~0ULL, ~0ULL, ~0ULL};
    uint8_t last[16] = {0};
    int64_t used = size < 16 ? size : 16;
    if (room < 16) {
        if (used) memcpy(last, p, (size_t)used);
        p = last;
    }
    uint64_t first = lc_load_u64(p) & masks[used], second = lc_load_u64(p + 8) & masks[used < 8 ? 0 : used - 8];
    return (lc_wide_key){lc_zone_reversed(second), lc_zone_reversed(first)};
}

/* Add texts [first, first + n), n > 0, of one zone; bit + i of validity belongs to text i. */
static inline int lc_zone_texts(lc_bytes data, const uint8_t *offsets, int wide, const uint8_t *validity, int64_t bit,
                                int64_t first, int64_t n, lc_zone *zone) {
    lc_wide_key low = {~(uint64_t)0, ~(uint64_t)0}, high = {0, 0};
    uint64_t flags = 0;
    int64_t begin = lc_load_offset(offsets, wide, first);
    for (int64_t i = first; i < first + n; i++) {
        int64_t end = lc_load_offset(offsets, wide, i + 1), size = end - begin, room = data.size - begin;
        const uint8_t *p = data.data + (begin < 0 ? 0 : begin);
        if (begin < 0 || end < begin || end > data.size) return LC_BAD_OFFSETS;
        begin = end;
        if (validity && !lc_get_bit(validity, bit + i)) {
            flags |= LC_ZONE_NULL;
            continue;
        }
        lc_wide_key key = lc_zone_text_key(p, size, room);
        flags |= LC_ZONE_VALID;
        if (lc_wide_less(key, low)) low = key;
        if (lc_wide_less(high, key)) high = key;
    }
    zone->flags |= flags;
    if (flags & LC_ZONE_VALID) lc_zone_widen(zone, low, high);
    return LC_OK;
}

#endif
