"""Scans: a request becomes windows of rows, windows become record batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_dataset.file.column import Part
from lance_dataset.file.zones import Zones
from lance_dataset.query.chunks import aligned_batches
from lance_dataset.query.fragment_reader import FragmentReader
from lance_dataset.query.join import bisected, join_arrays, keep_rows, read_chunks, take_chunked
from lance_dataset.query.pool import map_parallel
from lance_dataset.query.projection import OutputColumn, Projection
from lance_dataset.query.prune import Pruner, RowRanges
from lance_dataset.query.request import DEFAULT_BATCH_SIZE, Ordering, ScanRequest
from lance_dataset.query.row_pruning import narrowed
from lance_dataset.query.selection import Selection, computed_values, select, stored_values
from lance_dataset.query.shapes import empty_batch, rows_only, rows_only_table
from lance_dataset.query.table_reader import TableReader

__all__ = ["DEFAULT_BATCH_SIZE", "Ordering", "ScanRequest", "count", "matching_rows", "scan_batches", "scan_table"]

#: Rows are decoded in windows of about this size, then sliced into batches.
_WINDOW_BYTES = 16 << 20
_MAX_WINDOW_ROWS = 1 << 20
#: Rows of more than this together are more than one batch, whatever the batch size.
_MAX_BATCH_BYTES = 256 << 20
#: Ranges that may have matches are read together with what parts them, if that is less than this.
_GAP_BYTES = 256 << 10
#: Columns of fewer bytes on average are decoded one after another: threads would only wait for the interpreter.
_PARALLEL_BYTES = 256 << 10
#: Nanoseconds of decoding, in all and per part of a column, from which on threads gain more than they cost.
_PARALLEL_COST = 1e6
_PARALLEL_TASK_COST = 2e4
#: Nanoseconds that a value of a computed column takes.
_DERIVED_COST = 10.0


# -- entry points ------------------------------------------------------------------------------------------------


def scan_table(reader: TableReader, request: ScanRequest) -> pa.Table:
    """Run a scan and collect it."""
    request = narrowed(reader, request)
    if not request.projection.columns:
        return rows_only_table(count(reader, request), request.projection.schema)
    if request.order_by:
        return _sorted(reader, request)
    if request.filter is None and request.limit is None and request.offset == 0 and not request.include_deleted:
        return _whole(reader, request)
    return pa.Table.from_batches(_limited(reader, request), request.projection.schema)


def scan_batches(reader: TableReader, request: ScanRequest) -> Iterator[pa.RecordBatch]:
    """Run a scan as a stream of non-empty batches of at most `batch_size` rows."""
    request = narrowed(reader, request)
    if request.order_by and request.projection.columns:
        pieces: Iterator[pa.RecordBatch] = iter(_sorted(reader, request).to_batches())
    else:
        pieces = _limited(reader, request)
    if request.strict_batch_size:
        yield from _exact(pieces, request.batch_size)
        return
    for piece in pieces:
        for start in range(0, piece.num_rows, request.batch_size):
            yield piece.slice(start, request.batch_size)


def count(reader: TableReader, request: ScanRequest) -> int:
    """Number of rows a scan would return."""
    request = narrowed(reader, request)
    if request.filter is None and request.row_range is None and not request.include_deleted:
        total = sum(fragment.num_rows for fragment, _ in _fragments(reader, request))
    else:
        pruner = _pruner(request)
        total = sum(
            selection.num_rows
            for fragment, bounds in _fragments(reader, request)
            for selection in _selections(fragment, request, pruner, *bounds)
        )
    total = max(total - request.offset, 0)
    return total if request.limit is None else min(total, request.limit)


def matching_rows(fragment: FragmentReader, request: ScanRequest) -> NDArray[np.int64]:
    """Physical offsets of the rows of a fragment that a request selects, ascending."""
    selections = _selections(fragment, request, _pruner(request), 0, fragment.physical_rows)
    return np.concatenate([np.empty(0, np.int64), *(selection.rows for selection in selections)])


def _selections(
    fragment: FragmentReader, request: ScanRequest, pruner: Pruner | None, start: int, stop: int
) -> Iterator[Selection]:
    """The selected rows among physical rows ``[start, stop)``, window by window."""
    possible = _possible(fragment, request, pruner)

    def selected(first: int, end: int) -> Selection:
        return select(fragment, request, possible, first, end)[0]

    for first, end in _split(fragment, request, start, stop):
        yield from bisected(selected, first, end)


def _pruner(request: ScanRequest) -> Pruner | None:
    return Pruner.of(request.filter) if request.use_statistics else None


def _possible(fragment: FragmentReader, request: ScanRequest, pruner: Pruner | None) -> RowRanges | None:
    """The rows that neither what a filter names nor the statistics of a fragment exclude, None for all."""
    named = None if request.rows is None else request.rows[fragment.fragment.id]
    if pruner is None:
        return named

    def zones(path: tuple[str, ...]) -> Zones | None:
        if path[0] not in request.schema.names:
            return None
        return fragment.column(request.schema.top_level(path[0])).zones(path[1:])

    found = pruner.ranges(zones, fragment.physical_rows, gap=int(_GAP_BYTES / fragment.bytes_per_row))
    return named if found is None else found if named is None else found.intersection(named)


# -- whole tables ------------------------------------------------------------------------------------------------


def _worth_threads(fragment: FragmentReader, request: ScanRequest, rows: int) -> bool:
    return rows * fragment.bytes_per_row / max(len(request.schema.fields), 1) > _PARALLEL_BYTES


def _whole(reader: TableReader, request: ScanRequest) -> pa.Table:
    """All live rows; chunks as the files have them, so that what need not be copied is not."""
    schema = request.projection.schema
    pieces = _decode(request, list(_fragments(reader, request)))
    if not any(pieces):
        return pa.Table.from_batches([empty_batch(schema)])
    columns = [pa.chunked_array(found, field_.type) for found, field_ in zip(pieces, schema, strict=True)]
    return pa.Table.from_arrays(columns, schema=schema)


def _decode(request: ScanRequest, ranges: Sequence[tuple[FragmentReader, tuple[int, int]]]) -> list[list[pa.Array]]:
    """Chunks (none of them empty) of every output column: the live rows of some ranges of fragments."""
    outputs = request.projection.columns
    places = [(fragment, number, bounds) for fragment, bounds in ranges for number in range(len(outputs))]
    waiting = any(not fragment.is_mapped and _worth_threads(fragment, request, b - a) for fragment, (a, b) in ranges)

    def parts(place: tuple[FragmentReader, int, tuple[int, int]]) -> list[Part]:
        fragment, number, bounds = place
        return _parts(fragment, outputs[number], *bounds)

    cut = map_parallel(parts, places, parallel=waiting)
    tasks = [(place[0], place[1], part) for place, found in zip(places, cut, strict=True) for part in found]
    costs = [part.cost for _, _, part in tasks]

    def decode(task: tuple[FragmentReader, int, Part]) -> list[pa.Array]:
        fragment, number, part = task
        return _read_part(fragment, outputs[number], request, part.start, part.stop)

    heavy = sum(costs) > max(_PARALLEL_COST, _PARALLEL_TASK_COST * len(tasks))
    decoded = map_parallel(decode, tasks, parallel=waiting or heavy, costs=costs)
    pieces: list[list[pa.Array]] = [[] for _ in outputs]
    for (_, number, _), read in zip(tasks, decoded, strict=True):
        pieces[number].extend(piece for piece in read if len(piece))
    return pieces


def _parts(fragment: FragmentReader, output: OutputColumn, start: int, stop: int) -> list[Part]:
    if output.field is None:
        return [Part(start, stop, _DERIVED_COST * (stop - start))] if start < stop else []
    return fragment.column(output.field).parts(start, stop)


def _read_part(
    fragment: FragmentReader, output: OutputColumn, request: ScanRequest, start: int, stop: int
) -> list[pa.Array]:
    """The live rows of a part of a column, in chunks."""
    if output.field is None:
        return list(bisected(partial(_derived_range, fragment, output, request), start, stop))
    reader, name = fragment.column(output.field), output.field.name
    read = [piece for part in bisected(partial(read_chunks, reader, name), start, stop) for piece in part]
    pieces = [_descend(piece, output.path) for piece in read]
    rows = fragment.live_rows(start, stop)
    return pieces if rows is None else keep_rows(pieces, rows - start)


def _derived_range(
    fragment: FragmentReader, output: OutputColumn, request: ScanRequest, start: int, stop: int
) -> pa.Array:
    return computed_values(fragment, output, request, Selection.live(fragment, request, ((start, stop),)))


def _descend(array: pa.Array, path: Sequence[str]) -> pa.Array:
    for name in path:
        # flatten() pushes the validity and the offset of the struct down into its child
        array = array.flatten()[array.type.get_field_index(name)]
    return array


# -- windows -----------------------------------------------------------------------------------------------------


def _fragments(reader: TableReader, request: ScanRequest) -> Iterator[tuple[FragmentReader, tuple[int, int]]]:
    positions = range(len(reader.fragments)) if request.fragments is None else request.fragments
    for position in positions:
        fragment = reader.fragments[position]
        start, stop = request.row_range or (0, fragment.physical_rows)
        yield fragment, (min(start, fragment.physical_rows), min(stop, fragment.physical_rows))


def _split(fragment: FragmentReader, request: ScanRequest, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Windows of rows to decode at once: a few batches, or less than one where rows are huge."""
    rows = int(min(_WINDOW_BYTES / fragment.bytes_per_row, _MAX_WINDOW_ROWS))
    whole_batch = request.batch_size * fragment.bytes_per_row <= _MAX_BATCH_BYTES
    rows = max(rows, request.batch_size if whole_batch else int(_MAX_BATCH_BYTES / fragment.bytes_per_row), 1)
    if request.filter is None and request.limit is not None and fragment.fragment.deletion_file is None:
        rows = min(rows, max(request.limit + request.offset, 1))
    if rows > request.batch_size:
        # whole batches, so that batches are cut only where fragments end
        rows -= rows % request.batch_size
    for first in range(start, stop, rows):
        yield first, min(first + rows, stop)


