"""Summaries of manifests: the facts to list a version or to remove it, read without decoding the rest."""

from __future__ import annotations

import datetime as dt
from functools import lru_cache
from typing import NamedTuple

from google.protobuf.message import DecodeError

from lance_dataset._proto import table_pb2
from lance_dataset.errors import UnsupportedError
from lance_dataset.table.flags import Feature
from lance_dataset.table.fragment import (
    LEGACY_VERSION,
    DeletionFile,
    DeletionFileType,
    file_version_numbers,
    known_storage_version,
)
from lance_dataset.table.manifest import commit_time
from lance_dataset.table.paths import deletion_name
from lancecodec import manifests

__all__ = ["ManifestSummary", "summarized"]

#: Bytes of a manifest for each of its files; with fewer, decoding it checks how much memory it needs.
_BYTES_PER_FILE = 24
#: Features that change nothing in the meaning of what is read here.
_SIMPLE = int(
    Feature.DELETION_FILES
    | Feature.STABLE_ROW_IDS
    | Feature.V2_FORMAT
    | Feature.TABLE_CONFIG
    | Feature.NO_TRANSACTION_FILE
    | Feature.COVERED_INDEX
    | Feature.SPILLED_LINEAGE
)
_DELETION_TYPES = dict(enumerate(DeletionFileType))


class ManifestSummary(NamedTuple):
    """Facts about a version.

    Attributes
    ----------
    version
        Version number.
    timestamp_nanos
        Time of the commit, nanoseconds since the epoch.
    writer_flags
        Feature flags for writers.
    path
        Path of the manifest.
    transaction_file
        Name of the transaction file, empty if there is none.
    has_inline_transaction
        True if the manifest has the transaction itself.
    index_section
        Serialized list of indices, None if there are none.
    data_files
        Paths of the data files, all in the table itself.
    deletion_files
        Names of the deletion files, all in the table itself.
    fragments, rows, deleted_rows, file_bytes
        Number of fragments, sums of their rows with deleted ones, of their deleted rows and of the sizes of their
        data files.
    """

    version: int
    timestamp_nanos: int
    writer_flags: int
    path: str
    transaction_file: str
    has_inline_transaction: bool
    index_section: bytes | None
    data_files: list[bytes]
    deletion_files: list[str]
    fragments: int
    rows: int
    deleted_rows: int
    file_bytes: int

    @property
    def timestamp(self) -> dt.datetime:
        """Time of the commit in UTC, truncated to microseconds."""
        return commit_time(self.timestamp_nanos, self.version, self.path)


def summarized(data: bytes, path: str) -> ManifestSummary | None:
    """Read the facts from the content of a manifest file.

    Parameters
    ----------
    data
        The whole file.
    path
        Name of the file.

    Returns
    -------
    ManifestSummary or None
        None if the manifest is to be decoded: it has features or values that are not common, or is damaged.
    """
    scanned = manifests.scan(data, len(data) // _BYTES_PER_FILE)
    if scanned is None:
        return None
    version, reader_flags, writer_flags, seconds, nanos, transaction, inline, indices, form, numbers = scanned[:10]
    paths, deletions, fragments, rows, deleted, size = scanned[10:]
    if (reader_flags | writer_flags) & ~_SIMPLE or not _is_common(form, numbers):
        return None
    names = []
    for fragment_id, kind, read_version, file_id in deletions:
        known = _DELETION_TYPES.get(kind)
        if known is None:
            return None
        names.append(deletion_name(fragment_id, DeletionFile(known, read_version, file_id)))
    return ManifestSummary(
        *(version, seconds * 1_000_000_000 + nanos, writer_flags, path, transaction.decode(), inline, indices or None),
        *(paths, names, fragments, rows, deleted, size),
    )


@lru_cache(maxsize=16)
def _is_common(form: bytes, numbers: tuple[int, int] | None) -> bool:
    """Return whether a table and its files, if it has any, are of the same known version, not a legacy one."""
    try:
        stated = table_pb2.DataStorageFormat.FromString(form).version
        file_version_numbers(stated)
    except (DecodeError, UnsupportedError):
        return False
    return stated != LEGACY_VERSION and (numbers is None or known_storage_version(*numbers) == stated)
