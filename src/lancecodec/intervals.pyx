"""Tests whether fixed-width values lie in intervals, with bitmaps as results, of plain values and of mini-block pages.

Values are compared by their *keys*: unsigned integers of the same width in the order of the values. `UNSIGNED` values
are their own keys. `SIGNED` integers have their sign flipped. `FLOAT` values are in total order: NaN with a sign, then
numbers with -0.0 before 0.0, then NaN without one.

`NONE_PASS`, `ALL_PASS` and `SOME_PASS` say whether the values of a zone pass a test.

Bit i of an output (bit ``i % 8`` of byte ``i // 8``) belongs to value i.
"""

from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Malloc
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

from lancecodec.buffers cimport ByteView, readable, writable
from lancecodec.miniblock cimport Chunks, lc_chunks

from lancecodec.errors import CodecError

cdef extern from "kernels/intervals.h" nogil:
    int64_t LC_MOST_INTERVALS
    int LC_KEY_UNSIGNED, LC_KEY_SIGNED, LC_KEY_FLOAT
    ctypedef struct lc_wide_key:
        uint64_t word
        uint64_t top
    ctypedef struct lc_intervals:
        int64_t bits
        int64_t order
        int64_t count
        lc_wide_key *low
        lc_wide_key *high
    void lc_inside(const uint8_t *values, int64_t n, const lc_intervals *test, uint64_t *out)

cdef extern from "kernels/zones.h" nogil:
    int LC_NONE_INSIDE, LC_ALL_INSIDE, LC_SOME_INSIDE
    void lc_zone_verdicts(const lc_intervals *test, int null, const uint8_t *low, const uint8_t *high,
                          const uint8_t *flags, int64_t n, uint8_t *out)

cdef extern from "kernels/miniblock_search.h" nogil:
    int LC_VALUE_NONE, LC_VALUE_FLAT, LC_VALUE_SPLIT, LC_VALUE_RLE
    int LC_LEVEL_NONE, LC_LEVEL_FLAT, LC_LEVEL_INLINE, LC_LEVEL_RLE, LC_LEVEL_OUT_OF_LINE
    ctypedef struct lc_value_codec:
        int64_t kind
        int64_t bits
        int64_t buffer
    ctypedef struct lc_level_codec:
        int64_t kind
        int64_t width
        int64_t top
    ctypedef struct lc_chunk_ranges:
        uint64_t *low
        uint64_t *high
        uint64_t *low_top
        uint64_t *high_top
        uint8_t *known
    ctypedef struct lc_chunk_search:
        const lc_chunks *chunks
        lc_value_codec codec
        int64_t entries
        const uint8_t *marks
        lc_level_codec nulls
        const lc_intervals *test
        int null
        lc_chunk_ranges ranges
        const uint8_t *kept
        uint8_t *values
        uint8_t *levels
        uint64_t *inside
        uint64_t *valid
    int lc_chunks_search(const lc_chunk_search *search, int64_t a, int64_t b, uint8_t *out, int64_t *where)

MOST_INTERVALS = LC_MOST_INTERVALS
NONE_PASS, ALL_PASS, SOME_PASS = LC_NONE_INSIDE, LC_ALL_INSIDE, LC_SOME_INSIDE
UNSIGNED, SIGNED, FLOAT = LC_KEY_UNSIGNED, LC_KEY_SIGNED, LC_KEY_FLOAT

cdef object WORD = (1 << 64) - 1
cdef tuple ORDERS = (LC_KEY_UNSIGNED, LC_KEY_SIGNED, LC_KEY_FLOAT)
cdef tuple LEVEL_KINDS = (LC_LEVEL_FLAT, LC_LEVEL_INLINE, LC_LEVEL_RLE, LC_LEVEL_OUT_OF_LINE)


cdef lc_level_codec level_codec(object codec) except *:
    """Return the codec of levels of which 1 is the largest."""
    cdef lc_level_codec parsed = lc_level_codec(LC_LEVEL_NONE, 0, 1)
    if codec is None:
        return parsed
    parsed.kind, parsed.width = codec
    if parsed.kind not in LEVEL_KINDS or not 0 <= parsed.width <= 16:
        raise CodecError(f"unknown level codec {parsed.kind} of {parsed.width} bits")
    return parsed


