"""Step of a plan that finds the nearest rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from lance_dataset.read.projection import Projection
from lance_dataset.read.table_reader import TableReader
from lance_dataset.scan.explain.plan import scan_plan
from lance_dataset.scan.explain.plan_nodes import PlanNode, ProjectPlan
from lance_dataset.scan.explain.scored_plan import scored_plan
from lance_dataset.scan.nearest.indexed import IndexUse
from lance_dataset.scan.nearest.rows import NearestRequest

__all__ = ["AnnPlan", "KnnPlan", "search_plan"]


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
        return f"KNNVectorDistance: metric={self.distance}, column={self.column}, k={self.k}{queries}{limits}, exact"

    def details(self) -> Sequence[str]:
        """Describe the query."""
        count, dimension = self.vectors
        lines = [f"{count:,} query vectors of {dimension:,} elements"]
        return [*lines, self.reason] if self.reason else lines


@dataclass(frozen=True)
class AnnPlan(PlanNode):
    """Search an index, and compare the rows that it does not cover.

    Attributes
    ----------
    column, distance, k, queries
        See `KnnPlan`.
    index, segments
        Name of the index, and number of its segments.
    partitions
        Kind of the index, and number of its partitions.
    steps
        What happens besides, one line each.
    """

    column: str
    distance: str
    k: int
    queries: int
    index: str
    segments: int
    partitions: str
    steps: tuple[str, ...]
    metric: ClassVar[str | None] = "nearest"

    def summary(self) -> str:
        """Describe the step on one line."""
        queries = "" if self.queries == 1 else f", queries={self.queries}"
        search = f"name={self.index}, k={self.k}, deltas={self.segments}, metric={self.distance.capitalize()}{queries}"
        return f"ANNSubIndex: {search}, column={self.column}, {self.partitions}"

    def details(self) -> Sequence[str]:
        """Describe the steps."""
        return self.steps


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
    if request.use is not None:
        return scored_plan(reader, _ann_plan(reader, request, request.use), request.wanted, request.candidates)
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


def _ann_plan(reader: TableReader, request: NearestRequest, use: IndexUse) -> PlanNode:
    search, candidates, index = request.search, request.candidates, use.index
    outside = use.uncovered(reader, candidates)
    child = None
    if outside:
        found = scan_plan(reader, replace(candidates, fragments=outside), thorough=False)
        child = found.child if isinstance(found, ProjectPlan) else found
    elif candidates.filter is not None:
        found = scan_plan(reader, replace(candidates, projection=Projection((), candidates.projection.schema)))
        child = found.child if isinstance(found, ProjectPlan) else found
    return AnnPlan(
        *(child, search.column.name, search.metric, search.query.k, search.num_queries),
        *(index.name, len(index.segments), f"{index.kind}, partitions={index.num_partitions}"),
        tuple(_steps(request, use, len(outside))),
    )


def _steps(request: NearestRequest, use: IndexUse, outside: int) -> Iterator[str]:
    query = request.search.query
    if use.expected is not None:
        yield from use.expected.lines()
    for each in use.index.segments:
        first, most = each.rank(query.vectors[0], query.k * (use.refine or 1), use.probing).counts
        yield f"partitions searched: {first}, up to {most} if these have fewer than k rows"
    if use.index.segments[0].source.has_graphs:
        wanted = query.k * (use.refine or 1)
        yield f"graphs of the partitions are walked, ef={use.ef or wanted + wanted // 2}"
    if use.refine is not None:
        yield f"refined: exact distances of {query.k * use.refine} candidates"
    if outside:
        yield f"united with {outside} fragments that the index does not cover; distances are exact"
    if request.candidates.filter is not None:
        yield "the filter comes first: only rows that fulfil it are candidates"


def _shown(limit: float | None) -> str:
    return "any" if limit is None else f"{limit:g}"
