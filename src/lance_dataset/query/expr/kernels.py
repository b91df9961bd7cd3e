"""Vectorised kernels of the operators. Each takes and gives Arrow arrays or scalars, nulls as three-valued logic wants.

Floats compare in total order: NaN equals itself and is greater than everything else; zeros of both signs are equal.
"""

from __future__ import annotations

import operator as python_operator
import re
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .functions.rowwise import constant, rowwise

__all__ = [
    "arithmetic_kernel",
    "comparison_kernel",
    "concatenate",
    "distinct_kernel",
    "in_kernel",
    "like_kernel",
    "truth_kernel",
]

Datum = Any
_COMPARE: dict[str, Callable[[Datum, Datum], Datum]] = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}

_COMPARE_LISTS: dict[str, Callable[[Any, Any], bool]] = {"=": python_operator.eq, "!=": python_operator.ne}


def comparison_kernel(operator: str, operands: pa.DataType, right: pa.Scalar | None) -> Callable[[Datum, Datum], Datum]:
    """The kernel of a comparison of two values of type `operands`; `right` is the right side when constant."""
    if pa.types.is_nested(operands):
        return rowwise(_COMPARE_LISTS[operator], pa.bool_())
    plain = _COMPARE[operator]
    if not pa.types.is_floating(operands):
        return plain
    if right is None or (right.is_valid and right.as_py() != right.as_py()):
        return _TOTAL_ORDER[operator]
    # No NaN on the right: only ">" and ">=" differ from IEEE, and there the IEEE complement is what total order says.
    if operator == ">":
        return lambda left, bound: pc.invert(pc.less_equal(left, bound))
    if operator == ">=":
        return lambda left, bound: pc.invert(pc.less(left, bound))
    return plain


def _total_equal(left: Datum, right: Datum) -> Datum:
    return pc.or_kleene(pc.equal(left, right), pc.and_kleene(pc.is_nan(left), pc.is_nan(right)))


def _total_less(left: Datum, right: Datum) -> Datum:
    return pc.or_kleene(pc.less(left, right), pc.and_kleene(pc.invert(pc.is_nan(left)), pc.is_nan(right)))


_TOTAL_ORDER: dict[str, Callable[[Datum, Datum], Datum]] = {
    "=": _total_equal,
    "!=": lambda left, right: pc.invert(_total_equal(left, right)),
    "<": _total_less,
    ">": lambda left, right: _total_less(right, left),
    "<=": lambda left, right: pc.invert(_total_less(right, left)),
    ">=": lambda left, right: pc.invert(_total_less(left, right)),
}


def distinct_kernel(operands: pa.DataType, negated: bool) -> Callable[[Datum, Datum], Datum]:
    """The kernel of ``IS [NOT] DISTINCT FROM``; never null."""
    differ = comparison_kernel("!=", operands, None)

    def kernel(left: Datum, right: Datum) -> Datum:
        result = pc.coalesce(differ(left, right), pc.xor(pc.is_null(left), pc.is_null(right)))
        return pc.invert(result) if negated else result

    return kernel


def truth_kernel(truth: bool, negated: bool) -> Callable[[Datum], Datum]:
    """The kernel of ``IS [NOT] TRUE`` and ``IS [NOT] FALSE``; never null."""
    unknown = pa.scalar(negated)
    flip = truth == negated

    def kernel(value: Datum) -> Datum:
        return pc.coalesce(pc.invert(value) if flip else value, unknown)

    return kernel


def in_kernel(values: list[pa.Scalar], operand: pa.DataType) -> Callable[[Datum], Datum]:
    """The kernel of ``IN`` over constants of the operand's type."""
    known = [value for value in values if value.is_valid]
    value_set = pa.array([value.as_py() for value in known], operand) if known else pa.nulls(0, operand)
    if pa.types.is_timestamp(operand) or pa.types.is_duration(operand) or pa.types.is_time(operand):
        # Through integers: Python's datetime has no nanoseconds.
        value_set = pa.array([value.value for value in known], pa.int64())
        value_set = value_set.cast(pa.int32()).cast(operand) if operand.bit_width == 32 else value_set.cast(operand)
    missing = pa.scalar(None, pa.bool_())
    has_null = len(known) < len(values)
    normalise = pa.types.is_floating(operand)
    zero = pa.scalar(0.0, operand) if normalise else None
    if normalise:
        value_set = pc.add(value_set, zero)

    def kernel(value: Datum) -> Datum:
        if normalise:  # -0.0 + 0.0 is 0.0, so both zeros hash alike
            value = pc.add(value, zero)
        found = pc.is_in(value, value_set=value_set)
        if has_null:
            return pc.if_else(found, found, missing)
        nullable = not value.is_valid if isinstance(value, pa.Scalar) else value.null_count
        return pc.if_else(pc.is_valid(value), found, missing) if nullable else found

    return kernel


