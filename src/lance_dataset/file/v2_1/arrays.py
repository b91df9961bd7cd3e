"""Arrow arrays (without nulls of their own) over decoded buffers."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lance_dataset.errors import CorruptFileError
from lance_dataset.file.buffers import allocate, bit_width
from lance_dataset.file.kinds import is_binary_like, is_text, is_wide
from lancecodec import gather, packed, utf8

__all__ = [
    "FixedSizeListShape",
    "binary_array",
    "dictionary_array",
    "empty_array",
    "fixed_array",
    "gather_binary",
    "packed_array",
    "value_bits",
]

_GATHER_SLACK = 64


def value_bits(value_type: pa.DataType) -> int:
    """Bits of a value of a fixed-width type that is no list; 0 for every other type."""
    if pa.types.is_dictionary(value_type) or pa.types.is_nested(value_type) or is_binary_like(value_type):
        return 0
    try:
        return bit_width(value_type)
    except ValueError:
        return 0


def fixed_array(value_type: pa.DataType, length: int, values: pa.Buffer) -> pa.Array:
    """Values of one width."""
    return pa.Array.from_buffers(value_type, length, [None, values], 0)


def binary_array(value_type: pa.DataType, length: int, offsets: pa.Buffer, data: pa.Buffer) -> pa.Array:
    """Strings, which must be UTF-8, or binaries."""
    if is_text(value_type):
        utf8.validate(data, offsets, is_wide(value_type))
    return pa.Array.from_buffers(value_type, length, [None, offsets, data], 0)


def dictionary_array(value_type: pa.DictionaryType, indices: pa.Buffer, length: int, items: pa.Array) -> pa.Array:
    """Indices into a dictionary; they were checked."""
    return pa.DictionaryArray.from_buffers(value_type, length, [None, indices], items, 0)


def empty_array(value_type: pa.DataType) -> pa.Array:
    """No values."""
    if isinstance(value_type, pa.DictionaryType):
        return pa.DictionaryArray.from_arrays(
            pa.array([], value_type.index_type), pa.array([], value_type.value_type), ordered=value_type.ordered
        )
    return pa.array([], value_type)


def gather_binary(
    items: pa.Array, indices: pa.Buffer, index_bits: int, length: int, validity: pa.Buffer | None
) -> pa.Array:
    """Strings behind a dictionary; with `validity`, the indices of nulls may be anything."""
    wide = is_wide(items.type)
    source_offsets, source = items.buffers()[1], items.buffers()[2]
    width = 8 if wide else 4
    if items.offset:
        source_offsets = source_offsets.slice(items.offset * width)
    source_offsets = source_offsets.slice(0, (len(items) + 1) * width)
    offsets = allocate((length + 1) * width)
    codes = indices.slice(0, length * index_bits // 8)
    place = (source or b"", source_offsets, wide, codes, index_bits // 8)
    total = gather.binary_offsets(*place, wide, offsets, 0, validity)
    data = allocate(total + _GATHER_SLACK)
    gather.binary(*place, data, validity)
    return pa.Array.from_buffers(items.type, length, [None, offsets, data.slice(0, total)], 0)


def packed_array(value_type: pa.StructType, widths: Sequence[int], rows: pa.Buffer, length: int) -> pa.Array:
    """Rows of fixed-width children as a struct."""
    columns = [allocate(width * length) for width in widths]
    packed.unpack(rows, widths, length, columns)
    children = [fixed_array(field.type, length, column) for field, column in zip(value_type, columns, strict=True)]
    return pa.Array.from_buffers(value_type, length, [None], 0, 0, children)


class FixedSizeListShape:
    """The dimensions of a (nested) fixed-size list and how its encoding stores them.

    Parameters
    ----------
    value_type
        The Arrow type.
    dimensions, has_validity
        What the encoding says of each dimension, outermost first.
    where
        File, column and page, for error messages.

    Attributes
    ----------
    counts
        Items per value at each dimension: the products of the dimensions so far.
    item_type
        Type of the innermost items.
    """

    def __init__(
        self, value_type: pa.DataType, dimensions: Sequence[int], has_validity: Sequence[bool], where: str
    ) -> None:
        self.value_type = value_type
        self.has_validity = tuple(has_validity)
        self.dimensions = tuple(dimensions)
        counts, count, item_type = [], 1, value_type
        for dimension in dimensions:
            if not pa.types.is_fixed_size_list(item_type) or item_type.list_size != dimension:
                raise CorruptFileError(f"{where}: lists of {list(dimensions)} items do not fit the type {value_type}")
            count *= dimension
            if count > 2**31:
                raise CorruptFileError(f"{where}: lists of {list(dimensions)} items are too large")
            counts.append(count)
            item_type = item_type.value_type
        self.counts = tuple(counts)
        self.item_type = item_type

    def assemble(self, length: int, bitmaps: Sequence[pa.Buffer | None], values: pa.Array) -> pa.Array:
        """Lists over `values`, with the bitmap (if any) of the items of each dimension."""
        array = values
        types = [self.value_type]
        for _ in self.dimensions[1:]:
            types.append(types[-1].value_type)
        for kind, count, bitmap in zip(reversed(types), reversed(self.counts), reversed(bitmaps), strict=True):
            if bitmap is not None:
                array = _under(array, bitmap)
            array = pa.Array.from_buffers(kind, length * count // kind.list_size, [None], 0, 0, [array])
        return array


def _under(array: pa.Array, bitmap: pa.Buffer) -> pa.Array:
    """The items with a bitmap of their validity."""
    if pa.types.is_fixed_size_list(array.type):
        return pa.Array.from_buffers(array.type, len(array), [bitmap], -1, 0, [array.values])
    return pa.Array.from_buffers(array.type, len(array), [bitmap, *array.buffers()[1:]], -1)
