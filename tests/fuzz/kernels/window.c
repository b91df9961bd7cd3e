/* Rows of windows of pages, damaged or not: the same as single rows, and all of it inside of the outputs. */
#include "any_page.h"
#include "fsst_encode.h"
#include "take_column.h"
#include "window_arrays.h"

static uint64_t utf8[256];
static lc_fsst_table table;

static int bits_of(fz_input *in, fz_page *p, lc_take_page *page, int damage) {
    fz_page_open(in, p, 6);
    if (fz_nullable) fz_null_levels(in, p, page);
    int64_t s = fz_page_stream(p);
    for (int64_t i = 0; i < p->plan.count; i++) {
        uint8_t *room = fz_page_room(p, s, i);
        int64_t size = (p->values[i] + 7) / 8;
        for (int64_t k = 0; k < size; k++) room[k] = (uint8_t)fz_upto(in, 255);
        fz_page_put(p, s, i, size);
    }
    page->kind = LC_TAKE_CHUNKS, page->entries.count = -1;
    page->values.kind = LC_VALUE_FLAT, page->values.bits = 1;
    return fz_page_close(in, p, damage);
}

/* Symbols for each code below 128, of ASCII. */
static void symbols(fz_input *in) {
    uint64_t words[128];
    uint8_t lengths[128], bytes[LC_FSST_TABLE_SIZE];
    for (int i = 0; i < 128; i++) {
        lengths[i] = (uint8_t)(1 + fz_upto(in, 7));
        words[i] = (fz_word(in, 2) & 0x7F7F) * 0x0001000100010001ULL & lc_low_mask(8 * lengths[i]);
    }
    lc_fsst_table_write(words, lengths, 128, fz_upto(in, 7) != 0, bytes);
    FZ_CHECK(!lc_fsst_table_parse(bytes, sizeof bytes, &table));
}

/* A page with or without levels. *damage: whether some of it may be wrong. */
static int page_of(fz_input *in, fz_page *p, lc_take_page *page, int *damage) {
    int opened;
    fz_nullable = (int)fz_upto(in, 1);
    *damage = 1; /* codes without an entry count, too */
    page->levels.kind = LC_LEVEL_NONE, page->entries.count = -1;
    switch (fz_upto(in, 4)) {
        case 0:
            *damage = (int)fz_upto(in, 1);
            opened = texts_of(in, p, page, *damage);
            if (fz_upto(in, 1)) symbols(in), page->text.table = &table;
            break;
        case 1:
            *damage = (int)fz_upto(in, 1);
            opened = bits_of(in, p, page, *damage);
            break;
        case 2: opened = chunks_of(in, p, page, (int)fz_upto(in, 1)); break;
        case 3: return zipped_of(in, page), 1;
        default: return constant_of(in, page), 1;
    }
    page->chunks = &p->chunks, page->rows = p->chunks.table.items;
    page->required = fz_upto(in, 15) == 0;
    *damage |= page->required;
    return opened;
}

/* Row `at` of a text array. */
static lc_bytes text_at(const uint8_t *offsets, const uint8_t *data, int wide, int64_t at) {
    int64_t begin = lc_load_offset(offsets, wide, at);
    return (lc_bytes){data + begin, lc_load_offset(offsets, wide, at + 1) - begin};
}

/* The rows of a part, one by one, are those of the window from row `at` on. Returns 0 if they cannot be taken. */
static int compare(const lc_window_part *part, const lc_window_mask *mask, int64_t place, int64_t at, const lc_window_sink *sink) {
    int64_t n = 0, *rows = (int64_t *)fz_memory(8 * (part->stop - part->first), 0), width = part->page->width;
    for (int64_t i = 0; i < part->stop - part->first; i++)
        if (!mask->bits || lc_get_bit(mask->bits, mask->at + place + i)) rows[n++] = part->first + i;
    if (n == 0) return 1;
    lc_column_segments segments = {NULL, 0, 0};
    FZ_CHECK(!lc_segments_add(&segments, (lc_column_segment){part->page, 0, n, 0}));
    lc_column_rows wanted = {rows, NULL, n};
    lc_column_shape shape = {.width = width, .wide = sink->wide};
    lc_array array;
    int problem = lc_column_take(&shape, &wanted, &segments, utf8, &array);
    free(segments.at);
    if (problem) return 0;
    const uint8_t *valid = array.buffers[0], *values = array.buffers[1], *data = width < 0 ? array.buffers[2] : NULL;
    for (int64_t i = 0; i < n; i++) {
        int is = !valid || lc_get_bit(valid, i);
        if (sink->validity) FZ_CHECK(lc_get_bit(sink->validity, at + i) == is);
        if (!is) continue;
        if (width == 0) FZ_CHECK(lc_get_bit(values, i) == lc_get_bit(sink->values, at + i));
        if (width > 0) FZ_CHECK(!memcmp(values + i * width, sink->values + (at + i) * width, (size_t)width));
        if (width >= 0) continue;
        lc_bytes one = text_at(values, data, sink->wide, i), other = text_at(sink->values, sink->content, sink->wide, at + i);
        FZ_CHECK(one.size == other.size && (one.size == 0 || !memcmp(one.data, other.data, (size_t)one.size)));
    }
    array.release(&array);
    return 1;
}

