"""R-tree indices: the reference uses those of this package and the other way round, and answers stay right."""

from __future__ import annotations

import math
import shutil
from pathlib import Path
from typing import Any

import lance
import lance.indices
import numpy as np
import pyarrow as pa
import pytest
import shapely
from lance.file import LanceFileReader
from support.arrays.geometries import FORMS, geometry_field, geometry_table, in_form, native_type, random_geometries

import lance_dataset
from lance_dataset import LanceDataset
from lance_dataset.errors import InvalidIndexError
from lance_dataset.index.scalar.hilbert import CELLS, hilbert_keys
from lance_dataset.indices import IndexConfig

_SQUARE = "st_geomfromtext('POLYGON((-10 -10,12 -10,12 12,-10 12,-10 -10))')"
_POINT = "st_point(3, 4)"
_RELATIONS = ("intersects", "contains", "within", "touches", "crosses", "overlaps", "covers", "coveredby")
#: Filters that the reference answers with an index.
_FILTERS = (
    *(f"st_{name}(g, {_SQUARE})" for name in _RELATIONS),
    "st_intersects(g, st_makebox2d(st_point(0, 0), st_point(9, 9)))",
    f"st_covers(g, {_POINT})",
    "g IS NULL",
    f"st_within(g, {_SQUARE}) OR g IS NULL",
    f"st_within(g, {_SQUARE}) AND n > 100",
)
#: Filters in which it swaps the geometries, or does not use the index.
_OTHERS = (
    *(f"st_{name}({_SQUARE}, g)" for name in _RELATIONS),
    f"NOT st_intersects(g, {_SQUARE})",
    f"st_disjoint(g, {_SQUARE})",
    "g IS NOT NULL",
    "st_intersects(g, st_geomfromtext('POLYGON EMPTY'))",
    "st_intersects(g, NULL)",
)


