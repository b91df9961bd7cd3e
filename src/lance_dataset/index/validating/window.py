"""Rows of some fragments, numbered without gaps, so that arrays can have an item for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from lance_dataset.table.row_addresses import first_addresses, fragments_of, offsets_of

__all__ = ["Located", "Window", "windows"]

_Addresses = NDArray[np.uint64]
_Places = NDArray[np.int64]
#: Returns the current addresses of rows of an index, and which of them exist.
Located = Callable[[_Addresses], tuple[_Addresses, NDArray[np.bool_]]]


class Window:
    """Rows of some fragments, deleted ones included.

    Parameters
    ----------
    fragments
        Id and number of rows of each, by ascending id.
    located
        Translates rows of the index.

    Attributes
    ----------
    fragment_ids : list of int
    num_rows : int
        Number of rows.
    """

    def __init__(self, fragments: Sequence[tuple[int, int]], located: Located) -> None:
        self.fragment_ids = [each for each, _ in fragments]
        self._ids = np.array(self.fragment_ids, np.uint64)
        self._counts = np.array([rows for _, rows in fragments], np.int64)
        self._starts = np.cumsum(self._counts) - self._counts
        self._located = located
        self.num_rows = int(self._counts.sum())

    def places_of_rows(self, rows: _Addresses) -> tuple[_Places, _Places]:
        """Return the numbers of rows of the index, and the positions of those that are in the window."""
        addresses, known = self._located(rows)
        places, inside = self.places(addresses)
        chosen = np.flatnonzero(inside & known)
        return places[chosen], chosen

    def places(self, addresses: _Addresses) -> tuple[_Places, NDArray[np.bool_]]:
        """Return the numbers of addresses, and which of them are in the window."""
        if not len(self._ids):
            return np.zeros(len(addresses), np.int64), np.zeros(len(addresses), bool)
        owners, offsets = fragments_of(addresses), offsets_of(addresses)
        at = np.minimum(np.searchsorted(self._ids, owners), len(self._ids) - 1)
        return self._starts[at] + offsets, (self._ids[at] == owners) & (offsets < self._counts[at])

    def addresses(self, places: _Places) -> _Addresses:
        """Return the addresses of rows by their numbers."""
        at = np.searchsorted(self._starts + self._counts, places, side="right")
        found: _Addresses = first_addresses(self._ids[at]) + (places - self._starts[at]).view(np.uint64)
        return found


def windows(fragments: Sequence[tuple[int, int]], located: Located, most_rows: int) -> Iterator[Window]:
    """Yield windows of at most some rows, or of one fragment, over all fragments; one that is empty without fragments.

    Parameters
    ----------
    fragments, located
        See `Window`.
    most_rows
        Number of rows.
    """
    held: list[tuple[int, int]] = []
    count = 0
    for each in fragments:
        if held and count + each[1] > most_rows:
            yield Window(held, located)
            held, count = [], 0
        held.append(each)
        count += each[1]
    yield Window(held, located)
