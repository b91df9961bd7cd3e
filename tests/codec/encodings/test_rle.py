"""Tests of run-length encoding against a model of its rules, and against pages of pylance."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.pages import lance_page

from lancecodec import CodecError, rle

WIDTHS = [8, 16, 32, 64]
lengths_of_pages = st.one_of(st.integers(0, 200), st.sampled_from([1023, 1024, 1025, 4095, 4096, 4097, 8192, 20000]))
averages = st.sampled_from([1.0, 1.2, 2.0, 8.0, 100.0, 700.0, 5000.0])
seeds = st.integers(0, 2**32 - 1)


def random_values(seed: int, n: int, bits: int, average: float) -> np.ndarray:
    rng = np.random.default_rng(seed)
    runs = rng.integers(0, rng.choice([2, 256]), n + 1).astype(np.uint8).astype(f"<u{bits // 8}")
    runs = runs * np.asarray(2**bits // 256 + 1, runs.dtype)
    return np.repeat(runs, rng.geometric(1 / average, n + 1))[:n]


def entries_of(values: np.ndarray, longest: int) -> list[tuple[int, int]]:
    if len(values) == 0:
        return []
    starts = np.flatnonzero(np.append(True, values[1:] != values[:-1]))
    found = []
    for value, length in zip(values[starts].tolist(), np.diff(np.append(starts, len(values))).tolist(), strict=True):
        found += [(value, longest)] * (length // longest)
        found += [(value, length % longest)] if length % longest else []
    return found


def model_chunks(
    values: np.ndarray, length_bits: int = 8, max_values: int = 4096, max_bytes: int = 8186
) -> list[tuple[int, list[tuple[int, int]]]]:
    """Return the number of values and the entries of each chunk, by the rule of the format."""
    unit, longest = values.itemsize + length_bits // 8, 2**length_bits - 1
    chunks, begin = [], 0
    while begin < len(values):
        left = len(values) - begin
        taken = left
        if left > max_values or len(entries_of(values[begin:], longest)) * unit > max_bytes:
            taken = 1 << (min(left, max_values).bit_length() - 1)
            while len(entries_of(values[begin : begin + taken], longest)) * unit > max_bytes:
                taken //= 2
        chunks.append((taken, entries_of(values[begin : begin + taken], longest)))
        begin += taken
    return chunks


def odd(data: bytes, skew: int) -> memoryview:
    return memoryview(b"." * skew + data)[skew:]


def encode(values: np.ndarray, length_bits: int = 8, **limits: int) -> tuple[list[int], list[bytes], list[bytes]]:
    bits = 8 * values.itemsize
    _, entries = rle.count(values, bits, limits.get("max_values", 4096), length_bits)
    value_size, length_size, places = rle.encode_bound(len(values), bits, entries, length_bits, **limits)
    out_values, out_lengths = np.empty(value_size, np.uint8), np.empty(length_size, np.uint8)
    value_ends, length_ends, counts = np.zeros((3, places), np.int64)
    source = odd(values.tobytes(), 1)
    ends = value_ends, length_ends
    chunks = rle.encode(source, bits, out_values, out_lengths, *ends, counts, length_bits, **limits)
    v = np.split(out_values, value_ends[:chunks])[:chunks]
    s = np.split(out_lengths, length_ends[:chunks])[:chunks]
    return counts[:chunks].tolist(), [part.tobytes() for part in v], [part.tobytes() for part in s]


def decode(values: bytes, lengths: bytes, n: int, bits: int, length_bits: int = 8, strict: bool = False) -> np.ndarray:
    out = np.full(1 + n * bits // 8 + 3, 0xA5, np.uint8)
    rle.decode(odd(values, 3), odd(lengths, 1), n, bits, out[1:], length_bits, strict)
    assert out[0] == 0xA5
    assert (out[1 + n * bits // 8 :] == 0xA5).all()
    return np.frombuffer(out[1 : 1 + n * bits // 8].tobytes(), f"<u{bits // 8}")


@given(lengths_of_pages, st.sampled_from(WIDTHS), averages, st.sampled_from([8, 8, 16, 32]), seeds)
def test_chunks_of_the_rule_and_back(n: int, bits: int, average: float, length_bits: int, seed: int) -> None:
    values = random_values(seed, n, bits, average)
    counts, runs, lengths = encode(values, length_bits)
    model = model_chunks(values, length_bits)
    assert counts == [taken for taken, _ in model]
    at = 0
    for taken, run, length, (_, entries) in zip(counts, runs, lengths, model, strict=True):
        assert run == np.array([value for value, _ in entries], values.dtype).tobytes()
        assert length == np.array([size for _, size in entries], f"<u{length_bits // 8}").tobytes()
        got = decode(run, length, taken, bits, length_bits, strict=True)
        assert got.tobytes() == values[at : at + taken].tobytes()
        at += taken


@given(lengths_of_pages, st.sampled_from([64, 512, 32768]), st.sampled_from([800, 30000]), averages, seeds)
def test_other_limits(n: int, max_values: int, max_bytes: int, average: float, seed: int) -> None:
    values = random_values(seed, n, 32, average)
    counts, runs, _ = encode(values, max_values=max_values, max_bytes=max_bytes)
    model = model_chunks(values, 8, max_values, max_bytes)
    assert counts == [taken for taken, _ in model]
    assert [len(run) // 4 for run in runs] == [len(entries) for _, entries in model]


@given(lengths_of_pages, st.sampled_from(WIDTHS), averages, st.sampled_from([0, 64, 4096]), seeds)
def test_count(n: int, bits: int, average: float, cut: int, seed: int) -> None:
    values = random_values(seed, n, bits, average)
    runs, entries = rle.count(values, bits, cut)
    assert runs == len(entries_of(values, 2**40))
    pieces = [values[i : i + cut] for i in range(0, n, cut)] if cut else [values]
    assert entries == sum(len(entries_of(piece, 255)) for piece in pieces)


@given(lengths_of_pages, st.sampled_from(WIDTHS), averages, seeds)
def test_page_and_positions(n: int, bits: int, average: float, seed: int) -> None:
    values = random_values(seed, n, bits, average)
    counts, runs, lengths = encode(values)
    value_ends = np.cumsum([len(run) for run in runs], dtype=np.int64)
    length_ends = np.cumsum([len(length) for length in lengths], dtype=np.int64)
    out = np.empty_like(values)
    counted = np.array(counts, np.int64)
    assert rle.decode_page(b"".join(runs), value_ends, b"".join(lengths), length_ends, counted, bits, out) == n
    assert out.tobytes() == values.tobytes()
    if n:
        positions = np.random.default_rng(seed).integers(0, counts[0], 100)
        taken = np.empty(100, values.dtype)
        rle.take(odd(runs[0], 1), lengths[0], counts[0], bits, positions, taken)
        assert taken.tolist() == values[positions].tolist()


@pytest.mark.parametrize("length_bits", [8, 16, 32])
def test_positions_among_many_entries(length_bits: int) -> None:
    values = np.random.default_rng(1).integers(0, 2**32, 100_000, np.uint32)
    sizes = np.random.default_rng(2).integers(1, 4, 100_000).astype(f"<u{length_bits // 8}")
    expected = np.repeat(values, sizes)
    positions = np.append(np.random.default_rng(3).integers(0, len(expected), 500), [0, len(expected) - 1])
    out = np.empty(len(positions), np.uint32)
    rle.take(values, sizes, len(expected), 32, positions, out, length_bits)
    assert out.tolist() == expected[positions].tolist()


@given(st.integers(0, 3000), st.sampled_from(WIDTHS), averages, seeds)
def test_block(n: int, bits: int, average: float, seed: int) -> None:
    values = random_values(seed, n, bits, average)
    entries = entries_of(values, 255)
    out = np.full(rle.block_size(rle.count(values, bits, cut=0)[1], bits) + 1, 0xA5, np.uint8)
    assert rle.encode_block(values, bits, out) == len(out) - 1
    runs = np.array([value for value, _ in entries], values.dtype).tobytes()
    expected = struct.pack("<Q", len(runs)) + runs + bytes(length for _, length in entries)
    assert out[:-1].tobytes() == expected
    assert out[-1] == 0xA5
    back = np.empty_like(values)
    rle.decode_block(odd(expected, 5), n, bits, back)
    assert back.tobytes() == values.tobytes()
    if n:
        for wrong in (n - 1, n + 1):
            with pytest.raises(CodecError, match="do not cover"):
                rle.decode_block(expected, wrong, bits, np.empty(n + 1, values.dtype))


def test_golden_vectors() -> None:
    values = np.repeat(np.array([7, 9], np.int32), [300, 2])
    counts, runs, lengths = encode(values)
    assert counts == [302]
    assert runs == [bytes.fromhex("070000000700000009000000")]
    assert lengths == [bytes.fromhex("ff2d02")]
    block = bytearray(23)
    assert rle.encode_block(values, 32, block) == 23
    assert block.hex() == "0c00000000000000070000000700000009000000ff2d02"


@given(st.integers(1, 600), st.sampled_from(WIDTHS), st.sampled_from([8, 16, 32]), seeds)
def test_entries_past_the_values_are_cut_unless_strict(n: int, bits: int, length_bits: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, rng.choice([3, 40, 256]), n + 3).astype(f"<u{length_bits // 8}")
    values = rng.integers(0, 256, n + 3).astype(f"<u{bits // 8}")
    got = decode(values.tobytes(), sizes.tobytes(), n, bits, length_bits)
    assert got.tolist() == np.repeat(values, sizes)[:n].tolist()
    with pytest.raises(CodecError, match="do not cover"):
        decode(values.tobytes(), sizes.tobytes(), n, bits, length_bits, strict=True)


def test_runs_longer_than_any_buffer() -> None:
    sizes = np.array([2**32 - 1, 2**32 - 1], "<u4")
    assert decode(b"\1\2", sizes.tobytes(), 5000, 8, 32).tolist() == [1] * 5000
    out = np.empty(2, np.uint8)
    rle.take(b"\1\2", sizes, 2**33 - 2, 8, np.array([2**32 - 1, 2**32 - 2]), out, 32)
    assert out.tolist() == [2, 1]


@pytest.mark.parametrize(
    ("values", "lengths", "n", "bits", "length_bits", "match"),
    [
        (b"\1\2\3\4", b"\0", 1, 32, 8, "do not cover"),
        (b"\1\2\3\4", b"\3", 4, 32, 8, "do not cover"),
        (b"", b"", 1, 8, 8, "do not cover"),
        (b"\1\2\3", b"\1", 1, 32, 8, "whole number"),
        (b"\1\2", b"\1\2\3", 1, 8, 16, "whole number"),
        (b"\1\2", b"\1", 1, 8, 8, "have 1 run lengths"),
        (b"\1", b"\1", 1, 24, 8, "not support values of 24 bits"),
        (b"\1", b"\1", 1, 8, 64, "not support lengths of 64 bits"),
        (b"\1", b"\1", -1, 8, 8, "too small"),
        (b"\1", b"\1", 101, 8, 8, "too small"),
    ],
)
def test_bad_entries(values: bytes, lengths: bytes, n: int, bits: int, length_bits: int, match: str) -> None:
    with pytest.raises(CodecError, match=match):
        rle.decode(values, lengths, n, bits, bytearray(100), length_bits)


@pytest.mark.parametrize("block", [b"", bytes(7), struct.pack("<Q", 1), struct.pack("<Q", 2**63) + bytes(9)])
def test_bad_blocks(block: bytes) -> None:
    with pytest.raises(CodecError, match="header"):
        rle.decode_block(block, 1, 8, bytearray(10))


def test_positions_outside() -> None:
    for position in (-1, 5, 2**63 - 1):
        with pytest.raises(CodecError, match="outside 5 values"):
            rle.take(b"\1", b"\5", 5, 8, np.array([0, position]), bytearray(2))
    with pytest.raises(CodecError, match="do not cover"):
        rle.take(b"\1", b"\3", 5, 8, np.array([4]), bytearray(2))


def test_small_outputs_and_odd_limits() -> None:
    values = np.arange(1000, dtype=np.uint32)
    places = np.zeros(4, np.int64)
    for out, lengths in [(np.empty(3999, np.uint8), bytearray(2000)), (np.empty(8000, np.uint8), bytearray(999))]:
        with pytest.raises(CodecError, match="too small"):
            rle.encode(values, 32, out, lengths, places, places.copy(), places.copy())
    with pytest.raises(CodecError, match="too small"):
        rle.encode(values, 32, np.empty(8000, np.uint8), bytearray(2000), places[:0], places.copy(), places.copy())
    for limits in ({"max_values": 100}, {"max_values": 32}, {"max_values": 65536}, {"max_bytes": 319}):
        with pytest.raises(ValueError, match="choose"):
            rle.encode_bound(10, 32, 10, **limits)
    with pytest.raises(CodecError, match="too small"):
        rle.encode_block(values, 32, bytearray(5007))


def chunk_buffers(chunk: bytes, version: str) -> list[bytes]:
    """Return the buffers of a chunk without levels: sizes in front, each part padded to eight bytes."""
    size = 2 if version == "2.1" else 4
    sizes = [int.from_bytes(chunk[2 + k * size : 2 + (k + 1) * size], "little") for k in range(2)]
    at = (2 + 2 * size + 7) // 8 * 8
    return [chunk[at : at + sizes[0]], chunk[(begin := at + (sizes[0] + 7) // 8 * 8) : begin + sizes[1]]]


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("bits", WIDTHS)
def test_the_reference_writes_the_same_chunks(version: str, bits: int) -> None:
    rng = np.random.default_rng(bits)
    runs = rng.integers(0, 2**bits - 1, 3000, np.uint64).astype(f"<u{bits // 8}")
    values = np.repeat(runs, np.append(rng.integers(1, 12, 2995), [700, 5000, 3, 1, 255]))
    no_dictionary = {"lance-encoding:dict-divisor": "100000"}
    [page] = lance_page.pages_of(pa.array(values), version, no_dictionary)
    assert page.mini["value_compression"] == lance_page.rle(bits)
    words, chunks = page.buffers[:2]
    word = 2 if version == "2.1" else 4
    counts, runs_of_chunks, lengths = encode(values)
    assert len(words) == word * len(counts)
    at = 0
    for i, (run, length) in enumerate(zip(runs_of_chunks, lengths, strict=True)):
        described = int.from_bytes(words[word * i : word * (i + 1)], "little")
        size = ((described >> 4) + 1) * 8
        if i + 1 < len(counts):
            assert 1 << (described & 15) == counts[i]
        assert chunk_buffers(chunks[at : at + size], version) == [run, length]
        at += size
    assert at == len(chunks)


def test_the_reference_reads_equal_neighbours(tmp_path: Path) -> None:
    """The reference reads two entries of the same value in a chunk, as any split of runs is allowed."""
    run, lengths = np.array([5, 5, 6], "<i4").tobytes(), bytes([3, 200, 97])
    sizes = struct.pack("<HHH", 0, len(run), len(lengths))
    chunk = sizes.ljust(8, b"\0") + run.ljust(16, b"\0") + lengths.ljust(8, b"\0")
    words = struct.pack("<H", (len(chunk) // 8 - 1) << 4)
    layout = lance_page.mini_block(lance_page.rle(32), num_items=300, num_buffers=2, version="2.1")
    path = tmp_path / "page.lance"
    lance_page.write_pages(path, pa.field("a", pa.int32()), [lance_page.Page(layout, [words, chunk], 300)], "2.1")
    assert lance_page.read_back(path).to_pylist() == decode(run, lengths, 300, 32).tolist()
