"""Which rows of a window a scan keeps, and their values in stored and computed columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_dataset.file.column import ColumnReader
from lance_dataset.query.expr import BoundExpression
from lance_dataset.query.fragment_reader import SYSTEM_COLUMNS, FragmentReader
from lance_dataset.query.join import join_arrays, read_range, take_values
from lance_dataset.query.projection import OutputColumn
from lance_dataset.query.prune import RowRanges
from lance_dataset.query.request import ScanRequest
from lance_dataset.query.shapes import rows_only
from lance_dataset.schema import Field

__all__ = ["Selection", "computed_values", "select", "stored_values"]

#: Below this share of selected rows the other columns are fetched row by row.
_SPARSE = 0.25
#: Up to so many ranges are always read one by one.
_FEW_RANGES = 8


@dataclass(frozen=True)
class Selection:
    """Rows of a fragment: some of those in a few ranges.

    Attributes
    ----------
    ranges
        Physical rows ``[start, stop)``, ascending.
    places
        int64, ascending: which of the rows of all ranges together; None for all.
    """

    ranges: tuple[tuple[int, int], ...]
    places: NDArray[np.int64] | None = None

    @cached_property
    def width(self) -> int:
        """Rows of all ranges."""
        return sum(stop - start for start, stop in self.ranges)

    @property
    def is_scattered(self) -> bool:
        """Whether the ranges are many and small, as those of rows that a filter names."""
        return len(self.ranges) > _FEW_RANGES and self.width < _SPARSE * (self.ranges[-1][1] - self.ranges[0][0])

    @property
    def num_rows(self) -> int:
        """Rows of the selection."""
        return self.width if self.places is None else len(self.places)

    @cached_property
    def candidates(self) -> NDArray[np.int64]:
        """Physical rows of all ranges."""
        if not self.ranges:
            return np.empty(0, np.int64)
        return np.concatenate([np.arange(start, stop) for start, stop in self.ranges])

    @cached_property
    def rows(self) -> NDArray[np.int64]:
        """Physical rows of the selection."""
        if self.places is None:
            return self.candidates
        return self.places + self.ranges[0][0] if len(self.ranges) == 1 else self.candidates[self.places]

    @staticmethod
    def live(fragment: FragmentReader, request: ScanRequest, ranges: tuple[tuple[int, int], ...]) -> Selection:
        """The rows in some ranges that are not deleted, or all of them where a request wants the deleted ones too."""
        whole = Selection(ranges)
        if request.include_deleted or not ranges:
            return whole
        first = ranges[0][0]
        rows = fragment.live_rows(first, ranges[-1][1])
        if rows is None:
            return whole
        if len(ranges) == 1:
            return Selection(ranges, rows - first)
        alive = np.zeros(ranges[-1][1] - first, bool)
        alive[rows - first] = True
        return Selection(ranges, np.flatnonzero(alive[whole.candidates - first]))


def select(
    fragment: FragmentReader, request: ScanRequest, possible: RowRanges | None, start: int, stop: int
) -> tuple[Selection, dict[str, pa.Array]]:
    """Find the rows that a request selects in a window.

    Parameters
    ----------
    fragment
        Where the rows are.
    request
        The scan.
    possible
        Rows of the fragment outside of which the filter keeps none, None for all.
    start, stop
        Physical rows of the window.

    Returns
    -------
    selection
        The rows.
    known
        The columns that were read to find out, by name: their values in all ranges of the selection.
    """
    ranges = ((start, stop),) if possible is None else tuple(possible.within(start, stop))
    live = Selection.live(fragment, request, ranges)
    if request.filter is None or live.width == 0:
        return live, {}
    batch = _read_inputs(fragment, request.filter, request, live)
    known = dict(zip(batch.schema.names, batch.columns, strict=True))
    try:
        keep = np.asarray(request.filter.mask(batch))
    except (pa.ArrowException, ArithmeticError, ValueError):
        if live.places is None:
            raise
        # the culprit may be a deleted row, which nobody may see
        kept = np.asarray(request.filter.mask(batch.take(pa.array(live.places))))
        return Selection(ranges, live.places[kept]), known
    if live.places is not None:
        return Selection(ranges, live.places[keep[live.places]]), known
    return (live if keep.all() else Selection(ranges, np.flatnonzero(keep))), known


# -- values ------------------------------------------------------------------------------------------------------


def stored_values(
    fragment: FragmentReader, column: Field, selection: Selection, known: Mapping[str, pa.Array]
) -> pa.Array:
    """The selected rows of a top-level column, taken from `known` values of all ranges if they are there."""
    reader, whole = fragment.column(column), known.get(column.name)
    places = selection.places
    if places is not None and whole is None and len(places) < _SPARSE * selection.width:
        return take_values(reader, selection.rows, column.name)
    if whole is None:
        whole = _read_ranges(reader, selection, column.name)
    return whole if places is None else whole.take(pa.array(places))


def computed_values(
    fragment: FragmentReader, output: OutputColumn, request: ScanRequest, selection: Selection
) -> pa.Array:
    """The selected rows of a system column or a computed one."""
    if output.system is not None:
        return _system(fragment, output.system, request, selection.rows)
    if output.expression is None:
        raise TypeError(f"column {output.arrow.name!r} is not computed")
    batch = _read_inputs(fragment, output.expression, request, selection)
    if selection.places is not None:
        batch = batch.take(pa.array(selection.places))
    return output.expression.evaluate(batch)


def _system(fragment: FragmentReader, name: str, request: ScanRequest, rows: NDArray[np.int64]) -> pa.Array:
    values = fragment.system_column(name, rows)
    if request.include_deleted and name in ("_rowid", "_rowaddr"):
        return pc.if_else(pa.array(~np.isin(rows, fragment.deletions)), values, None)
    return values


def _read_inputs(
    fragment: FragmentReader, bound: BoundExpression, request: ScanRequest, selection: Selection
) -> pa.RecordBatch:
    """The columns an expression reads in all ranges of a selection, deleted rows included."""
    schema = request.schema
    fields, arrays = [], []
    for name in bound.columns:
        if name in schema.names:
            field_ = schema.top_level(name)
            fields.append(field_.to_arrow())
            arrays.append(_read_ranges(fragment.column(field_), selection, name))
        else:
            fields.append(SYSTEM_COLUMNS[name])
            arrays.append(_system(fragment, name, request, selection.candidates))
    if not fields:
        return rows_only(selection.width, pa.schema([]))
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _read_ranges(reader: ColumnReader, selection: Selection, column: str) -> pa.Array:
    if selection.is_scattered:
        return take_values(reader, selection.candidates, column)
    arrays = [read_range(reader, start, stop, column) for start, stop in selection.ranges]
    return arrays[0] if len(arrays) == 1 else join_arrays(arrays, reader.arrow_type, column)
