"""Blob columns of version 2 whose values are written before their data file, perhaps by other processes.

A process writes values into files beside a data file to come, and keeps descriptors of them. The process that writes
the data file gives it an array of descriptors, its *prepared form*, instead of values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from lance_dataset.errors import InvalidInputError, OutOfRangeError
from lance_dataset.file.options import BLOB_V2
from lance_dataset.io.base import ObjectStore, OutputFile, is_plain_path
from lance_dataset.late_dataclass import dataclass
from lance_dataset.types.schema import EXTENSION_NAME

__all__ = [
    "DATA_SUFFIX",
    "BlobDescriptor",
    "BlobDescriptorArrayBuilder",
    "DedicatedBlobWriter",
    "PackedBlobWriter",
    "blob_name",
    "checked_blob_id",
    "prepared_field",
]

#: End of the names of data files. Without it, they name the folders of the files beside them.
DATA_SUFFIX = ".lance"
_SUFFIX = ".blob"
_STORAGE = pa.struct(
    [
        pa.field("kind", pa.uint8()),
        pa.field("data", pa.large_binary()),
        pa.field("uri", pa.string()),
        pa.field("blob_id", pa.uint32()),
        pa.field("blob_size", pa.uint64()),
        pa.field("position", pa.uint64()),
    ]
)
_INLINE, _PACKED, _DEDICATED, _, _MANAGED, _MANAGED_IN_BASE = range(6)
_MAX_ID = 2**32 - 1
_MAX_OFFSET = 2**64 - 1


def blob_name(number: int) -> str:
    """Return the name of a file beside a data file: the bits of its number, the lowest first."""
    return f"{number:032b}"[::-1] + _SUFFIX


def prepared_field(name: str) -> pa.Field:
    """Return the field of an array of descriptors for a blob column."""
    return pa.field(name, _STORAGE, metadata={EXTENSION_NAME: BLOB_V2.decode()})


@dataclass(frozen=True)
class BlobDescriptor:
    """Place of one value in a file beside a data file. `PackedBlobWriter` and `DedicatedBlobWriter` make them.

    Attributes
    ----------
    kind
        1 for a part of a file, 2 for a whole file.
    blob_id
        Number of the file.
    offset, size
        Range of the value in bytes.
    """

    kind: int
    blob_id: int
    offset: int
    size: int

    def __repr__(self) -> str:
        if self.kind == _DEDICATED:
            return f"Dedicated {{ blob_id: {self.blob_id}, size: {self.size} }}"
        return f"Packed {{ blob_id: {self.blob_id}, offset: {self.offset}, size: {self.size} }}"


class BlobDescriptorArrayBuilder:
    """Builder of the array of descriptors of a blob column, row by row.

    Parameters
    ----------
    column
        Name of the column.
    """

    def __init__(self, column: str) -> None:
        if not isinstance(column, str):
            raise TypeError(f"argument 'column': {type(column).__name__!r} object is not an instance of 'str'")
        self._column = column
        self._rows: list[dict[str, object] | None] | None = []

    @property
    def field(self) -> pa.Field:
        """Field of the array, for the schema of the data file."""
        return prepared_field(self._column)

    def _add(self, row: dict[str, object] | None) -> None:
        self._open().append(row)

    def _open(self) -> list[dict[str, object] | None]:
        if self._rows is None:
            raise InvalidInputError("BlobDescriptorArrayBuilder is already finished")
        return self._rows

    def append(self, value: BlobDescriptor) -> None:
        """Add a value that a writer returned."""
        if not isinstance(value, BlobDescriptor):
            raise TypeError(f"{type(value).__name__!r} is not an instance of 'BlobDescriptor'")
        place = None if value.kind == _DEDICATED else value.offset
        self._add({"kind": value.kind, "blob_id": value.blob_id, "blob_size": value.size, "position": place})

    def extend(self, values: Iterable[BlobDescriptor]) -> None:
        """Add several values."""
        for value in values:
            self.append(value)

    def append_inline(self, data: bytes | bytearray | memoryview) -> None:
        """Add a value that is stored in the data file."""
        self._add({"kind": _INLINE, "data": bytes(_as_bytes(data))})

    def append_dedicated(self, blob_id: int, size: int) -> None:
        """Add a value with a file of its own.

        Raises
        ------
        InvalidInputError
            The number of the file is 0.
        """
        self._add({"kind": _DEDICATED, "blob_id": checked_blob_id(blob_id), "blob_size": _offset("size", size)})

    def extend_packed(self, blob_id: int, offsets: Sequence[int], sizes: Sequence[int]) -> None:
        """Add values that are parts of one file.

        Raises
        ------
        InvalidInputError
            There are more offsets than sizes or the other way around, or the number of the file is 0.
        """
        if len(offsets) != len(sizes):
            raise InvalidInputError(f"offsets and sizes must have the same length, got {len(offsets)} and {len(sizes)}")
        number = checked_blob_id(blob_id)
        for offset, size in zip(offsets, sizes, strict=True):
            place = {"blob_size": _offset("size", size), "position": _offset("offset", offset)}
            self._add({"kind": _PACKED, "blob_id": number, **place})

    def append_managed(self, uri: str, offset: int, size: int, *, base_id: int | None = None) -> None:
        """Add a value in an object of the table that several data files may share.

        Parameters
        ----------
        uri
            Path below the root of the table, or below a base path.
        offset, size
            Range in bytes.
        base_id
            Id of the base path; None for the table itself.

        Raises
        ------
        InvalidInputError
            The path is absolute, empty, or has empty, ``.`` or ``..`` segments.
        """
        if not isinstance(uri, str):
            raise TypeError(f"argument 'uri': {type(uri).__name__!r} object is not an instance of 'str'")
        if not is_plain_path(uri) or "://" in uri:
            raise InvalidInputError(f"Managed blob_uri must be a non-empty canonical relative object path, got {uri!r}")
        kind = _MANAGED if base_id is None else _MANAGED_IN_BASE
        base = None if base_id is None else _number("base_id", base_id, _MAX_ID)
        place = {"blob_size": _offset("size", size), "position": _offset("offset", offset)}
        self._add({"kind": kind, "uri": uri, "blob_id": base, **place})

    def append_null(self) -> None:
        """Add a null."""
        self._add(None)

    def finish(self) -> pa.StructArray:
        """Return the array. The builder cannot be used afterwards."""
        rows, self._rows = self._open(), None
        return pa.array(rows, _STORAGE)


class _SideWriter:
    """Writer of a file beside a data file."""

    def __init__(self, store: ObjectStore, path: str, blob_id: int) -> None:
        self.blob_id = blob_id
        self.path = path
        self._output: OutputFile | None = store.open_output(path)
        self._size = 0

    def _open(self) -> OutputFile:
        if self._output is None:
            raise InvalidInputError(f"{type(self).__name__} is already finished")
        return self._output

    def _write(self, data: object) -> int:
        content = _as_bytes(data)
        self._open().write(content)
        self._size += len(content)
        return len(content)

    def _close(self) -> None:
        self._open().close()
        self._output = None


class DedicatedBlobWriter(_SideWriter):
    """Writer of one value into a file of its own; `LanceFileSession.open_dedicated_blob_writer` makes it.

    Attributes
    ----------
    blob_id
        Number of the file.
    path
        Path of the file in its store.
    """

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Append bytes to the value."""
        self._write(data)

    def finish(self) -> BlobDescriptor:
        """Close the file, which is durable on return, and return the descriptor of the value."""
        self._close()
        return BlobDescriptor(_DEDICATED, self.blob_id, 0, self._size)


