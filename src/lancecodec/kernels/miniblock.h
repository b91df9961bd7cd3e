/* Chunks of a mini-block page: their positions, their values, and their buffers.
 *
 * The table is computed from the chunk words alone. A chunk is opened (its header read, every buffer bounded) when it
 * is needed. That takes nanoseconds, so the result is not kept. */
#ifndef LANCECODEC_MINIBLOCK_H
#define LANCECODEC_MINIBLOCK_H

#include "chunk.h"

#define LC_CHUNK_ALIGN 8
#define LC_CHUNK_MAX_LOG 15
#define LC_CHUNK_MAX_VALUES ((int64_t)1 << LC_CHUNK_MAX_LOG)
#define LC_CHUNK_MAX_BUFFERS 16
/* Largest number of entries of a chunk whose 16-bit count has wrapped around, as some releases wrote it. More is
 * damage. */
#define LC_CHUNK_MAX_LEVELS 5569200

/* In addition to enum lc_problem. */
enum lc_chunk_problem {
    LC_CHUNK_MISSING = 64, /* the bytes of a chunk were not loaded */
    LC_CHUNK_WRAPPED,      /* the decompressed form of a chunk was not set */
    LC_CHUNK_ITEM,         /* a position outside the page */
    LC_CHUNK_LOG,          /* a chunk word whose count contradicts its position or the number of items */
    LC_CHUNK_SUM           /* chunk sizes that do not add up to the size of all chunks */
};

typedef struct {
    int64_t count;         /* chunks */
    int64_t items;         /* values of the page */
    int64_t largest;       /* values of the largest chunk */
    int64_t log;           /* every chunk except the last has 1 << log values; -1: they differ */
    const int64_t *starts; /* first byte of each chunk, then the size of all */
    const int64_t *firsts; /* first value of each chunk, then `items` */
} lc_chunk_table;

typedef struct {
    lc_chunk_table table;
    const uint8_t *const *data; /* bytes of each chunk, NULL if not loaded */
    const lc_bytes *plain;      /* decompressed value buffer 0 of each chunk; NULL: not compressed */
    int64_t buffers;            /* value buffers per chunk, up to LC_CHUNK_MAX_BUFFERS */
    int repetition, definition; /* whether the streams exist */
    int large;                  /* value buffer sizes have 32 bits */
} lc_chunks;

typedef struct {
    int64_t levels;
    lc_bytes repetition, definition;
    lc_bytes values[LC_CHUNK_MAX_BUFFERS];
} lc_chunk;

/* Fill starts and firsts (count + 1 entries each). `where`: the invalid chunk. */
static inline int lc_chunk_table_parse(const uint8_t *words, int large, int64_t size, lc_chunk_table *table,
                                       int64_t *starts, int64_t *firsts, int64_t *where) {
    int64_t at = 0, first = 0, last = table->count - 1;
    table->log = -1;
    table->largest = 0;
    for (int64_t i = 0; i <= last; i++) {
        uint64_t word = large ? lc_once_u32(words + 4 * i) : lc_once_u16(words + 2 * i);
        int64_t bytes = (int64_t)(word >> 4) * LC_CHUNK_ALIGN + LC_CHUNK_ALIGN, log = (int64_t)(word & 15);
        int64_t rest = table->items - first, values = i < last ? (int64_t)1 << log : rest;
        *where = i;
        starts[i] = at;
        firsts[i] = first;
        if (bytes > size - at) return LC_CHUNK_SUM;
        if (i < last ? log == 0 || values >= rest : log != 0 && (int64_t)1 << log != rest) return LC_CHUNK_LOG;
        if (values < 1 || values > LC_CHUNK_MAX_VALUES) return LC_CHUNK_LOG;
        if (i < last) table->log = i == 0 || table->log == log ? log : -2;
        table->largest = values > table->largest ? values : table->largest;
        at += bytes;
        first += values;
    }
    starts[table->count] = at;
    firsts[table->count] = first;
    if (table->log < 0 || first - firsts[last] > (int64_t)1 << table->log) table->log = -1;
    *where = table->count;
    if (at != size) return LC_CHUNK_SUM;
    return first == table->items ? LC_OK : LC_CHUNK_LOG;
}

/* Find the chunk of a value; 0 <= item < items. */
LC_INLINE int64_t lc_chunk_find(const lc_chunk_table *table, int64_t item) {
    if (table->log >= 0) return item >> table->log;
    const int64_t *base = table->firsts;
    for (int64_t n = table->count; n > 1;) {
        int64_t half = n >> 1;
        base = base[half] <= item ? base + half : base;
        n -= half;
    }
    return base - table->firsts;
}

