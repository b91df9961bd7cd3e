/* Nearest centroids of any floats: no other centroid is nearer, as a plain sum says; sums of clusters. */
#include "fuzz.h"
#include "clusters.h"

static float float_at(const uint8_t *p, int64_t i) {
    float x;
    return memcpy(&x, p + 4 * i, sizeof x), x;
}

static double score_of(const uint8_t *row, const uint8_t *panels, const uint8_t *biases, int64_t width, int64_t number,
                       double *scale) {
    const uint8_t *panel = panels + 4 * LC_PANEL * width * (number / LC_PANEL);
    double sum = float_at(biases, number);
    *scale = 1 + fabs(sum);
    for (int64_t i = 0; i < width; i++) {
        double product = (double)float_at(row, i) * float_at(panel, LC_PANEL * i + number % LC_PANEL);
        sum += product, *scale += fabs(product);
    }
    return sum;
}

static void fz_target(fz_input *in) {
    int64_t width = 1 + fz_upto(in, 20), n = fz_upto(in, 60), n_panels = 1 + fz_upto(in, 3);
    const uint8_t *values = fz_take(in, 4 * n * width), *panels = fz_take(in, 4 * LC_PANEL * width * n_panels);
    const uint8_t *biases = fz_take(in, 4 * LC_PANEL * n_panels);
    uint8_t *clusters = fz_out(in, 4 * n), *scores = fz_out(in, 4 * n);
    lc_nearest_centroids(values, n, width, panels, n_panels, biases, clusters, scores);
    for (int64_t row = 0; row < n; row++) {
        int64_t found = lc_load_u32(clusters + 4 * row);
        FZ_CHECK(found < LC_PANEL * n_panels);
        double scale, other_scale, best = score_of(values + 4 * row * width, panels, biases, width, found, &scale);
        for (int64_t other = 0; other < LC_PANEL * n_panels; other++) {
            double score = score_of(values + 4 * row * width, panels, biases, width, other, &other_scale);
            int is_plain = scale < 1e25 && other_scale < 1e25; /* nothing overflows, nothing is NaN */
            FZ_CHECK(!is_plain || score <= best + 1e-4 * (scale + other_scale));
        }
    }
    int64_t count = fz_upto(in, 70);
    uint8_t *sums = fz_memory(8 * count * width, 0), *sizes = fz_memory(8 * count, 0);
    memset(sums, 0, (size_t)(8 * count * width)), memset(sizes, 0, (size_t)(8 * count));
    int known = lc_cluster_sums(values, n, width, clusters, count, sums, sizes);
    int64_t total = 0;
    for (int64_t i = 0; i < count; i++) total += (int64_t)lc_load_u64(sizes + 8 * i);
    FZ_CHECK(known ? total == n : total < n);
}
