/* The best documents with any of some terms that many documents have, by windows of documents.
 *
 * Terms are sorted by the most that they add in a window; the first ones, which are not enough together, are passive: they
 * only complete documents that others have (Turtle and Flood, 1995, within the bounds of blocks). The scores of the active
 * ones are added up in the order of the terms; where passive ones may come in between, they are kept in one row for each
 * term before. */
#ifndef LANCECODEC_POSTING_WINDOWS_H
#define LANCECODEC_POSTING_WINDOWS_H

#include "posting_lead.h"

/* Documents of a window; windows pay from one posting for so many documents. */
enum { LC_WINDOW = 2048, LC_WINDOW_SPARSE = 64 };

/* A window, and the memory of all of them. `sorted` are numbers of terms, of which the first `passive` are so; `bounds`
 * and `active` are by term, `total` is their sum, and `passive_bound` that of the passive ones. */
typedef struct {
    int64_t start, end;
    float *rows;
    double *bounds;
    int32_t *sorted;
    uint8_t *active;
    int64_t passive;
    double total, passive_bound;
    float sums[LC_WINDOW];
    uint16_t places[LC_WINDOW];
    uint64_t seen[LC_WINDOW / 64];
} lc_windows;

/* The most that a term adds to a document of the window, to whose start it moves. */
static inline double lc_window_bound(lc_cursor *c, int64_t start, int64_t end) {
    float best = 0;
    lc_cursor_skip(c, start);
    for (int64_t b = c->block; b < c->term->blocks && (int64_t)c->term->firsts[b] < end; b++)
        if (c->term->bounds[b] > best) best = c->term->bounds[b];
    return c->doc < end ? (double)c->weight * best * LC_BOUND_SLACK : 0;
}

/* Sort the terms by their bounds, and set the number of passive ones. */
static inline void lc_windows_sort(const lc_search *s, lc_windows *w) {
    double sum = 0;
    w->passive = 0, w->total = w->passive_bound = 0;
    for (int64_t i = 0; i < s->n; i++) {
        int32_t term = w->sorted[i];
        int64_t j = i;
        for (; j > 0 && w->bounds[w->sorted[j - 1]] > w->bounds[term]; j--) w->sorted[j] = w->sorted[j - 1];
        w->sorted[j] = term;
        w->total += w->bounds[term];
    }
    for (; w->passive < s->n; w->passive++) {
        sum += w->bounds[w->sorted[w->passive]];
        if (sum > s->hits->floor) break;
        w->passive_bound = sum;
    }
}

/* Add the scores of a term in the window to a row; blocks with no document that is good enough are left out. */
static inline int lc_window_fill(const lc_search *s, lc_windows *w, lc_cursor *c, double others, float *row, int mark) {
    while (c->doc < w->end) {
        if (!(lc_block_bound(c, c->block) + others > s->hits->floor)) {
            /* What follows the window in the block may be good enough together with others. */
            int64_t block = c->block + 1;
            if (block < c->term->blocks && (int64_t)c->term->firsts[block] <= w->end) lc_cursor_enter(c, block);
            else lc_cursor_skip(c, w->end);
            continue;
        }
        int problem = lc_cursor_settle(c);
        if (problem) return problem;
        if (c->pending || c->doc >= w->end) continue;
        lc_cursor_score_block(c, s->norms);
        int64_t at = c->at, n = w->end - c->docs[c->n - 1] > 0 ? c->n : lc_lower_bound(c->docs, at, c->n, (uint32_t)w->end);
        const uint32_t start = (uint32_t)w->start;
        for (int64_t i = at; i < n; i++) row[c->docs[i] - start] += c->scores[i];
        for (int64_t i = at; mark && i < n; i++) {
            uint32_t place = c->docs[i] - start;
            w->seen[place >> 6] |= (uint64_t)1 << (place & 63);
        }
        c->at = n;
        if (n == c->n) lc_cursor_enter(c, c->block + 1);
        else c->doc = c->docs[n];
    }
    return LC_OK;
}

LC_CLONES static void lc_window_add(const float *LC_RESTRICT row, float *LC_RESTRICT sums) {
    for (int i = 0; i < LC_WINDOW; i++) sums[i] += row[i];
}

/* List the places of sums above the least one; most groups of them have none. */
LC_CLONES static int64_t lc_window_above(const float *sums, float least, uint16_t *places) {
    int64_t count = 0;
    for (int from = 0; from < LC_WINDOW; from += 32) {
        int any = 0;
        for (int i = 0; i < 32; i++) any |= sums[from + i] > least;
        if (!any) continue;
        for (int i = from; i < from + 32; i++) {
            places[count] = (uint16_t)i;
            count += sums[i] > least;
        }
    }
    return count;
}

/* Return whether the active terms need one row each: the sum of one alone is its score. */
LC_INLINE int lc_window_apart(const lc_search *s, const lc_windows *w) { return w->passive && s->n - w->passive > 1; }

