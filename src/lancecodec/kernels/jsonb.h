/* Values at a path of JSON documents in binary form.
 *
 * A container is a header (kind and number of elements), an entry for each element (kind and length), and the payloads
 * in the same order; words are big-endian. In an object the entries of all keys come first. A document that is a scalar
 * is a container of its own kind with one entry.
 *
 * A document that these functions do not understand is not an error: its value is LC_JSON_OTHER, and the caller looks
 * at it again. */
#ifndef LANCECODEC_JSONB_H
#define LANCECODEC_JSONB_H

#include "chunk.h"

enum lc_json_kind {
    LC_JSON_MISSING = 0,
    LC_JSON_NULL,
    LC_JSON_STRING,
    LC_JSON_INTEGER,  /* of 64 bits with a sign */
    LC_JSON_UNSIGNED, /* above those */
    LC_JSON_FLOAT,
    LC_JSON_FALSE,
    LC_JSON_TRUE,
    LC_JSON_ARRAY,
    LC_JSON_OBJECT,
    LC_JSON_OTHER
};

#define LC_JSON_ARRAY_HEADER 0x80000000u
#define LC_JSON_OBJECT_HEADER 0x40000000u
#define LC_JSON_SCALAR_HEADER 0x20000000u
#define LC_JSON_CONTAINER_ENTRY 5u

/* One step of a path: a key of objects in keys[key_start, key_stop) unless key_start is negative, and an element of
 * arrays unless place is negative. */
typedef struct {
    int64_t key_start, key_stop, place;
} lc_json_step;

typedef struct {
    const uint8_t *keys;
    const lc_json_step *steps;
    int64_t n;
} lc_json_path;

/* A value between two bytes of a document; kind is that of its entry, the four highest bits. */
typedef struct {
    uint32_t kind;
    int64_t start, stop;
} lc_json_value;

LC_INLINE uint32_t lc_json_word(const uint8_t *p) {
    uint32_t v = lc_once_u32(p);
    return v >> 24 | (v >> 8 & 0xFF00u) | (v << 8 & 0xFF0000u) | v << 24;
}

LC_INLINE void lc_json_store_word(uint8_t *p, uint32_t v) {
    lc_store_u32(p, v >> 24 | (v >> 8 & 0xFF00u) | (v << 8 & 0xFF0000u) | v << 24);
}

LC_INLINE uint64_t lc_json_wide_word(const uint8_t *p) {
    uint64_t high = lc_json_word(p), low = lc_json_word(p + 4);
    return high << 32 | low;
}

/* Set `value` to the entry `place` of a container; its payloads start at `at`, that of the entry `first` of them. */
LC_INLINE int lc_json_enter(const uint8_t *entries, int64_t first, int64_t place, int64_t at, int64_t stop,
                            lc_json_value *value) {
    for (int64_t i = first; i < place; i++) at += lc_json_word(entries + 4 * i) & 0x0FFFFFFFu;
    uint32_t entry = lc_json_word(entries + 4 * place);
    int64_t end = at + (entry & 0x0FFFFFFFu);
    if (end > stop) return LC_JSON_OTHER;
    value->kind = entry >> 28;
    value->start = at;
    value->stop = end;
    return LC_JSON_OBJECT;
}

/* Return the place of a key among the entries of an object: of the last one, if it has several; -1 without any, -2 if
 * the keys exceed the object. Advance `at` behind the keys. */
LC_INLINE int64_t lc_json_find_key(const uint8_t *data, const uint8_t *entries, int64_t count, const uint8_t *key,
                                   int64_t length, int64_t *at, int64_t stop) {
    int64_t found = -1, start = *at;
    for (int64_t i = 0; i < count; i++) {
        int64_t size = lc_json_word(entries + 4 * i) & 0x0FFFFFFFu;
        if (size > stop - start) return -2;
        if (size == length) {
            LC_TOUCH(data + start, (size_t)size);
            if (memcmp(data + start, key, (size_t)size) == 0) found = i;
        }
        start += size;
    }
    *at = start;
    return found;
}

