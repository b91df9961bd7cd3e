"""Conversion of Arrow arrays to the geometries of the library shapely, which is optional."""

from __future__ import annotations

from types import ModuleType
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import UnsupportedError
from lance_dataset.expr.geometry.coordinates import ragged, values_of
from lance_dataset.expr.geometry.wkb import native_wkb
from lance_dataset.types.geoarrow import KINDS, GeometryLayout

__all__ = ["Shapes", "is_finite", "parse_wkb", "parse_wkt", "shapely", "shapes_of", "wkb_of"]

#: Geometries of shapely, None for nulls.
Shapes = NDArray[np.object_]

_TYPES: Final = {
    "point": "POINT",
    "linestring": "LINESTRING",
    "multipoint": "MULTIPOINT",
    "polygon": "POLYGON",
    "multilinestring": "MULTILINESTRING",
    "multipolygon": "MULTIPOLYGON",
}


def shapely() -> ModuleType:
    """Return the library.

    Raises
    ------
    UnsupportedError
        It is not installed.
    """
    try:
        import shapely
    except ImportError as error:
        raise UnsupportedError(
            "geometries need the package shapely, version 2.1 or later: pip install 'lance-dataset[geo]'"
        ) from error
    if not hasattr(shapely, "has_m"):
        raise UnsupportedError(
            f"geometries need shapely 2.1 or later, not {shapely.__version__}: pip install 'lance-dataset[geo]'"
        )
    return shapely


def shapes_of(array: pa.Array, layout: GeometryLayout, *, measures: bool = False) -> Shapes:
    """Return the geometries of an array.

    Parameters
    ----------
    array
        The geometries.
    layout
        How they are stored.
    measures
        True if M coordinates matter; otherwise they may be left out.

    Raises
    ------
    pyarrow.ArrowInvalid
        A value is not a geometry.
    """
    found: Shapes = np.full(len(array), None, object)
    if layout.kind == "null" or array.null_count == len(array):
        return found
    valid = array.drop_null() if array.null_count else array
    if layout.kind == "wkb":
        shapes = parse_wkb(valid)
    elif layout.kind == "wkt":
        shapes = parse_wkt(valid)
    elif layout.kind == "box":
        shapes = _boxes(valid)
    else:
        shapes = _native(valid, layout, measures)
    if not array.null_count:
        return shapes
    found[np.asarray(array.is_valid())] = shapes
    return found


def parse_wkb(array: pa.Array) -> Shapes:
    """Return the geometries of well-known binary; nulls stay.

    Raises
    ------
    pyarrow.ArrowInvalid
        A value is not a geometry.
    """
    values = array.to_numpy(zero_copy_only=False)
    return _checked(_read(shapely().from_wkb, values, "binary"), values, "binary")


def parse_wkt(array: pa.Array) -> Shapes:
    """Return the geometries of well-known text; nulls stay.

    Raises
    ------
    pyarrow.ArrowInvalid
        A value is not a geometry.
    """
    values = array.to_numpy(zero_copy_only=False)
    return _checked(_read(shapely().from_wkt, values, "text"), values, "text")


def _read(read: Any, values: NDArray[np.object_], form: str) -> Shapes:
    try:
        return np.asarray(read(values, on_invalid="fix"), object)
    except (shapely().errors.ShapelyError, TypeError, ValueError) as error:
        raise pa.ArrowInvalid(f"a geometry is not well-known {form}: {error}") from error


def _checked(shapes: Shapes, values: NDArray[np.object_], form: str) -> Shapes:
    """Return the geometries; raise an error if a value was not one."""
    for place in np.flatnonzero(shapely().is_missing(shapes)).tolist():
        if values[place] is not None:
            raise pa.ArrowInvalid(f"a geometry is not well-known {form}: {str(values[place])[:80]}")
    return shapes


def _boxes(array: pa.Array) -> Shapes:
    """Return rectangles whose corners are in the order in which the reference writes them."""
    xmin, ymin, xmax, ymax = values_of(array, ("xmin", "ymin", "xmax", "ymax"))
    corners = [(xmin, ymin), (xmin, ymax), (xmax, ymax), (xmax, ymin), (xmin, ymin)]
    rings = np.stack([np.stack(corner, axis=1) for corner in corners], axis=1)
    with np.errstate(invalid="ignore"):
        return np.asarray(shapely().polygons(rings), object)


def _native(array: pa.Array, layout: GeometryLayout, measures: bool) -> Shapes:
    library = shapely()
    has_m = "m" in layout.dimensions
    if not (has_m and measures):
        levels, coordinates = ragged(array)
        names = layout.dimensions.replace("m", "")
        numbers = np.stack(values_of(coordinates, names), axis=1)
        if layout.kind != "point" and not len(numbers):  # shapely refuses geometries without any coordinates
            return np.full(len(array), library.from_wkt(f"{layout.kind} EMPTY"), object)
        try:
            if layout.kind == "point":
                return _points(numbers)
            offsets = tuple(reversed(levels))
            kind = getattr(library.GeometryType, _TYPES[layout.kind])
            with np.errstate(invalid="ignore"):
                return np.asarray(library.from_ragged_array(kind, numbers, offsets), object)
        except library.errors.ShapelyError:
            pass  # a line of one point, or a ring that is not closed
    return parse_wkb(pa.array(native_wkb(array, layout, mended=True), pa.binary()))


def _points(numbers: NDArray[np.float64]) -> Shapes:
    """Return points; those whose coordinates are all NaN are empty."""
    library = shapely()
    with np.errstate(invalid="ignore"):
        found: Shapes = np.asarray(library.points(numbers), object)
    empty = np.isnan(numbers).all(axis=1)
    if empty.any():
        found[empty] = library.from_wkt("POINT Z EMPTY" if numbers.shape[1] == 3 else "POINT EMPTY")
    return found


def wkb_of(shapes: Shapes) -> pa.Array:
    """Return the ISO well-known binary of geometries with all of their dimensions, null for None."""
    data = shapely().to_wkb(shapes, output_dimension=4, byte_order=1, flavor="iso")
    return pa.array(list(np.atleast_1d(data)), pa.binary())


def is_finite(shapes: Shapes) -> NDArray[np.bool_]:
    """Return for each geometry whether its X and Y coordinates are numbers other than NaN and infinity."""
    numbers, owners = shapely().get_coordinates(shapes, return_index=True)
    found = np.ones(len(shapes), bool)
    found[owners[~np.isfinite(numbers).all(axis=1)]] = False
    return found


assert _TYPES.keys() == KINDS.keys()