def _limited(reader: TableReader, request: ScanRequest) -> Iterator[pa.RecordBatch]:
    """Non-empty windows after offset and limit; reading stops with the last row needed."""
    skip, left = request.offset, request.limit
    pruner = _pruner(request)
    if skip and request.fragments is None and _counts_known(request):
        # no fragment before the first one that is needed is looked at
        starts = reader.live_starts
        position = int(np.searchsorted(starts, skip, side="right")) - 1
        if position >= len(reader.fragments):
            return
        skip -= int(starts[position])
        request = replace(request, fragments=tuple(range(position, len(reader.fragments))))
    for fragment, bounds in _fragments(reader, request):
        if left == 0:
            return
        if skip and _counts_known(request) and skip >= fragment.num_rows:
            skip -= fragment.num_rows
            continue
        possible = _possible(fragment, request, pruner)
        for start, stop in _split(fragment, request, *bounds):
            for batch in _window_batches(fragment, request, possible, start, stop):
                dropped = min(skip, batch.num_rows)
                skip -= dropped
                batch = batch.slice(dropped, left)
                if batch.num_rows:
                    yield batch
                if left is not None:
                    left -= batch.num_rows
                    if left == 0:
                        return


def _counts_known(request: ScanRequest) -> bool:
    """Whether a fragment yields exactly its live rows."""
    return request.filter is None and request.row_range is None and not request.include_deleted


