"""Random access to rows by number, id or address, in the order given."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import RowIndexError, WrongTypeError
from lance_dataset.limits import ResultLimit, ResultMeter
from lance_dataset.read.concatenate import join_arrays, take_values
from lance_dataset.read.empty_batches import empty_batch, rows_only
from lance_dataset.read.fragment_reader import FragmentReader
from lance_dataset.read.holding import Holding
from lance_dataset.read.open_together import any_remote
from lance_dataset.read.projection import OutputColumn, Projection
from lance_dataset.read.result_sizes import check_planned, fits, has_fixed_width
from lance_dataset.read.row_taker import known_taker
from lance_dataset.read.table_reader import TableReader
from lance_dataset.read.wide_takes import take_wide
from lance_dataset.table.row_addresses import grouped, split_places
from lance_dataset.threads.waiting import together
from lance_dataset.types.schema import Schema
from lancecodec.take import integers

__all__ = [
    "RowNumbers",
    "row_ids",
    "row_numbers",
    "take_addresses",
    "take_fragment_numbers",
    "take_fragment_rows",
    "take_row_ids",
    "take_rows",
]

#: Numbers of rows, row ids or row addresses that users give.
RowNumbers: TypeAlias = "Sequence[int] | NDArray[np.integer] | pa.Array"


def row_numbers(indices: RowNumbers) -> NDArray[np.int64]:
    """Convert row numbers to an int64 array.

    Raises
    ------
    RowIndexError
        A row number is negative, or not below 2**63.
    TypeError
        A row number is not an integer.
    """
    if type(indices) is list:
        plain = integers(indices)
        if plain is not None:
            return np.frombuffer(plain, np.int64)
    array = _integers(indices, "row number")
    if array.dtype.kind == "u" and len(array) and int(array.max()) > np.iinfo(np.int64).max:
        raise RowIndexError(f"row number {int(array.max())} is out of range")
    return np.ascontiguousarray(array, np.int64)


def row_ids(ids: RowNumbers) -> NDArray[np.uint64]:
    """Convert row ids or row addresses to a uint64 array.

    Raises
    ------
    RowIndexError
        An id is negative, or not below 2**64.
    TypeError
        An id is not an integer.
    """
    return np.ascontiguousarray(_integers(ids, "row id"), np.uint64)


def _integers(values: RowNumbers, what: str) -> NDArray[np.integer]:
    """Convert numbers to a flat array of non-negative integers."""
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
        raise WrongTypeError(f"{what}s must be a flat list of integers, not {array.dtype} of shape {array.shape}")
    lowest = array.min()
    if lowest < 0:
        raise RowIndexError(f"{what} {int(lowest)} is negative; {what}s count from 0")
    return array


def take_rows(reader: TableReader, rows: NDArray[np.int64], projection: Projection, schema: Schema) -> pa.RecordBatch:
    """Take rows by number among the live rows of the version.

    Parameters
    ----------
    rows
        Row numbers in any order, not negative; repeats are allowed.

    Raises
    ------
    RowIndexError
        A number is not below the number of rows.
    """
    if not projection.columns or not len(rows):
        _check_numbers(reader, rows)
        return rows_only(len(rows), projection.schema) if not projection.columns else empty_batch(projection.schema)
    limit = reader.limit

    def others(part: Projection, meter: ResultMeter | None = None) -> pa.RecordBatch:
        starts = reader.live_starts
        owners = np.searchsorted(starts, rows, side="right") - 1

        def piece(position: int, mine: NDArray[np.int64]) -> pa.RecordBatch:
            fragment = reader.fragments[position]
            return _take_columns(fragment, fragment.physical(rows[mine] - starts[position]), part, schema, meter)

        return _by_fragment(reader, owners, piece, part)

    if limit.max_bytes is not None:
        _check_numbers(reader, rows)
        return _limited(
            limit, len(rows), projection, others, lambda: reader.taker(projection).numbers(rows, projection, others)
        )
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
    """Take rows by id. Ids of rows that are deleted or never existed are left out.

    Parameters
    ----------
    ids
        Values of `_rowid` in any order: stable row ids if the table has them, otherwise addresses. Repeats are allowed.
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
    """Take rows by address, deleted ones included. Raise RowIndexError if an address is outside the table.

    Parameters
    ----------
    addresses
        Row addresses in any order; repeats are allowed.
    """
    places = reader.places(addresses)
    if not projection.columns:
        return rows_only(len(addresses), projection.schema)
    if not len(addresses):
        return empty_batch(projection.schema)
    limit = reader.limit

    def others(part: Projection, meter: ResultMeter | None = None) -> pa.RecordBatch:
        owners, offsets = split_places(places)

        def piece(position: int, mine: NDArray[np.int64]) -> pa.RecordBatch:
            return _take_columns(reader.fragments[position], offsets[mine], part, schema, meter)

        return _by_fragment(reader, owners, piece, part)

    if limit.max_bytes is not None:
        return _limited(
            limit, len(places), projection, others, lambda: reader.taker(projection).places(places, projection, others)
        )
    return reader.taker(projection).places(places, projection, others)


