"""Binding of arithmetic: exact literals, operands in types that a kernel supports, and result types."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal, localcontext

import pyarrow as pa

from lance_dataset.errors import FilterError
from lance_dataset.expr.bind_base import BinderBase
from lance_dataset.expr.literals import LiteralMismatch, convert_literal, shortest_decimal
from lance_dataset.expr.tree import Arithmetic, Column, Concatenation, Constant, Expression, Literal, Negate
from lance_dataset.expr.type_rules import common_type, is_binary, is_number, is_text

__all__ = ["ArithmeticRules"]

_EXACT: dict[str, Callable[[Decimal, Decimal], Decimal]] = {
    "+": Decimal.__add__,
    "-": Decimal.__sub__,
    "*": Decimal.__mul__,
}
#: Literals with larger exponents, beyond the range of floats, are not computed exactly.
_WIDEST_EXPONENT = 400


class ArithmeticRules(BinderBase):
    """Binding rules for operators on numbers, moments and strings."""

    def arithmetic(self, node: Arithmetic) -> Expression:
        """Bind an operator on numbers or moments."""
        left, right = self.bind(node.left), self.bind(node.right)
        exact = self.exact_arithmetic(node.operator, left, right)
        if exact is not None:
            return self.literal(Literal(exact, position=node.position))
        left, right = self.factor(left, right, node), self.factor(right, left, node)
        left, right = self.arithmetic_operands(left, right, node)
        return self.typed(node, lambda pair: replace(node, left=pair[0], right=pair[1]), (left, right))

    def exact_arithmetic(self, operator: str, left: Expression, right: Expression) -> Decimal | None:
        """Return the sum, difference or product of number literals with decimal places, which is still a literal."""
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
        """Return a number literal in the type it takes beside `other`."""
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
        """Return both operands in types that the operator takes."""
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
        """Return the type that a null takes in arithmetic with values of another type."""
        return pa.timestamp("us") if pa.types.is_interval(other) else other

    @staticmethod
    def shifted_type(left: pa.DataType, right: pa.DataType, common: pa.DataType) -> pa.DataType:
        """Return the integer type in which numbers are shifted."""
        if pa.types.is_integer(common):
            return common
        return pa.uint64() if pa.types.is_integer(left) and pa.types.is_integer(right) else pa.int64()

    def interval_operands(self, left: Expression, right: Expression, node: Arithmetic) -> tuple[Expression, Expression]:
        """Return a moment and the constant interval that is added to it."""
        if pa.types.is_interval(left.type) and node.operator == "+":
            left, right = right, left
        moment = pa.types.is_date(left.type) or pa.types.is_timestamp(left.type)
        if not (moment and pa.types.is_interval(right.type)) or node.operator not in "+-":
            raise self.error(f"Operator {node.operator} does not take {left.type} and {right.type}", node)
        if not isinstance(right, Constant):
            raise self.error("Only constant intervals can be added", node)
        step = right.value.as_py()
        if pa.types.is_date(left.type) and step is not None and step.nanoseconds:
            left = self.cast(left, pa.timestamp("us"))
        return left, right

    def as_decimal(self, node: Expression) -> Expression:
        """Convert a number to a decimal that covers its range."""
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
        """Return a node with the result type of its kernel; decimals widen to 256 bits if 128 bits are too few."""
        try:
            built = build(pair)
            return self.folded(replace(built, type=self.result_type(built)))
        except FilterError:
            if not any(pa.types.is_decimal128(side.type) for side in pair):
                raise
        wide = [self.cast(side, pa.decimal256(side.type.precision, side.type.scale)) for side in pair]
        built = build((wide[0], wide[1]))
        return self.folded(replace(built, type=self.result_type(built)))

    def negate(self, node: Negate) -> Expression:
        """Bind a minus sign."""
        operand = self.bind(node.operand)
        if not is_number(operand.type) or pa.types.is_unsigned_integer(operand.type):
            raise self.error(f"Unary minus needs a signed number, this is of type {operand.type}", node)
        return self.folded(replace(node, operand=operand, type=operand.type))

    def concatenation(self, node: Concatenation) -> Expression:
        """Bind ``||``."""
        left, right = self.bind(node.left), self.bind(node.right)
        if not any(is_text(side.type) or pa.types.is_null(side.type) for side in (left, right)):
            if not (is_binary(left.type) and is_binary(right.type)):
                raise self.error(
                    f"Operator || joins texts, not {left.type} and {right.type}; between conditions write OR", node
                )
            target = common_type(left.type, right.type) or pa.binary()
        else:
            large = pa.types.is_large_string(left.type) or pa.types.is_large_string(right.type)
            target = pa.large_string() if large else pa.string()
        left, right = self.cast(left, target), self.cast(right, target)
        return self.folded(replace(node, left=left, right=right, type=target))
