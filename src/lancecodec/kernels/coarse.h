/* Coarse codes of plain vectors: a byte for each element, and the length of what the bytes leave out.
 *
 * Two vectors are at least as far apart as their coarse forms, less what these leave out; lengths make of that a bound of
 * their product. So a search reads the codes, which are a fraction of the vectors, and compares only those vectors that
 * may be near enough. It finds exactly what it would find without codes. */
#ifndef LANCECODEC_COARSE_H
#define LANCECODEC_COARSE_H

#include "nearest.h"

/* Part that is added to bounds, for the rounding of sums. */
#define LC_COARSE_SLACK 1e-3

/* Codes, errors and lengths of vectors: an element is about `start` plus `step` times its code. */
typedef struct {
    const uint8_t *codes;
    const float *errors, *lengths;
    float start, step, mean_length;
} lc_coarse;

/* A query as codes: its error, and the length of what they stand for. */
typedef struct {
    double error, length;
} lc_coarse_query;

LC_INLINE float lc_half(const uint8_t *p) {
    lc_f32_part x = {0};
    float first;
    memcpy(&x, p, 2);
    lc_floats_of_halves(&x);
    memcpy(&first, &x, sizeof first);
    return first;
}

/* Element of a vector of floats of 16, 32 or 64 bits. */
LC_INLINE double lc_coarse_element(const uint8_t *p, int64_t i, int element) {
    double wide;
    float x;
    if (element == LC_FLOAT64) {
        memcpy(&wide, p + 8 * i, sizeof wide);
        return wide;
    }
    if (element == LC_FLOAT16) return lc_half(p + 2 * i);
    memcpy(&x, p + 4 * i, sizeof x);
    return x;
}

LC_INLINE uint8_t lc_coarse_code(double x, const lc_coarse *c) {
    double level = (x - c->start) / c->step + 0.5;
    return level >= 255 ? 255 : level > 0 ? (uint8_t)level : 0;
}

/* Write the codes of a vector, with all elements times `scale`, and return its error and length. */
LC_INLINE lc_coarse_query lc_coarse_encode_one(const uint8_t *p, int64_t dimension, int element, double scale,
                                               const lc_coarse *c, uint8_t *codes) {
    double sum = 0, square = 0;
    for (int64_t d = 0; d < dimension; d++) {
        double x = scale * lc_coarse_element(p, d, element), rest;
        codes[d] = lc_coarse_code(x, c);
        rest = x - ((double)c->start + (double)c->step * codes[d]);
        sum += rest * rest, square += x * x;
    }
    lc_coarse_query found = {sqrt(sum), sqrt(square)};
    return found;
}

LC_INLINE int lc_coarse_range_of(const uint8_t *values, int64_t n, int element, lc_coarse *c) {
    double low = INFINITY, high = -INFINITY, wrong = 0;
    for (int64_t i = 0; i < n; i++) {
        double x = lc_coarse_element(values, i, element);
        wrong += x - x; /* NaN for what is not finite */
        low = x < low ? x : low, high = x > high ? x : high;
    }
    c->start = (float)low, c->step = (float)((high - low) / 255);
    return wrong == 0 && isfinite(c->start) && isfinite(c->step) && c->step > 0;
}

LC_INLINE void lc_coarse_encode_of(const uint8_t *values, int64_t n, int64_t dimension, int element, lc_coarse *c,
                                   uint8_t *codes, float *errors) {
    int64_t size = dimension * lc_element_width(element);
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        lc_coarse_query one = lc_coarse_encode_one(values + i * size, dimension, element, 1, c, codes + i * dimension);
        errors[i] = (float)(one.error * (1 + LC_COARSE_SLACK));
        errors[n + i] = (float)one.length;
        sum += one.length;
    }
    c->mean_length = (float)(sum / (double)n);
}

/* Make the codes of n vectors, and their errors and lengths, one after the other; return 0 if they have none, since not
 * all elements are finite and different. */
LC_CLONES static int lc_coarse_make(const uint8_t *values, int64_t n, int64_t dimension, int element, lc_coarse *c,
                                    uint8_t *codes, float *errors) {
    int found = element == LC_FLOAT32   ? lc_coarse_range_of(values, n * dimension, LC_FLOAT32, c)
                : element == LC_FLOAT64 ? lc_coarse_range_of(values, n * dimension, LC_FLOAT64, c)
                                        : lc_coarse_range_of(values, n * dimension, LC_FLOAT16, c);
    if (!found) return 0;
    if (element == LC_FLOAT32) lc_coarse_encode_of(values, n, dimension, LC_FLOAT32, c, codes, errors);
    else if (element == LC_FLOAT64) lc_coarse_encode_of(values, n, dimension, LC_FLOAT64, c, codes, errors);
    else lc_coarse_encode_of(values, n, dimension, LC_FLOAT16, c, codes, errors);
    c->codes = codes, c->errors = errors, c->lengths = errors + n;
    return isfinite(c->mean_length);
}

/* Write the codes of a query, which has floats of 32 bits, or of 64 bits for vectors of these. One for cosines is made as
 * long as the vectors are. */
static inline lc_coarse_query lc_coarse_encode_query(const uint8_t *query, int64_t dimension, int element, int metric,
                                                     const lc_coarse *c, uint8_t *codes) {
    int kind = element == LC_FLOAT64 ? LC_FLOAT64 : LC_FLOAT32;
    lc_coarse_query found = lc_coarse_encode_one(query, dimension, kind, 1, c, codes);
    if (metric != LC_COSINE || !(found.length > 0)) return found;
    return lc_coarse_encode_one(query, dimension, kind, c->mean_length / found.length, c, codes);
}

/* Write the positions of those of n vectors, at most a block, that may be within a limit, and return their number.
 * `squares` are the squared distances of the codes. */
LC_CLONES static int64_t lc_coarse_within(const lc_coarse *c, const lc_coarse_query *q, int metric, const float *squares,
                                          int64_t n, float limit, int64_t first, int64_t *rows) {
    const float *errors = c->errors + first, *lengths = c->lengths + first;
    float error = (float)(q->error * (1 + LC_COARSE_SLACK)), length = (float)q->length, more = 1 + (float)LC_COARSE_SLACK;
    float by_length = metric == LC_COSINE ? 2 * (1 - limit) * length : 0, rest = metric == LC_DOT ? 2 * (1 - limit) : 0;
    uint8_t near[LC_VECTOR_BLOCK];
    int64_t found = 0;
    if (metric == LC_L2) {
        error += sqrtf(limit > 0 ? limit : 0) * more;
        for (int64_t i = 0; i < n; i++) near[i] = !(squares[i] > (error + errors[i]) * (error + errors[i]));
    } else {
        for (int64_t i = 0; i < n; i++) {  /* the largest squared distance of vectors with such a product */
            float both = length * length + lengths[i] * lengths[i];
            float most = both * (1 + (float)LC_COARSE_SLACK / 8) - by_length * lengths[i] - rest;
            float reach = sqrtf(most > 0 ? most : 0) * more + error + errors[i];
            near[i] = !(squares[i] > reach * reach);
        }
    }
    for (int64_t i = 0; i < n; i++) {
        rows[found] = first + i;
        found += near[i];
    }
    return found;
}

#endif
