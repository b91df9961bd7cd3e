"""Random access to many columns of many fragments at once: row numbers in, Arrow arrays out.

A `RowTaker` holds the fragments of a table, a `FragmentTaker` its columns, and a `ColumnTaker` its pages. Fragments and
pages are opened by callbacks when one of their rows is requested, and are cached. One call sorts the rows, finds the
fragment and page of each, and fills the buffers of a column with the values in the requested order.

A column that cannot be taken here becomes *missing*: the callback returns None for a page, or a page is damaged. The
caller then reads it in another way, which reports what is wrong. Objects may be used from several threads.

`ADDRESSES` stands for a column of 64-bit row addresses (fragment id in the upper half) in a `FragmentTaker`.
"""

cimport cython
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from libc.stdint cimport int64_t, uint8_t, uint64_t, uintptr_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from lancecodec.blocks cimport FileBlocks, Held, lc_needs, lc_needs_close, load_needs, needed_ranges, new_held
from lancecodec.buffers cimport ByteView, check_aligned, readable
from lancecodec.take_pages cimport PageTaker, lc_take_expected, lc_take_page

from cpython cimport array

import array

from lancecodec.errors import CodecError

cdef extern from "kernels/take_column.h" nogil:
    int64_t LC_COLUMN_LISTS
    ctypedef struct lc_array "struct ArrowArray":
        int64_t length
        int64_t null_count
        int64_t n_children
        lc_array **children
        void (*release)(lc_array *) noexcept nogil
    ctypedef struct lc_column_shape:
        int64_t width
        int wide
        int text
        int listed
        int64_t lists
        int64_t *dimensions
    ctypedef struct lc_column_segment:
        const lc_take_page *page
        int64_t begin
        int64_t end
        int64_t base
    ctypedef struct lc_column_segments:
        lc_column_segment *at
        int64_t count
    ctypedef struct lc_column_rows:
        const int64_t *rows
        const int64_t *places
        int64_t n
    void lc_utf8_fill(uint64_t *table)
    void *lc_array_make(lc_array *out, int64_t length, int64_t buffers, int64_t children)
    int lc_segments_add(lc_column_segments *segments, lc_column_segment segment)
    int lc_column_take(const lc_column_shape *shape, const lc_column_rows *rows, const lc_column_segments *segments,
                       const uint64_t *utf8, lc_array *out)

cdef extern from "kernels/take_needs.h" nogil:
    int lc_column_needs(const lc_column_rows *rows, const lc_column_segments *segments, lc_needs *needs)

cdef extern from "kernels/take_rows.h" nogil:
    int lc_rows_look(const int64_t *keys, int64_t n, int64_t *low, int64_t *high)
    void lc_rows_sort(int64_t *keys, int64_t *places, int64_t n, int64_t low, int64_t high, int64_t *spare)
    int64_t lc_rows_find(const int64_t *values, int64_t n, int64_t key)
    void lc_rows_skip_deleted(int64_t *rows, int64_t n, const int64_t *deleted, int64_t count)

cdef extern from "Python.h":
    bint PyLong_CheckExact(object value)
    long long PyLong_AsLongLongAndOverflow(object value, int *overflow) except? -1

#: Stands for the column of row addresses.
ADDRESSES = "addresses"

cdef uint64_t[256] automaton
lc_utf8_fill(automaton)

cdef array.array INTEGERS = array.array("q")
#: Up to this many rows of about this many bytes are taken without releasing the GIL, which other threads would not give
#: back at once.
cdef int64_t FEW_ROWS = 128
cdef int64_t FEW_BYTES = 1 << 18
#: State of a column: not decoded yet, missing (or exported), decoded, being decoded by a thread.
cdef enum:
    OPEN
    MISSING
    DECODED
    DECODING
#: Loading a column takes so many steps at most: the places of values, then the values. The last one finds everything.
cdef int LOADS = 4
#: Problem number of a column whose bytes cannot be loaded.
cdef int LC_NO_DATA = -1
#: Largest number of fragments in the cache.
cdef int64_t MOST_FRAGMENTS = 1 << 16
#: Largest size of a value in bytes.
cdef int64_t MAX_WIDTH = 1 << 40


