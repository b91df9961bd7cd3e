"""Inverted files: centroids, and the range of rows of each partition in a file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_dataset._proto import vector_index_pb2
from lance_dataset.errors import CorruptFileError
from lance_dataset.index.vector.tensors import decode_tensor
from lance_dataset.table.messages import parse_message

__all__ = ["IVF_KEY", "IvfModel", "Partitions"]

#: Metadata key, in both files of an index, of the number of the global buffer with the message.
IVF_KEY = "lance:ivf"
_MAX_ROWS = 1 << 62


@dataclass(frozen=True)
class Partitions:
    """Ranges of rows of partitions.

    Attributes
    ----------
    offsets : int64[partitions]
        First row of each partition.
    lengths : int64[partitions]
        Number of rows of each partition.
    """

    offsets: NDArray[np.int64]
    lengths: NDArray[np.int64]

    @classmethod
    def one_after_another(cls, lengths: NDArray[np.int64]) -> Partitions:
        """Return partitions without gaps."""
        return cls(np.cumsum(lengths) - lengths, lengths)

    @classmethod
    def from_message(cls, message: vector_index_pb2.IVF, where: str) -> Partitions:
        """Return the partitions of a message, where offsets may be missing.

        Raises
        ------
        CorruptFileError
            The numbers of offsets and lengths differ, or an offset is huge.
        """
        lengths = np.array(message.lengths, np.int64)
        if not message.offsets:
            return cls.one_after_another(lengths)
        if len(message.offsets) != len(lengths):
            raise CorruptFileError(f"{where}: {len(message.offsets)} offsets for {len(lengths)} partitions")
        offsets = np.array(message.offsets, np.uint64)
        if len(offsets) and int(offsets.max()) > _MAX_ROWS:
            raise CorruptFileError(f"{where}: the offset {int(offsets.max())} of a partition is out of range")
        return cls(offsets.astype(np.int64), lengths)

    def __len__(self) -> int:
        return len(self.lengths)

    def check_inside(self, rows: int, where: str) -> None:
        """Check that the partitions lie within the rows of a file, and that they do not overlap.

        Raises
        ------
        CorruptFileError
            A partition ends after the last row, or shares rows with another. The message names it.
        """
        ends = self.offsets + self.lengths
        beyond = np.flatnonzero(ends > rows)
        if len(beyond):
            place = int(beyond[0])
            raise CorruptFileError(f"{where}: partition {place} ends at row {int(ends[place])} of {rows}")
        filled = np.flatnonzero(self.lengths)
        order = filled[np.argsort(self.offsets[filled], kind="stable")]
        shared = np.flatnonzero(self.offsets[order[1:]] < ends[order[:-1]])
        if len(shared):
            first, second = order[shared[0]], order[shared[0] + 1]
            raise CorruptFileError(f"{where}: the partitions {int(first)} and {int(second)} share rows")

    def runs(self, rows: int) -> Iterator[tuple[int, int]]:
        """Yield ranges of partitions that are adjacent in the file.

        Parameters
        ----------
        rows
            Maximum number of rows in a range, unless a single partition has more.

        Yields
        ------
        first, stop
            Numbers of partitions, in order.
        """
        first, total = 0, 0
        for place, length in enumerate(self.lengths.tolist()):
            adjoins = place > first and self.offsets[place] == self.offsets[place - 1] + self.lengths[place - 1]
            if place > first and (not adjoins or total + length > rows):
                yield first, place
                first, total = place, 0
            total += length
        if first < len(self):
            yield first, len(self)


@dataclass(frozen=True)
class IvfModel:
    """Centroids and partitions.

    Attributes
    ----------
    message
        The stored message.
    partitions
        Their rows in the file of the message.
    centroids : float or uint8 [partitions, dimension]
        None if they are not stored; those of the other file apply.
    """

    message: vector_index_pb2.IVF
    partitions: Partitions
    centroids: NDArray[Any] | None

    @classmethod
    def from_message(cls, message: vector_index_pb2.IVF, where: str) -> IvfModel:
        """Check a message and build the model.

        Raises
        ------
        CorruptFileError
            Parts of the message contradict each other.
        """
        partitions = Partitions.from_message(message, where)
        centroids = _centroids(message, len(partitions), where)
        if centroids is not None and len(centroids) != len(partitions):
            raise CorruptFileError(f"{where}: {len(centroids)} centroids for {len(partitions)} partitions")
        return cls(message, partitions, centroids)

    @classmethod
    def decode(cls, data: bytes, where: str) -> IvfModel:
        """Parse a serialized message, like `from_message`."""
        return cls.from_message(parse_message(vector_index_pb2.IVF, data, where), where)

    def encode(self, partitions: Partitions) -> bytes:
        """Serialize the message with the same number of other partitions; the loss stays that of the original rows."""
        changed = vector_index_pb2.IVF()
        changed.CopyFrom(self.message)
        changed.ClearField("offsets")
        changed.ClearField("lengths")
        changed.offsets.extend(partitions.offsets.tolist())
        changed.lengths.extend(partitions.lengths.tolist())
        return changed.SerializeToString()


def _centroids(message: vector_index_pb2.IVF, count: int, where: str) -> NDArray[Any] | None:
    if message.HasField("centroids_tensor"):
        return decode_tensor(message.centroids_tensor, where)
    values = np.array(message.centroids, np.float32)
    if not len(values):
        return None
    if not count or len(values) % count:
        raise CorruptFileError(f"{where}: {len(values)} numbers cannot be centroids of {count} partitions")
    return values.reshape(count, -1)
