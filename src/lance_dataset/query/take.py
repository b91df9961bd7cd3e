"""Random access: live row numbers or row addresses to rows, in the order asked."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import RowIndexError
from lance_dataset.query.fragment_reader import FragmentReader
from lance_dataset.query.join import join_arrays, take_values
from lance_dataset.query.prefetch import together
from lance_dataset.query.projection import OutputColumn, Projection
from lance_dataset.query.row_taker import known_taker
from lance_dataset.query.shapes import empty_batch, rows_only
from lance_dataset.query.table_reader import TableReader
from lance_dataset.schema import Schema
from lance_dataset.table.row_addresses import grouped, split_places
from lancecodec.take import integers

__all__ = ["row_ids", "row_numbers", "take_addresses", "take_fragment_rows", "take_row_ids", "take_rows"]


def row_numbers(indices: Sequence[int] | NDArray[np.integer] | pa.Array) -> NDArray[np.int64]:
    """Row numbers as an int64 array.

    Raises
    ------
    RowIndexError
        A negative number, or one past 2**63.
    TypeError
        Something that is no integer.
    """
    if type(indices) is list:
        plain = integers(indices)
        if plain is not None:
            return np.frombuffer(plain, np.int64)
    array = _integers(indices, "row number")
    if array.dtype.kind == "u" and len(array) and int(array.max()) > np.iinfo(np.int64).max:
        raise RowIndexError(f"row number {int(array.max())} is out of range")
    return np.ascontiguousarray(array, np.int64)


def row_ids(ids: Sequence[int] | NDArray[np.integer] | pa.Array) -> NDArray[np.uint64]:
    """Row ids or row addresses as a uint64 array.

    Raises
    ------
    RowIndexError
        A negative number, or one past 2**64.
    TypeError
        Something that is no integer.
    """
    return np.ascontiguousarray(_integers(ids, "row id"), np.uint64)


def _integers(values: Sequence[int] | NDArray[np.integer] | pa.Array, what: str) -> NDArray[np.integer]:
    """Numbers as a flat array of integers, none of them negative."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        if values.null_count:
            raise TypeError(f"a {what} is null")
        values = values.to_numpy(zero_copy_only=False) if isinstance(values, pa.Array) else values.to_numpy()
    array = np.asarray(values)
    if array.ndim == 1 and array.size == 0:
        return np.empty(0, np.int64)
    if array.ndim == 1 and array.dtype.kind in "Of" and all(isinstance(value, int) for value in values):
        if min(values) >= 0 and max(values) < 1 << 64:  # smaller and larger than 2**63: no type of Numpy's choice
            return np.array(values, np.uint64)
        raise RowIndexError(f"{what} {max(values, key=abs)} is out of range")
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise TypeError(f"{what}s must be a flat list of integers, not {array.dtype} of shape {array.shape}")
    lowest = array.min()
    if lowest < 0:
        raise RowIndexError(f"{what} {int(lowest)} is negative; {what}s count from 0")
    return array


def take_rows(reader: TableReader, rows: NDArray[np.int64], projection: Projection, schema: Schema) -> pa.RecordBatch:
    """Rows by their number among the live rows of the version.

    Parameters
    ----------
    rows
        Any order, repeats allowed; none of them negative.

    Raises
    ------
    RowIndexError
        A number is not below the number of rows.
    """
    if not projection.columns or not len(rows):
        _check_numbers(reader, rows)
        return rows_only(len(rows), projection.schema) if not projection.columns else empty_batch(projection.schema)

    def others(part: Projection) -> pa.RecordBatch:
        starts = reader.live_starts
        owners = np.searchsorted(starts, rows, side="right") - 1

        def piece(position: int, mine: NDArray[np.int64]) -> pa.RecordBatch:
            fragment = reader.fragments[position]
            return _take_columns(fragment, fragment.physical(rows[mine] - starts[position]), part, schema)

        return _by_fragment(reader, owners, piece, part)

    try:
        return reader.taker(projection).numbers(rows, projection, others)
    except IndexError as error:
        _check_numbers(reader, rows, error)
        raise


