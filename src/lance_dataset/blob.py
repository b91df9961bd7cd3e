"""Values of blob columns as files."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from typing_extensions import Buffer

from lance_dataset.errors import InvalidInputError
from lance_dataset.file.blob_fields import is_described
from lance_dataset.query.blobs import BlobRange, blob_range, read_blob_values, select_blobs
from lance_dataset.query.fragment_reader import FragmentReader
from lance_dataset.query.projection import OutputColumn
from lance_dataset.query.table_reader import TableReader
from lance_dataset.schema import Field
from lance_dataset.table.row_addresses import fragments_of

__all__ = ["DEFAULT_BLOB_BUFFER_SIZE", "BlobAccess", "BlobFile", "blob_file_columns"]

#: Bytes that a `BlobFile` reads ahead where reads are not free.
DEFAULT_BLOB_BUFFER_SIZE = 512 << 10


_SELECTORS = ("ids", "addresses", "indices")


class BlobFile(io.BufferedIOBase):
    """One value of a blob column as a binary file; made by `LanceDataset.take_blobs`.

    Parameters
    ----------
    inner
        Where the value is.
    buffer_size
        Bytes to read at least from a store that is not memory mapped; what is too much serves the next reads.
    """

    def __init__(self, inner: BlobRange, buffer_size: int = DEFAULT_BLOB_BUFFER_SIZE) -> None:
        if buffer_size < 0:
            raise InvalidInputError(f"buffer_size must not be negative, got {buffer_size}")
        self.inner = inner
        self._buffer_size = buffer_size
        self._position = 0
        self._held = b""
        self._held_start = 0

    def __repr__(self) -> str:
        return f"<BlobFile size={self.inner.size}>"

    def _open(self, action: str) -> None:
        if self.closed:
            raise InvalidInputError(f"{action} of a closed blob file")

    def size(self) -> int:
        """Length of the value in bytes."""
        return self.inner.size

    def readable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """True."""
        return True

    def tell(self) -> int:
        """Position of the next read."""
        self._open("tell")
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to `offset` from the start, the position (`whence` 1) or the end (2); returns the new position.

        Raises
        ------
        InvalidInputError
            The target is before the start, `whence` is none of these, or the file is closed.
        """
        self._open("seek")
        bases = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self.inner.size}
        if whence not in bases:
            raise InvalidInputError(f"whence must be 0, 1 or 2, not {whence}")
        target = bases[whence] + offset
        if target < 0:
            raise InvalidInputError(f"cannot seek to {target}, which is before the start")
        self._position = target
        return target

    def read(self, size: int | None = -1, /) -> bytes:
        """The next `size` bytes, fewer at the end; all that are left if it is negative or None."""
        self._open("read")
        left = max(self.inner.size - self._position, 0)
        count = left if size is None or size < 0 else min(size, left)
        data = self._fetch(self._position, count)
        self._position += count
        return data

    def read1(self, size: int = -1, /) -> bytes:
        """As `read`."""
        return self.read(size)

    def readall(self) -> bytes:
        """All bytes from the position on."""
        return self.read()

    def readinto(self, buffer: Buffer, /) -> int:
        """Fill a writable buffer with the next bytes; returns how many they are."""
        view = memoryview(buffer).cast("B")
        if view.readonly:
            raise TypeError(f"readinto needs a writable buffer, not {type(buffer).__name__}")
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)

    def readinto1(self, buffer: Buffer, /) -> int:
        """As `readinto`."""
        return self.readinto(buffer)

    def read_range(self, offset: int, length: int) -> bytes:
        """Bytes at an offset; the position stays.

        Raises
        ------
        InvalidInputError
            They are not inside the value.
        RowIndexError
            A negative number.
        """
        return self.read_ranges([(offset, length)])[0]

    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Bytes of several (offset, length), read together; the position stays."""
        self._open("read")
        inside = [self.inner.part(offset, length) for offset, length in ranges]
        data = self.inner.source.read_ranges([(part.position, part.size) for part in inside if part.size])
        found = iter(data)
        return [next(found).to_pybytes() if part.size else b"" for part in inside]

    def _fetch(self, start: int, count: int) -> bytes:
        """Bytes that are inside the value, out of what was read ahead if they are there."""
        if count == 0:
            return b""
        begin = start - self._held_start
        if begin >= 0 and begin + count <= len(self._held):
            return self._held[begin : begin + count]
        source = self.inner.source
        ahead = 0 if source.mapped is not None else self._buffer_size
        length = min(max(count, ahead), self.inner.size - start)
        source.will_need([(self.inner.position + start, length)])
        data = source.read(self.inner.position + start, length).to_pybytes()
        if length == count:
            return data
        self._held, self._held_start = data, start
        return data[:count]


class BlobAccess:
    """What datasets offer for the values of blob columns."""

    _reader: TableReader

    def take_blobs(
        self,
        blob_column: str,
        ids: Sequence[int] | pa.Array | None = None,
        addresses: Sequence[int] | pa.Array | None = None,
        indices: Sequence[int] | pa.Array | None = None,
        *,
        buffer_size: int = DEFAULT_BLOB_BUFFER_SIZE,
    ) -> list[BlobFile | None]:
        """Values of a blob column as files, which are read when asked for; None for nulls.

        Parameters
        ----------
        blob_column
            Name of the column, dotted inside structs.
        ids, addresses, indices
            Rows by row id, by row address, or by number: exactly one of them, in the order wanted.
        buffer_size
            Bytes that a file reads ahead where that saves requests.

        Raises
        ------
        FieldNotFoundError
            There is no such column.
        InvalidInputError
            It is no blob column, rows are given in no way or in several, or there is no such row.
        UnsupportedError
            A row is deleted.
        """
        _, blobs = select_blobs(self._reader, blob_column, ids=ids, addresses=addresses, indices=indices)
        return [None if blob is None else BlobFile(blob, buffer_size) for blob in blobs]

    def read_blobs(
        self,
        blob_column: str,
        ids: Sequence[int] | pa.Array | None = None,
        addresses: Sequence[int] | pa.Array | None = None,
        indices: Sequence[int] | pa.Array | None = None,
        *,
        io_buffer_size: int | None = None,
        preserve_order: bool | None = None,
    ) -> list[tuple[int, bytes | None]]:
        """Row address and bytes of values of a blob column; None for nulls. Parameters as for `take_blobs`.

        Parameters
        ----------
        io_buffer_size, preserve_order
            Accepted for compatibility: values come in the order asked.
        """
        _check_buffer(io_buffer_size)
        rows, blobs = select_blobs(self._reader, blob_column, ids=ids, addresses=addresses, indices=indices)
        return list(zip(rows, read_blob_values(blobs), strict=True))

    def read_blob_ranges(
        self,
        blob_column: str,
        requests: Sequence[tuple[int, int, int]],
        *,
        selector: str,
        io_buffer_size: int | None = None,
        preserve_order: bool | None = None,
    ) -> list[tuple[int, int, bytes | None]]:
        """Parts of values of a blob column.

        Parameters
        ----------
        requests
            Row, offset in the value and length in bytes of each part.
        selector
            What rows are: ``ids``, ``addresses`` or ``indices``.
        io_buffer_size, preserve_order
            Accepted for compatibility: parts come in the order asked.

        Returns
        -------
        list of tuple
            Position of the request, row address, and the bytes, None for a null.

        Raises
        ------
        InvalidInputError
            A part is not inside its value; otherwise as for `take_blobs`.
        """
        if selector not in _SELECTORS:
            raise InvalidInputError(f"selector must be one of 'ids', 'addresses', or 'indices', got {selector!r}")
        _check_buffer(io_buffer_size)
        chosen: dict[str, Any] = {selector: [row for row, _, _ in requests]}
        rows, blobs = select_blobs(self._reader, blob_column, **chosen)
        parts = [
            None if blob is None else blob.part(offset, length)
            for blob, (_, offset, length) in zip(blobs, requests, strict=True)
        ]
        return list(zip(range(len(parts)), rows, read_blob_values(parts), strict=True))


def _check_buffer(io_buffer_size: int | None) -> None:
    if io_buffer_size is not None and io_buffer_size < 1:
        raise InvalidInputError(f"io_buffer_size must be greater than 0, got {io_buffer_size}")


def blob_file_columns(
    reader: TableReader, outputs: Sequence[OutputColumn], table: pa.Table, addresses: NDArray[np.uint64]
) -> dict[int, list[Any]]:
    """Columns of descriptions, also inside structs, as columns of files.

    Parameters
    ----------
    outputs
        What the columns of `table` are.
    addresses
        Row address of each row.

    Returns
    -------
    dict
        By position of the column: for each row a `BlobFile`, or a dictionary with such inside, or None.
    """
    numbers = fragments_of(addresses).tolist()
    fragments = {number: reader.fragment(number) for number in set(numbers)}
    owners = [fragments[number] for number in numbers]
    columns = {}
    for number, output in enumerate(outputs):
        if any(is_described(node) for node in output.below) and output.leaf is not None:
            values = table.column(number).to_pylist()
            columns[number] = [
                _with_files(value, output.leaf, owner) for value, owner in zip(values, owners, strict=True) if owner
            ]
    return columns


def _with_files(value: Any, field: Field, fragment: FragmentReader) -> Any:
    if is_described(field):
        found = blob_range(fragment, field.id, value)
        return None if found is None else BlobFile(found)
    if not isinstance(value, Mapping):
        return value
    children = {child.name: child for child in field.children}
    return {name: _with_files(item, children[name], fragment) for name, item in value.items()}
