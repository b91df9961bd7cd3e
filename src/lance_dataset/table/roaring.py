"""Roaring bitmaps of 32-bit values in their portable form.

Decoding is implemented here, with every count and length checked, because the bytes come from files. For encoding, runs
are found by CRoaring.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyroaring

from lance_dataset.errors import CorruptFileError, MemoryLimitError
from lance_dataset.late_dataclass import dataclass
from lance_dataset.limits import BASE_MEMORY, check_memory

__all__ = [
    "MAX_ARRAY",
    "NO_RUNS",
    "WITH_RUNS",
    "bitmap_parts",
    "bitmap_runs",
    "bitmap_size",
    "decode_bitmap",
    "decode_treemap",
    "encode_bitmap",
    "encode_treemap",
    "encode_without_runs",
]

#: First bytes of bitmaps without run containers, and the lower half of the first bytes of bitmaps with them.
NO_RUNS = 0x303A
WITH_RUNS = 0x303B
_OFFSETS_FROM = 4
#: Maximum number of values in an array container. Larger containers are bitsets.
MAX_ARRAY = 4096
_BITSET_BYTES = 8192
#: Bytes of memory for a run, while those of several containers are joined.
_RUN_BYTES = 32

#: First values and lengths (int64) of runs of consecutive values, ascending.
Runs = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]


def encode_bitmap(values: npt.ArrayLike) -> bytes:
    """Serialize a set of unsigned 32-bit values."""
    distinct = np.asarray(values, dtype=np.uint32)
    if (distinct[1:] <= distinct[:-1]).any():
        distinct = np.unique(distinct)
    bitmap = pyroaring.BitMap.deserialize(encode_without_runs(distinct))  # faster than building it from the values
    bitmap.run_optimize()
    return bitmap.serialize()


def encode_without_runs(values: npt.NDArray[np.uint32]) -> bytes:
    """Serialize ascending values, with an array or bitset container for each upper half."""
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
    """Return a bitset of 16-bit numbers."""
    bits = np.zeros(1 << 16, np.uint8)
    bits[values] = 1
    return np.packbits(bits, bitorder="little")


def decode_bitmap(
    data: bytes, limit: int, where: str, *, per_value: int = 4, bytes_read: Callable[[], int] | None = None
) -> npt.NDArray[np.uint32]:
    """Return the values of a serialized bitmap. Bytes after it are ignored.

    Parameters
    ----------
    data
        The bytes.
    limit
        Exclusive upper bound of the values.
    where
        Name of the file, for error messages.
    per_value
        Bytes of memory that the caller needs for each value, with those of the result.
    bytes_read
        Function that returns the bytes of all files that the values belong to; None for those of `data`. It is called
        only for many values.

    Returns
    -------
    ndarray of uint32
        Ascending, without duplicates.

    Raises
    ------
    CorruptFileError
        The bytes are not a bitmap, or a value is not below `limit`.
    MemoryLimitError
        It has too many values.
    """
    count = _num_values(data, where)
    needed = count * per_value
    if needed > BASE_MEMORY and count <= limit:  # more are reported below
        check_memory(needed, len(data) if bytes_read is None else bytes_read(), f"{where}: a bitmap")
    containers, _ = _bitmap(data, limit, where)
    found = np.empty(sum(len(container) for container in containers), np.uint32)
    end = 0
    for container in containers:
        found[end : end + len(container)] = container.decoded()
        end += len(container)
    return found


def bitmap_parts(data: bytes, limit: int, where: str) -> Iterator[npt.NDArray[np.uint32]]:
    """Yield the values of `decode_bitmap`, at most 65,536 at a time."""
    return (container.decoded() for container in _bitmap(data, limit, where)[0])


def bitmap_runs(data: bytes, limit: int, where: str) -> Runs:
    """Return the first values and lengths of the runs of consecutive values of a bitmap, see `decode_bitmap`."""
    return _joined_runs(_bitmap(data, limit, where)[0])


def _num_values(data: bytes | memoryview, where: str) -> int:
    """Return the number of values that a bitmap says it has."""
    try:
        count, _, position = _header(data)
        return int(np.frombuffer(data, "<u2", 2 * count, position)[1::2].sum(dtype=np.int64)) + count
    except (struct.error, ValueError) as error:
        raise CorruptFileError(f"{where}: invalid roaring bitmap: {error}") from error


def bitmap_size(data: bytes | memoryview, where: str) -> int:
    """Return the size in bytes of a serialized bitmap, without decoding its values. Other data may follow it.

    Raises
    ------
    CorruptFileError
        The bytes are not a bitmap.
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
        raise CorruptFileError(f"{where}: invalid roaring bitmap: it ends inside its containers")
    return position


def encode_treemap(bitmaps: Mapping[int, bytes]) -> bytes:
    """Serialize a set of unsigned 64-bit values, given bitmaps (`encode_bitmap`) of the lower halves by upper half."""
    parts = [struct.pack("<I", high) + bitmap for high, bitmap in sorted(bitmaps.items())]
    return struct.pack("<Q", len(parts)) + b"".join(parts)


