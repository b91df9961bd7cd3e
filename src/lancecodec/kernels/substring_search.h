/* Search for substrings in a Burrows-Wheeler transform (Ferragina and Manzini, 2000).
 *
 * The transform is a wavelet tree. A row is the place of a suffix in their order. The rows whose suffixes begin with a
 * pattern are a range, found symbol by symbol from the end of the pattern. The last-to-first step leads from the row of a
 * suffix to that of the suffix one symbol longer. Positions are known for each rate-th row; for the others, steps are
 * taken up to one of those.
 *
 * Steps are a permutation of the rows if the counts of bits in the tree agree with each other, which `lc_fm_open` checks
 * on its own copy of the bits. So no step leaves the rows, and ways from different known rows never meet. */
#ifndef LANCECODEC_SUBSTRING_SEARCH_H
#define LANCECODEC_SUBSTRING_SEARCH_H

#include <stdlib.h>

#include "wavelet_tree.h"

enum { LC_LINE_WORDS = 7, LC_LINE_BITS = 448, LC_FM_LANES = 128, LC_SEPARATOR = 255 };

/* A cache line of a node: the number of ones before it (high 37 bits), and before its words 2, 4 and 6 (9 bits each). */
typedef struct {
    uint64_t before;
    uint64_t words[LC_LINE_WORDS];
} lc_fm_line;

typedef struct {
    int64_t size;
    int64_t rate;
    int64_t documents;
    int64_t allocated;
    lc_tree tree;
    int64_t bits[LC_TREE_NODES]; /* of each node */
    int64_t line[LC_TREE_NODES]; /* the first of each node */
    int64_t first[257];          /* the first row of each symbol */
    lc_tree_paths paths;
    lc_fm_line *lines;
    uint32_t *known;  /* positions of the rows 0, rate, 2 * rate ... */
    uint32_t *starts; /* positions of the documents */
    uint64_t *names;  /* of the documents */
    uint16_t *owners; /* the document that ends at each separator, in the order of their rows; NULL if not known */
} lc_fm;

/* -- bits --------------------------------------------------------------------------------------------------------- */

typedef struct {
    int64_t ones; /* before the bit */
    int bit;
} lc_fm_bit;

LC_INLINE lc_fm_bit lc_fm_look(const lc_fm_line *lines, int64_t i) {
    const lc_fm_line *line = lines + (uint64_t)i / LC_LINE_BITS;
    uint64_t at = (uint64_t)i % LC_LINE_BITS, word = at >> 6, pair = word >> 1;
    uint64_t ones = (line->before >> 27) + ((line->before << 9 >> 9 * pair) & 511);
    uint64_t odd = 0 - (word & 1), bits = line->words[word];
    ones += (uint64_t)lc_popcount64(line->words[word & 6] & odd);
    ones += (uint64_t)lc_popcount64(bits & (((uint64_t)1 << (at & 63)) - 1));
    lc_fm_bit found = {(int64_t)ones, (int)(bits >> (at & 63) & 1)};
    return found;
}

static inline int64_t lc_fm_node_lines(int64_t bits) { return bits / LC_LINE_BITS + 1; }

/* Copy the words of a node of some bits into lines, the last of which may be empty. Returns the number of ones. */
static inline int64_t lc_fm_copy(const uint8_t *words, int64_t bits, lc_fm_line *lines) {
    int64_t total = (bits + 63) / 64, count = lc_fm_node_lines(bits);
    uint64_t ones = 0;
    for (int64_t i = 0; i < count; i++) {
        uint64_t inside = 0, parts = 0;
        for (int64_t w = 0; w < LC_LINE_WORDS; w++) {
            int64_t at = LC_LINE_WORDS * i + w;
            uint64_t word = at < total ? lc_once_u64(words + 8 * at) : 0;
            if (at == total - 1) word &= lc_low_mask(bits - 64 * at);
            if (w && w % 2 == 0) parts |= inside << 9 * (w / 2 - 1);
            inside += (uint64_t)lc_popcount64(word);
            lines[i].words[w] = word;
        }
        lines[i].before = ones << 27 | parts;
        ones += inside;
    }
    return (int64_t)ones;
}

/* -- opening ------------------------------------------------------------------------------------------------------ */

static inline void lc_fm_close(lc_fm *fm) {
    free(fm->paths.steps), free(fm->lines), free(fm->known), free(fm->starts), free(fm->names), free(fm->owners);
    fm->paths.steps = NULL, fm->lines = NULL, fm->known = fm->starts = NULL, fm->names = NULL, fm->owners = NULL;
}

