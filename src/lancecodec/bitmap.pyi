"""Validity bitmaps: least significant bit first, 1 means valid."""

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

def pack(values: Buffer, out: Buffer) -> None:
    """Turn bytes into bits.

    Parameters
    ----------
    values
        n bytes; 0 is a clear bit, anything else a set one.
    out
        At least ``ceil(n / 8)`` writable bytes; unused bits of the last one become 0.
    """

def unpack(bits: Buffer, offset: int, length: int, out: Buffer) -> None:
    """Turn bits ``[offset, offset + length)`` into bytes 0 or 1."""

def copy(bits: Buffer, offset: int, length: int, out: Buffer, at: int = 0) -> None:
    """Copy bits ``[offset, offset + length)`` to bit `at` of `out`; its other bits stay as they are."""

def fill(out: Buffer, at: int, length: int, value: bool) -> None:
    """Set bits ``[at, at + length)`` of `out` to `value`."""

def count(bits: Buffer, offset: int, length: int) -> int:
    """Number of set bits among ``[offset, offset + length)``."""

def gather(bits: Buffer, length: int, indices: NDArray[np.int64], out: Buffer) -> None:
    """Write bit ``indices[i]`` of a bitmap of `length` bits to bit i of `out`."""
