"""Parts of plans of DataFusion that a scan should know, besides what DataFusion passes to it."""

from __future__ import annotations

from functools import reduce
from operator import and_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["aggregates_freely", "first_rows", "text_condition"]

# Aggregates that do not depend on the order of rows, but for the last digits of sums of floats.
_ORDER_FREE = frozenset({"avg", "bit_and", "bit_or", "bit_xor", "bool_and", "bool_or", "count", "max", "min", "sum"})
# Steps above an aggregate, and below it, that do not depend on the order of rows either.
_ABOVE = frozenset({"Distinct", "Filter", "Limit", "Projection", "Sort", "SubqueryAlias"})
_BELOW = frozenset({"Aggregate", "Filter", "Projection", "SubqueryAlias", "TableScan"})


def aggregates_freely(plan: Any) -> bool:
    """Return whether the rows of a query come from an aggregate that gives the same for any order of the rows it reads.

    Such aggregates are computed by all processors at once.
    """
    if "Subquery:" in plan.display_indent():
        return False
    known, found = _ABOVE, False
    while True:
        node, inputs = _node(plan), plan.inputs()
        kind = type(node).__name__
        if kind == "Aggregate":
            known, found = _BELOW, True
            if not all(node.agg_func_name(each) in _ORDER_FREE for each in node.aggregate_exprs()):
                return False
        if kind not in known:
            return False
        if len(inputs) != 1:
            return found and not inputs
        plan = inputs[0]


def first_rows(plan: Any) -> int | None:
    """Return how many rows of its only scan a query reads; None for all, and if there may be other scans."""
    inputs = plan.inputs()
    if type(_node(plan)).__name__ != "Limit" or len(inputs) != 1:
        return None
    scan = _node(inputs[0])
    found: int | None = scan.fetch() if type(scan).__name__ == "TableScan" else None
    return found


def text_condition(plan: Any, schema: pa.Schema) -> pc.Expression | None:
    """Return the conditions with LIKE on the columns of the only scan of a query, which DataFusion does not pass on.

    DataFusion applies them again, so a condition may be missing.

    Parameters
    ----------
    plan
        Optimized plan of a query.
    schema
        Schema of the table.
    """
    scans, filters = 0, []
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        inputs = node.inputs()
        kind = _node(node)
        scans += type(kind).__name__ == "TableScan"
        if type(kind).__name__ == "Filter" and type(_node(inputs[0])).__name__ == "TableScan":
            filters.append(kind.predicate())
        waiting.extend(inputs)
    if scans != 1 or len(filters) != 1 or "Subquery:" in plan.display_indent():
        return None
    found = [_like(condition, schema) for condition in _conditions(filters[0])]
    kept = [condition for condition in found if condition is not None]
    return reduce(and_, kept) if kept else None


def _node(found: Any) -> Any:
    """Return the object of a plan or an expression, None for a kind that has none in Python."""
    try:
        return found.to_variant()
    except ValueError:
        return None


def _conditions(expression: Any) -> list[Any]:
    """Split an AND into its operands."""
    node = _node(expression)
    if type(node).__name__ == "BinaryExpr" and node.op() == "AND":
        return [*_conditions(node.left()), *_conditions(node.right())]
    return [expression]


def _like(expression: Any, schema: pa.Schema) -> pc.Expression | None:
    """Return ``column [NOT] LIKE 'pattern'`` as an expression of pyarrow, None for anything else."""
    node = _node(expression)
    if type(node).__name__ != "Like" or type(column := _node(node.expr())).__name__ != "Column":
        return None
    name, pattern = column.name(), node.pattern()
    if type(_node(pattern)).__name__ != "Literal" or name not in schema.names:
        return None
    field, text = schema.field(name), pattern.python_value()
    if field.metadata or not (pa.types.is_string(field.type) or pa.types.is_large_string(field.type)):
        return None
    if isinstance(text, pa.Scalar):
        text = text.as_py()
    # ILIKE is of the same class, and only the text tells
    word = "NOT LIKE" if node.negated() else "LIKE"
    plain = f"{node.expr().canonical_name()} {word} {pattern.canonical_name()}"
    if not isinstance(text, str) or expression.canonical_name() != plain:
        return None
    matches = pc.match_like(pc.field(name), text)
    return ~matches if node.negated() else matches
