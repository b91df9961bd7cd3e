/* Pages of mini-block chunks: any bytes as chunk words and chunks, mostly with words and headers that fit. */
#include "fuzz.h"
#include "miniblock_fixed.h"
#include "miniblock_search.h"

#define MOST 6

typedef struct {
    int64_t starts[MOST + 1], firsts[MOST + 1];
    const uint8_t *data[MOST];
    lc_chunks chunks;
} page;

/* A chunk whose header names buffers that fit, each of a size its values could have. */
static uint8_t *chunk_of(fz_input *in, const lc_chunks *chunks, int64_t values, int64_t bits, int64_t size) {
    uint8_t *chunk = fz_memory(size, 8 * (int)fz_upto(in, 1));
    int64_t levels = chunks->repetition + chunks->definition, at = 2 + 2 * levels;
    memset(chunk, 0, (size_t)size);
    for (int64_t i = 0; i < size && in->size; i++) chunk[i] = (uint8_t)fz_upto(in, 255);
    if (fz_upto(in, 15) == 0) return chunk;
    for (int64_t k = 0; k < levels && 4 + 2 * k <= size; k++) lc_store_u16(chunk + 2 + 2 * k, (uint16_t)fz_upto(in, 9));
    for (int64_t b = 0; b < chunks->buffers && at + 4 <= size; b++, at += chunks->large ? 4 : 2) {
        int64_t flat = (values * bits + 7) / 8, width = fz_upto(in, bits);
        int64_t likely = fz_upto(in, 1) ? flat : bits / 8 + 128 * width;
        if (fz_upto(in, 7) == 0) likely = fz_upto(in, 600);
        if (chunks->large) lc_store_u32(chunk + at, (uint32_t)likely);
        else lc_store_u16(chunk + at, (uint16_t)likely);
    }
    return chunk;
}

static int open_page(fz_input *in, page *p, int64_t bits) {
    lc_chunks *chunks = &p->chunks;
    memset(p, 0, sizeof *p);
    chunks->large = (int)fz_upto(in, 1), chunks->buffers = 1 + fz_upto(in, 2);
    chunks->repetition = fz_upto(in, 3) == 0, chunks->definition = (int)fz_upto(in, 1);
    int64_t count = 1 + fz_upto(in, MOST - 1), size = 0, items = 0, where;
    uint8_t *words = fz_out(in, count * (chunks->large ? 4 : 2));
    for (int64_t i = 0; i < count; i++) {
        int64_t log = 1 + fz_upto(in, 10), units = fz_upto(in, 300);
        size += 8 * units + 8;
        items += i < count - 1 ? (int64_t)1 << log : 1 + fz_upto(in, (1 << log) - 1);
        if (i == count - 1) log = 0;
        if (chunks->large) lc_store_u32(words + 4 * i, (uint32_t)(units << 4 | log));
        else lc_store_u16(words + 2 * i, (uint16_t)(units << 4 | log));
    }
    chunks->table.count = count, chunks->table.items = items + (fz_upto(in, 31) == 1);
    chunks->table.starts = p->starts, chunks->table.firsts = p->firsts;
    if (lc_chunk_table_parse(words, chunks->large, size, &chunks->table, p->starts, p->firsts, &where)) return 0;
    for (int64_t i = 0; i < count; i++)
        if (fz_upto(in, 31))
            p->data[i] = chunk_of(in, chunks, p->firsts[i + 1] - p->firsts[i], bits, p->starts[i + 1] - p->starts[i]);
    chunks->data = p->data;
    return 1;
}

