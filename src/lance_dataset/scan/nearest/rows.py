"""Rows that a vector search returns."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from lance_dataset.read.table_reader import TableReader
from lance_dataset.scan.metrics import ScanMetrics
from lance_dataset.scan.narrowing import narrowed
from lance_dataset.scan.nearest.candidates import find_nearest
from lance_dataset.scan.nearest.indexed import IndexUse, search_index
from lance_dataset.scan.nearest.search import VectorSearch
from lance_dataset.scan.request import ScanRequest
from lance_dataset.scan.scored_rows import ScoredRequest, ScoredRows, arranged

__all__ = ["DISTANCE", "QUERY_INDEX", "NearestRequest", "nearest_rows"]

#: Columns that a search adds: the distance, and the number of the query among several.
DISTANCE = pa.field("_distance", pa.float32())
QUERY_INDEX = pa.field("query_index", pa.int32(), nullable=False)


@dataclass(frozen=True)
class NearestRequest:
    """A vector search of one version.

    Attributes
    ----------
    search
        The search.
    candidates
        Scan of the vectors to compare, with the filter that comes first.
    wanted
        What to do with the rows found, and their output.
    reason
        Why no index is used, as text for plans.
    use
        How an index is used; None without one.
    """

    search: VectorSearch
    candidates: ScanRequest
    wanted: ScoredRequest
    reason: str = ""
    use: IndexUse | None = None


def nearest_rows(reader: TableReader, request: NearestRequest, metrics: ScanMetrics | None = None) -> ScoredRows:
    """Run a search, then the filter, the order and the limit that come after it.

    Parameters
    ----------
    reader
        The version.
    request
        The search.
    metrics
        Counters of the steps; None to count nothing.

    Raises
    ------
    CorruptFileError
        A file contradicts the format.
    """
    if request.use is None:
        scanned = narrowed(reader, request.candidates)
        found = find_nearest(reader, replace(scanned, metrics=metrics), request.search)
    else:
        found = search_index(reader, request.candidates, request.search, request.use, metrics)
    distances = pa.array(np.concatenate([rows.distances for rows in found]))
    columns, fields = [distances], [DISTANCE]
    if request.search.is_batch:
        numbers = np.repeat(np.arange(len(found), dtype=np.int32), [len(rows.distances) for rows in found])
        columns, fields = [pa.array(numbers), distances], [QUERY_INDEX, DISTANCE]
    addresses = np.concatenate([rows.addresses for rows in found])
    best = ScoredRows(addresses, pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields)))
    return arranged(reader, best, request.wanted)
