/* FSST: a table of up to 255 symbols of 1 to 8 bytes. A compressed string is a sequence of one-byte codes for them, and
 * the code 255 is an escape: the next byte stands for itself. This file parses tables and decodes. */
#ifndef LANCECODEC_FSST_H
#define LANCECODEC_FSST_H

#include "chunk.h"

#define LC_FSST_TABLE_SIZE 2312
#define LC_FSST_MAGIC 0x46535354u
#define LC_FSST_MAX_SYMBOLS 255
#define LC_FSST_ESCAPE 255

#define LC_FSST_ONES 0x0101010101010101ULL
#define LC_FSST_HIGH 0x8080808080808080ULL

/* Index c is code c; index 256 + b is byte b after an escape. The escape itself and codes without a symbol are symbols
 * of 0 bytes, so that a loop over all bytes of a string does not need branches. */
typedef struct {
    uint64_t words[512];
    uint8_t lengths[512];
    int count;      /* symbols: codes below this are valid */
    int compressed; /* 0: the strings are stored verbatim, and there are no symbols */
} lc_fsst_table;

static inline int lc_fsst_table_parse(const uint8_t *bytes, int64_t size, lc_fsst_table *table) {
    if (size != LC_FSST_TABLE_SIZE || lc_load_u32(bytes + 4) != LC_FSST_MAGIC || (bytes[3] & ~1)) return LC_BAD_TABLE;
    memset(table, 0, sizeof *table);
    table->count = bytes[0];
    table->compressed = bytes[3];
    if (table->count > LC_FSST_MAX_SYMBOLS) return LC_BAD_TABLE;
    const uint8_t *words = bytes + 8, *lengths = words + 8 * table->count;
    for (int64_t c = 0; c < table->count; c++) {
        table->words[c] = lc_load_u64(words + 8 * c);
        table->lengths[c] = lengths[c];
        if (table->lengths[c] < 1 || table->lengths[c] > 8) return LC_BAD_TABLE;
    }
    for (int64_t b = 0; b < 256; b++) {
        table->words[256 + b] = (uint64_t)b;
        table->lengths[256 + b] = 1;
    }
    return LC_OK;
}

/* The reverse: `symbols` are zero-padded words in code order; the encoder hints stay 0. */
static inline void lc_fsst_table_write(const uint64_t *symbols, const uint8_t *lengths, int count, int compressed,
                                       uint8_t *bytes) {
    memset(bytes, 0, LC_FSST_TABLE_SIZE);
    bytes[0] = (uint8_t)count;
    bytes[3] = compressed != 0;
    lc_store_u32(bytes + 4, LC_FSST_MAGIC);
    for (int64_t c = 0; c < count; c++) lc_store_u64(bytes + 8 + 8 * c, symbols[c]);
    if (count) memcpy(bytes + 8 + 8 * count, lengths, (size_t)count);
}

/* Eight codes at once. A high bit of `special` marks a code without a symbol or an escape, which are both >= count. */
typedef struct {
    uint64_t low;  /* count without its high bit, in every byte */
    uint64_t mask; /* high bits if count < 128 */
} lc_fsst_test;

LC_INLINE lc_fsst_test lc_fsst_make_test(const lc_fsst_table *table) {
    lc_fsst_test test = {(uint64_t)(table->count & 0x7F) * LC_FSST_ONES, table->count < 128 ? LC_FSST_HIGH : 0};
    return test;
}

LC_INLINE uint64_t lc_fsst_special(lc_fsst_test test, uint64_t codes) {
    uint64_t not_below = (codes | LC_FSST_HIGH) - test.low;
    return ((codes & not_below) | ((codes | not_below) & test.mask)) & LC_FSST_HIGH;
}

/* Return the high bits of the bytes after an escape. *after: whether the previous byte was an escape, then whether the
 * last one is. Clears the high bits of escapes and literals in *special; the remaining ones have no symbol. */
LC_INLINE uint64_t lc_fsst_literals(uint64_t codes, int *after, uint64_t *special) {
    uint64_t rest = ~codes;
    uint64_t all_ones = ~(((rest & ~LC_FSST_HIGH) + ~LC_FSST_HIGH) | rest) & LC_FSST_HIGH;
    uint64_t literals = (all_ones << 8) | ((uint64_t)*after << 7);
    if (literals & all_ones) { /* consecutive bytes 255: only a sequential pass distinguishes escapes from literals */
        int literal = *after;
        literals = 0;
        for (int i = 0; i < 8; i++) {
            uint64_t high = 0x80ULL << (8 * i);
            if (literal) literals |= high;
            literal = !literal && (all_ones & high);
        }
    }
    *after = (int)((all_ones & ~literals) >> 63);
    *special &= ~(all_ones | literals);
    return literals;
}

LC_INLINE int64_t lc_fsst_index(uint64_t codes, uint64_t literals, int k) {
    uint64_t shifted = k ? literals >> (8 * k - 1) : literals << 1;
    return (int64_t)(((codes >> (8 * k)) & 0xFF) | (shifted & 0x100));
}

/* Decoded size of `size` compressed bytes, or -1 if they are malformed or end inside an escape. */
static inline int64_t lc_fsst_decoded_size(const lc_fsst_table *table, const uint8_t *src, int64_t size) {
    if (!table->compressed) return size;
    lc_fsst_test test = lc_fsst_make_test(table);
    int64_t total = 0, i = 0;
    int after = 0;
    for (; size - i >= 8; i += 8) {
        uint64_t codes = lc_load_u64(src + i), special = lc_fsst_special(test, codes), literals = 0;
        if (special || after) {
            literals = lc_fsst_literals(codes, &after, &special);
            if (special) return -1;
            for (int k = 0; k < 8; k++) total += table->lengths[lc_fsst_index(codes, literals, k)];
        } else {
            for (int k = 0; k < 8; k++) total += table->lengths[(codes >> (8 * k)) & 0xFF];
        }
    }
    for (; i < size; i++) {
        int index = src[i] | (after << 8);
        after = index == LC_FSST_ESCAPE;
        if (!after && !table->lengths[index]) return -1;
        total += table->lengths[index];
    }
    return after ? -1 : total;
}

