"""Tests of shards on stores of which any call stops the writer, fails, or wrongly reports a failure, and on full disks.

Writers and batches are also held at any call while another one claims the shard. ``LANCE_STRESS=1`` tries all calls.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import errno
import os
import random
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.crashes.failing_disk import FailingDisk
from support.memwal.shards import SHARD, keys, rows, values
from support.stores.faulty_store import Crash, Fault, FaultyStore, copy_of, session_of

import lance_dataset
from lance_dataset.errors import CommitConflictError, InvalidInputError, LanceError
from lance_dataset.io.base import ObjectStore
from lance_dataset.io.memory import MemoryStore
from lance_dataset.mem_wal import ShardWriter
from lance_dataset.memwal.batches import put_batch

THOROUGH = os.environ.get("LANCE_STRESS", "") not in ("", "0")
SEED = int(os.environ.get("LANCE_STRESS_SEED", "11"))
CALLS = 10**9 if THOROUGH else 2
URI = "memory://base/t.lance"
NOW = dt.timedelta(0)
#: All calls take longer than the limit of other tests.
pytestmark = [pytest.mark.timeout(7200)] if THOROUGH else []
KINDS = [("crash", False), ("crash", True), ("torn", False), ("fail", False), ("fail", True), ("broken", False)]
KINDS += [("broken", True), ("exists", False)]

Model = dict[int, str]
Steps = list[tuple[Callable[[], object], Callable[[Model], Model]]]


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try again without a pause."""
    monkeypatch.setattr("lance_dataset.memwal.log._FIRST_DELAY", 0.0)
    monkeypatch.setattr("lance_dataset.memwal.writing._FLUSH_DELAY", 0.0)


class Work:
    """Steps on a table, of which each is done when it returns, with the rows after it."""

    def __init__(self, place: ObjectStore | Path) -> None:
        self.uri = str(place) if isinstance(place, Path) else URI
        self.given = {} if isinstance(place, Path) else {"session": session_of(place)}
        self.writers: list[ShardWriter] = []

    def create(self, model: Model) -> None:
        lance_dataset.write_dataset(rows(model), self.uri, **self.given).initialize_mem_wal()

    def dataset(self) -> lance_dataset.LanceDataset:
        return lance_dataset.dataset(self.uri, **self.given)

    def open(self, **options: Any) -> ShardWriter:
        self.writers.append(self.dataset().mem_wal_writer(SHARD, **options))
        return self.writers[-1]

    def put(self, new: Model) -> tuple[Callable[[], object], Callable[[Model], Model]]:
        return lambda: self.writers[-1].put(rows(new)), lambda model: model | new

    def delete(self, *gone: int) -> tuple[Callable[[], object], Callable[[Model], Model]]:
        return (
            lambda: self.writers[-1].delete(keys(*gone)),
            lambda model: {key: text for key, text in model.items() if key not in gone},
        )


def same(model: Model) -> Model:
    return model


def puts(work: Work) -> Steps:
    """Return a claim, and puts that fill memtables."""
    return [
        (lambda: work.open(max_memtable_rows=3), same),
        work.put({1: "one", 2: "one"}),
        work.delete(0),
        work.put({3: "two", 1: "two"}),
        (lambda: work.writers[-1].flush(), same),
        work.put({2: "three"}),
        (lambda: work.writers[-1].close(), same),
    ]


def claims(work: Work) -> Steps:
    """Return a claim with a replay, after which the log goes on, and another one."""
    return [
        (work.open, same),
        work.put({6: "new"}),
        (work.open, same),
        work.delete(6),
        (lambda: work.writers[-1].close(), same),
    ]


def merges(work: Work) -> Steps:
    """Return a merge, the removal of old versions, and a collection of files."""
    return [
        (lambda: work.dataset().merge_mem_wal(), same),
        (lambda: work.dataset().cleanup_old_versions(NOW), same),
        (lambda: work.dataset().collect_mem_wal(older_than=NOW), same),
    ]


