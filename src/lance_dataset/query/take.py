"""Random access: live row numbers or row addresses to rows, in the order asked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import RowIndexError
from lance_dataset.query.fragment_reader import FragmentReader
from lance_dataset.query.join import join_arrays, take_values
from lance_dataset.query.projection import OutputColumn, Projection
from lance_dataset.query.shapes import empty_batch, rows_only
from lance_dataset.query.table_reader import TableReader
from lance_dataset.schema import Schema

__all__ = ["row_numbers", "take_fragment_rows", "take_rows"]


def row_numbers(indices: Sequence[int] | NDArray[np.integer] | pa.Array) -> NDArray[np.int64]:
    """Row numbers as an int64 array.

    Raises
    ------
    RowIndexError
        A negative number, or one past 2**63.
    TypeError
        Something that is no integer.
    """
    if isinstance(indices, pa.Array | pa.ChunkedArray):
        indices = indices.to_numpy(zero_copy_only=False) if isinstance(indices, pa.Array) else indices.to_numpy()
    array = np.asarray(indices)
    if array.ndim == 1 and array.size == 0:
        return np.empty(0, np.int64)
    if array.ndim == 1 and array.dtype.kind in "Of" and all(isinstance(index, int) for index in indices):
        raise RowIndexError(f"row number {max(indices, key=abs)} is out of range")
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise TypeError(f"row numbers must be a flat list of integers, not {array.dtype} of shape {array.shape}")
    if array.dtype.kind == "u" and int(array.max()) > np.iinfo(np.int64).max:
        raise RowIndexError(f"row number {int(array.max())} is out of range")
    rows = np.ascontiguousarray(array, np.int64)
    lowest = rows.min()
    if lowest < 0:
        raise RowIndexError(f"row number {int(lowest)} is negative; rows count from 0")
    return rows


def take_rows(reader: TableReader, rows: NDArray[np.int64], projection: Projection, schema: Schema) -> pa.RecordBatch:
    """Rows by their number among the live rows of the version.

    Parameters
    ----------
    rows
        Any order, repeats allowed.

    Raises
    ------
    RowIndexError
        A number is not below the number of rows.
    """
    starts = reader.live_starts
    if len(rows) and int(rows.max()) >= starts[-1]:
        raise RowIndexError(f"row number {int(rows.max())} is out of range: the dataset has {int(starts[-1])} rows")
    if not projection.columns:
        return rows_only(len(rows), projection.schema)
    if len(reader.fragments) == 1:
        fragment = reader.fragments[0]
        return take_fragment_rows(fragment, fragment.physical(rows), projection, schema)
    owners = np.searchsorted(starts, rows, side="right") - 1
    order = np.argsort(owners, kind="stable")
    pieces = []
    for position in np.unique(owners).tolist():
        fragment = reader.fragments[position]
        live = rows[owners == position] - starts[position]
        pieces.append(take_fragment_rows(fragment, fragment.physical(live), projection, schema))
    if len(pieces) == 1:
        return pieces[0]
    if not pieces:
        return empty_batch(projection.schema)
    back = np.empty(len(rows), np.int64)
    back[order] = np.arange(len(rows))
    return _gathered(pieces, back)


def take_fragment_rows(
    fragment: FragmentReader, rows: NDArray[np.int64], projection: Projection, schema: Schema
) -> pa.RecordBatch:
    """Rows by physical offset in a fragment, deleted ones included."""
    rows = rows.view()  # an object of this call, by which columns know what they found out for each other
    arrays = [_take_column(fragment, output, rows, schema) for output in projection.columns]
    return pa.RecordBatch.from_arrays(arrays, schema=projection.schema)


def _take_column(fragment: FragmentReader, output: OutputColumn, rows: NDArray[np.int64], schema: Schema) -> pa.Array:
    if output.field is not None:
        array = take_values(fragment.column(output.field), rows, output.field.name)
        for name in output.path:
            array = array.flatten()[array.type.get_field_index(name)]
        return array
    if output.system is not None:
        return fragment.system_column(output.system, rows)
    bound = output.expression
    assert bound is not None
    names = [name for name in bound.columns if name in schema.names]
    arrays = [take_values(fragment.column(schema.top_level(name)), rows, name) for name in names]
    system = [name for name in bound.columns if name not in schema.names]
    arrays += [fragment.system_column(name, rows) for name in system]
    if not arrays:
        return bound.evaluate(rows_only(len(rows), pa.schema([])))
    return bound.evaluate(pa.RecordBatch.from_arrays(arrays, names=[*names, *system]))


def _gathered(pieces: list[pa.RecordBatch], back: NDArray[np.int64]) -> pa.RecordBatch:
    schema, positions = pieces[0].schema, pa.array(back)
    arrays = [
        join_arrays([piece.column(i) for piece in pieces], field.type, field.name).take(positions)
        for i, field in enumerate(schema)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
