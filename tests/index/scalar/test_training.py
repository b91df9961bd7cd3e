"""Scalar indices that this package builds: the reference reads and uses them, and errors are those of the reference."""

from __future__ import annotations

import datetime as dt
import decimal
from pathlib import Path
from typing import Any

import lance
import lance.indices
import numpy as np
import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset import LanceDataset
from lance_dataset.indices import IndexConfig

_ROWS = 700
_NUMBERS = np.random.default_rng(3).permutation(_ROWS) % 90


def _array(make: Any, kind: pa.DataType) -> pa.Array:
    return pa.array([None if number % 11 == 3 else make(int(number)) for number in _NUMBERS], kind)


_FLOATS = [float("nan"), float("-inf"), float("inf"), -0.0, 0.0]

#: A column of each type, with filters.
TYPES: dict[str, tuple[pa.Array, tuple[str, ...]]] = {
    "bool": (_array(lambda n: n % 3 == 0, pa.bool_()), ("c", "NOT c", "c IS TRUE", "c IS NOT TRUE")),
    "int8": (_array(lambda n: n - 40, pa.int8()), ("c = 5", "c < -20", "c IN (1, 2, 3, 4, 5)")),
    "uint16": (_array(lambda n: n * 700, pa.uint16()), ("c = 7000", "c >= 50000", "c BETWEEN 700 AND 2100")),
    "int64": (_array(lambda n: (n - 40) << 56, pa.int64()), ("c = 0", "c != 0", "NOT (c > 0)", "c NOT IN (0, 1)")),
    "uint64": (_array(lambda n: (1 << 63) + n, pa.uint64()), ("c > 9223372036854775820",)),
    "float": (
        _array(lambda n: _FLOATS[n % 9] if n % 9 < 5 else n / 4, pa.float32()),
        ("c = 0.0", "c > 2.5", "c < 0", "c >= 0.0", "c != 2.5"),
    ),
    "double": (
        _array(lambda n: _FLOATS[n % 9] if n % 9 < 5 else n / 4, pa.float64()),
        ("c <= 0.0", "c > 3", "c = -0.0"),
    ),
    "string": (
        _array(lambda n: f"é{n % 30}", pa.string()),
        ("c = 'é3'", "c > 'é2'", "c LIKE 'é1%'", "starts_with(c, 'é2')"),
    ),
    "large_string": (_array(lambda n: "x" * (n % 50), pa.large_string()), ("c = 'xxx'", "c = ''", "c < 'xx'")),
    "binary": (_array(lambda n: bytes([n, 255 - n]), pa.binary()), ("c = X'05FA'", "c > X'40'")),
    "fixed": (_array(lambda n: bytes([n, 255 - n]), pa.binary(2)), ("c IS NULL", "c IS NOT NULL")),
    "decimal": (_array(lambda n: decimal.Decimal(n - 40) / 4, pa.decimal128(8, 2)), ("c = 2", "c < -1")),
    "date32": (_array(lambda n: dt.date(2000, 1, 1) + dt.timedelta(n), pa.date32()), ("c > date '2000-02-20'",)),
    "timestamp": (
        _array(lambda n: dt.datetime(2000, 1, 1) + dt.timedelta(hours=n), pa.timestamp("us")),
        ("c >= timestamp '2000-01-03 00:00:00'", "c IS NULL"),
    ),
}
_LISTS = pa.array(
    [None if n % 9 == 0 else [] if n % 9 == 1 else [int(n) % 7, None, int(n) % 4, int(n) % 4] for n in _NUMBERS],
    pa.list_(pa.int64()),
)
_LIST_FILTERS = ("array_has(c, 3)", "array_has_any(c, [1, 6])", "array_has_all(c, [1, 3])", "array_has(c, 99)")


def _rows(dataset: Any, filter: str, **options: Any) -> list[int]:
    return sorted(dataset.scanner(columns=["n"], filter=filter, **options).to_table()["n"].to_pylist())


def _written(path: Path, column: pa.Array, *, stable: bool) -> LanceDataset:
    table = pa.table({"c": column, "n": np.arange(len(column))})
    dataset = lance_dataset.write_dataset(table, path, max_rows_per_file=300, enable_stable_row_ids=stable)
    dataset.delete("n % 13 = 4")
    return dataset


def _check(path: Path, filters: tuple[str, ...]) -> None:
    theirs, ours = lance.dataset(path), lance_dataset.dataset(path)
    for each in filters:
        expected = _rows(ours, each, use_scalar_index=False)
        assert expected == _rows(theirs, each, use_scalar_index=False), each
        assert _rows(theirs, each) == expected, each
        assert _rows(ours, each) == expected, each
        assert ours.count_rows(each) == len(expected)


