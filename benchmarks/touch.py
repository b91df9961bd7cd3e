"""Functions that read every byte of a result, so that values of lazily mapped files count as read.

Only the visible part of a table is read. Batches are often slices of common buffers, and reading those whole for each
batch would charge such a reader many times.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

__all__ = ["touch"]

_OFFSETS_32 = (pa.types.is_string, pa.types.is_binary)
_OFFSETS_64 = (pa.types.is_large_string, pa.types.is_large_binary)
_VIEW_BYTES = 16


def touch(data: pa.Table | pa.RecordBatch) -> int:
    """Read the bytes of all columns; return their number.

    Raises
    ------
    TypeError
        The type is not supported; skipping it would make a contender look faster than it is.
    """
    total = 0
    for column in data.columns:
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        total += sum(_touch_array(chunk) for chunk in chunks)
    return total


def _read(buffer: pa.Buffer, start: int, stop: int) -> int:
    """Read the bytes from `start` to `stop` (word by word, the rest byte by byte)."""
    if stop <= start:
        return 0
    seen = np.frombuffer(buffer, np.uint8, stop - start, start)
    words = len(seen) // 8 * 8
    seen[:words].view(np.uint64).sum()
    seen[words:].sum()
    return stop - start


def _touch_array(array: pa.Array) -> int:
    start, stop = array.offset, array.offset + len(array)
    buffers, kind = array.buffers(), array.type
    total = 0
    if buffers[0] is not None:
        total += _read(buffers[0], start // 8, (stop + 7) // 8)
    if len(array) == 0:
        return total
    if any(is_kind(kind) for is_kind in _OFFSETS_32):
        return total + _touch_offsets(buffers, start, stop, np.int32)
    if any(is_kind(kind) for is_kind in _OFFSETS_64):
        return total + _touch_offsets(buffers, start, stop, np.int64)
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        total += _read(buffers[1], start * _VIEW_BYTES, stop * _VIEW_BYTES)
        return total + sum(_read(buffer, 0, buffer.size) for buffer in buffers[2:] if buffer is not None)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        width = np.int64 if pa.types.is_large_list(kind) else np.int32
        first, last = _ends(buffers[1], start, stop, width)
        total += _read(buffers[1], start * width().itemsize, (stop + 1) * width().itemsize)
        return total + _touch_array(array.values.slice(first, last - first))
    if pa.types.is_fixed_size_list(kind):
        return total + _touch_array(array.values.slice(start * kind.list_size, len(array) * kind.list_size))
    if pa.types.is_dictionary(kind):
        return total + _touch_array(array.indices) + _touch_array(array.dictionary)
    if pa.types.is_boolean(kind):
        return total + _read(buffers[1], start // 8, (stop + 7) // 8)
    if (pa.types.is_primitive(kind) or pa.types.is_decimal(kind)) and kind.bit_width % 8 == 0:
        width_bytes = kind.bit_width // 8
        return total + _read(buffers[1], start * width_bytes, stop * width_bytes)
    if pa.types.is_struct(kind):
        return sum(_touch_array(child) for child in array.flatten())
    raise TypeError(f"cannot touch the bytes of {kind}; teach benchmarks/touch.py")


def _ends(offsets: pa.Buffer, start: int, stop: int, width: type) -> tuple[int, int]:
    values = np.frombuffer(offsets, width, stop + 1)
    return int(values[start]), int(values[stop])


def _touch_offsets(buffers: list[pa.Buffer | None], start: int, stop: int, width: type) -> int:
    first, last = _ends(buffers[1], start, stop, width)
    total = _read(buffers[1], start * width().itemsize, (stop + 1) * width().itemsize)
    return total if buffers[2] is None else total + _read(buffers[2], first, last)