# ---- columns and fragments ----

@cython.final
cdef class ColumnTaker:
    """Pages of one column of a fragment.

    Parameters
    ----------
    starts
        First row of each page, beginning with 0, then the number of rows.
    width
        Size of a value in bytes; 0 for booleans, -1 for values that vary in size.
    open_page
        Callback that takes the number of a page and returns a `PageTaker`, or None if the page is not supported. It is
        called once per page, or more often if threads race.

    Attributes
    ----------
    width : int
        The argument.

    Raises
    ------
    CodecError
        `starts` does not begin with 0, or a page has no rows.
    MemoryError
        There is not enough memory.
    """

    def __cinit__(self, starts, int64_t width, open_page):
        cdef int64_t i
        self.width, self.open_page, self.pages = width, open_page, {}
        self.count = len(starts) - 1
        self.memory = <int64_t *>calloc(self.count + 2, sizeof(int64_t))
        if self.memory == NULL:
            raise MemoryError(f"{self.count} pages")
        for i in range(self.count + 1):
            self.memory[i] = starts[i]
        self.firsts = self.memory
        if self.count < 0 or self.firsts[0] != 0:
            raise CodecError("the starts of a column must begin with 0")
        for i in range(self.count):
            if self.firsts[i + 1] <= self.firsts[i]:
                raise CodecError(f"page {i} of a column has no rows")
        self.known = <const lc_take_page **>calloc(self.count + 1, sizeof(lc_take_page *))
        if self.known == NULL:
            raise MemoryError(f"{self.count} pages")

    def __dealloc__(self):
        free(self.memory)
        free(self.known)

    @property
    def num_rows(self):
        """Number of rows."""
        return self.firsts[self.count]

    def open(self, int64_t number):
        """Open a page for later takes.

        Parameters
        ----------
        number
            Number of the page.

        Raises
        ------
        CodecError
            There is no such page, or it does not match the column.
        """
        if number < 0 or number >= self.count:
            raise CodecError(f"there is no page {number}")
        self.page(number)

    cdef int64_t page_at(self, int64_t row):
        """Return the number of the page of a row."""
        return lc_rows_find(self.firsts, self.count + 1, row)

    cdef int64_t pages_of(self, int64_t start, int64_t stop):
        """Return the number of pages of a range of rows."""
        return 0 if start >= stop else self.page_at(stop - 1) - self.page_at(start) + 1

    cdef bint is_open(self, int64_t number):
        return self.known[number] != NULL or number in self.pages

    cdef const lc_take_page *page(self, int64_t number) except? NULL:
        """Return the page, or NULL if its rows cannot be taken here."""
        cdef PageTaker opened
        if self.known[number] != NULL:
            return self.known[number]
        made = self.pages.get(number, self)
        if made is self:
            made = self.pages.setdefault(number, self.open_page(number))
            if len(self.pages) == self.count:
                self.open_page = None  # releases all objects that it refers to
        if made is None:
            return NULL
        opened = made
        if opened.page.width != self.width or opened.page.rows != self.firsts[number + 1] - self.firsts[number]:
            raise CodecError(f"page {number} has {opened.page.rows} rows of {opened.page.width} bytes instead of "
                             f"{self.firsts[number + 1] - self.firsts[number]} of {self.width}")
        self.known[number] = &opened.page
        return self.known[number]


