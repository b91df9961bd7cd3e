/* Hashes of words and byte strings by folded 64 x 64 -> 128 bit multiplication.
 *
 * The scheme is that of wyhash (Wang Yi): both halves of the product of two words, each xor-ed with a secret, are
 * combined. Values that collide cannot be chosen without knowing the secrets. */
#ifndef LANCECODEC_HASH_H
#define LANCECODEC_HASH_H

#include "portable.h"

#if defined(_MSC_VER) && defined(_M_X64)
#include <intrin.h>
#endif

typedef struct {
    uint64_t a, b;
} lc_secret;

/* Fixed secrets for sketches, which must hash the same everywhere so that they can be merged: digits of pi. */
static const lc_secret LC_SKETCH_SECRET = {0x243F6A8885A308D3ULL, 0x13198A2E03707345ULL};

/* Low and high half of a product. */
LC_INLINE uint64_t lc_multiply(uint64_t x, uint64_t y, uint64_t *high) {
#if defined(__SIZEOF_INT128__)
    unsigned __int128 product = (unsigned __int128)x * y;
    *high = (uint64_t)(product >> 64);
    return (uint64_t)product;
#elif defined(_MSC_VER) && defined(_M_X64)
    return _umul128(x, y, high);
#else
    uint64_t xl = (uint32_t)x, xh = x >> 32, yl = (uint32_t)y, yh = y >> 32;
    uint64_t ll = xl * yl, lh = xl * yh, hl = xh * yl, hh = xh * yh;
    uint64_t middle = (ll >> 32) + (uint32_t)lh + hl;
    *high = hh + (lh >> 32) + (middle >> 32);
    return (middle << 32) | (uint32_t)ll;
#endif
}

/* High and low half of a product, xor-ed. */
LC_INLINE uint64_t lc_fold(uint64_t x, uint64_t y) {
    uint64_t high, low = lc_multiply(x, y, &high);
    return low ^ high;
}

/* Sufficient to choose a slot of a table. If every bit must be well distributed, another round is needed. */
LC_INLINE uint64_t lc_hash_word(lc_secret secret, uint64_t word) { return lc_fold(word ^ secret.a, secret.b); }

LC_INLINE uint64_t lc_hash_pair(lc_secret secret, uint64_t low, uint64_t high) {
    return lc_fold(low ^ secret.a, high ^ secret.b);
}

/* More than 16 bytes: 16 at a time; the last 16 may overlap the previous ones. */
LC_INLINE uint64_t lc_hash_bytes(lc_secret secret, const uint8_t *p, int64_t n) {
    uint64_t h = secret.a ^ (uint64_t)n;
    const uint8_t *last = p + n - 16;
    for (; p < last; p += 16) h = lc_fold(lc_load_u64(p) ^ secret.b, lc_load_u64(p + 8) ^ h);
    return lc_fold(lc_load_u64(last) ^ secret.b, lc_load_u64(last + 8) ^ h);
}

/* Bit masks of 0 ... 8 bytes. */
static const uint64_t LC_BYTES_MASK[9] = {0, 0xFF, 0xFFFF, 0xFFFFFF, 0xFFFFFFFF, 0xFFFFFFFFFF, 0xFFFFFFFFFFFF,
                                          0xFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF};

/* Load 0 ... 8 bytes as a word, zero-extended; bytes up to `readable` (counted from p) may be read. */
LC_INLINE uint64_t lc_load_short(const uint8_t *p, int64_t n, int64_t readable) {
    if (readable >= 8) return lc_load_u64(p) & LC_BYTES_MASK[n];
    uint64_t word = 0;
    for (int64_t i = 0; i < n; i++) word |= (uint64_t)p[i] << (8 * i);
    return word;
}

/* Load 0 ... 16 bytes as two words, zero-extended. */
LC_INLINE void lc_load_pair(const uint8_t *p, int64_t n, int64_t readable, uint64_t *low, uint64_t *high) {
    if (readable >= 16) {
        *low = lc_load_u64(p) & LC_BYTES_MASK[n < 8 ? n : 8];
        *high = lc_load_u64(p + 8) & LC_BYTES_MASK[n < 8 ? 0 : n - 8];
    } else {
        *low = lc_load_short(p, n < 8 ? n : 8, readable);
        *high = n > 8 ? lc_load_short(p + 8, n - 8, readable - 8) : 0;
    }
}

LC_INLINE uint64_t lc_differ16(const uint8_t *x, const uint8_t *y) {
    return (lc_load_u64(x) ^ lc_load_u64(y)) | (lc_load_u64(x + 8) ^ lc_load_u64(y + 8));
}

/* Return whether two strings of n > 16 bytes are equal. */
LC_INLINE int lc_equal_long(const uint8_t *x, const uint8_t *y, int64_t n) {
    uint64_t differ = lc_differ16(x, y) | lc_differ16(x + n - 16, y + n - 16);
    for (int64_t i = 16; i < n - 16 && !differ; i += 16) differ = lc_differ16(x + i, y + i);
    return !differ;
}

#endif
