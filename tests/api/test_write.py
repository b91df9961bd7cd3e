"""Tests of writing: modes, kinds of input, locations, file sizes, commits made by hand."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lance
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pads
import pytest
from support.reference.outcomes import Outcome, assert_same_outcome, build_table

import lance_dataset
from lance_dataset import LanceDataset, LanceOperation, Session, write_fragments
from lance_dataset.read.fragment_reader import SYSTEM_COLUMNS

TABLE = pa.table({"a": pa.array([1, 2, 3], pa.int64()), "b": ["x", None, "z"]})
INPUTS: dict[str, Callable[[], Any]] = {
    "table": lambda: TABLE,
    "batch": lambda: TABLE.to_batches()[0],
    "reader": TABLE.to_reader,
    "dataset": lambda: pads.dataset(TABLE),
    "scanner": lambda: pads.dataset(TABLE).scanner(),
    "pandas": TABLE.to_pandas,
    "polars": lambda: pl.from_arrow(TABLE),
    "dict": TABLE.to_pydict,
    "rows": TABLE.to_pylist,
}


@pytest.mark.parametrize("kind", INPUTS)
def test_inputs(tmp_path: Path, kind: str) -> None:
    """All kinds of input give the same rows, and the reference agrees."""
    dataset = lance_dataset.write_dataset(INPUTS[kind](), tmp_path / "d")
    assert dataset.to_table().to_pydict() == TABLE.to_pydict()
    theirs = lance.write_dataset(INPUTS[kind](), tmp_path / "t", data_storage_version="2.0")
    assert dataset.schema.equals(theirs.schema)
    assert lance.dataset(tmp_path / "d").to_table().to_pydict() == TABLE.to_pydict()


def test_inputs_of_this_package(tmp_path: Path) -> None:
    source = lance_dataset.write_dataset(TABLE, tmp_path / "s")
    for number, data in enumerate((source, source.scanner(["a"], "a > 1"), source.scanner().to_reader())):
        again = lance_dataset.write_dataset(data, tmp_path / str(number))
        assert again.to_table().num_rows == (2 if number == 1 else 3)
    batches = iter(TABLE.to_batches(max_chunksize=1))
    assert lance_dataset.write_dataset(batches, tmp_path / "i", TABLE.schema).to_table() == TABLE


WRITES = {
    "create": [(TABLE, "create")],
    "create twice": [(TABLE, "create"), (TABLE, "create")],
    "append to nothing": [(TABLE, "append")],
    "overwrite nothing": [(TABLE, "overwrite")],
    "append": [(TABLE, "create"), (TABLE, "append")],
    "bad mode": [(TABLE, "zzz")],
    "other order": [(TABLE, "create"), (TABLE.select(["b", "a"]), "append")],
    "missing": [(TABLE, "create"), (TABLE.select(["a"]), "append")],
    "unexpected": [(TABLE, "create"), (pa.table({"a": [1], "c": [2]}), "append")],
    "other type": [(TABLE, "create"), (pa.table({"a": ["x"], "b": ["y"]}), "append")],
    "overwrite other": [(TABLE, "create"), (pa.table({"q": [1.5]}), "overwrite"), (pa.table({"q": [2.5]}), "append")],
    "empty append": [(TABLE, "create"), (TABLE.slice(0, 0), "append")],
    "none": [(None, "create")],
    "duplicate names": [(pa.table([[1], [2]], names=["a", "a"]), "create")],
    "dotted name": [(pa.table({"a.b": [1]}), "create")],
    "not null": [
        (pa.table([[1]], pa.schema([pa.field("a", pa.int64(), False)])), "create"),
        (pa.table({"a": pa.array([2, 3])}), "append"),
    ],
}


@pytest.mark.parametrize("name", WRITES)
def test_writes_like_the_reference(tmp_path: Path, name: str) -> None:
    """The outcome of the last write, rows, schema and number of versions match the reference."""
    results = []
    for library in (lance_dataset, lance):
        path = tmp_path / library.__name__

        def run(lib: Any, ds: Any, place: Path = path) -> Any:
            for data, mode in WRITES[name]:
                dataset = lib.write_dataset(data, place, mode=mode, data_storage_version="2.0")
            return dataset.to_table(), dataset.version, [f.count_rows() for f in dataset.get_fragments()]

        results.append(Outcome.of(run, library, None))
    assert_same_outcome(*results)


def test_schema_kept(tmp_path: Path) -> None:
    """Metadata of schema and fields, nullability and dictionary types are kept, also when the reference reads them."""
    table = build_table(20)
    dataset = lance_dataset.write_dataset(table, tmp_path / "d")
    assert dataset.schema.equals(table.schema, check_metadata=True)
    assert lance.dataset(tmp_path / "d").schema.equals(table.schema, check_metadata=True)


@pytest.mark.parametrize("name", ["plain", "with space", "grün €", "a%20b", "x#y?z", "dot.lance"])
def test_places(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Locations may be text, a Path, a relative path, a path with a trailing slash, or a file URI."""
    lance_dataset.write_dataset(TABLE, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    for uri in (str(tmp_path / name), tmp_path / name, name, f"{name}/", f"./{name}"):
        assert lance_dataset.dataset(uri).to_table() == TABLE
    if name.isalnum() and name.isascii():
        assert lance_dataset.dataset(f"file://{tmp_path}/{name}").to_table() == TABLE
    assert os.listdir(tmp_path) == [name]


def test_memory() -> None:
    """Data in memory belongs to the session."""
    session = Session()
    dataset = lance_dataset.write_dataset(TABLE, "memory://data", session=session)
    dataset.insert(TABLE)
    assert lance_dataset.dataset("memory://data", session=session).count_rows() == 6
    with pytest.raises(ValueError, match="not found"):
        lance_dataset.dataset("memory://data")


def test_file_sizes(tmp_path: Path) -> None:
    """Files end at the row limit, or after the batch that reaches the byte limit."""
    table = pa.table({"a": range(10_000)})
    rows = lance_dataset.write_dataset(table, tmp_path / "r", max_rows_per_file=3_000)
    assert [fragment.count_rows() for fragment in rows.get_fragments()] == [3_000, 3_000, 3_000, 1_000]
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=500))
    sized = lance_dataset.write_dataset(reader, tmp_path / "b", max_bytes_per_file=8 * 1_500)
    assert {fragment.count_rows() for fragment in sized.get_fragments()} == {1_500, 1_000}
    paged = lance_dataset.write_dataset(table, tmp_path / "p", max_page_bytes=4_096)
    assert rows.to_table() == sized.to_table() == paged.to_table() == table
    with pytest.raises(ValueError, match="max_rows_per_file"):
        lance_dataset.write_dataset(table, tmp_path / "z", max_rows_per_file=0)