@cython.final
cdef class FragmentTaker:
    """Columns of a fragment, and its deleted rows.

    Parameters
    ----------
    columns
        A `ColumnTaker` for each column of the `RowTaker`; None if it cannot be taken, `ADDRESSES` for row addresses.
    rows
        Number of rows including deleted ones.
    fragment_id
        Id of the fragment, used in row addresses; less than 2**32.
    deleted
        int64 buffer with the deleted rows, ascending, or None.

    Raises
    ------
    CodecError
        A column has another number of rows, or an argument is out of range.
    """

    cdef list columns
    cdef ByteView view
    cdef const int64_t *deleted
    cdef int64_t num_deleted
    cdef int64_t rows
    cdef int64_t address

    def __cinit__(self, columns, int64_t rows, int64_t fragment_id, deleted=None):
        cdef object column
        if not 0 <= fragment_id < 2**32 or rows < 0:
            raise CodecError(f"fragment {fragment_id} of {rows} rows")
        self.columns, self.rows, self.address = list(columns), rows, <int64_t>(<uint64_t>fragment_id << 32)
        for column in self.columns:
            if column is not None and column is not ADDRESSES and (<ColumnTaker?>column).num_rows != rows:
                raise CodecError(f"a column of {column.num_rows} rows in a fragment of {rows}")
        if deleted is not None:
            self.view = readable(deleted)
            self.deleted, self.num_deleted = <const int64_t *>self.view.data, self.view.size // 8
            check_aligned(self.deleted)


# ---- takes ----

cdef int parse_shape(object given, lc_column_shape *shape) except -1:
    cdef int64_t width, most, i
    width, wide, text, dimensions, listed = given
    if listed not in (0, 4, 8):
        raise CodecError(f"offsets of lists must have 4 or 8 bytes, not {listed}")
    shape.listed = listed
    if not -1 <= width <= MAX_WIDTH or len(dimensions) > LC_COLUMN_LISTS or (dimensions and width <= 0):
        raise CodecError(f"a column of values of {width} bytes in lists of {list(dimensions)} is not supported")
    shape.width, shape.wide, shape.text, shape.lists = width, wide, text, len(dimensions)
    most = 8 * width
    for i in range(shape.lists):
        shape.dimensions[i] = dimensions[i]
        if not 1 <= shape.dimensions[i] <= most:
            raise CodecError(f"values of {width} bytes cannot be lists of {list(dimensions)}")
        most //= shape.dimensions[i]
    return 0


