/* Full-zip items: any bytes, counted and unzipped. */
#include "fuzz.h"
#include "fullzip.h"

static void fz_target(fz_input *in) {
    lc_zip zip = {0};
    zip.bits_rep = fz_upto(in, 3), zip.bits_def = fz_upto(in, 4);
    zip.control = lc_zip_control(zip.bits_rep + zip.bits_def);
    zip.top_rep = zip.bits_rep ? ((int64_t)1 << zip.bits_rep) - 1 : 0, zip.top_def = ((int64_t)1 << zip.bits_def) - 1;
    zip.visible = fz_upto(in, zip.top_def);
    zip.width = fz_upto(in, 1) ? 1 + fz_upto(in, 20) : -1, zip.prefix = 4 << fz_upto(in, 1);
    int64_t ranges = fz_upto(in, 4), where, size = fz_upto(in, 2000);
    int64_t *begins = (int64_t *)fz_memory(8 * ranges, 0), *ends = (int64_t *)fz_memory(8 * ranges, 0);
    uint8_t *bytes = fz_take(in, size);
    if (zip.width < 0) /* lengths that fit, where an item without levels would have one */
        for (int64_t at = zip.control; at + 12 < size && fz_upto(in, 7); at += zip.control + zip.prefix + bytes[at])
            memset(bytes + at + 1, 0, (size_t)zip.prefix - 1);
    for (int64_t r = 0; r < ranges; r++) begins[r] = r ? ends[r - 1] : 0, ends[r] = begins[r] + fz_upto(in, size - begins[r]);
    lc_bytes data = {bytes, size};
    lc_zip_out out = {.room_bytes = INT64_MAX};
    if (lc_zip_count(&zip, data, begins, ends, ranges, &out, &where)) return;
    lc_zip_out got = {.wide = (int)fz_upto(in, 1), .room_items = out.items, .room_visible = out.visible, .room_bytes = out.bytes};
    got.rep = fz_out(in, 2 * out.items), got.def = fz_out(in, 2 * out.items), got.values = fz_out(in, out.bytes);
    if (zip.width < 0) got.offsets = fz_out(in, (out.visible + 1) * (got.wide ? 8 : 4));
    FZ_CHECK(!lc_zip_unzip(&zip, data, begins, ends, ranges, &got, &where));
    FZ_CHECK(got.items == out.items && got.visible == out.visible && got.bytes == out.bytes && got.rows == out.rows);
}
