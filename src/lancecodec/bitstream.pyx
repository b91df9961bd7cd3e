"""The bit stream of 2.0 files (`Bitpacked`): values of some bits one after another, perhaps sign extended."""

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
        raise CodecError(f"a bit stream has no values of {bits} bits, only of 8, 16, 32 and 64")
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
    cdef ByteView source = readable(values)
    cdef int64_t n
    cdef int result, negative = 0
    check_form(bits, 1)
    n = count_values(source, bits)
    with nogil:
        result = lc_stream_width(source.data, n, <int>bits, signed, &negative)
    return result, negative != 0


def encoded_size(int64_t n, int64_t width):
    check_form(64, width)
    if n < 0 or n > INT64_MAX // 128:
        raise CodecError(f"{n} values cannot be one bit stream")
    return (n * width + 7) // 8


def encode(values, int64_t bits, int64_t width, bint signed, out):
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
    cdef ByteView source = readable(data), target = writable(out)
    check_form(bits, width)
    if start < 0 or stop < start or stop > held(source, width):
        raise CodecError(f"values {start} to {stop} are outside the {held(source, width)} of {source.size} bytes")
    check_room(target, stop - start, bits)
    with nogil:
        lc_stream_decode(source.data, source.size, <int>bits, <int>width, signed, start, stop, target.data)
    return stop - start


def select(data, int64_t bits, int64_t width, bint signed, const int64_t[::1] positions not None, out):
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
