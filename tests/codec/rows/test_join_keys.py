"""Tests of join keys in hash tables, against Python dictionaries of tuples."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancecodec import CodecError
from lancecodec.join_keys import BITS, NOTHING, TEXTS, KeyParts, KeyTable, measure_groups, pack

WIDTHS = [1, 2, 3, 4, 7, 8, 9, 12, 16, 17, 32, 40]
Values = list[bytes | None]


def bits(values: list[bool], skip: int) -> bytes:
    return np.packbits(np.array([True] * skip + values, bool), bitorder="little").tobytes()


def column(values: Values, width: int, *, null_is_value: bool = False, skew: int = 0, wide: bool = False) -> Any:
    """Return values as a column that starts `skew` values into its buffers, at any address, with noise under nulls."""
    validity = bits([value is not None for value in values], 3 * skew) if None in values else None
    if width == BITS:
        data, first = bits([value == b"\1" or value is None for value in values], 5 * skew), 5 * skew
        return width, null_is_value, validity, 3 * skew, data, first, None, False
    noise = b"\xf7" * (3 if width == TEXTS else width)
    filled = [noise if value is None else value for value in values]
    if width == TEXTS:
        ends = np.cumsum([skew, *map(len, filled)]).astype(np.int64 if wide else np.int32)
        offsets = memoryview(b"." * skew + bytes(ends.itemsize * skew) + ends.tobytes())[skew:]
        return width, null_is_value, validity, 3 * skew, b"\xff" * skew + b"".join(filled), skew, offsets, wide
    data = memoryview(b"." * skew + b"\xff" * (width * skew) + b"".join(filled))[skew:]
    return width, null_is_value, validity, 3 * skew, data, skew, None, False


def add(table: KeyTable, columns: list[Any], rows: int) -> list[int]:
    out = np.full(rows, -9, np.int64)
    table.add(columns, rows, out)
    return out.tolist()


def find(table: KeyTable, columns: list[Any], rows: int) -> list[int]:
    places, groups, out = np.empty(rows, np.int64), np.empty(rows, np.int64), np.full(rows, -1, np.int64)
    found = table.find(columns, rows, places, groups)
    assert (np.diff(places[:found]) > 0).all()
    out[places[:found]] = groups[:found]
    return out.tolist()


def expected(numbers: dict[tuple, int], rows: list[tuple], null_is_value: list[bool], *, new: bool) -> list[int]:
    found = []
    for row in rows:
        if any(value is None and not counts for value, counts in zip(row, null_is_value, strict=True)):
            found.append(-1)
        else:
            found.append(numbers.setdefault(row, len(numbers)) if new else numbers.get(row, -1))
    return found


@st.composite
def keys(draw: st.DrawFn) -> tuple[list[int], list[bool], list[list[tuple]]]:
    """Draw the widths of columns, whether null counts as a value, and rows in several batches."""
    widths = draw(st.lists(st.sampled_from([BITS, TEXTS, NOTHING, *WIDTHS]), min_size=1, max_size=4))
    counts = draw(st.lists(st.booleans(), min_size=len(widths), max_size=len(widths)))
    columns = [st.none() | st.sampled_from(some(width)) for width in widths]
    batch = st.lists(st.tuples(*columns), max_size=60)
    return widths, counts, draw(st.lists(batch, min_size=2, max_size=4))


def some(width: int) -> list[bytes]:
    """Return a few nearly equal values of a width."""
    if width == BITS:
        return [b"\0", b"\1"]
    if width == TEXTS:
        return [b"", b"\0", b"a", b"ab", b"a" * 16, b"a" * 17, b"a" * 16 + b"b", b"a" * 15 + b"b" + b"a" * 25]
    zeros = bytes(width)
    return [zeros, b"\1" + zeros[1:], zeros[1:] + b"\1", b"\xff" * width][: 4 if width else 1]


@given(keys(), st.integers(0, 3), st.booleans())
def test_rows_are_numbered_by_value(
    case: tuple[list[int], list[bool], list[list[tuple]]], skew: int, wide: bool
) -> None:
    widths, counts, batches = case
    table, numbers = KeyTable(), dict[tuple, int]()

    def described(rows: list[tuple]) -> list[Any]:
        return [
            column([row[k] for row in rows], width, null_is_value=counts[k], skew=skew, wide=wide)
            for k, width in enumerate(widths)
        ]

    for rows in batches[:-1]:
        assert add(table, described(rows), len(rows)) == expected(numbers, rows, counts, new=True)
        assert len(table) == len(numbers)
    rows = [*batches[-1], *batches[0]]
    assert find(table, described(rows), len(rows)) == expected(numbers, rows, counts, new=False)


@pytest.mark.parametrize("width", [4, 8, 16, TEXTS])
@pytest.mark.parametrize("step", [1, 1 << 10, 1 << 20])
def test_many_keys(width: int, step: int) -> None:
    """Hash tables grow, and spread keys in a regular order too."""
    count = 100_000
    numbers = np.arange(count, dtype=np.uint64) * step
    size = 8 if width == TEXTS else width
    values = np.zeros((count, size), np.uint8)
    values[:, : min(size, 8)] = numbers.view(np.uint8).reshape(count, 8)[:, : min(size, 8)]
    offsets = np.arange(count + 1, dtype=np.int32) * size
    described = [(width, False, None, 0, values, 0, offsets if width == TEXTS else None, False)]
    distinct, first = np.unique(values, axis=0, return_index=True)
    table, out = KeyTable(), np.empty(count, np.int64)
    table.add(described, count, out)
    assert len(table) == len(distinct)
    if len(distinct) == count:
        assert (out == np.arange(count)).all()
    assert (np.flatnonzero(np.diff(np.maximum.accumulate(out), prepend=-1)) == np.sort(first)).all()
    assert find(table, described, count) == out.tolist()


@pytest.mark.parametrize("width", [4, 8, 12, TEXTS])
def test_few_of_many_rows_have_keys_of_a_table(width: int) -> None:
    count = 100_000
    numbers = np.random.default_rng(4).permutation(count).astype(np.uint64)
    size = 8 if width == TEXTS else width
    values = np.zeros((count, size), np.uint8)
    values[:, : min(size, 8)] = numbers.view(np.uint8).reshape(count, 8)[:, : min(size, 8)]
    offsets = np.arange(count + 1, dtype=np.int32) * size
    described = [(width, False, None, 0, values, 0, offsets if width == TEXTS else None, False)]
    few = values[numbers < 300]
    table, out = KeyTable(), np.empty(300, np.int64)
    table.add([(width, False, None, 0, few, 0, offsets if width == TEXTS else None, False)], 300, out)
    places, groups = np.empty(count, np.int64), np.empty(count, np.int64)
    assert table.find(described, count, places, groups) == 300
    assert (places[:300] == np.flatnonzero(numbers < 300)).all()
    assert (groups[:300] == out).all()


def test_long_strings_and_few_rows_at_once() -> None:
    """Long strings are compared correctly: packed blocks hold fewer rows if the rows are large."""
    values: Values = [bytes([65 + number % 3]) * (300_000 + number // 40) for number in range(60)]
    table, numbers = KeyTable(), dict[tuple, int]()
    rows = [(value, value[:1]) for value in values if value]
    described = [column([row[0] for row in rows], TEXTS), column([row[1] for row in rows], 1)]
    assert add(table, described, len(rows)) == expected(numbers, rows, [False, False], new=True)
    assert find(table, described, len(rows)) == expected(numbers, rows, [False, False], new=False)


def test_strings_are_not_mixed_up_across_columns() -> None:
    table = KeyTable()
    rows = [(b"a", b"bc"), (b"ab", b"c"), (b"", b"abc"), (b"abc", b"")]
    described = [column([row[k] for row in rows], TEXTS) for k in range(2)]
    assert add(table, described, 4) == [0, 1, 2, 3]


def test_threads_look_up_at_once() -> None:
    count = 200_000
    values = np.random.default_rng(0).permutation(count)
    table, out = KeyTable(), np.empty(count, np.int64)
    table.add([(8, False, None, 0, values, 0, None, False)], count, out)
    results = [np.empty(count, np.int64) for _ in range(4)]

    def work(result: np.ndarray) -> None:
        for _ in range(5):
            table.find([(8, False, None, 0, values, 0, None, False)], count, np.empty(count, np.int64), result)

    threads = [threading.Thread(target=work, args=(result,)) for result in results]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((result == out).all() for result in results)


# -- what is refused ---------------------------------------------------------------------------------------------

WORDS = bytes(64)


@pytest.mark.parametrize(
    "described",
    [
        (-3, False, None, 0, WORDS, 0, None, False),
        (2**31, False, None, 0, WORDS, 0, None, False),
        (8, False, None, 0, WORDS[:63], 0, None, False),
        (8, False, None, 0, WORDS, 1, None, False),
        (8, False, None, 0, WORDS, -1, None, False),
        (8, False, None, 0, WORDS, 2**63 - 1, None, False),
        (8, False, b"", 0, WORDS, 0, None, False),
        (8, False, b"\xff", 1, WORDS, 0, None, False),
        (8, False, b"\xff", -1, WORDS, 0, None, False),
        (BITS, False, None, 0, b"\0", 1, None, False),
        (TEXTS, False, None, 0, b"abc", 0, np.zeros(8, np.int32), False),
        (TEXTS, False, None, 0, b"abc", 0, np.zeros(9, np.int32), True),
        (TEXTS, False, None, 0, b"abc", 0, np.arange(9, dtype=np.int32), False),
        (TEXTS, False, None, 0, b"abc", 0, np.array([0, 2, 1, *[3] * 6], np.int32), False),
        (TEXTS, False, None, 0, b"abc", 0, np.array([-1, *[3] * 8], np.int64), True),
    ],
)
@pytest.mark.parametrize("several", [False, True])
def test_buffers_are_checked(described: Any, several: bool) -> None:
    columns = [described, (8, True, None, 0, WORDS, 0, None, False)] if several else [described]
    out = np.empty(8, np.int64)
    with pytest.raises(CodecError):
        KeyTable().add(columns, 8, out)
    with pytest.raises(CodecError):
        KeyParts(4).numbers(columns, 8, out)
    with pytest.raises(CodecError):
        pack(columns, 8, np.empty(9, np.int64))


def test_tables_are_used_as_they_are_made() -> None:
    table, out = KeyTable(), np.empty(8, np.int64)
    words = (8, False, None, 0, WORDS, 0, None, False)
    with pytest.raises(CodecError, match="no keys"):
        table.find([words], 8, out.copy(), out)
    with pytest.raises(CodecError, match="columns"):
        table.add([], 8, out)
    with pytest.raises(CodecError, match="rows"):
        table.add([words], -1, out)
    with pytest.raises(CodecError, match="too small"):
        table.add([words], 8, out[:7])
    table.add([words], 8, out)
    with pytest.raises(CodecError, match="columns differ"):
        table.find([(4, *words[1:])], 8, out.copy(), out)
    with pytest.raises(CodecError, match="columns differ"):
        table.find([(8, True, *words[2:])], 8, out.copy(), out)
    table.find([words], 8, out.copy(), out)
    with pytest.raises(CodecError, match="keys cannot be added"):
        table.add([words], 8, out)


def test_a_table_that_failed_is_of_no_use() -> None:
    table, out = KeyTable(), np.empty(2, np.int64)
    with pytest.raises(CodecError, match="offsets"):
        table.add([(TEXTS, False, None, 0, b"abc", 0, np.array([0, 9, 9], np.int32), False)], 2, out)
    with pytest.raises(CodecError, match="failed"):
        table.add([column([b"a", b"b"], TEXTS)], 2, out)


# -- parts, packed rows, groups ----------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [4, 8, 20, TEXTS])
@pytest.mark.parametrize("parts", [1, 2, 7, 256])
def test_parts(width: int, parts: int) -> None:
    count = 20_000
    numbers = np.random.default_rng(parts).integers(0, 5000, count)
    values: Values = [None if n % 11 == 0 else int(n).to_bytes(4 if width == 4 else 20, "little") for n in numbers]
    if width == 8:
        values = [value and value[:8] for value in values]
    out = np.empty(count, np.int64)
    KeyParts(parts).numbers([column(values, width)], count, out)
    null = np.array([value is None for value in values])
    assert (out[null] == -1).all()
    assert ((out[~null] >= 0) & (out[~null] < parts)).all()
    found = {value: {part} for value, part in zip(values, out.tolist(), strict=True)}
    for value, part in zip(values, out.tolist(), strict=True):
        found[value].add(part)
    assert all(len(each) == 1 for each in found.values())
    sizes = np.bincount(out[~null], minlength=parts)
    assert sizes.max() < 3 * count / parts + 100


def test_parts_are_limited() -> None:
    for parts in (0, -1, 2**20 + 1):
        with pytest.raises(CodecError):
            KeyParts(parts)


def test_packed_rows() -> None:
    ends = np.empty(4, np.int64)
    columns = [column([b"ab", None, b""], TEXTS, null_is_value=True), column([b"\1", b"\2", b"\3"], 1)]
    data = pack(columns, 3, ends)
    assert [data[start:stop] for start, stop in itertools.pairwise(ends)] == [
        b"\1" + (2).to_bytes(8, "little") + b"ab\1",
        b"\0" + bytes(8) + b"\2",
        b"\1" + bytes(8) + b"\3",
    ]
    assert pack([column([], 8)], 0, np.empty(1, np.int64)) == b""
    with pytest.raises(CodecError, match="ends"):
        pack(columns, 3, np.empty(3, np.int64))


def test_groups() -> None:
    first, sizes = np.empty(3, np.int64), np.empty(3, np.int64)
    measure_groups(np.array([0, -1, 1, 0, 2, 0]), first, sizes)
    assert (first.tolist(), sizes.tolist()) == ([0, 2, 4], [3, 1, 1])
    for wrong in ([0, 2, 1], [0, 1], [0, 1, 2, 3], [-2, 0, 1, 2], [1, 0, 2]):
        with pytest.raises(CodecError):
            measure_groups(np.array(wrong), first, sizes)
