"""Scans restricted to the rows that indices find, where that is cheaper than reading the columns of the filter."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lance_dataset.read.table_reader import TableReader
from lance_dataset.scan.costs import ColumnCosts
from lance_dataset.scan.indexed.conditions import conditions_of
from lance_dataset.scan.indexed.lookups import Lookup, lookup_for
from lance_dataset.scan.pruning.prune import may_fail
from lance_dataset.scan.request import ScanRequest
from lance_dataset.scan.row_ranges import RowRanges
from lance_dataset.table.address_ranges import AddressRanges
from lance_dataset.table.row_addresses import by_fragment, offsets_of
from lance_dataset.threads.pools import cpu_count

__all__ = ["answered"]

#: Nanoseconds that a scan takes for each fragment, and for each row and condition besides reading.
_FRAGMENT_COST = 5e4
_CONDITION_COST = 2.0
#: Nanoseconds of a condition on a list or a struct.
_NESTED_COST = 15.0
#: Work of a scan, in nanoseconds, above which several threads share it.
_PARALLEL_COST = 2e6
#: An offset above every row of a fragment.
_END = 1 << 62


def answered(reader: TableReader, request: ScanRequest, *, at_any_cost: bool = False) -> ScanRequest:
    """Return the request restricted to the rows that indices find; fragments without an index are scanned.

    The filter stays where it must be checked again. A filter that may raise an error is computed for all rows.

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
    tree = None if request.filter is None else request.filter.tree
    if tree is None or request.indices is None or request.include_deleted or request.rows is not None:
        return request
    by_value = request.indices.by_value
    if not by_value or may_fail(tree):
        return request
    node = conditions_of(tree, request.schema, by_value.__contains__)
    if node is None:
        return request
    work = _Work.of(reader, request)
    lookup = lookup_for(node, by_value, math.inf if at_any_cost else work.scan)
    if lookup is None or not (at_any_cost or _is_cheaper(lookup, work, reader)):
        return request
    return _restricted(lookup, reader, request)


@dataclass(frozen=True)
class _Work:
    """Estimated work of a scan without indices.

    Attributes
    ----------
    scan
        Nanoseconds of all fragments.
    take
        Nanoseconds of taking the columns of the filter of one row.
    """

    scan: float
    take: float

    @staticmethod
    def of(reader: TableReader, request: ScanRequest) -> _Work:
        """Estimate the work of a request with a filter."""
        counts = reader.manifest.fragment_list.columns.physical_rows
        if request.fragments is not None:
            counts = counts[list(request.fragments)]
        costs = ColumnCosts.of(reader, request)
        stored = set(request.schema.names)
        names = {name for name in (() if request.filter is None else request.filter.columns) if name in stored}
        fields = [request.schema.top_level(name) for name in names]
        columns = [costs.cost(field) for field in fields]
        conditions = sum(_NESTED_COST if field.children else _CONDITION_COST for field in fields)
        scan = int(counts.clip(0).sum()) * (conditions + sum(cost.read for cost in columns))
        if scan > _PARALLEL_COST:
            scan /= cpu_count()
        return _Work(scan + _FRAGMENT_COST * len(counts), sum(cost.take + cost.dense for cost in columns))


def _is_cheaper(lookup: Lookup, work: _Work, reader: TableReader) -> bool:
    """Return True if a lookup takes less time than the scan of the fragments that it covers."""
    covered = len(lookup.fragment_ids) / max(len(reader.fragments), 1)
    check = 0.0 if lookup.is_exact else lookup.estimate * work.take
    return lookup.cost + check < work.scan * min(covered, 1.0)


def _restricted(lookup: Lookup, reader: TableReader, request: ScanRequest) -> ScanRequest:
    addresses, covered = lookup.rows(), lookup.fragment_ids
    found = {owner: _ranges(addresses, mine) for owner, mine in by_fragment(addresses.starts)}
    ids = reader.manifest.fragment_list.columns.ids
    everything = RowRanges(np.zeros(1, np.int64), np.full(1, _END))
    rows, kept, is_covered = {}, [], True
    for position in range(len(ids)) if request.fragments is None else request.fragments:
        fragment_id = int(ids[position])
        ranges = found.get(fragment_id) if fragment_id in covered else everything
        is_covered &= fragment_id in covered
        if ranges is not None:
            rows[fragment_id] = ranges
            kept.append(position)
    return replace(
        request,
        rows=rows,
        fragments=tuple(kept),
        filter=None if lookup.is_exact and is_covered else request.filter,
        used_indices=tuple(f"{text}, {addresses.num_rows:,} rows" for text in lookup.texts()),
    )


def _ranges(addresses: AddressRanges, chosen: NDArray[np.int64]) -> RowRanges:
    """Return some ranges of addresses, all of one fragment, as rows of this fragment."""
    starts = offsets_of(addresses.starts[chosen])
    return RowRanges(starts, starts + (addresses.stops[chosen] - addresses.starts[chosen]).view(np.int64))
