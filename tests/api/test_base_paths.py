"""Tests of data files that workers write into base paths, and of names of the reference's module."""

from __future__ import annotations

import importlib
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset.errors import InvalidInputError

LIBRARIES = pytest.mark.parametrize("writer", [lance_dataset, lance], ids=["ours", "reference"])
ROWS = pa.table({"a": [1, 2, 3, 4]})


@LIBRARIES
def test_workers_write_into_base_paths(writer: ModuleType, tmp_path: Path) -> None:
    uri, table = f"{tmp_path}/t", pa.table({"a": [1, 2, 3]})
    bases = [writer.DatasetBasePath(f"{tmp_path}/b{number}", f"b{number}") for number in range(2)]
    first = writer.fragment.write_fragments(
        table, uri, mode="create", initial_bases=bases, target_bases=["b1"], return_transaction=True
    )
    assert [file.base_id for fragment in first.operation.fragments for file in fragment.files] == [2]
    writer.LanceDataset.commit(uri, first)
    more = writer.fragment.write_fragments(table, uri, target_all_bases=True, max_rows_per_file=1)
    assert sorted(file.base_id or 0 for fragment in more for file in fragment.files) == [0, 1, 2]
    writer.LanceDataset.commit(uri, writer.LanceOperation.Append(more), read_version=1)
    for reader in (lance_dataset, lance):
        assert sorted(reader.dataset(uri).to_table()["a"].to_pylist()) == [1, 1, 2, 2, 3, 3]


def test_unknown_base_paths_of_workers(tmp_path: Path) -> None:
    table = pa.table({"a": [1]})
    with pytest.raises(InvalidInputError, match="not found in available bases"):
        lance_dataset.write_fragments(table, f"{tmp_path}/t", mode="create", target_bases=["b"])
    lance_dataset.write_dataset(table, f"{tmp_path}/t")
    with pytest.raises(InvalidInputError, match="Cannot register new bases"):
        lance_dataset.write_fragments(
            table, f"{tmp_path}/t", initial_bases=[lance_dataset.DatasetBasePath(f"{tmp_path}/b")]
        )


def two_bases(writer: ModuleType, folder: Path) -> list[Any]:
    return [writer.DatasetBasePath(f"{folder}/b{number}", f"b{number}") for number in (1, 2)]


def places(dataset: Any) -> list[int | None]:
    return [file.base_id for fragment in dataset.get_fragments() for file in fragment.metadata.files]


@LIBRARIES
@pytest.mark.parametrize(
    ("all_bases", "expected"), [(None, [None] * 4), (False, [1, 2, 1, 2]), (True, [None, 1, 2, None])]
)
def test_all_bases_with_and_without_the_dataset(
    writer: ModuleType, all_bases: bool | None, expected: list[int | None], tmp_path: Path
) -> None:
    options = {"max_rows_per_file": 1, "target_all_bases": all_bases}
    uri = f"{tmp_path}/t"
    made = writer.write_dataset(ROWS, uri, initial_bases=two_bases(writer, tmp_path), **options)
    assert places(made) == expected
    assert places(writer.write_dataset(ROWS, uri, mode="append", **options)) == expected * 2
    fragments = writer.fragment.write_fragments(ROWS, uri, **options)
    assert [file.base_id for fragment in fragments for file in fragment.files] == expected
    for reader in (lance_dataset, lance):
        assert sorted(reader.dataset(uri).to_table()["a"].to_pylist()) == sorted([1, 2, 3, 4] * 2)


@LIBRARIES
def test_all_bases_refusals(writer: ModuleType, tmp_path: Path) -> None:
    for mode in ("create", "append"):
        with pytest.raises(OSError, match="base"):
            writer.write_dataset(ROWS, f"{tmp_path}/t", mode=mode, target_all_bases=False)
        writer.write_dataset(ROWS, f"{tmp_path}/t", mode="overwrite")
    for all_bases in (True, False):
        with pytest.raises(OSError, match="together"):
            writer.write_dataset(
                ROWS,
                f"{tmp_path}/u",
                initial_bases=two_bases(writer, tmp_path),
                target_bases=["b1"],
                target_all_bases=all_bases,
            )
    for wrong in (1, "yes"):
        with pytest.raises(TypeError, match=r"bool|True, False"):
            writer.write_dataset(ROWS, f"{tmp_path}/t", mode="append", target_all_bases=wrong)


