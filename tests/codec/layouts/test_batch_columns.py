"""Tests of columns of tables in batches, found and read together."""

from __future__ import annotations

import itertools
import struct

import numpy as np
import pytest

from lancecodec import CodecError
from lancecodec.batch_columns import MOST_BATCHES, BatchColumns

STARTS = np.array([0, 1000, 1000, 1001, 2000, 2603], np.int64)
ROWS = int(STARTS[-1])


class File:
    """Bytes of pages, with a table of them behind."""

    def __init__(self) -> None:
        self.data = bytearray(b"?")  # so that no page is aligned
        self.cells = b""

    def column(self, values: np.ndarray) -> None:
        for first, last in itertools.pairwise(STARTS):
            part = values[first:last]
            stored = np.packbits(part, bitorder="little") if part.dtype == bool else part
            self.cell(len(self.data), len(part))
            self.data += stored.tobytes()

    def cell(self, position: int, length: int) -> None:
        self.cells += struct.pack("<qq", position, length)

    def open(self, bits: list[int], entries: list[int] | None = None, starts: np.ndarray = STARTS) -> BatchColumns:
        count = len(bits)
        return BatchColumns(
            bytes(self.data) + self.cells, starts, len(self.data), list(range(count)), bits, entries or [0] * count
        )


def columns() -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    return [
        rng.integers(0, 256, ROWS).astype(np.uint8),
        rng.random(ROWS) < 0.3,
        rng.standard_normal(ROWS),
        rng.integers(0, 9, ROWS).astype(np.int16),
        np.frombuffer(rng.bytes(12 * ROWS), np.dtype("V12")),
    ]


BITS = [8, 1, 64, 16, 96]


@pytest.fixture
def file() -> File:
    made = File()
    for values in columns():
        made.column(values)
    return made


def check(opened: BatchColumns, out: np.ndarray, count: int, wanted: list[np.ndarray]) -> None:
    places = opened.places(count, False)
    assert [place % 64 for place in places] == [0] * len(places)
    for place, values in zip(places, wanted, strict=False):
        if values.dtype == bool:
            found = np.unpackbits(out[place : place + (count + 7) // 8], bitorder="little")
            assert np.array_equal(found[:count], values)
            assert not found[count:].any()
        else:
            assert out[place : place + count * values.itemsize].tobytes() == values.tobytes()


@pytest.mark.parametrize(("start", "stop"), [(0, ROWS), (0, 1), (999, 1002), (1001, 2000), (5, 2601), (7, 7)])
def test_ranges(file: File, start: int, stop: int) -> None:
    opened, count = file.open(BITS, [0, 0, 0, 9, 0]), stop - start
    out = np.full(opened.places(count, False)[-1], 255, np.uint8)
    assert opened.read(0, 5, start, stop, out) == [0] * 5
    check(opened, out, count, [values[start:stop] for values in columns()])
    part = np.full(opened.places(count, False)[3], 255, np.uint8)
    first = opened.places(count, False)[2]
    assert opened.read(2, 3, start, stop, part) == [0]
    assert part[: 8 * count].tobytes() == out[first : first + 8 * count].tobytes()


@pytest.mark.parametrize(
    "rows", [[], [0], [ROWS - 1], [0, 0, 999, 1000, 1001, 1999, 2000], list(range(3, ROWS, 5)), [9] * 4000], ids=len
)
def test_taken_rows(file: File, rows: list[int]) -> None:
    opened, taken = file.open(BITS, [0, 0, 0, 9, 0]), np.array(rows, np.int64)
    out = np.full(opened.places(len(rows), True)[-1], 255, np.uint8)
    assert opened.take(0, 5, taken, out) == [0] * 5
    check(opened, out, len(rows), [values[taken] for values in columns()])


def test_indices_without_an_entry(file: File) -> None:
    opened = file.open(BITS, [0, 0, 0, 8, 0])
    out = np.empty(opened.places(ROWS, False)[-1], np.uint8)
    assert opened.read(0, 5, 0, ROWS, out) == [0, 0, 0, -1, 0]
    known = np.flatnonzero(columns()[3] < 8)
    assert opened.take(0, 5, known, out) == [0] * 5


def test_extent(file: File) -> None:
    low, high, size = file.open(BITS).extent()
    assert (low, high, size) == (1, len(file.data), len(file.data) - 1)
    assert file.open([0] * 5).extent() == (0, 0, 0)


def test_columns_that_do_not_fit_are_left_out(file: File) -> None:
    end = len(file.data) + len(file.cells) + 6 * 5 * 16
    for position, length in [(end - 600, 603), (-1, 603), (0, 602), (0, 1 << 60), (1 << 62, 603), (end + 1, 603)]:
        for _ in range(4):
            file.cell(0, 1000)
        file.cell(position, length)
    opened = file.open([*BITS, *[8] * 6])
    assert opened.in_place() == [-2] * 5 + [None] * 6
    out = np.empty(opened.places(ROWS, True)[-1], np.uint8)
    assert opened.read(0, 11, 0, ROWS, out) == [0] * 5 + [-1] * 6
    assert opened.read(5, 11, 3, 3, out) == [-1] * 6
    data = bytes(file.data) + file.cells
    beyond = BatchColumns(data, STARTS, len(file.data), [11, -1, 1 << 60], [8] * 3, [0] * 3)
    assert beyond.in_place() == [None] * 3
    for table in (-1, len(data), 1 << 62):
        assert BatchColumns(data, STARTS, table, [0], [8], [0]).in_place() == [None]


@pytest.mark.parametrize(("bits", "entries"), [(0, 0), (4, 0), (-8, 0), (520, 0), (1, 3), (96, 3), (8, -1)])
def test_forms_that_are_left_out(file: File, bits: int, entries: int) -> None:
    assert file.open([bits], [entries]).in_place() == [None]


def test_tables_of_many_batches_are_left_out() -> None:
    starts = np.zeros(MOST_BATCHES + 2, np.int64)
    opened = BatchColumns(bytes(1 << 20), starts, 0, [0], [8], [0])
    assert opened.in_place() == [None]
    assert opened.take(0, 1, np.empty(0, np.int64), bytearray()) == [-1]


def test_arguments_are_checked(file: File) -> None:
    opened, out = file.open(BITS), np.empty(1 << 16, np.uint8)
    for first, last in ((-1, 2), (2, 1), (0, 6)):
        with pytest.raises(CodecError, match="columns"):
            opened.read(first, last, 0, 10, out)
        with pytest.raises(CodecError, match="columns"):
            opened.take(first, last, np.arange(3), out)
    for start, stop in ((-1, 2), (2, 1), (0, ROWS + 1)):
        with pytest.raises(CodecError, match="rows"):
            opened.read(0, 5, start, stop, out)
    for rows in ([-1], [ROWS], [5, 4], [2**62]):
        with pytest.raises(CodecError, match="row"):
            opened.take(0, 5, np.array(rows, np.int64), out)
    with pytest.raises(CodecError, match="no room"):
        opened.read(2, 3, 0, ROWS, out[: 8 * ROWS - 1])
    with pytest.raises(CodecError, match="values"):
        opened.places(-1, False)
    with pytest.raises(CodecError, match="match"):
        BatchColumns(b"", STARTS, 0, [1], [], [])
    for starts in ([], [1, 2], [0, 5, 4]):
        with pytest.raises(CodecError, match="batch"):
            BatchColumns(b"", np.array(starts, np.int64), 0, [], [], [])
