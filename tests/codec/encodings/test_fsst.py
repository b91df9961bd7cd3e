"""Tests of FSST against a pure-Python model, golden vectors and the reference's pages."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.pages import lance_page
from support.pages.fsst_strings import (
    ESCAPE,
    GOLDEN_SYMBOLS,
    GOLDEN_TABLE,
    Strings,
    built,
    decode,
    encode,
    table_of,
    verbatim,
)
from support.pages.lance_page import Page, mini_block, pages_of, read_back, write_pages

from lancecodec import CodecError, fsst
from lancecodec.fsst import SymbolTable

WORDS = [b"", b"a", b"https://", b"lance", b"-format", b".org/", b"\xff", b"\xff\xff", b"\0", b"0123456789" * 30]
strings = st.lists(st.one_of(st.binary(max_size=40), st.lists(st.sampled_from(WORDS), max_size=9).map(b"".join)))


def greedy(symbols: Sequence[bytes], value: bytes) -> bytes:
    """Encode with the longest symbol at each position, or an escape."""
    codes = {symbol: code for code, symbol in reversed(list(enumerate(symbols)))}
    out, at = bytearray(), 0
    while at < len(value):
        length = next((n for n in range(min(8, len(value) - at), 0, -1) if value[at : at + n] in codes), 0)
        out += bytes([codes[value[at : at + length]]] if length else [ESCAPE, value[at]])
        at += length or 1
    return bytes(out)


# -- tables ----------------------------------------------------------------------------------------------------------


def test_golden_table() -> None:
    out = bytearray(2312)
    fsst.write_table(GOLDEN_SYMBOLS, out)
    assert bytes(out) == GOLDEN_TABLE
    table = SymbolTable(GOLDEN_TABLE)
    assert (table.compressed, table.symbols) == (True, GOLDEN_SYMBOLS)


def test_hints_are_ignored() -> None:
    assert SymbolTable(b"\x04\xee\x03" + GOLDEN_TABLE[3:]).symbols == GOLDEN_SYMBOLS


def test_golden_verbatim_table() -> None:
    out = bytearray(b"\x11" * 2312)
    fsst.write_verbatim_table(out)
    assert bytes(out) == bytes.fromhex("0000000054535346").ljust(2312, b"\0")
    assert (SymbolTable(out).compressed, SymbolTable(out).symbols) == (False, [])


@given(st.lists(st.binary(min_size=1, max_size=8), max_size=255))
def test_tables_round_trip(symbols: list[bytes]) -> None:
    assert table_of(symbols).symbols == symbols


def test_full_table() -> None:
    symbols = [bytes([b, b]) for b in range(255)]
    table = table_of(symbols)
    given = Strings.of([bytes(range(256)), b"".join(symbols)])
    assert decode(table, encode(table, given)).values() == given.values()
    assert [len(value) for value in encode(table, given).values()] == [512, 255]


@pytest.mark.parametrize(
    "table",
    [
        b"",
        GOLDEN_TABLE[:-1],
        GOLDEN_TABLE + b"\0",
        GOLDEN_TABLE[:4] + b"FSST" + GOLDEN_TABLE[8:],
        GOLDEN_TABLE[:3] + b"\x03" + GOLDEN_TABLE[4:],
        GOLDEN_TABLE[:40] + b"\x00" + GOLDEN_TABLE[41:],
        GOLDEN_TABLE[:43] + b"\x09" + GOLDEN_TABLE[44:],
        b"\xff" + GOLDEN_TABLE[1:],
    ],
)
def test_bad_tables(table: bytes) -> None:
    with pytest.raises(CodecError, match="symbol table"):
        SymbolTable(table)


@pytest.mark.parametrize("symbols", [[b""], [b"123456789"], [b"a"] * 256])
def test_symbols_that_fit_no_table(symbols: list[bytes]) -> None:
    with pytest.raises(CodecError, match="symbol"):
        fsst.write_table(symbols, bytearray(2312))


@pytest.mark.parametrize("size", [0, 2311, 2313])
def test_table_outputs_of_the_wrong_size(size: int) -> None:
    with pytest.raises(CodecError, match="must have the size of a symbol table"):
        fsst.write_table(GOLDEN_SYMBOLS, bytearray(size))
    with pytest.raises(CodecError, match="must have the size of a symbol table"):
        fsst.write_verbatim_table(bytearray(size))
    with pytest.raises(CodecError, match="must have the size of a symbol table"):
        fsst.build(b"", np.zeros(1, np.int32), False, 0, bytearray(size))


# -- encoding and back -----------------------------------------------------------------------------------------------


def test_golden_strings() -> None:
    given = Strings.of([b"hello help", b"hello", b"", b"\xff"])
    compressed = encode(SymbolTable(GOLDEN_TABLE), given)
    assert [value.hex() for value in compressed.values()] == ["0200ff6cff70", "000103", "", "ffff"]
    assert decode(SymbolTable(GOLDEN_TABLE), compressed).values() == given.values()


@given(strings, st.booleans(), st.booleans(), st.integers(0, 5), st.integers(0, 9), st.integers(0, 70))
def test_built_tables_compress_greedily(
    values: list[bytes], wide: bool, out_wide: bool, times: int, skew: int, slack: int
) -> None:
    given = Strings.of(values * times, wide)
    table, sampled, size = built(given)
    compressed = encode(table, given, out_wide, skew)
    assert compressed.values() == [greedy(table.symbols, value) for value in values] * times
    assert decode(table, compressed, wide, skew=skew, slack=slack).values() == given.values()
    if len(given.data) <= 16384:
        assert (sampled, size) == (len(given.data), len(compressed.data))


@given(strings, st.lists(st.sampled_from(WORDS[1:-1]).map(lambda word: word[:8]), max_size=30), st.integers(0, 9))
def test_any_table_round_trips(values: list[bytes], symbols: list[bytes], skew: int) -> None:
    table, given = table_of(symbols), Strings.of(values)
    assert decode(table, encode(table, given, skew=skew), skew=skew).values() == values


@given(strings, st.booleans(), st.booleans(), st.integers(0, 9))
def test_verbatim(values: list[bytes], wide: bool, out_wide: bool, skew: int) -> None:
    stored = encode(verbatim(), Strings.of(values, wide), out_wide, skew)
    assert stored.values() == values
    assert decode(verbatim(), stored, wide, skew=skew).values() == values


@pytest.mark.parametrize("table", [SymbolTable(GOLDEN_TABLE), verbatim()])
def test_a_slice_of_the_offsets(table: SymbolTable) -> None:
    whole = Strings.of([b"left out", b"hello help", b"", b"hello", b"left out"])
    compressed = encode(table, Strings(whole.data, whole.offsets[1:5]))
    assert decode(table, compressed).values() == [b"hello help", b"", b"hello"]


@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 7, 8, 9, 30, 700, 5000, 300_000]))
def test_lengths(seed: int, longest: int) -> None:
    """Strings of all lengths are encoded: short ones in groups that are decoded as one run, long ones individually."""
    rng = np.random.default_rng(seed)
    text = rng.choice(np.frombuffer(b"etaoin shrdlu\xff", np.uint8), 2 * longest).tobytes()
    cuts = rng.integers(0, longest, (int(rng.integers(1, 40)), 2))
    given = Strings.of([text[a : a + b] for a, b in cuts.tolist()])
    table, _, _ = built(given)
    compressed = encode(table, given)
    assert decode(table, compressed).values() == given.values()
    some = [i for i in range(given.n) if cuts[i, 1] < 6000]
    values, codes = given.values(), compressed.values()
    assert [codes[i] for i in some] == [greedy(table.symbols, values[i]) for i in some]


@pytest.mark.parametrize("many", [50_000, 300_000])
def test_many_short_and_empty_strings(many: int) -> None:
    rng = np.random.default_rng(many)
    values = [b"%d" % number if number % 3 else b"" for number in rng.integers(0, 4000, many).tolist()]
    given = Strings.of(values, wide=True)
    table, _, _ = built(given)
    compressed = encode(table, given)
    known = {value: greedy(table.symbols, value) for value in set(values)}
    assert compressed.values() == [known[value] for value in values]
    assert decode(table, compressed).values() == values


def test_tables_depend_on_the_strings_alone() -> None:
    rng = np.random.default_rng(1)
    values = [b"user-%d@example.com" % number for number in rng.integers(0, 10**6, 5000).tolist()]
    narrow, wide = Strings.of(values), Strings.of([b"skipped", *values], wide=True)
    shifted = Strings(wide.data, wide.offsets[1:])
    assert built(narrow)[0].symbols == built(narrow)[0].symbols == built(shifted)[0].symbols


def test_compression_is_worth_it() -> None:
    rng = np.random.default_rng(2)
    values = [b"https://www.example.com/item/%d?ref=mail" % number for number in rng.integers(0, 10**6, 4000).tolist()]
    given = Strings.of(values)
    table, sampled, size = built(given)
    compressed = encode(table, given)
    assert len(compressed.data) * 4 < len(given.data)
    assert sampled / size == pytest.approx(len(given.data) / len(compressed.data), rel=0.1)
    noise = Strings.of([rng.bytes(100) for _ in range(1000)])
    _, sampled, size = built(noise)
    assert size > 0.9 * sampled


@pytest.mark.parametrize("values", [[], [b""], [b""] * 1000])
def test_no_bytes(values: list[bytes]) -> None:
    given = Strings.of(values)
    table, sampled, size = built(given)
    assert (table.symbols, sampled, size) == ([], 0, 0)
    assert decode(table, encode(table, given)).values() == values


# -- single strings --------------------------------------------------------------------------------------------------


@given(strings, st.booleans(), st.booleans(), st.data(), st.integers(0, 9))
def test_take(values: list[bytes], stored: bool, wide: bool, data: st.DataObject, skew: int) -> None:
    table = verbatim() if stored else built(Strings.of(values))[0]
    given = encode(table, Strings.of(values), wide, skew)
    picked = data.draw(st.lists(st.integers(0, len(values) - 1), max_size=30)) if values else []
    rows, size = np.array(picked, np.int64), sum(len(values[i]) for i in picked)
    ends, out = bytearray(skew + 4 * len(picked)), bytearray(b"\xa5" * (skew + size + 8))
    place = (given.data, given.ends, wide, 0, given.n)
    assert table.take_ends(*place, rows, 9, False, memoryview(ends)[skew:]) == size
    assert table.take_bytes(*place, rows, memoryview(out)[skew:-8]) == size
    offsets = np.concatenate([[9], np.frombuffer(bytes(ends[skew:]), np.int32)])
    taken = Strings(np.frombuffer(bytes(out[skew : skew + size]), np.uint8), offsets)
    assert taken.values() == [values[i] for i in picked]
    assert out[-8:] == b"\xa5" * 8


@pytest.mark.parametrize("row", [-1, 2, 2**62, -(2**63)])
def test_rows_that_do_not_exist(row: int) -> None:
    given, table = Strings.of([b"\0", b"\1"]), SymbolTable(GOLDEN_TABLE)
    rows = np.array([0, row], np.int64)
    with pytest.raises(CodecError, match=f"row {row} is outside 2 strings"):
        table.take_ends(given.data, given.ends, False, 0, 2, rows, 0, False, bytearray(8))
    with pytest.raises(CodecError, match=f"row {row} is outside 2 strings"):
        table.take_bytes(given.data, given.ends, False, 0, 2, rows, bytearray(99))


def test_take_looks_only_at_its_strings() -> None:
    given, table, rows = Strings.of([b"\0", b"\xf0", b"\1"]), SymbolTable(GOLDEN_TABLE), np.array([2, 0])
    out = bytearray(4)
    assert table.take_bytes(given.data, given.ends, False, 0, 3, rows, out) == 4
    assert out == b"llhe"
    with pytest.raises(CodecError, match=r"string 1 of 3.*code"):
        table.take_ends(given.data, given.ends, False, 0, 3, np.array([0, 1]), 0, False, bytearray(8))
    with pytest.raises(CodecError, match=r"string 1 of 3.*code"):
        table.take_bytes(given.data, given.ends, False, 0, 3, np.array([0, 1]), bytearray(99))


# -- the reference ---------------------------------------------------------------------------------------------------


def street_names(count: int) -> list[str]:
    rng = np.random.default_rng(4)
    kinds, places = ["Street", "Straße", "Avenue", "улица"], ["Upper", "Lower", "Old", "New"]
    numbers = rng.integers(0, 10**5, (count, 3)).tolist()
    return [f"{a} {places[b % 4]} {kinds[c % 4]}, {'no. ' * (b % 5)}{c}" for a, b, c in numbers]


def chunks_of(page: Page, version: str) -> list[Strings]:
    """Return the compressed strings of the mini-blocks of a page without nulls."""
    large = version != "2.1"
    words = np.frombuffer(page.buffers[0], "<u4" if large else "<u2").tolist()
    counts = [1 << (word & 15) for word in words[:-1]]
    counts.append(page.length - sum(counts))
    data, at, chunks = page.buffers[1], 0, []
    for word, n in zip(words, counts, strict=True):
        (size,) = struct.unpack_from("<I" if large else "<H", data, at + 2)
        values = np.frombuffer(data, np.uint8, size, at + 8)
        offsets = np.frombuffer(data, "<i4", n + 1, at + 8)
        chunks.append(Strings(values[offsets[0] : offsets[-1]], offsets))
        at += ((word >> 4) + 1) * 8
    return chunks


def meanings(table: SymbolTable, value: bytes) -> list[bytes]:
    """Return the symbols and escaped bytes of a compressed string, or the string itself if it is verbatim."""
    if not table.compressed:
        return [value]
    out, at, symbols = [], 0, table.symbols
    while at < len(value):
        escaped = value[at] == ESCAPE
        out.append(value[at : at + 2] if escaped else symbols[value[at]])
        at += 1 + escaped
    return out


def page_from(table: bytes, chunks: Sequence[Strings], version: str) -> Page:
    """Return a page of chunks of strings. All chunks but the last must have a power of two of strings."""
    large, words, data = version != "2.1", [], b""
    for i, chunk in enumerate(chunks):
        body = (chunk.offsets - chunk.first + 4 * (chunk.n + 1)).astype("<i4").tobytes() + chunk.data.tobytes()
        body += bytes(-len(body) % 4)
        part = struct.pack("<HI2x" if large else "<HH4x", 0, len(body)) + body
        part += bytes(-len(part) % 8)
        words.append((len(part) // 8 - 1) << 4 | (chunk.n.bit_length() - 1 if i < len(chunks) - 1 else 0))
        data += part
    rows = sum(chunk.n for chunk in chunks)
    layout = mini_block(lance_page.fsst(table), num_items=rows, version=version)
    return Page(layout, [struct.pack(f"<{len(words)}{'I' if large else 'H'}", *words), data], rows)


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("count", [20_000, 500])
def test_reads_what_the_reference_compressed(version: str, count: int) -> None:
    """Pages of the reference are decoded, including short ones with verbatim strings and a table that marks them."""
    values = street_names(count)
    [page] = pages_of(pa.array(values), version, {"lance-encoding:compression": "fsst"})
    message = page.mini["value_compression"]["fsst"]
    table = SymbolTable(message["symbol_table"])
    assert table.compressed == (count > 500)
    chunks = chunks_of(page, version)
    decoded = [value.decode() for chunk in chunks for value in decode(table, chunk).values()]
    assert decoded == values
    # the reference's tables hold some symbols twice, so codes may differ, but not their meanings
    again = encode(table, Strings.of([value.encode() for value in values])).values()
    theirs = [value for chunk in chunks for value in chunk.values()]
    assert [meanings(table, value) for value in again] == [meanings(table, value) for value in theirs]


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("stored", [False, True])
def test_the_reference_reads_ours(version: str, stored: bool, tmp_path: Path) -> None:
    values = [value.encode() for value in street_names(4000)]
    table = bytearray(2312)
    if stored:
        fsst.write_verbatim_table(table)
    else:
        sampled, size = fsst.build(b"".join(values), Strings.of(values).offsets, False, len(values), table)
        assert sampled > 1.5 * size
    parts = [Strings.of(values[at : at + 64]) for at in range(0, len(values), 64)]
    page = page_from(bytes(table), [encode(SymbolTable(table), part) for part in parts], version)
    write_pages(tmp_path / "a.lance", pa.field("a", pa.string()), [page], version)
    assert read_back(tmp_path / "a.lance").to_pylist() == [value.decode() for value in values]
    taken = read_back(tmp_path / "a.lance", [3, 64, 3999]).to_pylist()
    assert taken == [values[i].decode() for i in (3, 64, 3999)]
