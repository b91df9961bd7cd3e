"""Encoding of blob columns of 2.0: values outside the pages, and pages with their locations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset._proto import encodings_pb2 as pb
from lance_dataset.file.blob_output import write_values
from lance_dataset.file.column import EncodedPage, WriteBuffer
from lance_dataset.file.v2_0.encode_binary import without_hidden_bytes
from lance_dataset.file.v2_0.encode_packed import packed_encoding

__all__ = ["BLOB_COLUMN", "BlobPages"]

#: Column encoding that marks a blob column for readers.
BLOB_COLUMN = pb.ColumnEncoding(blob=pb.Blob(inner=pb.ColumnEncoding(values={})))

#: 8 MiB of descriptions.
_PAGE_ROWS = 1 << 19
_NULL = np.array([1, 0], np.uint64)


class BlobPages:
    """Buffered descriptions of one column; the values are in the file already.

    Parameters
    ----------
    column
        Index of the column.
    write_buffer
        Appends bytes to the file, aligned.
    """

    def __init__(self, column: int, write_buffer: WriteBuffer) -> None:
        self._column = column
        self._write_buffer = write_buffer
        self._waiting: list[NDArray[np.uint64]] = []
        self._rows = 0

    def add(self, arrays: Sequence[pa.Array]) -> Iterator[EncodedPage]:
        """Write values; yield a page when there are enough for one."""
        for array in arrays:
            descriptions = np.stack(write_values(without_hidden_bytes(array), self._write_buffer), axis=1)
            if array.null_count:
                descriptions[np.asarray(array.is_null())] = _NULL
            self._waiting.append(descriptions)
            self._rows += len(array)
        if self._rows >= _PAGE_ROWS:
            yield from self.finish()

    def finish(self) -> Iterator[EncodedPage]:
        """Yield the page of the buffered descriptions."""
        if self._rows:
            content = np.concatenate(self._waiting)
            yield EncodedPage(
                self._column, self._rows, packed_encoding([pa.uint64(), pa.uint64()]), [[pa.py_buffer(content)]]
            )
        self._waiting, self._rows = [], 0