def deletes(work: Work) -> Steps:
    """Return deletions of rows of the table, of SSTables and of the log, by a writer that aborts, and by the next."""
    return [
        (work.open, same),
        work.delete(0, 1),
        work.put({0: "again", 7: "new"}),
        work.delete(6, 7, 99),
        (lambda: work.writers[-1].abort(), same),
        (lambda: work.open(max_memtable_rows=2), same),
        work.delete(0),
        work.delete(2),
        work.put({2: "again"}),
        (lambda: work.writers[-1].close(), same),
    ]


def collects(work: Work) -> Steps:
    """Return collections of files while a writer is at work, and after it was aborted."""
    return [
        (work.open, same),
        work.put({1: "one", 7: "new"}),
        (lambda: work.writers[-1].flush(), same),
        *merges(work),
        work.delete(7),
        work.put({3: "log"}),
        (lambda: work.writers[-1].abort(), same),
        *merges(work),
    ]


Batch = tuple[int, Model, tuple[int, ...]]
#: Numbers of batches of a job, their rows, and the keys that they delete.
BATCHES: list[Batch] = [(1, {1: "one", 7: "one"}, (0, 6)), (1, {1: "never"}, ()), (4, {7: "two", 0: "two"}, (99,))]


def put(work: Work, batch: Batch) -> bool:
    number, new, gone = batch
    return put_batch(work.dataset().snapshot, SHARD, "job", number, rows(new), keys(*gone))


def batches(work: Work) -> Steps:
    """Return batches of a job, of which one is repeated."""

    def step(batch: Batch) -> tuple[Callable[[], object], Callable[[Model], Model]]:
        _, new, gone = batch
        return lambda: put(work, batch), lambda model: {key: model[key] for key in model if key not in gone} | new

    first, repeated, last = BATCHES
    return [step(first), (lambda: put(work, repeated), same), step(last)]


def before(work: Work, kind: Callable[[Work], Steps]) -> Model:
    """Make the table, with SSTables and a log unless the shard is to be new; return its rows."""
    model: Model = dict.fromkeys(range(5), "base")
    work.create(model)
    if kind is puts:
        return model
    writer = work.open()
    writer.put(rows({5: "log", 0: "log"}))
    writer.flush()
    writer.delete(keys(3, 9))
    writer.flush()
    writer.put(rows({6: "log"}))
    writer.delete(keys(5))
    if kind in (merges, collects):
        writer.close()
    else:
        writer.abort()
    del model[3]
    return model | {0: "log", 6: "log"}


class Scene:
    """Some work, the store before it, and its calls, with their number at the end of each step."""

    def __init__(self, kind: Callable[[Work], Steps]) -> None:
        self.kind = kind
        self.initial = MemoryStore()
        self.models = [before(Work(self.initial), kind)]
        counting = FaultyStore(copy_of(self.initial))
        self.ends: list[int] = []
        for step, change in kind(Work(counting)):
            step()
            self.ends.append(len(counting.calls))
            self.models.append(change(self.models[-1]))
        self.calls = counting.calls
        self.chance = random.Random(f"{SEED} {kind.__name__}")

    def numbers(self, steps: int = 0) -> list[int]:
        """Return the numbers of some calls of the first steps, 0 for all steps."""
        every = range(self.ends[steps - 1])
        return sorted(self.chance.sample(every, min(calls_of(self.kind), len(every))))


def calls_of(kind: Callable[[Work], Steps]) -> int:
    return CALLS if THOROUGH or kind in (puts, claims, merges) else 1


@pytest.fixture(params=[puts, claims, merges, deletes, collects, batches])
def scene(request: pytest.FixtureRequest) -> Scene:
    return Scene(request.param)


