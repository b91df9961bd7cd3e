"""Zone maps and Bloom-filter indices of tables that change."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from support.tables.zone_table import (
    ZONE_FILTERS,
    ZONE_KINDS,
    check_answers,
    content_of,
    is_used,
    segments_of,
    zone_rows,
    zone_table,
)

import lance_dataset


@pytest.fixture(autouse=True)
def checking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use indices wherever they answer, and compare each answer with the scan."""
    monkeypatch.setenv("LANCE_CHECK_INDICES", "1")


@pytest.mark.parametrize("optimizer", [lance, lance_dataset], ids=lambda module: module.__name__)
@pytest.mark.parametrize("stable", [False, True])
def test_answers_stay_right_through_changes(tmp_path: Path, stable: bool, optimizer: Any) -> None:
    dataset = zone_table(tmp_path, stable=stable)
    keyed = pa.table({"c": pa.array([0, None]), "k": pa.array([7, 7]), "s": ["a9", None], "n": pa.array([2, 99_999])})
    steps = [
        lambda: dataset.insert(zone_rows(5000, 100)),
        lambda: dataset.update({"c": "0", "s": "NULL"}, where="n BETWEEN 20 AND 40"),
        lambda: dataset.delete("c = 0 AND n > 30"),
        lambda: optimizer.dataset(tmp_path).optimize.optimize_indices(),
        lambda: dataset.merge_insert("n").when_matched_update_all().when_not_matched_insert_all().execute(keyed),
        lambda: dataset.update({"k": "3"}, where="n = 300"),
        lambda: dataset.optimize.compact_files(),
        lambda: dataset.update({"c": "7"}, where="n = 5001"),
        lambda: optimizer.dataset(tmp_path).optimize.optimize_indices(),
        lambda: lance.write_dataset(zone_rows(7000, 50), tmp_path, mode="append"),
        lambda: optimizer.dataset(tmp_path).optimize.optimize_indices(num_indices_to_merge=0),
        lambda: dataset.insert(zone_rows(8000, 50)),
        lambda: optimizer.dataset(tmp_path).optimize.optimize_indices(num_indices_to_merge=9),
    ]
    for step in steps:
        step()
        check_answers(tmp_path, ZONE_FILTERS)
        dataset = lance_dataset.dataset(tmp_path)


@pytest.mark.parametrize("optimizer", [lance, lance_dataset], ids=lambda module: module.__name__)
def test_answers_stay_right_after_deferred_compaction(tmp_path: Path, optimizer: Any) -> None:
    """Zones of fragments that were compacted name the old addresses of rows, also in segments made afterwards."""
    dataset = zone_table(tmp_path, stable=False)
    dataset.optimize.compact_files(defer_index_remap=True)
    for step in range(2):
        check_answers(tmp_path, ZONE_FILTERS)
        dataset = lance_dataset.dataset(tmp_path)
        assert is_used(dataset, "c < 20")
        dataset.delete(f"n % 10 = {step}")
        dataset.insert(zone_rows(2000 + 1000 * step, 90))
        check_answers(tmp_path, ZONE_FILTERS)
        optimizer.dataset(tmp_path).optimize.optimize_indices()
        check_answers(tmp_path, ZONE_FILTERS)
        lance_dataset.dataset(tmp_path).optimize.compact_files(defer_index_remap=True)


@pytest.mark.parametrize("stable", [False, True])
def test_optimized_files_are_those_of_the_reference(tmp_path: Path, stable: bool) -> None:
    """Zones of old fragments are taken over, with the rows that were deleted since; the other rows are added."""
    zone_table(tmp_path / "ours", stable=stable)
    for step in range(3):
        dataset = lance_dataset.dataset(tmp_path / "ours")
        dataset.insert(zone_rows(1000 * (step + 1), 100))
        dataset.delete(f"n % 10 = {step}")
        dataset.update({"c": "1"}, where=f"n = {50 + step}")
        if step == 1:
            dataset.optimize.compact_files()
        shutil.rmtree(tmp_path / "theirs", ignore_errors=True)
        shutil.copytree(tmp_path / "ours", tmp_path / "theirs")
        for folder, module in (("ours", lance_dataset), ("theirs", lance)):
            module.dataset(tmp_path / folder).optimize.optimize_indices()
        ours, theirs = (
            sorted(
                (each.name, sorted(each.fragment_ids), each.metadata.dataset_version)
                for each in segments_of(tmp_path / folder)
            )
            for folder in ("ours", "theirs")
        )
        assert ours == theirs
        if step != 1:
            assert sorted(map(repr, content_of(tmp_path / "ours"))) == sorted(
                map(repr, content_of(tmp_path / "theirs"))
            )
        check_answers(tmp_path / "ours", ZONE_FILTERS)


def test_segments_that_are_built_apart(tmp_path: Path) -> None:
    dataset = lance_dataset.write_dataset(zone_rows(0, 400), tmp_path, max_rows_per_file=100)
    for column, kind in ZONE_KINDS:
        name = f"x{column}"
        parts = [
            dataset.create_index_uncommitted(column, kind.upper(), name=name, fragment_ids=ids) for ids in ([2], [0, 1])
        ]
        dataset.commit_existing_index_segments(name, column, parts)
        check_answers(tmp_path, ZONE_FILTERS)
        last = dataset.create_index_uncommitted(column, kind.upper(), name=name, fragment_ids=[3], replace=True)
        whole = dataset.merge_existing_index_segments([*parts, last])
        dataset.commit_existing_index_segments(name, column, [whole])
        check_answers(tmp_path, ZONE_FILTERS)
