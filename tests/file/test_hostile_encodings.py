"""Tests of files with forged encodings or compressed buffers: a clear error, and no large allocations."""

from __future__ import annotations

import resource
import struct
from pathlib import Path

import lz4.block
import numpy as np
import pyarrow as pa
import pytest
import zstandard
from support.files.file_parts import FileParts
from support.files.hostile_files import (
    DICTIONARY,
    HUGE,
    LISTS,
    NUMBERS,
    STRUCTS,
    TEXT,
    VECTORS,
    WORDS,
    read_everything,
    reads,
    refused,
    refused_after,
    write,
)

from lance_dataset._proto import encodings_pb2 as pb
from lance_dataset.errors import CorruptFileError, UnsupportedError
from lance_dataset.file.reader import DataFileReader
from lance_dataset.file.standalone import LanceFileReader
from lance_dataset.io.local import LocalStore

pytestmark = pytest.mark.usefixtures("little_memory")


# -- encodings ---------------------------------------------------------------------------------------------------


def _nested(depth: int) -> pb.ArrayEncoding:
    inner = pb.ArrayEncoding(flat=pb.Flat(bits_per_value=64))
    for _ in range(depth):
        outer = pb.ArrayEncoding()
        outer.nullable.no_nulls.values.CopyFrom(inner)
        inner = outer
    return inner


def _nested_bytes(depth: int) -> bytes:
    """Return the bytes of an encoding nested `depth` times, beyond the limits of the protobuf library."""
    inner = _nested(0).SerializeToString()
    for _ in range(depth):
        for tag in (b"\x0a", b"\x0a", b"\x12"):
            inner = tag + _varint(len(inner)) + inner
    return inner


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def test_encoding_nested_too_deep(tmp_path: Path) -> None:
    for depth in (70, 10_000):
        parts = write(tmp_path, NUMBERS)
        any_value = _nested_bytes(depth)
        url = b"/lance.encodings.ArrayEncoding"
        stored = b"\x0a" + _varint(len(url)) + url + b"\x12" + _varint(len(any_value)) + any_value
        parts.columns[0].pages[0].encoding.direct.encoding = stored
        refused(tmp_path, parts, "page 0")


EMPTY = {
    "FSST": pb.ArrayEncoding(fsst=pb.Fsst()),
    "PackedStruct": pb.ArrayEncoding(packed_struct=pb.PackedStruct()),
    "packed into 0": pb.ArrayEncoding(bitpacked=pb.Bitpacked()),
    "0 bits": pb.ArrayEncoding(bitpacked_for_non_neg=pb.BitpackedForNonNeg()),
    "fixed-size binary": pb.ArrayEncoding(fixed_size_binary=pb.FixedSizeBinary(bytes=pb.ArrayEncoding())),
}


@pytest.mark.parametrize("name", EMPTY)
def test_encoding_that_says_nothing(tmp_path: Path, name: str) -> None:
    parts = write(tmp_path, NUMBERS)
    parts.set_encoding(0, EMPTY[name])
    refused(tmp_path, parts, "" if name == "fixed-size binary" else name, "column 0", "page 0", "'a'")


def test_encoding_of_no_release(tmp_path: Path) -> None:
    parts = write(tmp_path, NUMBERS)
    parts.set_encoding(0, pb.ArrayEncoding(constant=pb.Constant()))
    refused(tmp_path, parts, "constant", "column 0", "page 0", "'a'", error=UnsupportedError)


def test_blob_column(tmp_path: Path) -> None:
    def edit(parts: FileParts) -> None:
        inner = pb.ColumnEncoding(values={})
        wrapped = pb.ColumnEncoding(blob=pb.Blob(inner=inner))
        from google.protobuf import any_pb2

        parts.columns[0].encoding.direct.encoding = any_pb2.Any(
            type_url="/lance.encodings.ColumnEncoding", value=wrapped.SerializeToString()
        ).SerializeToString()

    table = pa.table({"b": pa.array([b"x", b"y"], pa.large_binary())})
    refused_after(tmp_path, table, edit, "packed struct", "'b'")


