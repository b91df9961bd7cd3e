"""Arrow arrays as legacy pages need them: without hidden values under nulls, which these pages cannot hold."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_dataset.file.buffers import aligned, allocate, bit_width, bitmap_at_zero, octets
from lance_dataset.file.kinds import is_binary_like, is_text, is_wide
from lance_dataset.file.v0_1.layout import bits_per_row
from lancecodec import bitmap

__all__ = [
    "count_nulls",
    "fixed_bits",
    "fixed_bytes",
    "is_bits",
    "valid_bytes",
    "value_offsets",
    "visible_items",
    "without_hidden_bytes",
    "without_nulls",
    "zero_based",
]

_WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def value_offsets(array: pa.Array) -> NDArray[np.int32] | NDArray[np.int64]:
    """Return the offsets of a string, binary or list array, one more than the number of values."""
    dtype = np.int64 if is_wide(array.type) else np.int32
    width = np.dtype(dtype).itemsize
    buffer = array.buffers()[1]
    if buffer is None or buffer.size == 0:  # an empty array may have no offsets
        return np.zeros(1, dtype)
    return np.frombuffer(aligned(buffer.slice(array.offset * width, (len(array) + 1) * width), width), dtype)


def valid_bytes(array: pa.Array) -> NDArray[np.bool_]:
    """Return a mask of the values that are not null."""
    validity = array.buffers()[0]
    if array.null_count == 0 or validity is None:
        return np.full(len(array), array.null_count == 0)
    out = np.empty(len(array), np.bool_)
    bitmap.unpack(octets(validity), array.offset, len(array), out.view(np.uint8).data)
    return out


# -- fixed width -----------------------------------------------------------------------------------------------------


def is_bits(arrow_type: pa.DataType) -> bool:
    """Return True for bools, and fixed-size lists of them at any depth, whose pages are single bits."""
    while pa.types.is_fixed_size_list(arrow_type):
        arrow_type = arrow_type.value_type
    return pa.types.is_boolean(arrow_type)


def count_nulls(array: pa.Array) -> int:
    """Count the nulls of an array of a fixed-width type, including those among the items of fixed-size lists."""
    nulls = array.null_count
    if pa.types.is_fixed_size_list(array.type):
        nulls += count_nulls(_items(array))
    return nulls


def _items(array: pa.Array) -> pa.Array:
    size = array.type.list_size
    return array.values.slice(array.offset * size, len(array) * size)


def fixed_bytes(array: pa.Array) -> memoryview:
    """Return whole-byte values back to back, with nulls as zeros; copies only if there are nulls."""
    if pa.types.is_fixed_size_list(array.type):
        values = fixed_bytes(_items(array))
        return _zeroed_rows(values, array) if array.null_count else values
    width = bit_width(array.type) // 8
    size = len(array) * width
    if size == 0:
        return memoryview(b"")
    values = octets(array.buffers()[1].slice(array.offset * width, size))
    if array.null_count == 0:
        return values
    word = _WORDS.get(width)
    if word is None:
        return _zeroed_rows(values, array)
    return (np.frombuffer(values, word) * valid_bytes(array)).data.cast("B")


def _zeroed_rows(values: memoryview, array: pa.Array) -> memoryview:
    """Return the bytes of fixed-width rows, with nulls as zeros."""
    width = bits_per_row(array.type) // 8
    if width == 0:
        return values
    rows = np.frombuffer(values, np.uint8).reshape(len(array), width).copy()
    rows[~valid_bytes(array)] = 0
    return rows.data.cast("B")


def fixed_bits(array: pa.Array) -> pa.Buffer:
    """Return bools, or fixed-size lists of bools, as bits from bit 0 on, with nulls as false."""
    flat = _flat_bools(array)
    if len(flat) == 0:
        return pa.py_buffer(b"")
    return bitmap_at_zero(flat.buffers()[1], flat.offset, len(flat))


def _flat_bools(array: pa.Array) -> pa.BooleanArray:
    if not pa.types.is_fixed_size_list(array.type):
        return pc.fill_null(array, False) if array.null_count else array
    flat = _flat_bools(_items(array))
    if array.null_count == 0:
        return flat
    return pc.and_(flat, pa.array(np.repeat(valid_bytes(array), len(flat) // max(len(array), 1))))


# -- variable width --------------------------------------------------------------------------------------------------


def without_hidden_bytes(array: pa.Array) -> pa.Array:
    """Return the same strings or binaries, without bytes under nulls."""
    if array.null_count == 0:
        return array
    lengths = np.diff(value_offsets(array))
    if not lengths[~valid_bytes(array)].any():
        return array
    # Taking every value copies only the visible bytes.
    return array.take(pa.array(np.arange(len(array), dtype=np.int64)))


def visible_items(array: pa.Array) -> tuple[NDArray[np.int32] | NDArray[np.int64], pa.Array]:
    """Return offsets from 0, with null lists empty, and exactly the items that they refer to."""
    offsets = value_offsets(array)
    first, last = int(offsets[0]), int(offsets[-1])
    if array.null_count:
        lengths = np.diff(offsets)
        valid = valid_bytes(array)
        if lengths[~valid].any():
            compact = np.zeros(len(array) + 1, offsets.dtype)
            np.cumsum(np.where(valid, lengths, 0), out=compact[1:])
            return compact, array.flatten()
    return (offsets - first if first else offsets), array.values.slice(first, last - first)


def without_nulls(array: pa.Array) -> pa.Array:
    """Return the values as a reader sees them in a field without nulls: zeros, empty strings."""
    if array.null_count == 0:
        return array
    if is_binary_like(array.type):
        return pc.fill_null(array, pa.scalar("" if is_text(array.type) else b"", array.type))
    if pa.types.is_boolean(array.type):
        return pc.fill_null(array, False)
    return pa.Array.from_buffers(array.type, len(array), [None, pa.py_buffer(fixed_bytes(array))])


def zero_based(bits: pa.Buffer, start: int, length: int) -> memoryview:
    """Return a page of bits `[start, start + length)`; unused bits of the last byte are zero."""
    size = (length + 7) // 8
    page = octets(bitmap_at_zero(bits, start, length))[:size]
    if length % 8 == 0:
        return page
    clean = octets(allocate(size))
    clean[:] = page
    clean[-1] &= (1 << length % 8) - 1
    return clean
