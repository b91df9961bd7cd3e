"""What a data file stores page by page: layouts, encodings, sizes, and why."""

from __future__ import annotations

from lance_dataset.file.explain.columns import (
    StoredColumn,
    columns_of_file,
    explain_columns,
    select_columns,
    stored_columns,
)
from lance_dataset.file.explain.report import (
    Alternative,
    ColumnEncoding,
    ColumnReport,
    EncodingReport,
    PageEncoding,
    StoredBuffer,
)

__all__ = [
    "Alternative",
    "ColumnEncoding",
    "ColumnReport",
    "EncodingReport",
    "PageEncoding",
    "StoredBuffer",
    "StoredColumn",
    "columns_of_file",
    "explain_columns",
    "select_columns",
    "stored_columns",
]
