/* Values of `width` bits back to back in a plain bit stream, optionally sign extended.
 *
 * 64 / bits values are processed as one word: the stream has their bits side by side, and log2(64 / bits) steps of mask
 * and shift spread them to the lanes of the word, or collect them. So one loop serves all sizes. Preconditions checked
 * by callers: bits is 8, 16, 32 or 64, 1 <= width <= bits, and every size. */
#ifndef LANCECODEC_BITSTREAM_H
#define LANCECODEC_BITSTREAM_H

#include "chunk.h"
#include "lanes.h"

/* Lanes of 2 * half bits, each with two fields at its bottom: move the upper one to the upper half of the lane. */
LC_INLINE uint64_t lc_stream_part(uint64_t x, int half, int bits, int width) {
    int field = width * half / bits;
    uint64_t mask = lc_lanes(2 * half, lc_low_mask(field));
    return (x & mask) | ((x << (half - field)) & (mask << half));
}

LC_INLINE uint64_t lc_stream_join(uint64_t x, int half, int bits, int width) {
    int field = width * half / bits;
    uint64_t mask = lc_lanes(2 * half, lc_low_mask(field));
    return (x & mask) | ((x >> (half - field)) & (mask << field));
}

/* Spread the lowest 64 / bits fields of `width` bits to one lane each, and the inverse. There is no loop, so that loops
 * over words vectorise. */
LC_INLINE uint64_t lc_stream_spread(uint64_t x, int bits, int width) {
    if (bits <= 32) x = lc_stream_part(x, 32, bits, width);
    if (bits <= 16) x = lc_stream_part(x, 16, bits, width);
    if (bits <= 8) x = lc_stream_part(x, 8, bits, width);
    return bits == 64 ? x & lc_low_mask(width) : x;
}

LC_INLINE uint64_t lc_stream_gather(uint64_t x, int bits, int width) {
    x &= lc_lanes(bits, lc_low_mask(width));
    if (bits <= 8) x = lc_stream_join(x, 8, bits, width);
    if (bits <= 16) x = lc_stream_join(x, 16, bits, width);
    return bits <= 32 ? lc_stream_join(x, 32, bits, width) : x;
}

/* Copies of the sign bit into all bits above it: per lane 2^bits - 2^width, or 0. */
LC_INLINE uint64_t lc_stream_extend(uint64_t x, int bits, int width) {
    uint64_t sign = x & lc_lanes(bits, 1ULL << (width - 1));
    return x | ((sign << (bits - width) << 1) - (sign << 1));
}

/* Return each lane unchanged, or complemented if its top bit is set: the width of a signed value depends on it. */
LC_INLINE uint64_t lc_stream_magnitude(uint64_t x, int bits) {
    uint64_t sign = x & lc_lanes(bits, 1ULL << (bits - 1));
    return x ^ ((sign << 1) - (sign >> (bits - 1)));
}

/* Words per batch: bits are moved word by word, but spread and collected in vectors. Batches are always whole: a
 * constant number of iterations halves the size of the code. */
#define LC_STREAM_BATCH 256
/* Room for the bytes of an unfinished word, one more word, and the width of a store. */
#define LC_STREAM_TAIL 24

/* At least 57 bits from stream bit `at` on, or all 64 if `wide`; 8 or 9 bytes are read. */
LC_INLINE uint64_t lc_stream_load(const uint8_t *src, int64_t at, int wide) {
    const uint8_t *p = src + (at >> 3);
    int shift = (int)(at & 7);
    uint64_t x = lc_load_u64(p) >> shift;
    return wide ? x | (uint64_t)p[8] << 1 << (63 - shift) : x;
}

/* The same near the end of the stream; missing bits are 0. */
LC_INLINE uint64_t lc_stream_load_end(const uint8_t *src, int64_t size, int64_t at) {
    uint8_t last[9] = {0};
    int64_t left = size - (at >> 3);
    memcpy(last, src + (at >> 3), (size_t)(left < 9 ? left : 9));
    return lc_stream_load(last, at & 7, 1);
}

LC_INLINE void lc_stream_spread_batch(const uint64_t *LC_RESTRICT batch, int bits, int width, int sign,
                                      uint8_t *LC_RESTRICT out) {
    for (int64_t i = 0; i < LC_STREAM_BATCH; i++) {
        uint64_t x = lc_stream_spread(batch[i], bits, width);
        lc_store_u64(out + 8 * i, sign ? lc_stream_extend(x, bits, width) : x);
    }
}

