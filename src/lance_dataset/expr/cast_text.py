"""Conversions between text and other types, with the spellings of the reference."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from decimal import Context, Decimal, InvalidOperation
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.expr.interval_text import parse_interval
from lance_dataset.expr.literals import parse_timestamp

__all__ = [
    "days_of",
    "printed_date64",
    "printed_duration",
    "printed_fixed_decimal",
    "text_to_boolean",
    "text_to_date",
    "text_to_decimal",
    "text_to_integer",
    "text_to_interval",
    "text_to_time",
]

Kernel = Callable[[Any], Any]
_TRUTH = {
    **dict.fromkeys(("t", "tr", "tru", "true", "y", "ye", "yes", "on", "1"), True),
    **dict.fromkeys(("f", "fa", "fal", "fals", "false", "n", "no", "of", "off", "0"), False),
}
_DATE = re.compile(r"([+-]?\d{4,})-(\d{1,2})-(\d{1,2})")
_COMPACT_DATE = re.compile(r"(\d{4})(\d{2})(\d{2})")
_EXACT = Context(prec=200)
_EPOCH = datetime.date(1970, 1, 1).toordinal()


def _each(function: Callable[[str], Any], target: pa.DataType, holder: pa.DataType | None = None) -> Kernel:
    """Return a kernel that converts value by value, through `holder` if Python has no values of the type."""
    built = holder or target

    def kernel(datum: Any) -> Any:
        if isinstance(datum, pa.Scalar):
            text = datum.as_py()
            return pa.scalar(None if text is None else function(text), built).cast(target)
        known: dict[str | None, Any] = {None: None}
        values = []
        for text in datum.to_pylist():
            if text not in known:
                known[text] = function(text)
            values.append(known[text])
        return pa.array(values, built).cast(target)

    return kernel


def _refused(text: str, target: pa.DataType) -> pa.ArrowInvalid:
    return pa.ArrowInvalid(f"Cannot convert the string {text!r} to {target}")


def text_to_boolean(source: pa.DataType, target: pa.DataType) -> Kernel:
    """Parse ``true``, ``t``, ``yes``, ``y``, ``on``, ``1`` and their opposites, in any case."""

    def parse(text: str) -> bool:
        value = _TRUTH.get(text.strip().lower())
        if value is None:
            raise _refused(text, target)
        return value

    return _each(parse, target)


def text_to_integer(source: pa.DataType, target: pa.DataType) -> Kernel:
    """Parse digits with an optional sign; spaces and hexadecimal digits are not accepted."""

    def kernel(datum: Any) -> Any:
        wrong = pc.invert(pc.match_substring_regex(datum, pattern=r"^[+-]?[0-9]+$"))
        if wrong.as_py() if isinstance(wrong, pa.Scalar) else pc.any(wrong).as_py():
            bad = datum if isinstance(datum, pa.Scalar) else datum.filter(wrong)[0]
            raise _refused(bad.as_py(), target)
        return pc.cast(pc.replace_substring_regex(datum, pattern=r"^\+", replacement=""), target)

    return kernel


def text_to_decimal(source: pa.DataType, target: pa.DataType) -> Kernel:
    """Parse a decimal, rounding half away from zero; text without digits is zero if the type has places."""
    limit = 10**target.precision

    def parse(text: str) -> Decimal:
        digits = text.strip()
        if digits in ("", "+", "-", ".") and target.scale:
            return Decimal(0)
        try:
            if "_" in digits:
                raise InvalidOperation
            value = Decimal(digits)
        except InvalidOperation:
            raise _refused(text, target) from None
        if not value.is_finite():
            raise _refused(text, target)
        if value.adjusted() > target.precision:
            raise pa.ArrowInvalid(f"{text} is too large for {target}")
        scaled = value.copy_abs().scaleb(target.scale, _EXACT) if value else Decimal(0)
        whole = int(_EXACT.add(scaled, Decimal("0.5")).to_integral_value("ROUND_FLOOR", _EXACT))
        if whole >= limit:
            raise pa.ArrowInvalid(f"{text} is too large for {target}")
        return Decimal(-whole if value < 0 else whole).scaleb(-target.scale, _EXACT)

    return _each(parse, target)


def text_to_date(source: pa.DataType, target: pa.DataType) -> Kernel:
    """Parse ``2024-01-31``, ``2024-1-31``, ``20240131``, and the day of a timestamp in UTC."""

    def parse(text: str) -> int:
        match = _DATE.fullmatch(text) or _COMPACT_DATE.fullmatch(text)
        if match is not None:
            try:
                return days_of(*(int(part) for part in match.groups()))
            except ValueError:
                raise _refused(text, target) from None
        seconds = parse_timestamp(text, "s")
        if seconds is None:
            raise _refused(text, target)
        return seconds // 86_400

    days = _each(parse, pa.date32(), pa.int32())
    return days if pa.types.is_date32(target) else lambda datum: pc.cast(days(datum), target)


def days_of(year: int, month: int, day: int) -> int:
    """Return the days since the epoch, also for years that Python's dates do not support."""
    cycles, place = divmod(year - 1, 400)
    return datetime.date(place + 1, month, day).toordinal() - _EPOCH + cycles * 146_097


