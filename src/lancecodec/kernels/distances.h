/* Distances of vectors to queries: l2 (squared), cosine, dot (both one minus the product), and hamming (bits). */
#ifndef LANCECODEC_DISTANCES_H
#define LANCECODEC_DISTANCES_H

#include <math.h>

#include "distance_lanes.h"

/* Vectors whose distances are computed together, while they are in the caches. */
#define LC_VECTOR_BLOCK 64
/* Vectors picked by number that are loaded ahead of their comparison, and bytes of each. */
#define LC_AHEAD 16
#define LC_EXPECTED 1024

/* n vectors: those with the numbers `rows`, or all of them. */
typedef struct {
    const uint8_t *values;
    int64_t dimension;
    int element;
    const uint8_t *rows;
    int64_t n;
} lc_vectors;

/* n queries: floats, doubles for 64-bit vectors, or bytes for hamming distances. */
typedef struct {
    const uint8_t *values;
    int64_t n;
    int metric;
} lc_queries;

/* Distance for a sum, and for cosine the squared length of the vector and the length of the query. */
LC_INLINE float lc_distance_of(double sum, double square, double length, int metric) {
    if (metric == LC_L2) return (float)sum;
    return (float)(1.0 - (metric == LC_DOT ? sum : sum / (sqrt(square) * length)));
}

LC_INLINE const uint8_t *lc_vector_at(const lc_vectors *v, int64_t i, int64_t size) {
    if (!v->rows) return v->values + i * size;
    int64_t row;
    memcpy(&row, v->rows + 8 * i, sizeof row);
    return v->values + row * size;
}

/* Begin to load a vector that is compared soon: processors foresee only reads that go on, and none in the next page. */
LC_INLINE void lc_expect_vector(const lc_vectors *v, int64_t i, int64_t size) {
#if defined(__GNUC__) || defined(__clang__)
    if (i >= v->n) return;
    const uint8_t *p = lc_vector_at(v, i, size);
    for (int64_t at = 0; at < size && at < LC_EXPECTED; at += 64) __builtin_prefetch(p + at);
#else
    (void)v, (void)i, (void)size;
#endif
}

/* Distances of vectors [first, stop) to `t` queries, those to a query at `out + k * apart`. */
#define LC_DEFINE_BLOCK(NAME, SUMS, NUMBER)                                                                       \
    LC_INLINE void NAME(const lc_vectors *v, int64_t first, int64_t stop, const uint8_t *q, int element,          \
                        int metric, int t, const double *lengths, float *out, int64_t apart) {                    \
        NUMBER sums[LC_TOGETHER + 1];                                                                             \
        int64_t size = v->dimension * lc_element_width(element);                                                  \
        for (int64_t i = first; i < stop; i++) {                                                                  \
            lc_expect_vector(v, i + LC_AHEAD, size);                                                              \
            SUMS(lc_vector_at(v, i, size), q, v->dimension, element, metric, t, sums);                            \
            for (int k = 0; k < t; k++)                                                                           \
                out[k * apart + i - first] = lc_distance_of(sums[k], sums[t], lengths[k], metric);                \
        }                                                                                                         \
    }

LC_DEFINE_BLOCK(lc_f32_block, lc_f32_sums, float)
LC_DEFINE_BLOCK(lc_f64_block, lc_f64_sums, double)

