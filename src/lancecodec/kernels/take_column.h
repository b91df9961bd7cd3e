/* A column of a take: rows of many pages as an array. */
#ifndef LANCECODEC_TAKE_COLUMN_H
#define LANCECODEC_TAKE_COLUMN_H

#include "arrow_array.h"
#include "take.h"
#include "take_lists.h"
#include "take_texts.h"

#define LC_COLUMN_LISTS 8

/* Type of a column. */
typedef struct {
    int64_t width; /* bytes of a value; 0: a bit; -1: values vary in size */
    int wide;      /* offsets of 64 bits */
    int text;      /* the bytes must be UTF-8 */
    int listed;    /* bytes of the offsets of lists of such values, 4 or 8; 0: there are no lists */
    int64_t lists; /* dimensions of the fixed-size lists around the items: */
    int64_t dimensions[LC_COLUMN_LISTS];
} lc_column_shape;

/* Rows [begin, end) of the requested ones, in a page that starts with row `base` of its column. Without a page the
 * values are the sums of `base` and the rows. */
typedef struct {
    const lc_take_page *page;
    int64_t begin, end, base;
} lc_column_segment;

typedef struct {
    lc_column_segment *at;
    int64_t count, capacity;
} lc_column_segments;

static inline int lc_segments_add(lc_column_segments *segments, lc_column_segment segment) {
    if (segments->count == segments->capacity) {
        int64_t capacity = segments->capacity ? 4 * segments->capacity : 4;
        void *grown = realloc(segments->at, (size_t)capacity * sizeof(lc_column_segment));
        if (grown == NULL) return LC_NO_MEMORY;
        segments->at = (lc_column_segment *)grown;
        segments->capacity = capacity;
    }
    segments->at[segments->count++] = segment;
    return LC_OK;
}

/* Rows of a take, ascending, and their places in the output; NULL: they are in order already. */
typedef struct {
    const int64_t *rows, *places;
    int64_t n;
} lc_column_rows;

static void lc_column_sums(const lc_column_rows *rows, const lc_column_segment *segment, uint8_t *out) {
    for (int64_t i = segment->begin; i < segment->end; i++)
        lc_store_u64(out + 8 * (rows->places ? rows->places[i] : i), (uint64_t)segment->base + (uint64_t)rows->rows[i]);
}

LC_INLINE lc_take_span lc_column_span(const lc_column_rows *rows, const lc_column_segment *segment) {
    int64_t begin = segment->begin, n = segment->end - begin;
    lc_take_span span = {rows->rows + begin, rows->places ? rows->places + begin : NULL, n, segment->base, begin};
    return span;
}

static int lc_column_gather(const lc_column_rows *rows, const lc_column_segments *segments, lc_take_sink *sink) {
    int problem = LC_OK;
    for (int64_t s = 0; s < segments->count && !problem; s++) {
        lc_take_span span = lc_column_span(rows, segments->at + s);
        if (segments->at[s].page) problem = lc_take_from_page(segments->at[s].page, &span, sink);
        else lc_column_sums(rows, segments->at + s, sink->values);
    }
    return problem;
}

/* Buffers of an array are passed to it as soon as they exist, so that its release frees them in any case. */
static int lc_column_texts(const lc_column_shape *shape, const lc_take_sink *sink, const uint64_t *utf8,
                           lc_array *array) {
    int64_t n = sink->n, total = 0;
    uint8_t *offsets, *data;
    void *memory = lc_array_memory((n + 1) * (shape->wide ? 8 : 4), &offsets);
    if (memory == NULL) return LC_NO_MEMORY;
    lc_array_give(array, 1, memory, offsets);
    int problem = lc_texts_offsets(sink->texts, n, shape->wide, offsets, &total);
    if (problem) return problem;
    memory = lc_array_memory(total, &data);
    if (memory == NULL) return LC_NO_MEMORY;
    lc_array_give(array, 2, memory, data);
    lc_texts_copy(sink->texts, n, data);
    return shape->text && !lc_texts_are_utf8(utf8, data, offsets, shape->wide, n) ? LC_BAD_CODE : LC_OK;
}

/* The array, with fixed-size lists around its items; *items is the innermost one, of `length` items. */
static int lc_column_frame(const lc_column_shape *shape, int64_t n, lc_array *array, lc_array **items,
                           int64_t *length) {
    *items = array;
    *length = n;
    for (int64_t d = 0; d < shape->lists; d++) {
        if (lc_array_make(*items, *length, 1, 1) == NULL) return LC_NO_MEMORY;
        *length *= shape->dimensions[d];
        *items = (*items)->children[0];
    }
    return lc_array_make(*items, *length, shape->width < 0 ? 3 : 2, 0) ? LC_OK : LC_NO_MEMORY;
}

