"""Tests of updates: the same changes on copies of one dataset, compared with the reference."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.reference.outcomes import Outcome, assert_same_outcome, build_table

import lance_dataset
from lance_dataset.errors import (
    CommitConflictError,
    FieldNotFoundError,
    FilterError,
    InvalidInputError,
    SchemaError,
    UnsupportedError,
)

LINEAGE = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"]

#: Assigned expressions and conditions.
CASES: dict[str, tuple[Any, Any]] = {
    "literal": ({"n": "7"}, "id < 5"),
    "null": ({"n": "null", "s": "null", "st": "null", "vec": "null", "cat": "null"}, "id % 7 = 0"),
    "expression": ({"n": "n * 2 + 1"}, None),
    "other column": ({"n": "id"}, "id >= 20 and id < 50"),
    "several": ({"s": "upper(s)", "f": "f / 2", "flag": "not flag"}, "n > 3"),
    "whole fragment": ({"s": "'x'"}, "id >= 20 and id < 40"),
    "no row": ({"n": "1"}, "id > 1000"),
    "false": ({"n": "1"}, "false"),
    "null condition": ({"n": "1"}, "n > null"),
    "arrow condition": ({"n": "1"}, pc.field("s").isin(["text 1"])),
    "nested condition": ({"n": "st.x"}, "st.deep.z > 10"),
    "row id": ({"n": "0"}, "_rowid = 3 or _rowaddr = 8589934593"),
    "struct": ({"st": "named_struct('y', 'new', 'x', 5)"}, "id = 3"),
    "struct itself": ({"st": "st"}, "id < 30"),
    "list": ({"li": "make_array(5, 6)"}, "id = 3"),
    "vector": ({"vec": "[1, 2, 3, 4]"}, "id < 30"),
    "vector of another size": ({"vec": "[1.0, 2.0]"}, "id < 30"),
    "category": ({"cat": "'violet'"}, "id < 30"),
    "category by value": ({"cat": "concat(cat, '!')"}, "cat is not null"),
    "quoted": ({"With Space": "`With Space` + 1"}, "id < 30"),
    "text to number": ({"n": "'12'"}, "id = 1"),
    "number to text": ({"s": "n"}, None),
    "fraction to integer": ({"n": "f"}, "f < 10"),
    "number to boolean": ({"flag": "n"}, None),
    "text to date": ({"day": "'2021-02-03'"}, "id = 1"),
    "text to time stamp": ({"at": "'2021-02-03T04:05:06Z'"}, "id = 1"),
    "date to time stamp": ({"at": "day"}, None),
    "text to bytes": ({"raw": "s"}, None),
    "large text": ({"big": "concat(big, s)"}, None),
    "null column": ({"void": "null"}, None),
    "null column of numbers": ({"void": "1"}, None),
    "range": ({"With Space": "id * 100"}, None),
    "range of a constant": ({"With Space": "300"}, None),
    "no number": ({"n": "s"}, None),
    "nulls where none may be": ({"id": "n"}, None),
    "null where none may be": ({"id": "null"}, "id = 3"),
    "division by zero": ({"n": "n / (id - 4)"}, None),
    "condition that fails": ({"n": "1"}, "cast(s as int) = 1"),
    "unknown column": ({"nope": "1"}, None),
    "other case": ({"N": "1"}, None),
    "system column": ({"_rowid": "1"}, None),
    "system column as value": ({"n": "_rowid"}, None),
    "unknown in expression": ({"n": "nope"}, None),
    "unknown in condition": ({"n": "1"}, "nope = 1"),
    "no boolean": ({"n": "1"}, "id"),
    "bad text": ({"n": "1 +"}, None),
    "empty text": ({"n": ""}, None),
    "empty condition": ({"n": "1"}, ""),
    "aggregate": ({"n": "sum(n)"}, None),
    "nothing": ({}, None),
    "nested field": ({"st.x": "1"}, None),
    "no text": ({"n": 1}, None),
    "none": ({"n": None}, None),
    "arrow value": ({"n": pc.field("id")}, None),
    "no dict": ([("n", "1")], None),
}


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, bool], Path]:
    """Return tables of three fragments of twenty rows, by file version and use of stable row ids."""
    made = {}
    for version, stable in (("2.0", False), ("2.2", True)):
        path = made[version, stable] = tmp_path_factory.mktemp("update") / f"{version}-{stable}"
        for start in (0, 20, 40):
            lance.write_dataset(
                build_table(20, start),
                path,
                mode="append",
                data_storage_version=version,
                enable_stable_row_ids=stable,
            )
    return made


def rows_of(dataset: Any, *, lineage: bool) -> str:
    """Return all rows by their number, as the order differs, with row ids and versions."""
    names = dataset.schema.names
    rows = dataset.to_table(columns=[*names, *LINEAGE] if lineage else names).to_pylist()
    return repr(sorted(rows, key=lambda row: row["id"]))


@pytest.mark.parametrize("kind", [("2.0", False), ("2.2", True)], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_like_the_reference(
    tmp_path: Path, templates: dict[tuple[str, bool], Path], name: str, kind: tuple[str, bool]
) -> None:
    """Counts, rows, ids, versions and errors match the reference, and the other library reads what each wrote."""
    updates, where = CASES[name]
    ends = []
    for library, other in ((lance_dataset, lance), (lance, lance_dataset)):
        path = tmp_path / library.__name__
        shutil.copytree(templates[kind], path)
        dataset = library.dataset(path)
        outcome = Outcome.of(lambda lib, ds: ds.update(updates, where), library, dataset)
        mine = rows_of(dataset, lineage=kind[1])
        assert mine == rows_of(other.dataset(path), lineage=kind[1])
        ends.append((outcome, mine, dataset.version, len(dataset.get_fragments())))
    if name == "division by zero" and ends[1][0].error is None:
        pytest.fail("the reference divides by zero")
    assert_same_outcome(ends[0][0], ends[1][0])
    assert ends[0][1:] == ends[1][1:]


def test_transaction(tmp_path: Path) -> None:
    """The committed operation matches the reference.

    Compared are removed, changed and new fragments, and the changed fields including all their children.
    """
    found = []
    for library in (lance, lance_dataset):
        path = tmp_path / library.__name__
        lance.write_dataset(build_table(60), path, max_rows_per_file=20)
        library.dataset(path).update({"st": "st", "n": "5"}, "id < 25")
        made = lance.dataset(path).read_transaction(2).operation
        new = [(each.id, each.physical_rows) for each in made.new_fragments]
        old = [(each.id, each.deletion_file.num_deleted_rows) for each in made.updated_fragments]
        fields = sorted(made.fields_for_preserving_frag_bitmap)
        found.append((made.removed_fragment_ids, old, new, fields, made.fields_modified, made.update_mode))
    assert found[0] == found[1]


def test_columns_are_swapped(tmp_path: Path) -> None:
    """All expressions read old values; the reference assigns columns one after the other, in random order."""
    dataset = lance_dataset.write_dataset(pa.table({"a": [1, 2], "b": [3, 4], "c": [5, 6]}), tmp_path / "d")
    assert dataset.update({"a": "b", "b": "a", "c": "a + b"}) == {"num_rows_updated": 2}
    assert lance.dataset(tmp_path / "d").to_table().to_pydict() == {"a": [3, 4], "b": [1, 2], "c": [4, 6]}


def test_order(tmp_path: Path) -> None:
    """Updated rows come last, in their original order."""
    dataset = lance_dataset.write_dataset(pa.table({"a": range(30)}), tmp_path / "d", max_rows_per_file=10)
    dataset.update({"a": "a + 100"}, "a % 10 < 2 or a >= 20")
    moved = [100, 101, 110, 111, *range(120, 130)]
    assert dataset.to_table()["a"].to_pylist() == [*range(2, 10), *range(12, 20), *moved]
    assert dataset.fragment_ids() == [0, 1, 3]


def values_of(path: Path) -> list[Any]:
    found = [library.dataset(path).to_table().to_pylist() for library in (lance, lance_dataset)]
    assert repr(found[0]) == repr(found[1])
    return found[0]


@pytest.mark.parametrize("version", ["2.1", "2.2", "2.3"])
def test_types_of_storage(tmp_path: Path, version: str) -> None:
    """Documents, UUIDs, maps and half floats are kept, and can be set where the reference can."""
    half = np.array([1, 2], np.float16)
    data = pa.table(
        {
            "id": [1, 2],
            "doc": pa.array(['{"a":1}', '{"b":2}'], pa.json_()),
            "uuid": pa.array([b"0" * 16, b"1" * 16], pa.uuid()),
            "map": pa.array([[("a", 1)], [("b", 2)]], pa.map_(pa.string(), pa.int32())),
            "half": half,
            "v16": pa.array([[half[0], half[1]]] * 2, pa.list_(pa.float16(), 2)),
        }
    )
    if version == "2.1":
        data = data.drop(["map"])
    ends = []
    for library in (lance, lance_dataset):
        path = tmp_path / library.__name__
        lance.write_dataset(data, path, data_storage_version=version)
        dataset = library.dataset(path)
        dataset.update({"id": "id + 10"}, "id = 1")
        dataset.update({"doc": "'{\"c\": [1]}'", "uuid": "X'30303030303030303030303030303031'"}, "id = 11")
        dataset.update({"half": "1.5", "v16": "[5.0, 6.5]", "doc": "doc"}, "id = 2")
        ends.append(repr(values_of(path)))
    assert ends[0] == ends[1]
    with pytest.raises(InvalidInputError):
        dataset.update({"half": "id / (id - 11)"})
    with pytest.raises(OSError):
        dataset.update({"doc": "'{c'"})
    assert dataset.version == 4


@pytest.mark.parametrize("version", ["2.0", "2.1"])
def test_blobs(tmp_path: Path, version: str) -> None:
    """Blobs move with their rows, and can be set."""
    field = pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    schema = pa.schema([pa.field("id", pa.int64()), field])
    data = pa.table({"id": [1, 2, 3, 4], "blob": [b"aaa", b"b" * 10000, None, b""]}, schema=schema)
    path = tmp_path / "d"
    dataset = lance_dataset.write_dataset(data, path, data_storage_version=version)
    assert dataset.update({"id": "id + 10"}, "id != 1") == {"num_rows_updated": 3}
    dataset.update({"blob": "X'414243'"}, "id = 12")
    dataset.update({"id": "15"}, "id = 13")
    table = dataset.to_table(blob_handling="all_binary")
    expected = {1: b"aaa", 12: b"ABC", 15: None, 14: b""}
    assert dict(zip(*table.to_pydict().values(), strict=True)) == expected
    ids = lance.dataset(path).to_table(columns=["id"])["id"].to_pylist()
    blobs = lance.dataset(path).take_blobs("blob", indices=[ids.index(1), ids.index(12)])
    assert [blob.readall() for blob in blobs] == [b"aaa", b"ABC"]


def test_blobs_that_cannot_be_written(tmp_path: Path) -> None:
    path = tmp_path / "d"
    lance.write_dataset(pa.table({"id": [1], "b": lance.blob_array([b"a"])}), path, data_storage_version="2.2")
    before = sorted(path.rglob("*"))
    with pytest.raises(UnsupportedError, match="Direct updates to column 'b'"):
        lance_dataset.dataset(path).update({"b": "X'41'"})
    assert sorted(path.rglob("*")) == before


def test_legacy_tables(tmp_path: Path) -> None:
    """A legacy table stays legacy, and a new value outside of a column's dictionary raises `SchemaError`.

    The reference stores wrong values in the latter case.
    """
    path = tmp_path / "d"
    data = pa.table({"id": [1, 2, 3], "s": ["a", "b", None], "d": pa.array(["x", "y", "x"]).dictionary_encode()})
    dataset = lance_dataset.write_dataset(data, path, data_storage_version="legacy")
    dataset.update({"s": "concat(s, '!')", "d": "'y'"}, "id < 2")
    dataset.update({"id": "id + 10"}, "id > 1")
    assert values_of(path) == [
        {"id": 1, "s": "a!", "d": "y"},
        {"id": 12, "s": "b", "d": "y"},
        {"id": 13, "s": None, "d": "x"},
    ]
    assert dataset.data_storage_version == "0.1"
    with pytest.raises(SchemaError):
        dataset.update({"d": "'z'"})
    with pytest.raises(InvalidInputError, match=r"0\.1"):
        dataset.update({"id": "1"}, data_storage_version="2.2")
    assert dataset.version == 3


def test_file_versions(tmp_path: Path) -> None:
    """An update can write files of another 2.x version than the table's, but not legacy ones."""
    path = tmp_path / "d"
    dataset = lance_dataset.write_dataset(pa.table({"a": range(10)}), path, data_storage_version="2.2")
    dataset.update({"a": "a + 100"}, "a < 3", data_storage_version="2.0")
    files = [file for fragment in dataset.get_fragments() for file in fragment.metadata.files]
    assert [(file.file_major_version, file.file_minor_version) for file in files] == [(2, 2), (2, 0)]
    assert sorted(row["a"] for row in values_of(path)) == [3, 4, 5, 6, 7, 8, 9, 100, 101, 102]
    for wrong in ("legacy", "9.9"):
        with pytest.raises(ValueError):
            dataset.update({"a": "1"}, data_storage_version=wrong)


