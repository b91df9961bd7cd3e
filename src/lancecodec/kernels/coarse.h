/* Coarse codes of plain vectors: a byte for each element, and the length of what the bytes leave out.
 *
 * Two vectors are at least as far apart as their coarse forms, less what these leave out; lengths make of that a bound
 * of their product. So a search reads the codes, which are a fraction of the vectors, and compares only those vectors
 * that may be near enough. It finds exactly what it would find without codes. */
#ifndef LANCECODEC_COARSE_H
#define LANCECODEC_COARSE_H

#include "nearest.h"

/* Part that is added to bounds, for the rounding of sums. */
#define LC_COARSE_SLACK 1e-3
/* Elements that are encoded together. */
#define LC_COARSE_LOADED 256
/* Squares of differences of bytes that are added to a number of 32 bits. */
#define LC_SQUARES 16384
/* Blocks that are compared as a whole after one of which most vectors may be near. */
#define LC_COARSE_REST 16

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

/* Elements of a vector from `first` on, times a factor; as many as fit, their number is returned. */
LC_INLINE int64_t lc_coarse_load(const uint8_t *p, int64_t first, int64_t dimension, int element, double scale,
                                 double *LC_RESTRICT x) {
    int64_t n = dimension - first < LC_COARSE_LOADED ? dimension - first : LC_COARSE_LOADED;
    for (int64_t i = 0; i < n; i++) x[i] = scale * lc_coarse_element(p, first + i, element);
    return n;
}

/* Sum of n numbers in halves, which may be overwritten. */
LC_INLINE double lc_coarse_sum(double *x, int64_t n) {
    while (n > 1) {
        int64_t half = n / 2;
        for (int64_t i = 0; i < half; i++) x[i] += x[n - half + i];
        n -= half;
    }
    return x[0];
}

/* Write the codes of a vector, with all elements times `scale`, and return its error and length. */
LC_INLINE lc_coarse_query lc_coarse_encode_one(const uint8_t *p, int64_t dimension, int element, double scale,
                                               const lc_coarse *c, uint8_t *LC_RESTRICT codes) {
    double start = c->start, step = c->step, inverse = 1 / step, sum = 0, square = 0;
    for (int64_t first = 0, n; first < dimension; first += n) {
        double x[LC_COARSE_LOADED], rest[LC_COARSE_LOADED];
        int32_t code[LC_COARSE_LOADED];
        x[0] = rest[0] = 0;
        n = lc_coarse_load(p, first, dimension, element, scale, x);
        for (int64_t i = 0; i < n; i++) {
            double level = (x[i] - start) * inverse + 0.5;
            level = level > 0 ? level : 0;
            code[i] = (int32_t)(level < 255 ? level : 255);
            rest[i] = x[i] - (start + step * code[i]);
        }
        for (int64_t i = 0; i < n; i++) codes[first + i] = (uint8_t)code[i];
        for (int64_t i = 0; i < n; i++) rest[i] *= rest[i], x[i] *= x[i];
        sum += lc_coarse_sum(rest, n), square += lc_coarse_sum(x, n);
    }
    lc_coarse_query found = {sqrt(sum), sqrt(square)};
    return found;
}

