"""Columns of a table that is stored in batches, as legacy files are: many of them are read in one call.

A table of thousands of columns has as many pages in each batch, and an object per column and call would cost more than
the values. Columns whose pages contradict the file are left to readers of single columns: the functions say which
columns those are, and do not raise errors for the content of a file.
"""

cimport cython
from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Malloc
from libc.stdint cimport int64_t, uint8_t, uint64_t

from lancecodec.buffers cimport ByteView, check_aligned, readable, writable

from lancecodec.errors import CodecError

cdef extern from "kernels/portable.h" nogil:
    uint64_t lc_once_u64(const uint8_t *p)

cdef extern from "kernels/batch_columns.h" nogil:
    ctypedef struct lc_batch_cell:
        int64_t position
        int64_t length
    ctypedef struct lc_batch_run:
        int64_t batch
        int64_t start
        int64_t at
        int64_t count
    ctypedef struct lc_batch_column:
        const lc_batch_cell *cells
        int64_t bits
        int64_t entries
    int lc_batch_column_fits(const lc_batch_column *column, const int64_t *starts, int64_t n, int64_t size)
    int64_t lc_batch_runs_of_range(const int64_t *starts, int64_t n, int64_t a, int64_t b, lc_batch_run *runs)
    int64_t lc_batch_runs_of_rows(const int64_t *starts, const int64_t *rows, int64_t n, int64_t *within,
                                  lc_batch_run *runs)
    int lc_batch_column_read(const uint8_t *file, const lc_batch_column *column, const lc_batch_run *runs,
                             int64_t count, const int64_t *within, int64_t n, uint8_t *out)

cdef enum:
    ALIGNMENT = 64
    CELL = 16
    BATCHES = 1 << 12
    WIDTH = 64

#: Most batches of a table: of more, the columns are read by themselves.
MOST_BATCHES = BATCHES


