/* Nearest vectors of any bytes: found candidates are in order, as near as a plain sum says, and none is nearer. */
#include "fuzz.h"
#include "nearest.h"

static double element_of(const uint8_t *p, int element) {
    float f;
    double d;
    uint16_t h;
    if (element == LC_FLOAT64) return memcpy(&d, p, 8), d;
    if (element == LC_FLOAT32) return memcpy(&f, p, 4), f;
    if (element == LC_UINT8) return *p;
    if (element == LC_INT8) return (int8_t)*p;
    memcpy(&h, p, 2);
    if (element == LC_BFLOAT16) {
        uint32_t bits = (uint32_t)h << 16;
        return memcpy(&f, &bits, 4), f;
    }
    int exponent = h >> 10 & 31, fraction = h & 1023;
    double size = exponent == 31 ? (fraction ? NAN : INFINITY)
                                 : exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
    return h >> 15 ? -size : size;
}

/* The distance, and how large the numbers are that sums of 32 bits round. */
static double distance_of(const uint8_t *v, const uint8_t *q, int64_t dimension, int element, int metric, double *scale) {
    double sum = 0, squares = 0, length = 0;
    *scale = 1;
    for (int64_t i = 0; i < dimension; i++) {
        if (metric == LC_HAMMING) {
            sum += lc_popcount64(v[i] ^ q[i]);
            continue;
        }
        double x = element_of(v + i * lc_element_width(element), element);
        double y = element_of(q + i * (element == LC_FLOAT64 ? 8 : 4), element == LC_FLOAT64 ? element : LC_FLOAT32);
        sum += metric == LC_L2 ? (x - y) * (x - y) : x * y;
        squares += x * x, length += y * y;
        *scale += metric == LC_L2 ? (x - y) * (x - y) : fabs(x * y);
    }
    if (metric == LC_COSINE) *scale = squares > 1e-25 && squares < 1e25 && length > 1e-25 ? 1 : INFINITY;
    if (metric == LC_COSINE) return 1 - sum / (sqrt(squares) * sqrt(length));
    return metric == LC_DOT ? 1 - sum : sum;
}

static int is_near(double a, double b, double scale) {
    return !isfinite(a) || !isfinite(b) || !(scale < 1e25) || fabs(a - b) <= 1e-4 * scale;
}

static void checked(lc_nearest *s, fz_input *in, const lc_vectors *v, const lc_queries *q) {
    for (int64_t k = 0; k < s->queries; k++) {
        int64_t n = s->heaps[k].n;
        uint8_t *distances = fz_out(in, 4 * n), *ids = fz_out(in, 8 * n), *addresses = fz_out(in, 8 * n);
        FZ_CHECK(n <= s->k);
        lc_nearest_drain(s, k, distances, ids, addresses);
        float last = -INFINITY;
        for (int64_t i = 0; i < n; i++) {
            float distance;
            double scale, plain;
            memcpy(&distance, distances + 4 * i, 4);
            FZ_CHECK(distance >= last);
            last = distance;
            int64_t at = (int64_t)lc_load_u64(addresses + 8 * i);
            FZ_CHECK(at >= 0 && at < v->n);
            plain = distance_of(v->values + at * v->dimension * lc_element_width(v->element),
                                q->values + k * lc_query_size(v->dimension, v->element, q->metric), v->dimension,
                                v->element, q->metric, &scale);
            FZ_CHECK(is_near(distance, plain, scale));
        }
    }
}

static void fz_target(fz_input *in) {
    lc_vectors v = {0};
    lc_queries q = {0};
    lc_nearest s, other;
    lc_vector_rows r = {0};
    v.element = (int)fz_upto(in, LC_ELEMENTS - 1), q.metric = (int)fz_upto(in, LC_METRICS - 1);
    if (q.metric == LC_HAMMING) v.element = LC_UINT8;
    v.dimension = 1 + fz_upto(in, 40), v.n = fz_upto(in, 90), q.n = 1 + fz_upto(in, 5);
    int64_t k = 1 + fz_upto(in, 80), lists = fz_upto(in, 9), rows = fz_upto(in, 20);
    FZ_CHECK(!lc_nearest_open(&s, q.n, k) && !lc_nearest_open(&other, q.n, k));
    int is_limited = fz_upto(in, 3) == 0, is_chosen = fz_upto(in, 2) == 0 && v.n, has_nulls = fz_upto(in, 2) == 0;
    if (is_limited) s.has_below = s.has_lowest = 1, s.lowest = -1, s.below = 5;
    int64_t size = lc_query_size(v.dimension, v.element, q.metric);
    uint8_t *queries = fz_take(in, q.n * size);
    int64_t used = q.metric == LC_HAMMING ? size : v.dimension * (v.element == LC_FLOAT64 ? 8 : 4);
    for (int64_t i = 0; i < q.n && used < size; i++) memset(queries + i * size + used, 0, (size_t)(size - used));
    q.values = queries;
    v.values = fz_take(in, v.n * v.dimension * lc_element_width(v.element));
    if (has_nulls) r.valid = fz_take(in, v.n / 8 + 1);
    lc_vectors chosen = v;
    if (is_chosen) chosen.rows = (const uint8_t *)fz_positions(in, rows, v.n), chosen.n = rows;
    FZ_CHECK(!is_chosen || lc_numbers_within(chosen.rows, rows, v.n));
    FZ_CHECK(!lc_nearest_add(&s, &chosen, &q, &r) && !lc_nearest_merge(&other, &s));
    checked(&s, in, &v, &q);
    FZ_CHECK(!lc_nearest_add(&other, &v, &q, &r));
    checked(&other, in, &v, &q);
    lc_vector_lists l = {0};
    l.wide = (int)fz_upto(in, 1), l.n = lists, l.vectors = v.n;
    uint8_t *offsets = fz_out(in, (lists + 1) * (l.wide ? 8 : 4));
    for (int64_t i = 0, at = 0; i <= lists; i++) lc_store_offset(offsets, l.wide, i, at), at += fz_upto(in, v.n - at);
    if (fz_upto(in, 3) == 0) lc_store_offset(offsets, l.wide, fz_upto(in, lists), (int64_t)fz_word(in, 8));
    l.offsets = offsets;
    l.valid = r.valid;
    r.valid = 0;
    lc_nearest_add_lists(&s, &v, &l, &q, &r);
    for (int64_t i = 0; i < s.heaps[0].n; i++) FZ_CHECK(s.heaps[0].items[i].address < (uint64_t)lists);
    lc_nearest_close(&s);
    lc_nearest_close(&other);
}
