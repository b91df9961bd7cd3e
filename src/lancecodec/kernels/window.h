/* Rows of a window of one column, all or those that a bitmap keeps, in their final place. Chunks are decoded while they
 * are in the cache, and those without a row that is kept are not touched.
 *
 * The caller has checked the rows of each part against its page, and the bitmap and the outputs against the rows. The
 * bitmap must not change: the outputs have room for its rows only. */
#ifndef LANCECODEC_WINDOW_H
#define LANCECODEC_WINDOW_H

#include "gather_variable.h"
#include "kept.h"
#include "take.h"
#include "take_texts.h"

/* Rows [first, stop) of a page. */
typedef struct {
    const lc_take_page *page;
    int64_t first, stop;
} lc_window_part;

/* Bit `at` of `bits` belongs to the first row of the window. Without bits all rows are kept. If few are, `places` has the
 * place of each in the window, so that no column searches the bits again. */
typedef struct {
    const uint8_t *bits;
    int64_t at;
    const int64_t *places;
} lc_window_mask;

/* Less than 1 / LC_WINDOW_SHARE of the rows are few. */
#define LC_WINDOW_SHARE 12

/* Output of a column. The memory belongs to the caller, except for what lc_window_close frees. */
typedef struct {
    uint8_t *values;   /* a value per row; bits, if the width is 0; one more offset than rows, if it is -1 */
    uint8_t *validity; /* a bit per row; NULL: no page has levels */
    uint8_t *content;  /* of texts */
    int64_t capacity, size;
    int wide;
    int64_t rows, nulls; /* so far */
    uint8_t *scratch, *levels, *codes, *slots;
    int64_t scratch_size, levels_size, codes_size, slots_size;
} lc_window_sink;

static inline void lc_window_close(lc_window_sink *sink) {
    free(sink->scratch);
    free(sink->levels);
    free(sink->codes);
    free(sink->slots);
    sink->scratch = sink->levels = sink->codes = sink->slots = NULL;
    sink->scratch_size = sink->levels_size = sink->codes_size = sink->slots_size = 0;
}

LC_INLINE int64_t lc_window_count(const lc_window_mask *mask, int64_t at, int64_t n) {
    return mask->bits ? lc_bits_count(mask->bits, mask->at + at, n) : n;
}

/* Return whether rows of a page can be read as a part of a window. */
static int lc_window_supports(const lc_take_page *page) {
    if (page->lists || page->blocks) return 0;
    switch (page->kind) {
        case LC_TAKE_CHUNKS: return 1;
        case LC_TAKE_CONSTANT: return page->width > 0 && page->definition == NULL;
        case LC_TAKE_ZIPPED: return page->width > 0 && page->zip.control == 0;
        default: return 0;
    }
}

/* ---- chunks: a walk over those with rows that are kept ---- */

typedef struct {
    const lc_take_page *page;
    lc_chunk_walk walk;
    int64_t place; /* of the first row of the chunk in the window */
    int64_t n;     /* rows of the window in the chunk */
    int64_t kept;
    int64_t before;      /* rows that are kept in front of it */
    int64_t ahead, stop; /* the kept rows of the part whose bytes are to be asked for */
    int64_t base;        /* place of the first row of the page */
} lc_window_chunk;

LC_INLINE lc_window_chunk lc_window_begin(const lc_window_part *part, const lc_window_mask *mask, int64_t place) {
    lc_window_chunk chunk;
    int64_t n = part->stop - part->first;
    chunk.page = part->page;
    chunk.walk = lc_chunk_walk_over(part->page->chunks, part->first, part->stop);
    chunk.place = place;
    chunk.n = chunk.kept = 0;
    chunk.base = place - part->first;
    chunk.before = chunk.ahead = chunk.stop = 0;
    if (mask->places == NULL) return chunk;
    chunk.before = chunk.ahead = chunk.stop = lc_window_count(mask, 0, place);
    /* of values of a fixed size, several are in each line of the cache */
    if (part->page->width >= 0 || part->page->entries.count >= 0) return chunk;
    int64_t kept = lc_window_count(mask, place, n);
    if (lc_take_waits(part->page, kept, n)) chunk.stop += kept;
    return chunk;
}