/* The same for all queries; `lengths` are for cosine. */
#define LC_DEFINE_DISTANCES(NAME, BLOCK, ELEMENT)                                                                 \
    LC_INLINE void NAME##_all(const lc_vectors *v, int64_t first, int64_t stop, const lc_queries *q, int metric,  \
                              const double *lengths, float *out, int64_t apart) {                                 \
        int64_t size = lc_query_size(v->dimension, ELEMENT, metric), k = 0;                                       \
        for (; k + LC_TOGETHER <= q->n; k += LC_TOGETHER)                                                         \
            BLOCK(v, first, stop, q->values + k * size, ELEMENT, metric, LC_TOGETHER, lengths + k, out + k * apart, \
                  apart);                                                                                         \
        for (; k < q->n; k++)                                                                                     \
            BLOCK(v, first, stop, q->values + k * size, ELEMENT, metric, 1, lengths + k, out + k * apart, apart); \
    }                                                                                                             \
    LC_CLONES static void NAME(const lc_vectors *v, int64_t first, int64_t stop, const lc_queries *q,             \
                               const double *lengths, float *out, int64_t apart) {                                \
        if (q->metric == LC_L2) NAME##_all(v, first, stop, q, LC_L2, lengths, out, apart);                        \
        else if (q->metric == LC_DOT) NAME##_all(v, first, stop, q, LC_DOT, lengths, out, apart);                 \
        else NAME##_all(v, first, stop, q, LC_COSINE, lengths, out, apart);                                       \
    }

LC_DEFINE_DISTANCES(lc_distances_f32, lc_f32_block, LC_FLOAT32)
LC_DEFINE_DISTANCES(lc_distances_f64, lc_f64_block, LC_FLOAT64)
LC_DEFINE_DISTANCES(lc_distances_f16, lc_f32_block, LC_FLOAT16)
LC_DEFINE_DISTANCES(lc_distances_bf16, lc_f32_block, LC_BFLOAT16)
LC_DEFINE_DISTANCES(lc_distances_i8, lc_f32_block, LC_INT8)
LC_DEFINE_DISTANCES(lc_distances_u8, lc_f32_block, LC_UINT8)

LC_INLINE int64_t lc_different_bits(const uint8_t *a, const uint8_t *b, int64_t size) {
    int64_t bits = 0, i = 0;
    for (; i + 8 <= size; i += 8) bits += lc_popcount64(lc_load_u64(a + i) ^ lc_load_u64(b + i));
    for (; i < size; i++) bits += lc_popcount64((uint64_t)(lc_load_u8(a + i) ^ lc_load_u8(b + i)));
    return bits;
}

LC_CLONES static void lc_distances_bits(const lc_vectors *v, int64_t first, int64_t stop, const lc_queries *q, float *out,
                                        int64_t apart) {
    for (int64_t k = 0; k < q->n; k++)
        for (int64_t i = first; i < stop; i++)
            out[k * apart + i - first] =
                (float)lc_different_bits(lc_vector_at(v, i, v->dimension), q->values + k * v->dimension, v->dimension);
}

/* Distances of vectors [first, stop) to all queries, whose `lengths` are needed for cosine only. */
static inline void lc_distances(const lc_vectors *v, int64_t first, int64_t stop, const lc_queries *q,
                                const double *lengths, float *out, int64_t apart) {
    if (q->metric == LC_HAMMING) lc_distances_bits(v, first, stop, q, out, apart);
    else if (v->element == LC_FLOAT32) lc_distances_f32(v, first, stop, q, lengths, out, apart);
    else if (v->element == LC_FLOAT64) lc_distances_f64(v, first, stop, q, lengths, out, apart);
    else if (v->element == LC_FLOAT16) lc_distances_f16(v, first, stop, q, lengths, out, apart);
    else if (v->element == LC_BFLOAT16) lc_distances_bf16(v, first, stop, q, lengths, out, apart);
    else if (v->element == LC_INT8) lc_distances_i8(v, first, stop, q, lengths, out, apart);
    else lc_distances_u8(v, first, stop, q, lengths, out, apart);
}

/* Length of query k. */
static inline double lc_query_length(const lc_queries *q, int64_t k, int64_t dimension, int element) {
    const uint8_t *p = q->values + k * lc_query_size(dimension, element, q->metric);
    double sum = 0;
    for (int64_t i = 0; i < dimension; i++) {
        double x;
        float y;
        if (element == LC_FLOAT64) memcpy(&x, p + 8 * i, sizeof x);
        else memcpy(&y, p + 4 * i, sizeof y), x = y;
        sum += x * x;
    }
    return sqrt(sum);
}

#endif
