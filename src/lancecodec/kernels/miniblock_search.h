/* Search of the chunks of a mini-block page for values in some intervals, as they are unpacked.
 *
 * Every chunk is unpacked into the same scratch memory, which stays in the cache. The bounds of chunks that were unpacked
 * are kept, so that later searches decide most chunks of ordered values without looking at them. Bounds include what is
 * stored below nulls. Threads may search one page at the same time: bounds are written before they are marked as known, and
 * all threads write the same.
 *
 * Values may be indices of a dictionary. Then the test is one of indices, and one without an entry is an error unless it is
 * that of a null. A chunk is decided without a look at its indices only if they are known to have entries. */
#ifndef LANCECODEC_MINIBLOCK_SEARCH_H
#define LANCECODEC_MINIBLOCK_SEARCH_H

#include "intervals.h"
#include "levels_mask.h"
#include "membership.h"
#include "miniblock_fixed.h"
#include "miniblock_levels.h"

/* What is known of a chunk. */
enum lc_known { LC_KNOWN_KEYS = 1, LC_KNOWN_VALID = 2 };

typedef struct {
    uint64_t *low, *high;         /* least and greatest key of each chunk */
    uint64_t *low_top, *high_top; /* their more significant words, NULL if keys have at most 64 bits */
    uint8_t *known;               /* whether there are keys; whether no value is null */
} lc_chunk_ranges;

typedef struct {
    const lc_chunks *chunks;
    lc_value_codec codec; /* LC_VALUE_NONE: the test is the same for all values, which are not looked at */
    int64_t entries;      /* of the dictionary that values are indices of, -1: none */
    const uint8_t *marks; /* whether each entry is found, NULL: the test tells; else the test has more of them */
    lc_level_codec nulls; /* LC_LEVEL_NONE: no value is null */
    const lc_intervals *test;
    int null;             /* whether nulls are found */
    lc_chunk_ranges ranges;
    const uint8_t *kept;  /* bits of the values to look at, NULL for all; bit 0 is the first value of the search */
    uint8_t *values;      /* scratch: the values of the largest chunk */
    uint8_t *levels;      /* scratch: 2 bytes for each of them */
    uint64_t *inside, *valid; /* scratch: 1 bit for each of them, in whole words */
} lc_chunk_search;

#if defined(__GNUC__) || defined(__clang__)
LC_INLINE uint8_t lc_known_of(const uint8_t *p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }
LC_INLINE void lc_know(uint8_t *p, uint8_t what) { __atomic_store_n(p, (uint8_t)(*p | what), __ATOMIC_RELEASE); }
#else /* volatile accesses are ordered by this compiler */
LC_INLINE uint8_t lc_known_of(const uint8_t *p) { return *(const volatile uint8_t *)p; }
LC_INLINE void lc_know(uint8_t *p, uint8_t what) { *(volatile uint8_t *)p = (uint8_t)(*p | what); }
#endif

LC_INLINE lc_wide_key lc_range_low(const lc_chunk_ranges *ranges, int64_t i) {
    return (lc_wide_key){ranges->low[i], ranges->low_top ? ranges->low_top[i] : 0};
}

LC_INLINE lc_wide_key lc_range_high(const lc_chunk_ranges *ranges, int64_t i) {
    return (lc_wide_key){ranges->high[i], ranges->high_top ? ranges->high_top[i] : 0};
}

LC_INLINE void lc_range_set(const lc_chunk_ranges *ranges, int64_t i, lc_wide_key low, lc_wide_key high) {
    ranges->low[i] = low.word, ranges->high[i] = high.word;
    if (ranges->low_top) ranges->low_top[i] = low.top, ranges->high_top[i] = high.top;
    lc_know(ranges->known + i, LC_KNOWN_KEYS);
}

/* Whether one of n bits from bit `at` on is set. */
LC_INLINE int lc_bits_any(const uint8_t *bits, int64_t at, int64_t n) {
    for (; n && (at & 7); at++, n--)
        if (lc_get_bit(bits, at)) return 1;
    const uint8_t *p = bits + (at >> 3);
    for (; n >= 64; n -= 64, p += 8)
        if (lc_load_u64(p)) return 1;
    for (int64_t i = 0; i < n; i++)
        if (lc_get_bit(p, i)) return 1;
    return 0;
}

