"""Small helpers for Arrow buffers: byte views for the codec core, allocation, alignment, bitmaps."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_dataset.limits import BASE_MEMORY, check_allocation
from lancecodec import bitmap

__all__ = [
    "aligned",
    "allocate",
    "as_integers",
    "bit_width",
    "bitmap_at_zero",
    "concat_arrays",
    "filled_bitmap",
    "octets",
    "private_copy",
    "private_integers",
    "with_validity",
]


def octets(buffer: pa.Buffer) -> memoryview:
    """Return a view of a buffer as unsigned bytes, the type that the kernels take."""
    return memoryview(buffer).cast("B")


def allocate(size: int) -> pa.Buffer:
    """Allocate a writable buffer of `size` bytes from Arrow's memory pool.

    Raises
    ------
    MemoryLimitError
        The buffer is larger than a limited result may be.
    """
    if size > BASE_MEMORY:
        check_allocation(size)
    return pa.allocate_buffer(size)


def bit_width(arrow_type: pa.DataType) -> int:
    """Return the number of bits of a value of a fixed-width type; raise ValueError for other types."""
    if pa.types.is_fixed_size_binary(arrow_type):
        return 8 * arrow_type.byte_width  # Arrow's own bit_width is a 32-bit number
    return arrow_type.bit_width


def aligned(buffer: pa.Buffer, width: int) -> pa.Buffer:
    """Return the buffer, or a copy if it is not aligned to values of `width` bytes (old files do not align buffers)."""
    need = min(width & -width, 8)
    if need <= 1 or buffer.address % need == 0:
        return buffer
    copy = allocate(buffer.size)
    octets(copy)[:] = octets(buffer)
    return copy


def private_copy(buffer: pa.Buffer) -> pa.Buffer:
    """Return a copy that nobody else can change, unlike a view of a mapped file.

    What is checked or counted must be what is handed out. So everything that other buffers of an array rely on is
    copied before it is looked at: indices, offsets, validity, text. Plain values may stay views.
    """
    copy = allocate(buffer.size)
    if buffer.size:
        octets(copy)[:] = octets(buffer)
    return copy


def private_integers(array: pa.Array) -> pa.Array:
    """Return the same integers over a copy of their values; the validity must be private already."""
    validity, values = array.buffers()
    width = array.type.bit_width // 8
    bits = None if validity is None else bitmap_at_zero(validity, array.offset, len(array))
    values = private_copy(values.slice(array.offset * width, len(array) * width))
    return pa.Array.from_buffers(array.type, len(array), [bits, values], array.null_count)


def as_integers(buffer: pa.Buffer, dtype: type[np.generic], count: int) -> NDArray[np.generic]:
    """Return `count` integers of a buffer at any address."""
    return np.frombuffer(aligned(buffer, np.dtype(dtype).itemsize), dtype, count)


def bitmap_at_zero(bits: pa.Buffer, offset: int, length: int) -> pa.Buffer:
    """Return the bitmap whose bit 0 is bit `offset` of `bits`."""
    if offset % 8 == 0:
        return bits.slice(offset // 8)
    out = allocate((length + 7) // 8)
    octets(out)[-1:] = b"\0" if length else b""
    bitmap.copy(octets(bits), offset, length, octets(out))
    return out


def filled_bitmap(value: bool, length: int, kept: pa.Buffer | None = None) -> pa.Buffer:
    """Return a bitmap of equal bits, or of those that are also set in `kept`."""
    size = (length + 7) // 8
    if value and kept is not None:
        return kept.slice(0, size)
    return pa.py_buffer(np.full(size, 255 if value else 0, np.uint8))


def with_validity(array: pa.Array, validity: pa.Buffer) -> pa.Array:
    """Return `array` with further nulls: every value whose bit (from bit 0 on) is clear."""
    mask = pa.Array.from_buffers(pa.bool_(), len(array), [None, validity])
    return pc.if_else(mask, array, pa.scalar(None, array.type))


def concat_arrays(arrays: list[pa.Array], arrow_type: pa.DataType) -> pa.Array:
    """Concatenate arrays; the result for no arrays is an empty array."""
    if len(arrays) == 1:
        return arrays[0]
    if not arrays:
        return pa.array([], arrow_type) if not isinstance(arrow_type, pa.DictionaryType) else _empty(arrow_type)
    return pa.concat_arrays(arrays)


def _empty(arrow_type: pa.DictionaryType) -> pa.Array:
    return pa.DictionaryArray.from_arrays(
        pa.array([], arrow_type.index_type), pa.array([], arrow_type.value_type), ordered=arrow_type.ordered
    )
