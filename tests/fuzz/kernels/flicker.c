/* Decoders of a file that changes while they read it: what they say is right must be right. */
#include "flicker.h"

#include "any_page.h"
#include "fsst_encode.h"
#include "fullzip.h"
#include "gather_variable.h"
#include "json_write.h"
#include "miniblock_levels.h"
#include "miniblock_variable.h"
#include "offsets.h"
#include "pages.h"
#include "records.h"
#include "runs.h"
#include "spans.h"
#include "substring_search.h"
#include "utf8.h"
#include "window.h"

#define MOST 2500

/* Ascending offsets from `first` on, a gap in front of each. */
static int64_t ascend(fz_input *in, uint8_t *out, int wide, int64_t n, int64_t first) {
    int64_t at = first;
    for (int64_t i = 0; i < n; i++) {
        lc_store_offset(out, wide, i, at);
        at += i + 1 < n ? fz_upto(in, 9) : 0;
    }
    return at;
}

static int64_t some(fz_input *in) { return 1 + fz_upto(in, fz_upto(in, 3) ? 60 : MOST - 1); }

static void ends_of_2_0(fz_input *in) {
    int wide = (int)fz_upto(in, 1);
    int64_t n = some(in), start = fz_upto(in, n - 1), rows = n - start;
    uint8_t *plain = fz_out(in, 8 * n), *out = fz_out(in, (rows + 1) * (wide ? 8 : 4)), *valid = fz_out(in, (rows + 7) / 8);
    int64_t total = ascend(in, plain, 1, n, fz_upto(in, 9));
    lc_ends_state state = {.adjustment = (uint64_t)total + 1 + (uint64_t)fz_upto(in, 3), .limit = (uint64_t)total};
    for (int64_t i = 0; i < n; i++)
        if (fz_upto(in, 7) == 0) lc_store_u64(plain + 8 * i, lc_load_u64(plain + 8 * i) + state.adjustment);
    const uint8_t *raw = fk_file(in, plain, 8 * n, 8);
    if (lc_offsets_decode(raw, start, n, wide, out, valid, &state)) return;
    FZ_CHECK(state.previous <= state.limit && lc_load_offset(out, wide, 0) == 0);
    fk_check_ends(out, wide, rows + 1, 0, (int64_t)(state.previous - state.first));
    FZ_CHECK(lc_load_offset(out, wide, rows) == (int64_t)(state.previous - state.first));
    FZ_CHECK(lc_bits_count(valid, 0, rows) == rows - state.nulls);
}

static void variable(fz_input *in) {
    int wide = (int)fz_upto(in, 1), out_wide = (int)fz_upto(in, 1), block = (int)fz_upto(in, 1);
    int64_t n = some(in), entry = wide ? 8 : 4, base = fz_upto(in, 50), header = block ? 2 * entry : 0;
    uint8_t *plain = fz_out(in, header + (n + 1) * entry + 9 * n + 16), *ends = fz_out(in, n * (out_wide ? 8 : 4));
    int64_t first = block ? 0 : (n + 1) * entry, last = ascend(in, plain + header, wide, n + 1, first);
    int64_t size = block ? header + (n + 1) * entry + last : (last + entry - 1) / entry * entry;
    if (block) lc_store_offset(plain, wide, 0, 8 * entry), lc_store_offset(plain, wide, 1, header + (n + 1) * entry);
    lc_bytes buffer = {fk_file(in, plain, size, entry), size}, values = {NULL, 0};
    if (block ? lc_variable_block_offsets(buffer, n, base, out_wide, ends, &values)
              : lc_variable_chunk_offsets(buffer, n, wide, base, out_wide, ends, &values))
        return;
    FZ_CHECK(values.data >= buffer.data && values.data + values.size <= buffer.data + buffer.size);
    fk_check_ends(ends, out_wide, n, base, base + values.size);
    FZ_CHECK(lc_load_offset(ends, out_wide, n - 1) == base + values.size);
}

