"""Scan that is ready to run: `LanceScanner`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias

import pyarrow as pa
import pyarrow.dataset as pads

from lance_dataset.api.blob import blob_file_columns
from lance_dataset.api.scanner.progress import Progress, ProgressOption, progress_metrics, reported_progress
from lance_dataset.api.scanner.read_counter import ReadCounter
from lance_dataset.api.scanner.statistics import ScanStatistics, statistics_of, tell
from lance_dataset.arguments import check_count
from lance_dataset.errors import InvalidInputError, UnsupportedError
from lance_dataset.file.blob_fields import is_described
from lance_dataset.file.extensions import with_extensions
from lance_dataset.late_dataclass import dataclass
from lance_dataset.properties import cached_property
from lance_dataset.read.projection import located_projection, with_blob_values
from lance_dataset.read.table_reader import TableReader
from lance_dataset.scan.address_sets import RowAddressSet, restricted
from lance_dataset.scan.metrics import ScanMetrics
from lance_dataset.scan.request import ScanRequest

if TYPE_CHECKING:
    import pandas as pd

    from lance_dataset.scan.explain.plan_picture import PlanText

__all__ = ["BlobMode", "LanceScanner"]

BlobMode: TypeAlias = Literal["lazy", "bytes", "descriptions"]
_BLOB_MODES = ("lazy", "bytes", "descriptions")


@dataclass(frozen=True)
class _Run:
    """One run of a scan: its request and its progress."""

    request: ScanRequest
    progress: Progress | None


class LanceScanner(pads.Scanner):
    """Scan that can run any number of times. Make it with `LanceDataset.scanner` or `ScannerBuilder`."""

    def __init__(
        self,
        reader: TableReader,
        request: ScanRequest,
        *,
        allowed: RowAddressSet | None = None,
        blocked: RowAddressSet | None = None,
        stats_callback: Callable[[ScanStatistics], object] | None = None,
    ) -> None:
        self._reader = reader
        self._asked = request
        self._allowed = allowed
        self._blocked = blocked
        self._stats_callback = stats_callback

    @cached_property
    def _request(self) -> ScanRequest:
        return restricted(self._reader, self._asked, self._allowed, self._blocked)

    def _changed(self, **changes: Any) -> LanceScanner:
        """Return a copy of the scan with another request."""
        return LanceScanner(
            self._reader,
            replace(self._asked, **changes),
            allowed=self._allowed,
            blocked=self._blocked,
            stats_callback=self._stats_callback,
        )

    # -- results -------------------------------------------------------------------------------------------------

    def to_table(self, *, progress: ProgressOption = None) -> pa.Table:
        """Run the scan and collect the rows in a table.

        Parameters
        ----------
        progress
            True for a progress bar (needs tqdm), or a function that is called from time to time with the number of rows
            done and the total number, by one thread at a time.

        Returns
        -------
        pyarrow.Table
        """
        from lance_dataset.scan.scan import scan_batches, scan_table

        with self._running(progress) as run:
            if run.progress is None:
                return self._for_user(scan_table(self._reader, run.request))
            batches, meter = [], self._reader.limit.meter("the result of the scan")
            for batch in _counted(scan_batches(self._reader, run.request), run.progress):
                meter.add(batch.nbytes)
                batches.append(batch)
            return self._for_user(pa.Table.from_batches(batches, run.request.projection.schema))

    def to_batches(self, *, progress: ProgressOption = None) -> Iterator[pa.RecordBatch]:
        """Run the scan as a stream of record batches, in bounded memory. `progress` is as in `to_table`."""
        from lance_dataset.scan.scan import scan_batches

        with self._running(progress) as run:
            batches = scan_batches(self._reader, run.request)
            for batch in batches if run.progress is None else _counted(batches, run.progress):
                yield self._for_user(batch)

    def to_reader(self, *, progress: ProgressOption = None) -> pa.RecordBatchReader:
        """Run the scan as a `pyarrow.RecordBatchReader`. `progress` is as in `to_table`."""
        return pa.RecordBatchReader.from_batches(self.projected_schema, self.to_batches(progress=progress))

    def to_pandas(
        self, *, blob_mode: BlobMode = "lazy", progress: ProgressOption = None, **kwargs: Any
    ) -> pd.DataFrame:
        """Run the scan and convert the rows to a DataFrame. Other keywords go to `pyarrow.Table.to_pandas`.

        Parameters
        ----------
        blob_mode
            Form of blob columns: ``lazy`` for `BlobFile` objects, ``bytes``, or ``descriptions``.
        progress
            As in `to_table`.
        """
        if blob_mode not in _BLOB_MODES:
            raise InvalidInputError(f"blob_mode must be one of: {', '.join(map(repr, _BLOB_MODES))}")
        blobs = any(is_described(node) for output in self._asked.projection.columns for node in output.below)
        if blobs and blob_mode == "bytes":
            values = self._changed(projection=with_blob_values(self._asked.projection))
            return values.to_pandas(progress=progress, **kwargs)
        if blobs and blob_mode == "lazy":
            return self._lazy_pandas(kwargs, progress)
        return self.to_table(progress=progress).to_pandas(**kwargs)

    def _lazy_pandas(self, options: Mapping[str, Any], progress: ProgressOption) -> pd.DataFrame:
        if self._asked.include_deleted:
            raise UnsupportedError("deleted rows have no address to find their blobs by; pass another blob_mode")
        outputs = self._asked.projection.columns
        located = self._changed(projection=located_projection(self._asked.projection))
        table = located.to_table(progress=progress)
        addresses = table.column(len(outputs)).to_numpy()
        table = self._for_user(table.select(range(len(outputs))))
        frame = table.to_pandas(**options)
        for number, files in blob_file_columns(self._reader, outputs, table, addresses).items():
            frame[outputs[number].arrow.name] = files
        return frame

    def count_rows(self, *, progress: ProgressOption = None) -> int:
        """Count the rows that the scan returns. `progress` is as in `to_table`."""
        from lance_dataset.scan.scan import count

        with reported_progress(progress, self._rows_in_all) as reported:
            if reported is None:
                return count(self._reader, self._request)
            return count(self._reader, replace(self._request, metrics=progress_metrics(reported)))

    def head(self, num_rows: int) -> pa.Table:
        """Read the first rows."""
        check_count("num_rows", num_rows)
        limit = num_rows if self._asked.limit is None else min(num_rows, self._asked.limit)
        return self._changed(limit=limit).to_table()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_reader().__arrow_c_stream__(requested_schema)

    # -- description ---------------------------------------------------------------------------------------------

    @property
    def projected_schema(self) -> pa.Schema:
        """Schema of the output."""
        return self._asked.projection.user_schema

    @property
    def dataset_schema(self) -> pa.Schema:
        """Schema of the dataset."""
        return self._reader.manifest.schema.arrow

    @property
    def schema(self) -> pa.Schema:
        """Schema of the output."""
        return self.projected_schema

    def __repr__(self) -> str:
        names = ", ".join(self.projected_schema.names) or "no columns"
        rows = "" if self._asked.filter is None else f" where {self._asked.filter}"
        return f"LanceScanner({names}{rows}, version={self._reader.manifest.version})"

    def explain_plan(self, verbose: bool = False) -> PlanText:
        """Describe the plan of the scan as a tree of steps, the last step first.

        Parameters
        ----------
        verbose
            True to show more about each step: columns, fragments with their files, and rows to scan.

        Returns
        -------
        PlanText
        """
        from lance_dataset.scan.explain.plan import scan_plan
        from lance_dataset.scan.explain.plan_nodes import rendered

        if not isinstance(verbose, bool):
            raise TypeError(f"verbose must be True or False, not {verbose!r}")
        return rendered(scan_plan(self._reader, self._request, thorough=verbose), verbose=verbose)

    def analyze_plan(self, count_rows: bool = False) -> PlanText:
        """Run the scan, discard its rows, and describe the plan with statistics of every step.

        Parameters
        ----------
        count_rows
            True to run `count_rows` instead.

        Returns
        -------
        PlanText
            The tree of `explain_plan` with rows, batches, bytes and time of every step, and the totals. The time of a
            step is summed over threads. Evaluating the filter is part of the scan step. A page of a memory-mapped file
            counts as read when the dataset first opens it, so another run reads nothing.
        """
        from lance_dataset.scan.explain.plan import counting_plan, scan_plan
        from lance_dataset.scan.explain.plan_nodes import RunTotals, rendered
        from lance_dataset.scan.scan import count, scan_batches

        if not isinstance(count_rows, bool):
            raise TypeError(f"count_rows must be True or False, not {count_rows!r}")
        metrics, reads = ScanMetrics(), ReadCounter(self._reader)
        request = replace(self._request, metrics=metrics)
        start, rows, batches, size = time.perf_counter(), 0, 0, 0
        if count_rows:
            rows = count(self._reader, request)
        else:
            for batch in scan_batches(self._reader, request):
                rows, batches, size = rows + batch.num_rows, batches + 1, size + batch.nbytes
        seconds = time.perf_counter() - start
        totals = RunTotals(rows, batches, size, seconds, *reads.since()[:2])
        plan = counting_plan(self._reader, self._request) if count_rows else scan_plan(self._reader, self._request)
        return rendered(plan, metrics=metrics, totals=totals)

    # -- other methods of pyarrow's scanners -----------------------------------------------------------------------

    def take(self, indices: object) -> NoReturn:
        """Not possible on a scanner; use `LanceDataset.take`."""
        raise UnsupportedError("take is not supported on a scanner; use LanceDataset.take")

    def scan_batches(self) -> NoReturn:
        """Not available; use `to_batches`."""
        raise UnsupportedError("scan_batches is not supported; use to_batches")

    @staticmethod
    def from_dataset(*args: object, **kwargs: object) -> NoReturn:
        """Not available; use `LanceDataset.scanner`."""
        raise UnsupportedError("use LanceDataset.scanner to make a scanner")

    @staticmethod
    def from_fragment(*args: object, **kwargs: object) -> NoReturn:
        """Not available; use `LanceFragment.scanner`."""
        raise UnsupportedError("use LanceFragment.scanner to make a scanner")

    @staticmethod
    def from_batches(*args: object, **kwargs: object) -> NoReturn:
        """Not available; write the batches into a dataset first."""
        raise UnsupportedError("a Lance scanner reads datasets; write the batches into one first")

    # -- running -------------------------------------------------------------------------------------------------

    @contextmanager
    def _running(self, option: ProgressOption) -> Iterator[_Run]:
        """Provide a run of the scan; report its progress and statistics if the user asked for them."""
        with reported_progress(option, self._rows_in_all) as progress:
            if progress is None and self._stats_callback is None:
                yield _Run(self._request, None)
                return
            metrics = ScanMetrics() if progress is None else progress_metrics(progress)
            reads = ReadCounter(self._reader)
            yield _Run(replace(self._request, metrics=metrics), progress)
            if self._stats_callback is not None:
                tell(self._stats_callback, statistics_of(metrics, reads.since()))

    def _rows_in_all(self) -> int:
        """Return the number of rows to scan."""
        from lance_dataset.scan.scan import count

        request = self._request
        if request.filter is None:
            return count(self._reader, request)
        return count(self._reader, replace(request, filter=None, limit=None, offset=0))

    def _for_user(self, data: Any) -> Any:
        if self._asked.projection.has_extensions:
            return with_extensions(data, self.projected_schema)
        return data


def _counted(batches: Iterator[pa.RecordBatch], progress: Progress) -> Iterator[pa.RecordBatch]:
    done = 0
    for batch in batches:
        done += batch.num_rows
        progress.reach(done)
        yield batch
