"""File version 2.3 (unstable in the reference): levels as in 2.2, or sparse pages with positions and counts instead."""

from __future__ import annotations

from lance_dataset.file.column import ColumnEncoder, ColumnReader, WriteBuffer
from lance_dataset.file.v2_1.columns import column_indices
from lance_dataset.file.v2_1.read.decode import Locate
from lance_dataset.file.v2_1.read.decode import open_column as open_leaves
from lance_dataset.file.v2_1.read.page import with_older_pages
from lance_dataset.file.v2_3.check import check_schema
from lance_dataset.file.v2_3.decode import PLANAR_PAGES
from lance_dataset.file.v2_3.encode import PlanarEncoder
from lance_dataset.file.v2_3.pre import PRE_PAGES
from lance_dataset.schema import Field

__all__ = ["check_schema", "column_indices", "open_column", "open_encoder"]

_PAGES = with_older_pages(PLANAR_PAGES, PRE_PAGES)


def open_column(field: Field, locate: Locate, num_rows: int) -> ColumnReader:
    """Open the columns of a field and of everything below it; see `v2_1.read.decode.open_column`."""
    return open_leaves(field, locate, num_rows, _PAGES)


def open_encoder(field: Field, first_column: int, version: str, write_buffer: WriteBuffer) -> ColumnEncoder:
    """Encoder of a top-level field; see `EncodingFamily`."""
    return PlanarEncoder(field, first_column, version, write_buffer)
