"""Graphs of partitions of vectors (HNSW): searches that walk them, and building.

Malkov and Yashunin, Efficient and robust approximate nearest neighbor search using hierarchical navigable small world
graphs (2018).
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport calloc, free

from lancecodec.buffers cimport ByteView, readable, writable
from lancecodec.problems cimport (
    LC_BAD_COUNT, LC_BAD_HEADER, LC_BAD_INDEX, LC_BAD_LEVEL, LC_BAD_OFFSETS, LC_BAD_ROW, LC_OK, fail,
)
from lancecodec.search.quantized cimport Partitions, lc_nearest, lc_probe, lc_stored, lc_stored_search

from lancecodec.errors import CodecError
from lancecodec.search.distances import query_size

cdef extern from "kernels/graph_walk.h" nogil:
    ctypedef struct lc_graph:
        const uint8_t *bounds
        const uint8_t *nodes
        const uint8_t *ends
        const uint8_t *neighbors
        int64_t levels, entry, rows
    int lc_graph_check(const lc_graph *g, int64_t n, int64_t edges)
    int lc_graph_search(const lc_stored *s, const lc_graph *graphs, int64_t ef, const lc_probe *q, lc_nearest *best)

cdef extern from "kernels/graph_build.h" nogil:
    ctypedef struct lc_builder:
        const uint8_t *values
        const uint8_t *heights
        const uint8_t *order
        int64_t n, dimension
        int element, metric
        float scale
        int64_t m, ef, done
    int64_t lc_element_width(int element)
    int lc_builder_open(lc_builder *b)
    void lc_builder_close(lc_builder *b)
    int64_t lc_builder_batch(const lc_builder *b)
    int lc_builder_find(const lc_builder *b, int64_t first, int64_t stop)
    int lc_builder_link(const lc_builder *b, int64_t first, int64_t stop, int64_t part, int64_t parts)
    int lc_builder_cut(const lc_builder *b, int64_t first, int64_t stop)
    int lc_builder_connect(const lc_builder *b)
    int64_t lc_builder_lists(const lc_builder *b)
    int64_t lc_builder_edges(const lc_builder *b)
    void lc_builder_write(const lc_builder *b, int64_t levels, uint8_t *bounds, uint8_t *nodes, uint8_t *ends,
                          uint8_t *neighbors, uint8_t *distances)

#: Largest number of levels: each has only a fraction of the nodes of the level below.
MAX_LEVELS = 64
#: Largest number of vectors of a graph, of neighbors of a node, and of candidates for neighbors.
MAX_NODES, MAX_NEIGHBORS, MAX_CANDIDATES = 1 << 30, 1 << 16, 1 << 24

cdef dict MESSAGES = {
    LC_BAD_COUNT: "the levels do not divide the nodes",
    LC_BAD_OFFSETS: "lists of neighbors begin or end outside",
    LC_BAD_ROW: "nodes of a level are not rows in ascending order",
    LC_BAD_LEVEL: "a node of a level is not on the one below",
    LC_BAD_INDEX: "a neighbor is not on the level of its node",
    LC_BAD_HEADER: "the entry point is not on the highest level",
}


cdef class GraphPartitions(Partitions):
    """Partitions with graphs. A search with `ef` walks them, where that compares fewer rows than a scan.

    Parameters are those of `Partitions`.
    """

    cdef lc_graph *graphs
    cdef dict sources

    def __cinit__(self, int storage, int64_t count, *args, **options):
        self.sources = {}
        self.graphs = <lc_graph *>calloc(count + 1, sizeof(lc_graph))
        if self.graphs == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.graphs)

    def link(self, int64_t number, int64_t rows, int64_t entry, bounds, nodes, ends, neighbors):
        """Set the graph of a partition before it is filled.

        Parameters
        ----------
        number
            Number of the partition.
        rows
            Its number of rows.
        entry
            Row at which walks begin. It is on the highest level that has nodes.
        bounds
            For each level, from the one with all rows, the position of its first node in `nodes`, and the end: 64-bit
            numbers.
        nodes
            Rows of the nodes, ascending in each level: 32-bit numbers.
        ends
            For each node the position of its first neighbor in `neighbors`, and the end: 32-bit numbers.
        neighbors
            Rows of neighbors, nodes of the same level: 32-bit numbers.

        Raises
        ------
        CodecError
            Levels, nodes or neighbors contradict each other, or the partition is filled.
        """
        cdef ByteView starts = readable(bounds), points = readable(nodes), stops = readable(ends)
        cdef ByteView others = readable(neighbors)
        cdef int64_t levels = starts.size // 8 - 1, n = points.size // 4
        cdef int problem
        cdef lc_graph graph
        if not 0 <= number < self.stored.count or number in self.owners:
            raise CodecError(f"there is no partition {number} to link")
        if not 0 <= levels <= MAX_LEVELS or stops.size // 4 != n + 1 or not 0 <= rows < 1 << 31:
            raise CodecError(f"a graph of {n} nodes has 0 to {MAX_LEVELS} levels, and as many ends and one more")
        graph = lc_graph(starts.data, points.data, stops.data, others.data, levels, entry, rows)
        with nogil:
            problem = lc_graph_check(&graph, n, others.size // 4)
        if problem != LC_OK:
            raise CodecError(f"a graph: {MESSAGES[problem]}")
        self.graphs[number] = graph
        self.sources[number] = (starts, points, stops, others)

    cdef int run(self, const lc_probe *probe, lc_nearest *best, int64_t ef) noexcept nogil:
        if ef == 0:
            return lc_stored_search(&self.stored, probe, best)
        return lc_graph_search(&self.stored, self.graphs, ef, probe, best)


cdef class GraphBuilder:
    """Graph of the vectors of a partition, built batch by batch.

    The nodes of a batch first find neighbors, and then get edges back from them. Threads may share both steps: the
    graph does not depend on how. All calls of a step must return before the next one begins.

    Parameters
    ----------
    vectors
        The vectors, or bytes that stand for them.
    n, dimension
        Numbers of vectors, and of their elements.
    element, metric
        Numbers of the type of elements and of the metric.
    heights
        Highest level of each vector, a byte.
    order
        Order in which the vectors are added, 32-bit numbers, those of high levels first.
    m
        Number of neighbors of a node; twice as many on the lowest level.
    ef
        Candidates for neighbors that are compared.
    scale
        Factor of the squared distances of bytes, with the element type of bytes and the metric l2; 0 for plain vectors.

    Raises
    ------
    CodecError
        A number is out of range, or a buffer is too small.
    MemoryError
        There is not enough memory.
    """

    cdef lc_builder made
    cdef list kept
    cdef int64_t levels
    cdef bint complete

    def __cinit__(self, vectors, int64_t n, int64_t dimension, int element, int metric, heights, order, int64_t m,
                  int64_t ef, float scale=0):
        cdef ByteView source = readable(vectors), tops = readable(heights), turns = readable(order)
        cdef int64_t i, width, lists = n
        cdef uint32_t node, last = MAX_LEVELS - 1
        cdef int problem
        query_size(dimension, element, metric)
        width = dimension * lc_element_width(element)
        if not 0 <= n <= MAX_NODES or source.size // width < n or tops.size < n or turns.size // 4 < n:
            raise CodecError(f"a graph of {n} vectors needs all of them, their heights and an order")
        if not 1 <= m <= MAX_NEIGHBORS or not 1 <= ef <= MAX_CANDIDATES or not 0 <= scale < float("inf"):
            raise CodecError(f"{m} neighbors, {ef} candidates or a factor of {scale} are out of range")
        if scale > 0 and (element != 5 or metric != 0):
            raise CodecError("only squared distances of bytes have a factor")
        seen = bytearray(n)
        for i in range(n):
            node = (<uint32_t *>turns.data)[i]
            if node >= n or seen[node] or tops.data[node] > last:
                raise CodecError("the order must have each vector once, those of high levels first")
            seen[node] = 1
            last = tops.data[node]
            lists += last
            if i == 0:
                self.levels = last + 1
        if lists > MAX_NODES:
            raise CodecError(f"there are {lists} nodes of all levels, more than {MAX_NODES}")
        self.kept = [source, tops, turns]
        self.made.values, self.made.heights, self.made.order = source.data, tops.data, turns.data
        self.made.n, self.made.dimension, self.made.element, self.made.metric = n, dimension, element, metric
        self.made.scale, self.made.m, self.made.ef, self.made.done = scale, m, ef, 0
        with nogil:
            problem = lc_builder_open(&self.made)
        if problem != LC_OK:
            fail(problem, "a graph")

    def __dealloc__(self):
        lc_builder_close(&self.made)

    def batch(self):
        """Return the first place in the order of the next batch, and the one after its last; equal at the end."""
        return self.made.done, lc_builder_batch(&self.made)

    cdef int check(self, int64_t first, int64_t stop) except -1:
        if not self.made.done <= first <= stop <= lc_builder_batch(&self.made) or self.complete:
            raise CodecError(f"the places {first} to {stop} are not of the next batch")
        return 0

    def find(self, int64_t first, int64_t stop):
        """Find the neighbors of nodes of the next batch.

        Parameters
        ----------
        first, stop
            Places of the nodes in the order, the last one excluded.

        Raises
        ------
        CodecError
            They are not of the next batch.
        MemoryError
            There is not enough memory.
        """
        cdef int problem
        self.check(first, stop)
        with nogil:
            problem = lc_builder_find(&self.made, first, stop)
        if problem != LC_OK:
            fail(problem, "a graph")

    def link(self, int64_t part, int64_t parts):
        """Add edges from the neighbors of the nodes of the batch, for one of several parts of the neighbors.

        Parameters
        ----------
        part, parts
            Number of the part, and number of parts.

        Raises
        ------
        CodecError
            There is no such part.
        MemoryError
            There is not enough memory.
        """
        cdef int64_t first = self.made.done, stop = lc_builder_batch(&self.made)
        cdef int problem
        if not 0 <= part < parts or self.complete:
            raise CodecError(f"there is no part {part} of {parts} to link")
        with nogil:
            problem = lc_builder_link(&self.made, first, stop, part, parts)
        if problem != LC_OK:
            fail(problem, "a graph")

    def advance(self):
        """Begin the next batch."""
        self.made.done = lc_builder_batch(&self.made)

    def run(self, int64_t stop):
        """Find and link all batches that begin before a place.

        Parameters
        ----------
        stop
            The place in the order.

        Raises
        ------
        MemoryError
            There is not enough memory.
        """
        cdef int problem = LC_OK
        cdef int64_t end
        if self.complete:
            raise CodecError("the graph is complete")
        with nogil:
            while self.made.done < stop and self.made.done < self.made.n and problem == LC_OK:
                end = lc_builder_batch(&self.made)
                problem = lc_builder_find(&self.made, self.made.done, end)
                if problem == LC_OK:
                    problem = lc_builder_link(&self.made, self.made.done, end, 0, 1)
                self.made.done = end
        if problem != LC_OK:
            fail(problem, "a graph")

    def finish(self):
        """Cut lists to their limits, and give edges to nodes that cannot be reached.

        Returns
        -------
        tuple of int
            Numbers of levels, of nodes of all levels, and of edges.

        Raises
        ------
        MemoryError
            There is not enough memory.
        """
        cdef int problem = LC_OK
        if not self.complete:
            with nogil:
                problem = lc_builder_cut(&self.made, 0, lc_builder_lists(&self.made))
                if problem == LC_OK:
                    problem = lc_builder_connect(&self.made)
            if problem != LC_OK:
                fail(problem, "a graph")
            self.complete = True
        return self.levels, lc_builder_lists(&self.made), self.edges()

    cdef int64_t edges(self):
        """Return the number of edges."""
        cdef int64_t found
        with nogil:
            found = lc_builder_edges(&self.made)
        return found

    def write(self, bounds, nodes, ends, neighbors, distances):
        """Write the finished graph.

        Parameters
        ----------
        bounds
            Output for the position of the first node of each level, and the end: 64-bit numbers.
        nodes
            Output for the nodes of each level, ascending: 32-bit numbers.
        ends
            Output for the position of the first neighbor of each node, and the end: 32-bit numbers.
        neighbors, distances
            Outputs for neighbors, 32-bit numbers, and the distances to them, 32-bit floats.

        Raises
        ------
        CodecError
            The graph is not finished, or an output is too small.
        """
        cdef ByteView starts = writable(bounds), points = writable(nodes), stops = writable(ends)
        cdef ByteView others = writable(neighbors), near = writable(distances)
        cdef int64_t lists = lc_builder_lists(&self.made), edges = self.edges()
        if not self.complete or edges >> 31:
            raise CodecError("the graph is not finished, or has too many edges")
        if (starts.size // 8 < self.levels + 1 or points.size // 4 < lists or stops.size // 4 < lists + 1
                or others.size // 4 < edges or near.size // 4 < edges):
            raise CodecError(f"the outputs are too small for {lists} nodes and {edges} edges")
        with nogil:
            lc_builder_write(&self.made, self.levels, starts.data, points.data, stops.data, others.data, near.data)
