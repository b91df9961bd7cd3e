"""Rows of a window of several columns of a fragment, decoded together while the interpreter is free for other threads.

A window is a range of rows. All of them are read, or those that a bitmap keeps. One call finds the pages and the memory
that the texts need, another one fills the buffers of all columns. Or a single call makes arrays of all columns, in
memory that is used again and again. A column that cannot be read here is left out: the caller reads it in another way,
which reports what is wrong.
"""

from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Malloc
from libc.stdint cimport int64_t, uint8_t, uint64_t, uintptr_t
from libc.string cimport memcpy, memset

from lancecodec.buffers cimport ByteView, readable, writable
from lancecodec.take cimport ColumnTaker
from lancecodec.take_pages cimport LC_LEVEL_NONE, LC_TAKE_ZIPPED, lc_take_page

from lancecodec.errors import CodecError

cdef extern from "kernels/window.h" nogil:
    ctypedef struct lc_window_part:
        const lc_take_page *page
        int64_t first
        int64_t stop
    int64_t LC_WINDOW_SHARE
    ctypedef struct lc_window_mask:
        const uint8_t *bits
        int64_t at
        const int64_t *places
    ctypedef struct lc_window_sink:
        uint8_t *values
        uint8_t *validity
        uint8_t *content
        int64_t capacity
        int64_t size
        int wide
        int64_t rows
        int64_t nulls
    int64_t lc_bits_count(const uint8_t *bits, int64_t offset, int64_t n)
    void lc_utf8_fill(uint64_t *table)
    int lc_window_supports(const lc_take_page *page)
    int lc_window_room(const lc_window_part *part, const lc_window_mask *mask, int64_t place, lc_window_sink *sink,
                       int64_t *room)
    int lc_window_read(const lc_window_part *parts, int64_t count, const lc_window_mask *mask, int64_t rows,
                       const uint64_t *utf8, lc_window_sink *sink)
    void lc_window_close(lc_window_sink *sink)

cdef extern from "kernels/positions.h" nogil:
    int64_t lc_bits_positions(const uint8_t *bits, int64_t n, int64_t *out, int64_t room)

cdef extern from "kernels/window_arrays.h" nogil:
    ctypedef struct lc_array "struct ArrowArray":
        void (*release)(lc_array *) noexcept nogil
    ctypedef struct lc_spare:
        int64_t most
    ctypedef struct lc_window_source:
        const lc_window_part *parts
        int64_t count
        int64_t width
        int levels
        int wide
        const uint64_t *utf8
    lc_spare *lc_spare_open(int64_t most)
    void lc_spare_close(lc_spare *spare)
    int lc_window_array(const lc_window_source *source, const lc_window_mask *mask, int64_t rows, lc_spare *spare,
                        lc_array *array)

cdef uint64_t[256] automaton
lc_utf8_fill(automaton)

#: Largest size of the values of a column in bytes.
cdef int64_t MOST_BYTES = 1 << 46


cdef struct window_column:
    int64_t first  # of its parts
    int64_t count  # 0: cannot be read here
    int64_t width
    int64_t room   # bytes of texts
    int levels
    int failed


cdef class SpareMemory:
    """Memory that arrays have given back, for the arrays of later windows.

    It is freed with this object, and memory in use when the last array that uses it is.

    Parameters
    ----------
    most
        Most bytes that are kept while no array uses them.

    Raises
    ------
    MemoryError
        There is not enough memory.
    """

    cdef lc_spare *spare

    def __cinit__(self, int64_t most):
        self.spare = lc_spare_open(max(most, 0))
        if self.spare == NULL:
            raise MemoryError("a list of spare memory")

    def __dealloc__(self):
        if self.spare != NULL:
            lc_spare_close(self.spare)


