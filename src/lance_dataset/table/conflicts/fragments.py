"""Conflict conditions on the fragments and rows that two changes touch."""

from __future__ import annotations

from lance_dataset.table.conflicts.key_filter import may_share_keys
from lance_dataset.table.conflicts.verdict import AffectedRows, Verdict
from lance_dataset.table.operations import (
    Append,
    DataOverlay,
    DataReplacement,
    Delete,
    Operation,
    Rewrite,
    Update,
    UpdateMode,
)
from lance_dataset.table.overlays import Overlay

__all__ = [
    "adds_files",
    "inserts_same_keys",
    "masked_rows",
    "moved_overlaid_rows",
    "overlaid_rows",
    "removed_fragment_ids",
    "replaced_columns",
    "replaces_same_columns",
    "same_fragments",
    "touched_fragments",
    "updated_fragment_ids",
]

_OK, _REBASE, _RETRY, _NO = Verdict.COMPATIBLE, Verdict.REBASE, Verdict.RETRYABLE, Verdict.INCOMPATIBLE


def updated_fragment_ids(operation: Operation) -> frozenset[int]:
    """Return the ids of existing fragments that are kept and get other files."""
    if isinstance(operation, Delete | Update):
        return frozenset(fragment.id for fragment in operation.updated_fragments)
    if isinstance(operation, DataReplacement):
        return frozenset(fragment_id for fragment_id, _ in operation.replacements)
    if isinstance(operation, DataOverlay):
        return frozenset(fragment_id for fragment_id, _ in operation.groups)
    return frozenset()


def removed_fragment_ids(operation: Operation) -> frozenset[int]:
    """Return the ids of existing fragments that an operation removes."""
    if isinstance(operation, Delete):
        return frozenset(operation.deleted_fragment_ids)
    if isinstance(operation, Update):
        return frozenset(operation.removed_fragment_ids)
    return operation.old_ids if isinstance(operation, Rewrite) else frozenset()


def touched_fragments(operation: Operation) -> frozenset[int]:
    """Return the ids of existing fragments that an operation changes or removes."""
    return updated_fragment_ids(operation) | removed_fragment_ids(operation)


def same_fragments(ours: Operation, theirs: Operation, _rows: AffectedRows | None) -> Verdict:
    """Check condition f: both touch the same fragment."""
    return _RETRY if touched_fragments(ours) & touched_fragments(theirs) else _OK


def masked_rows(ours: Delete | Update, theirs: Delete | Update, rows: AffectedRows | None) -> Verdict:
    """Check condition d, both sides delete rows: only the rows must differ, not the fragments."""
    common = touched_fragments(ours) & touched_fragments(theirs)
    if not common:
        return _OK
    if rows is None:
        return _RETRY
    our_files, their_files = _updated_files(ours), _updated_files(theirs)
    for fragment_id in common:
        # One side removes the whole fragment, or the fragment got other data files.
        if fragment_id not in our_files or fragment_id not in their_files:
            return _RETRY
        if our_files[fragment_id] != their_files[fragment_id]:
            return _RETRY
    return _REBASE


def _updated_files(operation: Delete | Update) -> dict[int, list[str]]:
    """Return the paths of the data files of every kept fragment, by fragment id."""
    return {fragment.id: [file.path for file in fragment.files] for fragment in operation.updated_fragments}


def inserts_same_keys(ours: Update, theirs: Append | Update, _rows: AffectedRows | None) -> Verdict:
    """Check condition k: our update inserted keys that did not exist, and they may have added the same keys."""
    if ours.inserted_rows is None:
        return _OK
    if isinstance(theirs, Append) or theirs.inserted_rows is None:
        return _RETRY
    return _RETRY if may_share_keys(ours.inserted_rows, theirs.inserted_rows) else _OK


def moved_overlaid_rows(ours: Update, theirs: DataOverlay, rows: AffectedRows | None) -> Verdict:
    """Check condition v: values that our update read and wrote to another place have got an overlay."""
    touched = touched_fragments(ours)
    for fragment_id, messages in theirs.groups:
        if fragment_id not in touched:
            continue
        if fragment_id in ours.removed_fragment_ids and ours.new_fragments:
            return _RETRY
        for overlay in map(Overlay.decode, messages):
            if ours.mode is UpdateMode.REWRITE_COLUMNS:
                if overlay.live_fields.intersection(ours.fields_modified):
                    return _RETRY
            elif ours.new_fragments and (rows is None or overlay.covers_any(rows.get(fragment_id))):
                return _RETRY
    return _OK


def replaced_columns(ours: DataReplacement, theirs: Delete | Update, _rows: AffectedRows | None) -> Verdict:
    """Check condition x: fragments that get our files lost rows to new fragments, or were removed."""
    targets = touched_fragments(ours)
    if targets & removed_fragment_ids(theirs):
        return _NO
    if isinstance(theirs, Delete) or not targets & updated_fragment_ids(theirs):
        return _OK
    if theirs.mode is UpdateMode.REWRITE_COLUMNS:
        fields = {field_id for _, file in ours.replacements for field_id in file.fields}
        return _RETRY if fields.intersection(theirs.fields_modified) else _OK
    return _RETRY if theirs.new_fragments else _OK


def overlaid_rows(ours: DataOverlay, theirs: Delete | Update, _rows: AffectedRows | None) -> Verdict:
    """Check condition x2: rows that get our values were moved to new fragments, or were removed."""
    targets = touched_fragments(ours)
    if targets & removed_fragment_ids(theirs):
        return _RETRY
    moves = isinstance(theirs, Update) and theirs.mode is UpdateMode.REWRITE_ROWS and theirs.new_fragments
    return _REBASE if moves and targets & updated_fragment_ids(theirs) else _OK


def replaces_same_columns(ours: DataReplacement, theirs: DataReplacement, _rows: AffectedRows | None) -> Verdict:
    """Check condition q: both replace the same column of the same fragment."""
    return _RETRY if _cells(ours) & _cells(theirs) else _OK


def _cells(operation: DataReplacement) -> set[tuple[int, int]]:
    """Return the (fragment id, field id) of every column that is replaced."""
    return {(fragment_id, field_id) for fragment_id, file in operation.replacements for field_id in file.fields}


def adds_files(ours: Rewrite, theirs: Operation, _rows: AffectedRows | None) -> Verdict:
    """Check condition u: files in the old storage version were added, while our rewrite changes the version."""
    adds = bool(theirs.new_fragments) if isinstance(theirs, Update) else True
    return _RETRY if ours.storage_version is not None and adds else _OK
