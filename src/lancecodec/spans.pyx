"""Spans: runs of values at any positions of one buffer, copied back to back. Files with many small pages are read with
it.

Span k is ``counts[k]`` consecutive values from ``positions[k]`` on. A scan has a span for each page; single rows are
spans of one value each. Spans may be in any order, overlap, and be at any address. An empty span may have any position.
The source may be a mapped file that changes during a call; `positions` and `counts` must not change.
"""

from libc.stdint cimport int64_t, uint8_t

from lancecodec.buffers cimport ByteView, check_aligned, readable, writable
from lancecodec.problems cimport lc_bytes

from lancecodec.errors import CodecError, OffsetOverflowError

cdef extern from "kernels/spans.h" nogil:
    int LC_SPANS_OK, LC_SPANS_COUNT, LC_SPANS_OUTSIDE, LC_SPANS_ROOM, LC_SPANS_OFFSETS, LC_SPANS_OVERFLOW
    ctypedef struct lc_span_list:
        const int64_t *positions
        const int64_t *counts
        int64_t n
    int lc_spans_fixed(lc_bytes src, const lc_span_list *spans, int64_t width, uint8_t *out, int64_t room, int64_t *bad)
    int lc_spans_nothing(const lc_span_list *spans, int64_t *bad)
    int lc_spans_bits(lc_bytes src, const lc_span_list *spans, uint8_t *out, int64_t room, int64_t *bad)
    int lc_spans_offsets(lc_bytes src, const lc_span_list *spans, int wide, int out_wide, uint8_t *out, int64_t room,
                         int64_t *starts, int64_t *sizes, int64_t *total, int64_t *bad)
    int64_t lc_spans_empties(const uint8_t *offsets, int wide, int64_t n, uint8_t *out)
    int LC_BATCH_ROW, LC_BATCH_SHORT
    ctypedef struct lc_batch_pages:
        const int64_t *starts
        const int64_t *positions
        const int64_t *lengths
        int64_t n
        int64_t width
        int64_t scale
    int lc_batches_locate(const lc_batch_pages *pages, const int64_t *rows, int64_t n, int64_t *out, int64_t *bad)
    int lc_batches_take(lc_bytes src, const lc_batch_pages *pages, const int64_t *rows, int64_t n, uint8_t *out,
                        int64_t *bad)


cdef class _Spans:
    """Spans of one buffer, and the error messages about them."""

    cdef ByteView view
    cdef lc_bytes source
    cdef const int64_t[::1] positions, counts
    cdef lc_span_list spans

    def __cinit__(self, src, const int64_t[::1] positions not None, const int64_t[::1] counts not None):
        self.view = readable(src)
        self.source.data, self.source.size = self.view.data, self.view.size
        if positions.shape[0] != counts.shape[0]:
            raise CodecError(f"{positions.shape[0]} positions do not match {counts.shape[0]} counts")
        self.positions, self.counts = positions, counts
        self.spans.positions, self.spans.counts = &positions[0], &counts[0]
        self.spans.n = counts.shape[0]
        check_aligned(self.spans.positions)
        check_aligned(self.spans.counts)

    cdef int reject(self, int problem, int64_t k, str what, str place, int64_t room) except -1:
        cdef int64_t count = self.counts[k]
        if problem == LC_SPANS_COUNT:
            raise CodecError(f"span {k} has {count} {what}")
        if problem == LC_SPANS_ROOM:
            raise CodecError(f"output of {room} bytes is too small for the {what} of spans 0 to {k}")
        place = f"span {k}, {count} {what} at {place} {self.positions[k]}"
        if problem == LC_SPANS_OUTSIDE:
            raise CodecError(f"{place}, is not within the buffer of {self.source.size} bytes")
        if problem == LC_SPANS_OVERFLOW:
            raise OffsetOverflowError(f"{place}: the sizes add up to more than the offsets hold; read fewer values")
        raise CodecError(f"{place}: offsets decrease or are negative")


def fixed(src, positions, counts, int64_t width, out):
    """Copy the fixed-width values of spans.

    Parameters
    ----------
    src
        Source buffer.
    positions
        int64 array with the byte offset of the first value of each span.
    counts
        int64 array with the number of values of each span.
    width
        Size of a value in bytes. With a width of 1, counts are numbers of bytes.
    out
        Output of at least ``sum(counts) * width`` bytes. Bytes behind the last value may be overwritten.

    Raises
    ------
    CodecError
        A count is negative, a span is outside of `src`, or `out` is too small.
    """
    cdef _Spans spans = _Spans(src, positions, counts)
    cdef ByteView target = writable(out)
    cdef int64_t bad = 0
    cdef int problem
    if width < 0:
        raise CodecError(f"value width {width} is negative")
    with nogil:
        if width == 0:
            problem = lc_spans_nothing(&spans.spans, &bad)
        else:
            problem = lc_spans_fixed(spans.source, &spans.spans, width, target.data, target.size, &bad)
    if problem:
        spans.reject(problem, bad, f"values of {width} bytes", "byte", target.size)


