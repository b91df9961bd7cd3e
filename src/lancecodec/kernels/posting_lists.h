/* Posting lists as the rows of an index: blocks with their best scores, skip data, and positions. */
#ifndef LANCECODEC_POSTING_LISTS_H
#define LANCECODEC_POSTING_LISTS_H

#include "impact_write.h"

/* Posting lists of several words, and the documents they are of: their lengths, and what is added to a frequency to
 * find the share of the best possible score, `limits` of each word. */
typedef struct {
    const int64_t *lengths;
    int64_t words;
    const uint32_t *documents, *frequencies;
    int64_t postings;
    const uint32_t *document_lengths;
    const float *norms;
    int64_t num_documents;
    const float *limits;
    int size, fixed_tail;
} lc_postings_in;

/* Blocks and skip data with the end of each, and the best score of each word. */
typedef struct {
    lc_written blocks, impacts;
    int64_t *block_ends, *impact_ends;
    int64_t num_blocks, num_impacts, blocks_room, impacts_room;
    float *best;
    lc_impact_set block_set, group_set;
    lc_impact_pairs pairs;
} lc_postings_out;

/* The best share of a block, whose impacts are collected. */
static int lc_block_measure(const lc_postings_in *in, int64_t from, int64_t n, lc_impact_set *set, float *best) {
    float most = 0;
    int64_t before = -1;
    lc_impact_clear(set);
    for (int64_t i = from; i < from + n; i++) {
        uint32_t document = in->documents[i], often = in->frequencies[i];
        if (document >= in->num_documents || (int64_t)document <= before) return LC_BAD_INDEX;
        if (!often) return LC_BAD_COUNT;
        float share = (float)often / ((float)often + in->norms[document]);
        most = share > most ? share : most;
        lc_impact_add(set, often, in->document_lengths[document]);
        before = document;
    }
    *best = most;
    return LC_OK;
}

/* Write an entry of the skip data. */
static int lc_impact_write(const lc_impact_pairs *pairs, uint32_t last, lc_postings_out *out) {
    if (out->num_impacts >= out->impacts_room) return LC_NO_SPACE;
    int problem = lc_impact_put(pairs, last, &out->impacts);
    out->impact_ends[out->num_impacts++] = out->impacts.size;
    return problem;
}

/* Write the block of n postings with its score. */
static int lc_block_write(const lc_postings_in *in, int64_t from, int64_t n, float score, lc_postings_out *out) {
    int64_t most = n == in->size ? LC_POSTING_MOST_BLOCK : 4 + LC_POSTING_MOST_TAIL * n;
    if (out->num_blocks >= out->blocks_room || out->blocks.room - out->blocks.size < most) return LC_NO_SPACE;
    uint8_t *p = out->blocks.data + out->blocks.size;
    if (in->size == 128) memcpy(p, &score, 4), p += 4;
    const uint32_t *documents = in->documents + from, *frequencies = in->frequencies + from;
    p = n == in->size ? lc_block_put(documents, frequencies, in->size, p)
                      : lc_tail_put(documents, frequencies, n, in->fixed_tail, p);
    out->blocks.size = p - out->blocks.data;
    out->block_ends[out->num_blocks++] = out->blocks.size;
    return LC_OK;
}

/* Write up to 32 blocks, and then their skip data; collect that of the group. */
static int lc_group_write(const lc_postings_in *in, int64_t from, int64_t end, float limit, float *best,
                          lc_postings_out *out) {
    int problem = LC_OK;
    lc_impact_clear(&out->group_set);
    for (int64_t n; from < end && !problem; from += n) {
        float share, score;
        n = end - from < in->size ? end - from : in->size;
        problem = lc_block_measure(in, from, n, &out->block_set, &share);
        if (problem) return problem;
        score = limit * share;
        *best = score > *best ? score : *best;
        problem = lc_block_write(in, from, n, score, out);
        if (problem) return problem;
        lc_impact_unbeaten(&out->block_set, &out->pairs);
        for (int64_t i = 0; i < out->pairs.count; i++)
            lc_impact_add(&out->group_set, out->pairs.frequencies[i], out->pairs.lengths[i]);
        problem = lc_impact_write(&out->pairs, in->documents[from + n - 1], out);
    }
    return problem;
}

/* Write a list. The skip data of its groups of blocks follow those of its blocks; they are made from the postings. */
static int lc_list_write(const lc_postings_in *in, int64_t from, int64_t end, float limit, float *best,
                         lc_postings_out *out, lc_written *groups, int64_t *group_ends, int64_t groups_room) {
    int64_t step = (int64_t)in->size * LC_IMPACT_GROUP, count = 0;
    groups->size = 0;
    for (; from < end; from += step) {
        int64_t stop = end - from < step ? end : from + step;
        int problem = lc_group_write(in, from, stop, limit, best, out);
        if (problem) return problem;
        lc_impact_unbeaten(&out->group_set, &out->pairs);
        if (count >= groups_room) return LC_NO_SPACE;
        problem = lc_impact_put(&out->pairs, in->documents[stop - 1], groups);
        if (problem) return problem;
        group_ends[count++] = groups->size;
    }
    if (out->impacts.room - out->impacts.size < groups->size || out->impacts_room - out->num_impacts < count)
        return LC_NO_SPACE;
    if (groups->size) memcpy(out->impacts.data + out->impacts.size, groups->data, (size_t)groups->size);
    for (int64_t i = 0; i < count; i++) out->impact_ends[out->num_impacts++] = out->impacts.size + group_ends[i];
    out->impacts.size += groups->size;
    return LC_OK;
}

/* Write all lists. `groups` has room for the skip data of the groups of one list. */
static int lc_lists_write(const lc_postings_in *in, lc_postings_out *out, lc_written *groups, int64_t *group_ends,
                          int64_t groups_room) {
    int64_t from = 0;
    for (int64_t w = 0; w < in->words; w++) {
        if (in->lengths[w] < 1 || in->lengths[w] > in->postings - from) return LC_BAD_COUNT;
        out->best[w] = 0;
        int problem = lc_list_write(in, from, from + in->lengths[w], in->limits[w], &out->best[w], out, groups,
                                    group_ends, groups_room);
        if (problem) return problem;
        from += in->lengths[w];
    }
    return from == in->postings ? LC_OK : LC_BAD_COUNT;
}

/* Write the positions of lists in blocks of `size` postings. */
static int lc_positions_write(const int64_t *lengths, int64_t words, const uint32_t *frequencies, int64_t postings,
                              const uint32_t *steps, int64_t occurrences, int64_t size, lc_written *out,
                              int64_t *ends, int64_t ends_room) {
    int64_t at = 0, step = 0, blocks = 0;
    for (int64_t w = 0; w < words; w++) {
        if (lengths[w] < 0 || lengths[w] > postings - at) return LC_BAD_COUNT;
        for (int64_t end = at + lengths[w]; at < end;) {
            int64_t count = 0;
            for (int64_t stop = end - at < size ? end : at + size; at < stop; at++) count += frequencies[at];
            if (count > occurrences - step) return LC_BAD_COUNT;
            if (blocks >= ends_room) return LC_NO_SPACE;
            int problem = lc_steps_put(steps + step, count, out);
            if (problem) return problem;
            step += count, ends[blocks++] = out->size;
        }
    }
    return at == postings && step == occurrences ? LC_OK : LC_BAD_COUNT;
}

#endif
