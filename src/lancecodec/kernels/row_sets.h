/* Sets of 64-bit numbers, serialized as roaring bitmaps of the lower halves by upper half: containers of the numbers
 * that differ in the lowest 16 bits only. Runs of numbers, and bitmaps of size 0 (for all numbers), are not known here.
 *
 * A set is a number of bitmaps (u32 or u64), then for each its key (u32), its size (u32) if the form says so, and the
 * bitmap: cookie and number of containers (u32), the key and the number of values less one of each container (u16),
 * the position of its content (u32), then the contents: up to 4,096 values (u16) or a bit for each possible value. */
#ifndef LANCECODEC_ROW_SETS_H
#define LANCECODEC_ROW_SETS_H

#include "bits.h"
#include "chunk.h"
#include "levels_mask.h"

#define LC_SET_COOKIE 0x303A
#define LC_SET_ARRAY 4096
#define LC_SET_WORDS 1024
#define LC_SET_BITMAP_HEAD 8
#define LC_SET_CONTAINER_HEAD 8

typedef struct {
    int count_bytes; /* 4 or 8 */
    int sized;
} lc_set_form;

/* Numbers that have the upper 48 bits in common. */
typedef struct {
    uint64_t key;
    const uint8_t *data;
    int64_t count;
} lc_container;

LC_INLINE int64_t lc_container_size(int64_t count) { return count <= LC_SET_ARRAY ? 2 * count : 8 * LC_SET_WORDS; }

/* Read a bitmap at data[at..end): the containers with their number, which are only counted if `out` is NULL. */
static inline int lc_set_bitmap(const uint8_t *data, int64_t at, int64_t end, uint64_t key, lc_container *out,
                                int64_t room, int64_t *found, int64_t *after) {
    if (end - at < LC_SET_BITMAP_HEAD || lc_once_u32(data + at) != LC_SET_COOKIE) return LC_BAD_HEADER;
    int64_t count = lc_once_u32(data + at + 4), heads = at + LC_SET_BITMAP_HEAD, last = -1;
    if (count > 1 << 16 || end - heads < count * LC_SET_CONTAINER_HEAD) return LC_BAD_COUNT;
    int64_t content = heads + count * LC_SET_CONTAINER_HEAD;
    for (int64_t i = 0; i < count; i++) {
        int64_t lower = lc_once_u16(data + heads + 4 * i), values = 1 + (int64_t)lc_once_u16(data + heads + 4 * i + 2);
        int64_t size = lc_container_size(values);
        if (lower <= last || size > end - content) return LC_BAD_SIZE;
        if (out != NULL) {
            if (*found >= room) return LC_BAD_COUNT;
            out[*found] = (lc_container){key << 16 | (uint64_t)lower, data + content, values};
        }
        ++*found;
        last = lower;
        content += size;
    }
    *after = content;
    return LC_OK;
}

/* Read the containers of the set at data[at..end), which they must fill. `found` is their number so far. */
static inline int lc_set_scan(const uint8_t *data, int64_t at, int64_t end, lc_set_form form, lc_container *out,
                              int64_t room, int64_t *found) {
    if (end - at < form.count_bytes) return LC_BAD_SIZE;
    uint64_t bitmaps = form.count_bytes == 8 ? lc_once_u64(data + at) : lc_once_u32(data + at);
    int64_t last = -1;
    at += form.count_bytes;
    for (; bitmaps; bitmaps--) {
        int64_t head = form.sized ? 8 : 4;
        if (end - at < head) return LC_BAD_SIZE;
        int64_t key = lc_once_u32(data + at), stop = end;
        if (key <= last) return LC_BAD_OFFSETS;
        if (form.sized) {
            int64_t size = lc_once_u32(data + at + 4);
            if (size > end - at - head) return LC_BAD_SIZE;
            stop = at + head + size;
        }
        int problem = lc_set_bitmap(data, at + head, stop, (uint64_t)key, out, room, found, &at);
        if (problem != LC_OK) return problem;
        if (form.sized && at != stop) return LC_BAD_SIZE;
        last = key;
    }
    return at == end ? LC_OK : LC_BAD_SIZE;
}

/* Copy the values of an array container; whether they ascend. */
LC_INLINE int lc_array_copy(const lc_container *c, uint16_t *out) {
    memcpy(out, c->data, (size_t)(2 * c->count));
    LC_SETTLE(out);
    unsigned wrong = 0;
    for (int64_t i = 1; i < c->count; i++) wrong |= out[i] <= out[i - 1];
    return !wrong;
}

