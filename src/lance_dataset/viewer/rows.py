"""Requests for rows: the columns of a version, windows of its rows, single values."""

from __future__ import annotations

from typing import Any

import numpy as np

from lance_dataset.errors import InvalidInputError, RowIndexError
from lance_dataset.reports.cells import python_values, shown_text
from lance_dataset.reports.places import shown_uri
from lance_dataset.viewer.parameters import Parameters
from lance_dataset.viewer.previews import described_columns, preview, stream
from lance_dataset.viewer.source import Source

__all__ = ["cell", "count", "table", "window"]

_MOST_ROWS = 1_000
_MOST_COLUMNS = 200
_MOST_CELLS = 40_000
#: Characters of one value on the page.
_LONGEST_VALUE = 1_000_000


def table(source: Source, given: Parameters) -> dict[str, Any]:
    """Describe a version: its number, rows and columns."""
    dataset = source.dataset(given.text("version"))
    return {
        "uri": shown_uri(dataset.uri),
        "version": dataset.version,
        "branch": dataset.branch,
        "latest": dataset.latest_version,
        "rows": dataset.count_rows(),
        "columns": described_columns(dataset.schema),
        "indices": [
            {"name": index.name, "type": index.index_type, "columns": list(index.field_names)}
            for index in dataset.describe_indices()
        ],
    }


def window(source: Source, given: Parameters) -> bytes:
    """Return rows `start` to `start + count` of those that a filter selects, as an Arrow stream of previews."""
    dataset = source.dataset(given.text("version"))
    places = given.integers("columns", most=len(dataset.schema), longest=_MOST_COLUMNS) or []
    start, wanted = given.integer("start", 0), given.integer("count", 50, most=_MOST_ROWS)
    if wanted * len(places) > _MOST_CELLS:
        raise InvalidInputError(f"{wanted} rows of {len(places)} columns are more than {_MOST_CELLS:,} cells")
    numbers = source.rows(dataset, given.text("filter")).numbers(start, wanted)
    found = source.take(dataset, numbers, places)
    return stream(preview(found, numbers))


def count(source: Source, given: Parameters) -> dict[str, int]:
    """Count the rows that a filter selects."""
    dataset = source.dataset(given.text("version"))
    return {"rows": source.rows(dataset, given.text("filter")).total()}


def cell(source: Source, given: Parameters) -> dict[str, Any]:
    """Return one value in full, as text."""
    dataset = source.dataset(given.text("version"))
    field = source.column(dataset, given.integer("column"))
    row = given.integer("row")
    if row >= dataset.count_rows():
        raise RowIndexError(f"there is no row {row:,}; the version has {dataset.count_rows():,}")
    values = source.take(dataset, np.array([row]), [given.integer("column")]).column(0).combine_chunks()
    value = python_values(values)[0]
    text = None if value is None else value if isinstance(value, str) else _pretty(value)
    whole = 0 if text is None else len(text)
    return {
        "name": field.name,
        "type": str(field.type),
        "text": None if text is None else text[:_LONGEST_VALUE],
        "characters": whole,
        "cut": whole > _LONGEST_VALUE,
    }


def _pretty(value: Any) -> str:
    """Return a value with one element a line, if it is nested."""
    if isinstance(value, bytes):
        return value[: _LONGEST_VALUE // 3].hex(" ")
    if isinstance(value, dict):
        return "{\n" + ",\n".join(f"  {shown_text(key)}: {shown_text(item)}" for key, item in value.items()) + "\n}"
    if isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value):
        return "[\n" + ",\n".join(f"  {shown_text(item)}" for item in value) + "\n]"
    return str(value)
