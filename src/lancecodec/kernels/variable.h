/* Variable-width values as n + 1 offsets and their bytes: in mini-block chunks, in blocks, and with separately coded
 * offsets.
 *
 * Offsets of the file and of Arrow have 32 or 64 bits (`wide`), independently of each other. They are signed in Arrow,
 * so an entry with its top bit set is an error everywhere. */
#ifndef LANCECODEC_VARIABLE_H
#define LANCECODEC_VARIABLE_H

#include "chunk.h"

#define LC_VARIABLE_PAD 0x48

/* Offsets per block: a copy of them in the first-level cache. */
#define LC_REBASE_BLOCK 1024

/* Entries 1..n of offsets plus `shift` -> out[0..n). Returns 0 if every entry is non-negative and none decreases:
 * then the last one is the largest, and one comparison bounds them all. The offsets must not change. */
#define LC_DEFINE_REBASE(NAME, IN, IN_SIZE, IN_BITS, OUT, OUT_SIZE)                                             \
    LC_CLONES static inline int NAME(const uint8_t *LC_RESTRICT offsets, int64_t n, uint64_t shift,             \
                                     uint8_t *LC_RESTRICT out) {                                                \
        uint##IN_BITS##_t suspect = lc_load_##IN(offsets);                                                      \
        for (int64_t i = 0; i < n; i++) {                                                                       \
            uint##IN_BITS##_t low = lc_load_##IN(offsets + IN_SIZE * i);                                        \
            uint##IN_BITS##_t high = lc_load_##IN(offsets + IN_SIZE * i + IN_SIZE);                             \
            suspect |= high | (uint##IN_BITS##_t)(high - low);                                                  \
            lc_store_##OUT(out + OUT_SIZE * i, (OUT_SIZE == 4) ? (uint32_t)high + (uint32_t)shift : high + shift); \
        }                                                                                                       \
        return (int)(suspect >> (IN_BITS - 1));                                                                 \
    }

LC_DEFINE_REBASE(lc_rebase_32_32, u32, 4, 32, u32, 4)
LC_DEFINE_REBASE(lc_rebase_32_64, u32, 4, 32, u64, 8)
LC_DEFINE_REBASE(lc_rebase_64_32, u64, 8, 64, u32, 4)
LC_DEFINE_REBASE(lc_rebase_64_64, u64, 8, 64, u64, 8)

static inline int lc_rebase_block(const uint8_t *offsets, int wide, int64_t n, uint64_t shift, int out_wide,
                                  uint8_t *out) {
    if (wide) return out_wide ? lc_rebase_64_64(offsets, n, shift, out) : lc_rebase_64_32(offsets, n, shift, out);
    return out_wide ? lc_rebase_32_64(offsets, n, shift, out) : lc_rebase_32_32(offsets, n, shift, out);
}

LC_INLINE int64_t lc_offset_size(int wide) { return wide ? 8 : 4; }

/* The same for offsets that may change: a copy is checked and used. *last: entry 0, then the last one. */
static inline int lc_rebase(const uint8_t *offsets, int wide, int64_t n, uint64_t shift, int out_wide, uint8_t *out,
                            int64_t *last) {
    uint8_t block[8 * (LC_REBASE_BLOCK + 1)];
    int64_t size = lc_offset_size(wide), out_size = lc_offset_size(out_wide);
    for (int64_t i = 0, some; i < n; i += some) {
        some = n - i < LC_REBASE_BLOCK ? n - i : LC_REBASE_BLOCK;
        lc_store_offset(block, wide, 0, *last);
        memcpy(block + size, offsets + (i + 1) * size, (size_t)(some * size));
        LC_SETTLE(block);
        if (lc_rebase_block(block, wide, some, shift, out_wide, out + i * out_size)) return LC_BAD_OFFSETS;
        *last = lc_load_offset(block, wide, some);
    }
    return LC_OK;
}

/* Return whether offsets up to `last` fit the output. */
LC_INLINE int lc_offsets_fit(int64_t base, int64_t length, int out_wide) {
    int64_t limit = out_wide ? INT64_MAX : INT32_MAX;
    return base >= 0 && length <= limit && base <= limit - length;
}

/* Write n checked END offsets, moved so that value 0 begins at `base`; the bytes of the values are *first to *last. The
 * entries must be between `low` and `high`. */
static inline int lc_variable_ends(const uint8_t *offsets, int wide, int64_t n, int64_t low, int64_t high, int64_t base,
                                   int out_wide, uint8_t *out, int64_t *first, int64_t *last) {
    *first = *last = lc_load_offset(offsets, wide, 0);
    if (*first < low) return LC_BAD_OFFSETS;
    int problem = lc_rebase(offsets, wide, n, (uint64_t)base - (uint64_t)*first, out_wide, out, last);
    if (problem || *last > high) return LC_BAD_OFFSETS;
    return lc_offsets_fit(base, *last - *first, out_wide) ? LC_OK : LC_NO_SPACE;
}

/* ---- mini-block chunk: offsets from the start of the buffer, bytes, padding to a whole offset ---- */

/* Return whether the buffer is whole offsets and has room for n + 1. */
LC_INLINE int lc_variable_chunk_size_ok(lc_bytes buffer, int64_t n, int wide) {
    int log = wide ? 3 : 2;
    return n >= 0 && (buffer.size & (lc_offset_size(wide) - 1)) == 0 && n < buffer.size >> log;
}

/* Write n END offsets (base + end of value i relative to the first) and the position of the value bytes. LC_NO_SPACE:
 * they do not fit 32-bit offsets. */
static inline int lc_variable_chunk_offsets(lc_bytes buffer, int64_t n, int wide, int64_t base, int out_wide,
                                            uint8_t *out_offsets, lc_bytes *values) {
    int64_t first, last;
    if (!lc_variable_chunk_size_ok(buffer, n, wide)) return LC_BAD_SIZE;
    int problem = lc_variable_ends(buffer.data, wide, n, (n + 1) * lc_offset_size(wide), buffer.size, base, out_wide,
                                   out_offsets, &first, &last);
    if (problem) return problem;
    values->data = buffer.data + first;
    values->size = last - first;
    return LC_OK;
}

/* Locate value i (0 <= i < n); only its two offsets are checked. */
static inline int lc_variable_chunk_value(lc_bytes buffer, int64_t n, int wide, int64_t i, lc_bytes *value) {
    if (!lc_variable_chunk_size_ok(buffer, n, wide)) return LC_BAD_SIZE;
    int64_t begin = lc_load_offset(buffer.data, wide, i), end = lc_load_offset(buffer.data, wide, i + 1);
    if (begin < (n + 1) * lc_offset_size(wide) || end < begin || end > buffer.size) return LC_BAD_OFFSETS;
    value->data = buffer.data + begin;
    value->size = end - begin;
    return LC_OK;
}

/* The same for a chunk whose offsets were coded separately (2.3): n + 1 decoded offsets from 0 to the size of the
 * values. */
static inline int lc_variable_generic_offsets(const uint8_t *offsets, int64_t n, int wide, int64_t values_size,
                                              int64_t base, int out_wide, uint8_t *out_offsets) {
    int64_t first, last;
    int problem = lc_variable_ends(offsets, wide, n, 0, values_size, base, out_wide, out_offsets, &first, &last);
    return problem ? problem : first == 0 && last == values_size ? LC_OK : LC_BAD_OFFSETS;
}

/* ---- block: a header with offset width and position of the bytes, offsets from 0, bytes ---- */

typedef struct {
    int wide;
    int64_t offsets; /* begin of the n + 1 offsets */
    int64_t values;  /* begin of the value bytes */
} lc_variable_header;

/* Read the header of a block of n values. Writers before the format was stable wrote one byte of width, then n, then
 * the position. A non-zero byte 1, 2 or 3 identifies them, because later ones have the upper bytes of the width
 * there. */
static inline int lc_variable_block_header(lc_bytes buffer, int64_t n, lc_variable_header *header) {
    if (buffer.size < 4) return LC_BAD_SIZE;
    uint32_t bits = lc_once_u32(buffer.data);
    int legacy = (bits >> 8) != 0;
    bits &= 0xFF;
    if (bits != 32 && bits != 64) return LC_BAD_HEADER;
    header->wide = bits == 64;
    int64_t field = lc_offset_size(header->wide);
    header->offsets = legacy ? 1 + 2 * field : 2 * field;
    if (buffer.size < header->offsets || (buffer.size - header->offsets) / field <= n) return LC_BAD_SIZE;
    const uint8_t *at = buffer.data + (legacy ? 1 : 0);
    uint64_t word = header->wide ? lc_load_u64(at) : lc_load_u32(at);
    uint64_t position = header->wide ? lc_load_u64(at + field) : lc_load_u32(at + field);
    header->values = header->offsets + (n + 1) * field;
    if (word != (legacy ? (uint64_t)n : bits) || position != (uint64_t)header->values) return LC_BAD_HEADER;
    return LC_OK;
}

/* Like lc_variable_chunk_offsets, for a block; n >= 0. */
static inline int lc_variable_block_offsets(lc_bytes buffer, int64_t n, int64_t base, int out_wide,
                                            uint8_t *out_offsets, lc_bytes *values) {
    lc_variable_header header;
    int64_t first, last;
    int problem = lc_variable_block_header(buffer, n, &header);
    if (problem) return problem;
    const uint8_t *offsets = buffer.data + header.offsets;
    problem = lc_variable_ends(offsets, header.wide, n, 0, buffer.size - header.values, base, out_wide, out_offsets,
                               &first, &last);
    if (problem) return problem;
    if (first != 0) return LC_BAD_OFFSETS;
    values->data = buffer.data + header.values;
    values->size = last;
    return LC_OK;
}

/* ---- writing ---- */

/* Arrow values: n + 1 offsets, of which the first need not be 0, and the bytes that they point into. */
typedef struct {
    const uint8_t *offsets;
    int wide;
    int64_t n;
    lc_bytes data;
} lc_arrow_values;

/* Write n + 1 offsets from `start` on, of the values [from, from + n), which are data bytes *first to *last.
 * LC_NO_SPACE: the output is too narrow for the offsets. */
static inline int lc_variable_store_offsets(const lc_arrow_values *source, int64_t from, int64_t n, int64_t start,
                                            int out_wide, uint8_t *out, int64_t *first, int64_t *last) {
    const uint8_t *offsets = source->offsets + from * lc_offset_size(source->wide);
    if (!lc_offsets_fit(start, 0, out_wide)) return LC_NO_SPACE;
    lc_store_offset(out, out_wide, 0, start);
    return lc_variable_ends(offsets, source->wide, n, 0, source->data.size, start, out_wide,
                            out + lc_offset_size(out_wide), first, last);
}

/* Number of values in the next chunk, of `left` values, by the rule of the reference: take 2 values, then try 4, 8 and so
 * on. A number is taken if its values and their offsets fit `target` bytes, and twice the number is at most
 * `max_values`. If a number exceeds `left`, all `left` values are taken if they fit. offsets[i] of Arrow are the prefix
 * sums, so that a trial is one subtraction. */
LC_INLINE int64_t lc_variable_chunk_values(const uint8_t *offsets, int wide, int64_t left, int64_t entry,
                                           int64_t target, int64_t max_values) {
    if (left <= 1) return left;
    uint64_t origin = (uint64_t)lc_load_offset(offsets, wide, 0);
    int64_t take = 2;
    for (int64_t trial = 4;; trial *= 2) {
        int64_t tried = trial > left ? left : trial;
        int64_t room = target - (tried + 1) * entry;
        int fits = room >= 0 && (uint64_t)lc_load_offset(offsets, wide, tried) - origin <= (uint64_t)room;
        if (trial > left) return fits ? left : take;
        if (!fits || trial > max_values / 2) return take;
        take = trial;
    }
}

/* Bytes of a chunk of n values of `size` bytes. */
LC_INLINE int64_t lc_variable_chunk_bytes(int64_t n, int64_t size, int64_t entry) {
    return (n + 1) * entry + (size + entry - 1) / entry * entry;
}

/* Divide n values into chunks: counts[i] values, ending at byte ends[i] of the output. counts and ends have room for
 * lc_variable_chunks_bound(n) entries. Stores the number of chunks in *chunks. */
static inline int lc_variable_plan(const lc_arrow_values *source, int out_wide, int64_t target, int64_t max_values,
                                   int64_t *counts, int64_t *ends, int64_t *chunks) {
    int64_t entry = lc_offset_size(out_wide), step = lc_offset_size(source->wide), at = 0, total = 0, k = 0;
    while (at < source->n) {
        const uint8_t *offsets = source->offsets + at * step;
        int64_t m = lc_variable_chunk_values(offsets, source->wide, source->n - at, entry, target, max_values);
        int64_t first = lc_load_offset(offsets, source->wide, 0), last = lc_load_offset(offsets, source->wide, m);
        if (first < 0 || last < first || last > source->data.size) return LC_BAD_OFFSETS;
        total += lc_variable_chunk_bytes(m, last - first, entry);
        counts[k] = m, ends[k] = total;
        k++, at += m;
    }
    *chunks = k;
    return LC_OK;
}

LC_INLINE int64_t lc_variable_chunks_bound(int64_t n) { return n / 2 + (n & 1); }

/* Write one chunk to `out`, which has exactly `size` bytes. */
static inline int lc_variable_chunk_encode(const lc_arrow_values *source, int64_t from, int64_t n, int out_wide,
                                           uint8_t *out, int64_t size) {
    int64_t entry = lc_offset_size(out_wide), header = (n + 1) * entry, first, last;
    if (size < header) return LC_BAD_COUNT;
    int problem = lc_variable_store_offsets(source, from, n, header, out_wide, out, &first, &last);
    if (problem) return problem;
    if (size != lc_variable_chunk_bytes(n, last - first, entry)) return LC_BAD_COUNT;
    if (last > first) memcpy(out + header, source->data.data + first, (size_t)(last - first));
    memset(out + header + last - first, LC_VARIABLE_PAD, (size_t)(size - header - (last - first)));
    return LC_OK;
}

/* Write a planned page. Chunks must end within the size of out. */
static inline int lc_variable_encode(const lc_arrow_values *source, int out_wide, const int64_t *counts,
                                     const int64_t *ends, int64_t chunks, uint8_t *out, int64_t out_size) {
    int64_t at = 0, begin = 0;
    for (int64_t k = 0; k < chunks; k++) {
        if (counts[k] < 1 || counts[k] > source->n - at || ends[k] < begin || ends[k] > out_size) return LC_BAD_COUNT;
        int problem = lc_variable_chunk_encode(source, at, counts[k], out_wide, out + begin, ends[k] - begin);
        if (problem) return problem;
        at += counts[k], begin = ends[k];
    }
    return at == source->n ? LC_OK : LC_BAD_COUNT;
}

/* Decode chunks back to back to n + 1 offsets and the value bytes; *written counts the bytes. *chunk: the damaged
 * one. */
static inline int lc_variable_decode(lc_bytes source, int wide, const int64_t *counts, const int64_t *ends,
                                     int64_t chunks, int64_t n, int out_wide, uint8_t *out_offsets, uint8_t *out,
                                     int64_t out_size, int64_t *written, int64_t *chunk) {
    int64_t at = 0, begin = 0, total = 0, entry = lc_offset_size(out_wide);
    lc_store_offset(out_offsets, out_wide, 0, 0);
    for (int64_t k = 0; k < chunks; k++) {
        lc_bytes buffer, values;
        *chunk = k;
        if (counts[k] < 0 || counts[k] > n - at || ends[k] < begin || ends[k] > source.size) return LC_BAD_COUNT;
        buffer.data = source.data + begin, buffer.size = ends[k] - begin;
        int problem = lc_variable_chunk_offsets(buffer, counts[k], wide, total, out_wide,
                                                out_offsets + entry * (at + 1), &values);
        if (problem) return problem;
        if (values.size > out_size - total) return LC_NO_SPACE;
        if (values.size) memcpy(out + total, values.data, (size_t)values.size);
        at += counts[k], begin = ends[k], total += values.size;
    }
    *written = total;
    return at == n ? LC_OK : LC_BAD_COUNT;
}

/* Size of a block, or -1 if it is too large. n and size are below 2**59. */
LC_INLINE int64_t lc_variable_block_size(int64_t n, int64_t size, int wide) {
    return (n + 3) * lc_offset_size(wide) + size;
}

/* A block at `out`, which has `capacity` bytes; *written counts those used. */
static inline int lc_variable_block_encode(const lc_arrow_values *source, int out_wide, uint8_t *out, int64_t capacity,
                                           int64_t *written) {
    int64_t entry = lc_offset_size(out_wide), position = (source->n + 3) * entry, first, last;
    if (position > capacity || !lc_offsets_fit(position, 0, out_wide)) return LC_NO_SPACE;
    lc_store_offset(out, out_wide, 0, 8 * entry);
    lc_store_offset(out, out_wide, 1, position);
    int problem = lc_variable_store_offsets(source, 0, source->n, 0, out_wide, out + 2 * entry, &first, &last);
    if (problem) return problem;
    if (last - first > capacity - position) return LC_NO_SPACE;
    if (last > first) memcpy(out + position, source->data.data + first, (size_t)(last - first));
    *written = position + last - first;
    return LC_OK;
}

/* ---- single values ---- */

/* Copy a value of n bytes, of `src_left` readable ones, to `out_left` writable bytes. Short values are copied with
 * excess bytes if there is room, so that unpredictable lengths do not cost branches. */
LC_INLINE void lc_copy_value(uint8_t *out, int64_t out_left, const uint8_t *src, int64_t src_left, int64_t n) {
    int64_t room = out_left < src_left ? out_left : src_left;
    if (n <= 128 && room >= 128) {
        int64_t at = 0;
        do {
            memcpy(out + at, src + at, 32);
            at += 32;
        } while (at < n);
    } else {
        lc_copy_bytes(out, src, n);
    }
}

/* Longest of n values; the offsets are checked at the same time. */
#define LC_DEFINE_LONGEST(NAME, LOAD, TYPE, SIZE, BITS)                                                     \
    LC_CLONES static inline int NAME(const uint8_t *offsets, int64_t n, int64_t *longest) {                 \
        uint##BITS##_t suspect = LOAD(offsets);                                                             \
        TYPE most = 0;                                                                                      \
        for (int64_t i = 0; i < n; i++) {                                                                   \
            uint##BITS##_t low = LOAD(offsets + SIZE * i), high = LOAD(offsets + SIZE * i + SIZE);          \
            TYPE length = (TYPE)(high - low);                                                               \
            suspect |= high | (uint##BITS##_t)length;                                                       \
            most = length > most ? length : most;                                                           \
        }                                                                                                   \
        *longest = most;                                                                                    \
        return (int)(suspect >> (BITS - 1));                                                                \
    }

LC_DEFINE_LONGEST(lc_longest_32, lc_load_u32, int32_t, 4, 32)
LC_DEFINE_LONGEST(lc_longest_64, lc_load_u64, int64_t, 8, 64)

/* Compute the offsets from 0 of the values index[0..count). *where: the position of an invalid index or value. */
static inline int lc_variable_select_offsets(const lc_arrow_values *source, const int64_t *index, int64_t count,
                                             int out_wide, uint8_t *out, int64_t *total, int64_t *where) {
    int64_t limit = out_wide ? INT64_MAX : INT32_MAX, end = 0;
    lc_store_offset(out, out_wide, 0, 0);
    for (int64_t i = 0; i < count; i++) {
        *where = i;
        if ((uint64_t)index[i] >= (uint64_t)source->n) return LC_BAD_INDEX;
        int64_t low = lc_load_offset(source->offsets, source->wide, index[i]);
        int64_t high = lc_load_offset(source->offsets, source->wide, index[i] + 1);
        if (low < 0 || high < low || high > source->data.size) return LC_BAD_OFFSETS;
        if (high - low > limit - end) return LC_NO_SPACE;
        end += high - low;
        lc_store_offset(out, out_wide, i + 1, end);
    }
    *total = end;
    return LC_OK;
}

/* Copy their bytes, back to back. Bytes behind them in the output may change. */
static inline int lc_variable_select_bytes(const lc_arrow_values *source, const int64_t *index, int64_t count,
                                           uint8_t *out, int64_t capacity, int64_t *written, int64_t *where) {
    int64_t at = 0;
    for (int64_t i = 0; i < count; i++) {
        *where = i;
        if ((uint64_t)index[i] >= (uint64_t)source->n) return LC_BAD_INDEX;
        int64_t low = lc_load_offset(source->offsets, source->wide, index[i]);
        int64_t high = lc_load_offset(source->offsets, source->wide, index[i] + 1);
        if (low < 0 || high < low || high > source->data.size) return LC_BAD_OFFSETS;
        if (high - low > capacity - at) return LC_NO_SPACE;
        lc_copy_value(out + at, capacity - at, source->data.data + low, source->data.size - low, high - low);
        at += high - low;
    }
    *written = at;
    return LC_OK;
}

#endif