/* Values [a, b), which are `indices`, through a dictionary; nulls may have any. */
static void resolved(fz_input *in, const lc_chunks *chunks, const lc_value_codec *codec, int64_t a, int64_t b,
                     uint8_t *scratch, uint8_t *indices) {
    lc_dictionary dictionary = {NULL, 1 + fz_upto(in, 9), fz_upto(in, 300)};
    int64_t n = b - a, bit = fz_upto(in, 9), where, bad = -1, sound = 1;
    dictionary.entries = fz_take(in, dictionary.count * dictionary.width);
    const uint8_t *valid = fz_upto(in, 1) ? fz_take(in, (bit + n + 7) / 8) : NULL;
    uint8_t *out = fz_out(in, n * dictionary.width), *again = fz_out(in, n * dictionary.width);
    for (int64_t i = 0; i < n; i++)
        if ((!valid || lc_get_bit(valid, bit + i)) && lc_code_at(indices, codec->bits / 8, i) >= (uint64_t)dictionary.count) sound = 0;
    int problem = lc_dictionary_scan(chunks, codec, &dictionary, a, b, valid, bit, out, scratch, &where);
    int other = lc_dictionary_gather(&dictionary, indices, codec->bits, n, valid, bit, again);
    FZ_CHECK((problem == LC_OK) == sound && (other == LC_OK) == sound);
    if (sound && n) FZ_CHECK(!memcmp(out, again, (size_t)(n * dictionary.width)));
    FZ_CHECK((lc_indices_check(indices, codec->bits, n, dictionary.count, valid, bit, &bad) == LC_OK) == sound);
    for (int64_t i = 0; i < n && sound && dictionary.count; i++)
        FZ_CHECK(lc_code_at(indices, codec->bits / 8, i) < (uint64_t)dictionary.count);
}

/* Intervals whose ends are keys of values, or any. */
static lc_intervals intervals_of(fz_input *in, int bits, const uint8_t *values, int64_t n) {
    lc_intervals test = {bits, bits < 32 ? fz_upto(in, 1) : fz_upto(in, 2), 0, {{0, 0}}, {{0, 0}}};
    for (int64_t i = fz_upto(in, LC_MOST_INTERVALS); i > 0; i--) {
        uint64_t value = n && fz_upto(in, 3) ? lc_load_value(values + fz_upto(in, n - 1) * (bits / 8), bits) : fz_word(in, 8);
        uint64_t low = lc_key(value & lc_low_mask(bits), bits, (int)test.order), span = fz_word(in, (int)fz_upto(in, 8));
        uint64_t high = span > lc_low_mask(bits) - low ? lc_low_mask(bits) : low + span;
        if (test.count && (low == 0 || low - 1 <= test.high[test.count - 1].word)) continue;
        test.low[test.count] = lc_narrow_key(low), test.high[test.count++] = lc_narrow_key(high);
    }
    return test;
}

static int is_inside(const lc_intervals *test, uint64_t value) {
    uint64_t key = lc_key(value, (int)test->bits, (int)test->order);
    int found = 0;
    for (int64_t i = 0; i < test->count; i++) found |= test->low[i].word <= key && key <= test->high[i].word;
    return found;
}

/* Let a search take values for indices of a dictionary, whose entries pass by intervals or by marks. */
static void with_entries(fz_input *in, lc_chunk_search *s, lc_intervals *test) {
    s->entries = fz_upto(in, 300), test->order = LC_KEY_UNSIGNED;
    if (!fz_upto(in, 1)) return;
    uint8_t *marks = fz_memory(s->entries, 0);
    for (int64_t i = 0; i < s->entries; i++) marks[i] = (uint8_t)fz_upto(in, 1);
    s->marks = marks, test->count = s->entries > 0, test->low[0] = lc_narrow_key(0);
    uint64_t last = (uint64_t)(s->entries ? s->entries - 1 : 0);
    test->high[0] = lc_narrow_key(last < lc_low_mask(test->bits) ? last : lc_low_mask(test->bits));
}

/* Whether a value passes; *sound becomes 0 if it is an index without an entry. */
static int passes(const lc_chunk_search *s, uint64_t value, int null, int *sound) {
    if (s->codec.kind == LC_VALUE_NONE || null) return null ? s->null : s->test->count > 0;
    if (s->entries >= 0 && value >= (uint64_t)s->entries) return *sound = 0;
    return s->marks ? s->marks[value] : is_inside(s->test, value);
}

