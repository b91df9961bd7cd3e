"""Versions that created or last changed the rows of a fragment."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from lance_dataset._proto import rowids_pb2
from lance_dataset.errors import CorruptFileError
from lance_dataset.late_dataclass import dataclass
from lance_dataset.properties import cached_property
from lance_dataset.table.lineage.segments import decode_segment
from lance_dataset.table.messages import parse_message

__all__ = ["RowVersions"]

#: Bytes of memory of a decoded run.
_RUN_BYTES = 50


@dataclass(frozen=True, eq=False)
class RowVersions:
    """Version of every physical row of a fragment, stored as runs of equal versions.

    Attributes
    ----------
    counts
        int64: number of rows of each run, in physical order.
    versions
        uint64: version of each run.
    """

    counts: npt.NDArray[np.int64]
    versions: npt.NDArray[np.uint64]

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self.counts) else 0

    @property
    def runs(self) -> tuple[tuple[int, int], ...]:
        """Pairs (number of rows, version) in physical order."""
        return tuple(zip(self.counts.tolist(), self.versions.tolist(), strict=True))

    @property
    def bounds(self) -> npt.NDArray[np.int64]:
        """Offsets at which the runs begin, then the number of rows."""
        return np.concatenate([np.zeros(1, np.int64), self._ends])

    @cached_property
    def _ends(self) -> npt.NDArray[np.int64]:
        return np.cumsum(self.counts)

    @classmethod
    def constant(cls, physical_rows: int, version: int) -> RowVersions:
        """Build with the same version for all rows."""
        return cls(np.array([physical_rows], np.int64), np.array([version], np.uint64))

    @classmethod
    def from_values(cls, versions: npt.ArrayLike) -> RowVersions:
        """Build from one version per row."""
        values = np.asarray(versions, dtype=np.uint64)
        return cls(np.ones(len(values), np.int64), values)._joined()

    @classmethod
    def concatenated(cls, parts: Iterable[RowVersions]) -> RowVersions:
        """Concatenate the versions of several sequences."""
        found = list(parts)
        counts = np.concatenate([np.empty(0, np.int64), *(part.counts for part in found)])
        return cls(counts, np.concatenate([np.empty(0, np.uint64), *(part.versions for part in found)]))._joined()

    @classmethod
    def decode(cls, data: bytes | None, physical_rows: int, where: str) -> RowVersions:
        """Read a serialized sequence. If `data` is None, all rows have version 1.

        Raises
        ------
        CorruptFileError
            The bytes contradict the format, or there are more or fewer versions than rows.
        """
        if data is None:
            return cls.constant(physical_rows, 1)
        message = parse_message(
            rowids_pb2.RowDatasetVersionSequence, data, f"{where}: row versions", per_message=_RUN_BYTES
        )
        counts, left = [], physical_rows
        for run in message.runs:
            count = len(decode_segment(run.span, left, where))
            left -= count
            counts.append(count)
        if left:
            raise CorruptFileError(f"{where}: has {physical_rows - left} row versions for {physical_rows} rows")
        return cls(np.array(counts, np.int64), np.array([run.version for run in message.runs], np.uint64))

    def to_numpy(self) -> npt.NDArray[np.uint64]:
        """Return one version per physical row."""
        return np.repeat(self.versions, self.counts)

    def take(self, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
        """Return the versions of physical rows, in any order. Raises IndexError for a row out of range."""
        return self.versions[np.searchsorted(self._ends, offsets, side="right")]

    def slice(self, start: int, stop: int) -> RowVersions:
        """Return the versions of physical rows ``[start, stop)``."""
        cuts = self.bounds.clip(start, max(start, stop))
        return RowVersions(np.diff(cuts), self.versions)._joined()

    def without(self, offsets: npt.NDArray[np.int64]) -> RowVersions:
        """Return the versions without those of some physical rows, whose offsets are ascending and in range."""
        dropped = np.bincount(np.searchsorted(self._ends, offsets, side="right"), minlength=len(self.counts))
        return RowVersions(self.counts - dropped, self.versions)._joined()

    def _joined(self) -> RowVersions:
        """Return the same versions without empty runs, and with adjacent runs of one version merged."""
        held = self.counts > 0
        counts, versions = self.counts[held], self.versions[held]
        begins = np.flatnonzero(np.append(True, versions[1:] != versions[:-1])[: len(versions)])
        return RowVersions(np.add.reduceat(counts, begins) if len(begins) else counts, versions[begins])

    def encode(self) -> bytes:
        """Serialize the sequence."""
        message = rowids_pb2.RowDatasetVersionSequence()
        for count, version in self.runs:
            run = message.runs.add(version=version)
            run.span.range.SetInParent()
            run.span.range.end = count
        return message.SerializeToString()
