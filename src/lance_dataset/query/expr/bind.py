"""Binding: names to columns, literals to typed constants, operators to operand types.

Every rule about what may meet what lives here; after binding a tree can only fail on the values of the data.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from decimal import Decimal, localcontext
from functools import reduce
from typing import Any

import pyarrow as pa

from lance_dataset.errors import FieldNotFoundError, FilterError, nearest_name_hint

from .bind_calls import CallRules
from .casts import cast_kernel
from .evaluate import compile_tree
from .functions.registry import find_function
from .functions.statement import one_statement
from .literals import LiteralMismatch, convert_literal, natural_scalar, shortest_decimal
from .sql_types import parse_arrow_type
from .tree import (
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
    Name,
    Negate,
    Not,
    Or,
    is_volatile,
)
from .type_rules import common_type, is_binary, is_list, is_number, is_text, plain_type

__all__ = ["bind"]

_FLIPPED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_EXACT: dict[str, Callable[[Decimal, Decimal], Decimal]] = {
    "+": Decimal.__add__,
    "-": Decimal.__sub__,
    "*": Decimal.__mul__,
}
#: Literals beyond the range of floats are no longer computed with exactly.
_WIDEST_EXPONENT = 400
_DATA_ERRORS = (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, OverflowError, ValueError, TypeError)


class ConstantError(FilterError, pa.ArrowInvalid):
    """A constant part of the filter that cannot be computed, such as ``1 / 0``: as if it had failed while scanning."""


def bind(
    tree: Expression, schema: pa.Schema, text: str, *, projection: bool = False, tables: Collection[str] = ()
) -> Expression:
    """Bind a parsed tree to a schema.

    Parameters
    ----------
    tree
        Result of `parse`.
    schema
        Columns the names may refer to, special columns included.
    text
        The filter text, for error messages.
    projection
        Let a number literal take the type of the column that the whole expression combines it with, so that ``a + 1``
        has the type of ``a``. Elsewhere arithmetic with literals is done in 64 bits.
    tables
        Struct columns that stand for tables, so that the names of their fields are those of columns: any case will do.

    Raises
    ------
    FieldNotFoundError
        An unknown column or struct field.
    FilterError
        An unknown function, or operands of the wrong type.
    """
    return _Binder(schema, text, projection, tables).bind_all(tree)


class _Binder(CallRules):
    def __init__(self, schema: pa.Schema, text: str, projection: bool, tables: Collection[str]) -> None:
        self.schema = schema
        self.tables = tables
        self.text = text
        self.projection = projection
        self.lazy = 0
        self.root: Expression | None = None
        self.rules: dict[type[Expression], Callable[[Any], Expression]] = {
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

    def bind(self, node: Expression) -> Expression:
        return self.rules[type(node)](node)

    def bind_all(self, tree: Expression) -> Expression:
        """Bind a whole tree, in which all calls of `now()` and its like have one value."""
        self.root = tree
        with one_statement():
            bound = self.bind(tree)
            return bound if self.projection else self.truth_of_match(bound)

    def truth_of_match(self, bound: Expression) -> Expression:
        """`regexp_match` where a boolean is needed: whether there is a match."""
        if isinstance(bound, Call) and bound.name == "regexp_match":
            function = find_function("regexp_like")
            return replace(bound, name="regexp_like", function=function, type=pa.bool_())
        return bound

    def failed(self, error: Exception, node: Expression) -> FilterError:
        """What to raise for an error that computing showed ahead of the scan."""
        return ConstantError(str(error), self.text, node.position if node.position >= 0 else None)

    def error(self, message: str, node: Expression) -> FilterError:
        return FilterError(message, self.text, node.position if node.position >= 0 else None)

    def folded(self, node: Expression) -> Expression:
        """The constant a node amounts to when all its operands are constants, else the node."""
        if not all(isinstance(child, Constant) for child in node.children()) or is_volatile(node):
            return node
        try:
            value = compile_tree(node)(None)
        except _DATA_ERRORS as error:
            if self.lazy:
                return node  # fails when a row needs it, if one does
            raise self.failed(error, node) from error
        return Constant(value, type=value.type, position=node.position)

    # -- leaves ------------------------------------------------------------------------------------------------------

    def literal(self, node: Literal) -> Expression:
        value = natural_scalar(node.value)
        return Constant(value, node, type=value.type, position=node.position)

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
        """The column of this name, or the only one whose name differs by case alone; None if there is none."""
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

    def meet(self, left: Expression, right: Expression, node: Expression) -> tuple[Expression, Expression]:
        """Both operands in one type; a literal takes the type of the other side."""
        if self.is_spelled(right) and not self.is_spelled(left):
            right = self.adapted(right, left)
        elif self.is_spelled(left) and not self.is_spelled(right):
            left = self.adapted(left, right)
        left, right = self.narrowed(left, right), self.narrowed(right, left)
        target = common_type(left.type, right.type)
        if target is None:
            raise self.error(f"Cannot compare {left.type} with {right.type}; use CAST", node)
        return self.cast(left, target), self.cast(right, target)

    @staticmethod
    def is_spelled(node: Expression) -> bool:
        return isinstance(node, Constant) and node.literal is not None

    def adapted(self, constant: Expression, operand: Expression) -> Expression:
        """A literal in the type that values of `operand` are compared in."""
        assert isinstance(constant, Constant)
        assert constant.literal is not None
        value = constant.literal.value
        stored = isinstance(operand, (Column, FieldAccess, Element))
        if pa.types.is_null(operand.type) or value is None:
            return constant
        computed_integer = pa.types.is_integer(operand.type) and not stored and isinstance(value, (int, Decimal))
        try:
            scalar = convert_literal(constant.literal, operand.type)
        except LiteralMismatch as mismatch:
            if computed_integer and not isinstance(value, bool):
                return constant
            subject = f" of column {'.'.join(operand.path)!r}" if isinstance(operand, Column) else ""
            raise FilterError(
                f"Wrong literal for the type{subject}: {mismatch}", self.text, constant.position
            ) from None
        return Constant(scalar, type=scalar.type, position=constant.position)

    def narrowed(self, node: Expression, other: Expression) -> Expression:
        """A typed constant in the type of the column it meets, when that loses nothing."""
        if not (isinstance(node, Constant) and isinstance(other, Column)) or node.type.equals(other.type):
            return node
        if pa.types.is_date(node.type) and pa.types.is_timestamp(other.type) and other.type.tz is not None:
            value = node.value.cast(pa.timestamp(other.type.unit)).cast(other.type)  # the day of UTC
            return Constant(value, type=value.type, position=node.position)
        families = (pa.types.is_integer, pa.types.is_decimal, pa.types.is_timestamp)
        alike = any(family(node.type) and family(other.type) for family in families)
        if not alike or (pa.types.is_timestamp(node.type) and (node.type.tz is None) != (other.type.tz is None)):
            return node
        try:
            value = node.value.cast(other.type)
            if not value.cast(node.type).equals(node.value):
                return node
        except pa.ArrowInvalid:
            return node
        return Constant(value, type=value.type, position=node.position)

    def in_list(self, node: InList) -> Expression:
        operand = self.bind(node.operand)
        literals = self.literals_of(operand, node.items)
        if literals is not None:
            return InList(operand, literals, node.negated, type=pa.bool_(), position=node.position)
        items = [self.bind(item) for item in node.items]
        if isinstance(operand, Constant) or not all(isinstance(item, Constant) for item in items):
            return self.any_equal(operand, items, node)
        met = [self.meet(operand, item, node) for item in items]
        self.require_comparable(met[0][0], node)
        target = reduce(lambda known, pair: common_type(known, pair[0].type) or known, met, operand.type)
        values = tuple(self.cast(item, target) for _, item in met)
        return InList(self.cast(operand, target), values, node.negated, type=pa.bool_(), position=node.position)

    @staticmethod
    def literals_of(operand: Expression, items: Sequence[Expression]) -> tuple[Constant, ...] | None:
        """Literals that have the type of a column as it is, all at once, as there may be many; None if one has not."""
        if not isinstance(operand, Column):
            return None
        kind = operand.type
        floating = pa.types.is_floating(kind)
        wanted = (int, Decimal) if floating else (int,) if pa.types.is_integer(kind) else (str,) * is_text(kind)
        literals: list[Any] = [item.value for item in items if isinstance(item, Literal)]
        values = [value for value in literals if type(value) in wanted]
        if len(values) < len(items):
            return None
        try:
            scalars = (
                pa.array([float(value) for value in values], pa.float64()).cast(kind)
                if floating
                else pa.array(values, kind)
            )
        except (pa.ArrowInvalid, OverflowError):
            return None
        found = zip(scalars, items, strict=True)
        return tuple(Constant(scalar, type=kind, position=item.position) for scalar, item in found)

    def any_equal(self, operand: Expression, items: Sequence[Expression], node: InList) -> Expression:
        tests = tuple(self.compare("=", operand, item, node) for item in items)
        found = tests[0] if len(tests) == 1 else Or(tests, type=pa.bool_(), position=node.position)
        found = self.folded(found) if len(tests) > 1 else found
        return self.folded(Not(found, type=pa.bool_(), position=node.position)) if node.negated else found

    # -- logic -------------------------------------------------------------------------------------------------------

    def boolean(self, node: Expression, what: str) -> Expression:
        bound = self.truth_of_match(self.bind(node))
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
        """A CASE without the branches that are never chosen, its results in one type."""
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

    # -- arithmetic --------------------------------------------------------------------------------------------------

    def arithmetic(self, node: Arithmetic) -> Expression:
        left, right = self.bind(node.left), self.bind(node.right)
        exact = self.exact_arithmetic(node.operator, left, right)
        if exact is not None:
            return self.literal(Literal(exact, position=node.position))
        left, right = self.factor(left, right, node), self.factor(right, left, node)
        left, right = self.arithmetic_operands(left, right, node)
        return self.typed(node, lambda pair: replace(node, left=pair[0], right=pair[1]), (left, right))

    def exact_arithmetic(self, operator: str, left: Expression, right: Expression) -> Decimal | None:
        """The sum, difference or product of number literals with decimal places, which is still a literal."""
        if not (self.is_spelled(left) and self.is_spelled(right)) or operator not in _EXACT:
            return None
        numbers: list[int | Decimal] = []
        for side in (left, right):
            value = side.literal.value if isinstance(side, Constant) and side.literal is not None else None
            if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
                return None
            if value and abs(Decimal(value).adjusted()) > _WIDEST_EXPONENT:
                return None
            numbers.append(value)
        if not any(isinstance(number, Decimal) for number in numbers):
            return None
        with localcontext() as context:
            context.prec = 200
            return _EXACT[operator](Decimal(numbers[0]), Decimal(numbers[1]))

    def factor(self, node: Expression, other: Expression, parent: Arithmetic) -> Expression:
        """A number literal in the type it takes beside `other`."""
        if not isinstance(node, Constant) or node.literal is None or self.is_spelled(other):
            return node
        value = node.literal.value
        if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
            return node
        if self.projection and parent is self.root and isinstance(other, Column) and is_number(other.type):
            try:
                scalar = convert_literal(node.literal, other.type)
            except LiteralMismatch:
                return node
        elif pa.types.is_decimal(other.type) and (isinstance(value, Decimal) or parent.operator != "/"):
            try:
                scalar = shortest_decimal(Decimal(value))
            except LiteralMismatch as mismatch:
                raise self.error(str(mismatch), node) from None
        elif pa.types.is_float32(other.type) and isinstance(value, int):
            scalar = pa.scalar(float(value), pa.float32())
        else:
            return node
        return Constant(scalar, type=scalar.type, position=node.position)

    def arithmetic_operands(
        self, left: Expression, right: Expression, node: Arithmetic
    ) -> tuple[Expression, Expression]:
        if pa.types.is_null(left.type) and pa.types.is_null(right.type):
            return self.cast(left, pa.int64()), self.cast(right, pa.int64())
        if pa.types.is_null(left.type):
            return self.arithmetic_operands(self.cast(left, self.beside(right.type)), right, node)
        if pa.types.is_null(right.type):
            return self.arithmetic_operands(left, self.cast(right, self.beside(left.type)), node)
        if is_number(left.type) and is_number(right.type):
            target = common_type(left.type, right.type)
            assert target is not None
            if node.operator in ("<<", ">>"):
                target = self.shifted_type(left.type, right.type, target)
            if pa.types.is_decimal(target) and node.operator in "*/":
                return self.as_decimal(left), self.as_decimal(right)
            return self.cast(left, target), self.cast(right, target)
        if pa.types.is_interval(left.type) != pa.types.is_interval(right.type):
            return self.interval_operands(left, right, node)
        moments = pa.types.is_temporal(left.type) and pa.types.is_temporal(right.type)
        if node.operator in "+-" and moments and not pa.types.is_interval(left.type):
            return left, right
        raise self.error(f"Operator {node.operator} does not take {left.type} and {right.type}", node)

    @staticmethod
    def beside(other: pa.DataType) -> pa.DataType:
        """The type of a null in arithmetic with values of another type."""
        return pa.timestamp("us") if pa.types.is_interval(other) else other

    @staticmethod
    def shifted_type(left: pa.DataType, right: pa.DataType, common: pa.DataType) -> pa.DataType:
        """The integers that numbers are shifted as."""
        if pa.types.is_integer(common):
            return common
        return pa.uint64() if pa.types.is_integer(left) and pa.types.is_integer(right) else pa.int64()

    def interval_operands(self, left: Expression, right: Expression, node: Arithmetic) -> tuple[Expression, Expression]:
        """A moment and the constant interval that is added to it."""
        if pa.types.is_interval(left.type) and node.operator == "+":
            left, right = right, left
        moment = pa.types.is_date(left.type) or pa.types.is_timestamp(left.type)
        if not (moment and pa.types.is_interval(right.type)) or node.operator not in "+-":
            raise self.error(f"Operator {node.operator} does not take {left.type} and {right.type}", node)
        if not isinstance(right, Constant):
            raise self.error("Only intervals that are constant can be added", node)
        step = right.value.as_py()
        if pa.types.is_date(left.type) and step is not None and step.nanoseconds:
            left = self.cast(left, pa.timestamp("us"))
        return left, right

    def as_decimal(self, node: Expression) -> Expression:
        if pa.types.is_decimal(node.type):
            return node
        target = common_type(node.type, pa.decimal128(1, 0))
        assert target is not None
        return self.cast(node, target)

    def typed(
        self,
        node: Expression,
        build: Callable[[tuple[Expression, Expression]], Expression],
        pair: tuple[Expression, Expression],
    ) -> Expression:
        """A node with the result type its kernel has; decimals go to 256 bits when 128 are too few."""
        try:
            built = build(pair)
            return self.folded(replace(built, type=self.result_type(built)))
        except FilterError:
            if not any(pa.types.is_decimal128(side.type) for side in pair):
                raise
        wide = [self.cast(side, pa.decimal256(side.type.precision, side.type.scale)) for side in pair]
        built = build((wide[0], wide[1]))
        return self.folded(replace(built, type=self.result_type(built)))

    def result_type(self, node: Expression) -> pa.DataType:
        """The type of a node, learnt by running it on no rows."""
        stand_ins: dict[str, pa.Array] = {}

        def stand_in(child: Expression) -> Expression:
            if isinstance(child, Constant) and not (isinstance(node, Arithmetic) and is_number(child.type)):
                return child
            name = str(len(stand_ins))
            stand_ins[name] = pa.nulls(0, child.type)
            return Column((name,), type=child.type)

        if isinstance(node, Call):
            probe: Expression = replace(node, arguments=tuple(stand_in(child) for child in node.arguments))
        elif isinstance(node, Arithmetic):
            probe = replace(node, left=stand_in(node.left), right=stand_in(node.right))
        else:
            raise TypeError(f"the type of {type(node).__name__} follows from its operands")
        try:
            return compile_tree(probe)(pa.RecordBatch.from_pydict(stand_ins)).type
        except _DATA_ERRORS as error:
            raise self.failed(error, node) from error

    def negate(self, node: Negate) -> Expression:
        operand = self.bind(node.operand)
        if not is_number(operand.type) or pa.types.is_unsigned_integer(operand.type):
            raise self.error(f"Unary minus needs a signed number, this is of type {operand.type}", node)
        return self.folded(replace(node, operand=operand, type=operand.type))

    def concatenation(self, node: Concatenation) -> Expression:
        left, right = self.bind(node.left), self.bind(node.right)
        if not any(is_text(side.type) or pa.types.is_null(side.type) for side in (left, right)):
            if not (is_binary(left.type) and is_binary(right.type)):
                raise self.error(f"Operator || needs a string, not {left.type} and {right.type}", node)
            target = common_type(left.type, right.type) or pa.binary()
        else:
            large = pa.types.is_large_string(left.type) or pa.types.is_large_string(right.type)
            target = pa.large_string() if large else pa.string()
        left, right = self.cast(left, target), self.cast(right, target)
        return self.folded(replace(node, left=left, right=right, type=target))

    # -- conversions -------------------------------------------------------------------------------------------------

    def cast(self, node: Expression, target: pa.DataType, *, lenient: bool = False) -> Expression:
        """The node converted to `target`; the node itself when it has that type."""
        if node.type.equals(target):
            return node
        if cast_kernel(node.type, target, lenient=lenient) is None:
            raise self.error(f"Unsupported CAST from {node.type} to {target}", node)
        return self.folded(Cast(node, target, lenient, type=target, position=node.position))

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

    def arrow_type(self, node: Expression) -> pa.DataType:
        name = node.value if isinstance(node, Literal) else None
        target = parse_arrow_type(name) if isinstance(name, str) else None
        if target is None:
            raise self.error("arrow_cast needs the name of an Arrow type, such as 'Int64'", node)
        return target
