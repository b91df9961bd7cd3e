"""Functions of dates and timestamps. Values with a time zone are taken apart in local time."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.query.expr.casts import cast_kernel

from .registry import Function, Kind
from .rowwise import constant, rowwise

__all__ = ["ALIASES", "FUNCTIONS"]

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def _timestamp(value: Any, unit: str | None = None) -> Any:
    """Dates as timestamps; timestamps unchanged unless a unit is wanted."""
    if pa.types.is_timestamp(value.type):
        return value if unit is None else pc.cast(value, pa.timestamp(unit, value.type.tz), safe=False)
    return pc.cast(value, pa.timestamp(unit or "us"))


def _subseconds(unit: str) -> Callable[[Any], Any]:
    """The seconds part of the minute including its fraction, in `unit`."""
    factor = _PER_SECOND[unit]

    def part(value: Any) -> Any:
        moment = _timestamp(value)
        fraction = pc.subsecond(moment)
        whole = pc.multiply(pc.second(moment), factor)
        return pc.add(whole, pc.cast(pc.trunc(pc.round(pc.multiply(fraction, float(factor)), 3)), pa.int64()))

    return part


def _epoch(value: Any) -> Any:
    moment = _timestamp(value)
    factor = float(_PER_SECOND[moment.type.unit])
    return pc.divide(pc.cast(pc.cast(moment, pa.int64()), pa.float64(), safe=False), factor)


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
_WIDE_PARTS = {"nanosecond": pa.int64(), "epoch": pa.float64()}


def _unit_name(datum: Any, function: str, known: Any) -> str:
    name = constant(datum)
    if name is None:
        raise pa.ArrowInvalid(f"{function} needs a constant string as its first argument")
    unit = name.lower()
    unit = unit if unit in known else unit.removesuffix("s")
    if unit not in known:
        raise pa.ArrowInvalid(f"{function} does not know {name!r}; it knows {', '.join(known)}")
    return unit


def _date_part(part: Any, value: Any) -> Any:
    name = _unit_name(part, "date_part", _PARTS)
    return pc.cast(_PARTS[name](value), _WIDE_PARTS.get(name, pa.int32()))


_TRUNC_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond")


def _date_trunc(part: Any, value: Any) -> Any:
    unit = _unit_name(part, "date_trunc", _TRUNC_UNITS)
    moment = _timestamp(value)
    if unit in ("millisecond", "microsecond") and moment.type.unit in ("s", "ms" if unit == "millisecond" else "us"):
        return moment
    return pc.floor_temporal(moment, unit=unit)


def _date_bin(interval: Any, value: Any, origin: Any = None) -> Any:
    step = constant(interval)
    if step is None or step.months:
        raise pa.ArrowInvalid("date_bin needs a constant interval of days and smaller units")
    moment = _timestamp(value)
    per_unit = 10**9 // _PER_SECOND[moment.type.unit]
    width = (step.days * 86_400 * 10**9 + step.nanoseconds) // per_unit
    if width <= 0:
        raise pa.ArrowInvalid("date_bin needs an interval that is positive and not finer than the timestamp")
    start = 0 if origin is None else _timestamp(origin, moment.type.unit).cast(pa.int64()).as_py()
    return rowwise(lambda ticks: (ticks - start) // width * width + start, pa.int64())(
        pc.cast(moment, pa.int64())
    ).cast(moment.type)


def _to_timestamp(unit: str) -> Callable[[Any], Any]:
    """Strings are parsed, integers count in `unit`, dates and timestamps are converted."""

    def kernel(value: Any) -> Any:
        seconds = pa.types.is_integer(value.type) and unit == "default"
        target = pa.timestamp("s" if seconds else "us" if unit == "default" else unit)
        if pa.types.is_floating(value.type):
            value = pc.multiply(pc.cast(value, pa.float64()), 1e6 if unit == "default" else 1.0)
            value = pc.cast(pc.trunc(value), pa.int64())
        convert = cast_kernel(value.type, target, lenient=False)
        if convert is None:
            raise pa.ArrowInvalid(f"to_timestamp does not take {value.type}")
        return convert(value)

    return kernel


def _to_date(value: Any) -> Any:
    convert = cast_kernel(value.type, pa.date32(), lenient=False)
    if convert is None:
        raise pa.ArrowInvalid(f"to_date does not take {value.type}")
    return convert(value)


def _to_unixtime(value: Any) -> Any:
    return pc.cast(_timestamp(value, "s"), pa.int64())


def _now() -> Any:
    return pa.scalar(datetime.datetime.now(datetime.timezone.utc), pa.timestamp("us", "UTC"))


def _today() -> Any:
    return pa.scalar(datetime.datetime.now(datetime.timezone.utc).date(), pa.date32())


FUNCTIONS = [
    Function("date_part", (Kind.TEXT, Kind.TEMPORAL), _date_part),
    Function("date_trunc", (Kind.TEXT, Kind.TEMPORAL), _date_trunc),
    Function("date_bin", (Kind.INTERVAL, Kind.TEMPORAL, Kind.TEMPORAL), _date_bin, optional=1),
    Function("to_date", (Kind.ANY,), _to_date),
    Function("to_timestamp", (Kind.ANY,), _to_timestamp("default")),
    Function("to_timestamp_seconds", (Kind.ANY,), _to_timestamp("s")),
    Function("to_timestamp_millis", (Kind.ANY,), _to_timestamp("ms")),
    Function("to_timestamp_micros", (Kind.ANY,), _to_timestamp("us")),
    Function("to_timestamp_nanos", (Kind.ANY,), _to_timestamp("ns")),
    Function("to_unixtime", (Kind.TEMPORAL,), _to_unixtime),
    Function("from_unixtime", (Kind.INTEGER,), lambda value: pc.cast(value, pa.timestamp("s"))),
    Function(
        "make_date",
        (Kind.INTEGER, Kind.INTEGER, Kind.INTEGER),
        rowwise(lambda year, month, day: datetime.date(year, month, day), pa.date32()),
    ),
    Function("now", (), _now),
    Function("current_date", (), _today),
]
ALIASES = {"datepart": "date_part", "datetrunc": "date_trunc", "today": "current_date", "current_timestamp": "now"}
