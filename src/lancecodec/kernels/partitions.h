/* Search of the partitions of a vector index: vectors, or their codes, are compared with a query block by block.
 *
 * Codes of product quantization are column by column (byte k of row j at k * columns + j * rows). Signs of RaBitQ are in
 * blocks of 32 rows, and its other bits are unpacked to a byte for each value. Rows whose fragment is not in the table of
 * fragments, or that are not allowed, are left out. */
#ifndef LANCECODEC_PARTITIONS_H
#define LANCECODEC_PARTITIONS_H

#include "bits.h"
#include "coarse.h"

enum lc_storage { LC_STORED_FLAT, LC_STORED_PRODUCT, LC_STORED_SCALAR, LC_STORED_RABIT, LC_STORAGES };
/* Estimates of RaBitQ: from signs only, from sums of bytes, and from sums of floats. */
enum lc_effort { LC_EFFORT_FAST, LC_EFFORT_NORMAL, LC_EFFORT_ACCURATE };

#define LC_RABIT_ROWS 32
/* Groups of 4 signs whose sums of bytes fit into 16 bits. */
#define LC_RABIT_GROUPS 256

/* Rows of a partition; factors and `extra` are for RaBitQ, and `coarse` may be set at any time for plain vectors. */
typedef struct {
    const uint8_t *codes, *ids, *addresses, *extra;
    const uint8_t *add, *scale, *error, *add_all, *scale_all;
    int64_t n;
    const lc_coarse *coarse;
} lc_partition;

/* What the codes mean. `centroids` are floats, for residuals of product quantization, and rotated ones for residuals of
 * RaBitQ; the codebook is [parts][values][words]. */
typedef struct {
    int storage, element, metric, bits, raw, by_column;
    int64_t dimension, parts, count;
    const uint8_t *codebook, *centroids, *squares;
    float start, step;
    lc_partition *partitions;
} lc_stored;

/* A query: `vector` as kernels of distances read it, or floats (rotated for RaBitQ). */
typedef struct {
    const uint8_t *vector, *numbers, *distances;
    int64_t probes;
    int effort;
    const uint8_t *fragments, *starts, *sizes;
    int64_t n_fragments;
    const uint8_t *allowed;
} lc_probe;

/* Memory of a search. */
typedef struct {
    float *query, *table, *joined;
    uint8_t *bytes;
    float low, width, total, square;
    double length;
    float out[LC_VECTOR_BLOCK];
} lc_scratch;

LC_INLINE float lc_load_float(const uint8_t *p) {
    float x;
    memcpy(&x, p, sizeof x);
    return x;
}

/* Return whether a row exists and may be found. */
static inline int lc_probe_allows(const lc_probe *q, uint64_t address) {
    uint64_t fragment = address >> 32, offset = address & 0xFFFFFFFFu;
    int64_t low = 0, high = q->n_fragments;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (lc_load_u64(q->fragments + 8 * middle) < fragment) low = middle + 1;
        else high = middle;
    }
    if (low == q->n_fragments || lc_load_u64(q->fragments + 8 * low) != fragment) return 0;
    if (offset >= lc_load_u64(q->sizes + 8 * low)) return 0;
    return !q->allowed || lc_get_bit(q->allowed, (int64_t)(lc_load_u64(q->starts + 8 * low) + offset));
}

static inline int lc_probe_offer(lc_nearest *s, const lc_probe *q, const lc_partition *p, int64_t i, float distance) {
    lc_candidate item;
    if (!lc_nearest_accepts(s, distance)) return LC_OK;
    if (s->heaps[0].n == s->k && distance > s->heaps[0].items[0].distance) return LC_OK;
    item.distance = distance;
    item.id = lc_load_u64(p->ids + 8 * i);
    item.address = lc_load_u64(p->addresses + 8 * i);
    if (!lc_probe_allows(q, item.address)) return LC_OK;
    return lc_candidates_add(&s->heaps[0], s->k, item);
}

/* -- product quantization ---------------------------------------------------------------------------------------- */