def check(place: ObjectStore | Path, allowed: list[Model]) -> None:
    """Check that a shard has all acknowledged rows once, and goes on."""
    work = Work(place)
    report = work.dataset().doctor()
    assert report.is_healthy, str(report)
    writer = work.open()
    found = values(writer.lsm_scanner().to_table())
    assert found in allowed, f"{found} must be one of {allowed}"
    writer.put(rows({91: "more"}))
    writer.close()
    work.dataset().merge_mem_wal()
    work.dataset().collect_mem_wal(older_than=NOW)
    work.dataset().validate()
    assert values(work.dataset().to_table()) == found | {91: "more"}
    work.open().close()  # replays end


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_any_call(scene: Scene, kind: tuple[str, bool]) -> None:
    """Acknowledged rows are there once, whatever happens to a call; a step that failed is done or not."""
    for number in scene.numbers():
        inner = copy_of(scene.initial)
        work = Work(FaultyStore(inner, Fault(number, *kind)))
        done, error = 0, None
        try:
            for step, _ in scene.kind(work):
                step()
                done += 1
        except (Crash, LanceError, OSError, ValueError) as caught:
            error = caught
        try:
            check(inner, scene.models[done : done + 2])
            for writer in work.writers:
                vars(writer._core.place.store)["fault"] = None  # the store works again for those that are there
                with pytest.raises((Crash, CommitConflictError, InvalidInputError)):
                    writer.put(rows({92: "late"}))
                with contextlib.suppress(Crash):
                    writer.abort()
            assert 92 not in values(Work(inner).dataset().to_table())
            check(inner, [model | {91: "more"} for model in scene.models[done : done + 2]])
        except BaseException as problem:
            context = f"seed {SEED}, {kind}, call {number}, {scene.calls[number]}, after {done} steps: {error!r}"
            raise AssertionError(f"{context}: {type(problem).__name__}: {problem}") from problem


#: Numbers of the steps that claim the shard.
CLAIMS: dict[Callable[[Work], Steps], tuple[int, ...]] = {
    puts: (0,),
    claims: (0, 2),
    merges: (),
    deletes: (0, 5),
}


class HeldStore(FaultyStore):
    """Store that makes its caller wait before or after one call."""

    def __init__(self, inner: ObjectStore, at: int, after: bool) -> None:
        super().__init__(inner)
        self.at, self.after = at, after
        self.held, self.gate = threading.Event(), threading.Event()

    def call(self, name: str, path: str, effect: Callable[[], Any]) -> Any:
        with self._lock:
            number = len(self.calls)
            self.calls.append(f"{name} {path}")
        if number != self.at:
            return effect()
        result = effect() if self.after else None
        self.held.set()
        self.gate.wait(60)
        return result if self.after else effect()


@contextlib.contextmanager
def at_work(steps: Steps, held: threading.Event, done: list[int]) -> Iterator[threading.Thread]:
    """Run steps in a thread until one fails."""

    def run() -> None:
        try:
            for step, _ in steps:
                step()
                done.append(1)
        except (CommitConflictError, InvalidInputError):
            pass  # fenced; any other error fails the test, as the thread does not handle it
        finally:
            held.set()

    thread = threading.Thread(target=run)
    thread.start()
    yield thread
    thread.join()


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("scene", CLAIMS, indirect=True)
def test_a_claim_at_any_call(scene: Scene, after: bool) -> None:
    """A writer that is held while another one claims the shard, puts and goes, writes nothing afterwards."""
    for number in scene.numbers():
        inner = copy_of(scene.initial)
        store = HeldStore(inner, number, after)
        work, done = Work(store), list[int]()
        try:
            with at_work(scene.kind(work), store.held, done):
                assert store.held.wait(60)
                finished = len(done)
                other = Work(inner)
                writer = other.open(max_memtable_rows=2)
                found = values(writer.lsm_scanner().to_table())
                assert found in scene.models[finished : finished + 2]
                writer.put(rows({70: "other", 1: "other"}))
                writer.put(rows({2: "other"}))
                writer.close()
                store.gate.set()
            model = found | {70: "other", 1: "other", 2: "other"}
            is_done = finished < len(scene.models) - 1 and found == scene.models[finished + 1]
            if scene.kind is merges:
                assert len(done) == 3
            elif claims_at := {finished, finished + is_done} & set(CLAIMS[scene.kind]):
                # It claims the shard after the other one, and goes on.
                for _, change in scene.kind(work)[min(claims_at) : len(done)]:
                    model = change(model)
            else:
                assert len(done) <= finished + is_done
            check(inner, [model])
        except BaseException as problem:
            context = f"seed {SEED}, call {number}, {scene.calls[number]}, after {len(done)} steps"
            raise AssertionError(f"{context}: {type(problem).__name__}: {problem}") from problem
        finally:
            store.gate.set()
            for each in work.writers:
                each.abort()


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_batches_are_repeated(kind: tuple[str, bool]) -> None:
    """A job that repeats all of its batches after a failure of any call publishes each of them once."""
    scene = Scene(batches)
    for number in scene.numbers():
        inner = copy_of(scene.initial)
        error: BaseException | None = None
        try:
            for step, _ in batches(Work(FaultyStore(inner, Fault(number, *kind)))):
                step()
        except (Crash, LanceError, OSError, ValueError) as caught:
            error = caught
        try:
            published = [put(Work(inner), batch) for batch in BATCHES]
            assert not published[1]
            assert published[2] or not published[0]
            check(inner, [scene.models[-1]])
            assert not any(put(Work(inner), batch) for batch in BATCHES)
        except BaseException as problem:
            context = f"seed {SEED}, {kind}, call {number}, {scene.calls[number]}: {error!r}"
            raise AssertionError(f"{context}: {type(problem).__name__}: {problem}") from problem


