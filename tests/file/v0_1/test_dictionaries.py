"""Tests of dictionaries, blocks of values and the layout of legacy (0.1) files that this package writes."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from support.files.legacy_files import framed, metadata, write, write_dataset_file

import lance_dataset
from lance_dataset._proto import table_pb2
from lance_dataset.errors import CorruptFileError, SchemaError, UnsupportedError
from lance_dataset.file.reader import DataFileReader
from lance_dataset.file.v0_1.dictionaries import read_dictionary, with_dictionaries, write_dictionaries
from lance_dataset.file.v0_1.layout import PageKind, bits_per_row, page_kind
from lance_dataset.file.writer import LegacyWrite, open_writer
from lance_dataset.io.local_output import LocalOutput
from lance_dataset.io.resolve import resolve
from lance_dataset.types.schema import Field, Schema

# -- dictionaries ---------------------------------------------------------------------------------------------------


def embedded(content: bytes) -> Schema:
    """Return the schema inside a file, with its dictionaries."""
    manifest = framed(content, metadata(content).manifest_position, table_pb2.Manifest)
    return with_dictionaries(Schema.from_proto(manifest.fields, manifest.schema_metadata), content, "file")


def decoded(content: bytes, index_type: pa.DataType, rows: int) -> list[Any]:
    """Return the values of a file whose one column is a dictionary."""
    values = embedded(content).fields[0].dictionary_values.to_pylist()
    return [values[index] for index in np.frombuffer(content, index_type.to_pandas_dtype(), rows)]


_VALUES = [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()]


@pytest.mark.parametrize("kind", _VALUES, ids=str)
@pytest.mark.parametrize("index", [pa.int8(), pa.uint16(), pa.int64(), pa.uint64()], ids=str)
def test_dictionaries_of_batches_are_joined(kind: pa.DataType, index: pa.DataType, tmp_path: Path) -> None:
    def part(indices: list[int | None], values: list[str | None]) -> pa.Array:
        held = pa.array([None if value is None else value.encode() for value in values], pa.binary())
        return pa.DictionaryArray.from_arrays(
            pa.array(indices, index), held.cast(pa.string()).cast(kind) if "str" in str(kind) else held.cast(kind)
        )

    chunks = [
        part([1, 0, None], ["a", "b"]),
        part([0, 1, 2], ["b", None, "unused but here"]),
        part([0, 2, 1], ["c", "unused", "a"]),
        part([1, None], ["a", "b"]),
    ]
    table = pa.table({"d": pa.chunked_array(chunks)})
    content = write(table, tmp_path / "file.lance", max_rows_per_group=2)
    pages = table["d"].to_pylist()
    assert decoded(content, index, len(pages)) == pages
    given = embedded(content).fields[0].dictionary_values.to_pylist()
    assert len(given) == len(set(given))
    assert set(given) >= set(pages)


def test_nulls_of_integer_dictionaries(tmp_path: Path) -> None:
    array = pa.DictionaryArray.from_arrays(pa.array([1, None], pa.int8()), pa.array([7, 8]))
    with pytest.warns(UserWarning, match=r"'d' holds nulls.*its first value"):
        content = write(pa.table({"d": array}), tmp_path / "file.lance")
    assert decoded(content, pa.int8(), 2) == [8, 7]
    nothing = pa.DictionaryArray.from_arrays(pa.array([None], pa.int8()), pa.array([], pa.int64()))
    with pytest.warns(UserWarning, match="first value"):
        assert decoded(write(pa.table({"d": nothing}), tmp_path / "2.lance"), pa.int8(), 1) == [0]
    inside = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), pa.array([None, 8]))
    with pytest.warns(UserWarning, match="read as zeros"):
        assert decoded(write(pa.table({"d": inside}), tmp_path / "3.lance"), pa.int8(), 2) == [0, 8]


def test_indices_must_not_overflow(tmp_path: Path) -> None:
    chunks = [
        pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), [f"{first}", f"{first + 1}"])
        for first in range(0, 256, 2)
    ]
    table = pa.table({"d": pa.chunked_array(chunks[:64])})
    assert decoded(write(table, tmp_path / "fits.lance"), pa.int8(), 128) == [str(number) for number in range(128)]
    with pytest.raises(SchemaError, match=r"129 different values.*wider index"):
        write(pa.table({"d": pa.chunked_array([*chunks[:64], chunks[100].slice(1)])}), tmp_path / "not.lance")
    with pytest.raises(SchemaError, match="129 different values"):
        write(
            pa.table({"d": pa.chunked_array([*chunks[:64], pa.array([None], chunks[0].type)])}), tmp_path / "no.lance"
        )


def test_files_of_one_write_share_dictionaries(tmp_path: Path) -> None:
    schema = Schema.from_arrow(pa.schema([("d", pa.dictionary(pa.int8(), pa.string()))]))
    shared = LegacyWrite(schema)
    contents = []
    for number, values in enumerate((["a", "b"], ["c", "a"], ["b", "c"])):
        output = LocalOutput(str(tmp_path / f"{number}.lance"), durable=False)
        writer = open_writer(output, schema, "legacy", legacy=shared)
        writer.write_batch(pa.record_batch({"d": pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), values)}))
        writer.finish()
        contents.append((tmp_path / f"{number}.lance").read_bytes())
    assert [content[:2] for content in contents] == [b"\0\1", b"\2\0", b"\1\2"]
    held = [embedded(content).fields[0].dictionary_values.to_pylist() for content in contents]
    assert held == [["a", "b"], ["a", "b", "c"], ["a", "b", "c"]]
    assert shared.with_values(schema).fields[0].dictionary_values.to_pylist() == ["a", "b", "c"]


def test_known_dictionaries_do_not_grow(tmp_path: Path) -> None:
    kind = pa.dictionary(pa.int8(), pa.string())
    (field,) = Schema.from_arrow(pa.schema([("d", kind)])).fields
    schema = Schema((Field(**{**vars(field), "dictionary_values": pa.array(["x", "y"])}),))

    def attempt(indices: list[int | None], values: list[str]) -> bytes:
        output = LocalOutput(str(tmp_path / "f.lance"), durable=False)
        writer = open_writer(output, schema, "legacy")
        try:
            writer.write_batch(
                pa.record_batch({"d": pa.DictionaryArray.from_arrays(pa.array(indices, pa.int8()), values)})
            )
            writer.finish()
            return (tmp_path / "f.lance").read_bytes()
        finally:
            writer.abort()
            (tmp_path / "f.lance").unlink(missing_ok=True)

    assert attempt([0, 1, 1], ["y", "x", "not used"])[:3] == b"\1\0\0"
    with pytest.raises(SchemaError, match="'z' are not in the dictionary of the table"):
        attempt([0, 1], ["y", "z"])
    with pytest.raises(SchemaError, match="holds nulls, but the dictionary of the table has no empty value"):
        attempt([0, None], ["y"])


# -- blocks of values -----------------------------------------------------------------------------------------------


def test_blocks_in_the_order_of_ids() -> None:
    strings = Field("s", 9, "dict:string:int8:false", dictionary_values=pa.array(["x", None, "yz"]))
    numbers = Field("n", 4, "dict:int16:uint8:false", dictionary_values=pa.array([5, -6], pa.int16()))
    schema = Schema((strings, Field("t", 3, "struct", children=(numbers,))))
    blocks, placed = write_dictionaries(schema, 100)
    assert blocks == [struct.pack("<2h", 5, -6), b"xyz" + struct.pack("<4q", 104, 105, 105, 107)]
    assert [(node.id, node.dictionary) for node in placed.walk()] == [(9, (107, 3)), (3, None), (4, (100, 2))]
    back = with_dictionaries(placed, bytes(100) + b"".join(blocks), "file")
    assert [node.dictionary_values.to_pylist() for node in back.walk() if node.dictionary] == [
        ["x", None, "yz"],
        [5, -6],
    ]
    kept = with_dictionaries(placed, pa.py_buffer(bytes(100) + b"".join(blocks)), "file", empty_is_null=False)
    assert kept.fields[0].dictionary_values.to_pylist() == ["x", "", "yz"]
    with pytest.raises(SchemaError, match=r"'s' \(id 9\).*not known"):
        write_dictionaries(Schema((Field("s", 9, "dict:string:int8:false"),)), 0)


def test_dictionaries_of_broken_files() -> None:
    data = b"abc" + struct.pack("<3q", 0, 2, 3)
    assert read_dictionary(data, 3, 2, pa.string(), "f").to_pylist() == ["ab", "c"]
    assert read_dictionary(data, 0, 3, pa.uint8(), "f").to_pylist() == [97, 98, 99]
    assert read_dictionary(data, 2**62, 0, pa.string(), "f").to_pylist() == []
    for offset, length in ((4, 2), (3, 3), (-1, 1), (3, -1), (3, 2**62), (2**63, 1)):
        with pytest.raises(CorruptFileError, match="f: "):
            read_dictionary(data, offset, length, pa.string(), "f")
    for offsets in ((0, 3, 2), (-1, 2, 3), (0, 2, 2**40)):
        with pytest.raises(CorruptFileError, match="f: the offsets"):
            read_dictionary(b"abc" + struct.pack("<3q", *offsets), 3, 2, pa.string(), "f")
    with pytest.raises(CorruptFileError, match="f: "):
        read_dictionary(b"\xff" + struct.pack("<2q", 0, 1), 1, 1, pa.string(), "f")


# -- layout ---------------------------------------------------------------------------------------------------------


def test_pages_of_types() -> None:
    kinds = {
        pa.struct([]): PageKind.NONE,
        pa.null(): PageKind.NULL,
        pa.bool_(): PageKind.FIXED,
        pa.list_(pa.list_(pa.bool_(), 3), 5): PageKind.FIXED,
        pa.decimal256(40, 2): PageKind.FIXED,
        pa.dictionary(pa.int8(), pa.string()): PageKind.DICTIONARY,
        pa.large_binary(): PageKind.BINARY,
        pa.large_list(pa.struct([("a", pa.int8())])): PageKind.LIST,
        pa.list_(pa.int8()): PageKind.LIST,
    }
    for kind, expected in kinds.items():
        assert page_kind(Schema.from_arrow(pa.schema([("c", kind)])).fields[0]) is expected
    assert bits_per_row(pa.list_(pa.list_(pa.bool_(), 3), 5)) == 15
    with pytest.raises(UnsupportedError, match="'c'"):
        page_kind(Field("c", 0, "fixed_size_list:string:2"))


# -- dictionaries of datasets ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [pa.string(), pa.large_binary(), pa.int64(), pa.uint64()], ids=str)
def test_small_dictionaries_join_a_large_one(kind: pa.DataType, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    text = kind in (pa.string(), pa.large_binary())
    numbers = [rng.integers(0, 3000, size) for size in (2500, 7, 40, 900, 3, 2500, 1)]
    arrays = [pa.array(drawn).cast(pa.string()).cast(kind) if text else pa.array(drawn, kind) for drawn in numbers]
    arrays.append(pa.array([None, None], kind))
    coded = [values.dictionary_encode() for values in arrays]
    batches = [pa.record_batch([values], ["d"]) for values in coded]
    whole = pa.RecordBatchReader.from_batches(batches[0].schema, batches)
    if text:
        lance_dataset.write_dataset(whole, tmp_path / "t", data_storage_version="legacy")
    else:
        with pytest.warns(UserWarning, match="read as its first value"):
            lance_dataset.write_dataset(whole, tmp_path / "t", data_storage_version="legacy")
    decoded = lance_dataset.dataset(tmp_path / "t").to_table()["d"].combine_chunks().dictionary_decode().to_pylist()
    expected = pa.concat_arrays(arrays).to_pylist()
    assert decoded == (expected if text else [expected[0] if value is None else value for value in expected])
    theirs = lance.dataset(str(tmp_path / "t")).to_table()["d"].combine_chunks().dictionary_decode()
    assert theirs.to_pylist() == decoded


def test_dictionaries_that_are_not_text_are_refused(tmp_path: Path) -> None:
    first = pa.record_batch([pa.array(["a", "b"] * 100).dictionary_encode()], ["d"])
    lance_dataset.write_dataset(pa.Table.from_batches([first]), tmp_path / "t", data_storage_version="legacy")
    broken = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")])
    batch = pa.record_batch([pa.DictionaryArray.from_arrays(pa.array([0], pa.int32()), broken)], ["d"])
    with pytest.raises(SchemaError, match="not a valid Arrow array"):
        lance_dataset.write_dataset(pa.Table.from_batches([batch]), tmp_path / "t", mode="append")


def test_dictionaries_are_read_without_the_rest_of_the_file(tmp_path: Path) -> None:
    table = pa.table({"d": pa.array(["x", "y"] * 50).dictionary_encode(), "s": ["z" * 5000] * 100})
    file = write_dataset_file(tmp_path / "t", table)
    store, path = resolve(str(file), {"mmap": "false"})
    source = store.open_input(path)
    sizes, read = [], source.read

    def counted(offset: int, length: int) -> pa.Buffer:
        sizes.append(length)
        return read(offset, length)

    source.read = counted
    schema: Schema = DataFileReader(source).schema
    assert schema.fields[0].dictionary_values.to_pylist() == ["x", "y"]
    assert sum(sizes) < 5000