def test_page_of_a_later_version(tmp_path: Path) -> None:
    parts = write(tmp_path, NUMBERS)
    parts.set_encoding(0, parts.encoding(0), name="lance.encodings21.PageLayout")
    refused(tmp_path, parts, "PageLayout", "page 0")


def test_missing_encodings(tmp_path: Path) -> None:
    refused_after(tmp_path, NUMBERS, lambda parts: parts.columns[0].ClearField("encoding"), "encoding is missing")
    refused_after(tmp_path, NUMBERS, lambda parts: parts.columns[0].pages[0].ClearField("encoding"), "missing")
    refused_after(tmp_path, NUMBERS, lambda parts: parts.set_encoding(0, pb.ArrayEncoding()), "page 0", "empty")


@pytest.mark.parametrize("bits", [0, 7, 8, 32, 2**41, 2**64 - 1])
def test_wrong_width(tmp_path: Path, bits: int) -> None:
    def edit(encoding: pb.ArrayEncoding) -> None:
        encoding.nullable.no_nulls.values.flat.bits_per_value = bits

    refused_after(tmp_path, NUMBERS, lambda parts: parts.edit(0, edit), "page 0", "bits")


@pytest.mark.parametrize("length", [5, *HUGE])
def test_page_longer_than_its_buffer(tmp_path: Path, length: int) -> None:
    for table in (NUMBERS, TEXT, VECTORS, DICTIONARY):

        def edit(parts: FileParts) -> None:
            parts.columns[0].pages[0].length = length
            parts.descriptor.length = length

        refused_after(tmp_path, table, edit)


@pytest.mark.parametrize("length", [2**28, 2**31, 2**32, 2**40, 2**56, 2**64 - 1])
def test_forged_number_of_nulls(tmp_path: Path, length: int) -> None:
    def edit(parts: FileParts) -> None:
        parts.columns[0].pages[0].length = length
        parts.descriptor.length = length
        parts.set_encoding(0, pb.ArrayEncoding(nullable=pb.Nullable(all_nulls=pb.Nullable.AllNull())))

    parts = write(tmp_path, NUMBERS)
    edit(parts)
    path = tmp_path / "bad.lance"
    path.write_bytes(parts.assemble())
    with pytest.raises(CorruptFileError, match=r"bad\.lance"):
        LanceFileReader(path).read_all().to_table()


def test_many_pages_of_nulls(tmp_path: Path) -> None:
    """Many pages of nulls can be read in pieces, which share memory, but not at once.

    Each page is within the limit of a page; all together are far larger.
    """
    parts = write(tmp_path, NUMBERS)
    parts.set_encoding(0, pb.ArrayEncoding(nullable=pb.Nullable(all_nulls=pb.Nullable.AllNull())))
    page = parts.columns[0].pages[0]
    page.length = 1 << 22
    for _ in range(99):
        parts.columns[0].pages.add().CopyFrom(page)
    parts.descriptor.length = 100 << 22
    path = tmp_path / "bad.lance"
    path.write_bytes(parts.assemble())
    reader = DataFileReader(LocalStore().open_input(str(path)))
    column = reader.column(reader.schema.fields[0])
    chunks = column.read_chunks(0, column.num_rows)
    assert sum(chunk.null_count for chunk in chunks) == 100 << 22
    with pytest.raises(CorruptFileError, match=r"bad\.lance.*nulls"):
        column.read(0, column.num_rows)
    assert column.read(5, 1 << 23).null_count == (1 << 23) - 5


def test_one_null_of_many_gigabytes(tmp_path: Path) -> None:
    def edit(parts: FileParts) -> None:
        parts.descriptor.schema.fields[0].logical_type = "fixed_size_list:int64:2147483647"
        parts.set_encoding(0, pb.ArrayEncoding(nullable=pb.Nullable(all_nulls=pb.Nullable.AllNull())))

    refused_after(tmp_path, NUMBERS, edit, "nulls", "page 0")


