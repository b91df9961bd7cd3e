/* Values of 8, 16, 32 or 64 bits, single and as the lanes of a 64-bit word. */
#ifndef LANCECODEC_LANES_H
#define LANCECODEC_LANES_H

#include "portable.h"

/* Vectors of words, of halves of words, ... at any address. Compilers lower them to what the machine has. Without them, and
 * in builds that watch single loads, loops are over single words. */
#if (defined(__GNUC__) || defined(__clang__)) && !defined(LC_FLICKER)
#define LC_VECTORS
typedef uint64_t lc_words4 __attribute__((vector_size(32), aligned(1), may_alias));
typedef uint32_t lc_halves8 __attribute__((vector_size(32), aligned(1), may_alias));
#endif

/* `field`, of at most `bits` bits, in each lane of `bits` bits. */
LC_INLINE uint64_t lc_lanes(int bits, uint64_t field) {
    return field * (bits == 8    ? 0x0101010101010101ULL
                    : bits == 16 ? 0x0001000100010001ULL
                    : bits == 32 ? 0x0000000100000001ULL
                                 : 1);
}

/* Bits needed by the largest of the lanes. */
LC_INLINE int lc_lanes_width(uint64_t lanes, int bits) {
    int width = 0;
    for (int half = 32; half >= bits; half /= 2) lanes |= lanes >> half;
    lanes &= lc_low_mask(bits);
    for (int step = 32; step; step /= 2)
        if (lanes >> step) lanes >>= step, width += step;
    return width + (int)lanes;
}

LC_INLINE uint64_t lc_load_value(const uint8_t *p, int bits) {
    if (bits == 8) return *p;
    if (bits == 16) return lc_load_u16(p);
    return bits == 32 ? lc_load_u32(p) : lc_load_u64(p);
}

LC_INLINE void lc_store_value(uint8_t *p, int bits, uint64_t value) {
    if (bits == 8) *p = (uint8_t)value;
    else if (bits == 16) lc_store_u16(p, (uint16_t)value);
    else if (bits == 32) lc_store_u32(p, (uint32_t)value);
    else lc_store_u64(p, value);
}

/* Load the word at p, of which only `size` bytes exist; the others are 0. */
LC_INLINE uint64_t lc_load_word(const uint8_t *p, int64_t size) {
    uint64_t word = 0;
    if (size >= 8) return lc_load_u64(p);
    if (size > 0) memcpy(&word, p, (size_t)size);
    return word;
}

#endif
