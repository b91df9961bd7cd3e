/* Search with a leading term: the documents of one list, which the other lists complete, and phrases in them. */
#ifndef LANCECODEC_POSTING_LEAD_H
#define LANCECODEC_POSTING_LEAD_H

#include "posting_cursors.h"

/* -- phrases ------------------------------------------------------------------------------------------------------ */

static inline int lc_cursor_positions(lc_cursor *c) {
    if (c->placed == c->loaded) return LC_OK;
    int problem =
        lc_positions_decode(c->positions, c->loaded, c->loaded * c->term->size, c->counts, c->n, &c->found);
    if (!problem) c->placed = c->loaded;
    return problem;
}

/* Make room for the positions of a term in two rows. */
static inline int lc_phrase_room(lc_phrase *p, int64_t n) {
    if (n <= p->room) return LC_OK;
    int64_t room = n < 64 ? 64 : n, *one = (int64_t *)realloc(p->reached, (size_t)room * sizeof *one);
    if (one) p->reached = one;
    int64_t *other = (int64_t *)realloc(p->next, (size_t)room * sizeof *other);
    if (other) p->next = other;
    if (!one || !other) return LC_NO_MEMORY;
    p->room = room;
    return LC_OK;
}

/* Find out whether the current document of all cursors has the phrase. Places of a phrase that starts at the same word
 * are equal after subtracting the place in the phrase; each may be up to `slop` behind the one before. */
static inline int lc_phrase_check(lc_phrase *p, lc_cursor *cursors, int *out) {
    int64_t count = 0;
    *out = 0;
    for (int64_t k = 0; k < p->n; k++) {
        lc_cursor *c = &cursors[p->cursors[k]];
        int problem = lc_cursor_positions(c);
        if (problem) return problem;
        const uint32_t *found = c->found.values + c->found.at[c->at];
        int64_t n = c->found.at[c->at + 1] - c->found.at[c->at], made = 0;
        problem = lc_phrase_room(p, n);
        if (problem) return problem;
        for (int64_t i = 0, j = 0; i < n; i++) {
            int64_t place = (int64_t)found[i] - p->places[k];
            while (k && j < count && p->reached[j] < place - p->slop) j++;
            if (!k || (j < count && p->reached[j] <= place)) p->next[made++] = place;
        }
        int64_t *swapped = p->reached;
        p->reached = p->next, p->next = swapped;
        count = made;
        if (!count) return LC_OK;
    }
    *out = 1;
    return LC_OK;
}

/* -- a leading term ----------------------------------------------------------------------------------------------- */

/* Return the most that the other cursors add to the documents of a range, and move them to its start. */
static inline double lc_search_others(lc_search *s, const lc_cursor *lead, int64_t start, int64_t end) {
    double sum = 0;
    for (int64_t i = 0; i < s->n; i++) {
        lc_cursor *c = &s->cursors[i];
        float best = 0;
        if (c == lead) continue;
        lc_cursor_skip(c, start);
        for (int64_t b = c->block; b < c->term->blocks && (int64_t)c->term->firsts[b] < end; b++)
            if (c->term->bounds[b] > best) best = c->term->bounds[b];
        sum += (double)c->weight * best * LC_BOUND_SLACK;
    }
    return sum;
}

/* Score a document of the leading cursor if it may be good enough, by the scores of its terms and, as long as these are
 * unknown, by the bounds of blocks. If `every`, the others must have it. `next` is the document to go on with. */
static inline int lc_search_complete(lc_search *s, const lc_cursor *lead, int every, int64_t *next) {
    int64_t doc = lead->doc;
    double sum = lc_cursor_score(lead, s->norms) * LC_BOUND_SLACK;
    float score = 0;
    int found = 1, problem = LC_OK;
    *next = doc + 1;
    for (int64_t i = 0; i < s->n; i++) {
        lc_cursor *c = &s->cursors[i];
        if (c == lead) continue;
        lc_cursor_skip(c, doc);
        if (c->doc == doc) sum += lc_block_bound(c, c->block);
        else if (every && c->doc > *next) *next = c->doc;
        found &= c->doc == doc;
    }
    if ((every && !found) || !(sum > s->hits->floor)) return LC_OK;
    for (int64_t i = 0; i < s->n; i++) {
        lc_cursor *c = &s->cursors[i];
        if (c == lead || c->doc != doc) continue;
        sum -= lc_block_bound(c, c->block);
        problem = lc_cursor_seek(c, doc);
        if (every && c->doc > *next) *next = c->doc;
        if (problem || (every && c->doc != doc)) return problem;
        if (c->doc == doc) sum += lc_cursor_score(c, s->norms) * LC_BOUND_SLACK;
        if (!(sum > s->hits->floor)) return LC_OK;
    }
    for (int64_t i = 0; i < s->n; i++)
        if (s->cursors[i].doc == doc) score += lc_cursor_score(&s->cursors[i], s->norms);
    if (s->phrase) problem = lc_phrase_check(s->phrase, s->cursors, &found);
    else found = 1;
    return problem || !found ? problem : lc_hits_add(s->hits, doc, score);
}

/* Find documents among those of a leading cursor, with all others if `every`. */
static inline int lc_search_lead(lc_search *s, lc_cursor *lead, int every) {
    uint16_t places[LC_TERM_BLOCK];
    while (lead->doc != LC_NO_DOCUMENT) {
        int64_t block = lead->block;
        int64_t end = block + 1 < lead->term->blocks ? (int64_t)lead->term->firsts[block + 1] : LC_NO_DOCUMENT;
        double others = lc_search_others(s, lead, lead->doc, end);
        int problem = LC_OK;
        if (!(lc_block_bound(lead, block) + others > s->hits->floor)) {
            lc_cursor_enter(lead, block + 1);
            continue;
        }
        int64_t next = lead->doc;
        problem = lc_cursor_seek(lead, next);
        if (problem) return problem;
        if (lead->block != block) continue;
        lc_cursor_score_block(lead, s->norms);
        int64_t count =
            lc_places_above(lead->scores, lead->at, lead->n, lc_least_score(s->hits->floor, others), places);
        for (int64_t k = 0; k < count && next < end; k++) {
            lead->at = places[k], lead->doc = lead->docs[lead->at];
            if (lead->doc < next || !lc_is_allowed(s, lead->doc)) continue;
            problem = lc_search_complete(s, lead, every, &next);
            if (problem) return problem;
        }
        lc_cursor_enter(lead, block + 1);
        lc_cursor_skip(lead, next);
    }
    return LC_OK;
}

/* Find documents with all terms, and with the phrase if there is one. The shortest list leads. */
static inline int lc_search_every(lc_search *s) {
    int64_t shortest = 0;
    for (int64_t i = 1; i < s->n; i++)
        if (s->cursors[i].term->length < s->cursors[shortest].term->length) shortest = i;
    return lc_search_lead(s, &s->cursors[shortest], 1);
}

#endif
