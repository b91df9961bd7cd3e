/* Stable row ids of fragments: messages of segments, each a range, a range with holes or a bitmap, or an array of ids.
 *
 * Segments of few ids become runs: consecutive ids of rows at consecutive addresses. Other segments are only counted and
 * located. Messages that no writer makes, such as a segment of two kinds, are a problem of the header: they are left to
 * a general parser. */
#ifndef LANCECODEC_ROW_IDS_H
#define LANCECODEC_ROW_IDS_H

#include "levels_mask.h"
#include "records.h"

enum {
    LC_IDS_RANGE = 1,
    LC_IDS_HOLES = 2,
    LC_IDS_BITMAP = 3,
    LC_IDS_SORTED = 4,
    LC_IDS_ARRAY = 5,
    /* Ranges with holes or a bitmap stay whole if they have more numbers than this: runs would take more memory. */
    LC_IDS_FEW_NUMBERS = 64,
    LC_IDS_LANES = 8
};

/* Runs of ids; those that do not fit are only counted. */
typedef struct {
    uint64_t *first;
    int64_t *lengths;
    uint64_t *addresses; /* of the first id */
    int64_t room, count;
    uint64_t next_id, next_address; /* what would continue the last run; 0 if nothing does */
} lc_id_runs;

/* Segments that stay whole: the position of their sequence, the number of ids before them, and their bytes. */
typedef struct {
    int64_t *owners, *offsets, *starts, *ends;
    int64_t room, count;
} lc_id_wholes;

typedef struct {
    int64_t kind;
    uint64_t start, stop;  /* of a range */
    const uint8_t *data;   /* bitmap, holes or ids */
    int64_t size, width;   /* bytes of it, and of each hole or id */
    uint64_t base, count;  /* added to each; number of ids */
} lc_id_segment;

LC_INLINE uint64_t lc_ids_value(const lc_id_segment *segment, int64_t i) {
    const uint8_t *p = segment->data + i * segment->width;
    if (segment->width == 2) return segment->base + lc_once_u16(p);
    return segment->base + (segment->width == 4 ? lc_once_u32(p) : lc_once_u64(p));
}

/* Read an encoded array: at most one of three kinds, with a base and bytes, or bytes alone. */
static int lc_ids_parse_array(const uint8_t *at, const uint8_t *end, lc_id_segment *out) {
    lc_record_field kind, field;
    out->data = at, out->size = 0, out->width = 8, out->base = 0;
    if (at == end) return LC_OK;
    int problem = lc_record_next(&at, end, &kind);
    if (problem) return problem;
    if (at != end || kind.kind != LC_FIELD_BYTES || kind.number > 3) return LC_BAD_HEADER;
    out->width = (int64_t)1 << kind.number;
    for (at = kind.data, end = at + kind.size; at < end;) {
        problem = lc_record_next(&at, end, &field);
        if (problem) return problem;
        if (field.number == 1 && field.kind == LC_FIELD_VARINT && kind.number < 3)
            out->base = field.value;
        else if (field.number == 2 && field.kind == LC_FIELD_BYTES)
            out->data = field.data, out->size = field.size;
        else
            return LC_BAD_HEADER;
    }
    return out->size % out->width ? LC_BAD_SIZE : LC_OK;
}

/* Read a range, with holes or a bitmap if its kind says so. */
static int lc_ids_parse_range(const uint8_t *at, const uint8_t *end, lc_id_segment *out) {
    lc_record_field field;
    int held = 0;
    while (at < end) {
        int problem = lc_record_next(&at, end, &field);
        if (problem) return problem;
        if (field.kind == LC_FIELD_VARINT && field.number == 1) {
            out->start = field.value;
        } else if (field.kind == LC_FIELD_VARINT && field.number == 2) {
            out->stop = field.value;
        } else if (field.kind == LC_FIELD_BYTES && field.number == 3 && out->kind != LC_IDS_RANGE && !held++) {
            if (out->kind == LC_IDS_BITMAP)
                out->data = field.data, out->size = field.size;
            else if ((problem = lc_ids_parse_array(field.data, field.data + field.size, out)))
                return problem;
        } else {
            return LC_BAD_HEADER;
        }
    }
    return out->stop < out->start ? LC_BAD_COUNT : LC_OK;
}

