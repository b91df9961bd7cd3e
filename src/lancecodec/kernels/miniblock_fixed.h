/* Fixed-width values of mini-block chunks: ranges and single positions, plain or through a dictionary. */
#ifndef LANCECODEC_MINIBLOCK_FIXED_H
#define LANCECODEC_MINIBLOCK_FIXED_H

#include "bits.h"
#include "fastlanes.h"
#include "flat.h"
#include "gather.h"
#include "miniblock.h"
#include "rle.h"
#include "split.h"

enum lc_value_kind { LC_VALUE_NONE = -1, LC_VALUE_FLAT, LC_VALUE_INLINE, LC_VALUE_RLE, LC_VALUE_SPLIT };

/* Codec of the values; `buffer` is its first value buffer (validity of list items is in front). */
typedef struct {
    int64_t kind, bits, buffer;
} lc_value_codec;

/* Number of positions passed to a codec at a time. */
#define LC_TAKE_BLOCK 256
/* From 1 / LC_TAKE_SHARE of a chunk on, decoding the whole chunk is faster than locating its values one by one. */
#define LC_TAKE_SHARE 24

/* Decode all n values of a chunk. */
LC_INLINE int lc_value_chunk(const lc_value_codec *codec, const lc_chunk *chunk, int64_t n, uint8_t *out) {
    const lc_bytes *buffers = chunk->values + codec->buffer;
    switch (codec->kind) {
        case LC_VALUE_FLAT: return lc_flat_chunk(buffers, n, codec->bits, out);
        case LC_VALUE_INLINE: return lc_inline_chunk(buffers, n, codec->bits, out);
        case LC_VALUE_RLE: return lc_rle_chunk(buffers, n, codec->bits, out);
        default: return lc_split_chunk(buffers, n, codec->bits, out);
    }
}

LC_INLINE int lc_value_at(const lc_value_codec *codec, const lc_chunk *chunk, int64_t n, const int64_t *at,
                          int64_t count, uint8_t *out) {
    const lc_bytes *buffers = chunk->values + codec->buffer;
    switch (codec->kind) {
        case LC_VALUE_FLAT: return lc_flat_at(buffers, n, codec->bits, at, count, out);
        case LC_VALUE_INLINE: return lc_inline_at(buffers, n, codec->bits, at, count, out);
        case LC_VALUE_RLE: return lc_rle_at(buffers, n, codec->bits, at, count, out);
        default: return lc_split_at(buffers, n, codec->bits, at, count, out);
    }
}

/* Values [low, high) of an open chunk, in the cheapest place: in the chunk itself if it is flat, else in `scratch`,
 * which holds a whole chunk. */
LC_INLINE int lc_value_view(const lc_value_codec *codec, const lc_chunk_walk *walk, uint8_t *scratch,
                            const uint8_t **values) {
    int64_t width = codec->bits >> 3;
    const lc_bytes *buffer = walk->open.values + codec->buffer;
    if (codec->kind == LC_VALUE_FLAT) {
        if (buffer->size % width || buffer->size / width != walk->values) return LC_BAD_SIZE;
        *values = buffer->data + walk->low * width;
        return LC_OK;
    }
    *values = scratch + walk->low * width;
    return lc_value_chunk(codec, &walk->open, walk->values, scratch);
}

/* Decode values [a, b) of whole bytes. `where`: the damaged chunk. */
static int lc_fixed_scan(const lc_chunks *chunks, const lc_value_codec *codec, int64_t a, int64_t b, uint8_t *out,
                         uint8_t *scratch, int64_t *where) {
    int64_t width = codec->bits >> 3;
    const uint8_t *values;
    int problem = LC_OK;
    lc_chunk_walk walk = lc_chunk_walk_over(chunks, a, b);
    while (walk.at < walk.stop) {
        problem = lc_chunk_step(chunks, &walk);
        *where = walk.chunk;
        if (problem) return problem;
        int64_t n = walk.high - walk.low;
        if (n == walk.values) {
            problem = lc_value_chunk(codec, &walk.open, n, out);
        } else {
            problem = lc_value_view(codec, &walk, scratch, &values);
            if (!problem) memcpy(out, values, (size_t)(n * width));
        }
        if (problem) return problem;
        out += n * width;
    }
    return LC_OK;
}

/* Flat values of any number of bits, from bit `at` of out on. */
static int lc_bits_scan(const lc_chunks *chunks, const lc_value_codec *codec, int64_t a, int64_t b, uint8_t *out,
                        int64_t at, int64_t *where) {
    lc_chunk_walk walk = lc_chunk_walk_over(chunks, a, b);
    while (walk.at < walk.stop) {
        int problem = lc_chunk_step(chunks, &walk);
        *where = walk.chunk;
        if (problem) return problem;
        lc_bytes buffer = walk.open.values[codec->buffer];
        if ((problem = lc_flat_check(buffer, walk.values, codec->bits))) return problem;
        int64_t bits = (walk.high - walk.low) * codec->bits;
        lc_bits_copy(buffer.data, walk.low * codec->bits, bits, out, at);
        at += bits;
    }
    return LC_OK;
}

