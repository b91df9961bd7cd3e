/* Columns that are one small mini-block page each, decoded from their description alone: values of a fixed size, with or
 * without a validity, plain or through a dictionary. */
#ifndef LANCECODEC_PLAIN_COLUMNS_H
#define LANCECODEC_PLAIN_COLUMNS_H

#include "levels_mask.h"
#include "miniblock_fixed.h"
#include "miniblock_levels.h"
#include "miniblock_rows.h"

/* `codec`: of the values, or of indices into the dictionary. `bits`: of a value in the output. `definition`: kind
 * LC_LEVEL_NONE if no value is null; otherwise level 1 is null. `dictionary.data` is NULL without a dictionary. */
typedef struct {
    lc_value_codec codec;
    int64_t bits, buffers;
    int large;
    lc_level_codec definition;
    lc_bytes words, values, dictionary;
    int64_t entries_kind, entries;
} lc_plain_column;

/* Memory for one column: `starts`, `firsts` and `data` have one entry more than there are rows, `chunk` has room for a
 * value of LC_PLAIN_WIDTH bytes per row, `levels` and `indices` for an item per row that is decoded at a time, and
 * `entries` for a block of packed values. */
typedef struct {
    int64_t *starts, *firsts;
    const uint8_t **data;
    uint8_t *chunk, *levels, *indices, *entries;
} lc_plain_scratch;

#define LC_PLAIN_WIDTH 64

LC_INLINE int64_t lc_plain_bytes(const lc_plain_column *column, int64_t n) { return (n * column->bits + 7) >> 3; }

/* Find the chunks of a column of `rows` values. */
static int lc_plain_open(const lc_plain_column *column, int64_t rows, const lc_plain_scratch *scratch,
                         lc_chunks *chunks) {
    int64_t where = 0;
    chunks->table.count = column->words.size / (column->large ? 4 : 2);
    chunks->table.items = rows;
    int problem = lc_chunk_table_parse(column->words.data, column->large, column->values.size, &chunks->table,
                                       scratch->starts, scratch->firsts, &where);
    if (problem) return problem;
    for (int64_t i = 0; i < chunks->table.count; i++) scratch->data[i] = column->values.data + scratch->starts[i];
    chunks->table.starts = scratch->starts, chunks->table.firsts = scratch->firsts;
    chunks->data = scratch->data, chunks->plain = NULL, chunks->buffers = column->buffers;
    chunks->repetition = 0, chunks->definition = column->definition.kind != LC_LEVEL_NONE;
    chunks->large = column->large;
    return LC_OK;
}

/* Find the entries of the dictionary, which the caller has checked against its kind. */
static int lc_plain_dictionary(const lc_plain_column *column, const lc_plain_scratch *scratch, lc_dictionary *out) {
    out->count = column->entries, out->width = column->bits >> 3, out->entries = column->dictionary.data;
    if (column->entries_kind == LC_VALUE_FLAT)
        return column->dictionary.size == out->count * out->width ? LC_OK : LC_BAD_SIZE;
    out->entries = scratch->entries;
    return lc_inline_block(column->dictionary.data, column->dictionary.size, out->count, column->bits,
                           scratch->entries);
}

/* Set bit i of validity if level i is 0. Returns the number of nulls. The output has room for whole words. */
static int64_t lc_plain_validity(const uint8_t *levels, int64_t n, uint8_t *validity) {
    uint8_t last[128];
    int64_t valid = 0;
    for (int64_t i = 0; i < n; i += 64) {
        int64_t live = n - i < 64 ? n - i : 64;
        uint64_t mask = lc_mask_le(lc_levels_block(levels, i, live, last), 0);
        if (live < 64) mask &= ((uint64_t)1 << live) - 1;
        valid += lc_popcount64(mask);
        lc_store_u64(validity + (i >> 3), mask);
    }
    return n - valid;
}

/* Decode the levels of rows [a, b), at least one, if the column has levels. `validity` has room for whole words. */
static int lc_plain_levels(const lc_plain_column *column, int64_t rows, const lc_chunks *chunks, int64_t a, int64_t b,
                           const lc_plain_scratch *scratch, uint8_t *validity, int64_t *nulls) {
    int64_t where = 0, total = 0;
    *nulls = 0;
    if (!chunks->definition) return LC_OK;
    lc_level_codecs codecs = {{LC_LEVEL_NONE, 0, 0}, column->definition, 1};
    int64_t first = lc_chunk_find(&chunks->table, a), last = lc_chunk_find(&chunks->table, b - 1) + 1;
    int problem = lc_levels_scan(chunks, &codecs, first, last, NULL, scratch->levels, rows, &total, &where);
    if (problem) return problem;
    *nulls = lc_plain_validity(scratch->levels + 2 * (a - chunks->table.firsts[first]), b - a, validity);
    return LC_OK;
}

