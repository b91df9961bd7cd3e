"""Values of an array that a mask keeps, for the types that compiled code moves; faster than Arrow's filter."""

from __future__ import annotations

import pyarrow as pa

from lance_dataset.file.buffers import allocate
from lance_dataset.file.dictionaries import decode_dictionary_array
from lance_dataset.file.kinds import is_binary_like, is_wide
from lance_dataset.file.structural.arrays import value_bits
from lancecodec import kept

__all__ = ["KeptRows", "kept_batch", "kept_values"]


def kept_values(array: pa.Array, mask: pa.BooleanArray, *, decode: bool = False) -> pa.Array | None:
    """Return the values that a mask keeps, None for arrays of types that compiled code does not move.

    Parameters
    ----------
    array
        Values of any type.
    mask
        One boolean per value, never null.
    decode
        True to return the entries that the indices of a dictionary array point to.

    Raises
    ------
    OffsetOverflowError, pyarrow.ArrowInvalid
        `decode`: the values do not fit one array.
    """
    return KeptRows(mask).of(array, decode=decode)


def kept_batch(batch: pa.RecordBatch, mask: pa.BooleanArray) -> pa.RecordBatch:
    """Return the rows of a batch that a mask without nulls keeps."""
    columns, rows = [], KeptRows(mask)
    for column in batch.columns:
        picked = rows.of(column)
        columns.append(column.filter(mask) if picked is None else picked)
    if not columns:
        return batch.filter(mask)
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


class KeptRows:
    """Rows that a mask keeps, the same of many columns.

    Parameters
    ----------
    mask
        One boolean per row, never null.

    Attributes
    ----------
    mask
        The mask.
    count
        Number of rows that it keeps.
    """

    def __init__(self, mask: pa.BooleanArray) -> None:
        self.mask = mask
        self.place = (mask.buffers()[1], mask.offset, len(mask))
        self.count: int = mask.true_count

    @property
    def are_all(self) -> bool:
        """True if the mask keeps every row."""
        return self.count == self.place[2]

    def of(self, array: pa.Array, *, decode: bool = False) -> pa.Array | None:
        """Return the values of an array at these rows; see `kept_values`."""
        kind = array.type
        if array.null_count == 0 and pa.types.is_primitive(kind) and kind.bit_width % 8 == 0:
            moved = self._fixed(array.buffers()[1], array.offset, kind.bit_width // 8)
            return pa.Array.from_buffers(kind, self.count, [None, moved], 0)
        if isinstance(kind, pa.DictionaryType):
            indices = self.of(array.indices)
            picked = pa.DictionaryArray.from_arrays(indices, array.dictionary, ordered=kind.ordered, safe=False)
            return decode_dictionary_array(picked) if decode else picked
        if pa.types.is_fixed_size_list(kind):
            return self._lists(array)
        if isinstance(kind, pa.BaseExtensionType) or pa.types.is_nested(kind) or pa.types.is_null(kind):
            return None
        if is_binary_like(kind):
            values = self._strings(array)
        elif pa.types.is_boolean(kind):
            values = [self._bits(array.buffers()[1], array.offset)]
        else:
            width = value_bits(kind) // 8
            if not width:
                return None
            values = [self._fixed(array.buffers()[1], array.offset, width)]
        valid = self._bits(array.buffers()[0], array.offset) if array.null_count else None
        return pa.Array.from_buffers(kind, self.count, [valid, *values], -1 if array.null_count else 0)

    def _fixed(self, values: pa.Buffer, first: int, width: int) -> pa.Buffer:
        out = allocate(self.count * width)
        kept.fixed(values.slice(first * width), width, *self.place, out)
        return out

    def _bits(self, bits: pa.Buffer, first: int) -> pa.Buffer:
        out = allocate((self.count + 7) // 8)
        kept.bitmap(bits, first, *self.place, out, self.count)
        return out

    def _lists(self, array: pa.Array) -> pa.Array | None:
        """Move lists of values of whole bytes without nulls; return None for others."""
        kind, items = array.type, array.values
        if not pa.types.is_primitive(kind.value_type) or kind.value_type.bit_width % 8 or items.null_count:
            return None
        size = kind.value_type.bit_width // 8
        if not kind.list_size or items.buffers()[1] is None:
            return None
        first = items.offset + array.offset * kind.list_size
        out = allocate(self.count * kind.list_size * size)
        kept.fixed(items.buffers()[1].slice(first * size), kind.list_size * size, *self.place, out)
        values = pa.Array.from_buffers(kind.value_type, self.count * kind.list_size, [None, out], 0)
        valid = self._bits(array.buffers()[0], array.offset) if array.null_count else None
        nulls = -1 if array.null_count else 0
        return pa.Array.from_buffers(kind, self.count, [valid], nulls, children=[values])

    def _strings(self, array: pa.Array) -> list[pa.Buffer]:
        wide, data = is_wide(array.type), array.buffers()[2] or pa.py_buffer(b"")
        size = 8 if wide else 4
        offsets = array.buffers()[1].slice(array.offset * size)
        ends = allocate((self.count + 1) * size)
        total = kept.ends(offsets, wide, *self.place, ends, self.count)
        out = allocate(total)
        kept.strings(data, offsets, wide, *self.place, out)
        return [ends, out]
