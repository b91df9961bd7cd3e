/* Walks of the graphs of partitions (Malkov and Yashunin, Efficient and robust approximate nearest neighbor search using
 * hierarchical navigable small world graphs, 2018).
 *
 * A walk goes down the levels to the nearest node of each, and then searches the lowest level: nodes are visited the
 * nearest first, until `ef` found rows are nearer than the next one. Rows that may not be found are passed. Each list of
 * neighbors is read once at most, so a walk ends whatever the graph. Partitions where a walk would compare more than a
 * scan are scanned. */
#ifndef LANCECODEC_GRAPH_WALK_H
#define LANCECODEC_GRAPH_WALK_H

#include "graph_pool.h"
#include "partitions.h"

/* Rows of a partition that are looked at for the share that may be found. */
#define LC_SHARE_SAMPLE 64
/* Memory of a heap at first, in nodes. */
#define LC_FIRST_STEPS 256
/* Largest `ef` for which nodes are kept in order: moving more of them takes longer than a heap. */
#define LC_POOL_MOST 1024
/* Bytes of a vector that are loaded ahead of its comparison. */
#define LC_WALK_AHEAD 512

/* Levels of nodes: `bounds` has the first node of each and the end (64 bits), `nodes` their rows, ascending in a level,
 * and `ends` where their neighbors begin, and the end (32 bits). */
typedef struct {
    const uint8_t *bounds, *nodes, *ends, *neighbors;
    int64_t levels, entry, rows;
} lc_graph;

typedef struct {
    float distance;
    uint32_t row;
} lc_step;

typedef struct {
    lc_step *items;
    int64_t n, room;
} lc_steps;

/* Memory of walks: bits of the visited rows, nodes in order, nodes to visit and found rows in heaps, and rows to compare
 * next. */
typedef struct {
    uint8_t *visited;
    lc_pool pool;
    lc_steps ahead, found;
    int64_t rows[LC_VECTOR_BLOCK], waiting;
} lc_walk;

LC_INLINE int64_t lc_graph_bound(const lc_graph *g, int64_t level) {
    return (int64_t)lc_load_u64(g->bounds + 8 * level);
}

/* Position of a node of a level, -1 if it is not there. */
LC_INLINE int64_t lc_graph_place(const lc_graph *g, int64_t level, uint32_t node) {
    int64_t low = lc_graph_bound(g, level), high = lc_graph_bound(g, level + 1), stop = high;
    if (!level && high == g->rows) return node < high ? (int64_t)node : -1;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (lc_load_u32(g->nodes + 4 * middle) < node) low = middle + 1;
        else high = middle;
    }
    return low < stop && lc_load_u32(g->nodes + 4 * low) == node ? low : -1;
}

/* Highest level that has nodes; -1 without any. */
LC_INLINE int64_t lc_graph_top(const lc_graph *g) {
    int64_t level = g->levels - 1;
    while (level >= 0 && lc_graph_bound(g, level) == lc_graph_bound(g, level + 1)) level--;
    return level;
}

/* -- checks ------------------------------------------------------------------------------------------------------ */

/* Check the nodes of a level: ascending, and on the level below. */
static inline int lc_graph_check_nodes(const lc_graph *g, int64_t level) {
    int64_t first = lc_graph_bound(g, level), stop = lc_graph_bound(g, level + 1);
    for (int64_t i = first; i < stop; i++) {
        uint32_t node = lc_load_u32(g->nodes + 4 * i);
        if (node >= g->rows || (i > first && node <= lc_load_u32(g->nodes + 4 * (i - 1)))) return LC_BAD_ROW;
        if (level && lc_graph_place(g, level - 1, node) < 0) return LC_BAD_LEVEL;
    }
    return LC_OK;
}

static inline int lc_graph_check_edges(const lc_graph *g, int64_t level) {
    int64_t stop = lc_load_u32(g->ends + 4 * lc_graph_bound(g, level + 1));
    for (int64_t i = lc_load_u32(g->ends + 4 * lc_graph_bound(g, level)); i < stop; i++)
        if (lc_graph_place(g, level, lc_load_u32(g->neighbors + 4 * i)) < 0) return LC_BAD_INDEX;
    return LC_OK;
}

