"""Row lineage of changed fragments: stable row ids, and the versions that created and last changed each row."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from lance_dataset.errors import CorruptFileError, InvalidInputError, UnsupportedError
from lance_dataset.properties import cached_property
from lance_dataset.table.fragment import Fragment, Lineage, Spilled
from lance_dataset.table.lineage.row_ids import RowIds, RowVersions
from lance_dataset.table.lineage.segments import Runs
from lance_dataset.table.lineage.version_index import VersionIndex
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.old_tables.completion import Completion

__all__ = ["RowSources", "stamped", "stamped_in_part", "with_carried_lineage", "with_lineage", "without_lineage"]

_Numbers: TypeAlias = "npt.NDArray[np.uint64]"


class RowSources:
    """Finds the versions that created or last changed rows, by their ids.

    Parameters
    ----------
    base
        The version that contains the rows.
    touched
        Ids of the fragments that probably contain the rows. The others are searched if a row is in none of these.
    files
        Reads lineage stored in hidden columns. None if they cannot be read.
    """

    def __init__(self, base: Manifest, touched: Collection[int], files: Completion | None = None) -> None:
        self._base = base
        self._touched = frozenset(touched)
        self._files = files

    def created_at(self, row_ids: _Numbers, default: int) -> _Numbers:
        """Return the version that created each row, or `default` for rows that were not found."""
        return self._look_up(row_ids, self._created, "created_at_versions", default)

    def last_updated_at(self, row_ids: _Numbers, default: int) -> _Numbers:
        """Return the version that last changed each row, or `default` for rows that were not found."""
        return self._look_up(row_ids, self._updated, "last_updated_at_versions", default)

    def row_ids(self, fragment: Fragment) -> _Numbers:
        """Return the row ids of a fragment, in physical order."""
        return self._id_runs(fragment).to_numpy()

    def versions(self, fragment: Fragment, name: str) -> _Numbers:
        """Return the versions of the rows of a fragment, in physical order, from the sequence named `name`."""
        return self._version_runs(fragment, name).to_numpy()

    def _id_runs(self, fragment: Fragment) -> Runs:
        ids, where = fragment.row_ids, f"fragment {fragment.id}"
        if isinstance(ids, Spilled):
            return Runs.of(self._hidden(fragment, "row_ids"))
        found = RowIds.decode(ids or b"", fragment.physical_rows, where)
        return Runs.joined(segment.runs() for segment in found.segments)

    def _version_runs(self, fragment: Fragment, name: str) -> RowVersions:
        versions = getattr(fragment, name)
        if isinstance(versions, Spilled):
            return RowVersions.from_values(self._hidden(fragment, name))
        return RowVersions.decode(versions, fragment.physical_rows, f"fragment {fragment.id}")

    def _hidden(self, fragment: Fragment, name: str) -> _Numbers:
        if self._files is None:
            raise UnsupportedError(
                f"fragment {fragment.id}: its {name} are in a hidden column, which cannot be read here"
            )
        return self._files.hidden_column(fragment, name, self._base.base_paths)

    @cached_property
    def _created(self) -> VersionIndex:
        return self._index("created_at_versions", touched=True)

    @cached_property
    def _updated(self) -> VersionIndex:
        return self._index("last_updated_at_versions", touched=True)

    def _index(self, name: str, *, touched: bool) -> VersionIndex:
        listed = self._base.fragment_list
        positions = np.flatnonzero(np.isin(listed.ids, list(self._touched)) == touched).tolist()
        fragments = map(listed.__getitem__, positions)
        return VersionIndex.build((self._id_runs(each), self._version_runs(each, name)) for each in fragments)

    def _look_up(self, row_ids: _Numbers, index: VersionIndex, name: str, default: int) -> _Numbers:
        versions, found = index.look_up(row_ids)
        if not found.all():
            elsewhere, found_elsewhere = self._index(name, touched=False).look_up(row_ids)
            versions = np.where(found, versions, np.where(found_elsewhere, elsewhere, np.uint64(default)))
        return versions


def with_lineage(
    fragment: Fragment, next_row_id: int, version: int, sources: RowSources | None
) -> tuple[Fragment, int]:
    """Return a new fragment with an id and versions for every row, and the next row id.

    Parameters
    ----------
    fragment
        The fragment. It may carry ids for its first rows, which are those of rows that moved.
    next_row_id
        First id to assign.
    version
        The version that adds the fragment. It counts as the last that changed its rows.
    sources
        Finds the origin of the rows with ids. None for rows that this version creates, whatever their ids.

    Returns
    -------
    fragment : Fragment
    next_row_id : int
        First id that is still unassigned.

    Raises
    ------
    InvalidInputError
        A row id was not assigned yet.
    """
    rows = fragment.physical_rows
    stamp = RowVersions.constant(rows, version).encode()
    created: Lineage = stamp
    if isinstance(fragment.row_ids, Spilled):
        ids: Lineage = fragment.row_ids
        if sources is not None:
            created = fragment.created_at_versions
            if not isinstance(created, Spilled):
                moved = sources.created_at(sources.row_ids(fragment), version)
                created = RowVersions.from_values(moved).encode()
    else:
        given = _given_ids(fragment, next_row_id)
        missing = rows - len(given)
        ids = given.extended(next_row_id, missing).encode() if missing else fragment.row_ids
        next_row_id += missing
        if sources is not None and len(given):
            versions = np.full(rows, version, np.uint64)
            versions[: len(given)] = sources.created_at(given.to_numpy(), version)
            created = RowVersions.from_values(versions).encode()
    return (
        replace(fragment, row_ids=ids, created_at_versions=created, last_updated_at_versions=stamp),
        next_row_id,
    )


def with_carried_lineage(fragment: Fragment, next_row_id: int, version: int, sources: RowSources) -> Fragment:
    """Return a fragment of existing rows, with their versions where the fragment itself does not state them.

    Parameters
    ----------
    fragment
        The fragment. It has an id for every row.
    next_row_id
        First id that was not assigned yet.
    version
        Version to use for rows that did not exist before.
    sources
        Finds the origin of the rows.

    Raises
    ------
    InvalidInputError
        The fragment lacks row ids, or one of them was not assigned yet.
    """
    rows, where = fragment.physical_rows, "rewritten fragment"
    created, updated = fragment.created_at_versions, fragment.last_updated_at_versions
    for given in (created, updated):
        if isinstance(given, bytes):
            RowVersions.decode(given, rows, where)
    if not isinstance(fragment.row_ids, Spilled):
        ids = _given_ids(fragment, next_row_id)
        if len(ids) != rows:
            raise InvalidInputError(
                f"a rewritten fragment has {len(ids)} row ids for {rows} rows; with stable row ids it needs the ids "
                "of its rows"
            )
    if created is None:
        created = RowVersions.from_values(sources.created_at(sources.row_ids(fragment), version)).encode()
    if updated is None:
        updated = RowVersions.from_values(sources.last_updated_at(sources.row_ids(fragment), version)).encode()
    return replace(fragment, created_at_versions=created, last_updated_at_versions=updated)


def _given_ids(fragment: Fragment, next_row_id: int) -> RowIds:
    """Return the row ids that a fragment of an operation carries."""
    if not isinstance(fragment.row_ids, bytes):
        return RowIds(())
    try:
        given = RowIds.decode_partial(fragment.row_ids, fragment.physical_rows, "new fragment")
    except CorruptFileError as error:  # given by a caller, not read from a file
        raise InvalidInputError(str(error)) from error
    highest = max((segment.runs().bounds[1] for segment in given.segments if len(segment)), default=-1)
    if highest >= next_row_id:
        raise InvalidInputError(
            f"a new fragment has the row id {highest}, but only ids below {next_row_id} were assigned so "
            "far; leave row_id_meta out, the commit assigns ids to new rows"
        )
    return given


def without_lineage(fragment: Fragment) -> Fragment:
    """Return a fragment without lineage, for a table without stable row ids."""
    if fragment.row_ids is fragment.created_at_versions is fragment.last_updated_at_versions is None:
        return fragment
    return replace(fragment, row_ids=None, created_at_versions=None, last_updated_at_versions=None)


def stamped(fragment: Fragment, version: int) -> Fragment:
    """Return a fragment with `version` as the last change of all its rows."""
    stamp = RowVersions.constant(fragment.physical_rows, version)
    return replace(fragment, last_updated_at_versions=stamp.encode())


def stamped_in_part(fragment: Fragment, version: int, offsets: npt.NDArray[np.uint32], sources: RowSources) -> Fragment:
    """Return a fragment with `version` as the last change of some of its rows.

    Parameters
    ----------
    fragment
        The fragment, with stable row ids.
    version
        The version.
    offsets
        Physical offsets of the rows that it changed.
    sources
        Reads the versions that changed the other rows.
    """
    versions = np.array(sources.versions(fragment, "last_updated_at_versions"))
    versions[offsets] = version
    return replace(fragment, last_updated_at_versions=RowVersions.from_values(versions).encode())
