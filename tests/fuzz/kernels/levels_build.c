/* Validity and offsets of nested arrays to levels and back: the result equals the input. */
#include "fuzz.h"
#include "levels_build.h"
#include "levels_pages.h"
#include "levels_unravel.h"

/* A list layer over `slots` slots in ranges; offsets ascend from `begin`, with gaps at nulls. */
typedef struct {
    lc_list_layer layer;
    int wide;
    int64_t lists;
} made;

static int64_t ranges_of(fz_input *in, lc_slot_range *ranges, int64_t *slots) {
    int64_t count = 1 + fz_upto(in, 3), at = fz_upto(in, 9);
    *slots = 0;
    for (int64_t r = 0; r < count; r++) {
        ranges[r].start = at, ranges[r].count = 1 + fz_upto(in, fz_upto(in, 1) ? 20 : 150);
        at += ranges[r].count + 1 + fz_upto(in, 5);
        *slots += ranges[r].count;
    }
    return count;
}

static made lists_of(fz_input *in, int64_t length) {
    made m = {.wide = (int)fz_upto(in, 1), .lists = length};
    int64_t at = fz_upto(in, 50), most = fz_upto(in, 3) ? 4 : 0, wild = fz_upto(in, 15) == 0;
    uint8_t *offsets = fz_out(in, (length + 1) * (m.wide ? 8 : 4));
    for (int64_t i = 0; i <= length; i++, at += fz_upto(in, most))
        lc_store_offset(offsets, m.wide, i, wild && fz_upto(in, 31) == 0 ? (int64_t)fz_word(in, 8) : at);
    m.layer.offsets = offsets, m.layer.empty = 2, m.layer.null = 3;
    m.layer.validity_bit = fz_upto(in, 9);
    m.layer.validity = fz_upto(in, 1) ? fz_take(in, (m.layer.validity_bit + length + 7) / 8) : NULL;
    return m;
}

/* The lengths, ranges and marks of a scan, against one list at a time. */
static void check_scan(const made *m, const lc_slot_range *ranges, int64_t count, const uint8_t *before,
                       const uint8_t *marks, const uint32_t *lengths, const lc_lists_found *found) {
    int64_t slot = 0, lists = 0, elements = 0;
    for (int64_t r = 0; r < count; r++)
        for (int64_t i = 0; i < ranges[r].count; i++, slot++) {
            int64_t at = ranges[r].start + i, old = before ? lc_level(before, slot) : 0;
            int64_t length = lc_load_offset(m->layer.offsets, m->wide, at + 1) - lc_load_offset(m->layer.offsets, m->wide, at);
            int valid = !m->layer.validity || lc_get_bit(m->layer.validity, m->layer.validity_bit + at);
            int64_t mark = old ? old : !valid ? m->layer.null : !length ? m->layer.empty : 0;
            FZ_CHECK(lc_level(marks, slot) == mark);
            if (mark) continue;
            FZ_CHECK(lengths[lists] == (uint64_t)length);
            lists++, elements += length;
        }
    FZ_CHECK(found->lists == lists && found->elements == elements);
}

/* Entries of one list layer and its leaf, then the layer undone. */
static void undone(fz_input *in, const uint8_t *marks, int64_t slots, const uint32_t *lengths, const lc_lists_found *found) {
    int64_t entries = slots - found->lists + found->elements, lists, elements, k = 0;
    uint8_t *children = fz_out(in, 2 * found->elements), *rep = fz_out(in, 2 * entries), *def = fz_out(in, 2 * entries);
    for (int64_t i = 0; i < found->elements; i++) lc_store_u16(children + 2 * i, (uint16_t)(fz_upto(in, 3) ? 0 : 4));
    lc_parents parents = {NULL, marks, slots, lengths, 1};
    lc_parents_expand(parents, children, found->elements, rep, def, entries);
    lc_marks_to_levels(def, entries, 4);
    /* leaf null = 1, null list = 2, empty list = 3, null struct around the list = 4 */
    uint8_t kinds[3] = {LC_NULLABLE_ITEM, LC_NULL_AND_EMPTY_LIST, LC_NULLABLE_ITEM};
    lc_layer layers[3];
    int64_t max_rep;
    FZ_CHECK(!lc_layers_number(kinds, 3, layers, &max_rep) && max_rep == 1);
    lc_levels stage = {rep, def, entries};
    FZ_CHECK(!lc_levels_check(stage, 1, 4));
    int64_t heads = entries - lc_levels_count_le(rep, entries, 0);
    uint8_t *next_rep = fz_out(in, 2 * heads), *next_def = fz_out(in, 2 * heads);
    uint32_t *starts = (uint32_t *)fz_memory(4 * (heads + 1), 0);
    FZ_CHECK(heads == slots && !lc_lists_unravel(stage, layers[1], next_rep, next_def, starts, &lists, &elements));
    FZ_CHECK(elements == found->elements);
    for (int64_t i = 0, list = 0, begin = 0; i < slots; i++) {
        int64_t mark = lc_level(marks, i);
        FZ_CHECK(lc_level(next_def, i) == (mark ? 5 - mark : lc_level(next_def, i)) && lc_level(next_rep, i) == 0);
        FZ_CHECK(starts[list++] == begin); /* lists below null structs are slots, too */
        if (!mark) begin += lengths[k++];
    }
}

