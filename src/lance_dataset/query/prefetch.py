"""Reads of stores that have to be waited for, many at a time: the columns of a take, the next windows of a scan.

Files on other machines (`InputFile.is_remote`) answer each request after a while. What is asked for one
after the other takes as many times as long as there are steps. Here the steps that do not depend on each other run on
threads of their own, which do nothing but wait; what a step asks for at once, the input merges and fetches at once.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager, suppress
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError, UnsupportedError
from lance_dataset.io.threads import SharedPool
from lance_dataset.query.fragment_reader import FragmentReader
from lance_dataset.schema import Field
from lancecodec import CodecError

if sys.platform != "win32":
    import resource

__all__ = ["Announcements", "announce", "announce_numbers", "fetch_pool", "fetching", "together"]

#: Threads for tasks, and for tasks of tasks: windows of a scan or fragments of a take, the columns of each, and the
#: fragments that a column of a window lies in. Tasks wait only for those below them.
_THREADS = (16, 48, 64)

#: Fewer rows of a fragment are not worth announcing: the look whether they are in memory costs as much as taking them.
_ANNOUNCED_ROWS = 64
#: Neither are fragments of so few bytes: their files are loaded when they are opened.
_SMALL_FRAGMENT = 32 << 10

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

_pools = [SharedPool(f"lance-fetch-{level}", lambda count=count: count) for level, count in enumerate(_THREADS)]  # type: ignore[misc]
_here = threading.local()

#: Threads that may wait, for the windows of a scan.
fetch_pool = _pools[0]


def together(tasks: Sequence[Callable[[], _Result]], *, waiting: bool) -> list[_Result]:
    """Results of all tasks, in order; at the same time where that saves waiting.

    Parameters
    ----------
    tasks
        They may call this function themselves; at a depth of more than three they run one after the other.
    waiting
        Whether what they read has to be waited for: whether its files are on other machines.

    Raises
    ------
    Exception
        What the first task (in order) that fails raises, when none is running any more.
    """
    level = getattr(_here, "level", 0)
    if not waiting or len(tasks) < 2 or level >= len(_pools):
        return [task() for task in tasks]
    pool = _pools[level]()
    futures = [_submit(pool, task, level + 1) for task in tasks[1:]]
    try:
        # this thread has nothing else to do, so it takes part; what it calls in turn is one level deeper all the same
        first = _run(tasks[0], level + 1)
        return [first, *(future.result() for future in futures)]
    finally:
        _drop(futures)


def fetching(work: Callable[[_Item], _Result]) -> Callable[[_Item], _Result]:
    """The same work, for threads of `fetch_pool`; `together` in it uses threads that it does not wait for."""
    level = getattr(_here, "level", 0) + 1
    return lambda item: _run(partial(work, item), level)


class Announcements:
    """Has the system load what is going to be read of mapped files, as long as reading makes the device read.

    To ask what is in memory takes time too, so reads that find all of it there are not announced any more.
    """

    def __init__(self) -> None:
        self._cold = True

    @contextmanager
    def taking(self, announce_rows: Callable[[], None]) -> Iterator[None]:
        """A context in which rows are read, which `announce_rows` announces."""
        before = device_reads()
        try:
            if self._cold:
                with suppress(CodecError, CorruptFileError, UnsupportedError):  # reading them tells what is wrong
                    announce_rows()
            yield
        finally:
            self._cold = device_reads() != before


def device_reads() -> int:
    """A number that changes when this process makes a device read, or waits for one; 0 where no system counts that."""
    if sys.platform == "win32":
        return 0
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_inblock + usage.ru_majflt


def announce(fragment: FragmentReader, fields: Iterable[Field], rows: NDArray[np.int64]) -> None:
    """Have the system load what a take of many rows reads of a fragment in mapped files, if it is not in memory.

    Parameters
    ----------
    fields
        Stored columns that are going to be taken.
    rows
        Physical rows, in any order.
    """
    if len(rows) < _ANNOUNCED_ROWS or fragment.num_bytes <= _SMALL_FRAGMENT or not fragment.is_mapped:
        return
    ascending = np.sort(rows)
    for field in fields:
        fragment.column(field).will_need(ascending)


def announce_numbers(
    fragments: Sequence[FragmentReader], starts: NDArray[np.int64], fields: Sequence[Field], rows: NDArray[np.int64]
) -> None:
    """The same for live rows by number; `starts` are the live rows before each fragment, then all."""
    if len(rows) < _ANNOUNCED_ROWS:
        return
    ascending = np.sort(rows)
    cuts = np.searchsorted(ascending, starts)
    for position in np.flatnonzero(np.diff(cuts) >= _ANNOUNCED_ROWS).tolist():
        mine = ascending[cuts[position] : cuts[position + 1]] - starts[position]
        announce(fragments[position], fields, fragments[position].physical(mine))


def _run(task: Callable[[], _Result], level: int) -> _Result:
    before = getattr(_here, "level", 0)
    _here.level = level
    try:
        return task()
    finally:
        _here.level = before


def _submit(pool: Executor, task: Callable[[], _Result], level: int) -> Future[_Result]:
    """Have a task run on a thread, or run it now where the system gives the process none at all."""
    try:
        return pool.submit(_run, task, level)
    except RuntimeError:
        done: Future[_Result] = Future()
        try:
            done.set_result(_run(task, level))
        except Exception as error:
            done.set_exception(error)
        return done


def _drop(futures: Iterable[Future[_Result]]) -> None:
    """Do not begin what has not begun; wait for the rest, which may hold what the caller is about to close."""
    for future in futures:
        if not future.cancel():
            future.exception()
