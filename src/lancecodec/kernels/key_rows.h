/* Rows of several columns as keys: a word of up to 8 bytes, or a byte string, per row.
 *
 * A single column of up to 8 bytes is loaded into words; one of wider values or of strings is used in place. All other
 * rows are packed: the values of a row back to back, strings with their length in front, so that different rows have
 * different bytes. In a column, nulls either have no key or are values; in the latter case a byte in front of each
 * value is the validity.
 *
 * Rows are processed in blocks. Offsets are loaded once, so they may change during a call. */
#ifndef LANCECODEC_KEY_ROWS_H
#define LANCECODEC_KEY_ROWS_H

#include <stdlib.h>

#include "bits.h"
#include "chunk.h"
#include "membership.h"

#define LC_KEY_BLOCK 256
/* Size of the packed rows of a block, unless a single row is larger. */
#define LC_KEY_SCRATCH ((int64_t)1 << 20)
/* Readable bytes behind packed rows. */
#define LC_KEY_SLACK 16

/* Widths of columns whose values do not have a fixed number of bytes. */
enum { LC_KEY_BITS = -2, LC_KEY_TEXTS = -1 };

typedef struct {
    int64_t width;           /* bytes of a value (0: there is only the validity), or one of the above */
    int null_is_value;
    const uint8_t *validity; /* or NULL: no nulls */
    int64_t bit;             /* of the first row in the validity */
    const uint8_t *data;
    int64_t size, first;     /* bytes of data; the value (bit, offset) of the first row */
    const uint8_t *offsets;
    int wide;
} lc_key_column;

/* Forms of rows. */
enum lc_key_form { LC_KEY_WORD, LC_KEY_FIXED, LC_KEY_STRING };

/* Columns of n rows. The caller has checked that data, validity and offsets are large enough. */
typedef struct {
    const lc_key_column *columns;
    int64_t count, n;
    int direct;              /* a single column that is not packed */
    enum lc_key_form form;
    int64_t width;           /* bytes of a row, -1 if they differ */
} lc_key_rows;

typedef struct {
    int64_t n;
    uint8_t valid[LC_KEY_BLOCK];
    uint64_t words[LC_KEY_BLOCK];
    const uint8_t *at[LC_KEY_BLOCK], *end; /* bytes from `end` on must not be read */
    int64_t sizes[LC_KEY_BLOCK];
    uint8_t *scratch;
    int64_t room;
    int64_t *begins; /* of the strings of a block, LC_KEY_BLOCK for each column, and then their lengths */
} lc_key_block;

/* -- shape -------------------------------------------------------------------------------------------------------- */

static void lc_key_rows_open(lc_key_rows *r, const lc_key_column *columns, int64_t count, int64_t n) {
    r->columns = columns, r->count = count, r->n = n, r->width = 0;
    for (int64_t c = 0; c < count && r->width >= 0; c++) {
        int64_t width = columns[c].width == LC_KEY_BITS ? 1 : columns[c].width;
        r->width = width < 0 ? -1 : r->width + width + (columns[c].null_is_value != 0);
    }
    r->form = r->width < 0 ? LC_KEY_STRING : r->width <= 8 ? LC_KEY_WORD : LC_KEY_FIXED;
    int64_t only = count == 1 && !columns->null_is_value ? columns->width : LC_KEY_BITS;
    r->direct = only == LC_KEY_TEXTS || only > 8 || only == 1 || only == 2 || only == 4 || only == 8;
}

static int lc_key_block_open(lc_key_block *b, const lc_key_rows *r) {
    b->scratch = NULL, b->room = 0;
    b->begins = (int64_t *)malloc((size_t)(r->count ? r->count : 1) * 2 * LC_KEY_BLOCK * sizeof(int64_t));
    return b->begins ? LC_OK : LC_NO_MEMORY;
}

static void lc_key_block_close(lc_key_block *b) {
    free(b->begins);
    free(b->scratch);
}

/* -- one column, used in place ------------------------------------------------------------------------------------ */

LC_INLINE void lc_key_load_words(const lc_key_column *c, int64_t start, int64_t n, int64_t width, uint64_t *words) {
    const uint8_t *p = c->data + (c->first + start) * width;
    for (int64_t i = 0; i < n; i++) words[i] = lc_load_width(p, width, i);
}

