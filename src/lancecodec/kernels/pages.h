/* Access to single values of paged columns. */
#ifndef LANCECODEC_PAGES_H
#define LANCECODEC_PAGES_H

#include "portable.h"

/* Rows of the pages: page k holds rows [starts[k], starts[k + 1]). starts has an entry more than usual so that page 0
 * exists, empty, even when there are no pages. */
typedef struct {
    const int64_t *starts;
    int64_t pages, rows;
} lc_page_map;

/* Index of the page that holds `row`: the last start <= row. Empty pages are skipped, because the last of equal starts
 * is used. `page` is the page of the previous row; -1 means the row does not exist. */
LC_INLINE int64_t lc_find_page(const lc_page_map *map, int64_t page, int64_t row) {
    const int64_t *starts = map->starts;
    if (row >= starts[page] && row < starts[page + 1]) return page;
    if (row < 0 || row >= map->rows) return -1;
    int64_t low = 0;
    for (int64_t left = map->pages; left > 1; left -= left >> 1) /* no branch to mispredict for random rows */
        low = starts[low + (left >> 1)] <= row ? low + (left >> 1) : low;
    return low;
}

typedef struct {
    const uint8_t *values;   /* NULL: all null */
    const uint8_t *validity; /* NULL: all valid */
} lc_fixed_page;

/* width 0 stands for bits. validity may be NULL. Returns the position of the first row that does not exist, or -1. */
LC_INLINE int64_t lc_fixed_pages_take_as(const lc_page_map *map, const lc_fixed_page *pages, const int64_t *rows, int64_t n,
                                   int64_t width, uint8_t *LC_RESTRICT out, uint8_t *LC_RESTRICT validity,
                                   int64_t *nulls) {
    int64_t page = 0, missing = 0;
    unsigned value_bits = 0, valid_bits = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t row = rows[i];
        page = lc_find_page(map, page, row);
        if (page < 0) return i;
        const lc_fixed_page *at = pages + page;
        int64_t index = row - map->starts[page];
        if (width == 0) {
            value_bits |= at->values ? (unsigned)lc_get_bit(at->values, index) << (i & 7) : 0;
        } else if (at->values) {
            memcpy(out + i * width, at->values + index * width, (size_t)width);
        } else {
            memset(out + i * width, 0, (size_t)width);
        }
        if (validity) {
            unsigned valid = at->values && (!at->validity || lc_get_bit(at->validity, index));
            LC_OPAQUE(valid); /* counted and written: a mapped file may change */
            missing += 1 - (int64_t)valid;
            valid_bits |= valid << (i & 7);
        }
        if ((i & 7) == 7 || i == n - 1) {
            if (width == 0) out[i >> 3] = (uint8_t)value_bits;
            if (validity) validity[i >> 3] = (uint8_t)valid_bits;
            value_bits = valid_bits = 0;
        }
    }
    *nulls = missing;
    return -1;
}

#define LC_TAKE_CASE(W)                                                                        \
    case W:                                                                                    \
        return validity ? lc_fixed_pages_take_as(map, pages, rows, n, W, out, validity, nulls)       \
                        : lc_fixed_pages_take_as(map, pages, rows, n, W, out, NULL, nulls);

static inline int64_t lc_fixed_pages_take(const lc_page_map *map, const lc_fixed_page *pages, const int64_t *rows, int64_t n,
                                    int64_t width, uint8_t *out, uint8_t *validity, int64_t *nulls) {
    switch (width) {
        LC_TAKE_CASE(0)
        LC_TAKE_CASE(1)
        LC_TAKE_CASE(2)
        LC_TAKE_CASE(4)
        LC_TAKE_CASE(8)
        LC_TAKE_CASE(16)
    }
    return lc_fixed_pages_take_as(map, pages, rows, n, width, out, validity, nulls);
}

typedef struct {
    const uint8_t *ends;  /* u64 per value (of a dictionary page: per dictionary item); NULL: all null */
    const uint8_t *codes; /* u8 per value for a dictionary page (0 is null), else NULL */
    const uint8_t *data;  /* value bytes; NULL for a list column */
    uint64_t adjustment;
    uint64_t limit;  /* items (bytes) the page covers */
    int64_t entries; /* number of ends */
    int64_t base;    /* position of the page's first item in the item column */
    uint8_t checked; /* whether its ends were checked not to decrease */
} lc_ends_page;

typedef struct {
    int64_t begin, length; /* within the items of the page */
    int valid;
} lc_span;

