/* FSST symbol tables from a sample of the strings, as published (P. Boncz, T. Neumann, V. Leis: FSST: Fast Random
 * Access String Compression, VLDB 2020): compress the sample with the table at hand, count symbols and pairs of
 * neighbours, and make the next table of the symbols and concatenations that would have saved most; a few rounds. */
#ifndef LANCECODEC_FSST_BUILD_H
#define LANCECODEC_FSST_BUILD_H

#include "fsst_encode.h"

#define LC_FSST_SAMPLE 16384
#define LC_FSST_PIECE 512 /* a longer string is sampled in pieces of this size */
#define LC_FSST_SAMPLE_MAX (LC_FSST_SAMPLE + LC_FSST_PIECE)
#define LC_FSST_PAIRS_MAX (2 * LC_FSST_SAMPLE_MAX)
#define LC_FSST_CANDIDATES_MAX (LC_FSST_PAIRS_MAX + 512)
#define LC_FSST_MAP (1 << 17)

typedef struct {
    uint64_t word;
    uint32_t gain, length;
} lc_fsst_candidate;

typedef struct {
    uint64_t words[LC_FSST_MAX_SYMBOLS];
    uint8_t lengths[LC_FSST_MAX_SYMBOLS];
    int count;
    int64_t size; /* of the compressed sample */
} lc_fsst_symbols;

/* Memory for the construction, about 1.8 MB. Everything is set before it is read except pair_counts, which starts as
 * zeros. Codes: 0-255 escaped bytes, 256 + k symbol k. */
typedef struct {
    lc_fsst_lookup lookup;
    lc_fsst_symbols symbols, best;
    uint32_t counts[512];
    uint16_t pair_counts[512 * 512];
    uint32_t pairs[LC_FSST_PAIRS_MAX]; /* those with a count */
    int64_t pairs_seen;
    lc_fsst_candidate candidates[LC_FSST_CANDIDATES_MAX];
    int64_t candidates_seen;
    uint32_t map[LC_FSST_MAP]; /* 1 + candidate, by hash */
    uint8_t sample[LC_FSST_SAMPLE_MAX];
    int64_t ends[LC_FSST_SAMPLE_MAX];
    int64_t pieces;
} lc_fsst_builder;

/* Next number of a fixed pseudo-random sequence (splitmix64). */
LC_INLINE uint64_t lc_fsst_random(uint64_t *state) {
    uint64_t z = (*state += 0x9E3779B97F4A7C15ULL);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
}

LC_INLINE int64_t lc_fsst_sample_add(lc_fsst_builder *b, const uint8_t *data, int64_t size, int64_t filled) {
    memcpy(b->sample + filled, data, (size_t)size);
    b->ends[b->pieces++] = filled + size;
    return filled + size;
}

/* Sample all strings if they are small together, else the strings around random bytes, a piece of a long one. */
static inline void lc_fsst_sample(lc_fsst_builder *b, const lc_fsst_job *job, int wide) {
    int64_t begin = lc_load_offset(job->offsets, wide, 0), end = lc_load_offset(job->offsets, wide, job->n);
    int64_t filled = 0;
    uint64_t state = 0;
    b->pieces = 0;
    for (int64_t i = 0; end - begin <= LC_FSST_SAMPLE && i < job->n; i++) {
        int64_t at = lc_load_offset(job->offsets, wide, i), stop = lc_load_offset(job->offsets, wide, i + 1);
        if (stop > at) filled = lc_fsst_sample_add(b, job->data + at, stop - at, filled);
    }
    while (end - begin > LC_FSST_SAMPLE && filled < LC_FSST_SAMPLE) {
        int64_t place = begin + (int64_t)(lc_fsst_random(&state) % (uint64_t)(end - begin));
        int64_t i = lc_fsst_string_at(job, wide, 0, job->n, place + 1) - 1;
        int64_t at = lc_load_offset(job->offsets, wide, i), stop = lc_load_offset(job->offsets, wide, i + 1);
        at += (place - at) / LC_FSST_PIECE * LC_FSST_PIECE;
        if (stop - at > LC_FSST_PIECE) stop = at + LC_FSST_PIECE;
        filled = lc_fsst_sample_add(b, job->data + at, stop - at, filled);
    }
}

LC_INLINE void lc_fsst_count_pair(lc_fsst_builder *b, int left, int right) {
    uint32_t pair = (uint32_t)(left << 9 | right);
    if (!b->pair_counts[pair]++) b->pairs[b->pairs_seen++] = pair;
}

/* Compress the sample and count codes, and pairs if requested. The first byte of a longer symbol is counted too, so
 * that shorter symbols are not ruled out. */
static inline void lc_fsst_count(lc_fsst_builder *b, int pairs) {
    const uint8_t *p = b->sample;
    memset(b->counts, 0, sizeof b->counts);
    b->symbols.size = 0;
    for (int64_t i = 0; i < b->pieces; i++) {
        const uint8_t *end = b->sample + b->ends[i];
        for (int left = -1; p < end;) {
            uint64_t word = lc_fsst_load_word(p, b->sample + LC_FSST_SAMPLE_MAX - p);
            uint16_t action = lc_fsst_action(&b->lookup, word, end - p);
            int code = lc_fsst_action_code(action), length = lc_fsst_action_length(action);
            b->symbols.size += 1 + lc_fsst_action_escapes(action);
            b->counts[code]++;
            if (length > 1) b->counts[*p]++;
            if (pairs && left >= 0) {
                lc_fsst_count_pair(b, left, code);
                if (length > 1) lc_fsst_count_pair(b, left, *p);
            }
            left = code;
            p += length;
        }
    }
}

