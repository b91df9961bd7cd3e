/* n copies of one value of any width. */
#ifndef LANCECODEC_CONSTANT_H
#define LANCECODEC_CONSTANT_H

#include "bits.h"
#include "rle.h"

#define LC_CONSTANT_BLOCK 4096

LC_CLONES static inline void lc_constant_words(uint64_t pattern, int64_t words, uint8_t *out) {
    for (int64_t i = 0; i < words; i++) lc_store_u64(out + 8 * i, pattern);
}

/* n values of `width` bytes each. */
static inline void lc_constant_fill(const uint8_t *LC_RESTRICT value, int64_t width, int64_t n,
                                    uint8_t *LC_RESTRICT out) {
    int64_t size = n * width;
    if (n <= 0) return;
    if (width == 1) {
        memset(out, value[0], (size_t)n);
    } else if (width == 2 || width == 4 || width == 8) {
        uint64_t pattern = lc_repeated(value, (int)width);
        lc_constant_words(pattern, size >> 3, out);
        for (int64_t k = size & ~(int64_t)7; k < size; k += width) memcpy(out + k, value, (size_t)width);
    } else {
        /* doubled up to a block that stays in the first-level cache, which is then copied repeatedly */
        int64_t done = width;
        memcpy(out, value, (size_t)width);
        while (done < size && done < LC_CONSTANT_BLOCK) {
            int64_t more = done < size - done ? done : size - done;
            memcpy(out + done, out, (size_t)more);
            done += more;
        }
        for (int64_t block = done; done < size; done += block)
            memcpy(out + done, out, (size_t)(block < size - done ? block : size - done));
    }
}

/* Write n values of `bits` bits from bit `at` of out on; other bits are preserved. */
static inline void lc_constant_fill_bits(const uint8_t *value, int64_t bits, int64_t n, uint8_t *out, int64_t at) {
    uint8_t block[LC_CONSTANT_BLOCK];
    if (n <= 0) return;
    if (bits == 1) {
        lc_bits_fill(out, at, n, value[0] & 1);
        return;
    }
    int64_t some = 8 * LC_CONSTANT_BLOCK / bits;
    if (some < 2 || n < 2) {
        for (int64_t i = 0; i < n; i++) lc_bits_copy(value, 0, bits, out, at + i * bits);
        return;
    }
    if (some > n) some = n;
    for (int64_t i = 0; i < some; i++) lc_bits_copy(value, 0, bits, block, i * bits);
    for (int64_t i = 0; i < n; i += some) {
        int64_t count = n - i < some ? n - i : some;
        lc_bits_copy(block, 0, count * bits, out, at + i * bits);
    }
}

#endif
