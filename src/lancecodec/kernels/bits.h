/* Bitmaps, least significant bit first. The caller has checked every bound. */
#ifndef LANCECODEC_BITS_H
#define LANCECODEC_BITS_H

#include "portable.h"

/* This instruction collects the top bits of sixteen bytes. Every x86-64 has it, but compilers do not generate it. */
#if defined(__SSE2__) || defined(_M_X64)
#define LC_SSE2
#include <emmintrin.h>
#endif

/* Sixteen bytes (0 = clear, else set) -> sixteen bits. */
LC_INLINE uint16_t lc_mask16(const uint8_t *p) {
#ifdef LC_SSE2
    __m128i clear = _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(const void *)p), _mm_setzero_si128());
    return (uint16_t)~_mm_movemask_epi8(clear);
#else
    uint16_t mask = 0;
    for (int half = 0; half < 2; half++) {
        uint64_t v = lc_load_u64(p + 8 * half);
        /* any non-zero byte -> 1, then gather the eight low bits into one byte */
        v = ((v & 0x7F7F7F7F7F7F7F7FULL) + 0x7F7F7F7F7F7F7F7FULL) | v;
        v = (v >> 7) & 0x0101010101010101ULL;
        mask |= (uint16_t)((v * 0x0102040810204080ULL) >> 56 << (8 * half));
    }
    return mask;
#endif
}

/* The same for 64 bytes. */
LC_INLINE uint64_t lc_mask64(const uint8_t *p) {
    return lc_mask16(p) | (uint64_t)lc_mask16(p + 16) << 16 | (uint64_t)lc_mask16(p + 32) << 32 |
           (uint64_t)lc_mask16(p + 48) << 48;
}

/* bytes (0 = clear, else set) -> bits; unused bits of the last byte become 0. */
LC_CLONES static inline void lc_bits_pack(const uint8_t *LC_RESTRICT values, int64_t n, uint8_t *LC_RESTRICT out) {
    int64_t i = 0;
    for (; i + 64 <= n; i += 64) lc_store_u64(out + (i >> 3), lc_mask64(values + i));
    for (; i < n; i += 8) {
        uint8_t last = 0;
        int64_t some = n - i < 8 ? n - i : 8;
        for (int64_t k = 0; k < some; k++) last |= (uint8_t)((values[i + k] != 0) << k);
        out[i >> 3] = last;
    }
}

/* bits [offset, offset + n) -> bytes 0 or 1 */
LC_CLONES static inline void lc_bits_unpack(const uint8_t *LC_RESTRICT bits, int64_t offset, int64_t n,
                                            uint8_t *LC_RESTRICT out) {
    int64_t i = 0;
    for (; i < n && ((offset + i) & 7); i++) out[i] = (uint8_t)lc_get_bit(bits, offset + i);
    const uint8_t *p = bits + ((offset + i) >> 3);
    int64_t whole = (n - i) >> 3;
    for (int64_t k = 0; k < whole; k++) {
        /* eight copies of the byte, bit j kept in copy j, then any non-zero byte -> 1 */
        uint64_t v = ((uint64_t)p[k] * 0x0101010101010101ULL) & 0x8040201008040201ULL;
        lc_store_u64(out + i + 8 * k, ((v + 0x7F7F7F7F7F7F7F7FULL) >> 7) & 0x0101010101010101ULL);
    }
    for (i += whole * 8; i < n; i++) out[i] = (uint8_t)lc_get_bit(bits, offset + i);
}

LC_INLINE void lc_set_bit(uint8_t *out, int64_t i, int value) {
    uint8_t mask = (uint8_t)(1u << (i & 7));
    out[i >> 3] = value ? (uint8_t)(out[i >> 3] | mask) : (uint8_t)(out[i >> 3] & ~mask);
}

/* Writer of consecutive bits. Bits outside of the range in the first and the last byte are preserved. */
typedef struct {
    uint8_t *at;
    uint64_t bits;
    int64_t held; /* below 64 */
} lc_bit_writer;

LC_INLINE lc_bit_writer lc_bit_writer_at(uint8_t *out, int64_t bit) {
    lc_bit_writer writer = {out + (bit >> 3), 0, bit & 7};
    if (writer.held) writer.bits = *writer.at & lc_low_mask(writer.held);
    return writer;
}

/* `count` is 0 to 64; bits above it must be 0. */
LC_INLINE void lc_bit_writer_add(lc_bit_writer *writer, uint64_t bits, int64_t count) {
    writer->bits |= bits << writer->held;
    if (writer->held + count >= 64) {
        lc_store_u64(writer->at, writer->bits);
        writer->at += 8;
        writer->bits = (bits >> 1) >> (63 - writer->held);
        writer->held += count - 64;
    } else {
        writer->held += count;
    }
}

LC_INLINE void lc_bit_writer_end(lc_bit_writer *writer) {
    for (; writer->held >= 8; writer->held -= 8, writer->bits >>= 8) *writer->at++ = (uint8_t)writer->bits;
    if (writer->held) {
        uint64_t mine = lc_low_mask(writer->held);
        *writer->at = (uint8_t)((*writer->at & ~mine) | (writer->bits & mine));
    }
}

