"""Fragments whose row ids are a single range, as appends make them, found without decoding each fragment."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError
from lance_dataset.late_dataclass import dataclass
from lance_dataset.properties import cached_property
from lance_dataset.table.fragment_list import FragmentList
from lance_dataset.table.messages import locate_records, whole_range
from lancecodec import records

__all__ = ["PlainIds", "plain_ids"]

_WHERE = "row ids of the manifest"
# Field numbers of the messages.
_MANIFEST_FRAGMENTS = 2
_FRAGMENT_ROW_IDS = 5
_SEQUENCE_SEGMENTS = 1
_SEGMENT_COLUMNS = np.array(
    [
        (1, 1, records.LAST, 0),  # start of a range
        (1, 2, records.LAST, 0),  # its end
        (1, 0, records.COUNT, 0),
        *((kind, 0, records.COUNT, 0) for kind in (2, 3, 4, 5)),
    ],
    np.int64,
)


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


def plain_ids(fragments: FragmentList) -> PlainIds:
    """Return the fragments of a list whose row ids are one range that matches their number of rows."""
    try:
        positions, first, stop = _single_ranges(fragments.data)
    except CorruptFileError:  # the decoder of the broken sequence reports which one it is
        return PlainIds.none()
    counts = fragments.columns.physical_rows[positions]
    sound = (counts > 0) & (stop > first) & (stop - first == counts.astype(np.uint64))
    ids = fragments.ids[positions]
    order = np.argsort(ids, kind="stable")
    order = order[sound[order]]
    return PlainIds(ids[order], first[order], stop[order] - np.uint64(1))


def _single_ranges(data: bytes) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.uint64]]:
    """Return the positions of the fragments whose only segment is a range, with its start and end."""
    _, _, starts, ends = locate_records(data, whole_range(data), _MANIFEST_FRAGMENTS, _WHERE)
    owners, _, starts, ends = locate_records(data, (starts, ends), _FRAGMENT_ROW_IDS, _WHERE)
    inner, _, starts, ends = locate_records(data, (starts, ends), _SEQUENCE_SEGMENTS, _WHERE, per_record=100)
    columns = np.empty((len(_SEGMENT_COLUMNS), len(starts)), np.int64)
    records.columns(data, starts, ends, _SEGMENT_COLUMNS, columns)
    positions = owners[inner]
    alone = np.bincount(positions, minlength=1)[positions] == 1
    alone &= np.bincount(owners, minlength=1)[positions] == 1
    alone &= (columns[2] == 1) & (columns[3:].sum(axis=0) == 0)
    return positions[alone], columns[0][alone].view(np.uint64), columns[1][alone].view(np.uint64)
