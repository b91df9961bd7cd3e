"""Sorted scans: all rows by their keys, or the first few without reading more than the keys of the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.late_dataclass import dataclass
from lance_dataset.read.concatenate import join_arrays, take_chunked
from lance_dataset.read.empty_batches import empty_batch
from lance_dataset.read.projection import OutputColumn, Projection, project
from lance_dataset.read.table_reader import TableReader
from lance_dataset.scan.engine import Scan
from lance_dataset.scan.request import ScanRequest
from lance_dataset.scan.row_ranges import RowRanges
from lance_dataset.scan.selected_values import output_chunks
from lance_dataset.scan.selection import Selection
from lance_dataset.scan.sort_keys import Bound, check_sortable, sort_indices, sortable
from lance_dataset.scan.strategy import ScanStrategy, strategy
from lance_dataset.scan.windows import Slice, Window
from lance_dataset.table.row_addresses import grouped

__all__ = ["sorted_table"]

#: If more rows than this are requested, all rows are sorted together.
_MOST_KEPT = 1 << 17
#: Surplus rows gathered before the best ones are determined again.
_SPARE_ROWS = 1 << 14


def sorted_table(reader: TableReader, request: ScanRequest, plan: ScanStrategy) -> pa.Table:
    """Run a scan with sort keys and collect it.

    Parameters
    ----------
    reader
        The version of the table.
    request
        The scan, narrowed.
    plan
        The strategy of the scan.
    """
    schema = request.projection.schema
    if request.limit == 0:
        return pa.Table.from_batches([empty_batch(schema)])
    sort = _Sort(reader, request, plan)
    if plan.top is not None and plan.top <= _MOST_KEPT:
        return sort.table(sort.top(plan.top).rows_from(request.offset))
    found = sort.all()
    order = sort.order(found)
    wanted = order[request.offset : plan.top]
    if len(wanted) == len(order):
        return sort.gathered(found, wanted)
    return sort.table(found.take(wanted))


@dataclass(frozen=True, eq=False)
class _Found:
    """Rows found so far, with their keys.

    Attributes
    ----------
    fragments
        int64: the fragment id of each row.
    rows
        int64: the physical row numbers.
    keys
        Sortable arrays, one per key.
    """

    fragments: NDArray[np.int64]
    rows: NDArray[np.int64]
    keys: tuple[pa.Array, ...]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def nbytes(self) -> int:
        """Bytes of the rows and keys."""
        return int(self.fragments.nbytes + self.rows.nbytes) + sum(key.nbytes for key in self.keys)

    def take(self, places: NDArray[np.int64]) -> _Found:
        """Return the rows at the given places."""
        index = pa.array(places)
        return _Found(self.fragments[places], self.rows[places], tuple(key.take(index) for key in self.keys))

    def rows_from(self, first: int) -> _Found:
        """Return the rows from place `first` on."""
        return _Found(self.fragments[first:], self.rows[first:], tuple(key.slice(first) for key in self.keys))


class _Sort:
    """State of a running sorted scan."""

    def __init__(self, reader: TableReader, request: ScanRequest, plan: ScanStrategy) -> None:
        self._reader = reader
        self._request = request
        self._plan = plan
        self._outputs = tuple(_key_column(request, key.column) for key in request.order_by)
        projection = Projection(self._outputs, pa.schema([output.arrow for output in self._outputs]))
        self._key_request = replace(request, projection=projection, order_by=(), limit=None, offset=0, in_order=True)
        self._key_plan = strategy(reader, self._key_request)
        self._limit = reader.limit

    def all(self) -> _Found:
        """Return all selected rows, in storage order."""
        all_found, meter = [], self._limit.meter("sorting all rows")
        for found in Scan(self._reader, self._key_request, self._key_plan).each(self._found):
            meter.add(found.nbytes)
            all_found.append(found)
        return self._joined(all_found)

    def top(self, count: int) -> _Found:
        """Return the first `count` rows in sort order."""
        first = min(max(self._request.batch_size, count), self._key_plan.window_rows)
        scan = Scan(self._reader, self._key_request, replace(self._key_plan, first_rows=first))
        kept: list[_Found] = []
        bound: Bound | None = None

        def candidates(selection: Selection) -> _Found:
            # another thread may have set a better bound since; that only leaves a few surplus rows
            known, found = bound, self._found(selection)
            return found if known is None or len(found) == 0 else found.take(known.wanted(found.keys[0]))

        for found in scan.each(candidates):
            if len(found) == 0:
                continue
            kept.append(found)
            if self._limit.max_bytes is not None:
                self._limit.check(sum(each.nbytes for each in kept), "sorting rows for the first ones")
            if bound is None or sum(map(len, kept)) > count + _SPARE_ROWS:
                kept = [self._best(kept, count)]
                if len(kept[0]) == count:
                    bound = Bound.last(kept[0].keys[0], self._request.order_by)
        return self._best(kept, count)

    def order(self, found: _Found) -> NDArray[np.int64]:
        """Return the positions of rows in the order of their keys."""
        if self._request.metrics is None:
            return sort_indices(found.keys, self._request.order_by)
        with self._request.metrics.timed("sort") as node:
            order = sort_indices(found.keys, self._request.order_by)
        node.add(len(order), batches=1)
        return order

    def _best(self, kept: Sequence[_Found], count: int) -> _Found:
        found = self._joined(kept)
        return found.take(self.order(found)[:count])

    def _found(self, selection: Selection) -> _Found:
        """Return the rows of a selection with their keys."""
        located = list(selection.rows())
        fragments = [np.full(len(rows), part.fragment.fragment.id, np.int64) for part, rows in located]
        keys = []
        for output in self._outputs:
            chunks = self._chunks(output, selection)
            keys.append(_joined_key([sortable(chunk) for chunk in chunks], output))
        return _Found(_concatenated(fragments), _concatenated([rows for _, rows in located]), tuple(keys))

    def _chunks(self, output: OutputColumn, selection: Selection) -> list[pa.Array]:
        """Read the values of a key."""
        if self._request.metrics is None:
            return output_chunks(output, selection, self._key_request, self._key_plan)
        with self._request.metrics.timed("scan") as node:
            chunks = output_chunks(output, selection, self._key_request, self._key_plan)
        node.add(bytes=sum(chunk.nbytes for chunk in chunks))
        return chunks

    def _joined(self, kept: Sequence[_Found]) -> _Found:
        if len(kept) == 1:
            return kept[0]
        keys = tuple(
            _joined_key([found.keys[number] for found in kept], output) for number, output in enumerate(self._outputs)
        )
        fragments = _concatenated([found.fragments for found in kept])
        return _Found(fragments, _concatenated([found.rows for found in kept]), keys)

    # -- columns -------------------------------------------------------------------------------------------------

    def table(self, found: _Found) -> pa.Table:
        """Read the output columns of some rows, in their order."""
        schema = self._request.projection.schema
        if len(found) == 0:
            return pa.Table.from_batches([empty_batch(schema)])
        slices, places = [], np.empty(len(found), np.int64)
        done = 0
        for fragment_id, mine in grouped(found.fragments):
            fragment = self._reader.fragment(fragment_id)
            if fragment is None:
                raise KeyError(fragment_id)
            rows, back = np.unique(found.rows[mine], return_inverse=True)
            ranges = RowRanges.of_rows(rows)
            slices.append(Slice(fragment, tuple(zip(ranges.starts.tolist(), ranges.stops.tolist(), strict=True))))
            places[mine] = back + done
            done += len(rows)
        return self._gather([Selection(Window(tuple(slices)))], places)

    def gathered(self, found: _Found, order: NDArray[np.int64]) -> pa.Table:
        """Read the output columns of all rows found, in the given order."""
        cuts = np.flatnonzero((np.diff(found.fragments) != 0) | (np.diff(found.rows) <= 0)) + 1
        selections = []
        for low, high in zip([0, *cuts.tolist()], [*cuts.tolist(), len(found)], strict=True):
            fragment = self._reader.fragment(int(found.fragments[low])) if low < high else None
            if fragment is None:
                continue
            rows = found.rows[low:high]
            start, stop = int(rows[0]), int(rows[-1]) + 1
            places = None if stop - start == len(rows) else rows - start
            selections.append(Selection(Window((Slice(fragment, ((start, stop),)),)), places))
        return self._gather(selections, order)

    def _gather(self, selections: Sequence[Selection], places: NDArray[np.int64]) -> pa.Table:
        """Gather rows of several selections by place, column by column, so that only one column is copied at a time."""
        schema, arrays = self._request.projection.schema, []
        scan = Scan(self._reader, replace(self._request, filter=None, order_by=()), self._plan)
        meter = self._limit.meter("the result of the scan")
        for number, field in enumerate(schema):
            chunks = []
            for chunk in chain.from_iterable(scan.columns(number, selections)):
                meter.add(chunk.nbytes)
                chunks.append(chunk)
            values = pa.chunked_array(chunks, field.type)
            arrays.append(pa.chunked_array(take_chunked(values, places, field.name), field.type))
        return pa.Table.from_arrays(arrays, schema=schema)


def _key_column(request: ScanRequest, name: str) -> OutputColumn:
    if name in request.schema.names:
        field = request.schema.top_level(name)
        output = OutputColumn(field.to_arrow(), field)
    else:
        output = project(request.schema, [name]).columns[0]
    check_sortable(output.arrow.type, name)
    return output


def _joined_key(arrays: list[pa.Array], output: OutputColumn) -> pa.Array:
    if not arrays:
        arrays = [sortable(pa.nulls(0, output.arrow.type))]
    return arrays[0] if len(arrays) == 1 else join_arrays(arrays, arrays[0].type, output.arrow.name)


def _concatenated(arrays: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    if len(arrays) == 1:
        return arrays[0]
    return np.concatenate([np.empty(0, np.int64), *arrays])
