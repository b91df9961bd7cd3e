"""Requests that ask: SQL, searches, plans."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from lance_dataset.errors import InvalidInputError
from lance_dataset.reports.columns import ColumnKind, column_kind, quoted
from lance_dataset.viewer.parameters import Parameters
from lance_dataset.viewer.previews import preview, stream
from lance_dataset.viewer.source import Source

__all__ = ["plan", "search", "sql"]

#: Rows of the result of a query that are shown.
_MOST_RESULTS = 2_000
_MOST_FOUND = 200
_ROW = "_rowoffset"


def sql(source: Source, given: Parameters) -> bytes:
    """Answer a query, which may not write or read other files, with previews of its first rows."""
    dataset = source.dataset(given.text("version"))
    batches, rows = [], 0
    with dataset.sql(given.required("query")).read_only().build().to_stream_reader() as reader:
        for batch in reader:
            batches.append(batch.slice(0, _MOST_RESULTS + 1 - rows))
            rows += batches[-1].num_rows
            if rows > _MOST_RESULTS:
                break
        schema = reader.schema
    return _results(pa.Table.from_batches(batches, schema))


def search(source: Source, given: Parameters) -> bytes:
    """Find rows by words, by the vector of another row, or by both."""
    dataset = source.dataset(given.text("version"))
    words, row = given.text("text"), given.text("row")
    if words is None and row is None:
        raise InvalidInputError("a search needs words, or a row whose vector is compared")
    vector_column = None
    vector: Any = None
    if row is not None:
        field = source.column(dataset, given.integer("column"))
        if column_kind(field) is not ColumnKind.VECTOR:
            raise InvalidInputError(f"the column {field.name!r} has no vectors")
        vector_column = field.name
        vector = dataset.take([given.integer("row")], columns=[quoted(field.name)]).column(0)[0].as_py()
        if vector is None:
            raise InvalidInputError(f"row {row} has no vector in {field.name!r}")
        vector = np.asarray(vector)
    found = dataset.search(
        words,
        vector,
        filter=given.text("filter"),
        k=given.integer("k", 50, most=_MOST_FOUND),
        vector_column=vector_column,
        explain_score=words is not None,
    )
    if "_explanation" in found.column_names:
        reasons = _reasons(found["_explanation"])
        found = found.drop_columns("_explanation").append_column("_why", reasons)
    scores = [name for name in ("_relevance", "_score", "_distance", "_why") if name in found.column_names]
    others = [name for name in found.column_names if name not in scores]
    return _results(found.select([*scores, *others]))


def _reasons(explanations: pa.ChunkedArray) -> pa.Array:
    """Return the shares of the terms in each score as text, the largest first; null without a score."""

    def reason(terms: list[dict[str, Any]] | None) -> str | None:
        found = sorted(terms or (), key=lambda term: -term["score"])
        shares = (f"{each['term']} {each['score']:.2f} ({each['frequency']:g} of {each['length']:g})" for each in found)
        return ", ".join(shares) or None

    return pa.array([reason(each) for each in explanations.to_pylist()], pa.string())


def plan(source: Source, given: Parameters) -> dict[str, str]:
    """Return the plan of a scan with a filter, and what running it read."""
    dataset = source.dataset(given.text("version"))
    places = given.integers("columns", most=len(dataset.schema), longest=2_000)
    names = None if places is None else [quoted(source.column(dataset, place).name) for place in places]
    scanner = dataset.scanner(names, filter=given.text("filter"), limit=_MOST_RESULTS)
    return {"plan": scanner.explain_plan(verbose=True), "analysis": scanner.analyze_plan()}


def _results(found: pa.Table) -> bytes:
    shown = preview(found.slice(0, _MOST_RESULTS))
    more = str(found.num_rows > _MOST_RESULTS).lower()
    return stream(shown.replace_schema_metadata({"more": more, "types": "\n".join(map(_type, found.schema))}))


def _type(field: pa.Field) -> str:
    return str(field.type).replace("\n", " ")[:200]
