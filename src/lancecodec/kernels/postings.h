/* Posting lists of full-text indices: the documents of a term with the frequency of the term in each.
 *
 * A list has blocks of 128 or 256 documents; only the last one is shorter. A full block is the best score (f32, only in
 * blocks of 128), the first document (u32), then packed differences of documents and packed frequencies. Packed numbers
 * are in 4 or 8 lanes: value i belongs to lane i mod L, and word k of all lanes precedes word k + 1. Frequencies of blocks
 * of 256 are cut to their lower bits, and followed by exceptions. A short block has numbers of 32 bits, or varints.
 *
 * A document scores f / (f + norm) of the weight of a term, where the norm grows with the length of the document. The
 * bound of a block is the most that one of its documents scores. */
#ifndef LANCECODEC_POSTINGS_H
#define LANCECODEC_POSTINGS_H

#include <stdlib.h>

#include "chunk.h"
#include "records.h"

enum { LC_TERM_BLOCK = 256, LC_VARINT32_BYTES = 5 };

/* The list has memory of its own. `starts` are those of the blocks in `data`, and the end of the last one. */
typedef struct {
    uint8_t *data;
    int64_t *starts;
    uint32_t *firsts;
    float *bounds;
    float bound;
    int64_t length, blocks, documents;
    int size, fixed;
} lc_term;

LC_INLINE int lc_varint32(const uint8_t **at, const uint8_t *end, uint32_t *out) {
    const uint8_t *begin = *at;
    uint64_t value;
    if (!lc_record_varint(at, end, &value) || value > UINT32_MAX || *at - begin > LC_VARINT32_BYTES) return 0;
    *out = (uint32_t)value;
    return 1;
}

/* -- blocks ------------------------------------------------------------------------------------------------------- */

/* Unpack 32 numbers of each lane. */
LC_INLINE void lc_unpack_lanes(const uint8_t *p, int width, int lanes, uint32_t *LC_RESTRICT out) {
    uint32_t mask = width == 32 ? UINT32_MAX : ((uint32_t)1 << width) - 1;
    if (!width) {
        memset(out, 0, 32 * (size_t)lanes * sizeof *out);
        return;
    }
    for (int j = 0; j < 32; j++) {
        const uint8_t *word = p + 4 * lanes * (j * width >> 5);
        int shift = j * width & 31;
        if (shift + width > 32)
            for (int l = 0; l < lanes; l++)
                out[j * lanes + l] = (lc_load_u32(word + 4 * l) >> shift |
                                      lc_load_u32(word + 4 * (lanes + l)) << (32 - shift)) & mask;
        else
            for (int l = 0; l < lanes; l++) out[j * lanes + l] = lc_load_u32(word + 4 * l) >> shift & mask;
    }
}

LC_CLONES static inline void lc_unpack_lanes4(const uint8_t *p, int width, uint32_t *out) {
    lc_unpack_lanes(p, width, 4, out);
}

LC_CLONES static inline void lc_unpack_lanes8(const uint8_t *p, int width, uint32_t *out) {
    lc_unpack_lanes(p, width, 8, out);
}

/* Unpack a width and as many packed numbers as a block has documents; returns 0 if bytes are missing. */
LC_INLINE int lc_unpack_block(const uint8_t **at, const uint8_t *end, int size, uint32_t *out) {
    int width = *at < end ? **at : 33;
    if (width > 32 || end - *at - 1 < (int64_t)(size / 8) * width) return 0;
    if (size == 128) lc_unpack_lanes4(*at + 1, width, out);
    else lc_unpack_lanes8(*at + 1, width, out);
    *at += 1 + (size / 8) * width;
    return 1;
}

/* The same for frequencies of blocks of 256: u8 width, u8 exceptions, numbers; then u8 index, varint upper bits. */
LC_INLINE int lc_unpack_patched(const uint8_t **at, const uint8_t *end, uint32_t *out) {
    if (end - *at < 2) return 0;
    int width = (*at)[0], exceptions = (*at)[1];
    if (width > 32 || end - *at - 2 < (int64_t)32 * width) return 0;
    lc_unpack_lanes8(*at + 2, width, out);
    *at += 2 + 32 * width;
    for (int k = 0; k < exceptions; k++) {
        uint32_t upper;
        if (*at == end) return 0;
        int index = *(*at)++;
        if (!lc_varint32(at, end, &upper) || (uint64_t)upper << width > UINT32_MAX) return 0;
        out[index] |= (uint32_t)((uint64_t)upper << width);
    }
    return 1;
}