_TIME = re.compile(r"\s*(\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?(?:\s*([AaPp])[Mm])?\s*")


def text_to_time(source: pa.DataType, target: pa.DataType) -> Kernel:
    """Parse ``10:20``, ``10:20:30`` and ``10:20:30.123456``."""
    digits = {"s": 0, "ms": 3, "us": 6, "ns": 9}[target.unit]

    def parse(text: str) -> int:
        match = _TIME.fullmatch(text)
        if match is None:
            raise _refused(text, target)
        hour, minute, second = (int(part or 0) for part in match.groups()[:3])
        if match.group(5):
            if not 1 <= hour <= 12:
                raise _refused(text, target)
            hour = hour % 12 + (12 if match.group(5) in "pP" else 0)
        if hour > 23 or minute > 59 or second > 59:
            raise _refused(text, target)
        fraction = (match.group(4) or "").ljust(9, "0")[:digits]
        return (hour * 3600 + minute * 60 + second) * 10**digits + int(fraction or 0)

    return _each(parse, target, pa.int32() if target.bit_width == 32 else pa.int64())


def text_to_interval(source: pa.DataType, target: pa.DataType) -> Kernel:
    """Parse ``1 day``, ``15 minutes`` and ``1 year 2 months``."""

    def parse(text: str) -> pa.MonthDayNano:
        value = parse_interval(text)
        if value is None:
            raise _refused(text, target)
        return value

    return _each(parse, target)


def printed_date64(source: pa.DataType, target: pa.DataType) -> Kernel:
    """Print date64 values as moments: ``2020-02-29T00:00:00``."""
    return lambda datum: pc.cast(
        pc.strftime(pc.cast(pc.cast(datum, pa.int64()), pa.timestamp("ms")).cast(pa.timestamp("s"), safe=False),
                    format="%Y-%m-%dT%H:%M:%S"),
        target,
    )  # fmt: skip


def printed_duration(source: pa.DataType, target: pa.DataType) -> Kernel:
    """Print durations as ``1 days 0 hours 0 mins 2.000003 secs``."""
    digits = {"s": 0, "ms": 3, "us": 6, "ns": 9}[source.unit]

    def render(ticks: int) -> str:
        sign, ticks = ("-" if ticks < 0 else ""), abs(ticks)
        seconds, fraction = divmod(ticks, 10**digits)
        days, seconds = divmod(seconds, 86_400)
        parts = [days, seconds // 3600, seconds // 60 % 60]
        shown = [f"{sign if part else ''}{part}" for part in parts]
        rest = f"{seconds % 60}" + (f".{fraction:0{digits}d}" if digits else "")
        sign = sign if seconds % 60 or fraction else ""
        return f"{shown[0]} days {shown[1]} hours {shown[2]} mins {sign}{rest} secs"

    def kernel(datum: Any) -> Any:
        values = pc.cast(datum, pa.int64())
        if isinstance(values, pa.Scalar):
            ticks = values.as_py()
            return pa.scalar(None if ticks is None else render(ticks), target)
        return pa.array([None if ticks is None else render(ticks) for ticks in values.to_pylist()], target)

    return kernel


def printed_fixed_decimal(source: pa.DataType, target: pa.DataType) -> Kernel:
    """Print decimals of negative scale with all their digits, where Arrow prints an exponent or fails."""

    def kernel(datum: Any) -> Any:
        def render(value: Decimal) -> str:
            return f"{value:f}" if value else "0" * (1 - source.scale)

        if isinstance(datum, pa.Scalar):
            return pa.scalar(None if not datum.is_valid else render(datum.as_py()), target)
        return pa.array([None if value is None else render(value) for value in datum.to_pylist()], target)

    return kernel
