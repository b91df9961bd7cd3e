"""Binding: names become columns, literals become typed constants, and operators get operand types.

All rules about which types may be combined live here and in the `bind_` modules. After binding, a tree can only fail on
the values of the data.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import reduce

import pyarrow as pa

from lance_dataset.errors import FieldNotFoundError, nearest_name_hint
from lance_dataset.expr.bind_arithmetic import ArithmeticRules
from lance_dataset.expr.bind_calls import CallRules
from lance_dataset.expr.functions.registry import find_function
from lance_dataset.expr.functions.statement import one_statement
from lance_dataset.expr.literals import LiteralMismatch, literal_array, shortest_decimal
from lance_dataset.expr.tree import (
    And,
    Arithmetic,
    Call,
    Case,
    Cast,
    Column,
    Comparison,
    Concatenation,
    Constant,
    Element,
    Expression,
    FieldAccess,
    InList,
    IsDistinct,
    IsNull,
    IsTruth,
    Like,
    Literal,
    Literals,
    Name,
    Negate,
    Not,
    OneOf,
    Or,
)
from lance_dataset.expr.type_rules import common_type, is_list, is_text, plain_type

__all__ = ["bind"]

_FLIPPED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def bind(
    tree: Expression, schema: pa.Schema, text: str, *, projection: bool = False, tables: Collection[str] = ()
) -> Expression:
    """Bind a parsed tree to a schema.

    Parameters
    ----------
    tree
        Result of `parse`.
    schema
        Columns that names may refer to, special columns included.
    text
        The filter text, for error messages.
    projection
        Let a number literal take the type of the column that the whole expression combines it with, so that
        ``a + 1`` has the type of ``a``. Elsewhere arithmetic with literals uses 64 bits.
    tables
        Struct columns that stand for tables: the names of their fields match in any case, like those of columns.

    Raises
    ------
    FieldNotFoundError
        A column or struct field is unknown.
    FilterError
        A function is unknown, or operands have the wrong type.
    """
    return _Binder(schema, text, projection, tables).bind_all(tree)


class _Binder(CallRules, ArithmeticRules):
    def __init__(self, schema: pa.Schema, text: str, projection: bool, tables: Collection[str]) -> None:
        super().__init__(schema, text, projection, tables)
        self.rules = {
            Literal: self.literal,
            Name: self.name,
            FieldAccess: self.field_access,
            Element: self.element,
            Comparison: self.comparison,
            IsDistinct: self.distinct,
            And: self.logical,
            Or: self.logical,
            Not: self.negation,
            IsNull: self.null_test,
            IsTruth: self.truth_test,
            InList: self.in_list,
            Like: self.like,
            Arithmetic: self.arithmetic,
            Negate: self.negate,
            Concatenation: self.concatenation,
            Cast: self.explicit_cast,
            Case: self.case,
            Call: self.call,
        }

    def bind_all(self, tree: Expression) -> Expression:
        """Bind a whole tree, in which all calls of `now()` and similar functions have one value."""
        self.root = tree
        with one_statement():
            bound = self.bind(tree)
            return bound if self.projection else self.truth_of_match(bound)

    def truth_of_match(self, bound: Expression) -> Expression:
        """Replace `regexp_match` by a test for a match where a boolean is needed."""
        if isinstance(bound, Call) and bound.name == "regexp_match":
            function = find_function("regexp_like")
            return replace(bound, name="regexp_like", function=function, type=pa.bool_())
        return bound

    # -- leaves ------------------------------------------------------------------------------------------------------

    def name(self, node: Name) -> Expression:
        first = self.top_level_name(node)
        arrow = self.schema.field(first).type
        path = [first]
        for part in node.parts[1:]:
            if len(path) == 1 and first in self.tables:
                part = self.column_name(part, [field.name for field in arrow], node) or part
            arrow = self.child_type(arrow, part, ".".join(path), node)
            path.append(part)
        return Column(tuple(path), type=plain_type(arrow), position=node.position)

    def top_level_name(self, node: Name) -> str:
        wanted, names = node.parts[0], self.schema.names
        found = self.column_name(wanted, names, node)
        if found is None:
            hint = nearest_name_hint(wanted, names)
            raise FieldNotFoundError(f"No field named {wanted!r} in filter {self.text!r}{hint}")
        return found

    def column_name(self, wanted: str, names: Sequence[str], node: Name) -> str | None:
        """Return the column of this name, or the only one whose name differs only by case; None if there is neither."""
        if wanted in names:
            return wanted
        alike = [] if node.quoted else [name for name in names if name.lower() == wanted.lower()]
        if len(alike) > 1:
            raise self.error(f"The name {wanted!r} could be any of {', '.join(alike)}; quote it with back-ticks", node)
        return alike[0] if alike else None

    def child_type(self, arrow: pa.DataType, name: str, parent: str, node: Expression) -> pa.DataType:
        arrow = plain_type(arrow)
        if not pa.types.is_struct(arrow):
            raise self.error(f"{parent!r} is of type {arrow}, only structs have named fields", node)
        names = [field.name for field in arrow]
        if name not in names:
            hint = nearest_name_hint(name, names)
            raise FieldNotFoundError(f"No field named {name!r} in struct {parent!r} in filter {self.text!r}{hint}")
        return arrow.field(name).type

    def field_access(self, node: FieldAccess) -> Expression:
        operand = self.bind(node.operand)
        arrow = self.child_type(operand.type, node.name, "expression", node)
        if isinstance(operand, Column):
            return Column((*operand.path, node.name), type=plain_type(arrow), position=operand.position)
        return FieldAccess(operand, node.name, type=arrow, position=node.position)

    def element(self, node: Element) -> Expression:
        operand, index = self.bind(node.operand), self.bind(node.index)
        if not is_list(operand.type):
            raise self.error(f"Only lists have elements, this is of type {operand.type}", node)
        if not pa.types.is_integer(index.type):
            raise self.error(f"The position in a list must be an integer, not {index.type}", node.index)
        index = self.cast(index, pa.int64())
        return self.folded(Element(operand, index, type=operand.type.value_type, position=node.position))

    # -- comparisons -------------------------------------------------------------------------------------------------

    def comparison(self, node: Comparison) -> Expression:
        return self.compare(node.operator, self.bind(node.left), self.bind(node.right), node)

    def compare(self, operator: str, left: Expression, right: Expression, node: Expression) -> Expression:
        left, right = self.meet(left, right, node)
        self.require_comparable(left, node, equality=operator in ("=", "!="))
        if isinstance(left, Constant) and not isinstance(right, Constant):
            left, right, operator = right, left, _FLIPPED[operator]
        return self.folded(Comparison(operator, left, right, type=pa.bool_(), position=node.position))

    def require_comparable(self, operand: Expression, node: Expression, *, equality: bool = False) -> None:
        nested = pa.types.is_nested(operand.type) and not (equality and is_list(operand.type))
        if nested or pa.types.is_interval(operand.type):
            raise self.error(f"Values of type {operand.type} are not comparable", node)

    def distinct(self, node: IsDistinct) -> Expression:
        left, right = self.meet(self.bind(node.left), self.bind(node.right), node)
        self.require_comparable(left, node)
        return self.folded(IsDistinct(left, right, node.negated, type=pa.bool_(), position=node.position))

    def in_list(self, node: InList) -> Expression:
        operand = self.bind(node.operand)
        found = self.plain_values(operand, node.items)
        if found is not None:
            return OneOf(operand, found, node.negated, type=pa.bool_(), position=node.position)
        written = node.items.each() if isinstance(node.items, Literals) else node.items
        items = [self.bind(item) for item in written]
        if isinstance(operand, Constant) or not all(isinstance(item, Constant) for item in items):
            return self.any_equal(operand, items, node)
        met = [self.meet(operand, item, node) for item in items]
        self.require_comparable(met[0][0], node)
        target = reduce(lambda known, pair: common_type(known, pair[0].type) or known, met, operand.type)
        cast = [self.cast(item, target) for _, item in met]
        constants = [item.value for item in cast if isinstance(item, Constant)]
        if len(constants) < len(cast):  # one fails to convert, in a branch that rows may not need
            return self.any_equal(operand, items, node)
        values = pa.array(constants, target)  # not through Python, whose dates and times have smaller ranges
        return OneOf(self.cast(operand, target), values, node.negated, type=pa.bool_(), position=node.position)

    @staticmethod
    def plain_values(operand: Expression, items: tuple[Expression, ...] | Literals) -> pa.Array | None:
        """Return literals converted to the type of a column, all in one step; None if some literal does not fit."""
        if not isinstance(operand, Column):
            return None
        if isinstance(items, Literals):
            return literal_array(items.values, operand.type)
        literals = [item.value for item in items if isinstance(item, Literal)]
        return literal_array(literals, operand.type) if len(literals) == len(items) else None

    def any_equal(self, operand: Expression, items: Sequence[Expression], node: InList) -> Expression:
        tests = tuple(self.compare("=", operand, item, node) for item in items)
        found = tests[0] if len(tests) == 1 else Or(tests, type=pa.bool_(), position=node.position)
        found = self.folded(found) if len(tests) > 1 else found
        return self.folded(Not(found, type=pa.bool_(), position=node.position)) if node.negated else found

    # -- logic -------------------------------------------------------------------------------------------------------

    def boolean(self, node: Expression, what: str) -> Expression:
        bound = self.bind(node)
        match = self.truth_of_match(bound)
        if match is not bound:  # no match of a null is false, not null
            return IsTruth(match, truth=True, type=pa.bool_(), position=node.position)
        if pa.types.is_null(bound.type):
            return self.cast(bound, pa.bool_())
        if not pa.types.is_boolean(bound.type):
            raise self.error(f"{what} needs booleans, this is of type {bound.type}", node)
        return bound

    def logical(self, node: And | Or) -> Expression:
        word = "AND" if isinstance(node, And) else "OR"
        operands = tuple(self.boolean(operand, word) for operand in node.operands)
        return self.folded(replace(node, operands=operands, type=pa.bool_()))

    def negation(self, node: Not) -> Expression:
        return self.folded(replace(node, operand=self.boolean(node.operand, "NOT"), type=pa.bool_()))

    def truth_test(self, node: IsTruth) -> Expression:
        return self.folded(replace(node, operand=self.boolean(node.operand, "IS TRUE"), type=pa.bool_()))

    def null_test(self, node: IsNull) -> Expression:
        return self.folded(replace(node, operand=self.bind(node.operand), type=pa.bool_()))

    def case(self, node: Case) -> Expression:
        """Bind a CASE, dropping branches that are never chosen and converting its results to one type."""
        self.lazy += 1
        try:
            return self.lazy_case(node)
        finally:
            self.lazy -= 1

    def lazy_case(self, node: Case) -> Expression:
        conditions = [self.boolean(condition, "WHEN") for condition in node.conditions]
        written = [*node.results, node.otherwise or Literal(None, position=node.position)]
        values = self.unified([self.bind(value) for value in written], node, "CASE")
        otherwise = values.pop()
        branches: list[tuple[Expression, Expression]] = []
        for condition, value in zip(conditions, values, strict=True):
            if isinstance(condition, Constant):
                if not condition.value.as_py():
                    continue
                otherwise = value
                break
            branches.append((condition, value))
        if not branches:
            return replace(otherwise, position=node.position)
        chosen, results = zip(*branches, strict=True)
        return replace(node, conditions=chosen, results=results, otherwise=otherwise, type=otherwise.type)

    def like(self, node: Like) -> Expression:
        operand, pattern = self.text_operand(node.operand), self.text_operand(node.pattern)
        return self.folded(replace(node, operand=operand, pattern=pattern, type=pa.bool_()))

    def text_operand(self, node: Expression) -> Expression:
        bound = self.bind(node)
        if pa.types.is_null(bound.type):
            return self.cast(bound, pa.string())
        if not is_text(bound.type):
            raise self.error(f"LIKE needs strings, this is of type {bound.type}", node)
        return bound

    # -- conversions -------------------------------------------------------------------------------------------------

    def explicit_cast(self, node: Cast) -> Expression:
        operand = self.bind(node.operand)
        number = node.operand.value if isinstance(node.operand, Literal) else None
        if pa.types.is_decimal(node.target) and isinstance(number, (int, Decimal)) and not isinstance(number, bool):
            try:
                scalar = shortest_decimal(Decimal(number))
            except LiteralMismatch as mismatch:
                raise self.error(str(mismatch), node.operand) from None
            operand = Constant(scalar, type=scalar.type, position=operand.position)
        if operand.type.equals(node.target) and isinstance(operand, Constant):
            return Constant(operand.value, type=operand.type, position=node.position)
        return self.cast(replace(operand, position=node.position), node.target, lenient=node.lenient)
