/* Bitmaps, least significant bit first. The caller has checked every bound. */
#ifndef LANCECODEC_BITS_H
#define LANCECODEC_BITS_H

#include "portable.h"

/* bytes (0 = clear, else set) -> bits; unused bits of the last byte become 0. */
LC_CLONES static inline void lc_bits_pack(const uint8_t *LC_RESTRICT values, int64_t n, uint8_t *LC_RESTRICT out) {
    int64_t whole = n >> 3;
    for (int64_t i = 0; i < whole; i++) {
        uint64_t v = lc_load_u64(values + 8 * i);
        /* any non-zero byte -> 1, then gather the eight low bits into one byte */
        v = ((v & 0x7F7F7F7F7F7F7F7FULL) + 0x7F7F7F7F7F7F7F7FULL) | v;
        v = (v >> 7) & 0x0101010101010101ULL;
        out[i] = (uint8_t)((v * 0x0102040810204080ULL) >> 56);
    }
    if (n & 7) {
        uint8_t last = 0;
        for (int64_t i = whole * 8; i < n; i++) last |= (uint8_t)((values[i] != 0) << (i & 7));
        out[whole] = last;
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

/* Bit index[i] of a bitmap of `length` bits -> bit i; unused bits of the last byte become 0.
 * Returns the position of the first index that is out of range, or -1. */
static inline int64_t lc_bits_gather(const uint8_t *bits, int64_t length, const int64_t *index, int64_t n,
                                     uint8_t *out) {
    uint8_t byte = 0;
    for (int64_t i = 0; i < n; i++) {
        if ((uint64_t)index[i] >= (uint64_t)length) return i;
        byte |= (uint8_t)(lc_get_bit(bits, index[i]) << (i & 7));
        if ((i & 7) == 7 || i == n - 1) {
            out[i >> 3] = byte;
            byte = 0;
        }
    }
    return -1;
}

#endif
