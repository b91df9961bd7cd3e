"""Where the rows of rewritten fragments are: from addresses before to addresses after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError
from lance_dataset.table.roaring import decode_treemap

__all__ = ["MovedRows", "Relocation", "RewrittenGroup"]

_ROW_BITS = np.uint64(32)
#: A row address has so many bits for the row in its fragment.
_MAX_ROWS = 1 << 32


@dataclass(frozen=True)
class RewrittenGroup:
    """A group of a rewrite: its surviving rows, in the order of the old fragments, are those of the new ones.

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
    """Addresses of rows before a rewrite to those after it.

    Runs of neighbouring rows that survived are kept, one for a fragment that lost none.

    Parameters
    ----------
    groups
        The groups of one rewrite; no old fragment is part of two.
    where
        Name of what says so, for error messages.

    Raises
    ------
    CorruptFileError
        The surviving rows are no bitmap, lie outside of the old fragments, or are not as many as those of the new ones.
    """

    def __init__(self, groups: Sequence[RewrittenGroup], where: str) -> None:
        old = [fragment_id for group in groups for fragment_id, _ in group.old]
        self.old_rows = {fragment_id: rows for group in groups for fragment_id, rows in group.old}
        self.old_ids = frozenset(old)
        if len(self.old_ids) != len(old):
            raise CorruptFileError(f"{where}: a fragment is rewritten twice at once")
        runs = [run for group in groups for run in _surviving_runs(group, where)]
        firsts = np.concatenate([np.empty(0, np.uint64), *(first for first, _ in runs)])
        lengths = np.concatenate([np.empty(0, np.int64), *(length for _, length in runs)])
        order = np.argsort(firsts)
        self._run_firsts, self._run_lengths = firsts[order], lengths[order].astype(np.uint64)
        self._run_numbers = (np.cumsum(lengths) - lengths)[order]
        new = [fragment for group in groups for fragment in group.new]
        rows = np.array([rows for _, rows in new], np.int64)
        self._new_ends = np.cumsum(rows)
        self._new_firsts = np.array([fragment_id << 32 for fragment_id, _ in new], np.int64) - (self._new_ends - rows)
        total = sum(rows for group in groups for _, rows in group.old)
        self.loses_rows = total > int(lengths.sum())

    def locate(self, addresses: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """Where rows are now.

        Parameters
        ----------
        addresses : uint64[n]
            Addresses before, in any order.

        Returns
        -------
        addresses : uint64[n]
            Addresses now; that of a row whose fragment was not rewritten stays as it is, and so does that of a row
            that is gone.
        gone : bool[n]
            Whether the row did not survive.
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
        moved[survives] = (numbers + self._new_firsts[places]).astype(np.uint64)
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
        """Whether some row did not survive."""
        return any(step.loses_rows for step in self.steps)

    def physical_rows(self, fragment_id: int) -> int | None:
        """Rows that a fragment had when it was rewritten, deleted ones counted; None if it was not."""
        return next((step.old_rows[fragment_id] for step in self.steps if fragment_id in step.old_rows), None)

    def locate(self, addresses: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """Where rows are after all rewrites, as `MovedRows.locate` says it for one."""
        moved, gone = addresses.copy(), np.zeros(len(addresses), bool)
        for step in self.steps:
            moved, lost = step.locate(moved)
            gone |= lost
        return moved, gone


def _surviving_runs(group: RewrittenGroup, where: str) -> list[tuple[NDArray[np.uint64], NDArray[np.int64]]]:
    """First addresses and lengths of the runs of surviving rows of each old fragment."""
    limits = {fragment_id: min(rows, _MAX_ROWS) for fragment_id, rows in group.old}
    surviving = decode_treemap(group.surviving, limits, where)
    found = sum(map(len, surviving.values()))
    expected = sum(rows for _, rows in group.new)
    if found != expected:
        raise CorruptFileError(f"{where}: {found} rows survived, but the new fragments have {expected}")
    runs = []
    for fragment_id in limits:
        kept = surviving.get(fragment_id, np.empty(0, np.uint32))
        starts = np.flatnonzero(np.diff(kept, prepend=kept[:1]) != 1)
        lengths = np.diff(starts, append=len(kept))
        runs.append((kept[starts].astype(np.uint64) + np.uint64(fragment_id << 32), lengths))
    return runs
