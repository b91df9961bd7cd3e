/* Dictionary building: each value gets the number of the first equal value, in order of first appearance.
 *
 * Values of 1 and 2 bytes index a table. Others are looked up in a hash table (hash_table.h): as a word of 8 bytes or a
 * pair of words if they fit, else by their hash, and then their bytes are compared with those of the entry. Values are
 * processed a block at a time: first all keys, a loop without data-dependent branches, then all searches. A null uses
 * the key of the first valid value, which is entry 0, so that nulls do not need branches either. */
#ifndef LANCECODEC_DICTIONARY_H
#define LANCECODEC_DICTIONARY_H

#include "hash_table.h"

#define LC_DICT_BLOCK 512

/* Values of one width, or of any length between offsets. */
typedef struct {
    const uint8_t *data;
    int64_t size;
    int64_t width; /* 0: variable */
    const uint8_t *offsets;
    int wide;
    const uint8_t *validity; /* NULL: no nulls */
    int64_t bit;
    int64_t first_valid; /* -1: all are null */
    int64_t n;
} lc_dict_values;

/* Codes of n values of 1 or 2 bytes; d->direct[v] is the code of v plus 1. */
static void lc_dict_find_direct(lc_dict_table *d, const uint64_t *LC_RESTRICT keys, int64_t n, int64_t width,
                                int64_t position, uint32_t *LC_RESTRICT codes) {
    for (int64_t i = 0; i < n; i++) {
        uint32_t code = d->direct[keys[i]];
        if (!code) {
            code = lc_dict_enter(d, position + i, width) + 1;
            if (d->outcome) return;
            d->direct[keys[i]] = code;
        }
        codes[i] = code - 1;
    }
}

/* Codes of n words of `width` bytes, the first of which is value `position`. */
static void lc_dict_find_words(lc_dict_table *d, const uint64_t *LC_RESTRICT keys, int64_t n, int64_t width,
                               int64_t position, uint32_t *LC_RESTRICT codes) {
    const lc_word *table = d->words;
    lc_secret secret = d->secret;
    uint64_t mask = d->mask;
    for (int64_t i = 0; i < n; i++) {
        lc_word want = {keys[i], 1, 0};
        uint64_t at = lc_word_home(secret, mask, &want);
        uint64_t slot = at + (uint64_t)lc_word_same(d, table + at + 1, &want, 0);
        LC_OPAQUE(slot);
        codes[i] = table[slot].code;
        if (lc_word_same(d, table + slot, &want, 0)) continue;
        codes[i] = lc_word_search(d, at, want, width, position + i);
        table = d->words, mask = d->mask;
    }
}

/* The same for byte strings; those of more than 16 bytes are compared. */
static void lc_dict_find_pairs(lc_dict_table *d, const lc_pair *LC_RESTRICT keys, const int64_t *LC_RESTRICT lengths,
                               int64_t n, int64_t position, uint32_t *LC_RESTRICT codes) {
    const lc_pair *table = d->pairs;
    const uint8_t *data = d->data;
    lc_secret secret = d->secret;
    uint64_t mask = d->mask;
    for (int64_t i = 0; i < n; i++) {
        lc_pair want = keys[i];
        uint64_t at = lc_pair_home(secret, mask, &want);
        uint64_t slot = at + (uint64_t)lc_pair_alike(table + at + 1, &want);
        LC_OPAQUE(slot);
        codes[i] = table[slot].code;
        if (lc_pair_alike(table + slot, &want) &&
            (want.mark <= 17 || lc_equal_long(data + table[slot].begin, data + want.begin, lengths[i])))
            continue;
        codes[i] = lc_pair_search(d, at, want, lengths[i], position + i);
        table = d->pairs, mask = d->mask;
    }
}

#define LC_KEYS_CASE(W, NAME)                                                          \
    case W:                                                                            \
        for (int64_t i = 0; i < n; i++) keys[i] = lc_load_##NAME(values + i * W);      \
        break;

LC_CLONES static void lc_dict_word_keys(const uint8_t *LC_RESTRICT values, int64_t width, int64_t n, int64_t readable,
                                        uint64_t *LC_RESTRICT keys) {
    switch (width) {
        LC_KEYS_CASE(1, u8)
        LC_KEYS_CASE(2, u16)
        LC_KEYS_CASE(4, u32)
        LC_KEYS_CASE(8, u64)
        default:
            for (int64_t i = 0; i < n; i++) keys[i] = lc_load_short(values + i * width, width, readable - i * width);
    }
}

