/* Conditions of JSON paths on values that jsonb.h found.
 *
 * A condition is a program: each test puts a verdict on a stack, and AND and OR replace several verdicts by one. A
 * comparison takes all values at a path from the value, which are the elements of an array, or else the value itself. Its
 * verdict is that of the first of them that does not compare as false. A value that these functions do not understand is
 * not an error: its verdict is LC_JSON_LEFT, and the caller looks at it again. */
#ifndef LANCECODEC_JSON_TESTS_H
#define LANCECODEC_JSON_TESTS_H

#include "jsonb.h"
#include "utf8.h"

/* Verdicts that the stack of a program holds. */
#define LC_JSON_VERDICTS 64
/* Levels of arrays that one comparison looks into. */
#define LC_JSON_LEVELS 8

enum lc_json_verdict { LC_JSON_REFUTED = 0, LC_JSON_MET, LC_JSON_UNKNOWN, LC_JSON_LEFT };

enum lc_json_operation {
    LC_JSON_EXISTS = 0,
    LC_JSON_AND,
    LC_JSON_OR,
    LC_JSON_EQUAL,
    LC_JSON_UNEQUAL,
    LC_JSON_LESS,
    LC_JSON_LESS_OR_EQUAL,
    LC_JSON_GREATER,
    LC_JSON_GREATER_OR_EQUAL,
    LC_JSON_STARTS_WITH
};

/* A test: of the value at steps [first, first + n) against a constant of some kind, whose number is `word`, and whose text
 * is between two places of the texts. Arrays are replaced by their elements `levels` times. AND and OR combine n verdicts. */
typedef struct {
    int64_t operation, first, n, levels, kind, word, text_start, text_stop;
} lc_json_test;

typedef struct {
    const uint64_t *automaton;
    const uint8_t *texts;
    const lc_json_step *steps;
    const lc_json_test *tests;
    int64_t n;
} lc_json_condition;

/* -- scalars */

LC_INLINE int lc_json_order(int is_less, int is_greater) { return is_less ? -1 : is_greater; }

LC_INLINE double lc_json_double(int64_t word) {
    double v;
    memcpy(&v, &word, sizeof v);
    return v;
}

/* Compare an integer with a float exactly; 2 if that is not a number. */
LC_INLINE int lc_json_order_mixed(int kind, int64_t word, double v) {
    if (v != v) return 2;
    if (kind == LC_JSON_UNSIGNED) {
        if (v >= 18446744073709551616.0 || v < 9223372036854775808.0) return v < 9223372036854775808.0 ? 1 : -1;
        return lc_json_order((uint64_t)word < (uint64_t)v, (uint64_t)word > (uint64_t)v);
    }
    if (v >= 9223372036854775808.0 || v < -9223372036854775808.0) return v < 0 ? 1 : -1;
    int64_t whole = (int64_t)v;
    if (word != whole) return word < whole ? -1 : 1;
    return lc_json_order(v > (double)whole, v < (double)whole);
}

/* Compare two numbers: -1, 0 or 1, or 2 if one is not a number. */
LC_INLINE int lc_json_order_numbers(int kind, int64_t word, int other_kind, int64_t other) {
    if (kind == LC_JSON_FLOAT && other_kind == LC_JSON_FLOAT) {
        double a = lc_json_double(word), b = lc_json_double(other);
        return a != a || b != b ? 2 : lc_json_order(a < b, a > b);
    }
    if (other_kind == LC_JSON_FLOAT) return lc_json_order_mixed(kind, word, lc_json_double(other));
    if (kind == LC_JSON_FLOAT) {
        int order = lc_json_order_mixed(other_kind, other, lc_json_double(word));
        return order == 2 ? 2 : -order;
    }
    if (kind != other_kind) return kind == LC_JSON_UNSIGNED ? 1 : -1;
    if (kind == LC_JSON_UNSIGNED) return lc_json_order((uint64_t)word < (uint64_t)other, (uint64_t)word > (uint64_t)other);
    return lc_json_order(word < other, word > other);
}

/* Whether n bytes are UTF-8. */
LC_INLINE int lc_json_is_text(const uint64_t *automaton, const uint8_t *p, int64_t n) {
    uint8_t any = 0;
    for (int64_t i = 0; i < n; i++) any |= lc_once_u8(p + i);
    return any < 0x80 || lc_utf8_find_invalid(automaton, p, n) < 0;
}

LC_INLINE int lc_json_order_texts(const uint8_t *p, int64_t n, const uint8_t *q, int64_t m) {
    LC_TOUCH(p, (size_t)n);
    int order = n && m ? memcmp(p, q, (size_t)(n < m ? n : m)) : 0;
    return order ? lc_json_order(order < 0, order > 0) : lc_json_order(n < m, n > m);
}

