"""Interface of the encoding families for a column: rows as Arrow arrays, and pages from arrays."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from google.protobuf.message import Message
from numpy.typing import NDArray

from lance_dataset.errors import UnsupportedError
from lance_dataset.file.kinds import is_binary_like
from lance_dataset.file.stored_test import StoredTest
from lance_dataset.file.take_shape import take_shape
from lance_dataset.file.zone_gathering import ZoneGathering
from lance_dataset.file.zones import Zones
from lance_dataset.late_dataclass import dataclass
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

#: Appends a buffer, given in parts, to the file outside any page; returns its (position, size).
WriteBuffer: TypeAlias = "Callable[[Sequence[bytes | memoryview | pa.Buffer]], tuple[int, int]]"


_NULL_CHUNK_ROWS = 1 << 20
#: Size in bytes of a value above which nulls are not written out.
_MAX_NULL_WIDTH = 1 << 16


class OversizeError(UnsupportedError):
    """The requested values do not fit one Arrow array, whose 32-bit offsets end at 2 GiB; fewer values may fit."""


@dataclass(frozen=True)
class Part:
    """Rows of a column for one thread to decode.

    Attributes
    ----------
    start, stop
        Range of the rows.
    cost
        Estimated processor time in nanoseconds; 0 if nothing is copied.
    """

    start: int
    stop: int
    cost: float


def _row_cost(arrow_type: pa.DataType) -> float:
    """Return the estimated time in nanoseconds to decode a value."""
    if pa.types.is_fixed_size_list(arrow_type):
        return _row_cost(arrow_type.value_type)
    if pa.types.is_nested(arrow_type):
        return 2.0 + sum(_row_cost(arrow_type.field(number).type) for number in range(arrow_type.num_fields))
    return 4.0 if is_binary_like(arrow_type) else 1.0


class DictionaryOverflowError(UnsupportedError):
    """The requested rows have more distinct values than their index type can represent; fewer rows may have fewer."""


class ColumnReader(abc.ABC):
    """Reader of one column of a data file with everything below it; positions are those of its own values.

    Attributes
    ----------
    arrow_type
        Type of the arrays, with extension types replaced by their storage.
    num_rows
        Number of values.
    """

    arrow_type: pa.DataType
    num_rows: int

    @abc.abstractmethod
    def read(self, start: int, stop: int) -> pa.Array:
        """Read values ``[start, stop)`` as one array. The caller ensures ``0 <= start <= stop <= num_rows``."""

    @abc.abstractmethod
    def read_chunks(self, start: int, stop: int) -> list[pa.Array]:
        """Read values ``[start, stop)`` as ordered chunks, cut where that saves copies; empty for an empty range."""

    def read_encoded(self, start: int, stop: int) -> list[pa.Array]:
        """Read values ``[start, stop)`` as chunks in which repeated values stay encoded if they are stored so.

        Ordered chunks are arrays of the column's type, or dictionary arrays whose entries have that type and no nulls.
        Chunks of a page that stores a dictionary share it. A page of one value has a dictionary of one entry.
        """
        return self.read_chunks(start, stop)

    def can_search(self, test: StoredTest) -> bool:
        """Return True if `search` works for a test, as far as the first page tells."""
        return False

    def search(
        self, test: StoredTest, start: int, stop: int, kept: pa.BooleanArray | None = None
    ) -> list[pa.BooleanArray] | None:
        """Return which of the values ``[start, stop)`` pass a test, computed from their stored form.

        Parameters
        ----------
        test
            A test of values of the column.
        start, stop
            Range of the values, not empty.
        kept
            The values that matter, one boolean per value without nulls; None for all. No other value passes.

        Returns
        -------
        list of pyarrow.BooleanArray or None
            One boolean per value in ordered chunks, never null. None if the values must be read to be tested, which is
            the default.
        """
        return None

    def verdicts(self, test: StoredTest) -> tuple[int, NDArray[np.uint8]] | None:
        """Return what stored bounds say of a test without reading values: rows of a zone, and a verdict for each zone.

        Verdicts are those of `lancecodec.intervals`. None, the default, if nothing is known.
        """
        return None

    def parts(self, start: int, stop: int) -> list[Part]:
        """Split ``[start, stop)`` into ordered ranges that several threads can decode.

        A column that cannot be cut without repeating work is one part, which is the default.
        """
        return [Part(start, stop, _row_cost(self.arrow_type) * (stop - start))] if start < stop else []

    @abc.abstractmethod
    def take(self, rows: NDArray[np.int64]) -> pa.Array:
        """Return the values at `rows` (in range, in any order, with repeats), in that order."""

    def taker(self) -> ColumnTaker | None:
        """Return a taker that takes rows without creating Python objects; None if only `take` works.

        The taker reports pages that it cannot take from.
        """
        return None

    def will_need(self, rows: NDArray[np.int64]) -> None:
        """Announce that some rows (in range, ascending) will be taken, so that they are loaded in the meantime.

        This helps mapped files that are not in memory, and costs little for others. By default nothing happens.
        """
        return

    def begin(self, start: int, stop: int) -> None:
        """Announce that the values ``[start, stop)`` will be read with the taker. By default nothing happens."""
        return

    def end(self, start: int, stop: int) -> None:
        """Release memory that only caches these values, which were copied. By default nothing happens."""
        return

    def value_bytes(self) -> float | None:
        """Return the average bytes of a value in memory if values lie elsewhere, so that none should be read for it."""
        return None

    def dictionary_bytes(self) -> tuple[float, float] | None:
        """Return the bytes of an index, and the average bytes of an entry in memory, if values have a dictionary.

        None without a dictionary, as far as the first page tells.
        """
        return None

    def zones(self, path: Sequence[str] = ()) -> Zones | None:
        """Return what is known of ranges of rows without reading them; None if nothing is known.

        Parameters
        ----------
        path
            Names from this column, a struct, down to the field.
        """
        return None


class NullColumn(ColumnReader):
    """Column that no file of the fragment holds; all values are null."""

    def __init__(self, arrow_type: pa.DataType, num_rows: int) -> None:
        self.arrow_type = arrow_type
        self.num_rows = num_rows

    def read(self, start: int, stop: int) -> pa.Array:
        """Return nulls."""
        return pa.nulls(stop - start, self.arrow_type)

    def read_chunks(self, start: int, stop: int) -> list[pa.Array]:
        """Return nulls in chunks that share one array, because the number of rows is not backed by a file."""
        nulls = self.read(0, min(stop - start, _NULL_CHUNK_ROWS))
        return [nulls.slice(0, stop - first) for first in range(start, stop, _NULL_CHUNK_ROWS)]

    def take(self, rows: NDArray[np.int64]) -> pa.Array:
        """Return nulls."""
        return pa.nulls(len(rows), self.arrow_type)

    def taker(self) -> ColumnTaker | None:
        """Return a taker of one page of nulls."""
        shape = take_shape(self.arrow_type)
        if shape is None or shape.width > _MAX_NULL_WIDTH or not self.num_rows:
            return None
        return ColumnTaker([0, self.num_rows], shape.width, lambda _: take_pages.nulls(self.num_rows, shape.width))

    def zones(self, path: Sequence[str] = ()) -> Zones | None:
        """Return one zone of nulls; fields of null structs are null too."""
        bounds, sure = pa.nulls(1, self.arrow_type), np.ones(1, bool)
        for name in path:
            bounds = bounds.field(name)
        return Zones(np.array([0, self.num_rows]), bounds, bounds, sure, ~sure, ~sure)


class EncodedPage(NamedTuple):
    """Page ready to be written.

    Attributes
    ----------
    column
        Column index in the file.
    length
        Number of values.
    encoding
        Page descriptor, which refers to `buffers` by position; as bytes in its stored form (`stored_encoding`).
    buffers
        Each buffer as parts to concatenate.
    priority
        First row of the page in the file if the file version records it, else 0.
    """

    column: int
    length: int
    encoding: Message | bytes
    buffers: Sequence[Sequence[pa.Buffer | bytes | memoryview]] = ()
    priority: int = 0


class ColumnEncoder(abc.ABC):
    """Encoder of the arrays of one top-level field into pages of the columns at and below it.

    Attributes
    ----------
    is_independent
        True if `encode` shares no state with anything else, so that it may run on any thread.
    """

    is_independent: bool = False

    @abc.abstractmethod
    def encode(self, arrays: Sequence[pa.Array]) -> Iterable[EncodedPage]:
        """Encode pages of a span of rows.

        Parameters
        ----------
        arrays
            Non-empty arrays of the storage type that together form the span.

        Raises
        ------
        SchemaError
            A field that is not nullable has a null, or a text is not UTF-8.
        UnsupportedError
            The file version cannot hold the values.
        """

    def finish(self) -> Iterator[EncodedPage]:
        """Yield the pages that are written at the end of the file."""
        return iter(())

    def gather_bounds(self) -> None:
        """Gather bounds of the values from now on, if this encoder can."""
        return

    def gathered(self) -> Mapping[int, ZoneGathering]:
        """Return the bounds that were gathered, by column index in the file."""
        return {}

    def column_encodings(self) -> Mapping[int, Message]:
        """Return the column encodings other than plain values, by column index in the file."""
        return {}
