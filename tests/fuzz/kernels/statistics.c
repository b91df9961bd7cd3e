/* Statistics of fixed and variable width against plain loops; sketches and entropy for their bounds. */
#include "fuzz.h"
#include "hyperloglog.h"
#include "statistics.h"
#include "statistics_wide.h"

/* Values of few kinds, in runs. */
static uint8_t *some_values(fz_input *in, int64_t n, int64_t width) {
    uint8_t *values = fz_out(in, n * width);
    uint64_t word = 0;
    int64_t left = 0, longest = 1 + fz_upto(in, fz_upto(in, 1) ? 700 : 3), bytes = 1 + fz_upto(in, 7);
    for (int64_t i = 0; i < n; i++) {
        if (left-- == 0) word = fz_word(in, (int)bytes), left = fz_upto(in, longest);
        for (int64_t k = 0; k < width; k++) values[i * width + k] = (uint8_t)(word >> (8 * (k % 8)));
    }
    return values;
}

static void fixed(fz_input *in) {
    static const char kinds[] = {LC_UNSIGNED, LC_SIGNED, LC_FLOAT};
    lc_stat_values v = {.width = (int64_t)1 << fz_upto(in, 3), .n = fz_upto(in, fz_upto(in, 3) ? 1500 : 9000)};
    v.kind = kinds[fz_upto(in, v.width == 1 ? 1 : 2)], v.bit = fz_upto(in, 9);
    v.cut = LC_STAT_PIECE * fz_upto(in, 9);
    v.data = some_values(in, v.n, v.width);
    if (fz_upto(in, 1)) v.validity = fz_take(in, (v.bit + v.n + 7) / 8);
    if (fz_upto(in, 1)) v.widths = fz_out(in, (v.n + LC_STAT_GROUP - 1) / LC_STAT_GROUP);
    lc_statistics s = {0};
    int64_t runs = 0, cut_runs = 0, entries = 0, length = 0, nulls = 0;
    uint64_t any = 0;
    for (int64_t i = 0; i < v.n; i++) {
        int change = i == 0 || lc_stat_load(&v, i) != lc_stat_load(&v, i - 1), cut = change || (v.cut && i % v.cut == 0);
        runs += change, cut_runs += cut;
        length = cut ? 1 : length + 1;
        entries += length % LC_STAT_LONGEST == 1;
        any |= lc_stat_load(&v, i);
        nulls += v.validity && !lc_get_bit(v.validity, v.bit + i);
    }
    s.nulls = nulls;
    lc_statistics_fixed(&v, &s);
    FZ_CHECK(s.runs == runs && s.cut_runs == cut_runs && s.rle_entries == entries && s.bits == lc_bit_width(any));
    FZ_CHECK((s.first_valid < 0) == (nulls == v.n) && s.nans >= 0 && s.nans <= v.n - nulls);
    if (v.kind != LC_UNSIGNED) return;
    for (int64_t i = 0; i < v.n; i++)
        if (!v.validity || lc_get_bit(v.validity, v.bit + i))
            FZ_CHECK(s.low <= lc_stat_load(&v, i) && lc_stat_load(&v, i) <= s.high);
}

static void wide_values(fz_input *in) {
    int64_t width = 1 + fz_upto(in, 40), n = fz_upto(in, 200), changes = 0, first = 0;
    uint8_t *data = some_values(in, n, width), *validity = fz_upto(in, 1) ? fz_take(in, (n + 7) / 8) : NULL, registers[1 << 8] = {0};
    double weights[LC_ENTROPY_VALUES + 1];
    for (int64_t i = 1; i < n; i++) changes += memcmp(data + i * width, data + (i - 1) * width, (size_t)width) != 0;
    FZ_CHECK(lc_wide_changes(data, width, n) == changes);
    while (validity && first < n && !lc_get_bit(validity, first)) first++;
    if (first < n) FZ_CHECK(lc_wide_all_equal(data, width, n, validity, 0, first) || changes);
    for (int64_t c = 0; c <= LC_ENTROPY_VALUES; c++) weights[c] = (double)c;
    if (n) lc_byte_entropy(data, width, n < LC_ENTROPY_VALUES ? n : LC_ENTROPY_VALUES, weights);
    int precision = 4 + (int)fz_upto(in, 4);
    lc_sketch_fixed(registers, precision, data, width, n, validity, 0);
    for (int64_t r = 0; r < 1 << precision; r++) FZ_CHECK(registers[r] <= 64 - precision + 1);
}

static void variable(fz_input *in) {
    int wide = (int)fz_upto(in, 1), wild = fz_upto(in, 7) == 0;
    int64_t n = fz_upto(in, 200), size = fz_upto(in, 2000), at = 0, longest = 1 + fz_upto(in, 40), bit = fz_upto(in, 9);
    uint8_t *data = fz_take(in, size), *offsets = fz_out(in, (n + 1) * (wide ? 8 : 4)), registers[1 << 8] = {0};
    for (int64_t i = 0; i <= n; i++) {
        lc_store_offset(offsets, wide, i, wild && fz_upto(in, 15) == 0 ? (int64_t)fz_word(in, 8) : at);
        at += size - at < longest ? 0 : fz_upto(in, longest);
    }
    uint8_t *validity = fz_upto(in, 1) ? fz_take(in, (bit + n + 7) / 8) : NULL;
    lc_lengths l;
    int problem = lc_statistics_variable(data, size, offsets, wide, n, validity, bit, &l);
    int other = lc_sketch_variable(registers, 8, data, size, offsets, wide, n, validity, bit);
    FZ_CHECK(wild || (!problem && !other));
    if (problem) return;
    for (int64_t i = 0; i < n; i++) {
        int64_t length = lc_load_offset(offsets, wide, i + 1) - lc_load_offset(offsets, wide, i);
        if (!validity || lc_get_bit(validity, bit + i)) FZ_CHECK(l.shortest <= length && length <= l.longest);
    }
}

static void fz_target(fz_input *in) {
    int64_t what = fz_upto(in, 2);
    if (what == 0) fixed(in);
    else if (what == 1) wide_values(in);
    else variable(in);
}
