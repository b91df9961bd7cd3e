/* Suffix arrays by induced sorting: SA-IS of Nong, Zhang and Chan (2009), in linear time.
 *
 * The text ends with a symbol that is smaller than all others and occurs once. A suffix is of type S if it is smaller
 * than the next one, else of type L; an S after an L is LMS. The order of the LMS suffixes induces that of all others.
 * Types are not stored: whether an entry of the array induces an L or an S follows from two adjacent symbols. An entry
 * that has nothing to induce in the current direction is the complement of its position. Position 0 never induces
 * anything, so 0 also stands for an empty entry. */
#ifndef LANCECODEC_SUFFIX_ARRAY_H
#define LANCECODEC_SUFFIX_ARRAY_H

#include <stdlib.h>

#include "chunk.h"

/* Text of bytes, or a `wide` one of the 32-bit names of a reduced text. */
typedef struct {
    const void *at;
    int32_t size;
    int32_t symbols;
    int32_t *counts; /* of each symbol, followed by a place in the array for each */
} lc_sa_text;

enum { LC_SA_AHEAD = 24 }; /* entries whose symbols are fetched ahead */

LC_INLINE int32_t lc_sa_symbol(const lc_sa_text *t, int32_t i, const int wide) {
    return wide ? ((const int32_t *)t->at)[i] : ((const uint8_t *)t->at)[i];
}

LC_INLINE void lc_sa_fetch(const lc_sa_text *t, int32_t entry, const int wide) {
#if defined(__GNUC__) || defined(__clang__)
    if (entry > 0) __builtin_prefetch((const char *)t->at + (int64_t)(entry - 1) * (wide ? 4 : 1));
#else
    (void)t, (void)entry, (void)wide;
#endif
}

LC_INLINE void lc_sa_count(const lc_sa_text *t, const int wide) {
    memset(t->counts, 0, (size_t)t->symbols * sizeof(int32_t));
    for (int32_t i = 0; i < t->size; i++) t->counts[lc_sa_symbol(t, i, wide)]++;
}

/* The first place of each symbol, or with `ends` the place behind the last. */
static inline void lc_sa_places(const lc_sa_text *t, int ends) {
    int32_t *place = t->counts + t->symbols, sum = 0;
    for (int32_t c = 0; c < t->symbols; c++) {
        int32_t begin = sum;
        sum += t->counts[c];
        place[c] = ends ? sum : begin;
    }
}

/* Sort L suffixes from the LMS suffixes, left to right. Afterwards the entries that induce an S are positive; of the
 * others nothing is kept with `names`, else their complements. */
LC_INLINE void lc_sa_induce_larger(const lc_sa_text *t, int32_t *sa, const int wide, const int names) {
    int32_t *place = t->counts + t->symbols;
    lc_sa_places(t, 0);
    for (int32_t i = 0; i < t->size; i++) {
        if (t->size - i > LC_SA_AHEAD) lc_sa_fetch(t, sa[i + LC_SA_AHEAD], wide);
        int32_t entry = sa[i];
        if (entry < 0) sa[i] = ~entry;
        if (entry <= 0) continue;
        sa[i] = names ? 0 : ~entry;
        int32_t p = entry - 1, c = lc_sa_symbol(t, p, wide);
        sa[place[c]++] = p == 0 || lc_sa_symbol(t, p - 1, wide) >= c ? p : ~p;
    }
}

/* Sort S suffixes from the L suffixes, right to left. Afterwards all entries are positions; with `names` only the LMS
 * suffixes are kept, as complements. */
