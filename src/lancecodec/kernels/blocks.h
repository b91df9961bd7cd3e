/* Blocks of a file in memory, loaded when they are needed, at the offsets that they have in the file.
 *
 * Address space is reserved for the whole file. Memory is used by the blocks that were loaded; others read as zeros.
 * Extents of 64 blocks are pinned while their bytes are in use, and are dropped when there are too many blocks. */
#ifndef LANCECODEC_BLOCKS_H
#define LANCECODEC_BLOCKS_H

#include <stdlib.h>

#include "bits.h"
#include "chunk.h"

#if !defined(LC_BLOCK_LOG) /* tests use smaller blocks */
#define LC_BLOCK_LOG 12
#endif
#define LC_EXTENT_LOG (LC_BLOCK_LOG + 6) /* an extent has a word of the bitmap */
#define LC_BLOCKS_MOST ((int64_t)1 << 46)
/* Blocks between two runs that are read too, because that is as fast as another system call. */
#define LC_BLOCKS_GAP 2

typedef struct {
    uint8_t *base;
    int64_t size;     /* of the file in bytes */
    int64_t extents;
    uint64_t *loaded; /* bitmap of the blocks */
    int32_t *pins;    /* uses of each extent at this moment */
    uint8_t *used;    /* whether an extent was used since it was last considered for dropping */
    void *owner;
} lc_blocks;

/* Blocks [begin, end) of a file. */
typedef struct {
    lc_blocks *blocks;
    int64_t begin, end;
} lc_blocks_run;

typedef struct {
    lc_blocks *blocks;
    int64_t extent;
} lc_blocks_pin;

/* What a take needs: blocks that are not loaded, and extents that it has pinned. */
typedef struct {
    lc_blocks_run *runs;
    lc_blocks_pin *pins;
    int64_t count, capacity, pinned, room;
    int64_t missing; /* how often a block was missing */
} lc_needs;

/* Words that threads change at the same time. Blocks are marked and dropped under one lock, but pinned without it. */
#if defined(_MSC_VER) /* blocks are not used there */
LC_INLINE uint64_t lc_blocks_load(const uint64_t *word) { return *word; }
LC_INLINE uint64_t lc_blocks_add(uint64_t *word, uint64_t bits) {
    uint64_t before = *word;
    *word |= bits;
    return before;
}
LC_INLINE uint64_t lc_blocks_clear(uint64_t *word) {
    uint64_t before = *word;
    *word = 0;
    return before;
}
LC_INLINE int32_t lc_pins_add(int32_t *pins, int32_t n) { return *pins += n; }
LC_INLINE void lc_blocks_use(uint8_t *used) { *used = 1; }
#else
LC_INLINE uint64_t lc_blocks_load(const uint64_t *word) { return __atomic_load_n(word, __ATOMIC_SEQ_CST); }
LC_INLINE uint64_t lc_blocks_add(uint64_t *word, uint64_t bits) {
    return __atomic_fetch_or(word, bits, __ATOMIC_SEQ_CST);
}
LC_INLINE uint64_t lc_blocks_clear(uint64_t *word) { return __atomic_exchange_n(word, 0, __ATOMIC_SEQ_CST); }
LC_INLINE int32_t lc_pins_add(int32_t *pins, int32_t n) { return __atomic_add_fetch(pins, n, __ATOMIC_SEQ_CST); }
LC_INLINE void lc_blocks_use(uint8_t *used) { __atomic_store_n(used, 1, __ATOMIC_RELAXED); }
#endif

static inline int lc_needs_grow(void **memory, int64_t *capacity, size_t each) {
    int64_t grown = *capacity ? 4 * *capacity : 8;
    void *moved = realloc(*memory, (size_t)grown * each);
    if (moved == NULL) return LC_NO_MEMORY;
    *memory = moved;
    *capacity = grown;
    return LC_OK;
}

/* Pin an extent until lc_needs_close. */
LC_INLINE int lc_needs_pin(lc_needs *needs, lc_blocks *blocks, int64_t extent) {
    if (needs->pinned) {
        const lc_blocks_pin *last = needs->pins + needs->pinned - 1;
        if (last->extent == extent && last->blocks == blocks) return LC_OK;
    }
    if (needs->pinned == needs->room && lc_needs_grow((void **)&needs->pins, &needs->room, sizeof *needs->pins))
        return LC_NO_MEMORY;
    needs->pins[needs->pinned].blocks = blocks;
    needs->pins[needs->pinned++].extent = extent;
    lc_pins_add(blocks->pins + extent, 1);
    lc_blocks_use(blocks->used + extent);
    return LC_OK;
}

static int lc_needs_add(lc_needs *needs, lc_blocks *blocks, int64_t begin, int64_t end) {
    needs->missing++;
    if (needs->count) {
        lc_blocks_run *last = needs->runs + needs->count - 1;
        if (last->blocks == blocks && begin >= last->begin && begin <= last->end + LC_BLOCKS_GAP) {
            last->end = end > last->end ? end : last->end;
            return LC_OK;
        }
    }
    if (needs->count == needs->capacity && lc_needs_grow((void **)&needs->runs, &needs->capacity, sizeof *needs->runs))
        return LC_NO_MEMORY;
    lc_blocks_run run = {blocks, begin, end};
    needs->runs[needs->count++] = run;
    return LC_OK;
}

