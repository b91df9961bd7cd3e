"""Steps of a plan for searches that have another search as their filter."""

from __future__ import annotations

from dataclasses import dataclass

from lance_dataset.read.table_reader import TableReader
from lance_dataset.scan.explain.plan_nodes import PlanNode
from lance_dataset.scan.full_text.plan import text_plan
from lance_dataset.scan.full_text.rows import TextRequest
from lance_dataset.scan.hybrid.filtering import FilteredSearch
from lance_dataset.scan.nearest.plan import search_plan

__all__ = ["SearchFilterPlan", "filtered_plan"]


@dataclass(frozen=True)
class SearchFilterPlan(PlanNode):
    """Leave out rows that another search does not find.

    Attributes
    ----------
    query
        The other search, as text.
    is_first
        True if only the rows that it finds are searched.
    """

    query: str
    is_first: bool

    def summary(self) -> str:
        """Describe the step on one line."""
        return f"SearchFilter: {self.query}, {'before' if self.is_first else 'after'} the search"


def filtered_plan(reader: TableReader, request: FilteredSearch, *, thorough: bool) -> PlanNode:
    """Return the plan of a search with another search as its filter, outermost step first.

    Parameters
    ----------
    reader
        The version.
    request
        The searches.
    thorough
        True for a plan with all details.
    """
    outer = request.outer
    if isinstance(outer, TextRequest):
        node = text_plan(reader, outer)
    else:
        node = search_plan(reader, outer, thorough=thorough)
    return SearchFilterPlan(node, repr(request.inner.search.query), request.filters_first)
