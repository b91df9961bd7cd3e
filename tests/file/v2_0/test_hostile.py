"""Tests of forged pages of 2.0 in encodings that only old releases wrote: refused without large allocations."""

from __future__ import annotations

import copy
import random
import struct
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.files.file_parts import take_apart_file
from support.pages import array_page as ap
from support.pages.array_page import TreeColumn, TreePage, write_columns
from support.pages.array_page_cases import (
    BLOB,
    CASES,
    CODED,
    CODES,
    INTS,
    ITEMS,
    LIST,
    PAIR,
    ROWS,
    WORDS,
    Case,
    blocks,
    u64,
)

from lance_dataset import file
from lance_dataset._proto import encodings_pb2 as pb
from lance_dataset.errors import CorruptFileError, LanceError

pytestmark = pytest.mark.usefixtures("little_memory")

HUGE = 2**31


def outcomes(path: Path, rows: Sequence[int]) -> list[LanceError]:
    """Return the errors of all ways to read; a way without an error must return valid arrays."""
    found: list[LanceError] = []
    for options in (None, {"mmap": "false"}):
        ways: list[Callable[[file.LanceFileReader], Any]] = [
            lambda reader: reader.read_all(batch_size=1 << 20).to_table(),
            lambda reader: reader.read_range(1, max(min(2, reader.num_rows() - 1), 0)).to_table(),
            lambda reader: reader.take_rows([row for row in rows if row < reader.num_rows()]).to_table(),
        ]
        for way in ways:
            try:
                way(file.LanceFileReader(path, options)).validate(full=True)
            except LanceError as error:
                found.append(error)
    return found


def refused(
    tmp_path: Path, kind: pa.DataType, encoding: pb.ArrayEncoding, buffers: Sequence[bytes], length: int, said: str
) -> None:
    path = ap.write_page(tmp_path / "a.lance", pa.field("a", kind), encoding, buffers, length)
    with pytest.raises(CorruptFileError, match=said) as caught:
        file.LanceFileReader(path).read_all(batch_size=1 << 40).to_table()
    assert "column 0 ('a')" in str(caught.value)
    assert len(outcomes(path, [length - 1, 0])) >= 2


FSST_ENDS = ap.binary(ap.flat(64), ap.flat(8, 1), 100)

