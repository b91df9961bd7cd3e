/* Split-block Bloom filters (Putze, Sanders, Singler, "Cache-, hash- and space-efficient Bloom filters", 2007) as in
 * Parquet: blocks of 8 words of 32 bits. The upper half of a hash chooses a block, the lower one a bit of each word. */
#ifndef LANCECODEC_BLOOM_H
#define LANCECODEC_BLOOM_H

#include "chunk.h"

#define LC_BLOOM_BLOCK 32

static const uint32_t LC_BLOOM_SALT[8] = {0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D,
                                          0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31};

/* A filter has at least one block, all are whole, and their number times a half of a hash fits into 64 bits. */
LC_INLINE int lc_bloom_fits(int64_t size) {
    return size > 0 && size % LC_BLOOM_BLOCK == 0 && size / LC_BLOOM_BLOCK <= UINT32_MAX;
}

LC_INLINE int64_t lc_bloom_place(uint64_t hash, uint64_t blocks) {
    return LC_BLOOM_BLOCK * (int64_t)(((hash >> 32) * blocks) >> 32);
}

LC_INLINE uint32_t lc_bloom_bit(uint64_t hash, int word) {
    return (uint32_t)1 << (((uint32_t)hash * LC_BLOOM_SALT[word]) >> 27);
}

LC_INLINE void lc_bloom_add(uint8_t *filter, uint64_t blocks, uint64_t hash) {
    uint8_t *block = filter + lc_bloom_place(hash, blocks);
    for (int i = 0; i < 8; i++) lc_store_u32(block + 4 * i, lc_load_u32(block + 4 * i) | lc_bloom_bit(hash, i));
}

LC_INLINE int lc_bloom_has(const uint8_t *filter, uint64_t blocks, uint64_t hash) {
    const uint8_t *block = filter + lc_bloom_place(hash, blocks);
    uint32_t missing = 0;
    for (int i = 0; i < 8; i++) missing |= lc_bloom_bit(hash, i) & ~lc_load_u32(block + 4 * i);
    return !missing;
}

/* Add hashes to `filters`, each of `size` bytes. Those up to stops[i] belong to filter i; the rest is left out. */
LC_CLONES
static int lc_bloom_insert(const uint8_t *hashes, int64_t n, const int64_t *stops, int64_t filters, int64_t size,
                           uint8_t *out) {
    int64_t at = 0;
    uint64_t blocks = (uint64_t)size / LC_BLOOM_BLOCK;
    for (int64_t i = 0; i < filters; i++) {
        int64_t stop = stops[i];
        if (stop < at || stop > n) return LC_BAD_OFFSETS;
        for (; at < stop; at++) lc_bloom_add(out + i * size, blocks, lc_load_u64(hashes + 8 * at));
    }
    return LC_OK;
}

/* Note for each of n filters, of any sizes, whether it may have one of some hashes. */
LC_CLONES
static int lc_bloom_probe(lc_bytes data, const uint8_t *offsets, int wide, int64_t n, const uint8_t *hashes,
                          int64_t count, uint8_t *out) {
    int64_t begin = lc_load_offset(offsets, wide, 0);
    if (begin < 0) return LC_BAD_OFFSETS;
    for (int64_t i = 0; i < n; i++) {
        int64_t end = lc_load_offset(offsets, wide, i + 1), at = 0;
        if (end < begin || end > data.size) return LC_BAD_OFFSETS;
        if (!lc_bloom_fits(end - begin)) return LC_BAD_SIZE;
        uint64_t blocks = (uint64_t)(end - begin) / LC_BLOOM_BLOCK;
        while (at < count && !lc_bloom_has(data.data + begin, blocks, lc_load_u64(hashes + 8 * at))) at++;
        out[i] = at < count;
        begin = end;
    }
    return LC_OK;
}

#endif
