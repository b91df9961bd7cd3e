"""Byte strings of different lengths, next to each other in one array: reading and writing many of them at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["Bytes", "Ints", "expand_ranges", "gather", "scatter", "starts_of"]

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]


def starts_of(lengths: Ints) -> Ints:
    """Where ranges of these lengths begin that follow one another, int64[n + 1]: the last is their end."""
    starts = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts


def expand_ranges(begins: Ints, lengths: Ints) -> Ints:
    """Positions of all values of ranges, int64[sum of the lengths]."""
    return np.repeat(begins - starts_of(lengths)[:-1], lengths) + np.arange(int(lengths.sum()))


def gather(data: Bytes, begins: Ints, lengths: Ints) -> Bytes:
    """Bytes of ranges, which have to be inside of the data, one range after the other."""
    return data[expand_ranges(begins, lengths)]


def scatter(parts: Bytes, out: Bytes, begins: Ints, lengths: Ints) -> None:
    """Write parts, which follow one another, where each of them belongs."""
    out[expand_ranges(begins, lengths)] = parts
