"""Checks that a manifest must pass before it is used."""

from __future__ import annotations

from collections.abc import Iterable, Set
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lance_dataset._proto import file_pb2
from lance_dataset.errors import CorruptFileError, UnsupportedError
from lance_dataset.io.base import safe_join
from lance_dataset.table.flags import Feature
from lance_dataset.table.fragment import (
    LEGACY_VERSION,
    DataFile,
    DeletionFileType,
    Fragment,
    file_version_numbers,
    known_storage_version,
    storage_version_of,
)
from lance_dataset.table.fragment_list import FragmentList

__all__ = ["check_fields", "check_known_versions", "check_manifest", "is_mixture"]

#: Files up to (0, 2) have storage version 0.1, see `FragmentColumns.file_versions`.
_FIRST_VERSION_2 = 3


def check_fields(fields: Iterable[file_pb2.Field], where: str) -> None:
    """Raise an error if a field id is negative. Parents and duplicates are checked when the schema tree is built."""
    for message in fields:
        if message.id < 0:
            raise CorruptFileError(f"{where}: field {message.name!r} has the id {message.id}, ids start at 0")


def check_known_versions(fragments: FragmentList, where: str) -> None:
    """Raise an error if a data file has a version that this release does not know.

    Raises
    ------
    UnsupportedError
        A file version is unknown. The message names it.
    """
    columns = fragments.columns
    for major, minor in columns.distinct_versions:
        if known_storage_version(major, minor) is None:
            owner = columns.file_owners[columns.file_versions == major << 32 | minor][0]
            storage_version_of(major, minor, f"{where}: fragment {columns.ids[owner]}")


def check_manifest(
    fragments: FragmentList,
    base_ids: Set[int],
    reader_flags: int,
    storage_version: str,
    transaction_file: str,
    where: str,
    *,
    from_storage: bool = True,
) -> FragmentList:
    """Check the files that a manifest lists.

    The content of each fragment is checked when it is first accessed, unless the arrays over all fragments already show
    a problem.

    Parameters
    ----------
    fragments
        The fragments.
    base_ids
        Ids of the base paths.
    reader_flags
        Feature flags for readers.
    storage_version
        Storage version of the table.
    transaction_file
        Name of the transaction file, or empty.
    where
        Name of the manifest, for error messages.
    from_storage
        True if the fragments were read from storage. Otherwise, all fragments that are not decoded objects were checked
        in the version before.

    Returns
    -------
    FragmentList
        The fragments, which check themselves on first access.

    Raises
    ------
    CorruptFileError
        The manifest contradicts the format.
    UnsupportedError
        This release does not know a storage version or file version.
    """
    file_version_numbers(storage_version)
    if transaction_file:
        safe_join("_transactions", transaction_file, what=f"{where}: transaction file")
    check_known_versions(fragments, where)
    _check_rows(fragments, bool(reader_flags & Feature.STABLE_ROW_IDS), where)
    _check_bases(fragments, base_ids, where)
    if fragments.columns.has_overlays.any():
        raise UnsupportedError(f"{where}: a fragment has data overlay files, which this release cannot read")
    mixed_allowed = bool(reader_flags & Feature.MIXED_FILE_VERSIONS)
    check_file_versions(fragments, storage_version, mixed_allowed=mixed_allowed, where=where)
    checked = fragments.checked_by(partial(_check_fragment, where=where))
    if from_storage and (_has_odd_files(checked) or (checked.columns.deletion_types > max(DeletionFileType)).any()):
        for _ in checked:  # find the wrong one
            pass
    return checked


def _refuse(ids: NDArray[np.int64], wrong: NDArray[np.bool_], where: str, text: str) -> None:
    """Raise an error if some fragments of a list are wrong."""
    if wrong.any():
        raise CorruptFileError(f"{where}: fragment {int(ids[wrong][0]) % (1 << 64)}: {text}")


