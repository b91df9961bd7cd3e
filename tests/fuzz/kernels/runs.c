/* RLE, flat and byte-stream split chunks. */
#include "flat.h"
#include "fuzz.h"
#include "rle.h"
#include "split.h"

typedef int (*chunk_decoder)(const lc_bytes *, int64_t, int64_t, uint8_t *);
typedef int (*taker)(const lc_bytes *, int64_t, int64_t, const int64_t *, int64_t, uint8_t *);

static void fz_target(fz_input *in) {
    static const chunk_decoder decoders[] = {lc_flat_chunk, lc_rle_chunk, lc_split_chunk};
    static const taker takers[] = {lc_flat_at, lc_rle_at, lc_split_at};
    int64_t form = fz_upto(in, 3), bits = fz_upto(in, 9), n = fz_upto(in, 1) ? fz_upto(in, 5000) : fz_upto(in, 60);
    bits = bits < 8 ? (int64_t)8 << (bits & 3) : fz_upto(in, 130);
    int64_t size = (n * bits + 7) / 8;
    int fitting = (int)fz_upto(in, 3);
    uint8_t *out = fz_out(in, size);
    lc_bytes lengths = {NULL, fz_upto(in, 300)}, source;
    lengths.data = fz_take(in, lengths.size);
    if (form == 1 && fitting) source = (lc_bytes){fz_take(in, lengths.size * bits / 8), lengths.size * bits / 8};
    else if (fitting) source = (lc_bytes){fz_take(in, size), size};
    else source = fz_rest(in);
    lc_bytes buffers[2] = {source, lengths};
    if (form == 3) {
        lc_rle_block(source.data, source.size, n, bits, out);
        return;
    }
    int problem = decoders[form](buffers, n, bits, out);
    int64_t count = n ? fz_upto(in, 40) : 0, *at = fz_positions(in, count, n ? n : 1), width = bits / 8;
    uint8_t *taken = fz_out(in, (count * bits + 7) / 8);
    int other = bits % 8 ? LC_BAD_WIDTH : takers[form](buffers, n, bits, at, count, taken);
    if (problem || bits % 8) return;
    FZ_CHECK(!other);
    for (int64_t i = 0; i < count; i++) FZ_CHECK(!memcmp(taken + i * width, out + at[i] * width, (size_t)width));
    if (form != 2) return;
    uint8_t *again = fz_out(in, size);
    lc_split_page(out, n, bits, n ? n : 1, again);
    FZ_CHECK(!memcmp(again, source.data, (size_t)size));
}
