/* Variable-width values of mini-block chunks, in two phases: first the end offsets, which give the number of bytes,
 * then the bytes. With a symbol table the stored values are FSST codes. */
#ifndef LANCECODEC_MINIBLOCK_VARIABLE_H
#define LANCECODEC_MINIBLOCK_VARIABLE_H

#include "fsst_strings.h"
#include "miniblock.h"
#include "variable.h"

typedef struct {
    const lc_fsst_table *table; /* NULL: the values are stored verbatim */
    int64_t buffer;             /* number of the value buffer */
    int wide;                   /* stored offsets have 64 bits */
} lc_text_codec;

/* Output of END offsets, from `total` on, in 32 or 64 bits. */
typedef struct {
    uint8_t *out;
    int wide;
    int64_t total;
} lc_ends;

LC_INLINE int lc_ends_add(lc_ends *ends, int64_t size) {
    if (size < 0) return LC_BAD_CODE;
    if (size > (ends->wide ? INT64_MAX : INT32_MAX) - ends->total) return LC_NO_SPACE;
    ends->total += size;
    lc_store_offset(ends->out, ends->wide, 0, ends->total);
    ends->out += ends->wide ? 8 : 4;
    return LC_OK;
}

LC_INLINE int64_t lc_text_size(const lc_text_codec *codec, lc_bytes value) {
    return codec->table ? lc_fsst_decoded_size(codec->table, value.data, value.size) : value.size;
}

/* Values [low, high) of one chunk of n: end offsets, and the position of the stored bytes. */
static int lc_text_plain_ends(const lc_text_codec *codec, lc_bytes buffer, int64_t n, int64_t low, int64_t high,
                              lc_ends *ends, lc_bytes *stored) {
    int64_t first, last, size = lc_offset_size(codec->wide);
    if (!lc_variable_chunk_size_ok(buffer, n, codec->wide)) return LC_BAD_SIZE;
    int problem = lc_variable_ends(buffer.data + low * size, codec->wide, high - low, (n + 1) * size, buffer.size,
                                   ends->total, ends->wide, ends->out, &first, &last);
    if (problem) return problem;
    stored->data = buffer.data + first;
    stored->size = last - first;
    ends->total += stored->size;
    ends->out += (high - low) * (ends->wide ? 8 : 4);
    return LC_OK;
}

static int lc_text_chunk_ends(const lc_text_codec *codec, lc_bytes buffer, int64_t n, int64_t low, int64_t high,
                              lc_ends *ends) {
    lc_bytes value;
    int problem = LC_OK;
    if (codec->table == NULL) return lc_text_plain_ends(codec, buffer, n, low, high, ends, &value);
    for (int64_t i = low; i < high && !problem; i++) {
        problem = lc_variable_chunk_value(buffer, n, codec->wide, i, &value);
        if (!problem) problem = lc_ends_add(ends, lc_text_size(codec, value));
    }
    return problem;
}

/* End offsets of values [a, b). `where`: the damaged chunk. */
static int lc_text_scan_ends(const lc_chunks *chunks, const lc_text_codec *codec, int64_t a, int64_t b, lc_ends *ends,
                             int64_t *where) {
    lc_chunk_walk walk = lc_chunk_walk_over(chunks, a, b);
    while (walk.at < walk.stop) {
        int problem = lc_chunk_step(chunks, &walk);
        *where = walk.chunk;
        if (!problem)
            problem = lc_text_chunk_ends(codec, walk.open.values[codec->buffer], walk.values, walk.low, walk.high,
                                         ends);
        if (problem) return problem;
    }
    return LC_OK;
}

LC_INLINE int lc_text_write(const lc_text_codec *codec, lc_bytes value, uint8_t *out, int64_t capacity,
                            int64_t *written) {
    if (codec->table) return lc_fsst_decode(codec->table, value.data, value.size, out, capacity, written);
    if (value.size > capacity) return LC_NO_SPACE;
    lc_copy_bytes(out, value.data, value.size);
    *written = value.size;
    return LC_OK;
}

/* Bytes of values [a, b), which are back to back in their chunks. Codes never span values, so a chunk is decoded as one
 * string. *total: number of bytes written. */
