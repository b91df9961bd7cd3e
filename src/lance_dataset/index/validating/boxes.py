"""Check of R-tree indices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.expr.geometry.boxes import boxes_of
from lance_dataset.index.files import IndexFolder
from lance_dataset.index.scalar.rtree import NULLS, Boxes, Level, null_set, open_tree, read_rows
from lance_dataset.index.scalar.rtree_boxes import LevelBoxes
from lance_dataset.index.validating.keyed_rows import NULL, Digests, KeyedRows, mixed
from lance_dataset.index.validating.row_sets import rows_of_keys
from lance_dataset.table.row_sets import ROW_SETS

__all__ = ["RTreeContent"]

_READ_ROWS: Final = 1 << 16
#: The reference does not find infinite boxes, so indices have the greatest numbers instead.
_MOST: Final = np.finfo(np.float64).max


class RTreeContent:
    """Entries of a segment of an R-tree index: the box around the geometry of each row, and which rows are null.

    Parameters
    ----------
    folder
        Folder of its files.
    rows_in
        Returns the number of rows, deleted ones included, of a fragment.

    Raises
    ------
    CorruptFileError
        A file contradicts the format.
    """

    is_exact = False

    def __init__(self, folder: IndexFolder, rows_in: Callable[[int], int]) -> None:
        self._folder = folder
        self._rows_in = rows_in
        self._table, self._shape = open_tree(folder)
        null_set(folder)

    def entries(self) -> Iterator[KeyedRows]:
        """Yield all entries. The box of each page must be around the boxes in the page."""
        levels = self._shape.levels
        above = LevelBoxes(self._shape.page_rows)
        for start in range(0, self._shape.items, _READ_ROWS):
            boxes, rows = read_rows(self._table, start, min(start + _READ_ROWS, self._shape.items))
            above.add(_without_nan(boxes))
            yield _keyed(boxes, rows)
        for below, level in pairwise(levels):
            above = self._checked(below, level, above.boxes())
        sets, _ = null_set(self._folder)
        where = self._folder.uri(NULLS)
        yield from rows_of_keys(pa.nulls(1), np.array([NULL]), sets, ROW_SETS, self._rows_in, where)

    def _checked(self, below: Level, level: Level, expected: Boxes) -> LevelBoxes:
        """Compare the boxes of a level with those around the pages below; return those around its own pages."""
        above = LevelBoxes(self._shape.page_rows)
        for start in range(0, level.num_rows, _READ_ROWS):
            stop = min(start + _READ_ROWS, level.num_rows)
            boxes, pages = read_rows(self._table, level.first_row + start, level.first_row + stop)
            inner, outer = expected[:, start:stop], _without_nan(boxes)
            holds = (outer[:2] <= inner[:2]).all(axis=0) & (outer[2:] >= inner[2:]).all(axis=0)
            holds |= (inner[0] > inner[2]) | np.isnan(boxes).any(axis=0) & np.isinf(inner).any(axis=0)
            right = pages == np.arange(below.first_page + start, below.first_page + stop, dtype=np.uint64)
            wrong = np.flatnonzero(~(holds & right))
            if len(wrong):
                row = int(wrong[0])
                raise self._table.corrupt(
                    f"the box at row {level.first_row + start + row}, {_box_text(boxes[:, row])}, names page "
                    f"{int(pages[row])}, and is not that of page {below.first_page + start + row}, whose boxes reach "
                    f"{_box_text(inner[:, row])}"
                )
            above.add(outer)
        return above

    def expected(self, values: pa.Array) -> Iterator[KeyedRows]:
        """Yield the entries that geometries should have."""
        nulls = np.flatnonzero(np.asarray(values.is_null(), bool)).astype(np.uint64)
        yield KeyedRows(pa.nulls(1), np.array([NULL]), nulls, np.zeros(len(nulls), np.int64))
        yield _keyed(boxes_of(values), np.arange(len(values), dtype=np.uint64))

    def required(self, values: pa.Array) -> Iterator[KeyedRows]:
        """Yield all entries that geometries should have."""
        return self.expected(values)


def _without_nan(boxes: Boxes) -> Boxes:
    """Return boxes with empty ones, which are around nothing, for those with NaN."""
    nowhere = np.isnan(boxes).any(axis=0)
    if nowhere.any():
        boxes = boxes.copy()
        boxes[:2, nowhere], boxes[2:, nowhere] = np.inf, -np.inf
    return boxes


def _keyed(boxes: Boxes, rows: Digests) -> KeyedRows:
    """Return boxes as keys, without those of geometries that are nowhere."""
    found = ~np.isnan(boxes).any(axis=0)
    boxes, rows = np.clip(boxes[:, found], -_MOST, _MOST) + 0.0, rows[found]  # no negative zeros
    digest = np.zeros(len(rows), np.uint64)
    for bound in boxes:
        digest = mixed(digest ^ mixed(np.ascontiguousarray(bound).view(np.uint64)))
    keys = pa.FixedSizeListArray.from_arrays(pa.array(boxes.T.ravel()), 4)
    return KeyedRows(keys, digest, rows)


def _box_text(box: NDArray[np.float64]) -> str:
    return "({}, {}, {}, {})".format(*(f"{each:g}" for each in box))
