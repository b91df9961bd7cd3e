"""Searches that tasks run for many queries: what they return, and how they find it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import types as T

from lance_dataset.errors import FieldNotFoundError, InvalidInputError, SchemaError, nearest_name_hint
from lance_dataset.spark.options import ReadOptions
from lance_dataset.spark.reader import select_fields
from lance_dataset.spark.types import spark_schema

__all__ = ["Finder", "nearest_finder", "text_finder"]

_QUERIES = 256
_NO_COLUMNS = T.StructType([])

#: Function of an open dataset and queries that yields rows, each with the number of its query.
Finder = Callable[[Any, pa.Array], Iterator[tuple[pa.Array, pa.RecordBatch]]]


def nearest_finder(
    dataset: Any,
    column: str,
    k: int,
    columns: Sequence[str] | None,
    filter: str | None,
    parameters: Mapping[str, Any],
    given: Any = _NO_COLUMNS,
    what: str = "the query",
) -> tuple[Any, Finder]:
    """Return the Spark schema of the rows that a search for vectors finds, and the search.

    Parameters
    ----------
    dataset
        Version to search, for checks only.
    column, k, columns, filter, parameters
        As in `nearest_join`.
    given
        Spark schema of columns that are there already.
    what
        What to call the queries in messages.
    """
    _check_count(k)
    width = getattr(dataset.schema.field(column).type, "list_size", 0) if column in dataset.schema.names else 0
    if not width:
        hint = nearest_name_hint(column, dataset.schema.names)
        raise FieldNotFoundError(f"The dataset has no column of vectors {column!r}{hint}")
    target = _target(given, dataset.schema, columns, "_distance")
    search = {"column": column, "k": k, **parameters}
    _scanner(dataset, target, filter, nearest={**search, "q": np.zeros(width, np.float32)})  # raises if it is wrong

    def find(opened: Any, vectors: pa.Array) -> Iterator[tuple[pa.Array, pa.RecordBatch]]:
        valid = np.flatnonzero(vectors.is_valid().to_numpy(zero_copy_only=False))
        for first in range(0, len(valid), _QUERIES):
            rows = valid[first : first + _QUERIES]
            matrix = _matrix(vectors.take(pa.array(rows)), width, what)
            found = _scanner(opened, target, filter, nearest={**search, "q": matrix}).to_table()
            numbers = found.column("query_index").to_numpy() if len(rows) > 1 else np.zeros(found.num_rows, np.int64)
            for batch in found.combine_chunks().to_batches():
                yield pa.array(rows[numbers]), batch

    return target, find


def text_finder(
    dataset: Any,
    k: int,
    columns: Sequence[str] | None,
    text_columns: Sequence[str] | None,
    filter: str | None,
    given: Any = _NO_COLUMNS,
) -> tuple[Any, Finder]:
    """Return the Spark schema of the rows that a search for words finds, and the search; see `nearest_finder`."""
    _check_count(k)
    target = _target(given, dataset.schema, columns, "_score")

    def search(opened: Any, text: str) -> Any:
        words = {"query": text, **({"columns": list(text_columns)} if text_columns else {})}
        return _scanner(opened, target, filter, full_text_query=words, limit=k)

    search(dataset, "a")  # raises if it is wrong

    def find(opened: Any, texts: pa.Array) -> Iterator[tuple[pa.Array, pa.RecordBatch]]:
        for number, text in enumerate(texts.to_pylist()):
            if text:
                for batch in search(opened, text).to_table().combine_chunks().to_batches():
                    yield pa.array([number] * batch.num_rows), batch

    return target, find


def _check_count(k: int) -> None:
    if k < 1:
        raise InvalidInputError(f"k must be positive, not {k}")


def _target(given: Any, stored: pa.Schema, columns: Sequence[str] | None, ranked: str) -> Any:
    """Return the Spark schema of what is added."""
    wanted = [*(stored.names if columns is None else columns)]
    search = {"nearest": "{}"} if ranked == "_distance" else {"full_text": "a"}
    options = ReadOptions("", columns=tuple(dict.fromkeys([*wanted, ranked])), **search)  # type: ignore[arg-type]
    target = spark_schema(select_fields(stored, options))
    for name in target.fieldNames():
        if name in given.fieldNames():
            raise SchemaError(
                f"The column {name!r} is both in the rows and in the dataset; rename one or choose columns"
            )
    return target


def _scanner(dataset: Any, target: Any, filter: str | None, **search: Any) -> Any:
    return dataset.scanner(columns=target.fieldNames(), filter=filter, prefilter=filter is not None, **search)


def _matrix(vectors: pa.Array, width: int, what: str) -> np.ndarray:
    lengths = vectors.value_lengths().to_numpy(zero_copy_only=False)
    wrong = np.flatnonzero(lengths != width)
    if len(wrong):
        raise InvalidInputError(f"A vector of {what} has {lengths[wrong[0]]} numbers, but the dataset's have {width}")
    return vectors.flatten().to_numpy(zero_copy_only=False).astype(np.float32).reshape(-1, width)