def bits(src, positions, counts, out):
    """Copy the bits of spans. Unused bits of the last byte of the output become 0.

    Parameters
    ----------
    src
        Source buffer. Bit b is bit ``b % 8`` of byte ``b // 8``.
    positions
        int64 array with the first bit of each span.
    counts
        int64 array with the number of bits of each span.
    out
        Output bitmap of at least ``ceil(sum(counts) / 8)`` bytes.

    Raises
    ------
    CodecError
        A count is negative, a span is outside of `src`, or `out` is too small.
    """
    cdef _Spans spans = _Spans(src, positions, counts)
    cdef ByteView target = writable(out)
    cdef int64_t bad = 0
    cdef int problem
    with nogil:
        problem = lc_spans_bits(spans.source, &spans.spans, target.data, target.size * 8, &bad)
    if problem:
        spans.reject(problem, bad, "bits", "bit", target.size)


def offsets(src, positions, counts, bint wide, bint out_wide, out, int64_t[::1] starts not None,
            int64_t[::1] sizes not None):
    """Join the offsets of variable-width values or lists. A span of n > 0 values has n + 1 stored offsets.

    Ranges between those of the spans are left out, so span k covers ``sizes[k]`` bytes or items.

    Parameters
    ----------
    src
        Source buffer.
    positions
        int64 array with the byte offset of the first stored offset of each span.
    counts
        int64 array with the number of values of each span.
    wide
        Whether stored offsets are signed integers of 64 bits instead of 32.
    out_wide
        Whether the offsets written have 64 bits instead of 32.
    out
        Output with one offset more than there are values: 0, then the end of each value.
    starts, sizes
        Output int64 arrays with an entry per span: its first stored offset, and the last minus the first. Both are 0
        for an empty span, which is not read. As positions and counts for `fixed` they copy the bytes of strings.

    Returns
    -------
    int
        Sum of `sizes`, which is the last offset.

    Raises
    ------
    CodecError
        Stored offsets decrease or are negative, a count is negative, a span is outside of `src`, or an output is too
        small. The function does not check that the values are inside a buffer.
    OffsetOverflowError
        The sum of `sizes` does not fit the offsets.
    """
    cdef _Spans spans = _Spans(src, positions, counts)
    cdef ByteView target = writable(out)
    cdef int64_t bad = 0, total = 0, room = target.size // (8 if out_wide else 4) - 1
    cdef int problem
    if room < 0:
        raise CodecError(f"output of {target.size} bytes is too small for the first offset")
    if starts.shape[0] < spans.spans.n or sizes.shape[0] < spans.spans.n:
        raise CodecError(f"{starts.shape[0]} starts and {sizes.shape[0]} sizes are too few for {spans.spans.n} spans")
    check_aligned(&starts[0])
    check_aligned(&sizes[0])
    with nogil:
        problem = lc_spans_offsets(spans.source, &spans.spans, wide, out_wide, target.data, room, &starts[0], &sizes[0],
                                   &total, &bad)
    if problem:
        spans.reject(problem, bad, f"values with {64 if wide else 32}-bit offsets", "byte", target.size)
    return total


def empties(offsets, bint wide, int64_t n, out_validity):
    """Compute a bitmap of the values that are not empty. In old files an empty string is null.

    Parameters
    ----------
    offsets
        ``n + 1`` ascending offsets of 32 bits, or 64 if `wide`.
    wide
        Whether the offsets have 64 bits.
    n
        Number of values.
    out_validity
        Output bitmap of at least ``ceil(n / 8)`` bytes. Unused bits of the last byte become 0.

    Returns
    -------
    int
        Number of empty values.

    Raises
    ------
    CodecError
        `n` is negative, or a buffer is too small.
    """
    cdef ByteView ends = readable(offsets), target = writable(out_validity)
    cdef int64_t empty
    if n < 0 or ends.size // (8 if wide else 4) <= n:
        raise CodecError(f"{ends.size} bytes do not hold the {64 if wide else 32}-bit offsets of {n} values")
    if target.size < n // 8 + (n % 8 > 0):
        raise CodecError(f"output of {target.size} bytes is too small for {n} bits")
    with nogil:
        empty = lc_spans_empties(ends.data, wide, n, target.data)
    return empty


