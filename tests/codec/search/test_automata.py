"""Tests of dictionaries and their checksum: bytes in the format, and the rules for their input."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancecodec import CodecError
from lancecodec.search.automata import crc32c, write_fst

GOLDEN = {
    "03000000000000000000000000000000001084cfcfc20201000300000000333231301104c7c2dad0d3001092cfc7c401020001071a776e68"
    "110306000000000000003900000000000000717f9b0c": [
        (b"hello", 0), (b"number0", 5), (b"number1", 2), (b"number2", 3), (b"number3", 4), (b"world", 1),
    ],
    "03000000000000000000000000000000000100621141020000016261110203000000000000001d0000000000000003a93149": [
        (b"a", 0), (b"ab", 1), (b"b", 2),
    ],
}  # fmt: skip


def _written(entries: list[tuple[bytes, int]]) -> bytes:
    offsets = np.cumsum([0, *(len(key) for key, _ in entries)], dtype=np.int64)
    return write_fst(b"".join(key for key, _ in entries), offsets, np.array([each for _, each in entries], np.uint64))


@pytest.mark.parametrize("stored", GOLDEN)
def test_bytes_of_the_format(stored: str) -> None:
    assert _written(GOLDEN[stored]).hex() == stored


@pytest.mark.parametrize("count", [0, 1, 32, 33, 63, 64, 255, 256])
def test_nodes_of_all_sizes(count: int) -> None:
    stored = _written([(bytes([each]), 0) for each in range(count)])
    number = 1 if count == 0 or count > 63 else 0
    assert len(stored) == 16 + 20 + 2 + number + 2 * count + 256 * (count > 32)


@given(st.dictionaries(st.binary(max_size=5), st.integers(0, 2**64 - 1), max_size=30))
def test_equal_suffixes_are_stored_once(words: dict[bytes, int]) -> None:
    entries = sorted(words.items())
    twice = sorted([*((b"a" + key, 0) for key, _ in entries), *((b"b" + key, 0) for key, _ in entries)])
    once = [(b"a" + key, 0) for key, _ in entries]
    assert len(_written(twice)) <= len(_written(once)) + 40 + 8 * len(entries)


@pytest.mark.parametrize("keys", [[b"b", b"a"], [b"a", b"a"], [b"ab", b"a"], [b"", b""]])
def test_keys_must_ascend(keys: list[bytes]) -> None:
    with pytest.raises(CodecError):
        _written([(key, 0) for key in keys])


@pytest.mark.parametrize("offsets", [[0, 5, 3], [-1, 0, 1], [0, 1, 99], [99, 99, 99]])
def test_offsets_must_ascend_within_the_keys(offsets: list[int]) -> None:
    with pytest.raises(CodecError):
        write_fst(b"abcdef", np.array(offsets, np.int64), np.zeros(2, np.uint64))


def test_sizes_must_match() -> None:
    with pytest.raises(CodecError, match="not those of the same keys"):
        write_fst(b"ab", np.array([0, 1], np.int64), np.zeros(2, np.uint64))


def _slow(data: bytes) -> int:
    register = 0xFFFFFFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (0x82F63B78 if register & 1 else 0)
    return register ^ 0xFFFFFFFF


@given(st.binary(max_size=70), st.integers(0, 7))
def test_checksum(data: bytes, skew: int) -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(memoryview(bytes(skew) + data)[skew:]) == _slow(data)
