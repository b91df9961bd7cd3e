"""Comparison of the content of a segment with the values of the rows that it covers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.index.validating.keyed_rows import KeyedContent, KeyedRows, shown
from lance_dataset.index.validating.window import Window
from lance_dataset.index.validating.zones import ZonedContent
from lance_dataset.table.address_ranges import AddressRanges
from lance_dataset.table.row_addresses import split_address

__all__ = ["CoveredValues", "WrongRows", "compare_keys", "compare_zones"]

_Addresses = NDArray[np.uint64]
_Places = NDArray[np.int64]
_Chosen = NDArray[np.bool_]

#: Rows that are described.
_DESCRIBED: Final = 3
#: Rows that may be wrong and are looked at together.
_LOOKED_AT: Final = 1 << 16
#: Rows of zones that are looked up together, and how often zones may have a row on average.
_ZONE_ROWS: Final = 1 << 20
_MOST_ZONES_OF_ROW: Final = 16


class CoveredValues(Protocol):
    """Values of the rows that a segment covers."""

    def batches(self, fragment_ids: Sequence[int]) -> Iterator[tuple[pa.Array, _Addresses]]:
        """Yield the values of all live rows of fragments with their addresses."""

    def take(self, addresses: _Addresses) -> pa.Array:
        """Return the values of rows by their addresses, which ascend."""


@dataclass
class WrongRows:
    """Rows about which an index is wrong.

    Attributes
    ----------
    count
        Number of them found so far.
    is_complete
        False if there may be more.
    described
        Descriptions of the first ones.
    """

    count: int = 0
    is_complete: bool = True
    described: list[str] = field(default_factory=list)

    def describe(self, address: int, text: str) -> None:
        """Add the description of a row, if there are not enough yet."""
        if len(self.described) < _DESCRIBED:
            fragment_id, offset = split_address(address)
            self.described.append(f"the row {offset} of fragment {fragment_id} (address {address}) {text}")

    @property
    def wants_more(self) -> bool:
        """True if more rows are to be described."""
        return len(self.described) < _DESCRIBED


# -- keys ------------------------------------------------------------------------------------------------------------


def compare_keys(content: KeyedContent, window: Window, values: CoveredValues, wrong: WrongRows) -> None:
    """Compare the entries of files with those that the values of a window should have.

    The digests of the keys of each row are added up on either side: rows with equal sums have the same keys. The keys
    of the others are then looked at.

    Raises
    ------
    CorruptFileError
        The files contradict the format.
    """
    sums = np.zeros(window.num_rows, np.uint64)
    for part in content.entries():
        places, chosen = window.places_of_rows(part.rows)
        np.add.at(sums, places, part.row_digests[chosen])
    differing = [np.empty(0, np.uint64)]
    for batch, addresses in values.batches(window.fragment_ids) if window.num_rows else ():
        expected = np.zeros(len(batch), np.uint64)
        for part in content.expected(batch):
            np.add.at(expected, part.rows.view(np.int64), part.row_digests)
        differing.append(addresses[sums[window.places(addresses)[0]] != expected])
    del sums
    suspects = np.sort(np.concatenate(differing))
    if content.is_exact:
        wrong.count += len(suspects)
        if len(suspects) and wrong.wants_more:
            _look(content, window, values, suspects[:_DESCRIBED], content.expected, wrong)
        return
    for start in range(0, len(suspects), _LOOKED_AT):
        found = _look(content, window, values, suspects[start : start + _LOOKED_AT], content.required, wrong)
        wrong.count += found
        if found:  # looking at all of them could take very long
            wrong.is_complete &= start + _LOOKED_AT >= len(suspects)
            return


def _look(
    content: KeyedContent,
    window: Window,
    values: CoveredValues,
    suspects: _Addresses,
    entries_of: Callable[[pa.Array], Iterator[KeyedRows]],
    wrong: WrongRows,
) -> int:
    """Compare the keys of some rows one by one; return how many of the rows are wrong, and describe them."""
    column = values.take(suspects)
    expected = _Keys(len(suspects))
    for part in entries_of(column):
        expected.add(part.rows.view(np.int64), np.arange(len(part.rows)), part)
    numbers = np.full(window.num_rows, -1, np.int32)
    numbers[window.places(suspects)[0]] = np.arange(len(suspects))
    found = _Keys(len(suspects))
    for part in content.entries():
        places, chosen = window.places_of_rows(part.rows)
        rows = numbers[places]
        found.add(rows[rows >= 0].astype(np.int64), chosen[rows >= 0], part)
    count = 0
    for row, (one, other) in enumerate(zip(expected.of_rows(), found.of_rows(), strict=True)):
        missing, more = one - other, other - one
        if missing or (content.is_exact and more):
            count += 1
            if wrong.wants_more:
                text = _difference([expected.text(each) for each in missing], [found.text(each) for each in more])
                wrong.describe(int(suspects[row]), f"has {shown(column[row])}, and {text}")
    return count


def _difference(missing: list[str], more: list[str]) -> str:
    lost = f"is not under {', '.join(missing[:3])}" if missing else ""
    kept = f"is under {', '.join(more[:3])}" if more else ""
    return " but ".join(part for part in (lost, kept) if part)


class _Keys:
    """Keys of a few rows.

    Parameters
    ----------
    rows
        Number of the rows.
    """

    def __init__(self, rows: int) -> None:
        self._num_rows = rows
        self._rows = [np.empty(0, np.int64)]
        self._digests = [np.empty(0, np.uint64)]
        self._texts: dict[int, str] = {}

    def add(self, rows: _Places, places: _Places, part: KeyedRows) -> None:
        """Add the entries at some places of a part, which are of some of the rows."""
        found = part.row_digests[places]
        self._rows.append(rows)
        self._digests.append(found)
        distinct, first = np.unique(found, return_index=True)
        for digest, place in zip(distinct.tolist(), places[first].tolist(), strict=True):
            if digest not in self._texts:
                self._texts[digest] = part.key(place)

    def of_rows(self) -> Iterator[Counter[int]]:
        """Yield the digests of the keys of each row, with the number of entries."""
        rows, found = np.concatenate(self._rows), np.concatenate(self._digests)
        order = np.argsort(rows, kind="stable")
        bounds = np.searchsorted(rows[order], np.arange(self._num_rows + 1)).tolist()
        sorted_digests = found[order]
        for start, stop in pairwise(bounds):
            yield Counter(sorted_digests[start:stop].tolist())

    def text(self, digest: int) -> str:
        """Return the key with a digest, as text."""
        return self._texts[digest]


# -- zones -----------------------------------------------------------------------------------------------------------


def compare_zones(
    content: ZonedContent, exists: _Chosen, window: Window, values: CoveredValues, wrong: WrongRows
) -> None:
    """Compare what zones let their rows have with the values of a window.

    Parameters
    ----------
    content
        The zones.
    exists : bool[n]
        True for each zone of a fragment that exists, or did before its rows moved.
    window, values
        The rows.
    wrong
        Gets the rows about which the zones are wrong.

    Raises
    ------
    CorruptFileError
        The file contradicts the format.
    """
    owners, others = _owners(content, exists, window)
    for batch, addresses in values.batches(window.fragment_ids) if window.num_rows else ():
        places = window.places(addresses)[0]
        zones = owners[places]
        known = np.flatnonzero(zones >= 0)
        admitted = np.zeros(len(batch), bool)
        admitted[known] = content.admits(batch.take(pa.array(known)), zones[known])
        _admit_others(content, batch, places, others, admitted)
        left = np.flatnonzero(~admitted)
        wrong.count += len(left)
        for row in left[:_DESCRIBED].tolist():
            zone = int(zones[row])
            text = f"zone {zone}, which has {content.zone_text(zone)}" if zone >= 0 else "no zone"
            wrong.describe(int(addresses[row]), f"has {shown(batch[row])}, and is in {text}")


def _owners(content: ZonedContent, exists: _Chosen, window: Window) -> tuple[_Places, tuple[_Places, _Places]]:
    """Return the zone of each row of a window, -1 without any; and other zones of rows that are in several."""
    owners = np.full(window.num_rows, -1, np.int64)
    more: list[tuple[_Places, _Places]] = []
    counts = content.zones.num_rows
    chosen = np.flatnonzero(exists)
    ends = np.cumsum(counts[chosen])
    most = _MOST_ZONES_OF_ROW * (window.num_rows + len(chosen))
    extra = start = 0
    while start < len(chosen):
        before = int(ends[start - 1]) if start else 0
        stop = max(int(np.searchsorted(ends, before + _ZONE_ROWS, side="right")), start + 1)
        some = chosen[start:stop]
        rows = AddressRanges(content.zones.firsts[some], content.zones.stops[some]).addresses()
        numbers = np.repeat(some, counts[some])
        places, inside = window.places_of_rows(rows)
        numbers = numbers[inside]
        taken = owners[places] >= 0
        owners[places[~taken]] = numbers[~taken]
        lost = np.flatnonzero(owners[places] != numbers)
        if len(lost):
            more.append((places[lost], numbers[lost]))
            extra += len(lost)
            if extra > most:
                raise content.table.corrupt(f"its zones overlap: rows are in more than {_MOST_ZONES_OF_ROW} on average")
        start = stop
    empty = np.empty(0, np.int64)
    places, numbers = (np.concatenate([empty, *parts]) for parts in (zip(*more, strict=True) if more else ((), ())))
    order = np.argsort(places, kind="stable")
    return owners, (places[order], numbers[order])


def _admit_others(
    content: ZonedContent,
    batch: pa.Array,
    places: _Places,
    others: tuple[_Places, _Places],
    admitted: _Chosen,
) -> None:
    """Note the values that further zones of their rows admit."""
    if not len(others[0]) or admitted.all():
        return
    left = np.flatnonzero(~admitted)
    low, high = (np.searchsorted(others[0], places[left], side) for side in ("left", "right"))
    counts = high - low
    rows = np.repeat(left, counts)
    at = np.repeat(low - (np.cumsum(counts) - counts), counts) + np.arange(len(rows))
    found = content.admits(batch.take(pa.array(rows)), others[1][at])
    admitted[rows[found]] = True
