/* FSST encoder: the longest symbol at each position, as published (P. Boncz, T. Neumann, V. Leis: FSST: Fast Random
 * Access String Compression, VLDB 2020). Symbols of three and more bytes are in a hash table of their first three
 * bytes, where each slot holds one symbol; shorter ones are in a table of all pairs of bytes.
 *
 * A step of the loop depends on the previous step (where its symbol ended) through a multiplication and two table
 * loads. So several groups of strings are encoded in turns, and moved together afterwards. */
#ifndef LANCECODEC_FSST_ENCODE_H
#define LANCECODEC_FSST_ENCODE_H

#include "fsst_strings.h"

#define LC_FSST_SLOTS 1024
#define LC_FSST_LANES 4
#define LC_FSST_LAST 65536

/* Action at a position: code in bits 0-8, bytes consumed in bits 12-15, bit 10 set for an escape. The code has nine
 * bits, because the builder has codes for escaped bytes (0-255) in addition to those of symbols (256 and up). */
#define LC_FSST_ACTION(CODE, LENGTH, ESCAPE) ((uint16_t)((CODE) | ((LENGTH) << 12) | ((ESCAPE) << 10)))
LC_INLINE int lc_fsst_action_code(uint16_t action) { return action & 0x1FF; }
LC_INLINE int lc_fsst_action_escapes(uint16_t action) { return (action >> 10) & 1; }
LC_INLINE int lc_fsst_action_length(uint16_t action) { return action >> 12; }

typedef struct {
    uint64_t word, mask;
} lc_fsst_slot;

typedef struct {
    lc_fsst_slot slots[LC_FSST_SLOTS];
    uint16_t slot_actions[LC_FSST_SLOTS];
    /* Indexed by the next two bytes, first one low: symbols of two bytes, one byte, or an escape. From LC_FSST_LAST on,
     * indexed by the last byte of a string. */
    uint16_t pairs[65536 + 256];
} lc_fsst_lookup;

LC_INLINE int64_t lc_fsst_hash(uint64_t word) {
    uint64_t h = (word & 0xFFFFFF) * 2971215073u;
    return (int64_t)((h ^ (h >> 15)) & (LC_FSST_SLOTS - 1));
}

LC_INLINE uint64_t lc_fsst_mask(int length) { return ~0ULL >> (64 - 8 * length); }

/* Initialise without symbols. An empty slot holds a word that hashes elsewhere, which no text can match. */
static inline void lc_fsst_lookup_clear(lc_fsst_lookup *lookup, int builds) {
    for (int64_t i = 0; i < LC_FSST_SLOTS; i++) {
        lookup->slots[i].word = i ? 0 : 1;
        lookup->slots[i].mask = ~0ULL;
        lookup->slot_actions[i] = LC_FSST_ACTION(0, 1, 0);
    }
    for (int64_t p = 0; p < LC_FSST_LAST + 256; p++)
        lookup->pairs[p] = LC_FSST_ACTION(builds ? p & 0xFF : LC_FSST_ESCAPE, 1, 1);
}

LC_INLINE int lc_fsst_slot_free(const lc_fsst_lookup *lookup, uint64_t word) {
    int64_t h = lc_fsst_hash(word);
    return lookup->slots[h].mask == ~0ULL && lookup->slots[h].word == (uint64_t)(h == 0);
}

/* Add a symbol. One-byte symbols must be added before two-byte ones, in any order with longer ones. Returns 0 if there
 * is no room: a slot holds its first symbol only. */
static inline int lc_fsst_lookup_add(lc_fsst_lookup *lookup, uint64_t word, int length, int code) {
    uint16_t action = LC_FSST_ACTION(code, length, 0);
    if (length == 1) {
        for (int64_t next = 0; next <= 256; next++) { /* 256: none */
            uint16_t *pair = &lookup->pairs[(word & 0xFF) | (uint64_t)next << 8];
            if (lc_fsst_action_length(*pair) == 1) *pair = action;
        }
    } else if (length == 2) {
        lookup->pairs[word & 0xFFFF] = action;
    } else {
        int64_t h = lc_fsst_hash(word);
        if (!lc_fsst_slot_free(lookup, word)) return 0;
        lookup->slots[h].word = word;
        lookup->slots[h].mask = lc_fsst_mask(length);
        lookup->slot_actions[h] = action;
    }
    return 1;
}

/* Action for the next bytes, of which `rest` belong to the string. There are no branches, because they would not be
 * predictable. */
LC_INLINE uint16_t lc_fsst_action(const lc_fsst_lookup *lookup, uint64_t word, int64_t rest) {
    int64_t h = lc_fsst_hash(word);
    uint64_t last = rest < 2, differs = (word ^ lookup->slots[h].word) & lookup->slots[h].mask;
    uint16_t longer = lookup->slot_actions[h];
    uint16_t shorter = lookup->pairs[(word & (0xFFFF - 0xFF00 * last)) + LC_FSST_LAST * last];
    unsigned fits = (unsigned)(differs == 0) & (unsigned)(lc_fsst_action_length(longer) <= rest);
    return (uint16_t)(shorter ^ ((shorter ^ longer) & (0u - fits)));
}

