"""Datasets of file version 0.1: open, tell their schema and versions, refuse the rest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset.errors import UnsupportedError

TABLE = pa.table({"id": pa.array(range(100), pa.int64()), "s": [f"s{number}" for number in range(100)]})

READS: dict[str, Callable[[lance_dataset.LanceDataset], object]] = {
    "to_table": lambda d: d.to_table(),
    "to_batches": lambda d: list(d.to_batches()),
    "take": lambda d: d.take([5]),
    "filter": lambda d: d.count_rows("id > 5"),
    "delete": lambda d: d.delete("id > 5"),
    "validate": lambda d: d.validate(),
}


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    path = tmp_path / "t"
    lance.write_dataset(TABLE, path, data_storage_version="legacy")
    lance.write_dataset(TABLE, path, mode="append")
    lance.dataset(path).delete("id = 3")
    return path


def _files(path: Path) -> set[str]:
    return {str(file.relative_to(path)) for file in path.rglob("*") if file.is_file()}


def test_schema_and_versions(stored: Path) -> None:
    ours, theirs = lance_dataset.dataset(stored), lance.dataset(stored)
    assert ours.schema.equals(theirs.schema, check_metadata=True)
    assert [entry["version"] for entry in ours.versions()] == [1, 2, 3]
    assert ours.data_storage_version == theirs.data_storage_version
    assert ours.count_rows() == theirs.count_rows() == 198
    assert [item.fragment_id for item in ours.get_fragments()] == [0, 1]


@pytest.mark.parametrize("read", READS)
def test_reading_is_refused(stored: Path, read: str) -> None:
    version = lance.dataset(stored).data_storage_version
    before = _files(stored)
    with pytest.raises(UnsupportedError, match=version.replace(".", r"\.")):
        READS[read](lance_dataset.dataset(stored))
    assert _files(stored) == before


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_writing_is_refused_before_anything_is_written(stored: Path, mode: str) -> None:
    before = _files(stored)
    with pytest.raises(UnsupportedError):
        lance_dataset.write_dataset(TABLE, stored, mode=mode)
    assert _files(stored) == before


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_overwriting_with_a_version_that_can_be_written(stored: Path, version: str) -> None:
    lance_dataset.write_dataset(TABLE, stored, mode="overwrite", data_storage_version=version)
    for module in (lance, lance_dataset):
        assert module.dataset(stored).to_table().equals(TABLE)
        assert module.dataset(stored).data_storage_version == version