/* Copy n bits from bit `offset` of src to bit `at` of out, leaving the other bits of out as they are. */
LC_CLONES static inline void lc_bits_copy(const uint8_t *LC_RESTRICT src, int64_t offset, int64_t n,
                                          uint8_t *LC_RESTRICT out, int64_t at) {
    int64_t i = 0;
    for (; i < n && ((at + i) & 7); i++) lc_set_bit(out, at + i, lc_get_bit(src, offset + i));
    int64_t from = offset + i;
    int shift = (int)(from & 7);
    const uint8_t *p = src + (from >> 3);
    uint8_t *q = out + ((at + i) >> 3);
    int64_t whole = (n - i) >> 3;
    if (shift == 0) {
        if (whole) memcpy(q, p, (size_t)whole);
    } else {
        int64_t words = whole >> 3;
        for (int64_t k = 0; k < words; k++)
            lc_store_u64(q + 8 * k, (lc_load_u64(p + 8 * k) >> shift) | ((uint64_t)p[8 * k + 8] << (64 - shift)));
        for (int64_t k = 8 * words; k < whole; k++) q[k] = (uint8_t)((p[k] >> shift) | (p[k + 1] << (8 - shift)));
    }
    for (i += whole * 8; i < n; i++) lc_set_bit(out, at + i, lc_get_bit(src, offset + i));
}

/* Set n bits from bit `at` on to `value`. */
static inline void lc_bits_fill(uint8_t *out, int64_t at, int64_t n, int value) {
    int64_t i = 0;
    for (; i < n && ((at + i) & 7); i++) lc_set_bit(out, at + i, value);
    int64_t whole = (n - i) >> 3;
    if (whole) memset(out + ((at + i) >> 3), value ? 0xFF : 0, (size_t)whole);
    for (i += whole * 8; i < n; i++) lc_set_bit(out, at + i, value);
}

LC_CLONES static inline int64_t lc_bits_count(const uint8_t *bits, int64_t offset, int64_t n) {
    int64_t total = 0, i = 0;
    for (; i < n && ((offset + i) & 7); i++) total += lc_get_bit(bits, offset + i);
    const uint8_t *p = bits + ((offset + i) >> 3);
    int64_t words = (n - i) >> 6;
    for (int64_t k = 0; k < words; k++) total += lc_popcount64(lc_load_u64(p + 8 * k));
    for (i += words * 64; i < n; i++) total += lc_get_bit(bits, offset + i);
    return total;
}

/* Return the position, counted from `offset`, of set bit number `number` (from 0) of n bits; -1 if there are fewer. */
LC_CLONES static inline int64_t lc_bits_select(const uint8_t *bits, int64_t offset, int64_t n, int64_t number) {
    int64_t i = 0;
    for (; i < n && ((offset + i) & 7); i++)
        if (lc_get_bit(bits, offset + i) && number-- == 0) return i;
    for (; i + 64 <= n; i += 64) {
        int64_t some = lc_popcount64(lc_load_u64(bits + ((offset + i) >> 3)));
        if (some > number) break;
        number -= some;
    }
    for (; i < n; i++)
        if (lc_get_bit(bits, offset + i) && number-- == 0) return i;
    return -1;
}

/* Return the position of the first of n indices that is not in [0, length), or -1. */
LC_INLINE int64_t lc_find_outside(const int64_t *LC_RESTRICT index, int64_t n, int64_t length) {
    uint64_t outside = 0;
    for (int64_t i = 0; i < n; i++) outside |= (uint64_t)((uint64_t)index[i] >= (uint64_t)length);
    if (!outside) return -1;
    int64_t i = 0;
    while ((uint64_t)index[i] < (uint64_t)length) i++;
    return i;
}

/* Bit index[i] of a bitmap of `length` bits -> bit i; unused bits of the last byte become 0.
 * Returns the position of the first index that is out of range, or -1. */
LC_CLONES static inline int64_t lc_bits_gather(const uint8_t *LC_RESTRICT bits, int64_t length,
                                               const int64_t *LC_RESTRICT index, int64_t n, uint8_t *LC_RESTRICT out) {
    int64_t i = 0;
    while (i < n) {
        int64_t some = n - i < 512 ? n - i : 512, bad = lc_find_outside(index + i, some, length);
        if (bad >= 0) return i + bad;
        int64_t stop = i + some;
        for (; i + 8 <= stop; i += 8) {
            unsigned byte = 0;
            for (int k = 0; k < 8; k++) byte |= (unsigned)lc_get_bit(bits, index[i + k]) << k;
            out[i >> 3] = (uint8_t)byte;
        }
        if (i < stop) out[i >> 3] = 0;
        for (; i < stop; i++) out[i >> 3] |= (uint8_t)(lc_get_bit(bits, index[i]) << (i & 7));
    }
    return -1;
}

#endif
