/* Repetition and definition levels -> lengths and validity of every layer, inner-most layer first.
 *
 * A stage is a pair of streams. A list layer turns its stage into the next one: the entries that start a list, with one
 * repetition level less. Item layers leave the stage as it is. Levels grow outwards, so that at each layer
 *   level <= base          something of this layer is there (list layers: with at least one element)
 *   base < level <= high   the layer's own null or empty
 *   high < level <= top    masked by a null item layer inside the next outer list
 *   top < level            no entry of this layer: an outer list is null or empty. */
#ifndef LANCECODEC_LEVELS_UNRAVEL_H
#define LANCECODEC_LEVELS_UNRAVEL_H

#include "chunk.h"
#include "levels_mask.h"

/* Kinds as page descriptors number them. */
enum lc_layer_kind {
    LC_ALL_VALID_ITEM = 1,
    LC_ALL_VALID_LIST,
    LC_NULLABLE_ITEM,
    LC_NULLABLE_LIST,
    LC_EMPTYABLE_LIST,
    LC_NULL_AND_EMPTY_LIST
};

typedef struct {
    const uint8_t *rep; /* NULL: zeros */
    const uint8_t *def;
    int64_t n;
} lc_levels;

typedef struct {
    uint16_t base, high, top;
    uint8_t is_list;
    uint8_t kind;
} lc_layer;

/* Number the levels of layers given inner-most first. LC_BAD_LEVEL: unknown kind, or more levels than 16 bits hold. */
static inline int lc_layers_number(const uint8_t *kinds, int64_t n, lc_layer *layers, int64_t *max_rep) {
    static const uint8_t levels_used[7] = {0, 0, 0, 1, 1, 1, 2};
    uint32_t level = 0;
    int64_t first = 0; /* of the layers whose top is not known yet */
    *max_rep = 0;
    for (int64_t i = 0; i < n; i++) {
        uint8_t kind = kinds[i];
        if (kind < LC_ALL_VALID_ITEM || kind > LC_NULL_AND_EMPTY_LIST) return LC_BAD_LEVEL;
        layers[i].kind = kind;
        layers[i].is_list = kind != LC_ALL_VALID_ITEM && kind != LC_NULLABLE_ITEM;
        if (layers[i].is_list) {
            for (; first < i; first++) layers[first].top = (uint16_t)level;
            if (++*max_rep > UINT16_MAX) return LC_BAD_LEVEL;
        }
        layers[i].base = (uint16_t)level;
        level += levels_used[kind];
        if (level > UINT16_MAX) return LC_BAD_LEVEL;
        layers[i].high = (uint16_t)level;
    }
    for (; first < n; first++) layers[first].top = (uint16_t)level;
    return LC_OK;
}

/* The levels that are valid at a layer: at most `limit`, and, if `null` is not 0, other than `null`. */
typedef struct {
    uint16_t limit, null, top;
} lc_valid_levels;

static inline lc_valid_levels lc_layer_valid(lc_layer layer) {
    lc_valid_levels valid = {layer.base, 0, layer.top};
    if (layer.kind == LC_ALL_VALID_ITEM) valid.limit = layer.top;
    if (layer.kind == LC_EMPTYABLE_LIST) valid.limit = layer.high;
    if (layer.kind == LC_NULL_AND_EMPTY_LIST) valid.limit = layer.high, valid.null = (uint16_t)(layer.base + 1);
    return valid;
}

/* Check for levels that the layers do not have, and for a page that does not start with a row. */
static inline int lc_levels_check(lc_levels levels, int64_t max_rep, uint16_t max_def) {
    if (levels.n == 0) return LC_OK;
    if (lc_levels_max(levels.def, levels.n) > max_def || lc_levels_max(levels.rep, levels.n) > max_rep)
        return LC_BAD_LEVEL;
    return (levels.rep == NULL ? 0 : lc_level(levels.rep, 0)) == max_rep ? LC_OK : LC_BAD_LEVEL;
}

