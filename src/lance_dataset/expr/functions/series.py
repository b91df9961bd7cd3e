"""Lists of consecutive values: ``range`` excludes the end, ``generate_series`` includes it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.expr.function import Function, Kind
from lance_dataset.expr.functions.list_layout import ITEM_LIMIT, Positions, columnar, list_of, mask_of, require_room

__all__ = ["ALIASES", "FUNCTIONS"]

_NANOSECONDS_PER_DAY = 86_400_000_000_000


def _series(name: str, closed: bool) -> Callable[..., Any]:
    @columnar
    def kernel(first: pa.Array, stop: pa.Array | None = None, step: pa.Array | None = None) -> pa.Array:
        if step is not None and pa.types.is_interval(step.type):
            return _moments(name, closed, first, stop, step)
        if stop is None:
            first, stop = pa.array(np.zeros(len(first), np.int64)), first
        return _integers(name, closed, first, stop, step)

    return kernel


def _integers(name: str, closed: bool, first: pa.Array, stop: pa.Array, step: pa.Array | None) -> pa.Array:
    given = [first, stop] if step is None else [first, stop, step]
    valid = np.logical_and.reduce([mask_of(pc.is_valid(part)) for part in given])
    begins, ends = (pc.fill_null(part, 0).to_numpy(zero_copy_only=False) for part in (first, stop))
    steps = np.ones(len(first), np.int64) if step is None else pc.fill_null(step, 1).to_numpy(zero_copy_only=False)
    if (steps[valid] == 0).any():
        raise pa.ArrowInvalid(f"{name} needs a step other than 0")
    steps = np.where(steps == 0, 1, steps)
    lengths = np.where(valid, _step_counts(begins, ends, steps, closed), 0)
    require_room(int(lengths.sum()))
    rows = np.repeat(np.arange(len(first)), lengths)
    places = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return list_of(pa.array(begins[rows] + places * steps[rows], pa.int64()), lengths, valid)


def _step_counts(begins: Positions, ends: Positions, steps: Positions, closed: bool) -> Positions:
    """Return the number of values of each series, capped slightly above the number that fits."""
    wide = np.abs(ends.astype(np.float64) - begins.astype(np.float64)) >= 2.0**62
    distance, size = np.where(wide, 0, ends - begins) * np.sign(steps), np.abs(steps)
    counts = distance // size + 1 if closed else -(-distance // size)
    for row in np.flatnonzero(wide | (size < 0)):  # sizes that do not fit 64 bits
        values = range(int(begins[row]), int(ends[row]) + (closed if steps[row] > 0 else -closed), int(steps[row]))
        try:
            counts[row] = min(len(values), ITEM_LIMIT + 1)
        except OverflowError:
            counts[row] = ITEM_LIMIT + 1
    return np.clip(counts, 0, ITEM_LIMIT + 1)


# -- dates and timestamps ------------------------------------------------------------------------------------------


def _moments(name: str, closed: bool, first: pa.Array, stop: pa.Array, step: pa.Array) -> pa.Array:
    """Return series of dates and timestamps; each value is the previous one plus the step, as in the reference."""
    whole_days = pa.types.is_date(first.type)
    if not any(stride is not None and stride.months for stride in step.to_pylist()):
        return _even_moments(name, closed, first, stop, step)
    begins, ends = (pc.cast(part, pa.int32() if whole_days else pa.int64()).to_pylist() for part in (first, stop))
    rows: list[list[int] | None] = []
    total = 0
    for begin, end, stride in zip(begins, ends, step.to_pylist(), strict=True):
        if begin is None or end is None or stride is None:
            rows.append(None)
            continue
        values = _dates(begin, stride) if whole_days else _instants(begin, stride)
        rows.append(_until(name, closed, end, _sign(name, stride, whole_days), values, ITEM_LIMIT - total))
        total += len(rows[-1] or ())
    storage = pa.int32() if whole_days else pa.int64()
    items = pa.array([value for row in rows if row is not None for value in row], storage).cast(first.type)
    lengths = np.array([0 if row is None else len(row) for row in rows], np.int64)
    return list_of(items, lengths, np.array([row is not None for row in rows], bool))


def _even_moments(name: str, closed: bool, first: pa.Array, stop: pa.Array, step: pa.Array) -> pa.Array:
    """Return series whose steps have no months, so that all steps have the same length."""
    whole_days = pa.types.is_date(first.type)
    storage = pa.int32() if whole_days else pa.int64()
    strides: list[int | None] = []
    for stride in step.to_pylist():
        if stride is None:
            strides.append(None)
            continue
        _sign(name, stride, whole_days)
        days = stride.days + stride.nanoseconds // _NANOSECONDS_PER_DAY
        strides.append(days if whole_days else stride.days * _NANOSECONDS_PER_DAY + stride.nanoseconds)
    steps = pa.array(strides, pa.int64())
    begins, ends = (pc.cast(pc.cast(part, storage), pa.int64()) for part in (first, stop))
    series = _integers(name, closed, begins, ends, steps)
    return pc.cast(pc.cast(series, pa.list_(storage)), pa.list_(first.type))


def _sign(name: str, stride: pa.MonthDayNano, whole_days: bool) -> int:
    parts = [stride.months, stride.days, stride.nanoseconds]
    if whole_days and not (stride.months or stride.days):
        raise pa.ArrowInvalid(f"{name} of dates needs a step of at least a day")
    signs = {(part > 0) - (part < 0) for part in parts if part}
    if len(signs) != 1:
        raise pa.ArrowInvalid(f"{name} needs a step other than 0, all parts of which have one sign")
    return signs.pop()


def _until(name: str, closed: bool, end: int, sign: int, values: Iterator[int], room: int) -> list[int]:
    row: list[int] = []
    for value in values:
        if (value - end) * sign >= (1 if closed else 0):
            return row
        row.append(value)
        if len(row) > room:
            break
    raise pa.ArrowInvalid(f"{name} would make lists of more than {ITEM_LIMIT} items in one batch")


def _dates(day: int, stride: pa.MonthDayNano) -> Iterator[int]:
    extra = stride.days + stride.nanoseconds // _NANOSECONDS_PER_DAY
    while True:
        yield day
        day = _plus_months(day, stride.months) + extra


def _instants(moment: int, stride: pa.MonthDayNano) -> Iterator[int]:
    extra = stride.days * _NANOSECONDS_PER_DAY + stride.nanoseconds
    while True:
        yield moment
        day, rest = divmod(moment, _NANOSECONDS_PER_DAY)
        moment = _plus_months(day, stride.months) * _NANOSECONDS_PER_DAY + rest + extra


def _plus_months(day: int, months: int) -> int:
    """Add months to days since the epoch; if the month lacks the day, its last day is used."""
    if not months:
        return day
    epoch = dt.date(1970, 1, 1)
    date = epoch + dt.timedelta(days=day)
    year, month = divmod(date.year * 12 + date.month - 1 + months, 12)
    if not 1 <= year <= 9998:
        raise pa.ArrowInvalid("the series leaves the years 1 to 9998")
    following = dt.date(year + (month == 11), (month + 1) % 12 + 1, 1)
    last = (following - dt.timedelta(days=1)).day
    return (dt.date(year, month + 1, min(date.day, last)) - epoch).days


def _types(name: str) -> Callable[[Sequence[pa.DataType]], list[pa.DataType]]:
    def coercion(types: Sequence[pa.DataType]) -> list[pa.DataType]:
        if all(pa.types.is_integer(arrow) or pa.types.is_null(arrow) for arrow in types):
            return [pa.int64()] * len(types)
        moments = types[:2]
        if len(types) == 3 and (pa.types.is_interval(types[2]) or pa.types.is_null(types[2])):
            step = pa.month_day_nano_interval()
            if all(pa.types.is_date(arrow) or pa.types.is_null(arrow) for arrow in moments):
                return [pa.date32(), pa.date32(), step]
            if all(pa.types.is_temporal(arrow) or pa.types.is_null(arrow) for arrow in moments):
                zone = next((arrow.tz for arrow in moments if pa.types.is_timestamp(arrow) and arrow.tz), None)
                return [pa.timestamp("ns", zone), pa.timestamp("ns", zone), step]
        given = ", ".join(map(str, types))
        raise pa.ArrowInvalid(f"{name} takes integers, or two dates or timestamps and an INTERVAL, not {given}")

    return coercion


_ANY = Kind.ANY
FUNCTIONS = [
    Function(name, (_ANY, _ANY, _ANY), _series(name, closed=closed), optional=2, coercion=_types(name))
    for name, closed in (("range", False), ("generate_series", True))
]
ALIASES: dict[str, str] = {}