/* Check a graph of `n` nodes of all levels, and `edges` neighbors. */
static inline int lc_graph_check(const lc_graph *g, int64_t n, int64_t edges) {
    int64_t top, last = 0;
    int problem = LC_OK;
    for (int64_t level = 0; level <= g->levels; level++) {
        int64_t bound = lc_graph_bound(g, level);
        if (bound < last || bound > n || (!level && bound)) return LC_BAD_COUNT;
        last = bound;
    }
    if (last != n) return LC_BAD_COUNT;
    for (int64_t i = 0; i <= n; i++) {
        int64_t end = lc_load_u32(g->ends + 4 * i);
        if (end > edges || (i && end < lc_load_u32(g->ends + 4 * (i - 1)))) return LC_BAD_OFFSETS;
    }
    for (int64_t level = 0; level < g->levels && !problem; level++) problem = lc_graph_check_nodes(g, level);
    for (int64_t level = 0; level < g->levels && !problem; level++) problem = lc_graph_check_edges(g, level);
    if (problem) return problem;
    top = lc_graph_top(g);
    if (top >= 0 && (g->entry < 0 || g->entry >= g->rows || lc_graph_place(g, top, (uint32_t)g->entry) < 0))
        return LC_BAD_HEADER;
    return LC_OK;
}

/* -- heaps ------------------------------------------------------------------------------------------------------- */

/* Return whether a step goes before another: the nearer one in heaps of steps ahead, the farther one in those found. */
LC_INLINE int lc_step_before(lc_step a, lc_step b, int far) {
    if (a.distance != b.distance) return far ? a.distance > b.distance : a.distance < b.distance;
    return far ? a.row > b.row : a.row < b.row;
}

LC_INLINE void lc_steps_sink(lc_steps *heap, lc_step item, int far) {
    int64_t at = 0;
    for (int64_t child = 1; child < heap->n; child = 2 * at + 1) {
        if (child + 1 < heap->n && lc_step_before(heap->items[child + 1], heap->items[child], far)) child++;
        if (!lc_step_before(heap->items[child], item, far)) break;
        heap->items[at] = heap->items[child];
        at = child;
    }
    heap->items[at] = item;
}

LC_INLINE int lc_steps_push(lc_steps *heap, lc_step item, int far) {
    if (heap->n == heap->room) {
        int64_t room = heap->room ? 2 * heap->room : LC_FIRST_STEPS;
        lc_step *items = (lc_step *)realloc(heap->items, (size_t)room * sizeof *items);
        if (!items) return LC_NO_MEMORY;
        heap->items = items, heap->room = room;
    }
    int64_t at = heap->n++;
    for (; at > 0 && lc_step_before(item, heap->items[(at - 1) / 2], far); at = (at - 1) / 2)
        heap->items[at] = heap->items[(at - 1) / 2];
    heap->items[at] = item;
    return LC_OK;
}

/* Remove the first step; there must be one. */
LC_INLINE lc_step lc_steps_pop(lc_steps *heap, int far) {
    lc_step first = heap->items[0];
    if (--heap->n > 0) lc_steps_sink(heap, heap->items[heap->n], far);
    return first;
}

/* -- comparisons of picked rows ---------------------------------------------------------------------------------- */

/* Squared distances of picked rows of bytes. */
LC_CLONES static void lc_picked_squares(const uint8_t *codes, const uint8_t *query, int64_t dimension,
                                        const int64_t *rows, float factor, int64_t n, float *out) {
    for (int64_t i = 0; i < n; i++) {
        const uint8_t *p = codes + rows[i] * dimension;
        uint64_t sum = 0;
        for (int64_t first = 0; first < dimension; first += LC_SQUARES) {
            int64_t stop = first + LC_SQUARES < dimension ? first + LC_SQUARES : dimension;
            int32_t part = 0;
            for (int64_t d = first; d < stop; d++) {
                int16_t x = (int16_t)((int16_t)p[d] - (int16_t)query[d]);
                part += (int32_t)x * x;
            }
            sum += (uint32_t)part;
        }
        out[i] = (float)sum * factor;
    }
}

static inline void lc_picked_products(const uint8_t *codes, int64_t bytes, int64_t column, int64_t row,
                                      const int64_t *rows, const float *table, float first, int64_t n, float *out) {
    for (int64_t i = 0; i < n; i++) {
        const uint8_t *p = codes + rows[i] * row;
        float even = first, odd = 0;
        int64_t k = 0;
        for (; k + 2 <= bytes; k += 2)
            even += table[256 * k + p[k * column]], odd += table[256 * k + 256 + p[(k + 1) * column]];
        out[i] = k < bytes ? even + odd + table[256 * k + p[k * column]] : even + odd;
    }
}