/* Entries of a layer (slots) and the nulls among them. */
static inline void lc_layer_count(lc_levels stage, lc_valid_levels valid, int64_t *slots, int64_t *nulls) {
    int64_t good = lc_levels_count_le(stage.def, stage.n, valid.limit);
    *slots = valid.limit == valid.top ? good : lc_levels_count_le(stage.def, stage.n, valid.top);
    if (valid.null && stage.def) good -= lc_levels_count_between(stage.def, stage.n, valid.null, valid.null);
    *nulls = *slots - good;
}

/* Unravel one list layer: the next stage (streams that are NULL are not written), and the first element of each list.
 * The outputs hold as many entries as the stage has repetition levels above 0. */
LC_INLINE int lc_lists_unravel_body(lc_levels stage, lc_layer layer, uint8_t *next_rep, uint8_t *next_def,
                                    uint32_t *starts, int64_t *lists, int64_t *elements, int has_def) {
    uint8_t scratch[2][128];
    int64_t heads = 0, count = 0, element = 0;
    for (int64_t i = 0; i < stage.n; i += 64) {
        int64_t live = stage.n - i < 64 ? stage.n - i : 64;
        uint64_t all = lc_low_mask(live), here = all;
        const uint8_t *rep = lc_levels_block(stage.rep, i, live, scratch[0]), *def = NULL;
        uint64_t head = ~lc_mask_le(rep, 0) & all;
        if (has_def) {
            def = lc_levels_block(stage.def, i, live, scratch[1]);
            here = lc_mask_le(def, layer.base) & all;
            if ((head | here) != all) return LC_BAD_LEVEL; /* a missing element continues a list */
        }
        for (; head; head &= head - 1, heads++) {
            int at = lc_ctz64(head);
            starts[count] = (uint32_t)(element + lc_popcount64(here & lc_low_mask(at)));
            if (next_rep) lc_store_u16(next_rep + 2 * heads, (uint16_t)(lc_level(rep, at) - 1));
            if (has_def) {
                uint16_t level = lc_level(def, at);
                lc_store_u16(next_def + 2 * heads, level);
                count += level <= layer.top;
            } else {
                count++;
            }
        }
        element += lc_popcount64(here);
    }
    *lists = count, *elements = element;
    return LC_OK;
}

LC_CLONES static inline int lc_lists_unravel_all(lc_levels stage, lc_layer layer, uint8_t *next_rep, uint32_t *starts,
                                                 int64_t *lists, int64_t *elements) {
    return lc_lists_unravel_body(stage, layer, next_rep, NULL, starts, lists, elements, 0);
}

LC_CLONES static inline int lc_lists_unravel_def(lc_levels stage, lc_layer layer, uint8_t *next_rep, uint8_t *next_def,
                                                 uint32_t *starts, int64_t *lists, int64_t *elements) {
    return lc_lists_unravel_body(stage, layer, next_rep, next_def, starts, lists, elements, 1);
}

static inline int lc_lists_unravel(lc_levels stage, lc_layer layer, uint8_t *next_rep, uint8_t *next_def,
                                   uint32_t *starts, int64_t *lists, int64_t *elements) {
    if (stage.def == NULL) return lc_lists_unravel_all(stage, layer, next_rep, starts, lists, elements);
    return lc_lists_unravel_def(stage, layer, next_rep, next_def, starts, lists, elements);
}

/* Unravel a structural fixed-size list layer: of every `dimension` slots the first is kept. The caller has checked that
 * the number of slots is a multiple of it. Streams that are NULL remain NULL. */