WORKER = """
import sys, pickle, pyarrow as pa
from lance_dataset.fragment import write_fragments
fragments = write_fragments(pa.table({"a": [int(sys.argv[2])], "b": ["w"]}), sys.argv[1])
sys.stdout.buffer.write(pickle.dumps(fragments))
"""


def test_commits(tmp_path: Path) -> None:
    """Fragments of other processes, deletes and restores can be committed by hand; the reference reads the result."""
    import pickle

    path = tmp_path / "d"
    dataset = lance_dataset.write_dataset(TABLE, path)
    fragments = []
    for value in ("7", "8"):
        command = [sys.executable, "-c", WORKER, str(path), value]
        fragments += pickle.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    with pytest.raises(ValueError, match="read_version"):
        LanceDataset.commit(path, LanceOperation.Append(fragments))
    dataset = LanceDataset.commit(path, LanceOperation.Append(fragments), read_version=dataset.version)
    assert dataset.to_table()["a"].to_pylist() == [1, 2, 3, 7, 8]
    changed = dataset.get_fragment(0).delete("a = 2")
    assert changed is not None
    operation = LanceOperation.Delete([changed], [1], "by hand")
    dataset = LanceDataset.commit(dataset, operation, read_version=dataset.version)
    assert dataset.to_table()["a"].to_pylist() == [1, 3, 8]
    dataset = LanceDataset.commit(dataset, LanceOperation.Restore(1))
    assert dataset.to_table() == TABLE
    dataset = LanceDataset.commit(dataset, LanceOperation.Overwrite(TABLE.schema, fragments))
    assert lance.dataset(path).to_table()["a"].to_pylist() == dataset.to_table()["a"].to_pylist() == [7, 8]


