"""Rows as spans: consecutive values of one page each. A range of rows is one span per batch, a take one per row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.file.buffers import allocate, octets
from lance_dataset.file.cache import lazy
from lance_dataset.io.base import InputFile

__all__ = ["RowSpans", "Spans", "fetch", "release"]

#: Fewer bytes are not worth a system call.
_RELEASE_BYTES = 256 << 10


class Spans:
    """Values ``[starts[i], starts[i] + counts[i])`` of the page of batch ``batches[i]``, one span after another.

    Parameters
    ----------
    batches, starts, counts
        int64 arrays of one length; no count is 0.
    total
        Sum of `counts`.
    is_range
        Whether no value occurs twice.
    """

    #: The rows, where each span is one row of a file.
    rows: NDArray[np.int64] | None = None

    def __init__(
        self,
        batches: NDArray[np.int64],
        starts: NDArray[np.int64],
        counts: NDArray[np.int64],
        total: int,
        *,
        is_range: bool,
    ) -> None:
        self.batches = batches
        self.starts = starts
        self.counts = counts
        self.total = total
        self.is_range = is_range

    @property
    def length(self) -> int:
        """Number of spans."""
        return len(self.counts)

    @classmethod
    def of_range(cls, batch_offsets: NDArray[np.int64], start: int, stop: int) -> Spans:
        """Rows ``[start, stop)`` of a file whose batches start at these rows."""
        first, end = 0, 0
        if start < stop:
            first = int(batch_offsets.searchsorted(start, "right")) - 1
            end = int(batch_offsets.searchsorted(stop, "left"))
        lower, upper = batch_offsets[first:end], batch_offsets[first + 1 : end + 1]
        begins = np.maximum(lower, start)
        counts = np.minimum(upper, stop) - begins
        return Spans(
            np.arange(first, end), begins - lower, counts, max(stop - start, 0), is_range=True
        )._without_empty()

    def items(self, starts: NDArray[np.int64], counts: NDArray[np.int64], total: int) -> Spans:
        """Items of the lists that these spans are, so many from `starts` on for each span."""
        return Spans(self.batches, starts, counts, total, is_range=self.is_range)._without_empty()

    def most_repeats(self) -> int:
        """How often the same values occur at most."""
        if self.is_range or self.length == 0:
            return 1
        _, counts = np.unique(np.stack([self.batches, self.starts]), axis=1, return_counts=True)
        return int(counts.max())

    def _without_empty(self) -> Spans:
        some = self.counts > 0
        if some.all():
            return self
        return Spans(self.batches[some], self.starts[some], self.counts[some], self.total, is_range=self.is_range)


class RowSpans(Spans):
    """Single rows of a file, in any order. Which batch they are in is found out when somebody asks.

    Parameters
    ----------
    batch_offsets
        int64, first row of each batch, and the number of rows.
    rows
        The rows.
    """

    def __init__(self, batch_offsets: NDArray[np.int64], rows: NDArray[np.int64]) -> None:
        self.rows = self._rows = rows
        self.counts = np.ones(len(rows), np.int64)
        self.total = len(rows)
        self.is_range = False
        self._batch_offsets = batch_offsets

    @lazy
    def batches(self) -> NDArray[np.int64]:  # type: ignore[override]
        """Batch of each row."""
        return self._batch_offsets.searchsorted(self._rows, "right") - 1

    @lazy
    def starts(self) -> NDArray[np.int64]:  # type: ignore[override]
        """Number of each row in its batch."""
        return self._rows - self._batch_offsets[self.batches]


def fetch(
    source: InputFile, positions: NDArray[np.int64], sizes: NDArray[np.int64]
) -> tuple[pa.Buffer, NDArray[np.int64]]:
    """A buffer with the bytes of these ranges, and where each of them starts in it.

    For a mapped file that is the mapping, for others the ranges one after another.

    Raises
    ------
    CorruptFileError
        A range is not inside a file that is not mapped; ranges of a mapped one are for the caller to check.
    """
    mapped = source.mapped
    if mapped is not None:
        return mapped, positions
    ranges = [(start, size) for start, size in zip(positions.tolist(), sizes.tolist(), strict=True) if size]
    return _joined(source.read_ranges(ranges)), np.cumsum(sizes) - sizes


def release(source: InputFile, positions: NDArray[np.int64], sizes: NDArray[np.int64]) -> None:
    """Let go of ranges of a mapped file that were copied: those that are large, or all between them if that is most."""
    if source.mapped is None or len(sizes) == 0:
        return
    first, size = int(positions[0]), int(positions[-1] + sizes[-1] - positions[0])
    if _RELEASE_BYTES <= size <= 2 * int(sizes.sum()):
        source.discard(first, size)
        return
    for place in np.flatnonzero(sizes >= _RELEASE_BYTES).tolist():
        source.discard(int(positions[place]), int(sizes[place]))


def _joined(parts: Sequence[pa.Buffer]) -> pa.Buffer:
    if len(parts) == 1:
        return parts[0]
    joined = allocate(sum(part.size for part in parts))
    view, end = octets(joined), 0
    for part in parts:
        view[end : end + part.size] = octets(part)
        end += part.size
    return joined
