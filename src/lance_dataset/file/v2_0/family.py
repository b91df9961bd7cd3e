"""File version 2.0: one array encoding tree per page, with separate columns for structs and lists."""

from __future__ import annotations

from collections.abc import Sequence

from lance_dataset.file.column import ColumnEncoder, WriteBuffer
from lance_dataset.file.container import FileMetadata
from lance_dataset.file.plain_columns import ColumnPart, JoinedParts, PlainColumns
from lance_dataset.file.v2_0 import check
from lance_dataset.file.v2_0.columns import column_indices, stored_indices
from lance_dataset.file.v2_0.decode import open_column
from lance_dataset.types.schema import Field, Schema

__all__ = [
    "check_schema",
    "column_indices",
    "join_parts",
    "open_column",
    "open_encoder",
    "open_plain_columns",
    "stored_indices",
]


def check_schema(schema: Schema, version: str) -> None:
    """Raise unless 2.0 can hold the schema; see `EncodingFamily`."""
    check.check_schema(schema)


def open_plain_columns(
    metadata: FileMetadata, fields: Sequence[Field], indices: Sequence[int], num_rows: int
) -> PlainColumns | None:
    """Find the columns of some fields that are one small plain page each."""
    from lance_dataset.file.v2_0.plain_columns import open_plain_columns

    return open_plain_columns(metadata, fields, indices, num_rows)


def join_parts(parts: Sequence[ColumnPart], field: Field) -> list[JoinedParts]:
    """Return nothing: parts are read one by one."""
    return []


def open_encoder(field: Field, first_column: int, version: str, write_buffer: WriteBuffer) -> ColumnEncoder:
    """Open an encoder of a top-level field; see `EncodingFamily`."""
    from lance_dataset.file.v2_0.encode import StructuredEncoder

    return StructuredEncoder(field, first_column, write_buffer)
