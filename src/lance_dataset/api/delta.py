"""Change data: rows that were inserted, updated and deleted between two versions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.api.scanner.scanner import LanceScanner
from lance_dataset.arguments import checked_integer
from lance_dataset.errors import InvalidInputError
from lance_dataset.io.secrets import redacted
from lance_dataset.late_dataclass import dataclass
from lance_dataset.limits import ResultLimit
from lance_dataset.read.fragment_reader import SYSTEM_COLUMNS, FragmentReader
from lance_dataset.read.projection import Projection, project, with_system_columns
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.read.table_reader import TableReader
from lance_dataset.records.operations import Transaction
from lance_dataset.scan.request import ScanRequest
from lance_dataset.scan.row_ranges import RowRanges
from lance_dataset.table.fragment import Fragment, Spilled
from lance_dataset.table.lineage.segments import Runs
from lance_dataset.table.manifest import Manifest

__all__ = ["DatasetDelta", "DeltaCounts", "delta_range"]

_BATCH_ROWS = 8192
#: Row ids that are looked up together.
_SEARCHED_ROWS = 1 << 20
_ID_BYTES = 8
_LINEAGE = ("_rowid", "_row_created_at_version", "_row_last_updated_at_version")
_ROW_IDS = pa.schema([SYSTEM_COLUMNS["_rowid"]])

_Versions: TypeAlias = "NDArray[np.uint64]"
#: Function that selects rows, given the versions that created and last updated them.
_Choice: TypeAlias = "Callable[[_Versions, _Versions], NDArray[np.bool_]]"


@dataclass(frozen=True)
class DeltaCounts:
    """Numbers of rows that were inserted, updated and deleted between two versions.

    Attributes
    ----------
    inserted, updated, deleted
        Number of rows of `DatasetDelta.get_inserted_rows`, `get_updated_rows` and `get_deleted_row_ids`.
    """

    inserted: int
    updated: int
    deleted: int


def delta_range(
    version: int, compared_against: int | None, begin_version: int | None, end_version: int | None
) -> tuple[int, int]:
    """Return the versions that `LanceDataset.delta` compares, given the open one.

    Raises
    ------
    InvalidInputError
        Neither or both of `compared_against` and the pair of versions are given.
    TypeError, OutOfRangeError
        A version is not an integer, or it is negative.
    """
    pair = {"begin_version": begin_version, "end_version": end_version}
    given = [name for name, value in pair.items() if value is not None]
    if compared_against is not None:
        if given:
            raise InvalidInputError(f"give compared_against or begin_version and end_version, not {given[0]} too")
        return checked_integer("compared_against", compared_against), version
    if not given:
        raise InvalidInputError("Must specify either compared_against or both begin_version and end_version")
    if len(given) == 1:
        raise InvalidInputError(f"Must specify both begin_version and end_version, not only {given[0]}")
    return checked_integer("begin_version", begin_version), checked_integer("end_version", end_version)


class DatasetDelta:
    """Changes between two versions. Get it with `LanceDataset.delta`.

    Datasets with stable row ids record for each row the versions that created and last updated it. Changed rows are
    found by these versions, so only the rows that are returned are read. Values are those of the version that was open
    when the delta was made. A row that was inserted and deleted again by then is not returned. A row that changed
    several times is returned once, with its last values. If the open version is newer than the end of the range, rows
    that changed after the range are not among the updated rows.

    Parameters
    ----------
    snapshot
        The open version.
    begin, end
        The range of versions. Changes made by `begin` are not part of it, those made by `end` are.
    """

    def __init__(self, snapshot: Snapshot, begin: int, end: int) -> None:
        self._snapshot = snapshot
        self._begin = begin
        self._end = end

    def __repr__(self) -> str:
        return (
            f"DatasetDelta(uri={redacted(self._snapshot.uri)!r}, begin_version={self._begin}, end_version={self._end})"
        )

    def list_transactions(self) -> list[Transaction]:
        """Return the transactions that made the versions of the range, oldest first, without unknown ones.

        Raises
        ------
        VersionNotFoundError
            A version does not exist. It may have been cleaned up.
        """
        from lance_dataset.records.history import transaction_of

        place = self._snapshot.location
        manifests = (self._manifest(version) for version in range(self._begin + 1, self._end + 1))
        found = (transaction_of(place, manifest) for manifest in manifests)
        return [transaction for transaction in found if transaction is not None]

    def get_inserted_rows(self) -> pa.RecordBatchReader:
        """Return the rows that were created in the range, with their last values.

        Returns
        -------
        pyarrow.RecordBatchReader
            All columns, then ``_rowid``, ``_row_created_at_version``, ``_row_last_updated_at_version`` (uint64).

        Raises
        ------
        InvalidInputError
            The dataset has no stable row ids, so it does not record row versions.
        CorruptFileError, MissingFileError
            A file cannot be read. For files of columns, the reader raises the error.
        """
        return self._rows(self._is_inserted)

    def get_updated_rows(self) -> pa.RecordBatchReader:
        """Return the rows that existed before the range and were last updated in it.

        Adding or casting a column updates all rows. Renaming or dropping a column does not update rows.

        Returns
        -------
        pyarrow.RecordBatchReader
            As for `get_inserted_rows`.

        Raises
        ------
        InvalidInputError, CorruptFileError, MissingFileError
            As for `get_inserted_rows`.
        """
        return self._rows(self._is_updated)

    def get_deleted_row_ids(self) -> pa.RecordBatchReader:
        """Return the ids of rows that exist in the first version of the range and not in the last, ascending.

        Returns
        -------
        pyarrow.RecordBatchReader
            One column, ``_rowid`` (uint64).

        Raises
        ------
        InvalidInputError
            The range ends before it begins, or a version has no stable row ids.
        VersionNotFoundError
            One of the two versions does not exist. It may have been cleaned up.
        CorruptFileError, MissingFileError
            Row ids or deletion files cannot be read.
        """
        return _id_reader(_pieces(self._deleted(), self._snapshot.location.result_limit))

    def counts(self) -> DeltaCounts:
        """Count the rows of the three readers without reading columns.

        Raises
        ------
        InvalidInputError, VersionNotFoundError, CorruptFileError, MissingFileError
            As for `get_deleted_row_ids`.
        """
        deleted, nothing = self._deleted(), project(self._snapshot.scanned_schema, [])
        inserted, updated = (self._scan(each, nothing).count_rows() for each in (self._is_inserted, self._is_updated))
        return DeltaCounts(inserted, updated, len(deleted))

    # -- versions ------------------------------------------------------------------------------------------------

    def _manifest(self, version: int) -> Manifest:
        snapshot = self._snapshot
        return snapshot.manifest if version == snapshot.version else snapshot.location.read_manifest(version)

    def _reader(self, version: int) -> TableReader:
        """Open a version and check that its row ids are stable."""
        snapshot = self._snapshot.at(version)
        _check_stable(snapshot)
        return snapshot.reader

    def _deleted(self) -> Runs:
        """Return the ids of deleted rows, ascending."""
        if self._begin > self._end:
            raise InvalidInputError(f"begin version {self._begin} is newer than end version {self._end}")
        _check_stable(self._snapshot)
        if self._begin == 0:  # before the first version, so nothing existed
            return Runs.of(np.empty(0, np.uint64))
        begin, end = self._reader(self._begin), self._reader(self._end)
        return Runs.joined(_missing_ids(fragment, end) for fragment in _changed_fragments(begin, end)).ascending()

    # -- rows ----------------------------------------------------------------------------------------------------

    def _is_inserted(self, created: _Versions, updated: _Versions) -> NDArray[np.bool_]:
        return self._is_inside(created)

    def _is_updated(self, created: _Versions, updated: _Versions) -> NDArray[np.bool_]:
        return (created <= self._begin) & self._is_inside(updated)

    def _is_inside(self, versions: _Versions) -> NDArray[np.bool_]:
        return (versions > self._begin) & (versions <= self._end)

    def _rows(self, chosen: _Choice) -> pa.RecordBatchReader:
        """Read the rows that `chosen` selects by their versions."""
        columns = project(self._snapshot.scanned_schema, None)
        return self._scan(chosen, with_system_columns(columns, _LINEAGE)).to_reader()

    def _scan(self, chosen: _Choice, projection: Projection) -> LanceScanner:
        _check_stable(self._snapshot)
        reader, schema = self._snapshot.reader, self._snapshot.scanned_schema
        found = [(each.fragment.id, _chosen_rows(each, chosen)) for each in reader.fragments]
        positions = tuple(position for position, (_, rows) in enumerate(found) if len(rows.starts))
        return LanceScanner(reader, ScanRequest(schema, projection, rows=dict(found), fragments=positions))


def _check_stable(snapshot: Snapshot) -> None:
    if not snapshot.manifest.uses_stable_row_ids:
        raise InvalidInputError(
            f"{snapshot.uri}: changed rows are known only for datasets with stable row ids, and version "
            f"{snapshot.version} does not have them; write the dataset with enable_stable_row_ids=True"
        )


def _chosen_rows(fragment: FragmentReader, chosen: _Choice) -> RowRanges:
    """Return the physical rows that `chosen` selects, found by runs of rows with equal versions."""
    created, updated = fragment.created_versions, fragment.updated_versions
    bounds = np.union1d(created.bounds, updated.bounds)
    return RowRanges.of(bounds, chosen(created.take(bounds[:-1]), updated.take(bounds[:-1])), 0)


# -- deleted rows ------------------------------------------------------------------------------------------------


def _changed_fragments(begin: TableReader, end: TableReader) -> Iterator[FragmentReader]:
    """Yield the fragments of `begin` that `end` does not have, or has with other deleted rows."""
    later = end.manifest.fragment_list
    for reader in begin.fragments:
        other = later.find(reader.fragment.id)
        if other is None or _identity(other) != _identity(reader.fragment):
            yield reader


def _identity(fragment: Fragment) -> tuple[object, ...]:
    """Return values that identify the rows of a fragment. The data files stand for row ids stored in a file."""
    ids = fragment.files if isinstance(fragment.row_ids, Spilled) else fragment.row_ids
    return fragment.physical_rows, ids, fragment.deletion_file


def _missing_ids(fragment: FragmentReader, end: TableReader) -> Runs:
    """Return the ids of live rows of a fragment that do not exist in another version."""
    assert fragment.row_ids is not None  # opening fails if a table with stable row ids lacks them
    ids, missing = fragment.row_ids.without(fragment.deletions), []
    for start in range(0, len(ids), _SEARCHED_ROWS):
        some = ids.slice(start, min(start + _SEARCHED_ROWS, len(ids))).to_numpy()
        _, found = end.addresses_of_ids(some)
        missing.append(Runs.of(some[~found]))
    return Runs.joined(missing)


def _pieces(runs: Runs, limit: ResultLimit) -> Iterator[NDArray[np.uint64]]:
    size = _BATCH_ROWS
    if limit.max_bytes is not None:
        limit.check(_ID_BYTES, "a row id")
        size = min(size, limit.max_bytes // _ID_BYTES)
    for start in range(0, len(runs), size):
        yield runs.slice(start, min(start + size, len(runs))).to_numpy()


def _id_reader(ids: Iterator[NDArray[np.uint64]]) -> pa.RecordBatchReader:
    batches = (pa.record_batch([pa.array(part, pa.uint64())], schema=_ROW_IDS) for part in ids)
    return pa.RecordBatchReader.from_batches(_ROW_IDS, batches)
