"""Ids of new fragments, and checks that their files fit those of the table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from lance_dataset.errors import InvalidInputError
from lance_dataset.file.container import MAX_ROWS
from lance_dataset.table.apply.lineage import RowSources, with_carried_lineage, with_lineage, without_lineage
from lance_dataset.table.fragment import LEGACY_VERSION, Fragment
from lance_dataset.table.fragment_list import FragmentList
from lance_dataset.table.manifest import Manifest

__all__ = ["check_file_versions", "check_ids", "highest_id", "new_fragments"]

#: The largest fragment id. It is the upper half of row addresses.
_MAX_ID = (1 << 32) - 1


def new_fragments(
    base: Manifest, fragments: Sequence[Fragment], sources: RowSources | None = None, *, carried: bool = False
) -> tuple[tuple[Fragment, ...], int]:
    """Return new fragments with ids and row lineage, and the next row id.

    Parameters
    ----------
    base
        The version they are added to.
    fragments
        Fragments of an operation. Id 0 requests the next free one.
    sources
        Finds the versions that created the rows that already have an id.
    carried
        True if those rows are unchanged, so that they also keep the version that last changed them.

    Returns
    -------
    fragments : tuple of Fragment
        The fragments as the next version lists them.
    next_row_id : int
        Next unused row id.

    Raises
    ------
    InvalidInputError
        A fragment has no rows or has impossible row ids, or no row ids are left.
    """
    highest = highest_id(base, base)
    next_id = 0 if highest is None else highest + 1
    next_row_id = base.next_row_id
    for fragment in fragments:
        _check_new(fragment, counted=base.uses_stable_row_ids)
    if base.uses_stable_row_ids:
        _check_row_ids_left(next_row_id, fragments)
    numbered = []
    for fragment in fragments:
        if fragment.id == 0:
            fragment = replace(fragment, id=next_id)
            next_id += 1
        if base.uses_stable_row_ids and carried and sources is not None:
            fragment = with_carried_lineage(fragment, next_row_id, base.version + 1, sources)
        elif base.uses_stable_row_ids:
            fragment, next_row_id = with_lineage(fragment, next_row_id, base.version + 1, sources)
        else:
            fragment = without_lineage(fragment)
        numbered.append(fragment)
    return tuple(numbered), next_row_id


def _check_row_ids_left(next_row_id: int, fragments: Sequence[Fragment]) -> None:
    rows = sum(fragment.physical_rows for fragment in fragments)
    if next_row_id + rows >= 1 << 64:
        raise InvalidInputError(
            f"{rows} new rows need row ids from {next_row_id} on, and ids end at 2**64: no version before this one can "
            "have used that many, so the manifest is damaged; restore an earlier version"
        )


def _check_new(fragment: Fragment, *, counted: bool) -> None:
    """Raise an error if a new fragment is invalid in every version. With `counted`, it must state its row count."""
    rows: object = fragment.physical_rows
    if rows == 0 or (rows is None and counted):
        raise InvalidInputError("a new fragment has no rows, or does not state how many; leave it out")
    if rows is not None and not (isinstance(rows, int | np.integer) and 0 < rows <= MAX_ROWS):
        raise InvalidInputError(f"a new fragment cannot have {rows!r} rows; expected a number up to {MAX_ROWS}")
    if not fragment.files:
        raise InvalidInputError("a new fragment has rows, but no data file")
    given: object = fragment.id
    if not (isinstance(given, int | np.integer) and 0 <= given <= _MAX_ID):
        raise InvalidInputError(f"a fragment cannot have the id {given!r}; ids are numbers up to {_MAX_ID}")


def highest_id(base: Manifest, changed: Manifest) -> int | None:
    """Return the highest fragment id that any version up to `changed` used, or None if there never was a fragment."""
    marks = [mark for mark in (base.max_fragment_id, changed.max_fragment_id) if mark is not None]
    ids = (base.fragment_list.ids, changed.fragment_list.ids)
    return max([*marks, *(int(each.max()) for each in ids if len(each))], default=None)


def check_ids(fragments: FragmentList) -> None:
    """Raise an error if fragment ids given by the caller are already used.

    Raises
    ------
    InvalidInputError
        A fragment id would be used twice. The message names the ids.
    """
    ordered = np.sort(fragments.ids)
    repeated = np.unique(ordered[1:][ordered[1:] == ordered[:-1]]).tolist()
    if repeated:
        raise InvalidInputError(
            f"the fragment ids {repeated} would be used twice; give new fragments the id 0, the commit assigns ids"
        )


def check_file_versions(storage_version: str, present: FragmentList, added: Iterable[Fragment]) -> None:
    """Raise an error if files of version 0.1 would be mixed with later ones.

    Raises
    ------
    InvalidInputError
        The versions do not fit together. The message names both.
    """
    new = {file.storage_version for fragment in added for file in fragment.files}
    if not new:
        return
    old = present.columns.storage_versions or {storage_version}
    if LEGACY_VERSION in old | new and len(old | new) > 1:
        raise InvalidInputError(
            f"files of storage version {sorted(new)} cannot be added to a dataset of {sorted(old)}: version 0.1 never "
            "mixes with later ones; write the files in the version of the dataset, or overwrite it"
        )
