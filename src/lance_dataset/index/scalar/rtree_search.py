"""Search in R-tree indices."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import ClassVar, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.expr.geometry.boxes import meeting
from lance_dataset.index.files import IndexFolder
from lance_dataset.index.scalar.conditions import Answer, BoxCondition, Condition, ValueCondition, nothing
from lance_dataset.index.scalar.row_set_rows import rows_of_sets
from lance_dataset.index.scalar.rtree import NULLS, Boxes, Level, null_set, open_tree, read_rows
from lance_dataset.locks import SharedLock
from lance_dataset.properties import cached_property
from lance_dataset.table.row_sets import ROW_SETS

__all__ = ["RTreeSearch"]

_Rows = NDArray[np.uint64]
_Pages = NDArray[np.int64]

#: Pages that are kept in memory.
_KEPT_PAGES: Final = 64
#: Pages whose rows are counted to choose between an index and a scan.
_COUNTED_PAGES: Final = 16
#: Rows that are read together.
_READ_ROWS: Final = 1 << 16
#: Nanoseconds of reading a page, apart from those for each box.
_PAGE_COST: Final = 3e5
_BOX_COST: Final = 10.0
#: Bytes of a box and an id.
_BOX_BYTES: Final = 40


class RTreeSearch:
    """An open segment of an R-tree index; see `BTreeSearch` for its methods. Pages are read when they are needed."""

    byte_cost: ClassVar[float] = 0.0

    def __init__(self, folder: IndexFolder, rows_in: Callable[[int], int]) -> None:
        self._folder = folder
        self._rows_in = rows_in
        self._table, self._shape = open_tree(folder)
        self._levels = self._shape.levels
        self.kind: pa.DataType | None = None
        self.nbytes = _KEPT_PAGES * min(self._shape.page_rows, self._table.num_rows) * _BOX_BYTES
        self._kept: OrderedDict[int, tuple[Boxes, _Rows]] = OrderedDict()
        self._lock = SharedLock()
        self._last: tuple[BoxCondition, _Pages] | None = None

    @staticmethod
    def answers(condition: Condition) -> Answer:
        """Return how exactly such an index answers a condition."""
        if isinstance(condition, BoxCondition):
            return Answer.CANDIDATES
        is_null_test = isinstance(condition, ValueCondition) and not condition.intervals
        return Answer.EXACT if is_null_test else Answer.NONE

    def estimate(self, condition: Condition) -> int:
        """Return the number of rows that are found in few pages; of many pages, that of all rows."""
        if isinstance(condition, BoxCondition):
            pages = self._leaf_pages(condition)
            if len(pages) <= _COUNTED_PAGES:
                return sum(len(part) for part in self._items(condition))
            return min(len(pages) * self._shape.page_rows, self._shape.items)
        return len(self._nulls) if isinstance(condition, ValueCondition) and condition.nulls else 0

    def cost(self, condition: Condition) -> float:
        """Return the nanoseconds of examining the boxes of pages."""
        if not isinstance(condition, BoxCondition):
            return 0.0
        pages = len(self._leaf_pages(condition))
        return pages * (_PAGE_COST + _BOX_COST * self._shape.page_rows)

    def search(self, condition: Condition) -> _Rows:
        """Return the ids of the rows for which the condition may be true, in any order."""
        if isinstance(condition, BoxCondition):
            return np.concatenate([nothing(), *self._items(condition)])
        return self._nulls if isinstance(condition, ValueCondition) and condition.nulls else nothing()

    def _items(self, condition: BoxCondition) -> list[_Rows]:
        """Return the rows of the geometries whose boxes meet a box, page by page."""
        return self._inside(self._levels[0], self._leaf_pages(condition), condition) if self._levels else []

    @cached_property
    def _nulls(self) -> _Rows:
        sets, _ = null_set(self._folder)
        (rows,) = rows_of_sets(sets, ROW_SETS, self._rows_in, self._folder.uri(NULLS))
        return rows

    def _leaf_pages(self, condition: BoxCondition) -> _Pages:
        """Return the numbers of the pages with geometries whose boxes may meet a box, ascending."""
        last = self._last
        if last is not None and last[0] == condition:
            return last[1]
        if not self._levels:
            return np.empty(0, np.int64)
        root = self._levels[-1]
        pages = np.array([root.first_page], np.int64)
        for level, below in zip(self._levels[:0:-1], self._levels[-2::-1], strict=True):
            found = np.unique(np.concatenate([nothing(), *self._inside(level, pages, condition)]))
            if len(found) and not below.first_page <= found[0] <= found[-1] < below.first_page + below.num_pages:
                raise self._table.corrupt(
                    f"names the pages {found[0]} to {found[-1]} in a level above the pages {below.first_page} to "
                    f"{below.first_page + below.num_pages - 1}"
                )
            pages = found.astype(np.int64)
        self._last = condition, pages
        return pages

    def _inside(self, level: Level, pages: _Pages, condition: BoxCondition) -> list[_Rows]:
        """Return what is in the boxes of some pages of a level that meet a box."""
        bounds = condition.xmin, condition.ymin, condition.xmax, condition.ymax
        if len(pages) <= _KEPT_PAGES // 2:
            parts = [self._page(level, page) for page in pages.tolist()]
            return [ids[meeting(boxes, bounds)] for boxes, ids in parts]
        found = []
        rows = self._shape.page_rows
        cuts = np.flatnonzero(np.diff(pages) > 1) + 1
        firsts, lasts = pages[np.append(0, cuts)], pages[np.append(cuts - 1, -1)]
        for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True):
            start, stop = self._row(level, first), min(self._row(level, last) + rows, level.first_row + level.num_rows)
            for row in range(start, stop, _READ_ROWS):
                boxes, ids = read_rows(self._table, row, min(row + _READ_ROWS, stop))
                found.append(ids[meeting(boxes, bounds)])
        return found

    def _row(self, level: Level, page: int) -> int:
        return level.first_row + (page - level.first_page) * self._shape.page_rows

    def _page(self, level: Level, page: int) -> tuple[Boxes, _Rows]:
        with self._lock:
            known = self._kept.get(page)
            if known is not None:
                self._kept.move_to_end(page)
                return known
        start = self._row(level, page)
        found = read_rows(self._table, start, min(start + self._shape.page_rows, level.first_row + level.num_rows))
        if self._shape.page_rows > _READ_ROWS:
            return found
        with self._lock:
            self._kept[page] = found
            while len(self._kept) > _KEPT_PAGES:
                self._kept.popitem(last=False)
        return found
