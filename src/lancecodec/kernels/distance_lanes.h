/* Elements of vectors in groups of 64 bytes, one lane for each number, for sums of squared differences and of products.
 *
 * Sums are kept in lanes, so that compilers need not reorder additions of floats, and all instruction sets add in the
 * same order. A group is made of vectors that fit into registers: compilers keep wider ones in memory, and wait for each
 * store before the next load. Compilers without vectors of a fixed size use one lane. */
#ifndef LANCECODEC_DISTANCE_LANES_H
#define LANCECODEC_DISTANCE_LANES_H

#include "chunk.h"

enum lc_element { LC_FLOAT32, LC_FLOAT64, LC_FLOAT16, LC_BFLOAT16, LC_INT8, LC_UINT8, LC_ELEMENTS };
enum lc_metric { LC_L2, LC_COSINE, LC_DOT, LC_HAMMING, LC_METRICS };

/* Queries that share one pass over a vector. */
#define LC_TOGETHER 4
/* Queries are padded with zeros to a multiple of this number of elements. */
#define LC_QUERY_UNIT 16

/* Bytes of a register: that of AVX2 where kernels are compiled for it, too, otherwise one that all processors have. */
#if defined(__x86_64__) && defined(__linux__) && defined(__GLIBC__)
#define LC_REGISTER 32
#else
#define LC_REGISTER 16
#endif

/* Registers of a group, numbers of 32 bits in a register, and in a group; half as many have 64 bits. */
#if defined(__GNUC__) || defined(__clang__)
#define LC_PARTS (4 * LC_QUERY_UNIT / LC_REGISTER)
#define LC_PART (LC_REGISTER / 4)
#define LC_PART_64 (LC_REGISTER / 8)
#define LC_DEFINE_PART(NAME, TYPE, N)                                      \
    typedef TYPE NAME##_part __attribute__((vector_size((N) * sizeof(TYPE)))); \
    typedef NAME##_part NAME##_memory __attribute__((aligned(1), may_alias))
#define LC_WHERE(condition, value) ((lc_u32_part)(condition) & (value))
#else
#define LC_PARTS 1
#define LC_PART 1
#define LC_PART_64 1
#define LC_DEFINE_PART(NAME, TYPE, N) typedef TYPE NAME##_part, NAME##_memory
#define LC_WHERE(condition, value) ((condition) ? (value) : 0)
#endif
#define LC_LANES (LC_PARTS * LC_PART)
#define LC_LANES_64 (LC_PARTS * LC_PART_64)

LC_DEFINE_PART(lc_f32, float, LC_PART);
LC_DEFINE_PART(lc_f64, double, LC_PART_64);
LC_DEFINE_PART(lc_u32, uint32_t, LC_PART);

typedef struct {
    lc_f32_part part[LC_PARTS];
} lc_f32_lanes;

typedef struct {
    lc_f64_part part[LC_PARTS];
} lc_f64_lanes;

LC_INLINE int64_t lc_element_width(int element) {
    return element == LC_FLOAT64 ? 8 : element == LC_FLOAT32 ? 4 : element == LC_FLOAT16 || element == LC_BFLOAT16 ? 2 : 1;
}

/* Bytes of a query in the form of `lc_queries`. */
LC_INLINE int64_t lc_query_size(int64_t dimension, int element, int metric) {
    if (metric == LC_HAMMING) return dimension;
    return (dimension + LC_QUERY_UNIT - 1) / LC_QUERY_UNIT * LC_QUERY_UNIT * (element == LC_FLOAT64 ? 8 : 4);
}

/* Halves as floats. A multiplication adjusts the exponent, and normalizes small numbers; it makes infinity and NaN
 * numbers from 65536 on, whose exponent is then set. */
LC_INLINE void lc_floats_of_halves(lc_f32_part *x) {
    lc_u32_part half, bits;
    memcpy(&half, x, sizeof half);
    bits = (half & 0x7FFFu) << 13;
    memcpy(x, &bits, sizeof bits);
    *x *= 0x1p112f;
    memcpy(&bits, x, sizeof bits);
    bits |= LC_WHERE(bits >= 0x47800000u, 0x7F800000u) | (half & 0x8000u) << 16;
    memcpy(x, &bits, sizeof bits);
}

LC_INLINE void lc_f32_load_part(const uint8_t *p, int element, lc_f32_part *out) {
    uint32_t wide[LC_PART];
    float x[LC_PART];
    if (element == LC_FLOAT32) {
        *out = *(const lc_f32_memory *)p;
        return;
    }
    if (element == LC_UINT8) {
        for (int i = 0; i < LC_PART; i++) x[i] = (float)(int32_t)p[i];
    } else if (element == LC_INT8) {
        for (int i = 0; i < LC_PART; i++) x[i] = (float)(int32_t)(p[i] ^ 0x80) - 128.0f;
    } else {
        for (int i = 0; i < LC_PART; i++) wide[i] = (uint32_t)lc_load_u16(p + 2 * i) << (element == LC_BFLOAT16 ? 16 : 0);
        memcpy(x, wide, sizeof x);
    }
    memcpy(out, x, sizeof x);
    if (element == LC_FLOAT16) lc_floats_of_halves(out);
}

