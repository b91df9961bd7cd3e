"""Tests of row addresses: 32 bits of fragment id, 32 bits of row offset."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import lance_dataset as lance
from lance_dataset.io.resolve import resolve
from lance_dataset.table.manifest import encode_manifest, read_manifest
from lance_dataset.table.versions import locate_version


@pytest.mark.parametrize("fragment_id", [0, 2**31 - 1, 2**31, 2**32 - 1])
def test_large_fragment_ids(tmp_path: Path, fragment_id: int) -> None:
    """Addresses are unsigned, so large fragment ids work."""
    path = tmp_path / "t"
    lance.write_dataset(pa.table({"a": [1, 2, 3]}), path)
    store, root = resolve(str(path))
    name = locate_version(store, root, 1)
    manifest = read_manifest(store, name)
    moved = replace(manifest, fragments=(replace(manifest.fragments[0], id=fragment_id),), max_fragment_id=fragment_id)
    store.put(name, encode_manifest(moved))
    found = lance.dataset(path).to_table(with_row_id=True, with_row_address=True, filter="a > 1")
    assert found["_rowid"].to_pylist() == [(fragment_id << 32) + 1, (fragment_id << 32) + 2]
    assert found["_rowaddr"].equals(found["_rowid"])


@pytest.mark.parametrize(
    ("offset", "limit"), [(0, 2), (9, 2), (10, 2), (11, None), (57, 5), (59, 1), (60, 1), (99, None)]
)
def test_an_offset_skips_fragments_without_opening_them(tmp_path: Path, offset: int, limit: int | None) -> None:
    dataset = lance.write_dataset(pa.table({"a": range(80)}), tmp_path / "t", max_rows_per_file=10)
    dataset.delete("a % 4 = 1")
    live = [number for number in range(80) if number % 4 != 1]
    dataset = lance.dataset(tmp_path / "t")
    assert dataset.to_table(offset=offset, limit=limit)["a"].to_pylist() == live[offset:][:limit]
    first = tmp_path / "t" / "data" / dataset.get_fragments()[0].data_files()[0].path
    first.unlink()
    reopened = lance.dataset(tmp_path / "t")
    if offset >= 8:  # live rows of the first fragment
        assert reopened.to_table(offset=offset, limit=limit)["a"].to_pylist() == live[offset:][:limit]
