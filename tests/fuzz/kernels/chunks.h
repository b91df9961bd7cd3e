/* Mini-block pages put together from buffers by the writing kernel, and cut into chunks in memory of exactly their size. */
#ifndef LANCECODEC_FUZZ_CHUNKS_H
#define LANCECODEC_FUZZ_CHUNKS_H

#include "fuzz.h"
#include "miniblock_write.h"

#define FZ_CHUNKS 6
#define FZ_STREAMS 4
#define FZ_STREAM_BYTES 400000

typedef struct {
    int64_t values[FZ_CHUNKS], levels[FZ_CHUNKS], ends[FZ_STREAMS][FZ_CHUNKS];
    uint8_t *bytes[FZ_STREAMS];
    lc_chunk_plan plan;
    int64_t starts[FZ_CHUNKS + 1], firsts[FZ_CHUNKS + 1];
    const uint8_t *data[FZ_CHUNKS];
    lc_chunks chunks;
} fz_page;

/* A page without streams yet, of some chunks of allowed numbers of values. */
static inline void fz_page_open(fz_input *in, fz_page *p, int64_t most_log) {
    memset(p, 0, sizeof *p);
    p->plan.count = 1 + fz_upto(in, FZ_CHUNKS - 1), p->plan.large = (int)fz_upto(in, 1);
    int64_t regular = fz_upto(in, 1), log = 1 + fz_upto(in, most_log - 1);
    for (int64_t i = 0; i < p->plan.count; i++) {
        p->values[i] = (int64_t)1 << (regular ? log : 1 + fz_upto(in, most_log - 1));
        if (i == p->plan.count - 1) p->values[i] = 1 + fz_upto(in, p->values[i] - 1);
    }
    p->plan.values = p->values;
}

static inline int64_t fz_page_items(const fz_page *p) {
    int64_t items = 0;
    for (int64_t i = 0; i < p->plan.count; i++) items += p->values[i];
    return items;
}

/* The next stream, whose chunks fz_page_put appends. */
static inline int64_t fz_page_stream(fz_page *p) {
    int64_t s = p->plan.num_streams++;
    p->bytes[s] = fz_memory(FZ_STREAM_BYTES, 0);
    p->plan.streams[s].data = p->bytes[s], p->plan.streams[s].ends = p->ends[s];
    return s;
}

/* Room for chunk i of a stream; fz_page_put says how much of it was used. */
static inline uint8_t *fz_page_room(fz_page *p, int64_t s, int64_t i) { return p->bytes[s] + (i ? p->ends[s][i - 1] : 0); }

static inline void fz_page_put(fz_page *p, int64_t s, int64_t i, int64_t size) {
    p->ends[s][i] = (i ? p->ends[s][i - 1] : 0) + size;
    FZ_CHECK(p->ends[s][i] <= FZ_STREAM_BYTES);
}

/* Words and chunks as a reader finds them; `damage`: with some changed bytes. 0 if the page cannot be written or read. */
static inline int fz_page_close(fz_input *in, fz_page *p, int damage) {
    int64_t where, width = p->plan.large ? 4 : 2, size = lc_chunk_plan_check(&p->plan, &where);
    if (size < 0) return 0;
    uint8_t *words = fz_out(in, p->plan.count * width), *chunks = fz_memory(size, 0);
    lc_chunk_plan_assemble(&p->plan, words, chunks);
    if (damage && fz_upto(in, 7) == 0) words = fz_damaged(in, words, p->plan.count * width);
    lc_chunk_table *table = &p->chunks.table;
    table->count = p->plan.count, table->items = fz_page_items(p), table->starts = p->starts, table->firsts = p->firsts;
    p->chunks.large = p->plan.large, p->chunks.data = p->data;
    p->chunks.buffers = p->plan.num_streams - p->plan.level_streams;
    int problem = lc_chunk_table_parse(words, p->plan.large, size, table, p->starts, p->firsts, &where);
    FZ_CHECK(damage || !problem);
    for (int64_t i = 0; i < table->count && !problem; i++) {
        int64_t bytes = p->starts[i + 1] - p->starts[i];
        uint8_t *chunk = fz_memory(bytes, (int)fz_upto(in, 1));
        memcpy(chunk, chunks + p->starts[i], (size_t)bytes);
        if (damage) chunk = fz_damaged(in, chunk, bytes);
        p->data[i] = chunk;
        FZ_CHECK(damage || p->firsts[i + 1] - p->firsts[i] == p->values[i]);
    }
    if (damage && fz_upto(in, 31) == 0) p->data[fz_upto(in, table->count - 1)] = NULL;
    return !problem;
}

#endif
