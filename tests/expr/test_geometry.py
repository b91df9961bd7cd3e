"""Functions of geometries: their values are those of the reference, for all forms and kinds of geometries."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
import shapely
from support.arrays.geometries import (
    FORMS,
    ZOO,
    geometry_field,
    geometry_table,
    in_form,
    native_type,
    random_geometries,
    wkb,
)

import lance_dataset
from lance_dataset.errors import FilterError, UnsupportedError
from lance_dataset.expr.compiled import compile_expression, compile_filter
from lance_dataset.expr.geometry.boxes import boxes_of
from lance_dataset.expr.geometry.results import mixed_type

#: Geometries of which the reference computes everything: it takes no empty points in binary and text.
_TEXTS = (
    *ZOO,
    "GEOMETRYCOLLECTION(POINT(1 1),LINESTRING(0 0,2 0))",
    "GEOMETRYCOLLECTION(POLYGON((0 0,2 0,2 2,0 2,0 0)),POINT(9 9))",
    "LINESTRING EMPTY",
    "POLYGON EMPTY",
    "MULTIPOINT EMPTY",
    "MULTILINESTRING EMPTY",
    "MULTIPOLYGON EMPTY",
    "GEOMETRYCOLLECTION EMPTY",
    "LINESTRING(0 0,10 0.4,20 0,30 5,31 7,40 6.5,50 20)",
    "POLYGON((0 0,8 1,20 0,21 9,20 20,11 20.5,0 20,0 0))",
    "POINT ZM(1 2 3 4)",
    "LINESTRING M(0 0 9,1 1 8)",
    None,
)
_MEASURES = (
    *("area", "length", "length2d", "npoints", "numpoints", "numinteriorring", "numinteriorrings"),
    *("isclosed", "isempty", "isvalid", "isvalidreason", "geometrytype", "coorddim", "ndims"),
    *("xmin", "ymin", "xmax", "ymax", "astext", "asbinary", "centroid", "convexhull", "dump", "startpoint", "endpoint"),
)
_RELATIONS = (
    *("intersects", "contains", "within", "touches", "crosses", "overlaps", "covers", "coveredby"),
    *("disjoint", "equals"),
)


def _both(path: Path, texts: dict[str, str]) -> tuple[pa.Table, pa.Table]:
    columns = {"n": "n", **texts}
    return tuple(module.dataset(path).to_table(columns=columns) for module in (lance, lance_dataset))  # type: ignore[return-value]


def _rounded(value: Any) -> Any:
    """Return a value without the last digits of its numbers, which depend on the order of operations."""
    if isinstance(value, float):
        return round(value, 9) + 0.0 if math.isfinite(value) else str(value)
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return {key: _rounded(item) for key, item in value.items()} if isinstance(value, dict) else value


def _plain(kind: pa.DataType) -> pa.DataType:
    """Return a type in the spelling of this package: the reference has views of some texts."""
    return pa.string() if str(kind) == "string_view" else kind


def _assert_same(path: Path, texts: dict[str, str]) -> None:
    theirs, ours = _both(path, texts)
    for name, text in texts.items():
        mine, other = ours.schema.field(name), theirs.schema.field(name)
        assert mine.type == _plain(other.type), text
        assert (mine.metadata or {}) == (other.metadata or {}), text
        for place, (value, expected) in enumerate(zip(ours[name].to_pylist(), theirs[name].to_pylist(), strict=True)):
            assert _rounded(value) == _rounded(expected), (text, place)


@pytest.fixture(scope="module")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a dataset of all kinds of geometries in binary."""
    path = tmp_path_factory.mktemp("zoo") / "t"
    lance_dataset.write_dataset(geometry_table("wkb", pa.array([wkb(text) for text in _TEXTS], pa.binary())), path)
    return path


@pytest.mark.parametrize("form", ["wkb", "wkt"])
def test_values_of_all_kinds(tmp_path: Path, form: str) -> None:
    # the reference takes M coordinates for Z ones in some results
    texts = [text for text in _TEXTS if text is None or " M" not in text]
    values = pa.array(texts) if form == "wkt" else pa.array([wkb(text) for text in texts], pa.binary())
    lance_dataset.write_dataset(geometry_table(form, values), tmp_path)
    # collinear hulls of lines begin anywhere
    _assert_same(tmp_path, {name: f"st_{name}(g)" for name in _MEASURES if name != "convexhull"})
    others = {
        "s": "st_simplify(g, 0.5)",
        "v": "st_simplifyvw(g, 1.5)",
        "i": "st_intersects(g, g)",
        "d": "st_distance(g, g)",
    }
    _assert_same(tmp_path, {name: others[name] for name in ("s", "v", "i")})


