/* Texts of any bytes, and of parts of JSON; their binary forms, also damaged, back to text. What was encoded decodes, and
 * its text encodes to the same bytes. */
#include "fuzz.h"
#include "json_write.h"

#define TEXTS 4
#define LONGEST 400

static uint64_t powers[2 * LC_POWERS], automaton[256];

/* Powers of ten of 64 bits: they only need to be plausible here. */
static void fill(void) {
    lc_utf8_fill(automaton);
    for (int64_t k = 0; k < LC_POWERS; k++) powers[2 * k] = (uint64_t)1 << 63 | (uint64_t)k << 32;
}

static const char *parts[] = {"[", "]", "{", "}", ",", ":", "\"a\"", "\"b\"", "\"\\u00e9\\ud83d\\ude00\\n\"", " ", "null", "true",
                              "false", "NaN", "-Infinity", "0", "-1", "300", "18446744073709551615", "-9223372036854775809",
                              "1.5e3", "0.1234567890123456789012", "-2.5E-310", "\"", "\\", "[1,[2,{\"k\":[]}]]",
                              "{\"x\":1,\"\":\"long text of a string\",\"b\":{}}", "[[[[[[[[", "{\"a\":"};

/* A text: any bytes, or parts of JSON. Returns its size. */
static int64_t any_text(fz_input *in, uint8_t *out) {
    int64_t size = 0, n = fz_upto(in, 40);
    if (fz_upto(in, 5) == 0) {
        for (; size < n; size++) out[size] = (uint8_t)fz_word(in, 1) & 0x7F;
        return size;
    }
    for (; n > 0; n--) {
        const char *part = parts[fz_upto(in, (int64_t)(sizeof parts / sizeof *parts) - 1)];
        int64_t length = (int64_t)strlen(part);
        if (size + length > LONGEST) break;
        memcpy(out + size, part, (size_t)length);
        size += length;
    }
    return size;
}

static lc_json_reader *reader(uint8_t *out, int64_t longest) {
    lc_json_reader *r = (lc_json_reader *)fz_memory(sizeof *r, 0);
    r->powers = powers;
    r->out = out;
    r->spare = fz_memory(LC_JSON_READ_BOUND(longest), 0);
    r->items = (lc_json_item *)fz_memory(LC_JSON_READ_ITEMS(longest) * (int64_t)sizeof(lc_json_item), 0);
    return r;
}

/* Decode, with more space as long as it does not suffice. Returns the texts. */
static uint8_t *decode(lc_bytes documents, const int64_t *ends, const uint8_t *skip, int64_t n, int64_t *found) {
    lc_json_writer *w = (lc_json_writer *)fz_memory(sizeof *w, 0);
    w->powers = powers;
    w->automaton = automaton;
    for (int64_t capacity = 64;; capacity *= 2) {
        w->out = fz_memory(capacity, 0);
        w->capacity = capacity;
        found[0] = 0;
        int64_t row = lc_json_write_all(documents, (const uint8_t *)ends, 1, skip, 0, n, w, found);
        if (row < 0) return NULL;
        FZ_CHECK(found[row] <= capacity);
        if (row == n) return w->out;
        FZ_CHECK(capacity < 64 * (documents.size + 64));
    }
}

/* The text of a document without numbers of unknown powers encodes to the same bytes. */
static void check_text(const uint8_t *text, int64_t size, const uint8_t *document, int64_t length) {
    for (int64_t i = 0; i + 1 < length; i++)
        if (document[i] == 0x60 || document[i] == 0x10 || document[i] == 0x30 || document[i] == 0x20) return;
    uint8_t *out = fz_memory(LC_JSON_READ_BOUND(size), 0);
    int64_t offsets[2] = {0, size}, ends[2] = {0, 0};
    lc_bytes texts = {text, size};
    FZ_CHECK(lc_json_read_all(texts, (uint8_t *)offsets, 1, NULL, 0, 1, reader(out, size), LC_JSON_READ_BOUND(size), ends) == 1);
    FZ_CHECK(ends[1] == length && memcmp(out, document, (size_t)length) == 0);
}

static void fz_target(fz_input *in) {
    if (!powers[0]) fill();
    int64_t n = fz_upto(in, TEXTS), offsets[TEXTS + 1] = {0}, ends[TEXTS + 1] = {0}, found[TEXTS + 1] = {0}, longest = 0;
    uint8_t scratch[LONGEST * TEXTS], skip[TEXTS];
    for (int64_t i = 0; i < n; i++) {
        int64_t size = any_text(in, scratch + offsets[i]);
        longest = size > longest ? size : longest;
        offsets[i + 1] = offsets[i] + size;
        skip[i] = fz_upto(in, 7) == 0;
    }
    uint8_t *text = fz_memory(offsets[n], 0);
    memcpy(text, scratch, (size_t)offsets[n]);
    int64_t capacity = fz_upto(in, 3) ? LC_JSON_READ_BOUND(offsets[n]) + 8 * n : fz_upto(in, 100);
    uint8_t *out = fz_memory(capacity, 0);
    lc_bytes texts = {text, offsets[n]};
    int64_t row = lc_json_read_all(texts, (uint8_t *)offsets, 1, skip, 0, n, reader(out, longest), capacity, ends);
    FZ_CHECK(row >= 0 && row <= n && ends[row] <= capacity);
    lc_bytes documents = {fz_memory(ends[row], 0), ends[row]};
    if (ends[row]) memcpy((uint8_t *)documents.data, out, (size_t)ends[row]);
    uint8_t *back = decode(documents, ends, skip, row, found);
    for (int64_t i = 0; i < row; i++) {
        int64_t length = ends[i + 1] - ends[i];
        FZ_CHECK(length == 0 || found[i + 1] > found[i]);
        if (length) check_text(back + found[i], found[i + 1] - found[i], documents.data + ends[i], length);
    }
    for (int64_t k = fz_upto(in, 4); k > 0 && documents.size; k--)
        ((uint8_t *)documents.data)[fz_upto(in, documents.size - 1)] = (uint8_t)fz_word(in, 1);
    decode(documents, ends, NULL, row, found);
}
