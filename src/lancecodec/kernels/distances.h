/* Distances of vectors to queries: l2 (squared), cosine, dot (both one minus the product), and hamming (bits).
 *
 * Sums are kept in lanes, one for each element of a group, so that compilers need not reorder additions of floats.
 * Compilers without vectors of a fixed size use one lane. */
#ifndef LANCECODEC_DISTANCES_H
#define LANCECODEC_DISTANCES_H

#include <math.h>

#include "chunk.h"

enum lc_element { LC_FLOAT32, LC_FLOAT64, LC_FLOAT16, LC_BFLOAT16, LC_INT8, LC_UINT8, LC_ELEMENTS };
enum lc_metric { LC_L2, LC_COSINE, LC_DOT, LC_HAMMING, LC_METRICS };

/* Queries that share one pass over a vector. */
#define LC_TOGETHER 4
/* Vectors whose distances are computed together, while they are in the caches. */
#define LC_VECTOR_BLOCK 64
/* Vectors picked by number that are loaded ahead of their comparison, and bytes of each. */
#define LC_AHEAD 16
#define LC_EXPECTED 1024
/* Queries are padded with zeros to a multiple of this number of elements. */
#define LC_QUERY_UNIT 16

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

/* Numbers of 32 bits in a group of lanes; half as many have 64 bits. */
#if defined(__GNUC__) || defined(__clang__)
#define LC_LANES LC_QUERY_UNIT
#define LC_LANES_64 (LC_QUERY_UNIT / 2)
#define LC_DEFINE_LANES(NAME, TYPE, N) typedef TYPE NAME __attribute__((vector_size(N * sizeof(TYPE))))
#define LC_WHERE(condition, value) ((lc_u32_lanes)(condition) & (value))
#else
#define LC_LANES 1
#define LC_LANES_64 1
#define LC_DEFINE_LANES(NAME, TYPE, N) typedef TYPE NAME
#define LC_WHERE(condition, value) ((condition) ? (value) : 0)
#endif

LC_DEFINE_LANES(lc_f32_lanes, float, LC_LANES);
LC_DEFINE_LANES(lc_f64_lanes, double, LC_LANES_64);
LC_DEFINE_LANES(lc_u32_lanes, uint32_t, LC_LANES);

LC_INLINE int64_t lc_element_width(int element) {
    return element == LC_FLOAT64 ? 8 : element == LC_FLOAT32 ? 4 : element == LC_FLOAT16 || element == LC_BFLOAT16 ? 2 : 1;
}

/* Bytes of a query in the form of `lc_queries`. */
LC_INLINE int64_t lc_query_size(int64_t dimension, int element, int metric) {
    if (metric == LC_HAMMING) return dimension;
    return (dimension + LC_QUERY_UNIT - 1) / LC_QUERY_UNIT * LC_QUERY_UNIT * (element == LC_FLOAT64 ? 8 : 4);
}

/* Halves as floats, from numbers of 32 bits. A multiplication adjusts the exponent, and normalizes small numbers; it makes
 * infinity and NaN numbers from 65536 on, whose exponent is then set. */
LC_INLINE void lc_floats_of_halves(const uint32_t *halves, float *out) {
    lc_u32_lanes half, bits;
    lc_f32_lanes value;
    memcpy(&half, halves, sizeof half);
    bits = (half & 0x7FFFu) << 13;
    memcpy(&value, &bits, sizeof value);
    value = value * 0x1p112f;
    memcpy(&bits, &value, sizeof value);
    bits |= LC_WHERE(bits >= 0x47800000u, 0x7F800000u) | (half & 0x8000u) << 16;
    memcpy(out, &bits, sizeof bits);
}