/* Ask for the bytes of the next kept rows, at least those of the chunk. */
LC_INLINE void lc_window_ahead(const lc_window_mask *mask, lc_window_chunk *chunk) {
    while (chunk->ahead < chunk->stop && chunk->ahead < chunk->before + chunk->kept) {
        int64_t n = chunk->stop - chunk->ahead < LC_AHEAD_ROWS ? chunk->stop - chunk->ahead : LC_AHEAD_ROWS;
        lc_take_ahead(chunk->page, mask->places + chunk->ahead, n, chunk->base);
        chunk->ahead += n;
    }
}

/* Open the next chunk with kept rows; 0 if there is none, or a problem has occurred. */
LC_INLINE int lc_window_next(const lc_window_mask *mask, lc_window_chunk *chunk, int *problem) {
    const lc_chunks *chunks = chunk->page->chunks;
    const int64_t *firsts = chunks->table.firsts;
    lc_chunk_walk *walk = &chunk->walk;
    chunk->place += chunk->n;
    chunk->before += chunk->kept;
    while (walk->at < walk->stop) {
        int64_t i = ++walk->chunk, first = firsts[i], end = firsts[i + 1];
        walk->values = end - first;
        walk->low = walk->at - first;
        walk->high = (end < walk->stop ? end : walk->stop) - first;
        walk->at = first + walk->high;
        chunk->n = walk->high - walk->low;
        chunk->kept = lc_window_count(mask, chunk->place, chunk->n);
        if (chunk->kept) {
            lc_window_ahead(mask, chunk);
            *problem = lc_chunk_open(chunks, i, &walk->open);
            return *problem == LC_OK;
        }
        chunk->place += chunk->n;
    }
    return 0;
}

/* ---- levels ---- */

/* Validity of the kept rows of a chunk, from the levels of its values: 0 is valid, 1 null. */
static int lc_window_levels(const lc_take_page *page, const lc_window_chunk *chunk, const lc_window_mask *mask,
                            lc_window_sink *sink) {
    const lc_chunk_walk *walk = &chunk->walk;
    uint8_t scratch[128];
    int64_t n = chunk->n, nulls = 0;
    if (sink->validity == NULL) return page->levels.kind == LC_LEVEL_NONE ? LC_OK : LC_NO_SPACE;
    const uint8_t *levels = NULL;
    if (page->levels.kind != LC_LEVEL_NONE) {
        if (walk->open.levels != walk->values) return LC_BAD_COUNT;
        int problem = lc_take_grow(&sink->levels, &sink->levels_size, 2 * page->chunks->table.largest);
        if (!problem) problem = lc_levels_decode(&page->levels, walk->open.definition, walk->values, sink->levels);
        if (problem) return problem;
        if (lc_levels_max(sink->levels, walk->values) > page->levels.top) return LC_BAD_LEVEL;
        levels = sink->levels + 2 * walk->low;
    }
    lc_bit_writer writer = lc_bit_writer_at(sink->validity, sink->rows);
    for (int64_t i = 0; i < n; i += 64) {
        int64_t live = n - i < 64 ? n - i : 64;
        uint64_t valid = lc_low_mask(live), keep = valid;
        if (levels) valid &= lc_mask_le(lc_levels_block(levels, i, live, scratch), 0);
        if (mask->bits) keep = lc_kept_word(mask->bits, mask->at + chunk->place + i, live);
        int64_t count = lc_popcount64(keep);
        valid = lc_compress64(valid, keep, count);
        nulls += count - lc_popcount64(valid);
        lc_bit_writer_add(&writer, valid, count);
    }
    lc_bit_writer_end(&writer);
    sink->nulls += nulls;
    return nulls && page->required ? LC_BAD_LEVEL : LC_OK;
}

/* ---- values of a fixed size ---- */

/* The values of a chunk that are at some places of the window. */
static int lc_window_placed(const lc_value_codec *codec, const lc_window_chunk *chunk, const int64_t *places,
                            uint8_t *out) {
    const lc_chunk_walk *walk = &chunk->walk;
    int64_t at[LC_TAKE_BLOCK], width = codec->bits >> 3;
    int problem = LC_OK;
    for (int64_t i = 0; i < chunk->kept && !problem; i += LC_TAKE_BLOCK) {
        int64_t some = chunk->kept - i < LC_TAKE_BLOCK ? chunk->kept - i : LC_TAKE_BLOCK;
        for (int64_t k = 0; k < some; k++) at[k] = places[i + k] - chunk->place + walk->low;
        problem = lc_value_at(codec, &walk->open, walk->values, at, some, out + i * width);
    }
    return problem;
}

