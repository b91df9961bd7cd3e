"""Comparison of all indices of a version with its rows."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import (
    CorruptFileError,
    DamagedIndexError,
    IndexProblem,
    MissingFileError,
    UnsupportedError,
)
from lance_dataset.index.kinds import KINDS, UNKNOWN, known_kind
from lance_dataset.index.segments import Segment
from lance_dataset.index.unnoted import unnoted_kind
from lance_dataset.index.validating.comparing import WrongRows, compare_keys, compare_zones
from lance_dataset.index.validating.coverage import contradictions
from lance_dataset.index.validating.kinds import CHECKED_KINDS, SegmentContent, content_of
from lance_dataset.index.validating.remedies import remedy
from lance_dataset.index.validating.window import windows
from lance_dataset.properties import cached_property
from lance_dataset.read.projection import Projection, project
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.read.take import take_addresses
from lance_dataset.scan.request import ScanRequest
from lance_dataset.scan.scan import scan_batches
from lance_dataset.table.index_metadata import IndexMetadata
from lance_dataset.table.indices.coverage import coverage, has_reliable_coverage, parse_indices
from lance_dataset.table.indices.moved_rows import Relocation
from lance_dataset.table.indices.reuse import find_reuse_index, relocation
from lance_dataset.table.indices.system import with_current_coverage

__all__ = ["Validated", "validate_indices"]

_BATCH_ROWS: Final = 1 << 16
#: Bytes of memory for each row of a window.
_ROW_BYTES: Final = 32


@dataclass(frozen=True)
class Validated:
    """Result of a validation without problems.

    Attributes
    ----------
    checked
        Names of the indices that were compared with the table.
    unchecked
        Names of the others, each with the reason.
    """

    checked: tuple[str, ...]
    unchecked: tuple[tuple[str, str], ...]


def validate_indices(snapshot: Snapshot, *, memory_limit: int | None = None) -> Validated:
    """Compare all indices of a version with its rows.

    Parameters
    ----------
    snapshot
        The version.
    memory_limit
        Maximum number of bytes to work with, approximately; None for a quarter of the memory of the machine.

    Raises
    ------
    DamagedIndexError
        Indices are wrong. The error has all mistakes that were found, of each segment at least one.
    """
    if memory_limit is None:
        memory_limit = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4
    work = _Validation(snapshot, max(memory_limit // _ROW_BYTES, 1))
    problems: list[IndexProblem] = []
    checked: dict[str, None] = {}
    unchecked: dict[tuple[str, str], None] = {}
    for name, segments in work.indices.items():
        for segment, what in contradictions(segments):
            problems.append(_problem(segment, work.kind_of(segment), what))
        for segment in segments:
            try:
                problems += work.check(segment)
                checked[name] = None
            except UnsupportedError as error:
                unchecked[name, str(error)] = None
    if problems:
        where = f"{snapshot.uri}, version {snapshot.version}"
        raise DamagedIndexError(f"{where}: " + "\n".join(map(str, problems)), problems)
    return Validated(tuple(checked), tuple(unchecked))


def _problem(segment: Segment, kind: str | None, what: str, rows: int | None = None) -> IndexProblem:
    shown = UNKNOWN if kind is None else KINDS[kind].shown
    return IndexProblem(segment.name, shown, segment.metadata.uuid, what, rows, remedy(segment, kind))


class _Validation:
    """Validation of the indices of a version.

    Parameters
    ----------
    snapshot
        The version.
    most_rows
        Number of rows to compare at a time.
    """

    def __init__(self, snapshot: Snapshot, most_rows: int) -> None:
        self._snapshot = snapshot
        self._reader = snapshot.reader
        self._most_rows = most_rows

    @cached_property
    def indices(self) -> dict[str, list[Segment]]:
        """Segments of all indices of users by name, those of unknown kinds too."""
        manifest = self._reader.manifest
        section = with_current_coverage(manifest.index_section, self._reader.locator)
        found: dict[str, list[Segment]] = {}
        for message in parse_indices(section):
            metadata = IndexMetadata.from_proto(message, manifest.path)
            segment = Segment(self._reader, metadata, known_kind(metadata))
            if not segment.is_system:
                found.setdefault(segment.name, []).append(segment)
        return found

    @cached_property
    def _moved(self) -> Relocation | None:
        """Where rows are that moved while indices were left alone."""
        reuse = find_reuse_index(self._reader.manifest)
        return None if reuse is None else relocation(reuse, self._reader.locator)

    def kind_of(self, segment: Segment) -> str | None:
        """Return the kind of an index; None if this release does not know it."""
        if segment.kind is not None or segment.metadata.details is not None:
            return segment.kind
        return unnoted_kind(segment.metadata.fields, self._reader.manifest.schema, segment.folder)

    def check(self, segment: Segment) -> Iterator[IndexProblem]:
        """Return the mistakes of a segment.

        Raises
        ------
        UnsupportedError
            It cannot be checked.
        """
        kind = self.kind_of(segment)
        self._check_support(segment, kind)
        assert kind is not None
        if len(segment.metadata.fields) != 1 or len(segment.column_names) != 1:
            text = ", ".join(map(str, segment.metadata.fields)) or "none"
            return iter([_problem(segment, kind, f"is of the fields {text}, not of one that exists")])
        wrong = WrongRows()
        try:
            content = content_of(segment, kind, self._rows_in)
            self._compare(segment, content, wrong)
        except UnsupportedError:
            raise
        except (CorruptFileError, MissingFileError) as error:
            return iter([_problem(segment, kind, str(error))])
        if not wrong.count:
            return iter(())
        least = "" if wrong.is_complete else "at least "
        what = f"is wrong about {least}{wrong.count} rows: " + "; ".join(wrong.described)
        return iter([_problem(segment, kind, what, wrong.count)])

    def _check_support(self, segment: Segment, kind: str | None) -> None:
        if kind is None:
            details = segment.metadata.details
            named = "unknown" if details is None else f"{details.type_url!r}, version {segment.metadata.index_version}"
            raise UnsupportedError(f"this release does not know its kind, {named}, and does not use it")
        if kind not in CHECKED_KINDS:
            raise UnsupportedError(f"indices of the kind {KINDS[kind].shown} cannot be compared with the rows")
        if not has_reliable_coverage(self._reader.manifest) or coverage(segment.metadata) is None:
            raise UnsupportedError("it does not reliably state which fragments it covers, so no query uses it")

    def _rows_in(self, fragment_id: int) -> int:
        fragment = self._reader.fragment(fragment_id)
        if fragment is not None:
            return fragment.physical_rows
        return 0 if self._moved is None else self._moved.physical_rows(fragment_id) or 0

    def _compare(self, segment: Segment, content: SegmentContent, wrong: WrongRows) -> None:
        values = _Values(self._snapshot, segment, content)
        fragments = [(each, self._rows_in(each)) for each in sorted(segment.fragment_ids)]
        if content.is_doubtful:
            for _ in values.batches([each for each, _ in fragments]):
                pass
        zoned = content.zoned
        exists = None if zoned is None else zoned.zones.existing(self._rows_in, zoned.table)
        has_ids = self._reader.manifest.uses_stable_row_ids and not content.has_addresses
        for window in windows(fragments, self._located_ids if has_ids else self._located, self._most_rows):
            if zoned is not None and exists is not None:
                compare_zones(zoned, exists, window, values, wrong)
            if content.keyed is not None:
                compare_keys(content.keyed, window, values, wrong)

    def _located_ids(self, rows: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        return self._reader.addresses_of_ids(rows)

    def _located(self, rows: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        if self._moved is None:
            return rows, np.ones(len(rows), bool)
        addresses, gone = self._moved.locate(rows)
        return addresses, ~gone


class _Values:
    """Values of the column of a segment."""

    def __init__(self, snapshot: Snapshot, segment: Segment, content: SegmentContent) -> None:
        self._reader = snapshot.reader
        self._schema = snapshot.scanned_schema
        self._names = segment.column_names
        self._converted = content.converted

    def _projection(self, *, with_addresses: bool) -> Projection:
        return project(self._schema, list(self._names), with_row_address=with_addresses)

    def batches(self, fragment_ids: Sequence[int]) -> Iterator[tuple[pa.Array, NDArray[np.uint64]]]:
        """Yield the values of all live rows of fragments with their addresses."""
        fragments = self._reader.manifest.fragment_list
        positions = sorted(at for each in fragment_ids if (at := fragments.position(each)) is not None)
        projection = self._projection(with_addresses=True)
        request = ScanRequest(self._schema, projection, fragments=tuple(positions), batch_size=_BATCH_ROWS)
        for batch in scan_batches(self._reader, request):
            values, addresses = batch.columns
            yield self._stored(values), addresses.to_numpy(zero_copy_only=False)

    def take(self, addresses: NDArray[np.uint64]) -> pa.Array:
        """Return the values of rows by their addresses."""
        projection = self._projection(with_addresses=False)
        return self._stored(take_addresses(self._reader, addresses, projection, self._schema).column(0))

    def _stored(self, values: pa.Array) -> pa.Array:
        return self._converted(values.storage if isinstance(values, pa.ExtensionArray) else values)
