"""Functions of geometries: columns of GeoArrow types, well-known binary and text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NoReturn

import pyarrow as pa

from lance_dataset.errors import UnsupportedError
from lance_dataset.expr.function import Function, Kind
from lance_dataset.expr.geometry import derived, measures
from lance_dataset.expr.geometry.coordinates import as_array
from lance_dataset.expr.geometry.relations import RELATIONS, distances, related
from lance_dataset.expr.geometry.results import extension
from lance_dataset.types.geoarrow import GEOMETRY, GeometryLayout, geometry_layout
from lance_dataset.types.logical import EXTENSION_METADATA

__all__ = ["ALIASES", "FUNCTIONS"]

_Kernel = Callable[..., Any]
_Layouts = Sequence[GeometryLayout]
_Metadata = Mapping[bytes, bytes] | None
#: Takes the fields of the arguments and how their geometries are stored.
_Make = Callable[[Sequence[pa.Field], _Layouts], tuple[_Kernel, _Metadata]]

_POINTS: Final = ("point", "null")


def _unreachable(*_: Any) -> NoReturn:
    raise TypeError("a function of geometries is called before it is bound to the forms of its arguments")


def _function(name: str, geometries: int, make: _Make, others: tuple[Kind, ...] = ()) -> Function:
    """Return a function whose first arguments are geometries in any form."""
    parameters = (Kind.ANY,) * geometries + others

    def specialize(fields: Sequence[pa.Field], _: Sequence[pa.Scalar | None]) -> Function:
        layouts = [_layout(name, field) for field in fields[:geometries]]
        kernel, metadata = make(fields, layouts)
        return Function(name, parameters, _of_scalars(kernel), metadata=metadata)

    return Function(name, parameters, _unreachable, specialize=specialize)


def _layout(name: str, field: pa.Field) -> GeometryLayout:
    layout = geometry_layout(field)
    if layout is None:
        raise pa.ArrowInvalid(
            f"st_{name.removeprefix('st_')} needs geometries: a column of a GeoArrow type (its field has the metadata "
            f"ARROW:extension:name), well-known binary or well-known text, not {field.type}"
        )
    return layout


def _of_scalars(kernel: _Kernel) -> _Kernel:
    """Return a kernel that returns a scalar where all arguments are scalars."""

    def run(*data: Any) -> Any:
        found = kernel(*data)
        return found[0] if all(isinstance(datum, pa.Scalar) for datum in data) else found

    return run


def _origin(field: pa.Field) -> bytes | None:
    """Return the metadata of an extension type, such as its coordinate reference system; None if it has none."""
    kind = field.type
    if isinstance(kind, pa.ExtensionType):
        found = kind.__arrow_ext_serialize__()
    else:
        found = (field.metadata or {}).get(EXTENSION_METADATA.encode(), b"")
    return found if found.strip() not in (b"", b"{}") else None


def _measure(name: str, measure: measures.Measure, wanted: Sequence[str] = ()) -> Function:
    """Return a function of one geometry whose values are not geometries."""

    def make(_: Sequence[pa.Field], layouts: _Layouts) -> tuple[_Kernel, _Metadata]:
        (layout,) = layouts
        if wanted and layout.kind not in wanted and not layout.is_mixed:
            raise pa.ArrowInvalid(f"st_{name} needs points; st_geomfromwkb makes them of well-known binary")
        return lambda datum: measure(as_array(datum), layout), None

    return _function(f"st_{name}", 1, make)


def _named(name: str, measure: measures.Measure, result: Callable[[GeometryLayout], str]) -> Function:
    """Return a function of one geometry whose values have an extension type."""

    def make(fields: Sequence[pa.Field], layouts: _Layouts) -> tuple[_Kernel, _Metadata]:
        (layout,) = layouts
        metadata = extension(result(layout), _origin(fields[0]))
        return lambda datum: measure(as_array(datum), layout), metadata

    return _function(f"st_{name}", 1, make)


def _relation(name: str) -> Function:
    return _function(f"st_{name}", 2, lambda _, layouts: (related(name, *layouts), None))


def _simplification(name: str) -> Function:
    run = derived.thinned(name)

    def make(fields: Sequence[pa.Field], layouts: _Layouts) -> tuple[_Kernel, _Metadata]:
        (layout,) = layouts
        result = f"geoarrow.{layout.kind}" if layout.is_native and layout.kind != "box" else GEOMETRY
        return lambda datum, limit: run(datum, limit, layout), extension(result, _origin(fields[0]))

    return _function(f"st_{name}", 1, make, (Kind.FLOAT,))


def _box(fields: Sequence[pa.Field], layouts: _Layouts) -> tuple[_Kernel, _Metadata]:
    if any(layout.kind not in _POINTS and not layout.is_mixed for layout in layouts):
        raise pa.ArrowInvalid("st_makebox2d needs two points; st_geomfromwkb makes them of well-known binary")

    def kernel(one: Any, two: Any) -> pa.Array:
        return derived.box_of_points(as_array(one), as_array(two), layouts)

    return kernel, extension("geoarrow.box", _origin(fields[0]))


def _points(name: str, forms: Mapping[int, str], *, reference: bool) -> Function:
    """Return a function that makes points of numbers.

    Parameters
    ----------
    name
        Its name without ``st_``.
    forms
        Names of the coordinates by the number of arguments.
    reference
        True if the number of a coordinate reference system may follow.
    """
    most = max(forms) + reference
    parameters = (Kind.FLOAT,) * most

    def specialize(fields: Sequence[pa.Field], values: Sequence[pa.Scalar | None]) -> Function:
        origin = None
        names = forms.get(len(fields))
        if names is None:
            names, number = forms[len(fields) - 1], values[-1]
            if number is None or not pa.types.is_integer(number.type):
                raise pa.ArrowInvalid(f"st_{name} needs the number of a coordinate reference system after coordinates")
            origin = f'{{"crs":"EPSG:{number.as_py()}","crs_type":"authority_code"}}'.encode()
        kernel = _of_scalars(derived.made_points(names))
        return Function(f"st_{name}", parameters[: len(fields)], kernel, metadata=extension("geoarrow.point", origin))

    return Function(f"st_{name}", parameters, _unreachable, optional=most - min(forms), specialize=specialize)


def _parser(name: str, kind: Kind, parse: Callable[[pa.Array], pa.Array]) -> Function:
    def kernel(datum: Any) -> Any:
        found = parse(as_array(datum))
        return found[0] if isinstance(datum, pa.Scalar) else found

    return Function(f"st_{name}", (kind,), kernel, metadata=extension(GEOMETRY))


def _refused(name: str, instead: str) -> Function:
    def specialize(*_: Any) -> NoReturn:
        raise UnsupportedError(f"the function 'st_{name}' is not supported; {instead}")

    return Function(f"st_{name}", (Kind.ANY,), _unreachable, variadic=True, specialize=specialize)


FUNCTIONS = [
    *(_relation(name) for name in RELATIONS),
    _function("st_distance", 2, lambda _, layouts: (distances(*layouts), None)),
    *(_measure(name, measure) for name, measure in measures.MEASURES.items()),
    *(_measure(name, measures.dimensions) for name in ("coorddim", "ndims")),
    *(_measure(name, measures.bound(name)) for name in measures.BOUNDS),
    *(_measure(name, measures.level_bound(name)) for name in ("zmin", "zmax")),
    *(_measure(name, measures.coordinate(name), _POINTS) for name in "xyzm"),
    _measure("geohash", measures.geohash, _POINTS),
    _measure("dump", derived.dumped),
    _named("astext", measures.as_text, lambda _: "geoarrow.wkt"),
    _named("asbinary", measures.as_binary, lambda _: "geoarrow.wkb"),
    _named("centroid", derived.one_point("centroid"), lambda _: "geoarrow.point"),
    _named("pointonsurface", derived.one_point("point_on_surface"), lambda _: "geoarrow.point"),
    _named("convexhull", derived.hulls("convex_hull"), lambda _: "geoarrow.polygon"),
    _named("orientedenvelope", derived.hulls("oriented_envelope"), lambda _: "geoarrow.polygon"),
    *(
        _named(
            name, derived.end_point(place), lambda layout: "geoarrow.point" if layout.kind == "linestring" else GEOMETRY
        )
        for name, place in (("startpoint", 0), ("endpoint", -1))
    ),
    _simplification("simplify"),
    _simplification("simplifyvw"),
    _refused("simplifypreservetopology", "st_simplify and st_simplifyvw are"),
    _points("point", {2: "xy"}, reference=True),
    _points("makepoint", {2: "xy", 3: "xyz", 4: "xyzm"}, reference=False),
    _points("pointz", {3: "xyz"}, reference=True),
    _points("pointm", {3: "xym"}, reference=True),
    _points("makepointm", {3: "xym"}, reference=False),
    _points("pointzm", {4: "xyzm"}, reference=True),
    _function("st_makebox2d", 2, _box),
    _parser("geomfromtext", Kind.TEXT, derived.from_text),
    _parser("geomfromwkb", Kind.BYTES, derived.from_binary),
]
ALIASES = {
    "st_geometryfromtext": "st_geomfromtext",
    "st_wkttosql": "st_geomfromtext",
    "st_wkbtosql": "st_geomfromwkb",
}
