"""The interfaces of columns that are read together: columns of a file, and a column of many files."""

from __future__ import annotations

from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.file.container import FileMetadata

__all__ = ["ColumnPart", "JoinedParts", "PlainColumns"]

#: Number of the first of some neighbouring parts, number after the last one, and the values of all of them.
JoinedParts: TypeAlias = "tuple[int, int, pa.Array]"


class PlainColumns(Protocol):
    """Columns of a file. Those of simple form are read together, others and damaged ones are left to their readers.

    Attributes
    ----------
    num_plain
        Number of columns that are read together.
    copies_values
        True if a take copies single values, without decoding those around them.
    """

    num_plain: int
    copies_values: bool

    def read(self, start: int, stop: int) -> list[pa.Array | None]:
        """Return the rows ``[start, stop)`` of each column as one array, None for columns left out."""

    def take(self, rows: NDArray[np.int64]) -> list[pa.Array | None]:
        """Return the values of each column at ascending rows as one array, None for columns left out."""


class ColumnPart(NamedTuple):
    """Rows of a column of a file.

    Attributes
    ----------
    file
        The file.
    mapped
        All bytes of the file.
    column
        The column.
    rows
        Number of rows of the file.
    start, stop
        Range ``[start, stop)`` of the rows.
    """

    file: FileMetadata
    mapped: pa.Buffer
    column: int
    rows: int
    start: int
    stop: int
