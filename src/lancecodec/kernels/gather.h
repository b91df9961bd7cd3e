/* Gathers of fixed-width values. */
#ifndef LANCECODEC_GATHER_H
#define LANCECODEC_GATHER_H

#include "portable.h"

/* Indices checked and used at a time, so that the second look at them finds them in the cache. */
#define LC_GATHER_BLOCK 2048

#define LC_COPY_CASE(W, LOAD, SIZE)                                                                             \
    case W:                                                                                                     \
        for (int64_t i = 0; i < n; i++) memcpy(out + (size_t)i * W, src + (size_t)LOAD(index + i * SIZE) * W, W); \
        break;

/* Largest of n unsigned values: one pass that bounds-checks a whole block of indices. */
#define LC_DEFINE_MAX(NAME, TYPE)                                                              \
    LC_CLONES static inline uint64_t lc_max_##NAME(const uint8_t *values, int64_t n) {         \
        TYPE top = 0;                                                                          \
        for (int64_t i = 0; i < n; i++) {                                                      \
            TYPE v = lc_load_##NAME(values + i * (int64_t)sizeof(TYPE));                       \
            top = v > top ? v : top;                                                           \
        }                                                                                      \
        return top;                                                                            \
    }

/* out[i] = src[index[i]] for values of `width` bytes; constant widths let the compiler use single moves. */
#define LC_DEFINE_BLOCK(NAME, TYPE)                                                                              \
    static inline void lc_gather_block_##NAME(const uint8_t *LC_RESTRICT src, int64_t width,                     \
                                              const uint8_t *LC_RESTRICT index, int64_t n,                       \
                                              uint8_t *LC_RESTRICT out) {                                        \
        switch (width) {                                                                                         \
            LC_COPY_CASE(1, lc_load_##NAME, (int64_t)sizeof(TYPE))                                               \
            LC_COPY_CASE(2, lc_load_##NAME, (int64_t)sizeof(TYPE))                                               \
            LC_COPY_CASE(4, lc_load_##NAME, (int64_t)sizeof(TYPE))                                               \
            LC_COPY_CASE(8, lc_load_##NAME, (int64_t)sizeof(TYPE))                                               \
            LC_COPY_CASE(16, lc_load_##NAME, (int64_t)sizeof(TYPE))                                              \
            LC_COPY_CASE(32, lc_load_##NAME, (int64_t)sizeof(TYPE))                                              \
            default:                                                                                             \
                for (int64_t i = 0; i < n; i++)                                                                  \
                    lc_copy_bytes(out + i * width,                                                               \
                                  src + (int64_t)lc_load_##NAME(index + i * (int64_t)sizeof(TYPE)) * width, width); \
        }                                                                                                        \
    }

/* The whole gather from `count` values; returns 0 and the offender in `bad` when an index is too large, else 1. */
#define LC_DEFINE_GATHER(NAME, TYPE)                                                                             \
    LC_DEFINE_MAX(NAME, TYPE)                                                                                    \
    LC_DEFINE_BLOCK(NAME, TYPE)                                                                                  \
    static inline int lc_gather_##NAME(const uint8_t *src, uint64_t count, int64_t width, const uint8_t *index,  \
                                       int64_t n, uint8_t *out, uint64_t *bad) {                                 \
        for (int64_t at = 0; at < n; at += LC_GATHER_BLOCK) {                                                    \
            int64_t size = n - at < LC_GATHER_BLOCK ? n - at : LC_GATHER_BLOCK;                                  \
            const uint8_t *block = index + at * (int64_t)sizeof(TYPE);                                           \
            *bad = lc_max_##NAME(block, size);                                                                   \
            if (*bad >= count) return 0;                                                                         \
            lc_gather_block_##NAME(src, width, block, size, out + at * width);                                   \
        }                                                                                                        \
        return 1;                                                                                                \
    }

LC_DEFINE_GATHER(u8, uint8_t)
LC_DEFINE_GATHER(u16, uint16_t)
LC_DEFINE_GATHER(u32, uint32_t)
LC_DEFINE_GATHER(u64, uint64_t)

#endif
