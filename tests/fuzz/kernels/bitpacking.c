/* FastLanes blocks, inline and out of line. */
#include "fastlanes.h"
#include "fuzz.h"

static void random_access(fz_input *in, lc_bytes source, int64_t n, int64_t bits, int64_t width, const uint8_t *all) {
    int64_t count = n ? fz_upto(in, 60) : 0, *at = fz_positions(in, count, n ? n : 1);
    uint8_t *out = fz_out(in, count * bits / 8);
    int problem = width < 0 ? lc_inline_at(&source, n, bits, at, count, out)
                            : lc_ool_at(source.data, source.size, n, bits, width, at, count, out);
    FZ_CHECK(problem == LC_OK);
    for (int64_t i = 0; i < count; i++)
        FZ_CHECK(!memcmp(out + i * bits / 8, all + at[i] * bits / 8, (size_t)(bits / 8)));
}

static void decoded(fz_input *in, int64_t bits) {
    int64_t n = fz_upto(in, 2100), width = fz_upto(in, 70), form = fz_upto(in, 1);
    if (form == 0) n %= LC_FL_VALUES + 2;
    uint8_t *out = fz_out(in, n * bits / 8);
    lc_bytes source = fz_rest(in);
    int problem = form == 0 ? lc_inline_chunk(&source, n, bits, out)
                            : lc_ool_unpack(source.data, source.size, n, bits, width, out);
    if (!problem && n) random_access(in, source, n, bits, form == 0 ? -1 : width, out);
}

static void there_and_back(fz_input *in, int64_t bits) {
    int64_t n = fz_upto(in, 2100), chunks = (n + LC_FL_VALUES - 1) / LC_FL_VALUES, where;
    int64_t width = fz_upto(in, bits), *ends = (int64_t *)fz_memory(8 * chunks, 0);
    uint8_t *values = fz_take(in, n * bits / 8), *back = fz_out(in, n * bits / 8);
    uint8_t *packed = fz_out(in, chunks * (bits / 8 + bits * LC_FL_ROW));
    int64_t size = lc_inline_pack(values, n, (int)bits, packed, ends);
    FZ_CHECK(!lc_inline_chunks(packed, ends, n, bits, back, &where) && !memcmp(values, back, (size_t)(n * bits / 8)));
    FZ_CHECK(size == (chunks ? ends[chunks - 1] : 0));
    int64_t ool = lc_ool_size(n, bits, width);
    uint8_t *block = fz_out(in, ool);
    if (lc_ool_pack(values, n, (int)bits, (int)width, block)) return;
    lc_bytes source = {block, ool};
    FZ_CHECK(!lc_ool_unpack(block, ool, n, bits, width, back) && !memcmp(values, back, (size_t)(n * bits / 8)));
    random_access(in, source, n, bits, width, values);
}

static void fz_target(fz_input *in) {
    int64_t bits = (int64_t)8 << fz_upto(in, 3), kind = fz_upto(in, 1);
    if (kind) decoded(in, bits);
    else there_and_back(in, bits);
}
