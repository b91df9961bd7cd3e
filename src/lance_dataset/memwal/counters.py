"""Counters of what the writers of a shard and merges of it did in this process."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from lance_dataset.locks import SharedLock

__all__ = ["ShardCounters", "counters_of", "counters_of_all", "summed_metrics"]

#: Sums that only writers add to, and steps of theirs that are counted and timed.
_SUMS = (
    "put_rows",
    "put_bytes",
    "wal_flush_bytes",
    "memtable_flush_rows",
    "memtable_flush_failures",
    "recovery_entries",
    "recovery_rows",
)
_TIMED = ("put", "wal_flush", "memtable_flush", "backpressure", "recovery")
#: Those of merges.
_MERGE_SUMS = ("merge_sstables", "merge_upserted_rows", "merge_deleted_keys", "merge_conflicts")
_MERGE_TIMED = ("merge",)
#: Each power of two of nanoseconds has as many classes of times.
_CLASSES = 4


class ShardCounters:
    """Counters of a shard. Several threads may use them.

    Parameters
    ----------
    also
        Counters that count the same; None for those of all writers and merges together.
    """

    def __init__(self, also: ShardCounters | None = None) -> None:
        self._also = also
        self._lock = SharedLock()
        sums = _SUMS if also else (*_SUMS, *_MERGE_SUMS)
        self._timed = _TIMED if also else (*_TIMED, *_MERGE_TIMED)
        steps = [f"{name}_{what}" for name in self._timed for what in ("count", "ns")]
        self._counts = dict.fromkeys((*steps, *sums), 0)
        self._puts: dict[int, int] = {}
        self._longest_put = 0

    def add(self, name: str, number: int = 1) -> None:
        """Add to a sum."""
        with self._lock:
            self._counts[name] += number
        if self._also is not None:
            self._also.add(name, number)

    def add_step(self, name: str, nanos: int) -> None:
        """Count a step, and its time."""
        with self._lock:
            self._counts[f"{name}_count"] += 1
            self._counts[f"{name}_ns"] += nanos
            if name == "put":
                kind = _class_of(nanos)
                self._puts[kind] = self._puts.get(kind, 0) + 1
                self._longest_put = max(self._longest_put, nanos)
        if self._also is not None:
            self._also.add_step(name, nanos)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Count a step that succeeds, and its time."""
        start = time.perf_counter_ns()
        yield
        self.add_step(name, time.perf_counter_ns() - start)

    def shown(self) -> dict[str, int]:
        """Return the counters as users see them, and how long half of the puts and 99 % of them took at most."""
        with self._lock:
            known, puts, longest = dict(self._counts), dict(self._puts), self._longest_put
        times = {f"{name}_time_ms": known.pop(f"{name}_ns") // 1_000_000 for name in self._timed}
        half, most = (min(_quantile(puts, share), longest) // 1000 for share in (0.5, 0.99))
        return {**known, **times, "put_p50_us": half, "put_p99_us": most, "put_max_us": longest // 1000}


def summed_metrics() -> list[str]:
    """Return the names of the counters that only grow."""
    return [name for name in ShardCounters().shown() if not name.endswith("_us")]


def _class_of(nanos: int) -> int:
    """Return the number of the class of a time."""
    bits = max(nanos.bit_length(), 3)
    return bits * _CLASSES + ((nanos >> (bits - 3)) & (_CLASSES - 1))


def _longest(kind: int) -> int:
    """Return the longest time of a class, which is at most a quarter longer than the shortest."""
    bits, part = divmod(kind, _CLASSES)
    return ((_CLASSES + part + 1) << (bits - 3)) - 1


def _quantile(classes: Mapping[int, int], share: float) -> int:
    left = share * sum(classes.values())
    for kind in sorted(classes):
        left -= classes[kind]
        if left <= 0:
            return _longest(kind)
    return 0


_all: dict[str, ShardCounters] = {}
_all_lock = SharedLock()


def counters_of(shard: str) -> ShardCounters:
    """Return the counters of all writers and merges of a shard in this process.

    Parameters
    ----------
    shard
        URI of the folder of the shard.
    """
    with _all_lock:
        return _all.setdefault(shard, ShardCounters())


def counters_of_all() -> dict[str, dict[str, int]]:
    """Return the counters of all shards that were written or merged in this process, by URI."""
    with _all_lock:
        known = dict(_all)
    return {shard: counters.shown() for shard, counters in known.items()}
