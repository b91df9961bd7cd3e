/* Random access: values of any rows of a page, of any layout, to their places in the output.
 *
 * Rows are ascending, so that a chunk is opened once; `places` has the output position of each. Fixed-width values are
 * written to their place. For texts only their position is stored (decoded ones are in an arena): their places follow
 * from the lengths of all, see take_texts.h. */
#ifndef LANCECODEC_TAKE_H
#define LANCECODEC_TAKE_H

#include <stdlib.h>

#include "take_ahead.h"
#include "take_page.h"

/* Memory for decoded texts, in blocks that are not moved. */
typedef struct lc_take_memory {
    struct lc_take_memory *next;
    int64_t size, used;
} lc_take_memory;

/* Output of a column. Values and texts of n rows belong to the caller; the rest is freed by lc_take_sink_close. */
typedef struct {
    int64_t n;
    uint8_t *values;
    lc_bytes *texts;
    uint8_t *validity; /* NULL until a page with levels is processed */
    int64_t nulls;
    int64_t scratch_size, levels_size;
    uint8_t *scratch, *levels; /* a chunk decoded */
    lc_take_memory *memory;
} lc_take_sink;

static inline void lc_take_sink_close(lc_take_sink *sink) {
    free(sink->scratch);
    free(sink->levels);
    free(sink->validity);
    for (lc_take_memory *block = sink->memory, *next; block; block = next) {
        next = block->next;
        free(block);
    }
    sink->scratch = sink->levels = sink->validity = NULL;
    sink->memory = NULL;
}

/* Return at least `size` unused bytes, their number in *room. */
LC_INLINE int lc_take_reserve(lc_take_sink *sink, int64_t size, uint8_t **room) {
    lc_take_memory *block = sink->memory;
    if (block == NULL || block->size - block->used < size) {
        int64_t grown = block ? 2 * block->size : 4096;
        grown = grown > (1 << 20) ? 1 << 20 : grown;
        grown = grown < size ? size : grown;
        block = (lc_take_memory *)malloc(sizeof(lc_take_memory) + (size_t)grown);
        if (block == NULL) return LC_NO_MEMORY;
        block->next = sink->memory;
        block->size = grown;
        block->used = 0;
        sink->memory = block;
    }
    *room = (uint8_t *)(block + 1) + block->used;
    return LC_OK;
}

static inline int lc_take_grow(uint8_t **memory, int64_t *held, int64_t size) {
    if (*held >= size) return LC_OK;
    free(*memory);
    *held = 0;
    *memory = (uint8_t *)malloc((size_t)size);
    if (*memory == NULL) return LC_NO_MEMORY;
    *held = size;
    return LC_OK;
}

/* Make sure that there is a bitmap, with all bits set. */
static inline int lc_take_nullable(lc_take_sink *sink) {
    if (sink->validity) return LC_OK;
    size_t size = (size_t)((sink->n + 7) / 8);
    sink->validity = (uint8_t *)malloc(size + 1);
    if (sink->validity == NULL) return LC_NO_MEMORY;
    memset(sink->validity, 0xFF, size);
    if (sink->n & 7) sink->validity[size - 1] = (uint8_t)lc_low_mask(sink->n & 7);
    return LC_OK;
}

LC_INLINE int lc_take_null(const lc_take_page *page, lc_take_sink *sink, int64_t place) {
    if (page->required) return LC_BAD_LEVEL;
    lc_set_bit(sink->validity, place, 0);
    sink->nulls++;
    return LC_OK;
}

LC_INLINE int64_t lc_take_place(const lc_take_span *span, int64_t i) {
    return span->places ? span->places[i] : span->first + i;
}

/* ---- one value ---- */

/* Add a text as stored, which may be FSST codes. */
LC_INLINE int lc_take_text(const lc_fsst_table *table, lc_bytes stored, lc_take_sink *sink, int64_t place) {
    if (table == NULL || !table->compressed) {
        sink->texts[place] = stored;
        return LC_OK;
    }
    uint8_t *room;
    int64_t most = 8 * stored.size + 64, written = 0;
    int problem = lc_take_reserve(sink, most, &room);
    if (!problem) problem = lc_fsst_decode(table, stored.data, stored.size, room, most, &written);
    if (problem) return problem;
    sink->memory->used += written;
    sink->texts[place].data = room;
    sink->texts[place].size = written;
    return LC_OK;
}

