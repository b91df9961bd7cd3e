/* Sets of numbers: written, read, intersected and united, and read when they are damaged. */
#include "fuzz.h"
#include "row_sets.h"
#include "row_sets_write.h"

#define MOST 3
#define ROOM 12000

typedef struct {
    uint64_t *values;
    int64_t stops[MOST];
    int64_t bounds[MOST + 1];
    int64_t count;
} fz_sets;

static int64_t start_of(const fz_sets *s, int64_t k) { return k ? s->stops[k - 1] : 0; }

/* Ascending numbers: near each other, in several containers and bitmaps. */
static fz_sets made(fz_input *in) {
    fz_sets s = {(uint64_t *)fz_memory(8 * ROOM * MOST, 0), {0}, {0}, 1 + fz_upto(in, MOST - 1)};
    int64_t at = 0;
    for (int64_t k = 0; k < s.count; k++) {
        uint64_t value = fz_word(in, 8) >> fz_upto(in, 63);
        int64_t n = fz_upto(in, 1) ? fz_upto(in, 40) : fz_upto(in, ROOM);
        uint64_t step = 1 + (uint64_t)fz_upto(in, 20);
        for (int64_t i = 0; i < n && value < (uint64_t)1 << 62; i++) {
            s.values[at++] = value;
            value += i % 7 ? step : 1 + (fz_word(in, 4) >> fz_upto(in, 31));
        }
        s.stops[k] = at;
    }
    return s;
}

static int has(const fz_sets *s, int64_t k, uint64_t value) {
    for (int64_t i = start_of(s, k); i < s->stops[k]; i++)
        if (s->values[i] == value) return 1;
    return 0;
}

static void common(const fz_sets *s, const lc_container *c, const int64_t *starts) {
    int64_t at[MOST];
    const lc_container *same[MOST];
    uint64_t *out = (uint64_t *)fz_memory(8 * ROOM, 0);
    int64_t found = lc_sets_common(c, starts, s->count, at, same, out, ROOM), expected = 0;
    FZ_CHECK(found >= 0);
    for (int64_t i = 0; i < s->stops[0]; i++) {
        int all = 1;
        for (int64_t k = 1; k < s->count && all; k++) all = has(s, k, s->values[i]);
        if (all) FZ_CHECK(expected < found && out[expected++] == s->values[i]);
    }
    FZ_CHECK(found == expected);
}

static void unions(fz_input *in, const fz_sets *s, const lc_container *c, const int64_t *starts, lc_set_form form) {
    int64_t sizes[MOST], order[MOST], stops[2] = {fz_upto(in, s->count), s->count}, bounds[3];
    for (int64_t k = 0; k < s->count; k++) {
        sizes[k] = s->bounds[k + 1] - s->bounds[k];
        order[k] = s->count - 1 - k;
    }
    lc_known_sets known = {c, starts, sizes, s->count, form};
    int64_t most = lc_sets_most(&known, order, s->count, stops, 2), room = s->bounds[s->count] + 16, found = 0;
    FZ_CHECK(most >= 0);
    lc_container *gathered = (lc_container *)fz_memory((most + 1) * (int64_t)sizeof *gathered, 0);
    uint8_t *out = fz_out(in, room);
    FZ_CHECK(lc_sets_unite(&known, order, stops, 2, gathered, bounds, out, room) == LC_OK);
    FZ_CHECK(lc_set_scan(out, bounds[1], bounds[2], form, NULL, 0, &found) == LC_OK);
}

static void damaged(fz_input *in, const uint8_t *data, int64_t size, lc_set_form form) {
    uint8_t *copy = fz_damaged(in, data, size);
    int64_t found = 0, filled = 0, total = 0;
    if (lc_set_scan(copy, 0, size, form, NULL, 0, &found) != LC_OK) return;
    lc_container *c = (lc_container *)fz_memory((found + 1) * (int64_t)sizeof *c, 0);
    FZ_CHECK(lc_set_scan(copy, 0, size, form, c, found, &filled) == LC_OK && filled == found);
    for (int64_t i = 0; i < found; i++) total += c[i].count;
    uint64_t *out = (uint64_t *)fz_memory(8 * total, 0);
    if (lc_containers_numbers(c, found, out, total) != LC_OK) return;
    for (int64_t i = 1; i < total; i++) FZ_CHECK(out[i] > out[i - 1]);
    uint8_t *united = fz_out(in, size);
    int64_t used = lc_set_unite(c, found, form, united);
    FZ_CHECK(used > 0 && used <= size);
}

static void fz_target(fz_input *in) {
    fz_sets s = made(in);
    lc_set_form form = {fz_upto(in, 1) ? 8 : 4, (int)fz_upto(in, 1)};
    FZ_CHECK(lc_sets_bounds(s.values, s.stops[s.count - 1], s.stops, s.count, form, s.bounds) == LC_OK);
    uint8_t *data = fz_out(in, s.bounds[s.count]);
    FZ_CHECK(lc_sets_write(s.values, s.stops, s.count, form, s.bounds, data) == LC_OK);
    int64_t found = 0, starts[MOST + 1] = {0};
    for (int64_t k = 0; k < s.count; k++)
        FZ_CHECK(lc_set_scan(data, s.bounds[k], s.bounds[k + 1], form, NULL, 0, &found) == LC_OK);
    int64_t room = found;
    lc_container *c = (lc_container *)fz_memory((room + 1) * (int64_t)sizeof *c, 0);
    found = 0;
    for (int64_t k = 0; k < s.count; k++) {
        lc_set_scan(data, s.bounds[k], s.bounds[k + 1], form, c, room, &found);
        starts[k + 1] = found;
    }
    int64_t total = s.stops[s.count - 1];
    uint64_t *out = (uint64_t *)fz_memory(8 * total, 0);
    FZ_CHECK(lc_containers_numbers(c, found, out, total) == LC_OK);
    FZ_CHECK(total == 0 || !memcmp(out, s.values, (size_t)(8 * total)));
    if (s.stops[0] < 500) common(&s, c, starts);
    unions(in, &s, c, starts, form);
    damaged(in, data, s.bounds[1], form);
}
