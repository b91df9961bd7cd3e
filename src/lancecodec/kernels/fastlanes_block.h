/* The FastLanes block: 1024 values of 8, 16, 32 or 64 bits packed into `width` rows of 128 bytes.
 *
 * For every value size a row is 128 bytes, in the packed block as well as in the values: piece k of 128 value bytes
 * (values 1024/bits * k ...) is one row of the transposed order. So one loop over sixteen 64-bit words serves all
 * sizes: a 64-bit shift moves the lanes inside their word together, and a mask repeated for each lane removes what
 * crossed from its neighbour. Pieces are visited in value order, which writes memory front to back.
 *
 * Callers have checked: bits is 8, 16, 32 or 64, 0 <= width <= bits, and every size. */
#ifndef LANCECODEC_FASTLANES_BLOCK_H
#define LANCECODEC_FASTLANES_BLOCK_H

#include "lanes.h"

#define LC_FL_VALUES 1024 /* of a block */
#define LC_FL_ROW 128     /* bytes of a row, and of `width` 1 in a block */
#define LC_FL_WORDS 16    /* 64-bit words of a row */

LC_INLINE int lc_fl_bits_known(int64_t bits) { return bits == 8 || bits == 16 || bits == 32 || bits == 64; }

/* Everything below divides by powers of two; `bits` is a constant in hot loops, a variable elsewhere. */
LC_INLINE int lc_fl_log(int bits) { return bits == 8 ? 3 : bits == 16 ? 4 : bits == 32 ? 5 : 6; }

/* The lowest `width` bits of each lane. */
LC_INLINE uint64_t lc_fl_mask(int bits, int width) { return lc_lanes(bits, lc_low_mask(width)); }

LC_INLINE int lc_fl_reverse3(int q) { return ((q & 1) << 2) | (q & 2) | (q >> 2); }

/* Row of the transposed order that holds piece k of the values, and back. */
LC_INLINE int lc_fl_row_of_piece(int bits, int piece) {
    int log = lc_fl_log(bits), q = (piece & ((bits >> 3) - 1)) << (6 - log);
    return 8 * lc_fl_reverse3(q) + (piece >> (log - 3));
}

LC_INLINE int lc_fl_piece_of_row(int bits, int row) {
    int log = lc_fl_log(bits);
    return ((row & 7) << (log - 3)) + (lc_fl_reverse3(row >> 3) >> (6 - log));
}

/* One row of values that lie inside one row of the packed block. */
LC_INLINE void lc_fl_inside_row(const uint8_t *LC_RESTRICT src, int shift, uint64_t mask, uint8_t *LC_RESTRICT out) {
#ifdef LC_VECTORS
    for (int i = 0; i < LC_FL_ROW; i += 32)
        *(lc_words4 *)(out + i) = (*(const lc_words4 *)(src + i) >> shift) & mask;
#else
    for (int i = 0; i < LC_FL_ROW; i += 8) lc_store_u64(out + i, (lc_load_u64(src + i) >> shift) & mask);
#endif
}

/* One row of values whose lowest bits are the highest of one packed row, and whose other bits begin the next. */
LC_INLINE void lc_fl_across_rows(const uint8_t *LC_RESTRICT src, int shift, int back, uint64_t low_mask,
                                 uint64_t high_mask, uint8_t *LC_RESTRICT out) {
    const uint8_t *next = src + LC_FL_ROW;
#ifdef LC_VECTORS
    for (int i = 0; i < LC_FL_ROW; i += 32)
        *(lc_words4 *)(out + i) = ((*(const lc_words4 *)(src + i) >> shift) & low_mask) |
                                  ((*(const lc_words4 *)(next + i) << back) & high_mask);
#else
    for (int i = 0; i < LC_FL_ROW; i += 8)
        lc_store_u64(out + i, ((lc_load_u64(src + i) >> shift) & low_mask) |
                                  ((lc_load_u64(next + i) << back) & high_mask));
#endif
}

/* Piece k of the values of a block. */
LC_INLINE void lc_fl_unpack_piece(const uint8_t *LC_RESTRICT src, int bits, int width, int piece,
                                  uint8_t *LC_RESTRICT out) {
    int bit = lc_fl_row_of_piece(bits, piece) * width, shift = bit & (bits - 1);
    const uint8_t *row = src + (bit >> lc_fl_log(bits)) * LC_FL_ROW;
    uint64_t mask = lc_fl_mask(bits, width);
    if (shift + width <= bits) {
        lc_fl_inside_row(row, shift, mask, out);
    } else {
        uint64_t low_mask = lc_fl_mask(bits, bits - shift);
        lc_fl_across_rows(row, shift, bits - shift, low_mask, mask & ~low_mask, out);
    }
}

LC_INLINE void lc_fl_unpack_whole(const uint8_t *LC_RESTRICT src, int64_t blocks, int bits, int width,
                                  uint8_t *LC_RESTRICT out) {
    for (int64_t b = 0; b < blocks; b++, src += width * LC_FL_ROW, out += bits * LC_FL_ROW) {
        for (int piece = 0; piece < bits; piece++) {
            int row = width + ((piece * width) >> lc_fl_log(bits));
            /* rows are not in memory order, so the hardware does not prefetch the next block */
            LC_PREFETCH(src, row * LC_FL_ROW);
            LC_PREFETCH(src, row * LC_FL_ROW + LC_FL_ROW / 2);
            lc_fl_unpack_piece(src, bits, width, piece, out + piece * LC_FL_ROW);
        }
    }
}

