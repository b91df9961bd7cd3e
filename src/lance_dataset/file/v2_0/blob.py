"""Blob columns of 2.0 files: pages of positions and sizes, values elsewhere in the file."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from lance_dataset._proto import encodings_pb2
from lance_dataset.errors import CorruptFileError, UnsupportedError
from lance_dataset.file.blob_fields import is_described
from lance_dataset.file.blob_values import check_ranges, check_total, description_array, read_values
from lance_dataset.file.column import ColumnReader
from lance_dataset.file.container import ColumnMetadata, PageMetadata
from lance_dataset.file.v2_0.nodes import PAGE_ENCODING
from lance_dataset.io.base import InputFile
from lance_dataset.schema import Field

__all__ = ["open_blob_column"]

_DESCRIPTION_BYTES = 16
#: Rows further apart than this are read by themselves.
_COALESCE_ROWS = 256


@dataclass(frozen=True)
class _Page:
    """Where the descriptions of some rows are."""

    start: int
    length: int
    position: int


def open_blob_column(
    field: Field, source: InputFile, metadata: ColumnMetadata, num_rows: int, where: str
) -> ColumnReader:
    """Open a column whose encoding is ``blob``.

    Parameters
    ----------
    field
        A large binary for the values, or a struct of position and size for the descriptions.
    num_rows
        Number of values it must have.
    where
        File and column, for error messages.

    Raises
    ------
    CorruptFileError, UnsupportedError
        The pages are not of the form in which blobs are stored, or the field is of another type.
    """
    pages: list[_Page] = []
    start = 0
    for number, stored in enumerate(metadata.pages):
        if stored.length:
            pages.append(_open_page(stored, metadata, start, f"{where}, page {number}"))
        start += stored.length
    if start != num_rows:
        raise CorruptFileError(f"{where}: has {start} values instead of {num_rows}")
    if not is_described(field) and not pa.types.is_large_binary(field.storage_type):
        raise CorruptFileError(f"{where}: a column of blobs for a field of type {field.storage_type}")
    return BlobColumn(field, source, pages, num_rows, where)


def _open_page(stored: PageMetadata, metadata: ColumnMetadata, start: int, where: str) -> _Page:
    if stored.type_name != PAGE_ENCODING:
        raise CorruptFileError(f"{where}: encoding {stored.type_name!r} does not belong into a 2.0 file")
    try:
        message = encodings_pb2.ArrayEncoding.FromString(stored.encoding)
    except DecodeError as error:
        raise CorruptFileError(f"{where}: broken page encoding ({error})") from error
    if message.WhichOneof("array_encoding") != "packed_struct":
        raise UnsupportedError(f"{where}: blob descriptions that are no packed struct cannot be read by this release")
    packed = message.packed_struct
    if [_bits(child) for child in packed.inner] != [64, 64]:
        raise CorruptFileError(f"{where}: blob descriptions that are not two numbers of 64 bits")
    kind, index = packed.buffer.buffer_type, packed.buffer.buffer_index
    buffers = {encodings_pb2.Buffer.page: stored.buffers, encodings_pb2.Buffer.column: metadata.buffers}.get(kind, ())
    if index >= len(buffers):
        raise CorruptFileError(f"{where}: names buffer {index} of {len(buffers)}")
    position, size = buffers[index]
    if stored.length > size // _DESCRIPTION_BYTES:
        raise CorruptFileError(f"{where}: {stored.length} blob descriptions in {size} bytes")
    return _Page(start, stored.length, position)


def _bits(message: encodings_pb2.ArrayEncoding) -> int:
    """Width of a flat encoding, perhaps said to be without nulls; 0 for others."""
    while message.WhichOneof("array_encoding") == "nullable" and message.nullable.HasField("no_nulls"):
        message = message.nullable.no_nulls.values
    flat = message.flat if message.WhichOneof("array_encoding") == "flat" else None
    return 0 if flat is None or flat.compression.scheme not in ("", "none") else int(flat.bits_per_value)


class BlobColumn(ColumnReader):
    """Blobs as values, or as descriptions, which show a null as an empty value at position 1.

    Parameters
    ----------
    field
        The field, which decides which of the two.
    source
        The file.
    pages
        Non-empty pages in row order.
    num_rows
        Number of values.
    where
        File and column, for error messages.
    """

    def __init__(self, field: Field, source: InputFile, pages: list[_Page], num_rows: int, where: str) -> None:
        self.arrow_type = field.storage_type
        self.num_rows = num_rows
        self._nullable = field.nullable
        self._described = is_described(field)
        self._source = source
        self._pages = pages
        self._starts = [page.start for page in pages]
        self._where = where

    def read(self, start: int, stop: int) -> pa.Array:
        """See `ColumnReader.read`."""
        return self._array(self._rows(start, stop))

    def read_chunks(self, start: int, stop: int) -> list[pa.Array]:
        """See `ColumnReader.read_chunks`."""
        return [self.read(start, stop)] if start < stop else []

    def take(self, rows: NDArray[np.int64]) -> pa.Array:
        """See `ColumnReader.take`."""
        distinct, back = np.unique(rows, return_inverse=True)
        cuts = np.flatnonzero(np.diff(distinct) > _COALESCE_ROWS) + 1
        pieces = [np.empty((0, 2), np.uint64)]
        groups = [group for group in np.split(distinct, cuts) if len(group)]
        pieces.extend(self._rows(int(group[0]), int(group[-1]) + 1)[group - group[0]] for group in groups)
        descriptions = np.concatenate(pieces)
        self._check(descriptions)
        return self._array(descriptions[back.reshape(-1)], checked=True)

    def _rows(self, start: int, stop: int) -> NDArray[np.uint64]:
        """Positions and sizes of rows."""
        pieces = [np.empty((0, 2), np.uint64)]
        number = max(bisect_right(self._starts, start) - 1, 0)
        while start < stop:
            page = self._pages[number]
            end = min(stop, page.start + page.length)
            at = page.position + (start - page.start) * _DESCRIPTION_BYTES
            data = self._source.read(at, (end - start) * _DESCRIPTION_BYTES)
            pieces.append(np.frombuffer(data, np.dtype("<u8")).reshape(-1, 2))
            start, number = end, number + 1
        return np.concatenate(pieces)

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
