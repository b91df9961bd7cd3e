/* Spans of values, bits and offsets, and pages of batches, against one value at a time. */
#include "fuzz.h"
#include "spans.h"

enum { MOST = 600 };

/* Spans within `room` units of which one may be wrong; *total = their values. */
static lc_span_list some_spans(fz_input *in, int64_t room, int64_t longest, int64_t *total) {
    lc_span_list spans = {.n = fz_upto(in, MOST)};
    int64_t *positions = (int64_t *)fz_memory(8 * spans.n, 0), *counts = (int64_t *)fz_memory(8 * spans.n, 0);
    int single = (int)fz_upto(in, 1);
    *total = 0;
    for (int64_t k = 0; k < spans.n; k++) {
        counts[k] = single ? 1 : fz_upto(in, longest);
        if (counts[k] > room) counts[k] = room;
        positions[k] = fz_upto(in, room - counts[k]);
        *total += counts[k];
    }
    if (spans.n && fz_upto(in, 3) == 0) {
        int64_t *wrong = fz_upto(in, 1) ? positions : counts;
        wrong[fz_upto(in, spans.n - 1)] = (int64_t)(fz_word(in, 8) << fz_upto(in, 63));
    }
    spans.positions = positions, spans.counts = counts;
    return spans;
}

/* Spans like those of `some_spans`, with positions in bytes. */
static lc_span_list in_bytes(const lc_span_list *spans, int64_t width) {
    int64_t *positions = (int64_t *)fz_memory(8 * spans->n, 0);
    for (int64_t k = 0; k < spans->n; k++) positions[k] = (int64_t)((uint64_t)spans->positions[k] * (uint64_t)width);
    return (lc_span_list){positions, spans->counts, spans->n};
}

/* Return 1 if all spans, of values of `width` positions, are within `room` positions and `most` values. */
static int good(const lc_span_list *spans, int64_t width, int64_t room, int64_t most) {
    for (int64_t k = 0; k < spans->n; k++) {
        int64_t position = spans->positions[k], count = spans->counts[k];
        if (count < 0 || count > most) return 0;
        if (count && (position < 0 || position > room || count > (room - position) / width)) return 0;
        most -= count;
    }
    return 1;
}

static void fixed(fz_input *in) {
    int64_t width = 1 + fz_upto(in, 40), values = fz_upto(in, 300), total, bad = -1, at = 0;
    lc_span_list spans = some_spans(in, values, 60, &total);
    int64_t room = total - (fz_upto(in, 15) == 0 && total > 0), slack = fz_upto(in, width - 1);
    lc_span_list scaled = in_bytes(&spans, width);
    lc_bytes src = {fz_take(in, values * width), values * width};
    uint8_t *out = fz_out(in, room * width + slack);
    int nothing = lc_spans_nothing(&scaled, &bad), negative = 0;
    for (int64_t k = 0; k < spans.n; k++) negative |= spans.counts[k] < 0;
    FZ_CHECK((nothing != LC_SPANS_OK) == negative);
    int problem = lc_spans_fixed(src, &scaled, width, out, room * width + slack, &bad);
    FZ_CHECK((problem == LC_SPANS_OK) == good(&scaled, width, src.size, room));
    if (problem) FZ_CHECK(bad >= 0 && bad < spans.n);
    if (problem) return;
    for (int64_t k = 0; k < spans.n; at += spans.counts[k++] * width)
        if (spans.counts[k])
            FZ_CHECK(!memcmp(out + at, src.data + scaled.positions[k], (size_t)(spans.counts[k] * width)));
}

static void bits(fz_input *in) {
    int64_t size = fz_upto(in, 500), total, bad = -1, at = 0;
    lc_span_list spans = some_spans(in, size * 8, 300, &total);
    int64_t room = (total + 7) / 8 * 8 - (fz_upto(in, 15) == 0 && total > 0 ? 8 : 0);
    lc_bytes src = {fz_take(in, size), size};
    uint8_t *out = fz_out(in, room / 8);
    int problem = lc_spans_bits(src, &spans, out, room, &bad);
    FZ_CHECK((problem == LC_SPANS_OK) == good(&spans, 1, size * 8, room));
    if (problem) FZ_CHECK(bad >= 0 && bad < spans.n);
    if (problem) return;
    for (int64_t k = 0; k < spans.n; k++)
        for (int64_t i = 0; i < spans.counts[k]; i++, at++)
            FZ_CHECK(lc_get_bit(out, at) == lc_get_bit(src.data, spans.positions[k] + i));
    for (; at & 7; at++) FZ_CHECK(!lc_get_bit(out, at));
}

