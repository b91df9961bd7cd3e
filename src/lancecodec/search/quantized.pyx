"""Search of partitions of vectors, plain or quantized.

Distances are those of the index: squared Euclidean ones, for cosine those of vectors of unit length (of plain vectors
one minus the cosine), one minus the product, or numbers of different bits.
"""

from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport calloc, free

from lancecodec.buffers cimport ByteView, readable, writable
from lancecodec.problems cimport LC_OK, fail
from lancecodec.search.distances cimport Coarse

from lancecodec.errors import CodecError
from lancecodec.search.distances import query_size

#: Ways to store vectors, by their numbers.
STORAGES = ("FLAT", "PQ", "SQ", "RQ")
#: Ways to estimate distances of RaBitQ codes, by their numbers.
EFFORTS = ("fast", "normal", "accurate")
#: Address of rows that do not exist any more.
NOWHERE = (1 << 64) - 1
# Elements that are compared in some 50 microseconds at most: threads would rather wait for them than for the lock.
cdef int64_t BRIEF = 1 << 18


def distances_to(query, values, int64_t n, int64_t dimension, int element, int metric, out):
    """Compute the distances of vectors to a query.

    Parameters
    ----------
    query
        A query of `query_size` bytes.
    values
        n vectors.
    n, dimension
        Numbers of vectors, and of their elements.
    element, metric
        Numbers of the type of elements and of the metric.
    out
        Output for n 32-bit floats.

    Raises
    ------
    CodecError
        A number is out of range, or a buffer is too small.
    """
    cdef int64_t size = query_size(dimension, element, metric)
    cdef ByteView wanted = readable(query), source = readable(values), target = writable(out)
    cdef lc_vectors vectors
    cdef lc_queries queries
    cdef double length
    if n < 0 or wanted.size < size or target.size // 4 < n:
        raise CodecError(f"distances of {n} vectors need a query of {size} bytes, and an output for all of them")
    if source.size // (dimension * lc_element_width(element)) < n:
        raise CodecError(f"{source.size} bytes are too few for {n} vectors")
    vectors = lc_vectors(source.data, dimension, element, NULL, n)
    queries = lc_queries(wanted.data, 1, metric)
    if n * dimension < BRIEF:
        length = lc_query_length(&queries, 0, dimension, element) if metric == 1 else 0
        lc_distances(&vectors, 0, n, &queries, &length, <float *>target.data, 0)
        return
    with nogil:
        length = lc_query_length(&queries, 0, dimension, element) if metric == 1 else 0
        lc_distances(&vectors, 0, n, &queries, &length, <float *>target.data, 0)


def least_distances(distances, int64_t k, numbers):
    """Find the least distances.

    Parameters
    ----------
    distances
        32-bit floats.
    k
        How many to find, at least 1.
    numbers
        Output for the positions of the least, ascending by distance, equal ones by position: k numbers of 64 bits.

    Returns
    -------
    int
        How many were found. NaN does not count.

    Raises
    ------
    CodecError
        The output is too small, or k is out of range.
    MemoryError
        There is not enough memory.
    """
    cdef ByteView source = readable(distances), target = writable(numbers)
    cdef int64_t count = 0, n = source.size // 4
    cdef int problem
    if k < 1 or target.size // 8 < min(k, n):
        raise CodecError(f"the least distances need an output for {k} numbers, at least one")
    if n < BRIEF // LC_VECTOR_BLOCK:
        problem = lc_least_distances(source.data, n, k, target.data, &count)
    else:
        with nogil:
            problem = lc_least_distances(source.data, n, k, target.data, &count)
    if problem != LC_OK:
        fail(problem, "least distances")
    return count


def rotate(vectors, int64_t dimension, signs):
    """Rotate vectors in place: changes of signs and Walsh-Hadamard transforms in four rounds.

    Parameters
    ----------
    vectors
        Vectors of 32-bit floats.
    dimension
        Number of elements of a vector.
    signs
        Bits of four rounds, each a whole number of bytes; a one changes the sign.

    Raises
    ------
    CodecError
        A buffer is too small.
    """
    cdef ByteView target = writable(vectors), bits = readable(signs)
    cdef int64_t n
    if dimension < 1 or bits.size // 4 < (dimension + 7) // 8 or target.size % (4 * dimension):
        raise CodecError(f"a rotation of {dimension} elements needs whole vectors, and signs for four rounds")
    n = target.size // (4 * dimension)
    with nogil:
        lc_rabit_rotate(target.data, n, dimension, bits.data)


