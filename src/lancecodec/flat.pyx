"""Flat values: values of any number of bits, back to back.

Bit b of a buffer is bit ``b % 8``, counted from the least significant, of byte ``b // 8``. Widths that are not whole
bytes occur for booleans and for fixed-size lists of booleans.
"""

from libc.stdint cimport int64_t, uint8_t

from lancecodec.buffers cimport ByteView, check_aligned, readable, writable
from lancecodec.problems cimport fail, lc_bytes

from lancecodec.errors import CodecError

cdef extern from "kernels/flat.h" nogil:
    int64_t lc_flat_size(int64_t n, int64_t bits)
    int lc_flat_chunk(const lc_bytes *buffers, int64_t n, int64_t bits, uint8_t *out)
    int lc_flat_chunk_bits(const lc_bytes *buffers, int64_t n, int64_t bits, uint8_t *out, int64_t at)
    int lc_flat_at(const lc_bytes *buffers, int64_t n, int64_t bits, const int64_t *at, int64_t count, uint8_t *out)
    int lc_flat_at_bits(const lc_bytes *buffers, int64_t n, int64_t bits, const int64_t *at, int64_t count,
                        uint8_t *out, int64_t to)
    void lc_flat_page(const uint8_t *src, int64_t offset, int64_t n, int64_t bits, int64_t chunk, uint8_t *out,
                      int64_t *ends)
    void lc_flat_bytes_to_bits(const uint8_t *values, int64_t n, uint8_t *out, int64_t at)

cdef extern from "kernels/bits.h" nogil:
    int64_t lc_find_outside(const int64_t *index, int64_t n, int64_t length)


cdef int64_t checked_size(int64_t n, int64_t bits) except -1:
    cdef int64_t needed = lc_flat_size(n, bits)
    if needed < 0:
        raise CodecError(f"{n} values of {bits} bits are not supported")
    return needed


cdef int check_bits(int64_t size, int64_t at, int64_t n, int64_t bits, str what) except -1:
    checked_size(n, bits)
    if at < 0 or at > size * 8 or n > (size * 8 - at) // bits:
        raise CodecError(f"{what} of {size} bytes does not hold {n} values of {bits} bits from bit {at} on")
    return 0


cdef int check_positions(const int64_t[::1] positions, int64_t n) except -1:
    cdef int64_t bad
    check_aligned(&positions[0])
    with nogil:
        bad = lc_find_outside(&positions[0], positions.shape[0], max(n, 0))
    if bad >= 0:
        raise CodecError(f"position {positions[bad]} is outside {n} values")
    return 0


def size(int64_t n, int64_t bits):
    """Compute the size of flat values.

    Parameters
    ----------
    n
        Number of values.
    bits
        Size of a value in bits.

    Returns
    -------
    int
        Size in bytes, ``ceil(n * bits / 8)``.

    Raises
    ------
    CodecError
        A number is negative, or the size is too large.
    """
    return checked_size(n, bits)


