/* Strings in chunks, plain and as FSST codes: ranges and single ones, in one pass and in two. */
#include "chunks.h"
#include "fsst_encode.h"
#include "miniblock_variable.h"

typedef struct {
    fz_page page;
    lc_fsst_table table;
    lc_text_codec codec;
} column;

static void symbols(fz_input *in, lc_fsst_table *table) {
    uint64_t words[255];
    uint8_t lengths[255], bytes[LC_FSST_TABLE_SIZE];
    int count = (int)fz_upto(in, fz_upto(in, 1) ? 20 : 255);
    for (int i = 0; i < count; i++) {
        lengths[i] = (uint8_t)(1 + fz_upto(in, 7));
        words[i] = fz_word(in, 2) * 0x0001000100010001ULL & lc_low_mask(8 * lengths[i]);
    }
    lc_fsst_table_write(words, lengths, count, fz_upto(in, 15) != 0, bytes);
    FZ_CHECK(!lc_fsst_table_parse(bytes, sizeof bytes, table));
}

static int column_of(fz_input *in, column *c, int damage) {
    fz_page *p = &c->page;
    fz_page_open(in, p, 6);
    c->codec = (lc_text_codec){NULL, 0, (int)fz_upto(in, 1)};
    if (fz_upto(in, 1)) symbols(in, &c->table), c->codec.table = &c->table;
    int64_t s = fz_page_stream(p), entry = c->codec.wide ? 8 : 4, longest = fz_upto(in, 1) ? 5 : 200;
    for (int64_t i = 0; i < p->plan.count; i++) {
        uint8_t *room = fz_page_room(p, s, i);
        int64_t n = p->values[i], at = (n + 1) * entry;
        for (int64_t k = 0; k <= n; k++) {
            lc_store_offset(room, c->codec.wide, k, at);
            int64_t size = k < n ? fz_upto(in, longest) : 0, top = c->codec.table && c->table.compressed ? c->table.count : 256;
            if (top == 0) size = 0; /* codes without symbols: damage makes them */
            for (int64_t b = 0; b < size; b++) room[at++] = (uint8_t)fz_upto(in, top - 1);
        }
        while (at % entry) room[at++] = LC_VARIABLE_PAD;
        fz_page_put(p, s, i, at);
    }
    return fz_page_close(in, p, damage);
}

/* All values from a to b in one pass, in as many pieces as the room asks for. */
static int64_t one_pass(const column *c, int64_t a, int64_t b, int wide, int exact, uint8_t *ends_out, uint8_t *out, int64_t room) {
    lc_ends ends = {ends_out, wide, 0};
    int64_t done = a, total = 0, all = 0, where;
    while (done < b) {
        int64_t before = done;
        if (lc_text_scan(&c->page.chunks, &c->codec, done, b, &ends, out + all, room - all, exact, &done, &total, &where)) return -1;
        all += total;
        if (done == before) return -2;
    }
    return all;
}

static void fz_target(fz_input *in) {
    column c;
    int damage = (int)fz_upto(in, 1), wide = (int)fz_upto(in, 1), width = wide ? 8 : 4;
    if (!column_of(in, &c, damage)) return;
    const lc_chunks *chunks = &c.page.chunks;
    int64_t items = chunks->table.items, a = fz_upto(in, items), b = a + fz_upto(in, items - a), where, total = 0, picked_size = 0;
    int64_t n = fz_upto(in, 40), *at = fz_positions(in, n, items);
    if (n && fz_upto(in, 31) == 0) at[n - 1] = (int64_t)fz_word(in, 8);
    uint8_t *ends = fz_out(in, (b - a) * width), *again = fz_out(in, (b - a) * width), *some = fz_out(in, n * width);
    lc_ends to = {ends, wide, 0}, take = {some, wide, 0};
    int problem = lc_text_scan_ends(chunks, &c.codec, a, b, &to, &where);
    int other = lc_text_take_ends(chunks, &c.codec, at, n, &take, &where);
    if (!damage) FZ_CHECK(!problem);
    int64_t size = problem ? fz_upto(in, 5000) : to.total, taken = other ? fz_upto(in, 5000) : take.total;
    int exact = (int)fz_upto(in, 1);
    int64_t room = exact ? size : 8 * size + 64;
    uint8_t *out = fz_out(in, size), *pass = fz_out(in, room), *picked = fz_out(in, taken);
    int third = lc_text_scan_bytes(chunks, &c.codec, a, b, out, size, &total, &where);
    int fourth = lc_text_take_bytes(chunks, &c.codec, at, n, picked, taken, &picked_size, &where);
    int64_t all = one_pass(&c, a, b, wide, exact, again, pass, room);
    int64_t likely = 0, decoded = 0;
    int fifth = lc_text_scan_size(chunks, &c.codec, a, b, &decoded, &where);
    int sixth = lc_text_scan_estimate(chunks, &c.codec, a, b, &likely, &where);
    FZ_CHECK(fifth || decoded >= 0);
    FZ_CHECK(sixth || likely >= 0);
    if (damage || problem) return;
    FZ_CHECK(!fifth && decoded == size && !sixth);
    FZ_CHECK(!third && total == size && (all == size || all == -2));
    if (all == size) FZ_CHECK(!memcmp(out, pass, (size_t)size) && !memcmp(ends, again, (size_t)((b - a) * width)));
    if (other) return;
    FZ_CHECK(!fourth && picked_size == taken);
    FZ_CHECK(b - a < items || size <= lc_text_most(chunks, &c.codec));
    for (int64_t i = 0; i < n; i++) {
        if (at[i] < a || at[i] >= b) continue;
        int64_t k = at[i] - a, begin = k ? lc_load_offset(ends, wide, k - 1) : 0, end = lc_load_offset(ends, wide, k);
        int64_t from = i ? lc_load_offset(some, wide, i - 1) : 0;
        FZ_CHECK(lc_load_offset(some, wide, i) - from == end - begin && !memcmp(picked + from, out + begin, (size_t)(end - begin)));
    }
}
