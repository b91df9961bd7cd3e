"""Flat values: any number of bits each, one after the other.

Bit b of a buffer is bit ``b % 8``, counted from the least significant, of byte ``b // 8``. Widths that are no whole
bytes are those of booleans and of fixed-size lists of them.
"""

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

def size(n: int, bits: int) -> int:
    """Bytes of n values of `bits` bits."""

def chunk_values(bits: int, extra_bytes: int = 0, max_bytes: int = 8186, max_values: int = 4096) -> int:
    """Values per chunk as the reference chooses them.

    It counts in words of one value, or of eight where values are no whole bytes, from two words on, and doubles while
    less than `max_bytes` are filled.

    Parameters
    ----------
    bits
        Width of a value.
    extra_bytes
        Bytes each value has beside its own: the validity of the items of a fixed-size list.

    Returns
    -------
    int
        A power of two, or 0 if two values are too many for a chunk.
    """

def power_of_two_values(limit: int) -> int:
    """Return the largest power of two that is at most `limit`."""

def encode(values: Buffer, bit: int, n: int, bits: int, chunk: int, out: Buffer, ends: NDArray[np.int64]) -> int:
    """Write n values in chunks of `chunk` values, each of whole bytes.

    Parameters
    ----------
    values, bit
        Values from bit `bit` of a buffer on.
    out
        The chunks back to back; unused bits of the last byte of a chunk become 0.
    ends
        Filled with the byte where each chunk ends.

    Returns
    -------
    int
        Number of chunks.
    """

def decode(data: Buffer, n: int, bits: int, out: Buffer) -> None:
    """Copy n values to the begin of `out`.

    Raises
    ------
    CodecError
        The data is shorter or longer than n values, or the output too small.
    """

def decode_bits(data: Buffer, n: int, bits: int, out: Buffer, at: int) -> None:
    """Copy n values to bit `at` of `out` and on; its other bits stay as they are."""

def take(data: Buffer, n: int, bits: int, positions: NDArray[np.int64], out: Buffer) -> None:
    """Write the values at some of n positions, in any order, to `out`; values of whole bytes only."""

def take_bits(data: Buffer, n: int, bits: int, positions: NDArray[np.int64], out: Buffer, at: int = 0) -> None:
    """Write the values at some positions to bit `at` of `out` and on; values of any number of bits."""

def booleans_from_bytes(values: Buffer, out: Buffer, at: int = 0) -> None:
    """Turn booleans of a byte each (0 is false) into bits from bit `at` of `out` on; `bitmap.unpack` is the inverse."""
