"""Filters split into conditions, which a scan computes one after another."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from lance_dataset.expr.compiled import Filter
from lance_dataset.expr.evaluate import compile_tree
from lance_dataset.expr.tree import And, Column, Expression, walk
from lance_dataset.file.stored_test import StoredTest
from lance_dataset.scan.costs import ColumnCosts
from lance_dataset.scan.pruning.prune import may_fail
from lance_dataset.scan.request import ScanRequest
from lance_dataset.scan.stored_tests import stored_test

__all__ = ["filter_steps", "step_test"]


def filter_steps(request: ScanRequest, filter: Filter, costs: ColumnCosts) -> tuple[Filter, ...]:
    """Split a filter into conditions by the columns they read, cheap columns first.

    A filter that could raise an error stays whole: the rows it is computed for must not depend on costs.
    """
    steps = filter.finding(_steps)
    if not steps:
        return (filter,)
    stored = set(request.schema.names)

    def cost(step: Filter) -> float:
        return sum(costs.cost(request.schema.top_level(name)).read for name in step.columns if name in stored)

    return tuple(sorted(steps, key=cost))


def _steps(filter: Filter) -> tuple[Filter, ...]:
    """Return the conditions of a filter by the columns they read; none if it stays whole."""
    tree = filter.tree
    if not isinstance(tree, And) or may_fail(tree):
        return ()
    groups: dict[frozenset[str], list[Expression]] = {}
    for condition in _conditions(tree):
        names = frozenset(node.path[0] for node in walk(condition) if isinstance(node, Column))
        groups.setdefault(names, []).append(condition)
    return tuple(map(_filter, groups.values())) if len(groups) > 1 else ()


def _conditions(tree: Expression) -> list[Expression]:
    if isinstance(tree, And):
        return [condition for operand in tree.operands for condition in _conditions(operand)]
    return [tree]


def _filter(conditions: list[Expression]) -> Filter:
    tree = conditions[0] if len(conditions) == 1 else And(tuple(conditions))
    paths = dict.fromkeys(node.path for node in walk(tree) if isinstance(node, Column))
    text = f"the conditions on {', '.join(dict.fromkeys(path[0] for path in paths)) or 'no column'}"
    return Filter(compile_tree(tree), text, pa.bool_(), tuple(paths), tree)


def step_test(step: Filter, request: ScanRequest, costs: ColumnCosts) -> StoredTest | None:
    """Return a condition as a test of the stored values of its column, None if it is not one or the column has none."""
    if len(step.columns) != 1 or step.columns[0] not in request.schema.names:
        return None
    stored = request.schema.top_level(step.columns[0])
    test = stored_test(step, stored.storage_type)
    if test is None or not costs.can_search(stored, test):
        return None
    return test if request.use_statistics else replace(test, uses_bounds=False)