@LIBRARIES
@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_initial_bases_where_a_mode_creates(writer: ModuleType, mode: str, tmp_path: Path) -> None:
    bases, uri = two_bases(writer, tmp_path), f"{tmp_path}/t"
    made = writer.write_dataset(ROWS, uri, mode=mode, initial_bases=bases, target_bases=["b2"])
    assert places(made) == [2]
    assert sorted(base.name for base in made.base_paths().values()) == ["b1", "b2"]
    for reader in (lance_dataset, lance):
        assert reader.dataset(uri).to_table() == ROWS
    more = [writer.DatasetBasePath(f"{tmp_path}/c", "c")]
    with pytest.raises(OSError, match="Cannot register new bases"):
        writer.write_dataset(ROWS, uri, mode=mode, initial_bases=more)
    with pytest.raises(OSError, match="Cannot register new bases"):
        writer.fragment.write_fragments(ROWS, uri, mode=mode, initial_bases=more)


@LIBRARIES
def test_initial_bases_of_a_dataset_created_meanwhile(writer: ModuleType, tmp_path: Path) -> None:
    uri = f"{tmp_path}/t"

    def batches() -> Iterator[pa.RecordBatch]:
        yield from ROWS.to_batches()
        writer.write_dataset(ROWS, uri)

    with pytest.raises(OSError):
        writer.write_dataset(
            batches(), uri, ROWS.schema, mode="append", initial_bases=two_bases(writer, tmp_path), target_bases=["b1"]
        )
    for reader in (lance_dataset, lance):
        assert reader.dataset(uri).to_table() == ROWS


@LIBRARIES
def test_the_dataset_itself_as_a_target(writer: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for uri in (f"{tmp_path}/a", f"file://{tmp_path}/b", "c"):
        made = writer.write_dataset(ROWS, uri, initial_bases=two_bases(writer, tmp_path), target_bases=[uri])
        assert places(made) == [None]
        options = {"target_bases": ["b2", made.uri], "max_rows_per_file": 1}
        assert places(writer.write_dataset(ROWS, uri, mode="overwrite", **options)) == [2, None, 2, None]
    itself = writer.DatasetBasePath(f"{tmp_path}/d", "itself", True)
    for target, expected in ((f"{tmp_path}/d", None), ("itself", 1)):
        made = writer.write_dataset(ROWS, f"{tmp_path}/d", initial_bases=[itself], target_bases=[target])
        assert places(made) == [expected]
        shutil.rmtree(f"{tmp_path}/d")


def test_other_spellings_of_the_dataset_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    uri = f"{tmp_path}/t"
    lance_dataset.write_dataset(ROWS, uri)
    for spelling in (uri, f"{uri}/", f"file://{uri}", "t", f"{tmp_path}/x/../t"):
        written = lance_dataset.write_dataset(ROWS, uri, mode="overwrite", target_bases=[spelling])
        assert places(written) == [None]
    for other in (f"{uri}/data", "memory://t", "foo://t", "", "tt"):
        with pytest.raises(InvalidInputError, match="not found in available bases"):
            lance_dataset.write_dataset(ROWS, uri, mode="append", target_bases=[other])
    session = lance_dataset.Session()
    lance_dataset.write_dataset(ROWS, "memory://t", session=session, target_bases=["memory://t"])
    assert lance_dataset.dataset("memory://t", session=session).to_table() == ROWS


@LIBRARIES
def test_base_paths_of_the_wrong_type(writer: ModuleType, tmp_path: Path) -> None:
    uri = f"{tmp_path}/t"
    with pytest.raises(ValueError, match="DatasetBasePath"):
        writer.write_dataset(ROWS, uri, initial_bases=["x"])
    for wrong in ("x", writer.DatasetBasePath("x")):
        with pytest.raises(TypeError):
            writer.write_dataset(ROWS, uri, initial_bases=wrong)
    with pytest.raises(TypeError):
        writer.write_dataset(ROWS, uri, target_bases=[5])
    assert not Path(uri).exists()


def test_names_of_the_reference_module() -> None:
    importlib.import_module("lance_dataset.dataset")
    ours, theirs = sys.modules["lance_dataset.dataset"], sys.modules["lance.dataset"]
    for name in ("LanceOperation", "Transaction", "Tags", "Branches", "DatasetBasePath", "LanceStats", "write_dataset"):
        assert getattr(ours, name).__name__ == getattr(theirs, name).__name__
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = ours.nothing
    from lance_dataset.commit import CommitConflictError, CommitLock  # noqa: F401 - these two are there

    assert issubclass(CommitConflictError, OSError)
