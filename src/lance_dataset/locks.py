"""Locks of objects that outlive a fork of the process."""

from __future__ import annotations

import os
import threading
from types import TracebackType
from weakref import WeakSet

__all__ = ["SharedLock"]

_locks: WeakSet[SharedLock] = WeakSet()


class SharedLock:
    """Reentrant lock that is free in a forked child.

    A child has none of its parent's threads. A plain lock that one of them held at the fork stays locked in the child,
    which then waits forever.
    """

    __slots__ = ("__weakref__", "_lock")

    def __init__(self) -> None:
        self._lock = threading.RLock()
        _locks.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()


def _renew() -> None:
    for lock in _locks:
        lock._lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
