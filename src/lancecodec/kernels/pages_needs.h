/* The bytes of pages of version 2.0 that a take of some rows reads, for files that are loaded block by block. */
#ifndef LANCECODEC_PAGES_NEEDS_H
#define LANCECODEC_PAGES_NEEDS_H

#include "blocks.h"
#include "pages.h"

/* Require n bytes; those outside of the file were read or decoded already. */
LC_INLINE int lc_pages_need(lc_needs *needs, lc_blocks *blocks, const uint8_t *p, int64_t n) {
    if ((uint64_t)((uintptr_t)p - (uintptr_t)blocks->base) >= (uint64_t)blocks->size) return LC_OK;
    return lc_need(needs, blocks, p, n);
}

/* Add what lc_fixed_pages_take reads. Rows that do not exist are left to it. */
static int lc_fixed_pages_needs(const lc_page_map *map, const lc_fixed_page *pages, const int64_t *rows, int64_t n,
                                int64_t width, lc_blocks *blocks, lc_needs *needs) {
    int64_t page = 0;
    int problem = LC_OK;
    for (int64_t i = 0; i < n && !problem; i++) {
        page = lc_find_page(map, page, rows[i]);
        if (page < 0) return LC_OK;
        const lc_fixed_page *at = pages + page;
        int64_t index = rows[i] - map->starts[page];
        if (at->values && width) problem = lc_pages_need(needs, blocks, at->values + index * width, width);
        else if (at->values) problem = lc_pages_need(needs, blocks, at->values + (index >> 3), 1);
        if (at->validity && !problem) problem = lc_pages_need(needs, blocks, at->validity + (index >> 3), 1);
    }
    return problem;
}

/* Add what a value needs: its code, then its ends, then its bytes, which are known only if what precedes is loaded. */
LC_INLINE int lc_ends_need(const lc_ends_page *page, int64_t index, lc_blocks *blocks, lc_needs *needs) {
    int64_t missing = needs->missing, item = index;
    lc_span span;
    int problem = LC_OK;
    if (page->codes) {
        problem = lc_pages_need(needs, blocks, page->codes + index, 1);
        if (problem || needs->missing != missing) return problem;
        item = (int64_t)lc_once_u8(page->codes + index) - 1;
        if (item < 0 || item >= page->entries) return LC_OK;
    }
    if (page->ends) {
        int64_t first = item ? item - 1 : 0;
        problem = lc_pages_need(needs, blocks, page->ends + 8 * first, 8 * (item - first + 1));
    }
    if (problem || needs->missing != missing || !lc_find_span(page, index, &span)) return problem;
    return page->data ? lc_pages_need(needs, blocks, page->data + span.begin, span.length) : LC_OK;
}

/* Add what lc_ends_take_offsets and lc_ends_take_bytes read. If blocks are missing, load them and ask again. */
static int lc_ends_pages_needs(const lc_page_map *map, const lc_ends_page *pages, const int64_t *rows, int64_t n,
                               lc_blocks *blocks, lc_needs *needs) {
    int64_t page = 0;
    int problem = LC_OK;
    for (int64_t i = 0; i < n && !problem; i++) {
        page = lc_find_page(map, page, rows[i]);
        if (page < 0) return LC_OK;
        problem = lc_ends_need(pages + page, rows[i] - map->starts[page], blocks, needs);
    }
    return problem;
}

#endif
