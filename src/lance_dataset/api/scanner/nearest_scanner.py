"""Scanners of vector searches: `NearestScanner`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lance_dataset.api.scanner.search_scanner import SearchScanner
from lance_dataset.api.scanner.statistics import ScanStatistics
from lance_dataset.errors import InvalidInputError
from lance_dataset.index.vector.columns import ColumnIndex, column_index
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.scan.address_sets import restricted
from lance_dataset.scan.metrics import ScanMetrics
from lance_dataset.scan.nearest.candidates import candidates_request
from lance_dataset.scan.nearest.rows import DISTANCE, QUERY_INDEX, NearestRequest, nearest_rows
from lance_dataset.scan.nearest.search import VectorColumn, VectorSearch
from lance_dataset.scan.nearest_query import NearestQuery
from lance_dataset.scan.request import ScanRequest
from lance_dataset.scan.resolving import address_sets, resolve_request
from lance_dataset.scan.scored_output import ScoredOutput, scored_filter
from lance_dataset.scan.scored_rows import UNLIMITED_ROWS, ScoredRequest, ScoredRows

if TYPE_CHECKING:
    from lance_dataset.scan.explain.plan_nodes import PlanNode

__all__ = ["NearestScanner", "nearest_scanner"]


class NearestScanner(SearchScanner):
    """Scan of the rows whose vectors are nearest to others. Make it with `ScannerBuilder.nearest`."""

    def __init__(
        self,
        snapshot: Snapshot,
        request: NearestRequest,
        stats_callback: Callable[[ScanStatistics], object] | None = None,
    ) -> None:
        super().__init__(snapshot, request.wanted, stats_callback)
        self._nearest = request

    @cached_property
    def _restricted(self) -> NearestRequest:
        """Request without the rows that address sets leave out."""
        wanted = self._scored
        reader, scanned = self._snapshot.reader, self._nearest.candidates
        return replace(self._nearest, candidates=restricted(reader, scanned, wanted.allowed, wanted.blocked))

    def _find(self, metrics: ScanMetrics | None = None) -> ScoredRows:
        return nearest_rows(self._snapshot.reader, self._restricted, metrics)

    def _limited(self, limit: int) -> NearestScanner:
        wanted = replace(self._scored, limit=limit)
        return NearestScanner(self._snapshot, replace(self._nearest, wanted=wanted), self._callback)

    def _query(self) -> object:
        return self._nearest.search.query

    def _plan(self, *, thorough: bool = True) -> PlanNode:
        from lance_dataset.scan.nearest.plan import search_plan

        return search_plan(self._snapshot.reader, self._restricted, thorough=thorough)


def nearest_scanner(snapshot: Snapshot, options: Mapping[str, Any], query: NearestQuery) -> NearestScanner:
    """Make the scanner of a vector search.

    Parameters
    ----------
    snapshot
        Version to search.
    options
        Options that `checked_option` has accepted.
    query
        The query.

    Raises
    ------
    FieldNotFoundError, FilterError, InvalidInputError, UnsupportedError, TypeError
        An option does not fit the version, or the column holds no vectors.
    """
    if options.get("include_deleted_rows"):
        raise InvalidInputError("Cannot include deleted rows in a nearest neighbor search")
    if options.get("full_text_query") is not None:
        raise InvalidInputError("Cannot have both nearest and full_text_query; search for one of them")
    filters_first = bool(options.get("prefilter"))
    if options.get("fragments") is not None and not filters_first:
        raise InvalidInputError(
            "a nearest neighbor search of some fragments is not supported for fragment scan without prefilter=True"
        )
    schema = snapshot.scanned_schema
    column = VectorColumn.of(schema, query.column)
    index = column_index(snapshot.reader, column.field_id) if query.use_index else None
    if index is not None and query.metric not in (None, index.metric):
        index = None
    search = VectorSearch.of(query, column, query.metric or (column.usual_metric if index is None else index.metric))
    handled = {"columns", "limit", "offset", "with_row_id", "with_row_address", "blob_handling"}
    handled |= set() if filters_first else {"filter"}
    base = resolve_request(snapshot, {name: value for name, value in options.items() if name not in handled})
    leading = QUERY_INDEX if search.is_batch else None
    found = (DISTANCE,) if leading is None else (leading, DISTANCE)
    allowed, blocked = address_sets(options)
    wanted = ScoredRequest(
        ScoredOutput.of(schema, DISTANCE, options, leading),
        postfilter=None if filters_first else scored_filter(schema, found, options.get("filter")),
        limit=options.get("limit", UNLIMITED_ROWS),
        offset=options.get("offset", 0),
        order_by=base.order_by,
        allowed=allowed,
        blocked=blocked,
        batch_size=base.batch_size,
    )
    scanned = candidates_request(_in_indexed_fragments(snapshot, base, index), search)
    request = NearestRequest(search, scanned, wanted, _reason(query, index))
    return NearestScanner(snapshot, request, options.get("scan_stats_callback"))


def _in_indexed_fragments(snapshot: Snapshot, request: ScanRequest, index: ColumnIndex | None) -> ScanRequest:
    """Return the request restricted to the fragments of an index, if `fast_search` was given."""
    if not request.only_indexed:
        return request
    ids = snapshot.manifest.fragment_list.columns.ids.tolist()
    covered = frozenset[int]() if index is None else index.fragment_ids
    positions = range(len(ids)) if request.fragments is None else request.fragments
    kept = tuple(position for position in positions if ids[position] in covered)
    return replace(request, fragments=kept, only_indexed=False)


def _reason(query: NearestQuery, index: ColumnIndex | None) -> str:
    if not query.use_index:
        return "use_index=False"
    if index is None:
        return "no vector index of the column has this metric"
    return f"this release does not search the index {index.name!r}; all vectors are compared, so the result is exact"
