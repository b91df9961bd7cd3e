"""Shares of a cleanup that other processes may do: folders to list, and files to remove."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from lance_dataset.errors import LanceError
from lance_dataset.io.base import ObjectInfo, ObjectStore
from lance_dataset.threads.waiting import map_waiting

__all__ = ["Listing", "Pace", "Removal", "Share", "ShareRunner", "run_here"]

_log = logging.getLogger(__name__)

#: A share can be pickled. It may be done twice, as after the death of a worker.
Share: TypeAlias = Callable[[], Any]
#: Function that does shares and returns their results in order.
ShareRunner: TypeAlias = Callable[[Sequence[Share]], Sequence[Any]]


def run_here(shares: Sequence[Share]) -> list[Any]:
    """Do shares in this process, one after the other."""
    return [share() for share in shares]


@dataclass(frozen=True)
class Listing:
    """Listing of all files below a folder.

    Attributes
    ----------
    store, folder
        The folder.
    """

    store: ObjectStore
    folder: str

    def __call__(self) -> list[ObjectInfo]:
        """Return the files."""
        return list(self.store.list_tree(self.folder))


@dataclass(frozen=True)
class Removal:
    """Removal of files.

    Attributes
    ----------
    store, paths
        The files.
    workers
        Number of files to remove at the same time.
    """

    store: ObjectStore
    paths: Sequence[str]
    workers: int

    def __call__(self, pace: Pace | None = None) -> list[bool]:
        """Remove the files; return True for each that is gone."""
        turns = pace or Pace(None)

        def remove(path: str) -> bool:
            turns.wait()
            try:
                self.store.delete(path)
            except (LanceError, OSError) as error:
                _log.warning("%s could not be removed: %s", self.store.uri(path), error)
                return False
            return True

        return map_waiting(remove, self.paths, workers=self.workers, stop_at_error=True)


class Pace:
    """Rate limiter for calls from several threads.

    Parameters
    ----------
    rate
        Maximum number of calls per second, None for no limit.
    """

    def __init__(self, rate: int | None) -> None:
        self._step = 1 / rate if rate else 0.0
        self._next = time.monotonic()
        self._lock = threading.Lock()

    def wait(self) -> None:
        """Wait until it is this caller's turn."""
        if not self._step:
            return
        with self._lock:
            turn = max(self._next, time.monotonic())
            self._next = turn + self._step
        time.sleep(max(0.0, turn - time.monotonic()))
