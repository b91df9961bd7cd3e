/* Takes from pages of version 2.0 whose blocks are loaded first, compared with takes from the same pages in memory. */
#include "block_file.h"

#include "pages_needs.h"

#define MOST 4

typedef struct {
    int64_t starts[MOST + 2];
    lc_page_map map;
    int64_t n, *rows;
} fz_rows;

static void rows_of(fz_input *in, fz_rows *r) {
    memset(r, 0, sizeof *r);
    r->map.pages = 1 + fz_upto(in, MOST - 1);
    for (int64_t k = 0; k < r->map.pages; k++) r->starts[k + 1] = r->starts[k] + 1 + fz_upto(in, 60);
    r->map.starts = r->starts, r->map.rows = r->starts[r->map.pages];
    r->n = 1 + fz_upto(in, 40), r->rows = fz_positions(in, r->n, r->map.rows + (fz_upto(in, 15) == 0));
}

/* Append noise to the file; position of it, or -1. */
static int64_t put(fz_input *in, fz_file *file, int64_t size) { return fz_file_put(in, file, fz_take(in, size), size); }

static void fixed(fz_input *in, fz_file *file, fz_rows *r) {
    lc_fixed_page stored[MOST] = {{NULL, NULL}}, pages[MOST] = {{NULL, NULL}};
    int64_t values[MOST], bits[MOST], width = fz_upto(in, 17), nulls = 0, found = 0;
    lc_needs needs = {0};
    for (int64_t k = 0; k < r->map.pages; k++) {
        int64_t rows = r->starts[k + 1] - r->starts[k];
        values[k] = fz_upto(in, 7) ? put(in, file, width ? rows * width : (rows + 7) / 8) : -1;
        bits[k] = values[k] >= 0 && fz_upto(in, 1) ? put(in, file, (rows + 7) / 8) : -1;
    }
    fz_file_close(file);
    for (int64_t k = 0; k < r->map.pages; k++) {
        if (values[k] >= 0) stored[k].values = file->content + values[k], pages[k].values = file->blocks.base + values[k];
        if (bits[k] >= 0) stored[k].validity = file->content + bits[k], pages[k].validity = file->blocks.base + bits[k];
    }
    FZ_CHECK(!lc_fixed_pages_needs(&r->map, pages, r->rows, r->n, width, &file->blocks, &needs));
    fz_file_load(file, &needs);
    int64_t size = width ? r->n * width : (r->n + 7) / 8, valid = (r->n + 7) / 8;
    uint8_t *a = fz_out(in, size), *b = fz_out(in, size), *va = fz_out(in, valid), *vb = fz_out(in, valid);
    int64_t bad = lc_fixed_pages_take(&r->map, stored, r->rows, r->n, width, a, va, &nulls);
    FZ_CHECK(bad == lc_fixed_pages_take(&r->map, pages, r->rows, r->n, width, b, vb, &found));
    fz_file_done(file, &needs);
    FZ_CHECK(bad >= 0 || (nulls == found && !memcmp(a, b, (size_t)size) && !memcmp(va, vb, (size_t)valid)));
}

/* Ends of the values of a page, or of the entries of its dictionary; damaged ones now and then. */
static void ends_of(fz_input *in, lc_ends_page *page, uint8_t *ends) {
    uint64_t end = 0;
    for (int64_t i = 0; i < page->entries; i++) {
        end += (uint64_t)fz_upto(in, 12);
        if (end > page->limit) end = page->limit;
        lc_store_u64(ends + 8 * i, fz_upto(in, 99) == 0 ? fz_word(in, 8) : end + (fz_upto(in, 3) ? 0 : page->adjustment));
    }
}

static void variable(fz_input *in, fz_file *file, fz_rows *r) {
    lc_ends_page stored[MOST] = {{0}}, pages[MOST];
    int64_t data[MOST], ends[MOST], codes[MOST], total = 0, found = 0, nulls, where;
    lc_needs needs = {0};
    int problem, loads = 0;
    for (int64_t k = 0; k < r->map.pages; k++) {
        int64_t rows = r->starts[k + 1] - r->starts[k];
        lc_ends_page *page = stored + k;
        page->limit = (uint64_t)fz_upto(in, 500), page->adjustment = page->limit + 1;
        page->entries = fz_upto(in, 1) ? rows : fz_upto(in, 20);
        codes[k] = page->entries == rows ? -1 : put(in, file, rows);
        uint8_t *made = fz_memory(8 * page->entries, 0);
        ends_of(in, page, made);
        ends[k] = fz_file_put(in, file, made, 8 * page->entries);
        data[k] = put(in, file, (int64_t)page->limit);
    }
    fz_file_close(file);
    memcpy(pages, stored, sizeof pages);
    for (int64_t k = 0; k < r->map.pages; k++) {
        stored[k].ends = file->content + ends[k], pages[k].ends = file->blocks.base + ends[k];
        stored[k].data = file->content + data[k], pages[k].data = file->blocks.base + data[k];
        if (codes[k] >= 0) stored[k].codes = file->content + codes[k], pages[k].codes = file->blocks.base + codes[k];
    }
    do problem = lc_ends_pages_needs(&r->map, pages, r->rows, r->n, &file->blocks, &needs);
    while (!problem && fz_file_load(file, &needs) && ++loads < 4);
    FZ_CHECK(!problem && loads < 4);
    uint8_t *a = fz_out(in, 8 * (r->n + 1)), *b = fz_out(in, 8 * (r->n + 1)), *valid = fz_out(in, (r->n + 7) / 8);
    int expected = lc_ends_take_offsets(&r->map, stored, r->rows, r->n, 1, a, valid, NULL, &total, &nulls, &where);
    problem = lc_ends_take_offsets(&r->map, pages, r->rows, r->n, 1, b, valid, NULL, &found, &nulls, &where);
    FZ_CHECK(problem == expected || (!expected && problem == LC_TAKE_PAGE)); /* all ends are checked, but not loaded */
    if (!problem) {
        uint8_t *x = fz_out(in, total), *y = fz_out(in, total);
        FZ_CHECK(total == found && !memcmp(a, b, (size_t)(8 * (r->n + 1))));
        FZ_CHECK(!lc_ends_take_bytes(&r->map, stored, r->rows, r->n, 1, a, x, total, &where));
        FZ_CHECK(!lc_ends_take_bytes(&r->map, pages, r->rows, r->n, 1, b, y, total, &where) && !memcmp(x, y, (size_t)total));
    }
    fz_file_done(file, &needs);
}

static void fz_target(fz_input *in) {
    fz_rows r;
    fz_file file;
    rows_of(in, &r);
    fz_file_open(&file);
    if (fz_upto(in, 1)) fixed(in, &file, &r);
    else variable(in, &file, &r);
}
