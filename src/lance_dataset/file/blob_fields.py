"""Blob columns in schemas, either as their values or as descriptions with the location of each value."""

from __future__ import annotations

from dataclasses import replace

from lance_dataset.errors import UnsupportedError
from lance_dataset.file.options import is_blob
from lance_dataset.types.schema import Field, Schema

__all__ = ["DESCRIPTION", "check_table_blobs", "described", "described_schema", "is_described", "undescribed"]

#: Children of a description: position of the value in the data file, and its length in bytes. Stored fields never have
#: ids below 0.
DESCRIPTION = (Field("position", -2, "uint64"), Field("size", -3, "uint64"))


def is_described(field: Field) -> bool:
    """Return True if a field is a blob in the form of descriptions."""
    return is_blob(field) and field.logical_type == "struct"


def described(field: Field) -> Field:
    """Return the field with every blob at or below it as a struct of position and size."""
    if is_blob(field):
        return replace(field, logical_type="struct", children=DESCRIPTION)
    return _rebuilt(field, tuple(described(child) for child in field.children))


def undescribed(field: Field) -> Field:
    """Return the field with every description at or below it as values; the inverse of `described`."""
    if is_described(field):
        return replace(field, logical_type="large_binary", children=())
    return _rebuilt(field, tuple(undescribed(child) for child in field.children))


def described_schema(schema: Schema) -> Schema:
    """Return the schema with every blob as a description, or the schema itself if it has no blobs."""
    fields = tuple(described(field) for field in schema.fields)
    unchanged = all(new is old for new, old in zip(fields, schema.fields, strict=True))
    return schema if unchanged else Schema(fields, schema.metadata)


def check_table_blobs(schema: Schema, version: str) -> None:
    """Reject blob columns in tables with files of 2.2 or later, because other writers append blobs of version 2 there.

    Raises
    ------
    UnsupportedError
        The schema has a blob column; the message names it.
    """
    if version not in ("2.0", "2.1"):
        for field in schema.walk():
            if is_blob(field):
                raise UnsupportedError(
                    f"column {field.name!r}: blob columns cannot be written to datasets of file version {version} by "
                    'this release; use data_storage_version="2.1", or store plain binary values: remove '
                    "lance-encoding:blob from the metadata of the field"
                )


def _rebuilt(field: Field, children: tuple[Field, ...]) -> Field:
    """Return the field itself if nothing below it changed, so that its cached Arrow type is kept."""
    if all(new is old for new, old in zip(children, field.children, strict=True)):
        return field
    return replace(field, children=children)
