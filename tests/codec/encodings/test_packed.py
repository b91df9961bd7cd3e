"""Tests of packed structs against NumPy's structured arrays, a plain model of variable rows, and pylance."""

from __future__ import annotations

import struct
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

from lancecodec import CodecError, packed

seeds = st.integers(0, 2**32 - 1)
row_counts = st.sampled_from([0, 1, 2, 3, 5, 100, 137, 1025, 2050])
widths = st.lists(st.sampled_from([*range(1, 18), 20, 24, 31, 32, 33, 100]), min_size=1, max_size=5)


def at(data: bytes, skew: int) -> memoryview:
    return memoryview(b"." * skew + data)[skew:]


def room(size: int, skew: int = 0) -> memoryview:
    return memoryview(bytearray(b"\xa5" * (size + skew)))[skew:]


def columns(seed: int, sizes: Sequence[int], rows: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 256, (rows, size), np.uint8) for size in sizes]


@given(seeds, widths, row_counts, st.integers(0, 3), st.sampled_from([0, 1, 7]))
def test_fixed_rows(seed: int, sizes: list[int], rows: int, skew: int, gap: int) -> None:
    given_columns = columns(seed, sizes, rows)
    size = packed.row_bytes(sizes)
    assert size == sum(sizes)
    stride = size + gap
    expected = np.full((rows, stride), 0xA5, np.uint8)
    if rows:
        expected[:, :size] = np.concatenate(given_columns, axis=1)
    out = room(rows * stride, skew)
    sources = [at(column.tobytes(), skew) for column in given_columns]
    assert packed.pack(sources, sizes, rows, out, stride if gap else 0) == rows * size
    assert bytes(out) == expected.tobytes()
    source = out[: len(out) - gap] if rows else out
    targets = [room(rows * width, skew) for width in sizes]
    packed.unpack(source, sizes, rows, targets, stride)
    assert [bytes(target) for target in targets] == [column.tobytes() for column in given_columns]
    wanted = seed % len(sizes)
    only: list[memoryview | None] = [room(rows * sizes[i]) if i == wanted else None for i in range(len(sizes))]
    packed.unpack(source, sizes, rows, only, stride)
    assert bytes(only[wanted] or b"") == given_columns[wanted].tobytes()
    if rows:
        index = np.random.default_rng(seed).integers(0, rows, seed % 700)
        targets = [room(len(index) * width, skew) for width in sizes]
        packed.take(source, sizes, rows, index, targets, stride)
        assert [bytes(target) for target in targets] == [column[index].tobytes() for column in given_columns]
        packed.take(source, sizes, rows, index, [*only[:wanted], None, *only[wanted + 1 :]], stride)


def test_golden_fixed() -> None:
    out = bytearray(10)
    packed.pack([np.array([1, -1], np.int32), np.array([2, 255], np.uint8)], [4, 1], 2, out)
    assert out.hex() == "0100000002ffffffffff"


@pytest.mark.parametrize("sizes", [[], [0], [4, 0], [-1], [2**62], [2**39, 2**39, 2**39], [2**63 - 1, 2**63 - 1]])
def test_widths_that_cannot_be(sizes: list[int]) -> None:
    with pytest.raises(CodecError, match="packed"):
        packed.row_bytes(sizes)
    with pytest.raises(CodecError, match="packed"):
        packed.unpack(bytes(100), sizes, 1, [bytearray(100) for _ in sizes])


@pytest.mark.parametrize("rows", [4, 2**62, 2**63 - 1, -1, -(2**63)])
def test_more_rows_than_there_are(rows: int) -> None:
    big = [bytearray(40), bytearray(40)]
    with pytest.raises(CodecError):
        packed.unpack(bytes(15), [4, 1], rows, big)
    with pytest.raises(CodecError):
        packed.unpack(bytes(15), [4, 1], rows, [None, None])
    with pytest.raises(CodecError):
        packed.pack([bytes(12), bytes(3)], [4, 1], rows, bytearray(400))
    with pytest.raises(CodecError):
        packed.take(bytes(15), [4, 1], rows, np.array([0]), big)


