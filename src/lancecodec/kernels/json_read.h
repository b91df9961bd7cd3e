/* JSON text into the binary form that jsonb.h describes.
 *
 * Values are written as they come. At the end of a container its entries are known, and its values move to make room for
 * them; those of an object are also put in the order of the keys. A document that these functions do not encode, above
 * all one that is not valid, is not an error: its result is empty, and the caller looks at it again. */
#ifndef LANCECODEC_JSON_READ_H
#define LANCECODEC_JSON_READ_H

#include "float_text.h"
#include "jsonb.h"

#define LC_JSON_DEPTH 400
#define LC_JSON_LONGEST 0x0FFFFFFF
/* Bytes that the binary form of a text of some size has at most; the values of its largest container fit them, too. */
#define LC_JSON_READ_BOUND(size) (4 * (size) + 8)
/* Entries that are open at a time in a text of some size, at most. */
#define LC_JSON_READ_ITEMS(size) ((size) / 2 + LC_JSON_DEPTH + 2)

/* An element of an open container: its entry; where its key, if any, starts, which is followed by the value. */
typedef struct {
    uint32_t entry, key_size;
    int64_t start;
} lc_json_item;

/* An open container: its first element, and where that starts. */
typedef struct {
    int64_t first, start;
    int is_object;
} lc_json_open_container;

typedef struct {
    const uint64_t *powers;
    const uint8_t *p, *end;
    uint8_t *out, *spare;
    int64_t at;
    lc_json_item *items;
    int64_t n, depth;
    lc_json_open_container open[LC_JSON_DEPTH];
} lc_json_reader;

/* Write the lowest `size` bytes of a number, the highest first. */
LC_INLINE void lc_json_store_number(uint8_t *p, uint64_t v, int64_t size) {
    for (int64_t i = size - 1; i >= 0; i--, v >>= 8) p[i] = (uint8_t)v;
}

LC_INLINE void lc_json_skip_blanks(lc_json_reader *r) {
    while (r->p < r->end && (*r->p == ' ' || *r->p == '\n' || *r->p == '\t' || *r->p == '\r')) r->p++;
}

LC_INLINE int lc_json_take_word(lc_json_reader *r, const char *word, int64_t size) {
    if (r->end - r->p < size || memcmp(r->p, word, (size_t)size) != 0) return 0;
    r->p += size;
    return 1;
}

/* -- numbers */

LC_INLINE int lc_json_is_digit(const lc_json_reader *r) { return r->p < r->end && *r->p >= '0' && *r->p <= '9'; }

/* The first 19 significant digits of a number, and what follows them. */
typedef struct {
    uint64_t digits;
    int64_t n, exponent; /* of significant digits */
    int is_cut, is_float, is_negative;
} lc_json_digits;

LC_INLINE void lc_json_read_digits(lc_json_reader *r, lc_json_digits *d, int64_t step) {
    for (; lc_json_is_digit(r); r->p++) {
        uint64_t digit = (uint64_t)(*r->p - '0');
        if (d->n || digit) d->n++;
        if (d->n <= 19) d->digits = 10 * d->digits + digit, d->exponent -= step;
        else d->is_cut |= digit != 0, d->exponent += 1 - step;
    }
}

/* Read the exponent of a number. */
LC_INLINE int lc_json_read_exponent(lc_json_reader *r, lc_json_digits *d) {
    int is_negative = 0;
    int64_t exponent = 0;
    r->p++;
    if (r->p < r->end && (*r->p == '+' || *r->p == '-')) is_negative = *r->p++ == '-';
    if (!lc_json_is_digit(r)) return 0;
    for (; lc_json_is_digit(r); r->p++)
        if (exponent < ((int64_t)1 << 50)) exponent = 10 * exponent + (*r->p - '0');
    d->exponent += is_negative ? -exponent : exponent;
    return 1;
}

