"""Sets of row addresses as ranges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lance_dataset.table.row_addresses import fragments_of

__all__ = ["NO_ADDRESSES", "AddressRanges"]

_Addresses = NDArray[np.uint64]
_ONE = np.uint64(1)
_FIRST, _LAST = np.uint64(0), np.uint64((1 << 64) - 1)


@dataclass(frozen=True)
class AddressRanges:
    """Row addresses as ranges: ascending, not empty, apart from each other, each inside one fragment.

    Attributes
    ----------
    starts, stops
        Range i has the addresses ``[starts[i], stops[i])``.
    """

    starts: _Addresses
    stops: _Addresses

    @staticmethod
    def of_addresses(addresses: _Addresses) -> AddressRanges:
        """Return the set of some addresses, which are ascending."""
        if len(addresses) < 2:
            return AddressRanges(addresses, addresses + _ONE)
        steps = addresses[1:] - addresses[:-1]
        if not steps.all():
            return AddressRanges.of_addresses(np.unique(addresses))
        cuts = (steps != _ONE).nonzero()[0]
        if len(cuts) == len(steps):
            return AddressRanges(addresses, addresses + _ONE)
        starts = addresses[np.concatenate(([0], cuts + 1))]
        return AddressRanges(starts, addresses[np.concatenate((cuts, [-1]))] + _ONE)

    @staticmethod
    def union(parts: Sequence[AddressRanges]) -> AddressRanges:
        """Return the addresses that are in any of several sets."""
        parts = [part for part in parts if len(part.starts)]
        if len(parts) < 2:
            return parts[0] if parts else NO_ADDRESSES
        return AddressRanges.joined(
            np.concatenate([part.starts for part in parts]), np.concatenate([part.stops for part in parts])
        )

    @staticmethod
    def joined(starts: _Addresses, stops: _Addresses) -> AddressRanges:
        """Return the set of ranges in any order, which may overlap, each inside one fragment and not empty."""
        if not len(starts):
            return NO_ADDRESSES
        order = np.argsort(starts, kind="stable")
        starts, stops = starts[order], stops[order]
        reached = np.maximum.accumulate(stops)
        apart = (starts[1:] > reached[:-1]) | (fragments_of(starts[1:]) != fragments_of(starts[:-1]))
        return AddressRanges(starts[np.append(True, apart)], reached[np.append(apart, True)])

    def intersection(self, other: AddressRanges) -> AddressRanges:
        """Return the addresses that are in both sets."""
        first = np.searchsorted(other.stops, self.starts, side="right")
        counts = np.searchsorted(other.starts, self.stops, side="left") - first
        counts = counts.clip(0)
        mine = np.repeat(np.arange(len(self.starts)), counts)
        theirs = np.repeat(first - (np.cumsum(counts) - counts), counts) + np.arange(len(mine))
        return AddressRanges(
            np.maximum(self.starts[mine], other.starts[theirs]), np.minimum(self.stops[mine], other.stops[theirs])
        )

    def difference(self, other: AddressRanges) -> AddressRanges:
        """Return the addresses that are in this set and not in another."""
        starts, stops = np.append(_FIRST, other.stops), np.append(other.starts, _LAST)
        gaps = starts < stops
        return self.intersection(AddressRanges(starts[gaps], stops[gaps]))

    def without(self, chosen: NDArray[np.bool_]) -> AddressRanges:
        """Return the ranges that are not marked."""
        return AddressRanges(self.starts[~chosen], self.stops[~chosen]) if chosen.any() else self

    @property
    def num_rows(self) -> int:
        """Number of addresses."""
        return int((self.stops - self.starts).sum())

    def addresses(self) -> _Addresses:
        """Return all addresses, ascending."""
        counts = (self.stops - self.starts).view(np.int64)
        if int(counts.sum()) == len(counts):
            return self.starts
        found: _Addresses = np.repeat(self.starts - (np.cumsum(counts) - counts).view(np.uint64), counts)
        found += np.arange(len(found), dtype=np.uint64)
        return found


#: No address.
NO_ADDRESSES = AddressRanges(np.empty(0, np.uint64), np.empty(0, np.uint64))
