"""Fragments: horizontal slices of a table that consist of data files, a deletion file and row lineage."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import field

from lance_dataset._proto import table_pb2
from lance_dataset.errors import UnsupportedError
from lance_dataset.late_dataclass import dataclass

__all__ = [
    "LEGACY_VERSION",
    "DataFile",
    "DeletionFile",
    "DeletionFileType",
    "Fragment",
    "Lineage",
    "Spilled",
    "file_version_numbers",
    "known_storage_version",
    "storage_version_of",
]

#: Name of the storage version before 2.0.
LEGACY_VERSION = "0.1"

_STORAGE_VERSIONS = {
    (0, 0): LEGACY_VERSION,
    (0, 1): LEGACY_VERSION,
    (0, 2): LEGACY_VERSION,
    (0, 3): "2.0",
    (2, 0): "2.0",
    (2, 1): "2.1",
    (2, 2): "2.2",
    (2, 3): "2.3",
}
_VERSION_NUMBERS = {LEGACY_VERSION: (0, 2), "2.0": (2, 0), "2.1": (2, 1), "2.2": (2, 2), "2.3": (2, 3)}


def known_storage_version(major: int, minor: int) -> str | None:
    """Return the storage version of files with these version numbers, None for unknown ones."""
    return _STORAGE_VERSIONS.get((major, minor))


def storage_version_of(major: int, minor: int, where: str) -> str:
    """Return the storage version (``"2.1"``) of a data file listed with these version numbers.

    Raises
    ------
    UnsupportedError
        The version numbers are unknown.
    """
    found = _STORAGE_VERSIONS.get((major, minor))
    if found is None:
        raise UnsupportedError(f"{where}: Unknown Lance storage version: {major}.{minor}")
    return found


def file_version_numbers(storage_version: str) -> tuple[int, int]:
    """Return the version numbers for `DataFile` of files of a storage version.

    Raises
    ------
    UnsupportedError
        The storage version is unknown.
    """
    found = _VERSION_NUMBERS.get(storage_version)
    if found is None:
        known = ", ".join(_VERSION_NUMBERS)
        raise UnsupportedError(f"Unknown Lance storage version: {storage_version}; the versions are {known}")
    return found


class Spilled(enum.Enum):
    """Marker for a lineage sequence that is stored as a hidden column of one of the fragment's data files."""

    COLUMN = "column"


#: A serialized sequence, the marker for a hidden column, or None without a sequence.
Lineage = bytes | Spilled | None


class DeletionFileType(enum.IntEnum):
    """Format of a deletion file."""

    ARROW_ARRAY = 0
    BITMAP = 1

    @property
    def suffix(self) -> str:
        """End of the file name, without a dot."""
        return "arrow" if self is DeletionFileType.ARROW_ARRAY else "bin"


@dataclass(frozen=True)
class DataFile:
    """A file that contains some columns of a fragment.

    Attributes
    ----------
    path
        Path below the data folder of the table or base path.
    fields
        Field ids. -2 marks a column that is no longer used, -3 to -5 are hidden lineage columns.
    column_indices
        Column of the file for each of `fields`, -1 for a field without one. Empty for 0.1 files.
    file_major_version, file_minor_version
        Version of the file format.
    file_size_bytes
        Exact size, 0 if unknown.
    base_id
        Base path of the file, None for the table itself.
    metadata_size_bytes
        Size of the file's metadata, 0 if unknown.
    """

    path: str
    fields: tuple[int, ...]
    column_indices: tuple[int, ...]
    file_major_version: int
    file_minor_version: int
    file_size_bytes: int = 0
    base_id: int | None = None
    metadata_size_bytes: int = 0

    @property
    def storage_version(self) -> str:
        """Storage version of the file, such as ``"2.1"``. Raises UnsupportedError for unknown numbers."""
        major, minor = self.file_major_version, self.file_minor_version
        return _STORAGE_VERSIONS.get((major, minor)) or storage_version_of(major, minor, f"data file {self.path!r}")

    @property
    def is_legacy(self) -> bool:
        """True if the file is older than 2.0. Such a file numbers its columns by field id."""
        return self.storage_version == LEGACY_VERSION

    @property
    def columns(self) -> Iterator[tuple[int, int]]:
        """Pairs (field id, column index). In 0.1 files, which have no column indices, the index is the field id."""
        if self.is_legacy:
            return zip(self.fields, self.fields, strict=True)
        return zip(self.fields, self.column_indices, strict=True)

    @classmethod
    def from_proto(cls, message: table_pb2.DataFile) -> DataFile:
        """Build from a message, without checks."""
        return cls(
            path=message.path,
            fields=tuple(message.fields),
            column_indices=tuple(message.column_indices),
            file_major_version=message.file_major_version,
            file_minor_version=message.file_minor_version,
            file_size_bytes=message.file_size_bytes,
            base_id=message.base_id if message.HasField("base_id") else None,
            metadata_size_bytes=message.file_metadata_size_bytes,
        )

    def to_proto(self) -> table_pb2.DataFile:
        """Return the message of this file."""
        return table_pb2.DataFile(
            path=self.path,
            fields=self.fields,
            column_indices=self.column_indices,
            file_major_version=self.file_major_version,
            file_minor_version=self.file_minor_version,
            file_size_bytes=self.file_size_bytes,
            base_id=self.base_id,
            file_metadata_size_bytes=self.metadata_size_bytes,
        )


