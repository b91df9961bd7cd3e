"""Scanners of vector searches: `NearestScanner`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lance_dataset.api.scanner.nearest_shapes import SearchShape, search_shapes, shape_key
from lance_dataset.api.scanner.search_scanner import SearchScanner
from lance_dataset.api.scanner.statistics import ScanStatistics
from lance_dataset.errors import CorruptFileError, InvalidInputError, LanceError
from lance_dataset.index.vector.searching.open_indices import OpenVectorIndex, vector_indices
from lance_dataset.index.vector.searching.probing import Probing
from lance_dataset.log import LOGGER
from lance_dataset.properties import cached_property
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.scan.address_sets import restricted
from lance_dataset.scan.metrics import ScanMetrics
from lance_dataset.scan.nearest.candidates import candidates_request
from lance_dataset.scan.nearest.indexed import IndexUse
from lance_dataset.scan.nearest.recall import chosen_use
from lance_dataset.scan.nearest.rows import DISTANCE, QUERY_INDEX, NearestRequest, nearest_rows
from lance_dataset.scan.nearest.search import VectorColumn, VectorSearch
from lance_dataset.scan.nearest_query import NearestQuery
from lance_dataset.scan.request import ScanRequest
from lance_dataset.scan.resolving import address_sets, resolve_request
from lance_dataset.scan.scored_output import ScoredOutput, scored_filter
from lance_dataset.scan.scored_rows import UNLIMITED_ROWS, ScoredRequest, ScoredRows

if TYPE_CHECKING:
    from lance_dataset.scan.explain.plan_nodes import PlanNode

__all__ = ["NearestScanner", "nearest_request", "nearest_scanner"]


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

    @property
    def metric(self) -> str:
        """Metric of the search."""
        return self._nearest.search.metric

    @property
    def request(self) -> NearestRequest:
        """The search."""
        return self._nearest

    @property
    def is_repeatable(self) -> bool:
        """True if the same request may be run again with another vector: nothing in it was computed for this one."""
        query, wanted = self._nearest.search.query, self._scored
        restricts = wanted.postfilter is not None or wanted.allowed is not None or wanted.blocked is not None
        return not (query.is_batch or query.tuning.recall is not None or restricts or self._callback is not None)

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
    """Make the scanner of a vector search. Parameters and errors are those of `nearest_request`."""
    request = nearest_request(snapshot, options, query)
    return NearestScanner(snapshot, request, options.get("scan_stats_callback"))


def nearest_request(snapshot: Snapshot, options: Mapping[str, Any], query: NearestQuery) -> NearestRequest:
    """Resolve the options of a vector search.

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
    shapes = search_shapes(snapshot.reader)
    column = shapes.column(schema, query.column)
    index, problem = _readable_index(snapshot, query, column, options)
    search = VectorSearch.of(query, column, query.metric or (column.usual_metric if index is None else index.metric))
    use = None if index is None or index.metric != search.metric else _use(index, query, base_options=options)
    segments = options.get("index_segments")
    if segments is not None:
        if use is None:
            raise InvalidInputError(
                f"index_segments needs a vector index that the query uses: {_reason(snapshot, query, column)}"
            )
        use = _of_segments(use, segments)
        index = use.index
    leading = QUERY_INDEX if search.is_batch else None
    key = shape_key(options, column.name, leading, index)
    shape = None if key is None else shapes.find(key)
    if shape is None:
        shape = _shape(snapshot, options, search, index)
        if key is not None:
            shapes.keep(key, shape)
    found = (DISTANCE,) if leading is None else (leading, DISTANCE)
    allowed, blocked = address_sets(options)
    scanned = shape.candidates
    wanted = ScoredRequest(
        shape.output,
        postfilter=None if filters_first else scored_filter(schema, found, options.get("filter")),
        limit=options.get("limit", UNLIMITED_ROWS),
        offset=options.get("offset", 0),
        order_by=shape.order_by,
        allowed=allowed,
        blocked=blocked,
        batch_size=scanned.batch_size,
    )
    if use is not None and query.tuning.recall is not None:
        use = chosen_use(snapshot.reader, scanned, search, use, query.tuning.recall)
    reason = "" if use is not None else problem or _reason(snapshot, query, column)
    return NearestRequest(search, scanned, wanted, reason, use)


