/* Strings that contain, begin with, end with or equal a text, as a bitmap.
 *
 * Strings are n + 1 offsets into bytes. An offset is loaded once and checked then. The text has at least one byte. */
#ifndef LANCECODEC_TEXT_SEARCH_H
#define LANCECODEC_TEXT_SEARCH_H

#include "chunk.h"

typedef struct {
    const uint8_t *data;
    int64_t size;
    const uint8_t *offsets;
    int wide;
    int64_t count;
} lc_strings;

enum lc_text_place { LC_TEXT_PREFIX, LC_TEXT_SUFFIX, LC_TEXT_WHOLE };

/* Position of the first occurrence of `text` in n bytes, or -1. Blocks of 64 positions are skipped if the first, the
 * middle and the last byte of the text do not match at any of them. */
LC_CLONES static inline int64_t lc_find_text(const uint8_t *LC_RESTRICT p, int64_t n, const uint8_t *LC_RESTRICT text,
                                             int64_t size) {
    int64_t places = n - size + 1, i = 0, middle = size / 2;
    uint8_t first = text[0], between = text[middle], last = text[size - 1];
    for (; i + 64 <= places; i += 64) {
        const uint8_t *a = p + i, *b = p + i + middle, *c = p + i + size - 1;
        uint8_t any = 0;
        for (int k = 0; k < 64; k++)
            any |= (uint8_t)((uint8_t)(a[k] ^ first) | (uint8_t)(b[k] ^ between) | (uint8_t)(c[k] ^ last)) == 0;
        if (!any) continue;
        for (int k = 0; k < 64; k++)
            if (a[k] == first && c[k] == last && !memcmp(a + k, text, (size_t)size)) return i + k;
    }
    for (; i < places; i++)
        if (p[i] == first && !memcmp(p + i, text, (size_t)size)) return i;
    return -1;
}

/* Set the bits of strings that contain the text in `out`, which is zeroed. */
static inline int lc_strings_containing(lc_strings s, lc_bytes text, uint8_t *out) {
    if (s.count == 0) return LC_OK;
    int64_t begin = lc_load_offset(s.offsets, s.wide, 0), stop = lc_load_offset(s.offsets, s.wide, s.count);
    if (begin < 0 || stop < begin || stop > s.size) return LC_BAD_OFFSETS;
    int64_t at = begin, row = 0, end = lc_load_offset(s.offsets, s.wide, 1);
    if (end < begin || end > stop) return LC_BAD_OFFSETS;
    while (stop - at >= text.size) {
        int64_t found = lc_find_text(s.data + at, stop - at, text.data, text.size);
        if (found < 0) break;
        at += found;
        while (end <= at) {
            if (++row >= s.count) return LC_BAD_OFFSETS;
            int64_t next = lc_load_offset(s.offsets, s.wide, row + 1);
            if (next < end || next > stop) return LC_BAD_OFFSETS;
            end = next;
        }
        if (text.size <= end - at) {
            out[row >> 3] |= (uint8_t)(1 << (row & 7));
            at = end;
        } else {
            at++; /* it extends into the next string */
        }
    }
    return LC_OK;
}

/* Return whether the bytes at p, of which `readable` may be read, are the text; `head` has its first 8 bytes or
 * less. */
LC_INLINE int lc_text_here(const uint8_t *p, int64_t readable, lc_bytes text, uint64_t head, uint64_t mask) {
    if (readable < 8) return !memcmp(p, text.data, (size_t)text.size);
    if ((lc_load_u64(p) ^ head) & mask) return 0;
    return text.size <= 8 || !memcmp(p + 8, text.data + 8, (size_t)(text.size - 8));
}

LC_INLINE int lc_strings_with_at(lc_strings s, lc_bytes text, int place, int wide, uint8_t *out) {
    uint64_t head = 0, word = 0, mask = lc_low_mask(8 * (text.size < 8 ? text.size : 8));
    memcpy(&head, text.data, (size_t)(text.size < 8 ? text.size : 8));
    int64_t begin = lc_load_offset(s.offsets, wide, 0);
    if (begin < 0) return LC_BAD_OFFSETS;
    for (int64_t row = 0; row < s.count; row++) {
        int64_t end = lc_load_offset(s.offsets, wide, row + 1), length = end - begin;
        if (end < begin || end > s.size) return LC_BAD_OFFSETS;
        int hit = place == LC_TEXT_WHOLE ? length == text.size : length >= text.size;
        if (hit) {
            int64_t at = place == LC_TEXT_SUFFIX ? end - text.size : begin;
            hit = lc_text_here(s.data + at, s.size - at, text, head, mask);
        }
        word |= (uint64_t)hit << (row & 7);
        if ((row & 7) == 7 || row + 1 == s.count) {
            out[row >> 3] = (uint8_t)word;
            word = 0;
        }
        begin = end;
    }
    return LC_OK;
}

/* Set the bits of the strings that begin with, end with, or equal the text. */
static inline int lc_strings_with(lc_strings s, lc_bytes text, int place, uint8_t *out) {
    if (s.count == 0) return LC_OK;
    if (place == LC_TEXT_PREFIX)
        return s.wide ? lc_strings_with_at(s, text, LC_TEXT_PREFIX, 1, out)
                      : lc_strings_with_at(s, text, LC_TEXT_PREFIX, 0, out);
    if (place == LC_TEXT_SUFFIX)
        return s.wide ? lc_strings_with_at(s, text, LC_TEXT_SUFFIX, 1, out)
                      : lc_strings_with_at(s, text, LC_TEXT_SUFFIX, 0, out);
    return s.wide ? lc_strings_with_at(s, text, LC_TEXT_WHOLE, 1, out)
                  : lc_strings_with_at(s, text, LC_TEXT_WHOLE, 0, out);
}

#endif
