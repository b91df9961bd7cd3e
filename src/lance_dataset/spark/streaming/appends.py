"""Rows that versions of a dataset add, for streams of appended rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from lance_dataset.errors import UnsupportedError
from lance_dataset.spark.partitions import RowPartition, RowSlice, partition_count, plan_partitions
from lance_dataset.spark.reader import delivered, scan_slice
from lance_dataset.spark.streaming.history import History
from lance_dataset.spark.write_schema import fill_missing

__all__ = ["AppendedRows", "VersionPartition", "VersionSize", "keeps_rows", "operation_of", "row_shares", "whole"]

#: Operations that leave all rows as they are.
_KEEPING_ROWS = {"Rewrite", "CreateIndex", "UpdateConfig", "Project", "Merge"}
#: The same, of operations without a public record.
_INTERNAL = {"ReserveFragments", "UpdateMemWalState", "UpdateBases"}


@dataclass(frozen=True)
class VersionPartition(InputPartition):
    """Rows of one version, or a share of them."""

    version: int
    rows: RowPartition


@dataclass(frozen=True)
class VersionSize:
    """Numbers of rows and bytes that a stream reads for one version."""

    rows: int
    bytes: int


class AppendedRows:
    """Rows that versions append.

    Parameters
    ----------
    history
        Versions of the dataset.
    target
        Columns to deliver.
    skip_changes
        True to leave out versions that changed or deleted rows, instead of raising an error.
    """

    def __init__(self, history: History, target: pa.Schema, skip_changes: bool) -> None:
        self.history = history
        self.target = target
        self.skip_changes = skip_changes

    def size(self, version: int) -> VersionSize:
        """Return how much a version appends."""
        return size_of(self._added(version))

    def start(self, version: int) -> list[InputPartition]:
        """Return the shares of all rows of a version."""
        return list(row_shares(version, self.history.open(version).get_fragments(), self.history))

    def partitions(self, version: int) -> list[InputPartition]:
        """Return the shares of the rows that a version appends."""
        return list(row_shares(version, self._added(version), self.history))

    def _added(self, version: int) -> list[Any]:
        """Return the fragments that a version added; raise if it changed rows in another way."""
        dataset = self.history.open(version)
        operation = operation_of(dataset)
        if keeps_rows(operation):
            return []
        name = type(operation).__name__
        if name == "Clone":  # the first version of its dataset
            return list(dataset.get_fragments())
        if name == "Append" or (name == "Overwrite" and version == 1):
            assert operation is not None
            paths = {file.path for fragment in operation.fragments for file in fragment.files}
            return [each for each in dataset.get_fragments() if any(f.path in paths for f in each.metadata.files)]
        if self.skip_changes:
            return []
        raise UnsupportedError(
            f"Version {version} of {self.history.options.uri} changed or deleted rows "
            f"({name if operation else 'unknown'}); a stream has appended rows only. Set the option skip_changes to "
            "true to leave such versions out, or read_change_feed to read changes"
        )

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read a share, as the rows were in its version."""
        assert isinstance(partition, VersionPartition)
        dataset, options = self.history.open(partition.version), self.history.options
        names = self.history.stored(dataset)
        for row_slice in partition.rows.slices:
            yield from delivered(_filled(scan_slice(dataset, row_slice, options, names), self.target), self.target)


def _filled(batches: Iterable[pa.RecordBatch], target: pa.Schema) -> Iterator[pa.RecordBatch]:
    wanted = pa.schema([field for field in target if field.name != "_fragid"])
    return (fill_missing(batch, wanted) for batch in batches)


def operation_of(dataset: Any) -> Any | None:
    """Return the operation that made the version of an open dataset; None if it is not known."""
    transaction = dataset.read_transaction(dataset.version)
    return transaction.operation if transaction is not None else None


def keeps_rows(operation: Any) -> bool:
    """Return True if an operation leaves all rows as they are."""
    name = type(operation).__name__
    return name in _KEEPING_ROWS or (name == "Other" and getattr(operation, "name", "") in _INTERNAL)


def whole(fragment: Any) -> RowSlice:
    """Return the slice of all rows of a fragment."""
    return RowSlice(fragment.fragment_id, 0, fragment.physical_rows, whole=True)


def size_of(fragments: Iterable[Any]) -> VersionSize:
    """Return the physical rows of fragments, and the bytes of their files as far as the manifest has them."""
    rows = size = 0
    for fragment in fragments:
        rows += fragment.physical_rows
        size += sum(file.file_size_bytes or 0 for file in fragment.metadata.files)
    return VersionSize(rows, size)


def row_shares(version: int, fragments: Iterable[Any], history: History) -> list[VersionPartition]:
    """Return the shares of the rows of fragments."""
    sizes = [(piece.fragment_id, piece.stop) for piece in map(whole, fragments) if piece.stop]
    if not sizes:
        return []
    count = partition_count(sum(rows for _, rows in sizes), history.options)
    return [VersionPartition(version, rows) for rows in plan_partitions(sizes, count)]
