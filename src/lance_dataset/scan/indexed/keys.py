"""Scans restricted to the rows that have one of many keys, as merges need them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.index.open_segments import FieldIndex, IndexedValue
from lance_dataset.index.scalar.conditions import Answer, KeyCondition
from lance_dataset.index.scalar.value_order import order_of
from lance_dataset.index.trainer import is_ordered
from lance_dataset.read.table_reader import TableReader
from lance_dataset.scan.indexed.answering import IndexAnswer, scan_cost
from lance_dataset.scan.indexed.checking import is_checking
from lance_dataset.scan.indexed.conditions import ColumnCondition
from lance_dataset.scan.indexed.lookups import Leaf
from lance_dataset.scan.request import ScanRequest

__all__ = ["restricted_to_keys"]


def restricted_to_keys(reader: TableReader, request: ScanRequest, keys: Mapping[str, pa.ChunkedArray]) -> ScanRequest:
    """Return a request without a filter restricted to the rows that may have given keys, if an index finds them faster.

    Parameters
    ----------
    reader
        The version of the table.
    request
        The scan.
    keys
        Key columns: the name of each column of the table, and its values in all keys. Keys with a null do not count.
    """
    if request.indices is None:
        return request
    by_value = request.indices.by_value
    for name, values in keys.items():
        field = request.schema.top_level(name)
        value = IndexedValue(field.id)
        if value not in by_value or values.type != field.storage_type or not is_ordered(values.type):
            continue
        cost = scan_cost(reader, request, tuple(keys))
        found = _lookup(
            by_value[value], ColumnCondition(value, values.type, partial(str, name), _condition(values)), cost
        )
        if found is not None:
            return IndexAnswer(found, found.rows(), True).restricted(reader, request)
    return request


def _condition(values: pa.ChunkedArray) -> KeyCondition:
    # floats that are equal may differ bit by bit
    distinct = values.combine_chunks() if pa.types.is_floating(values.type) else pc.unique(values)
    return KeyCondition(order_of(values.type).sort(distinct.drop_null())[0])


def _lookup(indices: tuple[FieldIndex, ...], asked: ColumnCondition, scan: float) -> Leaf | None:
    """Return the fastest lookup of keys, None if scanning is faster."""
    found = []
    for each in indices:
        if each.answers(asked.condition, asked.kind) is Answer.NONE:
            continue
        if is_checking() or each.is_worth_opening(scan):
            found.append(Leaf(each, asked, True))
    best = min(found, key=lambda each: each.cost, default=None)
    return best if best is not None and (is_checking() or best.cost < scan) else None
