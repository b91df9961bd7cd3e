"""File versions 2.1 and 2.2: structural layouts with repetition and definition levels."""

from __future__ import annotations

from collections.abc import Sequence

from lance_dataset.file.column import ColumnEncoder, ColumnReader, WriteBuffer
from lance_dataset.file.container import FileMetadata
from lance_dataset.file.plain_columns import ColumnPart, JoinedParts, PlainColumns
from lance_dataset.file.structural.check import check_schema
from lance_dataset.file.structural.nesting import column_indices
from lance_dataset.file.structural.read import columns
from lance_dataset.file.structural.read.columns import Locate
from lance_dataset.file.structural.read.page import with_older_pages
from lance_dataset.file.v2_1.pages import LEVEL_PAGES
from lance_dataset.file.v2_1.pre import PRE_PAGES
from lance_dataset.file.v2_1.pre.array_pages import field_has_array_pages, file_has_array_pages
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

#: Pages of 2.1 files, which may be from before 2.1 was stable. Pages of 2.2 files are always stable ones.
_PAGES_2_1 = with_older_pages(LEVEL_PAGES, PRE_PAGES)
_PAGES_2_2 = LEVEL_PAGES


def open_column(field: Field, locate: Locate, num_rows: int) -> ColumnReader:
    """Open the columns of a field and of everything below it; see `columns.open_column`."""
    found = locate(field)
    if found is None:
        found = next(filter(None, map(locate, field.walk())), None)
    if found is None or found[0].version != "2.1":
        return columns.open_column(field, locate, num_rows, _PAGES_2_2)
    if field_has_array_pages(field, locate):
        from lance_dataset.file.v2_0 import family as v2_0

        return v2_0.open_column(field, locate, num_rows)
    return columns.open_column(field, locate, num_rows, _PAGES_2_1)


def stored_indices(schema: Schema, metadata: FileMetadata) -> list[tuple[int, int]]:
    """Return (field id, column index) of the fields of a standalone file."""
    if not file_has_array_pages(metadata):
        return column_indices(schema)
    from lance_dataset.file.v2_0 import family as v2_0

    return v2_0.stored_indices(schema, metadata)


def open_plain_columns(
    metadata: FileMetadata, fields: Sequence[Field], indices: Sequence[int], num_rows: int
) -> PlainColumns | None:
    """Find the columns of some fields that are one small plain page each."""
    from lance_dataset.file.structural.read.plain_columns import open_plain_columns

    return open_plain_columns(metadata, fields, indices, num_rows, LEVEL_PAGES)


def join_parts(parts: Sequence[ColumnPart], field: Field) -> list[JoinedParts]:
    """Read the parts of a field that are small plain pages together."""
    from lance_dataset.file.structural.read.column_parts import join_parts

    return join_parts(parts, field, LEVEL_PAGES)


def open_encoder(field: Field, first_column: int, version: str, write_buffer: WriteBuffer) -> ColumnEncoder:
    """Return the encoder of a top-level field whose columns start at `first_column`."""
    from lance_dataset.file.structural.write.encoder import StructuralEncoder
    from lance_dataset.file.v2_1.messages import to_page_layout

    return StructuralEncoder(field, first_column, version, write_buffer, to_page_layout)
