"""A query that says what it needs before Spark asks: columns, filter, order and limit reach the dataset."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lance_dataset.errors import InvalidInputError
from lance_dataset.spark.frames import frame_of
from lance_dataset.spark.options import ReadOptions
from lance_dataset.spark.reader import checked_scan, select_fields
from lance_dataset.spark.snapshot import Snapshot, pin

__all__ = ["LanceTable", "table"]


@dataclass(frozen=True)
class LanceTable:
    """One version of a dataset, and what a query needs of it; every method returns another value.

    Spark passes neither the columns nor the limit of a query to a data source written in Python, and its filters only
    with known errors. So queries on `df` of a table that was narrowed first read less.

    Attributes
    ----------
    spark
        Spark session.
    snapshot
        Version that is read.
    options
        Options of ``spark.read`` that the query has so far.
    """

    spark: Any = field(repr=False)
    snapshot: Snapshot
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def where(self, condition: str) -> LanceTable:
        """Keep the rows for which a condition in Lance's SQL is true; several conditions have to be true together."""
        before = self.options.get("filter")
        return self._with(filter=f"({before}) AND ({condition})" if before else condition)

    def select(self, *columns: str) -> LanceTable:
        """Read these columns; ``"*"`` stands for all, and names such as ``_rowid`` describe the row."""
        return self._with(columns=json.dumps(list(columns)))

    def order_by(self, *columns: str) -> LanceTable:
        """Order the rows by columns; a minus sign before a name means descending order."""
        return self._with(order_by=json.dumps(list(columns)))

    def limit(self, rows: int) -> LanceTable:
        """Read at most this many rows."""
        return self._with(limit=str(rows))

    def nearest(self, column: str, q: Sequence[float], k: int = 10, **parameters: Any) -> LanceTable:
        """Read the `k` rows whose vectors are nearest to `q`; `parameters` are those of ``LanceDataset.scanner``."""
        query = {"column": column, "q": [float(value) for value in q], "k": k, **parameters}
        return self._with(nearest=json.dumps(query))

    def full_text(self, query: str, columns: Sequence[str] | None = None) -> LanceTable:
        """Read the rows that match a full-text query, the best first."""
        return self._with(full_text=json.dumps({"query": query, **({"columns": list(columns)} if columns else {})}))

    def option(self, name: str, value: object) -> LanceTable:
        """Set another option of ``spark.read``."""
        return self._with(**{name: str(value)})

    def df(self) -> Any:
        """Return the rows as a Spark DataFrame, lazy like any other.

        Filters of the table are evaluated by the dataset alone, those of the DataFrame by Spark.
        """
        return frame_of(self.spark, self.snapshot, self.parsed())

    def count(self) -> int:
        """Count the rows: from metadata without a filter, from indices or the filter's columns with one."""
        parsed = self.parsed()
        dataset = self.snapshot.open()
        if parsed.at_once:
            if parsed.order_by and not parsed.limit:
                return int(dataset.count_rows(parsed.filter))
            return int(checked_scan(dataset, parsed, []).count_rows())
        return int(dataset.count_rows(parsed.filter))

    def explain(self) -> str:
        """Return the plan of the dataset for this query, as text."""
        dataset, parsed = self.snapshot.open(), self.parsed()
        return str(checked_scan(dataset, parsed, select_fields(dataset.schema, parsed).names).explain_plan())

    def parsed(self) -> ReadOptions:
        """Return the options that the query has so far, checked."""
        return ReadOptions.parse({**self.options, "path": self.snapshot.uri})

    def _with(self, **options: str) -> LanceTable:
        changed = replace(self, options={**self.options, **options})
        parsed, dataset = changed.parsed(), self.snapshot.open()
        checked_scan(dataset, parsed, select_fields(dataset.schema, parsed).names)
        return changed


def table(
    spark: Any,
    uri: str,
    *,
    version: int | str | None = None,
    branch: str | None = None,
    timestamp: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> LanceTable:
    """Open a dataset for queries from Spark.

    Parameters
    ----------
    spark
        Spark session.
    uri
        Path or URI of the dataset.
    version
        Version number or tag; None for the newest. It is pinned here: later changes are not seen.
    branch
        Branch of the version.
    timestamp
        Moment in ISO format: the newest version that is not younger.
    storage_options
        Settings of the object store.

    Returns
    -------
    LanceTable
        ``table(spark, uri).where("id > 3").select("id", "name").limit(5).df()``

    Raises
    ------
    DatasetNotFoundError, VersionNotFoundError
        There is no such dataset or version.
    """
    if timestamp is not None and (version is not None or branch is not None):
        raise InvalidInputError("Give either a timestamp, or a version and its branch")
    settings = tuple(sorted((str(key), str(value)) for key, value in (storage_options or {}).items()))
    snapshot, _ = pin(str(uri), version, settings, branch=branch, timestamp=timestamp)
    options = {"version": str(snapshot.version)}
    if snapshot.branch:
        options["branch"] = snapshot.branch
    if storage_options:
        options["storage_options"] = json.dumps(dict(storage_options))
    return LanceTable(spark, snapshot, options)
