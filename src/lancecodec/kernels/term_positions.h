/* Positions of the occurrences of a term in its documents, for the blocks of a posting list.
 *
 * They are kept in one of three ways. A block has the differences between the positions in each document, the first
 * counted from 0: either groups of 128 packed in 4 lanes, each after its width, and varints for the rest, or varints
 * only. Or each document has binaries of its own: the number of positions (u32), then for each full 128 of them the first
 * (u32), a width and packed differences, and the rest as numbers of 32 bits. */
#ifndef LANCECODEC_TERM_POSITIONS_H
#define LANCECODEC_TERM_POSITIONS_H

#include "postings.h"

enum { LC_POSITIONS_LISTED, LC_POSITIONS_PACKED, LC_POSITIONS_VARINT, LC_POSITION_KINDS };

/* Positions have memory of their own. `starts` are those of blocks or binaries, and one more; with binaries, `owners` are
 * the first binary of each document, and one more. */
typedef struct {
    uint8_t *data;
    int64_t *starts, *owners;
    int64_t parts, documents;
    int kind;
} lc_positions;

/* Decoded positions of a block: those of document i are at[i] to at[i + 1]. */
typedef struct {
    uint32_t *values;
    int64_t room;
    int64_t at[LC_TERM_BLOCK + 1];
} lc_block_positions;

static inline void lc_positions_close(lc_positions *p) {
    free(p->data);
    free(p->starts);
    free(p->owners);
    memset(p, 0, sizeof *p);
}

/* Copy n ascending numbers of 64 bits up to `highest`, counted from the first one, which is 0 or more. */
static inline int lc_copy_offsets(const uint8_t *offsets, int64_t n, int64_t highest, int64_t **out, int64_t *first) {
    int64_t *made = *out = (int64_t *)malloc((size_t)n * sizeof *made + 1);
    int64_t last = 0;
    if (!made) return LC_NO_MEMORY;
    for (int64_t i = 0; i < n; i++) {
        int64_t offset = (int64_t)lc_once_u64(offsets + 8 * i);
        if (!i) *first = last = offset;
        if (offset < last || *first < 0 || offset > highest) return LC_BAD_OFFSETS;
        made[i] = offset - *first;
        last = offset;
    }
    return LC_OK;
}

/* Copy positions: `starts` are parts + 1, `owners` documents + 1 offsets of 64 bits, of which the first are 0 or more. */
static inline int lc_positions_open(lc_positions *p, lc_bytes data, const uint8_t *starts, const uint8_t *owners) {
    int64_t first = 0, owner = 0;
    int problem = lc_copy_offsets(starts, p->parts + 1, data.size, &p->starts, &first);
    if (!problem && p->kind == LC_POSITIONS_LISTED)
        problem = lc_copy_offsets(owners, p->documents + 1, p->parts, &p->owners, &owner);
    if (problem) return problem;
    if (p->owners && p->owners[p->documents] != p->parts) return LC_BAD_OFFSETS;
    size_t size = (size_t)p->starts[p->parts];
    p->data = (uint8_t *)malloc(size + 1);
    if (!p->data) return LC_NO_MEMORY;
    if (size) memcpy(p->data, data.data + first, size);
    return LC_OK;
}

/* Read n differences of a block. */
static inline int lc_read_steps(const uint8_t *at, const uint8_t *end, int packed, uint32_t *out, int64_t n) {
    int64_t i = 0;
    for (; packed && i + 128 <= n; i += 128)
        if (!lc_unpack_block(&at, end, 128, out + i)) return LC_BAD_SIZE;
    for (; i < n; i++)
        if (!lc_varint32(&at, end, &out[i])) return LC_BAD_SIZE;
    return at == end ? LC_OK : LC_BAD_SIZE;
}

/* Positions from the differences of each document. */
static inline int lc_sum_positions(lc_block_positions *b, int64_t n) {
    uint64_t most = 0;
    for (int64_t d = 0; d < n; d++) {
        uint64_t last = 0;
        for (int64_t i = b->at[d]; i < b->at[d + 1]; i++) b->values[i] = (uint32_t)(last += b->values[i]);
        if (last > most) most = last;
    }
    return most > UINT32_MAX ? LC_BAD_INDEX : LC_OK;
}

/* Read the binaries of a document, which has n occurrences. */
static inline int lc_read_listed(const lc_positions *p, int64_t document, uint32_t *out, int64_t n) {
    int64_t part = p->owners[document], stop = p->owners[document + 1], i = 0;
    const uint8_t *at = p->data + p->starts[part], *end;
    if (stop - part != 1 + (n + 127) / 128 || p->starts[part + 1] - p->starts[part] != 4) return LC_BAD_COUNT;
    if ((int64_t)lc_load_u32(at) != n) return LC_BAD_COUNT;
    for (part++; part < stop; part++, i += 128) {
        at = p->data + p->starts[part], end = p->data + p->starts[part + 1];
        if (n - i < 128) {
            if (end - at != 4 * (n - i)) return LC_BAD_SIZE;
            memcpy(out + i, at, 4 * (size_t)(n - i));
            break;
        }
        if (end - at < 4) return LC_BAD_SIZE;
        uint32_t first = lc_load_u32(at);
        at += 4;
        if (!lc_unpack_block(&at, end, 128, out + i) || at != end) return LC_BAD_SIZE;
        out[i] = first;
        for (int k = 1; k < 128; k++) out[i + k] += out[i + k - 1];
    }
    for (i = 1; i < n; i++)
        if (out[i] < out[i - 1]) return LC_BAD_INDEX;
    return LC_OK;
}

/* Make room for the occurrences of n documents, whose sum the bytes [0, size) of the block limit. */
static inline int lc_positions_room(lc_block_positions *b, const uint32_t *counts, int64_t n, int64_t size) {
    b->at[0] = 0;
    for (int64_t d = 0; d < n; d++) b->at[d + 1] = b->at[d] + counts[d];
    if (b->at[n] / 128 > size) return LC_BAD_SIZE; /* 128 positions take a byte, at least */
    if (b->at[n] <= b->room) return LC_OK;
    uint32_t *values = (uint32_t *)realloc(b->values, (size_t)b->at[n] * sizeof *values);
    if (!values) return LC_NO_MEMORY;
    b->values = values, b->room = b->at[n];
    return LC_OK;
}

/* Decode the positions of a block of n documents, from document `first` of the list on. */
static inline int lc_positions_decode(const lc_positions *p, int64_t block, int64_t first, const uint32_t *counts,
                                      int64_t n, lc_block_positions *out) {
    int problem = LC_OK;
    if (p->kind == LC_POSITIONS_LISTED) {
        if (first + n > p->documents) return LC_BAD_COUNT;
        int64_t size = p->starts[p->owners[first + n]] - p->starts[p->owners[first]];
        problem = lc_positions_room(out, counts, n, size);
        for (int64_t d = 0; d < n && !problem; d++)
            problem = lc_read_listed(p, first + d, out->values + out->at[d], counts[d]);
        return problem;
    }
    if (block >= p->parts) return LC_BAD_COUNT;
    const uint8_t *at = p->data + p->starts[block], *end = p->data + p->starts[block + 1];
    problem = lc_positions_room(out, counts, n, end - at);
    if (!problem) problem = lc_read_steps(at, end, p->kind == LC_POSITIONS_PACKED, out->values, out->at[n]);
    return problem ? problem : lc_sum_positions(out, n);
}

#endif
