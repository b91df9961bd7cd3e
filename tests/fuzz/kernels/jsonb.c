/* Values that are found lie in their documents, and numbers are those of their bytes. */
#include "fuzz.h"
#include "json_tests.h"

#define STEPS 4
#define DOCUMENTS 5

/* {"k":[300,{"k":-5}],"x":"ab"} */
static const uint8_t sample[] = {
    0x40, 0x00, 0x00, 0x02, 0x10, 0x00, 0x00, 0x01, 0x10, 0x00, 0x00, 0x01, 0x50, 0x00, 0x00, 0x1E,
    0x10, 0x00, 0x00, 0x02, 0x6B, 0x78, 0x80, 0x00, 0x00, 0x02, 0x20, 0x00, 0x00, 0x03, 0x50, 0x00,
    0x00, 0x0F, 0x50, 0x01, 0x2C, 0x40, 0x00, 0x00, 0x01, 0x10, 0x00, 0x00, 0x01, 0x20, 0x00, 0x00,
    0x02, 0x6B, 0x40, 0xFB, 0x61, 0x62,
};

/* Documents: any bytes, or the sample again and again with a few other bytes. */
static lc_bytes fz_documents(fz_input *in, const uint8_t *offsets, int wide, int64_t n, int is_sample) {
    if (!is_sample) return fz_rest(in);
    int64_t size = lc_load_offset(offsets, wide, n);
    uint8_t *data = fz_memory(size < 0 ? 0 : size, 0);
    for (int64_t i = 0; i < size; i++) data[i] = sample[i % (int64_t)sizeof sample];
    for (int64_t k = fz_upto(in, 3); k > 0 && size > 0; k--) data[fz_upto(in, size - 1)] = (uint8_t)fz_word(in, 1);
    lc_bytes documents = {data, size < 0 ? 0 : size};
    return documents;
}

/* A number by the plain rule for one byte after the other. */
static uint64_t number_of(const uint8_t *p, int64_t size) {
    uint64_t v = size && (p[0] == 0x40) && size > 1 && p[1] >> 7 ? ~(uint64_t)0 : 0;
    for (int64_t i = 1; i < size; i++) v = v << 8 | p[i];
    return v;
}

static void check_value(const uint8_t *data, int kind, int64_t word, int64_t start, int64_t stop) {
    const uint8_t *p = data + start;
    int64_t size = stop - start;
    if (kind == LC_JSON_INTEGER) FZ_CHECK(size && size <= 9 && (uint64_t)word == number_of(p, size));
    if (kind == LC_JSON_UNSIGNED) FZ_CHECK(size == 9 && word < 0 && p[0] == 0x50);
    if (kind == LC_JSON_NULL || kind == LC_JSON_TRUE || kind == LC_JSON_FALSE) FZ_CHECK(size == 0);
    if (kind == LC_JSON_ARRAY || kind == LC_JSON_OBJECT) FZ_CHECK(size >= 4 && p[0] >> 5 == (kind == LC_JSON_ARRAY ? 4 : 2));
}

/* Run a condition of up to three tests. */
static void check_condition(fz_input *in, lc_bytes data, int64_t n, lc_json_path path, const uint8_t *kinds,
                            const int64_t *words, const int64_t *ranges) {
    uint64_t automaton[256];
    uint8_t verdicts[DOCUMENTS];
    lc_json_test tests[4];
    int64_t count = fz_upto(in, 2) + 1;
    lc_utf8_fill(automaton);
    for (int64_t i = 0; i < count; i++) {
        int64_t operation = fz_upto(in, 7) + LC_JSON_OR, first = fz_upto(in, path.n), start = fz_upto(in, 3);
        if (operation == LC_JSON_OR) operation = LC_JSON_EXISTS;
        tests[i] = (lc_json_test){operation, first, fz_upto(in, path.n - first), fz_upto(in, 2), 1 + fz_upto(in, 6),
                                  (int64_t)fz_word(in, 8), start, start + fz_upto(in, 4 - start)};
    }
    tests[count] = (lc_json_test){fz_upto(in, 1) ? LC_JSON_AND : LC_JSON_OR, 0, count, 0, 0, 0, 0, 0};
    lc_json_condition condition = {automaton, path.keys, path.steps, tests, count + 1};
    FZ_CHECK(lc_json_is_condition(&condition, path.n, 4));
    FZ_CHECK(lc_json_test_all(data, n, &condition, kinds, words, ranges, verdicts) == LC_OK);
    for (int64_t i = 0; i < n; i++) FZ_CHECK(verdicts[i] <= LC_JSON_LEFT);
}

