"""Tests of windows of columns against models: every kind of page, many masks, damage, outputs that are too small."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.pages.take_pages import chunks_of, cut, list_page, text_chunk
from support.pages.window_columns import (
    CHOICES,
    COUNTS,
    ROWS,
    booleans,
    encoded,
    fixed_buffers,
    indexed,
    level_chunk,
    named,
    numbers,
    page_chunks,
    rows_of_bytes,
    symbols_of,
    text_parts,
    texts,
)
from support.pages.window_pages import Column, arrays_of, bitmap_of, joined, output, window_of

from lancecodec import CodecError, fsst, take_pages
from lancecodec import miniblock_levels as levels
from lancecodec import miniblock_values as values
from lancecodec.take import ColumnTaker
from lancecodec.window import SpareMemory, Window

BITS = [8, 16, 32, 64]
LEVELS = [levels.FLAT, levels.INLINE, levels.RLE, levels.OUT_OF_LINE]

# -- windows -----------------------------------------------------------------------------------------------------

SHARES = [0.0, 0.004, 0.03, 0.3, 0.6, 0.97, 1.0]


def cases(rows: int) -> list[tuple[int, int, np.ndarray | None, int]]:
    """Return windows, the rows that they keep, and the first bit of their masks."""
    rng = np.random.default_rng(11)
    found: list[tuple[int, int, np.ndarray | None, int]] = []
    for start, stop in [(0, rows), (3, rows - 2), (1030, 1200), (700, rows - 70), (rows - 1, rows)]:
        found.append((start, stop, None, 0))
        found += [(start, stop, rng.random(stop - start) < share, int(rng.integers(0, 70))) for share in SHARES]
        runs = np.repeat(rng.random((stop - start) // 7 + 1) < 0.5, 7)[: stop - start]
        one = np.zeros(stop - start, bool)
        one[len(one) // 2] = True
        found += [(start, stop, runs, 5), (start, stop, one, 64)]
    return found


def check(*columns: Column) -> None:
    for start, stop, flags, bit in cases(len(columns[0].expected)):
        found = window_of(columns, start, stop, flags, bit)
        for column, array in zip(columns, found, strict=True):
            rows = column.expected.slice(start, stop - start)
            wanted = rows if flags is None else rows.filter(pa.array(flags))
            assert array is not None, (start, stop, bit)
            assert array.equals(wanted), (start, stop, bit)


def several(make: Callable[[int], Column]) -> Column:
    return joined([make(seed) for seed in (1, 2, 3)])


@pytest.mark.parametrize("nullable", [False, True])
@pytest.mark.parametrize(
    ("codec", "bits"),
    [*itertools.product([values.FLAT, values.INLINE, values.RLE], BITS), (values.SPLIT, 32), (values.SPLIT, 64)],
)
def test_numbers(codec: int, bits: int, nullable: bool) -> None:
    check(several(lambda seed: numbers(codec, bits, seed, nullable)))


@pytest.mark.parametrize("width", [1, 3, 4, 7, 8, 12, 16, 17, 40])
def test_rows_of_bytes(width: int) -> None:
    check(several(lambda seed: rows_of_bytes(width, values.FLAT, seed)))


@pytest.mark.parametrize("nullable", [False, True])
def test_booleans(nullable: bool) -> None:
    check(several(lambda seed: booleans(seed, nullable)))


@pytest.mark.parametrize("level", LEVELS)
def test_levels(level: int) -> None:
    column = several(lambda seed: numbers(values.FLAT, 32, seed, True, level))
    check(column)
    mixed = joined([column, numbers(values.INLINE, 32, 4, False), column])
    check(mixed)


@pytest.mark.parametrize("nullable", [False, True])
@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("width", [2, 4, 8, 16, 5])
def test_dictionaries_of_values(width: int, bits: int, nullable: bool) -> None:
    codec = values.FLAT if width == 8 else values.RLE if width == 5 else values.INLINE
    check(several(lambda seed: indexed(width, bits, seed, nullable, codec)))


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
@pytest.mark.parametrize("nullable", [False, True])
@pytest.mark.parametrize("which", CHOICES)
def test_dictionaries_of_texts(which: str, nullable: bool, kind: pa.DataType) -> None:
    for bits, codec in ((8, values.INLINE), (16, values.FLAT), (32, values.RLE), (64, values.INLINE)):
        check(several(lambda seed, bits=bits, codec=codec: named(which, kind, bits, seed, nullable, codec)))


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()], ids=str)
@pytest.mark.parametrize("stored_wide", [False, True])
@pytest.mark.parametrize("how", ["plain", "codes", "verbatim"])
def test_texts(how: str, stored_wide: bool, kind: pa.DataType) -> None:
    pages = [texts(how, stored_wide, kind, seed, nullable) for seed, nullable in ((1, False), (2, True))]
    check(joined([pages[0], pages[0]]))
    check(joined(pages))
    check(texts(how, stored_wide, kind, 5, False, "empty"))


def test_pages_of_all_kinds_in_a_column() -> None:
    kind = pa.string()
    check(
        joined(
            [
                named("equal", kind, 8, 1, False),
                texts("plain", False, kind, 2, True),
                named("skewed", kind, 16, 3, True),
                texts("codes", True, kind, 4, False),
                named("short", kind, 8, 5, False),
            ]
        )
    )
    fixed = pa.binary(16)
    value = bytes(range(16))
    constant = Column([take_pages.constant(700, 16, value)], pa.array([value] * 700, fixed))
    check(joined([indexed(16, 8, 1, True), constant, rows_of_bytes(16, values.FLAT, 2), constant]))


def test_values_in_place_are_read_with_a_mask_only() -> None:
    data = np.random.default_rng(1).integers(0, 256, (ROWS, 24)).astype(np.uint8)
    page = take_pages.zipped(data.tobytes(), ROWS, 24)
    column = Column([page], pa.array([row.tobytes() for row in data], pa.binary(24)))
    two = joined([rows_of_bytes(24, values.FLAT, 7), column])
    for start, stop, flags, bit in cases(ROWS):
        found = window_of([column, two], start, stop, flags, bit)
        if flags is None:
            assert found[0] is None
            continue
        wanted = column.expected.slice(start, stop - start).filter(pa.array(flags))
        assert found[0] is not None
        assert found[0].equals(wanted)
    check_masked = np.ones(2 * ROWS - 20, bool)
    check_masked[50:1900:3] = False
    (found_two,) = window_of([two], 10, 2 * ROWS - 10, check_masked)
    assert found_two is not None
    assert found_two.equals(two.expected.slice(10, len(check_masked)).filter(pa.array(check_masked)))


def test_columns_of_all_kinds_in_a_window() -> None:
    check(
        numbers(values.INLINE, 32, 1, True),
        booleans(2, False),
        named("long", pa.string(), 8, 3, True),
        texts("codes", False, pa.large_string(), 4, False),
        rows_of_bytes(5, values.FLAT, 5),
    )


# -- what cannot be read -----------------------------------------------------------------------------------------


def test_pages_that_are_not_supported() -> None:
    good = numbers(values.FLAT, 32, 1, False)
    nothing = Column([take_pages.nulls(ROWS, 4)], good.expected)
    constant = Column([take_pages.constant(ROWS, -1, b"text")], pa.array(["text"] * ROWS))
    levelled = take_pages.constant(ROWS, 4, bytes(4), definition=np.zeros(ROWS, np.uint16))
    zipped = take_pages.zipped(bytes(5 * ROWS), ROWS, 4, bits_def=1)
    columns = [nothing, constant, Column([levelled], good.expected), Column([zipped], good.expected), good]
    found = window_of(columns, 0, ROWS, np.arange(ROWS) % 2 == 0)
    assert [array is None for array in found] == [True] * 4 + [False]
    late = Column([*good.pages, take_pages.nulls(ROWS, 4)], pa.concat_arrays([good.expected] * 2))
    assert window_of([late], 0, ROWS) != [None]
    assert window_of([late], 0, ROWS + 1) == [None]
    unknown = Column([None, *good.pages], good.expected)
    assert window_of([unknown], 0, ROWS) == [None]


def test_lists_are_not_supported() -> None:
    page = list_page([(1, 0)] * 40, list(range(40)))
    assert page is not None
    assert Window([ColumnTaker([0, 40], 2, lambda _: page)], 0, 40).room() == [None]


def test_a_window_without_columns_or_rows() -> None:
    column = numbers(values.FLAT, 32, 1, False)
    assert Window([], 0, 9).read([]) == []
    window = Window([column.taker(), None], 5, 5)
    assert window.num_rows == 0
    assert window.room() == [None, None]
    assert window.read([None, None]) == [None, None]


def test_arguments_are_checked() -> None:
    taker = numbers(values.FLAT, 32, 1, False).taker()
    for start, stop in [(-1, 5), (5, 4), (0, ROWS + 1), (0, 2**62)]:
        with pytest.raises(CodecError):
            Window([taker], start, stop)
    for size, bit in [(0, 0), (1, 1), (2, 9), (2, -1), (1, 2**62)]:
        with pytest.raises(CodecError):
            Window([taker], 0, 8, bytes(size), bit)
    assert Window([taker], 0, 8, bytes(2), 8).num_rows == 0
    with pytest.raises(TypeError):
        Window([object()], 0, 8)  # type: ignore[list-item]
    with pytest.raises(CodecError, match="outputs for"):
        Window([taker], 0, 8).read([])


def shortened(given: tuple[Any, ...], part: int) -> tuple[Any, ...]:
    return (*given[:part], given[part][:-1], *given[part + 1 :])


@pytest.mark.parametrize(
    "column",
    [numbers(values.FLAT, 32, 1, True), booleans(1, True), texts("plain", False, pa.string(), 1, True)],
    ids=lambda column: str(column.expected.type),
)
def test_outputs_that_are_too_small(column: Column) -> None:
    window = Window([column.taker()], 3, 1201)
    (room,) = window.room()
    assert room is not None
    given = output(column.expected.type, window.num_rows, *room).given()
    for part in (0, 1):
        with pytest.raises(CodecError):
            window.read([shortened(given, part)])
    with pytest.raises(CodecError, match="needs a validity"):
        window.read([(given[0], None, *given[2:])])
    if column.width < 0:
        less = output(column.expected.type, window.num_rows, True, room[1] - 1)
        assert window.read([less.given()]) == [None]
        assert less.is_intact()
    assert window.read([given]) != [None]


def test_the_mask_is_copied() -> None:
    """Bits that are set after a window was made are not read."""
    column = numbers(values.FLAT, 32, 1, False)
    mask = bitmap_of(np.zeros(ROWS, bool), 0)
    window = Window([column.taker()], 0, ROWS, mask)
    mask[:] = 0xFF
    given = output(column.expected.type, 0, False, 0)
    assert window.read([given.given()]) == [(0, 0)]
    assert given.is_intact()


def damaged(parts: list[list[bytes]], chunk: int, edit: Callable[[bytearray], None]) -> list[list[bytes]]:
    """Return the buffers with one of a chunk changed."""
    data = bytearray(parts[0][chunk])
    edit(data)
    return [[*parts[0][:chunk], bytes(data), *parts[0][chunk + 1 :]], *parts[1:]]


def put(data: bytearray, at: int, size: int, value: int) -> None:
    data[at : at + size] = value.to_bytes(size, "little", signed=value < 0)


def reads(column: Column, flags: np.ndarray | None = None) -> bool:
    """Return True if a column can be read; a good one beside it always can."""
    good = numbers(values.INLINE, 16, 3, True)
    found = window_of([good, column, good], 0, ROWS, flags)
    wanted = good.expected if flags is None else good.expected.filter(pa.array(flags))
    assert found[0] is not None
    assert found[0].equals(wanted)
    assert found[2] is not None
    assert found[2].equals(wanted)
    return found[1] is not None


MASKS = [None, np.ones(ROWS, bool), np.arange(ROWS) % 3 != 1, np.arange(ROWS) % 100 == 0]


def around(chunk: int) -> np.ndarray:
    """Return a mask of all rows that are not in a chunk."""
    flags = np.ones(ROWS, bool)
    flags[sum(COUNTS[:chunk]) : sum(COUNTS[: chunk + 1])] = False
    return flags


@pytest.mark.parametrize("codec", [values.FLAT, values.INLINE, values.RLE, values.SPLIT])
def test_damaged_values(codec: int) -> None:
    stored = np.arange(ROWS, dtype="u4")
    parts = damaged(fixed_buffers(codec, stored), 1, lambda data: data.pop())
    page = take_pages.fixed_chunks(page_chunks(parts)[0], 4, codec, 32)
    column = Column([page], pa.array(stored))
    for flags in MASKS:
        assert not reads(column, flags)
    assert reads(column, around(1))


@pytest.mark.parametrize("level", LEVELS)
def test_damaged_levels(level: int) -> None:
    stored, nulls = np.arange(ROWS, dtype="u4"), np.zeros(ROWS, bool)
    streams = [level_chunk(level, part) for part in cut(nulls, COUNTS)]
    for wrong in (streams[1][:-2], level_chunk(level, np.full(256, 2)) if level != levels.OUT_OF_LINE else b"\0"):
        given = [streams[0], wrong, *streams[2:]]
        chunks = chunks_of(fixed_buffers(values.FLAT, stored), [given], COUNTS)
        page = take_pages.fixed_chunks(chunks, 4, values.FLAT, 32, definition=(level, 1))
        column = Column([page], pa.array(stored))
        for flags in MASKS:
            assert not reads(column, flags)
        assert reads(column, around(1))


def test_nulls_that_must_not_be() -> None:
    nulls = np.arange(ROWS) == 1100
    for buffers, options in (
        (fixed_buffers(values.FLAT, np.arange(ROWS, dtype="u4")), (4, values.FLAT, 32)),
        ([[np.packbits(part).tobytes() for part in cut(nulls, COUNTS)]], (0, values.FLAT, 1)),
    ):
        chunks, definition = page_chunks(buffers, nulls)
        page = take_pages.fixed_chunks(chunks, *options, definition=definition, required=True)
        column = Column([page], pa.array(nulls) if options[0] == 0 else pa.array(range(ROWS), pa.uint32()))
        assert not reads(column)
        assert not reads(column, np.ones(ROWS, bool))
        assert reads(column, ~nulls)


def test_codes_without_entries() -> None:
    for make in (lambda: named("short", pa.string(), 8, 1, False), lambda: indexed(8, 8, 1, False)):
        expected = make().expected
        codes = np.zeros(ROWS, "u1")
        codes[1100] = 99
        for codec in (values.FLAT, values.INLINE):
            chunks, _ = page_chunks(fixed_buffers(codec, codes))
            entries: dict[str, Any] = {"entries": bytes(72), "count": 9}
            if pa.types.is_string(expected.type):
                entries = {"entries": b"abcdefgh", "offsets": np.arange(9, dtype=np.int32), "count": 8}
            page = take_pages.fixed_chunks(chunks, -1 if len(entries) == 3 else 8, codec, 8, **entries)
            column = Column([page], expected)
            assert not reads(column)
            assert not reads(column, codes == 99)
            assert reads(column, codes == 0)


@pytest.mark.parametrize("ends", [[0, 5, 3, 8], [-1, 3, 5, 8], [0, 3, 5, 9], [4, 3, 5, 8]])
def test_damaged_offsets_of_entries(ends: list[int]) -> None:
    chunks, _ = page_chunks(fixed_buffers(values.FLAT, np.zeros(ROWS, "u1")))
    for wide in (False, True):
        offsets = np.array(ends, np.int64 if wide else np.int32)
        page = take_pages.fixed_chunks(
            chunks, -1, values.FLAT, 8, entries=b"abcdefgh", offsets=offsets, wide=wide, count=3
        )
        column = Column([page], pa.array(["abc"] * ROWS))
        assert not reads(column)
        assert not reads(column, MASKS[2])


@pytest.mark.parametrize("how", ["plain", "codes", "verbatim"])
@pytest.mark.parametrize("wide", [False, True])
def test_damaged_offsets_of_texts(wide: bool, how: str) -> None:
    size, stored = 8 if wide else 4, [b"xx"] * ROWS
    symbols = symbols_of(how)
    kept = encoded(stored, symbols) if symbols is not None and how == "codes" else stored
    parts = [text_chunk(kept[:count], wide) for count in COUNTS]
    first = (COUNTS[1] + 1) * size
    for value in (0, -1, first - 1, len(parts[1]) + 1, 2**31 - 1):
        for at in (0, 100, COUNTS[1]):
            if at == 100 and value == first - 1:
                continue
            broken = damaged([parts], 1, lambda data, at=at, value=value: put(data, at * size, size, value))
            page = take_pages.text_chunks(page_chunks(broken)[0], wide, symbol_table=symbols)
            column = Column([page], pa.array(stored, pa.binary()))
            assert not reads(column)
            assert not reads(column, np.ones(ROWS, bool))
            near = np.zeros(ROWS, bool)
            near[COUNTS[0] + min(at, COUNTS[1] - 1)] = True
            assert not reads(column, near)
            assert reads(column, around(1))


@pytest.mark.parametrize("how", ["plain", "verbatim"])
@pytest.mark.parametrize("wide", [False, True])
def test_texts_that_overlap(wide: bool, how: str) -> None:
    """Forged texts of which each second one has all bytes of its chunk."""
    size = 8 if wide else 4
    parts = [text_chunk([b"0123456789"] * count, wide) for count in COUNTS]

    def forge(data: bytearray) -> None:
        low, high = (COUNTS[1] + 1) * size, len(data)
        for i in range(COUNTS[1] + 1):
            put(data, i * size, size, high if i % 2 else low)

    chunks, _ = page_chunks(damaged([parts], 1, forge))
    page = take_pages.text_chunks(chunks, wide, symbol_table=symbols_of(how))
    column = Column([page], pa.array([b"0123456789"] * ROWS, pa.binary()))
    flags = np.ones(ROWS, bool)
    flags[COUNTS[0] + 1 :: 2] = False
    assert not reads(column)
    assert not reads(column, flags)
    window = Window([column.taker()], 0, ROWS, bitmap_of(flags, 0))
    assert window.room() == [None]
    for room in (0, 100, 2000, 100_000):
        other = Window([column.taker()], 0, ROWS, bitmap_of(flags, 0))
        given = output(pa.binary(), other.num_rows, False, room)
        assert other.read([given.given()]) == [None] or room == 100_000
        assert given.is_intact()


@pytest.mark.parametrize("how", ["plain", "codes"])
def test_texts_must_be_utf8(how: str) -> None:
    for wrong in ([b"\xff"] * ROWS, [b"\xc3", b"\xa4"] * (ROWS // 2) + [b""] * (ROWS % 2)):
        symbols = symbols_of(how)
        stored = wrong if symbols is None else encoded(wrong, symbols)
        parts = text_parts(stored, False)
        page = take_pages.text_chunks(page_chunks([parts])[0], False, symbol_table=symbols)
        for kind, good in ((pa.string(), False), (pa.large_string(), False), (pa.binary(), True)):
            assert (
                reads(Column([page], pa.array(wrong).cast(kind, safe=False) if good else pa.array([""], kind))) == good
            )


def test_codes_without_symbols() -> None:
    symbols = symbols_of("codes")
    assert symbols is not None
    parts = [text_chunk([b"\0"] * count, False) for count in COUNTS]
    for wrong in (200, 255):
        broken = damaged([parts], 1, lambda data, wrong=wrong: put(data, 4 * (COUNTS[1] + 1) + 9, 1, wrong))
        page = take_pages.text_chunks(page_chunks(broken)[0], False, symbol_table=symbols)
        column = Column([page], pa.array([b"x" * 8] * ROWS, pa.binary()))
        near = np.zeros(ROWS, bool)
        near[COUNTS[0] + 9] = True
        assert not reads(column)
        assert not reads(column, near)
        assert reads(column, around(1))


def test_compressed_texts_that_grow_more_than_estimated() -> None:
    """Rows of short codes for long texts, chosen from a page of others, have too little room and are refused."""
    symbols = bytearray(fsst.TABLE_SIZE)
    fsst.write_table([b"x" * 8, b"y"], symbols)
    stored = [b"\0" * 30 if i % 10 == 0 else b"\1" * 200 for i in range(ROWS)]
    parts = text_parts(stored, False)
    page = take_pages.text_chunks(page_chunks([parts])[0], False, symbol_table=symbols)
    model = [b"x" * 240 if i % 10 == 0 else b"y" * 200 for i in range(ROWS)]
    column = Column([page] * 3, pa.array(model * 3, pa.binary()))
    flags = np.arange(3 * ROWS) % ROWS % 10 == 0
    assert window_of([column], 0, 3 * ROWS, flags) == [None]
    chosen = Window([column.taker()], 0, 3 * ROWS, bitmap_of(flags, 0))
    (array,) = arrays_of(chosen, [pa.binary()])  # with more room
    assert array is not None
    assert array.equals(column.expected.filter(pa.array(flags)))
    (found,) = window_of([column], 0, 3 * ROWS)
    assert found is not None
    assert found.equals(column.expected)


def test_outputs_that_overlap() -> None:
    """Texts are written over their offsets, which are not trusted then."""
    column = texts("plain", False, pa.string(), 1, False)
    window = Window([column.taker()], 0, ROWS)
    (room,) = window.room()
    assert room is not None
    memory = np.zeros(max(4 * (ROWS + 1), room[1]), np.uint8)
    assert window.read([(memory, None, memory, False, True)]) == [None]


# -- arrays ------------------------------------------------------------------------------------------------------


def test_memory_is_used_again_but_not_while_an_array_uses_it() -> None:
    columns = [texts("plain", False, pa.string(), 1, True), numbers(values.FLAT, 32, 1, True)]
    kinds = [column.expected.type for column in columns]
    takers = [column.taker() for column in columns]
    spare = SpareMemory(1 << 20)
    held: list[tuple[int, list[pa.Array | None]]] = []
    addresses = set()
    for start in range(0, 400, 4):
        arrays = arrays_of(Window(takers, start, start + 600), kinds, spare)
        addresses.update(buffer.address for array in arrays for buffer in array.buffers() if buffer is not None)
        if start % 100 == 0:
            held.append((start, arrays))
        del arrays
    assert len(addresses) < 5 * (len(held) + 2)
    del spare, takers
    for start, arrays in held:
        for column, array in zip(columns, arrays, strict=True):
            assert array is not None
            assert array.equals(column.expected.slice(start, 600))


def test_memory_is_shared_by_threads() -> None:
    columns = [texts("plain", False, pa.string(), 1, True), booleans(1, True), numbers(values.RLE, 64, 1, False)]
    kinds = [column.expected.type for column in columns]
    takers = [column.taker() for column in columns]
    spare = SpareMemory(1 << 16)

    def read(seed: int) -> None:
        kept: list[tuple[int, list[pa.Array | None]]] = []
        for start in np.random.default_rng(seed).integers(0, ROWS - 300, 150).tolist():
            kept = [*kept[-3:], (start, arrays_of(Window(takers, start, start + 300), kinds, spare))]
            for first, arrays in kept:
                for column, array in zip(columns, arrays, strict=True):
                    assert array is not None
                    assert array.equals(column.expected.slice(first, 300))

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(read, seed) for seed in range(4)]:
            done.result()


def test_columns_of_arrays_can_be_left() -> None:
    column = numbers(values.FLAT, 32, 1, False)
    window = Window([column.taker(), None], 0, 100)
    assert window.readable() == [True, False]
    spare = SpareMemory(0)
    found = window.arrays([(False, False)] * 2, spare)
    assert found.column(1) is None
    for number in (-1, 2):
        with pytest.raises(CodecError, match="no column"):
            found.column(number)
    with pytest.raises(CodecError, match="kinds for"):
        window.arrays([(False, False)], spare)
    with pytest.raises(TypeError):
        window.arrays([(False, False)] * 2, None)  # type: ignore[arg-type]
