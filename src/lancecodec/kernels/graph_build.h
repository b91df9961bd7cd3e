/* Building of graphs for walks (Malkov and Yashunin, 2018), in batches: the nodes of a batch find neighbors in the graph
 * as it was before the batch, and then the neighbors get edges back (as in Manohar et al., ParlayANN, 2024). So the graph
 * depends on the order of the nodes only, not on threads. Nodes of high levels come first, so the first node is the entry
 * point. */
#ifndef LANCECODEC_GRAPH_BUILD_H
#define LANCECODEC_GRAPH_BUILD_H

#include "graph_walk.h"

/* Nodes of a batch: a part of those that are linked, but not more than the most. */
#define LC_BATCH_PART 8
#define LC_BATCH_MOST 1024
/* Neighbors above the limit that a list may get before it is cut, as a part of the limit. */
#define LC_SPARE_PART 4
/* Chosen neighbors that a candidate is compared with together. */
#define LC_CHOSEN_BLOCK 8

/* A graph that grows. Vectors are plain (`scale` 0), or bytes whose squared distances are multiplied by `scale`. `links`
 * has room for the lists of the lowest level, by row, then for those of the upper levels, by `uppers` of their node. */
typedef struct {
    const uint8_t *values, *heights, *order;
    int64_t n, dimension;
    int element, metric;
    float scale;
    int64_t m, ef, done;
    uint32_t *uppers, *counts;
    lc_step *links;
} lc_builder;

/* An edge to be added. */
typedef struct {
    uint32_t list, order;
    lc_step step;
} lc_edge;

/* Memory of a thread. `visited` has for each row the number of the last walk that met it. */
typedef struct {
    uint16_t *visited, walk;
    uint8_t *query;
    lc_pool pool;
    lc_step *candidates, *others;
    int64_t *chosen, room;
    lc_edge *edges;
    int64_t n_edges, edge_room;
    int64_t rows[LC_VECTOR_BLOCK], waiting;
    float out[LC_VECTOR_BLOCK];
} lc_builder_memory;

LC_INLINE uint32_t lc_builder_node(const lc_builder *b, int64_t place) { return lc_load_u32(b->order + 4 * place); }

/* Limit of a list, and the entries that it has room for. */
LC_INLINE int64_t lc_builder_limit(const lc_builder *b, int64_t level) { return level ? b->m : 2 * b->m; }
LC_INLINE int64_t lc_builder_room(const lc_builder *b, int64_t level) {
    int64_t limit = lc_builder_limit(b, level);
    return limit + limit / LC_SPARE_PART + 1;
}

/* Number of the list of a node on a level. */
LC_INLINE int64_t lc_builder_list(const lc_builder *b, uint32_t node, int64_t level) {
    return level ? b->n + b->uppers[node] + level - 1 : node;
}

LC_INLINE lc_step *lc_builder_links(const lc_builder *b, int64_t list) {
    if (list < b->n) return b->links + list * lc_builder_room(b, 0);
    return b->links + b->n * lc_builder_room(b, 0) + (list - b->n) * lc_builder_room(b, 1);
}

/* -- memory ------------------------------------------------------------------------------------------------------ */

static inline int lc_builder_open(lc_builder *b) {
    uint32_t lists = 0;
    b->uppers = (uint32_t *)malloc(((size_t)b->n + 1) * sizeof *b->uppers);
    if (!b->uppers) return LC_NO_MEMORY;
    for (int64_t i = 0; i < b->n; i++) b->uppers[i] = lists, lists += lc_load_u8(b->heights + i);
    b->uppers[b->n] = lists;
    size_t room = (size_t)b->n * (size_t)lc_builder_room(b, 0) + (size_t)lists * (size_t)lc_builder_room(b, 1);
    b->counts = (uint32_t *)calloc((size_t)b->n + lists + 1, sizeof *b->counts);
    b->links = (lc_step *)malloc((room + 1) * sizeof *b->links);
    return b->counts && b->links ? LC_OK : LC_NO_MEMORY;
}

