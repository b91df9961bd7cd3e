"""Tests of gathers against NumPy indexing and plain slices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancecodec import CodecError, OffsetOverflowError, gather

counts = st.one_of(st.integers(0, 40), st.integers(2040, 2060), st.integers(0, 5000))
widths = st.sampled_from([1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 17, 24, 31, 32, 33, 40, 64, 100])
index_widths = st.sampled_from([1, 2, 4, 8])
seeds = st.integers(0, 2**32 - 1)


def ragged(data: bytes, skew: int) -> memoryview:
    return memoryview(b"." * skew + data)[skew:]


def random_indices(rng: np.random.Generator, index_width: int, entries: int, count: int) -> np.ndarray:
    top = min(entries, 2 ** (8 * min(index_width, 4)))
    return rng.integers(0, max(top, 1), count if entries else 0).astype(f"<u{index_width}")


@given(counts, st.integers(0, 300), widths, index_widths, st.integers(0, 9), seeds)
def test_fixed(count: int, entries: int, width: int, index_width: int, skew: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 256, (entries, width), np.uint8)
    indices = random_indices(rng, index_width, entries, count)
    out = bytearray(skew + len(indices) * width + 1)
    gather.fixed(
        ragged(values.tobytes(), skew), width, ragged(indices.tobytes(), skew), index_width, memoryview(out)[skew:]
    )
    assert bytes(out[skew:-1]) == values[indices].tobytes()
    assert out[-1] == 0


@given(counts, st.integers(0, 300), index_widths, st.integers(0, 9), seeds)
def test_variable(count: int, entries: int, index_width: int, skew: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    value_offsets = np.concatenate([[0], np.cumsum(rng.integers(0, rng.choice([1, 5, 9, 20, 50]), entries))])
    values = rng.integers(0, 256, value_offsets[-1], np.uint8).tobytes()
    indices = random_indices(rng, index_width, entries, count)
    expected = [values[value_offsets[i] : value_offsets[i + 1]] for i in indices.astype(np.int64)]
    index_bytes = ragged(indices.tobytes(), skew)
    out_offsets = np.full(len(indices) + 1, -1)
    total = gather.variable_offsets(value_offsets, index_bytes, index_width, out_offsets)
    assert out_offsets.tolist() == np.cumsum([0, *map(len, expected)]).tolist()
    assert total == out_offsets[-1]
    out = bytearray(skew + total + 1)
    target = memoryview(out)[skew:]
    gather.variable(ragged(values, skew), value_offsets, index_bytes, index_width, out_offsets, target)
    assert bytes(out[skew:-1]) == b"".join(expected)
    assert out[-1] == 0


@given(counts, st.integers(0, 300), widths, index_widths, st.integers(0, 9), st.integers(0, 17), seeds)
def test_fixed_with_nulls(
    count: int, entries: int, width: int, index_width: int, skew: int, bit: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 256, (entries, width), np.uint8)
    valid = rng.random(count) < (rng.choice([0.1, 0.5, 0.99]) if entries else 0)
    indices = rng.integers(0, 2**62, count).astype(f"<u{index_width}")
    indices[valid] = random_indices(rng, index_width, entries, int(valid.sum()))
    validity = np.packbits(np.concatenate([np.ones(bit, bool), valid]), bitorder="little").tobytes()
    out = bytearray(b"\xa5" * (skew + count * width + 1))
    target = memoryview(out)[skew:]
    index_bytes = ragged(indices.tobytes(), skew)
    gather.fixed(values.tobytes(), width, index_bytes, index_width, target, ragged(validity, skew), bit)
    known = np.where(indices.astype(np.uint64) < entries, indices, 0).astype(np.int64)
    expected = values[known] if entries else np.zeros((count, width), np.uint8)
    assert bytes(out[skew:-1]) == expected.tobytes()
    assert out[-1] == 0xA5


@given(counts, st.integers(0, 300), st.booleans(), st.booleans(), index_widths, st.integers(0, 9), st.booleans(), seeds)
def test_binary(
    count: int, entries: int, wide: bool, out_wide: bool, index_width: int, skew: int, nulls: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    longest = rng.choice([1, 5, 12, 20, 40, 100])
    ends = np.concatenate([[0], np.cumsum(rng.integers(0, longest, entries))]) + 3
    values = rng.integers(0, 256, ends[-1], np.uint8).tobytes()
    valid = rng.random(count) < (0.7 if nulls and entries else 0 if nulls else 1)
    if not nulls and not entries:
        valid = valid[:0]
    indices = rng.integers(0, 2**62, len(valid)).astype(f"<u{index_width}")
    indices[valid] = random_indices(rng, index_width, entries, int(valid.sum()))
    expected = [
        values[ends[i] : ends[i + 1]] if ok else b"" for i, ok in zip(indices.tolist(), valid.tolist(), strict=True)
    ]
    validity = np.packbits(np.concatenate([[True], valid]), bitorder="little").tobytes() if nulls else None
    offsets = ragged(ends.astype(np.int64 if wide else np.int32).tobytes(), skew)
    base = int(rng.choice([0, 7, 2**30]))
    index_bytes = ragged(indices.tobytes(), skew)
    out_offsets = np.zeros(len(valid) + 1, np.int64 if out_wide else np.int32)
    data = ragged(values, skew)
    total = gather.binary_offsets(
        data, offsets, wide, index_bytes, index_width, out_wide, out_offsets, base, validity, 1
    )
    assert out_offsets.tolist() == (np.cumsum([0, *map(len, expected)]) + base).tolist()
    for slack in (0, 1, 70):
        out = bytearray(b"\xa5" * (skew + total + slack + 1))
        target = memoryview(out)[skew : len(out) - 1]
        assert gather.binary(data, offsets, wide, index_bytes, index_width, target, validity, 1) == total
        assert bytes(out[skew : skew + total]) == b"".join(expected)
        assert out[-1] == 0xA5


def test_binary_limits() -> None:
    values, ends = bytes(2**20), np.array([0, 2**20], np.int32)
    codes = bytes(2048)
    out = np.zeros(2049, np.int64)
    assert gather.binary_offsets(values, ends, False, codes[:2047], 1, False, out) == 2047 * 2**20
    with pytest.raises(CodecError, match=r"fit|too small for the values"):
        gather.binary_offsets(values, ends, False, codes, 1, False, out)
    with pytest.raises(CodecError, match=r"fit|too small for the values"):
        gather.binary_offsets(values, ends, False, codes[:2047], 1, False, out, 2**20)
    assert gather.binary_offsets(values, ends, False, codes, 1, True, out) == 2**31
    with pytest.raises(CodecError, match="cannot start"):
        gather.binary_offsets(values, ends, False, codes, 1, False, out, 2**31)
    with pytest.raises(CodecError, match=r"fit|too small for the values"):
        gather.binary(values, ends, False, codes[:2], 1, bytearray(2**21 - 1))


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("ends", [[0, 3, 2], [-1, 0, 1], [0, 1, 4], [4, 4, 4], [0, -5, 3], [0, 2**31 - 1, 3]])
def test_binary_entries_that_make_no_sense(wide: bool, ends: list[int]) -> None:
    offsets = np.array(ends, np.int64 if wide else np.int32)
    with pytest.raises(CodecError, match="decrease"):
        gather.binary_offsets(b"abc", offsets, wide, b"\0", 1, False, bytearray(8))
    with pytest.raises(CodecError, match="decrease"):
        gather.binary(b"abc", offsets, wide, b"\0", 1, bytearray(8))
    with pytest.raises(CodecError, match="whole number"):
        gather.binary(b"abc", offsets.tobytes()[:-1], wide, b"\0", 1, bytearray(8))


@pytest.mark.parametrize("index_width", [1, 2, 4, 8])
@pytest.mark.parametrize("at", [0, 2047, 2048, 2999])
def test_a_valid_index_that_is_too_large_among_nulls(index_width: int, at: int) -> None:
    indices = np.full(3000, 9, f"<u{index_width}")
    indices[at] = 5
    valid = np.arange(3000) == at
    validity = np.packbits(valid, bitorder="little")
    ends = np.arange(6, dtype=np.int32)
    with pytest.raises(CodecError, match="index 5 is outside 5 values"):
        gather.fixed(bytes(40), 8, indices, index_width, bytearray(24_000), validity)
    with pytest.raises(CodecError, match="index 5 is outside 5 values"):
        gather.binary_offsets(bytes(5), ends, False, indices, index_width, True, bytearray(24_008), 0, validity)
    with pytest.raises(CodecError, match="index 5 is outside 5 values"):
        gather.binary(bytes(5), ends, False, indices, index_width, bytearray(3000), validity)
    with pytest.raises(CodecError, match=f"index {indices[0]} is outside 0 values"):
        gather.fixed(b"", 8, indices, index_width, bytearray(24_000))


@pytest.mark.parametrize("bit", [-1, 6, 8, 2**63 - 1, -(2**63)])
def test_validity_that_is_too_short(bit: int) -> None:
    with pytest.raises(CodecError, match="does not hold"):
        gather.fixed(bytes(8), 1, bytes(3), 1, bytearray(3), b"\xff", bit)


@given(counts, st.booleans(), st.integers(0, 9), seeds)
def test_expand_ranges(count: int, wide: bool, skew: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    begins = rng.integers(0, 10**12, count)
    ends = np.concatenate([[0], np.cumsum(rng.integers(0, 6, count))])
    out = np.full(ends[-1], -1)
    gather.expand_ranges(begins, ragged(ends.astype(np.int64 if wide else np.int32).tobytes(), skew), wide, out)
    ranges = [np.arange(b, b + n) for b, n in zip(begins, np.diff(ends), strict=True)]
    assert out.tolist() == np.concatenate([[], *ranges]).astype(np.int64).tolist()


@pytest.mark.parametrize("index_width", [1, 2, 4, 8])
@pytest.mark.parametrize("at", [0, 2047, 2048, 2999])
def test_an_index_that_is_too_large(index_width: int, at: int) -> None:
    indices = np.zeros(3000, f"<u{index_width}")
    indices[at] = 5
    for wrong in (5, 2 ** (8 * index_width) - 1):
        indices[at] = wrong
        with pytest.raises(CodecError, match=f"index {wrong} is outside 5 values"):
            gather.fixed(bytes(43), 8, indices, index_width, bytearray(24_000))
        with pytest.raises(CodecError, match=f"index {wrong} is outside 5 values"):
            gather.variable_offsets(np.arange(6), indices, index_width, np.empty(3001, np.int64))
        with pytest.raises(CodecError, match=f"index {wrong} is outside 5 values"):
            gather.variable(bytes(5), np.arange(6), indices, index_width, np.arange(3001), bytearray(3000))


@pytest.mark.parametrize("index_width", [-1, 0, 3, 16, 2**31 - 1])
def test_index_widths(index_width: int) -> None:
    with pytest.raises(CodecError, match="not supported"):
        gather.fixed(bytes(8), 1, bytes(8), index_width, bytearray(8))


def test_part_of_an_index() -> None:
    with pytest.raises(CodecError, match="whole number"):
        gather.fixed(bytes(8), 1, bytes(7), 4, bytearray(8))


@pytest.mark.parametrize("width", [-1, -(2**63), 3, 2**62, 2**63 - 1])
def test_fixed_rejects_widths(width: int) -> None:
    with pytest.raises(CodecError):
        gather.fixed(bytes(6), width, bytes(3), 1, bytearray(8))


@pytest.mark.parametrize(
    "value_offsets",
    [[0, 3, 2], [-1, 0, 1], [0, 2**62, -(2**62)], [-(2**63), 2**63 - 1, 2**63 - 1]],
)
def test_value_offsets_that_make_no_sense(value_offsets: list[int]) -> None:
    with pytest.raises(CodecError):
        gather.variable_offsets(np.array(value_offsets), b"\0\1", 1, np.empty(3, np.int64))
    with pytest.raises(CodecError):
        gather.variable(bytes(3), np.array(value_offsets), b"\0\1", 1, np.arange(3), bytearray(8))


def test_totals_that_overflow() -> None:
    with pytest.raises(CodecError, match=r"2\*\*63"):
        gather.variable_offsets(np.array([0, 2**62]), b"\0\0\0", 1, np.empty(4, np.int64))


@pytest.mark.parametrize("at", [-1, 2, 3, 2**63 - 1, -(2**63)])
def test_variable_rejects_places(at: int) -> None:
    with pytest.raises(CodecError):
        gather.variable(b"ab", np.array([0, 2]), b"\0", 1, np.array([at, 0]), bytearray(3))


def test_empty_offsets_hold_no_value() -> None:
    nothing = np.empty(0, np.int64)
    assert gather.variable_offsets(nothing, b"", 1, np.empty(1, np.int64)) == 0
    with pytest.raises(CodecError):
        gather.variable_offsets(nothing, b"\0", 1, np.empty(2, np.int64))
    with pytest.raises(CodecError):
        gather.variable_offsets(nothing, b"", 1, nothing)


@pytest.mark.parametrize("ends", [[0, 4], [-1, 0], [2, 1], [0, 2**31 - 1]])
def test_ranges_outside_the_output(ends: list[int]) -> None:
    with pytest.raises(CodecError):
        gather.expand_ranges(np.array([5]), np.array(ends, np.int32), False, np.empty(3, np.int64))


def test_arrays_at_odd_addresses_are_refused() -> None:
    odd = np.frombuffer(bytes(41), np.int64, offset=1, count=5)
    with pytest.raises(CodecError, match="aligned"):
        gather.variable_offsets(odd, b"\0", 1, np.empty(2, np.int64))


def test_integers_of_another_width_are_refused() -> None:
    with pytest.raises(ValueError, match="dtype"):
        gather.variable_offsets(np.arange(3, dtype=np.int32), b"\0", 1, np.empty(2, np.int64))


@given(counts, st.integers(1, 300), st.integers(0, 32), index_widths, st.booleans(), st.booleans(), seeds)
def test_short_entries(
    count: int, entries: int, longest: int, index_width: int, wide: bool, out_wide: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    skew, base = int(rng.integers(9)), int(rng.integers(100))
    ends = np.cumsum([int(rng.integers(5)), *rng.integers(0, longest + 1, entries)])
    values = rng.integers(0, 256, int(ends[-1]) + 3, np.uint8).tobytes()
    indices = random_indices(rng, index_width, entries, count)
    expected = [values[ends[i] : ends[i + 1]] for i in indices.astype(np.int64)]
    offsets = ends.astype("<i8" if wide else "<i4")
    short = gather.ShortEntries(ragged(values, skew), ragged(offsets.tobytes(), skew), wide)
    assert short.longest == np.diff(ends).max()
    places = np.zeros(len(indices) + 1, "<i8" if out_wide else "<i4")
    out = bytearray(skew + short.room(len(indices)) + 1)
    index_bytes = ragged(indices.tobytes(), skew)
    target = memoryview(out)[skew:-1]
    total = short.gather(index_bytes, index_width, out_wide, memoryview(places).cast("B"), target, base)
    assert places.tolist() == np.cumsum([base, *map(len, expected)]).tolist()
    assert bytes(target[:total]) == b"".join(expected)
    assert out[-1] == 0


def test_short_entries_refuse_what_does_not_fit() -> None:
    offsets = np.array([0, 1, 3], np.int32)
    short = gather.ShortEntries(b"abc", offsets, False)
    room, places = bytearray(short.room(4)), bytearray(20)
    with pytest.raises(CodecError, match="index 2 is outside 2 values"):
        short.gather(bytes([0, 1, 2, 0]), 1, False, places, room)
    with pytest.raises(CodecError, match="too small for 4 values"):
        short.gather(bytes(4), 1, False, places, room[:-1])
    with pytest.raises(CodecError, match="too small for 5 offsets"):
        short.gather(bytes(4), 1, False, places[:-4], room)
    with pytest.raises(OffsetOverflowError):
        short.gather(bytes(4), 1, False, places, room, 2**31 - 8)
    with pytest.raises(CodecError, match="longer than 32"):
        gather.ShortEntries(bytes(40), np.array([0, 33], np.int32), False)
    for broken in ([0, 2, 1], [0, 1, 4], [-1, 0, 1]):
        with pytest.raises(CodecError):
            gather.ShortEntries(b"abc", np.array(broken, np.int32), False)
    assert gather.ShortEntries(b"", b"", False).gather(b"", 1, False, bytearray(4), bytearray(8)) == 0
