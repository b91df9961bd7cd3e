/* Packed structs: the children of a row back to back, unaligned and without padding.
 *
 * With fixed-width children every row has the same size. A variable-width child has its length (32 or 64 bits) in
 * front, and a row with such a child is a variable-width value itself. */
#ifndef LANCECODEC_PACKED_H
#define LANCECODEC_PACKED_H

#include "bits.h"
#include "variable.h"

/* Size of a block of rows: each child is processed in a loop of its own. As measured, with blocks of 8 KiB and more a
 * large column takes up to twice as long. */
#define LC_PACKED_BLOCK_BYTES 2048

/* ---- fixed width ---- */

/* A child: its column of `width` bytes per row (NULL: skipped), and its position in the row. */
typedef struct {
    uint8_t *column;
    int64_t width, place;
} lc_packed_field;

LC_INLINE int64_t lc_packed_block(int64_t stride) {
    int64_t rows = LC_PACKED_BLOCK_BYTES / stride;
    return rows < 16 ? 16 : rows;
}

/* Copy n values of `width` bytes, `from` and `to` bytes apart, as their first and last `unit` bytes, which may overlap.
 * Compiled for each constant unit. */
LC_INLINE void lc_strided_copy(const uint8_t *LC_RESTRICT src, int64_t from, uint8_t *LC_RESTRICT out, int64_t to,
                               int64_t n, int64_t unit, int64_t tail) {
    int64_t i = 0;
    for (; i + 4 <= n; i += 4, src += 4 * from, out += 4 * to) {
        for (int64_t k = 0; k < 4; k++) {
            memcpy(out + k * to, src + k * from, (size_t)unit);
            if (tail) memcpy(out + k * to + tail, src + k * from + tail, (size_t)unit);
        }
    }
    for (; i < n; i++, src += from, out += to) {
        memcpy(out, src, (size_t)unit);
        if (tail) memcpy(out + tail, src + tail, (size_t)unit);
    }
}

#define LC_STRIDED(UNIT)                                                     \
    do {                                                                     \
        if (width == UNIT) lc_strided_copy(src, from, out, to, n, UNIT, 0);  \
        else lc_strided_copy(src, from, out, to, n, UNIT, width - UNIT);     \
    } while (0)

static inline void lc_strided(const uint8_t *src, int64_t from, uint8_t *out, int64_t to, int64_t n, int64_t width) {
    if (width == 1) lc_strided_copy(src, from, out, to, n, 1, 0);
    else if (width < 4) LC_STRIDED(2);
    else if (width < 8) LC_STRIDED(4);
    else if (width < 16) LC_STRIDED(8);
    else if (width <= 32) LC_STRIDED(16);
    else
        for (int64_t i = 0; i < n; i++, src += from, out += to) memcpy(out, src, (size_t)width);
}

/* Columns -> n rows, row i at out + i * stride. */
static inline void lc_packed_pack(const lc_packed_field *fields, int64_t count, int64_t n, uint8_t *out,
                                  int64_t stride) {
    int64_t block = lc_packed_block(stride);
    for (int64_t at = 0; at < n; at += block) {
        int64_t rows = n - at < block ? n - at : block;
        for (int64_t f = 0; f < count; f++) {
            int64_t width = fields[f].width;
            lc_strided(fields[f].column + at * width, width, out + at * stride + fields[f].place, stride, rows, width);
        }
    }
}

/* n rows -> columns. */
static inline void lc_packed_unpack(const lc_packed_field *fields, int64_t count, int64_t n, const uint8_t *src,
                                    int64_t stride) {
    int64_t block = lc_packed_block(stride);
    for (int64_t at = 0; at < n; at += block) {
        int64_t rows = n - at < block ? n - at : block;
        for (int64_t f = 0; f < count; f++) {
            int64_t width = fields[f].width;
            if (fields[f].column == NULL) continue;
            lc_strided(src + at * stride + fields[f].place, stride, fields[f].column + at * width, width, rows, width);
        }
    }
}

LC_INLINE void lc_packed_gather(const uint8_t *LC_RESTRICT src, int64_t stride, const int64_t *LC_RESTRICT at,
                                int64_t n, int64_t width, uint8_t *LC_RESTRICT out) {
    for (int64_t i = 0; i < n; i++) memcpy(out + i * width, src + at[i] * stride, (size_t)width);
}

static inline void lc_packed_take_field(const uint8_t *src, int64_t stride, const int64_t *at, int64_t n,
                                        int64_t width, uint8_t *out) {
    switch (width) {
        case 1: lc_packed_gather(src, stride, at, n, 1, out); break;
        case 2: lc_packed_gather(src, stride, at, n, 2, out); break;
        case 4: lc_packed_gather(src, stride, at, n, 4, out); break;
        case 8: lc_packed_gather(src, stride, at, n, 8, out); break;
        case 16: lc_packed_gather(src, stride, at, n, 16, out); break;
        default:
            for (int64_t i = 0; i < n; i++) lc_copy_bytes(out + i * width, src + at[i] * stride, width);
    }
}

