/* Nodes of finite state transducers from byte strings to numbers, as bytes (fst format, version 3).
 *
 * A node is laid out backwards from its last byte, the state, whose position is its address. How it is encoded depends
 * on where it begins, because it stores the distances of its targets from there. */
#ifndef LANCECODEC_AUTOMATON_NODE_H
#define LANCECODEC_AUTOMATON_NODE_H

#include "chunk.h"

#define LC_FST_NEXT 0xC0
#define LC_FST_ONE 0x80
#define LC_FST_FINAL 0x40
#define LC_FST_MOST_COUNTED 63
#define LC_FST_INDEXED_FROM 33
/* Bytes of the largest node. */
#define LC_FST_MOST_BYTES (8 + 256 * 17 + 256 + 3)

static const char LC_FST_COMMON[] = "te/oasripcnw.hlm-du012g=:bf3y5&_4v9678k%?xCDASFIBEjPTzRNM+LOqHG";

typedef struct {
    uint64_t output, target;
    uint8_t input;
} lc_fst_arc;

/* A node whose arcs ascend by input; `final_output` is 0 unless it is final. */
typedef struct {
    const lc_fst_arc *arcs;
    int64_t count;
    uint64_t final_output;
    int final;
} lc_fst_node;

LC_INLINE int lc_fst_width(uint64_t v) {
    int width = 0;
    for (; v; v >>= 8) width++;
    return width;
}

LC_INLINE uint8_t *lc_fst_put(uint8_t *p, uint64_t v, int width) {
    for (int i = 0; i < width; i++, v >>= 8) *p++ = (uint8_t)v;
    return p;
}

LC_INLINE uint64_t lc_fst_distance(int64_t begin, uint64_t target) {
    return target ? (uint64_t)begin - target : 0;
}

/* The state of a node with one arc; inputs that are not common precede it. */
static uint8_t *lc_fst_put_state(uint8_t *p, int kind, uint8_t input) {
    const char *place = input ? strchr(LC_FST_COMMON, input) : NULL;
    if (!place) *p++ = input;
    *p++ = (uint8_t)(kind | (place ? (int)(place - LC_FST_COMMON) + 1 : 0));
    return p;
}

static int64_t lc_fst_encode_one(const lc_fst_arc *arc, int64_t begin, uint8_t *out) {
    uint8_t *p = out;
    if (!arc->output && arc->target && arc->target == (uint64_t)begin - 1)
        return lc_fst_put_state(p, LC_FST_NEXT, arc->input) - out;
    uint64_t distance = lc_fst_distance(begin, arc->target);
    int wide = lc_fst_width(distance), width = lc_fst_width(arc->output);
    wide += !wide;
    p = lc_fst_put(p, arc->output, width);
    p = lc_fst_put(p, distance, wide);
    *p++ = (uint8_t)(wide << 4 | width);
    return lc_fst_put_state(p, LC_FST_ONE, arc->input) - out;
}

static int64_t lc_fst_encode_any(const lc_fst_node *node, int64_t begin, uint8_t *out) {
    uint64_t outputs = node->final_output, distances = 0;
    int64_t n = node->count;
    for (int64_t i = 0; i < n; i++) {
        uint64_t distance = lc_fst_distance(begin, node->arcs[i].target);
        outputs = outputs > node->arcs[i].output ? outputs : node->arcs[i].output;
        distances = distances > distance ? distances : distance;
    }
    int width = lc_fst_width(outputs), wide = lc_fst_width(distances);
    wide += !wide && n;
    uint8_t *p = out;
    if (width && node->final) p = lc_fst_put(p, node->final_output, width);
    for (int64_t i = n; i-- > 0 && width;) p = lc_fst_put(p, node->arcs[i].output, width);
    for (int64_t i = n; i-- > 0;) p = lc_fst_put(p, lc_fst_distance(begin, node->arcs[i].target), wide);
    for (int64_t i = n; i-- > 0;) *p++ = node->arcs[i].input;
    if (n >= LC_FST_INDEXED_FROM) {
        memset(p, 0xFF, 256);
        for (int64_t i = 0; i < n; i++) p[node->arcs[i].input] = (uint8_t)i;
        p += 256;
    }
    *p++ = (uint8_t)(wide << 4 | width);
    if (n > LC_FST_MOST_COUNTED || !n) *p++ = (uint8_t)(n == 256 ? 1 : n);
    *p++ = (uint8_t)((node->final ? LC_FST_FINAL : 0) | (n <= LC_FST_MOST_COUNTED ? (int)n : 0));
    return p - out;
}

/* Encode a node that begins at `begin`; returns its bytes. */
static int64_t lc_fst_encode(const lc_fst_node *node, int64_t begin, uint8_t *out) {
    if (!node->final && node->count == 1) return lc_fst_encode_one(node->arcs, begin, out);
    return lc_fst_encode_any(node, begin, out);
}

static uint64_t lc_fst_mix(uint64_t hash, uint64_t v) {
    hash = (hash ^ v) * 0x9E3779B97F4A7C15ULL;
    return hash ^ (hash >> 29);
}

static uint64_t lc_fst_hash(const lc_fst_node *node) {
    uint64_t hash = lc_fst_mix((uint64_t)node->final, node->final_output);
    for (int64_t i = 0; i < node->count; i++) {
        hash = lc_fst_mix(hash, node->arcs[i].target << 8 | node->arcs[i].input);
        if (node->arcs[i].output) hash = lc_fst_mix(hash, node->arcs[i].output);
    }
    return lc_fst_mix(hash, (uint64_t)node->count);
}

#endif
