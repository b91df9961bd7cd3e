"""Opening a data file: container, schema, and column readers by file version."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TypeAlias

from lance_dataset.errors import CorruptFileError, UnsupportedError
from lance_dataset.file.blob_fields import with_descriptors
from lance_dataset.file.column import ColumnReader, NullColumn
from lance_dataset.file.container import MAGIC, FileMetadata
from lance_dataset.file.families import family_of, paged_family_of, stored_indices
from lance_dataset.file.plain_columns import ColumnPart, JoinedParts, PlainColumns
from lance_dataset.file.v0_1.container import LEGACY_PAIRS, LegacyFile
from lance_dataset.io.base import InputFile
from lance_dataset.types.schema import Field, Schema

__all__ = ["DataFile", "DataFileReader", "join_parts", "open_fragment_column", "open_metadata", "open_plain_columns"]


#: An open data file of any version.
DataFile: TypeAlias = FileMetadata | LegacyFile

_VERSION_AND_MAGIC = struct.Struct("<HH4s")


def open_metadata(source: InputFile, fields: Sequence[int] = (), *, legacy: bool | None = None) -> DataFile:
    """Read the end of a data file.

    Parameters
    ----------
    source
        The file.
    fields
        Field ids that a manifest lists for the file; legacy files do not store them. Empty for a standalone file.
    legacy
        True for a legacy file, False for a later one; None to detect it.

    Raises
    ------
    CorruptFileError, UnsupportedError
        The file is not a Lance file, or has a version that this release does not read.
    """
    if legacy is None:
        legacy = _is_legacy(source)
    return LegacyFile(source, fields) if legacy else FileMetadata(source)


def _is_legacy(source: InputFile) -> bool:
    size = _VERSION_AND_MAGIC.size
    if source.size < size:
        return False
    major, minor, magic = _VERSION_AND_MAGIC.unpack(bytes(source.read(source.size - size, size)))
    return magic == MAGIC and (major, minor) in LEGACY_PAIRS


def open_fragment_column(field: Field, stored: Mapping[int, tuple[DataFile, int]], num_rows: int) -> ColumnReader:
    """Open a top-level field across the data files of a fragment.

    Parameters
    ----------
    field
        The field, perhaps with only some of its children.
    stored
        Field id -> the file and column index that hold it.
    num_rows
        Physical rows of the fragment.
    """
    own = None if field.children else stored.get(field.id)
    if own is not None:
        return family_of(own[0].version).open_column(field, lambda node: stored.get(node.id), num_rows)
    files = {node.id: stored[node.id][0] for node in field.walk() if node.id in stored}
    versions = {file.version for file in files.values()}
    if not versions:
        return NullColumn(field.storage_type, num_rows)
    version = versions.pop()
    if versions:
        raise UnsupportedError(
            f"column {field.name!r} is spread over files of versions {version} and {', '.join(versions)}: "
            f"{', '.join(file.source.path for file in files.values())}"
        )
    return family_of(version).open_column(field, lambda node: stored.get(node.id), num_rows)


def open_plain_columns(
    file: DataFile, fields: Sequence[Field], indices: Sequence[int], num_rows: int
) -> PlainColumns | None:
    """Find the columns of fields without children that can be read together.

    Parameters
    ----------
    file
        The file that holds all of the fields.
    fields, indices
        The fields, and the column of each.
    num_rows
        Physical rows of the fragment.

    Returns
    -------
    PlainColumns or None
        None if there are no such columns.
    """
    return family_of(file.version).open_plain_columns(file, fields, indices, num_rows)


def join_parts(parts: Sequence[ColumnPart], field: Field) -> list[JoinedParts]:
    """Read rows of one column of many files, as far as they can be read together.

    Parameters
    ----------
    parts
        Rows of mapped files.
    field
        The field of the column, without children.

    Returns
    -------
    list of (int, int, pyarrow.Array)
        The values of neighbours, each as the number of the first part, the number after the last one, and an array
        without nulls. Other parts are to be read by themselves.
    """
    joined: list[JoinedParts] = []
    start = 0
    for family, found in groupby(parts, lambda part: paged_family_of(part.file.version)):
        same = list(found)
        joined += [(start + first, start + last, array) for first, last, array in family.join_parts(same, field)]
        start += len(same)
    return joined


class DataFileReader:
    """Reader of one data file by itself, with its own schema.

    Parameters
    ----------
    source
        The file.
    """

    def __init__(self, source: InputFile) -> None:
        self.metadata = open_metadata(source)
        self.schema: Schema = with_descriptors(self.metadata.schema)
        self.num_rows = self.metadata.num_rows
        indices = stored_indices(self.metadata)
        if isinstance(self.metadata, FileMetadata) and len(indices) > self.metadata.num_columns:
            raise CorruptFileError(
                f"{source.path}: the schema needs {len(indices)} columns, but the file has {self.metadata.num_columns}"
            )
        self._stored = {field_id: (self.metadata, index) for field_id, index in indices}

    def column(self, field: Field) -> ColumnReader:
        """Open a reader of a top-level field of the file's schema, or of a part of its children."""
        return open_fragment_column(field, self._stored, self.num_rows)