static void strings_of_codes(fz_input *in) {
    lc_fsst_table table;
    uint64_t words[3] = {0x6f6c6c6568, 0x20, 0x646c726f77};
    uint8_t lengths[3] = {5, 1, 5}, bytes[LC_FSST_TABLE_SIZE];
    lc_fsst_table_write(words, lengths, 3, fz_upto(in, 3) != 0, bytes);
    FZ_CHECK(!lc_fsst_table_parse(bytes, sizeof bytes, &table));
    int wide = (int)fz_upto(in, 1), out_wide = (int)fz_upto(in, 1), longer = fz_upto(in, 3) == 0 ? 200 : 1;
    int64_t n = some(in) / (longer == 1 ? 1 : 60) + 1, width = wide ? 8 : 4, at = 0, written = 0;
    uint8_t *plain = fz_out(in, n * width);
    for (int64_t i = 0; i < n; i++) lc_store_offset(plain, wide, i, at += fz_upto(in, 9) * longer);
    uint8_t *codes = fz_out(in, at), *ends = fz_out(in, n * (out_wide ? 8 : 4)), *out = fz_out(in, 8 * at + 64);
    for (int64_t i = 0; i < at; i++) codes[i] = (uint8_t)fz_upto(in, 2);
    lc_fsst_strings strings = {fk_file(in, codes, at, 1), at, fk_file(in, plain, n * width, width), wide, 0, n};
    lc_fsst_sink sink = {ends, out_wide, fz_upto(in, 40), out, 8 * at + 64};
    if (lc_fsst_decode_strings(&table, &strings, &sink, &written)) return;
    FZ_CHECK(written <= 8 * at + 64);
    fk_check_ends(ends, out_wide, n, sink.base, sink.base + written);
}

static void spans(fz_input *in) {
    int wide = (int)fz_upto(in, 1), out_wide = (int)fz_upto(in, 1);
    int64_t n = some(in), width = wide ? 8 : 4, starts[2], sizes[2], total = 0, bad;
    uint8_t *plain = fz_out(in, (n + 1) * width), *out = fz_out(in, (n + 1) * (out_wide ? 8 : 4));
    ascend(in, plain, wide, n + 1, fz_upto(in, 100));
    lc_bytes file = {fk_file(in, plain, (n + 1) * width, width), (n + 1) * width};
    int64_t cut = fz_upto(in, n), positions[2] = {0, cut * width}, counts[2] = {cut, n - cut};
    lc_span_list list = {positions, counts, 2};
    if (lc_spans_offsets(file, &list, wide, out_wide, out, n, starts, sizes, &total, &bad)) return;
    FZ_CHECK(lc_load_offset(out, out_wide, 0) == 0 && sizes[0] + sizes[1] == total);
    fk_check_ends(out, out_wide, n + 1, 0, total);
    FZ_CHECK(lc_load_offset(out, out_wide, n) == total);
}

static void dictionary(fz_input *in) {
    int64_t n = some(in), width = (int64_t)1 << fz_upto(in, 3), count = 1 + fz_upto(in, 200), end = 0;
    uint8_t *plain = fz_out(in, n * width), *entries = fz_take(in, 4 * count), *offsets = fz_out(in, 4 * (count + 1));
    for (int64_t i = 0; i < n; i++) {
        uint64_t code = (uint64_t)fz_upto(in, count - 1);
        memcpy(plain + i * width, &code, (size_t)width);
    }
    const uint8_t *codes = fk_file(in, plain, n * width, width);
    lc_gather_fixed(entries, count, 4, codes, width, n, fz_out(in, 4 * n));
    for (int64_t i = 0; i <= count; i++) lc_store_u32(offsets + 4 * i, (uint32_t)(4 * i));
    uint8_t *ends = fz_out(in, 4 * n);
    if (lc_gather_ends(offsets, 0, count, codes, width, n, NULL, 0, 0, 0, ends, &end)) return;
    fk_check_ends(ends, 0, n, 0, end);
    uint8_t *out = fz_out(in, end);
    lc_bytes data = {entries, 4 * count};
    int64_t written = 0;
    if (!lc_gather_bytes(data, offsets, 0, count, codes, width, n, NULL, 0, out, end, &written)) FZ_CHECK(written <= end);
}