def chunk_values(int64_t bits, int64_t extra_bytes=0, int64_t max_bytes=8186, int64_t max_values=4096):
    """Compute the number of values per chunk, by the rule of the reference implementation.

    The rule starts with two words. A word is one value, or eight values if a value is not whole bytes. It doubles the
    number of words as long as less than `max_bytes` are filled.

    Parameters
    ----------
    bits
        Size of a value in bits.
    extra_bytes
        Number of bytes that each value has beside its own: the validity of the items of a fixed-size list.
    max_bytes
        Limit for the bytes of a chunk.
    max_values
        Limit for the values of a chunk.

    Returns
    -------
    int
        A power of two, or 0 if two words are too large for a chunk.

    Raises
    ------
    CodecError
        `bits` or `extra_bytes` is out of range.
    """
    cdef int64_t word, values
    if bits <= 0 or extra_bytes < 0 or bits > 1 << 40 or extra_bytes > 1 << 40:
        raise CodecError(f"chunks of values with {bits} bits and {extra_bytes} bytes beside each are not supported")
    word, values = (bits // 8 + extra_bytes, 2) if bits % 8 == 0 else (bits + 8 * extra_bytes, 8)
    word *= 2
    if word >= max_bytes:
        return 0
    while 2 * word < max_bytes and 2 * values <= max_values:
        word, values = 2 * word, 2 * values
    return values


def power_of_two_values(int64_t limit):
    """Compute the largest power of two that is at most `limit`.

    Parameters
    ----------
    limit
        Upper limit, at least 1.

    Returns
    -------
    int
        The power of two.

    Raises
    ------
    ValueError
        `limit` is below 1.
    """
    if limit < 1:
        raise ValueError(f"the limit must be at least 1, not {limit}")
    return 1 << (limit.bit_length() - 1)


def encode(values, int64_t bit, int64_t n, int64_t bits, int64_t chunk, out, int64_t[::1] ends not None):
    """Write values in chunks, each padded to whole bytes.

    Parameters
    ----------
    values
        Buffer with the values.
    bit
        Bit of `values` at which the first value begins.
    n
        Number of values.
    bits
        Size of a value in bits.
    chunk
        Number of values in each chunk except the last.
    out
        Output. The chunks are written back to back. Unused bits of the last byte of a chunk become 0.
    ends
        Output int64 array with an entry for each of the ``ceil(n / chunk)`` chunks: the byte offset of its end.

    Returns
    -------
    int
        Number of chunks.

    Raises
    ------
    CodecError
        A buffer is too small.
    ValueError
        `chunk` is not positive.
    """
    cdef ByteView source = readable(values), target = writable(out)
    cdef int64_t chunks, needed
    check_bits(source.size, bit, n, bits, "input")
    if chunk < 1:
        raise ValueError(f"the number of values in a chunk must be positive, not {chunk}")
    chunk = min(chunk, max(n, 1))
    chunks = n // chunk + (n % chunk != 0)
    needed = n // chunk * checked_size(chunk, bits) + checked_size(n % chunk, bits)
    if target.size < needed or ends.shape[0] < chunks:
        raise CodecError(f"output of {target.size} bytes in {ends.shape[0]} chunks is too small for {needed} bytes "
                         f"in {chunks} chunks")
    check_aligned(&ends[0])
    with nogil:
        lc_flat_page(source.data, bit, n, bits, chunk, target.data, &ends[0])
    return chunks


def decode(data, int64_t n, int64_t bits, out):
    """Copy values to the beginning of an output.

    Parameters
    ----------
    data
        The values, exactly ``size(n, bits)`` bytes.
    n
        Number of values.
    bits
        Size of a value in bits.
    out
        Output of at least ``size(n, bits)`` bytes.

    Raises
    ------
    CodecError
        `data` is shorter or longer than n values, or `out` is too small.
    """
    cdef ByteView source = readable(data), target = writable(out)
    cdef lc_bytes[1] buffers
    cdef int problem
    if target.size < checked_size(n, bits):
        raise CodecError(f"output of {target.size} bytes is too small for {n} values of {bits} bits")
    buffers[0].data, buffers[0].size = source.data, source.size
    with nogil:
        problem = lc_flat_chunk(buffers, n, bits, target.data)
    if problem:
        fail(problem, f"{n} flat values of {bits} bits in {source.size} bytes")


def decode_bits(data, int64_t n, int64_t bits, out, int64_t at):
    """Copy values to any bit position of an output.

    Parameters
    ----------
    data
        The values, exactly ``size(n, bits)`` bytes.
    n
        Number of values.
    bits
        Size of a value in bits.
    out
        Output with room for ``at + n * bits`` bits. Bits outside of the range written keep their values.
    at
        First bit of `out` to write.

    Raises
    ------
    CodecError
        `data` is shorter or longer than n values, or `out` is too small.
    """
    cdef ByteView source = readable(data), target = writable(out)
    cdef lc_bytes[1] buffers
    cdef int problem
    check_bits(target.size, at, n, bits, "output")
    buffers[0].data, buffers[0].size = source.data, source.size
    with nogil:
        problem = lc_flat_chunk_bits(buffers, n, bits, target.data, at)
    if problem:
        fail(problem, f"{n} flat values of {bits} bits in {source.size} bytes")


def take(data, int64_t n, int64_t bits, const int64_t[::1] positions not None, out):
    """Copy the values at given positions. Values must be whole bytes.

    Parameters
    ----------
    data
        The values, exactly ``size(n, bits)`` bytes.
    n
        Number of values in `data`.
    bits
        Size of a value in bits, a multiple of 8.
    positions
        int64 array of positions below `n`, in any order.
    out
        Output with room for a value per position.

    Raises
    ------
    CodecError
        A position is outside of `data`, `data` has the wrong size, or `out` is too small.
    """
    cdef ByteView source = readable(data), target = writable(out)
    cdef int64_t count = positions.shape[0]
    cdef lc_bytes[1] buffers
    cdef int problem
    if target.size < checked_size(count, bits):
        raise CodecError(f"output of {target.size} bytes is too small for {count} values of {bits} bits")
    check_positions(positions, n)
    buffers[0].data, buffers[0].size = source.data, source.size
    with nogil:
        problem = lc_flat_at(buffers, n, bits, &positions[0], count, target.data)
    if problem:
        fail(problem, f"{n} flat values of {bits} bits in {source.size} bytes")


def take_bits(data, int64_t n, int64_t bits, const int64_t[::1] positions not None, out, int64_t at=0):
    """Copy the values at given positions to any bit position of an output. Values may have any number of bits.

    Parameters
    ----------
    data
        The values, exactly ``size(n, bits)`` bytes.
    n
        Number of values in `data`.
    bits
        Size of a value in bits.
    positions
        int64 array of positions below `n`, in any order.
    out
        Output with room for `at` bits and a value per position. Bits outside of the range written keep their values.
    at
        First bit of `out` to write.

    Raises
    ------
    CodecError
        A position is outside of `data`, `data` has the wrong size, or `out` is too small.
    """
    cdef ByteView source = readable(data), target = writable(out)
    cdef int64_t count = positions.shape[0]
    cdef lc_bytes[1] buffers
    cdef int problem
    check_bits(target.size, at, count, bits, "output")
    check_positions(positions, n)
    buffers[0].data, buffers[0].size = source.data, source.size
    with nogil:
        problem = lc_flat_at_bits(buffers, n, bits, &positions[0], count, target.data, at)
    if problem:
        fail(problem, f"{n} flat values of {bits} bits in {source.size} bytes")


def booleans_from_bytes(values, out, int64_t at=0):
    """Pack booleans of one byte each into bits. `bitmap.unpack` is the inverse.

    Parameters
    ----------
    values
        n bytes: 0 is false, any other value is true.
    out
        Output with room for ``at + n`` bits. Bits outside of the range written keep their values.
    at
        First bit of `out` to write.

    Raises
    ------
    CodecError
        `out` is too small.
    """
    cdef ByteView source = readable(values), target = writable(out)
    check_bits(target.size, at, source.size, 1, "output")
    with nogil:
        lc_flat_bytes_to_bits(source.data, source.size, target.data, at)
