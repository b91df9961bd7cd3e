"""Tests of contradictory pages of 2.1 and 2.2: each is refused without large allocations, with its place."""

from __future__ import annotations

import copy
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from support.pages.lance_page import Message, Page, fsst, general, pages_of, read_back, rle, variable, write_pages
from support.tables.equality import assert_same

from lance_dataset.errors import CorruptFileError, LanceError, UnsupportedError
from lance_dataset.file.standalone import LanceFileReader
from lance_dataset.file.structural.read.plain_pages import plain_taker

pytestmark = pytest.mark.usefixtures("little_memory")

Edit = Callable[[Message, list[bytes]], None]

_ROWS = 60
_TEXTS = [None if row % 7 == 3 else f"text {row}" for row in range(_ROWS)]
_ITEM = {"lance-encoding:structural-encoding": "fullzip"}
_PLAIN = {"lance-encoding:compression": "none", "lance-encoding:bss": "off"}
_PAIRS = pa.struct([("a", pa.int32()), ("b", pa.int16())])
_VECTORS = pa.list_(pa.float32(), 2)
_WIDE = [b"x" * 300, b"y" * 301]

#: Fields and values by name. The first two have raw levels, as the cases below change bytes in chunks.
_BASES: dict[str, tuple[pa.Field, list[object]]] = {
    "numbers": (pa.field("a", pa.int32(), metadata=_PLAIN), [1, 2, None]),
    "lists": (pa.field("a", pa.list_(pa.int32()), metadata=_PLAIN), [[1, 2], [], None, [None, 3]]),
    "long": (pa.field("a", pa.int64(), metadata=_PLAIN), [row * 10**15 for row in range(3000)]),
    "long lists": (pa.field("a", pa.list_(pa.int64())), [[row * 10**15] * (row % 3) for row in range(3000)]),
    "texts": (pa.field("a", pa.string(), metadata=_PLAIN), _TEXTS),
    "words": (pa.field("a", pa.string()), [f"word {row % 5}" for row in range(200)]),
    "bits": (pa.field("a", pa.int32()), [row % 500 for row in range(1024)]),
    "vectors": (pa.field("a", _VECTORS), [[1.0, None], [2.0, 3.0]] * 30),
    "pairs": (pa.field("a", _PAIRS, metadata={"packed": "true"}), [{"a": row, "b": 5} for row in range(_ROWS)]),
    "zip": (pa.field("a", pa.string(), metadata=_ITEM), ["ab", None, "c"]),
    "zipped numbers": (pa.field("a", pa.int32(), metadata=_ITEM), [5, None, 7]),
    "zipped lists": (pa.field("a", pa.list_(pa.binary())), [[_WIDE[0], None], [], None, [_WIDE[1]]]),
    "nulls": (pa.field("a", pa.list_(pa.int32())), [[None], [], None]),
    "constant": (pa.field("a", pa.int32()), [7, 7, 7]),
    "constant lists": (pa.field("a", pa.list_(pa.int32())), [[7], [], None]),
    "constant text": (pa.field("a", pa.string()), ["hello"] * 3),
    "blob": (pa.field("a", pa.large_binary(), metadata={"lance-encoding:blob": "true"}), [b"x" * 9, None, b""]),
}


def base_page(name: str) -> tuple[pa.Field, Page]:
    """Return a valid page of the reference in 2.2."""
    field, values = _BASES[name]
    array = pa.array(values, field.type)
    table = pa.table([array], schema=pa.schema([field]))
    [page] = pages_of(table["a"].chunk(0), "2.2", field.metadata)
    return field, page


def outcomes(path: Path, expected: pa.Table) -> list[LanceError]:
    """Return the errors of all ways to read; a way that skips the damaged part must return the right rows."""
    found: list[LanceError] = []
    for read in (
        lambda: LanceFileReader(path).read_all(batch_size=1 << 20).to_table(),
        lambda: LanceFileReader(path).read_all(batch_size=2).to_table(),
        lambda: LanceFileReader(path).take_rows(range(expected.num_rows)).to_table(),
    ):
        try:
            assert_same(read(), expected)
        except LanceError as error:
            found.append(error)
    return found


def u16(content: bytes, at: int, value: int) -> bytes:
    return content[:at] + struct.pack("<H", value) + content[at + 2 :]


def u32(content: bytes, at: int, value: int) -> bytes:
    return content[:at] + struct.pack("<I", value) + content[at + 4 :]


