"""Strings and binaries as offsets and bytes: mini-block chunks, blocks, and single values.

Offsets have 32 bits, or 64 if the argument `wide` (for offsets passed in) or `out_wide` (for offsets written) is true.
All combinations are supported. Arrow offsets need not begin at 0. All functions raise `CodecError` if offsets decrease,
are negative or exceed their bytes, or a buffer is too small, and `OffsetOverflowError` if values do not fit the output
or the offsets to be written.
"""

from libc.stdint cimport INT64_MAX, int64_t, uint8_t

from lancecodec.buffers cimport ByteView, check_aligned, readable, writable
from lancecodec.problems cimport LC_BAD_OFFSETS, fail, lc_bytes

from lancecodec.errors import CodecError

cdef extern from "kernels/variable.h" nogil:
    ctypedef struct lc_arrow_values:
        const uint8_t *offsets
        int wide
        int64_t n
        lc_bytes data
    int64_t lc_variable_chunks_bound(int64_t n)
    int lc_variable_plan(const lc_arrow_values *source, int out_wide, int64_t target, int64_t max_values,
                         int64_t *counts, int64_t *ends, int64_t *chunks)
    int lc_variable_encode(const lc_arrow_values *source, int out_wide, const int64_t *counts, const int64_t *ends,
                           int64_t chunks, uint8_t *out, int64_t out_size)
    int lc_variable_decode(lc_bytes source, int wide, const int64_t *counts, const int64_t *ends, int64_t chunks,
                           int64_t n, int out_wide, uint8_t *out_offsets, uint8_t *out, int64_t out_size,
                           int64_t *written, int64_t *chunk)
    int lc_variable_chunk_offsets(lc_bytes buffer, int64_t n, int wide, int64_t base, int out_wide,
                                  uint8_t *out_offsets, lc_bytes *values)
    int lc_variable_chunk_value(lc_bytes buffer, int64_t n, int wide, int64_t i, lc_bytes *value)
    int lc_variable_generic_offsets(const uint8_t *offsets, int64_t n, int wide, int64_t values_size, int64_t base,
                                    int out_wide, uint8_t *out_offsets)
    int lc_variable_store_offsets(const lc_arrow_values *source, int64_t start_value, int64_t n, int64_t start,
                                  int out_wide, uint8_t *out, int64_t *first, int64_t *last)
    int64_t lc_variable_block_size(int64_t n, int64_t size, int wide)
    int lc_variable_block_encode(const lc_arrow_values *source, int out_wide, uint8_t *out, int64_t capacity,
                                 int64_t *written)
    int lc_variable_block_offsets(lc_bytes buffer, int64_t n, int64_t base, int out_wide, uint8_t *out_offsets,
                                  lc_bytes *values)
    int lc_longest_32(const uint8_t *offsets, int64_t n, int64_t *longest)
    int lc_longest_64(const uint8_t *offsets, int64_t n, int64_t *longest)
    int lc_variable_select_offsets(const lc_arrow_values *source, const int64_t *index, int64_t count, int out_wide,
                                   uint8_t *out, int64_t *total, int64_t *where)
    int lc_variable_select_bytes(const lc_arrow_values *source, const int64_t *index, int64_t count, uint8_t *out,
                                 int64_t capacity, int64_t *written, int64_t *where)
    void lc_store_offset(uint8_t *offsets, int wide, int64_t i, int64_t value)
    int64_t lc_load_offset(const uint8_t *offsets, int wide, int64_t i)


cdef int check_offsets(ByteView view, bint wide, int64_t length, str what) except -1:
    """Raise CodecError unless a buffer holds the length + 1 offsets of `length` values."""
    if length < 0 or view.size // (8 if wide else 4) <= length:
        raise CodecError(f"{what} of {view.size} bytes do not hold the offsets of {length} values")
    return 0


cdef int check_chunks(const int64_t[::1] counts, const int64_t[::1] ends) except -1:
    if counts.shape[0] != ends.shape[0]:
        raise CodecError(f"{counts.shape[0]} chunk counts but {ends.shape[0]} chunk ends")
    check_aligned(&counts[0])
    check_aligned(&ends[0])
    return 0


cdef lc_arrow_values arrow_values(ByteView offsets, bint wide, int64_t length, ByteView data) except *:
    cdef lc_arrow_values source
    check_offsets(offsets, wide, length, "Arrow offsets")
    source.offsets, source.wide, source.n = offsets.data, wide, length
    source.data.data = data.data if data is not None else NULL
    source.data.size = data.size if data is not None else INT64_MAX
    return source


