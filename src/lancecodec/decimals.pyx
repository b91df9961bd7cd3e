"""Products of decimals, computed on the 128-bit integers that hold their digits."""

from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint64_t

from lancecodec.buffers cimport ByteView, readable, writable

from lancecodec.errors import CodecError

cdef extern from "kernels/decimal_multiply.h" nogil:
    ctypedef struct lc_magnitude:
        uint64_t low
        uint64_t high
    int lc_decimals_multiply(const uint8_t *left, const uint8_t *right, int64_t step, int64_t n, lc_magnitude most,
                             uint8_t *out)

cdef int64_t WIDTH = 16


def multiply(left, right, int64_t n, most, out):
    """Multiply numbers pairwise, or all numbers with one.

    Parameters
    ----------
    left
        At least n numbers of 16 bytes each, little-endian two's complement.
    right
        At least n numbers like `left`, or a single number of exactly 16 bytes that multiplies all of them.
    n
        Number of products.
    most
        Largest magnitude of a product, less than 2**127.
    out
        Output of at least ``16 * n`` bytes.

    Returns
    -------
    bool
        True if all products fit. False if the magnitude of a product is above `most`; the content of `out` is then
        undefined.

    Raises
    ------
    CodecError
        A buffer is too small, or `most` is negative or not less than 2**127.
    """
    cdef ByteView first = readable(left), second = readable(right), target = writable(out)
    cdef int64_t step = 0 if second.size == WIDTH else WIDTH
    cdef lc_magnitude limit
    cdef int fits
    if not 0 <= most < 1 << 127:
        raise CodecError(f"{most} is not a magnitude of a 128-bit number")
    if n < 0 or n > INT64_MAX // WIDTH:
        raise CodecError(f"the number of decimals is out of range: {n}")
    if first.size < n * WIDTH or (step and second.size < n * WIDTH) or target.size < n * WIDTH:
        found = f"{first.size}, {second.size} and {target.size}"
        raise CodecError(f"{n} decimals need buffers of {n * WIDTH} bytes, not {found}")
    limit.low, limit.high = most & 0xFFFFFFFFFFFFFFFF, most >> 64
    with nogil:
        fits = lc_decimals_multiply(first.data, second.data, step, n, limit, target.data)
    return fits != 0
