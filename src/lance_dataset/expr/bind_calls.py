"""Binding of function calls: arity, conversion of arguments to the kinds of the parameters, result type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from typing import NoReturn

import pyarrow as pa

from lance_dataset.errors import nearest_name_hint
from lance_dataset.expr.bind_base import BinderBase
from lance_dataset.expr.function import Function, Kind
from lance_dataset.expr.functions.registry import find_function, function_names
from lance_dataset.expr.literals import LiteralMismatch, convert_literal
from lance_dataset.expr.sql_types import arrow_type_name, parse_arrow_type
from lance_dataset.expr.tree import Call, Cast, Column, Constant, Expression, FieldAccess, Literal
from lance_dataset.expr.type_rules import common_type, is_binary, is_list, is_number, is_text, plain_type

__all__ = ["CallRules"]

_SYNTACTIC = ("get_field", "arrow_cast", "arrow_typeof")
_AGGREGATES = {
    "count",
    "sum",
    "avg",
    "mean",
    "min",
    "max",
    "median",
    "stddev",
    "array_agg",
    "string_agg",
    "first_value",
}


class CallRules(BinderBase):
    """Binding rules for calls."""

    def call(self, node: Call) -> Expression:
        """Bind a call."""
        name = node.name.lower()
        if name in _SYNTACTIC:
            return self.syntactic_call(name, node)
        function = find_function(name)
        if function is None:
            self.unknown_function(node)
        if not function.accepts(len(node.arguments)):
            raise self.error(f"Function {name!r} takes {function.arity()} argument(s), not {len(node.arguments)}", node)
        given = [self.bind(argument) for argument in node.arguments]
        if function.describe is not None:
            return self.described(function.describe, given, node)
        if function.specialize is not None:
            function = self.specialized(function.specialize, given, node)
        arguments = self.arguments(function, given, node)
        bound = replace(node, name=name, arguments=tuple(arguments), function=function, metadata=function.metadata)
        return self.folded(replace(bound, type=self.result_type(bound)))

    def unknown_function(self, node: Call) -> NoReturn:
        """Raise the error for a name that is not a function."""
        if node.name.lower() in _AGGREGATES:
            raise self.error(f"The aggregate {node.name!r} is not supported in filters", node)
        known = (*function_names(), *_SYNTACTIC)
        raise self.error(f"Invalid function {node.name!r}{nearest_name_hint(node.name, known)}", node)

    def syntactic_call(self, name: str, node: Call) -> Expression:
        """Bind a function whose arguments shape the tree instead of being values."""
        count = 1 if name == "arrow_typeof" else 2
        if len(node.arguments) != count:
            raise self.error(f"Function {name!r} takes {count} argument(s), not {len(node.arguments)}", node)
        if name == "arrow_typeof":
            value = pa.scalar(arrow_type_name(self.bind(node.arguments[0]).type))
            return Constant(value, type=value.type, position=node.position)
        operand, parameter = node.arguments
        if name == "arrow_cast":
            return self.bind(Cast(operand, self.arrow_type(parameter), position=node.position))
        if not isinstance(parameter, Literal) or not isinstance(parameter.value, str):
            raise self.error("get_field needs the name of the field as a string", parameter)
        return self.bind(FieldAccess(operand, parameter.value, position=node.position))

    def arrow_type(self, node: Expression) -> pa.DataType:
        """Return the Arrow type that a string literal names."""
        name = node.value if isinstance(node, Literal) else None
        target = parse_arrow_type(name) if isinstance(name, str) else None
        if target is None:
            raise self.error("arrow_cast needs the name of an Arrow type, such as 'Int64'", node)
        return target

    def described(self, describe: Callable[..., pa.Scalar], arguments: Sequence[Expression], node: Call) -> Expression:
        """Compute a result from the type and metadata of the first argument, without its values."""
        first, *others = arguments
        options = [other.value for other in others if isinstance(other, Constant)]
        if len(options) < len(others):
            raise self.error(f"Function {node.name!r} takes constants after its first argument", node)
        try:
            value = describe(self.described_field(first), *options)
        except pa.ArrowInvalid as error:
            raise self.error(str(error), node) from None
        return Constant(value, type=value.type, position=node.position)

    def specialized(
        self,
        specialize: Callable[[Sequence[pa.Field], Sequence[pa.Scalar | None]], Function],
        arguments: Sequence[Expression],
        node: Call,
    ) -> Function:
        """Return the function for the fields of the arguments."""
        values = [argument.value if isinstance(argument, Constant) else None for argument in arguments]
        try:
            return specialize([self.described_field(argument) for argument in arguments], values)
        except pa.ArrowInvalid as error:
            raise self.error(str(error), node) from None

    def described_field(self, node: Expression) -> pa.Field:
        """Return the field of a column, or a made-up field for a computed value."""
        if not isinstance(node, Column):
            return pa.field("", node.type, metadata=node.metadata)
        field = self.schema.field(node.path[0])
        for name in node.path[1:]:
            field = plain_type(field.type).field(name)
        return field

    # -- arguments ---------------------------------------------------------------------------------------------------

    def arguments(self, function: Function, arguments: Sequence[Expression], node: Call) -> list[Expression]:
        """Convert the arguments as the parameters of the function require."""
        kinds = function.kinds(len(arguments))
        converted = list(arguments)
        for place, (kind, argument) in enumerate(zip(kinds, arguments, strict=True)):
            if kind not in (Kind.SAME, Kind.ELEMENT):
                converted[place] = self.argument(kind, argument, function, node)
        if Kind.SAME in kinds:
            same = [place for place, kind in enumerate(kinds) if kind is Kind.SAME]
            together = self.unified([converted[place] for place in same], node, f"Function {node.name!r}")
            for place, argument in zip(same, together, strict=True):
                converted[place] = argument
        if Kind.ELEMENT in kinds:
            converted[1] = self.list_member(converted[0], converted[1], node)
        if kinds[:2] == (Kind.LIST, Kind.LIST):
            converted[:2] = self.lists(converted[0], converted[1], node)
        if function.coercion is not None:
            converted = self.coerced(function.coercion, converted, node)
        return self.one_text_type(converted, kinds)

    def coerced(
        self,
        coercion: Callable[[Sequence[pa.DataType]], Sequence[pa.DataType]],
        arguments: Sequence[Expression],
        call: Call,
    ) -> list[Expression]:
        """Convert the arguments to the types that the function asks for."""
        try:
            targets = coercion([argument.type for argument in arguments])
        except pa.ArrowInvalid as error:
            raise self.error(str(error), call) from None
        return [self.cast(argument, target) for argument, target in zip(arguments, targets, strict=True)]

    def argument(self, kind: Kind, node: Expression, function: Function, call: Call) -> Expression:
        """Convert one argument as the kind of its parameter requires."""
        arrow = node.type
        if pa.types.is_null(arrow) and kind in _TYPE_OF_NULL:
            return self.cast(node, _TYPE_OF_NULL[kind])
        if kind is Kind.INTERVAL and is_text(arrow):
            return self.cast(node, pa.month_day_nano_interval())
        if not _ACCEPTED[kind](arrow):
            raise self.error(
                f"Function {function.name!r} needs {kind.value}, not {arrow}", node if node.position >= 0 else call
            )
        if kind is Kind.FLOAT:
            return self.cast(node, pa.float64())
        if kind is Kind.INTEGER:
            return self.cast(node, pa.int64())
        if kind is Kind.PRINTED and not is_text(arrow):
            return self.cast(node, pa.string())
        return node

    def unified(self, nodes: Sequence[Expression], parent: Expression, what: str) -> list[Expression]:
        """Convert all nodes to one type; number literals keep the type they are written in. Errors name `what`."""
        decimal = next((node for node in nodes if pa.types.is_decimal(node.type)), None)
        if decimal is not None:
            nodes = [self.exact(node, decimal.type) for node in nodes]  # for literals that fit

        def widen(known: pa.DataType, node: Expression) -> pa.DataType:
            target = common_type(known, node.type)
            if target is None:
                raise self.error(f"{what} needs values of one type, not {known} and {node.type}", parent)
            return target

        target = reduce(widen, nodes, nodes[0].type) if nodes else pa.null()
        return [self.cast(node, target) for node in nodes]

    @staticmethod
    def exact(node: Expression, decimal: pa.DataType) -> Expression:
        """Return a number literal beside decimals as a decimal."""
        if not isinstance(node, Constant) or node.literal is None or not pa.types.is_floating(node.type):
            return node
        try:
            value = convert_literal(node.literal, decimal)
        except LiteralMismatch:
            return node
        return Constant(value, type=value.type, position=node.position)

    def list_member(self, lists: Expression, member: Expression, call: Call) -> Expression:
        """Convert an argument to the element type of a list."""
        value_type = lists.type.value_type
        if isinstance(member, Constant) and member.literal is not None:
            try:
                value = convert_literal(member.literal, value_type)
            except LiteralMismatch as mismatch:
                if not (is_number(value_type) and is_number(member.type)):
                    raise self.error(f"Wrong literal for a list of {value_type}: {mismatch}", member) from None
            else:
                return Constant(value, type=value.type, position=member.position)
        target = common_type(value_type, member.type)
        if target is None:
            raise self.error(f"A list of {value_type} does not hold values of type {member.type}", call)
        return self.cast(member, target)

    def lists(self, left: Expression, right: Expression, call: Call) -> list[Expression]:
        """Convert two lists to one element type."""
        element, other = left.type.value_type, right.type.value_type
        if element.equals(other) or pa.types.is_null(other):
            return [left, right]
        target = common_type(element, other)
        if target is None:
            raise self.error(f"Lists of {element} and of {other} have no elements in common", call)
        if isinstance(right, Constant):
            try:
                value = right.value.cast(pa.list_(element))
                return [left, Constant(value, type=value.type, position=right.position)]
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                pass
        return [self.cast(left, pa.list_(target)), self.cast(right, pa.list_(target))]

    def one_text_type(self, nodes: list[Expression], kinds: Sequence[Kind]) -> list[Expression]:
        """Convert the string arguments to one string type."""
        texts = [place for place, kind in enumerate(kinds) if kind in (Kind.TEXT, Kind.PRINTED)]
        if not any(pa.types.is_large_string(nodes[place].type) for place in texts):
            return nodes
        for place in texts:
            nodes[place] = self.cast(nodes[place], pa.large_string())
        return nodes


def _is_moment(arrow: pa.DataType) -> bool:
    return bool(pa.types.is_date(arrow) or pa.types.is_timestamp(arrow))


_ACCEPTED = {
    Kind.ANY: lambda arrow: True,
    Kind.NUMBER: is_number,
    Kind.FLOAT: is_number,
    Kind.INTEGER: pa.types.is_integer,
    Kind.TEXT: is_text,
    Kind.PRINTED: lambda arrow: not pa.types.is_nested(arrow),
    Kind.BYTES: lambda arrow: is_text(arrow) or is_binary(arrow),
    Kind.BOOLEAN: pa.types.is_boolean,
    Kind.TEMPORAL: _is_moment,
    Kind.INTERVAL: pa.types.is_interval,
    Kind.LIST: is_list,
}
_TYPE_OF_NULL = {
    Kind.NUMBER: pa.int64(),
    Kind.FLOAT: pa.float64(),
    Kind.INTEGER: pa.int64(),
    Kind.TEXT: pa.string(),
    Kind.PRINTED: pa.string(),
    Kind.BYTES: pa.string(),
    Kind.BOOLEAN: pa.bool_(),
    Kind.TEMPORAL: pa.timestamp("us"),
    Kind.LIST: pa.list_(pa.null()),
    Kind.INTERVAL: pa.month_day_nano_interval(),
}