static void runs(fz_input *in) {
    int64_t n = some(in), bits = 8 << fz_upto(in, 3), width = bits / 8, count = 0, entries = 0;
    uint8_t *plain = fz_out(in, n * width), *block = fz_out(in, 8 + n * (width + 1)), *back = fz_out(in, n * width);
    for (int64_t i = 0, value = 0; i < n; i++) {
        if (fz_upto(in, 5) == 0) value = fz_upto(in, 3);
        memcpy(plain + i * width, &value, (size_t)width);
    }
    const uint8_t *values = fk_file(in, plain, n * width, width);
    lc_count_runs(values, bits, n, 0, 255, &count, &entries);
    lc_runs_page page = {values, n, 1, width + 1, 255, 0, 0, fz_out(in, entries * width), fz_out(in, entries), entries};
    lc_rle_entries_of(&page, bits);
    lc_count_runs(plain, bits, n, 0, 255, &count, &entries);
    page.values = plain, page.capacity = entries, page.out_values = block + 8, page.out_lengths = block + 8 + entries * width;
    FZ_CHECK(!lc_rle_entries_of(&page, bits));
    lc_store_u64(block, (uint64_t)(entries * width));
    FZ_CHECK(!lc_rle_block(block, 8 + entries * (width + 1), n, bits, back) && !memcmp(back, plain, (size_t)(n * width)));
    const uint8_t *file = fk_file(in, block, 8 + entries * (width + 1), 1);
    lc_rle_block(file, 8 + entries * (width + 1), n, bits, back);
    lc_bytes lengths = {file, 8 + entries * (width + 1)};
    lc_levels_rle_sum(lengths);
}

static void texts(fz_input *in) {
    uint64_t table[256];
    int64_t n = fz_upto(in, 3) ? fz_upto(in, 100) : fz_upto(in, 9000);
    uint8_t *plain = fz_out(in, n), *out = fz_out(in, n);
    lc_utf8_fill(table);
    for (int64_t i = 0; i < n; i++) plain[i] = (uint8_t)(i + 1 < n && fz_upto(in, 9) == 0 ? 0xC3 : fz_upto(in, 127));
    for (int64_t i = 1; i < n; i++)
        if (plain[i - 1] == 0xC3) plain[i] = (uint8_t)(0x80 + fz_upto(in, 63));
    if (n && plain[n - 1] == 0xC3) plain[n - 1] = 'a';
    if (lc_utf8_copy(table, fk_file(in, plain, n, 1), n, out) >= 0) return;
    FZ_CHECK(lc_utf8_find_invalid(table, out, n) < 0);
}

static void pages(fz_input *in) {
    int wide = (int)fz_upto(in, 1);
    int64_t n = some(in), taken = fz_upto(in, 200), starts[3] = {0, n, n}, total = 0, nulls = 0, where;
    int64_t *rows = fz_positions(in, taken, n), *begins = (int64_t *)fz_memory(8 * taken, 0);
    uint8_t *plain = fz_out(in, 8 * n), *offsets = fz_out(in, (taken + 1) * (wide ? 8 : 4)), *valid = fz_out(in, (taken + 7) / 8);
    int64_t limit = ascend(in, plain, 1, n, fz_upto(in, 9));
    lc_page_map map = {starts, 1, n};
    lc_ends_page page[2] = {{.ends = fk_file(in, plain, 8 * n, 8), .data = fz_take(in, limit), .adjustment = (uint64_t)limit + 1,
                             .limit = (uint64_t)limit, .entries = n}};
    if (lc_ends_take_offsets(&map, page, rows, taken, wide, offsets, valid, begins, &total, &nulls, &where)) return;
    fk_check_ends(offsets, wide, taken + 1, 0, total);
    FZ_CHECK(lc_bits_count(valid, 0, taken) == taken - nulls);
    for (int64_t i = 0; i < taken; i++)
        FZ_CHECK(begins[i] >= 0 &&
                 begins[i] + lc_load_offset(offsets, wide, i + 1) - lc_load_offset(offsets, wide, i) <= limit);
    lc_ends_take_bytes(&map, page, rows, taken, wide, offsets, fz_out(in, total), total, &where);
    lc_fixed_page bits[2] = {{fz_take(in, n), fk_file(in, fz_take(in, (n + 7) / 8), (n + 7) / 8, 1)}};
    FZ_CHECK(lc_fixed_pages_take(&map, bits, rows, taken, 1, fz_out(in, taken), valid, &nulls) < 0);
    FZ_CHECK(lc_bits_count(valid, 0, taken) == taken - nulls);
}