/* Stored offsets: ascending, with some damage. */
static lc_bytes stored_offsets(fz_input *in, int64_t n, int wide) {
    int64_t stride = wide ? 8 : 4, step = fz_upto(in, 2) ? fz_upto(in, 60) : (int64_t)1 << fz_upto(in, wide ? 51 : 19);
    uint8_t *offsets = fz_out(in, n * stride);
    for (int64_t i = 0, at = fz_upto(in, 1000); i < n; i++, at += step) lc_store_offset(offsets, wide, i, at);
    return (lc_bytes){fz_damaged(in, offsets, n * stride), n * stride};
}

static void offsets(fz_input *in) {
    int wide = (int)fz_upto(in, 1), out_wide = (int)fz_upto(in, 1), descends = 0, passes = 0;
    int64_t n = fz_upto(in, 2500), stride = wide ? 8 : 4, total, bad = -1, sum = 0, end = 0, at = 0;
    lc_bytes src = stored_offsets(in, n + 1, wide);
    lc_span_list spans = some_spans(in, n, fz_upto(in, 1) ? 40 : 2500, &total);
    int64_t *starts = (int64_t *)fz_memory(8 * spans.n, 0), *sizes = (int64_t *)fz_memory(8 * spans.n, 0);
    uint8_t *out = fz_out(in, (total + 1) * (out_wide ? 8 : 4));
    if (!good(&spans, 1, n, total)) return;
    lc_span_list scaled = in_bytes(&spans, stride);
    int problem = lc_spans_offsets(src, &scaled, wide, out_wide, out, total, starts, sizes, &sum, &bad);
    for (int64_t k = 0; k < spans.n && !descends && !passes; k++) {
        if (!spans.counts[k]) continue;
        int64_t first = lc_load_offset(src.data, wide, spans.positions[k]), last = first, base = end;
        descends |= first < 0;
        for (int64_t i = 1; i <= spans.counts[k] && !descends; i++) {
            int64_t next = lc_load_offset(src.data, wide, spans.positions[k] + i);
            descends |= next < last, last = next;
        }
        if (descends) break;
        passes = last - first > (out_wide ? INT64_MAX : INT32_MAX) - end;
        if (passes) break;
        end = base + (last - first);
        if (problem && bad <= k) continue;
        FZ_CHECK(starts[k] == first && sizes[k] == last - first);
        for (int64_t i = 1; i <= spans.counts[k]; i++, at++)
            FZ_CHECK(lc_load_offset(out, out_wide, at + 1) ==
                     base + (lc_load_offset(src.data, wide, spans.positions[k] + i) - first));
    }
    FZ_CHECK(problem == (descends ? LC_SPANS_OFFSETS : passes ? LC_SPANS_OVERFLOW : LC_SPANS_OK));
    if (!problem) FZ_CHECK(sum == end && lc_load_offset(out, out_wide, at) == end);
}

static void wild_offsets(fz_input *in) {
    int wide = (int)fz_upto(in, 1), out_wide = (int)fz_upto(in, 1);
    int64_t size = fz_upto(in, 3000), total, sum, bad = -1;
    lc_bytes src = {fz_take(in, size), size};
    lc_span_list spans = some_spans(in, size, 300, &total);
    int64_t *starts = (int64_t *)fz_memory(8 * spans.n, 0), *sizes = (int64_t *)fz_memory(8 * spans.n, 0);
    uint8_t *out = fz_out(in, (total + 1) * (out_wide ? 8 : 4));
    if (lc_spans_offsets(src, &spans, wide, out_wide, out, total, starts, sizes, &sum, &bad))
        FZ_CHECK(bad >= 0 && bad < spans.n);
}

static void empties(fz_input *in) {
    int wide = (int)fz_upto(in, 1);
    lc_bytes ends = fz_rest(in);
    int64_t n = ends.size / (wide ? 8 : 4) - 1, empty = 0;
    if (n < 0) return;
    uint8_t *out = fz_out(in, (n + 7) / 8);
    int64_t found = lc_spans_empties(ends.data, wide, n, out);
    for (int64_t i = 0; i < n; i++) {
        int same = lc_load_offset(ends.data, wide, i) == lc_load_offset(ends.data, wide, i + 1);
        FZ_CHECK(lc_get_bit(out, i) == !same);
        empty += same;
    }
    FZ_CHECK(found == empty);
}

