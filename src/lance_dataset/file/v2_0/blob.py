"""Blob columns of 2.0 files: pages of positions and sizes, with the values elsewhere in the file."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError
from lance_dataset.file.blob_fields import is_pair
from lance_dataset.file.blob_values import check_ranges, check_total, description_array, read_values
from lance_dataset.file.column import ColumnReader
from lance_dataset.file.v2_0.packed import row_column
from lance_dataset.file.v2_0.page import Page
from lance_dataset.io.base import InputFile
from lance_dataset.types.schema import Field

__all__ = ["DESCRIPTION_BITS", "BlobColumn"]

#: Position and size.
DESCRIPTION_BITS = (64, 64)


class BlobColumn(ColumnReader):
    """Blobs as values or as descriptions; the description of a null is an empty value at position 1.

    Parameters
    ----------
    field
        A large binary for the values, or a struct of position and size for the descriptions.
    source
        The file.
    pages
        Non-empty pages in row order.
    where
        File and column, for error messages.

    Raises
    ------
    CorruptFileError
        The pages do not have the form of blobs, or the field has another type.
    """

    def __init__(self, field: Field, source: InputFile, pages: Sequence[Page], where: str) -> None:
        if not is_pair(field) and not pa.types.is_large_binary(field.storage_type):
            raise CorruptFileError(f"{where}: a column of blobs does not fit a field of type {field.storage_type}")
        self.arrow_type = field.storage_type
        self._rows = row_column(pages, DESCRIPTION_BITS, where)
        self.num_rows = self._rows.num_rows
        self._nullable = field.nullable
        self._described = is_pair(field)
        self._source = source
        self._where = where

    def read(self, start: int, stop: int) -> pa.Array:
        """See `ColumnReader.read`."""
        return self._array(_descriptions(self._rows.read(start, stop)))

    def read_chunks(self, start: int, stop: int) -> list[pa.Array]:
        """See `ColumnReader.read_chunks`."""
        return [self.read(start, stop)] if start < stop else []

    def take(self, rows: NDArray[np.int64]) -> pa.Array:
        """Take values, see `ColumnReader.take`; the size limit applies to distinct rows, which the file must hold."""
        distinct, back = np.unique(rows, return_inverse=True)
        descriptions = _descriptions(self._rows.take(distinct))
        self._check(descriptions)
        return self._array(descriptions[back.reshape(-1)], checked=True)

    def _check(self, descriptions: NDArray[np.uint64]) -> None:
        sizes = descriptions[:, 1]
        check_ranges(np.where(sizes == 0, np.uint64(0), descriptions[:, 0]), sizes, self._source.size, self._where)
        if not self._described:
            check_total(sizes, self._source.size, self._where)

    def _array(self, descriptions: NDArray[np.uint64], checked: bool = False) -> pa.Array:
        if not checked:
            self._check(descriptions)
        positions, sizes = descriptions[:, 0], descriptions[:, 1]
        if self._described:
            return description_array(self.arrow_type, positions, sizes)
        null = (sizes == 0) & (positions != 0)
        nulls = int(null.sum())
        if nulls and not self._nullable:
            raise CorruptFileError(f"{self._where}: holds {nulls} nulls but is declared not nullable")
        validity = pa.py_buffer(np.packbits(~null, bitorder="little")) if nulls else None
        return read_values(self._source, positions, sizes, validity, nulls)


def _descriptions(rows: pa.FixedSizeBinaryArray) -> NDArray[np.uint64]:
    """Return positions and sizes; a null becomes the description of a null."""
    if len(rows) == 0:
        return np.empty((0, 2), np.uint64)
    width = rows.type.byte_width
    data = rows.buffers()[1].slice(rows.offset * width, len(rows) * width)
    # a copy, because a mapped file may change after the check
    descriptions = np.frombuffer(data, np.dtype("<u8")).reshape(-1, 2).copy()
    if rows.null_count:
        descriptions = np.where(np.asarray(rows.is_null())[:, np.newaxis], np.array([1, 0], np.uint64), descriptions)
    return descriptions