/* Unpack rows at[0..n) into columns. Positions are checked: returns the first invalid one, or -1. */
static inline int64_t lc_packed_take(const lc_packed_field *fields, int64_t count, int64_t rows, const uint8_t *src,
                                     int64_t stride, const int64_t *at, int64_t n) {
    const int64_t block = 256;
    for (int64_t begin = 0; begin < n; begin += block) {
        int64_t size = n - begin < block ? n - begin : block;
        for (int64_t i = begin; i < begin + size; i++)
            if ((uint64_t)at[i] >= (uint64_t)rows) return i;
        for (int64_t f = 0; f < count; f++) {
            int64_t width = fields[f].width;
            if (fields[f].column == NULL) continue;
            lc_packed_take_field(src + fields[f].place, stride, at + begin, size, width,
                                 fields[f].column + begin * width);
        }
    }
    return -1;
}

/* ---- variable width ---- */

/* A child, to be read or written. Fixed: `data` is its column. Variable: `width` is that of the length in front,
 * `offsets` and `data` are Arrow's, `used` counts the bytes written. Outputs that are not wanted are NULL. */
typedef struct {
    int variable;
    int64_t width;
    uint8_t *offsets;
    int wide;
    uint8_t *data;
    int64_t size, used;
} lc_packed_child;

/* Rows as Arrow values, and their validity (NULL: no nulls), whose bit `bit` belongs to row 0. Null rows are empty. */
typedef struct {
    uint8_t *offsets;
    int wide;
    uint8_t *data;
    int64_t size, n;
    const uint8_t *validity;
    int64_t bit;
} lc_packed_rows;

LC_INLINE int lc_packed_is_null(const lc_packed_rows *rows, int64_t i) {
    return rows->validity && !lc_get_bit(rows->validity, rows->bit + i);
}

/* Value i of a variable child. */
LC_INLINE int lc_packed_value(const lc_packed_child *child, int64_t i, int64_t *begin, int64_t *length) {
    int64_t end = lc_load_offset(child->offsets, child->wide, i + 1);
    *begin = lc_load_offset(child->offsets, child->wide, i);
    if (*begin < 0 || end < *begin || end > child->size) return LC_BAD_OFFSETS;
    *length = end - *begin;
    return child->width == 4 && *length > INT32_MAX ? LC_NO_SPACE : LC_OK;
}

/* Compute the offsets of the rows, from 0. *where: the invalid row. The fixed parts of all rows are below 2**62. */
static inline int lc_packed_row_offsets(const lc_packed_child *children, int64_t count, lc_packed_rows *rows,
                                        int64_t *where) {
    int64_t limit = rows->wide ? INT64_MAX : INT32_MAX, end = 0, fixed = 0;
    for (int64_t c = 0; c < count; c++) fixed += children[c].width;
    lc_store_offset(rows->offsets, rows->wide, 0, 0);
    for (int64_t i = 0; i < rows->n; i++) {
        *where = i;
        if (!lc_packed_is_null(rows, i)) {
            if (fixed > limit - end) return LC_NO_SPACE;
            end += fixed;
            for (int64_t c = 0; c < count; c++) {
                int64_t begin, length;
                if (!children[c].variable) continue;
                int problem = lc_packed_value(children + c, i, &begin, &length);
                if (problem) return problem;
                if (length > limit - end) return LC_NO_SPACE;
                end += length;
            }
        }
        lc_store_offset(rows->offsets, rows->wide, i + 1, end);
    }
    return LC_OK;
}

/* Write the bytes of the rows to rows->data; rows->size becomes the number of bytes written. Bytes behind them may
 * change. */
static inline int lc_packed_row_bytes(const lc_packed_child *children, int64_t count, lc_packed_rows *rows,
                                      int64_t *where) {
    uint8_t *out = rows->data, *end = out + rows->size;
    for (int64_t i = 0; i < rows->n; i++) {
        *where = i;
        if (lc_packed_is_null(rows, i)) continue;
        for (int64_t c = 0; c < count; c++) {
            const lc_packed_child *child = children + c;
            int64_t begin, length;
            if (child->width > end - out) return LC_NO_SPACE;
            if (!child->variable) {
                lc_copy_bytes(out, child->data + i * child->width, child->width);
                out += child->width;
                continue;
            }
            int problem = lc_packed_value(child, i, &begin, &length);
            if (problem) return problem;
            lc_store_offset(out, child->width == 8, 0, length);
            out += child->width;
            if (length > end - out) return LC_NO_SPACE;
            lc_copy_value(out, end - out, child->data + begin, child->size - begin, length);
            out += length;
        }
    }
    rows->size = out - rows->data;
    return LC_OK;
}

