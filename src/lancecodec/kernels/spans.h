/* Runs of values at any positions of one buffer, copied back to back.
 *
 * Files with many small pages are read with it: a scan has a span for each page, and single rows are spans of one value
 * each. Positions and counts are memory of the caller and do not change. The content at the positions may change at any
 * time, so every stored offset is loaded once, and the checked value is the one that is used. */
#ifndef LANCECODEC_SPANS_H
#define LANCECODEC_SPANS_H

#include "bits.h"
#include "chunk.h"

/* Spans that are tested together for being single values. */
#define LC_SPANS_BLOCK 256
/* Offsets per block: the results of one pass are in the first-level cache for the next. */
#define LC_SPANS_ENDS 1024
/* Distance between the span that is copied and the one that is prefetched. */
#define LC_SPANS_AHEAD 64
/* Spans up to this size are copied by moves of this constant size, beyond their end; later spans overwrite the rest. */
#define LC_SPANS_SHORT 32

/* Errors of a span; 0 is success. */
enum {
    LC_SPANS_OK = 0,
    LC_SPANS_COUNT = 1,   /* negative number of values */
    LC_SPANS_OUTSIDE = 2, /* not within the buffer */
    LC_SPANS_ROOM = 3,    /* the output has no room for its values */
    LC_SPANS_OFFSETS = 4, /* its offsets decrease or are negative */
    LC_SPANS_OVERFLOW = 5 /* the sum of the sizes exceeds the offsets */
};

typedef struct {
    const int64_t *positions, *counts;
    int64_t n;
} lc_span_list;

LC_INLINE int64_t lc_spans_block(const lc_span_list *spans, int64_t k) {
    return spans->n - k < LC_SPANS_BLOCK ? spans->n - k : LC_SPANS_BLOCK;
}

/* Return whether each of n spans is one value. */
LC_CLONES static inline int lc_spans_single(const int64_t *LC_RESTRICT counts, int64_t n) {
    uint64_t other = 0;
    for (int64_t k = 0; k < n; k++) other |= (uint64_t)counts[k] ^ 1;
    return !other;
}

/* Prefetch the first and a later byte of a following span. Its position has not been checked, and need not be. */
LC_INLINE void lc_spans_fetch(const uint8_t *src, const lc_span_list *spans, int64_t k, int64_t reach) {
#if defined(__GNUC__) || defined(__clang__)
    if (k + LC_SPANS_AHEAD >= spans->n) return;
    uintptr_t at = (uintptr_t)src + (uintptr_t)spans->positions[k + LC_SPANS_AHEAD];
    __builtin_prefetch((const void *)at);
    if (reach >= 8) __builtin_prefetch((const void *)(at + (uintptr_t)reach - 1));
#else
    (void)src, (void)spans, (void)k, (void)reach;
#endif
}

/* Copy values from span k on, one each; return the number of spans until one is outside. */
LC_INLINE int64_t lc_spans_take_as(lc_bytes src, const lc_span_list *spans, int64_t k, int64_t n, int64_t width,
                                   uint8_t *LC_RESTRICT out) {
    if (src.size < width) return 0;
    const int64_t *positions = spans->positions + k;
    uint64_t last = (uint64_t)(src.size - width);
    for (int64_t i = 0; i < n; i++) {
        lc_spans_fetch(src.data, spans, k + i, width);
        if ((uint64_t)positions[i] > last) return i;
        memcpy(out + i * width, src.data + positions[i], (size_t)width);
    }
    return n;
}

static inline int64_t lc_spans_take(lc_bytes src, const lc_span_list *spans, int64_t k, int64_t n, int64_t width,
                                    uint8_t *out) {
    switch (width) {
        case 1: return lc_spans_take_as(src, spans, k, n, 1, out);
        case 2: return lc_spans_take_as(src, spans, k, n, 2, out);
        case 4: return lc_spans_take_as(src, spans, k, n, 4, out);
        case 8: return lc_spans_take_as(src, spans, k, n, 8, out);
        case 16: return lc_spans_take_as(src, spans, k, n, 16, out);
        case 32: return lc_spans_take_as(src, spans, k, n, 32, out);
    }
    return lc_spans_take_as(src, spans, k, n, width, out);
}

/* Copy n spans of any counts from span k on. `room` is the rest of the output in bytes; *done: number of valid
 * spans. */