/* Follow one step from a container. Returns LC_JSON_OBJECT if there is a value, or LC_JSON_MISSING or LC_JSON_OTHER. */
LC_INLINE int lc_json_follow(const uint8_t *data, const uint8_t *keys, const lc_json_step *step, lc_json_value *value) {
    int64_t start = value->start, stop = value->stop, size = stop - start;
    if (size < 4) return LC_JSON_OTHER;
    uint32_t header = lc_json_word(data + start), kind = header & 0xE0000000u;
    int64_t count = header & 0x1FFFFFFFu, number = kind == LC_JSON_OBJECT_HEADER ? 2 * count : count;
    if ((kind != LC_JSON_OBJECT_HEADER && kind != LC_JSON_ARRAY_HEADER) || number > size / 4 - 1) return LC_JSON_OTHER;
    const uint8_t *entries = data + start + 4;
    int64_t at = start + 4 + 4 * number;
    if (kind == LC_JSON_ARRAY_HEADER) {
        if (step->place < 0 || step->place >= count) return LC_JSON_MISSING;
        return lc_json_enter(entries, 0, step->place, at, stop, value);
    }
    if (step->key_start < 0) return LC_JSON_MISSING;
    const uint8_t *key = keys + step->key_start;
    int64_t place = lc_json_find_key(data, entries, count, key, step->key_stop - step->key_start, &at, stop);
    if (place < 0) return place == -1 ? LC_JSON_MISSING : LC_JSON_OTHER;
    return lc_json_enter(entries, count, count + place, at, stop, value);
}

/* Read a number: its bits go to `word`. */
LC_INLINE int lc_json_number(const uint8_t *p, int64_t size, uint64_t *word) {
    if (size < 1) return LC_JSON_OTHER;
    uint8_t tag = lc_once_u8(p);
    *word = 0;
    if (size == 1) {
        const uint64_t nan = 0x7FF8000000000000u, infinity = 0x7FF0000000000000u;
        *word = tag == 0x10 ? nan : tag == 0x20 ? infinity : tag == 0x30 ? infinity | (uint64_t)1 << 63 : 0;
        return tag == 0 ? LC_JSON_INTEGER : *word ? LC_JSON_FLOAT : LC_JSON_OTHER;
    }
    if (size == 9) {
        *word = lc_json_wide_word(p + 1);
        if (tag == 0x50) return *word >> 63 ? LC_JSON_UNSIGNED : LC_JSON_INTEGER;
        return tag == 0x40 ? LC_JSON_INTEGER : tag == 0x60 ? LC_JSON_FLOAT : LC_JSON_OTHER;
    }
    if ((tag != 0x40 && tag != 0x50) || (size != 2 && size != 3 && size != 5)) return LC_JSON_OTHER;
    int64_t bits = 8 * (size - 1);
    for (int64_t i = 1; i < size; i++) *word = *word << 8 | lc_once_u8(p + i);
    if (tag == 0x40 && *word >> (bits - 1)) *word |= ~lc_low_mask(bits);
    return LC_JSON_INTEGER;
}

/* Return the kind of a value, and the bits of a number. */
LC_INLINE int lc_json_classify(const uint8_t *data, const lc_json_value *value, uint64_t *word) {
    static const uint8_t empty[5] = {LC_JSON_NULL, LC_JSON_OTHER, LC_JSON_OTHER, LC_JSON_FALSE, LC_JSON_TRUE};
    const uint8_t *p = data + value->start;
    int64_t size = value->stop - value->start;
    if (value->kind == 1) return LC_JSON_STRING;
    if (value->kind == 2) return lc_json_number(p, size, word);
    if (value->kind < LC_JSON_CONTAINER_ENTRY) return size ? LC_JSON_OTHER : empty[value->kind];
    if (value->kind != LC_JSON_CONTAINER_ENTRY || size < 4) return LC_JSON_OTHER;
    uint32_t header = lc_json_word(p) & 0xE0000000u;
    return header == LC_JSON_ARRAY_HEADER    ? LC_JSON_ARRAY
           : header == LC_JSON_OBJECT_HEADER ? LC_JSON_OBJECT
                                             : LC_JSON_OTHER;
}

