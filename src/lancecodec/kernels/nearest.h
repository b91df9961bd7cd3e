/* The k vectors that are nearest to each of several queries.
 *
 * A heap for each query has the best candidates so far, the worst on top. Candidates are ordered by distance, then by
 * row id; those whose distance is NaN are left out. */
#ifndef LANCECODEC_NEAREST_H
#define LANCECODEC_NEAREST_H

#include <stdlib.h>

#include "distances.h"

/* Memory of a heap at first, in candidates. */
#define LC_FIRST_CANDIDATES 64

typedef struct {
    float distance;
    uint64_t id, address;
} lc_candidate;

typedef struct {
    lc_candidate *items;
    int64_t n, room;
} lc_candidates;

/* Heaps of at most k candidates, with distances from `lowest` to below `below`, or any distances. */
typedef struct {
    lc_candidates *heaps;
    double *lengths;
    float *distances;
    int64_t queries, k;
    int has_lowest, has_below;
    float lowest, below;
} lc_nearest;

/* Rows of vectors: validity bits from bit `skip` on or NULL, addresses or a first address, ids or NULL. */
typedef struct {
    const uint8_t *valid;
    int64_t skip;
    const uint8_t *addresses, *ids;
    uint64_t base;
} lc_vector_rows;

/* Lists of vectors: n + 1 offsets to the vectors of the rows 0 to n - 1, and the validity of these vectors. */
typedef struct {
    const uint8_t *offsets, *valid;
    int64_t skip;
    int wide;
    const uint8_t *rows;
    int64_t n, vectors;
} lc_vector_lists;

LC_INLINE int lc_is_farther(const lc_candidate *a, const lc_candidate *b) {
    return a->distance > b->distance || (a->distance == b->distance && a->id > b->id);
}

static inline void lc_candidates_sink(lc_candidate *items, int64_t n, int64_t at, lc_candidate item) {
    for (int64_t child = 2 * at + 1; child < n; child = 2 * at + 1) {
        if (child + 1 < n && lc_is_farther(&items[child + 1], &items[child])) child++;
        if (!lc_is_farther(&items[child], &item)) break;
        items[at] = items[child];
        at = child;
    }
    items[at] = item;
}

static inline void lc_candidates_rise(lc_candidate *items, int64_t at, lc_candidate item) {
    for (; at > 0 && lc_is_farther(&item, &items[(at - 1) / 2]); at = (at - 1) / 2) items[at] = items[(at - 1) / 2];
    items[at] = item;
}

/* Offer a candidate. */
static inline int lc_candidates_add(lc_candidates *heap, int64_t k, lc_candidate item) {
    if (heap->n == k) {
        if (lc_is_farther(&heap->items[0], &item)) lc_candidates_sink(heap->items, heap->n, 0, item);
        return LC_OK;
    }
    if (heap->n == heap->room) {
        int64_t room = heap->room ? 2 * heap->room : k < LC_FIRST_CANDIDATES ? k : LC_FIRST_CANDIDATES;
        if (room > k) room = k;
        lc_candidate *items = (lc_candidate *)realloc(heap->items, (size_t)room * sizeof *items);
        if (!items) return LC_NO_MEMORY;
        heap->items = items, heap->room = room;
    }
    lc_candidates_rise(heap->items, heap->n++, item);
    return LC_OK;
}

static inline int lc_nearest_open(lc_nearest *s, int64_t queries, int64_t k) {
    memset(s, 0, sizeof *s);
    s->queries = queries, s->k = k;
    s->heaps = (lc_candidates *)calloc((size_t)queries + 1, sizeof *s->heaps);
    s->lengths = (double *)calloc((size_t)queries + 1, sizeof *s->lengths);
    s->distances = (float *)malloc(((size_t)queries + 1) * LC_VECTOR_BLOCK * sizeof *s->distances);
    return s->heaps && s->lengths && s->distances ? LC_OK : LC_NO_MEMORY;
}

static inline void lc_nearest_close(lc_nearest *s) {
    for (int64_t k = 0; s->heaps && k < s->queries; k++) free(s->heaps[k].items);
    free(s->heaps);
    free(s->lengths);
    free(s->distances);
    s->heaps = 0, s->lengths = 0, s->distances = 0;
}

LC_INLINE int lc_nearest_accepts(const lc_nearest *s, float distance) {
    if (distance != distance) return 0;
    return !(s->has_lowest && !(distance >= s->lowest)) && !(s->has_below && !(distance < s->below));
}

LC_INLINE int64_t lc_vector_row(const uint8_t *rows, int64_t i) {
    if (!rows) return i;
    int64_t row;
    memcpy(&row, rows + 8 * i, sizeof row);
    return row;
}

/* Offer vector i of a selection, which is row `row`, to the heap of a query. */
static inline int lc_nearest_offer(lc_nearest *s, int64_t query, float distance, const lc_vector_rows *r, int64_t i,
                                   int64_t row) {
    lc_candidate item;
    if (!lc_nearest_accepts(s, distance)) return LC_OK;
    if (r->valid && !lc_get_bit(r->valid, r->skip + row)) return LC_OK;
    item.distance = distance;
    item.address = r->addresses ? lc_load_u64(r->addresses + 8 * i) : r->base + (uint64_t)row;
    item.id = r->ids ? lc_load_u64(r->ids + 8 * i) : item.address;
    return lc_candidates_add(&s->heaps[query], s->k, item);
}

static inline void lc_nearest_measure(lc_nearest *s, const lc_queries *q, int64_t dimension, int element) {
    if (q->metric != LC_COSINE) return;
    for (int64_t k = 0; k < q->n; k++) s->lengths[k] = lc_query_length(q, k, dimension, element);
}