/* The sum of the sizes of the nodes if they fit a text, in words; -1 if they do not. Lines are numbered. */
static inline int64_t lc_fm_measure(lc_fm *fm, const uint8_t *sizes, int64_t *lines) {
    int64_t words = 0;
    *lines = 0;
    for (int32_t k = 0; k < fm->tree.count; k++) {
        uint64_t bits = lc_once_u64(sizes + 8 * k);
        if (bits > (uint64_t)fm->size) return -1;
        fm->bits[k] = (int64_t)bits;
        fm->line[k] = *lines;
        *lines += lc_fm_node_lines((int64_t)bits);
        words += (int64_t)(bits + 63) / 64;
    }
    return words;
}

/* Copy the bits of all nodes, and count the rows of each symbol. */
static inline int lc_fm_load(lc_fm *fm, const uint8_t *words) {
    int64_t wanted[LC_TREE_NODES] = {fm->size}, counts[256] = {0};
    for (int32_t k = 0; k < fm->tree.count; k++) {
        int64_t bits = fm->bits[k];
        if (bits != wanted[k]) return LC_BAD_COUNT;
        int64_t ones = lc_fm_copy(words, bits, fm->lines + fm->line[k]);
        words += (bits + 63) / 64 * 8;
        for (int b = 0; b < 2; b++) {
            int32_t child = fm->tree.child[k][b];
            *(child < 0 ? &counts[~child] : &wanted[child]) = b ? ones : bits - ones;
        }
    }
    fm->first[0] = 0;
    for (int32_t c = 0; c < 256; c++) fm->first[c + 1] = fm->first[c] + counts[c];
    return LC_OK;
}

/* Copy positions, which are below the size and, if `ascending`, ascend from 0. */
static inline int lc_fm_positions(const uint8_t *in, int64_t n, int64_t size, int ascending, uint32_t *out) {
    int64_t last = -1;
    for (int64_t i = 0; i < n; i++) {
        uint64_t at = lc_once_u64(in + 8 * i);
        if (at >= (uint64_t)size || (ascending && ((int64_t)at <= last || (i == 0 && at)))) return LC_BAD_OFFSETS;
        last = (int64_t)at;
        out[i] = (uint32_t)at;
    }
    return LC_OK;
}

/* Copy the documents of the separators. */
static inline int lc_fm_own(lc_fm *fm, lc_bytes owners) {
    if (!owners.size) return LC_OK;
    if (owners.size != 2 * fm->documents) return LC_BAD_SIZE;
    if (fm->first[LC_SEPARATOR + 1] - fm->first[LC_SEPARATOR] != fm->documents) return LC_BAD_COUNT;
    fm->owners = malloc((size_t)owners.size);
    if (!fm->owners) return LC_NO_MEMORY;
    memcpy(fm->owners, owners.data, (size_t)owners.size);
    LC_SETTLE(fm->owners);
    for (int64_t i = 0; i < fm->documents; i++)
        if (fm->owners[i] >= fm->documents) return LC_BAD_INDEX;
    return LC_OK;
}

/* Parts of a transform as files have them. */
typedef struct {
    lc_bytes tree;
    lc_bytes sizes;  /* 8 bytes for each node: its bits */
    lc_bytes words;  /* bits of the nodes, each from a new word on */
    lc_bytes known;  /* 8 bytes for each rate-th row: its position */
    lc_bytes starts; /* 8 bytes for each document: its position */
    lc_bytes names;  /* 8 bytes for each document */
    lc_bytes owners; /* 2 bytes for each separator in the order of their rows: its document; or nothing */
} lc_fm_parts;

static inline int lc_fm_allocate(lc_fm *fm, int64_t lines, int64_t samples) {
    fm->allocated = (int64_t)sizeof *fm + 64 * lines + 4 * samples + 14 * fm->documents;
    fm->lines = malloc((size_t)lines * sizeof *fm->lines);
    fm->known = malloc((size_t)samples * sizeof *fm->known);
    fm->starts = malloc((size_t)fm->documents * sizeof *fm->starts);
    fm->names = malloc((size_t)fm->documents * sizeof *fm->names);
    return fm->lines && fm->known && fm->starts && fm->names ? LC_OK : LC_NO_MEMORY;
}

