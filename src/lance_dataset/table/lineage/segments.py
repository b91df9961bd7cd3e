"""Segments: the parts that a sequence of row ids is stored in, kept as compact as they are stored.

There are five kinds: a range, a range with holes, a range with a bitmap, an ascending array, and any array. In memory
they are a `Range`, `Holes`, `Bitmap` or `Values`; cutting one of the last three gives `Runs`, consecutive ids taken
together. What is written is the smallest of the five for the ids, by the estimate of the reference.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lance_dataset._proto import rowids_pb2
from lance_dataset.errors import CorruptFileError

__all__ = ["MAX_ID", "Bitmap", "Holes", "Range", "Runs", "Segment", "Values", "decode_segment"]

#: The largest row id.
MAX_ID = 2**64 - 1

_ONE = np.uint64(1)


@dataclass(frozen=True, eq=False)
class Runs:
    """Ids as runs of consecutive numbers.

    Attributes
    ----------
    first
        uint64[n]: the first id of each run.
    starts
        int64[n + 1]: number of ids before each run, then of all.
    """

    first: NDArray[np.uint64]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, values: NDArray[np.uint64]) -> Runs:
        """Runs of ids in any order."""
        if len(values) == 0:
            return cls(np.empty(0, np.uint64), np.zeros(1, np.int64))
        apart = (values[1:] != values[:-1] + _ONE) | (values[:-1] == np.uint64(MAX_ID))
        begins = np.concatenate([np.zeros(1, np.int64), np.flatnonzero(apart) + 1])
        return cls(values[begins], np.append(begins, len(values)))

    @classmethod
    def joined(cls, parts: Iterable[Runs]) -> Runs:
        """The ids of several sequences one after the other."""
        found = list(parts)
        first = np.concatenate([np.empty(0, np.uint64), *(part.first for part in found)])
        lengths = np.concatenate([np.empty(0, np.int64), *(part.lengths for part in found)])
        return cls(first, np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)]))

    def ascending(self) -> Runs:
        """The runs in the order of their first ids: all ids in ascending order, if none is there twice."""
        order = np.argsort(self.first, kind="stable")
        lengths = self.lengths[order]
        return Runs(self.first[order], np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)]))

    def __len__(self) -> int:
        return int(self.starts[-1])

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of ids of each run."""
        return np.diff(self.starts)

    @property
    def last(self) -> NDArray[np.uint64]:
        """The last id of each run."""
        return self.first + (self.lengths - 1).astype(np.uint64)

    @cached_property
    def is_ascending(self) -> bool:
        """Whether every id is greater than the one before."""
        return bool((self.first[1:] > self.last[:-1]).all())

    @property
    def bounds(self) -> tuple[int, int]:
        """Smallest and largest id, of at least one."""
        return int(self.first.min()), int(self.last.max())

    def runs(self) -> Runs:
        """These."""
        return self

    def to_numpy(self) -> NDArray[np.uint64]:
        """All ids."""
        shifts = self.first - self.starts[:-1].astype(np.uint64)
        return np.add(np.repeat(shifts, self.lengths), np.arange(len(self), dtype=np.uint64), dtype=np.uint64)

    def take(self, offsets: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Ids at offsets, which are inside."""
        owners = np.searchsorted(self.starts, offsets, side="right") - 1
        return self.first[owners] + (offsets - self.starts[owners]).astype(np.uint64)

    def slice(self, start: int, stop: int) -> Runs:
        """Ids ``[start, stop)`` by offset."""
        if start >= stop:
            return Runs.of(np.empty(0, np.uint64))
        low, high = int(np.searchsorted(self.starts, start, "right")) - 1, int(np.searchsorted(self.starts, stop))
        first, starts = self.first[low:high].copy(), self.starts[low : high + 1].clip(start, stop) - start
        first[0] += np.uint64(start - int(self.starts[low]))
        return Runs(first, starts)

    def without(self, offsets: NDArray[np.int64]) -> Runs:
        """Ids but for those at some offsets, which are ascending and inside."""
        # Each offset ends a piece before it and begins one behind it, so that the n-th begin goes with the n-th end.
        begins = np.sort(np.concatenate([self.starts[:-1], offsets + 1]), kind="stable")
        ends = np.sort(np.concatenate([self.starts[1:], offsets]), kind="stable")
        begins, lengths = begins[ends > begins], (ends - begins)[ends > begins]
        return Runs(self.take(begins), np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)]))

    def to_proto(self) -> rowids_pb2.U64Segment:
        """The smallest of the stored kinds that can hold the ids."""
        if len(self) == 0:
            return Range(0, 0).to_proto()
        if not self.is_ascending or int(self.last[-1]) == MAX_ID:
            # The end of a range cannot lie behind the largest number.
            return rowids_pb2.U64Segment(array=_encode_array(self.to_numpy()))
        low, high = self.bounds
        span = high - low + 1
        holes = span - len(self)
        if holes == 0:
            return Range(low, high + 1).to_proto()
        # Estimated sizes in bytes; the order breaks ties.
        sizes = {"holes": 24 + 4 * holes, "bitmap": 24 + (span + 7) // 8, "array": 24 + 2 * len(self)}
        kind = min(sizes, key=sizes.__getitem__)
        if kind == "array":
            return rowids_pb2.U64Segment(sorted_array=_encode_array(self.to_numpy()))
        # From here on the range is at most 16 numbers for each id, so what is done for each of them stays small.
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
        """For ascending ids, which of the numbers from the first on are there: bit ``i % 8`` of byte ``i // 8``."""
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
        """Smallest and largest id, of at least one."""
        return self.start, self.stop - 1

    def runs(self) -> Runs:
        """One run, or none."""
        if not len(self):
            return Runs.of(np.empty(0, np.uint64))
        return Runs(np.array([self.start], np.uint64), np.array([0, len(self)], np.int64))

    def to_numpy(self) -> NDArray[np.uint64]:
        """All ids."""
        return np.arange(self.start, self.stop, dtype=np.uint64)

    def take(self, offsets: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Ids at offsets, which are inside."""
        return offsets.astype(np.uint64) + np.uint64(self.start)

    def slice(self, start: int, stop: int) -> Range:
        """Ids ``[start, stop)`` by offset."""
        return Range(self.start + start, max(self.start + stop, self.start + start))

    def without(self, offsets: NDArray[np.int64]) -> Segment:
        """Ids but for those at some offsets, which are ascending and inside."""
        return self.runs().without(offsets) if len(offsets) else self

    def to_proto(self) -> rowids_pb2.U64Segment:
        """The message."""
        return rowids_pb2.U64Segment(range={"start": self.start, "end": self.stop})


class _Packed(ABC):
    """What the kinds that are not plain ranges have in common: they are unpacked to runs when they are cut."""

    @abstractmethod
    def _unpacked(self) -> Runs:
        """The ids as runs."""

    @cached_property
    def _runs(self) -> Runs:
        return self._unpacked()

    def runs(self) -> Runs:
        """The ids as runs."""
        return self._runs

    def to_numpy(self) -> NDArray[np.uint64]:
        """All ids."""
        return self._runs.to_numpy()

    def take(self, offsets: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Ids at offsets, which are inside."""
        return self._runs.take(offsets)

    def slice(self, start: int, stop: int) -> Runs:
        """Ids ``[start, stop)`` by offset."""
        return self._runs.slice(start, stop)

    def without(self, offsets: NDArray[np.int64]) -> Runs:
        """Ids but for those at some offsets, which are ascending and inside."""
        return self._runs.without(offsets)

    def to_proto(self) -> rowids_pb2.U64Segment:
        """The smallest of the stored kinds that can hold the ids."""
        return self._runs.to_proto()


@dataclass(frozen=True, eq=False)
class Holes(_Packed):
    """A range but for some of its numbers.

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
        """Limits of the ids: there are none outside, but perhaps holes at the ends."""
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
        uint8: bit ``i % 8`` of byte ``i // 8`` tells of number ``start + i``; none is set behind the end.
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
        """Limits of the ids: there are none outside."""
        return self.start, self.stop - 1

    def _unpacked(self) -> Runs:
        change = np.diff(np.unpackbits(self.bits, bitorder="little").view(np.int8), prepend=0, append=0)
        begins, ends = np.flatnonzero(change == 1), np.flatnonzero(change == -1)
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(ends - begins)])
        return Runs(begins.astype(np.uint64) + np.uint64(self.start), starts)


@dataclass(frozen=True, eq=False)
class Values(_Packed):
    """Ids one by one, in any order.

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
        """Smallest and largest id, of at least one."""
        return self.base + int(self.offsets.min()), self.base + int(self.offsets.max())

    def to_numpy(self) -> NDArray[np.uint64]:
        """All ids."""
        return self.offsets.astype(np.uint64) + np.uint64(self.base)

    def take(self, offsets: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Ids at offsets, which are inside."""
        return self.offsets[offsets].astype(np.uint64) + np.uint64(self.base)

    def slice(self, start: int, stop: int) -> Values:  # type: ignore[override]
        """Ids ``[start, stop)`` by offset."""
        return Values(self.base, self.offsets[start : max(start, stop)])

    def _unpacked(self) -> Runs:
        return Runs.of(self.to_numpy())


#: Ids one after the other.
Segment: TypeAlias = Range | Holes | Bitmap | Values | Runs


# -- messages ----------------------------------------------------------------------------------------------------


def decode_segment(message: rowids_pb2.U64Segment, limit: int, where: str) -> Segment:
    """Read a segment without unpacking it.

    Parameters
    ----------
    message
        The segment.
    limit
        Most ids it may have.
    where
        Table and fragment, for error messages.

    Raises
    ------
    CorruptFileError
        It contradicts itself, or has more ids.
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
        raise CorruptFileError(f"{where}: a row id bitmap has bits behind the end of its range")
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
        raise CorruptFileError(f"{where}: {len(data)} bytes are no array of {dtype.itemsize}-byte row ids")
    return np.frombuffer(data, dtype)


def _encode_array(values: NDArray[np.uint64]) -> rowids_pb2.EncodedU64Array:
    low, high = int(values.min()), int(values.max())
    for name, dtype in (("u16_array", "<u2"), ("u32_array", "<u4")):
        if high - low <= np.iinfo(dtype).max:
            offsets = (values - np.uint64(low)).astype(dtype).tobytes()
            return rowids_pb2.EncodedU64Array(**{name: {"base": low, "offsets": offsets}})  # type: ignore[arg-type]
    return rowids_pb2.EncodedU64Array(u64_array={"values": values.astype("<u8").tobytes()})
