/* Bloom filters: hashes of fixed and variable width agree, filters have what was added, any bytes as filters. */
#include "bloom.h"
#include "fuzz.h"
#include "xxh64.h"

static void hashed(fz_input *in) {
    int64_t width = 1 + fz_upto(in, 80), n = fz_upto(in, 20);
    int wide = (int)fz_upto(in, 1);
    uint8_t *values = fz_take(in, n * width), *one = fz_out(in, 8 * n), *two = fz_out(in, 8 * n);
    uint8_t *offsets = fz_out(in, (n + 1) * (wide ? 8 : 4));
    for (int64_t i = 0; i <= n; i++) lc_store_offset(offsets, wide, i, i * width);
    lc_bytes data = {values, n * width};
    lc_xxh_fixed(values, width, n, one);
    FZ_CHECK(!lc_xxh_variable(data, offsets, wide, n, two));
    FZ_CHECK(!n || !memcmp(one, two, (size_t)(8 * n)));
    if (n) lc_store_offset(offsets, wide, fz_upto(in, n), (int64_t)fz_word(in, wide ? 8 : 2) - 9);
    lc_xxh_variable(data, offsets, wide, n, two);
}

static void filtered(fz_input *in) {
    int64_t n = fz_upto(in, 60), filters = fz_upto(in, 5), size = LC_BLOOM_BLOCK * (1 + fz_upto(in, 4)), at = 0;
    uint8_t *hashes = fz_take(in, 8 * n), *out = fz_memory(filters * size, 0), *found = fz_out(in, filters);
    uint8_t *offsets = fz_out(in, (filters + 1) * 4);
    int64_t *stops = (int64_t *)fz_memory(8 * filters, 0);
    for (int64_t i = 0; i < filters; i++) stops[i] = at = at + fz_upto(in, n - at);
    for (int64_t i = 0; i <= filters; i++) lc_store_offset(offsets, 0, i, i * size);
    if (filters) memset(out, 0, (size_t)(filters * size));
    FZ_CHECK(!lc_bloom_insert(hashes, n, stops, filters, size, out));
    lc_bytes data = {out, filters * size};
    for (int64_t i = 0, k = 0; i < filters; i++)
        for (; k < stops[i]; k++) {
            FZ_CHECK(!lc_bloom_probe(data, offsets, 0, filters, hashes + 8 * k, 1, found));
            FZ_CHECK(found[i] == 1);
        }
    if (filters) stops[fz_upto(in, filters - 1)] = (int64_t)fz_word(in, 8);
    lc_bloom_insert(hashes, n, stops, filters, size, out);
}

static void probed(fz_input *in) {
    int wide = (int)fz_upto(in, 1);
    int64_t n = fz_upto(in, 6), count = fz_upto(in, 4), at = fz_upto(in, 3);
    uint8_t *offsets = fz_out(in, (n + 1) * (wide ? 8 : 4)), *found = fz_out(in, n), *hashes = fz_take(in, 8 * count);
    for (int64_t i = 0; i <= n; i++) {
        lc_store_offset(offsets, wide, i, at);
        at += fz_upto(in, 15) ? LC_BLOOM_BLOCK * (1 + fz_upto(in, 2)) : fz_upto(in, 40);
    }
    if (fz_upto(in, 3) == 0) lc_store_offset(offsets, wide, fz_upto(in, n), (int64_t)fz_word(in, 8));
    lc_bytes data = fz_rest(in);
    if (lc_bloom_probe(data, offsets, wide, n, hashes, count, found)) return;
    for (int64_t i = 0; i < n; i++) FZ_CHECK(found[i] <= 1);
}

static void fz_target(fz_input *in) {
    switch (fz_upto(in, 2)) {
        case 0: hashed(in); break;
        case 1: filtered(in); break;
        default: probed(in);
    }
}
