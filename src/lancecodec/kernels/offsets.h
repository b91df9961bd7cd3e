/* The 2.0 "end offsets with null adjustment" form: one u64 end per value; the adjustment is added to the end of a
 * null. */
#ifndef LANCECODEC_OFFSETS_H
#define LANCECODEC_OFFSETS_H

#include "bits.h"

/* Values per block: the results of one pass are in the first-level cache for the next. */
#define LC_BLOCK 1024

/* Errors of a decode or encode; 0 is success. */
enum {
    LC_OFFSETS_OK = 0,
    LC_OFFSETS_PAST_END = 1,
    LC_OFFSETS_DECREASE = 2,
    LC_OFFSETS_OVERFLOW = 3,
    LC_OFFSETS_ADJUSTMENT = 4
};

/* State of a decode. `limit` is below 2**63, so the difference of two valid ends has a clear top bit. */
typedef struct {
    uint64_t adjustment, limit;
    uint64_t first;    /* end of the value before the range, which becomes offset 0 */
    uint64_t previous; /* end of the last decoded value */
    int64_t nulls;
} lc_ends_state;

/* Store a block of ends, each loaded once, as offsets from `first`. The result is the OR of all differences: those that
 * are negative or do not fit the offsets leave a bit above them. */
LC_CLONES static inline uint64_t lc_ends_store32(const uint8_t *LC_RESTRICT ends, int64_t n, uint64_t first,
                                                 uint8_t *LC_RESTRICT out) {
    uint64_t seen = 0;
    for (int64_t i = 0; i < n; i++) {
        uint64_t above = lc_load_u64(ends + 8 * i) - first;
        seen |= above;
        lc_store_u32(out + 4 * i, (uint32_t)above);
    }
    return seen >> 31;
}

LC_CLONES static inline uint64_t lc_ends_store64(const uint8_t *LC_RESTRICT ends, int64_t n, uint64_t first,
                                                 uint8_t *LC_RESTRICT out) {
    uint64_t seen = 0;
    for (int64_t i = 0; i < n; i++) {
        uint64_t above = lc_load_u64(ends + 8 * i) - first;
        seen |= above;
        lc_store_u64(out + 8 * i, above);
    }
    return seen >> 63;
}

/* Whether any of n written offsets is below the one before it; there is one before the first. */
LC_CLONES static inline int lc_ends_descend(const uint8_t *out, int64_t n, int wide) {
    uint64_t down = 0;
    uint32_t down32 = 0;
    if (wide)
        for (int64_t i = 0; i < n; i++) down |= lc_load_u64(out + 8 * i) - lc_load_u64(out + 8 * i - 8);
    else
        for (int64_t i = 0; i < n; i++) down32 |= lc_load_u32(out + 4 * i) - lc_load_u32(out + 4 * i - 4);
    return (int)(down >> 63 | down32 >> 31);
}

/* Split a block of raw ends into plain ends and validity bytes; return the number of nulls. */
LC_CLONES static inline int64_t lc_ends_split(const uint8_t *LC_RESTRICT raw, int64_t n, uint64_t adjustment,
                                              uint8_t *LC_RESTRICT ends, uint8_t *LC_RESTRICT valid) {
    uint64_t nulls = 0;
    for (int64_t i = 0; i < n; i++) {
        uint64_t x = lc_load_u64(raw + 8 * i);
        uint64_t is_null = x >= adjustment;
        lc_store_u64(ends + 8 * i, x - (adjustment & (0 - is_null)));
        valid[i] = (uint8_t)(1 - is_null);
        nulls += is_null;
    }
    return (int64_t)nulls;
}

/* Determine the error of a failed block, for the message only. */
static inline int lc_ends_problem(const uint8_t *ends, int64_t n, const lc_ends_state *state) {
    uint64_t previous = state->previous;
    for (int64_t i = 0; i < n; i++)
        if (lc_load_u64(ends + 8 * i) > state->limit) return LC_OFFSETS_PAST_END;
    for (int64_t i = 0; i < n; previous = lc_load_u64(ends + 8 * i++))
        if (lc_load_u64(ends + 8 * i) < previous) return LC_OFFSETS_DECREASE;
    return LC_OFFSETS_OVERFLOW;
}

/* Write a block of offsets and check what was written. If they ascend, the last is the largest, so that one comparison
 * bounds them all; it gives the last end. */
LC_INLINE int lc_ends_good(const uint8_t *ends, int64_t n, int wide, lc_ends_state *state, uint8_t *out) {
    uint64_t seen = wide ? lc_ends_store64(ends, n, state->first, out) : lc_ends_store32(ends, n, state->first, out);
    LC_SETTLE(out);
    if (seen || lc_ends_descend(out, n, wide)) return 0;
    uint64_t last = (uint64_t)lc_load_offset(out, wide, n - 1);
    if (last > state->limit - state->first) return 0;
    state->previous = state->first + last;
    return 1;
}

/* Decode rows [start, stop) of a page of raw ends into stop - start + 1 offsets that begin at 0. `validity` has
 * ceil((stop - start) / 8) bytes; unused bits of the last one become 0. */
