"""Tests of compaction of indexed tables outside a plain folder: new index files are where the reference looks."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import lance as reference
import pyarrow as pa
from support.stores.s3_server import S3Server

import lance_dataset

ROWS = 60
WHERE = {"id >= 20 AND id < 44": "id_idx", "word IN ('w1', 'w4')": "word_idx", "nested.leaf = 'x4'": "nested.leaf_idx"}


def make(uri: str, **options: Any) -> None:
    data = {
        "id": pa.array(range(ROWS), pa.int64()),
        "word": [f"w{n % 5}" for n in range(ROWS)],
        "nested": [{"leaf": f"x{n % 7}"} for n in range(ROWS)],
    }
    dataset = reference.write_dataset(pa.table(data), uri, max_rows_per_file=10, **options)
    for column, kind in (("id", "BTREE"), ("word", "BITMAP"), ("nested.leaf", "BTREE")):
        dataset.create_scalar_index(column, kind)


def assert_answers(dataset: reference.LanceDataset) -> None:
    """Check that all indices cover all fragments, are used, and give the right rows."""
    present = {fragment.fragment_id for fragment in dataset.get_fragments()}
    for index in dataset.describe_indices():
        assert set().union(*(segment.fragment_ids for segment in index.segments)) == present
    for where, index in WHERE.items():
        scans = [dataset.scanner(filter=where, use_scalar_index=use) for use in (True, False)]
        assert f"@{index}" in scans[0].explain_plan()
        found, right = (sorted(scan.to_table()["id"].to_pylist()) for scan in scans)
        assert found == right
        assert found


def test_object_store(s3_server: S3Server) -> None:
    bucket, options = s3_server.new_bucket(), s3_server.options
    uri = f"s3://{bucket}/dir/t.lance"
    make(uri, storage_options=options)
    dataset = lance_dataset.dataset(uri, storage_options=options)
    dataset.delete("id % 7 = 3")
    dataset.optimize.compact_files(target_rows_per_fragment=20)
    assert_answers(reference.dataset(uri, storage_options=options))
    reference.dataset(uri, storage_options=options).optimize.compact_files()
    assert_answers(reference.dataset(uri, storage_options=options))
    dataset = lance_dataset.dataset(uri, storage_options=options)
    dataset.cleanup_old_versions(older_than=dt.timedelta(0), delete_unverified=True)
    folders = {key.split("/")[3] for key in s3_server.keys(bucket) if key.startswith("dir/t.lance/_indices/")}
    assert len(folders) == len(WHERE)
    assert_answers(reference.dataset(uri, storage_options=options))


def test_branch(tmp_path: Path) -> None:
    """Compaction of a branch writes index files in the branch; those it started with stay with the main table."""
    path = str(tmp_path / "t")
    make(path)
    reference.dataset(path).create_branch("side")
    side = lance_dataset.dataset(path).checkout_version(("side", None))
    side.delete("id % 7 = 3")
    for rows in (20, 1000):
        side.optimize.compact_files(target_rows_per_fragment=rows)
        assert_answers(reference.dataset(path).checkout_version(("side", None)))
    assert_answers(reference.dataset(path))
    assert len(list(Path(path, "_indices").iterdir())) == len(WHERE)
    assert len(list(Path(path, "tree", "side", "_indices").iterdir())) == 2 * len(WHERE)


def test_data_in_another_base(tmp_path: Path) -> None:
    path, other = str(tmp_path / "t"), tmp_path / "other"
    other.mkdir()
    base = reference.DatasetBasePath(other.as_uri(), name="other", is_dataset_root=True)
    make(path, initial_bases=[base], target_bases=["other"])
    dataset = lance_dataset.dataset(path)
    dataset.delete("id % 7 = 3")
    dataset.optimize.compact_files()
    assert_answers(reference.dataset(path))


def test_restored_and_tagged(tmp_path: Path) -> None:
    """Index files of versions before a compaction stay as long as these versions."""
    path = str(tmp_path / "t")
    make(path)
    before = reference.dataset(path).version
    reference.dataset(path).tags.create("before", before)
    dataset = lance_dataset.dataset(path)
    dataset.delete("id % 7 = 3")
    dataset.optimize.compact_files(target_rows_per_fragment=20)
    dataset.cleanup_old_versions(older_than=dt.timedelta(0), delete_unverified=True, error_if_tagged_old_versions=False)
    assert_answers(reference.dataset(path, version="before"))
    lance_dataset.dataset(path, version=before).restore()
    assert_answers(reference.dataset(path))
    lance_dataset.dataset(path).optimize.compact_files()
    assert_answers(reference.dataset(path))
    assert reference.dataset(path).count_rows() == ROWS
