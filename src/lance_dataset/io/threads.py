"""Pools of threads that a process shares, and that its forked children do not inherit."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

__all__ = ["SharedPool", "for_each"]

_Item = TypeVar("_Item")

#: Small files that are written at the same time: each waits for the disk, or for another machine.
_WRITERS = 16


class _Pool(ThreadPoolExecutor):
    """A pool that makes do with the threads it has where the system gives it no more."""

    def _adjust_thread_count(self) -> None:
        try:
            super()._adjust_thread_count()
        except RuntimeError:
            if not self._threads:
                raise


class SharedPool:
    """A pool that is made when it is first asked for, and once more in a forked child.

    A child has none of its parent's threads, and maybe a lock that one of them held.

    Parameters
    ----------
    name
        Beginning of the names of its threads.
    size
        Says how many threads it is to have; asked when the pool is made.
    """

    def __init__(self, name: str, size: Callable[[], int]) -> None:
        self._name = name
        self._size = size
        self._forget()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._workers = threading.local()
        self._lock = threading.Lock()

    def __call__(self) -> ThreadPoolExecutor:
        """The pool."""
        with self._lock:
            if self._pool is None:
                self._pool = _Pool(self._size(), self._name, self._begin)
            return self._pool

    def _begin(self) -> None:
        self._workers.here = True

    @property
    def is_worker(self) -> bool:
        """Whether the calling thread is one of the pool, which must not wait for others of it."""
        return getattr(self._workers, "here", False)


_writers = SharedPool("lance-write", lambda: _WRITERS)


def for_each(function: Callable[[_Item], object], items: Sequence[_Item]) -> None:
    """Write something for every item, for several at once where there are several; every call has ended at the end.

    What one of them raises is raised when all have ended. The function must not call this one.
    """
    if len(items) < 2:
        for item in items:
            function(item)
        return
    # a task for each thread rather than for each item, of which there may be thousands
    left = deque(enumerate(items))
    errors: dict[int, BaseException] = {}

    def work() -> None:
        while left:
            try:
                number, item = left.popleft()
            except IndexError:  # another thread took the last one
                return
            try:
                function(item)
            except BaseException as error:
                errors[number] = error

    wait([_writers().submit(work) for _ in range(min(_WRITERS, len(items)))])
    if errors:
        raise errors[min(errors)]