cdef class WindowArrays:
    """Arrays of the columns of a window; the result of `Window.arrays`."""

    cdef lc_array *found
    cdef int64_t num_columns

    def __dealloc__(self):
        cdef int64_t i
        for i in range(self.num_columns if self.found != NULL else 0):
            if self.found[i].release != NULL:
                self.found[i].release(self.found + i)
        PyMem_Free(self.found)

    def column(self, int64_t number):
        """Return the address of the array of a column.

        Parameters
        ----------
        number
            Number of the column.

        Returns
        -------
        int or None
            Address of a ``struct ArrowArray`` of the Arrow C data interface. The importer becomes the owner of the
            buffers. None for a column that was not read, or that was imported before.

        Raises
        ------
        CodecError
            There is no such column.
        """
        if number < 0 or number >= self.num_columns:
            raise CodecError(f"there is no column {number}")
        return None if self.found[number].release == NULL else <uintptr_t>(self.found + number)


cdef class Window:
    """Rows of some columns, found and ready to be read.

    Parameters
    ----------
    columns
        A `ColumnTaker` for each column; None for one that cannot be read here.
    start, stop
        Range ``[start, stop)`` of rows.
    mask
        Bitmap of the rows to keep, or None for all of them.
    bit
        Bit of `mask` that belongs to row `start`.

    Attributes
    ----------
    num_rows : int
        Number of rows that are kept.

    Raises
    ------
    CodecError
        A column does not have these rows, or the bitmap is too small.
    MemoryError
        There is not enough memory.
    """

    cdef list columns
    cdef uint8_t *bits
    cdef int64_t *places
    cdef lc_window_mask mask
    cdef window_column *found
    cdef lc_window_part *parts
    cdef int64_t num_columns
    cdef readonly int64_t num_rows

    def __cinit__(self, columns, int64_t start, int64_t stop, mask=None, int64_t bit=0):
        cdef int64_t i, count = 0
        cdef ColumnTaker column
        if start < 0 or stop < start:
            raise CodecError(f"rows {start} to {stop} are not a window")
        self.columns, self.num_rows = list(columns), stop - start
        self.num_columns = len(self.columns)
        if mask is not None:
            self.keep(readable(mask), bit)
        self.found = <window_column *>PyMem_Calloc(self.num_columns + 1, sizeof(window_column))
        if self.found == NULL:
            raise MemoryError(f"{self.num_columns} columns")
        for i in range(self.num_columns):
            if self.columns[i] is None:
                continue
            column = <ColumnTaker?>self.columns[i]
            if stop > column.firsts[column.count]:
                raise CodecError(f"column {i} has {column.firsts[column.count]} rows, not {stop}")
            count += column.pages_of(start, stop)
        self.parts = <lc_window_part *>PyMem_Calloc(count + 1, sizeof(lc_window_part))
        if self.parts == NULL:
            raise MemoryError(f"{count} pages")
        count = 0
        for i in range(self.num_columns):
            self.found[i].first = count
            if self.columns[i] is not None and start < stop:
                count += self.find(&self.found[i], <ColumnTaker>self.columns[i], start, stop)

    def __dealloc__(self):
        PyMem_Free(self.bits)
        PyMem_Free(self.places)
        PyMem_Free(self.found)
        PyMem_Free(self.parts)

    cdef int keep(self, ByteView mask, int64_t bit) except -1:
        """Keep the rows of a bitmap. It is copied, because the caller may change it before or while rows are read."""
        cdef int64_t rows = self.num_rows, size
        if bit < 0 or bit > 8 * mask.size or rows > 8 * mask.size - bit:
            raise CodecError(f"a bitmap of {mask.size} bytes has no {rows} bits from bit {bit} on")
        size = ((bit & 7) + rows + 7) // 8
        self.bits = <uint8_t *>PyMem_Malloc(size + 1)
        if self.bits == NULL:
            raise MemoryError(f"a bitmap of {size} bytes")
        self.mask.bits, self.mask.at = self.bits, bit & 7
        with nogil:
            if size:
                memcpy(self.bits, mask.data + (bit >> 3), size)
            self.num_rows = lc_bits_count(self.bits, bit & 7, rows)
        if self.num_rows < rows // LC_WINDOW_SHARE:
            self.locate(rows)
        return 0

    cdef int locate(self, int64_t rows) except -1:
        """List the places of the rows to keep."""
        cdef int64_t at = self.mask.at, i
        self.places = <int64_t *>PyMem_Malloc((self.num_rows + 1) * sizeof(int64_t))
        if self.places == NULL:
            raise MemoryError(f"{self.num_rows} rows")
        with nogil:
            self.bits[0] &= 0xFF << at  # bits of other rows
            lc_bits_positions(self.bits, at + rows, self.places, self.num_rows)
            for i in range(self.num_rows):
                self.places[i] -= at
        self.mask.places = self.places
        return 0

    cdef int64_t find(self, window_column *found, ColumnTaker column, int64_t start, int64_t stop) except -1:
        """Find the pages of a column; return their number, 0 if one of them cannot be read here."""
        cdef int64_t number = column.page_at(start), count = 0
        cdef lc_window_part *part
        found.width = column.width
        while start < stop:
            part = self.parts + found.first + count
            part.page = column.page(number)
            if part.page == NULL or not lc_window_supports(part.page):
                return 0
            if self.mask.bits == NULL and part.page.kind == LC_TAKE_ZIPPED:
                return 0  # such values can be used in place
            part.first = start - column.firsts[number]
            part.stop = min(stop, column.firsts[number + 1]) - column.firsts[number]
            found.levels |= part.page.levels.kind != LC_LEVEL_NONE
            start, number, count = column.firsts[number + 1], number + 1, count + 1
        found.count = count
        return count

    def room(self):
        """Compute how much memory the columns need.

        Returns
        -------
        list of tuple or None
            For each column whether it may have nulls, and the number of bytes of its texts (0 for other values). The
            size of compressed texts is estimated. None for a column that cannot be read here.
        """
        cdef int64_t i
        cdef list rooms = []
        with nogil:
            for i in range(self.num_columns):
                if self.found[i].width < 0 and self.found[i].count:
                    self.measure(&self.found[i])
        for i in range(self.num_columns):
            if self.found[i].failed:
                self.found[i].count = 0
            rooms.append((bool(self.found[i].levels), self.found[i].room) if self.found[i].count else None)
        return rooms

    cdef void measure(self, window_column *column) noexcept nogil:
        cdef lc_window_sink sink
        cdef int64_t place = 0, i
        cdef lc_window_part *part
        memset(&sink, 0, sizeof(lc_window_sink))
        column.room = 0
        for i in range(column.count):
            part = self.parts + column.first + i
            if not column.failed:
                column.failed = lc_window_room(part, &self.mask, place, &sink, &column.room)
            place += part.stop - part.first
        lc_window_close(&sink)

    def read(self, outputs):
        """Decode the columns.

        Parameters
        ----------
        outputs
            For each column None, or a tuple ``(values, validity, content, wide, text)``: buffers for the values (a
            bitmap of booleans, or one more offset than there are rows, of 64 bits if `wide`), for the validity (None if
            `room` says that there are no nulls) and for the bytes of texts (otherwise None), whether offsets have 64
            bits, and whether texts must be UTF-8. Entries of dictionaries are not examined: whoever opened the page has
            done so.

        Returns
        -------
        list of tuple or None
            For each column the number of nulls and the number of bytes of its texts. None for a column without output,
            or that could not be read: it is damaged, or its texts are larger than estimated.

        Raises
        ------
        CodecError
            An output is too small.
        MemoryError
            There is not enough memory.
        """
        cdef int64_t i
        cdef list views = [], results = []
        cdef lc_window_sink *sinks = <lc_window_sink *>PyMem_Calloc(self.num_columns + 1, sizeof(lc_window_sink))
        cdef int *states = <int *>PyMem_Calloc(self.num_columns + 1, sizeof(int))
        try:
            if sinks == NULL or states == NULL:
                raise MemoryError(f"{self.num_columns} columns")
            if len(outputs) != self.num_columns:
                raise CodecError(f"{len(outputs)} outputs for {self.num_columns} columns")
            for i in range(self.num_columns):
                states[i] = 0 if outputs[i] is None or not self.found[i].count else \
                    self.prepare(&self.found[i], outputs[i], sinks + i, views)
            with nogil:
                for i in range(self.num_columns):
                    if states[i]:
                        self.decode(&self.found[i], sinks + i, states + i)
            for i in range(self.num_columns):
                results.append((sinks[i].nulls, sinks[i].size) if states[i] else None)
        finally:
            PyMem_Free(sinks)
            PyMem_Free(states)
        return results

    cdef int prepare(self, window_column *column, tuple output, lc_window_sink *sink, list views) except -1:
        """Check an output; return 2 if its texts must be UTF-8, otherwise 1."""
        cdef ByteView values, validity, content
        cdef int64_t size
        cdef bint wide, text
        given, bits, texts, wide, text = output
        values = writable(given)
        views.append(values)
        size = (self.num_rows + 7) // 8 if column.width == 0 else (self.num_rows + 1) * (8 if wide else 4)
        if column.width > 0:
            size = self.num_rows * column.width if self.num_rows <= MOST_BYTES // column.width else MOST_BYTES
        if values.size < size:
            raise CodecError(f"output of {values.size} bytes instead of {size}")
        sink.values, sink.wide = values.data, wide
        if column.levels:
            if bits is None:
                raise CodecError("a column that may have nulls needs a validity")
            validity = writable(bits)
            views.append(validity)
            if validity.size < (self.num_rows + 7) // 8:
                raise CodecError(f"validity of {validity.size} bytes for {self.num_rows} rows")
            sink.validity = validity.data
        if column.width < 0:
            content = writable(texts)
            views.append(content)
            sink.content, sink.capacity = content.data, content.size
        return 2 if text else 1

    cdef void decode(self, window_column *column, lc_window_sink *sink, int *state) noexcept nogil:
        cdef const uint64_t *utf8 = automaton if state[0] == 2 else NULL
        if lc_window_read(self.parts + column.first, column.count, &self.mask, self.num_rows, utf8, sink):
            state[0] = 0
        lc_window_close(sink)

    def readable(self):
        """Return for each column whether it can be read here, as far as that is known before it is read.

        Returns
        -------
        list of bool
            True for columns all of whose pages are of a supported kind.
        """
        cdef int64_t i
        return [self.found[i].count > 0 for i in range(self.num_columns)]

    def arrays(self, kinds, SpareMemory memory not None):
        """Decode the columns into new arrays.

        Parameters
        ----------
        kinds
            For each column a tuple ``(wide, text)``: whether offsets have 64 bits, and whether texts must be UTF-8.
            Entries of dictionaries are not examined: whoever opened the page has done so.
        memory
            Memory to use.

        Returns
        -------
        WindowArrays
            The arrays. There is none of a column that cannot be read here, that is damaged, or whose texts have more
            than 256 MiB.

        Raises
        ------
        CodecError
            There are not as many kinds as columns.
        MemoryError
            There is not enough memory.
        """
        cdef int64_t i, rows = self.num_rows
        cdef WindowArrays result = WindowArrays.__new__(WindowArrays)
        cdef lc_window_source *sources
        cdef bint wide, text
        if len(kinds) != self.num_columns:
            raise CodecError(f"{len(kinds)} kinds for {self.num_columns} columns")
        result.found = <lc_array *>PyMem_Calloc(self.num_columns + 1, sizeof(lc_array))
        if result.found == NULL:
            raise MemoryError(f"{self.num_columns} columns")
        result.num_columns = self.num_columns
        sources = <lc_window_source *>PyMem_Calloc(self.num_columns + 1, sizeof(lc_window_source))
        try:
            if sources == NULL:
                raise MemoryError(f"{self.num_columns} columns")
            for i in range(self.num_columns):
                wide, text = kinds[i]
                self.source(&self.found[i], wide, text, sources + i)
            with nogil:
                for i in range(self.num_columns):
                    if sources[i].count and lc_window_array(
                            sources + i, &self.mask, rows, memory.spare, result.found + i):
                        result.found[i].release = NULL
        finally:
            PyMem_Free(sources)
        return result

    cdef void source(self, window_column *column, bint wide, bint text, lc_window_source *source):
        """Describe a column; one whose values are too large has no parts."""
        if column.width > 0 and self.num_rows > MOST_BYTES // column.width:
            return
        source.parts, source.count, source.width = self.parts + column.first, column.count, column.width
        source.levels, source.wide, source.utf8 = column.levels, wide, automaton if text else NULL
