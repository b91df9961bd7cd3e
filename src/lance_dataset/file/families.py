"""Encoding families and the file versions that use each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Protocol

from lance_dataset.errors import UnsupportedError
from lance_dataset.file.column import ColumnEncoder, ColumnReader, WriteBuffer
from lance_dataset.file.container import FileMetadata
from lance_dataset.file.plain_columns import ColumnPart, JoinedParts, PlainColumns
from lance_dataset.file.v0_1.container import LegacyFile
from lance_dataset.types.schema import Field, Schema

_LEGACY = "0.1"
_VERSIONS = (_LEGACY, "2.0", "2.1", "2.2", "2.3")

__all__ = ["EncodingFamily", "PagedFamily", "family_of", "paged_family_of", "stored_indices"]


class EncodingFamily(Protocol):
    """Functions that the package of every family provides."""

    def check_schema(self, schema: Schema, version: str) -> None:
        """Raise UnsupportedError if files of the version cannot hold the schema."""

    def column_indices(self, schema: Schema) -> Sequence[tuple[int, int]]:
        """Return (field id, column index) of every field that owns a column."""

    def open_column(
        self, field: Field, locate: Callable[[Field], tuple[Any, int] | None], num_rows: int
    ) -> ColumnReader:
        """Open a reader of a field with everything below it; `locate` returns the file and column of a field."""

    def open_plain_columns(
        self, metadata: Any, fields: Sequence[Field], indices: Sequence[int], num_rows: int
    ) -> PlainColumns | None:
        """Find the columns of some fields that can be read together, None if the version has none."""


class PagedFamily(EncodingFamily, Protocol):
    """Further functions of the families of 2.x, where columns are encoded page by page into one container."""

    def stored_indices(self, schema: Schema, metadata: FileMetadata) -> Sequence[tuple[int, int]]:
        """Return (field id, column index) of the fields of a file by itself."""

    def join_parts(self, parts: Sequence[ColumnPart], field: Field) -> list[JoinedParts]:
        """Read the parts of a field that are small plain pages together; the others are to be read by themselves."""

    def open_encoder(self, field: Field, first_column: int, version: str, write_buffer: WriteBuffer) -> ColumnEncoder:
        """Open an encoder of a top-level field whose columns start at `first_column`."""


# A version is loaded when the first file of it is opened, and its writer when the first column is encoded.


@cache
def _legacy() -> EncodingFamily:
    from lance_dataset.file.v0_1 import family

    return family


@cache
def _paged(version: str) -> PagedFamily | None:
    if version == "2.0":
        from lance_dataset.file.v2_0 import family as v2_0

        return v2_0
    if version in ("2.1", "2.2"):
        from lance_dataset.file.v2_1 import family as v2_1

        return v2_1
    if version == "2.3":
        from lance_dataset.file.v2_3 import family as v2_3

        return v2_3
    return None


def family_of(version: str) -> EncodingFamily:
    """Return the family of a file version.

    Raises
    ------
    UnsupportedError
        This release does not know the version.
    """
    family = _legacy() if version == _LEGACY else _paged(version)
    if family is None:
        raise UnsupportedError(f"file version {version} is not supported; known are {', '.join(_VERSIONS)}")
    return family


def stored_indices(metadata: FileMetadata | LegacyFile) -> Sequence[tuple[int, int]]:
    """Return (field id, column index) of the fields of a single file that own a column."""
    if isinstance(metadata, FileMetadata):
        return paged_family_of(metadata.version).stored_indices(metadata.schema, metadata)
    return family_of(metadata.version).column_indices(metadata.schema)


def paged_family_of(version: str) -> PagedFamily:
    """Return the family of a 2.x file version; raises as `family_of`."""
    family = _paged(version)
    if family is None:
        raise UnsupportedError(f"file version {version} does not consist of columns of pages")
    return family
