"""Segments that are open for searching."""

from __future__ import annotations

import math
import weakref
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError
from lance_dataset.index.scalar.conditions import Answer, Condition
from lance_dataset.index.scalar.json_path import keys_of_path, parse_details, path_of_keys
from lance_dataset.index.searches import RANGED, SEARCHES, FoundRows, Search, VaryingSearch
from lance_dataset.index.segments import Segment, index_segments
from lance_dataset.index.unnoted import unnoted_kind
from lance_dataset.properties import cached_property
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.read.table_reader import TableReader
from lance_dataset.table.address_ranges import AddressRanges
from lance_dataset.table.indices.changes import holds_addresses
from lance_dataset.table.indices.coverage import has_reliable_coverage, kind_of_details
from lance_dataset.table.indices.moved_rows import Relocation
from lance_dataset.table.indices.reuse import find_reuse_index, relocation
from lance_dataset.table.row_addresses import fragments_of

__all__ = ["FieldIndex", "IndexedValue", "TableIndices", "table_indices"]

#: Ranges of rows up to which a loop over them is faster than calls of NumPy.
_FEW = 32
#: Nanoseconds of opening the files of a segment.
_FILE_COST = 2e5
#: Kinds of indices of nothing but text.
_TEXT_KINDS = frozenset({"ngram", "fm"})
#: Version of the files of releases that index values of JSON documents only if all have the same type.
_FIRST_STRICT = "2.2"


class IndexedValue(NamedTuple):
    """Values that an index is of.

    Attributes
    ----------
    field_id
        The field.
    path
        Path inside its JSON documents, as `path_of_keys` writes it; None for the field itself.
    """

    field_id: int
    path: str | None = None


@dataclass(eq=False)
class FieldIndex:
    """One index of a field, all of its segments.

    Attributes
    ----------
    name
        Its name.
    kind
        Its kind, a key of `KINDS`.
    files_kind
        Kind of its files, a key of `SEARCHES`: the same kind, unless the index is of JSON documents.
    segments
        Segments that cover fragments of the version.
    missed
        Nanoseconds of the scans that it could have saved so far.
    """

    name: str
    kind: str
    files_kind: str
    segments: tuple[_OpenSegment, ...]
    missed: float = 0.0

    @cached_property
    def fragment_ids(self) -> frozenset[int]:
        """Fragments that it covers."""
        return frozenset().union(*(segment.segment.fragment_ids for segment in self.segments))

    @property
    def opening_cost(self) -> float:
        """Nanoseconds of opening the segments that are not open."""
        closed = [segment for segment in self.segments if "search" not in vars(segment)]
        sizes = (file.size_bytes for segment in closed for file in segment.segment.metadata.files)
        return _FILE_COST * len(closed) + SEARCHES[self.files_kind].byte_cost * sum(sizes)

    def is_worth_opening(self, scan: float) -> bool:
        """Return True if the index is open, or if opening it takes no longer than the scans that it could have saved.

        This is the rule for renting or buying skis: whatever comes, at most twice the time of the better choice.

        Parameters
        ----------
        scan
            Nanoseconds of the scan that the index could save now; infinite to use it anyway.
        """
        if scan == math.inf:
            return True
        self.missed += scan
        return self.opening_cost <= self.missed

    def answers(self, condition: Condition, kind: pa.DataType) -> Answer:
        """Return how exactly it answers a condition on values of a type."""
        return SEARCHES[self.files_kind].answers(condition)

    def of_type(self, kind: pa.DataType) -> FieldIndex | None:
        """Return the index with only the segments whose values have a type; None without any.

        Segments of a field always have values of its type. Those of JSON documents are opened to find out.
        """
        if self.kind != "json":
            return self
        fitting = tuple(each for each in self.segments if each.has_json_values(kind))
        if len(fitting) == len(self.segments):
            return self
        return replace(self, segments=fitting) if fitting else None

    @property
    def finds_ranges(self) -> bool:
        """True if it finds long ranges of rows."""
        return self.files_kind in RANGED

    def is_exact(self, condition: Condition) -> bool:
        """Return True if an answer that may be exact is so with the files that there are."""
        searches = (segment.search for segment in self.segments)
        return all(not isinstance(each, VaryingSearch) or each.is_exact(condition) for each in searches)

    def estimate(self, condition: Condition) -> int:
        """Return an upper estimate of the number of rows."""
        return sum(segment.search.estimate(condition) for segment in self.segments)

    def cost(self, condition: Condition) -> float:
        """Return the nanoseconds of the search, apart from those for each row."""
        return sum(segment.search.cost(condition) for segment in self.segments)

    def prewarm(self, segment_ids: Collection[str] | None) -> None:
        """Open the files of segments now, of all or of those with some ids."""
        for each in self.segments:
            if segment_ids is None or each.segment.metadata.uuid in segment_ids:
                _ = each.search

    def rows(self, condition: Condition) -> AddressRanges:
        """Return the addresses of the rows for which the condition is true; deleted rows may be among them.

        If the answer is not exact, other rows may be among them, too.

        Raises
        ------
        CorruptFileError
            The files of the index contradict the format.
        """
        if len(self.segments) == 1:
            return self.segments[0].rows(condition)
        return AddressRanges.union([segment.rows(condition) for segment in self.segments])


