"""Tests of dictionary building against a Python dict."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancecodec import CodecError, dictionary, gather

counts = st.one_of(st.integers(0, 40), st.sampled_from([511, 512, 513, 1023, 1024, 1025]), st.integers(0, 4000))
widths = st.sampled_from([1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33, 48, 100, 256])
code_widths = st.sampled_from([1, 2, 4, 8])
seeds = st.integers(0, 2**32 - 1)


def ragged(data: bytes, skew: int) -> memoryview:
    return memoryview(b"." * skew + data)[skew:]


def packed(valid: np.ndarray, bit: int) -> bytes:
    return np.packbits(np.concatenate([np.ones(bit, bool), valid]), bitorder="little").tobytes()


def model(values: list[bytes], valid: np.ndarray) -> tuple[list[int], list[int]]:
    """Return the codes, and the position of the first value of each entry."""
    first: dict[bytes, int] = {}
    positions, codes = [], []
    for i, value in enumerate(values):
        if not valid[i]:
            codes.append(0)
            continue
        if value not in first:
            first[value] = len(first)
            positions.append(i)
        codes.append(first[value])
    return codes, positions


def few(rng: np.random.Generator, count: int) -> np.ndarray:
    """Return random picks among a random number of distinct values, sometimes sorted."""
    distinct = int(rng.choice([1, 2, 10, 200, 256, 257, 3000]))
    picks = rng.integers(0, distinct, count)
    return np.sort(picks) if rng.random() < 0.3 else picks


def built(
    result: tuple[int, int] | None, codes: bytearray, code_width: int, positions: np.ndarray
) -> tuple[list[int], list[int]] | None:
    if result is None:
        return None
    return np.frombuffer(codes, f"<u{code_width}").tolist(), positions[: result[0]].tolist()


@given(counts, widths, code_widths, st.integers(0, 9), st.booleans(), seeds)
def test_build_fixed(count: int, width: int, code_width: int, skew: int, nulls: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    picks = few(rng, count)
    pool = rng.integers(0, rng.choice([2, 256]), (3000, width), np.uint8)
    values = [pool[i].tobytes() for i in picks]
    valid = rng.random(count) < (rng.choice([0.0, 0.02, 0.7]) if nulls else 1)
    codes, positions = bytearray(count * code_width), np.full(5000, -1)
    validity = packed(valid, skew) if nulls else None
    result = dictionary.build_fixed(ragged(b"".join(values), skew), width, codes, code_width, positions, validity, skew)
    expected = model(values, valid)
    if code_width == 1 and len(expected[1]) > 256:
        assert result is None
    else:
        assert built(result, codes, code_width, positions) == expected
        assert result == (len(expected[1]), width * len(expected[1]))
        assert (positions[len(expected[1]) :] == -1).all()


@given(counts, code_widths, st.booleans(), st.integers(0, 9), st.booleans(), seeds)
def test_build_variable(count: int, code_width: int, wide: bool, skew: int, nulls: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    picks = few(rng, count)
    longest = rng.choice([1, 8, 9, 16, 17, 40, 70])
    letters = rng.choice([1, 2, 256])
    pool = [rng.integers(0, letters, rng.integers(0, longest + 1), np.uint8).tobytes() for _ in range(3000)]
    values = [pool[i] for i in picks]
    valid = rng.random(count) < (rng.choice([0.0, 0.02, 0.7]) if nulls else 1)
    before = int(rng.integers(0, 3))
    offsets = (np.cumsum([0, *map(len, values)]) + before).astype(np.int64 if wide else np.int32)
    codes, positions = bytearray(count * code_width), np.full(5000, -1)
    result = dictionary.build_variable(
        ragged(b"?" * before + b"".join(values), skew),
        ragged(offsets.tobytes(), skew),
        wide,
        codes,
        code_width,
        positions,
        packed(valid, skew) if nulls else None,
        skew,
    )
    expected = model(values, valid)
    if code_width == 1 and len(expected[1]) > 256:
        assert result is None
    else:
        assert built(result, codes, code_width, positions) == expected
        assert result == (len(expected[1]), sum(len(values[i]) for i in expected[1]))


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16, 40])
def test_limits(width: int) -> None:
    values = np.zeros((1000, width), np.uint8)
    values[:, 0] = np.arange(1000) // 10
    codes = bytearray(4000)
    assert dictionary.build_fixed(values, width, codes, 4, np.empty(99, np.int64)) is None
    assert dictionary.build_fixed(values, width, codes, 4, np.empty(100, np.int64)) == (100, 100 * width)
    positions = np.empty(100, np.int64)
    assert dictionary.build_fixed(values, width, codes, 4, positions, max_bytes=100 * width) == (100, 100 * width)
    assert dictionary.build_fixed(values, width, codes, 4, positions, max_bytes=100 * width - 1) is None
    assert dictionary.build_fixed(values, width, codes, 4, np.empty(0, np.int64)) is None
    offsets = np.arange(1001, dtype=np.int32) * width
    assert dictionary.build_variable(values, offsets, False, codes, 4, positions) == (100, 100 * width)
    assert dictionary.build_variable(values, offsets, False, codes, 4, positions, max_bytes=100 * width - 1) is None
    assert dictionary.build_variable(values, offsets, False, codes, 4, positions[:99]) is None


@pytest.mark.parametrize("width", [4, 8, 16, 24])
def test_growth_to_many_entries(width: int) -> None:
    rng = np.random.default_rng(width)
    count = 300_000
    picks = rng.permutation(np.concatenate([np.arange(200_000), rng.integers(0, 200_000, count - 200_000)]))
    values = np.zeros((count, width), np.uint8)
    values[:, -4:] = picks.astype("<u4").view(np.uint8).reshape(-1, 4)
    codes, positions = np.empty(count, np.uint32), np.empty(count, np.int64)
    assert dictionary.build_fixed(values, width, codes, 4, positions) == (200_000, 200_000 * width)
    _, first, inverse = np.unique(picks, return_index=True, return_inverse=True)
    assert positions[:200_000].tolist() == np.sort(first).tolist()
    assert (codes == np.argsort(np.argsort(first))[inverse]).all()


@pytest.mark.parametrize("stride", [1, 2**16, 2**32, 2**40, 2**52])
def test_regular_values_are_no_trouble(stride: int) -> None:
    """Values that differ in few bits are handled in linear time; a weak hash would have collisions."""
    count = 100_000 if stride < 2**52 else 4096
    values = np.arange(count, dtype=np.uint64) * np.uint64(stride)
    codes, positions = np.empty(count, np.uint32), np.empty(count, np.int64)
    assert dictionary.build_fixed(values, 8, codes, 4, positions) == (count, 8 * count)
    assert (codes == np.arange(count)).all()


def test_entries_are_gathered_by_position() -> None:
    values = np.random.default_rng(1).integers(0, 50, 10_000)
    codes, positions = np.empty(10_000, np.uint16), np.empty(100, np.int64)
    result = dictionary.build_fixed(values, 8, codes, 2, positions)
    assert result is not None
    entries, back = np.empty(result[0], np.int64), np.empty(10_000, np.int64)
    gather.fixed(values, 8, positions[: result[0]], 8, entries)
    gather.fixed(entries, 8, codes, 2, back)
    assert (back == values).all()


def test_values_are_compared_as_bytes() -> None:
    values = np.array([0.0, -0.0, np.nan, 0.0, np.nan])
    codes = np.empty(5, np.uint8)
    assert dictionary.build_fixed(values, 8, codes, 1, np.empty(9, np.int64)) == (3, 24)
    assert codes.tolist() == [0, 1, 2, 0, 2]
    data, offsets = b"\0\0\0a\0a", np.array([0, 0, 1, 3, 4, 6], np.int32)
    assert dictionary.build_variable(data, offsets, False, codes, 1, np.empty(9, np.int64)) == (5, 6)


@given(st.integers(0, 3000), st.integers(1, 9), st.integers(1, 40), st.booleans(), seeds)
def test_samples(count: int, blocks: int, size: int, nulls: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.integers(0, rng.choice([1, 5, 10**9]), count)
    valid = rng.random(count) < (0.6 if nulls else 1)
    validity = packed(valid, 3) if nulls else None
    looked, distinct = dictionary.sample_fixed(values, 8, validity, 3, blocks, size)
    offsets = np.arange(count + 1, dtype=np.int64) * 8
    assert dictionary.sample_variable(values, offsets, True, validity, 3, blocks, size) == (looked, distinct)
    known = np.unique(values[valid])
    assert (0 if not valid.any() else 1) <= distinct <= min(looked, len(known))
    if count <= blocks * size:
        assert (looked, distinct) == (valid.sum(), len(known))
    elif not nulls:
        assert looked == blocks * size


def test_a_sample_tells_repeated_from_unique_values() -> None:
    unique, repeated = np.arange(100_000), np.arange(100_000) % 50
    assert dictionary.sample_fixed(unique, 8) == (4096, 4096)
    assert dictionary.sample_fixed(repeated, 8) == (4096, 50)
    assert dictionary.sample_fixed(repeated.astype(np.uint16), 2) == (4096, 50)


def test_a_sample_that_is_all_values_counts_the_first_valid_one_once() -> None:
    assert dictionary.sample_fixed(np.arange(12), 8, b"\x40\x00", 0, 4, 3) == (1, 1)


@pytest.mark.parametrize("width", [-1, 0, 257, 2**62, -(2**63)])
def test_widths(width: int) -> None:
    with pytest.raises(CodecError, match="not supported"):
        dictionary.build_fixed(bytes(8), width, bytearray(64), 4, np.empty(8, np.int64))
    with pytest.raises(CodecError, match="not supported"):
        dictionary.sample_fixed(bytes(8), width)


def test_buffers_that_are_too_small() -> None:
    positions = np.empty(8, np.int64)
    with pytest.raises(CodecError, match="whole number"):
        dictionary.build_fixed(bytes(9), 8, bytearray(64), 4, positions)
    with pytest.raises(CodecError, match="whole number"):
        dictionary.build_variable(bytes(9), bytes(9), False, bytearray(64), 4, positions)
    with pytest.raises(CodecError, match="too small"):
        dictionary.build_fixed(bytes(16), 8, bytearray(7), 4, positions)
    with pytest.raises(CodecError, match="too small"):
        dictionary.build_variable(bytes(9), bytes(12), False, bytearray(7), 4, positions)
    with pytest.raises(CodecError, match="codes of 3 bytes"):
        dictionary.build_fixed(bytes(16), 8, bytearray(64), 3, positions)
    with pytest.raises(CodecError, match="does not hold"):
        dictionary.build_fixed(bytes(16), 8, bytearray(64), 4, positions, b"\xff", 7)
    odd = np.frombuffer(bytearray(41), np.int64, offset=1, count=5)
    with pytest.raises(CodecError, match="aligned"):
        dictionary.build_fixed(bytes(16), 8, bytearray(64), 4, odd)
    with pytest.raises(CodecError, match="must not be negative"):
        dictionary.build_fixed(bytes(16), 8, bytearray(64), 4, positions, max_bytes=-1)
    with pytest.raises(CodecError, match="sample"):
        dictionary.sample_fixed(bytes(16), 8, blocks=0)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("ends", [[0, 3, 2], [-1, 0, 1], [0, 1, 4], [4, 4, 4], [0, -5, 3], [0, 2**31 - 1, 3]])
@pytest.mark.parametrize("validity", [None, b"\x00", b"\x01", b"\x02"])
def test_offsets_that_make_no_sense(wide: bool, ends: list[int], validity: bytes | None) -> None:
    offsets = np.array(ends, np.int64 if wide else np.int32)
    if validity == b"\x00":
        assert dictionary.build_variable(b"abc", offsets, wide, bytearray(8), 4, np.empty(8, np.int64), validity) == (
            0,
            0,
        )
        return
    if validity == b"\x02" and 0 <= ends[1] <= ends[2] <= 3:
        return
    with pytest.raises(CodecError, match="decrease"):
        dictionary.build_variable(b"abc", offsets, wide, bytearray(8), 4, np.empty(8, np.int64), validity)


def test_nothing() -> None:
    positions = np.empty(0, np.int64)
    assert dictionary.build_fixed(b"", 8, bytearray(), 4, positions) == (0, 0)
    assert dictionary.build_variable(b"", b"", False, bytearray(), 4, positions) == (0, 0)
    assert dictionary.build_variable(b"", bytes(4), False, bytearray(), 4, positions) == (0, 0)
    assert dictionary.sample_fixed(b"", 8) == (0, 0)
    assert dictionary.sample_variable(b"", b"", True) == (0, 0)