def _limited(
    limit: ResultLimit,
    num_rows: int,
    projection: Projection,
    columns: Callable[[Projection, ResultMeter], pa.RecordBatch],
    compiled: Callable[[], pa.RecordBatch],
) -> pa.RecordBatch:
    """Take rows of a limited result. Compiled code is used if it allocates no more than planned.

    Parameters
    ----------
    limit
        Limit of the result.
    num_rows
        Number of rows.
    projection
        Columns to take.
    columns
        Function that takes columns one by one, and knows the size of each before it is allocated.
    compiled
        Function that takes the rows by compiled code.
    """
    check_planned(limit, num_rows, projection.schema)
    fixed = has_fixed_width(projection.schema)
    return fits(limit, compiled if fixed else partial(columns, projection, limit.meter("the result of the take")))


def _by_fragment(
    reader: TableReader,
    owners: NDArray[np.integer],
    piece: Callable[[int, NDArray[np.int64]], pa.RecordBatch],
    projection: Projection,
) -> pa.RecordBatch:
    """Take rows in the order given, fragment by fragment, or in parallel if files are on other machines."""
    groups = list(grouped(owners))
    # without base paths, all files lie in the same store
    telling = groups if reader.manifest.base_paths else groups[:1]
    waiting = len(groups) > 1 and any_remote([reader.fragments[position] for position, _ in telling])
    with Holding() as held:
        if waiting:
            fields = [output.field for output in projection.columns if output.field is not None]
            fragments = [reader.fragments[position] for position, _ in groups]
            # parts of open files may be in memory already
            held.fetch_small([each for each in fragments if each.unopened(fields)], fields)
        pieces = together([partial(piece, owner, mine) for owner, mine in groups], waiting=waiting)
    if len(pieces) == 1:
        return pieces[0]
    if not pieces:
        return empty_batch(projection.schema)
    back = np.empty(len(owners), np.int64)
    back[np.concatenate([mine for _, mine in groups])] = np.arange(len(owners))
    return _gathered(pieces, back)


def take_fragment_numbers(
    fragment: FragmentReader, numbers: Sequence[int] | pa.Array, projection: Projection, schema: Schema
) -> pa.Table:
    """Take rows by number among the live rows of a fragment, in the form that users see.

    Raises
    ------
    RowIndexError
        A number is out of range.
    """
    rows = row_numbers(numbers)
    if len(rows) and int(rows.max()) >= fragment.num_rows:
        raise RowIndexError(
            f"row number {int(rows.max())} is out of range: fragment {fragment.fragment.id} has "
            f"{fragment.num_rows} rows"
        )
    return projection.for_user(take_fragment_rows(fragment, fragment.physical(rows), projection, schema))


def take_fragment_rows(
    fragment: FragmentReader, rows: NDArray[np.int64], projection: Projection, schema: Schema
) -> pa.RecordBatch:
    """Take rows by physical offset in a fragment, deleted ones included."""
    if not projection.columns or not len(rows):
        return _take_columns(fragment, rows, projection, schema)
    limit = fragment.limit
    # a weak reference, since the fragment holds the taker: files must be closed without the garbage collector
    taker = known_taker(
        fragment.takers, projection, lambda: [weakref.proxy(fragment)], lambda: np.array([0, fragment.physical_rows])
    )
    rows = np.ascontiguousarray(rows, np.int64)

    def others(part: Projection, meter: ResultMeter | None = None) -> pa.RecordBatch:
        return _take_columns(fragment, rows, part, schema, meter)

    if limit.max_bytes is not None:
        return _limited(limit, len(rows), projection, others, lambda: taker.places(rows, projection, others))
    return taker.places(rows, projection, others)


def _take_columns(
    fragment: FragmentReader,
    rows: NDArray[np.int64],
    projection: Projection,
    schema: Schema,
    meter: ResultMeter | None = None,
) -> pa.RecordBatch:
    """Take rows by physical offset in a fragment, column by column. A limited result has a meter."""
    if not projection.columns:
        return rows_only(len(rows), projection.schema)
    rows = rows.view()  # an object that identifies this call, so that columns can share what they computed
    wide = take_wide(fragment, projection.columns, rows) if meter is None else {}
    rest = [number for number in range(len(projection.columns)) if number not in wide]
    tasks = [partial(_take_column, fragment, projection.columns[number], rows, schema) for number in rest]
    if meter is not None:
        tasks = [partial(_metered, task, meter) for task in tasks]
    wide.update(zip(rest, together(tasks, waiting=fragment.is_remote), strict=True))
    arrays = [wide[number] for number in range(len(projection.columns))]
    return pa.RecordBatch.from_arrays(arrays, schema=projection.schema)


def _metered(task: Callable[[], pa.Array], meter: ResultMeter) -> pa.Array:
    array = task()
    meter.add(array.nbytes)
    return array


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
