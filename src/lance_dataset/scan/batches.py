"""Record batches from columns whose chunks end at different rows."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise, repeat

import pyarrow as pa

from lance_dataset.limits import UNLIMITED, ResultLimit
from lance_dataset.read.concatenate import UnjoinableError, join_arrays
from lance_dataset.read.empty_batches import rows_only

__all__ = ["aligned_batches", "exact_batches", "limited_batches", "sized_batches"]


def aligned_batches(
    columns: Sequence[Sequence[pa.Array]], schema: pa.Schema, batch_size: int
) -> Iterator[pa.RecordBatch]:
    """Cut chunked columns into batches whose lengths, except the last, are multiples of `batch_size`.

    Rows are copied only for batches that a chunk boundary falls into. If the chunks of such a batch cannot be joined
    into one array, the rows come as several shorter batches.

    Parameters
    ----------
    columns
        Non-empty chunks of every column. There is at least one column, and all have the same number of rows.
    """
    if all(len(chunks) == 1 for chunks in columns):
        yield pa.RecordBatch.from_arrays([chunks[0] for chunks in columns], schema=schema)
        return
    starts = [[0, *accumulate(map(len, chunks))] for chunks in columns]
    length = starts[0][-1]
    inner = sorted(set().union(*(places[1:-1] for places in starts)))
    ends = {0, length}
    for place in inner:
        first = place - place % batch_size
        ends.update((first, min(first + batch_size, length)) if first < place else (place,))
    readers = [_Chunks(chunks, places, field) for chunks, places, field in zip(columns, starts, schema, strict=True)]
    for first, stop in pairwise(sorted(ends)):
        try:
            yield _batch(readers, schema, first, stop)
        except UnjoinableError:
            cuts = [first, *(place for place in inner if first < place < stop), stop]
            for low, high in pairwise(cuts):
                yield _batch(readers, schema, low, high)


class _Chunks:
    """Chunks of a column, cut at ascending places.

    Parameters
    ----------
    chunks
        The chunks.
    starts
        Row at which each chunk starts, then the number of rows.
    field
        Name and type of the column.
    """

    def __init__(self, chunks: Sequence[pa.Array], starts: Sequence[int], field: pa.Field) -> None:
        self._chunks = chunks
        self._starts = starts
        self._field = field

    def range(self, first: int, stop: int) -> pa.Array:
        """Return rows ``[first, stop)``, without a copy if they lie in one chunk."""
        low = bisect_right(self._starts, first) - 1
        base, end = self._starts[low], self._starts[low + 1]
        if stop <= end:
            chunk = self._chunks[low]
            return chunk if stop - first == end - base else chunk.slice(first - base, stop - first)
        pieces = []
        while first < stop:
            base, end = self._starts[low], self._starts[low + 1]
            pieces.append(self._chunks[low].slice(first - base, min(stop, end) - first))
            first, low = end, low + 1
        return join_arrays(pieces, self._field.type, self._field.name)


def _batch(columns: Sequence[_Chunks], schema: pa.Schema, first: int, stop: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([column.range(first, stop) for column in columns], schema=schema)


def exact_batches(
    pieces: Iterator[pa.RecordBatch], batch_size: int, limit: ResultLimit = UNLIMITED
) -> Iterator[pa.RecordBatch]:
    """Re-cut a stream into batches of exactly `batch_size` rows, except for the last. See `sized_batches`."""
    return sized_batches(pieces, repeat(batch_size), limit)


def limited_batches(pieces: Iterable[pa.RecordBatch], limit: ResultLimit) -> Iterator[pa.RecordBatch]:
    """Cut the batches of a stream that are larger than the limit of a result.

    Raises
    ------
    MemoryLimitError
        A single row is larger.
    """
    for piece in pieces:
        waiting = [piece]
        while waiting:
            batch = waiting.pop()
            if limit.max_bytes is None or batch.nbytes <= limit.max_bytes:
                yield batch
                continue
            if batch.num_rows < 2:
                limit.check(batch.nbytes, "a single row")
            middle = batch.num_rows // 2
            waiting += [batch.slice(middle), batch.slice(0, middle)]


def sized_batches(
    pieces: Iterable[pa.RecordBatch], sizes: Iterable[int], limit: ResultLimit = UNLIMITED
) -> Iterator[pa.RecordBatch]:
    """Re-cut a stream into batches of the given sizes, each at least one; the last batch may be shorter.

    Rows beyond the given sizes form one more batch.

    Raises
    ------
    MemoryLimitError
        A batch is larger than `limit`.
    """
    left = iter(sizes)
    size = next(left, None)
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for piece in pieces:
        while piece.num_rows:
            part = piece if size is None else piece.slice(0, size - rows)
            piece = piece.slice(part.num_rows)
            waiting.append(part)
            rows += part.num_rows
            if limit.max_bytes is not None:
                limit.check(sum(each.nbytes for each in waiting), f"a batch of {rows:,} rows or more")
            if rows == size:
                yield _joined(waiting)
                waiting, rows, size = [], 0, next(left, None)
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
