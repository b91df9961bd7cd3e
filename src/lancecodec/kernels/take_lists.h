/* Rows of lists: first their levels, which give the length of each and the position of its items, then the items, which
 * are written to their places as separate rows. */
#ifndef LANCECODEC_TAKE_LISTS_H
#define LANCECODEC_TAKE_LISTS_H

#include "miniblock_rows.h"
#include "take.h"

/* State of the lists of a column, in the order in which they are read. */
typedef struct {
    int64_t n;
    int64_t *begins, *counts; /* items of each: the first one in its page, and how many */
    int64_t *offsets;         /* by place: n + 1 offsets of the items in the output */
    lc_row_levels levels;     /* entries of all, one after the other */
    int64_t *rows, *places;   /* of the items of a page */
    int64_t room;             /* capacity of the same */
} lc_list_work;

static inline void lc_list_close(lc_list_work *work) {
    free(work->begins);
    free(work->rows);
    free(work->levels.rep);
    free(work->levels.def);
}

static inline int lc_list_open(lc_list_work *work, int64_t n) {
    memset(work, 0, sizeof *work);
    work->n = n;
    work->begins = (int64_t *)malloc((size_t)(3 * n + 1) * sizeof(int64_t));
    if (work->begins == NULL) return LC_NO_MEMORY;
    work->counts = work->begins + n;
    work->offsets = work->counts + n;
    return LC_OK;
}

static int lc_list_room(lc_list_work *work, int64_t items) {
    if (work->room >= items) return LC_OK;
    free(work->rows);
    work->room = 0;
    work->rows = (int64_t *)malloc((size_t)(2 * items) * sizeof(int64_t));
    if (work->rows == NULL) return LC_NO_MEMORY;
    work->places = work->rows + items;
    work->room = items;
    return LC_OK;
}

/* A list without items is one entry; it must be null or empty. */
LC_INLINE int lc_list_bare(const lc_take_lists *lists, int64_t level, lc_take_sink *sink, int64_t place) {
    if (level && level == lists->empty) return LC_OK;
    if (level == 0 || level != lists->null_list || lists->required) return LC_BAD_LEVEL;
    lc_set_bit(sink->validity, place, 0);
    sink->nulls++;
    return LC_OK;
}

/* Process the entries of the lists of a span, which are those of work->levels from `entry` on. */
static int lc_list_look(const lc_take_lists *lists, const lc_take_span *span, lc_list_work *work, int64_t entry,
                        lc_take_sink *sink) {
    const uint8_t *def = work->levels.def;
    for (int64_t i = 0; i < span->n; i++) {
        int64_t at = span->first + i, count = work->counts[at], entries = count ? count : 1;
        int64_t place = lc_take_place(span, i), top = def ? lists->codecs.visible : 0;
        if (entries > work->levels.entries - entry) return LC_BAD_COUNT;
        if (lc_load_u16(work->levels.rep + 2 * entry) != 1) return LC_BAD_LEVEL;
        for (int64_t k = 1; k < entries; k++)
            if (lc_load_u16(work->levels.rep + 2 * (entry + k))) return LC_BAD_LEVEL;
        if (count == 0) {
            int problem = def ? lc_list_bare(lists, lc_load_u16(def + 2 * entry), sink, place) : LC_BAD_LEVEL;
            if (problem) return problem;
        }
        for (int64_t k = 0; k < count && def; k++)
            if (lc_load_u16(def + 2 * (entry + k)) > top) return LC_BAD_LEVEL;
        work->offsets[place + 1] = count;
        entry += entries;
    }
    return entry == work->levels.entries ? LC_OK : LC_BAD_COUNT;
}

/* Levels of the lists of a span. */
static int lc_list_levels(const lc_take_page *page, const lc_take_span *span, lc_list_work *work, lc_take_sink *sink) {
    lc_level_cursor cursor;
    int64_t entry = work->levels.entries, where;
    memset(&cursor, 0, sizeof cursor);
    if (lc_take_nullable(sink)) return LC_NO_MEMORY;
    if (page->kind == LC_TAKE_NULLS) {
        for (int64_t i = 0; i < span->n; i++) {
            work->counts[span->first + i] = work->offsets[lc_take_place(span, i) + 1] = 0;
            if (lc_take_null(page, sink, lc_take_place(span, i))) return LC_BAD_LEVEL;
        }
        return LC_OK;
    }
    if (page->lists == NULL) return LC_BAD_HEADER;
    if (lc_list_room(work, span->n)) return LC_NO_MEMORY;
    for (int64_t i = 0; i < span->n; i++) work->rows[i] = span->rows[i] - span->base;
    cursor.chunks = page->chunks, cursor.codecs = &page->lists->codecs, cursor.chunk = -1;
    int problem = lc_rows_take(&cursor, page->lists->started, work->rows, span->n, &work->levels,
                               work->begins + span->first, work->counts + span->first, &where);
    free(cursor.rep);
    free(cursor.def);
    return problem ? problem : lc_list_look(page->lists, span, work, entry, sink);
}

/* Convert lengths to offsets. LC_NO_SPACE: they do not fit 32 bits. */
static int lc_list_places(lc_list_work *work, int wide, uint8_t *out) {
    int64_t at = 0, limit = wide ? (int64_t)1 << 40 : INT32_MAX;
    work->offsets[0] = 0;
    lc_store_offset(out, wide, 0, 0);
    for (int64_t i = 0; i < work->n; i++) {
        at += work->offsets[i + 1];
        if (at > limit) return LC_NO_SPACE;
        work->offsets[i + 1] = at;
        lc_store_offset(out, wide, i + 1, at);
    }
    return LC_OK;
}

/* Take the items of the lists of a span. Their nulls are in the levels from *entry on, which is moved behind them. */
static int lc_list_items(const lc_take_page *page, const lc_take_span *span, lc_list_work *work, int64_t *entry,
                         lc_take_sink *items) {
    int64_t total = 0, k = 0;
    int problem = LC_OK;
    if (page->kind == LC_TAKE_NULLS) return LC_OK;
    const uint8_t *def = page->lists->null_item ? work->levels.def : NULL;
    for (int64_t i = 0; i < span->n; i++) total += work->counts[span->first + i];
    if (lc_list_room(work, total) || (def && lc_take_nullable(items))) return LC_NO_MEMORY;
    for (int64_t i = 0; i < span->n && !problem; i++) {
        int64_t at = span->first + i, count = work->counts[at], to = work->offsets[lc_take_place(span, i)];
        for (int64_t j = 0; j < count && !problem; j++, k++) {
            work->rows[k] = work->begins[at] + j;
            work->places[k] = to + j;
            if (def && lc_load_u16(def + 2 * (*entry + j)) == page->lists->null_item)
                problem = lc_take_null(page, items, to + j);
        }
        *entry += count ? count : 1;
    }
    if (problem) return problem;
    lc_take_span span_of_items = {work->rows, work->places, total, 0, 0};
    return lc_take_from_page(page, &span_of_items, items);
}

#endif
