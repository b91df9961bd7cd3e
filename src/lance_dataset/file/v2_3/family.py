"""File version 2.3 (unstable in the reference): levels as in 2.2, or sparse pages with positions and counts instead."""

from __future__ import annotations

from collections.abc import Sequence

from lance_dataset.file.column import ColumnEncoder, ColumnReader, WriteBuffer
from lance_dataset.file.container import FileMetadata
from lance_dataset.file.plain_columns import ColumnPart, JoinedParts, PlainColumns
from lance_dataset.file.structural.nesting import column_indices
from lance_dataset.file.structural.read.columns import Locate
from lance_dataset.file.structural.read.columns import open_column as open_leaves
from lance_dataset.file.structural.read.page import with_older_pages
from lance_dataset.file.v2_3.check import check_schema
from lance_dataset.file.v2_3.pages import PLANAR_PAGES
from lance_dataset.file.v2_3.pre import PRE_PAGES
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

_PAGES = with_older_pages(PLANAR_PAGES, PRE_PAGES)


def stored_indices(schema: Schema, metadata: FileMetadata) -> Sequence[tuple[int, int]]:
    """Return (field id, column index) of the fields of a standalone file."""
    return column_indices(schema)


def open_column(field: Field, locate: Locate, num_rows: int) -> ColumnReader:
    """Open the columns of a field and of everything below it; see `structural.read.columns.open_column`."""
    return open_leaves(field, locate, num_rows, _PAGES)


def open_plain_columns(
    metadata: FileMetadata, fields: Sequence[Field], indices: Sequence[int], num_rows: int
) -> PlainColumns | None:
    """Return None: columns are read one by one."""
    return None


def join_parts(parts: Sequence[ColumnPart], field: Field) -> list[JoinedParts]:
    """Return nothing: parts are read one by one."""
    return []


def open_encoder(field: Field, first_column: int, version: str, write_buffer: WriteBuffer) -> ColumnEncoder:
    """Return the encoder of a top-level field; see `EncodingFamily`."""
    from lance_dataset.file.v2_3.encode import PlanarEncoder

    return PlanarEncoder(field, first_column, version, write_buffer)
