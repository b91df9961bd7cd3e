/* JSON text from the binary form that jsonb.h describes: compact, with the shortest text of each number.
 *
 * A document that these functions do not decode, above all a damaged one, is not an error: its text is empty, and the
 * caller looks at it again. Documents may change while they are read: every word of them is loaded once, and strings
 * are checked after they were copied. */
#ifndef LANCECODEC_JSON_WRITE_H
#define LANCECODEC_JSON_WRITE_H

#include "json_read.h"
#include "utf8.h"

/* Bytes of text for a value, besides those of a string; with those of a comma, a colon, and an end. */
#define LC_JSON_WRITE_SLACK 48
/* Most bytes of text of a byte of a string. */
#define LC_JSON_ESCAPE 6

enum { LC_JSON_WRITE_FULL = -1, LC_JSON_WRITE_LEFT = 0, LC_JSON_WRITE_DONE = 1 };

/* An open container: where its next entry and payload are, where it stops, and how many values are left. In an object
 * also where the next entry of a key and the key are. */
typedef struct {
    int64_t entry, at, stop, left, key_entry, key;
    int is_object, is_first;
} lc_json_written_container;

typedef struct {
    const uint64_t *powers, *automaton;
    const uint8_t *data;
    uint8_t *out;
    int64_t at, capacity, depth;
    lc_json_written_container open[LC_JSON_DEPTH];
} lc_json_writer;

/* -- values */

/* Whether one of eight bytes must be escaped in a string. */
LC_INLINE uint64_t lc_json_has_special(uint64_t v) {
    uint64_t low = (v - 0x2020202020202020ULL) & ~v & 0x8080808080808080ULL;
    return low | lc_json_has_byte(v, '"') | lc_json_has_byte(v, '\\');
}

/* Write a character of a string. Returns the number of bytes. */
LC_INLINE int64_t lc_json_escape(uint8_t c, uint8_t *out) {
    static const char names[] = "btn\0fr", hex[] = "0123456789abcdef";
    if (c >= 0x20 && c != '"' && c != '\\') {
        out[0] = c;
        return 1;
    }
    out[0] = '\\';
    out[1] = c >= 0x20 ? c : c >= 8 && c <= 13 && c != 11 ? (uint8_t)names[c - 8] : 'u';
    if (out[1] != 'u') return 2;
    out[2] = out[3] = '0', out[4] = (uint8_t)hex[c >> 4], out[5] = (uint8_t)hex[c & 15];
    return 6;
}

/* Write a string of n bytes with its quotes; there is space for it. Returns whether it is UTF-8. */
static inline int lc_json_write_string(lc_json_writer *w, const uint8_t *p, int64_t n) {
    uint8_t *out = w->out + w->at;
    int64_t size = 1, i = 0;
    uint64_t any = 0;
    out[0] = '"';
    while (i < n) {
        while (i + 8 <= n) {
            uint64_t v = lc_once_u64(p + i);
            if (lc_json_has_special(v)) break;
            lc_store_u64(out + size, v);
            any |= v;
            i += 8, size += 8;
        }
        for (int64_t stop = i + 8 < n ? i + 8 : n; i < stop; i++) {
            uint8_t c = lc_once_u8(p + i);
            any |= c;
            size += lc_json_escape(c, out + size);
        }
    }
    if ((any & 0x8080808080808080ULL) && lc_utf8_find_invalid(w->automaton, out + 1, size - 1) >= 0) return 0;
    out[size] = '"';
    w->at += size + 1;
    return 1;
}

