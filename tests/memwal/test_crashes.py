"""Tests of kills and power failures between any two system calls of a writer, of merges, and of collections.

The disk is simulated and guarantees no more than POSIX, see `support.crashes.crash_disk`. ``LANCE_STRESS=1`` tries all
states, ``LANCE_STRESS_SEED`` sets the seed.
"""

from __future__ import annotations

import datetime as dt
import os
import random
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import lance
import pytest
from support.crashes.crash_disk import Disk, Tree, after_kill, after_power_loss, materialize, recorded, tree_of
from support.memwal.shards import SHARD, keys, new_table, rows, values

import lance_dataset
from lance_dataset.io.durable import forget_folders

THOROUGH = os.environ.get("LANCE_STRESS", "") not in ("", "0")
SEED = int(os.environ.get("LANCE_STRESS_SEED", "7"))
STATES = 10**9 if THOROUGH else 24
RANDOM = 8 if THOROUGH else 2
QUICK = {"storage_options": {"local_fsync": "false"}}
NOW = dt.timedelta(0)

Model = dict[int, str]
Steps = list[tuple[Callable[[], object], Callable[[Model], Model]]]


@pytest.fixture
def root() -> Iterator[Path]:
    """Yield the folder of the simulated disk, in memory if possible."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        path = Path(folder, "disk")
        path.mkdir()
        yield path


def unchanged(model: Model) -> Model:
    return model


def puts(path: Path) -> Steps:
    """Return a new shard, puts, a flush, and a close."""
    writers: list[lance_dataset.mem_wal.ShardWriter] = []
    return [
        (lambda: writers.append(lance_dataset.dataset(path).mem_wal_writer(SHARD)), unchanged),
        (lambda: writers[0].put(rows({1: "one", 2: "one"})), lambda model: model | {1: "one", 2: "one"}),
        (lambda: writers[0].delete(keys(0)), lambda model: {key: text for key, text in model.items() if key}),
        (lambda: writers[0].flush(), unchanged),
        (lambda: writers[0].put(rows({1: "two"})), lambda model: model | {1: "two"}),
        (lambda: writers[0].close(), unchanged),
    ]


def rotations(path: Path) -> Steps:
    """Return puts that fill memtables, which are flushed while others are put."""
    writers: list[lance_dataset.mem_wal.ShardWriter] = []

    def put(new: Model) -> tuple[Callable[[], object], Callable[[Model], Model]]:
        return lambda: writers[0].put(rows(new)), lambda model: model | new

    return [
        (lambda: writers.append(lance_dataset.dataset(path).mem_wal_writer(SHARD, max_memtable_rows=2)), unchanged),
        put({1: "one", 2: "one"}),
        put({1: "two"}),
        put({3: "three"}),
        (lambda: writers[0].delete(keys(2)), lambda model: {key: text for key, text in model.items() if key != 2}),
        (lambda: writers[0].close(), unchanged),
    ]


def claims(path: Path) -> Steps:
    """Return a claim of a shard with a log, its replay, and a put."""
    writers: list[lance_dataset.mem_wal.ShardWriter] = []
    before = lance_dataset.dataset(path, **QUICK).mem_wal_writer(SHARD)  # type: ignore[arg-type]
    before.put(rows({5: "log"}))
    before.flush()
    before.put(rows({6: "log"}))
    before.abort()
    return [
        (lambda: writers.append(lance_dataset.dataset(path).mem_wal_writer(SHARD)), unchanged),
        (lambda: writers[0].put(rows({6: "new"})), lambda model: model | {6: "new"}),
        (lambda: writers[0].close(), unchanged),
    ]


def merges(path: Path) -> Steps:
    """Return a merge of two SSTables, the removal of old versions, and a collection of files."""
    with lance_dataset.dataset(path, **QUICK).mem_wal_writer(SHARD) as writer:  # type: ignore[arg-type]
        writer.put(rows({5: "log", 0: "log"}))
        writer.flush()
        writer.delete(keys(3))
    return [
        (lambda: lance_dataset.dataset(path).merge_mem_wal(), unchanged),
        (lambda: lance_dataset.dataset(path).cleanup_old_versions(NOW), unchanged),
        (lambda: lance_dataset.dataset(path).collect_mem_wal(older_than=NOW), unchanged),
    ]


STARTS: dict[Callable[[Path], Steps], Model] = {
    puts: {},
    rotations: {},
    claims: {5: "log", 6: "log"},
    merges: {5: "log", 0: "log"},
}


@pytest.mark.parametrize("work", [puts, rotations, claims, merges])
def test_every_crash_point(root: Path, work: Callable[[Path], Steps]) -> None:
    """Whatever was acknowledged is there exactly once, and the shard goes on, here and in pylance."""
    path, chance = root / "t", random.Random(SEED)
    model = dict.fromkeys(range(4), "base")
    new_table(path, model, **QUICK)
    steps = work(path)
    model |= STARTS[work]
    if work is merges:
        del model[3]
    models, marks = [model], []
    initial = tree_of(root)
    forget_folders("")
    with recorded(root) as recording:
        for step, change in steps:
            step()
            marks.append(len(recording.events))
            models.append(change(models[-1]))
    states = list(_states(initial, recording.events, chance))
    for number in sorted(chance.sample(range(len(states)), min(STATES, len(states)))):
        done, name, tree = states[number]
        finished = sum(mark <= done for mark in marks)
        allowed = models[finished : finished + 2]
        materialize(tree, root)
        forget_folders("")
        try:
            _check(path, allowed, by_pylance=number % 5 == 0)
        except Exception as error:
            raise AssertionError(f"seed {SEED}, {work.__name__}, after {done} calls, {name}: {error}") from error


def test_merges_are_whole(root: Path) -> None:
    """After a crash of a merge with new, changed and deleted rows, the table itself has all of them or none."""
    path, model = root / "t", dict.fromkeys(range(4), "base")
    new_table(path, model, **QUICK)
    merge = merges(path)[0][0]
    expected = {0: "log", 1: "base", 2: "base", 5: "log"}
    initial, found = tree_of(root), []
    forget_folders("")
    with recorded(root) as recording:
        merge()
    disk = Disk(initial)
    for event in recording.events:
        disk.apply(event)
        materialize(after_kill(disk), root)
        found.append(values(lance_dataset.dataset(path).to_table()))
    committed = found.index(expected)
    assert found == [model] * committed + [expected] * (len(found) - committed)


def _states(initial: Tree, events: list[object], chance: random.Random) -> Iterator[tuple[int, str, Tree]]:
    disk = Disk(initial)
    for number in range(len(events) + 1):
        yield number, "killed", after_kill(disk)
        for name, tree in after_power_loss(disk, chance, RANDOM):
            yield number, name, tree
        if number < len(events):
            disk.apply(events[number])  # type: ignore[arg-type]


def _check(path: Path, allowed: list[Model], *, by_pylance: bool) -> None:
    report = lance_dataset.dataset(path).doctor()
    assert report.is_healthy, str(report)
    if by_pylance:
        with lance.dataset(str(path)).mem_wal_writer(SHARD) as theirs:
            theirs.put(rows({90: "theirs"}))
        allowed = [model | {90: "theirs"} for model in allowed]
    writer = lance_dataset.dataset(path, **QUICK).mem_wal_writer(SHARD)  # type: ignore[arg-type]
    found = values(writer.lsm_scanner().to_table())
    assert found in allowed, f"{found} must be one of {allowed}"
    writer.put(rows({91: "ours"}))
    writer.close()
    dataset = lance_dataset.dataset(path, **QUICK)  # type: ignore[arg-type]
    dataset.merge_mem_wal()
    assert values(dataset.to_table()) == found | {91: "ours"}
