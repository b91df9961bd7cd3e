"""Conflict conditions on the columns of a table, and a check of new files against changed columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lance_dataset.errors import CommitConflictError
from lance_dataset.table.conflicts.verdict import AffectedRows, Verdict
from lance_dataset.table.fragment import Fragment
from lance_dataset.table.operations import (
    Append,
    DataOverlay,
    DataReplacement,
    Merge,
    Operation,
    Project,
    Rewrite,
    Update,
)
from lance_dataset.table.overlays import Overlay
from lance_dataset.types.schema import Schema

__all__ = ["check_columns_kept", "replaces_dropped_columns", "requires_values", "updates_dropped_columns"]

_OK, _RETRY, _NO = Verdict.COMPATIBLE, Verdict.RETRYABLE, Verdict.INCOMPATIBLE


def requires_values(ours: Operation, theirs: Operation, _rows: AffectedRows | None) -> Verdict:
    """Check condition n: one side may make a column non-nullable, and the other adds values that may be null."""
    schema_changes = [side for side in (ours, theirs) if isinstance(side, Merge | Project)]
    return _OK if all(change.preserves_nullability for change in schema_changes) else _RETRY


def replaces_dropped_columns(ours: DataReplacement, theirs: Project, _rows: AffectedRows | None) -> Verdict:
    """Check condition y: our files are for columns that were dropped."""
    left = {node.id for node in theirs.schema.walk()}
    written = {field_id for _, file in ours.replacements for field_id in file.fields if field_id >= 0}
    return _NO if written - left else _OK


def updates_dropped_columns(ours: Update, theirs: Project, _rows: AffectedRows | None) -> Verdict:
    """Check condition z: our update wrote columns that were dropped."""
    left = {node.id for node in theirs.schema.walk()}
    return _RETRY if set(ours.fields_modified) - left else _OK


def check_columns_kept(operation: Operation, read: Schema, latest: Schema, version: int) -> None:
    """Check that the field ids in new files still mean the same columns in the newest version.

    A column gets another id if its type changes or if repeated ids are repaired, and the id of a dropped column may be
    used again. The conflict rules let such files pass, but their values would be read as null or as another type.

    Parameters
    ----------
    operation
        Our operation.
    read, latest
        Schemas of the version that it was computed against, and of the newest one.
    version
        The newest version.

    Raises
    ------
    CommitConflictError
        The files must be written again.
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
            f"Retryable commit conflict for version {version}: columns were changed in the meantime, but the new files "
            f"of this {operation.name} still have the fields {names} as they were. Please write them again.",
            retryable=True,
        )


def _written_fields(operation: Operation) -> Iterator[int]:
    """Yield the field ids in the files that an operation adds for existing columns."""
    if isinstance(operation, Append):
        yield from _fields_of(operation.fragments)
    elif isinstance(operation, Rewrite):
        for group in operation.groups:
            yield from _fields_of(group.new_fragments)
    elif isinstance(operation, Update):
        yield from operation.fields_modified
        yield from _fields_of(operation.new_fragments)
    elif isinstance(operation, DataReplacement):
        for _, file in operation.replacements:
            yield from file.fields
    elif isinstance(operation, DataOverlay):
        for _, messages in operation.groups:
            for message in messages:
                yield from Overlay.decode(message).file.fields


def _fields_of(fragments: Iterable[Fragment]) -> Iterator[int]:
    for fragment in fragments:
        for file in fragment.files:
            yield from file.fields
