"""`RowRanges`: rows of a fragment as ranges."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_dataset.late_dataclass import dataclass

__all__ = ["RowRanges"]


@dataclass(frozen=True)
class RowRanges:
    """Ranges of rows: ascending, not empty, and not touching each other.

    Attributes
    ----------
    starts, stops
        int64: range i covers rows ``[starts[i], stops[i])``.
    """

    starts: NDArray[np.int64]
    stops: NDArray[np.int64]

    def within(self, start: int, stop: int) -> list[tuple[int, int]]:
        """Return the ranges cut to rows ``[start, stop)``."""
        first = np.searchsorted(self.stops, start, side="right")
        last = np.searchsorted(self.starts, stop, side="left")
        starts = np.maximum(self.starts[first:last], start)
        stops = np.minimum(self.stops[first:last], stop)
        return list(zip(starts.tolist(), stops.tolist(), strict=True))

    def intersection(self, other: RowRanges) -> RowRanges:
        """Return the rows that are in both."""
        both = [piece for start, stop in self.within(0, 1 << 62) for piece in other.within(start, stop)]
        cuts = np.array(both, np.int64).reshape(-1, 2)
        return RowRanges(cuts[:, 0], cuts[:, 1])

    @staticmethod
    def of_rows(rows: NDArray[np.int64]) -> RowRanges:
        """Return the ranges of the given rows, which are ascending."""
        apart = rows[1:] - rows[:-1] > 1
        return RowRanges(rows[np.append(True, apart)[: len(rows)]], rows[np.append(apart, True)[: len(rows)]] + 1)

    @staticmethod
    def of(bounds: NDArray[np.int64], chosen: NDArray[np.bool_], gap: int) -> RowRanges:
        """Return the ranges of the chosen rows between the bounds, joined if fewer than `gap` rows separate them."""
        wanted = chosen & (bounds[1:] > bounds[:-1])
        starts, stops = bounds[:-1][wanted], bounds[1:][wanted]
        apart = starts[1:] - stops[:-1] >= max(gap, 1)
        return RowRanges(starts[np.append(True, apart)[: len(starts)]], stops[np.append(apart, True)[: len(stops)]])
