"""Positions of points along a Hilbert curve."""

from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["CELLS", "hilbert_keys"]

_BITS: Final = 16
#: Cells on each axis.
CELLS: Final = 1 << _BITS
#: Bits of each axis that are processed together.
_STEP: Final = 4


def hilbert_keys(x: NDArray[np.uint16], y: NDArray[np.uint16]) -> NDArray[np.uint32]:
    """Return the positions of cells along the curve of 2^32 cells.

    The curve is that of Hilbert (1891). It consists of four copies of itself in a quarter of the size, in other
    orientations; a table has the positions and orientations of 16 times 16 copies.
    """
    keys: NDArray[np.uint32] = np.zeros(len(x), np.uint32)
    turned: NDArray[np.uint32] = np.zeros(len(x), np.uint32)
    digits, turns = _tables()
    wide_x, wide_y = x.astype(np.uint32), y.astype(np.uint32)
    for shift in range(_BITS - _STEP, -1, -_STEP):
        cell = (wide_x >> shift & 15) << _STEP | (wide_y >> shift & 15)
        place = turned << np.uint32(2 * _STEP) | cell
        keys = keys << np.uint32(2 * _STEP) | digits[place]
        turned = turns[place]
    return keys


@cache
def _tables() -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return the position and the new orientation of each cell of 16 times 16, for each orientation.

    An orientation is two bits: whether the axes are swapped (1), and whether both are mirrored (2).
    """
    count = 1 << 2 * _STEP
    digits = np.zeros(4 * count, np.uint32)
    turns = np.zeros(4 * count, np.uint32)
    for orientation in range(4):
        for cell in range(count):
            turned, key = orientation, 0
            for bit in range(_STEP - 1, -1, -1):
                digit, turned = _quarter(cell >> _STEP + bit & 1, cell >> bit & 1, turned)
                key = key << 2 | digit
            digits[orientation * count + cell], turns[orientation * count + cell] = key, turned
    return digits, turns


def _quarter(x: int, y: int, orientation: int) -> tuple[int, int]:
    """Return the place of a quarter of a square along the curve, and the orientation of the curve in it."""
    if orientation & 2:
        x, y = 1 - x, 1 - y
    if orientation & 1:
        x, y = y, x
    digit = 3 * x ^ y
    if digit == 0:
        orientation ^= 1
    elif digit == 3:
        orientation ^= 3
    return digit, orientation
