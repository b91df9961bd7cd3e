"""Pieces of sequences of row ids: runs of few ids, which are handled together, and segments of many ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from lance_dataset.late_dataclass import dataclass
from lance_dataset.table.lineage.row_ids import RowIds
from lance_dataset.table.lineage.segments import Range, Runs, Segment, Values
from lance_dataset.table.row_addresses import first_address
from lancecodec import row_ids

__all__ = ["FEW", "IdPieces", "IdRuns", "Whole"]

#: Segments of as many ids stay whole.
FEW = 1024
#: Ranges with gaps stay whole if they have more numbers: a bitmap of them takes less memory than runs.
_FEW_NUMBERS = 64

Addresses = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class IdRuns:
    """Runs of consecutive ids, of rows at consecutive addresses.

    Attributes
    ----------
    first
        uint64[n]: lowest id.
    lengths
        int64[n]: number of ids, at least 1.
    addresses
        uint64[n]: address of the row with the lowest id.
    """

    first: NDArray[np.uint64]
    lengths: NDArray[np.int64]
    addresses: Addresses

    @classmethod
    def none(cls) -> IdRuns:
        """Return an instance without runs."""
        return cls(np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0, np.uint64))

    @classmethod
    def of(cls, segment: Segment, address: int) -> IdRuns:
        """Return the runs of a segment whose first row has this address."""
        runs = segment.runs()
        return cls(runs.first, runs.lengths, runs.starts[:-1].astype(np.uint64) + np.uint64(address))

    @classmethod
    def joined(cls, parts: Iterable[IdRuns]) -> IdRuns:
        """Concatenate runs."""
        found = [cls.none(), *parts]
        return cls(
            np.concatenate([part.first for part in found]),
            np.concatenate([part.lengths for part in found]),
            np.concatenate([part.addresses for part in found]),
        )

    def __len__(self) -> int:
        return len(self.first)

    @property
    def last(self) -> NDArray[np.uint64]:
        """Highest id of each run."""
        return self.first + (self.lengths - 1).astype(np.uint64)

    def where(self, chosen: NDArray[np.bool_] | NDArray[np.int64]) -> IdRuns:
        """Return the runs selected by a mask, or at some positions."""
        return IdRuns(self.first[chosen], self.lengths[chosen], self.addresses[chosen])

    def ascending(self) -> IdRuns:
        """Return the runs in the order of their first ids. Of several with the same, later ones come first."""
        backwards = np.arange(len(self) - 1, -1, -1)
        return self.where(backwards[np.argsort(self.first[::-1], kind="stable")])

    def lanes(self, count: int) -> list[IdRuns]:
        """Distribute ascending runs over lanes without overlaps.

        Parameters
        ----------
        count
            Number of lanes.

        Returns
        -------
        list
            Lanes that have runs, and then the runs that fit into none of them.
        """
        numbers = np.empty(len(self), np.uint8)
        row_ids.lanes(self.first, self.lengths, count, numbers.data)
        used = min(int(numbers.max(initial=0)) + 1, count)
        return [self.where(numbers == number) for number in [*range(used), count]]

    def without(self, dead: Addresses) -> IdRuns:
        """Return what is left without the rows at some addresses, which are ascending."""
        mine = self.where(np.argsort(self.addresses))
        starts = np.append(0, np.cumsum(mine.lengths))
        owners = np.searchsorted(mine.addresses, dead, side="right") - 1
        shifts = (dead - mine.addresses[owners]).astype(np.int64)
        hit = (owners >= 0) & (shifts < mine.lengths[owners])
        kept = Runs(mine.first, starts).without(starts[owners[hit]] + shifts[hit])
        places = kept.starts[:-1]
        gone = starts[owners[hit]] + shifts[hit] - np.arange(int(hit.sum()))
        before = places + np.searchsorted(gone, places, side="right")  # rows come after all that are gone before them
        return IdRuns(kept.first, kept.lengths, Runs(mine.addresses, starts).take(before))


@dataclass(frozen=True, eq=False)
class Whole:
    """A segment of many ids.

    Attributes
    ----------
    fragment_id
        Id of its fragment.
    start
        Number of rows of the fragment before it.
    segment
        The ids.
    """

    fragment_id: int
    start: int
    segment: Segment

    @property
    def address(self) -> int:
        """Address of the row with the first id."""
        return first_address(self.fragment_id) + self.start

    @property
    def base(self) -> np.uint64:
        """The address as a NumPy number."""
        return np.uint64(self.address)

    @property
    def where(self) -> str:
        """Name of the fragment, for error messages."""
        return f"fragment {self.fragment_id}"


@dataclass(frozen=True, eq=False)
class IdPieces:
    """Row ids of some fragments.

    Attributes
    ----------
    runs
        Ids of segments of few ids.
    wholes
        All other segments.
    """

    runs: IdRuns
    wholes: tuple[Whole, ...] = ()

    @classmethod
    def of(cls, fragments: Mapping[int, RowIds]) -> IdPieces:
        """Return the pieces of sequences, by fragment id."""
        runs: list[IdRuns] = []
        wholes: list[Whole] = []
        for fragment_id, ids in fragments.items():
            start = 0
            for segment in ids.segments:
                whole = Whole(fragment_id, start, segment)
                if _has_few(segment):
                    runs.append(IdRuns.of(segment, whole.address))
                else:
                    wholes.append(whole)
                start += len(segment)
        return cls(IdRuns.joined(runs), tuple(wholes))

    def followed_by(self, other: IdPieces) -> IdPieces:
        """Return the pieces of both."""
        return IdPieces(IdRuns.joined([self.runs, other.runs]), (*self.wholes, *other.wholes))


def _has_few(segment: Segment) -> bool:
    count = len(segment)
    if count >= FEW:
        return False
    if count == 0 or isinstance(segment, Range | Values):
        return True
    low, high = segment.bounds
    return high - low < _FEW_NUMBERS