/* Distances (or negative products) of the parts of a query to all codewords. */
LC_CLONES static void lc_product_table(const float *query, const float *codebook, int64_t parts, int64_t values,
                                       int64_t words, int products, float *LC_RESTRICT table) {
    for (int64_t s = 0; s < parts; s++, table += words) {
        for (int64_t c = 0; c < words; c++) table[c] = 0;
        for (int64_t d = 0; d < values; d++, codebook += words) {
            float x = query[s * values + d];
            if (products)
                for (int64_t c = 0; c < words; c++) table[c] -= x * codebook[c];
            else
                for (int64_t c = 0; c < words; c++) table[c] += (x - codebook[c]) * (x - codebook[c]);
        }
    }
}

/* Tables of two codes of 4 bits, joined to one of a byte. */
LC_CLONES static void lc_product_join(const float *table, int64_t bytes, float *LC_RESTRICT joined) {
    for (int64_t k = 0; k < bytes; k++)
        for (int high = 0; high < 16; high++)
            for (int low = 0; low < 16; low++)
                joined[256 * k + 16 * high + low] = table[32 * k + low] + table[32 * k + 16 + high];
}

LC_INLINE void lc_product_sums(const uint8_t *codes, int64_t bytes, int64_t column, int64_t row, const float *table,
                               float first, int64_t n, float *LC_RESTRICT out) {
    for (int64_t i = 0; i < n; i++) out[i] = first;
    for (int64_t k = 0; k < bytes; k++, table += 256, codes += column)
        for (int64_t i = 0; i < n; i++) out[i] += table[codes[i * row]];
}

LC_CLONES static void lc_product_columns(const uint8_t *codes, int64_t bytes, int64_t column, const float *table,
                                         float first, int64_t n, float *out) {
    if (n == LC_VECTOR_BLOCK) lc_product_sums(codes, bytes, column, 1, table, first, LC_VECTOR_BLOCK, out);
    else lc_product_sums(codes, bytes, column, 1, table, first, n, out);
}

static inline void lc_product_rows(const uint8_t *codes, int64_t bytes, const float *table, float first, int64_t n,
                                   float *out) {
    lc_product_sums(codes, bytes, 1, bytes, table, first, n, out);
}

/* Prepare the table for a partition. */
static inline void lc_product_prepare(const lc_stored *s, const lc_probe *q, int64_t number, lc_scratch *m) {
    int64_t words = (int64_t)1 << s->bits, values = s->dimension / s->parts;
    for (int64_t d = 0; d < s->dimension; d++) {
        float centroid = s->metric == LC_DOT ? 0 : lc_load_float(s->centroids + 4 * (number * s->dimension + d));
        m->query[d] = lc_load_float(q->vector + 4 * d) - centroid;
    }
    lc_product_table(m->query, (const float *)(const void *)s->codebook, s->parts, values, words, s->metric == LC_DOT,
                     m->table);
    if (s->bits == 4) lc_product_join(m->table, s->parts / 2, m->joined);
}

/* -- scalar quantization ----------------------------------------------------------------------------------------- */

/* Sums of products of bytes and floats, padded with zeros. */
LC_CLONES static void lc_byte_products(const uint8_t *codes, const float *query, int64_t dimension, int64_t n,
                                       float *out) {
    float sums[LC_TOGETHER + 1];
    for (int64_t i = 0; i < n; i++, codes += dimension) {
        lc_f32_sums(codes, (const uint8_t *)query, dimension, LC_UINT8, LC_DOT, 1, sums);
        out[i] = sums[0];
    }
}

/* -- RaBitQ ------------------------------------------------------------------------------------------------------ */

