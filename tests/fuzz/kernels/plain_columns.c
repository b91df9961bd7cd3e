/* Columns of one page: ranges and ascending rows against the written values, and damaged pages. */
#include "chunks.h"
#include "plain_columns.h"

#define MOST 6000

typedef struct {
    lc_plain_column column;
    int64_t rows;
    uint64_t values[MOST]; /* as written: values, or indices */
    uint16_t levels[MOST];
    uint8_t entries[8 * 300];
} written;

/* One stream of the page: levels, or values, of all chunks. */
static void levels_of(fz_input *in, fz_page *p, written *w) {
    int64_t s = fz_page_stream(p), at = 0, often = fz_upto(in, 3);
    for (int64_t i = 0; i < p->plan.count; at += p->values[i++]) {
        int64_t n = p->values[i];
        for (int64_t k = 0; k < n; k++) w->levels[at + k] = often && fz_upto(in, often) == 0;
        uint8_t *room = fz_page_room(p, s, i);
        const uint8_t *levels = (const uint8_t *)(w->levels + at);
        if (w->column.definition.kind == LC_LEVEL_FLAT) {
            memcpy(room, levels, (size_t)(2 * n));
            fz_page_put(p, s, i, 2 * n);
        } else {
            FZ_CHECK(!lc_ool_pack(levels, n, LC_LEVEL_BITS, 1, room));
            fz_page_put(p, s, i, lc_ool_size(n, LC_LEVEL_BITS, 1));
        }
    }
}

static void values_of(fz_input *in, fz_page *p, written *w) {
    int64_t s = fz_page_stream(p), at = 0, bits = w->column.codec.bits, ends[1];
    uint8_t plain[8 * 64];
    for (int64_t i = 0; i < p->plan.count; at += p->values[i++]) {
        int64_t n = p->values[i];
        uint8_t *room = fz_page_room(p, s, i);
        memset(plain, 0, sizeof plain);
        for (int64_t k = 0; k < n; k++) {
            uint64_t value = w->column.dictionary.data ? (uint64_t)fz_upto(in, w->column.entries - 1) : fz_word(in, 1);
            if (bits == 1) value &= 1;
            w->values[at + k] = value;
            if (bits == 1) lc_set_bit(plain, k, (int)value);
            else memcpy(plain + k * (bits >> 3), &value, (size_t)(bits >> 3));
        }
        if (w->column.codec.kind == LC_VALUE_FLAT) {
            memcpy(room, plain, (size_t)((n * bits + 7) >> 3));
            fz_page_put(p, s, i, (n * bits + 7) >> 3);
        } else {
            fz_page_put(p, s, i, lc_inline_pack(plain, n, (int)bits, room, ends));
        }
    }
}

static void dictionary_of(fz_input *in, written *w, int damage) {
    lc_plain_column *column = &w->column;
    int64_t ends[1], width = column->bits >> 3, size = column->entries * width;
    uint8_t *packed = fz_memory(8200, 0);
    for (int64_t i = 0; i < size; i++) w->entries[i] = i % width ? 0 : (uint8_t)fz_upto(in, 255);
    const uint8_t *data = w->entries;
    if (column->entries_kind == LC_VALUE_INLINE) {
        size = lc_inline_pack(w->entries, column->entries, (int)column->bits, packed, ends);
        data = packed;
    }
    column->dictionary.data = fz_damaged(in, data, size), column->dictionary.size = size;
    if (!damage) memcpy((uint8_t *)column->dictionary.data, data, (size_t)size);
}

static int page_of(fz_input *in, fz_page *p, written *w, int damage) {
    static const int64_t sizes[] = {8, 32, 64, 1};
    lc_plain_column *column = &w->column;
    int64_t where;
    memset(w, 0, sizeof *w);
    fz_page_open(in, p, 6);
    column->large = p->plan.large, column->buffers = 1;
    column->codec.kind = fz_upto(in, 1) ? LC_VALUE_INLINE : LC_VALUE_FLAT;
    column->codec.bits = column->bits = sizes[fz_upto(in, column->codec.kind == LC_VALUE_FLAT ? 3 : 2)];
    column->definition.kind = (int64_t[]){LC_LEVEL_NONE, LC_LEVEL_FLAT, LC_LEVEL_OUT_OF_LINE}[fz_upto(in, 2)];
    column->definition.width = 1, column->definition.top = 1;
    if (column->bits > 1 && fz_upto(in, 1)) {
        column->entries = 1 + fz_upto(in, 200), column->entries_kind = fz_upto(in, 1) ? LC_VALUE_INLINE : LC_VALUE_FLAT;
        column->bits = 8 << fz_upto(in, 3);
        dictionary_of(in, w, damage);
    }
    w->rows = fz_page_items(p);
    p->plan.levels = p->values, p->plan.level_streams = column->definition.kind != LC_LEVEL_NONE;
    if (p->plan.level_streams) levels_of(in, p, w);
    values_of(in, p, w);
    int64_t width = p->plan.large ? 4 : 2, size = lc_chunk_plan_check(&p->plan, &where);
    if (size < 0) return 0;
    uint8_t *words = fz_out(in, p->plan.count * width), *chunks = fz_memory(size, 0);
    lc_chunk_plan_assemble(&p->plan, words, chunks);
    if (damage && fz_upto(in, 7) == 0) words = fz_damaged(in, words, p->plan.count * width);
    if (damage) chunks = fz_damaged(in, chunks, size);
    column->words = (lc_bytes){words, p->plan.count * width}, column->values = (lc_bytes){chunks, size};
    return 1;
}

