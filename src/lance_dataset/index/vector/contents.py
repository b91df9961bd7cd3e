"""Contents of the segments of vector indices, as they are stored: centroids and partitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import InvalidInputError
from lance_dataset.index.files import IndexFolder
from lance_dataset.index.segments import Segment
from lance_dataset.index.vector.index_file import INDEX_FILE, VectorIndexFile
from lance_dataset.index.vector.legacy import LegacyVectorIndex, is_legacy
from lance_dataset.index.vector.quantizers import FlatVectors
from lance_dataset.index.vector.storage import METRICS, ROW_ID, STORAGE_FILE, VectorStorage, column_numbers

__all__ = ["StoredSegment", "is_of_vectors", "stored_segments"]


class StoredSegment(Protocol):
    """Files of one segment of a vector index.

    Attributes
    ----------
    metric
        ``l2``, ``cosine``, ``dot`` or ``hamming``.
    centroids : [partitions, dimension]
    lengths : int64[partitions]
        Numbers of rows.
    """

    metric: str
    centroids: NDArray[Any]
    lengths: NDArray[np.int64]

    def read(self, partition: int, *, with_vectors: bool) -> pa.Table:
        """Read the rows of a partition as they are stored: their ids and, if asked for, vectors or codes."""

    def vectors(self, partition: int) -> tuple[NDArray[Any], NDArray[np.uint64]] | None:
        """Return the vectors ``[rows, dimension]`` and row ids of a partition; None if codes stand for them."""


def stored_segments(segments: Sequence[Segment]) -> list[StoredSegment]:
    """Open the segments of an index, except those that were never trained.

    Raises
    ------
    InvalidInputError
        It is not an index of vectors, or not trained.
    CorruptFileError, MissingFileError, UnsupportedError
        A file cannot be read.
    """
    name = segments[0].name
    trained = [segment for segment in segments if segment.recorded]
    if not all(is_of_vectors(segment) for segment in segments):
        raise InvalidInputError(f"Index {name} is not vector index")
    if not trained:
        raise InvalidInputError(f"Index {name} is not vector index: it was not trained yet; optimize it")
    return [_opened(segment.folder) for segment in trained]


def is_of_vectors(segment: Segment) -> bool:
    """Return True if a segment is one of a vector index; looks at its files if an old release did not record it."""
    if segment.kind is not None:
        return segment.kind == "vector"
    return segment.is_of_vectors and INDEX_FILE in segment.folder.names()


def _opened(folder: IndexFolder) -> StoredSegment:
    file = folder.open_input(INDEX_FILE)
    if is_legacy(file):
        return _LegacySegment(LegacyVectorIndex.open(file, folder.uri(INDEX_FILE)))
    return _LanceSegment(folder)


class _LanceSegment:
    def __init__(self, folder: IndexFolder) -> None:
        main = VectorIndexFile(folder.open(INDEX_FILE))
        self._storage = VectorStorage(folder.open(STORAGE_FILE), main.family)
        main.check_storage(self._storage)
        if main.ivf.centroids is None:
            raise main.table.corrupt("has no centroids")
        self.metric = main.distance
        self.centroids = main.ivf.centroids
        self.lengths = self._storage.ivf.partitions.lengths

    def read(self, partition: int, *, with_vectors: bool) -> pa.Table:
        batch = self._read(partition, None if with_vectors else [ROW_ID])
        return pa.Table.from_batches([batch.replace_schema_metadata(self._storage.table.metadata)])

    def _read(self, partition: int, columns: list[str] | None) -> pa.RecordBatch:
        start = int(self._storage.ivf.partitions.offsets[partition])
        batch = self._storage.table.read(start, start + int(self.lengths[partition]), columns)
        self._storage.check_valid(batch)
        return batch

    def vectors(self, partition: int) -> tuple[NDArray[Any], NDArray[np.uint64]] | None:
        if not isinstance(self._storage.quantizer, FlatVectors):
            return None
        batch = self._read(partition, [ROW_ID, self._storage.quantizer.code_column])
        return column_numbers(batch.column(1)), np.asarray(batch.column(0))


class _LegacySegment:
    def __init__(self, index: LegacyVectorIndex) -> None:
        if index.ivf.centroids is None:
            raise InvalidInputError(f"{index.where}: has no centroids")
        self._index = index
        self.metric = METRICS[index.message.vector_index.metric_type]
        self.centroids = index.ivf.centroids
        self.lengths = index.ivf.partitions.lengths

    def read(self, partition: int, *, with_vectors: bool) -> pa.Table:
        codes, ids = self._index.read(partition)
        columns: dict[str, Any] = {ROW_ID: pa.array(ids)}
        if with_vectors:
            columns["__pq_code"] = pa.FixedSizeListArray.from_arrays(
                pa.array(np.ascontiguousarray(codes).reshape(-1)), self._index.code_bytes
            )
        return pa.table(columns)

    def vectors(self, partition: int) -> tuple[NDArray[Any], NDArray[np.uint64]] | None:
        return None
