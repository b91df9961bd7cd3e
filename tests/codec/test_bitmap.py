"""Tests of bitmaps against NumPy's packbits and unpackbits."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancecodec import CodecError, bitmap

lengths = st.one_of(st.integers(0, 140), st.integers(0, 5000))
places = st.integers(0, 70)
seeds = st.integers(0, 2**32 - 1)


def random_bits(seed: int, count: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.random(count) < rng.choice([0.0, 0.1, 0.5, 1.0])).astype(np.uint8)


def packed(bits: np.ndarray) -> bytes:
    return np.packbits(bits, bitorder="little").tobytes()


def bits_of(data: bytes | np.ndarray) -> np.ndarray:
    return np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")


@given(lengths, places, seeds)
def test_pack(length: int, skew: int, seed: int) -> None:
    values = np.random.default_rng(seed).integers(0, 256, length, np.uint8) * random_bits(seed, length)
    out = np.full(skew + (length + 7) // 8 + 1, 0xAA, np.uint8)
    source = memoryview(b"x" * skew + values.tobytes())[skew:]
    bitmap.pack(source, out[skew:])
    assert out[skew:-1].tobytes() == packed(values != 0)
    assert out[-1] == 0xAA
    assert (out[:skew] == 0xAA).all()


@given(lengths, places, seeds)
def test_unpack(length: int, offset: int, seed: int) -> None:
    bits = random_bits(seed, offset + length)
    out = np.full(length + 1, 9, np.uint8)
    bitmap.unpack(packed(bits), offset, length, out)
    assert out[:-1].tolist() == bits[offset:].tolist()
    assert out[-1] == 9


@given(lengths, places, places, places, seeds)
def test_copy_leaves_other_bits(length: int, offset: int, at: int, after: int, seed: int) -> None:
    source = random_bits(seed, offset + length)
    target = random_bits(seed + 1, (at + length + after + 7) // 8 * 8)
    out = np.frombuffer(packed(target), np.uint8).copy()
    bitmap.copy(packed(source), offset, length, out, at)
    target[at : at + length] = source[offset:]
    assert bits_of(out).tolist() == target.tolist()


@given(lengths, places, places, st.booleans(), seeds)
def test_fill_leaves_other_bits(length: int, at: int, after: int, value: bool, seed: int) -> None:
    target = random_bits(seed, (at + length + after + 7) // 8 * 8)
    out = np.frombuffer(packed(target), np.uint8).copy()
    bitmap.fill(out, at, length, value)
    target[at : at + length] = value
    assert bits_of(out).tolist() == target.tolist()


@given(lengths, places, seeds)
def test_count(length: int, offset: int, seed: int) -> None:
    bits = random_bits(seed, offset + length)
    assert bitmap.count(packed(np.append(bits, 1)), offset, length) == bits[offset:].sum()


@given(lengths, lengths, seeds)
def test_gather(length: int, count: int, seed: int) -> None:
    bits = random_bits(seed, length)
    indices = np.random.default_rng(seed).integers(0, max(length, 1), count if length else 0)
    out = np.full((len(indices) + 7) // 8, 0xFF, np.uint8)
    bitmap.gather(packed(bits), length, indices, out)
    assert out.tobytes() == packed(bits[indices])


@pytest.mark.parametrize(
    "source",
    [
        pa.py_buffer(b"\xff\x0f"),
        bytearray(b"\xff\x0f"),
        memoryview(b"\xff\x0f"),
        np.array([0x0FFF], np.uint16),
        np.array([[0xFF], [0x0F]], np.uint8),
    ],
    ids=["arrow", "bytearray", "memoryview", "uint16", "two dimensions"],
)
def test_any_contiguous_buffer_is_bytes(source: object) -> None:
    assert bitmap.count(source, 0, 16) == 12


@pytest.mark.parametrize("index", [-1, 9, 2**63 - 1, -(2**63)])
def test_gather_rejects_indices(index: int) -> None:
    with pytest.raises(CodecError, match="outside a bitmap of 9 bits"):
        bitmap.gather(b"\xff\xff", 9, np.array([0, index]), bytearray(1))


@pytest.mark.parametrize(
    ("offset", "length"), [(0, 17), (17, 0), (-1, 1), (1, -1), (9, 8), (2**63 - 1, 1), (1, 2**63 - 1)]
)
def test_ranges_outside_are_rejected(offset: int, length: int) -> None:
    big = bytearray(64)
    with pytest.raises(CodecError):
        bitmap.count(b"ab", offset, length)
    with pytest.raises(CodecError):
        bitmap.unpack(b"ab", offset, length, big)
    with pytest.raises(CodecError):
        bitmap.copy(b"ab", offset, length, big)
    with pytest.raises(CodecError):
        bitmap.copy(bytes(big), 0, length, bytearray(2), offset)
    with pytest.raises(CodecError):
        bitmap.fill(bytearray(2), offset, length, True)


def test_outputs_that_are_too_small_or_read_only() -> None:
    with pytest.raises(CodecError):
        bitmap.pack(b"\1" * 9, bytearray(1))
    with pytest.raises(CodecError):
        bitmap.unpack(b"\xff", 0, 8, bytearray(7))
    with pytest.raises(CodecError):
        bitmap.gather(b"\xff", 8, np.zeros(9, np.int64), bytearray(1))
    with pytest.raises((BufferError, ValueError)):
        bitmap.pack(b"\1", b"\0")
    with pytest.raises((BufferError, ValueError)):
        bitmap.fill(pa.py_buffer(b"ab"), 0, 1, True)
    with pytest.raises((BufferError, ValueError)):
        bitmap.count(np.zeros(16, np.uint8)[::2], 0, 1)
