"""Reading the values of blob columns from their descriptions, for any file version."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError
from lance_dataset.file.buffers import allocate, octets
from lance_dataset.io.base import InputFile
from lancecodec import gather

__all__ = ["check_ranges", "check_total", "description_array", "read_values"]

#: Values may share bytes, but one read may hold at most this many times the size of the file.
_MAX_SHARING = 4
_READ_BYTES = 64 << 20


def check_ranges(positions: NDArray[np.uint64], sizes: NDArray[np.uint64], limit: int, where: str) -> None:
    """Raise CorruptFileError unless all values lie inside a file of `limit` bytes."""
    end = np.uint64(limit)
    wrong = (sizes > end) | (positions > end - np.minimum(sizes, end))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise CorruptFileError(f"{where}: a value has {sizes[at]} bytes at {positions[at]}, but the file has {limit}")


def check_total(sizes: NDArray[np.uint64], limit: int, where: str) -> None:
    """Raise CorruptFileError if the values claim far more bytes than a file of `limit` bytes holds."""
    total = sizes.astype(np.float64).sum()
    if total > _MAX_SHARING * limit:
        raise CorruptFileError(f"{where}: {len(sizes)} values claim {total:.0f} bytes of a file of {limit}")


def description_array(
    kind: pa.DataType,
    positions: NDArray[np.uint64],
    sizes: NDArray[np.uint64],
    null: NDArray[np.bool_] | None = None,
) -> pa.Array:
    """Return descriptions as a struct of position, size or both; `null` marks nulls of its fields, not of it."""
    nulls = 0 if null is None else int(null.sum())
    validity = pa.py_buffer(np.packbits(~null, bitorder="little")) if null is not None and nulls else None
    columns = {"position": positions, "size": sizes}
    children = [
        pa.Array.from_buffers(
            pa.uint64(), len(sizes), [validity, pa.py_buffer(np.ascontiguousarray(columns[child.name]))], nulls
        )
        for child in kind
    ]
    return pa.Array.from_buffers(kind, len(sizes), [None], 0, 0, children)


def read_values(
    source: InputFile,
    positions: NDArray[np.uint64],
    sizes: NDArray[np.uint64],
    validity: pa.Buffer | None = None,
    null_count: int = 0,
) -> pa.LargeBinaryArray:
    """Read the bytes of every value. The caller has checked the ranges."""
    count = len(sizes)
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    filled = np.flatnonzero(sizes)
    begins, lengths = positions[filled].astype(np.int64), sizes[filled].astype(np.int64)
    if len(filled) == 1:
        source.will_need([(int(begins[0]), int(lengths[0]))])
        data = source.read(int(begins[0]), int(lengths[0]))
    else:
        data = _gathered(source, begins, lengths, int(offsets[-1]))
    return pa.Array.from_buffers(pa.large_binary(), count, [validity, pa.py_buffer(offsets), data], null_count)


def _gathered(source: InputFile, begins: NDArray[np.int64], lengths: NDArray[np.int64], total: int) -> pa.Buffer:
    data = allocate(total)
    bounds = np.stack([begins, begins + lengths], axis=1).reshape(-1)
    if source.mapped is not None and len(bounds) and (np.diff(bounds) >= 0).all():
        source.will_need(list(zip(begins.tolist(), lengths.tolist(), strict=True)))
        every_second = np.arange(0, len(bounds), 2, dtype=np.int64)
        gather.binary(source.mapped, bounds.data, True, every_second.data, every_second.itemsize, data)
        return data
    out, end = octets(data), 0
    for ranges in _groups(begins.tolist(), lengths.tolist()):
        for (_, size), content in zip(ranges, source.read_ranges(ranges), strict=True):
            out[end : end + size] = octets(content)
            end += size
    return data


def _groups(begins: Sequence[int], lengths: Sequence[int]) -> Iterator[list[tuple[int, int]]]:
    """Yield groups of ranges that together have about the number of bytes that may be buffered beside the result."""
    group: list[tuple[int, int]] = []
    held = 0
    for begin, length in zip(begins, lengths, strict=True):
        if group and held + length > _READ_BYTES:
            yield group
            group, held = [], 0
        group.append((begin, length))
        held += length
    if group:
        yield group