def test_missing_columns_and_deletions(tmp_path: Path) -> None:
    """Updates handle fragments that lack a column, and skip deleted rows."""
    path = tmp_path / "d"
    lance.write_dataset(pa.table({"a": range(5)}), path)
    lance.dataset(path).add_columns(pa.schema([pa.field("b", pa.string())]))
    dataset = lance_dataset.dataset(path)
    dataset.delete("a = 1")
    assert dataset.update({"b": "'set'"}, "a < 3") == {"num_rows_updated": 2}
    assert dataset.update({"a": "a * 10"}) == {"num_rows_updated": 4}
    expected = [{"a": 30, "b": None}, {"a": 40, "b": None}, {"a": 0, "b": "set"}, {"a": 20, "b": "set"}]
    assert values_of(path) == expected


def test_empty_table(tmp_path: Path) -> None:
    path = tmp_path / "d"
    dataset = lance_dataset.write_dataset(pa.table({"a": pa.array([], pa.int64())}), path)
    assert dataset.update({"a": "1"}) == {"num_rows_updated": 0}
    assert dataset.version == 2
    assert dataset.get_fragments() == []


def test_other_writers(tmp_path: Path) -> None:
    """Rows deleted by other writers stay deleted, rows they added stay unchanged, and no unused file is left."""
    path = tmp_path / "d"
    lance_dataset.write_dataset(pa.table({"a": range(10)}), path)
    refused, again, beside = (lance_dataset.dataset(path) for _ in range(3))
    lance.dataset(path).delete("a = 1")
    with pytest.raises(CommitConflictError):
        refused.update({"a": "a + 100"}, "a < 3", conflict_retries=0)
    assert again.update({"a": "a + 100"}, "a < 3") == {"num_rows_updated": 2}
    assert again.version == 3
    lance.dataset(path).insert(pa.table({"a": [5]}))
    assert beside.update({"a": "a + 100"}, "a = 5") == {"num_rows_updated": 1}
    assert beside.version == 5
    assert [row["a"] for row in values_of(path)] == [3, 4, 6, 7, 8, 9, 100, 102, 5, 105]
    names = {file.name for file in (path / "data").iterdir()}
    shown = {file.path for fragment in beside.get_fragments() for file in fragment.metadata.files}
    assert names == shown  # no file of the refused update is left


