"""Segments: the stored parts of a sequence of row ids, kept in memory as compactly as on disk.

There are five stored kinds: a range, a range with holes, a range with a bitmap, an ascending array, and any array. In
memory they are a `Range`, `Holes`, `Bitmap` or `Values`. Cutting one of the last three gives `Runs`, which groups
consecutive ids. Written segments use the smallest of the five kinds for the ids, by the estimate of the reference.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lance_dataset._proto import rowids_pb2
from lance_dataset.errors import CorruptFileError
from lance_dataset.late_dataclass import dataclass
from lance_dataset.limits import check_memory
from lance_dataset.properties import cached_property

__all__ = ["MAX_ID", "Bitmap", "Holes", "Range", "Runs", "Segment", "Values", "decode_segment"]

#: The largest row id.
MAX_ID = 2**64 - 1

_ONE = np.uint64(1)
#: Bytes of memory of a run while a bitmap is unpacked, and for each byte of the bitmap.
_RUN_BYTES = 40
_UNPACKED_BYTES = 24


@dataclass(frozen=True, eq=False)
class Runs:
    """Ids as runs of consecutive numbers.

    Attributes
    ----------
    first
        uint64[n]: the first id of each run.
    starts
        int64[n + 1]: number of ids before each run, then the total.
    """

    first: NDArray[np.uint64]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, values: NDArray[np.uint64]) -> Runs:
        """Build runs from ids in any order."""
        if len(values) == 0:
            return cls(np.empty(0, np.uint64), np.zeros(1, np.int64))
        apart = (values[1:] != values[:-1] + _ONE) | (values[:-1] == np.uint64(MAX_ID))
        begins = np.concatenate([np.zeros(1, np.int64), np.flatnonzero(apart) + 1])
        return cls(values[begins], np.append(begins, len(values)))

    @classmethod
    def joined(cls, parts: Iterable[Runs]) -> Runs:
        """Concatenate the ids of several sequences."""
        found = list(parts)
        first = np.concatenate([np.empty(0, np.uint64), *(part.first for part in found)])
        lengths = np.concatenate([np.empty(0, np.int64), *(part.lengths for part in found)])
        return cls(first, np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)]))

    def ascending(self) -> Runs:
        """Return the runs ordered by their first ids. Without repeated ids, all ids are then ascending."""
        order = np.argsort(self.first, kind="stable")
        lengths = self.lengths[order]
        return Runs(self.first[order], np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)]))

    def __len__(self) -> int:
        return int(self.starts[-1])

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of ids in each run."""
        return np.diff(self.starts)

    @property
    def last(self) -> NDArray[np.uint64]:
        """Last id of each run."""
        return self.first + (self.lengths - 1).astype(np.uint64)

    @cached_property
    def is_ascending(self) -> bool:
        """True if every id is greater than the one before."""
        return bool((self.first[1:] > self.last[:-1]).all())

    @property
    def bounds(self) -> tuple[int, int]:
        """Smallest and largest id. There must be at least one."""
        return int(self.first.min()), int(self.last.max())

    def runs(self) -> Runs:
        """Return these runs."""
        return self

    def to_numpy(self) -> NDArray[np.uint64]:
        """Return all ids."""
        shifts = self.first - self.starts[:-1].astype(np.uint64)
        return np.add(np.repeat(shifts, self.lengths), np.arange(len(self), dtype=np.uint64), dtype=np.uint64)

    def take(self, offsets: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Return the ids at offsets, which must be in range."""
        owners = np.searchsorted(self.starts, offsets, side="right") - 1
        return self.first[owners] + (offsets - self.starts[owners]).astype(np.uint64)

    def slice(self, start: int, stop: int) -> Runs:
        """Return the ids at offsets ``[start, stop)``."""
        if start >= stop:
            return Runs.of(np.empty(0, np.uint64))
        low, high = int(np.searchsorted(self.starts, start, "right")) - 1, int(np.searchsorted(self.starts, stop))
        first, starts = self.first[low:high].copy(), self.starts[low : high + 1].clip(start, stop) - start
        first[0] += np.uint64(start - int(self.starts[low]))
        return Runs(first, starts)

    def without(self, offsets: NDArray[np.int64]) -> Runs:
        """Return the ids without those at some offsets, which must be ascending and in range."""
        # Each offset ends a piece before it and begins one after it, so the n-th begin belongs to the n-th end.
        begins = np.sort(np.concatenate([self.starts[:-1], offsets + 1]), kind="stable")
        ends = np.sort(np.concatenate([self.starts[1:], offsets]), kind="stable")
        begins, lengths = begins[ends > begins], (ends - begins)[ends > begins]
        return Runs(self.take(begins), np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)]))

    def to_proto(self) -> rowids_pb2.U64Segment:
        """Return the ids in the smallest stored kind that can hold them."""
        if len(self) == 0:
            return Range(0, 0).to_proto()
        if not self.is_ascending or int(self.last[-1]) == MAX_ID:
            # The end of a range cannot be greater than the largest number.
            return rowids_pb2.U64Segment(array=_encode_array(self.to_numpy()))
        low, high = self.bounds
        span = high - low + 1
        holes = span - len(self)
        if holes == 0:
            return Range(low, high + 1).to_proto()
        # Estimated sizes in bytes. The order breaks ties.
        sizes = {"holes": 24 + 4 * holes, "bitmap": 24 + (span + 7) // 8, "array": 24 + 2 * len(self)}
        kind = min(sizes, key=sizes.__getitem__)
        if kind == "array":
            return rowids_pb2.U64Segment(sorted_array=_encode_array(self.to_numpy()))
        # From here on, the range has at most 16 numbers for each id, so the work for each of them stays small.
        if kind == "bitmap":
            return rowids_pb2.U64Segment(
                range_with_bitmap={"start": low, "end": high + 1, "bitmap": self.to_bits().tobytes()}
            )
        absent = Runs(
            self.last[:-1] + _ONE, np.append(0, np.cumsum(self.first[1:] - self.last[:-1] - _ONE)).astype(int)
        )
        return rowids_pb2.U64Segment(
            range_with_holes={"start": low, "end": high + 1, "holes": _encode_array(absent._nonempty().to_numpy())}
        )

    def to_bits(self) -> NDArray[np.uint8]:
        """Return a bitmap of ascending ids from the first one on: ``first + i`` is bit ``i % 8`` of byte ``i // 8``."""
        low, high = self.bounds
        change = np.zeros(high - low + 2, np.int8)
        base = np.uint64(low)
        change[(self.first - base).astype(np.int64)] += 1
        change[(self.last - base).astype(np.int64) + 1] -= 1
        return np.packbits(np.cumsum(change[:-1], dtype=np.int8).view(bool), bitorder="little")

    def _nonempty(self) -> Runs:
        held = self.lengths > 0
        return Runs(self.first[held], np.append(self.starts[:-1][held], self.starts[-1]))


@dataclass(frozen=True)
class Range:
    """Consecutive ids ``[start, stop)``."""

    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start

    @property
    def bounds(self) -> tuple[int, int]:
        """Smallest and largest id. There must be at least one."""
        return self.start, self.stop - 1

    def runs(self) -> Runs:
        """Return a single run, or no run if the range is empty."""
        if not len(self):
            return Runs.of(np.empty(0, np.uint64))
        return Runs(np.array([self.start], np.uint64), np.array([0, len(self)], np.int64))

    def to_numpy(self) -> NDArray[np.uint64]:
        """Return all ids."""
        return np.arange(self.start, self.stop, dtype=np.uint64)

    def take(self, offsets: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Return the ids at offsets, which must be in range."""
        return offsets.astype(np.uint64) + np.uint64(self.start)

    def slice(self, start: int, stop: int) -> Range:
        """Return the ids at offsets ``[start, stop)``."""
        return Range(self.start + start, max(self.start + stop, self.start + start))

    def without(self, offsets: NDArray[np.int64]) -> Segment:
        """Return the ids without those at some offsets, which must be ascending and in range."""
        return self.runs().without(offsets) if len(offsets) else self

    def to_proto(self) -> rowids_pb2.U64Segment:
        """Return the protobuf message."""
        return rowids_pb2.U64Segment(range={"start": self.start, "end": self.stop})


class _Packed(ABC):
    """Base class of the kinds other than plain ranges, which are unpacked to runs when they are cut."""

    @abstractmethod
    def _unpacked(self) -> Runs:
        """Return the ids as runs."""

    @cached_property
    def _runs(self) -> Runs:
        return self._unpacked()

    def runs(self) -> Runs:
        """Return the ids as runs."""
        return self._runs

    def to_numpy(self) -> NDArray[np.uint64]:
        """Return all ids."""
        return self._runs.to_numpy()

    def take(self, offsets: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Return the ids at offsets, which must be in range."""
        return self._runs.take(offsets)

    def slice(self, start: int, stop: int) -> Runs:
        """Return the ids at offsets ``[start, stop)``."""
        return self._runs.slice(start, stop)

    def without(self, offsets: NDArray[np.int64]) -> Runs:
        """Return the ids without those at some offsets, which must be ascending and in range."""
        return self._runs.without(offsets)

    def to_proto(self) -> rowids_pb2.U64Segment:
        """Return the ids in the smallest stored kind that can hold them."""
        return self._runs.to_proto()


@dataclass(frozen=True, eq=False)
class Holes(_Packed):
    """A range without some of its numbers.

    Attributes
    ----------
    start, stop
        The range.
    holes
        uint64: the numbers that are left out, ascending.
    """

    start: int
    stop: int
    holes: NDArray[np.uint64]

    def __len__(self) -> int:
        return self.stop - self.start - len(self.holes)

    @property
    def bounds(self) -> tuple[int, int]:
        """Limits of the ids. All ids lie within them, but there may be holes at the ends."""
        return self.start, self.stop - 1

    def _unpacked(self) -> Runs:
        return Range(self.start, self.stop).runs().without((self.holes - np.uint64(self.start)).astype(np.int64))


@dataclass(frozen=True, eq=False)
class Bitmap(_Packed):
    """Some numbers of a range.

    Attributes
    ----------
    start, stop
        The range.
    bits
        uint8: bit ``i % 8`` of byte ``i // 8`` stands for number ``start + i``. No bits are set after the end.
    """

    start: int
    stop: int
    bits: NDArray[np.uint8]

    def __len__(self) -> int:
        return self._count

    @cached_property
    def _count(self) -> int:
        return int.from_bytes(self.bits.tobytes(), "little").bit_count()

    @property
    def bounds(self) -> tuple[int, int]:
        """Limits of the ids. All ids lie within them."""
        return self.start, self.stop - 1

    def _unpacked(self) -> Runs:
        most = min(len(self), 8 * len(self.bits) - len(self) + 1)
        check_memory(_RUN_BYTES * most + _UNPACKED_BYTES * len(self.bits), len(self.bits), "a bitmap of row ids")
        change = np.diff(np.unpackbits(self.bits, bitorder="little").view(np.int8), prepend=0, append=0)
        begins, ends = np.flatnonzero(change == 1), np.flatnonzero(change == -1)
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(ends - begins)])
        return Runs(begins.astype(np.uint64) + np.uint64(self.start), starts)


