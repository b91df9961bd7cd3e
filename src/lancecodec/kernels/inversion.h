/* Inversion of documents: from the words of each document to the documents of each word.
 *
 * The words of all documents stay as they are. They are counted once; then posting lists are made for one range of
 * words after the other, so that only these need memory. */
#ifndef LANCECODEC_INVERSION_H
#define LANCECODEC_INVERSION_H

#include "chunk.h"

/* Documents [first, first + count) with their words; ends[i] is the number of words up to the end of document i. */
typedef struct {
    const uint32_t *words;
    const int64_t *ends;
    int64_t first, count, size;
} lc_documents;

/* Posting lists of words [low, high). next[w] and next_step[w] are where the next posting and the next step of a word
 * go; seen[w] is the last document of a word plus 1, last[w] the last position in it. */
typedef struct {
    uint32_t low, high;
    int64_t *next, *next_step;
    uint32_t *seen, *last;
    uint32_t *documents, *frequencies, *steps;
    int64_t room, steps_room;
} lc_lists;

/* Replace codes by ranks. */
LC_CLONES
static int lc_codes_rank(uint32_t *codes, int64_t n, const uint32_t *ranks, int64_t count) {
    for (int64_t i = 0; i < n; i++) {
        if (codes[i] >= count) return LC_BAD_CODE;
        codes[i] = ranks[codes[i]];
    }
    return LC_OK;
}

/* Add the documents and the occurrences of each of `count` words. */
static int lc_words_count(const lc_documents *in, int64_t count, uint32_t *seen, int64_t *documents,
                          int64_t *occurrences) {
    int64_t at = 0;
    for (int64_t d = 0; d < in->count; d++) {
        int64_t end = in->ends[d];
        if (end < at || end > in->size) return LC_BAD_OFFSETS;
        uint32_t mark = (uint32_t)(in->first + d) + 1;
        for (; at < end; at++) {
            uint32_t word = in->words[at];
            if (word >= count) return LC_BAD_CODE;
            occurrences[word]++;
            documents[word] += seen[word] != mark;
            seen[word] = mark;
        }
    }
    return LC_OK;
}

/* Add an occurrence of a word of the range to its list; `w` counts from the first word of the range. */
LC_INLINE int lc_lists_add(lc_lists *out, uint32_t w, uint32_t mark, const uint32_t *position) {
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
    if (!position) return LC_OK;
    int64_t step = out->next_step[w]++;
    if (step < 0 || step >= out->steps_room) return LC_BAD_COUNT;
    out->steps[step] = again ? *position - out->last[w] : *position;
    out->last[w] = *position;
    return LC_OK;
}

/* Add documents to the lists of the words of the range; positions may be NULL. */
static int lc_lists_fill(const lc_documents *in, const uint32_t *positions, lc_lists *out) {
    int64_t at = 0;
    uint32_t low = out->low, span = out->high - out->low;
    for (int64_t d = 0; d < in->count; d++) {
        int64_t end = in->ends[d];
        if (end < at || end > in->size) return LC_BAD_OFFSETS;
        uint32_t mark = (uint32_t)(in->first + d) + 1;
        for (; at < end; at++) {
            uint32_t w = in->words[at] - low;
            if (w >= span) continue;
            int problem = lc_lists_add(out, w, mark, positions ? positions + at : NULL);
            if (problem) return problem;
        }
    }
    return LC_OK;
}

#endif
