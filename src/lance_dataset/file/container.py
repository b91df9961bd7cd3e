"""Container of 2.x data files: footer, tables, descriptor, column metadata. Page contents are opaque to it."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple, TypeVar
from zlib import crc32

import pyarrow as pa
from google.protobuf import any_pb2
from google.protobuf.message import DecodeError, Message

from lance_dataset._proto import encodings_pb2, file2_pb2, file_pb2
from lance_dataset.errors import CorruptFileError, UnsupportedError
from lance_dataset.file.stored_bounds import MAGIC as BOUNDS_MAGIC
from lance_dataset.file.stored_bounds import StoredBounds, parse_bounds
from lance_dataset.io.base import InputFile, OutputFile
from lance_dataset.io.messages import message_memory, parse_message
from lance_dataset.limits import BASE_MEMORY, check_memory
from lance_dataset.properties import cached_property
from lance_dataset.types.schema import Schema
from lancecodec import metadata

__all__ = [
    "ALIGNMENT",
    "FIELD_MEMORY",
    "MAX_ROWS",
    "ColumnMetadata",
    "ContainerWriter",
    "FileMetadata",
    "PageMetadata",
    "pack_any",
    "page_description",
    "stored_encoding",
]

MAGIC = b"LANC"
ALIGNMENT = 64
_PADDING = b"\x48" * ALIGNMENT
_FOOTER = struct.Struct("<QQQIIHH4s")
_TABLE_ENTRY = struct.Struct("<QQ")
_ANY_SIZE = 2**64 - 1
#: Maximum size in bytes of messages that are cached: those of pages and columns, and schemas.
_SHORT = 4 << 10
_LONG = 256 << 10
#: Maximum size in bytes of the descriptor and all column metadata that are fetched when one of them is needed.
_MAX_END = 4 << 20
#: Distance from the end of the file at which tables and metadata usually begin.
_LIKELY_END = 16 << 10
#: Maximum size in bytes of a buffer with bounds of values.
_MAX_BOUNDS = 64 << 20
#: Distance from the descriptor up to which bounds are fetched with it, as another request would take longer.
_NEAR_BOUNDS = 16 << 10
#: Columns with at most this many pages are decoded again instead of being cached.
_FEW_PAGES = 4
#: Bytes of memory of a field of a schema, of a message with the metadata of pages, and of a position or size of a
#: buffer, in addition to the message itself.
FIELD_MEMORY = 400
_PAGE_MEMORY = 100
_BUFFER_MEMORY = 64
#: Most bytes of memory for a byte of the metadata of a column.
_MOST_EXPANSION = 256
#: Readers of this version announce ranges, but not the rows of takes.
_UNANNOUNCED = "2.0"

#: Footer version pair -> file version. 2.0 is written as (0, 3).
_VERSIONS = {(0, 3): "2.0", (2, 0): "2.0", (2, 1): "2.1", (2, 2): "2.2", (2, 3): "2.3"}
_FOOTER_VERSION = {"2.0": (0, 3), "2.1": (2, 1), "2.2": (2, 2), "2.3": (2, 3)}
#: A row address has 32 bits for the row within its fragment.
MAX_ROWS = 2**32
_LEGACY_VERSIONS = {(0, 0), (0, 1), (0, 2)}

_COLUMN_ENCODING_URL = "lance.encodings.ColumnEncoding"

_V = TypeVar("_V")


class PageMetadata(NamedTuple):
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


@dataclass(frozen=True, slots=True)
class ColumnMetadata:
    """Metadata of one column: its pages in row order and its column-level buffers.

    Attributes
    ----------
    index
        Position of the column in the file.
    kind
        Column encoding: ``values`` or ``blob``.
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
    """Metadata at the end of a file. Columns are decoded on request.

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
        size = source.size
        if size < _FOOTER.size:
            raise CorruptFileError(f"{source.path}: {size} bytes are too few for a Lance file; is it truncated?")
        if source.mapped is not None:
            source.scatter(True)
            source.will_need([(max(size - _LIKELY_END, 0), min(size, _LIKELY_END))])
        footer = source.read(size - _FOOTER.size, _FOOTER.size)
        column_start, cmo, gbo, globals_, columns, major, minor, magic = _FOOTER.unpack(footer)
        if magic != MAGIC:
            raise CorruptFileError(
                f"{source.path}: its last 4 bytes are {bytes(magic)!r}, not {MAGIC!r}: not a Lance file, or truncated"
            )
        self.version = _version_name(source.path, major, minor)
        self._check_tables(column_start, cmo, gbo, globals_, columns)
        self.footer_version: tuple[int, int] = (major, minor)
        self.num_columns: int = columns
        self.column_table_start: int = cmo
        self._column_table = source.read(cmo, columns * _TABLE_ENTRY.size)
        self._global_table = source.read(gbo, globals_ * _TABLE_ENTRY.size)
        if not metadata.entries_fit(self._column_table, column_start, cmo, cmo - column_start):
            self._check_ranges("column metadata", _entries(self._column_table), column_start, cmo)
            raise CorruptFileError(f"{source.path}: the metadata of its columns overlaps")
        if not metadata.entries_fit(self._global_table, 0, size, _ANY_SIZE):
            self._check_ranges("global buffer", self.global_buffers, 0, size)
        self._end_start, self._end = self._fetch_end(column_start)
        self.column_metadata_start: int = column_start
        self.column_metadata_size: int = gbo - column_start
        self._num_rows: int | None = None
        # Not all columns are decoded: with thousands of files, that would be many objects for the garbage collector.
        self._columns: dict[int, ColumnMetadata] = {}
        # Memory and size of the columns with long metadata; the memory is None until it matters.
        self._long: dict[int, tuple[int | None, int]] = {}
        self._last: ColumnMetadata | None = None

    def expect_many_rows(self) -> None:
        """Have the system load the surroundings of rows that are taken, unless readers announce rows themselves."""
        if self.version == _UNANNOUNCED and self.source.mapped is not None:
            self.source.scatter(False)

    def _fetch_end(self, column_start: int) -> tuple[int, pa.Buffer | None]:
        """Return position and bytes of the descriptor and all that follows, fetched together if reads are requests."""
        if self.source.mapped is not None:
            return 0, None
        start = min(column_start, _TABLE_ENTRY.unpack_from(self._global_table)[0])
        last, _ = _TABLE_ENTRY.unpack_from(self._global_table, len(self._global_table) - _TABLE_ENTRY.size)
        if last < start <= last + _NEAR_BOUNDS:  # bounds of values are in front of the descriptor
            start = last
        length = self.source.size - start
        return (start, self.source.read(start, length)) if length <= _MAX_END else (0, None)

    def _read(self, position: int, size: int) -> pa.Buffer:
        """Read bytes of the file."""
        if self._end is not None and position >= self._end_start:
            return self._end.slice(position - self._end_start, size)
        return self.source.read(position, size)

    def _check_tables(self, column_start: int, cmo: int, gbo: int, globals_: int, columns: int) -> None:
        end = self.source.size - _FOOTER.size
        if gbo > end or globals_ * _TABLE_ENTRY.size > end - gbo:
            raise CorruptFileError(f"{self.source.path}: the global buffer table lies outside the file")
        if cmo > gbo or columns * _TABLE_ENTRY.size > gbo - cmo:
            raise CorruptFileError(f"{self.source.path}: the column table of {columns} columns lies outside the file")
        if column_start > cmo:
            raise CorruptFileError(f"{self.source.path}: column metadata starts after the column table")
        if globals_ == 0:
            raise CorruptFileError(f"{self.source.path}: the file has no descriptor, so it has no schema")

    def _check_ranges(self, what: str, ranges: Sequence[tuple[int, int]], low: int, high: int) -> None:
        for index, (position, size) in enumerate(ranges):
            if position < low or position + size > high:
                raise CorruptFileError(
                    f"{self.source.path}: {what} {index} claims bytes {position} to {position + size}, "
                    f"outside {low} to {high}"
                )

    @property
    def global_buffers(self) -> tuple[tuple[int, int], ...]:
        """(position, size) in bytes of each global buffer."""
        return _entries(self._global_table)

    @property
    def num_rows(self) -> int:
        """Number of rows in the descriptor."""
        rows = self._num_rows
        if rows is None:
            rows = self._num_rows = self._read_num_rows()
        return rows

    def _read_num_rows(self) -> int:
        scanned = metadata.scan_descriptor(self.read_global_buffer(0))
        if scanned is None or scanned[1] > MAX_ROWS or not _is_schema(scanned[0], self.source.path):
            return self._descriptor.length
        return scanned[1]

    @property
    def _descriptor(self) -> file_pb2.FileDescriptor:
        where = f"{self.source.path}: file descriptor"
        data = self.read_global_buffer(0)
        descriptor = parse_message(file_pb2.FileDescriptor, data, where, per_message=FIELD_MEMORY)
        if not descriptor.HasField("schema"):
            raise CorruptFileError(f"{self.source.path}: the file descriptor has no schema")
        if descriptor.length > MAX_ROWS:
            raise CorruptFileError(f"{self.source.path}: the file descriptor claims {descriptor.length} rows")
        return descriptor

    @cached_property
    def schema(self) -> Schema:
        """Schema of the file."""
        stored = self._descriptor.schema
        return Schema.from_proto(stored.fields, stored.metadata, where=self.source.path)

    @property
    def column_table(self) -> pa.Buffer:
        """Position and size in bytes of the metadata of each column, 8 bytes each."""
        return self._column_table

    def read_global_buffer(self, index: int) -> bytes:
        """Return the content of a global buffer; 0 is the file descriptor."""
        return self._read(*_TABLE_ENTRY.unpack_from(self._global_table, index * _TABLE_ENTRY.size)).to_pybytes()

    @cached_property
    def _bounds(self) -> dict[int, tuple[int, Callable[[], StoredBounds]]]:
        """Bounds of the values of columns with the checksum of their metadata; empty if the file has none to use."""
        return self._find_bounds()[1]

    def _find_bounds(self) -> tuple[str | None, dict[int, tuple[int, Callable[[], StoredBounds]]]]:
        count = len(self._global_table) // _TABLE_ENTRY.size
        if count < 2:
            return None, {}
        position, size = _TABLE_ENTRY.unpack_from(self._global_table, (count - 1) * _TABLE_ENTRY.size)
        if not len(BOUNDS_MAGIC) <= size <= _MAX_BOUNDS:
            return None, {}
        if self._end is None and self.source.mapped is None and self._read(position, 8).to_pybytes() != BOUNDS_MAGIC:
            return None, {}
        data = self.read_global_buffer(count - 1)
        return parse_bounds(data) if data.startswith(BOUNDS_MAGIC) else (None, {})

    def bounds(self, index: int) -> StoredBounds | None:
        """Return the bounds of the values of a column; None without them, or if its pages were moved."""
        crc, decode = self._bounds.get(index, (0, None))
        if decode is None or not 0 <= index < self.num_columns:
            return None
        stored = self._read(*_TABLE_ENTRY.unpack_from(self._column_table, index * _TABLE_ENTRY.size))
        return decode() if crc32(stored) == crc else None

    def check_bounds(self) -> None:
        """Raise CorruptFileError if there is a buffer with bounds that cannot be used."""
        problem, found = self._find_bounds()
        if problem is None:
            wrong = [index for index in found if self.bounds(index) is None]
            problem = f"belongs to other pages of column {wrong[0]}" if wrong else None
        if problem is not None:
            raise CorruptFileError(f"{self.source.path}: the buffer with bounds of values {problem}; scans ignore it")

    def stored_column(self, index: int) -> file2_pb2.ColumnMetadata:
        """Return the stored metadata of one column, after validation."""
        self.column(index)
        data = self._read(*_TABLE_ENTRY.unpack_from(self._column_table, index * _TABLE_ENTRY.size))
        return parse_message(file2_pb2.ColumnMetadata, data.to_pybytes(), f"{self.source.path}, column {index}")

    def column(self, index: int) -> ColumnMetadata:
        """Return the metadata of one column, decoded on request; kept if it was the last, or if decoding is slow."""
        last = self._last
        if last is not None and last.index == index:
            return last
        known = self._columns.get(index)
        if known is None:
            if not 0 <= index < self.num_columns:
                raise CorruptFileError(
                    f"{self.source.path}: the schema needs column {index}, but the file has {self.num_columns} columns"
                )
            known = self._decode_column(index)
            if len(known.pages) > _FEW_PAGES or (self._end is None and self.source.mapped is None):
                self._columns[index] = known
        self._last = known
        return known

    def _decode_column(self, index: int) -> ColumnMetadata:
        data = self._read(*_TABLE_ENTRY.unpack_from(self._column_table, index * _TABLE_ENTRY.size))
        if data.size > _SHORT:
            self._check_memory(index, data.size)
        scanned = metadata.scan_column(data, self.source.size)
        if scanned is None:
            return self._parse_column(index, data)
        encoding, buffers, stored = scanned
        kind, before, known = _known_kind(encoding), None, None
        pages = []
        for page_buffers, length, wrapped in stored:
            if wrapped is not before:  # most pages share the object with the page in front of them
                before, known = wrapped, _known_any(wrapped)
            if known is None:
                return self._parse_column(index, data)
            pages.append(PageMetadata(page_buffers, length, *known))
        return self._parse_column(index, data) if kind is None else ColumnMetadata(index, kind, buffers, tuple(pages))

    def _check_memory(self, index: int, size: int) -> None:
        """Raise MemoryLimitError if the columns that were decoded need too much memory with this one."""
        self._long[index] = None, size
        if _MOST_EXPANSION * sum(size for _, size in self._long.values()) <= BASE_MEMORY:
            return
        for number, (known, stored) in self._long.items():
            if known is None:
                weigh = self._memory_of if number == index else self._memory_if_read
                self._long[number] = weigh(number), stored
        total, read = (
            sum(needed or 0 for needed, _ in self._long.values()),
            sum(size for _, size in self._long.values()),
        )
        check_memory(total, read, f"{self.source.path}, column {index}: the metadata of its pages")

    def _memory_if_read(self, index: int) -> int:
        """Return the memory of the metadata of a column, 0 if it is damaged: then it was not decoded."""
        try:
            return self._memory_of(index)
        except CorruptFileError:
            return 0

    def _memory_of(self, index: int) -> int:
        """Return about how many bytes of memory the decoded metadata of a column take."""
        data = self._read(*_TABLE_ENTRY.unpack_from(self._column_table, index * _TABLE_ENTRY.size)).to_pybytes()
        where, kind = f"{self.source.path}, column {index}", file2_pb2.ColumnMetadata
        return message_memory(kind, data, where, per_message=_PAGE_MEMORY, per_number=_BUFFER_MEMORY, exact=True)

    def _parse_column(self, index: int, data: pa.Buffer) -> ColumnMetadata:
        """Parse a column of any serialization; this method decides what is corrupt."""
        where = f"{self.source.path}, column {index}"
        stored = parse_message(file2_pb2.ColumnMetadata, data.to_pybytes(), where)
        type_name, encoding = _unpack_any(stored.encoding, where)
        if type_name != _COLUMN_ENCODING_URL:
            raise CorruptFileError(f"{where}: column encoding of unknown type {type_name!r}")
        kind = _column_kind(parse_message(encodings_pb2.ColumnEncoding, encoding, where))
        pages = []
        for number, page in enumerate(stored.pages):
            at = f"{where}, page {number}"
            page_type, page_encoding = _unpack_any(page.encoding, at)
            buffers = self._buffer_ranges(page.buffer_offsets, page.buffer_sizes, at)
            pages.append(PageMetadata(buffers, page.length, page_type, page_encoding))
        # Many pages that share the same bytes would decode to many times the size of the file.
        if sum(size for page in pages for _, size in page.buffers) > self.source.size:
            raise CorruptFileError(f"{where}: its pages claim more bytes than the {self.source.size} of the file")
        buffers = self._buffer_ranges(stored.buffer_offsets, stored.buffer_sizes, where)
        return ColumnMetadata(index, kind, buffers, tuple(pages))

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


def _entries(table: pa.Buffer) -> tuple[tuple[int, int], ...]:
    return tuple(_TABLE_ENTRY.iter_unpack(memoryview(table)))


# -- caches: the same few messages occur in thousands of files ---------------------------------------------------


def _remembered(function: Callable[[bytes], _V]) -> Callable[[bytes], _V]:
    """Wrap the function so that its results for short messages are cached."""
    kept = lru_cache(maxsize=1024)(function)
    return lambda message: kept(message) if len(message) <= _SHORT else function(message)


@_remembered
def _known_any(wrapped: bytes) -> tuple[str, bytes] | None:
    """Return the type name and value of an `Any`, or None for a broken one."""
    try:
        message = any_pb2.Any.FromString(wrapped)
    except DecodeError:
        return None
    _, slash, type_name = message.type_url.rpartition("/")
    return (type_name, message.value) if slash else None


def page_description(column: bytes, page: bytes) -> tuple[str, bytes] | None:
    """Return the type name and value of the `Any` of a page's encoding.

    Parameters
    ----------
    column, page
        Serialized `Any` messages: the encodings of a column and of one of its pages.

    Returns
    -------
    tuple or None
        None if the column has anything but plain pages of values, or a message is broken.
    """
    return _known_any(page) if _known_kind(column) == "values" else None


@_remembered
def _known_kind(wrapped: bytes) -> str | None:
    """Return the kind of the column encoding in an `Any`, or None for a broken one."""
    known = _known_any(wrapped)
    if known is None or known[0] != _COLUMN_ENCODING_URL:
        return None
    try:
        return _column_kind(encodings_pb2.ColumnEncoding.FromString(known[1]))
    except DecodeError:
        return None


def _column_kind(column: encodings_pb2.ColumnEncoding) -> str:
    while column.WhichOneof("column_encoding") == "zone_index":  # statistics, which are not needed here
        column = column.zone_index.inner
    return column.WhichOneof("column_encoding") or "values"


@lru_cache(maxsize=32)
def _is_known_schema(schema: bytes) -> bool:
    try:
        file_pb2.Schema.FromString(schema)
    except DecodeError:
        return False
    return True


def _is_schema(schema: bytes, path: str) -> bool:
    """Return True if the bytes are a schema message, raise MemoryLimitError if it is too large to find out."""
    if len(schema) <= _LONG:
        return _is_known_schema(schema)
    check_memory(message_memory(file_pb2.Schema, schema, path), len(schema), f"{path}: its schema")
    return _is_known_schema.__wrapped__(schema)


def _version_name(path: str, major: int, minor: int) -> str:
    version = _VERSIONS.get((major, minor))
    if version is not None:
        return version
    if (major, minor) in _LEGACY_VERSIONS:
        raise UnsupportedError(f"{path}: file version 0.1 (legacy) has a different container")
    raise UnsupportedError(f"{path}: unknown Lance file version {major}.{minor}; a newer release may read it")


def _unpack_any(encoding: file2_pb2.Encoding, where: str) -> tuple[str, bytes]:
    """Return the type name and value of the `Any` inside an encoding."""
    location = encoding.WhichOneof("location")
    if location == "indirect":
        raise UnsupportedError(f"{where}: deferred encodings are not supported; no release writes them")
    if location != "direct":
        raise CorruptFileError(f"{where}: the encoding is missing")
    wrapped = parse_message(any_pb2.Any, encoding.direct.encoding, where)
    if "/" not in wrapped.type_url:
        raise CorruptFileError(f"{where}: encoding type {wrapped.type_url!r} is not a type URL")
    return wrapped.type_url.rsplit("/", 1)[1], wrapped.value


def pack_any(message: Message) -> file2_pb2.Encoding:
    """Wrap an encoding message in the form that the format stores."""
    wrapped = any_pb2.Any(type_url=f"/{message.DESCRIPTOR.full_name}", value=message.SerializeToString())
    return file2_pb2.Encoding(direct=file2_pb2.DirectEncoding(encoding=wrapped.SerializeToString()))


def stored_encoding(message: Message) -> bytes:
    """Return the stored form of an encoding message, as bytes."""
    return pack_any(message).SerializeToString()


class ContainerWriter:
    """Writer of padded buffers, followed by the metadata that locates them.

    Parameters
    ----------
    output
        The new file.
    version
        File version, which determines the footer.
    """

    def __init__(self, output: OutputFile, version: str) -> None:
        self._output = output
        self._version = version
        self._global_buffers: list[tuple[int, int]] = []

    def write_buffer(self, parts: Sequence[bytes | memoryview | pa.Buffer]) -> tuple[int, int]:
        """Append one buffer, given in parts and padded to 64 bytes; return its (position, size)."""
        position = self._output.tell()
        size = sum(len(part) if type(part) is bytes else memoryview(part).nbytes for part in parts)
        padding = -size % ALIGNMENT
        self._output.write_many([*parts, _PADDING[:padding]] if padding else parts)
        return position, size

    def write_aligned(self, parts: Sequence[bytes | memoryview | pa.Buffer], position: int) -> int:
        """Append bytes from another position, with the same alignment; return their new position."""
        padding = (position - self._output.tell()) % ALIGNMENT
        if padding:
            self._output.write(_PADDING[:padding])
        start = self._output.tell()
        self._output.write_many(parts)
        return start

    def add_global_buffer(self, data: bytes) -> int:
        """Append a global buffer and return its index, which starts at 1."""
        self._global_buffers.append(self.write_buffer([data]))
        return len(self._global_buffers)

    def finish(self, schema: Schema, num_rows: int, columns: Sequence[bytes]) -> int:
        """Write descriptor, column metadata (as serialized messages), tables and footer; return the size of the file.

        The output itself stays open.
        """
        descriptor = file_pb2.FileDescriptor(length=num_rows)
        descriptor.schema.fields.extend(schema.to_proto())
        for key, value in schema.metadata.items():
            descriptor.schema.metadata[key] = value
        globals_ = [self._append(descriptor.SerializeToString()), *self._global_buffers]
        column_start = self._output.tell()
        starts = accumulate(map(len, columns), initial=column_start)  # the last one is the end
        self._append(b"".join(columns))
        cmo = self._output.tell()
        self._append(b"".join(map(_TABLE_ENTRY.pack, starts, map(len, columns))))
        gbo = self._output.tell()
        self._append(b"".join(_TABLE_ENTRY.pack(*entry) for entry in globals_))
        major, minor = _FOOTER_VERSION[self._version]
        self._append(_FOOTER.pack(column_start, cmo, gbo, len(globals_), len(columns), major, minor, MAGIC))
        return self._output.tell()

    def _append(self, data: bytes) -> tuple[int, int]:
        position = self._output.tell()
        self._output.write(data)
        return position, len(data)
