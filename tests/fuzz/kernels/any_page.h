/* Pages of all layouts for random access, damaged or not. */
#ifndef LANCECODEC_FUZZ_PAGES_H
#define LANCECODEC_FUZZ_PAGES_H

#include "chunks.h"
#define LC_AHEAD_BYTES 0
#include "take.h"

/* Whether pages of chunks have levels. */
static int fz_nullable;

/* Levels of a page without streams yet, in any codec. */
static void fz_null_levels(fz_input *in, fz_page *p, lc_take_page *page) {
    static const int64_t kinds[] = {LC_LEVEL_FLAT, LC_LEVEL_INLINE, LC_LEVEL_RLE, LC_LEVEL_OUT_OF_LINE};
    int64_t kind = kinds[fz_upto(in, 3)], s = fz_page_stream(p), ends[1], size, nulls = fz_upto(in, 2);
    uint8_t levels[2 << 6];
    for (int64_t i = 0; i < p->plan.count; i++) {
        int64_t n = p->levels[i] = p->values[i];
        uint8_t *room = fz_page_room(p, s, i);
        for (int64_t k = 0; k < n; k++) lc_store_u16(levels + 2 * k, (uint16_t)(nulls && fz_upto(in, 2) < nulls));
        size = 2 * n;
        if (kind == LC_LEVEL_FLAT) memcpy(room, levels, (size_t)size);
        else if (kind == LC_LEVEL_INLINE) size = lc_inline_pack(levels, n, LC_LEVEL_BITS, room, ends);
        else if (kind == LC_LEVEL_OUT_OF_LINE) FZ_CHECK(!lc_ool_pack(levels, n, LC_LEVEL_BITS, 1, room));
        else lc_store_u64(room, (uint64_t)size), memcpy(room + 8, levels, (size_t)size), memset(room + 8 + size, 1, (size_t)n), size = 8 + 3 * n;
        if (kind == LC_LEVEL_OUT_OF_LINE) size = lc_ool_size(n, LC_LEVEL_BITS, 1);
        fz_page_put(p, s, i, size);
    }
    page->levels = (lc_level_codec){kind, 1, 1};
    p->plan.levels = p->levels, p->plan.level_streams = 1, p->chunks.definition = 1;
}

/* Numbers, or indices of one byte into a dictionary of numbers or of strings. */
static int chunks_of(fz_input *in, fz_page *p, lc_take_page *page, int damage) {
    static const uint8_t entries[64] = "a few strings one after the other, or numbers of four bytes";
    int indexed = (int)fz_upto(in, 2), inline_ = (int)fz_upto(in, 1);
    fz_page_open(in, p, 6);
    if (fz_nullable) fz_null_levels(in, p, page);
    int64_t s = fz_page_stream(p), bits = indexed ? 8 : 8 << fz_upto(in, 3);
    for (int64_t i = 0; i < p->plan.count; i++) {
        uint8_t *room = fz_page_room(p, s, i);
        int64_t n = p->values[i], width = fz_upto(in, bits), size = inline_ ? bits / 8 + 128 * width : n * bits / 8;
        for (int64_t k = 0; k < size; k++) room[k] = (uint8_t)fz_upto(in, 9);
        if (inline_) memset(room, 0, (size_t)(bits / 8)), room[0] = (uint8_t)width;
        fz_page_put(p, s, i, size);
    }
    page->kind = LC_TAKE_CHUNKS;
    page->values.kind = inline_ ? LC_VALUE_INLINE : LC_VALUE_FLAT, page->values.bits = bits;
    page->width = indexed == 0 ? bits / 8 : indexed == 1 ? 4 : -1;
    page->entries.count = indexed ? fz_upto(in, 15) : -1;
    page->entries.data = (lc_bytes){entries, sizeof entries};
    if (indexed == 2) {
        uint8_t *offsets = fz_out(in, 17 * 4);
        for (int64_t k = 0; k < 17; k++) lc_store_offset(offsets, 0, k, damage && fz_upto(in, 15) == 0 ? fz_upto(in, 99) : 4 * k > 64 ? 64 : 4 * k);
        page->entries.offsets = offsets;
    }
    return fz_page_close(in, p, damage);
}

