"""FastLanes bit packing: blocks of 1024 values, with the bit width stored inline or out of line.

A block packs 1024 unsigned values of 8, 16, 32 or 64 bits into 1024 values of `width` bits. The values are in the
transposed order of FastLanes (Afroozeh and Boncz, "The FastLanes Compression Layout", VLDB 2023), so that one
instruction handles many of them. Values are raw bit patterns: a negative number needs all its bits.

In all functions `bits` is the size of a value (8, 16, 32 or 64) and `width` is the size of a packed value (0 to
`bits`). Buffers of values hold little-endian values back to back. Buffers may be at any address, and `out` may be
larger than needed. An unsupported `bits` or `width` raises `CodecError`.

`pack` and `unpack` use one width for all blocks (``BitpackedForNonNeg`` of version 2.0). The `inline_` functions store
the width of each block in front of it. The `out_of_line_` functions use one width, and may leave the last values plain.
`BLOCK_VALUES` is the number of values in a block.
"""

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
        raise CodecError(f"bit packing does not support values of {bits} bits, only of 8, 16, 32 and 64")
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
    """Compute the number of bits that the largest value needs.

    Parameters
    ----------
    values
        n values of `bits` bits.
    bits
        Size of a value.

    Returns
    -------
    int
        Number of bits, 0 if all values are 0.

    Raises
    ------
    CodecError
        `values` is not a whole number of values.
    """
    cdef ByteView source = readable(values)
    cdef int64_t n
    cdef int result
    check_form(bits, 0)
    n = count_values(source, bits)
    with nogil:
        result = lc_fl_width(source.data, n, <int>bits)
    return result


def block_widths(values, int64_t bits, widths):
    """Compute the number of bits that the largest value of each block needs.

    Parameters
    ----------
    values
        n values of `bits` bits.
    bits
        Size of a value.
    widths
        Output of at least ``ceil(n / 1024)`` bytes, one width per block.

    Returns
    -------
    int
        Number of blocks.

    Raises
    ------
    CodecError
        `values` is not a whole number of values, or `widths` is too small.
    """
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
        raise CodecError(f"{n} values cannot be packed: the number is out of range")
    return block_count(n) * per_block