/* Distances of at most a block of rows, by their numbers, for all kinds but RaBitQ. */
static inline void lc_stored_picked(const lc_stored *s, const lc_probe *q, const lc_partition *p, const int64_t *rows,
                                    int64_t n, lc_scratch *m) {
    if (s->storage == LC_STORED_FLAT) {
        lc_vectors vectors = {p->codes, s->dimension, s->element, (const uint8_t *)rows, n};
        lc_queries queries = {q->vector, 1, s->metric};
        lc_distances(&vectors, 0, n, &queries, &m->length, m->out, LC_VECTOR_BLOCK);
    } else if (s->storage == LC_STORED_SCALAR && s->metric != LC_DOT) {
        lc_picked_squares(p->codes, m->bytes, s->dimension, rows, s->step * s->step, n, m->out);
    } else if (s->storage == LC_STORED_SCALAR) {
        for (int64_t i = 0; i < n; i++) {
            lc_byte_products(p->codes + rows[i] * s->dimension, m->query, s->dimension, 1, &m->out[i]);
            m->out[i] = 1 - (m->out[i] * s->step + s->start * m->total);
        }
    } else {
        int64_t bytes = s->parts * s->bits / 8;
        const float *table = s->bits == 4 ? m->joined : m->table;
        int64_t column = s->by_column ? p->n : 1, row = s->by_column ? 1 : bytes;
        lc_picked_products(p->codes, bytes, column, row, rows, table, s->metric == LC_DOT ? 1 : 0, n, m->out);
    }
}

LC_INLINE void lc_stored_expect(const lc_stored *s, const lc_partition *p, uint32_t row) {
#if defined(__GNUC__) || defined(__clang__)
    int64_t size = s->storage == LC_STORED_FLAT      ? s->dimension * lc_element_width(s->element)
                   : s->storage == LC_STORED_SCALAR ? s->dimension
                                                    : s->parts * s->bits / 8;
    const uint8_t *first = p->codes + row * (s->by_column ? 1 : size);
    for (int64_t at = 0; at < size && at < LC_WALK_AHEAD; at += 64) __builtin_prefetch(first + at);
#else
    (void)s, (void)p, (void)row;
#endif
}

/* -- walks ------------------------------------------------------------------------------------------------------- */

/* What a walk reads and where it keeps its state. */
typedef struct {
    const lc_stored *s;
    const lc_probe *q;
    const lc_partition *p;
    const lc_graph *g;
    lc_scratch *m;
    lc_walk *w;
    lc_nearest *best;
    int64_t ef;
} lc_walker;

/* Take a visited row into account. */
static inline int lc_walk_consider(const lc_walker *k, uint32_t row, float distance) {
    lc_steps *found = &k->w->found;
    lc_step step = {distance == distance ? distance : INFINITY, row};
    if (found->n == k->ef && !(step.distance <= found->items[0].distance)) return LC_OK;
    int problem = lc_steps_push(&k->w->ahead, step, 0);
    if (problem || distance != distance || (k->best->has_lowest && !(distance >= k->best->lowest))) return problem;
    if (!lc_probe_allows(k->q, lc_load_u64(k->p->addresses + 8 * (int64_t)row))) return LC_OK;
    if (found->n < k->ef) return lc_steps_push(found, step, 1);
    if (lc_step_before(found->items[0], step, 1)) lc_steps_sink(found, step, 1);
    return LC_OK;
}

/* Compare the rows that wait. */
static inline int lc_walk_compare(const lc_walker *k, int in_order) {
    lc_walk *w = k->w;
    int problem = LC_OK;
    lc_stored_picked(k->s, k->q, k->p, w->rows, w->waiting, k->m);
    for (int64_t i = 0; i < w->waiting && !problem; i++) {
        float distance = k->m->out[i];
        if (!in_order) problem = lc_walk_consider(k, (uint32_t)w->rows[i], distance);
        else if (distance != distance) distance = INFINITY;
        if (in_order && !lc_pool_rejects(&w->pool, distance))
            lc_pool_add(&w->pool, distance, (uint32_t)w->rows[i]);
    }
    w->waiting = 0;
    return problem;
}

