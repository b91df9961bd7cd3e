"""Full-text indices that several workers build as one: each stages files, and one call merges them."""

from __future__ import annotations

from collections.abc import Sequence

from lance_dataset.changes.indexing.create_index import NewIndex, definition_of
from lance_dataset.changes.indexing.segments import new_segment
from lance_dataset.errors import InvalidInputError
from lance_dataset.index.files import IndexFolder, NewIndexFolder
from lance_dataset.index.text.staging import STAGING, StagingFolder, merge_staged
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.table.paths import FileLocator

__all__ = ["merge_staged_index", "stage_segment"]


def stage_segment(
    snapshot: Snapshot,
    wanted: NewIndex,
    fragment_ids: Sequence[int],
    segment_id: str,
    *,
    memory_limit: int | None = None,
) -> None:
    """Write the part of a full-text index that covers some fragments, and commit nothing.

    Parameters
    ----------
    snapshot
        The version.
    wanted
        The index.
    fragment_ids
        Fragments of the part.
    segment_id
        Id of the index, the same for all parts.
    memory_limit
        See `new_segment`.

    Raises
    ------
    InvalidInputError
        There are no fragments, or one does not exist.
    TypeError, IndexedFieldNotFoundError, InvalidIndexError, UnsupportedError
        The index does not fit the table.
    """
    chosen = sorted(set(fragment_ids))
    unknown = sorted(set(chosen) - set(snapshot.manifest.fragment_list.columns.ids.tolist()))
    if unknown or not chosen:
        what = f"fragment {unknown[0]} is not part of version {snapshot.version}" if unknown else "there are none"
        raise InvalidInputError(f"fragments to index: {what}")
    definition = definition_of(snapshot, wanted)
    folder = FileLocator(snapshot.store, snapshot.root).index_folder(segment_id, None)
    target = StagingFolder(*folder, chosen[0])
    new_segment(snapshot, definition, segment_id, fragment_ids=chosen, memory_limit=memory_limit, target=target)


def merge_staged_index(snapshot: Snapshot, segment_id: str) -> None:
    """Make the files of an index of the parts that workers have written, and remove these. Nothing is committed.

    Parameters
    ----------
    snapshot
        Any version of the table.
    segment_id
        Id of the index.

    Raises
    ------
    InvalidInputError
        There are no parts, or they have different parameters.
    CorruptFileError
        A file contradicts the format.
    """
    store, path = FileLocator(snapshot.store, snapshot.root).index_folder(segment_id, None)
    staging = f"{path}/{STAGING}"
    merge_staged(IndexFolder(store, staging), NewIndexFolder(store, path))
    store.delete_tree(staging)
