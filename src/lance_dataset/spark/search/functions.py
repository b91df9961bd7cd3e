"""Searches as table functions of SQL: ``SELECT ... FROM queries q, LATERAL near(q.vector) n``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.functions import udtf

from lance_dataset.spark.batches import conform_batch
from lance_dataset.spark.jobs.workers import settle
from lance_dataset.spark.option_parsing import storage_options_text
from lance_dataset.spark.search.finders import Finder, nearest_finder, text_finder
from lance_dataset.spark.snapshot import Snapshot, pin
from lance_dataset.spark.types import arrow_schema

__all__ = ["register_nearest", "register_search"]


def register_nearest(
    spark: Any,
    name: str,
    uri: str,
    column: str,
    k: int = 10,
    columns: Sequence[str] | None = None,
    *,
    filter: str | None = None,
    version: int | str | None = None,
    storage_options: Mapping[str, str] | None = None,
    **parameters: Any,
) -> None:
    """Register a table function for SQL that returns the rows whose vectors are nearest to its argument.

    Each call is a search of its own; for many queries at once use `nearest_join`.

    Parameters
    ----------
    spark
        Spark session.
    name
        Name of the function. A temporary function of that name is replaced.
    uri, column, k, columns, filter, version, storage_options
        As in `nearest_join`; the version is pinned here.
    **parameters
        Other parameters of ``LanceDataset.scanner``'s ``nearest``, such as ``nprobes`` or ``metric``.

    Raises
    ------
    FieldNotFoundError, InvalidInputError
        A column does not exist or is not a column of vectors, or a parameter is wrong.
    """
    snapshot, dataset = pin(uri, version, storage_options_text(storage_options))
    _register(
        spark, name, snapshot, pa.list_(pa.float32()), *nearest_finder(dataset, column, k, columns, filter, parameters)
    )


def register_search(
    spark: Any,
    name: str,
    uri: str,
    k: int = 10,
    columns: Sequence[str] | None = None,
    *,
    text_columns: Sequence[str] | None = None,
    filter: str | None = None,
    version: int | str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> None:
    """Register a table function for SQL that returns the rows that best match a text, its argument.

    Parameters
    ----------
    spark
        Spark session.
    name
        Name of the function. A temporary function of that name is replaced.
    uri, k, columns, text_columns, filter, version, storage_options
        As in `search_join`; the version is pinned here.

    Raises
    ------
    FieldNotFoundError, InvalidInputError
        A column does not exist or has no full-text index, or a parameter is wrong.
    """
    snapshot, dataset = pin(uri, version, storage_options_text(storage_options))
    target, find = text_finder(dataset, k, columns, text_columns, filter)
    _register(spark, name, snapshot, pa.string(), target, find)


def _register(spark: Any, name: str, snapshot: Snapshot, asked: pa.DataType, target: Any, find: Finder) -> None:
    schema = arrow_schema(target)

    class Search:
        """Handler of the table function in one task."""

        def __init__(self) -> None:
            settle()
            self.dataset = snapshot.open()

        def eval(self, query: Any) -> Iterator[tuple[Any, ...]]:
            """Search for one query."""
            for _, found in find(self.dataset, pa.array([query], asked)):
                fitted = conform_batch(found, schema, "read into Spark")
                columns = [column.to_pylist(maps_as_pydicts="strict") for column in fitted.columns]
                yield from zip(*columns, strict=True)

    # Spark refuses functions that exchange Arrow data after LATERAL.
    spark.udtf.register(name, udtf(Search, returnType=target, useArrow=False))
