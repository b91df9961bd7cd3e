"""Compiled random access against models: every kind of page, many pages and fragments, deletions, and damage."""

from __future__ import annotations

import gc
import itertools
import struct
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lancecodec import CodecError, bitpacking, fsst, take, take_pages
from lancecodec import miniblock_levels as levels
from lancecodec import miniblock_values as values
from lancecodec.fullzip import ZipLayout
from lancecodec.miniblock import Chunks, ChunkTable
from lancecodec.miniblock_levels import RepetitionIndex
from lancecodec.miniblock_write import Assembly
from lancecodec.take import ADDRESSES, ColumnTaker, FragmentTaker, RowTaker, TakenRows
from lancecodec.take_pages import Lists, PageTaker

COUNTS = [64, 64, 32, 8, 5]
ROWS = sum(COUNTS)
CUTS = np.append(0, np.cumsum(COUNTS))
WORDS = ["", "a", "word", "grün", "longer than eight bytes", "x" * 300]


def cut(stream: np.ndarray) -> list[np.ndarray]:
    return [stream[low:high] for low, high in itertools.pairwise(CUTS)]


def chunks_of(buffers: Sequence[Sequence[bytes]], level_streams: Sequence[Sequence[bytes]] = ()) -> Chunks:
    """Chunks of COUNTS values; for each buffer its bytes in every chunk."""

    def joined(parts: Sequence[bytes]) -> tuple[bytes, list[int]]:
        return b"".join(parts), np.cumsum([len(part) for part in parts]).tolist()

    entries = COUNTS if level_streams else None
    plan = Assembly(
        COUNTS, list(map(joined, buffers)), True, levels=entries, level_streams=list(map(joined, level_streams))
    )
    words, data = bytearray(plan.words_size), bytearray(plan.chunks_size)
    plan.write(words, data)
    table = ChunkTable(words, ROWS, len(data), True)
    two = len(level_streams) > 1
    return Chunks(table, len(buffers), repetition=two, definition=bool(level_streams), data=data)