LIES: dict[str, tuple[pa.DataType, pb.ArrayEncoding, list[bytes], int, str]] = {
    "short bit stream": (pa.int32(), ap.bitpacked(5, 32), [b"\xe1\x1f"], 5, "need 4"),
    "short blocks": (pa.uint16(), ap.bitpacked_blocks(3, 16), [bytes(383)], 5, "need 384"),
    "width above the type": (pa.int8(), ap.bitpacked(9, 8), [bytes(9)], 5, "packed into 9"),
    "width 0": (pa.int8(), ap.bitpacked(0, 8), [bytes(9)], 5, "packed into 0"),
    "an invalid bit width": (pa.int8(), ap.bitpacked_blocks(3, 24), [bytes(999)], 5, "24 bits"),
    "another type": (pa.int64(), ap.bitpacked(5, 32), [bytes(9)], 5, "do not fit the type int64"),
    "blocks of a string": (pa.string(), ap.bitpacked_blocks(5, 32), [bytes(999)], 5, "does not fit"),
    "many packed": (pa.int64(), ap.bitpacked(5, 64), [bytes(9)], HUGE, "need"),
    "many in blocks": (pa.int64(), ap.bitpacked_blocks(5, 64), [bytes(640)], HUGE, "need"),
    "many short strings": (pa.string(), ap.fixed_size_binary(ap.flat(8), 1), [bytes(9)], HUGE, "need"),
    "many codes": (pa.string(), ap.fsst(CODED, WORDS), CODES, HUGE, "need"),
    "many zeros": (pa.int64(), ap.bitpacked_blocks(0, 64), [], HUGE, "more than a page can hold"),
    "many empty strings": (pa.string(), ap.fixed_size_binary(ap.flat(8), 0), [b""], HUGE, "more than a page can hold"),
    "short strings": (pa.string(), ap.fixed_size_binary(ap.flat(8), 3), [b"aabb"], 2, "need 6"),
    "wide strings": (pa.string(), ap.fixed_size_binary(ap.flat(8), 2**32 - 1), [b"aabb"], 2, "need|2\\*\\*31"),
    "strings of other values": (pa.string(), ap.fixed_size_binary(ap.flat(24), 2), [b"aabb"], 2, "24 bits"),
    "strings of nulls": (
        pa.string(),
        ap.fixed_size_binary(ap.some_nulls(ap.flat(1), ap.flat(8, 1)), 2),
        [b"\1", b"aabb"],
        2,
        "without nulls",
    ),
    "not text": (pa.string(), ap.fixed_size_binary(ap.flat(8), 2), [b"\xc3\xa9\xc3a"], 2, "UTF-8"),
    "text in two": (pa.string(), ap.fixed_size_binary(ap.flat(8), 1), [b"\xc3\xa9"], 2, "UTF-8"),
    "equal numbers": (pa.int16(), ap.fixed_size_binary(ap.flat(8), 2), [b"aabb"], 2, "does not fit"),
    "no table": (pa.string(), ap.fsst(CODED, b""), CODES, 3, "symbol table"),
    "short table": (pa.string(), ap.fsst(CODED, WORDS[:-1]), CODES, 3, "symbol table"),
    "table of others": (pa.string(), ap.fsst(CODED, bytes(2312)), CODES, 3, "symbol table"),
    "no symbol": (pa.string(), ap.fsst(CODED, WORDS), [CODES[0], b"\x00\x02\xff\x78"], 3, "symbol|code"),
    "open escape": (pa.string(), ap.fsst(CODED, WORDS), [CODES[0], b"\x00\x01\x00\xff"], 3, "escape|FSST|code"),
    "escape across values": (pa.string(), ap.fsst(FSST_ENDS, WORDS), [u64(1, 2), b"\xff\x41"], 2, "escape|FSST|code"),
    "symbols that are not text": (
        pa.string(),
        ap.fsst(FSST_ENDS, WORDS),
        [u64(2, 4), b"\xff\xc3\xff\xa9"],
        2,
        "UTF-8",
    ),
    "codes of numbers": (pa.int32(), ap.fsst(CODED, WORDS), CODES, 3, "does not fit"),
    "codes that are numbers": (pa.string(), ap.fsst(ap.flat(32), WORDS), [INTS], 3, "does not fit"),
    "ends that decrease": (pa.string(), ap.fsst(FSST_ENDS, WORDS), [u64(2, 1), b"\0\0"], 2, "end|offset|decrease"),
    "packed ends past the bytes": (
        pa.string(),
        ap.binary(ap.bitpacked_blocks(3, 64), ap.flat(8, 1), 100),
        [blocks([1, 5], 64, 3), b"xyz"],
        2,
        "page 0",
    ),
    "no ends": (pa.string(), ap.binary(ap.all_nulls(), ap.all_nulls(), 1), [], 2, "have no ends"),
    "ends but no bytes": (pa.string(), ap.binary(ap.flat(64), ap.all_nulls(), 9), [u64(1, 2)], 2, "page 0"),
    "wide codes outside": (
        pa.string(),
        ap.dictionary(ap.flat(16), ITEMS, 2),
        [b"\1\0\3\0", u64(1, 3), b"abb"],
        2,
        "dictionary index 3 of 2",
    ),
    "items behind items": (
        pa.string(),
        ap.dictionary(ap.flat(8), ap.dictionary(ap.flat(8), ITEMS, 2), 2),
        [b"\1\0", u64(1, 3), b"abb"],
        2,
        "dictionary themselves",
    ),
    "signed codes": (
        pa.dictionary(pa.int8(), pa.string()),
        ap.dictionary(ap.bitpacked(2, 8, signed=True), ITEMS, 2),
        [b"\x0e", u64(1, 3), b"abb"],
        2,
        "outside its 2 items",
    ),
    "a list of none": (pa.list_(pa.int8()), ap.list_of(ap.all_nulls(), 1, 0), [], 2, "have no ends|needs column"),
    "unknown owner": (
        pa.int32(),
        pb.ArrayEncoding(flat=pb.Flat(bits_per_value=32, buffer=pb.Buffer(buffer_type=7))),  # type: ignore[arg-type]
        [INTS],
        3,
        "unknown type 7",
    ),
    "no such column buffer": (pa.int32(), ap.flat(32, ("column", 0)), [INTS], 3, "column buffer 0 of 0"),
    "no such global buffer": (pa.int32(), ap.flat(32, ("file", 5)), [INTS], 3, "file buffer 5 of 1"),
}