/* Sums of 4 values each, by the bits of a number; also as bytes. */
static inline void lc_rabit_table(const float *query, int64_t dimension, lc_scratch *m) {
    float low = INFINITY, high = -INFINITY;
    m->total = 0;
    for (int64_t d = 0; d < dimension; d++) m->total += query[d];
    for (int64_t g = 0; g < dimension / 4; g++)
        for (int w = 0; w < 16; w++) {
            float sum = 0;
            for (int i = 0; i < 4; i++)
                if (w >> i & 1) sum += query[4 * g + i];
            m->table[16 * g + w] = sum;
            low = sum < low ? sum : low, high = sum > high ? sum : high;
        }
    m->low = low, m->width = high - low;
    float factor = high > low ? 255 / (high - low) : 0;
    for (int64_t i = 0; i < 4 * dimension; i++) {
        float level = (m->table[i] - low) * factor + 0.5f;
        m->bytes[i] = (uint8_t)(level >= 0 && level < 256 ? level : 0);
    }
}

#if defined(__GNUC__) && !defined(__clang__)
typedef uint8_t lc_bytes16 __attribute__((vector_size(16)));
typedef uint16_t lc_pairs8 __attribute__((vector_size(16)));
#define LC_RABIT_LOOK_UP(out, table, x) ((out) = __builtin_shuffle(table, x))
#else
typedef struct { uint8_t v[16]; } lc_bytes16;
#endif

/* Sums of bytes for the rows of a block, at most 256 groups. Rows 8 apart are neighbours in the block, so that the sums
 * of one are in the upper halves of pairs. */
LC_CLONES static void lc_rabit_sums(const uint8_t *block, const uint8_t *table, int64_t groups,
                                    uint32_t *LC_RESTRICT sums) {
#if defined(LC_RABIT_LOOK_UP)
    lc_pairs8 all[2] = {{0}, {0}}, upper[2] = {{0}, {0}};
    for (int64_t g = 0; g < groups; g++, block += 16, table += 16) {
        lc_bytes16 x, values, found;
        lc_pairs8 pairs;
        memcpy(&x, block, 16), memcpy(&values, table, 16);
        LC_RABIT_LOOK_UP(found, values, x & 15);
        memcpy(&pairs, &found, 16);
        all[0] += pairs, upper[0] += pairs >> 8;
        LC_RABIT_LOOK_UP(found, values, x >> 4);
        memcpy(&pairs, &found, 16);
        all[1] += pairs, upper[1] += pairs >> 8;
    }
    for (int half = 0; half < 2; half++) {
        lc_pairs8 lower = all[half] - (upper[half] << 8);
        for (int i = 0; i < 8; i++) sums[16 * half + i] += lower[i], sums[16 * half + 8 + i] += upper[half][i];
    }
#else
    for (int64_t g = 0; g < groups; g++, block += 16, table += 16)
        for (int j = 0; j < 16; j++) {
            int row = j / 2 + j % 2 * 8;
            sums[row] += table[block[j] & 15], sums[16 + row] += table[block[j] >> 4];
        }
#endif
}

static inline void lc_rabit_exact_block(const uint8_t *block, const float *table, int64_t groups, float *out) {
    for (int i = 0; i < LC_RABIT_ROWS; i++) out[i] = 0;
    for (int64_t g = 0; g < groups; g++, block += 16, table += 16)
        for (int j = 0; j < 16; j++) {
            int row = j / 2 + j % 2 * 8;
            out[row] += table[block[j] & 15], out[16 + row] += table[block[j] >> 4];
        }
}

/* Products of the query and the signs of at most 32 rows from `first` on. */
static inline void lc_rabit_products(const lc_stored *s, const lc_partition *p, int64_t first, int64_t n, int effort,
                                     const lc_scratch *m, float *out) {
    int64_t groups = s->dimension / 4, bytes = s->dimension / 8;
    const uint8_t *block = p->codes + first * bytes;
    if (n < LC_RABIT_ROWS) {
        for (int64_t i = 0; i < n; i++) out[i] = 0;
        for (int64_t k = 0; k < bytes; k++)
            for (int64_t i = 0; i < n; i++) {
                uint8_t x = block[k * n + i];
                out[i] += m->table[32 * k + (x & 15)] + m->table[32 * k + 16 + (x >> 4)];
            }
        return;
    }
    if (effort == LC_EFFORT_ACCURATE) {
        lc_rabit_exact_block(block, m->table, groups, out);
        return;
    }
    uint32_t sums[LC_RABIT_ROWS] = {0};
    for (int64_t g = 0; g < groups; g += LC_RABIT_GROUPS) {
        int64_t some = groups - g < LC_RABIT_GROUPS ? groups - g : LC_RABIT_GROUPS;
        lc_rabit_sums(block + 16 * g, m->bytes + 16 * g, some, sums);
    }
    for (int i = 0; i < LC_RABIT_ROWS; i++) out[i] = (float)sums[i] * (m->width / 255) + (float)groups * m->low;
}

