/* Strings and their offsets, sound or damaged: sets of them, samples, copies, blocks, selections, entries of dictionaries. */
#include "dictionary.h"
#include "fsst_encode.h"
#include "fuzz.h"
#include "gather_variable.h"
#include "membership.h"
#include "variable.h"

typedef struct {
    uint8_t *offsets, *data;
    int wide, sound;
    int64_t n, size;
} strings;

static strings strings_of(fz_input *in, int64_t most, int64_t longest) {
    strings s = {.wide = (int)fz_upto(in, 1), .sound = 1, .n = fz_upto(in, most)};
    int64_t width = s.wide ? 8 : 4, at = fz_upto(in, 9), wild = fz_upto(in, 7) == 0;
    s.offsets = fz_out(in, (s.n + 1) * width);
    for (int64_t i = 0; i <= s.n; i++) {
        lc_store_offset(s.offsets, s.wide, i, at);
        if (i < s.n) at += fz_upto(in, longest);
    }
    s.size = at + fz_upto(in, 9);
    s.data = fz_take(in, s.size);
    for (int64_t i = 0; i < s.size; i++) s.data[i] &= 3;
    for (int64_t k = wild ? 1 + fz_upto(in, 2) : 0; k > 0; k--)
        lc_store_offset(s.offsets, s.wide, fz_upto(in, s.n), fz_upto(in, 3) ? fz_upto(in, 3000) - 9 : (int64_t)fz_word(in, 8));
    for (int64_t i = 0, before = 0; i <= s.n; i++) {
        int64_t offset = lc_load_offset(s.offsets, s.wide, i);
        if (offset < before || offset > s.size) s.sound = 0;
        before = offset;
    }
    return s;
}

static lc_bytes value_of(const strings *s, int64_t i) {
    int64_t begin = lc_load_offset(s->offsets, s->wide, i);
    return (lc_bytes){s->data + begin, lc_load_offset(s->offsets, s->wide, i + 1) - begin};
}

static int equal(lc_bytes a, lc_bytes b) { return a.size == b.size && (!a.size || !memcmp(a.data, b.data, (size_t)a.size)); }

static void sets(fz_input *in) {
    strings members = strings_of(in, 20, 9), values = strings_of(in, 60, 9);
    uint32_t slots[64] = {0};
    uint64_t *hashes = (uint64_t *)fz_memory(8 * members.n, 0);
    lc_string_set set = {members.data, members.offsets, members.wide, members.size, members.n, slots, hashes, 64 - 6, {0}, {0}};
    set.secret.a = fz_word(in, 8), set.secret.b = fz_word(in, 8) | 1;
    if (lc_string_set_fill(&set)) FZ_CHECK(!members.sound);
    if (!members.sound) return;
    uint8_t *out = fz_out(in, (values.n + 7) / 8);
    lc_bytes data = {values.data, values.size};
    int problem = lc_strings_among(&set, data, values.offsets, values.wide, values.n, out);
    FZ_CHECK(!values.sound || !problem);
    for (int64_t i = 0; i < values.n && values.sound; i++) {
        int known = 0;
        for (int64_t k = 0; k < members.n; k++) known |= equal(value_of(&values, i), value_of(&members, k));
        FZ_CHECK(lc_get_bit(out, i) == known);
    }
}

static void samples(fz_input *in) {
    strings s = strings_of(in, 200, 9);
    lc_dict_values values = {s.data, s.size, 0, s.offsets, s.wide, NULL, 0, 0, s.n};
    lc_secret secret = {fz_word(in, 8), fz_word(in, 8)};
    lc_dict_table table;
    int64_t looked = 0, blocks = 1 + fz_upto(in, 5), size = 1 + fz_upto(in, 40);
    lc_dict_open(&table, NULL, 1 + fz_upto(in, 300), INT64_MAX, secret);
    int outcome = lc_dict_sample(&table, &values, blocks, size, &looked);
    FZ_CHECK(!s.sound || outcome == LC_OK || outcome == LC_DICT_TOO_MANY);
    if (outcome == LC_OK) FZ_CHECK(looked <= s.n && table.count <= looked);
    lc_dict_close(&table);
}

static void verbatim(fz_input *in) {
    strings s = strings_of(in, 60, 20);
    int out_wide = (int)fz_upto(in, 1), problem = lc_fsst_check_offsets(s.offsets, s.wide, s.n, s.size);
    FZ_CHECK((problem == LC_OK) == s.sound);
    int64_t longest = -1, written = 0;
    int wrong = s.wide ? lc_longest_64(s.offsets, s.n, &longest) : lc_longest_32(s.offsets, s.n, &longest);
    if (problem) return;
    FZ_CHECK(!wrong && longest == lc_entry_longest(s.offsets, s.wide, s.n));
    lc_fsst_job job = {.offsets = s.offsets, .n = s.n, .data = s.data};
    int64_t size = lc_fsst_job_size(&job, s.wide);
    job.out = fz_out(in, size), job.out_offsets = fz_out(in, (s.n + 1) * (out_wide ? 8 : 4));
    FZ_CHECK(!lc_fsst_copy(&job, s.wide, out_wide, &written) && written == size);
    strings copy = {job.out_offsets, job.out, out_wide, 1, s.n, size};
    for (int64_t i = 0; i < s.n; i++) FZ_CHECK(equal(value_of(&s, i), value_of(&copy, i)));
}