@pytest.mark.parametrize(("kind", "dimensions"), FORMS[:-2])
def test_values_of_native_forms(tmp_path: Path, kind: str, dimensions: str) -> None:
    values = in_form(random_geometries(kind, 60), kind, dimensions)
    lance_dataset.write_dataset(geometry_table(kind, values), tmp_path)
    left_out = {"asbinary", "astext"} if kind == "box" else set()  # the reference writes boxes without their counts
    if "m" in dimensions or (kind == "box" and dimensions != "xy"):
        left_out |= {"dump"}
    if kind.startswith("multi"):
        left_out |= {"centroid"} if kind == "multipolygon" else set()
    texts = {name: f"st_{name}(g)" for name in _MEASURES if name not in {*left_out, "isvalidreason"}}
    texts["near"] = "st_within(g, st_geomfromtext('POLYGON((-20 -20,20 -20,20 20,-20 20,-20 -20))'))"
    _assert_same(tmp_path, texts)
    valid = lance_dataset.write_dataset(geometry_table(kind, values.drop_null()), tmp_path / "valid")
    texts = {}
    if dimensions == "xy" and kind != "box":
        area = 1.5 if "line" in kind else 0.001  # rings of two points cannot be made
        texts = {"simple": "st_simplify(g, 1.5)", "by_area": f"st_simplifyvw(g, {area})"}
    if kind == "point":
        coordinates = [letter for letter in "xyzm" if letter in dimensions] + ["z"] * ("m" in dimensions)
        texts |= {letter: f"st_{letter}(g)" for letter in coordinates}
    if len(dimensions) > 2 and kind != "box":
        texts |= {"zmin": "st_zmin(g)", "zmax": "st_zmax(g)"} if kind == "point" else {}
    _assert_same(Path(valid.uri.removeprefix("file://")), texts)


@pytest.mark.parametrize("relation", _RELATIONS)
def test_relations(zoo: Path, relation: str) -> None:
    """Relations between all pairs, other than with collections, where definitions differ."""
    table = lance_dataset.dataset(zoo).to_table()
    table = table.slice(0, len(ZOO))
    path = zoo.parent / relation
    lance_dataset.write_dataset(table, path)
    texts = {f"r{place}": f"st_{relation}(g, st_geomfromtext('{text}'))" for place, text in enumerate(ZOO)}
    theirs, ours = _both(path, texts)
    for name in texts:
        assert ours[name].to_pylist() == theirs[name].to_pylist(), texts[name]
    # the reference swaps the geometries if the first one is constant
    turned = {name: f"st_{relation}(st_geomfromtext('{text}'), g)" for name, text in zip(texts, ZOO, strict=True)}
    flipped = lance_dataset.dataset(path).to_table(columns={"n": "n", **turned})
    test = getattr(shapely, {"coveredby": "covered_by"}.get(relation, relation))
    shapes = shapely.from_wkt(np.array(ZOO))
    for name, shape in zip(texts, shapes, strict=True):
        assert flipped[name].to_pylist() == test(shape, shapes).tolist(), turned[name]


def test_distances(zoo: Path) -> None:
    path = zoo.parent / "distances"
    lance_dataset.write_dataset(lance_dataset.dataset(zoo).to_table().slice(0, len(ZOO)), path)
    _assert_same(path, {f"r{n}": f"st_distance(g, st_geomfromtext('{text}'))" for n, text in enumerate(ZOO)})


def test_made_geometries(tmp_path: Path) -> None:
    """Points of numbers, geometries of text and binary, and functions of those."""
    texts, data = (
        ["POINT(1 2)", "LINESTRING(0 0,1 1)", None],
        [wkb("POINT(1 2)"), wkb("POLYGON((0 0,1 0,1 1,0 0))"), None],
    )
    table = pa.table({"n": [0, 1, 2], "a": [1.0, 2.0, None], "b": [5.0, 6.0, 7.0], "t": texts, "w": data})
    lance_dataset.write_dataset(table, tmp_path)
    expressions = (
        *("st_point(a, b)", "st_makepoint(a, b)", "st_point(n, n)", "st_pointz(a, b, b)", "st_pointm(a, b, b)"),
        *("st_pointzm(a, b, a, b)", "st_makepoint(a, b, b)", "st_makepoint(a, b, a, b)", "st_makepointm(a, b, b)"),
        *("st_point(a, b, 4326)", "st_pointz(a, b, b, 4326)", "st_makebox2d(st_point(a, a), st_point(b, b))"),
        *("st_geomfromtext(t)", "st_geometryfromtext(t)", "st_wkttosql(t)", "st_geomfromwkb(w)", "st_wkbtosql(w)"),
        *("st_astext(t)", "st_astext(w)", "st_area(w)", "st_area(t)", "st_astext(st_geomfromtext(t))"),
        *("st_geohash(st_point(a, b))", "st_asbinary(st_point(a, b))", "st_distance(st_point(a, b), w)"),
        *("st_geomfromtext(t) IS NULL", "st_astext('POINT(1   2)')", "st_area(NULL)", "st_intersects(t, w)"),
        *(
            "st_astext(st_centroid(w))",
            "st_contains(w, st_point(0.5, 0.2))",
            "st_isempty(st_geomfromtext('POINT EMPTY'))",
        ),
    )
    _assert_same(tmp_path, {f"e{place}": text for place, text in enumerate(expressions)})