@pytest.mark.parametrize("stride", [-1, 1, 4, 6, 2**63 - 1, -(2**63)])
def test_strides_that_do_not_fit(stride: int) -> None:
    with pytest.raises(CodecError, match="apart"):
        packed.unpack(bytes(15), [4, 1], 3, [bytearray(12), bytearray(3)], stride)


@pytest.mark.parametrize("index", [-1, 3, 2**62, -(2**63)])
def test_rows_taken_that_are_not_there(index: int) -> None:
    with pytest.raises(CodecError, match=f"row {index} "):
        packed.take(bytes(15), [4, 1], 3, np.array([0, 2, index]), [bytearray(12), bytearray(3)])


def test_columns_too_small() -> None:
    with pytest.raises(CodecError, match="column 1"):
        packed.unpack(bytes(15), [4, 1], 3, [bytearray(12), bytearray(2)])
    with pytest.raises(CodecError, match="column 0"):
        packed.pack([bytes(11), bytes(3)], [4, 1], 3, bytearray(15))
    with pytest.raises(CodecError, match="columns"):
        packed.pack([bytes(12)], [4, 1], 3, bytearray(15))


# -- variable rows ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rows:
    """Rows of a struct: the values of each child as bytes, and its (variable, width)."""

    fields: list[tuple[bool, int]]
    values: list[list[bytes]]
    valid: list[bool]

    def expected(self) -> list[bytes]:
        rows = []
        for i, valid in enumerate(self.valid):
            row = b""
            for (variable, width), values in zip(self.fields, self.values, strict=True):
                row += (len(values[i]).to_bytes(width, "little") if variable else b"") + values[i]
            rows.append(row if valid else b"")
        return rows

    def children(self, skew: int, wide: bool) -> list[Any]:
        kind, given = np.int64 if wide else np.int32, []
        for (variable, width), values in zip(self.fields, self.values, strict=True):
            offsets = np.cumsum([3, *map(len, values)]).astype(kind).tobytes()
            data = at(b"###" * variable + b"".join(values), skew)
            given.append((data, width, at(offsets, skew), wide) if variable else (data, width))
        return given


def random_rows(seed: int, count: int, fields: list[tuple[bool, int]], nulls: bool) -> Rows:
    rng = np.random.default_rng(seed)
    values = []
    for variable, width in fields:
        sizes = rng.integers(0, rng.choice([1, 9, 50, 300]), count).tolist() if variable else [width] * count
        values.append([rng.bytes(size) for size in sizes])
    return Rows(fields, values, (rng.random(count) >= (0.3 if nulls else 0)).tolist())


fields_of_rows = st.lists(
    st.tuples(st.just(False), st.sampled_from([1, 2, 4, 8, 13, 100]))
    | st.tuples(st.just(True), st.sampled_from([4, 8])),
    min_size=1,
    max_size=5,
)


@given(seeds, st.sampled_from([0, 1, 2, 9, 300]), fields_of_rows, st.booleans(), st.booleans(), st.booleans())
def test_variable_rows(
    seed: int, count: int, fields: list[tuple[bool, int]], nulls: bool, wide: bool, children_wide: bool
) -> None:
    rows, skew, bit = random_rows(seed, count, fields, nulls), seed % 4, seed % 11
    bitmap = np.packbits([True] * bit + rows.valid, bitorder="little").tobytes() if nulls else None
    children = rows.children(skew, children_wide)
    offsets = room((count + 1) * (8 if wide else 4), skew)
    packed.row_offsets(children, count, wide, offsets, bitmap, bit)
    expected = rows.expected()
    places = np.frombuffer(bytes(offsets), np.int64 if wide else np.int32)
    assert places.tolist() == np.cumsum([0, *map(len, expected)]).tolist()
    data = room(int(places[-1]), skew)
    assert packed.pack_rows(children, count, data, bitmap, bit) == len(data)
    assert bytes(data) == b"".join(expected)

    kept = [
        [value if valid else bytes(0 if variable else width) for value, valid in zip(values, rows.valid, strict=True)]
        for (variable, width), values in zip(fields, rows.values, strict=True)
    ]
    entry = 8 if children_wide else 4
    outputs: list[Any] = [
        (room((count + 1) * entry), children_wide) if variable else room(count * width, skew)
        for variable, width in fields
    ]
    sizes = packed.split_rows(offsets, wide, data, count, fields, outputs, bitmap, bit)
    targets = [room(size, skew) if variable else None for (variable, _), size in zip(fields, sizes, strict=True)]
    packed.split_bytes(offsets, wide, data, count, fields, targets, bitmap, bit)
    for (variable, _), values, size, output, target in zip(fields, kept, sizes, outputs, targets, strict=True):
        if variable:
            ends = np.frombuffer(bytes(output[0]), np.int64 if children_wide else np.int32)
            assert ends.tolist() == np.cumsum([0, *map(len, values)]).tolist()
            assert bytes(target or b"") == b"".join(values)
        else:
            assert (bytes(output), size) == (b"".join(values), 0)
    nothing = [None] * len(fields)
    assert packed.split_rows(offsets, wide, data, count, fields, nothing, bitmap, bit) == sizes
    packed.split_bytes(offsets, wide, data, count, fields, nothing, bitmap, bit)