static inline int lc_spans_copy(lc_bytes src, const lc_span_list *spans, int64_t k, int64_t n, int64_t width,
                                uint8_t *LC_RESTRICT *out, int64_t *room, int64_t *done) {
    uint8_t *LC_RESTRICT target = *out;
    int64_t left = *room, most = left / width;
    int problem = LC_SPANS_OK;
    for (; n > 0; n--, k++) {
        int64_t position = spans->positions[k], count = spans->counts[k];
        lc_spans_fetch(src.data, spans, k, LC_SPANS_SHORT);
        if (count <= 0) {
            if (count == 0) continue;
            problem = LC_SPANS_COUNT;
            break;
        }
        int64_t size = count > most ? INT64_MAX : count * width;
        if (size > left) {
            problem = LC_SPANS_ROOM;
            break;
        }
        if (position < 0 || position > src.size || size > src.size - position) {
            problem = LC_SPANS_OUTSIDE;
            break;
        }
        if (size <= LC_SPANS_SHORT && left >= LC_SPANS_SHORT && src.size - position >= LC_SPANS_SHORT)
            memcpy(target, src.data + position, LC_SPANS_SHORT);
        else
            lc_copy_bytes(target, src.data + position, size);
        target += size, left -= size;
    }
    *out = target, *room = left, *done = k;
    return problem;
}

/* Copy values of width > 0 bytes. `bad`: the invalid span. Bytes of the output behind the last value may change. */
static inline int lc_spans_fixed(lc_bytes src, const lc_span_list *spans, int64_t width, uint8_t *out, int64_t room,
                                 int64_t *bad) {
    for (int64_t k = 0, n; k < spans->n; k += n) {
        n = lc_spans_block(spans, k);
        if (n <= room / width && lc_spans_single(spans->counts + k, n)) {
            int64_t taken = lc_spans_take(src, spans, k, n, width, out);
            *bad = k + taken;
            if (taken < n) return LC_SPANS_OUTSIDE;
            out += n * width, room -= n * width;
        } else {
            int problem = lc_spans_copy(src, spans, k, n, width, &out, &room, bad);
            if (problem) return problem;
        }
    }
    return LC_SPANS_OK;
}

/* Check the counts of values of 0 bytes. */
static inline int lc_spans_nothing(const lc_span_list *spans, int64_t *bad) {
    for (*bad = 0; *bad < spans->n; ++*bad)
        if (spans->counts[*bad] < 0) return LC_SPANS_COUNT;
    return LC_SPANS_OK;
}

/* Copy single bits, positions in bits; return the number until one is outside. */
LC_INLINE int64_t lc_spans_take_bits(lc_bytes src, const lc_span_list *spans, int64_t k, int64_t n,
                                     lc_bit_writer *writer) {
    const int64_t *positions = spans->positions + k;
    uint64_t bits = (uint64_t)src.size * 8, word = 0;
    int64_t i = 0;
    for (; i < n; i++) {
        if ((uint64_t)positions[i] >= bits) return i;
        word |= (uint64_t)lc_get_bit(src.data, positions[i]) << (i & 63);
        if ((i & 63) == 63) {
            lc_bit_writer_add(writer, word, 64);
            word = 0;
        }
    }
    lc_bit_writer_add(writer, word, i & 63);
    return n;
}

/* `room` is in bits. Unused bits of the last byte become 0. */
static inline int lc_spans_bits(lc_bytes src, const lc_span_list *spans, uint8_t *out, int64_t room, int64_t *bad) {
    int64_t at = 0, bits = src.size * 8;
    for (int64_t k = 0, n; k < spans->n; k += n) {
        n = lc_spans_block(spans, k);
        if (n <= room - at && lc_spans_single(spans->counts + k, n)) {
            lc_bit_writer writer = lc_bit_writer_at(out, at);
            int64_t taken = lc_spans_take_bits(src, spans, k, n, &writer);
            *bad = k + taken;
            if (taken < n) return LC_SPANS_OUTSIDE;
            lc_bit_writer_end(&writer);
            at += n;
            continue;
        }
        for (int64_t i = k; i < k + n; i++) {
            int64_t position = spans->positions[i], count = spans->counts[i];
            *bad = i;
            if (count < 0) return LC_SPANS_COUNT;
            if (count > room - at) return LC_SPANS_ROOM;
            if (count == 0) continue;
            if (position < 0 || position > bits || count > bits - position) return LC_SPANS_OUTSIDE;
            lc_bits_copy(src.data, position, count, out, at);
            at += count;
        }
    }
    if (at & 7) out[at >> 3] &= (uint8_t)lc_low_mask(at & 7);
    return LC_SPANS_OK;
}

