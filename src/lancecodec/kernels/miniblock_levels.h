/* Repetition and definition levels of mini-block chunks, and the repetition index that locates rows in them. */
#ifndef LANCECODEC_MINIBLOCK_LEVELS_H
#define LANCECODEC_MINIBLOCK_LEVELS_H

#include "fastlanes.h"
#include "miniblock.h"
#include "rle.h"

#define LC_LEVEL_BITS 16

enum lc_level_kind { LC_LEVEL_NONE = -1, LC_LEVEL_FLAT, LC_LEVEL_INLINE, LC_LEVEL_RLE, LC_LEVEL_OUT_OF_LINE = 4 };

typedef struct {
    int64_t kind;
    int64_t width; /* packed bits, out of line only */
    int64_t top;   /* largest level */
} lc_level_codec;

typedef struct {
    lc_level_codec repetition, definition;
    int64_t visible; /* largest definition level of an entry that owns a value */
} lc_level_codecs;

/* Sum of the run lengths of an RLE block, -1 if it is malformed. */
static inline int64_t lc_levels_rle_sum(lc_bytes block) {
    if (block.size < 8) return -1;
    uint64_t values = lc_once_u64(block.data);
    if (values > (uint64_t)(block.size - 8)) return -1;
    int64_t skip = 8 + (int64_t)values;
    return (int64_t)lc_sum_u8(block.data + skip, block.size - skip);
}

/* Number of entries in an open chunk. The header has 16 bits for it; if it wrapped around, the run lengths give the
 * number. */
static inline int64_t lc_levels_count(const lc_level_codecs *codecs, const lc_chunk *chunk) {
    int64_t sum = -1;
    if (codecs->repetition.kind == LC_LEVEL_RLE) sum = lc_levels_rle_sum(chunk->repetition);
    else if (codecs->definition.kind == LC_LEVEL_RLE) sum = lc_levels_rle_sum(chunk->definition);
    int wrapped = sum > chunk->levels && sum <= LC_CHUNK_MAX_LEVELS && (sum - chunk->levels) % 65536 == 0;
    return wrapped ? sum : chunk->levels;
}

static inline int lc_levels_decode(const lc_level_codec *codec, lc_bytes src, int64_t n, uint8_t *out) {
    switch (codec->kind) {
        case LC_LEVEL_FLAT:
            if (src.size != 2 * n) return LC_BAD_SIZE;
            if (n) memcpy(out, src.data, (size_t)src.size);
            return LC_OK;
        case LC_LEVEL_INLINE: return lc_inline_block(src.data, src.size, n, LC_LEVEL_BITS, out);
        case LC_LEVEL_OUT_OF_LINE: return lc_ool_unpack(src.data, src.size, n, LC_LEVEL_BITS, codec->width, out);
        default: return lc_rle_block(src.data, src.size, n, LC_LEVEL_BITS, out);
    }
}

/* Number of levels that are at most `limit`. */
LC_CLONES static inline int64_t lc_levels_up_to(const uint8_t *levels, int64_t n, int64_t limit) {
    uint16_t bound = limit > UINT16_MAX ? UINT16_MAX : (uint16_t)limit;
    int64_t total = 0;
    for (int64_t i = 0; i < n;) {
        int64_t stop = n - i < 32768 ? n : i + 32768;
        uint16_t some = 0;
        for (; i < stop; i++) some = (uint16_t)(some + (lc_load_u16(levels + 2 * i) <= bound));
        total += some;
    }
    return total;
}

/* Whether an entry continues a list without owning a value. */
LC_CLONES static inline int lc_levels_gap(const uint8_t *LC_RESTRICT repetition, const uint8_t *LC_RESTRICT definition,
                                          int64_t n, int64_t visible) {
    uint16_t limit = visible > UINT16_MAX ? UINT16_MAX : (uint16_t)visible, any = 0;
    for (int64_t i = 0; i < n; i++) {
        uint16_t inside = lc_load_u16(repetition + 2 * i) == 0, hidden = lc_load_u16(definition + 2 * i) > limit;
        any |= inside & hidden;
    }
    return any;
}