@pytest.fixture(autouse=True)
def checking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use indices wherever they answer, and compare each answer with the scan."""
    monkeypatch.setenv("LANCE_CHECK_INDICES", "1")


@pytest.mark.parametrize("kind", ["BTREE", "BITMAP"])
@pytest.mark.parametrize("name", TYPES)
def test_each_type_both_ways(tmp_path: Path, name: str, kind: str) -> None:
    stable = len(name) % 2 == 0
    column, filters = TYPES[name]
    _written(tmp_path / "ours", column, stable=stable).create_scalar_index("c", kind)
    _check(tmp_path / "ours", (*filters, "c IS NULL", "c IS NOT NULL"))
    plan = lance.dataset(tmp_path / "ours").scanner(filter=filters[0]).explain_plan()
    assert "ScalarIndexQuery" in plan or "starts_with" in filters[0]
    _written(tmp_path / "theirs", column, stable=stable)
    lance.dataset(tmp_path / "theirs").create_scalar_index("c", kind)
    _check(tmp_path / "theirs", (*filters, "c IS NULL", "c IS NOT NULL"))
    assert "ScalarIndexQuery" in lance_dataset.dataset(tmp_path / "theirs").scanner(filter=filters[0]).explain_plan()


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("large", [False, True])
def test_lists_both_ways(tmp_path: Path, stable: bool, large: bool) -> None:
    column = _LISTS.cast(pa.large_list(pa.int64())) if large else _LISTS
    for name, module in (("ours", lance_dataset), ("theirs", lance)):
        _written(tmp_path / name, column, stable=stable)
        module.dataset(tmp_path / name).create_scalar_index("c", "LABEL_LIST")
        _check(tmp_path / name, _LIST_FILTERS)
        assert "ScalarIndexQuery" in lance.dataset(tmp_path / name).scanner(filter=_LIST_FILTERS[0]).explain_plan()
        assert (
            "ScalarIndexQuery" in lance_dataset.dataset(tmp_path / name).scanner(filter=_LIST_FILTERS[0]).explain_plan()
        )


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("kind", ["BTREE", "BITMAP"])
def test_answers_stay_right_through_changes(tmp_path: Path, kind: str, stable: bool) -> None:
    column, filters = TYPES["int64"][0], (*TYPES["int64"][1], "c = 0 OR n < 50", "c > 0 AND n % 2 = 0")
    dataset = _written(tmp_path, column, stable=stable)
    dataset.create_scalar_index("c", kind)
    dataset.create_scalar_index("n", "BTREE")
    more = pa.table({"c": column[:100], "n": np.arange(5000, 5100)})
    keyed = pa.table({"c": pa.array([0, 5, None]), "n": pa.array([2, 3, 99_999])})
    steps = [
        lambda: dataset.insert(more),
        lambda: dataset.update({"c": "0"}, where="n BETWEEN 20 AND 40"),
        lambda: dataset.delete("c = 0 AND n > 30"),
        lambda: dataset.merge_insert("n").when_matched_update_all().when_not_matched_insert_all().execute(keyed),
        lambda: dataset.optimize.compact_files(),
        lambda: dataset.update({"c": "7"}, where="n = 5001"),
        lambda: dataset.create_scalar_index("c", kind),
        lambda: lance.dataset(tmp_path).optimize.optimize_indices(),
    ]
    for step in steps:
        step()
        _check(tmp_path, filters)
        dataset = lance_dataset.dataset(tmp_path)


def test_answers_stay_right_after_deferred_compaction(tmp_path: Path) -> None:
    dataset = _written(tmp_path, TYPES["int64"][0], stable=False)
    for column, kind in (("c", "BTREE"), ("n", "BITMAP")):
        dataset.create_scalar_index(column, kind)
    dataset.optimize.compact_files(defer_index_remap=True)
    _check(tmp_path, ("c = 0", "c > 0", "n IN (1, 5, 7, 300)", "c IS NULL"))
    dataset.delete("n = 5")
    _check(tmp_path, ("c = 0", "c > 0", "n IN (1, 5, 7, 300)", "c IS NULL"))


@pytest.mark.parametrize("rows", [0, 1, 8193])
def test_pages_of_any_size(tmp_path: Path, rows: int) -> None:
    table = pa.table({"c": pa.array(np.arange(rows) % 5000), "n": np.arange(rows)})
    dataset = lance_dataset.write_dataset(table, tmp_path)
    for config in (IndexConfig("btree", {}), IndexConfig("BTree", {"zone_size": 7}), IndexConfig("bitmap", {})):
        dataset.create_scalar_index("c", config, name="c_idx")
        _check(tmp_path, ("c = 17", "c < 30", "c > 4990", "c IS NULL", "c != 3"))


def test_a_small_memory_limit_gives_the_same_index(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    table = pa.table({"c": rng.integers(0, 3000, 60_000), "n": np.arange(60_000)})
    dataset = lance_dataset.write_dataset(table, tmp_path)
    for kind in ("BTREE", "BITMAP"):
        dataset.create_scalar_index("c", kind, name="c_idx", memory_limit=1 << 18)
        _check(tmp_path, ("c = 17", "c < 30", "c > 2990"))
    assert dataset.describe_indices()[0].num_rows_indexed == 60_000


def test_untrained_indices_answer_nothing(tmp_path: Path) -> None:
    dataset = _written(tmp_path, TYPES["int8"][0], stable=False)
    for kind in ("BTREE", "BITMAP"):
        dataset.create_scalar_index("c", kind, train=False)
        _check(tmp_path, TYPES["int8"][1])
    assert [each.num_rows_indexed for each in dataset.describe_indices()] == [0, 0]
    lance.dataset(tmp_path).optimize.optimize_indices()
    assert [each.num_rows_indexed for each in lance_dataset.dataset(tmp_path).describe_indices()] == [646, 646]
    _check(tmp_path, TYPES["int8"][1])


def test_names_are_those_of_the_reference(tmp_path: Path) -> None:
    table = pa.table({"i": [1, 2], "s": ["a", "b"], "st": [{"x": 1}, {"x": 2}]})
    calls = [
        ("i", "btree", None),
        ("i", "BITMAP", "i_idx"),
        ("i", "BTREE", None),
        ("st.x", "BTREE", None),
        (["s"], "BTREE", None),
        ("s", "BITMAP", None),
        ("s", "BITMAP", "other"),
    ]
    found = []
    for name, module in (("ours", lance_dataset), ("theirs", lance)):
        dataset = module.write_dataset(table, tmp_path / name)
        for column, kind, chosen in calls:
            dataset.create_scalar_index(column, kind, chosen)
        found.append([(each.name, each.index_type, each.field_names) for each in dataset.describe_indices()])
    assert found[0] == found[1]


_BAD: list[tuple[Any, Any, dict[str, Any], type[Exception]]] = [
    ("i", "FOO", {}, NotImplementedError),
    ("zz", "BTREE", {}, KeyError),
    ("l", "BTREE", {}, TypeError),
    ("st", "BITMAP", {}, TypeError),
    ("d", "BTREE", {}, TypeError),
    ("v", "BTREE", {}, TypeError),
    ("nothing", "BTREE", {}, TypeError),
    ("i", "LABEL_LIST", {}, TypeError),
    (["i", "s"], "BTREE", {}, NotImplementedError),
    ("i", IndexConfig("nope", {}), {}, ValueError),
    ("i", IndexConfig("btree", {"zone_size": "x"}), {}, RuntimeError),
    ("s", "BTREE", {"name": "i_idx"}, RuntimeError),
    ("i", "BTREE", {"replace": False}, RuntimeError),
    ("i", "BTREE", {"name": 5}, TypeError),
]


@pytest.mark.parametrize("case", _BAD, ids=str)
def test_bad_input_gets_the_errors_of_the_reference(tmp_path: Path, case: tuple[Any, Any, dict[str, Any], Any]) -> None:
    column, kind, options, error = case
    table = pa.table(
        {
            "i": [1, 2],
            "s": ["a", "b"],
            "l": [[1], [2]],
            "st": [{"x": 1}, {"x": 2}],
            "d": pa.array(["a", "b"]).dictionary_encode(),
            "v": pa.array([[1.0, 2.0]] * 2, pa.list_(pa.float32(), 2)),
            "nothing": pa.nulls(2),
        }
    )
    dataset = lance_dataset.write_dataset(table, tmp_path)
    dataset.create_scalar_index("i", "BTREE")
    version, folders = dataset.version, sorted((tmp_path / "_indices").iterdir())
    theirs = lance.indices.IndexConfig(kind.index_type, kind.parameters) if isinstance(kind, IndexConfig) else kind
    with pytest.raises(error):
        lance.dataset(tmp_path).create_scalar_index(column, theirs, **options)
    with pytest.raises(error):
        dataset.create_scalar_index(column, kind, **options)
    assert dataset.version == version
    assert sorted((tmp_path / "_indices").iterdir()) == folders


def test_a_failed_build_leaves_nothing(tmp_path: Path) -> None:
    dataset = lance_dataset.write_dataset(pa.table({"i": np.arange(1000)}), tmp_path)

    def fail(progress: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        dataset.create_scalar_index("i", "BTREE", progress_callback=fail)
    assert not list(tmp_path.glob("_indices/*"))
    assert lance_dataset.dataset(tmp_path).version == 1


def test_progress_is_told(tmp_path: Path) -> None:
    dataset = lance_dataset.write_dataset(pa.table({"i": np.arange(1000)}), tmp_path)
    told: list[Any] = []
    dataset.create_scalar_index("i", "BTREE", progress_callback=told.append)
    assert [(each.event, each.stage, each.completed, each.unit) for each in told] == [
        ("start", "load_data", 0, "rows"),
        ("progress", "load_data", 1000, "rows"),
        ("complete", "load_data", 1000, "rows"),
    ]
    assert told[0].fraction is None
