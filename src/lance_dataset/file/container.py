"""The container of 2.x data files: footer, tables, descriptor, column metadata. Knows no page contents."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import pyarrow as pa
from google.protobuf import any_pb2
from google.protobuf.message import DecodeError, Message

from lance_dataset._proto import encodings_pb2, file2_pb2, file_pb2
from lance_dataset.errors import CorruptFileError, UnsupportedError
from lance_dataset.io.base import InputFile, OutputFile
from lance_dataset.schema import Schema

__all__ = ["ALIGNMENT", "MAX_ROWS", "ColumnMetadata", "ContainerWriter", "FileMetadata", "PageMetadata", "pack_any"]

MAGIC = b"LANC"
ALIGNMENT = 64
_PADDING = b"\x48" * ALIGNMENT
_FOOTER = struct.Struct("<QQQIIHH4s")
_TABLE_ENTRY = 16

#: Footer version pair -> file version. 2.0 is written as (0, 3).
_VERSIONS = {(0, 3): "2.0", (2, 0): "2.0", (2, 1): "2.1", (2, 2): "2.2", (2, 3): "2.3"}
_FOOTER_VERSION = {"2.0": (0, 3), "2.1": (2, 1), "2.2": (2, 2), "2.3": (2, 3)}
#: A row address has 32 bits for the row within its fragment.
MAX_ROWS = 2**32
_LEGACY_VERSIONS = {(0, 0), (0, 1), (0, 2)}

_COLUMN_ENCODING_URL = "lance.encodings.ColumnEncoding"

_M = TypeVar("_M", bound=Message)


@dataclass(frozen=True)
class PageMetadata:
    """One page of a column.

    Attributes
    ----------
    buffers
        (position, size) in bytes of each page buffer.
    length
        Logical length: values of the column in 2.0, top-level rows from 2.1 on.
    type_name
        Full protobuf name of the page encoding message.
    encoding
        The serialized page encoding.
    """

    buffers: tuple[tuple[int, int], ...]
    length: int
    type_name: str
    encoding: bytes


@dataclass(frozen=True)
class ColumnMetadata:
    """One column: its pages in row order and its column-level buffers.

    Attributes
    ----------
    index
        Position of the column in the file.
    kind
        Which column encoding it has: ``values`` or ``blob``.
    buffers
        (position, size) in bytes of each column buffer.
    pages
        The pages.
    """

    index: int
    kind: str
    buffers: tuple[tuple[int, int], ...]
    pages: tuple[PageMetadata, ...]


class FileMetadata:
    """Everything the end of a file says about it. Columns are decoded when they are asked for.

    Parameters
    ----------
    source
        The file.

    Raises
    ------
    CorruptFileError
        The bytes contradict the format.
    UnsupportedError
        A file version this package does not know.
    """

    def __init__(self, source: InputFile) -> None:
        self.source = source
        if source.size < _FOOTER.size:
            raise CorruptFileError(f"{source.path}: {source.size} bytes are too few for a Lance file; is it truncated?")
        footer = source.read(source.size - _FOOTER.size, _FOOTER.size)
        column_start, cmo, gbo, globals_, columns, major, minor, magic = _FOOTER.unpack(footer)
        if magic != MAGIC:
            raise CorruptFileError(
                f"{source.path}: the last four bytes are {bytes(magic)!r}, not {MAGIC!r}: no Lance file, or truncated"
            )
        self.version = _version_name(source.path, major, minor)
        self._check_tables(column_start, cmo, gbo, globals_, columns)
        self.footer_version: tuple[int, int] = (major, minor)
        self.num_columns: int = columns
        self._column_ranges = self._read_table(cmo, columns)
        self.global_buffers = self._read_table(gbo, globals_)
        self._check_ranges("column metadata", self._column_ranges, column_start, cmo)
        self._check_ranges("global buffer", self.global_buffers, 0, source.size)
        if sum(size for _, size in self._column_ranges) > cmo - column_start:
            raise CorruptFileError(f"{source.path}: the metadata of its columns overlaps")
        self.column_metadata_start: int = column_start
        self.column_metadata_size: int = gbo - column_start
        self._columns: dict[int, ColumnMetadata] = {}

    def _check_tables(self, column_start: int, cmo: int, gbo: int, globals_: int, columns: int) -> None:
        end = self.source.size - _FOOTER.size
        if gbo > end or globals_ * _TABLE_ENTRY > end - gbo:
            raise CorruptFileError(f"{self.source.path}: the global buffer table lies outside the file")
        if cmo > gbo or columns * _TABLE_ENTRY > gbo - cmo:
            raise CorruptFileError(f"{self.source.path}: the column table of {columns} columns lies outside the file")
        if column_start > cmo:
            raise CorruptFileError(f"{self.source.path}: column metadata starts behind the column table")
        if globals_ == 0:
            raise CorruptFileError(f"{self.source.path}: the file has no descriptor, so it has no schema")

    def _read_table(self, position: int, entries: int) -> tuple[tuple[int, int], ...]:
        flat = struct.unpack(f"<{2 * entries}Q", self.source.read(position, entries * _TABLE_ENTRY))
        return tuple(zip(flat[::2], flat[1::2], strict=True))

    def _check_ranges(self, what: str, ranges: Sequence[tuple[int, int]], low: int, high: int) -> None:
        for index, (position, size) in enumerate(ranges):
            if position < low or position + size > high:
                raise CorruptFileError(
                    f"{self.source.path}: {what} {index} claims bytes {position} to {position + size}, "
                    f"outside {low} to {high}"
                )

    @cached_property
    def _descriptor(self) -> file_pb2.FileDescriptor:
        descriptor = _parse(file_pb2.FileDescriptor, self.read_global_buffer(0), f"{self.source.path}: file descriptor")
        if not descriptor.HasField("schema"):
            raise CorruptFileError(f"{self.source.path}: the file descriptor has no schema")
        if descriptor.length > MAX_ROWS:
            raise CorruptFileError(f"{self.source.path}: the file descriptor claims {descriptor.length} rows")
        return descriptor

    @property
    def num_rows(self) -> int:
        """Rows the descriptor claims."""
        return self._descriptor.length

    @cached_property
    def schema(self) -> Schema:
        """The file's own schema."""
        stored = self._descriptor.schema
        return Schema.from_proto(stored.fields, stored.metadata, where=self.source.path)

    def read_global_buffer(self, index: int) -> bytes:
        """Content of a global buffer; 0 is the file descriptor."""
        return self.source.read(*self.global_buffers[index]).to_pybytes()

    def column(self, index: int) -> ColumnMetadata:
        """Metadata of one column, decoded on first use."""
        known = self._columns.get(index)
        if known is None:
            if not 0 <= index < self.num_columns:
                raise CorruptFileError(
                    f"{self.source.path}: the schema needs column {index}, the file has {self.num_columns} columns"
                )
            known = self._columns[index] = self._decode_column(index)
        return known

    def _decode_column(self, index: int) -> ColumnMetadata:
        where = f"{self.source.path}, column {index}"
        stored = _parse(file2_pb2.ColumnMetadata, self.source.read(*self._column_ranges[index]), where)
        type_name, encoding = _unpack_any(stored.encoding, where)
        if type_name != _COLUMN_ENCODING_URL:
            raise CorruptFileError(f"{where}: column encoding of unknown type {type_name!r}")
        column = _parse(encodings_pb2.ColumnEncoding, encoding, where)
        while column.WhichOneof("column_encoding") == "zone_index":  # statistics, which nothing here needs
            column = column.zone_index.inner
        pages = []
        for number, page in enumerate(stored.pages):
            at = f"{where}, page {number}"
            page_type, page_encoding = _unpack_any(page.encoding, at)
            buffers = self._buffer_ranges(page.buffer_offsets, page.buffer_sizes, at)
            pages.append(PageMetadata(buffers, page.length, page_type, page_encoding))
        # Many pages over the same bytes would decode to many times the size of the file.
        if sum(size for page in pages for _, size in page.buffers) > self.source.size:
            raise CorruptFileError(f"{where}: its pages claim more bytes than the {self.source.size} of the file")
        return ColumnMetadata(
            index=index,
            kind=column.WhichOneof("column_encoding") or "values",
            buffers=self._buffer_ranges(stored.buffer_offsets, stored.buffer_sizes, where),
            pages=tuple(pages),
        )

    def _buffer_ranges(self, offsets: Sequence[int], sizes: Sequence[int], where: str) -> tuple[tuple[int, int], ...]:
        if len(offsets) != len(sizes):
            raise CorruptFileError(f"{where}: {len(offsets)} buffer positions but {len(sizes)} sizes")
        size = self.source.size
        for position, length in zip(offsets, sizes, strict=True):
            if position + length > size:
                raise CorruptFileError(
                    f"{where}: a buffer claims bytes {position} to {position + length} of a file of {size} bytes"
                )
        return tuple(zip(offsets, sizes, strict=True))


