"""Arrow arrays of computed geometries."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.expr.geometry.shapes import Shapes, parse_wkb, shapely
from lance_dataset.types.geoarrow import BOX_BOUNDS, DIMENSIONS, GEOMETRY, KINDS, coordinates_type
from lance_dataset.types.logical import EXTENSION_METADATA, EXTENSION_NAME

__all__ = [
    "BOXES",
    "POLYGONS",
    "box_array",
    "extension",
    "mixed_array",
    "mixed_type",
    "native_type",
    "point_array",
    "polygon_array",
]

_Floats = NDArray[np.float64]
_Mask = NDArray[np.bool_]

#: Names of the items of lists, from outside to inside.
_LEVELS: Final = {
    "point": (),
    "linestring": ("vertices",),
    "multipoint": ("points",),
    "polygon": ("rings", "vertices"),
    "multilinestring": ("linestrings", "vertices"),
    "multipolygon": ("polygons", "rings", "vertices"),
}
#: Kinds as members of a union, in the order of their numbers from 1 on.
_MEMBERS: Final = ("Point", "LineString", "Polygon", "MultiPoint", "MultiLineString", "MultiPolygon")
_COLLECTION: Final = "GeometryCollection"
#: Last number of the members of one set of dimensions, and how much those of the next are greater.
_COLLECTION_NUMBER, _STEP = 7, 10
#: Kind of geometry by its number in shapely.
_KIND_OF_ID: Final = {0: 1, 1: 2, 2: 2, 3: 3, 4: 4, 5: 5, 6: 6, 7: 7}


def extension(name: str, metadata: bytes | None = None) -> dict[bytes, bytes]:
    """Return the metadata of a field of geometries."""
    found = {EXTENSION_NAME.encode(): name.encode()}
    return found if metadata is None else {**found, EXTENSION_METADATA.encode(): metadata}


def native_type(kind: str, dimensions: str = "xy") -> pa.DataType:
    """Return the type of geometries of one kind."""
    found: pa.DataType = coordinates_type(dimensions)
    for name in reversed(_LEVELS[kind]):
        found = pa.list_(pa.field(name, found, nullable=False))
    return found


POLYGONS: Final = native_type("polygon")
BOXES: Final = pa.struct([pa.field(name, pa.float64(), nullable=False) for name in BOX_BOUNDS])


def point_array(columns: Sequence[_Floats], missing: _Mask, dimensions: str = "xy") -> pa.Array:
    """Return points with some coordinates; those that are missing are null."""
    return _struct(columns, missing, coordinates_type(dimensions))


def box_array(columns: Sequence[_Floats], missing: _Mask) -> pa.Array:
    """Return boxes with some bounds; those that are missing are null."""
    return _struct(columns, missing, BOXES)


def _struct(columns: Sequence[_Floats], missing: _Mask, kind: pa.StructType) -> pa.Array:
    arrays = [pa.array(np.where(missing, 0.0, column), pa.float64()) for column in columns]
    return pa.StructArray.from_arrays(arrays, fields=list(kind), mask=pa.array(missing))


def polygon_array(rings: Sequence[_Floats | None], missing: _Mask) -> pa.Array:
    """Return polygons of one ring each.

    Parameters
    ----------
    rings
        Rows of X and Y for each polygon; None for one that is empty or missing.
    missing
        True for those that are null.
    """
    sizes = np.array([0 if ring is None else len(ring) for ring in rings], np.int64)
    known = [ring for ring in rings if ring is not None]
    numbers = np.concatenate(known) if known else np.empty((0, 2))
    vertices = point_array(numbers.T, np.zeros(len(numbers), bool))
    inner = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes[sizes > 0])])
    outer = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes > 0)])
    ring_type = POLYGONS.value_type
    listed = pa.ListArray.from_arrays(pa.array(inner, pa.int32()), vertices, type=ring_type)
    offsets = pa.array(outer, pa.int32(), mask=np.append(missing, False))
    return pa.ListArray.from_arrays(offsets, listed, type=POLYGONS)


# -- geometries of several kinds -------------------------------------------------------------------------------------


@cache
def mixed_type() -> pa.DataType:
    """Return the union of all kinds of geometries in all dimensions."""
    fields, numbers = [], []
    for place, dimensions in enumerate(DIMENSIONS):
        members = _members(place)
        below = pa.dense_union([field for _, field in members], [number for number, _ in members])
        items = pa.field("geometries", below, nullable=False)
        collection = _COLLECTION_NUMBER + _STEP * place, _member(_COLLECTION, dimensions, pa.list_(items))
        for number, field in (*members, collection):
            numbers.append(number)
            fields.append(field)
    return pa.dense_union(fields, numbers)


def _members(place: int) -> list[tuple[int, pa.Field]]:
    """Return the kinds of one set of dimensions, apart from collections, with their numbers."""
    dimensions = DIMENSIONS[place]
    kinds = [(number, name, native_type(name.lower(), dimensions)) for number, name in enumerate(_MEMBERS, 1)]
    return [(number + _STEP * place, _member(name, dimensions, kind)) for number, name, kind in kinds]


def _member(name: str, dimensions: str, kind: pa.DataType) -> pa.Field:
    suffix = dimensions[2:].upper()
    return pa.field(f"{name} {suffix}".strip(), kind)


def mixed_array(array: pa.Array) -> pa.Array:
    """Return geometries in well-known binary as a union of all kinds."""
    return _union(mixed_type(), parse_wkb(array))


def _union(kind: pa.DataType, shapes: Shapes) -> pa.Array:
    """Return geometries as values of a union, nulls as null points."""
    numbers = np.array([1 if shape is None else _number(shape) for shape in shapes], np.int8)
    first = int(kind.type_codes[0])
    numbers[shapely().is_missing(shapes)] = first
    places = np.zeros(len(shapes), np.int32)
    children = []
    for place, number in enumerate(kind.type_codes):
        chosen = numbers == number
        places[chosen] = np.arange(np.count_nonzero(chosen), dtype=np.int32)
        field = kind.field(place)
        members = shapes[chosen]
        if number % _STEP == _COLLECTION_NUMBER:
            children.append(_collections(members, field.type))
        else:
            children.append(pa.array([None if each is None else _content(each) for each in members], field.type))
    names = [kind.field(place).name for place in range(kind.num_fields)]
    return pa.UnionArray.from_dense(pa.array(numbers), pa.array(places), children, names, list(kind.type_codes))


def _collections(shapes: Shapes, kind: pa.DataType) -> pa.Array:
    parts = [shapely().get_parts(shape) for shape in shapes]
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum([len(part) for part in parts], dtype=np.int64)])
    below = np.concatenate([np.empty(0, object), *parts])
    if any(shape.geom_type == _COLLECTION for shape in below):
        raise pa.ArrowInvalid("a collection of geometries in a collection cannot be a value of a column")
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), _union(kind.value_type, below), type=kind)


def _number(shape: Any) -> int:
    """Return the number of the member of the union that a geometry is a value of."""
    place = 2 * bool(shape.has_m) + bool(shape.has_z)
    return _KIND_OF_ID[shapely().get_type_id(shape)] + _STEP * place


def _content(shape: Any) -> Any:
    """Return the nested lists and dictionaries of a geometry that is not a collection."""
    library = shapely()
    names = "xy" + "z" * bool(shape.has_z) + "m" * bool(shape.has_m)

    def points(part: Any) -> list[dict[str, float]]:
        numbers = library.get_coordinates(part, include_z="z" in names, include_m="m" in names)
        return [dict(zip(names, row, strict=True)) for row in numbers.tolist()]

    def rings(part: Any) -> list[Any]:
        return [points(ring) for ring in library.get_rings(part)]

    match shape.geom_type:
        case "Point":
            return points(shape)[0] if not shape.is_empty else dict.fromkeys(names, float("nan"))
        case "LineString" | "LinearRing":
            return points(shape)
        case "Polygon":
            return rings(shape)
        case "MultiPoint":
            return [_content(part) for part in shape.geoms]
        case "MultiLineString":
            return [points(part) for part in shape.geoms]
        case _:
            return [rings(part) for part in shape.geoms]


assert _LEVELS.keys() == KINDS.keys()
assert GEOMETRY.startswith("geoarrow.")