/* One element for each lane. Compilers make few instructions of these loops. */
LC_INLINE void lc_f32_load(const uint8_t *p, int element, lc_f32_lanes *out) {
    float x[LC_LANES];
    uint32_t wide[LC_LANES];
    uint16_t halves[LC_LANES];
    uint8_t bytes[LC_LANES];
    if (element == LC_FLOAT32) {
        memcpy(x, p, sizeof x);
    } else if (element == LC_UINT8) {
        memcpy(bytes, p, sizeof bytes);
        for (int i = 0; i < LC_LANES; i++) x[i] = (float)(int32_t)bytes[i];
    } else if (element == LC_INT8) {
        memcpy(bytes, p, sizeof bytes);
        for (int i = 0; i < LC_LANES; i++) x[i] = (float)(int32_t)(bytes[i] ^ 0x80) - 128.0f;
    } else {
        memcpy(halves, p, sizeof halves);
        for (int i = 0; i < LC_LANES; i++) wide[i] = element == LC_BFLOAT16 ? (uint32_t)halves[i] << 16 : halves[i];
        if (element == LC_BFLOAT16) memcpy(x, wide, sizeof x);
        else lc_floats_of_halves(wide, x);
    }
    memcpy(out, x, sizeof x);
}

LC_INLINE void lc_f64_load(const uint8_t *p, int element, lc_f64_lanes *out) {
    (void)element;
    memcpy(out, p, sizeof *out);
}

/* For `t` = 1 or 4 queries: sums of squared differences, or of products, of a vector and each query. The sum behind them
 * is that of the squares of the vector, for cosine. The names of the sums are written out, to be kept in registers. */
#define LC_DEFINE_SUMS(NAME, NUMBER, LANES)                                                                           \
    LC_INLINE NUMBER NAME##_total(const NAME##_lanes *lanes) {                                                        \
        NUMBER x[LANES];                                                                                              \
        memcpy(x, lanes, sizeof x);                                                                                   \
        for (int half = LANES / 2; half > 0; half /= 2)                                                               \
            for (int i = 0; i < half; i++) x[i] += x[i + half];                                                       \
        return x[0];                                                                                                  \
    }                                                                                                                 \
    LC_INLINE void NAME##_add(const NAME##_lanes *x, const uint8_t *q, int metric, NAME##_lanes *sum) {               \
        NAME##_lanes y;                                                                                               \
        memcpy(&y, q, sizeof y);                                                                                      \
        y = metric == LC_L2 ? y - *x : y * *x;                                                                        \
        *sum += metric == LC_L2 ? y * y : y;                                                                          \
    }                                                                                                                 \
    LC_INLINE void NAME##_sums(const uint8_t *v, const uint8_t *q, int64_t dimension, int element, int metric, int t, \
                               NUMBER *out) {                                                                         \
        NAME##_lanes a = {0}, b = {0}, c = {0}, d = {0}, squares = {0}, x;                                            \
        uint8_t rest[LANES * sizeof(NUMBER)] = {0};                                                                   \
        int64_t i = 0, width = lc_element_width(element), size = lc_query_size(dimension, element, metric);           \
        for (; i < dimension; i += LANES, q += LANES * sizeof(NUMBER)) {                                              \
            if (i + LANES <= dimension) {                                                                             \
                NAME##_load(v + i * width, element, &x);                                                              \
            } else {                                                                                                  \
                memcpy(rest, v + i * width, (size_t)((dimension - i) * width));                                       \
                NAME##_load(rest, element, &x);                                                                       \
            }                                                                                                         \
            NAME##_add(&x, q, metric, &a);                                                                            \
            if (t > 1) {                                                                                              \
                NAME##_add(&x, q + size, metric, &b);                                                                 \
                NAME##_add(&x, q + 2 * size, metric, &c);                                                             \
                NAME##_add(&x, q + 3 * size, metric, &d);                                                             \
            }                                                                                                         \
            if (metric == LC_COSINE) squares += x * x;                                                                \
        }                                                                                                             \
        out[0] = NAME##_total(&a);                                                                                    \
        if (t > 1) out[1] = NAME##_total(&b), out[2] = NAME##_total(&c), out[3] = NAME##_total(&d);                   \
        out[t] = metric == LC_COSINE ? NAME##_total(&squares) : 0;                                                    \
    }

LC_DEFINE_SUMS(lc_f32, float, LC_LANES)
LC_DEFINE_SUMS(lc_f64, double, LC_LANES_64)

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

/* Begin to load a vector that is compared soon, if vectors are picked: processors foresee only reads that go on. */
LC_INLINE void lc_expect_vector(const lc_vectors *v, int64_t i, int64_t size) {
#if defined(__GNUC__) || defined(__clang__)
    if (!v->rows || i >= v->n) return;
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