/* Write the numbers of the set bits; -1 if there are more than `room`. */
LC_INLINE int64_t lc_words_numbers(const uint64_t *words, uint64_t base, uint64_t *out, int64_t room) {
    int64_t found = 0;
    for (int64_t w = 0; w < LC_SET_WORDS; w++) {
        uint64_t word = words[w];
        if (lc_popcount64(word) > room - found) return -1;
        for (; word; word &= word - 1) out[found++] = base | (uint64_t)(64 * w + lc_ctz64(word));
    }
    return found;
}

/* Write the numbers of a container, as many as it says. */
LC_CLONES static inline int lc_container_numbers(const lc_container *c, uint64_t *out) {
    uint64_t base = c->key << 16, words[LC_SET_WORDS];
    if (c->count > LC_SET_ARRAY) {
        memcpy(words, c->data, sizeof words);
        LC_SETTLE(words);
        return lc_words_numbers(words, base, out, c->count) == c->count ? LC_OK : LC_BAD_COUNT;
    }
    uint16_t *lower = (uint16_t *)words;
    if (!lc_array_copy(c, lower)) return LC_BAD_OFFSETS;
    for (int64_t i = 0; i < c->count; i++) out[i] = base | lower[i];
    return LC_OK;
}

static inline int lc_containers_numbers(const lc_container *c, int64_t n, uint64_t *out, int64_t room) {
    for (int64_t i = 0; i < n; i++) {
        if (c[i].count > room) return LC_NO_SPACE;
        int problem = lc_container_numbers(&c[i], out);
        if (problem != LC_OK) return problem;
        out += c[i].count;
        room -= c[i].count;
    }
    return LC_OK;
}

/* Keep the values of an ascending array that are in a container, too; return their number. */
LC_INLINE int64_t lc_array_among(uint16_t *values, int64_t n, const lc_container *c) {
    int64_t kept = 0, at = 0;
    if (c->count > LC_SET_ARRAY) {
        for (int64_t i = 0; i < n; i++) {
            uint16_t value = values[i];
            values[kept] = value;
            kept += lc_get_bit(c->data, value);
        }
        return kept;
    }
    for (int64_t i = 0; i < n; i++) {
        uint16_t value = values[i];
        while (at < c->count && lc_load_u16(c->data + 2 * at) < value) at++;
        if (at == c->count) break;
        values[kept] = value;
        kept += lc_load_u16(c->data + 2 * at) == value;
    }
    return kept;
}

/* Write the numbers that are in all containers, which have the same key; the first has the fewest values. */
LC_CLONES static inline int64_t lc_containers_common(const lc_container *const *c, int64_t n, uint64_t *out,
                                                     int64_t room) {
    uint64_t base = c[0]->key << 16, words[LC_SET_WORDS];
    if (c[0]->count > LC_SET_ARRAY) {
        memcpy(words, c[0]->data, sizeof words);
        for (int64_t k = 1; k < n; k++)
            for (int64_t w = 0; w < LC_SET_WORDS; w++) words[w] &= lc_load_u64(c[k]->data + 8 * w);
        LC_SETTLE(words);
        return lc_words_numbers(words, base, out, room);
    }
    uint16_t *lower = (uint16_t *)words;
    int64_t left = c[0]->count;
    if (!lc_array_copy(c[0], lower)) return -1;
    for (int64_t k = 1; k < n && left; k++) left = lc_array_among(lower, left, c[k]);
    if (left > room) return -1;
    for (int64_t i = 0; i < left; i++) out[i] = base | lower[i];
    return left;
}

/* Write the numbers that are in all of n sets, set k with the containers starts[k] .. starts[k + 1]; the first has the
 * fewest containers. `at` and `same` have n places. Returns the number of numbers, -1 for damage. */
static inline int64_t lc_sets_common(const lc_container *c, const int64_t *starts, int64_t n, int64_t *at,
                                     const lc_container **same, uint64_t *out, int64_t room) {
    int64_t found = 0;
    for (int64_t k = 0; k < n; k++) at[k] = starts[k];
    for (int64_t i = starts[0]; i < starts[1]; i++) {
        int64_t k = 1, least = 0;
        same[0] = &c[i];
        for (; k < n; k++) {
            while (at[k] < starts[k + 1] && c[at[k]].key < c[i].key) at[k]++;
            if (at[k] == starts[k + 1]) return found;
            if (c[at[k]].key != c[i].key) break;
            same[k] = &c[at[k]];
            if (same[k]->count < same[least]->count) least = k;
        }
        if (k < n) continue;
        const lc_container *first = same[least];
        same[least] = same[0];
        same[0] = first;
        int64_t some = lc_containers_common(same, n, out + found, room - found);
        if (some < 0) return -1;
        found += some;
    }
    return found;
}

#endif
