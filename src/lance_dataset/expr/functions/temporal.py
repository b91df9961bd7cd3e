"""Functions of dates, times and timestamps. Values with a time zone are taken apart in local time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.expr.function import Function, Kind
from lance_dataset.expr.interval_arithmetic import PER_SECOND, months_later
from lance_dataset.expr.rowwise import constant
from lance_dataset.expr.type_rules import is_text

__all__ = ["ALIASES", "FUNCTIONS", "moment_types"]

_DAY = 86_400
_NS = pa.timestamp("ns")


def moment_types(
    name: str, *places: int, times: bool = False, durations: bool = False, fine: bool = False
) -> Callable[[Sequence[pa.DataType]], Sequence[pa.DataType]]:
    """Return a coercion that accepts dates and timestamps; strings become timestamps of nanoseconds.

    Parameters
    ----------
    name
        Name of the function, for the message.
    places
        Positions of the arguments to convert.
    times, durations
        True if times of the day, and durations, are accepted as well.
    fine
        True if dates and values with a time zone become timestamps of nanoseconds.
    """

    def coercion(types: Sequence[pa.DataType]) -> list[pa.DataType]:
        result = list(types)
        for place in places:
            if place < len(types):
                result[place] = one(types[place])
        return result

    def one(arrow: pa.DataType) -> pa.DataType:
        if is_text(arrow) or pa.types.is_null(arrow):
            return _NS
        if pa.types.is_date(arrow):
            return _NS if fine else arrow
        if pa.types.is_timestamp(arrow):
            return pa.timestamp("ns", arrow.tz) if fine and arrow.tz else arrow
        if (times and pa.types.is_time(arrow)) or (durations and pa.types.is_duration(arrow)):
            return arrow
        raise pa.ArrowInvalid(f"Function {name!r} needs a date or timestamp, not {arrow}")

    return coercion


def _timestamp(value: Any) -> Any:
    """Convert dates to timestamps; timestamps are unchanged."""
    return value if pa.types.is_timestamp(value.type) else pc.cast(value, pa.timestamp("us"))


def _ticks(value: Any) -> Any:
    """Convert times, durations and timestamps to counts of their unit."""
    if value.type.bit_width == 32:
        value = pc.cast(value, pa.int32())
    return pc.cast(value, pa.int64())


# -- parts ---------------------------------------------------------------------------------------------------------


def _subseconds(unit: str) -> Callable[[Any], Any]:
    """Return a function for the seconds of the minute including their fraction, in `unit`."""
    factor = PER_SECOND[unit]

    def part(value: Any) -> Any:
        moment = _timestamp(value)
        fraction = pc.subsecond(moment)
        whole = pc.multiply(pc.second(moment), factor)
        return pc.add(whole, pc.cast(pc.trunc(pc.round(pc.multiply(fraction, float(factor)), 3)), pa.int64()))

    return part


def _epoch(value: Any) -> Any:
    moment = value if pa.types.is_time(value.type) or pa.types.is_duration(value.type) else _timestamp(value)
    seconds = pc.divide(pc.cast(_ticks(moment), pa.float64(), safe=False), float(PER_SECOND[moment.type.unit]))
    return pc.trunc(seconds) if pa.types.is_duration(value.type) else seconds


_PARTS: dict[str, Callable[[Any], Any]] = {
    "year": pc.year,
    "quarter": pc.quarter,
    "month": pc.month,
    "week": pc.iso_week,
    "day": pc.day,
    "doy": pc.day_of_year,
    "dow": lambda value: pc.day_of_week(value, week_start=7),
    "isodow": lambda value: pc.day_of_week(value, count_from_zero=False),
    "isoyear": pc.iso_year,
    "hour": lambda value: pc.hour(_timestamp(value)),
    "minute": lambda value: pc.minute(_timestamp(value)),
    "second": lambda value: pc.second(_timestamp(value)),
    "millisecond": _subseconds("ms"),
    "microsecond": _subseconds("us"),
    "nanosecond": _subseconds("ns"),
    "epoch": _epoch,
}
_OTHER_NAMES = {
    "y": "year",
    "yr": "year",
    "qtr": "quarter",
    "mon": "month",
    "w": "week",
    "d": "day",
    "h": "hour",
    "hr": "hour",
    "m": "minute",
    "min": "minute",
    "s": "second",
    "sec": "second",
    "ms": "millisecond",
    "msec": "millisecond",
    "us": "microsecond",
    "usec": "microsecond",
    "ns": "nanosecond",
    "nsec": "nanosecond",
}
_WIDE_PARTS = {"nanosecond": pa.int64(), "epoch": pa.float64()}
#: Units of times of the day and durations, as (seconds, number of units until the next larger unit begins).
_CLOCK = {
    "week": (7 * _DAY, 0), "day": (_DAY, 0), "hour": (3600, 24), "minute": (60, 60), "second": (1, 60),
    "millisecond": (1, 60), "microsecond": (1, 60), "nanosecond": (1, 60),
}  # fmt: skip
_SUBUNITS = {"millisecond": 10**3, "microsecond": 10**6, "nanosecond": 10**9}


def _unit_name(datum: Any, function: str, known: Any) -> str:
    name = constant(datum)
    if name is None:
        raise pa.ArrowInvalid(f"{function} needs a constant string as its first argument")
    unit = name.lower()
    for candidate in (unit, unit.removesuffix("s"), _OTHER_NAMES.get(unit), _OTHER_NAMES.get(unit.removesuffix("s"))):
        if candidate in known:
            return str(candidate)
    raise pa.ArrowInvalid(f"{function} does not know {name!r}; it knows {', '.join(known)}")


def _date_part(part: Any, value: Any) -> Any:
    name = _unit_name(part, "date_part", _PARTS)
    result = _WIDE_PARTS.get(name, pa.int32())
    if (pa.types.is_time(value.type) or pa.types.is_duration(value.type)) and name != "epoch":
        return pc.cast(_clock_part(name, value), result)
    return pc.cast(_PARTS[name](value), result)


def _clock_part(name: str, value: Any) -> Any:
    """Return a part of a time of the day, or the total number of a unit in a duration."""
    duration = pa.types.is_duration(value.type)
    if name not in _CLOCK or (not duration and name in ("week", "day")):
        raise pa.ArrowInvalid(f"date_part has no {name!r} of values of type {value.type}")
    seconds, cycle = _CLOCK[name]
    per_second, ticks = PER_SECOND[value.type.unit], _ticks(value)
    if not duration and cycle:
        ticks = _modulo(ticks, seconds * cycle * per_second)
    finer = _SUBUNITS.get(name)
    if finer is None:
        return pc.divide(ticks, seconds * per_second)
    if finer >= per_second:
        return pc.multiply(ticks, finer // per_second)
    return pc.divide(ticks, per_second // finer)


def _modulo(ticks: Any, divisor: int) -> Any:
    return pc.subtract(ticks, pc.multiply(pc.divide(ticks, divisor), divisor))


# -- truncation ----------------------------------------------------------------------------------------------------

_TRUNC_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond")
_CLOCK_UNITS = {"hour": 3600 * 10**9, "minute": 60 * 10**9, "second": 10**9, "millisecond": 10**6, "microsecond": 1000}


def _date_trunc(part: Any, value: Any) -> Any:
    unit = _unit_name(part, "date_trunc", _TRUNC_UNITS)
    if pa.types.is_time(value.type):
        if unit not in _CLOCK_UNITS:
            raise pa.ArrowInvalid(f"date_trunc of times knows {', '.join(_CLOCK_UNITS)}, not {unit!r}")
        return _binned(value, max(_CLOCK_UNITS[unit] * PER_SECOND[value.type.unit] // 10**9, 1), 0)
    moment = _timestamp(value)
    if unit in ("millisecond", "microsecond") and moment.type.unit in ("s", "ms" if unit == "millisecond" else "us"):
        return moment
    return pc.floor_temporal(moment, unit=unit)


def _array(datum: Any) -> tuple[pa.Array, bool]:
    """Return a datum as an array, and whether it was a scalar."""
    scalar = isinstance(datum, pa.Scalar)
    return (pa.repeat(datum, 1) if scalar else datum), scalar


def _on_ticks(value: Any, function: Callable[[Any], Any]) -> Any:
    """Apply a function of NumPy integers to the unit counts of times or timestamps."""
    array, scalar = _array(value)
    missing = array.is_null().to_numpy(zero_copy_only=False)
    ticks = pc.fill_null(_ticks(array), 0).to_numpy()
    result = pa.array(function(ticks), pa.int64(), mask=missing)
    if value.type.bit_width == 32:
        result = pc.cast(result, pa.int32())
    result = pc.cast(result, value.type)
    return result[0] if scalar else result


def _binned(value: Any, width: int, start: int) -> Any:
    return _on_ticks(value, lambda ticks: (ticks - start) // width * width + start)


def _date_bin(interval: Any, value: Any, origin: Any = None) -> Any:
    if isinstance(interval, pa.Scalar) and not interval.is_valid:
        missing = pa.scalar(None, value.type)
        return missing if isinstance(value, pa.Scalar) else pa.nulls(len(value), value.type)
    step = constant(interval)
    if step is None:
        raise pa.ArrowInvalid("date_bin needs a constant interval")
    if origin is not None and (constant(origin) is None or not isinstance(origin, pa.Scalar)):
        raise pa.ArrowInvalid("date_bin needs a constant timestamp as its origin")
    width = step.days * _DAY * 10**9 + step.nanoseconds
    if bool(step.months) == bool(width):
        raise pa.ArrowInvalid("date_bin needs an interval of months, or one of days and smaller units, not of zero")
    start = 0 if origin is None else _nanoseconds(origin)
    if pa.types.is_time(value.type):
        if step.months or abs(width) >= _DAY * 10**9:
            raise pa.ArrowInvalid("date_bin of times needs an interval of less than a day")
    elif step.months:
        return _month_bin(value, abs(step.months), start)
    return _width_bin(value, width, start)


def _nanoseconds(origin: pa.Scalar) -> int:
    ticks = _ticks(origin).as_py()
    return int(ticks) * (10**9 // PER_SECOND[origin.type.unit])


def _width_bin(value: Any, width: int, start: int) -> Any:
    """Return bins of `width` nanoseconds, one of which begins at `start`; bins of negative width end nearest to it."""
    per_unit = 10**9 // PER_SECOND[value.type.unit]
    if width > 0 and width % per_unit == 0 and start % per_unit == 0:
        return _binned(value, width // per_unit, start // per_unit)

    def bin_of(tick: int) -> int:
        distance = tick * per_unit - start
        number = distance // width if width > 0 else _towards_zero(distance, width)
        return _towards_zero(number * width + start, per_unit)

    def exactly(ticks: Any) -> Any:
        return np.array([bin_of(tick) for tick in ticks.tolist()], np.int64)

    return _on_ticks(value, exactly)


def _towards_zero(number: int, divisor: int) -> int:
    quotient = abs(number) // abs(divisor)
    return quotient if (number < 0) == (divisor < 0) else -quotient


def _month_bin(value: Any, months: int, start: int) -> Any:
    """Return bins of `months` months, one of which begins at `start` (nanoseconds since the epoch)."""
    per_second = PER_SECOND[value.type.unit]
    per_day = _DAY * per_second
    first_day, first_rest = divmod(start // (10**9 // per_second), per_day)
    first = np.int64(first_day).astype("M8[D]").astype("M8[M]").astype(np.int64)

    def begin(number: Any) -> Any:
        days = months_later(np.full(len(number), first_day, np.int64), number * months)
        return days * per_day + first_rest

    def bins(ticks: Any) -> Any:
        month = (ticks // per_day).astype("M8[D]").astype("M8[M]").astype(np.int64)
        number = (month - first) // months
        starts = begin(number)
        return np.where(starts > ticks, begin(number - 1), starts)

    return _on_ticks(value, bins)


FUNCTIONS = [
    Function(
        "date_part",
        (Kind.TEXT, Kind.ANY),
        _date_part,
        coercion=moment_types("date_part", 1, times=True, durations=True),
    ),
    Function(
        "date_trunc",
        (Kind.TEXT, Kind.ANY),
        _date_trunc,
        coercion=lambda types: moment_types("date_trunc", 1, times=True)(
            [types[0], _NS if pa.types.is_date(types[1]) else types[1]]
        ),
    ),
    Function(
        "date_bin",
        (Kind.INTERVAL, Kind.ANY, Kind.ANY),
        _date_bin,
        optional=1,
        coercion=moment_types("date_bin", 1, 2, times=True, fine=True),
    ),
]
ALIASES = {"datepart": "date_part", "datetrunc": "date_trunc"}