/* A few values of a chunk, without decoding the others. */
static int lc_window_few(const lc_value_codec *codec, const lc_window_chunk *chunk, const lc_window_mask *mask,
                         uint8_t *out) {
    const lc_chunk_walk *walk = &chunk->walk;
    int64_t at[LC_TAKE_BLOCK], found = 0, width = codec->bits >> 3;
    if (mask->places) return lc_window_placed(codec, chunk, mask->places + chunk->before, out);
    for (int64_t i = 0; i < chunk->n; i += 64) {
        int64_t live = chunk->n - i < 64 ? chunk->n - i : 64;
        for (uint64_t word = lc_kept_word(mask->bits, mask->at + chunk->place + i, live); word; word &= word - 1) {
            at[found++] = walk->low + i + lc_ctz64(word);
            if (found < LC_TAKE_BLOCK) continue;
            int problem = lc_value_at(codec, &walk->open, walk->values, at, found, out);
            if (problem) return problem;
            out += found * width;
            found = 0;
        }
    }
    return found ? lc_value_at(codec, &walk->open, walk->values, at, found, out) : LC_OK;
}

/* The kept values of a chunk, or codes of a dictionary, side by side. `out` has room for exactly these. */
static int lc_window_fixed(const lc_take_page *page, const lc_window_chunk *chunk, const lc_window_mask *mask,
                           lc_window_sink *sink, uint8_t *out) {
    const lc_value_codec *codec = &page->values;
    const lc_chunk_walk *walk = &chunk->walk;
    const uint8_t *values;
    int64_t width = codec->bits >> 3;
    if (chunk->kept == walk->values) return lc_value_chunk(codec, &walk->open, walk->values, out);
    if (chunk->kept < chunk->n / LC_TAKE_SHARE) return lc_window_few(codec, chunk, mask, out);
    int problem = lc_take_grow(&sink->scratch, &sink->scratch_size, page->chunks->table.largest * width);
    if (!problem) problem = lc_value_view(codec, walk, sink->scratch, &values);
    if (problem) return problem;
    if (chunk->kept < chunk->n)
        return lc_kept_fixed(mask->bits, mask->at + chunk->place, chunk->n, values, width, chunk->kept, out);
    memcpy(out, values, (size_t)(chunk->n * width));
    return LC_OK;
}

static int lc_window_bits(const lc_take_page *page, const lc_window_chunk *chunk, const lc_window_mask *mask,
                          lc_window_sink *sink) {
    lc_bytes buffer = chunk->walk.open.values[page->values.buffer];
    int problem = lc_flat_check(buffer, chunk->walk.values, 1);
    if (problem) return problem;
    if (chunk->kept < chunk->n)
        return lc_kept_bits_at(mask->bits, mask->at + chunk->place, chunk->n, buffer.data, chunk->walk.low,
                               chunk->kept, sink->values, sink->rows);
    lc_bits_copy(buffer.data, chunk->walk.low, chunk->n, sink->values, sink->rows);
    return LC_OK;
}

/* Entries of a fixed size to which the kept codes of a chunk point. */
static int lc_window_entries(const lc_take_page *page, const lc_window_chunk *chunk, const lc_window_mask *mask,
                             lc_window_sink *sink) {
    const lc_dictionary dictionary = {page->entries.data.data, page->width, page->entries.count};
    int64_t bits = page->values.bits;
    int problem = lc_take_grow(&sink->codes, &sink->codes_size, page->chunks->table.largest * (bits >> 3));
    if (!problem) problem = lc_window_fixed(page, chunk, mask, sink, sink->codes);
    if (problem) return problem;
    return lc_dictionary_gather(&dictionary, sink->codes, bits, chunk->kept, sink->validity, sink->rows,
                                sink->values + sink->rows * page->width);
}

/* ---- texts ---- */