/* Find the value at the beginning of the path: the document itself. Text in place of a document is LC_JSON_OTHER. */
LC_INLINE int lc_json_open(const uint8_t *data, lc_json_value *value) {
    int64_t size = value->stop - value->start;
    if (size < 4) return LC_JSON_OTHER;
    uint32_t header = lc_json_word(data + value->start), first = header >> 24;
    value->kind = LC_JSON_CONTAINER_ENTRY;
    if ((header & 0xE0000000u) == LC_JSON_ARRAY_HEADER || (first >= 0x40 && first < 0x5B)) return LC_JSON_OBJECT;
    if (header != LC_JSON_SCALAR_HEADER || size < 8) return LC_JSON_OTHER;
    uint32_t entry = lc_json_word(data + value->start + 4);
    if ((int64_t)(entry & 0x0FFFFFFFu) != size - 8 || entry >> 28 >= LC_JSON_CONTAINER_ENTRY) return LC_JSON_OTHER;
    value->kind = entry >> 28;
    value->start += 8;
    return LC_JSON_OBJECT;
}

/* Follow a path from a value. */
LC_INLINE int lc_json_follow_path(const uint8_t *data, const lc_json_path *path, lc_json_value *value, uint64_t *word) {
    int found = LC_JSON_OBJECT;
    for (int64_t i = 0; i < path->n && found == LC_JSON_OBJECT; i++) {
        if (value->kind == LC_JSON_CONTAINER_ENTRY) found = lc_json_follow(data, path->keys, &path->steps[i], value);
        else found = value->kind < 7 ? LC_JSON_MISSING : LC_JSON_OTHER;
    }
    return found == LC_JSON_OBJECT ? lc_json_classify(data, value, word) : found;
}

/* Find the value at a path of the document [start, stop). */
LC_INLINE int lc_json_find(const uint8_t *data, const lc_json_path *path, lc_json_value *value, uint64_t *word) {
    if (value->start == value->stop) return path->n ? LC_JSON_MISSING : LC_JSON_NULL;
    int found = lc_json_open(data, value);
    return found == LC_JSON_OBJECT ? lc_json_follow_path(data, path, value, word) : found;
}

/* Find the values at a path of n documents: the kind of each, the bits of numbers, and where its bytes start and stop.
 * These places ascend; if there is no value, both are the start of the document. */
static inline int lc_json_find_all(lc_bytes data, const uint8_t *offsets, int wide, int64_t n, lc_json_path path,
                                   uint8_t *kinds, int64_t *words, int64_t *ranges) {
    int64_t start = lc_load_offset(offsets, wide, 0);
    if (start < 0 || start > data.size) return LC_BAD_OFFSETS;
    for (int64_t i = 0; i < n; i++) {
        int64_t stop = lc_load_offset(offsets, wide, i + 1);
        if (stop < start || stop > data.size) return LC_BAD_OFFSETS;
        lc_json_value value = {0, start, stop};
        uint64_t word = 0;
        int kind = lc_json_find(data.data, &path, &value, &word);
        int is_known = kind != LC_JSON_MISSING && kind != LC_JSON_OTHER;
        kinds[i] = (uint8_t)kind;
        words[i] = (int64_t)word;
        ranges[2 * i] = is_known ? value.start : start;
        ranges[2 * i + 1] = is_known ? value.stop : start;
        start = stop;
    }
    return LC_OK;
}

/* Kind of the entry of a value that was found. */
LC_INLINE uint32_t lc_json_entry_kind(int kind) {
    if (kind == LC_JSON_STRING) return 1;
    if (kind == LC_JSON_INTEGER || kind == LC_JSON_UNSIGNED || kind == LC_JSON_FLOAT) return 2;
    if (kind == LC_JSON_FALSE || kind == LC_JSON_TRUE) return kind == LC_JSON_FALSE ? 3 : 4;
    return kind == LC_JSON_ARRAY || kind == LC_JSON_OBJECT ? LC_JSON_CONTAINER_ENTRY : 0;
}

LC_INLINE int lc_json_is_range(const int64_t *range, int64_t size) {
    return range[0] >= 0 && range[0] <= range[1] && range[1] <= size;
}

