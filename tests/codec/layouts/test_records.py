"""Tests of tagged records as columns of numbers, against a model in Python and against protobuf."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.files.tagged_records import Fixed, Record, encoded, field, varint

from lance_dataset._proto import table_pb2
from lancecodec import CodecError, records

NONE = np.empty(0, np.int64)
HOWS = [records.LAST, records.COUNT, records.ITEMS, records.MAX, records.LAST_32]

numbers = st.integers(0, 2**64 - 1) | st.integers(0, 300) | st.integers(-(2**31), -1)
packed = st.lists(numbers, max_size=5).map(tuple)
fixed = st.sampled_from([Fixed(b"12345678"), Fixed(b"abcd")])
leaves = st.lists(st.tuples(st.integers(1, 6), numbers | packed | fixed), max_size=6)


def whole(data: bytes) -> tuple[np.ndarray, np.ndarray]:
    return np.zeros(1, np.int64), np.array([len(data)], np.int64)


def locate(data: bytes, ranges: tuple[np.ndarray, np.ndarray], number: int) -> list[np.ndarray]:
    count = records.locate(data, *ranges, number, NONE, NONE, NONE, NONE)
    found = [np.empty(count, np.int64) for _ in range(4)]
    assert records.locate(data, *ranges, number, *found) == count
    return found


def columns(
    data: bytes, starts: np.ndarray, ends: np.ndarray, wanted: list[tuple[int, int, int, int]]
) -> list[list[int]]:
    out = np.full((len(wanted), len(starts)), 77, np.int64)
    records.columns(data, starts, ends, np.array(wanted, np.int64).reshape(-1, 4), out)
    return out.tolist()


def signed(value: int, bits: int) -> int:
    value %= 1 << bits
    return value - (1 << bits) if value >> (bits - 1) else value


def expected(record: Record, number: int, inner: int, how: int, missing: int) -> int:
    """Return the value that a column holds for a record."""
    found = [value for tag, value in record if tag == number]
    if inner:
        below = [value for value in found if isinstance(value, list)]
        found = [value for each in below for tag, value in each if tag == inner]
    if how == records.COUNT:
        return sum(isinstance(value, tuple | list) for value in found) or missing
    values = []
    for value in found:
        if isinstance(value, int):
            values.append(value)
        elif isinstance(value, tuple) and how not in (records.LAST, records.LAST_32):
            values += value
    if how == records.ITEMS:
        return len(values) or missing
    if how == records.MAX:
        return max((signed(value, 32) for value in values), default=missing)
    if how == records.LAST_32:
        return values[-1] % (1 << 32) if values else missing
    return signed(values[-1], 64) if values else missing


@given(st.lists(leaves, max_size=12), st.integers(1, 6), st.integers(-3, 3))
def test_columns(rows: list[Record], number: int, missing: int) -> None:
    data = encoded([(9, row) for row in rows])
    _, heads, starts, ends = locate(data, whole(data), 9)
    assert [data[a:b] for a, b in zip(heads, ends, strict=True)] == [field(9, row) for row in rows]
    wanted = [(number, 0, how, missing) for how in HOWS]
    result = columns(data, starts, ends, wanted)
    assert result == [[expected(row, *column) for row in rows] for column in wanted]


@given(st.lists(st.lists(st.tuples(st.integers(1, 3), numbers | leaves), max_size=6), max_size=8), st.integers(1, 6))
def test_inner_columns(rows: list[Record], inner: int) -> None:
    data = encoded([(9, row) for row in rows])
    _, _, starts, ends = locate(data, whole(data), 9)
    wanted = [(2, inner, how, -5) for how in HOWS]
    result = columns(data, starts, ends, wanted)
    assert result == [[expected(row, *column) for row in rows] for column in wanted]
    owners, _, below, above = locate(data, (starts, ends), 2)
    inside = [(i, value) for i, row in enumerate(rows) for tag, value in row if tag == 2 and isinstance(value, list)]
    assert owners.tolist() == [i for i, _ in inside]
    assert [data[a:b] for a, b in zip(below, above, strict=True)] == [encoded(value) for _, value in inside]


@given(st.lists(leaves, max_size=8), st.integers(1, 6), st.integers(0, 3))
def test_numbers(rows: list[Record], number: int, room: int) -> None:
    data = encoded([(9, row) for row in rows])
    _, _, starts, ends = locate(data, whole(data), 9)
    found = [
        (position, signed(value, 32))
        for position, row in enumerate(rows)
        for tag, given_ in row
        if tag == number and isinstance(given_, int | tuple)
        for value in ([given_] if isinstance(given_, int) else given_)
    ]
    assert records.numbers(data, starts, ends, number, NONE, NONE) == len(found)
    for size in (len(found), room):
        owners, out = np.full(size, -7), np.full(size, -7)
        assert records.numbers(data, starts, ends, number, owners, out) == len(found)
        noted = list(zip(owners.tolist(), out.tolist(), strict=True))[: len(found)]
        assert noted == found[:size]


@given(st.lists(st.binary(max_size=12) | st.text(max_size=8).map(str.encode) | st.just(b"a-Z_09.lance"), max_size=5))
def test_signs(texts: list[bytes]) -> None:
    data = encoded([(9, [(1, 7), (1, text)]) for text in texts])
    _, _, starts, ends = locate(data, whole(data), 9)
    plain = set(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")
    expected_ = [(sum(c not in plain for c in text) + (text[0] == 46)) if text else 1 for text in texts]
    assert columns(data, starts, ends, [(1, 0, records.SIGNS, 3)]) == [expected_]
    assert columns(data, starts, ends, [(2, 0, records.SIGNS, 3)]) == [[3] * len(texts)]


def test_as_protobuf_reads_them() -> None:
    fragments = [
        table_pb2.DataFragment(
            id=2**40 + i,
            physical_rows=i * 10,
            deletion_file=table_pb2.DeletionFile(id=3, num_deleted_rows=i) if i % 2 else None,
            files=[table_pb2.DataFile(path=f"{i}.lance", fields=[-2, i, 7 - i], file_size_bytes=100)] * i,
        )
        for i in range(9)
    ]
    data = table_pb2.Manifest(fragments=fragments, version=5).SerializeToString()
    _, _, starts, ends = locate(data, whole(data), 2)
    wanted = [(1, 0, records.LAST, 0), (3, 4, records.LAST, -1), (2, 0, records.COUNT, 0), (2, 2, records.ITEMS, 0)]
    found = columns(data, starts, ends, wanted)
    assert found[0] == [fragment.id for fragment in fragments]
    # Numbers that are 0 are not stored.
    assert found[1] == [each.deletion_file.num_deleted_rows or -1 for each in fragments]
    assert found[2] == [len(each.files) for each in fragments]
    assert found[3] == [3 * len(each.files) for each in fragments]
    highest = columns(data, starts, ends, [(2, 2, records.MAX, -1)])[0]
    assert highest == [max((max(file.fields) for file in each.files), default=-1) for each in fragments]


@pytest.mark.parametrize(
    "data",
    [
        b"\x08",  # no value
        b"\x12\x05abc",  # fewer bytes than stated
        b"\x12" + varint(2**64 - 1),
        b"\x12" + varint(2**63),
        b"\x80" * 10 + b"\x01",  # a varint of eleven bytes
        b"\x08" + b"\xff" * 11,
        b"\x00\x01",  # field 0
        b"\x0b\x0c",  # a group
        b"\x0e",  # kind 6
        b"\x09abc",
        b"\x0dab",
        varint(1 << 40) + b"\x01",  # an impossible field number
    ],
)
def test_damaged(data: bytes) -> None:
    with pytest.raises(CodecError):
        locate(data, whole(data), 2)
    with pytest.raises(CodecError):
        columns(data, *whole(data), [(1, 0, records.LAST, 0)])
    with pytest.raises(CodecError):
        records.numbers(data, *whole(data), 1, NONE, NONE)
    inner = field(2, data)
    with pytest.raises(CodecError):
        columns(inner, *whole(inner), [(2, 1, records.LAST, 0)])


def test_truncated_anywhere() -> None:
    data = encoded([(1, 300), (2, [(1, 2**40), (3, (1, 2, 300))]), (3, Fixed(b"12345678")), (4, b"text")])
    ends_of_fields = {0, 3}
    for size in range(len(data)):
        try:
            columns(data[:size], *whole(data[:size]), [(2, 3, records.MAX, 0)])
        except CodecError:
            continue
        ends_of_fields.add(size)
    assert len(ends_of_fields) <= 5


def test_arguments() -> None:
    data, one, two = field(1, 5), np.zeros(1, np.int64), np.zeros(2, np.int64)
    end, cells = np.array([2], np.int64), np.zeros((1, 1), np.int64)
    wanted = np.array([(1, 0, records.LAST, 0)], np.int64)
    wrong = [
        lambda: records.locate(data, one, two, 1, NONE, NONE, NONE, NONE),
        lambda: records.locate(data, one, end, 1, one, NONE, NONE, NONE),
        lambda: records.locate(data, one, end + 1, 1, NONE, NONE, NONE, NONE),
        lambda: records.locate(data, one - 1, end, 1, NONE, NONE, NONE, NONE),
        lambda: records.locate(data, end, one, 1, NONE, NONE, NONE, NONE),
        lambda: records.numbers(data, one, two, 1, NONE, NONE),
        lambda: records.numbers(data, one, end, 1, one, NONE),
        lambda: records.numbers(data, one, end + 1, 1, NONE, NONE),
        lambda: records.columns(data, one, end + 1, wanted, cells),
        lambda: records.columns(data, one, end, wanted, np.zeros((2, 1), np.int64)),
        lambda: records.columns(data, one, end, wanted, np.zeros((1, 2), np.int64)),
        lambda: records.columns(data, one, end, wanted[:, :3].copy(), cells),
        lambda: records.columns(data, one, end, wanted + np.array([0, 0, 9, 0]), cells),
        lambda: records.columns(data, one, end, np.repeat(wanted, 17, 0), np.zeros((17, 1), np.int64)),
    ]
    for call in wrong:
        with pytest.raises(CodecError):
            call()
    with pytest.raises((TypeError, ValueError)):
        records.columns(data, one, end, wanted.astype(np.int32), cells)
    assert columns(b"", *whole(b""), [(1, 0, records.LAST, 9)]) == [[9]]
    assert columns(data, NONE, NONE, [(1, 0, records.LAST, 9)]) == [[]]
    assert columns(data, *whole(data), []) == []


def test_weigh() -> None:
    """Types 0 and 1: 0 has a text in field 1, numbers in 2, and messages of type 1 in 3; 1 has messages of type 0."""
    fixed = np.array([100, 10], np.int64)
    text, listed = records.BYTES_FIELD, records.NUMBERS_FIELD
    fields = np.array([[text, text, listed, 1], [text, 0, text, text]], np.int64)

    def weigh(record: Record) -> tuple[int, int, int]:
        return records.weigh(encoded(record), fixed, fields)

    assert weigh([]) == (100, 1, 0)
    assert weigh([(2, (1, 300, 2**40)), (2, 5)]) == (100, 1, 4)
    assert weigh([(3, []), (3, [(1, [(2, 7)])])]) == (100 + 10 + 10 + 100, 4, 1)
    alone = weigh([(1, [])])[0]
    assert weigh([(1, [(9, 1)] * 50)])[0] == alone + 2 * 100
    assert weigh([(9, [])])[0] == alone
    for data in (b"\x1a\x05", b"\x0b", b"\xff", b"\x1a\x02\x0a\x01"):
        with pytest.raises(CodecError, match="fields of a message"):
            records.weigh(data, fixed, fields)
    deep = b""
    for number in range(211):
        deep = bytes([10 if number % 2 else 26]) + varint(len(deep)) + deep
    with pytest.raises(CodecError):
        records.weigh(deep, fixed, fields)
    with pytest.raises(CodecError, match="type 2 of 2"):
        records.weigh(b"", fixed, np.full((2, 1), 2, np.int64))
    with pytest.raises(CodecError, match="types of messages"):
        records.weigh(b"", fixed[:1], fields)
