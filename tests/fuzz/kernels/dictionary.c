/* Dictionary building against a search through all earlier values. */
#include "dictionary.h"
#include "fuzz.h"

typedef struct {
    lc_bytes value;
    int valid;
} item;

static item item_of(const lc_dict_values *v, int64_t i) {
    int64_t begin, length;
    item found = {{NULL, 0}, v->validity == NULL || lc_get_bit(v->validity, v->bit + i)};
    if (!found.valid) return found;
    FZ_CHECK(!lc_dict_place(v, i, &begin, &length));
    found.value = (lc_bytes){v->data + begin, length};
    return found;
}

static int same(item a, item b) {
    return a.value.size == b.value.size && (a.value.size == 0 || !memcmp(a.value.data, b.value.data, (size_t)a.value.size));
}

static void fz_target(fz_input *in) {
    lc_dict_values v = {0};
    lc_dict_table table;
    v.n = fz_upto(in, 150), v.width = fz_upto(in, 20), v.wide = (int)fz_upto(in, 1), v.bit = fz_upto(in, 9);
    int64_t longest = 1 + fz_upto(in, 40), entry = v.wide ? 8 : 4, mask = fz_upto(in, 3), bad = fz_upto(in, 63) == 9;
    v.size = v.width ? v.n * v.width : fz_upto(in, 600);
    if (v.width == 0) {
        uint8_t *offsets = fz_out(in, (v.n + 1) * entry);
        int64_t at = 0;
        for (int64_t i = 0; i <= v.n; i++) {
            lc_store_offset(offsets, v.wide, i, bad && i == v.n / 2 ? v.size + 1 : at);
            at += v.size - at < longest ? 0 : fz_upto(in, longest);
        }
        v.offsets = offsets;
    }
    if (fz_upto(in, 1)) v.validity = fz_take(in, (v.bit + v.n + 7) / 8);
    uint8_t *data = fz_take(in, v.size);
    for (int64_t i = 0; i < v.size && mask; i++) data[i] &= (uint8_t)mask;
    v.data = data;
    int64_t limit = fz_upto(in, 3) ? v.n : fz_upto(in, v.n), *positions = (int64_t *)fz_memory(8 * limit, 0), distinct = 0;
    uint8_t *codes = fz_out(in, 4 * v.n);
    lc_secret secret = {0x243F6A8885A308D3ULL, 0x13198A2E03707345ULL};
    lc_dict_open(&table, positions, limit, INT64_MAX, secret);
    int outcome = lc_dict_build(&table, &v, 4, codes);
    for (int64_t i = 0; i < v.n && outcome == LC_OK; i++) {
        item mine = item_of(&v, i);
        int64_t code = (int64_t)lc_load_u32(codes + 4 * i);
        if (!mine.valid) continue;
        FZ_CHECK(code < table.count && code <= distinct);
        FZ_CHECK(same(mine, item_of(&v, positions[code])));
        if (positions[code] == i) {
            FZ_CHECK(code == distinct);
            distinct++;
        }
        for (int64_t c = 0; c < code; c++) FZ_CHECK(!same(mine, item_of(&v, positions[c])));
    }
    if (outcome == LC_OK) FZ_CHECK(table.count == distinct);
    lc_dict_close(&table);
}
