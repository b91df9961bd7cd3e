"""Operations that add, delete, move or change rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from lance_dataset.errors import CorruptFileError, InvalidInputError
from lance_dataset.table.apply.identity import check_moved_ids
from lance_dataset.table.apply.lineage import RowSources, stamped_in_part
from lance_dataset.table.apply.numbering import check_file_versions, check_ids, new_fragments
from lance_dataset.table.apply.settings import with_compacted
from lance_dataset.table.fragment import Fragment
from lance_dataset.table.fragment_list import edited
from lance_dataset.table.indices.changes import with_moved_rows, without_fragments
from lance_dataset.table.lineage.row_ids import RowIds
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.old_tables.completion import Completion
from lance_dataset.table.operations import Append, Delete, Update, UpdateMode
from lance_dataset.table.roaring import decode_bitmap

__all__ = ["append", "delete", "update"]


def append(base: Manifest, operation: Append) -> Manifest:
    """Apply an Append: add new fragments after the existing ones."""
    check_file_versions(base.storage_version, base.fragment_list, operation.fragments)
    if base.uses_stable_row_ids and any(fragment.row_ids is not None for fragment in operation.fragments):
        raise InvalidInputError(
            "an appended fragment has row ids, which may conflict with other rows; leave row_id_meta out, the "
            "commit assigns ids"
        )
    added, next_row_id = new_fragments(base, operation.fragments)
    fragments = edited(base.fragments, added=added)
    check_ids(fragments)
    return replace(base, fragments=fragments, next_row_id=next_row_id)


def delete(base: Manifest, operation: Delete) -> Manifest:
    """Apply a Delete: replace deletion files, and drop fragments without live rows."""
    removed = set(operation.deleted_fragment_ids)
    updated = {}
    for fragment_id, each in _by_id(operation.updated_fragments).items():
        current = base.fragment(fragment_id)
        if current is not None:
            updated[fragment_id] = _with_deletions(current, each)
    removed |= {fragment_id for fragment_id, fragment in updated.items() if fragment.num_rows == 0}
    return replace(base, fragments=edited(base.fragments, removed=removed, updated=updated))


def _by_id(fragments: Sequence[Fragment]) -> dict[int, Fragment]:
    """Return the fragments of an operation by id.

    Raises InvalidInputError if a fragment occurs twice with different content.
    """
    found: dict[int, Fragment] = {}
    for fragment in fragments:
        if found.setdefault(fragment.id, fragment) != fragment:
            raise InvalidInputError(
                f"the fragment {fragment.id} is updated twice, in different ways; give one with all changes"
            )
    return found


def _with_deletions(current: Fragment, updated: Fragment) -> Fragment:
    """Return the current fragment with the deletion file of the updated one.

    Everything else stays, because other writers may have changed it since.
    """
    return replace(
        current,
        deletion_file=updated.deletion_file,
        physical_rows=current.physical_rows or updated.physical_rows,
    )


def update(base: Manifest, operation: Update, files: Completion | None) -> Manifest:
    """Apply an Update: move rows to new fragments, and set new files for columns in their fragments."""
    removed = set(operation.removed_fragment_ids)
    given = (*removed, *(fragment.id for fragment in operation.updated_fragments))
    touched = {each for each in given if base.fragment(each) is not None}
    sources = RowSources(base, touched, files)
    updated = _updated(base, operation, sources)
    check_file_versions(base.storage_version, base.fragment_list, (*operation.new_fragments, *updated.values()))
    added, next_row_id = new_fragments(base, operation.new_fragments, sources)
    if base.uses_stable_row_ids:
        carrying = zip(operation.new_fragments, added, strict=True)
        kept = [fragment for fragment_id, fragment in updated.items() if fragment_id not in removed]
        check_moved_ids([new for given, new in carrying if given.row_ids is not None], kept)
    emptied = {fragment_id for fragment_id, fragment in updated.items() if fragment.num_rows == 0}
    fragments = edited(base.fragments, removed=removed | emptied, updated=updated, added=added)
    check_ids(fragments)
    section = without_fragments(base, operation.fields_modified, updated.keys())
    if operation.mode is UpdateMode.REWRITE_ROWS and base.uses_stable_row_ids:
        moved = [
            new.id for given, new in zip(operation.new_fragments, added, strict=True) if _has_only_moved_rows(given)
        ]
        changed = operation.fields_for_preserving_bitmap
        section = with_moved_rows(replace(base, index_section=section), moved, touched, changed)
    changed_base = replace(base, fragments=fragments, next_row_id=next_row_id, index_section=section)
    return with_compacted(changed_base, operation.compacted_sstables)


def _updated(base: Manifest, operation: Update, sources: RowSources) -> dict[int, Fragment]:
    """Return the updated fragments that still exist, with the lineage of their rows."""
    given = _by_id(operation.updated_fragments)
    offsets = _offsets(operation, given)
    updated = {}
    for fragment_id, fragment in given.items():
        current = base.fragment(fragment_id)
        if current is None:
            continue
        fragment = replace(
            fragment,
            physical_rows=fragment.physical_rows or current.physical_rows,
            row_ids=current.row_ids,
            created_at_versions=current.created_at_versions,
            last_updated_at_versions=current.last_updated_at_versions,
        )
        if base.uses_stable_row_ids and fragment_id in offsets:
            fragment = stamped_in_part(fragment, base.version + 1, offsets[fragment_id], sources)
        updated[fragment_id] = fragment
    return updated


def _offsets(operation: Update, updated: Mapping[int, Fragment]) -> dict[int, npt.NDArray[np.uint32]]:
    """Return the offsets of rows that a rewrite of columns changed, by fragment id."""
    unknown = sorted(set(operation.updated_offsets) - set(updated))
    if unknown:
        raise InvalidInputError(
            f"the update has changed rows in the fragments {unknown}, but does not list them as updated"
        )
    if operation.mode is not UpdateMode.REWRITE_COLUMNS:
        return {}
    found = {}
    for fragment_id, bitmap in operation.updated_offsets.items():
        where = f"updated offsets of fragment {fragment_id}"
        try:
            found[fragment_id] = decode_bitmap(bitmap, updated[fragment_id].physical_rows, where)
        except CorruptFileError as error:  # given by a caller, not read from a file
            raise InvalidInputError(str(error)) from error
    return found


def _has_only_moved_rows(fragment: Fragment) -> bool:
    """Return True if all rows of a fragment of an operation already have ids."""
    if not isinstance(fragment.row_ids, bytes):
        return fragment.row_ids is not None
    return (
        len(RowIds.decode_partial(fragment.row_ids, fragment.physical_rows, "new fragment")) == fragment.physical_rows
    )