static void check(const lc_window_part *parts, int64_t count, const lc_window_mask *mask, int64_t rows, const lc_window_sink *sink) {
    int64_t place = 0, at = 0;
    if (sink->validity) FZ_CHECK(lc_bits_count(sink->validity, 0, rows) == rows - sink->nulls);
    if (parts->page->width < 0) {
        FZ_CHECK(lc_load_offset(sink->values, sink->wide, 0) == 0 && lc_load_offset(sink->values, sink->wide, rows) == sink->size);
        FZ_CHECK(sink->size <= sink->capacity);
        for (int64_t i = 0; i < rows; i++) FZ_CHECK(text_at(sink->values, sink->content, sink->wide, i).size >= 0);
    }
    for (int64_t i = 0; i < count; i++) {
        FZ_CHECK(compare(parts + i, mask, place, at, sink));
        at += lc_window_count(mask, place, parts[i].stop - parts[i].first);
        place += parts[i].stop - parts[i].first;
    }
}

/* New arrays have the bytes of the outputs. */
static void same_array(const lc_window_part *parts, int64_t count, const lc_window_mask *mask, int64_t rows, const uint64_t *table, const lc_window_sink *sink, lc_spare *spare) {
    lc_array array = {0};
    int64_t width = parts->page->width;
    lc_window_source source = {parts, count, width, sink->validity != NULL, sink->wide, table};
    if (lc_window_array(&source, mask, rows, spare, &array)) return;
    const uint8_t *values = array.buffers[1];
    FZ_CHECK(array.length == rows && array.null_count == sink->nulls);
    for (int64_t i = 0; i < rows && array.buffers[0]; i++) FZ_CHECK(lc_get_bit(array.buffers[0], i) == lc_get_bit(sink->validity, i));
    if (width == 0) for (int64_t i = 0; i < rows; i++) FZ_CHECK(lc_get_bit(values, i) == lc_get_bit(sink->values, i));
    if (width > 0 && sink->nulls == 0) FZ_CHECK(!memcmp(values, sink->values, (size_t)(rows * width)));
    if (width < 0) FZ_CHECK(!memcmp(values, sink->values, (size_t)((rows + 1) * (sink->wide ? 8 : 4))));
    if (width < 0 && sink->size) FZ_CHECK(!memcmp(array.buffers[2], sink->content, (size_t)sink->size));
    array.release(&array);
}

static uint8_t *mask_of(fz_input *in, int64_t bits) {
    int64_t kind = fz_upto(in, 5), size = (bits + 7) / 8;
    uint8_t *mask = kind < 2 ? fz_take(in, size) : fz_out(in, size);
    if (kind >= 2) memset(mask, kind == 2 ? 0xFF : kind == 3 ? 0x10 : 0, (size_t)size);
    if (kind == 4) lc_set_bit(mask, fz_upto(in, bits - 1), 1);
    return mask;
}

static const int64_t *places_of(const lc_window_mask *mask, int64_t n, int64_t rows) {
    int64_t *places = (int64_t *)fz_memory(8 * rows, 0), found = 0;
    for (int64_t i = 0; i < n; i++)
        if (lc_get_bit(mask->bits, mask->at + i)) places[found++] = i;
    return places;
}

static void fz_target(fz_input *in) {
    fz_page p;
    lc_take_page page = {0};
    lc_window_part parts[2];
    int damage;
    if (!utf8[0]) lc_utf8_fill(utf8);
    if (!page_of(in, &p, &page, &damage) || !lc_window_supports(&page)) return;
    int64_t count = 1 + fz_upto(in, 1), n = 0, room = 0, place = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t first = fz_upto(in, 1) ? 0 : fz_upto(in, page.rows - 1), stop = fz_upto(in, 1) ? page.rows : first + 1 + fz_upto(in, page.rows - first - 1);
        parts[i] = (lc_window_part){&page, first, stop};
        n += stop - first;
    }
    lc_window_mask mask = {0};
    if (fz_upto(in, 3)) mask.at = fz_upto(in, 20), mask.bits = mask_of(in, mask.at + n);
    int64_t rows = lc_window_count(&mask, 0, n);
    if (mask.bits && fz_upto(in, 1)) mask.places = places_of(&mask, n, rows);
    lc_window_sink sink = {0};
    sink.wide = (int)fz_upto(in, 1);
    int problem = LC_OK, small = fz_upto(in, 15) == 0;
    for (int64_t i = 0; i < count && page.width < 0 && !problem; i++) {
        problem = lc_window_room(parts + i, &mask, place, &sink, &room);
        place += parts[i].stop - parts[i].first;
    }
    FZ_CHECK(damage || !problem);
    FZ_CHECK(problem || room >= 0);
    if (problem || room > 1 << 20) room = 0;
    sink.capacity = small ? fz_upto(in, room) : room;
    sink.values = fz_out(in, page.width < 0 ? (rows + 1) * (sink.wide ? 8 : 4) : page.width ? rows * page.width : (rows + 7) / 8);
    if (page.levels.kind != LC_LEVEL_NONE || fz_upto(in, 3) == 0) sink.validity = fz_out(in, (rows + 7) / 8);
    sink.content = fz_out(in, sink.capacity);
    const uint64_t *table_of_utf8 = fz_upto(in, 1) ? utf8 : NULL;
    problem = lc_window_read(parts, count, &mask, rows, table_of_utf8, &sink);
    lc_window_close(&sink);
    lc_spare *spare = lc_spare_open(fz_upto(in, 1) ? 1 << 20 : 0);
    for (int i = 0; i < 2 && !problem; i++) same_array(parts, count, &mask, rows, table_of_utf8, &sink, spare);
    lc_spare_close(spare);
    if (!problem) check(parts, count, &mask, rows, &sink);
    else FZ_CHECK(damage || (problem == LC_NO_SPACE && (small || page.text.table)));
}
