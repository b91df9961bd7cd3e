"""What every encoding family offers for a column: ranges and random rows as Arrow arrays, and pages out of arrays."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from google.protobuf.message import Message
from numpy.typing import NDArray

from lance_dataset.errors import UnsupportedError

__all__ = ["ColumnEncoder", "ColumnReader", "EncodedPage", "NullColumn", "OversizeError", "WriteBuffer"]

#: Appends a buffer given in parts to the file outside any page; returns its (position, size).
WriteBuffer: TypeAlias = "Callable[[Sequence[bytes | memoryview | pa.Buffer]], tuple[int, int]]"


_NULL_CHUNK_ROWS = 1 << 20


class OversizeError(UnsupportedError):
    """The values asked for do not fit one Arrow array, whose 32-bit offsets end at 2 GiB; fewer of them may."""


class ColumnReader(abc.ABC):
    """One column (with all below it) of a data file, positions being those of its own values.

    Attributes
    ----------
    arrow_type
        Type of the arrays, extension types replaced by their storage.
    num_rows
        Number of values.
    """

    arrow_type: pa.DataType
    num_rows: int

    @abc.abstractmethod
    def read(self, start: int, stop: int) -> pa.Array:
        """Values ``[start, stop)`` as one array; ``0 <= start <= stop <= num_rows`` is the caller's duty."""

    @abc.abstractmethod
    def read_chunks(self, start: int, stop: int) -> list[pa.Array]:
        """The same cut where that saves copies, in order; empty for an empty range."""

    @abc.abstractmethod
    def take(self, rows: NDArray[np.int64]) -> pa.Array:
        """Values at `rows` (in range, any order, repeats allowed), in that order."""


class NullColumn(ColumnReader):
    """A column that no file of the fragment holds: nulls throughout."""

    def __init__(self, arrow_type: pa.DataType, num_rows: int) -> None:
        self.arrow_type = arrow_type
        self.num_rows = num_rows

    def read(self, start: int, stop: int) -> pa.Array:
        """Nulls."""
        return pa.nulls(stop - start, self.arrow_type)

    def read_chunks(self, start: int, stop: int) -> list[pa.Array]:
        """Nulls, whose chunks share one array: how many rows there are, no file backs up."""
        nulls = self.read(0, min(stop - start, _NULL_CHUNK_ROWS))
        return [nulls.slice(0, stop - first) for first in range(start, stop, _NULL_CHUNK_ROWS)]

    def take(self, rows: NDArray[np.int64]) -> pa.Array:
        """Nulls."""
        return pa.nulls(len(rows), self.arrow_type)


@dataclass(frozen=True)
class EncodedPage:
    """One page ready to be written.

    Attributes
    ----------
    column
        Column index in the file.
    length
        Number of values.
    encoding
        The page descriptor, naming `buffers` by position.
    buffers
        Each buffer as the parts whose concatenation it is.
    priority
        First row of the page in the file, where the file version records it, else 0.
    """

    column: int
    length: int
    encoding: Message
    buffers: Sequence[Sequence[pa.Buffer | bytes | memoryview]] = field(default_factory=list)
    priority: int = 0


class ColumnEncoder(abc.ABC):
    """Turns the arrays of one top-level field into pages of the columns at and below it."""

    @abc.abstractmethod
    def encode(self, arrays: Sequence[pa.Array]) -> Iterable[EncodedPage]:
        """Pages of a span of rows.

        Parameters
        ----------
        arrays
            Non-empty arrays of the storage type that together are the span.

        Raises
        ------
        SchemaError
            A null in a field that is not nullable, or text that is not UTF-8.
        UnsupportedError
            Values that the file version cannot hold.
        """

    def finish(self) -> Iterator[EncodedPage]:
        """Pages that are due at the end of the file."""
        return iter(())
