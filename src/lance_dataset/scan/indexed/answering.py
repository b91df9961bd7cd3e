"""Scans restricted to the rows that indices find, where that is cheaper than reading the columns of the filter."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from lance_dataset.read.table_reader import TableReader
from lance_dataset.scan.costs import ColumnCosts
from lance_dataset.scan.indexed.accessors import failing_accessors, proven_fragments
from lance_dataset.scan.indexed.conditions import conditions_of
from lance_dataset.scan.indexed.lookups import Lookup, lookup_for, within
from lance_dataset.scan.request import ScanRequest
from lance_dataset.scan.row_ranges import RowRanges
from lance_dataset.table.address_ranges import AddressRanges
from lance_dataset.table.row_addresses import by_fragment, offsets_of
from lance_dataset.threads.pools import cpu_count

__all__ = ["IndexAnswer", "estimated", "find_answer", "scan_cost"]

#: Nanoseconds that a scan takes for each fragment, and for each row and condition besides reading.
_FRAGMENT_COST = 5e4
_CONDITION_COST = 2.0
#: Nanoseconds of a condition on a list or a struct.
_NESTED_COST = 15.0
#: Nanoseconds of reading a value of a JSON document.
_ACCESSOR_COST = 60.0
#: Work of a scan, in nanoseconds, above which several threads share it.
_PARALLEL_COST = 2e6
#: Nanoseconds of a request to another machine and of each byte that comes from there, bytes of a request, and requests
#: that wait at the same time. Nothing is opened to estimate more: that would be a request, too.
_REQUEST_COST = 2e7
_REMOTE_BYTE_COST = 10.0
_REQUESTED_BYTES = 8 << 20
_REQUESTS = 16
#: Requests of a scan, and of a search in an index, that wait for the one before; nanoseconds of taking a row.
_STEPS = 3
_SEARCH_STEPS = 2
_REMOTE_TAKE_COST = 1e5
#: An offset above every row of a fragment.
_END = 1 << 62


@dataclass(frozen=True, eq=False)
class IndexAnswer:
    """Rows that indices found for a filter.

    Attributes
    ----------
    lookup
        The lookup that was made.
    addresses
        Addresses of all rows of the covered fragments for which the filter is true; deleted rows may be among them.
    is_exact
        True if the filter is true for all of them.
    """

    lookup: Lookup
    addresses: AddressRanges
    is_exact: bool

    @property
    def covered(self) -> frozenset[int]:
        """Fragments whose rows were found."""
        return self.lookup.fragment_ids

    def texts(self) -> tuple[str, ...]:
        """Describe the lookup, and what it found."""
        exactly = "" if self.is_exact else " to be checked"
        return (f"ScalarIndexQuery: query={self.lookup.text}, {self.addresses.num_rows:,} rows{exactly}",)

    def restricted(self, reader: TableReader, request: ScanRequest) -> ScanRequest:
        """Return the request restricted to these rows. Fragments that are not covered are scanned.

        The filter stays where it must be checked again.
        """
        found = {owner: _ranges(self.addresses, mine) for owner, mine in by_fragment(self.addresses.starts)}
        ids = reader.manifest.fragment_list.columns.ids
        everything = RowRanges(np.zeros(1, np.int64), np.full(1, _END))
        rows, kept, is_covered = {}, [], True
        for position in range(len(ids)) if request.fragments is None else request.fragments:
            fragment_id = int(ids[position])
            if fragment_id in self.covered:
                ranges = found.get(fragment_id)
            else:
                ranges = None if request.only_indexed else everything
                is_covered &= request.only_indexed
            if ranges is not None:
                rows[fragment_id] = ranges
                kept.append(position)
        return replace(
            request,
            rows=rows,
            fragments=tuple(kept),
            filter=None if self.is_exact and is_covered else request.filter,
            used_indices=self.texts(),
        )


def find_answer(reader: TableReader, request: ScanRequest, *, at_any_cost: bool = False) -> IndexAnswer | None:
    """Ask indices for the rows of a filter, if that is cheaper than reading its columns; None if it is not.

    A filter that may raise an error is computed for all rows. Reading a value of JSON documents raises none where an
    index of these values proves it.

    Parameters
    ----------
    reader
        The version of the table.
    request
        The scan.
    at_any_cost
        True for using indices even where reading the columns is cheaper.

    Raises
    ------
    CorruptFileError
        The files of an index contradict the format.
    """
    filter = request.filter
    tree = None if filter is None else filter.tree
    if filter is None or tree is None or request.indices is None or request.include_deleted or request.rows is not None:
        return None
    by_value = request.indices.by_value
    if not by_value:
        return None
    accessors = failing_accessors(tree, request.schema)
    if accessors is None or any(value not in by_value for value, _ in accessors):
        return None
    node = conditions_of(tree, request.schema, by_value.__contains__)
    if node is None:
        return None
    at_any_cost |= request.only_indexed  # the result depends on the use of an index
    work = _work(reader, request, tuple(filter.columns))
    if accessors:
        work = replace(work, scan=work.scan + _ACCESSOR_COST * len(accessors) * reader.num_rows)
    lookup = lookup_for(node, by_value, math.inf if at_any_cost else work.scan)
    proven = proven_fragments(accessors, by_value)
    if lookup is not None and proven is not None:
        lookup = within(lookup, proven)
    if lookup is None or not (at_any_cost or _is_cheaper(lookup, work, reader)):
        return None
    return IndexAnswer(lookup, lookup.rows(), lookup.is_exact)


@dataclass(frozen=True)
class _Work:
    """Estimated work of a scan without indices.

    Attributes
    ----------
    scan
        Nanoseconds of all fragments.
    read
        Nanoseconds of one row of long ranges.
    take
        Nanoseconds of taking the columns of the filter of one row.
    latency
        Nanoseconds that a lookup waits for another machine.
    """

    scan: float
    read: float
    take: float
    latency: float = 0.0

    @staticmethod
    def of(reader: TableReader, request: ScanRequest, columns: Sequence[str]) -> _Work:
        """Estimate the work of a request with conditions on columns."""
        counts = reader.manifest.fragment_list.columns.physical_rows
        if request.fragments is not None:
            counts = counts[list(request.fragments)]
        is_remote = reader.locator.store.is_remote
        costs = ColumnCosts.unread() if is_remote else ColumnCosts.of(reader, request)
        stored = set(request.schema.names)
        names = {name for name in columns if name in stored}
        fields = [request.schema.top_level(name) for name in names]
        read = [costs.cost(field) for field in fields]
        conditions = sum(_NESTED_COST if field.children else _CONDITION_COST for field in fields)
        each = conditions + sum(cost.read for cost in read)
        scan = int(counts.clip(0).sum()) * each
        if is_remote:
            stored_bytes = int(counts.clip(0).sum()) * sum(cost.stored for cost in read)
            requests = _STEPS + (len(counts) + stored_bytes / _REQUESTED_BYTES) / _REQUESTS
            scan += _REMOTE_BYTE_COST * stored_bytes + _REQUEST_COST * requests
            return _Work(scan, _REMOTE_TAKE_COST, _REMOTE_TAKE_COST, _SEARCH_STEPS * _REQUEST_COST)
        if scan > _PARALLEL_COST:
            scan /= cpu_count()
        return _Work(scan + _FRAGMENT_COST * len(counts), each, sum(cost.take + cost.dense for cost in read))


#: Work of scans of all fragments, by the columns of the filter.
_KNOWN: WeakKeyDictionary[TableReader, dict[tuple[str, ...], _Work]] = WeakKeyDictionary()


def _work(reader: TableReader, request: ScanRequest, columns: tuple[str, ...]) -> _Work:
    if request.fragments is not None:
        return _Work.of(reader, request, columns)
    known = _KNOWN.get(reader)
    if known is None:
        known = _KNOWN.setdefault(reader, {})
    found = known.get(columns)
    if found is None:
        found = known[columns] = _Work.of(reader, request, columns)
    return found


def scan_cost(reader: TableReader, request: ScanRequest, columns: tuple[str, ...]) -> float:
    """Return the estimated nanoseconds of reading columns of all rows."""
    return _work(reader, request, columns).scan


def _is_cheaper(lookup: Lookup, work: _Work, reader: TableReader) -> bool:
    """Return True if a lookup takes less time than the scan of the fragments that it covers."""
    covered = len(lookup.fragment_ids) / max(len(reader.fragments), 1)
    return _cost(lookup, work) < work.scan * min(covered, 1.0)


def _cost(lookup: Lookup, work: _Work) -> float:
    check = work.read if lookup.is_ranged else work.take
    return lookup.cost + work.latency + (0.0 if lookup.is_exact else lookup.estimate * check)


def estimated(lookup: Lookup, reader: TableReader, request: ScanRequest) -> float:
    """Return the estimated nanoseconds of a lookup, and of checking the rows that it only suspects."""
    return _cost(lookup, _work(reader, request, tuple(request.filter.columns if request.filter is not None else ())))


def _ranges(addresses: AddressRanges, chosen: NDArray[np.int64]) -> RowRanges:
    """Return some ranges of addresses, all of one fragment, as rows of this fragment."""
    starts = offsets_of(addresses.starts[chosen])
    return RowRanges(starts, starts + (addresses.stops[chosen] - addresses.starts[chosen]).view(np.int64))
