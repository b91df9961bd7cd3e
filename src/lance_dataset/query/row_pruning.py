"""Filters that name rows by id, address or number: which rows a scan has to look at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lance_dataset.query.expr.tree import And, Column, Comparison, Constant, Expression, InList, Or
from lance_dataset.query.prune import RowRanges, may_fail
from lance_dataset.query.request import ScanRequest
from lance_dataset.query.table_reader import ROW_BITS, TableReader, grouped

__all__ = ["narrowed"]

Addresses: TypeAlias = NDArray[np.uint64]

_OFFSETS = np.uint64((1 << ROW_BITS) - 1)


def narrowed(reader: TableReader, request: ScanRequest) -> ScanRequest:
    """The request restricted to the rows that its filter names, if it names any.

    ``_rowid = 5 AND a > 3`` names a row by stable id, which the index of row ids finds, or by address. As with pruning
    by statistics (`query.prune`) no error gets lost: a filter that may raise one is computed for all rows.
    """
    tree = None if request.filter is None else request.filter.tree
    if tree is None or request.include_deleted or request.rows is not None or may_fail(tree):
        return request
    addresses = _named(reader, tree)
    if addresses is None:
        return request
    rows, positions = {}, set()
    for fragment_id, mine in grouped(addresses >> np.uint64(ROW_BITS)):
        position = reader.manifest.fragment_list.position(fragment_id)
        if position is not None:
            offsets = (addresses[mine] & _OFFSETS).astype(np.int64)
            rows[fragment_id] = RowRanges.of_rows(offsets)
            positions.add(position)
    order = range(len(reader.fragments)) if request.fragments is None else request.fragments
    return replace(request, rows=rows, fragments=tuple(each for each in order if each in positions))


def _named(reader: TableReader, node: Expression) -> Addresses | None:
    """Addresses, ascending, among which are those of all live rows that a filter keeps; None if it names no rows."""
    if isinstance(node, And | Or):
        parts = [_named(reader, operand) for operand in node.operands]
        known = [part for part in parts if part is not None]
        if not known or (isinstance(node, Or) and len(known) < len(parts)):
            return None
        return reduce(np.union1d if isinstance(node, Or) else np.intersect1d, known)
    if isinstance(node, Comparison) and node.operator == "=":
        sides = (node.left, node.right)
        column = next((side for side in sides if isinstance(side, Column)), None)
        constants = tuple(side for side in sides if isinstance(side, Constant))
        return _chosen(reader, column, constants)
    if isinstance(node, InList) and not node.negated:
        return _chosen(reader, node.operand, node.items)
    return None


def _chosen(reader: TableReader, column: Expression | None, items: tuple[Expression, ...]) -> Addresses | None:
    if not isinstance(column, Column) or column.path[0] not in _FINDERS or not items:
        return None
    values = [item.value.as_py() for item in items if isinstance(item, Constant)]
    if len(values) < len(items) or not all(value is None or isinstance(value, int) for value in values):
        return None
    named = np.array(sorted({value for value in values if value is not None}), np.uint64)
    return np.unique(_FINDERS[column.path[0]](reader, named))


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