/* Write a number from its payload. Returns whether it is one. */
static inline int lc_json_write_number(lc_json_writer *w, const uint8_t *p, int64_t n) {
    uint8_t payload[9] = {0}, *out = w->out + w->at;
    uint64_t word;
    if (n < 1 || n > 9) return 0;
    for (int64_t i = 0; i < n; i++) payload[i] = lc_once_u8(p + i);
    int kind = lc_json_number(payload, n, &word);
    if (kind == LC_JSON_OTHER) return 0;
    if (kind == LC_JSON_FLOAT && (word & LC_FLOAT_INFINITY) == LC_FLOAT_INFINITY) {
        memcpy(out, "null", 4);
        w->at += 4;
    } else if (kind == LC_JSON_FLOAT) {
        w->at += lc_float_write(w->powers, word, out);
    } else {
        int is_negative = kind == LC_JSON_INTEGER && word >> 63;
        out[0] = '-';
        w->at += is_negative + lc_write_digits(is_negative ? 0 - word : word, out + is_negative);
    }
    return 1;
}

LC_INLINE int lc_json_write_word(lc_json_writer *w, const char *word, int64_t size) {
    memcpy(w->out + w->at, word, (size_t)size);
    w->at += size;
    return 1;
}

/* Write the scalar of an entry of n bytes at p. */
static inline int lc_json_write_scalar(lc_json_writer *w, uint32_t kind, const uint8_t *p, int64_t n) {
    if (kind == 1) return lc_json_write_string(w, p, n);
    if (kind == 2) return lc_json_write_number(w, p, n);
    if (n) return 0;
    if (kind == 0) return lc_json_write_word(w, "null", 4);
    if (kind == 3) return lc_json_write_word(w, "false", 5);
    return kind == 4 && lc_json_write_word(w, "true", 4);
}

/* -- containers */

LC_INLINE int lc_json_is_full(const lc_json_writer *w, int64_t string) {
    return LC_JSON_ESCAPE * string + LC_JSON_WRITE_SLACK > w->capacity - w->at;
}

/* Begin the container between two bytes: check its header and, in an object, add up its keys. */
static inline int lc_json_write_open(lc_json_writer *w, int64_t start, int64_t stop) {
    int64_t size = stop - start;
    if (size < 4 || w->depth == LC_JSON_DEPTH) return 0;
    uint32_t header = lc_json_word(w->data + start), kind = header & 0xE0000000u;
    int64_t count = header & 0x1FFFFFFFu, number = kind == LC_JSON_OBJECT_HEADER ? 2 * count : count;
    if ((kind != LC_JSON_OBJECT_HEADER && kind != LC_JSON_ARRAY_HEADER) || number > size / 4 - 1) return 0;
    lc_json_written_container *c = &w->open[w->depth++];
    *c = (lc_json_written_container){start + 4, start + 4 * (1 + number), stop, count, start + 4, 0, 0, 1};
    if (kind == LC_JSON_OBJECT_HEADER) {
        c->is_object = 1;
        c->key = c->at;
        c->entry += 4 * count;
        for (int64_t i = 0; i < count; i++) c->at += lc_json_word(w->data + c->key_entry + 4 * i) & LC_JSON_LONGEST;
    }
    w->out[w->at++] = c->is_object ? '{' : '[';
    return c->at <= stop;
}

/* Write the key of the next value. */
static inline int lc_json_write_key(lc_json_writer *w, lc_json_written_container *c) {
    uint32_t entry = lc_json_word(w->data + c->key_entry);
    int64_t size = entry & LC_JSON_LONGEST;
    if (entry >> 28 != 1 || size > c->stop - c->key) return LC_JSON_WRITE_LEFT;
    if (lc_json_is_full(w, size)) return LC_JSON_WRITE_FULL;
    if (!lc_json_write_string(w, w->data + c->key, size)) return LC_JSON_WRITE_LEFT;
    w->out[w->at++] = ':';
    c->key_entry += 4;
    c->key += size;
    return LC_JSON_WRITE_DONE;
}

