"""Tests of Bloom filters and their hashes against the library xxhash, plain Python, and filters of the reference."""

from __future__ import annotations

import numpy as np
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from lancecodec import CodecError
from lancecodec.search import bloom

SALT = (0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31)
VALUES = st.lists(st.binary(max_size=100), max_size=40)


def strings(values: list[bytes], wide: bool = False, skew: int = 0) -> tuple[memoryview, memoryview, bool]:
    """Return bytes and offsets at any address, with the bytes starting somewhere in the buffer."""
    ends = np.cumsum([skew, *map(len, values)]).astype(np.int64 if wide else np.int32).tobytes()
    data = b"\xff" * skew + b"".join(values)
    return memoryview(data), memoryview(b"." * skew + ends)[skew:], wide


def hashes(values: list[bytes]) -> np.ndarray:
    return np.array([xxhash.xxh64_intdigest(value) for value in values], np.uint64)


def model(filter: bytearray, found: list[int]) -> None:
    """Add hashes to a filter."""
    words = np.frombuffer(filter, "<u4").reshape(-1, 8).copy()
    for each in found:
        block = (each >> 32) * len(words) >> 32
        for place, salt in enumerate(SALT):
            words[block, place] |= np.uint32(1 << ((each & 0xFFFFFFFF) * salt % 2**32 >> 27))
    filter[:] = words.tobytes()


@given(st.integers(1, 70), st.binary(max_size=700), st.integers(0, 3))
def test_hashes_of_fixed_width(width: int, data: bytes, skew: int) -> None:
    values = [data[at : at + width] for at in range(0, len(data) // width * width, width)]
    out = np.empty(8 * len(values) + skew, np.uint8)
    bloom.hash_fixed(memoryview(b"." * skew + b"".join(values))[skew:], width, out[skew:])
    assert out[skew:].tobytes() == hashes(values).tobytes()


@given(VALUES, st.booleans(), st.integers(0, 5))
def test_hashes_of_variable_width(values: list[bytes], wide: bool, skew: int) -> None:
    out = np.empty(len(values), np.uint64)
    bloom.hash_variable(*strings(values, wide, skew), out)
    assert out.tolist() == hashes(values).tolist()


@given(st.lists(VALUES, max_size=5), st.integers(1, 5), VALUES)
def test_filters_have_what_was_inserted(zones: list[list[bytes]], blocks: int, others: list[bytes]) -> None:
    size = 32 * blocks
    found = [hashes(zone) for zone in zones]
    filters, expected = bytearray(size * len(zones)), []
    stops = np.cumsum([len(zone) for zone in zones], dtype=np.int64)
    bloom.insert(np.concatenate([hashes([b"x"])[:0], *found]), stops, size, filters)
    for each in found:
        expected.append(bytearray(size))
        model(expected[-1], each.tolist())
    assert filters == b"".join(expected)
    offsets = (size * np.arange(len(zones) + 1)).astype(np.int32)
    out = np.full(len(zones), 9, np.uint8)
    for number, zone in enumerate(zones):
        if zone:
            bloom.probe(filters, offsets, False, found[number][-1:], out)
            assert out[number] == 1
    wanted = hashes(others)
    bloom.probe(filters, offsets.astype(np.int64), True, wanted, out)
    for number, filter in enumerate(expected):
        changed = [bytearray(filter) for _ in others]
        for each, copy in zip(wanted.tolist(), changed, strict=True):
            model(copy, [each])
        assert out[number] == (filter in changed)


def test_bits_are_added() -> None:
    filters = bytearray(64)
    for value in (b"a", b"b", b"c"):
        bloom.insert(hashes([value, b"never"]), np.array([1, 1]), 32, filters)
    expected = bytearray(32)
    model(expected, hashes([b"a", b"b", b"c"]).tolist())
    assert filters == expected + bytes(32)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 2], "0000100800000402000400020000060000004004000000884000002020010000"),
        ([4], "1000000004000000000080000000000820000000010000000040000000010000"),
    ],
)
def test_filters_of_the_reference(values: list[int], expected: str) -> None:
    found, filter = np.empty(len(values), np.uint64), bytearray(32)
    bloom.hash_fixed(np.array(values, np.int64), 8, found)
    bloom.insert(found, np.array([len(values)]), 32, filter)
    assert filter.hex() == expected


def test_filters_of_several_sizes() -> None:
    filters = [bytearray(32), bytearray(96), bytearray(64)]
    for each in filters[1:]:
        model(each, hashes([b"yes"]).tolist())
    out = bytearray(3)
    bloom.probe(*strings([bytes(each) for each in filters], skew=3), hashes([b"no", b"yes"]), out)
    assert out == bytes([0, 1, 1])
    bloom.probe(*strings([bytes(each) for each in filters]), b"", out)
    assert out == bytes(3)


def test_damage_is_an_error() -> None:
    out, stops = np.empty(2, np.uint64), np.array([1, 2])
    for width, data in ((0, b"abcd"), (-1, b"abcd"), (3, b"abcd"), (1, b"abcd"), (4, b"abcd")):
        with pytest.raises(CodecError):
            bloom.hash_fixed(data, width, out)
    for ends in ([0, 3, 2], [-1, 0, 0], [0, 1, 5], [0, 1]):
        with pytest.raises(CodecError):
            bloom.hash_variable(b"abcd", np.array(ends, np.int32), False, out)
    with pytest.raises(CodecError):
        bloom.hash_variable(b"abcd", b"", False, bytearray())
    for size in (0, -32, 31, 48):
        with pytest.raises(CodecError):
            bloom.insert(out, stops, size, bytearray(max(2 * size, 0)))
    for bad in ([2, 1], [-1, 2], [1, 3], [1], [1, 2, 2]):
        with pytest.raises(CodecError):
            bloom.insert(out, np.array(bad), 32, bytearray(64))
    with pytest.raises(CodecError, match="whole number of hashes"):
        bloom.insert(b"abc", stops, 32, bytearray(64))
    for filters in ([b""], [bytes(33)], [bytes(32), bytes(32)]):
        with pytest.raises(CodecError):
            bloom.probe(*strings(filters), out, bytearray(1))
    with pytest.raises(CodecError):
        bloom.probe(bytes(32), np.array([0, 64], np.int32), False, out, bytearray(1))