static inline void lc_builder_close(lc_builder *b) {
    free(b->uppers);
    free(b->counts);
    free(b->links);
    b->uppers = b->counts = 0, b->links = 0;
}

static inline int lc_builder_enter(const lc_builder *b, lc_builder_memory *w) {
    memset(w, 0, sizeof *w);
    w->room = b->ef + lc_builder_room(b, 0) + LC_BATCH_MOST;
    w->visited = (uint16_t *)calloc((size_t)b->n + 1, sizeof *w->visited);
    w->query = (uint8_t *)calloc((size_t)lc_query_size(b->dimension, b->element, LC_L2) + 1, 1);
    w->candidates = (lc_step *)malloc((size_t)w->room * sizeof *w->candidates);
    w->others = (lc_step *)malloc((size_t)lc_builder_room(b, 0) * sizeof *w->others);
    w->chosen = (int64_t *)malloc((size_t)lc_builder_room(b, 0) * sizeof *w->chosen);
    if (lc_pool_open(&w->pool, b->ef)) return LC_NO_MEMORY;
    return w->visited && w->query && w->candidates && w->others && w->chosen ? LC_OK : LC_NO_MEMORY;
}

static inline void lc_builder_leave(lc_builder_memory *w) {
    free(w->visited);
    free(w->query);
    free(w->candidates);
    free(w->others);
    free(w->chosen);
    free(w->edges);
    lc_pool_close(&w->pool);
}

/* -- distances --------------------------------------------------------------------------------------------------- */

/* A stored vector as a query: itself, or with its values as floats and zeros behind them. */
static inline const uint8_t *lc_builder_query(const lc_builder *b, lc_builder_memory *w, uint32_t row) {
    int64_t width = lc_element_width(b->element), size = b->dimension * width, i = 0;
    const uint8_t *p = b->values + row * size;
    if (b->scale > 0 || b->metric == LC_HAMMING) return p;
    if ((b->element == LC_FLOAT32 || b->element == LC_FLOAT64) && b->dimension % LC_QUERY_UNIT == 0) return p;
    if (b->element == LC_FLOAT32 || b->element == LC_FLOAT64) {
        memcpy(w->query, p, (size_t)size);
        return w->query;
    }
    uint8_t rest[LC_LANES * sizeof(float)] = {0};
    for (; i < b->dimension; i += LC_LANES) {
        lc_f32_lanes x;
        int64_t left = (b->dimension - i) * width;
        if (left < LC_LANES * width) memcpy(rest, p + i * width, (size_t)left);
        lc_f32_load(left < LC_LANES * width ? rest : p + i * width, b->element, &x);
        memcpy(w->query + 4 * i, &x, sizeof x);
    }
    return w->query;
}

static inline void lc_builder_compare(const lc_builder *b, const uint8_t *query, const int64_t *rows, int64_t n,
                                      float *out) {
    if (b->scale > 0) {
        lc_picked_squares(b->values, query, b->dimension, rows, b->scale, n, out);
        return;
    }
    double length = 1;
    lc_vectors vectors = {b->values, b->dimension, b->element, (const uint8_t *)rows, n};
    lc_queries queries = {query, 1, b->metric};
    lc_distances(&vectors, 0, n, &queries, &length, out, LC_VECTOR_BLOCK);
    for (int64_t i = 0; i < n; i++)
        if (out[i] != out[i]) out[i] = INFINITY;
}

LC_INLINE void lc_builder_expect(const lc_builder *b, uint32_t row) {
#if defined(__GNUC__) || defined(__clang__)
    int64_t size = b->dimension * lc_element_width(b->element);
    for (int64_t at = 0; at < size && at < LC_WALK_AHEAD; at += 64) __builtin_prefetch(b->values + row * size + at);
#else
    (void)b, (void)row;
#endif
}

/* -- finding neighbors ------------------------------------------------------------------------------------------- */

