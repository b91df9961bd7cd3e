/* Sorting of 64-bit keys by their digits, least significant first, which keeps equal keys in order.
 *
 * Radix sort as in Knuth, The Art of Computer Programming, volume 3, section 5.2.5. Digits have 11 bits, so that their
 * counters stay in the cache. The least key is subtracted first, and digits that all keys share are skipped: keys from a
 * small range take one or two passes. */
#ifndef LANCECODEC_RADIX_SORT_H
#define LANCECODEC_RADIX_SORT_H

#include "chunk.h"

#define LC_RADIX_BITS 11
#define LC_RADIX_SIZE (1 << LC_RADIX_BITS)
#define LC_RADIX_DIGITS 6

typedef struct {
    uint32_t counts[LC_RADIX_DIGITS][LC_RADIX_SIZE];
    uint64_t least, greatest;
} lc_radix;

LC_INLINE uint64_t lc_radix_key(const uint8_t *keys, int64_t i) {
    uint64_t key;
    memcpy(&key, keys + 8 * i, 8);
    return key;
}

/* The least and the greatest key; 1 if the keys are in order already. */
LC_CLONES static int lc_radix_measure(const uint8_t *keys, int64_t n, lc_radix *radix) {
    uint64_t least = ~(uint64_t)0, greatest = 0, before = 0;
    int ordered = 1;
    for (int64_t i = 0; i < n; i++) {
        uint64_t key = lc_radix_key(keys, i);
        ordered &= key >= before;
        least = key < least ? key : least;
        greatest = key > greatest ? key : greatest;
        before = key;
    }
    radix->least = least;
    radix->greatest = greatest;
    return ordered;
}

static int lc_radix_digits(const lc_radix *radix) {
    uint64_t range = radix->greatest - radix->least;
    int digits = 0;
    for (; range; range >>= LC_RADIX_BITS) digits++;
    return digits;
}

static void lc_radix_count(const uint8_t *keys, int64_t n, int digits, lc_radix *radix) {
    memset(radix->counts, 0, sizeof radix->counts);
    for (int64_t i = 0; i < n; i++) {
        uint64_t key = lc_radix_key(keys, i) - radix->least;
        for (int d = 0; d < digits; d++, key >>= LC_RADIX_BITS) radix->counts[d][key & (LC_RADIX_SIZE - 1)]++;
    }
}

/* Replace counts by the place of the first key of each digit; 0 if all keys share the digit. */
static int lc_radix_starts(uint32_t *counts, int64_t n) {
    uint32_t place = 0;
    for (int i = 0; i < LC_RADIX_SIZE; i++) {
        uint32_t count = counts[i];
        if (count == n) return 0;
        counts[i] = place;
        place += count;
    }
    return 1;
}

/* Move keys and places to where their digit belongs. Without places, those of the keys are taken. */
static void lc_radix_move(const uint8_t *keys, const uint32_t *places, int64_t n, uint64_t least, int shift,
                          uint32_t *starts, uint8_t *keys_out, uint32_t *places_out) {
    for (int64_t i = 0; i < n; i++) {
        uint64_t key = lc_radix_key(keys, i);
        uint32_t at = starts[((key - least) >> shift) & (LC_RADIX_SIZE - 1)]++;
        memcpy(keys_out + 8 * (int64_t)at, &key, 8);
        places_out[at] = places ? places[i] : (uint32_t)i;
    }
}

/* Sort n < 2^32 keys; `sorted` gets the keys in order and `places` where each was. Two arrays of the same sizes are
 * scratch. Returns 0 if the keys were in order already: then nothing is written. */
static int lc_radix_sort(const uint8_t *keys, int64_t n, lc_radix *radix, uint8_t *sorted, uint32_t *places,
                         uint8_t *other_keys, uint32_t *other_places) {
    if (lc_radix_measure(keys, n, radix)) return 0;
    int digits = lc_radix_digits(radix), passes = 0, done = 0;
    lc_radix_count(keys, n, digits, radix);
    int used[LC_RADIX_DIGITS];
    for (int d = 0; d < digits; d++) {
        used[d] = lc_radix_starts(radix->counts[d], n);
        passes += used[d];
    }
    const uint8_t *from_keys = keys;
    const uint32_t *from_places = NULL;
    for (int d = 0; d < digits; d++) {
        if (!used[d]) continue;
        int last = ((passes - ++done) & 1) == 0; /* so that the last pass ends in the output */
        uint8_t *to_keys = last ? sorted : other_keys;
        uint32_t *to_places = last ? places : other_places;
        lc_radix_move(from_keys, from_places, n, radix->least, d * LC_RADIX_BITS, radix->counts[d], to_keys, to_places);
        from_keys = to_keys;
        from_places = to_places;
    }
    return 1;
}

#endif
