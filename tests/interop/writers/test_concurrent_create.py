"""Tests of several processes that create one dataset at the same time."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from support.reference.both_read import assert_both_read

import lance_dataset

PROCESSES = 4
ROUNDS = 5

WRITER = """
import os, sys, time
import pyarrow as pa
import lance, lance_dataset

modules = {"ours": lance_dataset, "reference": lance}
for line in sys.stdin:
    name, mode, number, start, path = line.rstrip().split(" ", 4)
    data = pa.table({"id": pa.array(range(10 * int(number), 10 * int(number) + 10), pa.int64())})
    print("ready", flush=True)
    while not os.path.exists(start):
        time.sleep(0.0005)
    try:
        modules[name].write_dataset(data, path, mode=mode)
        print("done", flush=True)
    except OSError as error:
        print("exists" if "already exists" in str(error) else repr(error).replace(chr(10), " "), flush=True)
"""


class Race:
    """Processes that write to one place at the same moment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.count = 0
        command = [sys.executable, "-c", WRITER]
        self.processes = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for _ in range(PROCESSES)
        ]

    def run(self, names: list[str], mode: str) -> tuple[Path, list[str]]:
        """Run all processes, and return the dataset and the outcome of each write.

        Process n writes ten rows with ids from 10 n on.
        """
        self.count += 1
        path, start = self.folder / f"t{self.count}", self.folder / f"start{self.count}"
        for number, (name, process) in enumerate(zip(names, self.processes, strict=True)):
            assert process.stdin is not None
            process.stdin.write(f"{name} {mode} {number} {start} {path}\n")
            process.stdin.flush()
        assert [self._line(process) for process in self.processes] == ["ready"] * PROCESSES
        start.touch()
        return path, [self._line(process) for process in self.processes]

    def _line(self, process: subprocess.Popen[str]) -> str:
        assert process.stdout is not None
        return process.stdout.readline().strip()

    def close(self) -> None:
        for process in self.processes:
            process.communicate(timeout=60)


@pytest.fixture(scope="module")
def race(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Race]:
    made = Race(tmp_path_factory.mktemp("race"))
    yield made
    made.close()


#: Errors of a writer that found the dataset and saw it overwritten before its commit.
OVERWRITTEN = {
    "append": "is incompatible with concurrent transaction Overwrite",
    "overwrite": "was preempted by concurrent transaction Overwrite",
}


def check_done(results: dict[int, str], mode: str, rows: list[int]) -> None:
    """Check that every write of this package was done, or failed because of an overwrite and left no rows."""
    for number, result in results.items():
        if result != "done":
            assert OVERWRITTEN[mode] in result
            assert 10 * number not in rows


def rows_of(number: int) -> list[int]:
    return list(range(10 * number, 10 * number + 10))


def test_one_creator_wins(race: Race) -> None:
    for _ in range(ROUNDS):
        path, results = race.run(["ours"] * PROCESSES, "create")
        assert Counter(results) == {"done": 1, "exists": PROCESSES - 1}
        assert assert_both_read(path)["id"].to_pylist() == rows_of(results.index("done"))
        assert lance.dataset(path).version == 1
        assert len(list((path / "data").iterdir())) == 1