LC_INLINE void lc_f64_load_part(const uint8_t *p, int element, lc_f64_part *out) {
    (void)element;
    *out = *(const lc_f64_memory *)p;
}

/* Loads of a group of elements, sums of a group and a query, and the total of the lanes. */
#define LC_DEFINE_LANES(NAME, NUMBER, LANES, PART)                                                       \
    LC_INLINE void NAME##_load(const uint8_t *p, int element, NAME##_lanes *x) {                         \
        for (int k = 0; k < LC_PARTS; k++)                                                               \
            NAME##_load_part(p + k * PART * lc_element_width(element), element, &x->part[k]);            \
    }                                                                                                    \
    LC_INLINE void NAME##_add(const NAME##_lanes *x, const uint8_t *q, int metric, NAME##_lanes *sum) {  \
        for (int k = 0; k < LC_PARTS; k++) {                                                             \
            NAME##_part y = *(const NAME##_memory *)(q + k * PART * sizeof(NUMBER));                     \
            y = metric == LC_L2 ? y - x->part[k] : y * x->part[k];                                       \
            if (metric == LC_L2) y *= y;                                                                 \
            sum->part[k] += y;                                                                           \
        }                                                                                                \
    }                                                                                                    \
    LC_INLINE void NAME##_add_squares(const NAME##_lanes *x, NAME##_lanes *sum) {                        \
        for (int k = 0; k < LC_PARTS; k++) sum->part[k] += x->part[k] * x->part[k];                      \
    }                                                                                                    \
    LC_INLINE NUMBER NAME##_total(const NAME##_lanes *lanes) {                                           \
        NAME##_lanes sum = *lanes;                                                                       \
        NUMBER x[PART];                                                                                  \
        for (int half = LC_PARTS / 2; half > 0; half /= 2)                                               \
            for (int k = 0; k < half; k++) sum.part[k] += sum.part[k + half];                            \
        memcpy(x, &sum.part[0], sizeof x);                                                               \
        for (int half = PART / 2; half > 0; half /= 2)                                                   \
            for (int i = 0; i < half; i++) x[i] += x[i + half];                                          \
        return x[0];                                                                                     \
    }

LC_DEFINE_LANES(lc_f32, float, LC_LANES, LC_PART)
LC_DEFINE_LANES(lc_f64, double, LC_LANES_64, LC_PART_64)

/* For `t` = 1 or 4 queries: sums of squared differences, or of products, of a vector and each query. The sum behind them
 * is that of the squares of the vector, for cosine. The names of the sums are written out, to be kept in registers. */
#define LC_DEFINE_SUMS(NAME, NUMBER, LANES)                                                                           \
    LC_INLINE void NAME##_sums(const uint8_t *v, const uint8_t *q, int64_t dimension, int element, int metric, int t, \
                               NUMBER *out) {                                                                         \
        NAME##_lanes a = {0}, b = {0}, c = {0}, d = {0}, squares = {0}, x;                                            \
        uint8_t rest[LANES * sizeof(NUMBER)] = {0};                                                                   \
        int64_t i = 0, width = lc_element_width(element), size = lc_query_size(dimension, element, metric);           \
        for (; i < dimension; i += LANES, q += LANES * sizeof(NUMBER)) {                                              \
            const uint8_t *p = v + i * width;                                                                         \
            if (i + LANES > dimension) p = (const uint8_t *)memcpy(rest, p, (size_t)((dimension - i) * width));       \
            NAME##_load(p, element, &x);                                                                              \
            NAME##_add(&x, q, metric, &a);                                                                            \
            if (t > 1) {                                                                                              \
                NAME##_add(&x, q + size, metric, &b);                                                                 \
                NAME##_add(&x, q + 2 * size, metric, &c);                                                             \
                NAME##_add(&x, q + 3 * size, metric, &d);                                                             \
            }                                                                                                         \
            if (metric == LC_COSINE) NAME##_add_squares(&x, &squares);                                                \
        }                                                                                                             \
        out[0] = NAME##_total(&a);                                                                                    \
        if (t > 1) out[1] = NAME##_total(&b), out[2] = NAME##_total(&c), out[3] = NAME##_total(&d);                   \
        out[t] = metric == LC_COSINE ? NAME##_total(&squares) : 0;                                                    \
    }

LC_DEFINE_SUMS(lc_f32, float, LC_LANES)
LC_DEFINE_SUMS(lc_f64, double, LC_LANES_64)

#endif
