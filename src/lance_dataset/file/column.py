"""What every encoding family offers for a column: ranges and random rows as Arrow arrays, and pages out of arrays."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from google.protobuf.message import Message
from numpy.typing import NDArray

from lance_dataset.errors import UnsupportedError
from lance_dataset.file.kinds import is_binary_like
from lance_dataset.file.take_shape import take_shape
from lance_dataset.file.zones import Zones
from lancecodec import take_pages
from lancecodec.take import ColumnTaker

__all__ = [
    "ColumnEncoder",
    "ColumnReader",
    "DictionaryOverflowError",
    "EncodedPage",
    "NullColumn",
    "OversizeError",
    "Part",
    "WriteBuffer",
]

#: Appends a buffer given in parts to the file outside any page; returns its (position, size).
WriteBuffer: TypeAlias = "Callable[[Sequence[bytes | memoryview | pa.Buffer]], tuple[int, int]]"


_NULL_CHUNK_ROWS = 1 << 20
#: Bytes of a value above which nulls are not written out.
_MAX_NULL_WIDTH = 1 << 16


class OversizeError(UnsupportedError):
    """The values asked for do not fit one Arrow array, whose 32-bit offsets end at 2 GiB; fewer of them may."""


@dataclass(frozen=True)
class Part:
    """Rows of a column that one thread should decode.

    Attributes
    ----------
    start, stop
        The rows.
    cost
        About how many nanoseconds of processor time they take; 0 where nothing is copied.
    """

    start: int
    stop: int
    cost: float


def _row_cost(arrow_type: pa.DataType) -> float:
    """About how many nanoseconds a value takes to decode."""
    if pa.types.is_fixed_size_list(arrow_type):
        return _row_cost(arrow_type.value_type)
    if pa.types.is_nested(arrow_type):
        return 2.0 + sum(_row_cost(arrow_type.field(number).type) for number in range(arrow_type.num_fields))
    return 4.0 if is_binary_like(arrow_type) else 1.0


class DictionaryOverflowError(UnsupportedError):
    """The rows asked for have more distinct values than their index type tells apart; fewer of them may not."""


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

    def read_encoded(self, start: int, stop: int) -> list[pa.Array]:
        """The same with repeated values left encoded where they are stored so.

        Chunks, in order, are arrays of the column's type, or dictionary arrays whose entries have that type and no
        nulls: those of a page that stores a dictionary share it, and a page of one value has a dictionary of one entry.
        """
        return self.read_chunks(start, stop)

    def parts(self, start: int, stop: int) -> list[Part]:
        """Ranges that together are ``[start, stop)``, in order, to give to several threads.

        Where a column cannot be cut without doing work twice, as by default, it is one part.
        """
        return [Part(start, stop, _row_cost(self.arrow_type) * (stop - start))] if start < stop else []

    @abc.abstractmethod
    def take(self, rows: NDArray[np.int64]) -> pa.Array:
        """Values at `rows` (in range, any order, repeats allowed), in that order."""

    def taker(self) -> ColumnTaker | None:
        """What takes rows without making objects, None where only `take` does; pages it cannot take it says so of."""
        return None

    def will_need(self, rows: NDArray[np.int64]) -> None:
        """Announce that some rows (in range, ascending) are going to be taken, so that they are loaded meanwhile.

        This is about mapped files that are not in memory; it costs little where they are. By default nothing happens.
        """
        return

    def zones(self, path: Sequence[str] = ()) -> Zones | None:
        """What is known of ranges of rows without reading them, None if nothing is.

        Parameters
        ----------
        path
            Names from this column, a struct, down to the one meant.
        """
        return None


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

    def taker(self) -> ColumnTaker | None:
        """Of one page of nulls."""
        shape = take_shape(self.arrow_type)
        if shape is None or shape.width > _MAX_NULL_WIDTH or not self.num_rows:
            return None
        return ColumnTaker([0, self.num_rows], shape.width, lambda _: take_pages.nulls(self.num_rows, shape.width))

    def zones(self, path: Sequence[str] = ()) -> Zones | None:
        """One zone of nulls; fields of null structs are null too."""
        bounds, sure = pa.nulls(1, self.arrow_type), np.ones(1, bool)
        for name in path:
            bounds = bounds.field(name)
        return Zones(np.array([0, self.num_rows]), bounds, bounds, sure, ~sure, ~sure)


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
    """Turns the arrays of one top-level field into pages of the columns at and below it.

    Attributes
    ----------
    is_independent
        Whether `encode` touches nothing that anything else touches, so that it may run on any thread.
    """

    is_independent: bool = False

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

    def column_encodings(self) -> Mapping[int, Message]:
        """The encodings of columns, by index in the file, that are not plain values."""
        return {}
