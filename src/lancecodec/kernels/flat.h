/* Flat values: n values of any number of bits, back to back. */
#ifndef LANCECODEC_FLAT_H
#define LANCECODEC_FLAT_H

#include "bits.h"
#include "chunk.h"

/* Size of n values in bytes, or -1 if it is too large for any buffer. */
LC_INLINE int64_t lc_flat_size(int64_t n, int64_t bits) {
    if (n < 0 || bits <= 0) return -1;
    if (n > (INT64_MAX - 7) / bits) return -1;
    return (n * bits + 7) >> 3;
}

LC_INLINE int lc_flat_check(lc_bytes buffer, int64_t n, int64_t bits) {
    if (bits <= 0) return LC_BAD_WIDTH;
    if (n < 0) return LC_BAD_COUNT;
    return buffer.size == lc_flat_size(n, bits) ? LC_OK : LC_BAD_SIZE;
}

static inline int lc_flat_chunk(const lc_bytes *buffers, int64_t n, int64_t bits, uint8_t *out) {
    int problem = lc_flat_check(buffers[0], n, bits);
    if (!problem && n) memcpy(out, buffers[0].data, (size_t)buffers[0].size);
    return problem;
}

/* The same to bit `at` of a longer bit string; other bits are preserved. */
static inline int lc_flat_chunk_bits(const lc_bytes *buffers, int64_t n, int64_t bits, uint8_t *out, int64_t at) {
    int problem = lc_flat_check(buffers[0], n, bits);
    if (!problem && n) lc_bits_copy(buffers[0].data, 0, n * bits, out, at);
    return problem;
}

LC_INLINE void lc_flat_gather(const uint8_t *LC_RESTRICT values, int64_t width, const int64_t *LC_RESTRICT at,
                              int64_t count, uint8_t *LC_RESTRICT out) {
    for (int64_t i = 0; i < count; i++) lc_copy_bytes(out + i * width, values + at[i] * width, width);
}

/* Values of whole bytes at positions below n. */
static inline int lc_flat_at(const lc_bytes *buffers, int64_t n, int64_t bits, const int64_t *at, int64_t count,
                             uint8_t *out) {
    const uint8_t *values = buffers[0].data;
    int problem = lc_flat_check(buffers[0], n, bits);
    if (problem) return problem;
    if (bits & 7) return LC_BAD_WIDTH;
    switch (bits >> 3) {
        case 1: lc_flat_gather(values, 1, at, count, out); break;
        case 2: lc_flat_gather(values, 2, at, count, out); break;
        case 4: lc_flat_gather(values, 4, at, count, out); break;
        case 8: lc_flat_gather(values, 8, at, count, out); break;
        case 16: lc_flat_gather(values, 16, at, count, out); break;
        default: lc_flat_gather(values, bits >> 3, at, count, out);
    }
    return LC_OK;
}

/* Gather values of any number of bits at positions below n to bit `to` of out; other bits are preserved. */
static inline int lc_flat_at_bits(const lc_bytes *buffers, int64_t n, int64_t bits, const int64_t *at, int64_t count,
                                  uint8_t *out, int64_t to) {
    const uint8_t *values = buffers[0].data;
    int problem = lc_flat_check(buffers[0], n, bits);
    if (problem) return problem;
    if (bits == 1) {
        uint8_t block[512];
        for (int64_t i = 0; i < count; i += 4096) {
            int64_t some = count - i < 4096 ? count - i : 4096;
            lc_bits_gather(values, n, at + i, some, block);
            lc_bits_copy(block, 0, some, out, to + i);
        }
        return LC_OK;
    }
    for (int64_t i = 0; i < count; i++)
        for (int64_t b = 0; b < bits; b++) lc_set_bit(out, to + i * bits + b, lc_get_bit(values, at[i] * bits + b));
    return LC_OK;
}

/* n values from bit `offset` of src in chunks of `chunk` values, each padded to whole bytes; ends[i] = its end. */
static inline void lc_flat_page(const uint8_t *src, int64_t offset, int64_t n, int64_t bits, int64_t chunk,
                                uint8_t *out, int64_t *ends) {
    int64_t end = 0, k = 0;
    for (int64_t i = 0; i < n; i += chunk, k++) {
        int64_t count = n - i < chunk ? n - i : chunk, size = lc_flat_size(count, bits), from = offset + i * bits;
        if (((count * bits) | from) & 7) {
            if (size) out[end + size - 1] = 0;
            lc_bits_copy(src, from, count * bits, out + end, 0);
        } else {
            memcpy(out + end, src + (from >> 3), (size_t)size);
        }
        ends[k] = end += size;
    }
}

/* Pack bytes (0 = false, else true), as the per-value layout stores booleans, into a bitmap from bit `at` on. */
static inline void lc_flat_bytes_to_bits(const uint8_t *values, int64_t n, uint8_t *out, int64_t at) {
    uint8_t block[512];
    if ((at & 7) == 0 && (n & 7) == 0) {
        lc_bits_pack(values, n, out + (at >> 3));
        return;
    }
    for (int64_t i = 0; i < n; i += 4096) {
        int64_t count = n - i < 4096 ? n - i : 4096;
        lc_bits_pack(values + i, count, block);
        lc_bits_copy(block, 0, count, out, at + i);
    }
}

#endif
