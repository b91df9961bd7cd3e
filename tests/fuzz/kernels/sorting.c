/* Sorting: keys end up in order, each with the place it came from, equal ones in their order. */
#include "fuzz.h"
#include "radix_sort.h"

static lc_radix radix;

static void fz_target(fz_input *in) {
    int64_t n = fz_upto(in, 300), bits = fz_upto(in, 64);
    uint8_t *keys = fz_take(in, 8 * n);
    for (int64_t i = 0; i < n; i++) {
        uint64_t key = lc_radix_key(keys, i);
        key = bits ? key >> (64 - bits) : 7;
        memcpy(keys + 8 * i, &key, 8);
    }
    uint8_t *sorted = fz_out(in, 8 * n), *other = fz_out(in, 8 * n);
    uint32_t *places = (uint32_t *)fz_out(in, 4 * n), *others = (uint32_t *)fz_out(in, 4 * n);
    if (!lc_radix_sort(keys, n, &radix, sorted, places, other, others)) {
        for (int64_t i = 1; i < n; i++) FZ_CHECK(lc_radix_key(keys, i - 1) <= lc_radix_key(keys, i));
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        FZ_CHECK(places[i] < n && lc_radix_key(keys, places[i]) == lc_radix_key(sorted, i));
        if (!i) continue;
        uint64_t before = lc_radix_key(sorted, i - 1), key = lc_radix_key(sorted, i);
        FZ_CHECK(before < key || (before == key && places[i - 1] < places[i]));
    }
}
