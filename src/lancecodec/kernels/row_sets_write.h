/* Writing of the sets of row_sets.h: from ascending numbers, and as unions of other sets. */
#ifndef LANCECODEC_ROW_SETS_WRITE_H
#define LANCECODEC_ROW_SETS_WRITE_H

#include <stdlib.h>

#include "row_sets.h"

LC_INLINE void lc_set_store_count(uint8_t *out, lc_set_form form, uint64_t count) {
    if (form.count_bytes == 8) lc_store_u64(out, count);
    else lc_store_u32(out, (uint32_t)count);
}

/* End of the numbers from `at` on that have the upper bits of the first in common: exponential, then binary search. */
LC_INLINE int64_t lc_numbers_end(const uint64_t *values, int64_t at, int64_t end, int shift) {
    uint64_t key = values[at] >> shift;
    int64_t low = at, step = 1; /* values[low] has the key */
    while (low + step < end && values[low + step] >> shift == key) {
        low += step;
        step *= 2;
    }
    int64_t high = low + step < end ? low + step : end; /* values[high] has not, or is the end */
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (values[middle] >> shift == key) low = middle;
        else high = middle;
    }
    return high;
}

/* Bytes of the set of ascending numbers. */
static inline int64_t lc_set_size(const uint64_t *values, int64_t at, int64_t end, lc_set_form form) {
    int64_t size = form.count_bytes;
    uint64_t bitmap = 0;
    for (int started = 0; at < end; started = 1) {
        int64_t stop = lc_numbers_end(values, at, end, 16);
        if (!started || values[at] >> 32 != bitmap) size += LC_SET_BITMAP_HEAD + (form.sized ? 8 : 4);
        bitmap = values[at] >> 32;
        size += LC_SET_CONTAINER_HEAD + lc_container_size(stop - at);
        at = stop;
    }
    return size;
}

/* Positions of the sets of several groups of ascending numbers, group k up to stops[k]. */
static inline int lc_sets_bounds(const uint64_t *values, int64_t n, const int64_t *stops, int64_t sets,
                                 lc_set_form form, int64_t *bounds) {
    int64_t at = 0;
    bounds[0] = 0;
    for (int64_t k = 0; k < sets; k++) {
        if (stops[k] < at || stops[k] > n) return LC_BAD_OFFSETS;
        bounds[k + 1] = bounds[k] + lc_set_size(values, at, stops[k], form);
        at = stops[k];
    }
    return LC_OK;
}

/* Write the content of a container; whether its numbers ascend. */
LC_INLINE int lc_container_write(const uint64_t *values, int64_t n, uint8_t *out) {
    unsigned wrong = 0;
    for (int64_t i = 1; i < n; i++) wrong |= values[i] <= values[i - 1];
    if (n <= LC_SET_ARRAY) {
        for (int64_t i = 0; i < n; i++) lc_store_u16(out + 2 * i, (uint16_t)values[i]);
    } else {
        memset(out, 0, 8 * LC_SET_WORDS);
        for (int64_t i = 0; i < n; i++) out[(values[i] & 0xFFFF) >> 3] |= (uint8_t)(1 << (values[i] & 7));
    }
    return !wrong;
}

/* A bitmap in the making: what is known once its containers are. */
typedef struct {
    uint8_t *start;
    uint8_t *heads;
    int64_t count;
    int64_t at;
    uint8_t *content;
} lc_bitmap_writer;

/* Begin a bitmap at `out`, after its key and maybe its size. */
LC_INLINE lc_bitmap_writer lc_bitmap_begin(uint8_t *out, uint32_t key, int64_t count, lc_set_form form) {
    lc_store_u32(out, key);
    out += form.sized ? 8 : 4;
    lc_store_u32(out, LC_SET_COOKIE);
    lc_store_u32(out + 4, (uint32_t)count);
    uint8_t *heads = out + LC_SET_BITMAP_HEAD;
    return (lc_bitmap_writer){out, heads, count, 0, heads + count * LC_SET_CONTAINER_HEAD};
}

