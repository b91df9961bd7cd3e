"""Value planes of sparse pages, with a value for each slot of the leaf or for each valid slot."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError
from lance_dataset.file.structural.layout import FullZipLayout, MiniBlockLayout
from lance_dataset.file.structural.read.constant import ConstantPage
from lance_dataset.file.structural.read.decompression import WideSpanError
from lance_dataset.file.structural.read.fullzip import FullZipPage
from lance_dataset.file.structural.read.page import LeafPage, Page
from lance_dataset.file.v2_3.layout import DictionaryLayout, SparseValues
from lance_dataset.file.v2_3.miniblock import PlanarMiniBlockPage
from lance_dataset.properties import cached_property

__all__ = ["ValuePlane", "is_packed_plane", "open_plane", "plane_buffers"]


class ValuePlane(Protocol):
    """Values without nulls, one per slot or per valid slot; see `is_packed_plane`."""

    def read(self, start: int, stop: int) -> pa.Array:
        """Return values ``[start, stop)``."""

    def take(self, index: NDArray[np.int64]) -> pa.Array:
        """Return the values at `index`, in any order."""


def is_packed_plane(layout: SparseValues) -> bool:
    """Return whether only valid slots have values."""
    return isinstance(layout, FullZipLayout)


def plane_buffers(layout: SparseValues) -> int:
    """Return the number of page buffers of the plane; they come first."""
    if isinstance(layout, MiniBlockLayout):
        return 2 + (layout.dictionary is not None)
    if isinstance(layout, FullZipLayout):
        return 1 if layout.bits is not None else 2
    if isinstance(layout, DictionaryLayout):
        return layout.indices.has_payload + plane_buffers(layout.items)
    return 0


def open_plane(page: Page, layout: SparseValues, count: int, value_type: pa.DataType) -> ValuePlane:
    """Open a plane.

    Parameters
    ----------
    page
        The page.
    layout
        Layout of the plane.
    count
        Number of values the plane must have.
    value_type
        Arrow type of the leaf.

    Raises
    ------
    CorruptFileError
        The plane does not fit the number of values or the type.
    """
    if isinstance(layout, DictionaryLayout):
        return _DictionaryPlane(page, layout, count, value_type)
    # Read as a page of its own that has a row for each value.
    page = replace(page, length=count, layout=layout, buffers=page.buffers[: plane_buffers(layout)])
    if isinstance(layout, MiniBlockLayout):
        return _PagePlane(PlanarMiniBlockPage(page, replace(layout, num_items=count), value_type, 1))
    if isinstance(layout, FullZipLayout):
        return _PagePlane(FullZipPage(page, layout, value_type, 1))
    return _PagePlane(ConstantPage(page, layout, value_type, 1))


class _PagePlane:
    """Values stored as in a page of 2.2 without lists and nulls."""

    def __init__(self, page: LeafPage) -> None:
        self._page = page

    def read(self, start: int, stop: int) -> pa.Array:
        try:
            return self._page.read(start, stop).values
        except WideSpanError:
            pass  # as long as it is handled, it keeps what was decompressed
        middle = (start + stop) // 2
        return pa.concat_arrays([self.read(start, middle), self.read(middle, stop)])

    def take(self, index: NDArray[np.int64]) -> pa.Array:
        try:
            return self._page.take(index).values
        except WideSpanError:
            pass
        middle = len(index) // 2
        return pa.concat_arrays([self.take(index[:middle]), self.take(index[middle:])])


class _DictionaryPlane:
    """Wide values that repeat: distinct values stored as full-zip, and indices into them."""

    def __init__(self, page: Page, layout: DictionaryLayout, count: int, value_type: pa.DataType) -> None:
        self._page = page
        self._layout = layout
        self._count = count
        self._size = layout.items.num_items
        first = int(layout.indices.has_payload)
        buffers = page.buffers[first : plane_buffers(layout)]
        items = replace(page, length=self._size, layout=layout.items, buffers=buffers)
        self._items = FullZipPage(items, layout.items, value_type, 1)

    @cached_property
    def _indices(self) -> NDArray[np.unsignedinteger]:
        encoding = self._layout.indices
        bits = encoding.checked_integer_bits()
        payload = self._page.read(0) if encoding.has_payload else None
        indices = np.frombuffer(encoding.integers(payload, self._count, bits), f"u{bits // 8}", self._count)
        if len(indices) and indices.max() >= self._size:
            raise CorruptFileError(f"{self._page.where}: index {indices.max()} into {self._size} distinct values")
        return indices

    def read(self, start: int, stop: int) -> pa.Array:
        return self._resolve(self._indices[start:stop])

    def take(self, index: NDArray[np.int64]) -> pa.Array:
        return self._resolve(self._indices[index])

    def _resolve(self, indices: NDArray[np.unsignedinteger]) -> pa.Array:
        distinct, places = np.unique(indices, return_inverse=True)
        if len(distinct) == self._size:
            return self._items.read(0, self._size).values.take(pa.array(places))
        return self._items.take(distinct.astype(np.int64)).values.take(pa.array(places))
