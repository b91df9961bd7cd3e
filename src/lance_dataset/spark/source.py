"""Data source that is registered in Spark under the name ``lance``."""

from __future__ import annotations

from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceReader

from lance_dataset.spark.jobs.workers import planning
from lance_dataset.spark.options import ReadOptions, StreamOptions, WriteOptions, reads_changes
from lance_dataset.spark.reader import LanceReader, PushdownReader, checked_scan, select_fields
from lance_dataset.spark.snapshot import Snapshot, pin
from lance_dataset.spark.streaming.changes import CHANGE_COLUMNS, ChangesReader, change_schema
from lance_dataset.spark.streaming.reader import LanceStreamReader
from lance_dataset.spark.streaming.writer import LanceStreamWriter
from lance_dataset.spark.types import spark_schema
from lance_dataset.spark.writer import LanceWriter, plan_write

__all__ = ["LanceDataSource"]


class LanceDataSource(DataSource):
    """Lance datasets for ``spark.read.format("lance")`` and ``df.write.format("lance")``."""

    #: Pinned when Spark requests the schema, so that all uses of one DataFrame see one version.
    _snapshot: Snapshot | None = None

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "lance"

    @planning
    def schema(self) -> Any:
        """Return the Spark schema of the dataset, or of the requested columns."""
        options = ReadOptions.parse(self.options, streaming=True)
        dataset = self._pinned(options)
        changes = reads_changes(self.options)
        fields = select_fields(change_schema(dataset.schema) if changes else dataset.schema, options)
        added = CHANGE_COLUMNS.names if changes else []
        checked_scan(dataset, options, [name for name in fields.names if name not in added])
        return spark_schema(fields)

    @planning
    def reader(self, schema: Any) -> DataSourceReader:
        """Return a reader of the version that was pinned when the DataFrame was created, or of changes up to it."""
        if reads_changes(self.options):
            options = ReadOptions.parse(self.options, streaming=True)
            versions = StreamOptions.parse(self.options, streaming=False)
            return ChangesReader(options, versions, schema, self._snapshot.version if self._snapshot else None)
        options = ReadOptions.parse(self.options)
        dataset = self._snapshot.open() if self._snapshot else self._pinned(options)
        assert self._snapshot is not None  # it is pinned now
        made_by = PushdownReader if options.pushdown else LanceReader
        return made_by(self._snapshot, dataset, options, schema)

    @planning
    def writer(self, schema: Any, overwrite: bool) -> LanceWriter:
        """Return a writer that commits one new version."""
        return LanceWriter(plan_write(WriteOptions.parse(self.options), schema, overwrite))

    @planning
    def streamReader(self, schema: Any) -> LanceStreamReader:
        """Return a reader of the rows that new versions add."""
        options = ReadOptions.parse(self.options, streaming=True)
        return LanceStreamReader(options, StreamOptions.parse(self.options), schema)

    @planning
    def streamWriter(self, schema: Any, overwrite: bool) -> LanceStreamWriter:
        """Return a writer that commits one version for each batch of a query."""
        return LanceStreamWriter(WriteOptions.parse(self.options), schema, overwrite)

    def _pinned(self, options: ReadOptions) -> Any:
        self._snapshot, dataset = pin(
            options.uri,
            options.version,
            options.storage_options,
            branch=options.branch,
            timestamp=options.timestamp,
        )
        return dataset
