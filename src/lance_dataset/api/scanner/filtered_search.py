"""Scanners of searches that have another search as their filter: `FilteredSearchScanner`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lance_dataset.api.scanner.nearest_scanner import nearest_request
from lance_dataset.api.scanner.search_scanner import SearchScanner
from lance_dataset.api.scanner.statistics import ScanStatistics
from lance_dataset.api.scanner.text_scanner import text_request
from lance_dataset.errors import InvalidInputError, UnsupportedError
from lance_dataset.properties import cached_property
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.scan.address_sets import restricted
from lance_dataset.scan.hybrid.filtering import FilteredSearch, Search, filtered_rows
from lance_dataset.scan.metrics import ScanMetrics
from lance_dataset.scan.nearest_query import NearestQuery
from lance_dataset.scan.options import SearchFilter
from lance_dataset.scan.scored_rows import ScoredRows
from lance_dataset.scan.text_queries import FullTextQuery

if TYPE_CHECKING:
    from lance_dataset.scan.explain.plan_nodes import PlanNode

__all__ = ["FilteredSearchScanner", "filtered_search_scanner"]

#: Options of the rows found, which do not matter for a search in a filter.
_OUTPUT = ("columns", "limit", "offset", "order_by", "with_row_id", "with_row_address", "index_segments")


class FilteredSearchScanner(SearchScanner):
    """Scan of the rows that a search finds, and another one too. Make it with `ScannerBuilder.filter`."""

    def __init__(
        self,
        snapshot: Snapshot,
        request: FilteredSearch,
        stats_callback: Callable[[ScanStatistics], object] | None = None,
    ) -> None:
        super().__init__(snapshot, request.outer.wanted, stats_callback)
        self._both = request

    @cached_property
    def _restricted(self) -> FilteredSearch:
        """Request without the rows that address sets leave out."""
        wanted, reader = self._scored, self._snapshot.reader

        def within(search: Search) -> Search:
            return replace(search, candidates=restricted(reader, search.candidates, wanted.allowed, wanted.blocked))

        return replace(self._both, outer=within(self._both.outer), inner=within(self._both.inner))

    def _find(self, metrics: ScanMetrics | None = None) -> ScoredRows:
        return filtered_rows(self._snapshot.reader, self._restricted)

    def _limited(self, limit: int) -> FilteredSearchScanner:
        outer = replace(self._both.outer, wanted=replace(self._scored, limit=limit))
        return FilteredSearchScanner(self._snapshot, replace(self._both, outer=outer), self._callback)

    def _query(self) -> object:
        return self._both.outer.search.query

    def _plan(self, *, thorough: bool = True) -> PlanNode:
        from lance_dataset.scan.hybrid.plan import filtered_plan

        return filtered_plan(self._snapshot.reader, self._restricted, thorough=thorough)


def filtered_search_scanner(
    snapshot: Snapshot, options: Mapping[str, Any], condition: SearchFilter
) -> FilteredSearchScanner:
    """Make the scanner of a search with another search as its filter.

    Parameters
    ----------
    snapshot
        Version to search.
    options
        Options that `checked_option` has accepted.
    condition
        The filter among them.

    Raises
    ------
    FieldNotFoundError, FilterError, InvalidInputError, UnsupportedError, TypeError
        An option does not fit the version, or both searches are of the same kind.
    """
    near, text, inner = options.get("nearest"), options.get("full_text_query"), condition.search
    if options.get("minhash_search") is not None or not (near is None or isinstance(near, NearestQuery)):
        raise UnsupportedError("a search for similar texts with another search as its filter is not supported")
    if near is not None and text is not None:
        raise InvalidInputError("Cannot have both nearest and full_text_query; search for one of them")
    if near is not None and isinstance(inner, NearestQuery):
        raise InvalidInputError("Query filter can't be used with vector search: both search for vectors")
    if text is not None and isinstance(inner, FullTextQuery):
        raise InvalidInputError("Fts filter can't be used with fts search: combine both in a BooleanQuery")
    plain = {name: value for name, value in options.items() if name != "filter"}
    if condition.expression is not None:
        plain["filter"] = condition.expression
    filters_first = bool(options.get("prefilter"))
    below = {name: value for name, value in plain.items() if name not in (*_OUTPUT, "nearest", "full_text_query")}
    if not filters_first:
        below.pop("filter", None)
    below.update(columns=[], prefilter=True)
    outer: Search
    within: Search
    if near is not None:
        outer = nearest_request(snapshot, plain, near)
    elif text is not None:
        outer = text_request(snapshot, plain, text)
    else:
        raise InvalidInputError(
            "Query filter can only be used with full text search or vector search; pass nearest or full_text_query"
        )
    if isinstance(inner, FullTextQuery):
        within = text_request(snapshot, below, inner)
    else:
        within = nearest_request(snapshot, below, inner)
        if within.search.is_batch:
            raise InvalidInputError("a VectorSearchQuery in a filter takes one vector")
    return FilteredSearchScanner(
        snapshot, FilteredSearch(outer, within, filters_first), options.get("scan_stats_callback")
    )