/* Open a transform of `size` symbols. Close it, even after a problem. */
static inline int lc_fm_open(lc_fm *fm, int64_t size, int64_t rate, lc_fm_parts in) {
    memset(fm, 0, sizeof *fm);
    int problem = lc_tree_read(in.tree, &fm->tree);
    if (problem != LC_OK) return problem;
    fm->size = size, fm->rate = rate, fm->documents = in.starts.size / 8;
    if (size < 1 || size >= INT32_MAX || rate < 1 || rate > INT32_MAX || !fm->tree.count) return LC_BAD_COUNT;
    if (in.starts.size % 8 || in.names.size != in.starts.size || fm->documents < 1) return LC_BAD_SIZE;
    if (in.sizes.size != 8 * (int64_t)fm->tree.count || fm->documents > size) return LC_BAD_SIZE;
    int64_t lines, total = lc_fm_measure(fm, in.sizes.data, &lines), samples = (size - 1) / rate + 1;
    if (total < 0 || in.words.size != 8 * total || in.known.size != 8 * samples) return LC_BAD_SIZE;
    problem = lc_fm_allocate(fm, lines, samples);
    if (problem == LC_OK) problem = lc_tree_trace(&fm->tree, &fm->paths);
    if (problem == LC_OK) problem = lc_fm_load(fm, in.words.data);
    if (problem == LC_OK) problem = lc_fm_positions(in.known.data, samples, size, 0, fm->known);
    if (problem == LC_OK) problem = lc_fm_positions(in.starts.data, fm->documents, size, 1, fm->starts);
    if (problem == LC_OK) problem = lc_fm_own(fm, in.owners);
    if (problem == LC_OK) memcpy(fm->names, in.names.data, (size_t)in.names.size);
    return problem;
}

/* -- search ------------------------------------------------------------------------------------------------------- */

typedef struct {
    int64_t start;
    int64_t stop;
} lc_fm_rows;

/* The rows whose suffixes begin with a pattern. */
LC_CLONES
static lc_fm_rows lc_fm_find(const lc_fm *fm, const uint8_t *pattern, int64_t n) {
    lc_fm_rows rows = {0, fm->size};
    for (int64_t i = n - 1; i >= 0 && rows.start < rows.stop; i--) {
        uint8_t c = lc_once_u8(pattern + i);
        const uint16_t *step = fm->paths.steps + fm->paths.at[c], *end = fm->paths.steps + fm->paths.at[c + 1];
        if (step == end) return (lc_fm_rows){0, 0};
        for (; step < end; step++) {
            const lc_fm_line *lines = fm->lines + fm->line[*step / 2];
            int64_t start = lc_fm_look(lines, rows.start).ones, stop = lc_fm_look(lines, rows.stop).ones;
            rows.start = *step % 2 ? start : rows.start - start;
            rows.stop = *step % 2 ? stop : rows.stop - stop;
        }
        rows.start += fm->first[c], rows.stop += fm->first[c];
    }
    return rows;
}

typedef struct {
    int64_t row;
    uint8_t symbol;
} lc_fm_step;

/* The row of the suffix one symbol longer, and this symbol. */
LC_INLINE lc_fm_step lc_fm_back(const lc_fm *fm, int64_t row) {
    int32_t node = 0;
    while (node >= 0) {
        lc_fm_bit found = lc_fm_look(fm->lines + fm->line[node], row);
        row = found.bit ? found.ones : row - found.ones;
        node = fm->tree.child[node][found.bit];
    }
    lc_fm_step step = {fm->first[~node] + row, (uint8_t)~node};
    return step;
}

/* True for rows whose position is known. Rates of writers are powers of two, for which no division is needed. */
LC_INLINE int lc_fm_is_known(const lc_fm *fm, int64_t row) {
    int64_t rate = fm->rate;
    return (rate & (rate - 1)) ? row % rate == 0 : (row & (rate - 1)) == 0;
}

/* The document at a position. */
LC_INLINE int64_t lc_fm_document(const lc_fm *fm, int64_t position) {
    const uint32_t *at = fm->starts;
    for (int64_t n = fm->documents; n > 1;) {
        int64_t half = n / 2;
        at += at[half] <= (uint64_t)position ? half : 0;
        n -= half;
    }
    return at - fm->starts;
}

LC_INLINE void lc_fm_mark(const lc_fm *fm, int64_t known, int64_t steps, int forward, uint8_t *marks) {
    int64_t position = fm->known[known] + (forward ? steps : -steps);
    position += position < 0 ? fm->size : position >= fm->size ? -fm->size : 0;
    marks[lc_fm_document(fm, position)] = 1;
}

/* Mark the document behind the separator of a row. */
LC_INLINE void lc_fm_mark_next(const lc_fm *fm, int64_t row, uint8_t *marks) {
    int64_t next = (int64_t)fm->owners[row - fm->first[LC_SEPARATOR]] + 1;
    marks[next < fm->documents ? next : fm->documents - 1] = 1;
}

/* The steps that a walk takes on average, at least about: to a known row, or to the begin of the document. */
static inline int64_t lc_fm_way(const lc_fm *fm) {
    int64_t half = fm->size / fm->documents / 2 + 1;
    return fm->owners && half < fm->rate ? half : fm->rate;
}

/* Mark the documents of rows: step from each to a known row, or to the begin of its document. Returns the first row that was not looked up, because the
 * ways are so long that a sweep takes less. */
