"""Gathers of values by index into buffers of the caller."""

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

def fixed(values: Buffer, width: int, indices: Buffer, index_width: int, out: Buffer) -> None:
    """Write value ``indices[i]`` of `width` bytes to position i of `out` (also: fixed-width dictionary decode).

    Parameters
    ----------
    indices
        Unsigned little-endian integers of `index_width` (1, 2, 4 or 8) bytes, at any address.

    Raises
    ------
    CodecError
        An index is outside `values`, or `out` is too small.
    """

def variable_offsets(
    value_offsets: NDArray[np.int64], indices: Buffer, index_width: int, out: NDArray[np.int64]
) -> int:
    """First pass of a variable-width gather: n + 1 output offsets from 0 on; returns the total number of bytes."""

def variable(
    values: Buffer,
    value_offsets: NDArray[np.int64],
    indices: Buffer,
    index_width: int,
    out_offsets: NDArray[np.int64],
    out: Buffer,
) -> None:
    """Second pass of a variable-width gather: copy value ``indices[i]`` to ``out[out_offsets[i]]``."""

def expand_ranges(begins: NDArray[np.int64], offsets: Buffer, wide: bool, out: NDArray[np.int64]) -> None:
    """Write ``begins[i], begins[i] + 1, ...`` to ``out[offsets[i]:offsets[i + 1]]`` for each of n ranges.

    Parameters
    ----------
    offsets
        n + 1 ascending 32-bit (or, `wide`, 64-bit) integers.
    """
