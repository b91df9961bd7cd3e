"""Tests of row ids as runs, compared with a model in Python."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from support.files.tagged_records import Record, encoded

from lancecodec import CodecError, row_ids

NO_WHOLES = np.empty((4, 0), np.int64)
Pairs = list[tuple[int, int]]


def split(sequences: Sequence[bytes], rows: Sequence[int], few: int = 100) -> tuple[Pairs, list[list[int]]]:
    """Return the ids with their addresses, and the segments that are not decoded."""
    data = b"front" + b"".join(sequences)
    ends = 5 + np.cumsum([len(each) for each in sequences], dtype=np.int64)
    starts = ends - np.array([len(each) for each in sequences], np.int64)
    given = (data, starts, ends, np.array(rows, np.int64), bases(len(rows)), few)
    none = np.empty(0, np.uint64)
    count, others = row_ids.split(*given, none, none.view(np.int64), none, NO_WHOLES)
    first, lengths, addresses = np.empty(count, np.uint64), np.empty(count, np.int64), np.empty(count, np.uint64)
    wholes = np.empty((4, others), np.int64)
    assert row_ids.split(*given, first, lengths, addresses, wholes) == (count, others)
    apart = (first[1:] != first[:-1] + lengths[:-1].astype(np.uint64)) | (first[1:] == 0)
    assert (apart | (addresses[1:] != addresses[:-1] + lengths[:-1].astype(np.uint64))).all()
    listed = zip(first.tolist(), addresses.tolist(), lengths.tolist(), strict=True)
    pairs = [(one + step, address + step) for one, address, length in listed for step in range(length)]
    return pairs, wholes.T.tolist()


def bases(count: int) -> np.ndarray:
    return np.arange(count, dtype=np.uint64) << np.uint64(32)


def sequence(*segments: Record) -> bytes:
    return encoded([(1, segment) for segment in segments])


def array(width: int, base: int, values: Sequence[int]) -> Record:
    data = struct.pack(f"<{len(values)}{ {2: 'H', 4: 'I', 8: 'Q'}[width] }", *values)
    return [(3, [(2, data)])] if width == 8 else [(width // 2, [(1, base), (2, data)])]


@pytest.mark.parametrize(
    ("segment", "ids"),
    [
        (b"\x0a\x04\x0a\x02\x10\x0a", list(range(10))),
        (b"\x0a\x06\x0a\x04\x08\x0a\x10\x14", list(range(10, 20))),
        (b"\x0a\x09\x1a\x07\x08\x01\x10\x06\x1a\x01\x11", [1, 5]),
        (b"\x0a\x0b\x1a\x09\x08\x02\x10\x1a\x1a\x03\x01\x04\x80", [2, 12, 25]),
        (sequence([(2, [(2, 12), (3, array(2, 3, [0, 5]))])]), [0, 1, 2, 4, 5, 6, 7, 9, 10, 11]),
        (sequence([(5, array(2, 7, [2, 0, 1, 65535]))]), [9, 7, 8, 65542]),
        (sequence([(4, array(4, 2**40, [0, 2**32 - 1]))]), [2**40, 2**40 + 2**32 - 1]),
        (sequence([(5, array(8, 0, [2**64 - 1, 0, 2**64 - 2]))]), [2**64 - 1, 0, 2**64 - 2]),
        (sequence([(1, [(1, 2**64 - 4), (2, 2**64 - 1)])], [(1, [(1, 3), (2, 4)])]), [*range(2**64 - 4, 2**64 - 1), 3]),
        (sequence([(1, [])], [(5, [])], [(3, [(1, 4), (2, 4)])]), []),
    ],
)
def test_literal_segments(segment: bytes, ids: list[int]) -> None:
    expected = list(zip(ids, range(len(ids)), strict=True))
    assert split([segment], [len(ids)]) == (expected, [])


def test_random_segments() -> None:
    rng = np.random.default_rng(5)
    for _ in range(200):
        sequences, rows, expected, wholes = [], [], [], 0
        for fragment in range(int(rng.integers(1, 5))):
            segments: list[Record] = []
            ids: list[int] = []
            for _ in range(int(rng.integers(0, 5))):
                segment, mine, is_whole = random_segment(rng)
                segments.append(segment)
                if is_whole:
                    wholes += 1
                else:
                    expected += [(each, (fragment << 32) + len(ids) + at) for at, each in enumerate(mine)]
                ids += mine
            sequences.append(sequence(*segments))
            rows.append(len(ids))
        found, others = split(sequences, rows)
        assert found == expected
        assert len(others) == wholes


def random_segment(rng: np.random.Generator) -> tuple[Record, list[int], bool]:
    """Return a segment, its ids, and True if it stays whole."""
    start = [0, 9, 2**32, 2**64 - 200][int(rng.integers(4))]
    span = int(rng.choice([0, 1, 7, 63, 64, 65, 99, 100, 150]))
    keep = rng.random(span) < rng.choice([0.0, 0.1, 0.5, 0.9, 1.0])
    ids, holes = (start + np.flatnonzero(mask).astype(np.uint64) for mask in (keep, ~keep))
    kind = int(rng.integers(1, 6))
    if kind == 1:
        return [(1, [(1, start), (2, start + span)])], list(range(start, start + span)), span >= 100
    if kind == 2:
        segment: Record = [(1, start), (2, start + span), (3, array(8, 0, holes.tolist()))]
        return [(2, segment)], ids.tolist(), len(ids) >= 100 or span > 64
    if kind == 3:
        bits = np.packbits(keep, bitorder="little").tobytes()
        return [(3, [(1, start), (2, start + span), (3, bits)])], ids.tolist(), len(ids) >= 100 or span > 64
    if kind == 5:
        ids = rng.permutation(ids)
    return [(kind, array(2, start, (ids - np.uint64(start)).tolist()))], ids.tolist(), len(ids) >= 100


def test_segments_of_many_ids_are_located() -> None:
    large: Record = [(1, [(1, 5), (2, 2**40)])]
    first, second = sequence([(1, [(2, 3)])], large, [(1, [(1, 3), (2, 5)])]), sequence(large)
    pairs, wholes = split([first, second], [3 + 2**40 - 5 + 2, 2**40 - 5])
    assert pairs == [(0, 0), (1, 1), (2, 2), (3, 3 + 2**40 - 5), (4, 4 + 2**40 - 5)]
    assert [each[:2] for each in wholes] == [[0, 3], [1, 0]]
    assert all((b"front" + first + second)[start:end] == encoded(large) for _, _, start, end in wholes)


def test_runs_continue_in_a_fragment_only() -> None:
    joined = sequence([(1, [(2, 3)])], [(5, array(2, 3, [0, 1]))], [(1, [(1, 5), (2, 6)])])
    first = np.empty(9, np.uint64)
    lengths, addresses = np.empty(9, np.int64), np.empty(9, np.uint64)
    ends = np.array([len(joined), len(joined) + 6], np.int64)
    data = joined + b"\x0a\x04\x0a\x02\x10\x02"
    places = (data, np.append(0, ends[:1]), ends, np.array([6, 2]), np.array([0, 6], np.uint64))
    assert row_ids.split(*places, 100, first, lengths, addresses, NO_WHOLES) == (2, 0)
    assert (first[:2].tolist(), lengths[:2].tolist(), addresses[:2].tolist()) == ([0, 0], [6, 2], [0, 6])


@pytest.mark.parametrize(
    "segment",
    [
        [],  # no kind
        [(6, b"")],
        [(1, 5)],
        [(1, [(2, 4)]), (1, [(2, 4)])],  # two kinds, which a general parser merges
        [(1, [(1, 5), (2, 4)])],
        [(1, [(1, b"")])],
        [(1, [(2, 4), (3, b"")])],
        [(2, [(2, 4), (3, array(2, 3, [1]))])],  # a hole behind the range
        [(2, [(1, 4), (2, 8), (3, array(8, 0, [3]))])],
        [(2, [(1, 4), (2, 9), (3, array(8, 0, [6, 6]))])],
        [(2, [(1, 4), (2, 5), (3, array(8, 0, [4, 5]))])],
        [(2, [(2, 9), (3, [(1, [(1, 2**64 - 1), (2, b"\x03\x00")])])])],
        [(2, [(2, 9), (3, []), (3, [])])],
        [(3, [(2, 4), (3, b"")])],
        [(3, [(2, 4), (3, b"\x1f")])],
        [(3, [(2, 4), (3, b"\x01\x00")])],
        [(3, [(2, 2**64 - 1)])],
        [(4, array(2, 0, [3, 2]))],
        [(4, array(2, 0, [3, 3]))],
        [(5, array(4, 2**64 - 5, [0, 7]))],
        [(5, [(1, [(2, b"123")])])],
        [(5, [(3, [(1, 4), (2, bytes(8))])])],
        [(5, [(4, [(2, bytes(8))])])],
        [(5, [(1, [(2, bytes(2))]), (2, [(2, bytes(4))])])],
        [(1, [(2, 2**63)])],
    ],
)
def test_damaged_segments(segment: Record) -> None:
    with pytest.raises(CodecError):
        split([sequence(segment)], [4])


def test_other_numbers_of_ids() -> None:
    data = sequence([(1, [(2, 3)])], [(1, [(1, 9), (2, 10)])])
    assert len(split([data], [4])[0]) == 4
    for rows in (-1, 0, 2, 3, 5):
        with pytest.raises(CodecError):
            split([data], [rows])
    for end in range(1, len(data)):
        with pytest.raises(CodecError):
            split([data[:end]], [4])
    with pytest.raises(CodecError):
        split([data + b"\x10\x05"], [4])


def test_arrays_that_do_not_match() -> None:
    one, number, none = np.zeros(1, np.int64), np.zeros(1, np.uint64), np.empty(0, np.int64)
    ids = number[:0]

    def call(*, ends: object = one, rows: object = one, bases: object = number, few: int = 9, lengths: object = none,
             addresses: object = ids, wholes: object = NO_WHOLES) -> object:  # fmt: skip
        return row_ids.split(b"", one, ends, rows, bases, few, ids, lengths, addresses, wholes)  # type: ignore[arg-type]

    assert call() == (0, 0)
    wrong: list[Callable[[], object]] = [
        lambda: call(ends=none),
        lambda: call(ends=one + 1),
        lambda: call(ends=one - 1),
        lambda: call(rows=none),
        lambda: call(bases=ids),
        lambda: call(few=0),
        lambda: call(lengths=one),
        lambda: call(addresses=number),
        lambda: call(wholes=np.empty((3, 5), np.int64)),
    ]
    for each in wrong:
        with pytest.raises(CodecError):
            each()


def test_lanes() -> None:
    rng = np.random.default_rng(3)
    for count in (1, 2, 8):
        first = np.sort(rng.integers(0, 1000, 300)).astype(np.uint64)
        lengths = rng.integers(1, 9, 300)
        out = np.empty(300, np.uint8)
        row_ids.lanes(first, lengths, count, out)
        ends: list[int] = []
        for start, length, lane in zip(first.tolist(), lengths.tolist(), out.tolist(), strict=True):
            expected = next((at for at, end in enumerate(ends) if end <= start), len(ends))
            assert lane == min(expected, count)
            if lane == count:
                continue
            ends[lane:] = [start + length, *ends[lane + 1 :]]
    highest = np.array([2**64 - 3, 2**64 - 1, 2**64 - 1], np.uint64)
    out = bytearray(3)
    row_ids.lanes(highest, np.array([3, 1, 1]), 2, out)
    assert list(out) == [0, 1, 2]


@pytest.mark.parametrize(
    ("first", "lengths", "count", "room"),
    [
        ([5, 4], [1, 1], 2, 2),
        ([5, 6], [1, 0], 2, 2),
        ([5, 2**64 - 1], [1, 2], 2, 2),
        ([5], [-1], 2, 1),
        ([5], [1], 0, 1),
        ([5], [1], 9, 1),
        ([5], [1, 1], 2, 1),
        ([5], [1], 2, 2),
    ],
)
def test_lanes_of_bad_runs(first: list[int], lengths: list[int], count: int, room: int) -> None:
    with pytest.raises(CodecError):
        row_ids.lanes(np.array(first, np.uint64), np.array(lengths, np.int64), count, bytearray(room))