/* Return the next buffer of a chunk, and move *at behind its padding. */
LC_INLINE int lc_chunk_part(const uint8_t *chunk, int64_t size, int64_t length, int64_t *at, lc_bytes *part) {
    if (length > size - *at) return LC_BAD_HEADER;
    part->data = chunk + *at;
    part->size = length;
    *at += (length + LC_CHUNK_ALIGN - 1) & ~(int64_t)(LC_CHUNK_ALIGN - 1);
    return LC_OK;
}

/* Read the header of chunk i (0 <= i < count). A chunk starts and ends at multiples of 8 bytes, so a buffer inside it
 * has its padding inside it too. */
LC_INLINE int lc_chunk_parts(const lc_chunks *chunks, int64_t i, lc_chunk *chunk) {
    const uint8_t *p = chunks->data[i];
    if (p == NULL) return LC_CHUNK_MISSING;
    int64_t size = chunks->table.starts[i + 1] - chunks->table.starts[i], width = chunks->large ? 4 : 2;
    int64_t levels = chunks->repetition + chunks->definition, sizes = 2 + 2 * levels;
    int64_t at = (sizes + width * chunks->buffers + LC_CHUNK_ALIGN - 1) & ~(int64_t)(LC_CHUNK_ALIGN - 1);
    if (at > size) return LC_BAD_HEADER;
    chunk->levels = lc_once_u16(p);
    chunk->repetition.data = chunk->definition.data = p;
    chunk->repetition.size = chunk->definition.size = 0;
    if (chunks->repetition && lc_chunk_part(p, size, lc_once_u16(p + 2), &at, &chunk->repetition)) return LC_BAD_HEADER;
    if (chunks->definition && lc_chunk_part(p, size, lc_once_u16(p + 2 * levels), &at, &chunk->definition))
        return LC_BAD_HEADER;
    for (int64_t b = 0; b < chunks->buffers; b++) {
        int64_t length = chunks->large ? (int64_t)lc_once_u32(p + sizes + 4 * b) : lc_once_u16(p + sizes + 2 * b);
        if (lc_chunk_part(p, size, length, &at, &chunk->values[b])) return LC_BAD_HEADER;
    }
    return LC_OK;
}

/* Like lc_chunk_parts, with value buffer 0 decompressed if necessary. */
LC_INLINE int lc_chunk_open(const lc_chunks *chunks, int64_t i, lc_chunk *chunk) {
    int problem = lc_chunk_parts(chunks, i, chunk);
    if (problem == LC_OK && chunks->plain) {
        if (chunks->plain[i].data == NULL) return LC_CHUNK_WRAPPED;
        chunk->values[0] = chunks->plain[i];
    }
    return problem;
}

/* A walk over the chunks of values [a, b): lc_chunk_step opens the next one. */
typedef struct {
    int64_t at, stop;    /* remaining values: [at, stop) */
    int64_t chunk;       /* the open chunk, after the first step */
    int64_t values;      /* values in it */
    int64_t low, high;   /* range of them to decode */
    lc_chunk open;
} lc_chunk_walk;

LC_INLINE lc_chunk_walk lc_chunk_walk_over(const lc_chunks *chunks, int64_t a, int64_t b) {
    lc_chunk_walk walk;
    walk.at = a;
    walk.stop = b;
    walk.chunk = a < b ? lc_chunk_find(&chunks->table, a) - 1 : -1;
    walk.values = walk.low = walk.high = 0;
    return walk;
}

/* Requires at < stop. */
LC_INLINE int lc_chunk_step(const lc_chunks *chunks, lc_chunk_walk *walk) {
    const int64_t *firsts = chunks->table.firsts;
    int64_t i = ++walk->chunk, first = firsts[i], end = firsts[i + 1];
    walk->values = end - first;
    walk->low = walk->at - first;
    walk->high = (end < walk->stop ? end : walk->stop) - first;
    walk->at = first + walk->high;
    return lc_chunk_open(chunks, i, &walk->open);
}

/* Process the next run of positions items[i..) in one chunk: open it and return the position behind the run, or -1 with
 * *problem set. */
LC_INLINE int64_t lc_chunk_run(const lc_chunks *chunks, const int64_t *items, int64_t i, int64_t n, int64_t *at,
                               lc_chunk *open, int *problem) {
    const lc_chunk_table *table = &chunks->table;
    if ((uint64_t)items[i] >= (uint64_t)table->items) {
        *problem = LC_CHUNK_ITEM;
        return -1;
    }
    *at = lc_chunk_find(table, items[i]);
    uint64_t first = (uint64_t)table->firsts[*at], count = (uint64_t)table->firsts[*at + 1] - first;
    int64_t stop = i + 1;
    while (stop < n && (uint64_t)items[stop] - first < count) stop++;
    *problem = lc_chunk_open(chunks, *at, open);
    return *problem ? -1 : stop;
}

#endif
