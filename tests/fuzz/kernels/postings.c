/* Posting lists of any bytes: what is found is in the lists, in order, and the same as by a plain loop over all blocks. */
#include "fuzz.h"
#include "posting_search.h"

enum { DOCUMENTS = 3000, TERMS = 3 };

static float norms[DOCUMENTS], codes[256];

/* Write varints, mostly small. */
static int64_t write_varints(fz_input *in, uint8_t *out, int64_t n, int64_t least, int64_t most) {
    int64_t size = 0;
    for (int64_t i = 0; i < n; i++) {
        uint64_t value = (uint64_t)(least + fz_upto(in, most));
        for (; value > 127; value >>= 7) out[size++] = (uint8_t)(value | 128);
        out[size++] = (uint8_t)value;
    }
    return size;
}

/* Packed numbers: any, or all as large as possible except perhaps the first. */
static void write_packed(fz_input *in, uint8_t *out, int64_t size, int width, int from_zero) {
    if (!fz_upto(in, 4)) {
        memcpy(out, fz_take(in, size), (size_t)size);
        return;
    }
    memset(out, 0xFF, (size_t)size);
    if (size && from_zero) out[0] = (uint8_t)(0xFF << width);
}

/* A list whose blocks are mostly valid: packed with any width, or varints. */
static int open_term(fz_input *in, lc_term *t, int size, int fixed) {
    int64_t blocks = 1 + fz_upto(in, 2), rest = 1 + fz_upto(in, 40), at = 0;
    uint8_t *data = fz_out(in, 8192), *offsets = fz_out(in, 8 * (blocks + 1));
    memset(t, 0, sizeof *t);
    t->length = (blocks - 1) * size + rest, t->documents = DOCUMENTS, t->size = size, t->fixed = fixed;
    for (int64_t b = 0; b < blocks; b++) {
        lc_store_u64(offsets + 8 * b, (uint64_t)at);
        if (size == 128) at += 4;
        uint8_t *begin = data + at;
        if (b + 1 < blocks) {
            int width = 1 + (int)fz_upto(in, 2), counts = 1 + (int)fz_upto(in, 3);
            lc_store_u32(begin, (uint32_t)(b * 900 + fz_upto(in, 5)));
            begin[4] = (uint8_t)width;
            write_packed(in, begin + 5, size / 8 * width, width, 1);
            at += 5 + size / 8 * width;
            data[at++] = (uint8_t)counts;
            if (size == 256) data[at++] = 0;
            write_packed(in, data + at, size / 8 * counts, counts, 0);
            at += size / 8 * counts;
        } else {
            at += write_varints(in, begin, 1, 900 * b + (b > 0) * 900, 50);
            at += write_varints(in, data + at, rest - 1, 1, 30);
            at += write_varints(in, data + at, rest, 1, 3);
        }
    }
    lc_store_u64(offsets + 8 * blocks, (uint64_t)at);
    lc_bytes source = {fz_upto(in, 3) ? data : fz_damaged(in, data, at), at};
    return lc_term_open(t, source, offsets, blocks + 1);
}

/* Scores of all documents by a plain loop; 0 if a block is malformed. */
static int plain_scores(const lc_term *terms, int64_t n, int every, float *scores) {
    uint32_t docs[LC_TERM_BLOCK], counts[LC_TERM_BLOCK];
    static int seen[DOCUMENTS];
    memset(seen, 0, sizeof seen);
    for (int64_t d = 0; d < DOCUMENTS; d++) scores[d] = 0;
    for (int64_t k = 0; k < n; k++)
        for (int64_t b = 0; b < terms[k].blocks; b++) {
            if (lc_term_decode(&terms[k], b, docs, counts) != LC_OK) return 0;
            for (int64_t i = 0; i < lc_block_count(&terms[k], b); i++) {
                FZ_CHECK(docs[i] < DOCUMENTS && counts[i]);
                scores[docs[i]] += 1.0f * lc_term_share(counts[i], norms[docs[i]]);
                seen[docs[i]]++;
            }
        }
    for (int64_t d = 0; d < DOCUMENTS; d++)
        if (seen[d] < (every ? n : 1)) scores[d] = -1;
    return 1;
}