LC_INLINE void lc_take_no_text(lc_take_sink *sink, int64_t place) {
    sink->texts[place].data = NULL;
    sink->texts[place].size = 0;
}

/* Add an empty value for a null. */
LC_INLINE void lc_take_nothing(const lc_take_page *page, lc_take_sink *sink, int64_t place) {
    if (page->width < 0) lc_take_no_text(sink, place);
    else if (page->width == 0) lc_set_bit(sink->values, place, 0);
    else memset(sink->values + place * page->width, 0, (size_t)page->width);
}

LC_INLINE int lc_take_entry(const lc_take_page *page, uint64_t code, int null, lc_take_sink *sink, int64_t place) {
    const lc_take_entries *entries = &page->entries;
    LC_OPAQUE(code); /* checked and used: a mapped file may change */
    if (code >= (uint64_t)entries->count) {
        if (!null) return LC_BAD_INDEX;
        lc_take_nothing(page, sink, place);
        return LC_OK;
    }
    if (page->width >= 0) {
        int64_t width = page->width;
        lc_copy_bytes(sink->values + place * width, entries->data.data + (int64_t)code * width, width);
        return LC_OK;
    }
    int64_t begin = lc_load_offset(entries->offsets, entries->wide, (int64_t)code);
    int64_t end = lc_load_offset(entries->offsets, entries->wide, (int64_t)code + 1);
    if (begin < 0 || end < begin || end > entries->data.size) return LC_BAD_OFFSETS;
    sink->texts[place].data = entries->data.data + begin;
    sink->texts[place].size = end - begin;
    return LC_OK;
}

/* ---- chunks ---- */

/* The last text that was located: without repeated rows, texts together have no more bytes than are stored. */
typedef struct {
    int64_t row;        /* -1 before the first one */
    const uint8_t *end;
} lc_take_order;

/* Check that the next text begins behind the previous one, if its row is behind. Forged texts that overlap could be
 * any times as large as the page. */
LC_INLINE int lc_take_ordered(lc_take_order *last, int64_t row, const uint8_t *begin, const uint8_t *end) {
    if (row > last->row && last->row >= 0 && begin < last->end) return LC_BAD_OFFSETS;
    last->row = row;
    last->end = end;
    return LC_OK;
}

/* Positions in one chunk, and the decoded chunk if decoding it is cheaper. */
typedef struct {
    lc_chunk open;
    int64_t count;                  /* number of values in it */
    const uint8_t *values, *levels; /* NULL: values are located one by one */
    lc_take_order order;
} lc_take_chunk;

/* Some positions of a chunk, and their places. */
typedef struct {
    int64_t n;
    int64_t at[LC_TAKE_BLOCK], to[LC_TAKE_BLOCK];
    uint16_t levels[LC_TAKE_BLOCK]; /* all 0 if the page has none */
} lc_take_block;

/* Prepare an open chunk of which `wanted` values are requested. */
static int lc_take_chunk_open(const lc_take_page *page, lc_take_chunk *chunk, int64_t wanted, lc_take_sink *sink) {
    int64_t n = chunk->count, many = wanted >= n / LC_TAKE_SHARE;
    int problem = LC_OK;
    chunk->values = chunk->levels = NULL;
    chunk->order.row = -1;
    if (page->levels.kind != LC_LEVEL_NONE) {
        lc_bytes stored = chunk->open.definition;
        if (chunk->open.levels != n) return LC_BAD_COUNT;
        if (page->levels.kind == LC_LEVEL_FLAT) {
            if (stored.size != 2 * n) return LC_BAD_SIZE;
            chunk->levels = stored.data;
        } else if (page->levels.kind == LC_LEVEL_RLE || many) {
            problem = lc_take_grow(&sink->levels, &sink->levels_size, 2 * page->chunks->table.largest);
            if (!problem) problem = lc_levels_decode(&page->levels, stored, n, sink->levels);
            chunk->levels = sink->levels;
        }
    }
    if (problem || (page->width < 0 && page->entries.count < 0)) return problem;
    if (page->values.kind == LC_VALUE_FLAT) {
        problem = lc_flat_check(chunk->open.values[page->values.buffer], n, page->values.bits);
        chunk->values = chunk->open.values[page->values.buffer].data;
    } else if (many) {
        int64_t width = page->values.bits >> 3;
        problem = lc_take_grow(&sink->scratch, &sink->scratch_size, page->chunks->table.largest * width);
        if (!problem) problem = lc_value_chunk(&page->values, &chunk->open, n, sink->scratch);
        chunk->values = sink->scratch;
    }
    return problem;
}

