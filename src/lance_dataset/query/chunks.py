"""Columns in chunks, cut differently each, as record batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, repeat

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.query.join import UnjoinableError, join_arrays
from lance_dataset.query.shapes import rows_only

__all__ = ["aligned_batches", "exact_batches", "sized_batches"]


def aligned_batches(
    columns: Sequence[Sequence[pa.Array]], schema: pa.Schema, batch_size: int
) -> Iterator[pa.RecordBatch]:
    """Rows of columns in chunks as batches whose lengths (the last one apart) are multiples of `batch_size`.

    Only rows of batches that a chunk ends inside are copied. Where the chunks of such a batch cannot become one array,
    it comes in several shorter ones.

    Parameters
    ----------
    columns
        Non-empty chunks of every column (there is at least one), all columns having the same number of rows.
    """
    starts = [np.cumsum([0, *(len(chunk) for chunk in chunks)]) for chunks in columns]
    length = int(starts[0][-1])
    inner = np.unique(np.concatenate([places[1:-1] for places in starts]))
    crossed = np.unique(inner[inner % batch_size != 0] // batch_size) * batch_size
    at_ends = inner[inner % batch_size == 0]
    ends = np.unique(np.concatenate([[0, length], at_ends, crossed, np.minimum(crossed + batch_size, length)]))
    for first, stop in pairwise(ends.tolist()):
        try:
            yield _batch(columns, starts, schema, first, stop)
        except UnjoinableError:
            cuts = [first, *inner[(inner > first) & (inner < stop)].tolist(), stop]
            for low, high in pairwise(cuts):
                yield _batch(columns, starts, schema, low, high)


def _batch(
    columns: Sequence[Sequence[pa.Array]],
    starts: Sequence[NDArray[np.int64]],
    schema: pa.Schema,
    first: int,
    stop: int,
) -> pa.RecordBatch:
    arrays = [
        _range(chunks, places, first, stop, field)
        for chunks, places, field in zip(columns, starts, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _range(chunks: Sequence[pa.Array], starts: NDArray[np.int64], first: int, stop: int, field: pa.Field) -> pa.Array:
    """Rows ``[first, stop)``, not copied if one chunk has them."""
    low = int(np.searchsorted(starts, first, side="right")) - 1
    pieces = []
    while first < stop:
        base, end = int(starts[low]), int(starts[low + 1])
        pieces.append(chunks[low].slice(first - base, min(stop, end) - first))
        first, low = end, low + 1
    return join_arrays(pieces, field.type, field.name)


def exact_batches(pieces: Iterator[pa.RecordBatch], batch_size: int) -> Iterator[pa.RecordBatch]:
    """Re-cut a stream into batches of exactly `batch_size` rows, but for the last."""
    return sized_batches(pieces, repeat(batch_size))


def sized_batches(pieces: Iterable[pa.RecordBatch], sizes: Iterable[int]) -> Iterator[pa.RecordBatch]:
    """Re-cut a stream into batches of exactly these rows, each at least one; the last may have fewer.

    What the sizes do not cover comes as one more batch.
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
