/* Hash table of keys for joins: distinct keys numbered in order of insertion; any number of threads may look them up.
 *
 * Open addressing with linear probing (Knuth, The Art of Computer Programming, vol. 3, 6.4, algorithm L) in slots of
 * one word, which hold the number of a key and, as in the tagged pointers of HyPer (Leis et al., Morsel-Driven
 * Parallelism, 2014), bits of its hash: most absent keys are recognised without reading a key. The keys are stored
 * separately, back to back. At most half of the slots are in use.
 *
 * Most keys of a large table are not in a small one. A filter of eight bits per slot (Bloom, Space/Time Trade-offs in
 * Hash Coding, 1970, with one hash) fits into caches that are too small for the slots, and the rows that pass it are
 * listed without a branch. */
#ifndef LANCECODEC_KEY_TABLE_H
#define LANCECODEC_KEY_TABLE_H

#include "key_rows.h"

/* A slot: 24 bits of the hash, and 1 + the number of a key; 0 is free. */
#define LC_GROUP_BITS 40
#define LC_MAX_GROUPS (((int64_t)1 << LC_GROUP_BITS) - 2)
#define LC_KEY_FIRST_BITS 10
/* Logarithm of the filter's bits per slot. */
#define LC_KEY_FILTER_BITS 3

typedef struct {
    uint64_t *slots;
    uint64_t *filter;     /* a bit per eighth of a slot: set if a key has such a hash */
    int shift;            /* 64 - logarithm of the number of slots */
    enum lc_key_form form;
    int64_t width;        /* bytes of a key in `keys`; -1: they vary and end at `ends` */
    int64_t count, room;  /* number of keys, and capacity */
    uint8_t *keys;
    int64_t used, size;   /* size of the keys, and capacity */
    int64_t *ends;        /* count + 1 */
    lc_secret secret;
} lc_key_table;

/* Empty slots, and their filter. */
static int lc_key_slots_open(lc_key_table *t, int bits) {
    t->shift = 64 - bits;
    t->slots = (uint64_t *)calloc((size_t)1 << bits, sizeof *t->slots);
    t->filter = (uint64_t *)calloc((size_t)1 << (bits + LC_KEY_FILTER_BITS - 6), sizeof *t->filter);
    return t->slots && t->filter ? LC_OK : LC_NO_MEMORY;
}

static void lc_key_slots_close(lc_key_table *t) {
    free(t->slots);
    free(t->filter);
    t->slots = t->filter = NULL;
}

static int lc_key_table_open(lc_key_table *t, const lc_key_rows *shape, lc_secret secret) {
    memset(t, 0, sizeof *t);
    t->form = shape->form;
    t->width = shape->form == LC_KEY_WORD ? 8 : shape->width;
    t->secret = secret;
    t->secret.b |= 1;
    return lc_key_slots_open(t, LC_KEY_FIRST_BITS);
}

static void lc_key_table_close(lc_key_table *t) {
    lc_key_slots_close(t);
    free(t->keys);
    free(t->ends);
}

/* -- keys --------------------------------------------------------------------------------------------------------- */

/* Make room for one more key of `size` bytes. Memory grows by half, so that few copies are made. */
static int lc_key_reserve(lc_key_table *t, int64_t size) {
    if (t->width < 0 && t->count + 1 >= t->room) {
        int64_t room = t->count + t->count / 2 + 1024;
        int64_t *grown = (int64_t *)realloc(t->ends, (size_t)room * sizeof *grown);
        if (!grown) return LC_NO_MEMORY;
        grown[0] = 0;
        t->ends = grown, t->room = room;
    }
    if (size > t->size - LC_KEY_SLACK - t->used || !t->keys) {
        if (size > INT64_MAX / 4 - t->used) return LC_NO_MEMORY;
        int64_t wanted = t->used + t->used / 2 + size + 4096;
        uint8_t *grown = (uint8_t *)realloc(t->keys, (size_t)wanted);
        if (!grown) return LC_NO_MEMORY;
        t->keys = grown, t->size = wanted;
    }
    return LC_OK;
}

/* Appends a key. */
static int lc_key_enter(lc_key_table *t, const lc_key_block *b, int64_t i) {
    int64_t size = t->form == LC_KEY_WORD ? 8 : b->sizes[i];
    if (t->count >= LC_MAX_GROUPS) return LC_NO_SPACE;
    int problem = lc_key_reserve(t, size);
    if (problem != LC_OK) return problem;
    if (t->form == LC_KEY_WORD) lc_store_u64(t->keys + t->used, b->words[i]);
    else lc_copy_bytes(t->keys + t->used, b->at[i], size);
    t->used += size;
    t->count++;
    if (t->width < 0) t->ends[t->count] = t->used;
    return LC_OK;
}