/* Read the parts of a number by the grammar of JSON. */
static inline int lc_json_read_parts(lc_json_reader *r, lc_json_digits *d) {
    if (!lc_json_is_digit(r)) return 0;
    if (*r->p == '0') r->p++;
    else lc_json_read_digits(r, d, 0);
    if (r->p < r->end && *r->p == '.') {
        r->p++;
        d->is_float = 1;
        if (!lc_json_is_digit(r)) return 0;
        lc_json_read_digits(r, d, 1);
    }
    if (r->p < r->end && (*r->p == 'e' || *r->p == 'E')) {
        d->is_float = 1;
        return lc_json_read_exponent(r, d);
    }
    return 1;
}

/* Complete an integer of 20 digits, of which 19 were read. Returns whether it has at most 64 bits. */
LC_INLINE int lc_json_last_digit(lc_json_digits *d, uint64_t last) {
    if (d->digits > UINT64_MAX / 10 || (d->digits == UINT64_MAX / 10 && last > UINT64_MAX % 10)) return 0;
    d->digits = 10 * d->digits + last;
    return 1;
}

LC_INLINE int64_t lc_json_store_float(uint8_t *out, uint64_t bits, int is_negative) {
    if (bits == LC_FLOAT_INFINITY) {
        out[0] = is_negative ? 0x30 : 0x20;
        return 1;
    }
    out[0] = 0x60;
    lc_json_store_number(out + 1, bits | (uint64_t)is_negative << 63, 8);
    return 9;
}

LC_INLINE int64_t lc_json_store_integer(uint8_t *out, uint64_t v, int is_negative) {
    if (v == 0) {
        out[0] = 0;
        return 1;
    }
    int64_t size = 1;
    while (size < 8 && (is_negative ? v - 1 >= (uint64_t)1 << (8 * size - 1) : v >> (8 * size))) size *= 2;
    out[0] = is_negative ? 0x40 : 0x50;
    lc_json_store_number(out + 1, is_negative ? 0 - v : v, size);
    return 1 + size;
}

/* Read a number and write its payload. Returns the size of that, or -1. */
static inline int64_t lc_json_read_number(lc_json_reader *r) {
    lc_json_digits d = {0, 0, 0, 0, 0, 0};
    uint8_t *out = r->out + r->at;
    d.is_negative = *r->p == '-';
    r->p += d.is_negative;
    if (lc_json_take_word(r, "Infinity", 8)) return lc_json_store_float(out, LC_FLOAT_INFINITY, d.is_negative);
    if (!lc_json_read_parts(r, &d)) return -1;
    int fits = !d.is_float && d.n <= 20;
    if (fits && d.n == 20) {
        lc_json_digits longer = d;
        longer.exponent = longer.is_cut = 0;
        fits = lc_json_last_digit(&longer, (uint64_t)(r->p[-1] - '0'));
        if (fits) d = longer;
    }
    if (fits && !(d.is_negative && d.digits > (uint64_t)1 << 63))
        return lc_json_store_integer(out, d.digits, d.is_negative);
    uint64_t bits = lc_float_read(r->powers, d.digits, d.exponent);
    if (d.is_cut && lc_float_read(r->powers, d.digits + 1, d.exponent) != bits) return -1;
    return lc_json_store_float(out, bits, d.is_negative);
}

/* -- strings */

LC_INLINE uint64_t lc_json_has_byte(uint64_t v, uint8_t byte) {
    uint64_t x = v ^ (0x0101010101010101ULL * byte);
    return (x - 0x0101010101010101ULL) & ~x & 0x8080808080808080ULL;
}

LC_INLINE int64_t lc_json_hex(const uint8_t *p) {
    int64_t v = 0;
    for (int i = 0; i < 4; i++) {
        uint8_t c = p[i], lower = c | 0x20;
        if (c >= '0' && c <= '9') v = 16 * v + (c - '0');
        else if (lower >= 'a' && lower <= 'f') v = 16 * v + (lower - 'a' + 10);
        else return -1;
    }
    return v;
}

