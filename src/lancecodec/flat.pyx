"""Flat values: any number of bits each, one after the other."""

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
        raise CodecError(f"no buffer holds {n} values of {bits} bits")
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
    return checked_size(n, bits)


def chunk_values(int64_t bits, int64_t extra_bytes=0, int64_t max_bytes=8186, int64_t max_values=4096):
    cdef int64_t word, values
    if bits <= 0 or extra_bytes < 0 or bits > 1 << 40 or extra_bytes > 1 << 40:
        raise CodecError(f"no chunk has values of {bits} bits and {extra_bytes} bytes beside each")
    word, values = (bits // 8 + extra_bytes, 2) if bits % 8 == 0 else (bits + 8 * extra_bytes, 8)
    word *= 2
    if word >= max_bytes:
        return 0
    while 2 * word < max_bytes and 2 * values <= max_values:
        word, values = 2 * word, 2 * values
    return values


def power_of_two_values(int64_t limit):
    if limit < 1:
        raise ValueError(f"no power of two is at most {limit}")
    return 1 << (limit.bit_length() - 1)


def encode(values, int64_t bit, int64_t n, int64_t bits, int64_t chunk, out, int64_t[::1] ends not None):
    cdef ByteView source = readable(values), target = writable(out)
    cdef int64_t chunks, needed
    check_bits(source.size, bit, n, bits, "input")
    if chunk < 1:
        raise ValueError(f"chunks of {chunk} values cannot be made: choose a positive number")
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
    cdef ByteView source = readable(values), target = writable(out)
    check_bits(target.size, at, source.size, 1, "output")
    with nogil:
        lc_flat_bytes_to_bits(source.data, source.size, target.data, at)
