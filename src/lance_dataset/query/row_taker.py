"""Random access to a projection in one compiled call; what it leaves out comes column by column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError, UnsupportedError
from lance_dataset.file.take_shape import TakeShape, take_shape
from lance_dataset.query.fragment_reader import FragmentReader
from lance_dataset.query.pool import map_parallel
from lance_dataset.query.prefetch import Announcements, announce, announce_numbers
from lance_dataset.query.projection import OutputColumn, Projection
from lance_dataset.schema import Field
from lance_dataset.table.row_addresses import places_of, split_places
from lancecodec import CodecError
from lancecodec.take import ADDRESSES, ColumnTaker, FragmentTaker, RowTaker, TakenRows

__all__ = ["ProjectionTaker", "TakeColumns", "known_taker", "take_field"]

_Look = Callable[[NDArray[np.int64]], TakenRows]
#: Takes the columns of a projection for all rows of a call.
TakeColumns = Callable[[Projection], pa.RecordBatch]

_ADDRESS_SHAPE = TakeShape(8)
#: Of columns that are not compiled.
_NO_SHAPE = TakeShape(0)
#: Values from which on columns are taken in parallel.
_PARALLEL = 1 << 14
#: Rows from which on each column is an import of its own, so that it does not keep the memory of the others.
_MANY_ROWS = 1 << 12
_REMEMBERED = 16
#: Fewer rows are not announced, as the look whether they are in memory takes longer than taking them.
_ANNOUNCED_ROWS = 64


class ProjectionTaker:
    """Takes rows of a projection out of the fragments of a table.

    Parameters
    ----------
    fragments
        The fragments.
    starts
        Rows before each fragment, then the number of all.
    outputs
        The columns to take.
    """

    def __init__(
        self, fragments: Sequence[FragmentReader], starts: NDArray[np.int64], outputs: Sequence[OutputColumn]
    ) -> None:
        self._fragments = fragments
        self._starts = starts
        self._outputs = outputs
        self._fields = [output.field for output in outputs if output.field is not None]
        self._announcements = Announcements()
        self._shapes = [_shape(output) for output in outputs]
        opened = partial(_open_fragment, fragments, outputs, self._shapes)
        shapes = [shape or _NO_SHAPE for shape in self._shapes]
        # without a column of its own a take is not worth finding its rows first
        self._taker = (
            RowTaker(shapes, np.ascontiguousarray(starts, np.int64).data, opened) if any(self._shapes) else None
        )
        self._parts: dict[tuple[int, ...], Projection] = {}

    def numbers(self, rows: NDArray[np.int64], projection: Projection, others: TakeColumns) -> pa.RecordBatch:
        """Live rows by number, at least one.

        Parameters
        ----------
        rows
            Any order, repeats allowed.
        projection
            The projection of these columns.
        others
            Takes the columns that have to be taken another way: because of their type, of how a page of them is
            stored, or because of damage, which it tells in full.

        Raises
        ------
        IndexError
            A number outside the table.
        """
        look = None if self._taker is None else self._taker.numbers
        if len(rows) < _ANNOUNCED_ROWS:
            return self._take(look, rows, projection, others)
        known = partial(announce_numbers, self._fragments, self._starts, self._fields)
        return self._take_many(known, look, rows, projection, others)

    def places(self, rows: NDArray[np.int64], projection: Projection, others: TakeColumns) -> pa.RecordBatch:
        """Physical rows, at least one, given as `row_addresses.places_of` makes them; otherwise as `numbers`."""
        look = None if self._taker is None else self._taker.places
        if len(rows) < _ANNOUNCED_ROWS:
            return self._take(look, rows, projection, others)
        return self._take_many(self._announce_places, look, rows, projection, others)

    def _take_many(
        self,
        announce_rows: Callable[[NDArray[np.int64]], None],
        look: _Look | None,
        rows: NDArray[np.int64],
        projection: Projection,
        others: TakeColumns,
    ) -> pa.RecordBatch:
        """Take rows after announcing them."""
        with self._announcements.taking(partial(announce_rows, rows)):
            return self._take(look, rows, projection, others)

    def _take(
        self, look: _Look | None, rows: NDArray[np.int64], projection: Projection, others: TakeColumns
    ) -> pa.RecordBatch:
        if look is None:
            return others(projection)
        try:
            taken = look(rows)
        except (CodecError, CorruptFileError, UnsupportedError):
            return others(projection)
        return self._batch(taken, projection, others)

    def _announce_places(self, rows: NDArray[np.int64]) -> None:
        positions, offsets = split_places(np.sort(rows))
        cuts = [0, *(np.flatnonzero(np.diff(positions)) + 1).tolist(), len(rows)]
        for low, high in pairwise(cuts):
            fragment = self._fragments[int(positions[low])]
            mine = offsets[low:high]
            if high - low >= _ANNOUNCED_ROWS and mine[-1] < fragment.physical_rows:
                announce(fragment, self._fields, mine)

    def _batch(self, taken: TakenRows, projection: Projection, others: TakeColumns) -> pa.RecordBatch:
        schema, length = projection.schema, taken.num_rows
        if length * len(self._shapes) < _PARALLEL:
            taken.decode_all()
        else:
            widths = [4.0 if shape is None or shape.width < 0 else 1.0 + shape.width / 64 for shape in self._shapes]
            map_parallel(taken.decode, range(len(widths)), parallel=True, costs=widths)
        missing = taken.missing
        if not missing and length < _MANY_ROWS:
            return pa.RecordBatch._import_from_c(taken.batch(), schema)
        if len(missing) == len(self._shapes):
            return others(projection)
        rest = others(self._part(tuple(missing))) if missing else None
        arrays, number = [], 0
        for column, field in enumerate(schema):
            if rest is not None and number < len(missing) and missing[number] == column:
                arrays.append(rest.column(number))
                number += 1
            else:
                arrays.append(pa.Array._import_from_c(taken.column(column), field.type))
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _part(self, columns: tuple[int, ...]) -> Projection:
        """Some of the columns."""
        known = self._parts.get(columns)
        if known is None:
            outputs = tuple(self._outputs[column] for column in columns)
            known = Projection(outputs, pa.schema([output.arrow for output in outputs]))
            self._parts[columns] = known
        return known


def _shape(output: OutputColumn) -> TakeShape | None:
    if output.system in ("_rowaddr", "_rowid"):
        return _ADDRESS_SHAPE
    field = output.field
    if field is None or output.path or output.arrow.type != field.storage_type:
        return None
    return take_shape(field.storage_type)


def _open_fragment(
    fragments: Sequence[FragmentReader],
    outputs: Sequence[OutputColumn],
    shapes: Sequence[TakeShape | None],
    position: int,
) -> FragmentTaker:
    fragment = fragments[position]
    columns = [_column(fragment, output, shape) for output, shape in zip(outputs, shapes, strict=True)]
    deleted = None if fragment.fragment.deletion_file is None else fragment.deletions.data
    return FragmentTaker(columns, fragment.physical_rows, fragment.fragment.id, deleted)


def _column(fragment: FragmentReader, output: OutputColumn, shape: TakeShape | None) -> ColumnTaker | str | None:
    if shape is None:
        return None
    if output.field is not None:
        return fragment.column(output.field).taker()
    return ADDRESSES if output.system == "_rowaddr" or fragment.fragment.row_ids is None else None


def take_field(parts: Sequence[tuple[FragmentReader, NDArray[np.int64]]], field: Field) -> pa.Array | None:
    """The values of a stored column in several fragments, taken in one compiled call.

    Parameters
    ----------
    parts
        Fragments and physical rows of each, at least one row in all.
    field
        The column.

    Returns
    -------
    pyarrow.Array or None
        The values in the order of the parts; None where they have to be taken another way, because of their type, of
        how a page of them is stored, or because of damage, which that way tells in full.
    """
    shape = take_shape(field.storage_type)
    if shape is None:
        return None

    def opened(position: int) -> FragmentTaker:
        fragment = parts[position][0]
        return FragmentTaker([fragment.column(field).taker()], fragment.physical_rows, fragment.fragment.id)

    starts = np.cumsum([0, *(fragment.physical_rows for fragment, _ in parts)], dtype=np.int64)
    places = np.concatenate([places_of(number, rows) for number, (_, rows) in enumerate(parts)])
    try:
        taken = RowTaker([shape], starts.data, opened).places(places)
        taken.decode(0)
    except (CodecError, CorruptFileError, UnsupportedError):
        return None
    return None if taken.missing else pa.Array._import_from_c(taken.column(0), field.storage_type)


def known_taker(
    known: dict[tuple[int, ...], ProjectionTaker],
    projection: Projection,
    fragments: Callable[[], Sequence[FragmentReader]],
    starts: Callable[[], NDArray[np.int64]],
) -> ProjectionTaker:
    """The taker of a projection, made if it is not among those known.

    Parameters
    ----------
    known
        Takers by the identities of the columns, which they keep alive.
    projection
        Its columns are taken.
    fragments, starts
        See `ProjectionTaker`.
    """
    key = tuple(map(id, projection.columns))
    found = known.get(key)
    if found is None:
        if len(known) >= _REMEMBERED:
            known.clear()
        found = known[key] = ProjectionTaker(fragments(), starts(), projection.columns)
    return found
