"""Recall of new vector indices, measured before they are committed and kept in their details."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lance_dataset.changes.indexing.segments import default_memory_limit
from lance_dataset.index.segments import Segment
from lance_dataset.index.vector.recall_curve import RecallCurve, details_with_curve
from lance_dataset.index.vector.searching.open_indices import OpenVectorIndex
from lance_dataset.index.vector.searching.segment import OpenVectorSegment
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.scan.nearest.recall import index_curve
from lance_dataset.scan.nearest.search import VectorColumn
from lance_dataset.table.index_metadata import IndexMetadata
from lance_dataset.table.indices.coverage import has_reliable_coverage, kind_of_details
from lance_dataset.table.indices.reuse import find_reuse_index

__all__ = ["with_curve"]

#: Rows to find in the searches that are measured: what searches find unless they say.
_K = 10
#: Rows below which a search measures in no time what it needs.
_LEAST_ROWS = 20_000
#: Part of the time of a build that measuring may take.
_SHARE = 0.1


def with_curve(
    snapshot: Snapshot,
    made: IndexMetadata,
    staying: Sequence[Segment] = (),
    *,
    seconds: float,
    memory_limit: int | None = None,
) -> IndexMetadata:
    """Return a new segment of an index with the recall of searches of the index in its details.

    Only large tables whose vectors fit in the memory limit are measured, and only if that takes a small part of the
    time of the build; others are when a search asks for a recall. A curve of former models in the details is dropped.

    Parameters
    ----------
    snapshot
        Version that the segment was built of.
    made
        The segment, of an index of any kind. Its files are written.
    staying
        Other segments of the index.
    seconds
        Time that the build of the segment took.
    memory_limit
        Maximum number of bytes to work with, approximately; None for a quarter of the memory of the machine.
    """
    details = made.details
    if details is None or kind_of_details(details.type_url) != "vector":
        return made
    limit = default_memory_limit() if memory_limit is None else memory_limit
    curve = _curve(snapshot, made, staying, _SHARE * seconds, limit) if made.files else None
    return replace(made, details=replace(details, value=details_with_curve(details.value, curve)))


def _curve(
    snapshot: Snapshot, made: IndexMetadata, staying: Sequence[Segment], seconds: float, memory_limit: int
) -> RecallCurve | None:
    if not has_reliable_coverage(snapshot.manifest) or find_reuse_index(snapshot.manifest) is not None:
        return None
    names = dict(snapshot.manifest.schema.paths_by_id())
    column = VectorColumn.of(snapshot.scanned_schema, names[made.fields[0]])
    segments = [Segment(snapshot.reader, made, "vector"), *(each for each in staying if each.fragment_ids)]
    rows = sum(each.num_rows for each in segments)
    size = rows * column.dimension * column.width + sum(file.size_bytes for file in made.files)
    if column.is_lists or rows < _LEAST_ROWS or size > memory_limit:
        return None
    index = OpenVectorIndex(made.name, tuple(OpenVectorSegment(each, None) for each in segments))
    return None if index.refusal is not None else index_curve(snapshot.reader, column, index, _K, seconds)
