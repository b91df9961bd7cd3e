"""Damaged files of zone maps and Bloom-filter indices."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.tables.zone_table import segments_of, zone_rows, zone_table

import lance_dataset
from lance_dataset.changes.commit import commit_change
from lance_dataset.errors import CorruptFileError, LanceError
from lance_dataset.index.files import NewIndexFolder
from lance_dataset.index.segments import index_segments
from lance_dataset.io.local import LocalStore
from lance_dataset.table.operations import CreateIndex
from lance_dataset.types.schema import Schema


@pytest.fixture(autouse=True)
def checking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use indices wherever they answer, and compare each answer with the scan."""
    monkeypatch.setenv("LANCE_CHECK_INDICES", "1")


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a dataset with an index of each kind."""
    path = tmp_path_factory.mktemp("indexed") / "t"
    zone_table(path, stable=False)
    return path


_QUESTIONS = {"c": ("c = 0", "c IS NULL"), "s": ("s > 'a8'", "s IS NULL"), "k": ("k = 7", "k IS NULL")}


@pytest.mark.parametrize("damage", ["cut", "zeros", "other", "gone"])
@pytest.mark.parametrize("column", _QUESTIONS)
def test_damaged_files_are_errors(indexed: Path, tmp_path: Path, column: str, damage: str) -> None:
    path = tmp_path / "t"
    shutil.copytree(indexed, path)
    folders = {each.column_names[0]: path / "_indices" / each.metadata.uuid for each in segments_of(path)}
    (file,), (other,) = folders[column].iterdir(), folders["k" if column != "k" else "c"].iterdir()
    content = file.read_bytes()
    if damage == "cut":
        file.write_bytes(content[: len(content) // 2])
    elif damage == "zeros":
        file.write_bytes(bytes(len(content) // 2) + content[len(content) // 2 :])
    elif damage == "other":
        file.write_bytes(other.read_bytes())
    else:
        file.unlink()
    dataset = lance_dataset.dataset(path)
    with pytest.raises(LanceError) as caught:
        dataset.count_rows(_QUESTIONS[column][0])
    assert folders[column].name in str(caught.value)
    assert dataset.scanner(filter=_QUESTIONS[column][0], use_scalar_index=False).count_rows() > 0


_U64 = pa.uint64()
_CHANGES: dict[str, tuple[str, Any]] = {
    "fragment_id": ("cks", lambda column: pa.array([1 << 32] * len(column), _U64)),
    "start": ("cks", lambda column: pa.array([1 << 40] * len(column), _U64)),
    "far": ("cks", lambda column: pa.array([(1 << 32) - 1] * len(column), _U64)),
    "length": ("cks", lambda column: pa.array([0] * len(column), _U64)),
    "beyond": ("cks", lambda column: pa.array([1000] * len(column), _U64)),
    "huge": ("cks", lambda column: pa.array([(1 << 64) - 1] * len(column), _U64)),
    "narrow": ("cks", lambda column: column.cast(pa.uint32())),
    "min": ("c", lambda column: pa.array([1 << 40] * len(column), pa.int64())),
    "max": ("c", lambda column: column.cast(pa.int32())),
    "null_count": ("cs", lambda column: column.cast(pa.int64())),
    "has_null": ("k", lambda column: column.cast(pa.uint8())),
    "filter": ("k", lambda column: pa.array([b"abc"] * len(column), pa.binary())),
    "empty": ("k", lambda column: pa.array([b""] * len(column), pa.binary())),
    "null": ("k", lambda column: pa.array([None] * len(column), pa.binary())),
}
#: The changed column, where the damage has another name.
_COLUMNS = {
    "start": "zone_start",
    "far": "zone_start",
    "length": "zone_length",
    "beyond": "zone_length",
    "huge": "zone_length",
    "narrow": "zone_length",
    "filter": "bloom_filter_data",
    "empty": "bloom_filter_data",
    "null": "bloom_filter_data",
}


def _ask(path: Path, column: str) -> None:
    for each in _QUESTIONS[column]:
        lance_dataset.dataset(path).count_rows(each)


def _rewritten(path: Path, column: str, change: Any, nulls: bytes | None) -> str:
    """Write the file of the index of a column with something changed; return the name of its folder."""
    (segment,) = (each for each in segments_of(path) if each.column_names == (column,))
    (name,) = segment.folder.names()
    table = segment.folder.open(name)
    batch = change(table.read())
    kept = table.global_buffer("null_bitmap") if nulls is None else nulls
    metadata = {key: value for key, value in table.metadata.items() if key != "null_bitmap"}
    folder = path / "_indices" / segment.metadata.uuid
    (folder / name).unlink()
    target = NewIndexFolder(LocalStore(), str(folder))
    target.write(name, Schema.from_arrow(batch.schema), "2.2", [batch], metadata, {"null_bitmap": kept or b""})
    return segment.metadata.uuid


def _without_sizes(path: Path) -> None:
    """Forget the sizes of the files of indices."""
    snapshot = lance_dataset.dataset(path)._snapshot
    old = tuple(each.metadata for each in index_segments(snapshot.reader))
    commit_change(snapshot, CreateIndex(tuple(replace(each, files=()) for each in old), old))


@pytest.mark.parametrize(
    ("damage", "column"), [(name, each) for name, (columns, _) in _CHANGES.items() for each in columns]
)
def test_contradictions_are_errors(indexed: Path, tmp_path: Path, damage: str, column: str) -> None:
    path = tmp_path / "t"
    shutil.copytree(indexed, path)
    _without_sizes(path)
    name = _COLUMNS.get(damage, damage)

    def change(batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = {each: batch.column(each) for each in batch.schema.names}
        columns[name] = _CHANGES[damage][1](columns[name])
        return pa.RecordBatch.from_pydict(columns)

    folder = _rewritten(path, column, change, None)
    with pytest.raises(CorruptFileError, match=folder):
        _ask(path, column)
    if damage not in ("beyond", "min", "null_count", "has_null", "filter", "empty"):
        dataset = lance_dataset.dataset(path)
        dataset.insert(zone_rows(9000, 10))
        with pytest.raises(CorruptFileError, match=folder):
            dataset.optimize.optimize_indices()


@pytest.mark.parametrize("column", ["c", "k"])
@pytest.mark.parametrize(
    "nulls",
    [
        b"abc",
        bytes.fromhex("01000000"),
        bytes.fromhex("0100000000000000120000003a300000010000000000000010000000ffff"),  # a row beyond the fragment
        bytes.fromhex("0100000000000000120000003a3000000100000000000100100000000300"),
    ],
)
def test_damaged_null_rows_are_errors(indexed: Path, tmp_path: Path, column: str, nulls: bytes) -> None:
    path = tmp_path / "t"
    shutil.copytree(indexed, path)
    _without_sizes(path)
    folder = _rewritten(path, column, lambda batch: batch, nulls)
    with pytest.raises(CorruptFileError, match=folder):
        lance_dataset.dataset(path).count_rows(f"{column} IS NULL")


@pytest.mark.parametrize("column", ["c", "k"])
def test_null_rows_of_whole_fragments(indexed: Path, tmp_path: Path, column: str) -> None:
    """A bitmap of no bytes stands for all rows of a fragment; fragments that do not exist do not matter."""
    path = tmp_path / "t"
    shutil.copytree(indexed, path)
    _without_sizes(path)
    lance_dataset.dataset(path).update({column: "NULL"}, where="n < 0")
    _rewritten(path, column, lambda batch: batch, bytes.fromhex("02000000 01000000 00000000 77000000 00000000"))
    with pytest.raises(CorruptFileError, match="200 rows"):  # which is not so in the table
        lance_dataset.dataset(path).count_rows(f"{column} IS NULL")
