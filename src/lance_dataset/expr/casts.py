"""Conversions between Arrow types with the rules of the dialect.

Floats and decimals truncate towards zero when they become integers. Decimals round half away from zero. Timestamps lose
digits silently. If the target has a time zone, naive values are local times there. A value that does not convert raises
`pyarrow.ArrowInvalid` (CAST) or becomes null (TRY_CAST).
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.errors import CorruptFileError
from lance_dataset.expr.array_predicates import exceeds_precision, is_comparable_decimal
from lance_dataset.expr.cast_text import (
    printed_date64,
    printed_duration,
    printed_fixed_decimal,
    text_to_boolean,
    text_to_date,
    text_to_decimal,
    text_to_integer,
    text_to_interval,
    text_to_time,
)
from lance_dataset.expr.decimals import rescaled, truncated_to_integers, with_more_places
from lance_dataset.expr.literals import parse_timestamp
from lance_dataset.expr.type_rules import is_binary, is_text, plain_type

__all__ = ["cast_kernel", "strip_wrapping"]

Datum = Any
Kernel = Callable[[Datum], Datum]


def cast_kernel(source: pa.DataType, target: pa.DataType, *, lenient: bool) -> Kernel | None:
    """Return a function that converts arrays and scalars from `source` to `target`.

    Returns
    -------
    callable or None
        None if the types never convert into each other.
    """
    strict = _strict_kernel(source, target)
    if strict is None:
        return None
    if lenient:
        return lambda datum: _lenient(strict, datum, target)
    return _blaming_damage(strict, source) if is_comparable_decimal(source) else strict


def _blaming_damage(strict: Kernel, source: pa.DataType) -> Kernel:
    """Wrap a conversion of decimals so that damaged values get an error of their own."""

    def convert(datum: Datum) -> Datum:
        try:
            return strict(datum)
        except (pa.ArrowInvalid, OverflowError) as error:
            if exceeds_precision(datum):
                raise CorruptFileError(
                    f"a value of type {source} has more than {source.precision} digits, so the data are damaged; "
                    "TRY_CAST gives null for such values"
                ) from error
            raise

    return convert


def strip_wrapping(source: pa.DataType) -> Kernel:
    """Return a function that turns extension, dictionary, view and half-float arrays into their `plain_type`."""
    target = plain_type(source)

    def strip(datum: Datum) -> Datum:
        while isinstance(datum.type, pa.BaseExtensionType):
            datum = datum.storage if isinstance(datum, pa.Array) else datum.value
        if pa.types.is_run_end_encoded(datum.type):
            datum = pc.run_end_decode(datum)
        return datum if datum.type.equals(target) else pc.cast(datum, target)

    return strip


def _lenient(strict: Kernel, datum: Datum, target: pa.DataType) -> Datum:
    try:
        return strict(datum)
    except (pa.ArrowInvalid, OverflowError):
        if isinstance(datum, pa.Scalar):
            return pa.scalar(None, target)
        if len(datum) == 1:
            return pa.nulls(1, target)
        middle = len(datum) // 2
        halves = _lenient(strict, datum[:middle], target), _lenient(strict, datum[middle:], target)
        return pa.concat_arrays(halves)


def _strict_kernel(source: pa.DataType, target: pa.DataType) -> Kernel | None:
    if source.equals(target):
        return lambda datum: datum
    if pa.types.is_null(source):
        return lambda datum: pc.cast(datum, target)
    for applies, make in _RULES:
        if applies(source, target):
            return make(source, target)
    return _arrow_kernel(source, target)


def _arrow_kernel(source: pa.DataType, target: pa.DataType) -> Kernel | None:
    try:
        pc.cast(pa.nulls(0, source), target)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError):
        return None
    return lambda datum: pc.cast(datum, target)


def _then(first: Kernel, second: Kernel) -> Kernel:
    return lambda datum: second(first(datum))


def _float_to_integer(source: pa.DataType, target: pa.DataType) -> Kernel:
    return lambda datum: pc.cast(pc.trunc(datum), target)


def _unsafe(source: pa.DataType, target: pa.DataType) -> Kernel:
    """Convert integers to floats; those that a float cannot hold exactly become a neighbouring float."""
    return lambda datum: pc.cast(datum, target, safe=False)


def _float_to_decimal(source: pa.DataType, target: pa.DataType) -> Kernel:
    """Multiply by the power of ten and round half away from zero, as the reference does."""
    if target.precision > 15 or target.scale > 15 or target.scale < 0:
        return lambda datum: pc.cast(datum, target)
    factor = pa.scalar(10.0**target.scale)
    whole = pa.decimal128(38, 0)

    def convert(datum: Datum) -> Datum:
        scaled = pc.round(pc.multiply(pc.cast(datum, pa.float64()), factor), round_mode="half_towards_infinity")
        limit = 10.0**target.precision
        wrong = pc.invert(pc.and_(pc.less(scaled, limit), pc.greater(scaled, -limit)))
        if pc.any(wrong).as_py() if isinstance(wrong, pa.Array) else wrong.as_py():
            raise pa.ArrowInvalid(f"A number does not fit {target}")
        digits = pc.cast(pc.cast(scaled, pa.int64()), whole)
        if isinstance(digits, pa.Scalar):
            value = digits.as_py()
            return pa.scalar(None if value is None else value.scaleb(-target.scale), target)
        return pc.cast(_rescaled(digits, target.scale), target)

    return convert


def _rescaled(digits: pa.Array, scale: int) -> pa.Array:
    """Reinterpret decimals of scale 0 as counts of units of the last place."""
    return pa.Array.from_buffers(pa.decimal128(38, scale), len(digits), digits.buffers(), offset=digits.offset)


def _through(*steps: pa.DataType) -> Callable[[pa.DataType, pa.DataType], Kernel | None]:
    """Return a conversion by way of other types."""

    def make(source: pa.DataType, target: pa.DataType) -> Kernel | None:
        kernels = []
        for step in (*steps, target):
            kernel = _strict_kernel(source, step)
            if kernel is None:
                return None
            kernels.append(kernel)
            source = step
        return lambda datum: reduce(lambda value, kernel: kernel(value), kernels, datum)

    return make


def _integer_to_binary(source: pa.DataType, target: pa.DataType) -> Kernel:
    """Return the bytes of the integer, lowest first."""
    fixed = pa.binary(source.bit_width // 8)

    def convert(datum: Datum) -> Datum:
        if isinstance(datum, pa.Scalar):
            return convert(pa.repeat(datum, 1))[0]
        raw = pa.Array.from_buffers(fixed, len(datum), datum.buffers(), offset=datum.offset)
        return pc.cast(raw, target)

    return convert


def _to_dictionary(source: pa.DataType, target: pa.DataType) -> Kernel | None:
    values = _strict_kernel(source, target.value_type)
    if values is None:
        return None

    def convert(datum: Datum) -> Datum:
        if isinstance(datum, pa.Scalar):
            return convert(pa.repeat(datum, 1))[0]
        encoded = pc.dictionary_encode(values(datum))
        return pa.DictionaryArray.from_arrays(encoded.indices.cast(target.index_type), encoded.dictionary)

    return convert


def _clock_of(source: pa.DataType, target: pa.DataType) -> Kernel:
    """Return the time of day of a timestamp in local time, without the digits that the target lacks."""
    finest = pa.time64(source.unit) if source.unit in ("us", "ns") else pa.time32(source.unit)
    return lambda datum: pc.cast(pc.cast(pc.local_timestamp(datum), finest), target, safe=False)


def _decimal_to_integer(source: pa.DataType, target: pa.DataType) -> Kernel:
    return lambda datum: truncated_to_integers(datum, target)


def _decimal_to_decimal(source: pa.DataType, target: pa.DataType) -> Kernel:
    if source.scale <= target.scale:
        return lambda datum: with_more_places(datum, target)
    return lambda datum: rescaled(datum, target)


def _integer_to_decimal(source: pa.DataType, target: pa.DataType) -> Kernel:
    digits = {8: 3, 16: 5, 32: 10, 64: 20}[source.bit_width]
    if target.scale < 0:
        return _then_decimal(pa.decimal128(digits, 0), target)
    wide = pa.decimal256(digits + target.scale, target.scale) if digits + target.scale > 38 else None
    holder = wide or pa.decimal128(digits + target.scale, target.scale)
    return lambda datum: pc.cast(pc.cast(datum, holder), target)


def _then_decimal(holder: pa.DataType, target: pa.DataType) -> Kernel:
    rescale = _decimal_to_decimal(holder, target)
    return lambda datum: rescale(pc.cast(datum, holder))


def _text_to_timestamp(source: pa.DataType, target: pa.DataType) -> Kernel:
    unit, naive = target.unit, pa.timestamp(target.unit)

    def parse(text: str | None) -> int | None:
        if text is None:
            return None
        value = parse_timestamp(text, unit)
        if value is None:
            raise pa.ArrowInvalid(f"Cannot convert the string {text!r} to {target}")
        return value

    def convert(datum: Datum) -> Datum:
        if isinstance(datum, pa.Scalar):
            parsed = pa.scalar(parse(datum.as_py()), pa.int64()).cast(naive)
        else:
            parsed = pa.array([parse(text) for text in datum.to_pylist()], pa.int64()).cast(naive)
        return pc.assume_timezone(parsed, target.tz) if target.tz else parsed

    return convert


def _timestamp_to_timestamp(source: pa.DataType, target: pa.DataType) -> Kernel:
    if target.tz and not source.tz:
        unit = pa.timestamp(target.unit)
        return lambda datum: pc.assume_timezone(pc.cast(datum, unit, safe=False), target.tz)
    if _finer(target.unit, source.unit):
        return lambda datum: pc.cast(datum, target)
    return lambda datum: pc.cast(datum, target, safe=False)


def _finer(unit: str, other: str) -> bool:
    order = ("s", "ms", "us", "ns")
    return order.index(unit) > order.index(other)


def _date_to_zoned_timestamp(source: pa.DataType, target: pa.DataType) -> Kernel:
    """Convert dates to midnight in local time, as naive timestamps are."""
    naive = pa.timestamp(target.unit)
    return lambda datum: pc.assume_timezone(
        pc.cast(datum, naive), target.tz, ambiguous="earliest", nonexistent="latest"
    )


def _date_to_integer(source: pa.DataType, target: pa.DataType) -> Kernel:
    physical = pa.int32() if pa.types.is_date32(source) else pa.int64()
    return lambda datum: pc.cast(pc.cast(datum, physical), target)


def _integer_to_date(source: pa.DataType, target: pa.DataType) -> Kernel:
    physical = pa.int32() if pa.types.is_date32(target) else pa.int64()
    return lambda datum: pc.cast(pc.cast(datum, physical), target)


def _via_int64(source: pa.DataType, target: pa.DataType) -> Kernel:
    return lambda datum: pc.cast(pc.cast(datum, pa.int64()), target)


def _to_text(render: Callable[[Any], str]) -> Callable[[pa.DataType, pa.DataType], Kernel]:
    def make(source: pa.DataType, target: pa.DataType) -> Kernel:
        def convert(datum: Datum) -> Datum:
            if isinstance(datum, pa.Scalar):
                return pa.scalar(None if not datum.is_valid else render(datum), target)
            return pa.array([render(item) if item.is_valid else None for item in datum], target)

        return convert

    return make


def _render_float(scalar: pa.Scalar) -> str:
    value = scalar.as_py()
    if value != value:
        return "NaN"
    if pa.types.is_float32(scalar.type):
        import numpy as np

        text = str(np.float32(value))
    else:
        text = repr(value)
    if 1e-5 <= abs(value) < 1e-4:
        return f"{Decimal(text):f}"
    return text.replace("e+", "e").replace("e0", "e").replace("e-0", "e-")


def _render_timestamp(scalar: pa.Scalar) -> str:
    unit, zone = scalar.type.unit, scalar.type.tz
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    seconds, rest = divmod(scalar.value, per_second)
    try:
        moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds)
        local = pa.scalar(seconds, pa.timestamp("s", zone)).as_py() if zone else None
    except (OverflowError, ValueError):
        raise pa.ArrowInvalid(f"The timestamp {seconds} s since 1970 is outside the years 1 to 9999") from None
    suffix = ""
    if local is not None:
        moment = local.replace(tzinfo=None)
        suffix = "Z" if zone == "UTC" else local.isoformat()[19:]
    digits = {"s": 0, "ms": 3, "us": 6, "ns": 9}[unit]
    fraction = f".{rest:0{digits}d}" if rest else ""
    while len(fraction) > 4 and fraction.endswith("000"):
        fraction = fraction[:-3]
    return moment.isoformat() + fraction + suffix


def _fixed_binary_to_binary(source: pa.DataType, target: pa.DataType) -> Kernel:
    return lambda datum: pc.cast(datum, target)


def _time_to_integer(source: pa.DataType, target: pa.DataType) -> Kernel:
    physical = pa.int32() if source.bit_width == 32 else pa.int64()
    return lambda datum: pc.cast(pc.cast(datum, physical), target)


def _counts(arrow: pa.DataType) -> bool:
    """Return True if values are counts of a unit of time."""
    return bool(pa.types.is_timestamp(arrow) or pa.types.is_duration(arrow))


def _is_fraction(arrow: pa.DataType) -> bool:
    return bool(pa.types.is_floating(arrow) or pa.types.is_decimal(arrow))


def _is_integer(arrow: pa.DataType) -> bool:
    return bool(pa.types.is_integer(arrow))


_Makes = Callable[[pa.DataType, pa.DataType], "Kernel | None"]
_RULES: list[tuple[Callable[[pa.DataType, pa.DataType], bool], _Makes]] = [
    (lambda s, t: pa.types.is_dictionary(t), _to_dictionary),
    (lambda s, t: _is_integer(s) and pa.types.is_floating(t), _unsafe),
    (lambda s, t: pa.types.is_boolean(s) and pa.types.is_float16(t), _through(pa.float32())),
    (lambda s, t: _is_integer(s) and (pa.types.is_binary(t) or pa.types.is_large_binary(t)), _integer_to_binary),
    (lambda s, t: is_text(s) and _is_integer(t), text_to_integer),
    (lambda s, t: is_text(s) and pa.types.is_boolean(t), text_to_boolean),
    (lambda s, t: is_text(s) and pa.types.is_date(t), text_to_date),
    (lambda s, t: is_text(s) and pa.types.is_time(t), text_to_time),
    (lambda s, t: is_text(s) and pa.types.is_interval(t), text_to_interval),
    (lambda s, t: pa.types.is_floating(s) and pa.types.is_decimal(t), _float_to_decimal),
    (lambda s, t: pa.types.is_decimal(s) and pa.types.is_float32(t), _through(pa.float64())),
    (lambda s, t: _counts(s) and (pa.types.is_floating(t) or pa.types.is_decimal(t)), _through(pa.int64())),
    (lambda s, t: _is_fraction(s) and (pa.types.is_timestamp(t) or pa.types.is_duration(t)), _through(pa.int64())),
    (lambda s, t: pa.types.is_time(s) and _is_integer(t) and t.bit_width == 64, _time_to_integer),
    (lambda s, t: pa.types.is_duration(s) and pa.types.is_duration(t), _unsafe),
    (lambda s, t: pa.types.is_time(s) and pa.types.is_time(t), _unsafe),
    (lambda s, t: pa.types.is_timestamp(s) and pa.types.is_time(t), _clock_of),
    (lambda s, t: pa.types.is_date64(s) and is_text(t), printed_date64),
    (lambda s, t: pa.types.is_duration(s) and is_text(t), printed_duration),
    (lambda s, t: pa.types.is_decimal(s) and s.scale < 0 and is_text(t), printed_fixed_decimal),
    (lambda s, t: pa.types.is_floating(s) and _is_integer(t), _float_to_integer),
    (lambda s, t: pa.types.is_decimal(s) and _is_integer(t), _decimal_to_integer),
    (lambda s, t: pa.types.is_decimal(s) and pa.types.is_decimal(t), _decimal_to_decimal),
    (lambda s, t: _is_integer(s) and pa.types.is_decimal(t), _integer_to_decimal),
    (lambda s, t: is_text(s) and pa.types.is_decimal(t), text_to_decimal),
    (lambda s, t: is_text(s) and pa.types.is_timestamp(t), _text_to_timestamp),
    (lambda s, t: pa.types.is_timestamp(s) and pa.types.is_timestamp(t), _timestamp_to_timestamp),
    (lambda s, t: pa.types.is_date(s) and pa.types.is_timestamp(t) and t.tz is not None, _date_to_zoned_timestamp),
    (lambda s, t: pa.types.is_date(s) and _is_integer(t), _date_to_integer),
    (lambda s, t: _is_integer(s) and pa.types.is_date(t), _integer_to_date),
    (lambda s, t: _is_integer(s) and (pa.types.is_timestamp(t) or pa.types.is_duration(t)), _via_int64),
    (lambda s, t: (pa.types.is_timestamp(s) or pa.types.is_duration(s)) and _is_integer(t), _via_int64),
    (lambda s, t: pa.types.is_floating(s) and is_text(t), _to_text(_render_float)),
    (lambda s, t: pa.types.is_timestamp(s) and is_text(t), _to_text(_render_timestamp)),
    (lambda s, t: pa.types.is_fixed_size_binary(s) and is_binary(t), _fixed_binary_to_binary),
]
