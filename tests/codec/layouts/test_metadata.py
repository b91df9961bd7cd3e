"""Tests of metadata of 2.x files read without messages: the same result as protobuf, or left to protobuf."""

from __future__ import annotations

import random
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.files.tagged_records import Record, encoded, varint

from lance_dataset._proto import file2_pb2, file_pb2
from lancecodec import metadata

SIZE = 10_000

numbers = st.integers(0, 300) | st.integers(0, SIZE) | st.integers(0, 2**64 - 1)
lists = st.lists(st.integers(0, 90), max_size=4).map(tuple)


def direct(content: bytes) -> Record:
    return [(2, [(1, content)])]


def parsed(data: bytes) -> tuple[object, object, object]:
    """Return the result of `scan_column`, computed from protobuf messages."""
    column = file2_pb2.ColumnMetadata.FromString(data)
    pages = [
        (
            tuple(zip(page.buffer_offsets, page.buffer_sizes, strict=True)),
            page.length,
            page.encoding.direct.encoding,
        )
        for page in column.pages
    ]
    buffers = tuple(zip(column.buffer_offsets, column.buffer_sizes, strict=True))
    assert column.encoding.WhichOneof("location") == "direct"
    assert all(page.encoding.WhichOneof("location") == "direct" for page in column.pages)
    assert sum(size for found, _, _ in pages for _, size in found) <= SIZE
    assert all(start + size <= SIZE for found in (buffers, *(page[0] for page in pages)) for start, size in found)
    return column.encoding.direct.encoding, buffers, pages


page_fields = st.one_of(
    st.tuples(st.sampled_from([1, 2]), lists | numbers),
    st.tuples(st.just(3), numbers),
    st.tuples(st.just(4), st.binary(max_size=4).map(direct)),
    st.tuples(st.just(5), numbers),
    st.tuples(st.integers(1, 7), numbers | st.binary(max_size=3)),
)
pages = st.one_of(
    st.builds(
        lambda buffers, length, content: [
            (1, tuple(start for start, _ in buffers)),
            (2, tuple(size for _, size in buffers)),
            (3, length),
            (4, direct(content)),
        ],
        st.lists(st.tuples(numbers, st.integers(0, 90)), max_size=3),
        numbers,
        st.sampled_from([b"", b"encoding", b"other"]),
    ),
    st.lists(page_fields, max_size=5),
)
columns = st.lists(
    st.one_of(
        st.tuples(st.just(2), pages),
        st.tuples(st.just(1), st.binary(max_size=5).map(direct)),
        st.tuples(st.sampled_from([3, 4]), lists),
        st.tuples(st.integers(1, 6), numbers),
    ),
    max_size=6,
)


@given(columns.map(encoded), st.randoms(use_true_random=False), st.booleans())
def test_columns_are_what_messages_say(data: bytes, choice: random.Random, damaged: bool) -> None:
    if damaged and data:
        place = choice.randrange(len(data))
        data = choice.choice([data[:place], data[:place] + bytes([choice.randrange(256)]) + data[place + 1 :]])
    found = metadata.scan_column(data, SIZE)
    if found is not None:
        assert found == parsed(data)


@given(st.integers(0, 2**32), st.lists(st.tuples(numbers, st.integers(0, 50)), max_size=3), st.integers(0, 40))
def test_columns_as_writers_write_them_are_read(length: int, buffers: list[tuple[int, int]], count: int) -> None:
    column = file2_pb2.ColumnMetadata()
    column.encoding.direct.encoding = b"kind"
    for number in range(count):
        page = column.pages.add(length=length, priority=number)
        page.buffer_offsets.extend(start % 9000 for start, _ in buffers)
        page.buffer_sizes.extend(size for _, size in buffers)
        page.encoding.direct.encoding = b"same" if number % 3 else b"%d" % number
    data = column.SerializeToString()
    if count * sum(size for _, size in buffers) > SIZE:
        assert metadata.scan_column(data, SIZE) is None
        return
    found = metadata.scan_column(data, SIZE)
    assert found is not None
    assert found == parsed(data)