cdef lc_wide_key wide_key(object key) except *:
    """Return a key of up to 128 bits as words."""
    return lc_wide_key(key & WORD, key >> 64)


cdef class IntervalTest:
    """A test whether values lie in one of some intervals.

    Parameters
    ----------
    bits
        Size of a value in bits: 8, 16, 32, 64 or 128.
    order
        `UNSIGNED`, `SIGNED` or `FLOAT`. Floats have 32 or 64 bits.
    intervals
        Pairs of the least and the greatest key of each interval, ascending, at most `MOST_INTERVALS`. Intervals neither
        overlap nor touch. Without any, no value passes.
    null
        Whether nulls pass.

    Attributes
    ----------
    bits : int
        Size of a value in bits.
    null : bool
        Whether nulls pass.

    Raises
    ------
    CodecError
        An argument is out of range, or the intervals are not in order.
    """

    cdef lc_intervals test
    cdef readonly bint null

    def __cinit__(self, int64_t bits, int64_t order, intervals, *, bint null=False):
        cdef int64_t i = 0
        if bits not in (8, 16, 32, 64, 128) or order not in ORDERS or (order == LC_KEY_FLOAT and bits not in (32, 64)):
            raise CodecError(f"values of {bits} bits in order {order} cannot be tested")
        if len(intervals) > LC_MOST_INTERVALS:
            raise CodecError(f"{len(intervals)} intervals; at most {LC_MOST_INTERVALS} are supported")
        last, limit = -2, (<object>1) << bits
        for low, high in intervals:
            if not last + 1 < low <= high < limit:
                raise CodecError(f"interval {i}, {low} to {high}, is empty, too large, or touches the one before")
            self.test.low[i], self.test.high[i] = wide_key(low), wide_key(high)
            last = high
            i += 1
        self.test.bits, self.test.order, self.test.count, self.null = bits, order, i, null

    @property
    def bits(self):
        """Size of a value in bits."""
        return self.test.bits

    @property
    def order(self):
        """Order of the values."""
        return self.test.order

    def verdicts(self, low, high, flags, out):
        """Tell what is certain of the values of zones.

        Parameters
        ----------
        low, high, flags
            Bounds and flags of n zones of values of this order, as `lancecodec.zones.ZoneBounds.write` returns them.
        out
            Output of n bytes: `NONE_PASS`, `ALL_PASS`, or `SOME_PASS`, which means that nothing is certain.

        Raises
        ------
        CodecError
            A buffer is too small.
        """
        cdef ByteView lows = readable(low), highs = readable(high), marks = readable(flags), target = writable(out)
        cdef int64_t n = marks.size
        if lows.size < 16 * n or highs.size < 16 * n or target.size < n:
            raise CodecError(f"bounds of {lows.size} and {highs.size} bytes and {target.size} verdicts for {n} zones")
        with nogil:
            lc_zone_verdicts(&self.test, self.null, lows.data, highs.data, marks.data, n, target.data)

    def values(self, values, out):
        """Test plain values. Nulls are not treated specially.

        Parameters
        ----------
        values
            n values.
        out
            Output bitmap of at least ``ceil(n / 8)`` bytes; the other bits of the last byte become 0.

        Raises
        ------
        CodecError
            `values` is not a whole number of values, or `out` is too small.
        MemoryError
            There is not enough memory.
        """
        cdef ByteView source = readable(values), target = writable(out)
        cdef int64_t width = self.test.bits // 8, n = source.size // width, size = (n + 7) // 8
        cdef uint64_t *words
        if source.size % width or target.size < size:
            raise CodecError(f"{source.size} bytes of values of {width} bytes do not fit {target.size} bytes of bits")
        words = <uint64_t *>PyMem_Malloc(<size_t>(size + 8))
        if words == NULL:
            raise MemoryError(f"{size} bytes of bits")
        with nogil:
            lc_inside(source.data, n, &self.test, words)
            memcpy(target.data, words, <size_t>size)
        PyMem_Free(words)