LC_INLINE void lc_sa_induce_smaller(const lc_sa_text *t, int32_t *sa, const int wide, const int names) {
    int32_t *place = t->counts + t->symbols;
    lc_sa_places(t, 1);
    for (int32_t i = t->size - 1; i >= 0; i--) {
        if (i >= LC_SA_AHEAD) lc_sa_fetch(t, sa[i - LC_SA_AHEAD], wide);
        int32_t entry = sa[i];
        if (entry < 0 && !names) sa[i] = ~entry;
        if (entry <= 0) continue;
        if (names) sa[i] = 0;
        int32_t p = entry - 1, c = lc_sa_symbol(t, p, wide);
        sa[--place[c]] = p == 0 || lc_sa_symbol(t, p - 1, wide) <= c ? p : ~p;
    }
}

enum { LC_SA_SEED, LC_SA_MEASURE, LC_SA_LIST };

/* Visit the LMS suffixes from right to left: put each at the end of its symbol's entries, note the length of its
 * substring up to the next one, or list them in order in front of `out`. Returns how many there are. */
LC_INLINE int32_t lc_sa_visit(const lc_sa_text *t, int32_t *out, const int wide, const int what) {
    int32_t *place = t->counts + t->symbols, found = 0, last = t->size - 1, right = 0;
    int smaller = 1;
    for (int32_t i = t->size - 2; i >= 0; i--) {
        int32_t c = lc_sa_symbol(t, i, wide);
        int is_smaller = c < right || (c == right && smaller);
        if (smaller && !is_smaller) {
            if (what == LC_SA_SEED) out[--place[right]] = i + 1;
            else if (what == LC_SA_MEASURE) out[(i + 1) / 2] = last - i;
            else *--out = i + 1;
            last = i + 1;
            found++;
        }
        smaller = is_smaller;
        right = c;
    }
    return found;
}

/* Replace the LMS suffixes, whose substrings are in order in the first m entries, by a text of names at the end of the
 * array: equal substrings have the same name. Returns the number of names. */
LC_INLINE int32_t lc_sa_name(const lc_sa_text *t, int32_t *sa, int32_t m, const int wide) {
    int32_t *slots = sa + m, names = 0, known = 0, known_size = 0, top = t->size; /* LMS suffixes are never adjacent */
    memset(slots, 0, (size_t)(t->size - m) * sizeof(int32_t));
    lc_sa_visit(t, slots, wide, LC_SA_MEASURE);
    for (int32_t k = 0; k < m; k++) {
        int32_t j = sa[k], size = slots[j / 2];
        const char *text = t->at;
        size_t width = wide ? 4 : 1;
        int same = size == known_size && memcmp(text + (size_t)j * width, text + (size_t)known * width,
                                                (size_t)size * width) == 0;
        names += !same;
        slots[j / 2] = names;
        known = j, known_size = size;
    }
    for (int32_t i = t->size - 1; i >= m; i--)
        if (sa[i]) sa[--top] = sa[i] - 1;
    return names;
}

/* Leave the LMS suffixes in the order of their substrings in the first entries; returns how many there are. */
LC_INLINE int32_t lc_sa_sort_substrings(const lc_sa_text *t, int32_t *sa, const int wide) {
    memset(sa, 0, (size_t)t->size * sizeof(int32_t));
    lc_sa_places(t, 1);
    lc_sa_visit(t, sa, wide, LC_SA_SEED);
    lc_sa_induce_larger(t, sa, wide, 1);
    lc_sa_induce_smaller(t, sa, wide, 1);
    sa[0] = ~(t->size - 1);
    int32_t m = 0;
    for (int32_t i = 0; i < t->size; i++)
        if (sa[i] < 0) sa[m++] = ~sa[i];
    return m;
}

/* Sort all suffixes from the first m entries, the ranks of the LMS suffixes by their number in the text. */
LC_INLINE void lc_sa_finish(const lc_sa_text *t, int32_t *sa, int32_t m, const int wide) {
    int32_t *positions = sa + t->size - m, *place = t->counts + t->symbols;
    lc_sa_visit(t, sa + t->size, wide, LC_SA_LIST);
    for (int32_t i = 0; i < m; i++) sa[i] = positions[sa[i]];
    memset(sa + m, 0, (size_t)(t->size - m) * sizeof(int32_t));
    lc_sa_places(t, 1);
    for (int32_t i = m - 1; i >= 0; i--) {
        int32_t j = sa[i];
        sa[i] = 0;
        sa[--place[lc_sa_symbol(t, j, wide)]] = j;
    }
    lc_sa_induce_larger(t, sa, wide, 0);
    lc_sa_induce_smaller(t, sa, wide, 0);
}

