"""Positions and counts of sparse layers, decoded only if that takes no more room than they have bytes."""

from __future__ import annotations

import abc

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError
from lance_dataset.file.structural.encodings.base import Encoding
from lance_dataset.file.v2_3.layout import StoredSequence

__all__ = ["Counts", "ListedPositions", "Positions", "open_counts", "open_positions"]

_BITS = 64
#: Sums of this many addends are exact in 64 bits as long as no addend exceeds 2**40.
_EXACT = 2**22


class Positions(abc.ABC):
    """Ascending positions of some slots of a layer.

    Attributes
    ----------
    length
        Number of positions.
    """

    length: int

    @abc.abstractmethod
    def find(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of positions before each of the slots."""

    @abc.abstractmethod
    def at(self, index: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the positions with numbers ``index[i]``, each below `length`."""

    def span(self, start: int, stop: int) -> tuple[int, int]:
        """Return the range of position numbers within slots ``[start, stop)``."""
        first, last = self.find(np.array([start, stop])).tolist()
        return first, last

    def holds(self, slots: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return, for each slot, the number of positions before it, and whether it is a position itself."""
        index = self.find(slots)
        if self.length == 0:
            return index, np.zeros(len(slots), np.bool_)
        return index, (index < self.length) & (self.at(np.minimum(index, self.length - 1)) == slots)


class _Arithmetic(Positions):
    """Positions ``start + i * step``; step is positive."""

    def __init__(self, start: int, step: int, length: int) -> None:
        self.length = length
        self._start = start
        self._step = step

    def find(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.clip(-((self._start - slots) // self._step), 0, self.length)

    def at(self, index: NDArray[np.int64]) -> NDArray[np.int64]:
        return index * self._step + self._start


class ListedPositions(Positions):
    """Explicit ascending positions."""

    def __init__(self, positions: NDArray[np.int64]) -> None:
        self.length = len(positions)
        self._positions = positions

    def find(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """See `Positions.find`."""
        return np.searchsorted(self._positions, slots)

    def at(self, index: NDArray[np.int64]) -> NDArray[np.int64]:
        """See `Positions.at`."""
        return self._positions[index]


def open_positions(stored: StoredSequence, payload: pa.Buffer | None, slots: int) -> Positions:
    """Decode and check positions below `slots`.

    Raises
    ------
    CodecError, CorruptFileError
        The positions do not ascend, leave the layer, or contradict their encoding.
    UnsupportedError
        Sequences do not have this encoding.
    """
    length, encoding = stored.length, stored.encoding.simplified(stored.length)
    if length > slots:
        raise CorruptFileError(f"{length} positions in a layer of {slots} slots")
    progression = encoding.progression(length)
    if progression is not None:
        start, step = progression
        if length == 0:
            return ListedPositions(np.empty(0, np.int64))
        if step == 0 or start + step * (length - 1) >= slots:
            raise CorruptFileError(f"{length} positions from {start} on in steps of {step} in {slots} slots")
        # A step that is never taken may have any value in the file.
        return _Arithmetic(start, step if length > 1 else 1, length)
    positions = _integers(encoding, payload, length)
    if length and not (positions.view(np.uint64).max() < slots and (np.diff(positions) > 0).all()):
        raise CorruptFileError(f"positions that do not ascend within {slots} slots")
    return ListedPositions(positions)


def _integers(encoding: Encoding, payload: pa.Buffer | None, length: int) -> NDArray[np.int64]:
    return np.frombuffer(encoding.integers(payload, length, _BITS), np.int64, length)


class Counts(abc.ABC):
    """Numbers of items of the non-empty lists."""

    @abc.abstractmethod
    def at(self, index: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of items of lists ``index[i]``."""

    @abc.abstractmethod
    def before(self, index: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the total number of items of the first ``index[i]`` lists."""


class _Runs(Counts):
    """Counts stored as runs of equal values."""

    def __init__(self, counts: NDArray[np.int64], lengths: NDArray[np.int64]) -> None:
        self._counts = counts
        self._begins = np.concatenate([[0], np.cumsum(lengths)])
        self._sums = np.concatenate([[0], np.cumsum(counts * lengths)])

    def at(self, index: NDArray[np.int64]) -> NDArray[np.int64]:
        return self._counts[self._run(index)]

    def before(self, index: NDArray[np.int64]) -> NDArray[np.int64]:
        run = self._run(index)
        return self._sums[run] + (index - self._begins[run]) * self._counts[run]

    def _run(self, index: NDArray[np.int64]) -> NDArray[np.int64]:
        run = np.searchsorted(self._begins, index, side="right") - 1
        return np.minimum(run, len(self._counts) - 1)


class _ListedCounts(Counts):
    """Explicit counts."""

    def __init__(self, counts: NDArray[np.int64]) -> None:
        self._ends = np.concatenate([[0], np.cumsum(counts)])

    def at(self, index: NDArray[np.int64]) -> NDArray[np.int64]:
        return self._ends[index + 1] - self._ends[index]

    def before(self, index: NDArray[np.int64]) -> NDArray[np.int64]:
        return self._ends[index]


def open_counts(stored: StoredSequence, payload: pa.Buffer | None, total: int) -> Counts:
    """Decode and check counts whose sum is `total`.

    Raises
    ------
    CodecError, CorruptFileError
        A count is 0, the sum is not `total`, or the counts contradict their encoding.
    UnsupportedError
        Sequences do not have this encoding.
    """
    length, encoding = stored.length, stored.encoding.simplified(stored.length)
    runs = encoding.runs(payload, length) if length else None
    counts, lengths = runs or (_integers(encoding, payload, length).view(np.uint64), None)
    if length and not (counts.min() > 0 and counts.max() <= total):
        raise CorruptFileError(f"lists of {counts.min()} to {counts.max()} items, {total} in all")
    found = _sum(counts, lengths)
    if found != total:
        raise CorruptFileError(f"lists of {found} items together instead of {total}")
    signed = counts.astype(np.int64)
    return _ListedCounts(signed) if lengths is None else _Runs(signed, lengths.astype(np.int64))


def _sum(counts: NDArray[np.uint64], lengths: NDArray[np.uint64] | None) -> int:
    """Return the exact sum of counts up to 2**40 (times lengths up to 2**40)."""
    if lengths is not None:
        return sum(count * length for count, length in zip(counts.tolist(), lengths.tolist(), strict=True))
    return sum(int(counts[at : at + _EXACT].sum()) for at in range(0, len(counts), _EXACT))
