/* Sorting of the rows to take into storage order, and finding the rows of each fragment. */
#ifndef LANCECODEC_TAKE_ROWS_H
#define LANCECODEC_TAKE_ROWS_H

#include "chunk.h"

#define LC_SORT_BITS 11
#define LC_SORT_FEW 32

/* Return whether keys ascend; *low and *high are the smallest and the largest (n > 0). */
static int lc_rows_look(const int64_t *keys, int64_t n, int64_t *low, int64_t *high) {
    int64_t least = keys[0], most = keys[0];
    int ascending = 1;
    for (int64_t i = 1; i < n; i++) {
        ascending &= keys[i] >= keys[i - 1];
        least = keys[i] < least ? keys[i] : least;
        most = keys[i] > most ? keys[i] : most;
    }
    *low = least;
    *high = most;
    return ascending;
}

static void lc_rows_insert(int64_t *keys, int64_t *places, int64_t n) {
    for (int64_t i = 1; i < n; i++) {
        int64_t key = keys[i], place = places[i], k = i;
        for (; k > 0 && keys[k - 1] > key; k--) keys[k] = keys[k - 1], places[k] = places[k - 1];
        keys[k] = key;
        places[k] = place;
    }
}

/* One pass over `LC_SORT_BITS` bits of key - low. */
static void lc_rows_pass(const int64_t *keys, const int64_t *places, int64_t n, int64_t low, int shift, int64_t *to_keys,
                         int64_t *to_places) {
    int64_t counts[1 << LC_SORT_BITS] = {0}, total = 0;
    const uint64_t mask = (1 << LC_SORT_BITS) - 1;
    for (int64_t i = 0; i < n; i++) counts[((uint64_t)keys[i] - (uint64_t)low) >> shift & mask]++;
    for (int64_t b = 0; b < 1 << LC_SORT_BITS; b++) {
        int64_t count = counts[b];
        counts[b] = total;
        total += count;
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t to = counts[((uint64_t)keys[i] - (uint64_t)low) >> shift & mask]++;
        to_keys[to] = keys[i];
        to_places[to] = places[i];
    }
}

/* Sort keys, and places with them; the sort is stable. `spare` has room for 2 * n. */
static void lc_rows_sort(int64_t *keys, int64_t *places, int64_t n, int64_t low, int64_t high, int64_t *spare) {
    int64_t *from = keys, *from_places = places, *to = spare, *to_places = spare + n;
    if (n <= LC_SORT_FEW) {
        lc_rows_insert(keys, places, n);
        return;
    }
    for (int shift = 0; shift < 64 && ((uint64_t)high - (uint64_t)low) >> shift; shift += LC_SORT_BITS) {
        lc_rows_pass(from, from_places, n, low, shift, to, to_places);
        int64_t *swap = from, *swap_places = from_places;
        from = to, from_places = to_places;
        to = swap, to_places = swap_places;
    }
    if (from != keys) {
        memcpy(keys, from, (size_t)(8 * n));
        memcpy(places, from_places, (size_t)(8 * n));
    }
}

/* Last i with values[i] <= key, values ascending and values[0] <= key; n > 0. */
LC_INLINE int64_t lc_rows_find(const int64_t *values, int64_t n, int64_t key) {
    int64_t low = 0;
    for (int64_t step = n; step > 1;) {
        int64_t half = step >> 1;
        low = values[low + half] <= key ? low + half : low;
        step -= half;
    }
    return low;
}

/* Convert live rows, ascending, to row numbers that include deleted ones: row r moves by the number of deleted rows
 * before it. */
static void lc_rows_skip_deleted(int64_t *rows, int64_t n, const int64_t *deleted, int64_t count) {
    int64_t before = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t high = count;
        while (before < high) { /* the first k with deleted[k] - k > row */
            int64_t middle = before + (high - before) / 2;
            if (deleted[middle] - middle <= rows[i]) before = middle + 1;
            else high = middle;
        }
        rows[i] += before;
    }
}

#endif