/* Return whether all of n numbers are at least 0 and below a limit. */
static inline int lc_numbers_within(const uint8_t *numbers, int64_t n, int64_t limit) {
    int64_t wrong = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t number;
        memcpy(&number, numbers + 8 * i, sizeof number);
        wrong |= number < 0 || number >= limit;
    }
    return !wrong;
}

/* Offer vectors to all queries. */
static inline int lc_nearest_add(lc_nearest *s, const lc_vectors *v, const lc_queries *q, const lc_vector_rows *r) {
    int problem = LC_OK;
    lc_nearest_measure(s, q, v->dimension, v->element);
    for (int64_t first = 0; first < v->n; first += LC_VECTOR_BLOCK) {
        int64_t stop = first + LC_VECTOR_BLOCK < v->n ? first + LC_VECTOR_BLOCK : v->n;
        lc_distances(v, first, stop, q, s->lengths, s->distances, LC_VECTOR_BLOCK);
        for (int64_t k = 0; k < q->n; k++) {
            const float *distances = s->distances + k * LC_VECTOR_BLOCK;
            const lc_candidates *heap = &s->heaps[k];
            for (int64_t i = first; i < stop && !problem; i++) {
                if (heap->n == s->k && distances[i - first] > heap->items[0].distance) continue;
                problem = lc_nearest_offer(s, k, distances[i - first], r, i, lc_vector_row(v->rows, i));
            }
        }
    }
    return problem;
}

/* Sum over all queries of the distances of the nearest vectors [begin, end); NaN without any. */
static inline float lc_nearest_of_list(lc_nearest *s, const lc_vectors *v, const lc_vector_lists *l, const lc_queries *q,
                                       int64_t begin, int64_t end) {
    double sum = 0;
    for (int64_t k = 0; k < q->n; k++) {
        lc_queries one = {q->values + k * lc_query_size(v->dimension, v->element, q->metric), 1, q->metric};
        float best = NAN;
        for (int64_t first = begin; first < end; first += LC_VECTOR_BLOCK) {
            int64_t stop = first + LC_VECTOR_BLOCK < end ? first + LC_VECTOR_BLOCK : end;
            lc_distances(v, first, stop, &one, s->lengths + k, s->distances, LC_VECTOR_BLOCK);
            for (int64_t i = first; i < stop; i++) {
                float distance = s->distances[i - first];
                if (l->valid && !lc_get_bit(l->valid, l->skip + i)) continue;
                if (!(best <= distance) && distance == distance) best = distance;
            }
        }
        sum += best;
    }
    return (float)sum;
}

/* Offer rows, each a list of vectors, to the first heap. */
static inline int lc_nearest_add_lists(lc_nearest *s, const lc_vectors *v, const lc_vector_lists *l, const lc_queries *q,
                                       const lc_vector_rows *r) {
    int problem = LC_OK;
    lc_nearest_measure(s, q, v->dimension, v->element);
    for (int64_t i = 0; i < l->n && !problem; i++) {
        int64_t row = lc_vector_row(l->rows, i);
        int64_t begin = lc_load_offset(l->offsets, l->wide, row), end = lc_load_offset(l->offsets, l->wide, row + 1);
        if (begin < 0 || end < begin || end > l->vectors) return LC_BAD_OFFSETS;
        if (begin == end) continue;
        problem = lc_nearest_offer(s, 0, lc_nearest_of_list(s, v, l, q, begin, end), r, i, row);
    }
    return problem;
}

/* Offer all candidates of other heaps with as many queries. */
static inline int lc_nearest_merge(lc_nearest *s, const lc_nearest *other) {
    int problem = LC_OK;
    for (int64_t k = 0; k < s->queries; k++)
        for (int64_t i = 0; i < other->heaps[k].n && !problem; i++)
            problem = lc_candidates_add(&s->heaps[k], s->k, other->heaps[k].items[i]);
    return problem;
}

/* Take the farthest candidate out of a heap, which has one. */
static inline lc_candidate lc_candidates_pop(lc_candidates *heap) {
    lc_candidate top = heap->items[0];
    int64_t n = --heap->n;
    if (n > 0) lc_candidates_sink(heap->items, n, 0, heap->items[n]);
    return top;
}

/* Write the numbers of the k least of n distances, ascending, equal ones by number. Distances that are NaN are left out;
 * `count` is how many remain. */
static inline int lc_least_distances(const uint8_t *distances, int64_t n, int64_t k, uint8_t *numbers, int64_t *count) {
    lc_candidates heap = {0};
    int problem = LC_OK;
    for (int64_t i = 0; i < n && !problem; i++) {
        lc_candidate item = {0, (uint64_t)i, 0};
        memcpy(&item.distance, distances + 4 * i, sizeof item.distance);
        if (item.distance != item.distance || (heap.n == k && item.distance >= heap.items[0].distance)) continue;
        problem = lc_candidates_add(&heap, k, item);
    }
    *count = heap.n;
    while (!problem && heap.n > 0) {
        uint64_t number = lc_candidates_pop(&heap).id;
        lc_store_u64(numbers + 8 * heap.n, number);
    }
    free(heap.items);
    return problem;
}

/* Write the candidates of a query, the nearest first, and forget them. */
static inline void lc_nearest_drain(lc_nearest *s, int64_t query, uint8_t *distances, uint8_t *ids, uint8_t *addresses) {
    lc_candidates *heap = &s->heaps[query];
    while (heap->n > 0) {
        lc_candidate top = lc_candidates_pop(heap);
        int64_t n = heap->n;
        memcpy(distances + 4 * n, &top.distance, sizeof top.distance);
        lc_store_u64(ids + 8 * n, top.id);
        lc_store_u64(addresses + 8 * n, top.address);
    }
}

#endif
