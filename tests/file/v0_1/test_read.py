"""Tests of legacy (0.1) files from an encoder of the tests, which uses every freedom that the format allows."""

from __future__ import annotations

import random
import struct
import threading
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.arrays.random_arrays import FLAT_TYPES, random_array, tables
from support.files.legacy_files import open_file, write_dataset_file
from support.files.legacy_model import LegacyOptions, as_legacy, encode_legacy
from support.tables.equality import assert_same

import lance_dataset as lance
from lance_dataset._proto import file_pb2
from lance_dataset.errors import CorruptFileError, LanceError
from lance_dataset.file import LanceFileReader
from lance_dataset.file.v0_1.dictionaries import write_dictionaries
from lance_dataset.file.v0_1.read.columns import open_column
from lance_dataset.io.resolve import resolve
from lance_dataset.read import fragment_reader
from lance_dataset.table.fragment import DataFile, Fragment
from lance_dataset.table.manifest import Manifest, encode_manifest
from lance_dataset.types.schema import Schema

_FIXED = {name: kind for name, kind in FLAT_TYPES.items() if "string" not in name and not name.endswith("binary")}
_NESTED = {
    "list": pa.list_(pa.int16()),
    "list_of_string": pa.list_(pa.string()),
    "large_list": pa.large_list(pa.large_binary()),
    "list_of_list": pa.list_(pa.large_list(pa.list_(pa.bool_()))),
    "struct": pa.struct([("a", pa.int8()), ("s", pa.string()), ("n", pa.null()), ("e", pa.struct([]))]),
    "list_of_struct": pa.list_(pa.struct([("l", pa.list_(pa.string())), ("v", pa.list_(pa.float32(), 4))])),
    "struct_of_list": pa.struct([("l", pa.large_list(pa.struct([("x", pa.decimal128(9, 2))])))]),
    "list_of_null": pa.list_(pa.null()),
    "required_items": pa.list_(pa.field("element", pa.string(), nullable=False)),
    "fixed_list_of_bool": pa.list_(pa.bool_(), 3),
    "fixed_list_of_fixed_list": pa.list_(pa.list_(pa.decimal128(5, 1), 2), 3),
    "fixed_list_of_binary": pa.list_(pa.binary(3), 2),
}
_TYPES = {**FLAT_TYPES, **_NESTED, "null": pa.null(), "fixed_list_of_int": pa.list_(pa.int32(), 7)}
_LIBERTIES = {
    "plain": LegacyOptions(),
    "aligned": LegacyOptions(align=64),
    "odd": LegacyOptions(gap=1, minor=0),
    "gaps": LegacyOptions(gap=37, first_offset=2, excess=3, minor=1),
    "bare": LegacyOptions(with_manifest=False),
}


def batches_of(table: pa.Table, sizes: list[int]) -> list[pa.RecordBatch]:
    ends = np.cumsum([0, *sizes]).tolist()
    whole = table.combine_chunks()
    return [
        pa.RecordBatch.from_arrays(
            [
                column.chunk(0).slice(start, stop - start) if column.num_chunks else column.type
                for column in whole.columns
            ],
            schema=table.schema,
        )
        for start, stop in pairwise(ends)
    ]


def write_dataset(
    store: object, root: str, schema: Schema, files: list[tuple[tuple[int, ...], bytes]], rows: int
) -> None:
    """Write a dataset of one fragment with these files, each of which has fields by their ids."""
    listed = []
    for number, (fields, content) in enumerate(files):
        output = store.open_output(f"{root}/data/{number}.lance")
        output.write(content)
        output.close()
        listed.append(DataFile(f"{number}.lance", fields, (), 0, 2))
    fragment = Fragment(0, tuple(listed), physical_rows=rows)
    blocks, placed = write_dictionaries(schema, 0)
    manifest = Manifest(1, placed, (fragment,), "0.1", legacy_head=b"".join(blocks))
    store.put(f"{root}/_versions/1.manifest", encode_manifest(manifest))


