"""Boxes around geometries on the plane."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.expr.geometry.coordinates import ragged, values_of
from lance_dataset.expr.geometry.shapes import Shapes, parse_wkb, parse_wkt, shapely
from lance_dataset.expr.type_rules import is_binary, is_text
from lance_dataset.types.geoarrow import BOX_BOUNDS

__all__ = ["Boxes", "boxes_of", "meeting"]

#: float64[4, n]: xmin, ymin, xmax, ymax; all NaN for nulls and for geometries without a point on the plane.
Boxes = NDArray[np.float64]

_POINT_BYTES: Final = 21
#: First bytes of a point in little-endian well-known binary.
_POINT_HEAD: Final = np.frombuffer(b"\x01\x01\x00\x00\x00", np.uint8)


def boxes_of(array: pa.Array) -> Boxes:
    """Return the boxes around geometries.

    Parameters
    ----------
    array
        Geometries in their stored form: lists of coordinates, boxes, well-known binary or text.

    Raises
    ------
    pyarrow.ArrowInvalid
        A value is not a geometry.
    UnsupportedError
        The values are in a form that needs the library shapely, which is not installed.
    """
    if is_binary(array.type):
        found = _binary_points(array)
        if found is None:
            found = _bounds(parse_wkb(array))
    elif is_text(array.type):
        found = _bounds(parse_wkt(array))
    else:
        found = _native(array)
    if array.null_count:
        found[:, np.asarray(array.is_null())] = np.nan
    nowhere = np.isnan(found).any(axis=0)
    if nowhere.any():
        found[:, nowhere] = np.nan
    return found


def meeting(boxes: Boxes, bounds: tuple[float, float, float, float]) -> NDArray[np.bool_]:
    """Return for each box whether it has a point in common with another one."""
    xmin, ymin, xmax, ymax = bounds
    found: NDArray[np.bool_] = (boxes[0] <= xmax) & (boxes[2] >= xmin)
    found &= (boxes[1] <= ymax) & (boxes[3] >= ymin)
    return found


def _bounds(shapes: Shapes) -> Boxes:
    return np.array(np.reshape(shapely().bounds(shapes), (-1, 4)).T, np.float64, order="C")


def _native(array: pa.Array) -> Boxes:
    levels, coordinates = ragged(array)
    kind = coordinates.type
    if pa.types.is_struct(kind) and kind.get_field_index("xmin") >= 0:
        return np.stack(values_of(coordinates, BOX_BOUNDS))
    x, y = values_of(coordinates, "xy")
    if not levels:
        return np.stack([x, y, x, y])
    offsets = levels[-1]
    for outer in reversed(levels[:-1]):
        offsets = offsets[outer]
    found = np.full((4, len(array)), np.nan)
    filled = offsets[1:] > offsets[:-1]
    starts = offsets[:-1][filled]
    if len(starts):
        lows = np.fmin.reduceat(x, starts), np.fmin.reduceat(y, starts)
        found[:, filled] = [*lows, np.fmax.reduceat(x, starts), np.fmax.reduceat(y, starts)]
    return found


def _binary_points(array: pa.Array) -> Boxes | None:
    """Return the boxes of points in well-known binary, without the library; None for other geometries."""
    if not (pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type)) or not len(array):
        return None
    _, bounds, content = array.buffers()
    wide = np.int64 if pa.types.is_large_binary(array.type) else np.int32
    offsets = np.frombuffer(bounds, wide)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    lengths = np.diff(offsets)
    filled = np.asarray(array.is_valid())
    if content is None or not (lengths[filled] == _POINT_BYTES).all() or lengths[~filled].any():
        return None
    data = np.frombuffer(content, np.uint8)[offsets[0] : offsets[-1]].reshape(-1, _POINT_BYTES)
    if not (data[:, :5] == _POINT_HEAD).all():
        return None
    x, y = np.ascontiguousarray(data[:, 5:]).view("<f8").T
    found = np.full((4, len(array)), np.nan)
    found[:, filled] = [x, y, x, y]
    return found