def u64(content: bytes, at: int, value: int) -> bytes:
    return content[:at] + struct.pack("<Q", value) + content[at + 8 :]


def buffer(number: int, change: Callable[[bytes], bytes]) -> Edit:
    """Return a damage that changes a buffer."""

    def edit(layout: Message, buffers: list[bytes]) -> None:
        buffers[number] = change(buffers[number])

    return edit


def field(path: str, value: object) -> Edit:
    """Return a damage that sets a field of the layout, or drops it (None)."""

    def edit(layout: Message, buffers: list[bytes]) -> None:
        *way, last = path.split(".")
        for step in way:
            layout = layout[step]
        if value is None:
            del layout[last]
        else:
            layout[last] = value

    return edit


def only_buffers(count: int) -> Edit:
    def edit(layout: Message, buffers: list[bytes]) -> None:
        buffers[:] = (buffers * 3)[:count]

    return edit


_MINI, _FULL, _CONSTANT = "mini_block_layout", "full_zip_layout", "constant_layout"

CASES: list[tuple[str, str, Edit]] = [
    # the descriptor
    ("numbers", "no layout", lambda layout, _: layout.clear()),
    ("numbers", "no value encoding", field(f"{_MINI}.value_compression", None)),
    ("numbers", "empty encoding", field(f"{_MINI}.value_compression", {})),
    ("numbers", "no layers", field(f"{_MINI}.layers", [])),
    ("numbers", "unknown layer", field(f"{_MINI}.layers", [7])),
    ("numbers", "nulls without a layer for them", field(f"{_MINI}.layers", [1])),
    ("numbers", "layer 0", field(f"{_MINI}.layers", [0])),
    ("numbers", "a list layer", field(f"{_MINI}.layers", [3, 4])),
    ("numbers", "text in an integer column", field(f"{_MINI}.value_compression", variable())),
    ("numbers", "another width", field(f"{_MINI}.value_compression", {"flat": {"bits_per_value": 64}})),
    ("numbers", "width 0", field(f"{_MINI}.value_compression", {"flat": {"bits_per_value": 0}})),
    ("numbers", "huge width", field(f"{_MINI}.value_compression", {"flat": {"bits_per_value": 2**63}})),
    ("numbers", "two value buffers", field(f"{_MINI}.num_buffers", 2)),
    ("numbers", "no value buffer", field(f"{_MINI}.num_buffers", 0)),
    ("numbers", "huge number of value buffers", field(f"{_MINI}.num_buffers", 2**64 - 1)),
    ("numbers", "more items", field(f"{_MINI}.num_items", 4)),
    ("numbers", "huge number of items", field(f"{_MINI}.num_items", 2**64 - 1)),
    ("numbers", "no items", field(f"{_MINI}.num_items", 0)),
    ("numbers", "split integers of 32 bits as 64", field(f"{_MINI}.value_compression", rle(64))),
    ("lists", "no repetition", field(f"{_MINI}.rep_compression", None)),
    ("lists", "layers of another type", field(f"{_MINI}.layers", [3])),
    ("lists", "levels above those of the layers", field(f"{_MINI}.layers", [1, 2])),
    ("texts", "symbol table too short", field(f"{_MINI}.value_compression", fsst(b"\0" * 10))),
    ("texts", "compressed by name only", field(f"{_MINI}.value_compression", general("zstd", variable()))),
    ("vectors", "dimension of another type", field(f"{_MINI}.value_compression.fixed_size_list.items_per_value", 3)),
    ("vectors", "dimension 0", field(f"{_MINI}.value_compression.fixed_size_list.items_per_value", 0)),
    ("vectors", "huge dimension", field(f"{_MINI}.value_compression.fixed_size_list.items_per_value", 2**63)),
    ("pairs", "widths of another type", field(f"{_MINI}.value_compression.packed_struct.bits_per_value", [16, 32])),
    ("pairs", "a width of 0", field(f"{_MINI}.value_compression.packed_struct.bits_per_value", [48, 0])),
    ("pairs", "a child less", field(f"{_MINI}.value_compression.packed_struct.bits_per_value", [48])),
    # chunk words
    ("numbers", "no buffers", only_buffers(0)),
    ("numbers", "one buffer", only_buffers(1)),
    ("numbers", "four buffers", only_buffers(4)),
    ("numbers", "no chunk", buffer(0, lambda _: b"")),
    ("numbers", "half a word", buffer(0, lambda old: old[:2])),
    ("numbers", "a larger chunk", buffer(0, lambda old: u32(old, 0, old[0] + 16))),
    ("numbers", "a huge chunk", buffer(0, lambda old: u32(old, 0, 2**32 - 16))),
    ("numbers", "a wrong count", buffer(0, lambda old: u32(old, 0, old[0] | 3))),
    ("long", "a chunk without count", buffer(0, lambda old: bytes([old[0] & 0xF0]) + old[1:])),
    ("long", "chunks that hold more than all", buffer(0, lambda old: bytes([old[0] | 0xF]) + old[1:])),
    ("long", "chunks beyond the buffer", buffer(1, lambda old: old[:-8])),
    # chunks
    ("numbers", "more levels", buffer(1, lambda old: u16(old, 0, 4))),
    ("numbers", "no levels", buffer(1, lambda old: u16(old, 0, 0))),
    ("numbers", "levels that are too long", buffer(1, lambda old: u16(old, 2, 0xFFFF))),
    ("numbers", "levels that are too short", buffer(1, lambda old: u16(old, 2, 4))),
    ("numbers", "values that are too long", buffer(1, lambda old: u32(old, 4, 2**32 - 1))),
    ("numbers", "values that are too short", buffer(1, lambda old: u32(old, 4, 8))),
    ("numbers", "a level that does not exist", buffer(1, lambda old: u16(old, 8, 2))),
    ("texts", "a chunk of zeros", buffer(1, lambda old: bytes(len(old)))),
    ("bits", "an impossible bit width", buffer(1, lambda old: u32(old, 8, 40))),
    ("bits", "a chunk of nothing but ones", buffer(1, lambda old: b"\xff" * len(old))),
    # repetition index
    ("lists", "no index", only_buffers(2)),
    ("lists", "index of another size", buffer(2, lambda old: old + bytes(16))),
    ("lists", "more rows in the index", buffer(2, lambda old: u64(old, 0, 5))),
    ("lists", "huge number of rows in the index", buffer(2, lambda old: u64(old, 0, 2**64 - 1))),
    ("lists", "an unfinished last row", buffer(2, lambda old: u64(old, 8, 2**63))),
    ("long lists", "an index that is one row off", buffer(2, lambda old: u64(u64(old, 0, 1), 16, 2**63))),
    # dictionaries
    ("words", "fewer words", field(f"{_MINI}.num_dictionary_items", 4)),
    ("words", "more words", field(f"{_MINI}.num_dictionary_items", 6)),
    ("words", "huge number of words", field(f"{_MINI}.num_dictionary_items", 2**64 - 1)),
    ("words", "no words", buffer(2, lambda _: b"")),
    ("words", "a forged size of the words", buffer(2, lambda old: u32(old, 0, 2**31 - 1))),
    ("words", "words that are cut off", buffer(2, lambda old: old[:-3])),
    # full-zip
    ("zip", "no index", only_buffers(1)),
    ("zip", "a length beyond the end", buffer(0, lambda old: u32(old, 1, 2**32 - 1))),
    ("zip", "an unknown level", buffer(0, lambda old: b"\x02" + old[1:])),
    ("zip", "index of another size", buffer(1, lambda old: old[:-1])),
    ("zip", "a decreasing index", buffer(1, lambda old: bytes([0, 8, 7, 14]))),
    ("zip", "an index beyond the end", buffer(1, lambda old: old[:-1] + b"\xff")),
    ("zip", "index inside a value", buffer(1, lambda old: bytes([0, 3, 8, 14]))),
    ("zip", "lengths of 8 bits", field(f"{_FULL}.bits_per_offset", 8)),
    ("zip", "huge lengths", field(f"{_FULL}.bits_per_offset", 2**32 - 1)),
    ("zip", "huge control words", field(f"{_FULL}.bits_def", 33)),
    ("zip", "more items", field(f"{_FULL}.num_items", 4)),
    ("zip", "neither lengths nor a width", field(f"{_FULL}.bits_per_offset", None)),
    ("zipped numbers", "bits that are not whole bytes", field(f"{_FULL}.bits_per_value", 31)),
    ("zipped numbers", "another width", field(f"{_FULL}.bits_per_value", 64)),
    ("zipped numbers", "values that are cut off", buffer(0, lambda old: old[:-1])),
    ("zipped lists", "a row that does not start", buffer(0, lambda old: b"\0" + old[1:])),
    ("zipped lists", "more items", field(f"{_FULL}.num_items", 9)),
    # constant pages
    ("nulls", "an odd level buffer", buffer(0, lambda old: old[:-1])),
    ("nulls", "fewer levels", buffer(0, lambda old: old[:-2])),
    ("nulls", "no row start", buffer(0, lambda old: bytes(len(old)))),
    ("nulls", "an unknown level", buffer(1, lambda old: b"\xff" * len(old))),
    ("nulls", "huge number of levels", field(f"{_CONSTANT}.num_rep_values", 2**64 - 1)),
    ("nulls", "no levels at all", only_buffers(0)),
    ("nulls", "one buffer", only_buffers(1)),
    ("nulls", "four buffers", only_buffers(4)),
    ("constant", "a scalar of another width", field(f"{_CONSTANT}.inline_value", b"\0" * 8)),
    ("constant", "no scalar", field(f"{_CONSTANT}.inline_value", b"")),
    ("constant", "a scalar and its buffer", lambda layout, buffers: buffers.append(b"\0" * 12)),
    ("constant lists", "levels of another length", buffer(1, lambda old: old + b"\0\0")),
    ("constant text", "a scalar that is cut off", buffer(0, lambda old: old[:-1])),
    ("constant text", "huge number of scalar buffers", buffer(0, lambda old: u32(old, 0, 2**32 - 1))),
    ("constant text", "a scalar with decreasing offsets", buffer(0, lambda old: u32(old, 12, 9))),
    ("constant text", "a scalar that is not text", buffer(0, lambda old: old[:-1] + b"\xff")),
    # blobs
    ("blob", "a value beyond the file", buffer(1, lambda old: u64(old, 8, 2**40))),
    ("blob", "a huge value", buffer(1, lambda old: u64(old, 16, 2**63))),
    ("blob", "a null without a level", buffer(1, lambda old: u64(old, 24, 1))),
    ("blob", "a null of an unknown level", buffer(1, lambda old: u64(old, 24, 5 << 16))),
    ("blob", "a list layer", field("blob_layout.layers", [3, 4])),
]


