"""Columns of one fragment that get new values by key, without committing them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.changes.column_rewrites import ColumnRewrite, rewrite_columns
from lance_dataset.changes.fragment_rows import batch_rows, live_batches
from lance_dataset.changes.merge.key_index import LastRows
from lance_dataset.changes.merge.source import Source
from lance_dataset.errors import FieldNotFoundError, InvalidInputError, SchemaError, nearest_name_hint
from lance_dataset.file.storage import storage_batch
from lance_dataset.input import as_batches
from lance_dataset.query.fragment_reader import SYSTEM_COLUMNS, FragmentReader
from lance_dataset.query.projection import project
from lance_dataset.query.shapes import empty_batch
from lance_dataset.schema import Schema
from lance_dataset.table.flags import check_writable

if TYPE_CHECKING:
    from lance_dataset.dataset import LanceDataset

__all__ = ["update_columns"]

#: System columns that tell rows apart.
_ROW_KEYS = ("_rowid", "_rowaddr")


def update_columns(
    dataset: LanceDataset, fragment: FragmentReader, data: Any, left_on: str, right_on: str | None, schema: Any
) -> ColumnRewrite:
    """Write columns of a fragment anew with the values of the rows of some data that have the same key.

    Parameters
    ----------
    dataset, fragment
        The fragment.
    data, schema
        New values: a key, and columns that the dataset has.
    left_on, right_on
        Key column of the dataset (or ``_rowid``, ``_rowaddr``), and that of the data, by default of the same name.

    Raises
    ------
    FieldNotFoundError
        A column that the dataset, or the data, does not have.
    InvalidInputError
        No data, no column besides the key, or keys of a type that the key column does not have.
    SchemaError
        Values of another type.
    """
    check_writable(dataset._manifest.writer_flags, dataset._manifest.path)
    given, batches = as_batches(data, schema)
    right_on = left_on if right_on is None else right_on
    key = _key_field(dataset, left_on)
    columns = _columns(dataset._manifest.schema, given, right_on)
    storage_batch(empty_batch(given).select(columns.names), columns, fill_missing=False)  # refuses other types
    # values of all rows in the types of the dataset; which may not be null shows in those that are used
    kept = Schema(tuple(replace(field, nullable=True) for field in columns.fields), columns.metadata)
    arrow = pa.schema([given.field(right_on), *kept.storage_arrow])

    def stored(batch: pa.RecordBatch) -> pa.RecordBatch:
        values = storage_batch(batch.select(columns.names), kept, fill_missing=False)
        return pa.RecordBatch.from_arrays([batch.column(right_on), *values.columns], schema=arrow)

    with Source.collect(map(stored, batches), arrow) as source:
        if source.num_rows == 0:
            raise InvalidInputError("update_columns: there are no data")
        keys = _keys(source.column(right_on), key)
        offsets, rows = _matches(dataset, fragment, left_on, LastRows(keys))

        def new_values(first: int, stop: int) -> pa.RecordBatch:
            return source.take(rows[first:stop], columns.names)

        return rewrite_columns(dataset, fragment, columns, offsets, new_values)


def _key_field(dataset: LanceDataset, name: str) -> pa.Field:
    """The key column of the dataset."""
    if name in _ROW_KEYS:
        return SYSTEM_COLUMNS[name]
    known = dataset._manifest.schema
    if name not in known.names:
        hint = nearest_name_hint(str(name), [*known.names, *_ROW_KEYS])
        raise FieldNotFoundError(f"update_columns: the key column {name!r} does not exist in the dataset{hint}")
    return known.top_level(name).to_arrow()


def _columns(known: Schema, given: pa.Schema, key: str) -> Schema:
    """The columns of the dataset that get new values, in the order of the data."""
    if key not in given.names:
        hint = nearest_name_hint(str(key), given.names)
        raise FieldNotFoundError(f"update_columns: the key column {key!r} does not exist in the data{hint}")
    if given.names.count(key) > 1:
        raise SchemaError(f"update_columns: the data has the key column {key!r} twice")
    names = [name for name in given.names if name != key]
    for name in names:
        if name not in known.names:
            hint = nearest_name_hint(name, known.names)
            raise FieldNotFoundError(f"update_columns: the data has a column {name!r}, the dataset has none{hint}")
        if names.count(name) > 1:
            raise SchemaError(f"update_columns: the data has the column {name!r} twice")
    if not names:
        raise InvalidInputError(f"update_columns: the data has no column besides the key {key!r}")
    return Schema(tuple(known.top_level(name) for name in names), known.metadata)


def _keys(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    """The keys of the data in the type of those of the dataset."""
    if column.type == field.type:
        return column
    try:
        return column.cast(field.type)
    except pa.ArrowException as error:
        raise InvalidInputError(
            f"update_columns: keys of type {column.type} do not go with {field.name!r}, a {field.type}: {error}"
        ) from error


def _matches(
    dataset: LanceDataset, fragment: FragmentReader, key: str, last_rows: LastRows
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Physical offsets of the live rows with keys of the data, ascending, and the rows of the data for them."""
    projection = project(dataset._scanned_schema, [key])
    read = Schema(tuple(column.field for column in projection.columns if column.field is not None))
    offsets: list[NDArray[np.int64]] = []
    rows: list[NDArray[np.int64]] = []
    done = 0
    for batch in live_batches(dataset, fragment, projection, batch_rows(fragment, read)):
        matching = last_rows.find(batch.column(0))
        found = np.flatnonzero(matching >= 0)
        offsets.append(fragment.physical(done + found))
        rows.append(matching[found])
        done += batch.num_rows
    return _joined(offsets), _joined(rows)


def _joined(parts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate([np.empty(0, np.int64), *parts])
