/* Protobuf messages, called records: consecutive fields with a number and a kind; records may be nested.
 *
 * A field begins with a varint, number * 8 + kind. Kind 0 is a varint, 1 and 5 are 8 and 4 bytes, 2 is a varint length
 * and as many bytes: text, an inner record, or packed varints. (Kinds 3 and 4, which nest without a length, are
 * deprecated and rejected.) Fields may be in any order and repeat; of a single value the last one counts. */
#ifndef LANCECODEC_RECORDS_H
#define LANCECODEC_RECORDS_H

#include "chunk.h"

enum { LC_FIELD_VARINT = 0, LC_FIELD_64 = 1, LC_FIELD_BYTES = 2, LC_FIELD_32 = 5 };

/* Values that are computed from the occurrences of a field. */
enum {
    LC_RECORD_LAST = 0,   /* the last value */
    LC_RECORD_COUNT = 1,  /* number of occurrences with bytes */
    LC_RECORD_ITEMS = 2,  /* number of varints, packed ones counted one by one */
    LC_RECORD_MAX = 3,    /* the largest of these varints as a signed 32-bit number */
    LC_RECORD_LAST_32 = 4, /* the lower 32 bits of the last value, unsigned */
    LC_RECORD_SIGNS = 5   /* number of characters of the last bytes that do not belong in a plain file name */
};

typedef struct {
    int64_t field;   /* number of the field */
    int64_t inner;   /* number of a field of the records in `field`, 0 for `field` itself */
    int64_t how;     /* LC_RECORD_* */
    int64_t missing; /* the value if the field is missing */
} lc_record_column;

typedef struct {
    int64_t number, kind;
    uint64_t value;     /* of a varint */
    const uint8_t *data; /* the bytes of kind 2 */
    int64_t size;
} lc_record_field;

/* Read one varint; 0 if it is incomplete or longer than 64 bits. */
LC_INLINE int lc_record_varint(const uint8_t **at, const uint8_t *end, uint64_t *out) {
    uint64_t value = 0;
    for (int shift = 0; shift < 70 && *at < end; shift += 7) {
        uint8_t byte = lc_once_u8((*at)++);
        if (shift < 64) value |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) {
            *out = value;
            return 1;
        }
    }
    return 0;
}

/* Read the next field of a record. */
LC_INLINE int lc_record_next(const uint8_t **at, const uint8_t *end, lc_record_field *out) {
    uint64_t tag, length;
    if (!lc_record_varint(at, end, &tag) || tag >> 3 == 0 || tag >> 32) return LC_BAD_HEADER;
    out->number = (int64_t)(tag >> 3), out->kind = (int64_t)(tag & 7);
    switch (out->kind) {
    case LC_FIELD_VARINT:
        return lc_record_varint(at, end, &out->value) ? LC_OK : LC_BAD_HEADER;
    case LC_FIELD_BYTES:
        if (!lc_record_varint(at, end, &length) || length > (uint64_t)(end - *at)) return LC_BAD_SIZE;
        break;
    case LC_FIELD_64:
    case LC_FIELD_32:
        length = out->kind == LC_FIELD_64 ? 8 : 4;
        if (length > (uint64_t)(end - *at)) return LC_BAD_SIZE;
        break;
    default:
        return LC_BAD_HEADER;
    }
    out->data = *at, out->size = (int64_t)length;
    *at += length;
    return LC_OK;
}

typedef struct {
    int64_t *owners, *heads, *starts, *ends;
    int64_t room;
} lc_record_places;

/* Locate the records in a field of other records: the position of the outer record, the first byte of the field, and
 * the bytes of the record. Counts all of them in *found, and stores as many as there is room for. */
static int lc_records_locate(lc_bytes src, const int64_t *starts, const int64_t *ends, int64_t n, int64_t number,
                             const lc_record_places *out, int64_t *found) {
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) {
        if (starts[i] < 0 || ends[i] < starts[i] || ends[i] > src.size) return LC_BAD_OFFSETS;
        const uint8_t *at = src.data + starts[i], *end = src.data + ends[i];
        while (at < end) {
            lc_record_field field;
            int64_t head = at - src.data;
            int problem = lc_record_next(&at, end, &field);
            if (problem) return problem;
            if (field.number != number || field.kind != LC_FIELD_BYTES) continue;
            if (count < out->room) {
                out->owners[count] = i, out->heads[count] = head;
                out->starts[count] = field.data - src.data, out->ends[count] = field.data - src.data + field.size;
            }
            count++;
        }
    }
    *found = count;
    return LC_OK;
}

