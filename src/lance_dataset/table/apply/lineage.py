"""Row lineage of changed fragments: stable row ids, and the versions that created and last changed each row."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from lance_dataset.errors import CorruptFileError, InvalidInputError, UnsupportedError
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
        The version the rows are in.
    touched
        Ids of the fragments where they probably are; others are searched when a row is in none of these.
    files
        Reads lineage that is in hidden columns; None where that cannot be.
    """

    def __init__(self, base: Manifest, touched: Collection[int], files: Completion | None = None) -> None:
        self._base = base
        self._touched = frozenset(touched)
        self._files = files

    def created_at(self, row_ids: _Numbers, default: int) -> _Numbers:
        """The version that created each row; `default` for rows that are nowhere."""
        return self._look_up(row_ids, self._created, "created_at_versions", default)

    def last_updated_at(self, row_ids: _Numbers, default: int) -> _Numbers:
        """The version that last changed each row; `default` for rows that are nowhere."""
        return self._look_up(row_ids, self._updated, "last_updated_at_versions", default)

    def row_ids(self, fragment: Fragment) -> _Numbers:
        """Row ids of a fragment, in physical order."""
        return self._id_runs(fragment).to_numpy()

    def versions(self, fragment: Fragment, name: str) -> _Numbers:
        """Versions of the rows of a fragment, in physical order; `name` is that of the sequence."""
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
    """A new fragment with an id and versions for every row.

    Parameters
    ----------
    fragment
        The fragment; it may carry ids for its first rows, which are those of rows that moved.
    next_row_id
        First id to give out.
    version
        The version that brings the fragment, and so is the last that changed its rows.
    sources
        Where the rows with ids come from; None for rows that this version creates, whatever their ids.

    Returns
    -------
    fragment : Fragment
    next_row_id : int
        First id that is still to be given out.

    Raises
    ------
    InvalidInputError
        An id that was not given out yet.
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
    """A fragment whose rows stood in others before, with their versions where it does not say them itself.

    Parameters
    ----------
    fragment
        The fragment; it has an id for every row.
    next_row_id
        First id that was not given out yet.
    version
        What to take for rows that were nowhere before.
    sources
        Where the rows come from.

    Raises
    ------
    InvalidInputError
        It lacks row ids, or one was not given out yet.
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
                f"a rewritten fragment has {len(ids)} row ids for {rows} rows; with stable row ids it must have those "
                "of its rows"
            )
    if created is None:
        created = RowVersions.from_values(sources.created_at(sources.row_ids(fragment), version)).encode()
    if updated is None:
        updated = RowVersions.from_values(sources.last_updated_at(sources.row_ids(fragment), version)).encode()
    return replace(fragment, created_at_versions=created, last_updated_at_versions=updated)


def _given_ids(fragment: Fragment, next_row_id: int) -> RowIds:
    """The row ids that a fragment of an operation brings along."""
    if not isinstance(fragment.row_ids, bytes):
        return RowIds(())
    try:
        given = RowIds.decode_partial(fragment.row_ids, fragment.physical_rows, "new fragment")
    except CorruptFileError as error:  # given by a caller, not read from a file
        raise InvalidInputError(str(error)) from error
    highest = max((segment.runs().bounds[1] for segment in given.segments if len(segment)), default=-1)
    if highest >= next_row_id:
        raise InvalidInputError(
            f"a new fragment has the row id {highest}, but only ids below {next_row_id} were given out so "
            "far; leave row_id_meta out, the commit gives ids to new rows"
        )
    return given


def without_lineage(fragment: Fragment) -> Fragment:
    """A fragment of a table without stable row ids."""
    if fragment.row_ids is fragment.created_at_versions is fragment.last_updated_at_versions is None:
        return fragment
    return replace(fragment, row_ids=None, created_at_versions=None, last_updated_at_versions=None)


def stamped(fragment: Fragment, version: int) -> Fragment:
    """A fragment all of whose rows were last changed by a version."""
    stamp = RowVersions.constant(fragment.physical_rows, version)
    return replace(fragment, last_updated_at_versions=stamp.encode())


def stamped_in_part(fragment: Fragment, version: int, offsets: npt.NDArray[np.uint32], sources: RowSources) -> Fragment:
    """A fragment some of whose rows were last changed by a version.

    Parameters
    ----------
    fragment
        The fragment, with stable row ids.
    version
        The version.
    offsets
        Physical offsets of the rows it changed.
    sources
        Reads the versions that changed the others.
    """
    versions = np.array(sources.versions(fragment, "last_updated_at_versions"))
    versions[offsets] = version
    return replace(fragment, last_updated_at_versions=RowVersions.from_values(versions).encode())