static int lc_ids_parse(const uint8_t *at, const uint8_t *end, lc_id_segment *out) {
    lc_record_field field;
    if (at == end) return LC_BAD_HEADER;
    int problem = lc_record_next(&at, end, &field);
    if (problem) return problem;
    if (at != end || field.kind != LC_FIELD_BYTES || field.number > LC_IDS_ARRAY) return LC_BAD_HEADER;
    *out = (lc_id_segment){.kind = field.number, .data = field.data, .width = 8};
    at = field.data, end = at + field.size;
    problem = out->kind <= LC_IDS_BITMAP ? lc_ids_parse_range(at, end, out) : lc_ids_parse_array(at, end, out);
    if (problem) return problem;
    uint64_t span = out->stop - out->start, items = (uint64_t)(out->size / out->width);
    if (out->kind == LC_IDS_BITMAP) {
        if ((uint64_t)out->size != span / 8 + (span % 8 > 0)) return LC_BAD_SIZE;
        for (int64_t i = 0; i < out->size; i++) out->count += (uint64_t)lc_popcount64(lc_once_u8(out->data + i));
    } else {
        if (out->kind == LC_IDS_HOLES && items > span) return LC_BAD_COUNT;
        out->count = out->kind <= LC_IDS_HOLES ? span - items : items;
    }
    return LC_OK;
}

LC_INLINE void lc_ids_add(lc_id_runs *out, uint64_t id, uint64_t length, uint64_t address) {
    if (length == 0) return;
    if (out->count && id && id == out->next_id && address == out->next_address) {
        if (out->count <= out->room) out->lengths[out->count - 1] += (int64_t)length;
    } else {
        if (out->count < out->room)
            out->first[out->count] = id, out->lengths[out->count] = (int64_t)length, out->addresses[out->count] = address;
        out->count++;
    }
    out->next_id = id + length; /* 0 after the largest number, which nothing continues */
    out->next_address = address + length;
}

static int lc_ids_add_values(const lc_id_segment *segment, uint64_t address, lc_id_runs *out) {
    uint64_t before = 0;
    for (int64_t i = 0; i < segment->size / segment->width; i++) {
        uint64_t id = lc_ids_value(segment, i);
        if (id < segment->base) return LC_BAD_COUNT;
        if (segment->kind == LC_IDS_SORTED && i && id <= before) return LC_BAD_OFFSETS;
        lc_ids_add(out, id, 1, address + (uint64_t)i);
        before = id;
    }
    return LC_OK;
}

static int lc_ids_add_gaps(const lc_id_segment *segment, uint64_t address, lc_id_runs *out) {
    uint64_t from = segment->start; /* the numbers before it are done */
    for (int64_t i = 0; i < segment->size / segment->width; i++) {
        uint64_t hole = lc_ids_value(segment, i);
        if (hole < segment->base || hole < from || hole >= segment->stop) return LC_BAD_OFFSETS;
        lc_ids_add(out, from, hole - from, address);
        address += hole - from;
        from = hole + 1;
    }
    lc_ids_add(out, from, segment->stop - from, address);
    return LC_OK;
}

/* A bitmap of at most 64 numbers. */
static int lc_ids_add_bits(const lc_id_segment *segment, uint64_t address, lc_id_runs *out) {
    uint64_t word = 0, from = segment->start, span = segment->stop - segment->start;
    for (int64_t i = 0; i < segment->size; i++) word |= (uint64_t)lc_once_u8(segment->data + i) << 8 * i;
    if (span < 64 && word >> span) return LC_BAD_COUNT;
    while (word) {
        int64_t skip = lc_ctz64(word);
        word >>= skip;
        int64_t run = word == UINT64_MAX ? 64 : lc_ctz64(~word);
        lc_ids_add(out, from + (uint64_t)skip, (uint64_t)run, address);
        address += (uint64_t)run;
        from += (uint64_t)(skip + run);
        word = run == 64 ? 0 : word >> run;
    }
    return LC_OK;
}

