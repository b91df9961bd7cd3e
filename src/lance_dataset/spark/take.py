"""Fetching rows by number for a DataFrame of row numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import types as T

from lance_dataset.errors import FieldNotFoundError, InvalidInputError, SchemaError, nearest_name_hint
from lance_dataset.spark.batches import conform_batch
from lance_dataset.spark.jobs.workers import settle
from lance_dataset.spark.option_parsing import storage_options_text
from lance_dataset.spark.options import ReadOptions
from lance_dataset.spark.reader import select_fields
from lance_dataset.spark.snapshot import Snapshot, pin
from lance_dataset.spark.types import arrow_schema, spark_schema

__all__ = ["take_rows"]


def take_rows(
    rows: Any,
    uri: str,
    column: str,
    columns: Sequence[str] | None = None,
    *,
    version: int | str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Any:
    """Add columns of a Lance dataset to a DataFrame of row numbers; the tasks read them by random access.

    Parameters
    ----------
    rows
        A Spark DataFrame with a column of integers.
    uri
        Path or URI of the dataset.
    column
        Name of the column of row numbers: 0-based positions among the rows of the dataset, as in `LanceDataset.take`.
        They may repeat and come in any order, but not be null.
    columns
        Columns to fetch; None for all.
    version
        Version number or tag; None for the newest. It is pinned here, so that all tasks read the same version.
    storage_options
        Settings of the object store.

    Returns
    -------
    pyspark.sql.DataFrame
        Columns of `rows`, then the fetched ones, in the order of the rows; lazy like any DataFrame.

    Raises
    ------
    FieldNotFoundError, SchemaError
        A column does not exist, is not an integer column, or would occur twice. Row numbers that are null or out of
        range fail in the task that reads them.
    """
    _check_number_column(rows.schema, column)
    snapshot, dataset = pin(uri, version, storage_options_text(storage_options))
    options = ReadOptions(uri, columns=None if columns is None else tuple(columns))
    fetched = spark_schema(select_fields(dataset.schema, options))
    for name in fetched.fieldNames():
        if name in rows.columns:
            raise SchemaError(
                f"The column {name!r} is both in the row numbers and in the dataset; rename one or choose columns"
            )
    schema = T.StructType([*rows.schema.fields, *fetched.fields])
    return rows.mapInArrow(_fetcher(snapshot, column, arrow_schema(fetched)), schema)


def _check_number_column(schema: Any, column: str) -> None:
    if column not in schema.fieldNames():
        raise FieldNotFoundError(f"There is no column {column!r}{nearest_name_hint(column, schema.fieldNames())}")
    found = schema[column].dataType
    if not isinstance(found, (T.ByteType, T.ShortType, T.IntegerType, T.LongType)):
        raise SchemaError(f"Row numbers must be integers, but column {column!r} is {found.simpleString()}")


def _fetcher(
    snapshot: Snapshot, column: str, target: pa.Schema
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def fetch(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle()
        dataset = snapshot.open()
        for batch in batches:
            numbers = batch.column(column)
            if numbers.null_count:
                raise InvalidInputError(f"Column {column!r} holds null, which is not a row number")
            table = dataset.take(numbers.cast(pa.int64()).to_pylist(), columns=target.names).combine_chunks()
            for fetched in _one_batch(table):
                found = conform_batch(fetched, target, "read into Spark")
                yield pa.RecordBatch.from_arrays(
                    [*batch.columns, *found.columns], schema=pa.schema([*batch.schema, *target])
                )

    return fetch


def _one_batch(table: pa.Table) -> list[pa.RecordBatch]:
    batches = table.to_batches()
    if len(batches) > 1:
        raise SchemaError(
            "A batch of rows is too large for one Arrow batch; lower spark.sql.execution.arrow.maxRecordsPerBatch"
        )
    return batches
