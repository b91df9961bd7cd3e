"""Strings stored as lists of bytes, as in prototypes of 2.0."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError
from lance_dataset.file.buffers import allocate
from lance_dataset.file.column import ColumnReader
from lance_dataset.file.kinds import is_text, is_wide
from lancecodec import CodecError, utf8

__all__ = ["ListedStrings", "byte_lists"]


def byte_lists(arrow_type: pa.DataType) -> pa.DataType:
    """Return the type of the lists that hold strings or binaries of a type."""
    item = pa.field("item", pa.uint8(), nullable=False)
    return pa.large_list(item) if is_wide(arrow_type) else pa.list_(item)


class ListedStrings(ColumnReader):
    """Strings or binaries over a column of lists of bytes.

    Parameters
    ----------
    lists
        Column of `byte_lists`.
    arrow_type
        String or binary with the offsets of these lists.
    where
        File and column, for error messages.
    """

    def __init__(self, lists: ColumnReader, arrow_type: pa.DataType, where: str) -> None:
        self.arrow_type = arrow_type
        self.num_rows = lists.num_rows
        self._lists = lists
        self._where = where

    def read(self, start: int, stop: int) -> pa.Array:
        """See `ColumnReader.read`."""
        return self._strings(self._lists.read(start, stop))

    def read_chunks(self, start: int, stop: int) -> list[pa.Array]:
        """See `ColumnReader.read_chunks`."""
        return [self._strings(lists) for lists in self._lists.read_chunks(start, stop)]

    def take(self, rows: NDArray[np.int64]) -> pa.Array:
        """See `ColumnReader.take`."""
        return self._strings(self._lists.take(rows))

    def _strings(self, lists: pa.Array) -> pa.Array:
        """Return the same values as another type; a column of lists makes arrays that start at 0."""
        if len(lists) == 0:
            return pa.array([], self.arrow_type)
        validity, offsets = lists.buffers()[:2]
        items = lists.values
        data = items.buffers()[1].slice(items.offset, len(items)) if len(items) else pa.py_buffer(b"")
        if is_text(self.arrow_type):
            copy = allocate(data.size)
            try:
                utf8.copy(data, offsets, is_wide(self.arrow_type), copy)
            except CodecError as error:
                raise CorruptFileError(f"{self._where}: {error}") from error
            data = copy
        return pa.Array.from_buffers(self.arrow_type, len(lists), [validity, offsets, data], lists.null_count)