/* Ends and bytes of strings [low, high) of a chunk. */
static int lc_window_strings(const lc_text_codec *codec, lc_bytes buffer, int64_t n, int64_t low, int64_t high,
                             lc_window_sink *sink, lc_ends *ends) {
    uint8_t *out = sink->content + sink->size;
    int64_t room = sink->capacity - sink->size, written = 0;
    lc_fsst_strings strings;
    lc_bytes stored;
    int problem;
    if (codec->table == NULL) {
        problem = lc_text_plain_ends(codec, buffer, n, low, high, ends, &stored);
        if (problem) return problem;
        if (stored.size > room) return LC_NO_SPACE;
        memcpy(out, stored.data, (size_t)stored.size);
        sink->size += stored.size;
        return LC_OK;
    }
    problem = lc_text_strings(codec, buffer, n, low, high, &strings);
    if (problem) return problem;
    lc_fsst_sink target = {ends->out, ends->wide, ends->total, out, room};
    problem = lc_fsst_decode_strings(codec->table, &strings, &target, &written);
    ends->out += strings.n * (ends->wide ? 8 : 4);
    ends->total += written;
    sink->size += written;
    return problem;
}

LC_INLINE int lc_window_string(const lc_text_codec *codec, lc_bytes buffer, int64_t n, int64_t at,
                               lc_window_sink *sink, lc_ends *ends) {
    int64_t written = 0;
    lc_bytes value;
    int problem = lc_variable_chunk_value(buffer, n, codec->wide, at, &value);
    if (!problem)
        problem = lc_text_write(codec, value, sink->content + sink->size, sink->capacity - sink->size, &written);
    if (!problem) problem = lc_ends_add(ends, written);
    sink->size += written;
    return problem;
}

/* Runs of kept rows of up to this size are decoded string by string. */
#define LC_WINDOW_RUN 2

static int lc_window_texts(const lc_take_page *page, const lc_window_chunk *chunk, const lc_window_mask *mask,
                           lc_window_sink *sink) {
    const lc_text_codec *codec = &page->text;
    const lc_chunk_walk *walk = &chunk->walk;
    lc_bytes buffer = walk->open.values[codec->buffer];
    lc_ends ends = {sink->values + (sink->rows + 1) * (sink->wide ? 8 : 4), sink->wide, sink->size};
    if (chunk->kept == chunk->n)
        return lc_window_strings(codec, buffer, walk->values, walk->low, walk->high, sink, &ends);
    int problem = LC_OK;
    if (mask->places) {
        const int64_t *places = mask->places + chunk->before;
        for (int64_t k = 0; k < chunk->kept && !problem; k++)
            problem = lc_window_string(codec, buffer, walk->values, places[k] - chunk->place + walk->low, sink, &ends);
        return problem;
    }
    for (int64_t i = 0; i < chunk->n && !problem; i += 64) {
        int64_t live = chunk->n - i < 64 ? chunk->n - i : 64, at = walk->low + i;
        uint64_t word = lc_kept_word(mask->bits, mask->at + chunk->place + i, live);
        while (word && !problem) {
            int64_t skip = lc_ctz64(word);
            word >>= skip, at += skip;
            int64_t run = word == UINT64_MAX ? 64 : lc_ctz64(~word);
            if (run > LC_WINDOW_RUN)
                problem = lc_window_strings(codec, buffer, walk->values, at, at + run, sink, &ends);
            else
                for (int64_t k = 0; k < run && !problem; k++)
                    problem = lc_window_string(codec, buffer, walk->values, at + k, sink, &ends);
            word = run == 64 ? 0 : word >> run, at += run;
        }
    }
    return problem;
}

/* Entries of a dictionary of texts, as they are written fastest. */
typedef struct {
    int64_t equal;           /* bytes of each entry, 0 if they differ */
    int64_t longest;         /* bytes of the longest, if there are slots */
    lc_short_entries shorts; /* in slots of one size; the step is 0 if that does not pay */
} lc_window_names;

/* Prepare the entries for `rows` rows. */
static int lc_window_prepare(const lc_take_entries *entries, int64_t rows, lc_window_sink *sink,
                             lc_window_names *names) {
    lc_short_entries *shorts = &names->shorts;
    int problem = lc_entry_offsets_check(entries->offsets, entries->wide, entries->count, entries->data.size);
    names->equal = names->longest = shorts->step = 0;
    if (problem || entries->count <= 0 || entries->count > rows) return problem;
    int64_t longest = lc_entry_longest(entries->offsets, entries->wide, entries->count);
    if (longest == 0 || longest > LC_SHORT_ENTRY) return LC_OK;
    names->longest = longest;
    shorts->step = longest <= 8 ? 8 : longest <= 16 ? 16 : 32;
    problem = lc_take_grow(&sink->slots, &sink->slots_size, entries->count * (shorts->step + 4));
    if (problem) return problem;
    int32_t *lengths = (int32_t *)(void *)sink->slots;
    uint8_t *slots = sink->slots + 4 * entries->count;
    problem = lc_short_entries_fill(entries->data, entries->offsets, entries->wide, entries->count, shorts->step, slots,
                                    lengths);
    if (problem) return problem;
    shorts->slots = slots, shorts->lengths = lengths, shorts->count = entries->count;
    int64_t same = 0;
    for (int64_t i = 0; i < entries->count; i++) same += lengths[i] == longest;
    if (same < entries->count) return LC_OK;
    /* side by side, where the slots were */
    for (int64_t i = 0; i < entries->count; i++) memmove(slots + i * longest, slots + i * shorts->step, (size_t)longest);
    names->equal = longest;
    return LC_OK;
}

