"""Recall of vector searches, measured against exact ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_dataset.api.scanner.builder import make_scanner
from lance_dataset.errors import UnsupportedError
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.scan.nearest.recall import recall_of, sampled_queries
from lance_dataset.scan.nearest.search import VectorColumn
from lance_dataset.scan.nearest_query import NearestQuery

__all__ = ["measured_recall"]


def measured_recall(snapshot: Snapshot, column: str, queries: object, k: int, parameters: Mapping[str, Any]) -> float:
    """Measure which share of the nearest rows a search finds. See `Reading.measure_recall`.

    Parameters
    ----------
    snapshot
        The version.
    column, queries, k, parameters
        See `Reading.measure_recall`.

    Raises
    ------
    FieldNotFoundError, InvalidInputError, UnsupportedError, TypeError
        See there.
    """
    found = VectorColumn.of(snapshot.scanned_schema, column)
    if found.is_lists:
        raise UnsupportedError(f"column {column!r} holds lists of vectors, whose recall is not measured")
    places = None
    if queries is None:
        places, vectors = sampled_queries(snapshot.reader, found)
    else:
        vectors = NearestQuery.of({"column": column, "q": queries}).vectors
    # checked even if there are no queries
    wanted = NearestQuery.of({**parameters, "column": column, "q": np.zeros(found.dimension), "k": k}).k
    if not len(vectors):
        return 1.0
    asked = {**parameters, "column": column, "q": vectors, "k": wanted + (places is not None)}
    exact = {"column": column, "q": vectors, "k": asked["k"], "use_index": False, "metric": _metric(snapshot, asked)}
    return recall_of(_rows(snapshot, asked, places, wanted), _rows(snapshot, exact, places, wanted))


def _metric(snapshot: Snapshot, asked: dict[str, Any]) -> str:
    """Return the metric of a search."""
    from lance_dataset.api.scanner.nearest_scanner import nearest_scanner

    return nearest_scanner(snapshot, {}, NearestQuery.of(asked)).metric


def _rows(
    snapshot: Snapshot, asked: dict[str, Any], places: NDArray[np.uint64] | None, k: int
) -> list[NDArray[np.uint64]]:
    """Return the addresses of the k rows found for each query, without the row that is the query."""
    options = {"columns": [], "with_row_address": True, "nearest": asked}
    table = make_scanner(snapshot, options, with_defaults=False).to_table()
    owners, addresses = np.asarray(table["query_index"]), np.asarray(table["_rowaddr"])
    found = []
    for number in range(len(asked["q"])):
        mine = addresses[owners == number]
        found.append((mine if places is None else mine[mine != places[number]])[:k])
    return found
