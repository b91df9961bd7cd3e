"""Memtables: rows that were written, but not flushed yet."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.memwal.keys import KeyColumns, newest_rows
from lance_dataset.memwal.schemas import one_batch

__all__ = ["Memtable", "MemtableLimits"]


@dataclass(frozen=True)
class MemtableLimits:
    """Sizes from which a memtable is full."""

    rows: int
    num_bytes: int
    batches: int


@dataclass
class Memtable:
    """Rows of one generation in the order in which they were written.

    Attributes
    ----------
    generation
        Number of the memtable.
    schema
        Arrow schema of the rows: columns of the table, and the mark of deletions.
    key
        Primary key.
    names
        Names of the columns by field id, without the mark of deletions.
    first_position, last_position
        Positions of the log with its rows, 0 while there are none.
    rows, num_bytes, batches
        Sizes, with the rows that are still to be logged.
    companions
        What searches keep with it, and with what `as_of_now` returns.
    """

    generation: int
    schema: pa.Schema
    key: KeyColumns
    names: Mapping[int, str]
    first_position: int = 0
    last_position: int = 0
    rows: int = 0
    num_bytes: int = 0
    batches: int = 0
    companions: dict[Any, Any] = field(default_factory=dict)
    _content: list[pa.RecordBatch] = field(default_factory=list)
    _places: dict[object, tuple[int, int]] = field(default_factory=dict)
    _indexed: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _table: pa.Table | None = None

    def has_room(self, rows: int, limits: MemtableLimits) -> bool:
        """Return True if more rows fit; those of a single put fit into any empty memtable."""
        if not self.batches:
            return True
        fits = self.rows + rows <= limits.rows
        return fits and self.num_bytes < limits.num_bytes and self.batches < limits.batches

    def reserve(self, batches: Sequence[pa.RecordBatch]) -> None:
        """Count rows that will be added."""
        self.rows += sum(batch.num_rows for batch in batches)
        self.num_bytes += sum(batch.nbytes for batch in batches)
        self.batches += len(batches)

    def add(self, batches: Sequence[pa.RecordBatch]) -> None:
        """Make rows visible."""
        with self._lock:
            self._content.extend(batches)
            self._table = None

    def note(self, position: int) -> None:
        """Record that rows are at a position of the log."""
        self.first_position = self.first_position or position
        self.last_position = max(self.last_position, position)

    def table(self) -> pa.Table:
        """Return all visible rows, in the order in which they were written."""
        with self._lock:
            if self._table is None:
                self._table = pa.Table.from_batches(self._content, self.schema).combine_chunks()
            return self._table

    def as_of_now(self) -> Memtable:
        """Return a memtable with the rows that are visible now, to which none are added."""
        self.table()  # is kept, also for the next scans
        with self._lock:
            made = Memtable(self.generation, self.schema, self.key, self.names)
            made._content, made._table = list(self._content), self._table
            made.companions = self.companions
            return made

    def newest(self) -> pa.RecordBatch:
        """Return the last row of each key, or all rows of a table without a key."""
        return self.numbered()[1]

    def numbered(self) -> tuple[NDArray[np.int64], pa.RecordBatch]:
        """Return the rows of `newest` with their numbers among all rows, which ascend."""
        batch = one_batch(self.table(), "memtable")
        if not self.key or not batch.num_rows:
            return np.arange(batch.num_rows), batch
        numbers = newest_rows(self.key.array(batch))
        return numbers, batch.take(pa.array(numbers))

    def batches_from(self, number: int) -> list[pa.RecordBatch]:
        """Return the visible batches without the first ones. Batches are only added, so the others stay as they are."""
        return self._content[number:]

    def find(self, key: object) -> pa.RecordBatch | None:
        """Return the last row of a key as a batch, which may stand for a deletion; None if there is none."""
        with self._lock:
            self._index()
            place = self._places.get(key)
            return None if place is None else self._content[place[0]].slice(place[1], 1)

    def _index(self) -> None:
        """Note the places of keys that were added since the last search."""
        for number in range(self._indexed, len(self._content)):
            keys = self.key.array(self._content[number]).to_pylist()
            self._places.update((key, (number, row)) for row, key in enumerate(keys))
        self._indexed = len(self._content)

    @property
    def is_empty(self) -> bool:
        """True if no row is visible."""
        return not self._content

    def key_bytes(self) -> int:
        """Return the bytes of the columns of the key."""
        return sum(batch.column(name).nbytes for batch in self._content for name in self.key.names)
