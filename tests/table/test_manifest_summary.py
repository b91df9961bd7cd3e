"""Tests of summaries of manifests: they say what the decoded manifests say."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lance_dataset as lance
from lance_dataset.table.cleanup.file_usage import VersionUsage, version_files
from lance_dataset.table.manifest import decode_manifest
from lance_dataset.table.manifest_summary import summarized
from lance_dataset.table.versions import version_info

FIXTURES = Path(__file__).parent.parent / "fixtures"


def manifests(root: Path) -> list[Path]:
    return sorted(root.rglob("*.manifest"))


def check(path: Path) -> bool:
    """Compare what is read of a manifest with what is decoded; return whether it was read without decoding."""
    data, where = path.read_bytes(), str(path)
    manifest = decode_manifest(data, where)
    usage = VersionUsage.read(data, where)
    assert usage.files == version_files(manifest)
    assert usage.version == manifest.version
    assert usage.timestamp_nanos == manifest.timestamp_nanos
    assert usage.has_inline_transaction == (manifest.inline_transaction is not None)
    summary = summarized(data, where)
    if summary is None:
        return False
    assert summary.timestamp == manifest.timestamp
    assert summary.transaction_file == manifest.transaction_file
    assert summary.index_section == (manifest.index_section or None)
    assert summary.writer_flags == manifest.writer_flags
    counters = version_info(manifest)["metadata"]
    assert str(summary.rows - summary.deleted_rows) == counters["total_rows"]
    assert str(len(summary.deletion_files)) == counters["total_deletion_files"]
    return True


@pytest.fixture
def table(tmp_path: Path) -> lance.LanceDataset:
    """A table with appends, deletions, updates, indices, compaction, and stable row ids."""
    data = pa.table({"id": np.arange(300), "text": [f"word {number}" for number in range(300)]})
    dataset = lance.write_dataset(data, tmp_path / "t", max_rows_per_file=100, enable_stable_row_ids=True)
    dataset.delete("id % 7 = 0")
    dataset.create_scalar_index("id", "BTREE")
    dataset.insert(data)
    dataset.update({"text": "'other'"}, where="id = 5")
    dataset.add_columns({"more": "id + 1"})
    dataset.optimize.compact_files()
    dataset.create_scalar_index("text", "BITMAP")
    return lance.dataset(tmp_path / "t")


def test_common_versions_are_not_decoded(table: lance.LanceDataset, tmp_path: Path) -> None:
    found = [check(path) for path in manifests(tmp_path)]
    assert len(found) > 7
    assert all(found)


def test_versions_tell_what_each_version_tells(table: lance.LanceDataset) -> None:
    opened = [table.checkout_version(each["version"]) for each in table.versions()]
    assert table.versions() == [version_info(each.snapshot.manifest) for each in opened]


def test_fixtures_of_all_releases() -> None:
    paths = manifests(FIXTURES)
    assert len(paths) > 50
    assert sum(check(path) for path in paths) > 5


def test_base_paths_and_legacy_files_are_decoded(table: lance.LanceDataset, tmp_path: Path) -> None:
    table.shallow_clone(tmp_path / "clone", table.version)
    lance.write_dataset(pa.table({"a": [1]}), tmp_path / "old", data_storage_version="legacy")
    for name in ("clone", "old"):
        assert sum(check(path) for path in manifests(tmp_path / name)) == 0


def test_cleanup_of_uncommon_versions(table: lance.LanceDataset, tmp_path: Path) -> None:
    """Versions are read in both ways in one cleanup."""
    path = tmp_path / "t"
    lance.write_dataset(table.to_table(), path, mode="overwrite", data_storage_version="2.0")
    dataset = lance.write_dataset(table.to_table(), path, mode="append")
    before = dataset.to_table()
    removed = dataset.cleanup_old_versions(older_than=dt.timedelta(0))
    assert removed.old_versions == dataset.version - 1
    assert lance.dataset(path).to_table().equals(before)
