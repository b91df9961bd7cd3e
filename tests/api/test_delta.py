"""Tests of change data, compared with the reference on histories that it makes."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset.api.delta import DeltaCounts
from lance_dataset.errors import InvalidInputError, VersionNotFoundError

READERS = ("get_inserted_rows", "get_updated_rows", "get_deleted_row_ids")


def rows(start: int, stop: int, text: str = "s") -> pa.Table:
    return pa.table({"id": pa.array(range(start, stop), pa.int64()), "v": [f"{text}{i}" for i in range(start, stop)]})


def read(delta: Any, name: str) -> pa.Table | type[BaseException]:
    """Return all rows of a reader of a delta, or the class of the error."""
    try:
        return getattr(delta, name)().read_all().combine_chunks()
    except Exception as error:
        return type(error)


def check_same(uri: str, version: int, begin: int, end: int) -> None:
    theirs = lance.dataset(uri, version=version).delta(begin_version=begin, end_version=end)
    ours = lance_dataset.dataset(uri, version=version).delta(begin_version=begin, end_version=end)
    for name in READERS:
        expected, found = read(theirs, name), read(ours, name)
        if isinstance(expected, pa.Table):
            assert isinstance(found, pa.Table), (name, begin, end, found)
            assert found.schema.equals(expected.schema, check_metadata=True)
            assert found.equals(expected), (name, version, begin, end)
        else:
            assert isinstance(found, type)
            assert issubclass(found, expected), (name, begin, end, found, expected)
    assert transactions(ours) == transactions(theirs)


def transactions(delta: Any) -> list[tuple[int, str]]:
    return [(each.read_version, each.uuid) for each in delta.list_transactions()]


class History:
    """Random changes of a table, made by the reference."""

    def __init__(self, uri: str, seed: int) -> None:
        self.uri = uri
        self.random = random.Random(seed)
        self.next_id = 40
        self.columns = 0
        lance.write_dataset(rows(0, 40), uri, enable_stable_row_ids=True, max_rows_per_file=15)

    def step(self) -> None:
        changes: list[Callable[[lance.LanceDataset], object]] = [
            self.append,
            self.update,
            self.update,
            self.delete,
            self.delete,
            self.merge,
            self.compact,
            self.add_column,
            self.restore,
            self.overwrite,
        ]
        weights = [3, 3, 3, 3, 3, 3, 2, 1, 1, 0.5]
        self.random.choices(changes, weights)[0](lance.dataset(self.uri))

    def _some(self) -> str:
        modulus = self.random.randint(2, 9)
        return f"id % {modulus} = {self.random.randrange(modulus)}"

    def _new(self, dataset: lance.LanceDataset, count: int) -> pa.Table:
        self.next_id += count
        table = rows(self.next_id - count, self.next_id)
        for name in dataset.schema.names[2:]:
            table = table.append_column(name, pa.array([0] * count, pa.int64()))
        return table

    def append(self, dataset: lance.LanceDataset) -> None:
        lance.write_dataset(self._new(dataset, self.random.randint(1, 20)), self.uri, mode="append")

    def update(self, dataset: lance.LanceDataset) -> None:
        dataset.update({"v": f"'u{dataset.version}'"}, where=self._some())

    def delete(self, dataset: lance.LanceDataset) -> None:
        dataset.delete(self._some())

    def merge(self, dataset: lance.LanceDataset) -> None:
        new = self._new(dataset, 4)
        known = dataset.to_table(limit=6).slice(0, 6)
        merge = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
        merge.execute(pa.concat_tables([new, known.cast(new.schema)]))

    def compact(self, dataset: lance.LanceDataset) -> None:
        dataset.optimize.compact_files()

    def add_column(self, dataset: lance.LanceDataset) -> None:
        self.columns += 1
        dataset.add_columns({f"c{self.columns}": "id * 2"})

    def restore(self, dataset: lance.LanceDataset) -> None:
        lance.dataset(self.uri, version=self.random.randint(1, dataset.version)).restore()

    def overwrite(self, dataset: lance.LanceDataset) -> None:
        lance.write_dataset(self._new(dataset, 10), self.uri, mode="overwrite")


@pytest.mark.parametrize("seed", range(8))
def test_random_histories(tmp_path: Path, seed: int) -> None:
    uri = str(tmp_path / "t")
    history = History(uri, seed)
    for _ in range(10):
        history.step()
    newest = lance.dataset(uri).version
    for _ in range(12):
        begin, end = (history.random.randint(0, newest) for _ in range(2))
        version = history.random.choice((newest, history.random.randint(1, newest)))
        check_same(uri, version, begin, end)
    check_same(uri, newest, 0, newest)
    check_same(uri, newest, newest - 1, newest)


def test_our_own_changes(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    dataset = lance_dataset.write_dataset(rows(0, 10), uri, enable_stable_row_ids=True, max_rows_per_file=4)
    dataset.delete("id in (2, 5)")
    dataset.insert(rows(10, 15))
    dataset.optimize.compact_files()
    dataset.delete("id = 12 or id = 0")
    for begin in range(dataset.version):
        check_same(uri, dataset.version, begin, dataset.version)
    found = dataset.delta(compared_against=1).get_deleted_row_ids().read_all()
    assert found["_rowid"].to_pylist() == [0, 2, 5]


def test_streams_are_cut(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    table = pa.table({"id": pa.array(range(50_000), pa.int64())})
    dataset = lance_dataset.write_dataset(table, uri, enable_stable_row_ids=True, max_rows_per_file=20_000)
    dataset.delete("id % 2 = 0")
    assert [batch.num_rows for batch in dataset.delta(1).get_deleted_row_ids()] == [8192, 8192, 8192, 424]
    assert max(batch.num_rows for batch in dataset.delta(0).get_inserted_rows()) <= 8192


def test_only_changed_rows_are_read(tmp_path: Path) -> None:
    """Inserted rows are read without opening files of unchanged rows."""
    uri = str(tmp_path / "t")
    lance_dataset.write_dataset(rows(0, 10), uri, enable_stable_row_ids=True)
    (first,) = (tmp_path / "t" / "data").iterdir()
    dataset = lance_dataset.write_dataset(rows(10, 20), uri, mode="append")
    dataset.delete("id = 11")
    first.unlink()
    delta = lance_dataset.dataset(uri).delta(compared_against=1)
    assert delta.get_inserted_rows().read_all()["id"].to_pylist() == [10, *range(12, 20)]
    assert delta.get_updated_rows().read_all().num_rows == 0
    assert lance_dataset.dataset(uri).delta(2).get_deleted_row_ids().read_all()["_rowid"].to_pylist() == [11]


def test_blobs_and_nested_columns(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    blob = pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    schema = pa.schema([("id", pa.int64()), blob, ("s", pa.struct([("x", pa.list_(pa.int32()))]))], {"a": "b"})
    columns = [pa.array([1, 2], pa.int64()), pa.array([b"x", None], pa.large_binary())]
    nested = pa.array([{"x": [1, None]}, None], schema.field("s").type)
    lance.write_dataset(
        pa.table([*columns, nested], schema=schema), uri, enable_stable_row_ids=True, data_storage_version="2.1"
    )
    check_same(uri, 1, 0, 1)


def test_branches(tmp_path: Path) -> None:
    """A delta of a branch covers the branch's own versions only, not those before its start."""
    uri = str(tmp_path / "t")
    dataset = lance.write_dataset(rows(0, 5), uri, enable_stable_row_ids=True)
    dataset.delete("id = 1")
    theirs = lance.write_dataset(rows(5, 8), dataset.create_branch("side").uri, mode="append")
    ours = lance_dataset.dataset(uri).checkout_version(("side", None))
    assert ours.version == theirs.version == 3
    for begin in (1, 2):
        for name in READERS:
            expected, found = read(theirs.delta(begin), name), read(ours.delta(begin), name)
            if isinstance(expected, pa.Table):
                assert found == expected
            else:
                assert isinstance(found, type)
                assert issubclass(found, expected)
    assert transactions(ours.delta(1)) == transactions(theirs.delta(1))
    with pytest.raises(VersionNotFoundError):
        ours.delta(0).list_transactions()


