"""Requests for facts: statistics of a column, versions, the difference of two, storage."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from lance_dataset.reports.changed_rows import changed_rows
from lance_dataset.reports.comparison import compare
from lance_dataset.reports.history import described_versions
from lance_dataset.reports.statistics import column_statistics
from lance_dataset.reports.storage import storage
from lance_dataset.viewer.parameters import Parameters
from lance_dataset.viewer.source import Source

__all__ = ["comparison", "history", "occupied", "statistics"]

_MOST_VERSIONS = 100


def statistics(source: Source, given: Parameters) -> dict[str, Any]:
    """Describe the values of a column in the rows that a filter selects."""
    dataset = source.dataset(given.text("version"))
    field = source.column(dataset, given.integer("column"))
    return asdict(column_statistics(dataset, field.name, given.text("filter")))


def history(source: Source, given: Parameters) -> dict[str, Any]:
    """Describe the newest versions of the branch, those before a version if one is named, tags and branches."""
    dataset = source.dataset(given.text("version"))
    most = given.integer("count", _MOST_VERSIONS, most=1_000)
    before = given.integer("before", 0)
    found = [entry["version"] for entry in dataset.versions() if not before or entry["version"] < before]
    tags = {name: {"version": tag["version"], "branch": tag.get("branch")} for name, tag in dataset.tags.list().items()}
    return {
        "versions": described_versions(dataset, found[-most:])[::-1],
        "earlier": max(len(found) - most, 0),
        "tags": tags,
        "branches": sorted(dataset.branches.list()),
    }


def comparison(source: Source, given: Parameters) -> dict[str, Any]:
    """Compare two versions, with the rows that differ."""
    old, new = source.dataset(given.required("old")), source.dataset(given.text("new"))
    facts = compare(old, new)
    return facts | {"changed_rows": changed_rows(old, new) if old.uri == new.uri else {}}


def occupied(source: Source, given: Parameters) -> dict[str, Any]:
    """Describe the files of a version: sizes of columns with their encodings, fragments, coverage of indices."""
    return asdict(storage(source.dataset(given.text("version"))))
