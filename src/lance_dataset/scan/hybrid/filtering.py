"""Searches that have another search as their filter."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lance_dataset.read.table_reader import TableReader
from lance_dataset.scan.address_sets import RowAddressSet, restricted
from lance_dataset.scan.full_text.rows import TextRequest, text_rows
from lance_dataset.scan.nearest.rows import NearestRequest, nearest_rows
from lance_dataset.scan.scored_rows import UNLIMITED_ROWS, ScoredRows, arranged
from lance_dataset.table.row_addresses import by_fragment, offsets_of

__all__ = ["FilteredSearch", "Search", "filtered_rows"]

Search: TypeAlias = TextRequest | NearestRequest


@dataclass(frozen=True)
class FilteredSearch:
    """A search with another search as its filter.

    Attributes
    ----------
    outer
        The search, with the output.
    inner
        The filter.
    filters_first
        True to search among the rows that the filter finds, False to filter the rows found.
    """

    outer: Search
    inner: Search
    filters_first: bool


def filtered_rows(reader: TableReader, request: FilteredSearch) -> ScoredRows:
    """Run both searches.

    Parameters
    ----------
    reader
        The version.
    request
        The searches.

    Raises
    ------
    CorruptFileError
        A file contradicts the format.
    InvalidInputError
        A phrase is searched for in an index without positions.
    """
    outer, inner = request.outer, request.inner
    if request.filters_first:
        return _rows(reader, _within(reader, outer, _rows(reader, inner).addresses))
    wanted = outer.wanted
    # A full-text search finds as many rows as are returned, and a vector search its k.
    most = wanted.limit + wanted.offset if isinstance(outer, TextRequest) else UNLIMITED_ROWS
    early = replace(wanted, limit=min(most, UNLIMITED_ROWS), offset=0, order_by=(), postfilter=None)
    found = _rows(reader, replace(outer, wanted=early))
    kept = _rows(reader, _within(reader, inner, found.addresses)).addresses
    places = np.flatnonzero(np.isin(found.addresses, kept))
    if isinstance(inner, NearestRequest) and len(places):
        # A row may be found several times, once for each element of a list.
        order = np.argsort(kept, kind="stable")
        ranks = order[np.searchsorted(kept, found.addresses[places], sorter=order)]
        places = places[np.argsort(ranks, kind="stable")]
    best = found.take(places)
    return arranged(reader, best, wanted)


def _rows(reader: TableReader, search: Search) -> ScoredRows:
    return text_rows(reader, search) if isinstance(search, TextRequest) else nearest_rows(reader, search)


def _within(reader: TableReader, search: Search, addresses: NDArray[np.uint64]) -> Search:
    """Return a search among some rows only."""
    rows = np.unique(addresses)
    known = RowAddressSet({owner: offsets_of(rows[mine]).astype(np.uint32) for owner, mine in by_fragment(rows)})
    return replace(search, candidates=restricted(reader, search.candidates, known, None))
