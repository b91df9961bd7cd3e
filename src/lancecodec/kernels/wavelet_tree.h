/* Wavelet trees in the shape of a Huffman code (Grossi, Gupta and Vitter, 2003).
 *
 * A node has a bit for each symbol of the text below it, in the order of the text: 0 if the symbol is below the left
 * child, 1 if below the right one. A leaf is a symbol. Nodes are numbered from the root on, parents before children.
 * In bytes, a tree is the number of nodes (u32), then for each node the left and the right child: u8 kind (0 node,
 * 1 leaf) and u32 number of the node or symbol. */
#ifndef LANCECODEC_WAVELET_TREE_H
#define LANCECODEC_WAVELET_TREE_H

#include <stdlib.h>

#include "chunk.h"

enum { LC_TREE_NODES = 255, LC_TREE_BYTES = 4 + 10 * LC_TREE_NODES, LC_CODE_BITS = 32 };

typedef struct {
    int32_t count;
    int32_t child[LC_TREE_NODES][2]; /* number of the node, or complement of the symbol */
} lc_tree;

/* Paths of all symbols, from the root on: those of symbol c are the steps from at[c] up to at[c + 1], none if it does not
 * occur. A step is twice the number of the node, plus the bit. */
typedef struct {
    int32_t at[257];
    uint16_t *steps;
} lc_tree_paths;

/* -- Huffman codes ------------------------------------------------------------------------------------------------ */

/* Join the two least frequent parts until one is left. Parts are numbered: symbols, then nodes as they are made. Returns
 * the number of nodes. */
static inline int32_t lc_huffman_join(const int64_t *weights, int32_t pairs[][2]) {
    int64_t left[2 * 256];
    int32_t parts[256], n = 0, made = 0;
    for (int32_t c = 0; c < 256; c++) {
        left[c] = weights[c];
        if (weights[c]) parts[n++] = c;
    }
    while (n > 1) {
        for (int k = 0; k < 2; k++) { /* the least two go to the end */
            int32_t least = 0, end = n - 1 - k;
            for (int32_t i = 1; i <= end; i++)
                if (left[parts[i]] < left[parts[least]]) least = i;
            int32_t part = parts[least];
            parts[least] = parts[end];
            parts[end] = pairs[made][k] = part;
        }
        left[256 + made] = left[pairs[made][0]] + left[pairs[made][1]];
        n--;
        parts[n - 1] = 256 + made++;
    }
    return made;
}

/* Number the nodes in preorder; returns the length of the longest path. */
static inline int32_t lc_huffman_number(const int32_t pairs[][2], int32_t made, lc_tree *tree) {
    int32_t part[LC_TREE_NODES], depth[LC_TREE_NODES], parent[LC_TREE_NODES], side[LC_TREE_NODES], n = 0, longest = 0;
    tree->count = 0;
    if (made) part[0] = 255 + made, depth[0] = 1, parent[0] = -1, side[0] = 0, n = 1;
    while (n) {
        int32_t top = --n, number = tree->count++, pair = part[top] - 256, level = depth[top];
        if (parent[top] >= 0) tree->child[parent[top]][side[top]] = number;
        if (level > longest) longest = level;
        for (int k = 1; k >= 0; k--) {
            int32_t below = pairs[pair][k];
            if (below < 256) tree->child[number][k] = ~below;
            else part[n] = below, depth[n] = level + 1, parent[n] = number, side[n] = k, n++;
        }
    }
    return longest;
}

/* The tree of a Huffman code for symbols by their counts, with no path above 32 bits. */
static inline void lc_tree_build(const int64_t *counts, lc_tree *tree) {
    int64_t weights[256];
    int32_t pairs[256][2];
    memcpy(weights, counts, sizeof weights);
    while (lc_huffman_number(pairs, lc_huffman_join(weights, pairs), tree) > LC_CODE_BITS)
        for (int32_t c = 0; c < 256; c++) weights[c] = (weights[c] + 1) / 2; /* ends with a balanced tree */
}

/* -- bytes -------------------------------------------------------------------------------------------------------- */

/* Write a tree into LC_TREE_BYTES at most; returns the number of bytes. */
static inline int64_t lc_tree_write(const lc_tree *tree, uint8_t *out) {
    lc_store_u32(out, (uint32_t)tree->count);
    for (int32_t k = 0; k < 2 * tree->count; k++) {
        int32_t child = tree->child[k / 2][k % 2];
        out[4 + 5 * k] = child < 0;
        lc_store_u32(out + 5 + 5 * k, (uint32_t)(child < 0 ? ~child : child));
    }
    return 4 + 10 * (int64_t)tree->count;
}

/* Read a tree. All nodes but the root are the child of one node before them, and no symbol occurs twice. */
static inline int lc_tree_read(lc_bytes in, lc_tree *tree) {
    uint8_t seen[2][256] = {{1}};
    if (in.size < 4) return LC_BAD_SIZE;
    uint32_t count = lc_once_u32(in.data);
    if (count > LC_TREE_NODES || in.size != 4 + 10 * (int64_t)count) return LC_BAD_SIZE;
    tree->count = (int32_t)count;
    for (uint32_t k = 0; k < 2 * count; k++) {
        uint8_t kind = lc_once_u8(in.data + 4 + 5 * k);
        uint32_t number = lc_once_u32(in.data + 5 + 5 * k);
        if (kind > 1 || number > 255 || seen[kind][number]++) return LC_BAD_HEADER;
        if (kind == 0 && (number >= count || number <= k / 2)) return LC_BAD_HEADER;
        tree->child[k / 2][k % 2] = kind ? ~(int32_t)number : (int32_t)number;
    }
    for (uint32_t k = 0; k < count; k++)
        if (!seen[0][k]) return LC_BAD_HEADER;
    return LC_OK;
}

