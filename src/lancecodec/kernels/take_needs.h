/* The bytes of a page that a take of some rows reads, for pages of files that are loaded block by block. */
#ifndef LANCECODEC_TAKE_NEEDS_H
#define LANCECODEC_TAKE_NEEDS_H

#include "blocks.h"
#include "take_column.h"

LC_INLINE int lc_need_chunk(const lc_chunks *chunks, lc_blocks *blocks, int64_t number, lc_needs *needs) {
    const int64_t *starts = chunks->table.starts;
    if (chunks->data[number] == NULL) return LC_CHUNK_MISSING;
    return lc_need(needs, blocks, chunks->data[number], starts[number + 1] - starts[number]);
}

/* Chunks of some values; rows[i] - base is the value. The order matters for speed only. */
static int lc_need_values(const lc_chunks *chunks, lc_blocks *blocks, const int64_t *rows, int64_t n, int64_t base,
                          lc_needs *needs) {
    const lc_chunk_table *table = &chunks->table;
    for (int64_t i = 0; i < n;) {
        int64_t row = rows[i] - base;
        if ((uint64_t)row >= (uint64_t)table->items) return LC_CHUNK_ITEM;
        int64_t number = lc_chunk_find(table, row);
        uint64_t first = (uint64_t)(table->firsts[number] + base);
        uint64_t count = (uint64_t)(table->firsts[number + 1] - table->firsts[number]);
        int problem = lc_need_chunk(chunks, blocks, number, needs);
        if (problem) return problem;
        while (i < n && (uint64_t)rows[i] - first < count) i++;
    }
    return LC_OK;
}

/* Chunks of some rows of lists; see lc_rows_take for `started`. A row that is the last one to start in a chunk may
 * continue in the next one. */
static int lc_need_lists(const lc_chunks *chunks, lc_blocks *blocks, const int64_t *started, const int64_t *rows,
                         int64_t n, int64_t base, lc_needs *needs) {
    int64_t count = chunks->table.count, known = -1;
    for (int64_t i = 0; i < n; i++) {
        int64_t row = rows[i] - base, chunk = 0;
        if (row < 0 || row >= started[count]) return LC_CHUNK_ITEM;
        for (int64_t step = count; step > 1;) {
            int64_t half = step >> 1;
            chunk = started[chunk + half] <= row ? chunk + half : chunk;
            step -= half;
        }
        for (;; chunk++) {
            int problem = chunk == known ? LC_OK : lc_need_chunk(chunks, blocks, chunk, needs);
            if (problem) return problem;
            known = chunk;
            if (chunk + 1 == count || started[chunk + 1] != row + 1) break;
        }
    }
    return LC_OK;
}

static int lc_need_zipped_fixed(const lc_take_page *page, const lc_take_span *span, lc_needs *needs) {
    int64_t size = page->zip.control + page->zip.width, total = page->data.size / size;
    for (int64_t i = 0; i < span->n; i++) {
        int64_t row = span->rows[i] - span->base;
        if ((uint64_t)row >= (uint64_t)total) return LC_CHUNK_ITEM;
        int problem = lc_need(needs, page->blocks, page->data.data + row * size, size);
        if (problem) return problem;
    }
    return LC_OK;
}

static int lc_need_zipped_index(const lc_take_page *page, const lc_take_span *span, lc_needs *needs) {
    for (int64_t i = 0; i < span->n; i++) {
        int64_t row = span->rows[i] - span->base, width = page->index_width;
        if ((uint64_t)row >= (uint64_t)page->rows) return LC_CHUNK_ITEM;
        int problem = lc_need(needs, page->blocks, page->index.data + row * width, 2 * width);
        if (problem) return problem;
    }
    return LC_OK;
}

/* Rows whose places are in the index, which is loaded. */
static int lc_need_zipped_texts(const lc_take_page *page, const lc_take_span *span, lc_needs *needs) {
    int64_t entries = page->index.size / page->index_width, begin, end, where;
    for (int64_t i = 0; i < span->n; i++) {
        int64_t row = span->rows[i] - span->base;
        int problem = lc_zip_row_ranges(page->index.data, page->index_width, 0, entries, &row, 1, page->data.size,
                                        &begin, &end, &where);
        if (!problem) problem = lc_need(needs, page->blocks, page->data.data + begin, end - begin);
        if (problem) return problem;
    }
    return LC_OK;
}

/* Add what a take of the rows of a span needs. If blocks are missing, load them and ask again: what is in them may tell
 * that others are needed too. */
static int lc_take_needs(const lc_take_page *page, const lc_take_span *span, lc_needs *needs) {
    int64_t missing = needs->missing;
    if (page->kind == LC_TAKE_CHUNKS && page->lists)
        return lc_need_lists(page->chunks, page->blocks, page->lists->started, span->rows, span->n, span->base, needs);
    if (page->kind == LC_TAKE_CHUNKS)
        return lc_need_values(page->chunks, page->blocks, span->rows, span->n, span->base, needs);
    if (page->kind != LC_TAKE_ZIPPED) return LC_OK;
    if (page->width >= 0) return lc_need_zipped_fixed(page, span, needs);
    int problem = lc_need_zipped_index(page, span, needs);
    if (!problem && needs->missing == missing) problem = lc_need_zipped_texts(page, span, needs);
    return problem;
}

/* What a take of a column needs. */
static int lc_column_needs(const lc_column_rows *rows, const lc_column_segments *segments, lc_needs *needs) {
    int problem = LC_OK;
    for (int64_t s = 0; s < segments->count && !problem; s++) {
        if (segments->at[s].page == NULL || segments->at[s].page->blocks == NULL) continue;
        lc_take_span span = lc_column_span(rows, segments->at + s);
        problem = lc_take_needs(segments->at[s].page, &span, needs);
    }
    return problem;
}

#endif
