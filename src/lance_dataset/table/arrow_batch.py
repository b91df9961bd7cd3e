"""Files of Arrow with one record batch, which is weighed before it is decompressed."""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_dataset.errors import CorruptFileError
from lance_dataset.limits import check_memory
from lancecodec import arrow_file

__all__ = ["read_column"]

#: Size of the footer, and the name of the format.
_TAIL_BYTES = 10
#: Place of the list of record batches in the footer, and size of its entries.
_BLOCKS, _BLOCK_BYTES = 3, 24
#: Place of the header in the table of a message, and its value for a record batch.
_HEADER_KIND, _HEADER, _RECORD_BATCH = 1, 2, 3
#: Places in the table of a record batch.
_LENGTH, _BUFFERS, _COMPRESSION = 0, 2, 3
_BUFFER_BYTES = 16
#: Mark of a message. The first one, with the schema, begins at a multiple of 8 or of 64 bytes.
_MARK, _LATEST = b"\xff\xff\xff\xff", 72
#: Codecs as `arrow_file.only_batch` numbers them.
_PLAIN, _ZSTD = -1, 1
#: Bytes by which a buffer may be larger than its values.
_PADDING = 64


def read_column(data: bytes, schema: pa.Schema, where: str) -> npt.NDArray[Any]:
    """Read the values of the only column of a file.

    Parameters
    ----------
    data, where
        The file, and its name for error messages.
    schema
        Schema that it must have: one column of numbers without nulls.

    Returns
    -------
    ndarray
        One-dimensional, of the type of the column.

    Raises
    ------
    CorruptFileError
        The bytes are not such a file.
    MemoryLimitError
        The values need too much memory.
    """
    values = _usual_column(data, schema, where)
    if values is not None:
        return values
    column = _read_batch(data, schema, where).column(0)
    if column.null_count:
        raise CorruptFileError(f"{where}: its column must not contain nulls")
    return column.to_numpy(zero_copy_only=False)


def _usual_column(data: bytes, schema: pa.Schema, where: str) -> npt.NDArray[Any] | None:
    """Return the values of a file in the form in which it is usually written, None for any other."""
    found = arrow_file.only_batch(data)
    if found is None:
        return None
    stop, rows, codec, nulls, places = found
    first = data.find(_MARK, 8, _LATEST)
    if nulls != [0] or codec not in (_PLAIN, _ZSTD) or first < 0 or not _has_schema(data[first:stop], schema):
        return None
    start, length = places[1]
    dtype = schema.field(0).type.to_pandas_dtype()
    needed = rows * np.dtype(dtype).itemsize
    content: memoryview | pa.Buffer = memoryview(data)[start : start + length]
    if codec == _ZSTD and length:
        if length < 8:
            return None
        (size,) = struct.unpack_from("<q", content)
        content = content[8:]
        if size != -1:
            if not needed <= size <= needed + _PADDING:
                return None
            check_memory(size, len(data), f"{where}: its batch of {rows:,} rows")
            try:
                content = pa.Codec("zstd").decompress(content, size)
            except (pa.ArrowException, OSError, ValueError):
                return None
    return None if len(content) < needed else np.frombuffer(content, dtype, rows).copy()


@lru_cache(maxsize=64)
def _has_schema(message: bytes, schema: pa.Schema) -> bool:
    """Return True if an encapsulated message is a schema."""
    try:
        return bool(pa.ipc.read_schema(pa.py_buffer(message)).equals(schema))
    except (pa.ArrowException, EOFError, OSError, ValueError):
        return False


def _read_batch(data: bytes, schema: pa.Schema, where: str) -> pa.RecordBatch:
    """Read the only batch of a file.

    Parameters
    ----------
    data
        The file.
    schema
        Schema that it must have: columns of fixed width, without dictionaries.
    where
        Name of the file, for error messages.

    Raises
    ------
    CorruptFileError
        The bytes are not such a file.
    MemoryLimitError
        The batch needs too much memory.
    """
    try:
        reader = pa.ipc.open_file(pa.py_buffer(data))
        if reader.schema != schema or reader.num_record_batches != 1:
            names = ", ".join(f"{field.name}: {field.type}{'' if field.nullable else ' not null'}" for field in schema)
            raise CorruptFileError(
                f"{where}: should have one batch of {names!r}, but has {reader.num_record_batches} of "
                f"{reader.schema.to_string()!r}"
            )
        message = pa.ipc.read_message(pa.py_buffer(_only_block(data)))
    except CorruptFileError:
        raise
    except (pa.ArrowException, EOFError, OSError, ValueError, MemoryError, struct.error) as error:
        raise CorruptFileError(f"{where}: invalid Arrow file: {error}") from error
    rows, needed = _weight(message, where)
    check_memory(needed, len(data), f"{where}: its batch of {rows:,} rows")
    width = sum(field.type.bit_width for field in schema) // 8 + len(schema)  # and a bit of validity for each value
    if needed > rows * width + 64 * (2 * len(schema) + 1):
        raise CorruptFileError(f"{where}: the buffers of its batch have {needed} bytes for {rows} rows")
    try:
        batch = pa.ipc.read_record_batch(message, schema)
        batch.validate(full=True)
    except (pa.ArrowException, EOFError, OSError, ValueError, MemoryError) as error:
        raise CorruptFileError(f"{where}: invalid Arrow file: {error}") from error
    return batch


