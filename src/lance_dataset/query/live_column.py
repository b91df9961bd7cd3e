"""Columns whose files agree on the live rows of a fragment only."""

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
    """A column that is spread over files, of a fragment with deleted rows.

    Who adds a file has no values for deleted rows, so lists of them may have other lengths there than in the files that
    were there before. Then these rows are left out, and are null.

    Parameters
    ----------
    column
        The column.
    is_live
        Says which of some rows are not deleted.
    """

    def __init__(self, column: ColumnReader, is_live: Callable[[NDArray[np.int64]], NDArray[np.bool_]]) -> None:
        self.arrow_type = column.arrow_type
        self.num_rows = column.num_rows
        self._column = column
        self._is_live = is_live

    def read(self, start: int, stop: int) -> pa.Array:
        """See `ColumnReader.read`."""
        try:
            return self._column.read(start, stop)
        except CorruptFileError as error:
            return self._live(np.arange(start, stop), error)

    def read_chunks(self, start: int, stop: int) -> list[pa.Array]:
        """See `ColumnReader.read_chunks`."""
        try:
            return self._column.read_chunks(start, stop)
        except CorruptFileError as error:
            return [self._live(np.arange(start, stop), error)]

    def take(self, rows: NDArray[np.int64]) -> pa.Array:
        """See `ColumnReader.take`."""
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
        """See `ColumnReader.parts`."""
        return self._column.parts(start, stop)

    def will_need(self, rows: NDArray[np.int64]) -> None:
        """See `ColumnReader.will_need`."""
        self._column.will_need(rows)

    def zones(self, path: Sequence[str] = ()) -> Zones | None:
        """See `ColumnReader.zones`."""
        return self._column.zones(path)
