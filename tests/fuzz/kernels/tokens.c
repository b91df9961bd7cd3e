/* Tokens of texts: codes stand for the bytes of tokens, runs are those of a plain loop, any offsets and bytes. */
#include "fuzz.h"
#include "tokens.h"

static int known(const lc_token_table *t, int32_t code, const uint8_t *p, int64_t n) {
    int64_t begin = lc_token_begin(t, code);
    return t->ends[code] - begin == n && (n == 0 || !memcmp(t->bytes + begin, p, (size_t)n));
}

/* The runs of bytes of one text that are letters, where all characters have one byte. */
static void check_runs(const lc_token_table *t, const lc_alphabet *a, lc_bytes text, int64_t first,
                       const lc_found_tokens *f, int64_t last) {
    int32_t position = 0;
    for (int64_t at = 0; at < text.size;) {
        int64_t end = at;
        uint8_t run[300];
        while (end < text.size && a->kinds[text.data[end]] == 1) run[end - at] = f->fold[text.data[end]], end++;
        if (end > at) {
            if (end - at < f->longest) {
                FZ_CHECK(first < last && f->positions[first] == position);
                FZ_CHECK(known(t, f->codes[first], run, end - at));
                first++;
            }
            position++;
        }
        at = end + 1;
    }
    FZ_CHECK(first == last);
}

static void add(fz_input *in, lc_token_table *t, const lc_alphabet *a, lc_texts *texts, int ascii) {
    int64_t room = fz_upto(in, 700);
    lc_found_tokens f = {.longest = fz_upto(in, 12), .room = room};
    f.codes = (int32_t *)fz_memory(4 * room, 0), f.positions = (int32_t *)fz_memory(4 * room, 0);
    f.ends = (int64_t *)fz_memory(8 * texts->n, 0);
    lc_tokens_fold(&f, (int)fz_upto(in, 1));
    int kind = (int)fz_upto(in, 2), problem;
    if (kind == 0) problem = lc_tokens_runs(t, a, texts, &f);
    else if (kind == 1) problem = lc_tokens_grams(t, texts, fz_upto(in, 4), fz_upto(in, 5), (int)fz_upto(in, 1), &f);
    else problem = lc_tokens_whole(t, texts, &f);
    if (problem) return;
    for (int64_t i = 0; i < texts->n; i++) {
        int64_t first = i ? f.ends[i - 1] : 0;
        FZ_CHECK(first <= f.ends[i] && f.ends[i] <= f.count && f.count <= room);
        for (int64_t k = first; k < f.ends[i]; k++) FZ_CHECK(f.codes[k] >= 0 && f.codes[k] < t->count);
        lc_bytes text;
        FZ_CHECK(!lc_text_at(texts, i, &text));
        if (kind == 0 && ascii) check_runs(t, a, text, first, &f, f.ends[i]);
    }
    FZ_CHECK(lc_tokens_memory(t) > t->size);
}

static void fz_target(fz_input *in) {
    static lc_alphabet alphabet;
    int32_t ranges[4] = {(int32_t)fz_upto(in, 80), 90, 0xC0, (int32_t)(0xC0 + fz_upto(in, 0x10000))};
    lc_alphabet_fill(&alphabet, ranges, 2);
    lc_token_table table;
    lc_secret secret = {fz_word(in, 8), fz_word(in, 8)};
    FZ_CHECK(!lc_tokens_open(&table, secret));
    for (int round = 0; round < 3; round++) {
        int64_t n = fz_upto(in, 20), size = fz_upto(in, 250), at = fz_upto(in, 3);
        int wide = (int)fz_upto(in, 1), ascii = (int)fz_upto(in, 1);
        uint8_t *offsets = fz_out(in, (n + 1) * (wide ? 8 : 4));
        for (int64_t i = 0; i <= n; i++) {
            lc_store_offset(offsets, wide, i, at);
            at += fz_upto(in, 25) - (fz_upto(in, 90) == 90);
        }
        uint8_t *data = fz_take(in, size);
        for (int64_t i = 0; i < size && ascii; i++) data[i] &= 0x7F;
        lc_texts texts = {{data, size}, offsets, wide, fz_upto(in, 1) ? fz_take(in, (n + 7) / 8) : NULL, 0, n};
        add(in, &table, &alphabet, &texts, ascii);
    }
    lc_tokens_close(&table);
}