@cython.no_gc  # cannot be part of a reference cycle
cdef class BatchColumns:
    """Columns of a file in batches, those that are plain with the places of their pages.

    It is immutable, so threads may share it. The file is kept alive, not copied, but the places of the pages are.

    Parameters
    ----------
    file
        All bytes of the file.
    starts
        int64 array with the first row of each batch, beginning with 0, then the number of rows.
    table
        Position of the table of pages: for each of its columns and each batch, the position in bytes of a page and the
        number of its values, 8 bytes each.
    numbers
        Columns of that table; those outside of the file are not plain.
    bits
        For each of them the bits of a value: 1 or a multiple of 8 up to 512; 0 for a column to be left out.
    entries
        For each of them the number of entries of its dictionary, with `bits` of an index from 8 to 64; otherwise 0.

    Attributes
    ----------
    rows : int
        Number of rows.

    Raises
    ------
    CodecError
        The lists have different lengths, or the batches do not begin with row 0 and ascend.
    MemoryError
        There is not enough memory.
    """

    cdef ByteView file
    cdef int64_t *starts
    cdef lc_batch_cell *cells
    cdef lc_batch_column *columns
    cdef int64_t count, batches
    cdef readonly int64_t rows

    def __cinit__(self, file, const int64_t[::1] starts not None, int64_t table, list numbers not None,
                  list bits not None, list entries not None):
        cdef int64_t k, i
        cdef int64_t *places = NULL
        if len(bits) != len(numbers) or len(entries) != len(numbers):
            raise CodecError(f"{len(numbers)} columns, {len(bits)} sizes and {len(entries)} dictionaries do not match")
        if starts.shape[0] < 1 or starts[0] != 0:
            raise CodecError("the first batch must start with row 0")
        check_aligned(&starts[0])
        for k in range(starts.shape[0] - 1):
            if starts[k + 1] < starts[k]:
                raise CodecError(f"batch {k} has fewer than 0 rows")
        self.file, self.count = readable(file), len(numbers)
        self.rows = starts[starts.shape[0] - 1]
        self.batches = starts.shape[0] - 1 if starts.shape[0] <= BATCHES + 1 else 0
        self.starts = <int64_t *>PyMem_Calloc(self.batches + 1, 8)
        self.cells = <lc_batch_cell *>PyMem_Calloc(self.count * self.batches + 1, sizeof(lc_batch_cell))
        self.columns = <lc_batch_column *>PyMem_Calloc(self.count + 1, sizeof(lc_batch_column))
        if self.starts == NULL or self.cells == NULL or self.columns == NULL:
            raise MemoryError()
        if self.batches == 0:
            return
        for k in range(self.batches + 1):
            self.starts[k] = starts[k]
        places = <int64_t *>PyMem_Malloc(8 * self.count + 8)
        if places == NULL:
            raise MemoryError()
        try:
            for i in range(self.count):
                places[i] = numbers[i]
                self.columns[i].bits, self.columns[i].entries = bits[i], entries[i]
            with nogil:
                for i in range(self.count):
                    if not self.find(i, table, places[i]):
                        self.columns[i].bits = 0
        finally:
            PyMem_Free(places)

    def __dealloc__(self):
        PyMem_Free(self.starts)
        PyMem_Free(self.cells)
        PyMem_Free(self.columns)

    cdef bint find(self, int64_t i, int64_t table, int64_t number) noexcept nogil:
        """Find the pages of a column. Return False if it is not plain."""
        cdef int64_t bits = self.columns[i].bits, entries = self.columns[i].entries
        cdef lc_batch_cell *cells = self.cells + i * self.batches
        cdef int64_t row = self.batches * CELL, k
        cdef const uint8_t *at
        if bits != 1 and (bits % 8 or bits < 8 or bits > 8 * WIDTH):
            return False
        if entries < 0 or (entries > 0 and bits not in (8, 16, 32, 64)):
            return False
        if table < 0 or number < 0 or table > self.file.size or number >= (self.file.size - table) // row:
            return False
        at = self.file.data + table + number * row
        for k in range(self.batches):
            cells[k].position = <int64_t>lc_once_u64(at + CELL * k)
            cells[k].length = <int64_t>lc_once_u64(at + CELL * k + 8)
        self.columns[i].cells = cells
        return lc_batch_column_fits(&self.columns[i], self.starts, self.batches, self.file.size)

    def in_place(self):
        """Find the plain columns.

        Returns
        -------
        list
            For each column -2, because its values are copied from their pages, and None if it is not plain.
        """
        cdef int64_t i
        return [-2 if self.columns[i].bits else None for i in range(self.count)]

    def extent(self):
        """Find the part of the file with the pages of all plain columns.

        Returns
        -------
        tuple
            Position of its first byte, position behind its last byte, and bytes of the pages in it. The positions are
            equal if no column is plain.
        """
        cdef int64_t i, k, size, low = 2**62, high = 0, total = 0
        cdef const lc_batch_cell *cell
        for i in range(self.count):
            if self.columns[i].bits:
                for k in range(self.batches):
                    cell = self.columns[i].cells + k
                    size = ((self.starts[k + 1] - self.starts[k]) * self.columns[i].bits + 7) // 8
                    low, high, total = min(low, cell.position), max(high, cell.position + size), total + size
        if high == 0:
            return 0, 0, 0
        return low, high, total

    cdef int64_t room(self, int64_t number, int64_t rows) noexcept nogil:
        """Return the bytes of a column in an output."""
        cdef int64_t size = (rows * self.columns[number].bits + 7) // 8
        return (size + ALIGNMENT - 1) & ~<int64_t>(ALIGNMENT - 1)

    def places(self, int64_t rows, bint taken):
        """Place the values of columns in an output.

        Parameters
        ----------
        rows
            Number of values of each column.
        taken
            Not used: a range needs as much room as rows that are taken.

        Returns
        -------
        list
            The position of each column, at a multiple of 64 bytes, then the size of the output.

        Raises
        ------
        CodecError
            There cannot be so many values.
        """
        cdef int64_t i, at = 0
        cdef list found = [0]
        if rows < 0 or rows > 2**32:
            raise CodecError(f"{rows} values of a column")
        for i in range(self.count):
            at += self.room(i, rows)
            found.append(at)
        return found

    cdef int check(self, int64_t first, int64_t last, int64_t rows, ByteView target) except -1:
        """Raise CodecError unless an output has room for rows of columns."""
        cdef int64_t i, at = 0
        if first < 0 or last < first or last > self.count:
            raise CodecError(f"columns {first} to {last} of {self.count}")
        for i in range(first, last):
            at += self.room(i, rows)
        if at > target.size:
            raise CodecError(f"output of {target.size} bytes has no room for {rows} rows of columns {first} to {last}")
        return 0

    def read(self, int64_t first, int64_t last, int64_t start, int64_t stop, out):
        """Copy a range of rows of some columns.

        Parameters
        ----------
        first, last
            Range ``[first, last)`` of the columns.
        start, stop
            Range ``[start, stop)`` of the rows.
        out
            Output, in which the columns are as far from each other as `places` tells.

        Returns
        -------
        list
            For each column the number of its nulls, which is 0, and -1 for one that is not plain or has an index
            without an entry, whose part of `out` is undefined.

        Raises
        ------
        CodecError
            A range is outside of the file, or `out` is too small.
        MemoryError
            There is not enough memory.
        """
        cdef ByteView target = writable(out)
        if start < 0 or stop < start or stop > self.rows:
            raise CodecError(f"rows {start} to {stop} of {self.rows}")
        if stop - start > 2**32:
            raise CodecError(f"{stop - start} rows")
        self.check(first, last, stop - start, target)
        return self.copy(first, last, NULL, start, stop - start, target.data)

    def take(self, int64_t first, int64_t last, const int64_t[::1] rows not None, out):
        """Copy the values of some columns at ascending rows.

        Parameters
        ----------
        first, last
            Range ``[first, last)`` of the columns.
        rows
            int64 array of rows.
        out
            Output for the columns as in `read`.

        Returns
        -------
        list
            For each column the number of its nulls, as in `read`.

        Raises
        ------
        CodecError
            A row is outside of the file or less than the one before, or `out` is too small.
        MemoryError
            There is not enough memory.
        """
        cdef ByteView target = writable(out)
        cdef int64_t i, n = rows.shape[0], before = 0
        if n > 2**32:
            raise CodecError(f"{n} rows")
        self.check(first, last, n, target)
        if n > 0:
            check_aligned(&rows[0])
        for i in range(n):
            if rows[i] < before or rows[i] >= self.rows:
                raise CodecError(f"row {rows[i]} of {self.rows}, after row {before}")
            before = rows[i]
        return self.copy(first, last, &rows[0] if n > 0 else &before, 0, n, target.data)

    cdef list copy(self, int64_t first, int64_t last, const int64_t *rows, int64_t start, int64_t n, uint8_t *out):
        """Copy `n` rows, which start at `start` unless `rows` says which they are. Return the counts of nulls."""
        cdef int64_t i, count
        cdef lc_batch_run *runs = NULL
        cdef int64_t *within = NULL
        cdef uint8_t *copied = NULL
        if n == 0 or self.batches == 0:
            return [0 if self.columns[i].bits else -1 for i in range(first, last)]
        try:
            runs = <lc_batch_run *>PyMem_Malloc(self.batches * sizeof(lc_batch_run))
            copied = <uint8_t *>PyMem_Malloc(last - first + 1)
            within = <int64_t *>PyMem_Malloc(8 * n) if rows != NULL else NULL
            if runs == NULL or copied == NULL or (within == NULL and rows != NULL):
                raise MemoryError()
            with nogil:
                if rows == NULL:
                    count = lc_batch_runs_of_range(self.starts, self.batches, start, start + n, runs)
                else:
                    count = lc_batch_runs_of_rows(self.starts, rows, n, within, runs)
                for i in range(first, last):
                    copied[i - first] = self.columns[i].bits and lc_batch_column_read(
                        self.file.data, &self.columns[i], runs, count, within, n, out
                    )
                    out += self.room(i, n)
            return [0 if copied[i] else -1 for i in range(last - first)]
        finally:
            PyMem_Free(runs)
            PyMem_Free(within)
            PyMem_Free(copied)
