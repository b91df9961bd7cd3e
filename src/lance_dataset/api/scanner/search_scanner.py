"""Scanners of searches: `SearchScanner`, which those of each kind of search complete."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lance_dataset.api.scanner.progress import ProgressOption, reported_progress
from lance_dataset.api.scanner.read_counter import ReadCounter
from lance_dataset.api.scanner.scanner import BlobMode, LanceScanner
from lance_dataset.api.scanner.statistics import ScanStatistics, statistics_of, tell
from lance_dataset.arguments import check_count
from lance_dataset.errors import InvalidInputError
from lance_dataset.file.extensions import with_extensions
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.scan.metrics import ScanMetrics
from lance_dataset.scan.scored_rows import ScoredRequest, ScoredRows, taken_table

if TYPE_CHECKING:
    import pandas as pd

    from lance_dataset.scan.explain.plan_nodes import PlanNode
    from lance_dataset.scan.explain.plan_picture import PlanText

__all__ = ["SearchScanner"]


class SearchScanner(LanceScanner):
    """Scan of the rows that a search finds. Make it with a method of `ScannerBuilder`."""

    def __init__(
        self,
        snapshot: Snapshot,
        request: ScoredRequest,
        stats_callback: Callable[[ScanStatistics], object] | None = None,
    ) -> None:
        self._snapshot = snapshot
        self._scored = request
        self._callback = stats_callback

    @abstractmethod
    def _find(self, metrics: ScanMetrics | None = None) -> ScoredRows:
        """Return the rows of the result, in its order."""

    @abstractmethod
    def _limited(self, limit: int) -> SearchScanner:
        """Return the same search with another limit."""

    @abstractmethod
    def _query(self) -> object:
        """Return the query, for messages."""

    @abstractmethod
    def _plan(self, *, thorough: bool = True) -> PlanNode:
        """Return the plan, the last step first."""

    def to_table(self, *, progress: ProgressOption = None) -> pa.Table:
        """Run the search and collect the rows in a table. `progress` is as for other scans."""
        reader = self._snapshot.reader
        metrics, reads = None, None
        if self._callback is not None:
            metrics, reads = ScanMetrics(), ReadCounter(reader)
        table = taken_table(reader, self._find(metrics), self._scored)
        with reported_progress(progress, lambda: table.num_rows) as reported:
            if reported is not None:
                reported.finish()
        if self._callback is not None and metrics is not None and reads is not None:
            tell(self._callback, statistics_of(metrics, reads.since()))
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
        """Run the search and count the rows. `progress` is as for other scans."""
        count = len(self._find().addresses)
        with reported_progress(progress, lambda: count) as reported:
            if reported is not None:
                reported.finish()
        return count

    def head(self, num_rows: int) -> pa.Table:
        """Find the best rows."""
        check_count("num_rows", num_rows)
        return self._limited(min(num_rows, self._scored.limit)).to_table()

    @property
    def projected_schema(self) -> pa.Schema:
        """Schema of the output."""
        return self._scored.output.user_schema

    @property
    def dataset_schema(self) -> pa.Schema:
        """Schema of the dataset."""
        return self._snapshot.manifest.schema.arrow

    def __repr__(self) -> str:
        names = ", ".join(self.projected_schema.names) or "no columns"
        return f"LanceScanner({names} of {self._query()!r}, version={self._snapshot.version})"

    def explain_plan(self, verbose: bool = False) -> PlanText:
        """Describe the plan of the search as a tree of steps, the last step first. See `LanceScanner.explain_plan`."""
        from lance_dataset.scan.explain.plan_nodes import rendered

        if not isinstance(verbose, bool):
            raise TypeError(f"verbose must be True or False, not {verbose!r}")
        return rendered(self._plan(thorough=verbose), verbose=verbose)

    def analyze_plan(self, count_rows: bool = False) -> PlanText:
        """Run the search, discard its rows, and describe the plan with what it took.

        See `LanceScanner.analyze_plan`.
        """
        from lance_dataset.scan.explain.plan_nodes import RunTotals, rendered

        if not isinstance(count_rows, bool):
            raise TypeError(f"count_rows must be True or False, not {count_rows!r}")
        reader, metrics = self._snapshot.reader, ScanMetrics()
        reads, start = ReadCounter(reader), time.perf_counter()
        found = self._find(metrics)
        size = 0 if count_rows else taken_table(reader, found, self._scored).nbytes
        seconds = time.perf_counter() - start
        totals = RunTotals(len(found.addresses), 0 if count_rows else 1, size, seconds, *reads.since()[:2])
        return rendered(self._plan(), metrics=metrics, totals=totals)
