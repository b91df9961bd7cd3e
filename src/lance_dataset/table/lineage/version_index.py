"""Index from row ids to the versions that created or last changed the rows.

Fragments list ids mostly as long runs created by one version. These are stored as a few *stretches* of ids, in which an
id is found by binary search. Short runs are stored as single ids. So are runs that overlap a longer run of another
fragment, which happens if rows moved and two fragments list them.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from lance_dataset.late_dataclass import dataclass
from lance_dataset.table.lineage.row_versions import RowVersions
from lance_dataset.table.lineage.segments import Runs

__all__ = ["VersionIndex"]

_Numbers = NDArray[np.uint64]
#: Runs with fewer ids are stored as single ids.
_LONG = 64


@dataclass(frozen=True, eq=False)
class VersionIndex:
    """Versions of rows by id.

    Attributes
    ----------
    long, short
        Stretches, ascending. The long ones do not overlap, and the short ones have one id each.
    """

    long: _Stretches
    short: _Stretches

    @classmethod
    def build(cls, fragments: Iterable[tuple[Runs, RowVersions]]) -> VersionIndex:
        """Index the rows of fragments.

        Parameters
        ----------
        fragments
            Ids and versions of their rows, in the order of fragment ids. If several rows had an id, the last one is
            live.
        """
        found = [_Stretches.of(owner, *each) for owner, each in enumerate(fragments)]
        stretches = _Stretches.joined(found).ascending()
        single = stretches.lengths < _LONG
        long = np.flatnonzero(~single)
        single[long[_crossing(stretches.first[long], stretches.lengths[long])]] = True
        return cls(stretches.chosen(~single), stretches.chosen(single).each().ascending())

    def look_up(self, ids: _Numbers) -> tuple[_Numbers, NDArray[np.bool_]]:
        """Return the versions of rows, and a mask of the rows that were found. Ids may be in any order."""
        owners, versions = self.long.find(ids)
        others, other_versions = self.short.find(ids)
        return np.where(others > owners, other_versions, versions), np.maximum(owners, others) >= 0


def _crossing(first: _Numbers, lengths: NDArray[np.int64]) -> list[int]:
    """Return the numbers (ascending) of stretches to remove to avoid overlaps: the shorter of two that overlap."""
    if not bool((first[1:] - first[:-1] < lengths[:-1].astype(np.uint64)).any()):
        return []
    crossing: list[int] = []
    kept = begin = length = 0
    for number, (start, size) in enumerate(zip(first.tolist(), lengths.tolist(), strict=True)):
        if start - begin < length:
            crossing.append(number if size <= length else kept)
            if size <= length:
                continue
        kept, begin, length = number, start, size
    return crossing


@dataclass(frozen=True, eq=False)
class _Stretches:
    """Consecutive ids of rows with the same version.

    Attributes
    ----------
    first
        uint64[n]: first id of each stretch.
    lengths
        int64[n]: number of ids.
    versions
        uint64[n]: version.
    owners
        int64[n]: number of the fragment.
    """

    first: _Numbers
    lengths: NDArray[np.int64]
    versions: _Numbers
    owners: NDArray[np.int64]

    @classmethod
    def of(cls, owner: int, ids: Runs, versions: RowVersions) -> _Stretches:
        """Return the stretches of a fragment."""
        starts = ids.starts[:-1]
        if len(versions.counts) > 1:
            starts = np.union1d(starts, versions.bounds[:-1])
            starts = starts[starts < len(ids)]
        runs = np.searchsorted(ids.starts, starts, side="right") - 1
        first = ids.first[runs] + (starts - ids.starts[runs]).astype(np.uint64)
        lengths = np.diff(np.append(starts, len(ids)))
        return cls(first, lengths, versions.take(starts), np.full(len(starts), owner, np.int64))

    @classmethod
    def joined(cls, parts: Iterable[_Stretches]) -> _Stretches:
        """Concatenate several lists of stretches."""
        none = np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0, np.uint64), np.empty(0, np.int64)
        members = zip(none, *(part._members() for part in parts), strict=True)
        return cls(*(np.concatenate(member) for member in members))

    def _members(self) -> tuple[_Numbers, NDArray[np.int64], _Numbers, NDArray[np.int64]]:
        return self.first, self.lengths, self.versions, self.owners

    def chosen(self, which: NDArray) -> _Stretches:
        """Return the stretches selected by a mask or by their numbers."""
        return _Stretches(*(member[which] for member in self._members()))

    def ascending(self) -> _Stretches:
        """Return the stretches ordered by first id, and those with equal first ids by fragment."""
        if bool((self.first[1:] > self.first[:-1]).all()):
            return self
        return self.chosen(np.lexsort((self.owners, self.first)))

    def each(self) -> _Stretches:
        """Return one stretch for each id."""
        starts = np.cumsum(self.lengths) - self.lengths
        shifts = np.arange(int(self.lengths.sum())) - np.repeat(starts, self.lengths)
        first = np.repeat(self.first, self.lengths) + shifts.astype(np.uint64)
        versions, owners = np.repeat(self.versions, self.lengths), np.repeat(self.owners, self.lengths)
        return _Stretches(first, np.ones(len(first), np.int64), versions, owners)

    def find(self, ids: _Numbers) -> tuple[NDArray[np.int64], _Numbers]:
        """Return the fragment of each id (-1 if there is none) and its version.

        If several stretches have the same first id, the last one wins.
        """
        if not len(self.first):
            return np.full(len(ids), -1, np.int64), np.zeros(len(ids), np.uint64)
        at = np.searchsorted(self.first, ids, side="right") - 1
        inside = at >= 0
        at[~inside] = 0
        inside &= ids - self.first[at] < self.lengths[at].astype(np.uint64)
        return np.where(inside, self.owners[at], -1), self.versions[at]
