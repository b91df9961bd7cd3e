"""Streaming reads: the rows that each new version of a dataset adds or changes.

Offsets are version numbers. Each has the id of the transaction that made the version, so that a stream notices when its
dataset was dropped and created again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from lance_dataset.errors import UnsupportedError
from lance_dataset.spark.jobs.shipping import Shipped
from lance_dataset.spark.options import ReadOptions, StreamOptions
from lance_dataset.spark.streaming.appends import AppendedRows, VersionSize
from lance_dataset.spark.streaming.changes import ChangedRows, changed_rows
from lance_dataset.spark.streaming.history import History
from lance_dataset.spark.types import arrow_schema

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadMaxBytes,
        ReadMaxFiles,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )
except ImportError:  # PySpark 4.1 has no limits: a batch has all that is new
    ReadAllAvailable = ReadMaxBytes = ReadMaxFiles = ReadMaxRows = None

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Stand-in for the class that newer releases of PySpark have."""


__all__ = ["LanceStreamReader"]

_IDENTITY = "transaction"


class LanceStreamReader(Shipped, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reader of the rows that versions add, or of all rows that they change.

    A new query starts with all rows of the version that is the newest then, unless it names its first version.

    Parameters
    ----------
    options
        Options of ``spark.read``.
    stream
        Options of ``spark.readStream``.
    schema
        Spark schema to deliver.

    Raises
    ------
    UnsupportedError
        This release of PySpark has no limits of batches, and the options set one.
    """

    def __init__(self, options: ReadOptions, stream: StreamOptions, schema: Any) -> None:
        self.stream = stream
        self.rows: AppendedRows | ChangedRows
        if stream.changes:
            self.rows = changed_rows(options, schema)
        else:
            target = arrow_schema(schema)
            self.rows = AppendedRows(History(options, tuple(target.names)), target, stream.skip_changes)
        self._last: int | None = None
        if ReadMaxRows is None and (stream.max_versions or stream.max_rows or stream.max_bytes):
            raise UnsupportedError("Limits of batches need PySpark 4.2 or newer; leave out the options ..._per_trigger")

    def initialOffset(self) -> dict[str, Any]:
        """Return the version before the first that is read."""
        if self.stream.starting_version:
            return {"version": self.stream.starting_version - 1}
        if self.stream.starting_timestamp:
            return {"version": self.rows.history.first_since(self.stream.starting_timestamp) - 1}
        return {"version": 0}

    def prepareForTriggerAvailableNow(self) -> None:
        """Remember the newest version, where this run of the query ends."""
        self._last = self._newest()

    def _newest(self) -> int:
        return int(self.rows.history.newest().version)

    def getDefaultReadLimit(self) -> Any:
        """Return the limit that the options set for a batch; files stand for versions."""
        stream = self.stream
        if stream.max_versions:
            return ReadMaxFiles(stream.max_versions)
        if stream.max_bytes:
            return ReadMaxBytes(stream.max_bytes)
        return ReadMaxRows(stream.max_rows) if stream.max_rows else ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:
        """Return the last version of the next batch; a version is never cut.

        Raises
        ------
        InvalidInputError
            The dataset was dropped and created again.
        """
        start = start or self.initialOffset()
        self._check(start)
        newest = self._last or self._newest()
        first = int(start["version"])
        if newest <= first:
            return start
        last = newest if self._starts(first) else self._limited(first, newest, limit)
        identity = self.rows.history.identity(last)
        return {"version": last, _IDENTITY: identity} if identity else {"version": last}

    def _check(self, offset: dict[str, Any]) -> None:
        if offset.get(_IDENTITY):  # checkpoints of older releases have none
            self.rows.history.check_identity(int(offset["version"]), str(offset[_IDENTITY]))

    def _limited(self, first: int, newest: int, limit: Any) -> int:
        """Return the last version after `first` that a limit of a batch allows."""
        if limit is None:
            return newest
        if isinstance(limit, ReadMaxFiles):
            return int(min(newest, first + limit.max_files))
        if isinstance(limit, ReadMaxRows):
            return self._within(first, newest, VersionSize(limit.max_rows, 0))
        if isinstance(limit, ReadMaxBytes):
            return self._within(first, newest, VersionSize(0, limit.max_bytes))
        return newest

    def _starts(self, offset: int) -> bool:
        """Return True if the batch after an offset has all rows of a version, whatever made them."""
        return offset == 0 and not self.stream.starting_version and not self.stream.starting_timestamp

    def _within(self, first: int, newest: int, most: VersionSize) -> int:
        """Return the last version up to which the sum of rows, or of bytes, is within a limit; at least one."""
        total = 0
        for version in range(first + 1, newest + 1):
            size = self.rows.size(version)
            total += size.rows if most.rows else size.bytes
            if total > (most.rows or most.bytes):
                return max(version - 1, first + 1)
        return newest

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Return the shares of the rows of versions after `start`, up to `end`."""
        self._check(start)
        self._check(end)
        first, last = int(start["version"]), int(end["version"])
        if self._starts(first) and last > 0:
            return self.rows.start(last)
        return [share for version in range(first + 1, last + 1) for share in self.rows.partitions(version)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read a share of the rows of one version, as they were in it."""
        return self.rows.read(partition)
