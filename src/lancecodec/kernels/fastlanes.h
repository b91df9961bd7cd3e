/* Forms of bit-packed blocks: inline (width in front), out of line (one width outside), whole blocks.
 *
 * Decoders check everything that they read. n <= 1024 values of a block are unpacked directly to their place. */
#ifndef LANCECODEC_FASTLANES_H
#define LANCECODEC_FASTLANES_H

#include "chunk.h"
#include "fastlanes_block.h"

/* Locating a value takes about 2 ns for any size, unpacking a block 1 ns per 64 bytes. From this many values of a block
 * on (16, 32, 64, 128 for the four sizes, as measured) the whole block is unpacked. */
LC_INLINE int lc_fl_many(int bits) { return 2 * bits; }

/* Values [from, to) of a run of blocks of one width. */
static inline void lc_fl_unpack_range(const uint8_t *src, int bits, int width, int64_t from, int64_t to, uint8_t *out) {
    int64_t block = from / LC_FL_VALUES, skip = from % LC_FL_VALUES;
    if (skip) {
        int64_t left = LC_FL_VALUES - skip < to - from ? LC_FL_VALUES - skip : to - from;
        lc_fl_unpack_part(src + block * width * LC_FL_ROW, bits, width, skip, skip + left, out);
        out += left * bits / 8;
        from += left;
        block++;
    }
    int64_t whole = (to - from) / LC_FL_VALUES;
    lc_fl_unpack(src + block * width * LC_FL_ROW, whole, bits, width, out);
    lc_fl_unpack_part(src + (block + whole) * width * LC_FL_ROW, bits, width, 0, (to - from) % LC_FL_VALUES,
                      out + whole * bits * LC_FL_ROW);
}

/* Pack 0 < n <= 1024 values, padded with zeros. */
static inline void lc_fl_pack_padded(const uint8_t *values, int64_t n, int bits, int width, uint8_t *out) {
    uint8_t padded[LC_FL_VALUES * 8];
    if (n < LC_FL_VALUES) {
        int64_t size = n * bits / 8;
        memcpy(padded, values, (size_t)size);
        memset(padded + size, 0, (size_t)(bits * LC_FL_ROW - size));
        values = padded;
    }
    lc_fl_pack(values, bits, width, out);
}

/* n values as blocks of one width, the last one padded; *written = bytes. LC_BAD_WIDTH if a value needs more bits. */
static inline int lc_fl_pack_blocks(const uint8_t *values, int64_t n, int bits, int width, uint8_t *out,
                                    int64_t *written) {
    *written = 0;
    for (int64_t i = 0; i < n; i += LC_FL_VALUES) {
        int64_t count = n - i < LC_FL_VALUES ? n - i : LC_FL_VALUES;
        const uint8_t *block = values + i * (bits / 8);
        if (lc_fl_width(block, count, bits) > width) return LC_BAD_WIDTH;
        lc_fl_pack_padded(block, count, bits, width, out + *written);
        *written += width * LC_FL_ROW;
    }
    return LC_OK;
}

/* Unpack the values at positions of one block. */
static inline void lc_fl_at(const uint8_t *src, int bits, int width, const int64_t *at, int64_t count, uint8_t *out) {
    uint8_t values[LC_FL_VALUES * 8];
    int64_t bytes = bits / 8;
    if (width == 0) {
        if (count) memset(out, 0, (size_t)(count * bytes));
    } else if (count < lc_fl_many(bits)) {
        lc_fl_get_few(src, bits, width, at, count, out);
    } else {
        lc_fl_unpack(src, 1, bits, width, values);
        for (int64_t i = 0; i < count; i++)
            lc_store_value(out + i * bytes, bits, lc_load_value(values + at[i] * bytes, bits));
    }
}

/* ---- inline: the width as one value, then the block ---- */

