"""Mapping of row addresses from before a rewrite of fragments to after it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError
from lance_dataset.late_dataclass import dataclass
from lance_dataset.table.roaring import decode_treemap

__all__ = ["MovedRows", "Relocation", "RewrittenGroup"]

_ROW_BITS = np.uint64(32)
#: Number of rows that a row address can distinguish in a fragment.
_MAX_ROWS = 1 << 32
_MAX_ID = (1 << 32) - 1


@dataclass(frozen=True)
class RewrittenGroup:
    """A group of a rewrite. Its surviving rows, in the order of the old fragments, are the rows of the new ones.

    Attributes
    ----------
    surviving
        Addresses of the live rows of the old fragments: a serialized 64-bit roaring bitmap.
    old, new
        Id and physical rows of the fragments before and after, in order.
    """

    surviving: bytes
    old: tuple[tuple[int, int], ...]
    new: tuple[tuple[int, int], ...]


class MovedRows:
    """Mapping from addresses of rows before a rewrite to those after it.

    It stores runs of adjacent surviving rows. A fragment that lost no rows is one run.

    Parameters
    ----------
    groups
        The groups of one rewrite. An old fragment is in at most one of them.
    where
        Name of the source, for error messages.

    Raises
    ------
    CorruptFileError
        The surviving rows are not a bitmap, lie outside of the old fragments, or differ in number from the rows of the
        new ones. Or an id or a number of rows is too large.
    """

    def __init__(self, groups: Sequence[RewrittenGroup], where: str) -> None:
        old = [fragment_id for group in groups for fragment_id, _ in group.old]
        self.old_rows = {fragment_id: rows for group in groups for fragment_id, rows in group.old}
        self.old_ids = frozenset(old)
        if len(self.old_ids) != len(old):
            raise CorruptFileError(f"{where}: a fragment is rewritten twice")
        new = [fragment for group in groups for fragment in group.new]
        for fragment_id, count in (*self.old_rows.items(), *new):
            if fragment_id > _MAX_ID or count > _MAX_ROWS:
                raise CorruptFileError(
                    f"{where}: fragment {fragment_id} with {count} rows does not fit into row addresses"
                )
        runs = [run for group in groups for run in _surviving_runs(group, where)]
        firsts = np.concatenate([np.empty(0, np.uint64), *(first for first, _ in runs)])
        lengths = np.concatenate([np.empty(0, np.int64), *(length for _, length in runs)])
        order = np.argsort(firsts)
        self._run_firsts, self._run_lengths = firsts[order], lengths[order].astype(np.uint64)
        self._run_numbers = (np.cumsum(lengths) - lengths)[order]
        rows = np.array([rows for _, rows in new], np.int64)
        self._new_ends = np.cumsum(rows)
        # Differences and sums wrap around.
        begins = np.array([fragment_id << 32 for fragment_id, _ in new], np.uint64)
        self._new_firsts = begins - (self._new_ends - rows).astype(np.uint64)
        total = sum(rows for group in groups for _, rows in group.old)
        self.loses_rows = total > int(lengths.sum())

    def locate(self, addresses: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """Return the current addresses of rows.

        Parameters
        ----------
        addresses : uint64[n]
            Addresses before the rewrite, in any order.

        Returns
        -------
        addresses : uint64[n]
            Addresses now. They are unchanged for rows whose fragment was not rewritten, and for rows that are gone.
        gone : bool[n]
            True if the row did not survive.
        """
        if not self.old_ids or not len(addresses):
            return addresses.copy(), np.zeros(len(addresses), bool)
        runs = np.searchsorted(self._run_firsts, addresses, side="right") - 1
        survives = runs >= 0
        offsets = np.zeros(len(addresses), np.uint64)
        offsets[survives] = addresses[survives] - self._run_firsts[runs[survives]]
        survives[survives] = offsets[survives] < self._run_lengths[runs[survives]]
        moved = addresses.copy()
        numbers = self._run_numbers[runs[survives]] + offsets[survives].astype(np.int64)
        places = np.searchsorted(self._new_ends, numbers, side="right")
        moved[survives] = numbers.astype(np.uint64) + self._new_firsts[places]
        others = np.flatnonzero(~survives)
        gone = np.zeros(len(addresses), bool)
        gone[others] = np.isin(addresses[others] >> _ROW_BITS, np.array(sorted(self.old_ids), np.uint64))
        return moved, gone


@dataclass(frozen=True)
class Relocation:
    """Several rewrites, one after the other.

    Attributes
    ----------
    steps
        The rewrites, oldest first.
    """

    steps: tuple[MovedRows, ...]

    @property
    def loses_rows(self) -> bool:
        """True if some row did not survive."""
        return any(step.loses_rows for step in self.steps)

    def physical_rows(self, fragment_id: int) -> int | None:
        """Return the rows that a fragment had when it was rewritten, including deleted ones. None if it was not."""
        return next((step.old_rows[fragment_id] for step in self.steps if fragment_id in step.old_rows), None)

    def locate(self, addresses: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """Return the addresses of rows after all rewrites, see `MovedRows.locate`."""
        moved, gone = addresses.copy(), np.zeros(len(addresses), bool)
        for step in self.steps:
            moved, lost = step.locate(moved)
            gone |= lost
        return moved, gone


def _surviving_runs(group: RewrittenGroup, where: str) -> list[tuple[NDArray[np.uint64], NDArray[np.int64]]]:
    """Return the first addresses and lengths of the runs of surviving rows of each old fragment."""
    limits = dict(group.old)
    surviving = decode_treemap(group.surviving, limits, where)
    found = sum(int(lengths.sum()) for _, lengths in surviving.values())
    expected = sum(rows for _, rows in group.new)
    if found != expected:
        raise CorruptFileError(f"{where}: {found} rows survived, but the new fragments have {expected}")
    runs = []
    for fragment_id in limits:
        if fragment_id in surviving:
            firsts, lengths = surviving[fragment_id]
            runs.append((firsts.astype(np.uint64) + np.uint64(fragment_id << 32), lengths))
    return runs
