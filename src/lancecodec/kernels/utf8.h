/* UTF-8 validation (Unicode 15, table 3-7). */
#ifndef LANCECODEC_UTF8_H
#define LANCECODEC_UTF8_H

#include "portable.h"

#define LC_UTF8_BLOCK 4096

LC_CLONES static inline int lc_is_ascii(const uint8_t *LC_RESTRICT p, int64_t n) {
    uint8_t any = 0;
    for (int64_t i = 0; i < n; i++) any |= p[i];
    return any < 0x80;
}

/* Size of the valid character at p, or 0; n > 0 bytes are left. */
static inline int lc_utf8_character(const uint8_t *p, int64_t n) {
    uint8_t lead = p[0], low = 0x80, high = 0xBF;
    int size;
    if (lead < 0x80) return 1;
    if (lead >= 0xC2 && lead <= 0xDF) size = 2;
    else if (lead >= 0xE0 && lead <= 0xEF) {
        size = 3;
        if (lead == 0xE0) low = 0xA0;
        if (lead == 0xED) high = 0x9F;
    } else if (lead >= 0xF0 && lead <= 0xF4) {
        size = 4;
        if (lead == 0xF0) low = 0x90;
        if (lead == 0xF4) high = 0x8F;
    } else return 0;
    if (n < size || p[1] < low || p[1] > high) return 0;
    for (int k = 2; k < size; k++)
        if ((p[k] & 0xC0) != 0x80) return 0;
    return size;
}

/* The same rules as an automaton without branches: a table entry holds, for one input byte, the next state of every
 * state in a field of six bits, and a state is the position of its field. All fields not set lead to REJECT, which is 0. */
enum {
    LC_REJECT = 0, LC_ACCEPT = 6, LC_TAIL1 = 12, LC_TAIL2 = 18, LC_TAIL3 = 24,
    LC_AFTER_E0 = 30, LC_AFTER_ED = 36, LC_AFTER_F0 = 42, LC_AFTER_F4 = 48
};

static inline uint64_t lc_utf8_row(int byte) {
    uint64_t start = LC_REJECT, row = 0;
    if (byte < 0x80) start = LC_ACCEPT;
    else if (byte >= 0xC2 && byte <= 0xDF) start = LC_TAIL1;
    else if (byte == 0xE0) start = LC_AFTER_E0;
    else if (byte == 0xED) start = LC_AFTER_ED;
    else if (byte >= 0xE1 && byte <= 0xEF) start = LC_TAIL2;
    else if (byte == 0xF0) start = LC_AFTER_F0;
    else if (byte == 0xF4) start = LC_AFTER_F4;
    else if (byte >= 0xF1 && byte <= 0xF3) start = LC_TAIL3;
    row |= start << LC_ACCEPT;
    if (byte < 0x80 || byte > 0xBF) return row;
    row |= (uint64_t)LC_ACCEPT << LC_TAIL1 | (uint64_t)LC_TAIL1 << LC_TAIL2 | (uint64_t)LC_TAIL2 << LC_TAIL3;
    row |= byte >= 0xA0 ? (uint64_t)LC_TAIL1 << LC_AFTER_E0 : (uint64_t)LC_TAIL1 << LC_AFTER_ED;
    row |= byte >= 0x90 ? (uint64_t)LC_TAIL2 << LC_AFTER_F0 : (uint64_t)LC_TAIL2 << LC_AFTER_F4;
    return row;
}

static inline void lc_utf8_fill(uint64_t *table) {
    for (int byte = 0; byte < 256; byte++) table[byte] = lc_utf8_row(byte);
}

/* Run the automaton over n bytes; ASCII between characters is skipped in larger steps. */
LC_CLONES static inline uint64_t lc_utf8_run(const uint64_t *LC_RESTRICT table, const uint8_t *LC_RESTRICT p,
                                             int64_t n, uint64_t state) {
    int64_t i = 0;
    for (; i + 32 <= n; i += 32) {
        uint64_t any = lc_load_u64(p + i) | lc_load_u64(p + i + 8) | lc_load_u64(p + i + 16) | lc_load_u64(p + i + 24);
        if (state == LC_ACCEPT && !(any & 0x8080808080808080ULL)) continue;
        for (int64_t k = i; k < i + 32; k++) state = table[p[k]] >> (state & 63);
        state &= 63;
    }
    for (; i < n; i++) state = table[p[i]] >> (state & 63);
    return state & 63;
}

/* Position of the first invalid byte among n > 0 bytes of which the last `size` are not valid, in the last block or in a
 * character that began up to three bytes before it. */
static inline int64_t lc_utf8_position(const uint8_t *p, int64_t n, int64_t size) {
    int64_t at = n - size;
    if (at > 0) {
        int64_t block = at;
        at = at > 3 ? at - 3 : 0;
        while (at < block && (p[at] & 0xC0) == 0x80) at++;
    }
    while (at < n) {
        int length = lc_utf8_character(p + at, n - at);
        if (length == 0) return at;
        at += length;
    }
    return n;
}

/* Position of the first invalid byte, or -1. The table is that of lc_utf8_fill. */
static inline int64_t lc_utf8_find_invalid(const uint64_t *table, const uint8_t *p, int64_t n) {
    uint64_t state = LC_ACCEPT;
    int64_t at = 0, size = 0;
    for (; at < n && state != LC_REJECT; at += size) {
        size = n - at < LC_UTF8_BLOCK ? n - at : LC_UTF8_BLOCK;
        if (state != LC_ACCEPT || !lc_is_ascii(p + at, size)) state = lc_utf8_run(table, p + at, size, state);
    }
    return state == LC_ACCEPT ? -1 : lc_utf8_position(p, at, size);
}

/* The same for a copy that is made block by block and looked at while it is in the cache: the source may change. The
 * copy ends with an invalid block. */
static inline int64_t lc_utf8_copy(const uint64_t *table, const uint8_t *src, int64_t n, uint8_t *out) {
    uint64_t state = LC_ACCEPT;
    int64_t at = 0, size = 0;
    for (; at < n && state != LC_REJECT; at += size) {
        size = n - at < LC_UTF8_BLOCK ? n - at : LC_UTF8_BLOCK;
        memcpy(out + at, src + at, (size_t)size);
        LC_SETTLE(out);
        if (state != LC_ACCEPT || !lc_is_ascii(out + at, size)) state = lc_utf8_run(table, out + at, size, state);
    }
    return state == LC_ACCEPT ? -1 : lc_utf8_position(out, at, size);
}

#endif
