"""Fixed-size lists of fixed-width items, in chunks and one by one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from lance_dataset.errors import UnsupportedError
from lance_dataset.file.buffers import allocate
from lance_dataset.file.v2_1.compressive import Constant, Encoding, FixedSizeList, Flat
from lance_dataset.file.v2_1.read.arrays import value_bits
from lance_dataset.file.v2_1.write.choose_fixed import flat_ends
from lance_dataset.file.v2_1.write.encoded import Bytes, EncodedChunks, EncodedItems
from lance_dataset.file.v2_1.write.general_chunks import compressed
from lance_dataset.file.v2_1.write.request import Request
from lancecodec import bitmap
from lancecodec.fixed_size_list import Shape

__all__ = ["Lists", "encode_lists", "lists_of", "zip_lists"]


@dataclass(frozen=True)
class Lists:
    """Fixed-size lists, nested or not, taken apart.

    Attributes
    ----------
    rows
        Number of (outermost) lists.
    dimensions
        List sizes, outermost first.
    bitmaps
        For each dimension the validity of its items as (bitmap, bit of the first item); None if all are valid.
    values, first, bits
        Innermost items of `bits` bits each, of which number `first` is the first one.
    all_null
        No innermost item is valid.
    """

    rows: int
    dimensions: tuple[int, ...]
    bitmaps: tuple[tuple[pa.Buffer, int] | None, ...]
    values: Bytes
    first: int
    bits: int
    all_null: bool

    @cached_property
    def shape(self) -> Shape:
        """Geometry for the kernels; without values where every item is null."""
        return Shape(self.dimensions, self.has_validity, 0 if self.all_null else self.bits)

    @property
    def has_validity(self) -> tuple[bool, ...]:
        """Which dimensions have null items."""
        return tuple(one is not None for one in self.bitmaps)

    @property
    def items(self) -> int:
        """Innermost items of a list."""
        return int(np.prod(self.dimensions, dtype=np.int64))

    @property
    def zippable(self) -> bool:
        """Whether the values of a list are whole bytes, so that it can stand alone."""
        return self.items * self.bits % 8 == 0

    @property
    def row_bytes(self) -> int:
        """Bytes of the values of a list."""
        return (self.items * self.bits + 7) // 8

    @property
    def encoding(self) -> Encoding:
        """Description, a message per dimension."""
        inner: Encoding = Constant(None) if self.all_null else Flat(self.bits)
        for dimension, has_validity in zip(reversed(self.dimensions), reversed(self.has_validity), strict=True):
            inner = FixedSizeList(dimension, has_validity, inner)
        return inner


def lists_of(values: pa.Array, validity: pa.Buffer | None) -> Lists:
    """Take fixed-size lists apart; items below null lists count as valid.

    Raises
    ------
    UnsupportedError
        Items that are not of a fixed width.
    """
    rows, first, count = len(values), values.offset, len(values)
    dimensions: list[int] = []
    bitmaps: list[tuple[pa.Buffer, int] | None] = []
    above = None if validity is None else (validity, 0)
    array, all_null = values, False
    while pa.types.is_fixed_size_list(array.type):
        size = array.type.list_size
        array, first, count = array.values, first * size + array.values.offset, count * size
        own = array.buffers()[0]
        all_null = own is not None and count > 0 and bitmap.count(own, first, count) == 0
        above = (own, first) if all_null else _items_validity(own, first, count, above, size)
        dimensions.append(size)
        bitmaps.append(above)
    bits = value_bits(array.type)
    if bits == 0 or min(dimensions) == 0:
        raise UnsupportedError(f"fixed-size lists of type {values.type} cannot be stored; use lists")
    return Lists(rows, tuple(dimensions), tuple(bitmaps), array.buffers()[1] or b"", first, bits, all_null)


def _items_validity(
    own: pa.Buffer | None, first: int, count: int, above: tuple[pa.Buffer, int] | None, size: int
) -> tuple[pa.Buffer, int] | None:
    """Which items are valid, those of null lists reckoned valid; None if all are."""
    if own is None or bitmap.count(own, first, count) == count:
        return None
    if above is None:
        return own, first
    valid, lists = np.empty(count, np.uint8), np.empty(count // size, np.uint8)
    bitmap.unpack(own, first, count, valid.data)
    bitmap.unpack(above[0], above[1], count // size, lists.data)
    valid.reshape(-1, size)[lists == 0] = 1
    if valid.all():
        return None
    out = allocate((count + 7) // 8)
    bitmap.pack(valid.data, out)
    return out, 0


def _plain_bytes(lists: Lists) -> Bytes | None:
    """The bytes of all lists where they are simply those of their items."""
    if any(lists.has_validity) or lists.bits % 8:
        return None
    width = lists.bits // 8
    begin, size = lists.first * width, lists.rows * lists.row_bytes
    buffer = lists.values
    return buffer.slice(begin, size) if isinstance(buffer, pa.Buffer) else memoryview(buffer)[begin : begin + size]


def encode_lists(lists: Lists, request: Request) -> EncodedChunks | None:
    """Lists in chunks; None if two of them are too large for one, or if they have no values to store."""
    shape = lists.shape
    validity_bits = sum(
        int(np.prod(lists.dimensions[: level + 1])) for level, has in enumerate(lists.has_validity) if has
    )
    per_chunk = request.flat_values(lists.items * lists.bits + validity_bits)
    if lists.all_null or per_chunk == 0:
        return None
    counts, _ = flat_ends(lists.rows, per_chunk, 1)
    ends = np.empty((shape.buffers, len(counts)), np.int64)
    shape.plan(lists.rows, per_chunk, ends)
    outputs: list[Bytes]
    plain = _plain_bytes(lists)
    if plain is not None:
        outputs = [plain]
    else:
        outputs = [allocate(int(line[-1])) for line in ends]
        shape.encode(lists.bitmaps, lists.values, lists.first, lists.rows, per_chunk, outputs)
    buffers = [(out, line) for out, line in zip(outputs, ends, strict=True)]
    reason = f"lists of {lists.items} items of {lists.bits} bits"
    reason += ", some null" if any(lists.has_validity) else ""
    return compressed(EncodedChunks(lists.encoding, counts, buffers, per_chunk, None, reason), request)


def zip_lists(lists: Lists) -> EncodedItems:
    """Lists one by one.

    Raises
    ------
    UnsupportedError
        Lists of booleans that are no whole bytes.
    """
    if not lists.zippable and not lists.all_null:
        raise UnsupportedError(
            f"lists of {lists.items} items of {lists.bits} bit cannot be stored item by item, only in chunks"
        )
    shape, values = lists.shape, _plain_bytes(lists)
    if values is None:
        values = allocate(lists.rows * shape.row_bytes)
        shape.pack_rows(lists.bitmaps, None if lists.all_null else lists.values, lists.first, lists.rows, values)
    reason = f"lists of {lists.items} items" + (", all null" if lists.all_null else f" of {lists.bits} bits")
    return EncodedItems(lists.encoding, shape.row_bytes, None, values, None, False, reason)
