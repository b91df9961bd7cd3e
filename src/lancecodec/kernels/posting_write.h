/* Blocks of posting lists: documents and frequencies of 128 or 256 postings, packed in 4 or 8 lanes of 32 bits; the
 * rest of a list as varints, or as numbers of 32 bits. */
#ifndef LANCECODEC_POSTING_WRITE_H
#define LANCECODEC_POSTING_WRITE_H

#include "chunk.h"

#define LC_POSTING_PER_LANE 32
#define LC_POSTING_MOST_EXCEPTIONS 31
/* Bytes of the largest full block, and of the largest posting elsewhere. */
#define LC_POSTING_MOST_BLOCK (4 + 4 + 2 + 2 * 4 * 256 + 6 * LC_POSTING_MOST_EXCEPTIONS)
#define LC_POSTING_MOST_TAIL 10

typedef struct {
    uint8_t *data;
    int64_t size, room;
} lc_written;

LC_INLINE int lc_width32(uint32_t v) {
#if defined(__GNUC__) || defined(__clang__)
    return v ? 32 - __builtin_clz(v) : 0;
#else
    int width = 0;
    for (; v; v >>= 1) width++;
    return width;
#endif
}

LC_INLINE int lc_varint_width(uint32_t v) {
    return v < 1u << 7 ? 1 : v < 1u << 14 ? 2 : v < 1u << 21 ? 3 : v < 1u << 28 ? 4 : 5;
}

LC_INLINE uint8_t *lc_varint_put(uint8_t *p, uint32_t v) {
    for (; v >= 0x80; v >>= 7) *p++ = (uint8_t)(v | 0x80);
    *p++ = (uint8_t)v;
    return p;
}

/* Pack 32 values in each of the lanes; returns the end. */
LC_INLINE uint8_t *lc_lanes_pack(const uint32_t *values, int width, int lanes, uint8_t *out) {
    uint32_t words[33 * 8];
    uint32_t mask = (uint32_t)lc_low_mask(width);
    memset(words, 0, sizeof words);
    for (int i = 0; i < LC_POSTING_PER_LANE && width; i++) {
        int word = i * width / 32, shift = i * width % 32;
        for (int l = 0; l < lanes; l++) {
            uint64_t v = (uint64_t)(values[i * lanes + l] & mask) << shift;
            words[word * lanes + l] |= (uint32_t)v;
            words[(word + 1) * lanes + l] |= (uint32_t)(v >> 32);
        }
    }
    memcpy(out, words, (size_t)(4 * width * lanes));
    return out + 4 * width * lanes;
}

LC_CLONES static uint8_t *lc_lanes_pack_4(const uint32_t *values, int width, uint8_t *out) {
    return lc_lanes_pack(values, width, 4, out);
}

LC_CLONES static uint8_t *lc_lanes_pack_8(const uint32_t *values, int width, uint8_t *out) {
    return lc_lanes_pack(values, width, 8, out);
}

LC_INLINE int lc_most_width(const uint32_t *values, int64_t n) {
    uint32_t all = 0;
    for (int64_t i = 0; i < n; i++) all |= values[i];
    return lc_width32(all);
}

/* The width that makes a block of 256 smallest, exceptions included; the wider one wins a tie. */
static int lc_patched_width(const uint32_t *values) {
    int best = lc_most_width(values, 256), cost = 32 * best;
    for (int width = best - 1; width >= 0; width--) {
        int exceptions = 0, bytes = 32 * width;
        for (int i = 0; i < 256; i++) {
            uint32_t above = (uint32_t)((uint64_t)values[i] >> width);
            exceptions += above != 0;
            bytes += above ? 1 + lc_varint_width(above) : 0;
        }
        if (exceptions > LC_POSTING_MOST_EXCEPTIONS) break;
        if (bytes < cost) best = width, cost = bytes;
    }
    return best;
}

static uint8_t *lc_patched_put(const uint32_t *values, uint8_t *p) {
    int width = lc_patched_width(values);
    uint8_t *head = p;
    p = lc_lanes_pack_8(values, width, p + 2);
    head[0] = (uint8_t)width, head[1] = 0;
    for (int i = 0; i < 256; i++) {
        uint32_t above = (uint32_t)((uint64_t)values[i] >> width);
        if (!above) continue;
        head[1]++;
        *p++ = (uint8_t)i;
        p = lc_varint_put(p, above);
    }
    return p;
}

/* A full block of `size` postings, without its score. */
static uint8_t *lc_block_put(const uint32_t *documents, const uint32_t *frequencies, int size, uint8_t *p) {
    uint32_t steps[256];
    steps[0] = 0;
    for (int i = 1; i < size; i++) steps[i] = documents[i] - documents[i - 1];
    lc_store_u32(p, documents[0]);
    int width = lc_most_width(steps, size);
    p[4] = (uint8_t)width;
    if (size == 256) return lc_patched_put(frequencies, lc_lanes_pack_8(steps, width, p + 5));
    p = lc_lanes_pack_4(steps, width, p + 5);
    width = lc_most_width(frequencies, size);
    *p = (uint8_t)width;
    return lc_lanes_pack_4(frequencies, width, p + 1);
}

/* A block of fewer postings, without its score. */
static uint8_t *lc_tail_put(const uint32_t *documents, const uint32_t *frequencies, int64_t n, int fixed, uint8_t *p) {
    if (fixed) {
        memcpy(p, documents, (size_t)(4 * n));
        memcpy(p + 4 * n, frequencies, (size_t)(4 * n));
        return p + 8 * n;
    }
    uint32_t before = 0;
    for (int64_t i = 0; i < n; i++) p = lc_varint_put(p, documents[i] - before), before = documents[i];
    for (int64_t i = 0; i < n; i++) p = lc_varint_put(p, frequencies[i]);
    return p;
}

/* The distances of positions in a block: full groups of 128 packed, the others as varints. */
static int lc_steps_put(const uint32_t *steps, int64_t n, lc_written *out) {
    if (out->room - out->size < n / 128 * (1 + 512) + n % 128 * 5) return LC_NO_SPACE;
    uint8_t *p = out->data + out->size;
    for (; n >= 128; n -= 128, steps += 128) {
        int width = lc_most_width(steps, 128);
        *p = (uint8_t)width;
        p = lc_lanes_pack_4(steps, width, p + 1);
    }
    for (int64_t i = 0; i < n; i++) p = lc_varint_put(p, steps[i]);
    out->size = p - out->data;
    return LC_OK;
}

#endif
