/* Gathers of variable-width values: first the offsets, which give the size of the output, then the bytes. */
#ifndef LANCECODEC_GATHER_VARIABLE_H
#define LANCECODEC_GATHER_VARIABLE_H

#include "gather.h"

/* Strings up to this size are copied by moves of constant size, beyond their end; later strings overwrite the rest. */
#define LC_SHORT_STRING 64
/* Ends stay below this, so that the lengths of a block can be added before the sum is checked. */
#define LC_MAX_END ((int64_t)1 << 62)

/* Check num_entries + 1 offsets: they must ascend from at least 0 and end within `size`. */
LC_CLONES static int lc_entry_offsets_check(const uint8_t *offsets, int wide, int64_t num_entries, int64_t size) {
    uint64_t bad = 0;
    if (wide)
        for (int64_t i = 0; i < num_entries; i++)
            bad |= (uint64_t)((int64_t)lc_load_u64(offsets + 8 * i + 8) < (int64_t)lc_load_u64(offsets + 8 * i));
    else
        for (int64_t i = 0; i < num_entries; i++)
            bad |= (uint64_t)((int32_t)lc_load_u32(offsets + 4 * i + 4) < (int32_t)lc_load_u32(offsets + 4 * i));
    if (bad || lc_load_offset(offsets, wide, 0) < 0 || lc_load_offset(offsets, wide, num_entries) > size)
        return LC_BAD_OFFSETS;
    return LC_OK;
}

LC_INLINE int64_t lc_ends_loop(const uint8_t *LC_RESTRICT offsets, int wide, const uint8_t *LC_RESTRICT codes,
                               int64_t code_width, int64_t n, const uint8_t *LC_RESTRICT validity, int64_t bit,
                               int64_t end, int out_wide, uint8_t *LC_RESTRICT out) {
    for (int64_t i = 0; i < n; i++) {
        int64_t k = (int64_t)lc_code_at(codes, code_width, i);
        int64_t length = lc_load_offset(offsets, wide, k + 1) - lc_load_offset(offsets, wide, k);
        if (validity) length &= 0 - (int64_t)lc_get_bit(validity, bit + i);
        end += length;
        lc_store_offset(out, out_wide, i, end);
    }
    return end;
}

/* Write n END offsets after `end`; return the last one, which may exceed the width of the stored ones. */
static int64_t lc_ends_block(const uint8_t *offsets, int wide, const uint8_t *codes, int64_t code_width, int64_t n,
                             const uint8_t *validity, int64_t bit, int64_t end, int out_wide, uint8_t *out) {
    if (wide || out_wide || validity)
        return lc_ends_loop(offsets, wide, codes, code_width, n, validity, bit, end, out_wide, out);
    switch (code_width) {
        case 1: return lc_ends_loop(offsets, 0, codes, 1, n, NULL, 0, end, 0, out);
        case 2: return lc_ends_loop(offsets, 0, codes, 2, n, NULL, 0, end, 0, out);
        case 4: return lc_ends_loop(offsets, 0, codes, 4, n, NULL, 0, end, 0, out);
        default: return lc_ends_loop(offsets, 0, codes, 8, n, NULL, 0, end, 0, out);
    }
}

/* First pass: write n END offsets, with `base` in front of the first; *end becomes the last. A null has length 0 and
 * any code.
 *
 * The offsets of the entries have been checked against existing bytes (lc_entry_offsets_check); with num_entries = 0
 * they are not read. LC_NO_SPACE if the ends exceed the width `out_wide`. */
static int lc_gather_ends(const uint8_t *offsets, int wide, int64_t num_entries, const uint8_t *codes,
                          int64_t code_width, int64_t n, const uint8_t *validity, int64_t bit, int64_t base,
                          int out_wide, uint8_t *out_ends, int64_t *end) {
    static const uint8_t nothing[16] = {0};
    uint8_t scratch[8 * LC_GATHER_BLOCK];
    int64_t limit = out_wide ? LC_MAX_END : INT32_MAX, width = out_wide ? 8 : 4;
    *end = base;
    if (base < 0 || base > limit) return LC_NO_SPACE;
    for (int64_t at = 0; at < n; at += LC_GATHER_BLOCK) {
        int64_t size = n - at < LC_GATHER_BLOCK ? n - at : LC_GATHER_BLOCK;
        int problem = lc_codes_block(codes + at * code_width, code_width, size, num_entries, validity, bit + at,
                                     scratch);
        if (problem) return problem;
        /* without entries all values are null, and their codes have become 0 */
        *end = lc_ends_block(num_entries ? offsets : nothing, wide, scratch, code_width, size, validity, bit + at,
                             *end, out_wide, out_ends + at * width);
        if (*end > limit) return LC_NO_SPACE;
    }
    return LC_OK;
}

