/* Byte-stream split: byte j of value i is at j * n + i, for values of 4 or 8 bytes. */
#ifndef LANCECODEC_SPLIT_H
#define LANCECODEC_SPLIT_H

#include "chunk.h"

LC_CLONES static inline void lc_split_join32(const uint8_t *LC_RESTRICT src, int64_t n, uint8_t *LC_RESTRICT out) {
    const uint8_t *a = src, *b = src + n, *c = src + 2 * n, *d = src + 3 * n;
    for (int64_t i = 0; i < n; i++)
        lc_store_u32(out + 4 * i, a[i] | (uint32_t)b[i] << 8 | (uint32_t)c[i] << 16 | (uint32_t)d[i] << 24);
}

LC_CLONES static inline void lc_split_join64(const uint8_t *LC_RESTRICT src, int64_t n, uint8_t *LC_RESTRICT out) {
    const uint8_t *a = src, *b = src + n, *c = src + 2 * n, *d = src + 3 * n;
    const uint8_t *e = src + 4 * n, *f = src + 5 * n, *g = src + 6 * n, *h = src + 7 * n;
    for (int64_t i = 0; i < n; i++) {
        uint32_t low = a[i] | (uint32_t)b[i] << 8 | (uint32_t)c[i] << 16 | (uint32_t)d[i] << 24;
        uint32_t high = e[i] | (uint32_t)f[i] << 8 | (uint32_t)g[i] << 16 | (uint32_t)h[i] << 24;
        lc_store_u64(out + 8 * i, low | (uint64_t)high << 32);
    }
}

LC_CLONES static inline void lc_split_apart32(const uint8_t *LC_RESTRICT values, int64_t n, uint8_t *LC_RESTRICT out) {
    for (int64_t i = 0; i < n; i++) {
        uint32_t v = lc_load_u32(values + 4 * i);
        out[i] = (uint8_t)v, out[n + i] = (uint8_t)(v >> 8);
        out[2 * n + i] = (uint8_t)(v >> 16), out[3 * n + i] = (uint8_t)(v >> 24);
    }
}

/* Process one stream after the other: a chunk stays in the first-level cache, and narrowing one stream vectorises,
 * while eight outputs at once do not. */
LC_CLONES static inline void lc_split_apart64(const uint8_t *LC_RESTRICT values, int64_t n, uint8_t *LC_RESTRICT out) {
    for (int64_t j = 0; j < 8; j++)
        for (int64_t i = 0; i < n; i++) out[j * n + i] = (uint8_t)(lc_load_u64(values + 8 * i) >> (8 * j));
}

LC_INLINE int lc_split_check(lc_bytes buffer, int64_t n, int64_t bits) {
    if (bits != 32 && bits != 64) return LC_BAD_WIDTH;
    int64_t width = bits / 8;
    return n < 0 || buffer.size % width || buffer.size / width != n ? LC_BAD_SIZE : LC_OK;
}

/* One mini-block chunk of n values. */
static inline int lc_split_chunk(const lc_bytes *buffers, int64_t n, int64_t bits, uint8_t *out) {
    int problem = lc_split_check(buffers[0], n, bits);
    if (problem) return problem;
    if (bits == 32) lc_split_join32(buffers[0].data, n, out);
    else lc_split_join64(buffers[0].data, n, out);
    return LC_OK;
}

static inline int lc_split_at(const lc_bytes *buffers, int64_t n, int64_t bits, const int64_t *at, int64_t count,
                              uint8_t *out) {
    int problem = lc_split_check(buffers[0], n, bits);
    if (problem) return problem;
    int64_t width = bits / 8;
    for (int64_t i = 0; i < count; i++)
        for (int64_t j = 0; j < width; j++) out[i * width + j] = buffers[0].data[j * n + at[i]];
    return LC_OK;
}

/* n values, already checked to be whole, in chunks of `chunk` values back to back. */
static inline void lc_split_page(const uint8_t *values, int64_t n, int64_t bits, int64_t chunk, uint8_t *out) {
    int64_t width = bits / 8;
    for (int64_t i = 0; i < n; i += chunk) {
        int64_t count = n - i < chunk ? n - i : chunk;
        if (bits == 32) lc_split_apart32(values + i * width, count, out + i * width);
        else lc_split_apart64(values + i * width, count, out + i * width);
    }
}

#endif
