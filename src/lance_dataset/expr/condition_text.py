"""Conditions as text, for plans."""

from __future__ import annotations

import pyarrow as pa

from lance_dataset.expr.tree import (
    Call,
    Column,
    Comparison,
    Constant,
    Expression,
    IsNull,
    IsTruth,
    Like,
    Not,
    OneOf,
)
from lance_dataset.types.geoarrow import geometry_layout

__all__ = ["condition_text"]

#: Values of a list, and characters of a value, that are shown.
_SHOWN_ITEMS = 5
_SHOWN_CHARACTERS = 60


def condition_text(node: Expression) -> str:
    """Return a condition as SQL text; long values are cut."""
    if isinstance(node, Column):
        return ".".join(node.path)
    if isinstance(node, Constant):
        return _value_text(node.value) if node.metadata is None else _geometry_text(node)
    if isinstance(node, Not):
        return f"NOT ({condition_text(node.operand)})"
    if isinstance(node, Comparison):
        return f"{condition_text(node.left)} {node.operator} {condition_text(node.right)}"
    if isinstance(node, OneOf):
        items = [_value_text(value) for value in node.values[:_SHOWN_ITEMS]]
        more = ["..."] if len(node.values) > _SHOWN_ITEMS else []
        return f"{condition_text(node.operand)} {_negation(node.negated)}IN ({', '.join(items + more)})"
    if isinstance(node, IsNull):
        return f"{condition_text(node.operand)} IS {_negation(node.negated)}NULL"
    if isinstance(node, IsTruth):
        return f"{condition_text(node.operand)} IS {_negation(node.negated)}{str(node.truth).upper()}"
    if isinstance(node, Like):
        word = "ILIKE" if node.ignore_case else "LIKE"
        return f"{condition_text(node.operand)} {_negation(node.negated)}{word} {condition_text(node.pattern)}"
    if isinstance(node, Call):
        return f"{node.name}({', '.join(map(condition_text, node.arguments))})"
    return type(node).__name__.lower()


def _negation(negated: bool) -> str:
    return "NOT " if negated else ""


def _geometry_text(node: Constant) -> str:
    """Return a computed geometry as text; other values as they are."""
    layout = geometry_layout(pa.field("", node.type, metadata=node.metadata))
    if layout is None or not node.value.is_valid or layout.kind == "wkt":
        return _value_text(node.value)
    from lance_dataset.expr.geometry.measures import as_text

    return _value_text(as_text(pa.array([node.value], node.type), layout)[0])


def _value_text(value: pa.Scalar) -> str:
    found = value.as_py()
    if found is None:
        return "NULL"
    text = f"'{found}'" if isinstance(found, str) else str(found)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."