/* Follow a path from n values that were found, which are replaced. Values that are missing stay so. */
static inline int lc_json_follow_all(lc_bytes data, int64_t n, lc_json_path path, uint8_t *kinds, int64_t *words,
                                     int64_t *ranges) {
    for (int64_t i = 0; i < n; i++) {
        if (!lc_json_is_range(ranges + 2 * i, data.size)) return LC_BAD_OFFSETS;
        if (kinds[i] == LC_JSON_MISSING || kinds[i] == LC_JSON_OTHER) continue;
        lc_json_value value = {lc_json_entry_kind(kinds[i]), ranges[2 * i], ranges[2 * i + 1]};
        uint64_t word = 0;
        int kind = lc_json_follow_path(data.data, &path, &value, &word);
        int is_known = kind != LC_JSON_MISSING && kind != LC_JSON_OTHER;
        kinds[i] = (uint8_t)kind;
        words[i] = (int64_t)word;
        ranges[2 * i] = is_known ? value.start : ranges[2 * i];
        ranges[2 * i + 1] = is_known ? value.stop : ranges[2 * i];
    }
    return LC_OK;
}

/* Count the values in a container of one kind; -1 if it is damaged. */
LC_INLINE int64_t lc_json_count(const uint8_t *data, int is_object, int64_t start, int64_t stop) {
    int64_t size = stop - start, at = 0;
    if (size < 4) return -1;
    int64_t count = lc_json_word(data + start) & 0x1FFFFFFFu, number = is_object ? 2 * count : count;
    if (number > size / 4 - 1) return -1;
    for (int64_t i = 1; i <= number; i++) at += lc_json_word(data + start + 4 * i) & 0x0FFFFFFFu;
    return at <= size - 4 * (1 + number) ? count : -1;
}

/* Count the elements of each array, or the members of each object. Others have `alone`, missing ones nothing; damaged ones
 * and those that are not known have -1. */
static inline int lc_json_count_all(lc_bytes data, int64_t n, int is_object, int64_t alone, const uint8_t *kinds,
                                    const int64_t *ranges, int64_t *counts) {
    for (int64_t i = 0; i < n; i++) {
        if (!lc_json_is_range(ranges + 2 * i, data.size)) return LC_BAD_OFFSETS;
        int is_container = kinds[i] == LC_JSON_OBJECT || kinds[i] == LC_JSON_ARRAY;
        counts[i] = kinds[i] == LC_JSON_OTHER ? -1 : kinds[i] == LC_JSON_MISSING ? 0 : alone;
        if (!is_container) continue;
        int64_t count = lc_json_count(data.data, kinds[i] == LC_JSON_OBJECT, ranges[2 * i], ranges[2 * i + 1]);
        if (count < 0 || (kinds[i] == LC_JSON_OBJECT) == is_object) counts[i] = count;
    }
    return LC_OK;
}

/* Set value k to that of entry `place` of a container, and return where its payload ends. */
LC_INLINE int64_t lc_json_child(const uint8_t *data, int64_t place, int64_t at, int64_t stop, int64_t k, uint8_t *kinds,
                                int64_t *words, int64_t *ranges) {
    uint32_t entry = lc_json_word(data + place);
    lc_json_value value = {entry >> 28, at, at + (entry & 0x0FFFFFFFu)};
    uint64_t word = 0;
    if (value.stop > stop) value.stop = at, value.kind = 15; /* changed since it was counted */
    kinds[k] = (uint8_t)lc_json_classify(data, &value, &word);
    words[k] = (int64_t)word;
    ranges[2 * k] = at;
    ranges[2 * k + 1] = kinds[k] == LC_JSON_OTHER ? at : value.stop;
    return value.stop;
}

/* Set the children to the elements or members that lc_json_count_all counted; a value alone is its own child. The sum of
 * the counts that are not negative is the number of children. */
static inline int lc_json_children_all(lc_bytes data, int64_t n, int is_object, const uint8_t *kinds, const int64_t *words,
                                       const int64_t *ranges, const int64_t *counts, uint8_t *child_kinds,
                                       int64_t *child_words, int64_t *child_ranges) {
    int64_t k = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t start = ranges[2 * i], stop = ranges[2 * i + 1], count = counts[i];
        if (!lc_json_is_range(ranges + 2 * i, data.size)) return LC_BAD_OFFSETS;
        if (count <= 0) continue;
        if (kinds[i] != (is_object ? LC_JSON_OBJECT : LC_JSON_ARRAY)) {
            if (count != 1) return LC_BAD_COUNT;
            child_kinds[k] = kinds[i], child_words[k] = words[i];
            child_ranges[2 * k] = start, child_ranges[2 * k + 1] = stop;
            k++;
            continue;
        }
        int64_t number = is_object ? 2 * count : count, at = start + 4 * (1 + number);
        if (number > (stop - start) / 4 - 1) return LC_BAD_COUNT;
        for (int64_t j = 0; is_object && j < count; j++) at += lc_json_word(data.data + start + 4 * (1 + j)) & 0x0FFFFFFFu;
        if (at > stop) at = stop;
        for (int64_t j = number - count; j < number; j++, k++)
            at = lc_json_child(data.data, start + 4 * (1 + j), at, stop, k, child_kinds, child_words, child_ranges);
    }
    return LC_OK;
}

