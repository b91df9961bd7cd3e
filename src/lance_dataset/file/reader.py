"""Opening a data file: container, schema, and column readers by file version."""

from __future__ import annotations

from collections.abc import Mapping

from lance_dataset.errors import CorruptFileError, UnsupportedError
from lance_dataset.file.column import ColumnReader, NullColumn
from lance_dataset.file.container import FileMetadata
from lance_dataset.file.families import family_of
from lance_dataset.file.versions import READABLE_VERSIONS
from lance_dataset.io.base import InputFile
from lance_dataset.schema import Field, Schema

__all__ = ["DataFileReader", "open_fragment_column", "open_metadata"]


def open_metadata(source: InputFile) -> FileMetadata:
    """Read the end of a data file.

    Raises
    ------
    CorruptFileError, UnsupportedError
        Not a Lance file, or one of a version this release does not read.
    """
    metadata = FileMetadata(source)
    if metadata.version not in READABLE_VERSIONS:
        raise UnsupportedError(
            f"{source.path}: file version {metadata.version} cannot be read by this release; write the data again with "
            'data_storage_version="2.0"'
        )
    return metadata


def open_fragment_column(field: Field, stored: Mapping[int, tuple[FileMetadata, int]], num_rows: int) -> ColumnReader:
    """Open a top-level field over the data files of a fragment.

    Parameters
    ----------
    field
        The field, perhaps with only some of its children.
    stored
        Field id -> the file and column index that hold it.
    num_rows
        Physical rows of the fragment.
    """
    files = {node.id: stored[node.id][0] for node in field.walk() if node.id in stored}
    versions = {file.version for file in files.values()}
    if not versions:
        return NullColumn(field.storage_type, num_rows)
    version = versions.pop()
    if versions:
        raise UnsupportedError(
            f"column {field.name!r} is spread over files of the versions {version} and {', '.join(versions)}: "
            f"{', '.join(file.source.path for file in files.values())}"
        )
    return family_of(version).open_column(field, lambda node: stored.get(node.id), num_rows)


class DataFileReader:
    """One data file read by itself, with its own schema.

    Parameters
    ----------
    source
        The file.
    """

    def __init__(self, source: InputFile) -> None:
        self.metadata = open_metadata(source)
        self.schema: Schema = self.metadata.schema
        self.num_rows = self.metadata.num_rows
        indices = family_of(self.metadata.version).column_indices(self.schema)
        if len(indices) > self.metadata.num_columns:
            raise CorruptFileError(
                f"{source.path}: the schema needs {len(indices)} columns, the file has {self.metadata.num_columns}"
            )
        self._stored = {field_id: (self.metadata, index) for field_id, index in indices}
        self._columns: dict[str, ColumnReader] = {}

    def column(self, field: Field) -> ColumnReader:
        """Reader of a top-level field (or a pruning of one) of the file's schema."""
        return open_fragment_column(field, self._stored, self.num_rows)