LC_CLONES
static int64_t lc_fm_walk(const lc_fm *fm, lc_fm_rows rows, uint8_t *marks) {
    int64_t lanes[LC_FM_LANES], patience = 2 * fm->size;
    for (int64_t next = rows.start; next < rows.stop; next += LC_FM_LANES) {
        int64_t n = rows.stop - next < LC_FM_LANES ? rows.stop - next : LC_FM_LANES;
        for (int64_t i = 0; i < n; i++) lanes[i] = next + i;
        for (int64_t steps = 0; n; steps++) {
            if ((patience -= n) < 0 || steps >= fm->size) return next;
            int64_t left = 0;
            for (int64_t i = 0; i < n; i++) {
                int64_t row = lanes[i];
                if (lc_fm_is_known(fm, row)) {
                    lc_fm_mark(fm, row / fm->rate, steps, 1, marks);
                    continue;
                }
                lc_fm_step step = lc_fm_back(fm, row);
                if (step.symbol == LC_SEPARATOR && fm->owners) lc_fm_mark_next(fm, step.row, marks);
                else lanes[left++] = step.row;
            }
            n = left;
        }
    }
    return rows.stop;
}

/* Mark the documents of rows: step from each known row to the next one on its way, which passes all rows once. Returns
 * the number of rows that were found. */
LC_CLONES
static int64_t lc_fm_sweep(const lc_fm *fm, lc_fm_rows rows, uint8_t *marks) {
    int64_t lanes[LC_FM_LANES], origins[LC_FM_LANES], samples = (fm->size - 1) / fm->rate + 1, found = 0;
    for (int64_t next = 0; next < samples; next += LC_FM_LANES) {
        int64_t n = samples - next < LC_FM_LANES ? samples - next : LC_FM_LANES;
        for (int64_t i = 0; i < n; i++) origins[i] = next + i, lanes[i] = origins[i] * fm->rate;
        for (int64_t steps = 0; n; steps++) {
            int64_t left = 0;
            for (int64_t i = 0; i < n; i++) {
                int64_t row = lanes[i], origin = origins[i];
                if (row >= rows.start && row < rows.stop) lc_fm_mark(fm, origin, steps, 0, marks), found++;
                int64_t after = lc_fm_back(fm, row).row;
                if (!lc_fm_is_known(fm, after)) lanes[left] = after, origins[left++] = origin;
            }
            n = left;
        }
    }
    return found;
}

/* Write the names of the documents that rows are in, each once, in order, to room for all of them. Returns how many, or
 * minus a problem. */
static inline int64_t lc_fm_locate(const lc_fm *fm, lc_fm_rows rows, uint64_t *out) {
    if (rows.start < 0 || rows.stop > fm->size) return -LC_BAD_INDEX;
    if (rows.start >= rows.stop) return 0;
    uint8_t *marks = calloc((size_t)fm->documents, 1);
    if (!marks) return -LC_NO_MEMORY;
    int64_t found = 0;
    if (rows.stop - rows.start < fm->size / lc_fm_way(fm)) rows.start = lc_fm_walk(fm, rows, marks);
    if (rows.start < rows.stop && lc_fm_sweep(fm, rows, marks) != rows.stop - rows.start) found = -LC_BAD_INDEX;
    for (int64_t i = 0; i < fm->documents && found >= 0; i++) {
        out[found] = fm->names[i];
        found += marks[i];
    }
    free(marks);
    return found;
}

/* Write the text, whose only byte 0 is at its end. */
LC_CLONES
static int lc_fm_text(const lc_fm *fm, uint8_t *out) {
    int64_t row = 0;
    if (fm->first[1] != 1) return LC_BAD_COUNT;
    out[fm->size - 1] = 0;
    for (int64_t i = fm->size - 2; i >= 0; i--) {
        lc_fm_step step = lc_fm_back(fm, row);
        row = step.row;
        out[i] = step.symbol;
        if (row == 0) return LC_BAD_INDEX;
    }
    return lc_fm_back(fm, row).row == 0 ? LC_OK : LC_BAD_INDEX;
}

/* -- hexadecimal digits ------------------------------------------------------------------------------------------- */

LC_INLINE int lc_hex_digit(uint8_t c) {
    uint8_t low = (uint8_t)(c - '0'), letter = (uint8_t)((c | 32) - 'a');
    return low < 10 ? low : letter < 6 ? letter + 10 : -1;
}

/* Two digits for each byte, high one first. */
LC_CLONES
static int lc_hex_read(const uint8_t *digits, int64_t n, uint8_t *out) {
    int bad = 0;
    for (int64_t i = 0; i < n; i++) {
        int high = lc_hex_digit(lc_load_u8(digits + 2 * i)), low = lc_hex_digit(lc_load_u8(digits + 2 * i + 1));
        bad |= high | low;
        out[i] = (uint8_t)((unsigned)high << 4 | (unsigned)low);
    }
    return bad < 0 ? LC_BAD_CODE : LC_OK;
}

#endif