/* Pages that `BatchPages` accepts: they start in the file, batches follow one another; the rest may be anything. */
static lc_batch_pages some_batches(fz_input *in, int64_t size) {
    int bits = (int)fz_upto(in, 1), even = (int)fz_upto(in, 1);
    lc_batch_pages pages = {.n = fz_upto(in, 40), .width = bits ? 1 : fz_upto(in, 40), .scale = bits ? 8 : 1};
    int64_t *starts = (int64_t *)fz_memory(8 * (pages.n + 1), 0), *positions = (int64_t *)fz_memory(8 * pages.n, 0);
    int64_t *lengths = (int64_t *)fz_memory(8 * pages.n, 0), first = fz_upto(in, 30), wild = fz_upto(in, 255);
    starts[0] = 0;
    for (int64_t k = 0; k < pages.n; k++) {
        int64_t rows = even ? first : fz_upto(in, 30), most = ((int64_t)1 << 62) / (pages.width ? pages.width : 1);
        if (k == wild) rows = (int64_t)(fz_word(in, 8) >> 2);
        positions[k] = fz_upto(in, size);
        lengths[k] = k == wild ? (int64_t)(fz_word(in, 8) % (uint64_t)(most + 1)) : rows + fz_upto(in, 2);
        if (lengths[k] && k != wild && fz_upto(in, 63) == 0) lengths[k] = fz_upto(in, lengths[k] - 1);
        starts[k + 1] = starts[k] + rows;
    }
    pages.starts = starts, pages.positions = positions, pages.lengths = lengths;
    return pages;
}

/* Problem of a row, and where its value is. */
static int row_by_hand(const lc_batch_pages *pages, int64_t size, int64_t row, int64_t *position) {
    int64_t batch = 0, room = size * pages->scale;
    if (row < 0 || row >= pages->starts[pages->n]) return LC_BATCH_ROW;
    while (pages->starts[batch + 1] <= row) batch++;
    row -= pages->starts[batch];
    if (row >= pages->lengths[batch]) return LC_BATCH_SHORT;
    *position = pages->positions[batch] * pages->scale + row * pages->width;
    return *position > room - pages->width ? LC_SPANS_OUTSIDE : LC_SPANS_OK;
}

static void same_value(const lc_batch_pages *pages, lc_bytes src, int64_t position, const uint8_t *out, int64_t i) {
    if (pages->scale == 8) FZ_CHECK(lc_get_bit(out, i) == lc_get_bit(src.data, position));
    else if (pages->width) FZ_CHECK(!memcmp(out + i * pages->width, src.data + position, (size_t)pages->width));
}

static void batches(fz_input *in) {
    int64_t size = fz_upto(in, 1500), n = fz_upto(in, MOST), bad = -1, failed = n, position = 0, problem;
    lc_batch_pages pages = some_batches(in, size);
    lc_bytes src = {fz_take(in, size), size};
    int64_t end = pages.starts[pages.n], *rows = (int64_t *)fz_memory(8 * n, 0), *at = (int64_t *)fz_memory(8 * n, 0);
    for (int64_t i = 0; i < n; i++) rows[i] = fz_upto(in, end > 0 ? end - 1 : 0);
    if (n && fz_upto(in, 3) == 0) rows[fz_upto(in, n - 1)] = (int64_t)(fz_word(in, 8) << fz_upto(in, 63));
    uint8_t *out = fz_out(in, pages.scale == 8 ? (n + 7) / 8 : n * pages.width);
    problem = lc_batches_locate(&pages, rows, n, at, &bad);
    for (int64_t i = 0; i < n && failed == n; i++) {
        int found = row_by_hand(&pages, size, rows[i], &position);
        if (found == LC_BATCH_ROW || found == LC_BATCH_SHORT) FZ_CHECK(problem == found && bad == (failed = i));
        else FZ_CHECK(at[i] == position);
    }
    FZ_CHECK((failed == n) == (problem == LC_SPANS_OK));
    bad = -1;
    problem = lc_batches_take(src, &pages, rows, n, out, &bad);
    if (problem) {
        FZ_CHECK(bad >= 0 && bad < n && row_by_hand(&pages, size, rows[bad], &position) == problem);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        FZ_CHECK(row_by_hand(&pages, size, rows[i], &position) == LC_SPANS_OK);
        same_value(&pages, src, position, out, i);
    }
}

static void fz_target(fz_input *in) {
    switch (fz_upto(in, 5)) {
        case 0: fixed(in); break;
        case 1: bits(in); break;
        case 2: offsets(in); break;
        case 3: wild_offsets(in); break;
        case 4: batches(in); break;
        default: empties(in);
    }
}
