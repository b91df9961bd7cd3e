"""Windows: rows of one or several fragments that a scan processes together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lance_dataset.file.stored_test import StoredTest
from lance_dataset.file.zones import Zones
from lance_dataset.late_dataclass import dataclass
from lance_dataset.locks import SharedLock
from lance_dataset.properties import cached_property
from lance_dataset.read.fragment_reader import FragmentReader
from lance_dataset.read.table_reader import TableReader
from lance_dataset.scan.request import ScanRequest
from lance_dataset.scan.row_ranges import RowRanges
from lance_dataset.scan.strategy import ScanStrategy
from lancecodec.intervals import NONE_PASS

if TYPE_CHECKING:
    from lance_dataset.scan.pruning.prune import Pruner

__all__ = ["Pruning", "Ranges", "Slice", "Window", "fragments_of", "windows"]

#: Fragments, with the physical rows ``[start, stop)`` of each.
Ranges: TypeAlias = "Iterator[tuple[FragmentReader, int, int]]"

#: Ranges that may have matches are read together with the gap between them if the gap is smaller than this.
_GAP_BYTES = 256 << 10
#: Up to this number of ranges are always read one by one.
_FEW_RANGES = 8
#: Many ranges that cover less than this share of the rows they span are read row by row.
_SCATTERED = 0.25
#: So are many ranges of fewer rows on average, because a range costs as much as some hundred single rows.
_SHORT_RANGE = 256
#: Smaller fragments of other files than legacy ones have no bounds of values.
_LEAST_BOUNDED = 1 << 12
#: Factor by which windows grow if they start small.
_GROWTH = 4
#: Maximum number of fragments in a window.
_MAX_SLICES = 512


@dataclass(frozen=True, eq=False)
class Slice:
    """Rows of one fragment.

    Attributes
    ----------
    fragment
        The fragment.
    ranges
        Physical rows ``[start, stop)``, ascending and not empty.
    """

    fragment: FragmentReader
    ranges: tuple[tuple[int, int], ...]

    @cached_property
    def width(self) -> int:
        """Number of rows."""
        if len(self.ranges) > _FEW_RANGES:
            return int(self._ends[-1])
        return sum(stop - start for start, stop in self.ranges)

    @cached_property
    def _bounds(self) -> NDArray[np.int64]:
        """Return the ranges as an array of two columns."""
        return np.array(self.ranges, np.int64).reshape(-1, 2)

    @cached_property
    def _ends(self) -> NDArray[np.int64]:
        """Return the place after the last row of each range."""
        return np.cumsum(self._bounds[:, 1] - self._bounds[:, 0])

    @property
    def is_scattered(self) -> bool:
        """True if the ranges are many and small, like those of rows that a filter names."""
        if len(self.ranges) <= _FEW_RANGES:
            return False
        return self.width < max(_SCATTERED * (self.ranges[-1][1] - self.ranges[0][0]), _SHORT_RANGE * len(self.ranges))

    @cached_property
    def rows(self) -> NDArray[np.int64]:
        """Physical rows of the slice."""
        if len(self.ranges) == 1:
            return np.arange(*self.ranges[0])
        if len(self.ranges) > _FEW_RANGES:
            starts, lengths = self._bounds[:, 0], self._bounds[:, 1] - self._bounds[:, 0]
            return np.repeat(starts - (self._ends - lengths), lengths) + np.arange(self.width)
        return np.concatenate([np.arange(start, stop) for start, stop in self.ranges] or [np.empty(0, np.int64)])

    def rows_at(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the physical rows at some places of the slice."""
        return places + self.ranges[0][0] if len(self.ranges) == 1 else self.rows[places]

    def cut(self, first: int, stop: int) -> Slice:
        """Return the rows at places ``[first, stop)``."""
        if first <= 0 and stop >= self.width:
            return self
        if len(self.ranges) > _FEW_RANGES:
            return self._cut_many(max(first, 0), min(stop, self.width))
        found, base = [], 0
        for low, high in self.ranges:
            begin, end = max(low, low + first - base), min(high, low + stop - base)
            if begin < end:
                found.append((begin, end))
            base += high - low
        return Slice(self.fragment, tuple(found))

    def _cut_many(self, first: int, stop: int) -> Slice:
        """Cut many ranges without looking at each."""
        if first >= stop:
            return Slice(self.fragment, ())
        low, high = np.searchsorted(self._ends, (first, stop - 1), side="right").tolist()
        found = list(self.ranges[low : high + 1])
        end = found[-1][1] - (int(self._ends[high]) - stop)
        start = found[0][1] - (int(self._ends[low]) - first)
        found[-1] = found[-1][0], end
        found[0] = start, found[0][1]
        return Slice(self.fragment, tuple(found))

    def live(self) -> NDArray[np.int64] | None:
        """Return places of the rows that are not deleted, None for all."""
        if self.fragment.fragment.deletion_file is None or not self.ranges:
            return None
        gone = self.deleted()
        if len(gone) == 0:
            return None
        keep = np.ones(self.width, bool)
        keep[gone] = False
        return np.flatnonzero(keep)

    def deleted(self) -> NDArray[np.int64]:
        """Return the places of the rows that are deleted."""
        deletions = self.fragment.deletions
        if len(self.ranges) > _FEW_RANGES:
            return np.flatnonzero(~self.fragment.is_live(self.rows))
        found, base = [], 0
        for start, stop in self.ranges:
            low, high = (
                (0, len(deletions))
                if start == 0 and stop >= self.fragment.physical_rows
                else (np.searchsorted(deletions, (start, stop)).tolist())
            )
            found.append(deletions[low:high] + (base - start))
            base += stop - start
        return found[0] if len(found) == 1 else np.concatenate(found)


