"""Tests of crashes after every system call of every change, on a disk that guarantees no more than POSIX.

``LANCE_STRESS=1`` tries more random states, ``LANCE_STRESS_SEED`` sets the seed.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import os
import random
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import lance
import pyarrow as pa
import pytest
from support.crashes.crash_disk import Disk, Event, Tree, after_kill, after_power_loss, materialize, recorded, tree_of
from support.crashes.crash_operations import (
    OPERATIONS,
    Operation,
    Place,
    check_between,
    check_cleaned,
    check_goes_on,
    fitting,
    observe,
    operation_names,
    rows,
)
from support.tables.equality import assert_same

import lance_dataset
from lance_dataset.io.durable import forget_folders

THOROUGH = os.environ.get("LANCE_STRESS", "") not in ("", "0")
SEED = int(os.environ.get("LANCE_STRESS_SEED", "20240817"))
#: Random states for each moment; the number of states tried; and n, if this package, or the reference, writes to every
#: : n-th state.
RANDOM = 20 if THOROUGH else 2
STATES = 10**9 if THOROUGH else 30
GOES_ON = 1 if THOROUGH else 6
REFERENCE = 2 if THOROUGH else 12
T = TypeVar("T")
QUICK = {"storage_options": {"local_fsync": "false"}}


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """Yield the folder of the simulated disk, in memory if possible, as thousands of files are made and removed."""
    memory = Path("/dev/shm")
    above = memory if os.access(memory, os.W_OK) else tmp_path
    with tempfile.TemporaryDirectory(dir=above) as folder:
        path = Path(folder, "disk")
        path.mkdir()
        yield path


@pytest.fixture(params=operation_names())
def operation(request: pytest.FixtureRequest) -> Operation:
    return OPERATIONS[request.param]


def states_of(initial: Tree, events: list[Event], chance: random.Random) -> Iterator[tuple[str, bool, Tree]]:
    """Yield every different state that a crash during or just after the last call can leave."""
    seen = set()
    disk = Disk(initial)
    for number in range(len(events) + 1):
        done = number == len(events)
        moment = "after the end" if done else f"before call {number}, {events[number]}"
        for name, tree in [("killed", after_kill(disk)), *after_power_loss(disk, chance, RANDOM)]:
            key = (done, _digest(tree))
            if key not in seen:
                seen.add(key)
                yield f"{moment}: {name}", done, tree
        if not done:
            disk.apply(events[number])


def some_of(everything: Sequence[T], chance: random.Random) -> list[T]:
    """Return a sample of `STATES` elements, in their order."""
    chosen = chance.sample(range(len(everything)), min(STATES, len(everything)))
    return [everything[number] for number in sorted(chosen)]


def _digest(tree: Tree) -> bytes:
    digest = hashlib.blake2b()
    for path, content in sorted(tree.items()):
        digest.update(f"{path}\0{-1 if content is None else len(content)}\0".encode())
        digest.update(content or b"")
    return digest.digest()


def test_every_crash_point(operation: Operation, root: Path) -> None:
    chance = random.Random(SEED)
    quick = Place(str(root), QUICK)
    operation.prepare(quick)
    initial, before = tree_of(root), observe(quick)
    with recorded(root) as recording:
        operation.run(Place(str(root)))
    after = observe(quick)
    everything = list(states_of(initial, recording.events, chance))
    states = some_of(everything, chance)
    print(f"seed {SEED}: {len(recording.events)} calls, {len(states)} of {len(everything)} different states tried")
    for number, (name, done, tree) in enumerate(states):
        materialize(tree, root)
        with explained(name):
            seen = observe(quick)
            check_between(seen, before, after, done=done, removes=operation.removes)
            if operation.repair and not done:
                operation.repair(quick)
                seen = observe(quick)
            if number % GOES_ON == 0:
                check_goes_on(quick, seen)
                if number % REFERENCE == 0:
                    _reference_goes_on(quick)
                check_cleaned(quick)


#: Pairs of changes. The second starts in the state in which the first was killed.
PAIRS = [
    ("create", "create"),
    ("first append", "first append"),
    ("append", "append"),
    ("first delete", "first delete"),
    ("delete", "append"),
    ("compaction", "delete"),
    ("tag", "tag"),
    ("branch", "branch"),
]


@pytest.mark.parametrize(("first", "second"), PAIRS, ids=[" then ".join(pair) for pair in PAIRS])
def test_power_loss_after_the_work_of_two(first: str, second: str, root: Path) -> None:
    """After a killed change and a second one, a power failure leaves a valid dataset.

    The second change may rely on files that the first had not synced when it was killed.
    """
    chance = random.Random(SEED)
    quick = Place(str(root), QUICK)
    OPERATIONS[first].prepare(quick)
    initial, before = tree_of(root), observe(quick)
    with recorded(root) as recording:
        OPERATIONS[first].run(Place(str(root)))
    disk = Disk(initial)
    moments = set(some_of(range(len(recording.events)), chance))
    for number, event in enumerate(recording.events):
        if number not in moments:
            disk.apply(event)
            continue
        materialize(after_kill(disk), root)
        going_on = copy.deepcopy(disk)
        forget_folders("")  # the second is another process, which has not synced anything so far
        done = True
        with recorded(root, going_on):
            try:
                OPERATIONS[second].run(Place(str(root)))
            except (lance_dataset.errors.AlreadyExistsError, ValueError):
                done = False  # nothing was promised
        after = observe(quick)
        states = dict(after_power_loss(going_on, chance, RANDOM))
        for name, tree in states.items() if THOROUGH else list(states.items())[:1]:
            materialize(tree, root)
            with explained(f"first killed before call {number}, {event}; {name}"):
                check_between(observe(quick), after if done else before, after, done=done)
        disk.apply(event)


@contextlib.contextmanager
def explained(name: str) -> Iterator[None]:
    """Add the state of the disk to a failure."""
    try:
        yield
    except Exception as error:
        raise AssertionError(f"seed {SEED}, {name}: {type(error).__name__}: {error}") from error


def _reference_goes_on(place: Place) -> None:
    before = place.open().to_table(blob_handling="all_binary")
    for number in before["id"].to_pylist()[:: 1 + len(before) // 3]:  # by the index, if there is one
        assert lance.dataset(place.uri).count_rows(f"id = {number}") == 1
    new = fitting(rows(20_000, 3), before.schema)
    lance.write_dataset(fitting(rows(20_000, 3), place.open().schema), place.uri, mode="append")
    lance.dataset(place.uri).delete("id = 20001")
    expected = pa.concat_tables([before, new.take([0, 2])])
    assert_same(lance.dataset(place.uri).to_table(blob_handling="all_binary"), expected)
    assert_same(place.open().to_table(blob_handling="all_binary"), expected)
