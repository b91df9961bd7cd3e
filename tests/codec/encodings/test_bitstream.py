"""Tests of the 2.0 bit stream against a model of single bits and golden vectors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancecodec import CodecError, bitstream

SIZES = [8, 16, 32, 64]
sizes = st.sampled_from(SIZES)
counts = st.one_of(st.integers(0, 40), st.sampled_from([1023, 1024, 1025, 4097]), st.integers(0, 3000))
skews = st.sampled_from([0, 1, 3, 8])
seeds = st.integers(0, 2**32 - 1)


def random_values(seed: int, n: int, bits: int, width: int, signed: bool) -> np.ndarray:
    """Return random values of `width` bits, some of them the smallest and largest."""
    rng = np.random.default_rng(seed)
    low, high = (-(2 ** (width - 1)), 2 ** (width - 1) - 1) if signed else (0, 2**width - 1)
    kind = np.dtype(f"<{'i' if signed else 'u'}{bits // 8}")
    values = rng.integers(low, high, n, kind, endpoint=True)
    return np.where(rng.random(n) < 0.1, rng.choice(np.array([low, high], kind), n), values)


def model(values: np.ndarray, width: int) -> bytes:
    raw = np.ascontiguousarray(values).view(np.uint8).reshape(len(values), values.itemsize)
    return np.packbits(np.unpackbits(raw, axis=1, bitorder="little")[:, :width], bitorder="little").tobytes()


def ragged(data: bytes | np.ndarray, skew: int) -> memoryview:
    return memoryview(b"." * skew + bytes(data))[skew:]


def encode(values: np.ndarray, width: int, signed: bool, skew: int = 0) -> bytes:
    size = bitstream.encoded_size(len(values), width)
    out = bytearray(b"\xa5" * (skew + size + 9))
    target = memoryview(out)[skew : skew + size]
    assert bitstream.encode(ragged(values, skew), values.itemsize * 8, width, signed, target) == size
    assert out[skew + size :] == b"\xa5" * 9
    return bytes(out[skew : skew + size])


def decode(data: bytes, kind: np.dtype, width: int, start: int, stop: int, skew: int = 0) -> np.ndarray:
    size = (stop - start) * kind.itemsize
    out = bytearray(b"\xa5" * (skew + size + 9))
    target = memoryview(out)[skew : skew + size]
    signed = kind.kind == "i"
    assert bitstream.decode(ragged(data, skew), kind.itemsize * 8, width, signed, start, stop, target) == stop - start
    assert out[skew + size :] == b"\xa5" * 9
    return np.frombuffer(bytes(out[skew : skew + size]), kind)


def select(data: bytes, kind: np.dtype, width: int, positions: np.ndarray, skew: int = 0) -> np.ndarray:
    out = np.zeros(len(positions), kind)
    bits, signed = kind.itemsize * 8, kind.kind == "i"
    assert bitstream.select(ragged(data, skew), bits, width, signed, positions, out) == len(positions)
    return out


def test_golden() -> None:
    signed = np.array([5, 6, 7, -1, -2], np.int32)
    assert encode(signed, 11, True).hex() == "0530c001feef7f"
    assert decode(bytes.fromhex("0530c001feef7f"), signed.dtype, 11, 0, 5).tolist() == signed.tolist()
    unsigned = np.array([1, 2, 3, 4, 5, 6, 7, 0], np.uint8)
    assert encode(unsigned, 3, False).hex() == "d1581f"
    assert decode(bytes.fromhex("d1581f"), unsigned.dtype, 3, 0, 8).tolist() == unsigned.tolist()


@pytest.mark.parametrize("bits", SIZES)
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("skew", [0, 1])
def test_every_width(bits: int, signed: bool, skew: int) -> None:
    for width in range(1, bits + 1):
        values = random_values(width, 203, bits, width, signed)
        data = encode(values, width, signed, skew)
        assert data == model(values, width)
        assert np.array_equal(decode(data, values.dtype, width, 0, 203, skew), values)
        positions = np.random.default_rng(width).integers(0, 203, 50)
        assert np.array_equal(select(data, values.dtype, width, positions, skew), values[positions])


@given(sizes, st.booleans(), counts, skews, seeds, st.data())
def test_streams(bits: int, signed: bool, n: int, skew: int, seed: int, data: st.DataObject) -> None:
    width = data.draw(st.integers(1, bits))
    values = random_values(seed, n, bits, width, signed)
    stream = encode(values, width, signed, skew)
    assert stream == model(values, width)
    start = data.draw(st.integers(0, n))
    stop = data.draw(st.integers(start, n))
    assert np.array_equal(decode(stream, values.dtype, width, start, stop, skew), values[start:stop])
    if n:
        positions = np.array(data.draw(st.lists(st.integers(0, n - 1), max_size=30)), np.int64)
        assert np.array_equal(select(stream, values.dtype, width, positions, skew), values[positions])


@given(sizes, st.booleans(), counts, seeds, st.data())
def test_width(bits: int, signed: bool, n: int, seed: int, data: st.DataObject) -> None:
    values = random_values(seed, n, bits, data.draw(st.integers(1, bits)), signed)
    if data.draw(st.booleans()):
        values = np.maximum(values, 0)
    negative = bool((values < 0).any())
    magnitude = max((int(v) if v >= 0 else ~int(v) for v in values), default=0).bit_length()
    expected = max(magnitude + negative, 1)
    assert bitstream.width(values.view(np.uint8), bits, signed) == (expected, negative)
    encode(values, expected, negative)
    if expected > 1:
        with pytest.raises(CodecError, match="does not fit"):
            encode(values, expected - 1, negative)


def test_unsigned_values_have_no_sign() -> None:
    assert bitstream.width(np.array([2**64 - 1], np.uint64), 64, False) == (64, False)
    assert bitstream.width(np.array([-1], np.int64), 64, True) == (1, True)
    assert bitstream.width(np.array([-(2**63)], np.int64), 64, True) == (64, True)
    assert bitstream.width(b"", 64, True) == (1, False)


def test_bytes_behind_the_range_do_not_matter() -> None:
    values = np.arange(9, dtype=np.uint16)
    assert decode(model(values, 5) + b"\xff" * 20, values.dtype, 5, 2, 9).tolist() == list(range(2, 9))


def test_bad_arguments() -> None:
    data, out, position = bytes(10), bytearray(80), np.zeros(1, np.int64)
    calls = [
        lambda: bitstream.decode(data, 24, 3, False, 0, 1, out),
        lambda: bitstream.decode(data, 32, 0, False, 0, 1, out),
        lambda: bitstream.decode(data, 32, 33, False, 0, 1, out),
        lambda: bitstream.decode(data, 32, 8, False, 0, 11, out),
        lambda: bitstream.decode(data, 32, 9, False, 0, 9, out),
        lambda: bitstream.decode(data, 32, 8, False, -1, 1, out),
        lambda: bitstream.decode(data, 32, 8, False, 2, 1, out),
        lambda: bitstream.decode(data, 64, 1, False, 0, 11, out),
        lambda: bitstream.decode(data, 32, 8, False, 2**62, 2**62 + 1, out),
        lambda: bitstream.select(data, 32, 8, False, position + 10, out),
        lambda: bitstream.select(data, 32, 8, False, position - 1, out),
        lambda: bitstream.select(data, 32, 8, False, position, out[:3]),
        lambda: bitstream.encode(bytes(7), 32, 8, False, out),
        lambda: bitstream.encode(bytes(8), 32, 8, False, bytearray(1)),
        lambda: bitstream.encode(np.array([8], np.int32), 32, 4, True, out),
        lambda: bitstream.encode(np.array([-9], np.int32), 32, 4, True, out),
        lambda: bitstream.encode(np.array([-1], np.int32), 32, 4, False, out),
        lambda: bitstream.encoded_size(2**62, 3),
        lambda: bitstream.encoded_size(-1, 3),
        lambda: bitstream.width(bytes(9), 64, False),
    ]
    for number, call in enumerate(calls):
        with pytest.raises(CodecError):
            pytest.fail(f"call {number} returned {call()}")
