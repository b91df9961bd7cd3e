"""Tests of the fragments that a compaction chooses: fragments beside an indexed one, files of unknown size."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import lance as reference
import pyarrow as pa

import lance_dataset as lance
from lance_dataset.table.manifest import encode_manifest


def rows(count: int) -> pa.Table:
    return pa.table({"id": pa.array(range(count), pa.int64())})


def test_fragments_beside_an_indexed_one(tmp_path: Path) -> None:
    """Fragments beside an indexed one are joined with each other only, as in the reference."""
    table, twin = str(tmp_path / "t.lance"), str(tmp_path / "twin.lance")
    reference.write_dataset(rows(10), table)
    reference.dataset(table).create_scalar_index("id", "BTREE")
    reference.write_dataset(rows(3), table, mode="append")
    assert lance.dataset(table).optimize.compact_files().fragments_removed == 0
    for _ in range(2):
        reference.write_dataset(rows(3), table, mode="append")
    shutil.copytree(table, twin)
    ours, theirs = lance.dataset(table), reference.dataset(twin)
    assert ours.optimize.compact_files().fragments_removed == theirs.optimize.compact_files().fragments_removed == 3
    assert [each.count_rows() for each in ours.get_fragments()] == [10, 9]
    assert reference.dataset(table).to_table(filter="id = 2").num_rows == 4
    ours.delete("id = 9 or id = 8")
    theirs.delete("id = 9 or id = 8")
    assert ours.optimize.compact_files().fragments_removed == theirs.optimize.compact_files().fragments_removed == 1
    assert [each.count_rows() for each in ours.get_fragments()] == [9, 8]
    assert reference.dataset(table).to_table(filter="id = 2").num_rows == 4


def test_byte_limit_where_sizes_are_not_known(tmp_path: Path) -> None:
    """A byte limit works on manifests of release 0.20, which have no file sizes."""
    table = str(tmp_path / "t.lance")
    made = lance.write_dataset(rows(30), table, max_rows_per_file=10).snapshot.manifest
    bare = [replace(each, files=(replace(each.files[0], file_size_bytes=0),)) for each in made.fragments]
    Path(made.path).write_bytes(encode_manifest(replace(made, fragments=tuple(bare))))
    dataset = lance.dataset(table)
    assert [file.file_size_bytes for each in dataset.snapshot.manifest.fragments for file in each.files] == [0, 0, 0]
    assert dataset.optimize.compact_files(max_source_bytes=1).fragments_removed == 0
    assert dataset.optimize.compact_files(max_source_bytes=1 << 30).fragments_removed == 3