@pytest.mark.parametrize(
    ("made", "given"),
    [
        ({"a": [1], "b": [100]}, {"b": [200], "a": [2]}),
        ({"s": [{"x": 1, "y": 2}]}, {"s": [{"y": 3, "x": 4}]}),
    ],
)
def test_append_while_another_writer_creates(tmp_path: Path, made: dict[str, Any], given: dict[str, Any]) -> None:
    """An append that races with the creation of the dataset is committed only if the columns match.

    Otherwise it raises a retryable `CommitConflictError` and leaves no file.
    """
    path = tmp_path / "d"

    def race(data: pa.Table) -> lance_dataset.LanceDataset:
        def batches() -> Iterator[pa.RecordBatch]:
            lance_dataset.write_dataset(pa.table(made), path)
            yield from data.to_batches()

        return lance_dataset.write_dataset(batches(), path, schema=data.schema, mode="append")

    with pytest.raises(lance_dataset.errors.CommitConflictError, match="another writer created") as caught:
        race(pa.table(given))
    assert caught.value.retryable
    dataset = lance_dataset.dataset(path)
    assert dataset.to_table().to_pydict() == made
    assert len(list((path / "data").iterdir())) == 1
    dataset.insert(pa.table(given))
    assert dataset.to_table().to_pylist() == pa.table(made).to_pylist() + pa.table(given).to_pylist()
    dataset.drop(path)
    assert race(pa.table(made)).to_table().to_pylist() == pa.table(made).to_pylist() * 2


@pytest.mark.parametrize("name", sorted(SYSTEM_COLUMNS))
def test_names_of_system_columns_are_refused(tmp_path: Path, name: str) -> None:
    table = pa.table({"x": [1], name: pa.array([7], pa.uint64())})
    for write in (lance_dataset.write_dataset, write_fragments, lance.write_dataset):
        with pytest.raises(OSError, match=f"{name}.* reserved"):
            write(table, str(tmp_path / "d"))
        assert not (tmp_path / "d" / "_versions").exists()
    nested = pa.table({"s": pa.array([{name: 7}])})
    assert lance_dataset.write_dataset(nested, tmp_path / "n").to_table() == nested


@pytest.mark.parametrize("module", [lance_dataset, lance])
def test_overwriting_with_no_rows_in_another_version(tmp_path: Path, module: Any) -> None:
    path = str(tmp_path / "d")
    module.write_dataset(TABLE, path)
    module.write_dataset(TABLE.slice(0, 0), path, mode="overwrite", data_storage_version="2.0")
    assert lance.dataset(path).data_storage_version == "2.0"
    module.write_dataset(TABLE, path, mode="append")
    for reader in (lance_dataset, lance):
        assert reader.dataset(path).data_storage_version == "2.0"
        assert reader.dataset(path).to_table() == TABLE


def _write_elsewhere(mode: str) -> Callable[[Any, str], object]:
    return lambda lib, uri: lib.write_dataset(TABLE, uri, mode=mode)


MEANWHILE: dict[str, Callable[[Any, str], object]] = {
    "append": _write_elsewhere("append"),
    "overwrite": _write_elsewhere("overwrite"),
    "delete": lambda lib, uri: lib.dataset(uri).delete("a > 1"),
    "restore": lambda lib, uri: lib.dataset(uri).restore(),
}


@pytest.mark.parametrize("mode", ["append", "overwrite"])
@pytest.mark.parametrize("meanwhile", MEANWHILE)
def test_writes_through_a_handle_start_from_its_version(tmp_path: Path, meanwhile: str, mode: str) -> None:
    """Commits since the version of the handle count as concurrent with the write, as in the reference."""
    outcomes = []
    for lib in (lance, lance_dataset):
        uri = f"{tmp_path}/{lib.__name__}"
        handle = lib.write_dataset(TABLE, uri)
        MEANWHILE[meanwhile](lib, uri)
        try:
            handle.insert(TABLE, mode=mode)
        except OSError as error:
            outcomes.append(("refused", "Retryable" in str(error), lib.dataset(uri).count_rows()))
            continue
        outcomes.append(("written", handle.version, lib.dataset(uri).count_rows()))
    assert outcomes[0] == outcomes[1]


def test_nothing_is_appended_to_a_detached_version(tmp_path: Path) -> None:
    uri = f"{tmp_path}/t"
    lance_dataset.write_dataset(TABLE, uri)
    operation = LanceOperation.Append(write_fragments(TABLE, uri))
    detached = LanceDataset.commit(uri, operation, read_version=1, detached=True)
    with pytest.raises(ValueError, match="detached"):
        detached.insert(TABLE)
    assert lance_dataset.dataset(uri).version == 1
    assert len(os.listdir(f"{uri}/data")) == 2


@pytest.mark.parametrize("lib", [lance, lance_dataset], ids=["reference", "ours"])
def test_a_handle_stays_when_it_is_written_to(tmp_path: Path, lib: Any) -> None:
    handle = lib.write_dataset(TABLE, f"{tmp_path}/t")
    made = lib.write_dataset(TABLE, handle, mode="append")
    assert (made.version, handle.version, handle.count_rows()) == (2, 1, 3)
    made.insert(TABLE)
    assert (made.version, made.count_rows()) == (3, 9)
