"""Sets of rows that grow while an index is trained."""

from __future__ import annotations

import numpy as np
import pyroaring
from numpy.typing import NDArray

from lance_dataset.table.roaring import encode_without_runs
from lance_dataset.table.row_addresses import by_fragment
from lance_dataset.table.row_sets import ROW_SETS, encode_parts

__all__ = ["GrowingRowSet"]

_Rows = NDArray[np.uint64]

#: Rows of one set above which they are kept as bitmaps.
_MANY_ROWS = 1 << 20


class GrowingRowSet:
    """Set of rows; they are kept as bitmaps once there are many."""

    def __init__(self) -> None:
        self._parts: list[_Rows] = []
        self._count = 0
        self._bitmaps: dict[int, pyroaring.BitMap] = {}

    def add(self, rows: _Rows) -> None:
        """Add rows in any order; repeats do not count."""
        self._parts.append(rows)
        self._count += len(rows)
        if self._count >= _MANY_ROWS:
            self._fold()

    def _fold(self) -> None:
        rows = _distinct(np.concatenate(self._parts))
        self._parts, self._count = [], 0
        for key, mine in by_fragment(rows):
            made = pyroaring.BitMap.deserialize(encode_without_runs(rows[mine].astype(np.uint32)))
            self._bitmaps[key] = self._bitmaps[key] | made if key in self._bitmaps else made

    def bitmaps(self) -> dict[int, bytes]:
        """Return the serialized bitmaps of the lower halves of the rows, by upper half."""
        if self._parts:
            self._fold()
        return {key: bitmap.serialize() for key, bitmap in self._bitmaps.items()}

    def encode(self) -> bytes:
        """Return the serialized set."""
        return encode_parts(self.bitmaps(), ROW_SETS)


def _distinct(rows: _Rows) -> _Rows:
    return rows if (rows[1:] > rows[:-1]).all() else np.unique(rows)
