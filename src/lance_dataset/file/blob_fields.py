"""Blob columns in schemas, either as their values or as descriptions with the location of each value.

A blob of version 1 is a large binary in the schema of a table. One of version 2 is a struct of bytes or a URI (its
*stored form*), and a struct of five numbers and texts in files (its *descriptor*).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from lance_dataset.errors import UnsupportedError
from lance_dataset.file.options import is_blob, is_blob_descriptor, is_blob_v2
from lance_dataset.types.schema import EXTENSION_NAME, Field, Schema

__all__ = [
    "DESCRIPTION",
    "DESCRIPTOR",
    "as_pairs",
    "as_values",
    "check_table_blobs",
    "described",
    "described_blobs",
    "described_schema",
    "is_described",
    "is_pair",
    "is_prepared",
    "is_resolved",
    "undescribed",
    "unprepared",
    "version_for_blobs",
    "with_descriptors",
]

#: Children of a description: position of the value in the data file, and its length in bytes. Stored fields never have
#: ids below 0.
DESCRIPTION = (Field("position", -2, "uint64"), Field("size", -3, "uint64"))
#: Children of a descriptor of version 2.
DESCRIPTOR = (
    Field("kind", -6, "uint8", nullable=False),
    Field("position", -2, "uint64", nullable=False),
    Field("size", -3, "uint64", nullable=False),
    Field("blob_id", -7, "uint32", nullable=False),
    Field("blob_uri", -8, "string", nullable=False),
)
_BEFORE_BLOBS, _FIRST_WITH_BLOBS = ("2.0", "2.1"), "2.2"
#: Children of the stored form, and of arrays of descriptors that were made before their data file.
_STORED = ("data", "uri", "position", "size")
_PREPARED = ("kind", "data", "uri", "blob_id", "blob_size", "position")
_DESCRIPTOR_METADATA = {"lance-encoding:blob": b"true", "lance-encoding:packed": b"true"}
_PAIR_METADATA = {"lance-encoding:blob": b"true"}


def is_pair(field: Field) -> bool:
    """Return True if a field is a blob of version 1 in the form of descriptions."""
    return is_blob(field) and field.logical_type == "struct"


def is_described(field: Field) -> bool:
    """Return True if a field is a blob of any version in the form of descriptions."""
    return is_pair(field) or is_blob_descriptor(field)


def is_resolved(field: Field) -> bool:
    """Return True if a field is a blob of version 2 in a form other than descriptors: stored form, or values."""
    return is_blob_v2(field) or (field.blob is not None and not is_blob_descriptor(field))


def is_prepared(field: Field) -> bool:
    """Return True if a field is a blob of version 2 in the form of descriptors made before their data file."""
    return is_blob_v2(field) and tuple(child.name for child in field.children) == _PREPARED


def unprepared(schema: Schema) -> Schema:
    """Return the schema with all blobs of version 2 in their stored form, which the rules for schemas are about."""

    def changed(field: Field) -> Field:
        if not is_prepared(field):
            return _mapped(field, changed)
        kinds = ("large_binary", "string", "uint64", "uint64")
        return replace(field, children=tuple(Field(*each) for each in zip(_STORED, (-1,) * 4, kinds, strict=True)))

    return Schema(tuple(changed(field) for field in schema.fields), schema.metadata)


def described(field: Field) -> Field:
    """Return the field with every blob at or below it as a description."""
    if is_blob(field):
        return replace(field, logical_type="struct", children=DESCRIPTION)
    if is_resolved(field):
        stored = field.blob or field
        return replace(
            stored, logical_type="struct", children=DESCRIPTOR, metadata=dict(_DESCRIPTOR_METADATA), blob=stored
        )
    return _mapped(field, described)


def undescribed(field: Field) -> Field:
    """Return the field with every blob at or below it in its stored form; the inverse of `described`."""
    if is_pair(field):
        return replace(field, logical_type="large_binary", children=())
    if field.blob is not None:
        return field.blob
    return _mapped(field, undescribed)


def as_values(field: Field) -> Field:
    """Return the field with every blob at or below it as its bytes, whatever its version and form."""
    if is_pair(field):
        return undescribed(field)
    stored = field.blob or (field if is_blob_v2(field) else None)
    if stored is None:
        return _mapped(field, as_values)
    metadata = {key: value for key, value in stored.metadata.items() if key != EXTENSION_NAME}
    return replace(stored, logical_type="large_binary", children=(), metadata=metadata, blob=stored)


def as_pairs(field: Field, is_older: Callable[[Field], bool]) -> Field:
    """Return the field with descriptors as descriptions of version 1, where files hold the column in that form."""
    if is_blob_descriptor(field):
        if not is_older(field):
            return field
        return replace(field, children=DESCRIPTION, metadata=dict(_PAIR_METADATA))
    return _mapped(field, lambda child: as_pairs(child, is_older))


def described_blobs(schema: Schema) -> Schema:
    """Return the schema with blobs of version 2 as descriptors, as files store them; itself if it has none."""

    def changed(field: Field) -> Field:
        return described(field) if is_blob_v2(field) else _mapped(field, changed)

    if not any(is_blob_v2(node) for node in schema.walk()):
        return schema
    return Schema(tuple(changed(field) for field in schema.fields), schema.metadata)


def with_descriptors(schema: Schema) -> Schema:
    """Return the schema of a file by itself, with the children of descriptors, which it lists without ids."""

    def completed(field: Field) -> Field:
        if is_blob_descriptor(field):
            return replace(field, children=DESCRIPTOR)
        return _mapped(field, completed)

    if not any(is_blob_descriptor(node) for node in schema.walk()):
        return schema
    return Schema(tuple(completed(field) for field in schema.fields), schema.metadata)


def described_schema(schema: Schema) -> Schema:
    """Return the schema with every blob as a description, or the schema itself if it has no blobs."""
    fields = tuple(described(field) for field in schema.fields)
    unchanged = all(new is old for new, old in zip(fields, schema.fields, strict=True))
    return schema if unchanged else Schema(fields, schema.metadata)


def version_for_blobs(schema: Schema, version: str) -> str:
    """Return the file version for new files of a table of some version, which is later if its blobs need that.

    The reference converts blob columns of tables of 2.0 and 2.1 to version 2, but the tables keep their version.
    """
    if version in _BEFORE_BLOBS and any(is_blob_v2(node) for node in schema.walk()):
        return _FIRST_WITH_BLOBS
    return version


def check_table_blobs(schema: Schema, version: str) -> None:
    """Reject blob columns in tables with files of 2.2 or later, because other writers append blobs of version 2 there.

    Raises
    ------
    UnsupportedError
        The schema has a blob column; the message names it.
    """
    if version not in _BEFORE_BLOBS:
        for field in schema.walk():
            if is_blob(field):
                raise UnsupportedError(
                    f"column {field.name!r}: blob columns cannot be written to datasets of file version {version} by "
                    'this release; use data_storage_version="2.1", or store plain binary values: remove '
                    "lance-encoding:blob from the metadata of the field"
                )


def _mapped(field: Field, change: Callable[[Field], Field]) -> Field:
    """Return the field with changed children, or itself if nothing changed, so that its cached Arrow type is kept."""
    children = tuple(change(child) for child in field.children)
    if all(new is old for new, old in zip(children, field.children, strict=True)):
        return field
    return replace(field, children=children)