/* Whether indices up to `high` have entries. */
LC_INLINE int lc_search_has(const lc_chunk_search *s, uint64_t high) {
    return s->entries < 0 || high < (uint64_t)s->entries;
}

LC_INLINE int lc_search_verdict(const lc_chunk_search *s, lc_wide_key low, lc_wide_key high) {
    int verdict = lc_intervals_verdict(s->test, low, high);
    return s->marks && verdict == LC_ALL_INSIDE ? LC_SOME_INSIDE : verdict;
}

/* Decide a chunk by the width of its packed values. */
LC_INLINE int lc_search_width(const lc_chunk_search *s, const lc_chunk *chunk, int64_t n, int *verdict) {
    int width, bits = (int)s->codec.bits, order = (int)s->test->order;
    const lc_bytes *packed = chunk->values + s->codec.buffer;
    int problem = lc_inline_width(packed->data, packed->size, n, bits, &width);
    if (!problem && (width < bits || order == LC_KEY_UNSIGNED) && lc_search_has(s, lc_low_mask(width)))
        *verdict = lc_search_verdict(s, lc_narrow_key(lc_key(0, bits, order)),
                                     lc_narrow_key(lc_key(lc_low_mask(width), bits, order)));
    return problem;
}

/* Bits of n indices whose entry is marked, into s->inside. Indices in scratch memory, unlike those in a mapped file, are
 * certain to stay as they were checked. */
LC_INLINE void lc_search_marks(const lc_chunk_search *s, const uint8_t *values, int64_t n) {
    int64_t width = s->codec.bits >> 3;
    uint8_t *out = (uint8_t *)s->inside;
    int checked = s->codec.kind != LC_VALUE_FLAT && n && lc_codes_max(values, width, n) < (uint64_t)s->entries;
    if (checked) lc_marked_known(values, width, n, s->marks, out);
    else lc_marked(values, width, n, s->marks, s->entries, out);
}

/* Bits of values [low, high) of chunk i that are found, into s->inside. *unknown: these values if they are indices of which
 * one has no entry. */
LC_INLINE int lc_search_values(const lc_chunk_search *s, int64_t i, const lc_chunk_walk *walk, int *verdict,
                               const uint8_t **unknown) {
    const uint8_t *values;
    int64_t width = s->codec.bits >> 3, n = walk->high - walk->low;
    int problem = s->codec.kind == LC_VALUE_INLINE ? lc_search_width(s, &walk->open, walk->values, verdict) : LC_OK;
    if (problem || *verdict != LC_SOME_INSIDE) return problem;
    if ((problem = lc_value_view(&s->codec, walk, s->values, &values))) return problem;
    if (s->marks) lc_search_marks(s, values, n);
    else lc_inside(values, n, s->test, s->inside);
    if (!(lc_known_of(s->ranges.known + i) & LC_KNOWN_KEYS)) {
        lc_wide_key low, high;
        lc_key_range(values - walk->low * width, walk->values, s->test, &low, &high);
        lc_range_set(&s->ranges, i, low, high);
    }
    if (!lc_search_has(s, s->ranges.high[i])) *unknown = values;
    return LC_OK;
}

/* Bits of values [low, high) of chunk i that are not null, into s->valid. *nulls: whether there may be any null. */
LC_INLINE int lc_search_nulls(const lc_chunk_search *s, int64_t i, const lc_chunk_walk *walk, int *nulls) {
    uint8_t last[128];
    int64_t n = walk->high - walk->low;
    *nulls = 0;
    if (s->nulls.kind == LC_LEVEL_NONE || (lc_known_of(s->ranges.known + i) & LC_KNOWN_VALID)) return LC_OK;
    if (walk->open.levels != walk->values) return LC_BAD_COUNT;
    int problem = lc_levels_stream(&s->nulls, walk->open.definition, walk->values, s->levels);
    if (problem) return problem;
    if (lc_levels_up_to(s->levels, walk->values, 0) == walk->values) {
        lc_know(s->ranges.known + i, LC_KNOWN_VALID);
        return LC_OK;
    }
    *nulls = 1;
    for (int64_t k = 0; k < n; k += 64) {
        int64_t live = n - k < 64 ? n - k : 64;
        s->valid[k / 64] = lc_mask_le(lc_levels_block(s->levels + 2 * walk->low, k, live, last), 0) & lc_low_mask(live);
    }
    return LC_OK;
}

