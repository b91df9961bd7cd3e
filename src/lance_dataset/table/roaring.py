"""Roaring bitmaps of 32-bit values in their portable form.

Reading is done here, with every count and length checked, because the bytes come from files; runs are found by
CRoaring.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyroaring

from lance_dataset.errors import CorruptFileError

__all__ = [
    "MAX_ARRAY",
    "NO_RUNS",
    "WITH_RUNS",
    "bitmap_size",
    "decode_bitmap",
    "decode_treemap",
    "encode_bitmap",
    "encode_treemap",
    "encode_without_runs",
]

#: First bytes of bitmaps without containers of runs, and the lower half of those of bitmaps with them.
NO_RUNS = 0x303A
WITH_RUNS = 0x303B
_OFFSETS_FROM = 4
#: Containers of more values than this are bits.
MAX_ARRAY = 4096
_BITSET_BYTES = 8192


def encode_bitmap(values: npt.ArrayLike) -> bytes:
    """Serialize a set of unsigned 32-bit values."""
    distinct = np.asarray(values, dtype=np.uint32)
    if (distinct[1:] <= distinct[:-1]).any():
        distinct = np.unique(distinct)
    bitmap = pyroaring.BitMap.deserialize(encode_without_runs(distinct))  # which is faster than giving it the values
    bitmap.run_optimize()
    return bitmap.serialize()


def encode_without_runs(values: npt.NDArray[np.uint32]) -> bytes:
    """Serialize ascending values, with a container of an array or of bits for each upper half."""
    upper, lower = (values >> np.uint32(16)).astype("<u2"), values.astype("<u2")
    starts = np.flatnonzero(np.append(True, upper[1:] != upper[:-1])[: len(values)])
    parts = [lower[low:high] for low, high in pairwise([*starts.tolist(), len(values)])]
    containers = [part if len(part) <= MAX_ARRAY else _bits(part) for part in parts]
    heads = np.array([(upper[low], len(part) - 1) for low, part in zip(starts.tolist(), parts, strict=True)], "<u2")
    sizes = [container.nbytes for container in containers]
    first = 8 + heads.nbytes + 4 * len(parts)
    offsets = np.cumsum([first, *sizes[:-1]])[: len(parts)].astype("<u4")
    head = struct.pack("<II", NO_RUNS, len(parts))
    return b"".join([head, heads.tobytes(), offsets.tobytes(), *(container.tobytes() for container in containers)])


def _bits(values: npt.NDArray[np.uint16]) -> npt.NDArray[np.uint8]:
    """A bit for each number of 16 bits, set for some."""
    bits = np.zeros(1 << 16, np.uint8)
    bits[values] = 1
    return np.packbits(bits, bitorder="little")


def decode_bitmap(data: bytes, limit: int, where: str) -> npt.NDArray[np.uint32]:
    """Values of a serialized bitmap; bytes behind it are ignored.

    Parameters
    ----------
    data
        The bytes.
    limit
        Every value must be below it; also bounds the memory used.
    where
        Name of the file, for error messages.

    Returns
    -------
    ndarray of uint32
        Ascending, without duplicates.

    Raises
    ------
    CorruptFileError
        The bytes are no bitmap, or a value is not below `limit`.
    """
    return _decoded(data, limit, where)[0]


def bitmap_size(data: bytes | memoryview, where: str) -> int:
    """Size in bytes of a serialized bitmap that others may follow; its values are not looked at.

    Raises
    ------
    CorruptFileError
        The bytes are no bitmap.
    """
    try:
        count, run_flags, position = _header(data)
        cardinalities = np.frombuffer(data, "<u2", 2 * count, position)[1::2].astype(np.int64) + 1
        position += 4 * count
        if run_flags is None or count >= _OFFSETS_FROM:
            position += 4 * count
        for index, cardinality in enumerate(cardinalities.tolist()):
            if run_flags is not None and run_flags[index // 8] >> (index % 8) & 1:
                position += 2 + 4 * struct.unpack_from("<H", data, position)[0]
            else:
                position += 2 * cardinality if cardinality <= MAX_ARRAY else _BITSET_BYTES
    except (struct.error, ValueError) as error:
        raise CorruptFileError(f"{where}: invalid roaring bitmap: {error}") from error
    if position > len(data):
        raise CorruptFileError(f"{where}: invalid roaring bitmap: it ends inside of its containers")
    return position


def encode_treemap(bitmaps: Mapping[int, bytes]) -> bytes:
    """Serialize a set of unsigned 64-bit values: by upper half, what `encode_bitmap` makes of the lower ones."""
    parts = [struct.pack("<I", high) + bitmap for high, bitmap in sorted(bitmaps.items())]
    return struct.pack("<Q", len(parts)) + b"".join(parts)


def decode_treemap(data: bytes, limits: Mapping[int, int], where: str) -> dict[int, npt.NDArray[np.uint32]]:
    """Values of a serialized set of unsigned 64-bit values: the lower halves, ascending, by their upper half.

    Parameters
    ----------
    data
        The bytes; those behind it are ignored.
    limits
        Which upper halves may occur, and what every lower half must be below.
    where
        Name of the file, for error messages.

    Raises
    ------
    CorruptFileError
        The bytes are no such set, or a value is not inside the limits.
    """
    found: dict[int, npt.NDArray[np.uint32]] = {}
    position = 8
    try:
        (count,) = struct.unpack_from("<Q", data)
        if count > len(limits):
            raise ValueError(f"claims {count} bitmaps where at most {len(limits)} are possible")
        for _ in range(count):
            (high,) = struct.unpack_from("<I", data, position)
            if high not in limits or high in found:
                raise ValueError(f"a bitmap for {high}, which may not be there or is there twice")
            found[high], size = _decoded(data[position + 4 :], limits[high], where)
            position += 4 + size
    except (struct.error, ValueError) as error:
        raise CorruptFileError(f"{where}: invalid 64-bit roaring bitmap: {error}") from error
    return found


def _decoded(data: bytes, limit: int, where: str) -> tuple[npt.NDArray[np.uint32], int]:
    """Values of a bitmap, and its size in bytes."""
    try:
        parts, size = _containers(data, limit)
    except (struct.error, ValueError) as error:
        raise CorruptFileError(f"{where}: invalid roaring bitmap: {error}") from error
    values = np.concatenate(parts) if parts else np.empty(0, np.uint32)
    if len(values) and int(values[-1]) >= limit:
        raise CorruptFileError(f"{where}: holds the value {values[-1]}, which is not below {limit}")
    return values, size


def _containers(data: bytes, limit: int) -> tuple[list[npt.NDArray[np.uint32]], int]:
    count, run_flags, position = _header(data)
    keys = np.frombuffer(data, "<u2", 2 * count, position).reshape(count, 2).astype(np.int64)
    position += 4 * count
    if count > 1 and (np.diff(keys[:, 0]) <= 0).any():
        raise ValueError("container keys are not ascending")
    if run_flags is None or count >= _OFFSETS_FROM:
        position += 4 * count
    total = int(keys[:, 1].sum()) + count
    if total > limit:
        raise ValueError(f"claims {total} values where at most {limit} are possible")
    parts = []
    for index in range(count):
        key, cardinality = int(keys[index, 0]), int(keys[index, 1]) + 1
        if run_flags is not None and run_flags[index // 8] >> (index % 8) & 1:
            values, position = _run_container(data, position)
        elif cardinality <= MAX_ARRAY:
            values = np.frombuffer(data, "<u2", cardinality, position)
            position += 2 * cardinality
            if (values[1:] <= values[:-1]).any():
                raise ValueError("an array container is not ascending")
        else:
            bits = np.unpackbits(np.frombuffer(data, np.uint8, _BITSET_BYTES, position), bitorder="little")
            values = np.flatnonzero(bits)
            position += _BITSET_BYTES
        if len(values) != cardinality:
            raise ValueError(f"a container holds {len(values)} values, its header says {cardinality}")
        parts.append(values.astype(np.uint32) + np.uint32(key << 16))
    return parts, position


def _header(data: bytes | memoryview) -> tuple[int, bytes | memoryview | None, int]:
    """Number of containers, which of them are runs, and where the container keys begin."""
    (cookie,) = struct.unpack_from("<I", data, 0)
    if cookie == NO_RUNS:
        (count,) = struct.unpack_from("<I", data, 4)
        if count > 1 << 16:
            raise ValueError(f"claims {count} containers")
        return count, None, 8
    if cookie & 0xFFFF != WITH_RUNS:
        raise ValueError(f"unknown cookie {cookie:#x}")
    count = (cookie >> 16) + 1
    size = (count + 7) // 8
    if len(data) < 4 + size:
        raise ValueError("ends inside its header")
    return count, data[4 : 4 + size], 4 + size


def _run_container(data: bytes, position: int) -> tuple[npt.NDArray[np.int64], int]:
    (count,) = struct.unpack_from("<H", data, position)
    runs = np.frombuffer(data, "<u2", 2 * count, position + 2).reshape(count, 2).astype(np.int64)
    starts, lengths = runs[:, 0], runs[:, 1] + 1
    ends = starts + lengths
    if count and (int(ends[-1]) > 1 << 16 or (starts[1:] < ends[:-1]).any()):
        raise ValueError("the runs of a container overlap or leave it")
    first = np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
    return first + np.arange(int(lengths.sum())), position + 2 + 4 * count
