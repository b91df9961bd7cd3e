"""The encoding families and the file versions each is for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from lance_dataset.errors import UnsupportedError
from lance_dataset.file import v0_1, v2_0, v2_1, v2_3
from lance_dataset.file.column import ColumnEncoder, ColumnReader, WriteBuffer
from lance_dataset.file.container import FileMetadata
from lance_dataset.file.v0_1.container import LegacyFile
from lance_dataset.schema import Field, Schema

__all__ = ["EncodingFamily", "PagedFamily", "family_of", "paged_family_of", "stored_indices"]


class EncodingFamily(Protocol):
    """What every family offers, as functions of its package."""

    def check_schema(self, schema: Schema, version: str) -> None:
        """Refuse (UnsupportedError) what files of the version cannot hold."""

    def column_indices(self, schema: Schema) -> Sequence[tuple[int, int]]:
        """(field id, column index) of every field that owns a column."""

    def open_column(
        self, field: Field, locate: Callable[[Field], tuple[Any, int] | None], num_rows: int
    ) -> ColumnReader:
        """Reader of a field with everything below it; `locate` finds file and column of a field."""


class PagedFamily(EncodingFamily, Protocol):
    """What the families of 2.x offer besides: columns are encoded page by page into one container."""

    def open_encoder(self, field: Field, first_column: int, version: str, write_buffer: WriteBuffer) -> ColumnEncoder:
        """Encoder of a top-level field whose columns start at `first_column`."""


_PAGED: dict[str, PagedFamily] = {"2.0": v2_0, "2.1": v2_1, "2.2": v2_1, "2.3": v2_3}
_FAMILIES: dict[str, EncodingFamily] = {"0.1": v0_1, **_PAGED}


def family_of(version: str) -> EncodingFamily:
    """The family of a file version.

    Raises
    ------
    UnsupportedError
        A version this release does not know.
    """
    family = _FAMILIES.get(version)
    if family is None:
        raise UnsupportedError(f"file version {version} is not supported; known are {', '.join(sorted(_FAMILIES))}")
    return family


def stored_indices(metadata: FileMetadata | LegacyFile) -> Sequence[tuple[int, int]]:
    """(field id, column index) of the fields of a file by itself, as far as they own a column."""
    if isinstance(metadata, FileMetadata) and metadata.version == "2.0":
        return v2_0.stored_indices(metadata.schema, metadata)
    if isinstance(metadata, FileMetadata) and metadata.version == "2.1":
        return v2_1.stored_indices(metadata.schema, metadata)
    return family_of(metadata.version).column_indices(metadata.schema)


def paged_family_of(version: str) -> PagedFamily:
    """The family of a 2.x file version; raises as `family_of`."""
    family = _PAGED.get(version)
    if family is None:
        raise UnsupportedError(f"file version {version} does not consist of columns of pages")
    return family
