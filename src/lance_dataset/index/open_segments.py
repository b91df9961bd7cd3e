"""Segments that are open for searching."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError
from lance_dataset.index.files import IndexFolder
from lance_dataset.index.scalar.bitmap_search import BitmapSearch, LabelListSearch
from lance_dataset.index.scalar.btree_search import BTreeSearch
from lance_dataset.index.scalar.conditions import Condition
from lance_dataset.index.segments import Segment, index_segments
from lance_dataset.index.unnoted import unnoted_kind
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.table.indices.coverage import has_reliable_coverage
from lance_dataset.table.indices.moved_rows import Relocation
from lance_dataset.table.indices.reuse import find_reuse_index, relocation
from lance_dataset.table.row_addresses import fragments_of

__all__ = ["FieldIndex", "Search", "TableIndices", "table_indices"]


#: Nanoseconds of opening the files of a segment, and for each of their bytes.
_FILE_COST = 2e5
_BYTE_COSTS: Mapping[str, float] = {"btree": 0.02, "bitmap": 3.0, "labellist": 3.0}


class Search(Protocol):
    """An open segment; see `BTreeSearch`."""

    kind: pa.DataType
    nbytes: int

    def __init__(self, folder: IndexFolder, rows_in: Callable[[int], int]) -> None: ...

    @staticmethod
    def answers(condition: Condition) -> bool:
        """Return True if such an index finds exactly the rows for which the condition is true."""

    def estimate(self, condition: Condition) -> int:
        """Return an upper estimate of the number of rows."""

    def cost(self, condition: Condition) -> int:
        """Return the number of places to read."""

    def search(self, condition: Condition) -> NDArray[np.uint64]:
        """Return the ids or addresses of the rows for which the condition is true."""


#: The kinds of indices that scans use.
SEARCHES: Mapping[str, type[Search]] = {"btree": BTreeSearch, "bitmap": BitmapSearch, "labellist": LabelListSearch}


@dataclass(eq=False)
class FieldIndex:
    """One index of a field, all of its segments.

    Attributes
    ----------
    name
        Its name.
    kind
        Its kind, a key of `KINDS`.
    segments
        Segments that cover fragments of the version.
    missed
        Nanoseconds of the scans that it could have saved so far.
    """

    name: str
    kind: str
    segments: tuple[_OpenSegment, ...]
    missed: float = 0.0

    @cached_property
    def fragment_ids(self) -> frozenset[int]:
        """Fragments that it covers."""
        return frozenset().union(*(segment.segment.fragment_ids for segment in self.segments))

    @property
    def opening_cost(self) -> float:
        """Nanoseconds of opening the segments that are not open: all keys are read, or the bounds of all pages."""
        closed = [segment for segment in self.segments if "search" not in vars(segment)]
        sizes = (file.size_bytes for segment in closed for file in segment.segment.metadata.files)
        return _FILE_COST * len(closed) + _BYTE_COSTS[self.kind] * sum(sizes)

    def is_worth_opening(self, scan: float) -> bool:
        """Return True if the index is open, or if opening it takes no longer than the scans that it could have saved.

        This is the rule for renting or buying skis: whatever comes, at most twice the time of the better choice.

        Parameters
        ----------
        scan
            Nanoseconds of the scan that the index could save now.
        """
        self.missed += scan
        return self.opening_cost <= self.missed

    def answers(self, condition: Condition) -> bool:
        """Return True if it finds exactly the rows for which the condition is true."""
        return SEARCHES[self.kind].answers(condition)

    def estimate(self, condition: Condition) -> int:
        """Return an upper estimate of the number of rows."""
        return sum(segment.search.estimate(condition) for segment in self.segments)

    def cost(self, condition: Condition) -> int:
        """Return the number of places to read."""
        return sum(segment.search.cost(condition) for segment in self.segments)

    def prewarm(self, segment_ids: Collection[str] | None) -> None:
        """Open the files of segments now, of all or of those with some ids."""
        for each in self.segments:
            if segment_ids is None or each.segment.metadata.uuid in segment_ids:
                _ = each.search

    def rows(self, condition: Condition) -> NDArray[np.uint64]:
        """Return the addresses of the rows for which the condition is true, ascending; deleted rows may be among them.

        Raises
        ------
        CorruptFileError
            The files of the index contradict the format.
        """
        parts = [segment.rows(condition) for segment in self.segments]
        return np.unique(parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, np.uint64), *parts]))


class _OpenSegment:
    def __init__(self, segment: Segment, kind: str, moved: Relocation | None) -> None:
        self.segment = segment
        self._kind = kind
        self._moved = moved
        manifest = segment.snapshot.manifest
        stable = manifest.uses_stable_row_ids
        self._has_ids = stable and not (kind == "btree" and (segment.metadata.index_version or 0) >= 1)

    @cached_property
    def search(self) -> Search:
        """Open files of the segment."""
        found = SEARCHES[self._kind](self.segment.folder, self._rows_in)
        (field,) = self.segment.metadata.fields
        kind = self.segment.snapshot.manifest.schema.by_id[field].storage_type
        wanted = kind.value_type if self._kind == "labellist" else kind
        if found.kind != wanted:
            where = self.segment.folder.uri("")
            raise CorruptFileError(f"{where}: the index {self.segment.name!r} has values of {found.kind}, not {wanted}")
        return found

    def _rows_in(self, fragment_id: int) -> int:
        fragment = self.segment.snapshot.reader.fragment(fragment_id)
        return 0 if fragment is None else fragment.physical_rows

    def rows(self, condition: Condition) -> NDArray[np.uint64]:
        """Return addresses in the fragments that the segment covers, in any order."""
        found = self.search.search(condition)
        if self._has_ids:
            addresses, known = self.segment.snapshot.reader.addresses_of_ids(found)
            found = addresses[known]
        elif self._moved is not None:
            addresses, gone = self._moved.locate(found)
            found = addresses[~gone]
        if not len(found):
            return found
        owners = fragments_of(found)
        present = np.unique(owners)
        covered = self.segment.fragment_ids
        outside = [each for each in present.tolist() if each not in covered]
        return found[~np.isin(owners, outside)] if outside else found


class TableIndices:
    """Indices of a version that scans can use.

    Parameters
    ----------
    snapshot
        The version.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def __reduce__(self) -> tuple[Any, ...]:
        return TableIndices, (self._snapshot,)

    @cached_property
    def by_field(self) -> Mapping[int, tuple[FieldIndex, ...]]:
        """Indices by the id of their field."""
        snapshot = self._snapshot
        manifest = snapshot.manifest
        if not manifest.index_section or not has_reliable_coverage(manifest):
            return {}
        reuse = find_reuse_index(manifest)
        moved = None if reuse is None else relocation(reuse, snapshot.location.locator(manifest))
        found: dict[tuple[int, str, str], list[_OpenSegment]] = {}
        for segment in index_segments(snapshot):
            if segment.is_system or len(segment.metadata.fields) != 1 or not segment.fragment_ids:
                continue
            kind = segment.kind
            if kind is None:
                kind = unnoted_kind(segment.metadata.fields, manifest.schema, segment.folder)
            if kind in SEARCHES:
                key = segment.metadata.fields[0], segment.name, kind
                found.setdefault(key, []).append(_OpenSegment(segment, kind, moved))
        by_field: dict[int, list[FieldIndex]] = {}
        for (field, name, kind), segments in found.items():
            by_field.setdefault(field, []).append(FieldIndex(name, kind, tuple(segments)))
        return {field: tuple(indices) for field, indices in by_field.items()}


def table_indices(snapshot: Snapshot) -> TableIndices | None:
    """Return the indices of a version, None without any. They are kept as long as the reader of the version."""
    if not snapshot.manifest.index_section:
        return None
    known = snapshot.reader.companions
    found = known.get(TableIndices)
    if found is None:
        found = known.setdefault(TableIndices, TableIndices(snapshot))
    return found if isinstance(found, TableIndices) else None
