"""Partitions of vector indices: their centroids, their sizes and the rows they hold."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from lance_dataset.arguments import checked_integer
from lance_dataset.errors import IndexNotFoundError, InvalidInputError
from lance_dataset.index.segments import Segment, segments_named
from lance_dataset.index.vector.contents import StoredSegment, stored_segments
from lance_dataset.read.shown import Shown

if TYPE_CHECKING:
    from lance_dataset.api.dataset.dataset import LanceDataset

__all__ = [
    "VectorIndexReader",
    "check_bits",
    "checked_id",
    "checked_partition",
    "chosen_segments",
    "get_ivf_partition_info",
]


class VectorIndexReader:
    """Reader of the partitions of a vector index, as its files hold them.

    Rows that were deleted since are still there, and codes are in the layout of the file.

    Parameters
    ----------
    dataset
        The dataset.
    index_name
        Name of the index.

    Raises
    ------
    KeyError
        There is no such index (an `IndexNotFoundError`).
    ValueError
        It is not an index of vectors, or not trained.
    """

    def __init__(self, dataset: LanceDataset, index_name: str) -> None:
        self.dataset = dataset
        self.index_name = index_name
        self._segments = stored_segments(segments_named(dataset.snapshot.reader, index_name))

    def num_partitions(self) -> int:
        """Return the number of partitions of the first segment."""
        return len(self._segments[0].lengths)

    def read_partition(self, partition_id: int, *, with_vector: bool = False) -> pa.Table:
        """Read the partition of this number of every segment.

        Parameters
        ----------
        partition_id
            Number of the partition.
        with_vector
            True for the stored vectors or codes, too.

        Returns
        -------
        pyarrow.Table
            ``_rowid`` and the columns of the files.

        Raises
        ------
        IndexError
            There is no such partition.
        CorruptFileError
            The files cannot be read.
        """
        count = self.num_partitions()
        if not 0 <= partition_id < count:
            raise IndexError(f"Partition id {partition_id} is out of range, expected 0 <= partition_id < {count}")
        mine = [segment for segment in self._segments if partition_id < len(segment.lengths)]
        first, *others = (segment.read(partition_id, with_vectors=bool(with_vector)) for segment in mine)
        return pa.concat_tables([first, *(other.select(first.column_names).cast(first.schema) for other in others)])


def get_ivf_partition_info(
    dataset: LanceDataset, index_name: str, *, index_segments: Iterable[str | uuid.UUID] | None = None
) -> list[dict[str, int]]:
    """Return the sizes of the partitions of an index of bit vectors.

    Parameters
    ----------
    dataset
        The dataset.
    index_name
        Name of an index of a column of fixed-size lists of uint8, whose size is a multiple of 8.
    index_segments
        Ids of the segments to count; None for all.

    Returns
    -------
    list of dict
        ``partition_id`` and ``size``, the number of rows, for each partition.

    Raises
    ------
    ValueError
        There is no such index or segment, or it is of another type.
    """
    segments = stored_segments(chosen_segments(dataset, index_name, index_segments))
    sizes = np.zeros(max(len(segment.lengths) for segment in segments), np.int64)
    for segment in segments:
        sizes[: len(segment.lengths)] += segment.lengths
    return [{"partition_id": number, "size": size} for number, size in enumerate(sizes.tolist())]


def chosen_segments(dataset: Shown, index_name: str, index_segments: Iterable[str | uuid.UUID] | None) -> list[Segment]:
    """Return the segments of an index of bit vectors, or some of them.

    Raises
    ------
    TypeError, InvalidInputError
        There is no such index or segment, none is chosen, or the index is of another type.
    """
    try:
        segments = segments_named(dataset.snapshot.reader, index_name)
    except IndexNotFoundError:
        raise InvalidInputError(f"Index {index_name!r} not found on dataset") from None
    for column in segments[0].column_names:
        check_bits(dataset, column)
    if index_segments is None:
        return segments
    if isinstance(index_segments, str | uuid.UUID):
        raise TypeError(
            f"index_segments must be an iterable of str or uuid.UUID, not a single {type(index_segments).__name__}"
        )
    wanted = [checked_id(each) for each in index_segments]
    if not wanted:
        raise InvalidInputError(
            f"Segment selection for index {index_name!r} must not be empty; omit index_segments to use all segments"
        )
    unknown = set(wanted) - {segment.metadata.uuid for segment in segments}
    if unknown:
        raise InvalidInputError(f"index {index_name!r} has no segment {min(unknown)}")
    return [segment for segment in segments if segment.metadata.uuid in wanted]


def checked_id(given: object) -> str:
    """Return the id of a segment as text."""
    try:
        return str(uuid.UUID(str(given)))
    except ValueError:
        raise InvalidInputError(f"invalid index segment uuid {given!r}") from None


def check_bits(dataset: Shown, column: str) -> int:
    """Return the number of bytes of the vectors of a column; raise InvalidInputError unless they are multiples of 8."""
    field = {name: each for each, name in dataset.snapshot.manifest.schema.paths_by_id()}.get(column)
    if field is None:
        raise InvalidInputError(f"Column {column!r} not found in dataset schema")
    kind: Any = dataset.snapshot.manifest.schema.by_id[field].storage_type
    if not pa.types.is_fixed_size_list(kind) or kind.value_type != pa.uint8() or kind.list_size % 8:
        raise InvalidInputError(
            f"Column {column!r} must be FixedSizeList<UInt8, N> where N is a positive multiple of 8 bytes, got {kind}"
        )
    return int(kind.list_size)


def checked_partition(segments: list[StoredSegment], partition_id: object) -> int:
    """Return the number of a partition of any of some segments.

    Raises
    ------
    TypeError, OutOfRangeError, InvalidInputError
        There is no such partition.
    """
    number, count = checked_integer("partition_id", partition_id), max(len(segment.lengths) for segment in segments)
    if number >= count:
        raise InvalidInputError(f"Partition ID {number} is out of range (0..{count})")
    return number
