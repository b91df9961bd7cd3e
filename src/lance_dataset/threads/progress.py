"""Progress of calls that several threads work on."""

from __future__ import annotations

import threading
from collections.abc import Callable

__all__ = ["Progress"]


class Progress:
    """Progress of a call, reported when the number of units done increases, by one call at a time.

    Parameters
    ----------
    report
        Function that is called with the number of units done and the total number.
    total
        Total number of units; None if it is known only at the end. It is then what is done so far.
    """

    def __init__(self, report: Callable[[int, int], object], total: int | None) -> None:
        self._report = report
        self._total = total
        self._done = 0
        self._reported = False
        self._lock = threading.Lock()

    def expect(self, more: int) -> None:
        """Add units to the total number."""
        with self._lock:
            self._total = more if self._total is None else self._total + more

    def reach(self, done: int) -> None:
        """Report that at least `done` units are done."""
        with self._lock:
            self._reach(done)

    def advance(self, more: int = 1) -> None:
        """Report that some more units are done."""
        with self._lock:
            self._reach(self._done + more)

    def _reach(self, done: int) -> None:
        done = done if self._total is None else min(done, self._total)
        if done > self._done:
            self._done, self._reported = done, True
            self._report(done, done if self._total is None else self._total)

    def finish(self) -> None:
        """Report that all units are done, even if some were skipped; do nothing if that was reported."""
        self.reach(self._done if self._total is None else self._total)
        with self._lock:
            if not self._reported:
                self._reported = True
                self._report(0, 0)
