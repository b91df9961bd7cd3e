/* Files of Arrow with one record batch of columns of fixed width, such as deletion files: where schema and buffers lie.
 *
 * The file ends with a footer, its size (i32) and "ARROW1". The footer and the header of a message are flatbuffers: a
 * table begins with the distance (i32) back to the list of its fields, which has its own size (u16), the size of the
 * table (u16), and for each field its offset in the table (u16), 0 if it is missing. Lists and inner tables are
 * referred to by distances forward (u32); a list begins with the number of its entries (u32).
 * Source: https://arrow.apache.org/docs/format/Columnar.html, and the layout of flatbuffers. */
#ifndef LANCECODEC_ARROW_FILE_H
#define LANCECODEC_ARROW_FILE_H

#include "chunk.h"

enum {
    LC_ARROW_HEAD = 8,     /* "ARROW1" and padding */
    LC_ARROW_TAIL = 10,    /* size of the footer and "ARROW1" */
    LC_ARROW_MESSAGE = 8,  /* -1 (i32) and size of the header (i32) before a header */
    LC_ARROW_COLUMNS = 16, /* most columns of a batch that is described here */
    LC_ARROW_PLAIN = -1    /* buffers are not compressed; else 0 is LZ4, 1 is Zstandard */
};

typedef struct {
    int64_t schema_end; /* position after the message with the schema */
    int64_t rows, codec, columns;
    int64_t nulls[LC_ARROW_COLUMNS];
    int64_t starts[2 * LC_ARROW_COLUMNS], sizes[2 * LC_ARROW_COLUMNS]; /* validity and values of each column */
} lc_arrow_batch;

typedef struct {
    const uint8_t *data;
    int64_t size, at, fields, fields_size;
} lc_arrow_table;

/* Open the table at a position; 0 if it is not within the flatbuffer. */
LC_INLINE int lc_arrow_open(lc_arrow_table *table, const uint8_t *data, int64_t size, int64_t at) {
    if (at < 0 || at > size - 4) return 0;
    table->data = data, table->size = size, table->at = at;
    table->fields = at - (int32_t)lc_once_u32(data + at);
    if (table->fields < 0 || table->fields > size - 4) return 0;
    table->fields_size = lc_once_u16(data + table->fields);
    return table->fields_size >= 4 && table->fields_size <= size - table->fields;
}

LC_INLINE int lc_arrow_root(lc_arrow_table *table, const uint8_t *data, int64_t size) {
    return size >= 4 && lc_arrow_open(table, data, size, lc_once_u32(data));
}

/* Position of a field of `width` bytes; 0 if it is missing, -1 if it is not within the flatbuffer. */
LC_INLINE int64_t lc_arrow_field(const lc_arrow_table *table, int64_t number, int64_t width) {
    int64_t slot = 4 + 2 * number;
    if (slot + 2 > table->fields_size) return 0;
    int64_t offset = lc_once_u16(table->data + table->fields + slot);
    if (offset == 0) return 0;
    return table->at + offset <= table->size - width ? table->at + offset : -1;
}

LC_INLINE int lc_arrow_inner(lc_arrow_table *inner, const lc_arrow_table *table, int64_t number) {
    int64_t place = lc_arrow_field(table, number, 4);
    return place > 0 && lc_arrow_open(inner, table->data, table->size, place + lc_once_u32(table->data + place));
}

/* Number of entries of a list and position of the first; -1 unless all are within the flatbuffer. */
LC_INLINE int64_t lc_arrow_list(const lc_arrow_table *table, int64_t number, int64_t width, int64_t *first) {
    int64_t place = lc_arrow_field(table, number, 4);
    if (place <= 0) return -1;
    place += lc_once_u32(table->data + place);
    if (place > table->size - 4) return -1;
    int64_t count = lc_once_u32(table->data + place);
    *first = place + 4;
    return count <= (table->size - *first) / width ? count : -1;
}