/* Begin and length of the strings of a block. */
static int lc_key_load_strings(const lc_key_column *c, int64_t start, int64_t n, int64_t *begins, int64_t *lengths) {
    int64_t begin = n ? lc_load_offset(c->offsets, c->wide, c->first + start) : 0;
    if (begin < 0) return LC_BAD_OFFSETS;
    for (int64_t i = 0; i < n; i++) {
        int64_t end = lc_load_offset(c->offsets, c->wide, c->first + start + i + 1);
        if (end < begin || end > c->size) return LC_BAD_OFFSETS;
        begins[i] = begin, lengths[i] = end - begin;
        begin = end;
    }
    return LC_OK;
}

static int lc_key_direct(lc_key_block *b, const lc_key_column *c, int64_t start) {
    switch (c->width) {
    case 1: lc_key_load_words(c, start, b->n, 1, b->words); return LC_OK;
    case 2: lc_key_load_words(c, start, b->n, 2, b->words); return LC_OK;
    case 4: lc_key_load_words(c, start, b->n, 4, b->words); return LC_OK;
    case 8: lc_key_load_words(c, start, b->n, 8, b->words); return LC_OK;
    default: break;
    }
    b->end = c->data + c->size;
    if (c->width != LC_KEY_TEXTS) {
        for (int64_t i = 0; i < b->n; i++) {
            b->at[i] = c->data + (c->first + start + i) * c->width;
            b->sizes[i] = c->width;
        }
        return LC_OK;
    }
    int problem = lc_key_load_strings(c, start, b->n, b->begins, b->sizes);
    for (int64_t i = 0; i < b->n && problem == LC_OK; i++) b->at[i] = c->data + b->begins[i];
    return problem;
}

/* -- packed rows -------------------------------------------------------------------------------------------------- */

/* Compute the sizes of the rows of a block, which is shortened if they are large. Returns the size of all. */
static int64_t lc_key_measure(lc_key_block *b, const lc_key_rows *r) {
    int64_t total = 0, i = 0;
    for (; i < b->n; i++) {
        int64_t size = 0;
        for (int64_t k = 0; k < r->count; k++) {
            int64_t width = r->columns[k].width;
            size += r->columns[k].null_is_value != 0;
            size += width >= 0 ? width : width == LC_KEY_BITS ? 1 : 8 + b->begins[(2 * k + 1) * LC_KEY_BLOCK + i];
        }
        if (i && size > LC_KEY_SCRATCH - total) break;
        b->sizes[i] = size;
        total += size;
    }
    b->n = i;
    return total;
}

/* Append a value to its row; return its end. */
LC_INLINE uint8_t *lc_key_put(uint8_t *to, const lc_key_column *c, const lc_key_block *b, int64_t column, int64_t row,
                              int64_t i, int present) {
    const int64_t *begins = b->begins + 2 * column * LC_KEY_BLOCK, *lengths = begins + LC_KEY_BLOCK;
    int64_t size = c->width;
    if (c->null_is_value) *to++ = (uint8_t)present;
    if (c->width == LC_KEY_BITS) {
        *to++ = (uint8_t)(present && lc_get_bit(c->data, c->first + row));
        return to;
    }
    if (c->width == LC_KEY_TEXTS) {
        size = lengths[i];
        lc_store_u64(to, (uint64_t)size);
        to += 8;
    }
    if (size == 0) return to;
    if (!present) memset(to, 0, (size_t)size);
    else lc_copy_bytes(to, c->width == LC_KEY_TEXTS ? c->data + begins[i] : c->data + (c->first + row) * size, size);
    return to + size;
}

/* The content of a null must not matter, and neither must its length. */
static int lc_key_load_packed(lc_key_block *b, const lc_key_rows *r, int64_t start) {
    uint8_t present[LC_KEY_BLOCK];
    for (int64_t k = 0; k < r->count; k++) {
        const lc_key_column *c = r->columns + k;
        int64_t *begins = b->begins + 2 * k * LC_KEY_BLOCK, *lengths = begins + LC_KEY_BLOCK;
        if (c->width != LC_KEY_TEXTS) continue;
        int problem = lc_key_load_strings(c, start, b->n, begins, lengths);
        if (problem != LC_OK) return problem;
        if (!c->validity) continue;
        lc_bits_unpack(c->validity, c->bit + start, b->n, present);
        for (int64_t i = 0; i < b->n; i++) lengths[i] = present[i] ? lengths[i] : 0;
    }
    return LC_OK;
}