static inline int lc_offsets_decode(const uint8_t *raw, int64_t start, int64_t stop, int wide, uint8_t *out,
                                    uint8_t *validity, lc_ends_state *state) {
    uint8_t ends[8 * LC_BLOCK], valid[LC_BLOCK];
    int64_t entry = wide ? 8 : 4;
    int expect_nulls = 0;
    state->first = 0;
    state->nulls = 0;
    if (start > 0) {
        uint64_t x = lc_once_u64(raw + 8 * (start - 1));
        state->first = x >= state->adjustment ? x - state->adjustment : x;
        if (state->first > state->limit) return LC_OFFSETS_PAST_END;
    }
    state->previous = state->first;
    lc_store_offset(out, wide, 0, 0);
    for (int64_t row = start; row < stop; row += LC_BLOCK) {
        int64_t n = stop - row < LC_BLOCK ? stop - row : LC_BLOCK;
        int64_t at = row - start; /* a multiple of LC_BLOCK, so whole bytes of validity */
        uint8_t *target = out + entry * (at + 1);
        const uint8_t *block = raw + 8 * row;
        if (!expect_nulls && lc_ends_good(block, n, wide, state, target)) {
            memset(validity + (at >> 3), 0xFF, (size_t)(n >> 3));
            if (n & 7) validity[(at + n) >> 3] = (uint8_t)((1u << (n & 7)) - 1);
        } else {
            int64_t nulls = lc_ends_split(block, n, state->adjustment, ends, valid);
            if (!lc_ends_good(ends, n, wide, state, target)) return lc_ends_problem(ends, n, state);
            lc_bits_pack(valid, n, validity + (at >> 3));
            state->nulls += nulls;
            expect_nulls = nulls > 0;
        }
    }
    return LC_OFFSETS_OK;
}

/* Encode one block of Arrow offsets as raw ends; `origin` and `base` are combined in `shift`. The top bit is set if
 * they decrease. */
LC_CLONES static inline uint64_t lc_ends_make32(const uint8_t *LC_RESTRICT offsets, int64_t n, uint64_t shift,
                                                uint8_t *LC_RESTRICT out) {
    uint64_t down = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t low = (int32_t)lc_load_u32(offsets + 4 * i), high = (int32_t)lc_load_u32(offsets + 4 * i + 4);
        down |= (uint64_t)(high - low);
        lc_store_u64(out + 8 * i, (uint64_t)high + shift);
    }
    return down;
}

LC_CLONES static inline uint64_t lc_ends_make64(const uint8_t *LC_RESTRICT offsets, int64_t n, uint64_t shift,
                                                uint8_t *LC_RESTRICT out) {
    uint64_t down = 0;
    for (int64_t i = 0; i < n; i++) {
        uint64_t low = lc_load_u64(offsets + 8 * i), high = lc_load_u64(offsets + 8 * i + 8);
        down |= low | high | (high - low); /* a negative offset is an error like a decrease */
        lc_store_u64(out + 8 * i, high + shift);
    }
    return down;
}

LC_CLONES static inline void lc_ends_add_nulls(uint8_t *LC_RESTRICT ends, int64_t n, const uint8_t *LC_RESTRICT valid,
                                               uint64_t adjustment) {
    for (int64_t i = 0; i < n; i++)
        lc_store_u64(ends + 8 * i, lc_load_u64(ends + 8 * i) + (adjustment & ((uint64_t)valid[i] - 1)));
}

/* n > 0 Arrow offsets -> raw ends, relative to the first offset and shifted by base. validity may be NULL; its bit
 * `bit` belongs to value 0. */
static inline int lc_offsets_encode(const uint8_t *offsets, int wide, int64_t n, const uint8_t *validity, int64_t bit,
                                    uint64_t base, uint64_t adjustment, uint8_t *out) {
    uint8_t valid[LC_BLOCK];
    int64_t entry = wide ? 8 : 4;
    int64_t origin = lc_load_offset(offsets, wide, 0), end = lc_load_offset(offsets, wide, n);
    if (origin < 0 || end < origin) return LC_OFFSETS_DECREASE;
    if (base > (uint64_t)(INT64_MAX - (end - origin))) return LC_OFFSETS_OVERFLOW;
    uint64_t shift = base - (uint64_t)origin;
    if (validity && adjustment <= (uint64_t)end + shift) return LC_OFFSETS_ADJUSTMENT;
    for (int64_t row = 0; row < n; row += LC_BLOCK) {
        int64_t size = n - row < LC_BLOCK ? n - row : LC_BLOCK;
        uint64_t down = wide ? lc_ends_make64(offsets + entry * row, size, shift, out + 8 * row)
                             : lc_ends_make32(offsets + entry * row, size, shift, out + 8 * row);
        if (down >> 63) return LC_OFFSETS_DECREASE;
        if (validity) {
            lc_bits_unpack(validity, bit + row, size, valid);
            lc_ends_add_nulls(out + 8 * row, size, valid, adjustment);
        }
    }
    return LC_OFFSETS_OK;
}

#endif
