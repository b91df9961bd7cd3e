"""Tests of deletion files of many fragments, which are written together or apart."""

from __future__ import annotations

import os
from pathlib import Path

import lance as reference
import pyarrow as pa
import pytest

import lance_dataset as lance
from lance_dataset.changes.fragments import masks


@pytest.mark.parametrize("slow", [-1.0, 1e9])
def test_deletion_files_of_many_fragments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slow: float) -> None:
    """The rest is written by several threads if the first files show that the disk is slow."""
    monkeypatch.setattr(masks, "_SLOW", slow)
    path = str(tmp_path / "t")
    dataset = lance.write_dataset(pa.table({"a": range(300)}), path, max_rows_per_file=10)
    dataset.delete("a % 10 = 3 or a < 20")
    dataset.delete("a % 10 in (3, 4) and a > 50")
    left = [number for number in range(20, 300) if number % 10 != 3 and not (number % 10 == 4 and number > 50)]
    assert reference.dataset(path).to_table()["a"].to_pylist() == left
    assert len(os.listdir(tmp_path / "t" / "_deletions")) == 28 + 25


def test_a_failure_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masks, "_SLOW", -1.0)

    def fail(*_: object) -> None:
        raise OSError("the disk is full")

    dataset = lance.write_dataset(pa.table({"a": range(300)}), tmp_path / "t", max_rows_per_file=10)
    monkeypatch.setattr(masks, "mask_rows", fail)
    with pytest.raises(OSError, match="full"):
        dataset.delete("a % 10 = 3")
    assert os.listdir(tmp_path / "t" / "_deletions") == []
    assert dataset.count_rows() == 300