/* Factors of the estimates of a partition. */
typedef struct {
    float alpha, shift, error, offset;
} lc_rabit_terms;

static inline lc_rabit_terms lc_rabit_prepare(const lc_stored *s, const lc_probe *q, int64_t place, int64_t number,
                                              lc_scratch *m) {
    float distance = lc_load_float(q->distances + 4 * place), square = lc_load_float(s->squares + 4 * number);
    lc_rabit_terms terms = {1, distance, sqrtf(distance > 0 ? distance : 0), 0};
    if (!s->raw) {
        for (int64_t d = 0; d < s->dimension; d++)
            m->query[d] =
                lc_load_float(q->vector + 4 * d) - lc_load_float(s->centroids + 4 * (number * s->dimension + d));
        lc_rabit_table(m->query, s->dimension, m);
        if (s->metric == LC_DOT) terms.shift = distance - 1;
        return terms;
    }
    if (s->metric == LC_DOT) {
        float product = 1 - distance, rest;
        terms.alpha = product / square;
        if (!isfinite(terms.alpha)) terms.alpha = 0;
        rest = m->square - 2 * terms.alpha * product + terms.alpha * terms.alpha * square;
        terms.error = sqrtf(rest > 0 ? rest : 0);
        terms.offset = 1, terms.shift = 1 - product;
    }
    return terms;
}

/* Search 32 rows. */
static inline int lc_rabit_rows(const lc_stored *s, const lc_probe *q, const lc_partition *p, int64_t first, int64_t n,
                                lc_rabit_terms t, lc_scratch *m, lc_nearest *best) {
    float products[LC_RABIT_ROWS], more;
    int64_t b = s->bits - 1;
    int problem = LC_OK;
    lc_rabit_products(s, p, first, n, q->effort, m, products);
    for (int64_t j = 0, i = first; j < n && !problem; j++, i++) {
        float add = lc_load_float(p->add + 4 * i), scale = lc_load_float(p->scale + 4 * i), distance;
        if (!s->raw) {
            distance = (2 * products[j] - m->total) / sqrtf((float)s->dimension) * scale + add + t.shift;
            problem = lc_probe_offer(best, q, p, i, distance);
            continue;
        }
        distance = t.alpha * (add - t.offset) + scale * (products[j] - m->total / 2) + t.shift;
        if (b && q->effort != LC_EFFORT_FAST) {
            const lc_candidates *heap = &best->heaps[0];
            if (heap->n == best->k && distance - lc_load_float(p->error + 4 * i) * t.error >= heap->items[0].distance)
                continue;
            lc_byte_products(p->extra + i * s->dimension, m->query, s->dimension, 1, &more);
            more += (float)(1 << b) * products[j] - ((float)(1 << b) - 0.5f) * m->total;
            distance = t.alpha * (lc_load_float(p->add_all + 4 * i) - t.offset) + t.shift +
                       lc_load_float(p->scale_all + 4 * i) * more;
        }
        problem = lc_probe_offer(best, q, p, i, distance);
    }
    return problem;
}

/* -- plain vectors ----------------------------------------------------------------------------------------------- */

/* Coarse codes of a partition, which another thread may set. */
LC_INLINE const lc_coarse *lc_coarse_of(const lc_partition *p) {
#if defined(__GNUC__) || defined(__clang__)
    return __atomic_load_n(&p->coarse, __ATOMIC_ACQUIRE);
#else
    return p->coarse;
#endif
}

