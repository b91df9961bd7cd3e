/* Set membership as a bitmap: dictionary indices of marked entries, integers, strings. */
#ifndef LANCECODEC_MEMBERSHIP_H
#define LANCECODEC_MEMBERSHIP_H

#include "bits.h"
#include "chunk.h"
#include "hash.h"

/* Up to this range of integers a bitmap is faster than a hash table. */
#define LC_DENSE_RANGE ((int64_t)1 << 23)

LC_INLINE uint64_t lc_load_width(const uint8_t *p, int64_t width, int64_t i) {
    return width == 1   ? p[i]
           : width == 2 ? lc_load_u16(p + 2 * i)
           : width == 4 ? lc_load_u32(p + 4 * i)
                        : lc_load_u64(p + 8 * i);
}

/* The same, sign-extended. */
LC_INLINE uint64_t lc_load_signed(const uint8_t *p, int64_t width, int64_t i) {
    uint64_t v = lc_load_width(p, width, i);
    return width == 8 ? v : (v ^ (1ULL << (8 * width - 1))) - (1ULL << (8 * width - 1));
}

/* -- dictionary entries ------------------------------------------------------------------------------------------- */

LC_INLINE void lc_marked_each(const uint8_t *codes, int64_t width, int64_t n, const uint8_t *marks, uint64_t entries,
                              uint8_t *out) {
    for (int64_t i = 0; i < n; i += 64) {
        uint8_t flags[64] = {0};
        int64_t live = n - i < 64 ? n - i : 64;
        for (int64_t k = 0; k < live; k++) {
            uint64_t code = lc_load_width(codes, width, i + k);
            LC_OPAQUE(code);
            flags[k] = code < entries ? marks[code] : 0;
        }
        uint64_t mask = lc_mask64(flags);
        memcpy(out + i / 8, &mask, (size_t)((live + 7) / 8));
    }
}

/* Set the bits of the codes whose entry has a mark (a non-zero byte); codes without an entry are not marked. */
static inline void lc_marked(const uint8_t *codes, int64_t width, int64_t n, const uint8_t *marks, int64_t entries,
                             uint8_t *out) {
    uint8_t all[256] = {0};
    if (width == 1) {
        if (entries) memcpy(all, marks, (size_t)(entries < 256 ? entries : 256));
        lc_marked_each(codes, 1, n, all, 256, out);
    } else if (width == 2) {
        lc_marked_each(codes, 2, n, marks, (uint64_t)entries, out);
    } else if (width == 4) {
        lc_marked_each(codes, 4, n, marks, (uint64_t)entries, out);
    } else {
        lc_marked_each(codes, 8, n, marks, (uint64_t)entries, out);
    }
}

LC_INLINE void lc_marked_known_each(const uint8_t *codes, int64_t width, int64_t n, const uint8_t *marks, uint8_t *out) {
    for (int64_t i = 0; i < n; i += 64) {
        uint8_t flags[64] = {0};
        int64_t live = n - i < 64 ? n - i : 64;
        if (live == 64) {
            for (int64_t k = 0; k < 64; k++) flags[k] = marks[lc_load_width(codes, width, i + k)];
        } else {
            for (int64_t k = 0; k < live; k++) flags[k] = marks[lc_load_width(codes, width, i + k)];
        }
        uint64_t mask = lc_mask64(flags);
        memcpy(out + i / 8, &mask, (size_t)((live + 7) / 8));
    }
}

/* The same if the caller has checked that all codes have entries, and nobody else can change them. Marks are 0 or 1. */
static inline void lc_marked_known(const uint8_t *codes, int64_t width, int64_t n, const uint8_t *marks, uint8_t *out) {
    if (width == 1) lc_marked_known_each(codes, 1, n, marks, out);
    else if (width == 2) lc_marked_known_each(codes, 2, n, marks, out);
    else if (width == 4) lc_marked_known_each(codes, 4, n, marks, out);
    else lc_marked_known_each(codes, 8, n, marks, out);
}

/* -- integers ----------------------------------------------------------------------------------------------------- */

/* A bitmap of `range` integers from `base` on, or (range = 0) a hash table of 2^(64 - shift) slots; empty slots hold
 * `none`. With a random secret, nobody can prepare integers that collide. */