/* Nearest node of a level that is reached without a step away. */
static inline lc_step lc_builder_down(const lc_builder *b, lc_builder_memory *w, const uint8_t *query, int64_t level,
                                      lc_step from) {
    for (lc_step next = from;; from = next) {
        int64_t list = lc_builder_list(b, from.row, level), n = b->counts[list];
        const lc_step *links = lc_builder_links(b, list);
        for (int64_t i = 0; i < n; i += LC_VECTOR_BLOCK) {
            int64_t some = n - i < LC_VECTOR_BLOCK ? n - i : LC_VECTOR_BLOCK;
            for (int64_t j = 0; j < some; j++) w->rows[j] = links[i + j].row;
            lc_builder_compare(b, query, w->rows, some, w->out);
            for (int64_t j = 0; j < some; j++)
                if (w->out[j] < next.distance) next.distance = w->out[j], next.row = (uint32_t)w->rows[j];
        }
        if (next.row == from.row) return from;
    }
}

/* Begin to load the links of the node that is probably visited next. */
LC_INLINE void lc_builder_expect_links(const lc_builder *b, const lc_pool *pool, int64_t level) {
#if defined(__GNUC__) || defined(__clang__)
    if (pool->next >= pool->n) return;
    const lc_step *links = lc_builder_links(b, lc_builder_list(b, lc_pool_row(pool, pool->next), level));
    for (int64_t i = 0; i < b->m; i += 64 / (int64_t)sizeof *links) __builtin_prefetch(links + i);
#else
    (void)b, (void)pool, (void)level;
#endif
}

/* Begin a walk that has met no row. */
LC_INLINE void lc_builder_begin(const lc_builder *b, lc_builder_memory *w) {
    if (!++w->walk) memset(w->visited, 0, (size_t)b->n * sizeof *w->visited), w->walk = 1;
    w->pool.n = w->pool.next = w->waiting = 0;
}

/* Let the rows wait that the walk meets first among some. */
LC_INLINE void lc_builder_meet(lc_builder_memory *w, const lc_step *links, int64_t n) {
    uint16_t *visited = w->visited, walk = w->walk;
    int64_t *rows = w->rows, waiting = w->waiting;
    for (int64_t i = 0; i < n; i++) {
        uint32_t row = links[i].row;
        rows[waiting] = row;
        waiting += visited[row] != walk;
        visited[row] = walk;
    }
    w->waiting = waiting;
}

static inline void lc_builder_consider(const lc_builder *b, lc_builder_memory *w, const uint8_t *query) {
    for (int64_t i = 0; i < w->waiting && (i < LC_AHEAD || b->scale > 0); i++)
        lc_builder_expect(b, (uint32_t)w->rows[i]);
    lc_builder_compare(b, query, w->rows, w->waiting, w->out);
    for (int64_t i = 0; i < w->waiting; i++)
        if (!lc_pool_rejects(&w->pool, w->out[i])) lc_pool_add(&w->pool, w->out[i], (uint32_t)w->rows[i]);
    w->waiting = 0;
}

/* Find the `ef` nearest nodes of a level. */
static inline void lc_builder_beam(const lc_builder *b, lc_builder_memory *w, const uint8_t *query, int64_t level,
                                   lc_step from) {
    uint32_t node;
    lc_builder_begin(b, w);
    w->visited[from.row] = w->walk;
    lc_pool_add(&w->pool, from.distance, from.row);
    while (lc_pool_take(&w->pool, &node)) {
        int64_t list = lc_builder_list(b, node, level), n = b->counts[list];
        const lc_step *links = lc_builder_links(b, list);
        lc_builder_expect_links(b, &w->pool, level);
        for (int64_t i = 0, some; i < n; i += some) {
            some = n - i < LC_VECTOR_BLOCK - w->waiting ? n - i : LC_VECTOR_BLOCK - w->waiting;
            lc_builder_meet(w, links + i, some);
            if (w->waiting == LC_VECTOR_BLOCK) lc_builder_consider(b, w, query);
        }
        if (w->waiting) lc_builder_consider(b, w, query);
    }
}

/* Copy the nodes found, the nearest first, to the candidates. */
static inline int64_t lc_builder_found(lc_builder_memory *w) {
    for (int64_t i = 0; i < w->pool.n; i++) {
        lc_step step = {w->pool.distances[i], lc_pool_row(&w->pool, i)};
        w->candidates[i] = step;
    }
    return w->pool.n;
}

