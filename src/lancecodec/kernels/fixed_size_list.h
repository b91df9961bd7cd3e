/* Fixed-size lists of fixed-width items, which may be nested: item validity per level and the values of the innermost
 * level.
 *
 * Level j of a row has items[j] items (the product of the dimensions up to j). Arrow stores the validity of a level and
 * the values as one bit stream each, row after row. So do the chunks of a page, each beginning at bit 0. A full-zip row
 * has whole bytes instead: the validity of each level that has one, outermost first, then the values. */
#ifndef LANCECODEC_FIXED_SIZE_LIST_H
#define LANCECODEC_FIXED_SIZE_LIST_H

#include "bits.h"
#include "packed.h"

#define LC_FSL_LEVELS 32
#define LC_FSL_MAX_BITS ((int64_t)1 << 56)
#define LC_FSL_CHUNK_BYTES 8186
#define LC_FSL_CHUNK_ROWS 4096

/* Stream s of a row: the validity of a level, outermost first, or (last, absent if every item is null) the values. */
typedef struct {
    int64_t levels, streams, validities;
    int64_t items[LC_FSL_LEVELS];
    int64_t bits;                          /* of one value; 0 if every item is null and there are no values */
    int64_t stream_bits[LC_FSL_LEVELS + 1]; /* per row */
    int64_t place[LC_FSL_LEVELS + 1];      /* position of the stream in a full-zip row, in bytes */
    int64_t row_bytes;                     /* size of a full-zip row */
} lc_fsl;

/* Bit stream of a level: its buffer and its first bit. */
typedef struct {
    uint8_t *data;
    int64_t bit;
} lc_fsl_stream;

LC_INLINE int64_t lc_bits_to_bytes(int64_t bits) { return (bits >> 3) + ((bits & 7) != 0); }

static inline void lc_fsl_add_stream(lc_fsl *shape, int64_t bits) {
    shape->stream_bits[shape->streams] = bits;
    shape->place[shape->streams] = shape->row_bytes;
    shape->row_bytes += lc_bits_to_bytes(bits);
    shape->streams++;
}

/* dimensions[0] belongs to the outermost list; has_validity[j] to the items of level j. */
static inline int lc_fsl_init(lc_fsl *shape, const int64_t *dimensions, const uint8_t *has_validity, int64_t levels,
                              int64_t bits) {
    int64_t items = 1;
    memset(shape, 0, sizeof *shape);
    if (levels < 1 || levels > LC_FSL_LEVELS) return LC_BAD_COUNT;
    if (bits < 0 || bits > LC_FSL_MAX_BITS) return LC_BAD_WIDTH;
    shape->levels = levels, shape->bits = bits;
    for (int64_t j = 0; j < levels; j++) {
        if (dimensions[j] < 1 || dimensions[j] > LC_FSL_MAX_BITS / (bits ? bits : 1) / items) return LC_BAD_COUNT;
        items *= dimensions[j];
        shape->items[j] = items;
        if (has_validity[j]) lc_fsl_add_stream(shape, items);
    }
    shape->validities = shape->streams;
    if (bits) lc_fsl_add_stream(shape, items * bits);
    return LC_OK;
}

/* Largest number of rows whose streams can be addressed by bit. */
LC_INLINE int64_t lc_fsl_max_rows(const lc_fsl *shape) {
    int64_t most = shape->items[shape->levels - 1] * (shape->bits ? shape->bits : 1);
    return (INT64_MAX >> 1) / most;
}

/* Rows per chunk, by the rule of the reference for flat values. A word is one row, or eight rows if a row is not whole
 * bytes. Start with two rows (or eight) and the size of two words. Double both while the size stays below
 * LC_FSL_CHUNK_BYTES and the rows do not exceed LC_FSL_CHUNK_ROWS. Returns 0 if two words are too large. */
static inline int64_t lc_fsl_chunk_rows(const lc_fsl *shape) {
    int64_t value_bits = shape->items[shape->levels - 1] * shape->bits, word = value_bits & 7 ? 8 : 1;
    int64_t bytes = word * (value_bits & 7 ? 0 : value_bits >> 3) + (value_bits & 7 ? value_bits : 0);
    for (int64_t s = 0; s < shape->validities; s++) bytes += word * lc_bits_to_bytes(shape->stream_bits[s]);
    if (bytes > LC_FSL_CHUNK_BYTES || 2 * bytes >= LC_FSL_CHUNK_BYTES) return 0;
    int64_t rows = word == 1 ? 2 : 8, size = 2 * bytes;
    while (2 * size < LC_FSL_CHUNK_BYTES && 2 * rows <= LC_FSL_CHUNK_ROWS) rows *= 2, size *= 2;
    return rows;
}

/* ---- mini-block ---- */

