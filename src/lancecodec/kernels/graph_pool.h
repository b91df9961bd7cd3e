/* The nearest nodes that a walk has met, in order. Few nodes are kept, so that moving them costs less than a heap. */
#ifndef LANCECODEC_GRAPH_POOL_H
#define LANCECODEC_GRAPH_POOL_H

#include <stdlib.h>

#include "chunk.h"

/* Bit of a row whose neighbors were visited. Rows have fewer bits. */
#define LC_POOL_DONE 0x80000000u

/* At most `room` nodes, the nearest first; the first whose neighbors were not visited is `next`, or a later one. */
typedef struct {
    float *distances;
    uint32_t *rows;
    int64_t n, room, next;
} lc_pool;

static inline int lc_pool_open(lc_pool *pool, int64_t room) {
    pool->distances = (float *)malloc((size_t)(room + 1) * sizeof *pool->distances);
    pool->rows = (uint32_t *)malloc((size_t)(room + 1) * sizeof *pool->rows);
    pool->n = pool->next = 0, pool->room = room;
    return pool->distances && pool->rows ? LC_OK : LC_NO_MEMORY;
}

static inline void lc_pool_close(lc_pool *pool) {
    free(pool->distances);
    free(pool->rows);
    pool->distances = 0, pool->rows = 0;
}

/* Number of nodes that are not farther than a distance, which is not farther than the last if the pool is full. */
LC_CLONES static int64_t lc_pool_place(const float *distances, int64_t n, float distance) {
    int32_t place = 0;
    for (int64_t i = 0; i < n; i++) place += distances[i] <= distance;
    return place;
}

LC_INLINE int lc_pool_rejects(const lc_pool *pool, float distance) {
    return pool->n == pool->room && !(distance < pool->distances[pool->n - 1]);
}

/* Add a node that is not rejected. */
static inline void lc_pool_add(lc_pool *pool, float distance, uint32_t row) {
    int64_t place = lc_pool_place(pool->distances, pool->n, distance);
    if (pool->n < pool->room) pool->n++;
    memmove(pool->distances + place + 1, pool->distances + place, (size_t)(pool->n - 1 - place) * sizeof(float));
    memmove(pool->rows + place + 1, pool->rows + place, (size_t)(pool->n - 1 - place) * sizeof(uint32_t));
    pool->distances[place] = distance, pool->rows[place] = row;
    if (place < pool->next) pool->next = place;
}

/* Return whether there is a node whose neighbors were not visited; it is marked, and its row is `row`. */
LC_INLINE int lc_pool_take(lc_pool *pool, uint32_t *row) {
    while (pool->next < pool->n && pool->rows[pool->next] & LC_POOL_DONE) pool->next++;
    if (pool->next == pool->n) return 0;
    *row = pool->rows[pool->next];
    pool->rows[pool->next++] |= LC_POOL_DONE;
    return 1;
}

LC_INLINE uint32_t lc_pool_row(const lc_pool *pool, int64_t place) { return pool->rows[place] & ~LC_POOL_DONE; }

#endif
