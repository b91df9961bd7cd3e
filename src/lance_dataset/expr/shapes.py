"""Filters that differ only in their numbers and strings: parsed and bound once, then only the constants change.

Programs ask for one row after another with the same filter and another key. Databases call the technique simple
parameterization.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, Generic, TypeVar

import pyarrow as pa

from lance_dataset.expr.lexer import Token, TokenKind
from lance_dataset.expr.literals import LiteralMismatch, convert_literal, integer_bounds, literal_array
from lance_dataset.expr.tree import (
    And,
    Column,
    Comparison,
    Constant,
    Expression,
    InList,
    IsNull,
    Literal,
    Literals,
    Name,
    Not,
    OneOf,
    Or,
)
from lance_dataset.expr.type_rules import is_text
from lance_dataset.late_dataclass import dataclass

__all__ = ["BySchema", "FilterShape"]

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

#: Tokens that filters of one shape may differ in.
_FREE: Final = (TokenKind.INTEGER, TokenKind.STRING, TokenKind.LITERALS)
#: Nodes that bind to nodes of the same kind, whatever the constants are.
_PLAIN: Final = (And, Or, Not, Comparison)
_MOST_SCHEMAS: Final = 16
_MOST_SHAPES: Final = 256


@dataclass(frozen=True)
class _Place:
    """A constant or a list of a filter, and the numbers of the literals that it was written as."""

    node: Constant | OneOf
    numbers: tuple[int, ...]
    bounds: tuple[int, int] | None = None
    is_text: bool = False

    @staticmethod
    def of(node: Constant | OneOf, numbers: tuple[int, ...]) -> _Place:
        if isinstance(node, Constant) and pa.types.is_integer(node.type):
            return _Place(node, numbers, integer_bounds(node.type))
        return _Place(node, numbers, is_text=isinstance(node, Constant) and is_text(node.type))

    def value(self, literals: Sequence[Token]) -> int | str | pa.Scalar | pa.Array | None:
        """Return the value of other literals; None if it does not fit the type."""
        if isinstance(self.node, OneOf):
            return _list_of([literals[number] for number in self.numbers], self.node.values.type)
        literal = literals[self.numbers[0]]
        value = literal.value
        if self.bounds is not None and isinstance(value, int):
            return value if self.bounds[0] <= value <= self.bounds[1] else None
        if self.is_text and isinstance(value, str):
            return value
        return _converted(literal, self.node.type)

    def replaced(self, value: int | str | pa.Scalar | pa.Array, literals: Sequence[Token]) -> Constant | OneOf:
        """Return the node with a result of `value` instead of its own."""
        node = self.node
        if isinstance(node, OneOf):
            return OneOf(node.operand, value, node.negated, type=node.type, position=node.position)
        scalar = value if isinstance(value, pa.Scalar) else pa.scalar(value, node.type)
        return Constant(scalar, type=node.type, position=literals[self.numbers[0]].position)


@dataclass(frozen=True)
class FilterShape:
    """A bound filter whose constants can be replaced.

    Attributes
    ----------
    tree
        The filter.
    field_paths
        Paths of the columns that it reads.
    places
        Its constants and lists.
    """

    tree: Expression
    field_paths: tuple[tuple[str, ...], ...]
    places: tuple[_Place, ...]

    def with_literals(self, literals: Sequence[Token]) -> Callable[[], Expression] | None:
        """Return a function that makes the filter with other literals; None if one of them does not fit."""
        values = [place.value(literals) for place in self.places]
        known = [value for value in values if value is not None]
        return partial(self._bound, known, literals) if len(known) == len(values) else None

    def _bound(self, values: Sequence[int | str | pa.Scalar | pa.Array], literals: Sequence[Token]) -> Expression:
        made = {
            id(place.node): place.replaced(value, literals) for place, value in zip(self.places, values, strict=True)
        }
        return _with_constants(self.tree, made)

    @staticmethod
    def of(
        parsed: Expression,
        bound: Expression,
        field_paths: tuple[tuple[str, ...], ...],
        tokens: Sequence[Token],
        literals: Sequence[Token],
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
        literals
            Its literals, according to `split_literals`.
        """
        if literals != [token for token in tokens if token.kind in _FREE]:
            return None
        found: list[_Place] = []
        collects = _Collector({literal.position: number for number, literal in enumerate(literals)}, literals, found)
        if not collects(parsed, bound) or sum(len(place.numbers) for place in found) != len(literals):
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


@dataclass(frozen=True)
class _Collector:
    """Adds the constants of a tree to `found`; says False if it was not bound node by node."""

    numbers: Mapping[int, int]
    literals: Sequence[Token]
    found: list[_Place]

    def __call__(self, parsed: Expression, bound: Expression) -> bool:
        if isinstance(parsed, Name):
            return isinstance(bound, Column)
        if isinstance(parsed, Literal):
            return isinstance(bound, Constant) and bound.position == parsed.position and self._constant(bound)
        if isinstance(parsed, IsNull):
            if not isinstance(bound, IsNull) or bound.negated != parsed.negated:
                return False
            return isinstance(parsed.operand, Name) and isinstance(bound.operand, Column)
        if isinstance(parsed, InList):
            return isinstance(bound, OneOf) and self._list(parsed, bound)
        if type(parsed) is not type(bound) or not isinstance(parsed, _PLAIN):
            return False
        mine, theirs = parsed.children(), bound.children()
        if isinstance(parsed, Comparison) and isinstance(bound, Comparison) and parsed.operator != bound.operator:
            mine = mine[::-1]  # a constant on the left changes sides
        return len(mine) == len(theirs) and all(self(one, two) for one, two in zip(mine, theirs, strict=True))

    def _constant(self, bound: Constant) -> bool:
        number = self.numbers.get(bound.position)
        if number is None:
            return False
        self.found.append(_Place.of(bound, (number,)))
        value = _converted(self.literals[number], bound.type)
        return value is not None and value.equals(bound.value)

    def _list(self, parsed: InList, bound: OneOf) -> bool:
        items = (parsed.items,) if isinstance(parsed.items, Literals) else parsed.items
        of = [self.numbers.get(item.position) for item in items if isinstance(item, Literal | Literals)]
        known = tuple(number for number in of if number is not None)
        if len(known) < len(items) or not (isinstance(parsed.operand, Name) and isinstance(bound.operand, Column)):
            return False
        self.found.append(_Place.of(bound, known))
        values = _list_of([self.literals[number] for number in known], bound.values.type)
        return values is not None and values.equals(bound.values)


def _with_constants(node: Expression, made: Mapping[int, Constant | OneOf]) -> Expression:
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
