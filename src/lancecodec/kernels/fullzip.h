/* Full-zip pages: items back to back, each a control word with its levels, an optional length, and an optional value.
 * All functions process byte ranges of whole items: those of the requested rows. */
#ifndef LANCECODEC_FULLZIP_H
#define LANCECODEC_FULLZIP_H

#include "fsst.h"

typedef struct {
    int64_t bits_rep, bits_def;
    int64_t control;          /* bytes of a control word: 0, 1, 2 or 4 */
    int64_t top_rep, top_def; /* largest levels; top_rep > 0: there are lists */
    int64_t visible;          /* largest definition level of an item that owns a value */
    int64_t width;            /* bytes of a value; -1: they vary */
    int64_t prefix;           /* bytes of a length, 4 or 8, if values vary */
    const lc_fsst_table *table; /* FSST table of values that vary; NULL: they are stored verbatim */
} lc_zip;

typedef struct {
    uint64_t rep, def;
    int visible;
    lc_bytes value; /* of a visible item; empty for a null whose width varies */
} lc_zip_item;

/* Outputs and the number of entries written. */
typedef struct {
    uint8_t *rep, *def;             /* levels of 16 bits, or NULL */
    uint8_t *values;
    uint8_t *offsets;               /* `wide`: of 64 bits; NULL: width is fixed */
    int wide;
    int64_t items, visible, rows, bytes;             /* written; bytes is the last end offset */
    int64_t room_items, room_visible, room_bytes;    /* capacity of the same */
} lc_zip_out;

LC_INLINE int64_t lc_zip_control(int64_t bits) { return bits == 0 ? 0 : bits <= 8 ? 1 : bits <= 16 ? 2 : 4; }

LC_INLINE uint64_t lc_zip_word(const uint8_t *p, int64_t size) {
    return size == 0 ? 0 : size == 1 ? lc_once_u8(p) : size == 2 ? lc_once_u16(p) : lc_once_u32(p);
}

/* Read the item at *at and move *at behind it. */
LC_INLINE int lc_zip_next(const lc_zip *zip, const uint8_t **at, const uint8_t *end, lc_zip_item *item) {
    const uint8_t *p = *at;
    if (end - p < zip->control) return LC_BAD_ROW;
    uint64_t word = lc_zip_word(p, zip->control), size = 0;
    p += zip->control;
    item->def = word & (((uint64_t)1 << zip->bits_def) - 1);
    item->rep = word >> zip->bits_def;
    if (item->rep > (uint64_t)zip->top_rep || item->def > (uint64_t)zip->top_def) return LC_BAD_LEVEL;
    item->visible = zip->top_rep == 0 || item->def <= (uint64_t)zip->visible;
    if (item->visible && zip->width >= 0) {
        size = (uint64_t)zip->width;
    } else if (item->visible && item->def == 0) {
        if (end - p < zip->prefix) return LC_BAD_ROW;
        size = zip->prefix == 8 ? lc_once_u64(p) : lc_once_u32(p);
        p += zip->prefix;
    }
    if (size > (uint64_t)(end - p)) return LC_BAD_ROW;
    item->value.data = p;
    item->value.size = (int64_t)size;
    *at = p + size;
    return LC_OK;
}

/* Add an item to the counts. */
LC_INLINE int lc_zip_count_item(const lc_zip *zip, const lc_zip_item *item, lc_zip_out *out) {
    int64_t size = item->value.size;
    if (item->visible && zip->table) size = lc_fsst_decoded_size(zip->table, item->value.data, size);
    if (size < 0) return LC_BAD_CODE;
    if (size > out->room_bytes - out->bytes) return LC_NO_SPACE;
    out->items++;
    out->visible += item->visible;
    out->rows += item->rep == (uint64_t)zip->top_rep;
    out->bytes += size;
    return LC_OK;
}

/* Count items, visible items, row starts and value bytes in byte ranges of data, each beginning with a row. `where`:
 * the damaged range. */
static int lc_zip_count(const lc_zip *zip, lc_bytes data, const int64_t *begins, const int64_t *ends, int64_t ranges,
                        lc_zip_out *out, int64_t *where) {
    lc_zip_item item;
    for (*where = 0; *where < ranges; ++*where) {
        int64_t begin = begins[*where], end = ends[*where];
        if (begin < 0 || end < begin || end > data.size) return LC_BAD_OFFSETS;
        for (const uint8_t *p = data.data + begin, *stop = data.data + end; p < stop;) {
            int first = p == data.data + begin, problem = lc_zip_next(zip, &p, stop, &item);
            if (problem) return problem;
            if (first && item.rep != (uint64_t)zip->top_rep) return LC_BAD_LEVEL;
            if ((problem = lc_zip_count_item(zip, &item, out))) return problem;
        }
    }
    return LC_OK;
}

