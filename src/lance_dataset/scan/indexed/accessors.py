"""Calls that read a value of JSON documents, such as ``json_get_int(j, 'x')``, as values that indices may be of.

Such a call raises an error for documents whose value cannot be converted. An index of values of the type of the call
proves that the documents of its fragments have no such value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

import pyarrow as pa

from lance_dataset.errors import FieldNotFoundError
from lance_dataset.expr.tree import Call, Column, Constant, Expression
from lance_dataset.expr.type_rules import is_binary
from lance_dataset.index.open_segments import FieldIndex, IndexedValue
from lance_dataset.index.scalar.json_path import path_of_keys
from lance_dataset.scan.pruning.prune import may_fail_itself
from lance_dataset.types.schema import Schema

__all__ = ["TypedValue", "accessed_value", "failing_accessors", "proven_fragments"]

#: A value inside of documents, and the type as which it is read.
TypedValue: TypeAlias = tuple[IndexedValue, pa.DataType]

_TYPED = frozenset({"json_get_int", "json_get_float", "json_get_bool", "json_get_string"})
_UNTYPED = "json_get"


def accessed_value(node: Expression, schema: Schema) -> IndexedValue | None:
    """Return what an index must be of to have the values of a call; None if no index can.

    Parameters
    ----------
    node
        Part of a filter that is bound to the schema.
    schema
        Schema of the table.
    """
    if not isinstance(node, Call) or node.name not in _TYPED:
        return None
    keys: list[str] = []
    operand: Expression = node
    while isinstance(operand, Call) and (operand is node or operand.name == _UNTYPED) and len(operand.arguments) == 2:
        operand, key = operand.arguments
        text = key.value.as_py() if isinstance(key, Constant) else None
        if not isinstance(text, str):
            return None
        keys.insert(0, text)
    if not isinstance(operand, Column) or not is_binary(operand.type):
        return None
    try:
        field = schema.descend(operand.path)[-1]
    except FieldNotFoundError:  # a column of the system
        return None
    path = path_of_keys(keys)
    return None if path is None or field.storage_type != operand.type else IndexedValue(field.id, path)


def failing_accessors(node: Expression, schema: Schema) -> frozenset[TypedValue] | None:
    """Return the values whose reading may raise an error; None if other parts of a filter may raise one, too."""
    value = accessed_value(node, schema)
    if value is not None:
        return frozenset({(value, node.type)})
    if may_fail_itself(node):
        return None
    found: set[TypedValue] = set()
    for child in node.children():
        inner = failing_accessors(child, schema)
        if inner is None:
            return None
        found |= inner
    return frozenset(found)


def proven_fragments(
    accessors: Iterable[TypedValue], by_value: Mapping[IndexedValue, tuple[FieldIndex, ...]]
) -> frozenset[int] | None:
    """Return the fragments in which no value raises an error when it is read; None for all fragments.

    Only indices that are open prove something.
    """
    proven: frozenset[int] | None = None
    for value, kind in accessors:
        typed = [each.of_type(kind) for each in by_value.get(value, ()) if not each.opening_cost]
        covered = frozenset[int]().union(*(each.fragment_ids for each in typed if each is not None))
        proven = covered if proven is None else proven & covered
    return proven
