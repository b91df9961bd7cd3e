"""Conflict conditions on indices and their coverage."""

from __future__ import annotations

from collections.abc import Iterable

from lance_dataset.table.conflicts.verdict import AffectedRows, Verdict
from lance_dataset.table.indices.coverage import MEMORY_INDEX, REUSE_INDEX, coverage
from lance_dataset.table.operations import CreateIndex, DataReplacement, Merge, Operation, Rewrite

__all__ = [
    "changes_log_index",
    "indexes_rewritten_fragments",
    "indexes_same_name",
    "merges_with_log_index",
    "replaces_indexed_columns",
    "rewrites_indexed_fragments",
]

_OK, _RETRY, _NO = Verdict.COMPATIBLE, Verdict.RETRYABLE, Verdict.INCOMPATIBLE


def indexes_same_name(ours: CreateIndex, theirs: CreateIndex, _rows: AffectedRows | None) -> Verdict:
    """Check condition i: both add to the same index, or one adds to an index that the other removes.

    This includes the fragment-reuse index and the MemWAL index, which have fixed names.
    """
    our_new, their_new = _names(ours.new_indices), _names(theirs.new_indices)
    our_old, their_old = _names(ours.removed_indices), _names(theirs.removed_indices)
    return _RETRY if our_new & (their_new | their_old) or our_old & their_new else _OK


def _names(indices: Iterable[object]) -> set[str]:
    return {index.name for index in indices}  # type: ignore[attr-defined]


def replaces_indexed_columns(ours: Operation, theirs: Operation, _rows: AffectedRows | None) -> Verdict:
    """Check condition i2, both ways: one side indexes a column that the other side replaces."""
    added = ours if isinstance(ours, CreateIndex) else theirs
    replaced = theirs if isinstance(theirs, DataReplacement) else ours
    if not isinstance(added, CreateIndex) or not isinstance(replaced, DataReplacement):
        raise TypeError(f"expected a CreateIndex and a DataReplacement, got {ours.name}, {theirs.name}")
    fields = {field_id for _, file in replaced.replacements for field_id in file.fields}
    return _RETRY if any(fields.intersection(index.fields) for index in added.new_indices) else _OK


def indexes_rewritten_fragments(ours: CreateIndex, theirs: Rewrite, _rows: AffectedRows | None) -> Verdict:
    """Check condition r: our indices cover fragments that they rewrote, or do not state their coverage."""
    for index in ours.new_indices:
        covered = coverage(index)
        if covered is None:
            if index.name != MEMORY_INDEX:  # covers rows outside of all fragments
                return _RETRY
        elif not theirs.old_ids.isdisjoint(covered):
            return _RETRY
    return _OK


def rewrites_indexed_fragments(ours: Rewrite, theirs: CreateIndex, _rows: AffectedRows | None) -> Verdict:
    """Check condition r2: their indices cover fragments that we rewrite.

    If we write a fragment-reuse index, an index on columns may cover either all old fragments of a group or none.
    """
    for index in theirs.new_indices:
        if index.name == REUSE_INDEX:
            # A cleanup replaces it by a shorter one. If it did not exist before, both sides create it.
            if len(theirs.new_indices) != 1 or len(theirs.removed_indices) != 1:
                return _NO
            if ours.reuse_index is not None:
                return _RETRY
            continue
        covered = coverage(index)
        if covered is None or (ours.reuse_index is None and not ours.old_ids.isdisjoint(covered)):
            return _RETRY
        for group in ours.groups:
            old = {fragment.id for fragment in group.old_fragments}
            if not old.isdisjoint(covered) and not old <= covered:
                return _RETRY
    removed = _names(theirs.removed_indices)
    return _RETRY if ours.reuse_index is not None and REUSE_INDEX in removed else _OK


def changes_log_index(ours: CreateIndex, _theirs: Merge, _rows: AffectedRows | None) -> Verdict:
    """Check condition m: our MemWAL index was made for other columns than the table has now."""
    return _RETRY if MEMORY_INDEX in _names(ours.new_indices) else _OK


def merges_with_log_index(_ours: Merge, theirs: CreateIndex, _rows: AffectedRows | None) -> Verdict:
    """Check condition m2: their MemWAL index was made for other columns than the table will have."""
    return _RETRY if MEMORY_INDEX in _names(theirs.new_indices) else _OK