@cython.final
cdef class RowTaker:
    """Random access to the rows of some columns of a table.

    Parameters
    ----------
    shapes
        For each column a tuple ``(width, wide, text, dimensions, listed)``: the size of a value in bytes (as for
        `ColumnTaker`), whether its offsets have 64 bits, whether it is UTF-8, the dimensions of the fixed-size lists
        that a value consists of, outermost first, and the size of the offsets of lists of such values in bytes (4 or 8,
        0 if there are no lists).
    starts
        int64 buffer with the number of live rows in front of each fragment, then of all.
    open_fragment
        Callback that takes the position of a fragment and returns a `FragmentTaker`.

    Attributes
    ----------
    num_columns : int
        Number of columns.

    Raises
    ------
    CodecError
        A shape is not supported, or `starts` decrease.
    MemoryError
        There is not enough memory.
    """

    cdef lc_column_shape *shapes
    cdef readonly int64_t num_columns
    cdef object open_fragment
    cdef dict fragments
    cdef ByteView view
    cdef const int64_t *starts
    cdef int64_t num_fragments

    def __cinit__(self, shapes, starts, open_fragment):
        cdef int64_t i
        self.num_columns, self.open_fragment, self.fragments = len(shapes), open_fragment, {}
        self.shapes = <lc_column_shape *>calloc(self.num_columns + 1, sizeof(lc_column_shape))
        if self.shapes == NULL:
            raise MemoryError(f"{self.num_columns} columns")
        for i in range(self.num_columns):
            parse_shape(shapes[i], self.shapes + i)
        self.view = readable(starts)
        self.starts, self.num_fragments = <const int64_t *>self.view.data, self.view.size // 8 - 1
        check_aligned(self.starts)
        if self.num_fragments < 0 or self.starts[0] != 0:
            raise CodecError("the starts of a table must begin with 0")
        for i in range(self.num_fragments):
            if self.starts[i + 1] < self.starts[i]:
                raise CodecError(f"the starts of a table decrease at fragment {i}")
        if self.num_rows > 2**62:
            raise CodecError(f"{self.num_rows} rows are not supported")

    def __dealloc__(self):
        free(self.shapes)

    @property
    def num_rows(self):
        """Number of live rows of all fragments."""
        return self.starts[self.num_fragments]

    def open(self, int64_t position):
        """Open a fragment for later takes.

        Parameters
        ----------
        position
            Position of the fragment.

        Raises
        ------
        CodecError
            There is no such fragment, or it does not match the table.
        """
        if position < 0 or position >= self.num_fragments:
            raise CodecError(f"there is no fragment {position}")
        self.fragment(position)

    cdef FragmentTaker fragment(self, int64_t position):
        known = self.fragments.get(position)
        if known is None:
            made = <FragmentTaker?>self.open_fragment(position)
            if len((<FragmentTaker>made).columns) != self.num_columns:
                raise CodecError(f"a fragment of {len((<FragmentTaker>made).columns)} columns instead of "
                                 f"{self.num_columns}")
            if len(self.fragments) >= MOST_FRAGMENTS:
                self.fragments.clear()
            known = self.fragments.setdefault(position, made)
        return known

    def numbers(self, const int64_t[::1] rows not None, list pending=None):
        """Find live rows by their number in the table.

        Parameters
        ----------
        rows
            int64 array of row numbers, at least one, in any order.
        pending
            List to which fragments and pages are added that are not open yet, instead of opening them: pairs of an
            object and the argument of its `open`. If there are any, the result is of no use. Open them at the same
            time, and call again, as there may be more.

        Returns
        -------
        TakenRows
            The rows, to be decoded.

        Raises
        ------
        IndexError
            A number is outside of the table.
        CodecError
            `rows` is empty, or a fragment does not match the table.
        MemoryError
            There is not enough memory.
        """
        cdef TakenRows taken
        check_aligned(&rows[0])
        taken = begin(self, &rows[0], rows.shape[0])
        if taken.low < 0 or taken.high >= self.num_rows:
            raise IndexError(f"row {taken.low if taken.low < 0 else taken.high} is outside {self.num_rows} rows")
        taken.pending = pending
        taken.find_live()
        return taken

    def places(self, const int64_t[::1] rows not None, list pending=None):
        """Find rows by the position of their fragment and their number in it. Deleted rows are found too.

        Parameters
        ----------
        rows
            int64 array of ``position of the fragment << 32 | row``, at least one, in any order.
        pending
            As for `numbers`.

        Returns
        -------
        TakenRows
            The rows, to be decoded.

        Raises
        ------
        IndexError
            A fragment does not exist.
        CodecError
            `rows` is empty, a row is outside of its fragment, or a fragment does not match the table.
        MemoryError
            There is not enough memory.
        """
        cdef TakenRows taken
        check_aligned(&rows[0])
        taken = begin(self, &rows[0], rows.shape[0])
        if taken.low < 0 or taken.high >> 32 >= self.num_fragments:
            raise IndexError(f"a row is outside of {self.num_fragments} fragments")
        taken.pending = pending
        taken.find_places()
        return taken


