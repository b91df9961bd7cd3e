/* Columns in batches: ranges and ascending rows against single values, and cells of any kind. */
#include "fuzz.h"
#include "batch_columns.h"

#define MOST 12

static int64_t some_starts(fz_input *in, int64_t *starts) {
    int64_t n = fz_upto(in, MOST - 1);
    starts[0] = 0;
    for (int64_t k = 0; k < n; k++) starts[k + 1] = starts[k] + fz_upto(in, 60);
    return n;
}

/* Index of the batch of a row. */
static int64_t batch_of(const int64_t *starts, int64_t row) {
    int64_t k = 0;
    while (starts[k + 1] <= row) k++;
    return k;
}

static void check_row(const uint8_t *file, const lc_batch_column *column, const int64_t *starts, int64_t row,
                      const uint8_t *out, int64_t i) {
    int64_t k = batch_of(starts, row), at = row - starts[k], width = column->bits >> 3;
    const uint8_t *page = file + column->cells[k].position;
    if (column->bits == 1) FZ_CHECK(lc_get_bit(out, i) == lc_get_bit(page, at));
    else FZ_CHECK(!memcmp(out + i * width, page + at * width, (size_t)width));
}

static void fz_target(fz_input *in) {
    static const int64_t sizes[] = {1, 8, 16, 32, 64, 96, 512};
    int64_t starts[MOST + 1], n = some_starts(in, starts), size = fz_upto(in, 4000), rows = starts[n];
    lc_batch_cell cells[MOST];
    lc_batch_run runs[MOST];
    lc_batch_column column = {cells, sizes[fz_upto(in, 6)], 0};
    int wild = (int)fz_upto(in, 1);
    for (int64_t k = 0; k < n; k++) {
        cells[k].position = wild ? (int64_t)fz_word(in, 8) : fz_upto(in, size);
        cells[k].length = wild ? (int64_t)fz_word(in, 8) : starts[k + 1] - starts[k] + fz_upto(in, 1);
    }
    const uint8_t *file = fz_take(in, size);
    if (!lc_batch_column_fits(&column, starts, n, size) || rows == 0) return;
    if (column.bits > 1 && column.bits <= 64 && fz_upto(in, 1)) column.entries = 1 + fz_upto(in, 300);
    int64_t a = fz_upto(in, rows - 1), b = a + 1 + fz_upto(in, rows - a - 1), taken = 1 + fz_upto(in, 80);
    uint8_t *out = fz_out(in, ((b - a) * column.bits + 7) >> 3);
    int64_t count = lc_batch_runs_of_range(starts, n, a, b, runs);
    lc_batch_column_read(file, &column, runs, count, NULL, b - a, out);
    for (int64_t i = a; i < b; i++) check_row(file, &column, starts, i, out, i - a);
    int64_t *at = fz_positions(in, taken, rows), *within = (int64_t *)fz_memory(8 * taken, 0), top = 0;
    for (int64_t i = 1; i < taken; i++)
        if (at[i] < at[i - 1]) at[i] = at[i - 1];
    out = fz_out(in, (taken * column.bits + 7) >> 3);
    count = lc_batch_runs_of_rows(starts, at, taken, within, runs);
    int known = lc_batch_column_read(file, &column, runs, count, within, taken, out);
    for (int64_t i = 0; i < taken; i++) check_row(file, &column, starts, at[i], out, i);
    for (int64_t i = 0; i < taken && column.entries; i++)
        top |= lc_code_at(out, column.bits >> 3, i) >= (uint64_t)column.entries;
    FZ_CHECK(known == !top);
}
