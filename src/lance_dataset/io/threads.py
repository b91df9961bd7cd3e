"""Pools of threads that a process shares, and that its forked children do not inherit."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

__all__ = ["SharedPool"]


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
        self._lock = threading.Lock()

    def __call__(self) -> ThreadPoolExecutor:
        """The pool."""
        with self._lock:
            if self._pool is None:
                self._pool = _Pool(self._size(), thread_name_prefix=self._name)
            return self._pool