def _check_numbers(reader: TableReader, rows: NDArray[np.int64], error: IndexError | None = None) -> None:
    if len(rows) and int(rows.max()) >= reader.num_rows:
        raise RowIndexError(
            f"row number {int(rows.max())} is out of range: the dataset has {reader.num_rows} rows"
        ) from error


def take_row_ids(
    reader: TableReader,
    ids: NDArray[np.uint64],
    projection: Projection,
    schema: Schema,
    *,
    ignore_deletions: bool = False,
) -> pa.RecordBatch:
    """Rows by their id; ids of rows that are deleted or were never there give none.

    Parameters
    ----------
    ids
        Values of `_rowid`: stable row ids where the table has such, otherwise addresses. Any order, repeats allowed.
    ignore_deletions
        See `TableReader.addresses_of_ids`.

    Raises
    ------
    RowIndexError
        An address is outside the table.
    """
    addresses, found = reader.addresses_of_ids(ids, ignore_deletions=ignore_deletions)
    return take_addresses(reader, addresses[found], projection, schema)


def take_addresses(
    reader: TableReader, addresses: NDArray[np.uint64], projection: Projection, schema: Schema
) -> pa.RecordBatch:
    """Rows by their address, deleted ones included; RowIndexError for one outside the table.

    Parameters
    ----------
    addresses
        Any order, repeats allowed.
    """
    places = reader.places(addresses)
    if not projection.columns:
        return rows_only(len(addresses), projection.schema)
    if not len(addresses):
        return empty_batch(projection.schema)

    def others(part: Projection) -> pa.RecordBatch:
        owners, offsets = split_places(places)

        def piece(position: int, mine: NDArray[np.int64]) -> pa.RecordBatch:
            return _take_columns(reader.fragments[position], offsets[mine], part, schema)

        return _by_fragment(reader, owners, piece, part)

    return reader.taker(projection).places(places, projection, others)


def _by_fragment(
    reader: TableReader,
    owners: NDArray[np.integer],
    piece: Callable[[int, NDArray[np.int64]], pa.RecordBatch],
    projection: Projection,
) -> pa.RecordBatch:
    """Rows in the order asked, taken fragment by fragment; at the same time where their files have to be waited for."""
    groups = list(grouped(owners))
    # without base paths all files are stored alike
    telling = groups if reader.manifest.base_paths else groups[:1]
    waiting = len(groups) > 1 and any(reader.fragments[position].is_remote for position, _ in telling)
    pieces = together([partial(piece, owner, mine) for owner, mine in groups], waiting=waiting)
    if len(pieces) == 1:
        return pieces[0]
    if not pieces:
        return empty_batch(projection.schema)
    back = np.empty(len(owners), np.int64)
    back[np.concatenate([mine for _, mine in groups])] = np.arange(len(owners))
    return _gathered(pieces, back)


def take_fragment_rows(
    fragment: FragmentReader, rows: NDArray[np.int64], projection: Projection, schema: Schema
) -> pa.RecordBatch:
    """Rows by physical offset in a fragment, deleted ones included."""
    if not projection.columns or not len(rows):
        return _take_columns(fragment, rows, projection, schema)
    # a weak reference, as the fragment holds the taker: files are to be closed without a collector
    taker = known_taker(
        fragment.takers, projection, lambda: [weakref.proxy(fragment)], lambda: np.array([0, fragment.physical_rows])
    )
    rows = np.ascontiguousarray(rows, np.int64)
    return taker.places(rows, projection, lambda part: _take_columns(fragment, rows, part, schema))


def _take_columns(
    fragment: FragmentReader, rows: NDArray[np.int64], projection: Projection, schema: Schema
) -> pa.RecordBatch:
    """The same, column by column."""
    if not projection.columns:
        return rows_only(len(rows), projection.schema)
    rows = rows.view()  # an object of this call, by which columns know what they found out for each other
    tasks = [partial(_take_column, fragment, output, rows, schema) for output in projection.columns]
    return pa.RecordBatch.from_arrays(together(tasks, waiting=fragment.is_remote), schema=projection.schema)


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
