"""The data source that Spark knows by the name ``lance``."""

from __future__ import annotations

from typing import Any

from pyspark.sql.datasource import DataSource

from .options import ReadOptions, WriteOptions
from .reader import LanceReader, PushdownReader, select_fields
from .snapshot import Snapshot, pin
from .types import spark_schema
from .writer import LanceWriter, plan_write

__all__ = ["LanceDataSource"]


class LanceDataSource(DataSource):
    """Lance datasets for ``spark.read.format("lance")`` and ``df.write.format("lance")``."""

    #: Fixed when Spark asks for the schema, so that all uses of one DataFrame see one version.
    _snapshot: Snapshot | None = None

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "lance"

    def schema(self) -> Any:
        """The Spark schema of the dataset, or of the columns asked for."""
        options = ReadOptions.parse(self.options)
        self._snapshot, dataset = pin(options.uri, options.version, options.storage_options)
        return spark_schema(select_fields(dataset.schema, options.columns))

    def reader(self, schema: Any) -> LanceReader:
        """A reader of the version that was the newest, or was asked for, when the DataFrame was made."""
        options = ReadOptions.parse(self.options)
        version = self._snapshot.version if self._snapshot else options.version
        snapshot, dataset = pin(options.uri, version, options.storage_options)
        made_by = PushdownReader if options.pushdown else LanceReader
        return made_by(snapshot, dataset, options, schema)

    def writer(self, schema: Any, overwrite: bool) -> LanceWriter:
        """A writer whose commit is one new version."""
        return LanceWriter(plan_write(WriteOptions.parse(self.options), schema, overwrite))
