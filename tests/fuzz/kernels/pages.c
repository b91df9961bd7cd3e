/* Single rows of pages of version 2.0, of fixed and of variable width. */
#include "fuzz.h"
#include "pages.h"

#define MOST 5

static int64_t rows_of(fz_input *in, lc_page_map *map, int64_t *starts) {
    map->pages = fz_upto(in, MOST), starts[0] = 0;
    for (int64_t k = 0; k < map->pages; k++) starts[k + 1] = starts[k] + fz_upto(in, fz_upto(in, 3) ? 60 : 0);
    if (map->pages == 0) starts[1] = 0;
    map->starts = starts, map->rows = starts[map->pages];
    return map->rows;
}

static int64_t *wanted(fz_input *in, int64_t n, int64_t rows) {
    int64_t *at = fz_positions(in, n, rows ? rows : 1);
    if (n && fz_upto(in, 15) == 0) at[fz_upto(in, n - 1)] = (int64_t)fz_word(in, 8);
    return at;
}

static void fixed(fz_input *in, const lc_page_map *map) {
    lc_fixed_page pages[MOST + 1] = {{NULL, NULL}};
    int64_t width = fz_upto(in, 17), n = fz_upto(in, 100), nulls = 0;
    for (int64_t k = 0; k < map->pages; k++) {
        int64_t rows = map->starts[k + 1] - map->starts[k];
        if (fz_upto(in, 7)) pages[k].values = fz_take(in, width ? rows * width : (rows + 7) / 8);
        if (pages[k].values && fz_upto(in, 1)) pages[k].validity = fz_take(in, (rows + 7) / 8);
    }
    int64_t *at = wanted(in, n, map->rows);
    uint8_t *out = fz_out(in, width ? n * width : (n + 7) / 8), *valid = fz_upto(in, 1) ? fz_out(in, (n + 7) / 8) : NULL;
    int64_t bad = lc_fixed_pages_take(map, pages, at, n, width, out, valid, &nulls);
    FZ_CHECK(bad < 0 || (uint64_t)at[bad] >= (uint64_t)map->rows);
    for (int64_t i = 0; i < n && bad < 0; i++) {
        int64_t k = 0;
        while (at[i] >= map->starts[k + 1]) k++;
        int64_t row = at[i] - map->starts[k];
        if (valid) FZ_CHECK(lc_get_bit(valid, i) == (pages[k].values && (!pages[k].validity || lc_get_bit(pages[k].validity, row))));
        if (pages[k].values && width) FZ_CHECK(!memcmp(out + i * width, pages[k].values + row * width, (size_t)width));
        if (pages[k].values && !width) FZ_CHECK(lc_get_bit(out, i) == lc_get_bit(pages[k].values, row));
    }
}

static void ends_page(fz_input *in, lc_ends_page *page, int64_t rows) {
    int wild = fz_upto(in, 15) == 0;
    uint64_t end = 0;
    page->limit = (uint64_t)fz_upto(in, 500), page->adjustment = page->limit + 1 + (uint64_t)fz_upto(in, 9);
    page->base = fz_upto(in, 1000), page->checked = 0;
    if (fz_upto(in, 7)) page->data = fz_take(in, (int64_t)page->limit);
    if (fz_upto(in, 15) == 0) return;
    page->entries = fz_upto(in, 1) ? rows : fz_upto(in, 20);
    uint8_t *ends = fz_out(in, 8 * page->entries);
    for (int64_t i = 0; i < page->entries; i++) {
        end += (uint64_t)fz_upto(in, 12);
        if (end > page->limit) end = page->limit;
        uint64_t stored = end + (fz_upto(in, 3) ? 0 : page->adjustment);
        lc_store_u64(ends + 8 * i, wild && fz_upto(in, 3) == 0 ? fz_word(in, 8) : stored);
    }
    page->ends = ends;
    if (page->entries != rows) page->codes = fz_take(in, rows);
}

static void variable(fz_input *in, const lc_page_map *map) {
    lc_ends_page pages[MOST + 1] = {{0}};
    int wide = (int)fz_upto(in, 1), entry = wide ? 8 : 4;
    int64_t n = fz_upto(in, 100), total = 0, nulls = 0, where = 0;
    for (int64_t k = 0; k < map->pages; k++) ends_page(in, pages + k, map->starts[k + 1] - map->starts[k]);
    int64_t *at = wanted(in, n, map->rows), *begins = (int64_t *)fz_memory(8 * n, 0);
    uint8_t *offsets = fz_out(in, (n + 1) * entry), *valid = fz_out(in, (n + 7) / 8);
    int problem = lc_ends_take_offsets(map, pages, at, n, wide, offsets, valid, begins, &total, &nulls, &where);
    if (problem) return;
    FZ_CHECK(total == lc_load_offset(offsets, wide, n));
    uint8_t *out = fz_out(in, total);
    if (fz_upto(in, 15) == 0) lc_store_offset(offsets, wide, fz_upto(in, n), (int64_t)fz_word(in, 8));
    lc_ends_take_bytes(map, pages, at, n, wide, offsets, out, total, &where);
}

static void fz_target(fz_input *in) {
    int64_t starts[MOST + 2];
    lc_page_map map;
    rows_of(in, &map, starts);
    if (fz_upto(in, 1)) fixed(in, &map);
    else variable(in, &map);
}
