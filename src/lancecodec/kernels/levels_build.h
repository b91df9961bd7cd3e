/* Validity bitmaps and list offsets of nested Arrow data -> repetition and definition levels, outer-most layer first.
 *
 * While building, definition entries hold marks: 0 = there, otherwise numbers given to nulls and empties in the order
 * they are met, from 1 on. Marks run inwards and levels outwards, so a last pass turns mark m of n into n + 1 - m.
 * The slots of a layer are the entries that its Arrow array has one value for, in array order; a slot below a null
 * struct is still one. They lie in ascending ranges of the array. Entries are the slots and, between them, what stands
 * for lists without elements. */
#ifndef LANCECODEC_LEVELS_BUILD_H
#define LANCECODEC_LEVELS_BUILD_H

#include "bits.h"
#include "chunk.h"
#include "levels_mask.h"

typedef struct {
    int64_t start, count;
} lc_slot_range;

/* Nulls of an item layer, those below other nulls too. The caller has checked that the bitmap holds the ranges. */
LC_CLONES static inline int64_t lc_slots_nulls(const lc_slot_range *ranges, int64_t num_ranges, const uint8_t *bits,
                                               int64_t bit) {
    int64_t nulls = 0;
    for (int64_t r = 0; r < num_ranges; r++) {
        int64_t at = bit + ranges[r].start, count = ranges[r].count;
        nulls += count;
        if (count >= 64) nulls -= lc_bits_count(bits, at, count);
        else
            for (int64_t i = 0; i < count; i++) nulls -= lc_get_bit(bits, at + i);
    }
    return nulls;
}

/* Process eight slots: `bits` are their validity, and nulls without a mark get `mark`. */
LC_INLINE void lc_marks_octet(const uint8_t *marks, int has_marks, unsigned bits, uint16_t mark, uint8_t *out) {
    for (int64_t j = 0; j < 8; j++) {
        uint16_t mine = (uint16_t)(bits & (1u << j) ? 0 : mark);
        uint16_t old = has_marks ? lc_level(marks, j) : 0;
        lc_store_u16(out + 2 * j, old ? old : mine);
    }
}

/* `marks` of no slots is NULL, to which nothing must be added. */
LC_INLINE void lc_marks_nulls_body(const uint8_t *marks, int has_marks, const uint8_t *bits, int64_t bit, int64_t n,
                                   uint16_t mark, uint8_t *out) {
    const uint8_t *p = bits + (bit >> 3);
    int shift = (int)(bit & 7);
    int64_t i = 0;
    if (shift == 0) {
        for (; i + 8 <= n; i += 8) lc_marks_octet(has_marks ? marks + 2 * i : NULL, has_marks, *p++, mark, out + 2 * i);
    } else {
        for (; i + 8 <= n; i += 8, p++) {
            unsigned eight = ((unsigned)p[0] >> shift | (unsigned)p[1] << (8 - shift)) & 0xFF;
            lc_marks_octet(has_marks ? marks + 2 * i : NULL, has_marks, eight, mark, out + 2 * i);
        }
    }
    for (; i < n; i++) {
        uint16_t old = has_marks ? lc_level(marks, i) : 0;
        uint16_t mine = lc_get_bit(bits, bit + i) ? 0 : mark;
        lc_store_u16(out + 2 * i, old ? old : mine);
    }
}

/* Mark the nulls of an item layer. The caller has checked that the bitmap holds the ranges. */
LC_CLONES static inline void lc_marks_first_nulls(const lc_slot_range *ranges, int64_t num_ranges, const uint8_t *bits,
                                                  int64_t bit, uint16_t mark, uint8_t *marks) {
    for (int64_t r = 0; r < num_ranges; r++) {
        lc_marks_nulls_body(NULL, 0, bits, bit + ranges[r].start, ranges[r].count, mark, marks);
        marks += 2 * ranges[r].count;
    }
}

/* The same if some slots have marks already, which are kept. */
LC_CLONES static inline void lc_marks_more_nulls(const lc_slot_range *ranges, int64_t num_ranges, const uint8_t *bits,
                                                 int64_t bit, uint16_t mark, uint8_t *marks) {
    for (int64_t r = 0; r < num_ranges; r++) {
        lc_marks_nulls_body(marks, 1, bits, bit + ranges[r].start, ranges[r].count, mark, marks);
        marks += 2 * ranges[r].count;
    }
}

static inline int64_t lc_marks_count(const uint8_t *marks, int64_t n, uint16_t mark) {
    return lc_levels_count_between(marks, n, mark, mark);
}

LC_CLONES static inline void lc_marks_replace(uint8_t *marks, int64_t n, uint16_t mark, uint16_t by) {
    for (int64_t i = 0; i < n; i++) {
        uint16_t old = lc_level(marks, i);
        lc_store_u16(marks + 2 * i, old == mark ? by : old);
    }
}

