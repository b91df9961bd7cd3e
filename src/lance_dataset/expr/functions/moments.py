"""Functions that build dates, times and timestamps from other values, and format them as text."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.expr.cast_text import days_of
from lance_dataset.expr.casts import cast_kernel
from lance_dataset.expr.function import Function, Kind
from lance_dataset.expr.functions.temporal import moment_types
from lance_dataset.expr.functions.time_formats import Moment, format_moment, parse_moment
from lance_dataset.expr.interval_arithmetic import PER_SECOND
from lance_dataset.expr.rowwise import constant, rowwise
from lance_dataset.expr.type_rules import is_text

__all__ = ["ALIASES", "FUNCTIONS"]

_ANY, _TEXT = Kind.ANY, Kind.TEXT
_ENDLESS = 1 << 62
_CONVERTIBLE = (
    *(pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_date, pa.types.is_timestamp),
    *(pa.types.is_null, is_text),
)


def _converted(value: Any, target: pa.DataType, name: str) -> Any:
    convert = cast_kernel(value.type, target, lenient=False)
    if convert is None or not any(test(value.type) for test in _CONVERTIBLE):
        raise pa.ArrowInvalid(f"{name} does not take values of type {value.type}")
    return convert(value)


def _parsed(value: Any, formats: Sequence[Any], name: str) -> list[Moment | None]:
    """Parse texts with the first of the formats that fits; null for null."""
    if not is_text(value.type):
        raise pa.ArrowInvalid(f"{name} takes a format for strings only, not for {value.type}")
    columns = [repeat(f.as_py()) if isinstance(f, pa.Scalar) else f.to_pylist() for f in formats]
    single = all(isinstance(datum, pa.Scalar) for datum in (value, *formats))
    texts = (
        ([value.as_py()] if single else repeat(value.as_py())) if isinstance(value, pa.Scalar) else value.to_pylist()
    )
    return [_one_parsed(row[0], row[1:], name) for row in zip(texts, *columns, strict=False)]


def _one_parsed(text: str | None, formats: tuple[str | None, ...], name: str) -> Moment | None:
    if text is None:
        return None
    for pattern in formats:
        moment = None if pattern is None else parse_moment(text, pattern)
        if moment is not None and (moment.date is not None or name == "to_time"):
            return moment
    raise pa.ArrowInvalid(f"{name} cannot read {text!r} in the format(s) {', '.join(map(repr, formats))}")


def _built(values: list[int | None], holder: pa.DataType, target: pa.DataType, value: Any, formats: Any) -> Any:
    result = pa.array(values, holder).cast(target)
    return result[0] if all(isinstance(datum, pa.Scalar) for datum in (value, *formats)) else result


def _to_timestamp(name: str, unit: str | None) -> Callable[..., Any]:
    """Parse strings, count integers in `unit` (None: seconds, converted to nanoseconds), and convert timestamps."""
    target = pa.timestamp(unit or "ns")
    digits = PER_SECOND[target.unit]

    def kernel(value: Any, *formats: Any) -> Any:
        if formats:
            moments = _parsed(value, formats, name)
            ticks = [None if m is None else _utc(m) * digits + m.nanosecond * digits // 10**9 for m in moments]
            return _built(ticks, pa.int64(), target, value, formats)
        if unit is None and pa.types.is_integer(value.type):
            return pc.cast(_converted(value, pa.timestamp("s"), name), target)
        if unit is None and (pa.types.is_floating(value.type) or pa.types.is_decimal(value.type)):
            return _from_seconds(pc.cast(value, pa.float64()))
        return _converted(value, target, name)

    return kernel


def _utc(moment: Moment) -> int:
    return moment.epoch() - (moment.offset or 0)


def _from_seconds(value: Any) -> Any:
    """Convert seconds to timestamps of nanoseconds, clamping values outside the range; NaN becomes the epoch."""
    if isinstance(value, pa.Scalar):
        return _from_seconds(pa.repeat(value, 1))[0]
    missing = value.is_null().to_numpy(zero_copy_only=False)
    with np.errstate(all="ignore"):
        scaled = np.nan_to_num(pc.fill_null(value, 0.0).to_numpy(zero_copy_only=False) * 1e9, nan=0.0)
        inside = np.abs(scaled) < 2.0**63
        ticks = np.where(inside, scaled, 0.0).astype(np.int64)
    ticks[~inside] = np.where(scaled[~inside] > 0, 2**63 - 1, -(2**63))
    return pa.array(ticks, pa.int64(), mask=missing).cast(pa.timestamp("ns"))


def _to_date(value: Any, *formats: Any) -> Any:
    if formats:
        moments = _parsed(value, formats, "to_date")
        return _built(
            [None if m is None else _utc(m) // 86_400 for m in moments], pa.int32(), pa.date32(), value, formats
        )
    if pa.types.is_floating(value.type) or pa.types.is_decimal(value.type):
        value = _converted(value, pa.int64(), "to_date")
    return _converted(value, pa.date32(), "to_date")


def _to_time(value: Any, *formats: Any) -> Any:
    target = pa.time64("ns")
    if pa.types.is_timestamp(value.type) or pa.types.is_null(value.type):
        return _converted(value, target, "to_time")
    if not is_text(value.type):
        raise pa.ArrowInvalid(f"to_time does not take values of type {value.type}")
    moments = _parsed(value, formats or [pa.scalar(f) for f in ("%H:%M:%S%.f", "%H:%M:%S", "%H:%M")], "to_time")
    ticks = [None if m is None else _clock(m) for m in moments]
    return _built(ticks, pa.int64(), target, value, formats)


def _clock(moment: Moment) -> int:
    if moment.second is None:
        raise pa.ArrowInvalid("to_time needs a format with hours and minutes")
    return moment.second * 10**9 + moment.nanosecond


def _to_unixtime(value: Any, *formats: Any) -> Any:
    if formats:
        moments = _parsed(value, formats, "to_unixtime")
        return _built([None if m is None else _utc(m) for m in moments], pa.int64(), pa.int64(), value, formats)
    if pa.types.is_decimal(value.type):
        raise pa.ArrowInvalid(f"to_unixtime does not take values of type {value.type}")
    if pa.types.is_integer(value.type) or pa.types.is_floating(value.type):
        return _converted(value, pa.int64(), "to_unixtime")
    return pc.cast(_converted(value, pa.timestamp("s"), "to_unixtime"), pa.int64())


def _from_unixtime(value: Any, zone: Any = None) -> Any:
    if zone is None:
        return pc.cast(value, pa.timestamp("s"))
    name = constant(zone)
    if name is None:
        raise pa.ArrowInvalid("from_unixtime needs a constant time zone")
    return pc.cast(pc.cast(value, pa.timestamp("s", "UTC")), pa.timestamp("s", name))


def _to_local_time(value: Any) -> Any:
    return pc.local_timestamp(value) if value.type.tz else value


# -- from numbers --------------------------------------------------------------------------------------------------


def _numbers(types: Sequence[pa.DataType]) -> list[pa.DataType]:
    for arrow in types:
        if not (pa.types.is_integer(arrow) or is_text(arrow) or pa.types.is_null(arrow)):
            raise pa.ArrowInvalid(f"Dates and times are built from integers, not from {arrow}")
    return [pa.int64()] * len(types)


def _make_date(year: int, month: int, day: int) -> int:
    try:
        return days_of(year, month, day)
    except (ValueError, OverflowError):
        raise pa.ArrowInvalid(f"Year {year}, month {month}, day {day} is not a valid date") from None


def _make_time(hour: int, minute: int, second: int) -> int:
    if not (0 <= hour < 24 and 0 <= minute < 60 and 0 <= second < 60):
        raise pa.ArrowInvalid(f"Hour {hour}, minute {minute}, second {second} is not a valid time")
    return hour * 3600 + minute * 60 + second


def _then_cast(kernel: Callable[..., Any], target: pa.DataType) -> Callable[..., Any]:
    return lambda *data: pc.cast(kernel(*data), target)


# -- to text -------------------------------------------------------------------------------------------------------


def _to_char(value: Any, pattern: Any) -> Any:
    if pa.types.is_null(pattern.type):
        missing = pa.scalar(None, pa.string())
        return missing if isinstance(value, pa.Scalar) else pa.nulls(len(value), pa.string())
    if not is_text(pattern.type):
        return _converted(value, pa.string(), "to_char")
    if pa.types.is_duration(value.type):
        printed = cast_kernel(value.type, pa.string(), lenient=False)
        if printed is None:
            raise pa.ArrowInvalid(f"to_char does not take {value.type}")
        return printed(value)
    both_scalar = isinstance(value, pa.Scalar) and isinstance(pattern, pa.Scalar)
    length = len(pattern) if isinstance(value, pa.Scalar) and not both_scalar else 1
    array = pa.repeat(value, length) if isinstance(value, pa.Scalar) else value
    patterns = repeat(pattern.as_py()) if isinstance(pattern, pa.Scalar) else pattern.to_pylist()
    texts = [
        None if moment is None or text is None else format_moment(moment, text)
        for moment, text in zip(_moments(array), patterns, strict=False)
    ]
    return pa.scalar(texts[0], pa.string()) if both_scalar else pa.array(texts, pa.string())


def _moments(array: pa.Array) -> list[Moment | None]:
    """Convert dates, times and timestamps of any unit to moments of local time."""
    arrow = array.type
    if pa.types.is_date(arrow):
        days = pc.cast(pc.cast(array, pa.date32()), pa.int32()).to_pylist()
        return [None if day is None else Moment(_day(day), 0) for day in days]
    per_second = PER_SECOND[arrow.unit]
    if pa.types.is_time(arrow):
        counts = pc.cast(pc.cast(array, pa.int32()) if arrow.bit_width == 32 else array, pa.int64()).to_pylist()
        return [None if count is None else _moment(None, count, per_second, None) for count in counts]
    local = pc.cast(pc.local_timestamp(array), pa.int64()).to_pylist() if arrow.tz else None
    ticks = pc.cast(array, pa.int64()).to_pylist()
    if local is None:
        return [None if t is None else _moment(t // (86_400 * per_second), t, per_second, None) for t in ticks]
    return [
        None if t is None else _moment(here // (86_400 * per_second), here, per_second, (here - t) // per_second)
        for t, here in zip(ticks, local, strict=True)
    ]


def _moment(day: int | None, ticks: int, per_second: int, offset: int | None) -> Moment:
    seconds, fraction = divmod(ticks, per_second)
    return Moment(None if day is None else _day(day), seconds % 86_400, fraction * (10**9 // per_second), offset)


def _day(days: int) -> datetime.date:
    try:
        return datetime.date.fromordinal(days + 719_163)
    except (ValueError, OverflowError):
        raise pa.ArrowInvalid("to_char takes dates of the years 1 to 9999") from None


_TIMESTAMPS = {
    "to_timestamp": None, "to_timestamp_seconds": "s", "to_timestamp_millis": "ms", "to_timestamp_micros": "us",
    "to_timestamp_nanos": "ns",
}  # fmt: skip
FUNCTIONS = [
    *(
        Function(name, (_ANY, _TEXT), _to_timestamp(name, unit), optional=1, variadic=True)
        for name, unit in _TIMESTAMPS.items()
    ),
    Function("to_date", (_ANY, _TEXT), _to_date, optional=1, variadic=True),
    Function("to_time", (_ANY, _TEXT), _to_time, optional=1, variadic=True),
    Function("to_unixtime", (_ANY, _TEXT), _to_unixtime, optional=1, variadic=True),
    Function("from_unixtime", (Kind.INTEGER, _TEXT), _from_unixtime, optional=1),
    Function(
        "to_local_time",
        (Kind.TEMPORAL,),
        _to_local_time,
        coercion=lambda types: [pa.timestamp("us") if pa.types.is_date(types[0]) else types[0]],
    ),
    Function("make_date", (_ANY,) * 3, _then_cast(rowwise(_make_date, pa.int32()), pa.date32()), coercion=_numbers),
    Function("make_time", (_ANY,) * 3, _then_cast(rowwise(_make_time, pa.int32()), pa.time32("s")), coercion=_numbers),
    Function("to_char", (_ANY, _ANY), _to_char, coercion=moment_types("to_char", 0, times=True, durations=True)),
]
ALIASES = {"date_format": "to_char"}