LC_INLINE int lc_coarse_range_of(const uint8_t *values, int64_t count, int element, lc_coarse *c) {
    double lows[LC_COARSE_LOADED], highs[LC_COARSE_LOADED], wrong[LC_COARSE_LOADED], low = INFINITY, high = -INFINITY;
    for (int64_t i = 0; i < LC_COARSE_LOADED; i++) lows[i] = INFINITY, highs[i] = -INFINITY, wrong[i] = 0;
    for (int64_t first = 0, n; first < count; first += n) {
        double x[LC_COARSE_LOADED];
        n = lc_coarse_load(values, first, count, element, 1, x);
        for (int64_t i = 0; i < n; i++) {
            wrong[i] += x[i] - x[i]; /* NaN for what is not finite */
            lows[i] = x[i] < lows[i] ? x[i] : lows[i], highs[i] = x[i] > highs[i] ? x[i] : highs[i];
        }
    }
    for (int64_t i = 0; i < LC_COARSE_LOADED; i++) {
        low = lows[i] < low ? lows[i] : low;
        high = highs[i] > high ? highs[i] : high;
    }
    c->start = (float)low, c->step = (float)((high - low) / 255);
    return lc_coarse_sum(wrong, LC_COARSE_LOADED) == 0 && isfinite(c->start) && isfinite(c->step) && c->step > 0;
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

/* Write the codes of a query, which has floats of 32 bits, or of 64 bits for vectors of these. One for cosines is made
 * as long as the vectors are. */
static inline lc_coarse_query lc_coarse_encode_query(const uint8_t *query, int64_t dimension, int element, int metric,
                                                     const lc_coarse *c, uint8_t *codes) {
    int kind = element == LC_FLOAT64 ? LC_FLOAT64 : LC_FLOAT32;
    lc_coarse_query found = lc_coarse_encode_one(query, dimension, kind, 1, c, codes);
    if (metric != LC_COSINE || !(found.length > 0)) return found;
    return lc_coarse_encode_one(query, dimension, kind, c->mean_length / found.length, c, codes);
}

/* Squared distances of n codes to those of a query, times a factor. */
LC_CLONES static void lc_scalar_squares(const uint8_t *codes, const uint8_t *query, int64_t dimension, float factor,
                                        int64_t n, float *out) {
    for (int64_t i = 0; i < n; i++, codes += dimension) {
        uint64_t sum = 0;
        for (int64_t first = 0; first < dimension; first += LC_SQUARES) {
            int64_t stop = first + LC_SQUARES < dimension ? first + LC_SQUARES : dimension;
            int32_t part = 0;
            for (int64_t d = first; d < stop; d++) {  /* of 16 bits: compilers multiply and add pairs of these */
                int16_t x = (int16_t)(codes[d] - query[d]);
                part += (int32_t)x * (int32_t)x;
            }
            sum += (uint32_t)part;
        }
        out[i] = (float)sum * factor;
    }
}

/* Write the positions of those of n vectors, at most a block, that may be within a limit, and return their number.
 * `squares` are the squared distances of the codes. */
LC_CLONES static int64_t lc_coarse_within(const lc_coarse *c, const lc_coarse_query *q, int metric,
                                          const float *squares, int64_t n, float limit, int64_t first, int64_t *rows) {
    const float *errors = c->errors + first, *lengths = c->lengths + first;
    float more = 1 + (float)LC_COARSE_SLACK, error = (float)q->error * more, length = (float)q->length;
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

/* Write the positions of the vectors of a block that are to be compared, and return their number: those that may be
 * near enough by their codes, or all while the heap has room, and for some blocks after one in which most may be. `rest`
 * counts these blocks, and `squares` is memory. */
static inline int64_t lc_coarse_pick(const lc_coarse *c, const lc_coarse_query *q, const uint8_t *codes,
                                     int64_t dimension, int metric, const lc_candidates *heap, int64_t k, int64_t first, int64_t n,
                                     int64_t *rest, float *squares, int64_t *rows) {
    if (heap->n < k || --*rest >= 0) {
        for (int64_t i = 0; i < n; i++) rows[i] = first + i;
        return n;
    }
    lc_scalar_squares(c->codes + first * dimension, codes, dimension, c->step * c->step, n, squares);
    int64_t near = lc_coarse_within(c, q, metric, squares, n, heap->items[0].distance, first, rows);
    *rest = 2 * near > n ? LC_COARSE_REST : 0;
    return near;
}

/* Offer vectors that follow each other to the heap of the only query, as `lc_nearest_add`. `codes` is memory for those
 * of the query. */
static inline int lc_nearest_add_coarse(lc_nearest *s, const lc_vectors *v, const lc_queries *q,
                                        const lc_vector_rows *r, const lc_coarse *c, uint8_t *codes) {
    const lc_candidates *heap = &s->heaps[0];
    lc_coarse_query query = lc_coarse_encode_query(q->values, v->dimension, v->element, q->metric, c, codes);
    int64_t rows[LC_VECTOR_BLOCK], rest = 0;
    int problem = LC_OK;
    lc_nearest_measure(s, q, v->dimension, v->element);
    for (int64_t first = 0; first < v->n && !problem; first += LC_VECTOR_BLOCK) {
        int64_t n = v->n - first < LC_VECTOR_BLOCK ? v->n - first : LC_VECTOR_BLOCK;
        int64_t near = lc_coarse_pick(c, &query, codes, v->dimension, q->metric, heap, s->k, first, n, &rest,
                                      s->distances, rows);
        lc_vectors some = {v->values, v->dimension, v->element, (const uint8_t *)rows, near};
        lc_distances(&some, 0, near, q, s->lengths, s->distances, LC_VECTOR_BLOCK);
        for (int64_t i = 0; i < near && !problem; i++)
            if (heap->n < s->k || !(s->distances[i] > heap->items[0].distance))
                problem = lc_nearest_offer(s, 0, s->distances[i], r, rows[i], rows[i]);
    }
    return problem;
}

#endif
