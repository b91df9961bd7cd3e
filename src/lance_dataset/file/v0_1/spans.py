"""Rows as spans, which are consecutive values of a page. A range has one span per batch, a take one per row."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.file.buffers import allocate, octets
from lance_dataset.io.base import InputFile
from lance_dataset.properties import cached_property
from lancecodec import CodecError
from lancecodec.blocks import FileBlocks, Held

__all__ = ["RowSpans", "Spans", "fetch", "release"]

#: Ranges of fewer bytes are not worth a system call.
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
        True if no value occurs twice.
    """

    #: The row numbers, if each span is one row of a file.
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
        """Return spans of rows ``[start, stop)`` of a file with these batch starts."""
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
        """Return spans of the items of these lists, `counts` values from `starts` for each span."""
        return Spans(self.batches, starts, counts, total, is_range=self.is_range)._without_empty()

    def most_repeats(self) -> int:
        """Return the maximum number of times that a value occurs."""
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
    """Single rows of a file, in any order. Their batches are looked up on demand.

    Parameters
    ----------
    batch_offsets
        int64, first row of each batch, and the number of rows.
    rows
        The row numbers.
    """

    def __init__(self, batch_offsets: NDArray[np.int64], rows: NDArray[np.int64]) -> None:
        self.rows = self._rows = rows
        self.counts = np.ones(len(rows), np.int64)
        self.total = len(rows)
        self.is_range = False
        self._batch_offsets = batch_offsets

    @cached_property
    def batches(self) -> NDArray[np.int64]:  # type: ignore[override]
        """Batch of each row."""
        return self._batch_offsets.searchsorted(self._rows, "right") - 1

    @cached_property
    def starts(self) -> NDArray[np.int64]:  # type: ignore[override]
        """Number of each row in its batch."""
        return self._rows - self._batch_offsets[self.batches]


def fetch(
    source: InputFile, positions: NDArray[np.int64], sizes: NDArray[np.int64], blocks: FileBlocks | None = None
) -> tuple[pa.Buffer, NDArray[np.int64], Held | None]:
    """Return a buffer with the bytes of these ranges, the start of each range in it, and what keeps them in memory.

    For a mapped file, the buffer is the mapping. For others, it has all bytes between the ranges, the blocks of the
    file, or the concatenated ranges.

    Parameters
    ----------
    positions, sizes
        The ranges.
    blocks
        Blocks of the file if the ranges are single rows.

    Raises
    ------
    CorruptFileError
        A range lies outside a file that is not mapped. For a mapped file, the caller checks the ranges.
    """
    mapped = source.mapped
    if mapped is not None:
        return mapped, positions, None
    if blocks is None and len(sizes) > 1:
        first, size = int(positions.min()), int((positions + sizes).max() - positions.min())
        if size <= 2 * int(sizes.sum()) and first >= 0:
            return source.read(first, size), positions - first, None
    if blocks is not None:
        with suppress(CodecError):  # reported below, with the place
            return pa.py_buffer(blocks), positions, blocks.hold(np.ascontiguousarray(positions), positions + sizes)
    ranges = [(start, size) for start, size in zip(positions.tolist(), sizes.tolist(), strict=True) if size]
    return _joined(source.read_ranges(ranges)), np.cumsum(sizes) - sizes, None


def release(source: InputFile, positions: NDArray[np.int64], sizes: NDArray[np.int64]) -> None:
    """Release copied ranges of a mapped file: each large one, or everything between them if that is most of it."""
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