/* Give nulls the key of the first valid value. */
LC_CLONES static void lc_dict_null_keys(const lc_dict_values *v, int64_t first, int64_t n, uint64_t instead,
                                        uint64_t *LC_RESTRICT keys) {
    for (int64_t i = 0; i < n; i++) {
        uint64_t keep = 0 - (uint64_t)lc_get_bit(v->validity, v->bit + first + i);
        keys[i] = (keys[i] & keep) | (instead & ~keep);
    }
}

/* Return begin and length of value i; LC_BAD_OFFSETS unless it is inside the data. */
LC_INLINE int lc_dict_place(const lc_dict_values *v, int64_t i, int64_t *begin, int64_t *length) {
    if (v->width) {
        *begin = i * v->width, *length = v->width;
        return LC_OK;
    }
    int64_t end = lc_load_offset(v->offsets, v->wide, i + 1);
    *begin = lc_load_offset(v->offsets, v->wide, i);
    if (*begin < 0 || end < *begin || end > v->size) return LC_BAD_OFFSETS;
    *length = end - *begin;
    return LC_OK;
}

LC_INLINE lc_pair lc_dict_pair(const lc_dict_table *d, const lc_dict_values *v, int64_t begin, int64_t length) {
    lc_pair key;
    if (length <= 16) {
        lc_load_pair(v->data + begin, length, v->size - begin, &key.low, &key.high);
    } else {
        key.low = lc_hash_bytes(d->secret, v->data + begin, length);
        key.high = 0;
    }
    key.mark = length >= UINT32_MAX ? UINT32_MAX : (uint32_t)length + 1;
    key.begin = begin;
    key.code = 0;
    return key;
}

/* Values that are not words: positions, lengths and keys. */
static int lc_dict_pairs(const lc_dict_table *d, const lc_dict_values *v, int64_t first, int64_t n, lc_pair *keys,
                         int64_t *lengths) {
    for (int64_t i = 0; i < n; i++) {
        int64_t begin, from = first + i;
        if (lc_dict_place(v, from, &begin, lengths + i)) return LC_BAD_OFFSETS;
        if (v->validity && !lc_get_bit(v->validity, v->bit + from) &&
            lc_dict_place(v, v->first_valid, &begin, lengths + i))
            return LC_BAD_OFFSETS;
        keys[i] = lc_dict_pair(d, v, begin, lengths[i]);
    }
    return LC_OK;
}

/* The same for values of 16 bytes without nulls. */
static void lc_dict_pairs16(const uint8_t *LC_RESTRICT data, int64_t first, int64_t n, lc_pair *LC_RESTRICT keys,
                            int64_t *LC_RESTRICT lengths) {
    for (int64_t i = 0; i < n; i++) {
        int64_t begin = (first + i) * 16;
        lc_pair key = {lc_load_u64(data + begin), lc_load_u64(data + begin + 8), begin, 17, 0};
        keys[i] = key;
        lengths[i] = 16;
    }
}

static int lc_dict_pairs_block(lc_dict_table *d, const lc_dict_values *v, int64_t first, int64_t n, uint32_t *codes) {
    lc_pair keys[LC_DICT_BLOCK];
    int64_t lengths[LC_DICT_BLOCK];
    if (v->width == 16 && !v->validity) lc_dict_pairs16(v->data, first, n, keys, lengths);
    else if (lc_dict_pairs(d, v, first, n, keys, lengths)) return LC_BAD_OFFSETS;
    lc_dict_find_pairs(d, keys, lengths, n, first, codes);
    return d->outcome;
}

static int lc_dict_words_block(lc_dict_table *d, const lc_dict_values *v, int64_t first, int64_t n, uint32_t *codes) {
    uint64_t keys[LC_DICT_BLOCK];
    lc_dict_word_keys(v->data + first * v->width, v->width, n, v->size - first * v->width, keys);
    if (v->validity) {
        const uint8_t *valid = v->data + v->first_valid * v->width;
        uint64_t instead = lc_load_short(valid, v->width, v->size - v->first_valid * v->width);
        lc_dict_null_keys(v, first, n, instead, keys);
    }
    if (v->width <= 2) lc_dict_find_direct(d, keys, n, v->width, first, codes);
    else lc_dict_find_words(d, keys, n, v->width, first, codes);
    return d->outcome;
}

LC_CLONES static void lc_dict_store_codes(const uint32_t *LC_RESTRICT codes, int64_t n, int64_t code_width,
                                          uint8_t *LC_RESTRICT out) {
    switch (code_width) {
        case 1: for (int64_t i = 0; i < n; i++) out[i] = (uint8_t)codes[i]; break;
        case 2: for (int64_t i = 0; i < n; i++) lc_store_u16(out + 2 * i, (uint16_t)codes[i]); break;
        case 4: memcpy(out, codes, (size_t)n * 4); break;
        default: for (int64_t i = 0; i < n; i++) lc_store_u64(out + 8 * i, codes[i]);
    }
}

