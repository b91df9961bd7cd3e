/* Levels in chunks: ranges of chunks, single values, whole rows, and the repetition index that finds them. */
#include "chunks.h"
#include "levels_pages.h"
#include "miniblock_rows.h"

#define MOST 6000

typedef struct {
    fz_page page;
    lc_level_codecs codecs;
    uint16_t rep[MOST], def[MOST]; /* as written */
    int64_t n, rows, ends[FZ_CHUNKS];
    int has_rep, has_def;
} column;

/* Entries of a chunk, as many of them visible as it has values. */
static void entries_of(fz_input *in, column *c, int64_t i) {
    int64_t begin = c->n, visible = 0;
    int64_t quiet = fz_upto(in, 3); /* long rows, or few nulls */
    while (visible < c->page.values[i]) {
        int64_t rep = 0, def = 0;
        if (c->has_rep && (quiet == 0 ? fz_upto(in, 31) == 0 : fz_upto(in, 1))) rep = fz_upto(in, c->codecs.repetition.top);
        if (c->has_def && quiet != 1 && c->n - begin < 800) def = fz_upto(in, c->codecs.definition.top);
        if (c->n == 0) rep = c->codecs.repetition.top;
        if (c->has_rep && rep == 0 && def > c->codecs.visible) def = c->codecs.visible; /* what continues a list has a value */
        if (!c->has_rep) visible++;
        else visible += def <= c->codecs.visible;
        c->rep[c->n] = (uint16_t)rep, c->def[c->n] = (uint16_t)def;
        c->rows += c->has_rep && rep == c->codecs.repetition.top;
        c->n++;
    }
    c->page.levels[i] = c->n - begin, c->ends[i] = c->n;
}

/* One encoded chunk of one stream. */
static int64_t encode(const lc_level_codec *codec, const uint8_t *levels, int64_t n, uint8_t *out) {
    int64_t ends[1], runs = 0;
    uint8_t lengths[MOST];
    if (codec->kind == LC_LEVEL_FLAT) {
        memcpy(out, levels, (size_t)(2 * n));
        return 2 * n;
    }
    if (codec->kind == LC_LEVEL_INLINE) return lc_inline_pack(levels, n, LC_LEVEL_BITS, out, ends);
    if (codec->kind == LC_LEVEL_OUT_OF_LINE) {
        FZ_CHECK(!lc_ool_pack(levels, n, LC_LEVEL_BITS, (int)codec->width, out));
        return lc_ool_size(n, LC_LEVEL_BITS, codec->width);
    }
    for (int64_t i = 0, run; i < n; i += run, runs++) {
        for (run = 1; run < 255 && i + run < n && lc_level(levels, i + run) == lc_level(levels, i);) run++;
        lc_store_u16(out + 8 + 2 * runs, lc_level(levels, i));
        lengths[runs] = (uint8_t)run;
    }
    lc_store_u64(out, (uint64_t)(2 * runs));
    memcpy(out + 8 + 2 * runs, lengths, (size_t)runs);
    return 8 + 3 * runs;
}

static lc_level_codec codec_of(fz_input *in, int64_t top) {
    static const int64_t kinds[] = {LC_LEVEL_FLAT, LC_LEVEL_RLE, LC_LEVEL_OUT_OF_LINE, LC_LEVEL_INLINE};
    lc_level_codec codec = {kinds[fz_upto(in, 3)], 3 + fz_upto(in, 2), top};
    return codec;
}

static int column_of(fz_input *in, column *c, int damage) {
    fz_page *p = &c->page;
    fz_page_open(in, p, 6);
    c->n = c->rows = 0;
    c->has_rep = (int)fz_upto(in, 3) != 0, c->has_def = !c->has_rep || fz_upto(in, 3) != 0;
    c->codecs.repetition = c->has_rep ? codec_of(in, 1 + fz_upto(in, 2)) : (lc_level_codec){LC_LEVEL_NONE, 0, 0};
    c->codecs.definition = c->has_def ? codec_of(in, fz_upto(in, 5)) : (lc_level_codec){LC_LEVEL_NONE, 0, 0};
    c->codecs.visible = fz_upto(in, c->codecs.definition.top);
    int64_t longest = 0;
    for (int64_t i = 0; i < p->plan.count; i++) {
        entries_of(in, c, i);
        longest = p->levels[i] > longest ? p->levels[i] : longest;
    }
    if (longest > LC_FL_VALUES && c->codecs.repetition.kind == LC_LEVEL_INLINE) c->codecs.repetition.kind = LC_LEVEL_FLAT;
    if (longest > LC_FL_VALUES && c->codecs.definition.kind == LC_LEVEL_INLINE) c->codecs.definition.kind = LC_LEVEL_FLAT;
    p->chunks.repetition = c->has_rep, p->chunks.definition = c->has_def;
    p->plan.level_streams = c->has_rep + c->has_def, p->plan.levels = p->levels;
    for (int64_t k = 0; k < p->plan.level_streams; k++) {
        int is_rep = k == 0 && c->has_rep;
        int64_t s = fz_page_stream(p), begin = 0;
        for (int64_t i = 0; i < p->plan.count; begin = c->ends[i++]) {
            const uint8_t *levels = (const uint8_t *)((is_rep ? c->rep : c->def) + begin);
            fz_page_put(p, s, i, encode(is_rep ? &c->codecs.repetition : &c->codecs.definition, levels, p->levels[i],
                                        fz_page_room(p, s, i)));
        }
    }
    return fz_page_close(in, p, damage);
}

