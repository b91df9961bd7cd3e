/* Search in posting lists: the best documents for some terms, or all of them.
 *
 * Lists are read in the order of their documents. For the best documents, whatever cannot beat the worst one found so far
 * is passed over: by the bounds of lists, and of blocks (Ding and Suel, 2011). The score of a document is the sum over
 * its terms, in their order, of weight times share. Of equal scores, the first document is the better one. */
#ifndef LANCECODEC_POSTING_SEARCH_H
#define LANCECODEC_POSTING_SEARCH_H

#include "posting_windows.h"

/* Documents whose scores are added up together. */
enum { LC_SCORE_WINDOW = 4096 };

/* -- any of the terms --------------------------------------------------------------------------------------------- */

static inline void lc_search_sort(lc_search *s) {
    for (int64_t i = 1; i < s->n; i++) {
        lc_cursor *c = s->order[i];
        int64_t j = i;
        for (; j > 0 && s->order[j - 1]->doc > c->doc; j--) s->order[j] = s->order[j - 1];
        s->order[j] = c;
    }
}

/* Return how many of the first cursors could have a document together that is good enough; 0 if none can. */
static inline int64_t lc_search_pivot(const lc_search *s) {
    double sum = 0;
    for (int64_t i = 0; i < s->n && s->order[i]->doc != LC_NO_DOCUMENT; i++) {
        sum += lc_cursor_bound(s->order[i]);
        if (!(sum > s->hits->floor)) continue;
        while (i + 1 < s->n && s->order[i + 1]->doc == s->order[i]->doc) i++;
        return i + 1;
    }
    return 0;
}

/* Return the document up to which no document is good enough, by the bounds of blocks; 0 if `doc` may be. */
static inline int64_t lc_search_pass(const lc_search *s, int64_t count, int64_t doc) {
    double sum = 0;
    int64_t next = count < s->n ? s->order[count]->doc : LC_NO_DOCUMENT;
    for (int64_t i = 0; i < count; i++) {
        const lc_cursor *c = s->order[i];
        int64_t block = lc_cursor_block(c, doc);
        int64_t end = block + 1 < c->term->blocks ? (int64_t)c->term->firsts[block + 1] : LC_NO_DOCUMENT;
        sum += lc_block_bound(c, block);
        if (end < next) next = end;
    }
    return sum > s->hits->floor ? 0 : next;
}

/* Find out whether a document may be good enough, by the scores of its terms and, as long as these are unknown, by the
 * bounds of blocks. The first cursors of the order move to it, the ones that are nearest first. */
static inline int lc_search_weigh(lc_search *s, int64_t count, int64_t doc, int *out) {
    double sum = 0;
    int found = 0;
    *out = 0;
    for (int64_t i = 0; i < count; i++) sum += lc_block_bound(s->order[i], lc_cursor_block(s->order[i], doc));
    for (int64_t i = count - 1; i >= 0; i--) {
        lc_cursor *c = s->order[i];
        double bound = lc_block_bound(c, lc_cursor_block(c, doc));
        int problem = lc_cursor_seek(c, doc);
        if (problem) return problem;
        sum += c->doc == doc ? lc_cursor_score(c, s->norms) * LC_BOUND_SLACK - bound : -bound;
        found |= c->doc == doc;
        if (!(sum > s->hits->floor)) return LC_OK;
    }
    *out = found;
    return LC_OK;
}

/* Return the cursor without which no document is good enough, NULL without one. */
static inline lc_cursor *lc_search_needed(const lc_search *s, double total) {
    lc_cursor *best = s->cursors;
    for (int64_t i = 1; i < s->n; i++)
        if (lc_cursor_bound(&s->cursors[i]) > lc_cursor_bound(best)) best = &s->cursors[i];
    return total - lc_cursor_bound(best) > s->hits->floor ? NULL : best;
}

