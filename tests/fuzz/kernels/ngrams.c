/* Tokens of texts against a plain loop, and their grouping. */
#include "fuzz.h"
#include "ngrams.h"

static int64_t digit(uint8_t c, int folded) {
    if (c >= '0' && c <= '9') return c - '0' + 1;
    if (c >= 'a' && c <= 'z') return c - 'a' + 11;
    if (c >= 'A' && c <= 'Z') return folded ? (uint8_t)(c - 'a' + 11) : c - 'A' + 11;
    return -1;
}

/* Whether a window of a text has a token. */
static int has_token(const uint8_t *p, int64_t n, int64_t token, int folded) {
    for (int64_t i = 0; i + 3 <= n; i++) {
        int64_t a = digit(p[i], folded), b = digit(p[i + 1], folded), c = digit(p[i + 2], folded);
        if (a >= 0 && b >= 0 && c >= 0 && a * 1369 + b * 37 + c == token) return 1;
    }
    return 0;
}

static void fz_target(fz_input *in) {
    int wide = (int)fz_upto(in, 1), folded = (int)fz_upto(in, 1);
    int64_t count = fz_upto(in, 20), size = fz_upto(in, 300), at = 0;
    uint8_t *ends = fz_out(in, (count + 1) * (wide ? 8 : 4));
    for (int64_t i = 0; i <= count; i++) {
        lc_store_offset(ends, wide, i, at);
        at += fz_upto(in, 12) - (fz_upto(in, 40) == 40);
    }
    const uint8_t *data = fz_take(in, size);
    lc_ngram_texts texts = {data, size, ends, wide, count, folded};
    int64_t room = lc_ngrams_room(&texts), num_tokens = folded ? LC_NGRAM_FOLDED : LC_NGRAM_PLAIN;
    if (room < 0) return;
    lc_ngram_entries found = {(uint32_t *)fz_memory(4 * room, 0), (uint32_t *)fz_memory(4 * room, 0), room, 0,
                              (uint32_t *)fz_memory(4 * count, 0), 0};
    uint32_t *seen = (uint32_t *)fz_memory(4 * num_tokens, 0);
    memset(seen, 0, (size_t)(4 * num_tokens));
    FZ_CHECK(lc_ngrams_find(&texts, seen, &found) == LC_OK);
    FZ_CHECK(found.count < room && found.num_others <= count);
    for (int64_t i = 0; i < found.count; i++) {
        int64_t begin = lc_load_offset(ends, wide, found.rows[i]), end = lc_load_offset(ends, wide, found.rows[i] + 1);
        FZ_CHECK(has_token(data + begin, end - begin, found.tokens[i], folded));
    }
    uint64_t ids[20], *out = (uint64_t *)fz_memory(8 * found.count, 0);
    for (int64_t i = 0; i < 20; i++) ids[i] = (uint64_t)(100 + i);
    int64_t *starts = (int64_t *)fz_memory(8 * (num_tokens + 1), 0);
    FZ_CHECK(lc_ngrams_group(found.tokens, found.rows, found.count, ids, 20, starts, num_tokens, out) == LC_OK);
    FZ_CHECK(starts[0] == 0 && starts[num_tokens] == found.count);
    for (int64_t i = 0; i < found.count; i++) {
        int64_t token = found.tokens[i], hits = 0;
        for (int64_t k = starts[token]; k < starts[token + 1]; k++) hits += out[k] == ids[found.rows[i]];
        FZ_CHECK(hits == 1);
    }
}