@cython.final
cdef class TakenRows:
    """Rows that were found, and the columns that were decoded for them; the result of `RowTaker.numbers` and `places`.

    Attributes
    ----------
    num_rows : int
        Number of rows.
    waits : bool
        Whether pages are in files without a descriptor, for which `requests` should be loaded at the same time before
        columns are decoded.
    """

    cdef RowTaker taker
    cdef int64_t *memory
    cdef int64_t *found
    cdef int64_t *order
    cdef readonly int64_t num_rows
    cdef int64_t low
    cdef int64_t high
    cdef lc_column_segments *segments
    cdef lc_array *arrays
    cdef lc_array whole
    cdef uint8_t *states
    cdef list held
    cdef bint given
    cdef Held loaded
    cdef readonly bint waits
    cdef list pending
    # A copy: the garbage collector may have cleared the taker before the memory is freed.
    cdef int64_t num_columns

    def __dealloc__(self):
        cdef int64_t i
        free(self.memory)
        if self.whole.release != NULL:
            self.whole.release(&self.whole)
        if self.arrays != NULL:
            for i in range(self.num_columns):
                free(self.segments[i].at)
                if self.arrays[i].release != NULL:
                    self.arrays[i].release(&self.arrays[i])
        free(self.segments)

    cdef int find_live(self) except -1:
        """Find the fragments of live rows."""
        cdef const int64_t *starts = self.taker.starts
        cdef int64_t i = 0, stop, position, n = self.num_rows, k
        cdef FragmentTaker fragment
        while i < n:
            position = lc_rows_find(starts, self.taker.num_fragments + 1, self.found[i])
            stop = i + 1 + lc_rows_find(self.found + i, n - i, starts[position + 1] - 1)
            if self.pending is not None and position not in self.taker.fragments:
                self.pending.append((self.taker, position))
                i = stop
                continue
            fragment = self.taker.fragment(position)
            for k in range(i, stop):
                self.found[k] -= starts[position]
            self.skip_deleted(fragment, i, stop)
            self.add(fragment, i, stop)
            i = stop
        return 0

    cdef int skip_deleted(self, FragmentTaker fragment, int64_t begin, int64_t end) except -1:
        if fragment.num_deleted == 0:
            return 0
        if end - begin <= FEW_ROWS:
            lc_rows_skip_deleted(self.found + begin, end - begin, fragment.deleted, fragment.num_deleted)
        else:
            with nogil:
                lc_rows_skip_deleted(self.found + begin, end - begin, fragment.deleted, fragment.num_deleted)
        return 0

    cdef int find_places(self) except -1:
        """Find the fragments of rows that are given with the position of their fragment."""
        cdef int64_t i = 0, stop, position, n = self.num_rows, k
        while i < n:
            position = self.found[i] >> 32
            stop = i + 1 + lc_rows_find(self.found + i, n - i, (position << 32) + 0xFFFFFFFF)
            for k in range(i, stop):
                self.found[k] &= 0xFFFFFFFF
            if self.pending is not None and position not in self.taker.fragments:
                self.pending.append((self.taker, position))
            else:
                self.add(self.taker.fragment(position), i, stop)
            i = stop
        return 0

    cdef int add(self, FragmentTaker fragment, int64_t begin, int64_t end) except -1:
        """Add rows [begin, end) of a fragment."""
        cdef int64_t c
        cdef lc_column_segment segment
        self.held.append(fragment)
        if self.found[end - 1] >= fragment.rows:
            raise CodecError(f"row {self.found[end - 1]} is outside a fragment of {fragment.rows} rows")
        for c in range(self.taker.num_columns):
            if self.states[c] != OPEN:
                continue
            column = <object>PyList_GET_ITEM(fragment.columns, c)
            if column is not None and column is not ADDRESSES:
                self.add_column(c, <ColumnTaker>column, begin, end)
            elif column is ADDRESSES and self.taker.shapes[c].width == 8 and not self.taker.shapes[c].listed:
                segment.page, segment.begin, segment.end, segment.base = NULL, begin, end, fragment.address
                self.push(c, segment)
            else:
                self.states[c] = MISSING
        return 0

    cdef int add_column(self, int64_t c, ColumnTaker column, int64_t begin, int64_t end) except -1:
        cdef lc_column_segment segment
        cdef int64_t number
        if column.width != self.taker.shapes[c].width:
            raise CodecError(f"column {c} has values of {column.width} bytes, not of {self.taker.shapes[c].width}")
        while begin < end:
            number = lc_rows_find(column.firsts, column.count, self.found[begin])
            if self.pending is not None and not column.is_open(number):
                self.pending.append((column, number))
                begin += 1 + lc_rows_find(self.found + begin, end - begin, column.firsts[number + 1] - 1)
                continue
            segment.page = column.page(number)
            if segment.page == NULL:
                self.states[c] = MISSING
                return 0
            if segment.page.lists != NULL and not self.taker.shapes[c].listed:
                raise CodecError(f"page {number} of column {c} has lists, but its column does not")
            if segment.page.blocks != NULL and not self.waits:
                self.waits = (<FileBlocks><object>segment.page.blocks.owner).lend is None
            segment.begin, segment.base = begin, column.firsts[number]
            begin += 1 + lc_rows_find(self.found + begin, end - begin, column.firsts[number + 1] - 1)
            segment.end = begin
            self.push(c, segment)
        return 0

    cdef int push(self, int64_t c, lc_column_segment segment) except -1:
        if lc_segments_add(self.segments + c, segment):
            raise MemoryError("rows of many pages")
        return 0

    def decode(self, int64_t column):
        """Decode a column. Threads may decode different columns at the same time. The GIL is released for larger
        columns, and while bytes are loaded from files that are not mapped.

        Parameters
        ----------
        column
            Number of the column. A column that is damaged becomes missing.

        Raises
        ------
        CodecError
            There is no such column, or another thread is decoding it.
        """
        cdef lc_column_rows rows
        cdef lc_needs needs
        cdef int problem
        cdef lc_array *out
        if column < 0 or column >= self.taker.num_columns:
            raise CodecError(f"there is no column {column}")
        if self.states[column] == DECODING:
            raise CodecError(f"another thread is decoding column {column}")
        if self.states[column] != OPEN:
            return
        self.states[column] = DECODING
        memset(&needs, 0, sizeof(lc_needs))
        out = self.arrays + column
        rows.rows, rows.places, rows.n = self.found, self.order, self.num_rows
        problem = self.load(column, &needs)
        if problem:
            pass
        elif self.num_rows <= FEW_ROWS and self.expected(column) <= FEW_BYTES:
            problem = lc_column_take(self.taker.shapes + column, &rows, self.segments + column, automaton, out)
        else:
            with nogil:
                problem = lc_column_take(self.taker.shapes + column, &rows, self.segments + column, automaton, out)
        lc_needs_close(&needs)
        self.states[column] = MISSING if problem else DECODED

    cdef int needs_of(self, int64_t column, lc_needs *needs) noexcept:
        """Add the bytes that a column needs of those that are known now; return a problem number."""
        cdef lc_column_rows rows
        cdef int problem
        rows.rows, rows.places, rows.n = self.found, self.order, self.num_rows
        if self.num_rows <= FEW_ROWS:
            return lc_column_needs(&rows, self.segments + column, needs)
        with nogil:
            problem = lc_column_needs(&rows, self.segments + column, needs)
        return problem

    cdef int load(self, int64_t column, lc_needs *needs) except? -2:
        """Load what a column needs; return a problem number. A column whose bytes cannot be loaded becomes missing."""
        cdef int problem, _attempt
        for _attempt in range(LOADS):
            problem = self.needs_of(column, needs)
            if problem or needs.count == 0:
                return problem
            try:
                load_needs(needs)
            except Exception:
                return LC_NO_DATA
            except BaseException:
                lc_needs_close(needs)
                self.states[column] = MISSING
                raise
        return LC_NO_DATA

    def requests(self):
        """Return what has to be loaded before columns are decoded without waiting.

        Load all of it at the same time, and ask again until the list is empty: the places of values may be known only
        after others were loaded. Without these calls, `decode` loads the bytes of one column after the other.

        Returns
        -------
        list of tuple
            Pairs of a `FileBlocks` and the argument of its `load`.

        Raises
        ------
        MemoryError
            There is not enough memory.
        """
        cdef int64_t c
        cdef Held loaded = new_held(None)
        loaded.owners = self.held
        for c in range(self.taker.num_columns):
            if self.states[c] == OPEN and self.needs_of(c, &loaded.needs):
                self.states[c] = MISSING
        self.loaded = loaded  # it has pinned what the one before it has
        return needed_ranges(&loaded.needs)

    cdef int64_t expected(self, int64_t column):
        """Estimate the size of the rows of a column in bytes."""
        cdef lc_column_segments *segments = self.segments + column
        cdef int64_t i, total = 0
        for i in range(segments.count):
            if segments.at[i].page != NULL:
                total += (segments.at[i].end - segments.at[i].begin) * lc_take_expected(segments.at[i].page)
        return total

    def decode_all(self):
        """Decode all columns, one after the other."""
        cdef int64_t c
        for c in range(self.taker.num_columns):
            self.decode(c)

    @property
    def missing(self):
        """List of the columns that are not decoded or could not be decoded, ascending."""
        cdef int64_t c
        return [c for c in range(self.taker.num_columns) if self.states[c] != DECODED]

    def column(self, int64_t column):
        """Return the address of a decoded column.

        Parameters
        ----------
        column
            Number of the column.

        Returns
        -------
        int
            Address of a ``struct ArrowArray`` of the Arrow C data interface. The importer becomes the owner of the
            buffers.

        Raises
        ------
        CodecError
            There is no such column, or it was not decoded.
        """
        if column < 0 or column >= self.taker.num_columns or self.states[column] != DECODED:
            raise CodecError(f"there is no column {column}")
        return <uintptr_t>(self.arrays + column)

    def batch(self):
        """Return the address of a struct array of all columns. Single columns are not available afterwards.

        Returns
        -------
        int
            Address of a ``struct ArrowArray`` of the Arrow C data interface. The importer becomes the owner of the
            buffers.

        Raises
        ------
        CodecError
            A column is missing or was exported before.
        MemoryError
            There is not enough memory.
        """
        cdef int64_t c
        for c in range(self.taker.num_columns):
            if self.states[c] != DECODED or self.arrays[c].release == NULL:
                raise CodecError(f"column {c} was not decoded")
        if self.given:
            raise CodecError("the columns were exported already")
        if lc_array_make(&self.whole, self.num_rows, 1, self.taker.num_columns) == NULL:
            raise MemoryError(f"{self.taker.num_columns} columns")
        for c in range(self.taker.num_columns):
            self.whole.children[c][0] = self.arrays[c]
            self.arrays[c].release = NULL
            self.states[c] = MISSING
        self.given = True
        return <uintptr_t>&self.whole