/* Choose neighbors among candidates, the nearest first: those that are nearer to the node than to all chosen ones. If
 * these are few, the nearest others make up half of the limit: walks go astray less often. */
static inline int64_t lc_builder_choose(const lc_builder *b, lc_builder_memory *w, const lc_step *candidates, int64_t n,
                                        int64_t most, lc_step *out) {
    int64_t count = 0, others = 0, least = most / 2;
    float near[LC_CHOSEN_BLOCK];
    for (int64_t i = 0; i < n && count < most; i++) {
        int keep = 1;
        const uint8_t *query = count ? lc_builder_query(b, w, candidates[i].row) : 0;
        for (int64_t first = 0; first < count && keep; first += LC_CHOSEN_BLOCK) {
            int64_t some = count - first < LC_CHOSEN_BLOCK ? count - first : LC_CHOSEN_BLOCK;
            lc_builder_compare(b, query, w->chosen + first, some, near);
            for (int64_t j = 0; j < some; j++) keep &= !(near[j] < candidates[i].distance);
        }
        if (keep) w->chosen[count] = candidates[i].row, out[count++] = candidates[i];
        else if (others < least) w->others[others++] = candidates[i];
    }
    for (int64_t i = 0; i < others && count < least; i++) out[count++] = w->others[i];
    return count;
}

/* Give a new node its neighbors. */
static inline void lc_builder_insert(const lc_builder *b, lc_builder_memory *w, int64_t place) {
    uint32_t node = lc_builder_node(b, place), entry = lc_builder_node(b, 0);
    int64_t height = lc_load_u8(b->heights + node), one = entry;
    uint8_t *held = w->query;
    const uint8_t *query = lc_builder_query(b, w, node);
    lc_step from = {0, entry};
    lc_builder_compare(b, query, &one, 1, w->out);
    from.distance = w->out[0];
    int64_t level = lc_load_u8(b->heights + entry);
    for (; level > height; level--) from = lc_builder_down(b, w, query, level, from);
    for (; level >= 0; level--) {
        lc_builder_beam(b, w, query, level, from);
        int64_t n = lc_builder_found(w), list = lc_builder_list(b, node, level);
        from = w->candidates[0];
        b->counts[list] =
            (uint32_t)lc_builder_choose(b, w, w->candidates, n, lc_builder_limit(b, level), lc_builder_links(b, list));
        if (level && query == held) query = lc_builder_query(b, w, node);
    }
}

/* Find neighbors of the nodes [first, stop) of the batch. */
static inline int lc_builder_find(const lc_builder *b, int64_t first, int64_t stop) {
    lc_builder_memory w;
    int problem = lc_builder_enter(b, &w);
    for (int64_t place = first > 1 ? first : 1; place < stop && !problem; place++) lc_builder_insert(b, &w, place);
    lc_builder_leave(&w);
    return problem;
}

/* -- edges back -------------------------------------------------------------------------------------------------- */