/* Add values [first, stop). `codes` (may be NULL) has room for stop - first. Entry 0 must exist before any null. */
static int lc_dict_add(lc_dict_table *d, const lc_dict_values *v, int64_t first, int64_t stop, int64_t code_width,
                       uint8_t *codes) {
    uint32_t block[LC_DICT_BLOCK];
    for (int64_t at = first; at < stop; at += LC_DICT_BLOCK) {
        int64_t n = stop - at < LC_DICT_BLOCK ? stop - at : LC_DICT_BLOCK;
        int outcome = v->width && v->width <= 8 ? lc_dict_words_block(d, v, at, n, block)
                                                : lc_dict_pairs_block(d, v, at, n, block);
        if (outcome) return outcome;
        if (codes) lc_dict_store_codes(block, n, code_width, codes + (at - first) * code_width);
    }
    return LC_OK;
}

/* First of n set bits from `bit` on, or -1. */
static int64_t lc_first_valid(const uint8_t *validity, int64_t bit, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        while (((bit + i) & 7) == 0 && n - i >= 8 && validity[(bit + i) >> 3] == 0) i += 8;
        if (i < n && lc_get_bit(validity, bit + i)) return i;
    }
    return -1;
}

/* Prepare the kind of table that the values need. */
static int lc_dict_prepare(lc_dict_table *d, lc_dict_values *v) {
    v->first_valid = v->validity ? lc_first_valid(v->validity, v->bit, v->n) : 0;
    d->data = v->data;
    if (v->width == 1 || v->width == 2) d->direct = (uint32_t *)calloc((size_t)1 << (8 * v->width), sizeof(uint32_t));
    else if (v->width && v->width <= 8) d->words = (lc_word *)calloc((size_t)d->mask + 1, sizeof(lc_word));
    else d->pairs = (lc_pair *)calloc((size_t)d->mask + 1, sizeof(lc_pair));
    return d->direct || d->words || d->pairs ? LC_OK : LC_NO_MEMORY;
}

/* Build the dictionary of all values. Returns LC_OK, LC_DICT_TOO_MANY or a problem. */
static int lc_dict_build(lc_dict_table *d, lc_dict_values *v, int64_t code_width, uint8_t *codes) {
    if (lc_dict_prepare(d, v)) return LC_NO_MEMORY;
    if (v->first_valid < 0 || v->n == 0) {
        memset(codes, 0, (size_t)(v->n * code_width));
        return LC_OK;
    }
    /* With leading nulls, entry 0 would have the right value at a wrong position. */
    int64_t first = v->first_valid;
    memset(codes, 0, (size_t)(first * code_width));
    return lc_dict_add(d, v, first, v->n, code_width, codes + first * code_width);
}

/* Count the valid values among [first, stop) and add them all. */
static int lc_dict_look(lc_dict_table *d, const lc_dict_values *v, int64_t first, int64_t stop, int64_t *looked) {
    int outcome = lc_dict_add(d, v, first, stop, 0, NULL);
    if (!v->validity) *looked += stop - first;
    else for (int64_t i = first; i < stop; i++) *looked += lc_get_bit(v->validity, v->bit + i);
    return outcome;
}

/* Sample blocks of `size` values at equal distances, or all values if there are not more. Returns the number of valid
 * values seen; d counts the distinct ones. The first valid value, which stands for nulls, is part of the sample. */
static int lc_dict_sample(lc_dict_table *d, lc_dict_values *v, int64_t blocks, int64_t size, int64_t *looked) {
    if (lc_dict_prepare(d, v)) return LC_NO_MEMORY;
    *looked = 0;
    if (v->first_valid < 0 || v->n == 0) return LC_OK;
    if (v->n <= blocks * size) return lc_dict_look(d, v, v->first_valid, v->n, looked);
    int64_t step = blocks > 1 ? (v->n - size) / (blocks - 1) : 0;
    int outcome = LC_OK;
    if (v->first_valid >= size) outcome = lc_dict_look(d, v, v->first_valid, v->first_valid + 1, looked);
    for (int64_t k = 0; k < blocks && !outcome; k++) {
        int64_t skipped = k ? 0 : v->first_valid;
        if (skipped < size) outcome = lc_dict_look(d, v, step * k + skipped, step * k + size, looked);
    }
    return outcome;
}

#endif