/* Write the next value of the innermost container, up to the first value in it if it is one. */
static inline int lc_json_write_next(lc_json_writer *w, lc_json_written_container *c) {
    if (lc_json_is_full(w, 0)) return LC_JSON_WRITE_FULL;
    if (!c->is_first) w->out[w->at++] = ',';
    c->is_first = 0;
    if (c->is_object) {
        int done = lc_json_write_key(w, c);
        if (done != LC_JSON_WRITE_DONE) return done;
    }
    uint32_t entry = lc_json_word(w->data + c->entry);
    int64_t start = c->at, size = entry & LC_JSON_LONGEST;
    if (size > c->stop - start) return LC_JSON_WRITE_LEFT;
    c->entry += 4;
    c->at += size;
    c->left--;
    if (entry >> 28 == LC_JSON_CONTAINER_ENTRY)
        return lc_json_is_full(w, 0) ? LC_JSON_WRITE_FULL : lc_json_write_open(w, start, start + size);
    if (lc_json_is_full(w, entry >> 28 == 1 ? size : 0)) return LC_JSON_WRITE_FULL;
    return lc_json_write_scalar(w, entry >> 28, w->data + start, size);
}

/* -- documents */

/* Write a document that is an array or an object. */
static inline int lc_json_write_containers(lc_json_writer *w, int64_t start, int64_t stop) {
    w->depth = 0;
    if (lc_json_is_full(w, 0)) return LC_JSON_WRITE_FULL;
    int done = lc_json_write_open(w, start, stop);
    while (done == LC_JSON_WRITE_DONE && w->depth) {
        lc_json_written_container *c = &w->open[w->depth - 1];
        if (c->left) {
            done = lc_json_write_next(w, c);
            continue;
        }
        if (c->at != c->stop) return LC_JSON_WRITE_LEFT;
        if (lc_json_is_full(w, 0)) return LC_JSON_WRITE_FULL;
        w->out[w->at++] = c->is_object ? '}' : ']';
        w->depth--;
    }
    return done;
}

/* Write the document between two bytes. */
static inline int lc_json_write(lc_json_writer *w, int64_t start, int64_t stop) {
    const uint8_t *p = w->data + start;
    int64_t size = stop - start;
    if (lc_json_is_full(w, 0)) return LC_JSON_WRITE_FULL;
    if (size == 0) return lc_json_write_word(w, "null", 4);
    if (size < 4) return LC_JSON_WRITE_LEFT;
    if (lc_json_word(p) != LC_JSON_SCALAR_HEADER) return lc_json_write_containers(w, start, stop);
    if (size < 8) return LC_JSON_WRITE_LEFT;
    uint32_t entry = lc_json_word(p + 4);
    if ((int64_t)(entry & LC_JSON_LONGEST) != size - 8) return LC_JSON_WRITE_LEFT;
    if (lc_json_is_full(w, entry >> 28 == 1 ? size - 8 : 0)) return LC_JSON_WRITE_FULL;
    return lc_json_write_scalar(w, entry >> 28, p + 8, size - 8);
}

/* Decode documents from `row` on, until all n are, or the output may be too small. Returns the next row, or -1 if offsets
 * are wrong. `ends` has n + 1 offsets of the texts, of which that of `row` is given. A document with skip[i] is not
 * decoded; the size of its text is 0, as for those left to the caller. */
static inline int64_t lc_json_write_all(lc_bytes documents, const uint8_t *offsets, int wide, const uint8_t *skip,
                                        int64_t row, int64_t n, lc_json_writer *w, int64_t *ends) {
    for (; row < n; row++) {
        int64_t start = lc_load_offset(offsets, wide, row), stop = lc_load_offset(offsets, wide, row + 1);
        if (start < 0 || stop < start || stop > documents.size) return -1;
        w->data = documents.data;
        w->at = ends[row];
        int done = skip && skip[row] ? LC_JSON_WRITE_LEFT : lc_json_write(w, start, stop);
        if (done == LC_JSON_WRITE_FULL) return row;
        ends[row + 1] = done == LC_JSON_WRITE_DONE ? w->at : ends[row];
    }
    return n;
}

#endif