/* Find the best documents with any of the terms. */
static inline int lc_search_best(lc_search *s) {
    int64_t count;
    double total = 0, floor = -INFINITY;
    for (int64_t i = 0; i < s->n; i++) total += lc_cursor_bound(&s->cursors[i]);
    lc_search_sort(s);
    while ((count = lc_search_pivot(s)) > 0) {
        if (s->hits->floor > floor) {
            lc_cursor *needed = lc_search_needed(s, total);
            if (needed) return lc_search_lead(s, needed, 0);
            floor = s->hits->floor;
        }
        int64_t doc = s->order[count - 1]->doc, next = lc_search_pass(s, count, doc);
        int good = 0;
        if (!next) {
            int problem = lc_is_allowed(s, doc) ? lc_search_weigh(s, count, doc, &good) : LC_OK;
            float score = 0;
            for (int64_t i = 0; good && i < s->n; i++)
                if (s->cursors[i].doc == doc) score += lc_cursor_score(&s->cursors[i], s->norms);
            if (!problem && good) problem = lc_hits_add(s->hits, doc, score);
            if (problem) return problem;
            next = doc + 1;
        }
        for (int64_t i = 0; i < count; i++) lc_cursor_skip(s->order[i], next);
        lc_search_sort(s);
    }
    return LC_OK;
}

/* Add the scores of the documents of a cursor that are below `stop`. */
static inline int lc_search_gather(lc_cursor *c, const float *norms, int64_t start, int64_t stop, float *scores,
                                   uint64_t *seen) {
    while (c->doc < stop) {
        int problem = lc_cursor_settle(c);
        if (problem) return problem;
        if (c->pending || c->doc >= stop) continue;
        for (; c->at < c->n && c->docs[c->at] < stop; c->at++) {
            int64_t place = (int64_t)c->docs[c->at] - start;
            scores[place] += c->weight * lc_term_share(c->counts[c->at], norms[c->docs[c->at]]);
            seen[place >> 6] |= (uint64_t)1 << (place & 63);
        }
        if (c->at == c->n) lc_cursor_enter(c, c->block + 1);
        else c->doc = c->docs[c->at];
    }
    return LC_OK;
}

/* Find all documents with any of the terms. */
static inline int lc_search_all(lc_search *s) {
    float scores[LC_SCORE_WINDOW];
    uint64_t seen[LC_SCORE_WINDOW / 64];
    for (;;) {
        int64_t first = LC_NO_DOCUMENT;
        for (int64_t i = 0; i < s->n; i++)
            if (s->cursors[i].doc < first) first = s->cursors[i].doc;
        if (first == LC_NO_DOCUMENT) return LC_OK;
        first -= first % LC_SCORE_WINDOW;
        memset(scores, 0, sizeof scores);
        memset(seen, 0, sizeof seen);
        for (int64_t i = 0; i < s->n; i++) {
            int problem =
                lc_search_gather(&s->cursors[i], s->norms, first, first + LC_SCORE_WINDOW, scores, seen);
            if (problem) return problem;
        }
        for (int64_t place = 0; place < LC_SCORE_WINDOW; place++) {
            if (!seen[place >> 6]) {
                place |= 63;
                continue;
            }
            if (!(seen[place >> 6] >> (place & 63) & 1) || !lc_is_allowed(s, first + place)) continue;
            int problem = lc_hits_add(s->hits, first + place, scores[place]);
            if (problem) return problem;
        }
    }
}

static inline int lc_search_run(lc_search *s, int every) {
    int problem;
    if (!s->n) return LC_OK;
    if (!s->hits->k) s->hits->floor = -INFINITY;
    if (s->phrase || every || (s->hits->k && s->n == 1)) problem = lc_search_every(s);
    else if (!s->hits->k) problem = lc_search_all(s);
    else problem = lc_windows_pay(s) ? lc_search_windows(s) : lc_search_best(s);
    if (!problem) lc_hits_sort(s->hits);
    return problem;
}

#endif