/* Resolve value `index` of a page; 0 if the page contradicts itself. */
LC_INLINE int lc_find_span(const lc_ends_page *page, int64_t index, lc_span *span) {
    uint64_t begin = 0, end;
    span->begin = span->length = 0;
    span->valid = 0;
    if (page->codes) {
        uint8_t code = lc_once_u8(page->codes + index);
        if (code == 0) return 1;
        index = code - 1;
        if (index >= page->entries) return 0;
    } else if (!page->ends) {
        return 1;
    }
    if (index > 0) {
        begin = lc_once_u64(page->ends + 8 * (index - 1));
        if (begin >= page->adjustment) begin -= page->adjustment;
    }
    end = lc_once_u64(page->ends + 8 * index);
    span->valid = end < page->adjustment;
    if (!span->valid) end -= page->adjustment;
    if (begin > end || end > page->limit) return 0;
    span->begin = (int64_t)begin;
    span->length = (int64_t)(end - begin);
    return 1;
}

/* Check that the ends of a page increase up to its limit at most: then its values do not overlap. Reading all of them
 * is worthwhile only for a large take. Threads that do this at the same time find and write the same result. */
static inline int lc_ends_increase(lc_ends_page *page) {
    uint64_t previous = 0, decrease = 0, end;
    if (page->checked || !page->ends) return 1;
    for (int64_t i = 0; i < page->entries; i++) {
        end = lc_load_u64(page->ends + 8 * i);
        if (end >= page->adjustment) end -= page->adjustment;
        decrease |= end < previous;
        previous = end;
    }
    if (decrease || previous > page->limit) return 0;
    page->checked = 1;
    return 1;
}

enum { LC_TAKE_OK = 0, LC_TAKE_ROW = 1, LC_TAKE_PAGE = 2, LC_TAKE_OVERFLOW = 3, LC_TAKE_OFFSETS = 4, LC_TAKE_NO_DATA = 5 };

/* Offsets, validity and (begins may be NULL) positions of the taken values. `where`: the invalid row or page. */
static inline int lc_ends_take_offsets(const lc_page_map *map, lc_ends_page *pages, const int64_t *rows, int64_t n,
                                       int wide, uint8_t *offsets, uint8_t *validity, int64_t *begins, int64_t *total,
                                       int64_t *nulls, int64_t *where) {
    const int64_t most = wide ? INT64_MAX : INT32_MAX;
    int64_t page = 0, sum = 0, missing = 0;
    uint64_t stored = 0;
    unsigned valid_bits = 0;
    lc_span span;
    lc_store_offset(offsets, wide, 0, 0);
    for (int64_t i = 0; i < n; i++) {
        int64_t row = rows[i];
        *where = row;
        page = lc_find_page(map, page, row);
        if (page < 0) return LC_TAKE_ROW;
        if (!lc_find_span(pages + page, row - map->starts[page], &span)) {
            *where = page;
            return LC_TAKE_PAGE;
        }
        if (span.valid) {
            if (span.length > most - sum) return LC_TAKE_OVERFLOW;
            sum += span.length;
        }
        lc_store_offset(offsets, wide, i + 1, sum);
        missing += !span.valid;
        valid_bits |= (unsigned)span.valid << (i & 7);
        if ((i & 7) == 7 || i == n - 1) {
            validity[i >> 3] = (uint8_t)valid_bits;
            valid_bits = 0;
        }
        if (begins) begins[i] = pages[page].base + span.begin;
    }
    for (int64_t k = 0; k < map->pages && stored < (uint64_t)sum; k++) stored += pages[k].limit;
    if ((uint64_t)sum > stored) {
        /* More items than exist: repeated rows, codes of a dictionary, or values that were forged to overlap. */
        page = 0;
        for (int64_t i = 0; i < n; i++) {
            page = lc_find_page(map, page, rows[i]);
            if (page < 0) return LC_TAKE_ROW;
            *where = page;
            if (!lc_ends_increase(pages + page)) return LC_TAKE_PAGE;
        }
    }
    *total = sum;
    *nulls = missing;
    return LC_TAKE_OK;
}

static inline int lc_ends_take_bytes(const lc_page_map *map, const lc_ends_page *pages, const int64_t *rows, int64_t n,
                                     int wide, const uint8_t *offsets, uint8_t *out, int64_t out_size, int64_t *where) {
    int64_t page = 0;
    lc_span span;
    for (int64_t i = 0; i < n; i++) {
        int64_t low = lc_load_offset(offsets, wide, i), high = lc_load_offset(offsets, wide, i + 1);
        int64_t row = rows[i];
        *where = row;
        page = lc_find_page(map, page, row);
        if (page < 0) return LC_TAKE_ROW;
        if (!lc_find_span(pages + page, row - map->starts[page], &span)) {
            *where = page;
            return LC_TAKE_PAGE;
        }
        if (low < 0 || high < low || high > out_size || high - low != (span.valid ? span.length : 0))
            return LC_TAKE_OFFSETS;
        if (high == low) continue;
        if (!pages[page].data) {
            *where = page;
            return LC_TAKE_NO_DATA;
        }
        lc_copy_bytes(out + low, pages[page].data + span.begin, span.length);
    }
    return LC_TAKE_OK;
}

#endif
