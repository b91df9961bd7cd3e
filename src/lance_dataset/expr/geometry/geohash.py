"""Geohashes of points (Niemeyer 2008): the bits of longitude and latitude in turn, five to a character."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

__all__ = ["geohashes"]

_ALPHABET: Final = np.frombuffer(b"0123456789bcdefghjkmnpqrstuvwxyz", np.uint8)
#: Characters of a hash.
_LENGTH: Final = 12


def geohashes(x: NDArray[np.float64], y: NDArray[np.float64]) -> list[str]:
    """Return the geohashes of points.

    Parameters
    ----------
    x, y
        Longitudes and latitudes in degrees.

    Raises
    ------
    pyarrow.ArrowInvalid
        A point is not on the globe.
    """
    inside = (np.abs(x) <= 180) & (np.abs(y) <= 90)
    if not inside.all():
        wrong = int(np.flatnonzero(~inside)[0])
        raise pa.ArrowInvalid(f"({x[wrong]} {y[wrong]}) is not a longitude and a latitude")
    codes = np.zeros((len(x), _LENGTH), np.uint8)
    bounds = [np.full(len(x), low) for low in (-180.0, -90.0)], [np.full(len(x), high) for high in (180.0, 90.0)]
    values = x, y
    for bit in range(5 * _LENGTH):
        axis = bit % 2
        low, high = bounds[0][axis], bounds[1][axis]
        middle = (low + high) / 2
        upper = values[axis] > middle
        bounds[0][axis] = np.where(upper, middle, low)
        bounds[1][axis] = np.where(upper, high, middle)
        codes[:, bit // 5] = codes[:, bit // 5] * 2 + upper
    letters = _ALPHABET[codes].tobytes().decode("ascii")
    return [letters[start : start + _LENGTH] for start in range(0, len(letters), _LENGTH)]