typedef struct {
    int64_t *owners, *numbers;
    int64_t room, count;
} lc_record_numbers;

LC_INLINE void lc_record_note(lc_record_numbers *out, int64_t owner, uint64_t value) {
    if (out->count < out->room) out->owners[out->count] = owner, out->numbers[out->count] = (int32_t)(uint32_t)value;
    out->count++;
}

/* Read all varints in a field of records, packed ones one by one, as signed 32-bit numbers, and the position of the
 * record of each. Counts all of them, and stores as many as there is room for. */
static int lc_records_numbers(lc_bytes src, const int64_t *starts, const int64_t *ends, int64_t n, int64_t number,
                              lc_record_numbers *out) {
    for (int64_t i = 0; i < n; i++) {
        if (starts[i] < 0 || ends[i] < starts[i] || ends[i] > src.size) return LC_BAD_OFFSETS;
        const uint8_t *at = src.data + starts[i], *end = src.data + ends[i];
        while (at < end) {
            lc_record_field field;
            int problem = lc_record_next(&at, end, &field);
            if (problem) return problem;
            if (field.number != number) continue;
            if (field.kind == LC_FIELD_VARINT) lc_record_note(out, i, field.value);
            if (field.kind != LC_FIELD_BYTES) continue;
            const uint8_t *inner = field.data, *stop = inner + field.size;
            while (inner < stop) {
                uint64_t value;
                if (!lc_record_varint(&inner, stop, &value)) return LC_BAD_SIZE;
                lc_record_note(out, i, value);
            }
        }
    }
    return LC_OK;
}

LC_INLINE void lc_record_fold(const lc_record_column *column, uint64_t value, int64_t *cell, int64_t *seen) {
    if (column->how == LC_RECORD_COUNT || column->how == LC_RECORD_ITEMS) {
        *cell = *seen + 1;
    } else if (column->how == LC_RECORD_MAX) {
        int64_t number = (int32_t)(uint32_t)value;
        if (!*seen || number > *cell) *cell = number;
    } else {
        *cell = column->how == LC_RECORD_LAST_32 ? (int64_t)(uint32_t)value : (int64_t)value;
    }
    (*seen)++;
}

/* Number of bytes of a text that are not letters, digits, '-', '_' or '.', or that are a '.' in front; 1 for an empty
 * text. */
static int64_t lc_record_signs(const uint8_t *text, int64_t size) {
    if (!size) return 1;
    int64_t found = text[0] == '.';
    for (int64_t i = 0; i < size; i++) {
        uint8_t c = text[i], letter = (uint8_t)((c | 0x20) - 'a'), digit = (uint8_t)(c - '0');
        found += !((letter < 26) | (digit < 10) | (c == '-') | (c == '_') | (c == '.'));
    }
    return found;
}

/* Process one occurrence of a field, or each of its packed varints. */
static int lc_record_take(const lc_record_column *column, const lc_record_field *field, int64_t *cell, int64_t *seen) {
    int single = column->how == LC_RECORD_LAST || column->how == LC_RECORD_LAST_32;
    if (column->how == LC_RECORD_COUNT) {
        if (field->kind == LC_FIELD_BYTES) lc_record_fold(column, 0, cell, seen);
    } else if (column->how == LC_RECORD_SIGNS) {
        if (field->kind == LC_FIELD_BYTES) *cell = lc_record_signs(field->data, field->size);
    } else if (field->kind == LC_FIELD_VARINT) {
        lc_record_fold(column, field->value, cell, seen);
    } else if (field->kind == LC_FIELD_BYTES && !single) {
        const uint8_t *at = field->data, *end = at + field->size;
        while (at < end) {
            uint64_t value;
            if (!lc_record_varint(&at, end, &value)) return LC_BAD_SIZE;
            lc_record_fold(column, value, cell, seen);
        }
    }
    return LC_OK;
}

