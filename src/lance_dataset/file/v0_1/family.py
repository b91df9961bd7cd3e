"""File version 0.1 (legacy): batches of rows, with one plain page per field in each batch."""

from __future__ import annotations

from collections.abc import Sequence

from lance_dataset.file.plain_columns import PlainColumns
from lance_dataset.file.v0_1.container import LegacyFile
from lance_dataset.file.v0_1.read.columns import open_column
from lance_dataset.file.v0_1.write.check import check_schema
from lance_dataset.types.schema import Field, Schema

__all__ = ["LegacyFile", "check_schema", "column_indices", "open_column", "open_plain_columns"]


def column_indices(schema: Schema) -> Sequence[tuple[int, int]]:
    """Return (field id, field id) of every field, because pages are found by the ids. See `EncodingFamily`."""
    return [(node.id, node.id) for node in schema.walk()]


def open_plain_columns(
    file: LegacyFile, fields: Sequence[Field], indices: Sequence[int], num_rows: int
) -> PlainColumns | None:
    """Find the columns of some fields that can be read together. See `EncodingFamily`."""
    from lance_dataset.file.v0_1.read.plain_columns import open_plain_columns

    return open_plain_columns(file, fields, indices, num_rows)
