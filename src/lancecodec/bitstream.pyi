"""The bit stream of 2.0 files (`Bitpacked`): values of some bits one after another, perhaps sign extended.

Value i is at bits ``i * width`` to ``(i + 1) * width - 1`` of the stream, least significant bit first. Everywhere
`bits` is the size of a value (8, 16, 32 or 64), `width` of a stored one (1 to `bits`), buffers of values hold
little-endian values back to back, and buffers may be at any address.
"""

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

def width(values: Buffer, bits: int, signed: bool) -> tuple[int, bool]:
    """Smallest width of the values, at least 1, and whether a sign bit is part of it.

    Parameters
    ----------
    values
        Whole values of `bits` bits.
    bits
        Size of a value.
    signed
        The values are signed integers; the sign bit is used only if one of them is negative.

    Raises
    ------
    CodecError
        `values` has the wrong size.
    """

def encoded_size(n: int, width: int) -> int:
    """Bytes of `n` values."""

def encode(values: Buffer, bits: int, width: int, signed: bool, out: Buffer) -> int:
    """Write values as a bit stream; unused bits of the last byte are 0.

    Parameters
    ----------
    values
        Whole values of `bits` bits.
    bits, width
        Size of a value and of a stored value.
    signed
        The top bit of a stored value is its sign.
    out
        Output, `encoded_size` bytes.

    Returns
    -------
    int
        Bytes written.

    Raises
    ------
    CodecError
        A value does not fit, or a buffer has the wrong size; `out` may have been written to.
    """

def decode(data: Buffer, bits: int, width: int, signed: bool, start: int, stop: int, out: Buffer) -> int:
    """Read values ``[start, stop)`` of a bit stream; returns their number.

    Parameters
    ----------
    data
        The stream from its first value on; bytes after value ``stop - 1`` do not matter.
    bits, width
        Size of a value and of a stored value.
    signed
        Copy bit ``width - 1`` into all bits above it.
    start, stop
        Range of values.
    out
        Output, ``(stop - start) * bits / 8`` bytes.

    Raises
    ------
    CodecError
        The stream does not have the values, or `out` is too small.
    """

def select(data: Buffer, bits: int, width: int, signed: bool, positions: NDArray[np.int64], out: Buffer) -> int:
    """Read the values at some positions of a bit stream, in any order; returns their number.

    Raises
    ------
    CodecError
        The stream does not have a position, or `out` is too small.
    """
