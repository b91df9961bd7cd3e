"""Search in B-tree indices.

Values are in order, so a range of values is a range of positions. Only the pages at its two ends are examined; of the
pages between them, and of the rows in the range, only the row ids are read.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.index.files import IndexFolder, IndexTable
from lance_dataset.index.scalar.btree import open_lookup, open_page_data, page_rows
from lance_dataset.index.scalar.btree_keys import keys_cost, positions_of_keys
from lance_dataset.index.scalar.conditions import (
    Answer,
    Condition,
    Interval,
    KeyCondition,
    ValueCondition,
    merged_ranges,
    nothing,
)
from lance_dataset.index.scalar.value_order import order_of
from lance_dataset.locks import SharedLock

__all__ = ["BTreeSearch"]

#: Pages whose values are kept in memory.
_KEPT_PAGES = 256
_KEPT_BYTES = 16 << 20
#: Nanoseconds of examining the values of a page.
_PAGE_COST = 4e4


class BTreeSearch:
    """An open segment of a B-tree index.

    Parameters
    ----------
    folder
        Folder of its files.
    rows_in
        Not needed: pages name every row.

    Attributes
    ----------
    kind : DataType
        Type of the values.
    num_rows : int
        Number of entries.
    nbytes : int
        Estimated bytes of memory.
    byte_cost : float
        Nanoseconds of opening, for each byte of its files.

    Raises
    ------
    CorruptFileError
        The files contradict the format.
    """

    byte_cost: ClassVar[float] = 0.02

    def __init__(self, folder: IndexFolder, rows_in: Callable[[int], int] | None = None) -> None:
        lookup = open_lookup(folder)
        self.kind = lookup.schema.fields[0].storage_type
        rows = self._page_rows = page_rows(lookup)
        bounds = lookup.read()
        self._parts: list[_Part] = []
        first = 0
        for file in open_page_data(folder, lookup):
            pages = -(-file.num_rows // rows)
            self._parts.append(_Part(file, bounds.slice(first, pages), rows))
            first += pages
        if first != bounds.num_rows:
            raise lookup.corrupt(f"has the bounds of {bounds.num_rows} pages, but the index has {first} pages")
        self.num_rows = sum(part.num_rows for part in self._parts)
        self.nbytes = 3 * bounds.nbytes + len(self._parts) * _KEPT_BYTES

    @staticmethod
    def answers(condition: Condition) -> Answer:
        """Return how exactly such an index answers a condition."""
        return Answer.EXACT if isinstance(condition, ValueCondition | KeyCondition) else Answer.NONE

    def estimate(self, condition: Condition) -> int:
        """Return an upper estimate of the number of rows; of many keys, that each occurs once."""
        if isinstance(condition, KeyCondition):
            return len(condition.keys)
        return sum(part.estimate(condition) for part in self._parts) if isinstance(condition, ValueCondition) else 0

    def cost(self, condition: Condition) -> float:
        """Return the nanoseconds of examining the values of pages."""
        if isinstance(condition, KeyCondition):
            return keys_cost(len(condition.keys), self.num_rows, self._page_rows)
        return 2 * _PAGE_COST * len(condition.intervals) if isinstance(condition, ValueCondition) else 0.0

    def search(self, condition: Condition) -> NDArray[np.uint64]:
        """Return the ids or addresses of the rows for which the condition is true, in any order, each once.

        Raises
        ------
        CorruptFileError
            The files contradict the format.
        """
        if isinstance(condition, ValueCondition):
            found = [part.search(condition) for part in self._parts]
        elif isinstance(condition, KeyCondition):
            found = [part.rows_of_keys(condition.keys) for part in self._parts]
        else:
            found = []
        return found[0] if len(found) == 1 else np.concatenate([nothing(), *found])


class _Part:
    """A file with a range of values in order, or all of them."""

    def __init__(self, file: IndexTable, bounds: pa.RecordBatch, page_rows: int) -> None:
        self._file = file
        self._page_rows = page_rows
        self.num_rows = file.num_rows
        lows, highs, nulls, _ = bounds.columns
        self._order = order_of(lows.type)
        self._num_nulls = int(np.asarray(nulls, np.int64).sum())
        if self._num_nulls > self.num_rows:
            raise file.corrupt(f"has {self.num_rows} rows, but its pages are said to have {self._num_nulls} nulls")
        # nulls come first: pages of nothing but nulls have no bounds, and a page of both has no lower one
        self._first = highs.null_count
        if highs.slice(self._first).null_count or lows.slice(self._first + 1).null_count:
            raise file.corrupt("has pages with nulls after values")
        self._highs = self._order.bounds(highs.slice(self._first))
        self._lows = self._order.bounds(lows.slice(self._first).drop_null())
        self._open_low = len(self._highs) - len(self._lows)
        self._names = [field.name for field in file.schema.fields]
        self._pages: OrderedDict[int, _Page] = OrderedDict()
        self._kept_bytes = 0
        self._lock = SharedLock()

    def estimate(self, condition: ValueCondition) -> int:
        """Return an upper estimate of the number of rows, from the bounds of pages."""
        ranges = merged_ranges(self._rough(each) for each in condition.intervals)
        return sum(stop - start for start, stop in ranges) + (self._num_nulls if condition.nulls else 0)

    def _page_range(self, interval: Interval) -> tuple[int, int]:
        """Return the pages with values that may have values of an interval."""
        start, stop = 0, len(self._highs)
        if interval.low is not None:
            start = self._order.below(self._highs, interval.low, or_equal=not interval.includes_low)
        if interval.high is not None:
            lows = self._order.below(self._lows, interval.high, or_equal=interval.includes_high)
            stop = min(lows + self._open_low, stop)
        return start + self._first, stop + self._first

    def _rough(self, interval: Interval) -> tuple[int, int]:
        first, stop = self._page_range(interval)
        return max(first * self._page_rows, self._num_nulls), min(stop * self._page_rows, self.num_rows)

    def search(self, condition: ValueCondition) -> NDArray[np.uint64]:
        """Return the rows for which a condition is true."""
        ranges = [self._range(each) for each in condition.intervals]
        if condition.nulls:
            ranges.append((0, self._num_nulls))
        found = [self._ids(start, stop) for start, stop in merged_ranges(ranges)]
        return found[0] if len(found) == 1 else np.concatenate([nothing(), *found])

    def rows_of_keys(self, keys: pa.Array) -> NDArray[np.uint64]:
        """Return the rows of the values that equal some keys, which are ascending."""
        bounds = self._order.bounds(keys)
        highs = [self._order.below(self._highs, bound, or_equal=False) for bound in bounds]
        lows = [self._order.below(self._lows, bound, or_equal=True) for bound in bounds]
        first = np.array(highs, np.int64) + self._first
        stop = np.minimum(np.array(lows, np.int64) + self._open_low, len(self._highs)) + self._first
        starts = np.maximum(first * self._page_rows, self._num_nulls)
        stops = np.minimum(stop * self._page_rows, self.num_rows)
        starts, stops = positions_of_keys(self._file, self._names[0], keys, starts, stops, self._page_rows)
        counts = stops - starts
        places = np.repeat(starts - (np.cumsum(counts) - counts), counts) + np.arange(int(counts.sum()))
        return self._checked(self._file.take(places, self._names[1]))

    def _range(self, interval: Interval) -> tuple[int, int]:
        """Return the positions of the values of an interval."""
        first, stop = self._page_range(interval)
        if first >= stop:
            return 0, 0
        start, end = max(first * self._page_rows, self._num_nulls), min(stop * self._page_rows, self.num_rows)
        if interval.low is not None:
            page = self._page(first)
            start = page.start + self._order.below(page.values, interval.low, or_equal=not interval.includes_low)
        if interval.high is not None:
            page = self._page(stop - 1)
            end = page.start + self._order.below(page.values, interval.high, or_equal=interval.includes_high)
        return start, end

    def _page(self, number: int) -> _Page:
        with self._lock:
            known = self._pages.get(number)
            if known is not None:
                self._pages.move_to_end(number)
                return known
        start = max(number * self._page_rows, self._num_nulls)
        batch = self._file.read(start, min((number + 1) * self._page_rows, self.num_rows), self._names)
        values, ids = batch.columns
        if values.null_count:
            raise self._file.corrupt(f"has nulls in page {number}, which is said to have none")
        found = _Page(start, self._order.bounds(values), self._checked(ids), values.nbytes + ids.nbytes)
        with self._lock:
            if number not in self._pages:
                self._pages[number] = found
                self._kept_bytes += found.nbytes
            while len(self._pages) > 1 and (len(self._pages) > _KEPT_PAGES or self._kept_bytes > _KEPT_BYTES):
                self._kept_bytes -= self._pages.popitem(last=False)[1].nbytes
        return found

    def _ids(self, start: int, stop: int) -> NDArray[np.uint64]:
        """Return the rows of the values at positions ``[start, stop)``, from pages in memory if these have them all."""
        first, last = start // self._page_rows, (stop - 1) // self._page_rows
        with self._lock:
            pages = [self._pages.get(number) for number in range(first, min(last, first + 1) + 1)]
        known = [page for page in pages if page is not None]
        if last - first < 2 and len(known) == len(pages) and start >= known[0].start:
            parts = [page.ids[max(start - page.start, 0) : stop - page.start] for page in known]
            return parts[0] if len(parts) == 1 else np.concatenate(parts)
        return self._checked(self._file.read(start, stop, self._names[1:]).column(0))

    def _checked(self, ids: pa.Array) -> NDArray[np.uint64]:
        if ids.null_count:
            raise self._file.corrupt("a value has no row")
        found: NDArray[np.uint64] = ids.to_numpy(zero_copy_only=False)
        return found


class _Page(NamedTuple):
    """Values of a page without its nulls.

    Attributes
    ----------
    start
        Position of the first value.
    values
        The values, as their order compares them.
    ids
        Their rows.
    nbytes
        Bytes of both.
    """

    start: int
    values: Any
    ids: NDArray[np.uint64]
    nbytes: int
