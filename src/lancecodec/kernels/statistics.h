/* Statistics of fixed-width values for the choice of an encoding, in one pass.
 *
 * Values are processed in pieces of 128. Loops over a piece have no branches: they count changes and OR the bits.
 * Statistics of runs follow from these counts, because a run of 256 and more values includes a piece without
 * changes. */
#ifndef LANCECODEC_STATISTICS_H
#define LANCECODEC_STATISTICS_H

#include "chunk.h"

#define LC_STAT_PIECE 128
#define LC_STAT_GROUP 1024 /* values with one bit width */
#define LC_STAT_BATCH 4096 /* values that are read twice while they are in the cache */
#define LC_STAT_LONGEST 255 /* values in one entry of RLE */

enum { LC_UNSIGNED = 'u', LC_SIGNED = 'i', LC_FLOAT = 'f' };

typedef struct {
    int64_t runs;         /* of equal values */
    int64_t cut_runs;     /* the same with runs cut every so many values */
    int64_t rle_entries;  /* of up to 255 values, for the cut runs */
    int64_t inline_bytes; /* inline bit packing: header and 128 * width bytes for each 1024 values */
    int64_t bits;         /* widest of the groups */
    int64_t nulls, nans;
    int64_t first_valid;  /* -1: all are null */
    uint64_t differ;      /* bits in which valid values differ */
    uint64_t low, high;   /* extremes of valid values except NaN, as bits; none if low_key > high_key */
    uint64_t low_key, high_key;
} lc_statistics;

/* The values, and the statistics to compute. */
typedef struct {
    const uint8_t *data;
    int64_t n, width, kind;
    const uint8_t *validity;
    int64_t bit;
    int64_t cut;     /* 0: runs are not cut; else a multiple of LC_STAT_PIECE */
    uint8_t *widths; /* bit width of each group, or NULL */
} lc_stat_values;

LC_INLINE uint64_t lc_stat_load(const lc_stat_values *v, int64_t i) {
    const uint8_t *p = v->data + i * v->width;
    return v->width == 1 ? *p : v->width == 2 ? lc_load_u16(p) : v->width == 4 ? lc_load_u32(p) : lc_load_u64(p);
}

/* NAME, type, signed type, exponent bits of a float of that size (bytes are not floats: 0x7F finds no NaN). */
#define LC_DEFINE_STATISTICS(NAME, T, S, INFINITE)                                                                    \
    LC_INLINE int64_t lc_stat_piece_##NAME(const uint8_t *p, int64_t from, int64_t n, uint64_t *bits) {               \
        T changes = 0, any = 0;                                                                                       \
        for (int64_t i = from; i < n; i++) {                                                                          \
            T v = lc_load_##NAME(p + i * (int64_t)sizeof(T));                                                         \
            any |= v;                                                                                                 \
            changes += (T)(v != lc_load_##NAME(p + (i - 1) * (int64_t)sizeof(T)));                                    \
        }                                                                                                             \
        *bits = any;                                                                                                  \
        return changes;                                                                                               \
    }                                                                                                                 \
    /* Changes and OR of each piece of n values; `first`: there is no previous value. */                           \
    LC_CLONES static void lc_stat_pieces_##NAME(const uint8_t *LC_RESTRICT p, int64_t n, int first,                   \
                                                int64_t *LC_RESTRICT changes, uint64_t *LC_RESTRICT bits) {           \
        int64_t k = 0, whole = n / LC_STAT_PIECE;                                                                     \
        if (first) {                                                                                                  \
            *changes = lc_stat_piece_##NAME(p, 1, n < LC_STAT_PIECE ? n : LC_STAT_PIECE, bits);                       \
            *bits |= lc_load_##NAME(p);                                                                               \
            k = 1;                                                                                                    \
        }                                                                                                             \
        for (; k < whole; k++)                                                                                        \
            changes[k] = lc_stat_piece_##NAME(p + k * LC_STAT_PIECE * (int64_t)sizeof(T), 0, LC_STAT_PIECE, bits + k);\
        if (k * LC_STAT_PIECE < n)                                                                                    \
            changes[k] = lc_stat_piece_##NAME(p + k * LC_STAT_PIECE * (int64_t)sizeof(T), 0, n - k * LC_STAT_PIECE,   \
                                              bits + k);                                                              \
    }                                                                                                                 \
    /* Extremes of integers, put in unsigned order by `flip`, and differences from `instance`. */                \
    LC_CLONES static void lc_stat_integers_##NAME(const uint8_t *p, int64_t n, uint64_t flip, uint64_t instance,      \
                                                  lc_statistics *s) {                                                 \
        T low = (T)s->low_key, high = (T)s->high_key, differ = 0, same = (T)instance, sign = (T)flip;                 \
        for (int64_t i = 0; i < n; i++) {                                                                             \
            T v = lc_load_##NAME(p + i * (int64_t)sizeof(T)), key = v ^ sign;                                         \
            low = key < low ? key : low;                                                                              \
            high = key > high ? key : high;                                                                           \
            differ |= v ^ same;                                                                                       \
        }                                                                                                             \
        s->low_key = low, s->high_key = high, s->differ |= differ;                                                    \
    }                                                                                                                 \
    /* Extremes of floats, ordered by inverting all bits of negative ones and the sign of others. */  \
    LC_CLONES static void lc_stat_floats_##NAME(const uint8_t *p, int64_t n, uint64_t instance, lc_statistics *s) {   \
        T low = (T)s->low_key, high = (T)s->high_key, differ = 0, same = (T)instance, nans = 0;                       \
        const T sign = (T)((T)1 << (8 * sizeof(T) - 1));                                                              \
        for (int64_t i = 0; i < n; i++) {                                                                             \
            T v = lc_load_##NAME(p + i * (int64_t)sizeof(T));                                                         \
            T nan = (T)((T)(v & (T)~sign) > (T)(INFINITE)), hide = (T)(0 - nan);                                      \
            T key = v ^ (T)((T)((S)v >> (8 * sizeof(T) - 1)) | sign);                                                 \
            T lower = key | hide, higher = key & (T)~hide;                                                            \
            low = lower < low ? lower : low;                                                                          \
            high = higher > high ? higher : high;                                                                     \
            nans += nan;                                                                                              \
            differ |= v ^ same;                                                                                       \
        }                                                                                                             \
        s->low_key = low, s->high_key = high, s->differ |= differ, s->nans += nans;                                   \
    }                                                                                                                 \
    /* Copy values, with `instance` instead of nulls. */                                                               \
    LC_CLONES static void lc_stat_replace_##NAME(const uint8_t *LC_RESTRICT p, const uint8_t *LC_RESTRICT validity,   \
                                                 int64_t bit, int64_t n, uint64_t instance,                           \
                                                 uint8_t *LC_RESTRICT out) {                                          \
        for (int64_t i = 0; i < n; i++) {                                                                             \
            T keep = (T)(0 - (T)lc_get_bit(validity, bit + i)), v = lc_load_##NAME(p + i * (int64_t)sizeof(T));       \
            lc_store_##NAME(out + i * (int64_t)sizeof(T), (T)((v & keep) | ((T)instance & (T)~keep)));                \
        }                                                                                                             \
    }

