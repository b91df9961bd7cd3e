"""Tests of statistics, compared with the reference."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_dataset

DATASETS = Path(__file__).parent.parent / "fixtures" / "datasets"
DATA = pa.table(
    {
        "a": np.arange(3000),
        "s": pa.array([{"p": value, "q": str(value)} for value in range(3000)]),
        "l": pa.array([[value] * 3 for value in range(3000)]),
        "d": pa.array(["x", "y", "z"] * 1000).dictionary_encode(),
        "n": pa.nulls(3000, pa.int32()),
        "v": pa.FixedSizeListArray.from_arrays(pa.array(np.random.default_rng(1).random(12000, np.float32)), 4),
    }
)


def sizes(dataset: Any) -> list[tuple[int, int]]:
    return [(each.id, each.bytes_on_disk) for each in dataset.stats.data_stats().fields]


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2", "2.3"])
def test_same_as_reference(tmp_path: Path, version: str) -> None:
    path = str(tmp_path / "table")
    theirs = lance.write_dataset(DATA, path, data_storage_version=version, max_rows_per_file=1000)
    theirs.delete("a < 10 or a = 2000")
    theirs.drop_columns(["s.q"])
    theirs.add_columns({"m": "a * 2"})
    theirs.add_columns(pa.field("nothing", pa.int64()))
    ours = lance_dataset.dataset(path)
    for rows in (0, 999, 1000, 1001, 1024):
        assert ours.stats.dataset_stats(rows) == theirs.stats.dataset_stats(rows)
    assert ours.stats.dataset_stats() == theirs.stats.dataset_stats()
    assert sizes(ours) == sizes(theirs)
    assert asdict(ours.stats.data_stats())["fields"][0] == {"id": 0, "bytes_on_disk": sizes(theirs)[0][1]}


def test_legacy_files_have_sizes(tmp_path: Path) -> None:
    """Sizes of legacy files are reported; the reference reports 0."""
    table = pa.table({"a": pa.array(range(1000), pa.int64()), "t": ["x" * 10] * 1000})
    dataset = lance.write_dataset(table, str(tmp_path / "a"), data_storage_version="legacy")
    found = dict(sizes(lance_dataset.dataset(tmp_path / "a")))
    assert found[0] == 8000
    assert found[1] >= 10_000
    assert dataset.stats.data_stats().fields[0].bytes_on_disk == 0


def test_empty(tmp_path: Path) -> None:
    path = str(tmp_path / "a")
    theirs = lance.write_dataset(DATA.slice(0, 0), path)
    ours = lance_dataset.dataset(path)
    assert ours.stats.dataset_stats() == theirs.stats.dataset_stats()
    assert sizes(ours) == sizes(theirs)


@pytest.mark.parametrize("release", ["0.4.21-default", "0.5.10-default", "0.7.5-default", "0.20.0-2.0", "1.0.0-2.1"])
def test_old_releases(release: str) -> None:
    """Rows are counted in datasets of releases that did not record the counts."""
    path = str(DATASETS / f"pylance-{release}" / "ds.lance")
    ours, theirs = lance_dataset.dataset(path), lance.dataset(path)
    found = ours.stats.dataset_stats()
    assert found == {
        "num_deleted_rows": sum(each.num_deletions for each in theirs.get_fragments()),
        "num_fragments": len(theirs.get_fragments()),
        "num_small_files": sum(each.physical_rows < 1024 for each in theirs.get_fragments()),
    }
    assert len(sizes(ours)) == len(sizes(theirs))


def test_wrong_arguments(tmp_path: Path) -> None:
    dataset = lance_dataset.write_dataset(DATA, tmp_path / "a")
    for value, error in ((-1, OverflowError), ("a", TypeError), (None, TypeError), (True, TypeError)):
        with pytest.raises(error):
            dataset.stats.dataset_stats(value)
