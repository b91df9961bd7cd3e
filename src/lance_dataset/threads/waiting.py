"""Calls that wait for a disk or another machine, many at the same time.

Calls made one after the other wait as many times as there are calls. Here calls that do not depend on each other run
on threads that do nothing but wait.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial
from typing import TypeVar

from lance_dataset.threads.pools import SharedPool, fetch_pools, storage_pool
from lance_dataset.threads.streams import stream
from lance_dataset.threads.tasks import Background, drop

__all__ = ["each_read", "fetch_pool", "fetching", "map_waiting", "read_each", "together", "without_waits"]

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

#: Threads of a call that does not say how many.
_WORKERS = 16
#: Threads that may wait, for the windows of a scan.
fetch_pool = fetch_pools[0]
#: Threads for reads that start no others: as many as there are requests at the same time.
_last_pool = fetch_pools[-1]

_here = threading.local()


def map_waiting(
    function: Callable[[_Item], _Result],
    items: Sequence[_Item],
    *,
    workers: int = _WORKERS,
    stop_at_error: bool = False,
    pool: SharedPool | None = None,
) -> list[_Result]:
    """Call a function for every item, for several at the same time; every call has ended when this one ends.

    Parameters
    ----------
    function
        The function; it must not use the same pool.
    items
        The items.
    workers
        Maximum number of calls at the same time.
    stop_at_error
        True for starting no more calls once one has failed. After an interrupt no call is started in any case.
    pool
        Pool of the threads, None for `storage_pool`.

    Returns
    -------
    list
        Results in the order of the items.

    Raises
    ------
    Exception
        The error of the first item (in order) that failed.
    RuntimeError
        The system gives the process no thread.
    """
    count = min(workers, len(items))
    if count < 2:
        return [function(item) for item in items]
    # one task per thread rather than per item, of which there may be thousands
    left = deque(enumerate(items))
    results: dict[int, _Result] = {}
    errors: dict[int, BaseException] = {}

    def work() -> None:
        while left:
            try:
                number, item = left.popleft()
            except IndexError:  # another thread took the last one
                return
            try:
                results[number] = function(item)
            except BaseException as error:
                errors[number] = error
                if stop_at_error:
                    left.clear()

    crew = Background(storage_pool if pool is None else pool)
    try:
        for _ in range(count):
            crew.start(work)
        crew.wait_for_oldest()  # then every item is taken; threads that have not come to this yet are not needed
    finally:
        left.clear()  # after an interrupt nothing is started: the caller takes back what there is
        crew.drop()
    if errors:
        raise errors[min(errors)]
    return [results[number] for number in range(len(items))]


def together(tasks: Sequence[Callable[[], _Result]], *, waiting: bool) -> list[_Result]:
    """Return the results of all tasks, in order; run them at the same time where that saves waiting.

    Parameters
    ----------
    tasks
        They may call this function themselves; at a depth of more than three they run one after the other.
    waiting
        True if the tasks have to wait for what they read: its files are on other machines.

    Raises
    ------
    Exception
        The error of the first task (in order) that fails, when no task is running any more.
    """
    depth = getattr(_here, "depth", 0)
    if not waiting or len(tasks) < 2 or depth >= len(fetch_pools):
        return [task() for task in tasks]
    pool = fetch_pools[depth]()
    futures = [_submit(pool, task, depth + 1) for task in tasks[1:]]
    try:
        # this thread has nothing else to do, so it takes part; what it calls in turn is one level deeper all the same
        first = _run(tasks[0], depth + 1)
        return [first, *(future.result() for future in futures)]
    finally:
        drop(futures)


def fetching(work: Callable[[_Item], _Result]) -> Callable[[_Item], _Result]:
    """Return the same work for threads of `fetch_pool`; `together` in it uses the next pools, so nothing hangs."""
    return _at_depth(work, getattr(_here, "depth", 0) + 1)


@contextmanager
def without_waits() -> Iterator[None]:
    """Return a context in which `together` starts no threads, as what its tasks read is in memory."""
    before = getattr(_here, "depth", 0)
    _here.depth = len(fetch_pools)
    try:
        yield
    finally:
        _here.depth = before


def read_each(
    function: Callable[[_Item], _Result],
    items: Sequence[_Item],
    *,
    weight: Callable[[_Item], float] = lambda item: 0.0,
    budget: float = 1.0,
) -> list[_Result]:
    """Return the results of a function that reads from another machine, for as many items at a time as make sense.

    Parameters
    ----------
    function
        The function. If it calls `together`, the tasks of that run one after the other.
    items
        The items.
    weight, budget
        No item is started while those before it, whose results the caller does not have yet, weigh as much as the
        budget.

    Raises
    ------
    Exception
        The error of the first item (in order) that fails, when no call is running any more.
    """
    return list(each_read(function, items, weight=weight, budget=budget))


def each_read(
    function: Callable[[_Item], _Result],
    items: Sequence[_Item],
    *,
    weight: Callable[[_Item], float] = lambda item: 0.0,
    budget: float = 1.0,
) -> Iterator[_Result]:
    """Yield the results of `read_each`, each as soon as those before it are known."""
    work = _at_depth(function, len(fetch_pools))
    return stream(work, items, ahead=len(items), weight=weight, budget=budget, pool=_last_pool, join=True)


def _at_depth(work: Callable[[_Item], _Result], depth: int) -> Callable[[_Item], _Result]:
    return lambda item: _run(partial(work, item), depth)


def _run(task: Callable[[], _Result], depth: int) -> _Result:
    before = getattr(_here, "depth", 0)
    _here.depth = depth
    try:
        return task()
    finally:
        _here.depth = before


def _submit(pool: Executor, task: Callable[[], _Result], depth: int) -> Future[_Result]:
    """Run a task on a thread, or here if the system gives the process none."""
    try:
        return pool.submit(copy_context().run, _run, task, depth)
    except RuntimeError:
        done: Future[_Result] = Future()
        try:
            done.set_result(_run(task, depth))
        except Exception as error:
            done.set_exception(error)
        return done