LC_DEFINE_STATISTICS(u8, uint8_t, int8_t, 0x7F)
LC_DEFINE_STATISTICS(u16, uint16_t, int16_t, 0x7C00)
LC_DEFINE_STATISTICS(u32, uint32_t, int32_t, 0x7F800000U)
LC_DEFINE_STATISTICS(u64, uint64_t, int64_t, 0x7FF0000000000000ULL)

#define LC_STAT_CALL(width, FUNCTION, ...)                   \
    switch (width) {                                         \
        case 1: FUNCTION##_u8(__VA_ARGS__); break;           \
        case 2: FUNCTION##_u16(__VA_ARGS__); break;          \
        case 4: FUNCTION##_u32(__VA_ARGS__); break;          \
        default: FUNCTION##_u64(__VA_ARGS__);                \
    }

LC_INLINE int lc_bit_width(uint64_t v) {
#if defined(__GNUC__) || defined(__clang__)
    return v ? 64 - __builtin_clzll(v) : 0;
#else
    int n = 0;
    for (; v; v >>= 1) n++;
    return n;
#endif
}

/* Runs so far, and the begin of the run of the last piece without changes, or -1. */
typedef struct {
    int64_t long_start;
    int64_t extra; /* entries of long runs in addition to one each */
} lc_run_state;

static void lc_runs_close(lc_run_state *state, int64_t end) {
    if (state->long_start >= 0) state->extra += (end - state->long_start - 1) / LC_STAT_LONGEST;
    state->long_start = -1;
}

/* Process one piece: values [start, stop), `changes` of which differ from the previous one. */
static void lc_runs_piece(const lc_stat_values *v, lc_run_state *state, lc_statistics *s, int64_t start, int64_t stop,
                          int64_t changes) {
    int64_t from = start;
    s->runs += changes;
    if (v->cut && start && start % v->cut == 0) {
        int changed = lc_stat_load(v, start) != lc_stat_load(v, start - 1);
        lc_runs_close(state, start);
        s->cut_runs++;
        changes -= changed;
        from = start + 1;
    }
    s->cut_runs += changes;
    if (changes == 0 && state->long_start < 0) {
        int64_t begin = start;
        if (from == start)
            while (begin > 0 && (!v->cut || begin % v->cut) && lc_stat_load(v, begin) == lc_stat_load(v, begin - 1))
                begin--;
        state->long_start = begin;
    } else if (changes && state->long_start >= 0) {
        while (from < stop && lc_stat_load(v, from) == lc_stat_load(v, from - 1)) from++;
        lc_runs_close(state, from);
    }
}

