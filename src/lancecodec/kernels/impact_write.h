/* Skip data of posting lists: for a set of postings, the pairs of frequency and length that no other pair beats. */
#ifndef LANCECODEC_IMPACT_WRITE_H
#define LANCECODEC_IMPACT_WRITE_H

#include <stdlib.h>

#include "posting_write.h"

/* Blocks that share an entry of the second level. */
#define LC_IMPACT_GROUP 32
/* Frequencies with a place of their own. */
#define LC_IMPACT_SMALL 64
#define LC_IMPACT_MOST (LC_IMPACT_GROUP * 256)
/* Bytes of an entry without its pairs, and of a pair. */
#define LC_IMPACT_HEAD 10
#define LC_IMPACT_PAIR 6

/* The shortest length of each small frequency, 0xFFFFFFFF for none; others as keys, which sort by descending frequency
 * and ascending length. */
typedef struct {
    uint32_t shortest[LC_IMPACT_SMALL];
    uint64_t used; /* small frequencies that occur */
    uint64_t large[LC_IMPACT_MOST];
    int64_t num_large;
} lc_impact_set;

typedef struct {
    uint32_t frequencies[LC_IMPACT_SMALL + LC_IMPACT_MOST], lengths[LC_IMPACT_SMALL + LC_IMPACT_MOST];
    int64_t count;
} lc_impact_pairs;

LC_INLINE uint32_t lc_length_code(uint32_t v) {
    if (v < 8) return v;
    int shift = lc_width32(v) - 4;
    if (shift < 0) shift = 0;
    return ((v >> shift) & 7) | (uint32_t)(shift + 1) << 3;
}

LC_INLINE void lc_impact_clear(lc_impact_set *set) { set->used = 0, set->num_large = 0; }

LC_INLINE void lc_impact_add(lc_impact_set *set, uint32_t frequency, uint32_t length) {
    if (frequency < LC_IMPACT_SMALL) {
        uint32_t known = set->used >> frequency & 1 ? set->shortest[frequency] : UINT32_MAX;
        set->shortest[frequency] = length < known ? length : known;
        set->used |= (uint64_t)1 << frequency;
    } else if (set->num_large < LC_IMPACT_MOST) {
        set->large[set->num_large++] = (uint64_t)~frequency << 32 | length;
    }
}

static int lc_impact_order(const void *left, const void *right) {
    uint64_t a, b;
    memcpy(&a, left, 8), memcpy(&b, right, 8);
    return (a > b) - (a < b);
}

LC_INLINE void lc_impact_keep(lc_impact_pairs *out, uint32_t frequency, uint32_t length) {
    if (out->count && length >= out->lengths[out->count - 1]) return;
    out->frequencies[out->count] = frequency, out->lengths[out->count] = length;
    out->count++;
}

/* The pairs of a set that no other one beats, by descending frequency. */
static void lc_impact_unbeaten(lc_impact_set *set, lc_impact_pairs *out) {
    out->count = 0;
    if (set->num_large > 1) qsort(set->large, (size_t)set->num_large, 8, lc_impact_order);
    for (int64_t i = 0; i < set->num_large; i++)
        lc_impact_keep(out, ~(uint32_t)(set->large[i] >> 32), (uint32_t)set->large[i]);
    for (int f = LC_IMPACT_SMALL - 1; f >= 0; f--)
        if (set->used >> f & 1) lc_impact_keep(out, (uint32_t)f, set->shortest[f]);
}

/* Write the entry of pairs, by ascending frequency; of those with the same code of the length, the last. */
static int lc_impact_put(const lc_impact_pairs *pairs, uint32_t last, lc_written *out) {
    if (out->room - out->size < LC_IMPACT_HEAD + LC_IMPACT_PAIR * pairs->count) return LC_NO_SPACE;
    uint8_t *p = lc_varint_put(out->data + out->size, last);
    uint32_t count = 0, frequency = 0, code = 0;
    for (int64_t i = pairs->count; i-- > 0;)
        count += !i || lc_length_code(pairs->lengths[i - 1]) != lc_length_code(pairs->lengths[i]);
    p = lc_varint_put(p, count);
    for (int64_t i = pairs->count; i-- > 0;) {
        uint32_t mine = lc_length_code(pairs->lengths[i]);
        if (i && lc_length_code(pairs->lengths[i - 1]) == mine) continue;
        int is_explicit = mine - code != 1;
        uint64_t step = (uint64_t)(pairs->frequencies[i] - frequency - 1) << 1 | (uint64_t)is_explicit;
        for (; step >= 0x80; step >>= 7) *p++ = (uint8_t)(step | 0x80);
        *p++ = (uint8_t)step;
        if (is_explicit) *p++ = (uint8_t)(mine - code);
        frequency = pairs->frequencies[i], code = mine;
    }
    out->size = p - out->data;
    return LC_OK;
}

#endif
