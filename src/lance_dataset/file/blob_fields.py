"""Blob columns in schemas: as the values they hold, or as descriptions that say where each value lies."""

from __future__ import annotations

from dataclasses import replace

from lance_dataset.errors import UnsupportedError
from lance_dataset.file.options import is_blob
from lance_dataset.schema import Field, Schema

__all__ = ["DESCRIPTION", "check_table_blobs", "described", "described_schema", "is_described", "undescribed"]

#: Children of a description: where in the data file a value begins, and its length in bytes. No stored field has ids
#: below 0.
DESCRIPTION = (Field("position", -2, "uint64"), Field("size", -3, "uint64"))


def is_described(field: Field) -> bool:
    """Whether a field is a blob in form of descriptions."""
    return is_blob(field) and field.logical_type == "struct"


def described(field: Field) -> Field:
    """The field with every blob at or below it as a struct of position and size."""
    if is_blob(field):
        return replace(field, logical_type="struct", children=DESCRIPTION)
    return _rebuilt(field, tuple(described(child) for child in field.children))


def undescribed(field: Field) -> Field:
    """The field with every description at or below it as the values, which undoes `described`."""
    if is_described(field):
        return replace(field, logical_type="large_binary", children=())
    return _rebuilt(field, tuple(undescribed(child) for child in field.children))


def described_schema(schema: Schema) -> Schema:
    """The schema with every blob as a description; the schema itself where there is none."""
    fields = tuple(described(field) for field in schema.fields)
    unchanged = all(new is old for new, old in zip(fields, schema.fields, strict=True))
    return schema if unchanged else Schema(fields, schema.metadata)


def check_table_blobs(schema: Schema, version: str) -> None:
    """Refuse blob columns in tables whose files are of 2.2 or later: what other writers append there is of version 2.

    Raises
    ------
    UnsupportedError
        Naming the column.
    """
    if version not in ("2.0", "2.1"):
        for field in schema.walk():
            if is_blob(field):
                raise UnsupportedError(
                    f"column {field.name!r}: blob columns cannot be written to datasets of file version {version} by "
                    'this release; use data_storage_version="2.1"'
                )


def _rebuilt(field: Field, children: tuple[Field, ...]) -> Field:
    """The field itself if nothing below it changed: its Arrow type is kept with it."""
    if all(new is old for new, old in zip(children, field.children, strict=True)):
        return field
    return replace(field, children=children)
