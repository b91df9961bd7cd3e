/* Gathers of fixed-width values: out[i] = entries[codes[i]], which includes the decoding of dictionaries. */
#ifndef LANCECODEC_GATHER_H
#define LANCECODEC_GATHER_H

#include "chunk.h"

/* Codes per block, so that they are still in the cache when they are used after the check. */
#define LC_GATHER_BLOCK 2048

LC_INLINE uint64_t lc_code_at(const uint8_t *codes, int64_t code_width, int64_t i) {
    return code_width == 1   ? codes[i]
           : code_width == 2 ? lc_load_u16(codes + 2 * i)
           : code_width == 4 ? lc_load_u32(codes + 4 * i)
                             : lc_load_u64(codes + 8 * i);
}

#define LC_MAX_CASE(W, TYPE, NAME)                                           \
    case W: {                                                                \
        TYPE top = 0;                                                        \
        for (int64_t i = 0; i < n; i++) {                                    \
            TYPE v = lc_load_##NAME(codes + i * W);                          \
            top = v > top ? v : top;                                         \
        }                                                                    \
        return top;                                                          \
    }

/* Largest of n codes: one pass that checks the bounds of a whole block. */
LC_CLONES static uint64_t lc_codes_max(const uint8_t *codes, int64_t code_width, int64_t n) {
    switch (code_width) {
        LC_MAX_CASE(1, uint8_t, u8)
        LC_MAX_CASE(2, uint16_t, u16)
        LC_MAX_CASE(4, uint32_t, u32)
        default:
        LC_MAX_CASE(8, uint64_t, u64)
    }
}

/* Copy n codes and return the largest. The copy is checked and used, because codes in a mapped file may change. */
static inline uint64_t lc_codes_take(const uint8_t *codes, int64_t code_width, int64_t n, uint8_t *out) {
    memcpy(out, codes, (size_t)(n * code_width));
    LC_SETTLE(out);
    return lc_codes_max(out, code_width, n);
}

/* Position of the first code of a valid slot that has no entry, or -1. */
static int64_t lc_codes_find_bad(const uint8_t *codes, int64_t code_width, int64_t n, uint64_t num_entries,
                                 const uint8_t *validity, int64_t bit) {
    for (int64_t i = 0; i < n; i++)
        if (lc_code_at(codes, code_width, i) >= num_entries && (!validity || lc_get_bit(validity, bit + i))) return i;
    return -1;
}

/* Collect 8 one-byte or 4 two-byte entries into a word of output: the number of stores, not of loads, limits the
 * speed. */
LC_INLINE void lc_gather_words(const uint8_t *LC_RESTRICT entries, int64_t width, const uint8_t *LC_RESTRICT codes,
                               int64_t code_width, int64_t n, uint8_t *LC_RESTRICT out) {
    int64_t i = 0, step = 8 / width;
    for (; i + step <= n; i += step) {
        uint64_t word = 0;
        for (int64_t j = 0; j < step; j++) {
            const uint8_t *entry = entries + lc_code_at(codes, code_width, i + j) * (uint64_t)width;
            word |= (width == 1 ? (uint64_t)*entry : (uint64_t)lc_load_u16(entry)) << (8 * width * j);
        }
        lc_store_u64(out + i * width, word);
    }
    for (; i < n; i++)
        memcpy(out + i * width, entries + lc_code_at(codes, code_width, i) * (uint64_t)width, (size_t)width);
}

/* One move per value; `width` is a compile-time constant. */
LC_INLINE void lc_gather_moves(const uint8_t *LC_RESTRICT entries, int64_t width, const uint8_t *LC_RESTRICT codes,
                               int64_t code_width, int64_t n, uint8_t *LC_RESTRICT out) {
    for (int64_t i = 0; i < n; i++)
        memcpy(out + i * width, entries + lc_code_at(codes, code_width, i) * (uint64_t)width, (size_t)width);
}

LC_INLINE void lc_gather_width(const uint8_t *entries, int64_t width, const uint8_t *codes, int64_t code_width,
                               int64_t n, uint8_t *out) {
    switch (width) {
        case 1: lc_gather_words(entries, 1, codes, code_width, n, out); break;
        case 2: lc_gather_words(entries, 2, codes, code_width, n, out); break;
        case 4: lc_gather_moves(entries, 4, codes, code_width, n, out); break;
        case 8: lc_gather_moves(entries, 8, codes, code_width, n, out); break;
        case 16: lc_gather_moves(entries, 16, codes, code_width, n, out); break;
        case 32: lc_gather_moves(entries, 32, codes, code_width, n, out); break;
        default:
            for (int64_t i = 0; i < n; i++)
                lc_copy_bytes(out + i * width, entries + lc_code_at(codes, code_width, i) * (uint64_t)width, width);
    }
}