/* The only record batch of a file without dictionaries: position and size of its message, size of its body. */
LC_INLINE int lc_arrow_block(lc_bytes src, int64_t *at, int64_t *header, int64_t *body) {
    lc_arrow_table footer;
    int64_t block = 0;
    if (src.size < LC_ARROW_HEAD + LC_ARROW_TAIL || memcmp(src.data, "ARROW1", 6) != 0 ||
        memcmp(src.data + src.size - 6, "ARROW1", 6) != 0)
        return 0;
    int64_t length = (int32_t)lc_once_u32(src.data + src.size - LC_ARROW_TAIL);
    int64_t start = src.size - LC_ARROW_TAIL - length;
    if (length < 0 || start < LC_ARROW_HEAD || !lc_arrow_root(&footer, src.data + start, length)) return 0;
    if (lc_arrow_list(&footer, 2, 24, &block) > 0 || lc_arrow_list(&footer, 3, 24, &block) != 1) return 0;
    const uint8_t *entry = src.data + start + block;
    *at = (int64_t)lc_once_u64(entry), *header = (int32_t)lc_once_u32(entry + 8);
    *body = (int64_t)lc_once_u64(entry + 16);
    return *at >= LC_ARROW_HEAD && *at <= start && *header >= LC_ARROW_MESSAGE && *body >= 0 &&
           *header <= start - *at && *body <= start - *at - *header;
}

/* The header of a record batch in its message. */
LC_INLINE int lc_arrow_header(const uint8_t *message, int64_t size, lc_arrow_table *batch) {
    lc_arrow_table table;
    if (lc_once_u32(message) != UINT32_MAX || (int32_t)lc_once_u32(message + 4) != size - LC_ARROW_MESSAGE) return 0;
    if (!lc_arrow_root(&table, message + LC_ARROW_MESSAGE, size - LC_ARROW_MESSAGE)) return 0;
    int64_t kind = lc_arrow_field(&table, 1, 1);
    return kind > 0 && lc_once_u8(table.data + kind) == 3 && lc_arrow_inner(batch, &table, 2);
}

/* Codec of the buffers of a batch; -2 if it cannot be told. */
LC_INLINE int64_t lc_arrow_codec(const lc_arrow_table *batch) {
    lc_arrow_table described;
    if (lc_arrow_field(batch, 3, 4) == 0) return LC_ARROW_PLAIN;
    if (!lc_arrow_inner(&described, batch, 3)) return -2;
    int64_t codec = lc_arrow_field(&described, 0, 1), method = lc_arrow_field(&described, 1, 1);
    if (codec < 0 || method < 0 || (method > 0 && lc_once_u8(described.data + method) != 0)) return -2;
    return codec > 0 ? lc_once_u8(described.data + codec) : 0;
}

/* Describe the only batch of a file; 0 if the file has another form or is damaged. */
LC_INLINE int lc_arrow_only_batch(lc_bytes src, lc_arrow_batch *out) {
    lc_arrow_table batch;
    int64_t header, body, nodes = 0, buffers = 0;
    if (!lc_arrow_block(src, &out->schema_end, &header, &body)) return 0;
    if (!lc_arrow_header(src.data + out->schema_end, header, &batch)) return 0;
    int64_t length = lc_arrow_field(&batch, 0, 8), columns = lc_arrow_list(&batch, 1, 16, &nodes);
    if (length < 0 || columns < 1 || columns > LC_ARROW_COLUMNS) return 0;
    if (lc_arrow_list(&batch, 2, 16, &buffers) != 2 * columns) return 0;
    out->rows = length ? (int64_t)lc_once_u64(batch.data + length) : 0;
    out->codec = lc_arrow_codec(&batch);
    out->columns = columns;
    if (out->rows < 0 || out->codec < LC_ARROW_PLAIN) return 0;
    for (int64_t i = 0; i < columns; i++) {
        const uint8_t *node = batch.data + nodes + 16 * i;
        if ((int64_t)lc_once_u64(node) != out->rows) return 0;
        out->nulls[i] = (int64_t)lc_once_u64(node + 8);
    }
    for (int64_t i = 0; i < 2 * columns; i++) {
        const uint8_t *buffer = batch.data + buffers + 16 * i;
        int64_t start = (int64_t)lc_once_u64(buffer), size = (int64_t)lc_once_u64(buffer + 8);
        if (start < 0 || size < 0 || start > body || size > body - start) return 0;
        out->starts[i] = out->schema_end + header + start, out->sizes[i] = size;
    }
    return 1;
}

#endif