/* Describe the container whose content was written at the end. */
LC_INLINE void lc_bitmap_add(lc_bitmap_writer *bitmap, uint64_t key, int64_t values) {
    lc_store_u16(bitmap->heads + 4 * bitmap->at, (uint16_t)key);
    lc_store_u16(bitmap->heads + 4 * bitmap->at + 2, (uint16_t)(values - 1));
    lc_store_u32(bitmap->heads + 4 * (bitmap->count + bitmap->at), (uint32_t)(bitmap->content - bitmap->start));
    bitmap->content += lc_container_size(values);
    bitmap->at++;
}

LC_INLINE uint8_t *lc_bitmap_end(const lc_bitmap_writer *bitmap, lc_set_form form) {
    if (form.sized) lc_store_u32(bitmap->start - 4, (uint32_t)(bitmap->content - bitmap->start));
    return bitmap->content;
}

/* Write the set of ascending numbers, whose size is known; whether they ascend. */
LC_CLONES static inline int lc_set_write(const uint64_t *values, int64_t n, lc_set_form form, uint8_t *out) {
    uint64_t bitmaps = 0;
    uint8_t *next = out + form.count_bytes;
    for (int64_t at = 0; at < n; bitmaps++) {
        int64_t end = lc_numbers_end(values, at, n, 32), count = 0;
        for (int64_t i = at; i < end; count++) i = lc_numbers_end(values, i, end, 16);
        if (at && values[at] <= values[at - 1]) return 0;
        lc_bitmap_writer bitmap = lc_bitmap_begin(next, (uint32_t)(values[at] >> 32), count, form);
        for (int64_t start = at; at < end; start = at) {
            at = lc_numbers_end(values, start, end, 16);
            if (start && values[start] <= values[start - 1]) return 0;
            if (!lc_container_write(values + start, at - start, bitmap.content)) return 0;
            lc_bitmap_add(&bitmap, values[start] >> 16, at - start);
        }
        next = lc_bitmap_end(&bitmap, form);
    }
    lc_set_store_count(out, form, bitmaps);
    return 1;
}

/* Write all sets at the positions that lc_sets_bounds found. */
static inline int lc_sets_write(const uint64_t *values, const int64_t *stops, int64_t sets, lc_set_form form,
                                const int64_t *bounds, uint8_t *out) {
    for (int64_t k = 0, at = 0; k < sets; at = stops[k++])
        if (!lc_set_write(values + at, stops[k] - at, form, out + bounds[k])) return LC_BAD_OFFSETS;
    return LC_OK;
}

/* -- unions ---------------------------------------------------------------------------------------------------- */

static inline int lc_container_order(const void *one, const void *two) {
    uint64_t a = ((const lc_container *)one)->key, b = ((const lc_container *)two)->key;
    return (a > b) - (a < b);
}

/* Copy the content of a container; whether it is sound. */
LC_INLINE int lc_container_copy(const lc_container *c, uint8_t *out) {
    memcpy(out, c->data, (size_t)lc_container_size(c->count));
    LC_SETTLE(out);
    if (c->count > LC_SET_ARRAY) return lc_bits_count(out, 0, 64 * LC_SET_WORDS) == c->count;
    unsigned wrong = 0;
    for (int64_t i = 1; i < c->count; i++) wrong |= lc_load_u16(out + 2 * i) <= lc_load_u16(out + 2 * i - 2);
    return !wrong;
}

/* Write the union of containers with the same key; return its number of values. */
LC_INLINE int64_t lc_containers_unite(const lc_container *c, int64_t n, uint8_t *out) {
    uint8_t bits[8 * LC_SET_WORDS];
    memset(bits, 0, sizeof bits);
    for (int64_t k = 0; k < n; k++) {
        if (c[k].count > LC_SET_ARRAY) {
            for (int64_t w = 0; w < LC_SET_WORDS; w++)
                lc_store_u64(bits + 8 * w, lc_load_u64(bits + 8 * w) | lc_load_u64(c[k].data + 8 * w));
        } else {
            for (int64_t i = 0; i < c[k].count; i++) {
                uint16_t value = lc_once_u16(c[k].data + 2 * i);
                bits[value >> 3] |= (uint8_t)(1 << (value & 7));
            }
        }
    }
    int64_t count = lc_bits_count(bits, 0, 64 * LC_SET_WORDS), found = 0;
    if (count > LC_SET_ARRAY) {
        memcpy(out, bits, sizeof bits);
        return count;
    }
    for (int64_t w = 0; w < LC_SET_WORDS; w++)
        for (uint64_t word = lc_load_u64(bits + 8 * w); word; word &= word - 1)
            lc_store_u16(out + 2 * found++, (uint16_t)(64 * w + lc_ctz64(word)));
    return count;
}

