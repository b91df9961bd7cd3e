"""Coordinates of arrays of geometries, and the lists around them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

__all__ = ["as_array", "is_listed", "ragged", "values_of"]

_Floats = NDArray[np.float64]
_Offsets = NDArray[np.int64]


def as_array(datum: Any) -> pa.Array:
    """Return a scalar as an array of one value, and an array as it is."""
    return pa.array([datum], datum.type) if isinstance(datum, pa.Scalar) else datum


def is_listed(kind: pa.DataType) -> bool:
    """Return True for lists of any number of items."""
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def ragged(array: pa.Array) -> tuple[list[_Offsets], pa.Array]:
    """Return the lists around coordinates and the coordinates.

    Parameters
    ----------
    array
        Geometries without nulls, or nulls whose places do not matter.

    Returns
    -------
    list of int64[...]
        Offsets, outermost lists first. Those of one level are positions in the next one, and begin with 0.
    Array
        The coordinates: structs or fixed-size lists.
    """
    levels: list[_Offsets] = []
    while is_listed(array.type):
        offsets = np.asarray(array.offsets, np.int64)
        start, stop = (int(offsets[0]), int(offsets[-1])) if len(offsets) else (0, 0)
        levels.append(offsets - start if len(offsets) else np.zeros(1, np.int64))
        array = array.values.slice(start, stop - start)
    return levels, array


def values_of(coordinates: pa.Array, names: Sequence[str]) -> list[_Floats]:
    """Return some coordinates of each point, NaN for nulls.

    Parameters
    ----------
    coordinates
        Structs or fixed-size lists.
    names
        Names of the fields. Those of fixed-size lists have the place of their letter in ``xyzm``.
    """
    if pa.types.is_struct(coordinates.type):
        return [_numbers(coordinates.field(name)) for name in names]
    size, start = coordinates.type.list_size, coordinates.offset
    items = _numbers(coordinates.values).reshape(-1, size)[start : start + len(coordinates)]
    places = {name: place for place, name in enumerate("xyzm")}
    return [items[:, min(places[name], size - 1)] for name in names]


def _numbers(array: pa.Array) -> _Floats:
    found: _Floats = np.asarray(array.to_numpy(zero_copy_only=False), np.float64)
    return found
