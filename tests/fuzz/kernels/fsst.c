/* FSST: any bytes as tables and strings, and round trips of strings. */
#include "fsst_build.h"
#include "fsst_strings.h"
#include "fuzz.h"

static lc_fsst_builder builder;
static lc_fsst_lookup lookup;

/* Strings decoded together, one by one, and their sizes must all agree. */
static void all_ways(fz_input *in, const lc_fsst_table *table, lc_fsst_strings strings) {
    int wide = (int)fz_upto(in, 1);
    int64_t room = strings.size * 8 + 64, capacity = fz_upto(in, 3) ? room : fz_upto(in, room), written, total, where;
    uint8_t *ends = fz_out(in, strings.n * (wide ? 8 : 4)), *out = fz_out(in, capacity);
    lc_fsst_sink sink = {ends, wide, 0, out, capacity};
    int problem = lc_fsst_decode_strings(table, &strings, &sink, &written);
    for (int64_t i = 0, begin = 0; i < strings.n; i++) {
        int64_t end = lc_load_offset(strings.ends, strings.wide, i) - strings.first;
        if (end < begin || end > strings.size) return;
        int64_t size = lc_fsst_decoded_size(table, strings.data + begin, end - begin), one, before = 0;
        uint8_t *text = size >= 0 && i < 12 ? fz_out(in, size) : NULL;
        if (!problem) {
            before = i ? lc_load_offset(ends, wide, i - 1) : 0;
            FZ_CHECK(lc_load_offset(ends, wide, i) - before == size);
        }
        if (text) {
            FZ_CHECK(!lc_fsst_decode(table, strings.data + begin, end - begin, text, size, &one) && one == size);
            if (!problem) FZ_CHECK(!memcmp(text, out + before, (size_t)size));
        }
        begin = end;
    }
    int64_t count = strings.n ? fz_upto(in, 10) : 0, *rows = fz_positions(in, count, strings.n ? strings.n : 1);
    uint8_t *few = fz_out(in, 8 * count);
    lc_fsst_sink few_sink = {few, 1, 0, NULL, 0};
    if (lc_fsst_take_ends(table, &strings, rows, count, &few_sink, &total, &where)) return;
    uint8_t *bytes = fz_out(in, total);
    FZ_CHECK(!lc_fsst_take_bytes(table, &strings, rows, count, bytes, total, &written, &where) && written == total);
}

static void decoded(fz_input *in) {
    lc_fsst_table table;
    uint64_t words[LC_FSST_MAX_SYMBOLS];
    uint8_t lengths[LC_FSST_MAX_SYMBOLS], *bytes = fz_memory(LC_FSST_TABLE_SIZE, 0);
    int count = (int)fz_upto(in, LC_FSST_MAX_SYMBOLS), few = (int)fz_upto(in, 8);
    for (int c = 0; c < count; c++) {
        lengths[c] = (uint8_t)(1 + (c < few ? fz_upto(in, 7) : c & 7));
        words[c] = c < few ? fz_word(in, 8) : (uint64_t)c * 0x9E3779B97F4A7C15ULL;
    }
    lc_fsst_table_write(words, lengths, count, fz_upto(in, 7) != 0, bytes);
    if (lc_fsst_table_parse(fz_upto(in, 3) ? bytes : fz_damaged(in, bytes, LC_FSST_TABLE_SIZE), LC_FSST_TABLE_SIZE, &table))
        return;
    int wide = (int)fz_upto(in, 1);
    int64_t n = fz_upto(in, 40), at = fz_upto(in, 3) == 0 ? fz_upto(in, 1000) : 0, first = at;
    uint8_t *ends = fz_out(in, n * (wide ? 8 : 4));
    for (int64_t i = 0; i < n; i++) {
        at += fz_upto(in, 40) - (fz_upto(in, 255) == 7);
        lc_store_offset(ends, wide, i, at < 0 ? 0 : at);
    }
    int64_t size = at > first ? at - first - (fz_upto(in, 15) == 3) : 0;
    uint8_t *data = fz_take(in, size);
    for (int64_t i = 0; i < size && table.count && fz_upto(in, 1); i++)
        if (data[i] >= table.count && data[i] != 255) data[i] = (uint8_t)(data[i] % table.count);
    lc_fsst_strings strings = {data, size, ends, wide, first, n};
    all_ways(in, &table, strings);
}

static void there_and_back(fz_input *in) {
    int wide = (int)fz_upto(in, 1), out_wide = (int)fz_upto(in, 1);
    int64_t n = fz_upto(in, 200), total = fz_upto(in, 5000), at = 0, sampled, written, back;
    uint8_t *text = fz_take(in, total), *offsets = fz_out(in, (n + 1) * (wide ? 8 : 4));
    uint8_t *encoded_offsets = fz_out(in, (n + 1) * (out_wide ? 8 : 4)), *bytes = fz_out(in, LC_FSST_TABLE_SIZE);
    for (int64_t i = 0; i <= n; i++, at += (total - at < 60 ? total - at : 60) * (i & 3) / 3)
        lc_store_offset(offsets, wide, i, at);
    lc_fsst_job job = {.data = text, .size = total, .offsets = offsets, .n = n, .out_offsets = encoded_offsets};
    int64_t size = lc_fsst_job_size(&job, wide);
    if (n == 0) return;
    lc_fsst_build(&builder, &job, wide, &sampled);
    lc_fsst_table_write(builder.best.words, builder.best.lengths, builder.best.count, 1, bytes);
    lc_fsst_table table;
    FZ_CHECK(!lc_fsst_table_parse(bytes, LC_FSST_TABLE_SIZE, &table));
    lc_fsst_lookup_fill(&lookup, &table);
    uint8_t *encoded = fz_out(in, lc_fsst_bound(size)), *ends = fz_out(in, n * 8), *out = fz_out(in, size);
    job.out = encoded;
    FZ_CHECK(!lc_fsst_encode(&lookup, &job, wide, out_wide, &written) && written <= lc_fsst_bound(size));
    lc_fsst_strings strings = {encoded, written, encoded_offsets + (out_wide ? 8 : 4), out_wide, 0, n};
    lc_fsst_sink sink = {ends, 1, 0, out, size};
    FZ_CHECK(!lc_fsst_decode_strings(&table, &strings, &sink, &back) && back == size);
    FZ_CHECK(!memcmp(out, text + lc_load_offset(offsets, wide, 0), (size_t)size));
    for (int64_t i = 0; i < n; i++)
        FZ_CHECK(lc_load_offset(ends, 1, i) == lc_load_offset(offsets, wide, i + 1) - lc_load_offset(offsets, wide, 0));
}

static void fz_target(fz_input *in) {
    if (fz_upto(in, 3)) decoded(in);
    else there_and_back(in);
}
