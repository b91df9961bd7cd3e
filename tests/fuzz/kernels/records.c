/* Records found in bytes lie within them, and columns count the records that are found. No more messages and numbers are
 * weighed than there are bytes for. */
#include "fuzz.h"
#include "records.h"

#define MOST 40

static void fz_target(fz_input *in) {
    lc_record_column columns[4];
    for (int64_t c = 0; c < 4; c++) {
        columns[c].field = fz_upto(in, 5) + 1, columns[c].inner = fz_upto(in, 3);
        columns[c].how = fz_upto(in, 5), columns[c].missing = fz_upto(in, 9) - 4;
    }
    int64_t fixed[2] = {9, 7}, fields[2 * 6];
    for (int64_t k = 0; k < 12; k++) fields[k] = fz_upto(in, 3) + LC_RECORD_NUMBERS;
    int64_t number = fz_upto(in, 5) + 1, room = fz_upto(in, MOST);
    lc_bytes src = fz_rest(in);
    lc_record_types types = {fixed, fields, 6};
    lc_record_memory memory = {0, 0, 0};
    lc_record_weigh(src.data, src.data + src.size, &types, 0, 0, &memory);
    FZ_CHECK(memory.messages >= 1 && memory.messages <= 1 + src.size / 2 && memory.bytes >= 7 * memory.messages);
    FZ_CHECK(memory.numbers >= 0 && memory.numbers <= src.size);
    lc_record_places places = {.room = room};
    places.owners = (int64_t *)fz_memory(8 * room, 0), places.heads = (int64_t *)fz_memory(8 * room, 0);
    places.starts = (int64_t *)fz_memory(8 * room, 0), places.ends = (int64_t *)fz_memory(8 * room, 0);
    int64_t start = 0, end = src.size, found = -1;
    if (lc_records_locate(src, &start, &end, 1, number, &places, &found)) return;
    FZ_CHECK(found >= 0 && found <= src.size);
    int64_t n = found < room ? found : room;
    for (int64_t k = 0; k < n; k++) {
        FZ_CHECK(places.owners[k] == 0 && places.heads[k] >= 0 && places.heads[k] < places.starts[k]);
        FZ_CHECK(places.starts[k] <= places.ends[k] && places.ends[k] <= src.size);
        FZ_CHECK(k == 0 || places.heads[k] >= places.ends[k - 1]);
    }
    int64_t *cells = (int64_t *)fz_memory(8 * 4 * n, 0);
    lc_records_columns(src, places.starts, places.ends, n, columns, 4, cells);
    lc_record_column count = {number, 0, LC_RECORD_COUNT, 0};
    int64_t counted;
    if (!lc_records_columns(src, &start, &end, 1, &count, 1, &counted)) FZ_CHECK(counted >= found);
}
