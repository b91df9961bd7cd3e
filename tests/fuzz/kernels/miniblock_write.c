/* Chunks put together from any buffers, and found again. */
#include "chunks.h"

static void fz_target(fz_input *in) {
    fz_page p;
    fz_page_open(in, &p, fz_upto(in, 3) ? 5 : LC_CHUNK_MAX_LOG);
    int64_t levels = fz_upto(in, 2), buffers = fz_upto(in, FZ_STREAMS - 2), where;
    p.plan.full = fz_upto(in, 1) ? p.values[0] : 0, p.plan.level_streams = levels;
    for (int64_t i = 0; i < p.plan.count; i++) p.levels[i] = fz_upto(in, fz_upto(in, 31) ? 900 : 70000);
    if (levels) p.plan.levels = p.levels;
    for (int64_t k = 0; k < levels + buffers; k++) {
        int64_t s = fz_page_stream(&p);
        for (int64_t i = 0; i < p.plan.count; i++) {
            int64_t size = fz_upto(in, fz_upto(in, 15) ? 90 : 66000);
            memset(fz_page_room(&p, s, i), (int)fz_upto(in, 255), (size_t)size);
            fz_page_put(&p, s, i, size);
        }
    }
    if (fz_upto(in, 31) == 0) { /* counts and ends that nothing has checked */
        p.values[fz_upto(in, p.plan.count - 1)] = (int64_t)fz_word(in, 8);
        if (buffers) p.ends[levels][fz_upto(in, p.plan.count - 1)] = (int64_t)(fz_word(in, 8) >> 1);
        lc_chunk_plan_check(&p.plan, &where);
        return;
    }
    p.chunks.repetition = levels > 1, p.chunks.definition = levels > 0;
    if (!fz_page_close(in, &p, 0)) return;
    for (int64_t i = 0; i < p.plan.count; i++) {
        lc_chunk chunk;
        FZ_CHECK(!lc_chunk_open(&p.chunks, i, &chunk) && chunk.levels == (levels ? p.levels[i] : 0));
        lc_bytes found[4] = {chunk.repetition, chunk.definition, chunk.values[0], chunk.values[1]};
        for (int64_t s = 0; s < levels + buffers; s++) {
            int64_t size = p.ends[s][i] - (i ? p.ends[s][i - 1] : 0);
            lc_bytes part = found[s < levels ? (levels == 2 ? s : 1) : 2 + s - levels];
            FZ_CHECK(part.size == size && !memcmp(part.data, fz_page_room(&p, s, i), (size_t)size));
        }
    }
}
