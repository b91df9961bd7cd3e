/* Run-length encoding, decoder: entry j is value j repeated length j times.
 *
 * A run is written with stores of a fixed size, longer than most runs, and the next run overwrites the excess, so short
 * runs do not need branches. Only the runs near the end of the output are written exactly. */
#ifndef LANCECODEC_RLE_H
#define LANCECODEC_RLE_H

#include "chunk.h"

/* Size of a store at the end of the output, where runs are written one by one. */
#define LC_RLE_LONG 64
/* Number of runs whose lengths are summed before a position is looked up; entries of the table of those sums. */
#define LC_RLE_STRIDE 64
#define LC_RLE_SUMS 256

/* The value of 1, 2, 4 or 8 bytes at p, repeated over 8 bytes. */
LC_INLINE uint64_t lc_repeated(const uint8_t *p, int width) {
    if (width == 1) return p[0] * 0x0101010101010101ULL;
    if (width == 2) return lc_load_u16(p) * 0x0001000100010001ULL;
    if (width == 4) return lc_load_u32(p) * 0x0000000100000001ULL;
    return lc_load_u64(p);
}

LC_INLINE int64_t lc_run_length(const uint8_t *lengths, int length_bytes, int64_t j) {
    if (length_bytes == 1) return lengths[j];
    return length_bytes == 2 ? (int64_t)lc_load_u16(lengths + 2 * j) : (int64_t)lc_load_u32(lengths + 4 * j);
}

LC_INLINE int lc_is_value_width(int64_t bits) { return bits == 8 || bits == 16 || bits == 32 || bits == 64; }

LC_INLINE uint64_t lc_sum_u8(const uint8_t *p, int64_t n) {
    const uint64_t even = 0x00FF00FF00FF00FFULL;
    uint64_t total = 0;
    int64_t i = 0;
    while (n - i >= 8) {
        /* four sums of 16 bits to a word, which 128 words cannot overflow */
        uint64_t sums = 0;
        int64_t words = (n - i) >> 3;
        if (words > 128) words = 128;
        for (int64_t k = 0; k < words; k++) {
            uint64_t v = lc_load_u64(p + i + 8 * k);
            sums += (v & even) + ((v >> 8) & even);
        }
        total += (sums & 0xFFFF) + ((sums >> 16) & 0xFFFF) + ((sums >> 32) & 0xFFFF) + (sums >> 48);
        i += 8 * words;
    }
    for (; i < n; i++) total += p[i];
    return total;
}

LC_INLINE uint64_t lc_sum_lengths(const uint8_t *lengths, int length_bytes, int64_t runs) {
    uint64_t total = 0;
    if (length_bytes == 1) return lc_sum_u8(lengths, runs);
    for (int64_t j = 0; j < runs; j++) total += (uint64_t)lc_run_length(lengths, length_bytes, j);
    return total;
}

LC_INLINE int lc_has_zero_length(const uint8_t *lengths, int length_bytes, int64_t runs) {
    int zero = 0;
    if (length_bytes == 1) {
        uint8_t any = 0;
        for (int64_t j = 0; j < runs; j++) any |= (uint8_t)(lengths[j] == 0);
        return any;
    }
    for (int64_t j = 0; j < runs; j++) zero |= lc_run_length(lengths, length_bytes, j) == 0;
    return zero;
}

/* Return whether all eight bytes are at most `limit`, below 128. */
LC_INLINE int lc_all_at_most(uint64_t v, int limit) {
    const uint64_t low = 0x7F7F7F7F7F7F7F7FULL;
    uint64_t over = (v & low) + (uint64_t)(127 - limit) * 0x0101010101010101ULL;
    return ((over | v) & ~low) == 0;
}

/* Write exactly `size` bytes, a multiple of the width. */
LC_INLINE void lc_rle_fill_exactly(uint8_t *out, uint64_t pattern, int width, int64_t size) {
    int64_t k = 0;
    for (; k + 8 <= size; k += 8) lc_store_u64(out + k, pattern);
    for (; k < size; k += width) memcpy(out + k, &pattern, (size_t)width);
}