@pytest.mark.parametrize("name", _BASES)
def test_valid_pages(name: str, tmp_path: Path) -> None:
    """The unchanged pages of the cases are valid."""
    given_field, page = base_page(name)
    if name == "blob":
        return  # its values lie outside of its page: tests/file/test_blob.py
    write_pages(tmp_path / "good.lance", given_field, [page], "2.2")
    expected = pa.array(_BASES[name][1], given_field.type)
    assert LanceFileReader(tmp_path / "good.lance").read_all().to_table()["a"].combine_chunks().equals(expected)
    assert read_back(tmp_path / "good.lance").to_pylist() == expected.to_pylist()


@pytest.mark.parametrize(("name", "what", "edit"), CASES, ids=[f"{name}: {what}" for name, what, _ in CASES])
def test_refused(name: str, what: str, edit: Edit, tmp_path: Path) -> None:
    given_field, page = base_page(name)
    layout, buffers = copy.deepcopy(page.layout), list(page.buffers)
    edit(layout, buffers)
    path = tmp_path / "bad.lance"
    write_pages(path, given_field, [Page(layout, buffers, page.length)], "2.2")
    expected = pa.table([pa.array(_BASES[name][1], given_field.type)], schema=pa.schema([given_field]))
    errors = outcomes(path, expected)
    assert errors
    for error in errors:
        assert isinstance(error, CorruptFileError | UnsupportedError), error
        assert "bad.lance" in str(error)
        assert "page 0" in str(error)


def test_rows_are_not_taken_where_levels_have_no_layer(tmp_path: Path) -> None:
    """The compiled take would count level 1 as a null."""
    given_field, page = base_page("numbers")
    layout = copy.deepcopy(page.layout)
    field(f"{_MINI}.layers", [1])(layout, [])
    write_pages(tmp_path / "bad.lance", given_field, [Page(layout, page.buffers, page.length)], "2.2")
    [column] = LanceFileReader(tmp_path / "bad.lance")._columns()
    assert plain_taker(column._pages[0], column.branch) is None
    with pytest.raises(CorruptFileError):
        column.take(np.arange(column.num_rows))
