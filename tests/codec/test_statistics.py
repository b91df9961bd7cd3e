"""Tests of statistics against NumPy and straightforward models."""

from __future__ import annotations

import math
from collections import Counter
from itertools import groupby

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancecodec import CodecError, statistics
from lancecodec.statistics import DistinctSketch

counts = st.one_of(
    st.integers(0, 40),
    st.sampled_from([127, 128, 129, 255, 256, 257, 1023, 1024, 1025, 4095, 4096, 4097, 8192, 9000]),
    st.integers(0, 9000),
)
seeds = st.integers(0, 2**32 - 1)
kinds = st.sampled_from(["u1", "i1", "u2", "i2", "f2", "u4", "i4", "f4", "u8", "i8", "f8"])


def ragged(data: bytes, skew: int) -> memoryview:
    return memoryview(b"." * skew + data)[skew:]


def packed(valid: np.ndarray, bit: int) -> bytes:
    return np.packbits(np.concatenate([np.ones(bit, bool), valid]), bitorder="little").tobytes()


def column(rng: np.random.Generator, kind: str, count: int) -> np.ndarray:
    """Return noise, few values, long runs, or mostly one value; sometimes of few bits."""
    dtype = np.dtype(f"<{kind}")
    unsigned = np.dtype(f"<u{dtype.itemsize}")
    bits = rng.integers(0, 256, (count, dtype.itemsize), np.uint8).view(unsigned).reshape(-1)
    shape = rng.integers(0, 5)
    if shape == 1:
        bits = rng.choice(np.concatenate([bits[:3], np.zeros(1, unsigned)]), count)
    elif shape == 2 and count:
        lengths = rng.integers(1, rng.choice([5, 130, 300, 5000]), count)
        bits = np.repeat(bits, lengths)[:count]
    elif shape == 3:
        bits = np.where(rng.random(count) < 0.002, bits, unsigned.type(7))
    if rng.random() < 0.4:
        bits = bits & unsigned.type(2 ** rng.integers(0, 8 * dtype.itemsize) - 1)
    values = bits.astype(unsigned).view(dtype)
    if dtype.kind == "f" and count and rng.random() < 0.5:
        values = values.copy()
        values[rng.integers(0, count, 5)] = rng.choice([np.nan, -0.0, 0.0, np.inf, -np.inf])
    return values


def runs_of(bits: np.ndarray, cut: int) -> list[int]:
    parts = [bits[i : i + cut] for i in range(0, len(bits), cut)] if cut else [bits]
    return [len(list(run)) for part in parts for _, run in groupby(part.tolist())]


def extremes(values: np.ndarray) -> tuple[object, object]:
    if values.dtype.kind != "f":
        return (values.min(), values.max()) if len(values) else (None, None)
    known = values[~np.isnan(values)].astype(np.float64).tolist()
    by_sign = [(v, math.copysign(1, v)) for v in known]
    return (min(by_sign)[0], max(by_sign)[0]) if known else (None, None)


