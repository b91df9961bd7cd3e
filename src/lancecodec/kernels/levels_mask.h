/* Streams of 16-bit levels, 64 entries at a time: comparisons become bit masks, so that the following steps cost time
 * per list or per null, and almost none per entry. A stream is bytes at any address; NULL stands for zeros. */
#ifndef LANCECODEC_LEVELS_MASK_H
#define LANCECODEC_LEVELS_MASK_H

#include "bits.h"

#if (defined(__SSE2__) || defined(_M_X64)) && !defined(LC_PORTABLE_ONLY)
#include <emmintrin.h>
#define LC_LEVELS_SSE2 1
#endif
#if defined(_MSC_VER)
#include <intrin.h>
#endif

LC_INLINE int lc_ctz64(uint64_t v) {
#if defined(_MSC_VER)
    unsigned long at;
    _BitScanForward64(&at, v);
    return (int)at;
#else
    return __builtin_ctzll(v);
#endif
}

/* Collect the bits at the set positions of `keep`. The work grows with the number of kept or of dropped bits, whichever
 * is smaller. */
LC_INLINE uint64_t lc_compress64(uint64_t bits, uint64_t keep, int64_t kept) {
    if (kept <= 32) {
        uint64_t out = 0;
        for (int64_t k = 0; keep; keep &= keep - 1, k++) out |= ((bits >> lc_ctz64(keep)) & 1) << k;
        return out;
    }
    int removed = 0;
    for (uint64_t drop = ~keep; drop; drop &= drop - 1, removed++) {
        uint64_t low = lc_low_mask(lc_ctz64(drop) - removed);
        bits = (bits & low) | ((bits >> 1) & ~low);
    }
    return bits & lc_low_mask(kept);
}

LC_INLINE uint16_t lc_level(const uint8_t *levels, int64_t i) { return lc_load_u16(levels + 2 * i); }

/* Bit i of the result: level i of 64 is at most `limit`. */
LC_INLINE uint64_t lc_mask_le(const uint8_t *levels, uint16_t limit) {
    uint64_t mask = 0;
#ifdef LC_LEVELS_SSE2
    const __m128i top = _mm_set1_epi16((short)limit), zero = _mm_setzero_si128();
    for (int k = 0; k < 4; k++) {
        __m128i a = _mm_loadu_si128((const __m128i *)(const void *)(levels + 32 * k));
        __m128i b = _mm_loadu_si128((const __m128i *)(const void *)(levels + 32 * k + 16));
        a = _mm_cmpeq_epi16(_mm_subs_epu16(a, top), zero);
        b = _mm_cmpeq_epi16(_mm_subs_epu16(b, top), zero);
        mask |= (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_packs_epi16(a, b)) << (16 * k);
    }
#else
    uint8_t flags[64];
    for (int64_t i = 0; i < 64; i++) flags[i] = (uint8_t)(lc_level(levels, i) <= limit);
    for (int64_t k = 0; k < 8; k++)
        mask |= ((lc_load_u64(flags + 8 * k) * 0x0102040810204080ULL) >> 56) << (8 * k);
#endif
    return mask;
}

/* Return 64 levels from entry i on, of which `live` (1..64) exist: a whole block in place, the last one in
 * `scratch`. */
LC_INLINE const uint8_t *lc_levels_block(const uint8_t *levels, int64_t i, int64_t live, uint8_t *scratch) {
    if (levels == NULL || live < 64) {
        memset(scratch, 0, 128);
        if (levels != NULL) memcpy(scratch, levels + 2 * i, (size_t)(2 * live));
        return scratch;
    }
    return levels + 2 * i;
}

/* Number of entries that are at most `limit`. */
LC_CLONES static inline int64_t lc_levels_count_le(const uint8_t *levels, int64_t n, uint16_t limit) {
    if (levels == NULL) return n;
    int64_t total = 0;
    for (int64_t i = 0; i < n; i += 16384) {
        int64_t stop = n - i < 16384 ? n : i + 16384;
        uint16_t some = 0;
        for (int64_t k = i; k < stop; k++) some = (uint16_t)(some + (lc_level(levels, k) <= limit));
        total += some;
    }
    return total;
}

LC_CLONES static inline uint16_t lc_levels_max(const uint8_t *levels, int64_t n) {
    uint16_t top = 0;
    if (levels == NULL) return 0;
    for (int64_t i = 0; i < n; i++) {
        uint16_t level = lc_level(levels, i);
        top = level > top ? level : top;
    }
    return top;
}

/* Entries whose level lies in [low, high]. */
LC_INLINE uint64_t lc_mask_between(const uint8_t *levels, uint16_t low, uint16_t high) {
    uint64_t mask = lc_mask_le(levels, high);
    return low ? mask & ~lc_mask_le(levels, (uint16_t)(low - 1)) : mask;
}

LC_INLINE int64_t lc_levels_count_between(const uint8_t *levels, int64_t n, uint16_t low, uint16_t high) {
    return lc_levels_count_le(levels, n, high) - (low ? lc_levels_count_le(levels, n, (uint16_t)(low - 1)) : 0);
}

/* Position of the k-th (from 0) entry at or after `from` whose level is in [low, high]; n if there are not enough. */
LC_CLONES static inline int64_t lc_levels_find(const uint8_t *levels, int64_t n, int64_t from, uint16_t low,
                                               uint16_t high, int64_t k) {
    uint8_t scratch[128];
    for (int64_t i = from; i < n; i += 64) {
        int64_t live = n - i < 64 ? n - i : 64;
        uint64_t mask = lc_mask_between(lc_levels_block(levels, i, live, scratch), low, high) & lc_low_mask(live);
        int64_t found = lc_popcount64(mask);
        if (k >= found) {
            k -= found;
            continue;
        }
        for (; k; k--) mask &= mask - 1;
        return i + lc_ctz64(mask);
    }
    return n;
}

#endif
