/* Building finite state transducers from ordered keys with numbers; equal suffixes are stored once.
 *
 * The algorithm is that of Daciuk, Mihov, Watson and Watson ("Incremental construction of minimal acyclic finite-state
 * automata", 2000), with outputs moved to the front as in Mihov and Maurel ("Direct construction of minimal acyclic
 * subsequential transducers", 2001). Nodes on the way of the last key are open; their arcs lie on one stack. */
#ifndef LANCECODEC_AUTOMATON_H
#define LANCECODEC_AUTOMATON_H

#include <stdlib.h>

#include "automaton_node.h"
#include "crc32c.h"

#define LC_FST_FIRST_SLOTS 1024
/* Nodes that are remembered for reuse; all are forgotten when there are more. */
#define LC_FST_MOST_KNOWN (1 << 18)
#define LC_FST_HEAD 16
#define LC_FST_TAIL 20

/* `last` is the input of the arc that may still change, -1 if there is none. */
typedef struct {
    int64_t first;
    uint64_t final_output, last_output;
    int final, last;
} lc_fst_open;

/* A stored node; size 0 = free. */
typedef struct {
    int64_t begin;
    uint32_t size, tag;
} lc_fst_slot;

typedef struct {
    uint8_t *data;
    lc_fst_arc *arcs;
    lc_fst_open *way;
    lc_fst_slot *slots;
    int64_t size, room, num_arcs, arcs_room, depth, way_room, mask, known;
} lc_fst;

static void lc_fst_close(lc_fst *f) {
    free(f->data), free(f->arcs), free(f->way), free(f->slots);
    memset(f, 0, sizeof *f);
}

/* Enlarge memory to at least `needed` items of `item` bytes. */
static int lc_fst_grow(void **memory, int64_t *room, int64_t needed, size_t item) {
    if (needed <= *room) return LC_OK;
    int64_t larger = needed + needed / 2 + 64;
    void *moved = realloc(*memory, (size_t)larger * item);
    if (!moved) return LC_NO_MEMORY;
    *memory = moved, *room = larger;
    return LC_OK;
}

static int lc_fst_begin(lc_fst *f) {
    memset(f, 0, sizeof *f);
    f->mask = LC_FST_FIRST_SLOTS - 1;
    f->slots = (lc_fst_slot *)calloc(LC_FST_FIRST_SLOTS, sizeof(lc_fst_slot));
    if (!f->slots || lc_fst_grow((void **)&f->data, &f->room, 1 << 12, 1) ||
        lc_fst_grow((void **)&f->way, &f->way_room, 64, sizeof(lc_fst_open)) ||
        lc_fst_grow((void **)&f->arcs, &f->arcs_room, 64, sizeof(lc_fst_arc)))
        return LC_NO_MEMORY;
    lc_store_u64(f->data, 3), lc_store_u64(f->data + 8, 0);
    f->size = LC_FST_HEAD;
    f->way[0] = (lc_fst_open){0, 0, 0, 0, -1};
    f->depth = 1;
    return LC_OK;
}

/* Make room for one more known node. */
static int lc_fst_remember(lc_fst *f) {
    if (f->known >= LC_FST_MOST_KNOWN) {
        memset(f->slots, 0, (size_t)(f->mask + 1) * sizeof(lc_fst_slot));
        f->known = 0;
    }
    if (2 * (f->known + 1) <= f->mask) return LC_OK;
    int64_t mask = 2 * f->mask + 1;
    lc_fst_slot *slots = (lc_fst_slot *)calloc((size_t)mask + 1, sizeof(lc_fst_slot));
    if (!slots) return LC_NO_MEMORY;
    for (int64_t i = 0; i <= f->mask; i++) {
        if (!f->slots[i].size) continue;
        int64_t at = f->slots[i].tag & mask;
        while (slots[at].size) at = (at + 1) & mask;
        slots[at] = f->slots[i];
    }
    free(f->slots);
    f->slots = slots, f->mask = mask;
    return LC_OK;
}

/* Find or store a node; `address` is where its last byte is. */
static int lc_fst_add(lc_fst *f, const lc_fst_node *node, uint64_t *address) {
    uint8_t trial[LC_FST_MOST_BYTES];
    *address = 0;
    if (node->final && !node->count && !node->final_output) return LC_OK;
    if (lc_fst_remember(f) || lc_fst_grow((void **)&f->data, &f->room, f->size + LC_FST_MOST_BYTES, 1))
        return LC_NO_MEMORY;
    uint32_t tag = (uint32_t)(lc_fst_hash(node) >> 16);
    int64_t at = tag & f->mask;
    for (; f->slots[at].size; at = (at + 1) & f->mask) {
        lc_fst_slot slot = f->slots[at];
        if (slot.tag != tag) continue;
        *address = (uint64_t)slot.begin + slot.size - 1;
        int64_t size = lc_fst_encode(node, slot.begin, trial);
        if (size == slot.size && !memcmp(trial, f->data + slot.begin, (size_t)size)) return LC_OK;
    }
    int64_t size = lc_fst_encode(node, f->size, f->data + f->size);
    f->slots[at] = (lc_fst_slot){f->size, (uint32_t)size, tag};
    f->known++;
    f->size += size;
    *address = (uint64_t)f->size - 1;
    return LC_OK;
}

