"""Conversions between Arrow types with the rules of the dialect.

Floats and decimals truncate towards zero when they become integers, decimals round half away from zero, timestamps
lose digits silently, a time zone of the target means that naive values are local times there. What does not convert
raises `pyarrow.ArrowInvalid` (CAST) or becomes null (TRY_CAST).
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .literals import parse_timestamp
from .type_rules import is_binary, is_text, plain_type

__all__ = ["cast_kernel", "strip_wrapping"]

Datum = Any
Kernel = Callable[[Datum], Datum]


def cast_kernel(source: pa.DataType, target: pa.DataType, *, lenient: bool) -> Kernel | None:
    """A function that converts arrays and scalars from `source` to `target`.

    Returns
    -------
    callable or None
        None when the types never convert into each other.
    """
    strict = _strict_kernel(source, target)
    if strict is None or not lenient:
        return strict
    return lambda datum: _lenient(strict, datum, target)


def strip_wrapping(source: pa.DataType) -> Kernel:
    """A function that turns extension, dictionary, view and half-float arrays into what `plain_type` says."""
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


def _decimal_to_integer(source: pa.DataType, target: pa.DataType) -> Kernel:
    options = pc.CastOptions(target, allow_decimal_truncate=True)
    return lambda datum: pc.cast(datum, options=options)


def _decimal_to_decimal(source: pa.DataType, target: pa.DataType) -> Kernel:
    if source.scale <= target.scale:
        return lambda datum: pc.cast(datum, target)
    wide = pa.decimal256(76, source.scale)
    rounding = pc.RoundOptions(target.scale, "half_towards_infinity")
    return lambda datum: pc.cast(pc.round(pc.cast(datum, wide), options=rounding), target)


def _integer_to_decimal(source: pa.DataType, target: pa.DataType) -> Kernel:
    digits = {8: 3, 16: 5, 32: 10, 64: 20}[source.bit_width]
    wide = pa.decimal256(digits + target.scale, target.scale) if digits + target.scale > 38 else None
    holder = wide or pa.decimal128(digits + target.scale, target.scale)
    return lambda datum: pc.cast(pc.cast(datum, holder), target)


def _text_to_decimal(source: pa.DataType, target: pa.DataType) -> Kernel:
    wide = pa.decimal256(76, 38)
    return _then(lambda datum: pc.cast(datum, wide), _decimal_to_decimal(wide, target))


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
    """Dates are midnights of UTC whatever the zone, unlike naive timestamps."""
    naive = pa.timestamp(target.unit)
    return lambda datum: pc.cast(pc.cast(datum, naive), target)


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
    return text.replace("e+", "e").replace("e0", "e").replace("e-0", "e-")


def _render_timestamp(scalar: pa.Scalar) -> str:
    unit, zone = scalar.type.unit, scalar.type.tz
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    seconds, rest = divmod(scalar.value, per_second)
    moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds)
    suffix = ""
    if zone:
        local = pa.scalar(seconds, pa.timestamp("s", zone)).as_py()
        moment = local.replace(tzinfo=None)
        suffix = "Z" if zone == "UTC" else local.isoformat()[19:]
    digits = {"s": 0, "ms": 3, "us": 6, "ns": 9}[unit]
    fraction = f".{rest:0{digits}d}" if rest else ""
    while len(fraction) > 4 and fraction.endswith("000"):
        fraction = fraction[:-3]
    return moment.isoformat() + fraction + suffix


def _fixed_binary_to_binary(source: pa.DataType, target: pa.DataType) -> Kernel:
    return lambda datum: pc.cast(datum, target)


def _is_integer(arrow: pa.DataType) -> bool:
    return bool(pa.types.is_integer(arrow))


_RULES: list[tuple[Callable[[pa.DataType, pa.DataType], bool], Callable[[pa.DataType, pa.DataType], Kernel]]] = [
    (lambda s, t: pa.types.is_floating(s) and _is_integer(t), _float_to_integer),
    (lambda s, t: pa.types.is_decimal(s) and _is_integer(t), _decimal_to_integer),
    (lambda s, t: pa.types.is_decimal(s) and pa.types.is_decimal(t), _decimal_to_decimal),
    (lambda s, t: _is_integer(s) and pa.types.is_decimal(t), _integer_to_decimal),
    (lambda s, t: is_text(s) and pa.types.is_decimal(t), _text_to_decimal),
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