def test_buffer_index_out_of_range(tmp_path: Path) -> None:
    def edit(encoding: pb.ArrayEncoding) -> None:
        encoding.nullable.no_nulls.values.flat.buffer.buffer_index = 2**32 - 1

    refused_after(tmp_path, NUMBERS, lambda parts: parts.edit(0, edit), "buffer 4294967295 of 1", "page 0")


@pytest.mark.parametrize("entry", [(2**64 - 1, 24), (0, 2**64 - 1), (0, 16)])
def test_buffer_outside_the_file_or_short(tmp_path: Path, entry: tuple[int, int]) -> None:
    def edit(parts: FileParts) -> None:
        page = parts.columns[0].pages[0]
        page.buffer_offsets[0], page.buffer_sizes[0] = entry

    refused_after(tmp_path, NUMBERS, edit, "page 0")


def test_positions_without_sizes(tmp_path: Path) -> None:
    refused_after(tmp_path, NUMBERS, lambda parts: parts.columns[0].pages[0].buffer_sizes.pop(), "1 buffer positions")


def _ends(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}Q", *values)


@pytest.mark.parametrize(
    "ends", [(3, 2, 5), (1, 4, 16), (2**63, 4, 5), (2**64 - 1, 2**64 - 1, 2**64 - 1), (1, 4, 2**62), (1, 12, 3)]
)
def test_text_ends_that_lie(tmp_path: Path, ends: tuple[int, int, int]) -> None:
    table = pa.table({"t": ["x", "yé", "z"]})
    refused_after(tmp_path, table, lambda parts: parts.replace_buffer(0, 0, _ends(*ends)), "column 0")


@pytest.mark.parametrize("ends", [(3, 2, 3), (1, 2, 2), (2**63, 2, 3), (2**64 - 1, 2, 3), (0, 7, 2), (1, 2, 12)])
def test_list_ends_that_lie(tmp_path: Path, ends: tuple[int, int, int]) -> None:
    refused_after(tmp_path, LISTS, lambda parts: parts.replace_buffer(0, 0, _ends(*ends)), "column 0")


@pytest.mark.parametrize("adjustment", [0, 1, 2])
def test_null_adjustment_too_small(tmp_path: Path, adjustment: int) -> None:
    def edit(encoding: pb.ArrayEncoding) -> None:
        encoding.binary.null_adjustment = adjustment

    refused_after(tmp_path, pa.table({"t": ["xx", "yé", "z"]}), lambda parts: parts.edit(0, edit), "column 0")


@pytest.mark.parametrize("items", [0, 2, 4, *HUGE])
def test_number_of_list_items(tmp_path: Path, items: int) -> None:
    def edit(encoding: pb.ArrayEncoding) -> None:
        encoding.list.num_items = items

    refused_after(tmp_path, LISTS, lambda parts: parts.edit(0, edit), "values instead of", str(items))


def test_list_encoding_that_is_none(tmp_path: Path) -> None:
    parts = write(tmp_path, LISTS)
    parts.set_encoding(0, _nested(1))
    refused(tmp_path, parts, "does not fit a list")


@pytest.mark.parametrize("text", [b"\xff\xfe\xfd", b"\xc3x\xa9", b"\xed\xa0\x80", b"\xf5\x80\x80"])
def test_invalid_utf8(tmp_path: Path, text: bytes) -> None:
    table = pa.table({"t": ["abc", "de", "fgh"]})

    def edit(parts: FileParts) -> None:
        parts.replace_buffer(0, 1, text + b"defgh")

    refused_after(tmp_path, table, edit, "UTF-8", "column 0")


def test_value_that_splits_a_character(tmp_path: Path) -> None:
    table = pa.table({"t": ["aé", "b"]})
    refused_after(tmp_path, table, lambda parts: parts.replace_buffer(0, 0, _ends(2, 4)), "UTF-8")