def _window_batches(
    fragment: FragmentReader, request: ScanRequest, possible: RowRanges | None, start: int, stop: int
) -> Iterator[pa.RecordBatch]:
    """The selected rows of a window, in batches to be cut into those asked for."""
    if request.filter is not None or request.include_deleted or not request.projection.columns:
        return bisected(partial(_window, fragment, request, possible), start, stop)
    pieces = _decode(request, [(fragment, (start, stop))])
    return aligned_batches(pieces, request.projection.schema, request.batch_size)


def _window(
    fragment: FragmentReader, request: ScanRequest, possible: RowRanges | None, start: int, stop: int
) -> pa.RecordBatch:
    """The selected rows among physical rows ``[start, stop)``."""
    schema = request.projection.schema
    selection, known = select(fragment, request, possible, start, stop)
    if selection.num_rows == 0:
        return empty_batch(schema)
    if not request.projection.columns:
        return rows_only(selection.num_rows, schema)

    def values(output: OutputColumn) -> pa.Array:
        if output.field is None:
            return computed_values(fragment, output, request, selection)
        same = output.field is request.schema.top_level(output.field.name)
        return _descend(stored_values(fragment, output.field, selection, known if same else {}), output.path)

    parallel = _worth_threads(fragment, request, selection.width)
    columns = map_parallel(values, request.projection.columns, parallel=parallel)
    return pa.RecordBatch.from_arrays(columns, schema=schema)


