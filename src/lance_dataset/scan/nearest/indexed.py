"""Vector search through an index, united with the rows that it does not cover."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lance_dataset.index.vector.searching.open_indices import OpenVectorIndex
from lance_dataset.index.vector.searching.probing import Probing
from lance_dataset.index.vector.searching.segment import FoundVectors, VisibleRows
from lance_dataset.read.projection import Projection
from lance_dataset.read.table_reader import TableReader
from lance_dataset.read.take import take_addresses
from lance_dataset.scan.engine import Scan
from lance_dataset.scan.metrics import ScanMetrics
from lance_dataset.scan.narrowing import narrowed
from lance_dataset.scan.nearest.candidates import FoundRows, find_nearest
from lance_dataset.scan.nearest.search import VectorSearch
from lance_dataset.scan.nearest.vectors import Places, add_array
from lance_dataset.scan.request import ScanRequest
from lance_dataset.scan.selection import Selection
from lance_dataset.scan.strategy import strategy
from lancecodec.search.distances import ELEMENTS, METRICS, Nearest

__all__ = ["IndexUse", "search_index"]

#: Rows of the index that are looked up for each vector of a list, for each row to find.
_LIST_FACTOR = 10


class RecallNote(Protocol):
    """Recall that a query asked for."""

    def lines(self) -> Iterator[str]:
        """Describe what is expected, one line each."""


@dataclass(frozen=True, eq=False)
class IndexUse:
    """Use of an index by a search.

    Attributes
    ----------
    index
        The index.
    probing
        What the query says about partitions.
    refine
        Candidates to compare exactly for each row to find; None to trust the distances of the index.
    effort
        How exactly distances of RaBitQ are estimated.
    unites
        True to compare rows that the index does not cover, too.
    expected
        The recall that the query asked for and the one to expect; None if it asked for none.
    ef
        Rows that walks of graphs keep; None for the usual number.
    """

    index: OpenVectorIndex
    probing: Probing
    refine: int | None
    effort: str
    unites: bool
    expected: RecallNote | None = None
    ef: int | None = None

    def searched(self, reader: TableReader, request: ScanRequest) -> tuple[int, ...]:
        """Return the positions of the fragments among whose rows the nearest are found."""
        ids = reader.manifest.fragment_list.columns.ids.tolist()
        positions = range(len(ids)) if request.fragments is None else request.fragments
        return tuple(position for position in positions if self.unites or ids[position] in self.index.fragment_ids)

    def uncovered(self, reader: TableReader, request: ScanRequest) -> tuple[int, ...]:
        """Return the positions of fragments to compare exactly."""
        if not self.unites:
            return ()
        if request.fragments is None:
            return self.index.uncovered
        ids = reader.manifest.fragment_list.columns.ids.tolist()
        covered = self.index.fragment_ids
        return tuple(position for position in request.fragments if ids[position] not in covered)


def search_index(
    reader: TableReader, request: ScanRequest, search: VectorSearch, use: IndexUse, metrics: ScanMetrics | None
) -> list[FoundRows]:
    """Return the nearest rows for each query.

    Parameters
    ----------
    reader
        The version.
    request
        The scan of the vectors, with the filter that comes first.
    search
        The search.
    use
        The index, and how to use it.
    metrics
        Counters of the steps; None to count nothing.

    Raises
    ------
    CorruptFileError
        A file contradicts the format.
    """
    outside = use.uncovered(reader, request)
    visible = _visible(reader, request, use.index)
    others: Sequence[FoundRows | None] = [None] * search.num_queries
    if outside:
        rest = narrowed(reader, replace(request, fragments=outside))
        others = find_nearest(reader, replace(rest, metrics=metrics), search)
    found = []
    for number, other in enumerate(others):
        one = _one(search, number)
        if search.column.is_lists:
            near = _search_lists(reader, one, use, visible, exact=bool(outside))
        else:
            near = _search(reader, one, use, visible, exact=bool(outside))
        found.append(near if other is None else _united(near, other, search.query.k))
    return found


def _one(search: VectorSearch, number: int) -> VectorSearch:
    """Return the search for one query of several."""
    if not search.is_batch or search.num_queries == 1:
        return search
    query = replace(search.query, vectors=search.query.vectors[number : number + 1])
    return replace(search, query=query)


def _search(
    reader: TableReader, search: VectorSearch, use: IndexUse, visible: VisibleRows, *, exact: bool
) -> FoundRows:
    query = search.query
    k = query.k * (use.refine or 1)
    exact = exact or use.refine is not None
    limits = (None, None) if exact else (query.lowest, query.below)
    found = use.index.search(query.vectors[0], k, use.probing, visible, use.effort, limits, use.ef)
    return _compared(reader, search, found) if exact else FoundRows(found.addresses, found.distances)


def _search_lists(
    reader: TableReader, search: VectorSearch, use: IndexUse, visible: VisibleRows, *, exact: bool
) -> FoundRows:
    """Search lists of vectors: those that some vector of the query finds, by the sum of their nearest distances."""
    query, count = search.query, len(search.query.vectors)
    k = _LIST_FACTOR * query.k
    gains: dict[int, float] = {}
    places: dict[int, int] = {}
    base = 0.0
    for vector in query.vectors:
        found = use.index.search(vector, k, use.probing, visible, use.effort, ef=use.ef, of_lists=True)
        if not len(found.ids):
            continue
        least = 1 - float(found.distances[-1])
        base += least
        ids, first = np.unique(found.ids, return_index=True)
        similar = (1 - found.distances[first].astype(np.float64)).tolist()
        for row, similarity, address in zip(ids.tolist(), similar, found.addresses[first].tolist(), strict=True):
            gains[row] = gains.get(row, 0.0) + similarity - least
            places[row] = address
    rows = np.fromiter(gains, np.uint64, len(gains))
    distances = (count - base - np.fromiter(gains.values(), np.float64, len(gains))).astype(np.float32)
    addresses = np.fromiter(places.values(), np.uint64, len(places))
    exact = exact or use.refine is not None
    if not exact:
        keep = np.ones(len(rows), bool)
        if query.lowest is not None:
            keep &= distances >= query.lowest
        if query.below is not None:
            keep &= distances < query.below
        rows, distances, addresses = rows[keep], distances[keep], addresses[keep]
    best = FoundVectors.best([FoundVectors(distances, rows, addresses)], query.k * (use.refine or 1))
    order = np.lexsort((best.ids, best.distances))
    best = FoundVectors(best.distances[order], best.ids[order], best.addresses[order])
    return _compared(reader, search, best) if exact else FoundRows(best.addresses, best.distances)


def _compared(reader: TableReader, search: VectorSearch, found: FoundVectors) -> FoundRows:
    """Return the nearest of some rows by their exact distances."""
    query, column = search.query, search.column
    nearest = Nearest(
        *(search.encoded, column.dimension, ELEMENTS.index(column.element), METRICS.index(search.metric)),
        *(query.k, column.is_lists, query.lowest, query.below),
    )
    if len(found.ids):
        order = np.argsort(found.addresses)
        addresses = found.addresses[order]
        taken = take_addresses(reader, addresses, column.projection, reader.scanned_schema)
        add_array(nearest, taken.column(0), column, Places(None, 0, addresses, found.ids[order]))
    count = nearest.count(0)
    distances, ids = np.empty(count, np.float32), np.empty(count, np.uint64)
    addresses = np.empty(count, np.uint64)
    nearest.drain(0, distances.data, ids.data, addresses.data)
    return FoundRows(addresses, distances)


def _united(first: FoundRows, second: FoundRows, k: int) -> FoundRows:
    addresses = np.concatenate([first.addresses, second.addresses])
    distances = np.concatenate([first.distances, second.distances])
    order = np.lexsort((addresses, distances))[:k]
    return FoundRows(addresses[order], distances[order])


def _visible(reader: TableReader, request: ScanRequest, index: OpenVectorIndex) -> VisibleRows:
    """Return the rows of the covered fragments that the filter, and restrictions of rows, leave."""
    live = index.visible
    if request.filter is None and request.rows is None and request.fragments is None:
        return live
    ids = reader.manifest.fragment_list.columns.ids.tolist()
    positions = range(len(ids)) if request.fragments is None else request.fragments
    inside = tuple(position for position in positions if ids[position] in index.fragment_ids)
    wanted = {ids[position] for position in inside}
    starts = {each: start for each, start in live.starts.items() if each in wanted}
    if request.filter is None and request.rows is None:
        return VisibleRows(starts, live.sizes, live.bits)
    scanned = narrowed(reader, replace(request, fragments=inside, projection=Projection((), request.projection.schema)))
    allowed = np.zeros(sum(live.sizes.values()), bool)
    if inside:
        plan = strategy(reader, scanned)
        for fragment_id, rows in (each for found in Scan(reader, scanned, plan).each(_rows_of) for each in found):
            allowed[live.starts[fragment_id] + rows] = True
    return VisibleRows(starts, live.sizes, np.packbits(allowed, bitorder="little"))


def _rows_of(selection: Selection) -> list[tuple[int, NDArray[np.int64]]]:
    """Return the selected rows by fragment."""
    return [
        (part.fragment.fragment.id, part.rows if chosen is None else part.rows_at(chosen))
        for part, chosen in selection.parts
    ]
