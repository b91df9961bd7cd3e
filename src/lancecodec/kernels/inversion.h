/* Inversion of documents: from the words of each document to the documents of each word.
 *
 * The words of all documents stay as they are. They are counted once; then posting lists are made for one range of
 * words after the other, so that only these need memory. */
#ifndef LANCECODEC_INVERSION_H
#define LANCECODEC_INVERSION_H

#include "chunk.h"

/* Documents [first, first + count) with their words: numbers of 2 or 4 bytes; lengths[i] words are of document i. Positions
 * have 1, 2 or 4 bytes, 0 if they are not kept. */
typedef struct {
    const void *words, *positions;
    const uint32_t *lengths;
    int64_t first, count, size;
    int word_bytes, position_bytes;
} lc_documents;

LC_INLINE uint32_t lc_number_at(const void *values, int bytes, int64_t i) {
    if (bytes == 1) return ((const uint8_t *)values)[i];
    if (bytes == 2) return ((const uint16_t *)values)[i];
    return ((const uint32_t *)values)[i];
}

/* Posting lists of words [low, high). next[w] and next_step[w] are where the next posting and the next step of a word
 * go; seen[w] is the last document of a word plus 1, last[w] the last position in it. */
typedef struct {
    uint32_t low, high;
    int64_t *next, *next_step;
    uint32_t *seen, *last;
    uint32_t *documents, *frequencies, *steps;
    int64_t room, steps_room;
} lc_lists;

/* Replace codes by ranks, which are below the number of codes. */
LC_CLONES
static int lc_codes_rank(uint32_t *codes, int64_t n, const uint32_t *ranks, int64_t count) {
    for (int64_t i = 0; i < n; i++) {
        if (codes[i] >= count) return LC_BAD_CODE;
        codes[i] = ranks[codes[i]];
    }
    return LC_OK;
}

LC_CLONES
static int lc_short_codes_rank(uint16_t *codes, int64_t n, const uint32_t *ranks, int64_t count) {
    for (int64_t i = 0; i < n; i++) {
        if (codes[i] >= count || ranks[codes[i]] > UINT16_MAX) return LC_BAD_CODE;
        codes[i] = (uint16_t)ranks[codes[i]];
    }
    return LC_OK;
}

LC_INLINE int lc_words_count_of(const lc_documents *in, int bytes, int64_t count, uint32_t *seen, int64_t *documents,
                                int64_t *occurrences) {
    int64_t at = 0;
    for (int64_t d = 0; d < in->count; d++) {
        int64_t end = at + in->lengths[d];
        if (end > in->size) return LC_BAD_OFFSETS;
        uint32_t mark = (uint32_t)(in->first + d) + 1;
        for (; at < end; at++) {
            uint32_t word = lc_number_at(in->words, bytes, at);
            if (word >= count) return LC_BAD_CODE;
            occurrences[word]++;
            documents[word] += seen[word] != mark;
            seen[word] = mark;
        }
    }
    return LC_OK;
}

/* Add the documents and the occurrences of each of `count` words. */
static int lc_words_count(const lc_documents *in, int64_t count, uint32_t *seen, int64_t *documents,
                          int64_t *occurrences) {
    return in->word_bytes == 2 ? lc_words_count_of(in, 2, count, seen, documents, occurrences)
                               : lc_words_count_of(in, 4, count, seen, documents, occurrences);
}

/* Add an occurrence of a word of the range to its list; `w` counts from the first word of the range. */
LC_INLINE int lc_lists_add(lc_lists *out, uint32_t w, uint32_t mark, int positioned, uint32_t position) {
    int64_t place = out->next[w];
    int again = out->seen[w] == mark;
    if (again) {
        if (place < 1 || place > out->room) return LC_BAD_COUNT;
        out->frequencies[place - 1]++;
    } else {
        if (place < 0 || place >= out->room) return LC_BAD_COUNT;
        out->documents[place] = mark - 1, out->frequencies[place] = 1;
        out->next[w] = place + 1, out->seen[w] = mark;
    }
    if (!positioned) return LC_OK;
    int64_t step = out->next_step[w]++;
    if (step < 0 || step >= out->steps_room) return LC_BAD_COUNT;
    out->steps[step] = again ? position - out->last[w] : position;
    out->last[w] = position;
    return LC_OK;
}

LC_INLINE int lc_lists_fill_of(const lc_documents *in, int word_bytes, int position_bytes, lc_lists *out) {
    int64_t at = 0;
    uint32_t low = out->low, span = out->high - out->low;
    for (int64_t d = 0; d < in->count; d++) {
        int64_t end = at + in->lengths[d];
        if (end > in->size) return LC_BAD_OFFSETS;
        uint32_t mark = (uint32_t)(in->first + d) + 1;
        for (; at < end; at++) {
            uint32_t w = lc_number_at(in->words, word_bytes, at) - low;
            if (w >= span) continue;
            uint32_t position = position_bytes ? lc_number_at(in->positions, position_bytes, at) : 0;
            int problem = lc_lists_add(out, w, mark, position_bytes, position);
            if (problem) return problem;
        }
    }
    return LC_OK;
}

LC_INLINE int lc_lists_fill_words(const lc_documents *in, int word_bytes, int position_bytes, lc_lists *out) {
    switch (position_bytes) {
        case 0: return lc_lists_fill_of(in, word_bytes, 0, out);
        case 1: return lc_lists_fill_of(in, word_bytes, 1, out);
        case 2: return lc_lists_fill_of(in, word_bytes, 2, out);
        default: return lc_lists_fill_of(in, word_bytes, 4, out);
    }
}

/* Add documents to the lists of the words of the range, with their positions if `positioned`. */
static int lc_lists_fill(const lc_documents *in, int positioned, lc_lists *out) {
    int bytes = positioned ? in->position_bytes : 0;
    return in->word_bytes == 2 ? lc_lists_fill_words(in, 2, bytes, out) : lc_lists_fill_words(in, 4, bytes, out);
}

#endif
