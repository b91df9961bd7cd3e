"""File version 0.1 (legacy): batches of rows, in each of which every field has one plain page."""

from __future__ import annotations

from collections.abc import Sequence

from lance_dataset.file.v0_1.container import LegacyFile
from lance_dataset.file.v0_1.read.columns import open_column
from lance_dataset.file.v0_1.write.check import check_schema
from lance_dataset.schema import Schema

__all__ = ["LegacyFile", "check_schema", "column_indices", "open_column"]


def column_indices(schema: Schema) -> Sequence[tuple[int, int]]:
    """(field id, field id) of every field: pages are found by the ids themselves. See `EncodingFamily`."""
    return [(node.id, node.id) for node in schema.walk()]
