/* Full-zip items written and read back: levels, values of one width or with lengths, FSST codes, repetition index. */
#include "fsst_encode.h"
#include "fuzz.h"
#include "fullzip.h"

typedef struct {
    lc_zip zip;
    lc_zip_source from;
    int64_t visible, rows;
} page;

static void levels_of(fz_input *in, page *p) {
    lc_zip *zip = &p->zip;
    int wild = fz_upto(in, 63) == 0;
    uint8_t *rep = zip->bits_rep ? fz_out(in, 2 * p->from.items) : NULL, *def = zip->bits_def ? fz_out(in, 2 * p->from.items) : NULL;
    for (int64_t i = 0; i < p->from.items; i++) {
        int64_t r = i && rep ? fz_upto(in, zip->top_rep + wild) : zip->top_rep, d = def ? fz_upto(in, zip->top_def + wild) : 0;
        if (rep) lc_store_u16(rep + 2 * i, (uint16_t)r);
        if (def) lc_store_u16(def + 2 * i, (uint16_t)d);
        p->rows += r == zip->top_rep;
        p->visible += zip->top_rep == 0 || d <= zip->visible;
    }
    p->from.rep = rep, p->from.def = def;
}

static void values_of(fz_input *in, page *p, int codes) {
    int64_t n = p->visible, at = fz_upto(in, 9), wild = fz_upto(in, 63) == 0;
    p->from.room_visible = n, p->from.wide = (int)fz_upto(in, 1);
    if (p->zip.width >= 0) {
        p->from.room_bytes = n * p->zip.width;
    } else {
        uint8_t *offsets = fz_out(in, (n + 1) * (p->from.wide ? 8 : 4));
        for (int64_t i = 0; i <= n; i++, at += i <= n ? fz_upto(in, 20) : 0)
            lc_store_offset(offsets, p->from.wide, i, wild && fz_upto(in, 31) == 0 ? (int64_t)fz_word(in, 8) : at);
        p->from.offsets = offsets, p->from.room_bytes = at;
    }
    uint8_t *values = fz_take(in, p->from.room_bytes);
    for (int64_t k = 0; codes && k < p->from.room_bytes; k++) values[k] = (uint8_t)(values[k] % codes);
    p->from.values = values;
}

/* The items of rows that an index finds. */
static void by_row(fz_input *in, const page *p, lc_bytes data, const uint8_t *index, int64_t width) {
    int64_t n = fz_upto(in, 20), *rows = fz_positions(in, n, p->rows), where;
    int64_t *begins = (int64_t *)fz_memory(8 * n, 0), *ends = (int64_t *)fz_memory(8 * n, 0);
    int wild = n && fz_upto(in, 31) == 0;
    if (wild) rows[n - 1] = (int64_t)fz_word(in, 8);
    int problem = lc_zip_row_ranges(index, width, 0, p->rows + 1, rows, n, data.size, begins, ends, &where);
    FZ_CHECK(wild || !problem);
    if (problem) return;
    lc_zip_out out = {.room_bytes = INT64_MAX};
    FZ_CHECK(!lc_zip_count(&p->zip, data, begins, ends, n, &out, &where) && out.rows == n);
}

