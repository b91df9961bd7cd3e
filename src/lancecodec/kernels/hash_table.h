/* Hash tables for dictionary building: open addressing in buckets of two slots, which are both read before any branch.
 * With random content, single slots would cost a mispredicted branch for each value that is stored in a neighbouring
 * slot. */
#ifndef LANCECODEC_HASH_TABLE_H
#define LANCECODEC_HASH_TABLE_H

#include <stdlib.h>

#include "chunk.h"
#include "hash.h"

#define LC_TABLE_FIRST_SLOTS 1024
/* Up to this size a quarter of the slots is used, then a half, because a larger table would exceed the cache. */
#define LC_TABLE_SPARSE_SLOTS 65536
/* Codes have 32 bits in the slots. */
#define LC_DICT_MAX_ENTRIES ((int64_t)1 << 30)

/* Not an error but a result: more distinct values, or more bytes of them, than the limits allow. */
enum { LC_DICT_TOO_MANY = -1 };

/* LC_RARE keeps rarely used code, and its registers, out of a loop. LC_OPAQUE is used here because compilers tend to
 * turn a number that is 0 or 1 into a branch. */
#if defined(__GNUC__) || defined(__clang__)
#define LC_RARE static __attribute__((noinline, cold))
#else
#define LC_RARE static
#endif

/* A value of up to 8 bytes; mark 0 = free. */
typedef struct {
    uint64_t key;
    uint32_t mark, code;
} lc_word;

/* A value of up to 16 bytes, or the hash of a longer one at `begin`; mark = length + 1, at most 2^32 - 1. */
typedef struct {
    uint64_t low, high;
    int64_t begin;
    uint32_t mark, code;
} lc_pair;

typedef struct {
    lc_word *words;
    lc_pair *pairs;
    uint32_t *direct;
    uint64_t mask;      /* number of slots - 1 */
    const uint8_t *data;
    int64_t *positions; /* index of the first value of each entry, memory of the caller; or NULL */
    int64_t count, limit, bytes, max_bytes;
    lc_secret secret;
    int outcome;
} lc_dict_table;

static void lc_dict_open(lc_dict_table *d, int64_t *positions, int64_t limit, int64_t max_bytes, lc_secret secret) {
    memset(d, 0, sizeof *d);
    d->positions = positions;
    d->limit = limit < LC_DICT_MAX_ENTRIES ? limit : LC_DICT_MAX_ENTRIES;
    d->max_bytes = max_bytes;
    d->secret = secret;
    d->secret.b |= 1;
    d->mask = LC_TABLE_FIRST_SLOTS - 1;
}

static void lc_dict_close(lc_dict_table *d) {
    free(d->words);
    free(d->pairs);
    free(d->direct);
}

/* Count a new entry and return its code, which is undefined once the outcome is set. */
static uint32_t lc_dict_enter(lc_dict_table *d, int64_t position, int64_t length) {
    if (d->outcome) return 0;
    if (d->count >= d->limit || length > d->max_bytes - d->bytes) {
        d->outcome = LC_DICT_TOO_MANY;
        return 0;
    }
    if (d->positions) d->positions[d->count] = position;
    d->bytes += length;
    return (uint32_t)d->count++;
}

/* Number of slots that the table should have for its `count` entries. */
LC_INLINE uint64_t lc_table_wanted(const lc_dict_table *d) {
    uint64_t slots = d->mask + 1, used = (uint64_t)d->count;
    if (slots < LC_TABLE_SPARSE_SLOTS) return used * 4 > slots ? slots * 4 : slots;
    return used * 2 > slots ? slots * 2 : slots;
}

/* First slot of the bucket of v. */
LC_INLINE uint64_t lc_word_home(lc_secret secret, uint64_t mask, const lc_word *v) {
    return lc_hash_word(secret, v->key) & (mask - 1);
}

LC_INLINE int lc_word_same(const lc_dict_table *d, const lc_word *slot, const lc_word *v, int64_t length) {
    (void)d, (void)length;
    return ((slot->key ^ v->key) | (slot->mark ^ v->mark)) == 0;
}

LC_INLINE uint64_t lc_pair_home(lc_secret secret, uint64_t mask, const lc_pair *v) {
    return lc_hash_pair(secret, v->low, v->high) & (mask - 1);
}

LC_INLINE int lc_pair_alike(const lc_pair *slot, const lc_pair *v) {
    return ((slot->low ^ v->low) | (slot->high ^ v->high) | (slot->mark ^ v->mark)) == 0;
}

LC_INLINE int lc_pair_same(const lc_dict_table *d, const lc_pair *slot, const lc_pair *v, int64_t length) {
    return lc_pair_alike(slot, v) &&
           (length <= 16 || lc_equal_long(d->data + slot->begin, d->data + v->begin, length));
}

/* lc_KIND_search: return the code of v, searching buckets from `at` on, or of a new entry for it. */
#define LC_DEFINE_TABLE(KIND, SLOTS)                                                                                   \
    static int lc_##KIND##_grow(lc_dict_table *d, uint64_t count) {                                                    \
        lc_##KIND *old = d->SLOTS, *fresh = (lc_##KIND *)calloc((size_t)count, sizeof *fresh);                         \
        uint64_t slots = d->mask + 1;                                                                                  \
        if (!fresh) return LC_NO_MEMORY;                                                                               \
        d->mask = count - 1;                                                                                           \
        for (uint64_t i = 0; i < slots; i++) {                                                                         \
            if (!old[i].mark) continue;                                                                                \
            uint64_t at = lc_##KIND##_home(d->secret, d->mask, old + i);                                               \
            while (fresh[at].mark) at = (at + 1) & d->mask;                                                            \
            fresh[at] = old[i];                                                                                        \
        }                                                                                                              \
        free(old);                                                                                                     \
        d->SLOTS = fresh;                                                                                              \
        return LC_OK;                                                                                                  \
    }                                                                                                                  \
    LC_RARE uint32_t lc_##KIND##_search(lc_dict_table *d, uint64_t at, lc_##KIND v, int64_t length,                    \
                                        int64_t position) {                                                            \
        for (; d->SLOTS[at].mark; at = (at + 1) & d->mask)                                                             \
            if (lc_##KIND##_same(d, d->SLOTS + at, &v, length)) return d->SLOTS[at].code;                              \
        v.code = lc_dict_enter(d, position, length);                                                                   \
        if (d->outcome) return 0;                                                                                      \
        d->SLOTS[at] = v;                                                                                              \
        uint64_t wanted = lc_table_wanted(d);                                                                          \
        if (wanted > d->mask + 1) d->outcome = lc_##KIND##_grow(d, wanted);                                            \
        return v.code;                                                                                                 \
    }

LC_DEFINE_TABLE(word, words)
LC_DEFINE_TABLE(pair, pairs)

#endif
