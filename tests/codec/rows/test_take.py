"""Tests of compiled random access against models: every kind of page, many pages and fragments, deletions, damage."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.pages.take_pages import COUNTS, CUTS, ROWS, WORDS, chunks_of, cut, inline, list_page, rows_of, text_chunk

from lancecodec import CodecError, bitpacking, fsst, take_pages, variable
from lancecodec import miniblock_levels as levels
from lancecodec import miniblock_values as values
from lancecodec.fullzip import ZipLayout
from lancecodec.take_pages import PageTaker


def nullable(valid: np.ndarray | None) -> tuple[list[list[bytes]], tuple[int, int] | None]:
    """Return level streams and their codec."""
    if valid is None:
        return [], None
    return [[(~part).astype(np.uint16).tobytes() for part in cut(valid)]], (levels.FLAT, 0)


ORDERS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "one": lambda rng, n: rng.integers(0, n, 1),
    "few": lambda rng, n: rng.integers(0, n, 7),
    "ascending": lambda rng, n: np.sort(rng.integers(0, n, 60)),
    "all": lambda rng, n: np.arange(n),
    "shuffled": lambda rng, n: rng.permutation(n),
    "repeats": lambda rng, n: rng.integers(0, n, 3000),
}


def check(page: PageTaker, expected: pa.Array, width: int = 0, **shape: Any) -> None:
    kind = expected.type
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    wide = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
    for order in ORDERS.values():
        rows = order(np.random.default_rng(3), len(expected))
        found = rows_of(page, rows, kind, (width, wide, text, shape.get("lists", ()), shape.get("listed", 0)))
        assert found is not None
        assert found.equals(expected.take(pa.array(rows)))


# -- mini-block --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("with_nulls", [False, True])
@pytest.mark.parametrize("dtype", ["u1", "u2", "u4", "u8"])
@pytest.mark.parametrize("codec", ["flat", "inline", "rle", "split"])
def test_numbers(codec: str, dtype: str, with_nulls: bool) -> None:
    rng = np.random.default_rng(1)
    numbers = np.repeat(rng.integers(0, 200, ROWS // 3 + 1), 3)[:ROWS].astype(dtype)
    valid = rng.random(ROWS) < 0.7 if with_nulls else None
    bits, width = numbers.dtype.itemsize * 8, numbers.dtype.itemsize
    if codec == "split" and bits < 32:
        with pytest.raises(CodecError):
            take_pages.fixed_chunks(chunks_of([[b"\x00"] * 5]), width, values.SPLIT, bits)
        return
    if codec == "flat":
        buffers = [[part.tobytes() for part in cut(numbers)]]
    elif codec == "inline":
        buffers = [[inline(part) for part in cut(numbers)]]
    elif codec == "split":
        buffers = [[part.view(np.uint8).reshape(-1, width).T.tobytes() for part in cut(numbers)]]
    else:
        buffers = [[part.tobytes() for part in cut(numbers)], [bytes([1] * len(part)) for part in cut(numbers)]]
    streams, definition = nullable(valid)
    kind = {"flat": values.FLAT, "inline": values.INLINE, "rle": values.RLE, "split": values.SPLIT}[codec]
    page = take_pages.fixed_chunks(chunks_of(buffers, streams), width, kind, bits, definition=definition)
    check(page, pa.array(numbers, mask=None if valid is None else ~valid), width)


def test_booleans() -> None:
    bits = np.random.default_rng(1).random(ROWS) < 0.5
    page = take_pages.fixed_chunks(
        chunks_of([[np.packbits(part, bitorder="little").tobytes() for part in cut(bits)]]), 0, values.FLAT, 1
    )
    check(page, pa.array(bits))


def test_wide_values_and_fixed_size_lists() -> None:
    numbers = np.random.default_rng(1).integers(0, 99, (ROWS, 6)).astype("u2")
    page = take_pages.fixed_chunks(chunks_of([[part.tobytes() for part in cut(numbers)]]), 12, values.FLAT, 96)
    lists = pa.FixedSizeListArray.from_arrays(pa.FixedSizeListArray.from_arrays(pa.array(numbers.ravel()), 3), 2)
    check(page, lists, 12, lists=(2, 3))
    binary = pa.array([row.tobytes() for row in numbers], pa.binary(12))
    check(page, binary, 12)


@pytest.mark.parametrize("kind", [levels.FLAT, levels.INLINE, levels.RLE, levels.OUT_OF_LINE])
def test_levels(kind: int) -> None:
    valid = np.random.default_rng(1).random(ROWS) < 0.7
    streams = []
    for part in cut(~valid):
        level = part.astype(np.uint16)
        if kind == levels.INLINE:
            streams.append(inline(level))
        elif kind == levels.RLE:
            streams.append(struct.pack("<Q", 2 * len(level)) + level.tobytes() + bytes([1] * len(level)))
        elif kind == levels.OUT_OF_LINE:
            out = np.zeros(bitpacking.out_of_line_size(len(level), 16, 1), np.uint8)
            bitpacking.out_of_line_encode(level, 16, 1, out)
            streams.append(out.tobytes())
        else:
            streams.append(level.tobytes())
    numbers = np.arange(ROWS, dtype="u4")
    chunks = chunks_of([[part.tobytes() for part in cut(numbers)]], [streams])
    page = take_pages.fixed_chunks(chunks, 4, values.FLAT, 32, definition=(kind, 1))
    check(page, pa.array(numbers, mask=~valid), 4)
    required = take_pages.fixed_chunks(chunks, 4, values.FLAT, 32, definition=(kind, 1), required=True)
    assert rows_of(required, np.arange(ROWS), pa.uint32(), (4, False, False, (), 0)) is None


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("how", ["plain", "codes", "verbatim"])
def test_texts(how: str, wide: bool) -> None:
    rng = np.random.default_rng(2)
    texts = [WORDS[i].encode() for i in rng.integers(0, len(WORDS), ROWS)]
    valid = rng.random(ROWS) < 0.7
    symbols = bytearray(fsst.TABLE_SIZE)
    stored = texts
    if how == "verbatim":
        fsst.write_verbatim_table(symbols)
    elif how == "codes":
        fsst.write_table([b"x" * 8, b"longer", b"wor"], symbols)
        encoder = fsst.Encoder(fsst.SymbolTable(symbols))
        stored = []
        for text in texts:
            out, ends = bytearray(fsst.encode_bound(len(text))), np.zeros(2, np.int32)
            size = encoder.encode(text, np.array([0, len(text)], np.int32), False, 1, False, ends, out)
            stored.append(bytes(out[:size]))
    parts = [text_chunk(stored[low:high], wide) for low, high in itertools.pairwise(CUTS)]
    streams, definition = nullable(valid)
    table = None if how == "plain" else symbols
    for mask, chunks, codec in (
        (None, chunks_of([parts]), None),
        (~valid, chunks_of([parts], streams), definition),
    ):
        page = take_pages.text_chunks(chunks, wide, symbol_table=table, definition=codec)
        found = [None if mask is not None and mask[i] else text for i, text in enumerate(texts)]
        for kind in (pa.binary(), pa.large_binary()):
            check(page, pa.array(found, kind), -1)
        check(page, pa.array(found, pa.binary()).cast(pa.string()), -1)


def test_texts_must_be_utf8() -> None:
    for texts in ([b"\xff"] * ROWS, [b"\xc3", b"\xa4"] * (ROWS // 2) + [b""] * (ROWS % 2)):
        parts = [text_chunk(texts[low:high], False) for low, high in itertools.pairwise(CUTS)]
        page = take_pages.text_chunks(chunks_of([parts]), False)
        assert rows_of(page, [1, 2], pa.string(), (-1, False, True, (), 0)) is None
        assert rows_of(page, [1, 2], pa.binary(), (-1, False, False, (), 0)) is not None


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_dictionaries(bits: int) -> None:
    rng = np.random.default_rng(2)
    codes = rng.integers(0, len(WORDS), ROWS).astype(f"u{bits // 8}")
    valid = rng.random(ROWS) < 0.7
    codes[~valid] = 200  # an index under a null may be anything
    streams, definition = nullable(valid)
    chunks = chunks_of([[inline(part) for part in cut(codes)]], streams)
    picked = pa.array(np.where(valid, codes, 0), mask=~valid)
    for wide, kind in ((False, pa.string()), (True, pa.large_string())):
        entries = pa.array(WORDS, kind)
        page = take_pages.fixed_chunks(
            chunks,
            -1,
            values.INLINE,
            bits,
            definition=definition,
            entries=entries.buffers()[2],
            offsets=entries.buffers()[1],
            wide=wide,
            count=len(WORDS),
        )
        check(page, entries.take(picked), -1)
    numbers = pa.array(range(0, 100 * len(WORDS), 100)).cast(pa.decimal128(22, 2))
    data = numbers.buffers()[1]
    page = take_pages.fixed_chunks(
        chunks, 16, values.INLINE, bits, definition=definition, entries=data, count=len(WORDS)
    )
    check(page, numbers.take(picked), 16)
    few = take_pages.fixed_chunks(chunks, 16, values.INLINE, bits, definition=definition, entries=data, count=2)
    assert rows_of(few, np.arange(ROWS), numbers.type, (16, False, False, (), 0)) is None


@pytest.mark.parametrize("wide", [False, True])
def test_stored_dictionaries(wide: bool) -> None:
    codes = np.random.default_rng(3).integers(0, len(WORDS), ROWS).astype(np.uint8)
    chunks = chunks_of([[inline(part) for part in cut(codes)]])
    entries = pa.array(WORDS, pa.large_string() if wide else pa.string())
    _, offsets, data = entries.buffers()
    block = np.empty(variable.block_bound(len(WORDS), data.size, wide), np.uint8)
    block = block[: variable.encode_block(offsets, wide, data, len(WORDS), wide, block)]
    for out_wide, kind in ((False, pa.string()), (True, pa.large_string())):
        page = take_pages.indexed_chunks(chunks, -1, values.INLINE, 8, block, len(WORDS), wide=out_wide)
        check(page, entries.cast(kind).take(pa.array(codes)), -1)
    numbers = pa.array(range(len(WORDS)), pa.int64())
    page = take_pages.indexed_chunks(
        chunks, 8, values.INLINE, 8, numbers.buffers()[1].to_pybytes()[: 8 * len(WORDS)], len(WORDS)
    )
    check(page, numbers.take(pa.array(codes)), 8)
    for width, stored, count in (
        (-1, block[:-1], len(WORDS)),
        (-1, block, len(WORDS) + 1),
        (-1, block, 2**40),
        (-1, block, 0),
        (-1, block, -1),
        (0, block, len(WORDS)),
        (8, bytes(15), 2),
        (8, bytes(17), 2),
        (8, b"", 0),
    ):
        with pytest.raises(CodecError):
            take_pages.indexed_chunks(chunks, width, values.INLINE, 8, stored, count)


# -- lists -------------------------------------------------------------------------------------------------------


items = st.none() | st.integers(0, 99)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.none() | st.lists(items, max_size=6) | st.lists(items, min_size=40, max_size=90), min_size=1, max_size=40
    ),
    st.booleans(),
    st.integers(0, 2**32),
)
def test_lists(rows: list[list[int | None] | None], large: bool, seed: int) -> None:
    entries: list[tuple[int, int]] = []
    stored: list[int] = []
    for row in rows:
        if not row:
            entries.append((1, 2 if row is None else 3))
        for number, item in enumerate(row or []):
            entries.append((int(number == 0), int(item is None)))
            stored.append(item or 0)
    if not stored:
        return  # no chunk without a value
    page = list_page(entries, stored)
    if page is None:
        return
    kind = (pa.large_list if large else pa.list_)(pa.uint16())
    expected = pa.array(rows, kind)
    wanted = np.random.default_rng(seed).integers(0, len(rows), 50)
    found = rows_of(page, wanted, kind, (2, False, False, (), 8 if large else 4))
    assert found is not None
    assert found.equals(expected.take(pa.array(wanted)))


def test_null_lists_where_none_may_be() -> None:
    page = list_page([(1, 0), (1, 2)], [5], required=True)
    shape = (2, False, False, (), 4)
    assert rows_of(page, [0], pa.list_(pa.uint16()), shape) is not None
    assert rows_of(page, [1], pa.list_(pa.uint16()), shape) is None


# -- full-zip and constant ---------------------------------------------------------------------------------------


def zipped_rows(valid: np.ndarray, values_: np.ndarray, bits_def: int) -> bytes:
    """Return full-zip rows: a control word, if there are levels, and a value."""
    controls = [bytes([int(not ok)]) if bits_def else b"" for ok in valid]
    return b"".join(control + value.tobytes() for control, value in zip(controls, values_, strict=True))


@pytest.mark.parametrize("bits_def", [0, 1])
def test_zipped_values(bits_def: int) -> None:
    rng = np.random.default_rng(4)
    numbers = rng.integers(0, 2**32, (ROWS, 4)).astype("u4")
    valid = rng.random(ROWS) < 0.8 if bits_def else np.ones(ROWS, bool)
    page = take_pages.zipped(zipped_rows(valid, numbers, bits_def), ROWS, 16, bits_def=bits_def)
    items_ = pa.array(numbers.ravel())
    lists = pa.FixedSizeListArray.from_arrays(items_, 4, mask=pa.array(~valid))
    check(page, lists, 16, lists=(4,))
    flags = numbers[:, 0] % 2 == 0
    check(
        take_pages.zipped(zipped_rows(valid, flags, bits_def), ROWS, 0, bits_def=bits_def), pa.array(flags, mask=~valid)
    )


@pytest.mark.parametrize("offset_bits", [32, 64])
@pytest.mark.parametrize("bits_def", [0, 1])
def test_zipped_texts(bits_def: int, offset_bits: int) -> None:
    rng = np.random.default_rng(4)
    texts = [WORDS[i].encode() for i in rng.integers(0, len(WORDS), ROWS)]
    valid = rng.random(ROWS) < 0.8 if bits_def else np.ones(ROWS, bool)
    layout = ZipLayout(bits_def=bits_def, max_definition=bits_def, max_visible=bits_def, offset_bits=offset_bits)
    offsets = np.append(0, np.cumsum([len(text) for text in texts])).astype(np.int64)
    dfn = (~valid).astype(np.uint16) if bits_def else None
    given = {"definition": dfn, "offsets": offsets, "wide": True}
    size, _, _ = layout.zipped_size(ROWS, b"".join(texts), **given)
    data, index = bytearray(size), bytearray(4 * (ROWS + 1))
    layout.zip_items(ROWS, b"".join(texts), data, index, 4, **given)
    page = take_pages.zipped(data, ROWS, -1, bits_def=bits_def, index=index, index_width=4, offset_bits=offset_bits)
    check(page, pa.array([text if ok else None for text, ok in zip(texts, valid, strict=True)], pa.binary()), -1)


def test_zipped_texts_that_overlap() -> None:
    """Every second row has all bytes: together many times as many as there are."""
    data = struct.pack("<I", 100) + b"x" * 100
    index = np.resize(np.array([0, len(data)], np.uint32), ROWS + 1)
    page = take_pages.zipped(data, ROWS, -1, index=index, index_width=4, offset_bits=32)
    shape = (-1, False, False, (), 0)
    assert rows_of(page, [0], pa.binary(), shape) == pa.array([b"x" * 100])
    assert rows_of(page, [2, 2, 2], pa.binary(), shape) == pa.array([b"x" * 100] * 3)
    assert rows_of(page, [0, 2, 4], pa.binary(), shape) is None


def test_texts_in_chunks_that_overlap() -> None:
    parts = []
    for count in COUNTS:
        begin = 4 * (count + 1)
        ends = np.resize(np.array([begin, begin + 96], "<u4"), count + 1)
        parts.append(ends.tobytes() + b"x" * 96 + b"H" * (-begin % 8))
    page = take_pages.text_chunks(chunks_of([parts]), False)
    shape = (-1, False, False, (), 0)
    assert rows_of(page, [0, 0, 64], pa.binary(), shape) == pa.array([b"x" * 96] * 3)
    assert rows_of(page, [0, 2], pa.binary(), shape) is None
    assert rows_of(page, np.arange(0, 64, 2), pa.binary(), shape) is None


def test_constants() -> None:
    valid = np.random.default_rng(4).random(ROWS) < 0.8
    dfn = (~valid).astype(np.uint16).tobytes()
    check(take_pages.constant(ROWS, 4, struct.pack("<I", 7)), pa.array([7] * ROWS, pa.uint32()), 4)
    check(
        take_pages.constant(ROWS, 4, struct.pack("<I", 7), definition=dfn),
        pa.array(np.full(ROWS, 7, "u4"), mask=~valid),
        4,
    )
    check(take_pages.constant(ROWS, 0, b"\1", definition=dfn), pa.array(np.ones(ROWS, bool), mask=~valid))
    check(take_pages.constant(ROWS, -1, b"abc"), pa.array(["abc"] * ROWS), -1)
    for width, kind in ((0, pa.bool_()), (8, pa.int64()), (-1, pa.string())):
        check(take_pages.nulls(ROWS, width), pa.nulls(ROWS, kind), width)
        required = take_pages.nulls(ROWS, width, required=True)
        assert rows_of(required, [0], kind, (width, False, False, (), 0)) is None