/* Add the missing ones among blocks [begin, end) of an extent. */
static int lc_needs_extent(lc_needs *needs, lc_blocks *blocks, int64_t extent, int64_t begin, int64_t end) {
    uint64_t loaded = lc_blocks_load(blocks->loaded + extent);
    for (int64_t b = begin, stop; b < end; b = stop) {
        for (; b < end && loaded >> b & 1; b++) {}
        for (stop = b; stop < end && !(loaded >> stop & 1); stop++) {}
        if (stop > b && lc_needs_add(needs, blocks, 64 * extent + b, 64 * extent + stop)) return LC_NO_MEMORY;
    }
    return LC_OK;
}

/* Require the n bytes at `p`, which must be inside the file: pin their extents, and add the blocks that are missing. */
LC_INLINE int lc_need(lc_needs *needs, lc_blocks *blocks, const uint8_t *p, int64_t n) {
    uint64_t offset = (uint64_t)((uintptr_t)p - (uintptr_t)blocks->base);
    if (n < 0 || offset > (uint64_t)blocks->size || n > blocks->size - (int64_t)offset) return LC_BAD_SIZE;
    if (n == 0) return LC_OK;
    int64_t first = (int64_t)offset >> LC_BLOCK_LOG, last = ((int64_t)offset + n - 1) >> LC_BLOCK_LOG;
    for (int64_t extent = first >> 6; extent <= last >> 6; extent++) {
        int64_t begin = extent == first >> 6 ? first & 63 : 0, end = extent == last >> 6 ? (last & 63) + 1 : 64;
        uint64_t wanted = (end == 64 ? ~(uint64_t)0 : ((uint64_t)1 << end) - 1) & ~(uint64_t)0 << begin;
        if (lc_needs_pin(needs, blocks, extent)) return LC_NO_MEMORY;
        if ((wanted & ~lc_blocks_load(blocks->loaded + extent)) && lc_needs_extent(needs, blocks, extent, begin, end))
            return LC_NO_MEMORY;
    }
    return LC_OK;
}

static int lc_needs_compare(const void *a, const void *b) {
    const lc_blocks_run *left = (const lc_blocks_run *)a, *right = (const lc_blocks_run *)b;
    if (left->blocks != right->blocks) return (uintptr_t)left->blocks < (uintptr_t)right->blocks ? -1 : 1;
    return left->begin < right->begin ? -1 : left->begin > right->begin;
}

/* Sort the runs by file and place, and merge those that overlap or are near each other. */
static void lc_needs_merge(lc_needs *needs) {
    int64_t merged = 0, sorted = 1;
    while (sorted < needs->count && lc_needs_compare(needs->runs + sorted - 1, needs->runs + sorted) <= 0) sorted++;
    if (sorted >= needs->count) return;
    qsort(needs->runs, (size_t)needs->count, sizeof *needs->runs, lc_needs_compare);
    for (int64_t i = 1; i < needs->count; i++) {
        lc_blocks_run *last = needs->runs + merged, run = needs->runs[i];
        if (last->blocks != run.blocks || run.begin > last->end + LC_BLOCKS_GAP) needs->runs[++merged] = run;
        else last->end = run.end > last->end ? run.end : last->end;
    }
    needs->count = merged + 1;
}

/* Unpin everything. */
static void lc_needs_close(lc_needs *needs) {
    for (int64_t i = 0; i < needs->pinned; i++) lc_pins_add(needs->pins[i].blocks->pins + needs->pins[i].extent, -1);
    free(needs->runs);
    free(needs->pins);
    memset(needs, 0, sizeof *needs);
}

/* Number of bytes of a run; the last block of a file may be shorter. */
LC_INLINE int64_t lc_blocks_bytes(const lc_blocks_run *run) {
    int64_t end = run->end << LC_BLOCK_LOG;
    return (end < run->blocks->size ? end : run->blocks->size) - (run->begin << LC_BLOCK_LOG);
}

/* Record that the blocks of a run are loaded. Return how many of them were not loaded before. */
static int64_t lc_blocks_mark(const lc_blocks_run *run) {
    int64_t added = 0;
    for (int64_t b = run->begin; b < run->end; b++) {
        uint64_t bit = (uint64_t)1 << (b & 63);
        added += !(lc_blocks_add(run->blocks->loaded + (b >> 6), bit) & bit);
    }
    return added;
}

/* Forget the blocks of an extent unless it is pinned. Return the bits of the blocks. Whoever pins it from now on finds
 * that they are missing. */
static uint64_t lc_blocks_forget(lc_blocks *blocks, int64_t extent) {
    uint64_t loaded = lc_blocks_clear(blocks->loaded + extent);
    if (lc_pins_add(blocks->pins + extent, 0) == 0) return loaded;
    lc_blocks_add(blocks->loaded + extent, loaded);
    return 0;
}

#endif