def plan_bound(int64_t length):
    """Compute the largest number of chunks that `plan` divides values into.

    Parameters
    ----------
    length
        Number of values.

    Returns
    -------
    int
        Number of chunks.

    Raises
    ------
    CodecError
        `length` is negative.
    """
    if length < 0:
        raise CodecError(f"a page of {length} values")
    return lc_variable_chunks_bound(length)


def plan(offsets, bint wide, int64_t length, bint out_wide, int64_t[::1] counts, int64_t[::1] ends,
         int64_t target=4096, int64_t max_values=4096):
    """Divide values into chunks by the doubling rule of the reference implementation.

    A chunk takes 2, 4, 8, ... values as long as twice as many still fit `target`. The remaining values become one chunk
    if they fit.

    Parameters
    ----------
    offsets
        ``length + 1`` Arrow offsets.
    wide
        Whether `offsets` have 64 bits.
    length
        Number of values.
    out_wide
        Whether the offsets in the chunks have 64 bits.
    counts, ends
        Output int64 arrays with ``plan_bound(length)`` entries: the number of values of each chunk, and the byte offset
        of its end in the output of `encode`.
    target
        Target size of a chunk in bytes, offsets included. Two values are taken even if they need more.
    max_values
        Limit for the number of values: a chunk that is not the last one has at most half as many.

    Returns
    -------
    int
        Number of chunks k. ``ends[k - 1]`` is the size of the output of `encode`.

    Raises
    ------
    CodecError
        The offsets are damaged, an output is too small, or an argument is out of range.
    """
    cdef ByteView view = readable(offsets)
    cdef lc_arrow_values source = arrow_values(view, wide, length, None)
    cdef int64_t chunks = 0, bound = lc_variable_chunks_bound(length)
    cdef int problem
    if target < 0 or max_values < 2 or max_values > 32768:
        raise CodecError(f"chunks of {target} bytes and {max_values} values: at least 0 bytes and 2 to 32768 values")
    if counts.shape[0] < bound or ends.shape[0] < bound:
        raise CodecError(f"{counts.shape[0]} counts and {ends.shape[0]} ends; {length} values may need {bound}")
    check_aligned(&counts[0])
    check_aligned(&ends[0])
    with nogil:
        problem = lc_variable_plan(&source, out_wide, target, max_values, &counts[0], &ends[0], &chunks)
    if problem:
        fail(problem, "variable-width values")
    return chunks


def encode(offsets, bint wide, data, int64_t length, bint out_wide, const int64_t[::1] counts not None,
           const int64_t[::1] ends not None, out):
    """Write planned chunks back to back.

    A chunk has the offsets from its start on, then the bytes, then padding with 0x48 up to a whole offset.

    Parameters
    ----------
    offsets, wide
        ``length + 1`` Arrow offsets, and whether they have 64 bits.
    data
        Bytes that the offsets point into.
    length
        Number of values.
    out_wide
        Whether the offsets in the chunks have 64 bits.
    counts, ends
        int64 arrays with an entry per chunk, as `plan` wrote them.
    out
        Output of at least ``ends[-1]`` bytes.

    Returns
    -------
    int
        Number of bytes written, ``ends[-1]``.

    Raises
    ------
    CodecError
        The offsets are damaged, the chunks do not match the values, or `out` is too small.
    OffsetOverflowError
        An offset does not fit 32 bits.
    """
    cdef ByteView view = readable(offsets), values = readable(data), target = writable(out)
    cdef lc_arrow_values source = arrow_values(view, wide, length, values)
    cdef int64_t chunks = counts.shape[0]
    cdef int problem
    check_chunks(counts, ends)
    with nogil:
        problem = lc_variable_encode(&source, out_wide, &counts[0], &ends[0], chunks, target.data, target.size)
    if problem:
        fail(problem, "encoding chunks of variable-width values")
    return ends[chunks - 1] if chunks else 0


def decode_bound(int64_t size, int64_t length, int64_t chunks, bint wide):
    """Compute the largest number of value bytes that chunks can hold.

    Parameters
    ----------
    size
        Size of all chunks together in bytes.
    length
        Number of values.
    chunks
        Number of chunks.
    wide
        Whether the offsets in the chunks have 64 bits.

    Returns
    -------
    int
        Size in bytes.

    Raises
    ------
    CodecError
        An argument is out of range.
    """
    if size < 0 or length < 0 or chunks < 0 or length > 2**56 or chunks > 2**56:
        raise CodecError(f"{chunks} chunks of {size} bytes with {length} values")
    return max(size - (length + chunks) * (8 if wide else 4), 0)