/* Write copies of one value, `step` bytes, such that compilers broadcast it in the vector unit. */
LC_INLINE void lc_rle_store(uint8_t *LC_RESTRICT out, const uint8_t *LC_RESTRICT value, int width, int step) {
    if (width == 1 && step > 8) {
        memset(out, value[0], (size_t)step);
    } else if (width == 2) {
        for (int b = 0; b < step; b += 2) lc_store_u16(out + b, lc_load_u16(value));
    } else if (width == 4) {
        for (int b = 0; b < step; b += 4) lc_store_u32(out + b, lc_load_u32(value));
    } else {
        uint64_t pattern = lc_repeated(value, width);
        for (int b = 0; b < step; b += 8) lc_store_u64(out + b, pattern);
    }
}

/* Write the runs from j on, the last of them cut at the end of the output. Short ones are collected in a buffer first,
 * so that they can be written without checking their length too. */
LC_INLINE void lc_rle_fill_end(const uint8_t *LC_RESTRICT values, int width, const uint8_t *LC_RESTRICT lengths,
                               int length_bytes, int64_t j, int64_t runs, uint8_t *LC_RESTRICT out, uint8_t *end) {
    uint8_t scratch[2 * LC_RLE_LONG];
    int64_t used = 0;
    for (; j < runs && out + used < end; j++) {
        int64_t size = lc_run_length(lengths, length_bytes, j) * width, left = end - out - used;
        LC_OPAQUE(size);
        if (size > left) size = left;
        if (size > LC_RLE_LONG || used > LC_RLE_LONG) {
            memcpy(out, scratch, (size_t)used);
            lc_rle_fill_exactly(out + used, lc_repeated(values + j * width, width), width, size);
            out += used + size;
            used = 0;
        } else {
            lc_rle_store(scratch + used, values + j * width, width, LC_RLE_LONG);
            used += size;
        }
    }
    if (used) memcpy(out, scratch, (size_t)used);
}

/* Write eight runs of at most 31 values and `step` bytes. The multiplication adds up their lengths, one byte per sum.
 * Returns the number of values. */
LC_INLINE int64_t lc_rle_fill_eight(const uint8_t *LC_RESTRICT values, int width, uint64_t lengths,
                                    uint8_t *LC_RESTRICT out, int step) {
    uint64_t ends = lengths * 0x0101010101010101ULL, begins = ends << 8;
    for (int k = 0; k < 8; k++)
        lc_rle_store(out + (int64_t)(begins >> (8 * k) & 0xFF) * width, values + k * width, width, step);
    return (int64_t)(ends >> 56);
}

/* The lengths have been checked: they are not 0, and they cover n values. `step` bytes are stored at once. */
LC_INLINE void lc_rle_fill(const uint8_t *LC_RESTRICT values, int width, const uint8_t *LC_RESTRICT lengths,
                           int length_bytes, int64_t runs, int64_t n, uint8_t *LC_RESTRICT out, int step) {
    const int limit = step / width < 31 ? step / width : 31;
    uint8_t *end = out + n * width;
    int64_t j = 0;
    while (j < runs) {
        while (length_bytes == 1 && j + 8 <= runs && end - out >= 8 * step) {
            uint64_t eight = lc_once_u64(lengths + j);
            if (!lc_all_at_most(eight, limit)) break;
            out += width * lc_rle_fill_eight(values + j * width, width, eight, out, step);
            j += 8;
        }
        int64_t stop = j + 8 < runs ? j + 8 : runs;
        for (; j < stop; j++) {
            int64_t size = lc_run_length(lengths, length_bytes, j) * width;
            LC_OPAQUE(size);
            if (end - out < size + step) {
                lc_rle_fill_end(values, width, lengths, length_bytes, j, runs, out, end);
                return;
            }
            int64_t at = 0;
            do lc_rle_store(out + at, values + j * width, width, step);
            while ((at += step) < size);
            out += size;
        }
    }
}

