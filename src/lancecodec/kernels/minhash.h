/* MinHash signatures of texts (Broder 1997) and the keys of their bands (locality-sensitive hashing).
 *
 * A shingle is a number of tokens that follow each other, with a byte between them. Function i of a shingle with the hash
 * x is a[i] * x + b[i]; a signature has the upper 16 bits of c[i] times the smallest of them. */
#ifndef LANCECODEC_MINHASH_H
#define LANCECODEC_MINHASH_H

#include <stdlib.h>

#include "xxh64.h"

#define LC_MINHASH_SEED 42
#define LC_SHINGLE_SEPARATOR 0x1F

typedef struct {
    int64_t hashes, shingle;
    const uint64_t *a, *b, *c;
} lc_minhash;

/* Distinct tokens between offsets of 64 bits. */
typedef struct {
    lc_bytes data;
    const uint8_t *offsets;
    int64_t count;
} lc_known_tokens;

/* The tokens of a text, each with a separator behind it. `starts` has one more number than there are tokens. */
typedef struct {
    uint8_t *text;
    int64_t *starts;
    int64_t room, starts_room;
    uint64_t *smallest;
} lc_minhash_scratch;

static inline uint64_t lc_splitmix64(uint64_t *state) {
    uint64_t z = (*state += 0x9E3779B97F4A7C15ULL);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
}

/* Coefficients of n functions: a and b in turns, then c. */
static inline void lc_minhash_coefficients(int64_t n, uint64_t *a, uint64_t *b, uint64_t *c) {
    uint64_t state = LC_MINHASH_SEED;
    for (int64_t i = 0; i < n; i++) a[i] = lc_splitmix64(&state) | 1, b[i] = lc_splitmix64(&state);
    for (int64_t i = 0; i < n; i++) c[i] = lc_splitmix64(&state) | 1;
}

LC_CLONES static void lc_minhash_add(const uint64_t *LC_RESTRICT a, const uint64_t *LC_RESTRICT b, int64_t n, uint64_t x,
                                     uint64_t *LC_RESTRICT smallest) {
    for (int64_t i = 0; i < n; i++) {
        uint64_t v = a[i] * x + b[i];
        smallest[i] = v < smallest[i] ? v : smallest[i];
    }
}

/* Make room; `size` bytes and `count` numbers at least. */
static int lc_minhash_room(lc_minhash_scratch *s, int64_t size, int64_t count) {
    if (size > s->room) {
        uint8_t *text = (uint8_t *)realloc(s->text, (size_t)(size + size / 2));
        if (!text) return LC_NO_MEMORY;
        s->text = text, s->room = size + size / 2;
    }
    if (count > s->starts_room) {
        int64_t *starts = (int64_t *)realloc(s->starts, (size_t)(count + count / 2) * sizeof *starts);
        if (!starts) return LC_NO_MEMORY;
        s->starts = starts, s->starts_room = count + count / 2;
    }
    return LC_OK;
}

/* Write the tokens of a text one after the other. */
static int lc_minhash_text(const lc_known_tokens *known, const uint8_t *codes, int64_t n, lc_minhash_scratch *s) {
    int64_t size = 0;
    int problem = lc_minhash_room(s, 1, n + 1);
    for (int64_t i = 0; i < n && !problem; i++) {
        uint32_t code = lc_once_u32(codes + 4 * i);
        if (code >= (uint64_t)known->count) return LC_BAD_INDEX;
        int64_t begin = lc_load_offset(known->offsets, 1, code), end = lc_load_offset(known->offsets, 1, code + 1LL);
        if (begin < 0 || end < begin || end > known->data.size) return LC_BAD_OFFSETS;
        problem = lc_minhash_room(s, size + end - begin + 1, 0);
        if (problem) break;
        s->starts[i] = size;
        lc_copy_bytes(s->text + size, known->data.data + begin, end - begin);
        size += end - begin;
        s->text[size++] = LC_SHINGLE_SEPARATOR;
    }
    if (!problem) s->starts[n] = size;
    return problem;
}

/* Signature of the text in the scratch, which has n > 0 tokens. */
static void lc_minhash_sign(const lc_minhash *m, const lc_minhash_scratch *s, int64_t n, uint8_t *out) {
    int64_t each = n < m->shingle ? n : m->shingle;
    memset(s->smallest, 0xFF, (size_t)m->hashes * 8);
    for (int64_t i = 0; i + each <= n; i++) {
        const uint8_t *p = s->text + s->starts[i];
        uint64_t x = lc_xxh64_seeded(p, s->starts[i + each] - 1 - s->starts[i], LC_MINHASH_SEED);
        lc_minhash_add(m->a, m->b, m->hashes, x, s->smallest);
    }
    for (int64_t i = 0; i < m->hashes; i++) lc_store_u16(out + 2 * i, (uint16_t)(m->c[i] * s->smallest[i] >> 48));
}

static void lc_minhash_free(lc_minhash_scratch *s) {
    free(s->text);
    free(s->starts);
    free(s->smallest);
}

/* Signatures of n texts with `total` tokens; `ends` are the numbers of tokens up to the end of each text. Those of texts
 * without tokens are 0. */
static inline int lc_minhash_signatures(const lc_minhash *m, const lc_known_tokens *known, const uint8_t *codes,
                                        int64_t total, const uint8_t *ends, int64_t n, uint8_t *out) {
    lc_minhash_scratch s = {0};
    int problem = LC_OK;
    s.smallest = (uint64_t *)malloc((size_t)m->hashes * 8 + 8);
    if (!s.smallest) problem = LC_NO_MEMORY;
    int64_t begin = 0;
    for (int64_t i = 0; i < n && !problem; i++, out += 2 * m->hashes) {
        int64_t end = (int64_t)lc_once_u64(ends + 8 * i);
        if (end < begin || end > total) problem = LC_BAD_OFFSETS;
        else if (end == begin) memset(out, 0, (size_t)m->hashes * 2);
        else problem = lc_minhash_text(known, codes + 4 * begin, end - begin, &s);
        if (!problem && end > begin) lc_minhash_sign(m, &s, end - begin, out);
        begin = end;
    }
    lc_minhash_free(&s);
    return problem;
}

/* Keys of the bands of n signatures: the number of the band, and 56 bits of the hash of its part of the signature. */
static inline void lc_minhash_bands(const uint8_t *signatures, int64_t n, int64_t hashes, int64_t bands, uint8_t *keys) {
    int64_t size = hashes / bands * 2;
    for (int64_t i = 0; i < n; i++)
        for (int64_t band = 0; band < bands; band++) {
            uint64_t hash = lc_xxh64_seeded(signatures + i * hashes * 2 + band * size, size, LC_MINHASH_SEED);
            lc_store_u64(keys + 8 * (i * bands + band), (uint64_t)band << 56 | (hash & lc_low_mask(56)));
        }
}

/* Numbers of equal positions of n signatures and another one. */
LC_CLONES static void lc_minhash_equal(const uint8_t *LC_RESTRICT signatures, int64_t n, int64_t hashes,
                                       const uint8_t *LC_RESTRICT other, uint8_t *LC_RESTRICT out) {
    for (int64_t i = 0; i < n; i++) {
        const uint8_t *p = signatures + i * hashes * 2;
        uint32_t equal = 0;
        for (int64_t k = 0; k < hashes; k++) equal += lc_load_u16(p + 2 * k) == lc_load_u16(other + 2 * k);
        lc_store_u32(out + 4 * i, equal);
    }
}

#endif
