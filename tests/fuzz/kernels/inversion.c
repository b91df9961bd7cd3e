/* Building of posting lists: whatever words, ends and lists are, memory is not left. */
#include "fuzz.h"
#include "inversion.h"
#include "posting_lists.h"

static lc_postings_out written;

static uint32_t *words_upto(fz_input *in, int64_t n, int64_t top) {
    uint32_t *made = (uint32_t *)fz_memory(4 * n, 0);
    for (int64_t i = 0; i < n; i++) made[i] = (uint32_t)(fz_upto(in, 30) ? (uint64_t)fz_upto(in, top) : fz_word(in, 4));
    return made;
}

static int64_t *zeros(int64_t n) {
    int64_t *made = (int64_t *)fz_memory(8 * n, 0);
    if (n) memset(made, 0, (size_t)(8 * n));
    return made;
}

/* The same numbers with fewer bytes. */
static void *narrowed(const uint32_t *values, int64_t n, int bytes) {
    uint8_t *made = (uint8_t *)fz_memory(bytes * n, 0);
    for (int64_t i = 0; i < n; i++) {
        uint16_t two = (uint16_t)values[i];
        if (bytes == 1) made[i] = (uint8_t)values[i];
        else if (bytes == 2) memcpy(made + 2 * i, &two, 2);
        else memcpy(made + 4 * i, &values[i], 4);
    }
    return made;
}

static void invert(fz_input *in) {
    int64_t words = 1 + fz_upto(in, 7), n = fz_upto(in, 60), count = fz_upto(in, 9), room = fz_upto(in, 90);
    int bytes = fz_upto(in, 1) ? 2 : 4, position_bytes = 1 << fz_upto(in, 2);
    void *codes = narrowed(words_upto(in, n, words - 1), n, bytes);
    uint32_t *ranks = words_upto(in, words, words - 1), *lengths = words_upto(in, count, 6);
    uint32_t *seen = (uint32_t *)zeros(words), *last = (uint32_t *)zeros(words);
    if (bytes == 2 ? lc_short_codes_rank((uint16_t *)codes, n, ranks, words)
                   : lc_codes_rank((uint32_t *)codes, n, ranks, words))
        return;
    void *positions = narrowed(words_upto(in, n, 40), n, position_bytes);
    lc_documents documents = {codes, positions, lengths, fz_upto(in, 5), count, n, bytes, position_bytes};
    int64_t *found = zeros(words), *often = zeros(words), *next = zeros(words), *next_step = zeros(words);
    int problem = lc_words_count(&documents, words, seen, found, often);
    memset(seen, 0, (size_t)(4 * words));
    for (int64_t w = 1; w < words; w++)
        next[w] = next[w - 1] + found[w - 1], next_step[w] = next_step[w - 1] + often[w - 1];
    if (!fz_upto(in, 9)) next[0] = fz_upto(in, 200) - 100;
    lc_lists lists = {0, (uint32_t)words, next, next_step, seen, last, words_upto(in, room, 1), words_upto(in, room, 1),
                      words_upto(in, room, 1), room, room};
    int filled = lc_lists_fill(&documents, (int)fz_upto(in, 1), &lists);
    FZ_CHECK(!filled || problem || n > room || filled == LC_BAD_COUNT);
}

static void encode(fz_input *in) {
    int64_t words = fz_upto(in, 3), size = fz_upto(in, 1) ? 128 : 256, documents = 700, n = 0;
    int64_t *lengths = zeros(words), *ends = zeros(40), *impact_ends = zeros(40), group_ends[4];
    for (int64_t w = 0; w < words; w++) n += lengths[w] = 1 + fz_upto(in, 1) * fz_upto(in, 600);
    uint32_t *found = words_upto(in, n, 0), *often = words_upto(in, n, fz_upto(in, 200));
    for (int64_t w = 0, at = 0; w < words; w++)
        for (int64_t i = 0; i < lengths[w]; i++, at++)
            found[at] = (uint32_t)i + (fz_upto(in, 99) ? 0 : (uint32_t)fz_upto(in, 900));
    for (int64_t i = 0; i < n; i++) often[i] += !!fz_upto(in, 255);
    if (words && !fz_upto(in, 9)) lengths[0] += fz_upto(in, 200) - 100;
    float *floats = (float *)fz_memory(4 * documents, 0);
    for (int64_t i = 0; i < documents; i++) floats[i] = (float)i;
    lc_postings_in lists = {lengths, words, found, often, n, words_upto(in, documents, 90), floats, documents, floats,
                            (int)size, (int)fz_upto(in, 1)};
    int64_t room = fz_upto(in, 1) ? 20 * n + 3000 : fz_upto(in, 3000);
    lc_written groups = {fz_out(in, 6 * n + 40), 0, 6 * n + 40};
    written.blocks = (lc_written){fz_out(in, room), 0, room}, written.impacts = (lc_written){fz_out(in, room), 0, room};
    written.block_ends = ends, written.impact_ends = impact_ends;
    written.num_blocks = written.num_impacts = 0, written.blocks_room = written.impacts_room = 40;
    written.best = (float *)fz_memory(4 * words, 0);
    int problem = lc_lists_write(&lists, &written, &groups, group_ends, 4);
    FZ_CHECK(problem || written.impacts.size >= written.num_impacts * 3);
    for (int64_t i = 0; i < n; i++) often[i] %= 5;
    int64_t steps = 2 * n + fz_upto(in, 9);
    lc_written positions = {fz_out(in, 5 * steps), 0, 5 * steps};
    lc_positions_write(lengths, words, often, n, words_upto(in, steps, 300), steps, size, &positions, ends, 40);
}

static void fz_target(fz_input *in) {
    if (fz_upto(in, 1)) invert(in);
    else encode(in);
}
