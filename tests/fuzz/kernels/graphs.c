/* Graphs of any bytes: those that pass the checks are walked, and found rows exist, once each, and are at most k. Graphs
 * that are built pass the checks, and are the same whatever parts of the work are done apart. */
#include "fuzz.h"
#include "graph_build.h"

/* A graph of random edges, of which a byte may be changed. */
static void drawn(fz_input *in, lc_graph *g, int64_t n, int64_t *edges, int64_t *nodes) {
    int64_t upper = n ? fz_upto(in, n - 1) : 0, degree = fz_upto(in, 8);
    *nodes = n + upper, *edges = *nodes * degree;
    int64_t *bounds = (int64_t *)(void *)fz_memory(32, 0);
    uint32_t *rows = (uint32_t *)(void *)fz_memory(4 * *nodes, 0);
    uint32_t *ends = (uint32_t *)(void *)fz_memory(4 * *nodes + 4, 0);
    uint32_t *others = (uint32_t *)(void *)fz_memory(4 * *edges, 0);
    bounds[0] = 0, bounds[1] = n, bounds[2] = bounds[3] = *nodes;
    for (int64_t i = 0; i < *nodes; i++) rows[i] = (uint32_t)(i < n ? i : i - n);
    for (int64_t i = 0; i <= *nodes; i++) ends[i] = (uint32_t)(i * degree);
    for (int64_t i = 0; i < *edges; i++) others[i] = (uint32_t)fz_upto(in, i < n * degree ? n - 1 : upper - 1);
    uint8_t *parts[4] = {(uint8_t *)bounds, (uint8_t *)rows, (uint8_t *)ends, (uint8_t *)others};
    int64_t sizes[4] = {32, 4 * *nodes, 4 * *nodes + 4, 4 * *edges}, part = fz_upto(in, 7);
    if (part < 4 && sizes[part]) parts[part][fz_upto(in, sizes[part] - 1)] = (uint8_t)fz_upto(in, 255);
    *g = (lc_graph){parts[0], parts[1], parts[2], parts[3], fz_upto(in, 3), upper ? fz_upto(in, upper) : 0, n};
}

/* Build a graph in steps, those of a batch in `parts` parts; return its bytes, `size` of them. */
static uint8_t *built(lc_builder b, int64_t parts, int64_t levels, int64_t *size) {
    FZ_CHECK(!lc_builder_open(&b));
    while (b.done < b.n) {
        int64_t stop = lc_builder_batch(&b), middle = b.done + (parts > 1 ? (stop - b.done) / 2 : 0);
        FZ_CHECK(!lc_builder_find(&b, middle, stop) && !lc_builder_find(&b, b.done, middle));
        for (int64_t part = 0; part < parts; part++) FZ_CHECK(!lc_builder_link(&b, b.done, stop, part, parts));
        b.done = stop;
    }
    int64_t lists = lc_builder_lists(&b);
    FZ_CHECK(!lc_builder_cut(&b, 0, lists) && !lc_builder_connect(&b));
    int64_t edges = lc_builder_edges(&b), first = 8 * (levels + 1), second = first + 4 * lists, third = second + 4 * lists + 4;
    *size = third + 8 * edges;
    uint8_t *out = fz_memory(*size, 0);
    lc_builder_write(&b, levels, out, out + first, out + second, out + third, out + third + 4 * edges);
    lc_graph g = {out, out + first, out + second, out + third, levels, b.n ? lc_load_u32(b.order) : 0, b.n};
    FZ_CHECK(!lc_graph_check(&g, lists, edges));
    lc_builder_close(&b);
    return out;
}

