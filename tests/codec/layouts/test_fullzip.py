"""Tests of full-zip pages: compared with those pylance writes, and zipped here and read by pylance."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.pages import lance_page
from support.pages.lance_page import Page

from lancecodec import CodecError, fullzip
from lancecodec.fullzip import ZipLayout

VERSIONS = ["2.1", "2.2"]
ZIP = {"lance-encoding:structural-encoding": "fullzip"}
rng = np.random.default_rng(5)


def layout_of(page: Page, max_visible: int = 1, **changed: Any) -> ZipLayout:
    full = page.full
    max_rep = sum(kind in (2, 4, 5, 6) for kind in full["layers"])
    max_def = sum({3: 1, 4: 1, 5: 1, 6: 2}.get(kind, 0) for kind in full["layers"])
    settings: dict[str, Any] = {"bits_rep": full.get("bits_rep", 0), "bits_def": full.get("bits_def", 0)}
    settings |= {"max_repetition": max_rep, "max_definition": max_def, "max_visible": min(max_visible, max_def)}
    if "bits_per_offset" in full:
        settings["offset_bits"] = full["bits_per_offset"]
        settings["symbol_table"] = full["value_compression"].get("fsst", {}).get("symbol_table")
    else:
        settings["width"] = full["bits_per_value"] // 8
    return ZipLayout(**{**settings, **changed})


def byte_ranges(page: Page, rows: list[int]) -> tuple[np.ndarray, np.ndarray]:
    index, size = page.buffers[1], len(page.buffers[0])
    begins, ends = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
    width = fullzip.index_width(len(index), page.length)
    fullzip.row_ranges(index, width, np.array(rows, np.int64), size, begins, ends)
    for row, begin, end in zip(rows, begins, ends, strict=True):
        assert fullzip.row_span(index, width, row, row + 1, size) == (begin, end)
        part = index[row * width : (row + 2) * width]
        assert fullzip.row_span(part, width, row, row + 1, size, row) == (begin, end)
    return begins, ends


def unzip(page: Page, begins: np.ndarray, ends: np.ndarray, **changed: Any) -> tuple[list[int], list[int], list[bytes]]:
    """Return levels and visible values as bytes, after checking that counting and writing agree."""
    layout, data = layout_of(page, **changed), np.frombuffer(b"." + page.buffers[0], np.uint8)[1:]
    items, visible, rows, size = layout.count(data, begins, ends)
    rep, dfn, values = np.zeros(items, np.uint16), np.zeros(items, np.uint16), np.zeros(size, np.uint8)
    if "bits_per_offset" in page.full:
        places = np.zeros(visible + 1, np.int64)
        got = layout.unzip_variable(data, begins, ends, True, places, values, repetition=rep, definition=dfn, base=100)
        assert got == (items, visible, rows, size)
        places -= 100
    else:
        counts = layout.unzip_fixed(data, begins, ends, values, repetition=rep, definition=dfn)
        assert counts == (items, visible, rows)
        places = np.arange(visible + 1) * (page.full["bits_per_value"] // 8)
    raw = values.tobytes()
    return rep.tolist(), dfn.tolist(), [raw[a:b] for a, b in itertools.pairwise(places)]


def whole(page: Page) -> tuple[np.ndarray, np.ndarray]:
    return np.array([0]), np.array([len(page.buffers[0])])


BINARY = [None if i % 7 == 3 else rng.bytes(i % 50) for i in range(3000)]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
@pytest.mark.parametrize("nulls", [True, False])
def test_variable(nulls: bool, kind: pa.DataType, version: str) -> None:
    rows = BINARY if nulls else [row or b"" for row in BINARY]
    [page] = lance_page.pages_of(pa.array(rows, kind), version, ZIP)
    assert page.full["bits_per_offset"] == (64 if kind == pa.large_binary() else 32)
    _, dfn, values = unzip(page, *whole(page))
    assert values == [row or b"" for row in rows]
    assert dfn == [int(row is None) for row in rows]
    taken = rng.integers(0, 3000, 200).tolist()
    _, dfn, values = unzip(page, *byte_ranges(page, taken))
    assert values == [rows[i] or b"" for i in taken]


@pytest.mark.parametrize("version", VERSIONS)
def test_fsst(version: str) -> None:
    rows = [None if i % 9 == 0 else f"the value of row {i} is {i * i}" for i in range(3000)]
    [page] = lance_page.pages_of(pa.array(rows), version, ZIP | {"lance-encoding:compression": "fsst"})
    assert "fsst" in page.full["value_compression"]
    assert [value.decode() for value in unzip(page, *whole(page))[2]] == [row or "" for row in rows]
    _, _, values = unzip(page, *byte_ranges(page, [5, 9, 9, 2999]))
    assert [value.decode() for value in values] == [rows[5], "", "", rows[2999]]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("nulls", [True, False])
def test_fixed(nulls: bool, version: str) -> None:
    rows = [None if nulls and i % 7 == 3 else rng.bytes(40) for i in range(500)]
    [page] = lance_page.pages_of(pa.array(rows, pa.binary(40)), version, ZIP)
    layout, data = layout_of(page), page.buffers[0]
    assert layout.item_size == (41 if nulls else 40)
    for items in [np.arange(500), np.array([499, 0, 3, 3]), np.arange(0)]:
        values, dfn = np.zeros((len(items), 40), np.uint8), np.full(len(items), 9, np.uint16)
        layout.take_fixed(data, items, values, dfn)
        check_fixed([rows[i] for i in items], values, dfn)
    values, dfn = np.zeros((100, 40), np.uint8), np.full(100, 9, np.uint16)
    layout.scan_fixed(data, 50, 150, values, dfn)
    check_fixed(rows[50:150], values, dfn)
    assert unzip(page, *whole(page))[1] == [int(row is None) for row in rows]
    for bad in ([500], [-1], [2**62]):
        with pytest.raises(CodecError, match="outside"):
            layout.take_fixed(data, np.array(bad), np.zeros(40, np.uint8))


def check_fixed(rows: list[bytes | None], values: np.ndarray, dfn: np.ndarray) -> None:
    assert dfn.tolist() == [int(row is None) for row in rows]
    assert all(row is None or value.tobytes() == row for row, value in zip(rows, values, strict=True))


def levels_of(rows: list[Any]) -> tuple[list[int], list[int], list[Any]]:
    rep, dfn, values = [], [], []
    for row in rows:
        rep += [1] + [0] * (len(row or [None]) - 1)
        dfn += [int(v is None) for v in row] if row else [2 if row is None else 3]
        values += row or []
    return rep, dfn, values


LISTS = [None if i % 11 == 0 else [None if (i + k) % 4 == 0 else i * k for k in range(i % 6)] for i in range(2000)]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("text", [False, True])
def test_lists(text: bool, version: str) -> None:
    rows = [row and [None if v is None else str(v) for v in row] for row in LISTS] if text else LISTS
    [page] = lance_page.pages_of(pa.array(rows, pa.list_(pa.string() if text else pa.int64())), version, ZIP)

    def expected(rows: list[Any]) -> tuple[list[int], list[int], list[bytes]]:
        rep, dfn, values = levels_of(rows)
        if text:
            return rep, dfn, [(v or "").encode() for v in values]
        return rep, dfn, [(v or 0).to_bytes(8, "little") for v in values]

    assert unzip(page, *whole(page)) == expected(rows)
    taken = rng.integers(0, 2000, 300).tolist()
    assert unzip(page, *byte_ranges(page, taken)) == expected([rows[i] for i in taken])


def zipped(
    layout: ZipLayout, rep: list[int] | None, dfn: list[int] | None, values: list[bytes], variable: bool
) -> tuple[bytes, bytes, tuple[int, int, int]]:
    streams = {"repetition": rep and np.array(rep, np.uint16), "definition": dfn and np.array(dfn, np.uint16)}
    n, data = len(rep or dfn or values), b"".join(values)
    places = np.cumsum([0, *map(len, values)]).astype(np.int32) if variable else None
    size, rows, visible = layout.zipped_size(n, data, offsets=places, **streams)
    out, index = bytearray(size), bytearray(rows + 1)
    assert layout.zip_items(n, data, out, index, 1, offsets=places, **streams) == (size, rows)
    with pytest.raises(CodecError, match="do not fit the output"):
        layout.zip_items(n, data, bytearray(size - 1), offsets=places, **streams)
    with pytest.raises(CodecError, match="do not fit the output"):
        layout.zip_items(n, data, out, bytearray(rows), 1, offsets=places, **streams)
    return bytes(out), bytes(index), (size, rows, visible)


def test_golden_vectors() -> None:
    """Vectors 6 and 7 of the format notes are encoded and decoded."""
    layout = ZipLayout(bits_rep=1, bits_def=2, max_repetition=1, max_definition=3, max_visible=1, width=4)
    values = [(1).to_bytes(4, "little"), bytes(4), (2).to_bytes(4, "little")]
    out, index, counts = zipped(layout, [1, 1, 1, 1, 0], [0, 3, 2, 1, 0], values, False)
    assert out == bytes.fromhex("04 01000000 07 06 05 00000000 00 02000000")
    assert (index, counts) == (bytes.fromhex("0005060711"), (17, 4, 3))
    layout = ZipLayout(bits_def=1, max_definition=1, max_visible=1, offset_bits=32)
    out, index, counts = zipped(layout, None, [0, 1, 0], [b"ab", b"?", b""], True)
    assert out == bytes.fromhex("00 02000000 6162 01 00 00000000")
    assert (index, counts) == (bytes.fromhex("0007080d"), (13, 3, 3))


@pytest.mark.parametrize("bits", [(1, 2), (5, 6), (9, 12)])
@pytest.mark.parametrize("version", VERSIONS)
def test_pylance_reads_ours(version: str, bits: tuple[int, int], tmp_path: Path) -> None:
    """Pylance reads pages with control words of one, two and four bytes."""
    rep, dfn, values = levels_of(LISTS)
    layout = ZipLayout(bits_rep=bits[0], bits_def=bits[1], max_repetition=1, max_definition=3, max_visible=1, width=8)
    streams = {"repetition": np.array(rep, np.uint16), "definition": np.array(dfn, np.uint16)}
    packed = np.array([v or 0 for v in values], np.int64)
    size, rows, visible = layout.zipped_size(len(rep), packed, **streams)
    out, index = bytearray(size), bytearray(4 * (rows + 1))
    layout.zip_items(len(rep), packed, out, index, 4, **streams)
    message = lance_page.full_zip(
        lance_page.flat(64),
        num_items=len(rep),
        num_visible_items=visible,
        layers=[3, 6],
        bits_rep=bits[0],
        bits_def=bits[1],
        bits_per_value=64,
    )
    path = tmp_path / "a.lance"
    field = pa.field("a", pa.list_(pa.int64()))
    lance_page.write_pages(path, field, [Page(message, [out, index], len(LISTS))], version)
    assert lance_page.read_back(path).to_pylist() == LISTS
    assert lance_page.read_back(path, [0, 7, 1999]).to_pylist() == [LISTS[0], LISTS[7], LISTS[1999]]


def test_refused() -> None:
    for bad in (
        {"width": 4, "offset_bits": 32},
        {},
        {"width": 0},
        {"offset_bits": 16},
        {"width": 4, "bits_rep": 17, "bits_def": 17},
        {"width": 4, "bits_rep": 1},
        {"width": 4, "symbol_table": bytes(2312)},
        {"offset_bits": 32, "symbol_table": bytes(2312)},
    ):
        with pytest.raises(CodecError):
            ZipLayout(**bad)
    layout = ZipLayout(bits_rep=1, bits_def=1, max_repetition=1, max_definition=1, max_visible=0, offset_bits=32)
    begins, ends = np.array([0]), np.array([7])
    for data in ["02 02000000 61", "00 02000000 6161", "02 0200", "07 02000000 6161", "02 ffffffff 6161"]:
        raw = bytes.fromhex(data)
        with pytest.raises(CodecError):
            layout.count(raw, begins, np.minimum(ends, len(raw)))
    with pytest.raises(CodecError):
        layout.count(bytes(6), begins, ends)
    for index, rows in [(b"\0\1\1", [1]), (b"\0\2\1", [1]), (b"\0\1\x09", [1]), (b"\0\1\2", [2]), (b"\0\1", [-1])]:
        with pytest.raises(CodecError):
            fullzip.row_ranges(index, 1, np.array(rows), 8, np.zeros(1, np.int64), np.zeros(1, np.int64))
    for size, rows in [(9, 2), (10, 1), (0, 0), (3, -1)]:
        with pytest.raises(CodecError):
            fullzip.index_width(size, rows)


@given(st.integers(0, 2**32 - 1))
def test_damaged_items_never_crash(seed: int) -> None:
    random = np.random.default_rng(seed)
    layout = ZipLayout(bits_rep=1, bits_def=2, max_repetition=1, max_definition=3, max_visible=1, offset_bits=32)
    rep, dfn, values = levels_of([row and [v and "x" * (v % 9) for v in row] for row in LISTS[:200]])
    data, _, _ = zipped_any(layout, rep, dfn, [(v or "").encode() for v in values])
    damaged = np.frombuffer(data, np.uint8).copy()
    damaged[random.integers(0, len(damaged), 3)] = random.integers(0, 256, 3)
    begins, ends = np.array([0]), np.array([len(damaged)])
    try:
        items, visible, _, size = layout.count(damaged, begins, ends)
        layout.unzip_variable(
            damaged,
            begins,
            ends,
            False,
            np.zeros(visible + 1, np.int32),
            np.zeros(size, np.uint8),
            repetition=np.zeros(items, np.uint16),
        )
    except CodecError:
        pass


def zipped_any(layout: ZipLayout, rep: list[int], dfn: list[int], values: list[bytes]) -> tuple[bytes, int, int]:
    places = np.cumsum([0, *map(len, values)]).astype(np.int64)
    streams = {"repetition": np.array(rep, np.uint16), "definition": np.array(dfn, np.uint16)}
    size, rows, visible = layout.zipped_size(len(rep), b"".join(values), offsets=places, wide=True, **streams)
    out = bytearray(size)
    layout.zip_items(len(rep), b"".join(values), out, offsets=places, wide=True, **streams)
    return bytes(out), rows, visible


@pytest.mark.parametrize("first", [2**63 - 1, 2**63 - 8])
def test_index_that_starts_after_the_last_row_there_can_be(first: int) -> None:
    index, row = bytes(8), np.array([5])
    with pytest.raises(CodecError, match=f"an index from row {first} on"):
        fullzip.row_span(index, 1, first, first, 9, first)
    with pytest.raises(CodecError, match=f"an index from row {first} on"):
        fullzip.row_ranges(index, 1, row, 9, np.zeros(1, np.int64), np.zeros(1, np.int64), first)
