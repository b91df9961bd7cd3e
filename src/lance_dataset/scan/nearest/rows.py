"""Rows that a vector search returns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import LanceError
from lance_dataset.log import LOGGER
from lance_dataset.read.table_reader import TableReader
from lance_dataset.scan.metrics import ScanMetrics
from lance_dataset.scan.narrowing import narrowed
from lance_dataset.scan.nearest.candidates import FoundRows, find_nearest
from lance_dataset.scan.nearest.indexed import IndexUse, search_index
from lance_dataset.scan.nearest.search import VectorSearch
from lance_dataset.scan.request import ScanRequest
from lance_dataset.scan.scored_rows import ScoredRequest, ScoredRows, arranged

__all__ = ["DISTANCE", "QUERY_INDEX", "NearestRequest", "nearest_rows"]

#: Columns that a search adds: the distance, and the number of the query among several.
DISTANCE = pa.field("_distance", pa.float32())
QUERY_INDEX = pa.field("query_index", pa.int32(), nullable=False)
_FOUND, _FOUND_BY_QUERY = pa.schema([DISTANCE]), pa.schema([QUERY_INDEX, DISTANCE])


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
    found = _found(reader, request, metrics)
    if not request.search.is_batch:
        columns, schema = [pa.array(found[0].distances)], _FOUND
    else:
        numbers = np.repeat(np.arange(len(found), dtype=np.int32), [len(rows.distances) for rows in found])
        columns, schema = [pa.array(numbers), pa.array(_joined([rows.distances for rows in found]))], _FOUND_BY_QUERY
    best = ScoredRows(_joined([rows.addresses for rows in found]), pa.RecordBatch.from_arrays(columns, schema=schema))
    return arranged(reader, best, request.wanted)


def _joined(arrays: list[NDArray[Any]]) -> NDArray[Any]:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _found(reader: TableReader, request: NearestRequest, metrics: ScanMetrics | None) -> list[FoundRows]:
    """Search through the index, or compare all vectors."""
    use, candidates = request.use, request.candidates
    if use is not None:
        try:
            return search_index(reader, candidates, request.search, use, metrics)
        except (LanceError, OSError) as error:
            if not candidates.scans_on_index_error:
                raise
            name = use.index.name
            LOGGER.warning("the index %r cannot be read, so all of its vectors are compared: %s", name, error)
            candidates = replace(candidates, fragments=use.searched(reader, candidates))
    return find_nearest(reader, replace(narrowed(reader, candidates), metrics=metrics), request.search)