def inline(part: np.ndarray) -> bytes:
    """One block of 1,024 values in front of which its width stands."""
    bits = part.dtype.itemsize * 8
    out = np.zeros(bits // 8 + 128 * bits, np.uint8)
    ends = np.zeros(1, np.int64)
    size = bitpacking.inline_encode(np.ascontiguousarray(part), bits, out, ends)
    return out[: int(ends[0]) if size is None else size].tobytes()


def text_chunk(texts: Sequence[bytes], wide: bool) -> bytes:
    size = 8 if wide else 4
    ends = (len(texts) + 1) * size + np.append(0, np.cumsum([len(text) for text in texts]))
    data = ends.astype(np.int64 if wide else np.int32).tobytes() + b"".join(texts)
    return data + b"H" * (-len(data) % 8)


def nullable(valid: np.ndarray | None) -> tuple[list[list[bytes]], tuple[int, int] | None]:
    """Level streams and their codec."""
    if valid is None:
        return [], None
    return [[(~part).astype(np.uint16).tobytes() for part in cut(valid)]], (levels.FLAT, 0)


def import_column(taken: TakenRows, column: int, kind: pa.DataType) -> pa.Array:
    array = pa.Array._import_from_c(taken.column(column), kind)
    array.validate(full=True)
    return array


def rows_of(page: PageTaker | None, rows: Any, kind: pa.DataType, shape: tuple[Any, ...]) -> pa.Array | None:
    """Rows of a column of that page alone, None if it is missing."""
    total = ROWS if page is None else page.num_rows
    column = ColumnTaker([0, total], shape[0], lambda _: page)
    taker = RowTaker([shape], np.array([0, total]), lambda _: FragmentTaker([column], total, 0))
    taken = taker.numbers(np.array(rows, np.int64))
    taken.decode_all()
    assert taken.missing in ([], [0])
    return None if taken.missing else import_column(taken, 0, kind)


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


def list_page(entries: list[tuple[int, int]], stored: list[int], required: bool = False) -> PageTaker | None:
    """Chunks of 64 values, each with the entries up to the next one's."""
    owners = np.cumsum([definition < 2 for _, definition in entries])
    counts = [64] * (len(stored) // 64) + [len(stored) % 64] * (len(stored) % 64 > 0)
    if len(counts) > 1 and counts[-1] == 64:
        counts[-1] = 64
    edges = [0, *np.searchsorted(owners, np.cumsum(counts)[:-1] + 1).tolist(), len(entries)]
    rep, dfn, data, per_chunk = [], [], [], []
    numbers, first = np.array(stored, np.uint16), 0
    for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True):
        part = np.array(entries[low:high], np.uint16).reshape(-1, 2)
        rep.append(np.ascontiguousarray(part[:, 0]).tobytes())
        dfn.append(np.ascontiguousarray(part[:, 1]).tobytes())
        data.append(numbers[first : first + count].tobytes())
        per_chunk.append(high - low)
        first += count

    def joined(parts: list[bytes]) -> tuple[bytes, list[int]]:
        return b"".join(parts), np.cumsum([len(part) for part in parts]).tolist()

    plan = Assembly(counts, [joined(data)], True, levels=per_chunk, level_streams=[joined(rep), joined(dfn)])
    words, page = bytearray(plan.words_size), bytearray(plan.chunks_size)
    plan.write(words, page)
    table = ChunkTable(words, len(stored), len(page), True)
    chunks = Chunks(table, 1, repetition=True, definition=True, data=page)
    starts = np.array([rep_level for rep_level, _ in entries])
    started = np.array([int(starts[:stop].sum()) for stop in edges[1:]])
    open_ = [stop < len(entries) and starts[stop] == 0 for stop in edges[1:]]
    pairs = np.stack([np.diff(started - open_, prepend=0), open_], 1).astype(np.uint64)
    index = RepetitionIndex(pairs, len(counts), int(starts.sum()))
    lists = Lists(
        index.started, (levels.FLAT, 0), null_items=True, null_lists=True, empty_lists=True, required=required
    )
    return take_pages.fixed_chunks(chunks, 2, values.FLAT, 16, definition=(levels.FLAT, 0), lists=lists)


def test_null_lists_where_none_may_be() -> None:
    page = list_page([(1, 0), (1, 2)], [5], required=True)
    shape = (2, False, False, (), 4)
    assert rows_of(page, [0], pa.list_(pa.uint16()), shape) is not None
    assert rows_of(page, [1], pa.list_(pa.uint16()), shape) is None


# -- full-zip and constant ---------------------------------------------------------------------------------------


def zipped_rows(valid: np.ndarray, values_: np.ndarray, bits_def: int) -> bytes:
    """Items of a control word, if there are levels, and a value."""
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


# -- tables ------------------------------------------------------------------------------------------------------


class Table:
    """Fragments of pages of 32-bit numbers, some rows deleted; a value is its address."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.pages_opened: list[tuple[int, int]] = []
        self.fragments, live = [], []
        for number in range(int(rng.integers(1, 8))):
            lengths = rng.integers(1, 50, int(rng.integers(1, 4)))
            rows = int(lengths.sum())
            deleted = np.flatnonzero(rng.random(rows) < rng.choice([0.0, 0.2, 1.0], p=[0.4, 0.5, 0.1]))
            self.fragments.append((number * 3, np.append(0, np.cumsum(lengths)).tolist(), deleted))
            live.append(np.setdiff1d(np.arange(rows), deleted) + (number * 3 << 32))
        self.live = np.concatenate(live)
        starts = np.append(0, np.cumsum([len(part) for part in live]))
        self.taker = RowTaker([(8, False, False, (), 0), (8, False, False, (), 0)], starts, self.open)

    def open(self, position: int) -> FragmentTaker:
        fragment_id, starts, deleted = self.fragments[position]

        def page(number: int) -> PageTaker:
            self.pages_opened.append((position, number))
            rows = np.arange(starts[number], starts[number + 1]) + (fragment_id << 32)
            return take_pages.zipped(rows.tobytes(), len(rows), 8)

        return FragmentTaker([ColumnTaker(starts, 8, page), ADDRESSES], starts[-1], fragment_id, deleted)

    def check(self, taken: TakenRows, expected: np.ndarray) -> None:
        taken.decode_all()
        assert taken.num_rows == len(expected)
        assert taken.missing == []
        schema = pa.schema([("a", pa.int64()), ("b", pa.uint64())])
        batch = pa.RecordBatch._import_from_c(taken.batch(), schema)
        batch.validate(full=True)
        assert batch["a"].to_pylist() == batch["b"].to_pylist() == expected.tolist()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 400))
def test_rows_of_many_fragments(seed: int, count: int) -> None:
    table, rng = Table(seed), np.random.default_rng(seed)
    if len(table.live):
        rows = rng.integers(0, len(table.live), count)
        table.check(table.taker.numbers(rows), table.live[rows])
    positions = rng.integers(0, len(table.fragments), count)
    offsets = np.array([rng.integers(0, table.fragments[position][1][-1]) for position in positions])
    ids = np.array([table.fragments[position][0] for position in positions])
    table.check(table.taker.places(positions << 32 | offsets), ids << 32 | offsets)
    assert len(set(table.pages_opened)) == len(table.pages_opened)


def test_rows_outside() -> None:
    table = Table(5)
    for rows in ([len(table.live)], [-1], [0, 2**62], [-(2**63)]):
        with pytest.raises(IndexError):
            table.taker.numbers(np.array(rows))
    with pytest.raises(IndexError):
        table.taker.places(np.array([len(table.fragments) << 32]))
    with pytest.raises(CodecError, match="outside a fragment"):
        table.taker.places(np.array([1 << 20]))
    with pytest.raises(CodecError, match="no rows"):
        table.taker.numbers(np.array([], np.int64))


def test_many_threads() -> None:
    table = Table(7)
    wrong: list[object] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        try:
            for _ in range(50):
                rows = rng.integers(0, len(table.live), 200)
                table.check(table.taker.numbers(rows), table.live[rows])
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("deleted", [[0, 1, 2, 3], [9, 9, 9], [-(2**62), 2**62], [5, 0, 5, 0]])
def test_deleted_rows_that_cannot_be(deleted: list[int]) -> None:
    """Whatever a deletion file says, no row outside the fragment is looked up."""
    page = take_pages.zipped(np.arange(4).tobytes(), 4, 8)
    fragment = FragmentTaker([ColumnTaker([0, 4], 8, lambda _: page)], 4, 0, np.array(deleted))
    taker = RowTaker([(8, False, False, (), 0)], np.array([0, 4]), lambda _: fragment)
    if max(deleted) < 9 or deleted[0] < 0:
        with pytest.raises(CodecError, match="outside a fragment"):
            taker.numbers(np.arange(4))
    else:
        taken = taker.numbers(np.arange(4))
        taken.decode_all()
        assert import_column(taken, 0, pa.int64()).to_pylist() == [0, 1, 2, 3]


def test_columns_that_are_missing() -> None:
    page = take_pages.zipped(bytes(32), 4, 8)
    columns = [ColumnTaker([0, 2, 4], 8, lambda number: page if number > 5 else None), None, ADDRESSES]
    shapes = [(8, False, False, (), 0)] * 3
    taker = RowTaker(shapes, np.array([0, 4]), lambda _: FragmentTaker(columns, 4, 1))
    taken = taker.numbers(np.array([3, 0]))
    taken.decode_all()
    assert taken.missing == [0, 1]
    assert import_column(taken, 2, pa.uint64()).to_pylist() == [(1 << 32) + 3, 1 << 32]
    with pytest.raises(CodecError):
        taken.column(0)
    with pytest.raises(CodecError):
        taken.batch()


def test_what_callbacks_raise_arrives() -> None:
    def broken(_: int) -> Any:
        raise KeyError("open")

    taker = RowTaker([(8, False, False, (), 0)], np.array([0, 4]), broken)
    with pytest.raises(KeyError, match="open"):
        taker.numbers(np.array([1]))
    column = ColumnTaker([0, 4], 8, broken)
    taker = RowTaker([(8, False, False, (), 0)], np.array([0, 4]), lambda _: FragmentTaker([column], 4, 1))
    with pytest.raises(KeyError, match="open"):
        taker.numbers(np.array([1]))
    wrong = ColumnTaker([0, 4], 4, lambda _: take_pages.nulls(4, 8))
    taker = RowTaker([(4, False, False, (), 0)], np.array([0, 4]), lambda _: FragmentTaker([wrong], 4, 1))
    with pytest.raises(CodecError, match="8 bytes"):
        taker.numbers(np.array([1]))


def test_arguments_that_do_not_fit() -> None:
    plain, levelled = (
        chunks_of([[bytes(4 * n) for n in COUNTS]]),
        chunks_of([[bytes(n) for n in COUNTS]], [[bytes(2 * n) for n in COUNTS]]),
    )
    for call in (
        lambda: take_pages.fixed_chunks(plain, 8, values.FLAT, 32),
        lambda: take_pages.fixed_chunks(plain, 4, 9, 32),
        lambda: take_pages.fixed_chunks(plain, 4, values.RLE, 32),
        lambda: take_pages.fixed_chunks(plain, 4, values.FLAT, 32, definition=(0, 0)),
        lambda: take_pages.fixed_chunks(levelled, 1, values.FLAT, 8),
        lambda: take_pages.fixed_chunks(levelled, 1, values.FLAT, 8, definition=(77, 0)),
        lambda: take_pages.fixed_chunks(plain, 4, values.FLAT, 32, entries=bytes(4), count=2),
        lambda: take_pages.fixed_chunks(plain, -1, values.FLAT, 32, entries=bytes(4), count=2),
        lambda: take_pages.fixed_chunks(plain, -1, values.FLAT, 32, entries=b"", offsets=bytes(8), count=2),
        lambda: take_pages.text_chunks(plain, False, symbol_table=bytes(2312)),
        lambda: take_pages.zipped(b"", 4, -1, index=bytes(5), index_width=1, offset_bits=16),
        lambda: take_pages.zipped(b"", 4, -1, index=bytes(4), index_width=1, offset_bits=32),
        lambda: take_pages.zipped(b"", 4, 4, bits_def=33),
        lambda: take_pages.constant(4, 4, b"ab"),
        lambda: take_pages.constant(4, 4, b"abcd", definition=b"\0"),
        lambda: take_pages.nulls(-1, 4),
        lambda: ColumnTaker([1, 4], 4, print),
        lambda: ColumnTaker([0, 4, 4], 4, print),
        lambda: ColumnTaker([], 4, print),
        lambda: FragmentTaker([], 4, 2**32),
        lambda: FragmentTaker([ColumnTaker([0, 5], 4, print)], 4, 0),
        lambda: RowTaker([(4, False, False, (), 5)], np.array([0]), print),
        lambda: RowTaker([(4, False, False, (0,), 0)], np.array([0]), print),
        lambda: RowTaker([(4, False, False, (2**31, 2**31, 2**31), 0)], np.array([0]), print),
        lambda: RowTaker([(4, False, False, (32, 2), 0)], np.array([0]), print),
        lambda: RowTaker([], np.array([0, 5, 4]), print),
        lambda: RowTaker([], np.array([0, 2**63 - 1]), print),
        lambda: Lists(np.array([0, 2, 1]), (0, 0)),
    ):
        with pytest.raises(CodecError):
            call()


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 2**32))
def test_damage_never_crashes(seed: int) -> None:
    """Changed bytes give other values or a missing column."""
    rng = np.random.default_rng(seed)
    numbers = rng.integers(0, 9, ROWS).astype("u4")
    texts = [WORDS[i].encode() for i in rng.integers(0, len(WORDS), ROWS)]
    parts = [text_chunk(texts[low:high], False) for low, high in itertools.pairwise(CUTS)]
    kinds: list[tuple[list[list[bytes]], Callable[[Chunks], PageTaker], pa.DataType, int]] = [
        (
            [[inline(part) for part in cut(numbers)]],
            lambda chunks: take_pages.fixed_chunks(chunks, 4, values.INLINE, 32, definition=(levels.FLAT, 0)),
            pa.uint32(),
            4,
        ),
        ([parts], lambda chunks: take_pages.text_chunks(chunks, False, definition=(levels.FLAT, 0)), pa.string(), -1),
    ]
    for buffers, opened, kind, width in kinds:
        plan = Assembly(
            COUNTS,
            [(b"".join(part), np.cumsum([len(each) for each in part]).tolist()) for part in buffers],
            True,
            levels=COUNTS,
            level_streams=[(bytes(2 * ROWS), (2 * CUTS[1:]).tolist())],
        )
        words, data = bytearray(plan.words_size), bytearray(plan.chunks_size)
        plan.write(words, data)
        for at in rng.integers(0, len(data), 4):
            data[at] = rng.integers(0, 256)
        damaged = Chunks(ChunkTable(words, ROWS, len(data), True), 1, definition=True, data=data)
        found = rows_of(opened(damaged), rng.permutation(ROWS), kind, (width, False, width < 0, (), 0))
        assert found is None or len(found) == ROWS


@pytest.mark.parametrize("given_", [[1.0], [True], [None], ["a"], [-1], [2**63], [np.int64(1)], [1, 2, object()]])
def test_lists_of_other_things_are_no_integers(given_: list[Any]) -> None:
    assert take.integers(given_) is None


def test_integers() -> None:
    assert np.asarray(take.integers([5, 0, 2**63 - 1])).tolist() == [5, 0, 2**63 - 1]
    assert len(take.integers([])) == 0


def plain_list_page(lengths: list[int]) -> PageTaker:
    """Lists of the numbers from 0 on, in one chunk without definition levels."""
    stored = np.arange(sum(lengths), dtype=np.uint16)
    rep = np.isin(stored, np.cumsum([0, *lengths[:-1]])).astype(np.uint16).tobytes()
    streams = [(rep, [len(rep)])]
    data = stored.tobytes()
    plan = Assembly([len(stored)], [(data, [len(data)])], True, levels=[len(stored)], level_streams=streams)
    words, page = bytearray(plan.words_size), bytearray(plan.chunks_size)
    plan.write(words, page)
    chunks = Chunks(ChunkTable(words, len(stored), len(page), True), 1, repetition=True, data=page)
    return take_pages.fixed_chunks(chunks, 2, values.FLAT, 16, lists=Lists(np.array([0, len(lengths)]), (0, 0)))


@pytest.mark.parametrize("first", [0, 1])
def test_lists_of_pages_with_and_without_definition_levels(first: int) -> None:
    pages = [plain_list_page([2, 1]), list_page([(1, 0), (0, 1), (1, 2), (1, 3)], [7, 8])]
    lists: list[list[Any]] = [[[0, 1], [2]], [[7, None], None, []]]
    taker = RowTaker(
        [(2, False, False, (), 4)],
        np.array([0, 5]),
        lambda _: FragmentTaker([ColumnTaker([0, (2, 3)[first], 5], 2, lambda n: pages[n ^ first])], 5, 0),
    )
    expected = pa.array(lists[first] + lists[1 - first], pa.list_(pa.uint16()))
    rng = np.random.default_rng(1)
    for wanted in ([0, 1, 2, 3, 4], [4, 0, 2], [2], rng.integers(0, 5, 3000).tolist()):
        taken = taker.numbers(np.array(wanted))
        taken.decode_all()
        assert taken.missing == []
        assert import_column(taken, 0, expected.type).equals(expected.take(pa.array(wanted)))


def test_pages_of_lists_in_a_column_of_values() -> None:
    page = plain_list_page([2, 1])
    column = ColumnTaker([0, 2], 2, lambda _: page)
    taker = RowTaker([(2, False, False, (), 0)], np.array([0, 2]), lambda _: FragmentTaker([column], 2, 0))
    with pytest.raises(CodecError, match="lists"):
        taker.numbers(np.array([1]))


def numbers_taker(rows: int, columns: int = 1) -> RowTaker:
    page = take_pages.zipped(np.arange(rows).tobytes(), rows, 8)
    opened = [ColumnTaker([0, rows], 8, lambda _: page) for _ in range(columns)]
    return RowTaker([(8, False, False, (), 0)] * columns, np.array([0, rows]), lambda _: FragmentTaker(opened, rows, 0))


def test_columns_are_given_away_once() -> None:
    taken = numbers_taker(4, 2).numbers(np.array([2, 1]))
    taken.decode_all()
    schema = pa.schema([("a", pa.int64()), ("b", pa.int64())])
    batch = pa.RecordBatch._import_from_c(taken.batch(), schema)
    batch.validate(full=True)
    assert batch.to_pydict() == {"a": [2, 1], "b": [2, 1]}
    for again in (taken.batch, lambda: taken.column(0)):
        with pytest.raises(CodecError):
            again()
    nothing = RowTaker([], np.array([0, 4]), lambda _: FragmentTaker([], 4, 0)).numbers(np.array([1]))
    nothing.batch()
    with pytest.raises(CodecError):
        nothing.batch()


def decode_first(taken: TakenRows, wrong: list[BaseException]) -> None:
    try:
        taken.decode(0)
    except BaseException as error:
        wrong.append(error)


def test_one_column_decoded_by_many_threads() -> None:
    """One of them decodes it; the others are told, or find it done."""
    taker, rows = numbers_taker(100_000), np.random.default_rng(1).integers(0, 100_000, 100_000)
    for _ in range(10):
        taken = taker.numbers(rows)
        wrong: list[BaseException] = []

        threads = [threading.Thread(target=decode_first, args=(taken, wrong)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all(isinstance(error, CodecError) and "thread" in str(error) for error in wrong)
        assert np.array_equal(import_column(taken, 0, pa.int64()), rows)


def test_takes_in_cycles_are_collected() -> None:
    """The collector clears Python attributes before the memory is freed."""

    class Cycle:
        held: Any

    def broken(_: int) -> Any:
        raise KeyError("open")

    for opens in (True, False):
        for decoded in (0, 1, 2):
            cycle = Cycle()
            page = take_pages.zipped(np.arange(400).tobytes(), 400, 8)

            def open_page(_: int, cycle: Cycle = cycle, page: PageTaker = page, opens: bool = opens) -> PageTaker:
                return page if opens and cycle else broken(0)

            columns = [ColumnTaker([0, 400], 8, open_page) for _ in range(2)]
            shapes = [(8, False, False, (), 0)] * 2
            taker = RowTaker(
                shapes,
                np.array([0, 400]),
                lambda _, columns=columns, cycle=cycle: FragmentTaker(columns if cycle else [], 400, 0),
            )
            cycle.held = [taker, columns, page]
            if not opens:
                with pytest.raises(KeyError):
                    taker.numbers(np.arange(400))
                continue
            taken = taker.numbers(np.arange(400)[::-1].copy())
            for column in range(decoded):
                taken.decode(column)
            cycle.held.append(taken)
            if decoded == 2:
                taken.batch()
            del taken
        del cycle, page, open_page, columns, taker
        gc.collect()
