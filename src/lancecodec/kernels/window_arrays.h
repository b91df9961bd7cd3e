/* Columns of a window as arrays of the Arrow C data interface.
 *
 * Memory that arrays give back is kept for the next windows of the same scan: it is still in the caches, and the system
 * need not clear it again. */
#ifndef LANCECODEC_WINDOW_ARRAYS_H
#define LANCECODEC_WINDOW_ARRAYS_H

#include "arrow_array.h"
#include "window.h"

#if defined(_MSC_VER)
#include <intrin.h>
LC_INLINE int32_t lc_spare_add(int32_t *users, int32_t n) {
    return (int32_t)_InterlockedExchangeAdd((volatile long *)users, n) + n;
}
LC_INLINE int32_t lc_spare_enter(int32_t *busy) { return (int32_t)_InterlockedExchange((volatile long *)busy, 1); }
LC_INLINE void lc_spare_leave(int32_t *busy) { _InterlockedExchange((volatile long *)busy, 0); }
#else
LC_INLINE int32_t lc_spare_add(int32_t *users, int32_t n) { return __atomic_add_fetch(users, n, __ATOMIC_ACQ_REL); }
LC_INLINE int32_t lc_spare_enter(int32_t *busy) { return __atomic_exchange_n(busy, 1, __ATOMIC_ACQUIRE); }
LC_INLINE void lc_spare_leave(int32_t *busy) { __atomic_store_n(busy, 0, __ATOMIC_RELEASE); }
#endif

#define LC_SPARE_BLOCKS 1024
/* Texts of a window that need more memory are left to the caller, who can read fewer rows. */
#define LC_WINDOW_TEXTS ((int64_t)1 << 28)

struct lc_spare;

/* In front of the bytes of a block, which begin at a multiple of 64. */
typedef struct {
    struct lc_spare *spare;
    void *memory;
    int64_t size;
} lc_spare_block;

/* Blocks that are not in use. */
typedef struct lc_spare {
    int32_t users; /* the owner, and each block in use */
    int32_t busy;  /* a thread is looking at the blocks; others do without them */
    int64_t most, bytes, count;
    lc_spare_block *blocks[LC_SPARE_BLOCKS];
} lc_spare;

LC_INLINE uint8_t *lc_spare_bytes(lc_spare_block *block) { return (uint8_t *)block + LC_ARRAY_ALIGN; }

/* Return NULL without memory. `most`: bytes that are kept while they are not in use. */
static inline lc_spare *lc_spare_open(int64_t most) {
    lc_spare *spare = (lc_spare *)calloc(1, sizeof(lc_spare));
    if (spare) spare->users = 1, spare->most = most;
    return spare;
}

LC_INLINE void lc_spare_drop(lc_spare *spare) {
    if (lc_spare_add(&spare->users, -1) == 0) free(spare);
}

#define LC_SPARE_TRIES 1000000

/* Free what is not in use; blocks in use are freed when they are given back. In a forked child a thread that looked at
 * the blocks may be missing. Then they are left alone. */
static inline void lc_spare_close(lc_spare *spare) {
    for (int64_t tries = 0; lc_spare_enter(&spare->busy); tries++)
        if (tries == LC_SPARE_TRIES) return;
    spare->most = -1;
    for (int64_t i = 0; i < spare->count; i++) free(spare->blocks[i]->memory);
    spare->count = spare->bytes = 0;
    lc_spare_leave(&spare->busy);
    lc_spare_drop(spare);
}

/* Take out the smallest block for `size` bytes that is not much larger. */
static lc_spare_block *lc_spare_find(lc_spare *spare, int64_t size) {
    lc_spare_block *found = NULL;
    int64_t best = -1, least = size + size / 2 + 4096;
    if (lc_spare_enter(&spare->busy)) return NULL;
    for (int64_t i = 0; i < spare->count; i++)
        if (spare->blocks[i]->size >= size && spare->blocks[i]->size < least) best = i, least = spare->blocks[i]->size;
    if (best >= 0) {
        found = spare->blocks[best];
        spare->blocks[best] = spare->blocks[--spare->count];
        spare->bytes -= found->size;
    }
    lc_spare_leave(&spare->busy);
    return found;
}

/* A block of at least `size` bytes, NULL without memory. */
static lc_spare_block *lc_spare_take(lc_spare *spare, int64_t size) {
    lc_spare_block *block = lc_spare_find(spare, size);
    if (block == NULL) {
        size += size / 8; /* the next window may need a little more */
        void *memory = malloc((size_t)size + 3 * LC_ARRAY_ALIGN);
        if (memory == NULL) return NULL;
        uintptr_t at = (uintptr_t)memory + LC_ARRAY_ALIGN - 1;
        block = (lc_spare_block *)(at & ~(uintptr_t)(LC_ARRAY_ALIGN - 1));
        block->spare = spare, block->memory = memory, block->size = size;
    }
    lc_spare_add(&spare->users, 1);
    return block;
}

