"""Conversion of literals to Arrow scalars, never passing a decimal through binary floating point."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from decimal import Decimal

import pyarrow as pa

from lance_dataset.expr.tree import Literal, LiteralValue
from lance_dataset.expr.type_rules import is_binary, is_text

__all__ = [
    "LiteralMismatch",
    "convert_literal",
    "integer_bounds",
    "literal_array",
    "natural_scalar",
    "parse_timestamp",
    "shortest_decimal",
]

#: Digits of the widest decimals.
_WIDEST = 76
_INT64_MIN, _INT64_MAX, _UINT64_MAX = -(2**63), 2**63 - 1, 2**64 - 1


class LiteralMismatch(Exception):
    """Error for a literal that has no exact counterpart in the wanted type; the message says why."""


def natural_scalar(value: LiteralValue) -> pa.Scalar:
    """Return the scalar of a literal that stands alone: int64, float64, string, binary, bool or null."""
    if value is None or isinstance(value, (bool, str, bytes)):
        return pa.scalar(value)
    if isinstance(value, int):
        if _INT64_MIN <= value <= _INT64_MAX:
            return pa.scalar(value, pa.int64())
        if 0 <= value <= _UINT64_MAX:
            return pa.scalar(value, pa.uint64())
        return pa.scalar(float(value), pa.float64())
    if isinstance(value, Decimal):
        return pa.scalar(float(value), pa.float64())
    return pa.scalar(value, pa.month_day_nano_interval())


def convert_literal(literal: Literal, target: pa.DataType) -> pa.Scalar:
    """Return the scalar that values of type `target` are compared with.

    The result has type `target`. The exception is a number that a decimal type cannot hold exactly, which becomes a
    decimal of larger scale or precision.

    Raises
    ------
    LiteralMismatch
        The literal is of another kind, or does not fit.
    """
    value = literal.value
    if value is None:
        return pa.scalar(None, target)
    if isinstance(value, bool):
        return _require(pa.types.is_boolean(target), value, target)
    if isinstance(value, str):
        return _require(is_text(target), value, target)
    if isinstance(value, bytes):
        return _binary(value, target)
    if isinstance(value, (int, Decimal)):
        return _number(value, target)
    return _require(pa.types.is_interval(target), value, target)


def integer_bounds(kind: pa.DataType) -> tuple[int, int]:
    """Return the least and the greatest value of an integer type."""
    bits = kind.bit_width
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if pa.types.is_signed_integer(kind) else (0, 2**bits - 1)


def literal_array(values: Sequence[LiteralValue], target: pa.DataType) -> pa.Array | None:
    """Return plain literals as values of a type, all in one step; None if one is not plain, or does not fit."""
    kinds = set(map(type, values))
    floating = pa.types.is_floating(target)
    wanted = (
        {int, Decimal} if floating else {int} if pa.types.is_integer(target) else {str} if is_text(target) else set()
    )
    if not kinds <= wanted:
        return None
    try:
        if floating:
            return pa.array(list(map(float, values)), pa.float64()).cast(target)  # type: ignore[arg-type]
        return pa.array(values, target)
    except (pa.ArrowInvalid, OverflowError):
        return None


def _require(fits: bool, value: LiteralValue, target: pa.DataType) -> pa.Scalar:
    if not fits:
        raise LiteralMismatch(_describe(value, target))
    return pa.scalar(value, target)


def _describe(value: LiteralValue, target: pa.DataType) -> str:
    if isinstance(value, str) and pa.types.is_temporal(target):
        word = "date" if pa.types.is_date(target) else "timestamp"
        return f"a string is not converted to {target}; write {word} {value!r}"
    if isinstance(value, str):
        return f"the string {value!r} is not converted to {target}; use CAST"
    if isinstance(value, (int, Decimal)):
        return f"the number {value} is not converted to {target}; use CAST"
    return f"the literal {value!r} is not converted to {target}; use CAST"


def _binary(value: bytes, target: pa.DataType) -> pa.Scalar:
    if pa.types.is_fixed_size_binary(target):
        if len(value) != target.byte_width:
            raise LiteralMismatch(f"a binary literal of {len(value)} bytes does not fit {target}")
        return pa.scalar(value, target)
    return _require(is_binary(target), value, target)


def _number(value: int | Decimal, target: pa.DataType) -> pa.Scalar:
    if pa.types.is_floating(target):
        return pa.scalar(float(value), pa.float64()).cast(target)
    if pa.types.is_decimal(target):
        return _decimal(Decimal(value), target)
    if not pa.types.is_integer(target):
        raise LiteralMismatch(_describe(value, target))
    if isinstance(value, Decimal):
        raise LiteralMismatch(
            f"the number {value} is not comparable with {target}; CAST the column or write an integer"
        )
    low, high = integer_bounds(target)
    if not low <= value <= high:
        raise LiteralMismatch(f"the number {value} is outside the range of {target} ({low} to {high})")
    return pa.scalar(value, target)


def shortest_decimal(value: Decimal) -> pa.Scalar:
    """Return the number as a decimal of the least precision that holds it."""
    return _decimal(value, pa.decimal128(1, 0))


def _decimal(value: Decimal, target: pa.DataType) -> pa.Scalar:
    sign, digits, power = value.as_tuple()
    assert isinstance(power, int)  # literals are finite
    exponent: int = power
    if not value:
        digits, exponent = (0,), max(min(exponent, 0), -_WIDEST)
    if len(digits) + exponent > _WIDEST:
        raise LiteralMismatch(f"the number {value:.3e} has more digits than a decimal can hold")
    if exponent > 0:
        digits, exponent = digits + (0,) * exponent, 0
    while exponent < -target.scale and digits[-1:] == (0,):
        digits, exponent = digits[:-1], exponent + 1
    scale = max(-exponent, target.scale)
    precision = max(target.precision, len(digits) + exponent + scale, scale)
    if precision > _WIDEST:
        raise LiteralMismatch(f"the number {value:.3e} has more digits than a decimal can hold")
    exact = Decimal((sign, digits, exponent))
    if precision == target.precision and scale == target.scale:
        return pa.scalar(exact, target)
    width = pa.decimal128 if precision <= 38 and pa.types.is_decimal128(target) else pa.decimal256
    return pa.scalar(exact, width(precision, scale))


_TIMESTAMP = re.compile(
    r"\s*(\d{4})-(\d{1,2})-(\d{1,2})"
    r"(?:[T ](\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?)?"
    r"\s*(Z|z|[+-]\d{2}(?::?\d{2})?)?\s*"
)
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def parse_timestamp(text: str, unit: str) -> int | None:
    """Return the units since the epoch of an ISO 8601 text; offsets are applied, and digits beyond the unit dropped.

    Returns
    -------
    int or None
        None if the text is not a timestamp.
    """
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
    fraction, zone = match.group(7) or "", match.group(8)
    try:
        moment = datetime.datetime(year, month, day, hour, minute, second)
    except ValueError:
        return None
    seconds = (moment - datetime.datetime(1970, 1, 1)) // datetime.timedelta(seconds=1) - _offset_seconds(zone)
    digits = {"s": 0, "ms": 3, "us": 6, "ns": 9}[unit]
    return seconds * _PER_SECOND[unit] + int(fraction.ljust(9, "0")[:digits] or 0)


def _offset_seconds(zone: str | None) -> int:
    if zone is None or zone in "Zz":
        return 0
    sign = -1 if zone[0] == "-" else 1
    digits = zone[1:].replace(":", "").ljust(4, "0")
    return sign * (int(digits[:2]) * 3600 + int(digits[2:]) * 60)
