"""Data source that is registered in Spark under the name ``lance``."""

from __future__ import annotations

from typing import Any

from pyspark.sql.datasource import DataSource

from lance_dataset.spark.options import ReadOptions, WriteOptions
from lance_dataset.spark.reader import LanceReader, PushdownReader, select_fields
from lance_dataset.spark.snapshot import Snapshot, pin
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

    def schema(self) -> Any:
        """Return the Spark schema of the dataset, or of the requested columns."""
        options = ReadOptions.parse(self.options)
        self._snapshot, dataset = pin(options.uri, options.version, options.storage_options)
        return spark_schema(select_fields(dataset.schema, options.columns))

    def reader(self, schema: Any) -> LanceReader:
        """Return a reader of the version that was pinned when the DataFrame was created."""
        options = ReadOptions.parse(self.options)
        version = self._snapshot.version if self._snapshot else options.version
        snapshot, dataset = pin(options.uri, version, options.storage_options)
        made_by = PushdownReader if options.pushdown else LanceReader
        return made_by(snapshot, dataset, options, schema)

    def writer(self, schema: Any, overwrite: bool) -> LanceWriter:
        """Return a writer that commits one new version."""
        return LanceWriter(plan_write(WriteOptions.parse(self.options), schema, overwrite))