/* Words from stream bit `at` on, 9 readable bytes for each. */
LC_INLINE void lc_stream_decode_words(const uint8_t *LC_RESTRICT src, int bits, int width, int sign, int64_t at,
                                      int64_t words, uint8_t *LC_RESTRICT out) {
    uint64_t batch[LC_STREAM_BATCH] = {0};
    uint8_t last[8 * LC_STREAM_BATCH];
    int64_t step = (int64_t)width * (64 / bits);
    for (; words > 0; words -= LC_STREAM_BATCH, out += 8 * LC_STREAM_BATCH) {
        int64_t count = words < LC_STREAM_BATCH ? words : LC_STREAM_BATCH;
        if (step > 57 && ((step | at) & 7)) {
            for (int64_t i = 0; i < count; i++, at += step) batch[i] = lc_stream_load(src, at, 1);
        } else {
            for (int64_t i = 0; i < count; i++, at += step) batch[i] = lc_stream_load(src, at, 0);
        }
        lc_stream_spread_batch(batch, bits, width, sign, count == LC_STREAM_BATCH ? out : last);
        if (count < LC_STREAM_BATCH) memcpy(out, last, (size_t)(8 * count));
    }
}

/* Number of words of `step` bits from bit `at` on that have 9 readable bytes, at most `words`. */
LC_INLINE int64_t lc_stream_safe_words(int64_t size, int64_t at, int64_t step, int64_t words) {
    int64_t room = (size - 9) * 8 + 7 - at;
    int64_t safe = room < 0 ? 0 : room / step + 1;
    return safe < words ? safe : words;
}

/* Read values [from, to); the stream must have them. */
LC_CLONES static inline void lc_stream_decode(const uint8_t *src, int64_t size, int bits, int width, int sign,
                                              int64_t from, int64_t to, uint8_t *out) {
    int64_t lanes = 64 / bits, at = from * width;
    int64_t words = lc_stream_safe_words(size, at, lanes * width, (to - from) / lanes);
    if (bits == 8) lc_stream_decode_words(src, 8, width, sign, at, words, out);
    else if (bits == 16) lc_stream_decode_words(src, 16, width, sign, at, words, out);
    else if (bits == 32) lc_stream_decode_words(src, 32, width, sign, at, words, out);
    else lc_stream_decode_words(src, 64, width, sign, at, words, out);
    out += 8 * words;
    for (from += words * lanes; from < to; from += lanes, out += 8) {
        uint64_t x = lc_stream_spread(lc_stream_load_end(src, size, from * width), bits, width);
        if (sign) x = lc_stream_extend(x, bits, width);
        memcpy(out, &x, (size_t)((to - from < lanes ? to - from : lanes) * (bits / 8)));
    }
}

/* Read the values at given positions; the stream must have them. */
static inline void lc_stream_at(const uint8_t *src, int64_t size, int bits, int width, int sign, const int64_t *at,
                                int64_t count, uint8_t *out) {
    for (int64_t i = 0; i < count; i++) {
        int64_t bit = at[i] * width;
        uint64_t x = (bit >> 3) + 9 <= size ? lc_stream_load(src, bit, 1) : lc_stream_load_end(src, size, bit);
        x &= lc_low_mask(width);
        if (sign) x = lc_stream_extend(x, bits, width);
        lc_store_value(out + i * (bits / 8), bits, x);
    }
}

/* State of a stream that is being written: the known bits of the word at `out`. */
typedef struct {
    uint8_t *out;
    uint64_t pending;
    int64_t filled;
} lc_stream_end;

/* Append `step` <= 64 bits. 8 bytes are written at the end of the stream even if they are incomplete. */
LC_INLINE void lc_stream_append(lc_stream_end *end, uint64_t x, int64_t step) {
    uint64_t word = end->pending | x << end->filled;
    int64_t filled = end->filled + step;
    lc_store_u64(end->out, word);
    end->pending = filled >= 64 ? x >> 1 >> (63 - end->filled) : word;
    end->out += filled >> 6 << 3;
    end->filled = filled & 63;
}