def test_numbers_in_text(tmp_path: Path) -> None:
    values = [(1e300, 1e-10), (0.1, 123456789.123456789), (math.inf, -math.inf), (-0.0, 1e21), (math.nan, math.nan)]
    points = pa.array([{"x": x, "y": y} for x, y in values], native_type("point", "xy"))
    lance_dataset.write_dataset(geometry_table("point", points), tmp_path)
    _assert_same(tmp_path, {"t": "st_astext(g)", "e": "st_isempty(g)", "n": "st_npoints(g)", "x": "st_xmin(g)"})


def test_hulls_and_envelopes_are_those_of_the_reference_as_geometries(zoo: Path) -> None:
    names = ("convexhull", "orientedenvelope")
    theirs, ours = _both(zoo, {name: f"st_{name}(g)" for name in names})
    for name in names:
        for value, expected in zip(ours[name].to_pylist(), theirs[name].to_pylist(), strict=True):
            assert (value is None) == (expected is None)
            shapes = [_polygon(each) for each in (value, expected)]
            if expected:
                assert shapes[0].area == pytest.approx(shapes[1].area, abs=1e-6)
                assert shapes[0].length == pytest.approx(shapes[1].length, abs=1e-6)
                assert name == "orientedenvelope" or shapely.hausdorff_distance(*shapes) < 1e-9


def _polygon(rings: Any) -> Any:
    points = [[point["x"], point["y"]] for ring in rings or () for point in ring]
    return shapely.Polygon([*points, *points[:1]] if points else [])


def test_a_point_on_the_surface(zoo: Path) -> None:
    table = lance_dataset.dataset(zoo).to_table(columns={"p": "st_pointonsurface(g)", "n": "n"})
    for text, point in zip(_TEXTS, table["p"].to_pylist(), strict=True):
        if point is not None:
            assert shapely.distance(shapely.from_wkt(text), shapely.Point(point["x"], point["y"])) < 1e-9
        else:
            assert text is None or text.endswith("EMPTY")


def test_the_union_of_all_kinds_is_that_of_the_reference(zoo: Path) -> None:
    theirs, ours = _both(zoo, {"g": "st_geomfromwkb(g)"})
    assert ours.schema.field("g").type == theirs.schema.field("g").type == mixed_type()
    assert ours["g"].to_pylist() == theirs["g"].to_pylist()
    assert (
        len(lance_dataset.dataset(zoo).to_table(columns={"g": "st_geomfromwkb(g)", "n": "n"}, limit=3, offset=2)) == 3
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("st_area(n)", "needs geometries"),
        ("st_area(s)", "needs geometries"),
        ("st_x(w)", "needs points"),
        ("st_geohash(w)", "needs points"),
        ("st_makebox2d(w, w)", "needs two points"),
        ("st_intersects(w)", r"takes 2 argument\(s\), not 1"),
        ("st_point(n)", r"takes 2 to 3 argument\(s\), not 1"),
        ("st_point(n, n, n)", "number of a coordinate reference system"),
        ("st_geomfromtext(n)", "needs a string"),
        ("st_simplify(w, 'a')", "needs a number"),
        ("st_buffer(w, 1)", "Invalid function 'st_buffer'"),
    ],
)
def test_wrong_arguments(tmp_path: Path, text: str, words: str) -> None:
    table = pa.table({"n": [1], "s": [{"x": 1.0, "y": 2.0}], "w": [wkb("POINT(1 2)")]})
    lance_dataset.write_dataset(table, tmp_path)
    with pytest.raises(FilterError, match=words):
        lance_dataset.dataset(tmp_path).to_table(columns={"r": text, "n": "n"})
    with pytest.raises((ValueError, pa.ArrowInvalid)):
        lance.dataset(tmp_path).to_table(columns={"r": text, "n": "n"})


def test_what_is_not_supported(zoo: Path) -> None:
    with pytest.raises(UnsupportedError, match="st_simplify and st_simplifyvw are"):
        lance_dataset.dataset(zoo).to_table(columns={"r": "st_simplifypreservetopology(g, 1)"})


