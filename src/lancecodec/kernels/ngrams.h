/* Tokens of texts: numbers of windows of three letters or digits, and their rows sorted by token.
 *
 * A token is the number of its characters to the base 37: 1 to 10 for digits, 11 to 36 for letters. The reference
 * subtracts the first lower-case letter in eight bits, so the capital letters that folding leaves behind have other
 * numbers, some of them above 36. */
#ifndef LANCECODEC_NGRAMS_H
#define LANCECODEC_NGRAMS_H

#include "chunk.h"

#define LC_NGRAM_BASE 37
#define LC_NGRAM_NONE 0xFFFF
/* Numbers of tokens of texts in lower case, and of folded texts. */
#define LC_NGRAM_PLAIN (37 * 37 * 37)
#define LC_NGRAM_FOLDED (255 * (37 * 37 + 37 + 1) + 1)

typedef struct {
    const uint8_t *data;
    int64_t size;
    const uint8_t *offsets;
    int wide;
    int64_t count;
    int folded; /* texts are folded: capital letters are left as they are, other bytes separate */
} lc_ngram_texts;

/* Entries of tokens, and the texts that are left out because they have to be folded. */
typedef struct {
    uint32_t *tokens;
    uint32_t *rows;
    int64_t room;
    int64_t count;
    uint32_t *others;
    int64_t num_others;
} lc_ngram_entries;

static inline void lc_ngrams_values(int folded, uint16_t *values) {
    for (int c = 0; c < 256; c++) {
        if (c >= '0' && c <= '9') values[c] = (uint16_t)(c - '0' + 1);
        else if (c >= 'a' && c <= 'z') values[c] = (uint16_t)(c - 'a' + 11);
        else if (c >= 'A' && c <= 'Z') values[c] = folded ? (uint8_t)(c - 'a' + 11) : (uint16_t)(c - 'A' + 11);
        else values[c] = LC_NGRAM_NONE;
    }
}

/* Most entries of a text of some bytes. */
LC_INLINE int64_t lc_ngrams_most(int64_t size, int folded) {
    int64_t top = folded ? LC_NGRAM_FOLDED : LC_NGRAM_PLAIN;
    return size < 3 ? 0 : size - 2 < top ? size - 2 : top;
}

/* Room for the entries of all texts; -1 for bad offsets. One more entry is written, but not counted. */
static inline int64_t lc_ngrams_room(const lc_ngram_texts *texts) {
    int64_t room = 1, begin = lc_load_offset(texts->offsets, texts->wide, 0);
    if (begin < 0) return -1;
    for (int64_t i = 0; i < texts->count; i++) {
        int64_t end = lc_load_offset(texts->offsets, texts->wide, i + 1);
        if (end < begin || end > texts->size) return -1;
        room += lc_ngrams_most(end - begin, texts->folded);
        begin = end;
    }
    return room;
}

LC_INLINE int lc_ngrams_ascii(const uint8_t *p, int64_t n) {
    uint64_t bits = 0;
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) bits |= lc_load_u64(p + i);
    for (; i < n; i++) bits |= p[i];
    return (bits & 0x8080808080808080ULL) == 0;
}

/* Write the tokens of a text, each once: `seen` has the last mark of each token. */
LC_INLINE int64_t lc_ngrams_of(const uint8_t *p, int64_t n, const uint16_t *values, uint32_t mark, uint32_t *seen,
                               uint32_t *tokens) {
    int64_t found = 0;
    uint32_t first = 0, second = 0;
    int run = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t value = values[p[i]];
        run = value == LC_NGRAM_NONE ? 0 : run + (run < 3);
        if (run == 3) {
            uint32_t token = (first * LC_NGRAM_BASE + second) * LC_NGRAM_BASE + value;
            tokens[found] = token;
            found += seen[token] != mark;
            seen[token] = mark;
        }
        first = second;
        second = value;
    }
    return found;
}

/* Find the tokens of texts. `seen` has a place for each token, all 0. */
static inline int lc_ngrams_find(const lc_ngram_texts *texts, uint32_t *seen, lc_ngram_entries *out) {
    uint16_t values[256];
    lc_ngrams_values(texts->folded, values);
    out->count = out->num_others = 0;
    int64_t begin = lc_load_offset(texts->offsets, texts->wide, 0);
    if (begin < 0) return LC_BAD_OFFSETS;
    for (int64_t i = 0; i < texts->count; i++) {
        int64_t end = lc_load_offset(texts->offsets, texts->wide, i + 1), size = end - begin;
        if (end < begin || end > texts->size) return LC_BAD_OFFSETS;
        if (!texts->folded && !lc_ngrams_ascii(texts->data + begin, size)) {
            out->others[out->num_others++] = (uint32_t)i;
        } else {
            if (lc_ngrams_most(size, texts->folded) + 1 > out->room - out->count) return LC_NO_SPACE;
            int64_t found = lc_ngrams_of(texts->data + begin, size, values, (uint32_t)i + 1, seen,
                                         out->tokens + out->count);
            for (int64_t k = 0; k < found; k++) out->rows[out->count + k] = (uint32_t)i;
            out->count += found;
        }
        begin = end;
    }
    return LC_OK;
}

/* Sort the ids of the rows of entries by token (counting sort), in the order of the entries for each. `ends` has one
 * place more than there are tokens: afterwards, those of token t are at ends[t] .. ends[t + 1]. */
static inline int lc_ngrams_group(const uint32_t *tokens, const uint32_t *rows, int64_t n, const uint64_t *ids,
                                  int64_t num_ids, int64_t *ends, int64_t num_tokens, uint64_t *out) {
    for (int64_t t = 0; t <= num_tokens; t++) ends[t] = 0;
    for (int64_t i = 0; i < n; i++) {
        if (tokens[i] >= num_tokens || rows[i] >= num_ids) return LC_BAD_INDEX;
        ends[tokens[i] + 1]++;
    }
    for (int64_t t = 0, total = 0; t < num_tokens; t++) {
        int64_t count = ends[t + 1];
        ends[t + 1] = total; /* start of the token, which its entries move to its end */
        total += count;
    }
    for (int64_t i = 0; i < n; i++) out[ends[tokens[i] + 1]++] = ids[rows[i]];
    return LC_OK;
}

#endif
