"""Metrics of a running scan: rows, batches, bytes and time of each step, counted while it runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

__all__ = ["NodeMetrics", "ScanMetrics"]


class NodeMetrics:
    """Counters of one step of a scan; several threads may add to them concurrently.

    Attributes
    ----------
    rows
        Rows that the step examined or passed on.
    batches
        Number of times that it passed something on.
    bytes
        Size in memory of the data it passed on.
    seconds
        Time spent in the step, summed over threads, without the steps below it.
    counts
        Other counters of the step, by name.
    """

    __slots__ = ("_counts", "_lock", "batches", "bytes", "rows", "seconds")

    def __init__(self) -> None:
        self.rows = 0
        self.batches = 0
        self.bytes = 0
        self.seconds = 0.0
        self._counts: dict[str, int] = {}
        self._lock = threading.Lock()

    def add(self, rows: int = 0, *, batches: int = 0, bytes: int = 0, seconds: float = 0.0, **counts: int) -> None:
        """Add to the counters; further keyword names count too."""
        with self._lock:
            self.rows += rows
            self.batches += batches
            self.bytes += bytes
            self.seconds += seconds
            for name, number in counts.items():
                self._counts[name] = self._counts.get(name, 0) + number

    @property
    def counts(self) -> Mapping[str, int]:
        """Counters of other names."""
        with self._lock:
            return dict(self._counts)

    def __repr__(self) -> str:
        return (
            f"NodeMetrics(rows={self.rows}, batches={self.batches}, bytes={self.bytes}, seconds={self.seconds:.6f}"
            f"{''.join(f', {name}={number}' for name, number in self.counts.items())})"
        )


class ScanMetrics:
    """Counters of the steps of one run of a scan, by the name of the step.

    Scans use the names ``scan`` (stored columns read to find the rows), ``filter`` (rows kept), ``materialize``
    (columns read for the rows that were kept), ``project`` (computed columns), ``sort`` and ``limit``.

    Parameters
    ----------
    nodes
        Counters of some steps. Those of other steps are created on first use.
    """

    def __init__(self, nodes: Mapping[str, NodeMetrics] | None = None) -> None:
        self._nodes = dict(nodes or {})
        self._fragments: set[int] = set()
        self._lock = threading.Lock()

    def looked_at(self, fragment_ids: Iterable[int]) -> None:
        """Count fragments that have examined rows, each once."""
        with self._lock:
            self._fragments.update(fragment_ids)

    @property
    def num_fragments(self) -> int:
        """Number of fragments that have examined rows."""
        with self._lock:
            return len(self._fragments)

    def node(self, name: str) -> NodeMetrics:
        """Return the counters of a step, creating them on first use."""
        found = self._nodes.get(name)
        if found is None:
            with self._lock:
                found = self._nodes.setdefault(name, NodeMetrics())
        return found

    @property
    def nodes(self) -> Mapping[str, NodeMetrics]:
        """Counters of every step that counted anything."""
        with self._lock:
            return dict(self._nodes)

    @contextmanager
    def timed(self, name: str) -> Iterator[NodeMetrics]:
        """Add the time that a block takes to a step; the block receives the counters of the step."""
        node = self.node(name)
        start = time.perf_counter()
        try:
            yield node
        finally:
            node.add(seconds=time.perf_counter() - start)

    def __repr__(self) -> str:
        return f"ScanMetrics({', '.join(f'{name}={node!r}' for name, node in self.nodes.items())})"
