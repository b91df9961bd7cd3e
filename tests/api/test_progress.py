"""Tests of the progress of calls that change, check and copy datasets; that of scans is in tests/api/scanner."""

from __future__ import annotations

import datetime as dt
import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as pads
import pytest

import lance_dataset as lance

TABLE = pa.table({"id": np.arange(1000)})


class Told(list[tuple[int, int]]):
    """Reports of a call: they increase, never exceed the total, and end with it."""

    def __call__(self, done: int, total: int) -> None:
        assert done <= total
        assert not self or done >= self[-1][0]
        self.append((done, total))


@pytest.fixture
def dataset(tmp_path: Path) -> lance.LanceDataset:
    return lance.write_dataset(TABLE, tmp_path / "x.lance", max_rows_per_file=100)


@pytest.mark.parametrize(
    ("source", "known"),
    [
        (lambda: TABLE, True),
        (lambda: pads.dataset(TABLE), True),
        (lambda: TABLE.to_pandas(), True),
        (lambda: TABLE.to_reader(max_chunksize=250), False),
        (lambda: [{"id": i} for i in range(1000)], False),
    ],
    ids=["table", "dataset", "pandas", "stream", "dicts"],
)
def test_writes(tmp_path: Path, source: Callable[[], Any], known: bool) -> None:
    told = Told()
    made = lance.write_dataset(source(), tmp_path / "x", progress=told)
    assert made.count_rows() == 1000
    assert told[-1] == (1000, 1000)
    assert all(total == (1000 if known else done) for done, total in told)
    more = Told()
    made.insert(source(), progress=more)
    assert more == told


def test_no_rows(tmp_path: Path) -> None:
    told = Told()
    made = lance.write_dataset(TABLE.slice(0, 0), tmp_path / "x", progress=told)
    assert told == [(0, 0)]
    for call in (made.optimize.compact_files, made.validate):
        told.clear()
        call(progress=told)  # type: ignore[operator]
        assert told == [(0, 0)]


def test_compaction(dataset: lance.LanceDataset) -> None:
    dataset.delete("id % 2 = 0 and id < 500")
    told = Told()
    dataset.optimize.compact_files(target_rows_per_fragment=300, num_threads=2, progress=told)
    assert told[-1] == (750, 750)
    assert 1 < len(told) <= 4
    assert sorted(dataset.to_table()["id"].to_pylist())[-1] == 999


@pytest.mark.parametrize("by_index", [False, True])
def test_changes_of_rows(dataset: lance.LanceDataset, by_index: bool) -> None:
    if by_index:
        dataset.create_scalar_index("id", "BTREE")
    calls: list[tuple[int, Callable[[Told], object]]] = [
        (1000, lambda told: dataset.update({"id": "id + 10000"}, "id < 5", progress=told)),
        (1000, lambda told: dataset.delete("id >= 10000", progress=told)),
        (995, lambda told: dataset.merge_insert("id").when_matched_update_all().execute(TABLE, progress=told)),
    ]
    for rows, call in calls:
        told = Told()
        call(told)
        assert told[-1] == (rows, rows)
        assert {total for _, total in told} == {rows}
    assert dataset.count_rows() == 995
    dataset.delete("true", progress=Told())
    told = Told()
    dataset.delete("true", progress=told)
    assert told == [(0, 0)]


def test_a_change_that_is_repeated_reports_on(dataset: lance.LanceDataset) -> None:
    behind, told = lance.dataset(dataset.uri), Told()
    dataset.update({"id": "id"}, "id < 5")
    behind.update({"id": "id + 10000"}, "id < 8", progress=told)
    assert told[-1] == (1000, 1000)
    assert behind.count_rows("id >= 10000") == 8


