/* MinHash: signatures of shuffled shingles, keys of equal bands, any codes, offsets and numbers of tokens. */
#include "fuzz.h"
#include "minhash.h"

static void equal(fz_input *in) {
    int64_t n = fz_upto(in, 8), bands = 1 + fz_upto(in, 3), hashes = bands * (1 + fz_upto(in, 5));
    uint8_t *signatures = fz_take(in, n * hashes * 2), *other = fz_take(in, hashes * 2), *out = fz_out(in, 4 * n);
    uint8_t *keys = fz_out(in, n * bands * 8), *one = fz_out(in, bands * 8);
    if (n && fz_upto(in, 1)) memcpy(other, signatures, (size_t)hashes * 2);
    lc_minhash_equal(signatures, n, hashes, other, out);
    lc_minhash_bands(signatures, n, hashes, bands, keys);
    lc_minhash_bands(other, 1, hashes, bands, one);
    for (int64_t i = 0; i < n; i++) {
        int same = !memcmp(signatures + i * hashes * 2, other, (size_t)hashes * 2);
        FZ_CHECK(lc_load_u32(out + 4 * i) <= (uint32_t)hashes);
        FZ_CHECK(same == (lc_load_u32(out + 4 * i) == (uint32_t)hashes));
        FZ_CHECK(!same || !memcmp(keys + i * bands * 8, one, (size_t)bands * 8));
    }
}

static void sign(fz_input *in) {
    enum { HASHES = 5 };
    uint64_t a[HASHES], b[HASHES], c[HASHES];
    lc_minhash_coefficients(HASHES, a, b, c);
    lc_minhash m = {HASHES, 1 + fz_upto(in, 4), a, b, c};
    int64_t count = fz_upto(in, 6), size = fz_upto(in, 40), n = fz_upto(in, 5), total = fz_upto(in, 30), at = 0;
    uint8_t *offsets = fz_out(in, 8 * (count + 1)), *codes = fz_out(in, 4 * total), *ends = fz_out(in, 8 * n);
    for (int64_t i = 0; i <= count; i++) {
        lc_store_offset(offsets, 1, i, at);
        at += fz_upto(in, 9) - (fz_upto(in, 60) == 60);
    }
    for (int64_t i = 0; i < total; i++) lc_store_u32(codes + 4 * i, (uint32_t)fz_upto(in, count + (fz_upto(in, 90) == 90)));
    at = 0;
    for (int64_t i = 0; i < n; i++) lc_store_u64(ends + 8 * i, (uint64_t)(at += fz_upto(in, 8) - (fz_upto(in, 60) == 60)));
    lc_known_tokens known = {{fz_take(in, size), size}, offsets, count};
    uint8_t *out = fz_out(in, 2 * HASHES * n), *again = fz_out(in, 2 * HASHES * n);
    int problem = lc_minhash_signatures(&m, &known, codes, total, ends, n, out);
    FZ_CHECK(problem == lc_minhash_signatures(&m, &known, codes, total, ends, n, again));
    if (!problem && n) FZ_CHECK(!memcmp(out, again, (size_t)(2 * HASHES * n)));
}

static void fz_target(fz_input *in) {
    if (fz_upto(in, 1)) equal(in);
    else sign(in);
}
