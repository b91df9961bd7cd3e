"""Search in Bloom-filter indices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.index.files import IndexFolder
from lance_dataset.index.scalar.bloom_filters import BLOOM_FILTERS, FILTERS, HAS_NULL, hashed, is_hashable
from lance_dataset.index.scalar.conditions import Answer, Condition, Interval, ValueCondition
from lance_dataset.index.scalar.value_order import KeyedOrder, order_of
from lance_dataset.index.scalar.zone_search import ZoneSearch, described, is_about_nulls
from lance_dataset.index.scalar.zones import ZONE_COLUMNS, Zones
from lancecodec import CodecError
from lancecodec.search import bloom

__all__ = ["BloomFilterSearch"]

_Chosen = NDArray[np.bool_]

#: Values of an interval that are looked up one by one.
_MOST_VALUES = 64
#: Bytes of filters that are kept in memory, and of those that are read together otherwise.
_KEPT_BYTES = 256 << 20
_READ_BYTES = 16 << 20
#: Nanoseconds of a search, for each interval, for each zone and interval, and for each byte that is read.
_SEARCH_COST, _INTERVAL_COST, _PROBE_COST, _BYTE_COST = 3e4, 5e3, 100.0, 0.2


class BloomFilterSearch(ZoneSearch):
    """An open segment of a Bloom-filter index; see `BTreeSearch` for its methods.

    The files do not say of which type the values are. Without a type, every zone may have a value.
    """

    byte_cost: ClassVar[float] = _BYTE_COST

    def __init__(self, folder: IndexFolder, rows_in: Callable[[int], int]) -> None:
        table = folder.open(BLOOM_FILTERS)
        table.check_columns((*ZONE_COLUMNS, HAS_NULL, FILTERS))
        batch = table.read(columns=(*ZONE_COLUMNS, HAS_NULL))
        super().__init__(table, Zones.read(table, batch), rows_in)
        self.kind: pa.DataType | None = None
        self._has_null = np.asarray(described(table, batch, HAS_NULL, pa.bool_()), bool)
        if table.column_type(FILTERS) not in (pa.binary(), pa.large_binary()):
            raise table.corrupt(f"has filters of the type {table.column_type(FILTERS)}")
        is_small = table.num_bytes <= _KEPT_BYTES
        self._kept = table.read(columns=[FILTERS]).column(0) if is_small else None
        self.nbytes = batch.nbytes + (0 if self._kept is None else self._kept.nbytes)

    @staticmethod
    def answers(condition: Condition) -> Answer:
        """Return how exactly such an index answers a condition, at best; see `is_exact`."""
        if not isinstance(condition, ValueCondition):
            return Answer.NONE
        if is_about_nulls(condition):
            return Answer.EXACT
        return Answer.CANDIDATES if all(map(_has_few_values, condition.intervals)) else Answer.NONE

    def cost(self, condition: Condition) -> float:
        """Return the nanoseconds of probing filters."""
        if not isinstance(condition, ValueCondition):
            return 0.0
        each = _INTERVAL_COST + _PROBE_COST * len(self._has_null)
        reading = 0.0 if self._kept is not None else _BYTE_COST * self._table.num_bytes
        return _SEARCH_COST + each * len(condition.intervals) + reading

    def with_values(self, condition: ValueCondition) -> _Chosen:
        """Return for each zone whether a value other than null may satisfy a condition."""
        if not condition.intervals:
            return np.zeros(len(self._has_null), bool)
        hashes = self._hashes(condition.intervals)
        return np.ones(len(self._has_null), bool) if hashes is None else self._probed(hashes)

    def with_nulls(self) -> _Chosen:
        """Return for each zone whether it has nulls."""
        return self._has_null

    def _hashes(self, intervals: tuple[Interval, ...]) -> NDArray[np.uint64] | None:
        """Return the hashes of the values of intervals; None if they are not known, or too many."""
        kind = self.kind
        if kind is None or not is_hashable(kind) or not all(map(_has_few_values, intervals)):
            return None
        order = order_of(kind)
        if not isinstance(order, KeyedOrder):
            return hashed(pa.array([each.low for each in intervals], kind))
        keys = np.concatenate([_keys(each) for each in intervals])
        values = order.values(keys)
        if pa.types.is_floating(kind) and np.isnan(values.to_numpy()).any():
            return None  # there are many NaNs
        return hashed(values)

    def _probed(self, hashes: NDArray[np.uint64]) -> _Chosen:
        """Return for each zone whether its filter may have one of some hashes."""
        if self._kept is not None:
            return self._probed_part(self._kept, hashes)
        rows = max(_READ_BYTES * self._table.num_rows // self._table.num_bytes, 1)
        parts = (batch.column(0) for batch in self._table.batches([FILTERS], rows))
        return np.concatenate([self._probed_part(part, hashes) for part in parts])

    def _probed_part(self, filters: pa.Array, hashes: NDArray[np.uint64]) -> _Chosen:
        if filters.null_count:
            raise self._table.corrupt("has a zone without a filter")
        found, is_wide = np.empty(len(filters), np.uint8), pa.types.is_large_binary(filters.type)
        if not len(filters):
            return found.view(bool)
        _, offsets, data = filters.buffers()
        width = 8 if is_wide else 4
        places = memoryview(offsets)[filters.offset * width : (filters.offset + len(filters) + 1) * width]
        try:
            bloom.probe(b"" if data is None else data, places, is_wide, hashes.data, found.data)
        except CodecError as error:
            raise self._table.corrupt(f"{FILTERS}: {error}") from error
        return found.view(bool)


def _has_few_values(interval: Interval) -> bool:
    """Return True if the values of an interval can be listed."""
    low, high = interval.low, interval.high
    if low is None or high is None:
        return False
    if isinstance(low, np.uint64):  # a key; between two of them there are no others than whole numbers
        return int(high) - int(low) < _MOST_VALUES
    return bool(low == high) and interval.includes_low and interval.includes_high


def _keys(interval: Interval) -> NDArray[Any]:
    """Return the keys of an interval."""
    low, high = int(interval.low), int(interval.high)
    first, stop = low + (not interval.includes_low), high + interval.includes_high
    return np.arange(stop - first, dtype=np.uint64) + np.uint64(first) if stop > first else np.empty(0, np.uint64)
