"""Distances of vectors to queries, and the nearest vectors.

Distances are squared Euclidean ones (l2), one minus the cosine, one minus the product (dot), or numbers of different
bits (hamming). They are 32-bit floats, computed from 32-bit sums, or 64-bit sums for 64-bit vectors.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc

from lancecodec.buffers cimport ByteView, readable, writable
from lancecodec.problems cimport LC_OK, fail

from lancecodec.errors import CodecError

cdef extern from "kernels/distances.h" nogil:
    int LC_UINT8, LC_ELEMENTS, LC_HAMMING, LC_METRICS
    ctypedef struct lc_vectors:
        const uint8_t *values
        int64_t dimension
        int element
        const uint8_t *rows
        int64_t n
    ctypedef struct lc_queries:
        const uint8_t *values
        int64_t n
        int metric
    int64_t lc_element_width(int element)
    int64_t lc_query_size(int64_t dimension, int element, int metric)

cdef extern from "kernels/coarse.h" nogil:
    ctypedef struct lc_candidates:
        int64_t n
    ctypedef struct lc_nearest:
        lc_candidates *heaps
        int64_t queries, k
        bint has_lowest, has_below
        float lowest, below
    ctypedef struct lc_vector_rows:
        const uint8_t *valid
        int64_t skip
        const uint8_t *addresses
        const uint8_t *ids
        uint64_t base
    ctypedef struct lc_vector_lists:
        const uint8_t *offsets
        const uint8_t *valid
        int64_t skip
        bint wide
        const uint8_t *rows
        int64_t n, vectors
    int lc_nearest_open(lc_nearest *s, int64_t queries, int64_t k)
    void lc_nearest_close(lc_nearest *s)
    int lc_numbers_within(const uint8_t *numbers, int64_t n, int64_t limit)
    int lc_nearest_add(lc_nearest *s, const lc_vectors *v, const lc_queries *q, const lc_vector_rows *r)
    int lc_nearest_add_lists(lc_nearest *s, const lc_vectors *v, const lc_vector_lists *l, const lc_queries *q,
                             const lc_vector_rows *r)
    int lc_nearest_add_coarse(lc_nearest *s, const lc_vectors *v, const lc_queries *q, const lc_vector_rows *r,
                              const lc_coarse *c, uint8_t *codes)
    int lc_nearest_merge(lc_nearest *s, const lc_nearest *other)
    void lc_nearest_drain(lc_nearest *s, int64_t query, uint8_t *distances, uint8_t *ids, uint8_t *addresses)

#: Types of elements, by their numbers: "e" and "b" are halves of IEEE and brain floats, the others as in `struct`.
ELEMENTS = ("f", "d", "e", "b", "i1", "u1")
#: Metrics, by their numbers.
METRICS = ("l2", "cosine", "dot", "hamming")
#: Elements of vectors that may have coarse codes, by the numbers of `ELEMENTS`.
COARSE = (0, 1, 2)
#: Largest dimension of vectors.
MAX_DIMENSION = 1 << 24
#: Largest number of queries of a search.
MAX_QUERIES = 1 << 20


def query_size(int64_t dimension, int element, int metric):
    """Return the number of bytes of a query.

    A query has as many floats (64-bit floats for vectors of these) as the dimension, and zeros up to a multiple of 16
    of them. One of a search by hamming distances has as many bytes as the dimension.

    Parameters
    ----------
    dimension
        Number of elements of a vector.
    element, metric
        Numbers of the type of elements and of the metric.

    Raises
    ------
    CodecError
        A number is out of range, or the metric is not defined for the elements.
    """
    if not 1 <= dimension <= MAX_DIMENSION:
        raise CodecError(f"vectors must have 1 to {MAX_DIMENSION} elements, not {dimension}")
    if not 0 <= element < LC_ELEMENTS or not 0 <= metric < LC_METRICS:
        raise CodecError(f"there is no type of elements {element} or no metric {metric}")
    if metric == LC_HAMMING and element != LC_UINT8:
        raise CodecError("hamming distances are those of bytes")
    return lc_query_size(dimension, element, metric)


cdef class Coarse:
    """Coarse codes of vectors: a byte for each element, and for each vector what the bytes leave out.

    They show which vectors are too far away to be compared, so that searches find the same in less time.

    Parameters
    ----------
    values
        n vectors of floats of 16, 32 or 64 bits.
    n
        Number of vectors.
    dimension
        Number of elements of a vector.
    element
        Number of the type of elements, one of `COARSE`.

    Raises
    ------
    CodecError
        A number is out of range, or there are fewer vectors.
    MemoryError
        There is not enough memory.
    """

    def __cinit__(self, values, int64_t n, int64_t dimension, int element):
        cdef ByteView source = <ByteView>values if isinstance(values, ByteView) else readable(values)
        cdef int found
        if element not in COARSE or not 1 <= dimension <= MAX_DIMENSION:
            raise CodecError(f"vectors of {dimension} elements of the type {element} have no coarse codes")
        if n < 0 or source.size // (dimension * lc_element_width(element)) < n:
            raise CodecError(f"{source.size} bytes are too few for {n} vectors")
        self.n, self.dimension, self.element = n, dimension, element
        self.size = n * (dimension + 8)
        self.codes, self.errors = <uint8_t *>malloc(n * dimension + 1), <float *>malloc(8 * n + 8)
        if self.codes == NULL or self.errors == NULL:
            raise MemoryError
        with nogil:
            found = lc_coarse_make(source.data, n, dimension, element, &self.made, self.codes, self.errors)
        if not found:
            self.forget()

    def __dealloc__(self):
        self.forget()

    @property
    def nbytes(self):
        """Bytes of memory; 0 if there are no codes, since not all elements are finite, or all are equal."""
        return self.size

    cdef void forget(self) noexcept:
        free(self.codes)
        free(self.errors)
        self.codes, self.errors, self.size = NULL, NULL, 0


cdef class Nearest:
    """The nearest vectors to each of some queries, among those that were added.

    Candidates are ordered by distance, then by row id. Those whose distance is NaN are left out.

    Parameters
    ----------
    queries
        Queries, each of `query_size` bytes.
    dimension
        Number of elements of a vector.
    element, metric
        Numbers of the type of elements and of the metric.
    k
        Number of vectors to find for each query, at least 1.
    lists
        True if a row is a list of vectors: its distance is the sum over all queries of those to the nearest vector of
        the list. It counts as one query.
    lowest, below
        Limits of the distances: from `lowest` to below `below`. None for no limit.

    Raises
    ------
    CodecError
        A number is out of range, the metric is not defined for the elements, or the queries have a wrong size.
    MemoryError
        There is not enough memory.
    """

    cdef lc_nearest best
    cdef ByteView source
    cdef lc_queries queries
    cdef int64_t dimension, width
    cdef int element
    cdef bint lists, busy

    def __cinit__(self, queries, int64_t dimension, int element, int metric, int64_t k, bint lists=False, lowest=None,
                  below=None):
        cdef int64_t size = query_size(dimension, element, metric)
        cdef int64_t count
        cdef int problem
        self.source = readable(queries)
        count = self.source.size // size
        if self.source.size % size or not 1 <= count <= MAX_QUERIES or k < 1:
            raise CodecError(f"a search needs queries of {size} bytes, and at least one vector to find")
        self.queries = lc_queries(self.source.data, count, metric)
        self.dimension, self.element, self.lists = dimension, element, lists
        self.width = lc_element_width(element)
        problem = lc_nearest_open(&self.best, count, k)
        if problem != LC_OK:
            fail(problem, "nearest vectors")
        if lowest is not None:
            self.best.has_lowest, self.best.lowest = True, lowest
        if below is not None:
            self.best.has_below, self.best.below = True, below

    def __dealloc__(self):
        lc_nearest_close(&self.best)

    cdef int begin(self) except -1:
        """Refuse what another thread may not do at the same time."""
        if self.busy:
            raise CodecError("another thread is using this search")
        self.busy = True
        return 0

    def add(self, values, int64_t n, rows, valid, int64_t skip, addresses, uint64_t base, ids):
        """Add vectors.

        Parameters
        ----------
        values
            n vectors.
        n
            Number of vectors.
        rows
            64-bit numbers of the vectors to add; None for all.
        valid, skip
            Validity bits of the n vectors, and the position of the first; None if all are valid.
        addresses
            64-bit addresses of the vectors to add; None for their numbers, from `base` on.
        base
            See `addresses`.
        ids
            64-bit row ids of the vectors to add; None for their addresses.

        Raises
        ------
        CodecError
            A buffer is too small, or a number is out of range.
        MemoryError
            There is not enough memory.
        """
        cdef ByteView source = readable(values), chosen = optional(rows)
        cdef ByteView bits = optional(valid), places = optional(addresses), names = optional(ids)
        cdef lc_vectors vectors
        cdef lc_vector_rows of
        cdef int problem
        if n < 0 or source.size // (self.dimension * self.width) < n or self.lists:
            raise CodecError(f"{source.size} bytes are too few for {n} vectors, or lists are expected")
        vectors = lc_vectors(source.data, self.dimension, self.element, chosen.data,
                             count_of(chosen, rows is not None, n))
        check_bits(bits, valid is not None, skip, n)
        check_rows(places, addresses is not None, names, ids is not None, vectors.n)
        of = lc_vector_rows(bits.data, skip, places.data, names.data, base)
        self.begin()
        with nogil:
            problem = LC_OK
            if vectors.rows != NULL and not lc_numbers_within(vectors.rows, vectors.n, n):
                problem = -1
            if problem == LC_OK:
                problem = lc_nearest_add(&self.best, &vectors, &self.queries, &of)
        self.busy = False
        if problem == -1:
            raise CodecError(f"a number of a vector is not below {n}")
        if problem != LC_OK:
            fail(problem, "nearest vectors")

    def add_coarse(self, values, Coarse coarse not None, uint64_t base):
        """Add all of some vectors, whose coarse codes are known, to the candidates of a search for one query.

        Parameters
        ----------
        values
            The vectors.
        coarse
            Their coarse codes.
        base
            Address of the first vector; the others follow. Addresses are also the row ids.

        Raises
        ------
        CodecError
            The search is for other vectors, for lists, by hamming distances or for several queries, there are no codes,
            or there are fewer vectors.
        MemoryError
            There is not enough memory.
        """
        cdef ByteView source = readable(values)
        cdef lc_vectors vectors = lc_vectors(source.data, self.dimension, self.element, NULL, coarse.n)
        cdef lc_vector_rows of = lc_vector_rows(NULL, 0, NULL, NULL, base)
        cdef uint8_t *codes
        cdef int problem
        if self.lists or self.queries.n != 1 or self.queries.metric == LC_HAMMING or not coarse.size:
            raise CodecError("coarse codes are for searches of one query by l2, cosine or dot")
        if coarse.dimension != self.dimension or coarse.element != self.element:
            raise CodecError("the coarse codes are those of other vectors")
        if source.size // (self.dimension * self.width) < coarse.n:
            raise CodecError(f"{source.size} bytes are too few for {coarse.n} vectors")
        codes = <uint8_t *>malloc(self.dimension)
        if codes == NULL:
            raise MemoryError
        self.begin()
        with nogil:
            problem = lc_nearest_add_coarse(&self.best, &vectors, &self.queries, &of, &coarse.made, codes)
            free(codes)
        self.busy = False
        if problem != LC_OK:
            fail(problem, "nearest vectors")

    def add_lists(self, values, int64_t vectors, vector_valid, int64_t vector_skip, offsets, bint wide, rows, valid,
                  int64_t skip, addresses, uint64_t base, ids):
        """Add rows that are lists of vectors.

        Parameters
        ----------
        values
            The vectors.
        vectors
            Their number.
        vector_valid, vector_skip
            Validity bits of the vectors, and the position of the first; None if all are valid.
        offsets, wide
            n + 1 offsets to the vectors of n rows, of 64 bits if `wide`, otherwise 32.
        rows
            64-bit numbers of the rows to add; None for all.
        valid, skip
            Validity bits of the n rows, and the position of the first; None if all are valid.
        addresses, base, ids
            As for `add`, of the rows.

        Raises
        ------
        CodecError
            A buffer is too small, or a number or an offset is out of range.
        MemoryError
            There is not enough memory.
        """
        cdef ByteView source = readable(values), ends = readable(offsets), inner = optional(vector_valid)
        cdef ByteView chosen = optional(rows), bits = optional(valid), places = optional(addresses)
        cdef ByteView names = optional(ids)
        cdef int64_t n = ends.size // (8 if wide else 4) - 1
        cdef lc_vectors of_vectors
        cdef lc_vector_rows of
        cdef lc_vector_lists lists
        cdef int problem
        if not self.lists or n < 0 or vectors < 0 or source.size // (self.dimension * self.width) < vectors:
            raise CodecError(f"{source.size} bytes are too few for {vectors} vectors, or lists are not expected")
        check_bits(inner, vector_valid is not None, vector_skip, vectors)
        of_vectors = lc_vectors(source.data, self.dimension, self.element, NULL, vectors)
        lists = lc_vector_lists(ends.data, inner.data, vector_skip, wide,
                                chosen.data, count_of(chosen, rows is not None, n), vectors)
        check_bits(bits, valid is not None, skip, n)
        check_rows(places, addresses is not None, names, ids is not None, lists.n)
        of = lc_vector_rows(bits.data, skip, places.data, names.data, base)
        self.begin()
        with nogil:
            problem = LC_OK
            if lists.rows != NULL and not lc_numbers_within(lists.rows, lists.n, n):
                problem = -1
            if problem == LC_OK:
                problem = lc_nearest_add_lists(&self.best, &of_vectors, &lists, &self.queries, &of)
        self.busy = False
        if problem == -1:
            raise CodecError(f"a number of a row is not below {n}")
        if problem != LC_OK:
            fail(problem, "nearest vectors")

    def merge(self, Nearest other):
        """Add the candidates of another search with the same queries.

        Parameters
        ----------
        other
            The other search.

        Raises
        ------
        CodecError
            It has another number of queries.
        MemoryError
            There is not enough memory.
        """
        cdef int problem
        if other.best.queries != self.best.queries or other is self:
            raise CodecError("only other searches with as many queries can be merged")
        other.begin()
        try:
            self.begin()
        except CodecError:
            other.busy = False
            raise
        with nogil:
            problem = lc_nearest_merge(&self.best, &other.best)
        self.busy = other.busy = False
        if problem != LC_OK:
            fail(problem, "nearest vectors")

    def count(self, int64_t query):
        """Return the number of vectors that were found for a query.

        Parameters
        ----------
        query
            Number of the query.

        Raises
        ------
        CodecError
            There is no such query.
        """
        if not 0 <= query < self.best.queries:
            raise CodecError(f"there is no query {query}")
        return self.best.heaps[query].n

    def drain(self, int64_t query, distances, ids, addresses):
        """Write the vectors that were found for a query, the nearest first, and forget them.

        Parameters
        ----------
        query
            Number of the query.
        distances
            Output for `count(query)` 32-bit floats.
        ids, addresses
            Outputs for as many numbers of 64 bits.

        Raises
        ------
        CodecError
            There is no such query, or an output is too small.
        """
        cdef ByteView near = writable(distances), names = writable(ids), places = writable(addresses)
        cdef int64_t count = self.count(query)
        if near.size // 4 < count or names.size // 8 < count or places.size // 8 < count:
            raise CodecError(f"the outputs are too small for {count} vectors")
        self.begin()
        with nogil:
            lc_nearest_drain(&self.best, query, near.data, names.data, places.data)
        self.busy = False


cdef ByteView optional(object owner):
    """Return the view of a buffer, or one without an address for None."""
    return ByteView.__new__(ByteView) if owner is None else readable(owner)


cdef int64_t count_of(ByteView rows, bint given, int64_t n) except -1:
    if not given:
        return n
    if rows.size % 8:
        raise CodecError(f"{rows.size} bytes are not a whole number of row numbers")
    return rows.size // 8


cdef int check_bits(ByteView bits, bint given, int64_t skip, int64_t n) except -1:
    if given and (skip < 0 or bits.size * 8 - skip < n):
        raise CodecError(f"there are not {n} validity bits from {skip} on")
    return 0


cdef int check_rows(ByteView places, bint placed, ByteView names, bint named, int64_t count) except -1:
    if (placed and places.size // 8 < count) or (named and names.size // 8 < count):
        raise CodecError(f"there are too few addresses or ids for {count} rows")
    return 0
