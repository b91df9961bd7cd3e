"""What a manifest must fulfil before anything is done with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from itertools import pairwise

from lance_dataset._proto import file_pb2
from lance_dataset.errors import CorruptFileError, UnsupportedError
from lance_dataset.io.paths import safe_join
from lance_dataset.table.flags import Feature
from lance_dataset.table.fragment import LEGACY_VERSION, DataFile, Fragment, file_version_numbers

__all__ = ["check_fields", "check_fragments", "check_manifest", "is_mixture"]


def check_fields(fields: Iterable[file_pb2.Field], where: str) -> None:
    """Refuse negative field ids; parents and duplicates are checked when the schema tree is built."""
    for message in fields:
        if message.id < 0:
            raise CorruptFileError(f"{where}: field {message.name!r} has the id {message.id}, ids start at 0")


def check_manifest(
    fragments: Sequence[Fragment],
    base_ids: Set[int],
    reader_flags: int,
    storage_version: str,
    transaction_file: str,
    where: str,
) -> None:
    """Check what a manifest says about its files.

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
        Name of the transaction file or nothing.
    where
        Name of the manifest, for error messages.

    Raises
    ------
    CorruptFileError
        A contradiction to the format.
    UnsupportedError
        A storage version or file version this release does not know.
    """
    file_version_numbers(storage_version)
    if transaction_file:
        safe_join("_transactions", transaction_file, what=f"{where}: transaction file")
    check_fragments(fragments, base_ids, bool(reader_flags & Feature.STABLE_ROW_IDS), where)
    if any(fragment.overlays for fragment in fragments):
        raise UnsupportedError(f"{where}: a fragment has data overlay files, which this release cannot read")
    mixed_allowed = bool(reader_flags & Feature.MIXED_FILE_VERSIONS)
    check_file_versions(fragments, storage_version, mixed_allowed=mixed_allowed, where=where)


def check_fragments(fragments: Sequence[Fragment], base_ids: Set[int], stable_row_ids: bool, where: str) -> None:
    """Check every fragment by itself, and that their ids are unique."""
    seen: set[int] = set()
    for fragment in fragments:
        what = f"{where}: fragment {fragment.id}"
        if fragment.id >= 1 << 32:
            raise CorruptFileError(f"{what}: fragment ids must be below 2**32")
        if fragment.id in seen:
            raise CorruptFileError(f"{what}: occurs twice")
        seen.add(fragment.id)
        if stable_row_ids and fragment.row_ids is None:
            raise CorruptFileError(f"{what}: has no row ids; with stable row ids all fragments must have row ids")
        for file in fragment.files:
            _check_file(file, base_ids, what)
        _check_deletions(fragment, base_ids, what)


def _check_deletions(fragment: Fragment, base_ids: Set[int], what: str) -> None:
    deletions = fragment.deletion_file
    if deletions is None:
        return
    if fragment.physical_rows and deletions.num_deleted_rows > fragment.physical_rows:
        raise CorruptFileError(
            f"{what}: {deletions.num_deleted_rows} of {fragment.physical_rows} rows are said to be deleted"
        )
    if deletions.base_id is not None and deletions.base_id not in base_ids:
        raise CorruptFileError(f"{what}: its deletion file lies in base path {deletions.base_id}, which is not listed")


def _check_file(file: DataFile, base_ids: Set[int], what: str) -> None:
    safe_join("data", file.path, what=f"{what}: data file")
    if file.base_id is not None and file.base_id not in base_ids:
        raise CorruptFileError(f"{what}: {file.path!r} lies in base path {file.base_id}, which is not listed")
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


def check_file_versions(
    fragments: Sequence[Fragment], storage_version: str, *, mixed_allowed: bool, where: str
) -> None:
    """Check that the data files go together.

    Later versions mix only where `mixed_allowed`. Files of 0.1 mix with later ones only in tables that call themselves
    0.1, as release 0.16 left some, and never in one fragment.
    """
    found: set[str] = set()
    for fragment in fragments:
        versions = fragment.storage_versions
        if is_mixture(versions):
            raise CorruptFileError(
                f"{where}: fragment {fragment.id} has files of the storage versions {sorted(versions)}; those of 0.1 "
                "never go together with later ones"
            )
        found |= versions
    if storage_version != LEGACY_VERSION:
        found.add(storage_version)
        if is_mixture(found):
            raise CorruptFileError(
                f"{where}: has files of storage version 0.1, but calls itself a table of {storage_version}"
            )
    later = found - {LEGACY_VERSION}
    if len(later) > 1 and not mixed_allowed and not _are_from_0_16(fragments, storage_version):
        raise CorruptFileError(
            f"{where}: files of the storage versions {sorted(later)} in a table of {storage_version} without the "
            "feature for mixed versions"
        )


def _are_from_0_16(fragments: Sequence[Fragment], storage_version: str) -> bool:
    """Whether it is release 0.16 that listed the files: all of them as (0, 3), though they and the table say 2.1."""
    files = (file for fragment in fragments for file in fragment.files)
    return storage_version == "2.1" and all(
        (file.file_major_version, file.file_minor_version) == (0, 3) for file in files
    )


def is_mixture(storage_versions: Set[str]) -> bool:
    """Whether 0.1 is among the versions beside a later one."""
    return LEGACY_VERSION in storage_versions and len(storage_versions) > 1