def check_dataset(dataset: lance.LanceDataset, expected: pa.Table, seed: int = 0) -> None:
    assert_same(dataset.to_table(), expected)
    assert dataset.count_rows() == expected.num_rows
    for size in (1, 7, 1000):
        assert_same(pa.Table.from_batches(dataset.to_batches(batch_size=size), dataset.schema), expected)
    if expected.num_rows:
        rng = np.random.default_rng(seed)
        for rows in (rng.integers(0, expected.num_rows, 50), [0], [expected.num_rows - 1], []):
            assert_same(dataset.take(rows), expected.take(pa.array(rows, pa.int64())))
        start = int(rng.integers(0, expected.num_rows))
        assert_same(dataset.to_table(offset=start, limit=9), expected.slice(start, 9))


def kept(table: pa.Table) -> pa.Table:
    return pa.table([as_legacy(table[name], table.schema.field(name)) for name in table.column_names], table.schema)


@pytest.mark.parametrize("liberty", _LIBERTIES)
@pytest.mark.parametrize("mapped", ["true", "false"])
def test_every_type(tmp_path: Path, liberty: str, mapped: str) -> None:
    rng = np.random.default_rng(1)
    sizes = [5, 0, 90, 1, 33]
    table = pa.table({name: random_array(kind, sum(sizes), 0.3, rng) for name, kind in _TYPES.items()})
    schema = Schema.from_arrow(table.schema)
    content = encode_legacy(schema, batches_of(table, sizes), _LIBERTIES[liberty])
    store, root = resolve(str(tmp_path / "t"))
    ids = tuple(node.id for node in schema.walk())
    write_dataset(store, root, schema, [(ids, content)], table.num_rows)
    check_dataset(lance.dataset(tmp_path / "t", storage_options={"mmap": mapped}), kept(table))


@pytest.mark.parametrize("mapped", ["true", "false"])
def test_single_file(tmp_path: Path, mapped: str) -> None:
    """The schema embedded in a file suffices to read it, whatever its first field id."""
    rng = np.random.default_rng(2)
    table = pa.table({name: random_array(kind, 40, 0.2, rng) for name, kind in _TYPES.items()})
    for first in (0, 5):
        schema = Schema.from_arrow(table.schema, max_field_id=first - 1)
        for from_zero in (False, True):
            path = tmp_path / f"{first}{from_zero}.lance"
            path.write_bytes(encode_legacy(schema, batches_of(table, [20, 20]), LegacyOptions(from_zero=from_zero)))
            reader = LanceFileReader(path, storage_options={"mmap": mapped})
            assert_same(reader.read_all().to_table(), kept(table))
            assert_same(reader.take_rows([39, 3, 20]).to_table(), kept(table).take([39, 3, 20]))
            assert reader.num_rows() == 40


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_random_tables(data: st.DataObject) -> None:
    """Random tables over one or two files, in batches of any sizes, with any first field id, are read."""
    table = data.draw(tables())
    kinds = [kind for kind in table.schema.types if not pa.types.is_dictionary(kind)]
    if len(kinds) < table.num_columns or "dictionary" in str(table.schema):
        table = table.select([i for i, kind in enumerate(table.schema.types) if "dictionary" not in str(kind)])
    if table.num_columns == 0:
        return
    table = table.add_column(0, "first", pa.array(range(table.num_rows), pa.int32()))
    cuts = sorted(data.draw(st.lists(st.integers(0, table.num_rows), max_size=3)))
    sizes = np.diff([0, *cuts, table.num_rows]).tolist()
    schema = Schema.from_arrow(table.schema)
    second = data.draw(st.integers(1, len(schema.fields)))
    old = data.draw(st.booleans())
    options = LegacyOptions(align=data.draw(st.sampled_from([1, 8])), gap=data.draw(st.integers(0, 3)))
    files = []
    for fields in (schema.fields[:second], schema.fields[second:]):
        if fields:
            part = table.select([field.name for field in fields])
            given_options = replace(options, from_zero=old)
            content = encode_legacy(Schema(fields), batches_of(part, sizes), given_options)
            files.append((tuple(node.id for field in fields for node in field.walk()), content))
    session = lance.Session()
    store, root = resolve("memory://legacy", session=session)
    write_dataset(store, root, schema, files, table.num_rows)
    check_dataset(lance.dataset("memory://legacy", session=session), kept(table))