typedef struct {
    uint64_t base, range;
    uint8_t *bits;
    uint64_t *slots;
    int shift;
    uint64_t none;
    lc_secret secret;
} lc_integer_set;

LC_INLINE uint64_t lc_integer_slot(const lc_integer_set *set, uint64_t v) {
    return lc_hash_word(set->secret, v) >> set->shift;
}

/* Smallest and largest of n signed integers, both 0 if there are none. */
static inline void lc_integer_bounds(const uint8_t *values, int64_t width, int64_t n, int64_t *low, int64_t *high) {
    *low = *high = n ? (int64_t)lc_load_signed(values, width, 0) : 0;
    for (int64_t i = 1; i < n; i++) {
        int64_t v = (int64_t)lc_load_signed(values, width, i);
        if (v < *low) *low = v;
        if (v > *high) *high = v;
    }
}

/* Smallest number that is not among n integers; `seen` has n + 1 zero bytes. */
static inline uint64_t lc_integer_missing(const uint8_t *values, int64_t width, int64_t n, uint8_t *seen) {
    for (int64_t i = 0; i < n; i++) {
        uint64_t v = lc_load_signed(values, width, i);
        LC_OPAQUE(v);
        if (v <= (uint64_t)n) seen[v] = 1;
    }
    uint64_t missing = 0;
    while (seen[missing]) missing++;
    return missing;
}

/* Add a member to a bitmap whose range includes it, or to a table with enough room, whose slots were set to `none`. */
static inline void lc_integer_add(lc_integer_set *set, uint64_t v) {
    if (set->range) {
        uint64_t bit = v - set->base;
        LC_OPAQUE(bit);
        if (bit < set->range) set->bits[bit >> 3] |= (uint8_t)(1 << (bit & 7)); /* it may have changed since */
        return;
    }
    uint64_t last = ((uint64_t)1 << (64 - set->shift)) - 1, slot = lc_integer_slot(set, v);
    while (set->slots[slot] != set->none && set->slots[slot] != v) slot = (slot + 1) & last;
    set->slots[slot] = v;
}

LC_INLINE uint8_t lc_integer_dense(const lc_integer_set *set, uint64_t v) {
    uint64_t bit = v - set->base;
    LC_OPAQUE(bit);
    return bit < set->range ? (set->bits[bit >> 3] >> (bit & 7)) & 1 : 0;
}

LC_INLINE uint8_t lc_integer_hashed(const lc_integer_set *set, uint64_t v) {
    uint64_t last = ((uint64_t)1 << (64 - set->shift)) - 1, slot = lc_integer_slot(set, v);
    while (set->slots[slot] != set->none) {
        if (set->slots[slot] == v) return 1;
        slot = (slot + 1) & last;
    }
    return 0;
}

LC_INLINE void lc_integers_each(const lc_integer_set *set, const uint8_t *values, int64_t width, int64_t n, int dense,
                                uint8_t *out) {
    for (int64_t i = 0; i < n; i += 64) {
        uint8_t flags[64] = {0};
        int64_t live = n - i < 64 ? n - i : 64;
        for (int64_t k = 0; k < live; k++) {
            uint64_t v = lc_load_signed(values, width, i + k);
            flags[k] = dense ? lc_integer_dense(set, v) : lc_integer_hashed(set, v);
        }
        uint64_t mask = lc_mask64(flags);
        memcpy(out + i / 8, &mask, (size_t)((live + 7) / 8));
    }
}

static inline void lc_integers_add(lc_integer_set *set, const uint8_t *values, int64_t width, int64_t n) {
    for (int64_t i = 0; i < n; i++) lc_integer_add(set, lc_load_signed(values, width, i));
}

/* Set the bits of the values (of `width` bytes) that are members. */
static inline void lc_integers_among(const lc_integer_set *set, const uint8_t *values, int64_t width, int64_t n,
                                     uint8_t *out) {
    int dense = set->range != 0;
    if (width == 1) lc_integers_each(set, values, 1, n, dense, out);
    else if (width == 2) lc_integers_each(set, values, 2, n, dense, out);
    else if (width == 4 && dense) lc_integers_each(set, values, 4, n, 1, out);
    else if (width == 4) lc_integers_each(set, values, 4, n, 0, out);
    else if (dense) lc_integers_each(set, values, 8, n, 1, out);
    else lc_integers_each(set, values, 8, n, 0, out);
}

