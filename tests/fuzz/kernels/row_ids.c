/* Runs and located segments have as many ids as the sequences claim, at ascending addresses, and lie within the bytes.
 * Runs of a lane do not overlap. */
#include "fuzz.h"
#include "row_ids.h"

#define MOST 60
#define BASE ((uint64_t)1 << 40)

static int64_t sum_of(const int64_t *values, int64_t n) {
    int64_t sum = 0;
    for (int64_t k = 0; k < n; k++) sum += values[k];
    return sum;
}

/* Append a field of at most 127 bytes. */
static int64_t put(uint8_t *out, int64_t number, const uint8_t *data, int64_t size) {
    out[0] = (uint8_t)(number << 3 | LC_FIELD_BYTES), out[1] = (uint8_t)size;
    if (size) memcpy(out + 2, data, (size_t)size);
    return size + 2;
}

/* Write a segment with plausible numbers, and return its size. `rows` grows by its number of ids. */
static int64_t put_segment(fz_input *in, uint8_t *out, int64_t *rows) {
    int64_t kind = fz_upto(in, 4) + 1, start = fz_upto(in, 60), span = fz_upto(in, 60), size = 0, items = fz_upto(in, 9);
    uint8_t inner[64], array[64], body[128] = {0x08, (uint8_t)start, 0x10, (uint8_t)(start + span)};
    for (int64_t i = 0; i < items; i++) inner[2 * i] = (uint8_t)(i * 6 + fz_upto(in, 7)), inner[2 * i + 1] = 0;
    int64_t listed = put(array + 2, 2, inner, 2 * items) + 2;
    array[0] = 0x08, array[1] = (uint8_t)start;
    if (kind == LC_IDS_RANGE) {
        *rows += span, size = 4;
    } else if (kind == LC_IDS_HOLES) {
        int64_t held = put(inner, 1, array, listed);
        *rows += span - items, size = 4 + put(body + 4, 3, inner, held);
    } else if (kind == LC_IDS_BITMAP) {
        for (int64_t i = 0; i < (span + 7) / 8; i++) *rows += lc_popcount64(inner[i] = (uint8_t)fz_word(in, 1));
        size = 4 + put(body + 4, 3, inner, (span + 7) / 8);
    } else {
        *rows += items, size = put(body, 1, array, listed);
    }
    uint8_t whole[128];
    return put(out, 1, whole, put(whole, kind, body, size));
}

static void check_lanes(fz_input *in) {
    int64_t n = fz_upto(in, MOST), lanes = fz_upto(in, LC_IDS_LANES - 1) + 1;
    uint64_t *first = (uint64_t *)fz_memory(8 * n, 0), id = 0;
    int64_t *lengths = (int64_t *)fz_memory(8 * n, 0);
    for (int64_t k = 0; k < n; k++) {
        id += (uint64_t)fz_upto(in, 4);
        first[k] = id, lengths[k] = fz_upto(in, 9);
    }
    uint8_t *out = fz_memory(n, 0);
    if (lc_row_ids_lanes(first, lengths, n, lanes, out)) return;
    for (int64_t k = 0; k < n; k++) {
        FZ_CHECK(out[k] <= lanes);
        for (int64_t j = 0; j < k; j++)
            FZ_CHECK(out[k] == lanes || out[j] != out[k] || first[j] + (uint64_t)lengths[j] <= first[k]);
    }
}

static void fz_target(fz_input *in) {
    check_lanes(in);
    int64_t room = fz_upto(in, MOST), places = fz_upto(in, 9), rows = 0, start = 0, size = 0;
    uint64_t few = (uint64_t)fz_upto(in, 60) + 1, base = BASE;
    uint8_t built[4 * 128];
    for (int64_t parts = fz_upto(in, 4); parts; parts--) size += put_segment(in, built + size, &rows);
    if (fz_upto(in, 3) == 0 && size) built[fz_upto(in, size - 1)] = (uint8_t)fz_word(in, 1);
    if (fz_upto(in, 9) == 0) rows = fz_upto(in, 255);
    lc_bytes src = {fz_memory(size, 0), size};
    if (size) memcpy((uint8_t *)src.data, built, (size_t)size);
    if (rows < 0) return;
    lc_id_runs runs = {(uint64_t *)fz_memory(8 * room, 0), (int64_t *)fz_memory(8 * room, 0),
                       (uint64_t *)fz_memory(8 * room, 0), room, 0, 0, 0};
    lc_id_wholes wholes = {(int64_t *)fz_memory(8 * places, 0), (int64_t *)fz_memory(8 * places, 0),
                           (int64_t *)fz_memory(8 * places, 0), (int64_t *)fz_memory(8 * places, 0), places, 0};
    if (lc_row_ids_split(src, &start, &src.size, &rows, &base, 1, few, &runs, &wholes)) return;
    FZ_CHECK(runs.count <= rows && wholes.count <= src.size);
    int64_t n = runs.count < room ? runs.count : room;
    FZ_CHECK(sum_of(runs.lengths, n) <= rows);
    for (int64_t k = 0; k < n; k++) {
        FZ_CHECK(runs.lengths[k] >= 1 && (uint64_t)runs.lengths[k] - 1 <= UINT64_MAX - runs.first[k]);
        FZ_CHECK(runs.addresses[k] >= BASE && runs.addresses[k] + (uint64_t)runs.lengths[k] <= BASE + (uint64_t)rows);
        FZ_CHECK(k == 0 || runs.addresses[k] >= runs.addresses[k - 1] + (uint64_t)runs.lengths[k - 1]);
    }
    for (int64_t k = 0; k < wholes.count && k < places; k++) {
        FZ_CHECK(wholes.owners[k] == 0 && wholes.offsets[k] >= 0 && wholes.offsets[k] <= rows);
        FZ_CHECK(wholes.starts[k] >= 0 && wholes.starts[k] <= wholes.ends[k] && wholes.ends[k] <= src.size);
    }
}
