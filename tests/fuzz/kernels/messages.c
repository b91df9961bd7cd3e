/* Fields of messages one by one, as metadata is read, and numbers in fields of records. */
#include "fuzz.h"
#include "records.h"

static void fz_target(fz_input *in) {
    int64_t number = fz_upto(in, 5) + 1, room = fz_upto(in, 40), varints = 0, start = 0;
    int64_t *owners = (int64_t *)fz_memory(8 * room, 0), *numbers = (int64_t *)fz_memory(8 * room, 0);
    lc_bytes src = fz_rest(in);
    const uint8_t *at = src.data, *end = src.data + src.size;
    int problem = LC_OK;
    while (at < end && !problem) {
        lc_record_field field;
        const uint8_t *before = at;
        problem = lc_record_next(&at, end, &field);
        FZ_CHECK(at >= before && at <= end && (problem || at > before));
        if (problem || field.number != number) continue;
        varints += field.kind == LC_FIELD_VARINT;
        if (field.kind == LC_FIELD_VARINT) continue;
        FZ_CHECK(field.data >= before && field.data + field.size == at);
        const uint8_t *inner = field.data;
        uint64_t value;
        while (field.kind == LC_FIELD_BYTES && inner < at && !problem) {
            if (!lc_record_varint(&inner, at, &value)) problem = LC_BAD_SIZE;
            varints += !problem;
        }
    }
    lc_record_numbers out = {owners, numbers, room, 0};
    int other = lc_records_numbers(src, &start, &src.size, 1, number, &out);
    FZ_CHECK((problem == LC_OK) == (other == LC_OK));
    if (!problem) FZ_CHECK(out.count == varints);
    for (int64_t i = 0; i < out.count && i < room; i++) FZ_CHECK(owners[i] == 0);
}