/* Subtract `first` from n stored offsets and add `sum`. The result is the OR of all differences: the top bit is set if
 * any is negative. */
LC_INLINE uint64_t lc_spans_shift64(const uint8_t *LC_RESTRICT src, int64_t n, uint64_t first, int64_t sum,
                                    int out_wide, uint8_t *LC_RESTRICT out) {
    uint64_t seen = 0;
    for (int64_t i = 0; i < n; i++) {
        uint64_t above = lc_load_u64(src + 8 * i) - first;
        seen |= above;
        if (out_wide) lc_store_u64(out + 8 * i, above + (uint64_t)sum);
        else lc_store_u32(out + 4 * i, (uint32_t)above + (uint32_t)sum);
    }
    return seen;
}

LC_INLINE uint64_t lc_spans_shift32(const uint8_t *LC_RESTRICT src, int64_t n, uint32_t first, int64_t sum,
                                    int out_wide, uint8_t *LC_RESTRICT out) {
    uint32_t seen = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t above = lc_load_u32(src + 4 * i) - first;
        seen |= above;
        if (out_wide) lc_store_u64(out + 8 * i, above + (uint64_t)sum);
        else lc_store_u32(out + 4 * i, above + (uint32_t)sum);
    }
    return seen;
}

/* Check whether any of n ends behind another is below its predecessor, in the sign bits of their differences. */
LC_INLINE int lc_spans_descend(const uint8_t *ends, int64_t n, int wide) {
    uint64_t down = 0;
    uint32_t down32 = 0;
    if (wide)
        for (int64_t i = 0; i < n; i++) down |= lc_load_u64(ends + 8 * i) - lc_load_u64(ends + 8 * i - 8);
    else
        for (int64_t i = 0; i < n; i++) down32 |= lc_load_u32(ends + 4 * i) - lc_load_u32(ends + 4 * i - 4);
    return (int)(down >> 63 | down32 >> 31);
}

/* Convert a block of stored offsets to ends behind the existing ones. They are loaded once, and the written values are
 * checked. If they are valid, the last is the largest, so that one comparison bounds them all. */
LC_CLONES static inline int lc_spans_ends(const uint8_t *src, int64_t n, int wide, int64_t first, int64_t sum,
                                          int out_wide, uint8_t *out) {
    uint64_t seen;
    if (wide && out_wide) {
        seen = lc_spans_shift64(src, n, (uint64_t)first, sum, 1, out) >> 63;
        return !seen && !lc_spans_descend(out, n, 1);
    }
    if (out_wide) {
        seen = lc_spans_shift32(src, n, (uint32_t)first, sum, 1, out) >> 31;
        return !seen && !lc_spans_descend(out, n, 1);
    }
    seen = (wide ? lc_spans_shift64(src, n, (uint64_t)first, sum, 0, out)
                 : lc_spans_shift32(src, n, (uint32_t)first, sum, 0, out)) >> 31;
    return !seen && !lc_spans_descend(out, n, 0);
}

/* Determine the error of a failed span, for the message only. */
static inline int lc_spans_offsets_problem(const uint8_t *src, int64_t n, int wide) {
    int64_t last = 0;
    for (int64_t i = 0; i <= n; i++) {
        int64_t offset = lc_load_offset(src, wide, i);
        if (offset < last) return LC_SPANS_OFFSETS;
        last = offset;
    }
    return LC_SPANS_OVERFLOW;
}

/* State of reading offsets. */
typedef struct {
    uint8_t *out; /* output of the next end */
    int64_t sum;  /* the last end */
    int64_t first, size; /* of the last span */
} lc_spans_state;