def test_versions_that_were_cleaned_up(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    dataset = lance_dataset.write_dataset(rows(0, 5), uri, enable_stable_row_ids=True)
    for value in range(4):
        dataset.delete(f"id = {value}")
    dataset.cleanup_old_versions(dt.timedelta(0), retain_versions=2)
    delta = dataset.delta(compared_against=1)
    with pytest.raises(VersionNotFoundError, match="version 2"):
        delta.list_transactions()
    with pytest.raises(RuntimeError, match="version 1"):
        delta.get_deleted_row_ids()
    check_same(uri, 5, 4, 5)


def test_handles_that_move_on(tmp_path: Path) -> None:
    dataset = lance_dataset.write_dataset(rows(0, 5), str(tmp_path / "t"), enable_stable_row_ids=True)
    dataset.delete("id = 1")
    delta = dataset.delta(compared_against=1)
    dataset.delete("id = 2")
    assert delta.get_deleted_row_ids().read_all()["_rowid"].to_pylist() == [1]
    assert repr(delta).endswith("begin_version=1, end_version=2)")


@pytest.mark.parametrize("name", READERS)
def test_without_stable_row_ids(tmp_path: Path, name: str) -> None:
    """A delta without stable row ids raises an error; the reference returns no rows or all of them."""
    dataset = lance_dataset.write_dataset(rows(0, 5), str(tmp_path / "t"))
    dataset.delete("id = 1")
    delta = dataset.delta(compared_against=1)
    assert len(delta.list_transactions()) == 1
    with pytest.raises(ValueError, match="stable row ids"):
        getattr(delta, name)()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({}, ValueError),
        ({"begin_version": 1}, ValueError),
        ({"end_version": 1}, ValueError),
        ({"compared_against": 1, "begin_version": 1}, InvalidInputError),
        ({"compared_against": -1}, OverflowError),
        ({"begin_version": 1, "end_version": 1 << 70}, OverflowError),
        ({"begin_version": "1", "end_version": 2}, TypeError),
        ({"compared_against": 1.0}, TypeError),
    ],
)
def test_arguments(tmp_path: Path, arguments: dict[str, Any], error: type[Exception]) -> None:
    dataset = lance_dataset.write_dataset(rows(0, 5), str(tmp_path / "t"), enable_stable_row_ids=True)
    with pytest.raises(error):
        dataset.delta(**arguments)