/* Levels of the block, and the nulls among them. */
static int lc_take_block_levels(const lc_take_page *page, const lc_take_chunk *chunk, lc_take_block *block,
                                lc_take_sink *sink) {
    int problem = LC_OK;
    uint8_t *out = (uint8_t *)block->levels;
    if (page->levels.kind == LC_LEVEL_NONE) {
        memset(out, 0, (size_t)(2 * block->n));
        return LC_OK;
    }
    if (chunk->levels) {
        for (int64_t k = 0; k < block->n; k++) block->levels[k] = lc_once_u16(chunk->levels + 2 * block->at[k]);
    } else if (page->levels.kind == LC_LEVEL_INLINE) {
        problem = lc_inline_at(&chunk->open.definition, chunk->count, LC_LEVEL_BITS, block->at, block->n, out);
    } else {
        lc_bytes stored = chunk->open.definition;
        problem = lc_ool_at(stored.data, stored.size, chunk->count, LC_LEVEL_BITS, page->levels.width, block->at,
                            block->n, out);
    }
    for (int64_t k = 0; k < block->n && !problem; k++) {
        if (block->levels[k] > page->levels.top) problem = LC_BAD_LEVEL;
        else if (block->levels[k]) problem = lc_take_null(page, sink, block->to[k]);
    }
    return problem;
}

/* One move per value; `width` is a compile-time constant. */
LC_INLINE void lc_take_moves(const uint8_t *LC_RESTRICT src, int64_t width, const lc_take_block *block,
                             const int64_t *at, uint8_t *LC_RESTRICT out) {
    for (int64_t k = 0; k < block->n; k++)
        memcpy(out + block->to[k] * width, src + at[k] * width, (size_t)width);
}

static void lc_take_scatter(const uint8_t *src, int64_t width, const lc_take_block *block, const int64_t *at,
                            uint8_t *out) {
    switch (width) {
        case 1: lc_take_moves(src, 1, block, at, out); break;
        case 2: lc_take_moves(src, 2, block, at, out); break;
        case 4: lc_take_moves(src, 4, block, at, out); break;
        case 8: lc_take_moves(src, 8, block, at, out); break;
        case 16: lc_take_moves(src, 16, block, at, out); break;
        case 32: lc_take_moves(src, 32, block, at, out); break;
        default:
            for (int64_t k = 0; k < block->n; k++)
                lc_copy_bytes(out + block->to[k] * width, src + at[k] * width, width);
    }
}

/* Values, or dictionary indices, of the block. */
static int lc_take_block_fixed(const lc_take_page *page, const lc_take_chunk *chunk, const lc_take_block *block,
                               lc_take_sink *sink) {
    uint8_t some[8 * LC_TAKE_BLOCK];
    int64_t in_order[LC_TAKE_BLOCK];
    const uint8_t *values = chunk->values;
    const int64_t *at = block->at;
    int64_t width = page->values.bits >> 3;
    int problem = LC_OK;
    if (page->width == 0) {
        for (int64_t k = 0; k < block->n; k++) lc_set_bit(sink->values, block->to[k], lc_get_bit(values, at[k]));
        return LC_OK;
    }
    if (values == NULL) {
        problem = lc_value_at(&page->values, &chunk->open, chunk->count, at, block->n, some);
        for (int64_t k = 0; k < block->n; k++) in_order[k] = k;
        values = some, at = in_order;
    }
    if (problem) return problem;
    if (page->entries.count < 0) {
        lc_take_scatter(values, width, block, at, sink->values);
        return LC_OK;
    }
    for (int64_t k = 0; k < block->n && !problem; k++)
        problem = lc_take_entry(page, lc_code_at(values, width, at[k]), block->levels[k] != 0, sink, block->to[k]);
    return problem;
}