def _version_name(path: str, major: int, minor: int) -> str:
    version = _VERSIONS.get((major, minor))
    if version is not None:
        return version
    if (major, minor) in _LEGACY_VERSIONS:
        raise UnsupportedError(f"{path}: file version 0.1 (legacy) has another container")
    raise UnsupportedError(f"{path}: unknown Lance file version {major}.{minor}; a newer release may read it")


def _parse(message_type: type[_M], data: bytes | pa.Buffer, where: str) -> _M:
    try:
        return message_type.FromString(bytes(data))
    except DecodeError as error:
        raise CorruptFileError(f"{where}: broken metadata ({error})") from error


def _unpack_any(encoding: file2_pb2.Encoding, where: str) -> tuple[str, bytes]:
    """Type name and value of the `Any` inside an encoding."""
    location = encoding.WhichOneof("location")
    if location == "indirect":
        raise UnsupportedError(f"{where}: deferred encodings are not supported; no release writes them")
    if location != "direct":
        raise CorruptFileError(f"{where}: the encoding is missing")
    wrapped = _parse(any_pb2.Any, encoding.direct.encoding, where)
    if "/" not in wrapped.type_url:
        raise CorruptFileError(f"{where}: encoding type {wrapped.type_url!r} is no type URL")
    return wrapped.type_url.rsplit("/", 1)[1], wrapped.value


