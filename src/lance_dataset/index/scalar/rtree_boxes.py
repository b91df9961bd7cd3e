"""Boxes of an R-tree that is being trained: collected in any order, yielded along a Hilbert curve."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.index.scalar.hilbert import CELLS, hilbert_keys
from lance_dataset.index.scalar.rtree import ID, Boxes
from lance_dataset.read.spool import Spool
from lance_dataset.types.geoarrow import BOX_BOUNDS

__all__ = ["BoxSpool", "LevelBoxes"]

_Rows = NDArray[np.uint64]

_SPOOLED: Final = pa.schema([*(pa.field(name, pa.float64()) for name in BOX_BOUNDS), pa.field(ID, pa.uint64())])
#: Memory that sorting takes, as a multiple of the bytes of the boxes.
_SORT_FACTOR: Final = 4
_BOX_BYTES: Final = 40
#: Sections of the curve whose boxes are counted.
_SECTIONS: Final = 1 << 12
_SECTION_SHIFT: Final = np.uint32(32 - 12)
#: Numbers that can be added to each other without becoming infinite.
_LARGE: Final = 1e300
#: The greatest number; infinite bounds are moved there, because the reference takes infinities in an index for nothing.
_MOST: Final = np.finfo(np.float64).max


class BoxSpool:
    """Boxes with the ids of their rows, in memory or in a temporary file. A context manager that removes the file.

    Parameters
    ----------
    memory_limit
        Maximum number of bytes to work with, approximately.

    Attributes
    ----------
    num_rows : int
        Number of boxes.
    bounds : float64[4]
        The box around all boxes.
    """

    def __init__(self, memory_limit: int) -> None:
        self._most = max(memory_limit // (_SORT_FACTOR * _BOX_BYTES), 1)
        self._spool = Spool(_SPOOLED, self._most * _BOX_BYTES)
        self.num_rows = 0
        self.bounds = np.array([np.inf, np.inf, -np.inf, -np.inf])
        self._inner = self.bounds

    def __enter__(self) -> BoxSpool:
        return self

    def __exit__(self, *_: object) -> None:
        self._spool.close()

    def add(self, boxes: Boxes, rows: _Rows) -> None:
        """Add boxes without NaN."""
        if not len(rows):
            return
        boxes = np.clip(boxes, -_MOST, _MOST)
        columns = [pa.array(column) for column in boxes]
        self._spool.add(pa.RecordBatch.from_arrays([*columns, pa.array(rows)], schema=_SPOOLED))
        self.num_rows += len(rows)
        around = _around(boxes)
        self.bounds = _joined(self.bounds, around)
        if np.abs(around).max() == _MOST:
            boxes = boxes[:, (np.abs(boxes) < _MOST).all(axis=0)]
        if boxes.size:
            self._inner = _joined(self._inner, _around(boxes))

    def ordered(self) -> Iterator[tuple[Boxes, _Rows]]:
        """Yield all boxes along the curve, in batches.

        If they do not fit in memory, they are read as often as necessary, each time for a section of the curve.
        """
        self._spool.seal()
        if self.num_rows <= self._most:
            yield from self._section(0, _SECTIONS)
            return
        counts = np.zeros(_SECTIONS, np.int64)
        for boxes, _ in self._batches():
            counts += np.bincount(self._keys(boxes) >> _SECTION_SHIFT, minlength=_SECTIONS)
        start, held = 0, 0
        for number, count in enumerate(counts.tolist()):
            if held and held + count > self._most:
                yield from self._section(start, number)
                start, held = number, 0
            held += count
        yield from self._section(start, _SECTIONS)

    def _section(self, start: int, stop: int) -> Iterator[tuple[Boxes, _Rows]]:
        kept_boxes, kept_rows, kept_keys = [np.empty((4, 0))], [np.empty(0, np.uint64)], [np.empty(0, np.uint32)]
        for boxes, rows in self._batches():
            keys = self._keys(boxes)
            if stop - start < _SECTIONS:
                sections = keys >> _SECTION_SHIFT
                chosen = (sections >= start) & (sections < stop)
                boxes, rows, keys = boxes[:, chosen], rows[chosen], keys[chosen]
            kept_boxes.append(boxes)
            kept_rows.append(rows)
            kept_keys.append(keys)
        order = np.argsort(np.concatenate(kept_keys), kind="stable")
        columns = [np.concatenate([boxes[bound] for boxes in kept_boxes])[order] for bound in range(4)]
        yield np.stack(columns), np.concatenate(kept_rows)[order]

    def _batches(self) -> Iterator[tuple[Boxes, _Rows]]:
        for batch in self._spool.batches():
            *columns, rows = (np.asarray(column) for column in batch.columns)
            yield np.stack(columns), rows

    def _keys(self, boxes: Boxes) -> NDArray[np.uint32]:
        """Return the positions of the centres of boxes along the curve over the finite ones."""
        cells = []
        for axis in range(2):
            low, high = self._inner[axis], self._inner[axis + 2]
            if not low < high < np.inf:
                cells.append(np.zeros(boxes.shape[1], np.uint16))
                continue
            # a quarter of large numbers: neither their sums nor their differences are infinite then
            scale = 1.0 if max(-low, high) < _LARGE else 0.25
            centres = (boxes[axis] * scale + boxes[axis + 2] * scale) / 2
            places = np.clip((centres - low * scale) / (high * scale - low * scale), 0, 1)
            cells.append(np.round(places * (CELLS - 1)).astype(np.uint16))
        return hilbert_keys(*cells)


class LevelBoxes:
    """Boxes around pages of boxes that are added in portions of any size.

    Parameters
    ----------
    page_rows
        Boxes in every page but the last.
    """

    def __init__(self, page_rows: int) -> None:
        self._page_rows = page_rows
        self._rows = 0
        self._parts = [np.empty((4, 0))]

    def add(self, boxes: Boxes) -> None:
        """Add the next boxes."""
        count = boxes.shape[1]
        if not count:
            return
        starts = np.arange(-self._rows % self._page_rows, count, self._page_rows)
        continued = self._rows % self._page_rows != 0
        if continued:
            starts = np.append(0, starts)
        part = np.concatenate(
            [np.minimum.reduceat(boxes[:2], starts, axis=1), np.maximum.reduceat(boxes[2:], starts, axis=1)]
        )
        if continued:
            last = self._parts[-1]
            last[:, -1] = _joined(last[:, -1], part[:, 0])
            part = part[:, 1:]
        if part.size:
            self._parts.append(part)
        self._rows += count

    def boxes(self) -> Boxes:
        """Return the boxes around the pages."""
        return np.concatenate(self._parts, axis=1)


def _around(boxes: Boxes) -> NDArray[np.float64]:
    """Return the box around boxes."""
    return np.concatenate([boxes[:2].min(axis=1), boxes[2:].max(axis=1)])


def _joined(one: NDArray[np.float64], two: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the box around two boxes."""
    return np.concatenate([np.minimum(one[:2], two[:2]), np.maximum(one[2:], two[2:])])