cdef class ChunkRanges:
    """Ranges of the keys of the chunks of a page, as far as searches have found them. Threads may share them.

    Parameters
    ----------
    count
        Number of chunks of the page.
    wide
        Whether keys have 128 bits.

    Raises
    ------
    CodecError
        `count` is negative.
    MemoryError
        There is not enough memory.
    """

    cdef lc_chunk_ranges ranges
    cdef int64_t count

    def __cinit__(self, int64_t count, *, bint wide=False):
        cdef int64_t words = 4 if wide else 2
        if count < 0:
            raise CodecError(f"a page of {count} chunks")
        self.count = count
        self.ranges.low = <uint64_t *>PyMem_Calloc(<size_t>(count + 1), <size_t>(8 * words + 1))
        if self.ranges.low == NULL:
            raise MemoryError(f"ranges of {count} chunks")
        self.ranges.high = self.ranges.low + count
        if wide:
            self.ranges.low_top, self.ranges.high_top = self.ranges.high + count, self.ranges.high + 2 * count
        self.ranges.known = <uint8_t *>(self.ranges.low + words * count)

    def __dealloc__(self):
        PyMem_Free(self.ranges.low)

    def __len__(self):
        return self.count

    def __getitem__(self, int64_t chunk):
        """Return least and greatest key of the values of a chunk, None if they are not known."""
        if chunk < 0 or chunk >= self.count:
            raise IndexError(f"chunk {chunk} of {self.count}")
        if not self.ranges.known[chunk] & 1:
            return None
        low, high = self.ranges.low[chunk], self.ranges.high[chunk]
        if self.ranges.low_top == NULL:
            return low, high
        return low | <object>self.ranges.low_top[chunk] << 64, high | <object>self.ranges.high_top[chunk] << 64


cdef int prepare(lc_chunk_search *search, Chunks chunks, object definition, IntervalTest test,
                 ChunkRanges ranges) except -1:
    """Fill in what all searches have in common."""
    if ranges.count != chunks.chunks.table.count:
        raise CodecError(f"{ranges.count} ranges do not fit {chunks.chunks.table.count} chunks")
    if test.test.bits > 64 and ranges.ranges.low_top == NULL:
        raise CodecError(f"ranges of 64 bits do not fit keys of {test.test.bits} bits")
    if chunks.chunks.repetition or (definition is not None) != chunks.chunks.definition:
        raise CodecError("the codec of the levels does not match the level streams of the chunks")
    search.chunks, search.test, search.null, search.ranges = &chunks.chunks, &test.test, test.null, ranges.ranges
    search.nulls = level_codec(definition)
    search.codec, search.entries, search.marks = lc_value_codec(LC_VALUE_NONE, test.test.bits, 0), -1, NULL
    return 0


cdef int set_values(lc_chunk_search *search, int64_t kind, int64_t bits) except -1:
    """Let a search look at the values."""
    if kind < 0 or kind > LC_VALUE_SPLIT or bits != search.test.bits or (kind == LC_VALUE_SPLIT and bits < 32) or (
        kind != LC_VALUE_FLAT and bits > 64
    ):
        raise CodecError(f"values of {bits} bits and codec {kind} cannot be tested as {search.test.bits} bits")
    if search.chunks.buffers < (2 if kind == LC_VALUE_RLE else 1):
        raise CodecError(f"chunks of {search.chunks.buffers} buffers do not have values of codec {kind}")
    search.codec = lc_value_codec(kind, bits, 0)
    return 0


