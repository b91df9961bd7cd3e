"""FastLanes bit packing: blocks of 1024 values, with the width inline, out of line, or one for a page of 2.0."""

from libc.stdint cimport INT64_MAX, int64_t, uint8_t

from lancecodec.buffers cimport ByteView, check_aligned, readable, writable
from lancecodec.problems cimport LC_BAD_WIDTH, fail, lc_bytes

from lancecodec.errors import CodecError

cdef extern from "kernels/fastlanes.h" nogil:
    int LC_FL_VALUES, LC_FL_ROW
    int lc_fl_bits_known(int64_t bits)
    int lc_fl_width(const uint8_t *values, int64_t n, int bits)
    int lc_fl_pack_blocks(const uint8_t *values, int64_t n, int bits, int width, uint8_t *out, int64_t *written)
    void lc_fl_unpack_range(const uint8_t *src, int bits, int width, int64_t start, int64_t stop, uint8_t *out)
    void lc_fl_blocks_at(const uint8_t *src, int bits, int width, const int64_t *at, int64_t count, uint8_t *out)
    int64_t lc_inline_pack(const uint8_t *values, int64_t n, int bits, uint8_t *out, int64_t *ends)
    int lc_inline_chunks(const uint8_t *src, const int64_t *ends, int64_t n, int64_t bits, uint8_t *out, int64_t *where)
    int lc_inline_block(const uint8_t *src, int64_t size, int64_t n, int64_t bits, uint8_t *out)
    int lc_inline_at(const lc_bytes *buffers, int64_t n, int64_t bits, const int64_t *at, int64_t count, uint8_t *out)
    int64_t lc_ool_size(int64_t n, int64_t bits, int64_t width)
    int lc_ool_pack(const uint8_t *values, int64_t n, int bits, int width, uint8_t *out)
    int lc_ool_unpack(const uint8_t *src, int64_t size, int64_t n, int64_t bits, int64_t width, uint8_t *out)
    int lc_ool_at(const uint8_t *src, int64_t size, int64_t n, int64_t bits, int64_t width, const int64_t *at,
                  int64_t count, uint8_t *out)

BLOCK_VALUES = LC_FL_VALUES


cdef int check_form(int64_t bits, int64_t width) except -1:
    if not lc_fl_bits_known(bits):
        raise CodecError(f"bit packing has no values of {bits} bits, only of 8, 16, 32 and 64")
    if width < 0 or width > bits:
        raise CodecError(f"values of {bits} bits cannot be packed into {width} bits")
    return 0