/* -- paths -------------------------------------------------------------------------------------------------------- */

/* Note the number of steps of each path, and how each node is reached; the root by no step. */
static inline void lc_tree_lengths(const lc_tree *tree, int32_t *lengths, uint16_t *reached, uint8_t *depth) {
    memset(lengths, 0, 256 * sizeof *lengths);
    depth[0] = 0;
    for (int32_t k = 0; k < 2 * tree->count; k++) {
        int32_t child = tree->child[k / 2][k % 2];
        if (child < 0) lengths[~child] = depth[k / 2] + 1;
        else depth[child] = (uint8_t)(depth[k / 2] + 1), reached[child] = (uint16_t)k;
    }
}

/* Find the paths of all symbols; the steps are allocated. */
static inline int lc_tree_trace(const lc_tree *tree, lc_tree_paths *paths) {
    int32_t lengths[256];
    uint16_t reached[LC_TREE_NODES];
    uint8_t depth[LC_TREE_NODES];
    lc_tree_lengths(tree, lengths, reached, depth);
    paths->at[0] = 0;
    for (int32_t c = 0; c < 256; c++) paths->at[c + 1] = paths->at[c] + lengths[c];
    paths->steps = malloc(((size_t)paths->at[256] + 1) * sizeof(uint16_t));
    if (!paths->steps) return LC_NO_MEMORY;
    for (int32_t k = 0; k < 2 * tree->count; k++) {
        int32_t child = tree->child[k / 2][k % 2];
        if (child >= 0) continue;
        uint16_t *step = paths->steps + paths->at[~child + 1];
        *--step = (uint16_t)k;
        for (int32_t node = k / 2; node; node = *step / 2) *--step = reached[node];
    }
    return LC_OK;
}

/* The number of symbols below each node, from the counts of the symbols. */
static inline void lc_tree_sizes(const lc_tree *tree, const int64_t *counts, int64_t *sizes) {
    for (int32_t k = tree->count - 1; k >= 0; k--) {
        sizes[k] = 0;
        for (int b = 0; b < 2; b++) {
            int32_t child = tree->child[k][b];
            sizes[k] += child < 0 ? counts[~child] : sizes[child];
        }
    }
}

/* -- bits --------------------------------------------------------------------------------------------------------- */

static inline void lc_count_bytes(const uint8_t *data, int64_t n, int64_t *counts) {
    memset(counts, 0, 256 * sizeof *counts);
    for (int64_t i = 0; i < n; i++) counts[lc_load_u8(data + i)]++;
}

/* Write the bits of a node, and move the symbols of its left child to the front, those of the right one behind them. */
static inline void lc_tree_split(uint8_t *symbols, int64_t n, const uint8_t *right, uint8_t *spare, uint8_t *words) {
    int64_t zeros = 0, ones = 0;
    for (int64_t i = 0; i < n; i += 64, words += 8) {
        uint64_t word = 0;
        int64_t stop = n - i < 64 ? n - i : 64;
        for (int64_t k = 0; k < stop; k++) {
            uint8_t c = symbols[i + k];
            uint64_t bit = right[c];
            word |= bit << k;
            symbols[zeros] = c; /* never behind i + k */
            spare[ones] = c;
            zeros += (int64_t)(1 - bit);
            ones += (int64_t)bit;
        }
        lc_store_u64(words, word);
    }
    memcpy(symbols + zeros, spare, (size_t)ones);
}

/* Write the bits of all nodes, each from a new word of 64 bits on. `symbols`, the text, is reordered; `spare` has as much
 * room. `sizes` are those of the nodes. */
static inline void lc_tree_fill(const lc_tree *tree, const int64_t *sizes, uint8_t *symbols, uint8_t *spare,
                                uint8_t *words) {
    int64_t start[LC_TREE_NODES] = {0};
    uint8_t right[256], below[LC_TREE_NODES][32];
    memset(below, 0, sizeof below); /* symbols below each node, as bits */
    for (int32_t k = tree->count - 1; k >= 0; k--)
        for (int b = 0; b < 2; b++) {
            int32_t child = tree->child[k][b];
            if (child < 0) below[k][~child / 8] |= (uint8_t)(1 << (~child % 8));
            else
                for (int i = 0; i < 32; i++) below[k][i] |= below[child][i];
        }
    for (int32_t k = 0; k < tree->count; k++) {
        int32_t left = tree->child[k][0], other = tree->child[k][1];
        for (int32_t c = 0; c < 256; c++)
            right[c] = other < 0 ? c == ~other : (uint8_t)lc_get_bit(below[other], c);
        lc_tree_split(symbols + start[k], sizes[k], right, spare, words);
        words += (sizes[k] + 63) / 64 * 8;
        int64_t middle = start[k] + sizes[k];
        if (other >= 0) start[other] = middle -= sizes[other];
        if (left >= 0) start[left] = start[k];
    }
}

/* Write the number of ones in front of each block of `words_per_block` words of a node. */
static inline void lc_block_ranks(const uint8_t *words, int64_t count, int64_t words_per_block, uint64_t *out) {
    uint64_t ones = 0;
    for (int64_t i = 0; i < count; i++) {
        if (i % words_per_block == 0) *out++ = ones;
        ones += (uint64_t)lc_popcount64(lc_load_u64(words + 8 * i));
    }
}

#endif