/* Write a character. Returns its size. */
LC_INLINE int64_t lc_json_store_character(uint8_t *out, uint32_t c) {
    int64_t size = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    if (size == 1) out[0] = (uint8_t)c;
    if (size == 2) out[0] = (uint8_t)(0xC0 | c >> 6);
    if (size == 3) out[0] = (uint8_t)(0xE0 | c >> 12);
    if (size == 4) out[0] = (uint8_t)(0xF0 | c >> 18);
    for (int64_t i = 1; i < size; i++) out[i] = (uint8_t)(0x80 | (c >> 6 * (size - 1 - i) & 0x3F));
    return size;
}

/* Read the hexadecimal digits of an escape, and those of the second half of a pair. Halves without the other one are
 * left to the caller. */
static inline int lc_json_read_unicode(lc_json_reader *r) {
    if (r->end - r->p < 4) return 0;
    int64_t c = lc_json_hex(r->p);
    r->p += 4;
    if (c < 0 || (c >= 0xDC00 && c <= 0xDFFF)) return 0;
    if (c >= 0xD800 && c <= 0xDBFF) {
        if (r->end - r->p < 6 || r->p[0] != '\\' || r->p[1] != 'u') return 0;
        int64_t second = lc_json_hex(r->p + 2);
        if (second < 0xDC00 || second > 0xDFFF) return 0;
        c = 0x10000 + ((c - 0xD800) << 10) + (second - 0xDC00);
        r->p += 6;
    }
    r->at += lc_json_store_character(r->out + r->at, (uint32_t)c);
    return 1;
}

static inline int lc_json_read_escape(lc_json_reader *r) {
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    if (r->p >= r->end) return 0;
    uint8_t c = *r->p++;
    if (c == 'u') return lc_json_read_unicode(r);
    const char *found = c ? strchr(names, c) : NULL;
    if (!found) return 0;
    r->out[r->at++] = (uint8_t)values[found - names];
    return 1;
}

/* Read a string behind its opening quote, and write its bytes. Returns their count, or -1. */
static inline int64_t lc_json_read_string(lc_json_reader *r) {
    int64_t start = r->at;
    for (;;) {
        while (r->end - r->p >= 8) {
            uint64_t v = lc_load_u64(r->p);
            if (lc_json_has_byte(v, '"') | lc_json_has_byte(v, '\\')) break;
            lc_store_u64(r->out + r->at, v);
            r->p += 8, r->at += 8;
        }
        while (r->p < r->end && *r->p != '"' && *r->p != '\\') r->out[r->at++] = *r->p++;
        if (r->p >= r->end) return -1;
        if (*r->p++ == '"') return r->at - start <= LC_JSON_LONGEST ? r->at - start : -1;
        if (!lc_json_read_escape(r)) return -1;
    }
}

/* -- containers */

LC_INLINE int lc_json_compare_keys(const uint8_t *out, const lc_json_item *a, const lc_json_item *b) {
    uint32_t size = a->key_size < b->key_size ? a->key_size : b->key_size;
    int order = memcmp(out + a->start, out + b->start, size);
    return order ? order : a->key_size < b->key_size ? -1 : a->key_size > b->key_size;
}

LC_INLINE void lc_json_swap_items(lc_json_item *a, lc_json_item *b) {
    lc_json_item other = *a;
    *a = *b;
    *b = other;
}

/* Move an item down a heap to its place. */
static inline void lc_json_sift(const uint8_t *out, lc_json_item *items, int64_t place, int64_t n) {
    for (int64_t child; (child = 2 * place + 1) < n; place = child) {
        if (child + 1 < n && lc_json_compare_keys(out, &items[child], &items[child + 1]) < 0) child++;
        if (lc_json_compare_keys(out, &items[place], &items[child]) >= 0) return;
        lc_json_swap_items(&items[place], &items[child]);
    }
}