cdef TakenRows begin(RowTaker taker, const int64_t *keys, int64_t n):
    """Start a take: sort the rows."""
    cdef TakenRows taken = TakenRows.__new__(TakenRows)
    cdef int64_t columns = taker.num_columns
    if n == 0:
        raise CodecError("the rows to take are empty")
    taken.taker, taken.num_rows, taken.held, taken.num_columns = taker, n, [], columns
    taken.memory = <int64_t *>malloc(4 * n * sizeof(int64_t))
    taken.segments = <lc_column_segments *>calloc(
        columns + 1, sizeof(lc_column_segments) + sizeof(lc_array) + sizeof(uint8_t))
    if taken.memory == NULL or taken.segments == NULL:
        raise MemoryError(f"{n} rows")
    taken.arrays = <lc_array *>(taken.segments + columns + 1)
    taken.states = <uint8_t *>(taken.arrays + columns + 1)
    taken.found = taken.memory
    if n <= FEW_ROWS:
        order_rows(taken, keys)
    else:
        with nogil:
            order_rows(taken, keys)
    return taken


cdef void order_rows(TakenRows taken, const int64_t *keys) noexcept nogil:
    """Sort the keys unless they ascend. A copy is used, because the caller's memory may change during the call."""
    cdef int64_t n = taken.num_rows, i
    memcpy(taken.found, keys, n * sizeof(int64_t))
    if lc_rows_look(taken.found, n, &taken.low, &taken.high):
        return
    taken.order = taken.memory + n
    for i in range(n):
        taken.order[i] = i
    lc_rows_sort(taken.found, taken.order, n, taken.low, taken.high, taken.memory + 2 * n)


def integers(list values not None):
    """Convert a list of integers to an int64 array.

    Parameters
    ----------
    values
        List of any objects.

    Returns
    -------
    memoryview or None
        The numbers as int64. None if an object is not an `int` from 0 to 2**63 - 1; subclasses are not accepted.

    Raises
    ------
    TypeError
        `values` is not a list.
    """
    cdef int64_t n = PyList_GET_SIZE(values), i, value
    cdef array.array out = array.clone(INTEGERS, n, zero=False)
    cdef int64_t *at = <int64_t *>out.data.as_voidptr
    cdef int overflow = 0
    cdef object item
    for i in range(n):
        if i >= PyList_GET_SIZE(values):
            return None
        item = <object>PyList_GET_ITEM(values, i)
        if not PyLong_CheckExact(item):
            return None
        value = PyLong_AsLongLongAndOverflow(item, &overflow)
        if overflow or value < 0:
            return None
        at[i] = value
    return memoryview(out)