def _shape(
    snapshot: Snapshot, options: Mapping[str, Any], search: VectorSearch, index: OpenVectorIndex | None
) -> SearchShape:
    """Resolve options, apart from the query, the limit and the filter of the rows found."""
    handled = {"index_segments", "columns", "limit", "offset", "with_row_id", "with_row_address", "blob_handling"}
    handled |= set() if options.get("prefilter") else {"filter"}
    base = resolve_request(snapshot, {name: value for name, value in options.items() if name not in handled})
    leading = QUERY_INDEX if search.is_batch else None
    output = ScoredOutput.of(snapshot.scanned_schema, DISTANCE, options, leading)
    candidates = candidates_request(_in_indexed_fragments(snapshot, base, index), search)
    return SearchShape(output, candidates, base.order_by)


def _readable_index(
    snapshot: Snapshot, query: NearestQuery, column: VectorColumn, options: Mapping[str, Any]
) -> tuple[OpenVectorIndex | None, str]:
    """Return the index of `_index`, and why one is not used that cannot be read.

    Only a query that names its metric, and searches all rows, means the same without the index.
    """
    needs = query.metric is None or options.get("fast_search") or options.get("index_segments") is not None
    if needs or options.get("on_index_error") != "scan":
        return _index(snapshot, query, column), ""
    try:
        return _index(snapshot, query, column), ""
    except (LanceError, OSError) as error:
        LOGGER.warning("an index of %r cannot be read, so all vectors are compared: %s", column.name, error)
        return None, f"an index cannot be read: {error}"


def _index(snapshot: Snapshot, query: NearestQuery, column: VectorColumn) -> OpenVectorIndex | None:
    """Return the index of a column that a query uses; None without any that has its metric."""
    for index in _indices(snapshot, query, column):
        if index.refusal is None and query.metric in (None, index.metric):
            _check_fits(index, column)
            return index
    return None


def _indices(snapshot: Snapshot, query: NearestQuery, column: VectorColumn) -> tuple[OpenVectorIndex, ...]:
    indices = vector_indices(snapshot.reader) if query.use_index else None
    return () if indices is None else indices.by_field.get(column.field_id, ())


def _check_fits(index: OpenVectorIndex, column: VectorColumn) -> None:
    for each in index.segments:
        dimension = each.source.centroids.shape[1]
        if (dimension, each.element) != (column.dimension, column.element) or each.source.metric != index.metric:
            raise CorruptFileError(
                f"{each.segment.folder.uri('')}: the index {index.name!r} is of {dimension} elements of the type "
                f"{each.element!r} by {each.source.metric}, and the column {column.name!r} of {column.dimension} of "
                f"{column.element!r}"
            )


def _use(index: OpenVectorIndex, query: NearestQuery, base_options: Mapping[str, Any]) -> IndexUse:
    tuning = query.tuning
    wanted = query.k * (tuning.refine or 1)
    if tuning.ef is not None and tuning.ef < wanted and index.segments[0].source.has_graphs:
        raise InvalidInputError(f"ef must be greater than or equal to k * refine_factor, {wanted}, got {tuning.ef}")
    probing = Probing(tuning.least, tuning.most, tuning.is_fixed, tuning.effort)
    unites = not base_options.get("fast_search")
    return IndexUse(index, probing, tuning.refine, tuning.approx_mode, unites, ef=tuning.ef)


def _of_segments(use: IndexUse, segments: tuple[str, ...]) -> IndexUse:
    """Return the use of some segments only, without other rows."""
    known = {each.segment.metadata.uuid for each in use.index.segments}
    unknown = sorted(set(segments) - known)
    if unknown:
        raise InvalidInputError(f"the index {use.index.name!r} has no segment {', '.join(unknown)}")
    return replace(use, index=use.index.with_segments(segments), unites=False)


def _in_indexed_fragments(snapshot: Snapshot, request: ScanRequest, index: OpenVectorIndex | None) -> ScanRequest:
    """Return the request restricted to the fragments of an index, if `fast_search` was given."""
    if not request.only_indexed:
        return request
    ids = snapshot.manifest.fragment_list.columns.ids.tolist()
    covered = frozenset[int]() if index is None else index.fragment_ids
    positions = range(len(ids)) if request.fragments is None else request.fragments
    kept = tuple(position for position in positions if ids[position] in covered)
    fragments = None if len(kept) == len(ids) else kept
    return replace(request, fragments=fragments, only_indexed=False)


def _reason(snapshot: Snapshot, query: NearestQuery, column: VectorColumn) -> str:
    if not query.use_index:
        return "use_index=False"
    refusals = [text for each in _indices(snapshot, query, column) if (text := each.refusal) is not None]
    return refusals[0] if refusals else "no vector index of the column has this metric"
