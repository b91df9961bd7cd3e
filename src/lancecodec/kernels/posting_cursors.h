/* Places in posting lists, and the documents found so far. */
#ifndef LANCECODEC_POSTING_CURSORS_H
#define LANCECODEC_POSTING_CURSORS_H

#include <math.h>

#include "bits.h"
#include "term_positions.h"

#define LC_NO_DOCUMENT INT64_MAX
/* Bounds are sums in another order than scores, so they are a bit more. */
#define LC_BOUND_SLACK (1 + 1e-6)

/* Place in a list. If `pending`, `block` is not decoded yet, and no document from the last place to `doc` is left out. */
typedef struct {
    const lc_term *term;
    const lc_positions *positions;
    float weight;
    int pending;
    int64_t block, loaded, placed, scored, at, n, doc;
    uint32_t docs[LC_TERM_BLOCK], counts[LC_TERM_BLOCK];
    float scores[LC_TERM_BLOCK];
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
    c->pending = 1, c->block = 0, c->loaded = c->placed = c->scored = -1, c->at = c->n = 0;
    c->doc = term->firsts[0];
    c->found.values = 0, c->found.room = 0;
}

/* The first of numbers [at, n) that is not below a target; n without one. It is often near. */
LC_INLINE int64_t lc_lower_bound(const uint32_t *values, int64_t at, int64_t n, uint32_t target) {
    int64_t near = at + 8;
    if (near < n && values[near - 1] >= target) {
        int64_t below = 0;
        for (int i = 0; i < 8; i++) below += values[at + i] < target;
        return at + below;
    }
    if (near < n) at = near;
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

LC_CLONES static void lc_block_scores(const uint32_t *docs, const uint32_t *counts, int64_t n, const float *norms,
                                      float weight, float *LC_RESTRICT scores) {
    for (int64_t i = 0; i < n; i++) scores[i] = weight * lc_term_share(counts[i], norms[docs[i]]);
}

/* Score all documents of the decoded block. */
static inline void lc_cursor_score_block(lc_cursor *c, const float *norms) {
    if (c->scored == c->loaded) return;
    lc_block_scores(c->docs, c->counts, c->n, norms, c->weight, c->scores);
    c->scored = c->loaded;
}

/* Return a number that all scores exceed which, with what is added at most, exceed the worst that counts. */
static inline float lc_least_score(double floor, double others) {
    float least = (float)((floor - others) / LC_BOUND_SLACK);
    return nextafterf(least, -INFINITY);
}

/* List the places from `at` on of scores above the least one. */
static inline int64_t lc_places_above(const float *scores, int64_t at, int64_t n, float least, uint16_t *places) {
    int64_t count = 0;
    for (int64_t i = at; i < n; i++) {
        places[count] = (uint16_t)i;
        count += scores[i] > least;
    }
    return count;
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

#endif
