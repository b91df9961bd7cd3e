/* Compiler differences.
 *
 * LC_CLONES marks a loop that is compiled once per instruction set and selected at load time, so that one wheel runs
 * fast everywhere. Kernels read and write little-endian values; the build rejects big-endian machines below. */
#ifndef LANCECODEC_PORTABLE_H
#define LANCECODEC_PORTABLE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#error "lancecodec kernels assume a little-endian machine"
#endif

#if defined(LC_ONE_VERSION) /* builds for checks, not for speed */
#define LC_CLONES
#elif defined(__x86_64__) && defined(__linux__) && defined(__GLIBC__) && \
    ((defined(__clang__) && __clang_major__ >= 14) || (!defined(__clang__) && defined(__GNUC__) && __GNUC__ >= 12))
#define LC_CLONES __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#elif defined(__x86_64__) && defined(__linux__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define LC_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define LC_CLONES
#endif

/* LC_INLINE is for loops that must be compiled separately for each constant argument. */
#if defined(_MSC_VER)
#define LC_RESTRICT __restrict
#define LC_INLINE static __forceinline
#else
#define LC_RESTRICT restrict
#define LC_INLINE static inline __attribute__((always_inline))
#endif

/* Ask for the bytes `distance` behind p, which need not be a valid address. */
#if defined(__GNUC__) || defined(__clang__)
#define LC_PREFETCH(p, distance) __builtin_prefetch((const void *)((uintptr_t)(p) + (uintptr_t)(distance)))
#else
#define LC_PREFETCH(p, distance) ((void)(p))
#endif

/* Memory of a mapped file may change between two loads, and a compiler may load a value again instead of keeping it.
 *
 * What is checked must be what is used. Either a value is loaded once: lc_once_* hide where it came from. Or whole blocks
 * are copied, and the copy is checked: LC_SETTLE(copy) ends what the compiler knows about its content. LC_OPAQUE hides
 * the origin of a number.
 *
 * Builds with LC_FLICKER check that: lc_flicker is called before every load, and may change the bytes. */
#if defined(__GNUC__) || defined(__clang__)
#define LC_OPAQUE(x) __asm__("" : "+r"(x))
#define LC_SETTLE(p) __asm__ volatile("" : : "r"(p) : "memory")
#else
#define LC_OPAQUE(x) (void)0
#define LC_SETTLE(p) (void)(p)
#endif
#if defined(LC_FLICKER)
static void lc_flicker(const void *p, size_t size);
#define LC_TOUCH(p, size) lc_flicker(p, size)
#else
#define LC_TOUCH(p, size) (void)0
#endif
#if defined(_MSC_VER)
#define LC_LOAD_ONCE(TYPE, p, v) ((v) = *(const volatile TYPE __unaligned *)(p))
#else
#define LC_LOAD_ONCE(TYPE, p, v) (memcpy(&(v), p, sizeof(v)), (void)0)
#endif

/* Loads and stores at any address: old files place buffers at any position, and callers may slice anywhere. */
#define LC_DEFINE_ACCESS(NAME, TYPE)                                     \
    LC_INLINE TYPE lc_load_##NAME(const uint8_t *p) {                    \
        TYPE v;                                                          \
        LC_TOUCH(p, sizeof v);                                           \
        memcpy(&v, p, sizeof v);                                         \
        return v;                                                        \
    }                                                                    \
    LC_INLINE TYPE lc_once_##NAME(const uint8_t *p) {                    \
        TYPE v;                                                          \
        LC_TOUCH(p, sizeof v);                                           \
        LC_LOAD_ONCE(TYPE, p, v);                                        \
        LC_OPAQUE(v);                                                    \
        return v;                                                        \
    }                                                                    \
    LC_INLINE void lc_store_##NAME(uint8_t *p, TYPE v) { memcpy(p, &v, sizeof v); }

LC_DEFINE_ACCESS(u8, uint8_t)
LC_DEFINE_ACCESS(u16, uint16_t)
LC_DEFINE_ACCESS(u32, uint32_t)
LC_DEFINE_ACCESS(u64, uint64_t)

/* Entry i of 32-bit, or wide 64-bit, Arrow offsets; loaded once. */
LC_INLINE int64_t lc_load_offset(const uint8_t *offsets, int wide, int64_t i) {
    return wide ? (int64_t)lc_once_u64(offsets + 8 * i) : (int64_t)(int32_t)lc_once_u32(offsets + 4 * i);
}

LC_INLINE void lc_store_offset(uint8_t *offsets, int wide, int64_t i, int64_t value) {
    if (wide) lc_store_u64(offsets + 8 * i, (uint64_t)value);
    else lc_store_u32(offsets + 4 * i, (uint32_t)value);
}

/* memcpy for values of a few bytes, for which a call would cost more than the copy. */
LC_INLINE void lc_copy_bytes(uint8_t *out, const uint8_t *src, int64_t n) {
    if (n > 32) {
        memcpy(out, src, (size_t)n);
    } else if (n > 16) {
        uint64_t a = lc_load_u64(src), b = lc_load_u64(src + 8);
        uint64_t c = lc_load_u64(src + n - 16), d = lc_load_u64(src + n - 8);
        lc_store_u64(out, a), lc_store_u64(out + 8, b);
        lc_store_u64(out + n - 16, c), lc_store_u64(out + n - 8, d);
    } else if (n >= 8) {
        uint64_t a = lc_load_u64(src), b = lc_load_u64(src + n - 8);
        lc_store_u64(out, a), lc_store_u64(out + n - 8, b);
    } else if (n >= 4) {
        uint32_t a = lc_load_u32(src), b = lc_load_u32(src + n - 4);
        lc_store_u32(out, a), lc_store_u32(out + n - 4, b);
    } else {
        for (int64_t i = 0; i < n; i++) out[i] = src[i];
    }
}

/* The lowest n bits, n = 0..64. */
LC_INLINE uint64_t lc_low_mask(int64_t n) { return n >= 64 ? ~0ULL : ((uint64_t)1 << n) - 1; }

LC_INLINE int lc_get_bit(const uint8_t *bits, int64_t i) {
    LC_TOUCH(bits + (i >> 3), 1);
    return (bits[i >> 3] >> (i & 7)) & 1;
}

LC_INLINE int lc_popcount64(uint64_t v) {
#if defined(__GNUC__) || defined(__clang__)
    return __builtin_popcountll(v);
#else
    v = v - ((v >> 1) & 0x5555555555555555ULL);
    v = (v & 0x3333333333333333ULL) + ((v >> 2) & 0x3333333333333333ULL);
    return (int)((((v + (v >> 4)) & 0x0F0F0F0F0F0F0F0FULL) * 0x0101010101010101ULL) >> 56);
#endif
}

#endif