class _OpenSegment:
    def __init__(self, segment: Segment, kind: str, moved: Relocation | None) -> None:
        self.segment = segment
        self._kind = kind
        self._moved = moved
        manifest = segment.reader.manifest
        stable = manifest.uses_stable_row_ids
        self._has_ids = stable and not holds_addresses(kind, segment.metadata.index_version)

    @cached_property
    def search(self) -> Search:
        """Open files of the segment."""
        found = SEARCHES[self._kind](self.segment.folder, self._rows_in)
        (field,) = self.segment.metadata.fields
        kind = self.segment.reader.manifest.schema.by_id[field].storage_type
        wanted = kind.value_type if self._kind == "labellist" else kind
        if found.kind not in (wanted, None) and self.segment.kind != "json":
            where = self.segment.folder.uri("")
            raise CorruptFileError(f"{where}: the index {self.segment.name!r} has values of {found.kind}, not {wanted}")
        if found.kind is None and self.segment.kind != "json":
            found.kind = wanted
        return found

    def has_json_values(self, kind: pa.DataType) -> bool:
        """Return True if the files have all values at the path of JSON documents, and these are of a type."""
        found = self.search.kind
        if found is None:
            found = pa.string() if self._kind in _TEXT_KINDS else None
        return found == kind and (kind != pa.string() or not self._may_be_converted)

    @cached_property
    def _may_be_converted(self) -> bool:
        """True for files of releases that converted values of other types to text, and left them out of order."""
        folder = self.segment.folder
        return any(folder.open(name).version < _FIRST_STRICT for name in folder.names()[:1])

    def _rows_in(self, fragment_id: int) -> int:
        fragment = self.segment.reader.fragment(fragment_id)
        if fragment is not None:
            return fragment.physical_rows
        return 0 if self._moved is None else self._moved.physical_rows(fragment_id) or 0

    def rows(self, condition: Condition) -> AddressRanges:
        """Return addresses in the fragments that the segment covers."""
        found = self._ranges(self.search.search(condition))
        covered = self.segment.fragment_ids
        owners = fragments_of(found.starts)
        present = owners.tolist() if len(owners) < _FEW else np.unique(owners).tolist()
        outside = [each for each in present if each not in covered]
        return found.without(np.isin(owners, outside)) if outside else found

    def _ranges(self, found: FoundRows) -> AddressRanges:
        """Return the rows of a search at their places in the version."""
        if self._has_ids and not isinstance(found, AddressRanges):
            addresses, known = self.segment.reader.addresses_of_ids(found)
            found = addresses[known]
        elif self._moved is not None:
            if isinstance(found, AddressRanges):
                found = found.addresses()
            addresses, gone = self._moved.locate(found)
            found = addresses[~gone]
        return found if isinstance(found, AddressRanges) else AddressRanges.of_addresses(_ascending(found))