def test_dictionary() -> None:
    """Dictionaries of strings and integers are read, also in structs and lists; an empty value is null."""
    words = pa.array(["b", "", "zebra", "a"])
    numbers = pa.array([7, 5, 1000], pa.int64())
    table = pa.table(
        {
            "word": pa.DictionaryArray.from_arrays(pa.array([0, 1, 3, 2, 0], pa.int8()), words),
            "number": pa.DictionaryArray.from_arrays(pa.array([2, 1, 0, 0, 1], pa.uint16()), numbers),
        }
    )
    schema = Schema.from_arrow(table.schema)
    values = {"word": words, "number": numbers}
    schema = Schema(tuple(replace(field, dictionary_values=values[field.name]) for field in schema.fields))
    content = encode_legacy(schema, batches_of(table, [2, 3]))
    session = lance.Session()
    store, root = resolve("memory://dictionary", session=session)
    ids = tuple(node.id for node in schema.walk())
    write_dataset(store, root, schema, [(ids, content)], 5)
    dataset = lance.dataset("memory://dictionary", session=session)
    assert dataset.schema == table.schema
    assert dataset.to_table().to_pydict() == {"word": ["b", None, "a", "zebra", "b"], "number": [1000, 5, 7, 7, 5]}
    assert dataset.take([4, 1]).to_pydict() == {"word": ["b", None], "number": [5, 5]}
    store.put(f"{root}/x.lance", content)


def test_golden_file(tmp_path: Path) -> None:
    """A whole file of pylance 0.7.5 (section 8.1 of the chapter) is read."""
    content = bytes.fromhex(GOLDEN)
    (tmp_path / "golden.lance").write_bytes(content)
    reader = LanceFileReader(tmp_path / "golden.lance")
    assert reader.read_all().to_table().to_pydict() == {
        "b": [True, False, True],
        "s": ["ab", None, None],
        "l": [[1, 2], [], [3]],
        "d": ["yz", "x", "yz"],
    }
    table = pa.table(
        {
            "b": [True, None, True],
            "s": ["ab", "", None],
            "l": pa.array([[1, 2], None, [3]], pa.list_(pa.int16())),
            "d": pa.DictionaryArray.from_arrays(pa.array([1, 0, 1], pa.int8()), ["x", "yz"]),
        }
    )
    fields = Schema.from_arrow(table.schema).fields
    values = pa.array(["x", "yz"])
    schema = Schema((*fields[:3], replace(fields[3], dictionary_values=values)))
    encoded = encode_legacy(schema, batches_of(table, [3]), LegacyOptions(minor=1))
    assert len(encoded) >= len(content) - 40  # the dictionary lies behind the page table in the reference's file


GOLDEN = """
0561620100000000000000030000000000000003000000000000000300000000
0000000000000002000000020000000300000001000200030001000100000000
0000000003000000000000000300000000000000030000000000000023000000
0000000004000000000000003300000000000000030000000000000039000000
00000000030000000000000078797a8c000000000000008d000000000000008f
00000000000000a20000000a1812016220ffffffffffffffffff012a04626f6f
6c300138010a1c120173180120ffffffffffffffffff012a06737472696e6730
0138020a1a12016c180220ffffffffffffffffff012a046c697374300138010a
1512046974656d180320022a05696e743136300138010a33120164180420ffff
ffffffffffffff012a16646963743a737472696e673a696e74383a66616c7365
300138034205088f01100218010900000008a70112020003183c4d0100000000
0000000001004c414e43"""