static int lc_take_block_texts(const lc_take_page *page, lc_take_chunk *chunk, const lc_take_block *block,
                               lc_take_sink *sink) {
    lc_bytes stored, buffer = chunk->open.values[page->text.buffer];
    int problem = LC_OK;
    for (int64_t k = 0; k < block->n && !problem; k++) {
        if (block->levels[k]) {
            lc_take_no_text(sink, block->to[k]);
            continue;
        }
        problem = lc_variable_chunk_value(buffer, chunk->count, page->text.wide, block->at[k], &stored);
        if (!problem) problem = lc_take_ordered(&chunk->order, block->at[k], stored.data, stored.data + stored.size);
        if (!problem) problem = lc_take_text(page->text.table, stored, sink, block->to[k]);
    }
    return problem;
}

static int lc_take_from_chunk(const lc_take_page *page, lc_take_chunk *chunk, const lc_take_span *span,
                              int64_t i, int64_t stop, int64_t first, lc_take_sink *sink) {
    lc_take_block block;
    int problem = LC_OK;
    while (i < stop && !problem) {
        block.n = stop - i < LC_TAKE_BLOCK ? stop - i : LC_TAKE_BLOCK;
        for (int64_t k = 0; k < block.n; k++) {
            block.at[k] = span->rows[i + k] - first;
            block.to[k] = lc_take_place(span, i + k);
        }
        problem = lc_take_block_levels(page, chunk, &block, sink);
        if (!problem && page->width < 0 && page->entries.count < 0)
            problem = lc_take_block_texts(page, chunk, &block, sink);
        else if (!problem)
            problem = lc_take_block_fixed(page, chunk, &block, sink);
        i += block.n;
    }
    return problem;
}

static int lc_take_chunks(const lc_take_page *page, const lc_take_span *span, lc_take_sink *sink) {
    const lc_chunk_table *table = &page->chunks->table;
    int64_t width = span->n ? span->rows[span->n - 1] - span->rows[0] : 0;
    int64_t ahead = lc_take_waits(page, span->n, width) ? 0 : span->n;
    lc_take_chunk chunk;
    if (page->levels.kind != LC_LEVEL_NONE && lc_take_nullable(sink)) return LC_NO_MEMORY;
    for (int64_t i = 0, stop; i < span->n; i = stop) {
        int64_t row = span->rows[i] - span->base;
        if ((uint64_t)row >= (uint64_t)table->items) return LC_CHUNK_ITEM;
        if (i >= ahead) {
            ahead = span->n - i < LC_AHEAD_ROWS ? span->n : i + LC_AHEAD_ROWS;
            lc_take_ahead(page, span->rows + i, ahead - i, span->base);
        }
        int64_t number = lc_chunk_find(table, row), first = table->firsts[number] + span->base;
        chunk.count = table->firsts[number + 1] - table->firsts[number];
        for (stop = i + 1; stop < span->n; stop++)
            if ((uint64_t)(span->rows[stop] - first) >= (uint64_t)chunk.count) break;
        int problem = lc_chunk_open(page->chunks, number, &chunk.open);
        if (!problem) problem = lc_take_chunk_open(page, &chunk, stop - i, sink);
        if (!problem) problem = lc_take_from_chunk(page, &chunk, span, i, stop, first, sink);
        if (problem) return problem;
    }
    return LC_OK;
}

/* ---- zipped items ---- */

LC_INLINE void lc_take_zipped_value(const lc_take_page *page, const uint8_t *value, lc_take_sink *sink, int64_t place) {
    if (page->width == 0) lc_set_bit(sink->values, place, *value != 0);
    else lc_copy_bytes(sink->values + place * page->width, value, page->width);
}

/* Items of one size; a boolean is a byte. */
static int lc_take_zipped_fixed(const lc_take_page *page, const lc_take_span *span, lc_take_sink *sink) {
    const lc_zip *zip = &page->zip;
    int64_t size = zip->control + zip->width, total = page->data.size / size;
    int problem = LC_OK;
    for (int64_t i = 0; i < span->n && !problem; i++) {
        int64_t row = span->rows[i] - span->base, place = lc_take_place(span, i);
        if ((uint64_t)row >= (uint64_t)total) return LC_CHUNK_ITEM;
        if (i + LC_AHEAD_ROWS < span->n) LC_PREFETCH(page->data.data, (span->rows[i + LC_AHEAD_ROWS] - span->base) * size);
        const uint8_t *item = page->data.data + row * size;
        uint64_t level = lc_zip_word(item, zip->control);
        if (level > (uint64_t)zip->top_def) return LC_BAD_LEVEL;
        lc_take_zipped_value(page, item + zip->control, sink, place);
        if (level) problem = lc_take_null(page, sink, place);
    }
    return problem;
}

