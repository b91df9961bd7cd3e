"""Conditions of filters that columns can test on their stored values."""

from __future__ import annotations

import pyarrow as pa

from lance_dataset.expr.compiled import Filter
from lance_dataset.expr.tree import And, Column, Constant, Expression, IsNull, IsTruth, Not, Or
from lance_dataset.file.stored_test import StoredTest
from lance_dataset.scan.encoded_filter import columns_read
from lance_dataset.scan.interval_tests import interval_test

__all__ = ["stored_test"]


def stored_test(filter: Filter, arrow_type: pa.DataType) -> StoredTest | None:
    """Return a condition on one column as a test of its stored values.

    Parameters
    ----------
    filter
        The condition.
    arrow_type
        Type of the stored values of the column.

    Returns
    -------
    StoredTest or None
        None if the condition reads anything else than one column, or may have another result for the same value.
    """
    if filter.tree is None or len(filter.columns) != 1:
        return None
    column = filter.columns[0]
    names, is_steady = columns_read(filter.tree)
    if names != {column} or not is_steady:
        return None

    def evaluate(values: pa.Array) -> pa.BooleanArray:
        return filter.mask(pa.RecordBatch.from_arrays([values], names=[column]))

    if _asks_for_nulls(filter.tree, column):
        value, null = evaluate(pa.array([True, None])).to_pylist()
        return StoredTest(evaluate, validity=(value, null))
    return StoredTest(evaluate, interval_test(filter, arrow_type))


def _asks_for_nulls(node: Expression, column: str) -> bool:
    """Return True if a condition depends on nothing but whether the column is null."""
    if isinstance(node, IsNull):
        return isinstance(node.operand, Column) and node.operand.path == (column,)
    if isinstance(node, Constant):
        return pa.types.is_boolean(node.type)
    return isinstance(node, And | Or | Not | IsTruth) and all(
        _asks_for_nulls(child, column) for child in node.children()
    )
