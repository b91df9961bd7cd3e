"""Recall of a vector index: measured with rows of the table, and the cheapest parameters that reach a wanted one."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import UnsupportedError
from lance_dataset.index.vector.recall_curve import RecallCurve, RecallPoint, kept_curve
from lance_dataset.index.vector.searching.open_indices import OpenVectorIndex
from lance_dataset.index.vector.searching.probing import Probing
from lance_dataset.read.projection import Projection
from lance_dataset.read.table_reader import TableReader
from lance_dataset.read.take import take_addresses
from lance_dataset.scan.narrowing import narrowed
from lance_dataset.scan.nearest.candidates import FoundRows, candidates_request, find_nearest
from lance_dataset.scan.nearest.indexed import IndexUse, search_index
from lance_dataset.scan.nearest.search import VectorColumn, VectorSearch
from lance_dataset.scan.nearest_query import NearestQuery
from lance_dataset.scan.request import ScanRequest

__all__ = ["ExpectedRecall", "chosen_use", "index_curve", "recall_of", "sampled_queries"]

#: Rows of the table that serve as queries.
_SAMPLE = 48
#: Rows that are looked at for each of them, since some hold no vector, or are not in the index.
_SPARE = 4
#: Candidates to compare exactly for each row to find, of indices of codes.
_REFINEMENTS = (None, 1, 2, 5, 10, 20, 50)
#: Recall that needs no more partitions.
_ENOUGH = 0.9995
#: Seconds to compare an element of a vector with one of a query, about.
_ELEMENT_SECONDS = 3e-10
#: Numbers of rows for which curves are kept in memory.
_KEPT = 16
#: How exactly distances of RaBitQ are estimated in searches that do not say.
_USUAL_EFFORT = "normal"


@dataclass(frozen=True)
class ExpectedRecall:
    """Recall that a search asked for, and the point of the curve that was chosen.

    Attributes
    ----------
    wanted
        The recall that was asked for.
    point
        Chosen parameters; None if no row could serve as a query, so that all partitions are searched.
    """

    wanted: float
    point: RecallPoint | None

    def lines(self) -> Iterator[str]:
        """Describe the choice."""
        point = self.point
        if point is None:
            yield f"recall {self.wanted:g} was asked, and could not be measured: no row of the index serves as a query"
        elif point.recall < self.wanted:
            yield (
                f"recall {self.wanted:g} was asked and cannot be reached with this index: {point.recall:.3f} was the "
                "highest that was measured"
            )
        else:
            yield f"recall {self.wanted:g} was asked, {point.recall:.3f} is expected"


def chosen_use(
    reader: TableReader, request: ScanRequest, search: VectorSearch, use: IndexUse, wanted: float
) -> IndexUse:
    """Return the use of an index with the cheapest parameters that reach a recall.

    The recall is that of searches without a filter. The details of the index may keep it. Otherwise it is measured at
    the first search for that number of rows, and kept with the open index.

    Parameters
    ----------
    reader
        The version.
    request
        The scan of the vectors.
    search
        The search.
    use
        Use of the index, without choices.
    wanted
        Recall, above 0 and up to 1. If none reaches it, the one with the highest recall is chosen.

    Raises
    ------
    UnsupportedError
        The column holds lists of vectors.
    """
    if search.column.is_lists:
        raise UnsupportedError(
            f"column {search.column.name!r} holds lists of vectors, whose recall is not measured; use nprobes and "
            "refine_factor instead of recall"
        )
    curves, key = use.index.curves, (search.query.k, use.effort, use.ef)
    curve = curves.get(key)
    if curve is None:
        is_usual = use.effort == _USUAL_EFFORT and use.ef is None
        curve = (_kept(use.index, search.query.k) if is_usual else None) or tuple(
            _measured(reader, request, search, use)
        )
        if len(curves) >= _KEPT:
            curves.clear()
        curves[key] = curve
    points = [point for point in curve if isinstance(point, RecallPoint)]
    if not points:
        every = max(len(each.source.centroids) for each in use.index.segments)
        return replace(use, probing=Probing(every, every, True), expected=ExpectedRecall(wanted, None))
    reached = [point for point in points if point.recall >= wanted]
    if reached:
        point = min(reached, key=lambda each: each.seconds)
    else:
        point = max(points, key=lambda each: (each.recall, -each.seconds))
    probing = Probing(point.probes, None, True)
    return replace(use, probing=probing, refine=point.refine, expected=ExpectedRecall(wanted, point))


def _kept(index: OpenVectorIndex, k: int) -> tuple[RecallPoint, ...] | None:
    """Return the curve that the details of an index keep; None without one that fits it."""
    details = [each.segment.metadata.details for each in index.segments]
    return kept_curve([each.value for each in details if each is not None], k, *_size(index))


def _size(index: OpenVectorIndex) -> tuple[tuple[int, ...], int]:
    """Return the numbers of partitions of the segments of an index, ascending, and the number of its vectors."""
    sources = [each.source for each in index.segments]
    return tuple(sorted(len(each.centroids) for each in sources)), sum(int(each.lengths.sum()) for each in sources)


def index_curve(
    reader: TableReader, column: VectorColumn, index: OpenVectorIndex, k: int, seconds: float
) -> RecallCurve | None:
    """Measure the recall of searches of an index, with rows of the table as queries.

    Parameters
    ----------
    reader
        The version.
    column
        Column of vectors, not of lists of them.
    index
        The index, which need not be committed.
    k
        Number of rows to find.
    seconds
        Time that this may take, approximately.

    Returns
    -------
    RecallCurve
        None if no row can serve as a query, or if the time is not enough.
    """
    partitions, count = _size(index)
    if count * column.dimension * _SAMPLE * _ELEMENT_SECONDS > seconds:  # exact searches alone take longer
        return None
    query = NearestQuery(column.name, np.zeros((1, column.dimension)), False, k, index.metric)
    search = VectorSearch.of(query, column, index.metric)
    projection = Projection((column.output,), pa.schema([column.output.arrow]))
    request = candidates_request(ScanRequest(reader.scanned_schema, projection), search)
    use = IndexUse(index, Probing(), None, _USUAL_EFFORT, False)
    end, points = time.perf_counter() + seconds, []
    for point in _measured(reader, request, search, use):
        points.append(point)
        if time.perf_counter() > end:
            return None
    return RecallCurve(k, partitions, count, tuple(points)) if points else None


def _measured(reader: TableReader, request: ScanRequest, search: VectorSearch, use: IndexUse) -> Iterator[RecallPoint]:
    """Measure recall with more and more partitions, until nearly all nearest rows are found."""
    index, column = use.index, search.column
    ids = reader.manifest.fragment_list.columns.ids.tolist()
    inside = tuple(position for position, each in enumerate(ids) if each in index.fragment_ids)
    places, vectors = sampled_queries(reader, column, index.fragment_ids)
    if not len(places):
        return
    plain = replace(request, filter=None, rows=None, fragments=None)
    queries = NearestQuery(column.name, vectors, True, search.query.k + 1, search.metric)
    asked = VectorSearch.of(queries, column, search.metric)
    exact = _addresses(find_nearest(reader, narrowed(reader, replace(plain, fragments=inside)), asked), places)
    kinds = (None,) if index.kind == "IVF_FLAT" else _REFINEMENTS  # walks of graphs find more if more is compared
    single = [
        VectorSearch.of(replace(queries, vectors=vectors[row : row + 1], is_batch=False), column, search.metric)
        for row in range(len(vectors))
    ]
    for probes in _numbers_of_partitions(index):
        probing, best = Probing(probes, probes, True), 0.0
        alone = replace(use, probing=probing, refine=None, unites=False)
        for each in single:  # reads the partitions, so that later searches take their usual time
            search_index(reader, plain, each, alone, None)
        for refine in kinds:
            found, seconds = [], []
            tried = replace(alone, refine=refine)
            for each in single:
                start = time.perf_counter()
                found += search_index(reader, plain, each, tried, None)
                seconds.append(time.perf_counter() - start)
            point = RecallPoint(probes, refine, recall_of(_addresses(found, places), exact), statistics.median(seconds))
            yield point
            best = max(best, point.recall)
            if point.recall >= _ENOUGH:
                break
        if best >= _ENOUGH:
            return


def _numbers_of_partitions(index: OpenVectorIndex) -> list[int]:
    most = max(len(each.source.centroids) for each in index.segments)
    steps = {round(2 ** (step / 2)) for step in range(2 * most.bit_length())}
    return sorted({each for each in steps if each < most} | {most})


def _addresses(found: Sequence[FoundRows], places: NDArray[np.uint64]) -> list[NDArray[np.uint64]]:
    """Return the rows found for each query, without the row that is the query."""
    return [rows.addresses[rows.addresses != place] for rows, place in zip(found, places, strict=True)]


def recall_of(found: Sequence[NDArray[np.uint64]], exact: Sequence[NDArray[np.uint64]]) -> float:
    """Return the mean share of the rows to find that were found; 1.0 without rows to find."""
    shares = [
        len(np.intersect1d(mine, expected)) / len(expected)
        for mine, expected in zip(found, exact, strict=True)
        if len(expected)
    ]
    return statistics.fmean(shares) if shares else 1.0


def sampled_queries(
    reader: TableReader, column: VectorColumn, fragment_ids: frozenset[int] | None = None
) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
    """Return addresses and vectors of rows, evenly spaced over the live rows of a table.

    Parameters
    ----------
    reader
        The version.
    column
        Column of vectors.
    fragment_ids
        Fragments whose rows are taken; None for all.

    Returns
    -------
    uint64[n], float64[n, dimension]
        Without vectors that are null or hold numbers that are not finite.
    """
    total = reader.num_rows
    numbers = np.unique(np.linspace(0, max(total - 1, 0), min(total, _SAMPLE * _SPARE)).astype(np.int64))
    places = reader.addresses_of_numbers(numbers) if total else np.empty(0, np.uint64)
    if fragment_ids is not None:
        places = places[np.isin(places >> np.uint64(32), np.fromiter(fragment_ids, np.uint64, len(fragment_ids)))]
    if not len(places):
        return places, np.empty((0, column.dimension))
    projection = Projection((column.output,), pa.schema([column.output.arrow]))
    taken = take_addresses(reader, places, projection, reader.scanned_schema).column(0)
    valid = np.asarray(taken.is_valid())
    places, vectors = places[valid], _numbers(taken.drop_null(), column)
    usable = np.flatnonzero(np.isfinite(vectors).all(axis=1))
    usable = usable[:: max(len(usable) // _SAMPLE, 1)][:_SAMPLE]
    return places[usable], vectors[usable]


def _numbers(vectors: pa.FixedSizeListArray, column: VectorColumn) -> NDArray[np.float64]:
    """Return vectors as float64; null elements as NaN."""
    elements = vectors.flatten()
    if column.element == "b":
        storage = elements.storage if isinstance(elements, pa.ExtensionArray) else elements
        bits = np.frombuffer(b"".join(each or b"\xc0\x7f" for each in storage.to_pylist()), "<u2")
        found = (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    else:
        found = elements.to_numpy(zero_copy_only=False).astype(np.float64)
    return found.reshape(len(vectors), column.dimension)