/* Source and destination of strings. A copy of the last bytes of the entries has room behind it, so that moves of
 * constant size may start anywhere. */
typedef struct {
    const uint8_t *data;
    int64_t tail_begin;
    uint8_t *out;
    int64_t size, at;
    uint8_t tail[2 * LC_SHORT_STRING];
} lc_string_copy;

static void lc_string_copy_open(lc_string_copy *c, lc_bytes data, uint8_t *out, int64_t size) {
    int64_t tail = data.size < LC_SHORT_STRING ? data.size : LC_SHORT_STRING;
    c->data = data.data, c->tail_begin = data.size - tail;
    c->out = out, c->size = size, c->at = 0;
    memset(c->tail, 0, sizeof c->tail);
    if (tail) memcpy(c->tail, data.data + c->tail_begin, (size_t)tail);
}

/* Append n strings; most of them have at most `step` bytes, a constant. */
LC_INLINE int lc_strings_loop(lc_string_copy *c, const uint8_t *LC_RESTRICT offsets, int wide,
                              const uint8_t *LC_RESTRICT codes, int64_t code_width, int64_t n,
                              const uint8_t *LC_RESTRICT validity, int64_t bit, int64_t step) {
    const uint8_t *data = c->data;
    int64_t at = c->at, size = c->size, tail_begin = c->tail_begin;
    for (int64_t i = 0; i < n; i++) {
        int64_t k = (int64_t)lc_code_at(codes, code_width, i), begin = lc_load_offset(offsets, wide, k);
        int64_t length = lc_load_offset(offsets, wide, k + 1) - begin;
        if (validity) length &= 0 - (int64_t)lc_get_bit(validity, bit + i);
        if (length <= step && size - at >= step) {
            const uint8_t *src = begin < tail_begin ? data + begin : c->tail + (begin - tail_begin);
            memcpy(c->out + at, src, (size_t)step);
        } else {
            if (length > size - at) return LC_NO_SPACE;
            lc_copy_bytes(c->out + at, data + begin, length);
        }
        at += length;
    }
    c->at = at;
    return LC_OK;
}

LC_INLINE int lc_strings_step(lc_string_copy *c, const uint8_t *offsets, int wide, const uint8_t *codes,
                              int64_t code_width, int64_t n, const uint8_t *validity, int64_t bit, int64_t step) {
    if (wide || validity) return lc_strings_loop(c, offsets, wide, codes, code_width, n, validity, bit, step);
    switch (code_width) {
        case 1: return lc_strings_loop(c, offsets, 0, codes, 1, n, NULL, 0, step);
        case 2: return lc_strings_loop(c, offsets, 0, codes, 2, n, NULL, 0, step);
        case 4: return lc_strings_loop(c, offsets, 0, codes, 4, n, NULL, 0, step);
        default: return lc_strings_loop(c, offsets, 0, codes, 8, n, NULL, 0, step);
    }
}

/* Move size: the average length of the entries, with some margin. */
LC_CLONES static int lc_gather_strings(lc_string_copy *c, const uint8_t *offsets, int wide, int64_t average,
                                       const uint8_t *codes, int64_t code_width, int64_t n, const uint8_t *validity,
                                       int64_t bit) {
    if (average <= 10) return lc_strings_step(c, offsets, wide, codes, code_width, n, validity, bit, 16);
    if (average <= 20) return lc_strings_step(c, offsets, wide, codes, code_width, n, validity, bit, 32);
    return lc_strings_step(c, offsets, wide, codes, code_width, n, validity, bit, LC_SHORT_STRING);
}

/* Second pass: copy the bytes of n strings back to back. *written: their number, at most `size`. The offsets of the
 * entries have been checked against data.size. Copies are faster if `size` exceeds the strings by LC_SHORT_STRING. */
static int lc_gather_bytes(lc_bytes data, const uint8_t *offsets, int wide, int64_t num_entries, const uint8_t *codes,
                           int64_t code_width, int64_t n, const uint8_t *validity, int64_t bit, uint8_t *out,
                           int64_t size, int64_t *written) {
    uint8_t scratch[8 * LC_GATHER_BLOCK];
    lc_string_copy copy;
    lc_string_copy_open(&copy, data, out, size);
    for (int64_t at = 0; at < n; at += LC_GATHER_BLOCK) {
        int64_t count = n - at < LC_GATHER_BLOCK ? n - at : LC_GATHER_BLOCK;
        int problem = lc_codes_block(codes + at * code_width, code_width, count, num_entries, validity, bit + at,
                                     scratch);
        if (!problem && num_entries)
            problem = lc_gather_strings(&copy, offsets, wide, data.size / num_entries, scratch, code_width, count,
                                        validity, bit + at);
        if (problem) return problem;
    }
    *written = copy.at;
    return LC_OK;
}