@dataclass(frozen=True, eq=False)
class Window:
    """Rows that are processed together; places are counted through all slices.

    Attributes
    ----------
    slices
        Rows by fragment, in the order of the scan.
    """

    slices: tuple[Slice, ...]

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Place of the first row of each slice, followed by the number of rows."""
        return np.cumsum([0, *(part.width for part in self.slices)])

    @cached_property
    def width(self) -> int:
        """Number of rows."""
        return self.slices[0].width if len(self.slices) == 1 else int(self.starts[-1])

    def cut(self, first: int, stop: int) -> Window:
        """Return the rows at places ``[first, stop)``."""
        if len(self.slices) == 1:
            return Window((self.slices[0].cut(first, stop),))
        starts = self.starts.tolist()
        low = int(np.searchsorted(self.starts, first, side="right")) - 1
        high = int(np.searchsorted(self.starts, stop, side="left"))
        return Window(
            tuple(self.slices[number].cut(first - starts[number], stop - starts[number]) for number in range(low, high))
        )


# -- making them -------------------------------------------------------------------------------------------------


def fragments_of(reader: TableReader | FragmentReader, request: ScanRequest) -> Ranges:
    """Yield the fragments of a scan (one, if the reader is a fragment), with the physical rows of each to examine."""
    if isinstance(reader, FragmentReader):
        fragments: Sequence[FragmentReader] = (reader,)
        positions: Sequence[int] = (0,)
    else:
        fragments = reader.fragments
        positions = range(len(fragments)) if request.fragments is None else request.fragments
    for position in positions:
        fragment = fragments[position]
        if request.rows is not None and fragment.fragment.id not in request.rows:
            continue
        rows = fragment.physical_rows
        start, stop = request.row_range or (0, rows)
        yield fragment, min(start, rows), min(stop, rows)


def windows(ranges: Ranges, request: ScanRequest, plan: ScanStrategy) -> Iterator[Window]:
    """Cut the rows of fragments into windows: parts of a large fragment, or several small fragments.

    Parameters
    ----------
    ranges
        Fragments with the physical rows wanted of each.
    request
        The scan; rows that it does not name are in no window.
    plan
        The strategy, which sets the number of rows of a window.
    """
    size = room = plan.first_rows
    slices: list[Slice] = []
    for fragment, start, stop in ranges:
        rest = _wanted(fragment, request, start, stop)
        while rest.width:
            if not slices or (rest.width <= room and len(slices) < _MAX_SLICES):
                part, rest = rest.cut(0, room), rest.cut(room, rest.width)
                slices.append(part)
                room -= part.width
                if room > 0:
                    continue
            yield Window(tuple(slices))
            size = min(size * _GROWTH, plan.window_rows)
            slices, room = [], size
    if slices:
        yield Window(tuple(slices))


def _wanted(fragment: FragmentReader, request: ScanRequest, start: int, stop: int) -> Slice:
    if request.rows is None:
        return Slice(fragment, ((start, stop),) if start < stop else ())
    return Slice(fragment, tuple(request.rows[fragment.fragment.id].within(start, stop)))


def _pruner(request: ScanRequest) -> Pruner | None:
    if request.filter is None or not request.use_statistics:
        return None
    from lance_dataset.scan.pruning.prune import Pruner

    return Pruner.of(request.filter)


class Pruning:
    """Rows excluded by statistics, determined once per fragment.

    Parameters
    ----------
    request
        The scan.
    plan
        The strategy of the scan, whose tests of stored values are faster than a look at the whole filter.
    """

    def __init__(self, request: ScanRequest, plan: ScanStrategy | None = None) -> None:
        self._request = request
        self._pruner = _pruner(request)
        self._tests: list[tuple[str, StoredTest]] = []
        if plan is not None and None not in plan.tests:
            names = [step.columns[0] for step in plan.steps if len(step.columns) == 1]
            self._tests = [(name, test) for name, test in zip(names, plan.tests, strict=False) if test is not None]
        self._known: dict[int, RowRanges | None] = {}
        self._lock = SharedLock()
        self._waits = plan is not None and plan.waits

    def prune(self, window: Window) -> Window:
        """Return the window without the rows that statistics exclude."""
        if self._pruner is None:
            return window
        kept, changed = [], False
        for part in window.slices:
            possible = self._possible(part.fragment, self._pruner)
            if possible is None:
                kept.append(part)
                continue
            changed = True
            ranges = tuple(piece for start, stop in part.ranges for piece in possible.within(start, stop))
            if ranges:
                kept.append(Slice(part.fragment, ranges))
        return Window(tuple(kept)) if changed else window

    def _possible(self, fragment: FragmentReader, pruner: Pruner) -> RowRanges | None:
        """Return the rows that the statistics of a fragment do not exclude, None for all."""
        number = fragment.fragment.id
        if number in self._known:
            return self._known[number]
        if self._waits:  # other fragments must not wait for a request
            self._known[number] = self._found(fragment, pruner)
            return self._known[number]
        with self._lock:
            if number not in self._known:
                self._known[number] = self._found(fragment, pruner)
            return self._known[number]

    def _found(self, fragment: FragmentReader, pruner: Pruner) -> RowRanges | None:
        if not fragment.is_legacy and fragment.physical_rows < _LEAST_BOUNDED:
            return None  # without opening the columns
        schema = self._request.schema

        def zones(path: tuple[str, ...]) -> Zones | None:
            if path[0] not in schema.names:
                return None
            return fragment.column(schema.top_level(path[0])).zones(path[1:])

        gap = int(_GAP_BYTES / fragment.bytes_per_row)
        if self._tests and not fragment.is_legacy:
            return self._tested(fragment, gap)
        return pruner.ranges(zones, fragment.physical_rows, gap=gap)

    def _tested(self, fragment: FragmentReader, gap: int) -> RowRanges | None:
        """Return the rows that all tests may keep, None for all."""
        rows, schema = fragment.physical_rows, self._request.schema
        found = [fragment.column(schema.top_level(name)).verdicts(test) for name, test in self._tests]
        known = [each for each in found if each is not None]
        if not known:
            return None
        least = min(size for size, _ in known)
        starts = np.arange(0, rows, least, dtype=np.int64)
        match = np.ones(len(starts), bool)
        for size, verdicts in known:
            match &= verdicts[starts // size] != NONE_PASS
        return None if match.all() else RowRanges.of(np.append(starts, rows), match, gap)
