"""Tests of pages of 2.1 to 2.3 whose numbers contradict their buffers: each is refused without large allocations."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from google.protobuf import any_pb2
from support.files.file_parts import FileParts, take_apart_file

from lance_dataset._proto import encodings21_pb2 as pb
from lance_dataset.errors import CorruptFileError
from lance_dataset.file.standalone import LanceFileReader, LanceFileWriter
from lance_dataset.file.structural.encodings.sequences import Range
from lance_dataset.file.v2_3.layout import StoredSequence
from lance_dataset.file.v2_3.positions import open_positions

LAYOUT = "lance.encodings21.PageLayout"


def write(folder: Path, table: pa.Table, version: str = "2.2") -> Path:
    path = folder / "good.lance"
    with LanceFileWriter(str(path), table.schema, version=version) as file:
        file.write_batch(table.combine_chunks().to_batches()[0])
    return path


def pieces(folder: Path, table: pa.Table, version: str = "2.2") -> tuple[FileParts, pb.PageLayout]:
    parts = take_apart_file(write(folder, table, version))
    wrapped = any_pb2.Any.FromString(parts.columns[0].pages[0].encoding.direct.encoding)
    return parts, pb.PageLayout.FromString(wrapped.value)


def change(parts: FileParts, layout: pb.PageLayout, rows: int, buffers: Sequence[bytes] | None = None) -> None:
    """Give the first page of the first column another layout, length and content."""
    parts.set_encoding(0, layout, name=LAYOUT)
    page = parts.columns[0].pages[0]
    page.length = parts.descriptor.length = rows
    if buffers is not None:
        ranges = [parts.add_buffer(content) for content in buffers]
        del page.buffer_offsets[:], page.buffer_sizes[:]
        page.buffer_offsets.extend(position for position, _ in ranges)
        page.buffer_sizes.extend(size for _, size in ranges)


def refused(folder: Path, parts: FileParts, said: str) -> None:
    path = folder / "bad.lance"
    path.write_bytes(parts.assemble())
    for read in (lambda file: file.read_all(), lambda file: file.take_rows([0])):
        with pytest.raises(CorruptFileError, match=said):
            read(LanceFileReader(path)).to_table()


# -- numbers that are not backed by bytes ------------------------------------------------------------------------


def chunked(values: dict[str, Any], items: int, buffers: int = 1) -> pb.PageLayout:
    encoding = pb.CompressiveEncoding(**values)
    layout = pb.MiniBlockLayout(value_compression=encoding, layers=[1], has_large_chunk=True, num_buffers=buffers)
    layout.num_items = items
    return pb.PageLayout(mini_block_layout=layout)


CHUNK = struct.pack("<HIxx", 0, 0)


def test_chunks_too_small_for_their_values(tmp_path: Path) -> None:
    parts, _ = pieces(tmp_path, pa.table({"x": pa.array(range(9), pa.int64())}))
    count = 20_000
    words = struct.pack("<I", 15) * (count - 1) + struct.pack("<I", 0)
    layout = chunked({"flat": pb.Flat(bits_per_value=64)}, 32768 * count)
    change(parts, layout, 32768 * count, [words, CHUNK * count])
    refused(tmp_path, parts, "values of at least 64 bits")


@pytest.mark.parametrize("wrapped", [False, True])
def test_chunk_too_small_for_its_lists(tmp_path: Path, wrapped: bool) -> None:
    table = pa.table({"x": pa.array([list(range(8))] * 9, pa.list_(pa.int64(), 8))})
    parts, _ = pieces(tmp_path, table)
    for field in parts.descriptor.schema.fields:
        field.logical_type = f"fixed_size_list:int64:{2**20}"
    flat = pb.CompressiveEncoding(flat=pb.Flat(bits_per_value=64))
    lists = pb.CompressiveEncoding(fixed_size_list=pb.FixedSizeList(items_per_value=2**20, values=flat))
    chunk, encoding = CHUNK, {"fixed_size_list": lists.fixed_size_list}
    if wrapped:
        unit = struct.pack("<I", 0) + b"\0"  # LZ4 of nothing
        chunk = struct.pack("<HIxx", 0, len(unit)) + unit + bytes(-len(unit) % 8)
        scheme = pb.BufferCompression(scheme=1)
        encoding = {"general": pb.General(compression=scheme, values=lists)}
    words = struct.pack("<I", (len(chunk) // 8 - 1) << 4)
    change(parts, chunked(encoding, 32768), 32768, [words, chunk])
    refused(tmp_path, parts, "32768 values")


@pytest.mark.parametrize("codec", ["flat", "out of line"])
def test_dictionary_without_its_entries(tmp_path: Path, codec: str) -> None:
    table = pa.table({"x": pa.array([1, 2, 3] * 100, pa.int64()).dictionary_encode()})
    parts, layout = pieces(tmp_path, table, "2.1")
    stored = layout.mini_block_layout
    stored.num_dictionary_items = 2**28 - 1
    stored.dictionary.Clear()
    if codec == "flat":
        stored.dictionary.flat.bits_per_value = 64
    else:
        stored.dictionary.out_of_line_bitpacking.uncompressed_bits_per_value = 64
        stored.dictionary.out_of_line_bitpacking.values.flat.SetInParent()
    parts.replace_buffer(0, 2, b"")
    change(parts, layout, 300)
    refused(tmp_path, parts, "claim to hold")


def test_levels_of_a_constant_page_out_of_nothing(tmp_path: Path) -> None:
    table = pa.table({"x": pa.array([[None], None, []] * 50, pa.list_(pa.int32()))})
    parts, layout = pieces(tmp_path, table)
    stored = layout.constant_layout
    for encoding in (stored.rep_compression, stored.def_compression):
        encoding.Clear()
        encoding.out_of_line_bitpacking.uncompressed_bits_per_value = 16
        encoding.out_of_line_bitpacking.values.flat.SetInParent()
    stored.num_rep_values = stored.num_def_values = 2**30
    change(parts, layout, 150, [b"\0", b"\0"])
    refused(tmp_path, parts, "claim to hold")


def test_child_of_a_packed_struct_wider_than_its_type(tmp_path: Path) -> None:
    field = pa.field(
        "x", pa.struct([("a", pa.int32()), ("t", pa.string())]), metadata={"lance-encoding:packed": "true"}
    )
    rows = pa.array([{"a": i, "t": "x" * i} for i in range(9)], field.type)
    parts, layout = pieces(tmp_path, pa.table([rows], schema=pa.schema([field])))
    child = layout.full_zip_layout.value_compression.variable_packed_struct.fields[0]
    child.bits_per_value = child.value.flat.bits_per_value = 2**40
    change(parts, layout, 9)
    refused(tmp_path, parts, "do not fit the type int32")


@pytest.mark.parametrize("kind", [pa.int64(), pa.string()])
def test_page_of_too_many_nulls(tmp_path: Path, kind: pa.DataType) -> None:
    parts, layout = pieces(tmp_path, pa.table({"x": pa.nulls(5, kind)}))
    change(parts, layout, 2**32 - 1)
    path = tmp_path / "bad.lance"
    path.write_bytes(parts.assemble())
    with pytest.raises(CorruptFileError, match="more than a page can hold"):
        LanceFileReader(path).read_all().to_table()


# -- other contradictions ----------------------------------------------------------------------------------------


def dictionary_page(folder: Path, indices: bytes) -> FileParts:
    """Return a page of 8-bit indices into 200 words."""
    table = pa.table({"x": pa.array(["a", "b"] * 60).cast(pa.dictionary(pa.int8(), pa.string()))})
    parts, _ = pieces(folder, table)
    words = [b"word%03d" % number for number in range(200)]
    ends = struct.pack("<201I", *(7 * number for number in range(201)))
    dictionary = struct.pack("<II", 32, 8 + len(ends)) + ends + b"".join(words)
    chunk = struct.pack("<HIxx", 0, len(indices)) + indices + bytes(-len(indices) % 8)
    new = chunked({"flat": pb.Flat(bits_per_value=8)}, len(indices))
    new.mini_block_layout.dictionary.variable.offsets.flat.bits_per_value = 32
    new.mini_block_layout.num_dictionary_items = 200
    change(parts, new, len(indices), [struct.pack("<I", (len(chunk) // 8 - 1) << 4), chunk, dictionary])
    return parts


def test_index_that_has_no_place_in_a_signed_type(tmp_path: Path) -> None:
    refused(tmp_path, dictionary_page(tmp_path, bytes([199, 5, 7])), "no dictionary entry")


def test_dictionary_larger_than_its_signed_index(tmp_path: Path) -> None:
    path = tmp_path / "good.lance"
    path.write_bytes(dictionary_page(tmp_path, bytes([127, 5, 7])).assemble())
    table = LanceFileReader(path).read_all().to_table()
    table.validate(full=True)
    assert table["x"].to_pylist() == ["word127", "word005", "word007"]


def test_fixed_size_lists_of_no_structs(tmp_path: Path) -> None:
    kind = pa.list_(pa.struct([("a", pa.int32())]), 2)
    parts, _ = pieces(tmp_path, pa.table({"x": pa.array([[{"a": 1}, {"a": 2}]] * 5, kind)}))
    for field in parts.descriptor.schema.fields:
        if field.logical_type == "fixed_size_list:struct:2":
            field.logical_type = "fixed_size_list:struct:0"
    refused(tmp_path, parts, "lists of 0 structs")


@pytest.mark.parametrize("layers", [[1], [1, 2]])
def test_blob_descriptions_that_are_none(tmp_path: Path, layers: list[int]) -> None:
    field = pa.field("x", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    table = pa.table([pa.array([b"x", None, b"zz"], pa.large_binary())], schema=pa.schema([field]))
    parts, layout = pieces(tmp_path, table, "2.1")
    inner = pb.PageLayout(constant_layout=pb.ConstantLayout(layers=layers))
    layout.blob_layout.inner_layout.CopyFrom(inner)
    change(parts, layout, 3, [b"\0\0" * 3 * (len(layers) > 1), b""])
    refused(tmp_path, parts, "not a page of positions and sizes")


@pytest.mark.parametrize("start", [0, 2**63, 2**64 - 1])
def test_range_of_no_positions(start: int) -> None:
    positions = open_positions(StoredSequence(Range(64, start, 2**64 - 1), 0), None, 5)
    assert positions.length == 0
    assert positions.span(0, 5) == (0, 0)
    assert not positions.holds(np.arange(5))[1].any()
