"""Filters that name rows by id, address or number: find the rows that a scan has to examine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.expr.tree import And, Column, Comparison, Constant, Expression, OneOf, Or
from lance_dataset.late_dataclass import dataclass
from lance_dataset.read.table_reader import TableReader
from lance_dataset.scan.few_rows import FEW_ROWS, few_of_scan, may_take
from lance_dataset.scan.pruning.prune import is_total
from lance_dataset.scan.request import ScanRequest
from lance_dataset.scan.row_ranges import RowRanges
from lance_dataset.table.row_addresses import first_addresses, fragments_of, last_addresses, offsets_of

__all__ = ["named_rows", "named_rows_or_few"]

Addresses: TypeAlias = NDArray[np.uint64]

_HIGHEST = (1 << 64) - 1
_FLIPPED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True, eq=False)
class _Intervals:
    """Row addresses from `firsts` to `lasts`, both included; ascending and not overlapping."""

    firsts: Addresses
    lasts: Addresses

    @staticmethod
    def of(values: Addresses) -> _Intervals:
        """Return the intervals of some addresses, given in any order."""
        values = np.unique(values)
        cuts = np.flatnonzero(values[1:] - values[:-1] > 1) if len(values) else np.empty(0, np.int64)
        if len(values) == 0:
            return _Intervals(values, values)
        return _Intervals(values[np.append(0, cuts + 1)], values[np.append(cuts, len(values) - 1)])

    @staticmethod
    def between(first: int, last: int) -> _Intervals:
        """Return all addresses of a range; empty if `first` is greater than `last`."""
        first, last = max(first, 0), min(last, _HIGHEST)
        ends = ([first], [last]) if first <= last else ([], [])
        return _Intervals(np.array(ends[0], np.uint64), np.array(ends[1], np.uint64))

    def union(self, other: _Intervals) -> _Intervals:
        """Return the addresses in either set."""
        firsts = np.concatenate([self.firsts, other.firsts])
        order = np.argsort(firsts, kind="stable")
        firsts, lasts = firsts[order], np.concatenate([self.lasts, other.lasts])[order]
        reach = np.maximum.accumulate(lasts)
        apart = np.append(True, firsts[1:] > reach[:-1])[: len(firsts)]
        ends = np.append(apart[1:], True)[: len(firsts)]
        return _Intervals(firsts[apart], reach[ends])

    def intersection(self, other: _Intervals) -> _Intervals:
        """Return the addresses in both sets."""
        return self.overlaps(other)[1]

    def overlaps(self, other: _Intervals) -> tuple[NDArray[np.int64], _Intervals]:
        """Intersect each interval with another set; return the common parts and the index of the interval of each."""
        low = np.searchsorted(other.lasts, self.firsts, side="left")
        high = np.searchsorted(other.firsts, self.lasts, side="right")
        counts = np.maximum(high - low, 0)
        mine = np.repeat(np.arange(len(self.firsts)), counts)
        theirs = np.arange(len(mine)) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(low, counts)
        firsts = np.maximum(self.firsts[mine], other.firsts[theirs])
        return mine, _Intervals(firsts, np.minimum(self.lasts[mine], other.lasts[theirs]))


def named_rows(reader: TableReader, request: ScanRequest) -> ScanRequest:
    """Return the request restricted to the rows that its filter names, if it names any.

    ``_rowid = 5 AND a > 3`` names a row by stable id, which the index of row ids finds, or by address.
    ``_rowoffset < 100`` names rows by their number. As with pruning by statistics (`scan.pruning.prune`), no error gets
    lost: a filter that may raise one is computed for all rows.
    """
    tree = _naming(request)
    named = None if tree is None else _named(reader, tree)
    return request if named is None else _restricted(reader, request, named)


def named_rows_or_few(reader: TableReader, request: ScanRequest) -> ScanRequest | Addresses:
    """Return the same request as `named_rows`, or the addresses of all rows of the scan if its filter just lists few.

    The addresses are those of live rows, after offset and limit, in the order of the scan.
    """
    tree = _naming(request)
    named = None if tree is None else _named(reader, tree)
    if tree is None or named is None:
        return request
    if _lists_all(tree) and not request.only_indexed and may_take(reader, request):
        found = named.firsts
        if len(found) and int((named.lasts - found).sum()):
            counts = (named.lasts - found + np.uint64(1)).astype(np.int64)
            steps = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
            found = np.repeat(found, counts) + steps.astype(np.uint64)
        if request.fragments is not None:
            chosen = reader.manifest.fragment_list.columns.ids[list(request.fragments)]
            found = found[np.isin(fragments_of(found), chosen)]
        if len(found) <= FEW_ROWS:
            return few_of_scan(reader, request, found)
    return _restricted(reader, request, named)


def _naming(request: ScanRequest) -> Expression | None:
    """Return the filter of a request if the rows that it names may be all that are examined."""
    if request.filter is None or request.include_deleted or request.rows is not None or not is_total(request.filter):
        return None
    return request.filter.tree


def _lists_all(node: Expression) -> bool:
    """Return True if a filter that names rows keeps all of these and no others."""
    if isinstance(node, And | Or):
        return all(map(_lists_all, node.operands))
    if isinstance(node, OneOf):
        return not node.negated and _has_finder(node.operand)
    if not isinstance(node, Comparison) or node.operator != "=":
        return False
    sides = (node.left, node.right)
    return any(map(_has_finder, sides)) and any(isinstance(side, Constant) for side in sides)


def _has_finder(node: Expression) -> bool:
    return isinstance(node, Column) and node.path[0] in _FINDERS


def _restricted(reader: TableReader, request: ScanRequest, named: _Intervals) -> ScanRequest:
    ids = reader.manifest.fragment_list.columns.ids.astype(np.uint64)
    positions = np.arange(len(ids)) if request.fragments is None else np.unique(np.array(request.fragments, np.int64))
    positions = positions[np.argsort(ids[positions])]
    owners, common = _Intervals(first_addresses(ids[positions]), last_addresses(ids[positions])).overlaps(named)
    rows, found = {}, set()
    begins = np.flatnonzero(np.append(True, owners[1:] != owners[:-1])[: len(owners)])
    starts, stops = offsets_of(common.firsts), offsets_of(common.lasts) + 1
    for begin, end in pairwise([*begins.tolist(), len(owners)]):
        position = int(positions[owners[begin]])
        rows[int(ids[position])] = RowRanges(starts[begin:end], stops[begin:end])
        found.add(position)
    order = range(len(ids)) if request.fragments is None else request.fragments
    return replace(request, rows=rows, fragments=tuple(each for each in order if each in found))


def _named(reader: TableReader, node: Expression) -> _Intervals | None:
    """Return addresses that include all live rows that a filter keeps; None if it names no rows."""
    if isinstance(node, And | Or):
        parts = [_named(reader, operand) for operand in node.operands]
        known = [part for part in parts if part is not None]
        if not known or (isinstance(node, Or) and len(known) < len(parts)):
            return None
        return reduce(_Intervals.union if isinstance(node, Or) else _Intervals.intersection, known)
    if isinstance(node, Comparison) and node.operator in _FLIPPED:
        return _compared(reader, node)
    if isinstance(node, OneOf) and not node.negated:
        return _chosen(reader, node.operand, node.values)
    return None


def _compared(reader: TableReader, node: Comparison) -> _Intervals | None:
    column, constant, operator = node.left, node.right, node.operator
    if isinstance(constant, Column):
        column, constant, operator = constant, column, _FLIPPED[operator]
    if operator == "=":
        if not isinstance(constant, Constant):
            return None
        return _chosen(reader, column, pa.array([constant.value], constant.type))
    if not isinstance(column, Column) or column.path[0] not in _FINDERS or not isinstance(constant, Constant):
        return None
    value = constant.value.as_py()
    if value is None:
        return _Intervals.of(np.empty(0, np.uint64))
    if not isinstance(value, int):
        return None
    first = 0 if operator in ("<", "<=") else value + (operator == ">")
    last = _HIGHEST if operator in (">", ">=") else value - (operator == "<")
    if column.path[0] == "_rowoffset":
        return _numbers_between(reader, first, last)
    if column.path[0] == "_rowid" and reader.manifest.uses_stable_row_ids:
        return None
    return _Intervals.between(first, last)


def _numbers_between(reader: TableReader, first: int, last: int) -> _Intervals:
    """Return the rows whose numbers among the live ones are in a range."""
    first, last = max(first, 0), min(last, reader.num_rows - 1)
    if first > last:
        return _Intervals.between(1, 0)
    starts, ids = reader.live_starts, reader.manifest.fragment_list.columns.ids
    low, high = (np.searchsorted(starts, (first, last), side="right") - 1).tolist()
    firsts, lasts = first_addresses(ids[low : high + 1]), last_addresses(ids[low : high + 1])
    ends = reader.addresses_of_numbers(np.array([first, last], np.int64))
    firsts[0], lasts[-1] = ends[0], ends[1]
    order = np.argsort(firsts)
    return _Intervals(firsts[order], lasts[order])


def _chosen(reader: TableReader, column: Expression, values: pa.Array) -> _Intervals | None:
    """Return the addresses of the rows that have one of some values in a column that names rows."""
    if not isinstance(column, Column) or column.path[0] not in _FINDERS or not pa.types.is_integer(values.type):
        return None
    known = np.asarray(values.drop_null())
    named = np.unique(known[known >= 0]).astype(np.uint64)
    return _Intervals.of(_FINDERS[column.path[0]](reader, named))


def _by_id(reader: TableReader, ids: NDArray[np.uint64]) -> Addresses:
    if not reader.manifest.uses_stable_row_ids:
        return _by_address(reader, ids)
    addresses, found = reader.addresses_of_ids(ids)
    return addresses[found]


def _by_address(reader: TableReader, addresses: NDArray[np.uint64]) -> Addresses:
    return addresses[reader.is_live(addresses)]


def _by_number(reader: TableReader, numbers: NDArray[np.uint64]) -> Addresses:
    return reader.addresses_of_numbers(numbers[numbers < reader.num_rows].astype(np.int64))


_FINDERS: dict[str, Callable[[TableReader, NDArray[np.uint64]], Addresses]] = {
    "_rowid": _by_id,
    "_rowaddr": _by_address,
    "_rowoffset": _by_number,
}
