"""Rows that versions of a dataset insert, update and delete, with what happened to them.

Datasets with stable row ids record for each row the versions that created and last updated it. So the rows that a
version inserted or updated are found in it. Their earlier values, and deleted rows, are in the version before.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from lance_dataset.errors import InvalidInputError, SchemaError, UnsupportedError
from lance_dataset.spark.jobs.shipping import Shipped
from lance_dataset.spark.options import ReadOptions, StreamOptions
from lance_dataset.spark.partitions import RowPartition
from lance_dataset.spark.reader import checked_scan, delivered, scan_slice
from lance_dataset.spark.streaming.appends import VersionSize, keeps_rows, operation_of, row_shares
from lance_dataset.spark.streaming.history import History
from lance_dataset.spark.types import arrow_schema
from lance_dataset.spark.write_schema import fill_missing

__all__ = ["CHANGE_COLUMNS", "ChangePartition", "ChangedRows", "ChangesReader", "change_schema", "changed_rows"]

ChangeType = Literal["insert", "update_preimage", "update_postimage", "delete"]

#: What happened to a row, and the version that did it. The names are those of Delta Lake's change data.
CHANGE_COLUMNS = pa.schema(
    [("_change_type", pa.string()), ("_commit_version", pa.int64()), ("_commit_timestamp", pa.timestamp("us", "UTC"))]
)
#: Operations whose changed rows are known by their row versions.
_BY_ROW_VERSIONS = {"Append", "Update", "Delete", "DataReplacement"}
#: Operations after which all rows are others.
_REPLACING = {"Overwrite", "Restore", "Clone"}
_CREATED, _UPDATED = "_row_created_at_version", "_row_last_updated_at_version"
_IDS_PER_TASK = 256 * 1024
_IDS_PER_SCAN = 8 * 1024


def change_schema(schema: pa.Schema) -> pa.Schema:
    """Return the columns of a dataset, followed by those that say what happened.

    Raises
    ------
    SchemaError
        A column of the dataset has one of their names.
    """
    taken = [name for name in CHANGE_COLUMNS.names if name in schema.names]
    if taken:
        raise SchemaError(f"The dataset has a column {taken[0]!r}, which is the name of a column of changes; rename it")
    return pa.schema([*schema, *CHANGE_COLUMNS])


@dataclass(frozen=True)
class ChangePartition(InputPartition):
    """Rows of one version to which the same happened, or a share of them.

    Attributes
    ----------
    version, timestamp
        Version that changed the rows, and when it was made.
    read_version
        Version that has the rows: the same, or the one before.
    change
        What happened.
    rows
        Shares of fragments to look for the rows in, of the version that changed them; None for deleted rows.
    condition
        Condition on the versions of the rows; None for all rows.
    start, stop
        Which of the ids of deleted rows, in ascending order.
    """

    version: int
    timestamp: dt.datetime
    read_version: int
    change: ChangeType
    rows: RowPartition | None = None
    condition: str | None = None
    start: int = 0
    stop: int = 0


class ChangedRows:
    """Rows that versions change.

    Parameters
    ----------
    history
        Versions of the dataset.
    target
        Columns to deliver.
    """

    def __init__(self, history: History, target: pa.Schema) -> None:
        self.history = history
        self.target = target

    def size(self, version: int) -> VersionSize:
        """Return how much is read for the changes of a version: for bytes, the files that it added count."""
        dataset, operation = self._opened(version)
        if keeps_rows(operation):
            return VersionSize(0, 0)
        starts = _starts(operation, version)
        before = {} if starts else self._fragments(version - 1)
        added = sum(
            file.file_size_bytes or 0
            for fragment in dataset.get_fragments()
            if fragment.fragment_id not in before
            for file in fragment.metadata.files
        )
        if _replaces(operation):
            rows = dataset.count_rows() + (0 if starts else self.history.open(version - 1).count_rows())
            return VersionSize(rows, added)
        counts = dataset.delta(compared_against=version - 1).counts()
        return VersionSize(counts.inserted + 2 * counts.updated + counts.deleted, added)

    def start(self, version: int) -> list[InputPartition]:
        """Return the shares of all rows of a version, as inserted by it."""
        dataset, _ = self._opened(version)
        return self._all("insert", dataset, version, _moment(dataset))

    def partitions(self, version: int) -> list[InputPartition]:
        """Return the shares of the changes of a version."""
        dataset, operation = self._opened(version)
        if keeps_rows(operation):
            return []
        moment = _moment(dataset)
        if _replaces(operation):
            starts = _starts(operation, version)
            before = [] if starts else self._all("delete", self.history.open(version - 1), version, moment)
            return [*before, *self._all("insert", dataset, version, moment)]
        known = self._fragments(version - 1)
        counts = dataset.delta(compared_against=version - 1).counts()
        touched = [each for each in dataset.get_fragments() if known.get(each.fragment_id) != _identity(each)]
        shares = [share.rows for share in row_shares(version, touched, self.history)]
        inserted = ChangePartition(version, moment, version, "insert", condition=f"{_CREATED} = {version}")
        changed = f"{_UPDATED} = {version} AND {_CREATED} < {version}"
        after = replace(inserted, change="update_postimage", condition=changed)
        earlier = replace(after, change="update_preimage", read_version=version - 1)
        deleted = replace(earlier, change="delete", condition=None)
        kinds = ([inserted] if counts.inserted else []) + ([earlier, after] if counts.updated else [])
        return [
            *(replace(kind, rows=rows) for kind in kinds for rows in shares),
            *(
                replace(deleted, start=start, stop=min(start + _IDS_PER_TASK, counts.deleted))
                for start in range(0, counts.deleted, _IDS_PER_TASK)
            ),
        ]

    def _all(self, change: ChangeType, dataset: Any, version: int, moment: dt.datetime) -> list[InputPartition]:
        common = ChangePartition(version, moment, int(dataset.version), change)
        shares = row_shares(int(dataset.version), dataset.get_fragments(), self.history)
        return [replace(common, rows=share.rows) for share in shares]

    def _opened(self, version: int) -> tuple[Any, Any]:
        """Open a version; return it and what made it, after checking that its changes can be known."""
        dataset = self.history.open(version)
        if not dataset.has_stable_row_ids:
            raise InvalidInputError(
                f"Version {version} of {self.history.options.uri} has no stable row ids, so it does not record which "
                "rows changed; write the dataset with the option enable_stable_row_ids, or leave out read_change_feed"
            )
        return dataset, self.checked(version, operation_of(dataset))

    def checked(self, version: int, operation: Any) -> Any:
        """Return the operation that made a version, if the rows that it changes can be known."""
        name = type(operation).__name__
        if operation is None or not (keeps_rows(operation) or name in _BY_ROW_VERSIONS | _REPLACING):
            raise UnsupportedError(
                f"Version {version} of {self.history.options.uri} was made by {name if operation else 'something'} "
                f"of which the changed rows are unknown; start a new query with starting_version {version + 1}"
            )
        return operation

    def _fragments(self, version: int) -> dict[int, tuple[Any, ...]]:
        if version < 1:
            return {}
        return {each.fragment_id: _identity(each) for each in self.history.open(version).get_fragments()}

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read a share, with the columns that say what happened."""
        assert isinstance(partition, ChangePartition)
        dataset = self.history.open(partition.read_version)
        names = self.history.stored(dataset)
        yield from delivered(self._labelled(partition, self._found(partition, dataset, names)), self.target)

    def _found(self, partition: ChangePartition, dataset: Any, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        options, rows = self.history.options, partition.rows
        if rows is None or partition.change == "update_preimage":
            for ids in self._ids(partition):
                yield from scan_ids(dataset, ids, options, names)
            return
        filters = [partition.condition] if partition.condition else []
        for row_slice in rows.slices:
            yield from scan_slice(dataset, row_slice, options, names, filters)

    def _ids(self, partition: ChangePartition) -> Iterator[pa.Array]:
        """Yield the ids of the deleted or updated rows of a share."""
        dataset = self.history.open(partition.version)
        if partition.rows is None:
            ids = dataset.delta(compared_against=partition.read_version).get_deleted_row_ids()
            batches = _between(ids, partition.start, partition.stop)
        else:
            filters, plain = [partition.condition or "true"], replace(self.history.options, filter=None)
            batches = (
                batch
                for row_slice in partition.rows.slices
                for batch in scan_slice(dataset, row_slice, plain, ["_rowid"], filters)
            )
        for batch in batches:
            for start in range(0, batch.num_rows, _IDS_PER_SCAN):
                yield batch.column("_rowid").slice(start, _IDS_PER_SCAN)

    def _labelled(self, partition: ChangePartition, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        values = dict(
            zip(CHANGE_COLUMNS.names, (partition.change, partition.version, partition.timestamp), strict=True)
        )
        wanted = [field for field in CHANGE_COLUMNS if field.name in self.target.names]
        stored = pa.schema([field for field in self.target if field.name not in (*CHANGE_COLUMNS.names, "_fragid")])
        for batch in batches:
            filled = fill_missing(batch, stored)
            for field in wanted:
                value = pa.scalar(values[field.name], field.type)
                filled = filled.append_column(field, pa.repeat(value, batch.num_rows))
            yield filled


def scan_ids(dataset: Any, ids: pa.Array, options: ReadOptions, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Return the batches of rows with stable ids."""
    listed = ", ".join(map(str, ids.to_pylist()))
    condition = f"_rowid IN ({listed})" + (f" AND ({options.filter})" if options.filter else "")
    return iter(checked_scan(dataset, replace(options, filter=condition), names).to_batches())


def _between(batches: Iterable[pa.RecordBatch], start: int, stop: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows ``[start, stop)`` of batches."""
    seen = 0
    for batch in batches:
        first, last = max(start - seen, 0), min(stop - seen, batch.num_rows)
        if first < last:
            yield batch.slice(first, last - first)
        seen += batch.num_rows
        if seen >= stop:
            return


def _replaces(operation: Any) -> bool:
    """Return True if all rows are others after an operation."""
    return type(operation).__name__ in _REPLACING


def _starts(operation: Any, version: int) -> bool:
    """Return True if there is no version before; clones have the number of the version that they show."""
    return version == 1 or type(operation).__name__ == "Clone"


def _identity(fragment: Any) -> tuple[Any, ...]:
    """Return what tells whether an operation changed the rows of a fragment, other than by deleting some."""
    metadata = fragment.metadata
    files = tuple((file.path, tuple(file.fields)) for file in metadata.files)
    return files, metadata.row_id_meta, metadata.created_at_version_meta, metadata.last_updated_at_version_meta


def _moment(dataset: Any) -> dt.datetime:
    """Return when the version of an open dataset was made, in UTC."""
    found = next(entry for entry in dataset.versions() if int(entry["version"]) == int(dataset.version))
    return found["timestamp"].astimezone(dt.timezone.utc)


class ChangesReader(Shipped, DataSourceReader):
    """Reader of the changes of a range of versions, which is not a stream.

    Parameters
    ----------
    options
        Options of ``spark.read``.
    range_
        First and last version.
    schema
        Spark schema to deliver.
    newest
        Newest version when the DataFrame was made; None for now.
    """

    def __init__(self, options: ReadOptions, range_: StreamOptions, schema: Any, newest: int | None = None) -> None:
        self.changes = changed_rows(options, schema)
        history = self.changes.history
        newest = newest or int(history.newest().version)
        self.first = range_.starting_version or 1
        if range_.starting_timestamp:
            self.first = history.first_since(range_.starting_timestamp)
        self.last = range_.ending_version or newest
        if self.last > newest or self.first > self.last + 1:
            raise InvalidInputError(
                f"There are no versions {self.first} to {self.last} of {options.uri}, whose newest is {newest}"
            )

    def partitions(self) -> Sequence[InputPartition]:
        """Return the shares of the changes of all versions."""
        return [part for version in range(self.first, self.last + 1) for part in self.changes.partitions(version)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read a share of the changes of one version."""
        return self.changes.read(partition)


def changed_rows(options: ReadOptions, schema: Any) -> ChangedRows:
    """Return the changes of a dataset, with the columns of a Spark schema."""
    target = arrow_schema(schema)
    stored = tuple(name for name in target.names if name not in CHANGE_COLUMNS.names)
    return ChangedRows(History(options, stored), target)
