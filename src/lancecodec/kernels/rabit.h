/* Codes of RaBitQ: rotations of vectors, and steps of their values. */
#ifndef LANCECODEC_RABIT_H
#define LANCECODEC_RABIT_H

#include <math.h>

#include "distance_lanes.h"

/* Scales that are tried for each vector. */
#define LC_RABIT_SCALES 16
#define LC_RABIT_ROUNDING 1e-5f
/* Vectors with a sum of squares of at most this have no direction. */
#define LC_RABIT_TINY 1.19e-7f

/* Rotate a vector by four rounds of changes of signs and Walsh-Hadamard transforms, as RaBitQ does. */
LC_INLINE void lc_hadamard(float *x, int64_t n, float factor) {
    for (int64_t half = 1; half < n; half *= 2)
        for (int64_t first = 0; first < n; first += 2 * half)
            for (int64_t i = first; i < first + half; i++) {
                float a = x[i], b = x[i + half];
                x[i] = a + b, x[i + half] = a - b;
            }
    for (int64_t i = 0; i < n; i++) x[i] *= factor;
}

LC_INLINE void lc_rabit_rotate_one(float *x, int64_t dimension, const uint8_t *signs) {
    int64_t bytes = (dimension + 7) / 8, size = 1, half = dimension / 2;
    while (size * 2 <= dimension) size *= 2;
    float factor = (float)(1 / sqrt((double)size));
    for (int round = 0; round < 4; round++, signs += bytes) {
        for (int64_t d = 0; d < dimension; d++)
            if (signs[d / 8] >> (d % 8) & 1) x[d] = -x[d];
        lc_hadamard(round % 2 ? x + dimension - size : x, size, factor);
        if (size == dimension) continue;
        for (int64_t i = 0; i < half; i++) {
            float a = x[i], b = x[i + half];
            x[i] = a + b, x[i + half] = a - b;
        }
    }
    if (size != dimension)
        for (int64_t d = 0; d < dimension; d++) x[d] *= 0.25f;
}

LC_CLONES static void lc_rabit_rotate(uint8_t *values, int64_t n, int64_t dimension, const uint8_t *signs) {
    for (int64_t i = 0; i < n; i++) lc_rabit_rotate_one((float *)(void *)values + i * dimension, dimension, signs);
}

LC_INLINE float lc_lanes_sum(const lc_f32_part *lanes) {
    float at[LC_PART], sum = 0;
    memcpy(at, lanes, sizeof at);
    for (int i = 0; i < LC_PART; i++) sum += at[i];
    return sum;
}

/* Steps of `count` sizes of values, at most `top`. */
LC_INLINE void lc_rabit_steps(const uint8_t *values, int count, float scale, float top, float *steps) {
    for (int i = 0; i < count; i++) {
        float x;
        memcpy(&x, values + 4 * i, sizeof x);
        x = fabsf(x) * scale + LC_RABIT_ROUNDING;
        steps[i] = (float)(int32_t)(x < top ? x : top);
    }
}

/* The sum of squares and the largest size of a vector. */
LC_INLINE void lc_rabit_sizes(const uint8_t *values, int64_t dimension, float *squares, float *largest) {
    lc_f32_part sums = {0}, x;
    float rest = 0, size;
    uint32_t highest = 0; /* sizes of floats have the order of their bits */
    int64_t i = 0;
    for (; i + LC_PART <= dimension; i += LC_PART) {
        memcpy(&x, values + 4 * i, sizeof x);
        sums += x * x;
    }
    for (; i < dimension; i++) memcpy(&size, values + 4 * i, sizeof size), rest += size * size;
    for (i = 0; i < dimension; i++) {
        uint32_t bits = lc_load_u32(values + 4 * i) & 0x7FFFFFFFu;
        highest = bits > highest ? bits : highest;
    }
    *squares = lc_lanes_sum(&sums) + rest;
    memcpy(largest, &highest, sizeof highest);
}

/* Cosine, times the length of the vector, of the sizes of a vector and the middles of their steps. */
LC_INLINE float lc_rabit_quality(const uint8_t *values, int64_t dimension, float scale, float top) {
    lc_f32_part products = {0}, squares = {0}, x, middle;
    float product = 0, square = 0, steps[LC_PART];
    int64_t i = 0;
    for (; i + LC_PART <= dimension; i += LC_PART) {
        uint32_t sizes[LC_PART];
        lc_rabit_steps(values + 4 * i, LC_PART, scale, top, steps);
        for (int lane = 0; lane < LC_PART; lane++) sizes[lane] = lc_load_u32(values + 4 * (i + lane)) & 0x7FFFFFFFu;
        memcpy(&middle, steps, sizeof middle), memcpy(&x, sizes, sizeof x);
        middle += 0.5f;
        products += middle * x, squares += middle * middle;
    }
    for (; i < dimension; i++) {
        float size;
        memcpy(&size, values + 4 * i, sizeof size);
        lc_rabit_steps(values + 4 * i, 1, scale, top, steps);
        product += (steps[0] + 0.5f) * fabsf(size), square += (steps[0] + 0.5f) * (steps[0] + 0.5f);
    }
    return (lc_lanes_sum(&products) + product) / sqrtf(lc_lanes_sum(&squares) + square);
}

/* Write for each value the number of steps of its size, of at most `bits` bits and inverted for negative values, with
 * the scale that keeps the direction of its vector best. The first scale to try is a part of the last one. */
LC_CLONES static void lc_rabit_extra(const uint8_t *values, int64_t n, int64_t dimension, int bits, double first,
                                     uint8_t *codes) {
    float top = (float)((1 << bits) - 1);
    for (int64_t row = 0; row < n; row++, values += 4 * dimension, codes += dimension) {
        float squares, largest, best = -1, chosen = 0;
        lc_rabit_sizes(values, dimension, &squares, &largest);
        if (!(squares > LC_RABIT_TINY) || !(squares < INFINITY)) {
            memset(codes, 0, (size_t)dimension);
            continue;
        }
        for (int i = 0; i < LC_RABIT_SCALES; i++) {
            double part = first + i * (1 - first) / LC_RABIT_SCALES;
            float scale = (float)((top + 10) / largest * part);
            float quality = lc_rabit_quality(values, dimension, scale, top);
            if (quality > best) best = quality, chosen = scale;
        }
        for (int64_t i = 0; i < dimension; i++) {
            float step;
            lc_rabit_steps(values + 4 * i, 1, chosen, top, &step);
            int negative = lc_load_u32(values + 4 * i) >> 31 != 0;
            codes[i] = (uint8_t)(negative ? top - step : step);
        }
    }
}

#endif