@pytest.mark.parametrize("name", LIES)
def test_lies(tmp_path: Path, name: str) -> None:
    kind, encoding, buffers, length, said = LIES[name]
    if pa.types.is_list(kind):
        schema = pa.schema([pa.field("a", kind)])
        columns = [TreeColumn([TreePage(encoding, buffers, length)]), TreeColumn([])]
        path = write_columns(tmp_path / "a.lance", schema, columns, length)
        with pytest.raises(CorruptFileError, match=said):
            file.LanceFileReader(path).read_all().to_table()
        return
    refused(tmp_path, kind, encoding, buffers, length, said)


PACKED_LIES: dict[str, tuple[list[pb.ArrayEncoding], bytes, int, str]] = {
    "short rows": ([ap.flat(8), ap.flat(32)], ROWS[:-1], 2, "need 10"),
    "many rows": ([ap.flat(8), ap.flat(32)], ROWS, HUGE, "need"),
    "fewer children": ([ap.flat(8)], ROWS, 2, "do not fit the struct"),
    "other widths": ([ap.flat(32), ap.flat(8)], ROWS, 2, "do not fit the struct"),
}


@pytest.mark.parametrize("name", PACKED_LIES)
def test_packed_rows_that_lie(tmp_path: Path, name: str) -> None:
    inner, rows, length, said = PACKED_LIES[name]
    columns = [TreeColumn([TreePage(ap.packed_struct(inner), [rows], length)])]
    path = write_columns(tmp_path / "a.lance", pa.schema([pa.field("s", PAIR)]), columns, length)
    with pytest.raises(CorruptFileError, match=said):
        file.LanceFileReader(path).read_all(batch_size=1 << 40).to_table()
    strings = pa.struct([("a", pa.int8()), ("b", pa.string())])
    write_columns(path, pa.schema([pa.field("s", strings)]), columns, length)
    with pytest.raises(CorruptFileError, match="string is in a packed row"):
        file.LanceFileReader(path).read_all().to_table()


@pytest.mark.parametrize("entry", [(1, 2**40), (2**63, 5), (2**64 - 1, 1), (10**6, 1)])
def test_blobs_outside_the_file(tmp_path: Path, entry: tuple[int, int]) -> None:
    page = TreePage(ap.packed_struct([ap.flat(64), ap.flat(64)]), [u64(*entry)], 1)
    schema = pa.schema([pa.field("b", pa.large_binary(), metadata=BLOB)])
    path = write_columns(tmp_path / "a.lance", schema, [TreeColumn([page], encoding=ap.BLOB)], 1)
    assert len(outcomes(path, [0])) >= 4


def test_pages_that_share_buffers_of_the_column(tmp_path: Path) -> None:
    """Pages that share buffers of the column are refused.

    Each costs a few bytes and would have as many values as the buffer.
    """
    content = bytes(400_000)
    page = TreePage(ap.flat(32, ("column", 0)), [], 100_000)
    schema = pa.schema([pa.field("a", pa.int32())])
    path = write_columns(tmp_path / "a.lance", schema, [TreeColumn([page] * 2000, [content])], 100_000 * 2000)
    with pytest.raises(CorruptFileError, match="share more bytes"):
        file.LanceFileReader(path).read_all().to_table()
    few = TreeColumn([TreePage(ap.flat(32, ("column", 0)), [], 2)] * 2, [INTS])
    write_columns(path, schema, [few], 4)
    assert file.LanceFileReader(path).read_all().to_table()["a"].to_pylist() == [1, 2, 1, 2]


def test_column_encodings_inside_each_other(tmp_path: Path) -> None:
    encoding = ap.VALUES
    for _ in range(40):
        encoding = pb.ColumnEncoding(zone_index=pb.ZoneIndex(inner=encoding))
    for _ in range(2):
        columns = [TreeColumn([TreePage(ap.flat(32), [INTS], 3)], encoding=encoding)]
        path = write_columns(tmp_path / "a.lance", pa.schema([pa.field("a", pa.int32())]), columns, 3)
        outcomes(path, [0])
        encoding = pb.ColumnEncoding(zone_index=pb.ZoneIndex())


