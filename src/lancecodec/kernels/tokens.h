/* Texts into tokens: runs of characters of an alphabet, n-grams of characters, or whole texts. */
#ifndef LANCECODEC_TOKENS_H
#define LANCECODEC_TOKENS_H

#include "token_table.h"
#include "utf8.h"

#define LC_CODE_POINTS 0x110000

/* A bit for each character; `kinds` of bytes: 1 for a character of the alphabet, 2 for the start of a longer character,
 * else 0. */
typedef struct {
    uint8_t bits[LC_CODE_POINTS / 8];
    uint8_t kinds[256];
} lc_alphabet;

/* n texts between offsets; those with a validity bit of 0 are null. */
typedef struct {
    lc_bytes data;
    const uint8_t *offsets;
    int wide;
    const uint8_t *validity; /* NULL: no nulls */
    int64_t bit, n;
} lc_texts;

/* Tokens found: codes and positions, and for each text the number of tokens up to its end. `longest`: only tokens with
 * fewer bytes are kept. `fold`: what to replace each byte by. */
typedef struct {
    int64_t longest;
    uint8_t fold[256];
    int32_t *codes, *positions;
    int64_t *ends;
    int64_t room, count;
} lc_found_tokens;

static inline void lc_alphabet_fill(lc_alphabet *a, const int32_t *ranges, int64_t n) {
    memset(a, 0, sizeof *a);
    for (int64_t i = 0; i < n; i++)
        for (int64_t c = ranges[2 * i]; c < ranges[2 * i + 1]; c++) a->bits[c >> 3] |= (uint8_t)(1 << (c & 7));
    for (int c = 0; c < 256; c++) a->kinds[c] = c < 128 ? (uint8_t)lc_get_bit(a->bits, c) : c >= 0xC2 && c <= 0xF4 ? 2 : 0;
}

/* Fill the table of replacements: ASCII letters in lower case, or nothing. */
static inline void lc_tokens_fold(lc_found_tokens *f, int lower) {
    for (int c = 0; c < 256; c++) f->fold[c] = (uint8_t)(lower && c >= 'A' && c <= 'Z' ? c + 32 : c);
}

/* Size of the character at p if it is in the alphabet, else 0. */
static int lc_letter_size(const lc_alphabet *a, const uint8_t *p, int64_t n) {
    uint8_t copy[4] = {0};
    int64_t size = n < 4 ? n : 4;
    memcpy(copy, p, (size_t)size);
    LC_SETTLE(copy);
    int bytes = lc_utf8_character(copy, size);
    if (!bytes) return 0;
    uint32_t c = copy[0];
    if (bytes > 1) c &= 0x7Fu >> bytes;
    for (int i = 1; i < bytes; i++) c = c << 6 | (copy[i] & 0x3F);
    return lc_get_bit(a->bits, c) ? bytes : 0;
}

LC_INLINE int lc_text_at(const lc_texts *texts, int64_t i, lc_bytes *text) {
    text->data = texts->data.data, text->size = -1;
    if (texts->validity && !lc_get_bit(texts->validity, texts->bit + i)) return LC_OK;
    int64_t begin = lc_load_offset(texts->offsets, texts->wide, i), end = lc_load_offset(texts->offsets, texts->wide, i + 1);
    if (begin < 0 || end < begin || end > texts->data.size) return LC_BAD_OFFSETS;
    text->data += begin, text->size = end - begin;
    return LC_OK;
}

/* Add the candidate behind the tokens of the table. */
LC_INLINE int lc_token_keep(lc_token_table *t, int64_t length, int64_t position, lc_found_tokens *f) {
    if (f->count >= f->room || position > INT32_MAX) return LC_NO_SPACE;
    f->positions[f->count] = (int32_t)position;
    return lc_tokens_code(t, length, f->codes + f->count++);
}

/* Copy a run from p on behind the tokens of the table, at most `most` bytes of it; return its size. */
LC_INLINE int64_t lc_run_copy(const lc_alphabet *a, const uint8_t *p, int64_t n, const uint8_t *fold, uint8_t *out,
                              int64_t most) {
    int64_t i = 0;
    while (i < n) {
        uint8_t c = lc_once_u8(p + i), kind = a->kinds[c];
        if (kind == 1) {
            if (i < most) out[i] = fold[c];
            i++;
            continue;
        }
        int size = kind ? lc_letter_size(a, p + i, n - i) : 0;
        if (!size) break;
        for (int k = 0; k < size; k++, i++)
            if (i < most) out[i] = p[i];
    }
    return i;
}

