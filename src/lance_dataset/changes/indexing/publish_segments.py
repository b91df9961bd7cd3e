"""Segments that are built apart, by several workers, and published together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lance_dataset.changes.commit import commit_change
from lance_dataset.changes.indexing.create_index import NewIndex, check_free_id, definition_of
from lance_dataset.changes.indexing.optimize_indices import definition_like
from lance_dataset.changes.indexing.segments import IndexDefinition, indexed_field, new_id, new_segment
from lance_dataset.changes.retry import repeated_on_conflict
from lance_dataset.errors import InvalidInputError, UnsupportedError, VersionNotFoundError
from lance_dataset.index.files import IndexFolder
from lance_dataset.index.kinds import known_kind
from lance_dataset.index.segments import Segment, index_segments
from lance_dataset.index.trainer import Trainer
from lance_dataset.index.training import TRAINERS
from lance_dataset.index.vector.training.existing import trainer_like
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.table.commit.leftovers import ChangeFiles
from lance_dataset.table.flags import check_writable
from lance_dataset.table.fragment import Fragment
from lance_dataset.table.index_metadata import IndexMetadata
from lance_dataset.table.indices.coverage import coverage
from lance_dataset.table.operations import CreateIndex

__all__ = ["build_segment", "build_segment_like", "merge_segments", "publish_segments", "publish_together"]


def build_segment(
    snapshot: Snapshot,
    wanted: NewIndex,
    fragment_ids: Sequence[int],
    *,
    segment_id: str | None = None,
    memory_limit: int | None = None,
) -> IndexMetadata:
    """Write a segment of some fragments, and commit nothing. If this fails, its files are removed.

    Raises
    ------
    InvalidInputError
        A fragment does not exist.
    TypeError, IndexedFieldNotFoundError, InvalidIndexError, UnsupportedError
        The index does not fit the table.
    """
    _check_fragments(snapshot, fragment_ids)
    if segment_id is not None:
        check_free_id(snapshot, segment_id)
    made = new_id() if segment_id is None else segment_id
    return _written(snapshot, definition_of(snapshot, wanted), made, sorted(set(fragment_ids)), memory_limit)


def build_segment_like(
    snapshot: Snapshot, name: str, fragment_ids: Sequence[int], *, memory_limit: int | None = None
) -> IndexMetadata:
    """Write a segment of some fragments for an index that exists, with its parameters and models; commit nothing.

    If this fails, its files are removed.

    Raises
    ------
    InvalidInputError
        There is no such index, a fragment does not exist, or the index covers it already.
    UnsupportedError
        This release does not build indices of its kind.
    """
    _check_fragments(snapshot, fragment_ids)
    known = [each for each in index_segments(snapshot.reader) if each.name == name and not each.is_system]
    if not known:
        raise InvalidInputError(f"version {snapshot.version} has no index {name!r}")
    twice = sorted(set(fragment_ids) & frozenset().union(*(each.fragment_ids for each in known)))
    if twice:
        raise InvalidInputError(f"the index {name!r} covers fragment {twice[0]} already")
    like = next((each for each in reversed(known) if each.fragment_ids), known[-1])
    written = _written(snapshot, definition_like(like), new_id(), sorted(set(fragment_ids)), memory_limit)
    return replace(written, details=like.metadata.details or written.details)


def _check_fragments(snapshot: Snapshot, fragment_ids: Sequence[int]) -> None:
    existing = set(snapshot.manifest.fragment_list.columns.ids.tolist())
    unknown = sorted(set(fragment_ids) - existing)
    if unknown:
        raise InvalidInputError(f"fragment {unknown[0]} is not part of version {snapshot.version}")


def _written(
    snapshot: Snapshot, definition: IndexDefinition, made: str, fragment_ids: Sequence[int], memory_limit: int | None
) -> IndexMetadata:
    try:
        return new_segment(snapshot, definition, made, fragment_ids=fragment_ids, memory_limit=memory_limit)
    except BaseException:
        ChangeFiles(snapshot.store, snapshot.root, indices=[made]).remove()
        raise


def merge_segments(
    snapshot: Snapshot, segments: Sequence[IndexMetadata], *, memory_limit: int | None = None
) -> IndexMetadata:
    """Write one segment of the fragments of several, and commit nothing. If this fails, its files are removed.

    The rows of the fragments are read again, so the segment is right for the version.

    Raises
    ------
    InvalidInputError
        There are no segments, they are of different indices, or two cover the same fragment.
    UnsupportedError
        This release does not build indices of their kind.
    """
    covered = _disjoint_coverage(segments)
    first = segments[0]
    if len({each.fields for each in segments}) > 1 or len({_kind(each) for each in segments}) > 1:
        raise InvalidInputError("the segments to merge are of different columns, or of different kinds of indices")
    name = dict(snapshot.manifest.schema.paths_by_id()).get(first.fields[0]) if first.fields else None
    if name is None:
        raise InvalidInputError("the segments to merge are of a column that does not exist any more")
    store, folder = snapshot.location.locator(snapshot.manifest).index_folder(first.uuid, first.base_id)
    trainer, parameters = _training_like(first, IndexFolder(store, folder))
    definition = IndexDefinition(first.name, indexed_field(snapshot.scanned_schema, name), trainer, parameters)
    existing = set(snapshot.manifest.fragment_list.columns.ids.tolist())
    return _written(snapshot, definition, new_id(), sorted(covered & existing), memory_limit)


def _training_like(segment: IndexMetadata, folder: IndexFolder) -> tuple[Trainer, Mapping[str, Any]]:
    """Return the training that made a segment, and its parameters."""
    details = b"" if segment.details is None else segment.details.value
    if _kind(segment) == "vector":
        return trainer_like(details, folder), {}
    trainer = TRAINERS.get(_kind(segment))
    if trainer is None:
        raise UnsupportedError(f"this release does not build indices of the kind {_kind(segment)!r}")
    return trainer.of_index(details, folder)


def publish_segments(snapshot: Snapshot, name: str, column: str, segments: Sequence[IndexMetadata]) -> Snapshot:
    """Commit segments as an index, or as more segments of it. Old segments that they cover entirely are replaced.

    Raises
    ------
    IndexedFieldNotFoundError
        The column does not exist.
    InvalidInputError
        There are no segments, they are of another column, two cover the same fragment, an old segment would be covered
        in part, or the column was rewritten since they were built.
    CommitConflictError
        Other writers changed the rows or the indices, and the retries ran out.
    """

    def publish(latest: Snapshot) -> Snapshot:
        check_writable(latest.manifest.writer_flags, latest.manifest.path)
        return commit_change(latest, CreateIndex(*_publication(latest, name, column, segments)))

    return repeated_on_conflict(snapshot, publish)


def publish_together(snapshot: Snapshot, segments: Mapping[str, Sequence[IndexMetadata]]) -> Snapshot:
    """Commit segments as several indices, or as more segments of them, in one commit.

    Parameters
    ----------
    snapshot
        The version to start from.
    segments
        Segments by name of the index.

    Raises
    ------
    InvalidInputError, CommitConflictError
        As for `publish_segments`; for any of the indices. Nothing is committed then.
    """
    if not segments:
        raise InvalidInputError("there are no segments")

    def publish(latest: Snapshot) -> Snapshot:
        check_writable(latest.manifest.writer_flags, latest.manifest.path)
        paths = dict(latest.manifest.schema.paths_by_id())
        added: tuple[IndexMetadata, ...] = ()
        removed: tuple[IndexMetadata, ...] = ()
        for name, mine in segments.items():
            column = next((paths[each] for segment in mine for each in segment.fields if each in paths), None)
            if column is None:
                raise InvalidInputError(f"there are no segments of the index {name!r}, or its column does not exist")
            more, less = _publication(latest, name, column, mine)
            added, removed = added + more, removed + less
        return commit_change(latest, CreateIndex(added, removed))

    return repeated_on_conflict(snapshot, publish)


def _publication(
    latest: Snapshot, name: str, column: str, segments: Sequence[IndexMetadata]
) -> tuple[tuple[IndexMetadata, ...], tuple[IndexMetadata, ...]]:
    """Return the segments that a commit adds, and those of the same index that it removes."""
    covered = _disjoint_coverage(segments)
    field_id = indexed_field(latest.scanned_schema, column)[-1].id
    for each in segments:
        if each.fields != (field_id,):
            raise InvalidInputError(f"segment {each.uuid} is of the fields {list(each.fields)}, not of {column!r}")
        _check_unchanged(latest, each, field_id)
    kinds = {_kind(each) for each in segments}
    if len(kinds) > 1:
        raise InvalidInputError(f"the segments are of different kinds: {', '.join(sorted(kinds))}")
    known = [old for old in index_segments(latest.reader) if old.name == name]
    removed = tuple(old.metadata for old in known if _is_replaced(old, covered, field_id, kinds))
    return tuple(replace(each, name=name) for each in segments), removed


def _is_replaced(old: Segment, covered: frozenset[int], field_id: int, kinds: set[str]) -> bool:
    """Return True if new segments replace an old one of the index, False if it stays beside them."""
    if old.metadata.fields != (field_id,):
        raise InvalidInputError(f"the index {old.name!r} is of another column: {', '.join(old.column_names)}")
    if old.fragment_ids <= covered:
        return True
    if old.fragment_ids & covered:
        left = ", ".join(map(str, sorted(old.fragment_ids - covered)[:10]))
        raise InvalidInputError(f"the new segments would orphan fragments of the index {old.name!r}: {left}")
    if _kind(old.metadata) not in kinds:
        raise InvalidInputError(f"the index {old.name!r} is of another kind, and has fragments the new segments lack")
    return False


def _disjoint_coverage(segments: Sequence[IndexMetadata]) -> frozenset[int]:
    """Return all fragments that segments cover; raise InvalidInputError if there are no segments, or they overlap."""
    if not segments:
        raise InvalidInputError("there are no segments")
    covered: set[int] = set()
    for each in segments:
        mine = coverage(each)
        if mine is None:
            raise InvalidInputError(f"segment {each.uuid} does not say which fragments it covers")
        if covered & mine:
            raise InvalidInputError(f"several segments cover fragment {min(covered & mine)}; segments must not overlap")
        covered |= mine
    return frozenset(covered)


def _kind(segment: IndexMetadata) -> str:
    kind = known_kind(segment)
    if kind is None:
        raise UnsupportedError(f"segment {segment.uuid} is of a kind or a version that this release does not know")
    return kind


def _check_unchanged(latest: Snapshot, segment: IndexMetadata, field_id: int) -> None:
    """Raise InvalidInputError if the column was rewritten in place since a segment was built."""
    if segment.dataset_version >= latest.version:
        return
    try:
        then = latest.at(segment.dataset_version).manifest
    except VersionNotFoundError:
        raise InvalidInputError(
            f"segment {segment.uuid} was built from version {segment.dataset_version}, which does not exist any more, "
            "so changes since cannot be excluded; build it again"
        ) from None
    for fragment_id in sorted(coverage(segment) or ()):
        now = latest.manifest.fragment(fragment_id)
        if now is not None and _files(now, field_id) != _files(then.fragment(fragment_id), field_id):
            raise InvalidInputError(
                f"the column was rewritten in fragment {fragment_id} since version {segment.dataset_version}, which "
                f"segment {segment.uuid} was built from; build it again"
            )


def _files(fragment: Fragment | None, field_id: int) -> set[str]:
    return set() if fragment is None else {file.path for file in fragment.files if field_id in file.fields}
