"""Nullability of expressions, as recorded in the schema of a computed column.

The rules are those of the reference. They are coarse: most functions count as nullable regardless of their arguments.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lance_dataset.expr.tree import (
    And,
    Arithmetic,
    Call,
    Cast,
    Column,
    Comparison,
    Concatenation,
    Constant,
    Expression,
    IsDistinct,
    IsNull,
    IsTruth,
    Like,
    Negate,
    Not,
    OneOf,
    Or,
)

__all__ = ["may_be_null"]

#: Nodes that are null where an operand is null.
_STRICT = (And, Arithmetic, Comparison, Concatenation, IsDistinct, IsTruth, Like, Negate, Not, OneOf, Or)
_STRICT_FUNCTIONS = frozenset(("starts_with",))


def may_be_null(node: Expression, schema: pa.Schema) -> bool:
    """Return True if a bound tree may be null for rows of a schema."""
    if isinstance(node, Column):
        return _column_may_be_null(node.path, schema)
    if isinstance(node, Constant):
        return not node.value.is_valid
    if isinstance(node, IsNull):
        return False
    if isinstance(node, Cast):
        return node.lenient or may_be_null(node.operand, schema)
    if isinstance(node, OneOf) and node.values.null_count:
        return True
    children = [may_be_null(child, schema) for child in node.children()]
    if isinstance(node, Call):
        if node.name == "coalesce":
            return all(children)
        return node.name not in _STRICT_FUNCTIONS or any(children)
    return not isinstance(node, _STRICT) or any(children)


def _column_may_be_null(path: tuple[str, ...], schema: pa.Schema) -> bool:
    around: Any = schema
    for name in path:
        field = around.field(name)
        if field.nullable:
            return True
        around = field.type
        while isinstance(around, pa.BaseExtensionType):
            around = around.storage_type
    return False
