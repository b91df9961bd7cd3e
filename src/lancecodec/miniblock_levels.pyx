"""Repetition and definition levels of mini-block chunks, and the repetition index that locates rows in them.

A level codec is a pair (kind, bits): (`FLAT`, 0), (`INLINE`, 0), (`RLE`, 0), or `OUT_OF_LINE` with the number of packed
bits, 0 to 16. Levels have 16 bits, little-endian.
"""

from cpython cimport array
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from lancecodec.buffers cimport ByteView, check_aligned, readable, writable
from lancecodec.miniblock cimport LC_CHUNK_MISSING, Chunks, lc_chunks
from lancecodec.problems cimport LC_BAD_COUNT, fail

import array

from lancecodec.errors import CodecError

cdef extern from "kernels/miniblock_levels.h" nogil:
    int LC_LEVEL_NONE, LC_LEVEL_FLAT, LC_LEVEL_INLINE, LC_LEVEL_RLE, LC_LEVEL_OUT_OF_LINE
    ctypedef struct lc_level_codec:
        int64_t kind
        int64_t width
        int64_t top
    ctypedef struct lc_level_codecs:
        lc_level_codec repetition
        lc_level_codec definition
        int64_t visible
    int lc_levels_begins(const lc_chunks *chunks, const lc_level_codecs *codecs, int64_t first, int64_t stop,
                         int64_t *begins, int64_t *where)
    int lc_levels_scan(const lc_chunks *chunks, const lc_level_codecs *codecs, int64_t first, int64_t stop,
                       uint8_t *repetition, uint8_t *definition, int64_t capacity, int64_t *total, int64_t *where)
    int64_t lc_levels_rows(const uint8_t *repetition, const uint8_t *definition, int64_t n, int64_t top,
                           int64_t visible, int64_t rows, int64_t *entries, int64_t *values)
    int lc_repetition_index_parse(const uint8_t *pairs, int64_t chunks, int64_t rows, int64_t *started, int64_t *ended,
                                  int64_t *where)

cdef extern from "kernels/miniblock_rows.h" nogil:
    ctypedef struct lc_level_cursor:
        const lc_chunks *chunks
        const lc_level_codecs *codecs
        int64_t chunk
        uint8_t *rep
        uint8_t *definition "def"
    ctypedef struct lc_row_levels:
        uint8_t *rep
        uint8_t *definition "def"
        int64_t entries
    int lc_rows_take(lc_level_cursor *cursor, const int64_t *started, const int64_t *rows, int64_t n,
                     lc_row_levels *out, int64_t *begins, int64_t *counts, int64_t *where)
    int lc_levels_take(const lc_chunks *chunks, const lc_level_codecs *codecs, const int64_t *items, int64_t n,
                       uint8_t *scratch, uint8_t *out, int64_t *where)

FLAT = LC_LEVEL_FLAT
INLINE = LC_LEVEL_INLINE
RLE = LC_LEVEL_RLE
OUT_OF_LINE = LC_LEVEL_OUT_OF_LINE

cdef tuple KINDS = (LC_LEVEL_FLAT, LC_LEVEL_INLINE, LC_LEVEL_RLE, LC_LEVEL_OUT_OF_LINE)
cdef array.array INTEGERS = array.array("q")


cdef lc_level_codec level_codec(object codec, int64_t top, str what) except *:
    cdef lc_level_codec parsed
    parsed.kind, parsed.width, parsed.top = LC_LEVEL_NONE, 0, top
    if codec is None:
        return parsed
    parsed.kind, parsed.width = codec
    if parsed.kind not in KINDS:
        raise CodecError(f"unknown level codec {parsed.kind}")
    if parsed.kind == LC_LEVEL_OUT_OF_LINE and not 0 <= parsed.width <= 16:
        raise CodecError(f"{what} levels cannot be packed to {parsed.width} bits, only to 0 to 16")
    if top < 0 or top > 65535:
        raise CodecError(f"the largest {what} level cannot be {top}")
    return parsed


