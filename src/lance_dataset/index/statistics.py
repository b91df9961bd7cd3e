"""Statistics of an index: what its segments hold, and how much of the table they cover."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lance_dataset.errors import UnsupportedError
from lance_dataset.index.files import IndexFolder
from lance_dataset.index.kinds import KINDS
from lance_dataset.index.scalar import statistics as scalar
from lance_dataset.index.scalar.json_path import target_kind
from lance_dataset.index.segments import Segment, segments_named
from lance_dataset.index.text.statistics import inverted_statistics
from lance_dataset.index.unnoted import unnoted_kind
from lance_dataset.index.vector.statistics import vector_statistics
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.table.indices.coverage import REUSE_INDEX
from lance_dataset.table.indices.reuse import read_reuse_content

__all__ = ["index_statistics"]

#: Statistics of the files of one segment, by kind.
_BY_KIND: Mapping[str, Callable[[IndexFolder], dict[str, Any]]] = {
    "btree": scalar.btree_statistics,
    "bitmap": scalar.bitmap_statistics,
    "labellist": scalar.bitmap_statistics,
    "ngram": scalar.ngram_statistics,
    "zonemap": scalar.zone_map_statistics,
    "bloomfilter": scalar.bloom_filter_statistics,
    "minhashlsh": scalar.minhash_statistics,
    "fm": scalar.fm_statistics,
    "rtree": scalar.rtree_statistics,
    "inverted": inverted_statistics,
}
#: Shown as the type of an index that no fragment has been trained for.
_NO_TYPE = "N/A"


def index_statistics(snapshot: Snapshot, name: str) -> dict[str, Any]:
    """Return the statistics of an index; see `LanceStats.index_stats`.

    Raises
    ------
    TypeError, IndexNotFoundError
        There is no index of this name.
    UnsupportedError
        The index is the log of a MemWAL.
    CorruptFileError, MissingFileError
        A file of the index cannot be read.
    """
    segments = segments_named(snapshot.reader, name)
    if segments[0].is_system:
        return _system_statistics(segments[0])
    covered = frozenset().union(*(segment.fragment_ids for segment in segments))
    rows = sum(segment.num_rows for segment in segments)
    described = [_of_files(segment) for segment in segments]
    updated = [made for segment in segments if (made := segment.metadata.created_at) is not None]
    reader = snapshot.reader
    return {
        "index_type": _shown_type(segments),
        "name": name,
        "num_indices": len(segments),
        "num_segments": len(segments),
        "indices": described,
        "segments": described,
        "num_indexed_fragments": len(covered),
        "num_indexed_rows": rows,
        "num_unindexed_fragments": len(reader.fragments) - len(covered),
        "num_unindexed_rows": max(reader.num_rows - rows, 0),
        "num_indexed_rows_per_delta": [segment.num_rows for segment in segments],
        "updated_at_timestamp_ms": max(updated, default=None),
    }


def _shown_type(segments: Sequence[Segment]) -> str:
    """Return the type of the first segment that covers something; of a JSON index, that of its values."""
    trained = next((segment for segment in segments if segment.recorded), None)
    if trained is None:
        return _NO_TYPE
    kind = _files_kind(trained)
    if kind == "vector":
        return str(_of_files(trained)["index_type"])
    return KINDS[kind].shown


def _files_kind(segment: Segment) -> str:
    """Return the kind of the files of a segment."""
    details = segment.metadata.details
    if segment.kind == "json" and details is not None:
        return target_kind(details.value, segment.name)
    return segment.kind or unnoted_kind(segment.metadata.fields, segment.reader.manifest.schema, segment.folder)


def _of_files(segment: Segment) -> dict[str, Any]:
    if not segment.recorded:
        return {}
    kind = _files_kind(segment)
    if kind == "vector":
        return vector_statistics(segment.folder, segment.metadata.uuid)
    if kind not in _BY_KIND:
        raise UnsupportedError(f"statistics of the index {segment.name!r} of the kind {kind!r} are not supported")
    return _BY_KIND[kind](segment.folder)


def _system_statistics(segment: Segment) -> dict[str, Any]:
    if segment.name != REUSE_INDEX:
        raise UnsupportedError(f"statistics of {segment.name!r} are not supported: it is the log of a MemWAL")
    content = read_reuse_content(segment.metadata.to_proto(), segment.reader.locator)
    return {"num_versions": len(content.versions)}
