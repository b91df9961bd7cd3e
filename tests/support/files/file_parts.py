"""Parts of a 2.x file, taken apart and reassembled with other metadata, for crafted hostile files."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from google.protobuf import any_pb2
from google.protobuf.message import Message

from lance_dataset._proto import encodings_pb2, file2_pb2, file_pb2
from lance_dataset.errors import LanceError

FOOTER = struct.Struct("<QQQIIHH4s")


@dataclass
class FileParts:
    """File in parts; change them, then `assemble`.

    `data` is everything before the descriptor. `cmo` and `footer` replace the computed ones.
    """

    data: bytes
    descriptor: file_pb2.FileDescriptor
    columns: list[file2_pb2.ColumnMetadata]
    version: tuple[int, int]
    footer: dict[str, int] = field(default_factory=dict)
    column_ranges: dict[int, tuple[int, int]] = field(default_factory=dict)
    global_ranges: dict[int, tuple[int, int]] = field(default_factory=dict)
    magic: bytes = b"LANC"

    def encoding(self, column: int, page: int = 0) -> encodings_pb2.ArrayEncoding:
        """Return a copy of the encoding of a page."""
        wrapped = any_pb2.Any.FromString(self.columns[column].pages[page].encoding.direct.encoding)
        return encodings_pb2.ArrayEncoding.FromString(wrapped.value)

    def set_encoding(self, column: int, encoding: Message, page: int = 0, name: str | None = None) -> None:
        """Replace the encoding of a page."""
        wrapped = any_pb2.Any(type_url=f"/{name or encoding.DESCRIPTOR.full_name}", value=encoding.SerializeToString())
        self.columns[column].pages[page].encoding.direct.encoding = wrapped.SerializeToString()

    def edit(self, column: int, change: Callable[[encodings_pb2.ArrayEncoding], None], page: int = 0) -> None:
        """Change the encoding of a page in place."""
        encoding = self.encoding(column, page)
        change(encoding)
        self.set_encoding(column, encoding, page)

    def add_buffer(self, content: bytes) -> tuple[int, int]:
        """Append to the data; return (position, size)."""
        position = len(self.data)
        self.data += content + b"\0" * (-len(content) % 64)
        return position, len(content)

    def replace_buffer(self, column: int, index: int, content: bytes, page: int = 0) -> None:
        """Replace a buffer of a page."""
        stored = self.columns[column].pages[page]
        stored.buffer_offsets[index], stored.buffer_sizes[index] = self.add_buffer(content)

    def assemble(self) -> bytes:
        """Return the bytes of the file."""
        out = bytearray(self.data)
        descriptor = self.descriptor.SerializeToString()
        globals_ = [(len(out), len(descriptor))]
        out += descriptor
        start, ranges = len(out), []
        for column in self.columns:
            stored = column.SerializeToString()
            ranges.append((len(out), len(stored)))
            out += stored
        for index, entry in self.column_ranges.items():
            ranges[index] = entry
        for index, entry in self.global_ranges.items():
            globals_[index] = entry
        cmo = len(out)
        for entry in ranges:
            out += struct.pack("<QQ", *entry)
        gbo = len(out)
        for entry in globals_:
            out += struct.pack("<QQ", *entry)
        values = {
            "column_start": start,
            "cmo": cmo,
            "gbo": gbo,
            "num_globals": len(globals_),
            "num_columns": len(ranges),
            "major": self.version[0],
            "minor": self.version[1],
            **self.footer,
        }
        out += FOOTER.pack(*values.values(), self.magic)
        return bytes(out)


def take_apart(content: bytes) -> FileParts:
    """Return the parts of a valid file."""
    _, cmo, gbo, _, num_columns, major, minor, _ = FOOTER.unpack(content[-FOOTER.size :])
    position, size = struct.unpack_from("<QQ", content, gbo)
    descriptor = file_pb2.FileDescriptor.FromString(content[position : position + size])
    columns = []
    for index in range(num_columns):
        start, length = struct.unpack_from("<QQ", content, cmo + 16 * index)
        columns.append(file2_pb2.ColumnMetadata.FromString(content[start : start + length]))
    return FileParts(content[:position], descriptor, columns, (major, minor))


def take_apart_file(path: str | Path) -> FileParts:
    """Return the parts of a valid file on disk."""
    return take_apart(Path(path).read_bytes())


def problem(action: Callable[[], object]) -> str | None:
    """Return the message if the action raises an error of this package, None if it succeeds."""
    try:
        action()
    except LanceError as error:
        return str(error)
    return None
