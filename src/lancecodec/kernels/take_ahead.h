/* Loading of the bytes of several rows of a take at the same time.
 *
 * Rows of a sparse take lie in different chunks, and each waits two or three times for memory: for the header of its
 * chunk, for its value, and for its text. Their bytes are asked for in front, step by step for a group of rows, so that
 * the waits of the group overlap. Nothing is checked that the take does not check again: from forged bytes follow
 * useless addresses, which a prefetch ignores. */
#ifndef LANCECODEC_TAKE_AHEAD_H
#define LANCECODEC_TAKE_AHEAD_H

#include "take_page.h"

/* Rows of a group. */
#define LC_AHEAD_ROWS 16
/* Bytes of a page that the caches nearest to the processor do not hold; tests choose fewer. */
#ifndef LC_AHEAD_BYTES
#define LC_AHEAD_BYTES (64 << 10)
#endif
/* From this share of the rows on, most bytes are needed, which the hardware prefetches. */
#define LC_AHEAD_SHARE 12

/* True if `wanted` of `n` neighbouring rows are few of each chunk, and lie outside of the nearest caches. */
LC_INLINE int lc_take_waits(const lc_take_page *page, int64_t wanted, int64_t n) {
    const lc_chunk_table *table = &page->chunks->table;
    if (wanted < 2 || page->chunks->plain || table->starts[table->count] < LC_AHEAD_BYTES) return 0;
    return wanted < n / LC_AHEAD_SHARE;
}

/* Prefetch the bytes that locate value `at` of a chunk of n values. */
LC_INLINE void lc_take_ahead_value(const lc_take_page *page, const lc_chunk *chunk, int64_t n, int64_t at) {
    if (page->width < 0 && page->entries.count < 0) {
        LC_PREFETCH(chunk->values[page->text.buffer].data, at * lc_offset_size(page->text.wide));
        return;
    }
    const lc_bytes *buffer = chunk->values + page->values.buffer;
    int bits = (int)page->values.bits, width, shift;
    if (page->values.kind == LC_VALUE_FLAT) {
        LC_PREFETCH(buffer->data, at * bits / 8);
    } else if (page->values.kind == LC_VALUE_INLINE) {
        if (lc_inline_width(buffer->data, buffer->size, n, bits, &width) || width == 0) return;
        LC_PREFETCH(buffer->data, bits / 8 + lc_fl_place(bits, width, at, &shift));
    } else if (page->values.kind == LC_VALUE_RLE) {
        LC_PREFETCH(buffer[1].data, 0);
    }
}

/* Prefetch the begin of the text at `at`, whose offset is at hand by now. */
LC_INLINE void lc_take_ahead_text(const lc_take_page *page, const lc_chunk *chunk, int64_t n, int64_t at) {
    lc_bytes value;
    if (lc_variable_chunk_value(chunk->values[page->text.buffer], n, page->text.wide, at, &value)) return;
    LC_PREFETCH(value.data, 0);
    LC_PREFETCH(value.data, value.size);
}

/* Ask for the bytes of up to LC_AHEAD_ROWS rows, each less `base`. */
static void lc_take_ahead(const lc_take_page *page, const int64_t *rows, int64_t n, int64_t base) {
    const lc_chunks *chunks = page->chunks;
    const lc_chunk_table *table = &chunks->table;
    int64_t numbers[LC_AHEAD_ROWS], at[LC_AHEAD_ROWS];
    lc_chunk open[LC_AHEAD_ROWS];
    for (int64_t k = 0; k < n; k++) {
        int64_t row = rows[k] - base;
        if ((uint64_t)row >= (uint64_t)table->items) return;
        numbers[k] = lc_chunk_find(table, row);
        at[k] = row - table->firsts[numbers[k]];
        LC_PREFETCH(chunks->data[numbers[k]], 0);
    }
    for (int64_t k = 0; k < n; k++) {
        int64_t values = table->firsts[numbers[k] + 1] - table->firsts[numbers[k]];
        if (lc_chunk_parts(chunks, numbers[k], open + k)) numbers[k] = -1;
        else lc_take_ahead_value(page, open + k, values, at[k]);
    }
    for (int64_t k = 0; k < n && page->width < 0 && page->entries.count < 0; k++) {
        if (numbers[k] < 0) continue;
        lc_take_ahead_text(page, open + k, table->firsts[numbers[k] + 1] - table->firsts[numbers[k]], at[k]);
    }
}

#endif