/* Store the deepest open node. */
static int lc_fst_pop(lc_fst *f, uint64_t *address) {
    lc_fst_open top = f->way[--f->depth];
    lc_fst_node node = {f->arcs + top.first, f->num_arcs - top.first, top.final_output, top.final};
    f->num_arcs = top.first;
    return lc_fst_add(f, &node, address);
}

/* Store the open nodes below a level, the deepest first. */
static int lc_fst_freeze(lc_fst *f, int64_t level) {
    while (f->depth > level + 1) {
        uint64_t address;
        int problem = lc_fst_pop(f, &address);
        if (problem || lc_fst_grow((void **)&f->arcs, &f->arcs_room, f->num_arcs + 1, sizeof(lc_fst_arc)))
            return LC_NO_MEMORY;
        lc_fst_open *above = &f->way[f->depth - 1];
        f->arcs[f->num_arcs++] = (lc_fst_arc){above->last_output, address, (uint8_t)above->last};
        above->last = -1;
    }
    return LC_OK;
}

/* Add an output to all outputs of an open node. */
static void lc_fst_push(lc_fst *f, int64_t level, uint64_t output) {
    lc_fst_open *node = &f->way[level];
    int64_t end = level + 1 < f->depth ? f->way[level + 1].first : f->num_arcs;
    if (node->final) node->final_output += output;
    for (int64_t i = node->first; i < end; i++) f->arcs[i].output += output;
    node->last_output += output;
}

/* Add a key that shares `common` bytes with the last one, and is greater. */
static int lc_fst_key(lc_fst *f, const uint8_t *key, int64_t length, int64_t common, uint64_t number) {
    for (int64_t level = 0; level < common; level++) {
        lc_fst_open *node = &f->way[level];
        if (node->last_output > number) {
            lc_fst_push(f, level + 1, node->last_output - number);
            node->last_output = number;
        }
        number -= node->last_output;
    }
    if (lc_fst_freeze(f, common) || lc_fst_grow((void **)&f->way, &f->way_room, length + 1, sizeof(lc_fst_open)))
        return LC_NO_MEMORY;
    for (int64_t level = common; level < length; level++) {
        f->way[level].last = key[level];
        f->way[level].last_output = level == common ? number : 0;
        f->way[level + 1] = (lc_fst_open){f->num_arcs, 0, 0, 0, -1};
    }
    f->depth = length + 1;
    f->way[length].final = 1;
    if (common == length) f->way[length].final_output = number;
    return LC_OK;
}

static int64_t lc_fst_shared(const uint8_t *left, int64_t left_size, const uint8_t *right, int64_t right_size) {
    int64_t most = left_size < right_size ? left_size : right_size, n = 0;
    while (n < most && left[n] == right[n]) n++;
    return n;
}

/* Store all nodes and the tail, after the last of `count` keys. */
static int lc_fst_end(lc_fst *f, int64_t count) {
    lc_crc32c_tables tables;
    uint64_t root;
    if (lc_fst_freeze(f, 0) || lc_fst_pop(f, &root)) return LC_NO_MEMORY;
    if (lc_fst_grow((void **)&f->data, &f->room, f->size + LC_FST_TAIL, 1)) return LC_NO_MEMORY;
    lc_store_u64(f->data + f->size, (uint64_t)count), lc_store_u64(f->data + f->size + 8, root);
    f->size += 16;
    lc_crc32c_fill(&tables);
    uint32_t sum = lc_crc32c(&tables, (lc_bytes){f->data, f->size});
    lc_store_u32(f->data + f->size, ((sum >> 15) | (sum << 17)) + 0xA282EAD8u);
    f->size += 4;
    return LC_OK;
}

/* Encode n ascending keys with numbers. */
static int lc_fst_build(lc_fst *f, lc_bytes keys, const uint8_t *offsets, const uint8_t *numbers, int64_t n) {
    int64_t begin = (int64_t)lc_once_u64(offsets), before = begin;
    if (begin < 0 || begin > keys.size) return LC_BAD_OFFSETS;
    for (int64_t i = 0; i < n; i++) {
        int64_t end = (int64_t)lc_once_u64(offsets + 8 * (i + 1));
        if (end < begin || end > keys.size) return LC_BAD_OFFSETS;
        const uint8_t *key = keys.data + begin, *last = keys.data + before;
        int64_t common = i ? lc_fst_shared(last, begin - before, key, end - begin) : 0;
        if (common >= f->depth) return LC_BAD_OFFSETS; /* the keys changed meanwhile */
        int ended = common == begin - before;
        if (i && (common == end - begin || (!ended && key[common] < last[common]))) return LC_BAD_INDEX;
        int problem = lc_fst_key(f, key, end - begin, common, lc_load_u64(numbers + 8 * i));
        if (problem) return problem;
        before = begin, begin = end;
    }
    return lc_fst_end(f, n);
}

#endif