/* Sort the members of an object: few by insertion, many with a heap. Returns whether their keys are distinct. */
static inline int lc_json_sort_items(const uint8_t *out, lc_json_item *items, int64_t n) {
    if (n <= 32) {
        for (int64_t i = 1; i < n; i++)
            for (int64_t k = i; k > 0 && lc_json_compare_keys(out, &items[k - 1], &items[k]) > 0; k--)
                lc_json_swap_items(&items[k - 1], &items[k]);
    } else {
        for (int64_t i = n / 2 - 1; i >= 0; i--) lc_json_sift(out, items, i, n);
        for (int64_t last = n - 1; last > 0; last--) {
            lc_json_swap_items(&items[0], &items[last]);
            lc_json_sift(out, items, 0, last);
        }
    }
    for (int64_t i = 1; i < n; i++)
        if (lc_json_compare_keys(out, &items[i - 1], &items[i]) == 0) return 0;
    return 1;
}

LC_INLINE int64_t lc_json_payload_size(const lc_json_item *item) { return item->entry & LC_JSON_LONGEST; }

/* Put header and entries in front of the values of an array. */
LC_INLINE void lc_json_finish_array(lc_json_reader *r, const lc_json_item *items, int64_t n, int64_t start) {
    uint8_t *base = r->out + start;
    memmove(base + 4 * (1 + n), base, (size_t)(r->at - start));
    lc_json_store_word(base, LC_JSON_ARRAY_HEADER | (uint32_t)n);
    for (int64_t i = 0; i < n; i++) lc_json_store_word(base + 4 * (1 + i), items[i].entry);
    r->at += 4 * (1 + n);
}

/* Write header, entries, keys and values of an object. Returns 0 if it has a key twice. */
static inline int lc_json_finish_object(lc_json_reader *r, lc_json_item *items, int64_t n, int64_t start) {
    if (!lc_json_sort_items(r->out, items, n)) return 0;
    uint8_t *base = r->out + start;
    memcpy(r->spare, base, (size_t)(r->at - start));
    lc_json_store_word(base, LC_JSON_OBJECT_HEADER | (uint32_t)n);
    int64_t at = 4 * (1 + 2 * n);
    for (int64_t i = 0; i < n; i++) {
        lc_json_store_word(base + 4 * (1 + i), 1u << 28 | items[i].key_size);
        lc_json_store_word(base + 4 * (1 + n + i), items[i].entry);
        memcpy(base + at, r->spare + (items[i].start - start), items[i].key_size);
        at += items[i].key_size;
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t size = lc_json_payload_size(&items[i]);
        memcpy(base + at, r->spare + (items[i].start + items[i].key_size - start), (size_t)size);
        at += size;
    }
    r->at = start + at;
    return 1;
}

/* Close the innermost container. Returns its entry, or 0. */
static inline uint32_t lc_json_close(lc_json_reader *r) {
    const lc_json_open_container *open = &r->open[--r->depth];
    int64_t n = r->n - open->first;
    lc_json_item *items = r->items + open->first;
    r->n = open->first;
    if (open->is_object && !lc_json_finish_object(r, items, n, open->start)) return 0;
    if (!open->is_object) lc_json_finish_array(r, items, n, open->start);
    int64_t size = r->at - open->start;
    return size <= LC_JSON_LONGEST ? LC_JSON_CONTAINER_ENTRY << 28 | (uint32_t)size : 0;
}

/* -- documents */

/* Begin an element of the innermost container, and read its key in an object. */
static inline int lc_json_begin_item(lc_json_reader *r, int is_object) {
    lc_json_item *item = &r->items[r->n++];
    *item = (lc_json_item){0, 0, r->at};
    if (!is_object) return 1;
    lc_json_skip_blanks(r);
    if (r->p >= r->end || *r->p++ != '"') return 0;
    int64_t size = lc_json_read_string(r);
    if (size < 0) return 0;
    item->key_size = (uint32_t)size;
    lc_json_skip_blanks(r);
    return r->p < r->end && *r->p++ == ':';
}

