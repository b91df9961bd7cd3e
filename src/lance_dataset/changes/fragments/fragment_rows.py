"""Rows of one fragment in order: physical rows, live rows, and the expansion of live rows to all physical ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import InvalidInputError, UnsupportedError
from lance_dataset.file.kinds import is_binary_like
from lance_dataset.file.options import is_blob_v2
from lance_dataset.file.storage import storage_batch
from lance_dataset.memory import MemoryUse, share_of_memory
from lance_dataset.read.fragment_reader import FragmentReader
from lance_dataset.read.projection import Projection, project, with_stored_blobs
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.read.table_reader import TableReader
from lance_dataset.scan.request import DEFAULT_BATCH_SIZE, ScanRequest
from lance_dataset.scan.scan import scan_batches
from lance_dataset.types.schema import Schema

__all__ = ["batch_rows", "fragment_batches", "live_batches", "physical_batches", "with_deleted_rows", "wrong_rows"]

#: Maximum number of rows in a batch of live rows.
_BATCH_ROWS = 1 << 16
#: Approximate number of bytes of decoded rows in such a batch, so wide rows make smaller batches.
_BATCH_BYTES = 32 << 20
#: Number of rows, and approximate number of bytes, in the pieces of a long run of deleted rows.
_PIECE_ROWS = 1 << 14
_PIECE_BYTES = 16 << 20


def fragment_batches(reader: TableReader, fragment: FragmentReader, request: ScanRequest) -> Iterator[pa.RecordBatch]:
    """Scan one fragment of a version."""
    position = reader.manifest.fragment_list.position(fragment.fragment.id)
    assert position is not None
    return scan_batches(reader, replace(request, fragments=(position,)))


def physical_batches(
    snapshot: Snapshot,
    fragment: FragmentReader,
    columns: Sequence[str] | Projection | None = None,
    batch_size: int = DEFAULT_BATCH_SIZE,
) -> Iterator[pa.RecordBatch]:
    """Read all rows of a fragment in physical order, including deleted ones.

    Parameters
    ----------
    snapshot
        Version that the fragment belongs to.
    fragment
        The fragment.
    columns
        Names, which may be of system columns, or a projection; None for all columns. It must not be empty.
    batch_size
        Number of rows in every batch but the last one.

    Returns
    -------
    iterator of pyarrow.RecordBatch
        Batches of storage types, with blobs as their values. A deleted row has its stored values and a null ``_rowid``.
    """
    schema = snapshot.scanned_schema
    projection = columns if isinstance(columns, Projection) else with_stored_blobs(project(schema, columns))
    request = ScanRequest(
        schema, projection, batch_size=batch_size, strict_batch_size=True, include_deleted=True, use_statistics=False
    )
    return fragment_batches(snapshot.reader, fragment, request)


def batch_rows(fragment: FragmentReader, schema: Schema) -> int:
    """Return the number of rows of some columns of a fragment to process together."""
    share = min(len(schema.fields), 1 + len(fragment.fragment.files)) / max(len(schema.fields), 1)
    most = share_of_memory(_BATCH_BYTES, MemoryUse.BATCHES)
    rows = max(1024, min(_BATCH_ROWS, most / max(fragment.bytes_per_row * share, 1)))
    apart = blob_row_bytes(fragment, schema)
    return int(rows if not apart else max(1, min(rows, most / apart)))


def blob_row_bytes(fragment: FragmentReader, schema: Schema) -> float:
    """Return the average bytes of a row that lie outside of the data files, in blob columns of version 2."""
    tops = (top for top in schema.fields if any(is_blob_v2(node) for node in top.walk()))
    return sum(fragment.column(top).value_bytes() or 0.0 for top in tops)


def live_batches(
    snapshot: Snapshot, fragment: FragmentReader, columns: Projection, batch_size: int = _BATCH_ROWS
) -> Iterator[pa.RecordBatch]:
    """Read the live rows of a fragment in order, in storage types, in batches of at most `batch_size` rows."""
    request = ScanRequest(snapshot.scanned_schema, columns, batch_size=batch_size, use_statistics=False)
    return fragment_batches(snapshot.reader, fragment, request)


def with_deleted_rows(
    fragment: FragmentReader, schema: Schema, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Expand rows for the live rows of a fragment to rows for all its physical rows.

    Parameters
    ----------
    fragment
        The fragment.
    schema
        Schema of the returned batches.
    batches
        One row for each live row, in order.

    Returns
    -------
    iterator of pyarrow.RecordBatch
        Batches of storage types. Deleted rows repeat the live row before them, but nullable strings and binary values
        are null.

    Raises
    ------
    SchemaError
        A batch does not fit the schema.
    InvalidInputError
        The number of rows is not the number of live rows.
    """
    stored = (storage_batch(batch, schema, fill_missing=False) for batch in batches)
    if not len(fragment.deletions):
        yield from stored
        return
    done = start = 0  # live and physical rows so far
    last: pa.RecordBatch | None = None
    for batch in stored:
        if batch.num_rows == 0:
            continue
        done += batch.num_rows
        if done > fragment.num_rows:
            break
        stop = int(fragment.physical(np.array([done - 1]))[0]) + 1
        live = fragment.live_rows(start, stop)
        if live is None:
            yield batch
        else:
            yield from _spread(batch, live - start, stop - start)
        start, last = stop, batch.slice(batch.num_rows - 1)
    if done != fragment.num_rows:
        raise wrong_rows(fragment, done, fragment.num_rows, "live rows")
    dead = fragment.physical_rows - start
    if dead:
        yield from _nulls(schema, dead) if last is None else _spread(last, np.array([-1]), dead)


def _spread(batch: pa.RecordBatch, live: NDArray[np.int64], rows: int) -> Iterator[pa.RecordBatch]:
    """Place the rows of a batch at the offsets `live` of `rows` rows, and fill the rest; yield the result in pieces.

    An offset of -1 puts the row before the first one.
    """
    size = max(batch.num_rows, min(_PIECE_ROWS, batch.num_rows * _PIECE_BYTES // max(batch.nbytes, 1)))
    for start in range(0, rows, size):
        stop = min(start + size, rows)
        places = np.searchsorted(live, np.arange(start, stop), side="right") - 1
        dead = live[places] != np.arange(start, stop)
        repeated = np.maximum(places, 0)
        shown, blank = pa.array(repeated), pa.array(repeated, mask=dead)
        columns = [
            column.take(blank if field.nullable and is_binary_like(field.type) else shown)
            for column, field in zip(batch.columns, batch.schema, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _nulls(schema: Schema, rows: int) -> Iterator[pa.RecordBatch]:
    """Yield null rows for a fragment without live rows."""
    required = [field.name for field in schema.fields if not field.nullable]
    if required:
        raise UnsupportedError(
            f"all rows of a fragment are deleted, so there is no value for {required[0]!r}, which must not be null; "
            "compact the dataset first"
        )
    for start in range(0, rows, _PIECE_ROWS):
        count = min(_PIECE_ROWS, rows - start)
        columns = [pa.nulls(count, field.storage_type) for field in schema.fields]
        yield pa.RecordBatch.from_arrays(columns, schema=schema.storage_arrow)


def wrong_rows(fragment: FragmentReader, rows: int, wanted: int, what: str) -> InvalidInputError:
    """Return the error for a wrong number of rows of a fragment; `what` names the wanted rows."""
    found = "more" if rows > wanted else str(rows)
    return InvalidInputError(
        f"new columns of fragment {fragment.fragment.id} need a value for each of its {wanted} {what}, but there are "
        f"{found}"
    )
