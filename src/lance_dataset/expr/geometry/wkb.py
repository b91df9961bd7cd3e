"""Well-known binary (ISO 19125, with the codes of ISO 13249-3 for Z and M) of arrays with coordinates."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import pyarrow as pa

from lance_dataset.expr.geometry.coordinates import ragged, values_of
from lance_dataset.types.geoarrow import GeometryLayout

__all__ = ["DIMENSION_CODES", "KIND_CODES", "empty_wkb", "native_wkb"]

#: Codes of the kinds of geometries.
KIND_CODES: Final = {
    "point": 1,
    "linestring": 2,
    "polygon": 3,
    "multipoint": 4,
    "multilinestring": 5,
    "multipolygon": 6,
    "geometrycollection": 7,
}
#: What is added to the code of a kind.
DIMENSION_CODES: Final = {"xy": 0, "xyz": 1000, "xym": 2000, "xyzm": 3000}
#: Kinds of the parts of a geometry.
_PARTS: Final = {"multipoint": "point", "multilinestring": "linestring", "multipolygon": "polygon"}

_Point = tuple[float, ...]


def native_wkb(array: pa.Array, layout: GeometryLayout, *, mended: bool = False) -> list[bytes | None]:
    """Return each geometry as well-known binary, None for nulls.

    Parameters
    ----------
    array
        Geometries of one of `lance_dataset.types.geoarrow.KINDS`.
    layout
        How they are stored.
    mended
        True to close rings that are open, and to repeat the only point of a line.
    """
    valid = array.drop_null() if array.null_count else array
    levels, coordinates = ragged(valid)
    columns = values_of(coordinates, layout.dimensions)
    nested: Sequence[Any] = list(zip(*(column.tolist() for column in columns), strict=True))
    for offsets in reversed(levels):
        bounds = offsets.tolist()
        nested = [nested[start:stop] for start, stop in pairwise(bounds)]
    form = _Form(layout.dimensions, mended)
    written = iter([form.geometry(layout.kind, each) for each in nested])
    return [next(written) if known else None for known in array.is_valid().to_pylist()]


def empty_wkb(layout: GeometryLayout) -> bytes:
    """Return an empty geometry other than a point."""
    return struct.pack("<BII", 1, KIND_CODES[layout.kind] + DIMENSION_CODES[layout.dimensions], 0)


class _Form:
    def __init__(self, dimensions: str, mended: bool) -> None:
        self._added = DIMENSION_CODES[dimensions]
        self._size = len(dimensions)
        self._mended = mended

    def geometry(self, kind: str, content: Any) -> bytes:
        head = struct.pack("<BI", 1, KIND_CODES[kind] + self._added)
        if kind == "point":
            return head + self._points([content])
        if kind in _PARTS:
            return b"".join([head, _count(content), *(self.geometry(_PARTS[kind], part) for part in content)])
        if kind == "linestring":
            if self._mended and len(content) == 1:
                content = [*content, *content]
            return head + _count(content) + self._points(content)
        rings = [self._ring(ring) for ring in content]
        return b"".join([head, _count(rings), *(_count(ring) + self._points(ring) for ring in rings)])

    def _ring(self, ring: Sequence[_Point]) -> Sequence[_Point]:
        if not self._mended or not ring:
            return ring
        closed = list(ring) if ring[0] == ring[-1] and len(ring) > 1 else [*ring, ring[0]]
        return closed + [closed[-1]] * max(4 - len(closed), 0)

    def _points(self, points: Sequence[_Point]) -> bytes:
        return struct.pack(f"<{self._size * len(points)}d", *(number for point in points for number in point))


def _count(items: Sequence[Any]) -> bytes:
    return struct.pack("<I", len(items))