def test_missing_column_and_partial_struct() -> None:
    """A field that no file has is null, and a struct may be spread over files."""
    table = pa.table({"s": pa.array([{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]), "c": pa.array([1, 2])})
    schema = Schema.from_arrow(table.schema)
    struct_, other = schema.fields
    halves = [Schema((replace(struct_, children=(child,)),)) for child in struct_.children]
    contents = [
        encode_legacy(half, [pa.record_batch([pa.array(rows, half.fields[0].storage_type)], ["s"])])
        for half, rows in zip(halves, ([{"a": 1}, {"a": 2}], [{"b": "x"}, {"b": "y"}]), strict=True)
    ]
    session = lance.Session()
    store, root = resolve("memory://partial", session=session)
    ids = [tuple(node.id for node in half.walk()) for half in halves]
    write_dataset(store, root, schema, [(ids[0], contents[0]), (ids[1][1:], contents[1])], 2)
    dataset = lance.dataset("memory://partial", session=session)
    expected = pa.table({"s": table["s"], "c": pa.nulls(2, pa.int64())})
    check_dataset(dataset, expected)
    assert other.id == 3


# -- files that lie ------------------------------------------------------------------------------------------------


def _small() -> tuple[Schema, bytes]:
    table = pa.table(
        {
            "i": pa.array([1, 2, 3], pa.int32()),
            "s": pa.array(["ab", "c", "def"]),
            "l": pa.array([[1], [2, 3], []], pa.list_(pa.int16())),
        }
    )
    schema = Schema.from_arrow(table.schema)
    return schema, encode_legacy(schema, batches_of(table, [2, 1]))


def _metadata(content: bytes) -> tuple[int, file_pb2.Metadata]:
    (position,) = struct.unpack("<q", content[-16:-8])
    (length,) = struct.unpack("<I", content[position : position + 4])
    return position, file_pb2.Metadata.FromString(content[position + 4 : position + 4 + length])


def _with_metadata(content: bytes, message: file_pb2.Metadata) -> bytes:
    encoded = message.SerializeToString()
    body = content[:-16]
    return body + struct.pack("<I", len(encoded)) + encoded + struct.pack("<q", len(body)) + content[-8:]


def _set_cell(content: bytes, field_id: int, batch: int, position: int | None, length: int | None) -> bytes:
    message = _metadata(content)[1]
    at = message.page_table_position + (field_id * 2 + batch) * 16
    old = struct.unpack("<qq", content[at : at + 16])
    new = (old[0] if position is None else position, old[1] if length is None else length)
    return content[:at] + struct.pack("<qq", *new) + content[at + 16 :]


def _set_page(content: bytes, field_id: int, batch: int, value: bytes) -> bytes:
    at = _metadata(content)[1].page_table_position + (field_id * 2 + batch) * 16
    (position,) = struct.unpack("<q", content[at : at + 8])
    return content[:position] + value + content[position + len(value) :]


def _edit(**changes: object) -> object:
    def edit(content: bytes) -> bytes:
        message = _metadata(content)[1]
        for name, value in changes.items():
            if isinstance(value, list):
                del getattr(message, name)[:]
                getattr(message, name).extend(value)
            else:
                setattr(message, name, value)
        return _with_metadata(content, message)

    return edit


LIES = {
    "too short": lambda content: content[-10:],
    "other magic": lambda content: content[:-4] + b"LANX",
    "metadata before the file": lambda content: content[:-16] + struct.pack("<q", -1) + content[-8:],
    "metadata behind the end": lambda content: content[:-16] + struct.pack("<q", len(content) - 18) + content[-8:],
    "metadata far away": lambda content: content[:-16] + struct.pack("<q", 2**62) + content[-8:],
    "batches not from 0": _edit(batch_offsets=[1, 2, 3]),
    "batches descend": _edit(batch_offsets=[0, 3, 2]),
    "page table outside": _edit(page_table_position=2**63),
    "page table at the end": _edit(page_table_position=10_000),
    "manifest outside": _edit(manifest_position=2**64 - 1),
    "page before the file": lambda content: _set_cell(content, 0, 0, -8, None),
    "page behind the file": lambda content: _set_cell(content, 0, 1, 2**62, None),
    "page past the end": lambda content: _set_cell(content, 0, 1, len(content) - 2, None),
    "page too short": lambda content: _set_cell(content, 0, 0, None, 1),
    "page too long": lambda content: _set_cell(content, 0, 0, None, 2**60),
    "strings too short": lambda content: _set_cell(content, 1, 0, None, 1),
    "strings outside": lambda content: _set_page(content, 1, 0, struct.pack("<3q", 0, 2**40, 2**40)),
    "strings descend": lambda content: _set_page(content, 1, 0, struct.pack("<3q", 5, 3, 4)),
    "strings negative": lambda content: _set_page(content, 1, 0, struct.pack("<3q", -5, 3, 4)),
    "no text": lambda content: content.replace(b"ab", b"\xff\xfe", 1),
    "lists too short": lambda content: _set_cell(content, 2, 0, None, 2),
    "lists descend": lambda content: _set_page(content, 2, 0, struct.pack("<3i", 2, 1, 3)),
    "lists negative": lambda content: _set_page(content, 2, 0, struct.pack("<3i", -1, 1, 3)),
    "lists beyond items": lambda content: _set_page(content, 2, 0, struct.pack("<3i", 0, 1, 400)),
    "lists far beyond items": lambda content: _set_page(content, 2, 0, struct.pack("<3i", 0, 1, 2**31 - 1)),
}


def _read_all_ways(path: Path, mapped: str) -> None:
    options = {"mmap": mapped}
    for read in (
        lambda: LanceFileReader(path, options).read_all().to_table().validate(full=True),
        lambda: LanceFileReader(path, options).take_rows([2, 0, 1]).to_table().validate(full=True),
    ):
        with pytest.raises(CorruptFileError, match=path.name):
            read()


@pytest.mark.parametrize("mapped", ["true", "false"])
@pytest.mark.parametrize("lie", LIES)
def test_lies(tmp_path: Path, lie: str, mapped: str) -> None:
    _, content = _small()
    path = tmp_path / "bad.lance"
    path.write_bytes(LIES[lie](content))
    _read_all_ways(path, mapped)


def test_a_row_of_a_lying_page_is_refused_only_where_it_lies(tmp_path: Path) -> None:
    """Random access to a damaged page fails only for the rows that are damaged."""
    _, content = _small()
    path = tmp_path / "bad.lance"
    path.write_bytes(_set_cell(content, 0, 1, len(content) - 2, None))
    assert LanceFileReader(path).take_rows([0, 1]).to_table().num_rows == 2
    with pytest.raises(CorruptFileError, match="'i'"):
        LanceFileReader(path).take_rows([2]).to_table()


def test_more_rows_than_pages_hold(tmp_path: Path) -> None:
    _, content = _small()
    path = tmp_path / "bad.lance"
    path.write_bytes(_edit(batch_offsets=[0, 2, 2**31 - 1])(content))
    with pytest.raises(CorruptFileError, match="batch 1: the page has 1 values"):
        LanceFileReader(path).read_all().to_table()


@pytest.mark.parametrize("ids", [(1, 0, 2, 3), (0, 0, 1, 2, 3), (0, 1, 2, 2, 3)])
def test_field_ids_must_ascend(ids: tuple[int, ...]) -> None:
    schema, content = _small()
    session = lance.Session()
    store, root = resolve("memory://ids", session=session)
    write_dataset(store, root, schema, [(ids, content)], 3)
    with pytest.raises(CorruptFileError, match="ascend"):
        lance.dataset("memory://ids", session=session).to_table()


def test_random_damage(tmp_path: Path) -> None:
    """Any changed bytes give a table or an error of this package."""
    rng = random.Random(4)
    table = pa.table({name: random_array(kind, 30, 0.3, np.random.default_rng(3)) for name, kind in _NESTED.items()})
    schema = Schema.from_arrow(table.schema)
    content = encode_legacy(schema, batches_of(table, [12, 12, 6]))
    path = tmp_path / "damaged.lance"
    for case in range(400):
        damaged = bytearray(content)
        tail = case % 2 == 0  # half of the damage changes tables and messages
        for _ in range(rng.choice([1, 1, 2, 8])):
            at = rng.randrange(len(damaged) // 2 if tail else 0, len(damaged))
            damaged[at] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
        path.write_bytes(damaged)
        for mapped in ("true", "false"):
            try:
                reader = LanceFileReader(path, storage_options={"mmap": mapped})
                if reader.num_rows() <= 1000:
                    reader.read_all().to_table()
                    reader.take_rows(range(reader.num_rows())).to_table()
            except LanceError:
                continue


@pytest.mark.parametrize("mapped", ["true", "false"])
@pytest.mark.parametrize("gap", [0, 1, 4])
def test_large_pages_stay_where_they_are(tmp_path: Path, gap: int, mapped: str) -> None:
    """Pages of wide values of a mapped file are not copied, unless they lie at odd addresses."""
    rng = np.random.default_rng(0)
    values = rng.random(300 * 2000).astype(np.float32)
    table = pa.table(
        {"v": pa.FixedSizeListArray.from_arrays(values, 2000), "b": pa.array([b"x" * 4000] * 300, pa.binary(4000))}
    )
    schema = Schema.from_arrow(table.schema)
    sizes = [140, 0, 140, 20]
    content = encode_legacy(schema, batches_of(table, sizes), LegacyOptions(gap=gap))
    store, root = resolve(str(tmp_path / "t"))
    write_dataset(store, root, schema, [((0, 1), content)], 300)
    dataset = lance.dataset(tmp_path / "t", storage_options={"mmap": mapped})
    before = pa.total_allocated_bytes()
    found = dataset.to_table()
    if mapped == "true" and gap != 1:
        assert found["v"].num_chunks == 3
        assert pa.total_allocated_bytes() - before < 100_000
    assert_same(found, table)
    check_dataset(dataset, table)
    assert_same(dataset.to_table(filter="b IS NOT NULL", offset=130, limit=40), table.slice(130, 40))
    dataset.delete("false")


# -- open files ----------------------------------------------------------------------------------------------------


def test_threads_share_the_open_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads share one open file; otherwise parts of a column could come from two files."""
    write_dataset_file(tmp_path / "t", pa.table({"l": [[1], [2, 3]]}))
    meeting, opening = threading.Barrier(2), fragment_reader.open_metadata

    def slow(*arguments: object, **options: object) -> object:
        meeting.wait(5)
        return opening(*arguments, **options)

    monkeypatch.setattr(fragment_reader, "open_metadata", slow)
    dataset, found = lance.dataset(tmp_path / "t"), []
    (reader,) = dataset.snapshot.reader.fragments
    threads = [threading.Thread(target=lambda: found.append(reader.stored(0)[0])) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 2
    assert found[0] is found[1]


def test_scans_let_go_of_large_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"i": np.arange(100_000), "s": ["y" * 30] * 100_000})
    opened = open_file(write_dataset_file(tmp_path / "t", table, max_rows_per_group=50_000))
    gone = []
    monkeypatch.setattr(type(opened.source), "discard", lambda _, offset, length: gone.append((offset, length)))
    for field in opened.schema.fields:
        column = open_column(field, lambda node: (opened, node.id), 100_000)
        for _ in range(2):
            assert column.read(0, 100_000) == table[field.name].combine_chunks()
        column.take(np.arange(0, 100_000, 2))
    assert len(gone) == 6  # pages of numbers one by one, text as a whole
    assert all(length >= 400_000 and 0 <= offset <= opened.source.size - length for offset, length in gone)
