"""Counters of what a writer of a shard did."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["WriterCounters"]

_COUNTS = ("wal_flush_bytes", "memtable_flush_rows", "memtable_flush_failures")
_TIMED = ("put", "wal_flush", "memtable_flush")


class WriterCounters:
    """Counters of what a writer of a shard did."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[str, int] = dict.fromkeys(
            [f"{name}_count" for name in _TIMED] + list(_COUNTS) + [f"{name}_ns" for name in _TIMED], 0
        )

    def add(self, name: str, number: int = 1) -> None:
        """Add to a counter."""
        with self._lock:
            self._counts[name] += number

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Count a step that succeeds, and its time."""
        start = time.perf_counter_ns()
        yield
        with self._lock:
            self._counts[f"{name}_count"] += 1
            self._counts[f"{name}_ns"] += time.perf_counter_ns() - start

    def shown(self) -> dict[str, int]:
        """Return the counters as users see them."""
        with self._lock:
            known = dict(self._counts)
        times = {f"{name}_time_ms": known.pop(f"{name}_ns") // 1_000_000 for name in _TIMED}
        return {**known, **times}
