/* Levels of a page: begins of rows and chunks, the repetition index, and the control words of full-zip pages. */
#ifndef LANCECODEC_LEVELS_PAGES_H
#define LANCECODEC_LEVELS_PAGES_H

#include "chunk.h"
#include "levels_mask.h"

/* Write the positions of the entries with level `level`; `out` has room for all of them. Returns their number. */
LC_CLONES static inline int64_t lc_levels_positions(const uint8_t *levels, int64_t n, uint16_t level, int64_t *out) {
    uint8_t scratch[128];
    int64_t count = 0;
    for (int64_t i = 0; i < n; i += 64) {
        int64_t live = n - i < 64 ? n - i : 64;
        uint64_t mask = lc_mask_between(lc_levels_block(levels, i, live, scratch), level, level) & lc_low_mask(live);
        if (mask == ~0ULL) {
            for (int64_t k = 0; k < 64; k++) out[count + k] = i + k;
            count += 64;
        } else {
            for (; mask; mask &= mask - 1) out[count++] = i + lc_ctz64(mask);
        }
    }
    return count;
}

/* End entry of each chunk: directly behind its last visible entry, except that the last chunk takes all remaining
 * entries. Returns LC_BAD_COUNT unless every chunk has a value and the counts match the page. */
static inline int lc_levels_cut(const uint8_t *def, int64_t n, uint16_t max_visible_def, const int64_t *counts,
                                int64_t chunks, int64_t *ends) {
    int64_t at = 0, left = lc_levels_count_le(def, n, max_visible_def);
    for (int64_t c = 0; c < chunks; c++) {
        if (counts[c] < 1 || counts[c] > left) return LC_BAD_COUNT;
        left -= counts[c];
        at = def ? lc_levels_find(def, n, at, 0, max_visible_def, counts[c] - 1) + 1 : at + counts[c];
        ends[c] = at;
    }
    if (left) return LC_BAD_COUNT;
    if (chunks) ends[chunks - 1] = n;
    return chunks || n == 0 ? LC_OK : LC_BAD_COUNT;
}

/* Two 64-bit words per chunk: rows that end in it, and entries of an unfinished row. `ends` is checked here. */
static inline int lc_repetition_index(const uint8_t *rep, int64_t n, uint16_t max_rep, const int64_t *ends,
                                      int64_t chunks, uint8_t *out) {
    int64_t start = 0;
    for (int64_t c = 0; c < chunks; c++) {
        int64_t stop = ends[c], last;
        if (stop <= start || stop > n || (c == chunks - 1 && stop != n)) return LC_BAD_COUNT;
        int whole = stop == n || lc_level(rep, stop) == max_rep;
        int64_t first_ends = lc_level(rep, start) == max_rep; /* that row end belongs to the previous chunk */
        int64_t rows = lc_levels_count_between(rep + 2 * start, stop - start, max_rep, max_rep) - first_ends + whole;
        for (last = stop - 1; last > start && lc_level(rep, last) != max_rep;) last--;
        lc_store_u64(out + 16 * c, (uint64_t)rows);
        lc_store_u64(out + 16 * c + 8, whole ? 0 : (uint64_t)(stop - last));
        start = stop;
    }
    return LC_OK;
}

/* Control words of `width` bytes, (rep << bits_def) | def. */
LC_INLINE void lc_control_pack_body(const uint8_t *rep, const uint8_t *def, int64_t n, int bits_def, int width,
                                    uint8_t *out) {
    for (int64_t i = 0; i < n; i++) {
        uint32_t word = (rep ? (uint32_t)lc_level(rep, i) << bits_def : 0) | (def ? lc_level(def, i) : 0u);
        if (width == 1) out[i] = (uint8_t)word;
        else if (width == 2) lc_store_u16(out + 2 * i, (uint16_t)word);
        else lc_store_u32(out + 4 * i, word);
    }
}

