"""File version 2.3 (unstable in the reference): levels as in 2.2, or sparse pages with positions and counts instead."""

from __future__ import annotations

from lance_dataset.errors import UnsupportedError
from lance_dataset.file.column import ColumnEncoder, WriteBuffer
from lance_dataset.file.v2_1.columns import column_indices
from lance_dataset.file.v2_3.decode import open_column
from lance_dataset.schema import Field, Schema

__all__ = ["check_schema", "column_indices", "open_column", "open_encoder"]


def check_schema(schema: Schema, version: str) -> None:
    """Refuse what files of the version cannot hold; see `EncodingFamily`."""
    raise UnsupportedError(f"file version {version} cannot be written by this release")


def open_encoder(field: Field, first_column: int, version: str, write_buffer: WriteBuffer) -> ColumnEncoder:
    """Encoder of a top-level field; see `EncodingFamily`."""
    raise UnsupportedError(f"file version {version} cannot be written by this release")