/* All chunks, and where rows start in them. */
static void scanned(fz_input *in, const column *c, int damage) {
    const lc_chunks *chunks = &c->page.chunks;
    int64_t count = chunks->table.count, a = fz_upto(in, count), b = a + fz_upto(in, count - a), total, where;
    int64_t *begins = (int64_t *)fz_memory(8 * (count + 1), 0);
    int problem = lc_levels_begins(chunks, &c->codecs, a, b, begins, &where);
    int64_t size = problem ? fz_upto(in, 900) : begins[b - a], from = a ? c->ends[a - 1] : 0;
    if (size > 100000) return;
    uint8_t *rep = c->has_rep && fz_upto(in, 7) ? fz_out(in, 2 * size) : NULL;
    uint8_t *def = c->has_def && fz_upto(in, 7) ? fz_out(in, 2 * size) : NULL;
    int other = lc_levels_scan(chunks, &c->codecs, a, b, rep, def, size, &total, &where);
    if (damage) return;
    FZ_CHECK(!problem && !other && total == size && size == (b ? c->ends[b - 1] : 0) - from);
    if (rep) FZ_CHECK(!memcmp(rep, c->rep + from, (size_t)(2 * size)));
    if (def) FZ_CHECK(!memcmp(def, c->def + from, (size_t)(2 * size)));
}

static void single(fz_input *in, const column *c, int damage) {
    const lc_chunks *chunks = &c->page.chunks;
    int64_t n = fz_upto(in, 60), *at = fz_positions(in, n, chunks->table.items), where;
    int wild = n && fz_upto(in, 15) == 0;
    if (wild) at[n - 1] = (int64_t)fz_word(in, 8);
    uint8_t *scratch = fz_memory(2 * chunks->table.largest, 0), *out = fz_out(in, 2 * n);
    int problem = lc_levels_take(chunks, &c->codecs, at, n, scratch, out, &where);
    FZ_CHECK(damage || wild || !problem);
    for (int64_t i = 0; i < n && !problem && !damage; i++) FZ_CHECK(lc_level(out, i) == c->def[at[i]]);
}

/* Entries and values of rows that were taken, against the written levels. */
static void check_rows(const column *c, const int64_t *rows, int64_t n, const lc_row_levels *out, const int64_t *begins,
                       const int64_t *counts) {
    int64_t *entries = (int64_t *)fz_memory(8 * (c->rows + 1), 0), *values = (int64_t *)fz_memory(8 * (c->rows + 1), 0), at = 0;
    const uint8_t *def = c->has_def ? (const uint8_t *)c->def : NULL;
    int64_t found = lc_levels_rows((const uint8_t *)c->rep, def, c->n, c->codecs.repetition.top, c->codecs.visible, c->rows,
                                   entries, values);
    FZ_CHECK(found == c->rows);
    for (int64_t i = 0; i < n; i++) {
        int64_t first = entries[rows[i]], size = entries[rows[i] + 1] - first;
        FZ_CHECK(begins[i] == values[rows[i]] && counts[i] == values[rows[i] + 1] - begins[i]);
        FZ_CHECK(size <= out->entries - at && !memcmp(out->rep + 2 * at, c->rep + first, (size_t)(2 * size)));
        if (c->has_def) FZ_CHECK(!memcmp(out->def + 2 * at, c->def + first, (size_t)(2 * size)));
        at += size;
    }
    FZ_CHECK(at == out->entries);
}

static void whole_rows(fz_input *in, const column *c, int damage) {
    const lc_chunks *chunks = &c->page.chunks;
    int64_t count = chunks->table.count, where, n = fz_upto(in, 40), *rows = fz_positions(in, n, c->rows);
    int64_t *started = (int64_t *)fz_memory(8 * (count + 1), 0), *ended = (int64_t *)fz_memory(8 * (count + 1), 0);
    int64_t *begins = (int64_t *)fz_memory(8 * n, 0), *counts = (int64_t *)fz_memory(8 * n, 0);
    uint8_t *pairs = fz_out(in, 16 * count);
    int wild = n && fz_upto(in, 31) == 0;
    if (wild) rows[n - 1] = (int64_t)fz_word(in, 8);
    FZ_CHECK(!lc_repetition_index((const uint8_t *)c->rep, c->n, (uint16_t)c->codecs.repetition.top, c->ends, count, pairs));
    if (damage && fz_upto(in, 1)) pairs = fz_damaged(in, pairs, 16 * count);
    int problem = lc_repetition_index_parse(pairs, count, c->rows, started, ended, &where);
    FZ_CHECK(damage || !problem);
    if (problem) return;
    lc_level_cursor cursor = {.chunks = chunks, .codecs = &c->codecs, .chunk = -1};
    lc_row_levels out = {0};
    problem = lc_rows_take(&cursor, started, rows, n, &out, begins, counts, &where);
    FZ_CHECK(damage || wild || !problem);
    if (!problem && !damage && !wild) check_rows(c, rows, n, &out, begins, counts);
    for (int64_t i = 0; i < n && !problem; i++)
        FZ_CHECK(begins[i] >= 0 && counts[i] >= 0 && begins[i] + counts[i] <= chunks->table.items);
    free(cursor.rep), free(cursor.def), free(out.rep), free(out.def);
}

static void fz_target(fz_input *in) {
    static column c;
    int damage = (int)fz_upto(in, 1);
    if (!column_of(in, &c, damage)) return;
    scanned(in, &c, damage);
    if (c.has_rep) whole_rows(in, &c, damage);
    else single(in, &c, damage);
}