/* Read the documents and frequencies of a short block; differences between documents, or documents if `fixed`. */
LC_INLINE int lc_term_short_block(const uint8_t **at, const uint8_t *end, int64_t n, int fixed, uint32_t *docs, uint32_t *counts) {
    if (!fixed) {
        for (int64_t i = 0; i < n; i++)
            if (!lc_varint32(at, end, &docs[i])) return 0;
        for (int64_t i = 0; i < n; i++)
            if (!lc_varint32(at, end, &counts[i])) return 0;
        return 1;
    }
    if (end - *at < 8 * n) return 0;
    memcpy(docs, *at, 4 * (size_t)n);
    memcpy(counts, *at + 4 * n, 4 * (size_t)n);
    *at += 8 * n;
    return 1;
}

LC_INLINE int64_t lc_block_count(const lc_term *t, int64_t block) {
    return block + 1 < t->blocks ? t->size : t->length - block * t->size;
}

/* Documents from differences; returns whether they are ascending from the first one on, and below a limit. */
LC_INLINE int lc_sum_documents(uint32_t *docs, int64_t n, uint32_t first, int64_t limit) {
    uint64_t last = first;
    uint32_t same = docs[0];
    docs[0] = first;
    for (int64_t i = 1; i < n; i++) {
        same |= !docs[i];
        last += docs[i];
        docs[i] = (uint32_t)last;
    }
    return !same && last < (uint64_t)limit;
}

/* Decode a block of at most LC_TERM_BLOCK documents. */
static inline int lc_term_decode(const lc_term *t, int64_t block, uint32_t *docs, uint32_t *counts) {
    const uint8_t *at = t->data + t->starts[block], *end = t->data + t->starts[block + 1];
    int64_t n = lc_block_count(t, block);
    int64_t limit = block + 1 < t->blocks ? (int64_t)t->firsts[block + 1] : t->documents;
    uint32_t first = t->firsts[block], missing = 0;
    if (t->size == 128) at += 4;
    if (n == t->size) {
        at += 4;
        if (!lc_unpack_block(&at, end, t->size, docs)) return LC_BAD_SIZE;
        if (!(t->size == 128 ? lc_unpack_block(&at, end, 128, counts) : lc_unpack_patched(&at, end, counts)))
            return LC_BAD_SIZE;
    } else {
        if (!lc_term_short_block(&at, end, n, t->fixed, docs, counts)) return LC_BAD_SIZE;
        if (t->fixed)
            for (int64_t i = n - 1; i > 0; i--) {
                if (docs[i] <= docs[i - 1]) return LC_BAD_INDEX;
                docs[i] -= docs[i - 1];
            }
        docs[0] -= first;
    }
    for (int64_t i = 0; i < n; i++) missing |= !counts[i];
    if (at != end) return LC_BAD_SIZE;
    return missing || !lc_sum_documents(docs, n, first, limit) ? LC_BAD_INDEX : LC_OK;
}

/* -- lists -------------------------------------------------------------------------------------------------------- */

static inline void lc_term_close(lc_term *t) {
    free(t->data);
    free(t->starts);
    free(t->firsts);
    free(t->bounds);
    memset(t, 0, sizeof *t);
}

/* Find the first document of each block. */
static inline int lc_term_index(lc_term *t) {
    for (int64_t b = 0; b < t->blocks; b++) {
        const uint8_t *at = t->data + t->starts[b], *end = t->data + t->starts[b + 1];
        if (t->size == 128) at += 4;
        if (end - at < 1) return LC_BAD_SIZE;
        if (lc_block_count(t, b) == t->size || t->fixed) {
            if (end - at < 4) return LC_BAD_SIZE;
            t->firsts[b] = lc_load_u32(at);
        } else if (!lc_varint32(&at, end, &t->firsts[b])) {
            return LC_BAD_SIZE;
        }
        if ((int64_t)t->firsts[b] >= t->documents || (b && t->firsts[b] <= t->firsts[b - 1])) return LC_BAD_INDEX;
        t->bounds[b] = 1;
    }
    t->bound = 1;
    return LC_OK;
}