def test_new_columns(dataset: lance.LanceDataset, tmp_path: Path) -> None:
    def double(batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.record_batch([batch["id"]], names=["b"])

    @lance.batch_udf(checkpoint_file=tmp_path / "checkpoint", output_schema=pa.schema([("c", pa.int64())]))
    def kept(batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.record_batch([batch["id"]], names=["c"])

    data = pa.table({"d": range(1000)})
    for source in ({"a": "id * 2"}, double, kept, data, data.rename_columns(["e"]).to_reader(max_chunksize=70)):
        told = Told()
        dataset.add_columns(source, progress=told)
        assert told == [(number, 10) for number in range(1, 11)]
    dataset.add_columns(pa.field("f", pa.int8()), progress=told)
    assert dataset.schema.names == ["id", "a", "b", "c", "d", "e", "f"]
    assert dataset.to_table(columns=["a"])["a"].to_pylist() == list(range(0, 2000, 2))


def test_validation_and_clones(dataset: lance.LanceDataset, tmp_path: Path) -> None:
    told = Told()
    dataset.validate(progress=told)
    assert told == [(number, 10) for number in range(1, 11)]
    told.clear()
    dataset.create_scalar_index("id", "BTREE")
    made = dataset.deep_clone(tmp_path / "clone", None, progress=told)
    assert made.count_rows() == 1000
    copied = sum(each.is_file() for folder in ("data", "_indices") for each in (tmp_path / "clone" / folder).rglob("*"))
    assert told == [(number, copied) for number in range(1, copied + 1)]


def test_merged_and_cast_columns(dataset: lance.LanceDataset) -> None:
    told = Told()
    dataset.merge(pa.table({"id": range(1000), "a": range(1000)}), "id", progress=told)
    assert told == [(number, 10) for number in range(1, 11)]
    told.clear()
    dataset.alter_columns({"path": "a", "data_type": pa.int32()}, progress=told)
    assert told == [(number, 10) for number in range(1, 11)]
    told.clear()
    dataset.alter_columns({"path": "a", "name": "b"}, progress=told)  # writes no files
    assert told == [(0, 0)]


def test_cleanup(dataset: lance.LanceDataset) -> None:
    dataset.update({"id": "id"})
    dataset.delete("id < 150")
    told = Told()
    options: dict[str, Any] = {"older_than": dt.timedelta(0), "delete_unverified": True}
    removed = dataset.cleanup_old_versions(**options, progress=told)
    files = removed.data_files_removed + removed.transaction_files_removed + removed.deletion_files_removed
    assert told[-1] == (files + removed.old_versions,) * 2
    assert removed.data_files_removed == 10
    told.clear()
    dataset.cleanup_old_versions(**options, progress=told)
    assert told == [(0, 0)]


def test_purge(dataset: lance.LanceDataset) -> None:
    dataset.delete("id = 7")
    told = Told()
    report = dataset.purge("id < 150 and id % 2 = 0", progress=told)
    assert report.fragments_rewritten == 2
    assert told[-1] == (124, 124)


@pytest.mark.parametrize("kind", ["BTREE", "BITMAP", "IVF_FLAT"])
def test_optimization_of_indices(tmp_path: Path, kind: str) -> None:
    """Rows are counted once, however often they are read, also those that a training leaves out."""
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.random.default_rng(1).random(8000)), 8)
    table = pa.table({"id": range(1000), "v": vectors})
    made = lance.write_dataset(table, tmp_path / "x")
    if kind == "IVF_FLAT":
        made.create_index("v", kind, num_partitions=2)
    else:
        made.create_scalar_index("id", kind)
    for more in (table, table.slice(0, 10)):
        made.insert(more)
        told = Told()
        made.optimize.optimize_indices(progress=told)
        assert told[-1][0] == told[-1][1] >= more.num_rows
        told.clear()
        made.optimize.optimize_indices(progress=told)
        assert told == [(0, 0)]


