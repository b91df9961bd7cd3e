"""Inverted files: centroids, and which rows of a file are the partition of each."""

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

#: Key of the metadata of both files of an index, for the number of the global buffer with the message.
IVF_KEY = "lance:ivf"
_MAX_ROWS = 1 << 62


@dataclass(frozen=True)
class Partitions:
    """Where partitions lie.

    Attributes
    ----------
    offsets : int64[partitions]
        First row of each.
    lengths : int64[partitions]
        Rows of each.
    """

    offsets: NDArray[np.int64]
    lengths: NDArray[np.int64]

    @classmethod
    def one_after_another(cls, lengths: NDArray[np.int64]) -> Partitions:
        """Partitions without gaps."""
        return cls(np.cumsum(lengths) - lengths, lengths)

    @classmethod
    def from_message(cls, message: vector_index_pb2.IVF, where: str) -> Partitions:
        """Those of a message, where offsets may be missing.

        Raises
        ------
        CorruptFileError
            There are not as many offsets as lengths, or one is huge.
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
        """Demand that they lie within the rows of a file, and that no two of them share rows.

        Raises
        ------
        CorruptFileError
            Naming the partition.
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
        """Ranges of partitions that lie one after the other.

        Parameters
        ----------
        rows
            A range has no more rows, except where a single partition has.

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
        As it is stored.
    partitions
        Where they lie in the file of the message.
    centroids : float or uint8 [partitions, dimension]
        None where they are not stored: those of the other file count.
    """

    message: vector_index_pb2.IVF
    partitions: Partitions
    centroids: NDArray[Any] | None

    @classmethod
    def from_message(cls, message: vector_index_pb2.IVF, where: str) -> IvfModel:
        """Check a message.

        Raises
        ------
        CorruptFileError
            Its parts contradict each other.
        """
        partitions = Partitions.from_message(message, where)
        centroids = _centroids(message, len(partitions), where)
        if centroids is not None and len(centroids) != len(partitions):
            raise CorruptFileError(f"{where}: {len(centroids)} centroids for {len(partitions)} partitions")
        return cls(message, partitions, centroids)

    @classmethod
    def decode(cls, data: bytes, where: str) -> IvfModel:
        """Read a serialized message, as `from_message`."""
        return cls.from_message(parse_message(vector_index_pb2.IVF, data, where), where)

    def encode(self, partitions: Partitions) -> bytes:
        """The message with other partitions, as many as before; the loss stays that of the rows it was made with."""
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
        raise CorruptFileError(f"{where}: {len(values)} numbers are no centroids of {count} partitions")
    return values.reshape(count, -1)
