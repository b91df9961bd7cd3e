"""Expression tree of filters and computed columns.

The parser builds a tree of `Name`, `Literal` and untyped nodes. Binding it to a schema gives a tree in which every node
has its Arrow type, names are `Column`, literals are `Constant`, lists of them are `OneOf`, and implied conversions are
explicit `Cast` nodes. Both are immutable. Consumers (execution, index selection, page pruning) walk the bound tree with
`match` or `walk`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field, fields
from decimal import Decimal
from typing import TypeAlias

import pyarrow as pa

from lance_dataset.expr.function import Function
from lance_dataset.late_dataclass import dataclass

__all__ = [
    "And",
    "Arithmetic",
    "Call",
    "Case",
    "Cast",
    "Column",
    "Comparison",
    "Concatenation",
    "Constant",
    "Element",
    "Expression",
    "FieldAccess",
    "InList",
    "IsDistinct",
    "IsNull",
    "IsTruth",
    "Like",
    "Literal",
    "LiteralValue",
    "Literals",
    "Name",
    "Negate",
    "Not",
    "OneOf",
    "Or",
    "is_volatile",
    "walk",
]

LiteralValue: TypeAlias = bool | int | Decimal | str | bytes | pa.MonthDayNano | None


@dataclass(frozen=True)
class Expression:
    """A node of the tree.

    Attributes
    ----------
    position
        0-based character position in the filter text, -1 for nodes that were not written.
    type
        Arrow type of the value; null type until the node is bound.
    metadata
        Metadata of the field of a computed value of an extension type.
    """

    position: int = field(default=-1, compare=False, repr=False, kw_only=True)
    type: pa.DataType = field(default=pa.null(), compare=False, repr=False, kw_only=True)
    metadata: Mapping[bytes, bytes] | None = field(default=None, compare=False, repr=False, kw_only=True)

    def children(self) -> tuple[Expression, ...]:
        """Return the operands, left to right."""
        found: list[Expression] = []
        for name in _members(type(self)):
            value = getattr(self, name)
            if isinstance(value, Expression):
                found.append(value)
            elif isinstance(value, tuple):
                found.extend(item for item in value if isinstance(item, Expression))
        return tuple(found)


#: Cache of the field names of each kind of node that may hold operands.
_MEMBERS: dict[type[Expression], tuple[str, ...]] = {}


def _members(kind: type[Expression]) -> tuple[str, ...]:
    names = _MEMBERS.get(kind)
    if names is None:
        names = tuple(member.name for member in fields(kind) if member.name not in ("position", "type", "metadata"))
        _MEMBERS[kind] = names
    return names


def walk(node: Expression) -> Iterator[Expression]:
    """Yield every node of a tree, parents before children."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        children = node.children()
        if children:
            waiting.extend(reversed(children))


def is_volatile(node: Expression) -> bool:
    """Return True if a node has a different value each time it is computed, as `random()` has."""
    return any(isinstance(part, Call) and part.function is not None and part.function.volatile for part in walk(node))


@dataclass(frozen=True)
class Literal(Expression):
    """A literal as written (unbound); numbers with a point or an exponent are `Decimal`."""

    value: LiteralValue


@dataclass(frozen=True)
class Literals(Expression):
    """A list of integers or of strings as written (unbound), one node for all, because such lists may be long."""

    values: tuple[int, ...] | tuple[str, ...]
    text: str

    def each(self) -> tuple[Literal, ...]:
        """Return a node for each literal."""
        places = _LITERAL.finditer(self.text)
        return tuple(
            Literal(value, position=self.position + place.start())
            for value, place in zip(self.values, places, strict=True)
        )


#: A literal of a list that is held as one node.
_LITERAL = re.compile(r"-?[0-9]+|'[^']*'")


@dataclass(frozen=True)
class Constant(Expression):
    """A typed value; `literal` is kept while the type is only implied by the form of the literal."""

    value: pa.Scalar
    literal: Literal | None = field(default=None, compare=False, repr=False)

    def children(self) -> tuple[Expression, ...]:
        """Return no operands."""
        return ()


@dataclass(frozen=True)
class Name(Expression):
    """A column name as written (unbound); `quoted` refers to the first part only."""

    parts: tuple[str, ...]
    quoted: bool = False


@dataclass(frozen=True)
class Column(Expression):
    """A column, or a field inside struct columns; `path` holds the exact names."""

    path: tuple[str, ...]


@dataclass(frozen=True)
class FieldAccess(Expression):
    """A field of a computed struct."""

    operand: Expression
    name: str


@dataclass(frozen=True)
class Element(Expression):
    """An element of a list: 1-based, negative from the end, null outside."""

    operand: Expression
    index: Expression


@dataclass(frozen=True)
class Comparison(Expression):
    """``left operator right`` with operator one of ``= != < <= > >=``; floats in total order (NaN greatest)."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True)
class IsDistinct(Expression):
    """``IS [NOT] DISTINCT FROM``: inequality in which nulls are values."""

    left: Expression
    right: Expression
    negated: bool = False


@dataclass(frozen=True)
class And(Expression):
    """Conjunction in three-valued logic."""

    operands: tuple[Expression, ...]


@dataclass(frozen=True)
class Or(Expression):
    """Disjunction in three-valued logic."""

    operands: tuple[Expression, ...]


@dataclass(frozen=True)
class Not(Expression):
    """Negation in three-valued logic."""

    operand: Expression


@dataclass(frozen=True)
class IsNull(Expression):
    """``IS [NOT] NULL``."""

    operand: Expression
    negated: bool = False


@dataclass(frozen=True)
class IsTruth(Expression):
    """``IS [NOT] TRUE`` and ``IS [NOT] FALSE``."""

    operand: Expression
    truth: bool
    negated: bool = False


@dataclass(frozen=True)
class InList(Expression):
    """``[NOT] IN`` as written (unbound)."""

    operand: Expression
    items: tuple[Expression, ...] | Literals
    negated: bool = False


@dataclass(frozen=True)
class OneOf(Expression):
    """``[NOT] IN`` constants: `values` has the operand's type, and may hold nulls."""

    operand: Expression
    values: pa.Array
    negated: bool = False


@dataclass(frozen=True)
class Like(Expression):
    """``[NOT] LIKE`` and ``[NOT] ILIKE``."""

    operand: Expression
    pattern: Expression
    negated: bool = False
    ignore_case: bool = False


@dataclass(frozen=True)
class Arithmetic(Expression):
    """``left operator right`` with operator one of ``+ - * / % << >>``."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Negate(Expression):
    """Unary minus."""

    operand: Expression


@dataclass(frozen=True)
class Concatenation(Expression):
    """``left || right``: null if either side is null."""

    left: Expression
    right: Expression


@dataclass(frozen=True)
class Cast(Expression):
    """Conversion to `target`; `lenient` (TRY_CAST) gives null if a value does not convert."""

    operand: Expression
    target: pa.DataType
    lenient: bool = False


@dataclass(frozen=True)
class Case(Expression):
    """``CASE WHEN condition THEN result ... ELSE otherwise END``.

    Its value is the result of the first condition that is true, else `otherwise` (None for null). A branch is computed
    only for the rows that choose it, so an error of its values in other rows does not show.
    """

    conditions: tuple[Expression, ...]
    results: tuple[Expression, ...]
    otherwise: Expression | None = None


@dataclass(frozen=True)
class Call(Expression):
    """A function call; `function` is set once bound."""

    name: str
    arguments: tuple[Expression, ...]
    function: Function | None = field(default=None, compare=False, repr=False)