/* Write the content of the union of containers with the same key; return its number of values, 0 for damage. A union
 * of several never takes more bytes than they do, unless they are damaged. */
LC_CLONES static inline int64_t lc_container_merge(const lc_container *c, int64_t n, uint8_t *out) {
    if (n == 1) return lc_container_copy(c, out) ? c->count : 0;
    return lc_containers_unite(c, n, out);
}

LC_INLINE int64_t lc_same_key(const lc_container *c, int64_t at, int64_t end, int shift) {
    int64_t stop = at + 1;
    while (stop < end && c[stop].key >> shift == c[at].key >> shift) stop++;
    return stop;
}

/* Write the union of sets with the given containers, in any order, which are put in order. The output has room for all
 * the sets. Returns its size; -1 for damage. */
static inline int64_t lc_set_unite(lc_container *c, int64_t n, lc_set_form form, uint8_t *out) {
    uint64_t bitmaps = 0;
    uint8_t *next = out + form.count_bytes;
    int64_t sorted = 1;
    for (int64_t i = 1; i < n; i++) sorted &= c[i - 1].key <= c[i].key;
    if (!sorted) qsort(c, (size_t)n, sizeof *c, lc_container_order);
    for (int64_t at = 0; at < n; bitmaps++) {
        int64_t end = lc_same_key(c, at, n, 16), count = 0;
        for (int64_t i = at; i < end; count++) i = lc_same_key(c, i, end, 0);
        lc_bitmap_writer bitmap = lc_bitmap_begin(next, (uint32_t)(c[at].key >> 16), count, form);
        while (at < end) {
            int64_t stop = lc_same_key(c, at, end, 0), values = lc_container_merge(c + at, stop - at, bitmap.content);
            if (values <= 0) return -1;
            lc_bitmap_add(&bitmap, c[at].key, values);
            at = stop;
        }
        next = lc_bitmap_end(&bitmap, form);
    }
    lc_set_store_count(out, form, bitmaps);
    return next - out;
}

/* Sets whose containers were found: those of set k are starts[k] .. starts[k + 1], in sizes[k] bytes. */
typedef struct {
    const lc_container *containers;
    const int64_t *starts;
    const int64_t *sizes;
    int64_t count;
    lc_set_form form;
} lc_known_sets;

/* Most containers of one of the unions of the sets that are listed up to each stop; -1 for numbers out of range. */
static inline int64_t lc_sets_most(const lc_known_sets *sets, const int64_t *order, int64_t n, const int64_t *stops,
                                   int64_t unions) {
    int64_t most = 0, at = 0;
    for (int64_t i = 0; i < n; i++)
        if (order[i] < 0 || order[i] >= sets->count) return -1;
    for (int64_t k = 0; k < unions; k++) {
        int64_t count = 0;
        if (stops[k] < at || stops[k] > n) return -1;
        for (; at < stops[k]; at++) count += sets->starts[order[at] + 1] - sets->starts[order[at]];
        if (count > most) most = count;
    }
    return most;
}

/* Write the unions. `gathered` has room for the most containers. */
static inline int lc_sets_unite(const lc_known_sets *sets, const int64_t *order, const int64_t *stops, int64_t unions,
                                lc_container *gathered, int64_t *bounds, uint8_t *out, int64_t room) {
    bounds[0] = 0;
    for (int64_t k = 0, at = 0; k < unions; k++) {
        int64_t count = 0, most = at < stops[k] ? 0 : sets->form.count_bytes;
        for (; at < stops[k]; at++) {
            int64_t start = sets->starts[order[at]], some = sets->starts[order[at] + 1] - start;
            if (some) memcpy(gathered + count, sets->containers + start, (size_t)some * sizeof *gathered);
            count += some;
            most += sets->sizes[order[at]];
        }
        if (most > room - bounds[k]) return LC_NO_SPACE;
        int64_t size = lc_set_unite(gathered, count, sets->form, out + bounds[k]);
        if (size < 0) return LC_BAD_COUNT;
        bounds[k + 1] = bounds[k] + size;
    }
    return LC_OK;
}

#endif
