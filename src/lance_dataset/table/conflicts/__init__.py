"""Conflict checks of a change against changes that others committed in the meantime."""

from __future__ import annotations

from lance_dataset.table.conflicts.columns import check_columns_kept
from lance_dataset.table.conflicts.fragments import touched_fragments
from lance_dataset.table.conflicts.matrix import find_verdict
from lance_dataset.table.conflicts.verdict import (
    AffectedRows,
    Verdict,
    incompatible_conflict,
    retryable_conflict,
)
from lance_dataset.table.transaction import Transaction

__all__ = [
    "AffectedRows",
    "Verdict",
    "check_columns_kept",
    "check_conflict",
    "find_verdict",
    "retryable_conflict",
    "touched_fragments",
]


def check_conflict(
    ours: Transaction, theirs: Transaction, version: int, *, affected_rows: AffectedRows | None = None
) -> frozenset[int]:
    """Check our transaction against one that is already committed.

    Parameters
    ----------
    ours
        The transaction to commit.
    theirs
        The committed transaction.
    version
        Version that `theirs` made.
    affected_rows
        Rows that `ours` newly deletes, if they are known individually, so that they can be compared.

    Returns
    -------
    frozenset of int
        Fragments that both changed and in which our rows must be compared with the new deletions.

    Raises
    ------
    CommitConflictError
        The two transactions conflict.
    """
    verdict = find_verdict(ours.operation, theirs.operation, affected_rows)
    if verdict is Verdict.RETRYABLE:
        raise retryable_conflict(ours.operation.name, theirs.operation.name, version)
    if verdict is Verdict.INCOMPATIBLE:
        raise incompatible_conflict(ours.operation.name, theirs.operation.name, version)
    if verdict is Verdict.REBASE:
        return touched_fragments(ours.operation) & touched_fragments(theirs.operation)
    return frozenset()