LC_INLINE int lc_json_verdict_of(int64_t operation, int order) {
    if (order == 2) return operation == LC_JSON_UNEQUAL;
    if (operation == LC_JSON_EQUAL) return order == 0;
    if (operation == LC_JSON_UNEQUAL) return order != 0;
    if (operation == LC_JSON_LESS) return order < 0;
    if (operation == LC_JSON_LESS_OR_EQUAL) return order <= 0;
    return operation == LC_JSON_GREATER ? order > 0 : order >= 0;
}

/* What kinds can be compared with each other. */
LC_INLINE int lc_json_family(int kind) {
    if (kind == LC_JSON_UNSIGNED || kind == LC_JSON_FLOAT) return LC_JSON_INTEGER;
    return kind == LC_JSON_TRUE ? LC_JSON_FALSE : kind;
}

LC_INLINE int lc_json_test_text(const lc_json_condition *c, const lc_json_test *test, const uint8_t *p, int64_t n) {
    const uint8_t *text = c->texts + test->text_start;
    int64_t size = test->text_stop - test->text_start;
    int order = lc_json_order_texts(p, n, text, size);
    if (order && !lc_json_is_text(c->automaton, p, n)) return LC_JSON_LEFT;
    if (test->operation != LC_JSON_STARTS_WITH) return lc_json_verdict_of(test->operation, order);
    return n >= size && lc_json_order_texts(p, size, text, size) == 0;
}

/* Whether the payload of a float is one that text does not have, and that has payloads of its own. */
LC_INLINE int lc_json_is_odd_float(int64_t word, int64_t size) { return size == 9 && (word >> 52 & 0x7FF) == 0x7FF; }

/* Compare one value with the constant of a test. */
LC_INLINE int lc_json_test_value(const lc_json_condition *c, const lc_json_test *test, const uint8_t *data, int kind,
                                 int64_t word, const lc_json_value *value) {
    int64_t size = value->stop - value->start;
    if (kind == LC_JSON_OTHER || (kind == LC_JSON_FLOAT && lc_json_is_odd_float(word, size))) return LC_JSON_LEFT;
    if (kind == LC_JSON_ARRAY || kind == LC_JSON_OBJECT) return LC_JSON_UNKNOWN;
    int family = lc_json_family(kind);
    if (family != lc_json_family((int)test->kind)) {
        if (kind == LC_JSON_STRING && !lc_json_is_text(c->automaton, data + value->start, size)) return LC_JSON_LEFT;
        return test->operation == LC_JSON_UNEQUAL ? LC_JSON_MET : LC_JSON_UNKNOWN;
    }
    if (kind == LC_JSON_STRING) return lc_json_test_text(c, test, data + value->start, size);
    if (test->operation == LC_JSON_STARTS_WITH) return LC_JSON_UNKNOWN;
    if (family == LC_JSON_INTEGER)
        return lc_json_verdict_of(test->operation, lc_json_order_numbers(kind, word, (int)test->kind, test->word));
    if (kind == LC_JSON_NULL)
        return test->operation == LC_JSON_EQUAL || test->operation == LC_JSON_LESS_OR_EQUAL ||
               test->operation == LC_JSON_GREATER_OR_EQUAL;
    return lc_json_verdict_of(test->operation, lc_json_order(kind < test->kind, kind > test->kind));
}

/* -- values at a path */

static int lc_json_test_elements(const lc_json_condition *c, const lc_json_test *test, const uint8_t *data,
                                 const lc_json_value *array, int64_t levels);

/* Compare a value, or its elements if it is an array and there are levels left. */
static inline int lc_json_test_level(const lc_json_condition *c, const lc_json_test *test, const uint8_t *data, int kind,
                                     int64_t word, const lc_json_value *value, int64_t levels) {
    if (levels && kind == LC_JSON_ARRAY) return lc_json_test_elements(c, test, data, value, levels);
    if (levels && kind == LC_JSON_OBJECT && lc_json_count(data, 1, value->start, value->stop) < 0) return LC_JSON_LEFT;
    return lc_json_test_value(c, test, data, kind, word, value);
}

/* Compare the elements of an array. All are looked at, since each could be one that is left. */
static int lc_json_test_elements(const lc_json_condition *c, const lc_json_test *test, const uint8_t *data,
                                 const lc_json_value *array, int64_t levels) {
    int verdict = LC_JSON_REFUTED;
    int64_t number = (array->stop - array->start) / 4 - 1;
    if (number < 0) return LC_JSON_LEFT;
    int64_t count = lc_json_word(data + array->start) & 0x1FFFFFFFu, at = array->start + 4 * (1 + count);
    if (count > number) return LC_JSON_LEFT;
    for (int64_t i = 1; i <= count; i++) {
        uint32_t entry = lc_json_word(data + array->start + 4 * i);
        lc_json_value value = {entry >> 28, at, at + (entry & 0x0FFFFFFFu)};
        uint64_t word = 0;
        if (value.stop > array->stop) return LC_JSON_LEFT;
        int kind = lc_json_classify(data, &value, &word);
        int found = lc_json_test_level(c, test, data, kind, (int64_t)word, &value, levels - 1);
        if (found == LC_JSON_LEFT) return LC_JSON_LEFT;
        if (verdict == LC_JSON_REFUTED) verdict = found;
        at = value.stop;
    }
    return verdict;
}

