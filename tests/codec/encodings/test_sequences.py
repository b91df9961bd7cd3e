"""Tests of sequences of 2.3 against NumPy and Python integers."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancecodec import CodecError, rle, sequences

widths = st.sampled_from([32, 64])
counts = st.one_of(st.integers(2, 70), st.sampled_from([1023, 1024, 1025, 4097]))
seeds = st.integers(0, 2**32 - 1)


def out_for(n: int, bits: int) -> np.ndarray:
    """Return an output at an odd address, with one more byte behind that must not change."""
    return np.full(n * bits // 8 + 2, 0xA5, np.uint8)[1:]


def values_in(out: np.ndarray, bits: int) -> list[int]:
    assert out[-1] == 0xA5
    values: list[int] = np.frombuffer(out[:-1].tobytes(), f"<u{bits // 8}").tolist()
    return values


@given(widths, counts, st.data())
def test_range(bits: int, n: int, data: st.DataObject) -> None:
    step = data.draw(st.integers(1, (2**bits - 1) // (n - 1)))
    start = data.draw(st.integers(0, 2**bits - 1 - step * (n - 1)))
    out = out_for(n, bits)
    sequences.decode_range(start, step, n, bits, out[: n * bits // 8])
    expected = [start + i * step for i in range(n)]
    assert values_in(out, bits) == expected
    assert sequences.range_of(out[:-1], bits) == (start, step)
    expected[data.draw(st.integers(0, n - 1))] ^= 1 << data.draw(st.integers(0, bits - 1))
    found = sequences.range_of(np.array(expected, f"<u{bits // 8}"), bits)
    is_range = n == 2 and expected[1] > expected[0]
    assert found == ((expected[0], expected[1] - expected[0]) if is_range else None)


@pytest.mark.parametrize(
    ("start", "step", "n", "bits"),
    [
        (0, 0, 2, 32),
        (0, 1, 1, 32),
        (0, 1, 0, 32),
        (2**32 - 1, 1, 2, 32),
        (2**32, 1, 2, 32),
        (0, 2**31, 3, 32),
        (1, 2**64 - 1, 2, 64),
        (2**64 - 2, 1, 3, 64),
        (0, 1, 2, 16),
    ],
)
def test_impossible_ranges(start: int, step: int, n: int, bits: int) -> None:
    with pytest.raises(CodecError):
        sequences.decode_range(start, step, n, bits, bytearray(24))


@given(widths, counts, seeds, st.booleans())
def test_delta(bits: int, n: int, seed: int, full: bool) -> None:
    deltas = np.random.default_rng(seed).integers(0, 1000, n - 1, np.uint64)
    total = int(deltas.sum())
    base = 2**bits - 1 - total if full else min(seed, 2**bits - 1 - total)
    expected = [base, *(base + int(end) for end in np.cumsum(deltas, dtype=np.uint64))]
    stored = deltas.astype(f"<u{bits // 8}")
    out = out_for(n, bits)
    sequences.decode_delta(base, stored, bits, out[: n * bits // 8])
    assert values_in(out, bits) == expected
    back = np.empty_like(stored)
    assert sequences.encode_delta(out[:-1], bits, back) == base
    assert back.tolist() == deltas.tolist()
    if full:
        with pytest.raises(CodecError, match="not fit"):
            sequences.decode_delta(base + 1 if total else 2**bits, stored, bits, np.empty(n, stored.dtype))


def test_impossible_deltas() -> None:
    out = bytearray(64)
    with pytest.raises(CodecError, match="at least 2"):
        sequences.decode_delta(0, b"", 32, out)
    with pytest.raises(CodecError, match="at least 2 values that fit"):
        sequences.decode_delta(2**32, bytes(4), 32, out)
    with pytest.raises(CodecError, match="not fit 64 bits"):
        sequences.decode_delta(2**64 - 1, np.array([1, 0], "<u8"), 64, out)
    with pytest.raises(CodecError, match="whole number"):
        sequences.decode_delta(0, bytes(5), 32, out)
    with pytest.raises(CodecError, match="too small"):
        sequences.decode_delta(0, bytes(8), 32, bytearray(11))
    for dtype in ("<u4", "<u8"):
        with pytest.raises(CodecError, match="descend"):
            sequences.encode_delta(np.array([1, 5, 4], dtype), 8 * np.dtype(dtype).itemsize, out)
    with pytest.raises(CodecError, match="do not have deltas"):
        sequences.encode_delta(bytes(4), 32, out)
    assert sequences.range_of(bytes(4), 32) is None
    assert sequences.range_of(b"", 64) is None


@given(widths, st.integers(0, 3000), st.sampled_from([1, 2, 40, 4096]), seeds)
def test_dictionary(bits: int, n: int, items: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    entries = rng.integers(0, 2**bits - 1, items, np.uint64).astype(f"<u{bits // 8}")
    indices = rng.integers(0, items, n).astype("<u4")
    out = out_for(n, bits)
    sequences.decode_dictionary(indices, entries, bits, out[: n * bits // 8])
    assert values_in(out, bits) == entries[indices].tolist()
    if n:
        indices[rng.integers(n)] = rng.choice([items, 2**31, 2**32 - 1])
        with pytest.raises(CodecError, match="no dictionary entry"):
            sequences.decode_dictionary(indices, entries, bits, out)


@pytest.mark.parametrize("items", [0, 4097])
def test_dictionary_sizes(items: int) -> None:
    with pytest.raises(CodecError, match="1 to 4096"):
        sequences.decode_dictionary(bytes(4), bytes(4 * items), 32, bytearray(4))


def test_frames() -> None:
    """Frames of runs and of dictionaries are parsed, and malformed ones raise `CodecError`."""
    block = bytes.fromhex("0c00000000000000070000000700000009000000ff2d02")
    values, lengths, end = sequences.rle_frame(block)
    out = np.empty(302, np.int32)
    rle.decode(block[values:lengths], block[lengths:end], 302, 32, out, strict=True)
    assert out.tolist() == [7] * 300 + [9] * 2
    frame = struct.pack("<QQ", 8, 16) + struct.pack("<2I", 1, 0) + struct.pack("<2Q", 10, 20)
    indices, items, end = sequences.dictionary_frame(frame)
    wide = np.empty(2, np.uint64)
    sequences.decode_dictionary(frame[indices:items], frame[items:end], 64, wide)
    assert wide.tolist() == [20, 10]
    assert sequences.rle_frame(bytes(8)) == (8, 8, 8)
    for bad in (b"", bytes(7), struct.pack("<Q", 1), struct.pack("<Q", 2**64 - 1) + bytes(8)):
        with pytest.raises(CodecError, match="run-length frame"):
            sequences.rle_frame(bad)
    for bad in (bytes(15), bytes(17), struct.pack("<QQ", 2**64 - 1, 1), struct.pack("<QQ", 1, 0)):
        with pytest.raises(CodecError, match="dictionary frame"):
            sequences.dictionary_frame(bad)


@given(st.integers(1, 2**40), st.integers(1, 2**40), st.integers(0, 2000))
def test_numbers_of_runs(start: int, step: int, runs: int) -> None:
    total = runs * start + step * runs * (runs - 1) // 2
    assert sequences.runs_of_constant(start, start * runs) == runs
    if total < 2**63:
        assert sequences.runs_of_range(start, step, total) == runs
    if 1 < total < 2**63 and start > 1:
        with pytest.raises(CodecError, match="do not add up"):
            sequences.runs_of_range(start, step, total - 1)
        with pytest.raises(CodecError, match="do not make up"):
            sequences.runs_of_constant(start, start * runs - 1)


@pytest.mark.parametrize(("start", "step", "n"), [(0, 1, 1), (1, 0, 1), (1, 1, -1), (2, 1, 2**63 - 1)])
def test_impossible_run_lengths(start: int, step: int, n: int) -> None:
    with pytest.raises(CodecError):
        sequences.runs_of_range(start, step, n)
    with pytest.raises(CodecError):
        sequences.runs_of_constant(0, 0)
