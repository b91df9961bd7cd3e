"""Geometry functions of the dialect. They need GeoArrow columns, which are not supported."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import pyarrow as pa

from lance_dataset.errors import UnsupportedError
from lance_dataset.expr.function import Function, Kind

__all__ = ["ALIASES", "FUNCTIONS"]

_NAMES = (
    "area",
    "asbinary",
    "astext",
    "centroid",
    "contains",
    "convexhull",
    "coveredby",
    "covers",
    "crosses",
    "disjoint",
    "distance",
    "endpoint",
    "equals",
    "geometrytype",
    "geometryfromtext",
    "geomfromtext",
    "geomfromwkb",
    "intersects",
    "isclosed",
    "isvalid",
    "length",
    "m",
    "numpoints",
    "overlaps",
    "point",
    "pointz",
    "simplify",
    "startpoint",
    "touches",
    "within",
    "x",
    "y",
    "z",
)


def _refused(name: str) -> Callable[[Sequence[pa.DataType]], NoReturn]:
    def coercion(types: Sequence[pa.DataType]) -> NoReturn:
        raise UnsupportedError(
            f"the function {name!r} is not supported: it needs GeoArrow columns; compute it with a geometry library "
            "from the columns that hold the coordinates"
        )

    return coercion


def _unreachable(*_: Any) -> NoReturn:
    raise UnsupportedError("geometry functions are not supported: they need GeoArrow columns")


FUNCTIONS = [
    Function(f"st_{name}", (Kind.ANY,), _unreachable, optional=1, variadic=True, coercion=_refused(f"st_{name}"))
    for name in _NAMES
]
ALIASES: dict[str, str] = {}
