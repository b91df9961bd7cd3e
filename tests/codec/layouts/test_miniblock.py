"""Tests of mini-block pages: compared with those pylance writes, and assembled here and read by pylance."""

from __future__ import annotations

import itertools
import string
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.pages import lance_page
from support.pages.lance_page import Page

from lancecodec import CodecError, general
from lancecodec import miniblock_levels as levels
from lancecodec import miniblock_values as values
from lancecodec.miniblock import Chunks, ChunkTable
from lancecodec.miniblock_levels import Levels, RepetitionIndex, row_starts
from lancecodec.miniblock_values import FixedValues, VariableValues
from lancecodec.miniblock_write import Assembly

VERSIONS = ["2.1", "2.2"]
SCHEMES: dict[int, general.Scheme] = {1: "lz4", 2: "zstd"}
rng = np.random.default_rng(11)


def table_of(page: Page) -> ChunkTable:
    large = bool(page.mini.get("has_large_chunk"))
    return ChunkTable(page.buffers[0], page.mini["num_items"], len(page.buffers[1]), large)


def chunks_of(page: Page, data: Any = None, wrapped: bool = False) -> Chunks:
    streams = {name: f"{name[:3]}_compression" in page.mini for name in ("repetition", "definition")}
    chunks = Chunks(table_of(page), page.mini["num_buffers"], wrapped=wrapped, **streams)
    chunks.load(page.buffers[1] if data is None else data)
    return chunks


def odd(data: bytes) -> np.ndarray:
    """Return the same bytes at an odd address."""
    return np.frombuffer(b"." + data, np.uint8)[1:]


def codec_of(page: Page) -> tuple[int, int]:
    """Return kind and width of the values, below any general compression."""
    message = page.mini["value_compression"]
    message = message["general"]["values"] if "general" in message else message
    [(name, body)] = message.items()
    if name == "rle" or name == "byte_stream_split":
        return (values.RLE if name == "rle" else values.SPLIT), body["values"]["flat"]["bits_per_value"]
    if name == "inline_bitpacking":
        return values.INLINE, body["uncompressed_bits_per_value"]
    return values.FLAT, body["bits_per_value"]


def level_codec(message: dict[str, Any] | None) -> tuple[int, int] | None:
    if message is None:
        return None
    [(name, body)] = message.items()
    if name == "out_of_line_bitpacking":
        return levels.OUT_OF_LINE, body["values"]["flat"]["bits_per_value"]
    return {"flat": levels.FLAT, "inline_bitpacking": levels.INLINE, "rle": levels.RLE}[name], 0


FIXED = {
    "flat8": (rng.integers(0, 256, 9000).astype(np.uint8), None),
    "flat16": (rng.integers(0, 2**16, 9000).astype(np.uint16), None),
    "flat32": (rng.integers(-(2**31), 2**31, 9000).astype(np.int32), None),
    "flat64": (rng.integers(-(2**63), 2**63, 9000), None),
    "inline32": (rng.integers(0, 2**13, 9001).astype(np.int32), None),
    "inline64": (rng.integers(0, 2**40, 9001), None),
    "rle": (np.repeat(rng.integers(0, 2**31, 300), rng.integers(1, 300, 300)).astype(np.int32), None),
    "split": (rng.random(9000), {"lance-encoding:compression": "zstd", "lance-encoding:bss": "on"}),
    "zstd": (np.arange(9000) * 2.5, {"lance-encoding:compression": "zstd", "lance-encoding:bss": "off"}),
    "lz4": (np.arange(9000) - 2**62, {"lance-encoding:compression": "lz4"}),
}


def ranges(n: int) -> list[tuple[int, int]]:
    return [(0, n), (0, 0), (n, n), (5, 6), (1000, 3001), (1023, 1025), (1024, 2048), (n - 1, n), (4095, 8193)]


def opened(name: str, version: str) -> tuple[np.ndarray, FixedValues]:
    array, metadata = FIXED[name]
    [page] = lance_page.pages_of(pa.array(array), version, metadata)
    general_ = page.mini["value_compression"].get("general")
    chunks = chunks_of(page, odd(page.buffers[1]), wrapped=general_ is not None)
    for i in range(chunks.table.num_chunks if general_ else 0):
        plain = general.decompress(SCHEMES[general_["compression"]["scheme"]], chunks.stored(i), max_size=2**16)
        assert not chunks.is_ready(i)
        chunks.replace(i, plain)
        assert chunks.is_ready(i)
    return array, FixedValues(chunks, *codec_of(page))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", FIXED)
