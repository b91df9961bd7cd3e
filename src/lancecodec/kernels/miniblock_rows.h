/* Random access to the levels of mini-block pages: of single values, and of whole rows of lists. */
#ifndef LANCECODEC_MINIBLOCK_ROWS_H
#define LANCECODEC_MINIBLOCK_ROWS_H

#include <stdlib.h>

#include "levels_mask.h"
#include "miniblock_levels.h"

/* Streams of one chunk, and a position in them. */
typedef struct {
    const lc_chunks *chunks;
    const lc_level_codecs *codecs;
    const int64_t *started; /* rows that start before each chunk, and all, from the repetition index */
    int64_t chunk;          /* the chunk that was decoded, -1 before the first one */
    int64_t n, capacity;    /* its entries, and the capacity */
    int64_t entry, value;   /* the position, and the number of values of the chunk in front of it */
    int64_t row;            /* rows of the page that start before it */
    uint8_t *rep, *def;     /* NULL without such a stream */
} lc_level_cursor;

/* Levels of some rows, back to back. */
typedef struct {
    uint8_t *rep, *def;
    int64_t entries, capacity;
} lc_row_levels;

static inline int lc_grow(uint8_t **levels, int64_t capacity, int wanted) {
    if (!wanted) return LC_OK;
    uint8_t *grown = (uint8_t *)realloc(*levels, (size_t)(2 * capacity));
    if (grown == NULL) return LC_NO_MEMORY;
    *levels = grown;
    return LC_OK;
}

/* Decode a chunk, which must have as many row starts as in the index. */
static inline int lc_level_cursor_open(lc_level_cursor *cursor, int64_t chunk) {
    const lc_chunks *chunks = cursor->chunks;
    lc_chunk opened;
    int64_t total, where;
    int problem = lc_chunk_parts(chunks, chunk, &opened);
    if (problem) return problem;
    cursor->chunk = -1;
    cursor->n = lc_levels_count(cursor->codecs, &opened);
    if (cursor->n > cursor->capacity) {
        cursor->capacity = cursor->n;
        if (lc_grow(&cursor->rep, cursor->n, chunks->repetition)) return LC_NO_MEMORY;
        if (lc_grow(&cursor->def, cursor->n, chunks->definition)) return LC_NO_MEMORY;
    }
    problem = lc_levels_scan(chunks, cursor->codecs, chunk, chunk + 1, cursor->rep, cursor->def, cursor->capacity,
                             &total, &where);
    if (problem) return problem;
    uint16_t top = (uint16_t)cursor->codecs->repetition.top;
    int64_t starts = lc_levels_count_between(cursor->rep, total, top, top);
    if (starts != cursor->started[chunk + 1] - cursor->started[chunk]) return LC_BAD_COUNT;
    cursor->n = total;
    cursor->chunk = chunk;
    cursor->entry = cursor->value = 0;
    cursor->row = cursor->started[chunk];
    return LC_OK;
}

/* Number of entries from the position of the cursor to `stop` that own a value. */
static inline int64_t lc_level_cursor_values(const lc_level_cursor *cursor, int64_t stop) {
    int64_t n = stop - cursor->entry;
    if (cursor->def == NULL) return n;
    return lc_levels_count_le(cursor->def + 2 * cursor->entry, n, (uint16_t)cursor->codecs->visible);
}

/* Entry of the k-th row start at or behind `from`; n if the chunk has fewer. */
static inline int64_t lc_level_cursor_start(const lc_level_cursor *cursor, int64_t from, int64_t k) {
    uint16_t top = (uint16_t)cursor->codecs->repetition.top;
    return lc_levels_find(cursor->rep, cursor->n, from, top, top, k);
}

/* Move the cursor to the first entry of row `row`, from the begin of the chunk if necessary. */
static inline int lc_level_cursor_seek(lc_level_cursor *cursor, int64_t row, int64_t started) {
    if (cursor->row > row) {
        cursor->entry = cursor->value = 0;
        cursor->row = started;
    }
    int64_t at = lc_level_cursor_start(cursor, cursor->entry, row - cursor->row);
    if (at >= cursor->n) return LC_BAD_COUNT;
    cursor->value += lc_level_cursor_values(cursor, at);
    cursor->entry = at;
    cursor->row = row;
    return LC_OK;
}

/* Append the levels from entry `begin` to the cursor. Rows may be from several pages: as soon as one of them has
 * definition levels, all have them, and they are 0 for the others. */
