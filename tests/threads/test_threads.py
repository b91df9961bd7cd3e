"""Tests of shared pools, calls for many items, background calls: few threads, errors, interrupts, forks."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from functools import partial

import pytest

from lance_dataset.threads import waiting
from lance_dataset.threads.pools import SharedPool, one_of_many
from lance_dataset.threads.streams import stream
from lance_dataset.threads.tasks import Background, Task
from lance_dataset.threads.waiting import map_waiting


def allow_threads(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Let `count` threads start from now on."""
    left, start = [count], threading.Thread.start

    def starting(thread: threading.Thread) -> None:
        if not left[0]:
            raise RuntimeError("can't start new thread")
        left[0] -= 1
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", starting)


@pytest.mark.parametrize("count", [1, 3])
def test_pools_make_do_with_fewer(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    allow_threads(monkeypatch, count)
    assert list(SharedPool("few", lambda: 8)().map(str, range(100))) == [str(number) for number in range(100)]


@pytest.mark.parametrize("count", [0, 1, 20])
def test_tasks_of_tasks_with_few_threads(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    pools = [SharedPool(f"few-{level}", lambda: 16) for level in range(2)]
    monkeypatch.setattr(waiting, "fetch_pools", pools)
    allow_threads(monkeypatch, count)

    def inner(number: int) -> list[int]:
        return waiting.together([lambda add=add: number + add for add in range(5)], waiting=True)

    found = waiting.together([lambda number=number: inner(number) for number in range(20)], waiting=True)
    assert found == [[number + add for add in range(5)] for number in range(20)]

    def failing() -> None:
        raise KeyError("missing")

    with pytest.raises(KeyError, match="missing"):
        waiting.together([failing] * 3, waiting=True)


def test_calls_for_each_item_end_before_the_first_error_is_raised() -> None:
    done: list[int] = []

    def call(number: int) -> None:
        time.sleep(0.001)
        done.append(number)
        if number in (7, 30):
            raise KeyError(number)

    with pytest.raises(KeyError, match="7"):
        map_waiting(call, range(100))
    assert sorted(done) == list(range(100))


@pytest.fixture
def interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt at a signal, also where the shell that started the tests has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupts")
def test_after_an_interrupt_no_call_begins_and_none_goes_on() -> None:
    caller = threading.get_ident()
    begun: list[int] = []
    ended: list[int] = []

    def call(number: int) -> None:
        begun.append(number)
        if number in (20, 1000, 2000):  # again: Python drops an interrupt that comes during a callback of its collector
            signal.pthread_kill(caller, signal.SIGINT)
        time.sleep(0.02)
        ended.append(number)

    with pytest.raises(KeyboardInterrupt):
        map_waiting(call, range(10_000))
    assert sorted(begun) == sorted(ended)
    assert len(begun) < 10_000


def test_without_any_thread_the_error_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    allow_threads(monkeypatch, 0)
    monkeypatch.setattr(waiting, "storage_pool", SharedPool("none", lambda: 16))
    with pytest.raises(RuntimeError, match="thread"):
        map_waiting(str, range(100))


def test_no_call_starts_after_an_error_if_so_asked() -> None:
    begun: list[int] = []

    def call(number: int) -> int:
        begun.append(number)
        time.sleep(0.001)
        if number == 5:
            raise KeyError(number)
        return number

    with pytest.raises(KeyError, match="5"):
        map_waiting(call, range(1000), workers=4, stop_at_error=True)
    assert len(begun) < 20


@pytest.mark.parametrize("workers", [1, 3, 100])
def test_calls_at_the_same_time_are_limited(workers: int) -> None:
    lock, running, most = threading.Lock(), [0], [0]

    def call(number: int) -> int:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        time.sleep(0.002)
        with lock:
            running[0] -= 1
        return number * number

    assert map_waiting(call, range(50), workers=workers) == [number * number for number in range(50)]
    assert most[0] <= workers


def test_items_do_not_wait_for_threads_that_others_have() -> None:
    """One thread of a full pool suffices for all calls."""
    pool = SharedPool("full", lambda: 2)
    free = threading.Event()
    pool().submit(free.wait)
    try:
        assert map_waiting(str, range(20), pool=pool) == [str(number) for number in range(20)]
    finally:
        free.set()


def test_calls_without_a_thread_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = SharedPool("none", lambda: 4)
    done: list[int] = []
    with monkeypatch.context() as patched:
        allow_threads(patched, 0)
        with pytest.raises(RuntimeError, match="thread"):
            pool().submit(done.append, 1)
    pool().submit(done.append, 2).result()
    assert done == [2]


# -- background ------------------------------------------------------------------------------------------------------


def test_background_calls_have_ended_at_the_end() -> None:
    done: list[int] = []

    def call(number: int) -> None:
        time.sleep(0.01)
        done.append(number)
        if number in (1, 2):
            raise KeyError(number)

    def run() -> None:
        with Background(SharedPool("test", lambda: 2)) as background:
            for number in range(4):
                background.start(partial(call, number))
            assert len(background) == 4

    with pytest.raises(KeyError, match="1"):
        run()
    assert set(done) >= {0, 1}
    count = len(done)
    time.sleep(0.05)
    assert len(done) == count


def test_calls_that_have_not_started_are_dropped_if_the_body_fails() -> None:
    done: list[int] = []
    started = threading.Event()

    def call(number: int) -> None:
        started.set()
        time.sleep(0.02)
        done.append(number)

    def body(background: Background) -> None:
        for number in range(10):
            background.start(partial(call, number))
        started.wait()
        raise ValueError("body")

    with pytest.raises(ValueError, match="body"), Background(SharedPool("test", lambda: 1)) as background:
        body(background)
    assert done == [0]


@pytest.mark.usefixtures("interrupts")
def test_an_interrupt_waits_for_what_runs() -> None:
    caller = threading.get_ident()
    ended: list[bool] = []

    def call() -> None:
        signal.pthread_kill(caller, signal.SIGINT)
        time.sleep(0.05)
        ended.append(True)

    def run() -> None:
        with Background(SharedPool("test", lambda: 1)) as background:
            background.start(call)

    with pytest.raises(KeyboardInterrupt):
        run()
    assert ended == [True]


# -- streams ---------------------------------------------------------------------------------------------------------


def test_a_stream_that_ends_early_waits_for_its_calls_if_so_asked() -> None:
    begun: list[int] = []
    ended: list[int] = []

    def call(number: int) -> int:
        begun.append(number)
        time.sleep(0.02)
        ended.append(number)
        return number

    results = stream(call, range(100), ahead=5, pool=SharedPool("test", lambda: 4), join=True)
    assert next(results) == 0
    results.close()  # type: ignore[attr-defined]
    assert sorted(begun) == sorted(ended)
    count = len(begun)
    time.sleep(0.05)
    assert len(begun) == count


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_computes_what_its_parent_began() -> None:
    pool = SharedPool("test", lambda: 1)
    free = threading.Event()
    pool().submit(free.wait)
    results = stream(str, range(5), ahead=3, pool=pool)
    first = Task.start(pool, str, 7)
    child = os.fork()
    if child == 0:
        right = first.result() == "7" and list(results) == ["0", "1", "2", "3", "4"]
        os._exit(0 if right else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    free.set()
    assert list(results) == ["0", "1", "2", "3", "4"]


def test_one_of_many_computes_on_its_own_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANCE_CPU_THREADS", "4")
    with one_of_many():
        found = set(stream(lambda _: threading.get_ident(), range(20), ahead=4))
    assert found == {threading.get_ident()}