/* out[i] = value items[i], flat values of any number of bits, from bit `at` of out on. */
static int lc_bits_take(const lc_chunks *chunks, const lc_value_codec *codec, const int64_t *items, int64_t n,
                        uint8_t *out, int64_t at, int64_t *where) {
    int problem = LC_OK;
    lc_chunk chunk;
    for (int64_t i = 0; i < n;) {
        int64_t stop = lc_chunk_run(chunks, items, i, n, where, &chunk, &problem);
        if (problem == LC_CHUNK_ITEM) *where = i;
        if (stop < 0) return problem;
        int64_t first = chunks->table.firsts[*where], values = chunks->table.firsts[*where + 1] - first;
        lc_bytes buffer = chunk.values[codec->buffer];
        if ((problem = lc_flat_check(buffer, values, codec->bits))) return problem;
        for (; i < stop; i++, at += codec->bits)
            if (codec->bits == 1) lc_set_bit(out, at, lc_get_bit(buffer.data, items[i] - first));
            else lc_bits_copy(buffer.data, (items[i] - first) * codec->bits, codec->bits, out, at);
    }
    return LC_OK;
}

/* Decode values at some positions of one chunk: one by one, or the whole chunk if there are many. */
static int lc_fixed_take_chunk(const lc_value_codec *codec, const lc_chunk *chunk, int64_t first, int64_t values,
                               const int64_t *items, int64_t n, uint8_t *out, uint8_t *scratch) {
    int64_t width = codec->bits >> 3, at[LC_TAKE_BLOCK];
    int whole = codec->kind != LC_VALUE_FLAT && n >= values / LC_TAKE_SHARE;
    int problem = whole ? lc_value_chunk(codec, chunk, values, scratch) : LC_OK;
    for (int64_t i = 0; i < n && !problem; i += LC_TAKE_BLOCK) {
        int64_t count = n - i < LC_TAKE_BLOCK ? n - i : LC_TAKE_BLOCK;
        for (int64_t k = 0; k < count; k++) at[k] = items[i + k] - first;
        if (whole) lc_gather_block(scratch, width, (const uint8_t *)at, 8, count, out + i * width);
        else problem = lc_value_at(codec, chunk, values, at, count, out + i * width);
    }
    return problem;
}

/* out[i] = value items[i], whole bytes; any order, repeats allowed. `where`: the damaged chunk, for LC_CHUNK_ITEM the
 * index in items. Positions that jump between chunks pay for each jump: *work counts the extra values that were
 * decoded, and beyond `budget` the function stops early. *done: number of values written. */
static int lc_fixed_take(const lc_chunks *chunks, const lc_value_codec *codec, const int64_t *items, int64_t n,
                         uint8_t *out, uint8_t *scratch, int64_t budget, int64_t *done, int64_t *where) {
    int64_t width = codec->bits >> 3, work = 0;
    int problem = LC_OK;
    lc_chunk chunk;
    *done = 0;
    while (*done < n && work <= budget) {
        int64_t i = *done, stop = lc_chunk_run(chunks, items, i, n, where, &chunk, &problem);
        if (problem == LC_CHUNK_ITEM) *where = i;
        if (stop < 0) return problem;
        int64_t first = chunks->table.firsts[*where], values = chunks->table.firsts[*where + 1] - first;
        problem = lc_fixed_take_chunk(codec, &chunk, first, values, items + i, stop - i, out + i * width, scratch);
        if (problem) return problem;
        if (codec->kind == LC_VALUE_RLE) work += chunk.values[codec->buffer + 1].size;
        if (stop - i >= values / LC_TAKE_SHARE && codec->kind != LC_VALUE_FLAT) work += values;
        *done = stop;
    }
    return LC_OK;
}

/* ---- dictionaries ---- */

typedef struct {
    const uint8_t *entries;
    int64_t width, count;
} lc_dictionary;

/* Check that indices of `bits` bits are below count. Others become 0 if the value is null (bit at + i of validity is
 * clear), else they are an error with the position in *bad. */
static int lc_indices_check(uint8_t *indices, int64_t bits, int64_t n, int64_t count, const uint8_t *validity,
                            int64_t at, int64_t *bad) {
    int64_t width = bits >> 3;
    if (n == 0 || lc_codes_max(indices, width, n) < (uint64_t)count) return LC_OK;
    *bad = lc_codes_find_bad(indices, width, n, (uint64_t)count, validity, at);
    if (*bad >= 0) return LC_BAD_INDEX;
    for (int64_t i = 0; i < n; i++)
        if (lc_code_at(indices, width, i) >= (uint64_t)count) memset(indices + i * width, 0, (size_t)width);
    return LC_OK;
}

/* out[i] = entry indices[i]; a null may have any index. */
LC_INLINE int lc_dictionary_gather(const lc_dictionary *dictionary, const uint8_t *indices, int64_t bits, int64_t n,
                                   const uint8_t *validity, int64_t at, uint8_t *out) {
    return lc_gather_fixed_nulls(dictionary->entries, dictionary->count, dictionary->width, indices, bits >> 3, n,
                                 validity, validity ? at : 0, out);
}

/* Values [a, b) through a dictionary of fixed-width entries, chunk by chunk, so that the indices stay in the cache.
 * Bit `at` of validity belongs to value a. */
static int lc_dictionary_scan(const lc_chunks *chunks, const lc_value_codec *codec, const lc_dictionary *dictionary,
                              int64_t a, int64_t b, const uint8_t *validity, int64_t at, uint8_t *out, uint8_t *scratch,
                              int64_t *where) {
    const uint8_t *indices;
    lc_chunk_walk walk = lc_chunk_walk_over(chunks, a, b);
    while (walk.at < walk.stop) {
        int problem = lc_chunk_step(chunks, &walk);
        *where = walk.chunk;
        if (!problem) problem = lc_value_view(codec, &walk, scratch, &indices);
        int64_t n = walk.high - walk.low;
        if (!problem) problem = lc_dictionary_gather(dictionary, indices, codec->bits, n, validity, at, out);
        if (problem) return problem;
        out += n * dictionary->width;
        if (validity) at += n;
    }
    return LC_OK;
}

#endif