def decode(source, bint wide, const int64_t[::1] counts not None, const int64_t[::1] ends not None, int64_t length,
           bint out_wide, offsets, out):
    """Decode chunks that lie back to back into Arrow offsets and value bytes.

    Parameters
    ----------
    source
        The chunks.
    wide
        Whether the offsets in the chunks have 64 bits.
    counts, ends
        int64 arrays with an entry per chunk: its number of values, and the byte offset of its end.
    length
        Number of values.
    out_wide
        Whether the offsets written have 64 bits.
    offsets
        Output of ``length + 1`` offsets, starting with 0.
    out
        Output for the value bytes. `decode_bound` computes an upper bound of its size.

    Returns
    -------
    int
        Number of value bytes.

    Raises
    ------
    CodecError
        A chunk is damaged, the chunks do not have `length` values, or `offsets` is too small.
    OffsetOverflowError
        The values do not fit `out` or the offsets.
    """
    cdef ByteView view = readable(source), places = writable(offsets), target = writable(out)
    cdef lc_bytes chunks
    cdef int64_t written = 0, chunk = 0
    cdef int problem
    check_chunks(counts, ends)
    check_offsets(places, out_wide, length, "outputs")
    chunks.data, chunks.size = view.data, view.size
    with nogil:
        problem = lc_variable_decode(chunks, wide, &counts[0], &ends[0], counts.shape[0], length, out_wide,
                                     places.data, target.data, target.size, &written, &chunk)
    if problem:
        fail(problem, f"variable-width values, chunk {chunk}")
    return written


def decode_chunk(buffer, int64_t length, bint wide, bint out_wide, offsets, int64_t base=0):
    """Decode the offsets of one chunk.

    Parameters
    ----------
    buffer
        The chunk in its exact size: with the padding to a whole offset, without padding between chunk buffers.
    length
        Number of values.
    wide
        Whether the offsets in the chunk have 64 bits.
    out_wide
        Whether the offsets written have 64 bits.
    offsets
        Output of ``length + 1`` offsets. The first one is `base`.
    base
        First offset.

    Returns
    -------
    begin : int
        Byte of `buffer` at which the value bytes begin.
    size : int
        Number of value bytes.

    Raises
    ------
    CodecError
        The chunk is damaged, or `offsets` is too small.
    OffsetOverflowError
        The values do not fit the offsets.
    """
    cdef ByteView view = readable(buffer), places = writable(offsets)
    cdef lc_bytes chunk, values = lc_bytes(NULL, 0)
    cdef int problem
    check_offsets(places, out_wide, length, "outputs")
    chunk.data, chunk.size = view.data, view.size
    with nogil:
        problem = lc_variable_chunk_offsets(chunk, length, wide, base, out_wide, places.data + (8 if out_wide else 4),
                                            &values)
    if problem:
        fail(problem, f"chunk of {length} variable-width values")
    lc_store_offset(places.data, out_wide, 0, base)
    return values.data - view.data, values.size


def chunk_value(buffer, int64_t length, bint wide, int64_t index):
    """Locate one value of a chunk. The offsets of other values are not checked.

    Parameters
    ----------
    buffer
        The chunk in its exact size.
    length
        Number of values in the chunk.
    wide
        Whether the offsets in the chunk have 64 bits.
    index
        Position of the value.

    Returns
    -------
    begin : int
        Byte of `buffer` at which the value begins.
    size : int
        Size of the value in bytes.

    Raises
    ------
    CodecError
        There is no such value, or its offsets are damaged.
    """
    cdef ByteView view = readable(buffer)
    cdef lc_bytes chunk, value = lc_bytes(NULL, 0)
    if index < 0 or index >= length:
        raise CodecError(f"value {index} is not one of the {length} values of the chunk")
    chunk.data, chunk.size = view.data, view.size
    cdef int problem = lc_variable_chunk_value(chunk, length, wide, index, &value)
    if problem:
        fail(problem, f"value {index} of a chunk of {length} variable-width values")
    return value.data - view.data, value.size


