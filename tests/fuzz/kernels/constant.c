/* One value repeated, of any number of bytes and bits. */
#include "constant.h"
#include "fuzz.h"

static void fz_target(fz_input *in) {
    int64_t bits = fz_upto(in, 3) ? 1 + fz_upto(in, 90) : 1 + fz_upto(in, 70000), at = fz_upto(in, 9);
    int64_t n = fz_upto(in, 300000 / bits), width = (bits + 7) / 8;
    uint8_t *value = fz_take(in, width), *out = fz_out(in, n * width), *stream = fz_out(in, (at + n * bits + 7) / 8);
    lc_constant_fill(value, width, n, out);
    for (int64_t i = 0; i < n; i++) FZ_CHECK(!memcmp(out + i * width, value, (size_t)width));
    memset(stream, 0xA5, (size_t)((at + n * bits + 7) / 8));
    lc_constant_fill_bits(value, bits, n, stream, at);
    for (int64_t k = 0; k < at && k < at + n * bits; k++) FZ_CHECK(lc_get_bit(stream, k) == ((0xA5 >> (k & 7)) & 1));
    for (int64_t i = 0; i < n; i++)
        for (int64_t b = 0; b < bits; b++) FZ_CHECK(lc_get_bit(stream, at + i * bits + b) == lc_get_bit(value, b));
}
