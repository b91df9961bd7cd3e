"""Search in bitmap and label-list indices."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_dataset.index.files import IndexFolder
from lance_dataset.index.scalar.bitmap import KEYS, LOOKUP, SETS
from lance_dataset.index.scalar.conditions import (
    Answer,
    Condition,
    Interval,
    ItemCondition,
    KeyCondition,
    ValueCondition,
    merged_ranges,
    nothing,
)
from lance_dataset.index.scalar.row_set_rows import rows_of_sets
from lance_dataset.index.scalar.value_order import order_of
from lance_dataset.table.row_sets import ROW_SETS

__all__ = ["BitmapSearch", "LabelListSearch"]

_Rows = NDArray[np.uint64]

#: Bytes of sets that are kept in memory.
_KEPT_BYTES = 16 << 20
#: Bytes from which a set may have a bit for each row.
_BITSET_BYTES = 8 << 10
#: Nanoseconds of reading a set, and of each byte of the file when it is opened.
_SET_COST = 4e4
_BYTE_COST = 3.0


class _Keyed:
    """The keys of an index in order, and the row set of each.

    Parameters
    ----------
    folder
        Folder of its file.
    rows_in
        Returns the number of rows, deleted ones included, of a fragment.

    Attributes
    ----------
    kind : DataType
        Type of the keys.
    nbytes : int
        Estimated bytes of memory.
    """

    def __init__(self, folder: IndexFolder, rows_in: Callable[[int], int]) -> None:
        self._table = folder.open(LOOKUP)
        self._rows_in = rows_in
        self.kind = self._table.column_type(KEYS)
        keys = self._table.read(columns=[KEYS]).column(0)
        self._order = order_of(self.kind)
        nulls = np.flatnonzero(np.asarray(keys.is_null()))
        if len(nulls) > 1:
            raise self._table.corrupt("has several keys that are null")
        self.null_place = int(nulls[0]) if len(nulls) else None
        valid = np.flatnonzero(np.asarray(keys.is_valid()))
        ordered, places = self._order.sort(keys.drop_null())  # old releases wrote keys in any order
        self._bounds = self._order.bounds(ordered)
        self._places = valid[places]
        self._kept = self._table.read(columns=[SETS]).column(0) if self._table.num_bytes <= _KEPT_BYTES else None
        self._lengths = None if self._kept is None else np.asarray(pc.binary_length(self._kept), np.int64)
        self.nbytes = 3 * keys.nbytes + (0 if self._kept is None else self._kept.nbytes)

    @property
    def num_keys(self) -> int:
        """Number of keys that are not null."""
        return len(self._places)

    def ranges(self, condition: ValueCondition) -> list[tuple[int, int]]:
        """Return the ranges of keys in their order that a condition is true for."""
        found = []
        for each in condition.intervals:
            low, high = 0, self.num_keys
            if each.low is not None:
                low = self._order.below(self._bounds, each.low, or_equal=not each.includes_low)
            if each.high is not None:
                high = self._order.below(self._bounds, each.high, or_equal=each.includes_high)
            found.append((low, high))
        return merged_ranges(found)

    def places(self, condition: ValueCondition) -> NDArray[np.int64]:
        """Return the places of the sets whose keys a condition is true for, ascending."""
        parts = [self._places[low:high] for low, high in self.ranges(condition)]
        if condition.nulls and self.null_place is not None:
            parts.append(np.array([self.null_place]))
        return np.sort(np.concatenate([np.empty(0, np.int64), *parts]))

    def places_of_keys(self, keys: pa.Array) -> NDArray[np.int64]:
        """Return the places of the sets of some keys, ascending."""
        wanted = self._order.bounds(keys)
        at = [self._order.below(self._bounds, bound, or_equal=False) for bound in wanted]
        found = [place for place, bound in zip(at, wanted, strict=True) if self._has(place, bound)]
        return np.sort(self._places[np.array(found, np.int64)])

    def _has(self, place: int, bound: Any) -> bool:
        return place < self.num_keys and bool(self._bounds[place] == bound)

    def sets(self, places: NDArray[np.int64]) -> pa.Array:
        """Return the serialized sets at some places."""
        if self._kept is not None:
            return self._kept.take(pa.array(places))
        if not len(places):
            return pa.array([], pa.large_binary())
        cuts = np.flatnonzero(np.diff(places) > 1) + 1
        runs = zip(places[np.append(0, cuts)].tolist(), places[np.append(cuts - 1, -1)].tolist(), strict=True)
        return pa.concat_arrays([self._table.read(start, last + 1, [SETS]).column(0) for start, last in runs])

    def rows(self, places: NDArray[np.int64]) -> list[_Rows]:
        """Return the rows of the sets at some places."""
        return rows_of_sets(self.sets(places), ROW_SETS, self._rows_in, self._table.where)

    def estimate(self, places: NDArray[np.int64]) -> int:
        """Return an upper estimate of the rows of the sets at some places, from their bytes."""
        if self._lengths is None:
            return _most_rows(np.array([self._table.num_bytes // max(self._table.num_rows, 1)])) * len(places)
        return _most_rows(self._lengths[places])


def _most_rows(lengths: NDArray[np.integer[Any]]) -> int:
    """Estimate the rows of sets of some bytes: two bytes a row, or a bit in containers with many rows."""
    return int(np.where(lengths < _BITSET_BYTES, lengths // 2, 8 * lengths).sum())


def _united(parts: list[_Rows]) -> _Rows:
    """Return the rows of sets that have no row in common."""
    return parts[0] if len(parts) == 1 else np.concatenate([nothing(), *parts])


class BitmapSearch:
    """An open segment of a bitmap index; see `BTreeSearch` for its methods."""

    byte_cost: ClassVar[float] = _BYTE_COST

    def __init__(self, folder: IndexFolder, rows_in: Callable[[int], int]) -> None:
        self._keyed = _Keyed(folder, rows_in)
        self.kind = self._keyed.kind
        self.nbytes = self._keyed.nbytes

    @staticmethod
    def answers(condition: Condition) -> Answer:
        """Return how exactly such an index answers a condition."""
        return Answer.EXACT if isinstance(condition, ValueCondition | KeyCondition) else Answer.NONE

    def _places(self, condition: Condition) -> NDArray[np.int64]:
        if isinstance(condition, KeyCondition):
            return self._keyed.places_of_keys(condition.keys)
        return self._keyed.places(condition) if isinstance(condition, ValueCondition) else np.empty(0, np.int64)

    def estimate(self, condition: Condition) -> int:
        """Return an upper estimate of the number of rows, from the bytes of the sets."""
        return self._keyed.estimate(self._places(condition))

    def cost(self, condition: Condition) -> float:
        """Return the nanoseconds of reading sets."""
        return _SET_COST * len(self._places(condition))

    def search(self, condition: Condition) -> _Rows:
        """Return the ids of the rows for which the condition is true, in any order, each once."""
        return _united(self._keyed.rows(self._places(condition)))


class LabelListSearch:
    """An open segment of a label-list index; see `BTreeSearch` for its methods."""

    byte_cost: ClassVar[float] = _BYTE_COST

    def __init__(self, folder: IndexFolder, rows_in: Callable[[int], int]) -> None:
        self._keyed = _Keyed(folder, rows_in)
        self.kind = self._keyed.kind
        self.nbytes = self._keyed.nbytes

    @staticmethod
    def answers(condition: Condition) -> Answer:
        """Return how exactly such an index answers a condition."""
        is_known = isinstance(condition, ItemCondition) and not condition.negated
        return Answer.EXACT if is_known else Answer.NONE

    def _places(self, condition: ItemCondition) -> list[NDArray[np.int64]]:
        """Return the place of the set of each item, or no place."""
        order = order_of(self.kind)
        found = []
        for item in condition.items:
            bound = order.bound(item)
            found.append(self._keyed.places(ValueCondition((Interval(bound, bound),))))
        return found

    def estimate(self, condition: Condition) -> int:
        """Return an upper estimate of the number of rows, from the bytes of the sets."""
        if not isinstance(condition, ItemCondition):
            return 0
        sizes = [self._keyed.estimate(places) for places in self._places(condition)]
        return (min if condition.every else sum)(sizes) if sizes else 0

    def cost(self, condition: Condition) -> float:
        """Return the nanoseconds of reading sets."""
        return _SET_COST * len(condition.items) if isinstance(condition, ItemCondition) else 0.0

    def search(self, condition: Condition) -> _Rows:
        """Return the ids of the rows for which the condition is true, in any order, each once."""
        if not isinstance(condition, ItemCondition) or not len(condition.items):
            return nothing()
        sets = [_united(self._keyed.rows(places)) for places in self._places(condition)]
        if condition.every:
            return reduce(lambda one, two: np.intersect1d(one, two, assume_unique=True), sets)
        return sets[0] if len(sets) == 1 else np.unique(np.concatenate(sets))