def test_golden_variable() -> None:
    children = [(struct.pack("<i", 7), 4), (b"abc", 4, struct.pack("<ii", 0, 3), False), (struct.pack("<d", 0.5), 8)]
    offsets, out = bytearray(8), bytearray(19)
    packed.row_offsets(children, 1, False, offsets)
    assert struct.unpack("<ii", offsets) == (0, 19)
    assert packed.pack_rows(children, 1, out) == 19
    assert out.hex() == "070000000300000061626300000000" + "0000e03f"


GOLDEN_FIELDS = [(False, 1), (False, 8), (False, 8), (False, 4), (True, 4)]


def test_golden_blob_row() -> None:
    """Encode a blob v2 description (kind, position, size, blob_id, blob_uri) and a null."""
    row = bytes.fromhex("00 0000000000000000 0500000000000000 00000000 00000000")
    offsets = np.array([0, 25, 25], np.int32)
    outputs: list[Any] = [bytearray(2), bytearray(16), bytearray(16), bytearray(8), (bytearray(12), False)]
    assert packed.split_rows(offsets, False, row, 2, GOLDEN_FIELDS, outputs, b"\x01") == [0] * 5
    assert struct.unpack("<QQ", outputs[2]) == (5, 0)
    with pytest.raises(CodecError, match="row 1"):
        packed.split_rows(offsets, False, row, 2, GOLDEN_FIELDS, outputs)


def split(row: bytes, fields: list[tuple[bool, int]]) -> None:
    packed.split_rows(np.array([0, len(row)], np.int32), False, row, 1, fields, [None] * len(fields))


def split_both(row: bytes, fields: list[tuple[bool, int]]) -> None:
    split(row, fields)
    packed.split_bytes(np.array([0, len(row)]), True, row, 1, fields, [None] * len(fields))


@pytest.mark.parametrize(
    "row",
    [
        b"",
        b"\0\0\0",
        b"\1\0\0\0",
        b"\2\0\0\0xy",
        b"\1\0\0\0x12",
        b"\1\0\0\0x1234",
        b"\xff" * 9,
        b"\0\0\0\x80" + b"x" * 9,
    ],
)
def test_rows_that_are_not_consumed_exactly(row: bytes) -> None:
    split_both(b"\1\0\0\0x123", [(True, 4), (False, 3)])
    with pytest.raises(CodecError, match="row"):
        split(row, [(True, 4), (False, 3)])


@pytest.mark.parametrize("length", [2, 2**31, 2**32 + 1, 2**63 - 1, 2**63, 2**64 - 1])
def test_lengths_beyond_the_row(length: int) -> None:
    row = length.to_bytes(8, "little") + b"x"
    with pytest.raises(CodecError, match="row 0"):
        split(row, [(True, 8)])
    with pytest.raises(CodecError, match="row 0"):
        packed.split_bytes(np.array([0, 9]), True, row, 1, [(True, 8)], [bytearray(100)])


@pytest.mark.parametrize("offsets", [[-1, 8], [0, 17], [4, 3], [8, 2**62], [-(2**62), 2**62]])
def test_row_offsets_that_leave_the_data(offsets: list[int]) -> None:
    for call in (packed.split_rows, packed.split_bytes):
        with pytest.raises(CodecError, match="offsets"):
            call(np.array(offsets, np.int64), True, bytes(16), 1, [(False, 4)], [None])