/* Visit the neighbors of a node of the lowest level; nodes go to the pool if `in_order`, or to the heaps. */
LC_INLINE int lc_walk_neighbors(const lc_walker *k, uint32_t node, int in_order) {
    const lc_graph *g = k->g;
    lc_walk *w = k->w;
    int64_t place = lc_graph_place(g, 0, node), stop = lc_load_u32(g->ends + 4 * (place + 1));
    int problem = LC_OK;
    for (int64_t i = lc_load_u32(g->ends + 4 * place); i < stop && !problem; i++) {
        uint32_t row = lc_load_u32(g->neighbors + 4 * i);
        uint8_t *byte = &w->visited[row >> 3], bit = (uint8_t)(1 << (row & 7));
        if (*byte & bit) continue;
        *byte |= bit;
        lc_stored_expect(k->s, k->p, row);
        w->rows[w->waiting++] = row;
        if (w->waiting == LC_VECTOR_BLOCK) problem = lc_walk_compare(k, in_order);
    }
    return problem || !w->waiting ? problem : lc_walk_compare(k, in_order);
}

LC_INLINE float lc_walk_distance(const lc_walker *k, uint32_t row) {
    int64_t one = row;
    lc_stored_picked(k->s, k->q, k->p, &one, 1, k->m);
    return k->m->out[0];
}

/* Nearest node that can be reached from one without a step away from the query. */
static inline lc_step lc_walk_down(const lc_walker *k, int64_t level, lc_step from) {
    const lc_graph *g = k->g;
    for (lc_step next = from;; from = next) {
        int64_t place = lc_graph_place(g, level, from.row), stop = lc_load_u32(g->ends + 4 * (place + 1));
        for (int64_t i = lc_load_u32(g->ends + 4 * place); i < stop;) {
            int64_t n = 0;
            for (; n < LC_VECTOR_BLOCK && i < stop; i++, n++) {
                uint32_t row = lc_load_u32(g->neighbors + 4 * i);
                lc_stored_expect(k->s, k->p, row);
                k->w->rows[n] = row;
            }
            lc_stored_picked(k->s, k->q, k->p, k->w->rows, n, k->m);
            for (int64_t j = 0; j < n; j++)
                if (k->m->out[j] < next.distance) next.distance = k->m->out[j], next.row = (uint32_t)k->w->rows[j];
        }
        if (next.row == from.row) return from;
    }
}

/* Begin to visit the lowest level. */
static inline void lc_walk_begin(const lc_walker *k, lc_step from) {
    lc_walk *w = k->w;
    memset(w->visited, 0, (size_t)(k->g->rows + 7) / 8);
    w->ahead.n = w->found.n = w->waiting = w->pool.n = w->pool.next = 0;
    w->visited[from.row >> 3] |= (uint8_t)(1 << (from.row & 7));
}

/* Walk the lowest level as if all rows may be found, and offer what is found; `whole` if that is so for these rows. */
static inline int lc_walk_in_order(const lc_walker *k, lc_step from, int *whole) {
    lc_pool *pool = &k->w->pool;
    uint32_t node;
    int problem = LC_OK;
    lc_walk_begin(k, from);
    lc_pool_add(pool, from.distance == from.distance ? from.distance : INFINITY, from.row);
    while (!problem && lc_pool_take(pool, &node)) problem = lc_walk_neighbors(k, node, 1);
    *whole = !pool->n || pool->distances[pool->n - 1] < INFINITY;
    for (int64_t i = 0; i < pool->n && *whole; i++)
        *whole = lc_probe_allows(k->q, lc_load_u64(k->p->addresses + 8 * (int64_t)lc_pool_row(pool, i)));
    for (int64_t i = 0; i < pool->n && !problem && *whole; i++)
        problem = lc_probe_offer(k->best, k->q, k->p, lc_pool_row(pool, i), pool->distances[i]);
    return problem;
}

/* Walk the lowest level, passing rows that may not be found. */
static inline int lc_walk_past(const lc_walker *k, lc_step from) {
    lc_walk *w = k->w;
    lc_walk_begin(k, from);
    int problem = lc_walk_consider(k, from.row, from.distance);
    while (!problem && w->ahead.n) {
        lc_step next = lc_steps_pop(&w->ahead, 0);
        if (w->found.n == k->ef && next.distance > w->found.items[0].distance) break;
        problem = lc_walk_neighbors(k, next.row, 0);
    }
    for (int64_t i = 0; i < w->found.n && !problem; i++)
        problem = lc_probe_offer(k->best, k->q, k->p, w->found.items[i].row, w->found.items[i].distance);
    return problem;
}

