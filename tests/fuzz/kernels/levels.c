/* Repetition and definition levels of any content, unravelled layer after layer. */
#include "fuzz.h"
#include "levels_unravel.h"

/* Levels below the layers' own, as bytes choose; sometimes one that does not exist. */
static uint8_t *stream(fz_input *in, int64_t n, int64_t top, int64_t first) {
    uint8_t *levels = fz_out(in, 2 * n);
    int wild = fz_upto(in, 15) == 0;
    for (int64_t i = 0; i < n; i++) lc_store_u16(levels + 2 * i, (uint16_t)fz_upto(in, top + wild));
    if (n && !wild) lc_store_u16(levels, (uint16_t)first);
    return levels;
}

static void check_validity(fz_input *in, lc_levels stage, lc_valid_levels valid) {
    int64_t slots, nulls, at = fz_upto(in, 12), set = 0;
    lc_layer_count(stage, valid, &slots, &nulls);
    FZ_CHECK(0 <= nulls && nulls <= slots && slots <= stage.n);
    uint8_t *bits = fz_out(in, (at + slots + 7) / 8);
    lc_validity_fill(stage, valid, slots, bits, at);
    for (int64_t i = 0; i < slots; i++) set += lc_get_bit(bits, at + i);
    FZ_CHECK(set == slots - nulls);
}

static void fz_target(fz_input *in) {
    uint8_t kinds[5];
    lc_layer layers[5] = {{0}};
    int64_t max_rep, depth = 1 + fz_upto(in, 4), n = fz_upto(in, 300), lists, elements;
    for (int64_t i = 0; i < depth; i++) kinds[i] = (uint8_t)(1 + fz_upto(in, fz_upto(in, 31) ? 5 : 7));
    if (lc_layers_number(kinds, depth, layers, &max_rep)) return;
    int64_t max_def = layers[depth - 1].high;
    lc_levels stage = {NULL, NULL, n};
    if (max_rep) stage.rep = stream(in, n, max_rep, max_rep);
    if (max_def) stage.def = stream(in, n, max_def, 0);
    if (lc_levels_check(stage, max_rep, (uint16_t)max_def)) return;
    for (int64_t i = 0; i < depth; i++) {
        check_validity(in, stage, lc_layer_valid(layers[i]));
        if (!layers[i].is_list) continue;
        int64_t heads = stage.n - lc_levels_count_le(stage.rep, stage.n, 0);
        uint8_t *rep = fz_out(in, 2 * heads), *def = stage.def ? fz_out(in, 2 * heads) : NULL;
        uint32_t *starts = (uint32_t *)fz_memory(4 * (heads + 1), 0);
        if (lc_lists_unravel(stage, layers[i], rep, def, starts, &lists, &elements)) return;
        FZ_CHECK(lists <= heads && elements <= stage.n);
        uint8_t *offsets = fz_out(in, 8 * (lists + 1));
        FZ_CHECK(!lc_list_offsets(starts, lists, elements, 5, 1, offsets));
        for (int64_t k = 0; k < lists; k++)
            FZ_CHECK(lc_load_offset(offsets, 1, k) <= lc_load_offset(offsets, 1, k + 1));
        stage = (lc_levels){rep, def, heads};
    }
}