def test_a_bar(dataset: lance.LanceDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stderr", shown)
    lance.write_dataset(TABLE.to_reader(max_chunksize=100), tmp_path / "bar", progress=True)
    dataset.validate(progress=True)
    dataset.deep_clone(tmp_path / "clone", None, progress=True)
    dataset.optimize.compact_files(target_rows_per_fragment=300, progress=True)
    text = shown.getvalue()
    for name in ("write: ", "validation: 100%", "clone: 100%", "compaction: 100%"):
        assert name in text
    assert "1.00krow" in text


def test_errors_of_the_function_end_the_call(dataset: lance.LanceDataset, tmp_path: Path) -> None:
    def fail(done: int, total: int) -> None:
        raise OverflowError("enough")

    for call in (
        lambda: dataset.insert(TABLE, progress=fail),
        lambda: lance.write_dataset(TABLE, tmp_path / "new", progress=fail),
        lambda: dataset.optimize.compact_files(progress=fail),
        lambda: dataset.validate(progress=fail),
        lambda: dataset.delete("id > 3", progress=fail),
        lambda: dataset.add_columns({"a": "id"}, progress=fail),
        lambda: dataset.update({"id": "id"}, progress=fail),
        lambda: dataset.merge_insert("id").when_matched_update_all().execute(TABLE, progress=fail),
        lambda: dataset.deep_clone(tmp_path / "clone", None, progress=fail),
    ):
        with pytest.raises(OverflowError, match="enough"):
            call()
    assert lance.dataset(dataset.uri).version == 1
    assert len(list((Path(dataset.uri) / "data").iterdir())) == 10
    assert not list((tmp_path / "new").rglob("*.lance"))
    assert not (tmp_path / "clone" / "_versions").exists()


def test_errors_of_the_last_report_leave_the_handle_on_the_newest_version(dataset: lance.LanceDataset) -> None:
    """With an index, rows are skipped, so that the last report comes after the commit."""

    def fail_at_the_end(done: int, total: int) -> None:
        if done == total:
            raise OverflowError("enough")

    dataset.create_scalar_index("id", "BTREE")
    merge = dataset.merge_insert("id").when_matched_update_all()
    some = TABLE.slice(30, 5)
    for call in (
        lambda: dataset.delete("id = 7", progress=fail_at_the_end),
        lambda: dataset.update({"id": "id"}, "id = 8", progress=fail_at_the_end),
        lambda: merge.execute(some, progress=fail_at_the_end),
        lambda: dataset.optimize.compact_files(progress=fail_at_the_end),
        lambda: dataset.add_columns({"a": "id"}, progress=fail_at_the_end),
        lambda: dataset.insert(dataset.to_table().slice(0, 0), progress=fail_at_the_end),
        lambda: dataset.insert(dataset.to_table(), progress=fail_at_the_end),
        lambda: dataset.insert(dataset.to_table().to_reader(), progress=fail_at_the_end),
    ):
        with pytest.raises(OverflowError, match="enough"):
            call()
        assert dataset.version == lance.dataset(dataset.uri).version
    assert dataset.version > 4


@pytest.mark.parametrize("value", [7, "yes", object(), lance.progress.FragmentWriteProgress])
def test_other_values_are_refused(dataset: lance.LanceDataset, value: Any) -> None:
    with pytest.raises(TypeError, match="progress must be"):
        dataset.insert(TABLE, progress=value)
    if not isinstance(value, type):
        with pytest.raises(TypeError, match="progress must be"):
            dataset.validate(progress=value)


def test_no_progress(dataset: lance.LanceDataset) -> None:
    for value in (None, False):
        dataset.validate(progress=value)
        dataset.insert(pd.DataFrame({"id": [1]}), progress=value)
    assert dataset.count_rows() == 1002


class Stop(Exception):
    """Raised by a progress function."""


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("name", ["indices", "cleanup", "purge"])
def test_errors_leave_no_handle_behind(dataset: lance.LanceDataset, name: str, last: bool) -> None:
    dataset.create_scalar_index("id", "BTREE")
    dataset.optimize.compact_files()
    dataset.insert(TABLE)

    def stop(done: int, total: int) -> None:
        if not last or done == total:
            raise Stop

    call: Callable[[Callable[[int, int], None]], object] = {
        "indices": lambda told: dataset.optimize.optimize_indices(progress=told),
        "cleanup": lambda told: dataset.cleanup_old_versions(retain_versions=1, progress=told),
        "purge": lambda told: dataset.purge("id = 7", progress=told),
    }[name]
    with pytest.raises(Stop):
        call(stop)
    assert dataset.version == lance.dataset(dataset.uri).version
    call(lambda done, total: None)
    dataset.validate(indices=True)
    assert dataset.count_rows("id = 7") == (0 if name == "purge" else 2)
