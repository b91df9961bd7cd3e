/* Takes from pages of a file whose blocks are loaded first, compared with takes from the same pages in memory. */
#include "block_file.h"

#include "any_page.h"
#include "take_needs.h"

static uint64_t utf8[256];

/* Place the chunks of a page in the file; the page looks for them among the blocks. */
static void chunks_in_file(fz_input *in, fz_file *file, const lc_chunks *chunks, const uint8_t **data) {
    int64_t places[FZ_CHUNKS], count = chunks->table.count;
    for (int64_t i = 0; i < count; i++) {
        int64_t size = chunks->table.starts[i + 1] - chunks->table.starts[i];
        places[i] = chunks->data[i] ? fz_file_put(in, file, chunks->data[i], size) : -1;
    }
    fz_file_close(file);
    for (int64_t i = 0; i < count; i++) data[i] = places[i] < 0 ? NULL : file->blocks.base + places[i];
}

static void zipped_in_file(fz_input *in, fz_file *file, lc_take_page *page) {
    int64_t data = fz_file_put(in, file, page->data.data, page->data.size);
    int64_t index = fz_file_put(in, file, page->index.data, page->index.size);
    fz_file_close(file);
    page->data.data = file->blocks.base + data;
    page->index.data = file->blocks.base + index;
}

static int taken(const lc_take_page *page, const lc_column_rows *rows, lc_array *array) {
    lc_column_segment segment = {page, 0, rows->n, 0};
    lc_column_segments segments = {&segment, 1, 1};
    lc_column_shape shape = {.width = page->width};
    return lc_column_take(&shape, rows, &segments, utf8, array);
}

static int needed(const lc_take_page *page, const lc_column_rows *rows, lc_needs *needs) {
    lc_column_segment segment = {page, 0, rows->n, 0};
    lc_column_segments segments = {&segment, 1, 1};
    return lc_column_needs(rows, &segments, needs);
}

static void check_same(const lc_array *a, const lc_array *b, int64_t width) {
    FZ_CHECK(a->length == b->length && a->null_count == b->null_count);
    int64_t n = a->length, size = width < 0 ? 4 * (n + 1) : width ? width * n : n / 8;
    FZ_CHECK(!memcmp(a->buffers[1], b->buffers[1], (size_t)size));
    if (width >= 0) return;
    size = lc_load_offset((const uint8_t *)a->buffers[1], 0, n);
    FZ_CHECK(!size || !memcmp(a->buffers[2], b->buffers[2], (size_t)size));
}

static void compare(fz_file *file, const lc_take_page *stored, const lc_take_page *page, const lc_column_rows *rows) {
    lc_array expected, found;
    lc_needs needs = {0};
    int problem, expected_problem = taken(stored, rows, &expected), loads = 0;
    do problem = needed(page, rows, &needs);
    while (!problem && fz_file_load(file, &needs) && ++loads < 3);
    FZ_CHECK(loads < 3 && (!problem || expected_problem));
    if (!problem) problem = taken(page, rows, &found);
    FZ_CHECK(!problem == !expected_problem);
    fz_file_done(file, &needs);
    if (problem) return;
    check_same(&expected, &found, page->width);
    expected.release(&expected);
    found.release(&found);
}

/* Rows of lists: the chunk in which a row starts is loaded, and others behind it if it may reach into them. */
static void lists(fz_input *in, fz_file *file, const lc_chunks *chunks) {
    int64_t started[FZ_CHUNKS + 1] = {0}, count = chunks->table.count, n = 1 + fz_upto(in, 5);
    lc_needs needs = {0};
    for (int64_t i = 0; i < count; i++) started[i + 1] = started[i] + fz_upto(in, 3);
    int64_t *rows = fz_positions(in, n, started[count] + 1);
    int problem = lc_need_lists(chunks, &file->blocks, started, rows, n, 0, &needs);
    fz_file_load(file, &needs);
    for (int64_t i = 0; i < n && !problem; i++)
        for (int64_t c = 0; c < count; c++) {
            if (started[c] > rows[i] + (c && started[c] == started[c - 1]) || rows[i] >= started[c + 1]) continue;
            int64_t at = chunks->data[c] - file->blocks.base, b = at >> LC_BLOCK_LOG;
            FZ_CHECK(file->blocks.loaded[b >> 6] >> (b & 63) & 1);
        }
    fz_file_done(file, &needs);
}

static void fz_target(fz_input *in) {
    fz_page p;
    fz_file file;
    lc_take_page stored = {0};
    if (!utf8[0]) lc_utf8_fill(utf8);
    if (!fz_any_page(in, &p, &stored)) return;
    lc_take_page page = stored;
    lc_chunks chunks;
    const uint8_t *data[FZ_CHUNKS];
    fz_file_open(&file);
    if (stored.kind == LC_TAKE_CHUNKS) {
        if (p.starts[p.chunks.table.count] > FZ_FILE_BYTES / 2) return;
        chunks = p.chunks, chunks.data = data, page.chunks = &chunks;
        chunks_in_file(in, &file, &p.chunks, data);
        if (fz_upto(in, 7) == 0) lists(in, &file, &chunks);
    } else if (stored.kind == LC_TAKE_ZIPPED) {
        zipped_in_file(in, &file, &page);
    } else {
        fz_file_close(&file);
    }
    page.blocks = &file.blocks;
    int64_t n = 1 + fz_upto(in, 30);
    for (int again = 0; again < 2; again++) {
        lc_column_rows rows = {fz_positions(in, n, page.rows), NULL, n};
        compare(&file, &stored, &page, &rows);
    }
    if (stored.kind == LC_TAKE_CHUNKS) {
        lc_needs needs = {0};
        int64_t *items = fz_positions(in, n, page.rows + 1);
        lc_need_values(&chunks, &file.blocks, items, n, 0, &needs);
        fz_file_done(&file, &needs);
    }
}