/* Follow, count and expand values, and write what is inside as documents: it stays inside. */
static void check_values(fz_input *in, lc_bytes data, int64_t n, lc_json_path path, uint8_t *kinds, int64_t *words,
                         int64_t *ranges) {
    int64_t counts[DOCUMENTS], total = 0;
    int is_object = (int)fz_upto(in, 1);
    if (fz_upto(in, 1)) FZ_CHECK(lc_json_follow_all(data, n, path, kinds, words, ranges) == LC_OK);
    if (fz_upto(in, 1)) check_condition(in, data, n, path, kinds, words, ranges);
    FZ_CHECK(lc_json_count_all(data, n, is_object, fz_upto(in, 1), kinds, ranges, counts) == LC_OK);
    for (int64_t i = 0; i < n; i++) total += counts[i] > 0 ? counts[i] : 0;
    uint8_t *child_kinds = fz_memory(total, 0);
    int64_t *child_words = (int64_t *)fz_memory(8 * total, 0), *child_ranges = (int64_t *)fz_memory(16 * total, 0);
    FZ_CHECK(lc_json_children_all(data, n, is_object, kinds, words, ranges, counts, child_kinds, child_words, child_ranges) ==
             LC_OK);
    int64_t size = 0, *ends = (int64_t *)fz_memory(8 * (total + 1), 0);
    for (int64_t k = 0; k < total; k++) {
        FZ_CHECK(child_ranges[2 * k] >= 0 && child_ranges[2 * k] <= child_ranges[2 * k + 1]);
        FZ_CHECK(child_ranges[2 * k + 1] <= data.size);
        check_value(data.data, child_kinds[k], child_words[k], child_ranges[2 * k], child_ranges[2 * k + 1]);
        size += 8 + child_ranges[2 * k + 1] - child_ranges[2 * k];
    }
    uint8_t *out = fz_memory(size, 0);
    FZ_CHECK(lc_json_documents_all(data, total, child_kinds, child_ranges, out, size, ends) == LC_OK);
    FZ_CHECK(ends[total] <= size);
    FZ_CHECK(lc_json_texts_all(data, total, child_kinds, child_ranges, out, size, ends) == LC_OK);
    FZ_CHECK(lc_json_digits_all(data, total, child_kinds, child_words, child_ranges) == LC_OK);
}

static void fz_target(fz_input *in) {
    lc_json_step steps[STEPS];
    int64_t n = fz_upto(in, DOCUMENTS), m = fz_upto(in, STEPS);
    int wide = (int)fz_upto(in, 1), is_sample = (int)fz_upto(in, 3);
    uint8_t *keys = fz_take(in, 4);
    if (is_sample) memcpy(keys, "kxk", 4);
    for (int64_t i = 0; i < m; i++) {
        int64_t start = fz_upto(in, 4);
        steps[i] = (lc_json_step){fz_upto(in, 3) ? start : -1, start + fz_upto(in, 4 - start), fz_upto(in, 3) - 1};
        if (is_sample && fz_upto(in, 3)) steps[i].key_start = 0, steps[i].key_stop = 1;
    }
    uint8_t *offsets = fz_memory((n + 1) * (wide ? 8 : 4), (int)fz_upto(in, 3));
    int64_t at = 0;
    for (int64_t i = 0; i <= n; i++) {
        lc_store_offset(offsets, wide, i, at);
        at += i == n ? 0 : is_sample && fz_upto(in, 7) ? (int64_t)sizeof sample : fz_upto(in, 60) - (fz_upto(in, 40) == 0);
    }
    lc_bytes data = fz_documents(in, offsets, wide, n, is_sample);
    uint8_t *kinds = fz_out(in, n);
    int64_t *words = (int64_t *)fz_memory(8 * n, 0), *ranges = (int64_t *)fz_memory(16 * n, 0);
    lc_json_path path = {keys, steps, m};
    if (lc_json_find_all(data, offsets, wide, n, path, kinds, words, ranges)) return;
    for (int64_t i = 0; i < n; i++) {
        int64_t start = lc_load_offset(offsets, wide, i), stop = lc_load_offset(offsets, wide, i + 1);
        FZ_CHECK(kinds[i] <= LC_JSON_OTHER && start <= ranges[2 * i] && ranges[2 * i] <= ranges[2 * i + 1]);
        FZ_CHECK(ranges[2 * i + 1] <= stop && stop <= data.size);
        check_value(data.data, kinds[i], words[i], ranges[2 * i], ranges[2 * i + 1]);
    }
    check_values(in, data, n, path, kinds, words, ranges);
}