def decode_generic(coded_offsets, bint wide, int64_t length, int64_t values_size, bint out_wide, offsets,
                   int64_t base=0):
    """Check that the decoded offsets of a chunk (2.3) go from 0 to the size of its values, and write them from `base`
    on.

    Parameters
    ----------
    coded_offsets
        ``length + 1`` decoded offsets.
    wide
        Whether `coded_offsets` have 64 bits.
    length
        Number of values.
    values_size
        Size of the values in bytes.
    out_wide
        Whether the offsets written have 64 bits.
    offsets
        Output of ``length + 1`` offsets. The first one is `base`.
    base
        First offset.

    Raises
    ------
    CodecError
        The offsets are damaged, or a buffer is too small.
    OffsetOverflowError
        The values do not fit the offsets.
    """
    cdef ByteView view = readable(coded_offsets), places = writable(offsets)
    cdef int problem
    check_offsets(view, wide, length, "decoded offsets")
    check_offsets(places, out_wide, length, "outputs")
    with nogil:
        problem = lc_variable_generic_offsets(view.data, length, wide, values_size, base, out_wide,
                                              places.data + (8 if out_wide else 4))
    if problem:
        fail(problem, f"decoded offsets of {length} values of {values_size} bytes")
    lc_store_offset(places.data, out_wide, 0, base)


def rebase(offsets, bint wide, int64_t length, bint out_wide, out, int64_t base=0):
    """Write Arrow offsets so that they begin at `base`.

    Parameters
    ----------
    offsets, wide
        ``length + 1`` Arrow offsets, and whether they have 64 bits.
    length
        Number of values.
    out_wide
        Whether the offsets written have 64 bits.
    out
        Output of ``length + 1`` offsets.
    base
        First offset of `out`.

    Returns
    -------
    tuple of int
        First and last offset of the input.

    Raises
    ------
    CodecError
        The offsets are damaged, or `out` is too small.
    OffsetOverflowError
        The values do not fit the offsets.
    """
    cdef ByteView view = readable(offsets), places = writable(out)
    cdef lc_arrow_values source = arrow_values(view, wide, length, None)
    cdef int64_t first = 0, last = 0
    cdef int problem
    check_offsets(places, out_wide, length, "outputs")
    with nogil:
        problem = lc_variable_store_offsets(&source, 0, length, base, out_wide, places.data, &first, &last)
    if problem:
        fail(problem, f"offsets of {length} values from {base} on")
    return first, last


def block_bound(int64_t length, int64_t size, bint wide):
    """Compute the size of a block.

    Parameters
    ----------
    length
        Number of values.
    size
        Size of all values together in bytes.
    wide
        Whether the offsets in the block have 64 bits.

    Returns
    -------
    int
        Size in bytes.

    Raises
    ------
    CodecError
        An argument is out of range.
    """
    if length < 0 or length > 2**56 or size < 0 or size > 2**60:
        raise CodecError(f"a block of {length} values of {size} bytes together")
    return lc_variable_block_size(length, size, wide)


def encode_block(offsets, bint wide, data, int64_t length, bint out_wide, out):
    """Write values as one block: width of the offsets in bits, position of the bytes, offsets from 0 on, bytes.

    Parameters
    ----------
    offsets, wide
        ``length + 1`` Arrow offsets, and whether they have 64 bits.
    data
        Bytes that the offsets point into.
    length
        Number of values.
    out_wide
        Whether the offsets in the block have 64 bits.
    out
        Output, of the size that `block_bound` computes.

    Returns
    -------
    int
        Number of bytes written.

    Raises
    ------
    CodecError
        The offsets are damaged.
    OffsetOverflowError
        `out` is too small, or the values do not fit the offsets.
    """
    cdef ByteView view = readable(offsets), values = readable(data), target = writable(out)
    cdef lc_arrow_values source = arrow_values(view, wide, length, values)
    cdef int64_t written = 0
    cdef int problem
    with nogil:
        problem = lc_variable_block_encode(&source, out_wide, target.data, target.size, &written)
    if problem:
        fail(problem, f"encoding a block of {length} variable-width values")
    return written


