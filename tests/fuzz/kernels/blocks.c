/* Blocks of a file: ranges that are needed, reads of what is missing, and dropping of what is not pinned. */
#include "blocks_memory.h"
#include "fuzz.h"

#define BYTES 3000000

static uint8_t content[BYTES];

/* Return a descriptor of a file with the content. */
static int file_of_content(void) {
    static FILE *file;
    if (file) return fileno(file);
    for (int64_t i = 0; i < BYTES; i++) content[i] = (uint8_t)(i * 31 >> 3);
    file = tmpfile();
    FZ_CHECK(file && fwrite(content, 1, BYTES, file) == BYTES && !fflush(file));
    return fileno(file);
}

static void step(fz_input *in, lc_blocks *blocks, int file) {
    lc_needs needs = {0};
    int64_t at[8], size[8], done, count = 1 + fz_upto(in, 7);
    int error = 0, short_file = blocks->size > BYTES;
    for (int64_t i = 0; i < count; i++) {
        at[i] = fz_upto(in, blocks->size - 1), size[i] = fz_upto(in, fz_upto(in, 3) ? 5000 : 600000);
        int problem = lc_need(&needs, blocks, blocks->base + at[i], size[i]);
        FZ_CHECK(problem == (at[i] + size[i] > blocks->size ? LC_BAD_SIZE : LC_OK));
        if (problem) size[i] = 0;
    }
    lc_needs_merge(&needs);
    int problem = lc_blocks_read(file, needs.runs, needs.count, &done, &error);
    FZ_CHECK(!problem || (short_file && problem == LC_BLOCKS_END));
    for (int64_t i = 0; i < done; i++) FZ_CHECK(lc_blocks_mark(needs.runs + i) > 0);
    for (int64_t i = 0; i < count && !problem && done == needs.count; i++)
        FZ_CHECK(!size[i] || !memcmp(blocks->base + at[i], content + at[i], (size_t)size[i]));
    int64_t extent = fz_upto(in, blocks->extents - 1);
    if (lc_blocks_forget(blocks, extent)) {
        FZ_CHECK(!blocks->pins[extent]);
        lc_blocks_drop(blocks, extent);
    }
    for (int64_t i = 0; i < count && !problem && done == needs.count; i++)
        FZ_CHECK(!size[i] || !memcmp(blocks->base + at[i], content + at[i], (size_t)size[i]));
    lc_needs_close(&needs);
}

static void fz_target(fz_input *in) {
    lc_blocks blocks = {0};
    int file = file_of_content();
    blocks.size = fz_upto(in, 7) ? 1 + fz_upto(in, BYTES - 1) : BYTES + 1 + fz_upto(in, 9000);
    FZ_CHECK(!lc_blocks_reserve(&blocks));
    if (fz_upto(in, 3) == 0) lc_blocks_enlarge(&blocks);
    for (int64_t steps = fz_upto(in, 9); steps >= 0; steps--) step(in, &blocks, file);
    for (int64_t i = 0; i < blocks.extents; i++) FZ_CHECK(blocks.pins[i] == 0);
    lc_blocks_release(&blocks);
    blocks.size = (int64_t)fz_word(in, 8) | LC_BLOCKS_MOST << 1;
    FZ_CHECK(lc_blocks_reserve(&blocks));
    lc_blocks_release(&blocks);
}
