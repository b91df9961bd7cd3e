"""Entries of an index, sorted in memory: in short runs while they come, which are merged part by part.

A run fits into the caches of a processor, and is kept in half the bytes of its entries if its keys and rows lie close
to each other. So sorting needs little memory besides the entries, and takes no longer than sorting all of them at once.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_dataset.index.scalar.value_order import KeyedOrder
from lance_dataset.late_dataclass import dataclass
from lancecodec.search.sorting import sort_keys

__all__ = ["KeyedRuns"]

_Numbers = NDArray[np.uint64]

#: Most entries of a run, and about how many are in a part of the result: few parts have more, which take more room.
_RUN_ENTRIES = 1 << 17
_PART_ENTRIES = 7 << 14
#: One of so many keys of each run is looked at to cut the result into parts.
_SAMPLE_STEP = 1 << 10
_SMALL = np.uint64((1 << 32) - 1)


class _Workspace:
    """Keys and rows that are sorted together, in memory that is used again and again."""

    def __init__(self) -> None:
        self.count = 0
        self._keys = [np.empty(0, np.uint64) for _ in range(3)]
        self._places = [np.empty(0, np.uint32) for _ in range(2)]
        self._rows = np.empty(0, np.uint64)

    def room(self, count: int) -> tuple[_Numbers, _Numbers]:
        """Return room for the keys and the rows of some more entries."""
        start, self.count = self.count, self.count + count
        if self.count > len(self._rows):
            size = max(self.count, _RUN_ENTRIES)
            kept = [(self._keys[0][:start], np.empty(size, np.uint64)), (self._rows[:start], np.empty(size, np.uint64))]
            for old, new in kept:
                new[:start] = old
            self._keys = [kept[0][1], *(np.empty(size, np.uint64) for _ in range(2))]
            self._places = [np.empty(size, np.uint32) for _ in range(2)]
            self._rows = kept[1][1]
        return self._keys[0][start : self.count], self._rows[start : self.count]

    def drain(self) -> tuple[_Numbers, _Numbers]:
        """Return keys in order, which are valid until the next call, and a copy of their rows; forget all entries."""
        count, self.count = self.count, 0
        keys, ordered, other_keys = (array[:count] for array in self._keys)
        places, other_places = (array[:count] for array in self._places)
        if not sort_keys(keys.data, ordered.data, places.data, other_keys.data, other_places.data):
            return keys, self._rows[:count].copy()
        return ordered, self._rows[:count][places]


@dataclass(frozen=True, eq=False)
class _Close:
    """Unsigned numbers as differences to the least one, of 32 bits if they fit."""

    least: np.uint64
    differences: NDArray[np.uint32] | _Numbers

    @classmethod
    def of(cls, numbers: _Numbers, least: np.uint64, greatest: np.uint64) -> _Close:
        """Return the numbers in this form."""
        kept = np.empty(len(numbers), np.uint32 if greatest - least <= _SMALL else np.uint64)
        np.subtract(numbers, least, out=kept, casting="unsafe")
        return cls(least, kept)

    def put(self, start: int, stop: int, out: _Numbers) -> None:
        """Write the numbers at places ``[start, stop)``."""
        np.add(self.differences[start:stop], self.least, out=out)

    def below(self, bounds: _Numbers) -> NDArray[np.int64]:
        """Return for each bound how many of the numbers, which are ascending, are less."""
        more = np.where(bounds > self.least, bounds - self.least, np.uint64(0))
        if self.differences.dtype == np.uint64:
            return self.differences.searchsorted(more)
        found = self.differences.searchsorted(np.minimum(more, _SMALL).astype(np.uint32))
        found[more > _SMALL] = len(self.differences)
        return found

    def sample(self) -> _Numbers:
        """Return some of the numbers."""
        return self.differences[::_SAMPLE_STEP].astype(np.uint64) + self.least


class KeyedRuns:
    """Collects entries and yields them in the order of their values, nulls first; equal values keep their order.

    Parameters
    ----------
    schema
        Columns of the entries: values, and the rows that they are of.
    order
        Order of the values.
    """

    def __init__(self, schema: pa.Schema, order: KeyedOrder) -> None:
        self._schema = schema
        self._order = order
        self._work = _Workspace()
        self._runs: list[tuple[_Close, _Close]] = []
        self._nulls: list[pa.Array] = []

    def add(self, batch: pa.RecordBatch) -> None:
        """Add entries."""
        values, rows = batch.columns
        if values.null_count:
            nulls = values.is_null()
            self._nulls.append(rows.filter(nulls))
            values, rows = values.drop_null(), rows.filter(pc.invert(nulls))
        for start in range(0, len(values), _RUN_ENTRIES):
            part = values.slice(start, _RUN_ENTRIES)
            if self._work.count + len(part) > _RUN_ENTRIES:
                self._end_run()
            keys, places = self._work.room(len(part))
            keys[:] = self._order.keys(part)
            places[:] = rows.slice(start, _RUN_ENTRIES).to_numpy()

    def _end_run(self) -> None:
        keys, rows = self._work.drain()
        if len(keys):
            self._runs.append((_Close.of(keys, keys[0], keys[-1]), _Close.of(rows, rows.min(), rows.max())))

    def drain(self) -> Iterator[pa.RecordBatch]:
        """Yield all entries in order, after which there are none."""
        self._end_run()
        nulls, self._nulls = self._nulls, []
        runs, self._runs = self._runs, []
        kind = self._schema.field(0).type
        for missing in nulls:
            yield pa.RecordBatch.from_arrays([pa.nulls(len(missing), kind), missing], schema=self._schema)
        if not runs:
            return
        starts = [0] * len(runs)
        ends = np.stack([keys.below(_bounds(runs)) for keys, _ in runs], axis=1).tolist()
        for stops in [*ends, [len(keys.differences) for keys, _ in runs]]:
            for (keys, rows), start, stop in zip(runs, starts, stops, strict=True):
                if start < stop:
                    room = self._work.room(stop - start)
                    keys.put(start, stop, room[0])
                    rows.put(start, stop, room[1])
            starts = stops
            if self._work.count:
                merged, found = self._work.drain()
                yield pa.RecordBatch.from_arrays([self._order.values(merged), pa.array(found)], schema=self._schema)


def _bounds(runs: list[tuple[_Close, _Close]]) -> _Numbers:
    """Return the keys at which the parts of the result end, all different."""
    step = _PART_ENTRIES // _SAMPLE_STEP
    return np.unique(np.sort(np.concatenate([keys.sample() for keys, _ in runs]))[step::step])
