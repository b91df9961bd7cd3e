"""Relations between geometries on the plane, as predicates of the DE-9IM model, and their distance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.expr.geometry.boxes import boxes_of, meeting
from lance_dataset.expr.geometry.coordinates import as_array
from lance_dataset.expr.geometry.shapes import Shapes, is_finite, shapely, shapes_of
from lance_dataset.types.geoarrow import GeometryLayout

__all__ = ["MEETING_RELATIONS", "RELATIONS", "distances", "related"]

#: Names of relations and of the functions of shapely.
RELATIONS: Final = {
    "intersects": "intersects",
    "contains": "contains",
    "within": "within",
    "touches": "touches",
    "crosses": "crosses",
    "overlaps": "overlaps",
    "covers": "covers",
    "coveredby": "covered_by",
    "disjoint": "disjoint",
    "equals": "equals",
}
#: Relations that only geometries whose boxes meet can have.
MEETING_RELATIONS: Final = frozenset(RELATIONS) - {"disjoint", "equals"}

_Kernel = Callable[[Any, Any], Any]


def related(name: str, left: GeometryLayout, right: GeometryLayout) -> _Kernel:
    """Return a function of two arrays or scalars that tells which geometries have a relation.

    Coordinates that are NaN or infinite have no place on the plane: a geometry with one is not related to any other.

    Parameters
    ----------
    name
        A key of `RELATIONS`.
    left, right
        How the geometries are stored.
    """

    def kernel(one: Any, two: Any) -> pa.Array:
        if isinstance(one, pa.Scalar) and isinstance(two, pa.Scalar):
            return _pairwise(name, as_array(one), left, as_array(two), right)
        if isinstance(two, pa.Scalar):
            return _with_constant(name, one, left, two, right, flipped=False)
        if isinstance(one, pa.Scalar):
            return _with_constant(name, two, right, one, left, flipped=True)
        return _pairwise(name, one, left, two, right)

    return kernel


def _pairwise(name: str, one: pa.Array, left: GeometryLayout, two: pa.Array, right: GeometryLayout) -> pa.Array:
    shapes, others = shapes_of(one, left), shapes_of(two, right)
    missing = shapely().is_missing(shapes) | shapely().is_missing(others)
    return pa.array(_relate(name, shapes, others), pa.bool_(), mask=missing)


def _with_constant(
    name: str, array: pa.Array, layout: GeometryLayout, scalar: pa.Scalar, other: GeometryLayout, *, flipped: bool
) -> pa.Array:
    """Relate geometries to one; only those whose boxes meet its box are decoded."""
    if not scalar.is_valid or layout.kind == "null" or other.kind == "null":
        return pa.nulls(len(array), pa.bool_())
    missing = np.asarray(array.is_null())
    (shape,) = shapes_of(as_array(scalar), other)
    found: NDArray[np.bool_] = np.full(len(array), name == "disjoint")
    xmin, ymin, xmax, ymax = boxes_of(as_array(scalar))[:, 0].tolist()
    if name == "equals" and np.isnan(xmin):
        near = ~missing  # empty geometries equal each other, wherever they are
    else:
        near = meeting(boxes_of(array), (xmin, ymin, xmax, ymax))
    places = np.flatnonzero(near)
    if len(places):
        shapely().prepare(shape)
        shapes = shapes_of(array if len(places) == len(array) else array.take(pa.array(places)), layout)
        constant = np.full(len(shapes), shape, object)
        found[places] = _relate(name, constant, shapes) if flipped else _relate(name, shapes, constant)
    return pa.array(found, pa.bool_(), mask=missing)


def _relate(name: str, shapes: Shapes, others: Shapes) -> NDArray[np.bool_]:
    library = shapely()
    usable = is_finite(shapes) & is_finite(others)
    test = getattr(library, RELATIONS[name])
    found: NDArray[np.bool_] = np.full(len(shapes), name == "disjoint")
    chosen = slice(None) if usable.all() else usable
    try:
        found[chosen] = _tested(name, test, shapes[chosen], others[chosen])
    except library.errors.ShapelyError as error:
        raise pa.ArrowInvalid(f"st_{name}: {error}") from error
    return found


#: Relations for which shapely makes use of a prepared geometry on the left side only, and their converses.
_CONVERSES: Final = {
    "intersects": "intersects",
    "within": "contains",
    "touches": "touches",
    "crosses": "crosses",
    "overlaps": "overlaps",
    "coveredby": "covers",
    "disjoint": "disjoint",
}


def _tested(name: str, test: Any, shapes: Shapes, others: Shapes) -> Any:
    """Compute a relation with prepared geometries on the left side."""
    converse = _CONVERSES.get(name)
    if converse is not None and len(others) and shapely().is_prepared(others[0]):
        return getattr(shapely(), RELATIONS[converse])(others, shapes)
    return test(shapes, others)


def distances(left: GeometryLayout, right: GeometryLayout) -> _Kernel:
    """Return a function of two arrays or scalars that computes distances; null if a geometry is empty."""

    def kernel(one: Any, two: Any) -> pa.Array:
        shapes, others = shapes_of(as_array(one), left), shapes_of(as_array(two), right)
        found = np.asarray(shapely().distance(shapes, others), np.float64)
        return pa.array(found, pa.float64(), mask=np.isnan(found))

    return kernel
