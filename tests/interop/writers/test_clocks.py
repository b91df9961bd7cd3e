"""Tests of writers whose clocks are hours or days apart: order, tags, cleanup, and files of commits in progress."""

from __future__ import annotations

import datetime as dt
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from support.processes.clocked import Clocked, all_clocked
from support.reference.both_read import assert_both_read

import lance_dataset

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="sets clocks of processes, on Linux")

OURS, REFERENCE = "lance_dataset", "lance"
HOURS = dt.timedelta(hours=1)
APPEND = "lance.write_dataset(pa.table({'id': [id]}), path, mode='append').version"


@pytest.fixture(scope="module")
def writers() -> Iterator[list[Clocked]]:
    clocks = [(OURS, 6 * HOURS), (REFERENCE, -6 * HOURS), (OURS, -6 * HOURS), (REFERENCE, 6 * HOURS), (OURS, 0 * HOURS)]
    with all_clocked(*clocks) as processes:
        for process in processes:
            assert abs(process.run("time.time()") - time.time() - process.ahead.total_seconds()) < 60
        yield processes


@pytest.fixture(scope="module")
def fast() -> Iterator[Clocked]:
    """Process of this package with a clock that is ten days ahead."""
    with Clocked(OURS, dt.timedelta(days=10)) as process:
        yield process


def table(path: Path, count: int = 1) -> str:
    for each in range(count):
        lance_dataset.write_dataset(pa.table({"id": [each]}), path, mode="append" if each else "create")
    return str(path)


def ids(path: str, version: int | str | None = None) -> list[int]:
    return sorted(lance_dataset.dataset(path, version=version).to_table()["id"].to_pylist())


def test_order_of_versions(tmp_path: Path, writers: list[Clocked]) -> None:
    path = table(tmp_path / "t")
    made = {1: [0]}
    for turn in range(3):
        for number, writer in enumerate(writers):
            id = turn * 10 + number + 1
            version = writer.run(APPEND, path=path, id=id)
            assert version == max(made) + 1
            made[version] = sorted([*made[version - 1], id])
            writer.run("lance.dataset(path).tags.create(name, version)", path=path, name=f"v{version}", version=version)
    for version, expected in made.items():
        assert ids(path, version) == expected
    assert [each["version"] for each in lance_dataset.dataset(path).versions()] == list(made)
    assert {name: ids(path, name) for name in lance.dataset(path).tags.list()} == {
        f"v{v}": made[v] for v in made if v > 1
    }
    assert sorted(assert_both_read(tmp_path / "t")["id"].to_pylist()) == made[max(made)]


def test_branches_of_all_clocks(tmp_path: Path, writers: list[Clocked]) -> None:
    path = table(tmp_path / "t")
    for number, writer in enumerate(writers):
        writer.run("lance.dataset(path).create_branch(name) and None", path=path, name=f"b{number}")
    for number, writer in enumerate(writers):
        other = f"b{(number + 1) % len(writers)}"
        where = lance_dataset.dataset(path).checkout_version((other, None)).uri
        writer.run(APPEND, path=where, id=100 + number)
    for number in range(len(writers)):
        branch = lance_dataset.dataset(path).checkout_version((f"b{(number + 1) % len(writers)}", None))
        assert sorted(branch.to_table()["id"].to_pylist()) == [0, 100 + number]


def test_cleanup_keeps_what_a_slow_clock_made(tmp_path: Path, writers: list[Clocked]) -> None:
    """A version that was made a moment ago has the date of six hours ago."""
    path = table(tmp_path / "t")
    slow, right = writers[2], writers[4]
    version = slow.run(APPEND, path=path, id=1)
    right.run(APPEND, path=path, id=2)
    right.run("lance.dataset(path).cleanup_old_versions(older_than=dt.timedelta(hours=1)) and None", path=path)
    assert ids(path, version) == [0, 1]
    assert ids(path, 1) == [0]


def test_cleanup_by_a_fast_clock(tmp_path: Path, fast: Clocked) -> None:
    path = table(tmp_path / "t", 3)
    stats = "lance.dataset(path).cleanup_old_versions(older_than=dt.timedelta(days=1)).old_versions"
    assert fast.run(stats, path=path) == 0
    assert [ids(path, version) for version in (1, 2, 3)] == [[0], [0, 1], [0, 1, 2]]
    # the default, two weeks, and an age of nothing
    assert fast.run(stats.replace("older_than=dt.timedelta(days=1)", ""), path=path) == 0
    lance_dataset.dataset(path).cleanup_old_versions(older_than=dt.timedelta(0))
    assert [each["version"] for each in lance_dataset.dataset(path).versions()] == [3]


@pytest.mark.parametrize("library", [lance_dataset, lance])
def test_fast_clock_keeps_files_of_a_commit_in_progress(tmp_path: Path, fast: Clocked, library: object) -> None:
    """Files that no version refers to are removed after a week, and this clock is ten days ahead."""
    path = table(tmp_path / "t", 2)
    fragments = library.fragment.write_fragments(pa.table({"id": [7]}), path)  # type: ignore[attr-defined]
    fast.run("lance.dataset(path).cleanup_old_versions(retain_versions=1) and None", path=path)
    operation = library.LanceOperation.Append(fragments)  # type: ignore[attr-defined]
    library.LanceDataset.commit(path, operation, read_version=2)  # type: ignore[attr-defined]
    assert ids(path) == [0, 1, 7]


def test_automatic_cleanup_by_a_fast_clock(tmp_path: Path, fast: Clocked) -> None:
    path = str(tmp_path / "t")
    options = {"interval": 1, "older_than_seconds": 3600}
    lance_dataset.write_dataset(pa.table({"id": [0]}), path, auto_cleanup_options=options)
    for id in (1, 2, 3):
        lance_dataset.write_dataset(pa.table({"id": [id]}), path, mode="append")
    fast.run(APPEND, path=path, id=4)
    assert [ids(path, version)[-1] for version in range(1, 6)] == [0, 1, 2, 3, 4]


def test_version_from_the_future_does_not_keep_later_ones(tmp_path: Path, fast: Clocked) -> None:
    path = table(tmp_path / "t")
    fast.run(APPEND, path=path, id=1)
    lance_dataset.write_dataset(pa.table({"id": [2]}), path, mode="append")
    lance_dataset.write_dataset(pa.table({"id": [3]}), path, mode="append")
    lance_dataset.dataset(path).cleanup_old_versions(older_than=dt.timedelta(0))
    assert [each["version"] for each in lance_dataset.dataset(path).versions()] == [2, 4]
    assert ids(path) == [0, 1, 2, 3]