static void blocks(fz_input *in) {
    strings s = strings_of(in, 80, 9);
    int wide = (int)fz_upto(in, 1), narrow = (int)fz_upto(in, 1);
    lc_arrow_values source = {s.offsets, s.wide, s.n, {s.data, s.size}};
    int64_t room = lc_variable_block_size(s.n, s.size, wide), capacity = fz_upto(in, 7) ? room : fz_upto(in, room), written = 0;
    uint8_t *block = fz_out(in, capacity), *ends = fz_out(in, s.n * (narrow ? 4 : 8));
    int problem = lc_variable_block_encode(&source, wide, block, capacity, &written);
    if (problem) {
        FZ_CHECK(!s.sound || capacity < room);
        return;
    }
    lc_bytes stored = {block, written}, values;
    FZ_CHECK(!lc_variable_block_offsets(stored, s.n, 0, !narrow, ends, &values));
    for (int64_t i = 0; i < s.n; i++) {
        int64_t begin = i ? lc_load_offset(ends, !narrow, i - 1) : 0;
        lc_bytes value = {values.data + begin, lc_load_offset(ends, !narrow, i) - begin};
        FZ_CHECK(equal(value, value_of(&s, i)));
    }
    stored.data = fz_damaged(in, block, written);
    lc_variable_block_offsets(stored, s.n, 0, !narrow, ends, &values);
    int64_t total = fz_upto(in, 900);
    if (!lc_variable_generic_offsets(s.offsets, s.n, s.wide, total, 5, !narrow, ends))
        FZ_CHECK(s.n == 0 || lc_load_offset(ends, !narrow, s.n - 1) == 5 + total);
}

static void selected(fz_input *in) {
    strings s = strings_of(in, 60, 9);
    lc_arrow_values source = {s.offsets, s.wide, s.n, {s.data, s.size}};
    int wide = (int)fz_upto(in, 1);
    int64_t count = fz_upto(in, 40), *index = fz_positions(in, count, s.n ? s.n : 1), total = 0, written = 0, where;
    if (count && fz_upto(in, 15) == 0) index[fz_upto(in, count - 1)] = (int64_t)fz_word(in, 8);
    uint8_t *offsets = fz_out(in, (count + 1) * (wide ? 8 : 4));
    if (lc_variable_select_offsets(&source, index, count, wide, offsets, &total, &where)) return;
    uint8_t *out = fz_out(in, total);
    FZ_CHECK(!lc_variable_select_bytes(&source, index, count, out, total, &written, &where) && written == total);
    strings copy = {offsets, out, wide, 1, count, total};
    for (int64_t i = 0; i < count; i++) FZ_CHECK(equal(value_of(&copy, i), value_of(&s, index[i])));
}

static void short_entries(fz_input *in) {
    strings s = strings_of(in, 40, 9);
    int64_t step = (int64_t)8 << fz_upto(in, 2), width = (int64_t)1 << fz_upto(in, 3), n = fz_upto(in, 100), written = 0;
    int wide = (int)fz_upto(in, 1);
    uint8_t *slots = fz_out(in, s.n * step), *ends = fz_out(in, n * (wide ? 8 : 4)), *codes = fz_out(in, n * width);
    int32_t *lengths = (int32_t *)(void *)fz_memory(4 * s.n, 0);
    lc_bytes data = {s.data, s.size};
    int problem = lc_short_entries_fill(data, s.offsets, s.wide, s.n, step, slots, lengths);
    FZ_CHECK(!s.sound || step < 9 || !problem);
    if (problem) return;
    int64_t longest = 0, sound = 1;
    for (int64_t i = 0; i < s.n; i++) longest = lengths[i] > longest ? lengths[i] : longest;
    for (int64_t i = 0; i < n; i++) {
        uint64_t code = (uint64_t)fz_upto(in, s.n);
        memcpy(codes + i * width, &code, (size_t)width), sound &= code < (uint64_t)s.n;
    }
    lc_short_entries entries = {slots, lengths, step, s.n};
    uint8_t *out = fz_out(in, n * longest + step);
    problem = lc_gather_short(&entries, codes, width, n, wide, 7, ends, out, &written);
    FZ_CHECK((problem == LC_OK) == sound);
    for (int64_t i = 0, at = 0; i < n && !problem; i++) {
        int64_t length = lengths[lc_code_at(codes, width, i)];
        FZ_CHECK(lc_load_offset(ends, wide, i) == 7 + at + length);
        FZ_CHECK(!memcmp(out + at, slots + (int64_t)lc_code_at(codes, width, i) * step, (size_t)length));
        at += length;
    }
}

static void fz_target(fz_input *in) {
    switch (fz_upto(in, 5)) {
        case 0: sets(in); break;
        case 1: samples(in); break;
        case 2: verbatim(in); break;
        case 3: blocks(in); break;
        case 4: selected(in); break;
        default: short_entries(in);
    }
}
