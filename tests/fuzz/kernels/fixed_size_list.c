/* Fixed-size lists: streams to chunks and rows of their own, and back; single rows. */
#include "fixed_size_list.h"
#include "fuzz.h"

static int shape_of(fz_input *in, lc_fsl *shape) {
    int64_t dimensions[LC_FSL_LEVELS + 1], levels = 1 + fz_upto(in, fz_upto(in, 31) ? 2 : LC_FSL_LEVELS);
    uint8_t has_validity[LC_FSL_LEVELS + 1];
    int64_t bits = fz_upto(in, 3) ? 8 * fz_upto(in, 5) : fz_upto(in, 70);
    int wild = fz_upto(in, 31) == 0;
    for (int64_t j = 0; j < levels; j++) {
        dimensions[j] = wild ? (int64_t)(fz_word(in, 8) >> fz_upto(in, 63)) : 1 + fz_upto(in, j ? 3 : 90);
        has_validity[j] = (uint8_t)fz_upto(in, 1);
    }
    return !lc_fsl_init(shape, dimensions, has_validity, levels, bits) && shape->row_bytes < 4000;
}

static int64_t stream_bytes(const lc_fsl *shape, int64_t s, int64_t rows, int64_t bit) {
    return lc_bits_to_bytes(bit + rows * shape->stream_bits[s]);
}

static void outputs(fz_input *in, const lc_fsl *shape, int64_t rows, int aligned, lc_fsl_stream *streams) {
    for (int64_t s = 0; s < shape->streams; s++) {
        streams[s].bit = aligned ? 0 : fz_upto(in, 9);
        streams[s].data = fz_out(in, stream_bytes(shape, s, rows, streams[s].bit));
    }
}

static void same(const lc_fsl *shape, int64_t s, lc_fsl_stream a, int64_t from, lc_fsl_stream b, int64_t to) {
    int64_t bits = shape->stream_bits[s];
    for (int64_t k = 0; k < bits; k++)
        FZ_CHECK(lc_get_bit(a.data, a.bit + from * bits + k) == lc_get_bit(b.data, b.bit + to * bits + k));
}

static void chunked(fz_input *in, const lc_fsl *shape, const lc_fsl_stream *sources, int64_t rows) {
    int64_t per_chunk = 1 + fz_upto(in, 40), chunks = (rows + per_chunk - 1) / per_chunk;
    int64_t *ends[LC_FSL_LEVELS + 1], count = fz_upto(in, 20);
    uint8_t *encoded[LC_FSL_LEVELS + 1];
    lc_fsl_stream targets[LC_FSL_LEVELS + 1], taken[LC_FSL_LEVELS + 1];
    for (int64_t s = 0; s < shape->streams; s++) {
        ends[s] = (int64_t *)fz_memory(8 * chunks, 0);
        lc_fsl_ends(shape, s, rows, per_chunk, ends[s]);
        encoded[s] = fz_out(in, chunks ? ends[s][chunks - 1] : 0);
    }
    lc_fsl_encode(shape, sources, rows, per_chunk, encoded);
    outputs(in, shape, rows, 0, targets);
    outputs(in, shape, chunks * count, 0, taken);
    for (int64_t k = 0; k < chunks; k++) {
        int64_t n = rows - k * per_chunk < per_chunk ? rows - k * per_chunk : per_chunk;
        lc_bytes buffers[LC_FSL_LEVELS + 1];
        for (int64_t s = 0; s < shape->streams; s++) {
            int64_t begin = k ? ends[s][k - 1] : 0;
            buffers[s] = (lc_bytes){encoded[s] + begin, ends[s][k] - begin};
        }
        int64_t *at = fz_positions(in, count, n);
        FZ_CHECK(!lc_fsl_chunk(shape, buffers, n, targets, k * per_chunk));
        FZ_CHECK(!lc_fsl_at(shape, buffers, n, at, count, taken, k * count));
        for (int64_t s = 0; s < shape->streams; s++)
            for (int64_t i = 0; i < count; i++) same(shape, s, sources[s], k * per_chunk + at[i], taken[s], k * count + i);
    }
    for (int64_t s = 0; s < shape->streams; s++)
        for (int64_t i = 0; i < rows; i++) same(shape, s, sources[s], i, targets[s], i);
}

static void alone(fz_input *in, const lc_fsl *shape, const lc_fsl_stream *sources, int64_t rows) {
    int64_t stride = shape->row_bytes + fz_upto(in, 3), size = rows * stride - (rows ? stride - shape->row_bytes : 0);
    uint8_t *packed = fz_out(in, size);
    lc_fsl_stream back[LC_FSL_LEVELS + 1];
    lc_fsl_pack(shape, sources, rows, packed, stride);
    lc_fsl_rows source = {packed, size, stride, NULL};
    int64_t *places = (int64_t *)fz_memory(8 * rows, 0), wild = fz_upto(in, 15) == 0;
    for (int64_t i = 0; i < rows; i++) places[i] = wild ? (int64_t)fz_word(in, 8) : i * stride;
    if (fz_upto(in, 1)) source.places = places;
    outputs(in, shape, rows, 1, back);
    if (lc_fsl_unpack(shape, &source, rows, back, 0)) {
        FZ_CHECK(wild);
        return;
    }
    for (int64_t s = 0; s < shape->streams && !wild; s++)
        for (int64_t i = 0; i < rows; i++) same(shape, s, sources[s], i, back[s], i);
}

static void fz_target(fz_input *in) {
    lc_fsl shape;
    lc_fsl_stream sources[LC_FSL_LEVELS + 1];
    int64_t rows = fz_upto(in, 100);
    if (!shape_of(in, &shape) || rows > lc_fsl_max_rows(&shape) || rows * shape.row_bytes > 60000) return;
    FZ_CHECK(lc_fsl_chunk_rows(&shape) >= 0);
    int whole = shape.bits == 0 || (shape.items[shape.levels - 1] * shape.bits) % 8 == 0;
    for (int64_t s = 0; s < shape.streams; s++) {
        sources[s].bit = fz_upto(in, 1) ? fz_upto(in, 9) : 0;
        sources[s].data = fz_take(in, stream_bytes(&shape, s, rows, sources[s].bit));
    }
    if (fz_upto(in, 1) || !whole) chunked(in, &shape, sources, rows);
    else alone(in, &shape, sources, rows);
}
