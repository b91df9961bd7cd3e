/* Keys of joins against plain loops over all earlier rows. */
#include "fuzz.h"
#include "key_table.h"

#define MOST_COLUMNS 3
#define MOST_ROWS 300

/* Make a column, mostly with valid offsets; return 1 if they are valid. */
static int column(fz_input *in, lc_key_column *c, int64_t width, int64_t rows) {
    int sound = 1;
    c->width = width, c->wide = (int)fz_upto(in, 1), c->first = fz_upto(in, 3), c->bit = fz_upto(in, 9);
    c->offsets = NULL;
    c->validity = fz_upto(in, 2) ? NULL : fz_take(in, (c->bit + rows + 7) / 8);
    if (width == LC_KEY_TEXTS) {
        int64_t size = c->wide ? 8 : 4, at = fz_upto(in, 5);
        uint8_t *ends = fz_out(in, (c->first + rows + 1) * size);
        c->size = fz_upto(in, 300);
        for (int64_t i = 0; i <= c->first + rows; i++) {
            lc_store_offset(ends, c->wide, i, at);
            if (i >= c->first) sound &= at <= c->size;
            int64_t next = at + fz_upto(in, 3) - (fz_upto(in, 200) == 200);
            if (i >= c->first && i < c->first + rows) sound &= next >= at;
            at = next < 0 ? 0 : next;
        }
        c->offsets = ends;
    } else {
        int64_t values = c->first + rows;
        c->size = width == LC_KEY_BITS ? (values + 7) / 8 : values * width;
    }
    c->data = fz_take(in, c->size);
    return sound;
}

static lc_bytes value(const lc_key_column *c, int64_t i) {
    static uint8_t flags[2] = {0, 1};
    lc_bytes v = {flags, 0};
    if (c->validity && !lc_get_bit(c->validity, c->bit + i)) return v;
    if (c->width == LC_KEY_BITS) {
        v.data = flags + lc_get_bit(c->data, c->first + i), v.size = 1;
    } else if (c->width == LC_KEY_TEXTS) {
        int64_t begin = lc_load_offset(c->offsets, c->wide, c->first + i);
        v.data = c->data + begin, v.size = lc_load_offset(c->offsets, c->wide, c->first + i + 1) - begin;
    } else {
        v.data = c->data + (c->first + i) * c->width, v.size = c->width;
    }
    return v;
}

static int is_null(const lc_key_column *c, int64_t i) { return c->validity && !lc_get_bit(c->validity, c->bit + i); }

static int has_key(const lc_key_rows *r, int64_t i) {
    for (int64_t k = 0; k < r->count; k++)
        if (!r->columns[k].null_is_value && is_null(r->columns + k, i)) return 0;
    return 1;
}

static int same(const lc_key_rows *r, int64_t i, const lc_key_rows *s, int64_t j) {
    for (int64_t k = 0; k < r->count; k++) {
        lc_bytes x = value(r->columns + k, i), y = value(s->columns + k, j);
        if (is_null(r->columns + k, i) != is_null(s->columns + k, j) || x.size != y.size) return 0;
        if (x.size && memcmp(x.data, y.data, (size_t)x.size)) return 0;
    }
    return 1;
}

static int open_rows(fz_input *in, lc_key_rows *r, lc_key_column *columns, const lc_key_column *shape, int64_t count) {
    int64_t rows = fz_upto(in, MOST_ROWS);
    int sound = 1;
    for (int64_t k = 0; k < count; k++) {
        columns[k].null_is_value = shape[k].null_is_value;
        sound &= column(in, columns + k, shape[k].width, rows);
    }
    lc_key_rows_open(r, columns, count, rows);
    return sound;
}

static void check_packed(const lc_key_rows *r, int sound) {
    int64_t ends[MOST_ROWS + 1];
    uint8_t *data;
    int problem = lc_key_strings(r, &data, ends);
    FZ_CHECK(!sound || problem == LC_OK);
    for (int64_t i = 1; problem == LC_OK && i < r->n; i++) {
        int64_t size = ends[i + 1] - ends[i], before = ends[i] - ends[i - 1];
        int equal = size == before && (!size || !memcmp(data + ends[i], data + ends[i - 1], (size_t)size));
        if (sound && has_key(r, i) && has_key(r, i - 1)) FZ_CHECK(equal == same(r, i, r, i - 1));
    }
    free(data);
}

static void fz_target(fz_input *in) {
    static const int64_t widths[] = {LC_KEY_BITS, LC_KEY_TEXTS, 0, 1, 2, 3, 4, 8, 9, 16, 20};
    lc_key_column shape[MOST_COLUMNS], mine[MOST_COLUMNS], theirs[MOST_COLUMNS];
    int64_t count = 1 + fz_upto(in, MOST_COLUMNS - 1), groups[MOST_ROWS], found[MOST_ROWS], first[MOST_ROWS];
    int64_t sizes[MOST_ROWS], places[MOST_ROWS], matches = 0, next = 0;
    lc_secret secret = {fz_word(in, 8), fz_word(in, 8)};
    for (int64_t k = 0; k < count; k++) {
        shape[k].width = widths[fz_upto(in, 10)];
        shape[k].null_is_value = fz_upto(in, 3) == 0;
    }
    lc_key_rows source, target;
    lc_key_table table;
    int sound = open_rows(in, &source, mine, shape, count), known = open_rows(in, &target, theirs, shape, count);
    check_packed(&source, sound);
    FZ_CHECK(lc_key_table_open(&table, &source, secret) == LC_OK);
    int problem = lc_key_table_add(&table, &source, groups);
    FZ_CHECK(!sound || problem == LC_OK);
    if (sound) {
        for (int64_t i = 0; i < source.n; i++) {
            FZ_CHECK((groups[i] >= 0) == has_key(&source, i));
            if (i && groups[i] >= 0 && groups[i - 1] >= 0)
                FZ_CHECK((groups[i] == groups[i - 1]) == same(&source, i, &source, i - 1));
        }
        FZ_CHECK(lc_groups_measure(groups, source.n, table.count, first, sizes) == LC_OK);
        problem = lc_key_table_find(&table, &target, places, found, &matches);
        FZ_CHECK(!known || problem == LC_OK);
        for (int64_t j = 0; known && j < target.n; j++) {
            int64_t wanted = -1;
            for (int64_t g = 0; g < table.count && wanted < 0 && has_key(&target, j); g++)
                if (same(&source, first[g], &target, j)) wanted = g;
            if (wanted >= 0) FZ_CHECK(next < matches && places[next] == j && found[next] == wanted);
            next += wanted >= 0;
        }
        FZ_CHECK(!known || next == matches);
        FZ_CHECK(lc_key_parts(&source, secret, 5, found) == LC_OK);
        for (int64_t i = 0; i < source.n; i++) FZ_CHECK(found[i] < 5 && (found[i] >= 0) == has_key(&source, i));
    }
    lc_key_table_close(&table);
}