static void zipped(fz_input *in) {
    int64_t n = some(in), at = 0, begin = 0, where;
    uint8_t *plain = fz_out(in, 12 * n);
    for (int64_t i = 0; i < n; i++) {
        int64_t size = fz_upto(in, 6), null = fz_upto(in, 4) == 0;
        plain[at++] = (uint8_t)null;
        if (null) continue;
        lc_store_u32(plain + at, (uint32_t)size);
        memset(plain + at + 4, 'x', (size_t)size), at += 4 + size;
    }
    lc_zip zip = {.bits_def = 1, .control = 1, .top_def = 1, .visible = 1, .width = -1, .prefix = 4};
    lc_bytes data = {fk_file(in, plain, at, 1), at};
    lc_zip_out count = {.room_bytes = INT64_MAX / 2}, out = {0};
    if (lc_zip_count(&zip, data, &begin, &at, 1, &count, &where)) return;
    out.def = fz_out(in, 2 * count.items), out.values = fz_out(in, count.bytes);
    out.offsets = fz_out(in, 4 * (count.visible + 1));
    out.room_items = count.items, out.room_visible = count.visible, out.room_bytes = count.bytes;
    lc_store_u32(out.offsets, 0);
    if (lc_zip_unzip(&zip, data, &begin, &at, 1, &out, &where)) return;
    fk_check_ends(out.offsets, 0, out.visible + 1, 0, count.bytes);
}

static void messages(fz_input *in) {
    int64_t size = fz_upto(in, 400), start = 0, found = 0, places[4][64];
    const uint8_t *plain = fz_take(in, size), *file = fk_file(in, plain, size, 1);
    lc_record_places out = {places[0], places[1], places[2], places[3], 64};
    lc_bytes src = {file, size};
    lc_record_column column = {1 + fz_upto(in, 3), fz_upto(in, 2), fz_upto(in, 5), 0};
    lc_records_columns(src, &start, &size, 1, &column, 1, places[0]);
    if (lc_records_locate(src, &start, &size, 1, 1, &out, &found)) return;
    for (int64_t i = 0; i < found && i < 64; i++) FZ_CHECK(places[2][i] >= 0 && places[2][i] <= places[3][i] && places[3][i] <= size);
}

/* A document as text: it fits its space and is UTF-8. */
static void json_text(lc_bytes document, const uint8_t *offsets) {
    static uint64_t powers[2 * LC_POWERS], automaton[256];
    static lc_json_writer w;
    uint8_t out[6 * 29 + LC_JSON_WRITE_SLACK];
    int64_t ends[2] = {0, 0};
    lc_utf8_fill(automaton);
    w.powers = powers, w.automaton = automaton, w.out = out, w.capacity = (int64_t)sizeof out;
    int64_t done = lc_json_write_all(document, offsets, 0, NULL, 0, 1, &w, ends);
    FZ_CHECK(done >= 0 && ends[done] <= (int64_t)sizeof out);
    if (done && ends[1]) FZ_CHECK(lc_utf8_find_invalid(automaton, out, ends[1]) < 0);
}

static void json_values(fz_input *in) {
    static const uint8_t header[12] = {0x40, 0, 0, 1, 0x10, 0, 0, 1, 0x50, 0, 0, 16};
    static const uint8_t inner[17] = {'k', 0x80, 0, 0, 2, 0x10, 0, 0, 1, 0x20, 0, 0, 3, 'v', 0x50, 1, 2};
    uint8_t plain[29], offsets[8] = {0, 0, 0, 0, 29};
    memcpy(plain, header, 12), memcpy(plain + 12, inner, 17);
    lc_json_step steps[2] = {{0, 1, -1}, {-1, 0, fz_upto(in, 2)}};
    lc_bytes data = {fk_file(in, plain, 29, 1), 29};
    lc_json_path path = {(const uint8_t *)"k", steps, fz_upto(in, 2)};
    uint8_t kind;
    int64_t word, range[2];
    if (lc_json_find_all(data, offsets, 0, 1, path, &kind, &word, range)) return;
    FZ_CHECK(kind <= LC_JSON_OTHER && range[0] >= 0 && range[0] <= range[1] && range[1] <= 29);
    json_text(data, offsets);
}

