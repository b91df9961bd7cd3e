"""Joins by search: each row of a DataFrame is joined with the rows of a dataset that are nearest to it or match it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import types as T

from lance_dataset.errors import FieldNotFoundError, SchemaError, nearest_name_hint
from lance_dataset.spark.batches import conform_batch
from lance_dataset.spark.jobs.workers import settle
from lance_dataset.spark.option_parsing import storage_options_text
from lance_dataset.spark.search.finders import Finder, nearest_finder, text_finder
from lance_dataset.spark.snapshot import Snapshot, pin
from lance_dataset.spark.types import arrow_schema

__all__ = ["nearest_join", "search_join"]


def nearest_join(
    df: Any,
    uri: str,
    column: str,
    query: str,
    k: int = 10,
    columns: Sequence[str] | None = None,
    *,
    filter: str | None = None,
    version: int | str | None = None,
    storage_options: Mapping[str, str] | None = None,
    **parameters: Any,
) -> Any:
    """Join each row with the `k` rows of a dataset whose vectors are nearest to its own.

    The tasks search the dataset, by its index if it has one, with many vectors at once.

    Parameters
    ----------
    df
        Spark DataFrame with a column of vectors (arrays of numbers).
    uri
        Path or URI of the dataset.
    column
        Column of vectors of the dataset.
    query
        Column of vectors of `df`. A row whose vector is null is joined with nothing.
    k
        Number of rows to find for each row.
    columns
        Columns of the dataset to add; None for all. ``_distance`` is added too.
    filter
        Condition in Lance's SQL on the rows of the dataset.
    version
        Version number or tag; None for the newest. It is pinned here.
    storage_options
        Settings of the object store.
    **parameters
        Other parameters of ``LanceDataset.scanner``'s ``nearest``, such as ``nprobes`` or ``metric``.

    Returns
    -------
    pyspark.sql.DataFrame
        Columns of `df`, those of the dataset, and ``_distance``; lazy like any DataFrame.

    Raises
    ------
    FieldNotFoundError, InvalidInputError, SchemaError
        A column does not exist, is not a column of vectors, or would occur twice.
    TypeError
        `query` is not the name of a column.
    """
    _check_query(df.schema, query, (T.ArrayType,), "an array of numbers")
    snapshot, dataset = pin(uri, version, storage_options_text(storage_options))
    target, find = nearest_finder(dataset, column, k, columns, filter, parameters, df.schema, f"the column {query!r}")
    return df.mapInArrow(_joiner(snapshot, query, arrow_schema(target), find), _joined(df.schema, target))


def search_join(
    df: Any,
    uri: str,
    query: str,
    k: int = 10,
    columns: Sequence[str] | None = None,
    *,
    text_columns: Sequence[str] | None = None,
    filter: str | None = None,
    version: int | str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Any:
    """Join each row with the `k` rows of a dataset that match its text best; the tasks search the full-text index.

    Parameters
    ----------
    df
        Spark DataFrame with a column of texts.
    uri
        Path or URI of the dataset.
    query
        Column of texts of `df`: words to search for. A row whose text is null is joined with nothing.
    k
        Maximum number of rows to find for each row.
    columns
        Columns of the dataset to add; None for all. ``_score`` is added too.
    text_columns
        Columns of the dataset to search; None for all that have a full-text index.
    filter, version, storage_options
        See `nearest_join`.

    Returns
    -------
    pyspark.sql.DataFrame
        Columns of `df`, those of the dataset, and ``_score``; lazy like any DataFrame.

    Raises
    ------
    FieldNotFoundError, InvalidInputError, SchemaError
        A column does not exist, has no index, is not of texts, or would occur twice.
    TypeError
        `query` is not the name of a column.
    """
    _check_query(df.schema, query, (T.StringType,), "a text")
    snapshot, dataset = pin(uri, version, storage_options_text(storage_options))
    target, find = text_finder(dataset, k, columns, text_columns, filter, df.schema)
    return df.mapInArrow(_joiner(snapshot, query, arrow_schema(target), find), _joined(df.schema, target))


def _check_query(schema: Any, query: str, kinds: tuple[type, ...], what: str) -> None:
    if not isinstance(query, str):
        raise TypeError(f"query must be the name of a column of df, not {type(query).__name__}")
    if query not in schema.fieldNames():
        raise FieldNotFoundError(f"There is no column {query!r}{nearest_name_hint(query, schema.fieldNames())}")
    found = schema[query].dataType
    if not isinstance(found, kinds):
        raise SchemaError(f"The column {query!r} must be {what}, but it is {found.simpleString()}")


def _joined(given: Any, target: Any) -> Any:
    return T.StructType([*given.fields, *target.fields])


def _joiner(
    snapshot: Snapshot, query: str, target: pa.Schema, find: Finder
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def join(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle()
        dataset = snapshot.open()
        for batch in batches:
            for rows, found in find(dataset, batch.column(query)):
                added = conform_batch(found, target, "read into Spark")
                given = batch.take(rows)
                schema = pa.schema([*given.schema, *target])
                yield pa.RecordBatch.from_arrays([*given.columns, *added.columns], schema=schema)

    return join
