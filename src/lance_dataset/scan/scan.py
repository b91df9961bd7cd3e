"""Scans: the result of a request as a table, as batches, or as a number of rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.limits import ResultLimit
from lance_dataset.memory import MemoryUse, limited_memory, share_of_memory
from lance_dataset.read.empty_batches import empty_batch, rows_only, rows_only_table
from lance_dataset.read.fragment_reader import FragmentReader
from lance_dataset.read.result_sizes import check_planned
from lance_dataset.read.table_reader import TableReader
from lance_dataset.read.take import take_addresses
from lance_dataset.scan.batch_windows import BatchWindows
from lance_dataset.scan.batches import aligned_batches, exact_batches, limited_batches
from lance_dataset.scan.costs import ColumnCosts
from lance_dataset.scan.engine import Rows, Scan
from lance_dataset.scan.full_scan import whole_table
from lance_dataset.scan.narrowing import narrowed, narrowed_or_few
from lance_dataset.scan.ordering import sorted_table
from lance_dataset.scan.request import DEFAULT_BATCH_SIZE, Ordering, ScanRequest
from lance_dataset.scan.strategy import PIECE_BYTES, ScanStrategy, strategy

__all__ = [
    "DEFAULT_BATCH_SIZE",
    "Ordering",
    "ScanRequest",
    "ScanStrategy",
    "count",
    "matching_by_fragment",
    "matching_rows",
    "scan_batches",
    "scan_table",
    "strategy",
]


#: More fragments than this, if they have few rows on average, are read together.
_FEW_FRAGMENTS = 16
_CRUMB_ROWS = 1 << 13


def scan_table(reader: TableReader, request: ScanRequest) -> pa.Table:
    """Run a scan and collect the result."""
    with limited_memory(request.memory_limit):
        return _scan_table(reader, request)


def _scan_table(reader: TableReader, request: ScanRequest) -> pa.Table:
    found = narrowed_or_few(reader, request)
    if not isinstance(found, ScanRequest):
        return pa.Table.from_batches([take_addresses(reader, found, request.projection, request.schema)])
    request = found
    if not request.projection.columns:
        return rows_only_table(count(reader, request), request.projection.schema)
    limited = reader.limit.max_bytes is not None
    if limited and request.filter is None:
        check_planned(reader.limit, count(reader, replace(request, metrics=None)), request.projection.schema)
    if not request.order_by and _is_whole(request) and not _is_in_crumbs(reader, request):
        return whole_table(reader, request)
    plan = strategy(reader, request)
    if request.order_by:
        return sorted_table(reader, request, plan)
    pieces = Scan(reader, request, plan if limited else _kept_whole(plan, request)).rows(apart=False)
    return _table(_metered(pieces, reader.limit) if limited else pieces, request.projection.schema)


def _kept_whole(plan: ScanStrategy, request: ScanRequest) -> ScanStrategy:
    """Return the plan of a scan whose result is kept: all rows of a window are read together if they are not large."""
    size = int(plan.window_rows * sum(map(plan.costs.output_bytes, request.projection.columns)))
    if plan.piece_rows >= plan.window_rows or size > plan.buffer_bytes or plan.waits:
        return plan
    task = plan.task_bytes - plan.piece_bytes + size
    return replace(plan, piece_rows=plan.window_rows, piece_bytes=size, task_bytes=task)


def _metered(found: Iterator[Rows], limit: ResultLimit) -> Iterator[Rows]:
    meter = limit.meter("the result of the scan")
    for rows in found:
        meter.add(rows.nbytes)
        yield rows


def _is_whole(request: ScanRequest) -> bool:
    """Return True if a scan returns all rows of its fragments."""
    if request.filter is not None or request.rows is not None or request.include_deleted:
        return False
    return request.limit is None and request.offset == 0 and request.metrics is None


def _is_in_crumbs(reader: TableReader, request: ScanRequest) -> bool:
    """Return True if fragments are so small that their rows are better read together."""
    fragments = len(reader.fragments) if request.fragments is None else len(request.fragments)
    return fragments > _FEW_FRAGMENTS and reader.num_rows < _CRUMB_ROWS * len(reader.fragments)


def _table(found: Iterator[Rows], schema: pa.Schema) -> pa.Table:
    columns: list[list[pa.Array]] = [[] for _ in schema]
    for rows in found:
        for chunks, more in zip(columns, rows.columns, strict=True):
            chunks.extend(more)
    if not columns[0]:
        return pa.Table.from_batches([empty_batch(schema)])
    arrays = [pa.chunked_array(chunks, field.type) for chunks, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def scan_batches(reader: TableReader, request: ScanRequest) -> Iterator[pa.RecordBatch]:
    """Run a scan as a stream of non-empty batches of at most `batch_size` rows."""
    found = narrowed_or_few(reader, request)
    if not isinstance(found, ScanRequest):
        for start, stop in _portions(reader, request, len(found)):
            taken = take_addresses(reader, found[start:stop], request.projection, request.schema)
            for first in range(0, taken.num_rows, request.batch_size):
                yield taken.slice(first, request.batch_size)
        return
    request = found
    plan = strategy(reader, request)
    schema = request.projection.schema
    if request.order_by and request.projection.columns:
        pieces: Iterator[pa.RecordBatch] = iter(sorted_table(reader, request, plan).to_batches())
    else:
        windows = BatchWindows.of(reader, request, plan)
        scan = Scan(reader, request, plan) if windows is None else Scan(reader, request, windows.plan, windows)
        pieces = _batches(scan.rows(), schema, request.batch_size)
    if request.strict_batch_size:
        pieces = exact_batches(pieces, request.batch_size, reader.limit)
    if reader.limit.max_bytes is not None:
        pieces = limited_batches(pieces, reader.limit)
    for piece in pieces:
        for start in range(0, piece.num_rows, request.batch_size):
            yield piece.slice(start, request.batch_size)


def _portions(reader: TableReader, request: ScanRequest, rows: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows that are taken together: whole batches of a limited number of bytes."""
    batch = request.batch_size
    if rows > batch:
        costs = ColumnCosts.of(reader, request)
        width = sum(costs.output_bytes(output) for output in request.projection.columns)
        most = share_of_memory(PIECE_BYTES, MemoryUse.BATCHES, request.memory_limit)
        batch *= max(int(most / max(width, 1.0)) // batch, 1)
    for start in range(0, rows, batch):
        yield start, min(start + batch, rows)


def _batches(found: Iterator[Rows], schema: pa.Schema, batch_size: int) -> Iterator[pa.RecordBatch]:
    """Yield rows as batches that are still to be cut to size."""
    for rows in found:
        if rows.columns:
            yield from aligned_batches(rows.columns, schema, batch_size)
        else:
            yield rows_only(rows.num_rows, schema)


def count(reader: TableReader, request: ScanRequest) -> int:
    """Return the number of rows a scan would return."""
    found = narrowed_or_few(reader, request)
    if not isinstance(found, ScanRequest):
        return len(found)
    request = found
    total = max(Scan(reader, request, strategy(reader, request)).count() - request.offset, 0)
    return total if request.limit is None else min(total, request.limit)


def matching_by_fragment(reader: TableReader, request: ScanRequest) -> list[tuple[FragmentReader, NDArray[np.int64]]]:
    """Return the fragments with rows that a request selects, in scan order, and the physical offsets of these rows."""
    request = narrowed(reader, request)
    found: dict[int, tuple[FragmentReader, list[NDArray[np.int64]]]] = {}
    for parts in Scan(reader, request, strategy(reader, request)).each(lambda selection: list(selection.rows())):
        for part, rows in parts:
            if len(rows):
                found.setdefault(part.fragment.fragment.id, (part.fragment, []))[1].append(rows)
    return [(fragment, np.concatenate(rows)) for fragment, rows in found.values()]


def matching_rows(fragment: FragmentReader, request: ScanRequest) -> NDArray[np.int64]:
    """Return the physical offsets of the rows of a fragment that a request selects, ascending."""
    found = Scan(fragment, request, strategy(fragment, request)).each(lambda selection: list(selection.rows()))
    return np.concatenate([np.empty(0, np.int64), *(rows for parts in found for _, rows in parts)])
