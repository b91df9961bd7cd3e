"""Records of the metadata of a Lance file."""

from __future__ import annotations

import re
from dataclasses import field

import pyarrow as pa
from google.protobuf.message import DecodeError, Message

from lance_dataset._proto import encodings21_pb2, encodings23_pb2, encodings_pb2
from lance_dataset.file.container import FileMetadata
from lance_dataset.late_dataclass import dataclass

__all__ = [
    "ColumnStatistics",
    "LanceBufferDescriptor",
    "LanceColumnMetadata",
    "LanceFileMetadata",
    "LanceFileStatistics",
    "LancePageMetadata",
    "describe",
    "statistics",
]


@dataclass(frozen=True)
class LanceBufferDescriptor:
    """Position and size of a buffer in the file, in bytes."""

    position: int
    size: int


@dataclass(frozen=True)
class LancePageMetadata:
    """One page of a column.

    Attributes
    ----------
    buffers
        Locations of its buffers.
    encoding
        Human-readable description of the encoding.
    """

    buffers: list[LanceBufferDescriptor]
    encoding: str


@dataclass(frozen=True)
class LanceColumnMetadata:
    """One column.

    Attributes
    ----------
    column_buffers
        Buffers of the whole column.
    pages
        Its pages in row order.
    """

    column_buffers: list[LanceBufferDescriptor]
    pages: list[LancePageMetadata]


@dataclass(frozen=True)
class LanceFileMetadata:
    """Metadata at the end of a file.

    Attributes
    ----------
    schema
        Arrow schema, with registered extension types resolved.
    num_rows
        Number of rows.
    major_version, minor_version
        Version numbers in the footer.
    num_data_bytes, num_column_metadata_bytes, num_global_buffer_bytes
        Sizes in bytes of page data, of column metadata with their table, and of global buffers.
    global_buffers
        Locations of the global buffers; the first is the descriptor.
    columns
        Columns of the file. In 2.0, structs and lists own a column before those of their children.
    """

    schema: pa.Schema = field(repr=False)
    num_rows: int
    major_version: int
    minor_version: int
    num_data_bytes: int
    num_column_metadata_bytes: int
    num_global_buffer_bytes: int
    global_buffers: list[LanceBufferDescriptor]
    columns: list[LanceColumnMetadata]


@dataclass(frozen=True)
class ColumnStatistics:
    """Number of pages of a column, and their total size in bytes."""

    num_pages: int
    size_bytes: int


@dataclass(frozen=True)
class LanceFileStatistics:
    """Statistics of every column of the file."""

    columns: list[ColumnStatistics]


def describe(metadata: FileMetadata) -> LanceFileMetadata:
    """Return records of all metadata of a file.

    Raises
    ------
    CorruptFileError
        The metadata of a column contradicts the format.
    """
    global_bytes = sum(size for _, size in metadata.global_buffers)
    return LanceFileMetadata(
        schema=metadata.schema.file_arrow,
        num_rows=metadata.num_rows,
        major_version=metadata.footer_version[0],
        minor_version=metadata.footer_version[1],
        num_data_bytes=max(metadata.column_metadata_start - global_bytes, 0),
        num_column_metadata_bytes=metadata.column_metadata_size,
        num_global_buffer_bytes=global_bytes,
        global_buffers=_buffers(metadata.global_buffers),
        columns=[_describe_column(metadata, index) for index in range(metadata.num_columns)],
    )


def _buffers(ranges: tuple[tuple[int, int], ...]) -> list[LanceBufferDescriptor]:
    return [LanceBufferDescriptor(position, size) for position, size in ranges]


def _describe_column(metadata: FileMetadata, index: int) -> LanceColumnMetadata:
    column = metadata.column(index)
    pages = [LancePageMetadata(_buffers(page.buffers), _text(page.type_name, page.encoding)) for page in column.pages]
    return LanceColumnMetadata(_buffers(column.buffers), pages)


#: Page encodings by protobuf name: of 2.0, of 2.1 and 2.2, and of 2.3.
_MESSAGES: dict[str, type[Message]] = {
    message.DESCRIPTOR.full_name: message
    for message in (encodings_pb2.ArrayEncoding, encodings21_pb2.PageLayout, encodings23_pb2.PlanarLayout)
}
_SYMBOL_TABLE = re.compile(r'symbol_table: ".*"')


def _text(type_name: str, encoding: bytes) -> str:
    message_type = _MESSAGES.get(type_name)
    if message_type is None:
        return f"{type_name} ({len(encoding)} bytes)"
    try:
        text = str(message_type.FromString(encoding))
    except DecodeError:
        return f"{type_name} (broken)"
    short = _SYMBOL_TABLE.sub("symbol_table: ...", text)  # 2,312 bytes that mean nothing to people
    return f"{type_name.rpartition('.')[2]} {{\n{short}}}"


def statistics(metadata: FileMetadata) -> LanceFileStatistics:
    """Return the number of pages and bytes of each column; raises the errors of `describe`."""
    columns = [metadata.column(index) for index in range(metadata.num_columns)]
    return LanceFileStatistics(
        [
            ColumnStatistics(len(column.pages), sum(size for page in column.pages for _, size in page.buffers))
            for column in columns
        ]
    )
