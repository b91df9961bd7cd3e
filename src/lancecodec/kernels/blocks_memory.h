/* Address space for the blocks of a file, and reads into it. */
#ifndef LANCECODEC_BLOCKS_MEMORY_H
#define LANCECODEC_BLOCKS_MEMORY_H

#include "blocks.h"

/* If this many runs take longer than this many nanoseconds each, the others are left to readers with threads. */
#define LC_BLOCKS_PROBES 4
#define LC_BLOCKS_SLOW 200000
/* A part of a file from which memory is requested in large pages, which is faster if most of it is needed at once. */
#define LC_BLOCKS_DENSE 8

/* In addition to enum lc_problem. */
enum lc_blocks_problem { LC_BLOCKS_END = 96, LC_BLOCKS_FAILED };

#if defined(_WIN32)

/* Reserved addresses without memory cannot be read there, and content of files decides what is read. */
static inline int lc_blocks_reserve(lc_blocks *blocks) {
    (void)blocks;
    return LC_NO_MEMORY;
}
static inline void lc_blocks_release(lc_blocks *blocks) { (void)blocks; }
static inline void lc_blocks_drop(lc_blocks *blocks, int64_t extent) { (void)blocks, (void)extent; }
static inline void lc_blocks_enlarge(lc_blocks *blocks) { (void)blocks; }
static inline int lc_blocks_read(int file, const lc_blocks_run *runs, int64_t n, int64_t *done, int *error) {
    (void)file, (void)runs, (void)n, (void)error;
    *done = 0;
    return LC_BLOCKS_FAILED;
}

#else

#include <errno.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#if !defined(MAP_NORESERVE)
#define MAP_NORESERVE 0
#endif
#define LC_BLOCKS_MAPPING (MAP_PRIVATE | MAP_ANON | MAP_NORESERVE)

LC_INLINE size_t lc_blocks_space(const lc_blocks *blocks) { return (size_t)blocks->extents << LC_EXTENT_LOG; }

/* Reserve the addresses of a file of blocks->size bytes, and make it without any block. */
static int lc_blocks_reserve(lc_blocks *blocks) {
    blocks->base = NULL;
    if (blocks->size < 0 || blocks->size > LC_BLOCKS_MOST) return LC_BAD_SIZE;
    blocks->extents = (blocks->size >> LC_EXTENT_LOG) + 1;
    size_t count = (size_t)blocks->extents;
    blocks->loaded = (uint64_t *)calloc(count, sizeof(uint64_t) + sizeof(int32_t) + sizeof(uint8_t));
    if (blocks->loaded == NULL) return LC_NO_MEMORY;
    blocks->pins = (int32_t *)(blocks->loaded + count);
    blocks->used = (uint8_t *)(blocks->pins + count);
    void *base = mmap(NULL, lc_blocks_space(blocks), PROT_READ | PROT_WRITE, LC_BLOCKS_MAPPING, -1, 0);
    if (base == MAP_FAILED) return LC_NO_MEMORY;
    blocks->base = (uint8_t *)base;
    return LC_OK;
}

static void lc_blocks_release(lc_blocks *blocks) {
    if (blocks->base) munmap(blocks->base, lc_blocks_space(blocks));
    free(blocks->loaded);
    blocks->base = NULL;
    blocks->loaded = NULL;
}

/* Give back the memory of an extent whose blocks were forgotten. */
static void lc_blocks_drop(lc_blocks *blocks, int64_t extent) {
    uint8_t *at = blocks->base + (extent << LC_EXTENT_LOG);
    size_t size = (size_t)1 << LC_EXTENT_LOG;
#if defined(__linux__)
    madvise(at, size, MADV_DONTNEED);
#else
    mmap(at, size, PROT_READ | PROT_WRITE, LC_BLOCKS_MAPPING | MAP_FIXED, -1, 0);
#endif
}

/* Use large pages of memory from now on, which costs less than many small ones if most of the file is loaded. */
static void lc_blocks_enlarge(lc_blocks *blocks) {
#if defined(MADV_HUGEPAGE)
    madvise(blocks->base, lc_blocks_space(blocks), MADV_HUGEPAGE);
#else
    (void)blocks;
#endif
}

static int64_t lc_blocks_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Read a run from an open file. LC_BLOCKS_END: the file is shorter; LC_BLOCKS_FAILED: *error has the system's number. */
static int lc_blocks_read_run(int file, const lc_blocks_run *run, int *error) {
    int64_t at = run->begin << LC_BLOCK_LOG, end = at + lc_blocks_bytes(run);
    while (at < end) {
        size_t wanted = end - at < (1 << 30) ? (size_t)(end - at) : (size_t)1 << 30;
        ssize_t got = pread(file, run->blocks->base + at, wanted, (off_t)at);
        if (got == 0) return LC_BLOCKS_END;
        if (got < 0 && errno != EINTR) {
            *error = errno;
            return LC_BLOCKS_FAILED;
        }
        at += got > 0 ? got : 0;
    }
    return LC_OK;
}

/* Read runs of one file one after the other. *done: how many were read before reading turned out to be slow. */
static int lc_blocks_read(int file, const lc_blocks_run *runs, int64_t n, int64_t *done, int *error) {
    int64_t begun = n > LC_BLOCKS_PROBES ? lc_blocks_clock() : 0;
    for (*done = 0; *done < n; ++*done) {
        if (*done == LC_BLOCKS_PROBES && lc_blocks_clock() - begun > LC_BLOCKS_PROBES * LC_BLOCKS_SLOW) return LC_OK;
        int problem = lc_blocks_read_run(file, runs + *done, error);
        if (problem) return problem;
    }
    return LC_OK;
}

#endif
#endif