/* Offer a document of the window after adding the scores of passive terms, the largest bounds first. */
static inline int lc_window_complete(lc_search *s, lc_windows *w, int64_t place) {
    int64_t doc = w->start + place;
    double sum = w->sums[place] * LC_BOUND_SLACK + w->passive_bound;
    float score = 0;
    if (!(sum > s->hits->floor)) return LC_OK;
    for (int64_t i = w->passive - 1; i >= 0; i--) {
        lc_cursor *c = &s->cursors[w->sorted[i]];
        if (!w->bounds[w->sorted[i]]) break;
        sum -= w->bounds[w->sorted[i]];
        lc_cursor_skip(c, doc);
        if (c->doc != doc) {
            if (!(sum > s->hits->floor)) return LC_OK;
            continue;
        }
        int problem = lc_cursor_seek(c, doc);
        if (problem) return problem;
        if (c->doc == doc) sum += lc_cursor_score(c, s->norms) * LC_BOUND_SLACK;
        if (!(sum > s->hits->floor)) return LC_OK;
    }
    if (!w->passive) return lc_hits_add(s->hits, doc, w->sums[place]);
    int apart = lc_window_apart(s, w);
    for (int64_t i = 0; i < s->n; i++) {
        const lc_cursor *c = &s->cursors[i];
        if (w->active[i]) score += apart ? w->rows[i * LC_WINDOW + place] : w->sums[place];
        else if (c->doc == doc && !c->pending) score += lc_cursor_score(c, s->norms);
    }
    return lc_hits_add(s->hits, doc, score);
}

/* Add up the scores of the active terms in the window. */
static inline int lc_window_sum(lc_search *s, lc_windows *w, int mark) {
    int apart = lc_window_apart(s, w);
    memset(w->sums, 0, sizeof w->sums);
    if (mark) memset(w->seen, 0, sizeof w->seen);
    for (int64_t i = 0; i < s->n; i++) {
        float *row = apart ? &w->rows[i * LC_WINDOW] : w->sums;
        if (apart) memset(row, 0, LC_WINDOW * sizeof *row);
        if (!w->active[i]) continue;
        int problem = lc_window_fill(s, w, &s->cursors[i], w->total - w->bounds[i], row, mark);
        if (problem) return problem;
        if (apart) lc_window_add(row, w->sums);
    }
    return LC_OK;
}

/* Search the window. */
static inline int lc_window_run(lc_search *s, lc_windows *w) {
    int mark = s->hits->floor < 0, problem;
    int64_t count = 0;
    for (int64_t i = 0; i < s->n; i++) w->active[w->sorted[i]] = i >= w->passive;
    problem = lc_window_sum(s, w, mark);
    if (problem) return problem;
    if (mark) {
        for (int64_t place = 0; place < LC_WINDOW; place++)
            if (w->seen[place >> 6] >> (place & 63) & 1) w->places[count++] = (uint16_t)place;
    } else {
        count = lc_window_above(w->sums, lc_least_score(s->hits->floor, w->passive_bound), w->places);
    }
    for (int64_t k = 0; k < count; k++) {
        if (!lc_is_allowed(s, w->start + w->places[k])) continue;
        problem = lc_window_complete(s, w, w->places[k]);
        if (problem) return problem;
    }
    return LC_OK;
}

/* Return the first document from `position` on of the terms that are not passive in all of the lists. */
static inline int64_t lc_windows_next(lc_search *s, lc_windows *w, int64_t position) {
    int64_t first = LC_NO_DOCUMENT;
    for (int64_t i = 0; i < s->n; i++) w->bounds[i] = lc_cursor_bound(&s->cursors[i]);
    lc_windows_sort(s, w);
    for (int64_t i = w->passive; i < s->n; i++) {
        lc_cursor *c = &s->cursors[w->sorted[i]];
        lc_cursor_skip(c, position);
        if (c->doc < first) first = c->doc;
    }
    return first;
}

/* Return whether windows pay for the lists. */
static inline int lc_windows_pay(const lc_search *s) {
    int64_t postings = 0;
    for (int64_t i = 0; i < s->n; i++) postings += s->cursors[i].term->length;
    return postings > s->documents / LC_WINDOW_SPARSE;
}

static inline int lc_windows_search(lc_search *s, lc_windows *w) {
    int64_t first;
    for (int64_t position = 0; (first = lc_windows_next(s, w, position)) < s->documents; position = w->end) {
        if (w->passive == s->n - 1) return lc_search_lead(s, &s->cursors[w->sorted[w->passive]], 0);
        w->start = first, w->end = first + LC_WINDOW;
        for (int64_t i = 0; i < s->n; i++) w->bounds[i] = lc_window_bound(&s->cursors[i], w->start, w->end);
        lc_windows_sort(s, w);
        if (w->passive == s->n) continue;
        int problem = lc_window_run(s, w);
        if (problem) return problem;
    }
    return LC_OK;
}

/* Find the best documents with any of the terms. */
static inline int lc_search_windows(lc_search *s) {
    lc_windows *w = (lc_windows *)malloc(sizeof *w);
    int problem = LC_NO_MEMORY;
    if (!w) return problem;
    w->rows = (float *)malloc((size_t)s->n * LC_WINDOW * sizeof *w->rows);
    w->bounds = (double *)malloc((size_t)s->n * sizeof *w->bounds);
    w->sorted = (int32_t *)malloc((size_t)s->n * sizeof *w->sorted);
    w->active = (uint8_t *)malloc((size_t)s->n);
    for (int64_t i = 0; w->sorted && i < s->n; i++) w->sorted[i] = (int32_t)i;
    if (w->rows && w->bounds && w->sorted && w->active) problem = lc_windows_search(s, w);
    free(w->rows);
    free(w->bounds);
    free(w->sorted);
    free(w->active);
    free(w);
    return problem;
}

#endif