static int lc_text_runs(lc_token_table *t, const lc_alphabet *a, lc_bytes text, lc_found_tokens *f) {
    int64_t most = text.size < f->longest ? text.size : f->longest, position = 0;
    int problem = lc_tokens_reserve(t, most);
    for (int64_t at = 0; at < text.size && !problem;) {
        int64_t size = lc_run_copy(a, text.data + at, text.size - at, f->fold, t->bytes + t->size, most);
        if (!size) {
            at++;
            continue;
        }
        if (size < f->longest) {
            problem = lc_token_keep(t, size, position, f);
            if (!problem) problem = lc_tokens_reserve(t, most);
        }
        position++;
        at += size;
    }
    return problem;
}

/* Runs of characters of the alphabet. Runs that are too long are left out, but count as positions. */
static inline int lc_tokens_runs(lc_token_table *t, const lc_alphabet *a, const lc_texts *texts, lc_found_tokens *f) {
    f->count = 0;
    for (int64_t i = 0; i < texts->n; i++) {
        lc_bytes text;
        int problem = lc_text_at(texts, i, &text);
        if (!problem) problem = lc_text_runs(t, a, text, f);
        if (problem) return problem;
        f->ends[i] = f->count;
    }
    return LC_OK;
}

/* Bytes of the character at p; those of damaged ones may be any number that is left. */
LC_INLINE int64_t lc_character_step(const uint8_t *p, int64_t n) {
    uint8_t c = lc_once_u8(p);
    int64_t size = c < 0xC0 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
    return size < n ? size : n;
}

/* The n-grams that begin at p. */
static int lc_text_grams_at(lc_token_table *t, lc_bytes text, int64_t shortest, int64_t largest, lc_found_tokens *f) {
    int64_t size = 0;
    for (int64_t characters = 1; characters <= largest && size < text.size; characters++) {
        size += lc_character_step(text.data + size, text.size - size);
        if (characters < shortest) continue;
        if (size >= f->longest) break;
        int problem = lc_tokens_reserve(t, size);
        if (problem) return problem;
        for (int64_t i = 0; i < size; i++) t->bytes[t->size + i] = f->fold[text.data[i]];
        problem = lc_token_keep(t, size, 0, f);
        if (problem) return problem;
    }
    return LC_OK;
}

/* All n-grams of `shortest` to `largest` characters, by their start and then their size; with `prefixes` only those at
 * the start of a text. */
static inline int lc_tokens_grams(lc_token_table *t, const lc_texts *texts, int64_t shortest, int64_t largest, int prefixes,
                                  lc_found_tokens *f) {
    f->count = 0;
    for (int64_t i = 0; i < texts->n; i++) {
        lc_bytes text;
        int problem = lc_text_at(texts, i, &text);
        while (!problem && text.size > 0) {
            int64_t step = lc_character_step(text.data, text.size);
            problem = lc_text_grams_at(t, text, shortest, largest, f);
            text.data += step, text.size -= step;
            if (prefixes) break;
        }
        if (problem) return problem;
        f->ends[i] = f->count;
    }
    return LC_OK;
}

/* Each text that is not null is one token, even if it is empty. */
static inline int lc_tokens_whole(lc_token_table *t, const lc_texts *texts, lc_found_tokens *f) {
    f->count = 0;
    for (int64_t i = 0; i < texts->n; i++) {
        lc_bytes text;
        int problem = lc_text_at(texts, i, &text);
        if (!problem && text.size >= 0 && text.size < f->longest) {
            problem = lc_tokens_reserve(t, text.size);
            if (problem) return problem;
            for (int64_t k = 0; k < text.size; k++) t->bytes[t->size + k] = f->fold[text.data[k]];
            problem = lc_token_keep(t, text.size, 0, f);
        }
        if (problem) return problem;
        f->ends[i] = f->count;
    }
    return LC_OK;
}

#endif
