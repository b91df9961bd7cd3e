/* Strings by code: ends, then bytes. */
#include "bits.h"
#include "fuzz.h"
#include "gather_variable.h"

static void fz_target(fz_input *in) {
    int wide = (int)fz_upto(in, 1), out_wide = (int)fz_upto(in, 1), wild = fz_upto(in, 15) == 0;
    int64_t entries = fz_upto(in, 60), code = (int64_t)1 << fz_upto(in, 3), n = fz_upto(in, 2500), bit = fz_upto(in, 9);
    int64_t size = fz_upto(in, 3000), at = 0, longest = 1 + fz_upto(in, 90), end = 0, written = 0, base = fz_upto(in, 99);
    uint8_t *data = fz_take(in, size), *offsets = fz_out(in, (entries + 1) * (wide ? 8 : 4)), *codes = fz_out(in, n * code);
    for (int64_t i = 0; i <= entries; i++) {
        lc_store_offset(offsets, wide, i, wild && fz_upto(in, 9) == 0 ? (int64_t)fz_word(in, 8) : at);
        at += size - at < longest ? 0 : fz_upto(in, longest);
    }
    uint8_t *validity = fz_upto(in, 1) ? fz_take(in, (bit + n + 7) / 8) : NULL;
    for (int64_t i = 0; i < n; i++) {
        uint64_t index = (uint64_t)fz_upto(in, entries ? entries - 1 : 0);
        if (validity && !lc_get_bit(validity, bit + i) && fz_upto(in, 1)) index = fz_word(in, 8);
        if (fz_upto(in, 4095) == 77) index = fz_word(in, 8);
        memcpy(codes + i * code, &index, (size_t)code);
    }
    if (lc_entry_offsets_check(offsets, wide, entries, size)) {
        FZ_CHECK(wild);
        return;
    }
    uint8_t *ends = fz_out(in, n * (out_wide ? 8 : 4));
    if (lc_gather_ends(offsets, wide, entries, codes, code, n, validity, bit, base, out_wide, ends, &end)) return;
    int64_t room = end - base + (fz_upto(in, 1) ? LC_SHORT_STRING : 0);
    uint8_t *out = fz_out(in, room);
    FZ_CHECK(!lc_gather_bytes((lc_bytes){data, size}, offsets, wide, entries, codes, code, n, validity, bit, out, room, &written));
    FZ_CHECK(written == end - base);
    for (int64_t i = 0; i < n; i++) {
        int64_t begin = (i ? lc_load_offset(ends, out_wide, i - 1) : base) - base;
        int64_t length = lc_load_offset(ends, out_wide, i) - base - begin, k = (int64_t)lc_code_at(codes, code, i);
        if (validity && !lc_get_bit(validity, bit + i)) FZ_CHECK(length == 0);
        else FZ_CHECK(length == 0 || !memcmp(out + begin, data + lc_load_offset(offsets, wide, k), (size_t)length));
    }
    if (written) {
        uint8_t *less = fz_out(in, written - 1);
        FZ_CHECK(lc_gather_bytes((lc_bytes){data, size}, offsets, wide, entries, codes, code, n, validity, bit, less,
                                 written - 1, &at) == LC_NO_SPACE);
    }
}