/* Copy a value and, if widths vary, store its end. */
LC_INLINE int lc_zip_put_value(const lc_zip *zip, lc_bytes value, lc_zip_out *out) {
    int64_t written = value.size, room = out->room_bytes - out->bytes;
    if (out->visible >= out->room_visible || (!zip->table && value.size > room)) return LC_NO_SPACE;
    if (zip->table) {
        int problem = lc_fsst_decode(zip->table, value.data, value.size, out->values, room, &written);
        if (problem) return problem;
    } else {
        lc_copy_bytes(out->values, value.data, value.size);
    }
    out->values += written;
    out->bytes += written;
    out->visible++;
    if (out->offsets) lc_store_offset(out->offsets, out->wide, out->visible, out->bytes);
    return LC_OK;
}

/* Unzip levels and values of the items in byte ranges of data. */
static int lc_zip_unzip(const lc_zip *zip, lc_bytes data, const int64_t *begins, const int64_t *ends, int64_t ranges,
                        lc_zip_out *out, int64_t *where) {
    lc_zip_item item;
    for (*where = 0; *where < ranges; ++*where) {
        int64_t begin = begins[*where], end = ends[*where];
        if (begin < 0 || end < begin || end > data.size) return LC_BAD_OFFSETS;
        for (const uint8_t *p = data.data + begin, *stop = data.data + end; p < stop;) {
            int problem = lc_zip_next(zip, &p, stop, &item);
            if (problem) return problem;
            if (out->items >= out->room_items) return LC_NO_SPACE;
            if (out->rep) lc_store_u16(out->rep + 2 * out->items, (uint16_t)item.rep);
            if (out->def) lc_store_u16(out->def + 2 * out->items, (uint16_t)item.def);
            out->items++;
            out->rows += item.rep == (uint64_t)zip->top_rep;
            if (item.visible && (problem = lc_zip_put_value(zip, item.value, out))) return problem;
        }
    }
    return LC_OK;
}

/* Unzip item items[i], or first + i if items is NULL, of a page without lists whose items all have the same size. The
 * caller has checked the outputs. */
static int lc_zip_fixed(const lc_zip *zip, lc_bytes data, const int64_t *items, int64_t first, int64_t n, uint8_t *def,
                        uint8_t *values, int64_t *where) {
    int64_t size = zip->control + zip->width, total = data.size / size;
    for (*where = 0; *where < n; ++*where) {
        int64_t item = items ? items[*where] : first + *where;
        if ((uint64_t)item >= (uint64_t)total) return LC_BAD_COUNT;
        const uint8_t *p = data.data + item * size;
        uint64_t level = lc_zip_word(p, zip->control);
        if (level > (uint64_t)zip->top_def) return LC_BAD_LEVEL;
        if (def) lc_store_u16(def + 2 * *where, (uint16_t)level);
        lc_copy_bytes(values + *where * zip->width, p + zip->control, zip->width);
    }
    return LC_OK;
}

/* ---- repetition index: rows + 1 byte positions of 1, 2, 4 or 8 bytes ---- */

LC_INLINE uint64_t lc_zip_position(const uint8_t *index, int64_t width, int64_t i) {
    const uint8_t *p = index + i * width;
    return width == 1 ? lc_once_u8(p) : width == 2 ? lc_once_u16(p) : width == 4 ? lc_once_u32(p) : lc_once_u64(p);
}

/* Byte ranges of rows. The index starts with row `first` and has `entries` entries. Every row has bytes. */
static int lc_zip_row_ranges(const uint8_t *index, int64_t width, int64_t first, int64_t entries, const int64_t *rows,
                             int64_t n, int64_t size, int64_t *begins, int64_t *ends, int64_t *where) {
    for (*where = 0; *where < n; ++*where) {
        int64_t row = rows[*where];
        if (row < first || row - first >= entries - 1) return LC_BAD_COUNT;
        uint64_t begin = lc_zip_position(index, width, row - first);
        uint64_t end = lc_zip_position(index, width, row - first + 1);
        if (begin >= end || end > (uint64_t)size) return LC_BAD_OFFSETS;
        begins[*where] = (int64_t)begin;
        ends[*where] = (int64_t)end;
    }
    return LC_OK;
}

