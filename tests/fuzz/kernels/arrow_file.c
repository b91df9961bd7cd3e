/* The only batch of an Arrow file: footers and headers of random bytes, wrapped so that they are found. */
#include "arrow_file.h"
#include "fuzz.h"

static void put(uint8_t *data, uint64_t value, int size) { memcpy(data, &value, (size_t)size); }

/* "ARROW1", padding, schema of `schema` bytes, a message, a body, a footer, its size, "ARROW1". */
static lc_bytes file(fz_input *in) {
    int64_t schema = 8 * fz_upto(in, 4), header = 8 + fz_upto(in, 160), body = fz_upto(in, 64), footer = fz_upto(in, 90);
    int64_t size = 8 + schema + header + body + footer + LC_ARROW_TAIL, at = 8 + schema, end = at + header + body;
    uint8_t *data = fz_take(in, size);
    memcpy(data, "ARROW1", 6), memcpy(data + size - 6, "ARROW1", 6);
    put(data + at, UINT32_MAX, 4), put(data + at + 4, (uint64_t)(header - 8), 4);
    put(data + size - LC_ARROW_TAIL, (uint64_t)footer, 4);
    if (footer >= 52 && fz_upto(in, 3)) { /* a table whose fourth field is a list with this batch */
        put(data + end, 16, 4), put(data + end + 4, 12, 2), put(data + end + 6, 8, 2);
        put(data + end + 8, 0, 6), put(data + end + 14, 4, 2);
        put(data + end + 16, 12, 4), put(data + end + 20, 4, 4), put(data + end + 24, 1, 4);
        put(data + end + 28, (uint64_t)at, 8), put(data + end + 36, (uint64_t)header, 4);
        put(data + end + 44, (uint64_t)body, 8);
    }
    lc_bytes found = {data, size};
    return found;
}

static void fz_target(fz_input *in) {
    lc_bytes src = fz_upto(in, 4) ? file(in) : fz_rest(in);
    lc_arrow_batch found;
    if (!lc_arrow_only_batch(src, &found)) return;
    FZ_CHECK(found.schema_end >= LC_ARROW_HEAD && found.schema_end < src.size);
    FZ_CHECK(found.rows >= 0 && found.codec >= LC_ARROW_PLAIN);
    FZ_CHECK(found.columns >= 1 && found.columns <= LC_ARROW_COLUMNS);
    for (int64_t i = 0; i < 2 * found.columns; i++)
        FZ_CHECK(found.starts[i] >= 0 && found.sizes[i] >= 0 && found.starts[i] <= src.size - found.sizes[i]);
}
