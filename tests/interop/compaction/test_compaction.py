"""Tests of compaction by this package and by the reference, and of upgrades to a later file version."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import lance as reference
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.tables.equality import assert_same

import lance_dataset as lance
from lance_dataset.errors import CommitConflictError, InvalidInputError, UnsupportedError
from lance_dataset.optimize import CompactionMetrics

VERSIONS = ["legacy", "2.0", "2.1", "2.2"]


def rows(start: int, stop: int) -> pa.Table:
    numbers = np.arange(start, stop)
    columns = {
        "id": numbers,
        "text": [f"row {number}" for number in numbers],
        "vector": pa.array([[number, number + 0.5] for number in numbers], pa.list_(pa.float32(), 2)),
        "list": pa.array([[number] * (number % 3) for number in numbers], pa.list_(pa.int32())),
        "inner": pa.array([{"a": number, "b": str(number)} for number in numbers]),
    }
    return pa.table(columns)


def made(path: Path, version: str, *counts: int, **options: object) -> str:
    """Make a dataset of one fragment per number of rows, with consecutive values."""
    start = 0
    for count in counts:
        reference.write_dataset(
            rows(start, start + count), path, mode="append", data_storage_version=version, **options
        )
        start += count
    return str(path)


def sizes(dataset: lance.LanceDataset | reference.LanceDataset) -> list[tuple[int, int, int]]:
    return [(each.fragment_id, each.physical_rows, each.num_deletions) for each in dataset.get_fragments()]


def metrics(found: object) -> dict[str, int]:
    names = ("fragments_removed", "fragments_added", "files_removed", "files_added")
    return {name: getattr(found, name) for name in names}


def files(folder: str) -> set[str]:
    return {str(path.relative_to(folder)) for path in Path(folder).rglob("*") if path.is_file()}


def assert_both(folder: str, expected: pa.Table) -> None:
    for dataset in (lance.dataset(folder), reference.dataset(folder)):
        assert dataset.count_rows() == expected.num_rows
        assert_same(dataset.to_table(), expected)


# -- as the reference does it ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_small_fragments_and_deletions(tmp_path: Path, version: str) -> None:
    table = made(tmp_path / "t.lance", version, 30, 20, 10)
    dataset = lance.dataset(table)
    dataset.delete("id in (3, 31, 59)")
    expected = dataset.to_table()
    found = dataset.optimize.compact_files()
    assert found == CompactionMetrics(fragments_removed=3, fragments_added=1, files_removed=6, files_added=1)
    assert sizes(dataset) == [(3, 57, 0)]
    assert dataset.version == 6
    assert dataset.data_storage_version == reference.dataset(table).data_storage_version
    assert_both(table, expected)
    assert lance.dataset(table, version=4).to_table() == expected
    assert dataset.optimize.compact_files() == CompactionMetrics()
    assert dataset.version == 6
    reference.dataset(table).insert(rows(60, 70))
    reference.dataset(table).optimize.compact_files()
    assert lance.dataset(table).count_rows() == 67


OPTIONS = [
    {},
    {"target_rows_per_fragment": 10},
    {"target_rows_per_fragment": 15},
    {"target_rows_per_fragment": 20},
    {"target_rows_per_fragment": 0},
    {"materialize_deletions": False},
    {"materialize_deletions": False, "target_rows_per_fragment": 12},
    {"materialize_deletions_threshold": 0.3, "target_rows_per_fragment": 5},
    {"materialize_deletions_threshold": 0.0, "target_rows_per_fragment": 5},
    {"materialize_deletions_threshold": 1.0, "target_rows_per_fragment": 5},
    {"excluded_fragment_ids": [2]},
    {"excluded_fragment_ids": [0, 77, 0]},
    {"max_source_fragments": 3, "target_rows_per_fragment": 10},
    {"max_source_rows": 25, "target_rows_per_fragment": 10},
    {"max_source_bytes": 1},
    {"compaction_mode": "try_binary_copy", "batch_size": 3, "num_threads": 2},
    {"data_storage_version": "2.2"},
    {"data_storage_version": "2.1", "target_rows_per_fragment": 20},
    {"data_storage_version": "stable"},
]


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_choices_of_the_reference(tmp_path: Path, options: dict[str, object], stable: bool) -> None:
    table = made(tmp_path / "t.lance", "2.0", 10, 3, 40, 7, 9, 10, enable_stable_row_ids=stable)
    reference.dataset(table).delete("id in (1, 2, 3, 4, 20, 70) or (id > 60 and id < 68)")
    twin = str(tmp_path / "twin.lance")
    shutil.copytree(table, twin)
    ours, theirs = lance.dataset(table), reference.dataset(twin)
    assert metrics(ours.optimize.compact_files(**options)) == metrics(theirs.optimize.compact_files(**options))
    assert sizes(ours) == sizes(theirs)
    assert ours.data_storage_version == theirs.data_storage_version
    columns = [*ours.schema.names, "_rowid"]
    if stable:
        columns += ["_row_created_at_version", "_row_last_updated_at_version"]
    assert_same(ours.to_table(columns=columns), theirs.to_table(columns=columns))
    assert_same(reference.dataset(table).to_table(columns=columns), theirs.to_table(columns=columns))
    versions = [
        [(file.file_major_version, file.file_minor_version) for file in each.metadata.files]
        for dataset in (ours, theirs)
        for each in dataset.get_fragments()
    ]
    assert versions[: len(versions) // 2] == versions[len(versions) // 2 :]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=6),
    st.sets(st.integers(0, 40)),
    st.integers(1, 25),
    st.sampled_from([0.0, 0.1, 0.5, 1.0]),
)
def test_plans_of_the_reference(
    tmp_path_factory: pytest.TempPathFactory, counts: list[int], deleted: set[int], target: int, threshold: float
) -> None:
    folder = tmp_path_factory.mktemp("plans")
    table = made(folder / "t.lance", "2.2", *counts)
    if deleted:
        reference.dataset(table).delete(f"id in ({', '.join(map(str, deleted))})")
    twin = str(folder / "twin.lance")
    shutil.copytree(table, twin)
    ours, theirs = lance.dataset(table), reference.dataset(twin)
    options = {"target_rows_per_fragment": target, "materialize_deletions_threshold": threshold}
    assert metrics(ours.optimize.compact_files(**options)) == metrics(theirs.optimize.compact_files(**options))
    assert sizes(ours) == sizes(theirs)
    assert_same(ours.to_table(), theirs.to_table())
    shutil.rmtree(folder)


def test_config(tmp_path: Path) -> None:
    table = made(tmp_path / "t.lance", "2.2", 10, 10, 10, 10)
    reference.dataset(table).update_config({"lance.compaction.target_rows_per_fragment": "15"})
    dataset = lance.dataset(table)
    dataset.optimize.compact_files(max_source_fragments=2)
    assert sizes(dataset) == [(2, 10, 0), (3, 10, 0), (4, 20, 0)]
    dataset.optimize.compact_files(target_rows_per_fragment=1000)
    assert sizes(dataset) == [(5, 40, 0)]
    reference.dataset(table).update_config({"lance.compaction.batch_size": "many"})
    with pytest.raises(InvalidInputError, match="batch_size is 'many'"):
        lance.dataset(table).optimize.compact_files()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"target_rows_per_fragment": -1}, OverflowError),
        ({"max_source_rows": -1}, OverflowError),
        ({"max_source_fragments": 0}, InvalidInputError),
        ({"target_rows_per_fragment": 1.5}, TypeError),
        ({"compaction_mode": "x"}, InvalidInputError),
        ({"compaction_mode": "force_binary_copy", "data_storage_version": "2.1"}, UnsupportedError),
        ({"compaction_mode": 1}, TypeError),
        ({"defer_index_remap": 1}, TypeError),
        ({"data_storage_version": "9.9"}, InvalidInputError),
        ({"data_storage_version": "legacy"}, UnsupportedError),
        ({"bogus": 1}, TypeError),
    ],
    ids=str,
)
def test_wrong_options(tmp_path: Path, options: dict[str, object], error: type[Exception]) -> None:
    table = made(tmp_path / "t.lance", "2.2", 4, 4)
    before = files(table)
    with pytest.raises(error):
        lance.dataset(table).optimize.compact_files(**options)
    assert files(table) == before


def test_nothing_to_do(tmp_path: Path) -> None:
    empty = lance.write_dataset(rows(0, 0), tmp_path / "e.lance")
    assert empty.optimize.compact_files() == CompactionMetrics()
    assert empty.version == 1


def test_types_keep_their_values(tmp_path: Path) -> None:
    word = pa.DictionaryArray.from_arrays(pa.array([0, None, 1], pa.int8()), pa.array(["x", "y"]))
    table = pa.table(
        {
            "id": [1, 2, 3],
            "json": pa.array(['{"a": 1}', None, "[2]"], pa.json_(pa.utf8())),
            "uuid": pa.array([bytes(16), None, bytes(range(16))], pa.uuid()),
            "word": word,
            "null": pa.nulls(3),
            "struct": pa.array([{"a": 1}, None, {"a": None}]),
            "blob": pa.array([b"abc", None, b""], pa.large_binary()),
        }
    )
    blob = table.schema.field("blob").with_metadata({"lance-encoding:blob": "true"})
    table = table.cast(table.schema.set(table.schema.get_field_index("blob"), blob))
    path = tmp_path / "t.lance"
    dataset = lance.write_dataset(table, path, data_storage_version="2.1")
    dataset.insert(table)
    before = dataset.to_table(columns=[name for name in table.schema.names if name != "blob"])
    dataset.optimize.compact_files()
    assert [each.physical_rows for each in dataset.get_fragments()] == [6]
    assert_same(dataset.to_table(columns=before.column_names), before)
    assert_same(
        reference.dataset(path).to_table(columns=["id", "word", "struct"]), before.select(["id", "word", "struct"])
    )
    blobs = dataset.to_table(columns=["blob"], blob_handling="all_binary")["blob"].to_pylist()
    assert blobs == [b"abc", None, b""] * 2
    assert dataset.schema == lance.dataset(path, version=1).schema


def test_dropped_and_added_columns(tmp_path: Path) -> None:
    table = made(tmp_path / "t.lance", "2.2", 5, 5)
    theirs = reference.dataset(table)
    theirs.add_columns({"twice": "id * 2"})
    theirs.drop_columns(["vector"])
    theirs.insert(pa.table({"id": [10]}))
    dataset = lance.dataset(table)
    expected = dataset.to_table()
    found = dataset.optimize.compact_files()
    assert (found.files_removed, found.files_added) == (5, 1)
    assert_both(table, expected)


# -- upgrades --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_from_legacy_to_later(tmp_path: Path, version: str) -> None:
    """A compaction from legacy to a later version rewrites all files, whatever their size, as the two kinds do not mix.

    The reference refuses it.
    """
    table = made(tmp_path / "t.lance", "legacy", 60, 40, enable_v2_manifest_paths=False)
    dataset = lance.dataset(table)
    dataset.delete("id % 10 = 4")
    expected = dataset.to_table()
    with pytest.raises(OSError, match="cannot be mixed"):
        reference.dataset(table).optimize.compact_files(data_storage_version=version)
    with pytest.raises(UnsupportedError, match="all fragments must be rewritten"):
        dataset.optimize.compact_files(data_storage_version=version, excluded_fragment_ids=[0])
    dataset.optimize.compact_files(target_rows_per_fragment=50, data_storage_version=version)
    assert dataset.data_storage_version == reference.dataset(table).data_storage_version == version
    assert sizes(dataset) == [(2, 90, 0)]
    assert_both(table, expected)
    reference.write_dataset(rows(100, 110), table, mode="append")
    assert lance.dataset(table).count_rows() == 100
    lance.dataset(table, version=1).restore()
    assert reference.dataset(table).data_storage_version == "0.1"


def test_a_single_large_legacy_fragment(tmp_path: Path) -> None:
    table = made(tmp_path / "t.lance", "legacy", 100)
    dataset = lance.dataset(table)
    assert dataset.optimize.compact_files(target_rows_per_fragment=30) == CompactionMetrics()
    found = dataset.optimize.compact_files(target_rows_per_fragment=30, data_storage_version="2.2")
    assert (found.fragments_removed, found.fragments_added) == (1, 3)
    assert_both(table, rows(0, 100))


def test_empty_legacy_dataset(tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    dataset = lance.write_dataset(rows(0, 0), path, data_storage_version="legacy")
    assert dataset.optimize.compact_files(data_storage_version="2.1") == CompactionMetrics()
    assert dataset.data_storage_version == reference.dataset(path).data_storage_version == "2.1"


def test_legacy_dictionaries(tmp_path: Path) -> None:
    word = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 1], pa.int8()), pa.array(["x", "y", "z"]))
    path = tmp_path / "t.lance"
    table = pa.table({"id": range(4), "word": word})
    reference.write_dataset(table, path, data_storage_version="legacy")
    reference.write_dataset(table, path, mode="append")
    dataset = lance.dataset(path)
    expected = dataset.to_table().to_pylist()
    for options in ({}, {"data_storage_version": "2.0"}):
        assert dataset.optimize.compact_files(**options).fragments_added == 1
        assert dataset.to_table().to_pylist() == reference.dataset(path).to_table().to_pylist() == expected
    assert dataset.data_storage_version == "2.0"


def append_without(table: Path, column: str, data: pa.Table) -> None:
    """Append rows whose file lacks a column, as old releases did; `write_dataset` refuses it for legacy tables."""
    written = lance.write_dataset(data, table, mode="append")
    fragment = written.get_fragments()[-1].metadata
    dropped = written.lance_schema.field(column).id()
    file = fragment.files[0]
    file.fields = [field_id for field_id in file.fields if field_id != dropped]
    operation = lance.LanceOperation.Update(removed_fragment_ids=[], updated_fragments=[fragment])
    lance.LanceDataset.commit(table, operation, read_version=written.version)


def test_nulls_that_legacy_files_cannot_hold(tmp_path: Path) -> None:
    table = made(tmp_path / "t.lance", "legacy", 5)
    append_without(table, "vector", rows(5, 8))
    dataset = lance.dataset(table)
    expected = dataset.to_table()
    assert expected["vector"].null_count == 3
    with pytest.raises(UnsupportedError, match="lacks the column 'vector'"):
        dataset.optimize.compact_files()
    dataset.optimize.compact_files(data_storage_version="2.2")
    assert_both(table, expected)


# -- indices, other writers, failures --------------------------------------------------------------------------------


def test_indices(tmp_path: Path) -> None:
    table = made(tmp_path / "t.lance", "2.2", 10, 10)
    reference.dataset(table).create_scalar_index("id", "BTREE")
    reference.write_dataset(rows(20, 25), table, mode="append")
    reference.write_dataset(rows(25, 30), table, mode="append")
    dataset = lance.dataset(table)
    dataset.optimize.compact_files(excluded_fragment_ids=[0, 1])
    assert sizes(dataset) == [(0, 10, 0), (1, 10, 0), (4, 10, 0)]
    dataset.optimize.compact_files()
    assert sizes(dataset) == [(4, 10, 0), (5, 20, 0)]
    theirs = reference.dataset(table)
    assert theirs.to_table(filter="id in (3, 27)")["id"].to_pylist() == [27, 3]
    assert "ScalarIndexQuery" in theirs.scanner(filter="id = 3").explain_plan()
    assert_both(table, pa.concat_tables([rows(20, 30), rows(0, 20)]))


CHANGES: dict[str, tuple[Callable[[reference.LanceDataset], object], bool]] = {
    "append": (lambda ds: ds.insert(rows(100, 105)), True),
    "delete in it": (lambda ds: ds.delete("id = 3"), False),
    "delete elsewhere": (lambda ds: ds.delete("id = 45"), True),
    "compaction": (lambda ds: ds.optimize.compact_files(), False),
    "overwrite": (lambda ds: reference.write_dataset(rows(0, 3), ds.uri, mode="overwrite"), False),
    "restore": (lambda ds: reference.dataset(ds.uri, version=1).restore(), False),
    "index": (lambda ds: ds.create_scalar_index("id", "BTREE"), False),
    "config": (lambda ds: ds.update_config({"a": "b"}), True),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changes_meanwhile(tmp_path: Path, name: str) -> None:
    table = made(tmp_path / "t.lance", "2.2", 10, 10, 30)
    dataset = lance.dataset(table)
    change, fits = CHANGES[name]
    change(reference.dataset(table))
    before, expected = files(table), reference.dataset(table).to_table().sort_by("id")
    if fits:
        dataset.optimize.compact_files(excluded_fragment_ids=[2])
        assert_same(reference.dataset(table).to_table().sort_by("id"), expected)
        assert_same(lance.dataset(table).to_table().sort_by("id"), expected)
    else:
        with pytest.raises(CommitConflictError):
            dataset.optimize.compact_files(excluded_fragment_ids=[2])
        assert files(table) == before


def test_append_during_an_upgrade(tmp_path: Path) -> None:
    table = made(tmp_path / "t.lance", "legacy", 10, 10)
    dataset = lance.dataset(table)
    reference.write_dataset(rows(20, 22), table, mode="append")
    with pytest.raises(CommitConflictError, match="Append") as caught:
        dataset.optimize.compact_files(data_storage_version="2.2")
    assert caught.value.retryable
    dataset.checkout_latest()
    dataset.optimize.compact_files(data_storage_version="2.2")
    assert_both(table, rows(0, 22))


def test_the_reference_goes_on_after_ours(tmp_path: Path) -> None:
    """Changes that the reference computed before a compaction of this package are checked against it."""
    table = made(tmp_path / "t.lance", "2.2", 10, 10)
    stale = [reference.dataset(table) for _ in range(3)]
    lance.dataset(table).optimize.compact_files()
    stale[0].insert(rows(20, 30))
    with pytest.raises(OSError, match="conflict"):
        stale[1].optimize.compact_files()
    stale[2].delete("id = 3")
    assert lance.dataset(table).count_rows() == 29


def test_failure_leaves_nothing(tmp_path: Path) -> None:
    table = made(tmp_path / "t.lance", "2.2", 10, 10, 50, 10, 10)
    dataset = lance.dataset(table)
    broken = Path(table, "data", dataset.get_fragment(4).data_files()[0].path)
    content = broken.read_bytes()
    broken.write_bytes(content[:200] + bytes(len(content) - 240) + content[-40:])
    before = files(table)
    with pytest.raises(lance.LanceError):
        dataset.optimize.compact_files(target_rows_per_fragment=40)
    assert files(table) == before
