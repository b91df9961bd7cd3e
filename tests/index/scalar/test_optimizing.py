"""Optimization of scalar indices: segments and coverage are those of the reference, and answers stay right."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset.indices import IndexConfig

_KINDS = (("k", "BTREE"), ("b", "BITMAP"), ("l", "LABEL_LIST"))
_FILTERS = ("k = 17", "k < 40", "k IS NULL", "b = 2", "b != 2", "array_has_any(l, [1, 5])", "k = 450 OR b = 1")


def _table(start: int, count: int) -> pa.Table:
    numbers = range(start, start + count)
    keys = pa.array([None if n % 19 == 7 else n for n in numbers], pa.int64())
    return pa.table({"k": keys, "b": [n % 4 for n in numbers], "l": [[n % 9, n % 7] for n in numbers]})


@pytest.fixture(autouse=True)
def checking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use indices wherever they answer, and compare each answer with the scan."""
    monkeypatch.setenv("LANCE_CHECK_INDICES", "1")


def _segments(path: Path) -> list[tuple[str, list[tuple[list[int], int, int]]]]:
    found = []
    for each in lance_dataset.dataset(path).describe_indices():
        segments = [
            (sorted(part.fragment_ids), part.index_version, part.dataset_version_at_last_update)
            for part in each.segments
        ]
        found.append((each.name, sorted(segments)))
    return found


def _check(path: Path) -> None:
    ours, theirs = lance_dataset.dataset(path), lance.dataset(path)
    for each in _FILTERS:
        expected = ours.scanner(filter=each, use_scalar_index=False).count_rows()
        assert ours.count_rows(each) == theirs.count_rows(each) == expected, each


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("options", [{}, {"num_indices_to_merge": 0}, {"num_indices_to_merge": 5}], ids=str)
def test_segments_are_those_of_the_reference(tmp_path: Path, options: dict[str, Any], stable: bool) -> None:
    path, other = tmp_path / "ours", tmp_path / "theirs"
    dataset = lance_dataset.write_dataset(_table(0, 300), path, max_rows_per_file=100, enable_stable_row_ids=stable)
    for column, kind in _KINDS:
        dataset.create_scalar_index(column, IndexConfig("btree", {"zone_size": 64}) if kind == "BTREE" else kind)
    for step in range(3):
        dataset = lance_dataset.write_dataset(_table(300 + 100 * step, 100), path, mode="append")
        dataset.delete(f"k % 5 = {step}")
        dataset.update({"b": "9"}, where=f"k = {20 + step}")
        shutil.rmtree(other, ignore_errors=True)
        shutil.copytree(path, other)
        lance.dataset(other).optimize.optimize_indices(**options)
        version = dataset.version
        dataset.optimize.optimize_indices(**options)
        assert dataset.version == version + 1
        assert _segments(path) == _segments(other)
        _check(path)
    assert not list(path.glob("_indices/*/*.tmp"))


def test_the_page_size_is_kept(tmp_path: Path) -> None:
    dataset = lance_dataset.write_dataset(_table(0, 300), tmp_path)
    dataset.create_scalar_index("k", IndexConfig("btree", {"zone_size": 50}))
    dataset.insert(_table(300, 300))
    dataset.optimize.optimize_indices()
    assert dataset.stats.index_stats("k_idx")["indices"][0]["num_pages"] == 12


def test_nothing_to_do_is_no_commit(tmp_path: Path) -> None:
    dataset = lance_dataset.write_dataset(_table(0, 50), tmp_path)
    dataset.optimize.optimize_indices()
    dataset.create_scalar_index("k", "BTREE")
    for options in ({}, {"index_names": []}, {"index_names": ["other"]}, {"num_indices_to_merge": 3}):
        dataset.optimize.optimize_indices(**options)
    assert dataset.version == 2
    dataset.insert(_table(50, 50))
    dataset.optimize.optimize_indices(index_names=["other"], unknown=5)
    assert dataset.version == 3
    dataset.optimize.optimize_indices(index_names=["k_idx"], retrain=True)
    assert dataset.version == 4


def test_untrained_indices_are_trained(tmp_path: Path) -> None:
    dataset = lance_dataset.write_dataset(_table(0, 1).slice(0, 0), tmp_path)
    for column, kind in _KINDS:
        dataset.create_scalar_index(column, kind)
    dataset.insert(_table(0, 200))
    dataset.optimize.optimize_indices()
    assert [each.num_rows_indexed for each in dataset.describe_indices()] == [200, 200, 200]
    _check(tmp_path)


def test_indices_of_the_reference_are_optimized(tmp_path: Path) -> None:
    lance.write_dataset(_table(0, 300), tmp_path, max_rows_per_file=100)
    for column, kind in _KINDS:
        lance.dataset(tmp_path).create_scalar_index(column, kind)
    lance.write_dataset(_table(300, 100), tmp_path, mode="append")
    lance_dataset.dataset(tmp_path).optimize.optimize_indices()
    _check(tmp_path)
    lance.write_dataset(_table(400, 100), tmp_path, mode="append")
    lance.dataset(tmp_path).optimize.optimize_indices()
    _check(tmp_path)


def test_bad_input(tmp_path: Path) -> None:
    dataset = lance_dataset.write_dataset(pa.table({"s": ["some words"] * 9, "n": np.arange(9)}), tmp_path)
    lance.dataset(tmp_path).create_scalar_index("s", "INVERTED")
    dataset = lance_dataset.dataset(tmp_path)
    dataset.create_scalar_index("n", "BTREE")
    dataset.insert(pa.table({"s": ["more"], "n": [9]}))
    with pytest.raises(ValueError, match="index_names"):
        dataset.optimize.optimize_indices(index_names="n_idx")
    with pytest.raises(OverflowError):
        dataset.optimize.optimize_indices(num_indices_to_merge=-1)
    dataset.optimize.optimize_indices(index_names=["n_idx"])
    assert dataset.version == 5