def test_ranges_of_no_versions(tmp_path: Path) -> None:
    dataset = lance_dataset.write_dataset(rows(0, 5), str(tmp_path / "t"), enable_stable_row_ids=True)
    dataset.delete("id = 1")
    backwards = dataset.delta(begin_version=2, end_version=1)
    assert backwards.list_transactions() == []
    assert backwards.get_inserted_rows().read_all().num_rows == 0
    with pytest.raises(ValueError, match="newer"):
        backwards.get_deleted_row_ids()
    beyond = dataset.delta(begin_version=1, end_version=1 << 63)
    assert beyond.get_updated_rows().read_all().num_rows == 0
    with pytest.raises(VersionNotFoundError):
        beyond.list_transactions()


def test_row_lineage_in_files(tmp_path: Path) -> None:
    """Row lineage that the reference moved to hidden columns of data files gives the same change data."""
    uri = str(tmp_path / "t")
    dataset = lance.write_dataset(rows(0, 200), uri, enable_stable_row_ids=True)
    dataset.update_config({"lance.row_lineage.spill": "true", "lance.row_lineage.inline_max_bytes": "1"})
    dataset.update({"v": "'u'"}, where="id % 3 = 0")
    dataset.update({"v": "'w'"}, where="id % 5 = 0")
    dataset.optimize.compact_files()
    dataset.delete("id % 7 = 0")
    newest = lance.dataset(uri).version
    for begin in range(newest):
        check_same(uri, newest, begin, newest)


def test_counts(tmp_path: Path) -> None:
    """Counts are computed without the data files."""
    dataset = lance_dataset.write_dataset(rows(0, 10), tmp_path / "t", enable_stable_row_ids=True)
    dataset.insert(rows(10, 15))
    dataset.delete("id in (1, 12)")
    lance.dataset(str(tmp_path / "t")).update({"v": "'x'"}, where="id in (2, 3)")
    dataset.checkout_latest()
    for file in (tmp_path / "t" / "data").iterdir():
        file.unlink()
    dataset = lance_dataset.dataset(tmp_path / "t")
    assert dataset.delta(1).counts() == DeltaCounts(inserted=4, updated=2, deleted=1)
    assert dataset.delta(0).counts() == DeltaCounts(inserted=13, updated=0, deleted=0)