/* Precondition: every code has an entry. */
LC_CLONES static void lc_gather_block(const uint8_t *entries, int64_t width, const uint8_t *codes, int64_t code_width,
                                      int64_t n, uint8_t *out) {
    switch (code_width) {
        case 1: lc_gather_width(entries, width, codes, 1, n, out); break;
        case 2: lc_gather_width(entries, width, codes, 2, n, out); break;
        case 4: lc_gather_width(entries, width, codes, 4, n, out); break;
        default: lc_gather_width(entries, width, codes, 8, n, out);
    }
}

/* Gather a block of codes to `out`, with 0 for a null whose code has no entry. LC_BAD_INDEX if a valid value has no
 * entry. */
static int lc_codes_block(const uint8_t *codes, int64_t code_width, int64_t n, int64_t num_entries,
                          const uint8_t *validity, int64_t bit, uint8_t *out) {
    if (lc_codes_take(codes, code_width, n, out) < (uint64_t)num_entries) return LC_OK;
    if (!validity || lc_codes_find_bad(out, code_width, n, (uint64_t)num_entries, validity, bit) >= 0)
        return LC_BAD_INDEX;
    for (int64_t i = 0; i < n; i++)
        if (lc_code_at(out, code_width, i) >= (uint64_t)num_entries)
            memset(out + i * code_width, 0, (size_t)code_width);
    return LC_OK;
}

/* Gather n values of `width` bytes. With a validity (bitmap from `bit` on, or NULL) a null may have any code: one
 * without an entry counts as 0, or as zero bytes if there are no entries. The caller has checked the sizes of codes,
 * validity and out, and that `entries` has num_entries values. */
static int lc_gather_fixed_nulls(const uint8_t *entries, int64_t num_entries, int64_t width, const uint8_t *codes,
                                 int64_t code_width, int64_t n, const uint8_t *validity, int64_t bit, uint8_t *out) {
    uint8_t scratch[8 * LC_GATHER_BLOCK];
    for (int64_t at = 0; at < n; at += LC_GATHER_BLOCK) {
        int64_t size = n - at < LC_GATHER_BLOCK ? n - at : LC_GATHER_BLOCK;
        if (lc_codes_block(codes + at * code_width, code_width, size, num_entries, validity, bit + at, scratch))
            return LC_BAD_INDEX;
        if (num_entries) lc_gather_block(entries, width, scratch, code_width, size, out + at * width);
        else memset(out + at * width, 0, (size_t)(size * width));
    }
    return LC_OK;
}

static inline int lc_gather_fixed(const uint8_t *entries, int64_t num_entries, int64_t width, const uint8_t *codes,
                                  int64_t code_width, int64_t n, uint8_t *out) {
    return lc_gather_fixed_nulls(entries, num_entries, width, codes, code_width, n, NULL, 0, out);
}

/* For one type of codes: returns 0 and an invalid code in `bad` if it is not below `count`, else 1. */
#define LC_DEFINE_GATHER(NAME, WIDTH)                                                                              \
    static inline int lc_gather_##NAME(const uint8_t *src, uint64_t count, int64_t width, const uint8_t *index,    \
                                       int64_t n, uint8_t *out, uint64_t *bad) {                                   \
        int64_t entries = count > INT64_MAX ? INT64_MAX : (int64_t)count;                                          \
        if (lc_gather_fixed(src, entries, width, index, WIDTH, n, out) == LC_OK) return 1;                         \
        *bad = lc_code_at(index, WIDTH, lc_codes_find_bad(index, WIDTH, n, (uint64_t)entries, NULL, 0));           \
        return 0;                                                                                                  \
    }                                                                                                              \
    static inline void lc_gather_block_##NAME(const uint8_t *src, int64_t width, const uint8_t *index, int64_t n,  \
                                              uint8_t *out) {                                                      \
        lc_gather_block(src, width, index, WIDTH, n, out);                                                         \
    }

LC_DEFINE_GATHER(u8, 1)
LC_DEFINE_GATHER(u16, 2)
LC_DEFINE_GATHER(u32, 4)
LC_DEFINE_GATHER(u64, 8)

#endif