def packed_size(int64_t n, int64_t width):
    """Compute the size of values packed into whole blocks of one width.

    Parameters
    ----------
    n
        Number of values.
    width
        Size of a packed value in bits.

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
    return bound(n, width * LC_FL_ROW)


def pack(values, int64_t bits, int64_t width, out):
    """Pack values into whole blocks of one width, padding the last block with zeros.

    Parameters
    ----------
    values
        n values of `bits` bits.
    bits
        Size of a value.
    width
        Size of a packed value.
    out
        Output of at least ``packed_size(n, width)`` bytes.

    Returns
    -------
    int
        Number of bytes written.

    Raises
    ------
    CodecError
        A value needs more than `width` bits, `values` is not a whole number of values, or `out` is too small.
    """
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
    """Return the number of values in whole blocks, which is unlimited for 0 bits."""
    if width == 0:
        if source.size:
            raise CodecError(f"values of 0 bits have {source.size} bytes")
        return INT64_MAX
    if source.size % (width * LC_FL_ROW):
        raise CodecError(f"{source.size} bytes are not whole blocks of 1024 values of {width} bits")
    return source.size // (width * LC_FL_ROW) * LC_FL_VALUES


def unpack(data, int64_t bits, int64_t width, int64_t start, int64_t stop, out):
    """Unpack a range of values from whole blocks of one width.

    Parameters
    ----------
    data
        Whole blocks of ``128 * width`` bytes each. With a width of 0 it is empty and holds any number of zeros.
    bits
        Size of a value.
    width
        Size of a packed value.
    start, stop
        Range ``[start, stop)`` of values. Only the blocks that it touches are read.
    out
        Output of at least ``(stop - start) * bits / 8`` bytes.

    Returns
    -------
    int
        Number of values, ``stop - start``.

    Raises
    ------
    CodecError
        The range is outside of the blocks, `data` is not a whole number of blocks, or `out` is too small.
    """
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
    """Unpack the values at given positions from whole blocks of one width.

    A whole block is unpacked only if many of its values are selected.

    Parameters
    ----------
    data
        Whole blocks, as for `unpack`.
    bits
        Size of a value.
    width
        Size of a packed value.
    positions
        int64 array of n positions, in any order, repeats allowed. Ascending positions are fastest.
    out
        Output of at least ``n * bits / 8`` bytes.

    Returns
    -------
    int
        Number of values, n.

    Raises
    ------
    CodecError
        A position is outside of the blocks, `data` is not a whole number of blocks, or `out` is too small.
    """
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
    """Compute an upper bound of the bytes that `inline_encode` writes.

    Parameters
    ----------
    n
        Number of values.
    bits
        Size of a value.

    Returns
    -------
    int
        Size in bytes.

    Raises
    ------
    CodecError
        `n` is negative or too large.
    """
    check_form(bits, 0)
    return bound(n, bits // 8 + bits * LC_FL_ROW)


def inline_encode(values, int64_t bits, out, int64_t[::1] ends not None):
    """Pack a page into inline chunks of 1024 values: the width as one value of `bits` bits, then the block.

    Parameters
    ----------
    values
        n values of `bits` bits. Up to 1024 of them make a single chunk, which is also the block form.
    bits
        Size of a value.
    out
        Output of at least ``inline_bound(n, bits)`` bytes. The chunks are written back to back.
    ends
        Output int64 array with an entry for each of the ``ceil(n / 1024)`` chunks: the byte offset of its end.

    Returns
    -------
    int
        Number of bytes written, 0 if there are no values.

    Raises
    ------
    CodecError
        `values` is not a whole number of values, or an output is too small.
    """
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
    """Unpack the chunks that `inline_encode` wrote.

    Parameters
    ----------
    data
        The chunks back to back, without further bytes.
    ends
        int64 array with the byte offset of the end of each chunk.
    bits
        Size of a value.
    n
        Number of values: 1024 in each chunk except the last.
    out
        Output of at least ``n * bits / 8`` bytes.

    Raises
    ------
    CodecError
        The number of chunks, the width of a chunk or its size is wrong, or `out` is too small.
    """
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
    """Unpack one inline chunk.

    Parameters
    ----------
    data
        The chunk in its exact size. It is not read if `n` is 0.
    bits
        Size of a value.
    n
        Number of values, at most 1024.
    out
        Output of at least ``n * bits / 8`` bytes.

    Raises
    ------
    CodecError
        The width or the size of the chunk is wrong, `n` is more than 1024, or `out` is too small.
    """
    cdef ByteView source = readable(data), target = writable(out)
    cdef int problem
    check_form(bits, 0)
    check_room(target, n, bits)
    with nogil:
        problem = lc_inline_block(source.data, source.size, n, bits, target.data)
    if problem:
        fail(problem, f"inline bit packing of {n} values in {source.size} bytes")


def inline_block_select(data, int64_t bits, int64_t n, const int64_t[::1] positions not None, out):
    """Unpack the values at given positions of one inline chunk.

    The whole chunk is unpacked only if many of its values are selected.

    Parameters
    ----------
    data
        The chunk in its exact size.
    bits
        Size of a value.
    n
        Number of values in the chunk, at most 1024.
    positions
        int64 array of positions below `n`, in any order.
    out
        Output with room for a value of `bits` bits per position.

    Raises
    ------
    CodecError
        A position is not below `n`, the width or the size of the chunk is wrong, or `out` is too small.
    """
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
    """Compute the size of values packed out of line: full blocks, and the shorter of a packed and a plain tail.

    Parameters
    ----------
    n
        Number of values.
    bits
        Size of a value.
    width
        Size of a packed value.

    Returns
    -------
    int
        Size in bytes.

    Raises
    ------
    CodecError
        `n` is negative or too large.
    """
    check_form(bits, width)
    bound(n, 0)
    return lc_ool_size(n, bits, width)


def out_of_line_encode(values, int64_t bits, int64_t width, out):
    """Pack values into full blocks of one width. The last ``n % 1024`` values stay plain if that is shorter than a
    block.

    Parameters
    ----------
    values
        n values of `bits` bits.
    bits
        Size of a value.
    width
        Size of a packed value.
    out
        Output of at least ``out_of_line_size(n, bits, width)`` bytes.

    Returns
    -------
    int
        Number of bytes written.

    Raises
    ------
    CodecError
        A packed value needs more than `width` bits, `values` is not a whole number of values, or `out` is too small.
    """
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
    """Unpack values that were packed out of line.

    The size of `data` tells whether the tail is packed or plain. A size that allows both means plain.

    Parameters
    ----------
    data
        The packed values in their exact size.
    bits
        Size of a value.
    width
        Size of a packed value.
    n
        Number of values.
    out
        Output of at least ``n * bits / 8`` bytes.

    Raises
    ------
    CodecError
        `data` has neither of the two possible sizes, or `out` is too small.
    """
    cdef ByteView source = readable(data), target = writable(out)
    cdef int problem
    check_form(bits, width)
    check_room(target, n, bits)
    with nogil:
        problem = lc_ool_unpack(source.data, source.size, n, bits, width, target.data)
    if problem:
        fail(problem, f"out-of-line bit packing of {n} values in {source.size} bytes")


def out_of_line_select(data, int64_t bits, int64_t width, int64_t n, const int64_t[::1] positions not None, out):
    """Unpack the values at given positions of values that were packed out of line.

    Parameters
    ----------
    data
        The packed values in their exact size.
    bits
        Size of a value.
    width
        Size of a packed value.
    n
        Number of packed values.
    positions
        int64 array of positions below `n`, in any order.
    out
        Output with room for a value of `bits` bits per position.

    Raises
    ------
    CodecError
        A position is not below `n`, `data` has neither of the two possible sizes, or `out` is too small.
    """
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