static int lc_text_scan_bytes(const lc_chunks *chunks, const lc_text_codec *codec, int64_t a, int64_t b, uint8_t *out,
                              int64_t capacity, int64_t *total, int64_t *where) {
    int64_t written = 0;
    lc_bytes first, last;
    lc_chunk_walk walk = lc_chunk_walk_over(chunks, a, b);
    *total = 0;
    while (walk.at < walk.stop) {
        int problem = lc_chunk_step(chunks, &walk);
        *where = walk.chunk;
        if (problem) return problem;
        lc_bytes buffer = walk.open.values[codec->buffer];
        problem = lc_variable_chunk_value(buffer, walk.values, codec->wide, walk.low, &first);
        if (!problem) problem = lc_variable_chunk_value(buffer, walk.values, codec->wide, walk.high - 1, &last);
        if (problem) return problem;
        if (last.data < first.data) return LC_BAD_OFFSETS;
        first.size = last.data + last.size - first.data;
        problem = lc_text_write(codec, first, out + *total, capacity - *total, &written);
        if (problem) return problem;
        *total += written;
    }
    return LC_OK;
}

/* The codes of values [low, high) of one chunk, as one run of strings. */
static int lc_text_strings(const lc_text_codec *codec, lc_bytes buffer, int64_t n, int64_t low, int64_t high,
                           lc_fsst_strings *strings) {
    int64_t size = lc_offset_size(codec->wide);
    if (!lc_variable_chunk_size_ok(buffer, n, codec->wide)) return LC_BAD_SIZE;
    int64_t first = lc_load_offset(buffer.data, codec->wide, low);
    int64_t last = lc_load_offset(buffer.data, codec->wide, high);
    if (first < (n + 1) * size || last < first || last > buffer.size) return LC_BAD_OFFSETS;
    strings->data = buffer.data + first;
    strings->size = last - first;
    strings->ends = buffer.data + (low + 1) * size;
    strings->wide = codec->wide;
    strings->first = first;
    strings->n = high - low;
    return LC_OK;
}

/* Decoded size of values [a, b). */
static int lc_text_scan_size(const lc_chunks *chunks, const lc_text_codec *codec, int64_t a, int64_t b, int64_t *total,
                             int64_t *where) {
    lc_fsst_strings strings;
    lc_chunk_walk walk = lc_chunk_walk_over(chunks, a, b);
    *total = 0;
    while (walk.at < walk.stop) {
        int problem = lc_chunk_step(chunks, &walk);
        *where = walk.chunk;
        if (problem) return problem;
        problem = lc_text_strings(codec, walk.open.values[codec->buffer], walk.values, walk.low, walk.high, &strings);
        if (problem) return problem;
        lc_bytes codes = {strings.data, strings.size};
        int64_t size = lc_text_size(codec, codes);
        if (size < 0) return LC_BAD_CODE;
        *total += size;
    }
    return LC_OK;
}

/* Number of chunks in a sample for an estimate. */
#define LC_TEXT_SAMPLES 16

/* Estimate the room that lc_text_scan needs to write values [a, b) without stopping early, from the decoded size of
 * some chunks at equal distances. The size of plain values is exact. */
static int lc_text_scan_estimate(const lc_chunks *chunks, const lc_text_codec *codec, int64_t a, int64_t b,
                                 int64_t *total, int64_t *where) {
    const lc_chunk_table *table = &chunks->table;
    int64_t decoded = 0, stored = 0, longest = 0;
    if (a == b) return lc_text_scan_size(chunks, codec, a, b, total, where);
    int64_t first = lc_chunk_find(table, a), count = lc_chunk_find(table, b - 1) + 1 - first;
    int64_t samples = count < LC_TEXT_SAMPLES ? count : LC_TEXT_SAMPLES;
    if (codec->table == NULL || !codec->table->compressed)
        return lc_text_scan_size(chunks, codec, a, b, total, where);
    for (int64_t i = 0; i < samples; i++) {
        int64_t chunk = first + i * count / samples, bytes = table->starts[chunk + 1] - table->starts[chunk];
        int64_t size = 0;
        int problem = lc_text_scan_size(chunks, codec, table->firsts[chunk], table->firsts[chunk + 1], &size, where);
        if (problem) return problem;
        decoded += size, stored += bytes;
        longest = bytes > longest ? bytes : longest;
    }
    double all = (double)(table->starts[first + count] - table->starts[first]);
    *total = (int64_t)(all * ((double)decoded / (double)stored) * 1.03) + 8 * longest;
    return LC_OK;
}

/* Offsets and bytes in one pass. Unless `exact` (out has room for all values), it stops before a chunk whose values may
 * not fit the rest of out (counting each code byte as the longest symbol). *done: first value not written, *total:
 * bytes written. */
