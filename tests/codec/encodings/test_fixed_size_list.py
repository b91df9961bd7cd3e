"""Tests of fixed-size lists against a NumPy model of their bit streams, golden vectors and pages of pylance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.pages import lance_page

from lancecodec import CodecError
from lancecodec.fixed_size_list import Shape

seeds = st.integers(0, 2**32 - 1)
row_counts = st.sampled_from([0, 1, 2, 7, 8, 9, 63, 65, 300])
levels = st.lists(st.tuples(st.sampled_from([1, 2, 3, 4, 7, 8, 9, 40, 65, 100]), st.booleans()), min_size=1, max_size=2)


def packed(bits: np.ndarray) -> bytes:
    return np.packbits(bits, bitorder="little").tobytes()


def unpacked(data: Any, bit: int, count: int) -> np.ndarray:
    return np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")[bit : bit + count]


@dataclass(frozen=True)
class Lists:
    """Rows as one array of bits per stream, of shape (rows, bits of a row)."""

    dimensions: list[int]
    flags: list[bool]
    bits: int
    streams: list[np.ndarray]

    @property
    def shape(self) -> Shape:
        return Shape(self.dimensions, self.flags, self.bits)

    @property
    def rows(self) -> int:
        return len(self.streams[0]) if self.streams else 0

    def sources(self, lead: Sequence[int], first: int) -> tuple[list[tuple[bytes, int] | None], bytes | None]:
        """Return arguments of an encoder.

        Bitmap j starts at bit `lead[j]`, and `first` other values precede the values.
        """
        streams, validity = iter(self.streams), []
        for flag, bit in zip(self.flags, lead, strict=False):
            validity.append(
                (packed(np.concatenate([np.ones(bit, np.uint8), next(streams).ravel()])), bit) if flag else None
            )
        values = next(streams, None)
        if values is None:
            return validity, None
        return validity, packed(np.concatenate([np.ones(first * self.bits, np.uint8), values.ravel()]))

    def targets(self, rows: int) -> tuple[list[bytearray | None], bytearray | None]:
        """Return output buffers of a decoder for `rows` rows, with all bits set."""
        sizes = iter([stream.shape[1] for stream in self.streams])
        validity = [bytearray(b"\xff" * ((rows * next(sizes) + 7) // 8)) if flag else None for flag in self.flags]
        size = next(sizes, None)
        return validity, None if size is None else bytearray(b"\xff" * ((rows * size + 7) // 8))

    def check(
        self, validity: list[bytearray | None], values: bytearray | None, row: int, streams: list[np.ndarray]
    ) -> None:
        """Check that the rows from `row` on equal the streams, and that all other bits are still set."""
        outputs = [out for out in (*validity, values) if out is not None]
        assert len(outputs) == len(streams)
        for out, stream in zip(outputs, streams, strict=True):
            begin = row * stream.shape[1]
            bits = unpacked(out, 0, len(out) * 8)
            assert bits[begin : begin + stream.size].tolist() == stream.ravel().tolist()
            assert bits[:begin].all()
            assert bits[begin + stream.size :].all()


def random_lists(seed: int, rows: int, described: list[tuple[int, bool]], bits: int) -> Lists:
    rng = np.random.default_rng(seed)
    dimensions, flags = [d for d, _ in described], [flag for _, flag in described]
    cumulative = np.cumprod(dimensions).tolist()
    widths = [c for c, flag in zip(cumulative, flags, strict=True) if flag] + ([cumulative[-1] * bits] if bits else [])
    return Lists(dimensions, flags, bits, [rng.integers(0, 2, (rows, width), np.uint8) for width in widths])


def chunk_buffers(lists: Lists, begin: int, end: int) -> list[bytes]:
    return [packed(stream[begin:end].ravel()) for stream in lists.streams]


@given(seeds, row_counts, levels, st.sampled_from([0, 1, 3, 8, 16, 32, 64]), st.data())
def test_chunks_and_back(
    seed: int, rows: int, described: list[tuple[int, bool]], bits: int, data: st.DataObject
) -> None:
    lists = random_lists(seed, rows, described, bits)
    per_chunk = data.draw(st.sampled_from([1, 2, 4, 16, 64]))
    validity, values = lists.sources(data.draw(st.lists(st.integers(0, 17), min_size=2, max_size=2)), seed % 3)
    shape = lists.shape
    begins = list(range(0, rows, per_chunk))
    ends = np.zeros((shape.buffers, len(begins)), np.int64)
    assert shape.plan(rows, per_chunk, ends) == len(begins)
    outputs = [bytearray(int(end[-1]) if len(end) else 0) for end in ends]
    shape.encode(validity, values, seed % 3, rows, per_chunk, outputs)
    chunks = [chunk_buffers(lists, begin, begin + per_chunk) for begin in begins]
    assert [bytes(output) for output in outputs] == [b"".join(parts) for parts in zip(*chunks, strict=True)] or not rows
    row = seed % 5
    targets = lists.targets(rows + row)
    counts = np.array([min(per_chunk, rows - begin) for begin in begins], np.int64)
    shape.decode(outputs, ends, counts, *targets, row)
    lists.check(*targets, row, lists.streams)
    targets = lists.targets(rows + row + 3)
    for begin, chunk in zip(begins, chunks, strict=True):
        shape.decode_chunk(chunk, min(per_chunk, rows - begin), *targets, row + begin)
    lists.check(*targets, row, lists.streams)


@given(seeds, row_counts.filter(bool), levels, st.sampled_from([0, 1, 3, 8, 32]))
def test_take(seed: int, rows: int, described: list[tuple[int, bool]], bits: int) -> None:
    lists = random_lists(seed, rows, described, bits)
    index = np.random.default_rng(seed).integers(0, rows, seed % 100)
    targets = lists.targets(len(index) + 2)
    lists.shape.take_chunk(chunk_buffers(lists, 0, rows), rows, index, *targets, 1)
    lists.check(*targets, 1, [stream[index] for stream in lists.streams])


@given(seeds, row_counts, levels, st.sampled_from([0, 1, 8, 16, 32, 64, 24]), st.data())
def test_rows_and_back(seed: int, rows: int, described: list[tuple[int, bool]], bits: int, data: st.DataObject) -> None:
    lists = random_lists(seed, rows, described, bits)
    shape = lists.shape
    if bits and lists.streams[-1].shape[1] % 8:
        with pytest.raises(CodecError, match="whole bytes"):
            shape.pack_rows([None], b"", 0, 0, bytearray())
        return
    lead = data.draw(st.lists(st.integers(0, 17), min_size=2, max_size=2))
    validity, values = lists.sources(lead, seed % 3)
    stride = shape.row_bytes + data.draw(st.sampled_from([0, 1, 5]))
    out = bytearray(b"\xa5" * (stride * rows + 9))
    shape.pack_rows(validity, values, seed % 3, rows, out, stride)
    expected = bytearray(b"\xa5" * len(out))
    for i in range(rows):
        row_bytes = b"".join(packed(stream[i]) for stream in lists.streams)
        expected[i * stride : i * stride + len(row_bytes)] = row_bytes
    assert out == expected
    source = memoryview(out)[: max(rows - 1, 0) * stride + shape.row_bytes if rows else 0]
    targets = lists.targets(rows + 4)
    shape.unpack_rows(source, rows, *targets, seed % 3, stride)
    lists.check(*targets, seed % 3, lists.streams)
    places = np.random.default_rng(seed).permutation(rows)
    targets = lists.targets(rows)
    shape.unpack_rows(source, rows, *targets, places=places * stride)
    lists.check(*targets, 0, [stream[places] for stream in lists.streams])


def test_golden_chunk() -> None:
    """Encode and decode fixed_size_list<bool, 3> [true, null, false] x 4 in one chunk.

    Writers may choose the spare bits and the bits of nulls; this package writes 0.
    """
    shape = Shape([3], [True], 1)
    validity, values = bytearray(2), bytearray(2)
    shape.decode_chunk([bytes.fromhex("6d0b"), bytes.fromhex("4902")], 4, [validity], values)
    assert (validity.hex(), values.hex()) == ("6d0b", "4902")
    outputs = [bytearray(2), bytearray(2)]
    shape.encode([(b"\x6d\x0b", 0)], b"\x49\x02", 0, 4, 4, outputs)
    assert [output.hex() for output in outputs] == ["6d0b", "4902"]


def test_golden_rows() -> None:
    """Decode fixed_size_list<int16, 2> [1, null], [3, 4], with garbage behind the bitmaps."""
    shape = Shape([2], [True], 16)
    assert shape.row_bytes == 5
    validity, values = bytearray(1), bytearray(8)
    shape.unpack_rows(bytes.fromhex("0d01000000 0303000400"), 2, [validity], values)
    assert (validity.hex(), values.hex()) == ("0d", "0100000003000400")
    out = bytearray(10)
    shape.pack_rows([(validity, 0)], values, 0, 2, out)
    assert out.hex() == "01010000000303000400"


def test_golden_all_null() -> None:
    shape = Shape([2], [True], 0)
    validity = bytearray(b"\xff")
    shape.unpack_rows(bytes.fromhex("000001000000")[1::2], 3, [validity], None)
    assert (shape.row_bytes, shape.buffers, validity.hex()) == (1, 1, "c0")
    assert (Shape([100], [True], 0).row_bytes, Shape([100], [True], 32).row_bytes) == (13, 413)


@pytest.mark.parametrize(
    ("dimensions", "flags", "bits", "rows"),
    [
        ([4], [False], 32, 256),
        ([4], [True], 32, 256),
        ([3], [True], 1, 2048),
        ([1023], [False], 32, 2),
        ([1], [False], 8, 4096),
        ([2, 2], [True, True], 16, 512),
    ],
)
def test_rows_per_chunk(dimensions: list[int], flags: list[bool], bits: int, rows: int) -> None:
    assert Shape(dimensions, flags, bits).rows_per_chunk() == rows


@pytest.mark.parametrize(
    ("dimensions", "bits"), [([1024], 32), ([4093], 8), ([5001], 1), ([2**56], 1), ([2**28] * 2, 0)]
)
def test_rows_too_wide_for_chunks(dimensions: list[int], bits: int) -> None:
    with pytest.raises(CodecError, match="too wide"):
        Shape(dimensions, [bits != 1] * len(dimensions), bits).rows_per_chunk()


@pytest.mark.parametrize(
    ("dimensions", "flags", "bits"),
    [
        ([], [], 8),
        ([0], [False], 8),
        ([-1], [False], 8),
        ([2], [False, True], 8),
        ([2], [False], -1),
        ([2**50], [False], 128),
        ([2**32, 2**32], [True, True], 0),
        ([2**62, 2**62], [True, True], 1),
        ([1] * 33, [True] * 33, 8),
        ([2], [True], 2**57),
    ],
)
def test_shapes_that_cannot_be(dimensions: list[int], flags: list[bool], bits: int) -> None:
    with pytest.raises(CodecError):
        Shape(dimensions, flags, bits)


@pytest.mark.parametrize("rows", [0, 7, 9, 2**60, 2**63 - 1, -1, -(2**63)])
def test_chunks_of_another_size(rows: int) -> None:
    shape = Shape([4], [True], 16)
    with pytest.raises(CodecError):
        shape.decode_chunk([bytes(4), bytes(64)], rows, [bytearray(8)], bytearray(128))
    with pytest.raises(CodecError):
        shape.take_chunk([bytes(4), bytes(64)], rows, np.array([0]), [bytearray(8)], bytearray(128))


@pytest.mark.parametrize("row", [-1, 9, 2**61, 2**63 - 1])
def test_targets_too_small(row: int) -> None:
    shape = Shape([4], [True], 16)
    with pytest.raises(CodecError):
        shape.decode_chunk([bytes(4), bytes(64)], 8, [bytearray(8)], bytearray(128), row)
    with pytest.raises(CodecError):
        shape.unpack_rows(bytes(72), 8, [bytearray(8)], bytearray(128), row)


def test_validity_must_fit_the_shape() -> None:
    shape = Shape([4], [True], 16)
    for validity in ([None], [], [bytearray(4), None]):
        with pytest.raises(CodecError, match="level"):
            shape.unpack_rows(bytes(72), 8, validity, bytearray(64))
    with pytest.raises(CodecError, match="not expected"):
        Shape([4], [False], 16).unpack_rows(bytes(72), 8, [bytearray(4)], bytearray(64))
    for bit in (-1, 1, 2**62, 2**63 - 1):
        with pytest.raises(CodecError, match="bits from"):
            shape.pack_rows([(bytes(4), bit)], bytes(64), 0, 8, bytearray(72))
    for first in (-1, 1, 2**60, 2**63 - 1):
        with pytest.raises(CodecError):
            shape.pack_rows([(bytes(4), 0)], bytes(64), first, 8, bytearray(72))


@pytest.mark.parametrize("place", [-1, 64, 2**62, -(2**63)])
def test_places_outside(place: int) -> None:
    shape = Shape([4], [True], 16)
    with pytest.raises(CodecError, match="places"):
        shape.unpack_rows(bytes(72), 2, [bytearray(1)], bytearray(16), places=np.array([0, place]))
    with pytest.raises(CodecError, match="places"):
        shape.unpack_rows(bytes(72), 2, [bytearray(1)], bytearray(16), places=np.array([0]))


@pytest.mark.parametrize("stride", [-1, 8, 10, 2**62, 2**63 - 1])
def test_strides_that_do_not_fit(stride: int) -> None:
    shape = Shape([4], [True], 16)
    with pytest.raises(CodecError, match="apart"):
        shape.unpack_rows(bytes(72), 8, [bytearray(4)], bytearray(64), 0, stride)
    with pytest.raises(CodecError, match="apart"):
        shape.pack_rows([(bytes(4), 0)], bytes(64), 0, 8, bytearray(72), stride)


# -- the reference ---------------------------------------------------------------------------------------------------


def mini_chunks(page: lance_page.Page, buffers: int) -> tuple[list[list[bytes]], list[int]]:
    """Return the value buffers and the number of rows of the chunks of a page without levels."""
    wide = "has_large_chunk" in page.mini
    words = np.frombuffer(page.buffers[0], np.uint32 if wide else np.uint16).tolist()
    chunks, counts, begin, left = [], [], 0, page.mini["num_items"]
    for i, word in enumerate(words):
        data = page.buffers[1][begin : begin + ((word >> 4) + 1) * 8]
        begin += len(data)
        sizes = np.frombuffer(data, np.uint32 if wide else np.uint16, buffers, 2).tolist()
        at, parts = -(-(2 + buffers * (4 if wide else 2)) // 8) * 8, []
        for size in sizes:
            parts.append(data[at : at + size])
            at += -(-size // 8) * 8
        chunks.append(parts)
        counts.append(left if i == len(words) - 1 else 1 << (word & 15))
        left -= counts[-1]
    return chunks, counts


CASES: list[tuple[pa.DataType, list[int], int]] = [
    (pa.list_(pa.int32(), 4), [4], 32),
    (pa.list_(pa.bool_(), 3), [3], 1),
    (pa.list_(pa.list_(pa.int16(), 3), 2), [2, 3], 16),
]


def random_array(kind: pa.DataType, rows: int, seed: int) -> pa.Array:
    rng = np.random.default_rng(seed)

    def value(of: pa.DataType, nulls: float) -> Any:
        if rng.random() < nulls:
            return None
        if pa.types.is_fixed_size_list(of):
            return [value(of.value_type, 0.2) for _ in range(of.list_size)]
        return bool(rng.integers(0, 2)) if pa.types.is_boolean(of) else int(rng.integers(0, 1000))

    return pa.array([value(kind, 0) for _ in range(rows)], kind)


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize(("kind", "dimensions", "bits"), CASES, ids=str)
def test_chunks_of_pylance(kind: pa.DataType, dimensions: list[int], bits: int, version: str) -> None:
    array = random_array(kind, 700, 3)
    [page] = lance_page.pages_of(array, version)
    shape = Shape(dimensions, [True] * len(dimensions), bits)
    assert page.mini["num_buffers"] == shape.buffers
    chunks, counts = mini_chunks(page, shape.buffers)
    assert counts[:-1] == [shape.rows_per_chunk()] * (len(counts) - 1)
    cumulative = np.cumprod(dimensions).tolist()
    validity = [bytearray((700 * c + 7) // 8) for c in cumulative]
    values = bytearray((700 * cumulative[-1] * bits + 7) // 8)
    row = 0
    for chunk, count in zip(chunks, counts, strict=True):
        shape.decode_chunk(chunk, count, validity, values, row)
        row += count
    decoded: pa.Array | None = None
    types = [kind]
    while pa.types.is_fixed_size_list(types[-1]):
        types.append(types[-1].value_type)
    for level in range(len(types) - 1, 0, -1):
        bitmap = pa.py_buffer(validity[level - 1])
        buffers = [bitmap, pa.py_buffer(values)] if decoded is None else [bitmap]
        children = None if decoded is None else [decoded]
        decoded = pa.Array.from_buffers(types[level], 700 * cumulative[level - 1], buffers, children=children)
    assert pa.Array.from_buffers(kind, 700, [None], children=[decoded]).to_pylist() == array.to_pylist()


def test_pylance_reads_our_rows(tmp_path: Path) -> None:
    shape = Shape([2, 3], [True, True], 16)
    rng = np.random.default_rng(1)
    outer, inner = rng.integers(0, 256, 20, np.uint8), rng.integers(0, 256, 60, np.uint8)
    values = rng.integers(0, 1000, 480, np.int16)
    out = bytearray(80 * shape.row_bytes)
    shape.pack_rows([(outer, 0), (inner, 0)], values, 0, 80, out)
    encoding: dict[str, Any] = lance_page.flat(16)
    for size in (3, 2):
        encoding = {"fixed_size_list": {"items_per_value": size, "values": encoding, "has_validity": 1}}
    layout = lance_page.full_zip(encoding, num_items=80, bits_per_value=8 * shape.row_bytes)
    kind = pa.list_(pa.list_(pa.int16(), 3), 2)
    page = lance_page.Page(layout, [bytes(out)], 80)
    lance_page.write_pages(tmp_path / "a.lance", pa.field("a", kind), [page], "2.1")
    numbers = pa.Array.from_buffers(pa.int16(), 480, [pa.py_buffer(inner), pa.py_buffer(values)])
    lists = pa.Array.from_buffers(kind.value_type, 160, [pa.py_buffer(outer)], children=[numbers])
    expected = pa.Array.from_buffers(kind, 80, [None], children=[lists])
    assert lance_page.read_back(tmp_path / "a.lance").to_pylist() == expected.to_pylist()