def decode_treemap(data: bytes, limits: Mapping[int, int], where: str) -> dict[int, Runs]:
    """Return the values of a serialized set of unsigned 64-bit values: runs of lower halves by upper half.

    Runs use memory for each run, no matter how many values they represent.

    Parameters
    ----------
    data
        The bytes. Those after the set are ignored.
    limits
        Allowed upper halves, each with an exclusive upper bound of its lower halves.
    where
        Name of the file, for error messages.

    Raises
    ------
    CorruptFileError
        The bytes are not such a set, or a value is not within the limits.
    MemoryLimitError
        It has too many runs.
    """
    content = memoryview(data)
    found: dict[int, Runs] = {}
    position, needed = 8, 0
    try:
        (count,) = struct.unpack_from("<Q", data)
        if count > len(limits):
            raise ValueError(f"claims {count} bitmaps where at most {len(limits)} are possible")
        for _ in range(count):
            (high,) = struct.unpack_from("<I", data, position)
            if high not in limits or high in found:
                raise ValueError(f"a bitmap for {high}, which is not expected or occurs twice")
            containers, size = _bitmap(content[position + 4 :], limits[high], where)
            needed += _RUN_BYTES * sum(container.most_runs for container in containers)
            if needed > BASE_MEMORY:
                check_memory(needed, len(data), f"{where}: a 64-bit bitmap")
            found[high] = _joined_runs(containers)
            position += 4 + size
    except MemoryLimitError:
        raise
    except (struct.error, ValueError) as error:
        raise CorruptFileError(f"{where}: invalid 64-bit roaring bitmap: {error}") from error
    return found


@dataclass(frozen=True)
class _Container:
    """Values with the same upper half.

    Attributes
    ----------
    base
        The upper half, as a number of 32 bits.
    stored
        Lower halves, ascending, or the first ones of runs; for a bitset, its bytes.
    lengths
        Lengths of the runs; None for single values and bitsets.
    size
        Number of values.
    """

    base: int
    stored: npt.NDArray[np.integer]
    lengths: npt.NDArray[np.int64] | None
    size: int

    def __len__(self) -> int:
        return self.size

    @property
    def values(self) -> npt.NDArray[np.integer]:
        """Lower halves, or the first ones of runs. A bitset is decoded each time."""
        if self.stored.dtype != np.uint8:
            return self.stored
        return np.flatnonzero(np.unpackbits(self.stored.view(np.uint8), bitorder="little"))

    @property
    def most_runs(self) -> int:
        """Maximum number of runs of consecutive values."""
        return min(self.size, (1 << 16) - self.size + 1) if self.lengths is None else len(self.lengths)

    def decoded(self) -> npt.NDArray[np.uint32]:
        """Return all values."""
        values, lengths = self.values, self.lengths
        if lengths is not None:
            values = np.repeat(values - (np.cumsum(lengths) - lengths), lengths) + np.arange(int(lengths.sum()))
        return values.astype(np.uint32) + np.uint32(self.base)

    def runs(self) -> Runs:
        """Return the first values and lengths of the runs of consecutive values."""
        values, lengths = self.values.astype(np.int64), self.lengths
        if lengths is None:
            starts = np.flatnonzero(np.append(True, np.diff(values) != 1)[: len(values)])
            values, lengths = values[starts], np.diff(starts, append=len(values))
        return values + self.base, lengths


def _joined_runs(containers: Sequence[_Container]) -> Runs:
    """Return the runs of several containers. Runs may continue from one container to the next."""
    none = np.empty(0, np.int64)
    parts = [container.runs() for container in containers]
    firsts = np.concatenate([none, *(first for first, _ in parts)])
    ends = firsts + np.concatenate([none, *(length for _, length in parts)])
    begin = np.append(True, firsts[1:] != ends[:-1])[: len(firsts)]
    last = np.append(begin[1:], True)[: len(firsts)]
    return firsts[begin], ends[last] - firsts[begin]


def _bitmap(data: bytes | memoryview, limit: int, where: str) -> tuple[list[_Container], int]:
    """Return the containers of a bitmap, and its size in bytes."""
    try:
        containers, size = _containers(data, limit)
    except (struct.error, ValueError) as error:
        raise CorruptFileError(f"{where}: invalid roaring bitmap: {error}") from error
    if containers:
        last = containers[-1]
        highest = last.base + int(last.values[-1]) + (0 if last.lengths is None else int(last.lengths[-1]) - 1)
        if highest >= limit:
            raise CorruptFileError(f"{where}: contains the value {highest}, which is not below {limit}")
    return containers, size


def _containers(data: bytes | memoryview, limit: int) -> tuple[list[_Container], int]:
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
    containers = []
    for index in range(count):
        key, cardinality = int(keys[index, 0]), int(keys[index, 1]) + 1
        lengths = None
        if run_flags is not None and run_flags[index // 8] >> (index % 8) & 1:
            values, lengths, position = _run_container(data, position)
        elif cardinality <= MAX_ARRAY:
            values = np.frombuffer(data, "<u2", cardinality, position)
            position += 2 * cardinality
            if (values[1:] <= values[:-1]).any():
                raise ValueError("an array container is not ascending")
        else:
            values = np.frombuffer(data, np.uint8, _BITSET_BYTES, position)
            position += _BITSET_BYTES
        if values.dtype == np.uint8:
            found = int.from_bytes(values.tobytes(), "little").bit_count()
        else:
            found = len(values) if lengths is None else int(lengths.sum())
        if found != cardinality:
            raise ValueError(f"a container has {found} values, but its header says {cardinality}")
        containers.append(_Container(key << 16, values, lengths, found))
    return containers, position


def _header(data: bytes | memoryview) -> tuple[int, bytes | memoryview | None, int]:
    """Return the number of containers, the run flags, and the position of the container keys."""
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


def _run_container(data: bytes | memoryview, position: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], int]:
    """Return the first values and lengths of runs, and the position of the end of the container."""
    (count,) = struct.unpack_from("<H", data, position)
    runs = np.frombuffer(data, "<u2", 2 * count, position + 2).reshape(count, 2).astype(np.int64)
    starts, lengths = runs[:, 0], runs[:, 1] + 1
    ends = starts + lengths
    if count and (int(ends[-1]) > 1 << 16 or (starts[1:] < ends[:-1]).any()):
        raise ValueError("the runs of a container overlap or extend beyond it")
    return starts, lengths, position + 2 + 4 * count
