"""Common base of the binding rules: constant folding, conversions, and operands brought to one type."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa

from lance_dataset.errors import FilterError, UnsupportedError
from lance_dataset.expr.casts import cast_kernel
from lance_dataset.expr.evaluate import compile_tree
from lance_dataset.expr.literals import LiteralMismatch, convert_literal, natural_scalar
from lance_dataset.expr.tree import (
    Arithmetic,
    Call,
    Cast,
    Column,
    Constant,
    Element,
    Expression,
    FieldAccess,
    Literal,
    is_volatile,
)
from lance_dataset.expr.type_rules import common_type, is_number

__all__ = ["BinderBase", "ConstantError"]

_DATA_ERRORS = (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, OverflowError, ValueError, TypeError)


class ConstantError(FilterError, pa.ArrowInvalid):
    """A constant part of the filter that cannot be computed, such as ``1 / 0``; raised as if the scan had failed."""


class BinderBase:
    """State of a binder, and helpers shared by its rules.

    Parameters
    ----------
    schema, text, projection, tables
        As in `bind`.
    """

    #: Binding rules by class of node.
    rules: Mapping[type[Expression], Callable[[Any], Expression]]

    def __init__(self, schema: pa.Schema, text: str, projection: bool, tables: Collection[str]) -> None:
        self.schema = schema
        self.tables = tables
        self.text = text
        self.projection = projection
        self.lazy = 0
        self.root: Expression | None = None

    def bind(self, node: Expression) -> Expression:
        """Bind a subtree."""
        return self.rules[type(node)](node)

    def failed(self, error: Exception, node: Expression) -> FilterError:
        """Return the error to raise for a failure that occurred while computing ahead of the scan."""
        return ConstantError(str(error), self.text, node.position if node.position >= 0 else None)

    def error(self, message: str, node: Expression) -> FilterError:
        """Return an error at the position of a node."""
        return FilterError(message, self.text, node.position if node.position >= 0 else None)

    def folded(self, node: Expression) -> Expression:
        """Return the constant a node amounts to if all its operands are constants, else the node."""
        if not all(isinstance(child, Constant) for child in node.children()) or is_volatile(node):
            return node
        try:
            value = compile_tree(node)(None)
        except UnsupportedError:
            raise
        except _DATA_ERRORS as error:
            if self.lazy:
                return node  # fails if a row needs it
            raise self.failed(error, node) from error
        return Constant(value, type=value.type, position=node.position, metadata=node.metadata)

    def result_type(self, node: Expression) -> pa.DataType:
        """Return the type of a node, determined by running it on no rows."""
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
        except UnsupportedError:
            raise
        except _DATA_ERRORS as error:
            raise self.failed(error, node) from error

    def literal(self, node: Literal) -> Expression:
        """Bind a literal in its natural type."""
        value = natural_scalar(node.value)
        return Constant(value, node, type=value.type, position=node.position)

    def cast(self, node: Expression, target: pa.DataType, *, lenient: bool = False) -> Expression:
        """Convert a node to `target`; return the node itself if it has that type."""
        if node.type.equals(target):
            return node
        if cast_kernel(node.type, target, lenient=lenient) is None:
            raise self.error(f"Unsupported CAST from {node.type} to {target}", node)
        return self.folded(Cast(node, target, lenient, type=target, position=node.position))

    # -- operands that meet ------------------------------------------------------------------------------------------

    def meet(self, left: Expression, right: Expression, node: Expression) -> tuple[Expression, Expression]:
        """Return both operands in one type; a literal takes the type of the other side."""
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
        """Return True if a constant was written as a literal, so that its type is still open."""
        return isinstance(node, Constant) and node.literal is not None

    def adapted(self, constant: Expression, operand: Expression) -> Expression:
        """Return a literal in the type that values of `operand` are compared in."""
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
        """Return a typed constant in the type of the column it is compared with, if that loses nothing."""
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
