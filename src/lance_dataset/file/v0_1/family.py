"""File version 0.1 (legacy): batches of rows, with one plain page per field in each batch."""

from __future__ import annotations

from collections.abc import Sequence

from lance_dataset.file.v0_1.container import LegacyFile
from lance_dataset.file.v0_1.read.columns import open_column
from lance_dataset.file.v0_1.write.check import check_schema
from lance_dataset.types.schema import Schema

__all__ = ["LegacyFile", "check_schema", "column_indices", "open_column"]


def column_indices(schema: Schema) -> Sequence[tuple[int, int]]:
    """Return (field id, field id) of every field, because pages are found by the ids. See `EncodingFamily`."""
    return [(node.id, node.id) for node in schema.walk()]
