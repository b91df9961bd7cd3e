"""Values computed from single geometries: measures, counts, tests, text and binary forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_dataset.expr.geometry.boxes import boxes_of
from lance_dataset.expr.geometry.geohash import geohashes
from lance_dataset.expr.geometry.shapes import Shapes, shapely, shapes_of, wkb_of
from lance_dataset.expr.geometry.text import text_of
from lance_dataset.expr.geometry.wkb import empty_wkb
from lance_dataset.types.geoarrow import KINDS, GeometryLayout

__all__ = [
    "BOUNDS",
    "MEASURES",
    "Measure",
    "as_binary",
    "as_text",
    "bound",
    "coordinate",
    "dimensions",
    "geohash",
    "level_bound",
]

#: Takes an array and how its geometries are stored.
Measure = Callable[[pa.Array, GeometryLayout], pa.Array]

_POINT, _LINE, _POLYGON, _MULTIPOINT, _MULTILINE, _MULTIPOLYGON, _COLLECTION = 0, 1, 3, 4, 5, 6, 7
#: Names of types of geometries as the reference spells them.
_NAMES: Final = {
    _POINT: "ST_Point",
    _LINE: "ST_LineString",
    2: "ST_LineString",
    _POLYGON: "ST_Polygon",
    _MULTIPOINT: "ST_MultiPoint",
    _MULTILINE: "ST_MultilineString",
    _MULTIPOLYGON: "ST_MultiPolygon",
    _COLLECTION: "ST_GeometryCollection",
}
#: Columns of boxes.
BOUNDS: Final = {"xmin": 0, "ymin": 1, "xmax": 2, "ymax": 3}


def _computed(function: Callable[[Shapes], NDArray[np.generic]], kind: pa.DataType) -> Measure:
    """Return a measure that is null for nulls only."""

    def measure(array: pa.Array, layout: GeometryLayout) -> pa.Array:
        shapes = shapes_of(array, layout)
        missing = shapely().is_missing(shapes)
        shapes[missing] = shapely().Point()
        return pa.array(function(shapes), mask=missing).cast(kind)

    return measure


def _lengths(shapes: Shapes) -> NDArray[np.float64]:
    """Return the lengths of lines; other geometries have none."""
    found: NDArray[np.float64] = np.zeros(len(shapes))
    lines = np.isin(shapely().get_type_id(shapes), (_LINE, _MULTILINE))
    found[lines] = shapely().length(shapes[lines])
    return found


def _counts(array: pa.Array, layout: GeometryLayout) -> pa.Array:
    if layout.kind == "box":  # the reference counts corners
        return pa.array(np.full(len(array), 4), pa.uint32(), mask=np.asarray(array.is_null()))
    return _POINT_COUNTS(array, layout)


_POINT_COUNTS: Final = _computed(lambda shapes: shapely().get_num_coordinates(shapes), pa.uint32())


def _rings(array: pa.Array, layout: GeometryLayout) -> pa.Array:
    """Return the numbers of holes of polygons, null for other geometries."""
    shapes = shapes_of(array, layout)
    others = (shapely().get_type_id(shapes) != _POLYGON) | (layout.kind == "box")
    return pa.array(shapely().get_num_interior_rings(shapes), mask=others).cast(pa.uint32())


def _closed(array: pa.Array, layout: GeometryLayout) -> pa.Array:
    if layout.kind == "box":  # as in the reference
        return pa.array(np.zeros(len(array), bool), mask=np.asarray(array.is_null()))
    return _CLOSED(array, layout)


def _are_closed(shapes: Shapes) -> NDArray[np.bool_]:
    library = shapely()
    kinds = library.get_type_id(shapes)
    found: NDArray[np.bool_] = np.isin(kinds, (_POINT, _POLYGON, _MULTIPOINT, _MULTIPOLYGON))
    for kind in (_LINE, _MULTILINE):
        lines = kinds == kind
        found[lines] = library.is_closed(shapes[lines]) & ~library.is_empty(shapes[lines])
    return found


_CLOSED: Final = _computed(_are_closed, pa.bool_())


def _reasons(shapes: Shapes) -> NDArray[np.object_]:
    found: NDArray[np.object_] = np.asarray(shapely().is_valid_reason(shapes), object)
    return found


#: Measures of geometries in any form, by name.
MEASURES: Final[dict[str, Measure]] = {
    "area": _computed(lambda shapes: shapely().area(shapes), pa.float64()),
    "length": _computed(_lengths, pa.float64()),
    "length2d": _computed(_lengths, pa.float64()),
    "npoints": _counts,
    "numpoints": _counts,
    "numinteriorring": _rings,
    "numinteriorrings": _rings,
    "isclosed": _closed,
    "isempty": _computed(lambda shapes: shapely().is_empty(shapes), pa.bool_()),
    "isvalid": _computed(lambda shapes: shapely().is_valid(shapes), pa.bool_()),
    "isvalidreason": _computed(_reasons, pa.string()),
    "geometrytype": _computed(
        lambda shapes: np.array([_NAMES[kind] for kind in shapely().get_type_id(shapes).tolist()], object), pa.string()
    ),
}


def dimensions(array: pa.Array, layout: GeometryLayout) -> pa.Array:
    """Return the numbers of dimensions; where all values have the same by their type, nulls have it too."""
    if layout.dimensions:
        return pa.array(np.full(len(array), len(layout.dimensions)), pa.uint8())
    return _DIMENSIONS(array, layout)


_DIMENSIONS: Final = _computed(
    lambda shapes: 2 + shapely().has_z(shapes).astype(np.uint8) + shapely().has_m(shapes), pa.uint8()
)


def bound(name: str) -> Measure:
    """Return the measure of one of the sides of boxes around geometries; empty ones have infinite boxes."""
    column = BOUNDS[name]
    nowhere = np.inf if name.endswith("min") else -np.inf

    def measure(array: pa.Array, layout: GeometryLayout) -> pa.Array:
        missing = np.asarray(array.is_null())
        if layout.kind == "null":
            return pa.nulls(len(array), pa.float64())
        found = boxes_of(array)[column]
        return pa.array(np.where(np.isnan(found), nowhere, found), pa.float64(), mask=missing)

    return measure


def level_bound(name: str) -> Measure:
    """Return the measure of the least or greatest Z of geometries; null for those without Z."""
    least = name == "zmin"

    def measure(array: pa.Array, layout: GeometryLayout) -> pa.Array:
        shapes = shapes_of(array, layout, measures=True)
        library = shapely()
        found: NDArray[np.float64] = np.full(len(shapes), np.nan)
        for has_third, options in (
            (library.has_z(shapes), {"include_z": True}),
            (library.has_m(shapes), {"include_m": True}),
        ):
            chosen = has_third & np.isnan(found)
            if chosen.any():
                found[chosen] = _extremes(shapes[chosen], options, least)
        return pa.array(found, pa.float64(), mask=np.isnan(found))

    return measure


def _extremes(shapes: Shapes, options: dict[str, bool], least: bool) -> NDArray[np.float64]:
    numbers, owners = shapely().get_coordinates(shapes, return_index=True, **options)
    found: NDArray[np.float64] = np.full(len(shapes), np.nan)
    (np.fmin if least else np.fmax).at(found, owners, numbers[:, 2])
    return found


def coordinate(name: str) -> Measure:
    """Return the measure of a coordinate of points; null for other geometries and for points without it."""

    def measure(array: pa.Array, layout: GeometryLayout) -> pa.Array:
        shapes = shapes_of(array, layout, measures=True)
        library = shapely()
        found: NDArray[np.float64] = np.full(len(shapes), np.nan)
        points = (library.get_type_id(shapes) == _POINT) & ~library.is_empty(shapes)
        chosen = points & _has(name, shapes)
        found[chosen] = getattr(library, f"get_{name}")(shapes[chosen])
        if name == "z":  # a third coordinate counts as Z, as in the reference
            others = points & ~library.has_z(shapes) & library.has_m(shapes)
            found[others] = library.get_m(shapes[others])
            chosen = chosen | others
        return pa.array(found, pa.float64(), mask=~chosen)

    return measure


def _has(name: str, shapes: Shapes) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = np.ones(len(shapes), bool)
    return found if name in "xy" else getattr(shapely(), f"has_{name}")(shapes)


def as_binary(array: pa.Array, layout: GeometryLayout) -> pa.Array:
    """Return the well-known binary of geometries."""
    shapes = shapes_of(array, layout, measures=True)
    found = wkb_of(shapes)
    empty = _flattened(shapes, layout)
    if not empty.any():
        return found
    return pc.if_else(pa.array(empty), pa.scalar(empty_wkb(layout), pa.binary()), found)


def _flattened(shapes: Shapes, layout: GeometryLayout) -> NDArray[np.bool_]:
    """Return for each geometry whether it lost its dimensions, as empty ones other than points do in the library."""
    if layout.kind not in KINDS or layout.kind == "point" or layout.dimensions == "xy":
        return np.zeros(len(shapes), bool)
    found: NDArray[np.bool_] = shapely().is_empty(shapes)
    return found


def as_text(array: pa.Array, layout: GeometryLayout) -> pa.Array:
    """Return the well-known text of geometries; text stays as it is."""
    if layout.kind == "wkt":
        return array.cast(pa.string())
    if layout.kind == "box" and layout.dimensions != "xy":
        raise pa.ArrowInvalid("a box with more than two dimensions has no text")
    shapes = shapes_of(array, layout, measures=True)
    found = text_of(shapes)
    empty = _flattened(shapes, layout)
    if not empty.any():
        return found
    text = f"{layout.kind.upper()} {layout.dimensions[2:].upper()} EMPTY"
    return pc.if_else(pa.array(empty), pa.scalar(text), found)


def geohash(array: pa.Array, layout: GeometryLayout) -> pa.Array:
    """Return the geohashes of points; null for other geometries."""
    shapes = shapes_of(array, layout)
    points = (shapely().get_type_id(shapes) == _POINT) & ~shapely().is_empty(shapes)
    numbers = shapely().get_coordinates(shapes[points])
    found: NDArray[np.object_] = np.full(len(shapes), None, object)
    found[points] = geohashes(numbers[:, 0], numbers[:, 1])
    return pa.array(found, pa.string())
