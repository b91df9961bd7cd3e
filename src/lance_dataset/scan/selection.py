"""Selected rows of a window, with the values already read for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.expr.array_predicates import places_of
from lance_dataset.late_dataclass import dataclass
from lance_dataset.properties import cached_property
from lance_dataset.read.kept_values import KeptRows
from lance_dataset.scan.encoded_column import EncodedColumn
from lance_dataset.scan.request import ScanRequest
from lance_dataset.scan.windows import Slice, Window
from lancecodec import bitmap

__all__ = ["Known", "MaskedSelection", "Selection", "drop_deleted", "live_rows"]


@dataclass(frozen=True, eq=False)
class Known:
    """Values of a column that were read to find the rows.

    Attributes
    ----------
    values
        The values in stored form.
    places
        Places of the values in the window, ascending; None for all.
    """

    values: EncodedColumn
    places: NDArray[np.int64] | None = None

    def at(self, places: NDArray[np.int64] | None) -> pa.Array:
        """Return the values at some places, all of which must be known."""
        if places is None or places is self.places:
            return self.values.decoded()
        return self.values.take(pa.array(places if self.places is None else np.searchsorted(self.places, places)))

    def cut(self, first: int, stop: int) -> Known:
        """Return the values of the places ``[first, stop)``, with places counted from `first`."""
        if self.places is None:
            return Known(self.values.slice(first, stop - first))
        low, high = np.searchsorted(self.places, (first, stop)).tolist()
        return Known(self.values.slice(low, high - low), self.places[low:high] - first)


@dataclass(frozen=True, eq=False)
class Selection:
    """Rows of a window.

    Attributes
    ----------
    window
        The window.
    places
        int64, ascending: places of the selected rows; None for all.
    known
        Values of these rows that were already read, keyed by the identity of the field.
    """

    window: Window
    places: NDArray[np.int64] | None = None
    known: Mapping[int, Known] = field(default_factory=dict)

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return self.window.width if self.places is None else len(self.places)

    @property
    def is_whole(self) -> bool:
        """True if all rows of the window are selected, as far as that is known without looking at them."""
        return self.places is None

    @cached_property
    def mask(self) -> pa.BooleanArray:
        """One boolean per row of the window, true for those that are selected."""
        flags = np.full(self.window.width, self.places is None)
        if self.places is not None:
            flags[self.places] = True
        return pa.array(flags)

    @cached_property
    def _kept(self) -> dict[tuple[int, int], KeptRows]:
        return {}

    def kept(self, first: int, count: int) -> KeptRows:
        """Return which of the rows ``[first, first + count)`` of the window are selected; kept for other columns."""
        known = self._kept.get((first, count))
        if known is None:
            known = self._kept.setdefault((first, count), KeptRows(self.mask.slice(first, count)))
        return known

    @cached_property
    def parts(self) -> tuple[tuple[Slice, NDArray[np.int64] | None], ...]:
        """Slices that have rows of the selection, with the places of these rows in each; None for all."""
        slices, places = self.window.slices, self.places
        if places is None:
            return tuple((part, None) for part in slices)
        if len(slices) == 1:
            return ((slices[0], places),) if len(places) else ()
        starts = self.window.starts
        cuts = np.searchsorted(places, starts).tolist()
        return tuple(
            (part, None if high - low == part.width else places[low:high] - start)
            for part, low, high, start in zip(slices, cuts[:-1], cuts[1:], starts.tolist(), strict=False)
            if low < high
        )

    def rows(self) -> Iterator[tuple[Slice, NDArray[np.int64]]]:
        """Yield the slices that have rows of the selection, and their physical rows."""
        for part, places in self.parts:
            yield part, part.rows if places is None else part.rows_at(places)

    def cut(self, first: int, stop: int) -> Selection:
        """Return rows ``[first, stop)`` of the selection."""
        if first <= 0 and stop >= self.num_rows:
            return self
        if self.places is None:
            low, high, places = max(first, 0), min(stop, self.num_rows), None
        else:
            places = self.places[max(first, 0) : stop]
            if len(places) == 0:
                return Selection(Window(()), places)
            low, high = int(places[0]), int(places[-1]) + 1
            places = places - low
        known = {number: values.cut(low, high) for number, values in self.known.items()}
        return Selection(self.window.cut(low, high), places, known)

    def knowing(self, more: Mapping[int, Known]) -> Selection:
        """Return the same rows with more values that were read for them."""
        return Selection(self.window, self.places, {**self.known, **more}) if more else self

    def pieces(self, rows: int) -> list[Selection]:
        """Split the selection into pieces of at most `rows` rows."""
        return [self.cut(first, first + rows) for first in range(0, self.num_rows, rows)]


class MaskedSelection(Selection):
    """Rows of a window that a mask keeps; their places are computed on demand.

    Parameters
    ----------
    window
        The window.
    mask
        One boolean per row, never null.
    known
        See `Selection`.
    """

    mask: pa.BooleanArray  # type: ignore[assignment]

    def __init__(self, window: Window, mask: pa.BooleanArray, known: Mapping[int, Known]) -> None:
        object.__setattr__(self, "window", window)
        object.__setattr__(self, "known", known)
        object.__setattr__(self, "mask", mask)

    @cached_property
    def places(self) -> NDArray[np.int64]:  # type: ignore[override]
        """Places of the rows in the window."""
        return places_of(self.mask)

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return self._num_rows

    @property
    def is_whole(self) -> bool:
        """False: the mask is made only if some row is not kept."""
        return False

    @cached_property
    def _num_rows(self) -> int:
        return int(self.mask.true_count)

    def cut(self, first: int, stop: int) -> Selection:
        """See `Selection.cut`; places are not computed."""
        first, stop = max(first, 0), min(stop, self.num_rows)
        if first == 0 and stop == self.num_rows:
            return self
        if first >= stop:
            return Selection(Window(()), np.empty(0, np.int64))
        low, high = self._place(first), self._place(stop - 1) + 1
        known = {number: values.cut(low, high) for number, values in self.known.items()}
        return MaskedSelection(self.window.cut(low, high), self.mask.slice(low, high - low), known)

    def knowing(self, more: Mapping[int, Known]) -> Selection:
        """See `Selection.knowing`. Places that were computed stay the same object, by which `Known.at` knows them."""
        if not more:
            return self
        found = MaskedSelection(self.window, self.mask, {**self.known, **more})
        if "places" in self.__dict__:
            found.__dict__["places"] = self.places
        return found

    def _place(self, number: int) -> int:
        """Return the place of a selected row."""
        if "places" in self.__dict__:
            return int(self.places[number])
        return bitmap.select(self.mask.buffers()[1], self.mask.offset, len(self.mask), number)


def live_rows(window: Window, request: ScanRequest) -> Selection:
    """Return the rows of a window that are not deleted, or all of them if the request includes deleted rows."""
    if request.include_deleted:
        return Selection(window)
    if len(window.slices) == 1:
        return Selection(window, window.slices[0].live())
    keep = np.ones(window.width, bool)
    drop_deleted(window, keep)
    return Selection(window, None if keep.all() else np.flatnonzero(keep))


def drop_deleted(window: Window, keep: NDArray[np.bool_]) -> None:
    """Set `keep`, one value per row of a window, to False for deleted rows."""
    for part, start in zip(window.slices, window.starts.tolist(), strict=False):
        if part.fragment.fragment.deletion_file is not None and part.ranges:
            keep[part.deleted() + start] = False
