"""Row lineage: stable ids of rows, and the versions that created and last changed them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lance_dataset._proto import rowids_pb2
from lance_dataset.errors import CorruptFileError
from lance_dataset.table.messages import parse_message

__all__ = ["RowIds", "RowVersions"]

_U64 = np.dtype("<u8")
_MAX = 2**64 - 1

#: Consecutive ids are kept as a range, others as an array.
IdSegment = range | npt.NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class RowIds:
    """Row ids of a fragment in physical order.

    Attributes
    ----------
    segments
        Parts of the sequence, each a range or an array of uint64.
    """

    segments: tuple[IdSegment, ...]

    def __len__(self) -> int:
        return sum(len(segment) for segment in self.segments)

    @classmethod
    def from_range(cls, start: int, count: int) -> RowIds:
        """`count` consecutive ids."""
        return cls((range(start, start + count),))

    @classmethod
    def from_values(cls, values: npt.ArrayLike) -> RowIds:
        """Ids in any order."""
        return cls((np.asarray(values, dtype=np.uint64),))

    @classmethod
    def decode(cls, data: bytes, physical_rows: int, where: str) -> RowIds:
        """Read a serialized sequence.

        Parameters
        ----------
        data
            A `RowIdSequence` message.
        physical_rows
            Length the sequence must have.
        where
            Table and fragment, for error messages.

        Raises
        ------
        CorruptFileError
            The bytes contradict the format, or there are more or fewer ids.
        """
        ids = cls.decode_partial(data, physical_rows, where)
        if len(ids) != physical_rows:
            raise CorruptFileError(f"{where}: has {len(ids)} row ids for {physical_rows} rows")
        return ids

    @classmethod
    def decode_partial(cls, data: bytes, physical_rows: int, where: str) -> RowIds:
        """Read a serialized sequence that may be shorter than `physical_rows`, as in a transaction."""
        message = parse_message(rowids_pb2.RowIdSequence, data, f"{where}: row ids")
        segments: list[IdSegment] = []
        left = physical_rows
        for segment in message.segments:
            values = _decode_segment(segment, left, where)
            left -= len(values)
            segments.append(values)
        return cls(tuple(segments))

    def to_numpy(self) -> npt.NDArray[np.uint64]:
        """All ids, one per physical row."""
        parts = [
            np.arange(part.start, part.stop, dtype=np.uint64) if isinstance(part, range) else part
            for part in self.segments
        ]
        return np.concatenate(parts) if parts else np.empty(0, np.uint64)

    def extended(self, start: int, count: int) -> RowIds:
        """The same sequence with `count` consecutive ids behind it."""
        return RowIds((*self.segments, range(start, start + count)))

    def encode(self) -> bytes:
        """The serialized sequence."""
        return rowids_pb2.RowIdSequence(segments=[_encode_segment(part) for part in self.segments]).SerializeToString()


@dataclass(frozen=True)
class RowVersions:
    """A version number for every physical row of a fragment.

    Attributes
    ----------
    runs
        (number of rows, version) pairs in physical order.
    """

    runs: tuple[tuple[int, int], ...]

    @classmethod
    def constant(cls, physical_rows: int, version: int) -> RowVersions:
        """The same version for all rows."""
        return cls(((physical_rows, version),))

    @classmethod
    def from_values(cls, versions: npt.ArrayLike) -> RowVersions:
        """One version per row."""
        values = np.asarray(versions, dtype=np.uint64)
        if len(values) == 0:
            return cls(())
        starts = np.concatenate([[0], np.flatnonzero(values[1:] != values[:-1]) + 1])
        counts = np.diff(np.append(starts, len(values)))
        return cls(tuple((int(count), int(values[start])) for start, count in zip(starts, counts, strict=True)))

    @classmethod
    def decode(cls, data: bytes | None, physical_rows: int, where: str) -> RowVersions:
        """Read a serialized sequence; without one all rows are of version 1.

        Raises
        ------
        CorruptFileError
            The bytes contradict the format, or there are more or fewer versions than rows.
        """
        if data is None:
            return cls.constant(physical_rows, 1)
        message = parse_message(rowids_pb2.RowDatasetVersionSequence, data, f"{where}: row versions")
        runs, left = [], physical_rows
        for run in message.runs:
            count = len(_decode_segment(run.span, left, where))
            left -= count
            runs.append((count, run.version))
        if left:
            raise CorruptFileError(f"{where}: has {physical_rows - left} row versions for {physical_rows} rows")
        return cls(tuple(runs))

    def to_numpy(self) -> npt.NDArray[np.uint64]:
        """One version per physical row."""
        versions = np.array([version for _, version in self.runs], dtype=np.uint64)
        return np.repeat(versions, [count for count, _ in self.runs])

    def encode(self) -> bytes:
        """The serialized sequence."""
        message = rowids_pb2.RowDatasetVersionSequence()
        for count, version in self.runs:
            run = message.runs.add(version=version)
            run.span.range.SetInParent()
            run.span.range.end = count
        return message.SerializeToString()


def _decode_segment(segment: rowids_pb2.U64Segment, limit: int, where: str) -> IdSegment:
    """Values of a segment; refuses more than `limit` before anything of that size is allocated."""
    kind = segment.WhichOneof("segment")
    if kind == "range":
        return _decode_range(segment.range.start, segment.range.end, limit, where)
    if kind == "range_with_holes":
        return _decode_holes(segment.range_with_holes, limit, where)
    if kind == "range_with_bitmap":
        return _decode_bits(segment.range_with_bitmap, limit, where)
    if kind == "sorted_array":
        return _bounded(_decode_array(segment.sorted_array, where), limit, where)
    if kind == "array":
        return _bounded(_decode_array(segment.array, where), limit, where)
    raise CorruptFileError(f"{where}: a row id segment has no content or an unknown kind")


def _decode_range(start: int, end: int, limit: int, where: str) -> range:
    if end < start:
        raise CorruptFileError(f"{where}: a row id range ends at {end}, before its start {start}")
    if end - start > limit:
        raise CorruptFileError(f"{where}: a row id range has {end - start} values where only {limit} are expected")
    return range(start, end)


def _decode_holes(message: rowids_pb2.U64Segment.RangeWithHoles, limit: int, where: str) -> npt.NDArray[np.uint64]:
    holes = _decode_array(message.holes, where)
    values = _decode_range(message.start, message.end, limit + len(holes), where)
    if len(holes) and (
        (holes[1:] <= holes[:-1]).any() or int(holes[0]) < message.start or int(holes[-1]) >= message.end
    ):
        raise CorruptFileError(f"{where}: the holes of a row id range are not ascending or lie outside of it")
    present = np.ones(len(values), dtype=bool)
    present[(holes - np.uint64(message.start)).astype(np.int64)] = False
    return np.flatnonzero(present).astype(np.uint64) + np.uint64(message.start)


def _decode_bits(message: rowids_pb2.U64Segment.RangeWithBitmap, limit: int, where: str) -> npt.NDArray[np.uint64]:
    span = message.end - message.start
    if span < 0 or len(message.bitmap) != (span + 7) // 8:
        raise CorruptFileError(f"{where}: a row id bitmap of {len(message.bitmap)} bytes for a range of {span} values")
    bits = np.unpackbits(np.frombuffer(message.bitmap, np.uint8), bitorder="little")
    if bits[span:].any():
        raise CorruptFileError(f"{where}: a row id bitmap has bits behind the end of its range")
    return _bounded(np.flatnonzero(bits).astype(np.uint64) + np.uint64(message.start), limit, where)


def _bounded(values: npt.NDArray[np.uint64], limit: int, where: str) -> npt.NDArray[np.uint64]:
    if len(values) > limit:
        raise CorruptFileError(f"{where}: a row id segment has {len(values)} values where only {limit} are expected")
    return values


def _decode_array(message: rowids_pb2.EncodedU64Array, where: str) -> npt.NDArray[np.uint64]:
    kind = message.WhichOneof("array")
    if kind is None:
        return np.empty(0, np.uint64)
    if kind == "u64_array":
        return _from_bytes(message.u64_array.values, _U64, where)
    if kind == "u16_array":
        base, offsets = message.u16_array.base, _from_bytes(message.u16_array.offsets, np.dtype("<u2"), where)
    else:
        base, offsets = message.u32_array.base, _from_bytes(message.u32_array.offsets, np.dtype("<u4"), where)
    if len(offsets) and base + int(offsets.max()) > _MAX:
        raise CorruptFileError(f"{where}: row ids exceed 64 bits")
    return offsets + np.uint64(base)


def _from_bytes(data: bytes, dtype: np.dtype, where: str) -> npt.NDArray[np.uint64]:
    if len(data) % dtype.itemsize:
        raise CorruptFileError(f"{where}: {len(data)} bytes are no array of {dtype.itemsize}-byte row ids")
    return np.frombuffer(data, dtype).astype(np.uint64)


def _encode_segment(values: IdSegment) -> rowids_pb2.U64Segment:
    """The smallest of the kinds that can hold the values."""
    segment = rowids_pb2.U64Segment()
    if isinstance(values, range) or len(values) == 0:
        span = values if isinstance(values, range) else range(0)
        segment.range.SetInParent()
        segment.range.start, segment.range.end = span.start, span.stop
        return segment
    if (values[1:] <= values[:-1]).any() or int(values[-1]) == _MAX:
        # The end of a range cannot lie behind the largest number.
        segment.array.CopyFrom(_encode_array(values))
        return segment
    low, high, count = int(values[0]), int(values[-1]), len(values)
    span_length = high - low + 1
    holes = span_length - count
    if holes == 0:
        return _encode_segment(range(low, high + 1))
    # Estimated sizes in bytes; the order breaks ties.
    sizes = {"holes": 24 + 4 * holes, "bitmap": 24 + (span_length + 7) // 8, "array": 24 + 2 * count}
    kind = min(sizes, key=sizes.__getitem__)
    if kind == "array":
        segment.sorted_array.CopyFrom(_encode_array(values))
        return segment
    # The range is at most 16 values for each one present, so this stays small.
    present = np.zeros(span_length, dtype=bool)
    present[(values - values[0]).astype(np.int64)] = True
    if kind == "bitmap":
        message = segment.range_with_bitmap
        message.bitmap = np.packbits(present, bitorder="little").tobytes()
        message.start, message.end = low, high + 1
    else:
        absent = np.flatnonzero(~present).astype(np.uint64) + np.uint64(low)
        segment.range_with_holes.holes.CopyFrom(_encode_array(absent))
        segment.range_with_holes.start, segment.range_with_holes.end = low, high + 1
    return segment


def _encode_array(values: npt.NDArray[np.uint64]) -> rowids_pb2.EncodedU64Array:
    message = rowids_pb2.EncodedU64Array()
    low, high = int(values.min()), int(values.max())
    if high - low < 1 << 16:
        message.u16_array.base = low
        message.u16_array.offsets = (values - np.uint64(low)).astype("<u2").tobytes()
    elif high - low < 1 << 32:
        message.u32_array.base = low
        message.u32_array.offsets = (values - np.uint64(low)).astype("<u4").tobytes()
    else:
        message.u64_array.values = values.astype(_U64).tobytes()
    return message