@pytest.fixture(autouse=True)
def checking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use indices wherever they answer, and compare each answer with the scan."""
    monkeypatch.setenv("LANCE_CHECK_INDICES", "1")


def _written(path: Path, kind: str, dimensions: str, count: int = 300, **options: Any) -> LanceDataset:
    table = geometry_table(kind, in_form(random_geometries(kind, count), kind, dimensions))
    dataset = lance_dataset.write_dataset(table, path, max_rows_per_file=max(count // 3, 1), **options)
    dataset.delete("n % 13 = 4")
    return dataset


def _rows(dataset: Any, filter: str, **options: Any) -> list[int]:
    return sorted(dataset.scanner(columns=["n"], filter=filter, **options).to_table()["n"].to_pylist())


def _check(path: Path, filters: tuple[str, ...] = _FILTERS, others: tuple[str, ...] = _OTHERS) -> None:
    ours, theirs = lance_dataset.dataset(path), lance.dataset(path)
    for each in (*filters, *others):
        expected = _rows(ours, each, use_scalar_index=False)
        assert _rows(ours, each) == expected, each
        if each in filters:
            assert _rows(theirs, each) == expected, each
            assert _rows(theirs, each, use_scalar_index=False) == expected, each


def _uses_index(module: Any, path: Path, filter: str) -> bool:
    return "ScalarIndexQuery" in module.dataset(path).scanner(filter=filter).explain_plan()


#: All kinds on the plane, and some with more dimensions.
_SOME_FORMS = [form for form in FORMS if form[1] in ("xy", "")]
_SOME_FORMS += [("point", "xyzm"), ("linestring", "xym"), ("polygon", "xyz"), ("box", "xyz")]


@pytest.mark.parametrize(("kind", "dimensions"), _SOME_FORMS)
def test_each_form_both_ways(tmp_path: Path, kind: str, dimensions: str) -> None:
    place = _SOME_FORMS.index((kind, dimensions))
    stable = place % 2 == 0
    filters = tuple(each for number, each in enumerate(_FILTERS) if (number + place) % 3 < 2)
    others = _OTHERS[place % 3 :: 3]
    config = IndexConfig("rtree", {"page_size": 16})
    _written(tmp_path / "ours", kind, dimensions, enable_stable_row_ids=stable).create_scalar_index("g", config)
    _check(tmp_path / "ours", filters, others)
    assert all(_uses_index(lance, tmp_path / "ours", each) for each in filters)
    _written(tmp_path / "theirs", kind, dimensions, enable_stable_row_ids=stable)
    lance.dataset(tmp_path / "theirs").create_scalar_index("g", lance.indices.IndexConfig("rtree", config.parameters))
    _check(tmp_path / "theirs", filters, others)
    assert all(_uses_index(lance_dataset, tmp_path / "theirs", each) for each in (*filters, _OTHERS[0]))
    ours, theirs = (lance.dataset(tmp_path / name).stats.index_stats("g_idx") for name in ("ours", "theirs"))
    assert ours["indices"] == theirs["indices"]
    for file in ("page_data.lance", "nulls.lance"):
        mine, other = (next((tmp_path / name / "_indices").glob(f"*/{file}")) for name in ("ours", "theirs"))
        assert mine.stat().st_size <= 1.02 * other.stat().st_size
        rows, expected = _content(mine), _content(other)
        assert rows.schema.equals(expected.schema, check_metadata=True)
        # boxes at one place of the curve are in any order
        assert sorted(map(str, rows.to_pylist())) == sorted(map(str, expected.to_pylist()))


def _content(file: Path) -> pa.Table:
    found: pa.Table = LanceFileReader(str(file)).read_all().to_table()
    return found


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("kind", ["point", "wkb", "polygon"])
def test_answers_stay_right_through_changes(tmp_path: Path, kind: str, stable: bool) -> None:
    dimensions = "" if kind == "wkb" else "xy"
    dataset = _written(tmp_path, kind, dimensions, enable_stable_row_ids=stable)
    dataset.create_scalar_index("g", IndexConfig("rtree", {"page_size": 8}))
    more = geometry_table(kind, in_form(random_geometries(kind, 60, seed=5), kind, dimensions), start=5000)
    keyed = geometry_table(kind, in_form(random_geometries(kind, 9, seed=6), kind, dimensions), start=20)
    filters = (_FILTERS[0], _FILTERS[2], "g IS NULL", _FILTERS[-1])
    steps = [
        lambda: dataset.insert(more),
        lambda: dataset.update({"n": "n + 10000"}, where="n BETWEEN 40 AND 60"),
        lambda: dataset.delete(f"st_intersects(g, {_SQUARE}) AND n % 2 = 0"),
        lambda: dataset.merge_insert("n").when_matched_update_all().when_not_matched_insert_all().execute(keyed),
        lambda: dataset.optimize.optimize_indices(),
        lambda: dataset.insert(more),
        lambda: dataset.optimize.compact_files(),
        lambda: lance.dataset(tmp_path).optimize.optimize_indices(),
        lambda: dataset.insert(keyed),
        lambda: dataset.optimize.optimize_indices(),
        lambda: lance.dataset(tmp_path).optimize.compact_files(),
        lambda: dataset.optimize.optimize_indices(num_indices_to_merge=5),
    ]
    for step in steps:
        step()
        _check(tmp_path, filters, ())
        dataset = lance_dataset.dataset(tmp_path)
    assert dataset.describe_indices()[0].num_rows_indexed == dataset.count_rows()


@pytest.mark.parametrize("module", [lance, lance_dataset])
def test_answers_stay_right_after_deferred_compaction(tmp_path: Path, module: Any) -> None:
    _written(tmp_path, "point", "xy").create_scalar_index("g", "RTREE")
    module.dataset(tmp_path).optimize.compact_files(defer_index_remap=True)
    for step in range(2):
        ours = lance_dataset.dataset(tmp_path)
        for each in _FILTERS:
            assert _rows(ours, each) == _rows(ours, each, use_scalar_index=False), each
        if step == 0:
            ours.delete("n = 5")
    ours.optimize.optimize_indices()
    _check(tmp_path)


@pytest.mark.parametrize("options", [{}, {"num_indices_to_merge": 0}, {"num_indices_to_merge": 5}], ids=str)
@pytest.mark.parametrize("stable", [False, True])
def test_segments_are_those_of_the_reference(tmp_path: Path, options: dict[str, Any], stable: bool) -> None:
    path, other = tmp_path / "ours", tmp_path / "theirs"
    _written(path, "point", "xy", enable_stable_row_ids=stable).create_scalar_index(
        "g", IndexConfig("rtree", {"page_size": 8})
    )
    for step in range(2):
        dataset = lance_dataset.dataset(path)
        values = in_form(random_geometries("point", 50, seed=step), "point", "xy")
        dataset.insert(geometry_table("point", values, 1000 * step))
        dataset.delete(f"n % 7 = {step}")
        dataset.update({"g": "st_point(1, n)"}, where="n = 20")
        shutil.rmtree(other, ignore_errors=True)
        shutil.copytree(path, other)
        lance.dataset(other).optimize.optimize_indices(**options)
        dataset.optimize.optimize_indices(**options)
        found = [lance.dataset(each).describe_indices()[0].segments for each in (path, other)]
        ours, theirs = (
            [(sorted(each.fragment_ids), each.dataset_version_at_last_update) for each in segments]
            for segments in found
        )
        assert sorted(ours) == sorted(theirs)
        # the reference finds former nulls of rows that another segment covers since
        filters = (*_FILTERS[::4], "g IS NULL")
        _check(path, tuple(each for each in filters if not stable or not options or "NULL" not in each), ())


@pytest.mark.parametrize("rows", [0, 1, 9, 700])
@pytest.mark.parametrize("page", [2, 8])
def test_trees_of_any_size(tmp_path: Path, rows: int, page: int) -> None:
    values = in_form(random_geometries("point", rows), "point", "xy")
    dataset = lance_dataset.write_dataset(geometry_table("point", values), tmp_path)
    dataset.create_scalar_index("g", IndexConfig("RTree", {"page_size": page}))
    _check(tmp_path, (_FILTERS[0], "g IS NULL") if rows else (), ())
    if rows:
        ours, theirs = (each.stats.index_stats("g_idx")["indices"][0] for each in (dataset, lance.dataset(tmp_path)))
        assert ours == {**theirs, "bbox": pytest.approx(theirs["bbox"])}


def test_a_small_memory_limit_gives_the_same_index(tmp_path: Path) -> None:
    values = in_form(random_geometries("point", 2000), "point", "xy")
    files = []
    for name, options in (("all", {}), ("parts", {"memory_limit": 1 << 15}), ("one", {"memory_limit": 1})):
        dataset = lance_dataset.write_dataset(geometry_table("point", values), tmp_path / name)
        dataset.create_scalar_index("g", IndexConfig("rtree", {"page_size": 32}), **options)
        files.append(_content(next((tmp_path / name / "_indices").glob("*/page_data.lance"))))
    assert files[0].equals(files[1])
    assert files[0]["id"].equals(files[2]["id"])


def test_infinite_and_missing_coordinates(tmp_path: Path) -> None:
    """An index of the reference loses the other geometries; this one does not, in either implementation."""
    inf, nan = math.inf, math.nan
    values = [(1.0, 1.0), (nan, nan), (3.0, nan), (inf, 0.0), (0.0, -inf), (9.0, 9.0), (-1e308, 1e308), (2.0, 2.0)]
    points = pa.array([{"x": x, "y": y} for x, y in values], native_type("point", "xy"))
    dataset = lance_dataset.write_dataset(geometry_table("point", points), tmp_path)
    dataset.create_scalar_index("g", "RTREE")
    near = "st_intersects(g, st_geomfromtext('POLYGON((0 0,0 3,3 3,3 0,0 0))'))"
    assert _rows(dataset, near) == _rows(dataset, near, use_scalar_index=False) == [0, 7]
    assert _rows(lance.dataset(tmp_path), near) == [0, 7]
    assert _rows(dataset, "g IS NULL") == []
    assert dataset.stats.index_stats("g_idx")["indices"][0]["num_items"] == 6


def test_all_null_and_untrained(tmp_path: Path) -> None:
    dataset = lance_dataset.write_dataset(geometry_table("point", pa.nulls(5, native_type("point", "xy"))), tmp_path)
    dataset.create_scalar_index("g", "RTREE")
    _check(tmp_path, _FILTERS, ())
    dataset.create_scalar_index("g", "RTREE", train=False)
    _check(tmp_path, _FILTERS, ())
    assert dataset.describe_indices()[0].num_rows_indexed == 0
    lance.dataset(tmp_path).optimize.optimize_indices()
    _check(tmp_path, _FILTERS, ())
    assert lance_dataset.dataset(tmp_path).describe_indices()[0].num_rows_indexed == 5


def test_nested_columns_and_extension_types(tmp_path: Path) -> None:
    """A geometry in a struct, and a column of a registered extension type."""
    values = in_form(random_geometries("point", 200), "point", "xy")
    inner = geometry_field("g", "point", values.type)
    table = pa.table([pa.array(range(200)), pa.StructArray.from_arrays([values], fields=[inner])], names=["n", "s"])
    dataset = lance_dataset.write_dataset(table, tmp_path / "nested")
    dataset.create_scalar_index("s.g", "RTREE")
    for each in _FILTERS:
        nested = each.replace("(g,", "(s.g,").replace("g IS", "s.g IS")
        expected = _rows(dataset, nested, use_scalar_index=False)
        assert _rows(dataset, nested) == _rows(lance.dataset(tmp_path / "nested"), nested) == expected, nested
    assert _uses_index(lance_dataset, tmp_path / "nested", f"st_within(s.g, {_SQUARE})")

    class Point(pa.ExtensionType):
        def __init__(self) -> None:
            super().__init__(values.type, "geoarrow.point")

        def __arrow_ext_serialize__(self) -> bytes:
            return b"{}"

        @classmethod
        def __arrow_ext_deserialize__(cls, storage: pa.DataType, serialized: bytes) -> Point:
            return cls()

    pa.register_extension_type(Point())
    try:
        typed = pa.table({"n": range(200), "g": pa.ExtensionArray.from_storage(Point(), values)})
        lance_dataset.write_dataset(typed, tmp_path / "typed").create_scalar_index("g", "RTREE")
        _check(tmp_path / "typed")
    finally:
        pa.unregister_extension_type("geoarrow.point")


@pytest.mark.parametrize("size", [0, 1, "x", -1, 1 << 33, 3.5, True])
def test_wrong_page_sizes(tmp_path: Path, size: Any) -> None:
    dataset = _written(tmp_path, "point", "xy", 9)
    with pytest.raises((ValueError, RuntimeError)) as theirs:
        lance.dataset(tmp_path).create_scalar_index("g", lance.indices.IndexConfig("rtree", {"page_size": size}))
    with pytest.raises(type(theirs.value), match="page_size of a RTREE index must be a number of at least 2"):
        dataset.create_scalar_index("g", IndexConfig("rtree", {"page_size": size}))


_MISFITS = {
    "number": (pa.array([1, 2]), None),
    "unnamed struct": (pa.array([{"x": 1.0, "y": 1.0}], native_type("point", "xy")), None),
    "unnamed list": (pa.array([[{"x": 1.0, "y": 1.0}]], native_type("linestring", "xy")), None),
    "other storage": (pa.array([b"x"]), "point"),
    "single precision": (
        pa.array([{"x": 1.0, "y": 1.0}], pa.struct([("x", pa.float32()), ("y", pa.float32())])),
        "point",
    ),
    "bad binary": (pa.array([b"xx"]), "wkb"),
    "bad text": (pa.array(["POINT(1"]), "wkt"),
}


@pytest.mark.parametrize("name", _MISFITS)
def test_columns_that_do_not_fit(tmp_path: Path, name: str) -> None:
    values, kind = _MISFITS[name]
    field = pa.field("g", values.type) if kind is None else geometry_field("g", kind, values.type)
    lance.write_dataset(pa.table([values], schema=pa.schema([field])), tmp_path)
    if name != "single precision":  # where the reference panics
        with pytest.raises(RuntimeError):
            lance.dataset(tmp_path).create_scalar_index("g", "RTREE")
    with pytest.raises(InvalidIndexError, match="RTREE"):
        lance_dataset.dataset(tmp_path).create_scalar_index("g", "RTREE")


def test_positions_along_the_curve_are_neighbours() -> None:
    side = np.arange(256, dtype=np.uint16) << np.uint16(8)
    x, y = (each.ravel() for each in np.meshgrid(side, side))
    order = np.argsort(hilbert_keys(x, y))
    steps = np.abs(np.diff(x[order].astype(int))) + np.abs(np.diff(y[order].astype(int)))
    assert (steps == 256).all()
    assert hilbert_keys(np.array([CELLS - 1], np.uint16), np.array([0], np.uint16)) == [(1 << 32) - 1]


def test_an_index_is_used_where_it_is_cheaper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LANCE_CHECK_INDICES")
    rng = np.random.default_rng(2)
    shapes = shapely.points(rng.random((60_000, 2)) * 100)
    dataset = lance_dataset.write_dataset(geometry_table("point", in_form(shapes, "point", "xy")), tmp_path)
    dataset.create_scalar_index("g", "RTREE")
    dataset.prewarm_index("g_idx")
    small, large = (f"st_intersects(g, st_makebox2d(st_point(1, 1), st_point({end}, {end})))" for end in (2, 99))
    assert _uses_index(lance_dataset, tmp_path, small)
    assert not _uses_index(lance_dataset, tmp_path, large)
    for each in (small, large):
        assert dataset.count_rows(each) == lance.dataset(tmp_path).count_rows(each)