def test_bad_options(tmp_path: Path) -> None:
    dataset = lance_dataset.write_dataset(pa.table({"a": [1], "st": [{"x": 1}]}), tmp_path / "d")
    for error, updates in ((UnsupportedError, {"st.x": "1"}), (FieldNotFoundError, {"st.z": "1"}), (TypeError, None)):
        with pytest.raises(error):
            dataset.update(updates)  # type: ignore[arg-type]
    with pytest.raises(FilterError, match="struct"):
        dataset.update({"a": "st"})
    with pytest.raises(InvalidInputError, match="column 'a'"):
        dataset.update({"a": "1 / (a - 1)"})
    for option in ({"conflict_retries": -1}, {"conflict_retries": 1.5}, {"retry_timeout": 5}):
        with pytest.raises((ValueError, TypeError)):
            dataset.update({"a": "1"}, **option)  # type: ignore[arg-type]
    assert dataset.version == 1


# -- random updates --------------------------------------------------------------------------------------------------

_NUMBERS = st.recursive(
    st.sampled_from(["n", "m", "id", "1", "-3", "null", "length(s)", "coalesce(n, m)"]),
    lambda inner: st.builds("({} {} {})".format, inner, st.sampled_from("+-*"), inner),
    max_leaves=3,
)
_TEXTS = st.sampled_from(["s", "upper(s)", "'new'", "null", "concat(s, n)", "n", "coalesce(s, 'none')"])
_FLAGS = st.sampled_from(["flag", "not flag", "n > m", "s is null", "null", "id % 3 = 1", "n in (1, 2, null)"])
_SETS = st.fixed_dictionaries({}, optional={"n": _NUMBERS, "s": _TEXTS, "flag": _FLAGS, "big": st.just("id * 2")})
_CHANGES = st.lists(
    st.tuples(_SETS.filter(bool), st.none() | _FLAGS, st.booleans()).filter(lambda change: not _reads_changed(change)),
    min_size=1,
    max_size=2,
)
_NAMES = ["id", "n", "m", "s", "flag", "big"]
_TYPES = [pa.int64(), pa.int32(), pa.int32(), pa.string(), pa.bool_(), pa.int64()]
_ROWS = st.lists(
    st.tuples(
        st.none() | st.integers(-5, 5),
        st.integers(-5, 5),
        st.none() | st.sampled_from(["", "a", "b", "ü"]),
        st.none() | st.booleans(),
    ),
    min_size=1,
    max_size=12,
)


