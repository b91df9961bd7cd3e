"""Tests of many processes of both implementations that change one dataset at the same time: nothing is lost.

Small by default; ``make stress`` runs 16 processes, and more kinds of work.
"""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from support.processes import all_changes
from support.processes.many_writers import OURS, REFERENCE, ROWS, Outcome, check_history, run
from support.reference.both_read import assert_both_read

import lance_dataset

SEED = 20240817
MIXED = [OURS, REFERENCE, OURS, REFERENCE]
TURNS = 8


def started(path: Path, count: int, stable: bool = False) -> set[int]:
    ids = range(count)
    table = pa.table({"id": pa.array(ids, pa.int64())})
    lance_dataset.write_dataset(table, path, max_rows_per_file=max(count // 3, 1), enable_stable_row_ids=stable)
    return set(ids)


def check(path: Path, outcome: Outcome, start: set[int]) -> set[int]:
    print(f"seed {SEED}: {outcome.summary()}")
    expected = check_history(
        outcome.commits,
        {1: start},
        lambda version: lance_dataset.dataset(path, version=version).to_table()["id"].to_pylist(),
    )
    assert set(assert_both_read(path)["id"].to_pylist()) == expected
    assert lance.dataset(path).version == 1 + len(outcome.commits)
    return expected


def test_appends(tmp_path: Path) -> None:
    start = started(tmp_path / "t", 5)
    outcome = run(tmp_path / "t", "append", MIXED, TURNS, seed=SEED)
    assert len(outcome.commits) == len(MIXED) * TURNS
    assert len(check(tmp_path / "t", outcome, start)) == 5 + len(MIXED) * TURNS * ROWS


@pytest.mark.parametrize(("work", "stable"), [("mixed", True), ("overlapping", False)])
def test_deletes(tmp_path: Path, work: str, stable: bool) -> None:
    start = started(tmp_path / "t", 3000, stable)
    check(tmp_path / "t", run(tmp_path / "t", work, MIXED, TURNS, seed=SEED), start)


def test_one_of_all_creates(tmp_path: Path) -> None:
    outcome = run(tmp_path / "t", "create", [OURS] * 3, 1)
    assert [commit.version for commit in outcome.commits] == [1], outcome
    assert len(outcome.refused) == 2
    assert tuple(assert_both_read(tmp_path / "t")["id"].to_pylist()) == outcome.commits[0].added


def test_creation_beside_the_reference(tmp_path: Path) -> None:
    """This package creates version 1 or nothing; the reference may replace a dataset that appeared meanwhile."""
    outcome = run(tmp_path / "t", "create", [OURS, REFERENCE, OURS], 1)
    assert len(outcome.commits) + len(outcome.refused) == 3
    assert all(commit.version == 1 for commit in outcome.commits if commit.library == OURS), outcome
    assert [commit.version for commit in outcome.commits] == list(range(1, 1 + len(outcome.commits)))
    for commit in outcome.commits:
        found = lance_dataset.dataset(tmp_path / "t", version=commit.version).to_table()["id"].to_pylist()
        assert tuple(found) == commit.added


def test_one_creates_and_the_others_append(tmp_path: Path) -> None:
    outcome = run(tmp_path / "t", "create or append", [OURS] * 3, 1)
    assert not outcome.refused
    assert [commit.version for commit in outcome.commits] == [1, 2, 3]
    expected = {number for commit in outcome.commits for number in commit.added}
    assert set(assert_both_read(tmp_path / "t")["id"].to_pylist()) == expected


def test_all_changes(tmp_path: Path) -> None:
    """Appends, deletes, updates, merges, compaction, cleanup, tags and branches at once."""
    path = str(tmp_path / "t")
    all_changes.create(path, lance_dataset)
    made = all_changes.run(path, MIXED, 15, seed=SEED, age=dt.timedelta(seconds=20))
    print(made.summary())
    all_changes.check(path, made, lance_dataset, lance, versions=10)