/* A store of several times the average run covers nearly all runs. */
LC_INLINE void lc_rle_fill_stepwise(const uint8_t *values, int width, const uint8_t *lengths, int length_bytes,
                                    int64_t runs, int64_t n, uint8_t *out) {
    int64_t average = runs ? n / runs * width : 0;
    if (width == 1 && average < 4) lc_rle_fill(values, width, lengths, length_bytes, runs, n, out, 8);
    else if (width == 2 && average < 8) lc_rle_fill(values, width, lengths, length_bytes, runs, n, out, 16);
    else if (width < 8 && average < 8) lc_rle_fill(values, width, lengths, length_bytes, runs, n, out, 32);
    else if (average < 32) lc_rle_fill(values, width, lengths, length_bytes, runs, n, out, 64);
    else lc_rle_fill(values, width, lengths, length_bytes, runs, n, out, 128);
}

LC_INLINE int lc_rle_expand_lengths(const uint8_t *values, int64_t value_bits, const uint8_t *lengths, int length_bytes,
                                    int64_t runs, int64_t n, int strict, uint8_t *out) {
    if (lc_has_zero_length(lengths, length_bytes, runs)) return LC_BAD_RUN;
    uint64_t total = lc_sum_lengths(lengths, length_bytes, runs);
    if (total < (uint64_t)n || (strict && total != (uint64_t)n)) return LC_BAD_RUN;
    if (value_bits == 8) lc_rle_fill_stepwise(values, 1, lengths, length_bytes, runs, n, out);
    else if (value_bits == 16) lc_rle_fill_stepwise(values, 2, lengths, length_bytes, runs, n, out);
    else if (value_bits == 32) lc_rle_fill_stepwise(values, 4, lengths, length_bytes, runs, n, out);
    else lc_rle_fill_stepwise(values, 8, lengths, length_bytes, runs, n, out);
    return LC_OK;
}

LC_CLONES static inline int lc_rle_expand_narrow(const uint8_t *values, int64_t value_bits, const uint8_t *lengths,
                                                 int64_t runs, int64_t n, int strict, uint8_t *out) {
    return lc_rle_expand_lengths(values, value_bits, lengths, 1, runs, n, strict, out);
}

LC_CLONES static inline int lc_rle_expand_wide(const uint8_t *values, int64_t value_bits, const uint8_t *lengths,
                                               int64_t length_bits, int64_t runs, int64_t n, int strict, uint8_t *out) {
    if (length_bits == 16) return lc_rle_expand_lengths(values, value_bits, lengths, 2, runs, n, strict, out);
    return lc_rle_expand_lengths(values, value_bits, lengths, 4, runs, n, strict, out);
}

/* Expand `runs` values and lengths to n values. The lengths must add up to n if `strict`, else to at least n: for
 * example, release 1.0.0 of the reference keeps the whole last run in a chunk, and repeats the excess in the next. */
static inline int lc_rle_expand(const uint8_t *values, int64_t value_bits, const uint8_t *lengths, int64_t length_bits,
                                int64_t runs, int64_t n, int strict, uint8_t *out) {
    if (!lc_is_value_width(value_bits)) return LC_BAD_WIDTH;
    if (length_bits != 8 && length_bits != 16 && length_bits != 32) return LC_BAD_WIDTH;
    if (n < 0 || runs < 0) return LC_BAD_COUNT;
    if (length_bits == 8) return lc_rle_expand_narrow(values, value_bits, lengths, runs, n, strict, out);
    return lc_rle_expand_wide(values, value_bits, lengths, length_bits, runs, n, strict, out);
}

/* Number of entries of two buffers of whole entries, or -1 if they do not match. */
LC_INLINE int64_t lc_rle_entries(lc_bytes values, int64_t value_bits, lc_bytes lengths, int64_t length_bits) {
    int64_t width = value_bits / 8, length_bytes = length_bits / 8, runs = lengths.size / length_bytes;
    if (lengths.size % length_bytes || values.size % width || values.size / width != runs) return -1;
    return runs;
}

/* A mini-block chunk: buffer 0 the values, buffer 1 the lengths, of 8 bits. */
static inline int lc_rle_chunk(const lc_bytes *buffers, int64_t n, int64_t bits, uint8_t *out) {
    if (!lc_is_value_width(bits)) return LC_BAD_WIDTH;
    int64_t runs = lc_rle_entries(buffers[0], bits, buffers[1], 8);
    if (runs < 0) return LC_BAD_SIZE;
    return lc_rle_expand(buffers[0].data, bits, buffers[1].data, 8, runs, n, 0, out);
}