/* The text "ab" and its separator and end: 0 at the end, then a, b, separator. */
static void substrings(fz_input *in) {
    static const uint8_t shape[34] = {3, 0, 0, 0, 0, 1, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0,
                                      1, 97, 0, 0, 0, 1, 98, 0, 0, 0, 1, 255};
    uint8_t sizes[24] = {4}, words[24] = {9}, starts[8] = {0}, known[16] = {3, 0, 0, 0, 0, 0, 0, 0, 1}, owners[2] = {0};
    sizes[8] = sizes[16] = 2, words[8] = 2, words[16] = 1;
    lc_fm_parts parts = {.tree = {fk_file(in, shape, 34, 1), 34}, .sizes = {fk_file(in, sizes, 24, 8), 24}};
    parts.words = (lc_bytes){fk_file(in, words, 24, 8), 24}, parts.known = (lc_bytes){fk_file(in, known, 16, 8), 16};
    parts.starts = (lc_bytes){fk_file(in, starts, 8, 8), 8}, parts.names = parts.starts;
    parts.owners = (lc_bytes){fk_file(in, owners, 2, 2), fz_upto(in, 1) ? 2 : 0};
    lc_fm fm;
    if (lc_fm_open(&fm, 4, 2, parts) == LC_OK) {
        uint64_t name;
        uint8_t text[4];
        lc_fm_text(&fm, text);
        FZ_CHECK(lc_fm_locate(&fm, lc_fm_find(&fm, fk_file(in, shape + 20, 2, 1), 2), &name) <= 1);
        FZ_CHECK(lc_fm_locate(&fm, (lc_fm_rows){0, 4}, &name) <= 1);
    }
    lc_fm_close(&fm);
}

/* Rows of chunks of a file, all or some of them. */
static void windows(fz_input *in) {
    static uint64_t automaton[256];
    fz_page p;
    lc_take_page page = {.levels.kind = LC_LEVEL_NONE, .entries.count = -1};
    lc_utf8_fill(automaton);
    fz_nullable = (int)fz_upto(in, 1);
    if (!(fz_upto(in, 1) ? texts_of(in, &p, &page, 0) : chunks_of(in, &p, &page, 0))) return;
    page.chunks = &p.chunks, page.rows = p.chunks.table.items;
    for (int64_t i = 0; i < p.chunks.table.count; i++) p.data[i] = fk_file(in, p.data[i], p.starts[i + 1] - p.starts[i], 2);
    lc_window_part part = {&page, fz_upto(in, page.rows - 1), page.rows};
    int64_t n = part.stop - part.first, room = 0;
    lc_window_mask mask = {.bits = fz_upto(in, 1) ? fz_take(in, (n + 7) / 8) : NULL};
    int64_t rows = lc_window_count(&mask, 0, n), found = 0, *places = (int64_t *)fz_memory(8 * rows, 0);
    for (int64_t i = 0; i < n && mask.bits; i++)
        if (lc_get_bit(mask.bits, i)) places[found++] = i;
    if (mask.bits && fz_upto(in, 1)) mask.places = places;
    lc_window_sink sink = {.wide = (int)fz_upto(in, 1)};
    if (page.width < 0 && lc_window_room(&part, &mask, 0, &sink, &room)) room = fz_upto(in, 300);
    room = room < 1 << 20 ? room : 1 << 20;
    sink.values = fz_out(in, page.width < 0 ? (rows + 1) * (sink.wide ? 8 : 4) : rows * page.width);
    sink.validity = fz_nullable ? fz_out(in, (rows + 7) / 8) : NULL;
    sink.content = fz_out(in, room), sink.capacity = room;
    int problem = lc_window_read(&part, 1, &mask, rows, automaton, &sink);
    lc_window_close(&sink);
    if (problem) return;
    if (sink.validity) FZ_CHECK(lc_bits_count(sink.validity, 0, rows) == rows - sink.nulls);
    if (page.width >= 0) return;
    fk_check_ends(sink.values, sink.wide, rows + 1, 0, sink.size);
    if (page.entries.count < 0) FZ_CHECK(lc_utf8_find_invalid(automaton, sink.content, sink.size) < 0);
}

static void fz_target(fz_input *in) {
    fk_begin(in);
    switch (fz_upto(in, 12)) {
        case 0: ends_of_2_0(in); break;
        case 1: case 2: variable(in); break;
        case 3: strings_of_codes(in); break;
        case 4: spans(in); break;
        case 5: dictionary(in); break;
        case 6: runs(in); break;
        case 7: texts(in); break;
        case 8: pages(in); break;
        case 9: zipped(in); break;
        case 10: json_values(in); break;
        case 11: substrings(in); break;
        default: fz_upto(in, 1) ? windows(in) : messages(in);
    }
}