def test_many_pages_take_no_longer_each(tmp_path: Path) -> None:
    def seconds(count: int) -> float:
        page = TreePage(ap.fsst(CODED, WORDS), CODES, 3)
        schema = pa.schema([pa.field("a", pa.string())])
        path = write_columns(tmp_path / "a.lance", schema, [TreeColumn([page] * count)], 3 * count)
        reader = file.LanceFileReader(path)
        start = time.perf_counter()
        assert reader.read_all(batch_size=1 << 30).to_table().num_rows == 3 * count
        for row in range(0, 3 * count, count // 20):
            assert reader.take_rows([row]).to_table().num_rows == 1
        return time.perf_counter() - start

    seconds(100)
    assert seconds(4000) < 30 * seconds(400)


# -- damage ----------------------------------------------------------------------------------------------------------


def damaged(rng: random.Random, content: bytes) -> bytes:
    if not content:
        return content
    way = rng.randrange(4)
    at = rng.randrange(len(content))
    if way == 0:
        return content[:at]
    if way == 1:
        return content[:at] + bytes([rng.randrange(256)]) + content[at + 1 :]
    if way == 2 and len(content) >= 8:
        at = rng.randrange(len(content) - 7)
        value = rng.choice([0, 1, 255, 2**31, 2**32, 2**40, 2**63, 2**64 - 1])
        return content[:at] + struct.pack("<Q", value) + content[at + 8 :]
    return content[:at] + content[at + 1 :]


@pytest.mark.parametrize("name", CASES)
def test_damage(tmp_path: Path, name: str) -> None:
    """Any change of buffers, lengths or descriptions gives valid arrays, or an error of this package."""
    case: Case = CASES[name]
    rng = random.Random(name)
    good = take_apart_file(case.write(tmp_path / "a.lance"))
    path = tmp_path / "bad.lance"
    for _ in range(60):
        parts = copy.deepcopy(good)
        column = rng.choice(parts.columns)
        if not column.pages:
            continue
        page = rng.choice(column.pages)
        way = rng.randrange(5)
        if way == 0:
            page.length = rng.choice([0, 1, page.length + 1, 2**20, 2**33, 2**63])
        elif way == 1:
            page.encoding.direct.encoding = damaged(rng, page.encoding.direct.encoding)
        elif way == 2 and page.buffer_sizes:
            number = rng.randrange(len(page.buffer_sizes))
            page.buffer_sizes[number] = rng.choice([0, 1, max(page.buffer_sizes[number] - 1, 0), 2**40])
        elif way == 3:
            parts.descriptor.length = rng.choice([0, 1, 10, 2**40])
        else:
            parts.data = damaged(rng, parts.data) if rng.random() < 0.3 else flipped(rng, parts.data)
        path.write_bytes(parts.assemble())
        outcomes(path, [2, 0, 1, 1])


def flipped(rng: random.Random, content: bytes) -> bytes:
    """Change bytes without a change of the length, so that buffers stay in place."""
    out = bytearray(content)
    for _ in range(rng.randrange(1, 4)):
        if out:
            out[rng.randrange(len(out))] = rng.randrange(256)
    return bytes(out)


def test_lists_of_bytes_that_are_nulls(tmp_path: Path) -> None:
    items = ap.some_nulls(ap.flat(1), ap.flat(8, 1))
    columns = [
        TreeColumn([TreePage(LIST, [u64(2, 6, 3)], 3)]),
        TreeColumn([TreePage(items, [b"\5", b"xyz"], 3)]),
    ]
    path = write_columns(tmp_path / "a.lance", pa.schema([pa.field("a", pa.string())]), columns, 3)
    with pytest.raises(CorruptFileError, match="declared not nullable"):
        file.LanceFileReader(path).read_all().to_table()


def test_dictionary_of_nulls_in_a_column_of_numbers(tmp_path: Path) -> None:
    """A dictionary of nulls in a column of numbers is refused: only string columns may have one without the type."""
    path = tmp_path / "bad.lance"
    numbers = struct.pack("<3i", 1, 2, 3)
    encoding = ap.dictionary(ap.all_nulls(), ap.no_nulls(ap.flat(32)), 3)
    ap.write_page(path, pa.field("a", pa.int32()), encoding, [numbers], 3)
    with pytest.raises(CorruptFileError, match="does not fit the type int32"):
        file.LanceFileReader(path).read_all().to_table()
