"""Conflict conditions on config, metadata and base paths."""

from __future__ import annotations

from collections.abc import Iterable

from lance_dataset.table.conflicts.verdict import AffectedRows, Verdict
from lance_dataset.table.operations import Operation, Overwrite, UpdateBases, UpdateConfig, UpdateMap

__all__ = [
    "adds_same_base",
    "changes_metadata_beside_schema",
    "changes_metadata_of_restore",
    "changes_overwritten_settings",
    "changes_same_settings",
    "overwrites_changed_config",
    "overwrites_same_config",
]

_OK, _RETRY, _NO = Verdict.COMPATIBLE, Verdict.RETRYABLE, Verdict.INCOMPATIBLE


def _set_keys(update: UpdateMap | None) -> set[str]:
    """Return the keys that get a value."""
    return set() if update is None else {key for key, value in update.updates.items() if value is not None}


def _keys(update: UpdateMap | None) -> set[str]:
    """Return the keys that get a value or are removed."""
    return set() if update is None else set(update.updates)


def _changes(update: UpdateMap | None) -> bool:
    return update is not None and (bool(update.updates) or update.replace)


def _changed_fields(update: UpdateConfig) -> set[int]:
    return {field_id for field_id, changes in update.field_metadata.items() if _changes(changes)}


def _changes_schema(operation: Operation) -> bool:
    """Return True if an operation changes metadata of the schema or of fields."""
    if not isinstance(operation, UpdateConfig):
        return False
    return _changes(operation.schema_metadata) or bool(_changed_fields(operation))


def overwrites_same_config(ours: Overwrite, theirs: Overwrite, _rows: AffectedRows | None) -> Verdict:
    """Check condition co: both overwrites set the same key."""
    return _NO if ours.config_upserts.keys() & theirs.config_upserts.keys() else _OK


def overwrites_changed_config(ours: Overwrite, theirs: UpdateConfig, _rows: AffectedRows | None) -> Verdict:
    """Check condition c: our overwrite sets a key that they set or removed."""
    return _NO if ours.config_upserts.keys() & _keys(theirs.config) else _OK


def changes_overwritten_settings(ours: UpdateConfig, theirs: Overwrite, _rows: AffectedRows | None) -> Verdict:
    """Check condition c2: our metadata is for a replaced schema, or their overwrite set one of our keys."""
    return _NO if _changes_schema(ours) or theirs.config_upserts.keys() & _keys(ours.config) else _OK


def changes_same_settings(ours: UpdateConfig, theirs: UpdateConfig, _rows: AffectedRows | None) -> Verdict:
    """Check condition c3: both change the same setting. Both may remove the same config key."""
    our_set, their_set = _set_keys(ours.config), _set_keys(theirs.config)
    if our_set & _keys(theirs.config) or their_set & _keys(ours.config):
        return _NO
    if _changes(ours.schema_metadata) and _changes(theirs.schema_metadata):
        return _NO
    if _changed_fields(ours) & _changed_fields(theirs):
        return _NO
    return _NO if _change_same_table_metadata(ours.table_metadata, theirs.table_metadata) else _OK


def _change_same_table_metadata(ours: UpdateMap | None, theirs: UpdateMap | None) -> bool:
    if ours is None or theirs is None or not _changes(ours) or not _changes(theirs):
        return False
    return ours.replace or theirs.replace or bool(_keys(ours) & _keys(theirs))


def changes_metadata_beside_schema(ours: Operation, theirs: Operation, _rows: AffectedRows | None) -> Verdict:
    """Check condition s: the schema of one side lacks the metadata changes of the other."""
    return _RETRY if _changes_schema(ours) or _changes_schema(theirs) else _OK


def changes_metadata_of_restore(ours: Operation, theirs: Operation, _rows: AffectedRows | None) -> Verdict:
    """Check condition s2: the restored schema lacks the metadata changes."""
    return _NO if _changes_schema(ours) or _changes_schema(theirs) else _OK


def adds_same_base(ours: UpdateBases, theirs: UpdateBases, _rows: AffectedRows | None) -> Verdict:
    """Check condition b: both add a base path with the same id, name or path."""
    our_marks, their_marks = set(_marks(ours)), set(_marks(theirs))
    return _NO if our_marks & their_marks else _OK


def _marks(operation: UpdateBases) -> Iterable[tuple[str, object]]:
    """Yield the values that must be unique among base paths."""
    for base in operation.new_bases:
        yield "path", base.location
        if base.id:
            yield "id", base.id
        if base.name is not None:
            yield "name", base.name