def _ascending(rows: NDArray[np.uint64]) -> NDArray[np.uint64]:
    return np.sort(rows) if (rows[1:] < rows[:-1]).any() else rows


class TableIndices:
    """Indices of a version that scans can use.

    Parameters
    ----------
    snapshot
        The version. Its reader keeps this object, so both are freed with the last handle only if this one does not keep
        the snapshot.

    Attributes
    ----------
    kept
        The version, if nothing else keeps it: after loading from a pickle.
    """

    kept: Snapshot | None = None

    def __init__(self, snapshot: Snapshot) -> None:
        self._reader: TableReader = weakref.proxy(snapshot.reader)
        self._reopening = snapshot.__reduce__()

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopened, (self._reopening,)

    @property
    def nbytes(self) -> int:
        """Estimated bytes of what is open."""
        known = vars(self).get("by_value", {})
        segments = [each for indices in known.values() for index in indices for each in index.segments]
        return sum(vars(each)["search"].nbytes for each in segments if "search" in vars(each))

    @cached_property
    def by_value(self) -> Mapping[IndexedValue, tuple[FieldIndex, ...]]:
        """Indices by what they are of."""
        reader = self._reader
        manifest = reader.manifest
        if not manifest.index_section or not has_reliable_coverage(manifest):
            return {}
        reuse = find_reuse_index(manifest)
        moved = None if reuse is None else relocation(reuse, reader.locator)
        found: dict[tuple[IndexedValue, str, str, str], list[_OpenSegment]] = {}
        for segment in index_segments(reader):
            if segment.is_system or len(segment.metadata.fields) != 1 or not segment.fragment_ids:
                continue
            kind = segment.kind
            if kind is None:
                kind = unnoted_kind(segment.metadata.fields, manifest.schema, segment.folder)
            files_kind, path = kind, None
            if kind == "json":
                files_kind, path = _json_definition(segment)
                if path is None:
                    continue
            if files_kind in SEARCHES:
                value = IndexedValue(segment.metadata.fields[0], path)
                key = value, segment.name, kind, files_kind
                found.setdefault(key, []).append(_OpenSegment(segment, files_kind, moved))
        by_value: dict[IndexedValue, list[FieldIndex]] = {}
        for (value, name, kind, files_kind), segments in found.items():
            by_value.setdefault(value, []).append(FieldIndex(name, kind, files_kind, tuple(segments)))
        return {value: tuple(indices) for value, indices in by_value.items()}


def _json_definition(segment: Segment) -> tuple[str, str | None]:
    """Return the kind of the files of a JSON index, and the path; None as the path if it does not consist of keys."""
    details = segment.metadata.details
    message = parse_details(b"" if details is None else details.value, f"details of the index {segment.name!r}")
    keys = keys_of_path(message.path)
    return kind_of_details(message.target_details.type_url), None if keys is None else path_of_keys(keys)


def _reopened(reopening: tuple[Any, ...]) -> TableIndices:
    make, arguments = reopening
    snapshot = make(*arguments)
    found = TableIndices(snapshot)
    found.kept = snapshot
    return found


def table_indices(snapshot: Snapshot) -> TableIndices | None:
    """Return the indices of a version, None without any. They are kept as long as the reader of the version."""
    if not snapshot.manifest.index_section:
        return None
    known = snapshot.reader.companions
    found = known.get(TableIndices)
    if found is None:
        found = known.setdefault(TableIndices, TableIndices(snapshot))
    return found if isinstance(found, TableIndices) else None