def pack_any(message: Message) -> file2_pb2.Encoding:
    """Wrap an encoding message the way the format stores it."""
    wrapped = any_pb2.Any(type_url=f"/{message.DESCRIPTOR.full_name}", value=message.SerializeToString())
    return file2_pb2.Encoding(direct=file2_pb2.DirectEncoding(encoding=wrapped.SerializeToString()))


class ContainerWriter:
    """Writes padded buffers one after another, then the metadata that finds them.

    Parameters
    ----------
    output
        The new file.
    version
        File version, decides the footer.
    """

    def __init__(self, output: OutputFile, version: str) -> None:
        self._output = output
        self._version = version
        self._global_buffers: list[tuple[int, int]] = []

    def write_buffer(self, parts: Sequence[bytes | memoryview | pa.Buffer]) -> tuple[int, int]:
        """Append one buffer given in parts, padded to 64 bytes; returns its (position, size)."""
        position = self._output.tell()
        size = sum(memoryview(part).nbytes for part in parts)
        padding = -size % ALIGNMENT
        self._output.write_many([*parts, _PADDING[:padding]] if padding else parts)
        return position, size

    def add_global_buffer(self, data: bytes) -> int:
        """Append a global buffer and return its index, from 1 on."""
        self._global_buffers.append(self.write_buffer([data]))
        return len(self._global_buffers)

    def finish(self, schema: Schema, num_rows: int, columns: Sequence[file2_pb2.ColumnMetadata]) -> int:
        """Write descriptor, column metadata, tables and footer; returns the size of the file in bytes.

        The output itself stays open.
        """
        descriptor = file_pb2.FileDescriptor(length=num_rows)
        descriptor.schema.fields.extend(schema.to_proto())
        for key, value in schema.metadata.items():
            descriptor.schema.metadata[key] = value
        globals_ = [self._append(descriptor.SerializeToString()), *self._global_buffers]
        column_start = self._output.tell()
        ranges = [self._append(column.SerializeToString()) for column in columns]
        cmo = self._output.tell()
        self._append(b"".join(struct.pack("<QQ", *entry) for entry in ranges))
        gbo = self._output.tell()
        self._append(b"".join(struct.pack("<QQ", *entry) for entry in globals_))
        major, minor = _FOOTER_VERSION[self._version]
        self._append(_FOOTER.pack(column_start, cmo, gbo, len(globals_), len(columns), major, minor, MAGIC))
        return self._output.tell()

    def _append(self, data: bytes) -> tuple[int, int]:
        position = self._output.tell()
        self._output.write(data)
        return position, len(data)
