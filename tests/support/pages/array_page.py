"""Files of version 2.0 assembled page by page: any array encoding tree over any buffers.

Encodings are built with `flat`, `no_nulls`, `binary` and so on. A buffer is given by its index in the page, or as
``("column", index)`` or ``("file", index)``. `write_columns` writes a file, `write_page` one of a single column::

    write_page(path, pa.field("a", pa.int32()), no_nulls(flat(32)), [values], 3)
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa

from lance_dataset._proto import encodings_pb2 as pb
from lance_dataset._proto import file2_pb2
from lance_dataset.file.container import ContainerWriter, pack_any
from lance_dataset.types.schema import Schema

Encoding: TypeAlias = pb.ArrayEncoding
Ref: TypeAlias = "int | tuple[str, int]"

VALUES = pb.ColumnEncoding(values={})
BLOB = pb.ColumnEncoding(blob=pb.Blob(inner=VALUES))


@dataclass(frozen=True)
class TreePage:
    """Page: its encoding, its buffers and its length."""

    encoding: Encoding
    buffers: Sequence[bytes]
    length: int


@dataclass(frozen=True)
class TreeColumn:
    """Column: its pages, its own buffers and its column encoding."""

    pages: Sequence[TreePage]
    buffers: Sequence[bytes] = ()
    encoding: pb.ColumnEncoding = field(default_factory=lambda: VALUES)


class _Bytes(io.BytesIO):
    def write_many(self, parts: Sequence[bytes | memoryview | pa.Buffer]) -> None:
        for part in parts:
            self.write(part)


def write_columns(
    path: str | Path,
    schema: pa.Schema,
    columns: Sequence[TreeColumn],
    num_rows: int,
    globals_: Sequence[bytes] = (),
    outside: Sequence[bytes] = (),
) -> Path:
    """Write a file; `outside` are bytes outside of pages (blobs), which come first, each at a multiple of 64."""
    out = _Bytes()
    writer = ContainerWriter(out, "2.0")  # type: ignore[arg-type]
    for content in outside:
        writer.write_buffer([content])
    for content in globals_:
        writer.add_global_buffer(content)
    stored = []
    for column in columns:
        message = file2_pb2.ColumnMetadata(encoding=pack_any(column.encoding))
        for page in column.pages:
            ranges = [writer.write_buffer([content]) for content in page.buffers]
            added = message.pages.add(length=page.length, encoding=pack_any(page.encoding))
            added.buffer_offsets.extend(position for position, _ in ranges)
            added.buffer_sizes.extend(size for _, size in ranges)
        ranges = [writer.write_buffer([content]) for content in column.buffers]
        message.buffer_offsets.extend(position for position, _ in ranges)
        message.buffer_sizes.extend(size for _, size in ranges)
        stored.append(message.SerializeToString())
    writer.finish(Schema.from_arrow(schema), num_rows, stored)
    Path(path).write_bytes(out.getvalue())
    return Path(path)


def write_page(path: str | Path, column: pa.Field, encoding: Encoding, buffers: Sequence[bytes], length: int) -> Path:
    """Write a file of one column of one page."""
    return write_columns(path, pa.schema([column]), [TreeColumn([TreePage(encoding, buffers, length)])], length)


# -- encodings -------------------------------------------------------------------------------------------------------


def _buffer(ref: Ref) -> pb.Buffer:
    kind, index = ("page", ref) if isinstance(ref, int) else ref
    return pb.Buffer(buffer_index=index, buffer_type=pb.Buffer.BufferType.Value(kind))


def flat(bits: int, buffer: Ref = 0, scheme: str | None = None) -> Encoding:
    message = pb.Flat(bits_per_value=bits, buffer=_buffer(buffer))
    if scheme is not None:
        message.compression.scheme = scheme
    return Encoding(flat=message)


def no_nulls(values: Encoding) -> Encoding:
    return Encoding(nullable=pb.Nullable(no_nulls=pb.Nullable.NoNull(values=values)))


def some_nulls(validity: Encoding, values: Encoding) -> Encoding:
    return Encoding(nullable=pb.Nullable(some_nulls=pb.Nullable.SomeNull(validity=validity, values=values)))


def all_nulls() -> Encoding:
    return Encoding(nullable=pb.Nullable(all_nulls=pb.Nullable.AllNull()))


def fixed_size_list(dimension: int, items: Encoding) -> Encoding:
    return Encoding(fixed_size_list=pb.FixedSizeList(dimension=dimension, items=items))


def list_of(offsets: Encoding, adjustment: int, num_items: int) -> Encoding:
    return Encoding(list=pb.List(offsets=offsets, null_offset_adjustment=adjustment, num_items=num_items))


def struct_header() -> Encoding:
    return Encoding(struct=pb.SimpleStruct())


def binary(indices: Encoding, content: Encoding, adjustment: int) -> Encoding:
    return Encoding(binary=pb.Binary(indices=indices, bytes=content, null_adjustment=adjustment))


def dictionary(indices: Encoding, items: Encoding, size: int) -> Encoding:
    return Encoding(dictionary=pb.Dictionary(indices=indices, items=items, num_dictionary_items=size))


def packed_struct(inner: Sequence[Encoding], buffer: Ref = 0) -> Encoding:
    return Encoding(packed_struct=pb.PackedStruct(inner=inner, buffer=_buffer(buffer)))


def fixed_size_binary(content: Encoding, width: int) -> Encoding:
    return Encoding(fixed_size_binary=pb.FixedSizeBinary(bytes=content, byte_width=width))


def fsst(content: Encoding, table: bytes) -> Encoding:
    return Encoding(fsst=pb.Fsst(binary=content, symbol_table=table))


def bitpacked(width: int, bits: int, buffer: Ref = 0, signed: bool = False) -> Encoding:
    return Encoding(
        bitpacked=pb.Bitpacked(
            compressed_bits_per_value=width, uncompressed_bits_per_value=bits, buffer=_buffer(buffer), signed=signed
        )
    )


def bitpacked_blocks(width: int, bits: int, buffer: Ref = 0) -> Encoding:
    return Encoding(
        bitpacked_for_non_neg=pb.BitpackedForNonNeg(
            compressed_bits_per_value=width, uncompressed_bits_per_value=bits, buffer=_buffer(buffer)
        )
    )