def test_fixed_scan_and_take(name: str, version: str) -> None:
    array, column = opened(name, version)
    n = len(array)
    for start, stop in ranges(n):
        out = np.zeros(stop - start + 3, array.dtype)
        column.scan(start, stop, out, 2)
        assert (out[2:-1] == array[start:stop]).all()
        assert not out[:2].any()
        assert not out[-1]
    orders = [np.arange(7, 2000), rng.integers(0, n, 40), rng.integers(0, n, 5 * n), np.sort(rng.integers(0, n, 900))]
    for items in [*orders, np.repeat(3, 500), np.array([], np.int64), np.arange(n)[::-1].copy()]:
        out = np.zeros(len(items) + 2, array.dtype)
        column.take(items, out, 1)
        assert (out[1:-1] == array[items]).all()
        assert not out[0]
        assert not out[-1]
    for items in ([0, n], [-1], [0, 2**62], np.append(rng.integers(0, n, 4 * n), n)):
        with pytest.raises(CodecError, match=f"position {len(items) - 1} "):
            column.take(np.array(items), np.zeros(len(items), array.dtype))


@pytest.mark.parametrize("version", VERSIONS)
def test_bits(version: str) -> None:
    array = rng.random(9001) < 0.4
    [page] = lance_page.pages_of(pa.array(array), version)
    column = FixedValues(chunks_of(page), *codec_of(page))
    for start, stop in ranges(len(array)):
        out = np.full(2000, 0xFF, np.uint8)
        column.scan(start, stop, out, 5)
        bits = np.unpackbits(out, bitorder="little")
        assert (bits[5 : 5 + stop - start] == array[start:stop]).all()
        assert bits[:5].all()
        assert bits[5 + stop - start :].all()
    items = rng.integers(0, len(array), 3000)
    out = np.zeros(400, np.uint8)
    column.take(items, out, 3)
    assert (np.unpackbits(out, bitorder="little")[3:3003] == array[items]).all()