cdef class Levels:
    """Levels of the chunks of a page. General compression of the values does not affect them.

    Parameters
    ----------
    chunks
        `Chunks` of the page.
    repetition, definition
        Level codecs of the streams. They are None exactly if the chunks do not have the stream.
    max_repetition, max_definition
        Largest levels of the layers.
    max_visible
        Largest definition level of an entry that owns a value.

    Raises
    ------
    CodecError
        A codec does not exist, does not match the streams of the chunks, or a level is out of range.
    """

    cdef Chunks chunks
    cdef lc_level_codecs codecs

    def __cinit__(self, Chunks chunks not None, *, repetition=None, definition=None, int64_t max_repetition=0,
                  int64_t max_definition=0, int64_t max_visible=0):
        if (repetition is not None) != chunks.chunks.repetition or (definition is not None) != chunks.chunks.definition:
            raise CodecError("the level codecs do not match the level streams of the chunks")
        if max_visible < 0 or max_visible > max_definition:
            raise CodecError(f"visible levels up to {max_visible} of definition levels up to {max_definition}")
        self.chunks = chunks
        self.codecs.repetition = level_codec(repetition, max_repetition, "repetition")
        self.codecs.definition = level_codec(definition, max_definition, "definition")
        self.codecs.visible = max_visible

    cdef int check(self, int64_t first, int64_t stop) except -1:
        if first < 0 or stop < first or stop > self.chunks.chunks.table.count:
            raise CodecError(f"chunks {first} to {stop} are outside a page of {self.chunks.chunks.table.count} chunks")
        return 0

    def begins(self, int64_t first, int64_t stop):
        """Count the entries in front of each chunk of a range, from the headers of the chunks. The caller should cache
        the result.

        Parameters
        ----------
        first, stop
            Range ``[first, stop)`` of chunks.

        Returns
        -------
        memoryview
            Read-only, int64, ``stop - first + 1`` entries: number of entries in front of each chunk, then of all.

        Raises
        ------
        CodecError
            The range is outside of the page, a chunk was not loaded or its header is damaged.
        """
        cdef array.array out
        cdef int64_t where = 0
        cdef int problem
        cdef int64_t *begins
        self.check(first, stop)
        out = array.clone(INTEGERS, stop - first + 1, zero=True)
        begins = <int64_t *>out.data.as_voidptr
        with nogil:
            problem = lc_levels_begins(&self.chunks.chunks, &self.codecs, first, stop, begins, &where)
        if problem:
            self.chunks.fail(problem, where, "levels")
        return memoryview(out).toreadonly()

    def scan(self, int64_t first, int64_t stop, repetition=None, definition=None):
        """Decode the levels of a range of chunks.

        Parameters
        ----------
        first, stop
            Range ``[first, stop)`` of chunks.
        repetition, definition
            Outputs for the levels, 16 bits per entry, or None. A stream without an output is not read.

        Returns
        -------
        int
            Number of entries.

        Raises
        ------
        CodecError
            An output is too small, a level does not exist, or the number of entries that own a value differs from the
            number of values in the chunk. If both streams exist, this is checked only with `definition`; otherwise the
            entries are counted.
        """
        cdef ByteView view
        cdef uint8_t *rep = NULL
        cdef uint8_t *levels = NULL
        cdef int64_t capacity = 2**62, total = 0, where = 0
        cdef int problem
        cdef list outputs = []
        self.check(first, stop)
        if (repetition is not None and self.codecs.repetition.kind == LC_LEVEL_NONE) or (
                definition is not None and self.codecs.definition.kind == LC_LEVEL_NONE):
            raise CodecError("an output was given for a stream the page does not have")
        if repetition is not None:
            view = writable(repetition)
            outputs.append(view)
            rep, capacity = view.data, view.size // 2
        if definition is not None:
            view = writable(definition)
            outputs.append(view)
            levels, capacity = view.data, min(capacity, view.size // 2)
        with nogil:
            problem = lc_levels_scan(&self.chunks.chunks, &self.codecs, first, stop, rep, levels, capacity, &total,
                                     &where)
        if problem:
            self.chunks.fail(problem, where, "levels")
        return total

    def take(self, const int64_t[::1] items not None, definition):
        """Decode the definition levels of values at given positions, in a page without lists.

        Parameters
        ----------
        items
            int64 array of value positions in the page, in any order.
        definition
            Output of 16 bits per position.

        Raises
        ------
        CodecError
            The page has lists or no definition levels, a position is outside of the page, a chunk was not loaded or is
            damaged, or `definition` is too small.
        MemoryError
            There is not enough memory.
        """
        cdef ByteView target = writable(definition)
        cdef int64_t n = items.shape[0], where = 0
        cdef int problem
        cdef uint8_t *scratch
        if self.codecs.repetition.kind != LC_LEVEL_NONE or self.codecs.definition.kind == LC_LEVEL_NONE:
            raise CodecError("single levels can be taken from pages with definition levels and without lists")
        if target.size // 2 < n:
            raise CodecError(f"output of {target.size} bytes is too small for {n} levels")
        check_aligned(&items[0])
        scratch = <uint8_t *>malloc(2 * self.chunks.chunks.table.largest + 2)
        if scratch == NULL:
            raise MemoryError()
        with nogil:
            problem = lc_levels_take(&self.chunks.chunks, &self.codecs, &items[0], n, scratch, target.data, &where)
        free(scratch)
        if problem:
            self.chunks.fail(problem, where, "levels")

    def take_rows(self, RepetitionIndex index not None, const int64_t[::1] rows not None, int64_t[::1] begins not None,
                  int64_t[::1] counts not None):
        """Decode the levels of whole rows, in a page with lists.

        Parameters
        ----------
        index
            `RepetitionIndex` of the page.
        rows
            int64 array of row numbers, in any order. Ascending rows are fastest.
        begins, counts
            Output int64 arrays with an entry per row: its first value in the page, and its number of values.

        Returns
        -------
        repetition : bytes
            Repetition levels of 16 bits, row after row.
        definition : bytes or None
            Definition levels, or None if the page has no such stream.

        Raises
        ------
        CodecError
            A row is outside of the page, a chunk was not loaded or is damaged, or an output is too small.
        MemoryError
            There is not enough memory.
        """
        cdef lc_level_cursor cursor
        cdef lc_row_levels out
        cdef int64_t n = rows.shape[0], where = 0
        cdef int problem
        cdef const int64_t *started = <const int64_t *>index.started_array.data.as_voidptr
        if self.codecs.repetition.kind == LC_LEVEL_NONE or index.num_chunks != self.chunks.chunks.table.count:
            raise CodecError("the repetition index does not match these levels")
        if begins.shape[0] < n or counts.shape[0] < n:
            raise CodecError(f"outputs of {begins.shape[0]} and {counts.shape[0]} entries for {n} rows")
        check_aligned(&rows[0])
        check_aligned(&begins[0])
        check_aligned(&counts[0])
        memset(&cursor, 0, sizeof(cursor))
        memset(&out, 0, sizeof(out))
        cursor.chunks, cursor.codecs, cursor.chunk = &self.chunks.chunks, &self.codecs, -1
        try:
            with nogil:
                problem = lc_rows_take(&cursor, started, &rows[0], n, &out, &begins[0], &counts[0], &where)
            if problem:
                fail_at(self.chunks, problem, rows[where])
            return (levels_of(out.rep, out.entries),
                    levels_of(out.definition, out.entries) if self.chunks.chunks.definition else None)
        finally:
            free(cursor.rep)
            free(cursor.definition)
            free(out.rep)
            free(out.definition)


cdef bytes levels_of(const uint8_t *levels, int64_t n):
    return b"" if n == 0 else PyBytes_FromStringAndSize(<const char *>levels, 2 * n)


cdef int fail_at(Chunks chunks, int problem, int64_t row) except -1:
    if problem >= LC_CHUNK_MISSING:
        raise CodecError(f"row {row} is outside the page, or lies in a chunk that was not loaded")
    return fail(problem, f"levels of row {row}")


def row_starts(repetition, definition, int64_t length, int64_t max_repetition, int64_t max_visible,
               int64_t[::1] entries not None, int64_t[::1] values not None):
    """Find the starts of rows in decoded levels.

    Entries in front of the first row start belong to a row that started in an earlier chunk.

    Parameters
    ----------
    repetition
        Repetition levels of at least `length` entries.
    definition
        Definition levels of at least `length` entries, or None if every entry owns a value.
    length
        Number of entries.
    max_repetition
        Repetition level that rows start with.
    max_visible
        Largest definition level of an entry that owns a value.
    entries, values
        Output int64 arrays with one element more than there are rows: the entry at which each row starts and the number
        of values in front of it, then the number of all entries and of all values.

    Returns
    -------
    int
        Number of rows that start.

    Raises
    ------
    CodecError
        A buffer is too small.
    """
    cdef ByteView rep = readable(repetition), levels = None
    cdef const uint8_t *seen = NULL
    cdef int64_t rows = min(entries.shape[0], values.shape[0]) - 1, found
    if rows < 0:
        raise CodecError("the outputs need one entry more than there are rows")
    if length < 0 or rep.size // 2 < length:
        raise CodecError(f"{rep.size} bytes are not {length} repetition levels")
    if definition is not None:
        levels = readable(definition)
        if levels.size // 2 < length:
            raise CodecError(f"{levels.size} bytes are not {length} definition levels")
        seen = levels.data
    check_aligned(&entries[0])
    check_aligned(&values[0])
    with nogil:
        found = lc_levels_rows(rep.data, seen, length, max_repetition, max_visible, rows, &entries[0], &values[0])
    if found < 0:
        fail(LC_BAD_COUNT, f"levels of more than the expected {rows} rows")
    return found


cdef class RepetitionIndex:
    """Index of the chunks in which rows start and end: the last page buffer of pages with lists.

    Parameters
    ----------
    data
        A pair of 64-bit integers per chunk, as `levels.repetition_index` writes them.
    num_chunks
        Number of chunks.
    num_rows
        Number of rows in the page.

    Attributes
    ----------
    num_chunks, num_rows : int
        The arguments.

    Raises
    ------
    CodecError
        `data` has the wrong size, or the rows do not add up.
    """

    cdef array.array started_array
    cdef array.array ended_array
    cdef readonly int64_t num_chunks
    cdef readonly int64_t num_rows

    def __cinit__(self, data, int64_t num_chunks, int64_t num_rows):
        cdef ByteView view = readable(data)
        cdef int64_t where = 0
        cdef int problem
        cdef int64_t *started
        cdef int64_t *ended
        if num_chunks < 0 or num_rows < 0 or view.size % 16 or view.size // 16 != num_chunks:
            raise CodecError(f"a repetition index of {view.size} bytes is not one of {num_chunks} chunks")
        self.num_chunks, self.num_rows = num_chunks, num_rows
        self.started_array = array.clone(INTEGERS, num_chunks + 1, zero=True)
        self.ended_array = array.clone(INTEGERS, num_chunks + 1, zero=True)
        started = <int64_t *>self.started_array.data.as_voidptr
        ended = <int64_t *>self.ended_array.data.as_voidptr
        with nogil:
            problem = lc_repetition_index_parse(view.data, num_chunks, num_rows, started, ended, &where)
        if problem:
            fail(problem, f"repetition index of {num_rows} rows, chunk {where} of {num_chunks}")

    @property
    def started(self):
        """Read-only int64 memoryview of ``num_chunks + 1`` entries: rows that start in front of each chunk, then all
        rows.
        """
        return memoryview(self.started_array).toreadonly()

    @property
    def ended(self):
        """Read-only int64 memoryview of ``num_chunks + 1`` entries: rows that end in front of each chunk, then all
        rows.
        """
        return memoryview(self.ended_array).toreadonly()

    def chunk_range(self, int64_t start, int64_t stop):
        """Find the chunks of a range of rows.

        Parameters
        ----------
        start, stop
            Range ``[start, stop)`` of rows.

        Returns
        -------
        first : int
            First chunk with entries of the rows.
        last : int
            Chunk behind the last one.
        skip : int
            Number of row starts in these chunks in front of row `start`. All three are 0 for an empty range.

        Raises
        ------
        CodecError
            The range is outside of the page.
        """
        if start < 0 or stop < start or stop > self.num_rows:
            raise CodecError(f"rows {start} to {stop} are outside a page of {self.num_rows} rows")
        if start == stop:
            return 0, 0, 0
        cdef int64_t *started = <int64_t *>self.started_array.data.as_voidptr
        cdef int64_t *ended = <int64_t *>self.ended_array.data.as_voidptr
        cdef int64_t first = last_at_most(started, self.num_chunks, start)
        return first, last_at_most(ended, self.num_chunks, stop - 1) + 1, start - started[first]


cdef int64_t last_at_most(const int64_t *values, int64_t n, int64_t limit):
    """Return the last i < n with values[i] <= limit; values ascend and values[0] is 0."""
    cdef int64_t low = 0, high = n, middle
    while high - low > 1:
        middle = (low + high) // 2
        if values[middle] <= limit:
            low = middle
        else:
            high = middle
    return low