LC_CLONES static inline void lc_marks_to_levels(uint8_t *marks, int64_t n, uint16_t num_marks) {
    for (int64_t i = 0; i < n; i++) {
        uint16_t mark = lc_level(marks, i);
        lc_store_u16(marks + 2 * i, mark ? (uint16_t)(num_marks + 1 - mark) : 0);
    }
}

/* Repeat each mark `dimension` times (structural fixed-size lists). */
static inline void lc_marks_repeat(const uint8_t *marks, int64_t n, int64_t dimension, uint8_t *out) {
    for (int64_t i = 0; i < n; i++) {
        uint16_t mark = lc_level(marks, i);
        for (int64_t k = 0; k < dimension; k++, out += 2) lc_store_u16(out, mark);
    }
}

/* A list layer in the form of its Arrow array; entry 0 of offsets and bitmap belongs to array slot 0. */
typedef struct {
    const uint8_t *offsets, *validity; /* validity NULL: no nulls */
    int64_t validity_bit;
    uint16_t empty, null; /* the marks to assign */
} lc_list_layer;

/* Result of a pass over the lists; only lists with elements count. */
typedef struct {
    int64_t lists, elements;
    int64_t ranges, last; /* ranges of the elements, joined where they touch, and the end of the last */
} lc_lists_found;

/* No branches, because nulls and empties are in random order. */
LC_INLINE int lc_lists_scan_body(lc_list_layer layer, int wide, int has_validity, int has_marks,
                                 const lc_slot_range *ranges, int64_t num_ranges, uint8_t *marks, uint32_t *lengths,
                                 lc_lists_found *found) {
    int64_t lists = 0, joined = 0, last = -1, wrong = 0, end = 0;
    uint64_t elements = 0;
    for (int64_t r = 0; r < num_ranges; r++) {
        const int64_t slot = ranges[r].start, count = ranges[r].count, before = end;
        end = lc_load_offset(layer.offsets, wide, slot);
        wrong |= end < before;
        for (int64_t i = 0; i < count; i++) {
            int64_t start = end;
            end = lc_load_offset(layer.offsets, wide, slot + i + 1);
            uint64_t length = (uint64_t)end - (uint64_t)start;
            int64_t valid = has_validity ? lc_get_bit(layer.validity, layer.validity_bit + slot + i) : 1;
            int64_t old = has_marks ? lc_level(marks, i) : 0;
            int64_t open = old == 0, some = length != 0, used = open & valid & some;
            wrong |= (end < start) | (length > UINT32_MAX);
            old |= (-(open & (valid ^ 1)) & layer.null) | (-(open & valid & (some ^ 1)) & layer.empty);
            lc_store_u16(marks + 2 * i, (uint16_t)old);
            lengths[lists] = (uint32_t)length;
            lists += used;
            elements += (uint64_t)-used & length;
            joined += used & (start != last);
            last ^= (last ^ end) & -used;
        }
        marks += 2 * count;
    }
    found->lists = lists, found->elements = (int64_t)elements, found->ranges = joined, found->last = last;
    return wrong ? LC_BAD_OFFSETS : elements > UINT32_MAX ? LC_BAD_COUNT : LC_OK;
}

#define LC_LISTS_SCAN(NAME, WIDE, VALIDITY, MARKS)                                                                 \
    LC_CLONES static inline int NAME(lc_list_layer layer, const lc_slot_range *ranges, int64_t num_ranges,         \
                                     uint8_t *marks, uint32_t *lengths, lc_lists_found *found) {                   \
        return lc_lists_scan_body(layer, WIDE, VALIDITY, MARKS, ranges, num_ranges, marks, lengths, found);        \
    }
LC_LISTS_SCAN(lc_lists_scan_all, 0, 0, 0)
LC_LISTS_SCAN(lc_lists_scan_nulls, 0, 1, 0)
LC_LISTS_SCAN(lc_lists_scan_masked, 0, layer.validity != NULL, 1)
LC_LISTS_SCAN(lc_lists_scan_wide, 1, layer.validity != NULL, 0)
LC_LISTS_SCAN(lc_lists_scan_wide_masked, 1, layer.validity != NULL, 1)

/* Mark null and empty lists, and collect the lengths of the others. `lengths` has room for one more than the slots.
 * `fresh`: `marks` has no content yet. The caller has checked that offsets and bitmap hold the ranges. */
static inline int lc_lists_scan(lc_list_layer layer, int wide, const lc_slot_range *ranges, int64_t num_ranges,
                                int fresh, uint8_t *marks, uint32_t *lengths, lc_lists_found *found) {
    if (wide && fresh) return lc_lists_scan_wide(layer, ranges, num_ranges, marks, lengths, found);
    if (wide) return lc_lists_scan_wide_masked(layer, ranges, num_ranges, marks, lengths, found);
    if (!fresh) return lc_lists_scan_masked(layer, ranges, num_ranges, marks, lengths, found);
    if (layer.validity) return lc_lists_scan_nulls(layer, ranges, num_ranges, marks, lengths, found);
    return lc_lists_scan_all(layer, ranges, num_ranges, marks, lengths, found);
}

