"""Filters that differ only in their numbers and strings: parsed and bound once, then only the constants change.

Programs ask for one row after another with the same filter and another key. Databases call the technique simple
parameterization.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Generic, TypeAlias, TypeVar

import pyarrow as pa

from lance_dataset.expr.lexer import Token, TokenKind
from lance_dataset.expr.literals import LiteralMismatch, convert_literal
from lance_dataset.expr.tree import And, Column, Comparison, Constant, Expression, InList, Literal, Name, Not, Or

__all__ = ["BySchema", "FilterShape", "shape_of"]

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")
Shape: TypeAlias = "tuple[str | TokenKind, ...]"

#: Tokens that filters of one shape may differ in.
_FREE: Final = (TokenKind.INTEGER, TokenKind.STRING)
#: Nodes that bind to nodes of the same kind, whatever the constants are.
_PLAIN: Final = (And, Or, Not, Comparison, InList)
_MOST_SCHEMAS: Final = 16
_MOST_SHAPES: Final = 256


def shape_of(tokens: Sequence[Token]) -> Shape:
    """Return what filters of one shape have in common: all tokens but the values of integers and strings."""
    return tuple(token.kind if token.kind in _FREE else token.text for token in tokens)


@dataclass(frozen=True)
class FilterShape:
    """A bound filter whose constants can be replaced.

    Attributes
    ----------
    tree
        The filter.
    field_paths
        Paths of the columns that it reads.
    constants
        Constants of the filter, each with the number of the token that it was written as.
    """

    tree: Expression
    field_paths: tuple[tuple[str, ...], ...]
    constants: tuple[tuple[Constant, int], ...]

    def bound(self, tokens: Sequence[Token]) -> Expression | None:
        """Return the filter with the constants of other tokens of the shape; None if one of them does not fit."""
        made: dict[int, Constant] = {}
        for constant, number in self.constants:
            value = _converted(tokens[number], constant.type)
            if value is None:
                return None
            made[id(constant)] = Constant(value, type=constant.type, position=tokens[number].position)
        return _with_constants(self.tree, made)

    @staticmethod
    def of(
        parsed: Expression, bound: Expression, field_paths: tuple[tuple[str, ...], ...], tokens: Sequence[Token]
    ) -> FilterShape | None:
        """Return the shape of a filter; None if other constants could bind to something else.

        Parameters
        ----------
        parsed, bound
            The filter before and after it was bound.
        field_paths
            Paths of the columns that it reads.
        tokens
            Its tokens.
        """
        numbers = {token.position: number for number, token in enumerate(tokens) if token.kind in _FREE}
        found: list[tuple[Constant, int]] = []
        if not _collect(parsed, bound, numbers, tokens, found) or len(found) != len(numbers):
            return None
        return FilterShape(bound, field_paths, tuple(found))


def _converted(token: Token, kind: pa.DataType) -> pa.Scalar | None:
    """Return the literal of a token as a value of a type; None if it has no such value."""
    value = token.value
    if not isinstance(value, int | str):
        return None
    try:
        scalar = convert_literal(Literal(value), kind)
    except LiteralMismatch:
        return None
    return scalar if scalar.type.equals(kind) else None


def _collect(
    parsed: Expression,
    bound: Expression,
    numbers: dict[int, int],
    tokens: Sequence[Token],
    found: list[tuple[Constant, int]],
) -> bool:
    """Add the constants of a tree; return False if it was not bound node by node."""
    if isinstance(parsed, Name):
        return isinstance(bound, Column)
    if isinstance(parsed, Literal):
        number = numbers.get(parsed.position)
        if number is None or not isinstance(bound, Constant) or bound.position != parsed.position:
            return False
        found.append((bound, number))
        value = _converted(tokens[number], bound.type)
        return value is not None and value.equals(bound.value)
    if type(parsed) is not type(bound) or not isinstance(parsed, _PLAIN):
        return False
    mine, theirs = parsed.children(), bound.children()
    if isinstance(parsed, Comparison) and isinstance(bound, Comparison) and parsed.operator != bound.operator:
        mine = mine[::-1]  # a constant on the left changes sides
    return len(mine) == len(theirs) and all(
        _collect(one, two, numbers, tokens, found) for one, two in zip(mine, theirs, strict=True)
    )


def _with_constants(node: Expression, made: dict[int, Constant]) -> Expression:
    if isinstance(node, Constant):
        return made[id(node)]
    if isinstance(node, Comparison):
        left, right = _with_constants(node.left, made), _with_constants(node.right, made)
        return Comparison(node.operator, left, right, type=node.type, position=node.position)
    if isinstance(node, And | Or):
        return type(node)(tuple(_with_constants(each, made) for each in node.operands), type=node.type)
    if isinstance(node, Not):
        return Not(_with_constants(node.operand, made), type=node.type)
    if isinstance(node, InList):
        return replace(node, items=tuple(_with_constants(each, made) for each in node.items))
    return node


class BySchema(Generic[_Key, _Value]):
    """Knowledge of the filters of some schemas, such as their shapes."""

    def __init__(self) -> None:
        self._by_schema: dict[int, tuple[pa.Schema, dict[_Key, _Value]]] = {}

    def of_schema(self, schema: pa.Schema) -> dict[_Key, _Value]:
        """Return what is known of the filters of a schema object, as a dictionary to add to."""
        known = self._by_schema.get(id(schema))
        if known is None or known[0] is not schema:
            if len(self._by_schema) >= _MOST_SCHEMAS:
                self._by_schema.clear()
            known = self._by_schema[id(schema)] = schema, {}
        if len(known[1]) >= _MOST_SHAPES:
            known[1].clear()
        return known[1]