/* n ends that are `size` apart. */
LC_CLONES static void lc_window_steps(int64_t base, int64_t size, int64_t n, int wide, uint8_t *out) {
    if (wide) for (int64_t i = 0; i < n; i++) lc_store_u64(out + 8 * i, (uint64_t)(base + (i + 1) * size));
    else for (int64_t i = 0; i < n; i++) lc_store_u32(out + 4 * i, (uint32_t)(base + (i + 1) * size));
}

/* Texts to which the kept codes of a chunk point. */
static int lc_window_named(const lc_take_page *page, const lc_window_chunk *chunk, const lc_window_mask *mask,
                           const lc_window_names *names, lc_window_sink *sink) {
    const lc_take_entries *entries = &page->entries;
    const lc_short_entries *shorts = &names->shorts;
    int64_t width = page->values.bits >> 3, n = chunk->kept, end, written = 0;
    int problem = lc_take_grow(&sink->codes, &sink->codes_size, page->chunks->table.largest * width);
    if (!problem) problem = lc_window_fixed(page, chunk, mask, sink, sink->codes);
    if (problem) return problem;
    uint8_t *ends = sink->values + (sink->rows + 1) * (sink->wide ? 8 : 4), *out = sink->content + sink->size;
    int64_t room = sink->capacity - sink->size, most = n * names->longest;
    int fits = shorts->step && !sink->validity && most + shorts->step <= room &&
               lc_offsets_fit(sink->size, most, sink->wide);
    if (fits && names->equal) {
        problem = lc_gather_fixed(shorts->slots, shorts->count, names->equal, sink->codes, width, n, out);
        lc_window_steps(sink->size, names->equal, n, sink->wide, ends);
        written = most;
    } else if (fits) {
        problem = lc_gather_short(shorts, sink->codes, width, n, sink->wide, sink->size, ends, out, &written);
    } else {
        problem = lc_gather_ends(entries->offsets, entries->wide, entries->count, sink->codes, width, n, sink->validity,
                                 sink->rows, sink->size, sink->wide, ends, &end);
        if (!problem)
            problem = lc_gather_bytes(entries->data, entries->offsets, entries->wide, entries->count, sink->codes,
                                      width, n, sink->validity, sink->rows, out, room, &written);
        if (!problem && written != end - sink->size) problem = LC_BAD_OFFSETS;
    }
    sink->size += written;
    return problem;
}

/* ---- parts ---- */

static int lc_window_chunks(const lc_window_part *part, const lc_window_mask *mask, int64_t place,
                            lc_window_sink *sink) {
    const lc_take_page *page = part->page;
    lc_window_chunk chunk = lc_window_begin(part, mask, place);
    lc_window_names names;
    int problem = LC_OK, named = page->width < 0 && page->entries.count >= 0;
    if (named) problem = lc_window_prepare(&page->entries, part->stop - part->first, sink, &names);
    while (!problem && lc_window_next(mask, &chunk, &problem)) {
        problem = lc_window_levels(page, &chunk, mask, sink);
        if (problem) break;
        if (named) problem = lc_window_named(page, &chunk, mask, &names, sink);
        else if (page->width < 0) problem = lc_window_texts(page, &chunk, mask, sink);
        else if (page->entries.count >= 0) problem = lc_window_entries(page, &chunk, mask, sink);
        else if (page->width == 0) problem = lc_window_bits(page, &chunk, mask, sink);
        else problem = lc_window_fixed(page, &chunk, mask, sink, sink->values + sink->rows * page->width);
        sink->rows += chunk.kept;
    }
    return problem;
}