static inline int lc_edge_compare(const void *a, const void *b) {
    const lc_edge *x = (const lc_edge *)a, *y = (const lc_edge *)b;
    if (x->list != y->list) return x->list < y->list ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static inline int lc_step_compare(const void *a, const void *b) {
    const lc_step *x = (const lc_step *)a, *y = (const lc_step *)b;
    if (x->distance != y->distance) return x->distance < y->distance ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

/* Collect edges back from the nodes [first, stop) to lists whose number leaves the rest `part`. */
static inline int lc_builder_collect(const lc_builder *b, lc_builder_memory *w, int64_t first, int64_t stop,
                                     int64_t part, int64_t parts) {
    for (int64_t place = first; place < stop; place++) {
        uint32_t node = lc_builder_node(b, place);
        for (int64_t level = lc_load_u8(b->heights + node); level >= 0; level--) {
            int64_t list = lc_builder_list(b, node, level);
            const lc_step *links = lc_builder_links(b, list);
            for (uint32_t i = 0; i < b->counts[list]; i++) {
                int64_t back = lc_builder_list(b, links[i].row, level);
                if (back % parts != part) continue;
                if (w->n_edges == w->edge_room) {
                    int64_t room = w->edge_room ? 2 * w->edge_room : 1024;
                    lc_edge *edges = (lc_edge *)realloc(w->edges, (size_t)room * sizeof *edges);
                    if (!edges) return LC_NO_MEMORY;
                    w->edges = edges, w->edge_room = room;
                }
                lc_edge edge = {(uint32_t)back, (uint32_t)w->n_edges, {links[i].distance, node}};
                w->edges[w->n_edges++] = edge;
            }
        }
    }
    return LC_OK;
}

/* Add edges to a list, which is cut to its limit if it has no room. */
static inline void lc_builder_extend(const lc_builder *b, lc_builder_memory *w, const lc_edge *edges, int64_t n) {
    int64_t list = edges[0].list, level = list >= b->n, count = b->counts[list];
    lc_step *links = lc_builder_links(b, list);
    if (count + n <= lc_builder_room(b, level) - 1) {
        for (int64_t i = 0; i < n; i++) links[count + i] = edges[i].step;
        b->counts[list] = (uint32_t)(count + n);
        return;
    }
    memcpy(w->candidates, links, (size_t)count * sizeof *links);
    for (int64_t i = 0; i < n; i++) w->candidates[count + i] = edges[i].step;
    qsort(w->candidates, (size_t)(count + n), sizeof *w->candidates, lc_step_compare);
    b->counts[list] =
        (uint32_t)lc_builder_choose(b, w, w->candidates, count + n, lc_builder_limit(b, level), links);
}

/* Link the nodes [first, stop) to lists whose number leaves the rest `part` when divided by `parts`. */
static inline int lc_builder_link(const lc_builder *b, int64_t first, int64_t stop, int64_t part, int64_t parts) {
    lc_builder_memory w;
    int problem = lc_builder_enter(b, &w);
    if (!problem) problem = lc_builder_collect(b, &w, first, stop, part, parts);
    if (!problem && w.n_edges > 1) qsort(w.edges, (size_t)w.n_edges, sizeof *w.edges, lc_edge_compare);
    for (int64_t i = 0, n; i < w.n_edges && !problem; i += n) {
        for (n = 1; i + n < w.n_edges && w.edges[i + n].list == w.edges[i].list;) n++;
        lc_builder_extend(b, &w, w.edges + i, n);
    }
    lc_builder_leave(&w);
    return problem;
}

/* End of the batch that begins with the first node that is not linked. */
static inline int64_t lc_builder_batch(const lc_builder *b) {
    int64_t size = b->done / LC_BATCH_PART;
    size = size < 1 ? 1 : size > LC_BATCH_MOST ? LC_BATCH_MOST : size;
    return b->n - b->done < size ? b->n : b->done + size;
}

/* -- the end ----------------------------------------------------------------------------------------------------- */

/* Cut the lists [first, stop) to their limits, and sort their edges by distance. */
static inline int lc_builder_cut(const lc_builder *b, int64_t first, int64_t stop) {
    lc_builder_memory w;
    int problem = lc_builder_enter(b, &w);
    for (int64_t list = first; list < stop && !problem; list++) {
        int64_t level = list >= b->n, count = b->counts[list], limit = lc_builder_limit(b, level);
        lc_step *links = lc_builder_links(b, list);
        qsort(links, (size_t)count, sizeof *links, lc_step_compare);
        if (count <= limit) continue;
        memcpy(w.candidates, links, (size_t)count * sizeof *links);
        b->counts[list] = (uint32_t)lc_builder_choose(b, &w, w.candidates, count, limit, links);
    }
    lc_builder_leave(&w);
    return problem;
}

/* Mark all rows that can be reached on the lowest level from a row. */
static inline void lc_builder_reach(const lc_builder *b, uint8_t *reached, uint32_t *queue, uint32_t row) {
    int64_t n = 0;
    reached[row] = 1, queue[n++] = row;
    while (n) {
        uint32_t next = queue[--n];
        const lc_step *links = lc_builder_links(b, next);
        for (uint32_t i = 0; i < b->counts[next]; i++)
            if (!reached[links[i].row]) reached[links[i].row] = 1, queue[n++] = links[i].row;
    }
}

/* Host for a row that cannot be reached: the nearest found row with room, or any. */
static inline lc_step lc_builder_host(const lc_builder *b, lc_builder_memory *w, const uint8_t *reached) {
    int64_t n = lc_builder_found(w);
    for (int64_t i = 0; i < n; i++)
        if (b->counts[w->candidates[i].row] < lc_builder_room(b, 0)) return w->candidates[i];
    for (uint32_t row = 0; row < b->n; row++)
        if (reached[row] && b->counts[row] < lc_builder_room(b, 0)) {
            lc_step far = {w->candidates[n - 1].distance, row};
            return far;
        }
    return w->candidates[0];
}

/* Give an edge to each row that cannot be reached from the entry point. */
static inline int lc_builder_connect(const lc_builder *b) {
    lc_builder_memory w;
    int problem = lc_builder_enter(b, &w);
    uint8_t *reached = (uint8_t *)calloc((size_t)b->n + 1, 1);
    uint32_t *queue = (uint32_t *)malloc(((size_t)b->n + 1) * sizeof *queue);
    if (!reached || !queue) problem = LC_NO_MEMORY;
    uint32_t entry = b->n ? lc_builder_node(b, 0) : 0;
    if (!problem && b->n) lc_builder_reach(b, reached, queue, entry);
    for (uint32_t row = 0; row < b->n && !problem; row++) {
        if (reached[row]) continue;
        int64_t one = entry;
        const uint8_t *query = lc_builder_query(b, &w, row);
        lc_step from = {0, entry};
        lc_builder_compare(b, query, &one, 1, w.out);
        from.distance = w.out[0];
        lc_builder_beam(b, &w, query, 0, from);
        lc_step host = lc_builder_host(b, &w, reached);
        uint32_t count = b->counts[host.row], last = count < lc_builder_room(b, 0) ? count : count - 1;
        lc_step *links = lc_builder_links(b, host.row);
        links[last].distance = host.distance, links[last].row = row;
        b->counts[host.row] = last + 1;
        lc_builder_reach(b, reached, queue, row);
    }
    free(reached);
    free(queue);
    lc_builder_leave(&w);
    return problem;
}

/* Numbers of nodes of all levels, and of edges. */
static inline int64_t lc_builder_lists(const lc_builder *b) { return b->n + b->uppers[b->n]; }
static inline int64_t lc_builder_edges(const lc_builder *b) {
    int64_t edges = 0;
    for (int64_t list = 0; list < lc_builder_lists(b); list++) edges += b->counts[list];
    return edges;
}

/* Write the levels: bounds of `levels` (64 bits), rows of nodes, ends of lists, neighbors (32 bits), distances. */
static inline void lc_builder_write(const lc_builder *b, int64_t levels, uint8_t *bounds, uint8_t *nodes, uint8_t *ends,
                                    uint8_t *neighbors, uint8_t *distances) {
    int64_t count = 0, edges = 0;
    lc_store_u64(bounds, 0), lc_store_u32(ends, 0);
    for (int64_t level = 0; level < levels; level++) {
        for (int64_t row = 0; row < b->n; row++) {
            if (lc_load_u8(b->heights + row) < level) continue;
            int64_t list = lc_builder_list(b, (uint32_t)row, level);
            const lc_step *links = lc_builder_links(b, list);
            for (uint32_t i = 0; i < b->counts[list]; i++, edges++) {
                lc_store_u32(neighbors + 4 * edges, links[i].row);
                memcpy(distances + 4 * edges, &links[i].distance, 4);
            }
            lc_store_u32(nodes + 4 * count++, (uint32_t)row);
            lc_store_u32(ends + 4 * count, (uint32_t)edges);
        }
        lc_store_u64(bounds + 8 * (level + 1), (uint64_t)count);
    }
}

#endif