@pytest.mark.parametrize(
    ("values", "filter"),
    [
        (pa.array([b"\x01\x01\x00"]), "st_intersects(g, st_point(1, 1))"),
        (pa.array(["POINT(1"]), "st_area(g) > 1"),
        (pa.array([b"\x01\x02\x00\x00\x00\xff\xff\xff\xff"]), "st_area(g) > 1"),
        (pa.array(["x"]), "st_geomfromtext(g) IS NULL"),
    ],
)
def test_values_that_are_not_geometries(values: pa.Array, filter: str) -> None:
    bound = compile_filter(filter, pa.schema([pa.field("g", values.type)]))
    assert bound is not None
    with pytest.raises(pa.ArrowInvalid, match="is not well-known"):
        bound.mask(pa.record_batch([values], names=["g"]))


def _filtered(kind: str, values: pa.Array, filter: str) -> list[bool]:
    field = geometry_field("g", kind, values.type)
    bound = compile_filter(filter, pa.schema([field]))
    assert bound is not None
    found: list[bool] = bound.mask(pa.record_batch([values], schema=pa.schema([field]))).to_pylist()
    return found


def test_interleaved_coordinates() -> None:
    """Coordinates may be lists of two to four numbers."""
    for size in (2, 3, 4):
        kind = pa.list_(pa.float64(), size)
        points = pa.array([[1.0, 2.0, 3.0, 4.0][:size], None, [5.0, 6.0, 7.0, 8.0][:size]], kind)
        assert _filtered("point", points, "st_intersects(g, st_point(5, 6))") == [False, False, True]
        assert _filtered("point", points, "st_y(g) = 2") == [True, False, False]
        lines = pa.array([[points[0].as_py(), points[2].as_py()], [], None], pa.list_(kind))
        assert _filtered("linestring", lines, "st_intersects(g, st_point(3, 4))") == [True, False, False]
        assert _filtered("linestring", lines.slice(1), "st_isempty(g)") == [True, False]


def test_rings_that_are_open_and_lines_of_one_point() -> None:
    def points(*numbers: tuple[float, float]) -> list[dict[str, float]]:
        return [{"x": x, "y": y} for x, y in numbers]

    rings = pa.array(
        [[points((0, 0), (4, 0), (4, 4))], [points((0, 0), (4, 0), (4, 4), (0, 0))], None], native_type("polygon", "xy")
    )
    assert _filtered("polygon", rings, "st_area(g) = 8") == [True, True, False]
    lines = pa.array([points((1, 1)), points((0, 0), (2, 2))], native_type("linestring", "xy"))
    assert _filtered("linestring", lines, "st_xmax(g) >= 1") == [True, True]
    assert _filtered("linestring", lines, "st_length(g) > 0") == [False, True]


def test_slices_of_nested_arrays() -> None:
    for kind in ("point", "polygon", "multipolygon", "box", "wkb"):
        values = in_form(random_geometries(kind, 50), kind, "" if kind == "wkb" else "xy")
        for text in ("st_intersects(g, st_point(3, 3))", "st_xmin(g) > 0", "st_area(g) > 1"):
            assert _filtered(kind, values, text)[11:37] == _filtered(kind, values.slice(11, 26), text)


def test_boxes_are_those_of_the_library() -> None:
    for kind, dimensions in FORMS:
        shapes = random_geometries(kind, 80)
        found = boxes_of(in_form(shapes, kind, dimensions)).T
        np.testing.assert_allclose(found, shapely.bounds(shapes), atol=0 if kind != "wkt" else 1e-6)


def test_coordinates_that_are_not_finite_have_no_relations() -> None:
    values = [(1.0, 1.0), (math.nan, 1.0), (math.inf, 1.0), (1.0, 2.0)]
    lines = pa.array([[{"x": 0.0, "y": 0.0}, {"x": x, "y": y}] for x, y in values], native_type("linestring", "xy"))
    square = "st_geomfromtext('POLYGON((-9 -9,9 -9,9 9,-9 9,-9 -9))')"
    assert _filtered("linestring", lines, f"st_intersects(g, {square})") == [True, False, False, True]
    assert _filtered("linestring", lines, f"st_disjoint({square}, g)") == [False, True, True, False]
    assert _filtered("linestring", lines, "st_intersects(g, g)") == [True, False, False, True]


def test_without_the_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without shapely, errors say what to install; indices of coordinates are built all the same."""
    values = in_form(random_geometries("polygon", 30), "polygon", "xy")
    dataset = lance_dataset.write_dataset(geometry_table("polygon", values), tmp_path)
    monkeypatch.setitem(sys.modules, "shapely", None)
    with pytest.raises(UnsupportedError, match=r"pip install 'lance-dataset\[geo\]'"):
        dataset.count_rows("st_area(g) > 1")
    with pytest.raises(UnsupportedError, match=r"pip install 'lance-dataset\[geo\]'"):
        compile_expression("st_geomfromtext('POINT(1 2)')", pa.schema([]))
    dataset.create_scalar_index("g", "RTREE")
    assert dataset.count_rows("g IS NULL") == 2
