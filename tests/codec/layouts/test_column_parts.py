"""Tests of one column of many files, read together."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from support.files.tagged_records import Record, encoded

from lancecodec import CodecError, column_parts, miniblock_values, word_pages
from lancecodec.column_parts import INDICES, TEXTS, VALUES, ColumnParts
from lancecodec.plain_columns import IN_PLACE

ROWS = 1500
PLANS: dict[bytes, Any] = {
    b"packed": (ROWS, VALUES, None, (miniblock_values.INLINE, 32, 32, 1, True, 0.0, None, None)),
    b"flags": (3, VALUES, None, (miniblock_values.FLAT, 1, 1, 1, False, 0.0, None, None)),
    b"placed": (ROWS, VALUES, None, (IN_PLACE, 64, 64, 1, False, 0.0, None, None)),
    b"texts": (3, TEXTS, None, (miniblock_values.FLAT, 8, 8, 1, False, 32.0, None, None)),
    b"indices": (3, INDICES, "dictionary", (miniblock_values.FLAT, 16, 16, 1, False, 16.0, None, None)),
    b"short": (ROWS - 1, VALUES, None, (IN_PLACE, 64, 64, 1, False, 0.0, None, None)),
}


def file(kind: bytes, buffers: Sequence[bytes], rows: int = ROWS) -> tuple[bytes, int]:
    """Return the bytes of a file of one column, and the position of its table."""
    data, places = bytearray(b"front"), []
    for part in buffers:
        data += bytes(-len(data) % 64)
        places.append((len(data), len(part)))
        data += part
    page: Record = [
        (1, tuple(position for position, _ in places)),
        (2, tuple(size for _, size in places)),
        (3, rows),
        (4, [(2, [(1, kind)])]),
    ]
    metadata = encoded([(1, [(2, [(1, b"values")])]), (2, page)])
    return bytes(data) + metadata + struct.pack("<QQ", len(data), len(metadata)), len(data) + len(metadata)


def packed(seed: int) -> tuple[bytes, int]:
    parts: Any = word_pages.encode(integers(seed), 0, ROWS, 4, True, np.empty(0, np.int64), 0)
    return file(b"packed", parts)


def integers(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 1 << 20, ROWS, np.int32)


def chunk(kind: bytes, content: bytes, more: Sequence[bytes] = ()) -> tuple[bytes, int]:
    """Return a file with one chunk of three values, which is a header and their bytes."""
    data = struct.pack("<HH", 0, len(content)).ljust(8, b"\0") + content
    data += bytes(-len(data) % 8)
    return file(kind, [struct.pack("<H", (len(data) // 8 - 1) << 4), data, *more], 3)


def texts(values: Sequence[bytes]) -> tuple[bytes, int]:
    content = np.cumsum([16, *map(len, values)]).astype("<u4").tobytes() + b"".join(values)
    return chunk(b"texts", content + bytes(-len(content) % 4))


def opened(parts: list[tuple[Any, ...]], plans: dict[Any, Any] | None = None) -> ColumnParts:
    return ColumnParts(parts, {} if plans is None else plans, lambda column, page: PLANS.get(page))


def test_ranges_of_packed_values() -> None:
    ranges = [(0, ROWS), (1, 1499), (1023, 1025), (7, 7), (ROWS, ROWS)]
    parts = opened([(*packed(seed), 0, ROWS, *bounds) for seed, bounds in enumerate(ranges)])
    expected = np.concatenate([integers(seed)[slice(*bounds)] for seed, bounds in enumerate(ranges)])
    assert parts.groups(1 << 30) == [(VALUES, 0, 5, len(expected), expected.nbytes)]
    out, validity = np.zeros(len(expected), np.int32), np.zeros(len(expected) // 8 + 1, np.uint8)
    assert parts.read(0, 5, out, validity) == 0
    assert np.array_equal(out, expected)
    assert np.unpackbits(validity, bitorder="little")[: len(expected)].all()
    assert parts.read(2, 3, out, validity) == 0
    assert np.array_equal(out[:2], integers(2)[1023:1025])


def test_plans_are_made_once_for_equal_descriptions() -> None:
    calls: list[bytes] = []

    def plan_of(column: bytes, page: bytes) -> Any:
        assert column == b"values"
        calls.append(page)
        return PLANS.get(page)

    values = file(b"placed", [bytes(8 * ROWS)])
    plans: dict[Any, Any] = {}
    for _ in range(2):
        ColumnParts([(*each, 0, ROWS, 0, 1) for each in (packed(0), values, packed(1), values)], plans, plan_of)
    assert sorted(calls) == [b"packed", b"placed"]


def test_groups() -> None:
    values = np.arange(ROWS, dtype=np.float64)
    placed, other = file(b"placed", [values.tobytes()]), file(b"unknown", [values.tobytes()])
    short, wrong = file(b"short", [values.tobytes()]), file(b"placed", [values.tobytes()[8:]])
    files = [other, placed, placed, short, placed, wrong, placed, placed, placed]
    parts = opened([(*each, 0, ROWS, 5, 10) for each in files])
    assert parts.groups(1 << 30) == [(VALUES, 1, 3, 10, 80), (VALUES, 4, 5, 5, 40), (VALUES, 6, 9, 15, 120)]
    assert parts.groups(60) == [
        (VALUES, 1, 3, 10, 80),
        (VALUES, 4, 5, 5, 40),
        (VALUES, 6, 8, 10, 80),
        (VALUES, 8, 9, 5, 40),
    ]
    assert parts.places(6, 7) == [(64, 8 * ROWS)]
    out, validity = np.zeros(15), np.zeros(2, np.uint8)
    assert parts.read(6, 9, out, validity) == 0
    assert out.tolist() == [5, 6, 7, 8, 9] * 3
    for first, last in [(0, 2), (5, 7), (-1, 1), (2, 1), (6, 10)]:
        with pytest.raises(CodecError):
            parts.places(first, last)
        with pytest.raises(CodecError):
            parts.read(first, last, out, validity)
    with pytest.raises(CodecError, match="no room"):
        parts.read(6, 9, out[1:], validity)
    with pytest.raises(CodecError, match="validity"):
        parts.read(6, 9, out, validity[1:])
    with pytest.raises(CodecError, match="another form"):
        parts.read_texts(6, 7, False, out, out, validity)


@pytest.mark.parametrize("wide", [False, True])
def test_texts(wide: bool) -> None:
    words = [b"one", b"", b"three"], [b"", b"", b""], [b"x" * 70, b"y", b"z"]
    parts = opened([(*texts(each), 0, 3, 0, 3) for each in words] + [(*texts(words[0]), 0, 3, 2, 3)])
    assert parts.groups(1 << 30) == [(TEXTS, 0, 4, 10, 85)]
    offsets, content = np.zeros(11, np.int64 if wide else np.int32), np.zeros(85, np.uint8)
    validity = np.zeros(2, np.uint8)
    assert parts.read_texts(0, 4, wide, offsets, content, validity) == 0
    assert validity.tolist() == [255, 3]
    flat = [word for each in words for word in each] + [b"three"]
    assert offsets.tolist() == np.cumsum([0, *map(len, flat)]).tolist()
    assert content.tobytes() == b"".join(flat)
    with pytest.raises(CodecError, match="offsets"):
        parts.read_texts(0, 4, wide, offsets[1:], content, validity)
    with pytest.raises(CodecError, match="no room"):
        parts.read_texts(0, 4, wide, offsets, content[1:], validity)
    with pytest.raises(CodecError, match="another form"):
        parts.read(0, 1, content, validity)


def test_texts_that_contradict_their_description() -> None:
    data, position = texts([b"one", b"two", b"three"])
    start = 128 + 8  # behind the words and the header of the chunk
    damaged = data[: start + 4] + struct.pack("<I", 1 << 30) + data[start + 8 :]
    parts = opened([(data, position, 0, 3, 0, 3), (damaged, position, 0, 3, 0, 3)])
    offsets, content, validity = np.zeros(4, np.int32), np.zeros(64, np.uint8), np.zeros(1, np.uint8)
    assert parts.groups(1 << 30) == [(TEXTS, 0, 2, 6, 22)], "the sum of the sizes is right"
    assert parts.read_texts(0, 1, False, offsets, content, validity) == 0
    assert parts.read_texts(1, 2, False, offsets, content, validity) == -1
    torn = data[: start + 12] + struct.pack("<I", 1 << 30) + data[start + 16 :]
    assert opened([(torn, position, 0, 3, 0, 3)]).groups(1 << 30) == []


def test_packed_values_that_contradict_their_description() -> None:
    data, position = packed(0)
    damaged = data[:64] + bytes([255]) * 8 + data[72:]
    parts = opened([(damaged, position, 0, ROWS, 0, ROWS)])
    assert parts.read(0, 1, np.zeros(ROWS, np.int32), np.zeros(ROWS, np.uint8)) == -1


def test_booleans_take_a_bit() -> None:
    rows = [0b101, 0b110, 0b011, 0b111]
    parts = opened([(*chunk(b"flags", bytes([bits])), 0, 3, number % 2, 3) for number, bits in enumerate(rows)])
    assert parts.groups(1 << 30) == [(VALUES, 0, 4, 10, 0)]
    out, validity = np.zeros(2, np.uint8), np.zeros(2, np.uint8)
    assert parts.read(0, 4, out, validity) == 0
    bits = np.unpackbits(out, bitorder="little")[:10].tolist()
    assert bits == [1, 0, 1, 1, 1, 1, 1, 0, 1, 1]
    with pytest.raises(CodecError, match="no room"):
        parts.read(0, 4, out[1:], validity)


def test_indices() -> None:
    files = [chunk(b"indices", np.array(each, "<u2").tobytes(), [b"entries"]) for each in ([0, 1, 2], [2, 2, 0])]
    parts = opened([(*each, 0, 3, 0, 3) for each in files])
    assert parts.groups(1 << 30) == [(INDICES, 0, 2, 6, 24)]
    ((dictionary, position, size), _) = parts.dictionaries(0, 2)
    assert (dictionary, files[0][0][position : position + size]) == ("dictionary", b"entries")
    assert parts.places(0, 1) == [(64, position + size - 64)]
    out, validity = np.zeros(6, np.int32), np.zeros(1, np.uint8)
    bases, counts = np.array([10, 0]), np.array([3, 3])
    assert parts.read_indices(0, 2, bases, counts, out, validity) == 0
    assert out.tolist() == [10, 11, 12, 2, 2, 0]
    assert parts.read_indices(0, 2, bases, np.array([3, 2]), out, validity) == -1
    assert parts.read_indices(1, 1, bases[:0], counts[:0], out, validity) == 0
    for wrong in ([-1, 0], [2**31 - 3, 0], [0]):
        with pytest.raises(CodecError):
            parts.read_indices(0, 2, np.array(wrong), counts, out, validity)
    with pytest.raises(CodecError, match="no room"):
        parts.read_indices(0, 2, bases, counts, out[1:], validity)


@pytest.mark.parametrize(("start", "stop", "rows"), [(-1, 3, 3), (2, 1, 3), (0, 4, 3), (0, 0, -1)])
def test_rows_outside_of_the_file(start: int, stop: int, rows: int) -> None:
    with pytest.raises(CodecError):
        opened([(*texts([b"a", b"b", b"c"]), 0, rows, start, stop)])


def test_columns_and_tables_outside_of_the_file() -> None:
    data, position = packed(0)
    end = len(data)
    places = [(position, 1), (position, -1), (-1, 0), (end, 0), (end - 15, 0), (2**62, 0), (position, 2**40)]
    parts = opened([(data, at, number, ROWS, 0, 1) for at, number in places])
    assert parts.groups(1 << 30) == []
    assert column_parts.ColumnParts([], {}, lambda *_: None).groups(1) == []
