"""Tests of legacy (0.1) datasets of the reference, read and changed by this package."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_dataset

TABLE = pa.table({"id": pa.array(range(100), pa.int64()), "s": [f"s{number}" for number in range(100)]})

READS: dict[str, Callable[[Any], object]] = {
    "to_table": lambda d: d.to_table(),
    "to_batches": lambda d: pa.Table.from_batches(d.to_batches()),
    "take": lambda d: d.take([5, 197, 3]),
    "filter": lambda d: d.count_rows("id > 5"),
    "row ids": lambda d: d.to_table(filter="id > 97", with_row_id=True),
    "validate": lambda d: d.validate(),
}


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    path = tmp_path / "t"
    lance.write_dataset(TABLE, path, data_storage_version="legacy")
    lance.write_dataset(TABLE, path, mode="append")
    lance.dataset(path).delete("id = 3")
    return path


def test_schema_and_versions(stored: Path) -> None:
    ours, theirs = lance_dataset.dataset(stored), lance.dataset(stored)
    assert ours.schema.equals(theirs.schema, check_metadata=True)
    assert [entry["version"] for entry in ours.versions()] == [1, 2, 3]
    assert ours.data_storage_version == theirs.data_storage_version == "0.1"
    assert ours.count_rows() == theirs.count_rows() == 198
    assert [item.fragment_id for item in ours.get_fragments()] == [0, 1]


@pytest.mark.parametrize("read", READS)
def test_reading(stored: Path, read: str) -> None:
    assert READS[read](lance_dataset.dataset(stored)) == READS[read](lance.dataset(stored))


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_writing(stored: Path, mode: str) -> None:
    lance_dataset.write_dataset(TABLE, stored, mode=mode)
    lance_dataset.dataset(stored).delete("id = 7")
    assert lance.dataset(stored).data_storage_version == "0.1"
    assert lance.dataset(stored).to_table() == lance_dataset.dataset(stored).to_table()
    assert lance.dataset(stored).count_rows() == {"append": 295, "overwrite": 99}[mode]


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_overwriting_with_a_later_version(stored: Path, version: str) -> None:
    lance_dataset.write_dataset(TABLE, stored, mode="overwrite", data_storage_version=version)
    for module in (lance, lance_dataset):
        assert module.dataset(stored).to_table().equals(TABLE)
        assert module.dataset(stored).data_storage_version == version