static int lc_ids_add_segment(const lc_id_segment *segment, uint64_t address, lc_id_runs *out) {
    switch (segment->kind) {
    case LC_IDS_RANGE:
        lc_ids_add(out, segment->start, segment->count, address);
        return LC_OK;
    case LC_IDS_HOLES:
        return lc_ids_add_gaps(segment, address, out);
    case LC_IDS_BITMAP:
        return lc_ids_add_bits(segment, address, out);
    default:
        return lc_ids_add_values(segment, address, out);
    }
}

/* Segments of fewer than `few` ids become runs, the others are located. Sequence i has rows[i] ids, of which the first
 * is at address bases[i]. */
static int lc_row_ids_split(lc_bytes src, const int64_t *starts, const int64_t *ends, const int64_t *rows,
                            const uint64_t *bases, int64_t n, uint64_t few, lc_id_runs *runs, lc_id_wholes *wholes) {
    for (int64_t i = 0; i < n; i++) {
        if (starts[i] < 0 || ends[i] < starts[i] || ends[i] > src.size || rows[i] < 0) return LC_BAD_OFFSETS;
        const uint8_t *at = src.data + starts[i], *end = src.data + ends[i];
        uint64_t left = (uint64_t)rows[i], address = bases[i];
        runs->next_id = 0;
        while (at < end) {
            lc_record_field field;
            lc_id_segment segment;
            int problem = lc_record_next(&at, end, &field);
            if (problem) return problem;
            if (field.number != 1 || field.kind != LC_FIELD_BYTES) return LC_BAD_HEADER;
            problem = lc_ids_parse(field.data, field.data + field.size, &segment);
            if (problem) return problem;
            if (segment.count > left) return LC_BAD_COUNT;
            int gaps = segment.kind == LC_IDS_HOLES || segment.kind == LC_IDS_BITMAP;
            if (segment.count < few && (!gaps || segment.stop - segment.start <= LC_IDS_FEW_NUMBERS)) {
                problem = lc_ids_add_segment(&segment, address, runs);
                if (problem) return problem;
            } else {
                if (wholes->count < wholes->room) {
                    wholes->owners[wholes->count] = i, wholes->offsets[wholes->count] = rows[i] - (int64_t)left;
                    wholes->starts[wholes->count] = field.data - src.data;
                    wholes->ends[wholes->count] = field.data - src.data + field.size;
                }
                wholes->count++;
            }
            left -= segment.count;
            address += segment.count;
        }
        if (left) return LC_BAD_COUNT;
    }
    return LC_OK;
}

/* Distribute runs, ascending by their first ids, over lanes without overlaps: each goes into the first lane with room.
 * Those that fit no lane get the number `lanes`. */
static int lc_row_ids_lanes(const uint64_t *first, const int64_t *lengths, int64_t n, int64_t lanes, uint8_t *out) {
    uint64_t last[LC_IDS_LANES] = {0};
    int64_t used = 0;
    for (int64_t i = 0; i < n; i++) {
        if (lengths[i] < 1 || (uint64_t)lengths[i] - 1 > UINT64_MAX - first[i]) return LC_BAD_RUN;
        if (i && first[i] < first[i - 1]) return LC_BAD_OFFSETS;
        int64_t lane = 0;
        while (lane < used && last[lane] >= first[i]) lane++;
        out[i] = (uint8_t)lane;
        if (lane == lanes) continue;
        if (lane == used) used++;
        last[lane] = first[i] + (uint64_t)lengths[i] - 1;
    }
    return LC_OK;
}

#endif
