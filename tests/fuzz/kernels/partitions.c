/* Partitions of any bytes: found rows exist, are in order, and are at most k. */
#include "fuzz.h"
#include "partitions.h"
#include "rabit.h"

static void filled(lc_stored *s, fz_input *in, lc_partition *p, int64_t n, int64_t width) {
    p->n = n;
    p->codes = fz_take(in, n * width), p->ids = fz_take(in, 8 * n), p->addresses = fz_take(in, 8 * n);
    p->add = fz_take(in, 4 * n), p->scale = fz_take(in, 4 * n), p->error = fz_take(in, 4 * n);
    p->add_all = fz_take(in, 4 * n), p->scale_all = fz_take(in, 4 * n), p->extra = fz_take(in, n * s->dimension);
}

static void rotated(fz_input *in) {
    int64_t dimension = 1 + fz_upto(in, 70);
    uint8_t *x = fz_take(in, 4 * dimension);
    float *copy = (float *)(void *)fz_memory(4 * dimension, 0);
    memcpy(copy, x, (size_t)(4 * dimension));
    lc_rabit_extra(x, 1, dimension, 1 + (int)fz_upto(in, 7), 0.5, fz_memory(dimension, 0));
    lc_rabit_rotate((uint8_t *)copy, 1, dimension, fz_take(in, 4 * ((dimension + 7) / 8)));
}

static void coarsened(const lc_stored *s, fz_input *in, lc_partition *p, lc_coarse *coarse) {
    uint8_t *codes = fz_memory(p->n * s->dimension, 0);
    float *errors = (float *)(void *)fz_memory(8 * p->n, 0);
    if (!fz_upto(in, 1) || s->storage != LC_STORED_FLAT || s->element > LC_FLOAT16) return;
    if (lc_coarse_make(p->codes, p->n, s->dimension, s->element, coarse, codes, errors)) lc_coarse_set(p, coarse);
}

static void fz_target(fz_input *in) {
    lc_stored s = {0};
    lc_probe q = {0};
    lc_nearest best;
    lc_partition partitions[2];
    uint64_t zero = 0, rows = (uint64_t)fz_upto(in, 90), numbers[2] = {0, 1};
    s.storage = (int)fz_upto(in, LC_STORAGES - 1), s.metric = (int)fz_upto(in, LC_DOT), s.parts = 2;
    s.dimension = 8 * (1 + fz_upto(in, 8)), s.bits = (int)fz_upto(in, 1) ? 8 : 4, s.count = 2;
    s.element = s.storage == LC_STORED_FLAT ? (int)fz_upto(in, LC_ELEMENTS - 1) : LC_FLOAT32;
    if (s.storage == LC_STORED_RABIT) s.bits = 1 + (int)fz_upto(in, 8);
    s.raw = (int)fz_upto(in, 1), s.by_column = (int)fz_upto(in, 1), s.step = (float)fz_upto(in, 3);
    int64_t width = s.storage == LC_STORED_FLAT ? s.dimension * lc_element_width(s.element)
                    : s.storage == LC_STORED_SCALAR ? s.dimension
                    : s.storage == LC_STORED_RABIT ? s.dimension / 8 : s.parts * s.bits / 8;
    int64_t book = s.storage == LC_STORED_PRODUCT ? 4 * (s.dimension << s.bits) : 0;
    uint8_t *codebook = fz_memory(book, 0);
    memcpy(codebook, fz_take(in, book), (size_t)book);
    s.codebook = codebook, s.centroids = fz_take(in, 8 * s.dimension), s.squares = fz_take(in, 8);
    memset(partitions, 0, sizeof partitions);
    for (int i = 0; i < 2; i++) filled(&s, in, &partitions[i], fz_upto(in, 80), width);
    s.partitions = partitions;
    lc_coarse coarse[2] = {{0}, {0}};
    for (int i = 0; i < 2; i++) coarsened(&s, in, &partitions[i], &coarse[i]);
    q.vector = fz_take(in, 8 * (s.dimension + LC_QUERY_UNIT)), q.distances = fz_take(in, 8);
    q.numbers = (const uint8_t *)numbers, q.probes = 2, q.effort = (int)fz_upto(in, 2);
    q.fragments = q.starts = (const uint8_t *)&zero, q.sizes = (const uint8_t *)&rows, q.n_fragments = 1;
    q.allowed = fz_upto(in, 1) ? fz_take(in, 12) : 0;
    int64_t k = 1 + fz_upto(in, 30), size = lc_query_size(s.dimension, s.element, s.metric);
    FZ_CHECK(size <= 8 * (s.dimension + LC_QUERY_UNIT));
    FZ_CHECK(!lc_nearest_open(&best, 1, k) && !lc_stored_search(&s, &q, &best) && best.heaps[0].n <= k);
    for (int64_t i = 0; i < best.heaps[0].n; i++) FZ_CHECK(best.heaps[0].items[i].address < rows);
    float *out = (float *)(void *)fz_memory(4 * partitions[0].n + 4, 0);
    if (s.storage == LC_STORED_FLAT) {
        lc_vectors v = {partitions[0].codes, s.dimension, s.element, 0, partitions[0].n};
        lc_queries one = {q.vector, 1, s.metric};
        double length = lc_query_length(&one, 0, s.dimension, s.element);
        lc_distances(&v, 0, v.n, &one, &length, out, 0);
    }
    lc_nearest_close(&best);
    if (partitions[0].coarse) {
        lc_vectors v = {partitions[0].codes, s.dimension, s.element, 0, partitions[0].n};
        lc_queries one = {q.vector, 1, s.metric};
        lc_vector_rows all = {0, 0, 0, 0, 5};
        FZ_CHECK(!lc_nearest_open(&best, 1, k));
        FZ_CHECK(!lc_nearest_add_coarse(&best, &v, &one, &all, partitions[0].coarse, fz_memory(s.dimension, 0)));
        FZ_CHECK(best.heaps[0].n <= k);
        lc_nearest_close(&best);
    }
    rotated(in);
}
