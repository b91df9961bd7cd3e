"""Byte strings of different lengths, stored next to each other in one array: vectorized reads and writes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["Bytes", "Ints", "expand_ranges", "gather", "scatter", "starts_of"]

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]


def starts_of(lengths: Ints) -> Ints:
    """Return the starts of consecutive ranges of these lengths, int64[n + 1]; the last value is the end."""
    starts = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts


def expand_ranges(begins: Ints, lengths: Ints) -> Ints:
    """Return the positions of all values of ranges, int64[sum of the lengths]."""
    return np.repeat(begins - starts_of(lengths)[:-1], lengths) + np.arange(int(lengths.sum()))


def gather(data: Bytes, begins: Ints, lengths: Ints) -> Bytes:
    """Return the bytes of ranges, concatenated; the ranges must lie inside the data."""
    return data[expand_ranges(begins, lengths)]


def scatter(parts: Bytes, out: Bytes, begins: Ints, lengths: Ints) -> None:
    """Write concatenated parts to their places in `out`."""
    out[expand_ranges(begins, lengths)] = parts
