"""The encoding families and the file versions each is for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from lance_dataset.errors import UnsupportedError
from lance_dataset.file import v2_0, v2_1, v2_3
from lance_dataset.file.column import ColumnEncoder, ColumnReader, WriteBuffer
from lance_dataset.file.container import FileMetadata
from lance_dataset.schema import Field, Schema

__all__ = ["EncodingFamily", "family_of"]


class EncodingFamily(Protocol):
    """What a family offers, as functions of its package."""

    def check_schema(self, schema: Schema, version: str) -> None:
        """Refuse (UnsupportedError) what files of the version cannot hold."""

    def column_indices(self, schema: Schema) -> Sequence[tuple[int, int]]:
        """(field id, column index) of every field that owns a column."""

    def open_column(
        self, field: Field, locate: Callable[[Field], tuple[FileMetadata, int] | None], num_rows: int
    ) -> ColumnReader:
        """Reader of a field with everything below it; `locate` finds file and column of a field."""

    def open_encoder(self, field: Field, first_column: int, version: str, write_buffer: WriteBuffer) -> ColumnEncoder:
        """Encoder of a top-level field whose columns start at `first_column`."""


_FAMILIES: dict[str, EncodingFamily] = {"2.0": v2_0, "2.1": v2_1, "2.2": v2_1, "2.3": v2_3}


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