/* The search of a page whose values are known: twice, as the first one learns the ranges of chunks. */
static void searched(fz_input *in, const lc_chunks *chunks, const lc_value_codec *codec, int64_t a, int64_t b,
                     uint8_t *scratch, const uint8_t *all) {
    const lc_chunk_table *table = &chunks->table;
    int64_t items = table->items, words = table->largest / 64 + 1, where, total, bits = codec->bits;
    lc_intervals test = intervals_of(in, (int)bits, all, items);
    lc_level_codecs levels = {{LC_LEVEL_NONE, 0, 0}, {fz_upto(in, 2), 0, 1}, 1};
    if (!chunks->definition) levels.definition.kind = LC_LEVEL_NONE;
    uint8_t *nulls = chunks->definition ? fz_memory(2 * items, 0) : NULL, *kept = NULL;
    if (chunks->repetition) return;
    int damaged = lc_levels_scan(chunks, &levels, 0, table->count, NULL, nulls, items, &total, &where) != LC_OK;
    if (fz_upto(in, 1)) kept = fz_take(in, (b - a + 7) / 8);
    lc_chunk_ranges ranges = {(uint64_t *)fz_memory(8 * MOST, 0), (uint64_t *)fz_memory(8 * MOST, 0), NULL, NULL, fz_memory(MOST, 0)};
    memset(ranges.known, 0, MOST);
    lc_chunk_search s = {chunks, *codec, -1, NULL, levels.definition, &test, (int)fz_upto(in, 1), ranges, kept, scratch,
                         fz_memory(2 * table->largest, 0), (uint64_t *)fz_memory(8 * words, 0), (uint64_t *)fz_memory(8 * words, 0)};
    int64_t kind = fz_upto(in, 2);
    if (kind == 1) with_entries(in, &s, &test);
    if (kind == 2) s.codec.kind = LC_VALUE_NONE, test.count = fz_upto(in, 1), test.low[0] = lc_narrow_key(0), test.high[0] = lc_narrow_key(lc_low_mask(bits));
    for (int round = 0; round < 2; round++) {
        uint8_t *out = fz_memory((b - a + 7) / 8, 0);
        int problem = lc_chunks_search(&s, a, b, out, &where), sound = 1;
        if (damaged) continue;
        for (int64_t i = a; i < b; i++) {
            int null = nulls && lc_load_u16(nulls + 2 * i);
            int found = passes(&s, lc_load_value(all + i * (bits / 8), (int)bits), null, &sound);
            if (!problem && (!kept || lc_get_bit(kept, i - a))) FZ_CHECK(lc_get_bit(out, i - a) == found);
        }
        if (sound || !kept) FZ_CHECK((problem == LC_OK) == sound);
    }
}

/* Plain values at any address. */
static void tested(fz_input *in, int bits) {
    int64_t n = fz_upto(in, 300);
    uint8_t *values = fz_take(in, n * bits / 8);
    lc_intervals test = intervals_of(in, bits, values, n);
    uint64_t *words = (uint64_t *)fz_memory(8 * ((n + 63) / 64), 0);
    lc_wide_key low, high;
    lc_inside(values, n, &test, words);
    if (n) lc_key_range(values, n, &test, &low, &high);
    for (int64_t i = 0; i < n; i++) {
        uint64_t value = lc_load_value(values + i * (bits / 8), bits), key = lc_key(value, bits, (int)test.order);
        FZ_CHECK((int)(words[i / 64] >> (i % 64) & 1) == is_inside(&test, value) && low.word <= key && key <= high.word);
    }
}