def extra_codes(vectors, int64_t dimension, int bits, double first, codes):
    """Write the bits of RaBitQ codes beyond the signs.

    They are steps of the sizes of the values, inverted for negative ones, with one of 16 scales: that which keeps the
    direction of the vector best. They are 0 for vectors without a direction.

    Parameters
    ----------
    vectors
        Rotated vectors of 32-bit floats.
    dimension
        Number of elements of a vector.
    bits
        Bits of a code, 1 to 8.
    first
        The smallest scale as a part of the largest, below 1.
    codes
        Output for a byte for each element.

    Raises
    ------
    CodecError
        A buffer is too small, or a number is out of range.
    """
    cdef ByteView source = readable(vectors), target = writable(codes)
    cdef int64_t n
    if not (1 <= bits <= 8 and 0 <= first < 1):
        raise CodecError(f"there are no codes of {bits} bits with scales from {first}")
    if not 1 <= dimension <= 1 << 32 or source.size % (4 * dimension):
        raise CodecError(f"{source.size} bytes are not whole vectors of {dimension} elements")
    if target.size < source.size // 4:
        raise CodecError(f"{target.size} bytes are too few for {source.size // 4} codes")
    n = source.size // (4 * dimension)
    with nogil:
        lc_rabit_extra(source.data, n, dimension, bits, first, target.data)