static int texts_of(fz_input *in, fz_page *p, lc_take_page *page, int damage) {
    fz_page_open(in, p, 6);
    page->kind = LC_TAKE_CHUNKS, page->width = -1, page->entries.count = -1;
    page->text.wide = (int)fz_upto(in, 1);
    if (fz_nullable) fz_null_levels(in, p, page);
    int64_t s = fz_page_stream(p), entry = page->text.wide ? 8 : 4;
    for (int64_t i = 0; i < p->plan.count; i++) {
        uint8_t *room = fz_page_room(p, s, i);
        int64_t n = p->values[i], at = (n + 1) * entry;
        for (int64_t k = 0; k <= n; k++) {
            lc_store_offset(room, page->text.wide, k, at);
            for (int64_t b = k < n ? fz_upto(in, 9) : 0; b > 0; b--) room[at++] = (uint8_t)fz_upto(in, 127);
        }
        while (at % entry) room[at++] = LC_VARIABLE_PAD;
        fz_page_put(p, s, i, at);
    }
    return fz_page_close(in, p, damage);
}

static void zipped_of(fz_input *in, lc_take_page *page) {
    page->kind = LC_TAKE_ZIPPED, page->width = fz_upto(in, 1) ? fz_upto(in, 9) : -1, page->entries.count = -1;
    page->zip.bits_def = fz_upto(in, 1), page->zip.control = lc_zip_control(page->zip.bits_def);
    page->zip.top_def = page->zip.visible = page->zip.bits_def;
    page->zip.width = page->width < 0 ? -1 : page->width ? page->width : 1, page->zip.prefix = 4;
    page->rows = 1 + fz_upto(in, 20), page->index_width = 2;
    int64_t size = fz_upto(in, 300);
    page->data = (lc_bytes){fz_take(in, size), size};
    uint8_t *index = fz_out(in, 2 * (page->rows + 1));
    for (int64_t k = 0, at = 0; k <= page->rows; k++, at += fz_upto(in, 20)) lc_store_u16(index + 2 * k, (uint16_t)at);
    page->index = (lc_bytes){index, 2 * (page->rows + 1)};
}

static void constant_of(fz_input *in, lc_take_page *page) {
    page->kind = fz_upto(in, 1) ? LC_TAKE_CONSTANT : LC_TAKE_NULLS, page->width = fz_upto(in, 8) - 1, page->entries.count = -1;
    page->rows = 1 + fz_upto(in, 20);
    page->value = (lc_bytes){fz_take(in, 8), 8};
    if (fz_upto(in, 1)) {
        uint8_t *levels = fz_out(in, 2 * page->rows);
        for (int64_t k = 0; k < page->rows; k++) lc_store_u16(levels + 2 * k, (uint16_t)(fz_upto(in, 15) == 15 ? 2 : fz_upto(in, 1)));
        page->definition = levels;
    }
}

/* A page of any layout over the memory of `p`. 0 if it cannot be read. */
static int fz_any_page(fz_input *in, fz_page *p, lc_take_page *page) {
    int damage = (int)fz_upto(in, 1), kind = (int)fz_upto(in, 3), opened = 1;
    page->levels.kind = LC_LEVEL_NONE, page->entries.count = -1;
    if (kind == 0) opened = chunks_of(in, p, page, damage);
    else if (kind == 1) opened = texts_of(in, p, page, damage);
    else if (kind == 2) zipped_of(in, page);
    else constant_of(in, page);
    if (opened && kind < 2) page->chunks = &p->chunks, page->rows = p->chunks.table.items;
    return opened;
}

#endif
