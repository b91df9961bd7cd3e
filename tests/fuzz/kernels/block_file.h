/* A file in memory, and blocks of it: small ones, so that few bytes are loaded that were not asked for. */
#ifndef LANCECODEC_FUZZ_BLOCKS_H
#define LANCECODEC_FUZZ_BLOCKS_H

#define LC_BLOCK_LOG 3
#include "blocks.h"
#include "fuzz.h"

#define FZ_FILE_BYTES 60000

typedef struct {
    uint8_t *content;
    int64_t size;
    lc_blocks blocks;
} fz_file;

static void fz_file_open(fz_file *file) {
    memset(file, 0, sizeof *file);
    file->content = fz_memory(FZ_FILE_BYTES, 0);
}

/* Append bytes at any place, and return their position. */
static int64_t fz_file_put(fz_input *in, fz_file *file, const uint8_t *data, int64_t size) {
    int64_t at = file->size + fz_upto(in, 40);
    FZ_CHECK(at + size <= FZ_FILE_BYTES);
    if (size) memcpy(file->content + at, data, (size_t)size);
    file->size = at + size;
    return at;
}

/* Make the blocks, none of which is loaded, when the file is complete. */
static void fz_file_close(fz_file *file) {
    lc_blocks *blocks = &file->blocks;
    blocks->size = file->size, blocks->extents = (file->size >> LC_EXTENT_LOG) + 1;
    blocks->base = fz_memory(blocks->extents << LC_EXTENT_LOG, 0);
    blocks->loaded = (uint64_t *)fz_memory(8 * blocks->extents, 0);
    blocks->pins = (int32_t *)fz_memory(4 * blocks->extents, 0), blocks->used = fz_memory(blocks->extents, 0);
    memset(blocks->loaded, 0, (size_t)(8 * blocks->extents));
    memset(blocks->pins, 0, (size_t)(4 * blocks->extents));
}

/* Load what is needed; return whether anything was. */
static int fz_file_load(fz_file *file, lc_needs *needs) {
    int64_t count = needs->count;
    lc_needs_merge(needs);
    for (int64_t i = 0; i < needs->count; i++) {
        int64_t at = needs->runs[i].begin << LC_BLOCK_LOG, size = lc_blocks_bytes(needs->runs + i);
        FZ_CHECK(needs->runs[i].blocks == &file->blocks && at >= 0 && size > 0 && at + size <= file->size);
        FZ_CHECK(i == 0 || needs->runs[i - 1].end < needs->runs[i].begin);
        memcpy(file->blocks.base + at, file->content + at, (size_t)size);
        FZ_CHECK(lc_blocks_mark(needs->runs + i) >= 1);
    }
    needs->count = 0;
    return count > 0;
}

/* Unpin everything: no pin is left. */
static void fz_file_done(fz_file *file, lc_needs *needs) {
    lc_needs_close(needs);
    for (int64_t i = 0; i < file->blocks.extents; i++) FZ_CHECK(file->blocks.pins[i] == 0);
}

#endif