def _reads_changed(change: tuple[dict[str, str], str | None, bool]) -> bool:
    """Return True if an expression reads a column that another one sets; the reference may take the new value."""
    names = set(change[0])
    return any((names - {name}) & _words(text) for name, text in change[0].items())


def _words(text: str) -> set[str]:
    return set("".join(letter if letter.isalpha() else " " for letter in text).split())


@settings(max_examples=30)
@given(rows=_ROWS, changes=_CHANGES, stable=st.booleans(), size=st.integers(1, 6))
def test_random_updates(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Any], changes: list[Any], stable: bool, size: int
) -> None:
    """Random updates give the same result on copies changed by each library and by both in turn."""
    columns = list(zip(*[(number, *row, 0) for number, row in enumerate(rows)], strict=True))
    table = pa.Table.from_arrays([pa.array(each, kind) for each, kind in zip(columns, _TYPES, strict=True)], _NAMES)
    base = tmp_path_factory.mktemp("random")
    options = {"max_rows_per_file": size, "enable_stable_row_ids": stable}
    lance.write_dataset(table, base / "0", **options)
    paths = [base / name for name in ("0", "1", "2")]
    for path in paths[1:]:
        shutil.copytree(paths[0], path)
    for updates, where, first in changes:
        libraries = (lance, lance_dataset, lance_dataset if first else lance)
        outcomes = [
            Outcome.of(lambda lib, ds, given=(updates, where): ds.update(*given), library, library.dataset(path))
            for path, library in zip(paths, libraries, strict=True)
        ]
        assert_same_outcome(outcomes[1], outcomes[0])
        assert (outcomes[2].error is None) == (outcomes[0].error is None)
    found = [rows_of(library.dataset(path), lineage=stable) for path in paths for library in (lance, lance_dataset)]
    assert len(set(found)) == 1
    shutil.rmtree(base)


# -- large tables ----------------------------------------------------------------------------------------------------


def test_bounded_memory(tmp_path: Path) -> None:
    """An update holds only parts of the table in memory."""

    def batches() -> Iterator[pa.RecordBatch]:
        for start in range(40):
            yield pa.record_batch({"id": np.arange(1000) + start * 1000, "text": [f"{start}" * 1000] * 1000})

    path = tmp_path / "d"
    schema = pa.schema([("id", pa.int64()), ("text", pa.string())])
    dataset = lance_dataset.write_dataset(batches(), path, schema, data_storage_version="2.0", max_rows_per_file=10_000)
    before = pa.total_allocated_bytes()
    pool = pa.default_memory_pool()
    assert dataset.update({"id": "id + 1"}) == {"num_rows_updated": 40_000}
    assert dataset.count_rows("text like '39%'") == 1000
    assert pool.bytes_allocated() - before < 40 << 20
    ids = lance.dataset(path).to_table(columns=["id"])["id"].to_numpy()
    assert (ids == np.arange(40_000) + 1).all()
