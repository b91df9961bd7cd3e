"""Public records of fragments, which distributed writers and committers exchange."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from lance_dataset.errors import InvalidInputError, UnsupportedError
from lance_dataset.late_dataclass import dataclass
from lance_dataset.read.shown import Shown
from lance_dataset.table import fragment as table
from lance_dataset.table.paths import deletion_name

__all__ = ["DataFile", "DeletionFile", "FragmentMetadata", "RowDatasetVersionMeta", "RowIdMeta"]

_FILE_TYPES = {"array": table.DeletionFileType.ARROW_ARRAY, "bitmap": table.DeletionFileType.BITMAP}
_FILE_TYPE_NAMES = {kind: name for name, kind in _FILE_TYPES.items()}


@dataclass
class DataFile:
    """File with some columns of a fragment.

    Parameters
    ----------
    path
        Path below the data folder of the dataset.
    fields
        Field ids.
    column_indices
        Column of the file for each of `fields`; -1 for a field without a column.
    file_major_version, file_minor_version
        Version of the file format.
    file_size_bytes
        Size of the file in bytes; None if unknown.
    base_id
        Base path of the file; None for the dataset itself.
    """

    path: str
    fields: list[int]
    column_indices: list[int] = None  # type: ignore[assignment]
    file_major_version: int = 0
    file_minor_version: int = 0
    file_size_bytes: int | None = None
    base_id: int | None = field(default=None, repr=False)
    _metadata_size_bytes: int = field(default=0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.column_indices = list(self.column_indices or ())

    def field_ids(self) -> list[int]:
        """Return the field ids."""
        return self.fields

    @classmethod
    def create(cls, dataset: Shown, path: str, *, base_id: int | None = None) -> DataFile:
        """Describe an existing data file, such as one that `LanceFileWriter` wrote. Its columns are found by name.

        Parameters
        ----------
        dataset
            Dataset that the file belongs to.
        path
            Path below the data folder of the dataset, or below a base path.
        base_id
            Number of the base path; None for the dataset itself.

        Raises
        ------
        SchemaError
            The dataset lacks a column of the file, or has it with another type or other child fields.
        UnsupportedError
            A legacy (0.1) file has other field ids than the dataset.
        InvalidInputError
            The base path does not exist.
        MissingFileError, CorruptFileError
            The file does not exist, or is not a data file.
        """
        # Imported here, so that records do not load what opens files.
        from lance_dataset.read.existing_files import existing_data_file

        return cls.from_table(existing_data_file(dataset.snapshot, path, base_id))

    @classmethod
    def from_table(cls, file: table.DataFile) -> DataFile:
        """Make the public record of a file that a manifest lists."""
        record = cls(
            file.path,
            list(file.fields),
            list(file.column_indices),
            file.file_major_version,
            file.file_minor_version,
            file.file_size_bytes or None,
            file.base_id,
        )
        record._metadata_size_bytes = file.metadata_size_bytes
        return record

    def to_table(self) -> table.DataFile:
        """Convert the record to the form of a manifest."""
        return table.DataFile(
            path=self.path,
            fields=tuple(self.fields),
            column_indices=tuple(self.column_indices),
            file_major_version=self.file_major_version,
            file_minor_version=self.file_minor_version,
            file_size_bytes=self.file_size_bytes or 0,
            base_id=self.base_id,
            metadata_size_bytes=self._metadata_size_bytes,
        )

    def _asdict(self) -> dict[str, Any]:
        return {
            "fields": self.fields,
            "column_indices": self.column_indices,
            "file_major_version": self.file_major_version,
            "file_minor_version": self.file_minor_version,
            "file_size_bytes": self.file_size_bytes,
            "base_id": self.base_id,
            "path": self.path,
        }


@dataclass
class DeletionFile:
    """Deletion file of a fragment.

    Parameters
    ----------
    read_version, id
        Parts of the file's name.
    file_type
        ``"array"`` or ``"bitmap"``.
    num_deleted_rows
        Number of deleted rows; 0 if unknown.
    base_id
        Base path of the file; None for the dataset itself.

    Raises
    ------
    InvalidInputError
        `file_type` is neither of these.
    """

    read_version: int
    id: int
    file_type: str
    num_deleted_rows: int
    base_id: int | None = None

    def __post_init__(self) -> None:
        if self.file_type not in _FILE_TYPES:
            raise InvalidInputError(f"file_type must be either 'array' or 'bitmap', got {self.file_type!r}")

    def __repr__(self) -> str:
        return f"DeletionFile(type={self.file_type!r}, num_deleted_rows={self.num_deleted_rows})"

    def path(self, fragment_id: int, base_uri: str | None = None) -> str:
        """Return the path of the file for a fragment, below `base_uri` if given."""
        name = f"_deletions/{deletion_name(fragment_id, self.to_table())}"
        return name if base_uri is None else f"{base_uri.rstrip('/')}/{name}"

    def asdict(self) -> dict[str, int | str | None]:
        """Return the JSON form as a dict."""
        return {
            "read_version": self.read_version,
            "id": self.id,
            "file_type": self.file_type,
            "num_deleted_rows": self.num_deleted_rows,
            "base_id": self.base_id,
        }

    def json(self) -> str:
        """Return the JSON form."""
        return _compact_json(self.asdict())

    @staticmethod
    def from_json(json: str) -> DeletionFile:
        """Read the JSON form.

        Raises
        ------
        InvalidInputError
            The text is not a deletion file.
        """
        return _deletion_file(_load_json(json, "deletion file"))

    @classmethod
    def from_table(cls, file: table.DeletionFile) -> DeletionFile:
        """Make the public record of a file that a manifest lists."""
        return cls(file.read_version, file.id, _FILE_TYPE_NAMES[file.file_type], file.num_deleted_rows, file.base_id)

    def to_table(self) -> table.DeletionFile:
        """Convert the record to the form of a manifest."""
        return table.DeletionFile(
            _FILE_TYPES[self.file_type], self.read_version, self.id, self.num_deleted_rows, self.base_id
        )


class _Sequence:
    """Serialized sequence of row ids or versions."""

    _what = ""
    _inline = ""
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, sequence: bytes | table.Spilled) -> None:
        self._value = sequence

    def __repr__(self) -> str:
        kept = f"{len(self._value)} bytes" if isinstance(self._value, bytes) else "column"
        return f"{type(self).__name__}({kept})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._value == other._value  # type: ignore[attr-defined]

    def _json_value(self) -> Any:
        if not isinstance(self._value, bytes):
            raise UnsupportedError(f"{self._what} in a hidden column does not have a JSON form")
        return {self._inline: list(self._value)}

    def json(self) -> str:
        """Return the JSON form."""
        return _compact_json(self._json_value())

    @classmethod
    def _parse(cls, value: Any) -> Any:
        if isinstance(value, Mapping) and list(value) == [cls._inline]:
            try:
                return cls(bytes(value[cls._inline]))
            except (TypeError, ValueError):
                pass
        raise InvalidInputError(f"Could not load {cls.__name__}: expected {{{cls._inline!r}: [bytes]}}, got {value!r}")

    @classmethod
    def _of(cls, sequence: table.Lineage) -> Any:
        return None if sequence is None else cls(sequence)


class RowIdMeta(_Sequence):
    """Row ids of a fragment with stable row ids. The content is opaque."""

    _what = "a row id sequence"
    _inline = "Inline"

    def _json_value(self) -> Any:
        return "Column" if self._value is table.Spilled.COLUMN else super()._json_value()

    def asdict(self) -> Any:
        """Return the JSON form as Python values."""
        return self._json_value()

    @staticmethod
    def from_dict(value: object) -> RowIdMeta:
        """Read the result of `asdict`.

        Raises
        ------
        InvalidInputError
            The value is not row id metadata.
        """
        if value == "Column" or value == {"Column": None}:
            return RowIdMeta(table.Spilled.COLUMN)
        return RowIdMeta._parse(value)

    @staticmethod
    def from_json(json: str) -> RowIdMeta:
        """Read the JSON form.

        Raises
        ------
        InvalidInputError
            The text is not row id metadata.
        """
        return RowIdMeta.from_dict(_load_json(json, "RowIdMeta"))


class RowDatasetVersionMeta(_Sequence):
    """Versions in which the rows of a fragment were created or last updated. The content is opaque."""

    _what = "a version sequence"
    _inline = "inline"

    def asdict(self) -> Any:
        """Return the JSON form as Python values."""
        return self._json_value()

    @staticmethod
    def from_json(json: str) -> RowDatasetVersionMeta:
        """Read the JSON form.

        Raises
        ------
        InvalidInputError
            The text is not version metadata.
        """
        return RowDatasetVersionMeta._parse(_load_json(json, "RowDatasetVersionMeta"))


@dataclass
class FragmentMetadata:
    """Metadata of a fragment in a manifest or a transaction.

    Parameters
    ----------
    id
        Fragment id; 0 if it is assigned at commit.
    files
        Data files.
    physical_rows
        Number of rows in the files, including deleted ones.
    deletion_file
        Deletion file; None without deleted rows.
    row_id_meta, created_at_version_meta, last_updated_at_version_meta
        Row lineage.
    overlays
        Always empty, because this release does not support overlays.
    """

    id: int
    files: list[DataFile]
    physical_rows: int
    deletion_file: DeletionFile | None = None
    row_id_meta: RowIdMeta | None = None
    created_at_version_meta: RowDatasetVersionMeta | None = None
    last_updated_at_version_meta: RowDatasetVersionMeta | None = None
    overlays: list[object] = field(default_factory=list)
    # Reserved by the format; copied from one manifest to the next.
    _clustering_id: int | None = field(default=None, init=False, repr=False, compare=False)
    _metadata: dict[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def num_deletions(self) -> int:
        """Number of deleted rows."""
        return 0 if self.deletion_file is None else self.deletion_file.num_deleted_rows

    @property
    def num_rows(self) -> int:
        """Number of live rows."""
        return self.physical_rows - self.num_deletions

    def data_files(self) -> list[DataFile]:
        """Return the data files; use `files` instead.

        .. deprecated:: 0.1
        """
        warnings.warn("FragmentMetadata.data_files is deprecated; use .files instead", DeprecationWarning, stacklevel=2)
        return self.files

    def to_json(self) -> dict[str, Any]:
        """Return a dict for `json.dumps`, whose result `from_json` reads.

        Raises
        ------
        UnsupportedError
            The fragment has overlays.
        """
        if self.overlays:
            raise UnsupportedError(f"fragment {self.id} has overlays, which this release does not handle")
        return {
            "id": self.id,
            "files": [file._asdict() for file in self.files],
            "overlays": [],
            "physical_rows": self.physical_rows,
            "deletion_file": None if self.deletion_file is None else self.deletion_file.asdict(),
            "row_id_meta": _sequence_json(self.row_id_meta),
            "created_at_version_meta": _sequence_json(self.created_at_version_meta),
            "last_updated_at_version_meta": _sequence_json(self.last_updated_at_version_meta),
        }

    @staticmethod
    def from_json(json_data: str) -> FragmentMetadata:
        """Read the JSON text of a fragment.

        Parameters
        ----------
        json_data
            ``json.dumps(metadata.to_json())``, by this package or the reference.

        Raises
        ------
        InvalidInputError
            The text is not a fragment.
        UnsupportedError
            The fragment has overlays.
        """
        value = _load_json(json_data, "fragment")
        if not isinstance(value, Mapping):
            raise InvalidInputError(f"JSON of a fragment must be an object, not {type(value).__name__}")
        if value.get("overlays"):
            raise UnsupportedError("the fragment has overlays, which this release does not handle")
        deletion = value.get("deletion_file")
        return FragmentMetadata(
            id=_number(value, "id", "fragment"),
            files=[_data_file(file) for file in _required(value, "files", "fragment")],
            physical_rows=_number(value, "physical_rows", "fragment"),
            deletion_file=None if deletion is None else _deletion_file(deletion),
            row_id_meta=None if value.get("row_id_meta") is None else RowIdMeta.from_dict(value["row_id_meta"]),
            created_at_version_meta=_versions(value.get("created_at_version_meta")),
            last_updated_at_version_meta=_versions(value.get("last_updated_at_version_meta")),
        )

    @classmethod
    def from_fragment(cls, fragment: table.Fragment) -> FragmentMetadata:
        """Make the public record of a fragment that a manifest lists.

        Raises
        ------
        UnsupportedError
            The fragment has overlays.
        """
        if fragment.overlays:
            raise UnsupportedError(f"fragment {fragment.id} has overlays, which this release does not handle")
        record = cls(
            id=fragment.id,
            files=[DataFile.from_table(file) for file in fragment.files],
            physical_rows=fragment.physical_rows,
            deletion_file=None if fragment.deletion_file is None else DeletionFile.from_table(fragment.deletion_file),
            row_id_meta=RowIdMeta._of(fragment.row_ids),
            created_at_version_meta=RowDatasetVersionMeta._of(fragment.created_at_versions),
            last_updated_at_version_meta=RowDatasetVersionMeta._of(fragment.last_updated_at_versions),
        )
        record._clustering_id = fragment.clustering_id
        record._metadata = dict(fragment.metadata)
        return record

    def to_fragment(self) -> table.Fragment:
        """Convert the record to the form of a manifest or transaction.

        Raises
        ------
        UnsupportedError
            The fragment has overlays.
        """
        if self.overlays:
            raise UnsupportedError(f"fragment {self.id} has overlays, which this release does not handle")
        return table.Fragment(
            id=self.id,
            files=tuple(file.to_table() for file in self.files),
            deletion_file=None if self.deletion_file is None else self.deletion_file.to_table(),
            physical_rows=self.physical_rows,
            row_ids=_lineage(self.row_id_meta),
            created_at_versions=_lineage(self.created_at_version_meta),
            last_updated_at_versions=_lineage(self.last_updated_at_version_meta),
            clustering_id=self._clustering_id,
            metadata=self._metadata,
        )


def _lineage(sequence: _Sequence | None) -> table.Lineage:
    return None if sequence is None else sequence._value


def _sequence_json(sequence: _Sequence | None) -> Any:
    return None if sequence is None else sequence._json_value()


def _versions(value: Any) -> RowDatasetVersionMeta | None:
    return None if value is None else RowDatasetVersionMeta._parse(value)


def _compact_json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _load_json(text: str, what: str) -> Any:
    if not isinstance(text, (str, bytes, bytearray)):
        raise TypeError(f"JSON of a {what} must be text, not {type(text).__name__}")
    try:
        return json.loads(text)
    except ValueError as error:
        raise InvalidInputError(f"Could not load {what}: {error}") from error


def _required(value: Any, key: str, what: str) -> Any:
    if not isinstance(value, Mapping) or key not in value:
        raise InvalidInputError(f"JSON of a {what} needs {key!r}, got {value!r}")
    return value[key]


def _number(value: Any, key: str, what: str) -> int:
    found = _required(value, key, what)
    if not isinstance(found, int) or isinstance(found, bool) or found < 0:
        raise InvalidInputError(f"JSON of a {what}: {key!r} must be a non-negative integer, not {found!r}")
    return found


def _optional_number(value: Any, key: str, what: str) -> int | None:
    return None if value.get(key) is None else _number(value, key, what)


def _numbers(value: Any, key: str, what: str) -> list[int]:
    if not isinstance(value, list) or not all(isinstance(item, int) for item in value):
        raise InvalidInputError(f"JSON of a {what}: {key!r} must be a list of numbers, not {value!r}")
    return value


def _data_file(value: Any) -> DataFile:
    what = "data file"
    path = _required(value, "path", what)
    if not isinstance(path, str):
        raise InvalidInputError(f"JSON of a {what}: 'path' must be text, not {path!r}")
    return DataFile(
        path=path,
        fields=_numbers(_required(value, "fields", what), "fields", what),
        column_indices=_numbers(value.get("column_indices") or [], "column_indices", what),
        file_major_version=_optional_number(value, "file_major_version", what) or 0,
        file_minor_version=_optional_number(value, "file_minor_version", what) or 0,
        file_size_bytes=_optional_number(value, "file_size_bytes", what),
        base_id=_optional_number(value, "base_id", what),
    )


def _deletion_file(value: Any) -> DeletionFile:
    what = "deletion file"
    return DeletionFile(
        read_version=_number(value, "read_version", what),
        id=_number(value, "id", what),
        file_type=_required(value, "file_type", what),
        num_deleted_rows=_optional_number(value, "num_deleted_rows", what) or 0,
        base_id=_optional_number(value, "base_id", what),
    )
