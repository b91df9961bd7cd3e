"""Serialized sets of 64-bit numbers such as the rows of a token: roaring bitmaps of the lower halves by upper half.

Sets have two forms. Both begin with the number of bitmaps, in 4 or 8 bytes. Each bitmap follows its key, and in *sized*
sets its size. Bitmaps have array and bitset containers; sets with runs, or with bitmaps of size 0, are not known here.
"""

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport int64_t, uint8_t, uint64_t

from lancecodec.buffers cimport ByteView, check_aligned, readable, writable
from lancecodec.problems cimport LC_OK, fail

from lancecodec.errors import CodecError

cdef extern from "kernels/row_sets.h" nogil:
    ctypedef struct lc_set_form:
        int count_bytes
        int sized
    ctypedef struct lc_container:
        uint64_t key
        const uint8_t *data
        int64_t count
    int lc_set_scan(const uint8_t *data, int64_t at, int64_t end, lc_set_form form, lc_container *out, int64_t room,
                    int64_t *found)
    int lc_containers_numbers(const lc_container *c, int64_t n, uint64_t *out, int64_t room)
    int64_t lc_sets_common(const lc_container *c, const int64_t *starts, int64_t n, int64_t *at,
                           const lc_container **same, uint64_t *out, int64_t room)

cdef extern from "kernels/row_sets_write.h" nogil:
    int lc_sets_bounds(const uint64_t *values, int64_t n, const int64_t *stops, int64_t sets, lc_set_form form,
                       int64_t *bounds)
    int lc_sets_write(const uint64_t *values, const int64_t *stops, int64_t sets, lc_set_form form,
                      const int64_t *bounds, uint8_t *out)
    ctypedef struct lc_known_sets:
        const lc_container *containers
        const int64_t *starts
        const int64_t *sizes
        int64_t count
        lc_set_form form
    int64_t lc_sets_most(const lc_known_sets *sets, const int64_t *order, int64_t n, const int64_t *stops,
                         int64_t unions)
    int lc_sets_unite(const lc_known_sets *sets, const int64_t *order, const int64_t *stops, int64_t unions,
                      lc_container *gathered, int64_t *bounds, uint8_t *out, int64_t room)


cdef lc_set_form checked(int count_bytes, bint sized) except *:
    if count_bytes not in (4, 8):
        raise CodecError(f"a number of bitmaps in {count_bytes} bytes is not supported")
    return lc_set_form(count_bytes, sized)


cdef const int64_t *pointer(const int64_t[::1] values) except? NULL:
    cdef const int64_t *first = &values[0] if values.shape[0] else NULL
    check_aligned(first)
    return first


cdef const uint64_t *numbers(const uint64_t[::1] values) except? NULL:
    cdef const uint64_t *first = &values[0] if values.shape[0] else NULL
    check_aligned(<const int64_t *>first)
    return first


def measure(const uint64_t[::1] values, const int64_t[::1] stops, int count_bytes, bint sized, int64_t[::1] bounds):
    """Find the positions of sets that `encode` writes.

    Parameters
    ----------
    values
        Numbers of all sets, ascending in each.
    stops
        Number of numbers up to the end of those of each set.
    count_bytes
        Bytes of the number of bitmaps in front of a set: 4 or 8.
    sized
        Whether each bitmap has its size in front of it.
    bounds
        Output: n + 1 positions.

    Raises
    ------
    CodecError
        A stop decreases or exceeds the values, or sizes do not fit.
    """
    cdef lc_set_form form = checked(count_bytes, sized)
    cdef int64_t n = values.shape[0], sets = stops.shape[0]
    cdef const uint64_t *source = numbers(values)
    cdef const int64_t *ends = pointer(stops)
    cdef int64_t *places
    cdef int problem
    if bounds.shape[0] != sets + 1:
        raise CodecError(f"{bounds.shape[0]} positions are not those of {sets} sets")
    places = &bounds[0]
    check_aligned(places)
    with nogil:
        problem = lc_sets_bounds(source, n, ends, sets, form, places)
    if problem != LC_OK:
        fail(problem, "stops of sets")