def like_kernel(ignore_case: bool, negated: bool) -> Callable[[Datum, Datum], Datum]:
    """The kernel of ``[NOT] [I]LIKE``: ``%`` and ``_`` are wildcards, a backslash takes them literally."""

    def match(value: Datum, pattern: str) -> Datum:
        if "\\" not in pattern:
            return pc.match_like(value, pattern, ignore_case=ignore_case)
        # Arrow knows no escapes other than those of wildcards.
        anchored = f"(?s{'i' if ignore_case else ''})^(?:{like_regex(pattern, ignore_case).pattern})$"
        return pc.match_substring_regex(value, pattern=anchored)

    match_rows = rowwise(lambda text, pattern: like_regex(pattern, ignore_case).fullmatch(text) is not None, pa.bool_())

    def kernel(value: Datum, pattern: Datum) -> Datum:
        text = constant(pattern)
        if text is None:
            result = match_rows(value, pattern)
        else:
            result = match(value, text)
        return pc.invert(result) if negated else result

    return kernel


@lru_cache(maxsize=1024)
def like_regex(pattern: str, ignore_case: bool) -> re.Pattern[str]:
    """A Python regular expression equal to a LIKE pattern."""
    parts = []
    for piece in re.findall(r"\\[\s\S]|[\s\S]", pattern):
        if piece == "%":
            parts.append(".*")
        elif piece == "_":
            parts.append(".")
        else:
            parts.append(re.escape(piece[-1]))
    return re.compile("".join(parts), re.DOTALL | (re.IGNORECASE if ignore_case else 0))


def concatenate(left: Datum, right: Datum) -> Datum:
    """``left || right`` of two arrays of one string or binary type."""
    empty = pa.scalar(b"" if pa.types.is_binary(left.type) or pa.types.is_large_binary(left.type) else "", left.type)
    return pc.binary_join_element_wise(left, right, empty)


def arithmetic_kernel(operator: str, left: pa.DataType, right: pa.DataType) -> Callable[[Datum, Datum], Datum]:
    """The kernel of an arithmetic operator; integers wrap on overflow and division of integers truncates."""
    if operator == "-" and pa.types.is_date(left) and pa.types.is_date(right):
        return _days_between
    if operator == "%":
        return _remainder_kernel(left)
    return _ARITHMETIC[operator]


_ARITHMETIC: dict[str, Callable[[Datum, Datum], Datum]] = {
    "+": pc.add,
    "-": pc.subtract,
    "*": pc.multiply,
    "/": pc.divide,
    "<<": pc.shift_left,
    ">>": pc.shift_right,
}


def _days_between(left: Datum, right: Datum) -> Datum:
    days = [pc.cast(pc.cast(pc.cast(side, pa.date32()), pa.int32()), pa.int64()) for side in (left, right)]
    return pc.subtract(*days)


def _remainder_kernel(operands: pa.DataType) -> Callable[[Datum, Datum], Datum]:
    if pa.types.is_integer(operands):
        return lambda left, right: pc.subtract(left, pc.multiply(pc.divide(left, right), right))
    if pa.types.is_decimal(operands):
        return rowwise(_decimal_remainder, operands)
    return _float_remainder


def _decimal_remainder(left: Decimal, right: Decimal) -> Decimal:
    if right == 0:
        raise pa.ArrowInvalid("divide by zero")
    return left % right


def _float_remainder(left: Datum, right: Datum) -> Datum:
    with np.errstate(invalid="ignore"):
        if isinstance(left, pa.Scalar) and isinstance(right, pa.Scalar):
            valid = left.is_valid and right.is_valid
            return pa.scalar(float(np.fmod(left.as_py(), right.as_py())) if valid else None, left.type)
        length = len(left) if not isinstance(left, pa.Scalar) else len(right)
        sides = [pa.repeat(side, length) if isinstance(side, pa.Scalar) else side for side in (left, right)]
        values = [pc.fill_null(side, 1.0).to_numpy(zero_copy_only=False) for side in sides]
        missing = pc.or_(pc.is_null(sides[0]), pc.is_null(sides[1])).to_numpy(zero_copy_only=False)
        return pa.array(np.fmod(*values), left.type, mask=missing)