/* Key `group` as part of a block. */
LC_INLINE void lc_key_stored(const lc_key_table *t, int64_t group, lc_key_block *b, int64_t i) {
    if (t->form == LC_KEY_WORD) {
        b->words[i] = lc_load_u64(t->keys + 8 * group);
    } else {
        int64_t begin = t->width < 0 ? t->ends[group] : t->width * group;
        b->at[i] = t->keys + begin;
        b->sizes[i] = t->width < 0 ? t->ends[group + 1] - begin : t->width;
    }
}

/* Up to 16 bytes are compared as two words, like `lc_string_hash` reads them. */
LC_INLINE int lc_key_equal(const uint8_t *x, int64_t x_readable, const uint8_t *y, int64_t y_readable, int64_t n) {
    uint64_t xl, xh, yl, yh;
    if (n > 16) return lc_equal_long(x, y, n);
    lc_load_pair(x, n, x_readable, &xl, &xh);
    lc_load_pair(y, n, y_readable, &yl, &yh);
    return ((xl ^ yl) | (xh ^ yh)) == 0;
}

LC_INLINE int lc_key_same(const lc_key_table *t, enum lc_key_form form, int64_t group, const lc_key_block *b,
                          int64_t i) {
    if (form == LC_KEY_WORD) return lc_load_u64(t->keys + 8 * group) == b->words[i];
    int64_t begin = form == LC_KEY_STRING ? t->ends[group] : t->width * group, n = b->sizes[i];
    if (form == LC_KEY_STRING && t->ends[group + 1] - begin != n) return 0;
    return lc_key_equal(t->keys + begin, t->size - begin, b->at[i], b->end - b->at[i], n);
}

/* -- slots -------------------------------------------------------------------------------------------------------- */

/* Return the number of the key; or -1, and the free slot for it. */
LC_INLINE int64_t lc_key_search(const lc_key_table *t, enum lc_key_form form, const lc_key_block *b, int64_t i,
                                uint64_t hash, uint64_t *free_slot) {
    uint64_t last = ((uint64_t)1 << (64 - t->shift)) - 1, at = hash >> t->shift, tag = hash << LC_GROUP_BITS;
    for (;; at = (at + 1) & last) {
        uint64_t slot = t->slots[at], number = slot ^ tag;
        if (slot == 0) break;
        if (number >> LC_GROUP_BITS == 0 && lc_key_same(t, form, (int64_t)number - 1, b, i)) return (int64_t)number - 1;
    }
    *free_slot = at;
    return -1;
}

LC_INLINE uint64_t lc_key_filter_bit(const lc_key_table *t, uint64_t hash) {
    return hash >> (t->shift - LC_KEY_FILTER_BITS);
}

/* Store key `number` (from 1 on) in a free slot. */
LC_INLINE void lc_key_occupy(lc_key_table *t, uint64_t slot, uint64_t hash, int64_t number) {
    uint64_t bit = lc_key_filter_bit(t, hash);
    t->slots[slot] = hash << LC_GROUP_BITS | (uint64_t)number;
    t->filter[bit >> 6] |= (uint64_t)1 << (bit & 63);
}

/* Hash a block, and prefetch the slots. */
LC_INLINE void lc_key_hashes(const lc_key_table *t, enum lc_key_form form, const lc_key_block *b, uint64_t *hashes) {
    for (int64_t i = 0; i < b->n; i++) {
        hashes[i] = lc_key_hash(t->secret, form, b, i);
        LC_PREFETCH(t->slots + (hashes[i] >> t->shift), 0);
    }
}

/* Enlarge the table and insert all keys again. The old slots are freed first, so a table without memory has no
 * slots. */
static int lc_key_grow(lc_key_table *t, int bits) {
    lc_key_block b;
    uint64_t hashes[LC_KEY_BLOCK];
    lc_key_slots_close(t);
    int problem = lc_key_slots_open(t, bits);
    if (problem != LC_OK) return problem;
    uint64_t last = ((uint64_t)1 << bits) - 1;
    b.end = t->keys + t->size;
    for (int64_t start = 0; start < t->count; start += b.n) {
        b.n = t->count - start < LC_KEY_BLOCK ? t->count - start : LC_KEY_BLOCK;
        for (int64_t i = 0; i < b.n; i++) lc_key_stored(t, start + i, &b, i);
        lc_key_hashes(t, t->form, &b, hashes);
        for (int64_t i = 0; i < b.n; i++) {
            uint64_t at = hashes[i] >> t->shift;
            while (t->slots[at]) at = (at + 1) & last;
            lc_key_occupy(t, at, hashes[i], start + i + 1);
        }
    }
    return LC_OK;
}

/* -- rows --------------------------------------------------------------------------------------------------------- */