/* ---- writing ---- */

typedef struct {
    const uint8_t *rep, *def;  /* levels of 16 bits per item; NULL: none */
    int64_t items;
    const uint8_t *values;     /* visible items, including nulls */
    const uint8_t *offsets;    /* end of each visible item follows its begin; NULL: width is fixed */
    int wide;
    int64_t room_visible, room_bytes; /* number of visible items and of bytes */
} lc_zip_source;

typedef struct {
    uint8_t *out, *index;      /* NULL: count only */
    int64_t index_width, index_rows, room; /* rows that fit the index besides its last entry; size of out */
    int64_t size, rows, visible;
} lc_zip_sink;

/* Return the value of the next visible item: *value, or no bytes for a null whose width varies. */
LC_INLINE int lc_zip_take_value(const lc_zip *zip, const lc_zip_source *from, uint64_t def, int64_t visible,
                                lc_bytes *value) {
    if (visible >= from->room_visible) return LC_BAD_COUNT;
    int64_t begin = visible * zip->width, end = begin + zip->width;
    if (from->offsets) {
        begin = lc_load_offset(from->offsets, from->wide, visible);
        end = def ? begin : lc_load_offset(from->offsets, from->wide, visible + 1);
    }
    if (begin < 0 || end < begin || end > from->room_bytes) return LC_BAD_OFFSETS;
    if (from->offsets && zip->prefix == 4 && end - begin > UINT32_MAX) return LC_NO_SPACE;
    value->data = from->values + begin;
    value->size = end - begin;
    return LC_OK;
}

LC_INLINE void lc_zip_put(uint8_t *p, int64_t size, uint64_t word) { memcpy(p, &word, (size_t)size); }

/* Write one item to sink->out, if it is not NULL. */
LC_INLINE int lc_zip_put_item(const lc_zip *zip, const lc_zip_source *from, int64_t i, lc_zip_sink *sink) {
    uint64_t rep = from->rep ? lc_load_u16(from->rep + 2 * i) : 0, def = from->def ? lc_load_u16(from->def + 2 * i) : 0;
    if (rep > (uint64_t)zip->top_rep || def > (uint64_t)zip->top_def) return LC_BAD_LEVEL;
    if (rep >> zip->bits_rep || def >> zip->bits_def) return LC_BAD_LEVEL;
    lc_bytes value = {NULL, 0};
    int visible = zip->top_rep == 0 || def <= (uint64_t)zip->visible, problem;
    if (visible && (problem = lc_zip_take_value(zip, from, def, sink->visible, &value))) return problem;
    int64_t prefix = visible && from->offsets && def == 0 ? zip->prefix : 0;
    if (rep == (uint64_t)zip->top_rep) {
        if (sink->index && sink->rows >= sink->index_rows) return LC_NO_SPACE;
        if (sink->index)
            lc_zip_put(sink->index + sink->rows * sink->index_width, sink->index_width, (uint64_t)sink->size);
        sink->rows++;
    } else if (i == 0) {
        return LC_BAD_LEVEL;
    }
    if (sink->out && zip->control + prefix + value.size > sink->room - sink->size) return LC_NO_SPACE;
    if (sink->out) {
        uint8_t *p = sink->out + sink->size;
        lc_zip_put(p, zip->control, rep << zip->bits_def | def);
        lc_zip_put(p + zip->control, prefix, (uint64_t)value.size);
        if (value.size) lc_copy_bytes(p + zip->control + prefix, value.data, value.size);
    }
    sink->size += zip->control + prefix + value.size;
    sink->visible += visible;
    return LC_OK;
}

/* Zip all items, and write the final entry of the index. `where`: the invalid item. */
static int lc_zip_zip(const lc_zip *zip, const lc_zip_source *from, lc_zip_sink *sink, int64_t *where) {
    sink->size = sink->rows = sink->visible = 0;
    for (*where = 0; *where < from->items; ++*where) {
        int problem = lc_zip_put_item(zip, from, *where, sink);
        if (problem) return problem;
    }
    if (sink->index)
        lc_zip_put(sink->index + sink->rows * sink->index_width, sink->index_width, (uint64_t)sink->size);
    return LC_OK;
}

#endif