/* Entries of at most LC_SHORT_ENTRY bytes, each in a slot of `step` bytes. Offsets and bytes are written in one pass,
 * by moves of constant size and without checks of the remaining room. */
#define LC_SHORT_ENTRY 32

typedef struct {
    const uint8_t *slots;   /* count slots of `step` bytes */
    const int32_t *lengths; /* of the entries */
    int64_t step;           /* 8, 16 or 32 */
    int64_t count;
} lc_short_entries;

/* Size of the longest entry in bytes; the offsets have been checked. */
static int64_t lc_entry_longest(const uint8_t *offsets, int wide, int64_t num_entries) {
    int64_t longest = 0;
    for (int64_t i = 0; i < num_entries; i++) {
        int64_t length = lc_load_offset(offsets, wide, i + 1) - lc_load_offset(offsets, wide, i);
        longest = length > longest ? length : longest;
    }
    return longest;
}

/* Fill slots and lengths. LC_BAD_OFFSETS if an entry is longer than a slot or outside the data, which is possible if
 * the offsets changed after the check. */
static int lc_short_entries_fill(lc_bytes data, const uint8_t *offsets, int wide, int64_t num_entries, int64_t step,
                                 uint8_t *slots, int32_t *lengths) {
    memset(slots, 0, (size_t)(num_entries * step));
    for (int64_t i = 0; i < num_entries; i++) {
        int64_t begin = lc_load_offset(offsets, wide, i), end = lc_load_offset(offsets, wide, i + 1);
        if (begin < 0 || end < begin || end - begin > step || end > data.size) return LC_BAD_OFFSETS;
        lengths[i] = (int32_t)(end - begin);
        lc_copy_bytes(slots + i * step, data.data + begin, end - begin);
    }
    return LC_OK;
}

LC_INLINE int64_t lc_short_loop(const lc_short_entries *entries, const uint8_t *LC_RESTRICT codes, int64_t code_width,
                                int64_t n, int64_t step, int out_wide, int64_t base, uint8_t *LC_RESTRICT ends,
                                uint8_t *LC_RESTRICT out) {
    const uint8_t *LC_RESTRICT slots = entries->slots;
    const int32_t *LC_RESTRICT lengths = entries->lengths;
    int64_t at = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t k = (int64_t)lc_code_at(codes, code_width, i);
        memcpy(out + at, slots + k * step, (size_t)step);
        at += lengths[k];
        lc_store_offset(ends, out_wide, i, base + at);
    }
    return at;
}

LC_INLINE int64_t lc_short_codes(const lc_short_entries *entries, const uint8_t *codes, int64_t code_width, int64_t n,
                                 int64_t step, int out_wide, int64_t base, uint8_t *ends, uint8_t *out) {
    if (out_wide) return lc_short_loop(entries, codes, code_width, n, step, 1, base, ends, out);
    switch (code_width) {
        case 1: return lc_short_loop(entries, codes, 1, n, step, 0, base, ends, out);
        case 2: return lc_short_loop(entries, codes, 2, n, step, 0, base, ends, out);
        case 4: return lc_short_loop(entries, codes, 4, n, step, 0, base, ends, out);
        default: return lc_short_loop(entries, codes, 8, n, step, 0, base, ends, out);
    }
}

LC_CLONES static int64_t lc_short_block(const lc_short_entries *entries, const uint8_t *codes, int64_t code_width,
                                        int64_t n, int out_wide, int64_t base, uint8_t *ends, uint8_t *out) {
    if (entries->step == 8) return lc_short_codes(entries, codes, code_width, n, 8, out_wide, base, ends, out);
    if (entries->step == 16) return lc_short_codes(entries, codes, code_width, n, 16, out_wide, base, ends, out);
    return lc_short_codes(entries, codes, code_width, n, 32, out_wide, base, ends, out);
}

/* Write n END offsets, with `base` in front of the first, and the bytes. *written: their number. The caller has checked
 * that `out` has room for n times the longest entry and a step, and that the offsets can hold as many bytes. */
static int lc_gather_short(const lc_short_entries *entries, const uint8_t *codes, int64_t code_width, int64_t n,
                           int out_wide, int64_t base, uint8_t *ends, uint8_t *out, int64_t *written) {
    uint8_t scratch[8 * LC_GATHER_BLOCK];
    *written = 0;
    for (int64_t at = 0; at < n; at += LC_GATHER_BLOCK) {
        int64_t count = n - at < LC_GATHER_BLOCK ? n - at : LC_GATHER_BLOCK;
        int problem = lc_codes_block(codes + at * code_width, code_width, count, entries->count, NULL, 0, scratch);
        if (problem) return problem;
        *written += lc_short_block(entries, scratch, code_width, count, out_wide, base + *written,
                                   ends + at * (out_wide ? 8 : 4), out + *written);
    }
    return LC_OK;
}

#endif