def encode(const uint64_t[::1] values, const int64_t[::1] stops, int count_bytes, bint sized,
           const int64_t[::1] bounds, out):
    """Serialize sets.

    Parameters
    ----------
    values, stops, count_bytes, sized
        The sets, as for `measure`.
    bounds
        Positions that `measure` found.
    out
        Output of as many bytes as the last position says.

    Raises
    ------
    CodecError
        The numbers of a set are not ascending, or the positions are not those of these sets.
    """
    cdef lc_set_form form = checked(count_bytes, sized)
    cdef ByteView target = writable(out)
    cdef int64_t n = values.shape[0], sets = stops.shape[0], k
    cdef const uint64_t *source = numbers(values)
    cdef const int64_t *ends = pointer(stops)
    cdef const int64_t *places = pointer(bounds)
    cdef int64_t *known
    cdef int problem
    if bounds.shape[0] != sets + 1 or places[sets] != target.size:
        raise CodecError(f"{bounds.shape[0]} positions do not fit {sets} sets of {target.size} bytes")
    known = <int64_t *>PyMem_Malloc(<size_t>(8 * (sets + 1)))
    if known == NULL:
        raise MemoryError("positions of sets")
    with nogil:
        problem = lc_sets_bounds(source, n, ends, sets, form, known)
        if problem == LC_OK:
            for k in range(sets + 1):
                if known[k] != places[k]:
                    problem = -1
        if problem == LC_OK:
            problem = lc_sets_write(source, ends, sets, form, known, target.data)
    PyMem_Free(known)
    if problem == -1:
        raise CodecError("the positions of sets are not those of their numbers")
    if problem != LC_OK:
        fail(problem, "numbers of sets")


