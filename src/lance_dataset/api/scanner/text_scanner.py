"""Scanners of full-text searches: `FullTextScanner`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from lance_dataset.api.scanner.progress import ProgressOption, reported_progress
from lance_dataset.api.scanner.read_counter import ReadCounter
from lance_dataset.api.scanner.search_scanner import SearchScanner
from lance_dataset.api.scanner.statistics import ScanStatistics, statistics_of, tell
from lance_dataset.arguments import check_count
from lance_dataset.errors import InvalidInputError, UnsupportedError
from lance_dataset.file.extensions import with_extensions
from lance_dataset.read.projection import project
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.scan.address_sets import restricted
from lance_dataset.scan.full_text.evaluating import TextSearch
from lance_dataset.scan.full_text.rows import SCORE, TextRequest, resolved_query, text_rows
from lance_dataset.scan.metrics import ScanMetrics
from lance_dataset.scan.nearest.rows import UNLIMITED_ROWS
from lance_dataset.scan.resolving import address_sets, resolve_request
from lance_dataset.scan.scored_output import ScoredOutput, scored_filter
from lance_dataset.scan.scored_rows import ScoredRequest, taken_table
from lance_dataset.scan.text_queries import FullTextQuery, PlainText, check_text_query

__all__ = ["FullTextScanner", "full_text_scanner"]


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
        self._snapshot = snapshot
        self._text = request
        self._scored = request.wanted
        self._callback = stats_callback

    @cached_property
    def _restricted(self) -> TextRequest:
        """Request without the rows that address sets leave out."""
        wanted = self._scored
        candidates = restricted(self._snapshot.reader, self._text.candidates, wanted.allowed, wanted.blocked)
        return replace(self._text, candidates=candidates)

    def to_table(self, *, progress: ProgressOption = None) -> pa.Table:
        """Run the search and collect the rows in a table. `progress` is as for other scans."""
        reader = self._snapshot.reader
        reads = None if self._callback is None else ReadCounter(reader)
        table = taken_table(reader, text_rows(reader, self._restricted), self._scored)
        with reported_progress(progress, lambda: table.num_rows) as reported:
            if reported is not None:
                reported.finish()
        if self._callback is not None and reads is not None:
            tell(self._callback, statistics_of(ScanMetrics(), reads.since()))
        return with_extensions(table, self.projected_schema)

    def count_rows(self, *, progress: ProgressOption = None) -> int:
        """Run the search and count the rows. `progress` is as for other scans."""
        count = len(text_rows(self._snapshot.reader, self._restricted).addresses)
        with reported_progress(progress, lambda: count) as reported:
            if reported is not None:
                reported.finish()
        return count

    def head(self, num_rows: int) -> pa.Table:
        """Find the best rows."""
        check_count("num_rows", num_rows)
        wanted = replace(self._scored, limit=min(num_rows, self._scored.limit))
        return FullTextScanner(self._snapshot, replace(self._text, wanted=wanted), self._callback).to_table()

    @property
    def dataset_schema(self) -> pa.Schema:
        """Schema of the dataset."""
        return self._snapshot.manifest.schema.arrow

    def __repr__(self) -> str:
        names = ", ".join(self.projected_schema.names) or "no columns"
        return f"LanceScanner({names} of {self._text.search.query!r}, version={self._snapshot.version})"

    def explain_plan(self, verbose: bool = False) -> str:
        """Describe the plan of the search as a tree of steps, the last step first. See `LanceScanner.explain_plan`."""
        from lance_dataset.scan.explain.plan_nodes import rendered
        from lance_dataset.scan.full_text.plan import text_plan

        if not isinstance(verbose, bool):
            raise TypeError(f"verbose must be True or False, not {verbose!r}")
        return rendered(text_plan(self._snapshot.reader, self._restricted), verbose=verbose)

    def analyze_plan(self, count_rows: bool = False) -> str:
        """Run the search, discard its rows, and describe the plan with its time and the bytes read.

        See `LanceScanner.analyze_plan`.
        """
        from lance_dataset.scan.explain.plan_nodes import RunTotals, rendered
        from lance_dataset.scan.full_text.plan import text_plan

        if not isinstance(count_rows, bool):
            raise TypeError(f"count_rows must be True or False, not {count_rows!r}")
        reader, metrics = self._snapshot.reader, ScanMetrics()
        reads, start = ReadCounter(reader), time.perf_counter()
        found = text_rows(reader, self._restricted)
        size = 0 if count_rows else taken_table(reader, found, self._scored).nbytes
        seconds = time.perf_counter() - start
        totals = RunTotals(len(found.addresses), 0 if count_rows else 1, size, seconds, *reads.since()[:2])
        return rendered(text_plan(reader, self._restricted), metrics=metrics, totals=totals)


class _Outputs:
    """Outputs of searches of a version. Its reader keeps them; a pickle leaves them out."""

    def __init__(self) -> None:
        self.known: dict[Any, ScoredOutput] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return _Outputs, ()


def _output(snapshot: Snapshot, options: Mapping[str, Any]) -> ScoredOutput:
    """Return the output of a search. That of the same names is the same object, which knows how to take its columns."""
    columns = options.get("columns")
    names = () if columns is None else tuple(columns)
    if isinstance(columns, Mapping) or not all(isinstance(name, str) for name in names):
        return ScoredOutput.of(snapshot.scanned_schema, SCORE, options)
    key = columns is None, names, *(options.get(name) for name in _OUTPUT_OPTIONS)
    outputs = snapshot.reader.companions.setdefault(_Outputs, _Outputs())
    assert isinstance(outputs, _Outputs)
    known = outputs.known.get(key)
    if known is None:
        known = ScoredOutput.of(snapshot.scanned_schema, SCORE, options)
        if len(outputs.known) >= _KEPT_OUTPUTS:
            outputs.known.clear()
        outputs.known[key] = known
    return known


def full_text_scanner(
    snapshot: Snapshot, options: Mapping[str, Any], query: FullTextQuery | PlainText
) -> FullTextScanner:
    """Make the scanner of a full-text search.

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
    search = TextSearch.of(reader, schema, resolved)
    filters_first = bool(options.get("prefilter"))
    handled = {"columns", "limit", "offset", "with_row_id", "with_row_address", "blob_handling"}
    handled |= set() if filters_first else {"filter"}
    base = resolve_request(snapshot, {name: value for name, value in options.items() if name not in handled})
    allowed, blocked = address_sets(options)
    wanted = ScoredRequest(
        _output(snapshot, options),
        postfilter=None if filters_first else scored_filter(schema, (SCORE,), options.get("filter")),
        limit=options.get("limit", UNLIMITED_ROWS),
        offset=options.get("offset", 0),
        order_by=base.order_by,
        allowed=allowed,
        blocked=blocked,
        batch_size=base.batch_size,
    )
    candidates = replace(base, projection=project(schema, []), order_by=(), limit=None, offset=0)
    return FullTextScanner(snapshot, TextRequest(search, candidates, wanted), options.get("scan_stats_callback"))