/* Decode rows [a, b), at least one. `validity` is written if the column has levels. */
static int lc_plain_scan(const lc_plain_column *column, int64_t rows, int64_t a, int64_t b,
                         const lc_plain_scratch *scratch, uint8_t *out, uint8_t *validity, int64_t *nulls) {
    lc_chunks chunks;
    lc_dictionary dictionary;
    int64_t where = 0;
    int problem = lc_plain_open(column, rows, scratch, &chunks);
    if (problem) return problem;
    problem = lc_plain_levels(column, rows, &chunks, a, b, scratch, validity, nulls);
    if (problem) return problem;
    if (column->dictionary.data) {
        problem = lc_plain_dictionary(column, scratch, &dictionary);
        return problem ? problem
                       : lc_dictionary_scan(&chunks, &column->codec, &dictionary, a, b, *nulls ? validity : NULL, 0, out,
                                            scratch->chunk, &where);
    }
    if (column->bits == 1) {
        out[(b - a - 1) >> 3] = 0;
        return lc_bits_scan(&chunks, &column->codec, a, b, out, 0, &where);
    }
    return lc_fixed_scan(&chunks, &column->codec, a, b, out, scratch->chunk, &where);
}

/* Decode n > 0 values at ascending rows, as `lc_plain_scan`. */
static int lc_plain_take(const lc_plain_column *column, int64_t rows, const int64_t *items, int64_t n,
                         const lc_plain_scratch *scratch, uint8_t *out, uint8_t *validity, int64_t *nulls) {
    /* without a limit of the work: rows ascend, so that no chunk is decoded twice */
    const int64_t budget = (int64_t)1 << 62;
    lc_chunks chunks;
    lc_dictionary dictionary;
    int64_t where = 0, done = 0;
    int problem = lc_plain_open(column, rows, scratch, &chunks);
    if (problem) return problem;
    *nulls = 0;
    if (chunks.definition) {
        lc_level_codecs codecs = {{LC_LEVEL_NONE, 0, 0}, column->definition, 1};
        problem = lc_levels_take(&chunks, &codecs, items, n, scratch->chunk, scratch->levels, &where);
        if (problem) return problem;
        *nulls = lc_plain_validity(scratch->levels, n, validity);
    }
    if (column->dictionary.data) {
        problem = lc_plain_dictionary(column, scratch, &dictionary);
        if (!problem)
            problem = lc_fixed_take(&chunks, &column->codec, items, n, scratch->indices, scratch->chunk, budget, &done,
                                    &where);
        return problem ? problem
                       : lc_dictionary_gather(&dictionary, scratch->indices, column->codec.bits, n,
                                              *nulls ? validity : NULL, 0, out);
    }
    if (column->bits == 1) {
        out[(n - 1) >> 3] = 0;
        return lc_bits_take(&chunks, &column->codec, items, n, out, 0, &where);
    }
    return lc_fixed_take(&chunks, &column->codec, items, n, out, scratch->chunk, budget, &done, &where);
}

/* Copy n > 0 values that are stored side by side, of rows from `a` on, or of `items` if that is not NULL. `words` has a
 * bit for each row that is set if its value is not null; without data, no value is null. All rows are in the buffers. */
static void lc_plain_copy(const lc_plain_column *column, int64_t a, const int64_t *items, int64_t n, uint8_t *out,
                          uint8_t *validity, int64_t *nulls) {
    const int64_t width = column->bits >> 3, top = (int64_t)1 << 62;
    const uint8_t *values = column->values.data, *valid = column->words.data;
    *nulls = 0;
    if (column->bits == 1) {
        out[(n - 1) >> 3] = 0;
        if (items) lc_bits_gather(values, top, items, n, out);
        else lc_bits_copy(values, a, n, out, 0);
    } else if (items) lc_gather_block(values, width, (const uint8_t *)items, 8, n, out);
    else memcpy(out, values + a * width, (size_t)(n * width));
    if (!valid) return;
    validity[(n - 1) >> 3] = 0;
    if (items) lc_bits_gather(valid, top, items, n, validity);
    else lc_bits_copy(valid, a, n, validity, 0);
    LC_SETTLE(validity);
    *nulls = n - lc_bits_count(validity, 0, n);
}

#endif
