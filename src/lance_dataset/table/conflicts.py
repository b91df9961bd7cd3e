"""Whether a change can be committed on top of changes that others committed in the meantime.

The rules are a table: our kind of operation, then theirs, to a verdict or a function that finds it. A kind of operation
of ours is supported when it has a row.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from lance_dataset.errors import CommitConflictError
from lance_dataset.schema import Schema
from lance_dataset.table.indices import coverage
from lance_dataset.table.transaction import (
    UNKNOWN,
    Append,
    Delete,
    Foreign,
    Operation,
    Overwrite,
    Rewrite,
    Transaction,
)

__all__ = ["Verdict", "check_columns_kept", "check_conflict", "retryable_conflict", "touched_fragments"]


class Verdict(enum.Enum):
    """What an already committed change means for ours."""

    COMPATIBLE = "compatible"
    #: Compatible if the rows do not overlap, which has to be found out fragment by fragment.
    REBASE = "rebase"
    RETRYABLE = "retryable"
    INCOMPATIBLE = "incompatible"


Rule = Verdict | Callable[[Any, Any], Verdict]


def check_conflict(ours: Transaction, theirs: Transaction, version: int, *, rows_known: bool = False) -> frozenset[int]:
    """Check our transaction against one that is committed already.

    Parameters
    ----------
    ours
        The transaction to commit.
    theirs
        The other one.
    version
        Version that `theirs` made.
    rows_known
        Whether the rows that `ours` changes are known one by one, so that they can be compared.

    Returns
    -------
    frozenset of int
        Fragments that both changed, and where our rows must be compared with the new deletions.

    Raises
    ------
    CommitConflictError
        The two do not go together.
    """
    verdict = _verdict(ours.operation, theirs.operation)
    common: frozenset[int] = frozenset()
    if verdict is Verdict.REBASE:
        common = touched_fragments(ours.operation) & touched_fragments(theirs.operation)
        if not rows_known:
            verdict = Verdict.RETRYABLE
    if verdict is Verdict.RETRYABLE:
        raise retryable_conflict(ours.operation.name, theirs.operation.name, version)
    if verdict is Verdict.INCOMPATIBLE:
        raise CommitConflictError(
            f"Incompatible transaction: This {ours.operation.name} transaction is incompatible with concurrent "
            f"transaction {theirs.operation.name} at version {version}.",
            retryable=False,
        )
    return common


def retryable_conflict(ours: str, theirs: str, version: int) -> CommitConflictError:
    """The error for a change that must be computed again on the newest version."""
    return CommitConflictError(
        f"Retryable commit conflict for version {version}: This {ours} transaction was preempted by concurrent "
        f"transaction {theirs} at version {version}. Please retry.",
        retryable=True,
    )


def check_columns_kept(operation: Operation, read: Schema, latest: Schema, version: int) -> None:
    """Check that the columns of new files are still those that the table means by their field ids.

    A change of a column's type gives it another id, and so does a repair of repeated ids; the id of a dropped column
    may go to another one. The rules above let new files pass, but their values would read as null, or as another type.

    Parameters
    ----------
    operation
        Our operation.
    read, latest
        Schemas of the version it was computed against and of the newest one.
    version
        The newest version.

    Raises
    ------
    CommitConflictError
        The files have to be written again.
    """
    written = set(_written_fields(operation))
    before = {node.id: node for node in read.walk()}
    now = {node.id: node for node in latest.walk()}
    gone = [field_id for field_id in before.keys() & written if field_id not in now]
    moved = gone if now.keys() - before.keys() else []
    kept = now.keys() & before.keys() & written
    reused = [field_id for field_id in kept if now[field_id].logical_type != before[field_id].logical_type]
    if moved or reused:
        names = sorted({before[field_id].name for field_id in (*moved, *reused)})
        raise CommitConflictError(
            f"Retryable commit conflict for version {version}: columns were changed in the meantime, and the new files "
            f"of this {operation.name} still have the fields {names} as they were. Please write them again.",
            retryable=True,
        )


def _written_fields(operation: Operation) -> Iterator[int]:
    """Field ids in the files that an operation adds to the columns there are."""
    if isinstance(operation, Append):
        added = operation.fragments
    elif isinstance(operation, Rewrite):
        added = tuple(fragment for group in operation.groups for fragment in group.new_fragments)
    else:
        return
    for fragment in added:
        for file in fragment.files:
            yield from file.fields


def _verdict(ours: Operation, theirs: Operation) -> Verdict:
    if theirs.name == UNKNOWN:
        return Verdict.INCOMPATIBLE
    row = _RULES.get(ours.name)
    if row is None:
        raise CommitConflictError(
            f"This release cannot commit a {ours.name} transaction next to other writers; the dataset changed in the "
            "meantime, repeat the operation",
            retryable=True,
        )
    rule = row[theirs.name]
    return rule if isinstance(rule, Verdict) else rule(ours, theirs)


def touched_fragments(operation: Operation) -> frozenset[int]:
    """Ids of existing fragments that an operation changes or removes."""
    if isinstance(operation, Delete):
        return frozenset(fragment.id for fragment in operation.updated_fragments) | frozenset(
            operation.deleted_fragment_ids
        )
    if isinstance(operation, Rewrite):
        return operation.old_ids
    if not isinstance(operation, Foreign):
        return frozenset()
    message: Any = operation.message
    if operation.name == "Update":
        updated = {fragment.id for fragment in message.updated_fragments}
        return frozenset(updated.union(message.removed_fragment_ids))
    if operation.name == "DataReplacement":
        return frozenset(replacement.fragment_id for replacement in message.replacements)
    if operation.name == "DataOverlay":
        return frozenset(group.fragment_id for group in message.groups)
    return frozenset()


# -- conditions ------------------------------------------------------------------------------------------------------


def _same_fragments(ours: Operation, theirs: Operation) -> Verdict:
    return Verdict.RETRYABLE if touched_fragments(ours) & touched_fragments(theirs) else Verdict.COMPATIBLE


def _unless_nullability_kept(_ours: Operation, theirs: Foreign) -> Verdict:
    message: Any = theirs.message
    return Verdict.COMPATIBLE if message.preserves_nullability else Verdict.RETRYABLE


def _deleted_rows(ours: Delete, theirs: Operation) -> Verdict:
    """Two changes that mask rows: only rows, not fragments, need to differ."""
    common = touched_fragments(ours) & touched_fragments(theirs)
    if not common:
        return Verdict.COMPATIBLE
    their_files = _updated_files(theirs)
    our_files = _updated_files(ours)
    for fragment_id in common:
        # Whole fragments that one side removes, and fragments that got other data files.
        if fragment_id not in our_files or fragment_id not in their_files:
            return Verdict.RETRYABLE
        if our_files[fragment_id] != their_files[fragment_id]:
            return Verdict.RETRYABLE
    return Verdict.REBASE


def _updated_files(operation: Operation) -> dict[int, list[str]]:
    """Paths of the data files of every fragment that stays, by fragment id."""
    updated: Any = ()
    if isinstance(operation, Delete):
        updated = operation.updated_fragments
    elif isinstance(operation, Foreign) and operation.name == "Update":
        message: Any = operation.message
        updated = message.updated_fragments
    return {fragment.id: [file.path for file in fragment.files] for fragment in updated}


def _overwrite_overwrite(ours: Overwrite, theirs: Overwrite) -> Verdict:
    shared = ours.config_upserts.keys() & theirs.config_upserts.keys()
    return Verdict.INCOMPATIBLE if shared else Verdict.RETRYABLE


def _overwrite_config(ours: Overwrite, theirs: Foreign) -> Verdict:
    shared = ours.config_upserts.keys() & _config_keys(theirs)
    return Verdict.INCOMPATIBLE if shared else Verdict.COMPATIBLE


def _config_keys(update: Foreign) -> set[str]:
    """Config keys that an UpdateConfig sets or deletes."""
    message: Any = update.message
    new_style = (entry.key for entry in message.config_updates.update_entries)
    return {*message.upsert_values, *message.delete_keys, *new_style}


def _adds_fragments(ours: Rewrite, _theirs: Operation) -> Verdict:
    """New fragments are of the storage version that an upgrade of the table leaves."""
    return Verdict.COMPATIBLE if ours.storage_version is None else Verdict.RETRYABLE


def _same_fragments_or_added(ours: Rewrite, theirs: Operation) -> Verdict:
    return Verdict.RETRYABLE if ours.storage_version is not None else _same_fragments(ours, theirs)


def _indexed_fragments(ours: Rewrite, theirs: Foreign) -> Verdict:
    """New indices must not cover what is rewritten; those that do not say what they cover may."""
    message: Any = theirs.message
    for index in message.new_indices:
        covered = coverage(index)
        if covered is None or not ours.old_ids.isdisjoint(covered):
            return Verdict.RETRYABLE
    return Verdict.COMPATIBLE


def _changes_schema_metadata(_ours: Operation, theirs: Foreign) -> Verdict:
    message: Any = theirs.message
    updates = [message.schema_metadata_updates, *message.field_metadata_updates.values()]
    changed = any(update.update_entries or update.replace for update in updates)
    if changed or message.schema_metadata or message.field_metadata:
        return Verdict.INCOMPATIBLE
    return Verdict.COMPATIBLE


_OK, _RETRY, _NO = Verdict.COMPATIBLE, Verdict.RETRYABLE, Verdict.INCOMPATIBLE

_NEVER: Mapping[str, Rule] = {
    "Append": _OK,
    "Delete": _OK,
    "Update": _OK,
    "Overwrite": _OK,
    "CreateIndex": _OK,
    "Rewrite": _OK,
    "Merge": _OK,
    "Project": _OK,
    "Restore": _OK,
    "ReserveFragments": _OK,
    "UpdateConfig": _OK,
    "DataReplacement": _OK,
    "DataOverlay": _OK,
    "UpdateMemWalState": _OK,
    "UpdateBases": _OK,
    "Clone": _OK,
}

_RULES: Mapping[str, Mapping[str, Rule]] = {
    "Append": {
        **_NEVER,
        "Overwrite": _NO,
        "Merge": _unless_nullability_kept,
        "Project": _unless_nullability_kept,
        "Restore": _NO,
        "UpdateMemWalState": _NO,
    },
    "Delete": {
        **_NEVER,
        "Delete": _deleted_rows,
        "Update": _deleted_rows,
        "Overwrite": _NO,
        "Rewrite": _same_fragments,
        "Merge": _RETRY,
        "Restore": _NO,
        "DataReplacement": _same_fragments,
        "UpdateMemWalState": _NO,
    },
    "Overwrite": {
        **_NEVER,
        "Overwrite": _overwrite_overwrite,
        "UpdateConfig": _overwrite_config,
        "UpdateMemWalState": _NO,
    },
    "Restore": {
        **_NEVER,
        "UpdateConfig": _changes_schema_metadata,
        "UpdateMemWalState": _NO,
    },
    "Rewrite": {
        **_NEVER,
        "Append": _adds_fragments,
        "Delete": _same_fragments,
        "Update": _same_fragments_or_added,
        "Overwrite": _NO,
        "CreateIndex": _indexed_fragments,
        "Rewrite": _same_fragments_or_added,
        "Merge": _RETRY,
        "Restore": _NO,
        "DataReplacement": _same_fragments,
        "DataOverlay": _same_fragments,
    },
    "ReserveFragments": {**_NEVER, "Overwrite": _NO, "Restore": _NO},
}
