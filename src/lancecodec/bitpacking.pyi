"""FastLanes bit packing: blocks of 1024 values, with the width inline, out of line, or one for a page of 2.0.

A block packs 1024 unsigned values of 8, 16, 32 or 64 bits into 1024 values of `width` bits, in the transposed order
of FastLanes (Afroozeh and Boncz, "The FastLanes Compression Layout", VLDB 2023), in which neighbouring values are
handled together. Values are raw bit patterns: a negative number needs all its bits.

Everywhere `bits` is the size of a value (8, 16, 32 or 64), `width` of a packed one (0 to `bits`), buffers of values
hold little-endian values back to back, buffers may be at any address, and `out` may be larger than needed.
"""

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

#: Values in a block.
BLOCK_VALUES: int

def width(values: Buffer, bits: int) -> int:
    """Bits the largest of the values needs; 0 if all are 0."""

def block_widths(values: Buffer, bits: int, widths: Buffer) -> int:
    """Bits the largest value of each block of 1024 needs, one byte per block; returns the number of blocks."""

def packed_size(n: int, width: int) -> int:
    """Bytes of `n` values in whole blocks of one width."""

def pack(values: Buffer, bits: int, width: int, out: Buffer) -> int:
    """Pack values into whole blocks of one width, the last one padded with zeros (`BitpackedForNonNeg` of 2.0).

    Parameters
    ----------
    values
        Whole values of `bits` bits.
    bits, width
        Size of a value and of a packed value.
    out
        Output, `packed_size` bytes.

    Returns
    -------
    int
        Bytes written.

    Raises
    ------
    CodecError
        A value needs more than `width` bits, or a buffer has the wrong size.
    """

def unpack(data: Buffer, bits: int, width: int, start: int, stop: int, out: Buffer) -> int:
    """Unpack values ``[start, stop)`` of whole blocks of one width; returns their number.

    Parameters
    ----------
    data
        Whole blocks, ``128 * width`` bytes each. With a width of 0 there are no bytes and as many zeros as asked for.
    bits, width
        Size of a value and of a packed value.
    start, stop
        Range of values; only the blocks it touches are read.
    out
        Output, ``(stop - start) * bits / 8`` bytes.

    Raises
    ------
    CodecError
        The range is not in the blocks, or a buffer has the wrong size.
    """

def select(data: Buffer, bits: int, width: int, positions: NDArray[np.int64], out: Buffer) -> int:
    """Unpack the values at some positions of whole blocks of one width; returns their number.

    Positions may be in any order and repeat; ascending ones are fastest. A block is unpacked only where many of its
    values are asked for.

    Raises
    ------
    CodecError
        A position is not in the blocks, or a buffer has the wrong size.
    """

def inline_bound(n: int, bits: int) -> int:
    """Upper bound of the bytes `inline_encode` writes for `n` values."""

def inline_encode(values: Buffer, bits: int, out: Buffer, ends: NDArray[np.int64]) -> int:
    """Pack a page as inline chunks of 1024 values: per chunk its width as one value of `bits` bits, then the block.

    Parameters
    ----------
    values
        Whole values of `bits` bits. At most 1024 of them make the single chunk of the block context.
    bits
        Size of a value.
    out
        Output, `inline_bound` bytes; the chunks are written back to back.
    ends
        Output, one entry per chunk: the byte where it ends.

    Returns
    -------
    int
        Bytes written; 0 for no values.

    Raises
    ------
    CodecError
        A buffer has the wrong size.
    """

def inline_decode(data: Buffer, ends: NDArray[np.int64], bits: int, n: int, out: Buffer) -> None:
    """Unpack what `inline_encode` wrote.

    Parameters
    ----------
    data
        The chunks, back to back and nothing else.
    ends
        The byte where each chunk ends.
    bits
        Size of a value.
    n
        Number of values, 1024 in each chunk but the last.
    out
        Output, ``n * bits / 8`` bytes.

    Raises
    ------
    CodecError
        Number of chunks, a chunk's width or its size are wrong, or `out` is too small.
    """

def inline_block_decode(data: Buffer, bits: int, n: int, out: Buffer) -> None:
    """Unpack one inline chunk of any number of values up to 1024; of 0 values no byte is read.

    Raises
    ------
    CodecError
        The width or the size of the chunk is wrong, `n` is more than 1024, or `out` is too small.
    """

def inline_block_select(data: Buffer, bits: int, n: int, positions: NDArray[np.int64], out: Buffer) -> None:
    """Unpack the values at some positions of one inline chunk of `n` values; all of it only if many are asked for.

    Raises
    ------
    CodecError
        A position is not below `n`, or as for `inline_block_decode`.
    """

def out_of_line_size(n: int, bits: int, width: int) -> int:
    """Bytes of `n` values packed out of line: full blocks, and the shorter of a packed and a plain tail."""

def out_of_line_encode(values: Buffer, bits: int, width: int, out: Buffer) -> int:
    """Pack values into full blocks; the last ``n % 1024`` are packed too if that is shorter, else stored plain.

    Parameters
    ----------
    values
        Whole values of `bits` bits.
    bits, width
        Size of a value and of a packed value.
    out
        Output, `out_of_line_size` bytes.

    Returns
    -------
    int
        Bytes written.

    Raises
    ------
    CodecError
        A value to be packed needs more than `width` bits, or a buffer has the wrong size.
    """

def out_of_line_decode(data: Buffer, bits: int, width: int, n: int, out: Buffer) -> None:
    """Unpack `n` values; the size of `data`, which must be exact, tells whether the tail is packed or plain.

    A size that allows both means plain.

    Raises
    ------
    CodecError
        `data` has neither size, or `out` is too small.
    """

def out_of_line_select(data: Buffer, bits: int, width: int, n: int, positions: NDArray[np.int64], out: Buffer) -> None:
    """Unpack the values at some positions of `n` values packed out of line.

    Raises
    ------
    CodecError
        A position is not below `n`, or as for `out_of_line_decode`.
    """