cdef class Partitions:
    """Partitions of an index, filled one by one and searched together.

    Searches may run in several threads, also while other partitions are filled.

    Parameters
    ----------
    storage
        Position in `STORAGES`.
    count
        Number of partitions.
    dimension
        Number of elements of a vector.
    element, metric
        Numbers of the type of elements (of plain vectors) and of the metric.
    bits
        Bits of a code of product quantization (4 or 8), or of a value of RaBitQ.
    parts
        Parts of a vector, of product quantization.
    by_column
        True if codes of product quantization are stored column by column.
    raw
        True if factors of RaBitQ are for plain queries, False for queries minus the centroid.
    codebook
        Codewords of product quantization: 32-bit floats [parts][values of a part][codewords].
    centroids
        Centroids, 32-bit floats; rotated ones for RaBitQ.
    squares
        Squared lengths of the centroids, 32-bit floats, of RaBitQ.
    start, step
        Value of a code of zero, and difference of two codes, of scalar quantization.

    Raises
    ------
    CodecError
        A number is out of range, or a buffer has the wrong size.
    """

    def __cinit__(self, int storage, int64_t count, int64_t dimension, int element, int metric, *, int bits=8,
                  int64_t parts=1, bint by_column=False, bint raw=False, codebook=None, centroids=None, squares=None,
                  float start=0, float step=0):
        cdef ByteView book = optional(codebook), centers = optional(centroids), lengths = optional(squares)
        query_size(dimension, element, metric)
        if not 0 <= storage < LC_STORAGES or not 0 <= count < 1 << 40:
            raise CodecError(f"there is no storage {storage}, or there cannot be {count} partitions")
        if storage == LC_STORED_PRODUCT:
            if bits not in (4, 8) or parts < 1 or dimension % parts or parts * bits % 8:
                raise CodecError(f"{dimension} values cannot be cut into {parts} parts of {bits} bits")
            if book.size != (dimension << bits) * 4 or centers.size // (4 * dimension) < count:
                raise CodecError("the codebook or the centroids have a wrong size")
        if storage == LC_STORED_RABIT and (dimension % 8 or not 1 <= bits <= 9 or lengths.size // 4 < count
                                           or (not raw and centers.size // (4 * dimension) < count)):
            raise CodecError("RaBitQ needs a multiple of 8 values, 1 to 9 bits, and centroids")
        self.kept = [book, centers, lengths]
        self.owners = {}
        self.stored.storage, self.stored.element, self.stored.metric = storage, element, metric
        self.stored.bits, self.stored.raw, self.stored.by_column = bits, raw, by_column
        self.stored.dimension, self.stored.parts, self.stored.count = dimension, parts, count
        self.stored.codebook, self.stored.centroids, self.stored.squares = book.data, centers.data, lengths.data
        self.stored.start, self.stored.step = start, step
        self.stored.partitions = <lc_partition *>calloc(count + 1, sizeof(lc_partition))
        if self.stored.partitions == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.stored.partitions)

    def fill(self, int64_t number, int64_t n, codes, ids, addresses, extra=None, factors=()):
        """Set the rows of a partition, once.

        Parameters
        ----------
        number
            Number of the partition.
        n
            Number of rows.
        codes
            The vectors, or their codes.
        ids, addresses
            64-bit row ids and addresses.
        extra
            Other bits of RaBitQ, a byte for each value.
        factors
            Factors of RaBitQ, n 32-bit floats each: to add, to scale with, errors, and for all bits to add and to
            scale. Those for residuals have only the first two, those of one bit only the first three.

        Raises
        ------
        CodecError
            A buffer is too small, or the partition is filled already.
        """
        cdef ByteView source = readable(codes), names = readable(ids), places = readable(addresses)
        cdef ByteView more = optional(extra)
        cdef lc_partition made
        cdef const uint8_t *terms[5]
        cdef int64_t size = self.row_bytes(), k
        cdef list views = [readable(each) for each in factors]
        if not 0 <= number < self.stored.count or number in self.owners:
            raise CodecError(f"there is no partition {number} to fill")
        if n < 0 or source.size // size < n or names.size // 8 < n or places.size // 8 < n:
            raise CodecError(f"the buffers are too small for {n} rows")
        for k in range(5):
            terms[k] = NULL
            if k < len(views):
                terms[k] = (<ByteView>views[k]).data
        if self.stored.storage == LC_STORED_RABIT:
            k = 2 if not self.stored.raw else 3 if self.stored.bits == 1 else 5
            if len(views) != k or any((<ByteView>each).size // 4 < n for each in views):
                raise CodecError(f"{n} rows of RaBitQ need {k} factors each")
            if k == 5 and more.size // self.stored.dimension < n:
                raise CodecError(f"the other bits are too few for {n} rows")
        made = lc_partition(source.data, names.data, places.data, more.data, terms[0], terms[1], terms[2], terms[3],
                            terms[4], n, NULL)
        self.stored.partitions[number] = made
        self.owners[number] = (source, names, places, more, views)

    def coarsen(self, int64_t number):
        """Make coarse codes of a filled partition of plain vectors, once. Searches read these first, and find the same.

        Parameters
        ----------
        number
            Number of the partition.

        Returns
        -------
        int
            Bytes of the codes; 0 if there are none, since elements are not finite, or all are equal.

        Raises
        ------
        CodecError
            The partition is not filled or has codes already, or the vectors are not floats of 16, 32 or 64 bits.
        MemoryError
            There is not enough memory.
        """
        cdef Coarse made
        if number not in self.owners or self.stored.partitions[number].coarse != NULL:
            raise CodecError(f"the partition {number} is not filled, or has coarse codes already")
        if self.stored.storage != LC_STORED_FLAT:
            raise CodecError("only plain vectors have coarse codes")
        owners = self.owners[number]
        made = Coarse(owners[0], self.stored.partitions[number].n, self.stored.dimension, self.stored.element)
        if made.size:
            self.owners[number] = (*owners, made)
            lc_coarse_set(&self.stored.partitions[number], &made.made)
        return made.size

    cdef int run(self, const lc_probe *probe, lc_nearest *best, int64_t ef) noexcept nogil:
        return lc_stored_search(&self.stored, probe, best)

    cdef int64_t row_bytes(self):
        if self.stored.storage == LC_STORED_FLAT:
            return self.stored.dimension * lc_element_width(self.stored.element)
        if self.stored.storage == LC_STORED_PRODUCT:
            return self.stored.parts * self.stored.bits // 8
        return self.stored.dimension if self.stored.storage == LC_STORED_SCALAR else self.stored.dimension // 8

    def is_filled(self, int64_t number):
        """Return True if a partition is filled.

        Parameters
        ----------
        number
            Number of the partition.
        """
        return number in self.owners

    def search(self, query, numbers, distances, int64_t k, fragments, starts, sizes, allowed, int64_t bits, int effort,
               lowest, below, near, ids, addresses, int64_t ef=0):
        """Find the nearest rows of some partitions.

        Parameters
        ----------
        query
            The query: of `query_size` bytes for plain vectors, otherwise 32-bit floats, rotated for RaBitQ.
        numbers
            64-bit numbers of filled partitions, in the order of the search.
        distances
            Distances of the query to their centroids, 32-bit floats.
        k
            Number of rows to find.
        fragments
            64-bit ids of the fragments whose rows may be found, ascending.
        starts, sizes
            For each of them the position of its first row in `allowed`, and its number of rows.
        allowed, bits
            Bits of the rows that may be found, and their number; None for all.
        effort
            Position in `EFFORTS`.
        lowest, below
            Limits of the distances; None for no limit.
        near, ids, addresses
            Outputs for up to k distances (32-bit floats), row ids and addresses (64 bits).
        ef
            Number of found rows that a walk of a graph keeps; 0 to compare all rows of the partitions.

        Returns
        -------
        int
            Number of rows found.

        Raises
        ------
        CodecError
            A buffer is too small, or a partition is not filled.
        MemoryError
            There is not enough memory.
        """
        cdef ByteView wanted = readable(query), chosen = readable(numbers), between = readable(distances)
        cdef ByteView owners = readable(fragments), firsts = readable(starts), counts = readable(sizes)
        cdef ByteView mask = optional(allowed)
        cdef ByteView out_near = writable(near), out_ids = writable(ids), out_places = writable(addresses)
        cdef int64_t needed = 4 * self.stored.dimension, place, rows = 0, found = 0, number
        cdef int problem
        cdef lc_probe probe
        cdef lc_nearest best
        if self.stored.storage == LC_STORED_FLAT:
            needed = query_size(self.stored.dimension, self.stored.element, self.stored.metric)
        if wanted.size < needed or k < 1 or between.size // 4 < chosen.size // 8 or not 0 <= effort < 3 or ef < 0:
            raise CodecError(f"a search needs a query of {needed} bytes, and distances of centroids")
        if firsts.size < owners.size or counts.size < owners.size:
            raise CodecError("each fragment needs a position and a size")
        for place in range(owners.size // 8):
            number = (<int64_t *>firsts.data)[place]
            if allowed is not None and (number < 0 or (<int64_t *>counts.data)[place] < 0
                                        or (<int64_t *>counts.data)[place] > bits - number or bits > mask.size * 8):
                raise CodecError("the bits of a fragment are outside")
        for place in range(chosen.size // 8):
            number = (<int64_t *>chosen.data)[place]
            if number not in self.owners:
                raise CodecError(f"the partition {number} is not filled")
            rows += self.stored.partitions[number].n
        rows = min(rows, k)
        if out_near.size // 4 < rows or out_ids.size // 8 < rows or out_places.size // 8 < rows:
            raise CodecError(f"the outputs are too small for {rows} rows")
        probe = lc_probe(wanted.data, chosen.data, between.data, chosen.size // 8, effort, owners.data, firsts.data,
                         counts.data, owners.size // 8, mask.data)
        problem = lc_nearest_open(&best, 1, k)
        if lowest is not None:
            best.has_lowest, best.lowest = True, lowest
        if below is not None:
            best.has_below, best.below = True, below
        with nogil:
            if problem == LC_OK:
                problem = self.run(&probe, &best, ef)
            if problem == LC_OK:
                found = best.heaps[0].n
                lc_nearest_drain(&best, 0, out_near.data, out_ids.data, out_places.data)
            lc_nearest_close(&best)
        if problem != LC_OK:
            fail(problem, "nearest vectors")
        return found


cdef ByteView optional(object owner):
    """Return the view of a buffer, or one without an address for None."""
    return ByteView.__new__(ByteView) if owner is None else readable(owner)