def decode_block(buffer, int64_t length, bint out_wide, offsets, int64_t base=0):
    """Decode the offsets of a block. The header of the block gives their width.

    The shorter header that writers used before the format was stable is supported too.

    Parameters
    ----------
    buffer
        The block.
    length
        Number of values.
    out_wide
        Whether the offsets written have 64 bits.
    offsets
        Output of ``length + 1`` offsets. The first one is `base`.
    base
        First offset.

    Returns
    -------
    begin : int
        Byte of `buffer` at which the value bytes begin.
    size : int
        Number of value bytes.

    Raises
    ------
    CodecError
        The block is damaged, or `offsets` is too small.
    OffsetOverflowError
        The values do not fit the offsets.
    """
    cdef ByteView view = readable(buffer), places = writable(offsets)
    cdef lc_bytes block, values = lc_bytes(NULL, 0)
    cdef int problem
    check_offsets(places, out_wide, length, "outputs")
    block.data, block.size = view.data, view.size
    with nogil:
        problem = lc_variable_block_offsets(block, length, base, out_wide, places.data + (8 if out_wide else 4),
                                            &values)
    if problem:
        fail(problem, f"block of {length} variable-width values")
    lc_store_offset(places.data, out_wide, 0, base)
    return values.data - view.data, values.size


def measure(offsets, bint wide, int64_t length):
    """Check Arrow offsets, and compute the size of the values.

    Parameters
    ----------
    offsets, wide
        ``length + 1`` Arrow offsets, and whether they have 64 bits.
    length
        Number of values.

    Returns
    -------
    total : int
        Size of all values together in bytes.
    longest : int
        Size of the longest value in bytes.

    Raises
    ------
    CodecError
        The offsets decrease or are negative, or `offsets` is too small.
    """
    cdef ByteView view = readable(offsets)
    cdef int64_t longest = 0
    cdef int wrong
    check_offsets(view, wide, length, "Arrow offsets")
    with nogil:
        if wide:
            wrong = lc_longest_64(view.data, length, &longest)
        else:
            wrong = lc_longest_32(view.data, length, &longest)
    if wrong:
        fail(LC_BAD_OFFSETS, f"offsets of {length} values")
    return lc_load_offset(view.data, wide, length) - lc_load_offset(view.data, wide, 0), longest


def select_offsets(offsets, bint wide, int64_t length, const int64_t[::1] index not None, bint out_wide, out):
    """Compute the offsets of the values at given positions: the first of two passes, before `select_bytes`.

    Parameters
    ----------
    offsets, wide
        ``length + 1`` Arrow offsets, and whether they have 64 bits.
    length
        Number of values.
    index
        int64 array of n positions below `length`, in any order.
    out_wide
        Whether the offsets written have 64 bits.
    out
        Output of n + 1 offsets, starting with 0.

    Returns
    -------
    int
        Size of the selected values together in bytes.

    Raises
    ------
    CodecError
        A position is out of range, the offsets of a value are damaged, or `out` is too small.
    OffsetOverflowError
        The values do not fit the offsets.
    """
    cdef ByteView view = readable(offsets), places = writable(out)
    cdef lc_arrow_values source = arrow_values(view, wide, length, None)
    cdef int64_t total = 0, where = 0, count = index.shape[0]
    cdef int problem
    check_offsets(places, out_wide, count, "outputs")
    check_aligned(&index[0])
    with nogil:
        problem = lc_variable_select_offsets(&source, &index[0], count, out_wide, places.data, &total, &where)
    if problem:
        fail(problem, f"selection {where}, value {index[where]} of {length}")
    return total


def select_bytes(offsets, bint wide, data, int64_t length, const int64_t[::1] index not None, out):
    """Copy the bytes of the values at given positions, back to back: the second pass, after `select_offsets`.

    Parameters
    ----------
    offsets, wide
        ``length + 1`` Arrow offsets, and whether they have 64 bits.
    data
        Bytes that the offsets point into.
    length
        Number of values.
    index
        int64 array of positions below `length`, in any order.
    out
        Output, of the size that `select_offsets` returns. Bytes behind the values may be overwritten.

    Returns
    -------
    int
        Number of bytes written.

    Raises
    ------
    CodecError
        A position is out of range, or the offsets of a value are damaged.
    OffsetOverflowError
        `out` is too small.
    """
    cdef ByteView view = readable(offsets), values = readable(data), target = writable(out)
    cdef lc_arrow_values source = arrow_values(view, wide, length, values)
    cdef int64_t written = 0, where = 0, count = index.shape[0]
    cdef int problem
    check_aligned(&index[0])
    with nogil:
        problem = lc_variable_select_bytes(&source, &index[0], count, target.data, target.size, &written, &where)
    if problem:
        fail(problem, f"selection {where}, value {index[where]} of {length}")
    return written