static int lc_key_pack(lc_key_block *b, const lc_key_rows *r, int64_t start) {
    uint8_t *to[LC_KEY_BLOCK], present[LC_KEY_BLOCK];
    int problem = lc_key_load_packed(b, r, start);
    if (problem != LC_OK) return problem;
    int64_t total = lc_key_measure(b, r);
    if (b->room < total + LC_KEY_SLACK) {
        free(b->scratch);
        b->room = 0;
        b->scratch = (uint8_t *)malloc((size_t)(total + LC_KEY_SLACK));
        if (!b->scratch) return LC_NO_MEMORY;
        b->room = total + LC_KEY_SLACK;
    }
    b->end = b->scratch + total + LC_KEY_SLACK;
    memset(b->scratch + total, 0, LC_KEY_SLACK);
    uint8_t *at = b->scratch;
    for (int64_t i = 0; i < b->n; at += b->sizes[i], i++) b->at[i] = to[i] = at;
    for (int64_t k = 0; k < r->count; k++) {
        const lc_key_column *c = r->columns + k;
        if (c->validity) lc_bits_unpack(c->validity, c->bit + start, b->n, present);
        else memset(present, 1, (size_t)b->n);
        for (int64_t i = 0; i < b->n; i++) to[i] = lc_key_put(to[i], c, b, k, start + i, i, present[i]);
    }
    if (r->form == LC_KEY_WORD)
        for (int64_t i = 0; i < b->n; i++) b->words[i] = lc_load_u64(b->at[i]) & LC_BYTES_MASK[r->width];
    return LC_OK;
}

/* -- blocks ------------------------------------------------------------------------------------------------------- */

/* Load the rows from `start` on, which is before the last one. b->n becomes their number. */
static int lc_key_block_load(lc_key_block *b, const lc_key_rows *r, int64_t start) {
    uint8_t present[LC_KEY_BLOCK];
    b->n = r->n - start < LC_KEY_BLOCK ? r->n - start : LC_KEY_BLOCK;
    memset(b->valid, 1, (size_t)b->n);
    for (int64_t k = 0; k < r->count; k++) {
        const lc_key_column *c = r->columns + k;
        if (c->null_is_value || !c->validity) continue;
        lc_bits_unpack(c->validity, c->bit + start, b->n, present);
        for (int64_t i = 0; i < b->n; i++) b->valid[i] &= present[i];
    }
    return r->direct ? lc_key_direct(b, r->columns, start) : lc_key_pack(b, r, start);
}

LC_INLINE uint64_t lc_key_hash(lc_secret secret, enum lc_key_form form, const lc_key_block *b, int64_t i) {
    if (form == LC_KEY_WORD) return lc_hash_word(secret, b->words[i]);
    return lc_string_hash(secret, b->at[i], b->sizes[i], b->end - b->at[i]);
}

/* Compute the part of `parts` of each row, -1 for rows without a key. */
static int lc_key_parts(const lc_key_rows *r, lc_secret secret, int64_t parts, int64_t *out) {
    lc_key_block b;
    int problem = lc_key_block_open(&b, r);
    for (int64_t start = 0; start < r->n && problem == LC_OK; start += b.n) {
        problem = lc_key_block_load(&b, r, start);
        for (int64_t i = 0; i < b.n && problem == LC_OK; i++) {
            uint64_t hash = lc_key_hash(secret, r->form, &b, i) >> 32;
            out[start + i] = b.valid[i] ? (int64_t)((hash * (uint64_t)parts) >> 32) : -1;
        }
    }
    lc_key_block_close(&b);
    return problem;
}

/* Encode rows as strings: `data` (freed by the caller) and n + 1 ends, starting with 0. Rows without a key are encoded
 * too. */
static int lc_key_strings(const lc_key_rows *r, uint8_t **data, int64_t *ends) {
    lc_key_block b;
    int64_t used = 0, room = 0;
    int problem = lc_key_block_open(&b, r);
    *data = NULL;
    ends[0] = 0;
    for (int64_t start = 0; start < r->n && problem == LC_OK; start += b.n) {
        b.n = r->n - start < LC_KEY_BLOCK ? r->n - start : LC_KEY_BLOCK;
        problem = lc_key_pack(&b, r, start);
        if (problem != LC_OK) break;
        int64_t total = b.end - b.scratch - LC_KEY_SLACK;
        if (room - used < total) {
            room = used + total + used / 2;
            uint8_t *grown = (uint8_t *)realloc(*data, (size_t)room);
            if (!grown) {
                problem = LC_NO_MEMORY;
                break;
            }
            *data = grown;
        }
        if (total) memcpy(*data + used, b.scratch, (size_t)total);
        for (int64_t i = 0; i < b.n; i++) ends[start + i + 1] = used += b.sizes[i];
    }
    lc_key_block_close(&b);
    return problem;
}

#endif