class PackedBlobWriter(_SideWriter):
    """Writer of several values into one file; `LanceFileSession.open_packed_blob_writer` makes it.

    Attributes
    ----------
    blob_id
        Number of the file.
    path
        Path of the file in its store.
    """

    def __init__(self, store: ObjectStore, path: str, blob_id: int) -> None:
        super().__init__(store, path, blob_id)
        self._values: list[BlobDescriptor | None] = []
        self._field: pa.Field | None = None

    @property
    def field(self) -> pa.Field:
        """Field of the array that `finish_array` returned."""
        if self._field is None:
            raise InvalidInputError("PackedBlobWriter field is available after finish_array")
        return self._field

    def write_blob(self, data: bytes | bytearray | memoryview) -> None:
        """Add a value."""
        start = self._size
        size = self._write(data)
        self._values.append(BlobDescriptor(_PACKED, self.blob_id, start, size))

    def write_blobs(self, payloads: pa.Array | pa.ChunkedArray) -> None:
        """Add the values of an array of binaries; nulls stay nulls.

        Raises
        ------
        InvalidInputError
            It is not an array of binaries.
        """
        if not isinstance(payloads, pa.Array | pa.ChunkedArray):
            raise InvalidInputError(
                "payloads must be a pyarrow BinaryArray, LargeBinaryArray, or ChunkedArray, got "
                f"{type(payloads).__name__}"
            )
        if not pa.types.is_binary(payloads.type) and not pa.types.is_large_binary(payloads.type):
            raise InvalidInputError(f"Packed blob payload array must have a Binary Arrow type, got {payloads.type}")
        self._open()
        for payload in payloads:
            if payload.is_valid:
                self.write_blob(memoryview(payload.as_buffer()))
            else:
                self._values.append(None)

    def finish(self) -> list[BlobDescriptor]:
        """Close the file, which is durable on return, and return the descriptors of the values that are not null."""
        self._close()
        return [value for value in self._values if value is not None]

    def finish_array(self, field_name: str) -> pa.StructArray:
        """Close the file, and return the array of descriptors for a column, nulls included."""
        self._close()
        builder = BlobDescriptorArrayBuilder(field_name)
        for value in self._values:
            if value is None:
                builder.append_null()
            else:
                builder.append(value)
        self._field = builder.field
        return builder.finish()


def _as_bytes(data: object) -> memoryview | bytes:
    if not isinstance(data, bytes | bytearray | memoryview):
        raise TypeError(f"argument 'data': a blob is made of bytes, not {type(data).__name__}")
    return data if isinstance(data, bytes) else memoryview(data).cast("B")


def _number(name: str, value: object, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"argument {name!r}: {type(value).__name__!r} object cannot be interpreted as an integer")
    if not 0 <= value <= most:
        raise OutOfRangeError(f"{name} must be from 0 to {most}, not {value}")
    return value


def _offset(name: str, value: object) -> int:
    return _number(name, value, _MAX_OFFSET)


def checked_blob_id(blob_id: object) -> int:
    """Return the number of a file beside a data file; raise unless it is from 1 to 2**32 - 1."""
    number = _number("blob_id", blob_id, _MAX_ID)
    if number == 0:
        raise InvalidInputError("Blob id 0 is reserved")
    return number
