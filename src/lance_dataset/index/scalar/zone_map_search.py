"""Search in zone maps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.index.files import IndexFolder, IndexTable
from lance_dataset.index.scalar.conditions import Answer, Condition, Interval, ValueCondition
from lance_dataset.index.scalar.extremes import without_nulls
from lance_dataset.index.scalar.value_order import order_of
from lance_dataset.index.scalar.zone_maps import MAX, MIN, NANS, NULLS, ZONE_MAP
from lance_dataset.index.scalar.zone_search import ZoneSearch, described, is_about_nulls
from lance_dataset.index.scalar.zones import ZONE_COLUMNS, Zones
from lance_dataset.index.trainer import is_ordered

__all__ = ["ZoneMapSearch"]

_Chosen = NDArray[np.bool_]
_Ints = NDArray[np.int64]

#: Nanoseconds of a search, for each interval, and for each zone.
_SEARCH_COST, _INTERVAL_COST, _ZONE_COST = 3e4, 5e3, 15.0


class ZoneMapSearch(ZoneSearch):
    """An open segment of a zone map; see `BTreeSearch` for its methods.

    A zone may have a value of an interval if its greatest value is not below the interval, and its least not above.
    """

    byte_cost: ClassVar[float] = 5.0

    def __init__(self, folder: IndexFolder, rows_in: Callable[[int], int]) -> None:
        table = folder.open(ZONE_MAP)
        table.check_columns((MIN, MAX, NULLS, *ZONE_COLUMNS))
        batch = table.read()
        super().__init__(table, Zones.read(table, batch), rows_in)
        self.kind: pa.DataType | None = table.column_type(MAX)
        if table.column_type(MIN) != self.kind:
            raise table.corrupt(f"has bounds of {table.column_type(MIN)} and {self.kind}")
        self._null_counts = described(table, batch, NULLS, pa.uint32()).to_numpy()
        nans = np.zeros(batch.num_rows, np.uint32)
        if NANS in batch.schema.names:
            nans = described(table, batch, NANS, pa.uint32()).to_numpy()
        lows, highs = (batch.column(batch.schema.get_field_index(each)) for each in (MIN, MAX))
        if not is_ordered(self.kind):  # the reference builds zone maps of all types
            lows = highs = pa.nulls(batch.num_rows, pa.bool_())
        self._bounds = _Bounds(table, lows, highs)
        self._has_nans = (nans > 0) | self._bounds.has_nan
        # the reference does not know the bounds of values of some types
        others = self._zones.num_rows > self._null_counts.astype(np.int64) + nans
        self._is_unbounded = others & ~self._bounds.known
        self.nbytes = 3 * batch.nbytes

    @staticmethod
    def answers(condition: Condition) -> Answer:
        """Return how exactly such an index answers a condition, at best; see `is_exact`."""
        if not isinstance(condition, ValueCondition):
            return Answer.NONE
        return Answer.EXACT if is_about_nulls(condition) else Answer.CANDIDATES

    def cost(self, condition: Condition) -> float:
        """Return the nanoseconds of comparing bounds."""
        if not isinstance(condition, ValueCondition):
            return 0.0
        return _SEARCH_COST + _INTERVAL_COST * len(condition.intervals) + _ZONE_COST * len(self._has_nans)

    def with_values(self, condition: ValueCondition) -> _Chosen:
        """Return for each zone whether a value other than null may satisfy a condition."""
        found = self._bounds.meet(condition.intervals)
        if self._has_nans.any() and self._bounds.reach_nans(condition.intervals):
            found |= self._has_nans
        return found | self._is_unbounded if condition.intervals else found

    def with_nulls(self) -> _Chosen:
        """Return for each zone whether it has nulls."""
        found: _Chosen = self._null_counts > 0
        return found


class _Bounds:
    """Bounds of zones, as ranks among all bounds.

    Attributes
    ----------
    has_nan : bool[n]
        True for zones with a bound that is NaN.
    known : bool[n]
        True for zones with bounds of ordinary values.
    """

    def __init__(self, table: IndexTable, lows: pa.Array, highs: pa.Array) -> None:
        self._order = order_of(highs.type)
        self.has_nan = np.zeros(len(highs), bool)
        self._infinities: tuple[Any, Any] | None = None
        if pa.types.is_floating(highs.type):
            lows, highs = self._without_nans(lows, highs)
        # a zone without an upper bound has no values; one with just that may have anything below
        self.known = np.asarray(highs.is_valid(), bool)
        least, greatest = (each.filter(pa.array(self.known)) for each in (lows, highs))
        bounded = np.asarray(least.is_valid(), bool)
        ordered, places = self._order.sort(pa.concat_arrays([least.drop_null(), greatest]))
        self._sorted = self._order.bounds(ordered)
        ranks = np.empty(len(places), np.int64)
        ranks[places] = np.arange(len(places))
        if len(ordered):  # equal bounds get the rank of the first
            first = np.append(True, self._order.changes(ordered))
            ranks = np.flatnonzero(first)[np.cumsum(first) - 1][ranks]
        self._lows = np.full(len(greatest), -1)
        self._lows[bounded] = ranks[: int(bounded.sum())]
        self._highs = ranks[int(bounded.sum()) :]
        if (self._lows > self._highs).any():
            raise table.corrupt("has a zone whose least value is above its greatest one")

    def _without_nans(self, lows: pa.Array, highs: pa.Array) -> tuple[pa.Array, pa.Array]:
        """Return the bounds of ordinary values, about which one that is NaN says nothing."""
        kind = highs.type
        infinities = pa.array(np.array([-np.inf, np.inf], kind.to_pandas_dtype()))
        below, above = (self._order.bound(each) for each in infinities)
        self._infinities = below, above
        least, greatest = without_nulls(lows).to_numpy(), without_nulls(highs).to_numpy()
        no_low, no_high = np.asarray(lows.is_null(), bool), np.asarray(highs.is_null(), bool)
        low_nans, high_nans = np.isnan(least) & ~no_low, np.isnan(greatest) & ~no_high
        self.has_nan |= low_nans | high_nans
        no_high |= no_low & high_nans  # nothing but NaNs
        real = least.dtype.type
        return (
            pa.array(np.where(low_nans, real(-np.inf), least), kind, mask=no_low),
            pa.array(np.where(high_nans, real(np.inf), greatest), kind, mask=no_high),
        )

    def reach_nans(self, intervals: tuple[Interval, ...]) -> bool:
        """Return True if some interval has NaNs of either sign."""
        if self._infinities is None:
            return False
        below, above = self._infinities
        return any(each.low is None or each.high is None or each.low < below or each.high > above for each in intervals)

    def meet(self, intervals: tuple[Interval, ...]) -> _Chosen:
        """Return for each zone whether its bounds let it have values of an interval.

        An interval is left of a zone if its end is at or before the rank of the lower bound; then its start is, too.
        So the zone meets as many intervals as start up to its upper bound, without those that are left of it.
        """
        found = np.zeros(len(self.has_nan), bool)
        starts, stops = self._ranks(intervals)
        begun = np.searchsorted(np.sort(starts), self._highs, side="right")
        ended = np.searchsorted(np.sort(stops), self._lows, side="right")
        found[self.known] = begun > ended
        return found

    def _ranks(self, intervals: tuple[Interval, ...]) -> tuple[_Ints, _Ints]:
        """Return the numbers of bounds before each interval, and before its end."""
        below, count = self._order.below, len(self._sorted)
        starts, stops = [], []
        for each in intervals:
            start = 0 if each.low is None else below(self._sorted, each.low, or_equal=not each.includes_low)
            stop = count if each.high is None else below(self._sorted, each.high, or_equal=each.includes_high)
            if start <= stop:
                starts.append(start)
                stops.append(stop)
        return np.array(starts, np.int64), np.array(stops, np.int64)
