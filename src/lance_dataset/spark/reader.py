"""Reading: the driver plans once, and tasks scan slices of fragments of one version."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from lance_dataset.errors import FieldNotFoundError, SchemaError, nearest_name_hint
from lance_dataset.spark.batches import conform_batch
from lance_dataset.spark.options import ReadOptions
from lance_dataset.spark.partitions import RowPartition, RowSlice, partition_count, plan_partitions
from lance_dataset.spark.pushdown import translate
from lance_dataset.spark.shipping import Shipped
from lance_dataset.spark.snapshot import Snapshot
from lance_dataset.spark.types import arrow_schema, spark_schema

__all__ = ["LanceReader", "PushdownReader", "select_fields"]

_ROW_COLUMNS = {"_rowid", "_rowaddr"}


def select_fields(schema: pa.Schema, columns: Iterable[str] | None) -> pa.Schema:
    """Return the requested fields. ``_rowid`` and ``_rowaddr`` are allowed too; they are bigint in Spark.

    Raises
    ------
    FieldNotFoundError
        The dataset has no column of that name.
    """
    if columns is None:
        return schema
    fields = []
    for name in columns:
        if name in schema.names:
            fields.append(schema.field(name))
        elif name in _ROW_COLUMNS:
            fields.append(pa.field(name, pa.int64()))
        else:
            raise FieldNotFoundError(f"The dataset has no column {name!r}{nearest_name_hint(name, schema.names)}")
    return pa.schema(fields)


class LanceReader(Shipped, DataSourceReader):
    """Reads one version of a dataset.

    Parameters
    ----------
    snapshot
        Version to read.
    dataset
        The same version, opened; used for planning only.
    options
        Options of ``spark.read``.
    schema
        Spark schema to deliver: that of the data source, or one given by the user, which may omit columns.
    """

    def __init__(self, snapshot: Snapshot, dataset: Any, options: ReadOptions, schema: Any) -> None:
        self.snapshot = snapshot
        self.options = options
        self.target = arrow_schema(schema)
        self.filters = [options.filter] if options.filter else []
        self._dataset_schema: pa.Schema = dataset.schema
        self._sizes = [(fragment.fragment_id, fragment.physical_rows) for fragment in dataset.get_fragments()]
        _check_types(schema, select_fields(dataset.schema, schema.fieldNames()))

    def partitions(self) -> list[InputPartition]:
        """Return equal shares of the rows, in row order."""
        rows = sum(size for _, size in self._sizes)
        return list(plan_partitions(self._sizes, partition_count(rows, self.options)))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Scan the slices of one partition."""
        assert isinstance(partition, RowPartition)
        dataset = self.snapshot.open()
        for row_slice in partition.slices:
            for batch in self._scan(dataset, row_slice):
                if batch.num_rows:
                    yield conform_batch(batch, self.target, "read into Spark")

    def _scan(self, dataset: Any, row_slice: RowSlice) -> Iterator[pa.RecordBatch]:
        fragment = dataset.get_fragment(row_slice.fragment_id)
        extent = {} if row_slice.whole else {"row_range": (row_slice.start, row_slice.stop)}
        scanner = fragment.scanner(
            columns=self.target.names,
            filter=" AND ".join(f"({text})" for text in self.filters) or None,
            batch_size=self.options.batch_size,
            **extent,
        )
        return iter(scanner.to_batches())

    def _shipped_state(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_sizes", "_dataset_schema")}


class PushdownReader(LanceReader):
    """Reader that accepts filters of the query; a separate class because Spark checks whether the method exists.

    It is used only on request, because Spark keeps the outcome of the last pushdown with the loaded relation. Spark
    then uses it for every other scan of that relation, even with other filters or none.
    """

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:
        """Accept the filters that Lance evaluates exactly like Spark; return the others."""
        rest = []
        for condition in filters:
            text = translate(condition, self._dataset_schema)
            if text is None:
                rest.append(condition)
            else:
                self.filters.append(text)
        return rest


def _check_types(wanted: Any, fields: pa.Schema) -> None:
    """Check that a schema given by the user has the Spark types of the columns."""
    for asked, found in zip(wanted.fields, spark_schema(fields).fields, strict=True):
        if asked.dataType.simpleString() != found.dataType.simpleString():
            raise SchemaError(
                f"Column {asked.name!r} is read as {found.dataType.simpleString()}, not as "
                f"{asked.dataType.simpleString()}; leave out .schema(...) and cast the column afterwards"
            )
        if found.nullable and not asked.nullable:
            raise SchemaError(f"Column {asked.name!r} may hold nulls; declare it nullable")
