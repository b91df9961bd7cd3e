/* Plain bit streams against a loop over single bits, and round trips. */
#include "bitstream.h"
#include "fuzz.h"

static uint64_t expected(const uint8_t *src, int64_t at, int bits, int width, int sign) {
    uint64_t v = 0;
    for (int64_t b = 0; b < width; b++) v |= (uint64_t)(src[(at + b) >> 3] >> ((at + b) & 7) & 1) << b;
    if (sign && width < 64 && v >> (width - 1)) v |= ~0ULL << width;
    return bits == 64 ? v : v & (((uint64_t)1 << bits) - 1);
}

static void fz_target(fz_input *in) {
    int bits = 8 << fz_upto(in, 3), width = 1 + (int)fz_upto(in, bits - 1), sign = (int)fz_upto(in, 1), found;
    int64_t n = fz_upto(in, 200), size = (n * width + 7) / 8, from = fz_upto(in, n), to = from + fz_upto(in, n - from);
    uint8_t *src = fz_take(in, size), *out = fz_out(in, (to - from) * bits / 8);
    lc_stream_decode(src, size, bits, width, sign, from, to, out);
    for (int64_t i = from; i < to; i++) {
        uint64_t v = 0;
        memcpy(&v, out + (i - from) * bits / 8, (size_t)bits / 8);
        FZ_CHECK(v == expected(src, i * width, bits, width, sign));
    }
    int64_t count = n ? fz_upto(in, 20) : 0, *at = fz_positions(in, count, n ? n : 1);
    uint8_t *taken = fz_out(in, count * bits / 8);
    lc_stream_at(src, size, bits, width, sign, at, count, taken);
    for (int64_t i = 0; i < count; i++) {
        uint64_t v = 0;
        memcpy(&v, taken + i * bits / 8, (size_t)bits / 8);
        FZ_CHECK(v == expected(src, at[i] * width, bits, width, sign));
    }
    uint8_t *values = fz_out(in, n * bits / 8), *again = fz_out(in, size);
    lc_stream_decode(src, size, bits, width, sign, 0, n, values);
    FZ_CHECK(!lc_stream_encode(values, n, bits, width, sign, again));
    if (size && n * width % 8) src[size - 1] &= (uint8_t)((1 << (n * width % 8)) - 1);
    FZ_CHECK(!memcmp(src, again, (size_t)size));
    FZ_CHECK(lc_stream_width(values, n, bits, sign, &found) <= (sign || width == 64 ? width : width + 1));
}
