/* Registers of a HyperLogLog sketch (Flajolet et al. 2007) over 64-bit hashes. */
#ifndef LANCECODEC_HYPERLOGLOG_H
#define LANCECODEC_HYPERLOGLOG_H

#include "chunk.h"
#include "hash.h"

/* One more round, because every bit of the hash matters. */
LC_INLINE uint64_t lc_sketch_hash(uint64_t word) {
    return lc_fold(lc_hash_word(LC_SKETCH_SECRET, word) ^ 0xA4093822299F31D0ULL, 0x082EFA98EC4E6C89ULL);
}

/* The first `precision` bits choose the register, which keeps the most leading zeros of the rest, plus 1. */
LC_INLINE void lc_sketch_add(uint8_t *registers, int precision, uint64_t hash) {
    uint64_t rest = (hash << precision) | ((uint64_t)1 << (precision - 1));
#if defined(__GNUC__) || defined(__clang__)
    uint8_t rank = (uint8_t)(__builtin_clzll(rest) + 1);
#else
    uint8_t rank = 1;
    for (; !(rest >> 63); rest <<= 1) rank++;
#endif
    uint8_t *at = registers + (hash >> (64 - precision));
    *at = rank > *at ? rank : *at;
}

LC_INLINE uint64_t lc_sketch_value(const uint8_t *p, int64_t n, int64_t readable) {
    if (n <= 8) return lc_sketch_hash(lc_load_short(p, n, readable) ^ (uint64_t)n * 0x9E3779B97F4A7C15ULL);
    uint64_t low, high;
    if (n > 16) return lc_sketch_hash(lc_hash_bytes(LC_SKETCH_SECRET, p, n));
    lc_load_pair(p, n, readable, &low, &high);
    return lc_sketch_hash(lc_hash_pair(LC_SKETCH_SECRET, low, high) ^ (uint64_t)n);
}

LC_INLINE void lc_sketch_loop(uint8_t *registers, int precision, const uint8_t *data, int64_t width, int64_t n,
                              const uint8_t *validity, int64_t bit) {
    for (int64_t i = 0; i < n; i++) {
        if (validity && !lc_get_bit(validity, bit + i)) continue;
        lc_sketch_add(registers, precision, lc_sketch_value(data + i * width, width, (n - i) * width));
    }
}

static void lc_sketch_fixed(uint8_t *registers, int precision, const uint8_t *data, int64_t width, int64_t n,
                            const uint8_t *validity, int64_t bit) {
    if (width == 8 && !validity) lc_sketch_loop(registers, precision, data, 8, n, NULL, 0);
    else lc_sketch_loop(registers, precision, data, width, n, validity, bit);
}

static int lc_sketch_variable(uint8_t *registers, int precision, const uint8_t *data, int64_t size,
                              const uint8_t *offsets, int wide, int64_t n, const uint8_t *validity, int64_t bit) {
    for (int64_t i = 0; i < n; i++) {
        int64_t begin = lc_load_offset(offsets, wide, i), end = lc_load_offset(offsets, wide, i + 1);
        if (begin < 0 || end < begin || end > size) return LC_BAD_OFFSETS;
        if (validity && !lc_get_bit(validity, bit + i)) continue;
        lc_sketch_add(registers, precision, lc_sketch_value(data + begin, end - begin, size - begin));
    }
    return LC_OK;
}

#endif