static void builds(fz_input *in) {
    static const int elements[] = {LC_FLOAT32, LC_FLOAT64, LC_FLOAT16, LC_UINT8};
    lc_builder b = {0};
    int64_t levels = 1 + fz_upto(in, 3), sizes[2];
    b.n = fz_upto(in, 120), b.dimension = 1 + fz_upto(in, 40), b.m = 1 + fz_upto(in, 6), b.ef = 1 + fz_upto(in, 20);
    b.element = elements[fz_upto(in, 3)], b.metric = fz_upto(in, 1) ? LC_L2 : LC_DOT;
    if (b.element == LC_UINT8) b.metric = LC_L2, b.scale = (float)fz_upto(in, 2);
    if (b.element == LC_UINT8 && b.scale == 0) b.metric = LC_HAMMING;
    uint8_t *heights = fz_memory(b.n, 0);
    uint32_t *order = (uint32_t *)(void *)fz_memory(4 * b.n, 0);
    for (int64_t i = 0; i < b.n; i++) {
        order[i] = (uint32_t)(b.n - 1 - i);
        heights[b.n - 1 - i] = (uint8_t)(!i ? levels - 1 : i < 20 ? heights[b.n - i] - (heights[b.n - i] && fz_upto(in, 1)) : 0);
    }
    b.values = fz_take(in, b.n * b.dimension * lc_element_width(b.element));
    b.heights = heights, b.order = (const uint8_t *)order;
    uint8_t *one = built(b, 1, levels, &sizes[0]), *other = built(b, 1 + fz_upto(in, 3), levels, &sizes[1]);
    FZ_CHECK(sizes[0] == sizes[1] && !memcmp(one, other, (size_t)sizes[0]));
}

static void fz_target(fz_input *in) {
    if (fz_upto(in, 1)) {
        builds(in);
        return;
    }
    lc_stored s = {0};
    lc_probe q = {0};
    lc_nearest best;
    lc_partition p = {0};
    lc_graph g = {0};
    int64_t n = fz_upto(in, 90), edges, nodes;
    uint64_t zero = 0, rows = (uint64_t)fz_upto(in, 90);
    s.storage = (int)fz_upto(in, LC_STORED_SCALAR), s.metric = (int)fz_upto(in, LC_DOT), s.parts = 2, s.count = 1;
    s.dimension = 8 * (1 + fz_upto(in, 4)), s.bits = (int)fz_upto(in, 1) ? 8 : 4, s.by_column = (int)fz_upto(in, 1);
    s.element = s.storage == LC_STORED_FLAT ? (int)fz_upto(in, LC_ELEMENTS - 1) : LC_FLOAT32;
    s.step = (float)fz_upto(in, 3), s.partitions = &p;
    int64_t width = s.storage == LC_STORED_FLAT ? s.dimension * lc_element_width(s.element)
                    : s.storage == LC_STORED_SCALAR ? s.dimension : s.parts * s.bits / 8;
    int64_t book = s.storage == LC_STORED_PRODUCT ? 4 * (s.dimension << s.bits) : 0;
    uint8_t *codebook = fz_memory(book, 0);
    memcpy(codebook, fz_take(in, book), (size_t)book);
    s.codebook = codebook, s.centroids = fz_take(in, 4 * s.dimension);
    uint64_t *addresses = (uint64_t *)(void *)fz_memory(8 * n, 0);
    for (int64_t i = 0; i < n; i++) addresses[i] = (uint64_t)i;
    p.n = n, p.codes = fz_take(in, n * width), p.ids = p.addresses = (const uint8_t *)addresses;
    q.vector = fz_take(in, 8 * (s.dimension + LC_QUERY_UNIT)), q.distances = fz_take(in, 4);
    q.numbers = q.fragments = q.starts = (const uint8_t *)&zero, q.sizes = (const uint8_t *)&rows;
    q.n_fragments = q.probes = 1, q.allowed = fz_upto(in, 1) ? fz_take(in, 12) : 0;
    drawn(in, &g, n, &edges, &nodes);
    int64_t k = 1 + fz_upto(in, 30), ef = k + fz_upto(in, 30);
    if (lc_graph_check(&g, nodes, edges)) return;
    FZ_CHECK(!lc_nearest_open(&best, 1, k) && !lc_graph_search(&s, &g, ef, &q, &best) && best.heaps[0].n <= k);
    uint8_t seen[128] = {0};
    for (int64_t i = 0; i < best.heaps[0].n; i++) {
        uint64_t address = best.heaps[0].items[i].address;
        FZ_CHECK(address < rows && !seen[address]);
        seen[address] = 1;
    }
    lc_nearest_close(&best);
}