def _check_rows(fragments: FragmentList, stable_row_ids: bool, where: str) -> None:
    """Check ids and numbers of rows."""
    columns = fragments.columns
    ids = columns.ids
    _refuse(ids, (ids < 0) | (ids >= 1 << 32), where, "fragment ids must be below 2**32")
    if (ids[1:] <= ids[:-1]).any():
        ordered = np.sort(ids)
        _refuse(ordered[1:], ordered[1:] == ordered[:-1], where, "occurs twice")
    _refuse(ids, columns.physical_rows < 0, where, "claims more rows than possible")
    if stable_row_ids:
        text = "has no row ids; with stable row ids all fragments must have row ids"
        _refuse(ids, ~columns.has_row_ids, where, text)
    deleted, rows = columns.num_deleted_rows, columns.physical_rows
    too_many = (deleted < 0) | (rows > 0) & (deleted > rows)
    for position in np.flatnonzero(too_many)[:1].tolist():
        text = f"{deleted[position]} of {rows[position]} rows are listed as deleted"
        _refuse(ids, too_many, where, text)


def _check_bases(fragments: FragmentList, base_ids: Set[int], where: str) -> None:
    """Check that files are in the table or in listed base paths."""
    columns = fragments.columns
    for bases, owners, what in (
        (columns.deletion_base_ids, None, "its deletion file"),
        (columns.file_base_ids, columns.file_owners, "a data file"),
    ):
        lost = bases >= 0
        if lost.any():
            lost &= ~np.isin(bases, np.array(list(base_ids), np.int64))
            ids = columns.ids if owners is None else columns.ids[owners]
            _refuse(ids, lost, where, f"{what} is in a base path that is not listed")


def _has_odd_files(fragments: FragmentList) -> bool:
    """Return True if a data file has an unusual path, or lists of different lengths."""
    columns = fragments.columns
    legacy = columns.file_versions < _FIRST_VERSION_2
    if ((columns.file_fields != columns.file_column_indices) & ~legacy).any():
        return True
    return not columns.has_plain_path.all()


def _check_fragment(fragment: Fragment, where: str) -> None:
    """Check the data files of a fragment."""
    for file in fragment.files:
        _check_file(file, f"{where}: fragment {fragment.id}")


def _check_file(file: DataFile, what: str) -> None:
    safe_join("data", file.path, what=f"{what}: data file")
    if file.storage_version == LEGACY_VERSION:
        live = [field_id for field_id in file.fields if field_id >= 0]
        if any(later <= earlier for earlier, later in pairwise(live)):
            raise CorruptFileError(f"{what}: the field ids of {file.path!r} are not ascending: {list(file.fields)}")
        return
    if len(file.fields) != len(file.column_indices):
        raise CorruptFileError(
            f"{what}: {file.path!r} lists {len(file.fields)} fields but {len(file.column_indices)} column indices"
        )
    columns = [column for column in file.column_indices if column >= 0]
    if len(columns) != len(set(columns)):
        raise CorruptFileError(f"{what}: {file.path!r} lists a column twice: {list(file.column_indices)}")


def check_file_versions(fragments: FragmentList, storage_version: str, *, mixed_allowed: bool, where: str) -> None:
    """Check that the data files fit together.

    Later versions may be mixed only if `mixed_allowed`. Files of 0.1 may be mixed with later ones only in tables that
    claim version 0.1, which release 0.16 produced, and never in one fragment.
    """
    columns = fragments.columns
    found = set(columns.storage_versions)
    if is_mixture(found):
        legacy = columns.file_versions < _FIRST_VERSION_2
        mixed = np.zeros(len(columns.ids), bool)
        mixed[np.intersect1d(columns.file_owners[legacy], columns.file_owners[~legacy])] = True
        _refuse(columns.ids, mixed, where, "has files of storage version 0.1 beside later ones; these cannot be mixed")
    if storage_version != LEGACY_VERSION:
        found.add(storage_version)
        if is_mixture(found):
            raise CorruptFileError(
                f"{where}: has files of storage version 0.1, but the table claims version {storage_version}"
            )
    later = found - {LEGACY_VERSION}
    if len(later) > 1 and not mixed_allowed and not _are_from_0_16(fragments, storage_version):
        raise CorruptFileError(
            f"{where}: files of the storage versions {sorted(later)} in a table of {storage_version} without the "
            "feature for mixed versions"
        )


def _are_from_0_16(fragments: FragmentList, storage_version: str) -> bool:
    """Return True if release 0.16 listed the files: all of them as (0, 3), although they and the table are 2.1."""
    return storage_version == "2.1" and bool((fragments.columns.file_versions == 3).all())


def is_mixture(storage_versions: Set[str]) -> bool:
    """Return True if the versions include 0.1 and a later one."""
    return LEGACY_VERSION in storage_versions and len(storage_versions) > 1