def test_validity_of_list_items() -> None:
    """The first buffer of each chunk is a bitmap of 4 bits per list, the second has the items."""
    lists = pa.array([[i, None, i + 2, -i] for i in range(3000)], pa.list_(pa.int32(), 4))
    [page] = lance_page.pages_of(lists, "2.2")
    assert page.mini["num_buffers"] == 2
    chunks = chunks_of(page)
    items, bits = np.zeros(1100 * 4, np.int32), np.zeros(1100 * 4 // 8, np.uint8)
    FixedValues(chunks, values.FLAT, 128, 1).scan(1000, 2100, items)
    FixedValues(chunks, values.FLAT, 4, 0).scan(1000, 2100, bits)
    mask = np.unpackbits(bits, bitorder="little").astype(bool)
    assert [v if m else None for v, m in zip(items.tolist(), mask, strict=True)] == [
        item for row in lists.to_pylist()[1000:2100] for item in row
    ]


def words(n: int, top: int) -> list[str]:
    return ["".join(rng.choice(list(string.ascii_lowercase), rng.integers(0, top))) for _ in range(n)]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("how", ["none", "fsst"])
def test_variable(how: str, wide: bool, version: str) -> None:
    strings = words(4000, 40)
    kind = pa.large_string() if wide else pa.string()
    [page] = lance_page.pages_of(pa.array(strings, kind), version, {"lance-encoding:compression": how})
    table = page.mini["value_compression"].get("fsst", {}).get("symbol_table")
    assert (table is not None) == (how == "fsst")
    column = VariableValues(chunks_of(page, odd(page.buffers[1])), wide, table)
    for start, stop in [(0, 4000), (3, 5), (100, 3900), (7, 7), (3999, 4000)]:
        places, out_wide = np.zeros(stop - start + 1, np.int64 if stop % 2 else np.int32), bool(stop % 2)
        size = column.scan_offsets(start, stop, out_wide, places, 1000)
        data = np.zeros(size, np.uint8)
        assert column.scan_bytes(start, stop, data) == size
        assert text(places - 1000, data) == strings[start:stop]
        assert once(column, start, stop, out_wide) == strings[start:stop]
        room = np.zeros(column.estimate(start, stop), np.uint8)
        assert column.scan(start, stop, out_wide, places, room) == (stop, size)
        assert len(room) == size or table is not None
    items = rng.integers(0, 4000, 700)
    places = np.zeros(701, np.int64)
    size = column.take_offsets(items, True, places)
    data = np.zeros(size, np.uint8)
    assert column.take_bytes(items, data) == size
    assert text(places, data) == [strings[i] for i in items]
    with pytest.raises(CodecError, match="do not fit the output"):
        column.take_bytes(items, np.zeros(size - 1, np.uint8))
    with pytest.raises(CodecError, match="do not fit the output"):
        column.scan_offsets(0, 4000, False, np.zeros(4001, np.int32), 2**31 - 5)


def test_texts_that_overlap() -> None:
    """Only an order of positions that skips the broken texts between them could take each byte several times."""
    offsets = np.where(np.arange(9) % 2, 136, 36).astype("<u4")
    chunk = struct.pack("<HIxx", 0, 136) + offsets.tobytes() + b"a" * 100
    table = ChunkTable(struct.pack("<I", (len(chunk) // 8 - 1) << 4), 8, len(chunk), True)
    column = VariableValues(Chunks(table, 1, data=chunk), False)
    places = np.zeros(5, np.int64)
    for item in (0, 6):
        assert column.take_offsets(np.array([item]), True, places) == 100
        assert column.take_offsets(np.array([item] * 3), True, places) == 300 > column.most_bytes
    assert column.take_offsets(np.array([6, 4, 2, 0]), True, places) == 400 > column.most_bytes
    with pytest.raises(CodecError):
        column.take_offsets(np.array([0, 2]), True, places)


def once(column: VariableValues, start: int, stop: int, wide: bool) -> list[str]:
    """Return offsets and bytes of one pass, in as many calls as a growing output needs."""
    places, data, size, room = np.zeros(stop - start + 1, np.int64 if wide else np.int32), np.zeros(0, np.uint8), 0, 0
    done = start
    while True:
        done, written = column.scan(done, stop, wide, places[done - start :], data[size:], size)
        size += written
        if done == stop:
            return text(places, data[:size])
        room = 2 * room + 20000
        data = np.append(data[:size], np.zeros(room, np.uint8))


def text(places: np.ndarray, data: np.ndarray) -> list[str]:
    return [bytes(data[a:b]).decode() for a, b in itertools.pairwise(places)]


def test_dictionary() -> None:
    entries = rng.integers(0, 2**62, 50)
    array = entries[rng.integers(0, 50, 9000)]
    [page] = lance_page.pages_of(pa.array(array), "2.2", {"lance-encoding:dict-divisor": "2"})
    count = page.mini["num_dictionary_items"]
    scheme = SCHEMES[page.mini["dictionary"]["general"]["compression"]["scheme"]]
    stored = general.decompress(scheme, page.buffers[2], expected_size=8 * count)
    column = FixedValues(chunks_of(page), *codec_of(page))
    for start, stop in ranges(9000):
        out = np.zeros(stop - start + 2, np.int64)
        column.scan_dictionary(start, stop, stored, 8, count, out, 1)
        assert (out[1:-1] == array[start:stop]).all()
    items = rng.integers(0, 9000, 500)
    out = np.zeros(500, np.int64)
    column.take_dictionary(items, stored, 8, count, out)
    assert (out == array[items]).all()
    with pytest.raises(CodecError, match="an index has no dictionary entry"):
        column.scan_dictionary(0, 9000, stored, 8, count - 1, np.zeros(9000, np.int64))
    nulls = np.zeros(9000 // 8, np.uint8)
    column.scan_dictionary(0, 9000, b"", 8, 0, out := np.ones(9000, np.int64), validity=nulls)
    assert not out.any()


def test_check_indices() -> None:
    indices = np.array([0, 9, 1, 2], np.uint16)
    values.check_indices(indices, 16, 4, 3, b"\x1a", 1)
    assert indices.tolist() == [0, 0, 1, 2]
    with pytest.raises(CodecError, match="index 3 "):
        values.check_indices(indices, 16, 4, 2, b"\x00\x0f", 5)


NESTED: dict[str, tuple[Any, Any, int, int, int]] = {
    # rows, type, max_rep, max_def, max_visible_def
    "nullable": ([None if i % 3 else i for i in range(9000)], pa.int32(), 0, 1, 1),
    "runs": ([None if i // 500 % 2 else i for i in range(9000)], pa.int32(), 0, 1, 1),
    "lists": ([None if i % 5 == 0 else [i, None] * (i % 4) for i in range(5000)], pa.list_(pa.int64()), 1, 3, 1),
    "long lists": ([list(range(i * 700)) for i in range(1, 9)], pa.list_(pa.int64()), 1, 0, 0),
    "few": ([[1, 2], [], None, [None, 3]], pa.list_(pa.int32()), 1, 3, 1),
}


def model(rows: list[Any], nested: bool) -> tuple[list[int], list[int]]:
    """Return the levels of a list of nullable items, or of nullable items, as the format defines them."""
    rep: list[int] = []
    dfn: list[int] = []
    for row in rows:
        inner = row if nested else [row]
        if not inner:
            rep.append(1)
            dfn.append(2 if row is None else 3)
            continue
        rep += [1] + [0] * (len(inner) - 1)
        dfn += [int(item is None) for item in inner]
    return rep, dfn


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", NESTED)
def test_levels(name: str, version: str) -> None:
    rows, kind, max_rep, max_def, visible = NESTED[name]
    [page] = lance_page.pages_of(pa.array(rows, kind), version)
    codecs = [level_codec(page.mini.get(f"{name}_compression")) for name in ("rep", "def")]
    chunks = chunks_of(page)
    tops = {"max_repetition": max_rep, "max_definition": max_def, "max_visible": visible}
    column = Levels(chunks, repetition=codecs[0], definition=codecs[1], **tops)
    begins = np.array(column.begins(0, chunks.table.num_chunks))
    expected = [np.array(stream, np.uint16) for stream in model(rows, max_rep > 0)]
    for first, stop in [(0, chunks.table.num_chunks), (0, 1), (chunks.table.num_chunks // 2, chunks.table.num_chunks)]:
        total = begins[stop] - begins[first]
        got = [np.full(total, 77, np.uint16) if codec else None for codec in codecs]
        assert column.scan(first, stop, *got) == total
        for mine, right in zip(got, expected, strict=True):
            assert mine is None or (mine == right[begins[first] : begins[stop]]).all()
    assert column.scan(0, chunks.table.num_chunks) == len(expected[0])
    if max_rep:
        check_rows(page, column, expected, visible, begins)


def check_rows(page: Page, column: Levels, expected: list[np.ndarray], visible: int, begins: np.ndarray) -> None:
    starts = np.append(np.flatnonzero(expected[0] == 1), len(expected[0]))
    owned = np.append(0, np.cumsum(expected[1] <= visible))
    index = RepetitionIndex(page.buffers[-1], len(begins) - 1, page.length)
    for start, stop in {(0, page.length), (1, 2), (0, 1), (page.length // 3, page.length // 2), (3, 3)}:
        first, last, skip = index.chunk_range(start, stop)
        n = int(begins[last] - begins[first])
        rep, dfn = np.zeros(n, np.uint16), np.zeros(n, np.uint16)
        column.scan(first, last, rep, dfn if "def_compression" in page.mini else None)
        entries, slots = np.zeros(page.length + 1, np.int64), np.zeros(page.length + 1, np.int64)
        found = row_starts(rep, dfn, n, 1, visible, entries, slots)
        if start == stop:
            continue
        assert found >= skip + stop - start
        assert (entries[skip : skip + stop - start + 1] + begins[first] == starts[start : stop + 1]).all() or (
            entries[skip + stop - start] == n
        )
        assert entries[skip] + begins[first] == starts[start]
        assert slots[skip] + owned[begins[first]] == owned[starts[start]]
        assert entries[skip + stop - start] + begins[first] <= starts[stop] or found == skip + stop - start


PLAIN = {"lance-encoding:compression": "none"}
#: values, field metadata, values of a full flat chunk
ASSEMBLED: list[tuple[pa.Array, dict[str, str] | None, int]] = [
    (pa.array(rng.integers(-(2**31), 2**31, 2048), pa.int32()), None, 1024),
    (pa.array(rng.integers(-(2**31), 2**31, 1024), pa.int32()), None, 1024),
    (pa.array(rng.integers(-(2**31), 2**31, 1500), pa.int32(), mask=rng.random(1500) < 0.3), None, 1024),
    (pa.array(rng.integers(0, 2**9, 2048), pa.int32()), None, 0),
    (pa.array(np.repeat(np.arange(90), 100), pa.int32()), None, 0),
    (pa.array(rng.integers(0, 2**9, 5000), mask=rng.random(5000) < 0.3), None, 0),
    (pa.array(words(3000, 20), mask=rng.random(3000) < 0.3), PLAIN, 0),
    (pa.array([[f"{i}"] * (i % 5) for i in range(3000)]), PLAIN, 0),
]


def assembled(page: Page, full: int) -> tuple[bytes, bytes]:
    """Return the page's buffers, taken apart into streams and assembled again."""
    chunks, table = chunks_of(page), table_of(page)
    headers = [chunks.header(i) for i in range(table.num_chunks)]
    large = bool(page.mini.get("has_large_chunk"))
    streams: list[list[bytes]] = [[] for _ in range(page.mini["num_buffers"])]
    level_streams: list[list[bytes]] = [[] for name in ("rep", "def") if f"{name}_compression" in page.mini]
    for i, (_, *sizes, own) in enumerate(headers):
        at = table.starts[i] + -(-(2 + 2 * len(level_streams) + (4 if large else 2) * len(own)) // 8) * 8
        for stream, size in zip(level_streams, [size for size in sizes if size is not None], strict=True):
            stream.append(page.buffers[1][at : at + size])
            at += -(-size // 8) * 8
        for b, stream in enumerate(streams):
            stream.append(bytes(chunks.stored(i, b)))

    def joined(parts: list[list[bytes]]) -> list[tuple[bytes, np.ndarray]]:
        return [(b"".join(part), np.cumsum([len(p) for p in part])) for part in parts]

    counts = np.diff(table.firsts)
    got = [header[0] for header in headers] if level_streams else None
    plan = Assembly(counts, joined(streams), large, levels=got, level_streams=joined(level_streams), full=full)
    first, second = bytearray(plan.words_size), bytearray(plan.chunks_size)
    plan.write(first, second)
    return bytes(first), bytes(second)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", range(len(ASSEMBLED)))
def test_assembled_as_the_reference_does(case: int, version: str) -> None:
    array, metadata, full = ASSEMBLED[case]
    [page] = lance_page.pages_of(array, version, metadata)
    assert assembled(page, full) == (page.buffers[0], page.buffers[1])


@pytest.mark.parametrize("version", VERSIONS)
def test_pylance_reads_our_chunks(version: str, tmp_path: Path) -> None:
    array = np.arange(1000, dtype=np.int32)
    counts = [2, 512, 256, 230]
    plan = Assembly(counts, [(array, np.cumsum(counts) * 4)], version != "2.1")
    first, second = bytearray(plan.words_size), bytearray(plan.chunks_size)
    plan.write(first, second)
    layout = lance_page.mini_block(lance_page.flat(32), num_items=1000, version=version)
    path = tmp_path / "a.lance"
    lance_page.write_pages(path, pa.field("a", pa.int32()), [Page(layout, [first, second], 1000)], version)
    assert lance_page.read_back(path).to_pylist() == array.tolist()
    assert lance_page.read_back(path, [1, 2, 514, 999]).to_pylist() == [1, 2, 514, 999]


def test_golden_list() -> None:
    """Vector 4 of the format notes, list<list<int32>> [[1],[]], null, [null,[null]], is decoded and encoded."""
    chunk = bytes.fromhex(
        "05000a000a000800 02000100020002000100fefefefefefe 00000300040002000100fefefefefefe 0100000000000000"
    )
    table = ChunkTable(bytes.fromhex("5000"), 2, len(chunk), False)
    chunks = Chunks(table, 1, repetition=True, definition=True, data=chunk)
    column = Levels(
        chunks,
        repetition=(levels.FLAT, 0),
        definition=(levels.FLAT, 0),
        max_repetition=2,
        max_definition=4,
        max_visible=1,
    )
    rep, dfn, out = np.zeros(5, np.uint16), np.zeros(5, np.uint16), np.zeros(2, np.int32)
    column.scan(0, 1, rep, dfn)
    FixedValues(chunks, values.FLAT, 32).scan(0, 2, out)
    assert (rep.tolist(), dfn.tolist(), out.tolist()) == ([2, 1, 2, 2, 1], [0, 3, 4, 2, 1], [1, 0])
    index = RepetitionIndex(bytes.fromhex("03000000000000000000000000000000"), 1, 3)
    assert index.chunk_range(1, 3) == (0, 1, 1)


def test_parts_are_enough() -> None:
    array = np.arange(9000, dtype=np.float64) * 1.1
    [page] = lance_page.pages_of(pa.array(array), "2.2")
    table = table_of(page)
    first, stop = table.chunk_range(3000, 4000)
    chunks = Chunks(table, 1)
    assert chunks.load(page.buffers[1][table.starts[first] : table.starts[stop]], first) == stop - first
    column, out = FixedValues(chunks, *codec_of(page)), np.zeros(1000)
    column.scan(3000, 4000, out)
    assert (out == array[3000:4000]).all()
    with pytest.raises(CodecError, match="chunk 0 was not loaded"):
        column.scan(0, 1, out)
    assert table.locate(3000) == (first, 3000 - table.firsts[first])


@pytest.mark.parametrize(
    ("words_", "items", "size", "large"),
    [
        ("3000", 0, 32, False),
        ("3000", 3, 24, False),
        ("3000", 3, 40, False),
        ("30003000", 3, 64, False),
        ("31003000", 2, 64, False),
        ("3100 3100", 5, 64, False),
        ("300000", 3, 32, False),
        ("3000", 3, 32, True),
        ("3000", 40000, 32, False),
        ("", 3, 0, False),
    ],
)
def test_bad_words(words_: str, items: int, size: int, large: bool) -> None:
    with pytest.raises(CodecError):
        ChunkTable(bytes.fromhex(words_), items, size, large)


@given(st.integers(0, 2**32 - 1), st.sampled_from(["flat32", "rle", "split"]))
def test_damaged_chunks_never_crash(seed: int, name: str) -> None:
    random = np.random.default_rng(seed)
    array, metadata = FIXED[name]
    [page] = PAGES.get(name) or PAGES.setdefault(name, lance_page.pages_of(pa.array(array), "2.1", metadata))
    data = np.frombuffer(page.buffers[1], np.uint8).copy()
    data[random.integers(0, len(data), 30)] = random.integers(0, 256, 30)
    for i in random.integers(0, table_of(page).num_chunks, 2):
        data[table_of(page).starts[i] : table_of(page).starts[i] + 8] = random.integers(0, 256, 8)
    column = FixedValues(chunks_of(page, data), *codec_of(page))
    out = np.zeros(len(array), array.dtype)
    for call in (lambda: column.scan(0, len(array), out), lambda: column.take(random.integers(0, len(array), 99), out)):
        try:
            call()
        except CodecError:
            continue


PAGES: dict[str, list[Page]] = {}


def test_limits_of_chunks() -> None:
    with pytest.raises(CodecError, match="at most 32 KiB"):
        Assembly([2], [(bytes(32768), [32768])], False)
    Assembly([2], [(bytes(32768), [32768])], True)
    for counts in ([3, 1], [1, 1], [65536, 1], [0], [40000]):
        with pytest.raises(CodecError, match="powers of two"):
            Assembly(counts, [(b"", [0] * len(counts))], False)
    with pytest.raises(CodecError, match="ends at 4"):
        Assembly([1], [(b"12345", [4])], False)


def test_a_bit_without_a_bitmap_does_not_matter() -> None:
    plan = Assembly([2, 1], [(bytes([1, 0, 1]), [2, 3])], True)
    words_, data = np.zeros(plan.words_size, np.uint8), np.zeros(plan.chunks_size, np.uint8)
    plan.write(words_, data)
    column = FixedValues(Chunks(ChunkTable(words_, 3, len(data), True), data=data), values.FLAT, 8)
    for bit in (0, 2**63 - 1):
        out = np.zeros(6, np.uint8)
        column.scan_dictionary(0, 3, b"abcd", 2, 2, out, bit=bit)
        assert out.tobytes() == b"cdabcd"
        column.take_dictionary(np.array([1, 0, 0]), b"abcd", 2, 2, out, bit=bit)
        assert out.tobytes() == b"abcdcd"