static inline int lc_row_levels_append(lc_row_levels *out, const lc_level_cursor *cursor, int64_t begin) {
    int64_t n = cursor->entry - begin;
    int first = cursor->def != NULL && out->def == NULL;
    if (n > out->capacity - out->entries || first) {
        out->capacity = 2 * (out->entries + n) + 64;
        if (lc_grow(&out->rep, out->capacity, 1) || lc_grow(&out->def, out->capacity, first || out->def != NULL))
            return LC_NO_MEMORY;
        if (first) memset(out->def, 0, (size_t)(2 * out->entries));
    }
    memcpy(out->rep + 2 * out->entries, cursor->rep + 2 * begin, (size_t)(2 * n));
    if (cursor->def) memcpy(out->def + 2 * out->entries, cursor->def + 2 * begin, (size_t)(2 * n));
    else if (out->def) memset(out->def + 2 * out->entries, 0, (size_t)(2 * n));
    out->entries += n;
    return LC_OK;
}

/* Copy the row at the cursor, through as many chunks as it spans; count its values. */
static inline int lc_level_cursor_copy_row(lc_level_cursor *cursor, lc_row_levels *out, int64_t *values) {
    int64_t after = cursor->row + 1, from = cursor->entry + 1;
    *values = 0;
    for (;;) {
        int64_t begin = cursor->entry, stop = lc_level_cursor_start(cursor, from, 0);
        int64_t owned = lc_level_cursor_values(cursor, stop);
        *values += owned;
        cursor->value += owned;
        cursor->entry = stop;
        cursor->row = after;
        int problem = lc_row_levels_append(out, cursor, begin);
        if (problem || stop < cursor->n || cursor->chunk + 1 == cursor->chunks->table.count) return problem;
        if (cursor->started[cursor->chunk + 1] != after) return LC_BAD_COUNT;
        problem = lc_level_cursor_open(cursor, cursor->chunk + 1);
        if (problem) return problem;
        from = 0;
    }
}

/* Read rows of lists in any order: their levels to `out`, and the first value and number of values of each. `started`
 * has the number of rows that start before each chunk, ascending. A row starts in the last chunk whose number is not
 * greater than the row. */
static int lc_rows_take(lc_level_cursor *cursor, const int64_t *started, const int64_t *rows, int64_t n,
                        lc_row_levels *out, int64_t *begins, int64_t *counts, int64_t *where) {
    int64_t count = cursor->chunks->table.count;
    cursor->started = started;
    for (*where = 0; *where < n; ++*where) {
        int64_t row = rows[*where], chunk = 0;
        if (row < 0 || row >= started[count]) return LC_CHUNK_ITEM;
        for (int64_t step = count; step > 1;) {
            int64_t half = step >> 1;
            chunk = started[chunk + half] <= row ? chunk + half : chunk;
            step -= half;
        }
        int problem = LC_OK;
        if (cursor->chunk != chunk) problem = lc_level_cursor_open(cursor, chunk);
        if (!problem) problem = lc_level_cursor_seek(cursor, row, started[chunk]);
        if (problem) return problem;
        begins[*where] = cursor->chunks->table.firsts[chunk] + cursor->value;
        problem = lc_level_cursor_copy_row(cursor, out, counts + *where);
        if (problem) return problem;
    }
    return LC_OK;
}

/* Definition levels of single values of a page without lists. `scratch` has room for the largest chunk. */
static int lc_levels_take(const lc_chunks *chunks, const lc_level_codecs *codecs, const int64_t *items, int64_t n,
                          uint8_t *scratch, uint8_t *out, int64_t *where) {
    lc_chunk open;
    int problem = LC_OK;
    for (int64_t i = 0, stop; i < n; i = stop) {
        if ((uint64_t)items[i] >= (uint64_t)chunks->table.items) {
            *where = i;
            return LC_CHUNK_ITEM;
        }
        int64_t chunk = *where = lc_chunk_find(&chunks->table, items[i]), first = chunks->table.firsts[chunk];
        int64_t values = chunks->table.firsts[chunk + 1] - first;
        problem = lc_chunk_parts(chunks, chunk, &open);
        if (problem) return problem;
        if (open.levels != values) return LC_BAD_COUNT;
        const uint8_t *levels = scratch;
        if (codecs->definition.kind == LC_LEVEL_FLAT && open.definition.size == 2 * values) levels = open.definition.data;
        else problem = lc_levels_decode(&codecs->definition, open.definition, values, scratch);
        if (problem) return problem;
        for (stop = i; stop < n && (uint64_t)items[stop] - (uint64_t)first < (uint64_t)values; stop++) {
            uint16_t level = lc_once_u16(levels + 2 * (items[stop] - first));
            if (level > codecs->definition.top) return LC_BAD_LEVEL;
            lc_store_u16(out + 2 * stop, level);
        }
    }
    return LC_OK;
}

#endif