def test_one_of_ours_creates_at_most(race: Race) -> None:
    """At most one process of this package creates the dataset.

    More than one process may succeed: the reference overwrites a dataset that appeared in the meantime.
    """
    names = ["ours", "reference"] * (PROCESSES // 2)
    for _ in range(ROUNDS):
        path, results = race.run(names, "create")
        ours = [result for name, result in zip(names, results, strict=True) if name == "ours"]
        assert Counter(ours) in ({"exists": 2}, {"exists": 1, "done": 1})
        versions = lance.dataset(path).version
        assert versions == results.count("done")
        assert assert_both_read(path)["id"].to_pylist() in [rows_of(number) for number in range(PROCESSES)]


def test_appends_all_arrive(race: Race) -> None:
    for _ in range(ROUNDS):
        path, results = race.run(["ours"] * PROCESSES, "append")
        assert set(results) == {"done"}
        assert sorted(assert_both_read(path)["id"].to_pylist()) == list(range(10 * PROCESSES))
        assert lance.dataset(path).version == PROCESSES
        assert len(list((path / "data").iterdir())) == PROCESSES


def test_overwrites_leave_one(race: Race) -> None:
    for _ in range(ROUNDS):
        path, results = race.run(["ours"] * PROCESSES, "overwrite")
        rows = assert_both_read(path)["id"].to_pylist()
        check_done(dict(enumerate(results)), "overwrite", rows)
        assert rows in [rows_of(number) for number, result in enumerate(results) if result == "done"]
        assert lance.dataset(path).version == results.count("done")


def test_ours_go_on_next_to_the_reference(race: Race) -> None:
    """Appends of this package succeed beside appends of the reference.

    The latter overwrite a dataset that appeared after the search for it.
    """
    for turn in range(ROUNDS):
        names, mode = ["ours", "reference"] * (PROCESSES // 2), ("append", "overwrite")[turn % 2]
        path, results = race.run(names, mode)
        got = assert_both_read(path)["id"].to_pylist()
        whole = [number for number in range(PROCESSES) if 10 * number in got]
        assert sorted(got) == [row for number in whole for row in rows_of(number)]
        check_done({number: results[number] for number, name in enumerate(names) if name == "ours"}, mode, got)


def test_a_new_dataset_is_replaced_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer that found no dataset appends to the one that others made, however often they replaced it."""
    path = tmp_path / "t"
    target = importlib.import_module("lance_dataset.changes.write.target")
    read_newest, looks = target.read_newest, []

    def replaced_after(*args: object) -> object:
        newest = read_newest(*args)
        looks.append(newest.version)
        if len(looks) < 3:
            others = pa.table({"id": pa.array(rows_of(len(looks)), pa.int64())})
            lance.write_dataset(others, path, mode="overwrite")
        return newest

    write_files = importlib.import_module("lance_dataset.changes.write.writing").write_fragment_files

    def created_before(*args: object, **options: object) -> object:
        lance.write_dataset(pa.table({"id": pa.array([1000], pa.int64())}), path)
        return write_files(*args, **options)

    monkeypatch.setattr(target, "read_newest", replaced_after)
    monkeypatch.setattr(
        importlib.import_module("lance_dataset.changes.write.writing"), "write_fragment_files", created_before
    )
    made = lance_dataset.write_dataset(pa.table({"id": pa.array(rows_of(0), pa.int64())}), path, mode="append")
    assert looks == [1, 2, 3]
    assert made.version == 4
    assert sorted(assert_both_read(path)["id"].to_pylist()) == rows_of(0) + rows_of(2)


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_another_table_appears(tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a dataset with other columns appears before the commit, an append fails, and an overwrite replaces it."""
    path = tmp_path / "t"
    write_files = importlib.import_module("lance_dataset.changes.write.writing").write_fragment_files

    def slow(*args: object, **options: object) -> object:
        lance.write_dataset(pa.table({"other": ["x"]}), path)
        return write_files(*args, **options)

    monkeypatch.setattr(importlib.import_module("lance_dataset.changes.write.writing"), "write_fragment_files", slow)
    data = pa.table({"id": pa.array(range(10), pa.int64())})
    if mode == "overwrite":
        assert lance_dataset.write_dataset(data, path, mode=mode).version == 2
        assert assert_both_read(path).equals(data)
        return
    with pytest.raises(lance_dataset.errors.LanceError, match="id"):
        lance_dataset.write_dataset(data, path, mode=mode)
    assert assert_both_read(path).to_pydict() == {"other": ["x"]}
    assert len(list((path / "data").iterdir())) == 1
