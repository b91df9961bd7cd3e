/* XXH64 (Collet, "xxHash fast digest algorithm", https://github.com/Cyan4973/xxHash, doc/xxhash_spec.md). */
#ifndef LANCECODEC_XXH64_H
#define LANCECODEC_XXH64_H

#include "chunk.h"

#define LC_XXH_1 0x9E3779B185EBCA87ULL
#define LC_XXH_2 0xC2B2AE3D27D4EB4FULL
#define LC_XXH_3 0x165667B19E3779F9ULL
#define LC_XXH_4 0x85EBCA77C2B2AE63ULL
#define LC_XXH_5 0x27D4EB2F165667C5ULL

LC_INLINE uint64_t lc_rotate64(uint64_t v, int bits) { return (v << bits) | (v >> (64 - bits)); }

LC_INLINE uint64_t lc_xxh_round(uint64_t sum, uint64_t word) {
    return lc_rotate64(sum + word * LC_XXH_2, 31) * LC_XXH_1;
}

LC_INLINE uint64_t lc_xxh_add8(uint64_t h, uint64_t word) {
    return lc_rotate64(h ^ lc_xxh_round(0, word), 27) * LC_XXH_1 + LC_XXH_4;
}

LC_INLINE uint64_t lc_xxh_add4(uint64_t h, uint32_t word) {
    return lc_rotate64(h ^ word * LC_XXH_1, 23) * LC_XXH_2 + LC_XXH_3;
}

LC_INLINE uint64_t lc_xxh_add1(uint64_t h, uint8_t byte) { return lc_rotate64(h ^ byte * LC_XXH_5, 11) * LC_XXH_1; }

LC_INLINE uint64_t lc_xxh_finish(uint64_t h) {
    h = (h ^ (h >> 33)) * LC_XXH_2;
    h = (h ^ (h >> 29)) * LC_XXH_3;
    return h ^ (h >> 32);
}

/* The stripes of 32 bytes of a value that has at least one. */
static inline uint64_t lc_xxh_stripes(const uint8_t *p, int64_t stripes, uint64_t seed) {
    uint64_t sums[4] = {seed + LC_XXH_1 + LC_XXH_2, seed + LC_XXH_2, seed, seed - LC_XXH_1};
    for (; stripes > 0; stripes--, p += 32)
        for (int i = 0; i < 4; i++) sums[i] = lc_xxh_round(sums[i], lc_load_u64(p + 8 * i));
    uint64_t h = lc_rotate64(sums[0], 1) + lc_rotate64(sums[1], 7) + lc_rotate64(sums[2], 12) + lc_rotate64(sums[3], 18);
    for (int i = 0; i < 4; i++) h = (h ^ lc_xxh_round(0, sums[i])) * LC_XXH_1 + LC_XXH_4;
    return h;
}

LC_INLINE uint64_t lc_xxh64_seeded(const uint8_t *p, int64_t n, uint64_t seed) {
    const uint8_t *end = p + n;
    uint64_t h = (n >= 32 ? lc_xxh_stripes(p, n / 32, seed) : seed + LC_XXH_5) + (uint64_t)n;
    for (p += n & ~(int64_t)31; end - p >= 8; p += 8) h = lc_xxh_add8(h, lc_load_u64(p));
    if (end - p >= 4) h = lc_xxh_add4(h, lc_load_u32(p)), p += 4;
    for (; p < end; p++) h = lc_xxh_add1(h, lc_load_u8(p));
    return lc_xxh_finish(h);
}

LC_INLINE uint64_t lc_xxh64(const uint8_t *p, int64_t n) { return lc_xxh64_seeded(p, n, 0); }

LC_INLINE void lc_xxh_each(const uint8_t *values, int64_t width, int64_t n, uint8_t *hashes) {
    for (int64_t i = 0; i < n; i++) lc_store_u64(hashes + 8 * i, lc_xxh64(values + i * width, width));
}

/* Hashes of n values of `width` bytes. */
LC_CLONES
static void lc_xxh_fixed(const uint8_t *values, int64_t width, int64_t n, uint8_t *hashes) {
    switch (width) {
        case 1: lc_xxh_each(values, 1, n, hashes); break;
        case 2: lc_xxh_each(values, 2, n, hashes); break;
        case 4: lc_xxh_each(values, 4, n, hashes); break;
        case 8: lc_xxh_each(values, 8, n, hashes); break;
        default: lc_xxh_each(values, width, n, hashes);
    }
}

/* Hashes of n values of variable width. */
static inline int lc_xxh_variable(lc_bytes data, const uint8_t *offsets, int wide, int64_t n, uint8_t *hashes) {
    int64_t begin = lc_load_offset(offsets, wide, 0);
    if (begin < 0) return LC_BAD_OFFSETS;
    for (int64_t i = 0; i < n; i++) {
        int64_t end = lc_load_offset(offsets, wide, i + 1);
        if (end < begin || end > data.size) return LC_BAD_OFFSETS;
        lc_store_u64(hashes + 8 * i, lc_xxh64(data.data + begin, end - begin));
        begin = end;
    }
    return LC_OK;
}

#endif
