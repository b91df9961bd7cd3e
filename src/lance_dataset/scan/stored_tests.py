"""Conditions of filters that columns can test on their stored values."""

from __future__ import annotations

import pyarrow as pa

from lance_dataset.expr.compiled import Filter
from lance_dataset.expr.tree import And, Column, Constant, Expression, IsNull, IsTruth, Not, Or
from lance_dataset.file.stored_test import StoredTest
from lance_dataset.scan.encoded_filter import columns_read
from lance_dataset.scan.interval_tests import interval_test
from lancecodec.intervals import IntervalTest

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
    if len(filter.columns) != 1 or not filter.finding(_is_testable):
        return None
    column = filter.columns[0]

    def evaluate(values: pa.Array) -> pa.BooleanArray:
        return filter.mask(pa.RecordBatch.from_arrays([values], names=[column]))

    validity = filter.finding(_validity)
    return StoredTest(evaluate, None if validity else _intervals(filter, arrow_type), validity)


def _is_testable(filter: Filter) -> bool:
    """Return True if the condition reads nothing but its one column, and always has the same result for a value."""
    if filter.tree is None:
        return False
    names, is_steady = columns_read(filter.tree)
    return names == set(filter.columns) and is_steady


def _validity(filter: Filter) -> tuple[bool, bool] | None:
    """Return the results for any value and for null if the condition asks only for nulls, otherwise None."""
    column = filter.columns[0]
    if filter.tree is None or not _asks_for_nulls(filter.tree, column):
        return None
    value, null = filter.mask(pa.RecordBatch.from_arrays([pa.array([True, None])], names=[column])).to_pylist()
    return value, null


def _intervals(filter: Filter, arrow_type: pa.DataType) -> IntervalTest | None:
    """Return the condition as a test of plain values of a type, which is kept with the filter."""
    known = filter.finding(_by_type)
    for each, test in known:
        if each.equals(arrow_type):
            return test
    test = interval_test(filter, arrow_type)
    known.append((arrow_type, test))
    return test


def _by_type(filter: Filter) -> list[tuple[pa.DataType, IntervalTest | None]]:
    return []


def _asks_for_nulls(node: Expression, column: str) -> bool:
    """Return True if a condition depends on nothing but whether the column is null."""
    if isinstance(node, IsNull):
        return isinstance(node.operand, Column) and node.operand.path == (column,)
    if isinstance(node, Constant):
        return pa.types.is_boolean(node.type)
    return isinstance(node, And | Or | Not | IsTruth) and all(
        _asks_for_nulls(child, column) for child in node.children()
    )
