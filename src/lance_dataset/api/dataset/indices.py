"""Indices of a dataset: list, describe and drop them."""

from __future__ import annotations

import datetime as dt
from typing import Any

from lance_dataset.index.describing import details_of, shown_type, type_url_of
from lance_dataset.index.segments import Segment, index_segments
from lance_dataset.read.shown import Shown
from lance_dataset.records.index_description import IndexDescription, IndexInformation, IndexSegmentDescription

__all__ = ["Indexed"]

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)


class Indexed(Shown):
    """Indices of the open version. They are kept right by all changes; scans do not use them yet."""

    @property
    def has_index(self) -> bool:
        """True if the open version has an index."""
        return bool(index_segments(self.snapshot))

    def list_indices(self) -> list[IndexInformation]:
        """List the segments of all indices of the open version, sorted by name.

        Indices of unknown kinds or later format versions are left out.

        Raises
        ------
        CorruptFileError
            The list of indices cannot be read.
        """
        segments = sorted(index_segments(self.snapshot), key=lambda segment: segment.name)
        return [_information(segment) for segment in segments]

    def describe_indices(self) -> list[IndexDescription]:
        """Describe the indices of the open version, sorted by name.

        Indices of unknown kinds or later format versions are left out.

        Raises
        ------
        CorruptFileError
            The list of indices cannot be read.
        """
        by_name: dict[str, list[Segment]] = {}
        for segment in index_segments(self.snapshot):
            by_name.setdefault(segment.name, []).append(segment)
        return [_description(name, by_name[name]) for name in sorted(by_name)]

    def index_statistics(self, index_name: str) -> dict[str, Any]:
        """Return the statistics of an index; the same as ``stats.index_stats``.

        Raises
        ------
        KeyError
            There is no index of this name.
        """
        from lance_dataset.index.statistics import index_statistics

        return index_statistics(self.snapshot, index_name)

    def drop_index(self, name: str) -> None:
        """Remove an index from the newest version, in one commit, and move this handle to the new version.

        Older versions keep it. Its files are removed by a cleanup.

        Parameters
        ----------
        name
            Name of the index. All of its segments are dropped, also of kinds that this release does not know.

        Raises
        ------
        RuntimeError
            There is no index of this name (an `IndexNotFoundError`).
        InvalidInputError
            The index belongs to the table itself: fragments or logs depend on it.
        CommitConflictError
            Other writers changed the index, and the retries ran out.
        """
        from lance_dataset.changes.indexing.drop_index import drop_index

        self.show(drop_index(self.snapshot, name))


def _information(segment: Segment) -> IndexInformation:
    metadata = segment.metadata
    return {
        "name": segment.name,
        "type": shown_type(segment),
        "uuid": metadata.uuid,
        "fields": list(segment.column_names),
        "version": metadata.dataset_version,
        "fragment_ids": set(segment.recorded),
        "base_id": metadata.base_id,
    }


def _description(name: str, segments: list[Segment]) -> IndexDescription:
    first = segments[0]
    sizes = [_size(segment) for segment in segments]
    known = [size for size in sizes if size is not None]
    return IndexDescription(
        name=name,
        index_type=shown_type(first),
        type_url=type_url_of(first),
        num_rows_indexed=sum(segment.num_rows for segment in segments),
        fields=list(first.metadata.fields),
        field_names=list(first.column_names),
        segments=[_segment_description(segment, size) for segment, size in zip(segments, sizes, strict=True)],
        details=details_of(first),
        total_size_bytes=sum(known) if len(known) == len(segments) else None,
    )


def _segment_description(segment: Segment, size: int | None) -> IndexSegmentDescription:
    metadata = segment.metadata
    created = metadata.created_at
    return IndexSegmentDescription(
        uuid=metadata.uuid,
        dataset_version_at_last_update=metadata.dataset_version,
        fragment_ids=set(segment.recorded),
        index_version=metadata.index_version or 0,
        created_at=None if created is None else _EPOCH + dt.timedelta(milliseconds=created),
        size_bytes=size,
        base_id=metadata.base_id,
        covering_fields=list(metadata.covering_fields),
    )


def _size(segment: Segment) -> int | None:
    """Return the bytes of the files of a segment; None for system indices, and where they are not recorded."""
    files = segment.metadata.files
    return sum(file.size_bytes for file in files) if files and not segment.is_system else None
