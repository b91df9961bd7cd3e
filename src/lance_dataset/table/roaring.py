"""Roaring bitmaps of 32-bit values in their portable form.

Reading is done here, with every count and length checked, because the bytes come from files; writing is CRoaring's.
"""

from __future__ import annotations

import struct

import numpy as np
import numpy.typing as npt
import pyroaring

from lance_dataset.errors import CorruptFileError

__all__ = ["decode_bitmap", "encode_bitmap"]

_NO_RUNS = 0x303A
_WITH_RUNS = 0x303B
_OFFSETS_FROM = 4
_MAX_ARRAY = 4096
_BITSET_BYTES = 8192


def encode_bitmap(values: npt.ArrayLike) -> bytes:
    """Serialize a set of unsigned 32-bit values."""
    bitmap = pyroaring.BitMap(np.asarray(values, dtype=np.uint32))
    bitmap.run_optimize()
    return bitmap.serialize()


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
    try:
        parts = _containers(data, limit)
    except (struct.error, ValueError) as error:
        raise CorruptFileError(f"{where}: invalid roaring bitmap: {error}") from error
    if not parts:
        return np.empty(0, np.uint32)
    values = np.concatenate(parts)
    if int(values[-1]) >= limit:
        raise CorruptFileError(f"{where}: holds the value {values[-1]}, which is not below {limit}")
    return values


def _containers(data: bytes, limit: int) -> list[npt.NDArray[np.uint32]]:
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
        elif cardinality <= _MAX_ARRAY:
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
    return parts


def _header(data: bytes) -> tuple[int, bytes | None, int]:
    """Number of containers, which of them are runs, and where the container keys begin."""
    (cookie,) = struct.unpack_from("<I", data, 0)
    if cookie == _NO_RUNS:
        (count,) = struct.unpack_from("<I", data, 4)
        if count > 1 << 16:
            raise ValueError(f"claims {count} containers")
        return count, None, 8
    if cookie & 0xFFFF != _WITH_RUNS:
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