/* Copy a list of `length` documents below `documents`. `offsets` are as many as there are blocks, and one more. */
static inline int lc_term_open(lc_term *t, lc_bytes data, const uint8_t *offsets, int64_t count) {
    int64_t first = 0, last = 0;
    if (t->length < 1 || t->length > t->documents || t->documents > UINT32_MAX) return LC_BAD_COUNT;
    t->blocks = (t->length - 1) / t->size + 1;
    if (count != t->blocks + 1) return LC_BAD_COUNT;
    first = (int64_t)lc_once_u64(offsets), last = (int64_t)lc_once_u64(offsets + 8 * t->blocks);
    if (first < 0 || last < first || last > data.size) return LC_BAD_OFFSETS;
    t->data = (uint8_t *)malloc((size_t)(last - first) + 1);
    t->starts = (int64_t *)malloc((size_t)count * sizeof *t->starts);
    t->firsts = (uint32_t *)malloc((size_t)count * sizeof *t->firsts);
    t->bounds = (float *)malloc((size_t)count * sizeof *t->bounds);
    if (!t->data || !t->starts || !t->firsts || !t->bounds) return LC_NO_MEMORY;
    memcpy(t->data, data.data + first, (size_t)(last - first));
    LC_SETTLE(t->data);
    for (int64_t b = 0; b < count; b++) {
        t->starts[b] = (int64_t)lc_once_u64(offsets + 8 * b) - first;
        if (t->starts[b] < (b ? t->starts[b - 1] : 0) || t->starts[b] > last - first) return LC_BAD_OFFSETS;
    }
    return lc_term_index(t);
}

/* -- bounds ------------------------------------------------------------------------------------------------------- */

LC_INLINE float lc_term_share(uint32_t count, float norm) {
    float often = (float)count;
    return often / (often + norm);
}

/* Read the pairs of frequency and code of length that no other pair of a block beats: the bound; 1 if malformed. */
static inline float lc_impact_bound(const uint8_t *at, const uint8_t *end, const float *norms) {
    uint32_t last, pairs, step;
    uint64_t often = 0;
    unsigned code = 0;
    float best = 0;
    if (!lc_varint32(&at, end, &last) || !lc_varint32(&at, end, &pairs) || !pairs) return 1;
    for (uint32_t k = 0; k < pairs; k++) {
        if (!lc_varint32(&at, end, &step) || ((step & 1) && at == end)) return 1;
        often += (uint64_t)(step >> 1) + 1;
        code += step & 1 ? *at++ : 1;
        if (often > UINT32_MAX || code > 255) return 1;
        float share = lc_term_share((uint32_t)often, norms[code]);
        if (!(share <= best)) best = share;
    }
    return at == end && best <= 1 ? best : 1;
}

static inline void lc_term_widest(lc_term *t) {
    t->bound = 0;
    for (int64_t b = 0; b < t->blocks; b++)
        if (!(t->bounds[b] <= t->bound)) t->bound = t->bounds[b];
}

/* Take the bounds of the blocks from skip data, one entry for each block, with the norm of each code of a length. */
static inline void lc_term_read_impacts(lc_term *t, lc_bytes data, const uint8_t *offsets, int64_t count, const float *norms) {
    for (int64_t b = 0; b < t->blocks && b + 1 < count; b++) {
        int64_t begin = (int64_t)lc_once_u64(offsets + 8 * b), stop = (int64_t)lc_once_u64(offsets + 8 * b + 8);
        if (begin < 0 || stop < begin || stop > data.size) continue;
        t->bounds[b] = lc_impact_bound(data.data + begin, data.data + stop, norms);
    }
    lc_term_widest(t);
}

/* Decode all blocks to find their bounds, with the norm of each document. */
static inline int lc_term_measure(lc_term *t, const float *norms) {
    uint32_t docs[LC_TERM_BLOCK], counts[LC_TERM_BLOCK];
    for (int64_t b = 0; b < t->blocks; b++) {
        int64_t n = lc_block_count(t, b);
        float best = 0;
        int problem = lc_term_decode(t, b, docs, counts);
        if (problem) return problem;
        for (int64_t i = 0; i < n; i++) {
            float share = lc_term_share(counts[i], norms[docs[i]]);
            if (!(share <= best)) best = share;
        }
        t->bounds[b] = best <= 1 ? best : 1;
    }
    lc_term_widest(t);
    return LC_OK;
}

#endif
