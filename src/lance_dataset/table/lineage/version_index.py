"""Which version created or last changed rows, by their ids.

Fragments list ids mostly as long runs, created by one version: a few *stretches* of ids say it all, and an id is found
among them by binary search. Short runs, and those that lie across a longer one of another fragment - of rows that
moved, which two fragments list - are single ids.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lance_dataset.table.lineage.row_versions import RowVersions
from lance_dataset.table.lineage.segments import Runs

__all__ = ["VersionIndex"]

_Numbers = NDArray[np.uint64]
#: Runs of fewer ids are single ids.
_LONG = 64


@dataclass(frozen=True, eq=False)
class VersionIndex:
    """Versions of rows by id.

    Attributes
    ----------
    long, short
        Stretches, ascending: none of the long ones overlaps another, and the short ones are of one id each.
    """

    long: _Stretches
    short: _Stretches

    @classmethod
    def build(cls, fragments: Iterable[tuple[Runs, RowVersions]]) -> VersionIndex:
        """Index the rows of fragments.

        Parameters
        ----------
        fragments
            Ids and versions of their rows, in the order of the fragments' ids: of several rows that had an id the last
            one lives.
        """
        found = [_Stretches.of(owner, *each) for owner, each in enumerate(fragments)]
        stretches = _Stretches.joined(found).ascending()
        single = stretches.lengths < _LONG
        while True:
            kept = np.flatnonzero(~single)
            first, lengths = stretches.first[kept], stretches.lengths[kept]
            across = np.flatnonzero(first[1:] - first[:-1] < lengths[:-1].astype(np.uint64))
            if not len(across):
                break
            shorter = np.where(lengths[across] < lengths[across + 1], across, across + 1)
            single[kept[shorter]] = True
        return cls(stretches.chosen(~single), stretches.chosen(single).each().ascending())

    def look_up(self, ids: _Numbers) -> tuple[_Numbers, NDArray[np.bool_]]:
        """Versions of rows, and whether they are there; ids in any order."""
        owners, versions = self.long.find(ids)
        others, other_versions = self.short.find(ids)
        return np.where(others > owners, other_versions, versions), np.maximum(owners, others) >= 0


@dataclass(frozen=True, eq=False)
class _Stretches:
    """Consecutive ids of rows of one version.

    Attributes
    ----------
    first
        uint64[n]: the first id of each.
    lengths
        int64[n]: number of ids.
    versions
        uint64[n]: their version.
    owners
        int64[n]: number of the fragment.
    """

    first: _Numbers
    lengths: NDArray[np.int64]
    versions: _Numbers
    owners: NDArray[np.int64]

    @classmethod
    def of(cls, owner: int, ids: Runs, versions: RowVersions) -> _Stretches:
        """Those of a fragment."""
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
        """Several, one after the other."""
        none = np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0, np.uint64), np.empty(0, np.int64)
        members = zip(none, *(part._members() for part in parts), strict=True)
        return cls(*(np.concatenate(member) for member in members))

    def _members(self) -> tuple[_Numbers, NDArray[np.int64], _Numbers, NDArray[np.int64]]:
        return self.first, self.lengths, self.versions, self.owners

    def chosen(self, which: NDArray) -> _Stretches:
        """Some of them, by a mask or by their numbers."""
        return _Stretches(*(member[which] for member in self._members()))

    def ascending(self) -> _Stretches:
        """In the order of their first ids, those of equal ones in the order of their fragments."""
        if bool((self.first[1:] > self.first[:-1]).all()):
            return self
        return self.chosen(np.lexsort((self.owners, self.first)))

    def each(self) -> _Stretches:
        """One for each id."""
        starts = np.cumsum(self.lengths) - self.lengths
        shifts = np.arange(int(self.lengths.sum())) - np.repeat(starts, self.lengths)
        first = np.repeat(self.first, self.lengths) + shifts.astype(np.uint64)
        versions, owners = np.repeat(self.versions, self.lengths), np.repeat(self.owners, self.lengths)
        return _Stretches(first, np.ones(len(first), np.int64), versions, owners)

    def find(self, ids: _Numbers) -> tuple[NDArray[np.int64], _Numbers]:
        """The fragment that has each id, -1 for none, and the version; of equal first ids the last one counts."""
        if not len(self.first):
            return np.full(len(ids), -1, np.int64), np.zeros(len(ids), np.uint64)
        at = np.searchsorted(self.first, ids, side="right") - 1
        inside = at >= 0
        at[~inside] = 0
        inside &= ids - self.first[at] < self.lengths[at].astype(np.uint64)
        return np.where(inside, self.owners[at], -1), self.versions[at]