LC_INLINE int lc_inline_width(const uint8_t *src, int64_t size, int64_t n, int64_t bits, int *width) {
    if (!lc_fl_bits_known(bits)) return LC_BAD_WIDTH;
    if (n < 0 || n > LC_FL_VALUES) return LC_BAD_COUNT;
    if (size < bits / 8) return LC_BAD_SIZE;
    uint64_t header = lc_load_value(src, (int)bits);
    LC_OPAQUE(header);
    if (header > (uint64_t)bits) return LC_BAD_WIDTH;
    *width = (int)header;
    return size == bits / 8 + (int64_t)header * LC_FL_ROW ? LC_OK : LC_BAD_SIZE;
}

/* Block context: n <= 1024 values; 0 values have no bytes, not even a header. */
static inline int lc_inline_block(const uint8_t *src, int64_t size, int64_t n, int64_t bits, uint8_t *out) {
    int width, problem;
    if (n == 0) return LC_OK;
    if ((problem = lc_inline_width(src, size, n, bits, &width))) return problem;
    if (n == LC_FL_VALUES) lc_fl_unpack(src + bits / 8, 1, (int)bits, width, out);
    else lc_fl_unpack_part(src + bits / 8, (int)bits, width, 0, n, out);
    return LC_OK;
}

static inline int lc_inline_chunk(const lc_bytes *buffers, int64_t n, int64_t bits, uint8_t *out) {
    return lc_inline_block(buffers[0].data, buffers[0].size, n, bits, out);
}

/* Unpack the chunks of a page: 1024 values each except the last, back to back. ends[i] is the end byte of chunk i, and
 * the ends have been checked against the buffer. *where: chunk of a problem. */
static inline int lc_inline_chunks(const uint8_t *src, const int64_t *ends, int64_t n, int64_t bits, uint8_t *out,
                                   int64_t *where) {
    int64_t begin = 0;
    for (int64_t i = 0; i * LC_FL_VALUES < n; i++) {
        int64_t left = n - i * LC_FL_VALUES, count = left < LC_FL_VALUES ? left : LC_FL_VALUES;
        int problem = lc_inline_block(src + begin, ends[i] - begin, count, bits, out + i * bits * LC_FL_ROW);
        *where = i;
        if (problem) return problem;
        begin = ends[i];
    }
    return LC_OK;
}

/* Values at positions of a chunk; the caller has checked 0 <= at < n. */
static inline int lc_inline_at(const lc_bytes *buffers, int64_t n, int64_t bits, const int64_t *at, int64_t count,
                               uint8_t *out) {
    int width, problem;
    if (count == 0) return LC_OK;
    if ((problem = lc_inline_width(buffers[0].data, buffers[0].size, n, bits, &width))) return problem;
    lc_fl_at(buffers[0].data + bits / 8, (int)bits, width, at, count, out);
    return LC_OK;
}

/* A page as chunks of 1024 values, each of the width it needs; ends[i] = end byte of chunk i. Returns the bytes. */
static inline int64_t lc_inline_pack(const uint8_t *values, int64_t n, int bits, uint8_t *out, int64_t *ends) {
    int64_t end = 0;
    for (int64_t i = 0; i < n; i += LC_FL_VALUES) {
        int64_t count = n - i < LC_FL_VALUES ? n - i : LC_FL_VALUES;
        const uint8_t *block = values + i * (bits / 8);
        int width = lc_fl_width(block, count, bits);
        lc_store_value(out + end, bits, (uint64_t)width);
        end += bits / 8;
        lc_fl_pack_padded(block, count, bits, width, out + end);
        end += width * LC_FL_ROW;
        ends[i / LC_FL_VALUES] = end;
    }
    return end;
}

/* ---- out of line: full blocks, then a tail that is packed or plain ---- */

/* Checks the sizes; *raw = the tail is plain values. */
LC_INLINE int lc_ool_check(int64_t size, int64_t n, int64_t bits, int64_t width, int *raw) {
    if (!lc_fl_bits_known(bits) || width < 0 || width > bits) return LC_BAD_WIDTH;
    if (n < 0) return LC_BAD_COUNT;
    int64_t whole = n / LC_FL_VALUES, tail = n % LC_FL_VALUES, block = width * LC_FL_ROW;
    if (block && whole > size / block) return LC_BAD_SIZE;
    int64_t rest = size - whole * block;
    *raw = tail && rest == tail * bits / 8;
    return *raw || rest == (tail ? block : 0) ? LC_OK : LC_BAD_SIZE;
}

