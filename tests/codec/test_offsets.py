"""Tests of end offsets with null adjustment against a plain NumPy model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancecodec import CodecError, offsets
from lancecodec.offsets import OffsetOverflowError

counts = st.one_of(st.integers(0, 40), st.integers(1000, 1050), st.integers(0, 5000))
seeds = st.integers(0, 2**32 - 1)


@dataclass(frozen=True)
class Column:
    """Lengths and validity of values. A null may have a length, as in files of other writers."""

    lengths: np.ndarray
    valid: np.ndarray

    @property
    def ends(self) -> np.ndarray:
        return np.cumsum(self.lengths, dtype=np.uint64)

    @property
    def total(self) -> int:
        return int(self.lengths.sum())

    def raw(self, adjustment: int) -> np.ndarray:
        return self.ends + np.where(self.valid, np.uint64(0), np.uint64(adjustment))


def random_column(seed: int, count: int) -> Column:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, rng.choice([1, 2, 40, 400]), count)
    valid = rng.random(count) >= rng.choice([0.0, 0.0, 0.001, 0.3, 1.0])
    return Column(lengths, valid)


def ragged(data: bytes, skew: int) -> memoryview:
    return memoryview(b"." * skew + data)[skew:]


def decode(
    raw: bytes | memoryview, start: int, stop: int, adjustment: int, limit: int, wide: bool, skew: int = 0
) -> tuple[np.ndarray, bytes, tuple[int, int, int]]:
    count = max(stop - start, 0)
    width = 8 if wide else 4
    out = bytearray(skew + (count + 1) * width + 1)
    validity = bytearray(b"\xa5" * ((count + 7) // 8 + 1))
    out[-1] = 0xA5
    result = offsets.decode(raw, start, stop, adjustment, limit, wide, memoryview(out)[skew:], validity)
    assert out[-1] == 0xA5
    assert validity[-1] == 0xA5
    return np.frombuffer(bytes(out[skew:-1]), f"<i{width}"), bytes(validity[:-1]), result


@given(counts, st.data(), st.booleans(), st.integers(0, 9), seeds)
def test_decode(count: int, data: st.DataObject, wide: bool, skew: int, seed: int) -> None:
    column = random_column(seed, count)
    start = data.draw(st.integers(0, count))
    stop = data.draw(st.integers(start, count))
    adjustment = column.total + data.draw(st.sampled_from([1, 2, 1000, 2**40, 2**63]))
    got, validity, (first, last, nulls) = decode(
        ragged(column.raw(adjustment).tobytes(), skew), start, stop, adjustment, column.total, wide, skew
    )
    ends = np.concatenate([[0], column.ends.astype(np.int64)])
    assert got.tolist() == (ends[start : stop + 1] - ends[start]).tolist()
    assert validity == np.packbits(column.valid[start:stop], bitorder="little").tobytes()
    assert (first, last, nulls) == (ends[start], ends[stop], (~column.valid[start:stop]).sum())


@given(counts, st.data(), st.booleans(), st.integers(0, 9), st.integers(0, 70), seeds)
def test_encode_and_back(count: int, data: st.DataObject, wide: bool, skew: int, bit: int, seed: int) -> None:
    column = random_column(seed, count)
    base = data.draw(st.sampled_from([0, 1, 7_000, 2**50]))
    origin = data.draw(st.sampled_from([0, 3, 100_000]))
    adjustment = base + column.total + data.draw(st.sampled_from([1, 5, 2**50]))
    arrow = np.concatenate([[0], column.ends.astype(np.int64)]) + origin
    some_null = not column.valid.all()
    validity = np.packbits(np.concatenate([np.zeros(bit, bool), column.valid]), bitorder="little").tobytes()
    out = bytearray(skew + 8 * count + 1)
    source = ragged(arrow.astype(np.int64 if wide else np.int32).tobytes(), skew)
    target = memoryview(out)[skew:]
    offsets.encode(source, wide, count, validity if some_null else None, bit, base, adjustment, target)
    raw = np.frombuffer(bytes(out[skew:-1]), np.uint64)
    assert raw.tolist() == (column.raw(adjustment) + np.uint64(base)).tolist()
    assert out[-1] == 0
    if base == 0:
        got, back, _ = decode(raw.tobytes(), 0, count, adjustment, column.total, wide)
        assert got.tolist() == (arrow - origin).tolist()
        assert back == np.packbits(column.valid, bitorder="little").tobytes()


def ends(*values: int) -> bytes:
    return np.array(values, np.uint64).tobytes()


def test_golden_list() -> None:
    """[[1, 2], null, []] is encoded as the reference does: null adjustment 3, two items."""
    got, validity, result = decode(ends(2, 5, 2), 0, 3, 3, 2, wide=False)
    assert (got.tolist(), validity, result) == ([0, 2, 2, 2], b"\x05", (0, 2, 1))
    out = bytearray(24)
    offsets.encode(np.array([0, 2, 2, 2], np.int32), False, 3, b"\x05", 0, 0, 3, out)
    assert bytes(out) == ends(2, 5, 2)


@pytest.mark.parametrize("adjustment", [4, 100, 2**64 - 4])
def test_golden_binary(adjustment: int) -> None:
    """["x", null, "yz"] has adjustment 4 in files of the reference; any larger adjustment is read too."""
    raw = ends(1, 1 + adjustment, 3)
    got, validity, result = decode(raw, 0, 3, adjustment, 3, wide=True)
    assert (got.tolist(), validity, result) == ([0, 1, 1, 3], b"\x05", (0, 3, 1))
    got, validity, result = decode(raw, 2, 3, adjustment, 3, wide=False)
    assert (got.tolist(), validity, result) == ([0, 2], b"\x01", (1, 3, 0))


def test_golden_all_null() -> None:
    got, validity, result = decode(ends(1, 1, 1), 0, 3, 1, 0, wide=False)
    assert (got.tolist(), validity, result) == ([0, 0, 0, 0], b"\x00", (0, 0, 3))


def test_no_values() -> None:
    assert decode(b"", 0, 0, 0, 0, wide=False)[2] == (0, 0, 0)
    offsets.encode(np.zeros(1, np.int32), False, 0, None, 0, 0, 0, bytearray())


@pytest.mark.parametrize("at", [0, 1, 1023, 1024, 2047, 2999])
@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize(
    ("wrong", "message"),
    [(3001, "exceeds the 3000 items"), (2**63, "exceeds|decrease"), (2**64 - 1, "exceeds|decrease")],
)
def test_ends_past_the_items(at: int, nulls: bool, wrong: int, message: str) -> None:
    raw = np.arange(1, 3001, dtype=np.uint64)
    if nulls:
        raw[::7] += np.uint64(5000)
    raw[at] = wrong
    with pytest.raises(CodecError, match=message):
        decode(raw.tobytes(), 0, 3000, 5000, 3000, wide=True)


@pytest.mark.parametrize("at", [1, 1023, 1024, 1025, 2048, 2999])
@pytest.mark.parametrize("null_at", [None, 1024, 2999])
@pytest.mark.parametrize("wide", [False, True])
def test_ends_that_decrease(at: int, null_at: int | None, wide: bool) -> None:
    raw = np.arange(1, 3001, dtype=np.uint64)
    raw[at] -= np.uint64(2)
    if null_at is not None:
        raw[null_at] += np.uint64(5000)
    with pytest.raises(CodecError, match="decrease"):
        decode(raw.tobytes(), 0, 3000, 5000, 3000, wide)


def test_wrapping_ends_are_no_ascent() -> None:
    with pytest.raises(CodecError):
        decode(ends(2**63 - 1, 2**64 - 2, 5), 0, 3, 7, 5, wide=True)


def test_ranges_that_need_wide_offsets() -> None:
    raw, items = ends(10, 2**31 + 9, 2**31 + 10), 2**31 + 10
    with pytest.raises(OffsetOverflowError):
        decode(raw, 0, 3, items + 1, items, wide=False)
    assert decode(raw, 1, 3, items + 1, items, wide=True)[0].tolist() == [0, 2**31 - 1, 2**31]
    assert decode(raw, 1, 2, items + 1, items, wide=False)[0].tolist() == [0, 2**31 - 1]


@pytest.mark.parametrize(
    ("start", "stop", "adjustment", "limit"),
    [
        (0, 4, 4, 3),
        (-1, 2, 4, 3),
        (2, 1, 4, 3),
        (0, 2**63 - 1, 4, 3),
        (-(2**63), 2**63 - 1, 4, 3),
        (0, 3, 3, 3),
        (0, 3, 0, 3),
        (0, 3, 2**64 - 1, 2**63),
    ],
)
def test_decode_rejects_parameters(start: int, stop: int, adjustment: int, limit: int) -> None:
    with pytest.raises(CodecError):
        offsets.decode(ends(1, 2, 3), start, stop, adjustment, limit, False, bytearray(64), bytearray(8))


@pytest.mark.parametrize(("out", "validity"), [(15, 1), (16, 0), (0, 1)])
def test_decode_rejects_small_outputs(out: int, validity: int) -> None:
    with pytest.raises(CodecError, match="too small"):
        offsets.decode(ends(1, 2, 3), 0, 3, 4, 3, False, bytearray(out), bytearray(validity))


@pytest.mark.parametrize("length", [-1, 4, 2**60, 2**61 - 1, 2**62, 2**63 - 1, -(2**63)])
@pytest.mark.parametrize("wide", [False, True])
def test_encode_rejects_lengths(length: int, wide: bool) -> None:
    with pytest.raises(CodecError):
        offsets.encode(bytes(16), wide, length, None, 0, 0, 1, bytearray(24))


@pytest.mark.parametrize("bit", [-1, 6, 8, 2**63 - 1, -(2**63)])
def test_encode_rejects_validity_that_is_too_short(bit: int) -> None:
    with pytest.raises(CodecError, match="does not hold"):
        offsets.encode(bytes(16), False, 3, b"\xff", bit, 0, 1, bytearray(24))


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("values", [[0, 2, 1, 3], [3, 2, 2, 4], [-1, 0, 1, 2], [0, 5, 6, 5]])
def test_encode_rejects_offsets(values: list[int], wide: bool) -> None:
    source = np.array(values, np.int64 if wide else np.int32)
    with pytest.raises(CodecError, match="decrease"):
        offsets.encode(source, wide, 3, None, 0, 0, 100, bytearray(24))


def test_encode_rejects_ambiguous_nulls_and_overflow() -> None:
    source = np.array([0, 2, 3], np.int32)
    with pytest.raises(CodecError, match="adjustment"):
        offsets.encode(source, False, 2, b"\x01", 0, 0, 3, bytearray(16))
    with pytest.raises(CodecError, match="63 bits"):
        offsets.encode(source, False, 2, None, 0, 2**63 - 3, 2**64 - 1, bytearray(16))
