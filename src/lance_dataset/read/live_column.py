"""Columns whose files agree only on the live rows of a fragment."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError
from lance_dataset.file.column import ColumnReader, Part
from lance_dataset.file.zones import Zones

__all__ = ["LiveColumn"]


class LiveColumn(ColumnReader):
    """Column that is spread over several files of a fragment with deleted rows.

    A writer that adds a file does not have the values of deleted rows, so the lists of these rows may have other
    lengths there than in the older files. In that case the deleted rows are not read, and are null.

    Parameters
    ----------
    column
        Reader of the column.
    is_live
        Function that returns a mask of the rows that are not deleted.
    """

    def __init__(self, column: ColumnReader, is_live: Callable[[NDArray[np.int64]], NDArray[np.bool_]]) -> None:
        self.arrow_type = column.arrow_type
        self.num_rows = column.num_rows
        self._column = column
        self._is_live = is_live

    def read(self, start: int, stop: int) -> pa.Array:
        """Read values; see `ColumnReader.read`."""
        try:
            return self._column.read(start, stop)
        except CorruptFileError as error:
            return self._live(np.arange(start, stop), error)

    def read_chunks(self, start: int, stop: int) -> list[pa.Array]:
        """Read values in chunks; see `ColumnReader.read_chunks`."""
        try:
            return self._column.read_chunks(start, stop)
        except CorruptFileError as error:
            return [self._live(np.arange(start, stop), error)]

    def take(self, rows: NDArray[np.int64]) -> pa.Array:
        """Take values; see `ColumnReader.take`."""
        try:
            return self._column.take(rows)
        except CorruptFileError as error:
            return self._live(rows, error)

    def _live(self, rows: NDArray[np.int64], error: CorruptFileError) -> pa.Array:
        live = self._is_live(rows)
        if live.all():
            raise error
        found = self._column.take(rows[live])
        return found.take(pa.array(np.cumsum(live) - 1, mask=~live))

    def parts(self, start: int, stop: int) -> list[Part]:
        """Return parts to read; see `ColumnReader.parts`."""
        return self._column.parts(start, stop)

    def will_need(self, rows: NDArray[np.int64]) -> None:
        """Announce reads; see `ColumnReader.will_need`."""
        self._column.will_need(rows)

    def zones(self, path: Sequence[str] = ()) -> Zones | None:
        """Return the zones; see `ColumnReader.zones`."""
        return self._column.zones(path)