/* Values side by side in the file, or one value for all rows. */
static int lc_window_plain(const lc_window_part *part, const lc_window_mask *mask, int64_t place,
                           lc_window_sink *sink) {
    const lc_take_page *page = part->page;
    int64_t n = part->stop - part->first, width = page->width, kept = lc_window_count(mask, place, n);
    uint8_t *out = sink->values + sink->rows * width;
    if (sink->validity)
        for (int64_t i = 0; i < kept; i++) lc_set_bit(sink->validity, sink->rows + i, 1);
    sink->rows += kept;
    if (page->kind == LC_TAKE_CONSTANT) {
        for (int64_t i = 0; i < kept; i++) lc_copy_bytes(out + i * width, page->value.data, width);
        return LC_OK;
    }
    if (part->stop > page->data.size / width) return LC_CHUNK_ITEM;
    const uint8_t *values = page->data.data + part->first * width;
    if (mask->bits) return lc_kept_fixed(mask->bits, mask->at + place, n, values, width, kept, out);
    memcpy(out, values, (size_t)(n * width));
    return LC_OK;
}

/* Write the kept rows of a column. Not after a problem: sink->values is undefined then. `utf8` is the table of
 * lc_utf8_fill for texts, else NULL. */
static int lc_window_read(const lc_window_part *parts, int64_t count, const lc_window_mask *mask, int64_t rows,
                          const uint64_t *utf8, lc_window_sink *sink) {
    int64_t place = 0;
    int problem = LC_OK, texts = 0;
    if (count && parts->page->width < 0) lc_store_offset(sink->values, sink->wide, 0, 0);
    for (int64_t i = 0; i < count && !problem; i++) {
        const lc_window_part *part = parts + i;
        if (part->page->kind == LC_TAKE_CHUNKS) problem = lc_window_chunks(part, mask, place, sink);
        else problem = lc_window_plain(part, mask, place, sink);
        texts |= part->page->width < 0 && part->page->entries.count < 0;
        place += part->stop - part->first;
    }
    if (!problem && sink->rows != rows) problem = LC_BAD_COUNT;
    /* outputs that overlap overwrite each other */
    if (!problem && texts && utf8 && lc_load_offset(sink->values, sink->wide, rows) != sink->size)
        problem = LC_BAD_OFFSETS;
    if (!problem && texts && utf8 && !lc_texts_are_utf8(utf8, sink->content, sink->values, sink->wide, rows))
        problem = LC_BAD_CODE;
    return problem;
}

/* ---- room for texts ---- */

/* Stored bytes of the kept strings of a chunk, or of all if most are kept. Forged ones that overlap are refused: together they could be any times as
 * large as the page. */
static int lc_window_stored(const lc_text_codec *codec, const lc_window_chunk *chunk, const lc_window_mask *mask,
                            int64_t *total) {
    const lc_chunk_walk *walk = &chunk->walk;
    lc_bytes buffer = walk->open.values[codec->buffer];
    lc_fsst_strings strings;
    int64_t end = 0;
    int problem = lc_text_strings(codec, buffer, walk->values, walk->low, walk->high, &strings);
    if (problem) return problem;
    if (8 * chunk->kept >= 7 * chunk->n) { /* about those of all rows */
        *total += strings.size;
        return LC_OK;
    }
    for (int64_t i = 0; i < chunk->n; i += 64) {
        int64_t live = chunk->n - i < 64 ? chunk->n - i : 64, at = walk->low + i;
        uint64_t word = lc_kept_word(mask->bits, mask->at + chunk->place + i, live);
        for (; word; word &= word - 1) {
            int64_t k = at + lc_ctz64(word);
            int64_t begin = lc_load_offset(buffer.data, codec->wide, k);
            if (begin < end) return LC_BAD_OFFSETS;
            end = lc_load_offset(buffer.data, codec->wide, k + 1);
            if (end < begin || end > buffer.size) return LC_BAD_OFFSETS;
            *total += end - begin;
        }
    }
    return LC_OK;
}

