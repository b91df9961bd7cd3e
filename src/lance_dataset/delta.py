"""Change data: which rows came, changed and went between two versions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.arguments import checked_integer
from lance_dataset.errors import InvalidInputError
from lance_dataset.operations import Transaction
from lance_dataset.query.fragment_reader import SYSTEM_COLUMNS, FragmentReader
from lance_dataset.query.projection import Projection, project, with_system_columns
from lance_dataset.query.prune import RowRanges
from lance_dataset.query.request import ScanRequest
from lance_dataset.query.table_reader import TableReader
from lance_dataset.scanner import LanceScanner
from lance_dataset.table.fragment import Fragment, Spilled
from lance_dataset.table.lineage.segments import Runs
from lance_dataset.table.manifest import Manifest

if TYPE_CHECKING:
    from lance_dataset.dataset import LanceDataset

__all__ = ["DatasetDelta", "DeltaCounts", "delta_range"]

_BATCH_ROWS = 8192
_LINEAGE = ("_rowid", "_row_created_at_version", "_row_last_updated_at_version")
_ROW_IDS = pa.schema([SYSTEM_COLUMNS["_rowid"]])

_Versions: TypeAlias = "NDArray[np.uint64]"
#: From the versions that created and last changed rows to which of them are meant.
_Choice: TypeAlias = "Callable[[_Versions, _Versions], NDArray[np.bool_]]"


@dataclass(frozen=True)
class DeltaCounts:
    """How many rows came, changed and went between two versions.

    Attributes
    ----------
    inserted, updated, deleted
        Rows of `DatasetDelta.get_inserted_rows`, `get_updated_rows` and `get_deleted_row_ids`.
    """

    inserted: int
    updated: int
    deleted: int


def delta_range(
    version: int, compared_against: int | None, begin_version: int | None, end_version: int | None
) -> tuple[int, int]:
    """The versions that `LanceDataset.delta` compares, given the one that is open.

    Raises
    ------
    InvalidInputError
        Not exactly one of `compared_against` and the pair of versions is given.
    TypeError, OutOfRangeError
        A version is no number, or negative.
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
    """What changed between two versions. Get it with `LanceDataset.delta`.

    Rows are found by the versions that datasets with stable row ids note for each of them, so only rows that are
    returned are read. They come as the version that was open when the delta was made holds them: a row that was
    inserted and deleted again by then does not come at all, and one that changed several times comes once, as of the
    last time. Where the open version is later than the end of the range, rows that changed after the range are not
    among the updated ones.

    Parameters
    ----------
    dataset
        The version that is open.
    begin, end
        The range; changes of `begin` itself are not part of it, those of `end` are.
    """

    def __init__(self, dataset: LanceDataset, begin: int, end: int) -> None:
        self._dataset = dataset._snapshot()
        self._begin = begin
        self._end = end

    def __repr__(self) -> str:
        return f"DatasetDelta(uri={self._dataset.uri!r}, begin_version={self._begin}, end_version={self._end})"

    def list_transactions(self) -> list[Transaction]:
        """The transactions that made the versions of the range, oldest first; unknown ones are left out.

        Raises
        ------
        VersionNotFoundError
            One of the versions is not there, perhaps because it was cleaned up.
        """
        dataset = self._dataset
        manifests = (self._manifest(version) for version in range(self._begin + 1, self._end + 1))
        found = (dataset._transaction_of(manifest) for manifest in manifests)
        return [transaction for transaction in found if transaction is not None]

    def get_inserted_rows(self) -> pa.RecordBatchReader:
        """The rows that were created in the range, with their last content.

        Returns
        -------
        pyarrow.RecordBatchReader
            All columns, then ``_rowid``, ``_row_created_at_version``, ``_row_last_updated_at_version`` (uint64).

        Raises
        ------
        InvalidInputError
            The dataset has no stable row ids, so that versions of rows are not noted.
        CorruptFileError, MissingFileError
            A file cannot be read; those of columns say so while the stream is read.
        """
        return self._rows(self._is_inserted)

    def get_updated_rows(self) -> pa.RecordBatchReader:
        """The rows that existed before the range and last changed in it.

        Adding a column or casting one changes all rows; renaming or dropping one changes none.

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
        """The ids of the rows that the first version of the range has and the last one has not, ascending.

        Returns
        -------
        pyarrow.RecordBatchReader
            One column, ``_rowid`` (uint64).

        Raises
        ------
        InvalidInputError
            The range ends before it begins, or a version has no stable row ids.
        VersionNotFoundError
            One of the two versions is not there, perhaps because it was cleaned up.
        CorruptFileError, MissingFileError
            Row ids or deletion files cannot be read.
        """
        return _id_reader(_pieces(self._deleted()))

    def counts(self) -> DeltaCounts:
        """How many rows the three readers have; no column is read for it.

        Raises
        ------
        InvalidInputError, VersionNotFoundError, CorruptFileError, MissingFileError
            As for `get_deleted_row_ids`.
        """
        deleted, nothing = self._deleted(), project(self._dataset._scanned_schema, [])
        inserted, updated = (self._scan(each, nothing).count_rows() for each in (self._is_inserted, self._is_updated))
        return DeltaCounts(inserted, updated, len(deleted))

    # -- versions ------------------------------------------------------------------------------------------------

    def _manifest(self, version: int) -> Manifest:
        dataset = self._dataset
        return dataset._manifest if version == dataset.version else dataset._load(version)

    def _reader(self, version: int) -> TableReader:
        """An open version; both lists of row ids have to be stable ones."""
        dataset = self._dataset
        handle = dataset if version == dataset.version else dataset._at(dataset._load(version))
        _check_stable(handle)
        return handle._reader

    def _deleted(self) -> Runs:
        """Ids of deleted rows, ascending."""
        if self._begin > self._end:
            raise InvalidInputError(f"begin version {self._begin} is newer than end version {self._end}")
        _check_stable(self._dataset)
        if self._begin == 0:  # before there was a row
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
        """Rows chosen by the versions that created and last changed them."""
        columns = project(self._dataset._scanned_schema, None)
        return self._scan(chosen, with_system_columns(columns, _LINEAGE)).to_reader()

    def _scan(self, chosen: _Choice, projection: Projection) -> LanceScanner:
        dataset = self._dataset
        _check_stable(dataset)
        reader = dataset._reader
        found = [(each.fragment.id, _chosen_rows(each, chosen)) for each in reader.fragments]
        positions = tuple(position for position, (_, rows) in enumerate(found) if len(rows.starts))
        schema = dataset._scanned_schema
        return LanceScanner(reader, ScanRequest(schema, projection, rows=dict(found), fragments=positions))


def _check_stable(dataset: LanceDataset) -> None:
    if not dataset.has_stable_row_ids:
        raise InvalidInputError(
            f"{dataset.uri}: changed rows are known only for datasets with stable row ids, and version "
            f"{dataset.version} has none; write the dataset with enable_stable_row_ids=True"
        )


def _chosen_rows(fragment: FragmentReader, chosen: _Choice) -> RowRanges:
    """The physical rows of a fragment whose versions are chosen, found by runs of rows with equal versions."""
    created, updated = fragment.created_versions, fragment.updated_versions
    bounds = np.union1d(created.bounds, updated.bounds)
    return RowRanges.of(bounds, chosen(created.take(bounds[:-1]), updated.take(bounds[:-1])), 0)


# -- deleted rows ------------------------------------------------------------------------------------------------


def _changed_fragments(begin: TableReader, end: TableReader) -> Iterator[FragmentReader]:
    """The fragments of one version that another has not got, or with other deleted rows."""
    later = end.manifest.fragment_list
    for reader in begin.fragments:
        other = later.find(reader.fragment.id)
        if other is None or _identity(other) != _identity(reader.fragment):
            yield reader


def _identity(fragment: Fragment) -> tuple[object, ...]:
    """What says which rows a fragment has; row ids that lie in a file are those of the file."""
    ids = fragment.files if isinstance(fragment.row_ids, Spilled) else fragment.row_ids
    return fragment.physical_rows, ids, fragment.deletion_file


def _missing_ids(fragment: FragmentReader, end: TableReader) -> Runs:
    """Ids of the live rows of a fragment that no row of another version has."""
    assert fragment.row_ids is not None  # a table with stable row ids without them does not open
    ids = fragment.row_ids.without(fragment.deletions).to_numpy()
    _, found = end.addresses_of_ids(ids)
    return Runs.of(ids[~found])


def _pieces(runs: Runs) -> Iterator[NDArray[np.uint64]]:
    for start in range(0, len(runs), _BATCH_ROWS):
        yield runs.slice(start, min(start + _BATCH_ROWS, len(runs))).to_numpy()


def _id_reader(ids: Iterator[NDArray[np.uint64]]) -> pa.RecordBatchReader:
    batches = (pa.record_batch([pa.array(part, pa.uint64())], schema=_ROW_IDS) for part in ids)
    return pa.RecordBatchReader.from_batches(_ROW_IDS, batches)
