"""Record batches without rows, and rows without columns."""

from __future__ import annotations

import pyarrow as pa

from lance_dataset.file.buffers import concat_arrays

__all__ = ["empty_batch", "rows_only", "rows_only_table"]


def rows_only(length: int, schema: pa.Schema) -> pa.RecordBatch:
    """Make a batch of `length` rows without columns. Arrow builds it only from a struct array."""
    rows = pa.Array.from_buffers(pa.struct([]), length, [None])
    return pa.RecordBatch.from_struct_array(rows).replace_schema_metadata(schema.metadata)


def rows_only_table(length: int, schema: pa.Schema) -> pa.Table:
    """Make a table of `length` rows without columns."""
    return pa.table({"row": pa.nulls(length)}).replace_schema_metadata(schema.metadata).select([])


def empty_batch(schema: pa.Schema) -> pa.RecordBatch:
    """Make a batch without rows."""
    if not len(schema):
        return rows_only(0, schema)
    return pa.RecordBatch.from_arrays([concat_arrays([], field.type) for field in schema], schema=schema)
