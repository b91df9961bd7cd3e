/* Values that a bitmap keeps, moved by the instructions of AVX-512 that move the lanes of a mask together. */
#ifndef LANCECODEC_KEPT_LANES_H
#define LANCECODEC_KEPT_LANES_H

#include "portable.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(LC_ONE_VERSION)
#define LC_KEPT_LANES
#include <immintrin.h>

/* Up to this many values of a word are moved one by one. */
#define LC_LANES_FEW 6

#define LC_LANES_BASE "avx512f,avx512bw,avx512vl,popcnt"
#define LC_LANES_SMALL LC_LANES_BASE ",avx512vbmi2"

/* One word of 64 values; the caller has room for all of them. Returns the end of the output. */
#define LC_LANES_WORD(STEP, COMPRESS, MASK)                                                   \
    for (int k = 0; k < 64; k += STEP) {                                                      \
        uint64_t some = word >> k & (STEP == 64 ? ~0ULL : (1ULL << (STEP & 63)) - 1);          \
        __m512i v = _mm512_loadu_si512((const void *)(values + k * width));                   \
        _mm512_storeu_si512((void *)out, COMPRESS((MASK)(some), v));                          \
        out += width * _mm_popcnt_u64(some);                                                  \
    }

/* A bit for each half of four values of 16 bytes. */
LC_INLINE __mmask8 lc_lanes_halves(uint64_t some) {
    return (__mmask8)(0x03 * (some & 1) | 0x0C * (some >> 1 & 1) | 0x30 * (some >> 2 & 1) | 0xC0 * (some >> 3 & 1));
}

/* Whole words of values of `width` bytes, while the output has room for 64 more. Returns the number of values
 * passed; *moved of them were kept. */
#define LC_LANES_LOOP(WORD)                                                                   \
    const uint8_t *const first = out;                                                         \
    int64_t i = 0;                                                                            \
    for (; i + 64 <= n && room - (out - first) / width >= 64; i += 64) {                      \
        uint64_t word = lc_load_u64(bits + ((offset + i) >> 3));                              \
        int64_t shift = (offset + i) & 7;                                                     \
        if (shift) word = word >> shift | (uint64_t)bits[((offset + i) >> 3) + 8] << (64 - shift); \
        const uint8_t *const values = from + i * width;                                       \
        if (_mm_popcnt_u64(word) > LC_LANES_FEW) {                                            \
            WORD                                                                              \
        } else {                                                                              \
            for (; word; word &= word - 1, out += width)                                      \
                memcpy(out, values + __builtin_ctzll(word) * width, (size_t)width);           \
        }                                                                                     \
    }                                                                                         \
    *moved = (out - first) / width;                                                           \
    return i;

#define LC_LANES_DEFINE(TARGET, WIDTH, STEP, COMPRESS, MASK)                                                   \
    __attribute__((target(TARGET))) static int64_t lc_lanes_##WIDTH(const uint8_t *bits, int64_t offset,       \
                                                                    int64_t n, const uint8_t *from,            \
                                                                    int64_t room, uint8_t *out,                \
                                                                    int64_t *moved) {                          \
        const int64_t width = WIDTH;                                                                           \
        LC_LANES_LOOP(LC_LANES_WORD(STEP, COMPRESS, MASK))                                                     \
    }

LC_LANES_DEFINE(LC_LANES_SMALL, 1, 64, _mm512_maskz_compress_epi8, __mmask64)
LC_LANES_DEFINE(LC_LANES_SMALL, 2, 32, _mm512_maskz_compress_epi16, __mmask32)
LC_LANES_DEFINE(LC_LANES_BASE, 4, 16, _mm512_maskz_compress_epi32, __mmask16)
LC_LANES_DEFINE(LC_LANES_BASE, 8, 8, _mm512_maskz_compress_epi64, __mmask8)
LC_LANES_DEFINE(LC_LANES_BASE, 16, 4, _mm512_maskz_compress_epi64, lc_lanes_halves)

/* Move values as far as lanes can; 0 values if the processor cannot, or their width is another. */
static int64_t lc_lanes_move(const uint8_t *bits, int64_t offset, int64_t n, const uint8_t *from, int64_t width,
                             int64_t room, uint8_t *out, int64_t *moved) {
    *moved = 0;
    if (!__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512vl")) return 0;
    switch (width) {
        case 4: return lc_lanes_4(bits, offset, n, from, room, out, moved);
        case 8: return lc_lanes_8(bits, offset, n, from, room, out, moved);
        case 16: return lc_lanes_16(bits, offset, n, from, room, out, moved);
        case 1:
        case 2:
            if (!__builtin_cpu_supports("avx512vbmi2")) return 0;
            return width == 1 ? lc_lanes_1(bits, offset, n, from, room, out, moved)
                              : lc_lanes_2(bits, offset, n, from, room, out, moved);
        default: return 0;
    }
}
#endif

#endif
