"""Tests of descriptors and sequences of files of version 2.3: valid and hostile ones."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest

from lance_dataset.errors import CorruptFileError, UnsupportedError
from lance_dataset.file.structural.encodings.base import Encoding
from lance_dataset.file.structural.encodings.bitpacking import OutOfLineBitpacking
from lance_dataset.file.structural.encodings.constant import Constant
from lance_dataset.file.structural.encodings.dictionary import Dictionary
from lance_dataset.file.structural.encodings.flat import Flat
from lance_dataset.file.structural.encodings.general import General
from lance_dataset.file.structural.encodings.rle import Rle
from lance_dataset.file.structural.encodings.sequences import Delta, Range
from lance_dataset.file.structural.encodings.variable import Variable
from lance_dataset.file.v2_3.layout import SparseLayout, SparseList, SparseValidity, StoredSequence, ValiditySet
from lance_dataset.file.v2_3.messages import parse_planar_layout
from lance_dataset.file.v2_3.positions import open_counts, open_positions
from lancecodec import CodecError, bitpacking, general

# -- descriptors and sequences ---------------------------------------------------------------------------------------


def test_golden_descriptors() -> None:
    leaf = bytes.fromhex("0a1212100a0e0a0c080212067204084018021802120a0a080a040a0208202801")
    layout = parse_planar_layout(leaf)
    assert isinstance(layout, SparseLayout)
    assert layout.layers == (SparseValidity(ValiditySet(StoredSequence(Range(64, 0, 2), 2), True)),)
    lists = bytes.fromhex(
        "0a4a12480a30122e080412067204084018031802220c1a0a0a0802000000000000002a120801120c1a0a0a08020000000000000018010a14"
        "0a120801120c1a0a0a0802000000000000001801120a0a080a040a0208202801"
    )
    layout = parse_planar_layout(lists)
    two = Constant((2).to_bytes(8, "little"))
    assert layout.layers == (
        SparseList(
            StoredSequence(Range(64, 0, 3), 2), StoredSequence(two, 2), 4, ValiditySet(StoredSequence(two, 1), False)
        ),
        SparseValidity(ValiditySet(StoredSequence(two, 1), False)),
    )


def u64(*values: int) -> pa.Buffer:
    return pa.py_buffer(np.array(values, np.uint64).tobytes())


def ool(values: np.ndarray, width: int) -> pa.Buffer:
    bits = values.itemsize * 8
    out = bytearray(bitpacking.out_of_line_size(len(values), bits, width))
    bitpacking.out_of_line_encode(values, bits, width, out)
    return pa.py_buffer(bytes(out))


EIGHT = Constant((8).to_bytes(8, "little"))


@pytest.mark.parametrize(
    ("encoding", "payload", "expected"),
    [
        (Constant(None), None, []),
        (EIGHT, None, [8, 8, 8]),
        (Range(64, 5, 3), None, [5, 8, 11]),
        (Flat(64), u64(3, 9), [3, 9]),
        (Delta(64, 7, Constant((1).to_bytes(8, "little"))), None, [7, 8, 9]),
        (Delta(64, 7, Flat(64)), u64(1, 5), [7, 8, 13]),
        (Delta(64, 1, Range(64, 0, 1)), None, [1, 1, 2, 4]),
        (Rle(Range(64, 1, 1), Constant((2).to_bytes(4, "little"))), None, [1, 1, 2, 2]),
        (Rle(Flat(64), Range(32, 1, 1)), pa.py_buffer(bytes(u64(16, 4, 6))), [4, 6, 6]),
        (General("zstd", Flat(64)), pa.py_buffer(general.compress("zstd", 3, u64(*range(90)))), [*range(90)]),
    ],
)
def test_sequences(encoding: Encoding, payload: pa.Buffer | None, expected: list[int]) -> None:
    decoded = encoding.integers(payload, len(expected), 64)
    assert np.frombuffer(decoded, np.uint64, len(expected)).tolist() == expected


def test_dictionary_sequence() -> None:
    indices = np.arange(3000, dtype=np.uint32) % 3
    packed = ool(indices, 2)
    payload = pa.py_buffer(b"".join([u64(packed.size, 0), packed]))
    decoded = Dictionary(OutOfLineBitpacking(32, 2), Range(64, 4, 2), 3).integers(payload, 3000, 64)
    assert (np.frombuffer(decoded, np.uint64) == indices * 2 + 4).all()


@pytest.mark.parametrize("tail", [0, 1, 7, 1023])
@pytest.mark.parametrize("bits", [8, 16, 32])
def test_runs_of_packed_lengths(bits: int, tail: int) -> None:
    """Runs are read if values are a range and lengths are packed, where the number of runs is not stored."""
    lengths = (np.arange(1024 + tail) % 7 + 1).astype(f"u{bits // 8}")
    total = int(lengths.sum(dtype=np.int64))
    encoding = Rle(Range(64, 9, 2), OutOfLineBitpacking(bits, 3))
    decoded = encoding.expand_runs(None, ool(lengths, 3), total)
    assert (np.frombuffer(decoded, np.uint64) == np.repeat(np.arange(1024 + tail) * 2 + 9, lengths)).all()
    values = np.arange(1024 + tail, dtype=np.uint64) * 3
    compressed = pa.py_buffer(general.compress("lz4", None, values))
    encoding = Rle(General("lz4", Flat(64)), OutOfLineBitpacking(bits, 3))
    decoded = encoding.expand_runs(compressed, ool(lengths, 3), total)
    assert (np.frombuffer(decoded, np.uint64) == np.repeat(values, lengths)).all()


@pytest.mark.parametrize(
    ("encoding", "payload", "count"),
    [
        (Constant(None), None, 1),
        (Constant(b"\1\2"), None, 3),
        (EIGHT, u64(1), 3),
        (EIGHT, None, 2**40),
        (Range(64, 0, 1), None, 2**40),
        (Range(64, 2**64 - 2, 1), None, 3),
        (Range(64, 0, 0), None, 3),
        (Range(32, 0, 1), None, 3),
        (Flat(64), None, 1),
        (Flat(64), u64(1), 2),
        (Flat(64), u64(1), 2**40),
        (Flat(12), u64(1), 2),
        (Variable(Flat(32)), u64(1), 2),
        (Delta(64, 0, Flat(64)), u64(1), 1),
        (Delta(64, 1, Constant((2**64 - 1).to_bytes(8, "little"))), None, 3),
        (Delta(64, 0, Delta(64, 0, EIGHT)), None, 3),
        (Rle(EIGHT, Constant(b"\3\0\0\0")), None, 4),
        (Rle(EIGHT, Constant(b"\0\0\0\0")), None, 4),
        (Rle(Range(64, 0, 1), Constant(b"\1\0\0\0")), None, 2**40),
        (Rle(Flat(64), Flat(8)), pa.py_buffer(bytes(u64(8, 1)) + b"\2"), 3),
        (Rle(Flat(64), Flat(8)), u64(2**63, 1), 3),
        (Rle(EIGHT, Flat(64)), u64(8, 3), 3),
        (Rle(EIGHT, OutOfLineBitpacking(8, 0)), u64(8, 3), 3),
        (Dictionary(Constant(b"\0\0\0\0"), EIGHT, 0), None, 3),
        (Dictionary(Constant(b"\2\0\0\0"), EIGHT, 2), None, 3),
        (Dictionary(Constant(b"\0\0\0\0"), Range(64, 0, 1), 2**31), None, 3),
        (OutOfLineBitpacking(64, 0), pa.py_buffer(b""), 2**40),
        (General("zstd", Flat(64)), u64(2**62, 1), 3),
    ],
)
def test_lying_sequences(encoding: Encoding, payload: pa.Buffer | None, count: int, little_memory: None) -> None:
    with pytest.raises((CorruptFileError, CodecError, UnsupportedError)):
        encoding.integers(payload, count, 64)


@pytest.mark.parametrize(
    ("encoding", "payload", "count"),
    [
        (Flat(64), u64(3, 3), 2),
        (Flat(64), u64(4, 3), 2),
        (Flat(64), u64(3, 100), 2),
        (Flat(64), u64(3, 2**63), 2),
        (Range(64, 0, 50), None, 3),
        (Range(64, 0, 2**63), None, 2),
        (Range(64, 0, 0), None, 2),
        (EIGHT, None, 2),
        (Delta(64, 1, Constant(bytes(8))), None, 2),
        (Range(64, 0, 1), None, 101),
    ],
)
def test_lying_positions(encoding: Encoding, payload: pa.Buffer | None, count: int) -> None:
    with pytest.raises((CorruptFileError, CodecError)):
        open_positions(StoredSequence(encoding, count), payload, 100)


@pytest.mark.parametrize(
    ("encoding", "payload", "count"),
    [
        (Flat(64), u64(3, 0), 2),
        (Flat(64), u64(3, 4), 2),
        (Flat(64), u64(2**63, 2**63 + 3), 2),
        (EIGHT, None, 2**40),
        (Constant(bytes(8)), None, 2),
        (Rle(Flat(64), Constant(b"\2\0\0\0")), pa.py_buffer(bytes(u64(8, 1))), 2),
        (Constant(None), None, 2),
    ],
)
def test_lying_counts(encoding: Encoding, payload: pa.Buffer | None, count: int) -> None:
    with pytest.raises((CorruptFileError, CodecError)):
        open_counts(StoredSequence(encoding, count), payload, 3)


@pytest.mark.parametrize(
    ("encoding", "payload", "expected"),
    [
        (EIGHT, None, [8] * 5),
        (Range(64, 1, 2), None, [1, 3, 5]),
        (Rle(Flat(64), Flat(8)), pa.py_buffer(bytes(u64(16, 4, 1)) + b"\3\2"), [4, 4, 4, 1, 1]),
        (Rle(Range(64, 1, 1), Constant(b"\2\0\0\0")), None, [1, 1, 2, 2]),
        (Delta(64, 3, Constant(bytes(8))), None, [3, 3, 3]),
        (Constant(None), None, []),
    ],
)
def test_counts(encoding: Encoding, payload: pa.Buffer | None, expected: list[int]) -> None:
    counts = open_counts(StoredSequence(encoding, len(expected)), payload, sum(expected))
    index = np.arange(len(expected))
    assert counts.at(index).tolist() == expected
    assert counts.before(np.arange(len(expected) + 1)).tolist() == [0, *itertools.accumulate(expected)]


@pytest.mark.parametrize("encoding", [Range(64, 4, 3), Delta(64, 4, Constant((3).to_bytes(8, "little"))), Flat(64)])
def test_positions(encoding: Encoding) -> None:
    payload = u64(4, 7, 10) if encoding == Flat(64) else None
    positions = open_positions(StoredSequence(encoding, 3), payload, 11)
    assert positions.find(np.arange(13)).tolist() == np.searchsorted([4, 7, 10], np.arange(13)).tolist()
    assert positions.holds(np.arange(13))[1].nonzero()[0].tolist() == [4, 7, 10]
