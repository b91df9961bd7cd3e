/* Search in posting lists: the best documents for some terms, or all of them.
 *
 * Lists are read in the order of their documents. For the best documents, whatever cannot beat the worst one found so far
 * is passed over: by the bounds of lists, and of blocks (Ding and Suel, 2011). The score of a document is the sum over
 * its terms, in their order, of weight times share. Of equal scores, the first document is the better one. */
#ifndef LANCECODEC_POSTING_SEARCH_H
#define LANCECODEC_POSTING_SEARCH_H

#include <math.h>

#include "bits.h"
#include "term_positions.h"

#define LC_NO_DOCUMENT INT64_MAX
/* Bounds are sums in another order than scores, so they are a bit more. */
#define LC_BOUND_SLACK (1 + 1e-6)
/* Documents whose scores are added up together. */
enum { LC_SCORE_WINDOW = 4096 };

/* Place in a list. If `pending`, `block` is not decoded yet, and no document from the last place to `doc` is left out. */
typedef struct {
    const lc_term *term;
    const lc_positions *positions;
    float weight;
    int pending;
    int64_t block, loaded, placed, at, n, doc;
    uint32_t docs[LC_TERM_BLOCK], counts[LC_TERM_BLOCK];
    lc_block_positions found;
} lc_cursor;

/* Found documents: a heap of the best `k`, the worst on top, or all in their order if k is 0. */
typedef struct {
    uint32_t *docs;
    float *scores;
    int64_t n, k, room;
    double floor; /* scores must be larger */
} lc_hits;

/* Terms of a phrase: number of the cursor, and place in the phrase; how much later a term may be than it should. */
typedef struct {
    const int32_t *cursors, *places;
    int64_t n, slop;
    int64_t *reached, *next;
    int64_t room;
} lc_phrase;

/* The cursors; `norms` of all documents; bits of the documents that may be found, or NULL for all. */
typedef struct {
    lc_cursor *cursors, **order;
    int64_t n, documents;
    const float *norms;
    const uint8_t *allowed;
    lc_phrase *phrase;
    lc_hits *hits;
} lc_search;

/* -- cursors ------------------------------------------------------------------------------------------------------ */

static inline void lc_cursor_start(lc_cursor *c, const lc_term *term, const lc_positions *positions, float weight) {
    c->term = term, c->positions = positions, c->weight = weight;
    c->pending = 1, c->block = 0, c->loaded = c->placed = -1, c->at = c->n = 0;
    c->doc = term->firsts[0];
    c->found.values = 0, c->found.room = 0;
}

/* The first of numbers [at, n) that is not below a target; n without one. */
LC_INLINE int64_t lc_lower_bound(const uint32_t *values, int64_t at, int64_t n, uint32_t target) {
    int64_t size = n - at;
    if (size <= 0) return n;
    while (size > 1) {
        int64_t half = size / 2;
        at += values[at + half - 1] < target ? half : 0;
        size -= half;
    }
    return at + (values[at] < target);
}

/* The block that has a document if the list has it, from the current block on. */
LC_INLINE int64_t lc_cursor_block(const lc_cursor *c, int64_t doc) {
    const uint32_t *firsts = c->term->firsts;
    int64_t low = c->block, step = 1, blocks = c->term->blocks;
    while (low + step < blocks && (int64_t)firsts[low + step] <= doc) low += step, step *= 2;
    int64_t high = low + step < blocks ? low + step : blocks;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if ((int64_t)firsts[middle] <= doc) low = middle;
        else high = middle;
    }
    return low;
}

LC_INLINE void lc_cursor_enter(lc_cursor *c, int64_t block) {
    c->block = block, c->pending = 1;
    c->doc = block < c->term->blocks ? (int64_t)c->term->firsts[block] : LC_NO_DOCUMENT;
    if (block >= c->term->blocks) c->pending = 0;
}

/* Move to the first document of the decoded block from `target` on, or to the next block. */
LC_INLINE void lc_cursor_place(lc_cursor *c, int64_t target) {
    c->at = lc_lower_bound(c->docs, c->at, c->n, (uint32_t)target);
    if (c->at == c->n) lc_cursor_enter(c, c->block + 1);
    else c->doc = c->docs[c->at];
}

/* Move to `target` or behind, without decoding a block. */
LC_INLINE void lc_cursor_skip(lc_cursor *c, int64_t target) {
    if (c->doc >= target) return;
    if (target == LC_NO_DOCUMENT) {
        lc_cursor_enter(c, c->term->blocks);
        return;
    }
    int64_t block = lc_cursor_block(c, target);
    if (block == c->loaded && !c->pending) {
        lc_cursor_place(c, target);
    } else if (block == c->block && c->pending) {
        c->doc = target;
    } else {
        lc_cursor_enter(c, block);
        if (c->doc < target) c->doc = target;
    }
}

