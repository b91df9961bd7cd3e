"""Columns of geometries in all forms of GeoArrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import shapely

__all__ = ["FORMS", "ZOO", "geometry_field", "geometry_table", "in_form", "native_type", "random_geometries", "wkb"]

#: Geometries of all kinds that touch, overlap and contain each other.
ZOO = (
    "POINT(1 1)",
    "POINT(0 0)",
    "POINT(5 5)",
    "LINESTRING(0 0,2 2)",
    "LINESTRING(0 0,2 0)",
    "LINESTRING(-1 1,3 1)",
    "LINESTRING(0 0,4 0,4 4,0 0)",
    "POLYGON((0 0,2 0,2 2,0 2,0 0))",
    "POLYGON((0 0,0 2,2 2,2 0,0 0))",
    "POLYGON((0 0,10 0,10 10,0 10,0 0),(2 2,2 4,4 4,4 2,2 2))",
    "POLYGON((2 0,4 0,4 2,2 2,2 0))",
    "POLYGON((1 1,3 1,3 3,1 3,1 1))",
    "POLYGON((2 2,2 4,4 4,4 2,2 2))",
    "MULTIPOINT((0 0),(1 1))",
    "MULTIPOINT((1 1))",
    "MULTIPOINT((0 0),(5 5),(20 20))",
    "MULTILINESTRING((0 0,1 1),(1 1,2 2))",
    "MULTILINESTRING((0 0,1 0),(5 5,6 6))",
    "MULTILINESTRING((0 0,1 0,1 1,0 0))",
    "MULTIPOLYGON(((0 0,2 0,2 2,0 2,0 0)),((5 5,7 5,7 7,5 7,5 5)))",
    "MULTIPOLYGON(((0 0,2 0,2 2,0 2,0 0)))",
    "POINT Z(1 1 5)",
    "LINESTRING Z(0 0 1,2 2 3)",
    "POLYGON Z((0 0 1,2 0 1,2 2 1,0 2 1,0 0 1))",
)
_ITEMS = {
    "point": (),
    "linestring": ("vertices",),
    "multipoint": ("points",),
    "polygon": ("rings", "vertices"),
    "multilinestring": ("linestrings", "vertices"),
    "multipolygon": ("polygons", "rings", "vertices"),
}
#: Names of extension types with the dimensions of their coordinates.
FORMS = (
    *((kind, dimensions) for kind in (*_ITEMS, "box") for dimensions in ("xy", "xyz", "xym", "xyzm")),
    *(("wkb", ""), ("wkt", "")),
)


def native_type(kind: str, dimensions: str) -> pa.DataType:
    """Return the storage type of a kind of geometries."""
    if kind in ("wkb", "wkt"):
        return pa.binary() if kind == "wkb" else pa.string()
    if kind == "box":
        names = [letter + end for end in ("min", "max") for letter in dimensions]
        return pa.struct([pa.field(name, pa.float64(), nullable=False) for name in names])
    found: pa.DataType = pa.struct([pa.field(name, pa.float64(), nullable=False) for name in dimensions])
    for name in reversed(_ITEMS[kind]):
        found = pa.list_(pa.field(name, found, nullable=False))
    return found


def geometry_field(name: str, kind: str, type: pa.DataType, metadata: str = "{}") -> pa.Field:
    """Return the field of a column of geometries."""
    marks = {"ARROW:extension:name": f"geoarrow.{kind}", "ARROW:extension:metadata": metadata}
    return pa.field(name, type, metadata=marks)


def geometry_table(kind: str, values: pa.Array, start: int = 0) -> pa.Table:
    """Return a table of numbers ``n`` and geometries ``g``."""
    fields = [pa.field("n", pa.int64()), geometry_field("g", kind, values.type)]
    return pa.table([pa.array(range(start, start + len(values)), pa.int64()), values], schema=pa.schema(fields))


def wkb(text: str | None) -> bytes | None:
    """Return the ISO well-known binary of a text with all of its dimensions."""
    if text is None:
        return None
    found: bytes = shapely.to_wkb(shapely.from_wkt(text), output_dimension=4, flavor="iso")
    return found


def random_geometries(kind: str, count: int, seed: int = 0) -> list[Any]:
    """Return random geometries of a kind around the origin, some of them null and some empty."""
    rng = np.random.default_rng(seed)
    found: list[Any] = []
    for number in range(count):
        x, y, size = *rng.normal(0, 30, 2), rng.exponential(4)
        square = shapely.box(x, y, x + size, y + size)
        line = shapely.LineString(np.array([x, y]) + rng.normal(0, size, (4, 2)))
        made = {
            "point": shapely.Point(x, y),
            "linestring": line,
            "polygon": square,
            "multipoint": shapely.MultiPoint(np.array([x, y]) + rng.normal(0, size, (3, 2))),
            "multilinestring": shapely.MultiLineString([line, shapely.LineString([(x, y), (x + size, y)])]),
            "multipolygon": shapely.MultiPolygon([square, shapely.box(x + 50, y, x + 51, y + 1)]),
            "box": square,
        }
        made |= {form: list(made.values())[number % 6] for form in ("wkb", "wkt")}
        empty = number % 23 == 5 and kind not in ("point", "box", "wkb", "wkt")
        found.append(None if number % 17 == 3 else type(made[kind])() if empty else made[kind])
    return found


def in_form(shapes: Sequence[Any], kind: str, dimensions: str) -> pa.Array:
    """Return geometries as an array; coordinates that they lack are made up."""
    if kind in ("wkb", "wkt"):
        write = shapely.to_wkb if kind == "wkb" else shapely.to_wkt
        return pa.array([None if each is None else write(each) for each in shapes], native_type(kind, ""))
    if kind == "box":
        bounds = [None if each is None else each.bounds for each in shapes]
        boxes = [None if each is None else _box(each, dimensions) for each in bounds]
        return pa.array(boxes, native_type(kind, dimensions))
    return pa.array([_nested(each, dimensions) for each in shapes], native_type(kind, dimensions))


def _box(bounds: Sequence[float], dimensions: str) -> dict[str, float]:
    found = {f"{letter}{end}": 7.0 + (end == "max") for end in ("min", "max") for letter in dimensions}
    return {**found, **dict(zip(("xmin", "ymin", "xmax", "ymax"), bounds, strict=True))}


def _nested(shape: Any, dimensions: str) -> Any:
    if shape is None:
        return None
    if hasattr(shape, "geoms"):
        return [_nested(part, dimensions) for part in shape.geoms]
    if shape.geom_type == "Polygon":
        return [_points(ring, dimensions) for ring in shapely.get_rings(shape)]
    points = _points(shape, dimensions)
    return points[0] if shape.geom_type == "Point" else points


def _points(part: Any, dimensions: str) -> list[dict[str, float]]:
    return [
        {letter: (x, y, x + y, x - y)["xyzm".index(letter)] for letter in dimensions}
        for x, y in shapely.get_coordinates(part).tolist()
    ]
