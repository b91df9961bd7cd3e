"""Schemas of the log and of SSTables, and rows of an older schema as rows of a newer one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa

from lance_dataset.errors import SchemaError, UnsupportedError
from lance_dataset.file.options import is_blob_v2
from lance_dataset.memwal.keys import KeyColumns
from lance_dataset.types.schema import EXTENSION_NAME, Field, Schema

__all__ = ["FIELD_ID", "TOMBSTONE", "check_columns", "conformed", "log_schema", "one_batch", "sstable_schema"]

TOMBSTONE: Final = "_tombstone"
#: Key of the metadata of Arrow fields with the id of a field.
FIELD_ID: Final = b"lance:field_id"
_BLOB = "lance-encoding:blob"


def check_columns(schema: Schema) -> None:
    """Check that a MemWAL can keep the columns of a table.

    Raises
    ------
    UnsupportedError
        A column holds blobs or JSON, or belongs to an extension type.
    SchemaError
        A column has a reserved name.
    """
    for field in schema.fields:
        if field.name == TOMBSTONE:
            raise SchemaError(f"column {TOMBSTONE!r}: a table with a MemWAL cannot have a column of this name")
        for node in field.walk():
            if (
                is_blob_v2(node)
                or _BLOB in node.metadata
                or node.logical_type == "json"
                or EXTENSION_NAME in node.metadata
            ):
                raise UnsupportedError(
                    f"column {field.name!r} holds blobs, JSON or values of an extension type, which a MemWAL of this "
                    "release cannot keep; write to the table itself"
                )


def relaxed(schema: Schema, key: KeyColumns) -> list[Field]:
    """Return the columns of a table, nullable except for those of the key, as rows of deleted keys have no values."""
    return [field if field.name in key.names else replace(field, nullable=True) for field in schema.fields]


def sstable_schema(schema: Schema, key: KeyColumns, highest_id: int) -> Schema:
    """Return the schema of SSTables: the columns of the table, and whether the row stands for a deletion."""
    mark = Field(TOMBSTONE, highest_id + 1, "bool", nullable=False)
    return Schema((*relaxed(schema, key), mark), schema.metadata)


def log_schema(schema: Schema, key: KeyColumns) -> pa.Schema:
    """Return the schema of the batches of the log, whose fields name their ids."""
    columns = [_with_ids(field) for field in relaxed(schema, key)]
    mark = pa.field(TOMBSTONE, pa.bool_(), nullable=False)
    return pa.schema([*columns, mark], metadata=dict(schema.metadata) or None)


def _with_ids(field: Field) -> pa.Field:
    metadata = {**field.metadata, FIELD_ID.decode(): str(field.id).encode()}
    arrow = field.to_arrow()
    kind = arrow.type
    children = [_with_ids(child) for child in field.children]
    if field.logical_type == "struct":
        kind = pa.struct(children)
    elif field.logical_type == "map":
        entries = children[0].type
        kind = pa.map_(entries.field(0), entries.field(1))
    elif children and pa.types.is_large_list(kind):
        kind = pa.large_list(children[0])
    elif children and pa.types.is_fixed_size_list(kind):
        kind = pa.list_(children[0], kind.list_size)
    elif children:
        kind = pa.list_(children[0])
    return pa.field(field.name, kind, field.nullable, metadata=metadata)


def conformed(batch: pa.RecordBatch, names: Mapping[int, str], wanted: Sequence[Field], where: str) -> pa.RecordBatch:
    """Return rows of an older schema with columns of a newer one.

    Parameters
    ----------
    batch
        The rows.
    names
        Names of its columns by field id.
    wanted
        Columns of the result. Columns that the rows lack become null.
    where
        Origin of the rows, for error messages.

    Raises
    ------
    UnsupportedError
        A column was changed in a way that cannot be followed.
    """
    arrays = []
    for field in wanted:
        name = names.get(field.id)
        kind = field.storage_type
        if name is None:
            _check_replaced(field, names, wanted, where)
            arrays.append(pa.nulls(batch.num_rows, kind))
            continue
        column = batch.column(name)
        arrays.append(column if column.type.equals(kind) else _retyped(column, kind, field.name, where))
    fields = [field.to_arrow().with_nullable(True) for field in wanted]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _check_replaced(field: Field, names: Mapping[int, str], wanted: Sequence[Field], where: str) -> None:
    """Raise UnsupportedError if rows have a column of the same name, but of a field that the table lacks.

    A column whose type was changed is such a new field. Its values must not become null without a word.
    """
    older = next((number for number, name in names.items() if name == field.name), None)
    if older is not None and all(each.id != older for each in wanted):
        raise UnsupportedError(
            f"{where}: column {field.name!r} is another field now ({field.id}, before {older}), since its type was "
            "changed or it was dropped and added again; restore the version before, merge the shard, and change it "
            "again, or give up the values: rename the column, and merge then"
        )


def one_batch(table: pa.Table, where: str) -> pa.RecordBatch:
    """Return all rows of a table as one batch.

    Raises
    ------
    UnsupportedError
        A column has more text or bytes than an array holds.
    """
    batches = table.combine_chunks().to_batches()
    if len(batches) > 1:
        raise UnsupportedError(
            f"{where}: a column has more than 2 GiB of text or bytes; use smaller memtables, or columns of the types "
            "large_string and large_binary"
        )
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)


def _retyped(column: pa.Array, kind: pa.DataType, name: str, where: str) -> pa.Array:
    try:
        return column.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise UnsupportedError(
            f"{where}: column {name!r} was of type {column.type} and is {kind} now, which values of a MemWAL cannot "
            f"follow ({error}); merge the shard before such a change"
        ) from error
