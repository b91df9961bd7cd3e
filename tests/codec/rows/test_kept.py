"""Tests of values that a bitmap keeps, against NumPy's boolean indexing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancecodec import CodecError, kept

counts = st.one_of(st.integers(0, 70), st.integers(120, 200), st.integers(0, 5000))
widths = st.sampled_from([1, 2, 3, 4, 8, 12, 16, 17, 32])
shares = st.sampled_from([0.0, 0.02, 0.1, 0.3, 0.7, 0.95, 1.0])
seeds = st.integers(0, 2**32 - 1)


def mask_of(rng: np.random.Generator, count: int, share: float, offset: int) -> tuple[np.ndarray, np.ndarray]:
    """Return random flags, and a bitmap that has them from bit `offset` on and noise before and behind them."""
    flags = rng.random(count) < share
    bits = rng.integers(0, 2, offset + count + 7).astype(bool)
    bits[offset : offset + count] = flags
    return flags, np.packbits(bits, bitorder="little")[: (offset + count + 7) // 8]


@given(counts, widths, shares, st.integers(0, 9), seeds)
def test_fixed(count: int, width: int, share: float, offset: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    flags, bits = mask_of(rng, count, share, offset)
    values = rng.integers(0, 256, (count, width), np.uint8)
    out = bytearray(int(flags.sum()) * width + 1)
    kept.fixed(values.tobytes(), width, bits, offset, count, memoryview(out)[:-1])
    assert bytes(out[:-1]) == values[flags].tobytes()
    assert out[-1] == 0


@given(counts, shares, st.integers(0, 9), st.integers(0, 9), seeds)
def test_bitmap(count: int, share: float, offset: int, start: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    flags, bits = mask_of(rng, count, share, offset)
    values, stored = mask_of(rng, count, 0.5, start)
    out = np.zeros((int(flags.sum()) + 7) // 8, np.uint8)
    kept.bitmap(stored, start, bits, offset, count, out, int(flags.sum()))
    assert np.unpackbits(out, bitorder="little")[: flags.sum()].astype(bool).tolist() == values[flags].tolist()


@given(counts, shares, st.booleans(), st.integers(0, 9), st.integers(0, 9), seeds)
def test_strings(count: int, share: float, wide: bool, offset: int, base: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    flags, bits = mask_of(rng, count, share, offset)
    ends = np.concatenate([[base], base + np.cumsum(rng.integers(0, 20, count))]).astype(np.int64 if wide else np.int32)
    data = rng.integers(0, 256, int(ends[-1]), np.uint8).tobytes()
    expected = [data[ends[i] : ends[i + 1]] for i in np.flatnonzero(flags)]
    out_ends = np.full(len(expected) + 1, -1, ends.dtype)
    total = kept.ends(ends, wide, bits, offset, count, out_ends, len(expected))
    assert out_ends.tolist() == np.cumsum([0, *map(len, expected)]).tolist()
    assert total == out_ends[-1]
    out = bytearray(total)
    kept.strings(data, ends, wide, bits, offset, count, out)
    assert bytes(out) == b"".join(expected)


@pytest.mark.parametrize("seed", range(3))
def test_large(seed: int) -> None:
    rng = np.random.default_rng(seed)
    flags, bits = mask_of(rng, 1_000_000, [0.01, 0.5, 0.9][seed], 3)
    values = rng.integers(0, 2**63, len(flags))
    out = np.empty(int(flags.sum()), np.int64)
    kept.fixed(values, 8, bits, 3, len(flags), out)
    assert (out == values[flags]).all()


@pytest.mark.parametrize("room", [0, 4, 6, 100])
def test_another_number_of_values_than_kept(room: int) -> None:
    bits = np.array([0b11111], np.uint8)
    with pytest.raises(CodecError):
        kept.fixed(bytes(8), 1, bits, 0, 8, bytearray(room))
    with pytest.raises(CodecError):
        kept.bitmap(bytes(1), 0, bits, 0, 8, bytearray(20), room)
    with pytest.raises(CodecError):
        kept.ends(np.zeros(9, np.int32), False, bits, 0, 8, np.zeros(200, np.int32), room)


@pytest.mark.parametrize("ends", [[0, 5, 3, 9], [-1, 2, 3, 9], [0, 2**31 - 1, -5, 9], [0, 1, 2, -(2**31)]])
@pytest.mark.parametrize("wide", [True, False])
def test_damaged_offsets(ends: list[int], wide: bool) -> None:
    offsets = np.array(ends, np.int64 if wide else np.int32)
    with pytest.raises(CodecError):
        kept.ends(offsets, wide, b"\xff", 0, 3, bytearray(100), 3)
    with pytest.raises(CodecError):
        kept.strings(bytes(9), offsets, wide, b"\x07", 0, 3, bytearray(2))


def test_buffers_that_are_too_small() -> None:
    for call in (
        lambda: kept.fixed(bytes(7), 1, b"\xff", 0, 8, bytearray(8)),
        lambda: kept.fixed(bytes(9), 1, b"\xff", 1, 8, bytearray(8)),
        lambda: kept.fixed(bytes(9), 0, b"\xff", 0, 8, bytearray(8)),
        lambda: kept.fixed(bytes(8), 1, b"\xff", -1, 8, bytearray(8)),
        lambda: kept.fixed(bytes(9), 2, b"\x01", 0, 1, bytearray(3)),
        lambda: kept.bitmap(b"\xff", 1, b"\xff", 0, 8, bytearray(1), 8),
        lambda: kept.ends(bytes(4 * 8), False, b"\xff", 0, 8, bytearray(99), 8),
        lambda: kept.ends(bytes(4 * 9), False, b"\xff", 0, 8, bytearray(4 * 8), 8),
        lambda: kept.strings(b"", bytes(4 * 8), False, b"\xff", 0, 8, bytearray(0)),
    ):
        with pytest.raises(CodecError):
            call()


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("holes", [0, 1, 3, 40])
def test_damaged_offsets_among_many_kept_strings(dtype: type[np.generic], holes: int) -> None:
    """Each string that is kept is checked, whichever way the words of the bitmap are taken."""
    flags = np.ones(200, bool)
    flags[np.arange(holes) * 4 + 1] = False
    bits, good = np.packbits(flags, bitorder="little"), (np.arange(201) * 3).astype(dtype)
    out = np.empty(int(flags.sum()) + 1, dtype)
    assert kept.ends(good, dtype is np.int64, bits, 0, 200, out, int(flags.sum())) == 3 * flags.sum()
    for place in (0, 3, 64, 127, 199, 200):
        for value in (-1, -(2**31), 1):
            ends = good.copy()
            ends[place] = good[place] if value == 1 and place == 0 else value
            if (ends == good).all():
                continue
            with pytest.raises(CodecError, match="offsets"):
                kept.ends(ends, dtype is np.int64, bits, 0, 200, out, int(flags.sum()))
