/* A set of tokens that grows: every distinct byte string has a code, in order of first appearance.
 *
 * Open addressing with linear probing. A slot holds a token of up to 8 bytes as a word, a longer one as its hash. The
 * bytes of all tokens follow each other in one block of memory. A candidate is written behind the last token, looked up
 * there, and stays there if it is new: so what is compared is a copy that nobody else can change. */
#ifndef LANCECODEC_TOKEN_TABLE_H
#define LANCECODEC_TOKEN_TABLE_H

#include <stdlib.h>

#include "chunk.h"
#include "hash.h"

#define LC_TOKENS_FIRST_SLOTS 4096
#define LC_TOKENS_FIRST_BYTES 65536
/* Bytes behind the last token that may be read. */
#define LC_TOKENS_SLACK 16
#define LC_TOKENS_MAX ((int64_t)1 << 30)

/* `mark` is the code plus 1; 0 = free. */
typedef struct {
    uint64_t key;
    uint32_t length, mark;
} lc_token_slot;

typedef struct {
    lc_token_slot *slots;
    uint64_t mask;
    uint8_t *bytes;
    int64_t *ends; /* where each token ends */
    int64_t count, size, room, ends_room;
    lc_secret secret;
} lc_token_table;

static inline void lc_tokens_close(lc_token_table *t) {
    free(t->slots);
    free(t->bytes);
    free(t->ends);
    t->slots = NULL, t->bytes = NULL, t->ends = NULL;
}

static inline int lc_tokens_open(lc_token_table *t, lc_secret secret) {
    memset(t, 0, sizeof *t);
    t->secret = secret;
    t->secret.b |= 1;
    t->mask = LC_TOKENS_FIRST_SLOTS - 1;
    t->room = LC_TOKENS_FIRST_BYTES;
    t->ends_room = LC_TOKENS_FIRST_SLOTS / 2;
    t->slots = (lc_token_slot *)calloc(LC_TOKENS_FIRST_SLOTS, sizeof(lc_token_slot));
    t->bytes = (uint8_t *)calloc((size_t)t->room, 1);
    t->ends = (int64_t *)calloc((size_t)t->ends_room, sizeof(int64_t));
    return t->slots && t->bytes && t->ends ? LC_OK : LC_NO_MEMORY;
}

/* Bytes of memory. */
static inline int64_t lc_tokens_memory(const lc_token_table *t) {
    return t->room + t->ends_room * 8 + ((int64_t)t->mask + 1) * (int64_t)sizeof(lc_token_slot);
}

/* Make room for a candidate of `length` bytes behind the last token. */
static inline int lc_tokens_reserve(lc_token_table *t, int64_t length) {
    int64_t needed = t->size + length + LC_TOKENS_SLACK;
    if (needed <= t->room) return LC_OK;
    int64_t room = needed + needed / 2;
    uint8_t *bytes = (uint8_t *)realloc(t->bytes, (size_t)room);
    if (!bytes) return LC_NO_MEMORY;
    memset(bytes + t->room, 0, (size_t)(room - t->room));
    t->bytes = bytes, t->room = room;
    return LC_OK;
}

LC_INLINE int64_t lc_token_begin(const lc_token_table *t, int64_t code) { return code ? t->ends[code - 1] : 0; }

LC_INLINE uint64_t lc_token_key(const lc_token_table *t, const uint8_t *p, int64_t length) {
    if (length <= 8) return lc_load_u64(p) & LC_BYTES_MASK[length];
    if (length <= 16)
        return lc_hash_pair(t->secret, lc_load_u64(p) ^ (uint64_t)length, lc_load_u64(p + 8) & LC_BYTES_MASK[length - 8]);
    return lc_hash_bytes(t->secret, p, length);
}

LC_INLINE uint64_t lc_token_home(const lc_token_table *t, uint64_t key, uint64_t mask) {
    return lc_hash_word(t->secret, key) & mask;
}

static int lc_tokens_grow(lc_token_table *t) {
    uint64_t slots = t->mask + 1, mask = slots * 2 - 1;
    lc_token_slot *fresh = (lc_token_slot *)calloc((size_t)slots * 2, sizeof *fresh);
    int64_t *ends = fresh ? (int64_t *)realloc(t->ends, (size_t)slots * sizeof *ends) : NULL;
    if (!ends) {
        free(fresh);
        return LC_NO_MEMORY;
    }
    for (uint64_t i = 0; i < slots; i++) {
        if (!t->slots[i].mark) continue;
        uint64_t at = lc_token_home(t, t->slots[i].key, mask);
        while (fresh[at].mark) at = (at + 1) & mask;
        fresh[at] = t->slots[i];
    }
    free(t->slots);
    t->slots = fresh, t->mask = mask, t->ends = ends, t->ends_room = (int64_t)slots;
    return LC_OK;
}

/* Store the code of the candidate, the `length` reserved bytes behind the last token. */
LC_INLINE int lc_tokens_code(lc_token_table *t, int64_t length, int32_t *code) {
    const uint8_t *p = t->bytes + t->size;
    uint64_t key = lc_token_key(t, p, length);
    uint64_t at = lc_token_home(t, key, t->mask);
    for (; t->slots[at].mark; at = (at + 1) & t->mask) {
        lc_token_slot slot = t->slots[at];
        if (slot.key != key || slot.length != (uint32_t)length) continue;
        if (length > 8 && memcmp(t->bytes + lc_token_begin(t, slot.mark - 1), p, (size_t)length)) continue;
        *code = (int32_t)(slot.mark - 1);
        return LC_OK;
    }
    if (t->count >= LC_TOKENS_MAX || length >= UINT32_MAX) return LC_NO_SPACE;
    lc_token_slot made = {key, (uint32_t)length, (uint32_t)t->count + 1};
    t->slots[at] = made;
    t->size += length;
    t->ends[t->count] = t->size;
    *code = (int32_t)t->count++;
    return 2 * (uint64_t)t->count > t->mask ? lc_tokens_grow(t) : LC_OK;
}

#endif
