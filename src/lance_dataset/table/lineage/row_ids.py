"""Row ids of a fragment: stable numbers that rows keep when they move."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from lance_dataset._proto import rowids_pb2
from lance_dataset.errors import CorruptFileError
from lance_dataset.late_dataclass import dataclass
from lance_dataset.properties import cached_property
from lance_dataset.table.lineage.row_versions import RowVersions
from lance_dataset.table.lineage.segments import Range, Segment, Values, decode_segment
from lance_dataset.table.messages import parse_message

__all__ = ["RowIds", "RowVersions"]


@dataclass(frozen=True, eq=False)
class RowIds:
    """Row ids of a fragment in physical order.

    Attributes
    ----------
    segments
        Parts of the sequence. Ids are unpacked only when they are needed.
    """

    segments: tuple[Segment, ...]

    def __len__(self) -> int:
        return int(self._starts[-1])

    @cached_property
    def _starts(self) -> npt.NDArray[np.int64]:
        """Number of ids before each segment, then the total."""
        return np.cumsum([0, *(len(segment) for segment in self.segments)], dtype=np.int64)

    @classmethod
    def from_range(cls, start: int, count: int) -> RowIds:
        """Build from `count` consecutive ids."""
        return cls((Range(start, start + count),))

    @classmethod
    def from_values(cls, values: npt.ArrayLike) -> RowIds:
        """Build from ids in any order."""
        return cls((Values(0, np.asarray(values, dtype=np.uint64)),))

    @classmethod
    def concatenated(cls, parts: Iterable[RowIds]) -> RowIds:
        """Concatenate the ids of several sequences. Adjacent ranges are merged."""
        segments: list[Segment] = []
        for segment in (segment for part in parts for segment in part.segments if len(segment)):
            last = segments[-1] if segments else None
            if isinstance(last, Range) and isinstance(segment, Range) and last.stop == segment.start:
                segments[-1] = Range(last.start, segment.stop)
            else:
                segments.append(segment)
        return cls(tuple(segments))

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
        segments: list[Segment] = []
        left = physical_rows
        for part in message.segments:
            segment = decode_segment(part, left, where)
            left -= len(segment)
            segments.append(segment)
        return cls(tuple(segments))

    def to_numpy(self) -> npt.NDArray[np.uint64]:
        """Return all ids, one per physical row."""
        parts = [part.to_numpy() for part in self.segments]
        return np.concatenate(parts) if parts else np.empty(0, np.uint64)

    def take(self, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
        """Return the ids of physical rows, in any order. Raises IndexError for a row out of range."""
        if len(offsets) and not 0 <= int(offsets.min()) <= int(offsets.max()) < len(self):
            raise IndexError(f"physical rows {offsets.min()} to {offsets.max()} of {len(self)}")
        if len(self.segments) == 1:
            return self.segments[0].take(offsets)
        order = None if (offsets[1:] >= offsets[:-1]).all() else np.argsort(offsets, kind="stable")
        ascending = offsets if order is None else offsets[order]
        found = np.empty(len(offsets), np.uint64)
        cuts = pairwise(np.searchsorted(ascending, self._starts).tolist())
        for segment, first, (low, high) in zip(self.segments, self._starts.tolist(), cuts, strict=False):
            if low < high:
                mine = slice(low, high) if order is None else order[low:high]
                found[mine] = segment.take(ascending[low:high] - first)
        return found

    def slice(self, start: int, stop: int) -> RowIds:
        """Return the ids of physical rows ``[start, stop)``."""
        starts = self._starts.tolist()
        bounds = pairwise(self._starts.clip(start, max(start, stop)).tolist())
        cut = [
            segment.slice(low - first, high - first)
            for segment, first, (low, high) in zip(self.segments, starts, bounds, strict=False)
            if low < high
        ]
        return RowIds(tuple(cut))

    def without(self, offsets: npt.NDArray[np.int64]) -> RowIds:
        """Return the ids without those of some physical rows, whose offsets are ascending."""
        starts = self._starts.tolist()
        cuts = pairwise(np.searchsorted(offsets, self._starts).tolist())
        kept = [
            segment.without(offsets[low:high] - first) if low < high else segment
            for segment, first, (low, high) in zip(self.segments, starts, cuts, strict=False)
        ]
        return RowIds(tuple(kept))

    def extended(self, start: int, count: int) -> RowIds:
        """Return the sequence with `count` consecutive ids appended."""
        return RowIds((*self.segments, Range(start, start + count)))

    def encode(self) -> bytes:
        """Serialize the sequence. Every segment uses the smallest kind that can hold it."""
        return rowids_pb2.RowIdSequence(segments=[part.to_proto() for part in self.segments]).SerializeToString()
