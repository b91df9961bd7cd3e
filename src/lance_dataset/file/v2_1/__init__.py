"""File versions 2.1 and 2.2: structural layouts with repetition and definition levels."""

from __future__ import annotations

from lance_dataset.file.column import ColumnEncoder, WriteBuffer
from lance_dataset.file.v2_1.check import check_schema
from lance_dataset.file.v2_1.columns import column_indices
from lance_dataset.file.v2_1.read.decode import open_column
from lance_dataset.file.v2_1.write.encode import StructuralEncoder
from lance_dataset.schema import Field

__all__ = ["check_schema", "column_indices", "open_column", "open_encoder"]


def open_encoder(field: Field, first_column: int, version: str, write_buffer: WriteBuffer) -> ColumnEncoder:
    """Encoder of a top-level field; see `EncodingFamily`."""
    return StructuralEncoder(field, first_column, version, write_buffer)
