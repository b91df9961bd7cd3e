"""Translation of `pyarrow.compute.Expression` filters into the same bound trees that filter text becomes.

So they are pruned, narrowed and computed like text: with three-valued logic, NaN greater than all numbers, and an
``IN`` that never matches a null. The reference answers the same way, because it runs them in the same engine as text.
If some part has no counterpart here, `arrow_tree` gives up, and pyarrow runs the expression.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.expr.arrow_metadata import SerializedExpression, Token, serialized
from lance_dataset.expr.casts import cast_kernel
from lance_dataset.expr.functions.registry import find_function
from lance_dataset.expr.tree import (
    And,
    Call,
    Case,
    Cast,
    Column,
    Comparison,
    Constant,
    Expression,
    IsNull,
    Like,
    Not,
    OneOf,
    Or,
)
from lance_dataset.expr.type_rules import common_type, is_text, plain_type
from lance_dataset.late_dataclass import dataclass

__all__ = ["arrow_tree"]

_BOOLEAN = pa.bool_()
_COMPARISONS = {
    "equal": "=",
    "not_equal": "!=",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
}
_FLIPPED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NEVER_LOSES = (pa.types.is_integer, pa.types.is_decimal, pa.types.is_timestamp)


def arrow_tree(expression: pc.Expression, schema: pa.Schema) -> Expression | None:
    """Return the bound tree of an expression that fits a schema; None if no tree means the same.

    Parameters
    ----------
    expression
        The filter, which binds to `schema`.
    schema
        Columns that it may name.
    """
    form = serialized(expression)
    if form is None:
        return None
    try:
        node = _Translation(form, schema).node()
    except _NoCounterpart:
        return None
    return node if pa.types.is_boolean(node.type) else None


class _NoCounterpart(Exception):
    """A part of an expression that no node can represent."""


@dataclass(frozen=True)
class _Invocation:
    name: str
    operands: tuple[Expression, ...]
    options: dict[str, pa.Scalar]


class _Translation:
    def __init__(self, form: SerializedExpression, schema: pa.Schema) -> None:
        self._tokens: Iterator[Token] = iter(form.tokens)
        self._values = form.values
        self._schema = schema

    def node(self) -> Expression:
        return self._from(*next(self._tokens))

    def _from(self, kind: str, text: str) -> Expression:
        if kind == "literal":
            value = self._values[int(text)]
            return Constant(value, type=value.type)
        if kind == "field_ref":
            return self._column((text,))
        if kind == "nested_field_ref":
            parts = [next(self._tokens) for _ in range(int(text))]
            if any(kind != "field_ref" for kind, _ in parts):
                raise _NoCounterpart
            return self._column(tuple(name for _, name in parts))
        if kind == "call":
            return self._call(text)
        raise _NoCounterpart

    def _column(self, path: tuple[str, ...]) -> Expression:
        arrow = pa.struct(list(self._schema))
        for name in path:
            arrow = plain_type(arrow)
            position = arrow.get_field_index(name) if pa.types.is_struct(arrow) else -1
            if position < 0:
                raise _NoCounterpart
            arrow = arrow.field(position).type
        return Column(path, type=plain_type(arrow))

    def _call(self, name: str) -> Expression:
        operands: list[Expression] = []
        options: dict[str, pa.Scalar] = {}
        for kind, text in self._tokens:
            if kind == "end":
                break
            if kind == "options":
                struct = self._values[int(text)]
                options = {member.name: struct[member.name] for member in struct.type}
            else:
                operands.append(self._from(kind, text))
        call = _Invocation(name, tuple(operands), options)
        if name in _COMPARISONS:
            return _comparison(_COMPARISONS[name], *call.operands)
        rule = _RULES.get(name)
        if rule is None:
            raise _NoCounterpart
        return rule(call)


# -- calls -------------------------------------------------------------------------------------------------------


def _comparison(operator: str, left: Expression, right: Expression) -> Expression:
    left, right = _met(left, right)
    if pa.types.is_nested(left.type) or pa.types.is_null(left.type):
        raise _NoCounterpart
    if isinstance(left, Constant):
        left, right, operator = right, left, _FLIPPED[operator]
    if isinstance(left, Constant):
        raise _NoCounterpart
    return Comparison(operator, left, right, type=_BOOLEAN)


def _met(left: Expression, right: Expression) -> tuple[Expression, Expression]:
    """Return both operands in one type: that of the column, if the other one is a constant that fits it."""
    left, right = _narrowed(left, right), _narrowed(right, left)
    target = common_type(left.type, right.type)
    if target is None:
        raise _NoCounterpart
    return _cast(left, target), _cast(right, target)


def _narrowed(node: Expression, other: Expression) -> Expression:
    if not (isinstance(node, Constant) and isinstance(other, Column)) or node.type.equals(other.type):
        return node
    alike = any(family(node.type) and family(other.type) for family in _NEVER_LOSES)
    if not alike or (pa.types.is_timestamp(node.type) and (node.type.tz is None) != (other.type.tz is None)):
        return node
    try:
        value = node.value.cast(other.type)
        unchanged = value.cast(node.type).equals(node.value)
    except pa.ArrowInvalid:
        return node
    return Constant(value, type=value.type) if unchanged else node


def _cast(node: Expression, target: pa.DataType) -> Expression:
    if node.type.equals(target):
        return node
    kernel = cast_kernel(node.type, target, lenient=False)
    if kernel is None:
        raise _NoCounterpart
    if not isinstance(node, Constant):
        return Cast(node, target, type=target)
    try:
        value = kernel(node.value)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OverflowError) as error:
        raise _NoCounterpart from error
    return Constant(value, type=target)


def _logical(kind: type[And] | type[Or]) -> Callable[[_Invocation], Expression]:
    def rule(call: _Invocation) -> Expression:
        operands: list[Expression] = []
        for operand in call.operands:
            # flatten nested conjunctions, as in filter text
            operands.extend(operand.operands if isinstance(operand, kind) else [_truth(operand)])
        return kind(tuple(operands), type=_BOOLEAN)

    return rule


def _truth(node: Expression) -> Expression:
    return _cast(node, _BOOLEAN) if pa.types.is_null(node.type) else _boolean(node)


def _boolean(node: Expression) -> Expression:
    if not pa.types.is_boolean(node.type):
        raise _NoCounterpart
    return node


def _inverted(call: _Invocation) -> Expression:
    (operand,) = call.operands
    if isinstance(operand, IsNull | OneOf | Like):
        return replace(operand, negated=not operand.negated)
    return Not(_truth(operand), type=_BOOLEAN)


def _null_test(call: _Invocation) -> Expression:
    (operand,) = call.operands
    counts_nan = call.options.get("nan_is_null")
    if counts_nan is not None and counts_nan.as_py():
        raise _NoCounterpart
    return IsNull(operand, type=_BOOLEAN)


def _valid_test(call: _Invocation) -> Expression:
    (operand,) = call.operands
    return IsNull(operand, negated=True, type=_BOOLEAN)


def _nan_test(call: _Invocation) -> Expression:
    (operand,) = call.operands
    function = find_function("isnan")
    if function is None or not pa.types.is_floating(operand.type):
        raise _NoCounterpart
    return Call("isnan", (operand,), function, type=_BOOLEAN)


def _membership(call: _Invocation) -> Expression:
    (operand,) = call.operands
    chosen = call.options["value_set"]
    if isinstance(operand, Constant) or not isinstance(chosen, pa.ListScalar) or pa.types.is_nested(operand.type):
        raise _NoCounterpart
    values = chosen.values
    if len(values) and values.type.equals(operand.type):
        return OneOf(operand, values, type=_BOOLEAN)
    target = common_type(operand.type, values.type)
    narrow = [_narrowed(Constant(value, type=value.type), operand) for value in values]
    if all(item.type.equals(operand.type) for item in narrow):
        target = operand.type
    if target is None or not narrow:
        raise _NoCounterpart
    cast = [_cast(item, target) for item in narrow]
    constants = [item.value for item in cast if isinstance(item, Constant)]
    if len(constants) < len(cast):
        raise _NoCounterpart
    return OneOf(_cast(operand, target), pa.array(constants, target), type=_BOOLEAN)


def _conditional(call: _Invocation) -> Expression:
    test, then, otherwise = call.operands
    # DuckDB writes x IN (...) as "if x is valid then x in (...) else null", which is the meaning of IN here
    guarded = isinstance(test, IsNull) and test.negated and isinstance(then, OneOf)
    nothing = isinstance(otherwise, Constant) and not otherwise.value.is_valid
    if guarded and nothing and _uncast(then.operand) == _uncast(test.operand):  # type: ignore[attr-defined]
        return then
    then, otherwise = _met(then, otherwise)
    return Case((_truth(test),), (then,), otherwise, type=then.type)


def _uncast(node: Expression) -> Expression:
    return node.operand if isinstance(node, Cast) else node


def _text_test(before: str, after: str, *, is_pattern: bool = False) -> Callable[[_Invocation], Expression]:
    def rule(call: _Invocation) -> Expression:
        (operand,) = call.operands
        if not is_text(operand.type):
            raise _NoCounterpart
        text = call.options["pattern"].as_py()
        pattern = text if is_pattern else before + re.sub(r"([\\%_])", r"\\\1", text) + after
        value = pa.scalar(pattern, operand.type)
        ignore_case = bool(call.options["ignore_case"].as_py())
        return Like(operand, Constant(value, type=value.type), ignore_case=ignore_case, type=_BOOLEAN)

    return rule


def _safe_cast(call: _Invocation) -> Expression:
    """Translate a lossless conversion; other conversions follow different rules in the two dialects."""
    (operand,) = call.operands
    target = call.options["to_type"].type
    if not _is_widening(operand.type, target):
        raise _NoCounterpart
    return _cast(operand, target)


def _is_widening(source: pa.DataType, target: pa.DataType) -> bool:
    if source.equals(target):
        return True
    if pa.types.is_integer(source):
        narrow = source.bit_width < 64
        wider = pa.types.is_integer(target) and bool(common_type(source, target) == target)
        return wider or (narrow and pa.types.is_float64(target))
    if pa.types.is_float32(source):
        return bool(pa.types.is_float64(target))
    return is_text(source) and is_text(target)


_RULES: dict[str, Callable[[_Invocation], Expression]] = {
    "and_kleene": _logical(And),
    "cast": _safe_cast,
    "ends_with": _text_test("%", ""),
    "if_else": _conditional,
    "invert": _inverted,
    "is_in": _membership,
    "is_nan": _nan_test,
    "is_null": _null_test,
    "is_valid": _valid_test,
    "match_like": _text_test("", "", is_pattern=True),
    "match_substring": _text_test("%", "%"),
    "or_kleene": _logical(Or),
    "starts_with": _text_test("", "%"),
}
