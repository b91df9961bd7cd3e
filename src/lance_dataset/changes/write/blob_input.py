"""Blob columns of version 1 in new data, which become columns of version 2 in files of 2.2 and later."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from lance_dataset.file.buffers import bitmap_at_zero
from lance_dataset.file.options import BLOB_V2, is_blob
from lance_dataset.types.schema import EXTENSION_NAME, Schema

__all__ = ["BLOB_KEY", "as_blobs_v2"]

#: Metadata of a field that marks a blob column of version 1.
BLOB_KEY = b"lance-encoding:blob"
_STORAGE = pa.struct([pa.field("data", pa.large_binary()), pa.field("uri", pa.string())])


def as_blobs_v2(
    schema: pa.Schema, batches: Iterator[pa.RecordBatch], version: str, existing: Schema | None
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Convert marked ``large_binary`` columns, at the top or inside structs, if the files are of 2.2 or later.

    Parameters
    ----------
    schema, batches
        The data.
    version
        File version of the new files.
    existing
        Schema of the table that the data is appended to, if any. Its columns of version 1 stay as they are.

    Returns
    -------
    schema, batches
        The same objects if nothing changes.
    """
    if version in ("0.1", "2.0", "2.1") or not any(map(_has_mark, schema)):
        return schema, batches
    if existing is not None and any(is_blob(node) for node in existing.walk()):
        return schema, batches
    changed = pa.schema([_field(field) for field in schema], metadata=schema.metadata)
    return changed, (_batch(batch, schema, changed) for batch in batches)


def _has_mark(field: pa.Field) -> bool:
    if _is_marked(field):
        return True
    return pa.types.is_struct(field.type) and any(map(_has_mark, field.type))


def _is_marked(field: pa.Field) -> bool:
    return pa.types.is_large_binary(field.type) and BLOB_KEY in (field.metadata or {})


def _field(field: pa.Field) -> pa.Field:
    if _is_marked(field):
        kept = {key: value for key, value in field.metadata.items() if key != BLOB_KEY}
        return pa.field(field.name, _STORAGE, field.nullable, {**kept, EXTENSION_NAME.encode(): BLOB_V2})
    if pa.types.is_struct(field.type):
        return field.with_type(pa.struct([_field(child) for child in field.type]))
    return field


def _batch(batch: pa.RecordBatch, given: pa.Schema, changed: pa.Schema) -> pa.RecordBatch:
    columns = [_array(batch.column(field.name), field, wanted) for field, wanted in zip(given, changed, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=changed)


def _array(array: pa.Array, given: pa.Field, wanted: pa.Field) -> pa.Array:
    if given.type == wanted.type:
        return array
    bits = array.buffers()[0]
    validity = None if bits is None else bitmap_at_zero(bits, array.offset, len(array))
    if _is_marked(given):
        children = [array, pa.nulls(len(array), pa.string())]
    else:
        children = [_array(array.field(i), given.type.field(i), child) for i, child in enumerate(wanted.type)]
    return pa.Array.from_buffers(wanted.type, len(array), [validity], array.null_count, 0, children)