def test_dictionary_index_out_of_range(tmp_path: Path) -> None:
    codes = bytes([1, 2, 0, 77] * 40)
    refused_after(tmp_path, WORDS, lambda parts: parts.replace_buffer(0, 0, codes[::-1]), "column 0", "dictionary")
    for index in (3, 2**31 - 1, 2**32 - 1, 2**31):
        content = struct.pack("<4I", index, 1, index, 0)
        refused_after(
            tmp_path, DICTIONARY, lambda parts, content=content: parts.replace_buffer(0, 0, content), "dictionary"
        )


@pytest.mark.parametrize("size", [0, 1, 3, 2**31, 2**32 - 1])
def test_dictionary_size(tmp_path: Path, size: int) -> None:
    def edit(encoding: pb.ArrayEncoding) -> None:
        encoding.dictionary.num_dictionary_items = size

    refused_after(tmp_path, WORDS, lambda parts: parts.edit(0, edit), "column 0")


def test_dictionary_of_forged_nulls(tmp_path: Path) -> None:
    def edit(encoding: pb.ArrayEncoding) -> None:
        encoding.dictionary.num_dictionary_items = 2**32 - 1
        encoding.dictionary.items.nullable.all_nulls.SetInParent()

    refused_after(tmp_path, WORDS, lambda parts: parts.edit(0, edit), "nulls")
    refused_after(tmp_path, DICTIONARY, lambda parts: parts.edit(0, edit), "nulls")


@pytest.mark.parametrize("dimension", [0, 1, 3, 2**31, 2**32 - 1])
def test_dimension(tmp_path: Path, dimension: int) -> None:
    def edit(encoding: pb.ArrayEncoding) -> None:
        encoding.nullable.no_nulls.values.fixed_size_list.dimension = dimension

    refused_after(tmp_path, VECTORS, lambda parts: parts.edit(0, edit), "items do not fit", str(dimension))


def test_struct_header(tmp_path: Path) -> None:
    def longer(parts: FileParts) -> None:
        parts.columns[0].pages[0].length = 2**60

    def twice(parts: FileParts) -> None:
        parts.columns[0].pages[0].length = 2
        parts.columns[0].pages.add().CopyFrom(parts.columns[0].pages[0])
        parts.columns[0].pages[1].length = 1

    refused_after(tmp_path, STRUCTS, longer, "column 0")
    refused_after(tmp_path, STRUCTS, twice, "one page")
    refused_after(tmp_path, STRUCTS, lambda parts: parts.set_encoding(0, _nested(1)), "struct")
    refused_after(
        tmp_path, STRUCTS, lambda parts: setattr(parts.columns[1].pages[0], "length", 2), "2 values instead of 3"
    )


# -- compression -------------------------------------------------------------------------------------------------


def _compressed(parts: FileParts, scheme: str, content: bytes) -> None:
    def edit(encoding: pb.ArrayEncoding) -> None:
        encoding.nullable.no_nulls.values.flat.compression.scheme = scheme

    parts.edit(0, edit)
    parts.replace_buffer(0, 0, content)


FRAME = zstandard.compress(struct.pack("<3q", 1, 2, 3))
UNSIZED = zstandard.ZstdCompressor(write_content_size=False).compress(struct.pack("<3q", 1, 2, 3))


def test_compressed_page_reads(tmp_path: Path) -> None:
    for content in (FRAME, struct.pack("<Q", 24) + FRAME, UNSIZED):
        parts = write(tmp_path, NUMBERS)
        _compressed(parts, "zstd", content)
        path = tmp_path / "good2.lance"
        path.write_bytes(parts.assemble())
        assert read_everything(path).equals(NUMBERS)