/* Write n values as documents of their own, whose ends go to `ends`; those that are missing or not known are empty.
 * Returns LC_NO_SPACE if `capacity` is less than 8 bytes for each and those of the ranges. */
static inline int lc_json_documents_all(lc_bytes data, int64_t n, const uint8_t *kinds, const int64_t *ranges, uint8_t *out,
                                        int64_t capacity, int64_t *ends) {
    int64_t at = 0;
    ends[0] = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!lc_json_is_range(ranges + 2 * i, data.size)) return LC_BAD_OFFSETS;
        int64_t size = ranges[2 * i + 1] - ranges[2 * i];
        uint32_t kind = lc_json_entry_kind(kinds[i]);
        if (size > capacity - at - 8) return LC_NO_SPACE;
        if (kinds[i] != LC_JSON_MISSING && kinds[i] != LC_JSON_OTHER) {
            if (kind != LC_JSON_CONTAINER_ENTRY) {
                lc_json_store_word(out + at, LC_JSON_SCALAR_HEADER);
                lc_json_store_word(out + at + 4, kind << 28 | (uint32_t)(size & 0x0FFFFFFF));
                at += 8;
            }
            LC_TOUCH(data.data + ranges[2 * i], (size_t)size);
            if (size) memcpy(out + at, data.data + ranges[2 * i], (size_t)size);
            at += size;
        }
        ends[i + 1] = at;
    }
    return LC_OK;
}

/* Read a text of up to 18 digits, perhaps behind a minus sign, as a number. Returns whether it is one. */
LC_INLINE int lc_json_read_digit_text(const uint8_t *p, int64_t size, int64_t *word) {
    uint8_t first = size ? lc_once_u8(p) : 0;
    int64_t v = 0, sign = first == '-';
    if (size - sign < 1 || size - sign > 18) return 0;
    for (int64_t i = sign; i < size; i++) {
        uint8_t digit = (uint8_t)(lc_once_u8(p + i) - '0');
        if (digit > 9) return 0;
        v = 10 * v + digit;
    }
    *word = sign ? -v : v;
    return 1;
}

/* Turn texts of digits among n values into integers. */
static inline int lc_json_digits_all(lc_bytes data, int64_t n, uint8_t *kinds, int64_t *words, const int64_t *ranges) {
    for (int64_t i = 0; i < n; i++) {
        if (!lc_json_is_range(ranges + 2 * i, data.size)) return LC_BAD_OFFSETS;
        const uint8_t *p = data.data + ranges[2 * i];
        if (kinds[i] == LC_JSON_STRING && lc_json_read_digit_text(p, ranges[2 * i + 1] - ranges[2 * i], &words[i]))
            kinds[i] = LC_JSON_INTEGER;
    }
    return LC_OK;
}

/* Copy the strings among n values; others are empty. Their ends go to `ends`. */
static inline int lc_json_texts_all(lc_bytes data, int64_t n, const uint8_t *kinds, const int64_t *ranges, uint8_t *out,
                                    int64_t capacity, int64_t *ends) {
    int64_t at = 0;
    ends[0] = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!lc_json_is_range(ranges + 2 * i, data.size)) return LC_BAD_OFFSETS;
        int64_t size = kinds[i] == LC_JSON_STRING ? ranges[2 * i + 1] - ranges[2 * i] : 0;
        if (size > capacity - at) return LC_NO_SPACE;
        LC_TOUCH(data.data + ranges[2 * i], (size_t)size);
        if (size) memcpy(out + at, data.data + ranges[2 * i], (size_t)size);
        ends[i + 1] = at += size;
    }
    return LC_OK;
}

#endif
