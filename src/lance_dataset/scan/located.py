"""Selected rows of a scan with their addresses, window by window, for changes that look rows up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.read.concatenate import join_arrays
from lance_dataset.read.table_reader import TableReader
from lance_dataset.scan.engine import Scan
from lance_dataset.scan.request import ScanRequest
from lance_dataset.scan.selection import Selection
from lance_dataset.scan.strategy import strategy

__all__ = ["LocatedRows", "map_located_rows"]

_Result = TypeVar("_Result")

#: Minimum number of rows of a window, and minimum number of windows for each thread.
_LEAST_ROWS = 1 << 14
_PARTS = 2


@dataclass(frozen=True)
class LocatedRows:
    """Selected rows of one window of a scan."""

    _scan: Scan
    _selection: Selection
    _schema: pa.Schema

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return self._selection.num_rows

    def read(self) -> pa.RecordBatch:
        """Read the output columns, each as one array."""
        arrays = [
            chunks[0] if len(chunks) == 1 else join_arrays(chunks, field.type, field.name)
            for chunks, field in zip(self._scan.read(self._selection).columns, self._schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def addresses(self, places: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Return the addresses of some of the rows.

        Parameters
        ----------
        places : int64[n]
            Numbers of the rows in the batch, ascending.
        """
        selection = self._selection
        if selection.places is not None:
            places = selection.places[places]
        window = selection.window
        cuts = np.searchsorted(places, window.starts).tolist()
        parts = [
            part.fragment.addresses(part.rows_at(places[low:high] - start))
            for part, start, (low, high) in zip(window.slices, window.starts.tolist(), pairwise(cuts), strict=False)
            if low < high
        ]
        return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, np.uint64), *parts])


def map_located_rows(
    reader: TableReader, request: ScanRequest, work: Callable[[LocatedRows], _Result], *, most_rows: int
) -> Iterator[_Result]:
    """Apply a function to the selected rows of each window, on several threads, and yield the results in scan order.

    Parameters
    ----------
    reader, request
        Version of the table, and scan of it, without a limit or an order.
    work
        Called once for each window, also for windows without selected rows.
    most_rows
        Maximum number of rows of a window.
    """
    plan = strategy(reader, request)
    part = max(reader.num_rows // (_PARTS * plan.threads), _LEAST_ROWS)
    rows = min(plan.window_rows, part, most_rows)
    scan = Scan(reader, request, replace(plan, window_rows=rows, first_rows=min(plan.first_rows, rows)))
    schema = request.projection.schema
    return scan.each(lambda selection: work(LocatedRows(scan, selection, schema)))
