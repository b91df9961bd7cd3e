"""Tests of columns of one plain page each, found and read together."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from support.files.tagged_records import Record, encoded

from lancecodec import CodecError, bitpacking, miniblock_levels, miniblock_values, plain_columns, word_pages
from lancecodec.plain_columns import IN_PLACE, MOST_ROWS, PlainColumns

ROWS = 3000
PACKED = (miniblock_values.INLINE, 32, 32, 1, True, 0.0, None, None)
PLACED = (IN_PLACE, 64, 64, 1, False, 0.0, None, None)


def integers(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 1 << 20, ROWS, np.int32)


def doubles(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(ROWS)


@dataclass
class File:
    """Bytes of pages and of the metadata of their columns, with a table of the latter."""

    data: bytearray = field(default_factory=bytearray)
    table: bytes = b""

    def append(self, data: bytes) -> tuple[int, int]:
        self.data += bytes(-len(self.data) % 64)
        self.data += data
        return len(self.data) - len(data), len(data)

    def column(self, kind: bytes, buffers: list[tuple[int, int]], rows: int = ROWS, more: Record | None = None) -> None:
        page: Record = [
            (1, tuple(position for position, _ in buffers)),
            (2, tuple(size for _, size in buffers)),
            (3, rows),
            (4, [(2, [(1, kind)])]),
        ]
        metadata = encoded([(1, [(2, [(1, b"values")])]), (2, page), *(more or [])])
        self.table += struct.pack("<QQ", *self.append(metadata))

    def packed(self, values: np.ndarray) -> list[tuple[int, int]]:
        parts: Any = word_pages.encode(values, 0, len(values), values.itemsize, True, np.empty(0, np.int64), 0)
        return [self.append(part) for part in parts]

    def open(self, count: int, rows: int = ROWS) -> PlainColumns:
        plans = {b"packed": PACKED, b"placed": PLACED}
        return PlainColumns(
            self.data, self.table, list(range(count)), ["kind"] * count, rows, lambda _, __, page: plans.get(page)
        )


@pytest.fixture
def file() -> File:
    """Return a file of packed integers, doubles in place, a column of another kind, and integers again."""
    made = File()
    made.column(b"packed", made.packed(integers(0)))
    made.column(b"placed", [made.append(doubles(1).tobytes())])
    made.column(b"unknown", [made.append(doubles(2).tobytes())])
    made.column(b"packed", made.packed(integers(3)))
    return made


def counts_of(opened: PlainColumns, rows: np.ndarray) -> list[int]:
    out = np.empty(opened.places(len(rows), True)[-1], np.uint8)
    return opened.take(0, 4, rows, out)


def test_columns_are_found(file: File) -> None:
    places = file.open(4).in_place()
    assert places[0] == places[3] == -1
    assert places[1] is not None
    assert np.frombuffer(file.data, np.float64, ROWS, places[1]).tolist() == doubles(1).tolist()
    assert places[2] is None


@pytest.mark.parametrize(("start", "stop"), [(0, ROWS), (1, ROWS - 1), (1023, 2049), (7, 8), (5, 5)])
def test_ranges(file: File, start: int, stop: int) -> None:
    opened, count = file.open(4), stop - start
    places = opened.places(count, False)
    assert [place % 64 for place in places] == [0] * 5
    assert places[1] == places[2] == places[3], "columns in place, and others, need no room"
    out = np.zeros(places[-1], np.uint8)
    assert opened.read(0, 4, start, stop, out) == [0, 0, -1, 0]
    for number in (0, 3):
        assert np.array_equal(out[places[number] :].view(np.int32)[:count], integers(number)[start:stop])
    part = np.zeros(places[4] - places[3], np.uint8)
    assert opened.read(3, 4, start, stop, part) == [0]
    assert np.array_equal(part.view(np.int32)[:count], integers(3)[start:stop])


@pytest.mark.parametrize("rows", [[], [0], [ROWS - 1], [0, 0, 7, 1023, 1024, 2999], list(range(0, ROWS, 2))], ids=len)
def test_taken_rows(file: File, rows: list[int]) -> None:
    opened, taken = file.open(4), np.array(rows, np.int64)
    places = opened.places(len(rows), True)
    out = np.zeros(places[-1], np.uint8)
    assert opened.take(0, 4, taken, out) == [0, 0, -1, 0]
    expected = {0: integers(0), 1: doubles(1), 3: integers(3)}
    for number, values in expected.items():
        assert np.array_equal(out[places[number] :].view(values.dtype)[: len(rows)], values[taken])


def test_extent(file: File) -> None:
    low, high, size = file.open(4).extent()
    assert (low, file.data[low:high][:4]) == (0, file.data[:4])
    assert (
        size
        == sum(file.open(4).places(0, False))
        + sum(
            len(part) for seed in (0, 3) for part in word_pages.encode(integers(seed), 0, ROWS, 4, True, EMPTY, 0) or ()
        )
        + 8 * ROWS
    )
    assert File().open(0).extent() == (0, 0, 0)


EMPTY = np.empty(0, np.int64)


def test_a_plan_is_asked_for_once_per_description(file: File) -> None:
    asked: list[tuple[object, bytes, bytes]] = []

    def plan_of(*description: Any) -> None:
        asked.append(description)

    kinds = ["int32", "double", "double", "uint32"]
    PlainColumns(file.data, file.table, [0, 1, 2, 3], kinds, ROWS, plan_of)
    PlainColumns(file.data, file.table, [0, 0, 0], ["int32"] * 3, ROWS, plan_of)
    assert asked == [
        ("int32", b"values", b"packed"),
        ("double", b"values", b"placed"),
        ("double", b"values", b"unknown"),
        ("uint32", b"values", b"packed"),
        ("int32", b"values", b"packed"),
    ]


def test_other_forms_are_left_out() -> None:
    file = File()
    place = file.append(doubles(1).tobytes())
    odd = file.append(b"?" + doubles(1).tobytes())
    file.column(b"placed", [place], rows=ROWS - 1)
    file.column(b"placed", [place], more=[(2, [])])  # a second page
    file.column(b"placed", [place], more=[(3, (0,)), (4, (8,))])  # buffers of the column
    file.column(b"placed", [place, place])
    file.column(b"placed", [place] * 3)
    file.column(b"placed", [])
    file.column(b"placed", [(place[0], place[1] - 8)])
    file.column(b"placed", [(odd[0] + 1, odd[1] - 1)])  # not aligned
    file.column(b"placed", [(1 << 40, 8 * ROWS)])
    file.column(b"placed", [(2**64 - 8, 8 * ROWS)])
    file.column(b"packed", [place])
    file.column(b"packed", [(0, 4 * ROWS + 4), place])  # more chunks than values
    file.column(b"packed", [(0, 3), place])
    file.table += struct.pack("<QQ", len(file.data) - 3, 4) + struct.pack("<QQ", 2**64 - 1, 2)
    file.column(b"placed", [place])
    assert [position is not None for position in file.open(16).in_place()] == [False] * 15 + [True]
    beyond = PlainColumns(file.data, file.table, [16, -1, 15], ["a"] * 3, ROWS, lambda *_: PLACED)
    assert beyond.in_place() == [None, None, place[0]]


@pytest.mark.parametrize("rows", [0, -1, ROWS + 1, MOST_ROWS + 1, 2**50, 2**62])
def test_files_of_other_lengths_have_no_plain_columns(file: File, rows: int) -> None:
    opened = file.open(4, rows)
    assert opened.in_place() == [None] * 4
    assert opened.take(0, 4, np.arange(min(max(rows, 0), 3)), bytearray()) == [-1] * 4


@pytest.mark.parametrize(
    "plan",
    [
        (miniblock_values.INLINE, 128, 128, 1, True, 0.0, None, None),
        (miniblock_values.INLINE, 32, 32, 2, True, 0.0, None, None),
        (miniblock_values.RLE, 32, 32, 1, True, 0.0, None, None),
        (miniblock_values.SPLIT, 16, 16, 1, True, 0.0, None, None),
        (miniblock_values.FLAT, 0, 0, 1, True, 0.0, None, None),
        (miniblock_values.FLAT, 4, 4, 1, True, 0.0, None, None),
        (miniblock_values.FLAT, 520, 520, 1, True, 0.0, None, None),
        (7, 32, 32, 1, True, 0.0, None, None),
        (-1, 32, 32, 1, True, 0.0, None, None),
        (miniblock_values.INLINE, 32, 32, 1, True, 33.0, None, None),
        (miniblock_values.INLINE, 64, 32, 1, True, 0.0, None, None),
        (miniblock_values.INLINE, 32, 32, 1, True, 0.0, (9, 0), None),
        (miniblock_values.INLINE, 32, 32, 1, True, 0.0, (miniblock_levels.OUT_OF_LINE, 17), None),
        (miniblock_values.INLINE, 32, 32, 1, True, 0.0, None, (miniblock_values.FLAT, 5, None)),  # no such buffer
        (IN_PLACE, 32, 32, 1, True, 0.0, (miniblock_levels.FLAT, 0), None),
    ],
)
def test_codecs_that_the_kernels_do_not_support_are_left_out(file: File, plan: Any) -> None:
    assert PlainColumns(file.data, file.table, [0], ["a"], ROWS, lambda *_: plan).in_place() == [None]


# -- pages with levels and dictionaries ------------------------------------------------------------------------------


def chunked(file: File, streams: list[Any], *, definition: bool, size: int = 1024) -> list[tuple[int, int]]:
    """Append chunk words and chunks of `size` values, each of which is the result of functions of a range of rows."""
    words, chunks = b"", b""
    for start in range(0, ROWS, size):
        stop = min(start + size, ROWS)
        parts = [stream(start, stop) for stream in streams]
        header = struct.pack("<H", stop - start if definition else 0)
        header += b"".join(
            struct.pack("<H" if definition and number == 0 else "<I", len(part)) for number, part in enumerate(parts)
        )
        chunk = header + bytes(-len(header) % 8)
        for part in parts:
            chunk += part + bytes(-len(part) % 8)
        last = stop == ROWS
        words += struct.pack("<I", (len(chunk) // 8 - 1) << 4 | (0 if last else size.bit_length() - 1))
        chunks += chunk
    return [file.append(words), file.append(chunks)]


def nulls() -> np.ndarray:
    return (np.random.default_rng(9).random(ROWS) < 0.3).astype(np.uint16)


def booleans() -> np.ndarray:
    return np.random.default_rng(8).random(ROWS) < 0.5


def indices(count: int) -> np.ndarray:
    return np.random.default_rng(7).integers(0, count, ROWS, np.uint8)


def flat(values: np.ndarray) -> Any:
    return lambda start, stop: values[start:stop].tobytes()


def bits(values: np.ndarray) -> Any:
    return lambda start, stop: np.packbits(values[start:stop], bitorder="little").tobytes()


def wrapped(file: Any, position: int, size: int) -> bytes | None:
    """Return entries whose bytes are stored inverted."""
    found = bytes(byte ^ 255 for byte in memoryview(file)[position : position + size])
    return found if len(found) == ENTRIES.nbytes else None


FLAT_LEVELS = (miniblock_levels.FLAT, 0)
ENTRIES = np.arange(100, 112, dtype=np.int64)
PLANS: dict[bytes, Any] = {
    b"nullable": (miniblock_values.FLAT, 32, 32, 1, True, 0.0, FLAT_LEVELS, None),
    b"bits": (miniblock_values.FLAT, 1, 1, 1, True, 0.0, None, None),
    b"nullable bits": (miniblock_values.FLAT, 1, 1, 1, True, 0.0, FLAT_LEVELS, None),
    b"dictionary": (miniblock_values.FLAT, 64, 8, 1, True, 0.0, None, (miniblock_values.FLAT, len(ENTRIES), None)),
    b"packed dictionary": (
        miniblock_values.FLAT,
        64,
        8,
        1,
        True,
        0.0,
        None,
        (miniblock_values.INLINE, len(ENTRIES), None),
    ),
    b"nullable dictionary": (
        miniblock_values.FLAT,
        64,
        8,
        1,
        True,
        0.0,
        FLAT_LEVELS,
        (miniblock_values.FLAT, 12, wrapped),
    ),
}


@pytest.fixture
def nested() -> tuple[PlainColumns, list[np.ndarray], list[np.ndarray | None]]:
    """Return columns with their values, and where they are null."""
    file, levels = File(), flat(nulls())
    chosen = indices(len(ENTRIES))
    loose = np.where(nulls() == 1, 200, chosen).astype(np.uint8)  # nulls may have any index
    packed = np.zeros(8200, np.uint8)
    ends = np.zeros(1, np.int64)
    size = bitpacking.inline_encode(ENTRIES.view(np.uint8), 64, packed, ends)
    entries = file.append(ENTRIES.tobytes())
    inverted = file.append((~ENTRIES).tobytes())
    file.column(b"nullable", chunked(file, [levels, flat(integers(1))], definition=True))
    file.column(b"bits", chunked(file, [bits(booleans())], definition=False))
    file.column(b"nullable bits", chunked(file, [levels, bits(booleans())], definition=True, size=64))
    file.column(b"dictionary", [*chunked(file, [flat(chosen)], definition=False), entries])
    file.column(
        b"packed dictionary", [*chunked(file, [flat(chosen)], definition=False), file.append(packed[:size].tobytes())]
    )
    file.column(b"nullable dictionary", [*chunked(file, [levels, flat(loose)], definition=True), inverted])
    opened = PlainColumns(file.data, file.table, list(range(6)), ["a"] * 6, ROWS, lambda _, __, page: PLANS[page])
    resolved = ENTRIES[chosen]
    values = [integers(1), booleans(), booleans(), resolved, resolved, resolved]
    return opened, values, [nulls(), None, nulls(), None, None, nulls()]


def check(
    opened: PlainColumns, out: np.ndarray, places: list[int], found: list[int], values: list[Any], missing: list[Any]
) -> None:
    for number, (expected, null) in enumerate(zip(values, missing, strict=True)):
        count, part = len(expected), out[places[number] : places[number + 1]]
        if expected.dtype == bool:
            decoded = np.unpackbits(part, bitorder="little")[:count].astype(bool)
        else:
            decoded = part[: count * expected.itemsize].view(expected.dtype)
        valid = np.ones(count, bool) if null is None else null == 0
        assert found[number] == count - valid.sum()
        assert np.array_equal(decoded[valid], expected[valid])
        if found[number]:
            bitmap = part[len(part) - -(-((count + 7) // 8) // 64) * 64 :]
            assert np.array_equal(np.unpackbits(bitmap, bitorder="little")[:count], valid)


@pytest.mark.parametrize(("start", "stop"), [(0, ROWS), (1, ROWS - 1), (1023, 2049), (7, 8), (70, 135)])
def test_ranges_of_nulls_bits_and_dictionaries(nested: Any, start: int, stop: int) -> None:
    opened, values, missing = nested
    places = opened.places(stop - start, False)
    out = np.full(places[-1], 255, np.uint8)
    found = opened.read(0, 6, start, stop, out)
    wanted = [None if null is None else null[start:stop] for null in missing]
    check(opened, out, places, found, [each[start:stop] for each in values], wanted)


@pytest.mark.parametrize("rows", [[5], [0, 0, 7, 1023, 1024, 2999], list(range(0, ROWS, 3)), [9] * 4000], ids=len)
def test_taken_nulls_bits_and_dictionaries(nested: Any, rows: list[int]) -> None:
    opened, values, missing = nested
    taken = np.array(rows, np.int64)
    places = opened.places(len(rows), True)
    out = np.full(places[-1], 255, np.uint8)
    found = opened.take(0, 6, taken, out)
    check(
        opened, out, places, found, [each[taken] for each in values], [None if m is None else m[taken] for m in missing]
    )


@pytest.mark.parametrize(
    "entries",
    [
        (miniblock_values.FLAT, 11, None),
        (miniblock_values.FLAT, 13, None),
        (miniblock_values.INLINE, 12, None),
        (miniblock_values.FLAT, 12, lambda *_: b"short"),
    ],
)
def test_dictionaries_that_do_not_fit_are_damage(entries: Any) -> None:
    file = File()
    place = file.append(ENTRIES.tobytes())
    file.column(b"x", [*chunked(file, [flat(indices(12))], definition=False), place])
    plan = (miniblock_values.FLAT, 64, 8, 1, True, 0.0, None, entries)
    opened = PlainColumns(file.data, file.table, [0], ["a"], ROWS, lambda *_: plan)
    out = np.empty(opened.places(ROWS, True)[-1], np.uint8)
    assert opened.in_place() == [-1]
    assert opened.read(0, 1, 0, ROWS, out) == [-1]
    assert opened.take(0, 1, np.arange(9), out) == [-1]


def test_dictionaries_that_cannot_be_decoded_are_not_plain() -> None:
    file = File()
    place = file.append(ENTRIES.tobytes())
    file.column(b"x", [*chunked(file, [flat(indices(12))], definition=False), place])
    plan = (miniblock_values.FLAT, 64, 8, 1, True, 0.0, None, (miniblock_values.FLAT, 12, lambda *_: None))
    assert PlainColumns(file.data, file.table, [0], ["a"], ROWS, lambda *_: plan).in_place() == [None]


def test_indices_beyond_the_entries_and_levels_beyond_the_layers_are_damage() -> None:
    file, high = File(), nulls()
    place = file.append(ENTRIES.tobytes())
    high[2000] = 2
    file.column(b"dictionary", [*chunked(file, [flat(indices(13))], definition=False), place])
    file.column(b"nullable", chunked(file, [flat(high), flat(integers(1))], definition=True))
    file.column(b"nullable", chunked(file, [flat(nulls()[:-9]), flat(integers(1))], definition=True))
    opened = PlainColumns(file.data, file.table, [0, 1, 2], ["a"] * 3, ROWS, lambda _, __, page: PLANS[page])
    out = np.empty(opened.places(ROWS, True)[-1], np.uint8)
    assert opened.read(0, 3, 0, ROWS, out) == [-1, -1, -1]
    assert opened.take(0, 3, np.arange(ROWS), out) == [-1, -1, -1]
    assert opened.read(1, 2, 0, 1000, out)[0] == nulls()[:1000].sum()


def test_damaged_columns_are_named(file: File) -> None:
    position = file.packed(integers(5))[1][0]
    words, chunks = file.packed(integers(5))
    file.table = file.table[:48]
    file.column(b"packed", [words, chunks])
    file.data[chunks[0] : chunks[0] + 16] = b"\xff" * 16
    opened = file.open(4)
    assert position < chunks[0]
    out = np.empty(opened.places(ROWS, False)[-1], np.uint8)
    assert opened.read(0, 4, 0, ROWS, out) == [0, 0, -1, -1]
    assert opened.read(0, 4, 2048, ROWS, out) == [0, 0, -1, 0], "the damaged chunk is not read"
    assert counts_of(opened, np.array([0, 9])) == [0, 0, -1, -1]
    file.data[words[0]] ^= 0x10
    assert counts_of(opened, np.array([2500])) == [0, 0, -1, -1], "chunk words contradict each other"


def test_arguments_are_checked(file: File) -> None:
    opened, out = file.open(4), np.empty(1 << 16, np.uint8)
    for columns in ((-1, 2), (2, 1), (0, 5)):
        with pytest.raises(CodecError, match="columns"):
            opened.read(*columns, 0, 10, out)
        with pytest.raises(CodecError, match="columns"):
            opened.take(*columns, np.arange(3), out)
    for start, stop in ((-1, 2), (2, 1), (0, ROWS + 1)):
        with pytest.raises(CodecError, match="rows"):
            opened.read(0, 4, start, stop, out)
    for rows in ([-1], [ROWS], [5, 4], [2**62]):
        with pytest.raises(CodecError, match="row"):
            opened.take(0, 4, np.array(rows, np.int64), out)
    with pytest.raises(CodecError, match="no room"):
        opened.read(0, 4, 0, ROWS, out[:23999])
    with pytest.raises(CodecError, match="no room"):
        opened.take(0, 4, np.arange(10), out[:191])
    with pytest.raises(CodecError, match="values"):
        opened.places(-1, False)
    with pytest.raises(CodecError, match="kinds"):
        plain_columns.PlainColumns(file.data, file.table, [1], [], ROWS, lambda *_: None)


# -- values side by side ---------------------------------------------------------------------------------------------


def side_by_side(bits: int, buffers: int) -> Any:
    return (plain_columns.SIDE_BY_SIDE, bits, bits, buffers, False, 0.0, None, None)


def packed_bits(values: np.ndarray) -> bytes:
    return np.packbits(values, bitorder="little").tobytes()


@pytest.fixture
def beside() -> tuple[PlainColumns, list[np.ndarray], list[np.ndarray | None]]:
    """Return columns of values side by side, with and without a bitmap, with their values, and where they are null."""
    file, valid = File(), packed_bits(nulls() == 0)
    odd = file.append(b"?" + integers(1).tobytes())
    file.column(b"integers", [file.append(valid), (odd[0] + 1, odd[1] - 1)])
    file.column(b"flags", [file.append(packed_bits(booleans()))])
    file.column(b"nullable flags", [file.append(valid), file.append(packed_bits(booleans()) + b"more")])
    file.column(b"integers", [file.append(b"\xff" * len(valid)), file.append(integers(2).tobytes())])
    plans = {b"integers": side_by_side(32, 2), b"flags": side_by_side(1, 1), b"nullable flags": side_by_side(1, 2)}
    opened = PlainColumns(file.data, file.table, list(range(4)), ["a"] * 4, ROWS, lambda _, __, page: plans[page])
    values = [integers(1), booleans(), booleans(), integers(2)]
    return opened, values, [nulls(), None, nulls(), np.zeros(ROWS, np.uint16)]


@pytest.mark.parametrize("part", [(0, ROWS), (1, ROWS - 1), (7, 8), (70, 135)])
def test_values_side_by_side(beside: Any, part: tuple[int, int]) -> None:
    opened, values, missing = beside
    assert opened.in_place() == [-2] * 4
    start, stop = part
    places = opened.places(stop - start, False)
    out = np.full(places[-1], 255, np.uint8)
    found = opened.read(0, 4, start, stop, out)
    wanted = [None if null is None else null[start:stop] for null in missing]
    check(opened, out, places, found, [each[start:stop] for each in values], wanted)
    rows = np.sort(np.random.default_rng(stop).integers(start, stop, 700))
    places = opened.places(len(rows), True)
    out = np.full(places[-1], 255, np.uint8)
    found = opened.take(0, 4, rows, out)
    wanted = [None if null is None else null[rows] for null in missing]
    check(opened, out, places, found, [each[rows] for each in values], wanted)


def test_buffers_that_are_too_short_for_values_side_by_side() -> None:
    file, valid = File(), packed_bits(nulls() == 0)
    values = file.append(integers(1).tobytes())
    file.column(b"x", [file.append(valid[:-1]), values])
    file.column(b"x", [file.append(valid), (values[0], values[1] - 1)])
    file.column(b"x", [values])
    file.column(b"x", [values] * 3)
    file.column(b"x", [file.append(valid), (1 << 40, 4 * ROWS)])
    opened = PlainColumns(file.data, file.table, list(range(5)), ["a"] * 5, ROWS, lambda *_: side_by_side(32, 2))
    assert opened.in_place() == [None] * 5


@pytest.mark.parametrize(
    "plan",
    [
        side_by_side(32, 3),
        side_by_side(7, 2),
        side_by_side(520, 2),
        (*side_by_side(32, 2)[:6], FLAT_LEVELS, None),
        (*side_by_side(32, 2)[:7], (miniblock_values.FLAT, 3, None)),
    ],
)
def test_plans_of_values_side_by_side_that_are_left_out(plan: Any) -> None:
    file = File()
    place = file.append(bytes(8 * ROWS))
    file.column(b"x", [place, place])
    assert PlainColumns(file.data, file.table, [0], ["a"], ROWS, lambda *_: plan).in_place() == [None]
