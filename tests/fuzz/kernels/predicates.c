/* Predicates against plain loops: texts in strings, decimals, members of sets. */
#include "fuzz.h"
#include "decimal_compare.h"
#include "membership.h"
#include "positions.h"
#include "text_search.h"

static int found_in(const uint8_t *p, int64_t n, lc_bytes text) {
    for (int64_t at = 0; at + text.size <= n; at++)
        if (!memcmp(p + at, text.data, (size_t)text.size)) return 1;
    return 0;
}

static void search(fz_input *in) {
    int wide = (int)fz_upto(in, 1);
    int64_t count = fz_upto(in, 60), size = fz_upto(in, 300), width = wide ? 8 : 4;
    lc_bytes text = {NULL, 1 + fz_upto(in, 10)};
    uint8_t *ends = fz_out(in, (count + 1) * width), *out = fz_out(in, (count + 7) / 8);
    int64_t at = 0;
    for (int64_t i = 0; i <= count; i++) {
        lc_store_offset(ends, wide, i, at);
        at += fz_upto(in, 12) - (fz_upto(in, 40) == 40);
    }
    text.data = fz_take(in, text.size);
    uint8_t *data = fz_take(in, size);
    lc_strings s = {data, size, ends, wide, count};
    memset(out, 0, (size_t)((count + 7) / 8));
    int sound = 1;
    for (int64_t i = 0; i < count; i++) {
        int64_t begin = lc_load_offset(ends, wide, i), end = lc_load_offset(ends, wide, i + 1);
        sound &= begin >= 0 && begin <= end && end <= size;
    }
    int problem = lc_strings_containing(s, text, out);
    FZ_CHECK(!sound || problem == LC_OK);
    for (int64_t i = 0; sound && i < count; i++) {
        int64_t begin = lc_load_offset(ends, wide, i), end = lc_load_offset(ends, wide, i + 1);
        FZ_CHECK(lc_get_bit(out, i) == found_in(data + begin, end - begin, text));
    }
    for (int place = LC_TEXT_PREFIX; place <= LC_TEXT_WHOLE; place++)
        FZ_CHECK((lc_strings_with(s, text, place, out) == LC_OK) == (sound || count == 0));
}

static void decimals(fz_input *in) {
    int words = fz_upto(in, 1) ? 4 : 2, order = (int)fz_upto(in, 2), flip = (int)fz_upto(in, 1);
    int64_t n = fz_upto(in, 130);
    uint64_t bound[4];
    for (int w = 0; w < 4; w++) bound[w] = fz_word(in, 8);
    uint8_t *values = fz_take(in, n * 8 * words), *out = fz_out(in, (n + 7) / 8);
    lc_decimals_compare(values, n, bound, words, order, flip, out);
    for (int64_t i = 0; i < n; i++) {
        int sign = 0;
        for (int w = words - 1; w >= 0 && !sign; w--) {
            uint64_t v = lc_load_u64(values + 8 * (words * i + w)), top = w == words - 1 ? 1ULL << 63 : 0;
            if (v != bound[w]) sign = (v ^ top) < (bound[w] ^ top) ? -1 : 1;
        }
        int holds = order == LC_EQUAL ? sign == 0 : order == LC_LESS ? sign < 0 : sign <= 0;
        FZ_CHECK(lc_get_bit(out, i) == (holds != flip));
    }
}

static void marks(fz_input *in) {
    int64_t width = (int64_t)1 << fz_upto(in, 3), entries = fz_upto(in, 300);
    uint8_t *known = fz_take(in, entries);
    lc_bytes codes = fz_rest(in);
    int64_t n = codes.size / width;
    uint8_t *out = fz_out(in, (n + 7) / 8);
    lc_marked(codes.data, width, n, known, entries, out);
    int64_t at[300], room = fz_upto(in, 300), set = lc_bits_count(out, 0, n);
    for (int64_t i = 0; i < n; i++) {
        uint64_t code = lc_load_width(codes.data, width, i);
        FZ_CHECK(lc_get_bit(out, i) == (code < (uint64_t)entries && known[code] != 0));
    }
    int64_t found = lc_bits_positions(out, n, at, room);
    FZ_CHECK(found == (set > room ? -1 : set));
    for (int64_t i = 0; i < found; i++) FZ_CHECK(lc_get_bit(out, at[i]) && (i == 0 || at[i] > at[i - 1]));
}

static void members(fz_input *in) {
    int64_t width = (int64_t)1 << fz_upto(in, 3), count = fz_upto(in, 20);
    uint8_t *keys = fz_take(in, width * count);
    uint64_t slots[64];
    int64_t low, high;
    lc_integer_set set = {0, 0, NULL, slots, 64 - 6, 0, {fz_word(in, 8), fz_word(in, 8) | 1}};
    uint8_t *seen = fz_out(in, count + 1);
    memset(seen, 0, (size_t)count + 1);
    set.none = lc_integer_missing(keys, width, count, seen);
    lc_integer_bounds(keys, width, count, &low, &high);
    for (int i = 0; i < 64; i++) slots[i] = set.none;
    for (int64_t i = 0; i < count; i++) {
        uint64_t key = lc_load_signed(keys, width, i);
        FZ_CHECK(key != set.none && low <= (int64_t)key && (int64_t)key <= high);
    }
    lc_integers_add(&set, keys, width, count);
    lc_bytes values = fz_rest(in);
    int64_t n = values.size / width;
    uint8_t *out = fz_out(in, (n + 7) / 8);
    lc_integers_among(&set, values.data, width, n, out);
    for (int64_t i = 0; i < n; i++) {
        int known = 0;
        for (int64_t k = 0; k < count; k++) known |= !memcmp(values.data + width * i, keys + width * k, (size_t)width);
        FZ_CHECK(lc_get_bit(out, i) == known);
    }
}

static void fz_target(fz_input *in) {
    switch (fz_upto(in, 3)) {
    case 0: search(in); break;
    case 1: decimals(in); break;
    case 2: marks(in); break;
    default: members(in); break;
    }
}
