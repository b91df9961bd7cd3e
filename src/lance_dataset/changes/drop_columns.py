"""Columns that are taken out of the schema; files that hold nothing else go from their fragments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lance_dataset.changes.column_files import commit_column_files
from lance_dataset.errors import FieldNotFoundError, InvalidInputError
from lance_dataset.field_paths import find_path
from lance_dataset.schema import Field, Schema
from lance_dataset.table.flags import check_writable
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.operations import Project

if TYPE_CHECKING:
    from lance_dataset.dataset import LanceDataset

__all__ = ["drop_columns"]


def drop_columns(dataset: LanceDataset, columns: Sequence[str]) -> tuple[Manifest, None]:
    """Drop columns of the version that a handle shows, in one commit; for `repeated_on_conflict`."""
    manifest = dataset._manifest
    check_writable(manifest.writer_flags, manifest.path)
    schema = _remaining(manifest.schema, columns)
    return commit_column_files(dataset, Project(schema, preserves_nullability=True), ()), None


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
    """The field without what is dropped; None if nothing is left of it."""
    if field.id in dropped:
        return None
    if not field.children:
        return field
    children = tuple(kept for child in field.children if (kept := _without(child, dropped)) is not None)
    if len(children) == len(field.children) and all(a is b for a, b in zip(children, field.children, strict=True)):
        return field
    return replace(field, children=children) if children else None
