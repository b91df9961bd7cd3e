"""Writing the values of blob columns into a file of any version."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.file.column import WriteBuffer
from lance_dataset.file.container import ALIGNMENT
from lance_dataset.file.kinds import is_wide
from lancecodec import gather

__all__ = ["write_values"]

_PADDING = b"\x48" * ALIGNMENT
#: Values whose average size is below this are copied together before they are written.
_SMALL_BYTES = 16 << 10


def write_values(values: pa.Array, write_buffer: WriteBuffer) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Append binaries one after another, each at an aligned position.

    Parameters
    ----------
    values
        The values; nulls must have no bytes.
    write_buffer
        Appends bytes to the file, aligned.

    Returns
    -------
    tuple
        Position and size of each value in bytes; both are 0 for a value without bytes.
    """
    wide = is_wide(values.type)
    width = 8 if wide else 4
    positions, sizes = np.zeros(len(values), np.uint64), np.zeros(len(values), np.uint64)
    if len(values) == 0:
        return positions, sizes
    _, offsets, data = values.buffers()
    ends = np.frombuffer(offsets, np.int64 if wide else np.int32, len(values) + 1, values.offset * width)
    ends = ends.astype(np.int64, copy=False)
    lengths = np.diff(ends)
    filled = np.flatnonzero(lengths)
    if len(filled) == 0:
        return positions, sizes
    places = -(-lengths[filled] // ALIGNMENT) * ALIGNMENT
    starts = np.cumsum(places) - places
    parts: list[pa.Buffer | bytes | memoryview]
    if int(places.sum()) < _SMALL_BYTES * len(filled):
        parts = [_gathered(data, ends, filled, np.append(starts, starts[-1] + lengths[filled[-1]]))]
    else:
        parts = _in_place(memoryview(data), ends[filled].tolist(), lengths[filled].tolist())
    position, _ = write_buffer(parts)
    positions[filled] = position + starts
    sizes[filled] = lengths[filled]
    return positions, sizes


def _gathered(
    data: pa.Buffer, ends: NDArray[np.int64], filled: NDArray[np.int64], starts: NDArray[np.int64]
) -> memoryview:
    """Copy small values to their places, which costs less than writing each by itself."""
    out = np.full(int(starts[-1]), _PADDING[0], np.uint8)
    gather.variable(data, ends, filled.data, filled.itemsize, starts, out.data)
    return out.data


def _in_place(content: memoryview, begins: Sequence[int], sizes: Sequence[int]) -> list[pa.Buffer | bytes | memoryview]:
    """Return large values and the padding between them, without a copy."""
    parts: list[pa.Buffer | bytes | memoryview] = []
    for begin, size in zip(begins, sizes, strict=True):
        parts.append(content[begin : begin + size])
        if size % ALIGNMENT:
            parts.append(_PADDING[: -size % ALIGNMENT])
    return parts