static void check_search(fz_input *in, const lc_term *terms, int64_t n, int64_t k) {
    static float wanted[DOCUMENTS];
    int every = (int)fz_upto(in, 1);
    int64_t room = k ? k : DOCUMENTS;
    lc_cursor *cursors = (lc_cursor *)fz_memory(n * (int64_t)sizeof *cursors, 0), *order[TERMS];
    lc_hits hits = {(uint32_t *)fz_memory(4 * room, 0), (float *)fz_memory(4 * room, 0), 0, k, room, -1};
    lc_search s = {cursors, order, n, DOCUMENTS, norms, NULL, NULL, &hits};
    for (int64_t i = 0; i < n; i++) lc_cursor_start(order[i] = &cursors[i], &terms[i], NULL, 1);
    int problem = lc_search_run(&s, every);
    if (!plain_scores(terms, n, every, wanted)) return;
    FZ_CHECK(problem == LC_OK);
    for (int64_t i = 0; i < hits.n; i++) {
        FZ_CHECK(hits.docs[i] < DOCUMENTS && wanted[hits.docs[i]] >= 0);
        FZ_CHECK(fabsf(hits.scores[i] - wanted[hits.docs[i]]) < 1e-5f);
        FZ_CHECK(!i || (k ? hits.scores[i] <= hits.scores[i - 1] : hits.docs[i] > hits.docs[i - 1]));
        wanted[hits.docs[i]] = -1;
    }
    for (int64_t d = 0; d < DOCUMENTS; d++)
        FZ_CHECK(wanted[d] < 0 || (k && hits.n == k && wanted[d] <= hits.scores[k - 1] + 1e-5f));
}

/* Positions of any bytes, and a phrase. */
static void check_positions(fz_input *in, const lc_term *term) {
    lc_positions p = {0};
    int32_t cursors[2] = {0, 0}, places[2] = {0, (int32_t)fz_upto(in, 2)};
    p.kind = (int)fz_upto(in, LC_POSITION_KINDS - 1);
    p.documents = term->length, p.parts = p.kind ? term->blocks : term->length * (1 + fz_upto(in, 1));
    uint8_t *starts = fz_out(in, 8 * (p.parts + 1)), *owners = fz_out(in, 8 * (p.documents + 1));
    int64_t at = 0, step = p.parts > 10 ? 4 : 60;
    for (int64_t i = 0; i <= p.parts; i++, at += fz_upto(in, 20) ? step : fz_upto(in, 9))
        lc_store_u64(starts + 8 * i, (uint64_t)at);
    for (int64_t i = 0; i <= p.documents; i++) lc_store_u64(owners + 8 * i, (uint64_t)(i * p.parts / p.documents));
    lc_bytes data = {fz_take(in, at), at};
    if (lc_positions_open(&p, data, starts, owners) == LC_OK) {
        lc_cursor *c = (lc_cursor *)fz_memory((int64_t)sizeof *c, 0), *order[1] = {c};
        lc_phrase phrase = {cursors, places, 2, fz_upto(in, 3), NULL, NULL, 0};
        lc_hits hits = {(uint32_t *)fz_memory(4 * 10, 0), (float *)fz_memory(4 * 10, 0), 0, 10, 10, -1};
        lc_search s = {c, order, 1, DOCUMENTS, norms, NULL, &phrase, &hits};
        lc_cursor_start(c, term, &p, 1);
        lc_search_run(&s, 1);
        free(c->found.values);
        free(phrase.reached);
        free(phrase.next);
    }
    lc_positions_close(&p);
}

static void fz_target(fz_input *in) {
    lc_term terms[TERMS];
    int64_t n = 1 + fz_upto(in, TERMS - 1), open = 0;
    int size = fz_upto(in, 1) ? 128 : 256;
    for (int64_t d = 0; d < DOCUMENTS; d++) norms[d] = 0.3f + (float)(d % 17) / 4;
    for (int64_t c = 0; c < 256; c++) codes[c] = 0.3f + (float)c / 9;
    for (; open < n && open_term(in, &terms[open], size, 0) == LC_OK; open++) {
        if (fz_upto(in, 1)) lc_term_measure(&terms[open], norms);
    }
    if (open == n) {
        check_search(in, terms, n, fz_upto(in, 12));
        check_positions(in, &terms[0]);
        lc_bytes skips = {fz_take(in, 60), 60};
        uint8_t *ends = fz_out(in, 8 * 5);
        for (int64_t i = 0; i < 5; i++) lc_store_u64(ends + 8 * i, (uint64_t)fz_upto(in, 61));
        lc_term_read_impacts(&terms[0], skips, ends, 5, codes);
        FZ_CHECK(terms[0].bound >= 0 && terms[0].bound <= 1);
        check_search(in, terms, n, 0);
    }
    for (int64_t i = 0; i <= open && i < n; i++) lc_term_close(&terms[i]);
    if (fz_upto(in, 1) && open_term(in, &terms[0], 128, 1) == LC_OK) check_search(in, terms, 1, 5);
    if (n) lc_term_close(&terms[0]);
}