/* Move to the document itself, or the one behind it, with its block decoded unless it is the first of the next block. */
static inline int lc_cursor_settle(lc_cursor *c) {
    if (!c->pending) return LC_OK;
    int64_t target = c->doc;
    if (c->loaded != c->block) {
        int problem = lc_term_decode(c->term, c->block, c->docs, c->counts);
        if (problem) return problem;
        c->loaded = c->block, c->n = lc_block_count(c->term, c->block);
    }
    c->at = 0, c->pending = 0;
    lc_cursor_place(c, target);
    return LC_OK;
}

/* Move to `target`, or to the first document behind it. */
LC_INLINE int lc_cursor_seek(lc_cursor *c, int64_t target) {
    lc_cursor_skip(c, target);
    while (c->pending) {
        int problem = lc_cursor_settle(c);
        if (problem) return problem;
        if (c->doc > target) break;
    }
    return LC_OK;
}

LC_INLINE double lc_cursor_bound(const lc_cursor *c) { return (double)c->weight * c->term->bound * LC_BOUND_SLACK; }

LC_INLINE double lc_block_bound(const lc_cursor *c, int64_t block) {
    return (double)c->weight * c->term->bounds[block] * LC_BOUND_SLACK;
}

LC_INLINE float lc_cursor_score(const lc_cursor *c, const float *norms) {
    return c->weight * lc_term_share(c->counts[c->at], norms[c->doc]);
}

/* -- hits --------------------------------------------------------------------------------------------------------- */

LC_INLINE int lc_is_worse(const lc_hits *h, int64_t i, int64_t j) {
    return h->scores[i] < h->scores[j] || (h->scores[i] == h->scores[j] && h->docs[i] > h->docs[j]);
}

LC_INLINE void lc_hits_swap(lc_hits *h, int64_t i, int64_t j) {
    uint32_t doc = h->docs[i];
    float score = h->scores[i];
    h->docs[i] = h->docs[j], h->scores[i] = h->scores[j];
    h->docs[j] = doc, h->scores[j] = score;
}

static inline void lc_hits_sink(lc_hits *h, int64_t n) {
    for (int64_t at = 0, child = 1; child < n; at = child, child = 2 * at + 1) {
        if (child + 1 < n && lc_is_worse(h, child + 1, child)) child++;
        if (!lc_is_worse(h, child, at)) break;
        lc_hits_swap(h, at, child);
    }
}

/* Offer a document; those of a heap are offered in their order. */
LC_INLINE int lc_hits_add(lc_hits *h, int64_t doc, float score) {
    if (h->k && !(score > h->floor)) return LC_OK;
    if (h->k && h->n == h->k) {
        h->docs[0] = (uint32_t)doc, h->scores[0] = score;
        lc_hits_sink(h, h->n);
    } else {
        if (h->n == h->room) return LC_NO_SPACE;
        int64_t at = h->n++;
        h->docs[at] = (uint32_t)doc, h->scores[at] = score;
        for (; h->k && at && lc_is_worse(h, at, (at - 1) / 2); at = (at - 1) / 2) lc_hits_swap(h, at, (at - 1) / 2);
    }
    if (h->k && h->n == h->k && h->scores[0] > h->floor) h->floor = h->scores[0];
    return LC_OK;
}

/* Sort the documents of a heap, the best first. */
static inline void lc_hits_sort(lc_hits *h) {
    for (int64_t n = h->k ? h->n : 0; n > 1;) {
        lc_hits_swap(h, 0, --n);
        lc_hits_sink(h, n);
    }
}

LC_INLINE int lc_is_allowed(const lc_search *s, int64_t doc) { return !s->allowed || lc_get_bit(s->allowed, doc); }

/* -- phrases ------------------------------------------------------------------------------------------------------ */

static inline int lc_cursor_positions(lc_cursor *c) {
    if (c->placed == c->loaded) return LC_OK;
    int problem =
        lc_positions_decode(c->positions, c->loaded, c->loaded * c->term->size, c->counts, c->n, &c->found);
    if (!problem) c->placed = c->loaded;
    return problem;
}

/* Make room for the positions of a term in two rows. */
static inline int lc_phrase_room(lc_phrase *p, int64_t n) {
    if (n <= p->room) return LC_OK;
    int64_t room = n < 64 ? 64 : n, *one = (int64_t *)realloc(p->reached, (size_t)room * sizeof *one);
    if (one) p->reached = one;
    int64_t *other = (int64_t *)realloc(p->next, (size_t)room * sizeof *other);
    if (other) p->next = other;
    if (!one || !other) return LC_NO_MEMORY;
    p->room = room;
    return LC_OK;
}

/* Find out whether the current document of all cursors has the phrase. Places of a phrase that starts at the same word
 * are equal after subtracting the place in the phrase; each may be up to `slop` behind the one before. */
static inline int lc_phrase_check(lc_phrase *p, lc_cursor *cursors, int *out) {
    int64_t count = 0;
    *out = 0;
    for (int64_t k = 0; k < p->n; k++) {
        lc_cursor *c = &cursors[p->cursors[k]];
        int problem = lc_cursor_positions(c);
        if (problem) return problem;
        const uint32_t *found = c->found.values + c->found.at[c->at];
        int64_t n = c->found.at[c->at + 1] - c->found.at[c->at], made = 0;
        problem = lc_phrase_room(p, n);
        if (problem) return problem;
        for (int64_t i = 0, j = 0; i < n; i++) {
            int64_t place = (int64_t)found[i] - p->places[k];
            while (k && j < count && p->reached[j] < place - p->slop) j++;
            if (!k || (j < count && p->reached[j] <= place)) p->next[made++] = place;
        }
        int64_t *swapped = p->reached;
        p->reached = p->next, p->next = swapped;
        count = made;
        if (!count) return LC_OK;
    }
    *out = 1;
    return LC_OK;
}