/* Items that vary in size: the index has the begin and end of each row, which is one item. */
static int lc_take_zipped_texts(const lc_take_page *page, const lc_take_span *span, lc_take_sink *sink) {
    int64_t entries = page->index.size / page->index_width, begin, end, where;
    lc_take_order order = {-1, NULL};
    lc_zip_item item;
    for (int64_t i = 0; i < span->n; i++) {
        int64_t row = span->rows[i] - span->base, place = lc_take_place(span, i);
        if ((uint64_t)row >= (uint64_t)page->rows) return LC_CHUNK_ITEM;
        int problem = lc_zip_row_ranges(page->index.data, page->index_width, 0, entries, &row, 1, page->data.size,
                                        &begin, &end, &where);
        if (problem) return problem;
        const uint8_t *p = page->data.data + begin, *stop = page->data.data + end;
        problem = lc_take_ordered(&order, row, p, stop);
        if (!problem) problem = lc_zip_next(&page->zip, &p, stop, &item);
        if (!problem && p != stop) problem = LC_BAD_ROW;
        if (problem) return problem;
        if (item.def) {
            lc_take_no_text(sink, place);
            problem = lc_take_null(page, sink, place);
        } else {
            problem = lc_take_text(page->zip.table, item.value, sink, place);
        }
        if (problem) return problem;
    }
    return LC_OK;
}

/* ---- one value for all rows ---- */

LC_INLINE void lc_take_the_value(const lc_take_page *page, lc_take_sink *sink, int64_t place) {
    if (page->width < 0) sink->texts[place] = page->value;
    else lc_take_zipped_value(page, page->value.data, sink, place);
}

static int lc_take_constant(const lc_take_page *page, const lc_take_span *span, lc_take_sink *sink) {
    int problem = LC_OK;
    for (int64_t i = 0; i < span->n && !problem; i++) {
        int64_t row = span->rows[i] - span->base, place = lc_take_place(span, i);
        if ((uint64_t)row >= (uint64_t)page->rows) return LC_CHUNK_ITEM;
        uint16_t level = page->kind == LC_TAKE_NULLS ? 1 : page->definition ? lc_once_u16(page->definition + 2 * row) : 0;
        if (level > 1) return LC_BAD_LEVEL;
        if (level) lc_take_nothing(page, sink, place);
        else lc_take_the_value(page, sink, place);
        if (level) problem = lc_take_null(page, sink, place);
    }
    return problem;
}

/* Estimate the stored size of a row in bytes, at least 1. */
static int64_t lc_take_expected(const lc_take_page *page) {
    int64_t size = 0;
    if (page->kind == LC_TAKE_CHUNKS) size = page->chunks->table.starts[page->chunks->table.count];
    if (page->kind == LC_TAKE_ZIPPED) size = page->data.size;
    int64_t each = size / (page->rows ? page->rows : 1) + 1;
    return page->kind == LC_TAKE_CONSTANT ? page->value.size + 1 : each;
}

/* Take the values of the rows of a span. The caller guarantees that their places are inside the output. */
static int lc_take_from_page(const lc_take_page *page, const lc_take_span *span, lc_take_sink *sink) {
    switch (page->kind) {
        case LC_TAKE_CHUNKS: return lc_take_chunks(page, span, sink);
        case LC_TAKE_ZIPPED:
            if (page->zip.top_def && lc_take_nullable(sink)) return LC_NO_MEMORY;
            return page->width < 0 ? lc_take_zipped_texts(page, span, sink) : lc_take_zipped_fixed(page, span, sink);
        default:
            if ((page->kind == LC_TAKE_NULLS || page->definition) && lc_take_nullable(sink)) return LC_NO_MEMORY;
            return lc_take_constant(page, span, sink);
    }
}

#endif
