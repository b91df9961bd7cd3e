"""Scanners of searches: `SearchScanner`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lance_dataset.api.scanner.progress import ProgressOption, reported_progress
from lance_dataset.api.scanner.read_counter import ReadCounter
from lance_dataset.api.scanner.scanner import BlobMode, LanceScanner
from lance_dataset.api.scanner.statistics import ScanStatistics, statistics_of, tell
from lance_dataset.arguments import check_count
from lance_dataset.errors import InvalidInputError, UnsupportedError
from lance_dataset.file.extensions import with_extensions
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.scan.metrics import ScanMetrics
from lance_dataset.scan.queries import MinHashQuery
from lance_dataset.scan.resolving import address_sets, resolve_request
from lance_dataset.scan.scored_output import ScoredOutput, scored_filter
from lance_dataset.scan.scored_rows import ScoredRequest, ScoredRows, scored_table
from lance_dataset.scan.similar_texts import SimilarTexts

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["SearchScanner", "minhash_scanner"]

_DISTANCE = pa.field("_distance", pa.float32())
_DEFAULT_LIMIT = 10


class SearchScanner(LanceScanner):
    """Scan of the rows that a search finds. Make it with a method of `ScannerBuilder`."""

    def __init__(
        self,
        search: SimilarTexts,
        request: ScoredRequest,
        stats_callback: Callable[[ScanStatistics], object] | None = None,
    ) -> None:
        self._search = search
        self._scored = request
        self._callback = stats_callback

    def to_table(self, *, progress: ProgressOption = None) -> pa.Table:
        """Run the search and collect the rows in a table. `progress` is as for other scans."""
        reader = self._search.snapshot.reader
        reads = ReadCounter(reader)
        request = self._scored
        found = self._search.find(request.fragments, only_indexed=request.only_indexed)
        distances = pa.RecordBatch.from_arrays([pa.array(found.distances)], schema=pa.schema([_DISTANCE]))
        table = scored_table(reader, ScoredRows(found.addresses, distances), request)
        with reported_progress(progress, lambda: table.num_rows) as reported:
            if reported is not None:
                reported.finish()
        if self._callback is not None:
            tell(self._callback, statistics_of(ScanMetrics(), reads.since()))
        return with_extensions(table, self.projected_schema)

    def to_batches(self, *, progress: ProgressOption = None) -> Iterator[pa.RecordBatch]:
        """Run the search as a stream of record batches. `progress` is as for other scans."""
        table = self.to_table(progress=progress).combine_chunks()
        yield from table.to_batches(max_chunksize=self._scored.batch_size)

    def to_pandas(
        self, *, blob_mode: BlobMode = "lazy", progress: ProgressOption = None, **kwargs: Any
    ) -> pd.DataFrame:
        """Run the search and convert the rows to a DataFrame; blob columns keep the form of the scan."""
        if blob_mode not in ("lazy", "bytes", "descriptions"):
            raise InvalidInputError("blob_mode must be one of: 'lazy', 'bytes', 'descriptions'")
        return self.to_table(progress=progress).to_pandas(**kwargs)

    def count_rows(self, *, progress: ProgressOption = None) -> int:
        """Not possible for a search: it has at most as many rows as its limit.

        Raises
        ------
        InvalidInputError
            Always.
        """
        raise InvalidInputError("Cannot count the rows of a search: it returns the best ones, up to its limit")

    def head(self, num_rows: int) -> pa.Table:
        """Find the best rows."""
        check_count("num_rows", num_rows)
        limited = replace(self._scored, limit=min(num_rows, self._scored.limit))
        return SearchScanner(self._search, limited, self._callback).to_table()

    @property
    def projected_schema(self) -> pa.Schema:
        """Schema of the output."""
        return self._scored.output.user_schema

    @property
    def dataset_schema(self) -> pa.Schema:
        """Schema of the dataset."""
        return self._search.snapshot.manifest.schema.arrow

    def __repr__(self) -> str:
        names = ", ".join(self.projected_schema.names) or "no columns"
        query = self._search.query
        return f"LanceScanner({names} of {query!r}, version={self._search.snapshot.version})"

    def explain_plan(self, verbose: bool = False) -> str:
        """Describe the plan of the search as a tree of steps, the last step first."""
        if not isinstance(verbose, bool):
            raise TypeError(f"verbose must be True or False, not {verbose!r}")
        request, search = self._scored, self._search
        wanted = request.limit + request.offset
        left = () if request.only_indexed else search.unindexed(request.fragments)
        steps = [
            f"Project: columns=[{', '.join(request.output.schema.names)}]",
            f"Limit: skip={request.offset}, fetch={request.limit}",
            *([f"Sort: by=[{', '.join(key.column for key in request.order_by)}]"] if request.order_by else ()),
            *([f"Filter: {request.postfilter}"] if request.postfilter is not None else ()),
        ]
        where = "" if request.prefilter is None else f", where={request.prefilter}"
        lines = [f"{'  ' * depth}{step}" for depth, step in enumerate(steps)]
        inside = "  " * len(steps)
        segments = len(search.index.segments)
        column = search.query.column
        lines.append(f"{inside}MinHashSearch: column={column}, limit={wanted}, segments={segments}{where}")
        if left:
            lines.append(f"{inside}MinHashFlatSearch: column={column}, limit={wanted}, fragments={len(left)}{where}")
        return "\n".join(lines)

    def analyze_plan(self, count_rows: bool = False) -> str:
        """Not supported for searches."""
        raise UnsupportedError("analyze_plan of a search is not supported; explain_plan describes it")


def minhash_scanner(snapshot: Snapshot, options: Mapping[str, Any], query: MinHashQuery) -> SearchScanner:
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
    return SearchScanner(search, request, options.get("scan_stats_callback"))