static void lc_spare_give(lc_spare_block *block) {
    lc_spare *spare = block->spare;
    int kept = 0;
    if (!lc_spare_enter(&spare->busy)) {
        kept = spare->count < LC_SPARE_BLOCKS && block->size <= spare->most - spare->bytes;
        if (kept) spare->blocks[spare->count++] = block, spare->bytes += block->size;
        lc_spare_leave(&spare->busy);
    }
    if (!kept) free(block->memory);
    lc_spare_drop(spare);
}

/* ---- arrays ---- */

/* A column of a window. */
typedef struct {
    const lc_window_part *parts;
    int64_t count;
    int64_t width;
    int levels; /* whether a page has levels */
    int wide;   /* offsets of 64 bits */
    const uint64_t *utf8;
} lc_window_source;

static void lc_window_release(lc_array *array) {
    lc_array_parts *parts = (lc_array_parts *)array->private_data;
    for (int i = 0; i < LC_ARRAY_BUFFERS; i++)
        if (parts->owned[i]) lc_spare_give((lc_spare_block *)parts->owned[i]);
    free(parts);
    array->release = NULL;
}

/* Give a new buffer to an array; NULL without memory. */
static uint8_t *lc_window_buffer(lc_array *array, int number, lc_spare *spare, int64_t size) {
    lc_spare_block *block = lc_spare_take(spare, size);
    if (block == NULL) return NULL;
    lc_array_give(array, number, block, lc_spare_bytes(block));
    return lc_spare_bytes(block);
}

/* Take a buffer from an array. */
static void lc_window_return(lc_array *array, int number) {
    lc_array_parts *parts = (lc_array_parts *)array->private_data;
    if (parts->owned[number]) lc_spare_give((lc_spare_block *)parts->owned[number]);
    lc_array_give(array, number, NULL, NULL);
}

static int lc_window_texts_room(const lc_window_source *source, const lc_window_mask *mask, lc_window_sink *sink,
                                int64_t *room) {
    int64_t place = 0;
    int problem = LC_OK;
    for (int64_t i = 0; i < source->count && !problem; i++) {
        problem = lc_window_room(source->parts + i, mask, place, sink, room);
        place += source->parts[i].stop - source->parts[i].first;
    }
    return problem;
}

/* Decode texts; if they are larger than estimated, once more with more room. */
static int lc_window_decode_texts(const lc_window_source *source, const lc_window_mask *mask, int64_t rows,
                                  lc_spare *spare, lc_window_sink *sink, lc_array *array) {
    int64_t room = 0;
    int problem = lc_window_texts_room(source, mask, sink, &room);
    for (int tries = 0; tries < 4 && !problem; tries++, room *= 2) {
        if (room < 0 || room > LC_WINDOW_TEXTS) return LC_NO_SPACE;
        lc_window_return(array, 2);
        sink->content = lc_window_buffer(array, 2, spare, room + 1);
        if (sink->content == NULL) return LC_NO_MEMORY;
        sink->capacity = room, sink->size = sink->rows = sink->nulls = 0;
        problem = lc_window_read(source->parts, source->count, mask, rows, source->utf8, sink);
        if (problem != LC_NO_SPACE) return problem;
        problem = LC_OK;
    }
    return problem ? problem : LC_NO_SPACE;
}

static int lc_window_decode(const lc_window_source *source, const lc_window_mask *mask, int64_t rows, lc_spare *spare,
                            lc_window_sink *sink, lc_array *array) {
    int64_t width = source->width, size = width ? rows * width : (rows + 7) >> 3;
    if (width < 0) size = (rows + 1) * (source->wide ? 8 : 4);
    sink->wide = source->wide;
    sink->values = lc_window_buffer(array, 1, spare, size);
    if (sink->values == NULL) return LC_NO_MEMORY;
    if (source->levels) {
        sink->validity = lc_window_buffer(array, 0, spare, (rows + 7) >> 3);
        if (sink->validity == NULL) return LC_NO_MEMORY;
    }
    if (width < 0) return lc_window_decode_texts(source, mask, rows, spare, sink, array);
    return lc_window_read(source->parts, source->count, mask, rows, NULL, sink);
}

/* Make `array` from the kept rows of a column; not after a problem. The caller has checked that `rows` values have less
 * than 2**46 bytes. */
static int lc_window_array(const lc_window_source *source, const lc_window_mask *mask, int64_t rows, lc_spare *spare,
                           lc_array *array) {
    lc_window_sink sink;
    memset(&sink, 0, sizeof sink);
    if (lc_array_make(array, rows, source->width < 0 ? 3 : 2, 0) == NULL) return LC_NO_MEMORY;
    array->release = lc_window_release;
    int problem = lc_window_decode(source, mask, rows, spare, &sink, array);
    lc_window_close(&sink);
    if (problem) {
        array->release(array);
        return problem;
    }
    array->null_count = sink.nulls;
    if (sink.nulls == 0) lc_window_return(array, 0);
    return LC_OK;
}

#endif
