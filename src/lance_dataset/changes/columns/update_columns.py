"""New values for existing columns of one fragment, by key and without a commit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.changes.fragments.column_rewrites import ColumnRewrite, rewrite_columns
from lance_dataset.changes.fragments.fragment_rows import batch_rows, live_batches
from lance_dataset.changes.keys.key_index import LastRows
from lance_dataset.changes.keys.source import Source
from lance_dataset.changes.write.blob_files import with_checked_references
from lance_dataset.changes.write.input import ReaderLike, as_batches
from lance_dataset.changes.write.lossless import fit_batches
from lance_dataset.errors import FieldNotFoundError, InvalidInputError, SchemaError, nearest_name_hint
from lance_dataset.file.storage import storage_batch
from lance_dataset.read.empty_batches import empty_batch
from lance_dataset.read.fragment_reader import SYSTEM_COLUMNS, FragmentReader
from lance_dataset.read.projection import project
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.table.flags import check_writable
from lance_dataset.types.schema import Schema

__all__ = ["update_columns"]

#: System columns that identify rows.
_ROW_KEYS = ("_rowid", "_rowaddr")


def update_columns(
    snapshot: Snapshot,
    fragment: FragmentReader,
    data: ReaderLike,
    left_on: str,
    right_on: str | None,
    schema: pa.Schema | None,
) -> ColumnRewrite:
    """Rewrite columns of a fragment with the values of data rows that have the same key.

    Parameters
    ----------
    snapshot, fragment
        Version of the table, and the fragment.
    data, schema
        New values: a key column, and columns that the table has.
    left_on, right_on
        Key column of the table (or ``_rowid``, ``_rowaddr``), and key column of the data, by default of the same name.

    Raises
    ------
    FieldNotFoundError
        The table or the data lacks a column.
    InvalidInputError
        There is no data, it has no column besides the key, or its keys cannot be cast to the type of the key column.
    SchemaError
        The values have another type than the column.
    """
    check_writable(snapshot.manifest.writer_flags, snapshot.manifest.path)
    given, batches = as_batches(data, schema)
    batches = with_checked_references(given, batches, snapshot.reader.locator)
    right_on = left_on if right_on is None else right_on
    given, batches = fit_batches(given, batches, snapshot.manifest.schema, without=right_on)
    key = _key_field(snapshot, left_on)
    columns = _columns(snapshot.manifest.schema, given, right_on)
    storage_batch(empty_batch(given).select(columns.names), columns, fill_missing=False)  # refuses other types
    # Values of all rows, in the types of the table. Nullability is checked later, for the values that are used.
    kept = Schema(tuple(replace(field, nullable=True) for field in columns.fields), columns.metadata)
    arrow = pa.schema([given.field(right_on), *kept.storage_arrow])

    def stored(batch: pa.RecordBatch) -> pa.RecordBatch:
        values = storage_batch(batch.select(columns.names), kept, fill_missing=False)
        return pa.RecordBatch.from_arrays([batch.column(right_on), *values.columns], schema=arrow)

    with Source.collect(map(stored, batches), arrow) as source:
        if source.num_rows == 0:
            raise InvalidInputError("update_columns: the data has no rows")
        keys = _keys(source.column(right_on), key)
        offsets, rows = _matches(snapshot, fragment, left_on, LastRows(keys))

        def new_values(first: int, stop: int) -> pa.RecordBatch:
            return source.take(rows[first:stop], columns.names)

        return rewrite_columns(snapshot, fragment, columns, offsets, new_values)


def _key_field(snapshot: Snapshot, name: str) -> pa.Field:
    """Return the Arrow field of the key column of the snapshot."""
    if name in _ROW_KEYS:
        return SYSTEM_COLUMNS[name]
    known = snapshot.manifest.schema
    if name not in known.names:
        hint = nearest_name_hint(str(name), [*known.names, *_ROW_KEYS])
        raise FieldNotFoundError(f"update_columns: the key column {name!r} does not exist in the dataset{hint}")
    return known.top_level(name).to_arrow()


def _columns(known: Schema, given: pa.Schema, key: str) -> Schema:
    """Return the schema of the columns that get new values, in the order of the data."""
    if key not in given.names:
        hint = nearest_name_hint(str(key), given.names)
        raise FieldNotFoundError(f"update_columns: the key column {key!r} does not exist in the data{hint}")
    if given.names.count(key) > 1:
        raise SchemaError(f"update_columns: the data has the key column {key!r} twice")
    names = [name for name in given.names if name != key]
    for name in names:
        if name not in known.names:
            hint = nearest_name_hint(name, known.names)
            raise FieldNotFoundError(
                f"update_columns: the data has a column {name!r} that does not exist in the dataset{hint}"
            )
        if names.count(name) > 1:
            raise SchemaError(f"update_columns: the data has the column {name!r} twice")
    if not names:
        raise InvalidInputError(f"update_columns: the data has no column besides the key {key!r}")
    return Schema(tuple(known.top_level(name) for name in names), known.metadata)


def _keys(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    """Cast the keys of the data to the type of the key column of the table."""
    if column.type == field.type:
        return column
    try:
        return column.cast(field.type)
    except pa.ArrowException as error:
        raise InvalidInputError(
            f"update_columns: keys of type {column.type} cannot be cast to {field.type}, the type of {field.name!r}: "
            f"{error}"
        ) from error


def _matches(
    snapshot: Snapshot, fragment: FragmentReader, key: str, last_rows: LastRows
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the ascending physical offsets of live rows with a key of the data, and the data rows for them."""
    projection = project(snapshot.scanned_schema, [key])
    read = Schema(tuple(column.field for column in projection.columns if column.field is not None))
    offsets: list[NDArray[np.int64]] = []
    rows: list[NDArray[np.int64]] = []
    done = 0
    for batch in live_batches(snapshot, fragment, projection, batch_rows(fragment, read)):
        matching = last_rows.find(batch.column(0))
        found = np.flatnonzero(matching >= 0)
        offsets.append(fragment.physical(done + found))
        rows.append(matching[found])
        done += batch.num_rows
    return _joined(offsets), _joined(rows)


def _joined(parts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate([np.empty(0, np.int64), *parts])