/* Value i of an output, which is row `row`. */
static void check_value(const written *w, const uint8_t *out, const uint8_t *validity, int64_t nulls, int64_t i,
                        int64_t row) {
    const lc_plain_column *column = &w->column;
    int has_levels = column->definition.kind != LC_LEVEL_NONE, is_null = has_levels && w->levels[row];
    if (nulls) FZ_CHECK(lc_get_bit(validity, i) == !is_null);
    else FZ_CHECK(!is_null);
    if (is_null) return;
    if (column->bits == 1) {
        FZ_CHECK((uint64_t)lc_get_bit(out, i) == w->values[row]);
        return;
    }
    int64_t width = column->bits >> 3;
    const uint8_t *expected = (const uint8_t *)&w->values[row];
    if (column->dictionary.data) expected = w->entries + (int64_t)w->values[row] * width;
    FZ_CHECK(!memcmp(out + i * width, expected, (size_t)width));
}

static lc_plain_scratch scratch_of(int64_t rows, int64_t items) {
    int64_t most = rows > items ? rows : items;
    lc_plain_scratch scratch = {(int64_t *)fz_memory(8 * (rows + 1), 0), (int64_t *)fz_memory(8 * (rows + 1), 0),
                                (const uint8_t **)fz_memory(8 * (rows + 1), 0), fz_memory(rows * LC_PLAIN_WIDTH, 0),
                                fz_memory(2 * most, 0), fz_memory(8 * most, 0), fz_memory(8 * LC_FL_VALUES, 0)};
    return scratch;
}

/* Values side by side, with a bitmap or without. */
static void copied(fz_input *in) {
    static const int64_t sizes[] = {1, 8, 32, 64, 96};
    lc_plain_column column = {.bits = sizes[fz_upto(in, 4)]};
    int64_t rows = 1 + fz_upto(in, 300), width = column.bits >> 3, nulls = 0, missing = 0;
    column.values = (lc_bytes){fz_take(in, lc_plain_bytes(&column, rows)), lc_plain_bytes(&column, rows)};
    if (fz_upto(in, 1)) column.words = (lc_bytes){fz_take(in, (rows + 7) >> 3), (rows + 7) >> 3};
    int64_t a = fz_upto(in, rows - 1), n = 1 + fz_upto(in, rows - a - 1), *items = NULL;
    if (fz_upto(in, 1)) items = fz_positions(in, n, rows);
    uint8_t *out = fz_out(in, lc_plain_bytes(&column, n)), *validity = fz_out(in, (n + 7) >> 3);
    lc_plain_copy(&column, a, items, n, out, validity, &nulls);
    for (int64_t i = 0; i < n; i++) {
        int64_t row = items ? items[i] : a + i;
        if (column.bits == 1) FZ_CHECK(lc_get_bit(out, i) == lc_get_bit(column.values.data, row));
        else FZ_CHECK(!memcmp(out + i * width, column.values.data + row * width, (size_t)width));
        if (!column.words.data) continue;
        FZ_CHECK(lc_get_bit(validity, i) == lc_get_bit(column.words.data, row));
        missing += !lc_get_bit(validity, i);
    }
    FZ_CHECK(nulls == missing);
}

static void fz_target(fz_input *in) {
    static fz_page page;
    static written w;
    if (fz_upto(in, 3) == 0) {
        copied(in);
        return;
    }
    int damage = (int)fz_upto(in, 1);
    if (!page_of(in, &page, &w, damage)) return;
    int64_t a = fz_upto(in, w.rows - 1), b = a + 1 + fz_upto(in, w.rows - a - 1), nulls = 0;
    int64_t n = 1 + fz_upto(in, 80), *at = fz_positions(in, n, w.rows);
    for (int64_t i = 1; i < n; i++)
        if (at[i] < at[i - 1]) at[i] = at[i - 1];
    lc_plain_scratch scratch = scratch_of(w.rows, n);
    uint8_t *out = fz_out(in, lc_plain_bytes(&w.column, b - a)), *validity = fz_memory((b - a + 63) / 64 * 8, 0);
    int problem = lc_plain_scan(&w.column, w.rows, a, b, &scratch, out, validity, &nulls);
    FZ_CHECK(damage || !problem);
    for (int64_t i = a; i < b && !damage; i++) check_value(&w, out, validity, nulls, i - a, i);
    out = fz_out(in, lc_plain_bytes(&w.column, n)), validity = fz_memory((n + 63) / 64 * 8, 0);
    problem = lc_plain_take(&w.column, w.rows, at, n, &scratch, out, validity, &nulls);
    FZ_CHECK(damage || !problem);
    for (int64_t i = 0; i < n && !damage; i++) check_value(&w, out, validity, nulls, i, at[i]);
}
