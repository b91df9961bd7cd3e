"""Tests of decoding strings compressed with a symbol table: valid, invalid, and with too small outputs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.pages.fsst_strings import (
    ESCAPE,
    GOLDEN_SYMBOLS,
    GOLDEN_TABLE,
    Strings,
    built,
    decode,
    encode,
    offset_type,
    table_of,
    verbatim,
)

from lancecodec import CodecError, fsst
from lancecodec.fsst import Encoder, SymbolTable


def expand(symbols: Sequence[bytes], value: bytes) -> bytes | None:
    """Return the expansion of a compressed string, None if it is malformed."""
    out, at = bytearray(), 0
    while at < len(value):
        if value[at] == ESCAPE:
            out += value[at + 1 : at + 2]
            at += 2
        elif value[at] < len(symbols):
            out += symbols[value[at]]
            at += 1
        else:
            return None
    return bytes(out) if at == len(value) else None


# -- decoding --------------------------------------------------------------------------------------------------------


@st.composite
def code_strings(draw: st.DrawFn) -> tuple[list[bytes], list[bytes]]:
    """Draw symbols and byte strings that are often, but not always, sequences of their codes."""
    most = draw(st.sampled_from([3, 200, 255]))
    symbols = draw(st.lists(st.binary(min_size=1, max_size=8), min_size=1, max_size=most))
    code = st.integers(0, len(symbols) - 1).map(lambda c: bytes([c]))
    escaped = st.integers(0, 255).map(lambda b: bytes([ESCAPE, b]))
    piece = draw(st.sampled_from([code, st.one_of(code, escaped), st.one_of(code, escaped, st.binary(max_size=3))]))
    most = draw(st.sampled_from([5, 40, 400]))
    return symbols, draw(st.lists(st.lists(piece, max_size=most).map(b"".join), max_size=20))


@given(code_strings(), st.booleans(), st.booleans(), st.integers(0, 9), st.sampled_from([0, 0, 1, 100]))
def test_decode(case: tuple[list[bytes], list[bytes]], wide: bool, out_wide: bool, skew: int, slack: int) -> None:
    symbols, values = case
    table = table_of(symbols)
    wanted = [expand(symbols, value) for value in values]
    given = Strings.of(values, wide, first=1000)
    if None in wanted:
        with pytest.raises(CodecError):
            decode_anyway(table, given)
    else:
        assert decode(table, given, out_wide, base=77, skew=skew, slack=slack).values() == wanted


def decode_anyway(table: SymbolTable, given: Strings) -> int:
    out, ends = bytearray(8 * len(given.data)), bytearray(8 * given.n)
    return table.decode(given.data, given.ends, given.wide, given.first, given.n, 0, True, ends, out)


@pytest.mark.parametrize("length", [*range(1, 30), 2047, 2048, 2049, 5000])
@pytest.mark.parametrize("count", [1, 40])
def test_escapes_at_every_place(length: int, count: int) -> None:
    """In a run of bytes 255, pairs of escape and literal, the last byte must not be an escape."""
    table = table_of(GOLDEN_SYMBOLS)
    values = [b"\0" * (length % 3) + b"\xff" * length] * count
    if length % 2:
        assert expand(GOLDEN_SYMBOLS, values[0]) is None
        with pytest.raises(CodecError, match="escape"):
            decode_anyway(table, Strings.of(values))
        with pytest.raises(CodecError, match="escape"):
            table.decoded_size(values[0])
    else:
        wanted = [expand(GOLDEN_SYMBOLS, value) for value in values]
        assert decode(table, Strings.of(values)).values() == wanted


@pytest.mark.parametrize("count", [1, 4, 127, 128, 129, 254, 255])
def test_codes_without_a_symbol(count: int) -> None:
    table = table_of([b"ab"] * count)
    for code in range(256):
        for at, size in ((0, 1), (0, 8), (7, 8), (3, 21), (20, 21), (150, 400)):
            value = bytearray(size)
            value[at] = code
            bad = code >= count and (code != ESCAPE or at == size - 1)
            assert (expand([b"ab"] * count, bytes(value)) is None) == bad
            if bad:
                with pytest.raises(CodecError, match="code"):
                    decode_anyway(table, Strings.of([bytes(value)]))
                with pytest.raises(CodecError, match="code"):
                    table.decoded_size(value)
            else:
                assert table.decoded_size(value) == decode_anyway(table, Strings.of([bytes(value)]))


def test_escape_that_takes_its_byte_from_the_next_string() -> None:
    table = table_of(GOLDEN_SYMBOLS)
    with pytest.raises(CodecError, match="escape"):
        decode_anyway(table, Strings.of([b"\0\xff", b"a"]))
    with pytest.raises(CodecError, match="escape"):
        decode_anyway(table, Strings.of([b"\0" * 300 + b"\xff", b"a" + b"\0" * 300]))


def test_chunks_one_after_the_other() -> None:
    rng = np.random.default_rng(3)
    values = [b"%d Main Street" % number for number in rng.integers(0, 999, 900).tolist()]
    table, _, _ = built(Strings.of(values))
    out, ends, at = np.zeros(len(b"".join(values)), np.uint8), np.zeros(901, np.int32), 0
    for begin in range(0, 900, 128):
        chunk = encode(table, Strings.of(values[begin : begin + 128]))
        target = ends[1 + begin :].view(np.uint8)
        at += table.decode(chunk.data, chunk.ends, False, 0, chunk.n, at, False, target, out[at:])
    assert Strings(out, ends).values() == values


@pytest.mark.parametrize("table", [SymbolTable(GOLDEN_TABLE), verbatim()])
@pytest.mark.parametrize("wide", [False, True])
def test_ends_in_place(table: SymbolTable, wide: bool) -> None:
    values = [b"hello help", b"", b"hello"] * 500
    given = encode(table, Strings.of(values), wide)
    ends, out = bytearray(given.ends), np.zeros(len(b"".join(values)), np.uint8)
    table.decode(given.data, ends, wide, 0, given.n, 5, wide, ends, out)
    offsets = np.concatenate([[5], np.frombuffer(bytes(ends), offset_type(wide))])
    assert Strings(out, offsets).values() == values


@pytest.mark.parametrize("table", [SymbolTable(GOLDEN_TABLE), verbatim()])
@pytest.mark.parametrize("values", [[b"hello help", b"hello"], [b"hello hello " * 300]])
def test_every_capacity_that_is_too_small(table: SymbolTable, values: list[bytes]) -> None:
    given = encode(table, Strings.of(values))
    size = len(b"".join(values))
    for capacity in {*range(min(size, 100)), *range(size - 100, size)}:
        if capacity >= 0:
            out = np.zeros(capacity, np.uint8)
            with pytest.raises(CodecError, match="do not fit"):
                table.decode(given.data, given.ends, False, 0, given.n, 0, False, bytearray(4 * given.n), out)
            with pytest.raises(CodecError, match="do not fit"):
                table.take_bytes(given.data, given.ends, False, 0, given.n, np.arange(given.n), out)


@pytest.mark.parametrize("table", [SymbolTable(GOLDEN_TABLE), verbatim()])
def test_ends_that_need_64_bits(table: SymbolTable) -> None:
    given = encode(table, Strings.of([b"hello"]))
    assert decode(table, given, wide=False, base=2**31 - 6).offsets.tolist() == [2**31 - 6, 2**31 - 1]
    assert decode(table, given, wide=True, base=2**31).offsets.tolist() == [2**31, 2**31 + 5]
    assert decode(table, given, wide=True, base=2**63 - 6).offsets[1] == 2**63 - 1
    for base, wide in ((2**31 - 5, False), (2**31, False), (2**63 - 5, True), (-1, False), (-1, True)):
        with pytest.raises(CodecError, match="do not fit"):
            decode(table, given, wide=wide, base=base)
        with pytest.raises(CodecError, match="do not fit"):
            table.take_ends(given.data, given.ends, False, 0, 1, np.zeros(1, np.int64), base, wide, bytearray(8))


BAD_OFFSETS = [[0, 2, 1, 3], [3, 2, 2, 4], [-1, 0, 1, 2], [0, 5, 6, 99], [0, 0, 0, 2**31 - 1], [-(2**31), 0, 0, 0]]


@pytest.mark.parametrize("offsets", BAD_OFFSETS)
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("table", [SymbolTable(GOLDEN_TABLE), verbatim()])
def test_bad_offsets(offsets: list[int], wide: bool, table: SymbolTable) -> None:
    given = Strings(np.zeros(6, np.uint8), np.array(offsets, offset_type(wide)))
    with pytest.raises(CodecError, match="offsets"):
        decode_anyway(table, given)
    with pytest.raises(CodecError, match="offsets"):
        encode(table, given)
    with pytest.raises(CodecError, match="offsets"):
        built(given)
    with pytest.raises(CodecError, match="offsets"):
        table.take_bytes(given.data, given.ends, wide, given.first, 3, np.arange(3), bytearray(99))


@pytest.mark.parametrize("n", [-1, 4, 2**60, 2**61, 2**62, 2**63 - 1, -(2**63)])
@pytest.mark.parametrize("wide", [False, True])
def test_bad_counts(n: int, wide: bool) -> None:
    given, table, rows = Strings.of([b"a", b"b", b"c"], wide), SymbolTable(GOLDEN_TABLE), np.zeros(1, np.int64)
    with pytest.raises(CodecError):
        table.decode(given.data, given.ends, wide, 0, n, 0, True, bytearray(99), bytearray(99))
    with pytest.raises(CodecError):
        table.take_ends(given.data, given.ends, wide, 0, n, rows, 0, True, bytearray(99))
    with pytest.raises(CodecError):
        table.take_bytes(given.data, given.ends, wide, 0, n, rows, bytearray(99))
    with pytest.raises(CodecError):
        Encoder(table).encode(given.data, given.offsets, wide, n, True, bytearray(99), bytearray(99))
    with pytest.raises(CodecError):
        fsst.build(given.data, given.offsets, wide, n, bytearray(2312))


def test_small_outputs_of_the_encoder() -> None:
    given, encoder = Strings.of([b"hello"]), Encoder(SymbolTable(GOLDEN_TABLE))
    with pytest.raises(CodecError, match="too small"):
        encoder.encode(given.data, given.offsets, False, 1, False, bytearray(8), bytearray(fsst.encode_bound(5) - 1))
    with pytest.raises(CodecError, match="do not hold"):
        encoder.encode(given.data, given.offsets, False, 1, False, bytearray(7), bytearray(99))
    with pytest.raises(CodecError):
        fsst.encode_bound(-1)
