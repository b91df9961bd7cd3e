"""Putting a change of rows on top of deletions that others committed in the meantime."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from lance_dataset.errors import InvalidInputError
from lance_dataset.io.base import ObjectStore
from lance_dataset.table.conflicts import retryable_conflict
from lance_dataset.table.deletions import read_deletions, write_deletions
from lance_dataset.table.fragment import Fragment
from lance_dataset.table.leftovers import remove_superseded
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.paths import FileLocator
from lance_dataset.table.transaction import Delete

__all__ = ["AffectedRows", "rebase_delete"]

#: Offsets of the rows that a change newly masks, by fragment id.
AffectedRows = Mapping[int, npt.NDArray[np.uint32]]


def rebase_delete(
    store: ObjectStore, root: str, operation: Delete, marked: Set[int], latest: Manifest, affected_rows: AffectedRows
) -> Delete:
    """Give the marked fragments new deletion files: what is deleted in `latest`, and what the operation deletes.

    Parameters
    ----------
    store, root
        The table.
    operation
        The delete to change.
    marked
        Fragments that were changed since it was computed.
    latest
        Newest version.
    affected_rows
        Rows the operation deletes.

    Raises
    ------
    CommitConflictError
        Others deleted some of the same rows.
    """
    locator = FileLocator(store, root, latest.base_paths)
    updated = {fragment.id: fragment for fragment in operation.updated_fragments}
    removed = list(operation.deleted_fragment_ids)
    written: list[Fragment] = []
    try:
        for fragment_id in sorted(marked):
            fragment = _merged(store, root, locator, latest, fragment_id, affected_rows)
            written.append(fragment)
            if fragment.num_rows == 0:
                updated.pop(fragment_id, None)
                removed.append(fragment_id)
            else:
                updated[fragment_id] = fragment
    except BaseException:
        remove_superseded(store, root, written, kept=())
        raise
    remove_superseded(store, root, written, updated.values())
    return replace(operation, updated_fragments=tuple(updated.values()), deleted_fragment_ids=tuple(removed))


def _merged(
    store: ObjectStore,
    root: str,
    locator: FileLocator,
    latest: Manifest,
    fragment_id: int,
    affected_rows: AffectedRows,
) -> Fragment:
    current = latest.fragment(fragment_id)
    if current is None:
        raise retryable_conflict("Delete", "Delete", latest.version)
    if fragment_id not in affected_rows:
        raise InvalidInputError(f"fragment {fragment_id} is changed, but its affected rows are not given")
    ours = np.asarray(affected_rows[fragment_id], dtype=np.uint32)
    theirs = read_deletions(locator, current)
    if np.isin(ours, theirs).any():
        raise retryable_conflict("Delete", "Delete", latest.version)
    deletion_file = write_deletions(store, root, fragment_id, latest.version, np.union1d(theirs, ours))
    return replace(current, deletion_file=deletion_file)
