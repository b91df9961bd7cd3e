"""Checks that row ids stay unique when an operation brings ids for its rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lance_dataset.errors import InvalidInputError
from lance_dataset.table.fragment import Fragment
from lance_dataset.table.lineage.row_ids import RowIds

__all__ = ["check_carried_ids", "check_moved_ids"]

#: First and last ids of runs, ordered by the first ids.
_Runs: TypeAlias = "tuple[NDArray[np.uint64], NDArray[np.uint64]]"


def check_moved_ids(new: Iterable[Fragment], kept: Iterable[Fragment]) -> None:
    """Raise an error if a row would exist twice after an update.

    Parameters
    ----------
    new
        New fragments that brought row ids, with the ids of all their rows.
    kept
        Updated fragments. Those with a deletion file are skipped, because it contains the rows that moved.

    Raises
    ------
    InvalidInputError
        A row id occurs twice. The message names it.
    """
    whole = [fragment for fragment in kept if fragment.deletion_file is None]
    _check_unique(_runs([*new, *whole]), "new or updated fragments, and is not deleted in either")


def check_carried_ids(old: Iterable[Fragment], new: Iterable[Fragment]) -> None:
    """Raise an error if the new fragments of a rewrite repeat a row id, or have one that the old ones lack.

    Ids that are stored in hidden columns are not checked.

    Raises
    ------
    InvalidInputError
        A row id is repeated or unknown. The message names it.
    """
    found = _runs(new)
    _check_unique(found, "rewritten fragments")
    before = list(old)
    if not all(isinstance(fragment.row_ids, bytes) for fragment in before):
        return
    first, last = found
    starts, ends = _joined(_runs(before))
    at = np.searchsorted(starts, first, side="right") - 1
    inside = at >= 0
    inside[inside] = last[inside] <= ends[at[inside]]
    if not inside.all():
        raise InvalidInputError(
            f"a rewritten fragment has row ids from {int(first[~inside][0])} to {int(last[~inside][0])}, but not all "
            "of them belong to rows of the fragments that it replaces"
        )


def _runs(fragments: Iterable[Fragment]) -> _Runs:
    first, last = [np.empty(0, np.uint64)], [np.empty(0, np.uint64)]
    for fragment in fragments:
        if isinstance(fragment.row_ids, bytes):
            ids = RowIds.decode(fragment.row_ids, fragment.physical_rows, f"fragment {fragment.id}")
            for runs in (segment.runs() for segment in ids.segments if len(segment)):
                first.append(runs.first)
                last.append(runs.last)
    all_first, all_last = np.concatenate(first), np.concatenate(last)
    order = np.argsort(all_first, kind="stable")
    return all_first[order], all_last[order]


def _check_unique(runs: _Runs, where: str) -> None:
    first, last = runs
    twice = np.flatnonzero(first[1:] <= last[:-1])
    if len(twice):
        raise InvalidInputError(f"the row id {int(first[twice[0] + 1])} belongs to two rows of {where}")


def _joined(runs: _Runs) -> _Runs:
    """Return the runs with overlapping and adjacent ones merged."""
    first, last = runs
    reached = np.maximum.accumulate(last)
    begins = np.append(True, first[1:] > reached[:-1] + np.minimum(np.uint64(1), ~reached[:-1]))[: len(first)]
    places = np.flatnonzero(begins)
    return first[places], np.maximum.reduceat(last, places) if len(places) else last
