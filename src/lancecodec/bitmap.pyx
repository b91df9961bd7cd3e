"""Validity bitmaps in the Arrow layout: least significant bit first, 1 means valid.

Bit b of a bitmap is bit ``b % 8`` of byte ``b // 8``. A bitmap buffer may be at any address and longer than needed.
"""

from libc.stdint cimport int64_t, uint8_t

from lancecodec.buffers cimport ByteView, check_aligned, readable, writable

from lancecodec.errors import CodecError

cdef extern from "kernels/bits.h" nogil:
    void lc_bits_pack(const uint8_t *values, int64_t n, uint8_t *out)
    void lc_bits_unpack(const uint8_t *bits, int64_t offset, int64_t n, uint8_t *out)
    void lc_bits_copy(const uint8_t *src, int64_t offset, int64_t n, uint8_t *out, int64_t at)
    void lc_bits_fill(uint8_t *out, int64_t at, int64_t n, int value)
    int64_t lc_bits_count(const uint8_t *bits, int64_t offset, int64_t n)
    int64_t lc_bits_select(const uint8_t *bits, int64_t offset, int64_t n, int64_t number)
    int64_t lc_bits_gather(const uint8_t *bits, int64_t length, const int64_t *index, int64_t n, uint8_t *out)


cdef int check_bits(int64_t size, int64_t offset, int64_t length, str what) except -1:
    if offset < 0 or length < 0 or offset > size * 8 or length > size * 8 - offset:
        raise CodecError(f"{what} of {size} bytes does not hold {length} bits from bit {offset} on")
    return 0


def pack(values, out):
    """Pack bytes into bits.

    Parameters
    ----------
    values
        n bytes: 0 clears the bit, any other value sets it.
    out
        Output bitmap of at least ``ceil(n / 8)`` bytes. Unused bits of the last byte become 0.

    Raises
    ------
    CodecError
        `out` is too small.
    """
    cdef ByteView source = readable(values), target = writable(out)
    check_bits(target.size, 0, source.size, "output bitmap")
    with nogil:
        lc_bits_pack(source.data, source.size, target.data)


def unpack(bits, int64_t offset, int64_t length, out):
    """Unpack bits into bytes.

    Parameters
    ----------
    bits
        Input bitmap.
    offset
        First bit to unpack.
    length
        Number of bits to unpack.
    out
        Output of at least `length` bytes, each set to 0 or 1.

    Raises
    ------
    CodecError
        `bits` does not hold the range, or `out` is too small.
    """
    cdef ByteView source = readable(bits), target = writable(out)
    check_bits(source.size, offset, length, "bitmap")
    if target.size < length:
        raise CodecError(f"output of {target.size} bytes is too small for {length} values")
    with nogil:
        lc_bits_unpack(source.data, offset, length, target.data)


def copy(bits, int64_t offset, int64_t length, out, int64_t at=0):
    """Copy a range of bits to any bit position of another bitmap.

    Parameters
    ----------
    bits
        Input bitmap.
    offset
        First bit to copy.
    length
        Number of bits to copy.
    out
        Output bitmap. Bits outside of the range written keep their values.
    at
        Bit of `out` that receives bit `offset`.

    Raises
    ------
    CodecError
        `bits` or `out` does not hold its range.
    """
    cdef ByteView source = readable(bits), target = writable(out)
    check_bits(source.size, offset, length, "bitmap")
    check_bits(target.size, at, length, "output bitmap")
    with nogil:
        lc_bits_copy(source.data, offset, length, target.data, at)


def fill(out, int64_t at, int64_t length, bint value):
    """Set a range of bits to one value.

    Parameters
    ----------
    out
        Output bitmap. Bits outside of the range keep their values.
    at
        First bit to set.
    length
        Number of bits to set.
    value
        Value of the bits.

    Raises
    ------
    CodecError
        `out` does not hold the range.
    """
    cdef ByteView target = writable(out)
    check_bits(target.size, at, length, "output bitmap")
    with nogil:
        lc_bits_fill(target.data, at, length, value)


def count(bits, int64_t offset, int64_t length):
    """Count the set bits of a range.

    Parameters
    ----------
    bits
        Input bitmap.
    offset
        First bit to count.
    length
        Number of bits to look at.

    Returns
    -------
    int
        Number of set bits.

    Raises
    ------
    CodecError
        `bits` does not hold the range.
    """
    cdef ByteView source = readable(bits)
    cdef int64_t total
    check_bits(source.size, offset, length, "bitmap")
    with nogil:
        total = lc_bits_count(source.data, offset, length)
    return total


def select(bits, int64_t offset, int64_t length, int64_t number):
    """Find a set bit by its number.

    Parameters
    ----------
    bits
        Input bitmap.
    offset
        First bit to look at.
    length
        Number of bits to look at.
    number
        Number of set bits in front of the bit.

    Returns
    -------
    int
        Position of the bit, counted from `offset`; -1 if there are not so many set bits.

    Raises
    ------
    CodecError
        `bits` does not hold the range, or `number` is negative.
    """
    cdef ByteView source = readable(bits)
    cdef int64_t found
    check_bits(source.size, offset, length, "bitmap")
    if number < 0:
        raise CodecError(f"there is no set bit {number}")
    with nogil:
        found = lc_bits_select(source.data, offset, length, number)
    return found


def gather(bits, int64_t length, const int64_t[::1] indices not None, out):
    """Gather bits by position: bit i of the output is bit ``indices[i]`` of the input.

    Parameters
    ----------
    bits
        Input bitmap.
    length
        Number of bits in the input bitmap.
    indices
        int64 array of n bit positions from 0 to ``length - 1``, in any order.
    out
        Output bitmap of at least ``ceil(n / 8)`` bytes.

    Raises
    ------
    CodecError
        An index is outside of the bitmap, or a buffer is too small.
    """
    cdef ByteView source = readable(bits), target = writable(out)
    cdef int64_t n = indices.shape[0], bad
    check_bits(source.size, 0, length, "bitmap")
    check_bits(target.size, 0, n, "output bitmap")
    check_aligned(&indices[0])
    with nogil:
        bad = lc_bits_gather(source.data, length, &indices[0], n, target.data)
    if bad >= 0:
        raise CodecError(f"index {indices[bad]} is outside a bitmap of {length} bits")