cdef class BatchPages:
    """Pages of one field of a table that is stored in batches, for reading single rows.

    Parameters
    ----------
    src
        Content of the file.
    starts
        int64 array with the first row of each batch, beginning with 0, then the number of rows.
    positions, lengths
        int64 arrays with the first byte and the number of values of the page of each batch. They must not change.
    bits
        Size of a value in bits: 1 or a multiple of 8.

    Raises
    ------
    CodecError
        The arrays do not match, or a page starts outside of the file.
    """

    cdef ByteView view
    cdef lc_bytes source
    cdef const int64_t[::1] starts, positions, lengths
    cdef lc_batch_pages pages
    cdef int64_t bits

    def __cinit__(self, src, const int64_t[::1] starts not None, const int64_t[::1] positions not None,
                  const int64_t[::1] lengths not None, int64_t bits):
        cdef int64_t k, room
        self.view = readable(src)
        self.source.data, self.source.size = self.view.data, self.view.size
        if bits < 0 or bits > 2**40 or (bits % 8 and bits != 1):
            raise CodecError(f"a width of {bits} bits is not supported")
        self.starts, self.positions, self.lengths = starts, positions, lengths
        self.pages.n = positions.shape[0]
        if starts.shape[0] != self.pages.n + 1 or lengths.shape[0] != self.pages.n:
            raise CodecError(
                f"{starts.shape[0]} starts, {self.pages.n} positions and {lengths.shape[0]} lengths do not match"
            )
        self.pages.starts, self.pages.positions, self.pages.lengths = &starts[0], &positions[0], &lengths[0]
        for address in (<size_t>self.pages.starts, <size_t>self.pages.positions, <size_t>self.pages.lengths):
            check_aligned(<const int64_t *><size_t>address)
        self.bits = bits
        self.pages.scale = 8 if bits % 8 else 1
        self.pages.width = 1 if bits % 8 else bits // 8
        room = (2**62) // max(self.pages.width, 1)
        for k in range(self.pages.n):
            if positions[k] < 0 or positions[k] > self.source.size or lengths[k] < 0 or starts[k] > starts[k + 1]:
                raise CodecError(f"batch {k}: a page of {lengths[k]} values at byte {positions[k]} is not possible")
            if lengths[k] > room:
                raise CodecError(f"batch {k}: a page of {lengths[k]} values of {bits} bits is too large")
        if starts[0] != 0:
            raise CodecError(f"the first batch must start with row 0, not {starts[0]}")

    cdef int reject(self, int problem, int64_t row) except -1:
        if problem == LC_BATCH_ROW:
            raise CodecError(f"row {row} is outside of {self.starts[self.pages.n]} rows")
        if problem == LC_BATCH_SHORT:
            raise CodecError(f"the page of row {row} has fewer values than its batch has rows")
        raise CodecError(f"row {row}: its value is not within the buffer of {self.source.size} bytes")

    def locate(self, const int64_t[::1] rows not None, int64_t[::1] out not None):
        """Compute the position of the value of each row.

        Parameters
        ----------
        rows
            int64 array of row numbers, in any order.
        out
            Output int64 array with an entry per row: the position in bytes, or in bits for values of 1 bit.

        Raises
        ------
        CodecError
            A row does not exist, its page has fewer values, or `out` is too small.
        """
        cdef int64_t n = rows.shape[0], bad = 0
        cdef int problem
        if out.shape[0] < n:
            raise CodecError(f"{out.shape[0]} positions are too few for {n} rows")
        check_aligned(&rows[0])
        check_aligned(&out[0])
        with nogil:
            problem = lc_batches_locate(&self.pages, &rows[0], n, &out[0], &bad)
        if problem:
            self.reject(problem, rows[bad])

    def take(self, const int64_t[::1] rows not None, out):
        """Copy the values of given rows, back to back.

        Parameters
        ----------
        rows
            int64 array of row numbers, in any order.
        out
            Output with room for a value per row. Bytes behind the last value may be overwritten. Unused bits of the
            last byte become 0.

        Raises
        ------
        CodecError
            A row does not exist, its page has fewer values, a value is outside of the file, or `out` is too small.
        """
        cdef ByteView target = writable(out)
        cdef int64_t n = rows.shape[0], bad = 0
        cdef int problem
        check_aligned(&rows[0])
        if self.bits and target.size // self.pages.width < ((n + 7) // 8 if self.bits == 1 else n):
            raise CodecError(f"output of {target.size} bytes is too small for {n} values of {self.bits} bits")
        with nogil:
            problem = lc_batches_take(self.source, &self.pages, &rows[0], n, target.data, &bad)
        if problem:
            self.reject(problem, rows[bad])
