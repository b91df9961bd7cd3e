"""Vectorised kernels of the operators. Each takes and returns Arrow arrays or scalars, with three-valued logic.

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
from numpy.typing import NDArray

from lance_dataset.expr.array_predicates import (
    compare_decimals,
    contains_text,
    is_comparable_decimal,
    member_test,
    text_test,
    unscaled,
)
from lance_dataset.expr.decimals import decimal_product, decimal_quotient
from lance_dataset.expr.interval_arithmetic import interval_kernel
from lance_dataset.expr.rowwise import per_parameters, rowwise
from lance_dataset.file.buffers import bitmap_at_zero
from lance_dataset.file.kinds import is_binary_like
from lancecodec.predicates import PREFIX, SUFFIX, WHOLE

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
    """Return the kernel of a comparison of two values of type `operands`; `right` is the right side if constant."""
    if pa.types.is_nested(operands):
        return rowwise(_COMPARE_LISTS[operator], pa.bool_())
    if pa.types.is_null(operands):
        return lambda left, right: pc.cast(left if isinstance(left, pa.Array) else right, pa.bool_())
    plain = _comparison(operator, operands)
    if not pa.types.is_floating(operands):
        return plain if right is None or not right.is_valid else _against_constant(operator, operands, right)
    if right is None or (right.is_valid and right.as_py() != right.as_py()):
        return _TOTAL_ORDER[operator]
    # No NaN on the right: only ">" and ">=" differ from IEEE, and there the IEEE complement matches the total order.
    if operator == ">":
        return lambda left, bound: pc.invert(pc.less_equal(left, bound))
    if operator == ">=":
        return lambda left, bound: pc.invert(pc.less(left, bound))
    return plain


def _comparison(operator: str, operands: pa.DataType) -> Callable[[Datum, Datum], Datum]:
    """Return Arrow's comparison; decimals of a negative scale are compared as their unscaled integers."""
    plain = _COMPARE[operator]
    if not is_comparable_decimal(operands) or operands.scale >= 0:
        return plain
    return lambda left, right: plain(unscaled(left), unscaled(right))


def _against_constant(operator: str, operands: pa.DataType, right: pa.Scalar) -> Callable[[Datum, Datum], Datum]:
    """Return a comparison with one value, computed by the codec core if that is faster."""
    plain = _comparison(operator, operands)
    if is_comparable_decimal(operands):
        return lambda left, bound: (
            compare_decimals(left, operator, bound)
            if isinstance(left, pa.Array) and bound.type.equals(left.type)
            else plain(left, bound)
        )
    text = right.as_py() if is_binary_like(operands) and operator in ("=", "!=") else None
    if not text:
        return plain
    wanted = text.encode() if isinstance(text, str) else text

    def kernel(left: Datum, bound: Datum) -> Datum:
        if not isinstance(left, pa.Array):
            return plain(left, bound)
        equal = text_test(left, wanted, WHOLE)
        return equal if operator == "=" else pc.invert(equal)

    return kernel


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
    """Return the kernel of ``IS [NOT] DISTINCT FROM``; never null."""
    differ = comparison_kernel("!=", operands, None)

    def kernel(left: Datum, right: Datum) -> Datum:
        result = pc.coalesce(differ(left, right), pc.xor(pc.is_null(left), pc.is_null(right)))
        return pc.invert(result) if negated else result

    return kernel


def truth_kernel(truth: bool, negated: bool) -> Callable[[Datum], Datum]:
    """Return the kernel of ``IS [NOT] TRUE`` and ``IS [NOT] FALSE``; never null."""
    unknown = pa.scalar(negated)
    flip = truth == negated

    def kernel(value: Datum) -> Datum:
        return pc.coalesce(pc.invert(value) if flip else value, unknown)

    return kernel


def in_kernel(values: pa.Array) -> Callable[[Datum], Datum]:
    """Return the kernel of ``IN`` over values of the operand's type."""
    has_null = values.null_count > 0
    value_set = values.drop_null() if has_null else values
    missing = pa.scalar(None, pa.bool_())
    normalise = pa.types.is_floating(values.type)
    zero = pa.scalar(0.0, values.type) if normalise else None
    if normalise:
        value_set = pc.add(value_set, zero)
    test = member_test(value_set) if len(value_set) else None

    def kernel(value: Datum) -> Datum:
        if test is not None and isinstance(value, pa.Array):
            found = test(value)
            return pc.if_else(found, found, missing) if has_null else found
        if normalise:  # -0.0 + 0.0 is 0.0, so both zeros hash alike
            value = pc.add(value, zero)
        found = pc.is_in(value, value_set=value_set)
        if has_null:
            return pc.if_else(found, found, missing)
        nullable = not value.is_valid if isinstance(value, pa.Scalar) else value.null_count
        return pc.if_else(pc.is_valid(value), found, missing) if nullable else found

    return kernel


def like_kernel(ignore_case: bool, negated: bool) -> Callable[[Datum, Datum], Datum]:
    """Return the kernel of ``[NOT] [I]LIKE``: ``%`` and ``_`` are wildcards, and a backslash escapes them."""
    match_rows = per_parameters(lambda value, pattern: _like(value, pattern, ignore_case), pa.bool_())

    def kernel(value: Datum, pattern: Datum) -> Datum:
        result = match_rows(value, pattern)
        return pc.invert(result) if negated else result

    return kernel


