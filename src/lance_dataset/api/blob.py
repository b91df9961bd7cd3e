"""Values of blob columns as binary files."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import InvalidInputError
from lance_dataset.file.blob_fields import is_described
from lance_dataset.limits import UNLIMITED, ResultLimit
from lance_dataset.read.fragment_reader import FragmentReader
from lance_dataset.read.projection import OutputColumn
from lance_dataset.read.table_reader import TableReader
from lance_dataset.table.row_addresses import fragments_of
from lance_dataset.types.schema import Field

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from lance_dataset.read.blobs import BlobRange

__all__ = ["DEFAULT_BLOB_BUFFER_SIZE", "BlobFile", "blob_file_columns"]

#: Number of bytes that a `BlobFile` reads ahead if the store is not memory mapped.
DEFAULT_BLOB_BUFFER_SIZE = 512 << 10


class BlobFile(io.BufferedIOBase):
    """One value of a blob column as a binary file. `LanceDataset.take_blobs` returns them.

    Parameters
    ----------
    inner
        Byte range of the value in its data file.
    buffer_size
        Minimum number of bytes to read from a store that is not memory mapped. Surplus bytes are kept for the next
        reads.
    limit
        Limit of the memory of each read.
    """

    def __init__(
        self, inner: BlobRange, buffer_size: int = DEFAULT_BLOB_BUFFER_SIZE, *, limit: ResultLimit = UNLIMITED
    ) -> None:
        if buffer_size < 0:
            raise InvalidInputError(f"buffer_size must not be negative, got {buffer_size}")
        self.inner = inner
        self._buffer_size = buffer_size
        self._limit = limit
        self._position = 0
        self._held = b""
        self._held_start = 0

    def __repr__(self) -> str:
        return f"<BlobFile size={self.inner.size}>"

    def _open(self, action: str) -> None:
        if self.closed:
            raise InvalidInputError(f"{action} of a closed blob file")

    def size(self) -> int:
        """Return the length of the value in bytes."""
        return self.inner.size

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position of the next read."""
        self._open("tell")
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to `offset` from the start, the current position (`whence` 1) or the end (2); return the new position.

        Raises
        ------
        InvalidInputError
            The target is before the start, `whence` is not 0, 1 or 2, or the file is closed.
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

    def read(self, size: int | None = -1) -> bytes:
        """Read up to `size` bytes, or all remaining bytes if `size` is negative or None.

        Raises
        ------
        MemoryLimitError
            These are more bytes than the `max_result_bytes` of the dataset.
        """
        self._open("read")
        left = max(self.inner.size - self._position, 0)
        count = left if size is None or size < 0 else min(size, left)
        self._limit.check(count, "a read of a blob")
        data = self._fetch(self._position, count)
        self._position += count
        return data

    def read1(self, size: int = -1) -> bytes:
        """Read like `read`."""
        return self.read(size)

    def readall(self) -> bytes:
        """Read all remaining bytes."""
        return self.read()

    def readinto(self, b: Buffer) -> int:
        """Fill a writable buffer with the next bytes; return their number."""
        view = memoryview(b).cast("B")
        if view.readonly:
            raise TypeError(f"readinto needs a writable buffer, not {type(b).__name__}")
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)

    def readinto1(self, buffer: Buffer, /) -> int:
        """Read like `readinto`."""
        return self.readinto(buffer)

    def read_range(self, offset: int, length: int) -> bytes:
        """Read bytes at an offset without moving the position.

        Raises
        ------
        InvalidInputError
            The range is not inside the value.
        RowIndexError
            `offset` or `length` is negative.
        MemoryLimitError
            As for `read`.
        """
        return self.read_ranges([(offset, length)])[0]

    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Read several (offset, length) ranges together without moving the position."""
        self._open("read")
        inside = [self.inner.part(offset, length) for offset, length in ranges]
        self._limit.check(sum(part.size for part in inside), "a read of ranges of a blob")
        data = self.inner.source.read_ranges([(part.position, part.size) for part in inside if part.size])
        found = iter(data)
        return [next(found).to_pybytes() if part.size else b"" for part in inside]

    def _fetch(self, start: int, count: int) -> bytes:
        """Read bytes inside the value, from the read-ahead buffer if it holds them."""
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


def blob_file_columns(
    reader: TableReader, outputs: Sequence[OutputColumn], table: pa.Table, addresses: NDArray[np.uint64]
) -> dict[int, list[Any]]:
    """Convert columns of blob descriptions, also those inside structs and lists, to columns of files.

    Parameters
    ----------
    outputs
        Output columns of `table`.
    addresses
        Row address of each row.

    Returns
    -------
    dict
        Values by column position. The value of a row is a `BlobFile`, a dictionary that contains some, or None.
    """
    numbers = fragments_of(addresses).tolist()
    fragments = {number: reader.fragment(number) for number in set(numbers)}
    owners = [fragments[number] for number in numbers]
    columns = {}
    for number, output in enumerate(outputs):
        if any(is_described(node) for node in output.below) and output.leaf is not None:
            values = table.column(number).to_pylist()
            columns[number] = [
                _with_files(value, output.leaf, owner, reader.limit)
                for value, owner in zip(values, owners, strict=True)
                if owner
            ]
    return columns


def _with_files(value: Any, field: Field, fragment: FragmentReader, limit: ResultLimit) -> Any:
    from lance_dataset.read.blobs import blob_range

    if is_described(field):
        found = blob_range(fragment, field.id, value)
        return None if found is None else BlobFile(found, limit=limit)
    if isinstance(value, list) and field.logical_type != "map" and field.children:
        return [_with_files(item, field.children[0], fragment, limit) for item in value]
    if not isinstance(value, Mapping):
        return value
    children = {child.name: child for child in field.children}
    return {name: _with_files(item, children[name], fragment, limit) for name, item in value.items()}
