/* FSST for many strings: a chunk or page into offsets and bytes, and single strings. */
#ifndef LANCECODEC_FSST_STRINGS_H
#define LANCECODEC_FSST_STRINGS_H

#include "fsst.h"

/* Size of a segment of compressed bytes; its decoded size fits 16 bits. */
#define LC_FSST_SEGMENT 2048

/* Strings back to back: string i ends at ends[i] - first and begins where the previous one ended. */
typedef struct {
    const uint8_t *data;
    int64_t size;
    const uint8_t *ends; /* n offsets of 32 or, if wide, 64 bits */
    int wide;
    int64_t first;
    int64_t n;
} lc_fsst_strings;

/* Destination of decoded strings: their ends, counted from `base`, and their bytes. `ends` may be those of the source
 * if both have the same width. */
typedef struct {
    uint8_t *ends;
    int wide;
    int64_t base;
    uint8_t *data;
    int64_t capacity;
} lc_fsst_sink;

/* Return whether a string ends inside an escape. In a sequence of bytes 255, escapes and literals alternate from the
 * left, because the byte in front of it (another byte, or none) is never an escape. */
static inline int lc_fsst_cut_escape(const uint8_t *begin, const uint8_t *end) {
    int64_t row = 0;
    while (end - begin > row && end[-1 - row] == LC_FSST_ESCAPE) row++;
    return (int)(row & 1);
}

/* Check that ends do not decrease, are inside the data and not inside an escape. *total: size of all strings. */
static inline int lc_fsst_check_strings(const lc_fsst_strings *in, int compressed, int64_t *total) {
    int64_t begin = in->first;
    if (begin < 0) return LC_BAD_OFFSETS;
    for (int64_t i = 0; i < in->n; i++) {
        int64_t end = lc_load_offset(in->ends, in->wide, i);
        if (end < begin || end - in->first > in->size) return LC_BAD_OFFSETS;
        if (compressed && end > begin && in->data[end - in->first - 1] == LC_FSST_ESCAPE &&
            lc_fsst_cut_escape(in->data + (begin - in->first), in->data + (end - in->first)))
            return LC_BAD_CODE;
        begin = end;
    }
    *total = begin - in->first;
    return LC_OK;
}

/* Largest offset above `base`. */
LC_INLINE int64_t lc_fsst_room(const lc_fsst_sink *sink) {
    int64_t most = sink->wide ? INT64_MAX : INT32_MAX;
    return sink->base < 0 || sink->base > most ? -1 : most - sink->base;
}

static inline int lc_fsst_copy_strings(const lc_fsst_strings *in, int64_t total, const lc_fsst_sink *sink) {
    if (total > sink->capacity || total > lc_fsst_room(sink)) return LC_NO_SPACE;
    if (total) memcpy(sink->data, in->data, (size_t)total);
    int64_t begin = 0;
    for (int64_t i = 0; i < in->n; i++) {
        int64_t end = lc_load_offset(in->ends, in->wide, i) - in->first;
        if (end < begin || end > total) return LC_BAD_OFFSETS; /* a mapped file has changed */
        lc_store_offset(sink->ends, sink->wide, i, end + sink->base);
        begin = end;
    }
    return LC_OK;
}

/* Ends of the strings from `i` on that end among the first `size` bytes of a segment at `at` of the data. *begin: where
 * the next string begins in the data. Returns the next string, or -1 if a mapped file has changed since its ends were
 * checked. */
LC_INLINE int64_t lc_fsst_mark_ends(const lc_fsst_strings *in, int64_t i, int64_t at, int64_t size, int64_t base,
                                    const uint16_t *marks, const lc_fsst_sink *sink, int64_t *begin) {
    int64_t from = *begin > at ? *begin - at : 0;
    for (; i < in->n; i++) {
        int64_t end = lc_load_offset(in->ends, in->wide, i) - in->first - at;
        if (end < from) return -1;
        if (end > size) break;
        lc_store_offset(sink->ends, sink->wide, i, base + marks[end]);
        from = end;
    }
    *begin = at + from;
    return i;
}

/* Decode all strings as one run of codes, also short ones: the decoder records its position at every code, and the ends
 * are looked up there. */
