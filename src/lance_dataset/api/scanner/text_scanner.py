"""Scanners of full-text searches: `FullTextScanner`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lance_dataset.api.scanner.search_scanner import SearchScanner
from lance_dataset.api.scanner.statistics import ScanStatistics
from lance_dataset.errors import InvalidInputError, UnsupportedError
from lance_dataset.properties import cached_property
from lance_dataset.read.projection import project
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.scan.address_sets import restricted
from lance_dataset.scan.full_text.evaluating import TextSearch
from lance_dataset.scan.full_text.rows import DOCUMENT_INDEX, SCORE, TextRequest, resolved_query, text_rows
from lance_dataset.scan.metrics import ScanMetrics
from lance_dataset.scan.resolving import address_sets, resolve_request
from lance_dataset.scan.scored_output import ScoredOutput, scored_filter
from lance_dataset.scan.scored_rows import UNLIMITED_ROWS, ScoredRequest, ScoredRows
from lance_dataset.scan.text_queries import FullTextQuery, PlainText, check_text_query

if TYPE_CHECKING:
    from lance_dataset.scan.explain.plan_nodes import PlanNode

__all__ = ["FullTextScanner", "full_text_scanner", "text_request"]


#: Options that determine the output, besides the columns; and outputs that are kept.
_OUTPUT_OPTIONS = ("blob_handling", "with_row_id", "with_row_address", "disable_scoring_autoprojection")
_KEPT_OUTPUTS = 64


class FullTextScanner(SearchScanner):
    """Scan of the rows whose texts match a query. Make it with `ScannerBuilder.full_text_search`."""

    def __init__(
        self,
        snapshot: Snapshot,
        request: TextRequest,
        stats_callback: Callable[[ScanStatistics], object] | None = None,
    ) -> None:
        super().__init__(snapshot, request.wanted, stats_callback)
        self._text = request

    @cached_property
    def _restricted(self) -> TextRequest:
        """Request without the rows that address sets leave out."""
        wanted = self._scored
        candidates = restricted(self._snapshot.reader, self._text.candidates, wanted.allowed, wanted.blocked)
        return replace(self._text, candidates=candidates)

    def _find(self, metrics: ScanMetrics | None = None) -> ScoredRows:
        return text_rows(self._snapshot.reader, self._restricted)

    def _limited(self, limit: int) -> FullTextScanner:
        wanted = replace(self._scored, limit=limit)
        return FullTextScanner(self._snapshot, replace(self._text, wanted=wanted), self._callback)

    def _query(self) -> object:
        return self._text.search.query

    def _plan(self, *, thorough: bool = True) -> PlanNode:
        from lance_dataset.scan.full_text.plan import text_plan

        return text_plan(self._snapshot.reader, self._restricted)


class _Outputs:
    """Outputs of searches of a version. Its reader keeps them; a pickle leaves them out."""

    def __init__(self) -> None:
        self.known: dict[Any, ScoredOutput] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return _Outputs, ()


def _new_output(snapshot: Snapshot, options: Mapping[str, Any], by_element: bool) -> ScoredOutput:
    if by_element:
        return ScoredOutput.with_place(snapshot.scanned_schema, DOCUMENT_INDEX, SCORE, options)
    return ScoredOutput.of(snapshot.scanned_schema, SCORE, options)


def _output(snapshot: Snapshot, options: Mapping[str, Any], by_element: bool) -> ScoredOutput:
    """Return the output of a search. That of the same names is the same object, which knows how to take its columns."""
    columns = options.get("columns")
    names = () if columns is None else tuple(columns)
    if isinstance(columns, Mapping) or not all(isinstance(name, str) for name in names):
        return _new_output(snapshot, options, by_element)
    key = by_element, columns is None, names, *(options.get(name) for name in _OUTPUT_OPTIONS)
    outputs = snapshot.reader.companions.setdefault(_Outputs, _Outputs())
    assert isinstance(outputs, _Outputs)
    known = outputs.known.get(key)
    if known is None:
        known = _new_output(snapshot, options, by_element)
        if len(outputs.known) >= _KEPT_OUTPUTS:
            outputs.known.clear()
        outputs.known[key] = known
    return known


def full_text_scanner(
    snapshot: Snapshot, options: Mapping[str, Any], query: FullTextQuery | PlainText
) -> FullTextScanner:
    """Make the scanner of a full-text search. Parameters and errors are those of `text_request`."""
    request = text_request(snapshot, options, query)
    return FullTextScanner(snapshot, request, options.get("scan_stats_callback"))


def text_request(snapshot: Snapshot, options: Mapping[str, Any], query: FullTextQuery | PlainText) -> TextRequest:
    """Resolve the options of a full-text search.

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
        An option does not fit the version, or a column holds no text.
    """
    if options.get("nearest") is not None or options.get("minhash_search") is not None:
        raise InvalidInputError("nearest and full_text_query cannot be searched for at the same time")
    if options.get("include_deleted_rows"):
        raise InvalidInputError("Cannot include deleted rows in an FTS search")
    if options.get("row_range") is not None:
        raise UnsupportedError("a full-text search of a range of rows is not supported")
    schema, reader = snapshot.scanned_schema, snapshot.reader
    resolved = resolved_query(reader, schema, query)
    check_text_query(resolved)
    is_plain = isinstance(query, PlainText) and not query.columns
    search = TextSearch.of(reader, schema, resolved, by_row=is_plain)
    found = (DOCUMENT_INDEX, SCORE) if search.by_element else (SCORE,)
    filters_first = bool(options.get("prefilter"))
    handled = {"columns", "limit", "offset", "with_row_id", "with_row_address", "blob_handling"}
    handled |= set() if filters_first else {"filter"}
    base = resolve_request(snapshot, {name: value for name, value in options.items() if name not in handled})
    allowed, blocked = address_sets(options)
    wanted = ScoredRequest(
        _output(snapshot, options, search.by_element),
        postfilter=None if filters_first else scored_filter(schema, found, options.get("filter")),
        limit=options.get("limit", UNLIMITED_ROWS),
        offset=options.get("offset", 0),
        order_by=base.order_by,
        allowed=allowed,
        blocked=blocked,
        batch_size=base.batch_size,
    )
    candidates = replace(base, projection=project(schema, []), order_by=(), limit=None, offset=0)
    return TextRequest(search, candidates, wanted)
