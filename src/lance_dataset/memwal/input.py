"""Rows that users put or delete, as rows of memtables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import pyarrow as pa

from lance_dataset.changes.write.lossless import fit_batches
from lance_dataset.errors import InvalidInputError, SchemaError
from lance_dataset.file.storage import storage_batch
from lance_dataset.memwal.keys import KeyColumns
from lance_dataset.memwal.writing import WriterCore
from lance_dataset.types.schema import Schema

__all__ = ["deletions", "rows_to_put"]

#: Marks of many rows that are kept and deleted, of which puts take slices.
_MARKS = {deleted: pa.repeat(pa.scalar(deleted), 1 << 14) for deleted in (False, True)}


def rows_to_put(core: WriterCore, given: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield rows with the columns of the table and without the mark of deletions.

    Raises
    ------
    SchemaError
        The data has other columns or types than the table, or nulls where none may be.
    """
    table = core.base.schema
    _, fitted = fit_batches(given, batches, table)
    for batch in _checked(given, fitted, table):
        if batch.num_rows:
            _check_keys(batch, core.key)
            yield _marked(batch, False, core.row_schema)


def _checked(given: pa.Schema, batches: Iterable[pa.RecordBatch], table: Schema) -> Iterator[pa.RecordBatch]:
    empty = True
    try:
        for batch in batches:
            empty = False
            yield storage_batch(batch, table, fill_missing=False)
        if empty:
            storage_batch(pa.RecordBatch.from_pylist([], schema=given), table, fill_missing=False)
    except SchemaError as error:
        raise SchemaError(f"the data does not match the base table schema: {error}") from error


def deletions(core: WriterCore, given: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield rows that stand for the deletion of keys.

    Raises
    ------
    InvalidInputError
        The table has no primary key.
    SchemaError
        A column of the key is missing, of another type, or has nulls.
    """
    if not core.key:
        raise InvalidInputError("the table has no primary key, so rows cannot be deleted by key")
    keys = _key_schema(core.base.schema, core.key)
    missing = [name for name in core.key.names if name not in given.names]
    if missing:
        raise SchemaError(f"the keys to delete lack the columns {missing} of the primary key")
    slim = pa.schema([given.field(name) for name in core.key.names])
    picked = (batch.select(list(core.key.names)) for batch in batches)
    _, fitted = fit_batches(slim, picked, keys)
    for batch in fitted:
        rows = storage_batch(batch, keys)
        if not rows.num_rows:
            continue
        _check_keys(rows, core.key)
        columns = [
            rows.column(field.name) if field.name in core.key.names else pa.nulls(rows.num_rows, field.type)
            for field in core.row_schema
        ][:-1]
        whole = pa.RecordBatch.from_arrays(columns, schema=pa.schema(list(core.row_schema)[:-1]))
        yield _marked(whole, True, core.row_schema)


def _key_schema(schema: Schema, key: KeyColumns) -> Schema:
    """Return the columns of the key."""
    return replace(schema, fields=tuple(schema.top_level(name) for name in key.names))


def _check_keys(batch: pa.RecordBatch, key: KeyColumns) -> None:
    for name in key.names:
        nulls = batch.column(name).null_count
        if nulls:
            raise SchemaError(f"column {name!r} is part of the primary key, but {nulls} rows have no value in it")


def _marked(batch: pa.RecordBatch, deleted: bool, schema: pa.Schema) -> pa.RecordBatch:
    known = _MARKS[deleted]
    rows = batch.num_rows
    marks = known.slice(0, rows) if rows <= len(known) else pa.repeat(pa.scalar(deleted), rows)
    return pa.RecordBatch.from_arrays([*batch.columns, marks], schema=schema)