/* A stream cut into pieces of piece_bits that each begin at a byte; spare bits are 0. */
static inline void lc_fsl_cut(const uint8_t *src, int64_t bit, int64_t bits, int64_t piece_bits, uint8_t *out) {
    if ((piece_bits & 7) == 0) piece_bits = bits; /* every cut is at a byte boundary */
    int64_t piece_bytes = lc_bits_to_bytes(piece_bits);
    for (int64_t at = 0; at < bits; at += piece_bits, out += piece_bytes) {
        int64_t n = bits - at < piece_bits ? bits - at : piece_bits;
        if (n & 7) out[n >> 3] = 0;
        lc_bits_copy(src, bit + at, n, out, 0);
        if (bits - at <= piece_bits) return;
    }
}

/* End bytes of the chunks in output s: `rows` rows, per_chunk (> 0) in every chunk but the last. */
static inline void lc_fsl_ends(const lc_fsl *shape, int64_t s, int64_t rows, int64_t per_chunk, int64_t *ends) {
    int64_t chunks = rows / per_chunk, rest = rows % per_chunk, bits = shape->stream_bits[s];
    int64_t size = lc_bits_to_bytes(chunks ? per_chunk * bits : 0);
    for (int64_t k = 0; k < chunks; k++) ends[k] = (k + 1) * size;
    if (rest) ends[chunks] = chunks * size + lc_bits_to_bytes(rest * bits);
}

/* Write rows into one output per stream, with the chunks back to back as lc_fsl_ends computes. */
static inline void lc_fsl_encode(const lc_fsl *shape, const lc_fsl_stream *sources, int64_t rows, int64_t per_chunk,
                                 uint8_t *const *outputs) {
    if (per_chunk > rows) per_chunk = rows;
    for (int64_t s = 0; s < shape->streams; s++) {
        int64_t bits = shape->stream_bits[s];
        lc_fsl_cut(sources[s].data, sources[s].bit, rows * bits, per_chunk * bits, outputs[s]);
    }
}

/* Decode one chunk of n rows to rows `row` and following of the targets. n + row is at most lc_fsl_max_rows. */
static inline int lc_fsl_chunk(const lc_fsl *shape, const lc_bytes *buffers, int64_t n, const lc_fsl_stream *targets,
                               int64_t row) {
    for (int64_t s = 0; s < shape->streams; s++)
        if (buffers[s].size != lc_bits_to_bytes(n * shape->stream_bits[s])) return LC_BAD_SIZE;
    for (int64_t s = 0; s < shape->streams; s++) {
        int64_t bits = shape->stream_bits[s];
        lc_bits_copy(buffers[s].data, 0, n * bits, targets[s].data, targets[s].bit + row * bits);
    }
    return LC_OK;
}

/* Decode rows at[0..count) of a chunk of n rows (0 <= at < n was checked). */
static inline int lc_fsl_at(const lc_fsl *shape, const lc_bytes *buffers, int64_t n, const int64_t *at, int64_t count,
                            const lc_fsl_stream *targets, int64_t row) {
    for (int64_t s = 0; s < shape->streams; s++)
        if (buffers[s].size != lc_bits_to_bytes(n * shape->stream_bits[s])) return LC_BAD_SIZE;
    for (int64_t s = 0; s < shape->streams; s++) {
        int64_t bits = shape->stream_bits[s], place = targets[s].bit + row * bits;
        if (((bits | place) & 7) == 0) {
            uint8_t *out = targets[s].data + (place >> 3);
            for (int64_t i = 0; i < count; i++, out += bits >> 3)
                lc_copy_bytes(out, buffers[s].data + at[i] * (bits >> 3), bits >> 3);
        } else {
            for (int64_t i = 0; i < count; i++, place += bits)
                lc_bits_copy(buffers[s].data, at[i] * bits, bits, targets[s].data, place);
        }
    }
    return LC_OK;
}

/* ---- full-zip rows ---- */

/* Load up to eight bytes, as many as exist before `end`. */
LC_INLINE uint64_t lc_load_before(const uint8_t *p, const uint8_t *end) {
    uint64_t v = 0;
    if (end - p >= 8) return lc_load_u64(p);
    if (end > p) memcpy(&v, p, (size_t)(end - p));
    return v;
}

/* Row i of n begins at places[i] of the source, or at i * stride if places is NULL. */
typedef struct {
    const uint8_t *data;
    int64_t size;
    int64_t stride;
    const int64_t *places;
} lc_fsl_rows;

LC_INLINE const uint8_t *lc_fsl_row(const lc_fsl_rows *rows, int64_t i) {
    return rows->data + (rows->places ? rows->places[i] : i * rows->stride);
}