static void unzipped(fz_input *in, const page *p, lc_bytes data, int damage) {
    int64_t begin = 0, end = data.size, where;
    lc_zip_out size = {.room_bytes = INT64_MAX};
    int problem = lc_zip_count(&p->zip, data, &begin, &end, 1, &size, &where);
    FZ_CHECK(damage || !problem);
    if (problem || size.bytes > 100000) return;
    lc_zip_out out = {.wide = (int)fz_upto(in, 1), .room_items = size.items, .room_visible = size.visible, .room_bytes = size.bytes};
    out.rep = fz_out(in, 2 * size.items), out.def = fz_out(in, 2 * size.items);
    uint8_t *values = out.values = fz_out(in, size.bytes);
    if (p->zip.width < 0) out.offsets = fz_out(in, (size.visible + 1) * (out.wide ? 8 : 4)), lc_store_offset(out.offsets, out.wide, 0, 0);
    FZ_CHECK(!lc_zip_unzip(&p->zip, data, &begin, &end, 1, &out, &where) && out.items == size.items && out.bytes == size.bytes);
    if (damage) return;
    FZ_CHECK(out.items == p->from.items && out.visible == p->visible && out.rows == p->rows);
    if (p->from.rep) FZ_CHECK(!memcmp(out.rep, p->from.rep, (size_t)(2 * out.items)));
    if (p->from.def) FZ_CHECK(!memcmp(out.def, p->from.def, (size_t)(2 * out.items)));
    if (p->zip.width >= 0) FZ_CHECK(!memcmp(values, p->from.values, (size_t)(out.visible * p->zip.width)));
    for (int64_t i = 0, v = 0; i < out.items && p->zip.width < 0 && !p->zip.table; i++) {
        uint16_t def = p->from.def ? lc_load_u16(p->from.def + 2 * i) : 0;
        if (p->zip.top_rep && def > p->zip.visible) continue;
        int64_t from = lc_load_offset(p->from.offsets, p->from.wide, v), length = lc_load_offset(p->from.offsets, p->from.wide, v + 1) - from;
        int64_t to = lc_load_offset(out.offsets, out.wide, v);
        v++;
        FZ_CHECK(lc_load_offset(out.offsets, out.wide, v) - to == (def ? 0 : length));
        if (!def) FZ_CHECK(!memcmp(values + to, p->from.values + from, (size_t)length));
    }
}

static void fz_target(fz_input *in) {
    page p = {0};
    lc_fsst_table table;
    lc_zip *zip = &p.zip;
    zip->bits_rep = fz_upto(in, 3), zip->bits_def = fz_upto(in, 4), zip->control = lc_zip_control(zip->bits_rep + zip->bits_def);
    zip->top_rep = zip->bits_rep ? 1 + fz_upto(in, ((int64_t)1 << zip->bits_rep) - 2) : 0;
    zip->top_def = fz_upto(in, ((int64_t)1 << zip->bits_def) - 1), zip->visible = fz_upto(in, zip->top_def);
    zip->width = fz_upto(in, 1) ? fz_upto(in, 20) : -1, zip->prefix = 4 << fz_upto(in, 1);
    if (zip->width + zip->control == 0) zip->width = 1;
    int codes = zip->width < 0 && fz_upto(in, 1) ? 1 + (int)fz_upto(in, 200) : 0, damage = (int)fz_upto(in, 1);
    p.from.items = fz_upto(in, 90);
    levels_of(in, &p);
    values_of(in, &p, codes);
    lc_zip_sink sink = {0}, again = {0};
    int64_t where;
    if (lc_zip_zip(zip, &p.from, &sink, &where)) return;
    again.room = sink.size - (fz_upto(in, 31) == 0), again.index_width = sink.size < 256 ? (int64_t)1 << fz_upto(in, 3) : 4;
    if (again.room < 0) again.room = 0;
    again.index_rows = sink.rows - (sink.rows && fz_upto(in, 31) == 0);
    again.out = fz_out(in, again.room), again.index = fz_out(in, (again.index_rows + 1) * again.index_width);
    int problem = lc_zip_zip(zip, &p.from, &again, &where);
    FZ_CHECK((problem == LC_OK) == (again.room == sink.size && again.index_rows == sink.rows));
    if (problem) return;
    FZ_CHECK(again.size == sink.size && again.rows == p.rows && again.visible == p.visible);
    if (codes) { /* read as codes of symbols */
        uint64_t words[255];
        uint8_t lengths[255], bytes[LC_FSST_TABLE_SIZE];
        for (int i = 0; i < codes; i++) lengths[i] = (uint8_t)(1 + fz_upto(in, 7)), words[i] = (uint64_t)i;
        lc_fsst_table_write(words, lengths, codes, 1, bytes);
        FZ_CHECK(!lc_fsst_table_parse(bytes, sizeof bytes, &table));
        zip->table = &table;
    }
    lc_bytes data = {again.out, again.size};
    if (p.rows) by_row(in, &p, data, again.index, again.index_width);
    if (damage) data.data = fz_damaged(in, again.out, again.size);
    unzipped(in, &p, data, damage);
    if (zip->width >= 0 && !zip->top_rep) {
        int64_t n = fz_upto(in, 20), *at = fz_positions(in, n, p.from.items ? p.from.items : 1);
        lc_zip_fixed(zip, data, at, 0, n, fz_out(in, 2 * n), fz_out(in, n * zip->width), &where);
    }
}