cdef int run(lc_chunk_search *search, Chunks chunks, int64_t start, int64_t stop, object out, object kept) except -1:
    cdef ByteView target = writable(out), mask = None
    cdef int64_t n = stop - start, largest = chunks.chunks.table.largest, words = largest // 64 + 1, where = 0, i
    cdef int problem
    chunks.check_range(start, stop)
    if kept is not None:
        mask = readable(kept)
    if target.size < (n + 7) // 8 or (mask is not None and mask.size < (n + 7) // 8):
        raise CodecError(f"bitmaps are too small for {n} values")
    search.kept = NULL if mask is None else mask.data
    search.values = <uint8_t *>PyMem_Malloc(<size_t>(16 * words + largest * (search.codec.bits // 8 + 2) + 8))
    if search.values == NULL:
        raise MemoryError("scratch for a chunk")
    search.inside = <uint64_t *>search.values
    search.valid = search.inside + words
    search.levels = <uint8_t *>(search.valid + words)
    search.values = search.levels + 2 * largest
    with nogil:
        problem = lc_chunks_search(search, start, stop, target.data, &where)
        if problem == 0 and search.kept != NULL:
            for i in range((n + 7) // 8):
                target.data[i] &= search.kept[i]
    PyMem_Free(search.inside)
    if problem:
        chunks.fail(problem, where, "searched values")
    return 0


def search(Chunks chunks not None, int64_t kind, int64_t bits, definition, IntervalTest test not None,
           ChunkRanges ranges not None, int64_t start, int64_t stop, out, kept=None):
    """Mark the values of a page without lists that pass a test, without storing any value.

    Chunks whose range of keys decides the test are not looked at. The ranges of the others become known.

    Parameters
    ----------
    chunks
        `Chunks` of the page. Those with values of the range, and with `kept` those with values that are kept, must be
        loaded.
    kind, bits
        Codec of the values (see `miniblock_values`), and their size, which is that of the test.
    definition
        Codec of the definition levels (see `miniblock_levels`): 0 is a value, 1 a null. None if there are no nulls.
    test
        The test.
    ranges
        Ranges of the keys of all chunks of the page. They belong to values of one order.
    start, stop
        Range ``[start, stop)`` of values.
    out
        Output bitmap of at least ``ceil((stop - start) / 8)`` bytes.
    kept
        Bitmap of the values to look at, None for all. The bits of other values become 0.

    Raises
    ------
    CodecError
        An argument is out of range, or a chunk is not ready or is damaged.
    MemoryError
        There is not enough memory.
    """
    cdef lc_chunk_search search
    prepare(&search, chunks, definition, test, ranges)
    set_values(&search, kind, bits)
    run(&search, chunks, start, stop, out, kept)


def search_indices(Chunks chunks not None, int64_t kind, int64_t bits, definition, IntervalTest test not None,
                   ChunkRanges ranges not None, int64_t start, int64_t stop, out, kept=None, *, int64_t entries,
                   marks=None):
    """Mark the values whose dictionary entry passes, in a page of dictionary indices.

    Every index of a looked-at value must have an entry, unless the value is null.

    Parameters
    ----------
    chunks, kind, bits, definition, ranges, start, stop, out, kept
        As for `search`. The values are indices, and keys in the order `UNSIGNED`.
    test
        Test of the indices, and of nulls. With `marks`, it has at least the indices of all entries that pass.
    entries
        Number of entries.
    marks
        One byte per entry, 1 if it passes and otherwise 0. None if the test of the indices is all.

    Raises
    ------
    CodecError
        An argument is out of range, or a chunk is not ready or is damaged, or an index has no entry.
    MemoryError
        There is not enough memory.
    """
    cdef lc_chunk_search search
    cdef ByteView bytes_of_marks = None
    prepare(&search, chunks, definition, test, ranges)
    set_values(&search, kind, bits)
    if entries < 0 or test.test.order != LC_KEY_UNSIGNED or bits > 64:
        raise CodecError(f"indices of {entries} entries in order {test.test.order} cannot be tested")
    search.entries = entries
    if marks is not None:
        bytes_of_marks = readable(marks)
        if bytes_of_marks.size != entries:
            raise CodecError(f"{bytes_of_marks.size} marks for {entries} entries")
        search.marks = bytes_of_marks.data
    run(&search, chunks, start, stop, out, kept)


def search_nulls(Chunks chunks not None, definition, bint valid, bint null, ChunkRanges ranges not None, int64_t start,
                 int64_t stop, out, kept=None):
    """Mark the values of a page without lists that are null, or those that are not, without looking at any value.

    Parameters
    ----------
    chunks, definition, ranges, start, stop, out, kept
        As for `search`. Chunks need not be decompressed.
    valid, null
        Which of the values are marked.

    Raises
    ------
    CodecError
        An argument is out of range, or a chunk is not loaded, or its levels are damaged.
    MemoryError
        There is not enough memory.
    """
    cdef lc_chunk_search search
    cdef IntervalTest test = IntervalTest(8, LC_KEY_UNSIGNED, [(0, 255)] if valid else [], null=null)
    prepare(&search, chunks, definition, test, ranges)
    run(&search, chunks, start, stop, out, kept)