/* Process the inner record of a field, for a column of one of its fields. */
static int lc_record_descend(const lc_record_column *column, const lc_record_field *outer, int64_t *cell,
                             int64_t *seen) {
    const uint8_t *at = outer->data, *end = at + outer->size;
    if (outer->kind != LC_FIELD_BYTES) return LC_OK;
    while (at < end) {
        lc_record_field field;
        int problem = lc_record_next(&at, end, &field);
        if (!problem && field.number == column->inner) problem = lc_record_take(column, &field, cell, seen);
        if (problem) return problem;
    }
    return LC_OK;
}

#define LC_RECORD_COLUMNS 16

/* One record: cells[c * stride] for each of up to LC_RECORD_COLUMNS columns. */
static int lc_record_cells(const uint8_t *at, const uint8_t *end, const lc_record_column *columns, int64_t count,
                           int64_t *cells, int64_t stride) {
    int64_t seen[LC_RECORD_COLUMNS] = {0};
    for (int64_t c = 0; c < count; c++) cells[c * stride] = columns[c].missing;
    while (at < end) {
        lc_record_field field;
        int problem = lc_record_next(&at, end, &field);
        for (int64_t c = 0; c < count && !problem; c++) {
            if (columns[c].field != field.number) continue;
            problem = columns[c].inner ? lc_record_descend(&columns[c], &field, &cells[c * stride], &seen[c])
                                       : lc_record_take(&columns[c], &field, &cells[c * stride], &seen[c]);
        }
        if (problem) return problem;
    }
    return LC_OK;
}

/* Columns of numbers from n records; column c is out[c * n ...]. */
static int lc_records_columns(lc_bytes src, const int64_t *starts, const int64_t *ends, int64_t n,
                              const lc_record_column *columns, int64_t count, int64_t *out) {
    for (int64_t i = 0; i < n; i++) {
        if (starts[i] < 0 || ends[i] < starts[i] || ends[i] > src.size) return LC_BAD_OFFSETS;
        int problem = lc_record_cells(src.data + starts[i], src.data + ends[i], columns, count, out + i, n);
        if (problem) return problem;
    }
    return LC_OK;
}

/* What the fields of a type of message become in memory. */
enum {
    LC_RECORD_BYTES = -1,  /* text, bytes, a single number, or unknown: a copy */
    LC_RECORD_NUMBERS = -2 /* a list of numbers; types of inner messages are numbers from 0 */
};

typedef struct {
    const int64_t *fixed;  /* bytes of memory of a message of each type */
    const int64_t *fields; /* [type * width + number of a field]: a type, LC_RECORD_BYTES or LC_RECORD_NUMBERS */
    int64_t width;
} lc_record_types;

typedef struct {
    int64_t bytes, messages, numbers;
} lc_record_memory;

#define LC_RECORD_DEPTH 100
#define LC_RECORD_TEXT 48 /* bytes of memory of a text or a field of unknown kind, in addition to its copy */

/* Number of varints in packed bytes. */
LC_INLINE int64_t lc_record_packed(const uint8_t *data, int64_t size) {
    int64_t found = 0;
    for (int64_t i = 0; i < size; i++) found += data[i] < 0x80;
    return found;
}

/* Add up the memory of a message and of all inside it, as a parser would allocate it. */
static int lc_record_weigh(const uint8_t *at, const uint8_t *end, const lc_record_types *types, int64_t type, int depth,
                           lc_record_memory *out) {
    if (depth > LC_RECORD_DEPTH) return LC_BAD_HEADER;
    out->messages++, out->bytes += types->fixed[type];
    while (at < end) {
        lc_record_field field;
        int problem = lc_record_next(&at, end, &field);
        if (problem) return problem;
        int64_t is = field.number < types->width ? types->fields[type * types->width + field.number] : LC_RECORD_BYTES;
        if (field.kind == LC_FIELD_BYTES && is >= 0) {
            problem = lc_record_weigh(field.data, field.data + field.size, types, is, depth + 1, out);
            if (problem) return problem;
        } else if (is == LC_RECORD_NUMBERS) {
            out->numbers += field.kind == LC_FIELD_BYTES ? lc_record_packed(field.data, field.size) : 1;
        } else {
            out->bytes += field.kind == LC_FIELD_BYTES ? 2 * field.size + LC_RECORD_TEXT : 0;
        }
    }
    return LC_OK;
}

#endif