@pytest.mark.parametrize("after", [False, True])
def test_a_batch_while_another_writer_claims(after: bool) -> None:
    """A batch that is held at any call is published before the other writer claims the shard, after it, or not."""
    scene = Scene(batches)
    batch, (with_batch, *_) = BATCHES[0], scene.models[1:]
    for number in scene.numbers(1):
        inner = copy_of(scene.initial)
        store, outcome = HeldStore(inner, number, after), list[object]()

        def run(store: ObjectStore = store, outcome: list[object] = outcome) -> None:
            try:
                outcome.append(put(Work(store), batch))
            except CommitConflictError as error:
                outcome.append(error)
            store.held.set()  # type: ignore[attr-defined]

        thread = threading.Thread(target=run)
        thread.start()
        try:
            assert store.held.wait(60)
            other = Work(inner)
            writer = other.open()
            found = values(writer.lsm_scanner().to_table())
            writer.put(rows({1: "other", 70: "other"}))
            writer.close()
            store.gate.set()
            thread.join()
            model = found | {1: "other", 70: "other"}
            assert found in (scene.models[0], with_batch)
            if found != with_batch:
                if isinstance(outcome[0], CommitConflictError):
                    assert put(Work(inner), batch)
                model = batches(other)[0][1](model)
            assert not put(Work(inner), batch)
            check(inner, [model])
        except BaseException as problem:
            context = f"seed {SEED}, call {number}, {scene.calls[number]}, {outcome}"
            raise AssertionError(f"{context}: {type(problem).__name__}: {problem}") from problem
        finally:
            store.gate.set()
            thread.join()


@pytest.mark.parametrize(("error", "lasting"), [(errno.ENOSPC, True), (errno.EIO, False)])
@pytest.mark.parametrize("kind", [puts, claims, merges, deletes, collects, batches])
def test_bad_disks(tmp_path: Path, kind: Callable[[Work], Steps], error: int, lasting: bool) -> None:
    """Rows that were acknowledged before the disk was full, or failed once, are there when there is room again."""
    kept, place = tmp_path / "kept", tmp_path / "disk"
    models = [before(Work(kept), kind)]
    shutil.copytree(kept, place)
    counting, work = FailingDisk(), Work(place)
    with counting.installed():
        for step, change in kind(work):
            step()
            models.append(change(models[-1]))
    chance = random.Random(f"{SEED} {kind.__name__}")
    calls = range(len(counting.calls))
    for at in chance.sample(calls, min(calls_of(kind), len(calls))):
        shutil.rmtree(place)
        shutil.copytree(kept, place)
        disk, work, done, caught = FailingDisk(at, error, lasting), Work(place), 0, None
        with disk.installed():
            try:
                for step, _ in kind(work):
                    step()
                    done += 1
            except (LanceError, OSError, ValueError) as problem:
                caught = problem
        try:
            check(place, models[done : done + 2])
        except BaseException as problem:
            context = f"seed {SEED}, call {at} of {len(calls)}, {disk.calls[at]}, after {done} steps: {caught!r}"
            raise AssertionError(f"{context}: {type(problem).__name__}: {problem}") from problem
        for writer in work.writers:
            writer.abort()