/* Append the bits of the open chunk: all of one kind, or s->inside, without the nulls or with them. */
LC_INLINE void lc_search_write(const lc_chunk_search *s, int64_t n, int verdict, int nulls, lc_bit_writer *writer) {
    uint64_t same = verdict == LC_ALL_INSIDE ? ~0ULL : 0;
    for (int64_t k = 0; k < n; k += 64) {
        int64_t live = n - k < 64 ? n - k : 64;
        uint64_t word = verdict == LC_SOME_INSIDE ? s->inside[k / 64] : same;
        if (nulls) word = s->null ? word | ~s->valid[k / 64] : word & s->valid[k / 64];
        lc_bit_writer_add(writer, word & lc_low_mask(live), live);
    }
}

/* Look into chunk i where that is necessary. */
LC_INLINE int lc_search_look(const lc_chunk_search *s, int64_t i, lc_chunk_walk *walk, int may_be_null, int *verdict,
                             int *nulls) {
    const uint8_t *unknown = NULL;
    int plain = s->codec.kind == LC_VALUE_NONE;
    int problem = plain ? lc_chunk_parts(s->chunks, i, &walk->open) : lc_chunk_open(s->chunks, i, &walk->open);
    if (!problem && *verdict == LC_SOME_INSIDE) problem = lc_search_values(s, i, walk, verdict, &unknown);
    if (!problem && may_be_null) problem = lc_search_nulls(s, i, walk, nulls);
    if (problem || unknown == NULL) return problem;
    const uint8_t *valid = *nulls ? (const uint8_t *)s->valid : NULL;
    int64_t n = walk->high - walk->low, width = s->codec.bits >> 3;
    return lc_codes_find_bad(unknown, width, n, (uint64_t)s->entries, valid, 0) < 0 ? LC_OK : LC_BAD_INDEX;
}

/* Search values [low, high) of chunk walk->chunk, which is not open yet. `at`: bit of the first of them in `kept`. */
LC_INLINE int lc_search_chunk(const lc_chunk_search *s, lc_chunk_walk *walk, int64_t at, lc_bit_writer *writer) {
    int64_t i = walk->chunk, n = walk->high - walk->low;
    int verdict = LC_SOME_INSIDE, nulls = 0, problem;
    uint8_t known = lc_known_of(s->ranges.known + i);
    int may_be_null = s->nulls.kind != LC_LEVEL_NONE && !(known & LC_KNOWN_VALID);
    if (s->kept && !lc_bits_any(s->kept, at, n)) verdict = LC_NONE_INSIDE, may_be_null = 0;
    else if (s->codec.kind == LC_VALUE_NONE)
        verdict = lc_search_verdict(s, lc_narrow_key(0), lc_narrow_key(lc_low_mask(s->test->bits)));
    else if ((known & LC_KNOWN_KEYS) && lc_search_has(s, s->ranges.high[i]))
        verdict = lc_search_verdict(s, lc_range_low(&s->ranges, i), lc_range_high(&s->ranges, i));
    if (verdict == LC_NONE_INSIDE && !s->null) may_be_null = 0;
    if (verdict == LC_SOME_INSIDE || may_be_null) {
        problem = lc_search_look(s, i, walk, may_be_null, &verdict, &nulls);
        if (problem) return problem;
    }
    lc_search_write(s, n, verdict, nulls, writer);
    return LC_OK;
}

/* Set bit k of `out` if value a + k of the page is found, for a + k < b. With `kept`, values that are not kept have any
 * bit. `where`: the damaged chunk. */
static int lc_chunks_search(const lc_chunk_search *s, int64_t a, int64_t b, uint8_t *out, int64_t *where) {
    const int64_t *firsts = s->chunks->table.firsts;
    lc_bit_writer writer = lc_bit_writer_at(out, 0);
    lc_chunk_walk walk = lc_chunk_walk_over(s->chunks, a, b);
    while (walk.at < walk.stop) {
        int64_t first = firsts[++walk.chunk], end = firsts[walk.chunk + 1], at = walk.at - a;
        walk.values = end - first;
        walk.low = walk.at - first;
        walk.high = (end < b ? end : b) - first;
        walk.at = first + walk.high;
        *where = walk.chunk;
        int problem = lc_search_chunk(s, &walk, at, &writer);
        if (problem) return problem;
    }
    lc_bit_writer_end(&writer);
    return LC_OK;
}

#endif