LC_INLINE uint64_t lc_fsst_load_word(const uint8_t *p, int64_t left) {
    uint64_t word = 0;
    if (left >= 8) return lc_load_u64(p);
    if (left > 0) memcpy(&word, p, (size_t)left);
    return word;
}

/* Strings with n + 1 offsets, the first of which need not be 0. */
typedef struct {
    const uint8_t *data;
    int64_t size; /* of the memory, not of the strings */
    const uint8_t *offsets;
    int64_t n;
    uint8_t *out_offsets; /* n + 1 of them, from 0 on */
    uint8_t *out;
} lc_fsst_job;

/* State of a group of strings that is being encoded: from string i on, with the bytes from `at` to `end` left, to
 * out[to]. */
typedef struct {
    int64_t at, end, to, i;
} lc_fsst_lane;

/* Encode one symbol, or skip an empty string. The ends of symbols and strings are hard to predict, so there are no
 * branches: the end of the string is stored at every step, and the last store remains. `inside`: eight bytes can be
 * read, and there is a next string. */
LC_INLINE void lc_fsst_step(const lc_fsst_lookup *lookup, const lc_fsst_job *job, int wide, int out_wide, int inside,
                            lc_fsst_lane *lane) {
    int64_t rest = lane->end - lane->at, some = rest != 0;
    uint64_t word = lc_fsst_load_word(job->data + lane->at, inside ? 8 : job->size - lane->at);
    uint16_t action = lc_fsst_action(lookup, word, rest);
    lc_store_u16(job->out + lane->to, (uint16_t)((action & 0xFF) | (word & 0xFF) << 8));
    lane->to += some + (some & lc_fsst_action_escapes(action));
    lane->at += -some & lc_fsst_action_length(action);
    lane->i++;
    lc_store_offset(job->out_offsets, out_wide, lane->i, lane->to);
    lane->i -= lane->at != lane->end;
    int64_t next = inside || lane->i < job->n ? lane->i + 1 : job->n;
    lane->end = lc_load_offset(job->offsets, wide, next);
}

/* Number of steps of up to 8 bytes that every lane can make with 8 readable bytes at each, and without reaching its
 * end. */
LC_INLINE int64_t lc_fsst_steps(const lc_fsst_lane *lanes, const int64_t *ends) {
    int64_t least = INT64_MAX;
    for (int64_t k = 0; k < LC_FSST_LANES; k++)
        least = ends[k] - lanes[k].at < least ? ends[k] - lanes[k].at : least;
    return (least - 8) / 8;
}

/* Start lanes: lane k begins at string starts[k] and ends where the next one begins. */
LC_INLINE void lc_fsst_run_lanes(const lc_fsst_lookup *lookup, const lc_fsst_job *given, int wide, int out_wide,
                                 const int64_t *starts, lc_fsst_lane *lanes) {
    const lc_fsst_job kept = *given, *job = &kept; /* not reachable for the stores */
    int64_t ends[LC_FSST_LANES];
    for (int64_t k = 0; k < LC_FSST_LANES; k++) ends[k] = lc_load_offset(job->offsets, wide, starts[k + 1]);
    lc_fsst_lane a = lanes[0], b = lanes[1], c = lanes[2], d = lanes[3];
    for (int64_t steps; (steps = lc_fsst_steps(lanes, ends)) > 0;) {
        for (; steps > 0; steps--) {
            lc_fsst_step(lookup, job, wide, out_wide, 1, &a);
            lc_fsst_step(lookup, job, wide, out_wide, 1, &b);
            lc_fsst_step(lookup, job, wide, out_wide, 1, &c);
            lc_fsst_step(lookup, job, wide, out_wide, 1, &d);
        }
        lanes[0] = a, lanes[1] = b, lanes[2] = c, lanes[3] = d;
    }
    for (int64_t k = 0; k < LC_FSST_LANES; k++)
        while (lanes[k].i < starts[k + 1]) lc_fsst_step(lookup, job, wide, out_wide, 0, &lanes[k]);
}

/* First string from `i` on, up to `stop`, that begins at or behind `place`. */
LC_INLINE int64_t lc_fsst_string_at(const lc_fsst_job *job, int wide, int64_t i, int64_t stop, int64_t place) {
    while (i < stop) {
        int64_t middle = i + (stop - i) / 2;
        if (lc_load_offset(job->offsets, wide, middle) < place) i = middle + 1;
        else stop = middle;
    }
    return i;
}

/* Encode strings [i, stop) to out[at..]: in lanes of about equal size, each with the room that it may need, then moved
 * together. Returns the end. */