/* Walk a graph of which nearly all rows may be found if `is_open`. */
static inline int lc_walk_run(const lc_walker *k, int is_open) {
    lc_step from = {0, (uint32_t)k->g->entry};
    int whole = 0, problem = LC_OK;
    from.distance = lc_walk_distance(k, from.row);
    for (int64_t level = lc_graph_top(k->g); level > 0; level--) from = lc_walk_down(k, level, from);
    if (is_open && k->w->pool.room == k->ef) problem = lc_walk_in_order(k, from, &whole);
    return problem || whole ? problem : lc_walk_past(k, from);
}

/* Compare all rows that may be found. */
static inline int lc_walk_scan(const lc_walker *k) {
    lc_walk *w = k->w;
    int problem = LC_OK;
    w->waiting = 0;
    for (int64_t row = 0; row < k->p->n && !problem; row++) {
        if (lc_probe_allows(k->q, lc_load_u64(k->p->addresses + 8 * row))) w->rows[w->waiting++] = row;
        if (w->waiting < LC_VECTOR_BLOCK && row + 1 < k->p->n) continue;
        lc_stored_picked(k->s, k->q, k->p, w->rows, w->waiting, k->m);
        for (int64_t i = 0; i < w->waiting && !problem; i++)
            problem = lc_probe_offer(k->best, k->q, k->p, w->rows[i], k->m->out[i]);
        w->waiting = 0;
    }
    return problem;
}

/* Rows that may be found among a few of a partition. */
static inline int64_t lc_walk_share(const lc_probe *q, const lc_partition *p) {
    int64_t allowed = 0;
    for (int64_t i = 0; i < LC_SHARE_SAMPLE; i++)
        allowed += lc_probe_allows(q, lc_load_u64(p->addresses + 8 * (int64_t)((double)i * (double)p->n / LC_SHARE_SAMPLE)));
    return allowed;
}

/* Search a partition. A walk compares about `ef` lists of neighbors, and more if it passes rows. */
static inline int lc_graph_partition(const lc_walker *k, int64_t place, int64_t number) {
    const lc_stored *s = k->s;
    const lc_graph *g = k->g;
    if (!k->p->n) return LC_OK;
    if (s->storage == LC_STORED_RABIT || !g->levels || g->rows != k->p->n || lc_graph_bound(g, 1) != g->rows)
        return lc_stored_partition(s, k->q, place, number, k->m, k->best);
    double edges = (double)(lc_load_u32(g->ends + 4 * k->p->n) - lc_load_u32(g->ends));
    double walk = (double)k->ef * (1 + edges / (double)k->p->n) / 2, rows = (double)k->p->n;
    if (rows <= walk) return lc_stored_partition(s, k->q, place, number, k->m, k->best);
    int64_t sample = lc_walk_share(k->q, k->p);
    double share = (double)sample / LC_SHARE_SAMPLE;
    if (s->storage == LC_STORED_PRODUCT && (place == 0 || s->metric != LC_DOT)) lc_product_prepare(s, k->q, number, k->m);
    return share * share * rows <= walk ? lc_walk_scan(k) : lc_walk_run(k, sample == LC_SHARE_SAMPLE);
}

/* Search partitions in the order given; all must be loaded. */
static inline int lc_graph_search(const lc_stored *s, const lc_graph *graphs, int64_t ef, const lc_probe *q,
                                  lc_nearest *best) {
    lc_scratch m;
    lc_walk w;
    int64_t most = 0;
    int problem = lc_scratch_open(s, q, &m);
    memset(&w, 0, sizeof w);
    for (int64_t place = 0; place < q->probes; place++) {
        int64_t rows = s->partitions[lc_load_u64(q->numbers + 8 * place)].n;
        most = rows > most ? rows : most;
    }
    w.visited = (uint8_t *)malloc((size_t)most / 8 + 8);
    if (!w.visited) problem = LC_NO_MEMORY;
    if (!problem && ef <= LC_POOL_MOST && !best->has_lowest) problem = lc_pool_open(&w.pool, ef);
    for (int64_t place = 0; place < q->probes && !problem; place++) {
        int64_t number = (int64_t)lc_load_u64(q->numbers + 8 * place);
        lc_walker walker = {s, q, &s->partitions[number], &graphs[number], &m, &w, best, ef};
        problem = lc_graph_partition(&walker, place, number);
    }
    free(w.visited);
    lc_pool_close(&w.pool);
    free(w.ahead.items);
    free(w.found.items);
    lc_scratch_close(&m);
    return problem;
}

#endif