cdef int64_t count_values(ByteView values, int64_t bits) except -1:
    if values.size % (bits // 8):
        raise CodecError(f"{values.size} bytes are not whole values of {bits} bits")
    return values.size // (bits // 8)


cdef int check_room(ByteView out, int64_t n, int64_t bits) except -1:
    if n < 0 or out.size // (bits // 8) < n:
        raise CodecError(f"output of {out.size} bytes is too small for {n} values of {bits} bits")
    return 0


cdef int check_bytes(ByteView out, int64_t needed) except -1:
    if out.size < needed:
        raise CodecError(f"output of {out.size} bytes is too small for {needed} packed bytes")
    return 0


cdef int check_positions(const int64_t[::1] positions, int64_t n) except -1:
    cdef int64_t i, bad = -1
    if positions.shape[0] == 0:
        return 0
    check_aligned(&positions[0])
    with nogil:
        for i in range(positions.shape[0]):
            if positions[i] < 0 or positions[i] >= n:
                bad = i
                break
    if bad >= 0:
        raise CodecError(f"position {positions[bad]} is outside {n} values")
    return 0


cdef int64_t block_count(int64_t n):
    return n // LC_FL_VALUES + (n % LC_FL_VALUES != 0)


def width(values, int64_t bits):
    cdef ByteView source = readable(values)
    cdef int64_t n
    cdef int result
    check_form(bits, 0)
    n = count_values(source, bits)
    with nogil:
        result = lc_fl_width(source.data, n, <int>bits)
    return result


def block_widths(values, int64_t bits, widths):
    cdef ByteView source = readable(values), target = writable(widths)
    cdef int64_t n, i, blocks
    check_form(bits, 0)
    n = count_values(source, bits)
    blocks = block_count(n)
    if target.size < blocks:
        raise CodecError(f"output of {target.size} widths is too small for {blocks} blocks")
    with nogil:
        for i in range(blocks):
            target.data[i] = <uint8_t>lc_fl_width(source.data + i * LC_FL_VALUES * (bits // 8),
                                                  min(<int64_t>LC_FL_VALUES, n - i * LC_FL_VALUES), <int>bits)
    return blocks


cdef int64_t bound(int64_t n, int64_t per_block) except -1:
    if n < 0 or block_count(n) > INT64_MAX // (65 * LC_FL_ROW):
        raise CodecError(f"{n} values cannot be packed at once")
    return block_count(n) * per_block


def packed_size(int64_t n, int64_t width):
    check_form(64, width)
    return bound(n, width * LC_FL_ROW)


def pack(values, int64_t bits, int64_t width, out):
    cdef ByteView source = readable(values), target = writable(out)
    cdef int64_t n, written = 0
    cdef int problem
    check_form(bits, width)
    n = count_values(source, bits)
    check_bytes(target, bound(n, width * LC_FL_ROW))
    with nogil:
        problem = lc_fl_pack_blocks(source.data, n, <int>bits, <int>width, target.data, &written)
    if problem:
        raise CodecError(f"a value does not fit {width} bits")
    return written


cdef int64_t held(ByteView source, int64_t width) except -1:
    """Values in whole blocks; as many as one likes if they have no bits."""
    if width == 0:
        if source.size:
            raise CodecError(f"values of 0 bits have {source.size} bytes")
        return INT64_MAX
    if source.size % (width * LC_FL_ROW):
        raise CodecError(f"{source.size} bytes are not whole blocks of 1024 values of {width} bits")
    return source.size // (width * LC_FL_ROW) * LC_FL_VALUES


def unpack(data, int64_t bits, int64_t width, int64_t start, int64_t stop, out):
    cdef ByteView source = readable(data), target = writable(out)
    cdef int64_t n
    check_form(bits, width)
    n = held(source, width)
    if start < 0 or stop < start or stop > n:
        raise CodecError(f"values {start} to {stop} are outside the {n} packed ones")
    check_room(target, stop - start, bits)
    with nogil:
        lc_fl_unpack_range(source.data, <int>bits, <int>width, start, stop, target.data)
    return stop - start


def select(data, int64_t bits, int64_t width, const int64_t[::1] positions not None, out):
    cdef ByteView source = readable(data), target = writable(out)
    cdef int64_t count = positions.shape[0]
    check_form(bits, width)
    check_positions(positions, held(source, width))
    check_room(target, count, bits)
    if count:
        with nogil:
            lc_fl_blocks_at(source.data, <int>bits, <int>width, &positions[0], count, target.data)
    return count


def inline_bound(int64_t n, int64_t bits):
    check_form(bits, 0)
    return bound(n, bits // 8 + bits * LC_FL_ROW)


def inline_encode(values, int64_t bits, out, int64_t[::1] ends not None):
    cdef ByteView source = readable(values), target = writable(out)
    cdef int64_t n, blocks, size
    check_form(bits, 0)
    n = count_values(source, bits)
    blocks = block_count(n)
    check_bytes(target, bound(n, bits // 8 + bits * LC_FL_ROW))
    if ends.shape[0] < blocks:
        raise CodecError(f"output of {ends.shape[0]} chunk ends is too small for {blocks} chunks")
    if blocks == 0:
        return 0
    check_aligned(&ends[0])
    with nogil:
        size = lc_inline_pack(source.data, n, <int>bits, target.data, &ends[0])
    return size


def inline_decode(data, const int64_t[::1] ends not None, int64_t bits, int64_t n, out):
    cdef ByteView source = readable(data), target = writable(out)
    cdef int64_t blocks, i, end = 0, where = 0
    cdef int problem
    check_form(bits, 0)
    check_room(target, n, bits)
    blocks = block_count(n)
    if ends.shape[0] != blocks:
        raise CodecError(f"{ends.shape[0]} chunks instead of the {blocks} of {n} values")
    if blocks == 0:
        return
    check_aligned(&ends[0])
    for i in range(blocks):
        if ends[i] < end or ends[i] > source.size:
            raise CodecError(f"chunk {i} ends at {ends[i]}, outside {end} to {source.size}")
        end = ends[i]
    if end != source.size:
        raise CodecError(f"the last chunk ends at {end} of {source.size} bytes")
    with nogil:
        problem = lc_inline_chunks(source.data, &ends[0], n, bits, target.data, &where)
    if problem:
        fail(problem, f"inline bit packing, chunk {where}")


def inline_block_decode(data, int64_t bits, int64_t n, out):
    cdef ByteView source = readable(data), target = writable(out)
    cdef int problem
    check_form(bits, 0)
    check_room(target, n, bits)
    with nogil:
        problem = lc_inline_block(source.data, source.size, n, bits, target.data)
    if problem:
        fail(problem, f"inline bit packing of {n} values in {source.size} bytes")


def inline_block_select(data, int64_t bits, int64_t n, const int64_t[::1] positions not None, out):
    cdef ByteView source = readable(data), target = writable(out)
    cdef int64_t count = positions.shape[0]
    cdef lc_bytes buffer
    cdef int problem
    check_form(bits, 0)
    check_positions(positions, n)
    check_room(target, count, bits)
    if count == 0:
        return
    buffer.data, buffer.size = source.data, source.size
    with nogil:
        problem = lc_inline_at(&buffer, n, bits, &positions[0], count, target.data)
    if problem:
        fail(problem, f"inline bit packing of {n} values in {source.size} bytes")


def out_of_line_size(int64_t n, int64_t bits, int64_t width):
    check_form(bits, width)
    bound(n, 0)
    return lc_ool_size(n, bits, width)


def out_of_line_encode(values, int64_t bits, int64_t width, out):
    cdef ByteView source = readable(values), target = writable(out)
    cdef int64_t n, size
    cdef int problem
    check_form(bits, width)
    n = count_values(source, bits)
    size = lc_ool_size(n, bits, width)
    check_bytes(target, size)
    with nogil:
        problem = lc_ool_pack(source.data, n, <int>bits, <int>width, target.data)
    if problem == LC_BAD_WIDTH:
        raise CodecError(f"a value does not fit {width} bits")
    return size


def out_of_line_decode(data, int64_t bits, int64_t width, int64_t n, out):
    cdef ByteView source = readable(data), target = writable(out)
    cdef int problem
    check_form(bits, width)
    check_room(target, n, bits)
    with nogil:
        problem = lc_ool_unpack(source.data, source.size, n, bits, width, target.data)
    if problem:
        fail(problem, f"out-of-line bit packing of {n} values in {source.size} bytes")


def out_of_line_select(data, int64_t bits, int64_t width, int64_t n, const int64_t[::1] positions not None, out):
    cdef ByteView source = readable(data), target = writable(out)
    cdef int64_t count = positions.shape[0]
    cdef int problem
    check_form(bits, width)
    check_positions(positions, n)
    check_room(target, count, bits)
    if count == 0:
        return
    with nogil:
        problem = lc_ool_at(source.data, source.size, n, bits, width, &positions[0], count, target.data)
    if problem:
        fail(problem, f"out-of-line bit packing of {n} values in {source.size} bytes")