@pytest.mark.parametrize("field", [(False, 0), (False, -1), (False, 2**62), (True, 2), (True, 16), (True, 0)])
def test_fields_that_cannot_be(field: tuple[bool, int]) -> None:
    with pytest.raises(CodecError, match="child 0"):
        split(bytes(16), [field])


@pytest.mark.parametrize("rows", [-1, 1, 2**60, 2**63 - 1, -(2**63)])
def test_numbers_of_rows(rows: int) -> None:
    with pytest.raises(CodecError):
        packed.split_rows(bytes(4), False, b"", rows, [(False, 4)], [None])
    with pytest.raises(CodecError):
        packed.row_offsets([(bytes(3), 4)], rows, False, bytearray(4))
    with pytest.raises(CodecError):
        packed.pack_rows([(bytes(3), 4)], rows, bytearray(4))


def test_lengths_and_offsets_that_do_not_fit() -> None:
    wide = np.array([0, 2**31], np.int64)
    for offsets in (wide, np.array([3, 2]), np.array([-1, 2])):
        with pytest.raises(CodecError, match="row 0"):
            packed.row_offsets([(b"abc", 4, offsets, True)], 1, False, bytearray(8))
        with pytest.raises(CodecError, match="row 0"):
            packed.pack_rows([(b"abc", 4, offsets, True)], 1, bytearray(8))
    with pytest.raises(CodecError, match="do not fit"):
        packed.pack_rows([(b"abc", 4, np.array([0, 3]), True)], 1, bytearray(6))
    with pytest.raises(CodecError, match="do not fit"):
        packed.split_bytes(np.array([0, 7]), True, b"\3\0\0\0abc", 1, [(True, 4)], [bytearray(2)])


# -- the reference ---------------------------------------------------------------------------------------------------

PACKED = {b"lance-encoding:packed": b"true"}


def struct_pages(array: pa.StructArray, version: str) -> lance_page.Page:
    [page] = lance_page.pages_of(array, version, {"lance-encoding:packed": "true"})
    return page


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_fixed_rows_of_pylance(version: str) -> None:
    rng = np.random.default_rng(1)
    children = [rng.integers(0, 100, 300, np.int32), rng.random(300), rng.integers(0, 100, 300, np.int8)]
    array = pa.StructArray.from_arrays([pa.array(child) for child in children], ["a", "b", "c"])
    page = struct_pages(array, version)
    widths_of = [bits // 8 for bits in page.mini["value_compression"]["packed_struct"]["bits_per_value"]]
    assert widths_of == [4, 8, 1]
    out = bytearray(300 * 13)
    packed.pack(children, widths_of, 300, out)
    stored = page.buffers[1][8 : 8 + len(out)]
    assert bytes(out[: len(stored)]) == stored


def test_variable_rows_of_pylance(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    numbers, texts = rng.integers(0, 100, 50, np.int32), [rng.bytes(n) for n in rng.integers(0, 40, 50).tolist()]
    array = pa.StructArray.from_arrays([pa.array(numbers), pa.array(texts, pa.binary())], ["a", "b"])
    page = struct_pages(array, "2.2")
    fields = page.full["value_compression"]["variable_packed_struct"]["fields"]
    assert [(f.get("bits_per_value"), f.get("bits_per_length")) for f in fields] == [(32, None), (None, 32)]
    ends = np.cumsum([0, *map(len, texts)]).astype(np.int32)
    children = [(numbers, 4), (b"".join(texts), 4, ends, False)]
    offsets = np.zeros(51, np.int32)
    packed.row_offsets(children, 50, False, offsets)
    data = bytearray(int(offsets[-1]))
    packed.pack_rows(children, 50, data)
    zipped = b""
    for begin, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        zipped += struct.pack("<I", end - begin) + data[begin:end]
    assert zipped == page.buffers[0]
    field = pa.field("a", array.type, metadata=PACKED)
    lance_page.write_pages(
        tmp_path / "a.lance", field, [lance_page.Page(page.layout, [zipped, page.buffers[1]], 50)], "2.2"
    )
    assert lance_page.read_back(tmp_path / "a.lance").to_pylist() == array.to_pylist()