/* Process a batch of values, from a multiple of the batch size on: widths and runs. */
static void lc_stat_physical(const lc_stat_values *v, int64_t at, int64_t n, lc_run_state *state, lc_statistics *s) {
    int64_t changes[LC_STAT_BATCH / LC_STAT_PIECE];
    uint64_t bits[LC_STAT_BATCH / LC_STAT_PIECE], group = 0;
    LC_STAT_CALL(v->width, lc_stat_pieces, v->data + at * v->width, n, at == 0, changes, bits)
    for (int64_t k = 0; k * LC_STAT_PIECE < n; k++) {
        int64_t start = k * LC_STAT_PIECE, stop = n - start < LC_STAT_PIECE ? n : start + LC_STAT_PIECE;
        lc_runs_piece(v, state, s, at + start, at + stop, changes[k]);
        group |= bits[k];
        if (stop % LC_STAT_GROUP && stop < n) continue;
        int width = lc_bit_width(group);
        s->inline_bytes += v->width + LC_STAT_GROUP / 8 * (int64_t)width;
        s->bits = width > s->bits ? width : s->bits;
        if (v->widths) v->widths[(at + start) / LC_STAT_GROUP] = (uint8_t)width;
        group = 0;
    }
}

/* The same batch: minimum, maximum and differences of valid values; nulls get the first valid value. */
static void lc_stat_logical(const lc_stat_values *v, int64_t at, int64_t n, uint64_t instance, uint8_t *scratch,
                            lc_statistics *s) {
    const uint8_t *p = v->data + at * v->width;
    if (v->validity) {
        LC_STAT_CALL(v->width, lc_stat_replace, p, v->validity, v->bit + at, n, instance, scratch)
        p = scratch;
    }
    if (v->kind == LC_FLOAT) {
        LC_STAT_CALL(v->width, lc_stat_floats, p, n, instance, s)
    } else {
        uint64_t flip = v->kind == LC_SIGNED ? (uint64_t)1 << (8 * v->width - 1) : 0;
        LC_STAT_CALL(v->width, lc_stat_integers, p, n, flip, instance, s)
    }
}

/* Bit pattern of a key of lc_stat_integers or lc_stat_floats. */
static uint64_t lc_stat_value(const lc_stat_values *v, uint64_t key) {
    uint64_t sign = (uint64_t)1 << (8 * v->width - 1), all = sign | (sign - 1);
    if (v->kind == LC_SIGNED) return key ^ sign;
    if (v->kind == LC_FLOAT) return key & sign ? key ^ sign : key ^ all;
    return key;
}

static int lc_stat_is_nan(const lc_stat_values *v, uint64_t bits) {
    static const uint64_t infinite[9] = {0, 0x7F, 0x7C00, 0, 0x7F800000, 0, 0, 0, 0x7FF0000000000000ULL};
    uint64_t sign = (uint64_t)1 << (8 * v->width - 1);
    return v->kind == LC_FLOAT && (bits & ~sign) > infinite[v->width];
}

static int64_t lc_stat_first_valid(const lc_stat_values *v) {
    for (int64_t i = 0; i < v->n; i++)
        if (!v->validity || lc_get_bit(v->validity, v->bit + i)) return i;
    return -1;
}

/* Compute all statistics. s->nulls has been counted by the caller. */
static void lc_statistics_fixed(const lc_stat_values *v, lc_statistics *s) {
    uint8_t scratch[8 * LC_STAT_BATCH];
    lc_run_state state = {-1, 0};
    uint64_t instance = 0;
    s->first_valid = lc_stat_first_valid(v);
    s->low_key = UINT64_MAX;
    s->runs = s->cut_runs = v->n > 0;
    if (s->first_valid >= 0) instance = lc_stat_load(v, s->first_valid);
    for (int64_t at = 0; at < v->n; at += LC_STAT_BATCH) {
        int64_t n = v->n - at < LC_STAT_BATCH ? v->n - at : LC_STAT_BATCH;
        lc_stat_physical(v, at, n, &state, s);
        if (s->first_valid >= 0) lc_stat_logical(v, at, n, instance, scratch, s);
    }
    lc_runs_close(&state, v->n);
    s->rle_entries = s->cut_runs + state.extra;
    if (lc_stat_is_nan(v, instance)) s->nans -= s->nulls;
    s->low = lc_stat_value(v, s->low_key), s->high = lc_stat_value(v, s->high_key);
}

#endif
