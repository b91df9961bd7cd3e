"""Feature flags: requirements of a table version on its readers and writers."""

from __future__ import annotations

import enum

from lance_dataset.errors import CorruptFileError, UnsupportedError

__all__ = ["Feature", "check_readable", "check_writable"]


class Feature(enum.IntFlag):
    """Bits of the reader and writer flag words."""

    DELETION_FILES = 1 << 0
    STABLE_ROW_IDS = 1 << 1
    V2_FORMAT = 1 << 2
    TABLE_CONFIG = 1 << 3
    BASE_PATHS = 1 << 4
    NO_TRANSACTION_FILE = 1 << 5
    DATA_OVERLAYS = 1 << 6
    COVERED_INDEX = 1 << 7
    MIXED_FILE_VERSIONS = 1 << 8
    REUSE_INDEX_WITH_STABLE_ROW_IDS = 1 << 9
    TAGGED_REUSE_INDEX = 1 << 10
    SPILLED_LINEAGE = 1 << 11
    RESERVED_12 = 1 << 12
    RESERVED_13 = 1 << 13
    MANAGED_BLOBS = 1 << 14
    NON_REUSABLE_FIELD_IDS = 1 << 15
    ZONE_WRITE_SEED = 1 << 16


#: Set in both words or in neither.
_PAIRED = Feature.MIXED_FILE_VERSIONS | Feature.TAGGED_REUSE_INDEX | Feature.MANAGED_BLOBS | Feature.ZONE_WRITE_SEED
#: Once set, set in every later version.
STICKY = _PAIRED | Feature.NON_REUSABLE_FIELD_IDS
_WRITABLE = (
    Feature.DELETION_FILES
    | Feature.STABLE_ROW_IDS
    | Feature.V2_FORMAT
    | Feature.TABLE_CONFIG
    | Feature.BASE_PATHS
    | Feature.NO_TRANSACTION_FILE
    | Feature.COVERED_INDEX
    | Feature.MIXED_FILE_VERSIONS
    | Feature.SPILLED_LINEAGE
    | Feature.NON_REUSABLE_FIELD_IDS
)
_READABLE = _WRITABLE | Feature.TAGGED_REUSE_INDEX | Feature.MANAGED_BLOBS
_UNWRITABLE, _UNREADABLE = ~int(_WRITABLE), ~int(_READABLE)


def check_readable(reader_flags: int, writer_flags: int, max_allocated_field_id: int | None, where: str) -> None:
    """Raise an error if this release cannot read a version.

    Parameters
    ----------
    reader_flags, writer_flags
        The two words of the manifest.
    max_allocated_field_id
        The high-water mark that must accompany the flag for field ids that are never reused.
    where
        Name of the manifest, for error messages.

    Raises
    ------
    UnsupportedError
        A bit is unknown to this release or not supported.
    CorruptFileError
        The bits contradict each other.
    """
    _refuse(reader_flags & _UNREADABLE, where, "read")
    half = (reader_flags ^ writer_flags) & int(_PAIRED)
    if half:
        raise CorruptFileError(
            f"{where}: feature {_names(half)} is set only for readers or only for writers, but must be set for both"
        )
    if reader_flags & Feature.NON_REUSABLE_FIELD_IDS:
        raise CorruptFileError(
            f"{where}: feature NON_REUSABLE_FIELD_IDS is set for readers, but it is a writer feature"
        )
    if bool(writer_flags & Feature.NON_REUSABLE_FIELD_IDS) != (max_allocated_field_id is not None):
        raise CorruptFileError(
            f"{where}: feature NON_REUSABLE_FIELD_IDS and the highest allocated field id must be set together, "
            "but only one of them is set"
        )


def check_writable(writer_flags: int, where: str) -> None:
    """Raise an error if this release cannot maintain the features of a version when it commits on top of it.

    Raises
    ------
    UnsupportedError
        A bit is unknown to this release or not supported.
    """
    _refuse(writer_flags & _UNWRITABLE, where, "write to")


def _refuse(bits: int, where: str, verb: str) -> None:
    if bits:
        raise UnsupportedError(
            f"{where}: cannot {verb} this dataset, it needs the feature {_names(bits)}; use a newer release or the "
            "program that wrote it"
        )


def _names(bits: int) -> str:
    names = []
    for position in range(bits.bit_length()):
        bit = 1 << position
        if bits & bit:
            known = Feature(bit).name if bit <= Feature.ZONE_WRITE_SEED else None
            names.append(f"{known or 'unknown'} (flag {bit})")
    return ", ".join(names)
