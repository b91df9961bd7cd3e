/* Assembly of the buffers of the chunks of a page: headers, padding, and chunk words. */
#ifndef LANCECODEC_MINIBLOCK_WRITE_H
#define LANCECODEC_MINIBLOCK_WRITE_H

#include "miniblock.h"

#define LC_CHUNK_PADDING 0xFE
#define LC_CHUNK_MAX_STREAMS (LC_CHUNK_MAX_BUFFERS + 2)

/* Buffers of all chunks back to back, with the end of each. */
typedef struct {
    const uint8_t *data;
    const int64_t *ends;
} lc_chunk_stream;

typedef struct {
    int64_t count;          /* chunks */
    const int64_t *values;  /* per chunk */
    const int64_t *levels;  /* entries per chunk; NULL: none */
    int64_t level_streams;  /* number of streams, and of the level streams, which are first */
    int64_t num_streams;
    lc_chunk_stream streams[LC_CHUNK_MAX_STREAMS];
    int64_t full;           /* a last chunk of this many values has its logarithm in its word; 0: never */
    int large;
} lc_chunk_plan;

LC_INLINE int64_t lc_chunk_stream_begin(const lc_chunk_stream *stream, int64_t i) {
    return i ? stream->ends[i - 1] : 0;
}

LC_INLINE int64_t lc_chunk_round(int64_t size) { return (size + LC_CHUNK_ALIGN - 1) & ~(int64_t)(LC_CHUNK_ALIGN - 1); }

LC_INLINE int64_t lc_chunk_plan_header(const lc_chunk_plan *plan) {
    int64_t sizes = 2 * plan->level_streams + (plan->large ? 4 : 2) * (plan->num_streams - plan->level_streams);
    return lc_chunk_round(2 + sizes);
}

/* Size of chunk i, or -1 if it exceeds a limit of the format. Ends ascend and are inside their data. */
static inline int64_t lc_chunk_plan_size(const lc_chunk_plan *plan, int64_t i) {
    int64_t total = lc_chunk_plan_header(plan);
    for (int64_t s = 0; s < plan->num_streams; s++) {
        int64_t size = plan->streams[s].ends[i] - lc_chunk_stream_begin(&plan->streams[s], i);
        if (size > (plan->large && s >= plan->level_streams ? (int64_t)UINT32_MAX : (int64_t)UINT16_MAX)) return -1;
        total += lc_chunk_round(size);
    }
    return total <= (plan->large ? (int64_t)1 << 31 : (int64_t)1 << 15) ? total : -1;
}

/* log2 of the number of values of a chunk, or -1 if the format does not allow it there. */
static inline int64_t lc_chunk_plan_log(const lc_chunk_plan *plan, int64_t i) {
    int64_t n = plan->values[i], log = 1;
    int last = i == plan->count - 1;
    if (n < 1 || n > LC_CHUNK_MAX_VALUES) return -1;
    if (last && n != plan->full) return 0;
    while (log <= LC_CHUNK_MAX_LOG && (int64_t)1 << log != n) log++;
    return log <= LC_CHUNK_MAX_LOG ? log : last ? 0 : -1;
}

/* Size of all chunks, or -1 with `where` as the invalid chunk. */
static int64_t lc_chunk_plan_check(const lc_chunk_plan *plan, int64_t *where) {
    int64_t total = 0;
    for (*where = 0; *where < plan->count; ++*where) {
        if (plan->levels && (plan->levels[*where] < 0 || plan->levels[*where] > UINT16_MAX)) return -1;
        for (int64_t s = 0; s < plan->num_streams; s++)
            if (plan->streams[s].ends[*where] < lc_chunk_stream_begin(&plan->streams[s], *where)) return -1;
        int64_t size = lc_chunk_plan_size(plan, *where);
        if (size < 0 || lc_chunk_plan_log(plan, *where) < 0) return -1;
        total += size;
    }
    return total;
}

LC_INLINE uint8_t *lc_chunk_pad(uint8_t *at, const uint8_t *chunk) {
    int64_t pad = lc_chunk_round(at - chunk) - (at - chunk);
    if (pad) memset(at, LC_CHUNK_PADDING, (size_t)pad);
    return at + pad;
}

/* Write chunk i and return its end. */
static inline uint8_t *lc_chunk_plan_write(const lc_chunk_plan *plan, int64_t i, uint8_t *chunk) {
    uint8_t *at = chunk + 2;
    lc_store_u16(chunk, plan->levels ? (uint16_t)plan->levels[i] : 0);
    for (int64_t s = 0; s < plan->num_streams; s++) {
        int64_t size = plan->streams[s].ends[i] - lc_chunk_stream_begin(&plan->streams[s], i);
        int wide = plan->large && s >= plan->level_streams;
        if (wide) lc_store_u32(at, (uint32_t)size);
        else lc_store_u16(at, (uint16_t)size);
        at += wide ? 4 : 2;
    }
    at = lc_chunk_pad(at, chunk);
    for (int64_t s = 0; s < plan->num_streams; s++) {
        int64_t begin = lc_chunk_stream_begin(&plan->streams[s], i), size = plan->streams[s].ends[i] - begin;
        if (size) memcpy(at, plan->streams[s].data + begin, (size_t)size);
        at = lc_chunk_pad(at + size, chunk);
    }
    return at;
}

/* Write words and chunks, of the size that lc_chunk_plan_check returned. */
static void lc_chunk_plan_assemble(const lc_chunk_plan *plan, uint8_t *words, uint8_t *chunks) {
    for (int64_t i = 0; i < plan->count; i++) {
        uint8_t *next = lc_chunk_plan_write(plan, i, chunks);
        uint32_t word = (uint32_t)((next - chunks) / LC_CHUNK_ALIGN - 1) << 4 | (uint32_t)lc_chunk_plan_log(plan, i);
        if (plan->large) lc_store_u32(words + 4 * i, word);
        else lc_store_u16(words + 2 * i, (uint16_t)word);
        chunks = next;
    }
}

#endif