static int lc_sa_sort_names(lc_sa_text *t, int32_t *sa);

/* Sort all suffixes of a text whose symbols are counted; at least two. */
LC_INLINE int lc_sa_sort(lc_sa_text *t, int32_t *sa, const int wide) {
    lc_sa_count(t, wide);
    int32_t m = lc_sa_sort_substrings(t, sa, wide), names = lc_sa_name(t, sa, m, wide), problem = LC_OK;
    int32_t *reduced = sa + t->size - m;
    if (names < m) {
        int fits = t->size - 2 * (int64_t)m >= 2 * (int64_t)names;
        int32_t *counts = fits ? sa + m : malloc(2 * (size_t)names * sizeof(int32_t));
        lc_sa_text inner = {reduced, m, names, counts};
        problem = counts ? lc_sa_sort_names(&inner, sa) : LC_NO_MEMORY;
        if (!fits) free(counts);
    } else {
        for (int32_t i = 0; i < m; i++) sa[reduced[i]] = i;
    }
    if (problem == LC_OK) lc_sa_finish(t, sa, m, wide);
    return problem;
}

static int lc_sa_sort_names(lc_sa_text *t, int32_t *sa) { return lc_sa_sort(t, sa, 1); }

/* The positions of the suffixes of `text` in ascending order. The text ends with its only byte 0. */
static inline int lc_suffix_array(const uint8_t *text, int64_t n, int32_t *sa) {
    int32_t counts[512];
    if (n < 1 || n >= INT32_MAX) return LC_BAD_SIZE;
    if (memchr(text, 0, (size_t)n) != text + n - 1) return LC_BAD_CODE;
    sa[0] = 0;
    lc_sa_text t = {text, (int32_t)n, 256, counts};
    return n == 1 ? LC_OK : lc_sa_sort(&t, sa, 0);
}

/* The Burrows-Wheeler transform: the symbol in front of each suffix in their order, and the one at the end. */
static inline void lc_transform(const uint8_t *text, const int32_t *sa, int64_t n, uint8_t *out) {
    for (int64_t i = 0; i < n; i++) {
        uint32_t at = (uint32_t)sa[i];
        out[i] = text[at && at < (uint64_t)n ? at - 1 : n - 1];
    }
}

/* Texts one after another, each followed by byte 255, and a byte 0 at the end. Bytes 0 and 255 of the texts become
 * `zero` and `top`. Returns the number of bytes, or minus a problem. */
static inline int64_t lc_texts_join(lc_bytes data, const uint8_t *offsets, int wide, int64_t count, uint8_t zero,
                                    uint8_t top, lc_bytes out) {
    uint8_t *target = (uint8_t *)out.data;
    int64_t at = 0, start = lc_load_offset(offsets, wide, 0);
    for (int64_t i = 0; i < count; i++) {
        int64_t stop = lc_load_offset(offsets, wide, i + 1), size = stop - start;
        if (start < 0 || stop < start || stop > data.size) return -LC_BAD_OFFSETS;
        if (size > out.size - at - 2) return -LC_NO_SPACE;
        for (int64_t k = 0; k < size; k++) {
            uint8_t c = lc_load_u8(data.data + start + k);
            target[at + k] = c == 0 ? zero : c == 255 ? top : c;
        }
        at += size;
        target[at++] = 255;
        start = stop;
    }
    if (at >= out.size) return -LC_NO_SPACE;
    target[at++] = 0;
    return at;
}

#endif
