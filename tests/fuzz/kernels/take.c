/* Rows of pages of all layouts, damaged or not, to arrays; sorting and shifting of the rows. */
#include "any_page.h"
#include "take_column.h"
#include "take_rows.h"

static uint64_t utf8[256];

static void fz_target(fz_input *in) {
    fz_page p;
    lc_take_page page = {0};
    if (!utf8[0]) lc_utf8_fill(utf8);
    if (!fz_any_page(in, &p, &page)) return;
    int64_t n = 1 + fz_upto(in, 60), low, high, *rows = fz_positions(in, n, page.rows);
    int64_t *places = (int64_t *)fz_memory(8 * n, 0), *spare = (int64_t *)fz_memory(16 * n, 0);
    for (int64_t i = 0; i < n; i++) places[i] = i;
    int ascending = lc_rows_look(rows, n, &low, &high);
    lc_rows_sort(rows, places, n, low, high, spare);
    FZ_CHECK(lc_rows_look(rows, n, &low, &high));
    FZ_CHECK(lc_take_expected(&page) >= 1);
    int64_t cut = 1 + lc_rows_find(rows, n, rows[fz_upto(in, n - 1)]);
    FZ_CHECK(cut == n || rows[cut] > rows[cut - 1]);
    lc_column_segments segments = {NULL, 0, 0};
    FZ_CHECK(!lc_segments_add(&segments, (lc_column_segment){&page, 0, cut, 0}));
    FZ_CHECK(cut == n || !lc_segments_add(&segments, (lc_column_segment){&page, cut, n, 0}));
    lc_column_rows wanted = {rows, ascending ? NULL : places, n};
    lc_column_shape shape = {.width = page.width, .wide = (int)fz_upto(in, 1), .text = (int)fz_upto(in, 1)};
    lc_array array;
    if (!lc_column_take(&shape, &wanted, &segments, utf8, &array)) array.release(&array);
    free(segments.at);
    int64_t count = fz_upto(in, 20), *deleted = fz_positions(in, count, 50);
    lc_rows_skip_deleted(rows, n, deleted, count);
    FZ_CHECK(lc_rows_look(rows, n, &low, &high));
}
