/* Texts at any addresses to Arrow offsets and bytes. */
#ifndef LANCECODEC_TAKE_TEXTS_H
#define LANCECODEC_TAKE_TEXTS_H

#include "chunk.h"
#include "utf8.h"

/* Write n + 1 offsets, of 64 bits if wide; *total: size of all. LC_NO_SPACE: it does not fit the offsets. */
static int lc_texts_offsets(const lc_bytes *texts, int64_t n, int wide, uint8_t *offsets, int64_t *total) {
    int64_t at = 0, limit = wide ? (int64_t)1 << 62 : INT32_MAX;
    lc_store_offset(offsets, wide, 0, 0);
    for (int64_t i = 0; i < n; i++) {
        if (texts[i].size > limit - at) return LC_NO_SPACE;
        at += texts[i].size;
        lc_store_offset(offsets, wide, i + 1, at);
    }
    *total = at;
    return LC_OK;
}

/* Copy the bytes back to back; `out` has room for all. */
static void lc_texts_copy(const lc_bytes *texts, int64_t n, uint8_t *out) {
    for (int64_t i = 0; i < n; i++) {
        if (texts[i].size) lc_copy_bytes(out, texts[i].data, texts[i].size);
        out += texts[i].size;
    }
}

/* Return whether each of n texts is valid UTF-8. `table` is that of lc_utf8_fill. */
static int lc_texts_are_utf8(const uint64_t *table, const uint8_t *data, const uint8_t *offsets, int wide, int64_t n) {
    int64_t size = lc_load_offset(offsets, wide, n);
    if (lc_is_ascii(data, size)) return 1;
    if (lc_utf8_find_invalid(table, data, size) >= 0) return 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t at = lc_load_offset(offsets, wide, i);
        if ((uint64_t)at < (uint64_t)size && (data[at] & 0xC0) == 0x80) return 0;
    }
    return 1;
}

#endif
