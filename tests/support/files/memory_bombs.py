"""Small files whose content expands to many times their bytes: forged ones, and honest ones that must be read."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import lz4.block
import numpy as np
import pyarrow as pa
import zstandard
from google.protobuf import any_pb2

from lance_dataset._proto import encodings21_pb2 as pb
from lance_dataset._proto import encodings_pb2, file2_pb2
from lance_dataset.file.standalone import LanceFileWriter
from support.files.file_parts import FileParts, take_apart_file

LAYOUT = "lance.encodings21.PageLayout"
MB = 1 << 20

NUMBERS = pa.table({"x": pa.array(range(9), pa.int64())})
TEXTS = pa.table({"x": [f"{i} abc" for i in range(9)]})
#: A page of nulls without rows.
EMPTY_PAGE = b"\x12\x03\x2a\x01\x03"


class Serialized:
    """A message of bytes that no message class would write."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def SerializeToString(self) -> bytes:
        return self._data


def parts_of(folder: Path, table: pa.Table, version: str = "2.2") -> FileParts:
    path = folder / "good.lance"
    with LanceFileWriter(str(path), table.schema, version=version) as file:
        file.write_batch(table.combine_chunks().to_batches()[0])
    return take_apart_file(path)


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def field(number: int, data: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(data)) + data


def set_page(parts: FileParts, layout: Any, rows: int, buffers: Sequence[bytes]) -> bytes:
    """Give the only page another layout, length and content; return the file."""
    parts.set_encoding(0, layout, name=LAYOUT)
    page = parts.columns[0].pages[0]
    page.length = parts.descriptor.length = rows
    ranges = [parts.add_buffer(content) for content in buffers]
    del page.buffer_offsets[:], page.buffer_sizes[:]
    page.buffer_offsets.extend(position for position, _ in ranges)
    page.buffer_sizes.extend(size for _, size in ranges)
    return parts.assemble()


def zstd(data: bytes) -> bytes:
    return len(data).to_bytes(8, "little") + zstandard.ZstdCompressor().compress(data)


def lz4_unit(data: bytes) -> bytes:
    return lz4.block.compress(data, store_size=True)


def flat(bits: int) -> pb.CompressiveEncoding:
    return pb.CompressiveEncoding(flat=pb.Flat(bits_per_value=bits))


def runs(bits: int) -> pb.CompressiveEncoding:
    return pb.CompressiveEncoding(rle=pb.Rle(values=flat(bits), run_lengths=flat(8)))


VARIABLE = pb.CompressiveEncoding(variable=pb.Variable(offsets=flat(32)))


def wrapped(values: pb.CompressiveEncoding, scheme: int = 2) -> pb.CompressiveEncoding:
    return pb.CompressiveEncoding(general=pb.General(compression=pb.BufferCompression(scheme=scheme), values=values))


