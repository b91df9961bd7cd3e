/* Nearest centroids of vectors, and sums of the vectors of clusters.
 *
 * The score of a centroid is its product with the vector plus a bias; the highest score is the nearest. Centroids are
 * in panels of 16: a panel has the first value of each, then the second value of each, and so on. Some rows at a time
 * are multiplied with a panel, in registers, as blocked products of matrices are. Registers have half of a panel: GCC
 * keeps wider vectors in memory where the processor has no such registers. */
#ifndef LANCECODEC_CLUSTERS_H
#define LANCECODEC_CLUSTERS_H

#include <math.h>

#include "portable.h"

#define LC_PANEL 16
#define LC_PANEL_HALF (LC_PANEL / 2)
#define LC_TILE_ROWS 6
/* Rows that meet a panel while it is in the cache. */
#define LC_CLUSTER_ROWS 48

/* Best scores so far of some rows, by lane, and the panels they are from. */
typedef struct {
    float scores[LC_CLUSTER_ROWS][LC_PANEL];
    int32_t panels[LC_CLUSTER_ROWS][LC_PANEL];
} lc_best_lanes;

#if defined(__GNUC__) || defined(__clang__)
typedef float lc_panel_lanes __attribute__((vector_size(4 * LC_PANEL_HALF)));
typedef int32_t lc_panel_numbers __attribute__((vector_size(4 * LC_PANEL_HALF)));
#define LC_ADD_PRODUCT(sum, lanes, x) ((sum) += (lanes) * (x))

LC_INLINE void lc_keep_best(const lc_panel_lanes *sum, int32_t panel, float *scores, int32_t *panels) {
    lc_panel_lanes known;
    lc_panel_numbers bits, found, numbers, places = panel - (lc_panel_numbers){0};
    memcpy(&known, scores, sizeof known), memcpy(&bits, &known, sizeof bits);
    memcpy(&numbers, panels, sizeof numbers), memcpy(&found, sum, sizeof found);
    lc_panel_numbers better = *sum > known;
    found = (better & found) | (~better & bits), numbers = (better & places) | (~better & numbers);
    memcpy(scores, &found, sizeof found), memcpy(panels, &numbers, sizeof numbers);
}
#else
typedef struct {
    float at[LC_PANEL_HALF];
} lc_panel_lanes;
#define LC_ADD_PRODUCT(sum, lanes, x) \
    for (int lane = 0; lane < LC_PANEL_HALF; lane++) (sum).at[lane] += (lanes).at[lane] * (x)

LC_INLINE void lc_keep_best(const lc_panel_lanes *sum, int32_t panel, float *scores, int32_t *panels) {
    for (int lane = 0; lane < LC_PANEL_HALF; lane++) {
        if (sum->at[lane] > scores[lane]) scores[lane] = sum->at[lane], panels[lane] = panel;
    }
}
#endif

/* Compare `rows` rows, a constant, with a panel. */
LC_INLINE void lc_panel_tile(const uint8_t *values, int64_t width, int rows, const uint8_t *panel,
                             const uint8_t *biases, int32_t number, int64_t first, lc_best_lanes *best) {
    const int half = LC_PANEL_HALF;
    lc_panel_lanes low[LC_TILE_ROWS], high[LC_TILE_ROWS], lower, upper;
    for (int row = 0; row < rows; row++) {
        memcpy(&low[row], biases, sizeof lower), memcpy(&high[row], biases + 4 * half, sizeof upper);
    }
    for (int64_t i = 0; i < width; i++) {
        memcpy(&lower, panel + 4 * LC_PANEL * i, sizeof lower);
        memcpy(&upper, panel + 4 * LC_PANEL * i + 4 * half, sizeof upper);
        for (int row = 0; row < rows; row++) {
            float x;
            memcpy(&x, values + 4 * (row * width + i), sizeof x);
            LC_ADD_PRODUCT(low[row], lower, x);
            LC_ADD_PRODUCT(high[row], upper, x);
        }
    }
    for (int row = 0; row < rows; row++) {
        float *scores = best->scores[first + row];
        int32_t *panels = best->panels[first + row];
        lc_keep_best(&low[row], number, scores, panels);
        lc_keep_best(&high[row], number, scores + half, panels + half);
    }
}

LC_INLINE void lc_write_best(const lc_best_lanes *best, int64_t row, uint8_t *cluster, uint8_t *score) {
    float highest = best->scores[row][0];
    int64_t found = (int64_t)best->panels[row][0] * LC_PANEL;
    for (int lane = 1; lane < LC_PANEL; lane++) {
        float other = best->scores[row][lane];
        int64_t number = (int64_t)best->panels[row][lane] * LC_PANEL + lane;
        if (other > highest || (other == highest && number < found)) highest = other, found = number;
    }
    if (!(highest > -INFINITY)) found = 0; /* no score is a number above minus infinity */
    lc_store_u32(cluster, (uint32_t)found);
    memcpy(score, &highest, sizeof highest);
}

/* Write the number and the score of the nearest centroid of each of n rows; the first of equally near ones. */
LC_CLONES static void lc_nearest_centroids(const uint8_t *values, int64_t n, int64_t width, const uint8_t *panels,
                                           int64_t n_panels, const uint8_t *biases, uint8_t *clusters,
                                           uint8_t *scores) {
    lc_best_lanes best;
    for (int64_t start = 0; start < n; start += LC_CLUSTER_ROWS) {
        int64_t rows = n - start < LC_CLUSTER_ROWS ? n - start : LC_CLUSTER_ROWS;
        const uint8_t *block = values + 4 * start * width;
        for (int64_t row = 0; row < rows; row++) {
            for (int lane = 0; lane < LC_PANEL; lane++) best.scores[row][lane] = -INFINITY, best.panels[row][lane] = 0;
        }
        for (int64_t p = 0; p < n_panels; p++) {
            const uint8_t *panel = panels + 4 * LC_PANEL * width * p, *bias = biases + 4 * LC_PANEL * p;
            int64_t row = 0;
            for (; row + LC_TILE_ROWS <= rows; row += LC_TILE_ROWS) {
                lc_panel_tile(block + 4 * row * width, width, LC_TILE_ROWS, panel, bias, (int32_t)p, row, &best);
            }
            for (; row < rows; row++) {
                lc_panel_tile(block + 4 * row * width, width, 1, panel, bias, (int32_t)p, row, &best);
            }
        }
        for (int64_t row = 0; row < rows; row++) {
            lc_write_best(&best, row, clusters + 4 * (start + row), scores + 4 * (start + row));
        }
    }
}

/* Add each row to the sum of its cluster, and count it. Returns 0 if a cluster is not below `count`. */
LC_CLONES static int lc_cluster_sums(const uint8_t *values, int64_t n, int64_t width, const uint8_t *clusters,
                                     int64_t count, uint8_t *sums, uint8_t *sizes) {
    for (int64_t row = 0; row < n; row++) {
        int64_t cluster = lc_once_u32(clusters + 4 * row);
        if (cluster >= count) return 0;
        lc_store_u64(sizes + 8 * cluster, lc_load_u64(sizes + 8 * cluster) + 1);
        uint8_t *LC_RESTRICT sum = sums + 8 * cluster * width;
        const uint8_t *LC_RESTRICT from = values + 4 * row * width;
        for (int64_t i = 0; i < width; i++) {
            float x;
            double total;
            memcpy(&x, from + 4 * i, sizeof x);
            memcpy(&total, sum + 8 * i, sizeof total);
            total += x;
            memcpy(sum + 8 * i, &total, sizeof total);
        }
    }
    return 1;
}

#endif