/* Fill `begins`: number of entries before each chunk, and of all. All chunks must be loaded. */
static int lc_levels_begins(const lc_chunks *chunks, const lc_level_codecs *codecs, int64_t from, int64_t to,
                            int64_t *begins, int64_t *where) {
    lc_chunk chunk;
    begins[0] = 0;
    for (*where = from; *where < to; ++*where) {
        int problem = lc_chunk_parts(chunks, *where, &chunk);
        if (problem) return problem;
        begins[*where - from + 1] = begins[*where - from] + lc_levels_count(codecs, &chunk);
    }
    return LC_OK;
}

/* Decode one stream of n levels and check them against the layers. With out NULL it is not read. */
LC_INLINE int lc_levels_stream(const lc_level_codec *codec, lc_bytes src, int64_t n, uint8_t *out) {
    if (codec->kind == LC_LEVEL_NONE || out == NULL) return LC_OK;
    int problem = lc_levels_decode(codec, src, n, out);
    if (problem) return problem;
    return lc_levels_up_to(out, n, codec->top) == n ? LC_OK : LC_BAD_LEVEL;
}

/* Decode the streams of chunks [from, to) back to back; *total entries. The number of entries that own values must
 * match the values of the chunk. `repetition` and `definition` have room for `capacity` levels or are NULL. */
static int lc_levels_scan(const lc_chunks *chunks, const lc_level_codecs *codecs, int64_t from, int64_t to,
                          uint8_t *repetition, uint8_t *definition, int64_t capacity, int64_t *total, int64_t *where) {
    lc_chunk chunk;
    *total = 0;
    for (*where = from; *where < to; ++*where) {
        int problem = lc_chunk_parts(chunks, *where, &chunk);
        if (problem) return problem;
        int64_t n = lc_levels_count(codecs, &chunk), both = chunks->repetition && chunks->definition;
        int64_t values = chunks->table.firsts[*where + 1] - chunks->table.firsts[*where];
        if (n > capacity - *total) return LC_NO_SPACE;
        if (both ? n < values : n != values) return LC_BAD_COUNT;
        uint8_t *rep = repetition ? repetition + 2 * *total : NULL, *def = definition ? definition + 2 * *total : NULL;
        problem = lc_levels_stream(&codecs->repetition, chunk.repetition, n, rep);
        if (!problem) problem = lc_levels_stream(&codecs->definition, chunk.definition, n, def);
        if (problem) return problem;
        if (both && def && lc_levels_up_to(def, n, codecs->visible) != values) return LC_BAD_COUNT;
        /* refused here, because a chunk may claim millions of entries, and a row may go on through all chunks */
        if (both && rep && def && lc_levels_gap(rep, def, n, codecs->visible)) return LC_BAD_LEVEL;
        *total += n;
    }
    return LC_OK;
}

/* Positions of row starts (levels of `top`), as entries and as values, and both ends behind the last row. `rows` is the
 * room in the outputs minus one. Returns the number of rows, or -1 if there are more. definition may be NULL. */
static int64_t lc_levels_rows(const uint8_t *repetition, const uint8_t *definition, int64_t n, int64_t top,
                              int64_t visible, int64_t rows, int64_t *entries, int64_t *values) {
    int64_t found = 0, value = 0;
    for (int64_t i = 0; i < n; i++) {
        if (lc_load_u16(repetition + 2 * i) == top) {
            if (found == rows) return -1;
            entries[found] = i;
            values[found++] = value;
        }
        value += definition == NULL || lc_load_u16(definition + 2 * i) <= visible;
    }
    entries[found] = n;
    values[found] = value;
    return found;
}

/* Repetition index of depth 1: pairs (rows that end in the chunk, entries of a row that does not). Fills rows started
 * and rows ended before chunk i, for every chunk and the end. */
static int lc_repetition_index_parse(const uint8_t *pairs, int64_t chunks, int64_t rows, int64_t *started,
                                     int64_t *ended, int64_t *where) {
    started[0] = ended[0] = 0;
    for (*where = 0; *where < chunks; ++*where) {
        uint64_t ends = lc_once_u64(pairs + 16 * *where), trailer = lc_once_u64(pairs + 16 * *where + 8);
        if (ends > (uint64_t)(rows - ended[*where])) return LC_BAD_COUNT;
        ended[*where + 1] = ended[*where] + (int64_t)ends;
        started[*where + 1] = ended[*where + 1] + (trailer != 0);
        if (started[*where + 1] > rows || started[*where + 1] < started[*where]) return LC_BAD_COUNT;
    }
    return started[chunks] == rows && ended[chunks] == rows ? LC_OK : LC_BAD_COUNT;
}

#endif