# -- shapes ------------------------------------------------------------------------------------------------------


def _sorted(reader: TableReader, request: ScanRequest) -> pa.Table:
    """Sort by the keys (nulls last unless asked otherwise), then apply offset and limit."""
    projection = request.projection
    names = projection.schema.names
    hidden = [
        OutputColumn(_sort_field(request, key), request.schema.top_level(key.column))
        for key in request.order_by
        if key.column not in names
    ]
    columns = (*projection.columns, *hidden)
    widened = Projection(columns, pa.schema([output.arrow for output in columns], metadata=projection.schema.metadata))
    table = scan_table(reader, replace(request, projection=widened, order_by=(), limit=None, offset=0))
    # Sort from the last key to the first: each pass is stable, so nulls can be placed per key.
    order = np.arange(table.num_rows)
    for key in reversed(request.order_by):
        values = _sort_values(table[key.column], key).take(pa.array(order))
        order = order[_sort_indices(values, key)]
    stop = None if request.limit is None else request.offset + request.limit
    rows = order[request.offset : stop]
    arrays = [
        pa.chunked_array(take_chunked(table[name], rows, name), projection.schema.field(name).type) for name in names
    ]
    return pa.Table.from_arrays(arrays, schema=projection.schema)


def _sort_values(column: pa.ChunkedArray, key: Ordering) -> pa.Array:
    """The column as one array that orders like it; wider offsets and no dictionaries, so that joining cannot fail."""
    if pa.types.is_dictionary(column.type):
        column = pa.chunked_array([chunk.dictionary_decode() for chunk in column.chunks], column.type.value_type)
    if column.num_chunks > 1 and (pa.types.is_string(column.type) or pa.types.is_binary(column.type)):
        column = column.cast(pa.large_string() if pa.types.is_string(column.type) else pa.large_binary())
    return join_arrays(column.chunks, column.type, key.column)


def _sort_indices(values: pa.Array, key: Ordering) -> NDArray[np.int64]:
    """Positions in the order of a key, equal values staying in place; NaN is greater than all numbers."""
    direction = "ascending" if key.ascending else "descending"
    placement = "at_start" if key.nulls_first else "at_end"
    indices = np.asarray(pc.array_sort_indices(values, order=direction, null_placement=placement)).astype(np.int64)
    if not pa.types.is_floating(values.type):
        return indices
    # Arrow keeps NaN beside the nulls instead
    nan = np.isnan(values.to_numpy(zero_copy_only=False))
    group = np.where(nan == key.ascending, 1, 0)
    group[np.asarray(values.is_null())] = -1 if key.nulls_first else 2
    return indices[np.argsort(group[indices], kind="stable")]


def _sort_field(request: ScanRequest, key: Ordering) -> pa.Field:
    return request.schema.top_level(key.column).to_arrow()


def _exact(pieces: Iterator[pa.RecordBatch], batch_size: int) -> Iterator[pa.RecordBatch]:
    """Re-cut a stream into batches of exactly `batch_size` rows, but for the last."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for piece in pieces:
        while piece.num_rows:
            part = piece.slice(0, batch_size - rows)
            piece = piece.slice(part.num_rows)
            waiting.append(part)
            rows += part.num_rows
            if rows == batch_size:
                yield _joined(waiting)
                waiting, rows = [], 0
    if waiting:
        yield _joined(waiting)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    schema = batches[0].schema
    if not len(schema):
        return rows_only(sum(batch.num_rows for batch in batches), schema)
    arrays = [
        join_arrays([batch.column(i) for batch in batches], field_.type, field_.name) for i, field_ in enumerate(schema)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