/* Size of n values in bytes, -1 if it is too large. */
LC_INLINE int64_t lc_column_bytes(const lc_column_shape *shape, int64_t n) {
    int64_t width = shape->width < 0 ? (int64_t)sizeof(lc_bytes) : shape->width;
    if (width == 0) return (n + 7) >> 3;
    return n > ((int64_t)1 << 46) / width ? -1 : n * width;
}

/* Allocate memory for n values; *memory is the address to free. */
static int lc_column_begin(const lc_column_shape *shape, int64_t n, lc_take_sink *sink, void **memory) {
    int64_t size = lc_column_bytes(shape, n);
    memset(sink, 0, sizeof *sink);
    *memory = NULL;
    if (size < 0) return LC_NO_SPACE;
    *memory = lc_array_memory(size, &sink->values);
    if (*memory == NULL) return LC_NO_MEMORY;
    if (shape->width == 0) memset(sink->values, 0, (size_t)size);
    sink->n = n;
    sink->texts = (lc_bytes *)sink->values;
    return LC_OK;
}

/* Convert the values of a sink to an array; the memory and the sink are consumed in any case. */
static int lc_column_end(const lc_column_shape *shape, lc_take_sink *sink, void *memory, int problem,
                         const uint64_t *utf8, lc_array *array) {
    lc_array *items;
    int64_t length;
    array->release = NULL;
    if (!problem) problem = lc_column_frame(shape, sink->n, array, &items, &length);
    if (!problem && shape->width >= 0) {
        lc_array_give(items, 1, memory, sink->values);
        memory = NULL;
    } else if (!problem) {
        problem = lc_column_texts(shape, sink, utf8, array);
    }
    free(memory);
    if (!problem && sink->nulls) {
        lc_array_give(array, 0, sink->validity, sink->validity);
        array->null_count = sink->nulls;
        sink->validity = NULL;
    }
    lc_take_sink_close(sink);
    if (problem && array->release) array->release(array);
    return problem;
}

/* The items of lists that were looked up. */
static int lc_column_items(const lc_column_shape *shape, const lc_column_rows *rows, const lc_column_segments *segments,
                           lc_list_work *work, const uint64_t *utf8, lc_array *array) {
    lc_take_sink sink;
    void *memory;
    int64_t entry = 0;
    int problem = lc_column_begin(shape, work->offsets[work->n], &sink, &memory);
    for (int64_t s = 0; s < segments->count && !problem; s++) {
        lc_take_span span = lc_column_span(rows, segments->at + s);
        problem = lc_list_items(segments->at[s].page, &span, work, &entry, &sink);
    }
    return lc_column_end(shape, &sink, memory, problem, utf8, array);
}

static int lc_column_take_lists(const lc_column_shape *shape, const lc_column_rows *rows,
                                const lc_column_segments *segments, const uint64_t *utf8, lc_array *array) {
    lc_list_work work;
    lc_take_sink sink = {0};
    uint8_t *offsets;
    array->release = NULL;
    sink.n = rows->n;
    int problem = lc_list_open(&work, rows->n);
    for (int64_t s = 0; s < segments->count && !problem; s++) {
        lc_take_span span = lc_column_span(rows, segments->at + s);
        problem = segments->at[s].page ? lc_list_levels(segments->at[s].page, &span, &work, &sink) : LC_BAD_HEADER;
    }
    if (!problem && lc_array_make(array, rows->n, 2, 1) == NULL) problem = LC_NO_MEMORY;
    if (!problem) {
        void *memory = lc_array_memory((rows->n + 1) * shape->listed, &offsets);
        lc_array_give(array, 1, memory, offsets);
        problem = memory ? lc_list_places(&work, shape->listed == 8, offsets) : LC_NO_MEMORY;
    }
    if (!problem) problem = lc_column_items(shape, rows, segments, &work, utf8, array->children[0]);
    if (!problem && sink.nulls) {
        lc_array_give(array, 0, sink.validity, sink.validity);
        array->null_count = sink.nulls;
        sink.validity = NULL;
    }
    lc_list_close(&work);
    lc_take_sink_close(&sink);
    if (problem && array->release) array->release(array);
    return problem;
}

/* Make `array` from the rows of a column; not after a problem. */
static int lc_column_take(const lc_column_shape *shape, const lc_column_rows *rows, const lc_column_segments *segments,
                          const uint64_t *utf8, lc_array *array) {
    lc_take_sink sink;
    void *memory;
    if (shape->listed) return lc_column_take_lists(shape, rows, segments, utf8, array);
    int problem = lc_column_begin(shape, rows->n, &sink, &memory);
    if (!problem) problem = lc_column_gather(rows, segments, &sink);
    return lc_column_end(shape, &sink, memory, problem, utf8, array);
}

#endif
