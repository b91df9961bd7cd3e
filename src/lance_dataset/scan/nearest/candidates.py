"""Exact vector search: a scan that keeps the nearest rows of each window."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.read.concatenate import bisected, read_chunks, take_values
from lance_dataset.read.table_reader import TableReader
from lance_dataset.scan.engine import Scan
from lance_dataset.scan.nearest.search import VectorSearch
from lance_dataset.scan.nearest.vectors import Places, add_array, add_coarse
from lance_dataset.scan.nearest.views import VectorViews, ViewCollector, kept_views, takes_all
from lance_dataset.scan.request import ScanRequest
from lance_dataset.scan.selected_values import descend
from lance_dataset.scan.selection import Selection
from lance_dataset.scan.strategy import ScanStrategy, strategy
from lance_dataset.scan.windows import Slice
from lance_dataset.table.row_addresses import addresses_in, first_address
from lance_dataset.threads.pools import cpu_count
from lance_dataset.threads.streams import map_parallel
from lancecodec.search.distances import Nearest

__all__ = ["FoundRows", "candidates_request", "find_nearest", "search_strategy"]

#: Bytes of vectors and queries compared in a nanosecond, and nanoseconds of work from which threads share it.
_COMPARED_BYTES = 16.0
_PARALLEL_COST = 4e6
#: Nanoseconds of reading a value below which it is not copied, and bytes of such values compared in one window.
_VIEW_COST = 1.0
_VIEW_BYTES = 128 << 20
#: Share of the rows from which comparing all of them in turn is faster than picking, with up to this number of queries.
_DENSE = 0.4
_FEW_QUERIES = 4
#: Windows for each thread, at least, and rows of a window, at least, unless there are fewer.
_PARTS = 3
_LEAST_ROWS = 1 << 12


@dataclass(frozen=True, eq=False)
class FoundRows:
    """Rows that are nearest to one query, the nearest first.

    Attributes
    ----------
    addresses : uint64[n]
        Their addresses.
    distances : float32[n]
        Their distances.
    """

    addresses: NDArray[np.uint64]
    distances: NDArray[np.float32]


def candidates_request(request: ScanRequest, search: VectorSearch) -> ScanRequest:
    """Return the scan of the vectors among which a search finds the nearest.

    Parameters
    ----------
    request
        The fragments and rows to search in, and the filter that comes first.
    search
        The search.
    """
    return replace(
        request,
        projection=search.column.projection,
        limit=None,
        offset=0,
        order_by=(),
        in_order=False,
    )


def search_strategy(reader: TableReader, request: ScanRequest, search: VectorSearch) -> ScanStrategy:
    """Decide how to scan the vectors.

    Parameters
    ----------
    reader
        The version.
    request
        The scan, narrowed to the rows that its filter names.
    search
        The search.
    """
    plan = strategy(reader, request)
    column = search.column
    row_bytes = column.dimension * column.width * len(search.query.vectors)
    field, threads, rows = column.output.field, plan.threads, plan.window_rows
    is_viewed = plan.costs.is_mapped and field is not None and plan.costs.cost(field).read < _VIEW_COST
    if is_viewed and request.filter is None:
        rows = max(rows, _VIEW_BYTES // (column.dimension * column.width))
    if threads == 1 and reader.num_rows * row_bytes / _COMPARED_BYTES > _PARALLEL_COST:
        threads = cpu_count()
    if threads < 2:
        return replace(plan, window_rows=rows, first_rows=rows)
    rows = min(rows, max(reader.num_rows // (_PARTS * threads), _LEAST_ROWS))
    return replace(plan, threads=threads, window_rows=rows, first_rows=rows, ahead=max(plan.ahead, threads + 2))


def find_nearest(reader: TableReader, request: ScanRequest, search: VectorSearch) -> list[FoundRows]:
    """Return the nearest rows for each query.

    Parameters
    ----------
    reader
        The version.
    request
        The scan of `candidates_request`, narrowed to the rows that its filter names.
    search
        The search.
    """
    best: Nearest | None = None
    for found in _each_nearest(reader, request, search):
        if best is None:
            best = found
        elif found is not None:
            best.merge(found)
    if best is None:
        return [FoundRows(np.empty(0, np.uint64), np.empty(0, np.float32))] * search.num_queries
    return [_drained(best, number) for number in range(search.num_queries)]


def _each_nearest(reader: TableReader, request: ScanRequest, search: VectorSearch) -> Iterator[Nearest | None]:
    """Yield the nearest rows of parts of the table: of views that are kept, or of the windows of a scan."""
    column, views = search.column, kept_views(reader) if takes_all(request) else {}
    known = views.get(column.field_id)
    if known is not None:
        yield from _nearest_of_views(known, search)
        return
    plan = search_strategy(reader, request, search)
    keep = ViewCollector(column) if plan.costs.is_mapped and takes_all(request) else None
    nearest = partial(_nearest_of, search=search, plan=plan, request=request, keep=keep)
    yield from Scan(reader, request, plan).each(nearest)
    if keep is not None and keep.views is not None:
        views[column.field_id] = keep.views


def _nearest_of_views(views: VectorViews, search: VectorSearch) -> list[Nearest]:
    column = search.column
    rows = [len(array) for array, _ in views.parts]
    row_bytes = column.dimension * column.width * len(search.query.vectors)

    is_single = search.num_queries == 1 and search.metric != "hamming"
    if is_single:
        views.begin()

    def compared(numbers: Sequence[int]) -> Nearest:
        nearest = search.start()
        for number in numbers:
            array, places = views.parts[number]
            codes = views.codes(number) if is_single else None
            if codes is None:
                add_array(nearest, array, column, places)
            else:
                add_coarse(nearest, array, column, places.base, codes)
        return nearest

    numbers = range(len(rows))
    if sum(rows) * row_bytes / _COMPARED_BYTES <= _PARALLEL_COST or cpu_count() < 2:
        return [compared(numbers)]
    return map_parallel(compared, [[number] for number in numbers], parallel=True, costs=rows)


def _drained(best: Nearest, number: int) -> FoundRows:
    count = best.count(number)
    distances, ids = np.empty(count, np.float32), np.empty(count, np.uint64)
    addresses = np.empty(count, np.uint64)
    best.drain(number, distances.data, ids.data, addresses.data)
    return FoundRows(addresses, distances)


def _nearest_of(
    selection: Selection,
    search: VectorSearch,
    plan: ScanStrategy,
    request: ScanRequest,
    keep: ViewCollector | None,
) -> Nearest | None:
    """Return the nearest of the selected rows of a window, None if no row is selected. Collect what is read."""
    if selection.num_rows == 0:
        return None
    nearest = search.start()
    metrics = request.metrics
    if metrics is None:
        for array, places in _arrays(selection, search, plan):
            add_array(nearest, array, search.column, places)
            if keep is not None:
                keep.add(array, places)
        return nearest
    with metrics.timed("nearest") as node:
        for array, places in _arrays(selection, search, plan):
            add_array(nearest, array, search.column, places)
    node.add(selection.num_rows, batches=1)
    return nearest


def _arrays(selection: Selection, search: VectorSearch, plan: ScanStrategy) -> Iterator[tuple[pa.Array, Places]]:
    """Yield the vectors of the selected rows: whole ranges as they are stored, or single rows if that is cheaper."""
    output = search.column.output
    field = output.field
    if field is None:
        raise TypeError(f"column {search.column.name!r} is not stored")
    cost = plan.costs.cost(field)
    masks = not search.column.is_lists and len(search.query.vectors) <= _FEW_QUERIES

    def is_dense(chosen: int, count: int) -> bool:
        return masks and chosen > _DENSE * count

    for part, chosen in selection.parts:
        reader = part.fragment.column(field)
        if part.is_scattered or (chosen is not None and cost.prefers_take(len(chosen), part.width)):
            rows = part.rows if chosen is None else part.rows_at(chosen)
            taken = take_values(reader, rows, field.name)
            yield descend(taken, output.path), _taken_places(part, rows)
            continue
        done = 0
        for start, stop in part.ranges:
            at = start
            for chunks in bisected(partial(read_chunks, reader, field.name), start, stop):
                for chunk in chunks:
                    places = _places(part, at, len(chunk), chosen, done + at - start)
                    if places is not None and places.rows is not None and is_dense(len(places.rows), len(chunk)):
                        places = _masked_places(part, at, len(chunk), places.rows)
                    at += len(chunk)
                    if places is not None:
                        yield descend(chunk, output.path), places
            done += stop - start


def _places(part: Slice, start: int, count: int, chosen: NDArray[np.int64] | None, first: int) -> Places | None:
    """Return the chosen rows among `count` rows from the physical row `start` on; None without any.

    `first` is the place of the first of them in the slice, in which `chosen` are places.
    """
    rows = None
    if chosen is not None:
        low, high = np.searchsorted(chosen, (first, first + count)).tolist()
        if low == high:
            return None
        rows = chosen[low:high] - first if high - low < count else None
    base = first_address(part.fragment.fragment.id) + start
    ids = part.fragment.row_ids
    if ids is None:
        return Places(rows, base)
    return Places(rows, base, ids=ids.take(np.arange(start, start + count) if rows is None else rows + start))


def _masked_places(part: Slice, start: int, count: int, rows: NDArray[np.int64]) -> Places:
    """Return the same rows as a mask."""
    mask = np.zeros(count, bool)
    mask[rows] = True
    ids = part.fragment.row_ids
    found = None if ids is None else ids.take(np.arange(start, start + count))
    return Places(None, first_address(part.fragment.fragment.id) + start, ids=found, mask=mask)


def _taken_places(part: Slice, rows: NDArray[np.int64]) -> Places:
    ids = part.fragment.row_ids
    return Places(None, 0, addresses_in(part.fragment.fragment.id, rows), None if ids is None else ids.take(rows))
