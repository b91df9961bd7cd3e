/* Substring search: sorted suffixes are in order, trees of texts find what is in them, any bytes as trees and positions. */
#include "substring_search.h"
#include "suffix_array.h"
#include "fuzz.h"

#define MOST 400

/* Documents joined to a text; returns its size. */
static int64_t joined(fz_input *in, uint8_t **text, uint8_t **starts, int64_t *documents) {
    int64_t n = 1 + fz_upto(in, 6), at = 0, symbols = 1 + fz_upto(in, 255);
    int wide = (int)fz_upto(in, 1);
    uint8_t *offsets = fz_out(in, (n + 1) * (wide ? 8 : 4));
    for (int64_t i = 0; i <= n; i++) lc_store_offset(offsets, wide, i, at), at += i < n ? fz_upto(in, MOST / 8) : 0;
    uint8_t *data = fz_take(in, at);
    for (int64_t i = 0; i < at; i++) data[i] = (uint8_t)(data[i] % symbols);
    int64_t size = at + n + 1;
    *text = fz_memory(size, 0), *starts = fz_out(in, 8 * n), *documents = n;
    lc_bytes values = {data, at}, out = {*text, size}, less = {*text, size - 1};
    FZ_CHECK(lc_texts_join(values, offsets, wide, n, 254, 32, less) == -LC_NO_SPACE);
    FZ_CHECK(lc_texts_join(values, offsets, wide, n, 254, 32, out) == size);
    for (int64_t i = 0; i < n; i++) lc_store_u64(*starts + 8 * i, (uint64_t)(lc_load_offset(offsets, wide, i) + i));
    lc_store_offset(offsets, wide, fz_upto(in, n), (int64_t)fz_word(in, wide ? 8 : 2) - 9);
    lc_texts_join(values, offsets, wide, n, 254, 32, (lc_bytes){fz_memory(size, 0), size});
    return size;
}

static int32_t *ordered(const uint8_t *text, int64_t size) {
    int32_t *sa = (int32_t *)fz_memory(4 * size, 0);
    FZ_CHECK(lc_suffix_array(text, size, sa) == LC_OK);
    for (int64_t i = 0; i < size; i++) {
        FZ_CHECK(sa[i] >= 0 && sa[i] < size);
        FZ_CHECK(!i || strcmp((const char *)text + sa[i - 1], (const char *)text + sa[i]) < 0);
    }
    return sa;
}

static lc_fm_parts parted(fz_input *in, const uint8_t *text, const int32_t *sa, int64_t size, int64_t rate) {
    lc_fm_parts parts;
    lc_tree tree, again;
    int64_t counts[256], sizes[LC_TREE_NODES], words = 0, samples = (size - 1) / rate + 1;
    uint8_t *bytes = fz_out(in, size), *spare = fz_out(in, size), *shape = fz_memory(LC_TREE_BYTES, 0);
    lc_transform(text, sa, size, bytes);
    lc_count_bytes(bytes, size, counts);
    lc_tree_build(counts, &tree);
    parts.tree = (lc_bytes){shape, lc_tree_write(&tree, shape)};
    FZ_CHECK(lc_tree_read(parts.tree, &again) == LC_OK && again.count == tree.count);
    FZ_CHECK(!memcmp(again.child, tree.child, (size_t)tree.count * sizeof *tree.child));
    lc_tree_sizes(&tree, counts, sizes);
    uint8_t *sized = fz_out(in, 8 * (int64_t)tree.count), *known = fz_out(in, 8 * samples);
    for (int32_t k = 0; k < tree.count; k++) words += (sizes[k] + 63) / 64, lc_store_u64(sized + 8 * k, (uint64_t)sizes[k]);
    uint8_t *bits = fz_out(in, 8 * words);
    uint64_t *ranks = (uint64_t *)fz_memory(8 * words, 0);
    lc_tree_fill(&tree, sizes, bytes, spare, bits);
    lc_block_ranks(bits, words, 1 + fz_upto(in, 3), ranks);
    for (int64_t i = 0; i < samples; i++) lc_store_u64(known + 8 * i, (uint64_t)sa[i * rate]);
    parts.sizes = (lc_bytes){sized, 8 * (int64_t)tree.count};
    parts.words = (lc_bytes){bits, 8 * words};
    parts.known = (lc_bytes){known, 8 * samples};
    return parts;
}

/* The documents that end at the separators, in the order of their suffixes. */
static lc_bytes owners_of(fz_input *in, const uint8_t *text, const int32_t *sa, int64_t size, int64_t documents) {
    uint8_t *owners = fz_out(in, 2 * documents), *next = owners;
    for (int64_t i = 0; i < size; i++) {
        if (text[sa[i]] != 255) continue;
        uint16_t before = 0;
        for (int32_t k = 0; k < sa[i]; k++) before += text[k] == 255;
        lc_store_u16(next, before);
        next += 2;
    }
    return (lc_bytes){owners, 2 * documents};
}

/* The number of documents with a pattern. */
static int64_t expected(const uint8_t *text, const uint8_t *starts, int64_t documents, const uint8_t *pattern, int64_t n) {
    int64_t found = 0;
    for (int64_t d = 0; d < documents; d++) {
        const uint8_t *at = text + lc_load_u64(starts + 8 * d);
        int has = 0;
        for (; *at != 255 && !has; at++) has = !strncmp((const char *)at, (const char *)pattern, (size_t)n);
        found += has;
    }
    return found;
}