/* The block form: u64 size of the values, values, lengths of 8 bits. */
static inline int lc_rle_block(const uint8_t *src, int64_t size, int64_t n, int64_t bits, uint8_t *out) {
    if (!lc_is_value_width(bits)) return LC_BAD_WIDTH;
    if (size < 8) return LC_BAD_HEADER;
    uint64_t values_size = lc_once_u64(src);
    if (values_size > (uint64_t)(size - 8)) return LC_BAD_HEADER;
    lc_bytes values = {src + 8, (int64_t)values_size};
    lc_bytes lengths = {src + 8 + values.size, size - 8 - values.size};
    int64_t runs = lc_rle_entries(values, bits, lengths, 8);
    if (runs < 0) return LC_BAD_SIZE;
    return lc_rle_expand(values.data, bits, lengths.data, 8, runs, n, 1, out);
}

/* Entry that covers position `at`, or -1. begins[s] is the position where entry s * stride begins. */
LC_INLINE int64_t lc_rle_find(const uint8_t *lengths, int length_bytes, int64_t runs, const int64_t *begins,
                              int64_t sums, int64_t stride, int64_t at) {
    int64_t low = 0, high = sums;
    while (high - low > 1) {
        int64_t middle = (low + high) / 2;
        if (begins[middle] <= at) low = middle;
        else high = middle;
    }
    int64_t j = low * stride, begin = begins[low];
    while (j < runs && at - begin >= lc_run_length(lengths, length_bytes, j))
        begin += lc_run_length(lengths, length_bytes, j++);
    return j < runs ? j : -1;
}

LC_INLINE int lc_rle_at_lengths(const uint8_t *values, int64_t width, const uint8_t *lengths, int length_bytes,
                                int64_t runs, const int64_t *at, int64_t count, uint8_t *out) {
    int64_t begins[LC_RLE_SUMS], stride = LC_RLE_STRIDE, sums = 0, begin = 0;
    while ((runs - 1) / stride >= LC_RLE_SUMS) stride *= 2;
    for (int64_t j = 0; j < runs; j += stride) {
        begins[sums++] = begin;
        int64_t some = runs - j < stride ? runs - j : stride;
        begin += (int64_t)lc_sum_lengths(lengths + j * length_bytes, length_bytes, some);
    }
    for (int64_t i = 0; i < count; i++) {
        int64_t j = sums ? lc_rle_find(lengths, length_bytes, runs, begins, sums, stride, at[i]) : -1;
        if (j < 0) return LC_BAD_RUN;
        lc_copy_bytes(out + i * width, values + j * width, width);
    }
    return LC_OK;
}

/* Values at positions, which are below the number of values; only the entries needed are checked. */
LC_CLONES static inline int lc_rle_take(const uint8_t *values, int64_t value_bits, const uint8_t *lengths,
                                        int64_t length_bits, int64_t runs, const int64_t *at, int64_t count,
                                        uint8_t *out) {
    if (length_bits == 8) return lc_rle_at_lengths(values, value_bits / 8, lengths, 1, runs, at, count, out);
    if (length_bits == 16) return lc_rle_at_lengths(values, value_bits / 8, lengths, 2, runs, at, count, out);
    if (length_bits == 32) return lc_rle_at_lengths(values, value_bits / 8, lengths, 4, runs, at, count, out);
    return LC_BAD_WIDTH;
}

static inline int lc_rle_at(const lc_bytes *buffers, int64_t n, int64_t bits, const int64_t *at, int64_t count,
                            uint8_t *out) {
    (void)n;
    if (!lc_is_value_width(bits)) return LC_BAD_WIDTH;
    int64_t runs = lc_rle_entries(buffers[0], bits, buffers[1], 8);
    if (runs < 0) return LC_BAD_SIZE;
    return lc_rle_take(buffers[0].data, bits, buffers[1].data, 8, runs, at, count, out);
}

#endif
