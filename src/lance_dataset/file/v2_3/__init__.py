"""File version 2.3 (unstable in the reference): levels as in 2.2, or sparse pages with positions and counts instead."""

from __future__ import annotations

from lance_dataset.file.column import ColumnEncoder, WriteBuffer
from lance_dataset.file.v2_1.columns import column_indices
from lance_dataset.file.v2_3.check import check_schema
from lance_dataset.file.v2_3.decode import open_column
from lance_dataset.file.v2_3.encode import PlanarEncoder
from lance_dataset.schema import Field

__all__ = ["check_schema", "column_indices", "open_column", "open_encoder"]


def open_encoder(field: Field, first_column: int, version: str, write_buffer: WriteBuffer) -> ColumnEncoder:
    """Encoder of a top-level field; see `EncodingFamily`."""
    return PlanarEncoder(field, first_column, version, write_buffer)
