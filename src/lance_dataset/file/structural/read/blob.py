"""Pages of blob columns: descriptions in a page with a layout of its own, values elsewhere in the file."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError
from lance_dataset.file.blob_fields import DESCRIPTION
from lance_dataset.file.blob_values import check_ranges, check_total, description_array, read_values
from lance_dataset.file.structural.layout import BlobLayout, ConstantLayout, list_depth, max_definition
from lance_dataset.file.structural.nesting import Branch
from lance_dataset.file.structural.read.levels import LeafValues
from lance_dataset.file.structural.read.page import LeafPage, Page
from lance_dataset.types.schema import Field

__all__ = ["DESCRIPTION_BRANCH", "BlobPage"]

#: Branch of the inner page: a description for every value, including nulls.
DESCRIPTION_BRANCH = Branch(Field("description", -1, "struct", nullable=False, children=DESCRIPTION))
#: In the description of a null, the definition level is above the 16 bits of the repetition level.
_LEVEL_BITS = 16


class BlobPage(LeafPage):
    """A page of values that are stored outside the page.

    Parameters
    ----------
    page
        A page with a blob layout.
    layout
        The layout of the page, without list layers.
    inner
        The same page, read as a page of descriptions.
    value_type
        Large binary for the values; a struct of position, size or both for the descriptions.
    """

    def __init__(self, page: Page, layout: BlobLayout, inner: LeafPage, value_type: pa.DataType) -> None:
        self.page = page
        self.layers = layout.layers
        self._inner = inner
        self._value_type = value_type
        self._described = pa.types.is_struct(value_type)
        self._levels = max_definition(layout.layers)
        if isinstance(layout.inner, ConstantLayout) or list_depth(layout.inner.layers):
            raise CorruptFileError(f"{page.where}: descriptions of blobs that are not a page of positions and sizes")
        if max_definition(layout.inner.layers):
            raise CorruptFileError(f"{page.where}: descriptions of blobs that may be null themselves")
        if not self._described and not pa.types.is_large_binary(value_type):
            raise CorruptFileError(f"{page.where}: a page of blobs in a column of type {value_type}")

    def read(self, start: int, stop: int) -> LeafValues:
        """See `LeafPage.read`."""
        positions, sizes = _columns(self._inner.read(start, stop))
        return self._leaf(positions, sizes, sizes)

    def take(self, rows: NDArray[np.int64]) -> LeafValues:
        """See `LeafPage.take`."""
        positions, sizes = _columns(self._inner.take(rows))
        _, first = np.unique(rows, return_index=True)
        return self._leaf(positions, sizes, sizes[first])

    def _leaf(
        self, positions: NDArray[np.uint64], sizes: NDArray[np.uint64], distinct: NDArray[np.uint64]
    ) -> LeafValues:
        """Return the rows of descriptions; `distinct` has the sizes without repeated rows."""
        null = (sizes == 0) & (positions != 0)
        definition = self._definition(positions, null)
        positions = np.where(sizes == 0, np.uint64(0), positions)
        source, where = self.page.source, self.page.where
        check_ranges(positions, sizes, source.size, where)
        if self._described:
            array = description_array(self._value_type, positions, sizes, null)
        else:
            check_total(distinct, source.size, where)
            array = read_values(source, positions, sizes)
        return LeafValues(array, len(sizes), None, definition)

    def _definition(self, positions: NDArray[np.uint64], null: NDArray[np.bool_]) -> pa.Buffer | None:
        """Return the definition levels, which only nulls have."""
        levels = np.where(null, positions, np.uint64(0)) >> np.uint64(_LEVEL_BITS)
        if null.any():
            low, high = int(levels[null].min()), int(levels.max())
            if low == 0 or high > self._levels or (positions[null] % (1 << _LEVEL_BITS)).any():
                raise CorruptFileError(
                    f"{self.page.where}: the description of a null has a definition level outside 1 to {self._levels}"
                )
        return pa.py_buffer(levels.astype(np.uint16)) if self._levels else None


def _columns(leaf: LeafValues) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    position, size = (leaf.values.field(number).to_numpy() for number in range(2))
    return position, size