/* Set them. */
static inline void lc_coarse_set(lc_partition *p, const lc_coarse *coarse) {
#if defined(__GNUC__) || defined(__clang__)
    __atomic_store_n(&p->coarse, coarse, __ATOMIC_RELEASE);
#else
    p->coarse = coarse;
#endif
}

/* Compare the vectors [first, stop) of a partition, at most a block: those with the numbers `rows`, or all of them. */
static inline int lc_plain_rows(const lc_stored *s, const lc_probe *q, const lc_partition *p, int64_t first, int64_t stop,
                                const int64_t *rows, lc_scratch *m, lc_nearest *best) {
    lc_vectors vectors = {p->codes, s->dimension, s->element, (const uint8_t *)rows, rows ? stop : p->n};
    lc_queries queries = {q->vector, 1, s->metric};
    const lc_candidates *heap = &best->heaps[0];
    int problem = LC_OK;
    lc_distances(&vectors, first, stop, &queries, &m->length, m->out, LC_VECTOR_BLOCK);
    for (int64_t i = first; i < stop && !problem; i++)
        if (heap->n < best->k || m->out[i - first] <= heap->items[0].distance)
            problem = lc_probe_offer(best, q, p, rows ? rows[i] : i, m->out[i - first]);
    return problem;
}

/* Compare all vectors of a partition; if enough are found already, those that may be nearer by their coarse codes. */
static inline int lc_plain_partition(const lc_stored *s, const lc_probe *q, const lc_partition *p, lc_scratch *m,
                                     lc_nearest *best) {
    const lc_coarse *coarse = s->metric == LC_HAMMING ? 0 : lc_coarse_of(p);
    const lc_candidates *heap = &best->heaps[0];
    lc_coarse_query query = {0, 0};
    if (coarse) query = lc_coarse_encode_query(q->vector, s->dimension, s->element, s->metric, coarse, m->bytes);
    int64_t rows[LC_VECTOR_BLOCK], rest = 0;
    int problem = LC_OK;
    for (int64_t first = 0; first < p->n && !problem; first += LC_VECTOR_BLOCK) {
        int64_t stop = first + LC_VECTOR_BLOCK < p->n ? first + LC_VECTOR_BLOCK : p->n;
        if (!coarse) {
            problem = lc_plain_rows(s, q, p, first, stop, 0, m, best);
            continue;
        }
        int64_t near = lc_coarse_pick(coarse, &query, m->bytes, s->dimension, s->metric, heap, best->k, first,
                                      stop - first, &rest, m->out, rows);
        problem = lc_plain_rows(s, q, p, 0, near, rows, m, best);
    }
    return problem;
}

/* -- all kinds --------------------------------------------------------------------------------------------------- */

/* Distances of rows [first, stop), at most a block, for the codes of products and of scalars. */
static inline void lc_code_block(const lc_stored *s, const lc_partition *p, int64_t first, int64_t stop,
                                 lc_scratch *m) {
    int64_t n = stop - first;
    if (s->storage == LC_STORED_SCALAR) {
        const uint8_t *codes = p->codes + first * s->dimension;
        if (s->metric != LC_DOT) {
            lc_scalar_squares(codes, m->bytes, s->dimension, s->step * s->step, n, m->out);
            return;
        }
        lc_byte_products(codes, m->query, s->dimension, n, m->out);
        for (int64_t i = 0; i < n; i++) m->out[i] = 1 - (m->out[i] * s->step + s->start * m->total);
    } else {
        int64_t bytes = s->parts * s->bits / 8;
        const float *table = s->bits == 4 ? m->joined : m->table;
        float zero = s->metric == LC_DOT ? 1 : 0;
        if (s->by_column) lc_product_columns(p->codes + first, bytes, p->n, table, zero, n, m->out);
        else lc_product_rows(p->codes + first * bytes, bytes, table, zero, n, m->out);
    }
}