LC_INLINE uint32_t lc_control_word(const uint8_t *words, int width, int64_t i) {
    if (width == 1) return words[i];
    return width == 2 ? lc_load_u16(words + 2 * i) : lc_load_u32(words + 4 * i);
}

LC_INLINE void lc_control_unpack_body(const uint8_t *words, int64_t n, int bits_rep, int bits_def, int width,
                                      uint8_t *rep, uint8_t *def) {
    uint32_t rep_mask = (1u << bits_rep) - 1, def_mask = (1u << bits_def) - 1;
    if (rep)
        for (int64_t i = 0; i < n; i++)
            lc_store_u16(rep + 2 * i, (uint16_t)(lc_control_word(words, width, i) >> bits_def & rep_mask));
    if (def)
        for (int64_t i = 0; i < n; i++)
            lc_store_u16(def + 2 * i, (uint16_t)(lc_control_word(words, width, i) & def_mask));
}

#define LC_CONTROL(WIDTH)                                                                                       \
    LC_CLONES static inline void lc_control_pack##WIDTH(const uint8_t *LC_RESTRICT rep,                         \
                                                        const uint8_t *LC_RESTRICT def, int64_t n,              \
                                                        int bits_def, uint8_t *LC_RESTRICT out) {               \
        if (rep && def) lc_control_pack_body(rep, def, n, bits_def, WIDTH, out);                                \
        else if (rep) lc_control_pack_body(rep, NULL, n, bits_def, WIDTH, out);                                 \
        else lc_control_pack_body(NULL, def, n, 0, WIDTH, out);                                                 \
    }                                                                                                           \
    LC_CLONES static inline void lc_control_unpack##WIDTH(const uint8_t *LC_RESTRICT words, int64_t n,          \
                                                          int bits_rep, int bits_def,                           \
                                                          uint8_t *LC_RESTRICT rep, uint8_t *LC_RESTRICT def) { \
        lc_control_unpack_body(words, n, bits_rep, bits_def, WIDTH, rep, def);                                  \
    }
LC_CONTROL(1)
LC_CONTROL(2)
LC_CONTROL(4)

/* 0 (no words), 1, 2 or 4; -1 if control words cannot hold the levels. Each part has at most the 16 bits of a level. */
static inline int lc_control_width(int64_t bits_rep, int64_t bits_def) {
    if (bits_rep < 0 || bits_def < 0 || bits_rep > 16 || bits_def > 16) return -1;
    int64_t bits = bits_rep + bits_def;
    return bits == 0 ? 0 : bits <= 8 ? 1 : bits <= 16 ? 2 : 4;
}

static inline int lc_control_pack(const uint8_t *rep, const uint8_t *def, int64_t n, int64_t bits_rep, int64_t bits_def,
                                  uint8_t *out) {
    if (lc_levels_max(rep, n) >> bits_rep || lc_levels_max(def, n) >> bits_def) return LC_BAD_LEVEL;
    int width = lc_control_width(bits_rep, bits_def);
    if (width == 1) lc_control_pack1(rep, def, n, (int)bits_def, out);
    if (width == 2) lc_control_pack2(rep, def, n, (int)bits_def, out);
    if (width == 4) lc_control_pack4(rep, def, n, (int)bits_def, out);
    return LC_OK;
}

static inline void lc_control_unpack(const uint8_t *words, int64_t n, int64_t bits_rep, int64_t bits_def, uint8_t *rep,
                                     uint8_t *def) {
    int width = lc_control_width(bits_rep, bits_def);
    if (width == 0 && rep && n) memset(rep, 0, (size_t)(2 * n));
    if (width == 0 && def && n) memset(def, 0, (size_t)(2 * n));
    if (width == 1) lc_control_unpack1(words, n, (int)bits_rep, (int)bits_def, rep, def);
    if (width == 2) lc_control_unpack2(words, n, (int)bits_rep, (int)bits_def, rep, def);
    if (width == 4) lc_control_unpack4(words, n, (int)bits_rep, (int)bits_def, rep, def);
}

#endif