def _only_block(data: bytes) -> memoryview:
    """Return the bytes of the first record batch of a file: its message and its buffers."""
    whole = memoryview(data)
    (length,) = struct.unpack_from("<i", data, len(data) - _TAIL_BYTES)
    start = len(data) - _TAIL_BYTES - length
    if length < 0 or start < 0:
        raise ValueError(f"a footer of {length} bytes")
    footer = _Table.root(whole[start : len(data) - _TAIL_BYTES])
    offset, metadata, body = struct.unpack_from("<qi4xq", footer.vector(_BLOCKS, _BLOCK_BYTES))
    if offset < 0 or metadata < 0 or body < 0 or offset + metadata + body > start:
        raise ValueError(f"a batch of {metadata} and {body} bytes at {offset} is outside of the file")
    return whole[offset : offset + metadata + body]


def _weight(message: pa.ipc.Message, where: str) -> tuple[int, int]:
    """Return the number of rows of a record batch, and the bytes of its buffers when they are decompressed."""
    data, body = memoryview(message.metadata).cast("B"), memoryview(message.body).cast("B")
    try:
        table = _Table.root(data)
        if table.number(_HEADER_KIND, "<B") != _RECORD_BATCH:
            raise ValueError("a message has another kind than it says")
        batch = table.table(_HEADER)
        rows = batch.number(_LENGTH, "<q")
        is_compressed = batch.has(_COMPRESSION)
        ranges = batch.vector(_BUFFERS, _BUFFER_BYTES)
        sizes = [
            _size(body, struct.unpack_from("<qq", ranges, at), is_compressed)
            for at in range(0, len(ranges), _BUFFER_BYTES)
        ]
    except (struct.error, IndexError, ValueError) as error:
        raise CorruptFileError(f"{where}: invalid Arrow file: {error}") from error
    if rows < 0:
        raise CorruptFileError(f"{where}: invalid Arrow file: its batch has {rows} rows")
    return rows, sum(sizes)


def _size(body: memoryview, place: tuple[int, int], is_compressed: bool) -> int:
    """Return the bytes of a buffer. A compressed one begins with its size, which is -1 if it was left as it is."""
    offset, length = place
    if offset < 0 or length < 0 or offset + length > len(body):
        raise ValueError(f"a buffer of {length} bytes at {offset} is outside of a body of {len(body)} bytes")
    if not is_compressed or length == 0:
        return length
    (size,) = struct.unpack_from("<q", body[offset : offset + length])
    if size < -1:
        raise ValueError(f"a compressed buffer has {size} bytes")
    return length if size == -1 else size


class _Table:
    """Table of a flatbuffer.

    Parameters
    ----------
    data
        The flatbuffer.
    at
        Position of the table.
    """

    def __init__(self, data: memoryview, at: int) -> None:
        self._data = data
        self._at = at
        (back,) = struct.unpack_from("<i", data, at)
        self._fields = at - back
        if not 0 <= self._fields <= len(data):
            raise ValueError("a table has no list of its fields")
        (self._size,) = struct.unpack_from("<H", data, self._fields)

    @classmethod
    def root(cls, data: memoryview) -> _Table:
        """Return the outermost table."""
        return cls(data, struct.unpack_from("<I", data)[0])

    def _place(self, field: int) -> int:
        slot = 4 + 2 * field
        if slot + 2 > self._size:
            return 0
        (offset,) = struct.unpack_from("<H", self._data, self._fields + slot)
        return self._at + offset if offset else 0

    def has(self, field: int) -> bool:
        """Return True if the table has a field."""
        return self._place(field) != 0

    def number(self, field: int, kind: str) -> int:
        """Return a number, 0 if it is missing."""
        place = self._place(field)
        return struct.unpack_from(kind, self._data, place)[0] if place else 0

    def table(self, field: int) -> _Table:
        """Return an inner table."""
        return _Table(self._data, self._target(field))

    def vector(self, field: int, width: int) -> memoryview:
        """Return the bytes of a list of structs of `width` bytes; empty if it is missing."""
        if not self.has(field):
            return self._data[:0]
        place = self._target(field)
        (count,) = struct.unpack_from("<I", self._data, place)
        found = self._data[place + 4 : place + 4 + count * width]
        if len(found) != count * width:
            raise ValueError(f"a list of {count} entries ends after its message")
        return found

    def _target(self, field: int) -> int:
        place = self._place(field)
        if not place:
            raise ValueError(f"a table has no field {field}")
        return place + int(struct.unpack_from("<I", self._data, place)[0])