static inline int lc_stored_partition(const lc_stored *s, const lc_probe *q, int64_t place, int64_t number,
                                      lc_scratch *m, lc_nearest *best) {
    const lc_partition *p = &s->partitions[number];
    const lc_candidates *heap = &best->heaps[0];
    int problem = LC_OK;
    if (s->storage == LC_STORED_FLAT) return lc_plain_partition(s, q, p, m, best);
    if (s->storage == LC_STORED_RABIT) {
        lc_rabit_terms terms = lc_rabit_prepare(s, q, place, number, m);
        for (int64_t i = 0; i < p->n && !problem; i += LC_RABIT_ROWS)
            problem = lc_rabit_rows(s, q, p, i, p->n - i < LC_RABIT_ROWS ? p->n - i : LC_RABIT_ROWS, terms, m, best);
        return problem;
    }
    if (s->storage == LC_STORED_PRODUCT && (place == 0 || s->metric != LC_DOT)) lc_product_prepare(s, q, number, m);
    for (int64_t first = 0; first < p->n; first += LC_VECTOR_BLOCK) {
        int64_t stop = first + LC_VECTOR_BLOCK < p->n ? first + LC_VECTOR_BLOCK : p->n;
        lc_code_block(s, p, first, stop, m);
        for (int64_t i = first; i < stop && !problem; i++)
            if (heap->n < best->k || m->out[i - first] <= heap->items[0].distance)
                problem = lc_probe_offer(best, q, p, i, m->out[i - first]);
    }
    return problem;
}

/* Prepare what is the same for all partitions. */
static inline void lc_stored_prepare(const lc_stored *s, const lc_probe *q, lc_scratch *m) {
    if (s->storage == LC_STORED_FLAT) {
        lc_queries queries = {q->vector, 1, s->metric};
        if (s->metric == LC_COSINE) m->length = lc_query_length(&queries, 0, s->dimension, s->element);
        return;
    }
    m->total = m->square = 0;
    for (int64_t d = 0; d < s->dimension; d++) {
        float x = lc_load_float(q->vector + 4 * d);
        m->query[d] = x, m->total += x, m->square += x * x;
        if (s->storage == LC_STORED_SCALAR) {
            double level = s->step > 0 ? ((double)x - s->start) / s->step : 0;
            m->bytes[d] = level >= 255 ? 255 : level > 0 ? (uint8_t)level : 0;
        }
    }
    if (s->storage == LC_STORED_RABIT && s->raw) lc_rabit_table(m->query, s->dimension, m);
}

/* Get the memory of a search, and prepare it. */
static inline int lc_scratch_open(const lc_stored *s, const lc_probe *q, lc_scratch *m) {
    int64_t padded = (s->dimension + LC_QUERY_UNIT) / LC_QUERY_UNIT * LC_QUERY_UNIT + LC_QUERY_UNIT;
    int64_t table = s->storage == LC_STORED_PRODUCT ? s->parts << s->bits : 4 * padded;
    int64_t joined = s->storage == LC_STORED_PRODUCT && s->bits == 4 ? 128 * s->parts : 0;
    memset(m, 0, sizeof *m);
    m->bytes = (uint8_t *)calloc((size_t)(4 * padded), 1);
    if (!m->bytes) return LC_NO_MEMORY;
    if (s->storage != LC_STORED_FLAT) {
        m->query = (float *)calloc((size_t)(padded + table + joined), sizeof(float));
        if (!m->query) return LC_NO_MEMORY;
        m->table = m->query + padded, m->joined = m->query + padded + table;
    }
    lc_stored_prepare(s, q, m);
    return LC_OK;
}

static inline void lc_scratch_close(lc_scratch *m) {
    free(m->query);
    free(m->bytes);
}

/* Search partitions in the order given; all must be loaded. */
static inline int lc_stored_search(const lc_stored *s, const lc_probe *q, lc_nearest *best) {
    lc_scratch m;
    int problem = lc_scratch_open(s, q, &m);
    for (int64_t place = 0; place < q->probes && !problem; place++)
        problem = lc_stored_partition(s, q, place, (int64_t)lc_load_u64(q->numbers + 8 * place), &m, best);
    lc_scratch_close(&m);
    return problem;
}

#endif