@given(counts, kinds, st.sampled_from([0, 128, 1024, 4096]), st.integers(0, 9), st.booleans(), seeds)
def test_fixed(count: int, kind: str, cut: int, skew: int, nulls: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = column(rng, kind, count)
    width = values.dtype.itemsize
    bits = values.view(f"<u{width}")
    valid = rng.random(count) < (rng.choice([0.0, 0.01, 0.7]) if nulls else 1)
    widths = bytearray(b"\xa5" * ((count + 1023) // 1024 + 1))
    validity = packed(valid, skew) if nulls else None
    s = statistics.fixed(ragged(values.tobytes(), skew), width, kind[0], validity, skew, widths, cut)  # type: ignore[arg-type]
    group_bits = [int(np.bitwise_or.reduce(bits[i : i + 1024])).bit_length() for i in range(0, count, 1024)]
    assert list(widths) == [*group_bits, 0xA5]
    assert s.bit_width == max(group_bits, default=0)
    assert s.inline_size == sum(width + 128 * w for w in group_bits)
    assert s.run_count == len(runs_of(bits, 0))
    runs = runs_of(bits, cut)
    assert s.cut_run_count == len(runs)
    assert s.rle_entries == sum(-(-r // 255) for r in runs)
    assert s.rle_size == s.rle_entries * (width + 1)
    assert (s.count, s.null_count, s.width) == (count, count - valid.sum(), width)
    assert s.first_valid == (np.flatnonzero(valid)[0] if valid.any() else -1)
    assert s.all_equal == (len(np.unique(bits[valid])) <= 1)
    assert s.nan_count == (np.isnan(values[valid]).sum() if kind[0] == "f" else 0)
    low, high = extremes(values[valid])
    assert (s.min, s.max) == (low, high)
    if kind[0] == "f" and low is not None:
        assert math.copysign(1, s.min) == math.copysign(1, low)  # type: ignore[arg-type]
        assert math.copysign(1, s.max) == math.copysign(1, high)  # type: ignore[arg-type]


@pytest.mark.parametrize("run", [1, 127, 128, 129, 254, 255, 256, 257, 383, 384, 385, 510, 511, 4095, 4096, 4097, 9999])
@pytest.mark.parametrize("start", [0, 1, 127, 128, 129, 4090])
@pytest.mark.parametrize("width", [1, 8])
def test_one_run_among_others(run: int, start: int, width: int) -> None:
    before = (np.arange(start) % 100) + 1
    bits = np.concatenate([before, np.zeros(run), np.arange(200) % 2 + 1]).astype(f"<u{width}")
    for cut in (0, 4096):
        s = statistics.fixed(bits, width, run_cut=cut)
        runs = runs_of(bits, cut)
        assert (s.cut_run_count, s.rle_entries) == (len(runs), sum(-(-r // 255) for r in runs))


def test_golden_rle() -> None:
    """[7] * 300 + [9] * 2 takes three entries of 32-bit values."""
    s = statistics.fixed(np.array([7] * 300 + [9] * 2, np.int32), 4, "i")
    assert (s.run_count, s.rle_entries, s.rle_size) == (2, 3, 15)
    assert (s.min, s.max, s.bit_width, s.inline_size, s.all_equal) == (7, 9, 4, 4 + 4 * 128, False)


def test_bits_decide_equality() -> None:
    assert not statistics.fixed(np.array([0.0, -0.0]), 8, "f").all_equal
    same = statistics.fixed(np.array([np.nan] * 3), 8, "f")
    assert (same.all_equal, same.min, same.max, same.nan_count) == (True, None, None, 3)
    assert "nan_count=3" in repr(same)


def test_no_values() -> None:
    s = statistics.fixed(b"", 4)
    assert (s.count, s.run_count, s.rle_size, s.inline_size, s.bit_width, s.first_valid) == (0, 0, 0, 0, 0, -1)
    assert (s.min, s.max, s.all_equal) == (None, None, True)
    w = statistics.fixed_bytes(b"", 16)
    assert (w.count, w.run_count, w.first_valid, w.all_equal) == (0, 0, -1, True)
    v = statistics.variable(b"", b"", False)
    assert (v.count, v.min_length, v.max_length, v.all_equal, v.first_valid) == (0, 0, 0, True, -1)
    assert statistics.byte_entropy(b"", 4) == 0


@given(st.integers(0, 600), st.sampled_from([1, 3, 8, 12, 16, 32, 100]), st.integers(0, 9), st.booleans(), seeds)
def test_fixed_bytes(count: int, width: int, skew: int, nulls: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    pool = rng.integers(0, 2, (4, width), np.uint8)
    picks = rng.integers(0, rng.choice([1, 4]), count)
    values = [pool[i].tobytes() for i in picks]
    if count and rng.random() < 0.3:
        values = [values[0]] * count
        values[-1] = pool[3].tobytes()
    valid = rng.random(count) < (rng.choice([0.0, 0.3, 1.0]) if nulls else 1)
    s = statistics.fixed_bytes(ragged(b"".join(values), skew), width, packed(valid, skew) if nulls else None, skew)
    known = {v for v, ok in zip(values, valid, strict=True) if ok}
    assert (s.count, s.null_count, s.width) == (count, count - valid.sum(), width)
    assert s.run_count == len(list(groupby(values)))
    assert s.all_equal == (len(known) <= 1)
    assert s.first_valid == (np.flatnonzero(valid)[0] if valid.any() else -1)
    assert (s.bit_width, s.min, s.inline_size, s.rle_size) == (8 * width, None, None, None)


@given(st.integers(0, 600), st.booleans(), st.integers(0, 9), st.booleans(), seeds)
def test_variable(count: int, wide: bool, skew: int, nulls: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    pool = [b"", b"a", b"bb", b"cc", b"long" * 30]
    some = [pool[i] for i in rng.integers(0, 5, int(rng.integers(1, 4)))]
    values = [some[i] for i in rng.integers(0, len(some), count)]
    valid = rng.random(count) < (rng.choice([0.0, 0.1, 0.9]) if nulls else 1)
    offsets = (np.cumsum([0, *map(len, values)]) + skew).astype(np.int64 if wide else np.int32)
    s = statistics.variable(
        b"." * skew + b"".join(values),
        ragged(offsets.tobytes(), skew),
        wide,
        packed(valid, skew) if nulls else None,
        skew,
    )
    known = [v for v, ok in zip(values, valid, strict=True) if ok]
    lengths = [len(v) for v in known]
    assert (s.count, s.null_count) == (count, count - len(known))
    assert (s.min_length, s.max_length) == (min(lengths, default=0), max(lengths, default=0))
    assert (s.total_length, s.empty_count) == (sum(lengths), lengths.count(0))
    assert s.all_equal == (len(set(known)) <= 1)
    assert s.first_valid == (np.flatnonzero(valid)[0] if valid.any() else -1)


@given(st.integers(1, 200), st.sampled_from([1, 2, 4, 8, 12]), seeds)
def test_byte_entropy(count: int, width: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.integers(0, rng.choice([1, 4, 256]), (count, width), np.uint8)
    total = 0.0
    for j in range(width):
        shares = [c / min(count, 64) for c in Counter(values[:64, j].tolist()).values()]
        total -= sum(p * math.log2(p) for p in shares)
    assert statistics.byte_entropy(values, width) == pytest.approx(total / width, abs=1e-9)


@pytest.mark.parametrize("count", [0, 1, 10, 1000, 5000, 20_000, 300_000])
@pytest.mark.parametrize("kind", ["ascending", "multiples", "random", "wide", "strings"])
def test_sketch(count: int, kind: str) -> None:
    """Estimates are within five standard errors. The hash is fixed, so the test is deterministic."""
    values = np.arange(count, dtype=np.uint64)
    if kind == "multiples":
        values <<= np.uint64(40)
    if kind == "random":
        values = np.random.default_rng(5).permutation(2**20)[:count].astype(np.uint64)
    sketch = DistinctSketch()
    for _ in range(2):
        if kind == "wide":
            sketch.add_fixed(np.stack([values // 7, values], axis=1), 16)
        elif kind == "strings":
            text = [str(v).encode() * (v % 4 + 1) for v in values.tolist()]
            offsets = np.cumsum([0, *map(len, text)]).astype(np.int32)
            sketch.add_variable(b"".join(text), offsets, False)
        else:
            sketch.add_fixed(values, 8)
    assert sketch.estimate() == pytest.approx(count, rel=5 * 1.04 / 64)


@pytest.mark.parametrize("precision", [4, 8, 14, 16])
def test_sketches_merge(precision: int) -> None:
    values = np.arange(50_000)
    left, right, both = DistinctSketch(precision), DistinctSketch(precision), DistinctSketch(precision)
    left.add_fixed(values[:30_000], 8)
    right.add_fixed(values[20_000:], 8)
    both.add_fixed(values, 8)
    left.merge(DistinctSketch.from_bytes(bytes(right)))
    assert bytes(left) == bytes(both)
    assert left.estimate() == pytest.approx(50_000, rel=5 * 1.04 / 2 ** (precision / 2))


def test_sketch_of_nulls_and_of_equal_bytes() -> None:
    values = np.arange(1000, dtype=np.uint32)
    valid = values % 2 == 0
    a, b, c = DistinctSketch(), DistinctSketch(), DistinctSketch()
    a.add_fixed(values, 4, packed(valid, 3), 3)
    b.add_fixed(values[valid], 4)
    offsets = np.arange(1001, dtype=np.int64) * 4
    c.add_variable(values, offsets, True, packed(valid, 3), 3)
    assert bytes(a) == bytes(b) == bytes(c)


def test_sketches_that_make_no_sense() -> None:
    for precision in (-1, 3, 17):
        with pytest.raises(CodecError, match="precision"):
            DistinctSketch(precision)
    with pytest.raises(CodecError, match="merged"):
        DistinctSketch(4).merge(DistinctSketch(5))
    for data in (b"", bytes(17), bytes(8)):
        with pytest.raises(CodecError, match="power of two"):
            DistinctSketch.from_bytes(data)
    assert bytes(DistinctSketch.from_bytes(b"\x3d" * 16)) == b"\x3d" * 16
    assert DistinctSketch.from_bytes(b"\x3d" * 16).estimate() == math.inf
    with pytest.raises(CodecError, match="register 0"):
        DistinctSketch.from_bytes(b"\x3e" * 16)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("ends", [[0, 3, 2], [-1, 0, 1], [0, 1, 4], [4, 4, 4], [0, -5, 3], [0, 2**31 - 1, 3]])
@pytest.mark.parametrize("validity", [None, b"\x00", b"\x03"])
def test_offsets_that_make_no_sense(wide: bool, ends: list[int], validity: bytes | None) -> None:
    offsets = np.array(ends, np.int64 if wide else np.int32)
    with pytest.raises(CodecError, match="decrease"):
        statistics.variable(b"abc", offsets, wide, validity)
    with pytest.raises(CodecError, match="decrease"):
        DistinctSketch().add_variable(b"abc", offsets, wide, validity)


def test_arguments() -> None:
    for width in (0, -1, 3, 16, 2**62):
        with pytest.raises(CodecError):
            statistics.fixed(bytes(48), width)
    for width, kind in ((1, "f"), (4, "x"), (4, ""), (4, "uu")):
        with pytest.raises(CodecError, match="kind"):
            statistics.fixed(bytes(48), width, kind)  # type: ignore[arg-type]
    for cut in (-128, 1, 100, 129):
        with pytest.raises(CodecError, match="cut"):
            statistics.fixed(bytes(48), 4, run_cut=cut)
    with pytest.raises(CodecError, match="whole number"):
        statistics.fixed(bytes(47), 4)
    with pytest.raises(CodecError, match="does not hold"):
        statistics.fixed(bytes(48), 4, validity=b"\xff")
    with pytest.raises(CodecError, match="bit widths"):
        statistics.fixed(bytes(1025), 1, widths=bytearray(1))
    with pytest.raises(CodecError, match="entropy"):
        statistics.byte_entropy(bytes(2000), 2000)
