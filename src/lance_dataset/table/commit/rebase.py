"""Rebase of a change on versions that others committed in the meantime."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from dataclasses import replace

import numpy as np

from lance_dataset.errors import InvalidInputError
from lance_dataset.io.base import ObjectStore
from lance_dataset.table.commit.leftovers import remove_superseded
from lance_dataset.table.conflicts import AffectedRows, retryable_conflict
from lance_dataset.table.conflicts.log import with_log_progress
from lance_dataset.table.deletions import read_deletions, united, write_deletions
from lance_dataset.table.fragment import Fragment
from lance_dataset.table.index_metadata import IndexMetadata, uuid_to_proto
from lance_dataset.table.indices.coverage import MEMORY_INDEX, REUSE_INDEX, coverage, parse_indices
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.operations import (
    CreateIndex,
    DataOverlay,
    Delete,
    Merge,
    Operation,
    Rewrite,
    Update,
    UpdateMemWalState,
    UpdateMode,
)
from lance_dataset.table.overlays import Overlay
from lance_dataset.table.paths import FileLocator
from lance_dataset.table.roaring import encode_bitmap
from lance_dataset.threads.waiting import map_waiting

__all__ = [
    "AffectedRows",
    "check_overlaid_rows",
    "check_reuse_index",
    "check_rewritten_indices",
    "rebase_index",
    "rebase_rows",
]


# -- rows --------------------------------------------------------------------------------------------------------------


def rebase_rows(
    store: ObjectStore,
    root: str,
    operation: Delete | Update,
    marked: Set[int],
    latest: Manifest,
    affected_rows: AffectedRows,
) -> Delete | Update:
    """Write new deletion files for the marked fragments: rows deleted in `latest` plus rows deleted by the operation.

    Parameters
    ----------
    store, root
        The table.
    operation
        The change of rows.
    marked
        Fragments in which others deleted rows since the change was computed.
    latest
        Newest version.
    affected_rows
        Rows that the operation deletes.

    Raises
    ------
    CommitConflictError
        Others deleted some of the same rows.
    """
    locator = FileLocator(store, root, latest.base_paths)
    updated = {fragment.id: fragment for fragment in operation.updated_fragments}
    removed: list[int] = []
    written: list[Fragment] = []

    def merge(fragment_id: int) -> None:
        written.append(_merged(store, root, locator, operation, latest, fragment_id, affected_rows))

    try:
        map_waiting(merge, sorted(marked))
    except BaseException:
        remove_superseded(store, root, written, kept=())
        raise
    for fragment in written:
        if fragment.num_rows == 0:
            updated.pop(fragment.id, None)
            removed.append(fragment.id)
        else:
            updated[fragment.id] = fragment
    remove_superseded(store, root, written, updated.values())
    fragments = tuple(updated.values())
    if isinstance(operation, Delete):
        ids = (*operation.deleted_fragment_ids, *removed)
        return replace(operation, updated_fragments=fragments, deleted_fragment_ids=ids)
    ids = (*operation.removed_fragment_ids, *removed)
    return replace(operation, updated_fragments=fragments, removed_fragment_ids=ids)


def _merged(
    store: ObjectStore,
    root: str,
    locator: FileLocator,
    operation: Delete | Update,
    latest: Manifest,
    fragment_id: int,
    affected_rows: AffectedRows,
) -> Fragment:
    """Return the current fragment with a new deletion file."""
    current = latest.fragment(fragment_id)
    if current is None:
        raise retryable_conflict(operation.name, "Delete", latest.version)
    if fragment_id not in affected_rows:
        raise InvalidInputError(f"fragment {fragment_id} is changed, but its affected rows are not given")
    ours = np.asarray(affected_rows[fragment_id], dtype=np.uint32)
    theirs = read_deletions(locator, current)
    if np.isin(ours, theirs).any():
        raise retryable_conflict(operation.name, "Delete", latest.version)
    deletion_file = write_deletions(store, root, fragment_id, latest.version, united(theirs, ours))
    return replace(current, deletion_file=deletion_file)


def check_overlaid_rows(
    store: ObjectStore, root: str, operation: DataOverlay, marked: Set[int], read: Manifest | None, latest: Manifest
) -> None:
    """Check that the rows of an overlay did not move to other fragments.

    Parameters
    ----------
    store, root
        The table.
    operation
        The overlay.
    marked
        Fragments that rows were moved out of since the overlay was computed.
    read, latest
        The version that it was computed against, or None if that was removed, and the newest version.

    Raises
    ------
    CommitConflictError
        Some of the rows moved, or may have moved.
    """
    groups = [(fragment_id, messages) for fragment_id, messages in operation.groups if fragment_id in marked]
    for fragment_id, messages in groups:
        before = None if read is None else read.fragment(fragment_id)
        after = latest.fragment(fragment_id)
        if read is None or before is None or after is None:
            raise retryable_conflict(operation.name, "Update", latest.version)
        old = read_deletions(FileLocator(store, root, read.base_paths), before)
        new = read_deletions(FileLocator(store, root, latest.base_paths), after)
        moved = np.setdiff1d(new, old)
        if any(Overlay.decode(message).covers_any(moved) for message in messages):
            raise retryable_conflict(operation.name, "Update", latest.version)


# -- indices -----------------------------------------------------------------------------------------------------------


def rebase_index(operation: CreateIndex, theirs: Operation, version: int, read: Manifest | None) -> CreateIndex:
    """Return the new indices with the changes that a concurrently committed operation requires.

    They lose the fragments in which values of indexed columns were changed in place. The MemWAL index gets the progress
    that was made.

    Parameters
    ----------
    operation
        Our indices.
    theirs
        The committed operation.
    version
        Version that it made.
    read
        The version that our indices were built from, or None if it was removed.

    Raises
    ------
    CommitConflictError
        An index must lose fragments, but does not state which fragments it covers.
    """
    if isinstance(theirs, UpdateMemWalState):
        indices = [
            replace(index, details=with_log_progress(index, theirs.compacted_sstables))
            if index.name == MEMORY_INDEX
            else index
            for index in operation.new_indices
        ]
        return replace(operation, new_indices=tuple(indices))
    if not isinstance(theirs, Update | Merge):
        return operation
    return replace(
        operation, new_indices=tuple(_narrowed(index, theirs, version, read) for index in operation.new_indices)
    )


def _narrowed(index: IndexMetadata, theirs: Update | Merge, version: int, read: Manifest | None) -> IndexMetadata:
    """Return the index without the fragments in which values of its columns changed."""
    covered = coverage(index)
    if index.name in (MEMORY_INDEX, REUSE_INDEX):
        return index
    if isinstance(theirs, Update):
        changed = _updated_in_place(index, theirs)
    else:
        changed = _merged_columns(index, theirs, covered, read)
    if covered is None and changed:
        raise retryable_conflict("CreateIndex", theirs.name, version)
    if covered is None or covered.isdisjoint(changed):
        return index
    return replace(index, fragment_bitmap=encode_bitmap(sorted(covered - changed)))


def _updated_in_place(index: IndexMetadata, theirs: Update) -> frozenset[int]:
    if theirs.mode is not UpdateMode.REWRITE_COLUMNS or not set(index.fields).intersection(theirs.fields_modified):
        return frozenset()
    return frozenset(fragment.id for fragment in theirs.updated_fragments)


def _merged_columns(
    index: IndexMetadata, theirs: Merge, covered: frozenset[int] | None, read: Manifest | None
) -> frozenset[int]:
    """Return the fragments that got another file for a column of the index."""
    candidates = [fragment for fragment in theirs.fragments if covered is None or fragment.id in covered]
    if read is None:
        return frozenset(fragment.id for fragment in candidates)
    changed = set()
    for fragment in candidates:
        before = read.fragment(fragment.id)
        if before is None or _files_of(before, index.fields) != _files_of(fragment, index.fields):
            changed.add(fragment.id)
    return frozenset(changed)


def _files_of(fragment: Fragment, fields: Iterable[int]) -> set[tuple[int, str]]:
    """Return the field ids and paths of the files with these fields."""
    wanted = set(fields)
    return {(field_id, file.path) for file in fragment.files for field_id in wanted.intersection(file.fields)}


def check_reuse_index(operation: Operation, find_read: Callable[[], Manifest | None], latest: Manifest) -> None:
    """Check that a new fragment-reuse index was made from the one in the newest version.

    Otherwise, entries that others added meanwhile would be lost, and with them the mapping from old row addresses to
    new ones.

    Parameters
    ----------
    operation
        Our operation.
    find_read
        Returns the version that it was computed against, or None if it was removed. Called only if needed.
    latest
        The newest version.

    Raises
    ------
    CommitConflictError
        Others changed the index.
    """
    if isinstance(operation, CreateIndex):
        writes = any(index.name == REUSE_INDEX for index in (*operation.new_indices, *operation.removed_indices))
    else:
        writes = isinstance(operation, Rewrite) and operation.reuse_index is not None
    if not writes:
        return
    read = find_read()
    if read is None or _reuse_index(read) != _reuse_index(latest):
        raise retryable_conflict(operation.name, "Rewrite", latest.version)


def check_rewritten_indices(operation: Rewrite, latest: Manifest) -> None:
    """Check that the indices that were rebuilt for a rewrite still exist.

    Parameters
    ----------
    operation
        Our operation.
    latest
        The newest version.

    Raises
    ------
    CommitConflictError
        Others removed one, or rebuilt it for a rewrite of their own.
    """
    present = {index.uuid.uuid for index in parse_indices(latest.index_section)}
    if any(uuid_to_proto(made.old_id).uuid not in present for made in operation.rewritten_indices):
        raise retryable_conflict(operation.name, "CreateIndex or Rewrite", latest.version)


def _reuse_index(manifest: Manifest) -> bytes | None:
    """Return the id of the fragment-reuse index of a version."""
    indices = parse_indices(manifest.index_section)
    return next((index.uuid.uuid for index in indices if index.name == REUSE_INDEX), None)