LC_INLINE int lc_key_add_block(lc_key_table *t, enum lc_key_form form, const lc_key_block *b, int64_t *groups) {
    uint64_t hashes[LC_KEY_BLOCK], slot = 0;
    lc_key_hashes(t, form, b, hashes);
    for (int64_t i = 0; i < b->n; i++) {
        groups[i] = -1;
        if (!b->valid[i]) continue;
        int64_t group = lc_key_search(t, form, b, i, hashes[i], &slot);
        if (group < 0) {
            int problem = lc_key_enter(t, b, i), bits = 64 - t->shift;
            if (problem != LC_OK) return problem;
            group = t->count - 1;
            lc_key_occupy(t, slot, hashes[i], t->count);
            /* small tables grow faster */
            if ((uint64_t)t->count * 2 > (uint64_t)1 << bits) problem = lc_key_grow(t, bits + (bits < 16 ? 2 : 1));
            if (problem != LC_OK) return problem;
        }
        groups[i] = group;
    }
    return LC_OK;
}

/* List the rows of a block that pass the filter, and their hashes, and prefetch the slots. */
LC_INLINE int64_t lc_key_candidates(const lc_key_table *t, enum lc_key_form form, const lc_key_block *b,
                                    uint64_t *hashes, int64_t *rows) {
    uint64_t all[LC_KEY_BLOCK];
    int64_t count = 0;
    for (int64_t i = 0; i < b->n; i++) {
        all[i] = lc_key_hash(t->secret, form, b, i);
        LC_PREFETCH(t->filter + (lc_key_filter_bit(t, all[i]) >> 6), 0);
    }
    for (int64_t i = 0; i < b->n; i++) {
        uint64_t bit = lc_key_filter_bit(t, all[i]);
        rows[count] = i, hashes[count] = all[i];
        count += (int64_t)(t->filter[bit >> 6] >> (bit & 63)) & b->valid[i];
    }
    for (int64_t k = 0; k < count; k++) LC_PREFETCH(t->slots + (hashes[k] >> t->shift), 0);
    return count;
}

/* Append the rows of a block whose keys are in the table; its first row is `start`. Returns the new number of rows. */
LC_INLINE int64_t lc_key_match_block(const lc_key_table *t, enum lc_key_form form, const lc_key_block *b, int64_t start,
                                     int64_t found, int64_t *places, int64_t *groups) {
    uint64_t hashes[LC_KEY_BLOCK], slot;
    int64_t rows[LC_KEY_BLOCK], count = lc_key_candidates(t, form, b, hashes, rows);
    for (int64_t k = 0; k < count; k++) {
        int64_t group = lc_key_search(t, form, b, rows[k], hashes[k], &slot);
        if (group < 0) continue;
        places[found] = start + rows[k], groups[found] = group;
        found++;
    }
    return found;
}

/* Number the keys of all rows and add the new ones; -1 for rows without a key. After a problem the table must be
 * closed. */
static int lc_key_table_add(lc_key_table *t, const lc_key_rows *r, int64_t *groups) {
    lc_key_block b;
    int problem = lc_key_block_open(&b, r);
    for (int64_t start = 0; start < r->n && problem == LC_OK; start += b.n) {
        problem = lc_key_block_load(&b, r, start);
        if (problem != LC_OK) break;
        if (t->form == LC_KEY_WORD) problem = lc_key_add_block(t, LC_KEY_WORD, &b, groups + start);
        else if (t->form == LC_KEY_FIXED) problem = lc_key_add_block(t, LC_KEY_FIXED, &b, groups + start);
        else problem = lc_key_add_block(t, LC_KEY_STRING, &b, groups + start);
    }
    lc_key_block_close(&b);
    return problem;
}

/* Find the rows whose keys are in the table, ascending, and the numbers of these keys. */
static int lc_key_table_find(const lc_key_table *t, const lc_key_rows *r, int64_t *places, int64_t *groups,
                             int64_t *found) {
    lc_key_block b;
    int problem = lc_key_block_open(&b, r);
    int64_t count = 0;
    for (int64_t start = 0; start < r->n && problem == LC_OK; start += b.n) {
        problem = lc_key_block_load(&b, r, start);
        if (problem != LC_OK) break;
        if (t->form == LC_KEY_WORD) count = lc_key_match_block(t, LC_KEY_WORD, &b, start, count, places, groups);
        else if (t->form == LC_KEY_FIXED) count = lc_key_match_block(t, LC_KEY_FIXED, &b, start, count, places, groups);
        else count = lc_key_match_block(t, LC_KEY_STRING, &b, start, count, places, groups);
    }
    lc_key_block_close(&b);
    *found = count;
    return problem;
}

/* -- groups ------------------------------------------------------------------------------------------------------- */

/* Compute the first row of each group (groups of n rows appear in the order of their numbers), and its number of
 * rows. */
static int lc_groups_measure(const int64_t *groups, int64_t n, int64_t count, int64_t *first, int64_t *sizes) {
    int64_t next = 0;
    if (count) memset(sizes, 0, (size_t)count * sizeof *sizes);
    for (int64_t i = 0; i < n; i++) {
        int64_t group = groups[i];
        if (group < -1 || group > next || group >= count) return LC_BAD_INDEX;
        if (group < 0) continue;
        if (group == next) first[next++] = i;
        sizes[group]++;
    }
    return next == count ? LC_OK : LC_BAD_COUNT;
}

#endif
