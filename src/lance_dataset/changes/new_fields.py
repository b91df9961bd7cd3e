"""Fields that a table gets: their place in its schema, and their ids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count

import pyarrow as pa

from lance_dataset.changes.column_files import next_field_id
from lance_dataset.errors import InvalidInputError, SchemaError, UnsupportedError
from lance_dataset.file.blob_fields import check_table_blobs
from lance_dataset.file.families import family_of
from lance_dataset.query.fragment_reader import SYSTEM_COLUMNS
from lance_dataset.schema import Field, Schema, numbered, unnumbered
from lance_dataset.table.manifest import Manifest

__all__ = ["NewFields", "new_fields"]

#: File versions of which the reference does not spread a struct over several files.
_WHOLE_STRUCTS = ("0.1", "2.0", "2.1")


@dataclass(frozen=True)
class NewFields:
    """New fields of a table.

    Attributes
    ----------
    schema
        The schema of the table with them, and with metadata that came along, unless the table has another value for it.
    added
        The new fields, inside the structs they are added to; ids given.
    roots
        The same without those structs.
    """

    schema: Schema
    added: Schema
    roots: tuple[Field, ...]

    @property
    def preserves_nullability(self) -> bool:
        """Whether rows that others write meanwhile fit, although they lack the fields."""
        return all(root.nullable for root in self.roots)

    def check_nullable(self) -> None:
        """Refuse (InvalidInputError) fields that are not nullable, for columns of nulls."""
        for root in self.roots:
            if not root.nullable:
                raise InvalidInputError(f"All-null columns must be nullable, but field {root.name!r} is not")

    def check_values(self) -> None:
        """Refuse (UnsupportedError) new fields inside of lists, whose values would have to be cut as the lists are."""
        known = {node.id for root in self.roots for node in root.walk()}
        for node in self.added.walk():
            if node.id not in known and node.logical_type != "struct":
                raise UnsupportedError(
                    f"column {node.name!r} is a list: this release adds fields to its items only as nulls (pass a "
                    "pyarrow.Field), not with values"
                )


def new_fields(manifest: Manifest, arrow: pa.Schema) -> NewFields:
    """Find the place of new fields in the schema of a table, and give them ids.

    Parameters
    ----------
    manifest
        The table.
    arrow
        New columns; a struct whose name the table has brings new fields for it.

    Raises
    ------
    InvalidInputError
        A field that is there already.
    SchemaError
        A name that no column can have, or that occurs twice.
    UnsupportedError
        A type that the files of the table cannot hold.
    """
    version = manifest.storage_version
    for name in arrow.names:
        if not name or name in SYSTEM_COLUMNS:
            raise SchemaError(f"column name {name!r} is reserved for what scans compute; choose another one")
    whole = Schema.from_arrow(arrow)
    given = tuple(unnumbered(top) for top in whole.fields)
    # what pandas notes is about one DataFrame
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
    """The fields of one level: those that are there, with what is new below them, then the new ones."""
    by_name = {node.name: node for node in given}
    known = {node.name for node in existing}
    kept = [_extended(node, by_name[node.name], path, version) if node.name in by_name else node for node in existing]
    return (*kept, *(node for node in given if node.name not in known))


def _extended(existing: Field, given: Field, path: str, version: str) -> Field:
    """A field with new fields below it."""
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
            f"Column {name} already exists in the dataset; fields are added to it only in files of version 2.2 and "
            f"later, those of the dataset have version {version}"
        )
    return replace(existing, children=_merged(existing.children, given.children, f"{name}.", version))


def _pruned(node: Field, first: int) -> Iterator[Field]:
    """The field with no more below it than new fields, if there are any."""
    if node.id >= first:
        yield node
        return
    children = tuple(pruned for child in node.children for pruned in _pruned(child, first))
    if children:
        yield replace(node, children=children)


def _roots(node: Field, first: int) -> Iterator[Field]:
    """The outermost new fields."""
    if node.id >= first:
        yield node
        return
    for child in node.children:
        yield from _roots(child, first)