/* -- a leading term ----------------------------------------------------------------------------------------------- */

/* Return the most that the other cursors add to the documents of a range, and move them to its start. */
static inline double lc_search_others(lc_search *s, const lc_cursor *lead, int64_t start, int64_t end) {
    double sum = 0;
    for (int64_t i = 0; i < s->n; i++) {
        lc_cursor *c = &s->cursors[i];
        float best = 0;
        if (c == lead) continue;
        lc_cursor_skip(c, start);
        for (int64_t b = c->block; b < c->term->blocks && (int64_t)c->term->firsts[b] < end; b++)
            if (c->term->bounds[b] > best) best = c->term->bounds[b];
        sum += (double)c->weight * best * LC_BOUND_SLACK;
    }
    return sum;
}

/* Score a document of the leading cursor if it may be good enough, by the scores of its terms and, as long as these are
 * unknown, by the bounds of blocks. If `every`, the others must have it. `next` is the document to go on with. */
static inline int lc_search_complete(lc_search *s, const lc_cursor *lead, int every, int64_t *next) {
    int64_t doc = lead->doc;
    double sum = lc_cursor_score(lead, s->norms) * LC_BOUND_SLACK;
    float score = 0;
    int found = 1, problem = LC_OK;
    *next = doc + 1;
    for (int64_t i = 0; i < s->n; i++) {
        lc_cursor *c = &s->cursors[i];
        if (c == lead) continue;
        lc_cursor_skip(c, doc);
        if (c->doc == doc) sum += lc_block_bound(c, c->block);
        else if (every && c->doc > *next) *next = c->doc;
        found &= c->doc == doc;
    }
    if ((every && !found) || !(sum > s->hits->floor)) return LC_OK;
    for (int64_t i = 0; i < s->n; i++) {
        lc_cursor *c = &s->cursors[i];
        if (c == lead || c->doc != doc) continue;
        sum -= lc_block_bound(c, c->block);
        problem = lc_cursor_seek(c, doc);
        if (every && c->doc > *next) *next = c->doc;
        if (problem || (every && c->doc != doc)) return problem;
        if (c->doc == doc) sum += lc_cursor_score(c, s->norms) * LC_BOUND_SLACK;
        if (!(sum > s->hits->floor)) return LC_OK;
    }
    for (int64_t i = 0; i < s->n; i++)
        if (s->cursors[i].doc == doc) score += lc_cursor_score(&s->cursors[i], s->norms);
    if (s->phrase) problem = lc_phrase_check(s->phrase, s->cursors, &found);
    else found = 1;
    return problem || !found ? problem : lc_hits_add(s->hits, doc, score);
}

/* Find documents among those of a leading cursor, with all others if `every`. */
static inline int lc_search_lead(lc_search *s, lc_cursor *lead, int every) {
    while (lead->doc != LC_NO_DOCUMENT) {
        int64_t block = lead->block;
        int64_t end = block + 1 < lead->term->blocks ? (int64_t)lead->term->firsts[block + 1] : LC_NO_DOCUMENT;
        double others = lc_search_others(s, lead, lead->doc, end);
        int problem = LC_OK;
        if (!(lc_block_bound(lead, block) + others > s->hits->floor)) {
            lc_cursor_enter(lead, block + 1);
            continue;
        }
        int64_t next = end;
        problem = lc_cursor_seek(lead, lead->doc);
        if (problem) return problem;
        if (lead->block != block) continue;
        while (lead->at < lead->n) {
            lead->doc = lead->docs[lead->at];
            if (!(lc_cursor_score(lead, s->norms) * LC_BOUND_SLACK + others > s->hits->floor) ||
                !lc_is_allowed(s, lead->doc)) {
                lead->at++;
                continue;
            }
            problem = lc_search_complete(s, lead, every, &next);
            if (problem) return problem;
            if (next >= end) break;
            lead->at = lc_lower_bound(lead->docs, lead->at + 1, lead->n, (uint32_t)next);
        }
        lc_cursor_enter(lead, block + 1);
        lc_cursor_skip(lead, next);
    }
    return LC_OK;
}

/* Find documents with all terms, and with the phrase if there is one. The shortest list leads. */
static inline int lc_search_every(lc_search *s) {
    int64_t shortest = 0;
    for (int64_t i = 1; i < s->n; i++)
        if (s->cursors[i].term->length < s->cursors[shortest].term->length) shortest = i;
    return lc_search_lead(s, &s->cursors[shortest], 1);
}

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
    else problem = s->hits->k ? lc_search_best(s) : lc_search_all(s);
    if (!problem) lc_hits_sort(s->hits);
    return problem;
}

#endif
