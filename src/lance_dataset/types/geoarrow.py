"""Layouts of geometries in Arrow arrays, as the GeoArrow specification defines them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from lance_dataset.late_dataclass import dataclass
from lance_dataset.types.logical import EXTENSION_NAME

__all__ = ["BOX_BOUNDS", "DIMENSIONS", "GEOMETRY", "KINDS", "GeometryLayout", "coordinates_type", "geometry_layout"]

#: Numbers of lists around the coordinates, by the name of the kind of geometry.
KINDS: Final[Mapping[str, int]] = {
    "point": 0,
    "linestring": 1,
    "multipoint": 1,
    "polygon": 2,
    "multilinestring": 2,
    "multipolygon": 3,
}
#: Sets of dimensions that coordinates have; each letter is the name of a field.
DIMENSIONS: Final = ("xy", "xyz", "xym", "xyzm")
#: Name of the extension of geometries of several kinds; computed ones are held as well-known binary.
GEOMETRY: Final = "geoarrow.geometry"
#: Fields of a box that bound it on the plane.
BOX_BOUNDS: Final = ("xmin", "ymin", "xmax", "ymax")

_PREFIX = "geoarrow."
_BYTES = ("binary", "large_binary", "binary_view")
_TEXTS = ("string", "large_string", "string_view")


@dataclass(frozen=True)
class GeometryLayout:
    """Storage of the geometries of an array.

    Attributes
    ----------
    kind
        A key of `KINDS`, ``box``, ``wkb`` (well-known binary), ``wkt`` (well-known text), or ``null`` for values that
        are all null.
    dimensions
        One of `DIMENSIONS`; empty if each geometry has its own.
    is_mixed
        True if the values were made from geometries of several kinds, not stored as well-known binary.
    """

    kind: str
    dimensions: str = ""
    is_mixed: bool = False

    @property
    def is_native(self) -> bool:
        """True if coordinates are stored in structs or lists of numbers."""
        return self.kind in KINDS or self.kind == "box"


def geometry_layout(field: pa.Field) -> GeometryLayout | None:
    """Return how the geometries of a field are stored; None if it does not have geometries.

    Binary values and strings without a name of a geometry are well-known binary and text.
    """
    kind = field.type
    name = (field.metadata or {}).get(EXTENSION_NAME.encode(), b"").decode("utf-8", "replace")
    while isinstance(kind, pa.BaseExtensionType):
        name, kind = kind.extension_name, kind.storage_type
    if pa.types.is_null(kind):
        return GeometryLayout("null")
    named = name.removeprefix(_PREFIX) if name.startswith(_PREFIX) else ""
    if named == "box":
        dimensions = _box_dimensions(kind)
        return None if dimensions is None else GeometryLayout("box", dimensions)
    if named in KINDS:
        dimensions = _dimensions(kind, KINDS[named])
        return None if dimensions is None else GeometryLayout(named, dimensions)
    if str(kind) in _BYTES:
        return None if named == "wkt" else GeometryLayout("wkb", is_mixed=name == GEOMETRY)
    if str(kind) in _TEXTS:
        return None if named in ("wkb", "geometry") else GeometryLayout("wkt")
    return None


def coordinates_type(dimensions: str) -> pa.StructType:
    """Return the type of one point."""
    return pa.struct([pa.field(name, pa.float64(), nullable=False) for name in dimensions])


def _dimensions(kind: pa.DataType, depth: int) -> str | None:
    """Return the dimensions of coordinates in lists of some depth; None for other types."""
    for _ in range(depth):
        if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
            return None
        kind = kind.value_type
    if pa.types.is_struct(kind):
        names = "".join(field.name for field in kind)
        fits = names in DIMENSIONS and all(pa.types.is_float64(field.type) for field in kind)
        return names if fits else None
    if pa.types.is_fixed_size_list(kind) and pa.types.is_float64(kind.value_type) and 2 <= kind.list_size <= 4:
        name = kind.value_field.name
        return name if name in DIMENSIONS and len(name) == kind.list_size else "xyzm"[: kind.list_size]
    return None


def _box_dimensions(kind: pa.DataType) -> str | None:
    """Return the dimensions of a struct with the least and greatest coordinates of boxes; None for other types."""
    if not pa.types.is_struct(kind) or not all(pa.types.is_float64(field.type) for field in kind):
        return None
    names = [field.name for field in kind]
    for dimensions in DIMENSIONS:
        if names == [letter + end for end in ("min", "max") for letter in dimensions]:
            return dimensions
    return None