/* -- strings ------------------------------------------------------------------------------------------------------ */

/* Members in a hash table of 2^(64 - shift) slots: 1 + their number, 0 for an empty slot. `lengths` has a bit for each
 * length that occurs; all from 255 on share one. `hashes` are those of the members. */
typedef struct {
    const uint8_t *data, *offsets;
    int wide;
    int64_t size, count;
    uint32_t *slots;
    uint64_t *hashes;
    int shift;
    uint64_t lengths[4];
    lc_secret secret;
} lc_string_set;

LC_INLINE uint64_t lc_string_hash(lc_secret secret, const uint8_t *p, int64_t n, int64_t readable) {
    if (n > 16) return lc_hash_bytes(secret, p, n);
    uint64_t low, high;
    lc_load_pair(p, n, readable, &low, &high);
    return lc_hash_pair(secret, low ^ (uint64_t)n, high);
}

LC_INLINE int lc_string_length_known(const lc_string_set *set, int64_t n) {
    int64_t bit = n < 255 ? n : 255;
    return (set->lengths[bit >> 6] >> (bit & 63)) & 1;
}

/* Return the slot of a string, or the free slot for it. */
LC_INLINE uint64_t lc_string_slot(const lc_string_set *set, const uint8_t *p, int64_t n, uint64_t hash) {
    uint64_t last = ((uint64_t)1 << (64 - set->shift)) - 1, slot = hash >> set->shift;
    for (;; slot = (slot + 1) & last) {
        uint32_t number = set->slots[slot];
        if (number == 0) return slot;
        if (set->hashes[number - 1] != hash) continue;
        int64_t begin = lc_load_offset(set->offsets, set->wide, number - 1);
        int64_t end = lc_load_offset(set->offsets, set->wide, number);
        if (end - begin == n && (n == 0 || !memcmp(set->data + begin, p, (size_t)n))) return slot;
    }
}

/* Fill the slots, which are zero and at least twice as many as members. The set owns the members, so they do not
 * change. */
static inline int lc_string_set_fill(lc_string_set *set) {
    for (int64_t i = 0; i < set->count; i++) {
        int64_t begin = lc_load_offset(set->offsets, set->wide, i), end = lc_load_offset(set->offsets, set->wide, i + 1);
        if (begin < 0 || end < begin || end > set->size) return LC_BAD_OFFSETS;
        int64_t n = end - begin, bit = n < 255 ? n : 255;
        uint64_t hash = lc_string_hash(set->secret, set->data + begin, n, set->size - begin);
        set->lengths[bit >> 6] |= (uint64_t)1 << (bit & 63);
        set->hashes[i] = hash;
        uint64_t slot = lc_string_slot(set, set->data + begin, n, hash);
        if (set->slots[slot] == 0) set->slots[slot] = (uint32_t)(i + 1);
    }
    return LC_OK;
}

LC_INLINE int lc_strings_among_at(const lc_string_set *set, lc_bytes data, const uint8_t *offsets, int wide, int64_t n,
                                  uint8_t *out) {
    int64_t begin = lc_load_offset(offsets, wide, 0);
    if (begin < 0) return LC_BAD_OFFSETS;
    unsigned bits = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t end = lc_load_offset(offsets, wide, i + 1), length = end - begin;
        if (end < begin || end > data.size) return LC_BAD_OFFSETS;
        unsigned hit = 0;
        if (lc_string_length_known(set, length)) {
            uint64_t hash = lc_string_hash(set->secret, data.data + begin, length, data.size - begin);
            hit = set->slots[lc_string_slot(set, data.data + begin, length, hash)] != 0;
        }
        bits |= hit << (i & 7);
        if ((i & 7) == 7 || i + 1 == n) {
            out[i >> 3] = (uint8_t)bits;
            bits = 0;
        }
        begin = end;
    }
    return LC_OK;
}

/* Set the bits of the strings that are members. */
static inline int lc_strings_among(const lc_string_set *set, lc_bytes data, const uint8_t *offsets, int wide, int64_t n,
                                   uint8_t *out) {
    if (n == 0) return LC_OK;
    return wide ? lc_strings_among_at(set, data, offsets, 1, n, out) : lc_strings_among_at(set, data, offsets, 0, n, out);
}

#endif