static inline int lc_ool_unpack(const uint8_t *src, int64_t size, int64_t n, int64_t bits, int64_t width,
                                uint8_t *out) {
    int raw, problem = lc_ool_check(size, n, bits, width, &raw);
    if (problem) return problem;
    int64_t packed = raw ? n / LC_FL_VALUES * LC_FL_VALUES : n;
    lc_fl_unpack_range(src, (int)bits, (int)width, 0, packed, out);
    if (raw)
        memcpy(out + packed / 8 * bits, src + packed / LC_FL_VALUES * width * LC_FL_ROW,
               (size_t)((n - packed) * bits / 8));
    return LC_OK;
}

/* Return whether the tail of n values is packed: only if that is shorter than the plain values. */
LC_INLINE int lc_ool_packs_tail(int64_t n, int64_t bits, int64_t width) {
    return width * LC_FL_ROW < n % LC_FL_VALUES * (bits / 8);
}

LC_INLINE int64_t lc_ool_size(int64_t n, int64_t bits, int64_t width) {
    int64_t tail = n % LC_FL_VALUES * (bits / 8), block = width * LC_FL_ROW;
    return n / LC_FL_VALUES * block + (block < tail ? block : tail);
}

/* Writes lc_ool_size bytes. LC_BAD_WIDTH if a packed value needs more bits. */
static inline int lc_ool_pack(const uint8_t *values, int64_t n, int bits, int width, uint8_t *out) {
    int64_t packed = lc_ool_packs_tail(n, bits, width) ? n : n / LC_FL_VALUES * LC_FL_VALUES, written;
    int problem = lc_fl_pack_blocks(values, packed, bits, width, out, &written);
    if (problem == LC_OK && packed < n)
        memcpy(out + written, values + packed * (bits / 8), (size_t)((n - packed) * (bits / 8)));
    return problem;
}

/* Values at positions of a run of blocks; neighbours in one block are handled together. */
static inline void lc_fl_blocks_at(const uint8_t *src, int bits, int width, const int64_t *at, int64_t count,
                                   uint8_t *out) {
    int64_t inside[LC_FL_VALUES];
    for (int64_t i = 0; i < count;) {
        int64_t block = at[i] / LC_FL_VALUES, first = i, k = 0;
        for (; i < count && k < LC_FL_VALUES && at[i] / LC_FL_VALUES == block; i++) inside[k++] = at[i] % LC_FL_VALUES;
        lc_fl_at(src + block * width * LC_FL_ROW, bits, width, inside, k, out + first * (bits / 8));
    }
}

/* Values at positions; the caller has checked 0 <= at < n. */
static inline int lc_ool_at(const uint8_t *src, int64_t size, int64_t n, int64_t bits, int64_t width,
                            const int64_t *at, int64_t count, uint8_t *out) {
    int raw, problem = lc_ool_check(size, n, bits, width, &raw);
    if (problem) return problem;
    int64_t packed = raw ? n / LC_FL_VALUES * LC_FL_VALUES : n, bytes = bits / 8;
    const uint8_t *tail = src + packed / LC_FL_VALUES * width * LC_FL_ROW;
    for (int64_t i = 0; i < count;) {
        int64_t first = i, plain = at[i] >= packed;
        while (i < count && (at[i] >= packed) == plain) i++;
        if (!plain) lc_fl_blocks_at(src, (int)bits, (int)width, at + first, i - first, out + first * bytes);
        for (int64_t k = first; plain && k < i; k++)
            lc_store_value(out + k * bytes, (int)bits, lc_load_value(tail + (at[k] - packed) * bytes, (int)bits));
    }
    return LC_OK;
}

#endif