cdef class RowSets:
    """Serialized sets, whose containers are found once.

    Parameters
    ----------
    data
        Concatenated sets.
    bounds
        n + 1 positions in `data`, ascending.
    count_bytes, sized
        Form of the sets, see `measure`.

    Raises
    ------
    CodecError
        A set is damaged, or has runs or bitmaps of size 0.
    MemoryError
        There is not enough memory.
    """

    cdef ByteView data
    cdef lc_set_form form
    cdef int64_t sets
    cdef int64_t *starts
    cdef int64_t *sizes
    cdef lc_container *containers

    def __cinit__(self, data, const int64_t[::1] bounds, int count_bytes, bint sized):
        cdef int64_t size, room, found = 0, k
        cdef const int64_t *places = pointer(bounds)
        cdef int problem = LC_OK
        self.form = checked(count_bytes, sized)
        self.data = readable(data)
        self.sets, size = bounds.shape[0] - 1, self.data.size
        if self.sets < 0:
            raise CodecError("sets have at least one position")
        for k in range(self.sets + 1):
            if places[k] < (places[k - 1] if k else 0) or places[k] > size:
                raise CodecError("positions of sets decrease or exceed their bytes")
        self.starts = <int64_t *>PyMem_Malloc(<size_t>(8 * (self.sets + 1)))
        self.sizes = <int64_t *>PyMem_Malloc(<size_t>(8 * (self.sets + 1)))
        if self.starts == NULL or self.sizes == NULL:
            raise MemoryError("containers of sets")
        with nogil:
            problem = self.scan(places, NULL, 0, &found)
        if problem == LC_OK:
            self.containers = <lc_container *>PyMem_Malloc(sizeof(lc_container) * <size_t>(found + 1))
            if self.containers == NULL:
                raise MemoryError("containers of sets")
            room, found = found, 0
            with nogil:
                problem = self.scan(places, self.containers, room, &found)
        if problem != LC_OK:
            fail(problem, "sets")

    cdef int scan(self, const int64_t *places, lc_container *out, int64_t room, int64_t *found) noexcept nogil:
        cdef int64_t k
        cdef int problem
        self.starts[0] = 0
        for k in range(self.sets):
            problem = lc_set_scan(self.data.data, places[k], places[k + 1], self.form, out, room, found)
            if problem != LC_OK:
                return problem
            self.starts[k + 1] = found[0]
            self.sizes[k] = places[k + 1] - places[k]
        return LC_OK

    def __dealloc__(self):
        PyMem_Free(self.starts)
        PyMem_Free(self.sizes)
        PyMem_Free(self.containers)

    def describe(self, int64_t[::1] stops, int64_t[::1] counts):
        """Tell the containers of the sets.

        Parameters
        ----------
        stops
            Output: number of containers up to the end of those of each set; one place for each set.
        counts
            Output: number of numbers in each container; as many places as there are containers, or none.

        Returns
        -------
        int
            Number of containers.

        Raises
        ------
        CodecError
            An output has another size.
        """
        cdef int64_t k, total = self.starts[self.sets]
        if stops.shape[0] != self.sets or counts.shape[0] not in (0, total):
            raise CodecError(f"outputs of {stops.shape[0]} and {counts.shape[0]} places do not fit {self.sets} sets")
        for k in range(self.sets):
            stops[k] = self.starts[k + 1]
        for k in range(counts.shape[0]):
            counts[k] = self.containers[k].count
        return total

    def decode(self, int64_t start, int64_t stop, uint64_t[::1] out):
        """Write the numbers of some containers.

        Parameters
        ----------
        start, stop
            Range of containers, see `describe`.
        out
            Output: as many places as they have numbers.

        Raises
        ------
        CodecError
            Numbers are not ascending, are not as many as a container says, or do not fit.
        """
        cdef int64_t total = self.starts[self.sets], k, needed = 0, room = out.shape[0]
        cdef uint64_t *target = <uint64_t *>numbers(out)
        cdef int problem
        if not 0 <= start <= stop <= total:
            raise CodecError(f"there are no containers {start} to {stop} among {total}")
        for k in range(start, stop):
            needed += self.containers[k].count
        if room != needed:
            raise CodecError(f"{room} places are not those of {needed} numbers")
        with nogil:
            problem = lc_containers_numbers(self.containers + start, stop - start, target, room)
        if problem != LC_OK:
            fail(problem, "a container")

    def intersect(self, uint64_t[::1] out):
        """Write the numbers that are in all sets.

        Parameters
        ----------
        out
            Output: as many places as the smallest set has numbers suffice.

        Returns
        -------
        int
            Number of numbers.

        Raises
        ------
        CodecError
            A set has other numbers than it says, or `out` is too small.
        MemoryError
            There is not enough memory.
        """
        cdef int64_t room = out.shape[0], found = 0
        cdef uint64_t *target = <uint64_t *>numbers(out)
        cdef int64_t *at
        cdef const lc_container **same
        if self.sets == 0:
            return 0
        at = <int64_t *>PyMem_Malloc(sizeof(int64_t) * <size_t>self.sets)
        same = <const lc_container **>PyMem_Malloc(sizeof(void *) * <size_t>self.sets)
        if at != NULL and same != NULL:
            with nogil:
                found = lc_sets_common(self.containers, self.starts, self.sets, at, same, target, room)
        else:
            found = -2
        PyMem_Free(at)
        PyMem_Free(same)
        if found == -2:
            raise MemoryError("an intersection of sets")
        if found < 0:
            raise CodecError("a set has values that are not ascending, or other numbers of them than it says")
        return found

    def unite(self, const int64_t[::1] order, const int64_t[::1] stops, int64_t[::1] bounds, out):
        """Serialize unions of sets.

        Parameters
        ----------
        order
            Numbers of sets, those of the first union first.
        stops
            Number of these up to the end of those of each union.
        bounds
            Output: n + 1 positions.
        out
            Output with room for all sets of all unions.

        Raises
        ------
        CodecError
            A set is damaged, a number or stop is out of range, or sizes do not fit.
        MemoryError
            There is not enough memory.
        """
        cdef ByteView target = writable(out)
        cdef int64_t n = order.shape[0], unions = stops.shape[0]
        cdef const int64_t *members = pointer(order)
        cdef const int64_t *ends = pointer(stops)
        cdef lc_known_sets known = lc_known_sets(self.containers, self.starts, self.sizes, self.sets, self.form)
        cdef lc_container *gathered
        cdef int64_t *places
        cdef int64_t most
        cdef int problem
        if bounds.shape[0] != unions + 1:
            raise CodecError(f"{bounds.shape[0]} positions are not those of {unions} unions")
        places = &bounds[0]
        check_aligned(places)
        with nogil:
            most = lc_sets_most(&known, members, n, ends, unions)
        if most < 0:
            raise CodecError("numbers of sets, or stops of unions, are out of range")
        gathered = <lc_container *>PyMem_Malloc(sizeof(lc_container) * <size_t>(most + 1))
        if gathered == NULL:
            raise MemoryError("a union of sets")
        with nogil:
            problem = lc_sets_unite(&known, members, ends, unions, gathered, places, target.data, target.size)
        PyMem_Free(gathered)
        if problem != LC_OK:
            fail(problem, "sets to unite")