/* Decoded bytes for each stored byte of a part, from some of its chunks. */
static int lc_window_growth(const lc_window_part *part, double *growth) {
    const lc_text_codec *codec = &part->page->text;
    const lc_chunks *chunks = part->page->chunks;
    int64_t low = lc_chunk_find(&chunks->table, part->first), high = lc_chunk_find(&chunks->table, part->stop - 1);
    int64_t stored = 0, decoded = 0, samples = 2 + (high - low) / 32;
    int64_t step = (high - low) / (samples < LC_TEXT_SAMPLES ? samples : LC_TEXT_SAMPLES) + 1;
    *growth = 1.0;
    if (codec->table == NULL || !codec->table->compressed) return LC_OK;
    for (int64_t i = low; i <= high; i += step) {
        lc_fsst_strings strings;
        lc_chunk open;
        int64_t n = chunks->table.firsts[i + 1] - chunks->table.firsts[i];
        int problem = lc_chunk_open(chunks, i, &open);
        if (!problem) problem = lc_text_strings(codec, open.values[codec->buffer], n, 0, n, &strings);
        if (problem) return problem;
        lc_bytes codes = {strings.data, strings.size};
        int64_t size = lc_text_size(codec, codes);
        if (size < 0) return LC_BAD_CODE;
        stored += codes.size;
        decoded += size;
    }
    *growth = stored ? (double)decoded / (double)stored : 8.0;
    return LC_OK;
}

/* Most bytes that texts of a column may take. */
#define LC_WINDOW_BYTES ((int64_t)1 << 46)

/* Bytes of the entries to which the kept codes of a part point; codes of nulls count, too. */
static int lc_window_named_bytes(const lc_window_part *part, const lc_window_mask *mask, int64_t place,
                                 lc_window_sink *sink, int64_t *total) {
    const lc_take_page *page = part->page;
    const lc_take_entries *entries = &page->entries;
    int64_t width = page->values.bits >> 3;
    lc_window_chunk chunk = lc_window_begin(part, mask, place);
    int problem = lc_take_grow(&sink->codes, &sink->codes_size, page->chunks->table.largest * width);
    while (!problem && lc_window_next(mask, &chunk, &problem)) {
        problem = lc_window_fixed(page, &chunk, mask, sink, sink->codes);
        for (int64_t i = 0; i < chunk.kept && !problem; i++) {
            uint64_t code = lc_code_at(sink->codes, width, i);
            if (code >= (uint64_t)entries->count) continue;
            *total += lc_load_offset(entries->offsets, entries->wide, (int64_t)code + 1) -
                      lc_load_offset(entries->offsets, entries->wide, (int64_t)code);
            if (*total < 0 || *total > LC_WINDOW_BYTES) return LC_NO_SPACE;
        }
    }
    return problem;
}

/* Room for texts of a dictionary: that of the longest entry for each row, if it is not much longer than the others. */
static int lc_window_named_room(const lc_window_part *part, const lc_window_mask *mask, int64_t place, int64_t kept,
                                lc_window_sink *sink, int64_t *room) {
    const lc_take_entries *entries = &part->page->entries;
    int problem = lc_entry_offsets_check(entries->offsets, entries->wide, entries->count, entries->data.size);
    if (problem || entries->count == 0) return problem;
    int64_t longest = lc_entry_longest(entries->offsets, entries->wide, entries->count);
    *room += LC_SHORT_STRING;
    if (longest <= LC_SHORT_ENTRY && entries->count <= kept && longest * entries->count <= 2 * entries->data.size) {
        *room += kept * longest;
        return LC_OK;
    }
    return lc_window_named_bytes(part, mask, place, sink, room);
}

/* Add to *room the bytes that the kept texts of a part probably need, and at least what they need if they are not
 * compressed. */
static int lc_window_room(const lc_window_part *part, const lc_window_mask *mask, int64_t place, lc_window_sink *sink,
                          int64_t *room) {
    const lc_take_page *page = part->page;
    int64_t n = part->stop - part->first, kept = lc_window_count(mask, place, n), stored = 0;
    int problem = LC_OK;
    double growth;
    if (kept == 0) return LC_OK;
    if (page->entries.count >= 0) return lc_window_named_room(part, mask, place, kept, sink, room);
    lc_window_chunk chunk = lc_window_begin(part, mask, place);
    while (lc_window_next(mask, &chunk, &problem)) {
        problem = lc_window_stored(&page->text, &chunk, mask, &stored);
        if (problem) return problem;
    }
    if (!problem) problem = lc_window_growth(part, &growth);
    if (problem) return problem;
    if (growth == 1.0) *room += stored;
    else if (stored <= 4096) *room += 8 * stored + 64;
    else *room += (int64_t)((double)stored * growth * 1.04) + 4096;
    return LC_OK;
}

#endif
