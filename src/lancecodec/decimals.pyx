"""Products of decimals."""

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
    cdef ByteView first = readable(left), second = readable(right), target = writable(out)
    cdef int64_t step = 0 if second.size == WIDTH else WIDTH
    cdef lc_magnitude limit
    cdef int fits
    if not 0 <= most < 1 << 127:
        raise CodecError(f"{most} is no magnitude of a 128-bit number")
    if n < 0 or n > INT64_MAX // WIDTH:
        raise CodecError(f"there are no {n} decimals")
    if first.size < n * WIDTH or (step and second.size < n * WIDTH) or target.size < n * WIDTH:
        found = f"{first.size}, {second.size} and {target.size}"
        raise CodecError(f"{n} decimals need buffers of {n * WIDTH} bytes, not {found}")
    limit.low, limit.high = most & 0xFFFFFFFFFFFFFFFF, most >> 64
    with nogil:
        fits = lc_decimals_multiply(first.data, second.data, step, n, limit, target.data)
    return fits != 0