static void searched(fz_input *in, lc_fm *fm, const uint8_t *text, const uint8_t *starts, int64_t size) {
    uint64_t *out = (uint64_t *)fz_memory(8 * fm->documents, 0);
    uint8_t *whole = fz_out(in, size);
    FZ_CHECK(lc_fm_text(fm, whole) == LC_OK && !memcmp(whole, text, (size_t)size));
    for (int k = 0; k < 6; k++) {
        int64_t at = fz_upto(in, size - 1), n = 0, most = 1 + fz_upto(in, 5);
        while (n < most && text[at + n] != 255 && text[at + n]) n++;
        if (!n) continue;
        lc_fm_rows rows = lc_fm_find(fm, text + at, n);
        FZ_CHECK(rows.stop > rows.start);
        FZ_CHECK(lc_fm_locate(fm, rows, out) == expected(text, starts, fm->documents, text + at, n));
    }
    uint8_t other[2] = {(uint8_t)fz_upto(in, 255), (uint8_t)fz_upto(in, 255)};
    lc_fm_locate(fm, lc_fm_find(fm, other, 2), out);
    lc_fm_rows any = {(int64_t)fz_word(in, 8), (int64_t)fz_word(in, 8)};
    lc_fm_locate(fm, any, out);
}

static void damage(fz_input *in, lc_bytes *part) {
    part->data = fz_damaged(in, part->data, part->size);
    if (fz_upto(in, 7) == 0 && part->size) part->size -= 1 + fz_upto(in, part->size - 1);
}

static void texts(fz_input *in) {
    uint8_t *text, *starts;
    int64_t documents, size = joined(in, &text, &starts, &documents), rate = 1 + fz_upto(in, 40);
    int32_t *sa = ordered(text, size);
    lc_fm_parts parts = parted(in, text, sa, size, rate);
    parts.names = parts.starts = (lc_bytes){starts, 8 * documents};
    parts.owners = fz_upto(in, 1) ? owners_of(in, text, sa, size, documents) : (lc_bytes){NULL, 0};
    lc_fm fm;
    FZ_CHECK(lc_fm_open(&fm, size, rate, parts) == LC_OK && lc_fm_way(&fm) >= 1);
    searched(in, &fm, text, starts, size);
    lc_fm_close(&fm);
    damage(in, &parts.tree), damage(in, &parts.sizes), damage(in, &parts.words);
    damage(in, &parts.known), damage(in, &parts.owners);
    if (fz_upto(in, 3) == 0) rate = (int64_t)fz_word(in, 8);
    if (lc_fm_open(&fm, size, rate, parts) == LC_OK) {
        uint64_t *out = (uint64_t *)fz_memory(8 * documents, 0);
        lc_fm_text(&fm, fz_out(in, size));
        for (int k = 0; k < 3; k++) lc_fm_locate(&fm, lc_fm_find(&fm, text + fz_upto(in, size - 1), 1), out);
        lc_fm_locate(&fm, (lc_fm_rows){0, size}, out);
    }
    lc_fm_close(&fm);
}

static void trees(fz_input *in) {
    lc_tree tree;
    lc_tree_paths paths;
    lc_bytes data = fz_rest(in);
    if (lc_tree_read(data, &tree)) return;
    uint8_t *again = fz_memory(LC_TREE_BYTES, 0);
    FZ_CHECK(lc_tree_write(&tree, again) == data.size && !memcmp(again, data.data, (size_t)data.size));
    FZ_CHECK(lc_tree_trace(&tree, &paths) == LC_OK);
    for (int32_t i = 0; i < paths.at[256]; i++) FZ_CHECK(paths.steps[i] / 2 < tree.count);
    free(paths.steps);
}

/* Counts that grow like Fibonacci's numbers make the longest paths. */
static void long_paths(fz_input *in) {
    int64_t counts[256] = {0}, a = 1, b = 1;
    lc_tree tree;
    lc_tree_paths paths;
    for (int64_t n = fz_upto(in, 70), c = 0; c < n; c++) {
        counts[c] = a + fz_upto(in, 1);
        int64_t next = a + b;
        a = b, b = next;
    }
    lc_tree_build(counts, &tree);
    FZ_CHECK(lc_tree_trace(&tree, &paths) == LC_OK);
    for (int32_t c = 0; c < 256; c++) {
        FZ_CHECK(paths.at[c + 1] - paths.at[c] <= LC_CODE_BITS);
        FZ_CHECK(!tree.count || (counts[c] > 0) == (paths.at[c + 1] > paths.at[c]));
    }
    free(paths.steps);
}

static void digits(fz_input *in) {
    int64_t n = fz_upto(in, 30);
    uint8_t *text = fz_take(in, 2 * n), *out = fz_out(in, n);
    for (int64_t i = 0; i < 2 * n && fz_upto(in, 9); i++) text[i] = (uint8_t) "0123456789abcdefABCDEF"[text[i] % 22];
    if (lc_hex_read(text, n, out)) return;
    for (int64_t i = 0; i < 2 * n; i++) FZ_CHECK(lc_hex_digit(text[i]) == (i % 2 ? out[i / 2] & 15 : out[i / 2] >> 4));
}

static void fz_target(fz_input *in) {
    switch (fz_upto(in, 7)) {
        case 0: trees(in); break;
        case 1: long_paths(in); break;
        case 2: digits(in); break;
        default: texts(in);
    }
}