/* Read the n > 0 ends of a span whose n + 1 offsets are inside the buffer. */
static inline int lc_spans_long(const uint8_t *src, int64_t n, int wide, int out_wide, lc_spans_state *s) {
    int64_t stride = wide ? 8 : 4, out_stride = out_wide ? 8 : 4;
    int64_t first = lc_load_offset(src, wide, 0);
    uint64_t end;
    if (first < 0) return LC_SPANS_OFFSETS;
    for (int64_t i = 0, some; i < n; i += some, s->out += some * out_stride) {
        some = n - i < LC_SPANS_ENDS ? n - i : LC_SPANS_ENDS;
        if (!lc_spans_ends(src + (i + 1) * stride, some, wide, first, s->sum, out_wide, s->out))
            return lc_spans_offsets_problem(src, n, wide);
    }
    end = out_wide ? lc_load_u64(s->out - 8) : lc_load_u32(s->out - 4);
    s->first = first, s->size = (int64_t)(end - (uint64_t)s->sum);
    if (s->size > (wide ? INT64_MAX : INT32_MAX) - first) return LC_SPANS_OFFSETS; /* there and back again */
    if (end > (uint64_t)(out_wide ? INT64_MAX : INT32_MAX)) return LC_SPANS_OVERFLOW;
    s->sum = (int64_t)end;
    return LC_SPANS_OK;
}

/* The same for a single value. */
LC_INLINE int lc_spans_one(const uint8_t *src, int wide, int out_wide, lc_spans_state *s) {
    int64_t first = lc_load_offset(src, wide, 0), last = lc_load_offset(src, wide, 1);
    if (first < 0 || last < first) return LC_SPANS_OFFSETS;
    s->first = first, s->size = last - first;
    if (s->size > (out_wide ? INT64_MAX : INT32_MAX) - s->sum) return LC_SPANS_OVERFLOW;
    s->sum += s->size;
    lc_store_offset(s->out, out_wide, 0, s->sum);
    s->out += out_wide ? 8 : 4;
    return LC_SPANS_OK;
}

LC_INLINE int lc_spans_offsets_as(lc_bytes src, const lc_span_list *spans, int wide, int out_wide, int64_t room,
                                  lc_spans_state *s, int64_t *starts, int64_t *sizes, int64_t *bad) {
    const int64_t stride = wide ? 8 : 4;
    int problem;
    for (int64_t k = 0; k < spans->n; k++) {
        int64_t position = spans->positions[k], count = spans->counts[k];
        lc_spans_fetch(src.data, spans, k, 2 * stride);
        *bad = k;
        starts[k] = sizes[k] = 0;
        if (count < 0) return LC_SPANS_COUNT;
        if (count == 0) continue;
        if (count > room) return LC_SPANS_ROOM;
        if (position < 0 || position > src.size || count >= (src.size - position) / stride) return LC_SPANS_OUTSIDE;
        problem = count == 1 ? lc_spans_one(src.data + position, wide, out_wide, s)
                             : lc_spans_long(src.data + position, count, wide, out_wide, s);
        if (problem) return problem;
        starts[k] = s->first, sizes[k] = s->size;
        room -= count;
    }
    return LC_SPANS_OK;
}

/* `out` has room for `room` ends behind offset 0. starts[k] and sizes[k] are the first offset of span k and the
 * difference of the last and the first; *total is the sum of the sizes. */
static inline int lc_spans_offsets(lc_bytes src, const lc_span_list *spans, int wide, int out_wide, uint8_t *out,
                                   int64_t room, int64_t *starts, int64_t *sizes, int64_t *total, int64_t *bad) {
    lc_spans_state s = {out + (out_wide ? 8 : 4), 0, 0, 0};
    int problem;
    lc_store_offset(out, out_wide, 0, 0);
    if (wide)
        problem = out_wide ? lc_spans_offsets_as(src, spans, 1, 1, room, &s, starts, sizes, bad)
                           : lc_spans_offsets_as(src, spans, 1, 0, room, &s, starts, sizes, bad);
    else
        problem = out_wide ? lc_spans_offsets_as(src, spans, 0, 1, room, &s, starts, sizes, bad)
                           : lc_spans_offsets_as(src, spans, 0, 0, room, &s, starts, sizes, bad);
    *total = s.sum;
    return problem;
}