LC_INLINE int64_t lc_fsst_encode_round(const lc_fsst_lookup *lookup, const lc_fsst_job *job, int wide, int out_wide,
                                       int64_t i, int64_t stop, int64_t at) {
    int64_t begin = lc_load_offset(job->offsets, wide, i), size = lc_load_offset(job->offsets, wide, stop) - begin;
    int64_t starts[LC_FSST_LANES + 1], places[LC_FSST_LANES];
    lc_fsst_lane lanes[LC_FSST_LANES];
    for (int64_t k = 0; k < LC_FSST_LANES; k++) {
        starts[k] = k ? lc_fsst_string_at(job, wide, starts[k - 1], stop, begin + size / LC_FSST_LANES * k) : i;
        int64_t first = lc_load_offset(job->offsets, wide, starts[k]);
        int64_t end = lc_load_offset(job->offsets, wide, starts[k] < job->n ? starts[k] + 1 : job->n);
        places[k] = at + 2 * (first - begin + k);
        lanes[k] = (lc_fsst_lane){first, end, places[k], starts[k]};
    }
    starts[LC_FSST_LANES] = stop;
    lc_fsst_run_lanes(lookup, job, wide, out_wide, starts, lanes);
    for (int64_t k = 0; k < LC_FSST_LANES; k++) {
        int64_t written = lanes[k].to - places[k];
        if (written) memmove(job->out + at, job->out + places[k], (size_t)written);
        for (int64_t s = starts[k] + 1; s <= starts[k + 1]; s++)
            lc_store_offset(job->out_offsets, out_wide, s,
                            lc_load_offset(job->out_offsets, out_wide, s) - places[k] + at);
        at += written;
    }
    return at;
}

/* Bytes encoded per round: few enough to be in the cache when the lanes are moved together. */
#define LC_FSST_ROUND (1 << 19)

LC_INLINE int64_t lc_fsst_encode_rounds(const lc_fsst_lookup *lookup, const lc_fsst_job *job, int wide, int out_wide) {
    int64_t i = 0, at = 0;
    while (i < job->n) {
        int64_t begin = lc_load_offset(job->offsets, wide, i);
        int64_t stop = lc_fsst_string_at(job, wide, i + 1, job->n, begin + LC_FSST_ROUND);
        at = lc_fsst_encode_round(lookup, job, wide, out_wide, i, stop, at);
        i = stop;
    }
    return at;
}

/* Room that the encoder needs for strings of `size` bytes together. */
LC_INLINE int64_t lc_fsst_bound(int64_t size) { return 2 * size + 2 * LC_FSST_LANES; }

/* job->out has room for lc_fsst_bound() of the strings' bytes. The offsets of the job have been checked. */
LC_CLONES static inline int lc_fsst_encode(const lc_fsst_lookup *lookup, const lc_fsst_job *job, int wide, int out_wide,
                                           int64_t *written) {
    int64_t at;
    lc_store_offset(job->out_offsets, out_wide, 0, 0);
    if (wide && out_wide) at = lc_fsst_encode_rounds(lookup, job, 1, 1);
    else if (wide) at = lc_fsst_encode_rounds(lookup, job, 1, 0);
    else if (out_wide) at = lc_fsst_encode_rounds(lookup, job, 0, 1);
    else at = lc_fsst_encode_rounds(lookup, job, 0, 0);
    *written = at;
    return !out_wide && at > INT32_MAX ? LC_NO_SPACE : LC_OK;
}

/* Check that offsets do not decrease and are in [0, size]. */
static inline int lc_fsst_check_offsets(const uint8_t *offsets, int wide, int64_t n, int64_t size) {
    int64_t before = lc_load_offset(offsets, wide, 0);
    if (before < 0) return LC_BAD_OFFSETS;
    for (int64_t i = 1; i <= n; i++) {
        int64_t next = lc_load_offset(offsets, wide, i);
        if (next < before) return LC_BAD_OFFSETS;
        before = next;
    }
    return before > size ? LC_BAD_OFFSETS : LC_OK;
}

LC_INLINE int64_t lc_fsst_job_size(const lc_fsst_job *job, int wide) {
    return lc_load_offset(job->offsets, wide, job->n) - lc_load_offset(job->offsets, wide, 0);
}

/* Store strings verbatim. */
static inline int lc_fsst_copy(const lc_fsst_job *job, int wide, int out_wide, int64_t *written) {
    int64_t begin = lc_load_offset(job->offsets, wide, 0);
    *written = lc_fsst_job_size(job, wide);
    if (!out_wide && *written > INT32_MAX) return LC_NO_SPACE;
    if (*written) memcpy(job->out, job->data + begin, (size_t)*written);
    for (int64_t i = 0; i <= job->n; i++)
        lc_store_offset(job->out_offsets, out_wide, i, lc_load_offset(job->offsets, wide, i) - begin);
    return LC_OK;
}

/* Make an encoder for the symbols of a parsed table. Of symbols that share a slot, the first is used. */
static inline void lc_fsst_lookup_fill(lc_fsst_lookup *lookup, const lc_fsst_table *table) {
    lc_fsst_lookup_clear(lookup, 0);
    for (int code = 0; code < table->count; code++)
        lc_fsst_lookup_add(lookup, table->words[code], table->lengths[code], code);
}
#endif
