"""Fragments whose row ids are a single range, as appends make them, without an object for each fragment."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_dataset.late_dataclass import dataclass
from lance_dataset.properties import cached_property

__all__ = ["PlainIds"]


@dataclass(frozen=True, eq=False)
class PlainIds:
    """Fragments with consecutive row ids.

    Attributes
    ----------
    fragment_ids
        int64[n], ascending.
    first, last
        uint64[n]: first and last row id of each.
    """

    fragment_ids: NDArray[np.int64]
    first: NDArray[np.uint64]
    last: NDArray[np.uint64]

    @classmethod
    def none(cls) -> PlainIds:
        """Return an instance without fragments."""
        return cls(np.empty(0, np.int64), np.empty(0, np.uint64), np.empty(0, np.uint64))

    def __len__(self) -> int:
        return len(self.fragment_ids)

    def where(self, chosen: NDArray[np.bool_]) -> PlainIds:
        """Return the fragments selected by a mask."""
        return PlainIds(self.fragment_ids[chosen], self.first[chosen], self.last[chosen])

    @cached_property
    def apart(self) -> NDArray[np.bool_]:
        """Mask of fragments without common ids. Those that begin earlier, or are longer, are chosen first."""
        order = np.lexsort((~self.last, self.first))
        reached = np.maximum.accumulate(self.last[order])
        chosen = np.ones(len(self), bool)
        chosen[order[1:]] = self.first[order[1:]] > reached[:-1]
        return chosen

    def holds(self, others: PlainIds) -> bool:
        """Return True if all the others are among these fragments, with the same ids."""
        if not len(others):
            return True
        places = np.searchsorted(self.fragment_ids, others.fragment_ids)
        if int(places[-1]) >= len(self):
            return False
        members = ((self.fragment_ids, others.fragment_ids), (self.first, others.first), (self.last, others.last))
        return all((mine[places] == theirs).all() for mine, theirs in members)