LC_CLONES static inline void lc_spans_filled(const uint8_t *LC_RESTRICT offsets, int wide, int64_t n,
                                             uint8_t *LC_RESTRICT filled) {
    if (wide)
        for (int64_t i = 0; i < n; i++)
            filled[i] = lc_load_u64(offsets + 8 * i) != lc_load_u64(offsets + 8 * i + 8);
    else
        for (int64_t i = 0; i < n; i++)
            filled[i] = lc_load_u32(offsets + 4 * i) != lc_load_u32(offsets + 4 * i + 4);
}

/* Set bit i if value i, between n + 1 offsets, is not empty. Returns the number of empty values. */
static inline int64_t lc_spans_empties(const uint8_t *offsets, int wide, int64_t n, uint8_t *out) {
    uint8_t filled[LC_SPANS_ENDS];
    for (int64_t i = 0; i < n; i += LC_SPANS_ENDS) {
        int64_t some = n - i < LC_SPANS_ENDS ? n - i : LC_SPANS_ENDS;
        lc_spans_filled(offsets + (wide ? 8 : 4) * i, wide, some, filled);
        lc_bits_pack(filled, some, out + (i >> 3));
    }
    return n - lc_bits_count(out, 0, n);
}

/* A table in batches: first row of each and the number of rows, and for one field its page in each batch. */
typedef struct {
    const int64_t *starts, *positions, *lengths;
    int64_t n;     /* batches */
    int64_t width; /* size of a value, in units of the resulting positions */
    int64_t scale; /* number of these units in a byte: 1, or 8 for bits */
} lc_batch_pages;

enum { LC_BATCH_ROW = 16, LC_BATCH_SHORT = 17 }; /* row does not exist; the page has fewer values */

/* Find the batch of a row: first try as if all were as long as the first one, then bisection. */
LC_INLINE int64_t lc_batch_of(const lc_batch_pages *pages, int64_t row, int64_t first) {
    const int64_t *starts = pages->starts;
    int64_t low = 0, high = pages->n;
    if (first > 0) {
        int64_t guess = row / first;
        if (guess < pages->n && starts[guess] <= row && row < starts[guess + 1]) return guess;
    }
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (starts[middle] <= row) low = middle;
        else high = middle;
    }
    return low;
}

/* Position of the value of each of n rows. `bad`: the invalid row. */
static inline int lc_batches_locate(const lc_batch_pages *pages, const int64_t *rows, int64_t n, int64_t *out,
                                    int64_t *bad) {
    int64_t end = pages->n ? pages->starts[pages->n] : 0, first = pages->n ? pages->starts[1] - pages->starts[0] : 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t row = rows[i];
        *bad = i;
        if (row < 0 || row >= end) return LC_BATCH_ROW;
        int64_t batch = lc_batch_of(pages, row, first), at = row - pages->starts[batch];
        if (at < 0 || at >= pages->lengths[batch]) return LC_BATCH_SHORT;
        out[i] = pages->positions[batch] * pages->scale + at * pages->width;
    }
    return LC_SPANS_OK;
}

/* Values of `width` bytes, or single bits, of n rows; `out` has room for them. Unused bits of its last byte become 0. */
static inline int lc_batches_take(lc_bytes src, const lc_batch_pages *pages, const int64_t *rows, int64_t n,
                                  uint8_t *out, int64_t *bad) {
    int64_t positions[LC_SPANS_BLOCK];
    lc_span_list spans = {positions, NULL, LC_SPANS_BLOCK};
    for (int64_t k = 0; k < n; k += LC_SPANS_BLOCK) {
        int64_t taken, count = n - k < LC_SPANS_BLOCK ? n - k : LC_SPANS_BLOCK;
        int problem = lc_batches_locate(pages, rows + k, count, positions, bad);
        *bad += k;
        if (problem) return problem;
        spans.n = count;
        if (pages->scale == 1) {
            taken = lc_spans_take(src, &spans, 0, count, pages->width, out + k * pages->width);
        } else {
            lc_bit_writer writer = lc_bit_writer_at(out, k);
            taken = lc_spans_take_bits(src, &spans, 0, count, &writer);
            lc_bit_writer_end(&writer);
        }
        *bad = k + taken;
        if (taken < count) return LC_SPANS_OUTSIDE;
    }
    if (pages->scale == 8 && (n & 7)) out[n >> 3] &= (uint8_t)lc_low_mask(n & 7);
    return LC_SPANS_OK;
}

#endif
