"""Fixed-size lists of fixed-width items: one message per dimension, with a bitmap if items are null."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError, UnsupportedError
from lance_dataset.file.buffers import aligned, allocate
from lance_dataset.file.sizes import size_text
from lance_dataset.file.structural.arrays import FixedSizeListShape, fixed_array, value_bits
from lance_dataset.file.structural.encodings.base import ChunkValues, Encoding, ParsePart, StoredValues
from lance_dataset.file.structural.encodings.constant import Constant
from lance_dataset.file.structural.encodings.flat import Flat, flat_ends
from lance_dataset.file.structural.encodings.general import compressed
from lance_dataset.file.structural.encodings.request import EncodedChunks, EncodedItems, Request
from lance_dataset.file.structural.encodings.values import Bytes
from lance_dataset.late_dataclass import dataclass
from lance_dataset.properties import cached_property
from lancecodec import bitmap, miniblock_values
from lancecodec.fixed_size_list import Shape
from lancecodec.miniblock import Chunks
from lancecodec.miniblock_values import FixedValues

__all__ = ["FixedSizeList", "Lists", "encode_lists", "lists_of", "zip_lists"]

_NULL = Constant(None)


@dataclass(frozen=True)
class FixedSizeList(Encoding):
    """One dimension of a fixed-size list of primitives; `has_validity` refers to its items."""

    dimension: int
    has_validity: bool
    values: Encoding

    message_field = "fixed_size_list"

    @classmethod
    def parse(cls, message: Any, part: ParsePart) -> FixedSizeList:
        """See `Encoding.parse`."""
        if not 0 < message.items_per_value < 2**31:
            raise CorruptFileError(f"fixed-size list of {message.items_per_value} items")
        return cls(message.items_per_value, message.has_validity, part(message, "values"))

    def to_message(self, pb: Any) -> Any:
        """See `Encoding.to_message`."""
        lists = pb.FixedSizeList(
            items_per_value=self.dimension, has_validity=self.has_validity, values=self.values.to_message(pb)
        )
        return pb.CompressiveEncoding(fixed_size_list=lists)

    @property
    def _nested(self) -> tuple[list[int], list[bool], Encoding]:
        """Return the dimensions, the validity flags of their items (both outermost first), and the item encoding."""
        dimensions, has_validity = [], []
        inner: Encoding = self
        while isinstance(inner, FixedSizeList):
            dimensions.append(inner.dimension)
            has_validity.append(inner.has_validity)
            inner = inner.values
        return dimensions, has_validity, inner

    @property
    def plain_item_bits(self) -> int | None:
        """See `Encoding.plain_item_bits`."""
        bits = self.values.plain_item_bits
        return None if bits is None or self.has_validity else self.dimension * bits

    # -- reading -------------------------------------------------------------------------------------------------

    @property
    def num_buffers(self) -> int:
        """See `Encoding.num_buffers`."""
        return 1 + sum(self._nested[1])

    @property
    def least_bits(self) -> list[float]:
        """See `Encoding.least_bits`."""
        dimensions, has_validity, inner = self._nested
        bits: list[float] = []
        count = 1
        for dimension, stored in zip(dimensions, has_validity, strict=True):
            count *= dimension
            bits += [count] * stored
        return bits if inner.flat_bits is None else [*bits, count * inner.flat_bits]

    def most_chunk_bytes(self, count: int, where: str) -> int:
        """See `Encoding.most_chunk_bytes`; the first buffer has either the values or the validity of items."""
        dimensions, _, inner = self._nested
        return self.padded_bytes(count * prod(dimensions), inner.flat_bits or 1)

    def open_chunks(self, chunks: Chunks, value_type: pa.DataType, where: str) -> ChunkValues:
        """See `Encoding.open_chunks`."""
        dimensions, has_validity, inner = self._nested
        shape = FixedSizeListShape(value_type, dimensions, has_validity, where)
        if inner.flat_bits is None or inner.flat_bits != value_bits(shape.item_type):
            raise CorruptFileError(f"{where}: items {inner} do not fit the type {value_type}")
        return _ListValues(shape, inner.flat_bits, chunks)

    def flattened(self, value_type: pa.DataType, where: str) -> Encoding | None:
        """See `Encoding.flattened`."""
        dimensions, has_validity, inner = self._nested
        if any(has_validity):
            return None
        lists = FixedSizeListShape(value_type, dimensions, has_validity, where)
        if inner.flat_bits is None or inner.flat_bits != value_bits(lists.item_type):
            return None
        return Flat(inner.flat_bits * lists.counts[-1])

    @property
    def item_width(self) -> int:
        """See `Encoding.item_width`."""
        dimensions, has_validity, inner = self._nested
        return Shape(dimensions, has_validity, inner.flat_bits or 0).row_bytes

    def fixed_items(self, value_type: pa.DataType, values: pa.Buffer, length: int, where: str) -> pa.Array:
        """See `Encoding.fixed_items`."""
        dimensions, has_validity, inner = self._nested
        lists = FixedSizeListShape(value_type, dimensions, has_validity, where)
        total = length * lists.counts[-1]
        if inner == _NULL:
            bits = 0
        elif inner.flat_bits == value_bits(lists.item_type):
            bits = inner.flat_bits
        else:
            raise CorruptFileError(f"{where}: items {inner} do not fit the type {value_type}")
        if bits and not any(has_validity):
            return lists.assemble(
                length, [None] * len(dimensions), fixed_array(lists.item_type, total, _aligned(values, bits))
            )
        bitmaps = [
            allocate((length * count + 7) // 8) if stored else None
            for count, stored in zip(lists.counts, has_validity, strict=True)
        ]
        items = allocate((total * bits + 7) // 8) if bits else None
        Shape(dimensions, has_validity, bits).unpack_rows(values, length, bitmaps, items)
        if items is None:
            return lists.assemble(length, [*bitmaps[:-1], None], pa.nulls(total, lists.item_type))
        return lists.assemble(length, bitmaps, fixed_array(lists.item_type, total, items))

    def planar_entries(self, buffer: pa.Buffer, size: int, value_type: pa.DataType, where: str) -> pa.Array:
        """See `Encoding.planar_entries`."""
        width = self.item_width
        if size * width != buffer.size or width == 0:
            raise CorruptFileError(f"{where}: a dictionary of {size} lists of {width} bytes in {buffer.size} bytes")
        return self.fixed_items(value_type, buffer, size, where)

    # -- report --------------------------------------------------------------------------------------------------

    @property
    def text(self) -> str:
        """See `Encoding.text`."""
        nulls = " with nulls" if self.has_validity else ""
        return f"fixed-size list {self.dimension}{nulls}({self.values.text})"

    @property
    def is_plain(self) -> bool:
        """See `Encoding.is_plain`."""
        return self.values.is_plain

    def reason(self, stored: StoredValues) -> str:
        """See `Encoding.reason`."""
        nulls = ", each with a bitmap of null items" if self.has_validity else ""
        return f"{stored.count:,} lists of {self.dimension:,} items as they are{nulls}: {size_text(stored.size)}"


def _aligned(values: pa.Buffer, bits: int) -> pa.Buffer:
    return aligned(values, bits // 8) if bits % 8 == 0 else values


class _ListValues(ChunkValues):
    """Fixed-size lists of fixed-width items."""

    def __init__(self, shape: FixedSizeListShape, bits: int, chunks: Chunks) -> None:
        self._shape = shape
        self._bits = bits
        self._bitmaps: list[FixedValues | None] = []
        buffer = 0
        for count, stored in zip(shape.counts, shape.has_validity, strict=True):
            self._bitmaps.append(FixedValues(chunks, miniblock_values.FLAT, count, buffer) if stored else None)
            buffer += stored
        self._values = FixedValues(chunks, miniblock_values.FLAT, shape.counts[-1] * bits, buffer)

    def scan(self, start: int, stop: int, validity: pa.Buffer | None = None) -> pa.Array:
        length = stop - start
        outputs = self._allocate(length)
        for values, out in zip([*self._bitmaps, self._values], outputs, strict=True):
            if values is not None and out is not None:
                values.scan(start, stop, out)
        return self._assemble(length, outputs)

    def take(self, items: NDArray[np.int64], validity: pa.Buffer | None = None) -> pa.Array:
        outputs = self._allocate(len(items))
        for values, out in zip([*self._bitmaps, self._values], outputs, strict=True):
            if values is not None and out is not None:
                values.take(items, out)
        return self._assemble(len(items), outputs)

    def _allocate(self, length: int) -> list[pa.Buffer | None]:
        """Allocate a bitmap for each dimension that has one, and a buffer for the values."""
        counts = self._shape.counts
        bitmaps = [
            None if values is None else allocate((length * count + 7) // 8)
            for values, count in zip(self._bitmaps, counts, strict=True)
        ]
        return [*bitmaps, allocate((length * counts[-1] * self._bits + 7) // 8)]

    def _assemble(self, length: int, outputs: list[pa.Buffer | None]) -> pa.Array:
        items = fixed_array(self._shape.item_type, length * self._shape.counts[-1], outputs[-1])
        return self._shape.assemble(length, outputs[:-1], items)


# -- writing -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Lists:
    """Components of fixed-size lists, nested or not.

    Attributes
    ----------
    rows
        Number of outermost lists.
    dimensions
        List sizes, outermost first.
    bitmaps
        For each dimension, the validity of its items as (bitmap, bit of the first item); None if all are valid.
    values, first, bits
        Innermost items of `bits` bits each; the first one has the number `first`.
    all_null
        True if all innermost items are null.
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
        """Geometry for the kernels; without values if every item is null."""
        return Shape(self.dimensions, self.has_validity, 0 if self.all_null else self.bits)

    @property
    def has_validity(self) -> tuple[bool, ...]:
        """Flag of each dimension that is true if it has null items."""
        return tuple(one is not None for one in self.bitmaps)

    @property
    def items(self) -> int:
        """Number of innermost items of a list."""
        return int(np.prod(self.dimensions, dtype=np.int64))

    @property
    def zippable(self) -> bool:
        """True if the values of a list are whole bytes, so that a list can be stored alone."""
        return self.items * self.bits % 8 == 0

    @property
    def row_bytes(self) -> int:
        """Number of bytes of the values of a list."""
        return (self.items * self.bits + 7) // 8

    @property
    def encoding(self) -> Encoding:
        """Description with one message per dimension."""
        inner: Encoding = Constant(None) if self.all_null else Flat(self.bits)
        for dimension, has_validity in zip(reversed(self.dimensions), reversed(self.has_validity), strict=True):
            inner = FixedSizeList(dimension, has_validity, inner)
        return inner


def lists_of(values: pa.Array, validity: pa.Buffer | None) -> Lists:
    """Return the components of fixed-size lists; items below null lists count as valid.

    Raises
    ------
    UnsupportedError
        The items do not have a fixed width.
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
    """Return a bitmap of the valid items, None if all are valid; items of null lists count as valid."""
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
    """Return the bytes of all lists if they are just those of their items, otherwise None."""
    if any(lists.has_validity) or lists.bits % 8:
        return None
    width = lists.bits // 8
    begin, size = lists.first * width, lists.rows * lists.row_bytes
    buffer = lists.values
    return buffer.slice(begin, size) if isinstance(buffer, pa.Buffer) else memoryview(buffer)[begin : begin + size]


def encode_lists(lists: Lists, request: Request) -> EncodedChunks | None:
    """Encode lists in chunks; return None if two lists are too large for a chunk, or if no values are stored."""
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
    """Encode lists one by one.

    Raises
    ------
    UnsupportedError
        The lists are booleans that do not fill whole bytes.
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
