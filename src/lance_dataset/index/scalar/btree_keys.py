"""Search for many keys at once in the ordered values of a B-tree index."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_dataset.index.files import IndexTable
from lance_dataset.index.scalar.value_order import order_of

__all__ = ["keys_cost", "positions_of_keys"]

_Places = NDArray[np.int64]

#: Nanoseconds of comparing a key with one value that is taken, and of decoding a value when all are read.
_PROBE_COST = 1000.0
_READ_COST = 1.0
_BATCH_ROWS = 1 << 18


def keys_cost(num_keys: int, num_rows: int, page_rows: int) -> float:
    """Return the nanoseconds of finding keys among ordered values."""
    return min(_probing_cost(num_keys, page_rows), _READ_COST * num_rows) + 1e5


def _probing_cost(num_keys: int, page_rows: int) -> float:
    return _PROBE_COST * num_keys * (max(page_rows, 2).bit_length() + 2)


def positions_of_keys(
    file: IndexTable, column: str, keys: pa.Array, starts: _Places, stops: _Places, page_rows: int
) -> tuple[_Places, _Places]:
    """Return the ranges of positions of the values that equal each of some keys.

    All keys are searched for at the same time by bisection, each step of which takes one value for each key. Many keys
    are compared with all values instead.

    Parameters
    ----------
    file, column
        File with the values in ascending order, and the name of their column.
    keys
        The keys in ascending order.
    starts, stops
        Ranges of positions that may have each key.
    page_rows
        Number of values in a page.

    Returns
    -------
    starts, stops : int64[n]
        Ranges of positions, ascending; keys that do not occur have none.
    """
    wanted = stops > starts
    if not wanted.any():
        return np.empty(0, np.int64), np.empty(0, np.int64)
    keys = keys.filter(pa.array(wanted))
    starts, stops = starts[wanted], stops[wanted]
    if _probing_cost(len(keys), page_rows) > _READ_COST * int(stops[-1] - starts[0]):
        return _read(file, column, keys, int(starts[0]), int(stops[-1]))
    order = order_of(keys.type)
    search = _Search(lambda places: order.bounds(file.take(places, column)), order.bounds(keys))
    first = search.first(starts, stops)
    last = search.after(first, stops)
    found = last > first
    return first[found], last[found]


class _Search:
    """Search for keys in ordered values, of which one is taken for each key at a time.

    Parameters
    ----------
    values_at
        Returns the values at some positions, as their order compares them.
    keys
        The keys, likewise.
    """

    def __init__(self, values_at: Callable[[_Places], Any], keys: Any) -> None:
        self._values_at = values_at
        self._keys = keys

    def first(self, starts: _Places, stops: _Places) -> _Places:
        """Return for each key the first position in its range whose value is not less than it.

        Every other step interpolates, as Peterson's search does, which takes few steps if values are distributed
        evenly; the steps between halve the ranges, whatever the values are.
        """
        low, high = starts.copy(), stops.copy()
        below = np.zeros(len(low), np.uint64), np.zeros(len(low), bool)
        above = np.zeros(len(low), np.uint64), np.zeros(len(low), bool)
        halves = not isinstance(self._keys, np.ndarray)
        step = 0
        while len(left := np.flatnonzero(low < high)):
            middle = (low[left] + high[left]) >> 1
            if not halves and step % 3:
                middle = self._interpolated(left, low[left], high[left], below, above)
            values = self._values_at(middle)
            before = _is_before(values, self._keys, left, or_equal=False)
            low[left[before]] = middle[before] + 1
            high[left[~before]] = middle[~before]
            if not halves:
                for (known, is_known), chosen in ((below, before), (above, ~before)):
                    known[left[chosen]] = values[chosen]
                    is_known[left[chosen]] = True
            step += 1
        return low

    def _interpolated(
        self, left: _Places, low: _Places, high: _Places, below: tuple[NDArray, NDArray], above: tuple[NDArray, NDArray]
    ) -> _Places:
        """Return the position of each key if the values between the last ones seen on both sides were spread evenly."""
        middle: _Places = (low + high) >> 1
        usable = below[1][left] & above[1][left]
        least, greatest = below[0][left][usable], above[0][left][usable]
        # differences first: as floats, large keys would lose their last digits
        share = (self._keys[left[usable]] - least) / np.maximum(greatest - least, np.uint64(1))
        offset = (share * (high - low)[usable]).astype(np.int64)
        middle[usable] = np.clip(low[usable] + offset, low[usable], high[usable] - 1)
        return middle

    def after(self, first: _Places, stops: _Places) -> _Places:
        """Return for each key the end of the values from `first` on that equal it.

        Steps grow as long as values are equal, then the last one is halved.
        """
        low, high = first.copy(), stops.copy()
        size = 1
        left = np.flatnonzero(low < high)
        while len(left):
            probe = np.minimum(low[left] + size - 1, high[left] - 1)
            before = _is_before(self._values_at(probe), self._keys, left, or_equal=True)
            low[left[before]] = probe[before] + 1
            high[left[~before]] = probe[~before]
            left = left[before & (low[left] < high[left])]
            size *= 2
        while len(left := np.flatnonzero(low < high)):
            middle = (low[left] + high[left]) >> 1
            before = _is_before(self._values_at(middle), self._keys, left, or_equal=True)
            low[left[before]] = middle[before] + 1
            high[left[~before]] = middle[~before]
        return low


def _is_before(values: Any, keys: Any, chosen: _Places, *, or_equal: bool) -> NDArray[np.bool_]:
    """Return for each value whether it is less than (or equal to) the key at the chosen place."""
    if isinstance(keys, np.ndarray):
        wanted = keys[chosen]
        found: NDArray[np.bool_] = values <= wanted if or_equal else values < wanted
        return found
    pairs = ((values[place], keys[key]) for place, key in enumerate(chosen.tolist()))
    return np.fromiter((value <= key if or_equal else value < key for value, key in pairs), bool, len(chosen))


def _read(file: IndexTable, column: str, keys: pa.Array, start: int, stop: int) -> tuple[_Places, _Places]:
    """Compare all values of a range with the keys."""
    found = np.concatenate([np.empty(0, np.int64), *_matching(file, column, keys, start, stop)])
    apart = np.diff(found) > 1
    return (
        found[np.append(True, apart)[: len(found)]],
        found[np.append(apart, True)[: len(found)]] + 1,
    )


def _matching(file: IndexTable, column: str, keys: pa.Array, start: int, stop: int) -> Iterator[_Places]:
    order = order_of(keys.type)
    wanted = order.bounds(keys)
    for begin in range(start, stop, _BATCH_ROWS):
        values = file.read(begin, min(begin + _BATCH_ROWS, stop), [column]).column(0)
        if isinstance(wanted, np.ndarray):
            bounds = order.bounds(values)
            places = np.minimum(wanted.searchsorted(bounds), len(wanted) - 1)
            yield np.flatnonzero(wanted[places] == bounds) + begin
        else:
            yield np.flatnonzero(np.asarray(pc.is_in(values, value_set=keys), bool)) + begin