/* Validity (`bits` of each row, `place` bytes into it) of rows [from, to) to bit `at` of a bitmap. */
static inline void lc_fsl_gather_bits(const lc_fsl_rows *rows, int64_t from, int64_t to, int64_t place, int64_t bits,
                                      uint8_t *out, int64_t at) {
    const uint8_t *end = rows->data + rows->size;
    lc_bit_writer writer = lc_bit_writer_at(out, at);
    for (int64_t i = from; i < to; i++) {
        const uint8_t *p = lc_fsl_row(rows, i) + place;
        int64_t left = bits;
        for (; left > 64; left -= 64, p += 8) lc_bit_writer_add(&writer, lc_load_u64(p), 64);
        lc_bit_writer_add(&writer, lc_load_before(p, end) & lc_low_mask(left), left);
    }
    lc_bit_writer_end(&writer);
}

/* n rows of `width` bytes, `from` and `to` bytes apart. */
LC_INLINE void lc_fsl_copy_rows(const uint8_t *src, int64_t from, uint8_t *out, int64_t to, int64_t n, int64_t width) {
    if (from == width && to == width) memcpy(out, src, (size_t)(n * width));
    else lc_strided(src, from, out, to, n, width);
}

/* Rows per batch, so that their second and third stream are still in the cache. */
LC_INLINE int64_t lc_fsl_block(const lc_fsl *shape, int64_t n) {
    if (!shape->validities) return n;
    int64_t rows = 2048 / (shape->row_bytes + 1);
    return rows < 8 ? 8 : rows;
}

/* Decode n rows to rows `row` and following of the targets. The values of a row are whole bytes, as is the first bit of
 * the targets. */
static inline int lc_fsl_unpack(const lc_fsl *shape, const lc_fsl_rows *rows, int64_t n, const lc_fsl_stream *targets,
                                int64_t row) {
    if (rows->places)
        for (int64_t i = 0; i < n; i++)
            if (rows->places[i] < 0 || rows->places[i] > rows->size - shape->row_bytes) return LC_BAD_SIZE;
    int64_t block = lc_fsl_block(shape, n), validities = shape->validities;
    for (int64_t from = 0; from < n; from += block) {
        int64_t to = n - from < block ? n : from + block;
        for (int64_t s = 0; s < validities; s++) {
            int64_t bits = shape->stream_bits[s];
            lc_fsl_gather_bits(rows, from, to, shape->place[s], bits, targets[s].data,
                               targets[s].bit + (row + from) * bits);
        }
        if (shape->streams == validities) continue;
        int64_t width = shape->stream_bits[validities] >> 3, place = shape->place[validities];
        uint8_t *out = targets[validities].data + (targets[validities].bit >> 3) + (row + from) * width;
        if (rows->places)
            for (int64_t i = from; i < to; i++, out += width) lc_copy_bytes(out, lc_fsl_row(rows, i) + place, width);
        else lc_fsl_copy_rows(lc_fsl_row(rows, from) + place, rows->stride, out, width, to - from, width);
    }
    return LC_OK;
}

/* Bits of a stream from `bit` on to whole bytes; spare bits are 0. `end` is the end of the source. */
LC_INLINE void lc_fsl_scatter_bits(const uint8_t *data, int64_t bit, int64_t bits, const uint8_t *end, uint8_t *out) {
    const uint8_t *p = data + (bit >> 3);
    int shift = (int)(bit & 7);
    for (; bits > 0; bits -= 64, p += 8, out += 8) {
        uint64_t v = lc_load_before(p, end) >> shift;
        if (shift + bits > 64 && shift) v |= (uint64_t)p[8] << (64 - shift);
        if (bits >= 64) {
            lc_store_u64(out, v);
            continue;
        }
        v &= lc_low_mask(bits);
        for (int64_t b = 0; b < bits; b += 8, v >>= 8) out[b >> 3] = (uint8_t)v;
    }
}

/* n rows, row i at out + i * stride. */
static inline void lc_fsl_pack(const lc_fsl *shape, const lc_fsl_stream *sources, int64_t n, uint8_t *out,
                               int64_t stride) {
    int64_t block = lc_fsl_block(shape, n);
    for (int64_t from = 0; from < n; from += block) {
        int64_t to = n - from < block ? n : from + block;
        for (int64_t s = 0; s < shape->streams; s++) {
            const lc_fsl_stream *source = sources + s;
            int64_t bits = shape->stream_bits[s], bit = source->bit + from * bits;
            const uint8_t *end = source->data + lc_bits_to_bytes(source->bit + n * bits);
            uint8_t *target = out + from * stride + shape->place[s];
            if (((bits | bit) & 7) == 0)
                lc_fsl_copy_rows(source->data + (bit >> 3), bits >> 3, target, stride, to - from, bits >> 3);
            else
                for (int64_t i = from; i < to; i++, bit += bits, target += stride)
                    lc_fsl_scatter_bits(source->data, bit, bits, end, target);
        }
    }
}

#endif
