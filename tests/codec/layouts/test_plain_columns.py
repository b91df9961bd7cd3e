"""Tests of columns of one plain page each, found and read together."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from support.files.tagged_records import Record, encoded

from lancecodec import CodecError, miniblock_values, plain_columns, word_pages
from lancecodec.plain_columns import IN_PLACE, MOST_ROWS, PlainColumns

ROWS = 3000
PACKED = (miniblock_values.INLINE, 4, 1, True, 0.0)
PLACED = (IN_PLACE, 8, 1, False, 0.0)


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


def damaged(opened: PlainColumns, rows: np.ndarray) -> list[int]:
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
    assert opened.read(0, 4, start, stop, out) == []
    for number in (0, 3):
        assert np.array_equal(out[places[number] :].view(np.int32)[:count], integers(number)[start:stop])
    part = np.zeros(places[4] - places[3], np.uint8)
    assert opened.read(3, 4, start, stop, part) == []
    assert np.array_equal(part.view(np.int32)[:count], integers(3)[start:stop])


@pytest.mark.parametrize("rows", [[], [0], [ROWS - 1], [0, 0, 7, 1023, 1024, 2999], list(range(0, ROWS, 2))], ids=len)
def test_taken_rows(file: File, rows: list[int]) -> None:
    opened, taken = file.open(4), np.array(rows, np.int64)
    places = opened.places(len(rows), True)
    out = np.zeros(places[-1], np.uint8)
    assert opened.take(0, 4, taken, out) == []
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
    assert opened.take(0, 4, np.arange(min(max(rows, 0), 3)), bytearray()) == []


@pytest.mark.parametrize(
    "plan",
    [
        (miniblock_values.INLINE, 16, 1, True, 0.0),
        (miniblock_values.INLINE, 4, 2, True, 0.0),
        (miniblock_values.RLE, 4, 1, True, 0.0),
        (miniblock_values.SPLIT, 2, 1, True, 0.0),
        (miniblock_values.FLAT, 0, 1, True, 0.0),
        (miniblock_values.FLAT, 65, 1, True, 0.0),
        (7, 4, 1, True, 0.0),
        (-1, 4, 1, True, 0.0),
        (miniblock_values.INLINE, 4, 1, True, 33.0),
    ],
)
def test_codecs_that_the_kernels_do_not_support_are_left_out(file: File, plan: Any) -> None:
    assert PlainColumns(file.data, file.table, [0], ["a"], ROWS, lambda *_: plan).in_place() == [None]


def test_damaged_columns_are_named(file: File) -> None:
    position = file.packed(integers(5))[1][0]
    words, chunks = file.packed(integers(5))
    file.table = file.table[:48]
    file.column(b"packed", [words, chunks])
    file.data[chunks[0] : chunks[0] + 16] = b"\xff" * 16
    opened = file.open(4)
    assert position < chunks[0]
    out = np.empty(opened.places(ROWS, False)[-1], np.uint8)
    assert opened.read(0, 4, 0, ROWS, out) == [3]
    assert opened.read(0, 4, 2048, ROWS, out) == [], "the damaged chunk is not read"
    assert damaged(opened, np.array([0, 9])) == [3]
    file.data[words[0]] ^= 0x10
    assert damaged(opened, np.array([2500])) == [3], "chunk words contradict each other"


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
            opened.take(0, 4, np.array(rows), out)
    with pytest.raises(CodecError, match="no room"):
        opened.read(0, 4, 0, ROWS, out[:23999])
    with pytest.raises(CodecError, match="no room"):
        opened.take(0, 4, np.arange(10), out[:191])
    with pytest.raises(CodecError, match="values"):
        opened.places(-1, False)
    with pytest.raises(CodecError, match="kinds"):
        plain_columns.PlainColumns(file.data, file.table, [1], [], ROWS, lambda *_: None)
