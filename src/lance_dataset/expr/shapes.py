"""Filters that differ only in their numbers and strings: parsed and bound once, then only the constants change.

Programs ask for one row after another with the same filter and another key. Databases call the technique simple
parameterization.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeAlias, TypeVar

import pyarrow as pa

from lance_dataset.expr.lexer import Token, TokenKind
from lance_dataset.expr.literals import LiteralMismatch, convert_literal, literal_array
from lance_dataset.expr.tree import (
    And,
    Column,
    Comparison,
    Constant,
    Expression,
    InList,
    Literal,
    Literals,
    Name,
    Not,
    OneOf,
    Or,
)

__all__ = ["BySchema", "FilterShape", "shape_of"]

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")
Shape: TypeAlias = "tuple[str | TokenKind, ...]"

#: Tokens that filters of one shape may differ in.
_FREE: Final = (TokenKind.INTEGER, TokenKind.STRING, TokenKind.LITERALS)
#: Nodes that bind to nodes of the same kind, whatever the constants are.
_PLAIN: Final = (And, Or, Not, Comparison)
_MOST_SCHEMAS: Final = 16
_MOST_SHAPES: Final = 256


_Found: TypeAlias = "list[tuple[Constant | OneOf, tuple[int, ...]]]"


def shape_of(tokens: Sequence[Token]) -> Shape:
    """Return what filters of one shape have in common: all tokens but the values of integers, strings and lists."""
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
        Constants and lists of the filter, each with the numbers of the tokens that it was written as.
    """

    tree: Expression
    field_paths: tuple[tuple[str, ...], ...]
    constants: tuple[tuple[Constant | OneOf, tuple[int, ...]], ...]

    def bound(self, tokens: Sequence[Token]) -> Expression | None:
        """Return the filter with the constants of other tokens of the shape; None if one of them does not fit."""
        made: dict[int, Constant | OneOf] = {}
        for node, numbers in self.constants:
            written = [tokens[number] for number in numbers]
            if isinstance(node, OneOf):
                values = _list_of(written, node.values.type)
                if values is None:
                    return None
                made[id(node)] = OneOf(node.operand, values, node.negated, type=node.type, position=node.position)
            else:
                value = _converted(written[0], node.type)
                if value is None:
                    return None
                made[id(node)] = Constant(value, type=node.type, position=written[0].position)
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
        found: _Found = []
        if not _collect(parsed, bound, numbers, tokens, found) or sum(len(of) for _, of in found) != len(numbers):
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


def _list_of(written: Sequence[Token], kind: pa.DataType) -> pa.Array | None:
    """Return the values of a list as an array; None if one of them has no such value."""
    listed = written[0].value
    if isinstance(listed, tuple):
        return literal_array(listed, kind)
    return literal_array([token.value for token in written if not isinstance(token.value, tuple)], kind)


def _collect(
    parsed: Expression,
    bound: Expression,
    numbers: dict[int, int],
    tokens: Sequence[Token],
    found: _Found,
) -> bool:
    """Add the constants of a tree; return False if it was not bound node by node."""
    if isinstance(parsed, Name):
        return isinstance(bound, Column)
    if isinstance(parsed, Literal):
        number = numbers.get(parsed.position)
        if number is None or not isinstance(bound, Constant) or bound.position != parsed.position:
            return False
        found.append((bound, (number,)))
        value = _converted(tokens[number], bound.type)
        return value is not None and value.equals(bound.value)
    if isinstance(parsed, InList):
        return isinstance(bound, OneOf) and _collect_list(parsed, bound, numbers, tokens, found)
    if type(parsed) is not type(bound) or not isinstance(parsed, _PLAIN):
        return False
    mine, theirs = parsed.children(), bound.children()
    if isinstance(parsed, Comparison) and isinstance(bound, Comparison) and parsed.operator != bound.operator:
        mine = mine[::-1]  # a constant on the left changes sides
    return len(mine) == len(theirs) and all(
        _collect(one, two, numbers, tokens, found) for one, two in zip(mine, theirs, strict=True)
    )


def _collect_list(
    parsed: InList, bound: OneOf, numbers: dict[int, int], tokens: Sequence[Token], found: _Found
) -> bool:
    items = (parsed.items,) if isinstance(parsed.items, Literals) else parsed.items
    of = [numbers.get(item.position) for item in items if isinstance(item, Literal | Literals)]
    known = tuple(number for number in of if number is not None)
    if len(known) < len(items) or not (isinstance(parsed.operand, Name) and isinstance(bound.operand, Column)):
        return False
    found.append((bound, known))
    values = _list_of([tokens[number] for number in known], bound.values.type)
    return values is not None and values.equals(bound.values)


def _with_constants(node: Expression, made: dict[int, Constant | OneOf]) -> Expression:
    if isinstance(node, Constant | OneOf):
        return made[id(node)]
    if isinstance(node, Comparison):
        left, right = _with_constants(node.left, made), _with_constants(node.right, made)
        return Comparison(node.operator, left, right, type=node.type, position=node.position)
    if isinstance(node, And | Or):
        return type(node)(tuple(_with_constants(each, made) for each in node.operands), type=node.type)
    if isinstance(node, Not):
        return Not(_with_constants(node.operand, made), type=node.type)
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