static inline int lc_fixed_lists_unravel(lc_levels stage, uint16_t top, int64_t dimension, uint8_t *next_rep,
                                         uint8_t *next_def) {
    int64_t kept = 0, inside = 0;
    for (int64_t i = 0; i < stage.n; i++) {
        uint16_t rep = stage.rep ? lc_level(stage.rep, i) : 0, def = stage.def ? lc_level(stage.def, i) : 0;
        if (def <= top) {
            int64_t at = inside;
            inside = inside + 1 == dimension ? 0 : inside + 1;
            if (at && rep) return LC_BAD_LEVEL; /* a list would start within a fixed-size list */
            if (at) continue;
        } else if (inside) {
            return LC_BAD_LEVEL;
        }
        if (next_rep) lc_store_u16(next_rep + 2 * kept, rep);
        if (next_def) lc_store_u16(next_def + 2 * kept, def);
        kept++;
    }
    return LC_OK;
}

/* Write the validity of a layer from bit `at` of `out` on. `some_hidden`: not every entry of the stage is one of this
 * layer. */
LC_INLINE void lc_validity_fill_body(lc_levels stage, lc_valid_levels valid, uint8_t *out, int64_t at, int some_hidden,
                                     int has_null) {
    uint8_t scratch[128];
    lc_bit_writer writer = lc_bit_writer_at(out, at);
    for (int64_t i = 0; i < stage.n; i += 64) {
        int64_t live = stage.n - i < 64 ? stage.n - i : 64;
        const uint8_t *def = lc_levels_block(stage.def, i, live, scratch);
        uint64_t all = lc_low_mask(live), bits = lc_mask_le(def, valid.limit);
        if (has_null) bits &= ~lc_mask_between(def, valid.null, valid.null);
        bits &= all;
        if (some_hidden) {
            uint64_t slots = lc_mask_le(def, valid.top) & all;
            live = lc_popcount64(slots);
            if (slots != all) bits = lc_compress64(bits, slots, live);
        }
        lc_bit_writer_add(&writer, bits, live);
    }
    lc_bit_writer_end(&writer);
}

LC_CLONES static inline void lc_validity_fill_plain(lc_levels stage, lc_valid_levels valid, uint8_t *out, int64_t at) {
    lc_validity_fill_body(stage, valid, out, at, 0, 0);
}

LC_CLONES static inline void lc_validity_fill_any(lc_levels stage, lc_valid_levels valid, uint8_t *out, int64_t at) {
    if (valid.null) lc_validity_fill_body(stage, valid, out, at, 1, 1);
    else lc_validity_fill_body(stage, valid, out, at, 1, 0);
}

static inline void lc_validity_fill(lc_levels stage, lc_valid_levels valid, int64_t slots, uint8_t *out, int64_t at) {
    if (slots == stage.n && !valid.null) lc_validity_fill_plain(stage, valid, out, at);
    else lc_validity_fill_any(stage, valid, out, at);
}

/* Arrow offsets of the lists of one layer: lists + 1 entries from `base` on. */
LC_CLONES static inline void lc_list_offsets_wide(const uint32_t *LC_RESTRICT starts, int64_t lists, int64_t base,
                                                  uint8_t *LC_RESTRICT out) {
    for (int64_t i = 0; i < lists; i++) lc_store_u64(out + 8 * i, (uint64_t)(base + (int64_t)starts[i]));
}

LC_CLONES static inline void lc_list_offsets_narrow(const uint32_t *LC_RESTRICT starts, int64_t lists, int64_t base,
                                                    uint8_t *LC_RESTRICT out) {
    uint32_t first = (uint32_t)base;
    for (int64_t i = 0; i < lists; i++) lc_store_u32(out + 4 * i, first + starts[i]);
}

static inline int lc_list_offsets(const uint32_t *starts, int64_t lists, int64_t elements, int64_t base, int wide,
                                  uint8_t *out) {
    int64_t top = wide ? INT64_MAX : INT32_MAX;
    if (base < 0 || base > top - elements) return LC_NO_SPACE;
    if (wide) lc_list_offsets_wide(starts, lists, base, out);
    else lc_list_offsets_narrow(starts, lists, base, out);
    lc_store_offset(out, wide, lists, base + elements);
    return LC_OK;
}

#endif
