"""Tests of byte-stream split against NumPy's transpose, and against a page of pylance."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.pages import lance_page

from lancecodec import CodecError, byte_stream_split

lengths = st.one_of(st.integers(0, 300), st.sampled_from([511, 512, 513, 1023, 1024, 1025, 4097]))
widths = st.sampled_from([32, 64])
seeds = st.integers(0, 2**32 - 1)


def transposed(values: np.ndarray) -> bytes:
    return values.view(np.uint8).reshape(-1, values.itemsize).T.tobytes()


def random_values(seed: int, n: int, bits: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, n * bits // 8, np.uint8).view(f"<f{bits // 8}")


@given(lengths, widths, st.sampled_from([1, 3, 100, 512, 1024, 2**40]), st.integers(0, 9), seeds)
def test_pages(n: int, bits: int, chunk: int, skew: int, seed: int) -> None:
    values = random_values(seed, n, bits)
    parts = [transposed(values[i : i + chunk]) for i in range(0, n, chunk)]
    out = np.full(skew + values.nbytes + 1, 0xA5, np.uint8)
    ends = np.zeros(len(parts), np.int64)
    source = memoryview(b"x" * skew + values.tobytes())[skew:]
    assert byte_stream_split.encode(source, bits, chunk, out[skew:], ends) == len(parts)
    assert out[skew:-1].tobytes() == b"".join(parts)
    assert ends.tolist() == np.cumsum([len(part) for part in parts], dtype=np.int64).tolist()
    back = np.full(skew + values.nbytes + 1, 0xA5, np.uint8)
    byte_stream_split.decode_page(out[skew:-1], n, bits, chunk, back[skew:])
    assert back[skew:-1].tobytes() == values.tobytes()
    assert out[-1] == back[-1] == 0xA5


@given(st.integers(1, 1100), widths, st.integers(0, 9), seeds)
def test_chunks_and_positions(n: int, bits: int, skew: int, seed: int) -> None:
    values = random_values(seed, n, bits)
    data = memoryview(b"x" * skew + transposed(values))[skew:]
    out = np.full(values.nbytes + 1, 0xA5, np.uint8)
    byte_stream_split.decode(data, n, bits, out)
    assert out[:-1].tobytes() == values.tobytes()
    assert out[-1] == 0xA5
    positions = np.random.default_rng(seed).integers(0, n, 50)
    taken = np.empty(50, values.dtype)
    byte_stream_split.take(data, n, bits, positions, taken)
    assert taken.tobytes() == values[positions].tobytes()


def test_golden_vector() -> None:
    out, ends = bytearray(12), np.zeros(1, np.int64)
    assert byte_stream_split.encode(np.array([1.0, 2.0, -3.5], "<f4"), 32, 1024, out, ends) == 1
    assert out.hex() == "0000000000008000603f40c0"
    assert ends.tolist() == [12]


@pytest.mark.parametrize("bits", [32, 64])
def test_the_reference_writes_the_same_chunks(bits: int) -> None:
    """Chunks equal those of the reference, which writes them without general compression only with this metadata."""
    values = np.random.default_rng(1).integers(0, 9, 2500).astype(f"<f{bits // 8}")
    metadata = {"lance-encoding:compression": "fsst", "lance-encoding:bss": "on"}
    [page] = lance_page.pages_of(pa.array(values), "2.1", metadata)
    assert page.mini["value_compression"] == lance_page.split(bits)
    words, chunks = page.buffers[:2]
    out, ends = np.empty(values.nbytes, np.uint8), np.zeros(len(words) // 2, np.int64)
    assert byte_stream_split.encode(values, bits, 32768 // bits, out, ends) == len(ends)
    at = begin = 0
    for word, end in zip(np.frombuffer(words, "<u2").tolist(), ends.tolist(), strict=True):
        size = int.from_bytes(chunks[at + 2 : at + 4], "little")
        assert chunks[at + 8 : at + 8 + size] == out[begin:end].tobytes()
        at, begin = at + 8 * ((word >> 4) + 1), end
    assert at == len(chunks)


def test_what_does_not_fit() -> None:
    place = np.zeros(1, np.int64)
    with pytest.raises(CodecError, match="not support values of 16 bits"):
        byte_stream_split.decode(b"ab", 1, 16, bytearray(2))
    for data in (bytes(7), bytes(9), bytes(12)):
        with pytest.raises(CodecError, match="shorter or longer"):
            byte_stream_split.decode(data, 2, 32, bytearray(8))
        with pytest.raises(CodecError, match="are not 2 values"):
            byte_stream_split.decode_page(data, 2, 32, 1024, bytearray(8))
        with pytest.raises(CodecError, match="shorter or longer"):
            byte_stream_split.take(data, 2, 32, place, bytearray(8))
    for n in (-1, 3, 2**62):
        with pytest.raises(CodecError):
            byte_stream_split.decode(bytes(8), n, 32, bytearray(8))
    for position in (-1, 2):
        with pytest.raises(CodecError, match="outside 2 values"):
            byte_stream_split.take(bytes(8), 2, 32, np.array([position]), bytearray(8))
    with pytest.raises(CodecError, match="too small"):
        byte_stream_split.decode(bytes(8), 2, 32, bytearray(7))
    with pytest.raises(CodecError, match="too small"):
        byte_stream_split.encode(bytes(8), 32, 1, bytearray(8), place)
    with pytest.raises(CodecError, match="whole number"):
        byte_stream_split.encode(bytes(7), 32, 1, bytearray(8), place)
    with pytest.raises(ValueError, match="positive"):
        byte_stream_split.encode(bytes(8), 32, 0, bytearray(8), place)
