"""Tests of predicates over buffers, against Arrow, NumPy and plain Python."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancecodec import CodecError, predicates

LENGTHS = [0, 1, 7, 8, 9, 63, 64, 65, 200]
ORDERS: dict[int, Callable[[int, int], bool]] = {
    predicates.EQUAL: lambda a, b: a == b,
    predicates.LESS: lambda a, b: a < b,
    predicates.LESS_EQUAL: lambda a, b: a <= b,
}
PLACES: dict[int, Callable[[bytes, bytes], bool]] = {
    predicates.PREFIX: bytes.startswith,
    predicates.SUFFIX: bytes.endswith,
    predicates.WHOLE: bytes.__eq__,
}


def bits(out: bytearray, count: int) -> list[bool]:
    return np.unpackbits(np.frombuffer(out, np.uint8), count=count, bitorder="little").astype(bool).tolist()


def strings(values: list[bytes], wide: bool = False, skew: int = 0) -> tuple[memoryview, memoryview, bool]:
    """Return bytes and offsets at any address, with the bytes starting somewhere in the buffer."""
    ends = np.cumsum([skew, *map(len, values)]).astype(np.int64 if wide else np.int32).tobytes()
    data = b"\xff" * skew + b"".join(values)
    return memoryview(data), memoryview(b"." * skew + ends)[skew:], wide


def room(count: int) -> bytearray:
    return bytearray(b"\xaa" * ((count + 7) // 8))


ALPHABET = st.sampled_from([b"a", b"b", b"ab", b"", b"\x00", b"abcabcabd", b"x" * 70])
VALUE = st.lists(ALPHABET, max_size=12).map(b"".join)
TEXT = st.lists(ALPHABET, min_size=1, max_size=4).map(b"".join).filter(bool)


@given(st.lists(VALUE, max_size=70), TEXT, st.booleans(), st.integers(0, 5))
def test_texts_in_strings(values: list[bytes], text: bytes, wide: bool, skew: int) -> None:
    out = room(len(values))
    predicates.contains(*strings(values, wide, skew), text, out)
    assert bits(out, len(values)) == [text in value for value in values]
    for place, test in PLACES.items():
        predicates.compare_text(*strings(values, wide, skew), text, place, out)
        assert bits(out, len(values)) == [test(value, text) for value in values]


@pytest.mark.parametrize("size", [1, 2, 3, 8, 9, 16, 17, 63, 64, 65, 300])
def test_a_text_at_every_place_of_a_block(size: int) -> None:
    text = bytes(range(1, 1 + min(size, 250))) + b"\x02" * (size - min(size, 250))
    for at in range(130):
        values = [b"\x01" * at + text, b"\x01" * at + text[:-1], b"\x01" * 200]
        out = room(3)
        predicates.contains(*strings(values), text, out)
        assert bits(out, 3) == [text in value for value in values]


def test_no_match_across_strings() -> None:
    out = room(3)
    predicates.contains(*strings([b"ab", b"c", b"abc"]), b"abc", out)
    assert bits(out, 3) == [False, False, True]


@pytest.mark.parametrize("call", ["contains", "prefix", "member"])
@pytest.mark.parametrize(
    "offsets", [[-1, 2, 4], [0, 5, 4], [0, 2, 1 << 20], [3, 2, 4], [0, 2**31 - 1, 4], [0, -(2**31), 4]]
)
def test_offsets_are_checked(call: str, offsets: list[int]) -> None:
    data, ends, out = b"abcdabcd", np.array(offsets, np.int32), room(2)
    members = predicates.StringSet(*strings([b"ab", b"x"]))
    calls: dict[str, Callable[[], object]] = {
        "contains": lambda: predicates.contains(data, ends, False, b"abcd", out),
        "prefix": lambda: predicates.compare_text(data, ends, False, b"ab", predicates.PREFIX, out),
        "member": lambda: members.contains(data, ends, False, out),
    }
    with pytest.raises(CodecError, match="offsets"):
        calls[call]()


@pytest.mark.parametrize("width", [16, 32])
@pytest.mark.parametrize("count", LENGTHS)
def test_decimals(width: int, count: int) -> None:
    rng = np.random.default_rng(count)
    edges = [0, 1, -1, 2**63, -(2**63), 2**64, -(2**64), 2**127 - 1, -(2**127), 10**20, 2**64 - 1]
    values = [edges[number] for number in rng.integers(0, len(edges), count)]
    data = memoryview(b"." + b"".join(value.to_bytes(width, "little", signed=True) for value in values))[1:]
    for bound in edges:
        limit = bound.to_bytes(width, "little", signed=True)
        for order, compare in ORDERS.items():
            for negated in (False, True):
                out = room(count)
                predicates.compare_decimals(data, limit, order, negated, out)
                assert bits(out, count) == [compare(value, bound) != negated for value in values]


@pytest.mark.parametrize("width", [1, 2, 4, 8])
@pytest.mark.parametrize("count", LENGTHS)
def test_marked_entries(width: int, count: int) -> None:
    rng = np.random.default_rng(width)
    marks = rng.integers(0, 2, 100).astype(np.uint8)
    codes = rng.integers(0, 120, count).astype(f"<u{width}")  # some have no entry
    if count and width > 1:
        codes[0] = np.iinfo(codes.dtype).max
    out = room(count)
    predicates.marked(memoryview(b"." + codes.tobytes())[1:], width, marks, out)
    assert bits(out, count) == [code < 100 and bool(marks[code]) for code in codes.tolist()]
    predicates.marked(codes, width, b"", out)
    assert not any(bits(out, count))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64])
@pytest.mark.parametrize("spread", [3, 1000, 2**62])
@pytest.mark.parametrize("count", [0, 1, 5, 1000])
def test_integer_sets(dtype: type[np.integer], spread: int, count: int) -> None:
    info = np.iinfo(dtype)
    low, high = max(int(info.min), -spread), min(int(info.max), spread)
    rng = np.random.default_rng(count)
    members = rng.integers(low, high, count, dtype, endpoint=True)
    values = np.concatenate(
        [members, rng.integers(low, high, 777, dtype, endpoint=True), np.array([info.min, info.max, 0], dtype)]
    )
    rng.shuffle(values)
    known = predicates.IntegerSet(members, members.itemsize)
    out = room(len(values))
    known.contains(memoryview(b"..." + values.tobytes())[3:], out)
    assert bits(out, len(values)) == np.isin(values, members).tolist()


def test_a_sparse_set_with_all_small_numbers() -> None:
    members = np.array([*range(1000), 2**40], np.int64)
    out = room(4)
    predicates.IntegerSet(members, 8).contains(np.array([0, 1000, 2**40, -1], np.int64), out)
    assert bits(out, 4) == [True, False, True, False]


def test_integers_made_to_collide() -> None:
    """Of a multiplier that is known, these multiples of its inverse have products that differ in low bits alone."""
    inverse = pow(0x9E3779B97F4A7C15, -1, 1 << 64)
    members = np.arange(400_000, dtype=np.uint64) * np.uint64(inverse)
    out = room(len(members))
    predicates.IntegerSet(members, 8).contains(members, out)  # without an end if all are in one slot
    assert all(bits(out, len(members)))


@given(st.lists(VALUE, max_size=40), st.lists(VALUE, max_size=60), st.booleans(), st.booleans(), st.integers(0, 3))
def test_string_sets(members: list[bytes], others: list[bytes], wide: bool, own_wide: bool, skew: int) -> None:
    known = predicates.StringSet(*strings(members, own_wide, skew))
    values = [*others, *members]
    out = room(len(values))
    known.contains(*strings(values, wide, skew), out)
    assert bits(out, len(values)) == [value in members for value in values]


def test_strings_of_every_length_near_the_members() -> None:
    members = [bytes([65 + size % 26]) * size for size in range(0, 600, 7)]
    values = [bytes([65 + size % 26]) * size for size in range(600)] + [value[:-1] + b"!" for value in members if value]
    out = room(len(values))
    predicates.StringSet(*strings(members)).contains(*strings(values), out)
    assert bits(out, len(values)) == [value in set(members) for value in values]


def test_members_are_copied() -> None:
    data, numbers = bytearray(b"abcd"), np.array([1, 2**50], np.int64)
    texts = predicates.StringSet(data, np.array([0, 4], np.int32), False)
    integers = predicates.IntegerSet(numbers, 8)
    data[:], numbers[:] = b"xxxx", 0
    out = room(1)
    texts.contains(b"abcd", np.array([0, 4], np.int32), False, out)
    assert bits(out, 1) == [True]
    integers.contains(np.array([1]), out)
    assert bits(out, 1) == [True]


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99, 1.0])
@pytest.mark.parametrize("count", [*LENGTHS, 1000])
def test_positions(count: int, share: float) -> None:
    kept = np.random.default_rng(count).random(count) < share
    packed = memoryview(b"." + np.packbits(kept, bitorder="little").tobytes() + b"\xff")[1:]
    out = np.full(int(kept.sum()) + 3, -7)
    assert predicates.positions(packed, count, out) == kept.sum()
    assert out.tolist() == [*np.flatnonzero(kept).tolist(), -7, -7, -7]
    if kept.any():
        with pytest.raises(CodecError, match="more than"):
            predicates.positions(packed, count, out[: int(kept.sum()) - 1])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: predicates.positions(b"\0", 9, np.empty(9, np.int64)), "does not hold"),
        (lambda: predicates.positions(b"\0", -1, np.empty(9, np.int64)), "does not hold"),
        (lambda: predicates.contains(b"", b"\0" * 8, False, b"", room(1)), "is empty"),
        (lambda: predicates.contains(b"", b"", False, b"a", room(1)), "whole number of offsets"),
        (lambda: predicates.contains(b"", b"\0" * 12, True, b"a", room(1)), "whole number of offsets"),
        (lambda: predicates.contains(b"", b"\0" * 44, False, b"a", room(1)), "too few"),
        (lambda: predicates.compare_text(b"", b"\0" * 8, False, b"", 0, room(1)), "is empty"),
        (lambda: predicates.compare_text(b"", b"\0" * 8, False, b"a", 7, room(1)), "place"),
        (lambda: predicates.compare_decimals(b"\0" * 16, b"\0" * 8, 0, False, room(1)), "not supported"),
        (lambda: predicates.compare_decimals(b"\0" * 17, b"\0" * 16, 0, False, room(1)), "whole number"),
        (lambda: predicates.compare_decimals(b"\0" * 16, b"\0" * 16, 3, False, room(1)), "order"),
        (lambda: predicates.compare_decimals(b"\0" * 16, b"\0" * 16, 0, False, b""), "read|writable"),
        (lambda: predicates.marked(b"\0" * 9, 1, b"", room(8)), "too few"),
        (lambda: predicates.marked(b"\0" * 9, 2, b"", room(9)), "whole number"),
        (lambda: predicates.marked(b"\0" * 9, 3, b"", room(9)), "not supported"),
        (lambda: predicates.IntegerSet(b"\0" * 9, 8), "whole number"),
        (lambda: predicates.IntegerSet(b"\0" * 8, 8).contains(b"\0" * 9, room(9)), "whole number"),
        (lambda: predicates.StringSet(b"ab", np.array([0, 3], np.int32), False), "offsets"),
    ],
)
def test_what_does_not_fit_is_refused(call: Callable[[], object], words: str) -> None:
    with pytest.raises((CodecError, BufferError), match=words):
        call()