def _like(value: Datum, pattern: str, ignore_case: bool) -> Datum:
    """Return whether values match a constant pattern."""
    if ignore_case or not isinstance(value, pa.Array):
        return _like_regex(value, pattern, ignore_case)
    pieces = literal_pieces(pattern)
    text, places = max(pieces, key=lambda piece: len(piece[0])), len(pieces)
    if not text[0]:
        return _like_regex(value, pattern, ignore_case)
    wanted, (_, at_start, at_end) = text[0].encode(), text
    simple = places == 1 and not _has_single(pattern)
    if simple and (at_start or at_end):
        return text_test(value, wanted, WHOLE if at_start and at_end else PREFIX if at_start else SUFFIX)
    candidates = contains_text(value, wanted)
    if simple:
        return candidates
    # Only strings with the longest literal piece need the expensive match.
    few = candidates.fill_null(False) if candidates.null_count else candidates
    if 2 * few.true_count > len(few):
        return _like_regex(value, pattern, ignore_case)
    return pc.replace_with_mask(candidates, few, _like_regex(value.filter(few), pattern, ignore_case))


def _like_regex(value: Datum, pattern: str, ignore_case: bool) -> Datum:
    if "\\" not in pattern:
        return pc.match_like(value, pattern, ignore_case=ignore_case)
    # Arrow supports no escapes other than those of wildcards.
    anchored = f"(?s{'i' if ignore_case else ''})^(?:{like_regex(pattern, ignore_case).pattern})$"
    return pc.match_substring_regex(value, pattern=anchored)


_LIKE_PIECE = re.compile(r"\\[\s\S]|[\s\S]")


def literal_pieces(pattern: str) -> list[tuple[str, bool, bool]]:
    """Return the texts between the wildcards of a LIKE pattern, each with whether it is at the start and at the end."""
    pieces, text, at_start = [], "", True
    for piece in _LIKE_PIECE.findall(pattern):
        if piece in ("%", "_"):
            pieces.append((text, at_start, False))
            text, at_start = "", False
        else:
            text += piece[-1]
    pieces.append((text, at_start, True))
    return [piece for piece in pieces if piece[0]] or [("", False, False)]


def _has_single(pattern: str) -> bool:
    """Return whether there is a wildcard for a single character."""
    return "_" in _LIKE_PIECE.findall(pattern)


@lru_cache(maxsize=1024)
def like_regex(pattern: str, ignore_case: bool) -> re.Pattern[str]:
    """Return a Python regular expression equal to a LIKE pattern."""
    parts = []
    for piece in _LIKE_PIECE.findall(pattern):
        if piece == "%":
            parts.append(".*")
        elif piece == "_":
            parts.append(".")
        else:
            parts.append(re.escape(piece[-1]))
    return re.compile("".join(parts), re.DOTALL | (re.IGNORECASE if ignore_case else 0))


def concatenate(left: Datum, right: Datum) -> Datum:
    """Compute ``left || right`` for two arrays of one string or binary type."""
    empty = pa.scalar(b"" if pa.types.is_binary(left.type) or pa.types.is_large_binary(left.type) else "", left.type)
    return pc.binary_join_element_wise(left, right, empty)


def arithmetic_kernel(operator: str, left: pa.DataType, right: pa.DataType) -> Callable[[Datum, Datum], Datum]:
    """Return the kernel of an arithmetic operator; integers wrap on overflow, and division of integers truncates."""
    if operator == "-" and pa.types.is_date(left) and pa.types.is_date(right):
        return _days_between
    if pa.types.is_interval(right):
        return interval_kernel(operator)
    if pa.types.is_decimal(left) and operator in "*/":
        return decimal_product(left, right) if operator == "*" else decimal_quotient(left, right)
    if operator in ("<<", ">>"):
        return _shift_kernel(_ARITHMETIC[operator], left)
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


def _shift_kernel(shift: Callable[[Datum, Datum], Datum], operands: pa.DataType) -> Callable[[Datum, Datum], Datum]:
    """Return a kernel that shifts by the amount modulo the width of the type."""
    mask, one = pa.scalar(operands.bit_width - 1, operands), pa.scalar(1, operands)

    def kernel(value: Datum, amount: Datum) -> Datum:
        bits = pc.bit_wise_and(amount, mask)
        half = pc.shift_right(bits, one)  # in two steps: Arrow does not shift signed integers by all their bits
        return shift(shift(value, half), pc.subtract(bits, half))

    return kernel


def _remainder_kernel(operands: pa.DataType) -> Callable[[Datum, Datum], Datum]:
    if pa.types.is_integer(operands):
        return _integer_remainder
    if pa.types.is_decimal(operands):
        return rowwise(_decimal_remainder, operands)
    return _float_remainder


def _integer_remainder(left: Datum, right: Datum) -> Datum:
    if isinstance(left, pa.Array) and isinstance(right, pa.Scalar) and right.is_valid and len(left):
        divisor = abs(right.as_py())
        dtype = left.type.to_pandas_dtype()
        if 1 < divisor <= np.iinfo(dtype).max:
            values = np.frombuffer(left.buffers()[1], dtype, len(left), left.offset * np.dtype(dtype).itemsize)
            bits = bitmap_at_zero(left.buffers()[0], left.offset, len(left)) if left.null_count else None
            found = _remainders(values, dtype(divisor))
            return pa.Array.from_buffers(left.type, len(left), [bits, pa.py_buffer(found)])
    return pc.subtract(left, pc.multiply(pc.divide(left, right), right))


def _remainders(values: NDArray[Any], divisor: Any) -> NDArray[Any]:
    """Return remainders with the signs of the values; NumPy divides by a single number with a multiplication."""
    found = np.floor_divide(values, divisor)
    found *= divisor
    np.subtract(values, found, out=found)
    if values.min() < 0:
        found[(values < 0) & (found > 0)] -= divisor
    return found


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
