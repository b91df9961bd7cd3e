"""Arrow arrays, without nulls of their own, built over decoded buffers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa

from lance_dataset.errors import CorruptFileError
from lance_dataset.file.buffers import allocate, bit_width
from lance_dataset.file.kinds import is_binary_like, is_text, is_wide
from lance_dataset.properties import cached_property
from lancecodec import CodecError, gather, packed, utf8

__all__ = [
    "BinaryDictionary",
    "FixedSizeListShape",
    "binary_array",
    "dictionary_array",
    "empty_array",
    "fixed_array",
    "packed_array",
    "resolve_fixed",
    "value_bits",
]

_GATHER_SLACK = 64
#: Entries count as short if the longest is at most this many times the average: room is then taken for the longest.
_MAX_EXCESS = 4.0


@lru_cache(maxsize=256)
def value_bits(value_type: pa.DataType) -> int:
    """Return the bits of a value of a fixed-width type that is not a list, 0 for every other type."""
    if pa.types.is_dictionary(value_type) or pa.types.is_nested(value_type) or is_binary_like(value_type):
        return 0
    try:
        return bit_width(value_type)
    except ValueError:
        return 0


def fixed_array(value_type: pa.DataType, length: int, values: pa.Buffer) -> pa.Array:
    """Return an array of fixed-width values."""
    return pa.Array.from_buffers(value_type, length, [None, values], 0)


def binary_array(value_type: pa.DataType, length: int, offsets: pa.Buffer, data: pa.Buffer) -> pa.Array:
    """Return an array of binaries, or of strings, which must be UTF-8."""
    if is_text(value_type):
        utf8.validate(data, offsets, is_wide(value_type))
    return pa.Array.from_buffers(value_type, length, [None, offsets, data], 0)


def dictionary_array(value_type: pa.DictionaryType, indices: pa.Buffer, length: int, items: pa.Array) -> pa.Array:
    """Return a dictionary array with indices that were checked before."""
    return pa.DictionaryArray.from_buffers(value_type, length, [None, indices], items, 0)


def empty_array(value_type: pa.DataType) -> pa.Array:
    """Return an array without values."""
    if isinstance(value_type, pa.DictionaryType):
        return pa.DictionaryArray.from_arrays(
            pa.array([], value_type.index_type), pa.array([], value_type.value_type), ordered=value_type.ordered
        )
    return pa.array([], value_type)


class BinaryDictionary:
    """Strings or binaries to which indices point.

    Parameters
    ----------
    items
        The entries, without nulls.
    """

    def __init__(self, items: pa.Array) -> None:
        self._type = items.type
        self._wide = is_wide(items.type)
        self._count = len(items)
        width = 8 if self._wide else 4
        self._offsets = items.buffers()[1].slice(items.offset * width, (len(items) + 1) * width)
        self._data = items.buffers()[2] or pa.py_buffer(b"")

    @cached_property
    def _lengths(self) -> tuple[int, int, float]:
        """Bytes of the shortest entry, of the longest, and on average; all 0 if there are no entries."""
        if self._count == 0:
            return 0, 0, 0.0
        ends = np.frombuffer(self._offsets, np.int64 if self._wide else np.int32)
        lengths = ends[1:] - ends[:-1]
        return int(lengths.min()), int(lengths.max()), int(ends[-1] - ends[0]) / self._count

    @cached_property
    def _equal(self) -> tuple[pa.Buffer, int] | None:
        """Bytes and width of the entries, None unless all have the same length."""
        shortest, width, _ = self._lengths
        if width == 0 or shortest != width:
            return None
        first = int.from_bytes(self._offsets.slice(0, 8 if self._wide else 4).to_pybytes(), "little")
        return self._data.slice(first, width * self._count), width

    @cached_property
    def _short(self) -> gather.ShortEntries | None:
        """The entries, None unless all are short."""
        _, longest, mean = self._lengths
        if longest == 0 or longest > min(gather.SHORT_ENTRY, _MAX_EXCESS * max(mean, 1.0)):
            return None
        return gather.ShortEntries(self._data, self._offsets, self._wide)

    def resolve(self, indices: pa.Buffer, index_bits: int, length: int, validity: pa.Buffer | None) -> pa.Array:
        """Return the values that indices point to; with `validity`, the indices of nulls may be anything.

        Raises
        ------
        CodecError
            An index does not have an entry.
        OffsetOverflowError
            The values do not fit the offsets of their type.
        """
        codes = indices.slice(0, length * index_bits // 8)
        if validity is None and length >= self._count:  # preparing a fast path visits every entry
            if self._equal is not None and self._fits(length, self._equal[1]):
                return self._resolve_equal(*self._equal, codes, index_bits // 8, length)
            if self._short is not None and self._fits(length, self._short.longest):
                return self._resolve_short(self._short, codes, index_bits // 8, length)
        offsets = allocate((length + 1) * (8 if self._wide else 4))
        place = (self._data, self._offsets, self._wide, codes, index_bits // 8)
        total = gather.binary_offsets(*place, self._wide, offsets, 0, validity)
        data = allocate(total + _GATHER_SLACK)
        gather.binary(*place, data, validity)
        return self._array(length, offsets, data.slice(0, total))

    def _fits(self, length: int, longest: int) -> bool:
        return self._wide or length * longest < 2**31

    def _resolve_equal(
        self, entries: pa.Buffer, width: int, codes: pa.Buffer, index_width: int, length: int
    ) -> pa.Array:
        data = allocate(length * width)
        gather.fixed(entries, width, codes, index_width, data)
        end = length * width + 1
        offsets = np.arange(0, end, width, dtype=np.int64 if self._wide else np.int32)
        return self._array(length, pa.py_buffer(offsets), data)

    def _resolve_short(self, short: gather.ShortEntries, codes: pa.Buffer, index_width: int, length: int) -> pa.Array:
        offsets = allocate((length + 1) * (8 if self._wide else 4))
        data = allocate(short.room(length))
        total = short.gather(codes, index_width, self._wide, offsets, data)
        return self._array(length, offsets, data.slice(0, total))

    def _array(self, length: int, offsets: pa.Buffer, data: pa.Buffer) -> pa.Array:
        return pa.Array.from_buffers(self._type, length, [None, offsets, data], 0)


def resolve_fixed(
    dictionary: pa.Array, indices: pa.Buffer, index_bits: int, length: int, validity: pa.Buffer | None
) -> pa.Array:
    """Return the values of a fixed width that indices point to; with `validity`, the indices of nulls may be anything.

    Raises
    ------
    CodecError
        An index does not have an entry, or the entries are not of a fixed width.
    """
    width = value_bits(dictionary.type) // 8
    if width == 0:
        raise CodecError(f"a dictionary of {dictionary.type} values")
    out = allocate(length * width)
    values = dictionary.buffers()[1].slice(dictionary.offset * width, len(dictionary) * width)
    gather.fixed(values, width, indices, index_bits // 8, out, validity)
    return fixed_array(dictionary.type, length, out)


def packed_array(value_type: pa.StructType, widths: Sequence[int], rows: pa.Buffer, length: int) -> pa.Array:
    """Return rows of fixed-width children as a struct array."""
    columns = [allocate(width * length) for width in widths]
    packed.unpack(rows, widths, length, columns)
    children = [fixed_array(field.type, length, column) for field, column in zip(value_type, columns, strict=True)]
    return pa.Array.from_buffers(value_type, length, [None], 0, 0, children)


class FixedSizeListShape:
    """Dimensions of a (nested) fixed-size list, and their storage in its encoding.

    Parameters
    ----------
    value_type
        The Arrow type.
    dimensions, has_validity
        The list size of each dimension in the encoding, and whether its items may be null, outermost first.
    where
        File, column and page, for error messages.

    Attributes
    ----------
    counts
        Items per value at each dimension: the cumulative products of the dimensions.
    item_type
        Arrow type of the innermost items.
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
        """Return lists over `values`, with the bitmap (if any) of the items of each dimension."""
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
    """Return the items with a validity bitmap."""
    if pa.types.is_fixed_size_list(array.type):
        return pa.Array.from_buffers(array.type, len(array), [bitmap], -1, 0, [array.values])
    return pa.Array.from_buffers(array.type, len(array), [bitmap, *array.buffers()[1:]], -1)