static void control(fz_input *in) {
    int64_t n = fz_upto(in, 200), bits_rep = fz_upto(in, 17), bits_def = fz_upto(in, 17);
    int width = lc_control_width(bits_rep, bits_def);
    if (width < 0) return;
    uint8_t *rep = bits_rep ? fz_take(in, 2 * n) : NULL, *def = bits_def ? fz_take(in, 2 * n) : NULL;
    uint8_t *words = fz_out(in, n * width), *rep_back = fz_out(in, 2 * n), *def_back = fz_out(in, 2 * n);
    for (int64_t i = 0; i < n && fz_upto(in, 63); i++) {
        if (rep) lc_store_u16(rep + 2 * i, (uint16_t)(lc_level(rep, i) & lc_low_mask(bits_rep)));
        if (def) lc_store_u16(def + 2 * i, (uint16_t)(lc_level(def, i) & lc_low_mask(bits_def)));
    }
    int problem = lc_control_pack(rep, def, n, bits_rep, bits_def, words);
    lc_control_unpack(words, n, bits_rep, bits_def, rep_back, def_back);
    for (int64_t i = 0; i < n && !problem; i++)
        FZ_CHECK(lc_level(rep_back, i) == (rep ? lc_level(rep, i) : 0) && lc_level(def_back, i) == (def ? lc_level(def, i) : 0));
}

static void lists(fz_input *in) {
    lc_slot_range ranges[4];
    int64_t slots, count = ranges_of(in, ranges, &slots), fresh = fz_upto(in, 1);
    int64_t length = ranges[count - 1].start + ranges[count - 1].count, bit = fz_upto(in, 9);
    uint8_t *marks = fz_out(in, 2 * slots), *bits = fz_take(in, (bit + length + 7) / 8), *before = NULL;
    if (!fresh) { /* a struct around the lists: its nulls, mark 1, stay */
        lc_marks_first_nulls(ranges, count, bits, bit, 1, marks);
        FZ_CHECK(lc_slots_nulls(ranges, count, bits, bit) == lc_marks_count(marks, slots, 1));
        before = fz_out(in, 2 * slots);
        memcpy(before, marks, (size_t)(2 * slots));
    }
    made m = lists_of(in, length);
    uint32_t *lengths = (uint32_t *)fz_memory(4 * (slots + 1), 0);
    lc_lists_found found;
    if (lc_lists_scan(m.layer, m.wide, ranges, count, (int)fresh, marks, lengths, &found) || found.elements > 5000) return;
    check_scan(&m, ranges, count, before, marks, lengths, &found);
    lengths[found.lists] = 0;
    lc_slot_range *out = (lc_slot_range *)(void *)fz_memory((int64_t)sizeof(lc_slot_range) * (found.ranges + 2), 0);
    lc_lists_ranges(m.layer.offsets, m.wide, ranges, count, marks, out);
    int64_t elements = 0;
    for (int64_t r = 1; r <= found.ranges; r++) elements += out[r].count;
    FZ_CHECK(elements == found.elements && (!found.ranges || out[found.ranges].start + out[found.ranges].count == found.last));
    undone(in, marks, slots, lengths, &found);
}

static void fz_target(fz_input *in) {
    if (fz_upto(in, 3)) lists(in);
    else control(in);
}
