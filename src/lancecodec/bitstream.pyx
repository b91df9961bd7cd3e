"""Bit streams of 2.0 files (``Bitpacked``): values of a given number of bits back to back, optionally sign extended.

Value i is at bits ``i * width`` to ``(i + 1) * width - 1`` of the stream, least significant bit first. In all functions
`bits` is the size of a value (8, 16, 32 or 64) and `width` is the size of a stored value (1 to `bits`). Buffers of
values hold little-endian values back to back, and buffers may be at any address. An unsupported `bits` or `width`
raises `CodecError`.
"""

from libc.stdint cimport INT64_MAX, int64_t, uint8_t

from lancecodec.buffers cimport ByteView, check_aligned, readable, writable

from lancecodec.errors import CodecError

cdef extern from "kernels/bitstream.h" nogil:
    int lc_stream_width(const uint8_t *values, int64_t n, int bits, int can_be_negative, int *sign)
    int lc_stream_encode(const uint8_t *values, int64_t n, int bits, int width, int sign, uint8_t *out)
    void lc_stream_decode(const uint8_t *src, int64_t size, int bits, int width, int sign, int64_t start, int64_t stop,
                          uint8_t *out)
    void lc_stream_at(const uint8_t *src, int64_t size, int bits, int width, int sign, const int64_t *at,
                      int64_t count, uint8_t *out)


cdef int check_form(int64_t bits, int64_t width) except -1:
    if bits not in (8, 16, 32, 64):
        raise CodecError(f"a bit stream does not support values of {bits} bits, only of 8, 16, 32 and 64")
    if width < 1 or width > bits:
        raise CodecError(f"values of {bits} bits cannot be stored in {width} bits")
    return 0


cdef int64_t count_values(ByteView values, int64_t bits) except -1:
    if values.size % (bits // 8):
        raise CodecError(f"{values.size} bytes are not whole values of {bits} bits")
    return values.size // (bits // 8)


cdef int check_room(ByteView out, int64_t n, int64_t bits) except -1:
    if out.size // (bits // 8) < n:
        raise CodecError(f"output of {out.size} bytes is too small for {n} values of {bits} bits")
    return 0


cdef int64_t held(ByteView source, int64_t width) except -1:
    if source.size > INT64_MAX // 8:
        raise CodecError(f"a bit stream of {source.size} bytes is too long")
    return source.size * 8 // width


def width(values, int64_t bits, bint signed):
    """Compute the smallest width that holds all values.

    Parameters
    ----------
    values
        n values of `bits` bits.
    bits
        Size of a value.
    signed
        Whether the values are signed integers. A sign bit is used only if one of them is negative.

    Returns
    -------
    width : int
        Number of bits, at least 1, including the sign bit if there is one.
    has_sign : bool
        Whether a sign bit is part of the width.

    Raises
    ------
    CodecError
        `values` is not a whole number of values.
    """
    cdef ByteView source = readable(values)
    cdef int64_t n
    cdef int result, negative = 0
    check_form(bits, 1)
    n = count_values(source, bits)
    with nogil:
        result = lc_stream_width(source.data, n, <int>bits, signed, &negative)
    return result, negative != 0


def encoded_size(int64_t n, int64_t width):
    """Compute the size of a bit stream.

    Parameters
    ----------
    n
        Number of values.
    width
        Size of a stored value in bits.

    Returns
    -------
    int
        Size in bytes.

    Raises
    ------
    CodecError
        `n` is negative or too large.
    """
    check_form(64, width)
    if n < 0 or n > INT64_MAX // 128:
        raise CodecError(f"a bit stream of {n} values is not supported")
    return (n * width + 7) // 8


def encode(values, int64_t bits, int64_t width, bint signed, out):
    """Write values as a bit stream. Unused bits of the last byte are 0.

    Parameters
    ----------
    values
        n values of `bits` bits.
    bits
        Size of a value.
    width
        Size of a stored value.
    signed
        Whether the top bit of a stored value is its sign.
    out
        Output of at least ``encoded_size(n, width)`` bytes.

    Returns
    -------
    int
        Number of bytes written.

    Raises
    ------
    CodecError
        A value does not fit, `values` is not a whole number of values, or `out` is too small.
    """
    cdef ByteView source = readable(values), target = writable(out)
    cdef int64_t n, size
    cdef int problem
    check_form(bits, width)
    n = count_values(source, bits)
    size = encoded_size(n, width)
    if target.size < size:
        raise CodecError(f"output of {target.size} bytes is too small for {size} packed bytes")
    with nogil:
        problem = lc_stream_encode(source.data, n, <int>bits, <int>width, signed, target.data)
    if problem:
        raise CodecError(f"a value does not fit {width} {'signed ' if signed else ''}bits")
    return size


def decode(data, int64_t bits, int64_t width, bint signed, int64_t start, int64_t stop, out):
    """Read a range of values of a bit stream.

    Parameters
    ----------
    data
        The stream from its first value on. Bytes after value ``stop - 1`` are ignored.
    bits
        Size of a value.
    width
        Size of a stored value.
    signed
        Whether to copy bit ``width - 1`` into all bits above it.
    start, stop
        Range ``[start, stop)`` of values.
    out
        Output of at least ``(stop - start) * bits / 8`` bytes.

    Returns
    -------
    int
        Number of values, ``stop - start``.

    Raises
    ------
    CodecError
        The stream does not hold the range, or `out` is too small.
    """
    cdef ByteView source = readable(data), target = writable(out)
    check_form(bits, width)
    if start < 0 or stop < start or stop > held(source, width):
        raise CodecError(f"values {start} to {stop} are outside the {held(source, width)} of {source.size} bytes")
    check_room(target, stop - start, bits)
    with nogil:
        lc_stream_decode(source.data, source.size, <int>bits, <int>width, signed, start, stop, target.data)
    return stop - start


def select(data, int64_t bits, int64_t width, bint signed, const int64_t[::1] positions not None, out):
    """Read the values at given positions of a bit stream.

    Parameters
    ----------
    data
        The stream from its first value on.
    bits
        Size of a value.
    width
        Size of a stored value.
    signed
        Whether to copy bit ``width - 1`` into all bits above it.
    positions
        int64 array of n positions, in any order.
    out
        Output of at least ``n * bits / 8`` bytes.

    Returns
    -------
    int
        Number of values, n.

    Raises
    ------
    CodecError
        The stream does not hold a position, or `out` is too small.
    """
    cdef ByteView source = readable(data), target = writable(out)
    cdef int64_t i, n, bad = -1, count = positions.shape[0]
    check_form(bits, width)
    n = held(source, width)
    check_room(target, count, bits)
    if count == 0:
        return 0
    check_aligned(&positions[0])
    with nogil:
        for i in range(count):
            if positions[i] < 0 or positions[i] >= n:
                bad = i
                break
        if bad < 0:
            lc_stream_at(source.data, source.size, <int>bits, <int>width, signed, &positions[0], count, target.data)
    if bad >= 0:
        raise CodecError(f"position {positions[bad]} is outside {n} values")
    return count
