"""Tests of object stores whose calls stop the writer, fail, or wrongly report a failure: each call of each change."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import pytest
from support.crashes.crash_operations import (
    OPERATIONS,
    Operation,
    Place,
    Seen,
    check_between,
    check_goes_on,
    observe,
    operation_names,
)
from support.stores.faulty_store import Crash, Failure, Fault, FaultyStore, copy_of, session_of

from lance_dataset.errors import LanceError
from lance_dataset.io.base import ObjectStore
from lance_dataset.io.memory import MemoryStore

THOROUGH = os.environ.get("LANCE_STRESS", "") not in ("", "0")
SEED = int(os.environ.get("LANCE_STRESS_SEED", "20240817"))
#: Calls of an operation that are tried in each way.
CALLS = 10**9 if THOROUGH else 3
#: Operations also tried with unordered listings, where a hint names the newest version.
UNORDERED = operation_names() if THOROUGH else ["create", "append", "delete behind others"]
BASE = "memory://base"


class Scene:
    """An operation, and the states before and after it."""

    def __init__(self, operation: Operation, in_order: bool) -> None:
        self.operation = operation
        self.in_order = in_order
        self.chance = random.Random(SEED)
        self.initial = MemoryStore()
        operation.prepare(place_in(self.initial))
        self.before = observe(place_in(self.initial))
        finished = copy_of(self.initial)
        counting = FaultyStore(finished, in_order=in_order)
        operation.run(place_in(counting))
        self.calls = counting.calls
        self.after = observe(place_in(finished))

    def faults(self, *kinds: tuple[str, bool]) -> Iterator[Fault]:
        """Return one fault for each call and kind, or a sample."""
        numbers = range(len(self.calls))
        for kind, after in kinds:
            some = self.chance.sample(numbers, CALLS) if len(numbers) > CALLS else numbers
            yield from (Fault(number, kind, after) for number in some)

    def attempt(self, fault: Fault) -> tuple[MemoryStore, FaultyStore, BaseException | None]:
        """Run the operation with a fault."""
        inner = copy_of(self.initial)
        store = FaultyStore(inner, fault, in_order=self.in_order)
        try:
            self.operation.run(place_in(store))
        except (Crash, LanceError, OSError, ValueError) as error:
            return inner, store, error
        return inner, store, None

    def check(self, inner: MemoryStore, done: bool) -> Seen:
        """Check the state that the operation left, and return what is seen."""
        place = place_in(inner)
        seen = observe(place)
        check_between(seen, self.before, self.after, done=done, removes=self.operation.removes)
        return seen


def place_in(store: ObjectStore) -> Place:
    return Place(BASE, {"session": session_of(store)})


@pytest.fixture(
    params=[*((name, True) for name in operation_names()), *((name, False) for name in UNORDERED)],
    ids=lambda given: f"{given[0]}{'' if given[1] else ', unordered'}",
)
def scene(request: pytest.FixtureRequest) -> Scene:
    name, in_order = request.param
    return Scene(OPERATIONS[name], in_order)


def test_writer_stopped_at_any_call(scene: Scene) -> None:
    for fault in scene.faults(("crash", False), ("crash", True), ("torn", False)):
        inner, store, error = scene.attempt(fault)
        context = f"seed {SEED}, {fault}: {scene.calls[fault.at]}"
        assert isinstance(error, Crash) or not store.dead, f"{context}: somebody went on after the end, {error!r}"
        try:
            seen = scene.check(inner, done=False)
            if scene.operation.repair:
                scene.operation.repair(place_in(inner))
            check_goes_on(place_in(inner), seen)
        except Exception as problem:
            raise AssertionError(f"{context}: {type(problem).__name__}: {problem}") from problem


def test_any_call_fails(scene: Scene) -> None:
    """If any call fails, the operation raises or succeeds in accordance with the dataset, and can be repeated."""
    kinds = (("fail", False), ("fail", True), ("broken", False), ("broken", True), ("exists", False))
    for fault in scene.faults(*kinds):
        inner, _, error = scene.attempt(fault)
        context = f"seed {SEED}, {fault}: {scene.calls[fault.at]}: {error!r}"
        try:
            if fault.kind != "exists" and error is not None:
                assert isinstance(error, OSError) or isinstance(error.__cause__, OSError)
            seen = scene.check(inner, done=error is None)
            if error is not None and seen.latest == scene.before.latest and seen.others == scene.before.others:
                if scene.operation.repair:
                    scene.operation.repair(place_in(inner))
                scene.operation.run(place_in(inner))
                check_between(
                    observe(place_in(inner)), scene.after, scene.after, done=True, removes=scene.operation.removes
                )
            else:
                if scene.operation.repair and error is not None:
                    scene.operation.repair(place_in(inner))
                check_goes_on(place_in(inner), seen)
        except Exception as problem:
            raise AssertionError(f"{context}: {type(problem).__name__}: {problem}") from problem


def test_repeated_request_is_no_conflict() -> None:
    """A put that is repeated because its answer was lost finds its own manifest, which is not a conflict."""
    scene = Scene(OPERATIONS["append"], True)
    [number] = [number for number, call in enumerate(scene.calls) if call.endswith(".manifest") and "put" in call]
    inner, _, error = scene.attempt(Fault(number, "exists"))
    assert error is None
    scene.check(inner, done=True)


@pytest.mark.parametrize(
    "name",
    [
        *("append", "overwrite", "delete", "delete behind others", "update", "update behind others", "merge"),
        *("merge of a column", "new column", "joined column", "column cast"),
        *("compaction", "compaction with indices", "compaction with indices that stay"),
    ],
)
def test_failures_leave_no_files(name: str) -> None:
    """Files are removed after one failed call."""
    scene = Scene(OPERATIONS[name], True)
    for fault in scene.faults(("fail", False)):
        inner, _, error = scene.attempt(fault)
        left = inner._objects.keys() - scene.initial._objects.keys()
        # a call after the commit may fail as well
        if isinstance(error, Failure) and not any(path.endswith(".manifest") for path in left):
            assert not left, f"{fault}: {scene.calls[fault.at]} leaves {left}"


@pytest.mark.parametrize("after", [False, True])
def test_transaction_of_a_manifest_that_failed(after: bool) -> None:
    """The transaction file of a failed manifest is removed, unless the manifest was written all the same."""
    scene = Scene(OPERATIONS["append"], True)
    [number] = [number for number, call in enumerate(scene.calls) if call.endswith(".manifest") and "put" in call]
    inner, _, error = scene.attempt(Fault(number, "fail", after))
    assert isinstance(error, Failure)
    transactions = [path for path in inner._objects.keys() - scene.initial._objects.keys() if path.endswith(".txn")]
    assert len(transactions) == after
    scene.check(inner, done=after)
