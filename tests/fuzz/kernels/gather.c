/* Gathers of fixed-width values. */
#include "fuzz.h"
#include "gather.h"

static void fz_target(fz_input *in) {
    int64_t width = fz_upto(in, 40), count = fz_upto(in, 300), code = (int64_t)1 << fz_upto(in, 3);
    uint8_t *values = fz_take(in, width * count);
    lc_bytes index = fz_rest(in);
    int64_t n = index.size / code;
    uint64_t bad = 0;
    uint8_t *out = fz_out(in, n * width);
    int ok = code == 1   ? lc_gather_u8(values, (uint64_t)count, width, index.data, n, out, &bad)
             : code == 2 ? lc_gather_u16(values, (uint64_t)count, width, index.data, n, out, &bad)
             : code == 4 ? lc_gather_u32(values, (uint64_t)count, width, index.data, n, out, &bad)
                         : lc_gather_u64(values, (uint64_t)count, width, index.data, n, out, &bad);
    FZ_CHECK(ok || bad >= (uint64_t)count);
    for (int64_t i = 0; ok && i < n; i++) {
        uint64_t from = 0;
        memcpy(&from, index.data + i * code, (size_t)code);
        FZ_CHECK(!memcmp(out + i * width, values + (int64_t)from * width, (size_t)width));
    }
}
