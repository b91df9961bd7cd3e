"""New fields of a table: their position in its schema, and their ids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count

import pyarrow as pa

from lance_dataset.changes.fragments.column_files import next_field_id
from lance_dataset.errors import InvalidInputError, SchemaError, UnsupportedError
from lance_dataset.file.blob_fields import check_table_blobs
from lance_dataset.file.families import family_of
from lance_dataset.read.fragment_reader import SYSTEM_COLUMNS
from lance_dataset.table.manifest import Manifest
from lance_dataset.types.schema import Field, Schema, numbered, unnumbered

__all__ = ["NewFields", "new_fields"]

#: File versions in which the reference does not spread a struct over several files.
_WHOLE_STRUCTS = ("0.1", "2.0", "2.1")


@dataclass(frozen=True)
class NewFields:
    """New fields of a table.

    Attributes
    ----------
    schema
        Schema of the table with the new fields. Metadata of the new schema is added; the values of the table win.
    added
        The new fields with ids, inside the structs that they are added to.
    roots
        The new fields without those structs.
    """

    schema: Schema
    added: Schema
    roots: tuple[Field, ...]

    @property
    def preserves_nullability(self) -> bool:
        """True if rows that others write concurrently without these fields remain valid."""
        return all(root.nullable for root in self.roots)

    def check_nullable(self) -> None:
        """Raise InvalidInputError if a field of null columns is not nullable."""
        for root in self.roots:
            if not root.nullable:
                raise InvalidInputError(f"All-null columns must be nullable, but field {root.name!r} is not")

    def check_values(self) -> None:
        """Raise UnsupportedError for new fields inside lists, whose values would need the same list lengths."""
        known = {node.id for root in self.roots for node in root.walk()}
        for node in self.added.walk():
            if node.id not in known and node.logical_type != "struct":
                raise UnsupportedError(
                    f"column {node.name!r} is a list: this release adds fields to its items only as nulls (pass a "
                    "pyarrow.Field), not with values"
                )


def new_fields(manifest: Manifest, arrow: pa.Schema) -> NewFields:
    """Find the position of new fields in the schema of a table, and assign ids to them.

    Parameters
    ----------
    manifest
        Manifest of the table.
    arrow
        New columns. A struct whose name the table already has adds fields to it.

    Raises
    ------
    InvalidInputError
        A field already exists.
    SchemaError
        A name is not allowed, or occurs twice.
    UnsupportedError
        The files of the table cannot hold a type.
    """
    version = manifest.storage_version
    for name in arrow.names:
        if not name or name in SYSTEM_COLUMNS:
            raise SchemaError(f"column name {name!r} is reserved for columns that scans compute; choose another one")
    whole = Schema.from_arrow(arrow)
    given = tuple(unnumbered(top) for top in whole.fields)
    # The metadata of pandas describes one DataFrame only.
    metadata = {key: value for key, value in whole.metadata.items() if key != "pandas"}
    first = next_field_id(manifest)
    numbers = count(first)
    merged = tuple(numbered(top, numbers) for top in _merged(manifest.schema.fields, given, "", version))
    added = Schema(tuple(pruned for top in merged for pruned in _pruned(top, first)))
    family_of(version).check_schema(added, version)
    check_table_blobs(added, version)
    roots = tuple(root for top in added.fields for root in _roots(top, first))
    return NewFields(Schema(merged, {**metadata, **manifest.schema.metadata}), added, roots)


def _merged(existing: Sequence[Field], given: Sequence[Field], path: str, version: str) -> tuple[Field, ...]:
    """Merge the fields of one level: existing fields, extended by new fields below them, then new fields."""
    by_name = {node.name: node for node in given}
    known = {node.name for node in existing}
    kept = [_extended(node, by_name[node.name], path, version) if node.name in by_name else node for node in existing]
    return (*kept, *(node for node in given if node.name not in known))


def _extended(existing: Field, given: Field, path: str, version: str) -> Field:
    """Add new fields below a field."""
    name = path + existing.name
    if existing.logical_type != given.logical_type:
        raise InvalidInputError(
            f"Column {name} already exists in the dataset, with type {existing.logical_type} instead of "
            f"{given.logical_type}"
        )
    if not existing.children or existing.logical_type == "map":
        raise InvalidInputError(f"Column {name} already exists in the dataset")
    if version in _WHOLE_STRUCTS:
        raise InvalidInputError(
            f"Column {name} already exists in the dataset; fields can be added to it only in files of version 2.2 and "
            f"later, but those of the dataset have version {version}"
        )
    return replace(existing, children=_merged(existing.children, given.children, f"{name}.", version))


def _pruned(node: Field, first: int) -> Iterator[Field]:
    """Yield the field with only the new fields below it, or nothing if it has none."""
    if node.id >= first:
        yield node
        return
    children = tuple(pruned for child in node.children for pruned in _pruned(child, first))
    if children:
        yield replace(node, children=children)


def _roots(node: Field, first: int) -> Iterator[Field]:
    """Yield the outermost new fields."""
    if node.id >= first:
        yield node
        return
    for child in node.children:
        yield from _roots(child, first)
