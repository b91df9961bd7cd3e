"""Tests of flat values of any number of bits against NumPy."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.pages import lance_page

from lancecodec import CodecError, bitmap, flat

widths = st.sampled_from([1, 2, 3, 7, 8, 9, 16, 24, 31, 32, 40, 64, 128, 200])
lengths = st.one_of(st.integers(0, 70), st.sampled_from([1023, 1024, 1025, 4096, 4097]))
places = st.integers(0, 20)
seeds = st.integers(0, 2**32 - 1)


def random_bits(seed: int, count: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2, count, np.uint8)


def packed(bits: np.ndarray) -> bytes:
    return np.packbits(bits, bitorder="little").tobytes()


def bits_of(data: np.ndarray) -> np.ndarray:
    return np.unpackbits(data, bitorder="little")


@given(lengths, widths, st.integers(0, 9), seeds)
def test_decode(n: int, bits: int, skew: int, seed: int) -> None:
    data = packed(random_bits(seed, n * bits))
    assert flat.size(n, bits) == len(data)
    out = np.full(skew + len(data) + 1, 0xA5, np.uint8)
    flat.decode(memoryview(b"x" * skew + data)[skew:], n, bits, out[skew:])
    assert out[skew:-1].tobytes() == data
    assert out[-1] == 0xA5
    for wrong in (data + b"\0", data[:-1]):
        if wrong != data:
            with pytest.raises(CodecError, match="shorter or longer"):
                flat.decode(wrong, n, bits, np.empty(len(data) + 1, np.uint8))


@given(lengths, widths, places, places, seeds)
def test_decode_to_any_bit(n: int, bits: int, at: int, after: int, seed: int) -> None:
    source = random_bits(seed, n * bits)
    target = random_bits(seed + 1, (at + n * bits + after + 7) // 8 * 8)
    out = np.frombuffer(packed(target), np.uint8).copy()
    flat.decode_bits(packed(source), n, bits, out, at)
    target[at : at + n * bits] = source
    assert bits_of(out).tolist() == target.tolist()


@given(lengths, widths, places, st.sampled_from([1, 2, 4, 8, 64, 1024, 4096]), seeds)
def test_encode(n: int, bits: int, bit: int, chunk: int, seed: int) -> None:
    source = random_bits(seed, bit + n * bits)
    parts = [packed(source[bit + i * bits : bit + min(i + chunk, n) * bits]) for i in range(0, n, chunk)]
    out = np.full(sum(map(len, parts)) + 1, 0xA5, np.uint8)
    ends = np.zeros(len(parts) + 1, np.int64)
    assert flat.encode(packed(source), bit, n, bits, chunk, out, ends) == len(parts)
    assert out[:-1].tobytes() == b"".join(parts)
    assert out[-1] == 0xA5
    assert ends.tolist() == [*np.cumsum([len(part) for part in parts], dtype=np.int64).tolist(), 0]


@given(st.integers(1, 1000), widths, st.one_of(st.integers(0, 50), st.just(5000)), places, seeds)
def test_take(n: int, bits: int, count: int, at: int, seed: int) -> None:
    source = random_bits(seed, n * bits).reshape(n, bits)
    positions = np.random.default_rng(seed).integers(0, n, min(count, 40_000 // bits))
    expected = source[positions].ravel()
    target = random_bits(seed + 1, (at + len(expected) + 15) // 8 * 8)
    out = np.frombuffer(packed(target), np.uint8).copy()
    flat.take_bits(packed(source.ravel()), n, bits, positions, out, at)
    target[at : at + len(expected)] = expected
    assert bits_of(out).tolist() == target.tolist()
    taken = np.zeros((len(expected) + 7) // 8, np.uint8)
    if bits % 8 == 0:
        flat.take(packed(source.ravel()), n, bits, positions, taken)
        assert taken.tobytes() == packed(expected)
    else:
        with pytest.raises(CodecError, match="does not support this bit width"):
            flat.take(packed(source.ravel()), n, bits, positions, taken)


@given(lengths, places, seeds)
def test_booleans_from_bytes(n: int, at: int, seed: int) -> None:
    values = np.random.default_rng(seed).integers(0, 3, n, np.uint8)
    target = random_bits(seed, (at + n + 9) // 8 * 8)
    out = np.frombuffer(packed(target), np.uint8).copy()
    flat.booleans_from_bytes(values, out, at)
    target[at : at + n] = values != 0
    assert bits_of(out).tolist() == target.tolist()
    back = np.empty(n, np.uint8)
    bitmap.unpack(out, at, n, back)
    assert back.tolist() == (values != 0).tolist()


def test_golden_vector() -> None:
    ends, out = np.zeros(1, np.int64), bytearray(2)
    assert flat.encode(packed(np.array([1, 0, 1, 1, 0, 0, 1, 0, 1])), 0, 9, 1, 4096, out, ends) == 1
    assert out.hex() == "4d01"
    assert ends.tolist() == [2]


@pytest.mark.parametrize(
    ("bits", "values"),
    [(1, 4096), (8, 4096), (16, 2048), (32, 1024), (64, 512), (128, 256), (24, 2048), (8 * 4092, 2), (8 * 4093, 0)],
)
def test_chunks_of_the_reference(bits: int, values: int) -> None:
    assert flat.chunk_values(bits) == values


def test_chunks_of_rows_with_validity() -> None:
    assert flat.chunk_values(3 * 32, extra_bytes=1) == 512
    assert flat.chunk_values(3, extra_bytes=1) == 2048
    assert [flat.power_of_two_values(limit) for limit in (1, 3, 1023, 1024, 2**62 + 1)] == [1, 2, 512, 1024, 2**62]


@pytest.mark.parametrize(
    "array",
    [
        pa.array(np.random.default_rng(1).integers(0, 2, 9000).astype(bool)),
        pa.array(np.random.default_rng(2).integers(-(2**62), 2**62, 3000)),
        pa.array(np.random.default_rng(3).integers(-100, 100, 5000).astype(np.int8)),
    ],
    ids=["bool", "int64", "int8"],
)
def test_the_reference_writes_the_same_chunks(array: pa.Array) -> None:
    bits = array.type.bit_width
    [page] = lance_page.pages_of(array, "2.1", {"lance-encoding:compression": "none"})
    assert page.mini["value_compression"] == lance_page.flat(bits)
    words, chunks = page.buffers[:2]
    out = np.empty(flat.size(len(array), bits), np.uint8)
    ends = np.zeros(len(words) // 2, np.int64)
    count = flat.encode(array.buffers()[1], 0, len(array), bits, flat.chunk_values(bits), out, ends)
    assert count == len(words) // 2
    at = begin = 0
    for word, end in zip(np.frombuffer(words, "<u2").tolist(), ends.tolist(), strict=True):
        size = int.from_bytes(chunks[at + 2 : at + 4], "little")
        assert chunks[at + 8 : at + 8 + size] == out[begin:end].tobytes()
        at, begin = at + 8 * ((word >> 4) + 1), end
    assert at == len(chunks)


@pytest.mark.parametrize(("n", "bits"), [(-1, 8), (1, 0), (1, -8), (2**62, 8), (2, 2**62), (2**63 - 1, 2**63 - 1)])
def test_impossible_sizes(n: int, bits: int) -> None:
    out, positions = bytearray(64), np.zeros(1, np.int64)
    with pytest.raises(CodecError):
        flat.size(n, bits)
    with pytest.raises(CodecError):
        flat.decode(bytes(16), n, bits, out)
    with pytest.raises(CodecError):
        flat.decode_bits(bytes(16), n, bits, out, 0)
    with pytest.raises(CodecError):
        flat.take(bytes(16), n, bits, positions, out)
    with pytest.raises(CodecError):
        flat.encode(bytes(16), 0, n, bits, 8, out, positions)


def test_what_does_not_fit() -> None:
    with pytest.raises(CodecError, match="too small"):
        flat.decode(bytes(8), 2, 32, bytearray(7))
    with pytest.raises(CodecError, match="from bit 1 on"):
        flat.decode_bits(bytes(8), 2, 32, bytearray(8), 1)
    with pytest.raises(CodecError, match="outside 2 values"):
        flat.take(bytes(8), 2, 32, np.array([2]), bytearray(8))
    with pytest.raises(CodecError, match="outside 2 values"):
        flat.take_bits(b"\3", 2, 1, np.array([0, -1]), bytearray(8))
    with pytest.raises(CodecError, match="from bit 2 on"):
        flat.encode(bytes(8), 2, 63, 1, 8, bytearray(16), np.zeros(8, np.int64))
    with pytest.raises(CodecError, match="in 2 chunks"):
        flat.encode(bytes(8), 0, 2, 32, 1, bytearray(8), np.zeros(1, np.int64))
    with pytest.raises(ValueError, match="positive"):
        flat.encode(bytes(8), 0, 2, 32, 0, bytearray(8), np.zeros(1, np.int64))
    with pytest.raises(ValueError, match="at least 1, not 0"):
        flat.power_of_two_values(0)


def test_chunks_of_rows_as_the_reference_writes_them() -> None:
    items = pa.array([None if i % 7 == 0 else i * 40_000_000 for i in range(-45, 45)] * 100, pa.int32())
    [page] = lance_page.pages_of(pa.FixedSizeListArray.from_arrays(items, 3), "2.1")
    words = np.frombuffer(page.buffers[0], "<u2")
    assert 1 << (int(words[0]) & 15) == flat.chunk_values(3 * 32, extra_bytes=1)