/* Element ranges of the lists with elements (those without a mark; `marks` may be NULL), joined where they touch. `out`
 * has room for two more than there are, and they begin at out[1]. */
LC_CLONES static inline void lc_lists_ranges(const uint8_t *offsets, int wide, const lc_slot_range *ranges,
                                             int64_t num_ranges, const uint8_t *marks, lc_slot_range *out) {
    int64_t last = -1, first = 0;
    for (int64_t r = 0; r < num_ranges; r++) {
        int64_t end = lc_load_offset(offsets, wide, ranges[r].start);
        for (int64_t i = 0; i < ranges[r].count; i++) {
            int64_t start = end, used = marks == NULL || lc_level(marks, i) == 0;
            end = lc_load_offset(offsets, wide, ranges[r].start + i + 1);
            int64_t begins = used & (start != last);
            out += begins;
            first ^= (first ^ start) & -begins;
            last ^= (last ^ end) & -used;
            out->start = first;
            out->count = last - first;
        }
        if (marks) marks += 2 * ranges[r].count;
    }
}

/* Entries of the layers above, to be replaced by the entries of the elements of their lists. */
typedef struct {
    const uint8_t *rep, *marks; /* NULL: zeros */
    int64_t n;
    const uint32_t *lengths; /* of the entries without a mark, and one more readable entry (any content) */
    int64_t factor;          /* entries per element */
} lc_parents;

/* `wanted` marks of children, of which `left` remain; `room` entries of the output remain. */
LC_INLINE void lc_marks_copy(const uint8_t *children, int64_t left, int64_t wanted, uint16_t mark, uint8_t *out,
                             int64_t room) {
    if (left >= 8 && room >= 8) {
        memcpy(out, children, 16); /* the excess is overwritten later */
        if (wanted > 8) memcpy(out + 16, children + 16, (size_t)(2 * (wanted - 8)));
        lc_store_u16(out, (uint16_t)((lc_level(children, 0) & -(int)(mark == 0)) | mark));
    } else if (wanted) {
        memcpy(out, children, (size_t)(2 * wanted));
    } else {
        lc_store_u16(out, mark);
    }
}

/* A parent without a mark becomes length * factor entries with the next of the `children` marks; one with a mark stays
 * one entry. The first entry of each has the parent's repetition level plus one. `n` entries come out. */
LC_INLINE void lc_parents_expand_body(lc_parents parents, int has_rep, int has_marks, const uint8_t *children,
                                      int has_children, int64_t num_children, uint8_t *rep, uint8_t *marks, int64_t n) {
    int64_t child = 0, at = 0;
    const uint32_t *lengths = parents.lengths;
    for (int64_t i = 0; i < parents.n; i++) {
        uint16_t mark = has_marks ? lc_level(parents.marks, i) : 0;
        int64_t open = mark == 0, wanted = -open & ((int64_t)*lengths * parents.factor);
        lc_store_u16(rep + 2 * at, (uint16_t)(has_rep ? lc_level(parents.rep, i) + 1 : 1));
        if (has_children)
            lc_marks_copy(children + 2 * child, num_children - child, wanted, mark, marks + 2 * at, n - at);
        else if (has_marks) lc_store_u16(marks + 2 * at, mark);
        lengths += open;
        child += wanted;
        at += wanted + (open ^ 1);
    }
}

#define LC_PARENTS_EXPAND(NAME, REP, MARKS, CHILDREN)                                                    \
    LC_CLONES static inline void NAME(lc_parents parents, const uint8_t *children, int64_t num_children, \
                                      uint8_t *rep, uint8_t *marks, int64_t n) {                         \
        lc_parents_expand_body(parents, REP, MARKS, children, CHILDREN, num_children, rep, marks, n);    \
    }
LC_PARENTS_EXPAND(lc_parents_expand_plain, parents.rep != NULL, 0, 0)
LC_PARENTS_EXPAND(lc_parents_expand_marks, parents.rep != NULL, 1, 0)
LC_PARENTS_EXPAND(lc_parents_expand_first, 0, 1, 1)
LC_PARENTS_EXPAND(lc_parents_expand_both, 1, 1, 1)

/* If the parents have no marks, the result has the marks of the children: pass NULL for both then. */
static inline void lc_parents_expand(lc_parents parents, const uint8_t *children, int64_t num_children, uint8_t *rep,
                                     uint8_t *marks, int64_t n) {
    if (n) memset(rep, 0, (size_t)(2 * n));
    if (!parents.marks) {
        lc_parents_expand_plain(parents, NULL, 0, rep, NULL, n);
    } else if (!children) {
        if (n) memset(marks, 0, (size_t)(2 * n));
        lc_parents_expand_marks(parents, NULL, 0, rep, marks, n);
    } else if (!parents.rep) {
        lc_parents_expand_first(parents, children, num_children, rep, marks, n);
    } else {
        lc_parents_expand_both(parents, children, num_children, rep, marks, n);
    }
}

#endif