@pytest.mark.parametrize(
    "record",
    [
        [],
        [(1, direct(b"a")), (1, direct(b"b"))],
        [(1, [(1, [(1, 5)])])],
        [(1, direct(b"a")), (2, [(1, (1,)), (4, direct(b"x"))])],
        [(1, direct(b"a")), (2, [(1, (SIZE,)), (2, (1,)), (4, direct(b"x"))])],
        [(1, direct(b"a")), (2, [(1, (2**64 - 1,)), (2, (2,)), (4, direct(b"x"))])],
        [(1, direct(b"a")), (2, [(1, (0, 0)), (2, (SIZE, 1)), (4, direct(b"x"))])],
        [(1, direct(b"a")), (3, (5,)), (4, ())],
        [(1, direct(b"a")), (9, 5)],
        [(1, direct(b"a")), (2, [(3, 5)])],
        [(1, direct(b"a")), (2, [(3, 5), (3, 5), (4, direct(b"x"))])],
    ],
)
def test_anything_else_is_left_to_messages(record: Record) -> None:
    assert metadata.scan_column(encoded(record), SIZE) is None


def test_equal_encodings_are_one_object() -> None:
    page = [(3, 7), (4, direct(b"a layout"))]
    found = metadata.scan_column(encoded([(1, direct(b"kind")), (2, page), (2, page)]), SIZE)
    assert found is not None
    assert found[2][0][2] is found[2][1][2]


@given(st.binary(max_size=12), st.integers(0, 2**64 - 1), st.integers(0, 30), st.booleans())
def test_descriptors_are_what_messages_say(schema: bytes, rows: int, cut: int, twice: bool) -> None:
    data = encoded([(2, rows), (1, schema)] if cut % 2 else [(1, schema), (2, rows)])[: None if cut > 20 else cut]
    data += encoded([(1, schema)]) if twice else b""
    found = metadata.scan_descriptor(data)
    if cut > 20 and not twice:
        assert found == (schema, rows)
    if found is not None:
        message = file_pb2.FileDescriptor()
        message.length = found[1]
        assert data in (encoded([(1, found[0])]) + tail for tail in (b"", varint(16) + varint(found[1]))) or (
            encoded([(2, found[1]), (1, found[0])]) == data
        )


@given(st.lists(st.tuples(numbers, numbers), max_size=4), numbers, numbers, numbers)
def test_tables(entries: list[tuple[int, int]], low: int, high: int, total: int) -> None:
    table = b"".join(struct.pack("<QQ", *entry) for entry in entries)
    inside = all(low <= start and start + size <= high for start, size in entries)
    expected = inside and sum(size for _, size in entries) <= total and low <= high
    assert metadata.entries_fit(table, low, high, total) == expected
    assert not metadata.entries_fit(table + b"x", low, high, total)


@given(
    st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1)), max_size=5),
    st.integers(0, 2**64 - 1),
    st.binary(max_size=200),
    st.integers(0, 2**64 - 1),
)
def test_written_columns_are_those_of_protobuf(
    ranges: list[tuple[int, int]], length: int, content: bytes, priority: int
) -> None:
    encoding = file2_pb2.Encoding(direct=file2_pb2.DirectEncoding(encoding=content))
    column = file2_pb2.ColumnMetadata(encoding=encoding)
    column.pages.add(
        buffer_offsets=[position for position, _ in ranges],
        buffer_sizes=[size for _, size in ranges],
        length=length,
        encoding=encoding,
        priority=priority,
    )
    stored = encoding.SerializeToString()
    record = metadata.page_record(ranges, length, stored, priority)
    assert metadata.column_head(stored) + record == column.SerializeToString()


@pytest.mark.parametrize("wrong", [-1, 2**64])
def test_numbers_of_more_than_64_bits_are_not_written(wrong: int) -> None:
    for ranges, length, priority in (([(0, wrong)], 0, 0), ([], wrong, 0), ([], 0, wrong)):
        with pytest.raises(OverflowError):
            metadata.page_record(ranges, length, b"", priority)
