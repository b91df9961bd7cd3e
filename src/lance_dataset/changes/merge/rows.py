"""Rows that a merge writes: first updated ones, then inserted ones, in batches of bounded size."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_dataset.changes.fragments.fragment_rows import blob_row_bytes
from lance_dataset.changes.keys.source import Source, bounded_rows, source_row_bytes
from lance_dataset.changes.merge.columns import MergeColumns
from lance_dataset.changes.merge.matching import Matches
from lance_dataset.read.projection import project, with_stored_blobs
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.read.table_reader import TableReader
from lance_dataset.read.take import take_addresses
from lance_dataset.table.row_addresses import by_fragment, fragments_of, offsets_of
from lance_dataset.threads.pools import cpu_count
from lance_dataset.threads.streams import stream

__all__ = ["in_write_order", "masked_rows", "new_rows", "row_ids_of"]


_Addresses = NDArray[np.uint64]
_Rows = NDArray[np.int64]


def in_write_order(columns: MergeColumns, matches: Matches, num_source_rows: int) -> tuple[_Addresses, _Rows]:
    """Return the updated rows and the source row of each, in the order in which they are written.

    If all values come from the source, this is the order of the source, so that it is read once from front to back.
    Otherwise it is the order of the table, for the same reason.
    """
    if columns.target_columns:
        return matches.addresses, matches.source_rows
    if bool((matches.source_rows[1:] > matches.source_rows[:-1]).all()):
        return matches.addresses, matches.source_rows
    by_row = np.zeros(num_source_rows, np.uint64)
    by_row[matches.source_rows] = matches.addresses
    matched = np.zeros(num_source_rows, bool)
    matched[matches.source_rows] = True
    rows = np.flatnonzero(matched)
    if len(rows) == len(matches.source_rows):
        return by_row[rows], rows
    order = np.argsort(matches.source_rows, kind="stable")  # some source row matches several target rows
    return matches.addresses[order], matches.source_rows[order]


def new_rows(
    snapshot: Snapshot,
    columns: MergeColumns,
    source: Source,
    updated: tuple[_Addresses, _Rows],
    is_new: NDArray[np.bool_] | None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows to write: first updated ones in the given order, then inserted ones in the order of the source.

    Parameters
    ----------
    snapshot
        Version to change.
    columns
        Columns of the source.
    source
        The source.
    updated
        Updated rows and the source row of each, as `in_write_order` returns them.
    is_new
        Mask of the source rows that are inserted; None if rows are not inserted. Inserted rows lack the columns that
        the source lacks.
    """
    addresses, source_rows = updated
    if len(addresses):
        if columns.target_columns:
            yield from _with_target(snapshot, columns, source, addresses, source_rows)
        else:
            yield from _picked(source, source_rows)
    if is_new is not None and is_new.any():
        yield from _chosen(source, is_new)


def _picked(source: Source, rows: _Rows) -> Iterator[pa.RecordBatch]:
    """Yield rows of a source by their numbers, which ascend and may repeat."""
    start = 0
    for batch in source.batches():
        stop = start + batch.num_rows
        low, high = np.searchsorted(rows, (start, stop)).tolist()
        if high - low == batch.num_rows and bool((rows[low:high] == np.arange(start, stop)).all()):
            yield batch
        else:
            yield from _taken(batch, rows[low:high] - start)
        start = stop


def _chosen(source: Source, chosen: NDArray[np.bool_]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a source for which a mask is true."""
    start = 0
    for batch in source.batches():
        mine = np.flatnonzero(chosen[start : start + batch.num_rows])
        start += batch.num_rows
        if len(mine) == batch.num_rows:
            yield batch
        else:
            yield from _taken(batch, mine)


def _taken(batch: pa.RecordBatch, rows: _Rows) -> Iterator[pa.RecordBatch]:
    size = bounded_rows(batch.nbytes / max(batch.num_rows, 1))
    for start in range(0, len(rows), size):
        yield pc.take(batch, pa.array(rows[start : start + size]), boundscheck=False)


def _with_target(
    snapshot: Snapshot, columns: MergeColumns, source: Source, addresses: _Addresses, source_rows: _Rows
) -> Iterator[pa.RecordBatch]:
    """Yield updated rows that keep some values of the table; pieces are read ahead on several threads."""
    reader, schema = snapshot.reader, snapshot.scanned_schema
    projection = with_stored_blobs(project(schema, columns.target_columns))

    def piece(part: slice) -> pa.RecordBatch:
        kept = take_addresses(reader, addresses[part], projection, schema)
        return columns.updated(source.take(source_rows[part]), kept, columns.table)

    size = bounded_rows(_row_bytes(reader, addresses) + source_row_bytes(source))
    parts = [slice(start, start + size) for start in range(0, len(addresses), size)]
    yield from stream(piece, parts, ahead=cpu_count())


def _row_bytes(reader: TableReader, addresses: _Addresses) -> float:
    """Estimate the stored bytes of a table row, as the maximum over a sample of the fragments of these rows."""
    some = fragments_of(addresses[:: max(len(addresses) // 8, 1)])
    found = [reader.fragment(owner) for owner in np.unique(some).tolist()]
    schema = reader.manifest.schema
    sizes = (each.bytes_per_row + blob_row_bytes(each, schema) for each in found if each is not None)
    return max(sizes, default=1.0)


# -- old rows ----------------------------------------------------------------------------------------------------


def masked_rows(*addresses: _Addresses) -> dict[int, _Rows]:
    """Return the ascending physical offsets by fragment id of rows with distinct addresses."""
    together = np.concatenate(addresses)
    if bool((together[1:] < together[:-1]).any()):
        together.sort(kind="stable")  # a stable sort merges the ascending runs
    owners = fragments_of(together)
    ends = [*(np.flatnonzero(owners[1:] != owners[:-1]) + 1).tolist(), len(owners)]
    offsets = offsets_of(together)
    starts = [0, *ends[:-1]]
    return {int(owners[start]): offsets[start:end] for start, end in zip(starts, ends, strict=True) if start < end}


def row_ids_of(reader: TableReader, addresses: _Addresses) -> _Addresses:
    """Return the stable row ids of rows by their addresses."""
    ids = np.empty(len(addresses), np.uint64)
    for owner, mine in by_fragment(addresses):
        fragment = reader.fragment(owner)
        assert fragment is not None
        assert fragment.row_ids is not None
        ids[mine] = fragment.row_ids.take(offsets_of(addresses[mine]))
    return ids
