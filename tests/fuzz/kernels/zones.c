/* Bounds of zones: values and texts in pieces, against single values; verdicts of tests. */
#include "fuzz.h"

#include "zones.h"

static int is_nan(uint64_t value, int bits) {
    return bits == 32 ? (value & 0x7FFFFFFF) > 0x7F800000 : (value & ~(1ULL << 63)) > 0x7FF0000000000000ULL;
}

static lc_wide_key key_of(const uint8_t *p, int bits, int order) {
    if (bits < 128) return lc_narrow_key(lc_key(lc_load_value(p, bits), bits, order));
    return (lc_wide_key){lc_load_u64(p), lc_load_u64(p + 8) ^ (order == LC_KEY_SIGNED ? 1ULL << 63 : 0)};
}

static int within(const lc_zone *zone, lc_wide_key key) {
    return (zone->flags & LC_ZONE_BOUNDED) && !lc_wide_less(key, zone->low) && !lc_wide_less(zone->high, key);
}

static void of_values(fz_input *in) {
    int bits = 8 << fz_upto(in, 4), order = (int)(bits == 32 || bits == 64 ? fz_upto(in, 2) : fz_upto(in, 1));
    int64_t n = 1 + fz_upto(in, 300), bit = fz_upto(in, 9), cut = 1 + fz_upto(in, n - 1), width = bits / 8;
    uint8_t *values = fz_take(in, n * width), *valid = fz_upto(in, 1) ? fz_take(in, (bit + n + 7) / 8) : NULL;
    lc_zone zone = {{0, 0}, {0, 0}, 0}, rest = zone;
    lc_zone_fixed(values, valid, bit, cut, bits, order, &zone);
    if (cut < n) lc_zone_fixed(values + cut * width, valid, bit + cut, n - cut, bits, order, &rest);
    lc_zone_merge(&zone, &rest);
    lc_intervals test = {bits, order, 1, {key_of(values, bits, order)}, {key_of(values + (n - 1) * width, bits, order)}};
    test.count = !lc_wide_less(test.high[0], test.low[0]);
    int null = (int)fz_upto(in, 1), verdict = lc_zone_verdict(&test, null, &zone);
    for (int64_t i = 0; i < n; i++) {
        lc_wide_key key = key_of(values + i * width, bits, order);
        int is_valid = !valid || lc_get_bit(valid, bit + i), inside = null;
        int nan = is_valid && order == LC_KEY_FLOAT && is_nan(lc_load_value(values + i * width, bits), bits);
        FZ_CHECK(zone.flags & (is_valid ? LC_ZONE_VALID : LC_ZONE_NULL));
        if (is_valid) FZ_CHECK(nan ? (zone.flags & LC_ZONE_NAN) != 0 : within(&zone, key));
        if (is_valid) inside = test.count && !lc_wide_less(key, test.low[0]) && !lc_wide_less(test.high[0], key);
        FZ_CHECK(verdict == LC_SOME_INSIDE || (verdict == LC_ALL_INSIDE) == inside);
    }
}

static void of_texts(fz_input *in) {
    int64_t n = 1 + fz_upto(in, 40), size = fz_upto(in, 300), at = 0;
    int wide = (int)fz_upto(in, 1);
    uint8_t *offsets = fz_memory((n + 1) * (wide ? 8 : 4), 0), *data = fz_take(in, size);
    uint8_t *valid = fz_upto(in, 1) ? fz_take(in, (n + 7) / 8) : NULL;
    for (int64_t i = 0; i <= n; i++) {
        lc_store_offset(offsets, wide, i, fz_upto(in, 60) ? at : at - 3);
        at += fz_upto(in, 20);
        if (at > size && fz_upto(in, 30)) at = size;
    }
    lc_zone zone = {{0, 0}, {0, 0}, 0};
    if (lc_zone_texts((lc_bytes){data, size}, offsets, wide, valid, 0, 0, n, &zone)) return;
    for (int64_t i = 0; i < n; i++) {
        uint8_t first[16] = {0};
        int64_t begin = lc_load_offset(offsets, wide, i), length = lc_load_offset(offsets, wide, i + 1) - begin;
        if (length) memcpy(first, data + begin, (size_t)(length < 16 ? length : 16));
        lc_wide_key key = {lc_zone_reversed(lc_load_u64(first + 8)), lc_zone_reversed(lc_load_u64(first))};
        if (!valid || lc_get_bit(valid, i)) FZ_CHECK(within(&zone, key) && (zone.flags & LC_ZONE_VALID));
        else FZ_CHECK(zone.flags & LC_ZONE_NULL);
    }
}

/* Bounds as they are in files: any bytes. */
static void of_files(fz_input *in) {
    int64_t n = fz_upto(in, 20);
    uint8_t *low = fz_take(in, 16 * n), *high = fz_take(in, 16 * n), *flags = fz_take(in, n), *out = fz_memory(n, 0);
    lc_intervals test = {64, fz_upto(in, 2), 1, {{fz_word(in, 8), 0}}, {{~0ULL, 0}}};
    lc_zone_verdicts(&test, (int)fz_upto(in, 1), low, high, flags, n, out);
    for (int64_t i = 0; i < n; i++) FZ_CHECK(out[i] <= LC_SOME_INSIDE);
}

static void fz_target(fz_input *in) {
    int64_t which = fz_upto(in, 2);
    if (which == 0) of_values(in);
    else if (which == 1) of_texts(in);
    else of_files(in);
}
