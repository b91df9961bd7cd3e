/* Columns of a table that is stored in batches, with a page of values of a fixed size per column and batch.
 *
 * Rows are divided into runs of one batch once, for all columns. The pages have been checked: each is within the file,
 * and has as many values as its batch has rows. */
#ifndef LANCECODEC_BATCH_COLUMNS_H
#define LANCECODEC_BATCH_COLUMNS_H

#include "bits.h"
#include "gather.h"

/* Place of a page in the file, and the number of its values. */
typedef struct {
    int64_t position, length;
} lc_batch_cell;

/* Rows of one batch: `count` rows of the output from `at` on. They begin at row `start` of the batch, unless they are
 * listed one by one. */
typedef struct {
    int64_t batch, start, at, count;
} lc_batch_run;

/* A column: bits of a value, 1 or a multiple of 8; entries of its dictionary, 0 if it has none. */
typedef struct {
    const lc_batch_cell *cells;
    int64_t bits, entries;
} lc_batch_column;

/* Check that the pages of a column are within a file of `size` bytes, and together no larger than it. `starts` has the
 * first row of each of n batches, and the number of rows. */
static inline int lc_batch_column_fits(const lc_batch_column *column, const int64_t *starts, int64_t n, int64_t size) {
    int64_t room = size < ((int64_t)1 << 59) ? 8 * size : INT64_MAX, most = room / column->bits, total = 0;
    for (int64_t k = 0; k < n; k++) {
        const lc_batch_cell *cell = column->cells + k;
        int64_t rows = starts[k + 1] - starts[k];
        if (cell->length < rows || cell->length > most - total) return 0;
        if (cell->position < 0 || cell->position > size) return 0;
        if (rows > (room - 8 * cell->position) / column->bits) return 0;
        total += cell->length;
    }
    return 1;
}

/* Divide rows [a, b) into runs, of which there may be as many as batches. */
static inline int64_t lc_batch_runs_of_range(const int64_t *starts, int64_t n, int64_t a, int64_t b,
                                             lc_batch_run *runs) {
    int64_t count = 0;
    for (int64_t k = 0; k < n; k++) {
        int64_t first = starts[k] > a ? starts[k] : a, last = starts[k + 1] < b ? starts[k + 1] : b;
        if (first < last) runs[count++] = (lc_batch_run){k, first - starts[k], first - a, last - first};
    }
    return count;
}

/* Divide n ascending rows of the table into runs, and write the number of each row in its batch to `within`. */
static inline int64_t lc_batch_runs_of_rows(const int64_t *starts, const int64_t *rows, int64_t n, int64_t *within,
                                            lc_batch_run *runs) {
    int64_t count = 0, batch = 0;
    for (int64_t i = 0; i < n; i++) {
        while (starts[batch + 1] <= rows[i]) batch++;
        if (count == 0 || runs[count - 1].batch != batch) runs[count++] = (lc_batch_run){batch, 0, i, 0};
        runs[count - 1].count++;
        within[i] = rows[i] - starts[batch];
    }
    return count;
}

static inline void lc_batch_take_bits(const uint8_t *bits, const int64_t *within, int64_t n, uint8_t *out, int64_t at) {
    for (int64_t i = 0; i < n; i++) lc_set_bit(out, at + i, lc_get_bit(bits, within[i]));
}

/* Copy values of n > 0 rows; `within` is NULL for a range. Returns 0 if an index is not below the number of entries. */
static int lc_batch_column_read(const uint8_t *file, const lc_batch_column *column, const lc_batch_run *runs,
                                int64_t count, const int64_t *within, int64_t n, uint8_t *out) {
    const int64_t bits = column->bits, width = bits >> 3;
    if (bits == 1) out[(n - 1) >> 3] = 0;
    for (int64_t k = 0; k < count; k++) {
        const lc_batch_run *run = runs + k;
        const uint8_t *page = file + column->cells[run->batch].position;
        if (bits == 1 && within) lc_batch_take_bits(page, within + run->at, run->count, out, run->at);
        else if (bits == 1) lc_bits_copy(page, run->start, run->count, out, run->at);
        else if (within)
            lc_gather_block(page, width, (const uint8_t *)(within + run->at), 8, run->count, out + run->at * width);
        else memcpy(out + run->at * width, page + run->start * width, (size_t)(run->count * width));
    }
    if (column->entries == 0) return 1;
    LC_SETTLE(out);
    return lc_codes_max(out, width, n) < (uint64_t)column->entries;
}

#endif