@dataclass(frozen=True, eq=False)
class Values(_Packed):
    """Individual ids, in any order.

    Attributes
    ----------
    base
        Added to every offset.
    offsets
        uint16, uint32 or uint64.
    """

    base: int
    offsets: NDArray[np.unsignedinteger]

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def bounds(self) -> tuple[int, int]:
        """Smallest and largest id. There must be at least one."""
        return self.base + int(self.offsets.min()), self.base + int(self.offsets.max())

    def to_numpy(self) -> NDArray[np.uint64]:
        """Return all ids."""
        return self.offsets.astype(np.uint64) + np.uint64(self.base)

    def take(self, offsets: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Return the ids at offsets, which must be in range."""
        return self.offsets[offsets].astype(np.uint64) + np.uint64(self.base)

    def slice(self, start: int, stop: int) -> Values:  # type: ignore[override]
        """Return the ids at offsets ``[start, stop)``."""
        return Values(self.base, self.offsets[start : max(start, stop)])

    def _unpacked(self) -> Runs:
        return Runs.of(self.to_numpy())


#: Sequence of ids.
Segment: TypeAlias = Range | Holes | Bitmap | Values | Runs


# -- messages ----------------------------------------------------------------------------------------------------


def decode_segment(message: rowids_pb2.U64Segment, limit: int, where: str) -> Segment:
    """Decode a segment without unpacking it.

    Parameters
    ----------
    message
        The segment.
    limit
        Maximum number of ids.
    where
        Table and fragment, for error messages.

    Raises
    ------
    CorruptFileError
        The segment is inconsistent, or has too many ids.
    """
    kind = message.WhichOneof("segment")
    if kind == "range":
        decoded: Segment = _range(message.range.start, message.range.end, where)
    elif kind == "range_with_holes":
        decoded = _holes(message.range_with_holes, where)
    elif kind == "range_with_bitmap":
        decoded = _bitmap(message.range_with_bitmap, where)
    elif kind == "sorted_array":
        decoded = _decode_array(message.sorted_array, where)
        if (decoded.offsets[1:] <= decoded.offsets[:-1]).any():
            raise CorruptFileError(f"{where}: a sorted array of row ids is not ascending")
    elif kind == "array":
        decoded = _decode_array(message.array, where)
    else:
        raise CorruptFileError(f"{where}: a row id segment has no content or an unknown kind")
    count = (decoded.stop - decoded.start) if isinstance(decoded, Range) else len(decoded)
    if count > limit:
        raise CorruptFileError(f"{where}: a row id segment has {count} values where only {limit} are expected")
    return decoded


def _range(start: int, stop: int, where: str) -> Range:
    if stop < start:
        raise CorruptFileError(f"{where}: a row id range ends at {stop}, before its start {start}")
    return Range(start, stop)


def _holes(message: rowids_pb2.U64Segment.RangeWithHoles, where: str) -> Segment:
    _range(message.start, message.end, where)
    holes = _decode_array(message.holes, where).to_numpy()
    outside = len(holes) and (int(holes[0]) < message.start or int(holes[-1]) >= message.end)
    if outside or (holes[1:] <= holes[:-1]).any():
        raise CorruptFileError(f"{where}: the holes of a row id range are not ascending or lie outside of it")
    if message.end - message.start - len(holes) >= 1 << 63:
        raise CorruptFileError(f"{where}: a row id range has {message.end - message.start} values")
    return Holes(message.start, message.end, holes)


def _bitmap(message: rowids_pb2.U64Segment.RangeWithBitmap, where: str) -> Bitmap:
    span = message.end - message.start
    if span < 0 or len(message.bitmap) != (span + 7) // 8:
        raise CorruptFileError(f"{where}: a row id bitmap of {len(message.bitmap)} bytes for a range of {span} values")
    if span % 8 and message.bitmap[-1] >> span % 8:
        raise CorruptFileError(f"{where}: a row id bitmap has bits after the end of its range")
    return Bitmap(message.start, message.end, np.frombuffer(message.bitmap, np.uint8))


def _decode_array(message: rowids_pb2.EncodedU64Array, where: str) -> Values:
    kind = message.WhichOneof("array")
    if kind is None:
        return Values(0, np.empty(0, np.uint64))
    if kind == "u64_array":
        return Values(0, _from_bytes(message.u64_array.values, np.dtype("<u8"), where))
    if kind == "u16_array":
        base, offsets = message.u16_array.base, _from_bytes(message.u16_array.offsets, np.dtype("<u2"), where)
    else:
        base, offsets = message.u32_array.base, _from_bytes(message.u32_array.offsets, np.dtype("<u4"), where)
    if len(offsets) and base + int(offsets.max()) > MAX_ID:
        raise CorruptFileError(f"{where}: row ids exceed 64 bits")
    return Values(base, offsets)


def _from_bytes(data: bytes, dtype: np.dtype, where: str) -> NDArray[np.unsignedinteger]:
    if len(data) % dtype.itemsize:
        raise CorruptFileError(f"{where}: {len(data)} bytes are not an array of {dtype.itemsize}-byte row ids")
    return np.frombuffer(data, dtype)


def _encode_array(values: NDArray[np.uint64]) -> rowids_pb2.EncodedU64Array:
    low, high = int(values.min()), int(values.max())
    for name, dtype in (("u16_array", "<u2"), ("u32_array", "<u4")):
        if high - low <= np.iinfo(dtype).max:
            offsets = (values - np.uint64(low)).astype(dtype).tobytes()
            return rowids_pb2.EncodedU64Array(**{name: {"base": low, "offsets": offsets}})  # type: ignore[arg-type]
    return rowids_pb2.EncodedU64Array(u64_array={"values": values.astype("<u8").tobytes()})
