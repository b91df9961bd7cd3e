"""Tables with zone maps and Bloom-filter indices, and what readers see of the files of indices."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import lance
import lance.indices
import numpy as np
import pyarrow as pa

import lance_dataset
from lance_dataset import LanceDataset
from lance_dataset.index.segments import Segment, index_segments
from lance_dataset.indices import IndexConfig

__all__ = [
    "ZONE_FILTERS",
    "ZONE_KINDS",
    "check_answers",
    "content_of",
    "create_zones",
    "is_used",
    "rows_of",
    "segments_of",
    "zone_rows",
    "zone_table",
]

#: Indexed columns of the table, each with the kind of its index; and filters.
ZONE_KINDS = (("c", "zonemap"), ("s", "zonemap"), ("k", "bloomfilter"))
ZONE_FILTERS = (
    "c = 0",
    "c < 20",
    "c IS NULL",
    "c IS NOT NULL",
    "k = 7",
    "k IN (1, 3)",
    "k IS NULL",
    "s > 'a8'",
    "s IS NULL",
)


def create_zones(module: Any, path: Path, kind: str, parameters: Mapping[str, Any], column: str = "c") -> None:
    """Create an index with one of the packages."""
    config = (lance.indices.IndexConfig if module is lance else IndexConfig)(kind, dict(parameters))
    module.dataset(path).create_scalar_index(column, config)


def segments_of(path: Path) -> list[Segment]:
    """Return the segments of all indices."""
    return index_segments(lance_dataset.dataset(path)._snapshot.reader)


def content_of(path: Path) -> list[Any]:
    """Return all that a reader sees of the files of indices."""
    found: list[Any] = []
    for segment in segments_of(path):
        (name,) = segment.folder.names()
        table = segment.folder.open(name)
        batch = table.read()
        rows = repr([column.to_pylist() for column in batch.columns])
        nullable = [field.nullable for field in table.schema.fields]
        nulls = table.global_buffer("null_bitmap")
        found.append(
            (batch.schema, nullable, rows, sorted(table.metadata.items()), nulls, segment.metadata.details, name)
        )
    return found


def is_used(dataset: Any, filter: str) -> bool:
    """Return True if an index answers a filter."""
    return "ScalarIndexQuery" in dataset.scanner(filter=filter).explain_plan()


def rows_of(dataset: Any, filter: str, **options: Any) -> list[int]:
    """Return the numbers of the rows that a filter selects."""
    return sorted(dataset.scanner(columns=["n"], filter=filter, **options).to_table()["n"].to_pylist())


def check_answers(path: Path, filters: tuple[str, ...]) -> None:
    """Check that both packages select the rows that the scan selects."""
    theirs, ours = lance.dataset(path), lance_dataset.dataset(path)
    for each in filters:
        expected = rows_of(ours, each, use_scalar_index=False)
        assert rows_of(theirs, each) == expected, each
        assert rows_of(ours, each) == expected, each
        assert ours.count_rows(each) == len(expected)


def zone_rows(start: int, count: int) -> pa.Table:
    """Return rows with columns of different types, with nulls."""
    numbers = np.arange(start, start + count)
    c = pa.array(numbers * 7 % 90, mask=numbers % 11 == 3)
    s = pa.array([None if n % 7 == 5 else f"a{n % 90}" for n in numbers.tolist()])
    return pa.table({"c": c, "k": pa.array(numbers % 40, mask=numbers % 5 == 4), "s": s, "n": numbers})


def zone_table(path: Path, *, stable: bool) -> LanceDataset:
    """Write a table with indices on three columns."""
    dataset = lance_dataset.write_dataset(zone_rows(0, 700), path, max_rows_per_file=200, enable_stable_row_ids=stable)
    dataset.delete("n % 13 = 4")
    for column, kind in ZONE_KINDS:
        create_zones(lance_dataset, path, kind, {"rows_per_zone": 40, "number_of_items": 40}, column)
    return lance_dataset.dataset(path)
