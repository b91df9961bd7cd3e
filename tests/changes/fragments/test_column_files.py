"""Tests of data files that add columns to existing fragments."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset.changes.fragments.column_files import (
    commit_column_files,
    next_field_id,
    remove_column_files,
    with_file,
    write_column_file,
)
from lance_dataset.changes.fragments.fragment_rows import physical_batches
from lance_dataset.errors import CommitConflictError, InvalidInputError, SchemaError, UnsupportedError
from lance_dataset.table.operations import Merge
from lance_dataset.threads.pools import cpu_pool
from lance_dataset.types.schema import Schema

VERSIONS = ["0.1", "2.0", "2.1", "2.2", "2.3"]
ROWS = 700


def table(start: int, stop: int) -> pa.Table:
    return pa.table({"i": np.arange(start, stop), "s": [f"row {i}" for i in range(start, stop)]})


def make(path: Path, version: str, **options: Any) -> lance_dataset.LanceDataset:
    """Write fragments of 400 and 300 rows, with deleted rows in the first."""
    lance.write_dataset(table(0, 400), path, data_storage_version=version, **options)
    made = lance.write_dataset(table(400, ROWS), path, mode="append", data_storage_version=version, **options)
    made.delete("i in (0, 17, 100, 399)")
    return lance_dataset.dataset(path)


def files_in(dataset: lance_dataset.LanceDataset) -> set[str]:
    return {path.name for path in (Path(dataset.uri) / "data").iterdir()}


def new_columns(dataset: lance_dataset.LanceDataset, arrow: pa.Schema) -> Schema:
    return Schema.from_arrow(arrow, max_field_id=next_field_id(dataset.snapshot.manifest) - 1)


def add(dataset: lance_dataset.LanceDataset, arrow: pa.Schema, batches: Any) -> lance_dataset.LanceDataset:
    """Commit a column file for each fragment; `batches` makes the batches of one."""
    fields = new_columns(dataset, arrow)
    readers = list(dataset.snapshot.reader.fragments)
    files = [write_column_file(dataset.snapshot, reader, fields, batches(reader)) for reader in readers]
    fragments = tuple(with_file(reader, file) for reader, file in zip(readers, files, strict=True))
    schema = Schema(
        (*dataset.snapshot.manifest.schema.fields, *fields.fields), dataset.snapshot.manifest.schema.metadata
    )
    return lance_dataset.LanceDataset.showing(
        commit_column_files(dataset.snapshot, Merge(fragments, schema, True), files)
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_both_read_what_was_added(tmp_path: Path, version: str) -> None:
    dataset = make(tmp_path / "t", version, max_rows_per_group=64)
    arrow = pa.schema([("twice", pa.int64()), pa.field("text", pa.string())])

    def batches(reader: Any) -> Iterator[pa.RecordBatch]:
        for batch in physical_batches(dataset.snapshot, reader, ["i"], batch_size=37):
            i = batch.column("i")
            text = pa.array([f"<{value}>" for value in i.to_pylist()])
            yield pa.RecordBatch.from_arrays([pa.array(i.to_numpy() * 2), text], schema=arrow)

    made = add(dataset, arrow, batches)
    made.validate()
    kept = [i for i in range(ROWS) if i not in (0, 17, 100, 399)]
    expected = pa.table({"twice": pa.array([2 * i for i in kept]), "text": [f"<{i}>" for i in kept]})
    assert made.to_table(columns=["twice", "text"]).equals(expected)
    theirs = lance.dataset(tmp_path / "t")
    assert theirs.to_table(columns=["twice", "text"]).equals(expected)
    assert theirs.to_table().equals(made.to_table())
    assert theirs.take([1, 395, 600]).equals(made.take([1, 395, 600]))
    assert theirs.to_table(filter="twice > 1000").equals(made.to_table(filter="twice > 1000"))


def test_batches_of_legacy_files_are_those_of_the_fragment(tmp_path: Path) -> None:
    """A column file of a legacy fragment has the batches of the fragment's other files, even irregular ones.

    The reference cannot read a legacy fragment whose files have different batches.
    """
    path = tmp_path / "t"
    dataset = make(path, "0.1", max_rows_per_group=50)
    dataset.optimize.compact_files(target_rows_per_fragment=10_000, max_rows_per_group=128)
    arrow = pa.schema([("n", pa.int32())])

    def batches(reader: Any) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch([pa.array(range(reader.physical_rows), pa.int32())], schema=arrow)

    made = add(dataset, arrow, batches)
    theirs = lance.dataset(path)
    assert theirs.to_table(filter="n % 7 = 0").equals(made.to_table(filter="n % 7 = 0"))
    assert theirs.to_table().equals(made.to_table())


def test_physical_batches_have_all_rows(tmp_path: Path) -> None:
    dataset = make(tmp_path / "t", "2.2")
    first = dataset.snapshot.reader.fragments[0]
    batches = list(physical_batches(dataset.snapshot, first, ["_rowid", "s"], batch_size=150))
    assert [batch.num_rows for batch in batches] == [150, 150, 100]
    found = pa.Table.from_batches(batches)
    assert found.column("s").to_pylist() == [f"row {i}" for i in range(400)]
    assert [i for i, row_id in enumerate(found.column("_rowid").to_pylist()) if row_id is None] == [0, 17, 100, 399]
    assert [batch.schema.names for batch in physical_batches(dataset.snapshot, first)] == [["i", "s"]]


@pytest.mark.parametrize("rows", [0, 399, 401, 5000])
def test_other_numbers_of_rows_are_refused(tmp_path: Path, rows: int) -> None:
    dataset = make(tmp_path / "t", "2.1")
    before = files_in(dataset)
    fields = new_columns(dataset, pa.schema([("n", pa.int64())]))
    batch = pa.record_batch({"n": pa.array(range(rows), pa.int64())})
    with pytest.raises(InvalidInputError, match=r"fragment 0.*400"):
        write_column_file(dataset.snapshot, dataset.snapshot.reader.fragments[0], fields, [batch])
    assert files_in(dataset) == before


def test_failures_leave_no_file(tmp_path: Path) -> None:
    dataset = make(tmp_path / "t", "2.1")
    before = files_in(dataset)
    first = dataset.snapshot.reader.fragments[0]
    fields = new_columns(dataset, pa.schema([pa.field("n", pa.int64(), nullable=False)]))

    def failing() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"n": pa.array(range(100))})
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        write_column_file(dataset.snapshot, first, fields, failing())
    with pytest.raises(SchemaError, match="not nullable"):
        write_column_file(dataset.snapshot, first, fields, [pa.record_batch({"n": pa.nulls(400, pa.int64())})])
    with pytest.raises(SchemaError, match="type"):
        write_column_file(dataset.snapshot, first, fields, [pa.record_batch({"n": ["x"] * 400})])
    with pytest.raises(InvalidInputError, match="cannot be mixed"):
        write_column_file(dataset.snapshot, first, fields, [], storage_version="0.1")
    assert files_in(dataset) == before


def test_files_of_a_lost_commit_are_removed(tmp_path: Path) -> None:
    dataset = make(tmp_path / "t", "2.2")
    before = files_in(dataset)
    lance_dataset.write_dataset(table(0, 10), tmp_path / "t", mode="append")
    more = files_in(dataset) - before
    arrow = pa.schema([("n", pa.int64())])

    def batches(reader: Any) -> list[pa.RecordBatch]:
        return [pa.record_batch([pa.array(range(reader.physical_rows))], schema=arrow)]

    with pytest.raises(CommitConflictError):
        add(dataset, arrow, batches)
    assert files_in(dataset) == before | more


def test_other_versions_and_removal(tmp_path: Path) -> None:
    dataset = make(tmp_path / "t", "2.0")
    before = files_in(dataset)
    fields = new_columns(dataset, pa.schema([("n", pa.int64())]))
    batch = pa.record_batch({"n": pa.array(range(400))})
    file = write_column_file(
        dataset.snapshot, dataset.snapshot.reader.fragments[0], fields, [batch], storage_version="2.2"
    )
    assert (file.fields, file.storage_version) == ((2,), "2.2")
    assert files_in(dataset) == before | {file.path}
    remove_column_files(dataset.snapshot, [file])
    remove_column_files(dataset.snapshot, [file])
    assert files_in(dataset) == before


def test_new_dictionaries_of_legacy_tables_are_refused(tmp_path: Path) -> None:
    dataset = make(tmp_path / "t", "0.1")
    before = files_in(dataset)
    fields = new_columns(dataset, pa.schema([("d", pa.dictionary(pa.int8(), pa.string()))]))
    batch = pa.record_batch({"d": pa.array(["x"] * 400).dictionary_encode().cast(fields.fields[0].storage_type)})
    with pytest.raises(UnsupportedError, match="dictionary"):
        write_column_file(dataset.snapshot, dataset.snapshot.reader.fragments[0], fields, [batch])
    assert files_in(dataset) == before


@pytest.mark.parametrize("version", ["0.1", "2.2"])
def test_files_are_written_on_any_threads(tmp_path: Path, version: str) -> None:
    """Files can be written on all threads that encode pages without a deadlock."""
    path = tmp_path / "t"
    rows = 1 << 18
    lance.write_dataset(
        pa.table({"i": np.arange(8 * rows)}), path, max_rows_per_file=rows, data_storage_version=version
    )
    dataset = lance_dataset.dataset(path)
    arrow = pa.schema([("n", pa.int64())])
    fields = new_columns(dataset, arrow)

    def write(reader: Any) -> Any:
        batch = pa.record_batch([pa.array(np.arange(rows))], schema=arrow)
        return write_column_file(dataset.snapshot, reader, fields, [batch])

    readers = list(dataset.snapshot.reader.fragments)
    calls = [cpu_pool().submit(write, reader) for reader in readers]
    assert [len(call.result(timeout=60).fields) for call in calls] == [1] * 8
