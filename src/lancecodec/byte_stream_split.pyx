"""Byte-stream split: byte 0 of all values of a chunk, then byte 1 of all values, and so on.

Values have 32 or 64 bits. The encoding saves no space by itself, but makes floating-point numbers easier to compress.
It is the ``BYTE_STREAM_SPLIT`` encoding of Apache Parquet, applied to each chunk. Another `bits` raises `CodecError`.
"""

from libc.stdint cimport int64_t, uint8_t

from lancecodec.buffers cimport ByteView, check_aligned, readable, writable
from lancecodec.problems cimport fail, lc_bytes

from lancecodec.errors import CodecError

cdef extern from "kernels/split.h" nogil:
    int lc_split_chunk(const lc_bytes *buffers, int64_t n, int64_t bits, uint8_t *out)
    int lc_split_at(const lc_bytes *buffers, int64_t n, int64_t bits, const int64_t *at, int64_t count, uint8_t *out)
    void lc_split_page(const uint8_t *values, int64_t n, int64_t bits, int64_t chunk, uint8_t *out)

cdef extern from "kernels/bits.h" nogil:
    int64_t lc_find_outside(const int64_t *index, int64_t n, int64_t length)


cdef int64_t width_of(int64_t bits) except -1:
    if bits != 32 and bits != 64:
        raise CodecError(f"byte-stream split does not support values of {bits} bits, only of 32 and 64")
    return bits // 8


cdef int64_t values_of(int64_t size, int64_t width) except -1:
    if size % width:
        raise CodecError(f"{size} bytes are not a whole number of values of {8 * width} bits")
    return size // width


def encode(values, int64_t bits, int64_t chunk_values, out, int64_t[::1] ends not None):
    """Encode a page in chunks.

    Parameters
    ----------
    values
        n values of `bits` bits, little-endian, back to back.
    bits
        Size of a value: 32 or 64.
    chunk_values
        Number of values in each chunk except the last. The reference uses 1024 for 32 bits and 512 for 64 bits.
    out
        Output of as many bytes as `values`. The chunks are written back to back.
    ends
        Output int64 array with an entry for each of the ``ceil(n / chunk_values)`` chunks: the byte offset of its end.

    Returns
    -------
    int
        Number of chunks.

    Raises
    ------
    CodecError
        `values` is not a whole number of values, or an output is too small.
    ValueError
        `chunk_values` is not positive.
    """
    cdef ByteView source = readable(values), target = writable(out)
    cdef int64_t width = width_of(bits), n = values_of(source.size, width), i, chunks
    if chunk_values < 1:
        raise ValueError(f"the number of values in a chunk must be positive, not {chunk_values}")
    chunks = n // chunk_values + (n % chunk_values != 0)
    if target.size < source.size or ends.shape[0] < chunks:
        raise CodecError(f"output of {target.size} bytes in {ends.shape[0]} chunks is too small for {n} values of "
                         f"{bits} bits in {chunks} chunks")
    check_aligned(&ends[0])
    with nogil:
        lc_split_page(source.data, n, bits, chunk_values, target.data)
        for i in range(chunks):
            ends[i] = (i + 1) * chunk_values * width if i + 1 < chunks else source.size
    return chunks


def decode(data, int64_t n, int64_t bits, out):
    """Decode one chunk.

    Parameters
    ----------
    data
        The chunk, exactly ``n * bits / 8`` bytes.
    n
        Number of values.
    bits
        Size of a value: 32 or 64.
    out
        Output of at least ``n * bits / 8`` bytes.

    Raises
    ------
    CodecError
        `data` is shorter or longer than n values, or `out` is too small.
    """
    cdef ByteView source = readable(data), target = writable(out)
    cdef lc_bytes[1] buffers
    cdef int problem
    if n < 0 or target.size // width_of(bits) < n:
        raise CodecError(f"output of {target.size} bytes is too small for {n} values of {bits} bits")
    buffers[0].data, buffers[0].size = source.data, source.size
    with nogil:
        problem = lc_split_chunk(buffers, n, bits, target.data)
    if problem:
        fail(problem, f"byte-stream split of {n} values of {bits} bits in {source.size} bytes")


def decode_page(data, int64_t n, int64_t bits, int64_t chunk_values, out):
    """Decode a page that `encode` wrote.

    Parameters
    ----------
    data
        The chunks back to back, exactly ``n * bits / 8`` bytes.
    n
        Number of values.
    bits
        Size of a value: 32 or 64.
    chunk_values
        Number of values in each chunk except the last.
    out
        Output of at least ``n * bits / 8`` bytes.

    Raises
    ------
    CodecError
        `data` is shorter or longer than n values, `chunk_values` is not positive, or `out` is too small.
    """
    cdef ByteView source = readable(data), target = writable(out)
    cdef int64_t width = width_of(bits), begin = 0, some
    cdef lc_bytes[1] buffers
    cdef int problem = 0
    if chunk_values < 1 or n < 0 or source.size % width or source.size // width != n:
        raise CodecError(f"{source.size} bytes are not {n} values of {bits} bits in chunks of {chunk_values} values")
    if target.size < source.size:
        raise CodecError(f"output of {target.size} bytes is too small for {n} values of {bits} bits")
    with nogil:
        while begin < n and not problem:
            some = min(chunk_values, n - begin)
            buffers[0].data, buffers[0].size = source.data + begin * width, some * width
            problem = lc_split_chunk(buffers, some, bits, target.data + begin * width)
            begin += some
    if problem:
        fail(problem, f"byte-stream split of {n} values of {bits} bits")


def take(data, int64_t n, int64_t bits, const int64_t[::1] positions not None, out):
    """Decode the values at given positions of one chunk.

    Parameters
    ----------
    data
        The chunk, exactly ``n * bits / 8`` bytes.
    n
        Number of values in the chunk.
    bits
        Size of a value: 32 or 64.
    positions
        int64 array of positions below `n`, in any order.
    out
        Output with room for a value of `bits` bits per position.

    Raises
    ------
    CodecError
        A position is outside of the chunk, `data` is shorter or longer than n values, or `out` is too small.
    """
    cdef ByteView source = readable(data), target = writable(out)
    cdef int64_t count = positions.shape[0], bad
    cdef lc_bytes[1] buffers
    cdef int problem
    if target.size // width_of(bits) < count:
        raise CodecError(f"output of {target.size} bytes is too small for {count} values of {bits} bits")
    check_aligned(&positions[0])
    with nogil:
        bad = lc_find_outside(&positions[0], count, max(n, 0))
    if bad >= 0:
        raise CodecError(f"position {positions[bad]} is outside {n} values")
    buffers[0].data, buffers[0].size = source.data, source.size
    with nogil:
        problem = lc_split_at(buffers, n, bits, &positions[0], count, target.data)
    if problem:
        fail(problem, f"byte-stream split of {n} values of {bits} bits in {source.size} bytes")