def chunks(units: Sequence[bytes], log: int) -> list[bytes]:
    """Return the words and the bytes of chunks of ``2 ** log`` values each."""
    words, out = [], bytearray()
    for number, unit in enumerate(units):
        chunk = struct.pack("<HIxx", 0, len(unit)) + unit + bytes(-len(unit) % 8)
        words.append((len(chunk) // 8 - 1) << 4 | (log if number < len(units) - 1 else 0))
        out += chunk
    return [np.array(words, "<u4").tobytes(), bytes(out)]


def mini_block(values: pb.CompressiveEncoding, items: int) -> pb.PageLayout:
    layout = pb.MiniBlockLayout(
        value_compression=values, layers=[1], has_large_chunk=True, num_buffers=1, num_items=items
    )
    return pb.PageLayout(mini_block_layout=layout)


def chunk_page(
    folder: Path, table: pa.Table, values: pb.CompressiveEncoding, unit: bytes, count: int, log: int = 3
) -> bytes:
    """Return a file with `count` equal chunks."""
    rows = count << log
    return set_page(parts_of(folder, table), mini_block(values, rows), rows, chunks([unit] * count, log))


def strings(count: int, each: int, excess: int = 0) -> bytes:
    """Return the content of a chunk of equal strings, with `excess` bytes behind them."""
    head = 4 * (count + 1)
    offsets = head + each * np.arange(count + 1)
    return offsets.astype("<u4").tobytes() + b"a" * (each * count + excess)


# -- forged ------------------------------------------------------------------------------------------------------


def large_chunks(folder: Path, scheme: str) -> bytes:
    """Return a page whose chunks have 8 values and decompress to much more."""
    unit = zstd(bytes(64 * MB)) if scheme == "zstd" else lz4_unit(bytes(16 * MB))
    return chunk_page(folder, NUMBERS, wrapped(flat(64), 2 if scheme == "zstd" else 1), unit, 40)


def padded_texts(folder: Path) -> bytes:
    return chunk_page(folder, TEXTS, wrapped(VARIABLE), zstd(strings(8, 0, 64 * MB)), 40)


def overlapping_texts(folder: Path, *, compressed: bool) -> bytes:
    """Return strings of which every second one has all bytes of the chunk; those between are broken."""
    count, size = 1000, 600_000
    head = 4 * (count + 1)
    offsets = np.where(np.arange(count + 1) % 2, head + size, head)
    data = offsets.astype("<u4").tobytes() + b"a" * size
    unit = zstd(data) if compressed else data
    values = wrapped(VARIABLE) if compressed else VARIABLE
    return set_page(parts_of(folder, TEXTS), mini_block(values, count), count, chunks([unit], 10))


def large_dictionary(folder: Path, *, text: bool) -> bytes:
    numbers = pa.array([2**70, 2, 3] * 100, pa.decimal128(38, 0))
    table = pa.table({"x": ["a", "b", "c"] * 100}) if text else pa.table({"x": numbers})
    parts = parts_of(folder, table, "2.1")
    stored = any_pb2.Any.FromString(parts.columns[0].pages[0].encoding.direct.encoding)
    layout = pb.PageLayout.FromString(stored.value)
    block = layout.mini_block_layout
    block.dictionary.CopyFrom(wrapped(VARIABLE if text else flat(128)))
    parts.replace_buffer(0, 2, zstd(bytes(256 * MB)))
    parts.set_encoding(0, layout, name=LAYOUT)
    return parts.assemble()


def level_runs(folder: Path, rows: int) -> bytes:
    """Return a page of one value and `rows` levels in runs of 255."""
    layout = pb.PageLayout(constant_layout=pb.ConstantLayout(layers=[3], inline_value=struct.pack("<i", 7)))
    count = rows // 255
    layout.constant_layout.def_compression.CopyFrom(runs(16))
    layout.constant_layout.num_def_values = 255 * count
    stored = struct.pack("<Q", 2 * count) + bytes(2 * count) + b"\xff" * count
    parts = parts_of(folder, pa.table({"x": pa.array([7] * 9, pa.int32())}))
    return set_page(parts, layout, 255 * count, [b"", stored])


def metadata(folder: Path, addition: bytes, count: int) -> bytes:
    """Return a file whose column has `count` times the same additional bytes of metadata."""
    parts = parts_of(folder, NUMBERS)
    parts.columns[0] = Serialized(parts.columns[0].SerializeToString() + addition * count)  # type: ignore[call-overload]
    return parts.assemble()


def empty_pages(folder: Path) -> bytes:
    page = file2_pb2.ColumnMetadata.Page()
    url = any_pb2.Any(type_url=f"/{LAYOUT}", value=EMPTY_PAGE)
    page.encoding.direct.encoding = url.SerializeToString()
    return metadata(folder, field(2, page.SerializeToString()), 300_000)


def many_fields(folder: Path, addition: bytes, count: int) -> bytes:
    parts = parts_of(folder, NUMBERS)
    schema = parts.descriptor.schema.SerializeToString() + addition * count
    parts.descriptor = Serialized(field(1, schema) + b"\x10\x09")  # type: ignore[assignment]
    return parts.assemble()


def long_encoding(folder: Path) -> bytes:
    """Return a page whose encoding is a packed struct of millions of fields."""
    parts = parts_of(folder, NUMBERS)
    value = field(1, field(3, field(13, b"\x0a\x00" * 3_000_000)))
    stored = any_pb2.Any(type_url=f"/{LAYOUT}", value=value).SerializeToString()
    parts.columns[0].pages[0].encoding.direct.encoding = stored
    return parts.assemble()


def array_page(folder: Path, scheme: str, rows: int, content: bytes) -> bytes:
    """Return a file of version 2.0 with one compressed buffer."""
    parts = parts_of(folder, NUMBERS, "2.0")

    def change(encoding: encodings_pb2.ArrayEncoding) -> None:
        encoding.nullable.no_nulls.values.flat.compression.scheme = scheme

    parts.edit(0, change)
    parts.columns[0].pages[0].length = parts.descriptor.length = rows
    parts.replace_buffer(0, 0, content)
    return parts.assemble()


#: Makers of files that must be refused, and the expected error.
FORGED: dict[str, tuple[Callable[[Path], bytes], str]] = {
    "zstd chunks": (lambda folder: large_chunks(folder, "zstd"), "CorruptFileError"),
    "lz4 chunks": (lambda folder: large_chunks(folder, "lz4"), "CorruptFileError"),
    "padded texts": (padded_texts, "CorruptFileError"),
    "overlapping texts": (lambda folder: overlapping_texts(folder, compressed=False), "CorruptFileError"),
    "overlapping zstd texts": (lambda folder: overlapping_texts(folder, compressed=True), "CorruptFileError"),
    "dictionary of texts": (lambda folder: large_dictionary(folder, text=True), "MemoryLimitError"),
    "dictionary of numbers": (lambda folder: large_dictionary(folder, text=False), "MemoryLimitError"),
    "levels": (lambda folder: level_runs(folder, 1 << 28), "MemoryLimitError"),
    "pages without content": (lambda folder: metadata(folder, b"\x12\x00", 2_000_000), "MemoryLimitError"),
    "pages without rows": (empty_pages, "MemoryLimitError"),
    "page buffers": (
        lambda folder: metadata(folder, field(2, field(1, bytes(MB)) + field(2, bytes(MB))), 4),
        "MemoryLimitError",
    ),
    "fields without content": (lambda folder: many_fields(folder, b"\x0a\x00", 500_000), "MemoryLimitError"),
    "fields": (
        lambda folder: many_fields(folder, field(1, b"\x12\x01a\x18\x05\x2a\x04bool"), 300_000),
        "MemoryLimitError",
    ),
    "encoding": (long_encoding, "MemoryLimitError"),
    "2.0 lz4": (lambda folder: array_page(folder, "lz4", 16 * MB, lz4_unit(bytes(128 * MB))), "MemoryLimitError"),
}


# -- honest ------------------------------------------------------------------------------------------------------


def written(folder: Path, table: pa.Table, version: str = "2.2") -> bytes:
    path = folder / "written.lance"
    with LanceFileWriter(str(path), table.schema, version=version) as file:
        for batch in table.to_batches(max_chunksize=1 << 20):
            file.write_batch(batch)
    return path.read_bytes()


def constant_rows(folder: Path, values: list[int | None]) -> bytes:
    parts = parts_of(folder, pa.table({"x": pa.array(values * 9, pa.int32())}))
    parts.columns[0].pages[0].length = parts.descriptor.length = 100_000_000
    return parts.assemble()


def many_columns(folder: Path) -> bytes:
    """Return a file of version 2.0 whose columns share a page that decompresses to 24 MB."""
    parts = parts_of(folder, pa.table({f"x{number}": pa.array(range(9), pa.int64()) for number in range(30)}), "2.0")
    place, rows = parts.add_buffer(zstd(bytes(24 * MB))), 3 * MB

    def change(encoding: encodings_pb2.ArrayEncoding) -> None:
        encoding.nullable.no_nulls.values.flat.compression.scheme = "zstd"

    for number, column in enumerate(parts.columns):
        parts.edit(number, change)
        column.pages[0].length = parts.descriptor.length = rows
        column.pages[0].buffer_offsets[0], column.pages[0].buffer_sizes[0] = place
    return parts.assemble()


def many_dictionaries(folder: Path) -> bytes:
    """Return a file whose columns have dictionaries that decompress to 16 MB each."""
    values = pa.array([2**70, 2, 3] * 100, pa.decimal128(38, 0))
    parts = parts_of(folder, pa.table({f"x{number}": values for number in range(15)}), "2.1")
    place = parts.add_buffer(zstd(bytes(16 * MB)))
    for number, column in enumerate(parts.columns):
        stored = any_pb2.Any.FromString(column.pages[0].encoding.direct.encoding)
        layout = pb.PageLayout.FromString(stored.value)
        layout.mini_block_layout.dictionary.CopyFrom(wrapped(flat(128)))
        layout.mini_block_layout.num_dictionary_items = MB
        column.pages[0].buffer_offsets[2], column.pages[0].buffer_sizes[2] = place
        parts.set_encoding(number, layout, name=LAYOUT)
    return parts.assemble()


def compressed_column(folder: Path) -> bytes:
    metadata = {"lance-encoding:compression": "zstd", "lance-encoding:bss": "off"}
    schema = pa.schema([pa.field("x", pa.float64(), metadata=metadata)])
    values = np.repeat(np.random.default_rng(1).random(100), 50_000)
    return written(folder, pa.table([pa.array(values)], schema=schema))


#: Makers of files that must be read: (maker, ways of the driver).
HONEST: dict[str, tuple[Callable[[Path], bytes], tuple[str, ...]]] = {
    "zstd chunks": (
        lambda folder: chunk_page(folder, NUMBERS, wrapped(flat(64)), zstd(bytes(8 << 15)), 500, 15),
        ("first", "take", "backwards", "all"),
    ),
    "zstd texts": (
        lambda folder: chunk_page(folder, TEXTS, wrapped(VARIABLE), zstd(strings(8, 4 * MB)), 4),
        ("batches", "take", "backwards"),
    ),
    "giant zstd texts": (
        lambda folder: chunk_page(folder, TEXTS, wrapped(VARIABLE), zstd(strings(2, 50 * MB)), 1, 1),
        ("batches", "take"),
    ),
    "levels": (lambda folder: level_runs(folder, 20_000_000), ("first", "take", "all")),
    "constant": (lambda folder: constant_rows(folder, [7]), ("first", "take")),
    "nulls": (lambda folder: constant_rows(folder, [None]), ("first", "take")),
    "equal texts": (lambda folder: written(folder, pa.table({"x": ["the same text"] * 1_000_000})), ("all", "take")),
    "2.0 columns": (many_columns, ("first", "take")),
    "dictionaries": (many_dictionaries, ("first", "take", "all")),
    "zstd column": (compressed_column, ("all", "first", "take")),
    "2.0 zstd": (lambda folder: array_page(folder, "zstd", 1 << 24, zstd(bytes(128 * MB))), ("first", "all")),
}
