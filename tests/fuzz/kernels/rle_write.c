/* Run-length encoding: chunks and single blocks written, counted and read back. */
#include "fuzz.h"
#include "runs.h"

/* Values in runs. */
static uint8_t *runs_of(fz_input *in, int64_t n, int64_t width) {
    uint8_t *values = fz_out(in, n * width), value[8] = {0};
    int64_t left = 0, longest = fz_upto(in, 2) ? 1 + fz_upto(in, 9) : 1 + fz_upto(in, 900);
    for (int64_t i = 0; i < n; i++, left--) {
        if (left == 0) {
            uint64_t word = fz_word(in, fz_upto(in, 3) ? 1 : 8);
            memcpy(value, &word, 8);
            left = 1 + fz_upto(in, longest - 1);
        }
        memcpy(values + i * width, value, (size_t)width);
    }
    return values;
}

static void page(fz_input *in, lc_runs_page p, int64_t bits, int64_t bound) {
    int64_t width = bits / 8, places = 1 + p.n / 32, begin = 0, at = 0;
    int64_t *ends = (int64_t *)fz_memory(8 * places, 0), *counts = (int64_t *)fz_memory(8 * places, 0);
    if (fz_upto(in, 7) == 0) places = fz_upto(in, places);
    p.capacity = fz_upto(in, 7) ? bound : fz_upto(in, bound);
    p.length_bytes = 1, p.longest = 255, p.unit = width + 1;
    p.max_values = (int64_t)64 << fz_upto(in, 9), p.max_bytes = p.unit * (64 + fz_upto(in, 4000));
    p.out_values = fz_out(in, p.capacity * width), p.out_lengths = fz_out(in, p.capacity);
    int64_t chunks = lc_rle_page(&p, bits, ends, counts, places);
    if (chunks < 0) return;
    uint8_t *back = fz_out(in, p.n * width);
    for (int64_t k = 0; k < chunks; k++) {
        lc_bytes buffers[2] = {{p.out_values + begin * width, (ends[k] - begin) * width}, {p.out_lengths + begin, ends[k] - begin}};
        FZ_CHECK(counts[k] >= 1 && counts[k] <= p.max_values && (ends[k] - begin) * p.unit <= p.max_bytes);
        FZ_CHECK(k == chunks - 1 || (counts[k] & (counts[k] - 1)) == 0);
        FZ_CHECK(!lc_rle_chunk(buffers, counts[k], bits, back + at * width));
        at += counts[k], begin = ends[k];
    }
    FZ_CHECK(at == p.n && !memcmp(back, p.values, (size_t)(p.n * width)));
}

static void block(fz_input *in, lc_runs_page p, int64_t bits) {
    int64_t width = bits / 8, runs, entries;
    p.length_bytes = (int64_t)1 << fz_upto(in, 2);
    p.longest = fz_upto(in, 1) ? 255 : p.length_bytes == 1 ? 255 : p.length_bytes == 2 ? 65535 : UINT32_MAX;
    lc_count_runs(p.values, bits, p.n, 0, p.longest, &runs, &entries);
    p.capacity = entries;
    p.out_values = fz_out(in, entries * width), p.out_lengths = fz_out(in, entries * p.length_bytes);
    lc_rle_entries_of(&p, bits);
    uint8_t *back = fz_out(in, p.n * width);
    FZ_CHECK(runs <= entries);
    FZ_CHECK(!lc_rle_expand(p.out_values, bits, p.out_lengths, 8 * p.length_bytes, entries, p.n, 1, back));
    FZ_CHECK(!memcmp(back, p.values, (size_t)(p.n * width)));
}

static void fz_target(fz_input *in) {
    int64_t bits = (int64_t)8 << fz_upto(in, 3), n = fz_upto(in, 3) ? fz_upto(in, 3000) : fz_upto(in, 70000);
    int64_t cut = 64 * fz_upto(in, 20), runs, entries;
    lc_runs_page p = {.values = runs_of(in, n, bits / 8), .n = n};
    lc_count_runs(p.values, bits, n, cut, 255, &runs, &entries);
    int64_t whole = 0;
    for (int64_t i = 0; i < n; i++)
        whole += i == 0 || memcmp(p.values + i * bits / 8, p.values + (i - 1) * bits / 8, (size_t)(bits / 8));
    FZ_CHECK(runs == whole && entries >= runs && entries <= n);
    if (fz_upto(in, 1)) page(in, p, bits, n + n / 255 + 1);
    else block(in, p, bits);
}
