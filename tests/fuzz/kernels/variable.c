/* Variable-width chunks and blocks. */
#include "fuzz.h"
#include "variable.h"

#define ENTRY(wide) ((wide) ? 8 : 4)

static void check_values(lc_bytes buffer, int64_t n, int wide, const uint8_t *ends, int out_wide, lc_bytes values) {
    for (int64_t i = 0; i < n; i++) {
        int64_t begin = i ? lc_load_offset(ends, out_wide, i - 1) : 0;
        lc_bytes value;
        FZ_CHECK(!lc_variable_chunk_value(buffer, n, wide, i, &value));
        FZ_CHECK(value.data == values.data + begin && value.size == lc_load_offset(ends, out_wide, i) - begin);
    }
}

/* A chunk with plausible offsets, some of them changed. */
static lc_bytes plausible(fz_input *in, int64_t n, int wide) {
    int64_t size = (n + 1) * ENTRY(wide) + fz_upto(in, 200), at = (n + 1) * ENTRY(wide);
    size += -size & (ENTRY(wide) - 1);
    uint8_t *chunk = fz_take(in, size);
    for (int64_t i = 0; i <= n; i++) {
        lc_store_offset(chunk, wide, i, at);
        at += fz_upto(in, (size - at) < 0 ? 0 : (size - at) % 13);
    }
    return (lc_bytes){fz_damaged(in, chunk, size), size};
}

static void decoded(fz_input *in) {
    int wide = (int)fz_upto(in, 1), out_wide = (int)fz_upto(in, 1), form = (int)fz_upto(in, 2);
    int64_t n = fz_upto(in, 100);
    lc_bytes buffer = form == 1 ? fz_rest(in) : plausible(in, n, wide), values, value;
    uint8_t *ends = fz_out(in, n * ENTRY(out_wide));
    if (form == 2) {
        if (!lc_variable_block_offsets(buffer, n, 0, out_wide, ends, &values))
            FZ_CHECK(values.data >= buffer.data && values.data + values.size <= buffer.data + buffer.size);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        if (!lc_variable_chunk_value(buffer, n, wide, i, &value))
            FZ_CHECK(value.data >= buffer.data && value.data + value.size <= buffer.data + buffer.size);
    if (!lc_variable_chunk_offsets(buffer, n, wide, 0, out_wide, ends, &values))
        check_values(buffer, n, wide, ends, out_wide, values);
}

static void there_and_back(fz_input *in) {
    int wide = (int)fz_upto(in, 1), out_wide = (int)fz_upto(in, 1), back_wide = (int)fz_upto(in, 1);
    int64_t n = fz_upto(in, 300), size = fz_upto(in, 2000), at = 0, chunks, written = 0, chunk;
    uint8_t *data = fz_take(in, size), *offsets = fz_out(in, (n + 1) * ENTRY(wide));
    for (int64_t i = 0; i <= n; i++, at += fz_upto(in, size - at < 30 ? size - at : 30)) lc_store_offset(offsets, wide, i, at);
    lc_arrow_values source = {offsets, wide, n, {data, size}};
    int64_t bound = lc_variable_chunks_bound(n), *counts = (int64_t *)fz_memory(8 * bound, 0);
    int64_t *ends = (int64_t *)fz_memory(8 * bound, 0), target = 16 + fz_upto(in, 8170);
    FZ_CHECK(!lc_variable_plan(&source, out_wide, target, 4096, counts, ends, &chunks) && chunks <= bound);
    int64_t total = chunks ? ends[chunks - 1] : 0, used = lc_load_offset(offsets, wide, n) - lc_load_offset(offsets, wide, 0);
    uint8_t *encoded = fz_out(in, total), *back = fz_out(in, (n + 1) * ENTRY(back_wide)), *bytes = fz_out(in, used);
    FZ_CHECK(!lc_variable_encode(&source, out_wide, counts, ends, chunks, encoded, total));
    FZ_CHECK(!lc_variable_decode((lc_bytes){encoded, total}, out_wide, counts, ends, chunks, n, back_wide, back, bytes, used,
                                 &written, &chunk));
    FZ_CHECK(written == used && !memcmp(bytes, data + lc_load_offset(offsets, wide, 0), (size_t)used));
    for (int64_t i = 0; i <= n; i++)
        FZ_CHECK(lc_load_offset(back, back_wide, i) == lc_load_offset(offsets, wide, i) - lc_load_offset(offsets, wide, 0));
}

static void fz_target(fz_input *in) {
    if (fz_upto(in, 1)) decoded(in);
    else there_and_back(in);
}