/* Return an OR of the bits that decide whether the values fit. */
LC_INLINE uint64_t lc_stream_gather_batch(const uint8_t *LC_RESTRICT values, int bits, int width, int sign,
                                          uint64_t *LC_RESTRICT batch) {
    uint64_t used = 0;
    for (int64_t i = 0; i < LC_STREAM_BATCH; i++) {
        uint64_t x = lc_load_u64(values + 8 * i);
        used |= sign ? lc_stream_magnitude(x, bits) : x;
        batch[i] = lc_stream_gather(x, bits, width);
    }
    return used;
}

/* Append whole words; return the same OR. */
LC_INLINE uint64_t lc_stream_encode_words(const uint8_t *LC_RESTRICT values, int64_t words, int bits, int width,
                                          int sign, lc_stream_end *state) {
    uint64_t batch[LC_STREAM_BATCH], used = 0;
    uint8_t last[8 * LC_STREAM_BATCH];
    lc_stream_end end = *state;
    for (; words > 0; words -= LC_STREAM_BATCH, values += 8 * LC_STREAM_BATCH) {
        int64_t count = words < LC_STREAM_BATCH ? words : LC_STREAM_BATCH;
        if (count < LC_STREAM_BATCH) {
            memset(last, 0, sizeof last);
            memcpy(last, values, (size_t)(8 * count));
        }
        used |= lc_stream_gather_batch(count < LC_STREAM_BATCH ? last : values, bits, width, sign, batch);
        for (int64_t i = 0; i < count; i++) lc_stream_append(&end, batch[i], (int64_t)width * (64 / bits));
    }
    *state = end;
    return used;
}

/* Writes ceil(n * width / 8) bytes. LC_BAD_WIDTH if a value does not fit. */
LC_CLONES static inline int lc_stream_encode(const uint8_t *values, int64_t n, int bits, int width, int sign,
                                             uint8_t *out) {
    lc_stream_end end = {out, 0, 0};
    int64_t lanes = 64 / bits, size = n * (bits / 8), written = (n * width + 7) / 8;
    /* words that begin where 8 bytes can be written; the few others are written through `last` */
    int64_t words = written < 8 ? 0 : (written / 8 * 64 - 1) / (lanes * width) + 1;
    if (words > n / lanes) words = n / lanes;
    uint64_t used;
    if (bits == 8) used = lc_stream_encode_words(values, words, 8, width, sign, &end);
    else if (bits == 16) used = lc_stream_encode_words(values, words, 16, width, sign, &end);
    else if (bits == 32) used = lc_stream_encode_words(values, words, 32, width, sign, &end);
    else used = lc_stream_encode_words(values, words, 64, width, sign, &end);
    uint8_t last[LC_STREAM_TAIL], *begin = end.out;
    end.out = last;
    for (int64_t at = 8 * words; at < size; at += 8) {
        int64_t here = size - at < 8 ? size - at : 8;
        uint64_t x = lc_load_word(values + at, here);
        used |= sign ? lc_stream_magnitude(x, bits) : x;
        lc_stream_append(&end, lc_stream_gather(x, bits, width), here / (bits / 8) * width);
    }
    lc_store_u64(end.out, end.pending);
    if (out + written > begin) memcpy(begin, last, (size_t)(out + written - begin));
    return used & ~lc_lanes(bits, lc_low_mask(width - sign)) ? LC_BAD_WIDTH : LC_OK;
}

/* Smallest width of n values. *sign: some are negative (if values can be). */
LC_CLONES static inline int lc_stream_width(const uint8_t *values, int64_t n, int bits, int can_be_negative,
                                            int *sign) {
    uint64_t all = 0, magnitudes = 0, top = lc_lanes(bits, 1ULL << (bits - 1));
    int64_t size = n * (bits / 8), at = 0;
    for (; at + 8 <= size; at += 8) {
        uint64_t x = lc_load_u64(values + at);
        all |= x;
        magnitudes |= lc_stream_magnitude(x, bits);
    }
    uint64_t last = lc_load_word(values + at, size - at);
    all |= last;
    magnitudes |= lc_stream_magnitude(last, bits);
    *sign = can_be_negative && (all & top);
    int width = *sign ? lc_lanes_width(magnitudes, bits) + 1 : lc_lanes_width(all, bits);
    return width ? width : 1;
}

#endif