/* Plain values of two words, most of them near an end of an interval. */
static void tested_wide(fz_input *in) {
    int64_t n = fz_upto(in, 200), words = (n + 63) / 64;
    uint8_t *values = fz_take(in, 16 * n);
    lc_intervals test = {128, fz_upto(in, 1), 0, {{0, 0}}, {{0, 0}}};
    uint64_t flip = test.order == LC_KEY_SIGNED ? (uint64_t)1 << 63 : 0, *out = (uint64_t *)fz_memory(8 * words, 0);
    lc_wide_key low = {fz_word(in, 8), fz_word(in, 8)}, high = {fz_word(in, 8), fz_word(in, 8)}, least, most;
    if (!lc_wide_less(high, low)) test.count = 1, test.low[0] = low, test.high[0] = high;
    for (int64_t i = 0; i < n; i++)
        if (fz_upto(in, 1)) lc_store_u64(values + 16 * i + 8, (fz_upto(in, 1) ? low.top : high.top) ^ flip);
    lc_inside(values, n, &test, out);
    if (n) lc_key_range(values, n, &test, &least, &most);
    for (int64_t i = 0; i < n; i++) {
        lc_wide_key key = {lc_load_u64(values + 16 * i), lc_load_u64(values + 16 * i + 8) ^ flip};
        int inside = test.count && !lc_wide_less(key, low) && !lc_wide_less(high, key);
        FZ_CHECK((int)(out[i / 64] >> (i % 64) & 1) == inside && !lc_wide_less(key, least) && !lc_wide_less(most, key));
    }
}

static void fz_target(fz_input *in) {
    page p;
    if (!fz_upto(in, 7)) {
        tested_wide(in);
        return;
    }
    int64_t bits = (int64_t)8 << fz_upto(in, 3), kind = fz_upto(in, 3), where, done;
    if (kind == LC_VALUE_SPLIT && bits < 32) bits = 32;
    if (kind == LC_VALUE_FLAT && fz_upto(in, 1)) bits = 1 + fz_upto(in, 90);
    if (!open_page(in, &p, bits)) return;
    const lc_chunks *chunks = &p.chunks;
    int64_t buffer = kind == LC_VALUE_RLE ? 0 : fz_upto(in, chunks->buffers - 1), items = chunks->table.items;
    if (kind == LC_VALUE_RLE && chunks->buffers < 2) return;
    lc_value_codec codec = {kind, bits, buffer};
    int64_t a = fz_upto(in, items), b = a + fz_upto(in, items - a), count = fz_upto(in, 50);
    int64_t *positions = fz_positions(in, count, items), at = fz_upto(in, 9);
    if (bits % 8) {
        lc_bits_scan(chunks, &codec, a, b, fz_out(in, ((b - a) * bits + at + 7) / 8), at, &where);
        lc_bits_take(chunks, &codec, positions, count, fz_out(in, (count * bits + at + 7) / 8), at, &where);
        return;
    }
    int64_t width = bits / 8;
    uint8_t *scratch = fz_memory(chunks->table.largest * width, 0), *all = fz_out(in, items * width);
    uint8_t *some = fz_out(in, (b - a) * width), *taken = fz_out(in, count * width);
    int problem = lc_fixed_scan(chunks, &codec, 0, items, all, scratch, &where);
    int other = lc_fixed_scan(chunks, &codec, a, b, some, scratch, &where);
    int third = lc_fixed_take(chunks, &codec, positions, count, taken, scratch, INT64_MAX, &done, &where);
    if (problem) return;
    FZ_CHECK(!other && !third && done == count && !memcmp(some, all + a * width, (size_t)((b - a) * width)));
    for (int64_t i = 0; i < count; i++)
        FZ_CHECK(!memcmp(taken + i * width, all + positions[i] * width, (size_t)width));
    if (!lc_fl_bits_known(bits)) return; /* neither indices nor numbers */
    resolved(in, chunks, &codec, a, b, scratch, some);
    searched(in, chunks, &codec, a, b, scratch, all);
    tested(in, (int)bits);
}