/* `blocks` consecutive blocks of one width. */
LC_CLONES static inline void lc_fl_unpack(const uint8_t *LC_RESTRICT src, int64_t blocks, int bits, int width,
                                          uint8_t *LC_RESTRICT out) {
    if (blocks == 0) return;
    if (width == 0) memset(out, 0, (size_t)(blocks * bits * LC_FL_ROW));
    else if (bits == 8) lc_fl_unpack_whole(src, blocks, 8, width, out);
    else if (bits == 16) lc_fl_unpack_whole(src, blocks, 16, width, out);
    else if (bits == 32) lc_fl_unpack_whole(src, blocks, 32, width, out);
    else lc_fl_unpack_whole(src, blocks, 64, width, out);
}

/* Unpack values [from, to) of one block, 0 <= from <= to <= 1024; only the affected pieces are unpacked. */
LC_CLONES static inline void lc_fl_unpack_part(const uint8_t *src, int bits, int width, int64_t from, int64_t to,
                                               uint8_t *out) {
    uint8_t piece[LC_FL_ROW];
    int64_t at = from * (bits >> 3), end = to * (bits >> 3);
    if (width == 0) {
        if (at < end) memset(out, 0, (size_t)(end - at));
        return;
    }
    while (at < end) {
        int k = (int)at / LC_FL_ROW;
        int64_t skip = at % LC_FL_ROW, take = LC_FL_ROW - skip < end - at ? LC_FL_ROW - skip : end - at;
        lc_fl_unpack_piece(src, bits, width, k, take == LC_FL_ROW ? out : piece);
        if (take < LC_FL_ROW) memcpy(out, piece + skip, (size_t)take);
        at += take;
        out += take;
    }
}

/* The byte from which on value i of a block lies, `shift` bits behind its begin. */
LC_INLINE int64_t lc_fl_place(int bits, int width, int64_t i, int *shift) {
    int log = lc_fl_log(bits), byte = (int)i << (log - 3);
    int bit = lc_fl_row_of_piece(bits, byte / LC_FL_ROW) * width;
    *shift = bit & (bits - 1);
    return (int64_t)(bit >> log) * LC_FL_ROW + byte % LC_FL_ROW;
}

/* One value; 0 <= i < 1024, width > 0. */
LC_INLINE uint64_t lc_fl_get(const uint8_t *src, int bits, int width, int64_t i) {
    int shift;
    const uint8_t *p = src + lc_fl_place(bits, width, i, &shift);
    uint64_t value = lc_load_value(p, bits) >> shift;
    if (shift + width > bits) value |= lc_load_value(p + LC_FL_ROW, bits) << (bits - shift);
    return value & lc_low_mask(width);
}

LC_INLINE void lc_fl_get_each(const uint8_t *src, int bits, int width, const int64_t *at, int64_t count,
                              uint8_t *out) {
    for (int64_t i = 0; i < count; i++) lc_store_value(out + i * (bits >> 3), bits, lc_fl_get(src, bits, width, at[i]));
}

/* A few values of a block, one by one. */
static inline void lc_fl_get_few(const uint8_t *src, int bits, int width, const int64_t *at, int64_t count,
                                 uint8_t *out) {
    if (bits == 8) lc_fl_get_each(src, 8, width, at, count, out);
    else if (bits == 16) lc_fl_get_each(src, 16, width, at, count, out);
    else if (bits == 32) lc_fl_get_each(src, 32, width, at, count, out);
    else lc_fl_get_each(src, 64, width, at, count, out);
}

/* All values of a block into its rows; a value's bits above `width` are dropped. */
LC_INLINE void lc_fl_pack_whole(const uint8_t *LC_RESTRICT values, int bits, int width, uint8_t *LC_RESTRICT out) {
    int row = 0;
    for (int w = 0; w < width; w++) {
        uint64_t words[LC_FL_WORDS] = {0};
        for (;;) {
            LC_PREFETCH(values, (bits + row) * LC_FL_ROW);
            LC_PREFETCH(values, (bits + row) * LC_FL_ROW + LC_FL_ROW / 2);
            const uint8_t *p = values + lc_fl_piece_of_row(bits, row) * LC_FL_ROW;
            int shift = row * width - w * bits;
            if (shift < 0) {
                uint64_t mask = lc_fl_mask(bits, width + shift);
                for (int64_t i = 0; i < LC_FL_WORDS; i++) words[i] |= (lc_load_u64(p + 8 * i) >> -shift) & mask;
            } else {
                uint64_t mask = lc_fl_mask(bits, width < bits - shift ? width : bits - shift) << shift;
                for (int64_t i = 0; i < LC_FL_WORDS; i++) words[i] |= (lc_load_u64(p + 8 * i) << shift) & mask;
            }
            if (shift + width > bits) break; /* the rest of this row's values begins the next word */
            row++;
            if (shift + width == bits) break;
        }
        memcpy(out + w * LC_FL_ROW, words, LC_FL_ROW);
    }
}

LC_CLONES static inline void lc_fl_pack(const uint8_t *LC_RESTRICT values, int bits, int width,
                                        uint8_t *LC_RESTRICT out) {
    if (bits == 8) lc_fl_pack_whole(values, 8, width, out);
    else if (bits == 16) lc_fl_pack_whole(values, 16, width, out);
    else if (bits == 32) lc_fl_pack_whole(values, 32, width, out);
    else lc_fl_pack_whole(values, 64, width, out);
}

/* Bits needed by the largest of n values. */
LC_CLONES static inline int lc_fl_width(const uint8_t *values, int64_t n, int bits) {
    uint64_t all = 0;
    int64_t size = n * (bits / 8), i = 0;
    for (; i + 8 <= size; i += 8) all |= lc_load_u64(values + i);
    return lc_lanes_width(all | lc_load_word(values + i, size - i), bits);
}

#endif