/* Read a value that is not a container. Returns whether it is one. */
static inline int lc_json_read_scalar(lc_json_reader *r, uint32_t *entry) {
    int64_t size = 0;
    uint32_t kind = 0;
    if (*r->p == '"') r->p++, kind = 1, size = lc_json_read_string(r);
    else if (lc_json_take_word(r, "null", 4)) kind = 0;
    else if (lc_json_take_word(r, "false", 5)) kind = 3;
    else if (lc_json_take_word(r, "true", 4)) kind = 4;
    else if (lc_json_take_word(r, "NaN", 3)) r->out[r->at] = 0x10, kind = 2, size = 1;
    else kind = 2, size = lc_json_read_number(r);
    if (size < 0) return 0;
    if (kind == 2) r->at += size;
    *entry = kind << 28 | (uint32_t)size;
    return 1;
}

/* Read up to the first scalar or the end of an empty container. Returns whether that is a value. */
static inline int lc_json_read_value(lc_json_reader *r, uint32_t *entry) {
    for (;;) {
        lc_json_skip_blanks(r);
        if (r->p >= r->end) return 0;
        if (*r->p != '[' && *r->p != '{') return lc_json_read_scalar(r, entry);
        if (r->depth == LC_JSON_DEPTH) return 0;
        int is_object = *r->p++ == '{';
        r->open[r->depth++] = (lc_json_open_container){r->n, r->at, is_object};
        lc_json_skip_blanks(r);
        if (r->p < r->end && *r->p == (is_object ? '}' : ']')) {
            r->p++;
            *entry = lc_json_close(r);
            return 1;
        }
        if (!lc_json_begin_item(r, is_object)) return 0;
    }
}

/* Read a document. Returns the entry of its value, and whether there is one. */
static inline int lc_json_read_root(lc_json_reader *r, uint32_t *entry) {
    if (!lc_json_read_value(r, entry)) return 0;
    while (r->depth) {
        int is_object = r->open[r->depth - 1].is_object;
        r->items[r->n - 1].entry = *entry;
        lc_json_skip_blanks(r);
        if (r->p >= r->end) return 0;
        uint8_t c = *r->p++;
        if (c == ',') {
            if (!lc_json_begin_item(r, is_object) || !lc_json_read_value(r, entry)) return 0;
        } else if (c == (is_object ? '}' : ']')) {
            *entry = lc_json_close(r);
            if (!*entry) return 0;
        } else return 0;
    }
    lc_json_skip_blanks(r);
    return r->p == r->end;
}

/* Encode one text; its start is in the reader. Returns the size of its binary form, 0 if it is left to the caller. */
static inline int64_t lc_json_read(lc_json_reader *r) {
    uint32_t entry = 0;
    int64_t start = r->at;
    r->n = r->depth = 0;
    lc_json_skip_blanks(r);
    if (r->p < r->end && !lc_json_read_root(r, &entry)) return 0;
    if (entry >> 28 == LC_JSON_CONTAINER_ENTRY) return r->at - start;
    memmove(r->out + start + 8, r->out + start, (size_t)(r->at - start));
    lc_json_store_word(r->out + start, LC_JSON_SCALAR_HEADER);
    lc_json_store_word(r->out + start + 4, entry);
    return r->at + 8 - start;
}

/* Encode texts from `row` on, until all n are, or the output may be too small. Returns the next row, or -1 if offsets are
 * wrong. `ends` has n + 1 offsets of the results, of which that of `row` is given. A text with skip[i] is not encoded;
 * the size of its result is 0, as for those left to the caller. `items` and `spare` suffice for the longest text. */
static inline int64_t lc_json_read_all(lc_bytes texts, const uint8_t *offsets, int wide, const uint8_t *skip, int64_t row,
                                       int64_t n, lc_json_reader *r, int64_t capacity, int64_t *ends) {
    for (; row < n; row++) {
        int64_t start = lc_load_offset(offsets, wide, row), stop = lc_load_offset(offsets, wide, row + 1), size = 0;
        if (start < 0 || stop < start || stop > texts.size) return -1;
        if (!skip || !skip[row]) {
            if (LC_JSON_READ_BOUND(stop - start) > capacity - ends[row]) return row;
            r->p = texts.data + start, r->end = texts.data + stop, r->at = ends[row];
            size = lc_json_read(r);
        }
        ends[row + 1] = ends[row] + size;
    }
    return n;
}

#endif
