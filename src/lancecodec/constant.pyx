"""Constant pages: many copies of one value."""

from libc.stdint cimport int64_t, uint8_t

from lancecodec.buffers cimport ByteView, readable, writable

from lancecodec.errors import CodecError

cdef extern from "kernels/constant.h" nogil:
    void lc_constant_fill(const uint8_t *value, int64_t width, int64_t n, uint8_t *out)
    void lc_constant_fill_bits(const uint8_t *value, int64_t bits, int64_t n, uint8_t *out, int64_t at)


def fill(value, int64_t n, out):
    """Write n copies of a value of whole bytes.

    Parameters
    ----------
    value
        The bytes of the value. It may be empty, then nothing is written.
    n
        Number of copies.
    out
        Output of at least ``n * len(value)`` bytes. Bytes behind them keep their values.

    Raises
    ------
    CodecError
        `n` is negative, or `out` is too small.
    """
    cdef ByteView source = readable(value), target = writable(out)
    if n < 0 or (source.size and target.size // source.size < n):
        raise CodecError(f"output of {target.size} bytes is too small for {n} values of {source.size} bytes")
    if source.size == 0:
        return
    with nogil:
        lc_constant_fill(source.data, source.size, n, target.data)


def fill_bits(value, int64_t bits, int64_t n, out, int64_t at=0):
    """Write n copies of a value of any number of bits, from any bit on.

    Parameters
    ----------
    value
        ``ceil(bits / 8)`` bytes, of which the lowest `bits` bits are used.
    bits
        Size of the value in bits, at least 1.
    n
        Number of copies.
    out
        Output with room for ``at + n * bits`` bits. Bits outside of the range written keep their values.
    at
        First bit of `out` to write.

    Raises
    ------
    CodecError
        `value` has another size, or `out` does not hold the bits.
    """
    cdef ByteView source = readable(value), target = writable(out)
    if bits <= 0 or source.size != bits // 8 + (bits % 8 != 0):
        raise CodecError(f"a value of {bits} bits cannot have {source.size} bytes")
    if n < 0 or at < 0 or at > target.size * 8 or n > (target.size * 8 - at) // bits:
        raise CodecError(f"output of {target.size} bytes does not hold {n} values of {bits} bits from bit {at} on")
    with nogil:
        lc_constant_fill_bits(source.data, bits, n, target.data, at)
