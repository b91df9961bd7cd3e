"""Varints of one to five bytes: seven bits in each, the lowest first; the last byte is below 128."""

from __future__ import annotations

import numpy as np

from lance_dataset.index.text.byte_ranges import Bytes, Ints, starts_of

__all__ = ["decode_varints", "encode_varints", "varint_sizes"]

_MAX_BYTES = 5
_MAX_VALUE = (1 << 32) - 1


def varint_sizes(values: Ints) -> Ints:
    """Return the encoded size in bytes of each number, int64[n]."""
    sizes = np.ones(len(values), np.int64)
    for bits in range(7, 35, 7):
        sizes += values >= 1 << bits
    return sizes


def encode_varints(values: Ints, sizes: Ints | None = None) -> Bytes:
    """Encode numbers from 0 to 2**32 - 1, one after the other.

    Parameters
    ----------
    values : int64[n]
    sizes : int64[n], optional
        Result of `varint_sizes` for the values.
    """
    sizes = varint_sizes(values) if sizes is None else sizes
    starts = starts_of(sizes)
    out = np.empty(int(starts[-1]), np.uint8)
    for place in range(int(sizes.max(initial=0))):
        longer = sizes > place
        more = (sizes[longer] > place + 1).astype(np.uint8) << 7
        out[starts[:-1][longer] + place] = ((values[longer] >> 7 * place) & 0x7F).astype(np.uint8) | more
    return out


def decode_varints(data: Bytes) -> tuple[Ints, Ints]:
    """Decode all numbers of some bytes.

    Returns
    -------
    values : int64[n]
    ends : int64[n]
        End of each number.

    Raises
    ------
    ValueError
        The bytes end inside a number, or a number is longer than five bytes or above 2**32 - 1.
    """
    ends = np.flatnonzero(data < 0x80).astype(np.int64) + 1
    if (int(ends[-1]) if len(ends) else 0) != len(data):
        raise ValueError("the bytes end inside a number")
    starts = np.concatenate([np.zeros(1, np.int64), ends])[:-1]
    sizes = ends - starts
    longest = int(sizes.max(initial=0))
    if longest > _MAX_BYTES:
        raise ValueError(f"a number has {longest} bytes, more than 5")
    values = np.zeros(len(ends), np.int64)
    for place in range(longest):
        longer = slice(None) if place == 0 else sizes > place
        values[longer] |= (data[starts[longer] + place].astype(np.int64) & 0x7F) << 7 * place
    if longest == _MAX_BYTES and int(values.max()) > _MAX_VALUE:
        raise ValueError(f"the number {int(values.max())} has more than 32 bits")
    return values, ends