/* Add to the gain of a candidate, which may be new. */
static inline void lc_fsst_propose(lc_fsst_builder *b, uint64_t word, int length, uint32_t gain) {
    uint64_t h = ((word + (uint64_t)length) * 0x9E3779B97F4A7C15ULL) >> 47;
    for (; b->map[h]; h = (h + 1) & (LC_FSST_MAP - 1)) {
        lc_fsst_candidate *known = &b->candidates[b->map[h] - 1];
        if (known->word == word && known->length == (uint32_t)length) {
            known->gain += gain;
            return;
        }
    }
    lc_fsst_candidate fresh = {word, gain, (uint32_t)length};
    b->candidates[b->candidates_seen++] = fresh;
    b->map[h] = (uint32_t)b->candidates_seen;
}

LC_INLINE uint64_t lc_fsst_code_word(const lc_fsst_symbols *symbols, int code, int *length) {
    *length = code < 256 ? 1 : symbols->lengths[code - 256];
    return code < 256 ? (uint64_t)code : symbols->words[code - 256];
}

/* Candidates: counted symbols, and counted pairs as one symbol; not those seen less than `least` times. */
static inline void lc_fsst_propose_all(lc_fsst_builder *b, uint32_t least) {
    int left_length, right_length;
    memset(b->map, 0, sizeof b->map);
    b->candidates_seen = 0;
    for (int code = 0; code < 512; code++) {
        if (!b->counts[code] || b->counts[code] < least) continue;
        uint64_t word = lc_fsst_code_word(&b->symbols, code, &left_length);
        /* without a symbol, a byte costs twice as much as with one, so its gain is larger than its length */
        lc_fsst_propose(b, word, left_length, b->counts[code] * (uint32_t)(left_length == 1 ? 8 : left_length));
    }
    for (int64_t i = 0; i < b->pairs_seen; i++) {
        uint32_t pair = b->pairs[i], count = b->pair_counts[pair];
        b->pair_counts[pair] = 0;
        uint64_t left = lc_fsst_code_word(&b->symbols, (int)(pair >> 9), &left_length);
        uint64_t right = lc_fsst_code_word(&b->symbols, (int)(pair & 511), &right_length);
        if (count < least || left_length == 8) continue;
        int length = left_length + right_length < 8 ? left_length + right_length : 8;
        lc_fsst_propose(b, left | right << (8 * left_length), length, count * (uint32_t)length);
    }
    b->pairs_seen = 0;
}

/* Ties are ordered too, so that the table depends only on the strings. */
LC_INLINE int lc_fsst_better(const lc_fsst_candidate *a, const lc_fsst_candidate *b) {
    if (a->gain != b->gain) return a->gain > b->gain;
    return a->word != b->word ? a->word < b->word : a->length < b->length;
}

/* Restore the heap order at heap[i], if everything below it is in order. */
static inline void lc_fsst_sift(lc_fsst_candidate *heap, int64_t n, int64_t i) {
    lc_fsst_candidate moved = heap[i];
    for (int64_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && lc_fsst_better(&heap[child + 1], &heap[child])) child++;
        if (!lc_fsst_better(&heap[child], &moved)) break;
        heap[i] = heap[child];
    }
    heap[i] = moved;
}

/* Make the next table: the best candidates for which the lookup has room. */
static inline void lc_fsst_choose(lc_fsst_builder *b) {
    lc_fsst_candidate *heap = b->candidates;
    int64_t n = b->candidates_seen;
    lc_fsst_lookup_clear(&b->lookup, 1);
    b->symbols.count = 0;
    for (int64_t i = n / 2 - 1; i >= 0; i--) lc_fsst_sift(heap, n, i);
    while (n > 0 && b->symbols.count < LC_FSST_MAX_SYMBOLS) {
        lc_fsst_candidate top = heap[0];
        heap[0] = heap[--n];
        if (n) lc_fsst_sift(heap, n, 0);
        if (!lc_fsst_lookup_add(&b->lookup, top.word, (int)top.length, 256 + b->symbols.count)) continue;
        b->symbols.words[b->symbols.count] = top.word;
        b->symbols.lengths[b->symbols.count++] = (uint8_t)top.length;
    }
}

LC_INLINE void lc_fsst_keep_best(lc_fsst_builder *b) {
    if (b->symbols.size <= b->best.size) b->best = b->symbols;
}

/* Build a table for the strings of the job, whose offsets have been checked: b->best, and its size of the sample of
 * *sampled bytes. Without any bytes it is empty. `b` was allocated as zeros. */
static inline void lc_fsst_build(lc_fsst_builder *b, const lc_fsst_job *job, int wide, int64_t *sampled) {
    static const uint32_t fractions[] = {8, 38, 68, 98, 108, 128};
    b->pairs_seen = 0;
    b->symbols.count = b->best.count = 0;
    b->best.size = 0;
    lc_fsst_sample(b, job, wide);
    *sampled = b->pieces ? b->ends[b->pieces - 1] : 0;
    if (!b->pieces) return;
    lc_fsst_lookup_clear(&b->lookup, 1);
    b->best.size = 2 * *sampled;
    for (int64_t round = 0; round < 6; round++) {
        lc_fsst_count(b, fractions[round] < 128);
        lc_fsst_keep_best(b);
        lc_fsst_propose_all(b, 5 * fractions[round] / 128);
        lc_fsst_choose(b);
    }
    lc_fsst_count(b, 0);
    lc_fsst_keep_best(b);
}
#endif
