"""Step of a plan that finds the nearest rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from lance_dataset.read.table_reader import TableReader
from lance_dataset.scan.explain.plan import scan_plan
from lance_dataset.scan.explain.plan_nodes import PlanNode, ProjectPlan
from lance_dataset.scan.explain.scored_plan import scored_plan
from lance_dataset.scan.nearest.rows import NearestRequest

__all__ = ["KnnPlan", "search_plan"]


@dataclass(frozen=True)
class KnnPlan(PlanNode):
    """Compare the vectors of all rows below with a query.

    Attributes
    ----------
    column
        The column.
    distance
        Name of the metric.
    k
        Number of rows to find.
    queries
        Number of separate searches.
    vectors
        Number and dimension of the vectors of the query.
    limits
        Limits of the distances, as text; empty without any.
    reason
        Why no index is used.
    """

    column: str
    distance: str
    k: int
    queries: int
    vectors: tuple[int, int]
    limits: str
    reason: str
    metric: ClassVar[str | None] = "nearest"

    def summary(self) -> str:
        """Describe the step on one line."""
        queries = "" if self.queries == 1 else f", queries={self.queries}"
        limits = f", distances={self.limits}" if self.limits else ""
        return f"KNN: column={self.column}, metric={self.distance}, k={self.k}{queries}{limits}, exact"

    def details(self) -> Sequence[str]:
        """Describe the query."""
        count, dimension = self.vectors
        lines = [f"{count:,} query vectors of {dimension:,} elements"]
        return [*lines, self.reason] if self.reason else lines


def search_plan(reader: TableReader, request: NearestRequest, *, thorough: bool = True) -> PlanNode:
    """Return the plan of a search, outermost step first.

    Parameters
    ----------
    reader
        The version of the table.
    request
        The search, whose candidates are restricted to the rows that may be found.
    thorough
        See `scan_plan`.
    """
    scanned = scan_plan(reader, request.candidates, thorough=thorough)
    search, wanted = request.search, request.wanted
    query = search.query
    limits = "" if query.lowest is None and query.below is None else f"{_shown(query.lowest)} to {_shown(query.below)}"
    node = KnnPlan(
        scanned.child if isinstance(scanned, ProjectPlan) else scanned,
        *(search.column.name, search.metric, query.k, search.num_queries),
        *(query.vectors.shape, limits, request.reason),
    )
    return scored_plan(reader, node, wanted, request.candidates)


def _shown(limit: float | None) -> str:
    return "any" if limit is None else f"{limit:g}"