@dataclass(frozen=True)
class DeletionFile:
    """File with the deleted offsets of a fragment.

    Attributes
    ----------
    file_type
        Format of the file.
    read_version, id
        Parts of the file name.
    num_deleted_rows
        Number of deleted rows, 0 if unknown.
    base_id
        Base path of the file, None for the table itself.
    """

    file_type: DeletionFileType
    read_version: int
    id: int
    num_deleted_rows: int = 0
    base_id: int | None = None

    @classmethod
    def from_proto(cls, message: table_pb2.DeletionFile, where: str) -> DeletionFile:
        """Read a message. Raises UnsupportedError for an unknown file type."""
        try:
            file_type = DeletionFileType(message.file_type)
        except ValueError:
            raise UnsupportedError(f"{where}: unknown type {message.file_type} of deletion file") from None
        return cls(
            file_type=file_type,
            read_version=message.read_version,
            id=message.id,
            num_deleted_rows=message.num_deleted_rows,
            base_id=message.base_id if message.HasField("base_id") else None,
        )

    def to_proto(self) -> table_pb2.DeletionFile:
        """Return the message of this file."""
        return table_pb2.DeletionFile(
            file_type=int(self.file_type),  # type: ignore[arg-type]
            read_version=self.read_version,
            id=self.id,
            num_deleted_rows=self.num_deleted_rows,
            base_id=self.base_id,
        )


@dataclass(frozen=True)
class Fragment:
    """A horizontal slice of the table.

    Attributes
    ----------
    id
        Id, unique in the table. In a transaction, 0 also means that the commit assigns the id.
    files
        Data files.
    deletion_file
        Deleted rows, None if there are none.
    physical_rows
        Rows in the files including deleted ones, 0 if unknown.
    row_ids, last_updated_at_versions, created_at_versions
        Serialized sequences, see `lance_dataset.table.lineage.row_ids`.
    overlays
        Serialized overlay messages, preserved unchanged.
    clustering_id, metadata
        Reserved by the format, preserved unchanged.
    """

    id: int
    files: tuple[DataFile, ...]
    deletion_file: DeletionFile | None = None
    physical_rows: int = 0
    row_ids: Lineage = None
    last_updated_at_versions: Lineage = None
    created_at_versions: Lineage = None
    overlays: tuple[bytes, ...] = ()
    clustering_id: int | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def num_deletions(self) -> int | None:
        """Number of deleted rows, None if only the deletion file states it."""
        if self.deletion_file is None:
            return 0
        return self.deletion_file.num_deleted_rows or None

    @property
    def num_rows(self) -> int | None:
        """Number of live rows, None if only the files state it."""
        deleted = self.num_deletions
        if deleted is None or self.physical_rows == 0:
            return None
        return self.physical_rows - deleted

    @property
    def storage_versions(self) -> frozenset[str]:
        """Storage versions of the data files."""
        return frozenset(file.storage_version for file in self.files)

    @classmethod
    def from_proto(cls, message: table_pb2.DataFragment, where: str = "fragment") -> Fragment:
        """Read a message.

        Parameters
        ----------
        message
            A fragment of a manifest or transaction.
        where
            File that contains the message, for error messages.

        Raises
        ------
        UnsupportedError
            The type of the deletion file is unknown.
        """
        deletion_file = None
        if message.HasField("deletion_file"):
            deletion_file = DeletionFile.from_proto(message.deletion_file, f"{where}: fragment {message.id}")
        return cls(
            id=message.id,
            files=tuple(DataFile.from_proto(file) for file in message.files),
            deletion_file=deletion_file,
            physical_rows=message.physical_rows,
            row_ids=_lineage(message, "row_id_sequence"),
            last_updated_at_versions=_lineage(message, "last_updated_at_version_sequence"),
            created_at_versions=_lineage(message, "created_at_version_sequence"),
            overlays=tuple(overlay.SerializeToString() for overlay in message.overlays),
            clustering_id=message.clustering_id if message.HasField("clustering_id") else None,
            metadata=dict(message.metadata),
        )

    def to_proto(self) -> table_pb2.DataFragment:
        """Return the message of this fragment."""
        message = table_pb2.DataFragment(
            id=self.id,
            files=[file.to_proto() for file in self.files],
            deletion_file=self.deletion_file.to_proto() if self.deletion_file else None,
            physical_rows=self.physical_rows,
            overlays=[table_pb2.DataOverlayFile.FromString(overlay) for overlay in self.overlays],
            clustering_id=self.clustering_id,
            metadata=self.metadata,
        )
        _set_lineage(message, "row_ids", self.row_ids)
        _set_lineage(message, "last_updated_at_versions", self.last_updated_at_versions)
        _set_lineage(message, "created_at_versions", self.created_at_versions)
        return message


def _lineage(message: table_pb2.DataFragment, group: str) -> Lineage:
    name = message.WhichOneof(group)  # type: ignore[arg-type]
    if name is None:
        return None
    return getattr(message, name) if name.startswith("inline_") else Spilled.COLUMN


def _set_lineage(message: table_pb2.DataFragment, name: str, value: Lineage) -> None:
    if isinstance(value, bytes):
        setattr(message, f"inline_{name}", value)
    elif value is Spilled.COLUMN:
        getattr(message, f"column_{name}").SetInParent()
