"""Values that a bitmap keeps, moved together: what a filter leaves of a column.

Every function takes the bitmap (`bits`), its first bit (`offset`) and the number n of its bits (`length`), one for each
value. Values are kept where a bit is set, in their order.
"""

from libc.stdint cimport INT64_MAX, int64_t, uint8_t

from lancecodec.buffers cimport ByteView, readable, writable
from lancecodec.problems cimport LC_OK, fail, lc_bytes

from lancecodec.errors import CodecError

cdef extern from "kernels/kept.h" nogil:
    int lc_kept_fixed(const uint8_t *bits, int64_t offset, int64_t n, const uint8_t *values, int64_t width,
                      int64_t room, uint8_t *out)
    int lc_kept_bits(const uint8_t *bits, int64_t offset, int64_t n, const uint8_t *values, int64_t start, int64_t room,
                     uint8_t *out)
    int lc_kept_ends(const uint8_t *bits, int64_t offset, int64_t n, const uint8_t *offsets, int wide, int64_t room,
                     uint8_t *out, int64_t *total)
    int lc_kept_bytes(const uint8_t *bits, int64_t offset, int64_t n, lc_bytes data, const uint8_t *offsets, int wide,
                      uint8_t *out, int64_t size)


cdef int check_bits(ByteView bits, int64_t offset, int64_t length) except -1:
    if offset < 0 or length < 0 or bits.size > INT64_MAX // 8 or offset > 8 * bits.size \
            or length > 8 * bits.size - offset:
        raise CodecError(f"a bitmap of {bits.size} bytes does not hold {length} bits from bit {offset} on")
    return 0


cdef int check_offsets(ByteView offsets, bint wide, int64_t count) except -1:
    if offsets.size // (8 if wide else 4) <= count:
        raise CodecError(f"{offsets.size} bytes do not hold the offsets of {count} values")
    return 0


def fixed(values, int64_t width, bits, int64_t offset, int64_t length, out):
    """Move values of a fixed width.

    Parameters
    ----------
    values
        Input values of `width` bytes, at least n.
    width
        Size of a value in bytes, at least 1.
    bits, offset, length
        The bitmap.
    out
        Output of exactly as many values as are kept.

    Raises
    ------
    CodecError
        A buffer is too small, or `out` does not have the size of the values kept.
    """
    cdef ByteView source = readable(values), mask = readable(bits), target = writable(out)
    cdef int problem
    check_bits(mask, offset, length)
    if width < 1:
        raise CodecError(f"values of {width} bytes are not supported")
    if source.size // width < length:
        raise CodecError(f"{source.size} bytes do not hold {length} values of {width} bytes")
    if target.size % width:
        raise CodecError(f"output of {target.size} bytes is not a whole number of values of {width} bytes")
    with nogil:
        problem = lc_kept_fixed(mask.data, offset, length, source.data, width, target.size // width, target.data)
    if problem != LC_OK:
        fail(problem, f"an output of {target.size // width} of {length} values")


def bitmap(values, int64_t start, bits, int64_t offset, int64_t length, out, int64_t count):
    """Move bits.

    Parameters
    ----------
    values
        Input bitmap.
    start
        Bit of `values` that belongs to the first value.
    bits, offset, length
        The bitmap of values to keep.
    out
        Output bitmap of at least ``ceil(count / 8)`` bytes.
    count
        Number of values that are kept.

    Raises
    ------
    CodecError
        A buffer is too small, or `count` is not the number of values kept.
    """
    cdef ByteView source = readable(values), mask = readable(bits), target = writable(out)
    cdef int problem
    check_bits(mask, offset, length)
    check_bits(source, start, length)
    check_bits(target, 0, count)
    with nogil:
        problem = lc_kept_bits(mask.data, offset, length, source.data, start, count, target.data)
    if problem != LC_OK:
        fail(problem, f"an output of {count} of {length} bits")


def ends(offsets, bint wide, bits, int64_t offset, int64_t length, out, int64_t count):
    """Compute the offsets of the strings that are kept.

    Parameters
    ----------
    offsets
        n + 1 offsets of the input strings.
    wide
        True for offsets of 64 bits, of input and output; False for 32 bits.
    bits, offset, length
        The bitmap.
    out
        Output of ``count + 1`` offsets, the first of which is 0.
    count
        Number of values that are kept.

    Returns
    -------
    int
        Number of bytes of the strings that are kept.

    Raises
    ------
    CodecError
        A buffer is too small, `count` is not the number of values kept, or offsets are negative or decrease.
    """
    cdef ByteView source = readable(offsets), mask = readable(bits), target = writable(out)
    cdef int64_t total = 0
    cdef int problem
    check_bits(mask, offset, length)
    if count < 0 or count > length:
        raise CodecError(f"{count} of {length} values cannot be kept")
    check_offsets(source, wide, length)
    check_offsets(target, wide, count)
    with nogil:
        problem = lc_kept_ends(mask.data, offset, length, source.data, wide, count, target.data, &total)
    if problem != LC_OK:
        fail(problem, f"an output of {count} of {length} strings")
    return total


def strings(data, offsets, bint wide, bits, int64_t offset, int64_t length, out):
    """Copy the bytes of the strings that are kept.

    Parameters
    ----------
    data
        Bytes of the input strings.
    offsets, wide
        As for `ends`.
    bits, offset, length
        The bitmap.
    out
        Output of exactly as many bytes as `ends` returned.

    Raises
    ------
    CodecError
        A buffer is too small, offsets decrease or exceed the data, or `out` does not have the size of the strings kept.
    """
    cdef ByteView source = readable(data), ends_ = readable(offsets), mask = readable(bits), target = writable(out)
    cdef int problem
    check_bits(mask, offset, length)
    check_offsets(ends_, wide, length)
    with nogil:
        problem = lc_kept_bytes(mask.data, offset, length, lc_bytes(source.data, source.size), ends_.data, wide,
                                target.data, target.size)
    if problem != LC_OK:
        fail(problem, f"an output of {target.size} bytes of {length} strings")
