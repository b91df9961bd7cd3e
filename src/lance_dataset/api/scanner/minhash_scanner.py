"""Scanners of searches for similar texts: `MinHashScanner`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lance_dataset.api.scanner.progress import ProgressOption
from lance_dataset.api.scanner.search_scanner import SearchScanner
from lance_dataset.api.scanner.statistics import ScanStatistics
from lance_dataset.errors import InvalidInputError, UnsupportedError
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.scan.explain.plan_picture import PlanText
from lance_dataset.scan.metrics import ScanMetrics
from lance_dataset.scan.queries import MinHashQuery
from lance_dataset.scan.resolving import address_sets, resolve_request
from lance_dataset.scan.scored_output import ScoredOutput, scored_filter
from lance_dataset.scan.scored_rows import ScoredRequest, ScoredRows, best_rows
from lance_dataset.scan.similar_texts import SimilarTexts

if TYPE_CHECKING:
    from lance_dataset.scan.explain.plan_nodes import PlanNode

__all__ = ["MinHashScanner", "minhash_scanner"]

_DISTANCE = pa.field("_distance", pa.float32())
_DEFAULT_LIMIT = 10


class MinHashScanner(SearchScanner):
    """Scan of the rows whose texts are similar to another. Make it with `ScannerBuilder.minhash_search`."""

    def __init__(
        self,
        search: SimilarTexts,
        request: ScoredRequest,
        stats_callback: Callable[[ScanStatistics], object] | None = None,
    ) -> None:
        super().__init__(search.snapshot, request, stats_callback)
        self._search = search

    def _find(self, metrics: ScanMetrics | None = None) -> ScoredRows:
        request = self._scored
        found = self._search.find(request.fragments, only_indexed=request.only_indexed)
        distances = pa.RecordBatch.from_arrays([pa.array(found.distances)], schema=pa.schema([_DISTANCE]))
        return best_rows(self._snapshot.reader, ScoredRows(found.addresses, distances), request)

    def _limited(self, limit: int) -> MinHashScanner:
        return MinHashScanner(self._search, replace(self._scored, limit=limit), self._callback)

    def _query(self) -> object:
        return self._search.query

    def _plan(self, *, thorough: bool = True) -> PlanNode:
        raise UnsupportedError("the plan of a search for similar texts has a text only; call explain_plan")

    def count_rows(self, *, progress: ProgressOption = None) -> int:
        """Not possible for a search: it has at most as many rows as its limit.

        Raises
        ------
        InvalidInputError
            Always.
        """
        raise InvalidInputError("Cannot count the rows of a search: it returns the best ones, up to its limit")

    def explain_plan(self, verbose: bool = False) -> PlanText:
        """Describe the plan of the search as a tree of steps, the last step first."""
        if not isinstance(verbose, bool):
            raise TypeError(f"verbose must be True or False, not {verbose!r}")
        request, search = self._scored, self._search
        wanted = request.limit + request.offset
        left = () if request.only_indexed else search.unindexed(request.fragments)
        steps = [
            f"ProjectionExec: expr=[{', '.join(request.output.schema.names)}]",
            f"GlobalLimitExec: skip={request.offset}, fetch={request.limit}",
            *([f"SortExec: expr=[{', '.join(key.column for key in request.order_by)}]"] if request.order_by else ()),
            *([f"FilterExec: {request.postfilter}"] if request.postfilter is not None else ()),
        ]
        where = "" if request.prefilter is None else f", where={request.prefilter}"
        lines = [f"{_corner(depth)}{step}" for depth, step in enumerate(steps)]
        inside = _corner(len(steps))
        segments = len(search.index.segments)
        column = search.query.column
        lines.append(f"{inside}MinHashSearch: column={column}, limit={wanted}, segments={segments}{where}")
        if left:
            lines.append(f"{inside}MinHashFlatSearch: column={column}, limit={wanted}, fragments={len(left)}{where}")
        return PlanText("\n".join(lines))

    def analyze_plan(self, count_rows: bool = False) -> PlanText:
        """Not supported for searches."""
        raise UnsupportedError("analyze_plan of a search is not supported; explain_plan describes it")


def _corner(depth: int) -> str:
    return "   " * (depth - 1) + "└─ " if depth else ""


def minhash_scanner(snapshot: Snapshot, options: Mapping[str, Any], query: MinHashQuery) -> MinHashScanner:
    """Make the scanner of a search for similar texts.

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
    FieldNotFoundError, FilterError, InvalidInputError, UnsupportedError
        An option does not fit the version, or the column has no MinHash index.
    """
    if options.get("include_deleted_rows"):
        raise InvalidInputError("Cannot include deleted rows in a MinHash search")
    if options.get("row_range") is not None:
        raise UnsupportedError("a MinHash search of a range of rows is not supported")
    handled = {"columns", "filter", "limit", "offset", "with_row_id", "with_row_address", "blob_handling"}
    base = resolve_request(snapshot, {name: value for name, value in options.items() if name not in handled})
    search = SimilarTexts.of(snapshot, query)
    schema = snapshot.scanned_schema
    prefilters = bool(options.get("prefilter"))
    condition = scored_filter(schema, () if prefilters else (_DISTANCE,), options.get("filter"))
    allowed, blocked = address_sets(options)
    request = ScoredRequest(
        ScoredOutput.of(schema, _DISTANCE, options),
        prefilter=condition if prefilters else None,
        postfilter=None if prefilters else condition,
        limit=options.get("limit", _DEFAULT_LIMIT),
        offset=options.get("offset", 0),
        order_by=base.order_by,
        fragments=base.fragments,
        allowed=allowed,
        blocked=blocked,
        only_indexed=base.only_indexed,
        batch_size=base.batch_size,
    )
    return MinHashScanner(search, request, options.get("scan_stats_callback"))
