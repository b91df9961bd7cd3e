"""Tests of copies of one value against NumPy's tile."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancecodec import CodecError, constant

counts = st.one_of(st.integers(0, 70), st.sampled_from([1023, 1024, 1025, 4097, 9000]))
seeds = st.integers(0, 2**32 - 1)


@given(st.sampled_from([0, 1, 2, 3, 4, 8, 12, 16, 32, 100, 5000]), counts, st.integers(0, 9), seeds)
def test_fill(width: int, n: int, skew: int, seed: int) -> None:
    value = np.random.default_rng(seed).integers(0, 256, width, np.uint8)
    out = np.full(skew + n * width + 1, 0xA5, np.uint8)
    constant.fill(memoryview(b"x" * skew + value.tobytes())[skew:], n, out[skew:])
    assert out[skew:-1].tobytes() == np.tile(value, n).tobytes()
    assert (out[:skew] == 0xA5).all()
    assert out[-1] == 0xA5


@given(st.sampled_from([1, 2, 3, 7, 8, 13, 64, 100, 20_000, 40_001]), counts, st.integers(0, 20), seeds)
def test_fill_bits(bits: int, n: int, at: int, seed: int) -> None:
    n = min(n, 400_000 // bits)
    rng = np.random.default_rng(seed)
    value = rng.integers(0, 2, (bits + 7) // 8 * 8, np.uint8)
    target = rng.integers(0, 2, (at + n * bits + 15) // 8 * 8, np.uint8)
    out = np.packbits(target, bitorder="little")
    constant.fill_bits(np.packbits(value, bitorder="little"), bits, n, out, at)
    target[at : at + n * bits] = np.tile(value[:bits], n)
    assert np.array_equal(np.unpackbits(out, bitorder="little"), target)


def test_what_does_not_fit() -> None:
    for n in (-1, 3, 2**62):
        with pytest.raises(CodecError, match="too small"):
            constant.fill(b"abcd", n, bytearray(11))
    for n, at in [(-1, 0), (9, 0), (8, 1), (1, 8), (1, -1), (2**63 - 1, 0), (0, 9)]:
        with pytest.raises(CodecError, match="from bit"):
            constant.fill_bits(b"\1", 1, n, bytearray(1), at)
    for value, bits in [(b"", 1), (b"ab", 8), (b"a", 9), (b"a", 0), (b"a", -8), (b"a", 2**63 - 1)]:
        with pytest.raises(CodecError, match="a value of"):
            constant.fill_bits(value, bits, 1, bytearray(8))