def test_unsized_frame_that_expands_a_lot(tmp_path: Path) -> None:
    """A frame without a length, as of releases 0.18 to 0.25, may expand a thousandfold if its text repeats."""
    table = pa.table({"a": pa.array(np.zeros(2_000_000, np.int64))})
    parts = write(tmp_path, table)
    frame = zstandard.ZstdCompressor(write_content_size=False).compress(bytes(1 << 20))
    parts.columns[0].pages[0].length = 1 << 17
    del parts.columns[0].pages[1:]
    parts.descriptor.length = 1 << 17
    _compressed(parts, "zstd", frame)
    path = tmp_path / "expands.lance"
    path.write_bytes(parts.assemble())
    assert LanceFileReader(path).read_all().to_table().num_rows == 1 << 17


BOMB = zstandard.compress(bytes(1 << 26))


@pytest.mark.parametrize(
    ("scheme", "content"),
    [
        ("zstd", b""),
        ("zstd", b"\x28\xb5\x2f\xfd"),
        ("zstd", FRAME[:-3]),
        ("zstd", UNSIZED[:-3]),
        ("zstd", struct.pack("<Q", 2**63) + FRAME),
        ("zstd", struct.pack("<Q", 25) + FRAME),
        ("zstd", struct.pack("<Q", 8) + FRAME),
        ("zstd", struct.pack("<Q", 24) + b"not a frame"),
        ("zstd", zstandard.compress(bytes(16))),
        ("zstd", BOMB),
        ("zstd", struct.pack("<Q", 24) + BOMB),
        ("lz4", b""),
        ("lz4", b"\x01"),
        ("lz4", struct.pack("<I", 2**32 - 1) + b"\xff" * 20),
        ("lz4", struct.pack("<I", 24) + b"\xff" * 20),
        ("lz4", struct.pack("<I", 0) + b"\x00"),
    ],
)
def test_broken_compression(tmp_path: Path, scheme: str, content: bytes) -> None:
    refused_after(tmp_path, NUMBERS, lambda parts: _compressed(parts, scheme, content), "column 0", "page 0", scheme)


def _zeros(size: int, *, sized: bool) -> bytes:
    """Return a frame of many zeros, which is a few thousand times smaller."""
    compressor = zstandard.ZstdCompressor(write_content_size=sized).compressobj(size=size if sized else -1)
    block = bytes(1 << 24)
    parts = [compressor.compress(block) for _ in range(size // len(block))]
    return b"".join([*parts, compressor.flush()])


BOMBS = [
    ("zstd", _zeros(1 << 30, sized=False)),
    ("zstd", _zeros(1 << 30, sized=True)),
    ("zstd", struct.pack("<Q", 1 << 30) + _zeros(1 << 30, sized=False)),
    ("zstd", struct.pack("<Q", 24) + _zeros(1 << 30, sized=True)),
    ("zstd", struct.pack("<Q", 24) + _zeros(1 << 30, sized=False)),
    ("lz4", lz4.block.compress(bytes(1 << 28))),
]


@pytest.mark.parametrize(("scheme", "content"), BOMBS)
def test_more_than_the_page_has_room_for_is_not_decompressed(tmp_path: Path, scheme: str, content: bytes) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refused_after(tmp_path, NUMBERS, lambda parts: _compressed(parts, scheme, content), "page 0", scheme)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10


@pytest.mark.parametrize("content", [_zeros(1 << 30, sized=False), _zeros(1 << 30, sized=True)])
def test_text_is_decompressed_up_to_its_last_end(tmp_path: Path, content: bytes) -> None:
    def edit(encoding: pb.ArrayEncoding) -> None:
        encoding.binary.bytes.nullable.no_nulls.values.flat.compression.scheme = "zstd"
        encoding.binary.null_adjustment = 1 << 40

    parts = write(tmp_path, TEXT)
    parts.edit(0, edit)
    parts.replace_buffer(0, 0, _ends(1, 1 + (1 << 40), 4))
    parts.replace_buffer(0, 1, content)
    reads(tmp_path, parts, pa.table({"t": ["\0", None, "\0\0\0"]}))


def test_unknown_compression(tmp_path: Path) -> None:
    parts = write(tmp_path, NUMBERS)
    _compressed(parts, "snappy", FRAME)
    refused(tmp_path, parts, "snappy", "page 0", error=UnsupportedError)
