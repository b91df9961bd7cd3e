/* Packed rows: any bytes as rows, and round trips of columns. */
#include "bits.h"
#include "fuzz.h"
#include "packed.h"

#define CHILDREN 4

/* Outputs of the children for `n` rows, before their bytes are known. */
static void outputs(fz_input *in, lc_packed_child *children, int64_t count, int64_t n) {
    for (int64_t c = 0; c < count; c++) {
        children[c].wide = (int)fz_upto(in, 1);
        children[c].data = children[c].variable ? NULL : fz_out(in, n * children[c].width);
        children[c].offsets = children[c].variable ? fz_out(in, (n + 1) * (children[c].wide ? 8 : 4)) : NULL;
    }
}

static int split(fz_input *in, lc_packed_child *children, int64_t count, const lc_packed_rows *rows) {
    int64_t where;
    int problem = lc_packed_split(children, count, rows, &where);
    if (problem) return problem;
    for (int64_t c = 0; c < count; c++)
        if (children[c].variable) children[c].size = children[c].used, children[c].data = fz_out(in, children[c].used);
    FZ_CHECK(!lc_packed_split_bytes(children, count, rows, &where));
    return LC_OK;
}

static void fz_target(fz_input *in) {
    lc_packed_child children[CHILDREN] = {{0}}, back[CHILDREN];
    int64_t count = 1 + fz_upto(in, CHILDREN - 1), n = fz_upto(in, 30), where, fixed = 0, bytes = 0;
    for (int64_t c = 0; c < count; c++) {
        children[c].variable = (int)fz_upto(in, 1);
        children[c].width = children[c].variable ? 4 << fz_upto(in, 1) : 1 + fz_upto(in, 20);
        fixed += children[c].width;
    }
    lc_packed_rows rows = {.wide = (int)fz_upto(in, 1), .n = n, .bit = fz_upto(in, 9)};
    if (fz_upto(in, 1)) rows.validity = fz_take(in, (rows.bit + n + 7) / 8);
    rows.offsets = fz_out(in, (n + 1) * (rows.wide ? 8 : 4));
    for (int64_t c = 0; c < count; c++) {
        lc_packed_child *child = children + c;
        child->wide = (int)fz_upto(in, 1);
        child->size = child->variable ? fz_upto(in, 300) : n * child->width;
        child->data = fz_take(in, child->size);
        bytes += child->size;
        if (!child->variable) continue;
        child->offsets = fz_out(in, (n + 1) * (child->wide ? 8 : 4));
        for (int64_t i = 0, at = 0; i <= n; i++, at += child->size - at < 30 ? 0 : fz_upto(in, 30))
            lc_store_offset(child->offsets, child->wide, i, at);
    }
    FZ_CHECK(!lc_packed_row_offsets(children, count, &rows, &where));
    int64_t total = lc_load_offset(rows.offsets, rows.wide, n);
    rows.size = total, rows.data = fz_out(in, total);
    FZ_CHECK(total <= n * fixed + bytes && !lc_packed_row_bytes(children, count, &rows, &where) && rows.size == total);
    memcpy(back, children, sizeof back);
    outputs(in, back, count, n);
    FZ_CHECK(!split(in, back, count, &rows));
    for (int64_t c = 0; c < count; c++)
        for (int64_t i = 0; i < n && !children[c].variable; i++)
            if (!lc_packed_is_null(&rows, i))
                FZ_CHECK(!memcmp(back[c].data + i * back[c].width, children[c].data + i * back[c].width, (size_t)back[c].width));
    rows.data = fz_damaged(in, rows.data, total);
    outputs(in, back, count, n);
    split(in, back, count, &rows);
}
