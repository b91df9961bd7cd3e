"""Dropping columns: fields leave the schema, and fragments lose the files that hold nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lance_dataset.changes.fragments.column_files import commit_column_files
from lance_dataset.changes.retry import repeated_on_conflict
from lance_dataset.errors import FieldNotFoundError, InvalidInputError
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.table.field_paths import find_path
from lance_dataset.table.flags import check_writable
from lance_dataset.table.operations import Project
from lance_dataset.types.schema import Field, Schema

__all__ = ["drop_columns"]


def drop_columns(snapshot: Snapshot, columns: Sequence[str]) -> Snapshot:
    """Drop columns in one commit; see `LanceDataset.drop_columns`."""
    return repeated_on_conflict(snapshot, lambda latest: _without_columns(latest, columns))


def _without_columns(snapshot: Snapshot, columns: Sequence[str]) -> Snapshot:
    manifest = snapshot.manifest
    check_writable(manifest.writer_flags, manifest.path)
    schema = _remaining(manifest.schema, columns)
    return commit_column_files(snapshot, Project(schema, preserves_nullability=True), ())


def _remaining(schema: Schema, columns: Sequence[str]) -> Schema:
    dropped = {_find(schema, column).id for column in columns}
    fields = tuple(kept for top in schema.fields if (kept := _without(top, dropped)) is not None)
    if not fields:
        raise InvalidInputError("Cannot drop all columns from a dataset")
    return Schema(fields, schema.metadata)


def _find(schema: Schema, column: str) -> Field:
    try:
        path = find_path(schema, column)
    except FieldNotFoundError as error:
        raise FieldNotFoundError(f"Column {column} does not exist in the dataset: {error}") from error
    if any(node.logical_type == "map" for node in path[:-2]):
        raise InvalidInputError(f"Column {column}: keys and values of a map cannot be dropped; drop the whole map")
    return path[-1]


def _without(field: Field, dropped: set[int]) -> Field | None:
    """Return a field without its dropped fields, or None if nothing is left of it."""
    if field.id in dropped:
        return None
    if not field.children:
        return field
    children = tuple(kept for child in field.children if (kept := _without(child, dropped)) is not None)
    if len(children) == len(field.children) and all(a is b for a, b in zip(children, field.children, strict=True)):
        return field
    return replace(field, children=children) if children else None