/* Run one test from a value whose kind and number are known. */
static inline int lc_json_run_test(const lc_json_condition *c, const lc_json_test *test, const uint8_t *data, int kind,
                                   int64_t known, lc_json_value value) {
    lc_json_path path = {c->texts, c->steps + test->first, test->n};
    uint64_t word = (uint64_t)known;
    if (test->n) word = 0, kind = lc_json_follow_path(data, &path, &value, &word);
    if (kind == LC_JSON_OTHER) return LC_JSON_LEFT;
    if (test->operation == LC_JSON_EXISTS) return kind != LC_JSON_MISSING;
    if (kind == LC_JSON_MISSING) return LC_JSON_REFUTED;
    return lc_json_test_level(c, test, data, kind, (int64_t)word, &value, test->levels);
}

/* Combine n verdicts: unknown if any is, else whether all or any are met. */
LC_INLINE uint8_t lc_json_combine(const uint8_t *verdicts, int64_t n, int is_and) {
    int any = 0, all = 1;
    for (int64_t i = 0; i < n; i++) {
        if (verdicts[i] == LC_JSON_UNKNOWN) return LC_JSON_UNKNOWN;
        any |= verdicts[i] == LC_JSON_MET;
        all &= verdicts[i] == LC_JSON_MET;
    }
    return (uint8_t)(is_and ? all : any);
}

/* Return the verdict of a condition about a value. */
static inline uint8_t lc_json_run(const lc_json_condition *c, const uint8_t *data, int kind, int64_t word,
                                  const lc_json_value *value) {
    uint8_t stack[LC_JSON_VERDICTS];
    int64_t depth = 0;
    for (int64_t i = 0; i < c->n; i++) {
        const lc_json_test *test = &c->tests[i];
        if (test->operation == LC_JSON_AND || test->operation == LC_JSON_OR) {
            depth -= test->n;
            stack[depth] = lc_json_combine(stack + depth, test->n, test->operation == LC_JSON_AND);
        } else {
            stack[depth] = (uint8_t)lc_json_run_test(c, test, data, kind, word, *value);
            if (stack[depth] == LC_JSON_LEFT) return LC_JSON_LEFT;
        }
        depth++;
    }
    return stack[0];
}

/* Whether a program keeps to its steps, texts and stack, and leaves one verdict. */
static inline int lc_json_is_condition(const lc_json_condition *c, int64_t n_steps, int64_t n_texts) {
    int64_t depth = 0;
    for (int64_t i = 0; i < c->n; i++) {
        const lc_json_test *test = &c->tests[i];
        if (test->operation < LC_JSON_EXISTS || test->operation > LC_JSON_STARTS_WITH || test->n < 0) return 0;
        if (test->operation == LC_JSON_AND || test->operation == LC_JSON_OR) {
            if (test->n < 1 || test->n > depth) return 0;
            depth -= test->n;
        } else {
            if (test->first < 0 || test->first > n_steps || test->n > n_steps - test->first) return 0;
            if (test->text_start < 0 || test->text_start > test->text_stop || test->text_stop > n_texts) return 0;
            if (test->kind < LC_JSON_NULL || test->kind > LC_JSON_TRUE) return 0;
            if (test->levels < 0 || test->levels > LC_JSON_LEVELS) return 0;
        }
        if (++depth > LC_JSON_VERDICTS) return 0;
    }
    return depth == 1;
}

/* Run a condition for n values that were found. Missing ones do not meet it, and those that are not known are left. */
static inline int lc_json_test_all(lc_bytes data, int64_t n, const lc_json_condition *c, const uint8_t *kinds,
                                   const int64_t *words, const int64_t *ranges, uint8_t *verdicts) {
    for (int64_t i = 0; i < n; i++) {
        if (!lc_json_is_range(ranges + 2 * i, data.size)) return LC_BAD_OFFSETS;
        lc_json_value value = {lc_json_entry_kind(kinds[i]), ranges[2 * i], ranges[2 * i + 1]};
        verdicts[i] = kinds[i] == LC_JSON_MISSING ? LC_JSON_REFUTED : LC_JSON_LEFT;
        if (kinds[i] != LC_JSON_MISSING && kinds[i] < LC_JSON_OTHER)
            verdicts[i] = lc_json_run(c, data.data, kinds[i], words[i], &value);
    }
    return LC_OK;
}

#endif