LC_CLONES static inline int lc_fsst_decode_segments(const lc_fsst_table *table, const lc_fsst_strings *in,
                                                    int64_t total, const lc_fsst_sink *sink, int64_t *written) {
    uint16_t marks[LC_FSST_SEGMENT + 1];
    lc_fsst_run run = {in->data, in->data, sink->data, sink->data + sink->capacity, 0};
    int64_t room = lc_fsst_room(sink), base = sink->base, i = 0, begin = 0;
    marks[0] = 0;
    for (int64_t at = 0; at < total; at += LC_FSST_SEGMENT) {
        int64_t size = total - at < LC_FSST_SEGMENT ? total - at : LC_FSST_SEGMENT, before = run.out - sink->data;
        run.src_end = run.src + size;
        int problem = lc_fsst_run_on(table, &run, marks);
        if (problem) return problem;
        if (run.out - sink->data > room) return LC_NO_SPACE;
        marks[size] = (uint16_t)(run.out - sink->data - before);
        i = lc_fsst_mark_ends(in, i, at, size, base + before, marks, sink, &begin);
        if (i < 0) return LC_BAD_OFFSETS;
    }
    *written = run.out - sink->data;
    for (; i < in->n; i++) lc_store_offset(sink->ends, sink->wide, i, base + *written);
    return LC_OK;
}

/* From this number of compressed bytes per string on, a loop per string is faster than one run over all strings. */
#define LC_FSST_LONG 128

LC_CLONES static inline int lc_fsst_decode_each(const lc_fsst_table *table, const lc_fsst_strings *in,
                                                const lc_fsst_sink *sink, int64_t *written) {
    lc_fsst_run run = {in->data, in->data, sink->data, sink->data + sink->capacity, 0};
    int64_t room = lc_fsst_room(sink);
    for (int64_t i = 0; i < in->n; i++) {
        int64_t end = lc_load_offset(in->ends, in->wide, i) - in->first;
        if (end < run.src - in->data || end > in->size) return LC_BAD_OFFSETS; /* a mapped file has changed */
        run.src_end = in->data + end;
        int problem = lc_fsst_run_on(table, &run, NULL);
        if (problem) return problem;
        if (run.out - sink->data > room) return LC_NO_SPACE;
        lc_store_offset(sink->ends, sink->wide, i, sink->base + (run.out - sink->data));
    }
    *written = run.out - sink->data;
    return LC_OK;
}

/* Decode n strings to n ends and *written bytes. Bytes of sink->data behind them are scratch. */
static inline int lc_fsst_decode_strings(const lc_fsst_table *table, const lc_fsst_strings *in,
                                         const lc_fsst_sink *sink, int64_t *written) {
    int64_t total = 0;
    if (lc_fsst_room(sink) < 0) return LC_NO_SPACE;
    int problem = lc_fsst_check_strings(in, table->compressed, &total);
    if (problem) return problem;
    if (!table->compressed) {
        *written = total;
        return lc_fsst_copy_strings(in, total, sink);
    }
    if (total / LC_FSST_LONG >= in->n) return lc_fsst_decode_each(table, in, sink, written);
    return lc_fsst_decode_segments(table, in, total, sink, written);
}

/* Bytes of string `row`; only the offsets that it needs are checked. */
LC_INLINE int lc_fsst_string(const lc_fsst_strings *in, int64_t row, lc_bytes *string) {
    if (row < 0 || row >= in->n) return LC_BAD_INDEX;
    int64_t begin = row ? lc_load_offset(in->ends, in->wide, row - 1) : in->first;
    int64_t end = lc_load_offset(in->ends, in->wide, row);
    if (begin < in->first || end < begin || in->first < 0 || end - in->first > in->size) return LC_BAD_OFFSETS;
    string->data = in->data + (begin - in->first);
    string->size = end - begin;
    return LC_OK;
}

/* Compute the ends of the strings at `rows`, back to back. *total: their size, *where: the last row read. */
static inline int lc_fsst_take_ends(const lc_fsst_table *table, const lc_fsst_strings *in, const int64_t *rows,
                                    int64_t n, const lc_fsst_sink *sink, int64_t *total, int64_t *where) {
    int64_t at = 0, room = lc_fsst_room(sink);
    for (int64_t i = 0; i < n; i++) {
        lc_bytes string;
        *where = rows[i];
        int problem = lc_fsst_string(in, rows[i], &string);
        if (problem) return problem;
        int64_t size = lc_fsst_decoded_size(table, string.data, string.size);
        if (size < 0) return LC_BAD_CODE;
        if (size > room - at) return LC_NO_SPACE;
        at += size;
        lc_store_offset(sink->ends, sink->wide, i, sink->base + at);
    }
    *total = at;
    return LC_OK;
}

/* Decode their bytes. */
static inline int lc_fsst_take_bytes(const lc_fsst_table *table, const lc_fsst_strings *in, const int64_t *rows,
                                     int64_t n, uint8_t *out, int64_t capacity, int64_t *total, int64_t *where) {
    int64_t at = 0, written = 0;
    for (int64_t i = 0; i < n; i++) {
        lc_bytes string;
        *where = rows[i];
        int problem = lc_fsst_string(in, rows[i], &string);
        if (!problem) problem = lc_fsst_decode(table, string.data, string.size, out + at, capacity - at, &written);
        if (problem) return problem;
        at += written;
    }
    *total = at;
    return LC_OK;
}
#endif