/* Row i, as the bytes from *p to *end. */
LC_INLINE int lc_packed_row(const lc_packed_rows *rows, int64_t i, const uint8_t **p, const uint8_t **end) {
    int64_t first = lc_load_offset(rows->offsets, rows->wide, i);
    int64_t last = lc_load_offset(rows->offsets, rows->wide, i + 1);
    if (first < 0 || last < first || last > rows->size) return LC_BAD_OFFSETS;
    *p = rows->data + first;
    *end = rows->data + last;
    return LC_OK;
}

/* The next child of a row: its bytes begin at *p. */
LC_INLINE int lc_packed_next(const lc_packed_child *child, const uint8_t **p, const uint8_t *end, int64_t *length) {
    if (child->width > end - *p) return LC_BAD_ROW;
    *length = child->width;
    if (!child->variable) return LC_OK;
    uint64_t stored = child->width == 8 ? lc_once_u64(*p) : lc_once_u32(*p);
    *p += child->width;
    if (stored > (uint64_t)(end - *p)) return LC_BAD_ROW;
    *length = (int64_t)stored;
    return LC_OK;
}

/* Write the content of a null row to the columns. */
LC_INLINE void lc_packed_skip_row(lc_packed_child *children, int64_t count, int64_t i) {
    for (int64_t c = 0; c < count; c++) {
        lc_packed_child *child = children + c;
        if (child->variable && child->offsets) lc_store_offset(child->offsets, child->wide, i + 1, child->used);
        if (!child->variable && child->data) memset(child->data + i * child->width, 0, (size_t)child->width);
    }
}

LC_INLINE int lc_packed_split_row(lc_packed_child *children, int64_t count, int64_t i, const uint8_t *p,
                                  const uint8_t *end) {
    for (int64_t c = 0; c < count; c++) {
        lc_packed_child *child = children + c;
        int64_t length;
        int problem = lc_packed_next(child, &p, end, &length);
        if (problem) return problem;
        if (!child->variable) {
            if (child->data) lc_copy_bytes(child->data + i * length, p, length);
        } else {
            if (length > (child->wide ? INT64_MAX : INT32_MAX) - child->used) return LC_NO_SPACE;
            child->used += length;
            if (child->offsets) lc_store_offset(child->offsets, child->wide, i + 1, child->used);
        }
        p += length;
    }
    return p == end ? LC_OK : LC_BAD_ROW;
}

/* Write fixed children to their columns, and the offsets of the variable ones; `used` becomes the size of their
 * bytes. */
static inline int lc_packed_split(lc_packed_child *children, int64_t count, const lc_packed_rows *rows,
                                  int64_t *where) {
    for (int64_t c = 0; c < count; c++) {
        children[c].used = 0;
        if (children[c].variable && children[c].offsets) lc_store_offset(children[c].offsets, children[c].wide, 0, 0);
    }
    for (int64_t i = 0; i < rows->n; i++) {
        const uint8_t *p, *end;
        *where = i;
        if (lc_packed_is_null(rows, i)) {
            lc_packed_skip_row(children, count, i);
            continue;
        }
        int problem = lc_packed_row(rows, i, &p, &end);
        if (!problem) problem = lc_packed_split_row(children, count, i, p, end);
        if (problem) return problem;
    }
    return LC_OK;
}

/* Write the bytes of the variable children, back to back. Bytes behind them in the outputs may change. */
static inline int lc_packed_split_bytes(lc_packed_child *children, int64_t count, const lc_packed_rows *rows,
                                        int64_t *where) {
    const uint8_t *source_end = rows->data + rows->size;
    for (int64_t c = 0; c < count; c++) children[c].used = 0;
    for (int64_t i = 0; i < rows->n; i++) {
        const uint8_t *p, *end;
        *where = i;
        if (lc_packed_is_null(rows, i)) continue;
        int problem = lc_packed_row(rows, i, &p, &end);
        for (int64_t c = 0; c < count && !problem; c++) {
            lc_packed_child *child = children + c;
            int64_t length;
            problem = lc_packed_next(child, &p, end, &length);
            if (problem) break;
            if (child->variable && child->data) {
                if (length > child->size - child->used) return LC_NO_SPACE;
                lc_copy_value(child->data + child->used, child->size - child->used, p, source_end - p, length);
                child->used += length;
            }
            p += length;
        }
        if (problem) return problem;
    }
    return LC_OK;
}

#endif
