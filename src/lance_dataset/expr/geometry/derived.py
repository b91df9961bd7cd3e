"""Geometries computed from others and from numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.expr.geometry.coordinates import as_array
from lance_dataset.expr.geometry.measures import Measure
from lance_dataset.expr.geometry.results import (
    box_array,
    mixed_array,
    mixed_type,
    native_type,
    point_array,
    polygon_array,
)
from lance_dataset.expr.geometry.shapes import Shapes, parse_wkb, parse_wkt, shapely, shapes_of, wkb_of
from lance_dataset.expr.geometry.simplify import by_area, by_distance, simplified
from lance_dataset.types.geoarrow import GeometryLayout

__all__ = [
    "box_of_points",
    "dumped",
    "end_point",
    "from_binary",
    "from_text",
    "hulls",
    "made_points",
    "one_point",
    "thinned",
]

_Floats = NDArray[np.float64]
_LINE: Final = 1


def one_point(name: str) -> Measure:
    """Return the function that computes a point of each geometry, by its name in shapely; null for empty ones."""

    def measure(array: pa.Array, layout: GeometryLayout) -> pa.Array:
        shapes = getattr(shapely(), name)(shapes_of(array, layout))
        missing = shapely().is_missing(shapes) | shapely().is_empty(shapes)
        numbers: _Floats = np.zeros((len(shapes), 2))
        numbers[~missing] = shapely().get_coordinates(shapes[~missing])
        return point_array(numbers.T, missing)

    return measure


def end_point(place: int) -> Measure:
    """Return the function that takes the first point (0) or the last one (-1) of lines; null for other geometries."""

    def measure(array: pa.Array, layout: GeometryLayout) -> pa.Array:
        shapes = shapes_of(array, layout, measures=True)
        lines = (shapely().get_type_id(shapes) == _LINE) & ~shapely().is_empty(shapes)
        found: Shapes = np.full(len(shapes), None, object)
        found[lines] = shapely().get_point(shapes[lines], place)
        return _in_form(found, "point" if layout.kind == "linestring" else "", layout)

    return measure


def _in_form(shapes: Shapes, kind: str, layout: GeometryLayout) -> pa.Array:
    """Return geometries as native ones of a kind, or as well-known binary if there is no such kind."""
    if not kind:
        return wkb_of(shapes)
    target = native_type(kind, layout.dimensions)
    if kind == "point":
        missing = shapely().is_missing(shapes)
        names = layout.dimensions
        numbers: _Floats = np.zeros((len(shapes), len(names)))
        options = {"include_z": "z" in names, "include_m": "m" in names}
        numbers[~missing] = shapely().get_coordinates(shapes[~missing], **options)
        return point_array(numbers.T, missing, names)
    contents = [None if shape is None else _nested(shape, layout.dimensions) for shape in shapes]
    return pa.array(contents, target)


def _nested(shape: Any, names: str) -> Any:
    if shape.geom_type in ("MultiLineString", "MultiPolygon"):
        return [_nested(part, names) for part in shape.geoms]
    if shape.geom_type == "Polygon":
        return [_nested(ring, names) for ring in shapely().get_rings(shape)]
    numbers = shapely().get_coordinates(shape, include_z="z" in names)
    return [dict(zip(names, row, strict=True)) for row in numbers.tolist()]


def thinned(name: str) -> Callable[[Any, Any, GeometryLayout], pa.Array]:
    """Return the function that simplifies lines and rings, by its name; geometries stay in their form."""
    keep = {"simplify": by_distance, "simplifyvw": by_area}[name]

    def measure(array: Any, limit: Any, layout: GeometryLayout) -> pa.Array:
        array = as_array(array)
        if layout.kind in ("point", "multipoint"):
            return array
        if "z" in layout.dimensions or "m" in layout.dimensions:
            raise pa.ArrowInvalid(f"st_{name} needs geometries of two dimensions, these have {layout.dimensions}")
        limits = [limit.as_py()] * len(array) if isinstance(limit, pa.Scalar) else limit.to_pylist()
        shapes: Shapes = np.full(len(array), None, object)
        flat = shapely().force_2d(shapes_of(array, layout))
        for place, (shape, each) in enumerate(zip(flat, limits, strict=True)):
            if shape is not None and each is not None:
                shapes[place] = simplified(shape, keep, each)
        return _in_form(shapes, layout.kind if layout.is_native and layout.kind != "box" else "", layout)

    return measure


def hulls(name: str) -> Measure:
    """Return the function that computes the polygon around each geometry, by its name in shapely."""

    def measure(array: pa.Array, layout: GeometryLayout) -> pa.Array:
        shapes = shapes_of(array, layout)
        missing = shapely().is_missing(shapes)
        counts = shapely().get_num_coordinates(shapes)
        around = getattr(shapely(), name)(shapes)
        if name == "convex_hull":
            rings = [_hull_ring(shape, count) for shape, count in zip(around, counts.tolist(), strict=True)]
        else:
            rings = [_envelope_ring(shape) for shape in around]
            missing = missing | (counts == 0)
        return polygon_array(rings, missing)

    return measure


def _hull_ring(shape: Any, count: int) -> _Floats | None:
    """Return the ring of a convex hull, counterclockwise, from where the reference begins."""
    if shape is None or shape.is_empty:
        return None
    numbers = shapely().get_coordinates(shapely().normalize(shape))
    if shape.geom_type != "Polygon":
        return np.concatenate([numbers, numbers[:1]])
    ring = numbers[:-1] if _turns_left(numbers) else numbers[:-1][::-1]
    first = int(np.lexsort((ring[:, 1], ring[:, 0]))[0])
    ring = np.roll(ring, -first - (count > 3), axis=0)
    return np.concatenate([ring, ring[:1]])


def _turns_left(ring: _Floats) -> bool:
    x, y = ring.T - ring[0][:, None]
    return bool(np.sum(x[:-1] * y[1:] - x[1:] * y[:-1]) > 0)


def _envelope_ring(shape: Any) -> _Floats | None:
    """Return the five points of a rectangle, which may be a line or a point."""
    if shape is None or shape.is_empty:
        return None
    numbers = shapely().get_coordinates(shape)
    if shape.geom_type == "Polygon":
        return numbers
    return numbers[[0, 0, -1, -1, 0]]


def made_points(names: str) -> Callable[..., pa.Array]:
    """Return the function that makes points of coordinates; null if one of them is null."""

    def kernel(*data: Any) -> pa.Array:
        rows = next((len(datum) for datum in data if not isinstance(datum, pa.Scalar)), 1)
        missing = np.zeros(rows, bool)
        columns = []
        for datum in data[: len(names)]:
            array = as_array(datum)
            missing = missing | np.asarray(array.is_null())
            numbers = np.asarray(array.to_numpy(zero_copy_only=False), np.float64)
            columns.append(np.broadcast_to(numbers, (rows,)))
        return point_array(columns, missing, names)

    return kernel


def box_of_points(one: pa.Array, two: pa.Array, layouts: Sequence[GeometryLayout]) -> pa.Array:
    """Return boxes with two corners."""
    corners = [shapes_of(array, layout) for array, layout in zip((one, two), layouts, strict=True)]
    missing = np.zeros(max(len(one), len(two)), bool)
    columns = []
    for shapes in corners:
        absent = shapely().is_missing(shapes) | shapely().is_empty(shapes)
        missing = missing | absent
        columns += [
            np.broadcast_to(shapely().get_x(shapes), missing.shape),
            np.broadcast_to(shapely().get_y(shapes), missing.shape),
        ]
    return box_array([np.nan_to_num(column, nan=0.0) for column in columns], missing)


def from_text(array: pa.Array) -> pa.Array:
    """Return the geometries of well-known text."""
    return wkb_of(parse_wkt(array))


def from_binary(array: pa.Array) -> pa.Array:
    """Return the geometries of well-known binary, which is checked."""
    return wkb_of(parse_wkb(array))


_PATHS: Final = pa.list_(pa.field("item", pa.int32(), nullable=False))


def dumped(array: pa.Array, layout: GeometryLayout) -> pa.Array:
    """Return the parts of geometries, each with the numbers that lead to it."""
    shapes = shapes_of(array, layout, measures=True)
    parts = [[] if shape is None else list(_parts(shape, ())) for shape in shapes]
    flat = [part for each in parts for part in each]
    below: Shapes = np.full(len(flat), None, object)
    below[:] = [shape for _, shape in flat]
    fields = [pa.field("path", _PATHS, nullable=False), pa.field("geom", mixed_type())]
    paths = pa.array([list(path) for path, _ in flat], _PATHS)
    items = pa.StructArray.from_arrays([paths, mixed_array(wkb_of(below))], fields=fields)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum([len(each) for each in parts], dtype=np.int64)])
    missing = np.append(shapely().is_missing(shapes), False)
    target = pa.list_(pa.field("item", items.type, nullable=False))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32(), mask=missing), items, type=target)


def _parts(shape: Any, path: tuple[int, ...]) -> Any:
    if not hasattr(shape, "geoms"):
        if not shape.is_empty:
            yield path, shape
        return
    for number, part in enumerate(shape.geoms, 1):
        yield from _parts(part, (*path, number))