/* State of a run of compressed bytes in the decoder. */
typedef struct {
    const uint8_t *src, *src_end;
    uint8_t *out, *out_end;
    int after; /* the byte before src was an escape */
} lc_fsst_run;

/* Decode code by code, if less than eight codes or less than the room for their longest symbols is left. `marks` as
 * below. */
LC_INLINE int lc_fsst_run_rest(const lc_fsst_table *table, lc_fsst_run *run, const uint8_t *src, uint8_t *out,
                               const uint8_t *first, uint16_t *marks) {
    for (; run->src_end - src > 0; src++) {
        int index = *src | (run->after << 8), length = table->lengths[index];
        run->after = index == LC_FSST_ESCAPE;
        if (!run->after && !length) return LC_BAD_CODE;
        if (marks) *marks++ = (uint16_t)(out - first);
        if (run->out_end - out >= 8) {
            lc_store_u64(out, table->words[index]);
        } else {
            if (run->out_end - out < length) return LC_NO_SPACE;
            for (int k = 0; k < length; k++) out[k] = (uint8_t)(table->words[index] >> (8 * k));
        }
        out += length;
    }
    run->src = src;
    run->out = out;
    return LC_OK;
}

/* The first n bytes at p, 0 < n < 8, filled up with escapes, which stand for no byte. */
LC_INLINE uint64_t lc_fsst_last_codes(const uint8_t *p, int64_t n) {
    uint64_t codes;
    if (n >= 4) codes = (uint64_t)lc_load_u32(p) | (uint64_t)lc_load_u32(p + n - 4) << (8 * (n - 4));
    else codes = (uint64_t)lc_load_u8(p) | (uint64_t)lc_load_u8(p + (n >> 1)) << (8 * (n >> 1)) |
                 (uint64_t)lc_load_u8(p + n - 1) << (8 * (n - 1));
    return codes | ~lc_low_mask(8 * n);
}

/* Decode less than eight codes at the end without a branch for each, unless there is an escape among them or little room
 * is left. */
LC_INLINE void lc_fsst_run_last(const lc_fsst_table *table, lc_fsst_test test, lc_fsst_run *run, const uint8_t **src,
                                uint8_t **out) {
    int64_t n = run->src_end - *src;
    if (n <= 0 || n >= 8 || run->after || run->out_end - *out < 64) return;
    uint64_t codes = lc_fsst_last_codes(*src, n);
    LC_OPAQUE(codes);
    if (lc_fsst_special(test, codes) & lc_low_mask(8 * n)) return;
    uint8_t *to = *out;
    for (int k = 0; k < 8; k++) {
        int64_t index = (int64_t)((codes >> (8 * k)) & 0xFF);
        lc_store_u64(to, table->words[index]);
        to += table->lengths[index];
    }
    *src = run->src_end;
    *out = to;
}

/* Decode up to src_end. Bytes behind the new `out` are scratch, up to out_end. If given, marks[i] becomes the number of
 * bytes that the first i bytes of src stand for, for i below their number (at most 8191). */
LC_INLINE int lc_fsst_run_on(const lc_fsst_table *table, lc_fsst_run *run, uint16_t *marks) {
    lc_fsst_test test = lc_fsst_make_test(table);
    const uint8_t *src = run->src;
    uint8_t *out = run->out, *const first = out;
    int after = run->after;
    for (; run->src_end - src >= 8 && run->out_end - out >= 64; src += 8) {
        uint64_t codes = lc_load_u64(src), special = lc_fsst_special(test, codes), literals = 0;
        if (special || after) {
            literals = lc_fsst_literals(codes, &after, &special);
            if (special) return LC_BAD_CODE;
            for (int k = 0; k < 8; k++) {
                int64_t index = lc_fsst_index(codes, literals, k);
                if (marks) marks[k] = (uint16_t)(out - first);
                lc_store_u64(out, table->words[index]);
                out += table->lengths[index];
            }
        } else {
            for (int k = 0; k < 8; k++) {
                int64_t index = (int64_t)((codes >> (8 * k)) & 0xFF);
                if (marks) marks[k] = (uint16_t)(out - first);
                lc_store_u64(out, table->words[index]);
                out += table->lengths[index];
            }
        }
        if (marks) marks += 8;
    }
    run->after = after;
    if (!marks) lc_fsst_run_last(table, test, run, &src, &out);
    return lc_fsst_run_rest(table, run, src, out, first, marks);
}

/* One string. Writes at most `capacity` bytes, of which those past *written are scratch. */
static inline int lc_fsst_decode(const lc_fsst_table *table, const uint8_t *src, int64_t size, uint8_t *out,
                                 int64_t capacity, int64_t *written) {
    if (!table->compressed) {
        if (size > capacity) return LC_NO_SPACE;
        if (size) memcpy(out, src, (size_t)size);
        *written = size;
        return LC_OK;
    }
    lc_fsst_run run = {src, src + size, out, out + capacity, 0};
    int problem = lc_fsst_run_on(table, &run, NULL);
    if (problem) return problem;
    *written = run.out - out;
    return run.after ? LC_BAD_CODE : LC_OK;
}

#endif
