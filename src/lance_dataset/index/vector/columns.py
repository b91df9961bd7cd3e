"""The vector index that searches of a column use: its metric, and the fragments that it covers."""

from __future__ import annotations

from dataclasses import dataclass

from lance_dataset._proto import vector_index_pb2
from lance_dataset.errors import CorruptFileError
from lance_dataset.index.segments import Segment, index_segments
from lance_dataset.index.vector.statistics import vector_details
from lance_dataset.index.vector.storage import METRICS
from lance_dataset.read.table_reader import TableReader
from lance_dataset.table.messages import parse_message

__all__ = ["ColumnIndex", "column_index"]


@dataclass(frozen=True)
class ColumnIndex:
    """Vector index of a column.

    Attributes
    ----------
    name
        Name of the index.
    metric
        Its metric.
    fragment_ids
        Existing fragments that it covers.
    """

    name: str
    metric: str
    fragment_ids: frozenset[int]


def column_index(reader: TableReader, field_id: int) -> ColumnIndex | None:
    """Return the first vector index of a column; None without any.

    Parameters
    ----------
    reader
        The version.
    field_id
        Id of the field of the vectors, or of the lists of vectors.

    Raises
    ------
    CorruptFileError, MissingFileError, UnsupportedError
        The list of indices, or a file of an index whose metric the list does not tell, cannot be read.
    """
    if not reader.manifest.index_section:
        return None
    segments = [segment for segment in index_segments(reader) if _is_of(segment, field_id)]
    if not segments:
        return None
    mine = [segment for segment in segments if segment.name == segments[0].name]
    covered = frozenset[int]().union(*(segment.fragment_ids for segment in mine))
    return ColumnIndex(mine[0].name, _metric(mine[0]), covered)


def _is_of(segment: Segment, field_id: int) -> bool:
    if tuple(segment.metadata.fields) != (field_id,):
        return False
    return segment.kind == "vector" or (segment.metadata.details is None and segment.is_of_vectors)


def _metric(segment: Segment) -> str:
    details = segment.metadata.details
    if details is not None and details.value:
        where = f"details of the index {segment.name!r}"
        number = parse_message(vector_index_pb2.VectorIndexDetails, details.value, where).metric_type
    else:
        number = vector_details(segment.folder).metric_type
    if not 0 <= number < len(METRICS):
        raise CorruptFileError(f"the index {segment.name!r} has an unknown metric {number}")
    return METRICS[number]