static int lc_text_scan(const lc_chunks *chunks, const lc_text_codec *codec, int64_t a, int64_t b, lc_ends *ends,
                        uint8_t *out, int64_t capacity, int exact, int64_t *done, int64_t *total,
                        int64_t *where) {
    lc_fsst_strings strings;
    int64_t growth = codec->table && codec->table->compressed ? 8 : 1;
    lc_chunk_walk walk = lc_chunk_walk_over(chunks, a, b);
    *total = 0;
    for (*done = a; *done < b; *done = walk.at) {
        int64_t written = 0;
        int problem = lc_chunk_step(chunks, &walk);
        *where = walk.chunk;
        if (problem) return problem;
        problem = lc_text_strings(codec, walk.open.values[codec->buffer], walk.values, walk.low, walk.high, &strings);
        if (problem) return problem;
        if (!exact && strings.size > (capacity - *total) / growth) return LC_OK;
        if (strings.size > capacity - *total && growth == 1) return LC_NO_SPACE;
        if (codec->table) {
            lc_fsst_sink sink = {ends->out, ends->wide, ends->total, out + *total, capacity - *total};
            problem = lc_fsst_decode_strings(codec->table, &strings, &sink, &written);
            ends->out += strings.n * (ends->wide ? 8 : 4);
            ends->total += written;
        } else {
            lc_bytes stored = {NULL, 0};
            problem = lc_text_plain_ends(codec, walk.open.values[codec->buffer], walk.values, walk.low, walk.high, ends,
                                         &stored);
            /* the offsets may have changed under a mapping since they were measured */
            if (!problem && stored.size != strings.size) return LC_BAD_OFFSETS;
            if (!problem) memcpy(out + *total, stored.data, (size_t)stored.size);
            written = stored.size;
        }
        if (problem) return problem;
        *total += written;
    }
    return LC_OK;
}

/* End offsets of values items[0..n). `where`: the damaged chunk, for LC_CHUNK_ITEM the index in items. Values behind
 * each other that overlap are an error: forged ones could be any times as large as the page. */
static int lc_text_take_ends(const lc_chunks *chunks, const lc_text_codec *codec, const int64_t *items, int64_t n,
                             lc_ends *ends, int64_t *where) {
    int problem = LC_OK;
    lc_chunk chunk;
    lc_bytes value;
    for (int64_t i = 0; i < n;) {
        int64_t stop = lc_chunk_run(chunks, items, i, n, where, &chunk, &problem);
        if (problem == LC_CHUNK_ITEM) *where = i;
        if (stop < 0) return problem;
        int64_t first = chunks->table.firsts[*where], values = chunks->table.firsts[*where + 1] - first;
        int64_t before = INT64_MAX;
        const uint8_t *end = NULL;
        for (; i < stop && !problem; i++) {
            problem = lc_variable_chunk_value(chunk.values[codec->buffer], values, codec->wide, items[i] - first,
                                              &value);
            if (problem) break;
            problem = items[i] > before && value.data < end ? LC_BAD_OFFSETS
                                                            : lc_ends_add(ends, lc_text_size(codec, value));
            before = items[i], end = value.data + value.size;
        }
        if (problem) return problem;
    }
    return LC_OK;
}

/* Most bytes that the loaded chunks can stand for if no values overlap. */
static int64_t lc_text_most(const lc_chunks *chunks, const lc_text_codec *codec) {
    int64_t size = chunks->table.starts[chunks->table.count];
    if (chunks->plain) {
        size = 0;
        for (int64_t i = 0; i < chunks->table.count; i++) size += chunks->plain[i].size;
    }
    return codec->table && codec->table->compressed ? 8 * size : size;
}

/* Bytes of values items[0..n), back to back. */
static int lc_text_take_bytes(const lc_chunks *chunks, const lc_text_codec *codec, const int64_t *items, int64_t n,
                              uint8_t *out, int64_t capacity, int64_t *total, int64_t *where) {
    int problem = LC_OK;
    int64_t written = 0;
    lc_chunk chunk;
    lc_bytes value;
    *total = 0;
    for (int64_t i = 0; i < n;) {
        int64_t stop = lc_chunk_run(chunks, items, i, n, where, &chunk, &problem);
        if (problem == LC_CHUNK_ITEM) *where = i;
        if (stop < 0) return problem;
        int64_t first = chunks->table.firsts[*where], values = chunks->table.firsts[*where + 1] - first;
        for (; i < stop; i++, *total += written) {
            problem = lc_variable_chunk_value(chunk.values[codec->buffer], values, codec->wide, items[i] - first,
                                              &value);
            if (!problem) problem = lc_text_write(codec, value, out + *total, capacity - *total, &written);
            if (problem) return problem;
        }
    }
    return LC_OK;
}

#endif
