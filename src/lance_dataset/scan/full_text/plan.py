"""Steps of a plan that find texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lance_dataset.read.table_reader import TableReader
from lance_dataset.scan.explain.plan_nodes import PlanNode
from lance_dataset.scan.explain.scored_plan import scored_plan
from lance_dataset.scan.full_text.rows import TextRequest
from lance_dataset.scan.full_text.scope import SearchScope
from lance_dataset.scan.text_queries import FullTextQuery, MatchQuery, PhraseQuery

__all__ = ["TextSearchPlan", "text_plan"]


@dataclass(frozen=True)
class TextSearchPlan(PlanNode):
    """Find texts by a query.

    Attributes
    ----------
    query
        The query.
    columns
        For each column its name, the name of its index or None, and the number of fragments whose texts are read.
    best
        Number of rows to find; None for all.
    condition
        Filter that comes first, as text; empty without one.
    """

    query: FullTextQuery
    columns: tuple[tuple[str, str | None, int], ...]
    best: int | None
    condition: str

    def summary(self) -> str:
        """Describe the step on one line."""
        where = f", where={_on_one_line(self.condition)}" if self.condition else ""
        return f"{self._search()}, best={self.best or 'all'}{where}"

    def _search(self) -> str:
        query = self.query
        names = ", ".join(name for name, _, _ in self.columns)
        if isinstance(query, MatchQuery):
            return f"MatchQuery: column={names}, query=[{_on_one_line(query.query)}]"
        if isinstance(query, PhraseQuery):
            return f"PhraseQuery: column={names}, query={_on_one_line(query.query)}"
        return f"CompoundFtsScorer: query={type(query).__name__}, columns=[{names}]"

    def details(self) -> Sequence[str]:
        """Describe how the texts of each column are found."""
        lines = [repr(self.query)]
        for name, index, left in self.columns:
            ways = [] if index is None else [f"index {index!r}"]
            if left:
                ways.append(f"the texts of {left} fragments without an index are read")
            lines.append(f"{name}: {'; '.join(ways) or 'nothing to search'}")
        return lines


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def text_plan(reader: TableReader, request: TextRequest) -> PlanNode:
    """Return the plan of a search, outermost step first.

    Parameters
    ----------
    reader
        The version.
    request
        The search.
    """
    scope, wanted = SearchScope(reader, request.candidates), request.wanted
    columns = tuple(
        (name, None if column.index is None else column.index.name, len(column.uncovered(scope)))
        for name, column in request.search.columns.items()
    )
    condition = "" if request.candidates.filter is None else str(request.candidates.filter)
    node = TextSearchPlan(None, request.search.query, columns, request.best, condition)
    return scored_plan(reader, node, wanted, request.candidates)
